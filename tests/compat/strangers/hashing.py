"""Hashes, bit tricks, tables of text, and dynamic programming as strangers write them.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, pick, ri, rn, run, ze

i16, i32, i64, u8 = torch.int16, torch.int32, torch.int64, torch.uint8


@triton.jit
def fmix32(h):
    h ^= h >> 16
    h *= 0x85EBCA6B
    h ^= h >> 13
    h *= 0xC2B2AE35
    h ^= h >> 16
    return h


@triton.jit
def rotl(x, r: tl.constexpr):
    return (x << r) | (x >> (32 - r))


@triton.jit
def murmur3(words, lens, out, n, W, seed, B: tl.constexpr):
    # one key a lane, its words a column
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    length = tl.load(lens + i, mask=m, other=0)
    h = tl.zeros((B,), tl.uint32) + seed.to(tl.uint32)
    for w in range(W):
        k = tl.load(words + w * n + i, mask=m & (w < length), other=0).to(tl.uint32, bitcast=True)
        k *= 0xCC9E2D51
        k = rotl(k, 15)
        k *= 0x1B873593
        g = rotl(h ^ k, 13) * 5 + 0xE6546B64
        h = tl.where(w < length, g, h)
    h = fmix32(h ^ (length * 4).to(tl.uint32))
    tl.store(out + i, h.to(tl.int32, bitcast=True), mask=m)


def case_murmur():
    n, W = pick((1 << 20, 8), (300, 3))
    for B, w in pick([(256, 4), (1024, 8)], [(64, 1)]):
        murmur3[(cd(n, B),)](ri(-(1 << 31), (1 << 31) - 1, W, n), ri(0, W + 1, n),
                             ze(n, dtype=i32), n, W, 42, B, num_warps=w)


@triton.jit
def bloom(keys, bits, found, n, LOG: tl.constexpr, K: tl.constexpr, INSERT: tl.constexpr,
          B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    x = tl.load(keys + i, mask=m, other=0).to(tl.uint32, bitcast=True)
    h1 = fmix32(x)
    h2 = fmix32(x ^ 0x9E3779B9) | 1
    all_in = m
    for k in tl.static_range(K):
        at = (h1 + k * h2) & ((1 << LOG) - 1)
        bit = (tl.full((B,), 1, tl.int32) << (at & 31).to(tl.int32))
        if INSERT:
            tl.atomic_or(bits + (at >> 5), bit, mask=m)
        else:
            all_in &= (tl.load(bits + (at >> 5), mask=m, other=0) & bit) != 0
    if not INSERT:
        tl.store(found + i, all_in, mask=m)


def case_bloom():
    n, LOG = pick((1 << 20, 24), (200, 12))
    keys, other = ri(0, 1 << 30, n), ri(0, 1 << 30, n)
    other[::3] = keys[::3]
    bits = ze(1 << (LOG - 5), dtype=i32)
    for B, w in pick([(256, 4), (1024, 4)], [(64, 1)]):
        for ins, q in ((True, keys), (False, other)):
            bloom[(cd(n, B),)](q, bits, ze(n, dtype=torch.bool), n, LOG, 4, ins, B, num_warps=w)


@triton.jit
def popc(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return (x * 0x01010101) >> 24


@triton.jit
def hamming(a, b, o, M, N, W: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # distances between packed binary codes of W words
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.int32)
    for w in range(W):
        x = tl.load(a + i * W + w, mask=i < M, other=0)
        y = tl.load(b + j * W + w, mask=j < N, other=0)
        acc += popc((x[:, None] ^ y[None, :]).to(tl.uint32, bitcast=True)).to(tl.int32)
    tl.store(o + i[:, None] * N + j[None, :], acc.to(tl.int16),
             mask=(i < M)[:, None] & (j < N)[None, :])


def case_hamming():
    M, N, W = pick((4096, 4096, 8), (40, 50, 3))
    for BM, BN, w in pick([(64, 64, 4), (128, 32, 4), (32, 128, 8)], [(16, 32, 1)]):
        hamming[(cd(M, BM), cd(N, BN))](ri(-(1 << 31), (1 << 31) - 1, M, W),
                                        ri(-(1 << 31), (1 << 31) - 1, N, W),
                                        ze(M, N, dtype=i16), M, N, W, BM, BN, num_warps=w)


@triton.jit
def spread3(v):
    # 21 bits, two zeros after each
    x = v.to(tl.int64) & 0x1FFFFF
    x = (x | (x << 32)) & 0x1F00000000FFFF
    x = (x | (x << 16)) & 0x1F0000FF0000FF
    x = (x | (x << 8)) & 0x100F00F00F00F00F
    x = (x | (x << 4)) & 0x10C30C30C30C30C3
    return (x | (x << 2)) & 0x1249249249249249


@triton.jit
def morton(p, keys, n, scale, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    q = tl.load(p + 3 * i[:, None] + tl.arange(0, 4)[None, :],
                mask=m[:, None] & (tl.arange(0, 4) < 3)[None, :], other=0.0)
    c = tl.clamp(q * scale, 0.0, 2097151.0).to(tl.int32)
    s = spread3(c) << tl.arange(0, 4)[None, :].to(tl.int64)
    s = tl.where((tl.arange(0, 4) < 3)[None, :], s, 0)
    tl.store(keys + i, tl.xor_sum(s, axis=1), mask=m)


def case_morton():
    n = pick(1 << 20, 200)
    for B, w in pick([(256, 4), (512, 4)], [(32, 1)]):
        morton[(cd(n, B),)](rn(n, 3, dtype=f32).abs(), ze(n, dtype=i64), n, 1000.0, B,
                            num_warps=w)


@triton.jit
def crc32(data, table, lens, out, n, L, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    length = tl.load(lens + i, mask=m, other=0)
    c = tl.full((B,), 0xFFFFFFFF, tl.uint32)
    top = tl.max(length, axis=0)
    for k in range(0, top):
        b = tl.load(data + i * L + k, mask=m & (k < length), other=0)
        t = tl.load(table + ((c ^ b) & 0xFF)).to(tl.uint32, bitcast=True)
        c = tl.where(k < length, t ^ (c >> 8), c)
    tl.store(out + i, (c ^ 0xFFFFFFFF).to(tl.int64), mask=m)


def case_crc():
    n, L = pick((65536, 64), (100, 9))
    t = []
    for k in range(256):
        for _ in range(8):
            k = (k >> 1) ^ (0xEDB88320 if k & 1 else 0)
        t.append(k - (1 << 32) if k >> 31 else k)
    for B, w in pick([(128, 4), (256, 4)], [(32, 1)]):
        crc32[(cd(n, B),)](ri(0, 256, n, L, dtype=u8), torch.tensor(t, dtype=i32, device=DEV),
                           ri(0, L + 1, n), ze(n, dtype=i64), n, L, B, num_warps=w)


@triton.jit
def base64(src, alphabet, dst, n, B: tl.constexpr):
    # groups of three bytes to four letters
    g = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(src + 3 * g, mask=3 * g < n, other=0).to(tl.int32)
    b = tl.load(src + 3 * g + 1, mask=3 * g + 1 < n, other=0).to(tl.int32)
    c = tl.load(src + 3 * g + 2, mask=3 * g + 2 < n, other=0).to(tl.int32)
    bits = (a << 16) | (b << 8) | c
    k = tl.arange(0, 4)
    letter = (bits[:, None] >> (18 - 6 * k)[None, :]) & 63
    e = tl.load(alphabet + letter)
    e = tl.where(k[None, :] <= n - 3 * g[:, None], e, 61)
    tl.store(dst + 4 * g[:, None] + k[None, :], e, mask=(3 * g < n)[:, None])


def case_base64():
    n = pick(3 * (1 << 22) + 1, 1000)
    letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    abc = torch.tensor(list(letters), dtype=u8, device=DEV)
    for B, w in pick([(256, 4), (512, 4)], [(64, 1)]):
        base64[(cd(cd(n, 3), B),)](ri(0, 256, n, dtype=u8), abc, ze(cd(n, 3) * 4, dtype=u8), n, B,
                                   num_warps=w)


@triton.jit
def utf8_starts(text, counts, n, B: tl.constexpr):
    # letters, lines and words of a block of bytes, in one pass
    i = tl.program_id(0) * B + tl.arange(0, B)
    c = tl.load(text + i, mask=i < n, other=128)
    before = tl.load(text + i - 1, mask=(i > 0) & (i < n), other=32)
    letter = (c & 0xC0) != 0x80
    blank = (c == 32) | ((c >= 9) & (c <= 13))
    gap = (before == 32) | ((before >= 9) & (before <= 13))
    p = counts + tl.program_id(0) * 3
    tl.store(p, tl.sum(letter.to(tl.int32)))
    tl.store(p + 1, tl.sum((c == 10).to(tl.int32)))
    tl.store(p + 2, tl.sum((~blank & gap & (i < n)).to(tl.int32)))


def case_utf8():
    n = pick(1 << 24, 1000)
    for B, w in pick([(4096, 4), (16384, 8)], [(256, 2)]):
        utf8_starts[(cd(n, B),)](ri(0, 256, n, dtype=u8), ze(cd(n, B), 3, dtype=i32), n, B,
                                 num_warps=w)


@triton.jit
def probe(left, right, keys, values, rank, n, LOG: tl.constexpr, B: tl.constexpr):
    # merges of byte pair encoding: open addressing, until every lane has an answer
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    a = tl.load(left + i, mask=m, other=0).to(tl.int64)
    b = tl.load(right + i, mask=m, other=0).to(tl.int64)
    key = (a << 32) | b
    h = key.to(tl.uint64) * 0x9E3779B97F4A7C15
    at = (h >> (64 - LOG)).to(tl.int32)
    got = tl.full((B,), -1, tl.int32)
    todo = m
    while tl.sum(todo.to(tl.int32)) > 0:
        k = tl.load(keys + at, mask=todo, other=-1)
        hit = todo & (k == key)
        got = tl.where(hit, tl.load(values + at, mask=hit, other=0), got)
        todo = todo & (k != key) & (k != -1)
        at = (at + 1) & ((1 << LOG) - 1)
    tl.store(rank + i, got, mask=m)


def case_probe():
    n, LOG, V = pick((1 << 20, 17, 50000), (200, 8, 40))
    keys = torch.full((1 << LOG,), -1, dtype=i64)
    pairs = torch.randint(0, V, ((1 << LOG) // 2, 2))
    for a, b in pairs.tolist():
        key = (a << 32) | b
        at = (key * 0x9E3779B97F4A7C15 & (1 << 64) - 1) >> (64 - LOG)
        while keys[at] != -1:
            at = (at + 1) & ((1 << LOG) - 1)
        keys[at] = key
    take = torch.randint(0, len(pairs), (n,))
    l, r = pairs[take, 0].to(i32), pairs[take, 1].to(i32) + torch.randint(0, 2, (n,), dtype=i32)
    for B, w in pick([(256, 4), (128, 4)], [(32, 1)]):
        probe[(cd(n, B),)](l.to(DEV), r.to(DEV), keys.to(DEV), ri(0, 1 << 20, 1 << LOG),
                           ze(n, dtype=i32), n, LOG, B, num_warps=w)


@triton.jit
def minhash(shingles, offset, a, b, sig, H: tl.constexpr, B: tl.constexpr):
    doc = tl.program_id(0)
    lo, hi = tl.load(offset + doc), tl.load(offset + doc + 1)
    h = tl.arange(0, H)
    ma, mb = tl.load(a + h), tl.load(b + h)
    best = tl.full((H,), 0x7FFFFFFF, tl.int64)
    for s in range(lo, hi, B):
        k = s + tl.arange(0, B)
        x = tl.load(shingles + k, mask=k < hi, other=0)
        v = (x[:, None] * ma[None, :] + mb[None, :]) % 2147483647
        best = tl.minimum(best, tl.min(tl.where((k < hi)[:, None], v, 0x7FFFFFFF), 0))
    tl.store(sig + doc * H + h, best.to(tl.int32))


def case_minhash():
    D, most = pick((4096, 300), (6, 40))
    count = torch.randint(1, most, (D + 1,))
    count[0] = 0
    off = count.cumsum(0)
    for H, B, w in pick([(128, 32, 4), (64, 64, 4)], [(32, 16, 1)]):
        minhash[(D,)](ri(0, 1 << 31, int(off[-1]), dtype=i64), off.to(DEV),
                      ri(1, 1 << 30, H, dtype=i64), ri(0, 1 << 30, H, dtype=i64),
                      ze(D, H, dtype=i32), H, B, num_warps=w)


@triton.jit
def digit_counts(x, counts, n, shift, RADIX: tl.constexpr, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    d = (tl.load(x + i, mask=i < n, other=0) >> shift) & (RADIX - 1)
    h = tl.histogram(d, RADIX, mask=i < n)
    tl.store(counts + tl.arange(0, RADIX) * tl.num_programs(0) + tl.program_id(0), h)


def case_digits():
    n = pick(1 << 24, 1000)
    x = ri(0, 1 << 30, n)
    for shift, R, B, w in pick([(0, 256, 4096, 8), (8, 16, 2048, 4)],
                               [(0, 16, 256, 2), (4, 64, 512, 4)]):
        digit_counts[(cd(n, B),)](x, ze(R, cd(n, B), dtype=i32), n, shift, R, B, num_warps=w)


@triton.jit
def zigzag_varint(x, lengths, total, n, B: tl.constexpr):
    # how many bytes each number takes, and where it goes within the block
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    d = v - tl.load(x + i - 1, mask=(i > 0) & (i < n), other=0)
    z = ((d << 1) ^ (d >> 31)).to(tl.uint32, bitcast=True)
    k = 1 + (z >= 1 << 7).to(tl.int32) + (z >= 1 << 14) + (z >= 1 << 21) + (z >= 1 << 28)
    k = tl.where(i < n, k, 0)
    tl.store(lengths + i, tl.cumsum(k, 0) - k, mask=i < n)
    tl.store(total + tl.program_id(0), tl.sum(k, 0))


def case_varint():
    n = pick(1 << 23, 1000)
    x = ri(-(1 << 20), 1 << 20, n)
    for B, w in pick([(1024, 4), (4096, 8)], [(128, 1)]):
        zigzag_varint[(cd(n, B),)](x, ze(n, dtype=i32), ze(cd(n, B), dtype=i32), n, B, num_warps=w)


@triton.jit
def edit_wave(a, b, o, diag, n, m, B: tl.constexpr):
    # edit distance by antidiagonals, three of them in memory: lane i is row i
    p = tl.program_id(0)
    i = tl.arange(0, B)
    d = diag + p * 3 * (B + 1)
    ca = tl.load(a + p * n + i - 1, mask=(i > 0) & (i <= n), other=-1)
    for s in range(0, n + m + 1):
        j = s - i
        ok = (j >= 0) & (j <= m) & (i <= n)
        cb = tl.load(b + p * m + j - 1, mask=ok & (j > 0), other=-2)
        one = d + (s + 2) % 3 * (B + 1)
        two = d + (s + 1) % 3 * (B + 1)
        up = tl.load(one + i, mask=ok & (i > 0), other=1 << 20)
        left = tl.load(one + i + 1, mask=ok & (j > 0), other=1 << 20)
        both = tl.load(two + i, mask=ok & (i > 0) & (j > 0), other=1 << 20)
        v = tl.minimum(tl.minimum(up, left) + 1, both + (ca != cb).to(tl.int32))
        v = tl.where(i == 0, j, tl.where(j == 0, i, v))
        tl.store(d + s % 3 * (B + 1) + i + 1, v, mask=ok)
        tl.debug_barrier()
    tl.store(o + p, tl.load(d + (n + m) % 3 * (B + 1) + n + 1))


def case_edit():
    P = pick(256, 3)
    for n, m, B, w in pick([(200, 250, 256, 4), (100, 90, 128, 1)], [(10, 13, 16, 1)]):
        edit_wave[(P,)](ri(0, 4, P, n), ri(0, 4, P, m), ze(P, dtype=i32),
                        torch.full_like(ri(0, 2, P, 3, B + 1), 1 << 20), n, m, B, num_warps=w)


@triton.jit
def viterbi(emit, trans, back, last, T, S: tl.constexpr):
    # the best path through S states; ties go to the lower one
    p = tl.program_id(0)
    s = tl.arange(0, S)
    tr = tl.load(trans + s[:, None] * S + s[None, :])
    score = tl.load(emit + p * T * S + s)
    for t in range(1, T):
        best, at = tl.max(score[:, None] + tr, 0, return_indices=True,
                          return_indices_tie_break_left=True)
        tl.store(back + (p * T + t) * S + s, at.to(tl.uint8))
        score = best + tl.load(emit + (p * T + t) * S + s)
    tl.store(last + p, tl.argmax(score, 0))


def case_viterbi():
    P, T = pick((2048, 200), (3, 17))
    for S, w in pick([(32, 1), (64, 4), (128, 8)], [(8, 1), (16, 2)]):
        e = torch.floor(rn(P, T, S, dtype=f32) * 4)
        viterbi[(P,)](e, torch.floor(rn(S, S, dtype=f32) * 4), ze(P, T, S, dtype=u8),
                      ze(P, dtype=i32), T, S, num_warps=w)


@triton.jit
def dtw(a, b, o, n, m, B: tl.constexpr):
    # time warping by rows: a row is a scan of (min, plus)
    p = tl.program_id(0)
    j = tl.arange(0, B)
    y = tl.load(b + p * m + j, mask=j < m, other=0.0)
    x = tl.load(a + p * n)
    c = tl.where(j < m, tl.abs(x - y), 0.0)
    row = tl.where(j < m, tl.cumsum(c, 0), 1e30)
    for i in range(1, n):
        c = tl.where(j < m, tl.abs(tl.load(a + p * n + i) - y), 0.0)
        left = tl.gather(row, tl.maximum(j - 1, 0), 0)
        open = tl.where(j == 0, row, tl.minimum(row, left))
        s = tl.cumsum(c, 0)
        row = s + tl.associative_scan(open - (s - c), 0, lesser)
    tl.store(o + p, tl.sum(tl.where(j == m - 1, row, 0.0)))


@triton.jit
def lesser(a, b):
    return tl.where(a < b, a, b)


def case_dtw():
    P = pick(512, 3)
    for n, m, B, w in pick([(100, 250, 256, 1), (200, 1000, 1024, 4)], [(9, 13, 16, 1),
                                                                     (20, 60, 64, 2)]):
        dtw[(P,)](rn(P, n, dtype=f32), rn(P, m, dtype=f32), ze(P), n, m, B, num_warps=w)


if __name__ == "__main__":
    run(globals())
