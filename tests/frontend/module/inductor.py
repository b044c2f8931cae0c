# Helpers of inductor, which code of torch.compile and of Helion calls, out of the folder of -I.
# RUN: %sdc compile %s -I %S/site -s '*fp32' --emit tir -o - | FileCheck %s
import torch
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers


# CHECK: kernel @k
# CHECK: cmpf {{.*}}ogt
# CHECK: select
@triton.jit
def k(x):
    tl.store(x, triton_helpers.most(tl.load(x), tl.load(x + 1)))
