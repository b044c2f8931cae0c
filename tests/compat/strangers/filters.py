"""Transforms and filters of signals and images as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import math

import torch
import triton
import triton.language as tl
from made import cd, f32, fp16, pick, ri, rn, run, ze

i32, u8, i16 = torch.int32, torch.uint8, torch.int16


@triton.jit
def cmul(ar, ai, br, bi):
    return ar * br - ai * bi, ar * bi + ai * br


@triton.jit
def fft4_stage(xr, xi, yr, yi, n, s, SIGN: tl.constexpr, B: tl.constexpr):
    # one Stockham stage of radix 4 over many signals: n points left, stride s
    t = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.program_id(1) * n * s
    m = n // 4
    ok = t < m * s
    p, q = t // s, t % s
    at = row + q + s * p
    ar, ai = tl.load(xr + at, mask=ok), tl.load(xi + at, mask=ok)
    br, bi = tl.load(xr + at + s * m, mask=ok), tl.load(xi + at + s * m, mask=ok)
    cr, ci = tl.load(xr + at + 2 * s * m, mask=ok), tl.load(xi + at + 2 * s * m, mask=ok)
    dr, di = tl.load(xr + at + 3 * s * m, mask=ok), tl.load(xi + at + 3 * s * m, mask=ok)
    theta = 6.283185307179586 * p.to(tl.float32) / n
    wr, wi = tl.cos(theta), SIGN * tl.sin(theta)
    w2r, w2i = cmul(wr, wi, wr, wi)
    w3r, w3i = cmul(w2r, w2i, wr, wi)
    apcr, apci, amcr, amci = ar + cr, ai + ci, ar - cr, ai - ci
    bpdr, bpdi = br + dr, bi + di
    jr, ji = -SIGN * (bi - di), SIGN * (br - dr)
    out = row + q + s * 4 * p
    tl.store(yr + out, apcr + bpdr, mask=ok)
    tl.store(yi + out, apci + bpdi, mask=ok)
    r, i = cmul(amcr + jr, amci + ji, wr, wi)
    tl.store(yr + out + s, r, mask=ok)
    tl.store(yi + out + s, i, mask=ok)
    r, i = cmul(apcr - bpdr, apci - bpdi, w2r, w2i)
    tl.store(yr + out + 2 * s, r, mask=ok)
    tl.store(yi + out + 2 * s, i, mask=ok)
    r, i = cmul(amcr - jr, amci - ji, w3r, w3i)
    tl.store(yr + out + 3 * s, r, mask=ok)
    tl.store(yi + out + 3 * s, i, mask=ok)


def case_fft4():
    R, N = pick((512, 4096), (3, 64))
    xr, xi = rn(R, N, dtype=f32), rn(R, N, dtype=f32)
    yr, yi = torch.empty_like(xr), torch.empty_like(xi)
    n, s = N, 1
    while n > 1:
        fft4_stage[(cd(N // 4, 256), R)](xr, xi, yr, yi, n, s, -1, 256, num_warps=4)
        xr, xi, yr, yi = yr, yi, xr, xi
        n, s = n // 4, s * 4


@triton.jit
def stage(re, im, h: tl.constexpr, N: tl.constexpr):
    ar, br = tl.split(tl.trans(tl.reshape(re, (N // (2 * h), 2, h)), 0, 2, 1))
    ai, bi = tl.split(tl.trans(tl.reshape(im, (N // (2 * h), 2, h)), 0, 2, 1))
    a = tl.arange(0, h).to(tl.float32) * (-3.141592653589793 / h)
    tr, ti = cmul(br, bi, tl.cos(a)[None, :], tl.sin(a)[None, :])
    re = tl.reshape(tl.trans(tl.join(ar + tr, ar - tr), 0, 2, 1), (N,))
    im = tl.reshape(tl.trans(tl.join(ai + ti, ai - ti), 0, 2, 1), (N,))
    return re, im


@triton.jit
def fft_tile(x, o, N: tl.constexpr, LOG: tl.constexpr):
    # the whole signal in a program: bits reversed by the loads, butterflies by reshape
    row = tl.program_id(0) * N * 2
    i = tl.arange(0, N)
    rev = tl.zeros((N,), tl.int32)
    for b in tl.static_range(LOG):
        rev |= ((i >> b) & 1) << (LOG - 1 - b)
    re = tl.load(x + row + 2 * rev)
    im = tl.load(x + row + 2 * rev + 1)
    for b in tl.static_range(LOG):
        re, im = stage(re, im, 1 << b, N)
    tl.store(o + row + tl.arange(0, 2 * N), tl.interleave(re, im))


def case_fft_tile():
    for R, N, w in pick([(8192, 256, 1), (4096, 1024, 4), (1024, 4096, 8)],
                        [(3, 16, 1), (2, 128, 2)]):
        fft_tile[(R,)](rn(R, N, 2, dtype=f32), ze(R, N, 2), N, int(math.log2(N)), num_warps=w)


@triton.jit
def goertzel(x, freqs, o, n, F, B: tl.constexpr):
    f = tl.program_id(1) * B + tl.arange(0, B)
    row = tl.program_id(0)
    w = tl.load(freqs + f, mask=f < F, other=0.0)
    c = 2.0 * tl.cos(w)
    s1 = tl.zeros((B,), tl.float32)
    s2 = tl.zeros((B,), tl.float32)
    for t in range(n):
        v = tl.load(x + row * n + t)
        s0 = v + c * s1 - s2
        s2 = s1
        s1 = s0
    tl.store(o + row * F + f, s1 * s1 + s2 * s2 - c * s1 * s2, mask=f < F)


def case_goertzel():
    R, n, F = pick((256, 2000, 500), (3, 37, 20))
    for B, w in pick([(128, 4), (512, 4)], [(32, 1)]):
        goertzel[(R, cd(F, B))](rn(R, n, dtype=f32), rn(F, dtype=f32).abs(), ze(R, F), n, F, B,
                                num_warps=w)


@triton.jit
def compose(a11, a12, a21, a22, b1, b2, c11, c12, c21, c22, d1, d2):
    # (C, d) after (A, b): x -> C (A x + b) + d
    return (c11 * a11 + c12 * a21, c11 * a12 + c12 * a22,
            c21 * a11 + c22 * a21, c21 * a12 + c22 * a22,
            c11 * b1 + c12 * b2 + d1, c21 * b1 + c22 * b2 + d2)


@triton.jit
def biquad(x, y, n, b0, b1, b2, a1, a2, B: tl.constexpr):
    # second order sections in direct form, states by a scan of 2x2 maps
    row = tl.program_id(0) * n
    s1 = 0.0
    s2 = 0.0
    for start in range(0, n, B):
        t = start + tl.arange(0, B)
        v = tl.load(x + row + t, mask=t < n, other=0.0)
        one = tl.full((B,), 1.0, tl.float32)
        m11, m12, m21, m22, u1, u2 = tl.associative_scan(
            (one * -a1, one, one * -a2, one * 0.0, (b1 - a1 * b0) * v, (b2 - a2 * b0) * v),
            0, compose)
        n1 = m11 * s1 + m12 * s2 + u1
        n2 = m21 * s1 + m22 * s2 + u2
        # the state before each sample
        at = tl.maximum(tl.arange(0, B) - 1, 0)
        before = tl.where(tl.arange(0, B) == 0, s1, tl.gather(n1, at, 0))
        tl.store(y + row + t, b0 * v + before, mask=t < n)
        last = tl.arange(0, B) == B - 1
        s1 = tl.sum(tl.where(last, n1, 0.0))
        s2 = tl.sum(tl.where(last, n2, 0.0))


def case_biquad():
    R, n = pick((1024, 16000), (3, 100))
    for B, w in pick([(512, 4), (1024, 8)], [(32, 1), (64, 2)]):
        biquad[(R,)](rn(R, n, dtype=f32), ze(R, n), n, 0.2, 0.3, 0.2, -0.9, 0.3, B, num_warps=w)


@triton.jit
def bilateral(x, y, H, W, inv_s, inv_r, RAD: tl.constexpr, BH: tl.constexpr,
              BW: tl.constexpr):
    r = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    c = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    ok = (r < H) & (c < W)
    center = tl.load(x + r * W + c, mask=ok, other=0.0)
    acc = tl.zeros((BH, BW), tl.float32)
    norm = tl.zeros((BH, BW), tl.float32)
    for dy in range(-RAD, RAD + 1):
        for dx in tl.static_range(-RAD, RAD + 1):
            rr = tl.minimum(tl.maximum(r + dy, 0), H - 1)
            cc = tl.minimum(tl.maximum(c + dx, 0), W - 1)
            v = tl.load(x + rr * W + cc)
            d = v - center
            g = tl.exp(-(dy * dy + dx * dx) * inv_s - d * d * inv_r)
            acc += g * v
            norm += g
    tl.store(y + r * W + c, acc / norm, mask=ok)


def case_bilateral():
    H, W = pick((2160, 3840), (37, 50))
    for BH, BW, w in pick([(8, 64, 4), (4, 128, 4), (16, 64, 8)], [(8, 32, 4)]):
        bilateral[(cd(H, BH), cd(W, BW))](rn(H, W, dtype=f32), ze(H, W), H, W, 0.1, 2.0, 3, BH,
                                          BW, num_warps=w)


@triton.jit
def canny_thin(gx, gy, out, H, W, B: tl.constexpr):
    # edges that are maxima along their gradient, of its eight directions
    i = tl.program_id(0) * B + tl.arange(0, B)
    ok = i < H * W
    r = i // W
    c = i - r * W
    x = tl.load(gx + i, mask=ok, other=0).to(tl.float32)
    y = tl.load(gy + i, mask=ok, other=0).to(tl.float32)
    m = tl.sqrt(x * x + y * y)
    ax, ay = tl.abs(x), tl.abs(y)
    dr = tl.where(ay < 0.41421356 * ax, 0, tl.where(y > 0, 1, -1))
    dc = tl.where(ax < 0.41421356 * ay, 0, tl.where(x > 0, 1, -1))
    inside = ok & (r > 0) & (r < H - 1) & (c > 0) & (c < W - 1)
    j = i + dr * W + dc
    k = i - dr * W - dc
    xa = tl.load(gx + j, mask=inside, other=0).to(tl.float32)
    ya = tl.load(gy + j, mask=inside, other=0).to(tl.float32)
    xb = tl.load(gx + k, mask=inside, other=0).to(tl.float32)
    yb = tl.load(gy + k, mask=inside, other=0).to(tl.float32)
    keep = (m >= tl.sqrt(xa * xa + ya * ya)) & (m > tl.sqrt(xb * xb + yb * yb)) & inside
    tl.store(out + i, tl.where(keep, tl.minimum(m, 255.0), 0.0).to(tl.uint8), mask=ok)


def case_canny():
    H, W = pick((2160, 3840), (41, 33))
    gx, gy = ri(-200, 200, H, W, dtype=i16), ri(-200, 200, H, W, dtype=i16)
    for B, w in pick([(512, 4), (1024, 4)], [(128, 4)]):
        canny_thin[(cd(H * W, B),)](gx, gy, ze(H, W, dtype=u8), H, W, B, num_warps=w)


@triton.jit
def dilate(x, y, H, W, K: tl.constexpr, ERODE: tl.constexpr, BH: tl.constexpr,
           BW: tl.constexpr):
    r = tl.program_id(1) * BH + tl.arange(0, BH)[:, None]
    c = tl.program_id(0) * BW + tl.arange(0, BW)[None, :]
    best = tl.full((BH, BW), 255 if ERODE else 0, tl.uint8)
    for dy in tl.static_range(-(K // 2), K // 2 + 1):
        for dx in tl.static_range(-(K // 2), K // 2 + 1):
            inside = (r + dy >= 0) & (r + dy < H) & (c + dx >= 0) & (c + dx < W)
            v = tl.load(x + (r + dy) * W + c + dx, mask=inside, other=255 if ERODE else 0)
            best = tl.minimum(best, v) if ERODE else tl.maximum(best, v)
    tl.store(y + r * W + c, best, mask=(r < H) & (c < W))


def case_dilate():
    H, W = pick((2160, 3840), (40, 70))
    x = ri(0, 256, H, W, dtype=u8)
    for K, erode, BH, BW, w in pick([(3, False, 8, 128, 4), (5, True, 4, 256, 4)],
                                    [(3, True, 8, 32, 1), (5, False, 4, 64, 4)]):
        dilate[(cd(W, BW), cd(H, BH))](x, ze(H, W, dtype=u8), H, W, K, erode, BH, BW,
                                       num_warps=w)


@triton.jit
def equalize(x, hist, y, n, BINS: tl.constexpr, B: tl.constexpr):
    # each program makes the table again, and looks its pixels up in it
    h = tl.load(hist + tl.arange(0, BINS))
    cdf = tl.cumsum(h, 0)
    low = tl.min(tl.where(h > 0, cdf, n + 1), 0)
    lut = ((cdf - low).to(tl.float32) / tl.maximum(n - low, 1) * (BINS - 1) + 0.5).to(tl.int32)
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0).to(tl.int32)
    tl.store(y + i, tl.gather(tl.maximum(lut, 0), v, 0).to(tl.uint8), mask=i < n)


def case_equalize():
    n = pick(3840 * 2160, 1000)
    x = ri(0, 256, n, dtype=u8)
    hist = torch.zeros(256, dtype=i32, device=x.device)
    hist.index_add_(0, x.long().flatten(), torch.ones_like(x, dtype=i32))
    for B, w in pick([(1024, 4), (4096, 8)], [(256, 4)]):
        equalize[(cd(n, B),)](x, hist, ze(n, dtype=u8), n, 256, B, num_warps=w)


@triton.jit
def dct8x8(x, basis, q, y, H, W, BLOCKS: tl.constexpr):
    # JPEG: 8x8 blocks beside their table; a batch of small products
    b = tl.program_id(0) * BLOCKS + tl.arange(0, BLOCKS)
    wide = W // 8
    r = (b // wide) * 8
    c = (b % wide) * 8
    k = tl.arange(0, 8)
    at = (r[:, None, None] + k[None, :, None]) * W + c[:, None, None] + k[None, None, :]
    ok = (r < H)[:, None, None]
    v = tl.load(x + at, mask=ok, other=128).to(tl.float32) - 128.0
    m = tl.load(basis + k[:, None] * 8 + k[None, :])
    # m v m^T
    t = tl.sum(m[None, :, :, None] * v[:, None, :, :], axis=2)
    u = tl.sum(t[:, :, None, :] * m[None, None, :, :], axis=3)
    s = tl.load(q + k[:, None] * 8 + k[None, :])
    tl.store(y + at, (u / s[None, :, :]).to(tl.float16), mask=ok)


def case_dct():
    H, W = pick((2160, 3840), (16, 40))
    k = torch.arange(8, dtype=f32)
    basis = torch.cos((2 * k[None, :] + 1) * k[:, None] * math.pi / 16) / 2
    basis[0] /= math.sqrt(2)
    x = ri(0, 256, H, W, dtype=u8)
    q = ri(1, 50, 8, 8).float()
    for N, w in pick([(16, 4), (32, 4)], [(4, 1), (8, 4)]):
        dct8x8[(cd(H * W // 64, N),)](x, basis.to(x.device), q, ze(H, W, dtype=fp16), H, W, N,
                                      num_warps=w)


@triton.jit
def lift53(x, lo, hi, n, B: tl.constexpr):
    # LeGall 5/3 wavelet by lifting, mirrored at the ends
    row = tl.program_id(1)
    half = n // 2
    i = tl.program_id(0) * B + tl.arange(0, B)
    ok = i < half
    x += row * n
    e0 = tl.load(x + 2 * i, mask=ok, other=0)
    o0 = tl.load(x + 2 * i + 1, mask=ok, other=0)
    e1 = tl.load(x + 2 * tl.minimum(i + 1, half - 1), mask=ok, other=0)
    em = tl.load(x + 2 * tl.maximum(i - 1, 0), mask=ok, other=0)
    om = tl.load(x + 2 * tl.maximum(i - 1, 0) + 1, mask=ok, other=0)
    d = o0 - ((e0 + e1) >> 1)
    dm = tl.where(i == 0, d, om - ((em + e0) >> 1))
    tl.store(hi + row * half + i, d, mask=ok)
    tl.store(lo + row * half + i, e0 + ((d + dm + 2) >> 2), mask=ok)


def case_lift():
    R, n = pick((2160, 3840), (5, 60))
    for B, w in pick([(512, 4), (1024, 4)], [(32, 1)]):
        lift53[(cd(n // 2, B), R)](ri(-255, 256, R, n), ze(R, n // 2, dtype=i32),
                                   ze(R, n // 2, dtype=i32), n, B, num_warps=w)


@triton.jit
def resample(x, taps, y, n, m, UP, DOWN, T: tl.constexpr, B: tl.constexpr):
    # polyphase: y[j] = sum_t taps[phase, t] x[base - t]
    j = tl.program_id(0) * B + tl.arange(0, B)
    row = tl.program_id(1).to(tl.int64)
    p = j * DOWN
    phase, base = p % UP, p // UP
    acc = tl.zeros((B,), tl.float32)
    for t in range(T):
        k = base - t
        acc += tl.load(taps + phase * T + t) * tl.load(x + row * n + k, mask=(k >= 0) & (k < n),
                                                       other=0.0)
    tl.store(y + row * m + j, acc, mask=j < m)


def case_resample():
    R, n = pick((64, 160000), (2, 100))
    m = n * 3 // 2
    for B, w in pick([(256, 4), (1024, 8)], [(64, 2)]):
        resample[(cd(m, B), R)](rn(R, n, dtype=f32), rn(3, 24, dtype=f32), ze(R, m), n, m, 3, 2,
                                24, B, num_warps=w)


@triton.jit
def least_beside(lab, img, at, r, c, H, W, ok, mine, new, dr: tl.constexpr, dc: tl.constexpr):
    near = ok & (r + dr >= 0) & (r + dr < H) & (c + dc >= 0) & (c + dc < W)
    same = tl.load(img + at + dr * W + dc, mask=near, other=-2) == mine
    seen = tl.load(lab + at + dr * W + dc, mask=near & same, other=0x7fffffff)
    return tl.where(same, tl.minimum(new, seen), new)


@triton.jit
def label_step(lab, img, changed, H, W, BH: tl.constexpr, BW: tl.constexpr):
    # connected components: the least label of the neighbours of one color
    r = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    c = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    at = r * W + c
    ok = (r < H) & (c < W)
    mine = tl.load(img + at, mask=ok, other=-1)
    old = tl.load(lab + at, mask=ok, other=0x7fffffff)
    new = old
    for d in tl.static_range(4):
        new = least_beside(lab, img, at, r, c, H, W, ok, mine, new, (d == 0) - (d == 1),
                           (d == 2) - (d == 3))
    tl.atomic_add(changed, tl.sum((new < old).to(tl.int32)))
    tl.store(lab + H * W + at, new, mask=ok)


def case_label():
    H, W = pick((2048, 2048), (20, 30))
    lab = torch.arange(H * W, dtype=i32, device=ri(0, 2, 1).device).repeat(2)
    for BH, BW, w in pick([(8, 128, 4), (32, 32, 4)], [(8, 16, 1)]):
        label_step[(cd(H, BH), cd(W, BW))](lab, ri(0, 2, H, W), ze(1, dtype=i32), H, W, BH, BW,
                                           num_warps=w)


@triton.jit
def hough(xs, ys, count, acc, T, R, B: tl.constexpr):
    # votes of the edge points for lines (theta, rho)
    i = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.load(count)
    ok = i < n
    x = tl.load(xs + i, mask=ok, other=0).to(tl.float32)
    y = tl.load(ys + i, mask=ok, other=0).to(tl.float32)
    for t in range(T):
        a = t * (3.14159265 / T)
        rho = x * tl.cos(a) + y * tl.sin(a)
        at = tl.floor(rho + 0.5).to(tl.int32) + R // 2
        tl.atomic_add(acc + t * R + at, 1, mask=ok & (at >= 0) & (at < R))


def case_hough():
    n, T, R = pick((20000, 180, 4096), (100, 12, 64))
    top = pick(1400, 20)
    for B, w in pick([(128, 4), (256, 8)], [(64, 2)]):
        hough[(cd(n, B),)](ri(0, top, n), ri(0, top, n), torch.full_like(ri(0, 2, 1), n - 7),
                           ze(T, R, dtype=i32), T, R, B, num_warps=w)


if __name__ == "__main__":
    run(globals())
