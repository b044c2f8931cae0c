"""Matrix products in orders of loops, accumulations and tilings of strangers.

A program for sdc.compare and tests/compat/each.py; arguments: its cases, or --list.
"""

import torch
import triton
import triton.language as tl
from made import DEV, cd, f32, fp16, half, pick, rn, run, ze

i32 = torch.int32


def _alloc(size, align, stream):
    return torch.empty(size, device=DEV, dtype=torch.int8)


@triton.jit
def panel_gemm(a_ptr, b_ptr, c_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
               NK: tl.constexpr):
    # a program owns a panel of rows and walks over all columns; k is the inner loop
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rk = tl.arange(0, BK)
    K = NK * BK
    for n in range(0, N, BN):
        rc = n + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in tl.static_range(NK):
            a = tl.load(a_ptr + rm[:, None] * K + (k * BK + rk)[None, :],
                        mask=rm[:, None] < M, other=0.0)
            b = tl.load(b_ptr + (k * BK + rk)[:, None] * N + rc[None, :],
                        mask=rc[None, :] < N, other=0.0)
            acc += tl.dot(a, b)
        tl.store(c_ptr + rm[:, None] * N + rc[None, :], acc.to(c_ptr.dtype.element_ty),
                 mask=(rm < M)[:, None] & (rc < N)[None, :])


