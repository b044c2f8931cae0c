"""Chunks of linear attention and of state space models as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, half, pick, rn, run, ze


@triton.jit
def chunk_local_cumsum(s, o, T, H: tl.constexpr, S: tl.constexpr, BT: tl.constexpr,
                       BS: tl.constexpr, REVERSE: tl.constexpr):
    i_s, i_t, i_bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i_b, i_h = i_bh // H, i_bh % H
    p_s = tl.make_block_ptr(s + (i_b * T * H + i_h) * S, (T, S), (H * S, 1),
                            (i_t * BT, i_s * BS), (BT, BS), (1, 0))
    p_o = tl.make_block_ptr(o + (i_b * T * H + i_h) * S, (T, S), (H * S, 1),
                            (i_t * BT, i_s * BS), (BT, BS), (1, 0))
    b_s = tl.load(p_s, boundary_check=(0, 1)).to(tl.float32)
    if REVERSE:
        b_o = tl.cumsum(b_s, axis=0, reverse=True)
    else:
        b_o = tl.cumsum(b_s, axis=0)
    tl.store(p_o, b_o.to(p_o.dtype.element_ty), boundary_check=(0, 1))


def case_local_cumsum():
    B, T, H, S = pick((4, 4001, 8, 128), (1, 50, 2, 48))
    for BT, BS, rev, w in pick([(64, 64, False, 4), (64, 32, True, 8)], [(16, 32, True, 4)]):
        s = rn(B, T, H, S, dtype=f32)
        chunk_local_cumsum[(cd(S, BS), cd(T, BT), B * H)](s, ze(B, T, H, S), T, H, S, BT, BS,
                                                         rev, num_warps=w)


@triton.jit
def scaled_kkt(k, beta, g, A, T, H: tl.constexpr, K: tl.constexpr, BT: tl.constexpr,
               BK: tl.constexpr, GATE: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_t = i_t * BT + tl.arange(0, BT)
    m_t = o_t < T
    b_beta = tl.load(beta + (i_b * T + o_t) * H + i_h, mask=m_t, other=0.0)
    b_A = tl.zeros([BT, BT], dtype=tl.float32)
    for i_k in range(tl.cdiv(K, BK)):
        o_k = i_k * BK + tl.arange(0, BK)
        m = m_t[:, None] & (o_k < K)[None, :]
        b_k = tl.load(k + ((i_b * T + o_t) * H + i_h)[:, None] * K + o_k[None, :], mask=m,
                      other=0.0)
        b_kb = b_k * b_beta[:, None]
        b_A += tl.dot(b_kb.to(b_k.dtype), tl.trans(b_k))
    if GATE:
        b_g = tl.load(g + (i_b * T + o_t) * H + i_h, mask=m_t, other=0.0)
        b_A *= tl.exp(b_g[:, None] - b_g[None, :])
    i = tl.arange(0, BT)
    b_A = tl.where(i[:, None] > i[None, :], b_A, 0)
    tl.store(A + ((i_b * T + o_t) * H + i_h)[:, None] * BT + i[None, :], b_A, mask=m_t[:, None])


def case_scaled_kkt():
    B, T, H, K = pick((4, 4000, 8, 128), (1, 70, 2, 40))
    for BT, BK, gate, w in pick([(64, 64, True, 4), (64, 128, False, 8), (32, 64, True, 2)],
                                [(32, 32, True, 4)]):
        k, beta = rn(B, T, H, K, dtype=half, scale=0.3), rn(B, T, H, dtype=f32).sigmoid()
        g = -rn(B, T, H, dtype=f32).abs().cumsum(1) * 0.01
        scaled_kkt[(cd(T, BT), B * H)](k, beta, g, ze(B, T, H, BT), T, H, K, BT, BK, gate,
                                       num_warps=w)


@triton.jit
def solve_tril_16(A, Ai, T, H: tl.constexpr, BT: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_i = tl.arange(0, 16)
    first = i_t * 16
    offset = first % BT
    A += (i_b * T * H + i_h) * BT
    rows = first + o_i
    b_A = tl.load(A + rows[:, None] * H * BT + offset + o_i[None, :], mask=(rows < T)[:, None],
                  other=0.0)
    b_A = -tl.where(o_i[:, None] > o_i[None, :], b_A, 0)
    for i in range(2, min(16, T - first)):
        b_a = -tl.load(A + (first + i) * H * BT + o_i + offset)
        b_a = tl.where(o_i < i, b_a, 0.0)
        b_a = b_a + tl.sum(b_a[:, None] * b_A, 0)
        b_A = tl.where((o_i == i)[:, None], b_a, b_A)
    b_A += o_i[:, None] == o_i[None, :]
    tl.store(Ai + (i_b * T * H + i_h) * 16 + rows[:, None] * H * 16 + o_i[None, :], b_A,
             mask=(rows < T)[:, None])


def case_solve_tril_16():
    B, T, H, BT = pick((4, 4000, 8, 64), (1, 75, 2, 32))
    A = torch.tril(rn(B, T, H, BT, dtype=f32, scale=0.2))
    for w in pick([1, 2], [1]):
        solve_tril_16[(cd(T, 16), B * H)](A, ze(B, T, H, 16), T, H, BT, num_warps=w)


@triton.jit
def merge_16_to_32(A, Ai16, Ai, T, H: tl.constexpr, BT: tl.constexpr):
    i_t, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    A += (i_b * T * H + i_h) * BT
    Ai16 += (i_b * T * H + i_h) * 16
    Ai += (i_b * T * H + i_h) * 32
    p_21 = tl.make_block_ptr(A, (T, BT), (H * BT, 1), (i_t * 32 + 16, 0), (16, 16), (1, 0))
    p_a = tl.make_block_ptr(Ai16, (T, 16), (H * 16, 1), (i_t * 32, 0), (16, 16), (1, 0))
    p_b = tl.make_block_ptr(Ai16, (T, 16), (H * 16, 1), (i_t * 32 + 16, 0), (16, 16), (1, 0))
    A21 = tl.load(p_21, boundary_check=(0, 1)).to(tl.float32)
    a = tl.load(p_a, boundary_check=(0, 1)).to(tl.float32)
    b = tl.load(p_b, boundary_check=(0, 1)).to(tl.float32)
    c = -tl.dot(tl.dot(b, A21, input_precision="ieee"), a, input_precision="ieee")
    o_a = tl.make_block_ptr(Ai, (T, 32), (H * 32, 1), (i_t * 32, 0), (16, 16), (1, 0))
    o_b = tl.make_block_ptr(Ai, (T, 32), (H * 32, 1), (i_t * 32 + 16, 16), (16, 16), (1, 0))
    o_c = tl.make_block_ptr(Ai, (T, 32), (H * 32, 1), (i_t * 32 + 16, 0), (16, 16), (1, 0))
    tl.store(o_a, a.to(o_a.dtype.element_ty, fp_downcast_rounding="rtne"), boundary_check=(0, 1))
    tl.store(o_b, b.to(o_b.dtype.element_ty, fp_downcast_rounding="rtne"), boundary_check=(0, 1))
    tl.store(o_c, c.to(o_c.dtype.element_ty, fp_downcast_rounding="rtne"), boundary_check=(0, 1))


def case_merge_tril():
    B, T, H = pick((4, 4000, 8), (1, 75, 2))
    A, Ai = rn(B, T, H, 32, dtype=f32, scale=0.2), rn(B, T, H, 16, dtype=f32)
    for w in pick([1, 4], [2]):
        merge_16_to_32[(cd(T, 32), B * H)](A, Ai, ze(B, T, H, 32, dtype=half), T, H, 32,
                                           num_warps=w)


@triton.jit
def delta_h(k, v, d, g, h, h0, ht, T, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
            BT: tl.constexpr, BV: tl.constexpr, NT, START: tl.constexpr, FINAL: tl.constexpr):
    i_v, i_bh = tl.program_id(0), tl.program_id(1)
    i_b, i_h = i_bh // H, i_bh % H
    o_k, o_v = tl.arange(0, K), i_v * BV + tl.arange(0, BV)
    b_h = tl.zeros([K, BV], tl.float32)
    if START:
        b_h += tl.load(h0 + i_bh * K * V + o_k[:, None] * V + o_v[None, :])
    for i_t in range(NT):
        o_t = i_t * BT + tl.arange(0, BT)
        m = o_t < T
        row = (i_b * T + o_t) * H + i_h
        tl.store(h + ((i_b * NT + i_t) * H + i_h) * K * V + o_k[:, None] * V + o_v[None, :],
                 b_h.to(h.dtype.element_ty))
        b_d = tl.load(d + row[:, None] * K + o_k[None, :], mask=m[:, None], other=0.0)
        b_v = tl.load(v + row[:, None] * V + o_v[None, :], mask=m[:, None], other=0.0)
        b_v = b_v - tl.dot(b_d, b_h.to(b_d.dtype))
        last = min((i_t + 1) * BT, T) - 1
        g_last = tl.load(g + (i_b * T + last) * H + i_h)
        b_g = tl.load(g + row, mask=m, other=0.0)
        b_v = b_v * tl.where(m, tl.exp(g_last - b_g), 0.0)[:, None]
        b_h *= tl.exp(g_last)
        b_k = tl.load(k + row[None, :] * K + o_k[:, None], mask=m[None, :], other=0.0)
        b_h += tl.dot(b_k, b_v.to(b_k.dtype))
    if FINAL:
        tl.store(ht + i_bh * K * V + o_k[:, None] * V + o_v[None, :], b_h)


def case_delta_h():
    B, T, H, K, V = pick((2, 4000, 8, 128, 128), (1, 70, 2, 32, 32))
    for BT, BV, start, w, s in pick([(64, 32, True, 4, 2), (64, 64, False, 4, 3)],
                                    [(16, 32, True, 4, 2)]):
        NT = cd(T, BT)
        k, d = rn(B, T, H, K, dtype=half, scale=.1), rn(B, T, H, K, dtype=half, scale=.1)
        v, g = rn(B, T, H, V, dtype=half), -rn(B, T, H, dtype=f32).abs() * .1
        delta_h[(cd(V, BV), B * H)](k, v, d, g, ze(B, NT, H, K, V, dtype=half),
                                    rn(B, H, K, V, dtype=f32), ze(B, H, K, V), T, H, K, V, BT,
                                    BV, NT, start, True, num_warps=w, num_stages=s)


@triton.jit
def ssd_bmm(a, b, out, seq, L, G, K, CS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
            BK: tl.constexpr, CAUSAL: tl.constexpr, SEQ: tl.constexpr):
    pid_ch = tl.program_id(1)
    pid_c, pid_g = pid_ch // G, pid_ch % G
    num_n = tl.cdiv(CS, BN)
    pid_m, pid_n = tl.program_id(0) // num_n, tl.program_id(0) % num_n
    if CAUSAL:
        if pid_n * BN >= (pid_m + 1) * BM:
            return
    a += pid_c * CS * G * K + pid_g * K
    b += pid_c * CS * G * K + pid_g * K
    offs_m, offs_n = pid_m * BM + tl.arange(0, BM), pid_n * BN + tl.arange(0, BN)
    offs_k = tl.arange(0, BK)
    limit = min(CS, L - pid_c * CS)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    pa = a + offs_m[:, None] * (G * K) + offs_k[None, :]
    pb = b + offs_k[:, None] + offs_n[None, :] * (G * K)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(pa, mask=(offs_m[:, None] < limit) & (offs_k[None, :] < K - k * BK), other=0.0)
        y = tl.load(pb, mask=(offs_k[:, None] < K - k * BK) & (offs_n[None, :] < limit), other=0.0)
        acc += tl.dot(x, y)
        pa += BK
        pb += BK
    if SEQ:
        sm = tl.load(seq + pid_c * CS + offs_m, mask=offs_m < limit, other=-1)
        sn = tl.load(seq + pid_c * CS + offs_n, mask=offs_n < limit, other=-2)
        acc = tl.where(sm[:, None] == sn[None, :], acc, 0.0)
    tl.store(out + (pid_c * G + pid_g) * CS * CS + offs_m[:, None] * CS + offs_n[None, :],
             acc.to(out.dtype.element_ty), mask=(offs_m[:, None] < CS) & (offs_n[None, :] < CS))


def case_ssd_bmm():
    L, G, K, CS = pick((8100, 8, 128, 256), (100, 2, 40, 64))
    seq = (torch.arange(L, device=DEV) // 37).to(torch.int32)
    a, b = rn(L, G, K, dtype=half), rn(L, G, K, dtype=half)
    for BM, BN, BK, causal, w, s in pick([(128, 128, 64, True, 8, 3), (64, 64, 32, False, 4, 4)],
                                         [(32, 64, 32, True, 4, 3), (64, 16, 16, False, 4, 2)]):
        ssd_bmm[(cd(CS, BM) * cd(CS, BN), cd(L, CS) * G)](
            a, b, ze(cd(L, CS), G, CS, CS, dtype=half), seq, L, G, K, CS, BM, BN, BK, causal, True,
            num_warps=w, num_stages=s)


@triton.jit
def ssd_scan(cb, x, dt, da, c, st, dd, z, o, L, H: tl.constexpr, G: tl.constexpr, P: tl.constexpr,
             N: tl.constexpr, CS: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
             HAS_Z: tl.constexpr):
    pid_m, pid_c, pid_h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    m, p, n = pid_m * BM + tl.arange(0, BM), tl.arange(0, P), tl.arange(0, N)
    g = pid_h // (H // G)
    limit = min(CS, L - pid_c * CS)
    da_m = tl.load(da + (pid_h * tl.num_programs(1) + pid_c) * CS + m, mask=m < CS, other=0.0)
    t = pid_c * CS + m
    ct = tl.load(c + (t[:, None] * G + g) * N + n[None, :], mask=(m < limit)[:, None], other=0.0)
    s0 = tl.load(st + (pid_c * H + pid_h) * P * N + p[None, :] * N + n[:, None])
    acc = tl.dot(ct, s0.to(ct.dtype)) * tl.exp(da_m)[:, None]
    for k in range(0, min((pid_m + 1) * BM, limit), BK):
        kk = k + tl.arange(0, BK)
        w = tl.load(cb + (pid_c * G + g) * CS * CS + m[:, None] * CS + kk[None, :],
                    mask=(m[:, None] < CS) & (kk[None, :] < CS), other=0.0).to(tl.float32)
        da_k = tl.load(da + (pid_h * tl.num_programs(1) + pid_c) * CS + kk, mask=kk < limit,
                       other=0.0)
        dt_k = tl.load(dt + (pid_h * tl.num_programs(1) + pid_c) * CS + kk, mask=kk < limit,
                       other=0.0)
        w *= tl.exp(tl.minimum(da_m[:, None] - da_k[None, :], 0.0)) * dt_k
        w = tl.where(m[:, None] >= kk[None, :], w, 0.0)
        xk = tl.load(x + ((pid_c * CS + kk)[:, None] * H + pid_h) * P + p[None, :],
                     mask=(kk < limit)[:, None], other=0.0)
        acc += tl.dot(w.to(xk.dtype), xk)
    xm = tl.load(x + (t[:, None] * H + pid_h) * P + p[None, :], mask=(m < limit)[:, None],
                 other=0.0).to(tl.float32)
    acc += xm * tl.load(dd + pid_h)
    if HAS_Z:
        zz = tl.load(z + (t[:, None] * H + pid_h) * P + p[None, :], mask=(m < limit)[:, None],
                     other=0.0).to(tl.float32)
        acc *= zz * tl.sigmoid(zz)
    tl.store(o + (t[:, None] * H + pid_h) * P + p[None, :], acc, mask=(m < limit)[:, None])


def case_ssd_scan():
    L, H, G, P, N, CS = pick((8100, 16, 2, 64, 128, 256), (100, 4, 2, 32, 16, 64))
    NC = cd(L, CS)
    for BM, BK, hz, w, s in pick([(64, 32, True, 4, 3), (128, 64, False, 8, 2)],
                                 [(32, 16, True, 4, 3)]):
        ssd_scan[(cd(CS, BM), NC, H)](
            rn(NC, G, CS, CS, dtype=half, scale=.1), rn(L, H, P, dtype=half),
            rn(H, NC, CS, dtype=f32).abs(), -rn(H, NC, CS, dtype=f32).abs().cumsum(2) * .05,
            rn(L, G, N, dtype=half, scale=.1), rn(NC, H, P, N, dtype=f32), rn(H, dtype=f32),
            rn(L, H, P, dtype=half), ze(L, H, P, dtype=half), L, H, G, P, N, CS, BM, BK, hz,
            num_warps=w, num_stages=s)


@triton.jit
def softplus(x):
    return tl.where(x <= 20.0, tl.log(tl.exp(x) + 1), x)


@triton.jit
def state_update(state, x, dt, bias, A, Bm, Cm, D, z, idx, out, H, P, N: tl.constexpr,
                 R: tl.constexpr, BP: tl.constexpr, TIE: tl.constexpr):
    pid_p, pid_b, pid_h = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    slot = tl.load(idx + pid_b).to(tl.int64)
    if slot < 0:
        return
    p, n = pid_p * BP + tl.arange(0, BP), tl.arange(0, N)
    m = p < P
    row = (pid_b * H + pid_h) * P
    xv = tl.load(x + row + p, mask=m, other=0.0).to(tl.float32)
    if TIE:
        d = softplus(tl.load(dt + row).to(tl.float32) + tl.load(bias + pid_h * P))
        dA = tl.exp(tl.load(A + pid_h).to(tl.float32) * d)
    else:
        d = softplus(tl.load(dt + row + p, mask=m, other=0.0).to(tl.float32) +
                     tl.load(bias + pid_h * P + p, mask=m, other=0.0))
        dA = tl.exp(tl.load(A + (pid_h * P + p)[:, None] * N + n[None, :], mask=m[:, None],
                            other=0.0) * d[:, None])
    b = tl.load(Bm + (pid_b * (H // R) + pid_h // R) * N + n)
    c = tl.load(Cm + (pid_b * (H // R) + pid_h // R) * N + n)
    ps = state + (slot * H + pid_h) * P * N + p[:, None] * N + n[None, :]
    s = tl.load(ps, mask=m[:, None], other=0.0)
    dB = b[None, :] * d if TIE else b[None, :] * d[:, None]
    s = s * dA + dB * xv[:, None]
    tl.store(ps, s, mask=m[:, None])
    o = tl.sum(s * c[None, :], axis=1) + xv * tl.load(D + pid_h * P + p, mask=m, other=0.0)
    zv = tl.load(z + row + p, mask=m, other=0.0).to(tl.float32)
    tl.store(out + row + p, o * zv * tl.sigmoid(zv), mask=m)


def case_state_update():
    B, H, P, N = pick((64, 32, 64, 128), (5, 4, 20, 16))
    idx = torch.arange(B, device=DEV, dtype=torch.int32).flip(0).contiguous()
    idx[1] = -1
    for tie, BP, w in pick([(True, 16, 4), (False, 8, 4), (False, 64, 8)],
                           [(True, 16, 4), (False, 8, 2)]):
        A = -rn(H, dtype=f32).abs() if tie else -rn(H, P, N, dtype=f32).abs()
        state_update[(cd(P, BP), B, H)](
            rn(B, H, P, N, dtype=f32), rn(B, H, P, dtype=half), rn(B, H, P, dtype=half),
            rn(H, P, dtype=f32), A, rn(B, H // 2, N, dtype=f32), rn(B, H // 2, N, dtype=f32),
            rn(H, P, dtype=f32), rn(B, H, P, dtype=half), idx, ze(B, H, P), H, P, N, 2, BP, tie,
            num_warps=w)


@triton.jit
def lightning(q, k, v, o, kv, slope, T, D: tl.constexpr, E: tl.constexpr, B: tl.constexpr,
              BE: tl.constexpr):
    h, e = tl.program_id(0), tl.program_id(1)
    s = tl.load(slope + h)
    i = tl.arange(0, B)
    rd, re = tl.arange(0, D), e * BE + tl.arange(0, BE)
    q_decay = tl.exp(-s * (i + 1).to(tl.float32))[:, None]
    index = i[:, None] - i[None, :]
    diag = tl.exp(tl.where(index >= 0, -s * index, float("-inf")))
    acc = tl.zeros([D, BE], tl.float32)
    for t in range(0, T, B):
        r = t + i
        m = r < T
        n = min(B, T - t)
        k_decay = tl.where(m, tl.exp(-s * (n - 1 - i).to(tl.float32)), 0.0)
        qb = tl.load(q + (h * T + r[:, None]) * D + rd[None, :], mask=m[:, None], other=0.0)
        kt = tl.load(k + (h * T + r[None, :]) * D + rd[:, None], mask=m[None, :], other=0.0)
        vb = tl.load(v + (h * T + r[:, None]) * E + re[None, :], mask=m[:, None], other=0.0)
        intra = tl.dot((tl.dot(qb, kt) * diag).to(vb.dtype), vb)
        inter = tl.dot(qb, acc.to(qb.dtype)) * q_decay
        tl.store(o + (h * T + r[:, None]) * E + re[None, :], intra + inter, mask=m[:, None])
        acc = tl.exp(-s * n) * acc + tl.dot((kt * k_decay[None, :]).to(vb.dtype), vb)
    tl.store(kv + h * D * E + rd[:, None] * E + re[None, :], acc)


def case_lightning():
    H, T, D, E = pick((32, 4000, 128, 128), (2, 90, 32, 64))
    a = [rn(H, T, n, dtype=half, scale=.3) for n in (D, D, E)]
    slope = torch.linspace(.01, .5, H, device=a[0].device)
    for B, BE, w, s in pick([(64, 64, 4, 2), (128, 32, 8, 2)], [(32, 32, 4, 2)]):
        lightning[(H, E // BE)](*a, ze(H, T, E, dtype=half), ze(H, D, E), slope, T, D, E, B, BE,
                                num_warps=w, num_stages=s)


if __name__ == "__main__":
    run(globals())
