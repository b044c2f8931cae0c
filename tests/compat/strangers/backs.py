"""Backward passes of recurrences in chunks, batches of small matrices, and sums of pairs.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import cd, f32, half, pick, ri, rn, run, ze


@triton.jit
def gla_bwd_intra(q_ptr, k_ptr, g_ptr, da_ptr, dq_ptr, dk_ptr, T, K: tl.constexpr,
                  BT: tl.constexpr, BC: tl.constexpr, BK: tl.constexpr):
    # sub-blocks: those behind by dots, relative to a gate between; the diagonal by rows
    i_k = tl.program_id(0)
    i_c = tl.program_id(1)
    bh = tl.program_id(2)
    NC: tl.constexpr = BT // BC
    i_t = i_c // NC
    i_i = i_c % NC
    at = i_t * BT + i_i * BC
    if at >= T:
        return
    o_k = i_k * BK + tl.arange(0, BK)
    o_c = tl.arange(0, BC)
    base = bh * T
    row = (base + at + o_c)[:, None] * K + o_k[None, :]
    m = ((at + o_c) < T)[:, None] & (o_k < K)[None, :]
    g = tl.load(g_ptr + row, mask=m, other=0.0)
    gn = tl.load(g_ptr + (base + at) * K + o_k, mask=o_k < K, other=0.0)
    dq = tl.zeros((BC, BK), tl.float32)
    for j in range(0, i_i):
        jrow = (base + i_t * BT + j * BC + o_c)[:, None] * K + o_k[None, :]
        k = tl.load(k_ptr + jrow, mask=(o_k < K)[None, :], other=0.0)
        gk = tl.load(g_ptr + jrow, mask=(o_k < K)[None, :], other=0.0)
        kg = k * tl.exp(gn[None, :] - gk)
        da = tl.load(da_ptr + (base + at + o_c)[:, None] * BT + (j * BC + o_c)[None, :],
                     mask=((at + o_c) < T)[:, None], other=0.0)
        dq += tl.dot(da, kg)
    dq *= tl.exp(g - gn[None, :])
    for j in range(0, min(BC, T - at)):
        d = tl.load(da_ptr + (base + at + o_c) * BT + i_i * BC + j, mask=(at + o_c) < T, other=0.0)
        kj = tl.load(k_ptr + (base + at + j) * K + o_k, mask=o_k < K, other=0.0).to(tl.float32)
        gj = tl.load(g_ptr + (base + at + j) * K + o_k, mask=o_k < K, other=0.0)
        dq += tl.where((o_c >= j)[:, None],
                       d[:, None] * kj[None, :] * tl.exp(g - gj[None, :]), 0.0)
    tl.store(dq_ptr + row, dq, mask=m)
    q = tl.load(q_ptr + row, mask=m, other=0.0)
    tl.store(dk_ptr + row, q.to(tl.float32) * dq, mask=m)


def case_gla_bwd_intra():
    B, T, K = pick((16, 2048, 128), (2, 50, 32))
    g = -(torch.rand(B, T, K, device=ze(1).device) * .05).cumsum(1)
    for BT, BC, BK, w in pick([(64, 16, 64, 2), (64, 16, 32, 1)], [(32, 16, 16, 1)]):
        gla_bwd_intra[(cd(K, BK), cd(T, BT) * (BT // BC), B)](
            rn(B, T, K, dtype=half), rn(B, T, K, dtype=half), g, rn(B, T, BT, dtype=f32),
            ze(B, T, K), ze(B, T, K), T, K, BT, BC, BK, num_warps=w)


@triton.jit
def retention_bwd(q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, dk_ptr, dv_ptr, T, log_decay_ptr,
                  D: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    """Forward over chunks for dq, then from the end for dk and dv, the state in registers."""
    pv = tl.program_id(0)
    h = tl.program_id(1)
    lg = tl.load(log_decay_ptr + h)
    i = tl.arange(0, C)
    d = tl.arange(0, D)
    e = pv * BV + tl.arange(0, BV)
    decay = tl.where(i[:, None] >= i[None, :], tl.exp2((i[:, None] - i[None, :]) * lg), 0.0)
    up = tl.exp2((i + 1) * lg)
    down = tl.exp2((C - 1 - i) * lg)
    whole = tl.exp2(C * lg)
    s = tl.zeros((BV, D), tl.float32)
    for t in range(0, T, C):
        r = h * T + t + i
        k = tl.load(k_ptr + r[:, None] * D + d[None, :])
        v_t = tl.load(v_ptr + r[None, :] * V + e[:, None])
        do = tl.load(do_ptr + r[:, None] * V + e[None, :])
        ds = tl.dot(do, v_t) * decay
        dq = tl.dot(ds.to(k.dtype), k) + tl.dot(do, s.to(do.dtype)) * up[:, None]
        s = s * whole + tl.dot(v_t, (k * down[:, None]).to(k.dtype))
        tl.store(dq_ptr + (pv * tl.num_programs(1) * T + r)[:, None] * D + d[None, :], dq)
    g = tl.zeros((D, BV), tl.float32)
    for t in range(T - C, -1, -C):
        r = h * T + t + i
        q_t = tl.load(q_ptr + r[None, :] * D + d[:, None])
        k = tl.load(k_ptr + r[:, None] * D + d[None, :])
        v = tl.load(v_ptr + r[:, None] * V + e[None, :])
        do = tl.load(do_ptr + r[:, None] * V + e[None, :])
        s_t = tl.dot(k, q_t) * tl.trans(decay)
        ds_t = tl.dot(v, tl.trans(do)) * tl.trans(decay)
        gk = g.to(k.dtype)
        dv = tl.dot(s_t.to(do.dtype), do) + tl.dot(k, gk) * down[:, None]
        dk = tl.dot(ds_t.to(q_t.dtype), tl.trans(q_t)) + tl.dot(v, tl.trans(gk)) * down[:, None]
        g = g * whole + tl.dot(q_t, (do * up[:, None]).to(do.dtype))
        tl.store(dv_ptr + r[:, None] * V + e[None, :], dv.to(dv_ptr.dtype.element_ty))
        tl.store(dk_ptr + (pv * tl.num_programs(1) * T + r)[:, None] * D + d[None, :], dk)


def case_retention_bwd():
    T, H, D, V = pick((2048, 64, 64, 128), (64, 2, 16, 32))
    lg = torch.log2(1 - 2.0 ** (-5 - torch.arange(H, device=ze(1).device) % 8))
    for BV, C, w in pick([(64, 64, 4), (32, 32, 2), (64, 32, 4)], [(16, 16, 1)]):
        P = V // BV
        retention_bwd[(P, H)](rn(H, T, D, dtype=half, scale=.3), rn(H, T, D, dtype=half, scale=.3),
                              rn(H, T, V, dtype=half), rn(H, T, V, dtype=half), ze(P, H, T, D),
                              ze(P, H, T, D), ze(H, T, V, dtype=half), T, lg, D, V, BV, C,
                              num_warps=w)


@triton.jit
def ssd_state_bwd(dstates_ptr, x_ptr, dt_ptr, acs_ptr, b_ptr, db_ptr, ddt_ptr, S, HEADS_PER,
                  P: tl.constexpr, N: tl.constexpr, Q: tl.constexpr, BQ: tl.constexpr,
                  BN: tl.constexpr):
    # Mamba2: gradients of B summed over the heads of a group, and of dt
    c = tl.program_id(0)
    g = tl.program_id(1)
    pq = tl.program_id(2)
    n = tl.arange(0, BN)
    p = tl.arange(0, P)
    t = c * Q + pq * BQ + tl.arange(0, BQ)
    db = tl.zeros((BQ, BN), tl.float32)
    b = tl.load(b_ptr + (g * S + t)[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
    for hh in range(HEADS_PER):
        h = g * HEADS_PER + hh
        x = tl.load(x_ptr + (h * S + t)[:, None] * P + p[None, :])
        ds = tl.load(dstates_ptr + ((h * tl.num_programs(0) + c) * P + p)[:, None] * N + n[None, :],
                     mask=n[None, :] < N, other=0.0)
        dt = tl.load(dt_ptr + h * S + t)
        acs = tl.load(acs_ptr + h * S + t)
        last = tl.load(acs_ptr + h * S + c * Q + Q - 1)
        scale = tl.exp(tl.minimum(last - acs, 0.0))
        y = tl.dot(x, ds.to(x.dtype))
        db += y * (scale * dt)[:, None]
        ddt = tl.sum(y * b.to(tl.float32), axis=1) * scale
        tl.store(ddt_ptr + h * S + t, ddt)
    tl.store(db_ptr + (g * S + t)[:, None] * N + n[None, :], db, mask=n[None, :] < N)


def case_ssd_state_bwd():
    S, G, HP, P, N, Q = pick((2048, 4, 8, 64, 128, 256), (64, 2, 3, 16, 16, 32))
    acs = -(torch.rand(G * HP, S // Q, Q, device=ze(1).device) * .1).cumsum(2).reshape(G * HP, S)
    for BQ, w in pick([(64, 4), (128, 8)], [(16, 1)]):
        ssd_state_bwd[(S // Q, G, Q // BQ)](
            rn(G * HP, S // Q, P, N, dtype=f32), rn(G * HP, S, P, dtype=half),
            rn(G * HP, S, dtype=f32), acs, rn(G, S, N, dtype=half), ze(G, S, N), ze(G * HP, S), S,
            HP, P, N, Q, BQ, N, num_warps=w)


@triton.jit
def ttt_linear(q_ptr, k_ptr, v_ptr, w0_ptr, eta_ptr, lnw_ptr, lnb_ptr, o_ptr, T, D: tl.constexpr,
               C: tl.constexpr):
    """Test-time training: a step of gradient descent of a linear layer and its norm per chunk."""
    h = tl.program_id(0)
    i = tl.arange(0, C)
    d = tl.arange(0, D)
    w = tl.load(w0_ptr + h * D * D + d[:, None] * D + d[None, :])
    gamma = tl.load(lnw_ptr + d)[None, :]
    beta = tl.load(lnb_ptr + d)[None, :]
    for t in range(0, T, C):
        at = (h * T + t + i)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + at)
        k = tl.load(k_ptr + at)
        v = tl.load(v_ptr + at).to(tl.float32)
        eta = tl.load(eta_ptr + h * T + t + i)
        z = tl.dot(k, w.to(k.dtype))
        mu = tl.sum(z, 1) / D
        zc = z - mu[:, None]
        rstd = 1.0 / tl.sqrt(tl.sum(zc * zc, 1) / D + 1e-6)
        zh = zc * rstd[:, None]
        gz = ((gamma * zh + beta) - (v - k.to(tl.float32))) * gamma
        s1 = tl.sum(gz, 1)
        s2 = tl.sum(gz * zh, 1)
        gz = (D * gz - s1[:, None] - zh * s2[:, None]) * (rstd / D)[:, None]
        ge = (gz * eta[:, None]).to(k.dtype)
        a = tl.dot(q, tl.trans(k))
        a = tl.where(i[:, None] >= i[None, :], a, 0.0)
        y = tl.dot(q, w.to(q.dtype)) - tl.dot(a.to(k.dtype), ge)
        w -= tl.dot(tl.trans(k), ge)
        tl.store(o_ptr + at, y.to(o_ptr.dtype.element_ty))


def case_ttt_linear():
    T, H, D = pick((1024, 128, 64), (48, 2, 16))
    for C, w in pick([(16, 4), (64, 4), (32, 2)], [(16, 1)]):
        ttt_linear[(H,)](rn(H, T, D, dtype=half, scale=.2), rn(H, T, D, dtype=half, scale=.2),
                         rn(H, T, D, dtype=half), rn(H, D, D, dtype=f32, scale=.02),
                         torch.rand(H, T, device=ze(1).device) * .01, rn(D, dtype=f32),
                         rn(D, dtype=f32), ze(H, T, D, dtype=half), T, D, C, num_warps=w)


@triton.jit
def gated_delta_bwd(q_ptr, k_ptr, w_ptr, u_ptr, g_ptr, do_ptr, dh_ptr, du_ptr, T, NT,
                    K: tl.constexpr, V: tl.constexpr, BV: tl.constexpr, C: tl.constexpr):
    # the state's gradient from the last chunk to the first, by the WY form's w
    pv = tl.program_id(0)
    bh = tl.program_id(1)
    dk_ = tl.arange(0, K)
    e = pv * BV + tl.arange(0, BV)
    i = tl.arange(0, C)
    dh = tl.zeros((K, BV), tl.float32)
    for t in range(NT - 1, -1, -1):
        tl.store(dh_ptr + ((bh * NT + t) * K + dk_)[:, None] * V + e[None, :],
                 dh.to(dh_ptr.dtype.element_ty))
        r = bh * T + t * C + i
        g = tl.load(g_ptr + r)
        last = tl.load(g_ptr + bh * T + t * C + C - 1)
        k = tl.load(k_ptr + r[:, None] * K + dk_[None, :])
        q_t = tl.load(q_ptr + r[None, :] * K + dk_[:, None])
        w_t = tl.load(w_ptr + r[None, :] * K + dk_[:, None])
        du = tl.load(u_ptr + r[:, None] * V + e[None, :]).to(tl.float32)
        do = tl.load(do_ptr + r[:, None] * V + e[None, :])
        du += tl.dot(k, dh.to(k.dtype)) * tl.exp(last - g)[:, None]
        tl.store(du_ptr + r[:, None] * V + e[None, :], du.to(du_ptr.dtype.element_ty))
        dh *= tl.exp(last)
        dh += tl.dot((q_t * tl.exp(g)[None, :]).to(do.dtype), do)
        dh -= tl.dot((w_t * tl.exp(g)[None, :]).to(do.dtype), du.to(do.dtype))


def case_gated_delta_bwd():
    T, BH, K, V = pick((2048, 32, 128, 128), (64, 2, 16, 32))
    g = -(torch.rand(BH, T, device=ze(1).device) * .01)
    for BV, C, w in pick([(32, 64, 4), (64, 64, 8), (32, 32, 2)], [(16, 16, 1)]):
        gated_delta_bwd[(V // BV, BH)](
            rn(BH, T, K, dtype=half, scale=.1), rn(BH, T, K, dtype=half, scale=.1),
            rn(BH, T, K, dtype=half, scale=.1), rn(BH, T, V, dtype=half), g,
            rn(BH, T, V, dtype=half), ze(BH, T // C, K, V, dtype=half), ze(BH, T, V, dtype=half),
            T, T // C, K, V, BV, C, num_warps=w)


@triton.jit
def _inverse16(a, eye, STEPS: tl.constexpr):
    x = eye / (tl.sum(tl.sum(tl.where(eye > 0, a, 0.0), 1), 0) / 16)
    for _ in tl.static_range(STEPS):
        x = tl.dot(x, 2 * eye - tl.dot(a, x, input_precision="ieee"), input_precision="ieee")
    return x


@triton.jit
def block_thomas(low_ptr, diag_ptr, up_ptr, rhs_ptr, y_ptr, n_blocks, B: tl.constexpr):
    """A block tridiagonal system: 16x16 blocks, inverses by Newton's steps."""
    s = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, B)
    t = i[:, None] * B + i[None, :]
    eye = tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    cp = tl.zeros((B, B), tl.float32)
    dp = tl.zeros((B, B), tl.float32)
    for k in range(n_blocks):
        at = (s * n_blocks + k) * B * B + t
        a = tl.load(low_ptr + at)
        inv = _inverse16(tl.load(diag_ptr + at) - tl.dot(a, cp, input_precision="ieee"), eye, 5)
        cp = tl.dot(inv, tl.load(up_ptr + at), input_precision="ieee")
        dp = tl.dot(inv, tl.load(rhs_ptr + at) - tl.dot(a, dp, input_precision="ieee"),
                    input_precision="ieee")
        tl.store(up_ptr + at, cp)
        tl.store(y_ptr + at, dp)
    x = tl.zeros((B, B), tl.float32)
    for k in range(n_blocks - 1, -1, -1):
        at = (s * n_blocks + k) * B * B + t
        x = tl.load(y_ptr + at) - tl.dot(tl.load(up_ptr + at), x, input_precision="ieee")
        tl.store(y_ptr + at, x)


