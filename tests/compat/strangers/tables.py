"""Hash tables, sorting by digits, graphs, text and sampling as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, bf16, cd, f32, fp16, half, pick, ri, rn, run, ze

i16, i32, i64, u8 = torch.int16, torch.int32, torch.int64, torch.uint8


@triton.jit
def hash_insert(keys, table, where, n, LOG: tl.constexpr, B: tl.constexpr):
    # open addressing: lanes that lost a slot walk on until none is left
    i = tl.program_id(0) * B + tl.arange(0, B)
    key = tl.load(keys + i, mask=i < n, other=-1)
    cap: tl.constexpr = 1 << LOG
    at = ((key.to(tl.uint32, bitcast=True) * 2654435769) >> (32 - LOG)).to(tl.int32)
    todo = (i < n).to(tl.int32)
    while tl.max(todo, axis=0) != 0:
        # lanes that are done exchange a word beyond the table
        slot = tl.where(todo != 0, at, cap + i % 32)
        old = tl.atomic_cas(table + slot, tl.full((B,), -1, tl.int32), key)
        hit = (todo != 0) & ((old == -1) | (old == key))
        tl.store(where + i, at, mask=hit)
        todo = tl.where(hit, 0, todo)
        at = (at + 1) & (cap - 1)


@triton.jit
def hash_count(keys, table, counts, n, LOG: tl.constexpr, B: tl.constexpr):
    # counts of distinct keys beside such a table: the places do not matter
    i = tl.program_id(0) * B + tl.arange(0, B)
    key = tl.load(keys + i, mask=i < n, other=-1)
    at = ((key.to(tl.uint32, bitcast=True) * 2654435769) >> (32 - LOG)).to(tl.int32)
    found = (i >= n).to(tl.int1)
    total = tl.zeros((B,), tl.int32)
    going = tl.sum((~found).to(tl.int32))
    while going > 0:
        k = tl.load(table + at, mask=~found, other=-2)
        match = k == key
        total = tl.where(match & ~found, tl.load(counts + at, mask=match & ~found, other=0), total)
        found = found | match | (k == -1)
        at = (at + 1) & ((1 << LOG) - 1)
        going = tl.sum((~found).to(tl.int32))
    tl.store(counts + (1 << LOG) + i, total, mask=i < n)


def case_hash_table():
    n, LOG = pick((1 << 20, 21), (100, 8))
    # one key for each slot: the places do not depend on the order of insertion
    keys = torch.unique(ri(0, 1 << 30, n))
    h = ((keys.long() * 2654435769) % (1 << 32)) >> (32 - LOG)
    order = torch.argsort(h, stable=True)
    h, keys = h[order], keys[order]
    first = torch.ones_like(h, dtype=torch.bool)
    first[1:] = h[1:] != h[:-1]
    keys = keys[first][torch.randperm(int(first.sum()), device=DEV)].contiguous()
    n = len(keys)
    for B, w in pick([(256, 4), (128, 2)], [(32, 1)]):
        table = torch.full(((1 << LOG) + 32,), -1, dtype=i32, device=DEV)
        hash_insert[(cd(n, B),)](keys, table, ze(n, dtype=i32), n, LOG, B, num_warps=w)
        counts = ze((1 << LOG) + n, dtype=i32)
        hash_count[(cd(n, B),)](keys, table, counts, n, LOG, B, num_warps=w)


@triton.jit
def radix_count(keys, counts, n, shift, nblocks, B: tl.constexpr, RADIX: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    d = (tl.load(keys + i, mask=i < n, other=0) >> shift) & (RADIX - 1)
    h = tl.histogram(d, RADIX, mask=i < n)
    tl.store(counts + tl.arange(0, RADIX) * nblocks + pid, h)


@triton.jit
def radix_scatter(keys, vals, base, okeys, ovals, n, shift, nblocks, B: tl.constexpr,
                  RADIX: tl.constexpr):
    # ranks inside of the block by one scan for each digit
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    m = i < n
    k = tl.load(keys + i, mask=m, other=0)
    v = tl.load(vals + i, mask=m, other=0)
    d = tl.where(m, (k >> shift) & (RADIX - 1), RADIX)
    onehot = (d[:, None] == tl.arange(0, RADIX)[None, :]).to(tl.int32)
    ranks = tl.cumsum(onehot, 0) - onehot
    start = tl.load(base + tl.arange(0, RADIX) * nblocks + pid)
    at = tl.sum((ranks + start[None, :]) * onehot, 1)
    tl.store(okeys + at, k, mask=m)
    tl.store(ovals + at, v, mask=m)


def case_radix():
    n, R = pick((1 << 20, 16), (300, 4))
    keys, vals = ri(0, 1 << 30, n), ri(0, 1 << 30, n)
    for B, w in pick([(1024, 4), (512, 8), (2048, 8)], [(64, 1)]):
        nb = cd(n, B)
        counts = ze(R, nb, dtype=i32)
        for shift in (0, 4):
            radix_count[(nb,)](keys, counts, n, shift, nb, B, R, num_warps=w)
            base = (counts.flatten().cumsum(0) - counts.flatten()).int()
            radix_scatter[(nb,)](keys, vals, base, ze(n, dtype=i32), ze(n, dtype=i32), n, shift,
                                 nb, B, R, num_warps=w)


@triton.jit
def compact_atomic(x, out, ticket, limit, n, B: tl.constexpr):
    """Kept elements of a block by a scan, the block's place by one atomic."""
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=float("inf"))
    keep = v < limit
    inc = tl.cumsum(keep.to(tl.int32), axis=0)
    total = tl.max(inc, axis=0)
    place = tl.atomic_add(ticket, total, sem="acq_rel", scope="gpu")
    # sums of the kept do not depend on the order: that is what is compared
    tl.store(out + pid, tl.sum(tl.where(keep, v, 0.0)) + place * 0)


