"""Products of numbers of few bits, gathered rows and windows of images of strangers.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import cd, f32, half, pick, ri, rn, run, ze

i8, u8 = torch.int8, torch.uint8
e4m3 = torch.float8_e4m3fn


@triton.jit
def fp8_wgrad(x_ptr, dy_ptr, sx_ptr, sy_ptr, dw_ptr, T, N, K, BT: tl.constexpr,
              BN: tl.constexpr, BK: tl.constexpr):
    # dw = dy^T x: scales of 128 tokens differ along both sides of the result
    pn = tl.program_id(0)
    pk = tl.program_id(1)
    rn_ = pn * BN + tl.arange(0, BN)
    rk = pk * BK + tl.arange(0, BK)
    rt = tl.arange(0, BT)
    acc = tl.zeros((BN, BK), tl.float32)
    for i in range(0, tl.cdiv(T, BT)):
        t = i * BT + rt
        # both were stored turned, so that tokens are contiguous, as fp8 wants it
        dy = tl.load(dy_ptr + rn_[:, None] * T + t[None, :])
        x = tl.load(x_ptr + rk[None, :] * T + t[:, None])
        sy = tl.load(sy_ptr + i * N + rn_)
        sx = tl.load(sx_ptr + i * K + rk)
        acc += tl.dot(dy, x) * sy[:, None] * sx[None, :]
    tl.store(dw_ptr + rn_[:, None] * K + rk[None, :], acc)


def case_fp8_wgrad():
    T, N, K = pick((4096, 1024, 1024), (64, 32, 32))
    for BT, BN, BK, w in pick([(128, 128, 128, 8), (128, 64, 128, 4)], [(32, 16, 32, 1)]):
        fp8_wgrad[(N // BN, K // BK)](rn(K, T, dtype=f32).to(e4m3), rn(N, T, dtype=f32).to(e4m3),
                                      rn(T // BT, K, dtype=f32), rn(T // BT, N, dtype=f32),
                                      ze(N, K), T, N, K, BT, BN, BK, num_warps=w)


@triton.jit
def w4a8_groups(x_ptr, sx_ptr, w_ptr, ws_ptr, wz_ptr, sc_ptr, y_ptr, M, N, K, GROUP: tl.constexpr,
                BM: tl.constexpr, BN: tl.constexpr):
    """QServe's two levels: 4 bits become 8 by a whole scale and zero of a group, sums of int32."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    half_g: tl.constexpr = GROUP // 2
    j = tl.arange(0, half_g)
    acc = tl.zeros((BM, BN), tl.int32)
    for g in range(0, K // GROUP):
        lo_x = tl.load(x_ptr + rm[:, None] * K + (g * GROUP + j)[None, :],
                       mask=rm[:, None] < M, other=0)
        hi_x = tl.load(x_ptr + rm[:, None] * K + (g * GROUP + half_g + j)[None, :],
                       mask=rm[:, None] < M, other=0)
        w = tl.load(w_ptr + rc[None, :] * (K // 2) + (g * half_g + j)[:, None])
        s = tl.load(ws_ptr + g * N + rc)
        z = tl.load(wz_ptr + g * N + rc)
        lo = ((w & 0xF).to(tl.int8) * s[None, :] - z[None, :]).to(tl.int8)
        hi = ((w >> 4).to(tl.int8) * s[None, :] - z[None, :]).to(tl.int8)
        acc = tl.dot(lo_x, lo, acc)
        acc = tl.dot(hi_x, hi, acc)
    y = acc.to(tl.float32) * tl.load(sx_ptr + rm, mask=rm < M, other=0.0)[:, None]
    y *= tl.load(sc_ptr + rc)[None, :]
    tl.store(y_ptr + rm[:, None] * N + rc[None, :], y.to(y_ptr.dtype.element_ty),
             mask=rm[:, None] < M)


def case_w4a8_groups():
    M, N, K, G = pick((512, 2048, 2048, 128), (20, 32, 128, 64))
    for BM, BN, w in pick([(64, 128, 4), (128, 128, 8), (16, 64, 4)], [(16, 16, 1)]):
        w4a8_groups[(cd(M, BM), N // BN)](
            ri(-100, 100, M, K, dtype=i8), rn(M, dtype=f32), ri(0, 256, N, K // 2, dtype=u8),
            ri(1, 8, K // G, N, dtype=i8), ri(0, 60, K // G, N, dtype=i8), rn(N, dtype=f32),
            ze(M, N, dtype=half), M, N, K, G, BM, BN, num_warps=w)


@triton.jit
def w2a16(x_ptr, q_ptr, s_ptr, z_ptr, y_ptr, M, N, K, GROUP: tl.constexpr, BM: tl.constexpr,
          BN: tl.constexpr, BK: tl.constexpr):
    # sixteen weights of 2 bits in a word along k, each k loads its word
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    shift = (rk % 16) * 2
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(x_ptr + rm[:, None] * K + (k + rk)[None, :], mask=rm[:, None] < M, other=0.0)
        q = tl.load(q_ptr + ((k + rk) // 16)[:, None] * N + rc[None, :])
        g = k // GROUP
        s = tl.load(s_ptr + g * N + rc)
        z = tl.load(z_ptr + g * N + rc)
        w = ((q >> shift[:, None]) & 3).to(x.dtype)
        w = (w - z[None, :]) * s[None, :]
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + rm[:, None] * N + rc[None, :], acc.to(y_ptr.dtype.element_ty),
             mask=rm[:, None] < M)


def case_w2a16():
    M, N, K, G = pick((256, 2048, 2048, 128), (20, 32, 128, 64))
    for BM, BN, BK, w in pick([(64, 128, 64, 4), (16, 64, 128, 4), (128, 128, 32, 8)],
                              [(16, 16, 32, 1)]):
        w2a16[(cd(M, BM), N // BN)](rn(M, K, dtype=half), ri(-2**31, 2**31 - 1, K // 16, N),
                                    rn(K // G, N, dtype=half), ri(0, 4, K // G, N).to(half),
                                    ze(M, N, dtype=half), M, N, K, G, BM, BN, BK, num_warps=w)


@triton.jit
def qlora_forward(x_ptr, w_ptr, code_ptr, am_ptr, am2_ptr, off_ptr, a_ptr, b_ptr, y_ptr, M, N, K,
                  R: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """NF4 by a table in memory, its scales of 8 bits with scales of their own, and an adapter."""
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    rr = tl.arange(0, R)
    offset = tl.load(off_ptr)
    acc = tl.zeros((BM, BN), tl.float32)
    low = tl.zeros((BM, R), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(x_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        at = rc[None, :] * K + rk[:, None]
        byte = tl.load(w_ptr + at // 2)
        nib = tl.where(at % 2 == 0, byte >> 4, byte & 0xF).to(tl.int32)
        blk = rc * (K // 64) + k // 64
        am = tl.load(am_ptr + blk).to(tl.float32) * tl.load(am2_ptr + blk // 256) + offset
        w = tl.load(code_ptr + nib) * am[None, :]
        acc = tl.dot(x, w.to(x.dtype), acc)
        low = tl.dot(x, tl.load(a_ptr + rr[None, :] * K + rk[:, None]), low)
    b = tl.load(b_ptr + rc[None, :] * R + rr[:, None])
    acc = tl.dot((low * 0.5).to(b.dtype), b, acc)
    tl.store(y_ptr + rm[:, None] * N + rc[None, :], acc.to(y_ptr.dtype.element_ty),
             mask=rm[:, None] < M)


def case_qlora_forward():
    M, N, K, R = pick((512, 2048, 2048, 16), (20, 32, 128, 16))
    for BM, BN, w in pick([(64, 64, 4), (128, 128, 8)], [(16, 16, 1)]):
        qlora_forward[(cd(M, BM), N // BN)](
            rn(M, K, dtype=half), ri(0, 256, N * K // 2, dtype=u8), rn(16, dtype=f32),
            ri(0, 256, N * K // 64, dtype=u8), rn(cd(N * K // 64, 256), dtype=f32),
            rn(1, dtype=f32), rn(R, K, dtype=half), rn(N, R, dtype=half), ze(M, N, dtype=half), M,
            N, K, R, BM, BN, 64, num_warps=w)


@triton.jit
def hadamard_dots(x_ptr, h_ptr, y_ptr, rows, B: tl.constexpr, BR: tl.constexpr):
    # H(B*B) = H(B) x H(B): two small products with the same signs around a transposition
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = tl.arange(0, B * B)
    i = tl.arange(0, B)
    h = tl.load(h_ptr + i[:, None] * B + i[None, :])
    x = tl.load(x_ptr + r[:, None] * (B * B) + c[None, :], mask=r[:, None] < rows, other=0.0)
    t = tl.dot(tl.reshape(x, (BR * B, B)), h).to(x.dtype)
    t = tl.permute(tl.reshape(t, (BR, B, B)), (0, 2, 1))
    t = tl.dot(tl.reshape(t, (BR * B, B)), h)
    t = tl.permute(tl.reshape(t, (BR, B, B)), (0, 2, 1))
    y = tl.reshape(t, (BR, B * B)) * (1.0 / B)
    tl.store(y_ptr + r[:, None] * (B * B) + c[None, :], y.to(y_ptr.dtype.element_ty),
             mask=r[:, None] < rows)


def case_hadamard_dots():
    for R, B, BR, w in pick([(32768, 16, 16, 4), (8192, 32, 4, 4), (2048, 64, 2, 8)],
                            [(10, 16, 4, 1)]):
        s = torch.ones(1, 1)
        while s.shape[0] < B:
            s = torch.cat([torch.cat([s, s], 1), torch.cat([s, -s], 1)])
        hadamard_dots[(cd(R, BR),)](rn(R, B * B, dtype=half), s.to(half).to(ze(1).device),
                                    ze(R, B * B, dtype=half), R, B, BR, num_warps=w)


@triton.jit
def scaled_mixed(a_ptr, as_ptr, b_ptr, bs_ptr, c_ptr, M, N, K, BM: tl.constexpr,
                 BN: tl.constexpr, BK: tl.constexpr):
    # e5m2 with scales times fp4 packed along n, not along k
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    rh = tl.program_id(1) * (BN // 2) + tl.arange(0, BN // 2)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        rs = k // 32 + tl.arange(0, BK // 32)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :])
        b = tl.load(b_ptr + rk[:, None] * (N // 2) + rh[None, :])
        sa = tl.load(as_ptr + rm[:, None] * (K // 32) + rs[None, :])
        sb = tl.load(bs_ptr + rc[:, None] * (K // 32) + rs[None, :])
        acc = tl.dot_scaled(a, sa, "e5m2", b, sb, "e2m1", acc, rhs_k_pack=False)
    tl.store(c_ptr + rm[:, None] * N + rc[None, :], acc)


def case_scaled_mixed():
    M, N, K = pick((512, 1024, 1024), (32, 64, 64))
    for BM, BN, BK, w in pick([(128, 128, 64, 4), (64, 64, 128, 4)], [(16, 32, 64, 1)]):
        scaled_mixed[(M // BM, N // BN)](
            rn(M, K, dtype=f32).to(torch.float8_e5m2), ri(120, 130, M, K // 32, dtype=u8),
            ri(0, 256, K, N // 2, dtype=u8), ri(120, 130, N, K // 32, dtype=u8), ze(M, N), M, N, K,
            BM, BN, BK, num_warps=w)


@triton.jit
def dlrm_interact(table_ptr, idx_ptr, dense_ptr, out_ptr, F: tl.constexpr, FP: tl.constexpr,
                  D: tl.constexpr):
    """Products of every pair of a sample's embeddings, the lower triangle alone."""
    s = tl.program_id(0).to(tl.int64)
    f = tl.arange(0, FP)
    d = tl.arange(0, D)
    row = tl.load(idx_ptr + s * F + f - 1, mask=(f > 0) & (f <= F), other=0)
    e = tl.load(table_ptr + row[:, None] * D + d[None, :], mask=((f > 0) & (f <= F))[:, None],
                other=0.0)
    x = tl.load(dense_ptr + s * D + d)
    e = tl.where(f[:, None] == 0, x[None, :], e)
    z = tl.dot(e, tl.trans(e))
    width = D + F * (F + 1) // 2
    tl.store(out_ptr + s * width + d, x)
    at = D + f[:, None] * (f[:, None] - 1) // 2 + f[None, :]
    tl.store(out_ptr + s * width + at, z.to(out_ptr.dtype.element_ty),
             mask=(f[:, None] > f[None, :]) & (f <= F)[:, None])


def case_dlrm_interact():
    S, F, D, R = pick((8192, 26, 64, 100000), (9, 13, 16, 50))
    for FP, w in pick([(32, 1), (32, 4)], [(16, 1)]):
        dlrm_interact[(S,)](rn(R, D, dtype=half), ri(0, R, S, F, dtype=torch.int64),
                            rn(S, D, dtype=half), ze(S, D + F * (F + 1) // 2, dtype=half), F, FP,
                            D, num_warps=w)


@triton.jit
def maxsim(q_ptr, d_ptr, len_ptr, out_ptr, n_doc_tok, NQ: tl.constexpr, D: tl.constexpr,
           BT: tl.constexpr):
    # late interaction: the best word of a document for each word of the query, summed
    doc = tl.program_id(0)
    iq = tl.arange(0, NQ)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + iq[:, None] * D + d[None, :])
    n = tl.load(len_ptr + doc)
    best = tl.full([NQ], -1e4, tl.float32)
    for t in range(0, n, BT):
        rt = t + tl.arange(0, BT)
        x = tl.load(d_ptr + (doc * n_doc_tok + rt)[:, None] * D + d[None, :],
                    mask=(rt < n)[:, None], other=0.0)
        s = tl.dot(x, tl.trans(q))
        best = tl.maximum(best, tl.max(tl.where((rt < n)[:, None], s, -1e4), axis=0))
    tl.store(out_ptr + doc, tl.sum(best, axis=0))


def case_maxsim():
    docs, T, NQ, D = pick((4096, 180, 32, 128), (7, 40, 16, 16))
    n = ri(1, T + 1, docs)
    for BT, w in pick([(64, 4), (128, 4), (32, 2)], [(16, 1)]):
        maxsim[(docs,)](rn(NQ, D, dtype=half), rn(docs, T, D, dtype=half), n, ze(docs), T, NQ, D,
                        BT, num_warps=w)


@triton.jit
def grouped_conv(x_ptr, w_ptr, y_ptr, NB, H, W, CG: tl.constexpr, OG: tl.constexpr,
                 GROUPS: tl.constexpr, KS: tl.constexpr, BP: tl.constexpr):
    """NHWC, a group of channels a program; the window and the group's channels are k."""
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    g = tl.program_id(1)
    b = p // (H * W)
    oy = p // W % H
    ox = p % W
    o = tl.arange(0, OG)
    c = tl.arange(0, CG)
    acc = tl.zeros((BP, OG), tl.float32)
    for t in range(KS * KS):
        iy = oy + t // KS - KS // 2
        ix = ox + t % KS - KS // 2
        ok = (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W) & (b < NB)
        x = tl.load(x_ptr + (((b * H + iy) * W + ix) * GROUPS + g)[:, None] * CG + c[None, :],
                    mask=ok[:, None], other=0.0)
        w = tl.load(w_ptr + ((g * OG + o)[None, :] * (KS * KS) + t) * CG + c[:, None])
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + (p[:, None] * GROUPS + g) * OG + o[None, :],
             acc.to(y_ptr.dtype.element_ty), mask=(b < NB)[:, None])


def case_grouped_conv():
    NB, H, W, G, C, O = pick((16, 56, 56, 8, 32, 32), (2, 6, 7, 3, 16, 16))
    for BP, w in pick([(128, 4), (64, 2)], [(32, 1)]):
        grouped_conv[(cd(NB * H * W, BP), G)](
            rn(NB, H, W, G * C, dtype=half), rn(G * O, 3, 3, C, dtype=half),
            ze(NB, H, W, G * O, dtype=half), NB, H, W, C, O, G, 3, BP, num_warps=w)


@triton.jit
def conv_transposed(x_ptr, w_ptr, b_ptr, y_ptr, H, W, CI, CO, BP: tl.constexpr, BO: tl.constexpr,
                    BC: tl.constexpr):
    # 4x4, stride 2: each of four parities of the result takes 2x2 of the window
    par = tl.program_id(2)
    py = par // 2
    px = par % 2
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    o = tl.program_id(1) * BO + tl.arange(0, BO)
    y = p // W
    x = p % W
    acc = tl.zeros((BP, BO), tl.float32)
    for dy in range(2):
        for dx in range(2):
            iy = y + dy - 1 + py
            ix = x + dx - 1 + px
            ky = 3 - py - 2 * dy
            kx = 3 - px - 2 * dx
            ok = (iy >= 0) & (iy < H) & (ix >= 0) & (ix < W) & (y < H)
            for c in range(0, CI, BC):
                rc = c + tl.arange(0, BC)
                a = tl.load(x_ptr + (iy * W + ix)[:, None] * CI + rc[None, :], mask=ok[:, None],
                            other=0.0)
                w = tl.load(w_ptr + ((ky * 4 + kx) * CI + rc)[:, None] * CO + o[None, :])
                acc += tl.dot(a, w)
    acc += tl.load(b_ptr + o).to(tl.float32)[None, :]
    to = ((2 * y + py) * (2 * W) + 2 * x + px) * CO
    tl.store(y_ptr + to[:, None] + o[None, :], acc.to(y_ptr.dtype.element_ty),
             mask=(y < H)[:, None])


def case_conv_transposed():
    H, W, CI, CO = pick((64, 64, 256, 128), (5, 6, 32, 32))
    for BP, BO, BC, w in pick([(128, 128, 32, 4), (64, 64, 64, 4)], [(16, 16, 16, 1)]):
        conv_transposed[(cd(H * W, BP), CO // BO, 4)](
            rn(H, W, CI, dtype=half), rn(4, 4, CI, CO, dtype=half), rn(CO, dtype=half),
            ze(2 * H, 2 * W, CO, dtype=half), H, W, CI, CO, BP, BO, BC, num_warps=w)


@triton.jit
def deform_conv(x_ptr, off_ptr, msk_ptr, w_ptr, y_ptr, H, W, C, O, BP: tl.constexpr,
                BO: tl.constexpr, BC: tl.constexpr):
    """Windows that are bent by loaded offsets: four corners make an operand (DCNv2)."""
    p = tl.program_id(0) * BP + tl.arange(0, BP)
    o = tl.program_id(1) * BO + tl.arange(0, BO)
    inside = p < H * W
    acc = tl.zeros((BP, BO), tl.float32)
    for t in range(9):
        fy = tl.load(off_ptr + p * 18 + 2 * t, mask=inside, other=0.0) + p // W + t // 3 - 1
        fx = tl.load(off_ptr + p * 18 + 2 * t + 1, mask=inside, other=0.0) + p % W + t % 3 - 1
        m = tl.load(msk_ptr + p * 9 + t, mask=inside, other=0.0)
        y0 = tl.floor(fy)
        x0 = tl.floor(fx)
        ly = fy - y0
        lx = fx - x0
        y0 = y0.to(tl.int32)
        x0 = x0.to(tl.int32)
        for c in range(0, C, BC):
            rc = c + tl.arange(0, BC)
            v = tl.zeros((BP, BC), tl.float32)
            for q in tl.static_range(4):
                yy = y0 + q // 2
                xx = x0 + q % 2
                wy = ly if q // 2 else 1 - ly
                wx = lx if q % 2 else 1 - lx
                ok = (yy >= 0) & (yy < H) & (xx >= 0) & (xx < W) & inside
                corner = tl.load(x_ptr + (yy * W + xx)[:, None] * C + rc[None, :],
                                 mask=ok[:, None], other=0.0)
                v += corner.to(tl.float32) * (wy * wx * m)[:, None]
            w = tl.load(w_ptr + (t * C + rc)[:, None] * O + o[None, :])
            acc = tl.dot(v.to(w.dtype), w, acc)
    tl.store(y_ptr + p[:, None] * O + o[None, :], acc.to(y_ptr.dtype.element_ty),
             mask=inside[:, None])


def case_deform_conv():
    H, W, C, O = pick((64, 64, 128, 128), (5, 6, 16, 32))
    for BP, BO, BC, w in pick([(64, 128, 32, 4), (64, 64, 64, 4)], [(16, 16, 16, 1)]):
        deform_conv[(cd(H * W, BP), O // BO)](
            rn(H, W, C, dtype=half), rn(H * W, 18, dtype=f32), rn(H * W, 9, dtype=f32),
            rn(9, C, O, dtype=half), ze(H * W, O, dtype=half), H, W, C, O, BP, BO, BC,
            num_warps=w)


@triton.jit
def sparse_conv(feat_ptr, nbr_ptr, w_ptr, out_ptr, n_vox, C: tl.constexpr, O: tl.constexpr,
                KV: tl.constexpr, BV: tl.constexpr):
    # voxels and their 27 neighbours by a list, -1 where there is none; empty tiles are left out
    v = tl.program_id(0) * BV + tl.arange(0, BV)
    c = tl.arange(0, C)
    o = tl.arange(0, O)
    acc = tl.zeros((BV, O), tl.float32)
    for k in range(KV):
        j = tl.load(nbr_ptr + k * n_vox + v, mask=v < n_vox, other=-1)
        if tl.max(j, axis=0) >= 0:
            x = tl.load(feat_ptr + j[:, None] * C + c[None, :], mask=(j >= 0)[:, None], other=0.0)
            w = tl.load(w_ptr + (k * C + c)[:, None] * O + o[None, :])
            acc = tl.dot(x, w, acc)
    tl.store(out_ptr + v[:, None] * O + o[None, :], acc.to(out_ptr.dtype.element_ty),
             mask=(v < n_vox)[:, None])


def case_sparse_conv():
    n, C, O = pick((50000, 64, 64), (50, 16, 16))
    nbr = ri(-n, n, 27, n).clamp(min=-1)
    for BV, w in pick([(128, 4), (64, 4)], [(16, 1)]):
        sparse_conv[(cd(n, BV),)](rn(n, C, dtype=half), nbr, rn(27, C, O, dtype=half),
                                  ze(n, O, dtype=half), n, C, O, 27, BV, num_warps=w)


if __name__ == "__main__":
    run(globals())
