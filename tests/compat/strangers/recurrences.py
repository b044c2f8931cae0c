"""Recurrences as strangers write them: RWKV, a state space model by a scan, gated linear attention.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import bf16, f32, pick, rn, ze, DEV, run


@triton.jit
def rwkv_kernel(
    r_ptr, k_ptr, v_ptr, w_ptr, u_ptr, o_ptr, T, H, D: tl.constexpr, BV: tl.constexpr
):
    bh, pv = tl.program_id(0), tl.program_id(1)
    rd = tl.arange(0, D)
    rv = pv * BV + tl.arange(0, BV)
    u = tl.load(u_ptr + (bh % H) * D + rd)
    S = tl.zeros((D, BV), tl.float32)
    p = bh * T * D
    for t in range(T):
        r = tl.load(r_ptr + p + rd).to(tl.float32)
        k = tl.load(k_ptr + p + rd).to(tl.float32)
        w = tl.load(w_ptr + p + rd).to(tl.float32)
        v = tl.load(v_ptr + p + rv).to(tl.float32)
        kv = k[:, None] * v[None, :]
        o = tl.sum((S + u[:, None] * kv) * r[:, None], 0)
        S = S * tl.exp(-tl.exp(w))[:, None] + kv
        tl.store(o_ptr + p + rv, o)
        p += D


def case_rwkv():
    BH, T, D = pick((64, 1024, 64), (2, 20, 32))
    a = [rn(BH, T, D) for _ in range(4)]
    u = rn(8, D, dtype=f32)
    for BV, w in pick([(64, 4), (16, 1), (32, 2)], [(16, 1)]):
        rwkv_kernel[(BH, D // BV)](*a, u, ze(BH, T, D), T, 8, D, BV, num_warps=w)


@triton.jit
def comb(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def ssm_kernel(
    x_ptr,
    dt_ptr,
    A_ptr,
    B_ptr,
    C_ptr,
    y_ptr,
    L,
    Dm,
    N: tl.constexpr,
    BT: tl.constexpr,
    BD: tl.constexpr,
):
    pd, b = tl.program_id(0), tl.program_id(1)
    rd = pd * BD + tl.arange(0, BD)
    rn_ = tl.arange(0, N)
    rt = tl.arange(0, BT)
    A = tl.load(A_ptr + rd[:, None] * N + rn_[None, :])
    h = tl.zeros((BD, N), tl.float32)
    for t in range(0, L, BT):
        tt = t + rt
        x = tl.load(x_ptr + b * L * Dm + tt[:, None] * Dm + rd[None, :]).to(tl.float32)
        dt = tl.load(dt_ptr + b * L * Dm + tt[:, None] * Dm + rd[None, :]).to(tl.float32)
        Bv = tl.load(B_ptr + b * L * N + tt[:, None] * N + rn_[None, :]).to(tl.float32)
        Cv = tl.load(C_ptr + b * L * N + tt[:, None] * N + rn_[None, :]).to(tl.float32)
        dA = tl.exp(dt[:, :, None] * A[None, :, :])
        dB = (dt * x)[:, :, None] * Bv[:, None, :]
        ga, gb = tl.associative_scan((dA, dB), 0, comb)
        hs = ga * h[None, :, :] + gb
        y = tl.sum(hs * Cv[:, None, :], 2)
        tl.store(y_ptr + b * L * Dm + tt[:, None] * Dm + rd[None, :], y.to(tl.bfloat16))
        h = tl.sum(tl.where((rt == BT - 1)[:, None, None], hs, 0.0), 0)


def case_ssm():
    B, L, Dm, N = pick((4, 1024, 1024, 16), (1, 32, 16, 8))
    x, dt = rn(B, L, Dm), torch.rand(B, L, Dm, device=DEV).to(bf16) * 0.1
    A = -torch.rand(Dm, N, device=DEV)
    Bv, C = rn(B, L, N), rn(B, L, N)
    for BT, BD, w in pick([(16, 16, 4), (32, 8, 4), (8, 32, 4)], [(8, 8, 1)]):
        ssm_kernel[(Dm // BD, B)](
            x, dt, A, Bv, C, torch.empty_like(x), L, Dm, N, BT, BD, num_warps=w
        )


@triton.jit
def chunk_delta(
    q_ptr,
    k_ptr,
    v_ptr,
    g_ptr,
    o_ptr,
    T,
    K: tl.constexpr,
    V: tl.constexpr,
    BV: tl.constexpr,
    C: tl.constexpr,
):
    bh, pv = tl.program_id(0), tl.program_id(1)
    rc = tl.arange(0, C)
    rk = tl.arange(0, K)
    rv = pv * BV + tl.arange(0, BV)
    S = tl.zeros((K, BV), tl.float32)
    for t in range(0, T, C):
        tt = t + rc
        q = tl.load(q_ptr + bh * T * K + tt[:, None] * K + rk[None, :])
        k = tl.load(k_ptr + bh * T * K + tt[:, None] * K + rk[None, :])
        v = tl.load(v_ptr + bh * T * V + tt[:, None] * V + rv[None, :])
        g = tl.load(g_ptr + bh * T + tt)
        G = tl.cumsum(g, 0)
        tot = tl.sum(g, 0)
        qd = (q.to(tl.float32) * tl.exp(G)[:, None]).to(q.dtype)
        att = tl.dot(q, tl.trans(k)) * tl.where(
            rc[:, None] >= rc[None, :], tl.exp(G[:, None] - G[None, :]), 0.0
        )
        o = tl.dot(qd, S.to(q.dtype)) + tl.dot(att.to(v.dtype), v)
        tl.store(o_ptr + bh * T * V + tt[:, None] * V + rv[None, :], o.to(tl.bfloat16))
        kd = (k.to(tl.float32) * tl.exp(tot - G)[:, None]).to(k.dtype)
        S = S * tl.exp(tot) + tl.dot(tl.trans(kd), v)


def case_gla_chunk():
    BH, T = pick((32, 2048), (2, 64))
    for K, V in pick(((64, 64), (128, 128)), ((32, 32),)):
        q, k, v = rn(BH, T, K, scale=K**-0.5), rn(BH, T, K), rn(BH, T, V)
        g = -torch.rand(BH, T, device=DEV) * 0.1
        for BV, C, w, st in pick(
            [(64, 64, 4, 2), (32, 32, 2, 3), (64, 32, 4, 1)], [(16, 16, 1, 2)]
        ):
            chunk_delta[(BH, V // BV)](
                q,
                k,
                v,
                g,
                torch.empty_like(v),
                T,
                K,
                V,
                BV,
                C,
                num_warps=w,
                num_stages=st,
            )


if __name__ == "__main__":
    run(globals())
