# What host code of the file gives to constants: a launch, a variable that it hands on, and
# one of the same name, but not where launches leave the constant out.
# RUN: %sdc check %s | FileCheck %s
import triton
import triton.language as tl


# CHECK: guessed -s 'x=*fp32,N=16,M=8,K=4,DEEP=False'
@triton.jit
def k(x, N: tl.constexpr, M: tl.constexpr, K: tl.constexpr, DEEP: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i[:, None] * N + tl.arange(0, M)[None, :])
    tl.store(x + i, tl.sum(tl.reshape(v, (N, 2, K)) if DEEP else v + 0, 1))


def host(x):
    cols = 8
    K = 4
    k[(1,)](x, N=16, M=cols, K=K, DEEP=False)


# CHECK: guessed -s 'x=*fp32,P=8,Q=64'
@triton.autotune([], key=[])
@triton.jit
def tuned(x, P: tl.constexpr, Q: tl.constexpr):
    tl.store(x + tl.arange(0, Q)[:, None] * P + tl.arange(0, P), 1.0)


def other(x):
    Q = 1024
    tuned[(Q,)](x, 8)


# CHECK: 2 of 2 kernels pass
