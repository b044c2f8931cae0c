"""Sums and windows: reductions, group norm, pooling, convolutions."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from cases import CASES, bf16, case, cd, f32, rn


@triton.jit
def rowsum_k(x, o, M, N, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM, BN), tl.float32)
    for j in range(0, N, BN):
        c = j + tl.arange(0, BN)
        acc += tl.load(
            x + r[:, None] * N + c[None, :],
            mask=(r < M)[:, None] & (c < N)[None, :],
            other=0.0,
        ).to(tl.float32)
    tl.store(o + r, tl.sum(acc, 1), mask=r < M)


@triton.jit
def colsum_k(x, o, M, N, BM: tl.constexpr, BN: tl.constexpr):
    c = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN,), tl.float32)
    for j in range(0, M, BM):
        r = j + tl.arange(0, BM)
        acc += tl.sum(
            tl.load(
                x + r[:, None] * N + c[None, :],
                mask=(r < M)[:, None] & (c < N)[None, :],
                other=0.0,
            ).to(tl.float32),
            0,
        )
    tl.store(o + c, acc, mask=c < N)


for dt in (f32, bf16):

    def c(dt=dt):
        x = rn(1000, 1000, dt=dt)
        o = torch.empty(1000)
        return (
            (lambda: rowsum_k[(125,)](x, o, 1000, 1000, 8, 128)),
            (lambda: x.sum(1, dtype=f32)),
            o,
            x.double().sum(1),
        )

    c.__name__ = f"rowsum_8x128_{dt}"
    CASES.append(c)

    def c(dt=dt):
        x = rn(1000, 1000, dt=dt)
        o = torch.empty(1000)
        return (
            (lambda: colsum_k[(16,)](x, o, 1000, 1000, 64, 64)),
            (lambda: x.sum(0, dtype=f32)),
            o,
            x.double().sum(0),
        )

    c.__name__ = f"colsum_64x64_{dt}"
    CASES.append(c)


@triton.jit
def gn_k(x, w, b, o, CG, HW, G, eps, B: tl.constexpr):
    p = tl.program_id(0)
    g = p % G
    n = CG * HW
    s = 0.0
    q = 0.0
    for i in range(0, n, B):
        c = i + tl.arange(0, B)
        v = tl.load(x + p * n + c, mask=c < n, other=0.0)
        s += tl.sum(v)
        q += tl.sum(v * v)
    mu = s / n
    rs = tl.rsqrt(q / n - mu * mu + eps)
    for i in range(0, n, B):
        c = i + tl.arange(0, B)
        ch = g * CG + c // HW
        v = tl.load(x + p * n + c, mask=c < n, other=0.0)
        tl.store(
            o + p * n + c,
            (v - mu) * rs * tl.load(w + ch, mask=c < n) + tl.load(b + ch, mask=c < n),
            mask=c < n,
        )


for H in (32, 15):

    def c(H=H):
        x = rn(4, 64, H, H)
        w, b = rn(64), rn(64)
        o = torch.empty_like(x)
        return (
            (lambda: gn_k[(32,)](x, w, b, o, 8, H * H, 8, 1e-5, 1024)),
            (lambda: F.group_norm(x, 8, w, b)),
            o,
            F.group_norm(x.double(), 8, w.double(), b.double()),
        )

    c.__name__ = f"groupnorm_{H}"
    CASES.append(c)


@triton.jit
def maxpool_k(x, o, H, W, OH, OW, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    ow = i % OW
    oh = i // OW % OH
    c = i // (OW * OH)
    v = tl.full((B,), -float("inf"), tl.float32)
    for a in tl.static_range(2):
        for b in tl.static_range(2):
            v = tl.maximum(
                v,
                tl.load(
                    x + (c * H + oh * 2 + a) * W + ow * 2 + b, mask=m, other=-float("inf")
                ),
            )
    tl.store(o + i, v, mask=m)


@case
def maxpool_64x56x56():
    x = rn(1, 64, 56, 56)
    o = torch.empty(1, 64, 28, 28)
    n = o.numel()
    return (
        (lambda: maxpool_k[(cd(n, 512),)](x, o, 56, 56, 28, 28, n, 512)),
        (lambda: F.max_pool2d(x, 2)),
        o,
        F.max_pool2d(x, 2).double(),
    )


@triton.jit
def conv3_k(x, w, o, C, K, H, W, BK: tl.constexpr, BW: tl.constexpr):
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    h = tl.program_id(1)
    ww = tl.program_id(2) * BW + tl.arange(0, BW)
    acc = tl.zeros((BK, BW), tl.float32)
    for c in range(C):
        for a in tl.static_range(3):
            for b in tl.static_range(3):
                y = h + a - 1
                z = ww + b - 1
                v = tl.load(
                    x + (c * H + y) * W + z,
                    mask=(y >= 0) & (y < H) & (z >= 0) & (z < W),
                    other=0.0,
                )
                acc += tl.load(w + (k * C + c) * 9 + a * 3 + b)[:, None] * v[None, :]
    tl.store(o + (k[:, None] * H + h) * W + ww[None, :], acc, mask=(ww < W)[None, :])


@case
def conv3x3_direct_8x32():
    x = rn(1, 8, 64, 64)
    w = rn(16, 8, 3, 3)
    o = torch.empty(1, 16, 64, 64)
    return (
        (lambda: conv3_k[(2, 64, 2)](x, w, o, 8, 16, 64, 64, 8, 32)),
        (lambda: F.conv2d(x, w, padding=1)),
        o,
        F.conv2d(x.double(), w.double(), padding=1),
    )


@triton.jit
def conv_mm(x, w, o, C, K, H, W, BK: tl.constexpr, BP: tl.constexpr, BC: tl.constexpr):
    k = tl.program_id(0) * BK + tl.arange(0, BK)
    p = tl.program_id(1) * BP + tl.arange(0, BP)
    h = p // W
    ww = p % W
    acc = tl.zeros((BK, BP), tl.float32)
    for q in range(9):
        a = q // 3
        b = q % 3
        y = h + a - 1
        z = ww + b - 1
        ok = (y >= 0) & (y < H) & (z >= 0) & (z < W)
        for c0 in range(0, C, BC):
            c = c0 + tl.arange(0, BC)
            wt = tl.load(w + (k[:, None] * C + c[None, :]) * 9 + q)
            v = tl.load(
                x + c[:, None] * (H * W) + (y * W + z)[None, :],
                mask=ok[None, :],
                other=0.0,
            )
            acc = tl.dot(wt, v, acc, input_precision="ieee")
    tl.store(o + k[:, None] * (H * W) + p[None, :], acc)


@case
def conv3x3_dot_64x64x32():
    x = rn(1, 32, 32, 32)
    w = rn(64, 32, 3, 3)
    o = torch.empty(1, 64, 32, 32)
    return (
        (lambda: conv_mm[(1, 16)](x, w, o, 32, 64, 32, 32, 64, 64, 32)),
        (lambda: F.conv2d(x, w, padding=1)),
        o,
        F.conv2d(x.double(), w.double(), padding=1),
    )


@triton.jit
def dw1d_k(x, w, o, T, D, BT: tl.constexpr, BD: tl.constexpr):
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    acc = tl.zeros((BT, BD), tl.float32)
    for j in tl.static_range(4):
        s = t + j - 3
        acc += (
            tl.load(x + s[:, None] * D + d[None, :], mask=(s >= 0)[:, None], other=0.0)
            * tl.load(w + d * 4 + j)[None, :]
        )
    tl.store(o + t[:, None] * D + d[None, :], acc * tl.sigmoid(acc))


@case
def causal_conv1d():
    x = rn(1024, 256)
    w = rn(256, 4)
    o = torch.empty_like(x)
    X = x.t().contiguous()[None]
    W = w[:, None]
    t = lambda: F.silu(F.conv1d(X, W, padding=3, groups=256)[..., :1024])
    return (
        (lambda: dw1d_k[(64, 4)](x, w, o, 1024, 256, 16, 64)),
        t,
        o,
        t()[0].t().double(),
    )
