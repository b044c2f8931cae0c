"""Losses, norms and optimizers of training code as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, half, pick, ri, rn, run, ze

i32 = torch.int32


@triton.jit
def jsd(x, y, loss, dx, label, ignore, beta, V, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    lab = tl.load(label + r)
    if lab == ignore:
        for s in range(0, V, B):
            c = s + tl.arange(0, B)
            tl.store(dx + r * V + c, 0.0, mask=c < V)
        return
    for s in range(0, V, B):
        c = s + tl.arange(0, B)
        X = tl.load(x + r * V + c, mask=c < V, other=float("-inf")).to(tl.float32)
        Y = tl.load(y + r * V + c, mask=c < V, other=float("-inf")).to(tl.float32)
        if beta == 0.0:
            m = tl.max(Y)
            P = tl.exp(Y - m) * tl.exp(m)
            l = P * (Y - X)
            g = -P
        elif beta == 1.0:
            m = tl.max(X)
            Q = tl.exp(X - m) * tl.exp(m)
            l = Q * (X - Y)
            g = l + Q
        else:
            Q, P = tl.exp(X), tl.exp(Y)
            M = beta * P + (1 - beta) * Q
            lm = tl.log(M)
            l = beta * P * Y + (1 - beta) * Q * X - M * lm
            g = (1 - beta) * Q * (X - lm)
        l = tl.where(c < V, l, 0.0)
        tl.store(loss + r * V + c, l, mask=c < V)
        tl.store(dx + r * V + c, g, mask=c < V)


def case_jsd():
    R, V = pick((2048, 32000), (4, 100))
    x, y = (rn(R, V, dtype=f32).log_softmax(-1).to(half) for _ in range(2))
    label = ri(0, 5, R)
    for beta, B, w in pick([(0.5, 8192, 8), (0.0, 4096, 8), (1.0, 8192, 16)],
                           [(0.5, 64, 4), (0.0, 128, 2), (1.0, 32, 1)]):
        jsd[(R,)](x, y, ze(R, V), ze(R, V), label, 3, beta, V, B, num_warps=w)


@triton.jit
def chunk_xent(logits, lse, loss, labels, V, cap, B: tl.constexpr, CAP: tl.constexpr):
    r, k = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c = k * B + tl.arange(0, B)
    lab = tl.load(labels + r)
    x = tl.load(logits + r * V + c, mask=c < V, other=-float("inf")).to(tl.float32)
    if CAP:
        x = cap * libtanh(x / cap)
        x = tl.where(c < V, x, -float("inf"))
    m = tl.max(x, 0)
    z = m + tl.log(tl.sum(tl.exp(x - m), 0))
    tl.store(lse + r * tl.num_programs(1) + k, z)
    if k == 0:
        if lab != -100:
            t = tl.load(logits + r * V + lab).to(tl.float32)
            if CAP:
                t = cap * libtanh(t / cap)
            tl.store(loss + r, -t)
        else:
            tl.store(loss + r, 0.0)


@triton.jit
def libtanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def chunk_xent_bwd(logits, lse, dloss, labels, V, cap, B: tl.constexpr, CAP: tl.constexpr):
    r, k = tl.program_id(0).to(tl.int64), tl.program_id(1)
    c = k * B + tl.arange(0, B)
    lab = tl.load(labels + r)
    d = tl.load(dloss + r) if lab != -100 else 0.0
    x = tl.load(logits + r * V + c, mask=c < V, other=-float("inf")).to(tl.float32)
    part = x
    if CAP:
        part = libtanh(x / cap)
        x = cap * part
    p = tl.exp(x - tl.load(lse + r))
    p = tl.where(c == lab, p - 1.0, p)
    if CAP:
        p = p * (1 - part * part)
    tl.store(logits + r * V + c, d * p, mask=c < V)


def case_chunk_xent():
    R, V = pick((1024, 128256), (4, 200))
    x, labels = rn(R, V, dtype=half, scale=3.), ri(0, V, R)
    labels[1] = -100
    for B, cap, w in pick([(32768, False, 32), (16384, True, 16)],
                          [(64, False, 4), (128, True, 4)]):
        n = cd(V, B)
        chunk_xent[(R, n)](x, ze(R, n), ze(R), labels, V, 30.0, B, cap, num_warps=w)
        chunk_xent_bwd[(R, n)](x.clone(), rn(R, dtype=f32).abs() + 14, rn(R, dtype=f32), labels, V,
                               30.0, B, cap, num_warps=w)


@triton.jit
def dpo(pc, pr, rc, rr, loss, chosen, rejected, n, beta, smooth, IPO: tl.constexpr,
        B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    c = tl.load(pc + i, mask=m, other=0.0) - tl.load(rc + i, mask=m, other=0.0)
    r = tl.load(pr + i, mask=m, other=0.0) - tl.load(rr + i, mask=m, other=0.0)
    h = c - r
    if IPO:
        v = (h - 1 / (2 * beta)) * (h - 1 / (2 * beta))
    else:
        z = beta * h
        ls = tl.where(z >= 0, -tl.log(1 + tl.exp(-z)), z - tl.log(1 + tl.exp(z)))
        ln = ls - z
        v = -ls * (1 - smooth) - ln * smooth
    tl.store(chosen + i, beta * c, mask=m)
    tl.store(rejected + i, beta * r, mask=m)
    tl.atomic_add(loss, tl.sum(tl.where(m, v, 0.0)) / n)


def case_dpo():
    n = pick(1 << 20, 300)
    a = [rn(n, dtype=f32, scale=3.) for _ in range(4)]
    for ipo, B, w in pick([(False, 1024, 4), (True, 4096, 8)], [(False, 128, 4), (True, 256, 2)]):
        dpo[(cd(n, B),)](*a, ze(1), ze(n), ze(n), n, 0.1, 0.05, ipo, B, num_warps=w)


@triton.jit
def add_log(a, b):
    m = tl.maximum(a, b)
    s = tl.where(m > -1e30, m, 0.0)
    return tl.where(m > -1e30, s + tl.log(tl.exp(a - s) + tl.exp(b - s)), m)


@triton.jit
def ctc_alpha(lp, target, tlen, ilen, out, alpha, T, C, L, BLANK, B: tl.constexpr):
    # states of blank and label in turn, a step of time an iteration
    b = tl.program_id(0)
    s = tl.arange(0, B)
    n = 2 * tl.load(tlen + b) + 1
    steps = tl.load(ilen + b)
    odd = s % 2 == 1
    lab = tl.load(target + b * L + s // 2, mask=odd & (s < n), other=0)
    lab = tl.where(odd, lab, BLANK)
    two = tl.load(target + b * L + s // 2 - 1, mask=odd & (s < n) & (s >= 2), other=-1)
    skip = odd & (s >= 2) & (lab != two)
    a = tl.where(s < 2, tl.load(lp + b * T * C + lab, mask=s < n, other=-1e38), -1e38)
    a = tl.where(s < n, a, -1e38)
    for t in range(1, steps):
        tl.store(alpha + b * B + s, a)
        tl.debug_barrier()
        one = tl.load(alpha + b * B + s - 1, mask=s >= 1, other=-1e38)
        sec = tl.load(alpha + b * B + s - 2, mask=skip, other=-1e38)
        tl.debug_barrier()
        e = tl.load(lp + (b * T + t) * C + lab, mask=s < n, other=0.0)
        a = tl.where(s < n, add_log(add_log(a, one), sec) + e, -1e38)
    u = tl.max(tl.where(s == n - 1, a, -1e38))
    v = tl.max(tl.where(s == n - 2, a, -1e38))
    tl.store(out + b, -add_log(u, v))


def case_ctc_alpha():
    N, T, C, L = pick((256, 400, 64, 100), (3, 20, 8, 6))
    B = triton.next_power_of_2(2 * L + 1)
    lp = rn(N, T, C, dtype=f32).log_softmax(-1)
    for w in pick([1, 4], [1, 2]):
        ctc_alpha[(N,)](lp, ri(1, C, N, L), ri(1, L + 1, N), ri(T // 2 + L, T + 1, N) - L // 2,
                        ze(N), ze(N, B), T, C, L, 0, B, num_warps=w)


@triton.jit
def entmax_bisect(x, y, N, B: tl.constexpr, ITER: tl.constexpr):
    # alpha = 1.5: squares of what is above a threshold that is searched for
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * N + c, mask=c < N, other=float("-inf")).to(tl.float32) * 0.5
    top = tl.max(v)
    lo, hi = top - 1.0, top - 1.0 / tl.sqrt(N + 0.0)
    p = tl.zeros((B,), tl.float32)
    for _ in range(ITER):
        mid = (lo + hi) * 0.5
        z = tl.maximum(v - mid, 0.0)
        p = z * z
        if tl.sum(p) >= 1.0:
            lo = mid
        else:
            hi = mid
    tl.store(y + r * N + c, p / tl.sum(p), mask=c < N)


def case_entmax():
    R = pick(8192, 5)
    for N, B, w in pick([(1000, 1024, 4), (4000, 4096, 8), (100, 128, 1)], [(30, 32, 1),
                                                                           (100, 128, 4)]):
        entmax_bisect[(R,)](rn(R, N, dtype=half), ze(R, N), N, B, 24, num_warps=w)


@triton.jit
def info_nce(a, b, part, hit, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # both directions of a contrastive loss: rows here, columns by partial results
    pm = tl.program_id(0)
    rm, rd = pm * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(a + rm[:, None] * D + rd[None, :], mask=(rm < N)[:, None], other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    for n in range(0, N, BN):
        rn_ = n + tl.arange(0, BN)
        y = tl.load(b + rn_[None, :] * D + rd[:, None], mask=(rn_ < N)[None, :], other=0.0)
        s = tl.dot(x, y) * scale
        s = tl.where((rm < N)[:, None] & (rn_ < N)[None, :], s, float("-inf"))
        cm = tl.max(s, 0)
        safe = tl.where(cm > float("-inf"), cm, 0.0)
        cl = tl.sum(tl.exp(s - safe[None, :]), 0)
        tl.store(part + (pm * 2) * N + rn_, cm, mask=rn_ < N)
        tl.store(part + (pm * 2 + 1) * N + rn_, cl, mask=rn_ < N)
        mm = tl.maximum(m, tl.max(s, 1))
        mf = tl.where(mm > float("-inf"), mm, 0.0)
        l = l * tl.exp(m - mf) + tl.sum(tl.exp(s - mf[:, None]), 1)
        m = mm
        tl.store(hit + rm, tl.sum(tl.where(rm[:, None] == rn_[None, :], s, 0.0), 1),
                 mask=(rm < N) & (rm >= n) & (rm < n + BN))
    tl.store(hit + N + rm, m + tl.log(l), mask=rm < N)


def case_info_nce():
    N, D = pick((4000, 128), (90, 32))
    a, b = rn(N, D, dtype=half, scale=.3), rn(N, D, dtype=half, scale=.3)
    for BM, BN, w, s in pick([(128, 64, 4, 3), (64, 128, 8, 2)], [(32, 64, 4, 2), (64, 32, 4, 3)]):
        info_nce[(cd(N, BM),)](a, b, ze(cd(N, BM), 2, N), ze(2, N), N, 14.0, D, BM, BN, num_warps=w,
                               num_stages=s)


@triton.jit
def sum_last(x, part, count, out, n, P, B: tl.constexpr, BP: tl.constexpr):
    # who comes last adds what the others left
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(part + pid, tl.sum(v * v))
    tl.debug_barrier()
    if tl.atomic_add(count, 1, sem="acq_rel") != P - 1:
        return
    acc = tl.zeros((BP,), tl.float32)
    for k in range(0, P, BP):
        j = k + tl.arange(0, BP)
        acc += tl.load(part + j, mask=j < P, other=0.0, cache_modifier=".cg")
    tl.store(out, tl.sqrt(tl.sum(acc)))
    tl.atomic_xchg(count, 0)


def case_sum_last():
    n = pick(1 << 24, 1000)
    x = rn(n, dtype=half)
    for B, w in pick([(4096, 4), (16384, 8)], [(128, 4)]):
        P = cd(n, B)
        sum_last[(P,)](x, ze(P), ze(1, dtype=i32), ze(1), n, P, B, pick(1024, 4), num_warps=w)


@triton.jit
def adafactor_rows(g, row, col, M, N, beta, eps, BM: tl.constexpr, BN: tl.constexpr):
    pm = tl.program_id(0)
    rm = pm * BM + tl.arange(0, BM)
    sq = tl.zeros((BM,), tl.float32)
    for n in range(0, N, BN):
        rn_ = n + tl.arange(0, BN)
        v = tl.load(g + rm[:, None] * N + rn_[None, :], mask=(rm < M)[:, None] & (rn_ < N)[None, :],
                    other=0.0).to(tl.float32)
        v = v * v + tl.where((rm < M)[:, None] & (rn_ < N)[None, :], eps, 0.0)
        sq += tl.sum(v, 1)
        tl.atomic_add(col + rn_, tl.sum(v, 0) * (1 - beta) / M, mask=rn_ < N)
    old = tl.load(row + rm, mask=rm < M, other=0.0)
    tl.store(row + rm, beta * old + (1 - beta) * sq / N, mask=rm < M)


def case_adafactor_rows():
    M, N = pick((4096, 4100), (50, 70))
    g = rn(M, N, dtype=half)
    for BM, BN, w in pick([(16, 256, 4), (64, 64, 4)], [(8, 32, 4), (32, 16, 2)]):
        adafactor_rows[(cd(M, BM),)](g, rn(M, dtype=f32).abs(), rn(N, dtype=f32).abs(), M, N, .9,
                                     1e-6, BM, BN, num_warps=w)


@triton.jit
def embed_norm(ids, pos, w, p, gamma, beta, y, mean, rstd, N, eps, B: tl.constexpr,
               ROWS: tl.constexpr):
    t = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = tl.arange(0, B)
    m = (c < N)[None, :]
    e = tl.load(w + tl.load(ids + t).to(tl.int64)[:, None] * N + c[None, :], mask=m, other=0.0)
    q = tl.load(p + tl.load(pos + t)[:, None] * N + c[None, :], mask=m, other=0.0)
    x = e.to(tl.float32) + q.to(tl.float32)
    mu = tl.sum(x, 1) / N
    d = tl.where(m, x - mu[:, None], 0.0)
    rs = 1 / tl.sqrt(tl.sum(d * d, 1) / N + eps)
    z = d * rs[:, None] * tl.load(gamma + c, mask=c < N, other=0.0)[None, :]
    z += tl.load(beta + c, mask=c < N, other=0.0)[None, :]
    tl.store(y + t[:, None] * N + c[None, :], z, mask=m)
    tl.store(mean + t, mu)
    tl.store(rstd + t, rs)


def case_embed_norm():
    T, N, V = pick((16384, 768, 30000), (16, 40, 30))
    for rows, w in pick([(1, 4), (4, 4), (8, 8)], [(1, 1), (4, 4)]):
        embed_norm[(T // rows,)](ri(0, V, T), ri(0, 16, T), rn(V, N, dtype=half),
                                 rn(16, N, dtype=half), rn(N, dtype=f32), rn(N, dtype=f32),
                                 ze(T, N, dtype=half), ze(T), ze(T), N, 1e-5,
                                 triton.next_power_of_2(N), rows, num_warps=w)


if __name__ == "__main__":
    run(globals())
