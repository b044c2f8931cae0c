"""Graphs, sparse matrices and tables that are joined as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, half, pick, ri, rn, run, ze

i8, i32, i64, u8 = torch.int8, torch.int32, torch.int64, torch.uint8
f64 = torch.float64


def graph(nodes, mean, cols=None, ordered=False):
    deg = ri(0, 2 * mean, nodes)
    ptr = torch.zeros(nodes + 1, dtype=i32, device=DEV)
    ptr[1:] = deg.cumsum(0).int()
    col = ri(0, cols or nodes, int(ptr[-1]))
    if ordered:
        row = torch.repeat_interleave(torch.arange(nodes, device=DEV), deg.long())
        col = (torch.sort(row * (cols or nodes) + col)[0] % (cols or nodes)).int()
    return ptr, col


@triton.jit
def sage_mean(ptr, col, x, y, N, F, MOST, BN: tl.constexpr, BF: tl.constexpr):
    # a block of nodes beside each other, as long as the longest list of MOST at most
    v = tl.program_id(0) * BN + tl.arange(0, BN)
    f = tl.program_id(1) * BF + tl.arange(0, BF)
    s = tl.load(ptr + v, mask=v < N, other=0)
    e = tl.load(ptr + v + 1, mask=v < N, other=0)
    deg = tl.minimum(e - s, MOST)
    acc = tl.zeros((BN, BF), tl.float32)
    for k in range(tl.max(deg, 0)):
        ok = k < deg
        u = tl.load(col + s + k, mask=ok, other=0).to(tl.int64)
        acc += tl.load(x + u[:, None] * F + f[None, :], mask=ok[:, None] & (f < F)[None, :],
                       other=0.0).to(tl.float32)
    acc = acc / tl.maximum(deg, 1).to(tl.float32)[:, None]
    tl.store(y + v[:, None].to(tl.int64) * F + f[None, :], acc.to(y.dtype.element_ty),
             mask=(v < N)[:, None] & (f < F)[None, :])


def case_sage_mean():
    N, F, mean = pick((32768, 128, 12), (20, 20, 3))
    ptr, col = graph(N, mean)
    x = rn(N, F, dtype=half)
    for BN, BF, w in pick([(4, 128, 4), (16, 128, 4), (1, 128, 1)], [(4, 16, 1)]):
        sage_mean[(cd(N, BN), cd(F, BF))](ptr, col, x, ze(N, F, dtype=half), N, F, 25, BN, BF,
                                          num_warps=w)


@triton.jit
def count_common(ptr, col, src, dst, out, E, STEPS: tl.constexpr, BE: tl.constexpr):
    # triangles: neighbours of one end that are found among those of the other by bisection
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    m = e < E
    u = tl.load(src + e, mask=m, other=0)
    v = tl.load(dst + e, mask=m, other=0)
    us = tl.load(ptr + u, mask=m, other=0)
    ue = tl.load(ptr + u + 1, mask=m, other=0)
    vs = tl.load(ptr + v, mask=m, other=0)
    ve = tl.load(ptr + v + 1, mask=m, other=0)
    count = tl.zeros((BE,), tl.int32)
    for k in range(tl.max(ue - us, 0)):
        ok = us + k < ue
        want = tl.load(col + us + k, mask=ok, other=-1)
        lo, hi = vs, ve
        for _ in tl.static_range(STEPS):
            mid = (lo + hi) // 2
            less = tl.load(col + mid, mask=ok & (lo < hi), other=0) < want
            lo = tl.where(less & (lo < hi), mid + 1, lo)
            hi = tl.where(less, hi, mid)
        hit = tl.load(col + lo, mask=ok & (lo < ve), other=-2) == want
        count += hit.to(tl.int32)
    tl.store(out + e, count, mask=m)


def case_count_common():
    N, mean = pick((16384, 12), (20, 4))
    ptr, col = graph(N, mean, ordered=True)
    src = torch.repeat_interleave(torch.arange(N, device=DEV), (ptr[1:] - ptr[:-1]).long()).int()
    for BE, w in pick([(256, 4), (128, 1), (128, 4)], [(32, 1)]):
        count_common[(cd(len(col), BE),)](ptr, col, src, col, ze(len(col), dtype=i32), len(col), 5,
                                          BE, num_warps=w)


@triton.jit
def sell_spmv(sptr, width, col, val, perm, x, y, N, C: tl.constexpr):
    # SELL-C-sigma: a slice of C rows, columns of it beside each other
    s = tl.program_id(0)
    r = tl.arange(0, C)
    start = tl.load(sptr + s)
    acc = tl.zeros((C,), tl.float64)
    for k in range(tl.load(width + s)):
        at = start + k * C + r
        acc += tl.load(val + at) * tl.load(x + tl.load(col + at))
    to = tl.load(perm + s * C + r, mask=s * C + r < N, other=0)
    tl.store(y + to, acc, mask=s * C + r < N)


def case_sell_spmv():
    N, C = pick((1 << 18, 128), (50, 16))
    for C, w in pick([(128, 4), (32, 1), (256, 4)], [(16, 1)]):
        S = cd(N, C)
        width = ri(4, 40, S)
        sp = (width.cumsum(0) - width).int() * C
        n = int(width.sum()) * C
        perm = torch.randperm(N, device=DEV).int()
        sell_spmv[(S,)](sp, width, ri(0, N, n), rn(n, dtype=f32).double(), perm,
                        rn(N, dtype=f32).double(), ze(N, dtype=f64), N, C, num_warps=w)


@triton.jit
def dia_spmv(off, diag, x, y, N, ND, B: tl.constexpr):
    # diagonals of any distance
    i = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for d in range(ND):
        j = i + tl.load(off + d)
        ok = (i < N) & (j >= 0) & (j < N)
        acc += tl.load(diag + d * N + i, mask=ok, other=0.0) * tl.load(x + j, mask=ok, other=0.0)
    tl.store(y + i, acc, mask=i < N)


def case_dia_spmv():
    N, ND = pick((1 << 20, 13), (100, 5))
    off = torch.sort(ri(-1000, 1000, ND))[0].int() if N > 2000 else ri(-9, 9, ND)
    for B, w in pick([(1024, 4), (512, 4), (256, 2)], [(32, 1)]):
        dia_spmv[(cd(N, B),)](off, rn(ND, N, dtype=f32), rn(N, dtype=f32), ze(N), N, ND, B,
                              num_warps=w)


@triton.jit
def edge_extreme(dst, msg, out, E, F: tl.constexpr, BE: tl.constexpr):
    # messages to their ends: the greatest of each feature by atomics of floats
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    f = tl.arange(0, F)
    d = tl.load(dst + e, mask=e < E, other=0)
    v = tl.load(msg + e[:, None] * F + f[None, :], mask=(e < E)[:, None], other=0.0)
    tl.atomic_max(out + d[:, None] * F + f[None, :], v, mask=(e < E)[:, None], sem="relaxed")


def case_edge_extreme():
    N, E, F = pick((8192, 1 << 17, 32), (9, 50, 8))
    for BE, w in pick([(32, 4), (128, 4), (16, 1)], [(8, 1)]):
        edge_extreme[(cd(E, BE),)](ri(0, N, E), rn(E, F, dtype=f32), ze(N, F) - 9, E, F, BE,
                                   num_warps=w)


@triton.jit
def page_rank(ptr, col, rank, outdeg, nxt, diff, N, damp, BN: tl.constexpr, BE: tl.constexpr):
    """A row of the tile for each node, chunks of its list of links as columns."""
    v = tl.program_id(0) * BN + tl.arange(0, BN)
    s = tl.load(ptr + v, mask=v < N, other=0)
    e = tl.load(ptr + v + 1, mask=v < N, other=0)
    acc = tl.zeros((BN, BE), tl.float32)
    k = 0
    longest = tl.max(e - s, 0)
    while k < longest:
        at = s[:, None] + k + tl.arange(0, BE)[None, :]
        ok = at < e[:, None]
        u = tl.load(col + at, mask=ok, other=0)
        acc += tl.load(rank + u, mask=ok, other=0.0) / tl.load(outdeg + u, mask=ok, other=1.0)
        k += BE
    new = (1 - damp) / N + damp * tl.sum(acc, 1)
    old = tl.load(rank + v, mask=v < N, other=0.0)
    tl.store(nxt + v, new, mask=v < N)
    tl.store(diff + tl.program_id(0), tl.sum(tl.where(v < N, tl.abs(new - old), 0.0), 0))


def case_page_rank():
    N, mean = pick((1 << 16, 16), (30, 4))
    ptr, col = graph(N, mean)
    for BN, BE, w in pick([(32, 8, 4), (16, 32, 4), (8, 16, 1)], [(8, 4, 1)]):
        page_rank[(cd(N, BN),)](ptr, col, torch.rand(N, device=DEV), ri(1, 9, N).float(), ze(N),
                                ze(cd(N, BN)), N, .85, BN, BE, num_warps=w)


@triton.jit
def jump_roots(parent, root, N, B: tl.constexpr):
    # pointers are followed until all of a block stand still
    i = tl.program_id(0) * B + tl.arange(0, B)
    p = tl.load(parent + i, mask=i < N, other=0)
    moved = 1
    while moved > 0:
        q = tl.load(parent + p, mask=i < N, other=0)
        moved = tl.sum((q != p).to(tl.int32), 0)
        p = q
    tl.store(root + i, p, mask=i < N)


def case_jump_roots():
    N = pick(1 << 22, 300)
    par = (torch.rand(N, device=DEV, dtype=f64) * torch.arange(N, device=DEV)).int()
    par[::9] = torch.arange(N, device=DEV)[::9].int()
    for B, w in pick([(256, 4), (1024, 4), (64, 1)], [(32, 1)]):
        jump_roots[(cd(N, B),)](par, ze(N, dtype=i32) - 1, N, B, num_warps=w)


@triton.jit
def relax_edges(src, dst, wt, dist, changed, E, B: tl.constexpr):
    # a round of Bellman and Ford: the old distances are read, the new ones made elsewhere
    e = tl.program_id(0) * B + tl.arange(0, B)
    m = e < E
    d = tl.load(dist + tl.load(src + e, mask=m, other=0), mask=m, other=1 << 30)
    new = d + tl.load(wt + e, mask=m, other=0).to(tl.int32)
    t = tl.load(dst + e, mask=m, other=0)
    m = m & (new < tl.load(dist + t, mask=m, other=0))
    tl.atomic_min(changed + t, new, mask=m, sem="relaxed")


def case_relax_edges():
    N, E = pick((1 << 17, 1 << 21), (20, 90))
    for B, w in pick([(512, 4), (1024, 4), (256, 1)], [(32, 1)]):
        relax_edges[(cd(E, B),)](ri(0, N, E), ri(0, N, E), ri(1, 99, E, dtype=u8), ri(0, 999, N),
                                 torch.full((N,), 1 << 30, dtype=i32, device=DEV), E, B,
                                 num_warps=w)


@triton.jit
def sorted_places(hay, needles, lower, upper, n, m, LOG: tl.constexpr, B: tl.constexpr):
    # both ends of the equal range of each number among 64-bit keys
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(needles + i, mask=i < m, other=0)
    lo = tl.zeros((B,), tl.int64)
    up = tl.zeros((B,), tl.int64)
    for k in tl.static_range(LOG):
        l2 = lo + (1 << (LOG - 1 - k))
        u2 = up + (1 << (LOG - 1 - k))
        a = tl.load(hay + l2 - 1, mask=l2 <= n, other=0x7FFFFFFFFFFFFFFF)
        b = tl.load(hay + u2 - 1, mask=u2 <= n, other=0x7FFFFFFFFFFFFFFF)
        lo = tl.where(a < v, l2, lo)
        up = tl.where(b <= v, u2, up)
    tl.store(lower + i, lo, mask=i < m)
    tl.store(upper + i, up, mask=i < m)


def case_sorted_places():
    n, m, LOG = pick((1 << 20, 1 << 20, 21), (100, 70, 7))
    hay = torch.sort(ri(0, n, n, dtype=i64))[0]
    for B, w in pick([(256, 4), (512, 4), (128, 1)], [(32, 1)]):
        sorted_places[(cd(m, B),)](hay, ri(0, n, m, dtype=i64), ze(m, dtype=i64),
                                   ze(m, dtype=i64), n, m, LOG, B, num_warps=w)


@triton.jit
def merge_blocks(a, b, out, na, nb, LOG: tl.constexpr, B: tl.constexpr):
    # a path of two sorted lists: each result's diagonal by bisection
    i = tl.program_id(0) * B + tl.arange(0, B)
    lo = tl.maximum(i - nb, 0)
    hi = tl.minimum(i, na)
    for _ in range(LOG):
        mid = (lo + hi) // 2
        go = lo < hi
        x = tl.load(a + mid, mask=go, other=0)
        y = tl.load(b + i - mid - 1, mask=go, other=0)
        take = go & (x <= y)
        lo = tl.where(take, mid + 1, lo)
        hi = tl.where(go & ~take, mid, hi)
    j = i - lo
    m = i < na + nb
    x = tl.load(a + lo, mask=m & (lo < na), other=2147483647)
    y = tl.load(b + j, mask=m & (j < nb), other=2147483647)
    tl.store(out + i, tl.minimum(x, y), mask=m)


def case_merge_blocks():
    n, LOG = pick((1 << 21, 22), (90, 7))
    a, b = torch.sort(ri(0, 1 << 30, n))[0], torch.sort(ri(0, 1 << 30, n - 9))[0]
    for B, w in pick([(512, 4), (1024, 8), (256, 1)], [(32, 1)]):
        merge_blocks[(cd(2 * n - 9, B),)](a, b, ze(2 * n - 9, dtype=i32), n, n - 9, LOG, B,
                                          num_warps=w)


@triton.jit
def split_by_bit(keys, vals, okeys, ovals, n, bits, B: tl.constexpr):
    # a block sorted by a few bits, one stable partition each, through memory of its own
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    base = pid * B
    m = base + i < n
    k = tl.load(keys + base + i, mask=m, other=-1)
    v = tl.load(vals + base + i, mask=m, other=0)
    for bit in range(bits):
        one = (k >> bit) & 1
        zeros = tl.cumsum(1 - one, 0)
        nz = tl.sum(1 - one, 0)
        to = tl.where(one == 0, zeros - 1, nz + i - zeros)
        tl.store(okeys + base + to, k)
        tl.store(ovals + base + to, v)
        tl.debug_barrier()
        k = tl.load(okeys + base + i)
        v = tl.load(ovals + base + i)
        tl.debug_barrier()


def case_split_by_bit():
    n = pick(1 << 21, 128)
    for B, w in pick([(1024, 4), (2048, 8), (512, 4)], [(64, 1)]):
        nb = cd(n, B) * B
        split_by_bit[(cd(n, B),)](ri(0, 1 << 30, n), ri(0, 99, n), ze(nb, dtype=i32),
                                  ze(nb, dtype=i32), n, 8, B, num_warps=w)


@triton.jit
def unique_flags(x, first, index, n, B: tl.constexpr):
    # which of sorted rows of three columns are the first of their kind, and their places
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    m = i < n
    differ = i == 0
    for c in tl.static_range(3):
        a = tl.load(x + i * 3 + c, mask=m, other=0)
        b = tl.load(x + i * 3 + c - 3, mask=m & (i > 0), other=0)
        differ = differ | (a != b)
    f = (differ & m).to(tl.int32)
    tl.store(first + i, f.to(tl.int8), mask=m)
    tl.store(index + i, tl.cumsum(f, 0) - 1, mask=m)


def case_unique_flags():
    n = pick(1 << 22, 300)
    x = ri(0, 2, n, 3)
    for B, w in pick([(1024, 4), (512, 4), (4096, 8)], [(64, 1)]):
        unique_flags[(cd(n, B),)](x, ze(n, dtype=i8), ze(n, dtype=i32), n, B, num_warps=w)


@triton.jit
def bag_bwd_sorted(order, seg, grad, dw, nseg, D, BAG: tl.constexpr, BD: tl.constexpr):
    # gradients of one row of a table: its uses in sorted order, a while loop
    s = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    k = tl.load(seg + s)
    e = tl.load(seg + s + 1)
    acc = tl.zeros((BD,), tl.float32)
    while k < e:
        o = tl.load(order + k)
        acc += tl.load(grad + (o // BAG).to(tl.int64) * D + d, mask=d < D, other=0.0).to(tl.float32)
        k += 1
    tl.store(dw + s.to(tl.int64) * D + d, acc, mask=d < D)


def case_bag_bwd_sorted():
    V, D, bags, mean = pick((50000, 256, 65536, 8), (20, 20, 20, 4))
    seg, _ = graph(V, mean)
    n = int(seg[-1])
    for BD, w in pick([(256, 1), (256, 4), (128, 2)], [(32, 1)]):
        bag_bwd_sorted[(V, cd(D, BD))](ri(0, bags * 8, n), seg, rn(bags, D, dtype=half), ze(V, D),
                                       V, D, 8, BD, num_warps=w)


@triton.jit
def count_within(starts, ends, queries, out, n, m, BQ: tl.constexpr, BI: tl.constexpr):
    # how many intervals hold a point: all pairs, double precision
    q = tl.program_id(0) * BQ + tl.arange(0, BQ)
    t = tl.load(queries + q, mask=q < m, other=0.0)
    acc = tl.zeros((BQ, BI), tl.int32)
    for i0 in range(0, n, BI):
        i = i0 + tl.arange(0, BI)
        a = tl.load(starts + i, mask=i < n, other=float("inf"))
        b = tl.load(ends + i, mask=i < n, other=0.0)
        acc += ((t[:, None] >= a[None, :]) & (t[:, None] < b[None, :])).to(tl.int32)
    tl.store(out + q, tl.sum(acc, 1), mask=q < m)


def case_count_within():
    n, m = pick((8192, 65536), (50, 30))
    a = torch.rand(n, device=DEV, dtype=f64)
    for BQ, BI, w in pick([(64, 64, 4), (32, 128, 4), (128, 16, 8)], [(8, 16, 1)]):
        count_within[(cd(m, BQ),)](a, a + .1, torch.rand(m, device=DEV, dtype=f64),
                                   ze(m, dtype=i32), n, m, BQ, BI, num_warps=w)


@triton.jit
def longest_common(a, b, out, LA, LB, W: tl.constexpr):
    # common substrings by diagonals: the greatest run, all lanes a diagonal apart
    pid = tl.program_id(0)
    d = tl.arange(0, W) - W // 2
    run_ = tl.zeros((W,), tl.int32)
    best = tl.zeros((W,), tl.int32)
    for i in range(LA):
        x = tl.load(a + pid * LA + i)
        j = i + d
        y = tl.load(b + pid * LB + j, mask=(j >= 0) & (j < LB), other=0)
        run_ = tl.where(x == y, run_ + 1, 0)
        best = tl.maximum(best, run_)
    tl.store(out + pid, tl.max(best, 0))


def case_longest_common():
    P, L = pick((2048, 200), (3, 20))
    for W, w in pick([(512, 4), (256, 1), (512, 8)], [(64, 1)]):
        longest_common[(P,)](ri(65, 69, P, L, dtype=u8), ri(65, 69, P, L, dtype=u8),
                             ze(P, dtype=i32), L, L, W, num_warps=w)


@triton.jit
def as_of(times, quotes, price, out, stale, n, m, horizon, LOG: tl.constexpr, B: tl.constexpr):
    # the last quote before each trade, not older than a horizon: times of 64 bits
    i = tl.program_id(0) * B + tl.arange(0, B)
    t = tl.load(times + i, mask=i < m, other=0)
    lo = tl.full((B,), -1, tl.int32)
    hi = tl.zeros((B,), tl.int32) + n
    step = 0
    while step < LOG:
        mid = (lo + hi) >> 1
        q = tl.load(quotes + mid, mask=(mid >= 0) & (hi - lo > 1), other=0)
        before = q <= t
        move = hi - lo > 1
        lo = tl.where(move & before, mid, lo)
        hi = tl.where(move & ~before, mid, hi)
        step += 1
    at = tl.load(quotes + lo, mask=lo >= 0, other=0)
    fresh = (lo >= 0) & (t - at <= horizon)
    v = tl.load(price + lo, mask=fresh, other=float("nan"))
    tl.store(out + i, v, mask=i < m)
    old = tl.sum((~fresh & (i < m)).to(tl.int32), 0)
    tl.store(stale + tl.program_id(0), old)


def case_as_of():
    n, m, LOG = pick((1 << 20, 1 << 21, 21), (100, 90, 8))
    q = torch.sort(ri(0, 1 << 40, n, dtype=i64))[0]
    for B, w in pick([(256, 4), (512, 4), (128, 1)], [(32, 1)]):
        as_of[(cd(m, B),)](ri(0, 1 << 40, m, dtype=i64), q, rn(n, dtype=f32).double(),
                           ze(m, dtype=f64), ze(cd(m, B), dtype=i32), n, m, 1 << 21, LOG, B,
                           num_warps=w)


if __name__ == "__main__":
    run(globals())
