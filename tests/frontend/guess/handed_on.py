# Tuples that a helper takes elements of by computed indices, and an address that a helper
# computes with as an integer and turns into one of the same type again.
# RUN: %sdc check %s | FileCheck %s
import triton
import triton.language as tl


@triton.jit
def row(p, strides, WIDE: tl.constexpr):
    AT: tl.constexpr = 2 - WIDE
    return p + tl.program_id(0) * strides[AT]


# CHECK: guessed -s 'p=*fp32,strides=(i32,i32,i32,i32),WIDE=True'
@triton.jit
def helper_index(p, strides, WIDE: tl.constexpr):
    if WIDE:
        tl.store(row(p, strides, WIDE), 1.0)


@triton.jit
def moved(p, bases):
    off = tl.cast(p, tl.uint64) - tl.load(bases)
    byte = tl.cast(tl.load(bases + 1), tl.pointer_type(tl.int8)) + off
    return tl.cast(byte, p.dtype)


# CHECK: guessed -s 'buffer=*fp32,bases=*i64,N=64'
@triton.jit
def address(buffer, bases, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(moved(buffer + i, bases), i)


# CHECK: 2 of 2 kernels pass
