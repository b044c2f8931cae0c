"""Attention as strangers write it: sequences of several lengths, pages, gradients, a bias tile, a window
with a soft cap, multi-head latent attention.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import fp16, pick, ri, rn, ze, cd, DEV, SMALL, run


@triton.jit
def varlen_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    l_ptr,
    cu_ptr,
    scale,
    H,
    HK,
    sqt,
    sqh,
    skt,
    skh,
    total,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    pm, h, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    s0 = tl.load(cu_ptr + b)
    s1 = tl.load(cu_ptr + b + 1)
    L = s1 - s0
    if pm * BM >= L:
        return
    hk = h // (H // HK)
    rm = pm * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    rn_ = tl.arange(0, BN)
    q = tl.load(
        q_ptr + (s0 + rm)[:, None] * sqt + h * sqh + rd[None, :],
        mask=rm[:, None] < L,
        other=0.0,
    )
    mi = tl.full((BM,), -float("inf"), tl.float32)
    li = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    qs = scale * 1.44269504
    end = tl.minimum((pm + 1) * BM, L) if CAUSAL else L
    for n in range(0, end, BN):
        kn = n + rn_
        k = tl.load(
            k_ptr + (s0 + kn)[None, :] * skt + hk * skh + rd[:, None],
            mask=kn[None, :] < L,
            other=0.0,
        )
        s = tl.dot(q, k) * qs
        ok = kn[None, :] < L
        if CAUSAL:
            ok = ok & (rm[:, None] >= kn[None, :])
        s = tl.where(ok, s, -1.0e30)
        mn = tl.maximum(mi, tl.max(s, 1))
        p = tl.exp2(s - mn[:, None])
        al = tl.exp2(mi - mn)
        li = li * al + tl.sum(p, 1)
        acc = acc * al[:, None]
        v = tl.load(
            v_ptr + (s0 + kn)[:, None] * skt + hk * skh + rd[None, :],
            mask=kn[:, None] < L,
            other=0.0,
        )
        acc += tl.dot(p.to(v.dtype), v)
        mi = mn
    acc = acc / li[:, None]
    tl.store(
        o_ptr + (s0 + rm)[:, None] * sqt + h * sqh + rd[None, :],
        acc.to(tl.bfloat16),
        mask=rm[:, None] < L,
    )
    tl.store(l_ptr + h * total + s0 + rm, mi + tl.log2(li), mask=rm < L)


def case_varlen():
    lens = pick([1000, 2048, 300, 4096, 77, 1500], [30, 70])
    H, HK = pick((16, 4), (4, 2))
    for D in pick((64, 128), (32,)):
        cu = torch.tensor(
            [0] + list(torch.tensor(lens).cumsum(0)), dtype=torch.int32, device=DEV
        )
        T = sum(lens)
        q, k, v = rn(T, H, D), rn(T, HK, D), rn(T, HK, D)
        for c in (True, False):
            for BM, BN, w, s in pick(
                [(128, 64, 4, 3), (64, 64, 4, 2), (128, 128, 8, 2)], [(16, 16, 4, 2)]
            ):
                o, l = torch.zeros_like(q), ze(H, T)
                varlen_kernel[(cd(max(lens), BM), H, len(lens))](
                    q,
                    k,
                    v,
                    o,
                    l,
                    cu,
                    D**-0.5,
                    H,
                    HK,
                    q.stride(0),
                    q.stride(1),
                    k.stride(0),
                    k.stride(1),
                    T,
                    c,
                    D,
                    BM,
                    BN,
                    num_warps=w,
                    num_stages=s,
                )


@triton.jit
def paged_kernel(
    q_ptr,
    kc_ptr,
    vc_ptr,
    bt_ptr,
    sl_ptr,
    o_ptr,
    scale,
    sbt,
    H: tl.constexpr,
    HK: tl.constexpr,
    D: tl.constexpr,
    PAGE: tl.constexpr,
    G: tl.constexpr,
    BN: tl.constexpr,
):
    b, hk = tl.program_id(0), tl.program_id(1)
    L = tl.load(sl_ptr + b)
    rd = tl.arange(0, D)
    rg = tl.arange(0, 16)
    hh = hk * G + rg
    q = tl.load(
        q_ptr + b * H * D + hh[:, None] * D + rd[None, :], mask=rg[:, None] < G, other=0.0
    )
    mi = tl.full((16,), -1e30, tl.float32)
    li = tl.zeros((16,), tl.float32)
    acc = tl.zeros((16, D), tl.float32)
    for n in range(0, L, BN):
        kn = n + tl.arange(0, BN)
        pg = tl.load(bt_ptr + b * sbt + kn // PAGE, mask=kn < L, other=0).to(tl.int64)
        off = (pg * PAGE + kn % PAGE) * HK * D + hk * D
        k = tl.load(kc_ptr + off[None, :] + rd[:, None], mask=kn[None, :] < L, other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where(kn[None, :] < L, s, -1e30)
        mn = tl.maximum(mi, tl.max(s, 1))
        p = tl.exp(s - mn[:, None])
        al = tl.exp(mi - mn)
        v = tl.load(vc_ptr + off[:, None] + rd[None, :], mask=kn[:, None] < L, other=0.0)
        acc = acc * al[:, None] + tl.dot(p.to(v.dtype), v)
        li = li * al + tl.sum(p, 1)
        mi = mn
    tl.store(
        o_ptr + b * H * D + hh[:, None] * D + rd[None, :],
        (acc / li[:, None]).to(tl.bfloat16),
        mask=rg[:, None] < G,
    )


def case_paged():
    B, H, HK, D, PAGE, L = pick((64, 32, 8, 128, 16, 2048), (2, 4, 2, 32, 16, 60))
    nb = B * cd(L, PAGE)
    kc, vc, q = rn(nb, PAGE, HK, D), rn(nb, PAGE, HK, D), rn(B, H, D)
    bt = torch.randperm(nb, device=DEV).to(torch.int32).view(B, -1)
    sl = ri(L // 2, L, B)
    for BN, w, s in pick([(64, 4, 2), (32, 2, 3), (128, 4, 3)], [(16, 1, 2)]):
        paged_kernel[(B, HK)](
            q,
            kc,
            vc,
            bt,
            sl,
            torch.zeros_like(q),
            D**-0.5,
            bt.stride(0),
            H,
            HK,
            D,
            PAGE,
            H // HK,
            BN,
            num_warps=w,
            num_stages=s,
        )


@triton.jit
def dkdv_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    l_ptr,
    d_ptr,
    dk_ptr,
    dv_ptr,
    scale,
    S,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    pn, bh = tl.program_id(0), tl.program_id(1).to(tl.int64)
    base = bh * S * D
    rn_ = pn * BN + tl.arange(0, BN)
    rd = tl.arange(0, D)
    k = tl.load(k_ptr + base + rn_[:, None] * D + rd[None, :])
    v = tl.load(v_ptr + base + rn_[:, None] * D + rd[None, :])
    dk = tl.zeros((BN, D), tl.float32)
    dv = tl.zeros((BN, D), tl.float32)
    lo = pn * BN // BM * BM if CAUSAL else 0
    for m in range(lo, S, BM):
        rm = m + tl.arange(0, BM)
        q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :])
        do = tl.load(do_ptr + base + rm[:, None] * D + rd[None, :])
        l = tl.load(l_ptr + bh * S + rm)
        de = tl.load(d_ptr + bh * S + rm)
        st = tl.dot(k, tl.trans(q)) * scale
        pt = tl.exp(st - l[None, :])
        if CAUSAL:
            pt = tl.where(rm[None, :] >= rn_[:, None], pt, 0.0)
        dv += tl.dot(pt.to(do.dtype), do)
        dpt = tl.dot(v, tl.trans(do))
        dst = pt * (dpt - de[None, :]) * scale
        dk += tl.dot(dst.to(q.dtype), q)
    tl.store(dk_ptr + base + rn_[:, None] * D + rd[None, :], dk.to(tl.bfloat16))
    tl.store(dv_ptr + base + rn_[:, None] * D + rd[None, :], dv.to(tl.bfloat16))


@triton.jit
def dq_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    l_ptr,
    d_ptr,
    dq_ptr,
    scale,
    S,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    pm, bh = tl.program_id(0), tl.program_id(1).to(tl.int64)
    base = bh * S * D
    rm = pm * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    q = tl.load(q_ptr + base + rm[:, None] * D + rd[None, :])
    do = tl.load(do_ptr + base + rm[:, None] * D + rd[None, :])
    l = tl.load(l_ptr + bh * S + rm)[:, None]
    de = tl.load(d_ptr + bh * S + rm)[:, None]
    dq = tl.zeros((BM, D), tl.float32)
    hi = (pm + 1) * BM if CAUSAL else S
    for n in range(0, hi, BN):
        rn_ = n + tl.arange(0, BN)
        k = tl.load(k_ptr + base + rn_[:, None] * D + rd[None, :])
        v = tl.load(v_ptr + base + rn_[:, None] * D + rd[None, :])
        p = tl.exp(tl.dot(q, k.T) * scale - l)
        if CAUSAL:
            p = tl.where(rm[:, None] >= rn_[None, :], p, 0.0)
        ds = p * (tl.dot(do, v.T) - de) * scale
        dq = tl.dot(ds.to(k.dtype), k, dq)
    tl.store(dq_ptr + base + rm[:, None] * D + rd[None, :], dq.to(tl.bfloat16))


def case_attn_bwd():
    BH, S = pick((32, 2048), (2, 64))
    for D in pick((64, 128), (32,)):
        q, k, v, do = [rn(BH, S, D) for _ in range(4)]
        s = (q.float() @ k.float().mT) * D**-0.5
        l = torch.logsumexp(s, -1)
        de = torch.rand(BH, S, device=DEV) * 0.1
        del s
        for BM, BN, w, st in pick(
            [(64, 64, 4, 2), (64, 128, 8, 2), (32, 128, 4, 3)], [(16, 16, 4, 2)]
        ):
            for c in (False, True):
                dkdv_kernel[(S // BN, BH)](
                    q,
                    k,
                    v,
                    do,
                    l,
                    de,
                    torch.empty_like(k),
                    torch.empty_like(v),
                    D**-0.5,
                    S,
                    D,
                    BM,
                    BN,
                    c,
                    num_warps=w,
                    num_stages=st,
                )
                dq_kernel[(S // BN, BH)](
                    q,
                    k,
                    v,
                    do,
                    l,
                    de,
                    torch.empty_like(k),
                    D**-0.5,
                    S,
                    D,
                    BN,
                    BM,
                    c,
                    num_warps=w,
                    num_stages=st,
                )


@triton.jit
def bias_attn_kernel(
    Q,
    K,
    V,
    B,
    O,
    scale,
    S,
    D: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    CAP: tl.constexpr,
    WIN: tl.constexpr,
):
    pm, bh = tl.program_id(0), tl.program_id(1).to(tl.int64)
    q_bp = tl.make_block_ptr(
        Q + bh * S * D, (S, D), (D, 1), (pm * BM, 0), (BM, D), (1, 0)
    )
    lo = tl.maximum(0, pm * BM - WIN) // BN * BN if WIN > 0 else 0
    k_bp = tl.make_block_ptr(K + bh * S * D, (D, S), (1, D), (0, lo), (D, BN), (0, 1))
    v_bp = tl.make_block_ptr(V + bh * S * D, (S, D), (D, 1), (lo, 0), (BN, D), (1, 0))
    q = tl.load(q_bp, boundary_check=(0,))
    mi = tl.full([BM], -float("inf"), tl.float32)
    li = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    rm = pm * BM + tl.arange(0, BM)
    hi = tl.minimum((pm + 1) * BM, S) if WIN > 0 else S
    for n in range(lo, hi, BN):
        rn_ = n + tl.arange(0, BN)
        k = tl.load(k_bp, boundary_check=(1,), padding_option="zero")
        s = tl.dot(q, k) * scale
        if CAP:
            t = s / 30.0
            s = 30.0 * (2 * tl.sigmoid(2 * t) - 1)
        if WIN > 0:
            s = tl.where(
                (rm[:, None] >= rn_[None, :]) & (rm[:, None] - rn_[None, :] < WIN),
                s,
                -1e9,
            )
        else:
            bias = tl.load(
                B + bh * S * S + rm[:, None] * S + rn_[None, :],
                mask=(rm[:, None] < S) & (rn_[None, :] < S),
                other=-1e9,
            )
            s += bias.to(tl.float32)
        mn = tl.maximum(mi, tl.max(s, 1))
        p = tl.math.exp(s - mn[:, None])
        al = tl.math.exp(mi - mn)
        li = li * al + tl.sum(p, 1)
        v = tl.load(v_bp, boundary_check=(0,), padding_option="zero")
        acc = acc * al[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        mi = mn
        k_bp = tl.advance(k_bp, (0, BN))
        v_bp = tl.advance(v_bp, (BN, 0))
    o_bp = tl.make_block_ptr(
        O + bh * S * D, (S, D), (D, 1), (pm * BM, 0), (BM, D), (1, 0)
    )
    tl.store(o_bp, (acc / li[:, None]).to(tl.float16), boundary_check=(0,))


def case_bias_attn():
    BH, S = pick((16, 2048), (2, 50))
    for D in pick((64, 128), (32,)):
        q, k, v = [rn(BH, S, D, dtype=fp16) for _ in range(3)]
        b = rn(BH, S, S, dtype=fp16)
        for BM, BN, w, st in pick(
            [(128, 64, 8, 3), (64, 64, 4, 3), (128, 128, 8, 2)], [(16, 16, 4, 2)]
        ):
            for cap, win in ((False, 0), (True, 0), (True, pick(512, 20))):
                bias_attn_kernel[(cd(S, BM), BH)](
                    q,
                    k,
                    v,
                    b,
                    torch.empty_like(q),
                    D**-0.5,
                    S,
                    D,
                    BM,
                    BN,
                    cap,
                    win,
                    num_warps=w,
                    num_stages=st,
                )


@triton.jit
def mla_kernel(
    q_ptr,
    kv_ptr,
    o_ptr,
    m_ptr,
    scale,
    S,
    SPLIT,
    H: tl.constexpr,
    DV: tl.constexpr,
    DR: tl.constexpr,
    BH: tl.constexpr,
    BN: tl.constexpr,
):
    b, hb, sp = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rh = hb * BH + tl.arange(0, BH)
    rv = tl.arange(0, DV)
    rr = DV + tl.arange(0, DR)
    q = tl.load(q_ptr + (b * H + rh)[:, None] * (DV + DR) + rv[None, :])
    qr = tl.load(q_ptr + (b * H + rh)[:, None] * (DV + DR) + rr[None, :])
    n0 = sp * SPLIT
    n1 = tl.minimum(n0 + SPLIT, S)
    mi = tl.full((BH,), -1e30, tl.float32)
    li = tl.zeros((BH,), tl.float32)
    acc = tl.zeros((BH, DV), tl.float32)
    for n in range(n0, n1, BN):
        rn_ = n + tl.arange(0, BN)
        base = (b * S + rn_)[None, :] * (DV + DR)
        k = tl.load(kv_ptr + base + rv[:, None], mask=rn_[None, :] < n1, other=0.0)
        s = tl.dot(q, k)
        kr = tl.load(kv_ptr + base + rr[:, None], mask=rn_[None, :] < n1, other=0.0)
        s += tl.dot(qr, kr)
        s = tl.where(rn_[None, :] < n1, s * scale, -1e30)
        mn = tl.maximum(mi, tl.max(s, 1))
        p = tl.exp(s - mn[:, None])
        al = tl.exp(mi - mn)
        acc = acc * al[:, None] + tl.dot(p.to(k.dtype), tl.trans(k))
        li = li * al + tl.sum(p, 1)
        mi = mn
    tl.store(
        o_ptr + ((b * H + rh) * tl.num_programs(2) + sp)[:, None] * DV + rv[None, :],
        acc / li[:, None],
    )
    tl.store(m_ptr + (b * H + rh) * tl.num_programs(2) + sp, mi + tl.log(li))


def case_mla():
    if SMALL:
        return
    B, H, S, SP = 16, 64, 4096, 512
    q, kv = rn(B, H, 576), rn(B, S, 576)
    for BH, BN, w, st in [(16, 32, 4, 2), (16, 64, 4, 1), (64, 32, 8, 2)]:
        mla_kernel[(B, H // BH, S // SP)](
            q,
            kv,
            ze(B, H, S // SP, 512),
            ze(B, H, S // SP),
            576**-0.5,
            S,
            SP,
            H,
            512,
            64,
            BH,
            BN,
            num_warps=w,
            num_stages=st,
        )


if __name__ == "__main__":
    run(globals())
