# Code that runs for ever or nests without end costs a bounded time, and only what needs it
# is refused.
# RUN: %sdc compile %s -k k -s '*fp32' --emit tir -o - | FileCheck %s
# RUN: not %sdc compile %s -k needs -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s --check-prefix=NEEDS
import triton
import triton.language as tl

n = 0
while True:
    n += 1
FOREVER = tl.constexpr(n)


def deeper(x):
    return deeper(x + 1)


deep = deeper(0)
text = "ab" * 10 ** 12
table = [[0] * 1000 for _ in range(10 ** 9)]


@triton.jit
def k(x):
    # CHECK: store
    tl.store(x, 1)


@triton.jit
def needs(x):
    # NEEDS: limits.py:[[#@LINE+1]]:17: error: 'FOREVER' is known to Python alone
    tl.store(x, FOREVER)
    # NEEDS: limits.py:9:1: note: evaluating it takes more than {{[0-9]+}} steps
