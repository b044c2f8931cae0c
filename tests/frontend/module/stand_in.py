# Where one arm imports Triton and the other puts objects in its place, there are no kernels
# with the objects; and a kernel reads a constexpr, not the plain number of the other arm.
# RUN: %sdc compile %s -k k -s '*fp32' --emit tir -o - | FileCheck %s
# RUN: not %sdc compile %s -k either -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s --check-prefix=EITHER
import types

from engine import HAS_TRITON


class StandIn(types.ModuleType):
    def __init__(self):
        super().__init__("triton")
        self.jit = lambda f: f


if HAS_TRITON:
    import triton
    import triton.language as tl
    from triton.language.extra import libdevice as lib
else:
    triton = StandIn()
    tl = StandIn()
    lib = StandIn()

ONE = tl.constexpr(1.0) if HAS_TRITON else 1.0
TWO = tl.constexpr(2.0) if HAS_TRITON else tl.constexpr(3.0)


# CHECK: kernel @k
@triton.jit
def k(x):
    # CHECK: libm {{.*}}tanh
    # CHECK: const {fvalue=0x1p+0}
    tl.store(x, lib.tanh(tl.load(x)) + ONE)


@triton.jit
def either(x):
    # EITHER: stand_in.py:[[#@LINE+1]]:17: error: 'TWO' is one of several
    tl.store(x, TWO)
