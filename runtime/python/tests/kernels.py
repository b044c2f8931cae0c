"""Kernels of the tests, as users write them."""

import enum
from collections import namedtuple
from enum import IntEnum

import sdc
import sdc.language as tl

SCALE = tl.constexpr(3.0)
PLAIN = 3.0
Line = namedtuple("Line", ["slope", "start"], defaults=[0.5])


@sdc.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@sdc.jit
def strided(x, step, out, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i * step, mask=i < n), mask=i < n)


@sdc.jit
def talks(x, B: tl.constexpr):
    tl.static_print("B is", B)
    i = tl.arange(0, B)
    tl.store(x + i, tl.where(i, 1.0, 2.0))


@sdc.jit
def twice(x):
    return x + x


@sdc.jit
def returns(x):
    return tl.load(x)


@sdc.jit
def scale(x, out, BLOCK: tl.constexpr = 16):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, twice(tl.load(x + i)) * SCALE)


class Mode(IntEnum):
    SLOW = 1
    FAST = 2


class Act(enum.Enum):
    NONE = "none"
    RELU = "relu"


@sdc.jit
def by_mode(out, MODE: tl.constexpr, ACT: tl.constexpr):
    tl.store(out, MODE + 1)
    tl.store(out + 1, 10 if ACT is not None and ACT.name == "RELU" else 20)


@sdc.jit
def plain(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * PLAIN)


@sdc.jit
def along(x, line, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * line.slope + line.start)


@sdc.jit
def thrice(x):
    return x * SCALE


@sdc.jit
def through(x, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, F(tl.load(x + i)))


@sdc.jit
def scaled_or_shifted(x, by, F: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = F(tl.load(x + i))
    if by is not None:
        v += by
    tl.store(x + i, v)


@sdc.jit
def of_parts(x, parts, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    scale, (shift, other) = parts
    v = tl.load(x + i) * scale + shift
    if other is not None:
        v += tl.load(other + i)
    tl.store(x + i, v)


@sdc.jit
def apply(x, pair, F: tl.constexpr, T: tl.constexpr, BLOCK: tl.constexpr):
    a, (b, c) = pair
    i = tl.arange(0, BLOCK)
    v = F(tl.load(x + i)).to(T).to(tl.float32) * a
    if c is None:
        v += b
    tl.store(x + i, v)


@sdc.jit
def kinds(out, a, b, c, d):
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, (b // 1000).to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))


@sdc.jit
def optional(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if y is not None:
        v += tl.load(y + i, mask=i < n, other=0.0)
    tl.store(x + i, v, mask=i < n)


@sdc.jit
def blocks(desc, out, M: tl.constexpr, N: tl.constexpr):
    v = desc.load([0, 0])
    i, j = tl.arange(0, M), tl.arange(0, N)
    tl.store(out + i[:, None] * N + j[None, :], v)


@sdc.jit
def add_blocks(x, y, out, M: tl.constexpr, N: tl.constexpr):
    out.store([0, 0], x.load([0, 0]) + y.load([0, 0]))


@sdc.jit
def with_defaults(x, y=None, F: tl.constexpr = twice, BY: tl.constexpr = (2, 3)):
    i = tl.arange(0, 16)
    v = F(tl.load(x + i)) * BY[1]
    if y is not None:
        v += tl.load(y + i)
    tl.store(x + i, v)


def scaled_by(factor: float):
    """A kernel with a value of its own."""
    by = tl.constexpr(factor)

    @sdc.jit
    def kernel(x):
        i = tl.arange(0, 16)
        tl.store(x + i, tl.load(x + i) * by)

    return kernel


@sdc.jit
def wrong(x,
          n):
    i = tl.arange(0, 16)
    tl.store(x + i, nothing + n)  # noqa: F821


@sdc.jit
def tell(x):
    i = tl.arange(0, 2)
    v = tl.load(x + i)
    tl.device_print("v: ", v)
    tl.device_assert(v < 5, "too large")


@sdc.autotune([sdc.Config({"BLOCK": 16}), sdc.Config({"BLOCK": 32})], key=["n"])
@sdc.jit
def tuned(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 7.0, mask=i < n)


@sdc.jit
def square_and_add(x, out, n: tl.constexpr):
    i = tl.arange(0, n)
    v = tl.load(x + i)
    tl.store(out + i, v * v + v)
