# What torch and numpy have is not a kernel's.
# RUN: not %sdc compile %s --emit=tir -s 'x=*fp32' 2>&1 | FileCheck %s
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def f(x):
    i = tl.arange(0, 16)
    # CHECK: [[#@LINE+1]]:9: error: 'torch.relu' is host code, which a kernel cannot call
    v = torch.relu(tl.load(x + i))
    # CHECK: [[#@LINE+1]]:27: error: 'numpy.float16' is host code, which a kernel cannot call: use tl.float16
    w = tl.load(x + i).to(np.float16)
