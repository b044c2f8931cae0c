"""Attention and sampling as strangers serve them: prefixes, windows with sinks, sparse blocks, paged
and split decoding, merges, dropout, gradients by atomics, rotary caches, samplers, beams.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import f32, half, pick, ri, rn, ze, cd, DEV, run

i32 = torch.int32


@triton.jit
def prefix_attn(q, k, v, o, lse, prefix, S, T, scale, H: tl.constexpr, KV: tl.constexpr,
                WINDOW: tl.constexpr, SINK: tl.constexpr, D: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr):
    # grouped heads; the first prefix[b] keys are seen by all; causal, a window behind, and
    # SINK keys at the front that are always seen
    b = tl.program_id(1) // H
    h = tl.program_id(1) % H
    kvh = h // (H // KV)
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rd = tl.arange(0, D)
    qv = tl.load(q + ((b * H + h) * S + rm[:, None]) * D + rd[None, :],
                 mask=(rm < S)[:, None], other=0.0)
    pre = tl.load(prefix + b)
    off = T - S
    kb = k + (b * KV + kvh) * T * D
    vb = v + (b * KV + kvh) * T * D
    mi = tl.full((BM,), -1e30, tl.float32)
    li = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    hi = tl.minimum(T, tl.maximum(pre, off + (tl.program_id(0) + 1) * BM))
    for n in range(0, hi, BN):
        rn_ = n + tl.arange(0, BN)
        kv = tl.load(kb + rn_[None, :] * D + rd[:, None], mask=(rn_ < T)[None, :], other=0.0)
        s = tl.dot(qv, kv) * (scale * 1.44269504)
        near = (rm[:, None] + off >= rn_[None, :])
        if WINDOW > 0:
            near = near & ((rm[:, None] + off - rn_[None, :] < WINDOW) |
                           (rn_[None, :] < SINK))
        see = (near | (rn_[None, :] < pre)) & (rn_[None, :] < T)
        s = tl.where(see, s, -1e30)
        mn = tl.maximum(mi, tl.max(s, 1))
        p = tl.math.exp2(s - mn[:, None])
        al = tl.math.exp2(mi - mn)
        li = li * al + tl.sum(p, 1)
        vv = tl.load(vb + rn_[:, None] * D + rd[None, :], mask=(rn_ < T)[:, None], other=0.0)
        acc = acc * al[:, None]
        acc = tl.dot(p.to(vv.dtype), vv, acc)
        mi = mn
    acc = acc / li[:, None]
    tl.store(o + ((b * H + h) * S + rm[:, None]) * D + rd[None, :],
             acc.to(o.dtype.element_ty), mask=(rm < S)[:, None])
    tl.store(lse + (b * H + h) * S + rm, mi + tl.math.log2(li), mask=rm < S)


def prefix_case(window, sink, cfgs, D):
    B, H, KV, S, T = pick((2, 16, 4, 2000, 2300), (2, 4, 2, 40, 50))
    q, k, v = (rn(B, h, n, D, dtype=half) for h, n in ((H, S), (KV, T), (KV, T)))
    pre = (torch.arange(B) * 37 + 5).to(i32).to(DEV)
    for BM, BN, w, s in cfgs:
        prefix_attn[(cd(S, BM), B * H)](
            q, k, v, torch.empty_like(q), ze(B, H, S), pre, S, T, D**-0.5, H, KV, window,
            sink, D, BM=BM, BN=BN, num_warps=w, num_stages=s)


def case_prefix_lm():
    prefix_case(0, 0, pick([(128, 64, 4, 3), (128, 128, 8, 2), (64, 64, 4, 2)],
                           [(16, 16, 1, 2)]), pick(128, 32))


def case_window_sinks():
    prefix_case(pick(256, 20), 4, pick([(64, 64, 4, 4), (128, 32, 4, 3)], [(16, 16, 1, 1)]),
                pick(64, 16))


@triton.jit
def block_sparse_attn(q, k, v, o, start, cols, S, scale, NB, D: tl.constexpr,
                      B: tl.constexpr):
    # for each block of queries a list of blocks of keys
    i = tl.program_id(0)
    h = tl.program_id(1)
    r = i * B + tl.arange(0, B)
    d = tl.arange(0, D)
    base = h.to(tl.int64) * S * D
    x = tl.load(q + base + r[:, None] * D + d[None, :])
    lo = tl.load(start + i)
    hi = tl.load(start + i + 1)
    m = tl.full([B], float("-inf"), tl.float32)
    l = tl.full([B], 1.0, tl.float32)
    acc = tl.zeros([B, D], tl.float32)
    for j in range(lo, hi):
        c = tl.load(cols + j) * B + tl.arange(0, B)
        kk = tl.load(k + base + c[:, None] * D + d[None, :])
        qk = tl.dot(x, tl.trans(kk)) * scale
        mj = tl.maximum(m, tl.max(qk, 1))
        p = tl.exp(qk - mj[:, None])
        a = tl.exp(m - mj)
        l = l * a + tl.sum(p, 1)
        acc = acc * a[:, None]
        vv = tl.load(v + base + c[:, None] * D + d[None, :])
        acc += tl.dot(p.to(vv.dtype), vv)
        m = mj
    acc = acc / l[:, None]
    tl.store(o + base + r[:, None] * D + d[None, :], acc.to(o.dtype.element_ty))


def case_block_sparse():
    for B, w, s in pick([(64, 4, 3), (128, 8, 2), (32, 2, 3)], [(16, 1, 2)]):
        H, S, D = pick((32, 4096, 64), (2, 64, 16))
        nb = S // B
        rows = [[j for j in range(nb) if j in (0, i) or (i * 5 + j * 3) % 7 == 0]
                for i in range(nb)]
        start = torch.tensor([0] + [len(r) for r in rows]).cumsum(0).to(i32).to(DEV)
        cols = torch.tensor(sum(rows, []), dtype=i32).to(DEV)
        q, k, v = (rn(H, S, D, dtype=half) for _ in range(3))
        block_sparse_attn[(nb, H)](q, k, v, torch.empty_like(q), start, cols, S, D**-0.5, nb,
                                   D, B, num_warps=w, num_stages=s)


@triton.jit
def paged_stage1(q, kc, vc, table, lens, mid, lse, scale, MAXB, SPLITS: tl.constexpr,
                 H: tl.constexpr, KV: tl.constexpr, G: tl.constexpr, D: tl.constexpr,
                 PAGE: tl.constexpr, BN: tl.constexpr):
    # one query a sequence, G heads share a key; pages are looked up element by element
    b = tl.program_id(0)
    kv = tl.program_id(1)
    sp = tl.program_id(2)
    n = tl.load(lens + b)
    per = tl.cdiv(n, SPLITS)
    lo = sp * per
    hi = tl.minimum(lo + per, n)
    g = tl.arange(0, G)
    d = tl.arange(0, D)
    hm = g < H // KV
    h = kv * (H // KV) + g
    x = tl.load(q + (b * H + h)[:, None] * D + d[None, :], mask=hm[:, None], other=0.0)
    m = tl.zeros([G], tl.float32) - float("inf")
    l = tl.zeros([G], tl.float32)
    acc = tl.zeros([G, D], tl.float32)
    if hi > lo:
        for t in range(lo, hi, BN):
            r = t + tl.arange(0, BN)
            page = tl.load(table + b * MAXB + r // PAGE, mask=r < hi, other=0)
            loc = (page * PAGE + r % PAGE).to(tl.int64) * KV + kv
            kk = tl.load(kc + loc[None, :] * D + d[:, None], mask=(r < hi)[None, :],
                         other=0.0)
            s = tl.dot(x, kk) * scale
            s = tl.where(hm[:, None] & (r < hi)[None, :], s, float("-inf"))
            vv = tl.load(vc + loc[:, None] * D + d[None, :], mask=(r < hi)[:, None],
                         other=0.0)
            mj = tl.maximum(tl.max(s, 1), m)
            mj = tl.where(hm, mj, 0.0)
            a = tl.exp(m - mj)
            p = tl.exp(s - mj[:, None])
            acc = acc * a[:, None] + tl.dot(p.to(vv.dtype), vv)
            l = l * a + tl.sum(p, 1)
            m = mj
        at = (b * H + h) * SPLITS + sp
        tl.store(mid + at[:, None] * D + d[None, :], acc / l[:, None], mask=hm[:, None])
        tl.store(lse + at, m + tl.log(l), mask=hm)


@triton.jit
def paged_stage2(mid, lse, lens, out, SPLITS: tl.constexpr, H: tl.constexpr,
                 D: tl.constexpr):
    b = tl.program_id(0)
    h = tl.program_id(1)
    n = tl.load(lens + b)
    d = tl.arange(0, D)
    per = tl.cdiv(n, SPLITS)
    acc = tl.zeros([D], tl.float32)
    m = -float("inf")
    s = 0.0
    for i in range(SPLITS):
        if i * per < n:
            at = (b * H + h) * SPLITS + i
            tv = tl.load(mid + at * D + d)
            ts = tl.load(lse + at)
            mn = tl.maximum(ts, m)
            old = tl.exp(m - mn)
            new = tl.exp(ts - mn)
            acc = acc * old + new * tv
            s = s * old + new
            m = mn
    tl.store(out + (b * H + h) * D + d, (acc / s).to(out.dtype.element_ty))


def case_paged_split():
    B, H, KV, D, PAGE, most = pick((64, 32, 8, 128, 16, 2048), (3, 8, 2, 16, 4, 40))
    lens = ((torch.arange(B) * 331) % (most - 8) + 8).to(i32).to(DEV)
    pages = most // PAGE
    table = torch.randperm(B * pages, device=DEV).to(i32).reshape(B, pages)
    kc, vc = (rn(B * pages * PAGE, KV, D, dtype=half) for _ in range(2))
    q = rn(B, H, D, dtype=half)
    for SP, BN, w, s in pick([(8, 32, 4, 2), (4, 64, 4, 3), (16, 64, 2, 2)], [(4, 16, 1, 2)]):
        mid, lse = ze(B, H, SP, D), ze(B, H, SP)
        paged_stage1[(B, KV, SP)](q, kc, vc, table, lens, mid, lse, D**-0.5, pages, SP, H, KV,
                                  16, D, PAGE, BN, num_warps=w, num_stages=s)
        paged_stage2[(B, H)](mid, lse, lens, ze(B, H, D, dtype=half), SPLITS=SP, H=H, D=D,
                               num_warps=w)


@triton.jit
def merge_states(o1, s1, o2, s2, o, s, N, D: tl.constexpr, BR: tl.constexpr):
    # two parts of a ring become one
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    d = tl.arange(0, D)
    a = tl.load(s1 + r, mask=r < N, other=0.0)
    b = tl.load(s2 + r, mask=r < N, other=0.0)
    m = tl.maximum(a, b)
    ea = tl.exp(a - m)
    eb = tl.exp(b - m)
    p = r[:, None] * D + d[None, :]
    x = tl.load(o1 + p, mask=(r < N)[:, None], other=0.0).to(tl.float32)
    y = tl.load(o2 + p, mask=(r < N)[:, None], other=0.0).to(tl.float32)
    z = (x * ea[:, None] + y * eb[:, None]) / (ea + eb)[:, None]
    tl.store(o + p, z.to(o.dtype.element_ty), mask=(r < N)[:, None])
    tl.store(s + r, m + tl.log(ea + eb), mask=r < N)


def case_ring_merge():
    N, D = pick((8192 * 16, 128), (50, 32))
    a, b = rn(N, D), rn(N, D)
    s, t = rn(N, dtype=f32), rn(N, dtype=f32)
    for BR, w in ((1, 1), (16, 4), (32, 8)):
        merge_states[(cd(N, BR),)](a, s, b, t, torch.empty_like(a), ze(N), N, D, BR,
                                   num_warps=w)


@triton.jit
def attn_bwd_atomic(q, k, v, do, lse, delta, dq, dk, dv, S, scale, seed, p_drop,
                    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # a block of keys a program, dq by atomics; the dropout of the forward pass again
    h = tl.program_id(1)
    base = h.to(tl.int64) * S * D
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    kk = tl.load(k + base + n[:, None] * D + d[None, :], mask=(n < S)[:, None], other=0.0)
    vv = tl.load(v + base + n[:, None] * D + d[None, :], mask=(n < S)[:, None], other=0.0)
    ak = tl.zeros([BN, D], tl.float32)
    av = tl.zeros([BN, D], tl.float32)
    first = (tl.program_id(0) * BN // BM) * BM
    for m0 in range(first, S, BM):
        m = m0 + tl.arange(0, BM)
        ok = (m < S)[:, None]
        qq = tl.load(q + base + m[:, None] * D + d[None, :], mask=ok, other=0.0)
        g = tl.load(do + base + m[:, None] * D + d[None, :], mask=ok, other=0.0)
        li = tl.load(lse + h * S + m, mask=m < S, other=0.0)
        di = tl.load(delta + h * S + m, mask=m < S, other=0.0)
        s = tl.dot(qq, tl.trans(kk)) * scale
        p = tl.exp(s - li[:, None])
        p = tl.where((m[:, None] >= n[None, :]) & ok & (n < S)[None, :], p, 0.0)
        keep = tl.rand(seed, (h * S + m[:, None]) * S + n[None, :]) > p_drop
        pd = tl.where(keep, p / (1 - p_drop), 0.0)
        av += tl.dot(tl.trans(pd.to(g.dtype)), g)
        dp = tl.where(keep, tl.dot(g, tl.trans(vv)) / (1 - p_drop), 0.0)
        ds = (p * (dp - di[:, None]) * scale).to(qq.dtype)
        ak += tl.dot(tl.trans(ds), qq)
        tl.atomic_add(dq + base + m[:, None] * D + d[None, :], tl.dot(ds, kk), mask=ok)
    tl.store(dk + base + n[:, None] * D + d[None, :], ak, mask=(n < S)[:, None])
    tl.store(dv + base + n[:, None] * D + d[None, :], av, mask=(n < S)[:, None])


def case_bwd_atomic():
    H, S, D = pick((32, 1024, 64), (2, 40, 16))
    q, k, v, g = (rn(H, S, D, dtype=half, scale=0.5) for _ in range(4))
    lse, delta = ze(H, S) + 5, rn(H, S, dtype=f32)
    for BM, BN, w, s in pick([(64, 64, 4, 1), (32, 128, 4, 2), (64, 128, 8, 1)],
                             [(16, 16, 1, 1)]):
        attn_bwd_atomic[(cd(S, BN), H)](q, k, v, g, lse, delta, ze(H, S, D), ze(H, S, D),
                                        ze(H, S, D), S, D**-0.5, 11, 0.1, D, BM, BN,
                                        num_warps=w, num_stages=s)


@triton.jit
def qk_norm_rope(qkv, qw, kw, cos, sin, pos, kc, vc, slot, eps, H: tl.constexpr,
                 KV: tl.constexpr, D: tl.constexpr):
    # norms of q and k by head, rotation by pairs, k and v into the cache
    t = tl.program_id(0)
    h = tl.program_id(1)
    row = qkv + (t * (H + 2 * KV) + h) * D
    d = tl.arange(0, D // 2)
    at = tl.load(slot + t).to(tl.int64)
    if h < H + KV:
        p = tl.load(pos + t)
        w = qw if h < H else kw
        x = tl.load(row + 2 * d).to(tl.float32)
        y = tl.load(row + 2 * d + 1).to(tl.float32)
        rs = tl.rsqrt((tl.sum(x * x) + tl.sum(y * y)) / D + eps)
        x = x * rs * tl.load(w + 2 * d)
        y = y * rs * tl.load(w + 2 * d + 1)
        c = tl.load(cos + p * (D // 2) + d)
        s = tl.load(sin + p * (D // 2) + d)
        a = x * c - y * s
        b = x * s + y * c
        if h < H:
            tl.store(row + 2 * d, a)
            tl.store(row + 2 * d + 1, b)
        else:
            tl.store(kc + (at * KV + h - H) * D + 2 * d, a)
            tl.store(kc + (at * KV + h - H) * D + 2 * d + 1, b)
    else:
        o = tl.arange(0, D)
        tl.store(vc + (at * KV + h - H - KV) * D + o, tl.load(row + o))


def case_qk_norm_rope():
    T, H, KV, D = pick((8192, 32, 8, 128), (10, 4, 2, 16))
    c, s = torch.rand(4096, D // 2, device=DEV), torch.rand(4096, D // 2, device=DEV)
    pos, slot = ri(0, 4096, T), torch.randperm(T, device=DEV)
    for w in (1, 4):
        qk_norm_rope[(T, H + 2 * KV)](
            rn(T, H + 2 * KV, D), rn(D, dtype=f32), rn(D, dtype=f32), c, s, pos,
            rn(T, KV, D), rn(T, KV, D), slot, 1e-6, H, KV, D, num_warps=w)


@triton.jit
def top_p_mask(logits, out, V, temp, top_p, BLOCK: tl.constexpr, STEPS: tl.constexpr):
    # a threshold by bisection: which probability may still be drawn
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    x = tl.load(logits + row * V + o, mask=o < V, other=float("-inf")).to(tl.float32) / temp
    e = tl.exp(x - tl.max(x, 0))
    p = e / tl.sum(e, 0)
    lo = 0.0
    hi = tl.max(p, 0)
    for _ in range(STEPS):
        mid = (lo + hi) * 0.5
        more = tl.sum(tl.where(p >= mid, p, 0.0), 0) >= top_p
        lo = tl.where(more, mid, lo)
        hi = tl.where(more, hi, mid)
    q = tl.where(p >= lo * 0.999, p, 0.0)
    tl.store(out + row, tl.sum(q, 0))


def case_top_p():
    R, V = pick((1024, 30000), (4, 500))
    x = rn(R, V, dtype=f32, scale=2.0)
    for w in pick((8, 16, 32), (4,)):
        top_p_mask[(R,)](x, ze(R), V, 0.8, 0.9, triton.next_power_of_2(V), 20, num_warps=w)


@triton.jit
def penalties(logits, counts, out, best, V, rep, freq, BLOCK: tl.constexpr):
    # penalties, then Gumbel's maximum through a packed key would need atomics: argmax here
    row = tl.program_id(0)
    top = float("-inf")
    arg = 0
    for k in range(0, V, BLOCK):
        o = k + tl.arange(0, BLOCK)
        m = o < V
        x = tl.load(logits + row * V + o, mask=m, other=float("-inf"))
        c = tl.load(counts + row * V + o, mask=m, other=0)
        x = tl.where(c > 0, tl.where(x > 0, x / rep, x * rep), x) - freq * c.to(tl.float32)
        tl.store(out + row * V + o, x, mask=m)
        v, i = tl.max(x, 0, return_indices=True)
        arg = tl.where(v > top, i + k, arg)
        top = tl.maximum(top, v)
    tl.store(best + row, arg)


def case_penalties():
    # quarters and powers of two: no rounding decides what the largest is
    R, V = pick((512, 128256), (4, 700))
    x, c = ri(-4000, 4000, R, V).float() / 4, ri(0, 3, R, V)
    for B, w in pick([(1024, 4), (4096, 8), (8192, 16)], [(128, 2)]):
        penalties[(R,)](x, c, torch.empty_like(x), torch.zeros(R, device=DEV, dtype=i32), V,
                        2.0, 0.25, B, num_warps=w)


@triton.jit
def beam_gather(cache, beam, out, T, W, B: tl.constexpr, BLOCK: tl.constexpr):
    # rows of the cache in the order of the beams, W elements a position
    i = tl.program_id(0)
    t = tl.program_id(1)
    src = tl.load(beam + i) + (i // B) * B
    for k in range(0, W, BLOCK):
        o = k + tl.arange(0, BLOCK)
        v = tl.load(cache + (src.to(tl.int64) * T + t) * W + o, mask=o < W)
        tl.store(out + (i.to(tl.int64) * T + t) * W + o, v, mask=o < W)


def case_beam_gather():
    N, B, T, W = pick((64, 4, 512, 1024), (4, 2, 5, 40))
    c, b = rn(N, T, W), ri(0, B, N)
    for BL, w in ((256, 1), (1024, 4)):
        beam_gather[(N, T)](c, b, torch.empty_like(c), T, W, B, BL, num_warps=w)


if __name__ == "__main__":
    run(globals())
