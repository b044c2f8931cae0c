"""Scans, reductions with combines of their own, sorts and gathers of tiles as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, bf16, cd, f32, half, pick, ri, rn, run, ze

i16, u8 = torch.int16, torch.uint8


@triton.jit
def seg_op(a, fa, b, fb):
    return tl.where(fb != 0, b, a + b), fa | fb


@triton.jit
def segment_columns(x, heads, y, T, C, BT: tl.constexpr, BC: tl.constexpr):
    # sums that begin anew at the heads, down the columns, the last row carried on
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    carry = tl.zeros((BC,), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        m = (t < T)[:, None] & (c < C)[None, :]
        v = tl.load(x + t[:, None] * C + c[None, :], mask=m, other=0.0).to(tl.float32)
        h = tl.load(heads + t, mask=t < T, other=0).to(tl.int32)
        s, seen = tl.associative_scan((v, tl.broadcast_to(h[:, None], (BT, BC))), 0, seg_op)
        s = tl.where(seen != 0, s, s + carry[None, :])
        tl.store(y + t[:, None] * C + c[None, :], s, mask=m)
        carry = tl.sum(tl.where((tl.arange(0, BT) == BT - 1)[:, None], s, 0.0), 0)


def case_segment_columns():
    T, C = pick((4096, 1024), (50, 20))
    x, h = rn(T, C), (ri(0, 40, T) == 0).to(u8)
    for BT, BC, w in pick([(64, 64, 4), (128, 32, 4), (32, 128, 8)], [(16, 8, 1)]):
        segment_columns[(cd(C, BC),)](x, h, ze(T, C), T, C, BT, BC, num_warps=w)


@triton.jit
def chan(na, ma, sa, nb, mb, sb):
    n = na + nb
    r = tl.where(n > 0, nb / n, 0.0)
    d = mb - ma
    return n, ma + d * r, sa + sb + d * d * na * r


@triton.jit
def running_stats(x, mean, var, T, B: tl.constexpr):
    # mean and variance of everything up to each element, by a scan of triples
    row = tl.program_id(0)
    i = tl.arange(0, B)
    m = i < T
    v = tl.load(x + row * T + i, mask=m, other=0.0)
    n, mu, s = tl.associative_scan((m.to(tl.float32), v, v * 0.0), 0, chan)
    tl.store(mean + row * T + i, mu, mask=m)
    tl.store(var + row * T + i, s / n, mask=m)


def case_running_stats():
    R, T, B = pick((4096, 1000, 1024), (3, 50, 64))
    for w in pick((1, 4, 8), (1,)):
        running_stats[(R,)](rn(R, T, dtype=f32), ze(R, T), ze(R, T), T, B, num_warps=w)


@triton.jit
def best_two(v1, i1, v2, j1, u1, k1, u2, l1):
    first = (v1 > u1) | ((v1 == u1) & (i1 < k1))
    w = tl.where(first, v1, u1)
    wi = tl.where(first, i1, k1)
    lv = tl.where(first, u1, v1)
    li = tl.where(first, k1, i1)
    sv = tl.where(first, v2, u2)
    si = tl.where(first, j1, l1)
    keep = (lv > sv) | ((lv == sv) & (li < si))
    return w, wi, tl.where(keep, lv, sv), tl.where(keep, li, si)


@triton.jit
def top_two(logits, val, idx, gate, R, E, BR: tl.constexpr, BE: tl.constexpr):
    # the two best experts of each token in one reduction of quadruples
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    e = tl.arange(0, BE)
    m = (r < R)[:, None] & (e < E)[None, :]
    v = tl.load(logits + r[:, None] * E + e[None, :], mask=m, other=-float("inf")).to(tl.float32)
    ei = tl.broadcast_to(e[None, :], (BR, BE))
    low = tl.full((BR, BE), -float("inf"), tl.float32)
    a, ia, b, ib = tl.reduce((v, ei, low, ei * 0 + BE), 1, best_two)
    w = 1.0 / (1.0 + tl.exp(b - a))
    tl.store(val + r * 2, a, mask=r < R)
    tl.store(val + r * 2 + 1, b, mask=r < R)
    tl.store(idx + r * 2, ia.to(tl.int16), mask=r < R)
    tl.store(idx + r * 2 + 1, ib.to(tl.int16), mask=r < R)
    tl.store(gate + r, w, mask=r < R)


def case_top_two():
    R, E = pick((32768, 60), (20, 10))
    for BR, BE, w in pick([(16, 64, 4), (64, 64, 4), (32, 64, 1)], [(8, 16, 1)]):
        top_two[(cd(R, BR),)](rn(R, E), ze(R, 2), ze(R, 2, dtype=i16), ze(R), R, E, BR, BE,
                              num_warps=w)


@triton.jit
def describe_op(c0, s0, l0, h0, c1, s1, l1, h1):
    return c0 + c1, s0 + s1, tl.minimum(l0, l1), tl.maximum(h0, h1)


@triton.jit
def describe(x, out, N, C, BN: tl.constexpr, BC: tl.constexpr):
    """count, sum, least and greatest of each column of a table with gaps (NaN)."""
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    n = tl.arange(0, BN)
    cnt = tl.zeros((BC,), tl.int32)
    tot = tl.zeros((BC,), tl.float64)
    lo = tl.full((BC,), float("inf"), tl.float32)
    hi = tl.full((BC,), -float("inf"), tl.float32)
    for n0 in range(0, N, BN):
        at = (n0 + n)[:, None]
        v = tl.load(x + at * C + c[None, :], mask=(at < N) & (c < C)[None, :],
                    other=float("nan"))
        good = v == v
        k, s, a, b = tl.reduce((good.to(tl.int32), tl.where(good, v, 0.0).to(tl.float64),
                                tl.where(good, v, float("inf")),
                                tl.where(good, v, -float("inf"))), 0, describe_op)
        cnt += k
        tot += s
        lo = tl.minimum(lo, a)
        hi = tl.maximum(hi, b)
    tl.store(out + c, cnt.to(tl.float64), mask=c < C)
    tl.store(out + C + c, tot, mask=c < C)
    tl.store(out + 2 * C + c, lo.to(tl.float64), mask=c < C)
    tl.store(out + 3 * C + c, hi.to(tl.float64), mask=c < C)


def case_describe():
    N, C = pick((8192, 4000), (100, 19))
    x = rn(N, C, dtype=f32)
    x[x > 1.5] = float("nan")
    for BN, BC, w in pick([(64, 32, 4), (32, 128, 4), (256, 16, 8)], [(16, 8, 1)]):
        describe[(cd(C, BC),)](x, ze(4, C, dtype=torch.float64), N, C, BN, BC, num_warps=w)


@triton.jit
def odd_even(keys, vals, N, R, BR: tl.constexpr, B: tl.constexpr):
    # Batcher's network of short rows: partners by gather, the payload goes along
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    i = tl.arange(0, B)[None, :]
    at = r[:, None] * N + i
    m = (r < R)[:, None] & (i < N)
    k = tl.load(keys + at, mask=m, other=2147483647)
    v = tl.load(vals + at, mask=m, other=0)
    for step in range(B):
        p = tl.where(((i + step) & 1) == 0, i + 1, i - 1)
        p = tl.broadcast_to(tl.minimum(tl.maximum(p, 0), B - 1), (BR, B))
        ok = tl.gather(k, p, 1)
        ov = tl.gather(v, p, 1)
        low = i < p
        swap = tl.where(low, ok < k, (ok > k) & (p != i))
        k = tl.where(swap, ok, k)
        v = tl.where(swap, ov, v)
    tl.store(keys + at, k, mask=m)
    tl.store(vals + at, v, mask=m)


def case_odd_even():
    R, N, B = pick((16384, 16, 16), (10, 7, 8))
    for BR, w in pick([(16, 4), (32, 1)], [(4, 1)]):
        keys = torch.argsort(torch.rand(R, N), 1).int().to(DEV)
        odd_even[(cd(R, BR),)](keys, ri(0, 99, R, N), N, R, BR, B, num_warps=w)


@triton.jit
def rank_rows(x, ranks, N, B: tl.constexpr):
    # average ranks, ties included, for Spearman's correlation: all pairs of a row
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * N + i, mask=i < N, other=float("inf")).to(tl.float32)
    less = tl.sum((v[None, :] < v[:, None]).to(tl.int32), 1)
    same = tl.sum(((v[None, :] == v[:, None]) & (i < N)[None, :]).to(tl.int32), 1)
    tl.store(ranks + row * N + i, less.to(tl.float32) + (same + 1).to(tl.float32) * 0.5,
             mask=i < N)


def case_rank_rows():
    R, N, B = pick((4096, 120, 128), (3, 30, 32))
    for w in pick((4, 8, 1), (1,)):
        rank_rows[(R,)](rn(R, N, dtype=half), ze(R, N), N, B, num_warps=w)


@triton.jit
def shuffle_both(x, rows, cols, y, S, BR: tl.constexpr, BC: tl.constexpr):
    # act-order weights: rows and columns of a tile permuted, then three in a batch
    b = tl.program_id(0)
    r = tl.arange(0, BR)
    c = tl.arange(0, BC)
    v = tl.load(x + b * BR * BC + r[:, None] * BC + c[None, :])
    pr = tl.load(rows + b * BR + r)
    pc = tl.load(cols + b * BC + c)
    v = tl.gather(v, tl.broadcast_to(pr[:, None], (BR, BC)), 0)
    v = tl.gather(v, tl.broadcast_to(pc[None, :], (BR, BC)), 1)
    tl.store(y + b * S + r[:, None] * BC + c[None, :], v)


def case_shuffle_both():
    P, BR, BC = pick((4096, 64, 64), (3, 8, 16))
    pr = torch.stack([torch.randperm(BR) for _ in range(P)]).int().to(DEV)
    pc = torch.stack([torch.randperm(BC) for _ in range(P)]).int().to(DEV)
    for w in pick((4, 8), (1,)):
        shuffle_both[(P,)](rn(P, BR, BC, dtype=half), pr, pc, ze(P, BR, BC, dtype=half), BR * BC,
                           BR, BC, num_warps=w)


@triton.jit
def entropy_bytes(x, out, N, B: tl.constexpr):
    # Shannon's entropy of a page, 256 counts by tl.histogram
    page = tl.program_id(0)
    h = tl.zeros((256,), tl.int32)
    for o in range(0, N, B):
        i = o + tl.arange(0, B)
        v = tl.load(x + page.to(tl.int64) * N + i, mask=i < N, other=0).to(tl.int32)
        h += tl.histogram(v, 256, mask=i < N)
    p = h.to(tl.float32) / N
    tl.store(out + page, -tl.sum(tl.where(h > 0, p * tl.log2(tl.maximum(p, 1e-9)), 0.0)))


def case_entropy_bytes():
    P, N = pick((4096, 4000), (3, 300))
    for B, w in pick([(1024, 4), (4096, 8), (512, 1)], [(128, 1)]):
        entropy_bytes[(P,)](ri(0, 200, P, N, dtype=u8), ze(P), N, B, num_warps=w)


@triton.jit
def composite(sigma, rgb, dt, color, depth, weights, R, S: tl.constexpr, BR: tl.constexpr):
    # volume rendering: what passes is a cumprod, exclusive; three colors of each sample
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    s = tl.arange(0, S)
    m = (r < R)[:, None] & (s < S)[None, :]
    at = r[:, None] * S + s[None, :]
    d = tl.load(dt + at, mask=m, other=0.0)
    alpha = 1.0 - tl.exp(-tl.load(sigma + at, mask=m, other=0.0) * d)
    through = tl.cumprod(1.0 - alpha + 1e-10, axis=1)
    w = alpha * through / (1.0 - alpha + 1e-10)
    tl.store(weights + at, w, mask=m)
    t = tl.cumsum(d, 1) - 0.5 * d
    tl.store(depth + r, tl.sum(w * t, 1), mask=r < R)
    for ch in tl.static_range(3):
        c = tl.load(rgb + at * 3 + ch, mask=m, other=0.0).to(tl.float32)
        tl.store(color + r * 3 + ch, tl.sum(w * c, 1), mask=r < R)


def case_composite():
    R, S = pick((65536, 64), (20, 16))
    for BR, w in pick([(8, 4), (32, 4), (4, 1)], [(4, 1)]):
        composite[(cd(R, BR),)](torch.relu(rn(R, S, dtype=f32)), rn(R, S, 3, dtype=half),
                                torch.rand(R, S, device=DEV) * .1, ze(R, 3), ze(R),
                                ze(R, S), R, S, BR, num_warps=w)


@triton.jit
def group_norm_nhwc(x, w, b, y, HW, eps, C: tl.constexpr, G: tl.constexpr, P: tl.constexpr):
    # a sample of one program: tiles of pixels, groups and channels, sums over two axes
    n = tl.program_id(0)
    g = tl.arange(0, G)[None, :, None]
    c = tl.arange(0, C // G)[None, None, :]
    ch = g * (C // G) + c
    s1 = tl.zeros((1, G, 1), tl.float32)
    s2 = tl.zeros((1, G, 1), tl.float32)
    for p0 in range(0, HW, P):
        p = p0 + tl.arange(0, P)[:, None, None]
        v = tl.load(x + (n * HW + p) * C + ch, mask=p < HW, other=0.0).to(tl.float32)
        part = tl.sum(v, axis=2, keep_dims=True)
        s1 += tl.sum(part, axis=0, keep_dims=True)
        s2 += tl.sum(tl.sum(v * v, axis=2, keep_dims=True), axis=0, keep_dims=True)
    k = 1.0 / (HW * (C // G))
    mu = s1 * k
    rs = tl.rsqrt(s2 * k - mu * mu + eps)
    gw = tl.load(w + ch)
    gb = tl.load(b + ch)
    for p0 in range(0, HW, P):
        p = p0 + tl.arange(0, P)[:, None, None]
        v = tl.load(x + (n * HW + p) * C + ch, mask=p < HW, other=0.0).to(tl.float32)
        tl.store(y + (n * HW + p) * C + ch, ((v - mu) * rs * gw + gb).to(y.dtype.element_ty),
                 mask=p < HW)


def case_group_norm_nhwc():
    N, HW, C, G = pick((256, 1000, 256, 32), (2, 20, 16, 4))
    for P, w in pick([(16, 4), (64, 8), (8, 4)], [(4, 1)]):
        group_norm_nhwc[(N,)](rn(N, HW, C, dtype=half), rn(C, dtype=f32), rn(C, dtype=f32),
                              ze(N, HW, C, dtype=half), HW, 1e-5, C, G, P, num_warps=w)


@triton.jit
def haar2d(x, ll, lh, hl, hh, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # 2x2 blocks of a tile by reshape, permute and split
    r = tl.program_id(0) * BH + tl.arange(0, BH)
    c = tl.program_id(1) * BW + tl.arange(0, BW)
    v = tl.load(x + r[:, None] * W + c[None, :], mask=(r < H)[:, None] & (c < W)[None, :],
                other=0.0).to(tl.float32)
    v = tl.permute(tl.reshape(v, (BH // 2, 2, BW // 2, 2)), (0, 2, 1, 3))
    left, right = tl.split(v)
    a, c2 = tl.split(left)
    b, d = tl.split(right)
    hr = tl.program_id(0) * (BH // 2) + tl.arange(0, BH // 2)
    hc = tl.program_id(1) * (BW // 2) + tl.arange(0, BW // 2)
    at = hr[:, None] * (W // 2) + hc[None, :]
    m = (hr < H // 2)[:, None] & (hc < W // 2)[None, :]
    tl.store(ll + at, (a + b + c2 + d) * 0.5, mask=m)
    tl.store(lh + at, (a - b + c2 - d) * 0.5, mask=m)
    tl.store(hl + at, (a + b - c2 - d) * 0.5, mask=m)
    tl.store(hh + at, (a - b - c2 + d) * 0.5, mask=m)


def case_haar2d():
    H, W = pick((4096, 4096), (20, 24))
    x = rn(H, W, dtype=half)
    for BH, BW, w in pick([(16, 128, 4), (32, 64, 4), (64, 64, 8)], [(8, 16, 1)]):
        o = [ze(H // 2, W // 2) for _ in range(4)]
        haar2d[(cd(H, BH), cd(W, BW))](x, *o, H, W, BH, BW, num_warps=w)


@triton.jit
def premultiply(src, dst, n, B: tl.constexpr):
    # RGBA bytes: taken apart by two splits, joined again
    i = tl.program_id(0) * B * 4 + tl.arange(0, B * 4)
    v = tl.reshape(tl.load(src + i, mask=i < n * 4, other=0), (B, 2, 2))
    rb, ga = tl.split(v)
    r, b = tl.split(rb)
    g, a = tl.split(ga)
    k = a.to(tl.uint16)
    r = ((r.to(tl.uint16) * k + 127) // 255).to(tl.uint8)
    g = ((g.to(tl.uint16) * k + 127) // 255).to(tl.uint8)
    b = ((b.to(tl.uint16) * k + 127) // 255).to(tl.uint8)
    out = tl.join(tl.join(r, b), tl.join(g, a))
    tl.store(dst + i, tl.reshape(out, (B * 4,)), mask=i < n * 4)


def case_premultiply():
    n = pick(1 << 23, 100)
    for B, w in pick([(1024, 4), (512, 4), (4096, 8)], [(32, 1)]):
        premultiply[(cd(n, B),)](ri(0, 256, n, 4, dtype=u8), ze(n, 4, dtype=u8), n, B,
                                 num_warps=w)


@triton.jit
def huge_row(x, w, y, rstd, N, eps, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    v = tl.load(x + row * N + i, mask=i < N, other=0.0, eviction_policy="evict_first")
    v = v.to(tl.float32)
    r = tl.rsqrt(tl.sum(v * v) / N + eps)
    g = tl.load(w + i, mask=i < N, other=0.0, eviction_policy="evict_last").to(tl.float32)
    tl.store(y + row * N + i, (v * r * g).to(y.dtype.element_ty), mask=i < N,
             cache_modifier=".cs")
    tl.store(rstd + row, r)


def case_huge_row():
    for N, B, w in pick([(65536, 65536, 16), (32000, 32768, 16), (12000, 16384, 8)],
                        [(200, 256, 2)]):
        R = pick(2048, 3)
        huge_row[(R,)](rn(R, N), rn(N), ze(R, N, dtype=bf16), ze(R), N, 1e-6, B, num_warps=w)


@triton.jit
def window_shift(x, y, H, W, SHIFT: tl.constexpr, WIN: tl.constexpr, C: tl.constexpr):
    # Swin: a cyclic shift, then windows of WIN x WIN tokens, a 3-D tile each
    n = tl.program_id(2)
    hr = tl.program_id(0) * WIN + tl.arange(0, WIN)[:, None, None]
    wc = tl.program_id(1) * WIN + tl.arange(0, WIN)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    v = tl.load(x + ((n * H + (hr + SHIFT) % H) * W + (wc + SHIFT) % W) * C + c)
    win = (n * tl.num_programs(0) + tl.program_id(0)) * tl.num_programs(1) + tl.program_id(1)
    to = win * (WIN * WIN) + tl.arange(0, WIN)[:, None, None] * WIN \
        + tl.arange(0, WIN)[None, :, None]
    tl.store(y + to * C + c, v)


def case_window_shift():
    N, H, C, WIN = pick((64, 64, 128, 8), (2, 8, 16, 4))
    for w in pick((4, 8), (1,)):
        window_shift[(H // WIN, H // WIN, N)](rn(N, H, H, C), ze(N, H, H, C, dtype=bf16), H, H,
                                              WIN // 2, WIN, C, num_warps=w)


@triton.jit
def both_ways(x, a, y, T, D, BT: tl.constexpr, BD: tl.constexpr):
    # a recurrence from the left and one from the right of the same tile, added
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    t = tl.arange(0, BT)
    b = tl.program_id(1)
    m = (t < T)[:, None] & (d < D)[None, :]
    at = (b * T + t[:, None]) * D + d[None, :]
    v = tl.load(x + at, mask=m, other=0.0).to(tl.float32)
    g = tl.sigmoid(tl.load(a + at, mask=m, other=0.0).to(tl.float32))
    _, f = tl.associative_scan((g, v), 0, step)
    _, r = tl.associative_scan((g, v), 0, step, reverse=True)
    tl.store(y + at, (f + r - v).to(y.dtype.element_ty), mask=m)


@triton.jit
def step(ga, va, gb, vb):
    return ga * gb, va * gb + vb


def case_both_ways():
    B, T, D = pick((64, 250, 1024), (2, 30, 12))
    for BT, BD, w in pick([(256, 16, 4), (256, 32, 8), (256, 8, 1)], [(32, 8, 1)]):
        both_ways[(cd(D, BD), B)](rn(B, T, D, dtype=half), rn(B, T, D, dtype=half),
                                  ze(B, T, D, dtype=half), T, D, BT, BD, num_warps=w)


if __name__ == "__main__":
    run(globals())
