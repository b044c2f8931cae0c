"""Matmuls as strangers write them: linear layers, persistent, gated, int8, fp8, GPTQ, MoE, batched,
split along k, triangular, with a norm in front, a convolution, a matrix by a vector.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import bf16, f32, fp16, pick, ri, rn, ze, cd, DEV, SMALL, run


@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    r_ptr,
    y_ptr,
    M,
    N,
    K,
    sxm,
    sxk,
    swn,
    swk,
    sym,
    syn,
    ACT: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
):
    pid = tl.program_id(0)
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    per = GROUP * nn
    g = pid // per
    first = g * GROUP
    size = min(nm - first, GROUP)
    pm = first + (pid % per) % size
    pn = (pid % per) // size
    rm = pm * BM + tl.arange(0, BM)
    rn_ = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    xp = x_ptr + rm[:, None] * sxm + rk[None, :] * sxk
    wp = w_ptr + rn_[None, :] * swn + rk[:, None] * swk
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(xp, mask=(rm[:, None] < M) & (rk[None, :] + k < K), other=0.0)
        w = tl.load(wp, mask=(rn_[None, :] < N) & (rk[:, None] + k < K), other=0.0)
        acc += tl.dot(x, w)
        xp += BK * sxk
        wp += BK * swk
    if b_ptr is not None:
        acc += tl.load(b_ptr + rn_, mask=rn_ < N, other=0.0)[None, :].to(tl.float32)
    if ACT == "gelu":
        acc = 0.5 * acc * (1 + tl.math.erf(acc * 0.70710678118))
    elif ACT == "silu":
        acc = acc * tl.sigmoid(acc)
    m = (rm[:, None] < M) & (rn_[None, :] < N)
    if r_ptr is not None:
        acc += tl.load(
            r_ptr + rm[:, None] * sym + rn_[None, :] * syn, mask=m, other=0.0
        ).to(tl.float32)
    tl.store(
        y_ptr + rm[:, None] * sym + rn_[None, :] * syn,
        acc.to(y_ptr.dtype.element_ty),
        mask=m,
    )


def linear(M, N, K, act, bias, res, dt, cfgs):
    x, w = rn(M, K, dtype=dt), rn(N, K, dtype=dt, scale=K**-0.5)
    b = rn(N, dtype=dt) if bias else None
    r = rn(M, N, dtype=dt) if res else None
    for BM, BN, BK, wps, st in cfgs:
        y = torch.empty(M, N, device=DEV, dtype=dt)
        linear_kernel[(cd(M, BM) * cd(N, BN),)](
            x,
            w,
            b,
            r,
            y,
            M,
            N,
            K,
            *x.stride(),
            *w.stride(),
            *y.stride(),
            act,
            BM,
            BN,
            BK,
            8,
            num_warps=wps,
            num_stages=st
        )


BIG = pick(
    [(128, 256, 64, 8, 3), (128, 128, 64, 4, 4), (64, 128, 64, 4, 3)],
    [(32, 32, 32, 4, 2)],
)


def case_linear_gelu():
    linear(*pick((4096, 4096, 4096), (70, 90, 50)), "gelu", True, False, bf16, BIG)


def case_linear_res():
    linear(*pick((4096, 4096, 4096), (70, 90, 50)), "", False, True, fp16, BIG)


def case_linear_odd():
    linear(*pick((4000, 4104, 4008), (70, 90, 50)), "silu", True, True, bf16, BIG)


def case_linear_small():
    linear(
        *pick((512, 1024, 4096), (70, 90, 50)),
        "",
        True,
        False,
        bf16,
        pick(
            [(64, 64, 128, 4, 4), (32, 64, 128, 4, 5), (64, 32, 64, 2, 4)],
            [(16, 16, 32, 1, 2)],
        )
    )


def case_linear_f32():
    linear(
        *pick((2048, 2048, 2048), (70, 90, 50)),
        "",
        True,
        False,
        f32,
        pick([(128, 128, 32, 8, 3), (64, 64, 32, 4, 3)], [(16, 16, 32, 1, 2)])
    )


@triton.jit
def persistent_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    scm,
    scn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    SMS: tl.constexpr,
    FLAT: tl.constexpr,
):
    start = tl.program_id(0)
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    nk = tl.cdiv(K, BK)
    rk = tl.arange(0, BK)
    for tile in tl.range(start, nm * nn, SMS, flatten=FLAT):
        g = tile // (GROUP * nn)
        size = min(nm - g * GROUP, GROUP)
        pm = g * GROUP + (tile % size)
        pn = (tile % (GROUP * nn)) // size
        rm = pm * BM + tl.arange(0, BM)
        rm = tl.where(rm < M, rm, 0)
        rn_ = pn * BN + tl.arange(0, BN)
        rn_ = tl.where(rn_ < N, rn_, 0)
        rm = tl.max_contiguous(tl.multiple_of(rm, BM), BM)
        rn_ = tl.max_contiguous(tl.multiple_of(rn_, BN), BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for ki in range(nk):
            ok = ki * BK + rk
            a = tl.load(
                a_ptr + rm[:, None] * sam + ok[None, :] * sak,
                mask=ok[None, :] < K,
                other=0.0,
            )
            b = tl.load(
                b_ptr + ok[:, None] * sbk + rn_[None, :] * sbn,
                mask=ok[:, None] < K,
                other=0.0,
            )
            acc = tl.dot(a, b, acc)
        om = pm * BM + tl.arange(0, BM)
        on = pn * BN + tl.arange(0, BN)
        tl.store(
            c_ptr + om[:, None] * scm + on[None, :] * scn,
            acc.to(c_ptr.dtype.element_ty),
            mask=(om[:, None] < M) & (on[None, :] < N),
        )


def case_persistent():
    M, N, K = pick((4096, 4096, 2048), (64, 64, 64))
    a, b, c = rn(M, K), rn(K, N), torch.empty(M, N, device=DEV, dtype=bf16)
    for BM, BN, BK, w, s, fl in pick(
        [
            (128, 256, 64, 8, 3, False),
            (128, 128, 64, 4, 4, False),
            (128, 128, 64, 8, 3, True),
        ],
        [(32, 32, 32, 4, 2, True)],
    ):
        persistent_kernel[(pick(132, 2),)](
            a,
            b,
            c,
            M,
            N,
            K,
            *a.stride(),
            *b.stride(),
            *c.stride(),
            BM,
            BN,
            BK,
            8,
            pick(132, 2),
            fl,
            num_warps=w,
            num_stages=s
        )


@triton.jit
def glu_kernel(
    x_ptr,
    g_ptr,
    u_ptr,
    y_ptr,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    pm, pn = tl.program_id(1), tl.program_id(0)
    rm = pm * BM + tl.arange(0, BM)
    rn_ = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ag = tl.zeros((BM, BN), tl.float32)
    au = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        kk = k * BK + rk
        x = tl.load(
            x_ptr + rm[:, None] * K + kk[None, :],
            mask=(rm < M)[:, None] & (kk < K)[None, :],
            other=0,
        )
        off = kk[:, None] * N + rn_[None, :]
        mk = (kk < K)[:, None] & (rn_ < N)[None, :]
        ag = tl.dot(x, tl.load(g_ptr + off, mask=mk, other=0), ag)
        au = tl.dot(x, tl.load(u_ptr + off, mask=mk, other=0), au)
    y = ag * tl.sigmoid(ag) * au
    tl.store(
        y_ptr + rm[:, None] * N + rn_[None, :],
        y.to(tl.bfloat16),
        mask=(rm < M)[:, None] & (rn_ < N)[None, :],
    )


def case_glu():
    M, N, K = pick((2048, 11008, 4096), (40, 70, 60))
    x, g, u, y = (
        rn(M, K),
        rn(K, N, scale=K**-0.5),
        rn(K, N, scale=K**-0.5),
        torch.empty(M, N, device=DEV, dtype=bf16),
    )
    for BM, BN, BK, w, s in pick(
        [(128, 128, 64, 8, 3), (64, 128, 64, 4, 3), (128, 64, 64, 4, 3)],
        [(32, 32, 32, 4, 2)],
    ):
        glu_kernel[(cd(N, BN), cd(M, BM))](
            x, g, u, y, M, N, K, BM, BN, BK, num_warps=w, num_stages=s
        )


@triton.jit
def int8_kernel(
    a_ptr,
    b_ptr,
    sa_ptr,
    sb_ptr,
    c_ptr,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    pid = tl.program_id(0)
    nn = tl.cdiv(N, BN)
    rm = (pid // nn) * BM + tl.arange(0, BM)
    rn_ = (pid % nn) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ap = a_ptr + (rm % M)[:, None] * K + rk[None, :]
    bp = b_ptr + (rn_ % N)[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K, BK):
        acc = tl.dot(tl.load(ap), tl.load(bp), acc, out_dtype=tl.int32)
        ap += BK
        bp += BK
    sa = tl.load(sa_ptr + rm, mask=rm < M)
    sb = tl.load(sb_ptr + rn_, mask=rn_ < N)
    c = acc.to(tl.float32) * sa[:, None] * sb[None, :]
    tl.store(
        c_ptr + rm[:, None] * N + rn_[None, :],
        c.to(tl.bfloat16),
        mask=(rm < M)[:, None] & (rn_ < N)[None, :],
    )


def case_int8():
    M, N, K = pick((4096, 4096, 4096), (64, 64, 64))
    a, b = ri(-127, 127, M, K, dtype=torch.int8), ri(-127, 127, N, K, dtype=torch.int8)
    sa, sb = torch.rand(M, device=DEV), torch.rand(N, device=DEV)
    for BM, BN, BK, w, s in pick(
        [(128, 256, 128, 8, 3), (128, 128, 128, 4, 3), (64, 64, 128, 4, 4)],
        [(32, 32, 32, 4, 2)],
    ):
        int8_kernel[(cd(M, BM) * cd(N, BN),)](
            a,
            b,
            sa,
            sb,
            torch.empty(M, N, device=DEV, dtype=bf16),
            M,
            N,
            K,
            BM,
            BN,
            BK,
            num_warps=w,
            num_stages=s,
        )


@triton.jit
def fp8_kernel(
    a_ptr,
    b_ptr,
    sa_ptr,
    sb_ptr,
    c_ptr,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    pid = tl.program_id(0)
    nn = tl.cdiv(N, BN)
    rm = (pid // nn) * BM + tl.arange(0, BM)
    rn_ = (pid % nn) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ap = a_ptr + rm[:, None] * K + rk[None, :]
    bp = b_ptr + rn_[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(ap, mask=(rk[None, :] < K - k * BK) & (rm[:, None] < M), other=0.0)
        b = tl.load(bp, mask=(rk[:, None] < K - k * BK) & (rn_[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        ap += BK
        bp += BK
    acc = (
        acc
        * tl.load(sa_ptr + rm, mask=rm < M)[:, None]
        * tl.load(sb_ptr + rn_, mask=rn_ < N)[None, :]
    )
    tl.store(
        c_ptr + rm[:, None] * N + rn_[None, :],
        acc.to(tl.bfloat16),
        mask=(rm < M)[:, None] & (rn_ < N)[None, :],
    )


def case_fp8():
    if SMALL:
        return
    M, N, K = 4096, 4096, 4096
    a, b = rn(M, K).to(torch.float8_e4m3fn), rn(N, K).to(torch.float8_e4m3fn)
    sa, sb = torch.rand(M, device=DEV), torch.rand(N, device=DEV)
    for BM, BN, BK, w, s in [
        (128, 256, 128, 8, 3),
        (128, 128, 128, 4, 3),
        (64, 128, 128, 4, 4),
    ]:
        fp8_kernel[(cd(M, BM) * cd(N, BN),)](
            a,
            b,
            sa,
            sb,
            torch.empty(M, N, device=DEV, dtype=bf16),
            M,
            N,
            K,
            BM,
            BN,
            BK,
            num_warps=w,
            num_stages=s,
        )


@triton.jit
def gptq_kernel(
    a_ptr,
    q_ptr,
    s_ptr,
    z_ptr,
    c_ptr,
    M,
    N,
    K,
    GS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    pid = tl.program_id(0)
    nn = tl.cdiv(N, BN)
    rm = (pid // nn) * BM + tl.arange(0, BM)
    rn_ = (pid % nn) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ap = a_ptr + rm[:, None] * K + rk[None, :]
    qp = q_ptr + (rk[:, None] // 8) * N + rn_[None, :]
    sh = (rk % 8) * 4
    zs = (rn_ % 8) * 4
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        g = k * BK // GS
        sc = tl.load(s_ptr + g * N + rn_)
        z = (tl.load(z_ptr + g * (N // 8) + rn_ // 8) >> zs) & 15
        a = tl.load(ap, mask=rm[:, None] < M, other=0.0)
        q = tl.load(qp)
        w = ((q >> sh[:, None]) & 15) - z[None, :]
        w = w.to(tl.float16) * sc[None, :]
        acc = tl.dot(a, w, acc)
        ap += BK
        qp += (BK // 8) * N
    tl.store(
        c_ptr + rm[:, None] * N + rn_[None, :], acc.to(tl.float16), mask=rm[:, None] < M
    )


def case_gptq():
    for M in pick((16, 256), (20,)):
        N, K, GS = pick((4096, 4096, 128), (64, 128, 32))
        a, q = rn(M, K, dtype=fp16), ri(-(2**31), 2**31 - 1, K // 8, N)
        s, z = rn(K // GS, N, dtype=fp16), ri(-(2**31), 2**31 - 1, K // GS, N // 8)
        for BM, BN, BK, w, st in pick(
            (
                [(16, 64, 64, 4, 3), (64, 128, 32, 4, 3)]
                if M == 16
                else [(64, 128, 64, 4, 3), (128, 128, 32, 8, 3)]
            ),
            [(16, 32, 32, 2, 2)],
        ):
            gptq_kernel[(cd(M, BM) * cd(N, BN),)](
                a,
                q,
                s,
                z,
                torch.empty(M, N, device=DEV, dtype=fp16),
                M,
                N,
                K,
                GS,
                BM,
                BN,
                BK,
                num_warps=w,
                num_stages=st,
            )


@triton.jit
def moe_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    tw_ptr,
    ids_ptr,
    ex_ptr,
    npad_ptr,
    N,
    K,
    EM,
    nvalid,
    sam,
    sak,
    sbe,
    sbk,
    sbn,
    scm,
    scn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    MUL: tl.constexpr,
    top_k: tl.constexpr,
):
    pid = tl.program_id(0)
    nm = tl.cdiv(EM, BM)
    nn = tl.cdiv(N, BN)
    per = GROUP * nn
    g = pid // per
    first = g * GROUP
    size = min(nm - first, GROUP)
    pm = first + ((pid % per) % size)
    pn = (pid % per) // size
    npad = tl.load(npad_ptr)
    if pm * BM >= npad:
        return
    oid = pm * BM + tl.arange(0, BM).to(tl.int64)
    tok = tl.load(ids_ptr + oid)
    tm = tok < nvalid
    ex = tl.load(ex_ptr + pm).to(tl.int64)
    on = (pn * BN + tl.arange(0, BN).to(tl.int64)) % N
    rk = tl.arange(0, BK)
    ap = a_ptr + (tok[:, None] // top_k * sam + rk[None, :] * sak)
    bp = b_ptr + ex * sbe + (rk[:, None] * sbk + on[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(ap, mask=tm[:, None] & (rk[None, :] < K - k * BK), other=0.0)
        b = tl.load(bp, mask=rk[:, None] < K - k * BK, other=0.0)
        acc += tl.dot(a, b)
        ap += BK * sak
        bp += BK * sbk
    if MUL:
        acc = acc * tl.load(tw_ptr + tok, mask=tm, other=0)[:, None]
    cn = pn * BN + tl.arange(0, BN)
    tl.store(
        c_ptr + scm * tok[:, None] + scn * cn[None, :],
        acc.to(tl.bfloat16),
        mask=tm[:, None] & (cn[None, :] < N),
    )


def case_moe():
    T, E, N, K, top = pick((1024, 16, 2048, 2048, 2), (20, 4, 64, 64, 2))
    a, b = rn(T, K), rn(E, N, K, scale=K**-0.5)
    ids = torch.stack([torch.randperm(E, device=DEV)[:top] for _ in range(T)])
    tw = torch.rand(T * top, device=DEV)
    for BM, BN, BK, w, s in pick(
        [(64, 128, 64, 4, 4), (128, 128, 64, 8, 3), (16, 64, 128, 4, 4)],
        [(16, 32, 32, 4, 2)],
    ):
        flat = ids.flatten()
        srt, exs = [], []
        for e in range(E):
            where = (flat == e).nonzero().flatten().tolist()
            n = cd(len(where), BM) * BM
            srt += where + [T * top] * (n - len(where))
            exs += [e] * (n // BM)
        sid = torch.tensor(srt, device=DEV, dtype=torch.int32)
        ex = torch.tensor(exs, device=DEV, dtype=torch.int32)
        c = torch.zeros(T * top, N, device=DEV, dtype=bf16)
        npad = torch.tensor([len(srt)], device=DEV, dtype=torch.int32)
        moe_kernel[(cd(len(srt), BM) * cd(N, BN),)](
            a,
            b,
            c,
            tw,
            sid,
            ex,
            npad,
            N,
            K,
            len(srt),
            T * top,
            *a.stride(),
            b.stride(0),
            b.stride(2),
            b.stride(1),
            *c.stride(),
            BM,
            BN,
            BK,
            8,
            True,
            top,
            num_warps=w,
            num_stages=s
        )


@triton.jit
def conv_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    N,
    H,
    W,
    C,
    KO,
    P,
    Q,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    R: tl.constexpr,
    S: tl.constexpr,
):
    pm, pn = tl.program_id(0), tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn_ = pn * BN + tl.arange(0, BN)
    n = rm // (P * Q)
    pq = rm % (P * Q)
    p = pq // Q
    q = pq % Q
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, R * S * C, BK):
        kk = k + tl.arange(0, BK)
        rs = kk // C
        c = kk % C
        r = rs // S
        s = rs % S
        ih = p[:, None] + r[None, :] - 1
        iw = q[:, None] + s[None, :] - 1
        m = (ih >= 0) & (ih < H) & (iw >= 0) & (iw < W) & (n[:, None] < N)
        x = tl.load(
            x_ptr + ((n[:, None] * H + ih) * W + iw) * C + c[None, :], mask=m, other=0.0
        )
        w = tl.load(
            w_ptr + kk[:, None] * KO + rn_[None, :], mask=rn_[None, :] < KO, other=0.0
        )
        acc = tl.dot(x, w, acc)
    tl.store(
        y_ptr + rm[:, None] * KO + rn_[None, :],
        acc.to(tl.float16),
        mask=(rm[:, None] < N * P * Q) & (rn_[None, :] < KO),
    )


def case_conv():
    N, H, W, C, K = pick((16, 56, 56, 128, 128), (1, 6, 6, 32, 32))
    x, w = rn(N, H, W, C, dtype=fp16), rn(9 * C, K, dtype=fp16, scale=0.03)
    for BM, BN, BK, wps, st in pick(
        [(128, 128, 32, 8, 3), (64, 64, 64, 4, 3), (128, 64, 64, 4, 3)],
        [(16, 16, 32, 2, 2)],
    ):
        conv_kernel[(cd(N * H * W, BM), cd(K, BN))](
            x,
            w,
            torch.empty(N, H, W, K, device=DEV, dtype=fp16),
            N,
            H,
            W,
            C,
            K,
            H,
            W,
            BM,
            BN,
            BK,
            3,
            3,
            num_warps=wps,
            num_stages=st,
        )


@triton.jit
def gemv_kernel(x_ptr, w_ptr, y_ptr, N, K, BN: tl.constexpr, BK: tl.constexpr):
    rn_ = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN,), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        w = tl.load(
            w_ptr + rn_[:, None] * K + rk[None, :],
            mask=(rn_ < N)[:, None] & (rk < K)[None, :],
            other=0.0,
        ).to(tl.float32)
        x = tl.load(x_ptr + rk, mask=rk < K, other=0.0).to(tl.float32)
        acc += tl.sum(w * x[None, :], 1)
    tl.store(y_ptr + rn_, acc.to(tl.bfloat16), mask=rn_ < N)


def case_gemv():
    N, K = pick((14336, 4096), (50, 70))
    x, w = rn(K), rn(N, K)
    for BN, BK, wps in pick(
        [(16, 256, 4), (4, 1024, 4), (64, 128, 8), (1, 4096, 4)], [(4, 32, 2)]
    ):
        gemv_kernel[(cd(N, BN),)](
            x, w, torch.empty(N, device=DEV, dtype=bf16), N, K, BN, BK, num_warps=wps
        )


@triton.jit
def splitk_gemv(
    x_ptr,
    w_ptr,
    y_ptr,
    M,
    N,
    K,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    SK: tl.constexpr,
):
    pn, ps = tl.program_id(0), tl.program_id(1)
    rm = tl.arange(0, BM)
    rn_ = pn * BN + tl.arange(0, BN)
    rk = ps * BK + tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK * SK)):
        kk = rk + k * BK * SK
        x = tl.load(
            x_ptr + rm[:, None] * K + kk[None, :],
            mask=(rm < M)[:, None] & (kk < K)[None, :],
            other=0.0,
        )
        w = tl.load(
            w_ptr + rn_[None, :] * K + kk[:, None],
            mask=(rn_ < N)[None, :] & (kk < K)[:, None],
            other=0.0,
        )
        acc = tl.dot(x, w, acc)
    tl.atomic_add(
        y_ptr + rm[:, None] * N + rn_[None, :],
        acc,
        mask=(rm < M)[:, None] & (rn_ < N)[None, :],
        sem="relaxed",
    )


def case_splitk_decode():
    M, N, K = pick((8, 4096, 14336), (5, 50, 70))
    x, w = rn(M, K), rn(N, K, scale=K**-0.5)
    for BN, BK, SK, wps, st in pick(
        [(64, 128, 8, 4, 4), (32, 256, 4, 4, 3), (128, 64, 8, 4, 5)], [(16, 32, 2, 2, 2)]
    ):
        splitk_gemv[(cd(N, BN), SK)](
            x, w, ze(M, N), M, N, K, 16, BN, BK, SK, num_warps=wps, num_stages=st
        )


@triton.jit
def bmm_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    sab,
    sbb,
    scb,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    pb = tl.program_id(2).to(tl.int64)
    pm, pn = tl.program_id(0), tl.program_id(1)
    a_bp = tl.make_block_ptr(
        a_ptr + pb * sab, (M, K), (K, 1), (pm * BM, 0), (BM, BK), (1, 0)
    )
    b_bp = tl.make_block_ptr(
        b_ptr + pb * sbb, (K, N), (N, 1), (0, pn * BN), (BK, BN), (1, 0)
    )
    acc = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(
            tl.load(a_bp, boundary_check=(0, 1)),
            tl.load(b_bp, boundary_check=(0, 1)),
            acc,
        )
        a_bp = a_bp.advance((0, BK))
        b_bp = b_bp.advance((BK, 0))
    c_bp = tl.make_block_ptr(
        c_ptr + pb * scb, (M, N), (N, 1), (pm * BM, pn * BN), (BM, BN), (1, 0)
    )
    tl.store(c_bp, acc.to(tl.float16), boundary_check=(0, 1))


def case_bmm():
    for B, M, N, K in pick(
        ((64, 512, 512, 512), (256, 128, 128, 64), (32, 1000, 200, 1000)),
        ((2, 30, 40, 50),),
    ):
        a, b, c = (
            rn(B, M, K, dtype=fp16),
            rn(B, K, N, dtype=fp16),
            torch.empty(B, M, N, device=DEV, dtype=fp16),
        )
        for BM, BN, BK, w, s in pick(
            [(128, 128, 64, 4, 3), (64, 64, 64, 4, 3), (64, 64, 32, 2, 4)],
            [(16, 16, 32, 2, 2)],
        ):
            bmm_kernel[(cd(M, BM), cd(N, BN), B)](
                a,
                b,
                c,
                M,
                N,
                K,
                M * K,
                K * N,
                M * N,
                BM,
                BN,
                BK,
                num_warps=w,
                num_stages=s,
            )


@triton.jit
def muon_kernel(x_ptr, y_ptr, M, K, BM: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    nm = tl.cdiv(M, BM)
    pm = pid // nm
    pn = pid % nm
    if pn > pm:
        return
    rm = pm * BM + tl.arange(0, BM)
    rn_ = pn * BM + tl.arange(0, BM)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BM), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(
            x_ptr + rm[:, None] * K + (k + rk)[None, :],
            mask=(rm < M)[:, None] & (k + rk < K)[None, :],
            other=0.0,
        )
        b = tl.load(
            x_ptr + rn_[:, None] * K + (k + rk)[None, :],
            mask=(rn_ < M)[:, None] & (k + rk < K)[None, :],
            other=0.0,
        )
        acc += tl.dot(a, b.T)
    y = acc.to(tl.bfloat16)
    tl.store(
        y_ptr + rm[:, None] * M + rn_[None, :],
        y,
        mask=(rm < M)[:, None] & (rn_ < M)[None, :],
    )
    if pn < pm:
        tl.store(
            y_ptr + rn_[:, None] * M + rm[None, :],
            y.T,
            mask=(rm < M)[None, :] & (rn_ < M)[:, None],
        )


def case_muon():
    M, K = pick((4096, 4096), (60, 70))
    x = rn(M, K)
    for BM, BK, w, s in pick(
        [(128, 64, 8, 4), (128, 64, 4, 3), (64, 64, 4, 4)], [(16, 32, 2, 2)]
    ):
        muon_kernel[(cd(M, BM) ** 2,)](
            x,
            torch.zeros(M, M, device=DEV, dtype=bf16),
            M,
            K,
            BM,
            BK,
            num_warps=w,
            num_stages=s,
        )


@triton.jit
def rmsfuse_kernel(
    x_ptr,
    g_ptr,
    w_ptr,
    y_ptr,
    M,
    N,
    K,
    eps,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    pm, pn = tl.program_id(0), tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)
    rn_ = pn * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    ss = tl.zeros((BM,), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(
            x_ptr + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None], other=0.0
        )
        g = tl.load(g_ptr + rk)
        xf = x.to(tl.float32)
        ss += tl.sum(xf * xf, 1)
        w = tl.load(
            w_ptr + rk[:, None] * N + rn_[None, :], mask=(rn_ < N)[None, :], other=0.0
        )
        acc += tl.dot((xf * g[None, :]).to(tl.bfloat16), w)
    acc = acc * tl.rsqrt(ss / K + eps)[:, None]
    tl.store(
        y_ptr + rm[:, None] * N + rn_[None, :],
        acc.to(tl.bfloat16),
        mask=(rm < M)[:, None] & (rn_ < N)[None, :],
    )


def case_rms_gemm():
    M, N, K = pick((4096, 4096, 4096), (40, 50, 64))
    x, g, w = rn(M, K), rn(K, dtype=f32), rn(K, N, scale=K**-0.5)
    for BM, BN, BK, wps, s in pick(
        [(128, 128, 64, 8, 3), (64, 128, 64, 4, 3), (128, 256, 64, 8, 3)],
        [(16, 16, 32, 2, 2)],
    ):
        rmsfuse_kernel[(cd(M, BM), cd(N, BN))](
            x,
            g,
            w,
            torch.empty(M, N, device=DEV, dtype=bf16),
            M,
            N,
            K,
            1e-5,
            BM,
            BN,
            BK,
            num_warps=wps,
            num_stages=s,
        )


if __name__ == "__main__":
    run(globals())
