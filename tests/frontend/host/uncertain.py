# A condition that only Python could decide, and two meanings of a name: neither is taken.
# Imports of the same thing from two places are no matter.
# RUN: not %sdc compile %s -k f -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s
# RUN: %sdc compile %s -k g -s '*fp32' --emit tir -o - | FileCheck %s --check-prefix=SAME
import torch
import triton
import triton.language as tl

if torch.cuda.device_count() > 1:
    SIZE = tl.constexpr(64)
    from triton.language.extra.cuda import libdevice
else:
    SIZE = tl.constexpr(32)
    from triton.language.extra import libdevice

@triton.jit
def f(x):
    # CHECK: uncertain.py:[[#@LINE+1]]:17: error: 'SIZE' is one of several, and which one
    tl.store(x, SIZE)

@triton.jit
def g(x):
    # SAME: sqrt
    tl.store(x, libdevice.sqrt(tl.load(x)))
