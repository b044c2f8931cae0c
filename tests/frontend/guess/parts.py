# RUN: %sdc check %s | FileCheck %s
# One dimension beside numbers makes up a tile with them; what makes a pointer's type is a
# dtype. A guess that passes without is taken first.
import triton
import triton.language as tl


# CHECK: kernel groups(
# CHECK-NEXT: guessed -s 'x=*fp32,s=*fp32,n=i32,BLOCK=64,GROUPS=2'
@triton.jit
def groups(x, s, n, BLOCK: tl.constexpr, GROUPS: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    g = tl.reshape(v, [GROUPS, 32])
    tl.store(s + tl.arange(0, GROUPS), tl.max(g, 1))
    tl.store(x + i, tl.reshape(g * 2, [BLOCK]))


# CHECK: kernel apart(
# CHECK-NEXT: guessed -s 'x=*fp32,y=*fp32,N=64'
@triton.jit
def apart(x, y, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, 4 * N)).reshape(N, 4)
    tl.store(y + tl.arange(0, N), tl.sum(v, 1))


# CHECK: kernel table(
# CHECK-NEXT: guessed -s 'x=*fp32,to=*i64,DST=fp32'
@triton.jit
def table(x, to: tl.pointer_type(tl.int64), DST: tl.constexpr):
    i = tl.arange(0, 64)
    p = tl.load(to).to(tl.pointer_type(DST))
    tl.store(p + i, tl.load(x + i).to(DST))


# What a function of the library gives is integers: as wide as its numbers ask.
# CHECK: kernel winners(
# CHECK-NEXT: guessed -s 'x=*i32,y=*i32,K=64'
@triton.jit
def winners(x, y, K: tl.constexpr):
    keys = tl.topk(tl.load(x + tl.arange(0, 2 * K)), K)
    ids = tl.where(keys != 0, 65535 - (keys & 65535), 2147483647)
    tl.store(y + tl.arange(0, K), tl.sort(ids.to(tl.int32)))
# CHECK: 4 of 4 kernels pass
