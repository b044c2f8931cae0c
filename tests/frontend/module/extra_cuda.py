# Where Triton's own files define what it has for NVIDIA's GPUs is known as well.
# RUN: %sdc compile %s -s '*i32' -c F=num_threads --target sm_90a --emit tir | FileCheck %s
import triton
import triton.language as tl
import triton.language.extra.cuda.utils as cu
from triton.language.extra.cuda import gdc, utils
from triton.language.extra.cuda.gdc import gdc_wait
from triton.language.extra.cuda.utils import num_threads, num_warps


# CHECK: value=268}
@triton.jit
def k(y, F: tl.constexpr):
    gdc_wait()
    gdc.gdc_launch_dependents()
    tl.store(y, F() + num_warps() + cu.num_threads() + utils.num_warps() +
             tl.extra.cuda.utils.num_warps())
