"""Small problems of courses and competitions as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, pick, ri, rn, run, ze

i32, i64, u8 = torch.int32, torch.int64, torch.uint8


@triton.constexpr_function
def log2i(n):
    k = 0
    while (1 << k) < n:
        k += 1
    return k


@triton.jit
def butterfly(x, s: tl.constexpr, N: tl.constexpr):
    a, b = tl.split(tl.permute(tl.reshape(x, [N // (2 * s), 2, s]), (0, 2, 1)))
    return tl.reshape(tl.permute(tl.join(a + b, a - b), (0, 2, 1)), [N])


@triton.jit
def hadamard(x, o, N: tl.constexpr, SCALE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * N
    v = tl.load(x + row + tl.arange(0, N)).to(tl.float32)
    for k in tl.static_range(log2i(N)):
        v = butterfly(v, 1 << k, N)
    tl.store(o + row + tl.arange(0, N), v * SCALE)


def case_hadamard():
    R = pick(16384, 3)
    for N, w in pick([(128, 1), (1024, 4), (4096, 8)], [(2, 1), (16, 1), (256, 2)]):
        hadamard[(R,)](rn(R, N), ze(R, N), N, N ** -0.5, num_warps=w)


@triton.jit
def life(x, y, H, W, BH: tl.constexpr, BW: tl.constexpr):
    r = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    c = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    s = tl.zeros((BH, BW), tl.uint8)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            if dy != 0 or dx != 0:
                s += tl.load(x + ((r + dy + H) % H) * W + (c + dx + W) % W)
    here = tl.load(x + (r % H) * W + c % W)
    alive = (s == 3) | ((here == 1) & (s == 2))
    tl.store(y + r * W + c, alive.to(tl.uint8), mask=(r < H) & (c < W))


def case_life():
    H, W = pick((4001, 4100), (40, 50))
    x = ri(0, 2, H, W, dtype=u8)
    for BH, BW, w in pick([(8, 128, 4), (32, 32, 4), (4, 512, 8)], [(16, 32, 4)]):
        life[(cd(H, BH), cd(W, BW))](x, ze(H, W, dtype=u8), H, W, BH, BW, num_warps=w)


@triton.jit
def least(a, b):
    return tl.minimum(a, b)


@triton.jit
def levenshtein(a, b, o, la, lb, B: tl.constexpr):
    p = tl.program_id(0)
    j = tl.arange(0, B)
    prev = j
    bv = tl.load(b + p * lb + j - 1, mask=(j >= 1) & (j <= lb), other=-1)
    for i in range(1, la + 1):
        ch = tl.load(a + p * la + i - 1)
        left = tl.gather(prev, tl.maximum(j - 1, 0), 0)
        cur = tl.minimum(prev + 1, tl.where(j == 0, i, left + (bv != ch).to(tl.int32)))
        prev = tl.associative_scan(cur - j, 0, least) + j
    tl.store(o + p, tl.sum(tl.where(j == lb, prev, 0)))


def case_levenshtein():
    P = pick(512, 3)
    for la, lb, B, w in pick([(200, 250, 256, 1), (500, 1000, 1024, 4)], [(10, 13, 16, 1),
                                                                       (40, 60, 64, 2)]):
        levenshtein[(P,)](ri(0, 4, P, la), ri(0, 4, P, lb), ze(P, dtype=i32), la, lb, B,
                          num_warps=w)


@triton.jit
def sinkhorn(x, o, N: tl.constexpr, IT):
    r = tl.arange(0, N)
    at = tl.program_id(0).to(tl.int64) * N * N + r[:, None] * N + r[None, :]
    c = tl.load(x + at)
    f = tl.zeros((N,), tl.float32)
    g = tl.zeros((N,), tl.float32)
    for _ in range(IT):
        t = g[None, :] - c
        m = tl.max(t, 1)
        f = -(m + tl.log(tl.sum(tl.exp(t - m[:, None]), 1)))
        t = f[:, None] - c
        m = tl.max(t, 0)
        g = -(m + tl.log(tl.sum(tl.exp(t - m[None, :]), 0)))
    tl.store(o + at, tl.exp(f[:, None] + g[None, :] - c))


def case_sinkhorn():
    P = pick(1024, 2)
    for N, w in pick([(32, 1), (64, 4), (128, 8)], [(16, 1), (32, 4)]):
        sinkhorn[(P,)](rn(P, N, N, dtype=f32).abs(), ze(P, N, N), N, 10, num_warps=w)


@triton.jit
def quaternion(a0, a1, a2, a3, b0, b1, b2, b3):
    return (a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3, a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
            a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1, a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0)


@triton.jit
def rotations(q, o, n, B: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, B)
    m = i < n
    q += tl.program_id(0) * n * 4
    o += tl.program_id(0) * n * 4
    w = tl.load(q + 4 * i, mask=m, other=1.0)
    x = tl.load(q + 4 * i + 1, mask=m, other=0.0)
    y = tl.load(q + 4 * i + 2, mask=m, other=0.0)
    z = tl.load(q + 4 * i + 3, mask=m, other=0.0)
    w, x, y, z = tl.associative_scan((w, x, y, z), 0, quaternion, reverse=REVERSE)
    tl.store(o + 4 * i, w, mask=m)
    tl.store(o + 4 * i + 1, x, mask=m)
    tl.store(o + 4 * i + 2, y, mask=m)
    tl.store(o + 4 * i + 3, z, mask=m)


def case_rotations():
    P, n = pick((2048, 1000), (2, 50))
    q = torch.nn.functional.normalize(rn(P, n, 4, dtype=f32), dim=-1)
    for B, back, w in pick([(1024, False, 4), (1024, True, 8)], [(64, True, 1), (64, False, 4)]):
        rotations[(P,)](q, ze(P, n, 4), n, B, back, num_warps=w)


@triton.jit
def swap2(a, b):
    return tl.minimum(a, b), tl.maximum(a, b)


@triton.jit
def median3(a, b, c):
    lo, hi = swap2(a, b)
    return tl.maximum(lo, tl.minimum(hi, c))


@triton.jit
def median_filter(x, y, H, W, BH: tl.constexpr, BW: tl.constexpr):
    r = tl.program_id(0) * BH + tl.arange(0, BH)[:, None]
    c = tl.program_id(1) * BW + tl.arange(0, BW)[None, :]
    rows = ()
    for dy in tl.static_range(-1, 2):
        rr = tl.minimum(tl.maximum(r + dy, 0), H - 1)
        a = tl.load(x + rr * W + tl.maximum(c - 1, 0), mask=c < W + 1, other=0)
        b = tl.load(x + rr * W + c, mask=c < W, other=0)
        d = tl.load(x + rr * W + tl.minimum(c + 1, W - 1))
        a, b = swap2(a, b)
        b, d = swap2(b, d)
        a, b = swap2(a, b)
        rows = rows + (a, b, d)
    lo = tl.maximum(tl.maximum(rows[0], rows[3]), rows[6])
    mid = median3(rows[1], rows[4], rows[7])
    hi = tl.minimum(tl.minimum(rows[2], rows[5]), rows[8])
    tl.store(y + r * W + c, median3(lo, mid, hi), mask=(r < H) & (c < W))


def case_median_filter():
    H, W = pick((3000, 4001), (20, 50))
    for dt in (u8, f32):
        x = ri(0, 256, H, W, dtype=u8).to(dt)
        for BH, BW, w in pick([(8, 128, 4), (2, 512, 4)], [(8, 32, 4)]):
            median_filter[(cd(H, BH), cd(W, BW))](x, ze(H, W, dtype=dt), H, W, BH, BW, num_warps=w)


@triton.jit
def thomas(a, b, c, d, x, tmp, n, M, B: tl.constexpr):
    # tridiagonal systems, one a lane: forward through memory, and back
    s = tl.program_id(0) * B + tl.arange(0, B)
    m = s < M
    cp = tl.zeros((B,), tl.float32)
    dp = tl.zeros((B,), tl.float32)
    for i in range(n):
        ai = tl.load(a + i * M + s, mask=m, other=0.0)
        den = tl.load(b + i * M + s, mask=m, other=1.0) - ai * cp
        cp = tl.load(c + i * M + s, mask=m, other=0.0) / den
        dp = (tl.load(d + i * M + s, mask=m, other=0.0) - ai * dp) / den
        tl.store(tmp + i * M + s, cp, mask=m)
        tl.store(x + i * M + s, dp, mask=m)
    v = dp
    for i in range(n - 2, -1, -1):
        v = tl.load(x + i * M + s, mask=m) - tl.load(tmp + i * M + s, mask=m) * v
        tl.store(x + i * M + s, v, mask=m)


def case_thomas():
    n, M = pick((256, 20000), (9, 70))
    a, c, d = (rn(n, M, dtype=f32) for _ in range(3))
    for B, w in pick([(128, 4), (32, 1)], [(32, 1), (64, 2)]):
        thomas[(cd(M, B),)](a, rn(n, M, dtype=f32).abs() + 4, c, d, ze(n, M), ze(n, M), n, M, B,
                            num_warps=w)


@triton.jit
def compact(x, o, count, n, T, B: tl.constexpr):
    # counts what is above T, and adds what each block keeps by its place in the block
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=float("-inf"))
    keep = v > T
    at = tl.cumsum(keep.to(tl.int32), 0)
    most = tl.max(at)
    if most == 0:
        return
    tl.atomic_add(count, most)
    tl.atomic_add(o + (at - 1) % 64, v, mask=keep)


def case_compact():
    n = pick(1 << 22, 1000)
    for B, w in pick([(1024, 4), (4096, 8)], [(128, 4)]):
        compact[(cd(n, B),)](ri(-8, 8, n).float(), ze(64), ze(1, dtype=i32), n, 3.0, B, num_warps=w)


@triton.jit
def one_digit(x, o, pos, n, SHIFT, B: tl.constexpr, R: tl.constexpr):
    row = tl.program_id(0) * n
    i = tl.arange(0, B)
    m = i < n
    k = tl.load(x + row + i, m, 0)
    d = tl.where(m, (k >> SHIFT) & (R - 1), R - 1)
    oh = (d[:, None] == tl.arange(0, R)[None, :]).to(tl.int32)
    rank = tl.cumsum(oh, 0) - oh
    cnt = tl.sum(oh, 0)
    base = tl.cumsum(cnt, 0) - cnt
    p = tl.sum(oh * (rank + base[None, :]), 1)
    tl.store(pos + row + i, p, m)
    tl.store(o + row + p, k, m & (p < n))


def case_one_digit():
    P = pick(1024, 2)
    for n, B, R, w in pick([(1000, 1024, 16, 4), (2048, 2048, 4, 8)], [(100, 128, 16, 4),
                                                                      (256, 256, 4, 2)]):
        one_digit[(P,)](ri(0, 1 << 20, P, n), ze(P, n, dtype=i32), ze(P, n, dtype=i32), n, 4, B, R,
                        num_warps=w)


@triton.jit
def collatz(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=1)
    c = tl.zeros((B,), tl.int32)
    while tl.max((v != 1).to(tl.int32), 0) > 0:
        c += (v != 1).to(tl.int32)
        v = tl.where(v == 1, v, tl.where(v % 2 == 1, 3 * v + 1, v // 2))
    tl.store(o + i, c, mask=i < n)


def case_collatz():
    n = pick(1 << 20, 300)
    for B, w in pick([(128, 4), (32, 1), (1024, 8)], [(128, 4)]):
        collatz[(cd(n, B),)](ri(1, 1 << 16, n, dtype=i64) if n > 999 else ri(1, 500, n, dtype=i64),
                             ze(n, dtype=i32), n, B, num_warps=w)


@triton.jit
def pick_pivot(v1, i1, v2, i2):
    first = (tl.abs(v1) > tl.abs(v2)) | ((tl.abs(v1) == tl.abs(v2)) & (i1 < i2))
    return tl.where(first, v1, v2), tl.where(first, i1, i2)


@triton.jit
def gauss_solve(a, b, x, N: tl.constexpr):
    # partial pivoting, the matrix in registers
    p = tl.program_id(0)
    r = tl.arange(0, N)
    A = tl.load(a + p * N * N + r[:, None] * N + r[None, :])
    B = tl.load(b + p * N + r)
    for k in range(N):
        col = tl.sum(tl.where(r[None, :] == k, A, 0.0), 1)
        piv, at = tl.reduce((tl.where(r >= k, col, 0.0), r), 0, pick_pivot)
        row = tl.sum(tl.where((r == at)[:, None], A, 0.0), 0)
        old = tl.sum(tl.where((r == k)[:, None], A, 0.0), 0)
        bk = tl.sum(tl.where(r == at, B, 0.0), 0)
        bo = tl.sum(tl.where(r == k, B, 0.0), 0)
        A = tl.where((r == at)[:, None], old[None, :], A)
        B = tl.where(r == at, bo, B)
        f = tl.where(r == k, 0.0, tl.sum(tl.where(r[None, :] == k, A, 0.0), 1) / piv)
        f = tl.where((r == k), 0.0, f)
        A = tl.where((r == k)[:, None], row[None, :], A - f[:, None] * row[None, :])
        B = tl.where(r == k, bk, B - f * bk)
    diag = tl.sum(tl.where(r[:, None] == r[None, :], A, 0.0), 1)
    tl.store(x + p * N + r, B / diag)


def case_gauss_solve():
    P = pick(4096, 2)
    for N, w in pick([(16, 1), (32, 1), (64, 4)], [(8, 1), (16, 1), (32, 4)]):
        a = rn(P, N, N, dtype=f32) + 3 * torch.eye(N, device=DEV)
        gauss_solve[(P,)](a, rn(P, N, dtype=f32), ze(P, N), N, num_warps=w)


@triton.jit
def tree(x, N: tl.constexpr, M: tl.constexpr):
    if N == 1:
        return tl.reshape(x, [M])
    else:
        a, b = tl.split(tl.permute(tl.reshape(x, [M, 2, N // 2]), (0, 2, 1)))
        return tree(a + b, N // 2, M)


@triton.jit
def pairwise_sum(x, o, rows, N: tl.constexpr, M: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)
    v = tl.load(x + r[:, None] * N + tl.arange(0, N)[None, :], mask=(r < rows)[:, None], other=0.0)
    tl.store(o + r, tree(v, N, M), mask=r < rows)


def case_pairwise_sum():
    rows = pick(100001, 11)
    for N, M, w in pick([(32, 32, 4), (256, 8, 4)], [(8, 4, 1), (32, 2, 4)]):
        pairwise_sum[(cd(rows, M),)](rn(rows, N, dtype=f32), ze(rows), rows, N, M, num_warps=w)


@triton.jit
def integral(x, o, H, W, B: tl.constexpr):
    # sums of all above and left, columns carried from row to row
    c = tl.program_id(0) * B + tl.arange(0, B)
    up = tl.zeros((B,), tl.float32)
    for r in range(H):
        v = tl.load(x + r * W + c, mask=c < W, other=0)
        up += v.to(tl.float32)
        tl.store(o + r * W + c, up, mask=c < W)


@triton.jit
def integral_rows(o, W, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    carry = tl.zeros((1,), tl.float32)
    for s in range(0, W, B):
        c = s + tl.arange(0, B)
        v = tl.load(o + r * W + c, mask=c < W, other=0.0)
        tl.store(o + r * W + c, tl.cumsum(v, 0) + carry, mask=c < W)
        carry += tl.sum(v)


def case_integral():
    H, W = pick((2000, 3001), (20, 70))
    x = ri(0, 4, H, W, dtype=u8)
    for B, w in pick([(128, 4), (1024, 4)], [(32, 1)]):
        o = ze(H, W)
        integral[(cd(W, B),)](x, o, H, W, B, num_warps=w)
        integral_rows[(H,)](o, W, B, num_warps=w)


@triton.jit
def xorshift(s, o, n, ROUNDS: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x = tl.load(s + i, mask=m, other=1).to(tl.uint32, bitcast=True)
    x = tl.where(x == 0, 0x9E3779B9, x)
    inside = tl.zeros((B,), tl.int32)
    for _ in range(ROUNDS):
        x ^= x << 13
        x ^= x >> 17
        x ^= x << 5
        a = ((x & 0xFFFF) * 2).to(tl.int64) - 0xFFFF
        b = ((x >> 16) * 2).to(tl.int64) - 0xFFFF
        inside += (a * a + b * b <= 4294836225).to(tl.int32)
    tl.store(s + i, x.to(tl.int32, bitcast=True), mask=m)
    tl.atomic_add(o, tl.sum(tl.where(m, inside, 0)))


def case_xorshift():
    n = pick(1 << 20, 300)
    for B, w in pick([(256, 4), (1024, 8)], [(128, 4)]):
        xorshift[(cd(n, B),)](ri(1, 1 << 30, n), ze(1, dtype=i32), n, pick(64, 5), B, num_warps=w)


@triton.jit
def polygon_area(x, y, off, o, B: tl.constexpr):
    # ragged polygons: each next corner wraps within its polygon
    p = tl.program_id(0)
    lo, hi = tl.load(off + p), tl.load(off + p + 1)
    if hi - lo < 3:
        tl.store(o + p, 0.0)
        return
    s = 0.0
    k = lo
    while k < hi:
        i = k + tl.arange(0, B)
        j = tl.where(i + 1 < hi, i + 1, lo)
        m = i < hi
        a, b = tl.load(x + i, m, 0.0), tl.load(y + i, m, 0.0)
        c, d = tl.load(x + j, m, 0.0), tl.load(y + j, m, 0.0)
        s += tl.sum(a * d - b * c)
        k += B
    tl.store(o + p, abs_half(s))


@triton.jit
def abs_half(s):
    return tl.where(s < 0, -s, s) * 0.5


def case_polygon_area():
    P = pick(20000, 9)
    n = torch.randint(0, 90, (P,))
    off = torch.cat([torch.zeros(1), n.cumsum(0)]).to(torch.int32).to(DEV)
    N = int(off[-1]) + 1
    for B, w in pick([(32, 1), (128, 4)], [(16, 1), (32, 1)]):
        polygon_area[(P,)](rn(N, dtype=f32), rn(N, dtype=f32), off, ze(P), B, num_warps=w)


if __name__ == "__main__":
    run(globals())
