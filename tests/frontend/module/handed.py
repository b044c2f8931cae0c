# Triton handed on by a package that is not here, names that only one arm of an unknown
# condition binds, and what a kernel asks of torch.
# RUN: %sdc compile %s -k k -s '*fp32' --emit tir -o - | FileCheck %s
# RUN: not %sdc compile %s -k both -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s --check-prefix=BOTH
import torch
from engine.triton_utils import HAS_TRITON, tl, tldevice, triton

if HAS_TRITON:
    from other.utils import tl as language

    ONE = tl.constexpr(1.0)
    TWO = tl.constexpr(2.0)
else:
    TWO = tl.constexpr(3.0)


# CHECK: kernel @k
@triton.jit
def k(x):
    # CHECK: libm {{.*}}tanh
    v = tldevice.tanh(language.load(x)) + ONE
    if torch.version.hip is not None:
        v = v / 0
    # CHECK-NOT: div
    tl.store(x, v)


@triton.jit
def both(x):
    # BOTH: handed.py:[[#@LINE+1]]:17: error: 'TWO' is one of several
    tl.store(x, TWO)
    # BOTH: handed.py:{{12|14}}:{{.*}}note: this is
