"""Quantizers, histograms, sums by index, sparse matrices, segments, distances."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from cases import case, cd, rn


@triton.jit
def quant_k(x, q, s, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * n + c, mask=c < n, other=0.0)
    a = tl.max(tl.abs(v), 0) / 127
    tl.store(s + r, a)
    y = v / a
    y = tl.where(y >= 0, y + 0.5, y - 0.5)
    tl.store(q + r * n + c, y.to(tl.int8), mask=c < n)


@case
def quant_rows_1000x1000():
    x = rn(1000, 1000)
    q = torch.empty(1000, 1000, dtype=torch.int8)
    s = torch.empty(1000)

    def t():
        a = x.abs().amax(1, keepdim=True) / 127
        return torch.round(x / a).to(torch.int8)

    return (
        (lambda: quant_k[(1000,)](x, q, s, 1000, 1024)),
        t,
        s,
        x.double().abs().amax(1) / 127,
    )


@triton.jit
def hist_k(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@case
def histogram_atomic():
    x = torch.randint(0, 256, (1 << 18,))
    o = torch.zeros(256, dtype=torch.int32)
    return (
        (lambda: hist_k[(256,)](x, o, 1 << 18, 1024)),
        (lambda: torch.bincount(x, minlength=256)),
        o,
        torch.bincount(x, minlength=256).double(),
    )


@triton.jit
def iadd_k(x, ix, o, D, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.atomic_add(
        o + tl.load(ix + r) * D + c,
        tl.load(x + r * D + c, mask=c < D, other=0.0),
        mask=c < D,
    )


@case
def index_add_2048x512():
    x = rn(2048, 512)
    i = torch.randint(0, 64, (2048,))
    o = torch.zeros(64, 512)
    o2 = torch.zeros(64, 512)
    return (
        (lambda: iadd_k[(2048,)](x, i, o, 512, 512)),
        (lambda: o2.index_add_(0, i, x)),
        o,
        None,
    )


@triton.jit
def spmv_k(ip, ix, va, x, y, B: tl.constexpr):
    r = tl.program_id(0)
    a = tl.load(ip + r)
    e = tl.load(ip + r + 1)
    acc = tl.zeros((B,), tl.float32)
    for j in range(a, e, B):
        c = j + tl.arange(0, B)
        m = c < e
        acc += tl.load(va + c, mask=m, other=0.0) * tl.load(
            x + tl.load(ix + c, mask=m, other=0), mask=m, other=0.0
        )
    tl.store(y + r, tl.sum(acc, 0))


@case
def spmv_csr_2000():
    A = (torch.rand(2000, 2000) < 0.02) * rn(2000, 2000)
    S = A.to_sparse_csr()
    x = rn(2000)
    y = torch.empty(2000)
    ip, ix, va = S.crow_indices().int(), S.col_indices().int(), S.values()
    return (
        (lambda: spmv_k[(2000,)](ip, ix, va, x, y, 32)),
        (lambda: S @ x),
        y,
        A.double() @ x.double(),
    )


@triton.jit
def segsum_k(x, off, o, D, BN: tl.constexpr, BD: tl.constexpr):
    s = tl.program_id(0)
    d = tl.arange(0, BD)
    a = tl.load(off + s)
    e = tl.load(off + s + 1)
    acc = tl.zeros((BD,), tl.float32)
    for j in range(a, e, BN):
        r = j + tl.arange(0, BN)
        acc += tl.sum(
            tl.load(x + r[:, None] * D + d[None, :], mask=(r < e)[:, None], other=0.0), 0
        )
    tl.store(o + s * D + d, acc)


@case
def segment_sum_100():
    x = rn(3000, 128)
    off = torch.sort(torch.randint(0, 3000, (99,)))[0]
    off = torch.cat((torch.tensor([0]), off, torch.tensor([3000]))).int()
    o = torch.empty(100, 128)
    L = (off[1:] - off[:-1]).long()
    return (
        (lambda: segsum_k[(100,)](x, off, o, 128, 16, 128)),
        (lambda: torch.segment_reduce(x, "sum", lengths=L)),
        o,
        torch.segment_reduce(x.double(), "sum", lengths=L),
    )


@triton.jit
def dist_k(x, y, o, N, M, D: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for d in range(D):
        t = tl.load(x + i * D + d)[:, None] - tl.load(y + j * D + d)[None, :]
        acc += t * t
    tl.store(o + i[:, None] * M + j[None, :], tl.sqrt(acc))


@case
def cdist_256_16():
    x, y = rn(256, 16), rn(256, 16)
    o = torch.empty(256, 256)
    return (
        (lambda: dist_k[(8, 8)](x, y, o, 256, 256, 16, 32)),
        (lambda: torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")),
        o,
        torch.cdist(x.double(), y.double()),
    )


@triton.jit
def bce_k(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(x + i, mask=m, other=0.0)
    t = tl.load(y + i, mask=m, other=0.0)
    l = tl.maximum(v, 0.0) - v * t + tl.log(1 + tl.exp(-tl.abs(v)))
    tl.atomic_add(o, tl.sum(tl.where(m, l, 0.0)))


@case
def bce_logits_sum():
    x, y = rn(200000), torch.rand(200000)
    o = torch.zeros(1)
    return (
        (lambda: bce_k[(cd(200000, 1024),)](x, y, o, 200000, 1024)),
        (lambda: F.binary_cross_entropy_with_logits(x, y, reduction="sum")),
        o,
        None,
    )


@triton.jit
def fwht_like(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * B + c)
    a, b = tl.split(tl.reshape(v, (B // 2, 2)))
    tl.store(o + r * B + c, tl.reshape(tl.join(a + b, a - b), (B,)))


@case
def butterfly_pairs():
    x = rn(500, 512)
    o = torch.empty_like(x)

    def t():
        a, b = x[:, ::2], x[:, 1::2]
        return torch.stack((a + b, a - b), -1).flatten(-2)

    return (lambda: fwht_like[(500,)](x, o, 512, 512)), t, o, t().double()


@triton.jit
def bilinear_k(x, o, H, W, OH, OW, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    ow = i % OW
    oh = i // OW % OH
    c = i // (OW * OH)
    fy = tl.maximum((oh.to(tl.float32) + 0.5) * H / OH - 0.5, 0.0)
    fx = tl.maximum((ow.to(tl.float32) + 0.5) * W / OW - 0.5, 0.0)
    y0 = fy.to(tl.int32)
    x0 = fx.to(tl.int32)
    y1 = tl.minimum(y0 + 1, H - 1)
    x1 = tl.minimum(x0 + 1, W - 1)
    wy = fy - y0
    wx = fx - x0
    b = x + c * H * W
    a = tl.load(b + y0 * W + x0, mask=m)
    bb = tl.load(b + y0 * W + x1, mask=m)
    cc = tl.load(b + y1 * W + x0, mask=m)
    dd = tl.load(b + y1 * W + x1, mask=m)
    tl.store(
        o + i,
        (a * (1 - wx) + bb * wx) * (1 - wy) + (cc * (1 - wx) + dd * wx) * wy,
        mask=m,
    )


@case
def bilinear_16x32_to_64():
    x = rn(1, 16, 32, 32)
    o = torch.empty(1, 16, 64, 64)
    n = o.numel()
    t = lambda x=x: F.interpolate(x, size=(64, 64), mode="bilinear")
    return (
        (lambda: bilinear_k[(cd(n, 512),)](x, o, 32, 32, 64, 64, n, 512)),
        t,
        o,
        t(x.double()),
    )


@triton.jit
def kl_k(p, q, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    acc = 0.0
    for i in range(0, n, B):
        c = i + tl.arange(0, B)
        a = tl.load(p + r * n + c, mask=c < n, other=0.0)
        b = tl.load(q + r * n + c, mask=c < n, other=0.0)
        acc += tl.sum(tl.where(c < n, tl.exp(b) * (b - a), 0.0), 0)
    tl.store(o + r, acc)


@case
def kl_div_512x1000():
    p, q = torch.log_softmax(rn(512, 1000), 1), torch.log_softmax(rn(512, 1000), 1)
    o = torch.empty(512)
    return (
        (lambda: kl_k[(512,)](p, q, o, 1000, 512)),
        (lambda: F.kl_div(p, q, log_target=True, reduction="none").sum(1)),
        o,
        F.kl_div(p.double(), q.double(), log_target=True, reduction="none").sum(1),
    )
