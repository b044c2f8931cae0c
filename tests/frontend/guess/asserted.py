# What a helper's result, an assertion, a named constant, a tuple's elements and a descriptor
# say of parameters.
# RUN: %sdc check %s --target sm_90a | FileCheck %s
import triton
import triton.language as tl

EARLY = tl.constexpr(3)


# CHECK: kernel tuples(
# CHECK-NEXT: guessed -s 'strides=(i32,i32,i32),parts=(*fp32,*fp32,*fp32,*fp32),out=*fp32,N=4'
@triton.jit
def tuples(strides, parts, out, N: tl.constexpr):
    i = tl.arange(0, 64)
    p = parts[0] + i * strides[0]
    for k in tl.static_range(1, N):
        p = tl.where(i == k, parts[k], p)
    tl.store(out + i * strides[2] + strides[1], tl.load(p))


# CHECK: kernel slots(
# CHECK-NEXT: guessed -s 'x=*fp32,counts=*i32,flags=*i32,out=*fp32,n=i32'
@triton.jit
def slots(x, counts, flags, out, n):
    i = tl.arange(0, 64)
    slot = tl.atomic_add(counts + i, 1)
    before = 0
    for k in range(n):
        place = tl.cumsum(tl.load(flags + i + k)) + before
        before = tl.max(place)
        tl.store(out + place - 1, tl.load(x + slot))


# CHECK: kernel asserted(
# CHECK-NEXT: guessed -s 'x=*fp32,SIZE=32,ON=True,OFF=False,MODE=3'
@triton.jit
def asserted(x, SIZE: tl.constexpr, ON: tl.constexpr, OFF: tl.constexpr,
             MODE: tl.constexpr):
    tl.static_assert(ON)
    tl.static_assert(not (ON and OFF))
    tl.assume(SIZE == 32)
    if MODE == EARLY:
        v = tl.load(x + tl.arange(0, SIZE))
    tl.store(x + tl.arange(0, SIZE), v)


# CHECK: kernel described(
# CHECK-NEXT: guessed -s 'x=*fp32,n=i32,row=i32,column=1,D=64'
@triton.jit
def described(x, n, row, column, D: tl.constexpr):
    base = tl.multiple_of(x, D) + n
    d = tl.make_tensor_descriptor(base, shape=[n, n], strides=[row, column],
                                  block_shape=[16, 16])
    d.store([0, 0], d.load([0, 0]) + 1.0)


# Bytes, where a product of them is what is summed.
# CHECK: kernel bytes(
# CHECK-NEXT: guessed -s 'a=*i8,b=*i8,c=*i8'
@triton.jit
def bytes(a, b, c):
    i = tl.arange(0, 64)
    at = i[:, None] * 64 + i[None, :]
    s = tl.zeros((64, 64), tl.int32)
    for k in range(4):
        s += tl.dot(tl.load(a + at), tl.load(b + at))
    tl.store(c + at, s)


# What is stored is a float, also where an element of it is compared with a count; 2**N says
# nothing of the pointer that it is added to.
# CHECK: kernel counted(
# CHECK-NEXT: guessed -s 'out=*fp32,x=*fp32,N=16'
@triton.jit
def counted(out, x, N: tl.constexpr):
    r: tl.constexpr = 2**N
    i = tl.arange(0, 64)
    total = tl.sum(tl.exp(tl.load(x + r + i)))
    tl.atomic_add(out, total)
    tl.atomic_add(out + 2 * r, 1)
    if tl.load(out + 2 * r) == tl.num_programs(0):
        total = tl.load(out)
        tl.store(out + 1, total)
# CHECK: 6 of 6 kernels pass
