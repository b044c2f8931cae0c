"""Quantized products as strangers write them: int8 by rows and columns, weights of 4 and 8 bits, fp8
with one scale and in blocks, microscaling, tables of 16 values, caches.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import f32, fp16, half, pick, ri, rn, ze, cd, DEV, SMALL, run

fp8 = torch.float8_e4m3fn


@triton.jit
def w8a8(a, b, sa, sb, bias, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
         BK: tl.constexpr, GROUP: tl.constexpr):
    pid = tl.program_id(0)
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    g = pid // (GROUP * nn)
    size = tl.minimum(nm - g * GROUP, GROUP)
    pm = g * GROUP + (pid % size)
    pn = (pid % (GROUP * nn)) // size
    ap = tl.make_block_ptr(a, (M, K), (K, 1), (pm * BM, 0), (BM, BK), (1, 0))
    bp = tl.make_block_ptr(b, (K, N), (1, K), (0, pn * BN), (BK, BN), (0, 1))
    acc = tl.zeros((BM, BN), tl.int32)
    for k in range(0, K, BK):
        x = tl.load(ap, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(bp, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(x, y, out_dtype=tl.int32)
        ap = tl.advance(ap, (0, BK))
        bp = tl.advance(bp, (BK, 0))
    rm = pm * BM + tl.arange(0, BM)
    rc = pn * BN + tl.arange(0, BN)
    r = acc.to(tl.float32) * tl.load(sa + rm, mask=rm < M, other=0.0)[:, None]
    r = r * tl.load(sb + rc, mask=rc < N, other=0.0)[None, :]
    r += tl.load(bias + rc, mask=rc < N, other=0.0)[None, :]
    tl.store(c + rm[:, None] * N + rc[None, :], r.to(c.dtype.element_ty),
             mask=(rm < M)[:, None] & (rc < N)[None, :])


def w8a8_case(M):
    N, K = pick((4096, 3072), (50, 64))
    a, b = (ri(-127, 128, n, K, dtype=torch.int8) for n in (M, N))
    sa, sb = torch.rand(M, device=DEV), torch.rand(N, device=DEV)
    for BM, BN, BK, w, s in pick([(128, 128, 64, 8, 3), (64, 128, 128, 4, 4),
                                  (32, 64, 64, 2, 5)], [(16, 32, 32, 2, 2)]):
        w8a8[(cd(M, BM) * cd(N, BN),)](a, b, sa, sb, rn(N), ze(M, N, dtype=half), M, N, K,
                                       BM=BM, BN=BN, BK=BK, GROUP=8, num_warps=w,
                                       num_stages=s)


def case_w8a8():
    w8a8_case(pick(4000, 40))


def case_w8a8_few():
    w8a8_case(pick(128, 20))


@triton.jit
def weight8(a, b, s, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # weights of 8 bits, N x K, converted between the load and the product
    rm = tl.program_id(1) * BM + tl.arange(0, BM)
    rc = tl.program_id(0) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + k + rk[None, :], mask=(rm < M)[:, None], other=0.0)
        y = tl.load(b + rc[None, :] * K + k + rk[:, None], mask=(rc < N)[None, :], other=0)
        acc = tl.dot(x, y.to(x.dtype), acc)
    acc = acc * tl.load(s + rc, mask=rc < N, other=0.0)[None, :]
    tl.store(c + rm[:, None] * N + rc[None, :], acc.to(c.dtype.element_ty),
             mask=(rm < M)[:, None] & (rc < N)[None, :])


def case_weight8():
    for M, BM in pick(((16, 16), (1000, 128)), ((20, 16),)):
        N, K = pick((4096, 4096), (50, 64))
        a, b = rn(M, K, dtype=half), ri(-127, 128, N, K, dtype=torch.int8)
        s = torch.rand(N, device=DEV) * 0.01
        for BN, BK, w, st in pick([(64, 128, 4, 4), (128, 64, 8, 3)], [(16, 32, 1, 2)]):
            weight8[(cd(N, BN), cd(M, BM))](a, b, s, ze(M, N, dtype=half), M, N, K, BM=BM,
                                            BN=BN, BK=BK, num_warps=w, num_stages=st)


@triton.jit
def awq_dequant(q, s, z, out, K, N, GS, BK: tl.constexpr, BN: tl.constexpr):
    # eight values an int32 along N in AWQ's order, zero points packed alike
    rk = tl.program_id(0) * BK + tl.arange(0, BK)
    rp = tl.program_id(1) * BN + tl.arange(0, BN)
    m = (rk < K)[:, None] & (rp < N // 8)[None, :]
    v = tl.load(q + rk[:, None] * (N // 8) + rp[None, :], mask=m, other=0)
    v = tl.interleave(v, v)
    v = tl.interleave(v, v)
    v = tl.interleave(v, v)
    rc = tl.program_id(1) * BN * 8 + tl.arange(0, BN * 8)
    order = ((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None]).reshape(8)
    shift = tl.broadcast_to((order * 4)[None, :], (BN, 8)).reshape(BN * 8)
    g = rk // GS
    mz = (rk < K)[:, None] & (rc < N)[None, :]
    zv = tl.load(z + g[:, None] * (N // 8) + rc[None, :] // 8, mask=mz, other=0)
    sv = tl.load(s + g[:, None] * N + rc[None, :], mask=mz, other=0.0)
    w = ((v >> shift[None, :]) & 15) - ((zv >> shift[None, :]) & 15)
    tl.store(out + rk[:, None] * N + rc[None, :], w.to(tl.float16) * sv, mask=mz)


def case_awq_dequant():
    K, N, GS = pick((4096, 11008, 128), (40, 64, 16))
    q = ri(-(2**31), 2**31 - 1, K, N // 8)
    z = ri(-(2**31), 2**31 - 1, cd(K, GS), N // 8)
    s = rn(cd(K, GS), N, dtype=fp16, scale=0.01)
    for BK, BN, w in pick([(32, 32, 4), (16, 64, 8), (64, 16, 2)], [(16, 4, 1)]):
        awq_dequant[(cd(K, BK), cd(N // 8, BN))](q, s, z, ze(K, N, dtype=fp16), K, N, GS,
                                                 BK=BK, BN=BN, num_warps=w)


@triton.jit
def gemv4(x, q, s, y, N, K, GS: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # two values a byte along K; halves of x are multiplied apart
    rc = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for k in range(0, K // 2, BK):
        rk = k + tl.arange(0, BK)
        m = (rc < N)[:, None] & (rk < K // 2)[None, :]
        v = tl.load(q + rc[:, None] * (K // 2) + rk[None, :], mask=m, other=0,
                    eviction_policy="evict_first").to(tl.int32)
        lo = (v & 15) - 8
        hi = (v >> 4) - 8
        x0 = tl.load(x + 2 * rk, mask=rk < K // 2, other=0.0).to(tl.float32)
        x1 = tl.load(x + 2 * rk + 1, mask=rk < K // 2, other=0.0).to(tl.float32)
        sv = tl.load(s + rc[:, None] * (K // GS) + (2 * rk // GS)[None, :], mask=m, other=0.0)
        acc += (lo.to(tl.float32) * x0[None, :] + hi.to(tl.float32) * x1[None, :]) * sv
    tl.store(y + rc, tl.sum(acc, 1), mask=rc < N)


def case_gemv4():
    N, K, GS = pick((14336, 4096, 128), (50, 64, 16))
    x, q = rn(K, dtype=half), ri(0, 256, N, K // 2, dtype=torch.uint8)
    s = rn(N, K // GS, dtype=fp16)
    for BN, BK, w in pick([(8, 256, 4), (16, 128, 4), (4, 512, 2)], [(4, 16, 1)]):
        gemv4[(cd(N, BN),)](x, q, s, ze(N), N, K, GS, BN=BN, BK=BK, num_warps=w)


@triton.jit
def fp8_blocks(a, b, sa, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
               BK: tl.constexpr):
    # a scale for 1 x 128 of a and 128 x 128 of b
    pid = tl.program_id(0)
    nn = tl.cdiv(N, BN)
    rm = pid // nn * BM + tl.arange(0, BM)
    rc = pid % nn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    ap = a + (rm % M)[:, None] * K + rk[None, :]
    bp = b + (rc % N)[None, :] * K + rk[:, None]
    kb = tl.cdiv(K, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(kb):
        x = tl.load(ap, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(bp, mask=rk[:, None] < K - k * BK, other=0.0)
        s = tl.load(sa + (rm % M) * kb + k)
        t = tl.load(sb + ((rc % N) // BK) * kb + k)
        acc += tl.dot(x, y) * s[:, None] * t[None, :]
        ap += BK
        bp += BK
    tl.store(c + rm[:, None] * N + rc[None, :], acc.to(c.dtype.element_ty),
             mask=(rm < M)[:, None] & (rc < N)[None, :])


def fp8_blocks_case(M):
    N, K = pick((4096, 4096), (64, 64))
    BK = pick(128, 32)
    a, b = rn(M, K, dtype=f32).to(fp8), rn(N, K, dtype=f32).to(fp8)
    sa, sb = torch.rand(M, cd(K, BK), device=DEV), torch.rand(cd(N, BK), cd(K, BK),
                                                             device=DEV)
    for BM, BN, w, s in pick([(64, 128, 4, 3), (128, 128, 8, 3), (16, 128, 4, 4)],
                             [(16, 32, 1, 2)]):
        fp8_blocks[(cd(M, BM) * cd(N, BN),)](a, b, sa, sb, ze(M, N, dtype=half), M, N, K,
                                             BM=BM, BN=BN, BK=BK, num_warps=w,
                                             num_stages=s)


def case_fp8_blocks():
    fp8_blocks_case(pick(4096, 40))


def case_fp8_blocks_few():
    fp8_blocks_case(pick(64, 20))


@triton.jit
def fp8_tensor(a, b, scale, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
               BK: tl.constexpr, PROMOTE: tl.constexpr):
    # one scale, descriptors, sums promoted now and then
    pm = tl.program_id(1)
    pn = tl.program_id(0)
    da = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    db = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK):
        acc = tl.dot(da.load([pm * BM, k]), db.load([pn * BN, k]).T, acc,
                     max_num_imprecise_acc=PROMOTE)
    dc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    dc.store([pm * BM, pn * BN], (acc * tl.load(scale)).to(c.dtype.element_ty))


def case_fp8_tensor():
    triton.set_allocator(lambda n, align, stream: torch.empty(n, device=DEV,
                                                              dtype=torch.int8))
    M, N, K = pick((4096, 4096, 2048), (32, 64, 64))
    a, b = rn(M, K, dtype=f32).to(fp8), rn(N, K, dtype=f32).to(fp8)
    for BM, BN, BK, P, w, s in pick([(128, 128, 128, 128, 8, 3), (64, 128, 128, 0, 4, 4)],
                                    [(16, 32, 32, 0, 1, 2)]):
        fp8_tensor[(cd(N, BN), cd(M, BM))](a, b, ze(1) + 0.5, ze(M, N, dtype=half), M, N, K,
                                           BM=BM, BN=BN, BK=BK, PROMOTE=P, num_warps=w,
                                           num_stages=s)


@triton.jit
def table4(q, absmax, code, out, n, BS: tl.constexpr, BLOCK: tl.constexpr):
    # NF4: two values a byte, a table of 16, a scale for each BS values
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(q + o, mask=m, other=0).to(tl.int32)
    hi = tl.load(code + (v >> 4))
    lo = tl.load(code + (v & 15))
    s = tl.load(absmax + 2 * o // BS, mask=m, other=0.0)
    w = tl.interleave(hi * s, lo * s)
    p = tl.program_id(0) * BLOCK * 2 + tl.arange(0, 2 * BLOCK)
    tl.store(out + p, w.to(out.dtype.element_ty), mask=p < 2 * n)


def case_nf4():
    n = pick(1 << 25, 1024)
    q, code = ri(0, 256, n, dtype=torch.uint8), torch.linspace(-1, 1, 16, device=DEV)
    s = torch.rand(2 * n // 64, device=DEV)
    for B, w in ((512, 4), (1024, 8)):
        table4[(cd(n, B),)](q, s, code, ze(2 * n, dtype=half), n, 64, BLOCK=B, num_warps=w)


@triton.jit
def quant_tokens(x, q, s, N, MOST: tl.constexpr, BLOCK: tl.constexpr):
    # a row twice: its largest value, then values of fp8
    row = tl.program_id(0).to(tl.int64)
    top = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, N, BLOCK):
        o = k + tl.arange(0, BLOCK)
        v = tl.load(x + row * N + o, mask=o < N, other=0.0).to(tl.float32)
        top = tl.maximum(top, tl.abs(v))
    sc = tl.maximum(tl.max(top, 0) / MOST, 1e-12)
    tl.store(s + row, sc)
    for k in range(0, N, BLOCK):
        o = k + tl.arange(0, BLOCK)
        v = tl.load(x + row * N + o, mask=o < N, other=0.0).to(tl.float32) / sc
        v = tl.minimum(tl.maximum(v, -MOST), MOST)
        tl.store(q + row * N + o, v.to(q.dtype.element_ty), mask=o < N)


def case_quant_fp8():
    R, N = pick((8192, 7168), (5, 100))
    x = rn(R, N)
    for B, w in pick([(1024, 4), (2048, 8), (8192, 16)], [(64, 1)]):
        # Triton's interpreter loses the carry where it rounds to fp8
        quant_tokens[(R,)](x, ze(R, N, dtype=pick(fp8, half)), ze(R), N, 448.0, BLOCK=B,
                           num_warps=w)


@triton.jit
def micro(a, sa, b, sb, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # microscaling: fp8 with a power of two for each 32 along K
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    rs = tl.arange(0, BK // 32)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + rm[:, None] * K + k + rk[None, :])
        y = tl.load(b + rc[None, :] * K + k + rk[:, None])
        u = tl.load(sa + rm[:, None] * (K // 32) + k // 32 + rs[None, :])
        v = tl.load(sb + rc[:, None] * (K // 32) + k // 32 + rs[None, :])
        acc = tl.dot_scaled(x, u, "e4m3", y, v, "e4m3", acc)
    tl.store(c + rm[:, None] * N + rc[None, :], acc.to(c.dtype.element_ty))


def case_micro():
    if SMALL:
        return  # Triton's interpreter has no dot_scaled
    M, N, K = 1024, 2048, 2048
    a, b = rn(M, K, dtype=f32).to(fp8), rn(N, K, dtype=f32).to(fp8)
    sa, sb = (ri(120, 130, n, K // 32, dtype=torch.uint8) for n in (M, N))
    for BM, BN, BK, w, s in [(128, 128, 64, 8, 2), (64, 64, 64, 4, 3)]:
        micro[(M // BM, N // BN)](a, sa, b, sb, ze(M, N), M, N, K, BM=BM, BN=BN, BK=BK,
                                  num_warps=w, num_stages=s)


if __name__ == "__main__":
    run(globals())
