"""Vision as strangers write it: convolutions forward and backward, depthwise, Winograd, pooling,
filters, colours, batch and instance norms, sampling of grids, suppression of boxes.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import f32, fp16, half, pick, ri, rn, ze, cd, DEV, run


@triton.jit
def conv_nchw(x, w, b, y, N, C, H, W, K, P, Q, stride, pad, R: tl.constexpr,
              S: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # implicit GEMM: rows are output pixels, columns output channels
    pm = tl.program_id(0) * BM + tl.arange(0, BM)
    pn = tl.program_id(1) * BN + tl.arange(0, BN)
    q = pm % Q
    p = (pm // Q) % P
    n = pm // (P * Q)
    acc = tl.zeros((BM, BN), tl.float32)
    for c0 in range(0, C, BK):
        c = c0 + tl.arange(0, BK)
        for r in range(R):
            for s in range(S):
                ih = p * stride - pad + r
                iw = q * stride - pad + s
                ok = (n < N) & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
                xi = tl.load(x + ((n[:, None] * C + c[None, :]) * H + ih[:, None]) * W +
                             iw[:, None], mask=ok[:, None] & (c < C)[None, :], other=0.0)
                wi = tl.load(w + ((pn[None, :] * C + c[:, None]) * R + r) * S + s,
                             mask=(pn < K)[None, :] & (c < C)[:, None], other=0.0)
                acc += tl.dot(xi, wi)
    acc += tl.load(b + pn, mask=pn < K, other=0.0)[None, :]
    out = ((n[:, None] * K + pn[None, :]) * P + p[:, None]) * Q + q[:, None]
    tl.store(y + out, acc.to(y.dtype.element_ty),
             mask=(n < N)[:, None] & (pn < K)[None, :])


def case_conv_nchw():
    N, C, H, K, st = pick((16, 128, 28, 128, 1), (1, 8, 7, 9, 2))
    x, w, b = rn(N, C, H, H, dtype=fp16), rn(K, C, 3, 3, dtype=fp16), rn(K, dtype=f32)
    P = (H - 1) // st + 1
    for BM, BN, BK, wp, s in pick([(64, 64, 32, 4, 3), (128, 64, 32, 4, 2),
                                   (32, 32, 16, 2, 4)], [(16, 16, 16, 1, 2)]):
        conv_nchw[(cd(N * P * P, BM), cd(K, BN))](
            x, w, b, ze(N, K, P, P, dtype=fp16), N, C, H, H, K, P, P, st, 1, 3, 3, BM, BN,
            BK, num_warps=wp, num_stages=s)


@triton.jit
def conv_bwd_data(dy, w, dx, N, H, W, C, K, R: tl.constexpr, BM: tl.constexpr,
                  BN: tl.constexpr, BK: tl.constexpr):
    # NHWC, stride 1, "same" padding; the flat loop runs over taps and channels
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    iw = rm % W
    ih = rm // W % H
    n = rm // (H * W)
    kb = tl.cdiv(K, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, R * R * kb):
        tap = i // kb
        k = (i % kb) * BK + tl.arange(0, BK)
        oh = ih + R // 2 - tap // R
        ow = iw + R // 2 - tap % R
        ok = (n < N) & (oh >= 0) & (oh < H) & (ow >= 0) & (ow < W)
        g = tl.load(dy + ((n * H + oh) * W + ow)[:, None] * K + k[None, :],
                    mask=ok[:, None] & (k < K)[None, :], other=0.0)
        f = tl.load(w + (k[:, None] * R * R + tap) * C + rc[None, :],
                    mask=(k < K)[:, None] & (rc < C)[None, :], other=0.0)
        acc = tl.dot(g, f, acc)
    tl.store(dx + rm[:, None] * C + rc[None, :], acc.to(dx.dtype.element_ty),
             mask=(n < N)[:, None] & (rc < C)[None, :])


def case_conv_bwd_data():
    N, H, C, K = pick((16, 28, 128, 256), (1, 6, 20, 17))
    dy, w = rn(N, H, H, K, dtype=half), rn(K, 3, 3, C, dtype=half, scale=0.05)
    for BM, BN, BK, wp, s in pick([(128, 128, 32, 8, 3), (64, 64, 64, 4, 3)],
                                  [(16, 16, 16, 1, 2)]):
        conv_bwd_data[(cd(N * H * H, BM), cd(C, BN))](
            dy, w, ze(N, H, H, C, dtype=half), N, H, H, C, K, 3, BM, BN, BK, num_warps=wp,
            num_stages=s)


@triton.jit
def conv_bwd_weight(x, dy, dw, N, H, W, C, K, PER, R: tl.constexpr, BC: tl.constexpr,
                    BK: tl.constexpr, BP: tl.constexpr):
    # a program has a tap, a tile of C x K and a part of the pixels; parts are added
    tap = tl.program_id(0) % (R * R)
    part = tl.program_id(0) // (R * R)
    rk = tl.program_id(1) * BK + tl.arange(0, BK)
    rc = tl.program_id(2) * BC + tl.arange(0, BC)
    acc = tl.zeros((BK, BC), tl.float32)
    for p0 in range(part * PER, part * PER + PER, BP):
        p = p0 + tl.arange(0, BP)
        ow = p % W
        oh = (p // W) % H
        n = p // (W * H)
        ih = oh - R // 2 + tap // R
        iw = ow - R // 2 + tap % R
        ok = (n < N) & (p < part * PER + PER)
        g = tl.load(dy + p[:, None] * K + rk[None, :],
                    mask=ok[:, None] & (rk < K)[None, :], other=0.0)
        inside = ok & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
        a = tl.load(x + ((n * H + ih) * W + iw)[:, None] * C + rc[None, :],
                    mask=inside[:, None] & (rc < C)[None, :], other=0.0)
        acc += tl.dot(tl.trans(g), a)
    tl.atomic_add(dw + (rk[:, None] * R * R + tap) * C + rc[None, :], acc,
                  mask=(rk < K)[:, None] & (rc < C)[None, :])


def case_conv_bwd_weight():
    N, H, C, K, parts = pick((16, 28, 128, 128, 8), (1, 6, 20, 17, 2))
    x, dy = rn(N, H, H, C, dtype=fp16), rn(N, H, H, K, dtype=fp16)
    per = cd(N * H * H, parts)
    for BC, BK, BP, wp, s in pick([(64, 64, 32, 4, 3), (128, 64, 64, 8, 2)],
                                  [(16, 16, 16, 1, 2)]):
        conv_bwd_weight[(9 * parts, cd(K, BK), cd(C, BC))](
            x, dy, ze(K, 3, 3, C), N, H, H, C, K, per, 3, BC, BK, BP, num_warps=wp,
            num_stages=s)


@triton.jit
def depthwise(x, w, b, y, C, H, W, R: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    nc = tl.program_id(2)
    h = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    c = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    base = x + nc.to(tl.int64) * H * W
    acc = tl.zeros((BH, BW), tl.float32)
    for i in tl.static_range(R):
        for j in tl.static_range(R):
            hh = h + i - R // 2
            ww = c + j - R // 2
            v = tl.load(base + hh * W + ww,
                        mask=(hh >= 0) & (hh < H) & (ww >= 0) & (ww < W), other=0.0)
            acc += v * tl.load(w + (nc % C) * R * R + i * R + j)
    acc += tl.load(b + nc % C)
    acc = tl.minimum(tl.maximum(acc, 0.0), 6.0)
    tl.store(y + nc.to(tl.int64) * H * W + h * W + c, acc, mask=(h < H) & (c < W))


def case_depthwise():
    N, C, H = pick((32, 192, 56), (2, 3, 9))
    for R in pick((3, 5), (3,)):
        x, w, b = rn(N, C, H, H, dtype=fp16), rn(C, R, R, dtype=fp16), rn(C, dtype=fp16)
        for BH, BW, wp in pick([(8, 64, 4), (16, 16, 1)], [(4, 16, 1)]):
            depthwise[(cd(H, BH), cd(H, BW), N * C)](x, w, b, torch.empty_like(x), C, H, H,
                                                     R=R, BH=BH, BW=BW, num_warps=wp)


@triton.jit
def winograd_in(x, v, C, H, W, TH, TW, T, BT: tl.constexpr):
    # F(2x2, 3x3): tiles of 4x4, B^T d B, the 16 planes apart
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    c = tl.program_id(1)
    n = t // (TH * TW)
    h = (t // TW) % TH * 2 - 1
    w = t % TW * 2 - 1
    i = tl.arange(0, 4)
    hh = h[:, None, None] + i[None, :, None]
    ww = w[:, None, None] + i[None, None, :]
    ok = (t < T)[:, None, None] & (hh >= 0) & (hh < H) & (ww >= 0) & (ww < W)
    d = tl.load(x + ((n[:, None, None] * C + c) * H + hh) * W + ww, mask=ok, other=0.0)
    d = d.to(tl.float32)
    e = tl.where(i == 0, 1.0, 0.0)
    d0 = tl.sum(d * e[None, :, None], 1)
    d1 = tl.sum(d * tl.where(i == 1, 1.0, 0.0)[None, :, None], 1)
    d2 = tl.sum(d * tl.where(i == 2, 1.0, 0.0)[None, :, None], 1)
    d3 = tl.sum(d * tl.where(i == 3, 1.0, 0.0)[None, :, None], 1)
    o = c * T + t
    for r in tl.static_range(4):
        row = d0 - d2 if r == 0 else (
            d1 + d2 if r == 1 else (d2 - d1 if r == 2 else d1 - d3))
        a0 = tl.sum(row * e[None, :], 1)
        a1 = tl.sum(row * tl.where(i == 1, 1.0, 0.0)[None, :], 1)
        a2 = tl.sum(row * tl.where(i == 2, 1.0, 0.0)[None, :], 1)
        a3 = tl.sum(row * tl.where(i == 3, 1.0, 0.0)[None, :], 1)
        tl.store(v + (r * 4 + 0) * C * T + o, a0 - a2, mask=t < T)
        tl.store(v + (r * 4 + 1) * C * T + o, a1 + a2, mask=t < T)
        tl.store(v + (r * 4 + 2) * C * T + o, a2 - a1, mask=t < T)
        tl.store(v + (r * 4 + 3) * C * T + o, a1 - a3, mask=t < T)


def case_winograd():
    N, C, H = pick((16, 64, 56), (1, 3, 8))
    x = rn(N, C, H, H, dtype=fp16)
    T = N * (H // 2) ** 2
    for BT, wp in pick([(128, 4), (32, 1)], [(16, 1)]):
        winograd_in[(cd(T, BT), C)](x, ze(16, C, T), C, H, H, H // 2, H // 2, T, BT,
                                    num_warps=wp)


@triton.jit
def avgpool_bwd(dy, dx, H, W, P, Q, total, K: tl.constexpr, ST: tl.constexpr,
                BLOCK: tl.constexpr):
    # each input pixel sums over the windows that it lies in
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < total
    w = o % W
    h = (o // W) % H
    nc = o // (W * H)
    acc = tl.zeros((BLOCK,), tl.float32)
    p1 = h // ST
    q1 = w // ST
    for i in tl.static_range((K + ST - 1) // ST):
        for j in tl.static_range((K + ST - 1) // ST):
            p = p1 - i
            q = q1 - j
            ok = m & (p >= 0) & (p < P) & (q >= 0) & (q < Q)
            ok = ok & (h - p * ST < K) & (w - q * ST < K)
            acc += tl.load(dy + (nc * P + p) * Q + q, mask=ok, other=0.0)
    tl.store(dx + o, acc / (K * K), mask=m)


def case_avgpool_bwd():
    N, C, H = pick((32, 64, 112), (1, 3, 11))
    P = (H - 3) // 2 + 1
    dy = rn(N, C, P, P, dtype=f32)
    for B, wp in ((512, 4), (1024, 8)):
        avgpool_bwd[(cd(N * C * H * H, B),)](dy, ze(N, C, H, H), H, H, P, P,
                                             N * C * H * H, 3, 2, B, num_warps=wp)


@triton.jit
def global_pool(x, y, HW, R, BR: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    acc = tl.zeros((BR, BLOCK), tl.float32)
    hi = tl.full((BR, BLOCK), float("-inf"), tl.float32)
    for k in range(0, HW, BLOCK):
        o = k + tl.arange(0, BLOCK)
        m = (r < R)[:, None] & (o < HW)[None, :]
        p = x + r[:, None] * HW + o[None, :]
        v = tl.load(p, mask=m, other=0.0, eviction_policy="evict_first").to(tl.float32)
        acc += v
        hi = tl.maximum(hi, tl.where(m, v, float("-inf")))
    tl.store(y + r * 2, tl.sum(acc, 1) / HW, mask=r < R)
    tl.store(y + r * 2 + 1, tl.max(hi, 1), mask=r < R)


def case_global_pool():
    R, HW = pick((64 * 2048, 49), (20, 49))
    x = rn(R, HW, dtype=fp16)
    for BR, B, wp in pick([(32, 64, 4), (1, 64, 1), (8, 32, 2)], [(4, 32, 1)]):
        global_pool[(cd(R, BR),)](x, ze(R, 2), HW, R, BR, B, num_warps=wp)


@triton.jit
def gray_norm(img, out, HW, mean, std, BLOCK: tl.constexpr):
    # uint8 HWC to planes of halves, and a gray one
    b = tl.program_id(1)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < HW
    p = img + (b * HW + o) * 3
    r = tl.load(p, mask=m, other=0).to(tl.float32) / 255.0
    g = tl.load(p + 1, mask=m, other=0).to(tl.float32) / 255.0
    u = tl.load(p + 2, mask=m, other=0).to(tl.float32) / 255.0
    q = out + b * 4 * HW + o
    tl.store(q, ((r - mean) / std).to(tl.float16), mask=m)
    tl.store(q + HW, ((g - mean) / std).to(tl.float16), mask=m)
    tl.store(q + 2 * HW, ((u - mean) / std).to(tl.float16), mask=m)
    tl.store(q + 3 * HW, (0.299 * r + 0.587 * g + 0.114 * u).to(tl.float16), mask=m)


def case_colour():
    B, HW = pick((32, 720 * 1280), (2, 100))
    img = ri(0, 256, B, HW, 3, dtype=torch.uint8)
    for BL, wp in ((256, 4), (1024, 4)):
        gray_norm[(cd(HW, BL), B)](img, ze(B, 4, HW, dtype=fp16), HW, 0.45, 0.22,
                                   BLOCK=BL, num_warps=wp)


@triton.jit
def blur_sobel(x, y, H, W, BH: tl.constexpr, BW: tl.constexpr):
    h = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    w = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    gx = tl.zeros((BH, BW), tl.float32)
    gy = tl.zeros((BH, BW), tl.float32)
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            hh = tl.minimum(tl.maximum(h + i - 1, 0), H - 1)  # the border is repeated
            ww = tl.minimum(tl.maximum(w + j - 1, 0), W - 1)
            v = tl.load(x + hh * W + ww)
            gx += v * ((j - 1) * (2 if i == 1 else 1))
            gy += v * ((i - 1) * (2 if j == 1 else 1))
    tl.store(y + h * W + w, tl.sqrt(gx * gx + gy * gy), mask=(h < H) & (w < W))


def case_sobel():
    H, W = pick((2160, 3840), (30, 50))
    x = rn(H, W, dtype=f32)
    for BH, BW, wp in pick([(16, 64, 4), (8, 128, 8), (32, 32, 4)], [(4, 32, 1)]):
        blur_sobel[(cd(H, BH), cd(W, BW))](x, ze(H, W), H, W, BH=BH, BW=BW, num_warps=wp)


@triton.jit
def bn_stats(x, mean, rstd, N, C, HW, eps, BLOCK: tl.constexpr):
    # a channel a program, NCHW
    c = tl.program_id(0)
    s = tl.zeros((BLOCK,), tl.float32)
    q = tl.zeros((BLOCK,), tl.float32)
    for n in range(N):
        for k in range(0, HW, BLOCK):
            o = k + tl.arange(0, BLOCK)
            v = tl.load(x + (n * C + c) * HW + o, mask=o < HW, other=0.0).to(tl.float32)
            s += v
            q += v * v
    mu = tl.sum(s) / (N * HW)
    tl.store(mean + c, mu)
    tl.store(rstd + c, tl.rsqrt(tl.sum(q) / (N * HW) - mu * mu + eps))


@triton.jit
def bn_bwd(x, dy, w, mean, rstd, dx, dw, db, N, C, HW, BLOCK: tl.constexpr):
    c = tl.program_id(0)
    mu = tl.load(mean + c)
    rs = tl.load(rstd + c)
    g = tl.zeros((BLOCK,), tl.float32)
    h = tl.zeros((BLOCK,), tl.float32)
    for i in range(0, N * HW, BLOCK):
        o = i + tl.arange(0, BLOCK)
        m = o < N * HW
        p = (o // HW * C + c) * HW + o % HW
        d = tl.load(dy + p, mask=m, other=0.0).to(tl.float32)
        g += d
        h += d * (tl.load(x + p, mask=m, other=0.0).to(tl.float32) - mu) * rs
    gs = tl.sum(g)
    hs = tl.sum(h)
    tl.store(dw + c, hs)
    tl.store(db + c, gs)
    k = tl.load(w + c).to(tl.float32) * rs
    for i in range(0, N * HW, BLOCK):
        o = i + tl.arange(0, BLOCK)
        m = o < N * HW
        p = (o // HW * C + c) * HW + o % HW
        d = tl.load(dy + p, mask=m, other=0.0).to(tl.float32)
        xh = (tl.load(x + p, mask=m, other=0.0).to(tl.float32) - mu) * rs
        tl.store(dx + p, k * (d - (gs + xh * hs) / (N * HW)), mask=m)


def case_batch_norm():
    N, C, HW = pick((32, 256, 28 * 28), (2, 3, 30))
    x, dy, w = rn(N, C, HW, dtype=fp16), rn(N, C, HW, dtype=fp16), rn(C)
    mu, rs = ze(C), ze(C) + 1
    for B, wp in ((1024, 4), (4096, 8)):
        bn_stats[(C,)](x, mu, rs, N, C, HW, 1e-5, B, num_warps=wp)
        bn_bwd[(C,)](x, dy, w, mu, rs, torch.empty_like(x), ze(C), ze(C), N, C, HW, B,
                     num_warps=wp)


@triton.jit
def instance_norm(x, w, b, y, C, HW, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    m = o < HW
    v = tl.load(x + i * HW + o, mask=m, other=0.0).to(tl.float32)
    mu = tl.sum(v, axis=0) / HW
    d = tl.where(m, v - mu, 0.0)
    rs = 1.0 / tl.sqrt(tl.sum(d * d, axis=0) / HW + eps)
    r = d * rs * tl.load(w + i % C) + tl.load(b + i % C)
    tl.store(y + i * HW + o, tl.where(r > 0, r, 0.2 * r), mask=m)


def case_instance_norm():
    N, C, HW = pick((16, 256, 3136), (2, 3, 50))
    x, w, b = rn(N, C, HW, dtype=f32), rn(C, dtype=f32), rn(C, dtype=f32)
    for wp in (2, 4, 8):
        instance_norm[(N * C,)](x, w, b, torch.empty_like(x), C, HW, 1e-5,
                                triton.next_power_of_2(HW), num_warps=wp)


@triton.jit
def grid_sample(x, g, y, C, H, W, OHW, BP: tl.constexpr, BC: tl.constexpr):
    n = tl.program_id(1)
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    m = p < OHW
    fx = (tl.load(g + (n * OHW + p) * 2, mask=m, other=0.0) + 1) * 0.5 * (W - 1)
    fy = (tl.load(g + (n * OHW + p) * 2 + 1, mask=m, other=0.0) + 1) * 0.5 * (H - 1)
    x0 = tl.floor(fx)
    y0 = tl.floor(fy)
    ax = fx - x0
    ay = fy - y0
    for c0 in range(0, C, BC):
        c = c0 + tl.arange(0, BC)
        acc = tl.zeros((BP, BC), tl.float32)
        for k in tl.static_range(4):
            ix = x0.to(tl.int32) + k % 2
            iy = y0.to(tl.int32) + k // 2
            wt = (ax if k % 2 == 1 else 1 - ax) * (ay if k // 2 == 1 else 1 - ay)
            ok = m & (ix >= 0) & (ix < W) & (iy >= 0) & (iy < H)
            v = tl.load(x + ((n * H + iy) * W + ix)[:, None] * C + c[None, :],
                        mask=ok[:, None] & (c < C)[None, :], other=0.0)
            acc += v * wt[:, None]
        tl.store(y + (n * OHW + p)[:, None] * C + c[None, :], acc, mask=m[:, None] &
                 (c < C)[None, :])


def case_grid_sample():
    N, C, H = pick((8, 64, 128), (2, 5, 9))
    x, g = rn(N, H, H, C), torch.rand(N, H * H, 2, device=DEV) * 2.1 - 1.05
    for BP, BC, wp in pick([(32, 64, 4), (16, 32, 4), (128, 16, 4)], [(8, 4, 1)]):
        grid_sample[(cd(H * H, BP), N)](x, g, torch.empty_like(x), C, H, H, H * H, BP=BP,
                                        BC=BC, num_warps=wp)


@triton.jit
def nms_mask(box, out, n, thr, BI: tl.constexpr, BJ: tl.constexpr):
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    j = tl.program_id(1) * BJ + tl.arange(0, BJ)
    a0 = tl.load(box + i * 4, mask=i < n, other=0.0)[:, None]
    a1 = tl.load(box + i * 4 + 1, mask=i < n, other=0.0)[:, None]
    a2 = tl.load(box + i * 4 + 2, mask=i < n, other=0.0)[:, None]
    a3 = tl.load(box + i * 4 + 3, mask=i < n, other=0.0)[:, None]
    b0 = tl.load(box + j * 4, mask=j < n, other=0.0)[None, :]
    b1 = tl.load(box + j * 4 + 1, mask=j < n, other=0.0)[None, :]
    b2 = tl.load(box + j * 4 + 2, mask=j < n, other=0.0)[None, :]
    b3 = tl.load(box + j * 4 + 3, mask=j < n, other=0.0)[None, :]
    w = tl.maximum(tl.minimum(a2, b2) - tl.maximum(a0, b0), 0.0)
    h = tl.maximum(tl.minimum(a3, b3) - tl.maximum(a1, b1), 0.0)
    inter = w * h
    union = (a2 - a0) * (a3 - a1) + (b2 - b0) * (b3 - b1) - inter
    hit = (inter > thr * union) & (i[:, None] < j[None, :])
    tl.store(out + i[:, None] * n + j[None, :], hit.to(tl.int8), mask=(i < n)[:, None] &
             (j < n)[None, :])


def case_nms():
    n = pick(6000, 50)
    lo = ri(0, 40, n, 2).float()
    box = torch.cat([lo, lo + ri(20, 60, n, 2).float()], 1)
    for BI, BJ, wp in pick([(64, 64, 4), (16, 128, 4), (32, 32, 2)], [(16, 16, 1)]):
        nms_mask[(cd(n, BI), cd(n, BJ))](box, ze(n, n, dtype=torch.int8), n, 0.5, BI=BI,
                                         BJ=BJ, num_warps=wp)


if __name__ == "__main__":
    run(globals())
