"""Kinds of attention and chunks of recurrences, some of them backwards, of strangers.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import cd, f32, half, pick, ri, rn, run, ze

i32, i64, u8 = torch.int32, torch.int64, torch.uint8


@triton.jit
def gpt_oss_attn(Q, K, V, Sinks, Out, sm_scale, n_tok, H_KV: tl.constexpr, G: tl.constexpr,
                 D: tl.constexpr, BANDWIDTH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # queries of a group in one tile; a learned logit per head; a band, or all
    start = tl.program_id(0) * BM
    hk = tl.program_id(1)
    row = tl.arange(0, BM * G)
    tok = start + row // G
    head = hk * G + row % G
    d = tl.arange(0, D)
    q = tl.load(Q + tok[:, None] * (H_KV * G * D) + head[:, None] * D + d[None, :],
                mask=tok[:, None] < n_tok, other=0.0)
    sink = tl.load(Sinks + head).to(tl.float32)
    m_i = sink
    l_i = tl.full([BM * G], 1.0, tl.float32)
    acc = tl.zeros([BM * G, D], tl.float32)
    if BANDWIDTH:
        lo = tl.maximum(0, start - BANDWIDTH + 1) // BN * BN
    else:
        lo = 0
    for n in range(lo, tl.minimum(start + BM, n_tok), BN):
        at = n + tl.arange(0, BN)
        k = tl.load(K + at[:, None] * (H_KV * D) + hk * D + d[None, :], mask=at[:, None] < n_tok,
                    other=0.0)
        s = tl.dot(q, k.T) * sm_scale
        ok = at[None, :] <= tok[:, None]
        if BANDWIDTH:
            ok &= at[None, :] > tok[:, None] - BANDWIDTH
        s = tl.where(ok, s, -1e6)
        m_new = tl.maximum(m_i, tl.max(s, 1))
        p = tl.math.exp(s - m_new[:, None])
        alpha = tl.math.exp(m_i - m_new)
        v = tl.load(V + at[:, None] * (H_KV * D) + hk * D + d[None, :], mask=at[:, None] < n_tok,
                    other=0.0)
        acc = acc * alpha[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc)
        l_i = l_i * alpha + tl.sum(p, 1)
        m_i = m_new
    acc /= l_i[:, None]
    tl.store(Out + tok[:, None] * (H_KV * G * D) + head[:, None] * D + d[None, :],
             acc.to(Out.dtype.element_ty), mask=tok[:, None] < n_tok)


def case_gpt_oss_attn():
    T, HK, G, D, W = pick((2048, 8, 8, 64, 128), (45, 2, 4, 16, 20))
    for BM, BN, band, w in pick([(16, 64, W, 4), (16, 64, 0, 4), (16, 128, 0, 8)],
                                [(8, 16, W, 1), (8, 16, 0, 2)]):
        gpt_oss_attn[(cd(T, BM), HK)](rn(T, HK * G, D, dtype=half), rn(T, HK, D, dtype=half),
                                      rn(T, HK, D, dtype=half), rn(HK * G, dtype=half),
                                      ze(T, HK * G, D, dtype=half), D ** -0.5, T, HK, G, D, band,
                                      BM, BN, num_warps=w, num_stages=2)


@triton.jit
def power_attn(q_ptr, k_ptr, v_ptr, g_ptr, o_ptr, z_ptr, T, scale, D: tl.constexpr,
               DEG: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """(q k / sqrt D)^DEG instead of exp, decayed by gates, with its sum of weights."""
    pm = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * T
    rm = pm * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (base + rm)[:, None] * D + d, mask=(rm < T)[:, None], other=0.0)
    gq = tl.load(g_ptr + base + rm, mask=rm < T, other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    z = tl.zeros((BM,), tl.float32)
    for n in range(0, (pm + 1) * BM, BN):
        rc = n + tl.arange(0, BN)
        k = tl.load(k_ptr + (base + rc)[None, :] * D + d[:, None], mask=(rc < T)[None, :],
                    other=0.0)
        v = tl.load(v_ptr + (base + rc)[:, None] * D + d[None, :], mask=(rc < T)[:, None],
                    other=0.0)
        gk = tl.load(g_ptr + base + rc, mask=rc < T, other=0.0)
        s = tl.dot(q, k) * scale
        p = s * s
        if DEG == 4:
            p = p * p
        p *= tl.exp(tl.minimum(gq[:, None] - gk[None, :], 0.0))
        p = tl.where(rm[:, None] >= rc[None, :], p, 0.0)
        z += tl.sum(p, axis=1)
        acc += tl.dot(p.to(v.dtype), v)
    o = acc / (z + 1e-6)[:, None]
    tl.store(o_ptr + (base + rm)[:, None] * D + d, o.to(o_ptr.dtype.element_ty),
             mask=(rm < T)[:, None])
    tl.store(z_ptr + base + rm, z, mask=rm < T)


def case_power_attn():
    T, H, D = pick((2048, 8, 64), (50, 2, 16))
    g = -torch.rand(H, T, device=ze(1).device).cumsum(1) * .01
    for BM, BN, deg, w in pick([(128, 64, 2, 8), (64, 64, 4, 4), (128, 128, 2, 4)],
                               [(16, 16, 4, 1)]):
        power_attn[(cd(T, BM), H)](rn(H, T, D, dtype=half), rn(H, T, D, dtype=half),
                                   rn(H, T, D, dtype=half), g, ze(H, T, D, dtype=half), ze(H, T),
                                   T, D ** -0.5, D, deg, BM, BN, num_warps=w)


@triton.jit
def tree_verify(Q, KC, VC, KT, VT, Mask, O, sm_scale, prefix, n_draft, D: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr, TREE: tl.constexpr):
    # drafted tokens look at the whole prefix and at their ancestors: bits of an int64 each
    h = tl.program_id(0)
    r = tl.arange(0, BM)
    d = tl.arange(0, D)
    ok_r = r < n_draft
    q = tl.load(Q + (h * n_draft + r)[:, None] * D + d, mask=ok_r[:, None], other=0.0)
    q = (q * sm_scale).to(q.dtype)
    m = tl.full([BM], -float("inf"), tl.float32)
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for n in tl.range(0, prefix, BN, num_stages=3):
        c = n + tl.arange(0, BN)
        k = tl.load(KC + (h * prefix + c)[None, :] * D + d[:, None], mask=c[None, :] < prefix,
                    other=0.0)
        s = tl.dot(q, k)
        s += tl.where(c < prefix, 0, -1e9)[None, :]
        m2 = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m2[:, None])
        a = tl.exp(m - m2)
        l = l * a + tl.sum(p, 1)
        v = tl.load(VC + (h * prefix + c)[:, None] * D + d, mask=c[:, None] < prefix, other=0.0)
        acc = acc * a[:, None] + tl.dot(p.to(v.dtype), v)
        m = m2
    t = tl.arange(0, TREE)
    bits = tl.load(Mask + r, mask=ok_r, other=0)
    sees = ((bits[:, None] >> t[None, :].to(tl.int64)) & 1) != 0
    k = tl.load(KT + (h * n_draft + t)[:, None] * D + d, mask=(t < n_draft)[:, None], other=0.0)
    v = tl.load(VT + (h * n_draft + t)[:, None] * D + d, mask=(t < n_draft)[:, None], other=0.0)
    s = tl.where(sees, tl.dot(q, tl.trans(k)), -1e9)
    m2 = tl.maximum(m, tl.max(s, 1))
    p = tl.exp(s - m2[:, None])
    a = tl.exp(m - m2)
    l = l * a + tl.sum(p, 1)
    acc = acc * a[:, None] + tl.dot(p.to(v.dtype), v)
    tl.store(O + (h * n_draft + r)[:, None] * D + d, (acc / l[:, None]).to(O.dtype.element_ty),
             mask=ok_r[:, None])


def case_tree_verify():
    H, P, n, D = pick((256, 4000, 60, 128), (3, 50, 13, 16))
    parent = [0] + [torch.randint(0, i, (1,)).item() for i in range(1, n)]
    bits = [1]
    for i in range(1, n):
        bits.append(bits[parent[i]] | 1 << i)
    mask = torch.tensor(bits, dtype=i64, device=ze(1).device)
    for BM, BN, w in pick([(64, 64, 4), (64, 128, 4)], [(16, 16, 1)]):
        tree_verify[(H,)](rn(H, n, D, dtype=half), rn(H, P, D, dtype=half),
                          rn(H, P, D, dtype=half), rn(H, n, D, dtype=half),
                          rn(H, n, D, dtype=half), mask, ze(H, n, D, dtype=half), D ** -0.5, P, n,
                          D, BM, BN, pick(64, 16), num_warps=w)


@triton.jit
def int4_kv_decode(Q, K4, V4, KS, VS, O, LSE, sm_scale, n_ctx, per, G: tl.constexpr,
                   D: tl.constexpr, BN: tl.constexpr):
    """Keys and values of 4 bits, two numbers a byte, a scale and a zero per token."""
    h = tl.program_id(0)
    part = tl.program_id(1)
    g = tl.arange(0, G)
    e = tl.arange(0, D // 2)
    q_lo = tl.load(Q + (h * G + g)[:, None] * D + e[None, :])
    q_hi = tl.load(Q + (h * G + g)[:, None] * D + D // 2 + e[None, :])
    m = tl.full([G], -float("inf"), tl.float32)
    l = tl.zeros([G], tl.float32)
    lo_acc = tl.zeros([G, D // 2], tl.float32)
    hi_acc = tl.zeros([G, D // 2], tl.float32)
    end = tl.minimum((part + 1) * per, n_ctx)
    for n in range(part * per, end, BN):
        c = n + tl.arange(0, BN)
        ok = c < end
        at = (h * n_ctx + c).to(tl.int64)
        kb = tl.load(K4 + at[None, :] * (D // 2) + e[:, None], mask=ok[None, :], other=0)
        ks = tl.load(KS + at * 2, mask=ok, other=0.0)
        kz = tl.load(KS + at * 2 + 1, mask=ok, other=0.0)
        k_lo = ((kb & 15).to(tl.float32) * ks[None, :] + kz[None, :]).to(q_lo.dtype)
        k_hi = ((kb >> 4).to(tl.float32) * ks[None, :] + kz[None, :]).to(q_lo.dtype)
        s = (tl.dot(q_lo, k_lo) + tl.dot(q_hi, k_hi)) * sm_scale
        s = tl.where(ok[None, :], s, -float("inf"))
        m2 = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m2[:, None])
        a = tl.exp(m - m2)
        l = l * a + tl.sum(p, 1)
        vb = tl.load(V4 + at[:, None] * (D // 2) + e[None, :], mask=ok[:, None], other=0)
        vs = tl.load(VS + at * 2, mask=ok, other=0.0)
        vz = tl.load(VS + at * 2 + 1, mask=ok, other=0.0)
        v_lo = ((vb & 15).to(tl.float32) * vs[:, None] + vz[:, None]).to(q_lo.dtype)
        v_hi = ((vb >> 4).to(tl.float32) * vs[:, None] + vz[:, None]).to(q_lo.dtype)
        pt = p.to(q_lo.dtype)
        lo_acc = lo_acc * a[:, None] + tl.dot(pt, v_lo)
        hi_acc = hi_acc * a[:, None] + tl.dot(pt, v_hi)
        m = m2
    to = O + ((h * tl.num_programs(1) + part) * G + g)[:, None] * D + e[None, :]
    tl.store(to, lo_acc / l[:, None])
    tl.store(to + D // 2, hi_acc / l[:, None])
    tl.store(LSE + (h * tl.num_programs(1) + part) * G + g, m + tl.log(l))


def case_int4_kv_decode():
    H, G, N, D, parts = pick((64, 16, 8192, 128, 8), (2, 16, 70, 32, 2))
    per = cd(cd(N, parts), 64) * 64
    parts = cd(N, per)
    for BN, w in pick([(64, 4), (32, 2), (128, 4)], [(16, 1)]):
        int4_kv_decode[(H, parts)](rn(H, G, D, dtype=half), ri(0, 256, H, N, D // 2, dtype=u8),
                                   ri(0, 256, H, N, D // 2, dtype=u8),
                                   rn(H, N, 2, dtype=half, scale=.1),
                                   rn(H, N, 2, dtype=half, scale=.1), ze(H, parts, G, D),
                                   ze(H, parts, G), D ** -0.5, N, per, G, D, BN, num_warps=w)


@triton.jit
def forgetting_attn(q_ptr, k_ptr, v_ptr, f_ptr, o_ptr, T, scale, D: tl.constexpr,
                    BM: tl.constexpr, BN: tl.constexpr):
    # from the diagonal to the left: stops where all weights have decayed
    pm = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * T
    rm = pm * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + (base + rm)[:, None] * D + d, mask=(rm < T)[:, None], other=0.0)
    fq = tl.load(f_ptr + base + rm, mask=rm < T, other=0.0)
    first = tl.load(f_ptr + base + pm * BM)
    m = tl.full((BM,), -1e30, tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    n = ((pm + 1) * BM - 1) // BN * BN
    alive = True
    while (n >= 0) & alive:
        rc = n + tl.arange(0, BN)
        k = tl.load(k_ptr + (base + rc)[:, None] * D + d, mask=(rc < T)[:, None], other=0.0)
        v = tl.load(v_ptr + (base + rc)[:, None] * D + d, mask=(rc < T)[:, None], other=0.0)
        fk = tl.load(f_ptr + base + rc, mask=rc < T, other=0.0)
        s = tl.dot(q, tl.trans(k)) * scale + (fq[:, None] - fk[None, :])
        s = tl.where(rm[:, None] >= rc[None, :], s, -1e30)
        m2 = tl.maximum(m, tl.max(s, 1))
        p = tl.exp(s - m2[:, None])
        a = tl.exp(m - m2)
        l = l * a + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * a[:, None])
        m = m2
        alive = (first - tl.load(f_ptr + base + n)) > -40.0
        n -= BN
    tl.store(o_ptr + (base + rm)[:, None] * D + d, (acc / l[:, None]).to(o_ptr.dtype.element_ty),
             mask=(rm < T)[:, None])


def case_forgetting_attn():
    T, H, D = pick((2048, 8, 64), (70, 2, 16))
    f = -torch.rand(H, T, device=ze(1).device).cumsum(1) * .2
    for BM, BN, w in pick([(128, 64, 4), (64, 64, 4), (64, 32, 2)], [(16, 16, 1)]):
        forgetting_attn[(cd(T, BM), H)](rn(H, T, D, dtype=half), rn(H, T, D, dtype=half),
                                        rn(H, T, D, dtype=half), f, ze(H, T, D, dtype=half), T,
                                        D ** -0.5, D, BM, BN, num_warps=w)


@triton.jit
def stick_breaking(q_ptr, k_ptr, v_ptr, o_ptr, rem_ptr, T, scale, D: tl.constexpr,
                   B: tl.constexpr):
    # sums over later keys by a product with a triangle of ones
    pm = tl.program_id(0)
    base = tl.program_id(1).to(tl.int64) * T
    i = tl.arange(0, B)
    rm = pm * B + i
    d = tl.arange(0, D)
    later = (i[:, None] >= i[None, :]).to(q_ptr.dtype.element_ty)
    q = tl.load(q_ptr + (base + rm)[:, None] * D + d, mask=(rm < T)[:, None], other=0.0)
    gone = tl.zeros((B,), tl.float32)
    acc = tl.zeros((B, D), tl.float32)
    for j in range(pm, -1, -1):
        rc = j * B + i
        k = tl.load(k_ptr + (base + rc)[:, None] * D + d, mask=(rc < T)[:, None], other=0.0)
        v = tl.load(v_ptr + (base + rc)[:, None] * D + d, mask=(rc < T)[:, None], other=0.0)
        z = tl.dot(q, tl.trans(k)) * scale
        sp = tl.maximum(z, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(z)))
        sp = tl.where(rm[:, None] > rc[None, :], sp, 0.0)
        after = tl.dot(sp.to(later.dtype), later) + gone[:, None]
        w = tl.where(rm[:, None] > rc[None, :], tl.exp(z - after), 0.0)
        gone += tl.sum(sp, 1)
        acc += tl.dot(w.to(v.dtype), v)
    tl.store(o_ptr + (base + rm)[:, None] * D + d, acc.to(o_ptr.dtype.element_ty),
             mask=(rm < T)[:, None])
    tl.store(rem_ptr + base + rm, tl.exp(-gone), mask=rm < T)


def case_stick_breaking():
    T, H, D = pick((2048, 8, 64), (50, 2, 16))
    for B, w in pick([(64, 4), (32, 2), (128, 8)], [(16, 1)]):
        stick_breaking[(cd(T, B), H)](rn(H, T, D, dtype=half), rn(H, T, D, dtype=half),
                                      rn(H, T, D, dtype=half), ze(H, T, D, dtype=half), ze(H, T),
                                      T, D ** -0.5, D, B, num_warps=w)


@triton.jit
def diff_attn(Q, K, V, O, lam, T, scale, D: tl.constexpr, DV: tl.constexpr, BM: tl.constexpr,
              BN: tl.constexpr):
    """Two softmaxes over the same values, one taken from the other; then a norm of the head."""
    pm = tl.program_id(0)
    h = tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    e = tl.arange(0, DV)
    qp = Q + (h * T + rm)[:, None] * (2 * D) + d[None, :]
    q1 = tl.load(qp, mask=rm[:, None] < T, other=0.0)
    q2 = tl.load(qp + D, mask=rm[:, None] < T, other=0.0)
    m1 = tl.full([BM], -1e30, tl.float32)
    m2 = tl.full([BM], -1e30, tl.float32)
    l1 = tl.zeros([BM], tl.float32)
    l2 = tl.zeros([BM], tl.float32)
    o1 = tl.zeros([BM, DV], tl.float32)
    o2 = tl.zeros([BM, DV], tl.float32)
    for n in range(0, T, BN):
        rc = n + tl.arange(0, BN)
        kp = K + (h * T + rc)[None, :] * (2 * D) + d[:, None]
        k1 = tl.load(kp, mask=rc[None, :] < T, other=0.0)
        k2 = tl.load(kp + D, mask=rc[None, :] < T, other=0.0)
        v = tl.load(V + (h * T + rc)[:, None] * DV + e[None, :], mask=rc[:, None] < T, other=0.0)
        s1 = tl.where(rc[None, :] < T, tl.dot(q1, k1) * scale, -1e30)
        s2 = tl.where(rc[None, :] < T, tl.dot(q2, k2) * scale, -1e30)
        n1 = tl.maximum(m1, tl.max(s1, 1))
        n2 = tl.maximum(m2, tl.max(s2, 1))
        p1 = tl.exp(s1 - n1[:, None])
        p2 = tl.exp(s2 - n2[:, None])
        a1 = tl.exp(m1 - n1)
        a2 = tl.exp(m2 - n2)
        l1 = l1 * a1 + tl.sum(p1, 1)
        l2 = l2 * a2 + tl.sum(p2, 1)
        o1 = tl.dot(p1.to(v.dtype), v, o1 * a1[:, None])
        o2 = tl.dot(p2.to(v.dtype), v, o2 * a2[:, None])
        m1 = n1
        m2 = n2
    o = o1 / l1[:, None] - lam * (o2 / l2[:, None])
    o *= tl.rsqrt(tl.sum(o * o, 1) / DV + 1e-5)[:, None]
    tl.store(O + (h * T + rm)[:, None] * DV + e[None, :], o.to(O.dtype.element_ty),
             mask=rm[:, None] < T)


def case_diff_attn():
    T, H, D, DV = pick((2048, 8, 64, 128), (40, 2, 16, 32))
    for BM, BN, w in pick([(64, 64, 4), (128, 64, 8), (64, 32, 4)], [(16, 16, 1)]):
        diff_attn[(cd(T, BM), H)](rn(H, T, 2 * D, dtype=half), rn(H, T, 2 * D, dtype=half),
                                  rn(H, T, DV, dtype=half), ze(H, T, DV, dtype=half), 0.3, T,
                                  D ** -0.5, D, DV, BM, BN, num_warps=w, num_stages=2)


@triton.jit
def hstu_attn(Q, K, V, Off, Pos, Ts, TsTable, Out, n_head, max_len, D: tl.constexpr,
              BUCKETS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # SiLU of scores and two biases by tables, of sequences of any length
    b = tl.program_id(1) // n_head
    h = tl.program_id(1) % n_head
    lo = tl.load(Off + b)
    n = tl.load(Off + b + 1) - lo
    start = tl.program_id(0) * BM
    if start >= n:
        return
    rm = start + tl.arange(0, BM)
    d = tl.arange(0, D)
    width = n_head * D
    q = tl.load(Q + (lo + rm)[:, None] * width + h * D + d, mask=(rm < n)[:, None], other=0.0)
    tq = tl.load(Ts + lo + rm, mask=rm < n, other=0)
    acc = tl.zeros((BM, D), tl.float32)
    for c in tl.range(0, tl.minimum(n, start + BM), BN):
        rc = c + tl.arange(0, BN)
        k = tl.load(K + (lo + rc)[None, :] * width + h * D + d[:, None], mask=(rc < n)[None, :],
                    other=0.0)
        v = tl.load(V + (lo + rc)[:, None] * width + h * D + d, mask=(rc < n)[:, None], other=0.0)
        tk = tl.load(Ts + lo + rc, mask=rc < n, other=0)
        ok = (rm[:, None] >= rc[None, :]) & (rc < n)[None, :]
        far = tl.minimum(tl.maximum(rm[:, None] - rc[None, :], 0), max_len - 1)
        dt = tl.maximum(tq[:, None] - tk[None, :], 1).to(tl.float32)
        bucket = tl.minimum((tl.sqrt(dt)).to(tl.int32), BUCKETS - 1)
        s = tl.dot(q, k) + tl.load(Pos + far) + tl.load(TsTable + bucket)
        p = s * tl.sigmoid(s) / max_len
        p = tl.where(ok, p, 0.0)
        acc += tl.dot(p.to(v.dtype), v)
    tl.store(Out + (lo + rm)[:, None] * width + h * D + d, acc.to(Out.dtype.element_ty),
             mask=(rm < n)[:, None])


def case_hstu_attn():
    lens, H, D, BU = pick(([1000, 300, 1700, 64], 4, 64, 64), ([20, 33, 5], 2, 16, 8))
    dev = ze(1).device
    off = torch.tensor([0] + lens, dtype=i32, device=dev).cumsum(0).int()
    T = sum(lens)
    ts = ri(0, 100, T).cumsum(0).int()
    for BM, BN, w in pick([(64, 64, 4), (128, 32, 4)], [(16, 16, 1)]):
        hstu_attn[(cd(max(lens), BM), len(lens) * H)](
            rn(T, H, D, dtype=half), rn(T, H, D, dtype=half), rn(T, H, D, dtype=half), off,
            rn(max(lens), dtype=f32), ts, rn(BU, dtype=f32), ze(T, H, D, dtype=half), H,
            max(lens), D, BU, BM, BN, num_warps=w)


if __name__ == "__main__":
    run(globals())
