"""Loops of products, with descriptors and without, as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, half, pick, ri, rn, run, ze
from triton.tools.tensor_descriptor import TensorDescriptor

i32 = torch.int32


def desc(t, block):
    return TensorDescriptor(t, list(t.shape), list(t.stride()), block)


@triton.jit
def persistent_halves(a, b, c, M, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                      BK: tl.constexpr, GROUP: tl.constexpr, FLAT: tl.constexpr,
                      SPLIT: tl.constexpr):
    nm, nn = tl.cdiv(M, BM), tl.cdiv(N, BN)
    per = GROUP * nn
    for t in tl.range(tl.program_id(0), nm * nn, SMS, flatten=FLAT):
        first = (t // per) * GROUP
        size = min(nm - first, GROUP)
        pm, pn = first + t % size, (t % per) // size
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(tl.cdiv(K, BK)):
            x = a.load([pm * BM, k * BK])
            y = b.load([pn * BN, k * BK])
            acc = tl.dot(x, y.T, acc)
        if SPLIT:
            lo, hi = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
            c.store([pm * BM, pn * BN], lo.to(c.dtype))
            c.store([pm * BM, pn * BN + BN // 2], hi.to(c.dtype))
        else:
            c.store([pm * BM, pn * BN], acc.to(c.dtype))


def case_persistent_halves():
    M, N, K = pick((4096, 4096, 4096), (130, 136, 96))
    a, b = rn(M, K, dtype=half), rn(N, K, dtype=half)
    for BM, BN, BK, flat, split, w, s in pick(
            [(128, 128, 64, True, True, 4, 3), (128, 256, 64, True, True, 8, 3),
             (128, 128, 64, False, False, 8, 4)],
            [(64, 64, 32, True, True, 4, 3), (64, 128, 32, False, False, 4, 2)]):
        persistent_halves[(pick(132, 2),)](
            desc(a, [BM, BK]), desc(b, [BN, BK]),
            desc(ze(M, N, dtype=half), [BM, BN // 2 if split else BN]), M, N, K, pick(132, 2), BM,
            BN, BK, 8, flat, split, num_warps=w, num_stages=s)


@triton.jit
def split_k_reduce(a, b, c, K, PER, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn, pk = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(pk * PER, min((pk + 1) * PER, K), BK):
        acc = tl.dot(a.load([pm * BM, k]), b.load([k, pn * BN]), acc)
    c.atomic_add([pm * BM, pn * BN], acc)


def case_split_k_reduce():
    if DEV == "cpu":
        return  # Triton's interpreter has no reduction to memory by a descriptor
    M, N, K = 256, 1024, 8192
    a, b = rn(M, K, dtype=half), rn(K, N, dtype=half)
    for BM, BN, BK, parts, w, s in [(128, 128, 64, 8, 8, 3), (64, 128, 64, 4, 4, 4)]:
        split_k_reduce[(M // BM, N // BN, parts)](
            desc(a, [BM, BK]), desc(b, [BK, BN]), desc(ze(M, N), [BM, BN]), K, K // parts, BM, BN,
            BK, num_warps=w, num_stages=s)


@triton.jit
def grouped_while(a, b, c, sizes, G, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr):
    tile = tl.program_id(0)
    done, row = 0, 0
    nn = tl.cdiv(N, BN)
    for g in range(G):
        m = tl.load(sizes + g)
        here = tl.cdiv(m, BM) * nn
        while tile >= done and tile < done + here:
            i = tile - done
            rm = (i // nn) * BM + tl.arange(0, BM)
            rn_ = (i % nn) * BN + tl.arange(0, BN)
            rk = tl.arange(0, BK)
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                x = tl.load(a + (row + rm)[:, None] * K + k + rk[None, :], mask=(rm < m)[:, None],
                            other=0.0)
                y = tl.load(b + (g * K + k + rk)[:, None] * N + rn_[None, :],
                            mask=(rn_ < N)[None, :], other=0.0)
                acc += tl.dot(x, y)
            tl.store(c + (row + rm)[:, None] * N + rn_[None, :], acc.to(c.dtype.element_ty),
                     mask=(rm < m)[:, None] & (rn_ < N)[None, :])
            tile += SMS
        done += here
        row += m


def case_grouped_while():
    G, N, K = pick((16, 2048, 1024), (4, 72, 64))
    sizes = ri(0, pick(1000, 70), G)
    sizes[1] = 0
    T = int(sizes.sum())
    a, b = rn(T, K, dtype=half), rn(G, K, N, dtype=half)
    for BM, BN, BK, w, s in pick([(128, 128, 64, 8, 3), (64, 128, 64, 4, 4)],
                                 [(64, 64, 32, 4, 3), (16, 32, 64, 4, 2)]):
        grouped_while[(pick(132, 3),)](a, b, ze(T, N, dtype=half), sizes, G, N, K, pick(132, 3), BM,
                                       BN, BK, num_warps=w, num_stages=s)


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def both_layers(x, w1, w2, o, M, H, D: tl.constexpr, BM: tl.constexpr, BH: tl.constexpr,
                ACT: tl.constexpr):
    rm, rd = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    xv = tl.load(x + rm[:, None] * D + rd[None, :], mask=(rm < M)[:, None], other=0.0)
    acc = tl.zeros((BM, D), tl.float32)
    for h in range(0, H, BH):
        rh = h + tl.arange(0, BH)
        a = tl.load(w1 + rd[:, None] + rh[None, :] * D, mask=(rh < H)[None, :], other=0.0)
        b = tl.load(w2 + rh[:, None] * D + rd[None, :], mask=(rh < H)[:, None], other=0.0)
        acc += tl.dot(ACT(tl.dot(xv, a)).to(b.dtype), b)
    tl.store(o + rm[:, None] * D + rd[None, :], acc.to(o.dtype.element_ty), mask=(rm < M)[:, None])


def case_both_layers():
    M, H, D = pick((16384, 1024, 128), (70, 200, 64))
    a = [rn(n, D, dtype=half, scale=s) for n, s in ((M, 1.), (H, .1), (H, .1))]
    for BM, BH, w, s in pick([(128, 64, 8, 3), (64, 64, 4, 3), (128, 32, 4, 4)],
                             [(64, 64, 4, 3), (32, 32, 2, 2)]):
        both_layers[(cd(M, BM),)](*a, ze(M, D, dtype=half), M, H, D, BM, BH, silu, num_warps=w,
                                  num_stages=s)


@triton.jit
def gate_norm(x, w, u, y, gate, most, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn_, rk = tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    px = x + rm[:, None] * K + rk[None, :]
    pw = w + rk[:, None] * N + rn_[None, :]
    pu = u + rk[:, None] * N + rn_[None, :]
    g = tl.zeros((BM, BN), tl.float32)
    h = tl.zeros((BM, BN), tl.float32)
    ss = tl.zeros((BM,), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        mk = rk < K - k * BK
        a = tl.load(px, mask=(rm < M)[:, None] & mk[None, :], other=0.0)
        g = tl.dot(a, tl.load(pw, mask=mk[:, None] & (rn_ < N)[None, :], other=0.0), g)
        h = tl.dot(a, tl.load(pu, mask=mk[:, None] & (rn_ < N)[None, :], other=0.0), h)
        ss += tl.sum(a.to(tl.float32) * a.to(tl.float32), 1)
        px += BK
        pw += BK * N
        pu += BK * N
    r = tl.rsqrt(ss / K + 1e-5)[:, None]
    g, h = g * r, h * r
    z = silu(g) * h
    m = (rm < M)[:, None] & (rn_ < N)[None, :]
    tl.store(y + rm[:, None] * N + rn_[None, :], z.to(y.dtype.element_ty), mask=m)
    tl.store(gate + rm[:, None] * N + rn_[None, :], g.to(gate.dtype.element_ty), mask=m)
    tl.atomic_max(most, tl.max(tl.where(m, tl.abs(z), 0.0)))


def case_gate_norm():
    M, N, K = pick((4096, 4096, 2048), (70, 72, 100))
    x, w, u = rn(M, K, dtype=half), rn(K, N, dtype=half), rn(K, N, dtype=half)
    for BM, BN, BK, nw, s in pick([(128, 64, 64, 4, 3), (128, 128, 64, 8, 3)],
                                  [(64, 64, 32, 4, 3), (128, 64, 64, 8, 2)]):
        gate_norm[(cd(M, BM), cd(N, BN))](x, w, u, ze(M, N, dtype=half), ze(M, N, dtype=half),
                                          ze(1), M, N, K, BM, BN, BK, num_warps=nw, num_stages=s)


@triton.jit
def scores_twice(a, b, s1, s2, z, T, D: tl.constexpr, BT: tl.constexpr):
    # tiles are operands on both sides and in both orders
    p = tl.program_id(0)
    rd, rt = tl.arange(0, D), tl.arange(0, BT)
    x1 = tl.zeros((D, D), tl.float32)
    x2 = tl.zeros((BT, BT), tl.float32)
    for t in range(T):
        at = ((p * T + t) * BT + rt)[:, None] * D + rd[None, :]
        x, y = tl.load(a + at), tl.load(b + at)
        x1 += tl.dot(tl.trans(x), y)
        x2 += tl.dot(x, tl.trans(y)) + tl.dot(y, tl.trans(x))
        tl.store(z + at, tl.dot(x2.to(x.dtype), x) + y)
        x2 = tl.where(rt[:, None] >= rt[None, :], x2, 0.0) * 0.5
    tl.store(s1 + (p * D + rd)[:, None] * D + rd[None, :], x1)
    tl.store(s2 + (p * BT + rt)[:, None] * BT + rt[None, :], x2)


def case_scores_twice():
    P, T = pick((256, 64), (1, 3))
    for D, BT, w, s in pick([(64, 64, 4, 3), (128, 64, 4, 3), (128, 64, 8, 2)],
                            [(64, 64, 4, 3), (32, 64, 4, 2), (16, 16, 1, 2)]):
        a, b = (rn(P, T, BT, D, dtype=half, scale=.2) for _ in range(2))
        scores_twice[(P,)](a, b, ze(P, D, D), ze(P, BT, BT), ze(P, T, BT, D, dtype=f32), T, D, BT,
                           num_warps=w, num_stages=s)


@triton.jit
def flagged(a, b, flags, c, best, T, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # a flag leaves a tile out, another closes a group whose greatest sum is kept
    p = tl.program_id(0)
    rm, rn_, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    most = tl.full((BM, BN), -1e30, tl.float32)
    n = 0
    for t in range(T):
        f = tl.load(flags + p * T + t)
        if f != 0:
            x = tl.load(a + ((p * T + t) * BM + rm)[:, None] * BK + rk[None, :])
            y = tl.load(b + (t * BK + rk)[:, None] * BN + rn_[None, :])
            acc = tl.dot(x, y, acc)
            n += 1
        if f == 2:
            most = tl.maximum(most, acc)
            acc = tl.zeros((BM, BN), tl.float32)
    tl.store(c + (p * BM + rm)[:, None] * BN + rn_[None, :], acc + n)
    tl.store(best + (p * BM + rm)[:, None] * BN + rn_[None, :], most)


def case_flagged():
    P, T = pick((264, 64), (2, 7))
    for BM, BN, BK, w, s in pick([(64, 64, 64, 4, 3), (128, 128, 32, 8, 3)],
                                 [(64, 64, 32, 4, 3), (32, 32, 16, 4, 2)]):
        flagged[(P,)](rn(P, T, BM, BK, dtype=half), rn(T, BK, BN, dtype=half), ri(0, 3, P, T),
                      ze(P, BM, BN), ze(P, BM, BN), T, BM, BN, BK, num_warps=w, num_stages=s)


@triton.jit
def gather_scatter(x, w, idx, out, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.load(idx + tl.program_id(0) * BM + tl.arange(0, BM))
    rn_ = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        a = tl.load(x + i[:, None] * K + rk[None, :], mask=(i >= 0)[:, None] & (rk < K)[None, :],
                    other=0.0)
        b = tl.load(w + rk[:, None] * N + rn_[None, :], mask=(rk < K)[:, None], other=0.0)
        acc += tl.dot(a, b)
    tl.atomic_add(out + i[:, None] * N + rn_[None, :], acc, mask=(i >= 0)[:, None])


def case_gather_scatter():
    R, N, K = pick((4096, 1024, 1024), (40, 64, 80))
    x, w = rn(R, K, dtype=half), rn(K, N, dtype=half)
    for BM, BN, BK, nw, s in pick([(128, 128, 32, 4, 3), (64, 64, 64, 4, 3)],
                                  [(64, 64, 32, 4, 3), (16, 32, 64, 4, 2)]):
        gather_scatter[(pick(64, 2), N // BN)](x, w, ri(-1, R, pick(64, 2) * BM), ze(R, N), N, K,
                                               BM, BN, BK, num_warps=nw, num_stages=s)


@triton.jit
def inverse(a, o, N: tl.constexpr, ROUNDS: tl.constexpr, PREC: tl.constexpr):
    # Newton's iteration, all in registers
    r = tl.arange(0, N)
    at = tl.program_id(0) * N * N + r[:, None] * N + r[None, :]
    A = tl.load(a + at)
    X = tl.trans(A) / tl.max(tl.sum(tl.abs(A), 0)) / tl.max(tl.sum(tl.abs(A), 1))
    I2 = tl.where(r[:, None] == r[None, :], 2.0, 0.0)
    for _ in range(ROUNDS):
        X = tl.dot(X, I2 - tl.dot(A, X, input_precision=PREC), input_precision=PREC)
    tl.store(o + at, X)


def case_inverse():
    P = pick(1024, 2)
    for N, prec, w in pick([(32, "ieee", 4), (64, "tf32x3", 4), (32, "tf32x3", 1)],
                           [(16, "ieee", 1), (32, "tf32x3", 4)]):
        a = rn(P, N, N, dtype=f32) / N ** .5 * .2 + torch.eye(N, device=DEV)
        inverse[(P,)](a, ze(P, N, N), N, 8, prec, num_warps=w)


@triton.jit
def power_stop(a, x, o, steps, tol, most, N: tl.constexpr, R: tl.constexpr):
    # ends when the directions have settled, which data decides
    p = tl.program_id(0)
    r, c = tl.arange(0, N), tl.arange(0, R)
    A = tl.load(a + (p * N + r)[:, None] * N + r[None, :])
    X = tl.load(x + (p * N + r)[:, None] * R + c[None, :])
    err, it = 1e9, 0
    while (err > tol) & (it < most):
        Y = tl.dot(A, X.to(A.dtype))
        Y = Y / tl.sqrt(tl.sum(Y * Y, 0))[None, :]
        err = tl.max(tl.max(tl.abs(Y - X), 0), 0)
        X = Y
        it += 1
    tl.store(o + (p * N + r)[:, None] * R + c[None, :], X)
    tl.store(steps + p, it)


def case_power_stop():
    P = pick(264, 2)
    for N, R, w in pick([(64, 16, 4), (128, 32, 4), (128, 64, 8)], [(64, 16, 4), (32, 32, 1)]):
        a = (torch.eye(N, device=DEV) + 0.3 * rn(P, N, N, dtype=f32).abs()).to(half)
        power_stop[(P,)](a, rn(P, N, R, dtype=f32), ze(P, N, R), ze(P, dtype=i32), 0.0, 12, N, R,
                         num_warps=w)


@triton.jit
def phases(q, k, v, o, split, S, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # the same body for a part without a mask and one with
    p, h = tl.program_id(0), tl.program_id(1)
    q += h * S * D
    k += h * S * D
    v += h * S * D
    rm, rd = p * BM + tl.arange(0, BM), tl.arange(0, D)
    x = tl.load(q + rm[:, None] * D + rd[None, :], mask=(rm < S)[:, None], other=0.0)
    m = tl.full((BM,), float("-inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for phase in tl.static_range(2):
        lo = 0 if phase == 0 else split
        hi = split if phase == 0 else S
        for s in range(lo, hi, BN):
            rs = s + tl.arange(0, BN)
            kk = tl.load(k + rs[None, :] * D + rd[:, None], mask=(rs < S)[None, :], other=0.0)
            qk = tl.dot(x, kk) * scale
            if phase == 1:
                seen = (rs < S)[None, :] & ((rs[None, :] + rm[:, None]) % 3 != 0)
                qk = tl.where(seen, qk, -1e6)
            mm = tl.maximum(m, tl.max(qk, 1))
            e = tl.exp2(qk - mm[:, None])
            a = tl.exp2(m - mm)
            l = l * a + tl.sum(e, 1)
            vv = tl.load(v + rs[:, None] * D + rd[None, :], mask=(rs < S)[:, None], other=0.0)
            acc = tl.dot(e.to(vv.dtype), vv, acc * a[:, None])
            m = mm
    tl.store(o + (h * S + rm)[:, None] * D + rd[None, :], acc / l[:, None], mask=(rm < S)[:, None])


def case_phases():
    H, S = pick((32, 4000), (2, 150))
    for D, BM, BN, w, s in pick([(64, 128, 64, 4, 3), (128, 128, 64, 8, 2), (64, 64, 64, 4, 4)],
                                [(64, 64, 32, 4, 3), (32, 128, 64, 4, 2)]):
        a = [rn(H, S, D, dtype=half) for _ in range(3)]
        phases[(cd(S, BM), H)](*a, ze(H, S, D, dtype=half), pick(2048, 64), S, .18, D, BM, BN,
                               num_warps=w, num_stages=s)


if __name__ == "__main__":
    run(globals())
