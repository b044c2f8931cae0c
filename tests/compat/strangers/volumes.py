"""Pictures, volumes and grids of fields as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, half, pick, ri, rn, run, ze

i32, u8 = torch.int32, torch.uint8


@triton.jit
def maxpool3d(x, y, where, D, H, W, OD, OH, OW, total, K: tl.constexpr, ST: tl.constexpr,
              B: tl.constexpr):
    # NCDHW, the place of the greatest beside it
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < total
    ow = o % OW
    oh = o // OW % OH
    od = o // (OW * OH) % OD
    nc = o // (OW * OH * OD)
    best = tl.full((B,), -float("inf"), tl.float32)
    at = tl.zeros((B,), tl.int32)
    for kd in tl.static_range(K):
        for kh in tl.static_range(K):
            for kw in tl.static_range(K):
                d, h, w = od * ST + kd, oh * ST + kh, ow * ST + kw
                ok = m & (d < D) & (h < H) & (w < W)
                p = (d * H + h) * W + w
                v = tl.load(x + nc * (D * H * W) + p, mask=ok, other=-float("inf"))
                v = v.to(tl.float32)
                at = tl.where(v > best, p, at)
                best = tl.maximum(best, v)
    tl.store(y + o, best.to(y.dtype.element_ty), mask=m)
    tl.store(where + o, at, mask=m)


def case_maxpool3d():
    NC, D = pick((256, 64), (3, 7))
    for K, ST, B, w in pick([(2, 2, 512, 4), (3, 2, 256, 4), (3, 1, 1024, 8)], [(2, 2, 64, 1)]):
        O = (D - K) // ST + 1
        t = NC * O ** 3
        maxpool3d[(cd(t, B),)](rn(NC, D, D, D, dtype=half), ze(t, dtype=half), ze(t, dtype=i32),
                               D, D, D, O, O, O, t, K, ST, B, num_warps=w)


@triton.jit
def avgpool_channels_last(x, y, D, H, W, OD, OH, OW, C, K: tl.constexpr, BC: tl.constexpr,
                          BW: tl.constexpr):
    # NDHWC: a row of results and a block of channels
    row = tl.program_id(0)
    oh = row % OH
    od = row // OH % OD
    n = row // (OH * OD)
    c = tl.program_id(1) * BC + tl.arange(0, BC)[None, :]
    ow = tl.program_id(2) * BW + tl.arange(0, BW)[:, None]
    acc = tl.zeros((BW, BC), tl.float32)
    for k in range(K * K * K):
        d = od * K + k // (K * K)
        h = oh * K + k // K % K
        w = ow * K + k % K
        p = ((n * D + d) * H + h) * W + w
        acc += tl.load(x + p * C + c, mask=(ow < OW) & (c < C), other=0.0).to(tl.float32)
    tl.store(y + (row * OW + ow) * C + c, (acc / (K * K * K)).to(y.dtype.element_ty),
             mask=(ow < OW) & (c < C))


def case_avgpool_channels_last():
    N, D, C, K = pick((8, 64, 96, 2), (2, 6, 20, 2))
    O = D // K
    for BC, BW, w in pick([(128, 8, 4), (32, 32, 4), (64, 16, 8)], [(16, 4, 1)]):
        avgpool_channels_last[(N * O * O, cd(C, BC), cd(O, BW))](
            rn(N, D, D, D, C, dtype=half), ze(N, O, O, O, C, dtype=half), D, D, D, O, O, O, C, K,
            BC, BW, num_warps=w)


@triton.jit
def col2im(col, x, C, H, W, P, Q, total, K: tl.constexpr, ST: tl.constexpr, PAD: tl.constexpr,
           B: tl.constexpr):
    # every pixel sums the columns that it was copied to
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < total
    w = o % W + PAD
    h = o // W % H + PAD
    nc = o // (W * H)
    acc = tl.zeros((B,), tl.float32)
    for kh in range(K):
        for kw in range(K):
            dh, dw = h - kh, w - kw
            p, q = dh // ST, dw // ST
            ok = m & (dh >= 0) & (dw >= 0) & (dh % ST == 0) & (dw % ST == 0) & (p < P) & (q < Q)
            at = ((nc * K + kh) * K + kw) * (P * Q) + p * Q + q
            acc += tl.load(col + at, mask=ok, other=0.0).to(tl.float32)
    tl.store(x + o, acc.to(x.dtype.element_ty), mask=m)


def case_col2im():
    NC, H, W = pick((512, 112, 112), (3, 9, 10))
    for K, ST, B, w in pick([(3, 1, 1024, 4), (4, 2, 512, 4), (7, 2, 256, 4)], [(3, 2, 64, 1)]):
        P, Q = (H + 2 - K) // ST + 1, (W + 2 - K) // ST + 1
        col2im[(cd(NC * H * W, B),)](rn(NC, K * K, P * Q, dtype=half), ze(NC, H, W, dtype=half),
                                     1, H, W, P, Q, NC * H * W, K, ST, 1, B, num_warps=w)


@triton.jit
def keys(t):
    # cubic convolution, a = -0.75
    a = tl.abs(t)
    near = ((1.25 * a - 2.25) * a) * a + 1.0
    far = ((-0.75 * a + 3.75) * a - 6.0) * a + 3.0
    return tl.where(a <= 1.0, near, tl.where(a < 2.0, far, 0.0))


@triton.jit
def bicubic(x, y, H, W, OH, OW, sh, sw, BH: tl.constexpr, BW: tl.constexpr):
    nc = tl.program_id(2)
    oh = tl.program_id(0) * BH + tl.arange(0, BH)
    ow = tl.program_id(1) * BW + tl.arange(0, BW)
    fy = (oh.to(tl.float32) + 0.5) * sh - 0.5
    fx = (ow.to(tl.float32) + 0.5) * sw - 0.5
    y0 = tl.floor(fy)
    x0 = tl.floor(fx)
    acc = tl.zeros((BH, BW), tl.float32)
    for i in tl.static_range(-1, 3):
        wy = keys(fy - (y0 + i))
        yy = tl.minimum(tl.maximum(y0.to(tl.int32) + i, 0), H - 1)
        line = tl.zeros((BH, BW), tl.float32)
        for j in tl.static_range(-1, 3):
            wx = keys(fx - (x0 + j))
            xx = tl.minimum(tl.maximum(x0.to(tl.int32) + j, 0), W - 1)
            v = tl.load(x + (nc * H + yy[:, None]) * W + xx[None, :]).to(tl.float32)
            line += v * wx[None, :]
        acc += line * wy[:, None]
    tl.store(y + (nc * OH + oh[:, None]) * OW + ow[None, :], acc.to(y.dtype.element_ty),
             mask=(oh < OH)[:, None] & (ow < OW)[None, :])


def case_bicubic():
    NC, H, W, OH, OW = pick((48, 256, 256, 500, 500), (2, 9, 10, 20, 17))
    for BH, BW, w in pick([(8, 128, 4), (16, 64, 4), (32, 32, 8)], [(8, 16, 1)]):
        bicubic[(cd(OH, BH), cd(OW, BW), NC)](rn(NC, H, W, dtype=half),
                                              ze(NC, OH, OW, dtype=half), H, W, OH, OW, H / OH,
                                              W / OW, BH, BW, num_warps=w)


@triton.jit
def roi_align(feat, rois, y, C, H, W, scale, P: tl.constexpr, S: tl.constexpr, BC: tl.constexpr):
    # one bin of one region a program, channels last, S x S samples
    roi = tl.program_id(0)
    py = tl.program_id(1) // P
    px = tl.program_id(1) % P
    c = tl.arange(0, BC)
    n = tl.load(rois + roi * 5).to(tl.int32)
    x1 = tl.load(rois + roi * 5 + 1) * scale - 0.5
    y1 = tl.load(rois + roi * 5 + 2) * scale - 0.5
    bw = (tl.load(rois + roi * 5 + 3) * scale - 0.5 - x1) / P
    bh = (tl.load(rois + roi * 5 + 4) * scale - 0.5 - y1) / P
    acc = tl.zeros((BC,), tl.float32)
    for iy in tl.static_range(S):
        for ix in tl.static_range(S):
            fy = y1 + bh * (py + (iy + 0.5) / S)
            fx = x1 + bw * (px + (ix + 0.5) / S)
            inside = (fy > -1.0) & (fy < H) & (fx > -1.0) & (fx < W)
            fy = tl.minimum(tl.maximum(fy, 0.0), H - 1.0)
            fx = tl.minimum(tl.maximum(fx, 0.0), W - 1.0)
            t, l = fy.to(tl.int32), fx.to(tl.int32)
            b, r = tl.minimum(t + 1, H - 1), tl.minimum(l + 1, W - 1)
            ly, lx = fy - t, fx - l
            m = inside & (c < C)
            base = feat + n * H * W * C + c
            v00 = tl.load(base + (t * W + l) * C, mask=m, other=0.0).to(tl.float32)
            v01 = tl.load(base + (t * W + r) * C, mask=m, other=0.0).to(tl.float32)
            v10 = tl.load(base + (b * W + l) * C, mask=m, other=0.0).to(tl.float32)
            v11 = tl.load(base + (b * W + r) * C, mask=m, other=0.0).to(tl.float32)
            acc += (v00 * (1 - lx) + v01 * lx) * (1 - ly) + (v10 * (1 - lx) + v11 * lx) * ly
    tl.store(y + (roi * P * P + tl.program_id(1)) * C + c,
             (acc / (S * S)).to(y.dtype.element_ty), mask=c < C)


def case_roi_align():
    R, N, H, C = pick((1000, 4, 128, 256), (4, 2, 10, 20))
    box = torch.rand(R, 5, device=DEV) * H * 2
    box[:, 0] = ri(0, N, R).float()
    box[:, 3:] += box[:, 1:3]
    for BC, w in pick([(256, 4), (256, 1), (256, 2)], [(32, 1)]):
        roi_align[(R, 49)](rn(N, H, H, C, dtype=half), box, ze(R, 49, C, dtype=half), C, H, H,
                           0.25, 7, 2, BC, num_warps=w)


@triton.jit
def grid_sample_bwd(x, g, dy, dx, dg, C, H, W, OHW, B: tl.constexpr):
    # gradients of a bilinear sampler: scattered to the picture, summed for the grid
    n = tl.program_id(1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < OHW
    gx = tl.load(g + (n * OHW + i) * 2, mask=m, other=0.0)
    gy = tl.load(g + (n * OHW + i) * 2 + 1, mask=m, other=0.0)
    fx = ((gx + 1) * W - 1) * 0.5
    fy = ((gy + 1) * H - 1) * 0.5
    x0 = tl.floor(fx).to(tl.int32)
    y0 = tl.floor(fy).to(tl.int32)
    wx = fx - x0.to(tl.float32)
    wy = fy - y0.to(tl.float32)
    ax = tl.zeros((B,), tl.float32)
    ay = tl.zeros((B,), tl.float32)
    for c in range(C):
        d = tl.load(dy + (n * C + c) * OHW + i, mask=m, other=0.0)
        for k in tl.static_range(4):
            xx = x0 + k % 2
            yy = y0 + k // 2
            ux = wx if k % 2 else 1 - wx
            uy = wy if k // 2 else 1 - wy
            ok = m & (xx >= 0) & (xx < W) & (yy >= 0) & (yy < H)
            at = ((n * C + c) * H + yy) * W + xx
            tl.atomic_add(dx + at, d * ux * uy, mask=ok, sem="relaxed")
            v = tl.load(x + at, mask=ok, other=0.0)
            ax += v * d * uy * (1.0 if k % 2 else -1.0)
            ay += v * d * ux * (1.0 if k // 2 else -1.0)
    tl.store(dg + (n * OHW + i) * 2, ax * W * 0.5, mask=m)
    tl.store(dg + (n * OHW + i) * 2 + 1, ay * H * 0.5, mask=m)


def case_grid_sample_bwd():
    N, C, H, O = pick((8, 16, 256, 65536), (2, 3, 8, 50))
    g = torch.rand(N, O, 2, device=DEV) * 2.2 - 1.1
    for B, w in pick([(256, 4), (128, 1), (512, 4)], [(32, 1)]):
        grid_sample_bwd[(cd(O, B), N)](rn(N, C, H, H, dtype=f32), g, rn(N, C, O, dtype=f32),
                                       ze(N, C, H, H), ze(N, O, 2), C, H, H, O, B, num_warps=w)


@triton.jit
def lap9(p, r, up, dn, c, lf, rt):
    s = tl.load(p + r + lf) + tl.load(p + r + rt) + tl.load(p + up + c) + tl.load(p + dn + c)
    d = tl.load(p + up + lf) + tl.load(p + up + rt) + tl.load(p + dn + lf) + tl.load(p + dn + rt)
    return 0.2 * s + 0.05 * d


@triton.jit
def gray_scott(u, v, u2, v2, H, W, feed, kill, BH: tl.constexpr, BW: tl.constexpr):
    # two fields that react, on a torus
    h = (tl.program_id(0) * BH + tl.arange(0, BH))[:, None]
    c = (tl.program_id(1) * BW + tl.arange(0, BW))[None, :]
    m = (h < H) & (c < W)
    h, c = h % H, c % W
    r = h * W
    up, dn = (h + H - 1) % H * W, (h + 1) % H * W
    lf, rt = (c + W - 1) % W, (c + 1) % W
    a = tl.load(u + r + c)
    b = tl.load(v + r + c)
    re = a * b * b
    tl.store(u2 + r + c, a + lap9(u, r, up, dn, c, lf, rt) - a - re + feed * (1 - a), mask=m)
    tl.store(v2 + r + c, b + 0.5 * (lap9(v, r, up, dn, c, lf, rt) - b) + re - (feed + kill) * b,
             mask=m)


def case_gray_scott():
    H, W = pick((2048, 2048), (10, 14))
    u, v = torch.rand(2, H, W, device=DEV)
    for BH, BW, w in pick([(8, 128, 4), (4, 256, 8), (16, 32, 4)], [(4, 8, 1)]):
        gray_scott[(cd(H, BH), cd(W, BW))](u, v, ze(H, W), ze(H, W), H, W, .055, .062, BH, BW,
                                           num_warps=w)


@triton.jit
def yee_step(ez, hx, hy, ez2, hx2, hy2, eps, NX, NY, dt, B: tl.constexpr):
    # electric field and both magnetic ones in one pass: the neighbours' new H again
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < NX * NY
    x = i // NY
    y = i % NY
    right = m & (x < NX - 1)
    up = m & (y < NY - 1)
    e = tl.load(ez + i, mask=m, other=0.0)
    nhx = tl.load(hx + i, mask=m, other=0.0) \
        - dt * (tl.load(ez + i + 1, mask=up, other=0.0) - e)
    nhy = tl.load(hy + i, mask=m, other=0.0) \
        + dt * (tl.load(ez + i + NY, mask=right, other=0.0) - e)
    left = m & (x > 0)
    down = m & (y > 0)
    lhy = tl.load(hy + i - NY, mask=left, other=0.0) \
        + dt * (e - tl.load(ez + i - NY, mask=left, other=0.0))
    dhx = tl.load(hx + i - 1, mask=down, other=0.0) \
        - dt * (e - tl.load(ez + i - 1, mask=down, other=0.0))
    curl = (nhy - tl.where(left, lhy, 0.0)) - (nhx - tl.where(down, dhx, 0.0))
    tl.store(ez2 + i, e + dt / tl.load(eps + i, mask=m, other=1.0) * curl, mask=m)
    tl.store(hx2 + i, nhx, mask=m)
    tl.store(hy2 + i, nhy, mask=m)


def case_yee_step():
    NX, NY = pick((4096, 4096), (13, 11))
    f = [rn(NX, NY, dtype=f32) for _ in range(3)]
    eps = torch.rand(NX, NY, device=DEV) + 1
    for B, w in pick([(1024, 4), (512, 4), (2048, 8)], [(64, 1)]):
        yee_step[(cd(NX * NY, B),)](*f, *[ze(NX, NY) for _ in range(3)], eps, NX, NY, .5, B,
                                    num_warps=w)


@triton.jit
def flux(h, hu, hv, g):
    u = hu / h
    return hu, hu * u + 0.5 * g * h * h, hv * u


@triton.jit
def shallow_water(q, out, NX, NY, lam, g, BX: tl.constexpr, BY: tl.constexpr):
    # Lax and Friedrichs along x and y; planes h, hu, hv of one array
    x = (tl.program_id(0) * BX + tl.arange(0, BX))[:, None]
    y = (tl.program_id(1) * BY + tl.arange(0, BY))[None, :]
    inside = (x > 0) & (x < NX - 1) & (y > 0) & (y < NY - 1)
    n = NX * NY
    at = x * NY + y
    e0 = tl.load(q + at + NY, mask=inside, other=1.0)
    e1 = tl.load(q + n + at + NY, mask=inside, other=0.0)
    e2 = tl.load(q + 2 * n + at + NY, mask=inside, other=0.0)
    w0 = tl.load(q + at - NY, mask=inside, other=1.0)
    w1 = tl.load(q + n + at - NY, mask=inside, other=0.0)
    w2 = tl.load(q + 2 * n + at - NY, mask=inside, other=0.0)
    n0 = tl.load(q + at + 1, mask=inside, other=1.0)
    n1 = tl.load(q + n + at + 1, mask=inside, other=0.0)
    n2 = tl.load(q + 2 * n + at + 1, mask=inside, other=0.0)
    s0 = tl.load(q + at - 1, mask=inside, other=1.0)
    s1 = tl.load(q + n + at - 1, mask=inside, other=0.0)
    s2 = tl.load(q + 2 * n + at - 1, mask=inside, other=0.0)
    fe, ge, he = flux(e0, e1, e2, g)
    fw, gw, hw = flux(w0, w1, w2, g)
    fn, hn, gn = flux(n0, n2, n1, g)
    fs, hs, gs = flux(s0, s2, s1, g)
    tl.store(out + at, 0.25 * (e0 + w0 + n0 + s0) - lam * (fe - fw + fn - fs), mask=inside)
    tl.store(out + n + at, 0.25 * (e1 + w1 + n1 + s1) - lam * (ge - gw + gn - gs), mask=inside)
    tl.store(out + 2 * n + at, 0.25 * (e2 + w2 + n2 + s2) - lam * (he - hw + hn - hs),
             mask=inside)


def case_shallow_water():
    NX, NY = pick((3000, 3000), (12, 17))
    q = rn(3, NX, NY, dtype=f32)
    q[0] = q[0].abs() + 1
    for BX, BY, w in pick([(4, 256, 4), (16, 64, 4), (8, 64, 1)], [(4, 8, 1)]):
        shallow_water[(cd(NX, BX), cd(NY, BY))](q, ze(3, NX, NY), NX, NY, .1, 9.81, BX, BY,
                                                num_warps=w)


@triton.jit
def channel_sums(x, dy, mean, rstd, db, dw, R, C, ROWS: tl.constexpr, BR: tl.constexpr,
                 BC: tl.constexpr):
    # batch norm backward of channels-last rows: parts of the rows, added by atomics
    c = tl.program_id(1) * BC + tl.arange(0, BC)[None, :]
    mu = tl.load(mean + c, mask=c < C, other=0.0)
    rs = tl.load(rstd + c, mask=c < C, other=0.0)
    sb = tl.zeros((BR, BC), tl.float32)
    sw = tl.zeros((BR, BC), tl.float32)
    for k in range(0, ROWS, BR):
        r = tl.program_id(0) * ROWS + k + tl.arange(0, BR)[:, None]
        m = (r < R) & (c < C)
        g = tl.load(dy + r * C + c, mask=m, other=0.0).to(tl.float32)
        v = tl.load(x + r * C + c, mask=m, other=0.0).to(tl.float32)
        sb += g
        sw += g * (v - mu) * rs
    c1 = tl.program_id(1) * BC + tl.arange(0, BC)
    tl.atomic_add(db + c1, tl.sum(sb, 0), mask=c1 < C, sem="relaxed")
    tl.atomic_add(dw + c1, tl.sum(sw, 0), mask=c1 < C, sem="relaxed")


def case_channel_sums():
    R, C = pick((65536, 320), (60, 20))
    for ROWS, BR, BC, w in pick([(512, 16, 64, 4), (256, 8, 128, 4), (1024, 64, 32, 8)],
                                [(16, 8, 16, 1)]):
        channel_sums[(cd(R, ROWS), cd(C, BC))](rn(R, C, dtype=half), rn(R, C, dtype=half),
                                               rn(C, dtype=f32), rn(C, dtype=f32), ze(C), ze(C),
                                               R, C, ROWS, BR, BC, num_warps=w)


@triton.jit
def local_response(x, y, C, HW, alpha, beta, k, N: tl.constexpr, BC: tl.constexpr,
                   BP: tl.constexpr):
    # AlexNet's: squares of N neighbouring channels
    c = (tl.program_id(1) * BC + tl.arange(0, BC))[:, None]
    p = (tl.program_id(0) * BP + tl.arange(0, BP))[None, :]
    base = tl.program_id(2) * C * HW
    s = tl.zeros((BC, BP), tl.float32)
    for d in range(-(N // 2), N // 2 + 1):
        v = tl.load(x + base + (c + d) * HW + p, mask=(c + d >= 0) & (c + d < C) & (p < HW),
                    other=0.0).to(tl.float32)
        s += v * v
    m = (c < C) & (p < HW)
    v = tl.load(x + base + c * HW + p, mask=m, other=0.0).to(tl.float32)
    tl.store(y + base + c * HW + p, (v * tl.exp(-beta * tl.log(k + alpha / N * s))).to(
        y.dtype.element_ty), mask=m)


def case_local_response():
    N, C, HW = pick((64, 96, 3025), (2, 9, 30))
    for BC, BP, w in pick([(16, 64, 4), (4, 256, 4), (32, 32, 8)], [(4, 16, 1)]):
        local_response[(cd(HW, BP), cd(C, BC), N)](rn(N, C, HW, dtype=half),
                                                   ze(N, C, HW, dtype=half), C, HW, 1e-4, .75,
                                                   2.0, 5, BC, BP, num_warps=w)


@triton.jit
def color_table(img, lut, out, HW, S: tl.constexpr, B: tl.constexpr):
    # planes of bytes through a cube of S^3 colors, trilinear
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < HW
    r = tl.load(img + i, mask=m, other=0).to(tl.float32) * ((S - 1) / 255.0)
    g = tl.load(img + HW + i, mask=m, other=0).to(tl.float32) * ((S - 1) / 255.0)
    b = tl.load(img + 2 * HW + i, mask=m, other=0).to(tl.float32) * ((S - 1) / 255.0)
    ri_ = tl.minimum(r.to(tl.int32), S - 2)
    gi = tl.minimum(g.to(tl.int32), S - 2)
    bi = tl.minimum(b.to(tl.int32), S - 2)
    fr, fg, fb = r - ri_, g - gi, b - bi
    for ch in tl.static_range(3):
        acc = tl.zeros((B,), tl.float32)
        for k in tl.static_range(8):
            w = (fr if k // 4 else 1 - fr) * (fg if k // 2 % 2 else 1 - fg)
            w *= fb if k % 2 else 1 - fb
            at = (((ri_ + k // 4) * S + gi + k // 2 % 2) * S + bi + k % 2) * 3 + ch
            acc += w * tl.load(lut + at, mask=m, other=0.0)
        acc = tl.minimum(tl.maximum(acc * 255.0 + 0.5, 0.0), 255.0)
        tl.store(out + ch * HW + i, acc.to(tl.uint8), mask=m)


def case_color_table():
    HW, S = pick((1 << 22, 33), (100, 5))
    lut = torch.rand(S, S, S, 3, device=DEV)
    for B, w in pick([(512, 4), (1024, 8), (256, 1)], [(64, 1)]):
        color_table[(cd(HW, B),)](ri(0, 256, 3, HW, dtype=u8), lut, ze(3, HW, dtype=u8), HW, S, B,
                                  num_warps=w)


@triton.jit
def ssim_rows(a, b, out, H, W, C1, C2, WIN: tl.constexpr, BH: tl.constexpr, BW: tl.constexpr):
    # uniform windows, five sums of each, and the mean of a block
    h = (tl.program_id(0) * BH + tl.arange(0, BH))[:, None]
    w = (tl.program_id(1) * BW + tl.arange(0, BW))[None, :]
    m = (h <= H - WIN) & (w <= W - WIN)
    sa = tl.zeros((BH, BW), tl.float32)
    sb = tl.zeros((BH, BW), tl.float32)
    saa = tl.zeros((BH, BW), tl.float32)
    sbb = tl.zeros((BH, BW), tl.float32)
    sab = tl.zeros((BH, BW), tl.float32)
    for i in range(WIN):
        for j in tl.static_range(WIN):
            at = (h + i) * W + w + j
            u = tl.load(a + at, mask=m, other=0).to(tl.float32)
            v = tl.load(b + at, mask=m, other=0).to(tl.float32)
            sa += u
            sb += v
            saa += u * u
            sbb += v * v
            sab += u * v
    k = 1.0 / (WIN * WIN)
    ma, mb = sa * k, sb * k
    va, vb, co = saa * k - ma * ma, sbb * k - mb * mb, sab * k - ma * mb
    s = (2 * ma * mb + C1) * (2 * co + C2) / ((ma * ma + mb * mb + C1) * (va + vb + C2))
    tl.store(out + tl.program_id(0) * tl.num_programs(1) + tl.program_id(1),
             tl.sum(tl.where(m, s, 0.0)))


def case_ssim_rows():
    H, W = pick((2160, 3840), (20, 30))
    for BH, BW, w in pick([(8, 128, 4), (16, 32, 4), (4, 128, 2)], [(4, 16, 1)]):
        ssim_rows[(cd(H, BH), cd(W, BW))](ri(0, 256, H, W, dtype=u8), ri(0, 256, H, W, dtype=u8),
                                          ze(cd(H, BH), cd(W, BW)), H, W, 6.5, 58.5, 7, BH, BW,
                                          num_warps=w)


@triton.jit
def deform_columns(x, off, col, C, H, W, K: tl.constexpr, BP: tl.constexpr):
    # deformable convolution: columns at places that another layer gives
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    k = tl.program_id(1)
    m = p < H * W
    oy = tl.load(off + (2 * k) * H * W + p, mask=m, other=0.0)
    ox = tl.load(off + (2 * k + 1) * H * W + p, mask=m, other=0.0)
    fy = (p // W - K // 2 + k // K).to(tl.float32) + oy
    fx = (p % W - K // 2 + k % K).to(tl.float32) + ox
    y0 = tl.floor(fy).to(tl.int32)
    x0 = tl.floor(fx).to(tl.int32)
    ly, lx = fy - y0.to(tl.float32), fx - x0.to(tl.float32)
    t = m & (y0 >= 0) & (y0 < H)
    b = m & (y0 >= -1) & (y0 < H - 1)
    l = (x0 >= 0) & (x0 < W)
    r = (x0 >= -1) & (x0 < W - 1)
    at = y0 * W + x0
    for c in range(C):
        q = x + c * H * W + at
        v = tl.load(q, mask=t & l, other=0.0) * ((1 - ly) * (1 - lx))
        v += tl.load(q + 1, mask=t & r, other=0.0) * ((1 - ly) * lx)
        v += tl.load(q + W, mask=b & l, other=0.0) * (ly * (1 - lx))
        v += tl.load(q + W + 1, mask=b & r, other=0.0) * (ly * lx)
        tl.store(col + (c * K * K + k) * H * W + p, v, mask=m)


def case_deform_columns():
    C, H = pick((64, 128), (3, 9))
    for BP, w in pick([(256, 4), (512, 4), (128, 2)], [(32, 1)]):
        deform_columns[(cd(H * H, BP), 9)](rn(C, H, H, dtype=f32), rn(18, H, H, dtype=f32),
                                           ze(C, 9, H, H), C, H, H, 3, BP, num_warps=w)


if __name__ == "__main__":
    run(globals())
