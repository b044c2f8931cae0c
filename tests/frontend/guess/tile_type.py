# `element_ty` of a type is of tiles as well as of pointers: what is loaded is no address.
# RUN: %sdc check %s | FileCheck %s
# CHECK: guessed -s 'Q=*fp32,DO=*fp32,K=*fp32,V=*fp32,out=*fp32,BLOCK=64'
# CHECK: 1 of 1 kernel passes
import triton
import triton.language as tl


@triton.jit
def inner(q, do, K, V, at):
    kT = tl.load(K + at)
    vT = tl.load(V + at)
    qk = tl.dot(q, kT)
    dp = tl.dot(do.to(vT.type.element_ty), vT)
    t = tl.trans(qk).to(kT.type.element_ty)
    return tl.dot(t, kT) + dp


@triton.jit
def kernel(Q, DO, K, V, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
    q = tl.load(Q + at)
    do = tl.load(DO + at)
    tl.store(out + at, inner(q, do, K, V, at))
