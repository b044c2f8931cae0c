"""Elements, gathers and images as strangers write them: Adam, transposes, embeddings, convolutions of
one channel, pooling, interpolation, histograms, bodies, stencils.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import bf16, f32, pick, ri, rn, ze, cd, DEV, run


@triton.jit
def adam_kernel(
    p_ptr, g_ptr, m_ptr, v_ptr, n, lr, b1, b2, eps, wd, c1, c2, BLOCK: tl.constexpr
):
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mk = o < n
    p = tl.load(p_ptr + o, mask=mk)
    g = tl.load(g_ptr + o, mask=mk).to(tl.float32)
    m = b1 * tl.load(m_ptr + o, mask=mk) + (1 - b1) * g
    v = b2 * tl.load(v_ptr + o, mask=mk) + (1 - b2) * g * g
    p = p * (1 - lr * wd) - lr * (m / c1) / (tl.sqrt(v / c2) + eps)
    tl.store(p_ptr + o, p, mask=mk)
    tl.store(m_ptr + o, m, mask=mk)
    tl.store(v_ptr + o, v, mask=mk)


def case_adam():
    n = pick(1 << 26, 1000) + 3
    p, m, v = rn(n, dtype=f32), ze(n), ze(n)
    g = rn(n)
    for B, w in ((1024, 4), (512, 8)):
        adam_kernel[(cd(n, B),)](
            p.clone(),
            g,
            m.clone(),
            v.clone(),
            n,
            1e-3,
            0.9,
            0.99,
            1e-8,
            0.1,
            0.1,
            0.01,
            B,
            num_warps=w,
        )


@triton.jit
def transpose_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn_ = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(
        x_ptr + rm[:, None] * N + rn_[None, :],
        mask=(rm < M)[:, None] & (rn_ < N)[None, :],
    )
    tl.store(
        y_ptr + rn_[:, None] * M + rm[None, :],
        tl.trans(x),
        mask=(rn_ < N)[:, None] & (rm < M)[None, :],
    )


def case_transpose():
    for dt in (f32, bf16):
        M, N = pick((8192, 8192), (50, 70))
        x = rn(M, N, dtype=dt)
        for B, w in pick([(64, 4), (32, 4), (128, 8)], [(16, 2)]):
            transpose_kernel[(cd(M, B), cd(N, B))](
                x, torch.empty(N, M, device=DEV, dtype=dt), M, N, B, B, num_warps=w
            )


@triton.jit
def embed_kernel(i_ptr, w_ptr, y_ptr, N, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    i = tl.load(i_ptr + t).to(tl.int64)
    for k in range(0, N, BLOCK):
        o = k + tl.arange(0, BLOCK)
        tl.store(y_ptr + t * N + o, tl.load(w_ptr + i * N + o, mask=o < N), mask=o < N)


@triton.jit
def embed_bwd_kernel(i_ptr, g_ptr, dw_ptr, N, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    i = tl.load(i_ptr + t).to(tl.int64)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(
        dw_ptr + i * N + o,
        tl.load(g_ptr + t * N + o, mask=o < N).to(tl.float32),
        mask=o < N,
    )


def case_embed():
    T, V, N = pick((32768, 50000, 2048), (20, 30, 100))
    i = ri(0, V, T)
    w = rn(V, N)
    for B, wps in ((512, 4), (2048, 4)):
        embed_kernel[(T,)](
            i, w, torch.empty(T, N, device=DEV, dtype=bf16), N, B, num_warps=wps
        )


def case_embed_bwd():
    T, V, N = pick((16384, 50000, 1024), (20, 30, 100))
    i = ri(0, V, T)
    g = rn(T, N)
    embed_bwd_kernel[(T, cd(N, 1024))](i, g, ze(V, N), N, 1024, num_warps=4)


@triton.jit
def dwconv_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, L, D, W: tl.constexpr, BL: tl.constexpr, BD: tl.constexpr
):
    pl, pd, b = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rl = pl * BL + tl.arange(0, BL)
    rd = pd * BD + tl.arange(0, BD)
    acc = tl.zeros((BL, BD), tl.float32) + tl.load(b_ptr + rd, mask=rd < D, other=0.0)[
        None, :
    ].to(tl.float32)
    for w in tl.static_range(W):
        i = rl - (W - 1) + w
        x = tl.load(
            x_ptr + (b * L + i)[:, None] * D + rd[None, :],
            mask=(i >= 0)[:, None] & (i < L)[:, None] & (rd < D)[None, :],
            other=0.0,
        ).to(tl.float32)
        acc += x * tl.load(w_ptr + rd * W + w, mask=rd < D, other=0.0)[None, :].to(
            tl.float32
        )
    acc = acc * tl.sigmoid(acc)
    tl.store(
        y_ptr + (b * L + rl)[:, None] * D + rd[None, :],
        acc.to(tl.bfloat16),
        mask=(rl < L)[:, None] & (rd < D)[None, :],
    )


def case_dwconv():
    B, L, D = pick((4, 4096, 2048), (2, 50, 40))
    x, w, b = rn(B, L, D), rn(D, 4), rn(D)
    for BL, BD, wps in pick([(64, 64, 4), (16, 256, 4), (128, 32, 4)], [(16, 16, 2)]):
        dwconv_kernel[(cd(L, BL), cd(D, BD), B)](
            x, w, b, torch.empty_like(x), L, D, 4, BL, BD, num_warps=wps
        )


@triton.jit
def maxpool_kernel(x_ptr, y_ptr, C, H, W, P, Q, total, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mk = o < total
    q = o % Q
    p = (o // Q) % P
    nc = o // (P * Q)
    best = tl.full((BLOCK,), -float("inf"), tl.float32)
    for r in range(3):
        for s in range(3):
            ih = p * 2 - 1 + r
            iw = q * 2 - 1 + s
            m = mk & (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W)
            best = tl.maximum(
                best,
                tl.load(x_ptr + nc * H * W + ih * W + iw, mask=m, other=-float("inf")),
            )
    tl.store(y_ptr + o, best, mask=mk)


def case_maxpool():
    N, C, H = pick((32, 64, 112), (1, 3, 11))
    x = rn(N, C, H, H, dtype=f32)
    P = (H + 1) // 2
    for B, w in ((256, 4), (1024, 4)):
        maxpool_kernel[(cd(N * C * P * P, B),)](
            x, ze(N, C, P, P), C, H, H, P, P, N * C * P * P, B, num_warps=w
        )


@triton.jit
def bilinear_kernel(x_ptr, y_ptr, H, W, OH, OW, sh, sw, total, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mk = o < total
    ow = o % OW
    oh = (o // OW) % OH
    nc = o // (OW * OH)
    fy = tl.maximum((oh + 0.5) * sh - 0.5, 0.0)
    fx = tl.maximum((ow + 0.5) * sw - 0.5, 0.0)
    y0 = tl.floor(fy).to(tl.int32)
    x0 = tl.floor(fx).to(tl.int32)
    y1 = tl.minimum(y0 + 1, H - 1)
    x1 = tl.minimum(x0 + 1, W - 1)
    wy = fy - y0
    wx = fx - x0
    b = nc * H * W
    v00 = tl.load(x_ptr + b + y0 * W + x0, mask=mk)
    v01 = tl.load(x_ptr + b + y0 * W + x1, mask=mk)
    v10 = tl.load(x_ptr + b + y1 * W + x0, mask=mk)
    v11 = tl.load(x_ptr + b + y1 * W + x1, mask=mk)
    tl.store(
        y_ptr + o,
        (v00 * (1 - wx) + v01 * wx) * (1 - wy) + (v10 * (1 - wx) + v11 * wx) * wy,
        mask=mk,
    )


def case_bilinear():
    N, H, OH = pick((256, 64, 128), (2, 7, 13))
    x = rn(N, H, H, dtype=f32)
    y = ze(N, OH, OH)
    bilinear_kernel[(cd(y.numel(), 512),)](
        x, y, H, H, OH, OH, H / OH, H / OH, y.numel(), 512, num_warps=4
    )


@triton.jit
def hist_kernel(x_ptr, h_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n, other=0)
    tl.atomic_add(h_ptr + x, 1, mask=o < n)


def case_hist():
    n = pick(1 << 22, 1000)
    x = ri(0, 256, n)
    hist_kernel[(cd(n, 1024),)](
        x, torch.zeros(256, device=DEV, dtype=torch.int32), n, 256, 1024, num_warps=4
    )


@triton.jit
def nbody_kernel(p_ptr, a_ptr, n, eps, BI: tl.constexpr, BJ: tl.constexpr):
    i = tl.program_id(0) * BI + tl.arange(0, BI)
    xi = tl.load(p_ptr + i * 4, mask=i < n, other=0.0)
    yi = tl.load(p_ptr + i * 4 + 1, mask=i < n, other=0.0)
    zi = tl.load(p_ptr + i * 4 + 2, mask=i < n, other=0.0)
    ax = tl.zeros((BI,), tl.float32)
    ay = tl.zeros((BI,), tl.float32)
    az = tl.zeros((BI,), tl.float32)
    for j0 in range(0, n, BJ):
        j = j0 + tl.arange(0, BJ)
        m = j < n
        dx = tl.load(p_ptr + j * 4, mask=m, other=0.0)[None, :] - xi[:, None]
        dy = tl.load(p_ptr + j * 4 + 1, mask=m, other=0.0)[None, :] - yi[:, None]
        dz = tl.load(p_ptr + j * 4 + 2, mask=m, other=0.0)[None, :] - zi[:, None]
        mj = tl.load(p_ptr + j * 4 + 3, mask=m, other=0.0)
        r2 = dx * dx + dy * dy + dz * dz + eps
        s = mj[None, :] * tl.rsqrt(r2) / r2
        ax += tl.sum(s * dx, 1)
        ay += tl.sum(s * dy, 1)
        az += tl.sum(s * dz, 1)
    tl.store(a_ptr + i * 3, ax, mask=i < n)
    tl.store(a_ptr + i * 3 + 1, ay, mask=i < n)
    tl.store(a_ptr + i * 3 + 2, az, mask=i < n)


def case_nbody():
    n = pick(16384, 100)
    p = rn(n, 4, dtype=f32)
    for BI, BJ, w in pick([(32, 128, 4), (128, 32, 4)], [(16, 16, 2)]):
        nbody_kernel[(cd(n, BI),)](p, ze(n, 3), n, 1e-3, BI, BJ, num_warps=w)


@triton.jit
def stencil_kernel(x_ptr, y_ptr, H, W, it, BH: tl.constexpr, BW: tl.constexpr):
    rh = tl.program_id(0) * BH + tl.arange(0, BH)
    rw = tl.program_id(1) * BW + tl.arange(0, BW)
    p = x_ptr + rh[:, None] * W + rw[None, :]
    i = (
        (rh[:, None] > 0)
        & (rh[:, None] < H - 1)
        & (rw[None, :] > 0)
        & (rw[None, :] < W - 1)
    )
    c = tl.load(p, mask=(rh < H)[:, None] & (rw < W)[None, :], other=0.0)
    v = (
        tl.load(p - 1, mask=i, other=0.0)
        + tl.load(p + 1, mask=i, other=0.0)
        + tl.load(p - W, mask=i, other=0.0)
        + tl.load(p + W, mask=i, other=0.0)
    )
    tl.store(
        y_ptr + rh[:, None] * W + rw[None, :],
        tl.where(i, c + 0.2 * (v - 4 * c), c),
        mask=(rh < H)[:, None] & (rw < W)[None, :],
    )


def case_stencil():
    H, W = pick((8192, 8192), (50, 60))
    x = rn(H, W, dtype=f32)
    for BH, BW, w in pick([(16, 128, 4), (32, 32, 4), (1, 1024, 4)], [(8, 16, 2)]):
        stencil_kernel[(cd(H, BH), cd(W, BW))](
            x, torch.empty_like(x), H, W, 1, BH, BW, num_warps=w
        )


if __name__ == "__main__":
    run(globals())
