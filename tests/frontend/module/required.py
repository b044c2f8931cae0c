# Of packages that torch requires nothing is run, whatever folders -I names: sympy alone would
# take longer than all kernels.
# RUN: not %sdc compile %s -I %S/site -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s
import triton
import triton.language as tl
from sympy import HALF


# CHECK: error: 'HALF' is known to Python alone
@triton.jit
def k(x):
    tl.store(x, HALF)
