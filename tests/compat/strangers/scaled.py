"""Numbers of few bits with scales, sparse weights and rounding as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, SMALL, bf16, cd, f32, fp16, half, pick, ri, rn, run, ze

i8, i16, i32, u8 = torch.int8, torch.int16, torch.int32, torch.uint8
e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2


@triton.jit
def mx_matmul(A, A_scale, B, B_scale, C, M, N, K, stride_am, stride_bn, stride_cm,
              stride_as, stride_bs, FMT_A: tl.constexpr, FMT_B: tl.constexpr,
              PACK_A: tl.constexpr, PACK_B: tl.constexpr, BLOCK_M: tl.constexpr,
              BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    pid_m = pid % num_pid_m
    pid_n = pid // num_pid_m
    offs_am = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_bn = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_ka = tl.arange(0, BLOCK_K // PACK_A)
    offs_kb = tl.arange(0, BLOCK_K // PACK_B)
    offs_s = tl.arange(0, BLOCK_K // 32)
    a_ptrs = A + offs_am[:, None] * stride_am + offs_ka[None, :]
    b_ptrs = B + offs_bn[None, :] * stride_bn + offs_kb[:, None]
    as_ptrs = A_scale + offs_am[:, None] * stride_as + offs_s[None, :]
    bs_ptrs = B_scale + offs_bn[:, None] * stride_bs + offs_s[None, :]
    accumulator = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BLOCK_K), num_stages=2):
        a = tl.load(a_ptrs)
        b = tl.load(b_ptrs)
        sa = tl.load(as_ptrs)
        sb = tl.load(bs_ptrs)
        accumulator = tl.dot_scaled(a, sa, FMT_A, b, sb, FMT_B, accumulator)
        a_ptrs += BLOCK_K // PACK_A
        b_ptrs += BLOCK_K // PACK_B
        as_ptrs += BLOCK_K // 32
        bs_ptrs += BLOCK_K // 32
    offs_cm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_cn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = C + offs_cm[:, None] * stride_cm + offs_cn[None, :]
    tl.store(c_ptrs, accumulator, mask=(offs_cm[:, None] < M) & (offs_cn[None, :] < N))


def bytes_of(rows, cols, fmt):
    if fmt == "e2m1":
        return ri(0, 256, rows, cols // 2, dtype=u8), 2
    return rn(rows, cols, dtype=f32).to({"e4m3": e4m3, "e5m2": e5m2}[fmt]), 1


def case_mx_matmul():
    M, N, K = pick((1024, 1024, 2048), (40, 32, 128))
    for fa, fb in (("e4m3", "e4m3"), ("e5m2", "e2m1"), ("e2m1", "e2m1")):
        a, pa = bytes_of(M, K, fa)
        b, pb = bytes_of(N, K, fb)
        sa, sb = ri(120, 130, M, K // 32, dtype=u8), ri(120, 130, N, K // 32, dtype=u8)
        for BM, BN, BK, w in pick([(128, 128, 128, 8), (64, 128, 64, 4)], [(16, 32, 64, 2)]):
            mx_matmul[(cd(M, BM) * cd(N, BN),)](
                a, sa, b, sb, ze(M, N), M, N, K, a.stride(0), b.stride(0), N, K // 32, K // 32,
                fa, fb, pa, pb, BM, BN, BK, num_warps=w)


@triton.jit
def mx_weight_only(x, w, ws, y, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr):
    # halves times fp4: no scale on the left
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn_ = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.full([BM, BN], 0.0, tl.float32)
    for k in range(0, K, BK):
        a = tl.load(x + rm[:, None] * K + (k + tl.arange(0, BK))[None, :],
                    mask=rm[:, None] < M, other=0.0)
        b = tl.load(w + rn_[None, :] * (K // 2) + (k // 2 + tl.arange(0, BK // 2))[:, None])
        s = tl.load(ws + rn_[:, None] * (K // 32) + (k // 32 + tl.arange(0, BK // 32))[None, :])
        acc = tl.dot_scaled(a, None, "bf16" if a.dtype == tl.bfloat16 else "fp16", b, s, "e2m1",
                            acc)
    tl.store(y + rm[:, None] * N + rn_[None, :], acc.to(y.dtype.element_ty),
             mask=rm[:, None] < M)


def case_mx_weight_only():
    M, N, K = pick((512, 2048, 2048), (20, 32, 128))
    for BM, BN, BK, w in pick([(64, 128, 128, 4), (16, 128, 128, 4)], [(16, 32, 64, 2)]):
        mx_weight_only[(cd(M, BM), N // BN)](rn(M, K, dtype=half), ri(0, 256, N, K // 2, dtype=u8),
                                             ri(120, 130, N, K // 32, dtype=u8),
                                             ze(M, N, dtype=half), M, N, K, BM, BN, BK,
                                             num_warps=w)


@triton.jit
def _e2m1_to_f32(nib):
    # s eem: subnormal 0.5
    sign = 1.0 - 2.0 * ((nib >> 3) & 1).to(tl.float32)
    exp = ((nib >> 1) & 3).to(tl.int32)
    man = (nib & 1).to(tl.float32)
    normal = (1.0 + 0.5 * man) * (1 << tl.maximum(exp - 1, 0)).to(tl.float32)
    return sign * tl.where(exp == 0, 0.5 * man, normal)


@triton.jit
def nvfp4_dequant(q_ptr, s_ptr, g_ptr, o_ptr, n_cols, BLOCK: tl.constexpr):
    # 16 numbers share an e4m3 scale, all of them a global one
    row = tl.program_id(0).to(tl.int64)
    col = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    packed = tl.load(q_ptr + row * (n_cols // 2) + col, mask=col < n_cols // 2, other=0)
    lo = _e2m1_to_f32(packed & 0xF)
    hi = _e2m1_to_f32(packed >> 4)
    s = tl.load(s_ptr + row * (n_cols // 16) + col // 8, mask=col < n_cols // 2).to(tl.float32)
    s *= tl.load(g_ptr)
    both = tl.interleave(lo * s, hi * s)
    at = tl.program_id(1) * BLOCK * 2 + tl.arange(0, BLOCK * 2)
    tl.store(o_ptr + row * n_cols + at, both, mask=at < n_cols)


def case_nvfp4_dequant():
    R, C = pick((4096, 4096), (3, 96))
    s = (rn(R, C // 16, dtype=f32).abs() + 0.1).to(e4m3)
    for B, w in pick([(512, 4), (1024, 4), (2048, 8)], [(32, 1)]):
        nvfp4_dequant[(R, cd(C // 2, B))](ri(0, 256, R, C // 2, dtype=u8), s, rn(1, dtype=f32),
                                          ze(R, C, dtype=bf16), C, B, num_warps=w)


@triton.jit
def mx_quantize(x_ptr, q_ptr, s_ptr, M, K: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr):
    """fp32 -> e4m3 with a shared power of two for 32."""
    G: tl.constexpr = BK // 32
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rk = tl.program_id(1) * BK + tl.arange(0, BK)
    mask = (rm < M)[:, None] & (rk < K)[None, :]
    x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=mask, other=0.0).to(tl.float32)
    g = tl.reshape(x, [BM, G, 32])
    amax = tl.max(tl.abs(g), axis=2, keep_dims=True)
    bits = amax.to(tl.int32, bitcast=True)
    bits = (bits + 0x7FFFFF) & 0x7F800000           # up to a power of two
    e = (bits >> 23) - 8
    e = tl.maximum(e, 1)
    inv = ((254 - e) << 23).to(tl.float32, bitcast=True)
    q = tl.reshape(g * inv, [BM, BK])
    q = tl.clamp(q, -448.0, 448.0)
    tl.store(q_ptr + rm[:, None] * K + rk[None, :], q.to(tl.float8e4nv), mask=mask)
    rg = tl.program_id(1) * G + tl.arange(0, G)
    tl.store(s_ptr + rm[:, None] * (K // 32) + rg[None, :], e.reshape(BM, G).to(tl.uint8),
             mask=(rm < M)[:, None] & (rg < K // 32)[None, :])


def case_mx_quantize():
    M, K = pick((4096, 4096), (10, 96))
    for BM, BK, w in pick([(16, 128, 4), (1, 2048, 4), (32, 256, 8)], [(4, 64, 1)]):
        mx_quantize[(cd(M, BM), cd(K, BK))](rn(M, K), ze(M, K, dtype=e4m3),
                                            ze(M, K // 32, dtype=u8), M, K, BM, BK, num_warps=w)


@triton.jit
def sparse24_mm(a_ptr, idx_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_i, stride_b, stride_c,
                BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # two of four values are kept; their places in two bits each, spread out again
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
    quads = tl.arange(0, BLOCK_K // 4)
    for k in range(tl.cdiv(K, BLOCK_K)):
        q = k * (BLOCK_K // 4) + quads
        live = (m < M)[:, None] & (q < K // 4)[None, :]
        v0 = tl.load(a_ptr + m[:, None] * stride_a + 2 * q[None, :], mask=live, other=0.0)
        v1 = tl.load(a_ptr + m[:, None] * stride_a + 2 * q[None, :] + 1, mask=live, other=0.0)
        code = tl.load(idx_ptr + m[:, None] * stride_i + q[None, :], mask=live, other=4)
        i0, i1 = code & 3, (code >> 2) & 3
        zero = tl.zeros_like(v0)
        d0 = tl.where(i0 == 0, v0, tl.where(i1 == 0, v1, zero))
        d1 = tl.where(i0 == 1, v0, tl.where(i1 == 1, v1, zero))
        d2 = tl.where(i0 == 2, v0, tl.where(i1 == 2, v1, zero))
        d3 = tl.where(i0 == 3, v0, tl.where(i1 == 3, v1, zero))
        dense = tl.join(tl.join(d0, d2), tl.join(d1, d3)).reshape(BLOCK_M, BLOCK_K)
        kk = k * BLOCK_K + tl.arange(0, BLOCK_K)
        b = tl.load(b_ptr + kk[:, None] * stride_b + n[None, :],
                    mask=(kk < K)[:, None] & (n < N)[None, :], other=0.0)
        acc += tl.dot(dense, b)
    tl.store(c_ptr + m[:, None] * stride_c + n[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(m < M)[:, None] & (n < N)[None, :])


def case_sparse24():
    M, N, K = pick((2048, 2048, 2048), (40, 50, 72))
    codes = torch.tensor([4, 8, 12, 9, 13, 14], dtype=u8, device=DEV)
    idx = codes[ri(0, 6, M, K // 4).long()]
    for BM, BN, BK, w in pick([(128, 128, 64, 8), (64, 128, 64, 4)], [(16, 32, 32, 2)]):
        sparse24_mm[(cd(M, BM), cd(N, BN))](rn(M, K // 2, dtype=half), idx, rn(K, N, dtype=half),
                                            ze(M, N, dtype=half), M, N, K, K // 2, K // 4, N, N,
                                            BM, BN, BK, num_warps=w, num_stages=3)


@triton.autotune(configs=[triton.Config({"BN": 64, "BK": 64}, num_warps=4, num_stages=3)],
                 key=["N", "K"])
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BK"] == 0,
                    "BM": lambda args: max(16, min(64, triton.next_power_of_2(args["M"])))})
@triton.jit
def w4_grouped(x_ptr, qw_ptr, scale_ptr, zero_ptr, bias_ptr, out_ptr, M, N, K, GROUP: tl.constexpr,
               HAS_BIAS: tl.constexpr, EVEN_K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
               BK: tl.constexpr):
    pid = tl.program_id(0)
    grid_n = tl.cdiv(N, BN)
    m = (pid // grid_n) * BM + tl.arange(0, BM)
    n = (pid % grid_n) * BN + tl.arange(0, BN)
    shift = (tl.arange(0, BK) % 8) * 4
    zshift = (n % 8) * 4
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        if EVEN_K:
            a = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=m[:, None] < M, other=0.0)
        else:
            a = tl.load(x_ptr + m[:, None] * K + k[None, :],
                        mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        words = tl.load(qw_ptr + (k // 8)[:, None] * N + n[None, :],
                        mask=(k < K)[:, None] & (n < N)[None, :], other=0,
                        eviction_policy="evict_first")
        g = k0 // GROUP
        s = tl.load(scale_ptr + g * N + n, mask=n < N, other=0.0)
        z = tl.load(zero_ptr + g * (N // 8) + n // 8, mask=n < N, other=0)
        z = (z >> zshift) & 0xF
        w = (words >> shift[:, None]) & 0xF
        w = (w - z[None, :] - 1).to(a.dtype) * s[None, :]
        acc = tl.dot(a, w, acc)
    if HAS_BIAS:
        acc += tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :]
    tl.store(out_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


def case_w4_grouped():
    N, K = pick((4096, 4096), (64, 128))
    for M in pick((16, 64, 512), (5,)):
        w4_grouped[lambda meta: (cd(M, meta["BM"]) * cd(N, meta["BN"]),)](
            rn(M, K, dtype=fp16), ri(-2**31, 2**31 - 1, K // 8, N),
            rn(K // 64, N, dtype=fp16, scale=0.1), ri(-2**31, 2**31 - 1, K // 64, N // 8),
            rn(N, dtype=fp16), ze(M, N, dtype=fp16), M, N, K, 64, True)


@triton.jit
def int8_zero_points(Aptr, Bptr, Cptr, sa_ptr, sb_ptr, za_ptr, colsum_ptr, M, N, K,
                     BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GM: tl.constexpr):
    pid = tl.program_id(0)
    nm, nn = tl.cdiv(M, BM), tl.cdiv(N, BN)
    width = GM * nn
    gid = pid // width
    size = min(nm - gid * GM, GM)
    pm = gid * GM + (pid % size)
    pn = (pid % width) // size
    rm = tl.max_contiguous(tl.multiple_of((pm * BM + tl.arange(0, BM)) % M, BM), BM)
    rn_ = tl.max_contiguous(tl.multiple_of((pn * BN + tl.arange(0, BN)) % N, BN), BN)
    rk = tl.arange(0, BK)
    Aptr += rm[:, None] * K + rk[None, :]
    Bptr += rk[:, None] + rn_[None, :] * K
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for k in range(K, 0, -BK):
        a = tl.load(Aptr, mask=rk[None, :] < k, other=0)
        b = tl.load(Bptr, mask=rk[:, None] < k, other=0)
        acc += tl.dot(a, b, out_dtype=tl.int32)
        Aptr += BK
        Bptr += BK
    rm = pm * BM + tl.arange(0, BM)
    rn_ = pn * BN + tl.arange(0, BN)
    mm, mn = rm < M, rn_ < N
    za = tl.load(za_ptr + rm, mask=mm, other=0)
    cs = tl.load(colsum_ptr + rn_, mask=mn, other=0)
    acc -= za[:, None] * cs[None, :]
    out = acc.to(tl.float32) * tl.load(sa_ptr + rm, mask=mm)[:, None] \
        * tl.load(sb_ptr + rn_, mask=mn)[None, :]
    tl.store(Cptr + rm[:, None] * N + rn_[None, :], out.to(tl.bfloat16),
             mask=mm[:, None] & mn[None, :])


def case_int8_zero_points():
    M, N, K = pick((2048, 2048, 2048), (40, 50, 80))
    b = ri(-128, 128, N, K, dtype=i8)
    for BM, BN, BK, w in pick([(128, 128, 64, 4), (128, 256, 128, 8)], [(16, 32, 32, 2)]):
        int8_zero_points[(cd(M, BM) * cd(N, BN),)](
            ri(-128, 128, M, K, dtype=i8), b, ze(M, N, dtype=bf16), rn(M, dtype=f32),
            rn(N, dtype=f32), ri(-20, 20, M), b.int().sum(1).int(), M, N, K, BM, BN, BK, 8,
            num_warps=w)


@triton.jit
def stochastic_cast(x, y, n, seed, FP8: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r0, r1, r2, r3 = tl.randint4x(seed, offs)
    lo = tl.join(r0, r1)
    hi = tl.join(r2, r3)
    noise = tl.permute(tl.join(lo, hi), (2, 1, 0)).reshape(BLOCK * 4)
    at = tl.program_id(0) * BLOCK * 4 + tl.arange(0, BLOCK * 4)
    v = tl.load(x + at, mask=at < n)
    bits = v.to(tl.uint32, bitcast=True)
    if FP8:
        bits = (bits + (noise >> 11)) & 0xFFE00000
        tl.store(y + at, bits.to(tl.float32, bitcast=True).to(tl.float8e5), mask=at < n)
    else:
        bits = (bits + (noise & 0xFFFF)) >> 16
        tl.store(y + at, bits.to(tl.uint16).to(tl.bfloat16, bitcast=True), mask=at < n)


def case_stochastic_cast():
    n = pick(1 << 24, 1000)
    for B, w in pick([(256, 4), (512, 4)], [(32, 1)]):
        for fp8 in (False, True):
            stochastic_cast[(cd(n, 4 * B),)](rn(n, dtype=f32), ze(n, dtype=e5m2 if fp8 else bf16),
                                             n, 1234, fp8, B, num_warps=w)


@triton.jit
def _nearest(x, table_ptr, STEPS: tl.constexpr):
    lo = tl.zeros(x.shape, tl.int32)
    for s in tl.static_range(STEPS):
        step = 1 << (STEPS - 1 - s)
        v = tl.load(table_ptr + lo + step, cache_modifier=".ca")
        lo = tl.where(x >= v, lo + step, lo)
    return lo


@triton.jit
def adam8bit(p, g, m_q, v_q, m_s, v_s, table, lr, b1, b2, eps, n, BLOCK: tl.constexpr):
    """Both moments in bytes, a scale for each block, codes of a sorted table of 256."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    grad = tl.load(g + offs, mask=mask, other=0.0).to(tl.float32)
    m = tl.load(table + tl.load(m_q + offs, mask=mask, other=128).to(tl.int32)) * tl.load(m_s + pid)
    v = tl.load(v_q + offs, mask=mask, other=0).to(tl.float32) * tl.load(v_s + pid)
    m = b1 * m + (1 - b1) * grad
    v = b2 * v + (1 - b2) * grad * grad
    w = tl.load(p + offs, mask=mask, other=0.0)
    w -= lr * m / (tl.sqrt(v) + eps)
    tl.store(p + offs, w, mask=mask)
    ms = tl.max(tl.where(mask, tl.abs(m), 0.0), axis=0) + 1e-12
    vs = tl.max(tl.where(mask, v, 0.0), axis=0) / 255 + 1e-20
    tl.store(m_q + offs, _nearest(m / ms, table, 8).to(tl.uint8), mask=mask)
    tl.store(v_q + offs, (v / vs).to(tl.uint8), mask=mask)
    tl.store(m_s + pid, ms)
    tl.store(v_s + pid, vs)


