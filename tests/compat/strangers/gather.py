"""Gathers and scatters as strangers write them: bags of embeddings, segments, jagged rows, permuted
copies, experts and their routing, adapters by request, sorted pairs.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import f32, fp16, half, pick, ri, rn, ze, cd, DEV, run

i32 = torch.int32


@triton.jit
def bag(idx, off, w, y, N, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    o = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    lo = tl.load(off + b)
    hi = tl.load(off + b + 1)
    acc = tl.zeros((BLOCK,), tl.float32)
    for i in range(lo, hi):
        r = tl.load(idx + i).to(tl.int64)
        acc += tl.load(w + r * N + o, mask=o < N, other=0.0).to(tl.float32)
    if MEAN:
        acc = acc / tl.maximum(hi - lo, 1).to(tl.float32)
    tl.store(y + b * N + o, acc, mask=o < N)


@triton.jit
def bag_bwd(idx, off, dy, dw, N, BLOCK: tl.constexpr):
    b = tl.program_id(0)
    lo = tl.load(off + b)
    hi = tl.load(off + b + 1)
    for k in range(0, N, BLOCK):
        o = k + tl.arange(0, BLOCK)
        g = tl.load(dy + b * N + o, mask=o < N, other=0.0)
        for i in range(lo, hi):
            r = tl.load(idx + i).to(tl.int64)
            tl.atomic_add(dw + r * N + o, g, mask=o < N, sem="relaxed")


def offsets(n, most):
    per = (torch.arange(n) * 7919) % most
    return torch.cat([torch.zeros(1, dtype=torch.long), per.cumsum(0)]).to(i32)


def case_bag():
    B, V, N = pick((4096, 100000, 256), (5, 30, 40))
    off = offsets(B, pick(40, 6))
    idx = ri(0, V, int(off[-1]))
    w, dy, off = rn(V, N), rn(B, N, dtype=f32), off.to(DEV)
    for BL, wp in ((128, 1), (256, 4)):
        bag[(B, cd(N, BL))](idx, off, w, ze(B, N), N, True, BLOCK=BL, num_warps=wp)
        bag_bwd[(B,)](idx, off, dy, ze(V, N), N, BLOCK=BL, num_warps=wp)


@triton.jit
def scatter_add(src, idx, out, E, N, BE: tl.constexpr, BN: tl.constexpr):
    # messages of edges to their nodes
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    m = (e < E)[:, None] & (o < N)[None, :]
    d = tl.load(idx + e, mask=e < E, other=0).to(tl.int64)
    v = tl.load(src + e[:, None].to(tl.int64) * N + o[None, :], mask=m, other=0.0)
    tl.atomic_add(out + d[:, None] * N + o[None, :], v, mask=m)


def case_scatter_add():
    E, V, N = pick((100000, 20000, 96), (60, 10, 24))
    s, i = rn(E, N, dtype=f32), ri(0, V, E, dtype=torch.int64)
    for BE, BN, w in pick([(16, 128, 4), (32, 32, 2)], [(8, 32, 1)]):
        scatter_add[(cd(E, BE), cd(N, BN))](s, i, ze(V, N), E, N, BE=BE, BN=BN, num_warps=w)


@triton.jit
def segment_softmax(x, off, y, H: tl.constexpr, BLOCK: tl.constexpr):
    # softmax over the edges of a node, H heads, edges in CSR
    n = tl.program_id(0)
    h = tl.arange(0, H)
    lo = tl.load(off + n)
    hi = tl.load(off + n + 1)
    m = tl.full((H,), float("-inf"), tl.float32)
    s = tl.zeros((H,), tl.float32)
    for k in range(lo, hi, BLOCK):
        e = k + tl.arange(0, BLOCK)
        v = tl.load(x + e[:, None] * H + h[None, :], mask=(e < hi)[:, None],
                    other=float("-inf"))
        nm = tl.maximum(m, tl.max(v, 0))
        s = s * tl.exp(m - nm) + tl.sum(tl.exp(v - nm[None, :]), 0)
        m = nm
    for k in range(lo, hi, BLOCK):
        e = k + tl.arange(0, BLOCK)
        p = e[:, None] * H + h[None, :]
        v = tl.load(x + p, mask=(e < hi)[:, None], other=0.0)
        tl.store(y + p, tl.exp(v - m[None, :]) / s[None, :], mask=(e < hi)[:, None])


def case_segment_softmax():
    n = pick(40000, 12)
    off = offsets(n, pick(64, 9))
    x = rn(int(off[-1]), 8, dtype=f32)
    off = off.to(DEV)
    for B, w in ((16, 1), (64, 4)):
        segment_softmax[(n,)](x, off, torch.empty_like(x), 8, BLOCK=B, num_warps=w)


@triton.jit
def jagged_pad(x, off, y, L, N, fill, BL: tl.constexpr, BN: tl.constexpr):
    b = tl.program_id(0)
    t = tl.program_id(1) * BL + tl.arange(0, BL)
    o = tl.program_id(2) * BN + tl.arange(0, BN)
    lo = tl.load(off + b)
    n = tl.load(off + b + 1) - lo
    cols = (o < N)[None, :]
    v = tl.load(x + (lo + t)[:, None] * N + o[None, :], mask=(t < n)[:, None] & cols,
                other=0.0)
    v = tl.where((t < n)[:, None], v, fill)
    tl.store(y + (b * L + t).to(tl.int64)[:, None] * N + o[None, :], v,
             mask=(t < L)[:, None] & cols)


def case_jagged():
    B, L, N = pick((256, 500, 256), (4, 9, 20))
    off = offsets(B, L)
    x, off = rn(int(off[-1]), N, dtype=f32), off.to(DEV)
    for BL, BN, w in pick([(32, 64, 4), (8, 256, 4), (64, 32, 2)], [(4, 16, 1)]):
        jagged_pad[(B, cd(L, BL), cd(N, BN))](x, off, ze(B, L, N), L, N, -1.0, BL=BL, BN=BN,
                                              num_warps=w)


@triton.jit
def permute4(x, y, s0, s1, s2, s3, D1, D2, D3, n, BLOCK: tl.constexpr):
    # a copy into dense order of a view with any strides, by division
    o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    i3 = o % D3
    r = o // D3
    i2 = r % D2
    r = r // D2
    i1 = r % D1
    i0 = r // D1
    v = tl.load(x + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3, mask=m)
    tl.store(y + o, v, mask=m)


def case_permute4():
    x = rn(*pick((8, 1024, 32, 128), (2, 9, 3, 8)))
    for order, w in (((0, 2, 1, 3), 4), ((0, 2, 3, 1), 8), ((3, 0, 1, 2), 2)):
        v = x.permute(*order)
        permute4[(cd(x.numel(), 1024),)](x, ze(*v.shape, dtype=x.dtype), *v.stride(),
                                         *v.shape[1:], x.numel(), BLOCK=1024, num_warps=w)


@triton.jit
def topk_route(x, wout, iout, T, E, K: tl.constexpr, BT: tl.constexpr, BE: tl.constexpr):
    # softmax, the K largest, weights that add up to one: tokens in rows of a tile
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    e = tl.arange(0, BE)
    v = tl.load(x + t[:, None] * E + e[None, :], mask=(t < T)[:, None] & (e < E)[None, :],
                other=float("-inf"))
    v = v - tl.max(v, 1)[:, None]
    p = tl.exp(v)
    p = p / tl.sum(p, 1)[:, None]
    total = tl.zeros((BT,), tl.float32)
    for k in tl.static_range(K):
        top, i = tl.max(p, 1, return_indices=True)
        tl.store(iout + t * K + k, i, mask=t < T)
        tl.store(wout + t * K + k, top, mask=t < T)
        total += top
        p = tl.where(e[None, :] == i[:, None], -1.0, p)
    for k in tl.static_range(K):
        w = tl.load(wout + t * K + k, mask=t < T)
        tl.store(wout + t * K + k, w / total, mask=t < T)


@triton.jit
def expert_counts(ids, counts, n, E: tl.constexpr, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    e = tl.arange(0, E)
    v = tl.load(ids + o, mask=o < n, other=-1)
    c = tl.sum((v[:, None] == e[None, :]).to(tl.int32), 0)
    tl.atomic_add(counts + e, c)


def case_route():
    # whole logits, all of a row different: the order of ties is nobody's promise
    T, E, K = pick((32768, 64, 6), (20, 12, 2))
    x = torch.argsort(torch.rand(T, E, device=DEV), 1).float() * 0.125
    ids = torch.zeros(T, K, device=DEV, dtype=i32)
    for BT, w in pick([(16, 4), (4, 1)], [(4, 1)]):
        topk_route[(cd(T, BT),)](x, ze(T, K), ids, T, E, K, BT=BT,
                                 BE=triton.next_power_of_2(E), num_warps=w)
    for B, w in ((128, 4), (256, 8)):
        expert_counts[(cd(T * K, B),)](ids, torch.zeros(64, device=DEV, dtype=i32), T * K,
                                       64, BLOCK=B, num_warps=w)


@triton.jit
def experts(x, w, y, order, start, weight, N, K, TOP: tl.constexpr, E: tl.constexpr,
            BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SMS: tl.constexpr):
    # a persistent grid over all experts' tiles: rows gathered, results added to their tokens
    nn = tl.cdiv(N, BN)
    tile = tl.program_id(0)
    done = 0
    for e in range(E):
        lo = tl.load(start + e)
        m = tl.load(start + e + 1) - lo
        tiles = tl.cdiv(m, BM) * nn
        while tile >= done and tile < done + tiles:
            t = tile - done
            r = t // nn * BM + tl.arange(0, BM)
            c = t % nn * BN + tl.arange(0, BN)
            ok = r < m
            src = tl.load(order + lo + r, mask=ok, other=0)
            acc = tl.zeros((BM, BN), tl.float32)
            for k in range(0, K, BK):
                kk = k + tl.arange(0, BK)
                a = tl.load(x + (src // TOP)[:, None] * K + kk[None, :],
                            mask=ok[:, None] & (kk < K)[None, :], other=0.0)
                b = tl.load(w + (e * N + c[None, :]) * K + kk[:, None],
                            mask=(c < N)[None, :] & (kk < K)[:, None], other=0.0)
                acc = tl.dot(a, b, acc)
            acc = acc * tl.load(weight + src, mask=ok, other=0.0)[:, None]
            tl.atomic_add(y + (src // TOP)[:, None] * N + c[None, :], acc,
                          mask=ok[:, None] & (c < N)[None, :])
            tile += SMS
        done += tiles


def case_experts():
    T, E, TOP, N, K = pick((2048, 16, 2, 1024, 2048), (30, 4, 2, 40, 50))
    ids = torch.arange(T * TOP) * 131 % 1009 % E
    order = torch.argsort(ids, stable=True).to(i32).to(DEV)
    start = torch.cat([torch.zeros(1, dtype=torch.long),
                       torch.bincount(ids, minlength=E).cumsum(0)]).to(i32).to(DEV)
    x, w, g = rn(T, K, dtype=half), rn(E, N, K, dtype=half, scale=0.03), ze(T * TOP) + 0.5
    P = pick(132, 3)
    for BM, BN, BK, wp, s in pick([(64, 128, 64, 4, 3), (128, 128, 64, 8, 3),
                                   (16, 128, 64, 4, 4)], [(16, 16, 16, 1, 2)]):
        experts[(P,)](x, w, ze(T, N), order, start, g, N, K, TOP, E, BM=BM, BN=BN, BK=BK,
                      SMS=P, num_warps=wp, num_stages=s)


@triton.jit
def lora_shrink(x, a, y, which, T, K, SPLIT: tl.constexpr, R: tl.constexpr,
                BK: tl.constexpr):
    # a token a program: x a[which], parts of K are added
    t = tl.program_id(0)
    sp = tl.program_id(1)
    ad = tl.load(which + t)
    if ad < 0:
        return
    r = tl.arange(0, R)
    acc = tl.zeros((R,), tl.float32)
    for k in range(sp * BK, K, SPLIT * BK):
        o = k + tl.arange(0, BK)
        xv = tl.load(x + t * K + o, mask=o < K, other=0.0).to(tl.float32)
        av = tl.load(a + (ad * R + r)[:, None] * K + o[None, :], mask=(o < K)[None, :],
                     other=0.0).to(tl.float32)
        acc += tl.sum(xv[None, :] * av, 1)
    tl.atomic_add(y + t * R + r, acc)


@triton.jit
def lora_expand(h, b, y, which, N, R: tl.constexpr, BN: tl.constexpr):
    t = tl.program_id(0)
    ad = tl.load(which + t)
    if ad < 0:
        return
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    r = tl.arange(0, R)
    hv = tl.load(h + t * R + r)
    bv = tl.load(b + (ad * N + o)[:, None] * R + r[None, :], mask=(o < N)[:, None],
                 other=0.0).to(tl.float32)
    p = y + t * N + o
    old = tl.load(p, mask=o < N, other=0.0).to(tl.float32)
    tl.store(p, (old + tl.sum(bv * hv[None, :], 1)).to(y.dtype.element_ty), mask=o < N)


def case_lora():
    T, A, K, N, R = pick((512, 8, 4096, 4096, 16), (7, 3, 50, 60, 16))
    x, a, b = rn(T, K), rn(A, R, K), rn(A, N, R)
    which = (torch.arange(T) * 5 % (A + 1) - 1).to(i32).to(DEV)
    for BK, w in pick([(256, 4), (512, 8)], [(16, 1)]):
        lora_shrink[(T, 4)](x, a, ze(T, R), which, T, K, 4, R, BK=BK, num_warps=w)
    for BN, w in pick([(128, 4), (256, 2)], [(16, 1)]):
        lora_expand[(T, cd(N, BN))](rn(T, R, dtype=f32), b, rn(T, N), which, N, R, BN=BN,
                                    num_warps=w)


@triton.jit
def sort_pairs(key, out, val, N: tl.constexpr, BITS: tl.constexpr):
    # keys with their places in the low bits, sorted, then what lies at the places
    row = tl.program_id(0)
    o = tl.arange(0, N)
    k = tl.load(key + row * N + o).to(tl.int64)
    s = tl.sort((k << BITS) | o.to(tl.int64))
    at = (s & ((1 << BITS) - 1)).to(tl.int32)
    tl.store(out + row * N + o, (s >> BITS).to(tl.int32))
    tl.store(val + row * N + o, at)


def case_sort_pairs():
    for N, bits, w in pick([(256, 8, 2), (2048, 11, 8)], [(32, 5, 1)]):
        R = pick((1 << 21) // N, 3)
        k = ri(-10000, 10000, R, N)
        z = torch.zeros(R, N, device=DEV, dtype=i32)
        sort_pairs[(R,)](k, z, z.clone(), N=N, BITS=bits, num_warps=w)


@triton.jit
def take_rows(x, idx, y, M, N, stride, BM: tl.constexpr, BN: tl.constexpr):
    # tl.gather in a tile: columns of every row in an order of its own
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, BN)
    m = (r < M)[:, None] & (c < N)[None, :]
    v = tl.load(x + r[:, None] * stride + c[None, :], mask=m, other=0.0)
    i = tl.load(idx + r[:, None] * N + c[None, :], mask=m, other=0)
    tl.store(y + r[:, None] * N + c[None, :], tl.gather(v, i, 1), mask=m)


def case_gather_columns():
    M, N = pick((100000, 100), (20, 12))
    x, i = rn(M, N, dtype=fp16), ri(0, N, M, N)
    for BM, w in pick([(8, 2), (32, 4)], [(4, 1)]):
        take_rows[(cd(M, BM),)](x, i, torch.empty_like(x), M, N, N, BM=BM,
                                BN=triton.next_power_of_2(N), num_warps=w)


if __name__ == "__main__":
    run(globals())
