"""Numbers that move: rotary embeddings, gathers, scatters, transposes."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from cases import CASES, bf16, case, cd, f32, rn


@triton.jit
def rope_half(q, cos, sin, o, H, D: tl.constexpr):
    t = tl.program_id(0)
    h = tl.arange(0, D // 2)
    c = tl.load(cos + t * (D // 2) + h)
    s = tl.load(sin + t * (D // 2) + h)
    for j in range(H):
        b = (t * H + j) * D
        x1 = tl.load(q + b + h).to(tl.float32)
        x2 = tl.load(q + b + D // 2 + h).to(tl.float32)
        tl.store(o + b + h, x1 * c - x2 * s)
        tl.store(o + b + D // 2 + h, x2 * c + x1 * s)


@triton.jit
def rope_pairs(q, cos, sin, o, H: tl.constexpr, D: tl.constexpr):
    t = tl.program_id(0)
    h = tl.arange(0, D // 2)
    j = tl.arange(0, H)
    c = tl.load(cos + t * (D // 2) + h)[None, :]
    s = tl.load(sin + t * (D // 2) + h)[None, :]
    b = q + t * H * D + j[:, None] * D + 2 * h[None, :]
    x1 = tl.load(b).to(tl.float32)
    x2 = tl.load(b + 1).to(tl.float32)
    e = o + t * H * D + j[:, None] * D + 2 * h[None, :]
    tl.store(e, x1 * c - x2 * s)
    tl.store(e + 1, x2 * c + x1 * s)


for dt in (f32, bf16):

    def c(dt=dt):
        T, H, D = 512, 16, 64
        q = rn(T, H, D, dt=dt)
        an = torch.rand(T, D // 2) * 6
        C, S = an.cos(), an.sin()
        o = torch.empty_like(q)

        def t(q=q, C=C, S=S):
            x1, x2 = q[..., :32], q[..., 32:]
            c, s = C[:, None].to(q.dtype), S[:, None].to(q.dtype)
            return torch.cat((x1 * c - x2 * s, x2 * c + x1 * s), -1)

        return (
            (lambda: rope_half[(T,)](q, C, S, o, H, D)),
            t,
            o,
            t(q.double(), C.double(), S.double()),
        )

    c.__name__ = f"rope_half_{dt}"
    CASES.append(c)

    def c(dt=dt):
        T, H, D = 512, 16, 64
        q = rn(T, H, D, dt=dt)
        an = torch.rand(T, D // 2) * 6
        C, S = an.cos(), an.sin()
        o = torch.empty_like(q)

        def t(q=q, C=C, S=S):
            x1, x2 = q[..., ::2], q[..., 1::2]
            c, s = C[:, None].to(q.dtype), S[:, None].to(q.dtype)
            return torch.stack((x1 * c - x2 * s, x2 * c + x1 * s), -1).flatten(-2)

        return (
            (lambda: rope_pairs[(T,)](q, C, S, o, H, D)),
            t,
            o,
            t(q.double(), C.double(), S.double()),
        )

    c.__name__ = f"rope_pairs_{dt}"
    CASES.append(c)


@triton.jit
def embed_k(ix, w, o, D, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    i = tl.load(ix + r)
    tl.store(o + r * D + c, tl.load(w + i * D + c, mask=c < D), mask=c < D)


@triton.jit
def embed_t(ix, w, o, n, D, BM: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    i = tl.load(ix + r, mask=r < n, other=0)
    for c0 in range(0, D, B):
        c = c0 + tl.arange(0, B)
        m = (r < n)[:, None] & (c < D)[None, :]
        tl.store(
            o + r[:, None] * D + c[None, :],
            tl.load(w + i[:, None] * D + c[None, :], mask=m),
            mask=m,
        )


@case
def embedding_2048x512():
    w = rn(5000, 512)
    i = torch.randint(0, 5000, (2048,))
    o = torch.empty(2048, 512)
    return (
        (lambda: embed_k[(2048,)](i, w, o, 512, 512)),
        (lambda: F.embedding(i, w)),
        o,
        w[i].double(),
    )


@case
def embedding_tiles_16x64():
    w = rn(5000, 512)
    i = torch.randint(0, 5000, (2048,))
    o = torch.empty(2048, 512)
    return (
        (lambda: embed_t[(128,)](i, w, o, 2048, 512, 16, 64)),
        (lambda: F.embedding(i, w)),
        o,
        w[i].double(),
    )


@case
def embedding_tiles_32x128_b():
    w = rn(5000, 500, dt=bf16)
    i = torch.randint(0, 5000, (2048,))
    o = torch.empty(2048, 500, dtype=bf16)
    return (
        (lambda: embed_t[(64,)](i, w, o, 2048, 500, 32, 128)),
        (lambda: F.embedding(i, w)),
        o,
        w[i].double(),
    )


@triton.jit
def gather_k(x, ix, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + tl.load(ix + i, mask=m, other=0), mask=m), mask=m)


@triton.jit
def scatter_k(x, ix, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + tl.load(ix + i, mask=m, other=0), tl.load(x + i, mask=m), mask=m)


@case
def gather_100000():
    x = rn(50000)
    i = torch.randint(0, 50000, (100000,))
    o = torch.empty(100000)
    return (
        (lambda: gather_k[(cd(100000, 1024),)](x, i, o, 100000, 1024)),
        (lambda: x[i]),
        o,
        x[i].double(),
    )


@case
def gather_100000_i32():
    x = rn(50000)
    i = torch.randint(0, 50000, (100000,), dtype=torch.int32)
    o = torch.empty(100000)
    return (
        (lambda: gather_k[(cd(100000, 1024),)](x, i, o, 100000, 1024)),
        (lambda: torch.index_select(x, 0, i)),
        o,
        x[i.long()].double(),
    )


@case
def scatter_100000():
    x = rn(100000)
    i = torch.randperm(100000)
    o = torch.empty(100000)
    o2 = torch.empty(100000)
    return (
        (lambda: scatter_k[(cd(100000, 1024),)](x, i, o, 100000, 1024)),
        (lambda: o2.scatter_(0, i, x)),
        o,
        torch.empty(100000).scatter_(0, i, x).double(),
    )


@triton.jit
def transpose_k(x, o, M, N, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    j = tl.program_id(1) * B + tl.arange(0, B)
    v = tl.load(x + i[:, None] * N + j[None, :], mask=(i < M)[:, None] & (j < N)[None, :])
    tl.store(
        o + i[None, :] + j[:, None] * M,
        tl.trans(v),
        mask=(i < M)[None, :] & (j < N)[:, None],
    )


for dt in (f32, bf16, torch.int8):

    def c(dt=dt):
        x = (rn(1000, 1500) * 10).to(dt)
        o = torch.empty(1500, 1000, dtype=dt)
        return (
            (lambda: transpose_k[(16, 24)](x, o, 1000, 1500, 64)),
            (lambda: x.t().contiguous()),
            o,
            x.t().double(),
        )

    c.__name__ = f"transpose_{dt}"
    CASES.append(c)


@triton.jit
def perm_k(x, o, A, B_, C, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    c = i % C
    a = (i // C) % A
    b = i // (C * A)
    tl.store(o + i, tl.load(x + (a * B_ + b) * C + c, mask=m), mask=m)


for A, B_, C in ((50, 2000, 10), (100, 100, 100), (64, 128, 3)):

    def c(A=A, B_=B_, C=C):
        x = rn(A, B_, C)
        o = torch.empty(B_, A, C)
        n = x.numel()
        return (
            (lambda: perm_k[(cd(n, 1024),)](x, o, A, B_, C, n, 1024)),
            (lambda: x.permute(1, 0, 2).contiguous()),
            o,
            x.permute(1, 0, 2).double(),
        )

    c.__name__ = f"permute_{A}_{B_}_{C}"
    CASES.append(c)


@triton.jit
def nchw_nhwc(x, o, C, HW, BC: tl.constexpr, BH: tl.constexpr):
    c = tl.program_id(0) * BC + tl.arange(0, BC)
    h = tl.program_id(1) * BH + tl.arange(0, BH)
    m = (c < C)[:, None] & (h < HW)[None, :]
    tl.store(
        o + h[None, :] * C + c[:, None],
        tl.load(x + c[:, None] * HW + h[None, :], mask=m),
        mask=m,
    )


@case
def nchw_to_nhwc_64x3136():
    x = rn(64, 3136)
    o = torch.empty(3136, 64)
    return (
        (lambda: nchw_nhwc[(2, 49)](x, o, 64, 3136, 32, 64)),
        (lambda: x.t().contiguous()),
        o,
        x.t().double(),
    )
