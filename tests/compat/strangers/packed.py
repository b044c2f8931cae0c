"""Packed weights and formats of few bits as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import cd, f32, fp16, half, pick, ri, rn, run, ze

i32, i8, u8 = torch.int32, torch.int8, torch.uint8


@triton.jit
def nibbles(q):
    return ((q << 4).to(tl.int8) >> 4), (q.to(tl.int8) >> 4)


@triton.jit
def int4_joined(x, w, s, o, M, N, K, G: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn_ = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        rh = k // 2 + tl.arange(0, BK // 2)
        a = tl.load(x + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        q = tl.load(w + rn_[:, None] * (K // 2) + rh[None, :], mask=rn_[:, None] < N, other=0)
        lo, hi = nibbles(q)
        b = tl.reshape(tl.join(lo, hi), (BN, BK))
        sc = tl.load(s + rn_[:, None] * (K // G) + rk[None, :] // G, mask=rn_[:, None] < N,
                     other=0.0)
        acc = tl.dot(a, tl.trans((b.to(tl.float32) * sc).to(a.dtype)), acc)
    tl.store(o + rm[:, None] * N + rn_[None, :], acc.to(o.dtype.element_ty),
             mask=(rm[:, None] < M) & (rn_[None, :] < N))


def case_int4_joined():
    for M, N, K, cfgs in pick(
            [(2048, 4096, 4096, [(128, 128, 64, 8, 3), (64, 128, 64, 4, 3)]),
             (16, 4096, 4096, [(16, 64, 128, 4, 4), (16, 128, 64, 4, 3)])],
            [(33, 40, 128, [(16, 32, 64, 4, 3), (64, 64, 32, 4, 2)])]):
        a, w = rn(M, K, dtype=half), ri(-128, 128, N, K // 2, dtype=i8)
        for BM, BN, BK, nw, st in cfgs:
            int4_joined[(cd(M, BM), cd(N, BN))](a, w, rn(N, K // 32, dtype=f32),
                                                ze(M, N, dtype=half), M, N, K, 32, BM, BN, BK,
                                                num_warps=nw, num_stages=st)


@triton.jit
def ternary(x, w, o, M, N, K, scale, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # four weights of -1, 0, 1 in a byte, activations of 8 bits
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn_ = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        q = tl.load(w + (rk[:, None] // 4) * N + rn_[None, :], mask=rn_[None, :] < N, other=0x55)
        b = ((q >> ((rk[:, None] % 4) * 2)) & 3).to(tl.int8) - 1
        a = tl.load(x + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0)
        acc = tl.dot(a, b, acc)
    tl.store(o + rm[:, None] * N + rn_[None, :], acc.to(tl.float32) * scale,
             mask=(rm[:, None] < M) & (rn_[None, :] < N))


def case_ternary():
    for M, N, K, cfgs in pick([(1024, 4096, 4096, [(128, 128, 64, 8, 3), (64, 64, 128, 4, 3)])],
                              [(20, 40, 128, [(32, 32, 64, 4, 3), (16, 64, 32, 2, 2)])]):
        x, w = ri(-128, 128, M, K, dtype=i8), ri(0, 3, K // 4, N, dtype=u8)
        for k in range(1, 4):
            w += ri(0, 3, K // 4, N, dtype=u8) * 4 ** k
        for BM, BN, BK, nw, st in cfgs:
            ternary[(cd(M, BM), cd(N, BN))](x, w, ze(M, N), M, N, K, 0.02, BM, BN, BK,
                                            num_warps=nw, num_stages=st)


@triton.jit
def nearest_code(x, bounds, q, absmax, n, BLOCK: tl.constexpr, R: tl.constexpr):
    # a search in 256 sorted bounds, a block of values with one scale
    b = tl.program_id(0) * R + tl.arange(0, R)
    i = b[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    m = tl.max(tl.abs(v), 1)
    lo = tl.zeros((R, BLOCK), tl.int32)
    for step in tl.static_range(8):
        mid = lo + (128 >> step)
        t = tl.load(bounds + mid - 1) * m[:, None]
        lo = tl.where(v >= t, mid, lo)
    tl.store(q + i, lo.to(tl.uint8), mask=i < n)
    tl.store(absmax + b, m, mask=b * BLOCK < n)


def case_nearest_code():
    n = pick(1 << 24, 2000)
    x = rn(n, dtype=half)
    bounds = torch.sort(rn(255, dtype=f32) * .4)[0]
    for BLOCK, R, w in pick([(256, 4, 4), (64, 16, 4), (2048, 1, 8)], [(64, 2, 4), (128, 1, 1)]):
        nb = cd(n, BLOCK)
        nearest_code[(cd(nb, R),)](x, bounds, ze(n, dtype=u8), ze(nb), n, BLOCK, R,
                                   num_warps=w)


@triton.jit
def e2m1(v):
    # nearest of 0, .5, 1, 1.5, 2, 3, 4, 6, ties to even codes
    a = tl.abs(v)
    c = (a > 0.25).to(tl.int32) + (a >= 0.75).to(tl.int32) + (a > 1.25).to(tl.int32)
    c += (a >= 1.75).to(tl.int32) + (a > 2.5).to(tl.int32) + (a >= 3.5).to(tl.int32)
    c += (a > 5.0).to(tl.int32)
    return c | (v.to(tl.int32, bitcast=True) >> 28 & 8)


@triton.jit
def quant_fp4(x, q, s, rows, N, most, BR: tl.constexpr, BC: tl.constexpr, G: tl.constexpr,
              E8: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    v = tl.load(x + r[:, None] * N + c[None, :], mask=(r < rows)[:, None] & (c < N)[None, :],
                other=0.0).to(tl.float32)
    v = tl.reshape(v, (BR, BC // G, G))
    m = tl.max(tl.abs(v), 2)
    g = tl.program_id(1) * (BC // G) + tl.arange(0, BC // G)
    mg = (r < rows)[:, None] & (g < N // G)[None, :]
    if E8:
        bits = (m * (1 / 6.0)).to(tl.int32, bitcast=True) + 0x7FFFFF
        e = tl.minimum(tl.maximum(bits >> 23, 1), 254)
        inv = ((254 - e) << 23).to(tl.float32, bitcast=True)
        tl.store(s + r[:, None] * (N // G) + g[None, :], e.to(tl.uint8), mask=mg)
    else:
        sc = tl.clamp(m * most, 0.015625, 448.0).to(tl.float8e4nv)
        inv = 6.0 * most / sc.to(tl.float32)
        tl.store(s + r[:, None] * (N // G) + g[None, :], sc.to(tl.uint8, bitcast=True), mask=mg)
    code = e2m1(v * inv[:, :, None])
    lo, hi = tl.split(tl.reshape(code, (BR, BC // 2, 2)))
    h = tl.program_id(1) * (BC // 2) + tl.arange(0, BC // 2)
    tl.store(q + r[:, None] * (N // 2) + h[None, :], (lo | (hi << 4)).to(tl.uint8),
             mask=(r < rows)[:, None] & (h < N // 2)[None, :])


def case_quant_fp4():
    R, N = pick((8192, 4096), (20, 96))
    x = rn(R, N, dtype=half, scale=2.)
    for BR, BC, G, e8, w in pick([(16, 128, 32, True, 4), (32, 64, 16, False, 4)],
                                 [(8, 64, 32, True, 4), (4, 32, 16, False, 1)]):
        quant_fp4[(cd(R, BR), cd(N, BC))](x, ze(R, N // 2, dtype=u8), ze(R, N // G, dtype=u8), R, N,
                                          0.7517, BR, BC, G, e8, num_warps=w)


@triton.jit
def fp6_dequant(q, s, o, N, BK: tl.constexpr, BN: tl.constexpr):
    # three bytes hold four numbers of 1 sign, 3 exponent, 2 mantissa bits
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    for part in tl.static_range(4):
        bit = part * 6
        first = k[:, None] * 3 + bit // 8
        a = tl.load(q + first * N + n[None, :]).to(tl.int32)
        if bit % 8 > 2:
            a = a | (tl.load(q + (first + 1) * N + n[None, :]).to(tl.int32) << 8)
        v = (a >> (bit % 8)) & 0x3F
        e, m = (v >> 2) & 7, v & 3
        f = tl.where(e == 0, m.to(tl.float32) * 0.0625,
                     (((e + 124) << 23) | (m << 21)).to(tl.float32, bitcast=True))
        f = tl.where((v & 0x20) != 0, -f, f) * tl.load(s + n)[None, :]
        tl.store(o + (k[:, None] * 4 + part) * N + n[None, :], f.to(o.dtype.element_ty))


def case_fp6_dequant():
    K, N = pick((4096, 4096), (16, 32))
    q = ri(0, 256, K // 4 * 3, N, dtype=u8)
    for BK, BN, w in pick([(8, 128, 4), (4, 256, 4)], [(4, 32, 4), (2, 16, 1)]):
        fp6_dequant[(K // 4 // BK, N // BN)](q, rn(N, dtype=f32), ze(K, N, dtype=fp16), N, BK, BN,
                                             num_warps=w)


@triton.jit
def mx_weight(x, w, ws, o, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn_ = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        rh = k // 2 + tl.arange(0, BK // 2)
        rs = k // 32 + tl.arange(0, BK // 32)
        a = tl.load(x + (rm % M)[:, None] * K + rk[None, :])
        b = tl.load(w + rh[:, None] + rn_[None, :] * (K // 2))
        sb = tl.load(ws + rn_[:, None] * (K // 32) + rs[None, :])
        acc = tl.dot_scaled(a, None, "fp16", b, sb, "e2m1", acc)
    tl.store(o + rm[:, None] * N + rn_[None, :], acc.to(tl.float16), mask=(rm < M)[:, None])


def case_mx_weight():
    for M, N, K, cfgs in pick([(1024, 4096, 4096, [(128, 128, 64, 8, 3), (64, 128, 128, 4, 2)])],
                              [(20, 64, 128, [(32, 32, 64, 4, 2), (64, 64, 128, 4, 2)])]):
        x, w = rn(M, K, dtype=fp16), ri(0, 256, N, K // 2, dtype=u8)
        ws = ri(118, 126, N, K // 32, dtype=u8)
        for BM, BN, BK, nw, st in cfgs:
            mx_weight[(cd(M, BM), N // BN)](x, w, ws, ze(M, N, dtype=fp16), M, N, K, BM, BN, BK,
                                            num_warps=nw, num_stages=st)


@triton.jit
def table_gemm(x, q, lut, o, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn_ = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        w = tl.load(q + (rk[:, None] // 8) * N + rn_[None, :])
        v = tl.load(lut + ((w >> ((rk[:, None] % 8) * 4)) & 0xF))
        acc = tl.dot(tl.load(x + rm[:, None] * K + rk[None, :]), v.to(x.dtype.element_ty), acc)
    tl.store(o + rm[:, None] * N + rn_[None, :], acc)


def case_table_gemm():
    N, K = pick((4096, 4096), (128, 128))
    q, lut = ri(-2**31, 2**31 - 1, K // 8, N), rn(16, dtype=f32)
    for BM, BN, BK, nw, st in pick([(16, 64, 64, 4, 4), (64, 128, 64, 4, 3), (128, 128, 64, 8, 3)],
                                   [(16, 64, 64, 4, 4), (64, 64, 32, 4, 3)]):
        table_gemm[(N // BN,)](rn(BM, K, dtype=half), q, lut, ze(BM, N), N, K, BM, BN, BK,
                               num_warps=nw, num_stages=st)


@triton.jit
def pack_int4(w, q, s, z, K, N, G: tl.constexpr, BN: tl.constexpr):
    # groups of G rows get a scale and a zero, eight rows a word
    g = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, G)
    v = tl.load(w + (g * G + k[:, None]) * N + n[None, :], mask=(n < N)[None, :], other=0.0)
    v = v.to(tl.float32)
    lo, hi = tl.minimum(tl.min(v, 0), 0.0), tl.maximum(tl.max(v, 0), 0.0)
    bits = (tl.maximum(hi - lo, 1e-6) * (1 / 15.0)).to(tl.int32, bitcast=True) + 0x7FFFFF
    sc = (bits & 0x7F800000).to(tl.float32, bitcast=True)
    zero = tl.floor(-lo / sc + 0.5)
    c = tl.clamp(tl.floor(v / sc[None, :] + 0.5) + zero[None, :], 0.0, 15.0).to(tl.int32)
    word = tl.sum(tl.reshape(c << ((k % 8) * 4)[:, None], (G // 8, 8, BN)), 1)
    tl.store(q + (g * (G // 8) + tl.arange(0, G // 8))[:, None] * N + n[None, :], word,
             mask=(n < N)[None, :])
    tl.store(s + g * N + n, sc, mask=n < N)
    tl.store(z + g * N + n, zero.to(tl.int8), mask=n < N)


def case_pack_int4():
    K, N = pick((4096, 4100), (128, 50))
    w = rn(K, N, dtype=half)
    for G, BN, nw in pick([(128, 32, 4), (64, 64, 4)], [(32, 32, 4), (64, 16, 2)]):
        pack_int4[(K // G, cd(N, BN))](w, ze(K // 8, N, dtype=i32), ze(K // G, N),
                                       ze(K // G, N, dtype=i8), K, N, G, BN, num_warps=nw)


@triton.jit
def rotate_quant(x, h, q, s, rows, D: tl.constexpr, BR: tl.constexpr):
    # a rotation by a matrix of signs before rounding, as for caches of few bits
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    d = tl.arange(0, D)
    v = tl.load(x + r[:, None] * D + d[None, :], mask=(r < rows)[:, None], other=0.0)
    m = tl.load(h + d[:, None] * D + d[None, :])
    y = tl.dot(v, m)
    t = tl.maximum(tl.max(tl.abs(y), 1), 1e-8) / 126.3
    z = y / t[:, None]
    z = tl.where(z >= 0, z + 0.5, z - 0.5).to(tl.int8)
    tl.store(q + r[:, None] * D + d[None, :], z, mask=(r < rows)[:, None])
    tl.store(s + r, t, mask=r < rows)


def case_rotate_quant():
    # whole numbers small enough for exact sums: rounding must agree
    R = pick(100000, 70)
    for D, BR, w in pick([(128, 64, 4), (64, 128, 4)], [(32, 32, 4), (64, 64, 4)]):
        x = ri(-6, 7, R, D).to(half)
        h = (ri(0, 2, D, D) * 2 - 1).to(half)
        rotate_quant[(cd(R, BR),)](x, h, ze(R, D, dtype=i8), ze(R), R, D, BR, num_warps=w)


if __name__ == "__main__":
    run(globals())