def case_compact():
    n = pick(1 << 22, 500)
    for B, w in pick([(1024, 4), (4096, 8)], [(64, 1)]):
        compact_atomic[(cd(n, B),)](rn(n, dtype=f32), ze(cd(n, B)), ze(1, dtype=i32), 0.3, n, B,
                                    num_warps=w)


@triton.jit
def find_all(text, pattern, hits, n, M: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    good = i <= n - M
    for k in range(M):
        c = tl.load(text + i + k, mask=good, other=0)
        p = tl.load(pattern + k)
        good = good & ((c == p) | (p == 63))               # ? is any
    tl.store(hits + i, good.to(tl.int8), mask=i < n)


def case_find_all():
    n = pick(1 << 23, 400)
    text = ri(97, 100, n, dtype=u8)
    pat = torch.tensor(list(b"ab?ba"), dtype=u8, device=DEV)
    for B, w in pick([(1024, 4), (4096, 8), (2048, 4)], [(64, 1)]):
        find_all[(cd(n, B),)](text, pat, ze(n, dtype=torch.int8), n, 5, B, num_warps=w)


@triton.jit
def edit_wavefront(a, b, out, LA, LB, W: tl.constexpr):
    # diagonals of one pair a program, neighbours by tl.gather
    pid = tl.program_id(0)
    i = tl.arange(0, W)
    la, lb = tl.load(LA + pid), tl.load(LB + pid)
    prev = tl.where(i == 0, 0, 1 << 20)
    cur = tl.where(i <= 1, 1, 1 << 20)
    left = tl.maximum(i - 1, 0)
    ca = tl.load(a + pid * W + left, mask=(i >= 1) & (i <= la), other=0)
    result = tl.where(la == 0, lb, tl.where(lb == 0, la, 0))
    for d in range(2, la + lb + 1):
        j = d - i
        inside = (i >= 1) & (i <= la) & (j >= 1) & (j <= lb)
        cb = tl.load(b + pid * W + j - 1, mask=inside, other=1)
        up = tl.gather(cur, left, 0)
        dia = tl.gather(prev, left, 0)
        cost = tl.minimum(tl.minimum(up, cur) + 1, dia + (ca != cb).to(tl.int32))
        nxt = tl.where(inside, cost, tl.where((i == 0) | (j == 0), d, 1 << 20))
        prev = cur
        cur = nxt
    end = tl.sum(tl.where(i == la, cur, 0))
    tl.store(out + pid, tl.where((la == 0) | (lb == 0), result, end))


def case_edit_wavefront():
    P, W = pick((4096, 128), (4, 16))
    for w in pick((1, 4), (1,)):
        edit_wavefront[(P,)](ri(97, 101, P, W, dtype=u8), ri(97, 101, P, W, dtype=u8),
                             ze(P, dtype=i32), ri(W // 2, W - 1, P), ri(W // 2, W - 1, P), W,
                             num_warps=w)


@triton.jit
def crc_shift(c):
    low = (c & 1).to(tl.int1)
    return tl.where(low, (c >> 1) ^ 0x82F63B78, c >> 1)


@triton.jit
def crc32c_lanes(data, out, n_lanes, L, B: tl.constexpr):
    # bit by bit, a word of four bytes at a time
    lane = tl.program_id(0) * B + tl.arange(0, B)
    m = lane < n_lanes
    crc = tl.full((B,), -1, tl.int32).to(tl.uint32, bitcast=True)
    for w in range(L):
        x = tl.load(data + lane * L + w, mask=m, other=0).to(tl.uint32, bitcast=True)
        crc ^= x
        for _ in tl.static_range(32):
            crc = crc_shift(crc)
    tl.store(out + lane, (crc ^ 0xFFFFFFFF).to(tl.int32, bitcast=True), mask=m)


def case_crc32c():
    n, L = pick((1 << 17, 32), (50, 3))
    for B, w in pick([(128, 4), (256, 4)], [(32, 1)]):
        crc32c_lanes[(cd(n, B),)](ri(-2**31, 2**31 - 1, n, L), ze(n, dtype=i32), n, L, B,
                                  num_warps=w)


@triton.jit
def csr_row_softmax(rowptr, col, logit, feat, out, alpha, D: tl.constexpr, BE: tl.constexpr):
    # two passes over the edges of a node, then a weighted sum of its neighbours
    v = tl.program_id(0)
    lo = tl.load(rowptr + v)
    hi = tl.load(rowptr + v + 1)
    d = tl.arange(0, D)
    m = -float("inf")
    s = 0.0
    for e0 in range(lo, hi, BE):
        e = e0 + tl.arange(0, BE)
        x = tl.load(logit + e, mask=e < hi, other=-float("inf"))
        x = tl.where(x > 0, x, 0.2 * x)
        mn = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - mn) + tl.sum(tl.exp(x - mn), 0)
        m = mn
    acc = tl.zeros((D,), tl.float32)
    for e0 in range(lo, hi, BE):
        e = e0 + tl.arange(0, BE)
        em = e < hi
        x = tl.load(logit + e, mask=em, other=-float("inf"))
        x = tl.where(x > 0, x, 0.2 * x)
        p = tl.exp(x - m) / s
        tl.store(alpha + e, p, mask=em)
        c = tl.load(col + e, mask=em, other=0)
        f = tl.load(feat + c[:, None].to(tl.int64) * D + d[None, :], mask=em[:, None], other=0.0)
        acc += tl.sum(f.to(tl.float32) * p[:, None], 0)
    tl.store(out + v * D + d, acc.to(out.dtype.element_ty))


def graph(nodes, mean):
    deg = ri(0, 2 * mean, nodes)
    ptr = torch.zeros(nodes + 1, dtype=i32, device=DEV)
    ptr[1:] = deg.cumsum(0).int()
    return ptr, ri(0, nodes, int(ptr[-1]))


def case_csr_softmax():
    V, D, mean = pick((16384, 64, 16), (9, 16, 5))
    ptr, col = graph(V, mean)
    E = len(col)
    for BE, w in pick([(16, 1), (32, 4), (64, 2)], [(8, 1)]):
        csr_row_softmax[(V,)](ptr, col, rn(E, dtype=f32), rn(V, D), ze(V, D, dtype=bf16), ze(E),
                              D, BE, num_warps=w)


@triton.jit
def spmm_rows(ptr, col, val, B, C, N, stride_b, BN: tl.constexpr, UNROLL: tl.constexpr):
    # a scalar at a time, the dense row in a vector
    r = tl.program_id(0)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    start, stop = tl.load(ptr + r), tl.load(ptr + r + 1)
    acc = tl.zeros((BN,), tl.float32)
    for e in tl.range(start, stop, loop_unroll_factor=UNROLL):
        c = tl.load(col + e).to(tl.int64)
        a = tl.load(val + e)
        acc += a * tl.load(B + c * stride_b + n, mask=n < N, other=0.0)
    tl.store(C + r * N + n, acc, mask=n < N)


def case_spmm_rows():
    V, N, mean = pick((16384, 256, 32), (9, 20, 5))
    ptr, col = graph(V, mean)
    for BN, w in pick([(256, 2), (128, 4), (64, 1)], [(16, 1)]):
        spmm_rows[(V, cd(N, BN))](ptr, col, rn(len(col), dtype=f32), rn(V, N, dtype=f32), ze(V, N),
                                  N, N, BN, 4, num_warps=w)


@triton.jit
def sampled_dense(rows, cols, A, B, out, nnz, K, BE: tl.constexpr, BK: tl.constexpr):
    e = tl.program_id(0) * BE + tl.arange(0, BE)
    em = e < nnz
    r = tl.load(rows + e, mask=em, other=0).to(tl.int64)
    c = tl.load(cols + e, mask=em, other=0).to(tl.int64)
    acc = tl.zeros((BE,), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        ok = em[:, None] & (k < K)[None, :]
        a = tl.load(A + r[:, None] * K + k[None, :], mask=ok, other=0.0).to(tl.float32)
        b = tl.load(B + c[:, None] * K + k[None, :], mask=ok, other=0.0).to(tl.float32)
        acc += tl.sum(a * b, 1)
    tl.store(out + e, acc, mask=em)


def case_sampled_dense():
    V, K, nnz = pick((8192, 256, 1 << 17), (10, 40, 50))
    for BE, BK, w in pick([(16, 64, 4), (32, 128, 4), (8, 256, 4)], [(8, 16, 1)]):
        sampled_dense[(cd(nnz, BE),)](ri(0, V, nnz), ri(0, V, nnz), rn(V, K), rn(V, K), ze(nnz),
                                      nnz, K, BE, BK, num_warps=w)


@triton.jit
def top_p_bisect(logits, out, temp, p, u, V, stride, BLOCK: tl.constexpr, ITERS: tl.constexpr):
    # the threshold of a nucleus by bisection, then an inverse transform over chunks
    row = tl.program_id(0)
    base = logits + row * stride
    t = tl.load(temp + row)
    mx = -float("inf")
    for s in range(0, V, BLOCK):
        o = s + tl.arange(0, BLOCK)
        mx = tl.maximum(mx, tl.max(tl.load(base + o, mask=o < V, other=-float("inf"))
                                   .to(tl.float32)))
    z = 0.0
    for s in range(0, V, BLOCK):
        o = s + tl.arange(0, BLOCK)
        x = tl.load(base + o, mask=o < V, other=-float("inf")).to(tl.float32)
        z += tl.sum(tl.exp((x - mx) / t))
    lo, hi = 0.0, 1.0
    want = tl.load(p + row)
    for it in range(ITERS):
        mid = 0.5 * (lo + hi)
        mass = 0.0
        for s in range(0, V, BLOCK):
            o = s + tl.arange(0, BLOCK)
            x = tl.load(base + o, mask=o < V, other=-float("inf")).to(tl.float32)
            e = tl.exp((x - mx) / t)
            mass += tl.sum(tl.where(e >= mid, e, 0.0))
        enough = mass >= want * z
        lo = mid if enough else lo
        hi = hi if enough else mid
    tl.store(out + row, lo)
    tl.store(out + tl.num_programs(0) + row, z)


def case_top_p():
    R, V = pick((256, 32000), (3, 100))
    for B, w in pick([(4096, 8), (1024, 4)], [(32, 1)]):
        top_p_bisect[(R,)](rn(R, V, dtype=half, scale=2.0), ze(2 * R),
                           torch.rand(R, device=DEV) + 0.5, torch.rand(R, device=DEV) * 0.5 + 0.4,
                           0, V, V, B, 12, num_warps=w)


@triton.jit
def verify_draft(draft, draft_p, target_p, uniform, accepted, next_tok, K: tl.constexpr, V,
                 BV: tl.constexpr):
    # speculative tokens are accepted in turn; the first refused one is drawn again
    b = tl.program_id(0)
    n_ok = 0
    going = True
    for i in tl.static_range(K):
        tok = tl.load(draft + b * K + i)
        q = tl.load(draft_p + (b * K + i) * V + tok)
        p = tl.load(target_p + (b * (K + 1) + i) * V + tok)
        u = tl.load(uniform + b * (K + 1) + i)
        going = going & (u * q <= p)
        if going:
            n_ok += 1
    tl.store(accepted + b, n_ok)
    best = -1.0
    arg = 0
    for v0 in range(0, V, BV):
        v = v0 + tl.arange(0, BV)
        pv = tl.load(target_p + (b * (K + 1) + n_ok) * V + v, mask=v < V, other=0.0)
        qv = tl.load(draft_p + (b * K + tl.minimum(n_ok, K - 1)) * V + v,
                    mask=(v < V) & (n_ok < K), other=0.0)
        r = tl.maximum(pv - qv, 0.0)
        top, where = tl.max(r, axis=0, return_indices=True)
        if top > best:
            best = top
            arg = v0 + where
    tl.store(next_tok + b, arg)


def case_verify_draft():
    B, K, V = pick((128, 5, 32000), (3, 2, 50))
    q = torch.softmax(rn(B, K, V, dtype=f32), -1)
    p = torch.softmax(rn(B, K + 1, V, dtype=f32), -1)
    for BV, w in pick([(4096, 8), (1024, 4)], [(16, 1)]):
        verify_draft[(B,)](ri(0, V, B, K), q, p, torch.rand(B, K + 1, device=DEV),
                           ze(B, dtype=i32), ze(B, dtype=i32), K, V, BV, num_warps=w)


@triton.jit
def lookback_scan(x, y, flags, sums, n, B: tl.constexpr):
    # one pass: a block publishes its sum, then the sum of all before it
    pid = tl.program_id(0)
    i = pid * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    inc = tl.cumsum(v, 0)
    total = tl.sum(v, 0)
    before = 0
    if pid > 0:
        state = tl.atomic_add(flags + pid - 1, 0, sem="acquire")
        while state == 0:
            state = tl.atomic_add(flags + pid - 1, 0, sem="acquire")
        before = tl.load(sums + pid - 1, volatile=True)
    tl.store(sums + pid, before + total)
    tl.debug_barrier()
    tl.atomic_xchg(flags + pid, 1, sem="release")
    tl.store(y + i, inc + before, mask=i < n)


def case_lookback():
    n = pick(1 << 19, 300)
    for B, w in pick([(4096, 8), (8192, 8)], [(64, 1)]):
        lookback_scan[(cd(n, B),)](ri(0, 10, n), ze(n, dtype=i32), ze(cd(n, B), dtype=i32),
                                   ze(cd(n, B), dtype=i32), n, B, num_warps=w)


@triton.jit
def frontier(ptr, col, level, nxt, depth, n, BV: tl.constexpr, BE: tl.constexpr):
    """A level of breadth first search, vertices in rows, edges in columns."""
    v = tl.program_id(0) * BV + tl.arange(0, BV)
    here = tl.load(level + v, mask=v < n, other=-1) == depth
    s = tl.load(ptr + v, mask=here, other=0)
    e = tl.load(ptr + v + 1, mask=here, other=0)
    longest = tl.max(e - s)
    for k in range(0, longest, BE):
        at = s[:, None] + k + tl.arange(0, BE)[None, :]
        ok = at < e[:, None]
        u = tl.load(col + at, mask=ok, other=0)
        tl.atomic_min(nxt + u, depth + 1, mask=ok, sem="relaxed")


def case_frontier():
    V, mean = pick((1 << 17, 16), (20, 4))
    ptr, col = graph(V, mean)
    level = ri(0, 3, V)
    for BV, BE, w in pick([(64, 16, 4), (32, 32, 4)], [(8, 8, 1)]):
        frontier[(cd(V, BV),)](ptr, col, level, torch.full((V,), 99, dtype=i32, device=DEV), 1, V,
                               BV, BE, num_warps=w)


@triton.jit
def run_lengths(x, starts, lengths, n, B: tl.constexpr):
    # the length of a run at its end: the last start by a scan of maxima
    i = tl.arange(0, B)
    row = tl.program_id(0)
    v = tl.load(x + row * n + i, mask=i < n, other=-1)
    left = tl.load(x + row * n + i - 1, mask=(i < n) & (i > 0), other=-2)
    right = tl.load(x + row * n + i + 1, mask=i < n - 1, other=-2)
    head = tl.where(v != left, i, 0)
    start = tl.associative_scan(head, 0, larger)
    tl.store(starts + row * n + i, start, mask=i < n)
    tl.store(lengths + row * n + i, tl.where(v != right, i - start + 1, 0), mask=i < n)


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


def case_run_lengths():
    R, n, B = pick((4096, 1000, 1024), (3, 50, 64))
    for w in pick((1, 4), (1,)):
        run_lengths[(R,)](ri(0, 2, R, n), ze(R, n, dtype=i32), ze(R, n, dtype=i32), n, B,
                          num_warps=w)


@triton.jit
def bag_weighted(table, idx, off, w, out, n_bags, DIM, MODE: tl.constexpr, BD: tl.constexpr):
    bag = tl.program_id(0)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    s = tl.load(off + bag)
    e = tl.load(off + bag + 1)
    if MODE == "max":
        acc = tl.full((BD,), -float("inf"), tl.float32)
    else:
        acc = tl.zeros((BD,), tl.float32)
    for k in range(s, e):
        row = tl.load(idx + k)
        x = tl.load(table + row * DIM + d, mask=d < DIM, other=0.0).to(tl.float32)
        if MODE == "max":
            acc = tl.maximum(acc, x)
        else:
            acc += x * tl.load(w + k)
    if MODE == "mean":
        acc = acc / tl.maximum(e - s, 1).to(tl.float32)
    tl.store(out + bag * DIM + d, acc, mask=d < DIM)


def case_bag_weighted():
    N, V, DIM, mean = pick((8192, 100000, 128, 20), (6, 30, 20, 4))
    off, idx = graph(N, mean)
    for mode in ("sum", "mean", "max"):
        for BD, w in pick([(128, 1), (32, 1)], [(16, 1)]):
            bag_weighted[(N, cd(DIM, BD))](rn(V, DIM, dtype=fp16), ri(0, V, len(idx), dtype=i64),
                                           off, rn(len(idx), dtype=f32), ze(N, DIM), N, DIM, mode,
                                           BD, num_warps=w)


if __name__ == "__main__":
    run(globals())
