# An unknown condition runs both arms: what they agree on is known, what differs is not; an
# arm that raises is not the one that runs.
import machine
import triton
import triton.language as tl

sizes = [1]
log = []
if machine.big():
    SAME = tl.constexpr(16)
    OTHER = tl.constexpr(1)
    sizes.append(2)
else:
    SAME = tl.constexpr(16)
    OTHER = tl.constexpr(2)
if machine.broken():
    SURE = tl.constexpr(3)
    raise RuntimeError("no such machine")
else:
    SURE = tl.constexpr(4)


def pick(n):
    if machine.count() > n:
        log.append(n)
        return 5
    return 5


FIVE = tl.constexpr(pick(1))
LAST = tl.constexpr(sizes[-1])
LOGGED = tl.constexpr(len(log))
try:
    machine.probe()
    FOUND = tl.constexpr(1)
except Exception:
    FOUND = tl.constexpr(0)


@triton.jit
def known(x):
    tl.store(x, SAME + SURE + FIVE)


@triton.jit
def lost(x):
    tl.store(x, OTHER)


@triton.jit
def changed(x):
    tl.store(x, LAST + LOGGED)


@triton.jit
def tried(x):
    tl.store(x, FOUND)
