"""Recurrent cells and state space scans as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import cd, f32, half, pick, rn, run, ze

i32 = torch.int32


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def gru_step(x, h, w, u, b, out, N, BN: tl.constexpr, H: tl.constexpr, X: tl.constexpr):
    # one step of a layer: three gates, two products each
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    j = tl.arange(0, H)
    k = tl.arange(0, X)
    m = (n < N)[:, None]
    xv = tl.load(x + n[:, None] * X + k[None, :], mask=m, other=0.0)
    hv = tl.load(h + n[:, None] * H + j[None, :], mask=m, other=0.0)
    wp = w + k[:, None] * 3 * H + j[None, :]
    up = u + j[:, None] * 3 * H + j[None, :]
    r = tl.dot(xv, tl.load(wp)) + tl.dot(hv, tl.load(up)) + tl.load(b + j)[None, :]
    z = tl.dot(xv, tl.load(wp + H)) + tl.dot(hv, tl.load(up + H)) + tl.load(b + H + j)[None, :]
    c = tl.dot(hv, tl.load(up + 2 * H)) + tl.load(b + 2 * H + j)[None, :]
    c = tanh(tl.dot(xv, tl.load(wp + 2 * H)) + tl.sigmoid(r) * c)
    z = tl.sigmoid(z)
    tl.store(out + n[:, None] * H + j[None, :], ((1 - z) * c + z * hv).to(out.dtype.element_ty),
             mask=m)


def case_gru():
    N, = pick((65536,), (20,))
    for H, X, BN, w in pick([(64, 64, 64, 4), (128, 64, 64, 8), (32, 32, 128, 4)],
                            [(16, 32, 16, 2), (32, 16, 32, 4)]):
        gru_step[(cd(N, BN),)](rn(N, X, dtype=half), rn(N, H, dtype=half),
                               rn(X, 3 * H, dtype=half, scale=0.1),
                               rn(H, 3 * H, dtype=half, scale=0.1), rn(3 * H, dtype=f32),
                               ze(N, H, dtype=half), N, BN, H, X, num_warps=w)


@triton.jit
def elman(x, w, h0, hs, T, B, H: tl.constexpr, BB: tl.constexpr):
    # the weights stay with the program, the state goes round
    b = tl.program_id(0) * BB + tl.arange(0, BB)
    j = tl.arange(0, H)
    weights = tl.load(w + j[:, None] * H + j[None, :])
    m = (b < B)[:, None]
    h = tl.load(h0 + b[:, None] * H + j[None, :], mask=m, other=0.0)
    for t in range(T):
        at = (t * B + b[:, None]) * H + j[None, :]
        a = tl.dot(h, weights, out_dtype=tl.float32) + tl.load(x + at, mask=m, other=0.0)
        h = tanh(a).to(h.dtype)
        tl.store(hs + at, h, mask=m)


def case_elman():
    T, B = pick((256, 2048), (5, 20))
    for H, BB, w in pick([(64, 16, 4), (128, 16, 4), (64, 64, 4)], [(16, 16, 1), (32, 16, 4)]):
        elman[(cd(B, BB),)](rn(T, B, H, dtype=f32), rn(H, H, dtype=half, scale=0.2),
                            rn(B, H, dtype=half), ze(T, B, H, dtype=half), T, B, H, BB,
                            num_warps=w)


@triton.jit
def log_add(a, b):
    m = tl.maximum(a, b)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m))


@triton.jit
def log_scan(fa, va, fb, vb):
    return fa + fb, log_add(va + fb, vb)


@triton.jit
def softplus(x):
    return tl.where(x > 20, x, tl.log(1 + tl.exp(x)))


@triton.jit
def min_gru(gate, hidden, out, T, D, BT: tl.constexpr, BD: tl.constexpr):
    # parallel minGRU in logarithms
    b = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    carry = tl.full((BD,), -1e4, tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        m = (t < T)[:, None] & (d < D)[None, :]
        at = (b * T + t[:, None]) * D + d[None, :]
        k = tl.load(gate + at, mask=m, other=0.0).to(tl.float32)
        v = tl.load(hidden + at, mask=m, other=0.0).to(tl.float32)
        lf = tl.where(m, -softplus(k), 0.0)
        lv = -softplus(-k) + tl.where(v >= 0, tl.log(tl.maximum(v, 0.0) + 0.5), -softplus(-v))
        f, h = tl.associative_scan((lf, tl.where(m, lv, -1e4)), 0, log_scan)
        h = log_add(h, f + carry[None, :])
        tl.store(out + at, tl.exp(h), mask=m)
        carry = tl.sum(tl.where((tl.arange(0, BT) == BT - 1)[:, None], h, 0.0), 0)


def case_min_gru():
    B, T, D = pick((16, 2048, 512), (2, 40, 20))
    for BT, BD, w in pick([(64, 32, 4), (32, 64, 4), (128, 16, 4)], [(16, 8, 1), (32, 16, 4)]):
        min_gru[(B, cd(D, BD))](rn(B, T, D), rn(B, T, D), ze(B, T, D), T, D, BT, BD, num_warps=w)


@triton.jit
def complex_step(ar, ai, br, bi, cr, ci, dr, di):
    # (a, b) then (c, d): x -> c (a x + b) + d
    return (ar * cr - ai * ci, ar * ci + ai * cr,
            br * cr - bi * ci + dr, br * ci + bi * cr + di)


@triton.jit
def lru(lam_r, lam_i, bu_r, bu_i, out_r, out_i, T, D, BT: tl.constexpr, BD: tl.constexpr):
    # linear recurrent unit with a complex diagonal
    b = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    lr = tl.load(lam_r + d, mask=d < D, other=0.0)
    li = tl.load(lam_i + d, mask=d < D, other=0.0)
    sr = tl.zeros((BD,), tl.float32)
    si = tl.zeros((BD,), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        m = (t < T)[:, None] & (d < D)[None, :]
        at = (b * T + t[:, None]) * D + d[None, :]
        xr = tl.load(bu_r + at, mask=m, other=0.0)
        xi = tl.load(bu_i + at, mask=m, other=0.0)
        a, c = tl.broadcast_to(lr[None, :], (BT, BD)), tl.broadcast_to(li[None, :], (BT, BD))
        ar, ai, hr, hi = tl.associative_scan((a, c, xr, xi), 0, complex_step)
        yr = hr + ar * sr[None, :] - ai * si[None, :]
        yi = hi + ar * si[None, :] + ai * sr[None, :]
        tl.store(out_r + at, yr, mask=m)
        tl.store(out_i + at, yi, mask=m)
        last = (tl.arange(0, BT) == BT - 1)[:, None]
        sr = tl.sum(tl.where(last, yr, 0.0), 0)
        si = tl.sum(tl.where(last, yi, 0.0), 0)


def case_lru():
    B, T, D = pick((16, 2048, 256), (2, 40, 20))
    for BT, BD, w in pick([(64, 16, 4), (32, 32, 4), (128, 8, 2)], [(16, 8, 1), (32, 16, 4)]):
        r, a = torch.rand(D) * 0.1 + 0.9, torch.rand(D) * 6
        dev = ze(1).device
        lru[(B, cd(D, BD))]((r * a.cos()).to(dev), (r * a.sin()).to(dev), rn(B, T, D, dtype=f32),
                            rn(B, T, D, dtype=f32), ze(B, T, D), ze(B, T, D), T, D, BT, BD,
                            num_warps=w)


@triton.jit
def s4d_kernel(log_dt, a_re, a_im, c_re, c_im, k, L, H, N: tl.constexpr, BL: tl.constexpr):
    # the convolution's kernel: 2 Re sum_n C_n (exp(dt A_n) - 1) / A_n exp(dt A_n l)
    h = tl.program_id(0)
    l = tl.program_id(1) * BL + tl.arange(0, BL)
    n = tl.arange(0, N)
    dt = tl.exp(tl.load(log_dt + h))
    ar = -tl.exp(tl.load(a_re + h * N + n))
    ai = tl.load(a_im + h * N + n)
    e = tl.exp(dt * ar)
    nr, ni = e * tl.cos(dt * ai) - 1, e * tl.sin(dt * ai)
    inv = 1.0 / (ar * ar + ai * ai)
    qr, qi = (nr * ar + ni * ai) * inv, (ni * ar - nr * ai) * inv
    cr, ci = tl.load(c_re + h * N + n), tl.load(c_im + h * N + n)
    wr, wi = cr * qr - ci * qi, cr * qi + ci * qr
    lf = l.to(tl.float32)[:, None] * dt
    mag = tl.exp(lf * ar[None, :])
    ph = lf * ai[None, :]
    v = 2 * tl.sum(mag * (wr[None, :] * tl.cos(ph) - wi[None, :] * tl.sin(ph)), 1)
    tl.store(k + h * L + l, v, mask=l < L)


def case_s4d():
    H, L = pick((256, 4096), (3, 50))
    for N, BL, w in pick([(32, 128, 4), (32, 64, 4), (64, 128, 8)], [(8, 16, 1), (16, 32, 4)]):
        s4d_kernel[(H, cd(L, BL))](rn(H, dtype=f32) - 4, rn(H, N, dtype=f32, scale=0.1),
                                   rn(H, N, dtype=f32) * 3, rn(H, N, dtype=f32),
                                   rn(H, N, dtype=f32), ze(H, L), L, H, N, BL, num_warps=w)


@triton.jit
def fo_pool(f, z, o, h, T, D, BD: tl.constexpr):
    # QRNN: one step after another, each lane its channel
    b = tl.program_id(1)
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    m = d < D
    c = tl.zeros((BD,), tl.float32)
    at = b.to(tl.int64) * T * D + d
    for _ in range(T):
        g = tl.sigmoid(tl.load(f + at, mask=m, other=0.0).to(tl.float32))
        c = g * c + (1 - g) * tl.load(z + at, mask=m, other=0.0)
        tl.store(h + at, c * tl.sigmoid(tl.load(o + at, mask=m, other=0.0).to(tl.float32)), mask=m)
        at += D


def case_fo_pool():
    B, T, D = pick((32, 512, 1024), (3, 9, 50))
    for BD, w in pick([(128, 4), (64, 1), (256, 2)], [(32, 1)]):
        fo_pool[(cd(D, BD), B)](rn(B, T, D, dtype=half), rn(B, T, D, dtype=half),
                                rn(B, T, D, dtype=half), ze(B, T, D, dtype=half), T, D, BD,
                                num_warps=w)


@triton.jit
def sru_bwd(x, f, c, gc, gx, gf, T, D, BD: tl.constexpr):
    # back through time: c' = f c + (1 - f) x
    b = tl.program_id(1)
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    m = d < D
    g = tl.zeros((BD,), tl.float32)
    for s in range(T):
        t = T - 1 - s
        at = (b * T + t) * D + d
        g += tl.load(gc + at, mask=m, other=0.0)
        u = tl.load(x + at, mask=m, other=0.0)
        k = tl.load(f + at, mask=m, other=0.0)
        before = tl.load(c + at - D, mask=m & (d + t * D >= D), other=0.0)
        tl.store(gx + at, g * (1 - k), mask=m)
        tl.store(gf + at, g * (before - u) * k * (1 - k), mask=m)
        g *= k


def case_sru():
    B, T, D = pick((32, 512, 1024), (3, 9, 50))
    for BD, w in pick([(128, 4), (256, 4)], [(32, 1)]):
        sru_bwd[(cd(D, BD), B)](rn(B, T, D, dtype=f32), torch.sigmoid(rn(B, T, D, dtype=f32)),
                                rn(B, T, D, dtype=f32), rn(B, T, D, dtype=f32), ze(B, T, D),
                                ze(B, T, D), T, D, BD, num_warps=w)


@triton.jit
def mlstm_step(q, k, v, ig, fg, c, n, m, out, D: tl.constexpr, BV: tl.constexpr):
    # xLSTM's matrix memory, stabilized; a head for a program, some columns
    h = tl.program_id(0)
    j = tl.arange(0, D)
    e = tl.program_id(1) * BV + tl.arange(0, BV)
    qv = tl.load(q + h * D + j) * (D ** -0.5)
    kv = tl.load(k + h * D + j)
    vv = tl.load(v + h * D + e)
    i = tl.load(ig + h)
    f = tl.load(fg + h)
    old = tl.load(m + 2 * h)
    lf = -tl.log(1 + tl.exp(-f))
    new = tl.maximum(lf + old, i)
    fs, is_ = tl.exp(lf + old - new), tl.exp(i - new)
    cp = c + h * D * D + j[:, None] * D + e[None, :]
    cm = tl.load(cp) * fs + is_ * kv[:, None] * vv[None, :]
    nv = tl.load(n + h * D + j) * fs + is_ * kv
    den = tl.maximum(tl.abs(tl.sum(nv * qv)), tl.exp(-new))
    tl.store(out + h * D + e, tl.sum(cm * qv[:, None], 0) / den)
    tl.store(cp, cm)
    if tl.program_id(1) == 0:
        tl.store(m + 2 * h + 1, new)


def case_mlstm():
    BH = pick(2048, 5)
    for D, BV, w in pick([(128, 128, 4), (128, 32, 4), (64, 64, 1)], [(16, 16, 1), (32, 16, 2)]):
        mlstm_step[(BH, D // BV)](rn(BH, D, dtype=f32), rn(BH, D, dtype=f32),
                                  rn(BH, D, dtype=f32), rn(BH, dtype=f32), rn(BH, dtype=f32) + 2,
                                  rn(BH, D, D, dtype=f32), rn(BH, D, dtype=f32),
                                  rn(BH, 2, dtype=f32), ze(BH, D), D, BV, num_warps=w)


@triton.jit
def ema_combine(f1, v1, f2, v2):
    return f1 * f2, v1 * f2 + v2


@triton.jit
def advantages(reward, value, done, adv, ret, T, N, gamma, lam, BT: tl.constexpr,
               BN: tl.constexpr):
    # generalized advantages, a scan from behind over all steps
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    t = tl.arange(0, BT)
    m = (t < T)[:, None] & (n < N)[None, :]
    at = t[:, None] * N + n[None, :]
    v = tl.load(value + at, mask=m, other=0.0)
    nv = tl.load(value + at + N, mask=(t < T - 1)[:, None] & (n < N)[None, :], other=0.0)
    live = 1.0 - tl.load(done + at, mask=m, other=1).to(tl.float32)
    delta = tl.load(reward + at, mask=m, other=0.0) + gamma * nv * live - v
    _, a = tl.associative_scan((gamma * lam * live, delta), 0, ema_combine, reverse=True)
    tl.store(adv + at, a, mask=m)
    tl.store(ret + at, a + v, mask=m)


def case_advantages():
    T, N = pick((500, 8192), (30, 20))
    for BT, BN, w in pick([(512, 8, 4), (512, 16, 8)], [(32, 4, 1), (64, 8, 4)]):
        advantages[(cd(N, BN),)](rn(T, N, dtype=f32), rn(T, N, dtype=f32),
                                 (torch.rand(T, N) < 0.05).to(ze(1).device), ze(T, N), ze(T, N), T,
                                 N, 0.99, 0.95, BT, BN, num_warps=w)


@triton.jit
def hgrn_bwd(x, g, o, do, dx, dg, T, D, BD: tl.constexpr, UNROLL: tl.constexpr):
    b = tl.program_id(1)
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    m = d < D
    last = (b * T + T - 1) * D + d
    px, pg, po = x + last, g + last, o + last - D
    pdo, pdx, pdg = do + last, dx + last, dg + last
    dh = tl.zeros((BD,), tl.float32)
    for i in tl.range(T - 1, -1, -1, loop_unroll_factor=UNROLL):
        dh = dh + tl.load(pdo, mask=m, other=0).to(tl.float32)
        gate = tl.exp(tl.load(pg, mask=m, other=0).to(tl.float32))
        h = tl.load(po, mask=m & (d + i * D >= D), other=0).to(tl.float32)
        tl.store(pdx, dh.to(dx.dtype.element_ty), mask=m)
        tl.store(pdg, (dh * gate * h).to(dg.dtype.element_ty), mask=m)
        dh *= gate
        px -= D
        pg -= D
        po -= D
        pdo -= D
        pdx -= D
        pdg -= D


def case_hgrn():
    B, T, D = pick((16, 1024, 1024), (2, 11, 40))
    for BD, u, w in pick([(128, 1, 4), (64, 4, 2)], [(32, 2, 1)]):
        hgrn_bwd[(cd(D, BD), B)](rn(B, T, D, dtype=half), -rn(B, T, D, dtype=half).abs(),
                                 rn(B, T, D, dtype=half), rn(B, T, D, dtype=half),
                                 ze(B, T, D, dtype=half), ze(B, T, D, dtype=half), T, D, BD, u,
                                 num_warps=w)


@triton.jit
def selective_step(state, x, dt, dtb, a, b, c, dskip, z, out, D, N: tl.constexpr,
                   BD: tl.constexpr, HAS_Z: tl.constexpr):
    # one token of Mamba for each sequence of a batch
    n = tl.arange(0, N)
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    s = tl.program_id(1)
    m = d < D
    u = tl.load(x + s * D + d, mask=m, other=0.0).to(tl.float32)
    delta = tl.load(dt + s * D + d, mask=m, other=0.0).to(tl.float32)
    delta = softplus(delta + tl.load(dtb + d, mask=m, other=0.0))
    av = tl.load(a + d[:, None] * N + n[None, :], mask=m[:, None], other=0.0)
    bv, cv = tl.load(b + s * N + n).to(tl.float32), tl.load(c + s * N + n).to(tl.float32)
    p = state + (s * D + d[:, None]) * N + n[None, :]
    h = tl.load(p, mask=m[:, None], other=0.0)
    h = h * tl.exp(delta[:, None] * av) + (delta * u)[:, None] * bv[None, :]
    tl.store(p, h, mask=m[:, None])
    y = tl.sum(h * cv[None, :], 1) + u * tl.load(dskip + d, mask=m, other=0.0)
    if HAS_Z:
        g = tl.load(z + s * D + d, mask=m, other=0.0).to(tl.float32)
        y *= g * tl.sigmoid(g)
    tl.store(out + s * D + d, y.to(out.dtype.element_ty), mask=m)


def case_selective():
    S, D = pick((512, 4096), (4, 50))
    for N, BD, hz, w in pick([(16, 64, True, 4), (16, 128, False, 4), (64, 32, True, 4)],
                             [(8, 16, True, 1), (16, 32, False, 2)]):
        selective_step[(cd(D, BD), S)](rn(S, D, N, dtype=f32), rn(S, D, dtype=half),
                                       rn(S, D, dtype=half), rn(D, dtype=f32),
                                       -rn(D, N, dtype=f32).abs(), rn(S, N, dtype=half),
                                       rn(S, N, dtype=half), rn(D, dtype=f32),
                                       rn(S, D, dtype=half) if hz else None,
                                       ze(S, D, dtype=half), D, N, BD, hz, num_warps=w)


if __name__ == "__main__":
    run(globals())
