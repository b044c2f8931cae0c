"""Bits, codes, states of 8 bits and atomics as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, bf16, cd, f32, half, pick, ri, rn, run, ze

i8, i32, i64, u8 = torch.int8, torch.int32, torch.int64, torch.uint8


@triton.jit
def rotl64(x, R: tl.constexpr):
    return (x << R) | (x >> (64 - R))


@triton.jit
def xxh64(words, out, n, W, seed, B: tl.constexpr):
    # a key of W words of 64 bits each lane
    P1: tl.constexpr = 0x9E3779B185EBCA87
    P2: tl.constexpr = 0xC2B2AE3D27D4EB4F
    P3: tl.constexpr = 0x165667B19E3779F9
    P4: tl.constexpr = 0x85EBCA77C2B2AE63
    P5: tl.constexpr = 0x27D4EB2F165667C5
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    h = (i * 0).to(tl.uint64) + P5 + seed + W * 8
    for k in range(W):
        w = tl.load(words + i.to(tl.int64) * W + k, mask=m, other=0).to(tl.uint64, bitcast=True)
        h ^= rotl64(w * P2, 31) * P1
        h = rotl64(h, 27) * P1 + P4
    h = (h ^ (h >> 33)) * P2
    h = (h ^ (h >> 29)) * P3
    tl.store(out + i, (h ^ (h >> 32)).to(tl.int64, bitcast=True), mask=m)


def case_xxh64():
    n = pick(1 << 19, 100)
    for W, B, w in pick([(8, 256, 4), (4, 512, 4), (16, 128, 4)], [(3, 32, 1)]):
        xxh64[(cd(n, B),)](ri(-2**62, 2**62, n, W, dtype=i64), ze(n, dtype=i64), n, W, 7, B,
                           num_warps=w)


@triton.jit
def pack_three(q, words, n, B: tl.constexpr):
    # ten values of 3 bits in a word, two bits stay free
    w = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B,), tl.int32)
    for k in tl.static_range(10):
        at = w * 10 + k
        acc |= (tl.load(q + at, mask=at < n, other=0).to(tl.int32) & 7) << (3 * k)
    tl.store(words + w, acc, mask=w * 10 < n)


@triton.jit
def unpack_three(words, scale, y, K, G, BK: tl.constexpr):
    # of 32 values in three words: some of them lie across two
    row = tl.program_id(0)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    m = k < K
    bit = k * 3
    nw = K * 3 // 32
    w0 = tl.load(words + row * nw + bit // 32, mask=m, other=0).to(tl.uint32, bitcast=True)
    w1 = tl.load(words + row * nw + tl.minimum(bit // 32 + 1, nw - 1), mask=m, other=0)
    both = w0.to(tl.uint64) | (w1.to(tl.uint32, bitcast=True).to(tl.uint64) << 32)
    q = ((both >> (bit % 32).to(tl.uint64)) & 7).to(tl.int32) - 4
    s = tl.load(scale + row * (K // G) + k // G, mask=m, other=0.0)
    tl.store(y + row * K + k, (q.to(tl.float32) * s).to(y.dtype.element_ty), mask=m)


def case_three_bits():
    R, K, G = pick((4096, 4096, 128), (3, 96, 32))
    for BK, w in pick([(1024, 4), (4096, 8), (512, 4)], [(32, 1)]):
        unpack_three[(R, cd(K, BK))](ri(-2**31, 2**31 - 1, R, K * 3 // 32), rn(R, K // G,
                                     dtype=f32), ze(R, K, dtype=half), K, G, BK, num_warps=w)
        n = R * K
        pack_three[(cd(cd(n, 10), BK),)](ri(0, 8, n, dtype=u8), ze(cd(n, 10), dtype=i32), n, BK,
                                         num_warps=w)


@triton.jit
def sign_bits(g, err, words, scale, N, B: tl.constexpr):
    # one bit gradients with an error that is fed back: 32 signs a word
    p = tl.program_id(0)
    i = p * B + tl.arange(0, B)
    v = tl.load(g + i, mask=i < N, other=0.0).to(tl.float32)
    v += tl.load(err + i, mask=i < N, other=0.0)
    s = tl.sum(tl.abs(v)) / B
    tl.store(scale + p, s)
    pos = v >= 0
    tl.store(err + i, v - tl.where(pos, s, -s), mask=i < N)
    bits = tl.reshape(pos.to(tl.uint32), (B // 32, 32)) << tl.arange(0, 32)[None, :].to(tl.uint32)
    j = p * (B // 32) + tl.arange(0, B // 32)
    tl.store(words + j, tl.sum(bits, 1).to(tl.int32, bitcast=True), mask=j * 32 < N)


@triton.jit
def sign_vote(words, out, N, W, nworkers, B: tl.constexpr):
    # majority of all workers' signs
    i = tl.program_id(0) * B + tl.arange(0, B)
    votes = tl.zeros((B,), tl.int32)
    for k in range(nworkers):
        w = tl.load(words + k * W + i // 32, mask=i < N, other=0)
        votes += (w >> (i % 32)) & 1
    tl.store(out + i, tl.where(votes * 2 >= nworkers, 1.0, -1.0).to(out.dtype.element_ty),
             mask=i < N)


def case_sign_bits():
    N = pick(1 << 24, 500)
    for B, w in pick([(1024, 4), (4096, 8), (2048, 4)], [(128, 1)]):
        sign_bits[(cd(N, B),)](rn(N), rn(N, dtype=f32), ze(cd(N, 32), dtype=i32), ze(cd(N, B)), N,
                               B, num_warps=w)
        sign_vote[(cd(N, B),)](ri(-2**31, 2**31 - 1, 8, cd(N, 32)), ze(N, dtype=bf16), N,
                               cd(N, 32), 8, B, num_warps=w)


@triton.jit
def six_bits(q, lo, hi, n, B: tl.constexpr):
    # Q6_K's planes: four bits of two values in a byte, two bits of four
    b = tl.program_id(0) * B + tl.arange(0, B)
    m = b * 4 < n
    v0 = tl.load(q + b * 4, mask=m, other=0)
    v1 = tl.load(q + b * 4 + 1, mask=m, other=0)
    v2 = tl.load(q + b * 4 + 2, mask=m, other=0)
    v3 = tl.load(q + b * 4 + 3, mask=m, other=0)
    tl.store(lo + b * 2, (v0 & 15) | (v1 << 4), mask=m)
    tl.store(lo + b * 2 + 1, (v2 & 15) | (v3 << 4), mask=m)
    tl.store(hi + b, (v0 >> 4) | ((v1 >> 4) << 2) | ((v2 >> 4) << 4) | ((v3 >> 4) << 6), mask=m)


def case_six_bits():
    n = pick(1 << 24, 400)
    for B, w in pick([(512, 4), (1024, 8), (256, 4)], [(32, 1)]):
        six_bits[(cd(n, 4 * B),)](ri(0, 64, n, dtype=u8), ze(n // 2, dtype=u8),
                                  ze(n // 4, dtype=u8), n, B, num_warps=w)


@triton.jit
def to_e5m2(x, noise):
    # stochastic rounding of the bits of halves
    b = x.to(tl.float16).to(tl.uint16, bitcast=True)
    inf = (b & 0x7FFF) >= 0x7B00
    r = ((b + tl.where(inf, 0, noise & 0xFF).to(tl.uint16)) >> 8).to(tl.uint8)
    return r


@triton.jit
def quant_e5m2(x, noise, q, s, N, B: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, B)
    v = tl.load(x + row * N + i, mask=i < N, other=0.0).to(tl.float32)
    top = tl.maximum(tl.max(tl.abs(v)), 1e-12)
    k = 57344.0 / top
    e = tl.load(noise + row * N + i, mask=i < N, other=0).to(tl.uint16)
    tl.store(q + row * N + i, to_e5m2(v * k, e), mask=i < N)
    tl.store(s + row, top / 57344.0)


def case_quant_e5m2():
    R = pick(8192, 3)
    for N, B, w in pick([(4096, 4096, 8), (2048, 2048, 4), (5000, 8192, 8)], [(100, 128, 1)]):
        quant_e5m2[(R,)](rn(R, N, dtype=half), ri(0, 256, R, N, dtype=u8), ze(R, N, dtype=u8),
                         ze(R), N, B, num_warps=w)


@triton.jit
def frame_decode(packed, base, width, start, out, n, B: tl.constexpr):
    # a column store: frames of B numbers, differences of `width` bits, then a prefix sum
    f = tl.program_id(0)
    i = tl.arange(0, B)
    w = tl.load(width + f)
    first = tl.load(start + f)
    bit = i * w
    lo = tl.load(packed + first + bit // 32).to(tl.uint32, bitcast=True).to(tl.uint64)
    hi = tl.load(packed + first + bit // 32 + 1).to(tl.uint32, bitcast=True).to(tl.uint64)
    v = ((lo | (hi << 32)) >> (bit % 32).to(tl.uint64)) & ((1 << w.to(tl.int64)) - 1).to(tl.uint64)
    total = tl.cumsum(v.to(tl.int64), 0) + tl.load(base + f)
    tl.store(out + f.to(tl.int64) * B + i, total, mask=f * B + i < n)


def case_frame_decode():
    n = pick(1 << 23, 500)
    for B, w in pick([(1024, 4), (512, 4), (256, 1)], [(64, 1)]):
        F = cd(n, B)
        width = ri(1, 20, F)
        words = (width.long() * B + 31) // 32
        start = (words.cumsum(0) - words).int()
        frame_decode[(F,)](ri(-2**31, 2**31 - 1, int(words.sum()) + 2), ri(0, 99, F, dtype=i64),
                           width, start, ze(n, dtype=i64), n, B, num_warps=w)


@triton.jit
def run_decode(ends, values, out, n, runs, LOG: tl.constexpr, B: tl.constexpr):
    # run lengths as their ends: which run an element is of by bisection
    i = tl.program_id(0) * B + tl.arange(0, B)
    lo = tl.zeros((B,), tl.int32)
    for k in tl.static_range(LOG):
        at = lo + (1 << (LOG - 1 - k))
        e = tl.load(ends + at - 1, mask=at <= runs, other=2147483647)
        lo = tl.where(e <= i, at, lo)
    tl.store(out + i, tl.load(values + tl.minimum(lo, runs - 1), mask=i < n, other=0), mask=i < n)


def case_run_decode():
    n, runs, LOG = pick((1 << 23, 60000, 16), (300, 20, 5))
    ends = torch.sort(ri(1, n, runs))[0].int()
    ends[-1] = n
    for B, w in pick([(1024, 4), (512, 4), (2048, 8)], [(64, 1)]):
        run_decode[(cd(n, B),)](ends, ri(0, 9999, runs), ze(n, dtype=i32), n, runs, LOG, B,
                                num_warps=w)


@triton.jit
def filter_mask(price, kind, date, bits, counts, n, lo, hi, K, D, B: tl.constexpr):
    # a WHERE of three columns: a bitmap of 32 rows a word and the count of a block
    p = tl.program_id(0)
    i = p * B + tl.arange(0, B)
    a = tl.load(price + i, mask=i < n, other=0.0)
    k = tl.load(kind + i, mask=i < n, other=-1)
    d = tl.load(date + i, mask=i < n, other=0)
    hit = (a >= lo) & (a < hi) & ((k == K) | (d < D)) & (i < n)
    w = tl.reshape(hit.to(tl.int32), (B // 32, 32)) << tl.arange(0, 32)[None, :]
    j = p * (B // 32) + tl.arange(0, B // 32)
    tl.store(bits + j, tl.sum(w, 1), mask=j * 32 < n)
    tl.store(counts + p, tl.sum(hit.to(tl.int32)))


def case_filter_mask():
    n = pick(1 << 24, 500)
    for B, w in pick([(1024, 4), (2048, 4), (8192, 8)], [(128, 1)]):
        filter_mask[(cd(n, B),)](torch.rand(n, device=DEV), ri(0, 10, n, dtype=i8),
                                 ri(0, 9999, n, dtype=i64), ze(cd(n, 32), dtype=i32),
                                 ze(cd(n, B), dtype=i32), n, .2, .8, 3, 2000, B, num_warps=w)


@triton.jit
def clz32(x):
    # of a number that is not 0: by halves
    n = tl.zeros_like(x).to(tl.int32)
    for k in tl.static_range(5):
        small = (x >> (32 - (16 >> k))) == 0
        n += tl.where(small, 16 >> k, 0)
        x = tl.where(small, x << (16 >> k), x)
    return n


@triton.jit
def hyperloglog(keys, regs, n, P: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.load(keys + i, mask=i < n, other=0).to(tl.uint32, bitcast=True)
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    h = h ^ (h >> 16)
    rank = clz32((h << P) | (1 << (P - 1))) + 1
    tl.atomic_max(regs + (h >> (32 - P)).to(tl.int32), rank, mask=i < n, sem="relaxed")


def case_hyperloglog():
    n, P = pick((1 << 22, 12), (300, 4))
    for B, w in pick([(1024, 4), (512, 4), (256, 1)], [(64, 1)]):
        hyperloglog[(cd(n, B),)](ri(-2**31, 2**31 - 1, n), ze(1 << P, dtype=i32), n, P, B,
                                 num_warps=w)


@triton.jit
def group_extremes(keys, vals, lo, hi, cnt, seen, n, B: tl.constexpr):
    # GROUP BY: atomics of floats and of 64 bits, every kind of order
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    k = tl.load(keys + i, mask=m, other=0)
    v = tl.load(vals + i, mask=m, other=0.0)
    tl.atomic_min(lo + k, v, mask=m, sem="relaxed", scope="gpu")
    tl.atomic_max(hi + k, v, mask=m, sem="release", scope="gpu")
    tl.atomic_add(cnt + k, tl.full((B,), 1, tl.int64), mask=m, sem="relaxed", scope="sys")
    tl.atomic_or(seen + (k >> 5), 1 << (k & 31), mask=m, sem="acquire")


def case_group_extremes():
    n, G = pick((1 << 20, 4096), (300, 64))
    for B, w in pick([(256, 4), (1024, 4), (128, 1)], [(32, 1)]):
        group_extremes[(cd(n, B),)](ri(0, G, n), rn(n, dtype=f32), ze(G) + 99, ze(G) - 99,
                                    ze(G, dtype=i64), ze(G // 32, dtype=i32), n, B, num_warps=w)


@triton.jit
def cas_product(x, groups, out, n, B: tl.constexpr):
    # a product by compare and swap: what no atomic has; lanes try until theirs is in
    i = tl.program_id(0) * B + tl.arange(0, B)
    g = tl.load(groups + i, mask=i < n, other=0)
    v = tl.load(x + i, mask=i < n, other=1)
    todo = (i < n).to(tl.int32)
    old = tl.load(out + g, mask=i < n, other=1)
    while tl.max(todo, 0) > 0:
        new = tl.where(todo > 0, old * v, old)
        got = tl.atomic_cas(out + g, old, new, sem="relaxed")
        todo = tl.where(got == old, 0, todo)
        old = got


def case_cas_product():
    n = pick(1 << 16, 100)
    for B, w in pick([(128, 4), (64, 1)], [(32, 1)]):
        cas_product[(cd(n, B),)](ri(1, 5, n) * 2 + 1, ri(0, n // 2, n), ze(n, dtype=i32) + 1, n,
                                 B, num_warps=w)


@triton.jit
def dot_bytes(a, b, out, N, W: tl.constexpr, BN: tl.constexpr):
    # dp4a by inline assembly: rows of packed bytes by one vector
    r = tl.program_id(0) * BN + tl.arange(0, BN)
    w = tl.arange(0, W)
    x = tl.load(a + r[:, None] * W + w[None, :], mask=(r < N)[:, None], other=0)
    y = tl.broadcast_to(tl.load(b + w)[None, :], (BN, W))
    z = tl.zeros((BN, W), tl.int32)
    p = tl.inline_asm_elementwise("dp4a.s32.s32 $0, $1, $2, $3;", "=r,r,r,r", [x, y, z],
                                  dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + r, tl.sum(p, 1), mask=r < N)


def case_dot_bytes():
    if DEV == "cpu":
        return
    N, W = 1 << 18, 64
    for BN, w in [(32, 4), (64, 4), (128, 8)]:
        dot_bytes[(cd(N, BN),)](ri(-2**31, 2**31 - 1, N, W), ri(-2**31, 2**31 - 1, W),
                                ze(N, dtype=i32), N, W, BN, num_warps=w)


@triton.jit
def adan(p, g, pg, m, v, s, n, lr, b1, b2, b3, eps, wd, step, B: tl.constexpr):
    # four states, the gradient before
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    k = i < n
    gr = tl.load(g + i, mask=k, other=0.0).to(tl.float32)
    d = gr - tl.load(pg + i, mask=k, other=0.0).to(tl.float32)
    mm = tl.load(m + i, mask=k, other=0.0) * b1 + gr * (1 - b1)
    vv = tl.load(v + i, mask=k, other=0.0) * b2 + d * (1 - b2)
    u = gr + b2 * d
    ss = tl.load(s + i, mask=k, other=0.0) * b3 + u * u * (1 - b3)
    t = step.to(tl.float32)
    c1 = 1 - tl.exp(t * tl.log(b1))
    c2 = 1 - tl.exp(t * tl.log(b2))
    c3 = 1 - tl.exp(t * tl.log(b3))
    up = (mm / c1 + b2 * vv / c2) / (tl.sqrt(ss / c3) + eps)
    w = tl.load(p + i, mask=k, other=0.0).to(tl.float32)
    w = (w - lr * up) / (1 + lr * wd)
    tl.store(p + i, w.to(p.dtype.element_ty), mask=k)
    tl.store(m + i, mm, mask=k)
    tl.store(v + i, vv, mask=k)
    tl.store(s + i, ss, mask=k)
    tl.store(pg + i, gr.to(pg.dtype.element_ty), mask=k)


def case_adan():
    n = pick(1 << 23, 300)
    for B, w in pick([(1024, 4), (2048, 8), (512, 4)], [(64, 1)]):
        st = [torch.rand(n, device=DEV) for _ in range(3)]
        adan[(cd(n, B),)](rn(n, dtype=half), rn(n, dtype=half), rn(n, dtype=half), *st, n, 1e-3,
                          .98, .92, .99, 1e-8, .02, 7, B, num_warps=w)


@triton.jit
def momentum_int8(p, g, q, s, n, lr, mu, B: tl.constexpr, G: tl.constexpr):
    # momentum in int8, a scale for each group of a tile
    i = tl.program_id(0) * B * G + tl.arange(0, B)[:, None] * G + tl.arange(0, G)[None, :]
    b = tl.program_id(0) * B + tl.arange(0, B)
    k = i < n
    sc = tl.load(s + b, mask=b * G < n, other=0.0)
    m = tl.load(q + i, mask=k, other=0).to(tl.float32) * sc[:, None]
    m = m * mu + tl.load(g + i, mask=k, other=0.0).to(tl.float32)
    top = tl.max(tl.abs(m), 1)
    ns = top / 127.0
    inv = tl.where(top > 0, 127.0 / top, 0.0)
    r = m * inv[:, None]
    r = tl.where(r >= 0, tl.floor(r + 0.5), tl.ceil(r - 0.5))
    tl.store(q + i, r.to(tl.int8), mask=k)
    tl.store(s + b, ns, mask=b * G < n)
    w = tl.load(p + i, mask=k, other=0.0).to(tl.float32) - lr * m
    tl.store(p + i, w.to(p.dtype.element_ty), mask=k)


def case_momentum_int8():
    n = pick(1 << 23, 600)
    for B, G, w in pick([(16, 128, 4), (64, 64, 8), (4, 256, 1)], [(4, 32, 1)]):
        momentum_int8[(cd(n, B * G),)](rn(n, dtype=half), rn(n, dtype=half),
                                       ri(-127, 128, n, dtype=i8),
                                       torch.rand(cd(n, G), device=DEV), n, .01, .9, B, G,
                                       num_warps=w)


@triton.jit
def cache_blocks(k, v, kc, vc, slots, H, BS, D: tl.constexpr, X: tl.constexpr):
    # vLLM's older layout of keys: [blocks, heads, D / X, block, X]; values [.., D, block]
    t = tl.program_id(0)
    h = tl.program_id(1)
    d = tl.arange(0, D)
    slot = tl.load(slots + t)
    if slot < 0:
        return
    b = slot // BS
    o = slot % BS
    at = (b * H + h) * D * BS
    x = tl.load(k + (t * H + h) * D + d)
    tl.store(kc + at + (d // X) * BS * X + o * X + d % X, x)
    tl.store(vc + at + d * BS + o, tl.load(v + (t * H + h) * D + d))


def case_cache_blocks():
    T, H, D, BS = pick((8192, 8, 128, 16), (6, 2, 16, 4))
    slots = torch.randperm(T * 2, device=DEV)[:T].to(i64)
    slots[::17] = -1
    for w in pick((1, 2, 4), (1,)):
        cache_blocks[(T, H)](rn(T, H, D), rn(T, H, D), ze(2 * T, H, D, dtype=bf16),
                             ze(2 * T, H, D, dtype=bf16), slots, H, BS, D, 8, num_warps=w)


@triton.jit
def yarn_angle(pos, base, scale, low, high, mscale, cos, sin, D: tl.constexpr, BP: tl.constexpr,
               n):
    # tables of YaRN: frequencies between interpolation and extrapolation
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    j = tl.arange(0, D // 2)
    inv = tl.exp2(-(2.0 * j / D) * tl.log2(base))
    ramp = tl.minimum(tl.maximum((j - low) / (high - low), 0.0), 1.0)
    f = inv / scale * ramp + inv * (1 - ramp)
    a = tl.load(pos + p, mask=p < n, other=0).to(tl.float32)[:, None] * f[None, :]
    at = p[:, None] * (D // 2) + j[None, :]
    tl.store(cos + at, (tl.cos(a) * mscale).to(cos.dtype.element_ty), mask=(p < n)[:, None])
    tl.store(sin + at, (tl.sin(a) * mscale).to(sin.dtype.element_ty), mask=(p < n)[:, None])


def case_yarn_angle():
    n, D = pick((131072, 128), (20, 16))
    for BP, w in pick([(16, 4), (64, 4), (8, 2)], [(4, 1)]):
        yarn_angle[(cd(n, BP),)](ri(0, 4096, n, dtype=i64), 1e6, 4.0, 10.0, 40.0, 1.14,
                                 ze(n, D // 2, dtype=half), ze(n, D // 2, dtype=half), D, BP, n,
                                 num_warps=w)


@triton.jit
def pow2_codes(x, q, y, n, B: tl.constexpr):
    # weights that are powers of two: the exponent rounded by the bits, a sign and 3 bits
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    b = v.to(tl.int32, bitcast=True)
    e = ((b & 0x7FFFFFFF) + 0x4AFB0D) >> 23
    c = tl.minimum(tl.maximum(e - 120, 0), 7)
    code = c | ((b >> 28) & 8)
    even, odd = tl.split(tl.reshape(code, (B // 2, 2)))
    j = tl.program_id(0) * (B // 2) + tl.arange(0, B // 2)
    tl.store(q + j, (even | (odd << 4)).to(tl.uint8), mask=j * 2 < n)
    back = ((c + 120) << 23) | (b & -2147483648)
    tl.store(y + i, tl.where(c == 0, 0.0, back.to(tl.float32, bitcast=True)).to(
        y.dtype.element_ty), mask=i < n)


def case_pow2_codes():
    n = pick(1 << 24, 500)
    for B, w in pick([(1024, 4), (2048, 4), (4096, 8)], [(64, 1)]):
        pow2_codes[(cd(n, B),)](rn(n, dtype=half), ze(n // 2, dtype=u8), ze(n, dtype=half), n, B,
                                num_warps=w)


if __name__ == "__main__":
    run(globals())
