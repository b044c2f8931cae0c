# A default that only Python could evaluate is guessed like a parameter without one.
# RUN: %sdc check %s 2>&1 | FileCheck %s
import triton
import triton.language as tl
from engine import platform


# CHECK: guessed -s 'x=*fp32,N=64,MOST=1.0'
# CHECK: 1 of 1 kernel passes
@triton.jit
def k(x, N: tl.constexpr, MOST: tl.constexpr = platform.limits().max, LEAST: tl.constexpr = 0.5):
    i = tl.arange(0, N)
    tl.store(x + i, tl.clamp(tl.load(x + i), LEAST * 1.0, MOST * 1.0))