def case_adam8bit():
    n = pick(1 << 23, 900)
    table = torch.linspace(-1, 1, 256, device=DEV)
    table = table * table.abs()
    for B, w in pick([(256, 1), (2048, 8)], [(256, 1)]):
        adam8bit[(cd(n, B),)](rn(n, dtype=f32), rn(n), ri(0, 256, n, dtype=u8),
                              ri(0, 256, n, dtype=u8), rn(cd(n, B), dtype=f32).abs(),
                              rn(cd(n, B), dtype=f32).abs() * 1e-3, table, 1e-3, 0.9, 0.999,
                              1e-8, n, B, num_warps=w)


@triton.jit
def fp8_rowwise_cast_transpose(x_ptr, q_ptr, qt_ptr, s_ptr, amax_ptr, M, N, BM: tl.constexpr,
                               BN: tl.constexpr):
    # delayed scaling: both layouts are written, the new maximum goes to one atomic
    pm, pn = tl.program_id(0), tl.program_id(1)
    rm = pm * BM + tl.arange(0, BM)[:, None]
    rn_ = pn * BN + tl.arange(0, BN)[None, :]
    mask = (rm < M) & (rn_ < N)
    x = tl.load(x_ptr + rm * N + rn_, mask=mask, other=0.0).to(tl.float32)
    amax = tl.max(tl.max(tl.abs(x), 1), 0)
    q = tl.minimum(tl.maximum(x * tl.load(s_ptr), -448.0), 448.0).to(tl.float8e4nv)
    tl.store(q_ptr + rm * N + rn_, q, mask=mask)
    tl.store(qt_ptr + rn_.trans() * M + rm.trans(), q.trans(), mask=mask.trans())
    tl.atomic_max(amax_ptr, amax, sem="relaxed")