def case_block_thomas():
    S, n = pick((2048, 32), (3, 4))
    eye = torch.eye(16, device=ze(1).device)
    for w in pick((1, 2, 4), (1,)):
        block_thomas[(S,)](rn(S, n, 16, 16, dtype=f32, scale=.02),
                           rn(S, n, 16, 16, dtype=f32, scale=.02) + 2 * eye,
                           rn(S, n, 16, 16, dtype=f32, scale=.02), rn(S, n, 16, 16, dtype=f32),
                           ze(S, n, 16, 16), n, 16, num_warps=w)


@triton.jit
def triangle_multiply(a_ptr, b_ptr, g_ptr, o_ptr, N, C: tl.constexpr, BC: tl.constexpr,
                      BI: tl.constexpr, BJ: tl.constexpr, BK: tl.constexpr):
    # sum over k of a[i,k,c] b[j,k,c]: channels lie innermost, so each is a batch of a 3-D dot
    ri_ = tl.program_id(0) * BI + tl.arange(0, BI)
    rj = tl.program_id(1) * BJ + tl.arange(0, BJ)
    c = tl.program_id(2) * BC + tl.arange(0, BC)
    acc = tl.zeros((BC, BI, BJ), tl.float32)
    for k in range(0, N, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + (ri_[:, None, None] * N + rk[None, :, None]) * C + c[None, None, :],
                    mask=(ri_ < N)[:, None, None] & (rk < N)[None, :, None], other=0.0)
        b = tl.load(b_ptr + (rj[:, None, None] * N + rk[None, :, None]) * C + c[None, None, :],
                    mask=(rj < N)[:, None, None] & (rk < N)[None, :, None], other=0.0)
        acc = tl.dot(tl.permute(a, (2, 0, 1)), tl.permute(b, (2, 1, 0)), acc)
    out = tl.permute(acc, (1, 2, 0))
    at = (ri_[:, None, None] * N + rj[None, :, None]) * C + c[None, None, :]
    m = (ri_ < N)[:, None, None] & (rj < N)[None, :, None]
    g = tl.load(g_ptr + at, mask=m, other=0.0).to(tl.float32)
    tl.store(o_ptr + at, (out * tl.sigmoid(g)).to(o_ptr.dtype.element_ty), mask=m)


