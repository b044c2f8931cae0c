"""Scientific computing as strangers write it: stencils, transforms, sparse products, scans over
programs, small factorizations, bodies, options, distances, paths.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import f32, fp16, pick, ri, rn, ze, cd, DEV, run

i32 = torch.int32


@triton.jit
def stencil3d(src, dst, NX, NY, NZ, c0, c1, BY: tl.constexpr, BZ: tl.constexpr):
    x = tl.program_id(2)
    y = tl.program_id(1) * BY + tl.arange(0, BY)[:, None]
    z = tl.program_id(0) * BZ + tl.arange(0, BZ)[None, :]
    sx = NY * NZ
    here = x * sx + y * NZ + z
    ok = (y < NY) & (z < NZ)
    inner = (x > 0) & (x < NX - 1) & (y > 0) & (y < NY - 1) & (z > 0) & (z < NZ - 1)
    c = tl.load(src + here, mask=ok, other=0.0)
    s = tl.load(src + here - 1, mask=inner, other=0.0)
    s += tl.load(src + here + 1, mask=inner, other=0.0)
    s += tl.load(src + here - NZ, mask=inner, other=0.0)
    s += tl.load(src + here + NZ, mask=inner, other=0.0)
    s += tl.load(src + here - sx, mask=inner, other=0.0)
    s += tl.load(src + here + sx, mask=inner, other=0.0)
    tl.store(dst + here, tl.where(inner, c0 * c + c1 * s, c), mask=ok)


def case_stencil3d():
    X, Y, Z = pick((256, 256, 256), (5, 9, 20))
    u = rn(X, Y, Z, dtype=f32)
    for BY, BZ, w in pick([(4, 64, 4), (1, 256, 2), (16, 32, 8)], [(4, 16, 1)]):
        stencil3d[(cd(Z, BZ), cd(Y, BY), X)](u, ze(X, Y, Z), X, Y, Z, 0.4, 0.1, BY, BZ,
                                             num_warps=w)


@triton.jit
def wave_march(u0, u1, out, NX, NZ, c, BZ: tl.constexpr, R: tl.constexpr):
    # 8th order along x, marching along x with a loop, columns over the block
    z = tl.program_id(0) * BZ + tl.arange(0, BZ)
    m = z < NZ
    for x in tl.range(R, NX - R, num_stages=2):
        acc = -2.847222 * tl.load(u1 + x * NZ + z, mask=m)
        for r in tl.static_range(1, R + 1):
            w = 1.6 if r == 1 else (-0.2 if r == 2 else (0.02539 if r == 3 else -0.00178))
            acc += w * (tl.load(u1 + (x - r) * NZ + z, mask=m) +
                        tl.load(u1 + (x + r) * NZ + z, mask=m))
        a = tl.load(u1 + x * NZ + z, mask=m)
        b = tl.load(u0 + x * NZ + z, mask=m)
        tl.store(out + x * NZ + z, 2 * a - b + c * acc, mask=m)


def case_wave():
    X, Z = pick((256, 65536 + 40), (20, 70))
    a, b = rn(X, Z, dtype=f32), rn(X, Z, dtype=f32)
    for BZ, w in pick([(256, 2), (512, 4)], [(32, 1)]):
        wave_march[(cd(Z, BZ),)](a, b, ze(X, Z), X, Z, 0.05, BZ, 4, num_warps=w)


@triton.jit
def butterfly(re, im, ore, oim, n, half, BLOCK: tl.constexpr):
    # one stage of a radix-2 FFT, rows of n points
    row = tl.program_id(1).to(tl.int64) * n
    k = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = k < n // 2
    j = k % half
    i0 = (k // half) * half * 2 + j
    i1 = i0 + half
    ang = -3.14159265358979 * j.to(tl.float32) / half
    wr = tl.cos(ang)
    wi = tl.sin(ang)
    ar = tl.load(re + row + i0, mask=m)
    ai = tl.load(im + row + i0, mask=m)
    br = tl.load(re + row + i1, mask=m)
    bi = tl.load(im + row + i1, mask=m)
    tr = br * wr - bi * wi
    ti = br * wi + bi * wr
    tl.store(ore + row + i0, ar + tr, mask=m)
    tl.store(oim + row + i0, ai + ti, mask=m)
    tl.store(ore + row + i1, ar - tr, mask=m)
    tl.store(oim + row + i1, ai - ti, mask=m)


def case_fft_stage():
    rows, n = pick((1024, 4096), (2, 64))
    a, b = rn(rows, n, dtype=f32), rn(rows, n, dtype=f32)
    for half in pick((1, 16, 1024), (1, 8)):
        butterfly[(cd(n // 2, 512), rows)](a, b, ze(rows, n), ze(rows, n), n, half, 512,
                                           num_warps=4)


@triton.jit
def dft_matmul(xr, xi, fr, fi, yr, yi, B, N: tl.constexpr, BM: tl.constexpr):
    # a transform of N points as four real products
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, N)
    m = (r < B)[:, None]
    p = r[:, None] * N + c[None, :]
    a = tl.load(xr + p, mask=m, other=0.0)
    b = tl.load(xi + p, mask=m, other=0.0)
    f = c[:, None] * N + c[None, :]
    cr = tl.load(fr + f)
    ci = tl.load(fi + f)
    re = tl.dot(a, cr) - tl.dot(b, ci)
    im = tl.dot(a, ci) + tl.dot(b, cr)
    tl.store(yr + p, re, mask=m)
    tl.store(yi + p, im, mask=m)


def case_dft():
    B = pick(65536, 40)
    for N, BM, w in pick([(64, 64, 4), (32, 128, 8), (128, 32, 4)], [(16, 16, 1)]):
        x = [rn(B, N, dtype=fp16) for _ in range(2)]
        f = [rn(N, N, dtype=fp16) for _ in range(2)]
        dft_matmul[(cd(B, BM),)](*x, *f, ze(B, N), ze(B, N), B, N=N, BM=BM, num_warps=w)


@triton.jit
def spmv_csr(ptr, col, val, x, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lo = tl.load(ptr + row)
    hi = tl.load(ptr + row + 1)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for k in range(lo, hi, BLOCK):
        o = k + tl.arange(0, BLOCK)
        m = o < hi
        j = tl.load(col + o, mask=m, other=0)
        acc += tl.load(val + o, mask=m, other=0.0) * tl.load(x + j, mask=m, other=0.0)
    tl.store(y + row, tl.sum(acc, axis=0))


def csr(n, most, cols):
    per = (torch.arange(n) * 7919) % most
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), per.cumsum(0)]).to(i32)
    nnz = int(ptr[-1])
    return ptr.to(DEV), ri(0, cols, nnz), rn(nnz, dtype=f32)


def case_spmv_csr():
    n = pick(65536, 50)
    a = csr(n, 100, n)
    x = rn(n, dtype=f32)
    for B, w in ((32, 1), (128, 4)):
        spmv_csr[(n,)](*a, x, ze(n), n, B, num_warps=w)


@triton.jit
def spmv_ell(col, val, x, y, n, W, BR: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    m = r < n
    s = tl.zeros((BR,), tl.float32)
    for k in range(W):
        j = tl.load(col + k * n + r, mask=m, other=-1)
        g = m & (j >= 0)
        v = tl.load(val + k * n + r, mask=m, other=0.0)
        s += v * tl.load(x + j, mask=g, other=0.0)
    tl.store(y + r, s, mask=m)


def case_spmv_ell():
    n, W = pick((1 << 20, 27), (100, 5))
    c, v, x = ri(-1, n, W, n), rn(W, n, dtype=f32), rn(n, dtype=f32)
    for BR, w in ((128, 4), (512, 4)):
        spmv_ell[(cd(n, BR),)](c, v, x, ze(n), n, W, BR=BR, num_warps=w)


@triton.jit
def spmm_bsr(ptr, col, val, d, out, N, BS: tl.constexpr, BN: tl.constexpr):
    br = tl.program_id(0)
    rn_ = tl.program_id(1) * BN + tl.arange(0, BN)
    rb = tl.arange(0, BS)
    lo = tl.load(ptr + br)
    hi = tl.load(ptr + br + 1)
    acc = tl.zeros((BS, BN), tl.float32)
    for k in range(lo, hi):
        j = tl.load(col + k)
        a = tl.load(val + k * BS * BS + rb[:, None] * BS + rb[None, :])
        b = tl.load(d + (j * BS + rb)[:, None] * N + rn_[None, :], mask=rn_[None, :] < N,
                    other=0.0)
        acc += tl.dot(a, b)
    tl.store(out + (br * BS + rb)[:, None] * N + rn_[None, :], acc, mask=rn_[None, :] < N)


def case_spmm_bsr():
    for BS, BN, w, s in pick([(32, 128, 4, 3), (64, 64, 4, 2), (16, 64, 2, 4)],
                             [(16, 32, 1, 2)]):
        nb, N = pick((4096 // BS, 1024), (4, 40))
        ptr, col, _ = csr(nb, pick(40, 4), nb)
        val = rn(col.numel() + 1, BS, BS, dtype=fp16)
        spmm_bsr[(nb, cd(N, BN))](ptr, col, val, rn(nb * BS, N, dtype=fp16),
                                  ze(nb * BS, N), N, BS, BN, num_warps=w, num_stages=s)


@triton.jit
def scan_sums(x, part, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(part + tl.program_id(0), tl.sum(tl.load(x + o, mask=o < n, other=0), 0))


@triton.jit
def scan_parts(part, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    v = tl.load(part + o, mask=o < n, other=0)
    tl.store(part + o, tl.cumsum(v, 0) - v, mask=o < n)


@triton.jit
def scan_add(x, part, y, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    o = pid * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n, other=0)
    tl.store(y + o, tl.cumsum(v, 0) + tl.load(part + pid), mask=o < n)


def case_prefix_sum():
    n, B = pick((1 << 24, 4096), (1000, 64))
    x, y = ri(-50, 50, n - 3), torch.zeros(n - 3, device=DEV, dtype=i32)
    parts = cd(n, B)
    p = torch.zeros(parts, device=DEV, dtype=i32)
    scan_sums[(parts,)](x, p, n - 3, B, num_warps=8)
    scan_parts[(1,)](p, parts, triton.next_power_of_2(parts), num_warps=8)
    scan_add[(parts,)](x, p, y, n - 3, B, num_warps=8)


@triton.jit
def histo_local(x, h, n, BINS: tl.constexpr, BLOCK: tl.constexpr, PER: tl.constexpr):
    acc = tl.zeros((BINS,), tl.int32)
    for i in range(PER):
        o = (tl.program_id(0) * PER + i) * BLOCK + tl.arange(0, BLOCK)
        v = tl.load(x + o, mask=o < n, other=0).to(tl.int32)
        acc += tl.histogram(v, BINS, mask=o < n)
    tl.atomic_add(h + tl.arange(0, BINS), acc)


def case_histogram():
    n = pick(1 << 24, 1000)
    x = ri(0, 256, n, dtype=torch.uint8)
    for B, per, w in pick([(1024, 16, 4), (2048, 8, 8)], [(128, 2, 1)]):
        histo_local[(cd(n, B * per),)](x, torch.zeros(256, device=DEV, dtype=i32), n, 256,
                                       B, per, num_warps=w)


@triton.jit
def cholesky(a, l, N: tl.constexpr):
    # one matrix a program, column by column, all in registers
    b = tl.program_id(0)
    i = tl.arange(0, N)
    p = b * N * N + i[:, None] * N + i[None, :]
    m = tl.load(a + p)
    for k in range(N):
        col = tl.sum(tl.where(i[None, :] == k, m, 0.0), 1)
        d = tl.sqrt(tl.sum(tl.where(i == k, col, 0.0), 0))
        col = tl.where(i > k, col / d, tl.where(i == k, d, 0.0))
        m = tl.where(i[None, :] == k, col[:, None], m)
        low = tl.where(i > k, col, 0.0)
        m -= tl.where(i[None, :] > k, low[:, None] * low[None, :], 0.0)
    tl.store(l + p, tl.where(i[:, None] >= i[None, :], m, 0.0))


def case_cholesky():
    for N, w in pick([(16, 1), (32, 2), (64, 4)], [(16, 1)]):
        B = pick(4096, 3)
        a = rn(B, N, N, dtype=f32) * 0.3
        a = a @ a.transpose(1, 2) + 2 * torch.eye(N, device=DEV)
        cholesky[(B,)](a, ze(B, N, N), N, num_warps=w)


@triton.jit
def trsm(l, x, y, M, N: tl.constexpr, BM: tl.constexpr):
    # L y = x, forward substitution, the right sides in columns
    b = tl.program_id(1)
    c = tl.program_id(0) * BM + tl.arange(0, BM)
    i = tl.arange(0, N)
    m = (c < M)[None, :]
    v = tl.load(x + b * N * M + i[:, None] * M + c[None, :], mask=m, other=0.0)
    for k in range(N):
        lk = tl.load(l + b * N * N + i * N + k)
        d = tl.sum(tl.where(i == k, lk, 0.0), 0)
        row = tl.sum(tl.where(i[:, None] == k, v, 0.0), 0) / d
        v = tl.where(i[:, None] == k, row[None, :], v)
        v -= tl.where(i > k, lk, 0.0)[:, None] * row[None, :]
    tl.store(y + b * N * M + i[:, None] * M + c[None, :], v, mask=m)


def case_trsm():
    B, N, M = pick((256, 32, 500), (2, 16, 20))
    l = rn(B, N, N, dtype=f32) * 0.1 + 2 * torch.eye(N, device=DEV)
    x = rn(B, N, M, dtype=f32)
    for BM, w in pick([(64, 4), (32, 1)], [(16, 1)]):
        trsm[(cd(M, BM), B)](l, x, ze(B, N, M), M, N, BM, num_warps=w)


@triton.jit
def tiny_gemm(a, b, c, B, S: tl.constexpr, P: tl.constexpr, BB: tl.constexpr):
    # matrices of S x S (no power of two), many a program, without tl.dot
    q = (tl.program_id(0) * BB + tl.arange(0, BB))[:, None, None]
    i = tl.arange(0, P)[None, :, None]
    j = tl.arange(0, P)[None, None, :]
    ok = (q < B) & (i < S) & (j < S)
    acc = tl.zeros((BB, P, P), tl.float32)
    for k in tl.static_range(S):
        x = tl.load(a + q * S * S + i * S + k, mask=(q < B) & (i < S), other=0.0)
        y = tl.load(b + q * S * S + k * S + j, mask=(q < B) & (j < S), other=0.0)
        acc += x * y
    tl.store(c + q * S * S + i * S + j, acc, mask=ok)


def case_tiny_gemm():
    B = pick(200000, 50)
    for S, P, BB, w in ((3, 4, 64, 4), (6, 8, 16, 4)):
        a, b = rn(B, S, S, dtype=f32), rn(B, S, S, dtype=f32)
        tiny_gemm[(cd(B, BB),)](a, b, ze(B, S, S), B, S=S, P=P, BB=BB, num_warps=w)


@triton.jit
def mandelbrot(out, H, W, x0, y0, dx, dy, most, BH: tl.constexpr, BW: tl.constexpr):
    r = (tl.program_id(0) * BH + tl.arange(0, BH))[:, None]
    c = (tl.program_id(1) * BW + tl.arange(0, BW))[None, :]
    cx = x0 + c * dx + r * 0.0
    cy = y0 + r * dy + c * 0.0
    zx = tl.zeros((BH, BW), tl.float32)
    zy = tl.zeros((BH, BW), tl.float32)
    near = tl.full((BH, BW), 1e9, tl.float32)
    it = 0
    alive = 1
    while (it < most) & (alive > 0):
        t = zx * zx - zy * zy + cx
        zy = 2 * zx * zy + cy
        zx = tl.minimum(tl.maximum(t, -2.0), 2.0)
        zy = tl.minimum(tl.maximum(zy, -2.0), 2.0)
        near = tl.minimum(near, tl.abs(zx - 0.5) + tl.abs(zy))
        alive = tl.sum((tl.abs(zx) < 2.0).to(tl.int32).reshape([BH * BW]), 0)
        it += 1
    tl.store(out + r * W + c, near, mask=(r < H) & (c < W))


def case_mandelbrot():
    # few iterations: the orbits are chaotic, and sdc.compare looks at every pixel
    H, W = pick((2048, 3000), (20, 40))
    for BH, BW, w in pick([(16, 64, 4), (1, 512, 4), (32, 32, 8)], [(4, 16, 1)]):
        mandelbrot[(cd(H, BH), cd(W, BW))](ze(H, W), H, W, -2.0, -1.25, 3.0 / W, 2.5 / H,
                                           6, BH=BH, BW=BW, num_warps=w)


@triton.jit
def norm_cdf(x):
    return 0.5 * (1 + tl.erf(x * 0.7071067811865475))


@triton.jit
def black_scholes(S, K, T, r, v, call, put, n, BLOCK: tl.constexpr):
    o = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    s = tl.load(S + o, mask=m, other=1.0)
    k = tl.load(K + o, mask=m, other=1.0)
    t = tl.load(T + o, mask=m, other=1.0)
    sq = v * tl.sqrt(t)
    d1 = (tl.log(s / k) + (r + 0.5 * v * v) * t) / sq
    d2 = d1 - sq
    dis = k * tl.exp(-r * t)
    c = s * norm_cdf(d1) - dis * norm_cdf(d2)
    tl.store(call + o, c, mask=m)
    tl.store(put + o, c - s + dis, mask=m)


def case_black_scholes():
    n = pick(1 << 24, 1000)
    a = [torch.rand(n, device=DEV) + 0.5 for _ in range(3)]
    for B, w in ((256, 2), (1024, 4), (2048, 8)):
        black_scholes[(cd(n, B),)](*a, 0.02, 0.3, ze(n), ze(n), n, B, num_warps=w)


@triton.jit
def cdist_kernel(x, y, out, M, N, D, BM: tl.constexpr, BN: tl.constexpr,
                 BD: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    xx = tl.zeros((BM,), tl.float32)
    yy = tl.zeros((BN,), tl.float32)
    for d in range(0, D, BD):
        k = d + tl.arange(0, BD)
        a = tl.load(x + r[:, None] * D + k[None, :], mask=(r < M)[:, None] &
                    (k < D)[None, :], other=0.0)
        b = tl.load(y + c[:, None] * D + k[None, :], mask=(c < N)[:, None] &
                    (k < D)[None, :], other=0.0)
        xx += tl.sum(a.to(tl.float32) * a.to(tl.float32), 1)
        yy += tl.sum(b.to(tl.float32) * b.to(tl.float32), 1)
        acc = tl.dot(a, b.T, acc)
    d2 = tl.maximum(xx[:, None] + yy[None, :] - 2 * acc, 0.0)
    tl.store(out + r[:, None] * N + c[None, :], tl.sqrt(d2),
             mask=(r < M)[:, None] & (c < N)[None, :])


def case_cdist():
    M, N, D = pick((4000, 4100, 200), (40, 50, 20))
    x, y = rn(M, D, dtype=fp16), rn(N, D, dtype=fp16)
    for BM, BN, BD, w, s in pick([(64, 64, 32, 4, 3), (128, 64, 64, 4, 2),
                                  (32, 128, 32, 8, 4)], [(16, 32, 16, 2, 2)]):
        cdist_kernel[(cd(M, BM), cd(N, BN))](x, y, ze(M, N), M, N, D, BM, BN, BD,
                                             num_warps=w, num_stages=s)


@triton.jit
def l1_dist(x, y, out, M, N, D, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for d in range(D):
        a = tl.load(x + r * D + d, mask=r < M, other=0.0)
        b = tl.load(y + c * D + d, mask=c < N, other=0.0)
        acc += tl.abs(a[:, None] - b[None, :])
    tl.store(out + r[:, None] * N + c[None, :], acc, mask=(r < M)[:, None] &
             (c < N)[None, :])


def case_cdist_l1():
    M, N, D = pick((2000, 2000, 64), (20, 30, 9))
    x, y = rn(M, D, dtype=f32), rn(N, D, dtype=f32)
    for BM, BN, w in pick([(32, 32, 4), (64, 64, 4)], [(16, 16, 1)]):
        l1_dist[(cd(M, BM), cd(N, BN))](x, y, ze(M, N), M, N, D, BM=BM, BN=BN,
                                        num_warps=w)


@triton.jit
def kmeans_assign(x, cent, label, best, n, K, D: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):
    r = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    a = tl.load(x + r[:, None] * D + d[None, :], mask=(r < n)[:, None], other=0.0)
    lo = tl.full((BN,), float("inf"), tl.float32)
    arg = tl.zeros((BN,), tl.int32)
    for k in range(0, K, BK):
        c = k + tl.arange(0, BK)
        b = tl.load(cent + c[None, :] * D + d[:, None], mask=(c < K)[None, :], other=0.0)
        dist = tl.sum(b.to(tl.float32) * b.to(tl.float32), 0)[None, :] - 2 * tl.dot(a, b)
        dist = tl.where((c < K)[None, :], dist, float("inf"))
        v, i = tl.min(dist, 1, return_indices=True)
        arg = tl.where(v < lo, i + k, arg)
        lo = tl.minimum(lo, v)
    tl.store(label + r, arg, mask=r < n)
    tl.store(best + r, lo, mask=r < n)


def case_kmeans():
    # whole numbers, so that a tie is one on both sides
    n, K = pick((100000, 500), (100, 20))
    x, c = ri(-3, 4, n, 64).to(fp16), ri(-3, 4, K, 64).to(fp16)
    for BN, BK, w in pick([(64, 64, 4), (128, 32, 4), (32, 128, 4)], [(16, 16, 1)]):
        kmeans_assign[(cd(n, BN),)](x, c, torch.zeros(n, device=DEV, dtype=i32), ze(n), n,
                                    K, 64, BN=BN, BK=BK, num_warps=w)


@triton.jit
def min_plus(d, out, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.program_id(1) * BN + tl.arange(0, BN)
    best = tl.full((BM, BN), 1e30, tl.float32)
    for k0 in range(0, N, BK):
        k = k0 + tl.arange(0, BK)
        a = tl.load(d + r[:, None] * N + k[None, :], mask=(r < N)[:, None] &
                    (k < N)[None, :], other=1e30)
        b = tl.load(d + k[:, None] * N + c[None, :], mask=(k < N)[:, None] &
                    (c < N)[None, :], other=1e30)
        best = tl.minimum(best, tl.min(a[:, :, None] + b[None, :, :], 1))
    tl.store(out + r[:, None] * N + c[None, :], best, mask=(r < N)[:, None] &
             (c < N)[None, :])


def case_min_plus():
    N = pick(700, 40)
    d = torch.rand(N, N, device=DEV)
    for BM, BN, BK, w in pick([(32, 32, 8, 4), (16, 64, 4, 4)], [(16, 16, 4, 1)]):
        min_plus[(cd(N, BM), cd(N, BN))](d, ze(N, N), N, BM=BM, BN=BN, BK=BK,
                                         num_warps=w)


if __name__ == "__main__":
    run(globals())
