# A factor that a product needs in fp8, beside floats that are made so.
# RUN: %sdc check %s | FileCheck %s
import triton
import triton.language as tl


# CHECK: guessed -s 'a=*fp32,b=*fp8e4nv,out=*fp32'
# CHECK: 1 of 1 kernel passes
@triton.jit
def k(a, b, out):
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    x = (tl.load(a + at) * 2.0).to(tl.float8e4nv)
    tl.store(out + at, tl.dot(x, tl.load(b + at)))
