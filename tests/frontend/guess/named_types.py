# RUN: %sdc check %s | FileCheck %s
# Assertions and formats of dot_scaled name the types of elements; of several the first.
# CHECK: guessed -s 's_ptr=*u8,t_ptr=*bf16,x_ptr=*u32,a_ptr=*u8,b_ptr=*fp8e4nv,y_ptr=*fp32'
# CHECK: 1 of 1 kernel passes
import triton
import triton.language as tl


@triton.jit
def bits(x):
    tl.static_assert(x.dtype == tl.uint32, "x is 32 bits")
    return tl.sum(x, 0)


@triton.jit
def k(s_ptr, t_ptr, x_ptr, a_ptr, b_ptr, y_ptr):
    t: tl.constexpr = t_ptr.dtype.element_ty
    tl.static_assert(t == tl.bfloat16 or t == tl.float16, f"{t}")
    tl.static_assert(s_ptr.dtype.element_ty == tl.uint8)
    i = tl.arange(0, 32)
    x = tl.load(x_ptr + i)
    a_ptrs = a_ptr + i[:, None] * 32 + i
    scale = tl.load(s_ptr + i[:, None] * 2 + tl.arange(0, 2))
    b = tl.load(b_ptr + i[:, None] * 64 + tl.arange(0, 64))
    for _ in range(2):
        a = tl.load(a_ptrs)
        a_ptrs += 32
        acc = tl.dot_scaled(a, scale, "e2m1", tl.trans(b), None, "e4m3")
        tl.store(y_ptr + i, bits(x) + tl.sum(acc, 0) + tl.load(t_ptr))
