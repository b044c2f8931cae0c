"""Routing of experts, steps of beams and sparse formats as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, half, pick, ri, rn, run, ze

i16, i32, i64, u8 = torch.int16, torch.int32, torch.int64, torch.uint8


class Shape(NamedTuple):
    tokens: int
    experts: int


@triton.jit
def sortable(x):
    b = x.to(tl.int32, bitcast=True)
    return tl.where(b < 0, b ^ 0x7FFFFFFF, b)


@triton.jit
def route(logits, bias, ids, weights, shape, scale, E: tl.constexpr, K: tl.constexpr,
          GROUPS: tl.constexpr, KEEP: tl.constexpr, B: tl.constexpr):
    # sigmoid scores, the best groups by the sum of their best two, then the best experts
    t = tl.program_id(0) * B + tl.arange(0, B)
    e = tl.arange(0, E)
    m = (t < shape.tokens)[:, None]
    s = tl.sigmoid(tl.load(logits + t[:, None] * shape.experts + e[None, :], mask=m, other=0.0))
    c = s + tl.load(bias + e)[None, :]
    g = tl.reshape(c, (B, GROUPS, E // GROUPS))
    two = tl.sum(tl.topk(g, 2), 2)
    rank = tl.sum((two[:, None, :] > two[:, :, None]).to(tl.int32), 2)
    kept = tl.reshape(tl.broadcast_to((rank < KEEP)[:, :, None], (B, GROUPS, E // GROUPS)), (B, E))
    c = tl.where(kept, c, float("-inf"))
    key = (sortable(c).to(tl.int64) << 32) | (E - 1 - e)[None, :].to(tl.int64)
    best = tl.topk(key, K)
    id = E - 1 - (best & 0xFFFFFFFF).to(tl.int32)
    w = tl.gather(s, id, 1)
    w = w / (tl.sum(w, 1) + 1e-20)[:, None] * scale
    at = t[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(ids + at, id, mask=m)
    tl.store(weights + at, w, mask=m)


def case_route():
    T = pick(16384, 30)
    for E, K, G, keep, B, w in pick([(256, 8, 8, 4, 4, 4), (64, 4, 4, 2, 16, 4)],
                                    [(32, 4, 4, 2, 4, 1), (16, 2, 4, 2, 8, 4)]):
        route[(cd(T, B),)](rn(T, E, dtype=f32), rn(E, dtype=f32, scale=0.1), ze(T, K, dtype=i32),
                           ze(T, K), Shape(T, E), 2.5, E, K, G, keep, B, num_warps=w)


@triton.jit
def slots(ids, place, count, T, CAP, E: tl.constexpr, B: tl.constexpr):
    # one program goes over all choices: the place within each expert, dropped beyond CAP
    e = tl.arange(0, E)
    used = tl.zeros((E,), tl.int32)
    for start in range(0, T, B):
        t = start + tl.arange(0, B)
        x = tl.load(ids + t, mask=t < T, other=E)
        one = (x[:, None] == e[None, :]).to(tl.int32)
        before = tl.cumsum(one, 0) - one + used[None, :]
        at = tl.sum(tl.where(one == 1, before, 0), 1)
        tl.store(place + t, tl.where(at < CAP, x * CAP + at, -1), mask=t < T)
        used += tl.sum(one, 0)
    tl.store(count + e, tl.minimum(used, CAP))


def case_slots():
    T = pick(16384, 100)
    for E, B, w in pick([(64, 128, 4), (16, 256, 8)], [(8, 16, 1), (16, 32, 4)]):
        slots[(1,)](ri(0, E, T), ze(T, dtype=i32), ze(E, dtype=i32), T, T // E, E, B, num_warps=w)


@triton.jit
def offsets_of(counts, off, blocks, E: tl.constexpr, BM: tl.constexpr, MOST: tl.constexpr):
    # prefix sums, and which expert each block of rows belongs to
    e = tl.arange(0, E)
    n = tl.load(counts + e)
    padded = (n + BM - 1) // BM
    end = tl.cumsum(padded, 0)
    tl.store(off + e, (end - padded) * BM)
    b = tl.arange(0, MOST)
    owner = tl.sum((b[:, None] >= end[None, :]).to(tl.int32), 1)
    tl.store(blocks + b, tl.where(b < tl.max(end, 0), owner, -1))


def case_offsets():
    for E, M, w in pick([(64, 1024, 4), (256, 512, 8)], [(8, 32, 1)]):
        offsets_of[(1,)](ri(0, 500 if E > 8 else 40, E), ze(E, dtype=i32), ze(M, dtype=i32), E, 16,
                         M, num_warps=w)


@triton.jit
def expert_gemm(x, w, out, rows, expert, scale, T, N, K, TOP: tl.constexpr, BM: tl.constexpr,
                BN: tl.constexpr, BK: tl.constexpr, MUL: tl.constexpr):
    pid = tl.program_id(0)
    e = tl.load(expert + pid).to(tl.int64)
    if e < 0:
        return
    rm = tl.load(rows + pid * BM + tl.arange(0, BM))
    ok = rm < T * TOP
    cn = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    rk = tl.arange(0, BK)
    xp = x + (rm // TOP)[:, None] * K + rk[None, :]
    wp = w + e * N * K + cn[None, :] * K + rk[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        a = tl.load(xp, mask=ok[:, None] & (rk[None, :] < left), other=0.0)
        b = tl.load(wp, mask=rk[:, None] < left, other=0.0)
        acc += tl.dot(a, b)
        xp += BK
        wp += BK
    if MUL:
        acc *= tl.load(scale + rm, mask=ok, other=0.0)[:, None]
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    tl.store(out + rm[:, None] * N + n[None, :], acc.to(out.dtype.element_ty),
             mask=ok[:, None] & (n < N)[None, :])


def case_expert_gemm():
    T, N, K, E = pick((4096, 2048, 2048, 16), (20, 40, 48, 4))
    for BM, BN, BK, mul, nw in pick([(64, 128, 64, True, 4), (128, 128, 64, False, 8),
                                     (16, 128, 128, True, 4)],
                                    [(16, 32, 32, True, 2), (32, 16, 16, False, 4)]):
        ids = torch.randint(0, E, (T * 2,))
        rows, owner = [], []
        for e in range(E):
            r = (ids == e).nonzero().flatten().to(i32)
            r = torch.cat([r, torch.full(((-len(r)) % BM,), T * 2, dtype=i32)])
            rows.append(r)
            owner += [e] * (len(r) // BM)
        blocks = torch.tensor(owner + [-1], dtype=i32, device=DEV)
        rows.append(torch.full((BM,), T * 2, dtype=i32))
        expert_gemm[(len(owner) + 1, cd(N, BN))](
            rn(T, K, dtype=half), rn(E, N, K, dtype=half), ze(T * 2, N, dtype=half),
            torch.cat(rows).to(DEV), blocks, rn(T * 2, dtype=f32), T, N, K, 2, BM, BN, BK, mul,
            num_warps=nw, num_stages=3)


@triton.jit
def beam_step(logp, score, out, token, parent, V, BEAMS: tl.constexpr, B: tl.constexpr):
    # the best continuations of all beams of a sentence; a key is its score and its place
    p = tl.program_id(0)
    b = tl.arange(0, BEAMS)
    s = tl.load(score + p * BEAMS + b)
    best = tl.full((BEAMS,), -(1 << 63), tl.int64)
    for start in range(0, V, B):
        v = start + tl.arange(0, B)
        x = tl.load(logp + (p * BEAMS + b)[:, None] * V + v[None, :], mask=(v < V)[None, :],
                    other=float("-inf")) + s[:, None]
        key = (sortable(x).to(tl.int64) << 32) | (b[:, None] * V + v[None, :]).to(tl.int64)
        top = tl.topk(tl.reshape(key, (BEAMS * B,)), BEAMS)
        best = tl.topk(tl.cat(best, top, can_reorder=True), BEAMS)
    at = (best & 0xFFFFFFFF).to(tl.int32)
    bits = (best >> 32).to(tl.int32)
    bits = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    tl.store(out + p * BEAMS + b, bits.to(tl.float32, bitcast=True))
    tl.store(token + p * BEAMS + b, at % V)
    tl.store(parent + p * BEAMS + b, at // V)


def case_beam():
    P, V = pick((256, 32000), (3, 70))
    for N, B, w in pick([(4, 512, 4), (8, 256, 4)], [(2, 16, 1), (4, 32, 2)]):
        beam_step[(P,)](rn(P, N, V, dtype=f32), rn(P, N, dtype=f32), ze(P, N),
                        ze(P, N, dtype=i32), ze(P, N, dtype=i32), V, N, B, num_warps=w)


@triton.jit
def no_repeat(tokens, logits, n, V, G: tl.constexpr, B: tl.constexpr):
    # bans what would repeat an n-gram: compares the last G-1 tokens with all places
    p = tl.program_id(0)
    i = tl.program_id(1) * B + tl.arange(0, B)
    same = i + G - 1 < n
    for g in tl.static_range(G - 1):
        tail = tl.load(tokens + p * n + n - G + 1 + g)
        same &= tl.load(tokens + p * n + i + g, mask=i + g < n, other=-1) == tail
    ban = tl.load(tokens + p * n + i + G - 1, mask=same, other=0)
    tl.store(logits + p * V + ban, float("-inf"), mask=same)


def case_no_repeat():
    P, n, V = pick((128, 4096, 32000), (3, 100, 7))
    for G, B, w in pick([(3, 1024, 4)], [(2, 32, 1), (3, 64, 2)]):
        no_repeat[(P, cd(n, B))](ri(0, 7, P, n), rn(P, V, dtype=f32), n, V, G, B, num_warps=w)


@triton.jit
def csr_spmm(ptr, col, val, b, c, N, B: tl.constexpr, BN: tl.constexpr):
    # a row of the product for a program, B nonzeros at a time
    r = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    lo = tl.load(ptr + r)
    hi = tl.load(ptr + r + 1)
    acc = tl.zeros((BN,), tl.float32)
    for start in tl.range(lo, hi, B, num_stages=2):
        k = start + tl.arange(0, B)
        j = tl.load(col + k, mask=k < hi, other=0)
        v = tl.load(val + k, mask=k < hi, other=0.0)
        x = tl.load(b + j[:, None] * N + n[None, :], mask=(k < hi)[:, None] & (n < N)[None, :],
                    other=0.0)
        acc += tl.sum(v[:, None] * x, 0)
    tl.store(c + r * N + n, acc, mask=n < N)


def case_csr_spmm():
    M, K, N, most = pick((32768, 32768, 128, 64), (30, 40, 50, 12))
    count = torch.randint(0, most, (M + 1,))
    count[0] = 0
    ptr = count.cumsum(0).to(i32)
    nnz = int(ptr[-1])
    for B, BN, w in pick([(16, 128, 4), (32, 64, 1), (8, 128, 2)], [(4, 32, 1), (8, 64, 4)]):
        csr_spmm[(M, cd(N, BN))](ptr.to(DEV), ri(0, K, nnz), rn(nnz, dtype=f32),
                                 rn(K, N, dtype=f32), ze(M, N), N, B, BN, num_warps=w)


@triton.jit
def ell_spmm(col, val, b, c, M, N, W, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(W):
        j = tl.load(col + k * M + r, mask=r < M, other=-1)
        v = tl.load(val + k * M + r, mask=j >= 0, other=0.0)
        acc += v[:, None] * tl.load(b + j[:, None] * N + n[None, :],
                                    mask=(j >= 0)[:, None] & (n < N)[None, :], other=0.0)
    tl.store(c + r[:, None] * N + n[None, :], acc, mask=(r < M)[:, None] & (n < N)[None, :])


def case_ell_spmm():
    M, K, N, W = pick((32768, 32768, 128, 32), (30, 40, 50, 5))
    for BM, BN, w in pick([(16, 128, 4), (32, 32, 4)], [(8, 32, 1), (16, 64, 4)]):
        ell_spmm[(cd(M, BM), cd(N, BN))](ri(-K // 4, K, W, M).clamp(min=-1), rn(W, M, dtype=f32),
                                         rn(K, N, dtype=f32), ze(M, N), M, N, W, BM, BN,
                                         num_warps=w)


@triton.jit
def bsr_sddmm(row, col, a, b, out, K, S: tl.constexpr, BK: tl.constexpr):
    # only the blocks of the pattern of a b^T
    p = tl.program_id(0)
    r = tl.load(row + p).to(tl.int64) * S + tl.arange(0, S)
    c = tl.load(col + p).to(tl.int64) * S + tl.arange(0, S)
    acc = tl.zeros((S, S), tl.float32)
    for k in range(0, K, BK):
        rk = k + tl.arange(0, BK)
        x = tl.load(a + r[:, None] * K + rk[None, :], mask=(rk < K)[None, :], other=0.0)
        y = tl.load(b + c[:, None] * K + rk[None, :], mask=(rk < K)[None, :], other=0.0)
        acc = tl.dot(x, y.T, acc)
    i = tl.arange(0, S)
    tl.store(out + p * S * S + i[:, None] * S + i[None, :], acc)


def case_bsr_sddmm():
    R, K = pick((64, 1024), (4, 70))
    for S, BK, nw in pick([(64, 64, 4), (32, 128, 2), (128, 64, 8)], [(16, 32, 1), (32, 16, 4)]):
        at = torch.randint(0, 2, (R, R)).nonzero().to(i32)
        bsr_sddmm[(len(at),)](at[:, 0].contiguous().to(DEV), at[:, 1].contiguous().to(DEV),
                              rn(R * S, K, dtype=half), rn(R * S, K, dtype=half),
                              ze(len(at), S, S), K, S, BK, num_warps=nw)


@triton.jit
def two_four(x, val, meta, o, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # weights with two of four: two values, and two places of two bits each
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    g = tl.arange(0, BK // 4)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        at = n[:, None] * (K // 4) + k // 4 + g[None, :]
        ok = (n < N)[:, None]
        v0 = tl.load(val + 2 * at, mask=ok, other=0.0)
        v1 = tl.load(val + 2 * at + 1, mask=ok, other=0.0)
        q = tl.load(meta + at, mask=ok, other=0).to(tl.int32)
        p0, p1 = (q & 3)[:, :, None], ((q >> 2) & 3)[:, :, None]
        z = tl.arange(0, 4)[None, None, :]
        w = tl.where(z == p0, v0[:, :, None], tl.where(z == p1, v1[:, :, None], 0.0))
        w = tl.reshape(w, (BN, BK)).to(x.dtype.element_ty)
        rk = k + tl.arange(0, BK)
        a = tl.load(x + m[:, None] * K + rk[None, :], mask=(m < M)[:, None], other=0.0)
        acc = tl.dot(a, tl.trans(w), acc)
    tl.store(o + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


def case_two_four():
    M, N, K = pick((1024, 2048, 2048), (20, 30, 128))
    q = ri(0, 3, N, K // 4)
    meta = (q | ((q + 1) << 2)).to(u8)
    for BM, BN, BK, w in pick([(64, 64, 64, 4), (128, 64, 32, 8)], [(16, 32, 32, 4),
                                                                   (32, 16, 64, 2)]):
        two_four[(cd(M, BM), cd(N, BN))](rn(M, K, dtype=half), rn(N, K // 2, dtype=half), meta,
                                         ze(M, N), M, N, K, BM, BN, BK, num_warps=w)


@triton.jit
def coo_atomic(row, col, val, x, y, nnz, D, B: tl.constexpr, BD: tl.constexpr):
    # messages of a graph: y[row] += val x[col]
    k = tl.program_id(0) * B + tl.arange(0, B)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    m = (k < nnz)[:, None] & (d < D)[None, :]
    r = tl.load(row + k, mask=k < nnz, other=0)
    c = tl.load(col + k, mask=k < nnz, other=0)
    v = tl.load(val + k, mask=k < nnz, other=0.0)
    msg = tl.load(x + c[:, None] * D + d[None, :], mask=m, other=0.0) * v[:, None]
    tl.atomic_add(y + r[:, None] * D + d[None, :], msg, mask=m)


def case_coo():
    n, nnz, D = pick((32768, 1 << 19, 64), (20, 100, 24))
    row = torch.randint(0, n, (nnz,)).sort()[0]
    for B, BD, w in pick([(32, 64, 4), (16, 64, 1)], [(16, 32, 2)]):
        coo_atomic[(cd(nnz, B), cd(D, BD))](row.to(DEV), ri(0, n, nnz, dtype=i64),
                                            rn(nnz, dtype=f32), rn(n, D, dtype=f32), ze(n, D),
                                            nnz, D, B, BD, num_warps=w)


@triton.jit
def gat_softmax(ptr, col, el, er, alpha, H: tl.constexpr, B: tl.constexpr):
    # attention over a node's edges, all heads, three passes
    r = tl.program_id(0)
    h = tl.arange(0, H)
    lo, hi = tl.load(ptr + r), tl.load(ptr + r + 1)
    mine = tl.load(er + r * H + h)
    m = tl.full((H,), float("-inf"), tl.float32)
    s = tl.zeros((H,), tl.float32)
    for k0 in range(lo, hi, B):
        k = k0 + tl.arange(0, B)
        c = tl.load(col + k, mask=k < hi, other=0)
        e = tl.load(el + c[:, None] * H + h[None, :]) + mine[None, :]
        e = tl.where(e > 0, e, 0.2 * e)
        e = tl.where((k < hi)[:, None], e, float("-inf"))
        new = tl.maximum(m, tl.max(e, 0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(e - new[None, :]), 0)
        m = new
    for k0 in range(lo, hi, B):
        k = k0 + tl.arange(0, B)
        c = tl.load(col + k, mask=k < hi, other=0)
        e = tl.load(el + c[:, None] * H + h[None, :]) + mine[None, :]
        e = tl.where(e > 0, e, 0.2 * e)
        tl.store(alpha + k[:, None] * H + h[None, :], tl.exp(e - m[None, :]) / s[None, :],
                 mask=(k < hi)[:, None])


def case_gat():
    n, most = pick((65536, 40), (20, 9))
    count = torch.randint(1, most, (n + 1,))
    count[0] = 0
    ptr = count.cumsum(0).to(i32)
    for H, B, w in pick([(8, 16, 1), (4, 32, 1)], [(4, 4, 1), (8, 8, 2)]):
        gat_softmax[(n,)](ptr.to(DEV), ri(0, n, int(ptr[-1])), rn(n, H, dtype=f32),
                          rn(n, H, dtype=f32), ze(int(ptr[-1]), H), H, B, num_warps=w)


if __name__ == "__main__":
    run(globals())
