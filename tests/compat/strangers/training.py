"""Training steps as strangers write them: optimizers, norms and their gradients, gates, losses,
dropout, roundings.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import bf16, f32, half, pick, ri, rn, ze, cd, DEV, run


@triton.jit
def lion(p_ptr, g_ptr, m_ptr, n, lr, wd, b1, b2, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = o < n
    p = tl.load(p_ptr + o, mask=mask)
    g = tl.load(g_ptr + o, mask=mask)
    m = tl.load(m_ptr + o, mask=mask)
    u = b1 * m + (1 - b1) * g
    step = tl.where(u > 0, lr, tl.where(u < 0, -lr, 0.0))
    tl.store(p_ptr + o, p * (1 - lr * wd) - step, mask=mask)
    tl.store(m_ptr + o, b2 * m + (1 - b2) * g, mask=mask)


def case_lion():
    n = pick(1 << 24, 1000) + 1
    for B, w in ((1024, 4), (256, 1)):
        lion[(cd(n, B),)](rn(n, dtype=f32), rn(n, dtype=f32), rn(n, dtype=f32), n, 1e-2, 0.1,
                          0.9, 0.99, B, num_warps=w)


@triton.jit
def adam_stochastic(p, g, m, v, n, lr, b1, b2, eps, seed, BLOCK: tl.constexpr):
    # the parameters are bf16, rounded up or down by chance
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = o < n
    gr = tl.load(g + o, mask=k).to(tl.float32)
    mo = b1 * tl.load(m + o, mask=k) + (1 - b1) * gr
    vo = b2 * tl.load(v + o, mask=k) + (1 - b2) * gr * gr
    x = tl.load(p + o, mask=k).to(tl.float32) - lr * mo / (tl.sqrt(vo) + eps)
    bits = x.to(tl.int32, bitcast=True) + (tl.randint(seed, o).to(tl.int32) & 0xffff)
    x = (bits & -65536).to(tl.float32, bitcast=True)
    tl.store(p + o, x.to(tl.bfloat16), mask=k)
    tl.store(m + o, mo, mask=k)
    tl.store(v + o, vo, mask=k)


def case_adam_stochastic():
    n = pick(1 << 24, 1000)
    for B, w in ((512, 4), (2048, 8)):
        adam_stochastic[(cd(n, B),)](rn(n), rn(n), ze(n), ze(n), n, 1e-2, 0.9, 0.99, 1e-8, 7,
                                     B, num_warps=w)


@triton.jit
def norm_partial(x, part, n, BLOCK: tl.constexpr):
    s = tl.zeros((BLOCK,), tl.float32)
    for i in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        o = i + tl.arange(0, BLOCK)
        v = tl.load(x + o, mask=o < n, other=0.0, cache_modifier=".cg").to(tl.float32)
        s += v * v
    tl.store(part + tl.program_id(0), tl.sum(s))


@triton.jit
def clip_by_norm(x, part, n, parts, most, BLOCK: tl.constexpr, BP: tl.constexpr):
    k = tl.arange(0, BP)
    total = tl.sqrt(tl.sum(tl.load(part + k, mask=k < parts, other=0.0)))
    f = tl.minimum(most / (total + 1e-6), 1.0)
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + o, mask=o < n).to(tl.float32)
    tl.store(x + o, (v * f).to(x.dtype.element_ty), mask=o < n)


def case_clip_grad():
    n, P = pick((1 << 26, 528), (3000, 5))
    x, part = rn(n), ze(P)
    norm_partial[(P,)](x, part, n, 2048, num_warps=8)
    clip_by_norm[(cd(n, 1024),)](x, part, n, P, 1.0, 1024, triton.next_power_of_2(P))


@triton.jit
def welford(m1, d1, n1, m2, d2, n2):
    n = n1 + n2
    r = tl.where(n == 0.0, 0.0, n2 / n)
    d = m2 - m1
    return m1 + d * r, d1 + d2 + d * d * n1 * r, n


@triton.jit
def ln_welford(x, w, b, y, mean, rstd, N, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * N
    y += row * N
    m = tl.zeros((BLOCK,), tl.float32)
    d = tl.zeros((BLOCK,), tl.float32)
    c = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        o = k + tl.arange(0, BLOCK)
        ok = o < N
        v = tl.load(x + o, mask=ok, other=0.0, eviction_policy="evict_last").to(tl.float32)
        c1 = c + 1
        dd = v - m
        m1 = m + dd / c1
        d = tl.where(ok, d + dd * (v - m1), d)
        m = tl.where(ok, m1, m)
        c = tl.where(ok, c1, c)
    mu, dev, cnt = tl.reduce((m, d, c), 0, welford)
    rs = tl.rsqrt(dev / N + eps)
    tl.store(mean + row, mu)
    tl.store(rstd + row, rs)
    for k in range(0, N, BLOCK):
        o = k + tl.arange(0, BLOCK)
        ok = o < N
        v = tl.load(x + o, mask=ok, other=0.0, eviction_policy="evict_first").to(tl.float32)
        g = tl.load(w + o, mask=ok, other=0.0).to(tl.float32)
        h = tl.load(b + o, mask=ok, other=0.0).to(tl.float32)
        tl.store(y + o, (v - mu) * rs * g + h, mask=ok)


def case_ln_welford():
    R, N = pick((4096, 6000), (5, 300))
    x, w, b = rn(R, N), rn(N), rn(N)
    for B, wp in pick([(1024, 4), (2048, 8), (512, 2)], [(64, 2)]):
        ln_welford[(R,)](x, w, b, torch.empty_like(x), ze(R), ze(R), N, 1e-5, B, num_warps=wp)


@triton.jit
def rms_bwd(x, dy, w, rstd, dx, dw, R, N, BR: tl.constexpr, BLOCK: tl.constexpr):
    # rows in steps of the grid, several at a time, dw by atomics at the end
    o = tl.arange(0, BLOCK)
    c = (o < N)[None, :]
    g = tl.load(w + o, mask=o < N, other=0.0).to(tl.float32)
    acc = tl.zeros((BLOCK,), tl.float32)
    for r0 in tl.range(tl.program_id(0) * BR, R, tl.num_programs(0) * BR, num_stages=2):
        r = r0 + tl.arange(0, BR)
        m = (r < R)[:, None] & c
        p = r[:, None] * N + o[None, :]
        xv = tl.load(x + p, mask=m, other=0.0).to(tl.float32)
        dv = tl.load(dy + p, mask=m, other=0.0).to(tl.float32)
        rs = tl.load(rstd + r, mask=r < R, other=0.0)[:, None]
        xh = xv * rs
        wd = dv * g[None, :]
        k = tl.sum(wd * xh, axis=1, keep_dims=True) / N
        tl.store(dx + p, (rs * (wd - xh * k)).to(dx.dtype.element_ty), mask=m)
        acc += tl.sum(dv * xh, axis=0)
    tl.atomic_add(dw + o, acc, mask=o < N)


def case_rms_bwd():
    R, N = pick((8192, 2560), (20, 100))
    x, dy, w, rs = rn(R, N), rn(R, N), rn(N), torch.rand(R, device=DEV) + 0.5
    for BR, wp in pick([(1, 4), (2, 8), (4, 8)], [(2, 1)]):
        rms_bwd[(pick(264, 3),)](x, dy, w, rs, torch.empty_like(x), ze(N), R, N, BR=BR,
                                 BLOCK=triton.next_power_of_2(N), num_warps=wp)


@triton.jit
def gn_bwd(x, dy, w, mean, rstd, dx, dw, db, C, HW, G, CG: tl.constexpr,
           BLOCK: tl.constexpr):
    # NCHW, a group a program, channels one after the other
    n = tl.program_id(0)
    g = tl.program_id(1)
    mu = tl.load(mean + n * G + g)
    rs = tl.load(rstd + n * G + g)
    c1 = 0.0
    c2 = 0.0
    for i in range(CG):
        c = g * CG + i
        wc = tl.load(w + c).to(tl.float32)
        sd = 0.0
        sh = 0.0
        for k in range(0, HW, BLOCK):
            o = k + tl.arange(0, BLOCK)
            p = (n * C + c) * HW + o
            d = tl.load(dy + p, mask=o < HW, other=0.0).to(tl.float32)
            h = (tl.load(x + p, mask=o < HW, other=0.0).to(tl.float32) - mu) * rs
            sd += tl.sum(d)
            sh += tl.sum(d * h)
        tl.atomic_add(dw + c, sh)
        tl.atomic_add(db + c, sd)
        c1 += wc * sh
        c2 += wc * sd
    c1 = c1 / (CG * HW)
    c2 = c2 / (CG * HW)
    for i in range(CG):
        c = g * CG + i
        wc = tl.load(w + c).to(tl.float32)
        for k in range(0, HW, BLOCK):
            o = k + tl.arange(0, BLOCK)
            p = (n * C + c) * HW + o
            d = tl.load(dy + p, mask=o < HW, other=0.0).to(tl.float32)
            h = (tl.load(x + p, mask=o < HW, other=0.0).to(tl.float32) - mu) * rs
            tl.store(dx + p, rs * (d * wc - c2 - h * c1), mask=o < HW)


def case_gn_bwd():
    N, C, HW, G = pick((32, 256, 1024, 32), (2, 8, 50, 4))
    x, dy, w = rn(N, C, HW), rn(N, C, HW), rn(C)
    mu, rs = ze(N, G), ze(N, G) + 1
    for B, wp in pick([(1024, 4), (256, 2)], [(32, 1)]):
        gn_bwd[(N, G)](x, dy, w, mu, rs, torch.empty_like(x), ze(C), ze(C), C, HW, G, C // G,
                       B, num_warps=wp)


@triton.jit
def drop_add_norm(x, res, w, y, keep, N, p, eps, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    m = o < N
    q = row * N + o
    v = tl.load(x + q, mask=m, other=0.0).to(tl.float32)
    k = tl.rand(seed, q) > p
    v = tl.where(k, v / (1 - p), 0.0) + tl.load(res + q, mask=m, other=0.0).to(tl.float32)
    tl.store(keep + q, k.to(tl.int8), mask=m)
    tl.store(res + q, v, mask=m)
    rs = tl.rsqrt(tl.sum(v * v, 0) / N + eps)
    tl.store(y + q, v * rs * tl.load(w + o, mask=m, other=0.0).to(tl.float32), mask=m)


def case_drop_add_norm():
    R, N = pick((8192, 3072), (10, 100))
    x, r, w = rn(R, N), rn(R, N), rn(N)
    for wp in (4, 8):
        drop_add_norm[(R,)](x, r.clone(), w, torch.empty_like(x),
                            ze(R, N, dtype=torch.int8), N, 0.1, 1e-6, 1234,
                            triton.next_power_of_2(N), num_warps=wp)


@triton.jit
def geglu_fwd(a, b, c, stride, N: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    o = tl.arange(0, BLOCK)
    m = o < N
    u = tl.load(a + row * stride + o, mask=m, other=0).to(tl.float32)
    v = tl.load(b + row * stride + o, mask=m, other=0)
    t = 0.7978845608028654 * (u + 0.044715 * u * u * u)
    e = tl.exp(2 * t)
    gelu = 0.5 * u * (1 + (1 - 2 / (e + 1)))
    tl.store(c + row * stride + o, gelu.cast(v.dtype) * v, mask=m)


@triton.jit
def swiglu_bwd(dc, a, b, da, db, n, BLOCK: tl.constexpr):
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    g = tl.load(dc + o, mask=m).to(tl.float32)
    u = tl.load(a + o, mask=m).to(tl.float32)
    v = tl.load(b + o, mask=m).to(tl.float32)
    s = tl.sigmoid(u)
    tl.store(da + o, g * v * s * (1 + u * (1 - s)), mask=m)
    tl.store(db + o, g * u * s, mask=m)


def case_glus():
    R, N = pick((4096, 11008), (4, 200))
    a, b, g = (rn(R, N, dtype=half) for _ in range(3))
    for wp in (8, 16):
        geglu_fwd[(R,)](a, b, torch.empty_like(a), N, N, triton.next_power_of_2(N),
                        num_warps=wp)
    for B, wp in ((1024, 4), (4096, 8)):
        swiglu_bwd[(cd(R * N, B),)](g, a, b, torch.empty_like(a), torch.empty_like(a), R * N,
                                    B, num_warps=wp)


@triton.jit
def kl_div(logp, logq, out, grad, V, T, BLOCK: tl.constexpr):
    # softmax of both rows at temperature T, the loss and the gradient of the second
    row = tl.program_id(0).to(tl.int64)
    p0 = logp + row * V
    q0 = logq + row * V
    mp = float("-inf")
    mq = float("-inf")
    sp = 0.0
    sq = 0.0
    for k in range(0, V, BLOCK):
        o = k + tl.arange(0, BLOCK)
        a = tl.load(p0 + o, mask=o < V, other=float("-inf")).to(tl.float32) / T
        b = tl.load(q0 + o, mask=o < V, other=float("-inf")).to(tl.float32) / T
        na = tl.maximum(mp, tl.max(a))
        nb = tl.maximum(mq, tl.max(b))
        sp = sp * tl.exp(mp - na) + tl.sum(tl.exp(a - na))
        sq = sq * tl.exp(mq - nb) + tl.sum(tl.exp(b - nb))
        mp = na
        mq = nb
    lp = mp + tl.log(sp)
    lq = mq + tl.log(sq)
    loss = 0.0
    for k in range(0, V, BLOCK):
        o = k + tl.arange(0, BLOCK)
        m = o < V
        a = tl.load(p0 + o, mask=m, other=0.0).to(tl.float32) / T - lp
        b = tl.load(q0 + o, mask=m, other=0.0).to(tl.float32) / T - lq
        p = tl.exp(a)
        loss += tl.sum(tl.where(m, p * (a - b), 0.0))
        tl.store(grad + row * V + o, (tl.exp(b) - p) / T, mask=m)
    tl.store(out + row, loss)


def case_kl_div():
    R, V = pick((2048, 32000), (4, 500))
    p, q = rn(R, V), rn(R, V)
    for B, wp in pick([(4096, 8), (1024, 4)], [(128, 2)]):
        kl_div[(R,)](p, q, ze(R), torch.empty_like(q), V, 2.0, B, num_warps=wp)


@triton.jit
def focal(x, t, loss, dx, n, alpha, gamma, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    z = tl.load(x + o, mask=m, other=0.0).to(tl.float32)
    y = tl.load(t + o, mask=m, other=0)
    s = tl.where(y == 1, 1.0, -1.0)
    p = 1 / (1 + tl.exp(-s * z))
    a = tl.where(y == 1, alpha, 1 - alpha)
    lg = tl.log(tl.maximum(p, 1e-12))
    w = tl.exp(gamma * tl.log(tl.maximum(1 - p, 1e-12)))
    tl.atomic_add(loss, tl.sum(tl.where(m, -a * w * lg, 0.0)))
    tl.store(dx + o, s * a * w * (gamma * p * lg + p - 1), mask=m)


def case_focal():
    n = pick(1 << 23, 1000)
    x, t = rn(n), ri(0, 2, n)
    for B, wp in ((1024, 4), (2048, 4)):
        focal[(cd(n, B),)](x, t, ze(1), torch.empty_like(x), n, 0.25, 2.0, BLOCK=B,
                          num_warps=wp)


@triton.jit
def triplet_cosine(a, p, q, loss, cos, N, margin, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    dp = tl.zeros((BLOCK,), tl.float32)
    dn = tl.zeros((BLOCK,), tl.float32)
    ab = tl.zeros((BLOCK,), tl.float32)
    aa = tl.zeros((BLOCK,), tl.float32)
    bb = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        o = k + tl.arange(0, BLOCK)
        m = o < N
        x = tl.load(a + row * N + o, mask=m, other=0.0)
        y = tl.load(p + row * N + o, mask=m, other=0.0)
        z = tl.load(q + row * N + o, mask=m, other=0.0)
        dp += (x - y) * (x - y)
        dn += (x - z) * (x - z)
        ab += x * y
        aa += x * x
        bb += y * y
    d = tl.sqrt(tl.sum(dp)) - tl.sqrt(tl.sum(dn)) + margin
    tl.store(loss + row, tl.maximum(d, 0.0))
    tl.store(cos + row, tl.sum(ab) / tl.sqrt(tl.sum(aa) * tl.sum(bb) + 1e-12))


def case_triplet():
    R, N = pick((32768, 768), (10, 100))
    a = [rn(R, N, dtype=f32) for _ in range(3)]
    for B, wp in pick([(256, 1), (1024, 4)], [(64, 1)]):
        triplet_cosine[(R,)](*a, ze(R), ze(R), N, 1.0, B, num_warps=wp)


@triton.jit
def linear_xent(x, w, y, part_m, part_s, hit, R, V, D, BR: tl.constexpr, BV: tl.constexpr,
                BD: tl.constexpr):
    # logits never leave the program: a maximum and a sum for each tile of the vocabulary
    pv = tl.program_id(1)
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    c = pv * BV + tl.arange(0, BV)
    acc = tl.zeros((BR, BV), tl.float32)
    for d0 in range(0, D, BD):
        d = d0 + tl.arange(0, BD)
        a = tl.load(x + r[:, None] * D + d[None, :], mask=(r < R)[:, None] &
                    (d < D)[None, :], other=0.0)
        b = tl.load(w + c[None, :] * D + d[:, None], mask=(c < V)[None, :] &
                    (d < D)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    acc = tl.where((c < V)[None, :], acc, float("-inf"))
    mx = tl.max(acc, 1)
    tl.store(part_m + pv * R + r, mx, mask=r < R)
    tl.store(part_s + pv * R + r, tl.sum(tl.exp(acc - mx[:, None]), 1), mask=r < R)
    t = tl.load(y + r, mask=r < R, other=-1)
    own = tl.sum(tl.where(c[None, :] == t[:, None], acc, 0.0), 1)
    tl.store(hit + r, own, mask=(r < R) & (t >= pv * BV) & (t < pv * BV + BV) & (t < V))


def case_linear_xent():
    R, V, D = pick((2048, 16000, 1024), (20, 100, 40))
    x, w = rn(R, D, dtype=torch.float16), rn(V, D, dtype=torch.float16, scale=0.03)
    y = ri(0, V, R)
    for BR, BV, BD, wp, s in pick([(128, 128, 64, 8, 3), (64, 128, 32, 4, 4),
                                   (64, 256, 64, 8, 2)], [(16, 32, 16, 1, 2)]):
        p = cd(V, BV)
        linear_xent[(cd(R, BR), p)](x, w, y, ze(p, R), ze(p, R), ze(R), R, V, D, BR, BV, BD,
                                    num_warps=wp, num_stages=s)


@triton.jit
def ema_unscale(p, ema, g, bad, n, decay, inv, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(g + o, mask=m, other=0.0) * inv
    tl.store(g + o, v, mask=m)
    wrong = tl.max(tl.where(tl.abs(v) < 3e38, 0.0, 1.0))
    if wrong > 0:
        tl.store(bad, 1.0)
    e = tl.load(ema + o, mask=m)
    tl.store(ema + o, e + (1 - decay) * (tl.load(p + o, mask=m).to(tl.float32) - e), mask=m)


def case_ema():
    n = pick(1 << 24, 1000)
    ema_unscale[(cd(n, 1024),)](rn(n, dtype=bf16), rn(n, dtype=f32), rn(n, dtype=f32), ze(1),
                                n, 0.999, 1 / 1024, 1024, num_warps=4)


if __name__ == "__main__":
    run(globals())