def case_triangle_multiply():
    N, C = pick((256, 64), (20, 16))
    for BC, BI, BJ, BK, w in pick([(8, 32, 32, 16, 4), (8, 32, 32, 32, 8)], [(8, 16, 16, 16, 2)]):
        triangle_multiply[(cd(N, BI), cd(N, BJ), C // BC)](
            rn(N, N, C, dtype=half), rn(N, N, C, dtype=half), rn(N, N, C, dtype=half),
            ze(N, N, C, dtype=half), N, C, BC, BI, BJ, BK, num_warps=w)


@triton.jit
def rbf_matvec(x_ptr, y_ptr, v_ptr, o_ptr, n, m, inv, D: tl.constexpr, R: tl.constexpr,
               BX: tl.constexpr, BY: tl.constexpr):
    """exp(-|x - y|^2) v: a kernel matrix that is never stored, times a few columns."""
    rx = tl.program_id(0) * BX + tl.arange(0, BX)
    d = tl.arange(0, D)
    c = tl.arange(0, R)
    x = tl.load(x_ptr + rx[:, None] * D + d[None, :], mask=rx[:, None] < n, other=0.0)
    x2 = tl.sum(x * x, 1)
    acc = tl.zeros((BX, R), tl.float32)
    for j in range(0, m, BY):
        ry = j + tl.arange(0, BY)
        y = tl.load(y_ptr + ry[:, None] * D + d[None, :], mask=ry[:, None] < m, other=0.0)
        y2 = tl.sum(y * y, 1)
        dist = x2[:, None] + y2[None, :] - 2.0 * tl.dot(x, tl.trans(y))
        w = tl.exp(-tl.maximum(dist, 0.0) * inv)
        v = tl.load(v_ptr + ry[:, None] * R + c[None, :], mask=ry[:, None] < m, other=0.0)
        acc = tl.dot(w, v, acc)
    tl.store(o_ptr + rx[:, None] * R + c[None, :], acc, mask=rx[:, None] < n)


def case_rbf_matvec():
    n, m, D, R = pick((8192, 8192, 32, 16), (40, 50, 16, 16))
    for BX, BY, w in pick([(64, 64, 4), (128, 64, 8), (64, 32, 4)], [(16, 16, 1)]):
        rbf_matvec[(cd(n, BX),)](rn(n, D, dtype=f32), rn(m, D, dtype=f32), rn(m, R, dtype=f32),
                                 ze(n, R), n, m, .05, D, R, BX, BY, num_warps=w)


@triton.jit
def hmm_forward(trans_ptr, emit_ptr, obs_ptr, out_ptr, T, n_seq, S: tl.constexpr,
                BB: tl.constexpr):
    # a batch of sequences through one matrix, normed each step
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    s = tl.arange(0, S)
    trans = tl.load(trans_ptr + s[:, None] * S + s[None, :])
    alpha = tl.full((BB, S), 1.0 / S, tl.float32)
    ll = tl.zeros((BB,), tl.float32)
    for t in range(T):
        o = tl.load(obs_ptr + b * T + t, mask=b < n_seq, other=0)
        e = tl.load(emit_ptr + o[:, None] * S + s[None, :])
        alpha = tl.dot(alpha.to(trans.dtype), trans) * e
        z = tl.sum(alpha, axis=1)
        alpha = alpha / z[:, None]
        ll += tl.log(z)
    tl.store(out_ptr + b, ll, mask=b < n_seq)


def case_hmm_forward():
    B, T, O = pick((4096, 256, 32), (20, 6, 5))
    for S, BB, w in pick([(64, 16, 4), (128, 64, 4), (64, 64, 8)], [(16, 16, 1)]):
        tr = torch.softmax(rn(S, S, dtype=f32), 1).to(half)
        hmm_forward[(cd(B, BB),)](tr, torch.softmax(rn(O, S, dtype=f32), 0), ri(0, O, B, T),
                                  ze(B), T, B, S, BB, num_warps=w)


@triton.jit
def mlp_rollout(x_ptr, w1_ptr, w2_ptr, b_ptr, o_ptr, steps, dt, n, D: tl.constexpr,
                H: tl.constexpr, BX: tl.constexpr):
    """A neural ODE: weights stay, the state passes through two products per step."""
    r = tl.program_id(0) * BX + tl.arange(0, BX)
    d = tl.arange(0, D)
    h = tl.arange(0, H)
    x = tl.load(x_ptr + r[:, None] * D + d[None, :], mask=r[:, None] < n, other=0.0)
    w1 = tl.load(w1_ptr + d[:, None] * H + h[None, :])
    w2 = tl.load(w2_ptr + h[:, None] * D + d[None, :])
    b = tl.load(b_ptr + h)
    for _ in range(steps):
        u = tl.dot(x.to(w1.dtype), w1) + b[None, :]
        u = 2 * tl.sigmoid(2 * u) - 1
        x += dt * tl.dot(u.to(w2.dtype), w2)
    tl.store(o_ptr + r[:, None] * D + d[None, :], x, mask=r[:, None] < n)


def case_mlp_rollout():
    n, D, H = pick((16384, 64, 128), (40, 16, 32))
    for BX, w in pick([(64, 4), (128, 8), (32, 4)], [(16, 1)]):
        mlp_rollout[(cd(n, BX),)](rn(n, D, dtype=f32), rn(D, H, dtype=half, scale=.1),
                                  rn(H, D, dtype=half, scale=.1), rn(H, dtype=f32), ze(n, D), 20,
                                  .05, n, D, H, BX, num_warps=w)


@triton.jit
def sorted_prefix_dot(x_ptr, v_ptr, o_ptr, n, K: tl.constexpr, C: tl.constexpr, BR: tl.constexpr):
    # rows are sorted, then summed up, and both are left operands
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    k = tl.arange(0, K)
    c = tl.arange(0, C)
    x = tl.load(x_ptr + r[:, None] * K + k[None, :], mask=r[:, None] < n, other=0.0)
    v = tl.load(v_ptr + k[:, None] * C + c[None, :])
    s = tl.sort(x, dim=1)
    acc = tl.dot(s.to(v.dtype), v)
    p = tl.softmax(x, dim=1) if K > 64 else tl.exp(x - tl.max(x, 1, keep_dims=True))
    p = tl.cumsum(p, axis=1)
    acc = tl.dot(p.to(v.dtype), v, acc)
    top = tl.argmax(x, axis=1)
    acc += tl.dot(tl.where(k[None, :] == top[:, None], 1.0, 0.0).to(v.dtype), v)
    tl.store(o_ptr + r[:, None] * C + c[None, :], acc, mask=r[:, None] < n)


def case_sorted_prefix_dot():
    n, C = pick((8192, 64), (20, 16))
    for K, BR, w in pick([(64, 64, 4), (128, 16, 4), (32, 64, 4)], [(16, 16, 1)]):
        sorted_prefix_dot[(cd(n, BR),)](rn(n, K, dtype=f32), rn(K, C, dtype=half), ze(n, C), n, K,
                                        C, BR, num_warps=w)


if __name__ == "__main__":
    run(globals())