def case_cast_transpose():
    M, N = pick((4096, 4096), (20, 40))
    for BM, BN, w in pick([(64, 64, 4), (128, 64, 8), (32, 128, 4)], [(16, 16, 1)]):
        fp8_rowwise_cast_transpose[(cd(M, BM), cd(N, BN))](
            rn(M, N), ze(M, N, dtype=e4m3), ze(N, M, dtype=e4m3), rn(1, dtype=f32).abs(), ze(1),
            M, N, BM, BN, num_warps=w)


@triton.jit
def asm_unpack(q_ptr, s_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(q_ptr + i, mask=i < n, other=0)
    a, b = tl.inline_asm_elementwise(
        """
        {
        .reg .b32 t;
        lop3.b32 $0, $2, 0x000f000f, 0x64006400, 0xea;
        shr.u32 t, $2, 4;
        lop3.b32 $1, t, 0x000f000f, 0x64006400, 0xea;
        }
        """, "=r,=r,r", [w], dtype=(tl.int32, tl.int32), is_pure=True, pack=1)
    s = tl.load(s_ptr + i // 16, mask=i < n, other=0.0)
    lo = (a & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True) - 1032.0
    hi = (b >> 16).to(tl.int16).to(tl.float16, bitcast=True) - 1032.0
    tl.store(o_ptr + 2 * i, lo * s, mask=i < n)
    tl.store(o_ptr + 2 * i + 1, hi * s, mask=i < n)


def case_asm_unpack():
    if SMALL:                                       # no PTX on a CPU
        return
    n = 1 << 22
    for B, w in [(512, 4), (1024, 4)]:
        asm_unpack[(cd(n, B),)](ri(-2**31, 2**31 - 1, n), rn(n // 16, dtype=fp16),
                                 ze(2 * n, dtype=fp16), n, B, num_warps=w)


@triton.jit
def group_dequant_gemv(w_ptr, s_ptr, x_ptr, y_ptr, N, K, G: tl.constexpr, BN: tl.constexpr,
                       BK: tl.constexpr):
    # int8 rows, a scale for G columns, summed by splitting dimensions
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK // G), tl.float32)
    for k in tl.range(0, K, BK, loop_unroll_factor=2):
        kk = k + tl.arange(0, BK)
        w = tl.load(w_ptr + n[:, None] * K + kk[None, :], mask=(n < N)[:, None], other=0,
                    eviction_policy="evict_first")
        x = tl.load(x_ptr + kk, eviction_policy="evict_last").to(tl.float32)
        p = tl.reshape(w.to(tl.float32) * x[None, :], (BN, BK // G, G))
        s = tl.load(s_ptr + n[:, None] * (K // G) + (k // G + tl.arange(0, BK // G))[None, :],
                    mask=(n < N)[:, None], other=0.0)
        acc += tl.sum(p, axis=2) * s
    tl.store(y_ptr + n, tl.sum(acc, axis=1), mask=n < N)


def case_group_gemv():
    N, K = pick((8192, 8192), (20, 256))
    for BN, BK, w in pick([(4, 1024, 4), (16, 512, 8), (2, 2048, 4)], [(4, 128, 1)]):
        group_dequant_gemv[(cd(N, BN),)](ri(-128, 128, N, K, dtype=i8),
                                         rn(N, K // 64, dtype=fp16), rn(K), ze(N, dtype=f32), N,
                                         K, 64, BN, BK, num_warps=w)


if __name__ == "__main__":
    run(globals())
