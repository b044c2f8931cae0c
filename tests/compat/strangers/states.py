"""Attention, caches, and recurrences with matrices as states, as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import math

import torch
import triton
import triton.language as tl
from made import DEV, bf16, cd, f32, fp16, half, pick, ri, rn, run, ze

i32, i64 = torch.int32, torch.int64
LOG2E: tl.constexpr = tl.constexpr(1.4426950408889634)


@triton.jit
def nsa_selected(Q, K, V, Sel, O, sm_scale, T, stride_qt, stride_kt, G: tl.constexpr,
                 D: tl.constexpr, BS: tl.constexpr, S: tl.constexpr):
    # one token of one group of heads; S blocks of keys that a ranking chose
    t = tl.program_id(0)
    h = tl.program_id(1)
    g = tl.arange(0, G)
    d = tl.arange(0, D)
    q = tl.load(Q + t * stride_qt + (h * G + g)[:, None] * D + d[None, :])
    q = (q * (sm_scale * LOG2E)).to(q.dtype)
    m = tl.full([G], float("-inf"), tl.float32)
    l = tl.zeros([G], tl.float32)
    acc = tl.zeros([G, D], tl.float32)
    for s in range(S):
        b = tl.load(Sel + (t * tl.num_programs(1) + h) * S + s)
        if b >= 0 and b * BS <= t:
            c = b * BS + tl.arange(0, BS)
            k = tl.load(K + c[None, :] * stride_kt + h * D + d[:, None], mask=c[None, :] < T,
                        other=0.0)
            p = tl.dot(q, k)
            p = tl.where((c <= t)[None, :], p, float("-inf"))
            m_new = tl.maximum(m, tl.max(p, 1))
            alpha = tl.exp2(m - m_new)
            p = tl.exp2(p - m_new[:, None])
            l = l * alpha + tl.sum(p, 1)
            v = tl.load(V + c[:, None] * stride_kt + h * D + d[None, :], mask=c[:, None] < T,
                        other=0.0)
            acc = acc * alpha[:, None] + tl.dot(p.to(v.dtype), v)
            m = m_new
    acc = acc / l[:, None]
    tl.store(O + t * stride_qt + (h * G + g)[:, None] * D + d[None, :],
             acc.to(O.dtype.element_ty))


def case_nsa_selected():
    T, H, G, D, S, BS = pick((4096, 2, 16, 128, 16, 64), (50, 2, 16, 16, 3, 16))
    sel = torch.stack([torch.randint(0, 1 << 30, (S,)) for _ in range(T * H)]).to(DEV)
    last = torch.arange(T, device=DEV).repeat_interleave(H)[:, None] // BS
    sel = (sel % (last + 1)).int()
    sel[:, 1::5] = -1
    sel[:, 0] = 0
    for w in pick((4, 2), (1,)):
        nsa_selected[(T, H)](rn(T, H * G, D, dtype=half), rn(T, H, D, dtype=half),
                             rn(T, H, D, dtype=half), sel, ze(T, H * G, D, dtype=half),
                             D ** -0.5, T, H * G * D, H * D, G, D, BS, S, num_warps=w)


@triton.jit
def _soft_cap(x, cap):
    return cap * (2 * tl.sigmoid(2 * x / cap) - 1)


@triton.jit
def capped_dropout_attn(q_ptr, k_ptr, v_ptr, sink_ptr, out_ptr, lse_ptr, sm_scale, cap, p_drop,
                        seed, N_CTX, WINDOW: tl.constexpr, HEAD_DIM: tl.constexpr,
                        BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HAS_SINK: tl.constexpr):
    start_m = tl.program_id(0)
    off_h = tl.program_id(1)
    base = off_h.to(tl.int64) * N_CTX * HEAD_DIM
    offs_m = start_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, HEAD_DIM)
    q = tl.load(q_ptr + base + offs_m[:, None] * HEAD_DIM + offs_d, mask=offs_m[:, None] < N_CTX,
                other=0.0)
    if HAS_SINK:
        m_i = tl.zeros((BLOCK_M,), tl.float32) + tl.load(sink_ptr + off_h)
        l_i = tl.full((BLOCK_M,), 1.0, tl.float32)
    else:
        m_i = tl.full((BLOCK_M,), -1e30, tl.float32)
        l_i = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, HEAD_DIM), tl.float32)
    lo = tl.maximum(0, (start_m * BLOCK_M - WINDOW) // BLOCK_N * BLOCK_N)
    hi = tl.minimum(N_CTX, (start_m + 1) * BLOCK_M)
    for start_n in tl.range(lo, hi, BLOCK_N):
        start_n = tl.multiple_of(start_n, BLOCK_N)
        offs_n = start_n + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + base + offs_n[None, :] * HEAD_DIM + offs_d[:, None],
                    mask=offs_n[None, :] < N_CTX, other=0.0)
        s = _soft_cap(tl.dot(q, k) * sm_scale, cap)
        ok = (offs_n[None, :] <= offs_m[:, None]) & (offs_n[None, :] > offs_m[:, None] - WINDOW)
        s = tl.where(ok, s, -1e30)
        m_ij = tl.maximum(m_i, tl.max(s, 1))
        p = tl.math.exp(s - m_ij[:, None])
        alpha = tl.math.exp(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        keep = tl.rand(seed, (off_h * N_CTX + offs_m[:, None]) * N_CTX + offs_n[None, :]) > p_drop
        p = tl.where(keep, p / (1 - p_drop), 0.0)
        v = tl.load(v_ptr + base + offs_n[:, None] * HEAD_DIM + offs_d[None, :],
                    mask=offs_n[:, None] < N_CTX, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_ij
    acc = acc / l_i[:, None]
    tl.store(lse_ptr + off_h * N_CTX + offs_m, m_i + tl.log(l_i), mask=offs_m < N_CTX)
    tl.store(out_ptr + base + offs_m[:, None] * HEAD_DIM + offs_d, acc.to(out_ptr.type.element_ty),
             mask=offs_m[:, None] < N_CTX)


def case_capped_dropout_attn():
    N, H, D, W = pick((4096, 8, 64, 1024), (70, 2, 16, 30))
    for BM, BN, w in pick([(128, 64, 4), (64, 64, 4), (128, 32, 8)], [(16, 16, 1), (32, 16, 2)]):
        for sink in (True, False):
            capped_dropout_attn[(cd(N, BM), H)](
                rn(H, N, D, dtype=half), rn(H, N, D, dtype=half), rn(H, N, D, dtype=half),
                rn(H, dtype=f32), ze(H, N, D, dtype=half), ze(H, N), D ** -0.5, 20.0, 0.1, 77, N,
                W, D, BM, BN, sink, num_warps=w)


@triton.jit
def mla_decode_split(Q_nope, Q_pe, KV, Pages, Lens, Part, LSE, sm_scale, stride_page,
                     H: tl.constexpr, R: tl.constexpr, P: tl.constexpr, PAGE: tl.constexpr,
                     BN: tl.constexpr, SPLITS: tl.constexpr):
    # latent of R and P rotated dims in one cache; heads of a block share it
    cur_b = tl.program_id(0)
    cur_s = tl.program_id(1)
    length = tl.load(Lens + cur_b)
    per = tl.cdiv(tl.cdiv(length, SPLITS), BN) * BN
    begin = per * cur_s
    end = tl.minimum(begin + per, length)
    hh = tl.arange(0, H)
    rr = tl.arange(0, R)
    pp = tl.arange(0, P)
    qn = tl.load(Q_nope + (cur_b * H + hh[:, None]) * R + rr[None, :])
    qp = tl.load(Q_pe + (cur_b * H + hh[:, None]) * P + pp[None, :])
    e_max = tl.zeros([H], dtype=tl.float32) - float("inf")
    e_sum = tl.zeros([H], dtype=tl.float32)
    acc = tl.zeros([H, R], dtype=tl.float32)
    if end > begin:
        for start in range(begin, end, BN):
            offs = start + tl.arange(0, BN)
            page = tl.load(Pages + cur_b * stride_page + offs // PAGE, mask=offs < end, other=0)
            loc = page.to(tl.int64) * PAGE + offs % PAGE
            kn = tl.load(KV + loc[None, :] * (R + P) + rr[:, None], mask=offs[None, :] < end,
                         other=0.0)
            qk = tl.dot(qn, kn)
            kp = tl.load(KV + loc[None, :] * (R + P) + R + pp[:, None],
                         mask=offs[None, :] < end, other=0.0)
            qk += tl.dot(qp, kp)
            qk *= sm_scale
            qk = tl.where(offs[None, :] < end, qk, float("-inf"))
            n_max = tl.maximum(tl.max(qk, 1), e_max)
            scale = tl.exp(e_max - n_max)
            p = tl.exp(qk - n_max[:, None])
            acc *= scale[:, None]
            acc += tl.dot(p.to(kn.dtype), tl.trans(kn))
            e_sum = e_sum * scale + tl.sum(p, 1)
            e_max = n_max
        at = (cur_b * SPLITS + cur_s) * H
        tl.store(Part + (at + hh)[:, None] * R + rr[None, :], acc / e_sum[:, None])
        tl.store(LSE + at + hh, e_max + tl.log(e_sum))


def case_mla_decode():
    B, H, R, P, L, PAGE, S = pick((32, 16, 512, 64, 4096, 64, 8), (2, 16, 32, 16, 70, 16, 2))
    pages = torch.randperm(B * cd(L, PAGE), device=DEV).reshape(B, -1).int()
    for BN, w in pick([(64, 8), (32, 4)], [(16, 1)]):
        mla_decode_split[(B, S)](rn(B, H, R, dtype=half), rn(B, H, P, dtype=half),
                                 rn(B * cd(L, PAGE) * PAGE, R + P, dtype=half), pages,
                                 ri(L // 2, L, B), ze(B, S, H, R), ze(B, S, H), 0.07,
                                 pages.stride(0), H, R, P, PAGE, BN, S, num_warps=w)


@triton.jit
def append_paged_rope(K, V, Cos, Sin, Pos, Slots, KC, VC, n_tok, kv_stride, HEADS: tl.constexpr,
                      D: tl.constexpr, TOK: tl.constexpr):
    # interleaved pairs are rotated while the token is appended
    t = tl.program_id(0) * TOK + tl.arange(0, TOK)
    h = tl.program_id(1)
    slot = tl.load(Slots + t, mask=t < n_tok, other=-1)
    ok = (slot >= 0)[:, None]
    pos = tl.load(Pos + t, mask=t < n_tok, other=0)
    d = tl.arange(0, D)
    f = tl.arange(0, D // 2)
    src = t[:, None] * kv_stride + h * D + d[None, :]
    k = tl.load(K + src, mask=ok, other=0.0)
    x, y = tl.split(k.to(tl.float32).reshape(TOK, D // 2, 2))
    c = tl.load(Cos + pos[:, None] * (D // 2) + f[None, :], mask=ok, other=1.0)
    s = tl.load(Sin + pos[:, None] * (D // 2) + f[None, :], mask=ok, other=0.0)
    k = tl.interleave(x * c - y * s, x * s + y * c)
    dst = slot.to(tl.int64)[:, None] * (HEADS * D) + h * D + d[None, :]
    tl.store(KC + dst, k.to(KC.dtype.element_ty), mask=ok)
    tl.store(VC + dst, tl.load(V + src, mask=ok), mask=ok)


def case_append_paged():
    T, H, D = pick((8192, 8, 128), (30, 2, 16))
    slots = torch.randperm(T, device=DEV)
    slots[::7] = -1
    for TOK, w in pick([(1, 1), (16, 4), (8, 4)], [(4, 1)]):
        append_paged_rope[(cd(T, TOK), H)](
            rn(T, H, D), rn(T, H, D), rn(4096, D // 2, dtype=f32), rn(4096, D // 2, dtype=f32),
            ri(0, 4096, T), slots, ze(T, H, D, dtype=bf16), ze(T, H, D, dtype=bf16), T, H * D, H,
            D, TOK, num_warps=w)


@triton.jit
def rwkv7_fwd(r_, w_, k_, v_, a_, b_, s0_, y_, sT_, T, C: tl.constexpr, BV: tl.constexpr):
    """S <- S diag(w) + (S a) b' + v k'; rows of the state are split over programs."""
    bh = tl.program_id(0)
    vi = tl.program_id(1) * BV + tl.arange(0, BV)
    c = tl.arange(0, C)
    state = tl.load(s0_ + bh * C * C + vi[:, None] * C + c[None, :]).to(tl.float32)
    p = bh * T * C
    for t in range(T):
        r = tl.load(r_ + p + c).to(tl.float32)
        w = tl.exp(-tl.exp(tl.load(w_ + p + c).to(tl.float32)))
        k = tl.load(k_ + p + c).to(tl.float32)
        v = tl.load(v_ + p + vi).to(tl.float32)
        a = tl.load(a_ + p + c).to(tl.float32)
        b = tl.load(b_ + p + c).to(tl.float32)
        sa = tl.sum(state * a[None, :], axis=1)
        state = state * w[None, :] + sa[:, None] * b[None, :] + v[:, None] * k[None, :]
        y = tl.sum(state * r[None, :], axis=1)
        tl.store(y_ + p + vi, y.to(y_.dtype.element_ty))
        p += C
    tl.store(sT_ + bh * C * C + vi[:, None] * C + c[None, :], state)


def case_rwkv7():
    BH, T, C = pick((64, 512, 64), (2, 9, 16))
    x = [rn(BH, T, C, scale=0.3) for _ in range(6)]
    for BV, w in pick([(64, 4), (16, 1), (8, 1)], [(8, 1)]):
        rwkv7_fwd[(BH, C // BV)](*x, rn(BH, C, C, dtype=f32), ze(BH, T, C, dtype=bf16),
                                 ze(BH, C, C), T, C, BV, num_warps=w)


@triton.jit
def _op(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def s6_scan(u, delta, A, B, C, Dskip, y, L, DIM, N: tl.constexpr, BD: tl.constexpr,
            BL: tl.constexpr):
    # chunks of time by a scan of pairs, the last state by a masked sum
    b = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    n = tl.arange(0, N)
    a = tl.load(A + d[:, None] * N + n[None, :])
    skip = tl.load(Dskip + d)
    h = tl.zeros((BD, N), tl.float32)
    step = tl.arange(0, BL)
    for t0 in range(0, L, BL):
        t = t0 + step
        tm = t < L
        x = tl.load(u + (b * L + t[:, None]) * DIM + d[None, :], mask=tm[:, None], other=0.0)
        dt = tl.load(delta + (b * L + t[:, None]) * DIM + d[None, :], mask=tm[:, None], other=0.0)
        dt = tl.where(dt > 20.0, dt, tl.log(1.0 + tl.exp(dt)))
        dt = tl.where(tm[:, None], dt, 0.0)
        bb = tl.load(B + (b * L + t[:, None]) * N + n[None, :], mask=tm[:, None], other=0.0)
        cc = tl.load(C + (b * L + t[:, None]) * N + n[None, :], mask=tm[:, None], other=0.0)
        decay = tl.exp(dt[:, :, None] * a[None, :, :])
        inp = (dt * x)[:, :, None] * bb[:, None, :]
        aa, hh = tl.associative_scan((decay, inp), 0, _op)
        hh += aa * h[None, :, :]
        out = tl.sum(hh * cc[:, None, :], 2) + x * skip[None, :]
        tl.store(y + (b * L + t[:, None]) * DIM + d[None, :], out, mask=tm[:, None])
        h = tl.sum(tl.where((step == BL - 1)[:, None, None], hh, 0.0), 0)


def case_s6_scan():
    B, L, DIM, N = pick((8, 1024, 512, 16), (2, 20, 8, 4))
    for BD, BL, w in pick([(8, 32, 4), (4, 64, 4), (16, 16, 8)], [(4, 8, 1), (4, 8, 2)]):
        s6_scan[(B, DIM // BD)](rn(B, L, DIM, dtype=f32), rn(B, L, DIM, dtype=f32),
                                -rn(DIM, N, dtype=f32).abs(), rn(B, L, N, dtype=f32),
                                rn(B, L, N, dtype=f32), rn(DIM, dtype=f32), ze(B, L, DIM), L,
                                DIM, N, BD, BL, num_warps=w)


@triton.jit
def ssd_chunk_out(x, dtc, cumA, Bm, Cm, prev, out, L, H, P: tl.constexpr, N: tl.constexpr,
                  Q: tl.constexpr):
    """Mamba-2: inside of a chunk by products under a decay mask, before it by the state."""
    ci, hi, bi = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    q = ci * Q + tl.arange(0, Q)
    p = tl.arange(0, P)
    n = tl.arange(0, N)
    row = bi * L + q
    cum = tl.load(cumA + (bi * H + hi) * L + q)
    dt = tl.load(dtc + (bi * H + hi) * L + q)
    c = tl.load(Cm + row[:, None] * N + n[None, :])
    b = tl.load(Bm + row[None, :] * N + n[:, None])
    s = tl.dot(c, b)
    gap = cum[:, None] - cum[None, :]
    causal = tl.arange(0, Q)[:, None] >= tl.arange(0, Q)[None, :]
    s = tl.where(causal, s * tl.exp(tl.where(causal, gap, 0.0)) * dt[None, :], 0.0)
    xs = tl.load(x + (row[:, None] * H + hi) * P + p[None, :])
    acc = tl.dot(s.to(xs.dtype), xs)
    st = tl.load(prev + (((bi * tl.num_programs(0) + ci) * H + hi) * N + n[:, None]) * P
                 + p[None, :])
    acc += tl.dot(c, st.to(c.dtype)) * tl.exp(cum)[:, None]
    tl.store(out + (row[:, None] * H + hi) * P + p[None, :], acc.to(out.dtype.element_ty))


def case_ssd_chunk_out():
    B, L, H, P, N, Q = pick((4, 4096, 24, 64, 128, 128), (1, 64, 2, 16, 16, 32))
    for w in pick((4, 8), (2,)):
        ssd_chunk_out[(L // Q, H, B)](
            rn(B, L, H, P, dtype=half), rn(B, H, L, dtype=f32).abs(),
            -rn(B, H, L, dtype=f32).abs().mul(0.05).reshape(B, H, L // Q, Q).cumsum(-1)
            .reshape(B, H, L), rn(B, L, N, dtype=half), rn(B, L, N, dtype=half),
            rn(B, L // Q, H, N, P, dtype=f32), ze(B, L, H, P, dtype=half), L, H, P, N, Q,
            num_warps=w)


@triton.jit
def delta_wy(k, v, beta, w, u, A, T, K: tl.constexpr, V: tl.constexpr, BT: tl.constexpr):
    # (I + strict lower of beta k k')^-1 by rows, then both products with it
    i_t, i_h = tl.program_id(0), tl.program_id(1)
    t = i_t * BT + tl.arange(0, BT)
    mt = t < T
    bt = tl.load(beta + i_h * T + t, mask=mt, other=0.0).to(tl.float32)
    bk = tl.load(k + (i_h * T + t[:, None]) * K + tl.arange(0, K)[None, :], mask=mt[:, None],
                 other=0.0)
    kb = (bk * bt[:, None]).to(bk.dtype)
    a = tl.dot(kb, tl.trans(bk), allow_tf32=False)
    i = tl.arange(0, BT)
    a = -tl.where(i[:, None] > i[None, :], a, 0.0)
    for j in range(1, BT):
        row = tl.sum(tl.where((i == j)[:, None], a, 0.0), 0)
        row = row + tl.sum(row[:, None] * a, 0) * (i < j)
        a = tl.where((i == j)[:, None], row[None, :], a)
    a += (i[:, None] == i[None, :]).to(tl.float32)
    tl.store(A + (i_h * T + t[:, None]) * BT + i[None, :], a.to(A.dtype.element_ty),
             mask=mt[:, None])
    a = a.to(bk.dtype)
    tl.store(w + (i_h * T + t[:, None]) * K + tl.arange(0, K)[None, :],
             tl.dot(a, kb).to(w.dtype.element_ty), mask=mt[:, None])
    bv = tl.load(v + (i_h * T + t[:, None]) * V + tl.arange(0, V)[None, :], mask=mt[:, None],
                 other=0.0)
    vb = (bv * bt[:, None]).to(bv.dtype)
    tl.store(u + (i_h * T + t[:, None]) * V + tl.arange(0, V)[None, :],
             tl.dot(a, vb).to(u.dtype.element_ty), mask=mt[:, None])


def case_delta_wy():
    T, H, K, V = pick((4096, 16, 64, 64), (40, 2, 16, 32))
    for BT, w in pick([(64, 4), (32, 2), (16, 1)], [(16, 1)]):
        k = torch.nn.functional.normalize(rn(H, T, K, dtype=f32), dim=-1).to(half)
        delta_wy[(cd(T, BT), H)](k, rn(H, T, V, dtype=half), rn(H, T, dtype=f32).sigmoid(),
                                 ze(H, T, K, dtype=half), ze(H, T, V, dtype=half),
                                 ze(H, T, BT), T, K, V, BT, num_warps=w)


@triton.jit
def gated_delta_decode(q, k, v, g, beta, state, slot, o, scale, HV: tl.constexpr,
                       HK: tl.constexpr, K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr,
                       L2NORM: tl.constexpr):
    i_v, i_b, i_h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_k = i_h // (HV // HK)
    ck = tl.arange(0, K)
    cv = i_v * BV + tl.arange(0, BV)
    idx = tl.load(slot + i_b).to(tl.int64)
    if idx < 0:
        return
    bq = tl.load(q + (i_b * HK + i_k) * K + ck).to(tl.float32)
    bk = tl.load(k + (i_b * HK + i_k) * K + ck).to(tl.float32)
    if L2NORM:
        bq = bq * tl.rsqrt(tl.sum(bq * bq) + 1e-6)
        bk = bk * tl.rsqrt(tl.sum(bk * bk) + 1e-6)
    ps = state + (idx * HV + i_h) * K * V + ck[:, None] * V + cv[None, :]
    s = tl.load(ps).to(tl.float32)
    s *= tl.exp(tl.load(g + i_b * HV + i_h).to(tl.float32))
    bv = tl.load(v + (i_b * HV + i_h) * V + cv).to(tl.float32)
    bv -= tl.sum(s * bk[:, None], 0)
    bv *= tl.load(beta + i_b * HV + i_h).to(tl.float32)
    s += bk[:, None] * bv[None, :]
    tl.store(o + (i_b * HV + i_h) * V + cv, tl.sum(s * (bq * scale)[:, None], 0))
    tl.store(ps, s)


def case_gated_delta_decode():
    B, HK, HV, K, V = pick((128, 8, 16, 128, 128), (3, 1, 2, 16, 16))
    slot = torch.randperm(B, device=DEV).int()
    slot[1] = -1
    for BV, w in pick([(8, 1), (32, 4), (128, 8)], [(8, 1)]):
        gated_delta_decode[(V // BV, B, HV)](
            rn(B, HK, K), rn(B, HK, K), rn(B, HV, V), -rn(B, HV, dtype=f32).abs(),
            rn(B, HV, dtype=f32).sigmoid(), rn(B, HV, K, V, dtype=f32), slot,
            ze(B, HV, V, dtype=bf16), K ** -0.5, HV, HK, K, V, BV, True, num_warps=w)


@triton.jit
def causal_conv_chunked(x, w, bias, init, out, final, L, DIM, WIDTH: tl.constexpr,
                        BL: tl.constexpr, BD: tl.constexpr, SILU: tl.constexpr):
    # the window slides in registers; what is left of it is the next chunk's state
    b = tl.program_id(1)
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    dm = d < DIM
    x += b * L * DIM
    out += b * L * DIM
    init += b * (WIDTH - 1) * DIM
    w0 = tl.load(w + d * WIDTH, mask=dm, other=0.0).to(tl.float32)
    w1 = tl.load(w + d * WIDTH + 1, mask=dm, other=0.0).to(tl.float32)
    w2 = tl.load(w + d * WIDTH + 2, mask=dm, other=0.0).to(tl.float32)
    w3 = tl.load(w + d * WIDTH + 3, mask=dm, other=0.0).to(tl.float32)
    bs = tl.load(bias + d, mask=dm, other=0.0).to(tl.float32)
    c0 = tl.load(init + d, mask=dm, other=0.0).to(tl.float32)
    c1 = tl.load(init + DIM + d, mask=dm, other=0.0).to(tl.float32)
    c2 = tl.load(init + 2 * DIM + d, mask=dm, other=0.0).to(tl.float32)
    for t in range(L):
        c3 = tl.load(x + t * DIM + d, mask=dm, other=0.0).to(tl.float32)
        y = bs + c0 * w0 + c1 * w1 + c2 * w2 + c3 * w3
        if SILU:
            y = y / (1 + tl.exp(-y))
        tl.store(out + t * DIM + d, y.to(out.dtype.element_ty), mask=dm)
        c0, c1, c2 = c1, c2, c3
    final += b * (WIDTH - 1) * DIM
    tl.store(final + d, c0, mask=dm)
    tl.store(final + DIM + d, c1, mask=dm)
    tl.store(final + 2 * DIM + d, c2, mask=dm)


def case_causal_conv():
    B, L, DIM = pick((8, 512, 4096), (2, 9, 40))
    for BD, w in pick([(128, 4), (256, 4), (64, 2)], [(32, 1)]):
        causal_conv_chunked[(cd(DIM, BD), B)](rn(B, L, DIM), rn(DIM, 4), rn(DIM), rn(B, 3, DIM),
                                              ze(B, L, DIM, dtype=bf16), ze(B, 3, DIM), L, DIM,
                                              4, 1, BD, True, num_warps=w)


@triton.jit
def _merge(m1, s1, o1, m2, s2, o2):
    m = tl.maximum(m1, m2)
    a, b = tl.exp(m1 - m), tl.exp(m2 - m)
    return m, s1 * a + s2 * b, o1 * a + o2 * b


@triton.jit
def tree_merge(lse, part, out, lse_out, D: tl.constexpr, RANKS: tl.constexpr):
    # partial results of all ranks by one reduction of triples
    row = tl.program_id(0)
    r = tl.arange(0, RANKS)
    d = tl.arange(0, D)
    m = tl.load(lse + row * RANKS + r)[:, None] + tl.zeros((RANKS, D), tl.float32)
    o = tl.load(part + (row * RANKS + r[:, None]) * D + d[None, :]).to(tl.float32)
    m, s, o = tl.reduce((m, tl.full((RANKS, D), 1.0, tl.float32), o), 0, _merge)
    tl.store(out + row * D + d, o / s)
    tl.store(lse_out + row, tl.max(m + tl.log(s), axis=0))


def case_tree_merge():
    ROWS, D, RANKS = pick((16384, 128, 8), (5, 16, 4))
    for w in pick((1, 4), (1,)):
        tree_merge[(ROWS,)](rn(ROWS, RANKS, dtype=f32), rn(ROWS, RANKS, D), ze(ROWS, D), ze(ROWS),
                            D, RANKS, num_warps=w)


@triton.jit
def cross_attn_mask(q, k, v, mask, o, scale, M, N, sqm, skn, smm, D: tl.constexpr,
                    DV: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # a mask of bytes, values of another size, and rows that see nothing give zeros
    z = tl.program_id(1)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    dq = tl.arange(0, D)
    dv = tl.arange(0, DV)
    qq = tl.load(q + z * M * sqm + rm[:, None] * sqm + dq[None, :], mask=(rm < M)[:, None],
                 other=0.0)
    mx = tl.full((BM,), float("-inf"), tl.float32)
    sm = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, DV), tl.float32)
    n = 0
    while n < N:
        cn = n + tl.arange(0, BN)
        kk = tl.load(k + z * N * skn + cn[:, None] * skn + dq[None, :], mask=(cn < N)[:, None],
                     other=0.0)
        ok = tl.load(mask + rm[:, None] * smm + cn[None, :],
                     mask=(rm < M)[:, None] & (cn < N)[None, :], other=0) != 0
        s = tl.where(ok, tl.dot(qq, kk.T) * scale, float("-inf"))
        top = tl.maximum(mx, tl.max(s, axis=1))
        safe = tl.where(top == float("-inf"), 0.0, top)
        e = tl.exp(s - safe[:, None])
        c = tl.exp(mx - safe)
        sm = sm * c + tl.sum(e, axis=1)
        vv = tl.load(v + (z * N + cn[:, None]) * DV + dv[None, :], mask=(cn < N)[:, None],
                     other=0.0)
        acc = acc * c[:, None] + tl.dot(e.to(vv.dtype), vv)
        mx = top
        n += BN
    r = tl.where(sm > 0, 1 / sm, 0.0)
    tl.store(o + (z * M + rm[:, None]) * DV + dv[None, :], (acc * r[:, None]).to(vv_type(o)),
             mask=(rm < M)[:, None])


@triton.constexpr_function
def vv_type(p):
    return p.dtype.element_ty


def case_cross_attn():
    Z, M, N, D, DV = pick((16, 1024, 2048, 64, 128), (2, 20, 50, 16, 32))
    mask = (ri(0, 10, M, N) > 2).to(torch.uint8)
    mask[3] = 0
    for BM, BN, w in pick([(128, 64, 8), (64, 64, 4)], [(16, 16, 1)]):
        cross_attn_mask[(cd(M, BM), Z)](rn(Z, M, D, dtype=half), rn(Z, N, D, dtype=half),
                                        rn(Z, N, DV, dtype=half), mask, ze(Z, M, DV, dtype=half),
                                        1 / math.sqrt(D), M, N, D, D, N, D, DV, BM, BN,
                                        num_warps=w)


if __name__ == "__main__":
    run(globals())
