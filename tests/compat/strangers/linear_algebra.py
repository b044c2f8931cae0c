"""Matrix products as strangers write them: block pointers, descriptors, streams over k, symmetric,
complex, double, contractions, gradients of linear layers, low rank, Newton-Schulz.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import f32, fp16, half, pick, rn, ze, cd, DEV, run


@triton.jit
def block_ptr_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                     BK: tl.constexpr):
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    ap = tl.make_block_ptr(a, shape=(M, K), strides=(K, 1), offsets=(pm * BM, 0),
                           block_shape=(BM, BK), order=(1, 0))
    bp = tl.make_block_ptr(b, shape=(K, N), strides=(N, 1), offsets=(0, pn * BN),
                           block_shape=(BK, BN), order=(1, 0))
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        x = tl.load(ap, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(bp, boundary_check=(0, 1), padding_option="zero")
        acc += tl.dot(x, y)
        ap = tl.advance(ap, (0, BK))
        bp = tl.advance(bp, (BK, 0))
    cp = tl.make_block_ptr(c, shape=(M, N), strides=(N, 1), offsets=(pm * BM, pn * BN),
                           block_shape=(BM, BN), order=(1, 0))
    tl.store(cp, acc.to(c.dtype.element_ty), boundary_check=(0, 1))


def case_block_ptr():
    M, N, K = pick((2000, 3000, 1000), (50, 70, 40))
    a, b, c = rn(M, K, dtype=half), rn(K, N, dtype=half), ze(M, N, dtype=half)
    for BM, BN, BK, w, s in pick([(128, 128, 32, 8, 4), (64, 128, 64, 4, 3),
                                  (32, 64, 32, 2, 5)], [(16, 32, 16, 2, 2)]):
        block_ptr_matmul[(cd(M, BM), cd(N, BN))](a, b, c, M, N, K, BM, BN, BK, num_warps=w,
                                                 num_stages=s)


@triton.jit
def desc_matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                SMS: tl.constexpr):
    # descriptors made in the kernel, b as N x K, a persistent grid
    da = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    db = tl.make_tensor_descriptor(b, shape=[N, K], strides=[K, 1], block_shape=[BN, BK])
    dc = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    nn = tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tl.cdiv(M, BM) * nn, SMS):
        om = (tile // nn) * BM
        on = (tile % nn) * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(0, K, BK):
            acc = tl.dot(da.load([om, k]), db.load([on, k]).T, acc)
        dc.store([om, on], acc.to(c.dtype.element_ty))


def allocator(size, align, stream):
    return torch.empty(size, device=DEV, dtype=torch.int8)


def case_descriptor():
    triton.set_allocator(allocator)
    M, N, K = pick((4096, 2048, 2048), (64, 64, 64))
    a, b, c = rn(M, K, dtype=half), rn(N, K, dtype=half), ze(M, N, dtype=half)
    for BM, BN, BK, w, s in pick([(128, 128, 64, 8, 3), (128, 64, 64, 4, 4)],
                                 [(16, 32, 16, 2, 2)]):
        desc_matmul[(pick(132, 2),)](a, b, c, M, N, K, BM, BN, BK, pick(132, 2),
                                     num_warps=w, num_stages=s)


@triton.jit
def stream_k(a, b, c, M, N, K, per, total, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr):
    # iterations of all tiles in one line, cut into equal parts; parts of a tile are added
    nk = tl.cdiv(K, BK)
    nn = tl.cdiv(N, BN)
    it = tl.program_id(0) * per
    end = tl.minimum(it + per, total)
    while it < end:
        tile = it // nk
        k0 = it % nk
        k1 = tl.minimum(k0 + end - it, nk)
        rm = (tile // nn) * BM + tl.arange(0, BM)
        rc = (tile % nn) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for k in range(k0, k1):
            rk = k * BK + tl.arange(0, BK)
            x = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm < M)[:, None] &
                        (rk < K)[None, :], other=0.0)
            y = tl.load(b + rk[:, None] * N + rc[None, :], mask=(rk < K)[:, None] &
                        (rc < N)[None, :], other=0.0)
            acc = tl.dot(x, y, acc)
        tl.atomic_add(c + rm[:, None] * N + rc[None, :], acc, mask=(rm < M)[:, None] &
                      (rc < N)[None, :], sem="relaxed")
        it += k1 - k0


def case_stream_k():
    M, N, K = pick((1000, 1280, 4096), (40, 50, 70))
    a, b = rn(M, K, dtype=half), rn(K, N, dtype=half)
    for BM, BN, BK, w, s in pick([(128, 128, 64, 8, 3), (64, 64, 64, 4, 3)],
                                 [(16, 16, 16, 1, 2)]):
        total = cd(M, BM) * cd(N, BN) * cd(K, BK)
        P = pick(132, 3)
        stream_k[(P,)](a, b, ze(M, N), M, N, K, cd(total, P), total, BM, BN, BK, num_warps=w,
                       num_stages=s)


@triton.jit
def syrk(a, c, N, K, alpha, beta, BM: tl.constexpr, BK: tl.constexpr):
    # the lower triangle of alpha a a^T + beta c alone
    pm = tl.program_id(0)
    pn = tl.program_id(1)
    if pn > pm:
        return
    rm = pm * BM + tl.arange(0, BM)
    rc = pn * BM + tl.arange(0, BM)
    acc = tl.zeros((BM, BM), tl.float32)
    for k in tl.range(0, K, BK, num_stages=3):
        rk = k + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * K + rk[None, :], mask=(rm < N)[:, None] &
                    (rk < K)[None, :], other=0.0)
        y = tl.load(a + rc[:, None] * K + rk[None, :], mask=(rc < N)[:, None] &
                    (rk < K)[None, :], other=0.0)
        acc = tl.dot(x, tl.trans(y), acc)
    m = (rm < N)[:, None] & (rc[None, :] <= rm[:, None])
    p = c + rm[:, None] * N + rc[None, :]
    tl.store(p, alpha * acc + beta * tl.load(p, mask=m, other=0.0), mask=m)


def case_syrk():
    N, K = pick((3000, 1024), (50, 40))
    a, c = rn(N, K, dtype=fp16), rn(N, N, dtype=f32)
    for BM, BK, w in pick([(128, 64, 8), (64, 32, 4)], [(16, 16, 1)]):
        syrk[(cd(N, BM), cd(N, BM))](a, c.clone(), N, K, 0.5, 2.0, BM, BK, num_warps=w)


@triton.jit
def cgemm(ar, ai, br, bi, cr, ci, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
          BK: tl.constexpr):
    # complex, Karatsuba's three products, tf32
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    p1 = tl.zeros((BM, BN), tl.float32)
    p2 = tl.zeros((BM, BN), tl.float32)
    p3 = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        oa = rm[:, None] * K + k[None, :]
        ob = k[:, None] * N + rc[None, :]
        ma = (rm < M)[:, None] & (k < K)[None, :]
        mb = (k < K)[:, None] & (rc < N)[None, :]
        a0 = tl.load(ar + oa, mask=ma, other=0.0)
        a1 = tl.load(ai + oa, mask=ma, other=0.0)
        b0 = tl.load(br + ob, mask=mb, other=0.0)
        b1 = tl.load(bi + ob, mask=mb, other=0.0)
        p1 = tl.dot(a0, b0, p1)
        p2 = tl.dot(a1, b1, p2)
        p3 = tl.dot(a0 + a1, b0 + b1, p3)
    o = rm[:, None] * N + rc[None, :]
    m = (rm < M)[:, None] & (rc < N)[None, :]
    tl.store(cr + o, p1 - p2, mask=m)
    tl.store(ci + o, p3 - p1 - p2, mask=m)


def case_complex():
    M, N, K = pick((1024, 1024, 1024), (30, 40, 50))
    a = [rn(M, K, dtype=f32) for _ in range(2)]
    b = [rn(K, N, dtype=f32) for _ in range(2)]
    for BM, BN, BK, w, s in pick([(64, 64, 32, 4, 2), (64, 32, 32, 4, 3)],
                                 [(16, 16, 16, 1, 2)]):
        cgemm[(cd(M, BM), cd(N, BN))](*a, *b, ze(M, N), ze(M, N), M, N, K, BM, BN, BK,
                                      num_warps=w, num_stages=s)


@triton.jit
def precise(a, b, c, N, BM: tl.constexpr, BK: tl.constexpr, PREC: tl.constexpr):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM, BM), c.dtype.element_ty)
    for k0 in range(0, N, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * N + k[None, :], mask=(rm < N)[:, None] &
                    (k < N)[None, :], other=0.0)
        y = tl.load(b + k[:, None] * N + rc[None, :], mask=(k < N)[:, None] &
                    (rc < N)[None, :], other=0.0)
        acc = tl.dot(x, y, acc, input_precision=PREC, out_dtype=c.dtype.element_ty)
    tl.store(c + rm[:, None] * N + rc[None, :], acc, mask=(rm < N)[:, None] &
             (rc < N)[None, :])


def case_precise():
    for dt, prec in ((f32, "ieee"), (f32, "tf32x3"), (torch.float64, "ieee")):
        N = pick(1000, 40)
        a, b = rn(N, N, dtype=dt), rn(N, N, dtype=dt)
        BM, BK, w = pick((64, 16, 4), (16, 16, 1))
        precise[(cd(N, BM), cd(N, BM))](a, b, ze(N, N, dtype=dt), N, BM, BK,
                                        PREC=prec, num_warps=w, num_stages=2)


@triton.jit
def contract(x, y, z, B, I, J, K, L, BI: tl.constexpr, BJ: tl.constexpr, BK: tl.constexpr):
    # z[b, i, j] = sum over k, l of x[b, k, i, l] y[k, b, l, j]
    b = tl.program_id(2)
    ri_ = tl.program_id(0) * BI + tl.arange(0, BI)
    rj = tl.program_id(1) * BJ + tl.arange(0, BJ)
    rl = tl.arange(0, BK)
    acc = tl.zeros((BI, BJ), tl.float32)
    for k in range(K):
        for l0 in range(0, L, BK):
            l = l0 + rl
            u = tl.load(x + ((b * K + k) * I + ri_[:, None]) * L + l[None, :],
                        mask=(ri_ < I)[:, None] & (l < L)[None, :], other=0.0)
            v = tl.load(y + ((k * B + b) * L + l[:, None]) * J + rj[None, :],
                        mask=(l < L)[:, None] & (rj < J)[None, :], other=0.0)
            acc += tl.dot(u, v)
    tl.store(z + (b * I + ri_[:, None]) * J + rj[None, :], acc, mask=(ri_ < I)[:, None] &
             (rj < J)[None, :])


def case_contraction():
    B, I, J, K, L = pick((16, 300, 400, 12, 80), (2, 20, 30, 3, 20))
    x, y = rn(B, K, I, L, dtype=fp16), rn(K, B, L, J, dtype=fp16)
    for BI, BJ, BK, w, s in pick([(64, 64, 16, 4, 3), (128, 64, 32, 4, 2)],
                                 [(16, 16, 16, 1, 2)]):
        contract[(cd(I, BI), cd(J, BJ), B)](x, y, ze(B, I, J), B, I, J, K, L, BI, BJ, BK,
                                            num_warps=w, num_stages=s)


@triton.jit
def dweight(x, dy, dw, db, T, N, K, BN: tl.constexpr, BK: tl.constexpr, BT: tl.constexpr):
    # dw += dy^T x in fp32, and the bias from the same loads
    pn = tl.program_id(0)
    pk = tl.program_id(1)
    rn_ = pn * BN + tl.arange(0, BN)
    rk = pk * BK + tl.arange(0, BK)
    acc = tl.zeros((BN, BK), tl.float32)
    bias = tl.zeros((BN,), tl.float32)
    for t0 in range(0, T, BT):
        t = t0 + tl.arange(0, BT)
        g = tl.load(dy + t[:, None] * N + rn_[None, :], mask=(t < T)[:, None] &
                    (rn_ < N)[None, :], other=0.0)
        v = tl.load(x + t[:, None] * K + rk[None, :], mask=(t < T)[:, None] &
                    (rk < K)[None, :], other=0.0)
        acc = tl.dot(tl.trans(g), v, acc)
        bias += tl.sum(g.to(tl.float32), axis=0)
    p = dw + rn_[:, None] * K + rk[None, :]
    m = (rn_ < N)[:, None] & (rk < K)[None, :]
    tl.store(p, tl.load(p, mask=m, other=0.0) + acc, mask=m)
    if pk == 0:
        tl.store(db + rn_, bias, mask=rn_ < N)


def case_dweight():
    T, N, K = pick((8192, 2048, 1024), (70, 40, 50))
    x, dy = rn(T, K, dtype=half), rn(T, N, dtype=half)
    for BN, BK, BT, w, s in pick([(128, 128, 64, 8, 3), (64, 64, 32, 4, 4),
                                  (128, 64, 64, 4, 2)], [(16, 32, 16, 1, 2)]):
        dweight[(cd(N, BN), cd(K, BK))](x, dy, ze(N, K), ze(N), T, N, K, BN, BK, BT,
                                        num_warps=w, num_stages=s)


@triton.jit
def low_rank(x, a, b, w, y, M, N, K, scale, R: tl.constexpr, BM: tl.constexpr,
             BN: tl.constexpr, BK: tl.constexpr):
    # y = x w + scale (x a) b, both products in one loop
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    rr = tl.arange(0, R)
    acc = tl.zeros((BM, BN), tl.float32)
    xa = tl.zeros((BM, R), tl.float32)
    for k0 in range(0, tl.cdiv(K, BK)):
        k = k0 * BK + tl.arange(0, BK)
        xv = tl.load(x + rm[:, None] * K + k[None, :], mask=(rm < M)[:, None] &
                     (k < K)[None, :], other=0.0)
        wv = tl.load(w + k[:, None] * N + rc[None, :], mask=(k < K)[:, None] &
                     (rc < N)[None, :], other=0.0)
        av = tl.load(a + k[:, None] * R + rr[None, :], mask=(k < K)[:, None], other=0.0)
        acc = tl.dot(xv, wv, acc)
        xa = tl.dot(xv, av, xa)
    bv = tl.load(b + rr[:, None] * N + rc[None, :], mask=(rc < N)[None, :], other=0.0)
    acc += scale * tl.dot(xa.to(x.dtype.element_ty), bv)
    tl.store(y + rm[:, None] * N + rc[None, :], acc.to(y.dtype.element_ty),
             mask=(rm < M)[:, None] & (rc < N)[None, :])


def case_low_rank():
    M, N, K = pick((2048, 4096, 2048), (40, 50, 60))
    x, w = rn(M, K, dtype=half), rn(K, N, dtype=half, scale=0.02)
    for R in pick((16, 64), (16,)):
        a, b = rn(K, R, dtype=half, scale=0.02), rn(R, N, dtype=half)
        BM, BN, BK, wp = pick((128, 128, 32, 8), (16, 32, 16, 2))
        low_rank[(cd(M, BM), cd(N, BN))](x, a, b, w, ze(M, N, dtype=half), M, N, K, 0.5, R=R,
                                         BM=BM, BN=BN, BK=BK, num_warps=wp, num_stages=3)


@triton.autotune(configs=[
    triton.Config({"BM": 128, "BN": 128, "BK": 64}, num_warps=8, num_stages=3),
    triton.Config({"BM": 64, "BN": 64, "BK": 64}, num_warps=4, num_stages=4),
    triton.Config({"BM": 32, "BN": 32, "BK": 32}, num_warps=2, num_stages=3),
], key=["N"])
@triton.jit
def newton_schulz(a, out, N, b, c, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # out = b a + c a a of a symmetric a
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, N, BK):
        k = k0 + tl.arange(0, BK)
        x = tl.load(a + rm[:, None] * N + k[None, :], mask=(rm < N)[:, None] &
                    (k < N)[None, :], other=0.0)
        y = tl.load(a + rc[None, :] * N + k[:, None], mask=(rc < N)[None, :] &
                    (k < N)[:, None], other=0.0)
        acc = tl.dot(x, y, acc)
    o = rm[:, None] * N + rc[None, :]
    m = (rm < N)[:, None] & (rc < N)[None, :]
    v = b * tl.load(a + o, mask=m, other=0.0).to(tl.float32) + c * acc
    tl.store(out + o, v.to(out.dtype.element_ty), mask=m)


def case_newton_schulz():
    N = pick(2000, 40)
    a = rn(N, N, dtype=half, scale=N**-0.5)
    a = a + a.T.contiguous()
    newton_schulz[lambda m: (cd(N, m["BM"]), cd(N, m["BN"]))](
        a, ze(N, N, dtype=half), N, -4.775, 2.0315)


@triton.jit
def dot3d(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BB: tl.constexpr):
    # several small products in one tl.dot of three dimensions
    q = tl.program_id(0) * BB + tl.arange(0, BB)[:, None, None]
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    x = tl.load(a + q * M * K + m[None, :, None] * K + k[None, None, :])
    y = tl.load(b + q * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c + q * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(x, y))


def case_dot3d():
    B = pick(16384, 8)
    for M, N, K, BB, w in pick([(32, 32, 32, 4, 4), (16, 64, 32, 4, 4)],
                               [(16, 16, 16, 2, 1)]):
        a, b = rn(B, M, K, dtype=fp16), rn(B, K, N, dtype=fp16)
        dot3d[(B // BB,)](a, b, ze(B, M, N), M=M, N=N, K=K, BB=BB, num_warps=w)


if __name__ == "__main__":
    run(globals())