def case_panel_gemm():
    M, N, K = pick((2048, 2048, 256), (40, 50, 64))
    for BM, BN, BK, w in pick([(64, 64, 128, 4), (128, 64, 64, 8)], [(16, 32, 32, 2)]):
        panel_gemm[(cd(M, BM),)](rn(M, K, dtype=half), rn(K, N, dtype=half),
                                 ze(M, N, dtype=half), M, N, BM, BN, BK, K // BK, num_warps=w)


@triton.jit
def transposed_acc(A, B, C, M, N, K, lda, ldb, ldc, BLOCK_M: tl.constexpr,
                   BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    # c^T = b^T a^T; rows of all three are padded
    a = tl.make_tensor_descriptor(A, [M, K], [lda, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(B, [K, N], [ldb, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(C, [M, N], [ldc, 1], [BLOCK_M, BLOCK_N])
    at_m = tl.program_id(0) * BLOCK_M
    at_n = tl.program_id(1) * BLOCK_N
    acc_t = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a_t = tl.trans(a.load([at_m, k]))
        b_t = tl.trans(b.load([k, at_n]))
        acc_t = tl.dot(b_t, a_t, acc_t)
    c.store([at_m, at_n], tl.trans(acc_t).to(C.dtype.element_ty))


def case_transposed_acc():
    triton.set_allocator(_alloc)
    for M, N, K in pick([(2048, 2048, 1024), (2000, 1000, 520)], [(40, 48, 72)]):
        for BM, BN, BK, w, s in pick([(128, 128, 64, 8, 3), (64, 256, 32, 4, 4)],
                                     [(16, 32, 16, 2, 2)]):
            a, b, c = rn(M, K + 24, dtype=half), rn(K, N + 8, dtype=half), ze(M, N + 40, dtype=half)
            transposed_acc[(cd(M, BM), cd(N, BN))](a, b, c, M, N, K, K + 24, N + 8, N + 40, BM,
                                                   BN, BK, num_warps=w, num_stages=s)


@triton.jit
def while_gemm(x_ptr, w_ptr, y_ptr, n_rows, n_out, n_in, sxr, swo, syr, BR: tl.constexpr,
               BO: tl.constexpr, BI: tl.constexpr):
    # as nn.Linear has its weights: both operands lie along k and are turned
    r = tl.program_id(0) * BR + tl.arange(0, BR)
    o = tl.program_id(1) * BO + tl.arange(0, BO)
    x = x_ptr + (r % n_rows)[:, None] * sxr + tl.arange(0, BI)[None, :]
    w = w_ptr + (o % n_out)[:, None] * swo + tl.arange(0, BI)[None, :]
    acc = tl.zeros((BO, BR), tl.float32)
    left = n_in
    while left > 0:
        kmask = tl.arange(0, BI)[None, :] < left
        xv = tl.load(x, mask=kmask, other=0.0)
        wv = tl.load(w, mask=kmask, other=0.0)
        acc += tl.dot(wv, tl.trans(xv))
        x += BI
        w += BI
        left -= BI
    tl.store(y_ptr + r[None, :] * syr + o[:, None], acc.to(y_ptr.dtype.element_ty),
             mask=(o < n_out)[:, None] & (r < n_rows)[None, :])


def case_while_gemm():
    R, O, I = pick((2048, 2048, 1024), (40, 50, 72))
    for BR, BO, BI, w in pick([(128, 128, 32, 4), (128, 64, 64, 4), (256, 128, 64, 8)],
                              [(16, 32, 16, 1)]):
        while_gemm[(cd(R, BR), cd(O, BO))](rn(R, I, dtype=half), rn(O, I, dtype=half),
                                           ze(R, O, dtype=half), R, O, I, I, I, O, BR, BO, BI,
                                           num_warps=w)


@triton.jit
def two_level(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
              BK: tl.constexpr, STEPS: tl.constexpr):
    """Sums of STEPS products in fp16, those sums in fp32."""
    pid = tl.program_id(0)
    npn = tl.cdiv(N, BN)
    rm = (pid // npn) * BM + tl.arange(0, BM)
    rc = (pid % npn) * BN + tl.arange(0, BN)
    rm = tl.max_contiguous(tl.multiple_of(rm % M, BM), BM)
    rc = tl.max_contiguous(tl.multiple_of(rc % N, BN), BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + rm[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * N + rc[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for outer in range(0, K, BK * STEPS):
        part = tl.zeros((BM, BN), tl.float16)
        for _ in range(STEPS):
            part = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), part, out_dtype=tl.float16)
            a_ptrs += BK
            b_ptrs += BK * N
        total += part.to(tl.float32)
    tl.store(c_ptr + rm[:, None] * N + rc[None, :], total)


def case_two_level():
    M, N, K = pick((2048, 2048, 2048), (32, 64, 128))
    for BM, BN, BK, S, w in pick([(128, 128, 32, 4, 4), (128, 256, 64, 4, 8)],
                                 [(16, 32, 16, 2, 1)]):
        two_level[(cd(M, BM) * cd(N, BN),)](rn(M, K, dtype=fp16, scale=.1),
                                            rn(K, N, dtype=fp16, scale=.1), ze(M, N), M, N, K, BM,
                                            BN, BK, S, num_warps=w)


@triton.jit
def kahan_gemm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
               BK: tl.constexpr):
    # each product on its own, added with the error of the sum before
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    comp = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        rk = k * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :],
                    mask=(rm < M)[:, None] & (rk < K)[None, :], other=0.0)
        b = tl.load(b_ptr + rk[:, None] * N + rc[None, :],
                    mask=(rk < K)[:, None] & (rc < N)[None, :], other=0.0)
        y = tl.dot(a, b, input_precision="ieee") - comp
        t = acc + y
        comp = (t - acc) - y
        acc = t
    tl.store(c_ptr + rm[:, None] * N + rc[None, :], acc, mask=(rm < M)[:, None] &
             (rc < N)[None, :])


def case_kahan_gemm():
    M, N, K = pick((1024, 1024, 2048), (40, 40, 70))
    for BM, BN, BK, w in pick([(64, 64, 32, 4), (128, 64, 64, 4)], [(16, 16, 16, 1)]):
        for dt in (half, f32):
            kahan_gemm[(cd(M, BM), cd(N, BN))](rn(M, K, dtype=dt), rn(K, N, dtype=dt), ze(M, N),
                                               M, N, K, BM, BN, BK, num_warps=w)


@triton.jit
def splitk_ordered(a, b, c, lock, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                   BK: tl.constexpr, SPLIT: tl.constexpr):
    """Parts of k are added in their order, as a semaphore lets them."""
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    part = tl.program_id(2)
    sem = lock + pid_m * tl.num_programs(1) + pid_n
    rm = pid_m * BM + tl.arange(0, BM)
    rc = pid_n * BN + tl.arange(0, BN)
    rk = part * BK + tl.arange(0, BK)
    ap = a + rm[:, None] * K + rk[None, :]
    bp = b + rk[:, None] * N + rc[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK * SPLIT)):
        room = K - (k * SPLIT + part) * BK
        av = tl.load(ap, mask=(rm < M)[:, None] & (tl.arange(0, BK) < room)[None, :], other=0.0)
        bv = tl.load(bp, mask=(tl.arange(0, BK) < room)[:, None] & (rc < N)[None, :], other=0.0)
        acc = tl.dot(av, bv, acc)
        ap += BK * SPLIT
        bp += BK * SPLIT * N
    cp = c + rm[:, None] * N + rc[None, :]
    m = (rm < M)[:, None] & (rc < N)[None, :]
    while tl.atomic_add(sem, 0, sem="acquire") != part:
        pass
    if part > 0:
        acc += tl.load(cp, mask=m, other=0.0)
    tl.store(cp, acc, mask=m)
    tl.debug_barrier()
    tl.atomic_xchg(sem, (part + 1) % SPLIT, sem="release")


def case_splitk_ordered():
    # alone in each of its processors: the first part must run before the last waits for it
    M, N, K = pick((128, 1024, 4096), (20, 32, 100))
    for BM, BN, BK, S, w in pick([(64, 128, 64, 4, 4), (32, 64, 128, 2, 4)], [(16, 32, 16, 1, 1)]):
        splitk_ordered[(cd(M, BM), cd(N, BN), S)](
            rn(M, K, dtype=half), rn(K, N, dtype=half), ze(M, N),
            ze(cd(M, BM) * cd(N, BN), dtype=i32), M, N, K, BM, BN, BK, S, num_warps=w)


@triton.jit
def _swizzle(tile, nm, nn, GROUP: tl.constexpr):
    in_group = GROUP * nn
    first = (tile // in_group) * GROUP
    size = min(nm - first, GROUP)
    return first + (tile % in_group) % size, (tile % in_group) // size


@triton.jit
def flat_persistent(a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K, NSM, BLOCK_M: tl.constexpr,
                    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
                    WS: tl.constexpr):
    # descriptors of both orders; the result in two halves, a bias in between
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [BLOCK_N, BLOCK_K])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N // 2])
    nm = tl.cdiv(M, BLOCK_M)
    nn = tl.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), nm * nn, NSM, flatten=True, warp_specialize=WS):
        pm, pn = _swizzle(tile, nm, nn, GROUP)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, tl.cdiv(K, BLOCK_K)):
            acc = tl.dot(a.load([pm * BLOCK_M, k * BLOCK_K]),
                         b.load([pn * BLOCK_N, k * BLOCK_K]).T, acc)
        bias = tl.load(bias_ptr + pn * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.float32)
        acc = tl.maximum(acc + bias[None, :], 0.0)
        halves = tl.permute(tl.reshape(acc, (BLOCK_M, 2, BLOCK_N // 2)), (0, 2, 1))
        lo, hi = tl.split(halves)
        c.store([pm * BLOCK_M, pn * BLOCK_N], lo.to(c_ptr.dtype.element_ty))
        c.store([pm * BLOCK_M, pn * BLOCK_N + BLOCK_N // 2], hi.to(c_ptr.dtype.element_ty))


def case_flat_persistent():
    triton.set_allocator(_alloc)
    M, N, K = pick((2048, 4096, 1024), (40, 64, 80))
    for BM, BN, BK, ws, w, s in pick([(128, 128, 64, True, 4, 3), (128, 256, 64, False, 8, 3)],
                                     [(16, 32, 16, True, 1, 2)]):
        flat_persistent[(pick(132, 3),)](rn(M, K, dtype=half), rn(N, K, dtype=half),
                                         rn(N, dtype=half), ze(M, N, dtype=half), M, N, K,
                                         pick(132, 3), BM, BN, BK, 8, ws, num_warps=w,
                                         num_stages=s)


@triton.jit
def unrolled_gemm(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr,
                  BK: tl.constexpr, UNROLL: tl.constexpr, STAGES: tl.constexpr):
    pid = tl.program_id(0)
    pm = pid % tl.cdiv(M, BM)
    pn = pid // tl.cdiv(M, BM)
    rm = pm * BM + tl.arange(0, BM)
    rc = pn * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in tl.range(0, K, BK, num_stages=STAGES, loop_unroll_factor=UNROLL,
                      disallow_acc_multi_buffer=True):
        rk = k + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=rm[:, None] < M, other=0.0)
        b = tl.load(b_ptr + rk[:, None] * N + rc[None, :], mask=rc[None, :] < N, other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rm[:, None] * N + rc[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(rm < M)[:, None] & (rc < N)[None, :])


def case_unrolled_gemm():
    M, N, K = pick((2048, 2048, 1024), (40, 40, 128))
    for BM, BN, BK, u, s, w in pick([(128, 128, 32, 2, 3, 4), (128, 128, 64, 4, 1, 8),
                                     (256, 64, 32, 2, 5, 16)], [(16, 16, 16, 2, 2, 1)]):
        unrolled_gemm[(cd(M, BM) * cd(N, BN),)](rn(M, K, dtype=half), rn(K, N, dtype=half),
                                                ze(M, N, dtype=half), M, N, K, BM, BN, BK, u, s,
                                                num_warps=w)


@triton.jit
def strassen(a_ptr, b_ptr, c_ptr, N, H: tl.constexpr, BK: tl.constexpr):
    """One level of Strassen's scheme (Winograd's form) over quarters of a tile."""
    pm = tl.program_id(0) * 2 * H
    pn = tl.program_id(1) * 2 * H
    i = tl.arange(0, H)
    m1 = tl.zeros((H, H), tl.float32)
    m2 = tl.zeros((H, H), tl.float32)
    m3 = tl.zeros((H, H), tl.float32)
    m4 = tl.zeros((H, H), tl.float32)
    m5 = tl.zeros((H, H), tl.float32)
    m6 = tl.zeros((H, H), tl.float32)
    m7 = tl.zeros((H, H), tl.float32)
    for k in range(0, N // 2, BK):
        rk = k + tl.arange(0, BK)
        ap = a_ptr + (pm + i)[:, None] * N + rk[None, :]
        bp = b_ptr + rk[:, None] * N + (pn + i)[None, :]
        a11 = tl.load(ap)
        a12 = tl.load(ap + N // 2)
        a21 = tl.load(ap + H * N)
        a22 = tl.load(ap + H * N + N // 2)
        b11 = tl.load(bp)
        b12 = tl.load(bp + H)
        b21 = tl.load(bp + N // 2 * N)
        b22 = tl.load(bp + N // 2 * N + H)
        m1 = tl.dot(a11 + a22, b11 + b22, m1)
        m2 = tl.dot(a21 + a22, b11, m2)
        m3 = tl.dot(a11, b12 - b22, m3)
        m4 = tl.dot(a22, b21 - b11, m4)
        m5 = tl.dot(a11 + a12, b22, m5)
        m6 = tl.dot(a21 - a11, b11 + b12, m6)
        m7 = tl.dot(a12 - a22, b21 + b22, m7)
    cp = c_ptr + (pm + i)[:, None] * N + (pn + i)[None, :]
    tl.store(cp, m1 + m4 - m5 + m7)
    tl.store(cp + H, m3 + m5)
    tl.store(cp + H * N, m2 + m4)
    tl.store(cp + H * N + H, m1 - m2 + m3 + m6)


def case_strassen():
    N = pick(2048, 64)
    for H, BK, w in pick([(64, 32, 8), (32, 32, 4)], [(16, 16, 1)]):
        strassen[(N // (2 * H), N // (2 * H))](rn(N, N, dtype=fp16), rn(N, N, dtype=fp16),
                                               ze(N, N), N, H, BK, num_warps=w)


@triton.jit
def trmm(l_ptr, b_ptr, c_ptr, N, R, UNIT: tl.constexpr, BM: tl.constexpr, BR: tl.constexpr):
    # tril(l) @ b: k ends at the diagonal, whose block is cut
    pm = tl.num_programs(0) - 1 - tl.program_id(0)
    rm = pm * BM + tl.arange(0, BM)
    rc = tl.program_id(1) * BR + tl.arange(0, BR)
    acc = tl.zeros((BM, BR), tl.float32)
    for k in range(0, pm * BM, BM):
        rk = k + tl.arange(0, BM)
        x = tl.load(l_ptr + rm[:, None] * N + rk[None, :], mask=rm[:, None] < N, other=0.0)
        y = tl.load(b_ptr + rk[:, None] * R + rc[None, :], mask=rc[None, :] < R, other=0.0)
        acc = tl.dot(x, y, acc)
    x = tl.load(l_ptr + rm[:, None] * N + rm[None, :],
                mask=(rm < N)[:, None] & (rm < N)[None, :], other=0.0)
    y = tl.load(b_ptr + rm[:, None] * R + rc[None, :],
                mask=(rm < N)[:, None] & (rc < R)[None, :], other=0.0)
    if UNIT:
        x = tl.where(rm[:, None] > rm[None, :], x, tl.where(rm[:, None] == rm[None, :], 1.0, 0.0))
    else:
        x = tl.where(rm[:, None] >= rm[None, :], x, 0.0)
    acc = tl.dot(x.to(y.dtype), y, acc)
    tl.store(c_ptr + rm[:, None] * R + rc[None, :], acc.to(c_ptr.dtype.element_ty),
             mask=(rm < N)[:, None] & (rc < R)[None, :])


def case_trmm():
    N, R = pick((2048, 1024), (50, 40))
    for BM, BR, unit, w in pick([(64, 128, True, 4), (128, 128, False, 8)],
                                [(16, 32, True, 1), (16, 16, False, 1)]):
        trmm[(cd(N, BM), cd(R, BR))](rn(N, N, dtype=half), rn(N, R, dtype=half),
                                     ze(N, R, dtype=half), N, R, unit, BM, BR, num_warps=w)


@triton.jit
def quadratic_form(x_ptr, p_ptr, mu_ptr, o_ptr, n, D: tl.constexpr, BX: tl.constexpr,
                   BD: tl.constexpr):
    # (x - mu)^T P (x - mu) of each row: dots whose results are multiplied and summed at once
    r = tl.program_id(0) * BX + tl.arange(0, BX)
    total = tl.zeros((BX,), tl.float32)
    for j in range(0, D, BD):
        cj = j + tl.arange(0, BD)
        y = tl.zeros((BX, BD), tl.float32)
        for k in range(0, D, BD):
            ck = k + tl.arange(0, BD)
            x = tl.load(x_ptr + r[:, None] * D + ck[None, :], mask=r[:, None] < n, other=0.0)
            x -= tl.load(mu_ptr + ck)[None, :]
            y += tl.dot(x, tl.load(p_ptr + ck[:, None] * D + cj[None, :]))
        xj = tl.load(x_ptr + r[:, None] * D + cj[None, :], mask=r[:, None] < n, other=0.0)
        xj -= tl.load(mu_ptr + cj)[None, :]
        total += tl.sum(y * xj.to(tl.float32), axis=1)
    tl.store(o_ptr + r, total, mask=r < n)


def case_quadratic_form():
    n, D = pick((16384, 256), (40, 32))
    for BX, BD, w in pick([(64, 64, 4), (128, 128, 8)], [(16, 16, 1)]):
        quadratic_form[(cd(n, BX),)](rn(n, D, dtype=half), rn(D, D, dtype=half, scale=.1),
                                     rn(D, dtype=half), ze(n), n, D, BX, BD, num_warps=w)


if __name__ == "__main__":
    run(globals())
