# RUN: %sdc compile %s -k k -s '*fp16,*bf16,*i1' --emit=tir | FileCheck %s
# Literals take the tensor's type in comparisons, minima and the like, as in Triton 3.9: 0.1
# of fp16 is 0.1 rounded to fp16, and the result's type is the tensor's.
import triton
import triton.language as tl


@triton.jit
def k(x_ptr, y_ptr, z_ptr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    # CHECK-NOT: fext
    # CHECK: cmpf %x, {{.*}} : tile<64xi1>
    tl.store(z_ptr + i, x == 0.1)
    # CHECK: [[MAX:%[0-9]+]] = maxf %y, {{.*}} : tile<64xbf16>
    # CHECK: minf [[MAX]], {{.*}} : tile<64xbf16>
    tl.store(y_ptr + i, tl.clamp(y, 0.0, 0.1))
    # CHECK: fma %x, {{.*}} : tile<64xf16>
    tl.store(x_ptr + i, tl.fma(x, 2, 0.1))
