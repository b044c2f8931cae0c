"""Attention: tiles of queries, one query with pages of keys, grouped heads."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from cases import CASES, bf16, case, cd, f32, rn


@triton.jit
def fa_k(
    q,
    k,
    v,
    o,
    T,
    sc,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    s = tl.program_id(0)
    h = tl.program_id(1)
    m = s * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    n0 = tl.arange(0, BN)
    Q = tl.load(
        q + (h * T + m[:, None]) * D + d[None, :], mask=(m < T)[:, None], other=0.0
    )
    mi = tl.full((BM,), -float("inf"), tl.float32)
    li = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    hi = min(T, (s + 1) * BM) if CAUSAL else T
    for j in range(0, hi, BN):
        n = j + n0
        K = tl.load(
            k + (h * T + n[None, :]) * D + d[:, None], mask=(n < T)[None, :], other=0.0
        )
        S = tl.dot(Q, K, input_precision="ieee") * sc
        ok = (n < T)[None, :]
        if CAUSAL:
            ok = ok & (n[None, :] <= m[:, None])
        S = tl.where(ok, S, -float("inf"))
        nm = tl.maximum(mi, tl.max(S, 1))
        P = tl.exp(S - nm[:, None])
        al = tl.exp(mi - nm)
        li = li * al + tl.sum(P, 1)
        acc = acc * al[:, None]
        V = tl.load(
            v + (h * T + n[:, None]) * D + d[None, :], mask=(n < T)[:, None], other=0.0
        )
        acc = tl.dot(P.to(V.dtype), V, acc, input_precision="ieee")
        mi = nm
    tl.store(
        o + (h * T + m[:, None]) * D + d[None, :],
        acc / li[:, None],
        mask=(m < T)[:, None],
    )


for T, D, ca, dt, BM, BN in (
    (512, 64, 0, f32, 64, 64),
    (512, 64, 1, f32, 64, 32),
    (1000, 64, 0, f32, 128, 64),
    (512, 128, 0, f32, 64, 64),
    (512, 64, 0, bf16, 64, 64),
):

    def c(T=T, D=D, ca=ca, dt=dt, BM=BM, BN=BN):
        q, k, v = (rn(2, T, D, dt=dt) for _ in range(3))
        o = torch.empty_like(q)
        t = lambda: F.scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=bool(ca)
        )
        return (
            (lambda: fa_k[(cd(T, BM), 2)](q, k, v, o, T, D**-0.5, D, BM, BN, bool(ca))),
            t,
            o,
            F.scaled_dot_product_attention(
                q.double(), k.double(), v.double(), is_causal=bool(ca)
            ),
        )

    c.__name__ = f"flash_{T}x{D}_{'causal_' if ca else ''}{dt}"
    CASES.append(c)


@triton.jit
def paged_k(q, kc, vc, bt, ln, o, sc, MB, H, D: tl.constexpr, PS: tl.constexpr):
    b = tl.program_id(0)
    h = tl.program_id(1)
    d = tl.arange(0, D)
    t = tl.arange(0, PS)
    L = tl.load(ln + b)
    Q = tl.load(q + (b * H + h) * D + d).to(tl.float32) * sc
    m = -float("inf")
    l = 0.0
    acc = tl.zeros((D,), tl.float32)
    for j in range(0, tl.cdiv(L, PS)):
        p = tl.load(bt + b * MB + j)
        o_ = ((p * PS + t[:, None]) * H + h) * D + d[None, :]
        ok = j * PS + t < L
        K = tl.load(kc + o_, mask=ok[:, None], other=0.0).to(tl.float32)
        s = tl.where(ok, tl.sum(K * Q[None, :], 1), -float("inf"))
        nm = tl.maximum(m, tl.max(s, 0))
        pr = tl.exp(s - nm)
        al = tl.exp(m - nm)
        V = tl.load(vc + o_, mask=ok[:, None], other=0.0).to(tl.float32)
        acc = acc * al + tl.sum(pr[:, None] * V, 0)
        l = l * al + tl.sum(pr, 0)
        m = nm
    tl.store(o + (b * H + h) * D + d, acc / l)


for dt in (f32, bf16):
    for PS, D in ((16, 64), (32, 128)):

        def c(dt=dt, PS=PS, D=D):
            B, H, L = 4, 8, 500
            MB = cd(L, PS)
            q = rn(B, H, D, dt=dt)
            kc = rn(B * MB, PS, H, D, dt=dt)
            vc = rn(B * MB, PS, H, D, dt=dt)
            bt = torch.randperm(B * MB).int().view(B, MB)
            ln = torch.full((B,), L, dtype=torch.int32)
            o = torch.empty_like(q)

            def t(q=q, kc=kc, vc=vc):
                k = kc[bt.long()].view(B, -1, H, D)[:, :L].transpose(1, 2)
                v = vc[bt.long()].view(B, -1, H, D)[:, :L].transpose(1, 2)
                return F.scaled_dot_product_attention(q[:, :, None], k, v)[:, :, 0]

            K = kc[bt.long()].view(B, -1, H, D)[:, :L].transpose(1, 2).contiguous()
            V = vc[bt.long()].view(B, -1, H, D)[:, :L].transpose(1, 2).contiguous()
            best = lambda: F.scaled_dot_product_attention(q[:, :, None], K, V)
            return (
                (lambda: paged_k[(B, H)](q, kc, vc, bt, ln, o, D**-0.5, MB, H, D, PS)),
                best,
                o,
                t(q.double(), kc.double(), vc.double()),
            )

        c.__name__ = f"paged_decode_{PS}x{D}_{dt}"
        CASES.append(c)


@triton.jit
def gqa_dec(q, k, v, o, T, sc, G: tl.constexpr, D: tl.constexpr, BN: tl.constexpr):
    h = tl.program_id(0)
    g = tl.arange(0, G)
    d = tl.arange(0, D)
    Q = tl.load(q + (h * G + g[:, None]) * D + d[None, :])
    mi = tl.full((G,), -float("inf"), tl.float32)
    li = tl.zeros((G,), tl.float32)
    acc = tl.zeros((G, D), tl.float32)
    for j in range(0, T, BN):
        n = j + tl.arange(0, BN)
        K = tl.load(
            k + (h * T + n[None, :]) * D + d[:, None], mask=(n < T)[None, :], other=0.0
        )
        S = tl.where(
            (n < T)[None, :], tl.dot(Q, K, input_precision="ieee") * sc, -float("inf")
        )
        nm = tl.maximum(mi, tl.max(S, 1))
        P = tl.exp(S - nm[:, None])
        al = tl.exp(mi - nm)
        li = li * al + tl.sum(P, 1)
        V = tl.load(
            v + (h * T + n[:, None]) * D + d[None, :], mask=(n < T)[:, None], other=0.0
        )
        acc = tl.dot(P.to(V.dtype), V, acc * al[:, None], input_precision="ieee")
        mi = nm
    tl.store(o + (h * G + g[:, None]) * D + d[None, :], acc / li[:, None])


@case
def gqa_decode_16():
    q = rn(4, 16, 64)
    k = rn(4, 1000, 64)
    v = rn(4, 1000, 64)
    o = torch.empty_like(q)
    return (
        (lambda: gqa_dec[(4,)](q, k, v, o, 1000, 0.125, 16, 64, 64)),
        (lambda: F.scaled_dot_product_attention(q[None], k[None], v[None])),
        o,
        F.scaled_dot_product_attention(q.double(), k.double(), v.double()),
    )
