"""Sequences as strangers write them: retention, the delta rule, states of chunks, gated scans, cells,
short convolutions, small triangular inverses.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import f32, fp16, half, pick, rn, ze, cd, DEV, run


@triton.jit
def retention(q, k, v, o, T, scale, H: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
              BK: tl.constexpr, BV: tl.constexpr, BT: tl.constexpr):
    # block pointers, the decay of a head from its number, parts of K are added
    iv, ik, bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    gamma = tl.math.log2(1 - tl.math.exp2(-5 - (bh % H) * 1.0))
    oi = tl.arange(0, BT)
    db = tl.math.exp2(BT * gamma)
    dq = tl.math.exp2((oi + 1) * gamma)
    dk = tl.math.exp2((BT - oi - 1) * gamma)
    ds = tl.where(oi[:, None] >= oi[None, :],
                  tl.math.exp2((oi[:, None] - oi[None, :]) * gamma), 0)
    h = tl.zeros([BK, BV], tl.float32)
    for i in range(0, tl.cdiv(T, BT)):
        pq = tl.make_block_ptr(q + bh * T * K, (T, K), (K, 1), (i * BT, ik * BK), (BT, BK),
                               (1, 0))
        pk = tl.make_block_ptr(k + bh * T * K, (K, T), (1, K), (ik * BK, i * BT), (BK, BT),
                               (0, 1))
        pv = tl.make_block_ptr(v + bh * T * V, (T, V), (V, 1), (i * BT, iv * BV), (BT, BV),
                               (1, 0))
        po = tl.make_block_ptr(o + (ik * tl.num_programs(2) + bh) * T * V, (T, V), (V, 1),
                               (i * BT, iv * BV), (BT, BV), (1, 0))
        bq = tl.load(pq, boundary_check=(0, 1))
        bq = (bq * scale).to(bq.dtype)
        bk = tl.load(pk, boundary_check=(0, 1))
        bv = tl.load(pv, boundary_check=(0, 1))
        s = tl.dot(bq, bk, allow_tf32=False) * ds
        bo = tl.dot(s.to(bq.dtype), bv, allow_tf32=False)
        bo += tl.dot(bq, h.to(bq.dtype), allow_tf32=False) * dq[:, None]
        h = db * h + tl.dot(bk, (bv * dk[:, None]).to(bk.dtype), allow_tf32=False)
        tl.store(po, bo.to(po.dtype.element_ty), boundary_check=(0, 1))


def case_retention():
    BH, H, T, K, V = pick((32, 8, 2048, 128, 128), (4, 2, 50, 32, 32))
    q, k, v = (rn(BH, T, n, dtype=fp16) for n in (K, K, V))
    for BK, BV, BT, w, s in pick([(64, 64, 64, 4, 1), (128, 64, 32, 4, 2),
                                  (64, 32, 64, 2, 3)], [(16, 16, 16, 1, 1)]):
        retention[(V // BV, K // BK, BH)](q, k, v, ze(K // BK, BH, T, V), T, K**-0.5, H, K, V,
                                          BK, BV, BT, num_warps=w, num_stages=s)


@triton.jit
def delta_rule(q, k, v, beta, o, ht, T, scale, K: tl.constexpr, V: tl.constexpr,
               BK: tl.constexpr, BV: tl.constexpr, NORM: tl.constexpr):
    # step by step: the state forgets what it said about k, then learns v
    iv = tl.program_id(0)
    bh = tl.program_id(1).to(tl.int64)
    ok = tl.arange(0, BK)
    ov = iv * BV + tl.arange(0, BV)
    mk = ok < K
    mv = ov < V
    pq = q + bh * T * K + ok
    pk = k + bh * T * K + ok
    pv = v + bh * T * V + ov
    po = o + bh * T * V + ov
    pb = beta + bh * T
    h = tl.zeros([BV, BK], tl.float32)
    for _ in range(0, T):
        bk = tl.load(pk, mask=mk, other=0).to(tl.float32)
        bv = tl.load(pv, mask=mv, other=0).to(tl.float32)
        bq = tl.load(pq, mask=mk, other=0).to(tl.float32) * scale
        if NORM:
            bk = bk / tl.sqrt(tl.sum(bk * bk) + 1e-6)
        bb = tl.load(pb).to(tl.float32)
        bv = (bv - tl.sum(h * bk[None, :], axis=1)) * bb
        h += bk[None, :] * bv[:, None]
        tl.store(po, tl.sum(h * bq[None, :], axis=1).to(po.dtype.element_ty), mask=mv)
        pq += K
        pk += K
        pv += V
        po += V
        pb += 1
    tl.store(ht + (bh * V + ov[:, None]) * K + ok[None, :], h,
             mask=mv[:, None] & mk[None, :])


def case_delta_rule():
    BH, T, K, V = pick((64, 512, 100, 128), (2, 20, 20, 24))
    q, k, v = (rn(BH, T, n) for n in (K, K, V))
    b = torch.rand(BH, T, device=DEV)
    for BV, w, s in ((8, 1, 3), (32, 4, 1)):
        delta_rule[(cd(V, BV), BH)](q, k, v, b, torch.empty_like(v), ze(BH, V, K), T, K**-0.5,
                                    K, V, triton.next_power_of_2(K), BV, True, num_warps=w,
                                    num_stages=s)


@triton.jit
def chunk_state(x, b, dt, dA, out, L, H: tl.constexpr, P: tl.constexpr, N: tl.constexpr,
                C: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # what each chunk adds to the state, P x N, as a product along the chunk
    pid_b = tl.program_id(1) // (L // C)
    pid_c = tl.program_id(1) % (L // C)
    h = tl.program_id(2)
    nn = tl.cdiv(N, BN)
    rm = tl.program_id(0) // nn * BM + tl.arange(0, BM)
    rc = tl.program_id(0) % nn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    t0 = pid_b * L + pid_c * C
    last = tl.load(dA + (t0 + C - 1) * H + h)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, C, BK):
        t = t0 + k + rk
        xv = tl.load(x + (t[None, :] * H + h) * P + rm[:, None], mask=(rm < P)[:, None],
                     other=0.0)
        bv = tl.load(b + t[:, None] * N + rc[None, :], mask=(rc < N)[None, :],
                     other=0.0).to(tl.float32)
        w = tl.exp(last - tl.load(dA + t * H + h)) * tl.load(dt + t * H + h)
        acc += tl.dot(xv, (bv * w[:, None]).to(xv.dtype))
    p = out + ((tl.program_id(1) * H + h) * P + rm[:, None]) * N + rc[None, :]
    tl.store(p, acc, mask=(rm < P)[:, None] & (rc < N)[None, :])


def case_chunk_state():
    B, L, H, P, N, C = pick((4, 2048, 24, 64, 128, 256), (1, 64, 2, 20, 24, 32))
    x, b = rn(B, L, H, P, dtype=half), rn(B, L, N, dtype=half)
    dt = torch.rand(B, L, H, device=DEV)
    dA = -torch.rand(B, L // C, C, H, device=DEV).cumsum(2) * 0.05
    for BM, BN, BK, w, s in pick([(64, 128, 64, 4, 4), (64, 64, 32, 4, 5),
                                  (32, 64, 32, 2, 3)], [(16, 16, 16, 1, 2)]):
        chunk_state[(cd(P, BM) * cd(N, BN), B * L // C, H)](
            x, b, dt, dA, ze(B * L // C, H, P, N), L, H, P, N, C, BM, BN, BK, num_warps=w,
            num_stages=s)


@triton.jit
def state_passing(s, d, out, NC, M, BLOCK: tl.constexpr):
    # states of chunks become states at their beginnings
    b = tl.program_id(1)
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < M
    h = tl.zeros((BLOCK,), tl.float32)
    for c in range(NC):
        p = (b * NC + c).to(tl.int64) * M + o
        tl.store(out + p, h, mask=m)
        h = h * tl.exp(tl.load(d + b * NC + c)) + tl.load(s + p, mask=m, other=0.0)


def case_state_passing():
    B, NC, M = pick((96, 16, 64 * 128), (2, 5, 100))
    s, d = rn(B, NC, M, dtype=f32), -torch.rand(B, NC, device=DEV)
    for BL, w in ((256, 2), (1024, 4)):
        state_passing[(cd(M, BL), B)](s, d, torch.empty_like(s), NC, M, BL, num_warps=w)


@triton.jit
def combine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def rg_lru(x, a, g, y, T, D, BT: tl.constexpr, BD: tl.constexpr):
    # gates and a scan along time, blocks of time one after the other
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    base = tl.program_id(1).to(tl.int64) * T * D
    h = tl.zeros((BD,), tl.float32)
    lam = tl.load(a + d, mask=d < D, other=0.0)
    sp = tl.log(1 + tl.exp(lam))
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        m = (t < T)[:, None] & (d < D)[None, :]
        p = base + t[:, None] * D + d[None, :]
        xv = tl.load(x + p, mask=m, other=0.0).to(tl.float32)
        r = tl.sigmoid(tl.load(g + p, mask=m, other=0.0).to(tl.float32))
        al = tl.where(m, tl.exp(-2.0 * r * sp[None, :]), 1.0)
        bt = tl.where(m, tl.sqrt(1 - al * al) * xv, 0.0)
        ca, cb = tl.associative_scan((al, bt), 0, combine)
        hs = ca * h[None, :] + cb
        tl.store(y + p, hs.to(y.dtype.element_ty), mask=m)
        h = tl.sum(tl.where((tl.arange(0, BT) == BT - 1)[:, None], hs, 0.0), 0)


def case_rg_lru():
    B, T, D = pick((4, 2048, 2560), (2, 40, 30))
    x, g, a = rn(B, T, D), rn(B, T, D), rn(D, dtype=f32)
    for BT, BD, w in pick([(64, 32, 4), (32, 64, 2), (128, 16, 1)], [(16, 16, 1)]):
        rg_lru[(cd(D, BD), B)](x, a, g, torch.empty_like(x), T, D, BT, BD, num_warps=w)


@triton.jit
def lstm_cell(gates, c, bias, h_out, c_out, H, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = o < H
    p = gates + b * 4 * H + o
    i = tl.load(p, mask=m) + tl.load(bias + o, mask=m)
    f = tl.load(p + H, mask=m) + tl.load(bias + H + o, mask=m)
    g = tl.load(p + 2 * H, mask=m) + tl.load(bias + 2 * H + o, mask=m)
    q = tl.load(p + 3 * H, mask=m) + tl.load(bias + 3 * H + o, mask=m)
    th = 2 * tl.sigmoid(2 * g) - 1
    cn = tl.sigmoid(f) * tl.load(c + b * H + o, mask=m) + tl.sigmoid(i) * th
    tl.store(c_out + b * H + o, cn, mask=m)
    tl.store(h_out + b * H + o, tl.sigmoid(q) * (2 * tl.sigmoid(2 * cn) - 1), mask=m)


def case_lstm_cell():
    B, H = pick((4096, 2000), (5, 70))
    a = rn(B, 4 * H, dtype=f32), rn(B, H, dtype=f32), rn(4 * H, dtype=f32)
    for BL, w in ((256, 4), (512, 2)):
        lstm_cell[(B, cd(H, BL))](*a, ze(B, H), ze(B, H), H, BL, num_warps=w)


@triton.jit
def conv_update(x, state, w, bias, y, D, W: tl.constexpr, BLOCK: tl.constexpr):
    # one token of a causal convolution; the state is shifted where it lies
    b = tl.program_id(0)
    d = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    m = d < D
    p = state + (b * D + d) * (W - 1)
    new = tl.load(x + b * D + d, mask=m, other=0.0).to(tl.float32)
    acc = tl.load(bias + d, mask=m, other=0.0).to(tl.float32)
    acc += new * tl.load(w + d * W + W - 1, mask=m, other=0.0).to(tl.float32)
    for j in tl.static_range(W - 1):
        s = tl.load(p + j, mask=m, other=0.0).to(tl.float32)
        acc += s * tl.load(w + d * W + j, mask=m, other=0.0).to(tl.float32)
        if j > 0:
            tl.store(p + j - 1, s, mask=m)
    tl.store(p + W - 2, new, mask=m)
    tl.store(y + b * D + d, acc * tl.sigmoid(acc), mask=m)


def case_conv_update():
    B, D, W = pick((512, 8192, 4), (3, 70, 4))
    x, w, b = rn(B, D), rn(D, W), rn(D)
    for BL, wp in ((128, 2), (256, 4)):
        conv_update[(B, cd(D, BL))](x, rn(B, D, W - 1), w, b, torch.empty_like(x), D, W, BL,
                                    num_warps=wp)


@triton.jit
def solve_tril(a, out, T, BT: tl.constexpr):
    # inverses of 1 + strictly lower blocks, a row at a time
    i = tl.program_id(0)
    b = tl.program_id(1)
    o = tl.arange(0, BT)
    t = i * BT + o
    base = a + b * T * BT
    low = o[:, None] > o[None, :]
    m = (t < T)[:, None]
    x = -tl.where(low, tl.load(base + t[:, None] * BT + o[None, :], mask=m, other=0.0), 0.0)
    for r in range(2, tl.minimum(BT, T - i * BT)):
        row = -tl.load(base + (i * BT + r) * BT + o)
        row = tl.where(o < r, row, 0.0)
        row = row + tl.sum(row[:, None] * x, 0)
        x = tl.where((o == r)[:, None], row[None, :], x)
    x += (o[:, None] == o[None, :]).to(tl.float32)
    tl.store(out + b * T * BT + t[:, None] * BT + o[None, :], x, mask=m)


def case_solve_tril():
    BH, T = pick((64, 4000), (2, 50))
    for BT, w in pick([(16, 1), (32, 2), (64, 4)], [(16, 1)]):
        a = rn(BH, T, BT, dtype=f32, scale=0.2)
        solve_tril[(cd(T, BT), BH)](a, ze(BH, T, BT), T, BT, num_warps=w)


@triton.jit
def chunk_out(q, k, v, h, g, o, T, scale, K: tl.constexpr, V: tl.constexpr,
              BT: tl.constexpr, BK: tl.constexpr, BV: tl.constexpr):
    # a chunk's output: what the state says and what its own tokens say, K in a loop
    iv, it, bh = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nt = tl.cdiv(T, BT)
    t = it * BT + tl.arange(0, BT)
    ov = iv * BV + tl.arange(0, BV)
    mt = t < T
    bo = tl.zeros([BT, BV], tl.float32)
    ba = tl.zeros([BT, BT], tl.float32)
    for i in range(tl.cdiv(K, BK)):
        ok = i * BK + tl.arange(0, BK)
        bq = tl.load(q + (bh * T + t[:, None]) * K + ok[None, :], mask=mt[:, None] &
                     (ok < K)[None, :], other=0.0)
        bk = tl.load(k + (bh * T + t[None, :]) * K + ok[:, None], mask=mt[None, :] &
                     (ok < K)[:, None], other=0.0)
        bh_ = tl.load(h + ((bh * nt + it) * K + ok[:, None]) * V + ov[None, :],
                      mask=(ok < K)[:, None] & (ov < V)[None, :], other=0.0)
        bo += tl.dot(bq, bh_)
        ba += tl.dot(bq, bk)
    bg = tl.load(g + bh * T + t, mask=mt, other=0.0)
    bo = bo * tl.exp(bg)[:, None]
    c = tl.arange(0, BT)
    ba = tl.where(c[:, None] >= c[None, :], ba * tl.exp(bg[:, None] - bg[None, :]), 0.0)
    bv = tl.load(v + (bh * T + t[:, None]) * V + ov[None, :], mask=mt[:, None] &
                 (ov < V)[None, :], other=0.0)
    bo = (bo + tl.dot(ba.to(bv.dtype), bv)) * scale
    tl.store(o + (bh * T + t[:, None]) * V + ov[None, :], bo.to(o.dtype.element_ty),
             mask=mt[:, None] & (ov < V)[None, :])


def case_chunk_out():
    BH, T, K, V = pick((64, 2048, 128, 128), (2, 50, 32, 24))
    for BT, BK, BV, w, s in pick([(64, 64, 64, 4, 3), (64, 128, 128, 8, 2),
                                  (32, 32, 64, 2, 4)], [(16, 16, 16, 1, 2)]):
        q, k, v = (rn(BH, T, n, dtype=half, scale=0.5) for n in (K, K, V))
        h = rn(BH, cd(T, BT), K, V, dtype=half)
        g = -torch.rand(BH, T, device=DEV)
        chunk_out[(cd(V, BV), cd(T, BT), BH)](q, k, v, h, g, torch.empty_like(v), T, K**-0.5,
                                              K, V, BT, BK, BV, num_warps=w, num_stages=s)


if __name__ == "__main__":
    run(globals())
