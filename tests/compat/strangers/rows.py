"""Rows as strangers write them: losses, norms, quantizers, gates, rotary embedding, scans, sums, sorts.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import f32, fp16, pick, ri, rn, ze, cd, DEV, run


@triton.jit
def xent_kernel(x_ptr, y_ptr, loss_ptr, dx_ptr, V, s, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    y = tl.load(y_ptr + row)
    xp = x_ptr + row * s
    dp = dx_ptr + row * s
    m = -float("inf")
    d = 0.0
    sx = 0.0
    xy = tl.load(xp + y).to(tl.float32)
    for i in range(0, V, BLOCK):
        o = i + tl.arange(0, BLOCK)
        x = tl.load(xp + o, mask=o < V, other=-float("inf")).to(tl.float32)
        bm = tl.max(x)
        nm = tl.maximum(m, bm)
        sx += tl.sum(tl.where(o < V, x, 0.0))
        d = d * tl.exp(m - nm) + tl.sum(tl.exp(x - nm))
        m = nm
    lse = m + tl.log(d)
    for i in range(0, V, BLOCK):
        o = i + tl.arange(0, BLOCK)
        x = tl.load(xp + o, mask=o < V, other=-float("inf")).to(tl.float32)
        p = tl.exp(x - lse) - eps / V
        p = tl.where(o == y, p - (1 - eps), p)
        tl.store(dp + o, p.to(tl.bfloat16), mask=o < V)
    tl.store(loss_ptr + row, (1 - eps) * (lse - xy) + eps * (lse - sx / V))


def case_xent():
    R, V = pick((2048, 128256), (10, 1000))
    x = rn(R, V)
    y = ri(0, V, R)
    for B, w in pick([(8192, 8), (32768, 32), (4096, 16), (2048, 4)], [(256, 4)]):
        xent_kernel[(R,)](x, y, ze(R), torch.empty_like(x), V, V, 0.1, B, num_warps=w)


@triton.jit
def norm_quant_kernel(
    x_ptr, r_ptr, w_ptr, q_ptr, s_ptr, N, eps, BLOCK: tl.constexpr, FP8: tl.constexpr
):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    m = o < N
    x = tl.load(x_ptr + row * N + o, mask=m, other=0.0).to(tl.float32) + tl.load(
        r_ptr + row * N + o, mask=m, other=0.0
    ).to(tl.float32)
    tl.store(r_ptr + row * N + o, x.to(tl.bfloat16), mask=m)
    x = (
        x
        * tl.rsqrt(tl.sum(x * x) / N + eps)
        * tl.load(w_ptr + o, mask=m, other=0.0).to(tl.float32)
    )
    a = tl.maximum(tl.max(tl.abs(x)), 1e-10)
    sc = a / (448.0 if FP8 else 127.0)
    q = x / sc
    if FP8:
        tl.store(
            q_ptr + row * N + o, tl.clamp(q, -448.0, 448.0).to(tl.float8e4nv), mask=m
        )
    else:
        tl.store(q_ptr + row * N + o, tl.extra.libdevice.rint(q).to(tl.int8), mask=m)
    tl.store(s_ptr + row, sc)


def case_norm_quant():
    for N in pick((4096, 5120, 11008), (100,)):
        R = pick(4096, 10)
        x, r, w = rn(R, N), rn(R, N), rn(N)
        for fp8 in pick((True,), ()):
            q = torch.empty(R, N, device=DEV, dtype=torch.float8_e4m3fn)
            norm_quant_kernel[(R,)](
                x,
                r.clone(),
                w,
                q,
                ze(R),
                N,
                1e-5,
                triton.next_power_of_2(N),
                fp8,
                num_warps=8,
            )


@triton.jit
def group_quant_kernel(x_ptr, q_ptr, s_ptr, n, G: tl.constexpr, ROWS: tl.constexpr):
    g = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    o = tl.arange(0, G)
    m = (g < n)[:, None]
    x = tl.load(x_ptr + g[:, None] * G + o[None, :], mask=m, other=0.0).to(tl.float32)
    sc = tl.maximum(tl.max(tl.abs(x), 1), 1e-8) / 127.0
    q = tl.floor(x / sc[:, None] + 0.5).to(tl.int8)
    tl.store(q_ptr + g[:, None] * G + o[None, :], q, mask=m)
    tl.store(s_ptr + g, sc, mask=g < n)


def case_group_quant():
    n = pick(1 << 17, 100)
    x = rn(n, 128)
    q = torch.empty(n, 128, device=DEV, dtype=torch.int8)
    for r, w in ((1, 1), (8, 4), (32, 8)):
        group_quant_kernel[(cd(n, r),)](x, q, ze(n), n, 128, r, num_warps=w)


@triton.jit
def gn_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, HW, C, G, eps, BLOCK: tl.constexpr, CG: tl.constexpr
):
    n, g = tl.program_id(0), tl.program_id(1)
    rc = g * CG + tl.arange(0, CG)
    s = tl.zeros((BLOCK, CG), tl.float32)
    s2 = tl.zeros((BLOCK, CG), tl.float32)
    for i in range(0, HW, BLOCK):
        r = i + tl.arange(0, BLOCK)
        x = tl.load(
            x_ptr + (n * HW + r)[:, None] * C + rc[None, :],
            mask=(r < HW)[:, None],
            other=0.0,
        ).to(tl.float32)
        s += x
        s2 += x * x
    cnt = HW * CG
    mean = tl.sum(s) / cnt
    var = tl.sum(s2) / cnt - mean * mean
    rs = 1 / tl.sqrt(var + eps)
    w = tl.load(w_ptr + rc).to(tl.float32)
    b = tl.load(b_ptr + rc).to(tl.float32)
    for i in range(0, HW, BLOCK):
        r = i + tl.arange(0, BLOCK)
        mk = (r < HW)[:, None]
        x = tl.load(
            x_ptr + (n * HW + r)[:, None] * C + rc[None, :], mask=mk, other=0.0
        ).to(tl.float32)
        y = (x - mean) * rs * w[None, :] + b[None, :]
        y = y * tl.sigmoid(y)
        tl.store(
            y_ptr + (n * HW + r)[:, None] * C + rc[None, :], y.to(tl.float16), mask=mk
        )


def case_group_norm():
    Nb, HW, C, G = pick((16, 64 * 64, 320, 20), (2, 100, 64, 4))
    x, w, b = rn(Nb, HW, C, dtype=fp16), rn(C), rn(C)
    for B, wps in pick([(128, 4), (512, 8), (64, 2)], [(32, 2)]):
        gn_kernel[(Nb, G)](
            x, w, b, torch.empty_like(x), HW, C, G, 1e-5, B, C // G, num_warps=wps
        )


@triton.jit
def ln_bwd_kernel(
    dx_ptr,
    dy_ptr,
    dw_ptr,
    db_ptr,
    x_ptr,
    w_ptr,
    mu_ptr,
    rs_ptr,
    M,
    N,
    RPP,
    BLOCK: tl.constexpr,
):
    pid = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    m = o < N
    w = tl.load(w_ptr + o, mask=m, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for r in range(pid * RPP, min((pid + 1) * RPP, M)):
        x = tl.load(x_ptr + r * N + o, mask=m, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + r * N + o, mask=m, other=0.0).to(tl.float32)
        mu = tl.load(mu_ptr + r)
        rs = tl.load(rs_ptr + r)
        xh = (x - mu) * rs
        wdy = w * dy
        c1 = tl.sum(xh * wdy) / N
        c2 = tl.sum(wdy) / N
        tl.store(
            dx_ptr + r * N + o, ((wdy - (xh * c1 + c2)) * rs).to(tl.bfloat16), mask=m
        )
        dw += dy * xh
        db += dy
    tl.store(dw_ptr + pid * N + o, dw, mask=m)
    tl.store(db_ptr + pid * N + o, db, mask=m)


def case_ln_bwd():
    M, N = pick((8192, 4096), (20, 100))
    P = pick(132, 4)
    x, dy, w = rn(M, N), rn(M, N), rn(N)
    mu, rs = x.float().mean(1), x.float().std(1).reciprocal()
    for wps in (4, 8, 16):
        ln_bwd_kernel[(P,)](
            torch.empty_like(x),
            dy,
            ze(P, N),
            ze(P, N),
            x,
            w,
            mu,
            rs,
            M,
            N,
            cd(M, P),
            triton.next_power_of_2(N),
            num_warps=wps,
        )


@triton.jit
def topk_kernel(x_ptr, v_ptr, i_ptr, N, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + o, mask=o < N, other=-float("inf"))
    p = tl.softmax(x)
    for k in tl.static_range(K):
        i = tl.argmax(p, 0)
        v = tl.max(p, 0)
        tl.store(v_ptr + row * K + k, v)
        tl.store(i_ptr + row * K + k, i)
        p = tl.where(o == i, -1.0, p)


def case_topk_gate():
    R, N = pick((65536, 256), (20, 60))
    x = rn(R, N, dtype=f32)
    for w in (1, 2, 4):
        topk_kernel[(R,)](
            x,
            ze(R, 8),
            torch.zeros(R, 8, device=DEV, dtype=torch.int32),
            N,
            8,
            triton.next_power_of_2(N),
            num_warps=w,
        )


@triton.jit
def rope_kernel(q_ptr, cos_ptr, sin_ptr, sq, S, H: tl.constexpr, D: tl.constexpr):
    t = tl.program_id(0).to(tl.int64)
    pos = t % S
    rh = tl.arange(0, H)
    rd = tl.arange(0, D // 2)
    c = tl.load(cos_ptr + pos * (D // 2) + rd)
    s = tl.load(sin_ptr + pos * (D // 2) + rd)
    o1 = t * sq + rh[:, None] * D + rd[None, :]
    o2 = o1 + D // 2
    a = tl.load(q_ptr + o1).to(tl.float32)
    b = tl.load(q_ptr + o2).to(tl.float32)
    tl.store(q_ptr + o1, (a * c[None, :] - b * s[None, :]).to(tl.bfloat16))
    tl.store(q_ptr + o2, (b * c[None, :] + a * s[None, :]).to(tl.bfloat16))


def case_rope():
    T, H, D = pick((16384, 32, 128), (20, 4, 32))
    q = rn(T, H, D)
    c, s = torch.rand(4096, D // 2, device=DEV), torch.rand(4096, D // 2, device=DEV)
    for w in (1, 4, 8):
        rope_kernel[(T,)](q.clone(), c, s, H * D, pick(4096, 10), H, D, num_warps=w)


@triton.jit
def softmax2_kernel(x_ptr, y_ptr, R, N, BR: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    m = tl.full((BR,), -float("inf"), tl.float32)
    d = tl.zeros((BR,), tl.float32)
    for i in range(0, N, BLOCK):
        o = i + tl.arange(0, BLOCK)
        x = tl.load(
            x_ptr + r[:, None] * N + o[None, :],
            mask=(r < R)[:, None] & (o < N)[None, :],
            other=-float("inf"),
        ).to(tl.float32)
        nm = tl.maximum(m, tl.max(x, 1))
        d = d * tl.exp(m - nm) + tl.sum(tl.exp(x - nm[:, None]), 1)
        m = nm
    for i in range(0, N, BLOCK):
        o = i + tl.arange(0, BLOCK)
        mk = (r < R)[:, None] & (o < N)[None, :]
        x = tl.load(x_ptr + r[:, None] * N + o[None, :], mask=mk, other=0.0).to(
            tl.float32
        )
        tl.store(
            y_ptr + r[:, None] * N + o[None, :],
            (tl.exp(x - m[:, None]) / d[:, None]).to(tl.bfloat16),
            mask=mk,
        )


def case_softmax_rows():
    R, N = pick((8192, 8000), (10, 100))
    x = rn(R, N)
    for BR, B, w in pick([(4, 1024, 4), (1, 2048, 4), (16, 256, 8)], [(2, 64, 2)]):
        softmax2_kernel[(cd(R, BR),)](x, torch.empty_like(x), R, N, BR, B, num_warps=w)


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, N, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    carry = 0.0
    for i in range(0, N, BLOCK):
        o = i + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + r * N + o, mask=o < N, other=0.0)
        tl.store(y_ptr + r * N + o, tl.cumsum(x, 0) + carry, mask=o < N)
        carry += tl.sum(x, 0)


def case_cumsum():
    R, N = pick((4096, 8192), (5, 100))
    x = rn(R, N, dtype=f32)
    for B, w in pick([(1024, 4), (4096, 8), (8192, 16)], [(64, 2)]):
        cumsum_kernel[(R,)](x, torch.empty_like(x), N, B, num_warps=w)


@triton.jit
def sort_kernel(x_ptr, y_ptr, N: tl.constexpr):
    r = tl.program_id(0)
    o = tl.arange(0, N)
    tl.store(y_ptr + r * N + o, tl.sort(tl.load(x_ptr + r * N + o), descending=True))


def case_sort():
    R, N = pick((8192, 1024), (4, 64))
    x = rn(R, N, dtype=f32)
    for w in (2, 4, 8):
        sort_kernel[(R,)](x, torch.empty_like(x), N, num_warps=w)


@triton.jit
def reduce_all(x_ptr, p_ptr, n, BLOCK: tl.constexpr, IT: tl.constexpr):
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(IT):
        o = (pid * IT + i) * BLOCK + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + o, mask=o < n, other=0.0).to(tl.float32)
    tl.atomic_add(p_ptr, tl.sum(acc))


def case_reduce_all():
    n = pick(1 << 27, 5000)
    x = rn(n)
    for B, it, w in ((1024, 8, 4), (4096, 4, 8)):
        reduce_all[(cd(n, B * it),)](x, ze(1), n, B, it, num_warps=w)


@triton.jit
def colsum_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rn_ = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for i in range(0, M, BM):
        rm = i + tl.arange(0, BM)
        acc += tl.load(
            x_ptr + rm[:, None] * N + rn_[None, :],
            mask=(rm < M)[:, None] & (rn_ < N)[None, :],
            other=0.0,
        ).to(tl.float32)
    tl.store(y_ptr + rn_, tl.sum(acc, 0), mask=rn_ < N)


def case_colsum():
    M, N = pick((8192, 8192), (50, 60))
    x = rn(M, N)
    for BM, BN, w in pick(
        [(64, 64, 4), (128, 32, 8), (32, 128, 4), (16, 64, 2)], [(16, 16, 2)]
    ):
        colsum_kernel[(cd(N, BN),)](x, ze(N), M, N, BM, BN, num_warps=w)


if __name__ == "__main__":
    run(globals())
