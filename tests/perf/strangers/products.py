"""Products: tiles of all sizes, vectors, int8 and 4-bit weights, small batches."""

import torch
import triton
import triton.language as tl

from cases import CASES, bf16, case, cd, f32, rn


@triton.jit
def mm_k(
    a,
    b,
    c,
    M,
    N,
    K,
    sam,
    sak,
    sbk,
    sbn,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    G: tl.constexpr,
    I8: tl.constexpr,
):
    pid = tl.program_id(0)
    nm = tl.cdiv(M, BM)
    nn = tl.cdiv(N, BN)
    ng = G * nn
    g = pid // ng
    f = g * G
    gs = min(nm - f, G)
    pm = f + (pid % ng) % gs
    pn = (pid % ng) // gs
    om = (pm * BM + tl.arange(0, BM)) % M
    on = (pn * BN + tl.arange(0, BN)) % N
    ok = tl.arange(0, BK)
    ap = a + om[:, None] * sam + ok[None, :] * sak
    bp = b + ok[:, None] * sbk + on[None, :] * sbn
    acc = tl.zeros((BM, BN), tl.int32 if I8 else tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(ap, mask=ok[None, :] < K - k * BK, other=0)
        y = tl.load(bp, mask=ok[:, None] < K - k * BK, other=0)
        if I8:
            acc = tl.dot(x, y, acc)
        else:
            acc = tl.dot(x, y, acc, input_precision="ieee")
        ap += BK * sak
        bp += BK * sbk
    cm = pm * BM + tl.arange(0, BM)
    cn = pn * BN + tl.arange(0, BN)
    tl.store(
        c + cm[:, None] * N + cn[None, :],
        acc.to(c.dtype.element_ty),
        mask=(cm < M)[:, None] & (cn < N)[None, :],
    )


def mm(M, N, K, T, dt=f32, nt=False):
    def c():
        i8 = dt == torch.int8
        a = torch.randint(-100, 100, (M, K)).to(dt) if i8 else rn(M, K, dt=dt)
        b = torch.randint(-100, 100, (K, N)).to(dt) if i8 else rn(K, N, dt=dt)
        if nt:
            b = b.t().contiguous().t()
        o = torch.empty(M, N, dtype=torch.int32 if i8 else dt)
        w = a.double() @ b.double()
        t = (lambda: torch._int_mm(a, b)) if i8 else (lambda: a @ b)
        if dt == bf16:
            A, B_ = a.float(), b.float()
            t = lambda: A @ B_
        return (
            (
                lambda: mm_k[(cd(M, T[0]) * cd(N, T[1]),)](
                    a, b, o, M, N, K, *a.stride(), *b.stride(), *T, 8, i8
                )
            ),
            t,
            o,
            w,
        )

    c.__name__ = f"mm_{M}x{N}x{K}_{'x'.join(map(str, T))}_{dt}{'_nt' if nt else ''}"
    CASES.append(c)


mm(256, 256, 256, (16, 16, 16))
mm(512, 512, 512, (64, 64, 32))
mm(512, 512, 512, (128, 128, 32))
mm(512, 512, 512, (128, 256, 64))
mm(512, 512, 512, (32, 32, 32))
mm(77, 1000, 513, (64, 64, 32))
mm(512, 512, 512, (64, 64, 32), nt=True)
mm(1, 2048, 2048, (16, 128, 64))
mm(1, 2048, 2048, (16, 64, 128), nt=True)
mm(8, 2048, 2048, (16, 128, 64))
mm(4, 1024, 1024, (16, 64, 64), nt=True)
mm(256, 256, 256, (16, 16, 16), bf16)
mm(512, 512, 512, (64, 64, 32), bf16)
mm(512, 512, 512, (128, 128, 64), bf16)
mm(256, 256, 512, (32, 32, 32), torch.int8)
mm(256, 256, 512, (64, 64, 64), torch.int8)
mm(256, 256, 512, (128, 128, 128), torch.int8)
mm(1, 2048, 2048, (16, 128, 64), bf16)


@triton.jit
def gemv_k(A, x, y, M, N, BM: tl.constexpr, BN: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    acc = tl.zeros((BM, BN), tl.float32)
    for j in range(0, N, BN):
        c = j + tl.arange(0, BN)
        acc += (
            tl.load(A + r[:, None] * N + c[None, :], mask=(c < N)[None, :], other=0.0).to(
                tl.float32
            )
            * tl.load(x + c, mask=c < N, other=0.0).to(tl.float32)[None, :]
        )
    tl.store(y + r, tl.sum(acc, 1))


@triton.jit
def gemv1_k(A, x, y, N, B: tl.constexpr):
    r = tl.program_id(0)
    acc = tl.zeros((B,), tl.float32)
    for j in range(0, N, B):
        c = j + tl.arange(0, B)
        acc += tl.load(A + r * N + c, mask=c < N, other=0.0).to(tl.float32) * tl.load(
            x + c, mask=c < N, other=0.0
        ).to(tl.float32)
    tl.store(y + r, tl.sum(acc, 0))


for dt in (f32, bf16):

    def c(dt=dt):
        A = rn(1024, 1024, dt=dt)
        x = rn(1024, dt=dt)
        y = torch.empty(1024)
        return (
            (lambda: gemv_k[(128,)](A, x, y, 1024, 1024, 8, 128)),
            (lambda: A @ x),
            y,
            A.double() @ x.double(),
        )

    c.__name__ = f"gemv_8x128_{dt}"
    CASES.append(c)

    def c(dt=dt):
        A = rn(1000, 1000, dt=dt)
        x = rn(1000, dt=dt)
        y = torch.empty(1000)
        return (
            (lambda: gemv1_k[(1000,)](A, x, y, 1000, 512)),
            (lambda: A @ x),
            y,
            A.double() @ x.double(),
        )

    c.__name__ = f"gemv_1x512_{dt}"
    CASES.append(c)


@triton.jit
def w4_k(
    x,
    q,
    s,
    o,
    M,
    N,
    K,
    GS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        v = tl.load(x + m[:, None] * K + k[None, :], mask=(m < M)[:, None], other=0.0)
        w = tl.load(q + (k // 8)[:, None] * N + n[None, :])
        w = ((w >> ((k % 8) * 4)[:, None]) & 15) - 8
        sc = tl.load(s + (k // GS)[:, None] * N + n[None, :])
        acc = tl.dot(v, w.to(tl.float32) * sc, acc, input_precision="ieee")
    tl.store(o + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None])


for M in (1, 64):

    def c(M=M):
        N = K = 512
        x = rn(M, K)
        q = torch.randint(-(2**31), 2**31, (K // 8, N), dtype=torch.int32)
        s = rn(K // 64, N).abs()
        o = torch.empty(M, N)
        k = torch.arange(K)

        def deq():
            return ((q[k // 8] >> (k % 8 * 4)[:, None].int()) & 15) - 8

        W = deq().float() * s[k // 64]
        return (
            (lambda: w4_k[(cd(M, 16), 8)](x, q, s, o, M, N, K, 64, 16, 64, 64)),
            (lambda: x @ (deq().float() * s[k // 64])),
            o,
            x.double() @ W.double(),
        )

    c.__name__ = f"int4_mm_{M}x512x512"
    CASES.append(c)


@triton.jit
def w8_k(x, q, s, o, N, K, BN: tl.constexpr, BK: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    acc = tl.zeros((BN, BK), tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        acc += (
            tl.load(q + n[:, None] * K + k[None, :]).to(tl.float32)
            * tl.load(x + k)[None, :]
        )
    tl.store(o + n, tl.sum(acc, 1) * tl.load(s + n))


@case
def int8_gemv_1024x1024():
    x = rn(1024)
    q = torch.randint(-127, 127, (1024, 1024), dtype=torch.int8)
    s = torch.rand(1024)
    o = torch.empty(1024)
    Q = q.float()
    return (
        (lambda: w8_k[(64,)](x, q, s, o, 1024, 1024, 16, 64)),
        (lambda: (Q @ x) * s),
        o,
        (Q.double() @ x.double()) * s.double(),
    )


@triton.jit
def bmm_small(a, b, c, N: tl.constexpr):
    p = tl.program_id(0)
    i = tl.arange(0, N)
    o = i[:, None] * N + i[None, :] + p * N * N
    tl.store(c + o, tl.dot(tl.load(a + o), tl.load(b + o), input_precision="ieee"))


for N in (16, 32):

    def c(N=N):
        a, b = rn(200, N, N), rn(200, N, N)
        o = torch.empty_like(a)
        return (
            (lambda: bmm_small[(200,)](a, b, o, N)),
            (lambda: torch.bmm(a, b)),
            o,
            torch.bmm(a.double(), b.double()),
        )

    c.__name__ = f"bmm_200x{N}"
    CASES.append(c)
