"""Rows: softmax, norms, losses, choices, sorts, scans."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from cases import CASES, bf16, case, cd, f32, rn


@triton.jit
def softmax_k(o, x, s, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    v = tl.load(x + r * s + c, mask=c < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(o + r * s + c, e / tl.sum(e, 0), mask=c < n)


@triton.jit
def softmax_on(o, x, s, n, B: tl.constexpr):
    r = tl.program_id(0)
    m = -float("inf")
    d = 0.0
    for i in range(0, n, B):
        c = i + tl.arange(0, B)
        v = tl.load(x + r * s + c, mask=c < n, other=-float("inf"))
        nm = tl.maximum(m, tl.max(v, 0))
        d = d * tl.exp(m - nm) + tl.sum(tl.exp(v - nm), 0)
        m = nm
    for i in range(0, n, B):
        c = i + tl.arange(0, B)
        v = tl.load(x + r * s + c, mask=c < n, other=-float("inf"))
        tl.store(o + r * s + c, tl.exp(v - m) / d, mask=c < n)


@triton.jit
def softmax_bwd(dx, y, dy, s, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    k = c < n
    v = tl.load(y + r * s + c, mask=k, other=0.0)
    g = tl.load(dy + r * s + c, mask=k, other=0.0)
    tl.store(dx + r * s + c, v * (g - tl.sum(v * g, 0)), mask=k)


for dt in (f32, bf16):
    for R, N in ((1000, 1000), (1024, 1024), (4096, 77)):

        def c(R=R, N=N, dt=dt):
            x = rn(R, N, dt=dt)
            o = torch.empty_like(x)
            return (
                (lambda: softmax_k[(R,)](o, x, N, N, triton.next_power_of_2(N))),
                (lambda: torch.softmax(x, 1)),
                o,
                torch.softmax(x.double(), 1),
            )

        c.__name__ = f"softmax_{R}x{N}_{dt}"
        CASES.append(c)


@case
def softmax_online_64x50257():
    x = rn(64, 50257)
    o = torch.empty_like(x)
    return (
        (lambda: softmax_on[(64,)](o, x, 50257, 50257, 4096)),
        (lambda: torch.softmax(x, 1)),
        o,
        torch.softmax(x.double(), 1),
    )


@case
def softmax_backward():
    y = torch.softmax(rn(1000, 1000), 1)
    dy = rn(1000, 1000)
    dx = torch.empty_like(y)
    return (
        (lambda: softmax_bwd[(1000,)](dx, y, dy, 1000, 1000, 1024)),
        (lambda: torch._softmax_backward_data(dy, y, 1, f32)),
        dx,
        None,
    )


@triton.jit
def ln_k(x, w, b, y, mean, rs, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    k = c < n
    v = tl.load(x + r * n + c, mask=k, other=0.0).to(tl.float32)
    mu = tl.sum(v, 0) / n
    d = tl.where(k, v - mu, 0.0)
    q = 1 / tl.sqrt(tl.sum(d * d, 0) / n + eps)
    tl.store(mean + r, mu)
    tl.store(rs + r, q)
    tl.store(
        y + r * n + c,
        d * q * tl.load(w + c, mask=k).to(tl.float32)
        + tl.load(b + c, mask=k).to(tl.float32),
        mask=k,
    )


@triton.jit
def rms_k(x, w, y, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    k = c < n
    v = tl.load(x + r * n + c, mask=k, other=0.0).to(tl.float32)
    q = tl.rsqrt(tl.sum(v * v, 0) / n + eps)
    tl.store(
        y + r * n + c, (v * q).to(y.dtype.element_ty) * tl.load(w + c, mask=k), mask=k
    )


@triton.jit
def add_rms_k(x, res, w, y, n, eps, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    k = c < n
    v = tl.load(x + r * n + c, mask=k, other=0.0).to(tl.float32) + tl.load(
        res + r * n + c, mask=k, other=0.0
    ).to(tl.float32)
    tl.store(res + r * n + c, v, mask=k)
    q = tl.rsqrt(tl.sum(v * v, 0) / n + eps)
    tl.store(y + r * n + c, v * q * tl.load(w + c, mask=k), mask=k)


for dt in (f32, bf16):
    for R, N in ((512, 4096), (1000, 768)):

        def c(R=R, N=N, dt=dt):
            x = rn(R, N, dt=dt)
            w = rn(N, dt=dt)
            b = rn(N, dt=dt)
            o = torch.empty_like(x)
            m = torch.empty(R)
            s = torch.empty(R)
            return (
                (
                    lambda: ln_k[(R,)](
                        x, w, b, o, m, s, N, 1e-5, triton.next_power_of_2(N)
                    )
                ),
                (lambda: F.layer_norm(x, (N,), w, b)),
                o,
                F.layer_norm(x.double(), (N,), w.double(), b.double()),
            )

        c.__name__ = f"layernorm_{R}x{N}_{dt}"
        CASES.append(c)

        def c(R=R, N=N, dt=dt):
            x = rn(R, N, dt=dt)
            w = rn(N, dt=dt)
            o = torch.empty_like(x)
            return (
                (lambda: rms_k[(R,)](x, w, o, N, 1e-5, triton.next_power_of_2(N))),
                (lambda: F.rms_norm(x, (N,), w, 1e-5)),
                o,
                None,
            )

        c.__name__ = f"rmsnorm_{R}x{N}_{dt}"
        CASES.append(c)


@triton.jit
def ln_bwd_lock(
    DX, DY, DW, DB, X, W, Mean, Rstd, Lock, stride, N, G: tl.constexpr, B: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, B)
    mask = cols < N
    X += row * stride
    DY += row * stride
    DX += row * stride
    lock_id = row % G
    Lock += lock_id
    Count = Lock + G
    DW = DW + lock_id * N + cols
    DB = DB + lock_id * N + cols
    x = tl.load(X + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(DY + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(W + cols, mask=mask).to(tl.float32)
    mean = tl.load(Mean + row)
    rstd = tl.load(Rstd + row)
    xhat = (x - mean) * rstd
    wdy = w * dy
    xhat = tl.where(mask, xhat, 0.0)
    wdy = tl.where(mask, wdy, 0.0)
    c1 = tl.sum(xhat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    dx = (wdy - (xhat * c1 + c2)) * rstd
    tl.store(DX + cols, dx, mask=mask)
    pdw = (dy * xhat).to(w.dtype)
    pdb = dy.to(w.dtype)
    while tl.atomic_cas(Lock, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        pdw += tl.load(DW, mask=mask)
        pdb += tl.load(DB, mask=mask)
    tl.store(DW, pdw, mask=mask)
    tl.store(DB, pdb, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(Lock, 0)


@triton.jit
def ln_bwd_sum(DW, DB, FW, FB, M, N, BM: tl.constexpr, BN: tl.constexpr):
    cols = tl.program_id(0) * BN + tl.arange(0, BN)
    dw = tl.zeros((BM, BN), dtype=tl.float32)
    db = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, M, BM):
        rows = i + tl.arange(0, BM)
        mask = (rows[:, None] < M) & (cols[None, :] < N)
        o = rows[:, None] * N + cols[None, :]
        dw += tl.load(DW + o, mask=mask, other=0.0)
        db += tl.load(DB + o, mask=mask, other=0.0)
    tl.store(FW + cols, tl.sum(dw, axis=0), mask=cols < N)
    tl.store(FB + cols, tl.sum(db, axis=0), mask=cols < N)


for M, N in ((1024, 1024), (2000, 1000)):

    def c(M=M, N=N):
        x = rn(M, N)
        w = rn(N)
        b = rn(N)
        dy = rn(M, N)
        dx = torch.empty_like(x)
        mean = x.mean(1)
        rs = 1 / torch.sqrt(x.var(1, unbiased=False) + 1e-5)
        G = 64
        pw = torch.zeros(G, N)
        pb = torch.zeros(G, N)
        lock = torch.zeros(2 * G, dtype=torch.int32)
        fw = torch.empty(N)
        fb = torch.empty(N)

        def go():
            lock.zero_()
            ln_bwd_lock[(M,)](dx, dy, pw, pb, x, w, mean, rs, lock, N, N, G, 1024)
            ln_bwd_sum[(cd(N, 128),)](pw, pb, fw, fb, G, N, 32, 128)

        t = lambda: torch.ops.aten.native_layer_norm_backward(
            dy, x, (N,), mean[:, None], rs[:, None], w, b, [True, True, True]
        )
        return go, t, dx, t()[0].double()

    c.__name__ = f"layernorm_bwd_lock_{M}x{N}"
    CASES.append(c)


@triton.jit
def xent_k(x, y, loss, dx, n, B: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    t = tl.load(y + r)
    m = -float("inf")
    d = 0.0
    for i in range(0, n, B):
        c = i + tl.arange(0, B)
        v = tl.load(x + r * n + c, mask=c < n, other=-float("inf")).to(tl.float32)
        nm = tl.maximum(m, tl.max(v))
        d = d * tl.exp(m - nm) + tl.sum(tl.exp(v - nm))
        m = nm
    tl.store(loss + r, m + tl.log(d) - tl.load(x + r * n + t).to(tl.float32))
    for i in range(0, n, B):
        c = i + tl.arange(0, B)
        v = tl.load(x + r * n + c, mask=c < n, other=-float("inf")).to(tl.float32)
        g = tl.exp(v - m) / d
        g = tl.where(c == t, g - 1, g)
        tl.store(dx + r * n + c, g, mask=c < n)


for R, N, dt in ((256, 32000, f32), (1024, 1000, f32), (256, 32000, bf16)):

    def c(R=R, N=N, dt=dt):
        x = rn(R, N, dt=dt)
        y = torch.randint(0, N, (R,))
        l = torch.empty(R)
        dx = torch.empty_like(x)

        def t():
            ls = torch.log_softmax(x, 1)
            g = torch.exp(ls)
            g[torch.arange(R), y] -= 1
            return F.nll_loss(ls, y, reduction="none")

        return (
            (lambda: xent_k[(R,)](x, y, l, dx, N, 4096 if N > 4096 else 1024)),
            t,
            l,
            F.cross_entropy(x.double(), y, reduction="none"),
        )

    c.__name__ = f"xent_fb_{R}x{N}_{dt}"
    CASES.append(c)


@triton.jit
def argmax_k(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(o + r, tl.argmax(tl.load(x + r * n + c, mask=c < n, other=-float("inf")), 0))


@case
def argmax_1000x1000():
    x = rn(1000, 1000)
    o = torch.empty(1000, dtype=torch.int32)
    return (
        (lambda: argmax_k[(1000,)](x, o, 1000, 1024)),
        (lambda: torch.argmax(x, 1)),
        o,
        torch.argmax(x, 1),
    )


@triton.jit
def topk_k(x, o, n, K: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(
        o + r * K + tl.arange(0, K),
        tl.topk(tl.load(x + r * n + c, mask=c < n, other=-float("inf")), K),
    )


@case
def topk_512x1000_8():
    x = rn(512, 1000)
    o = torch.empty(512, 8)
    return (
        (lambda: topk_k[(512,)](x, o, 1000, 8, 1024)),
        (lambda: torch.topk(x, 8)),
        o,
        torch.topk(x, 8)[0].double(),
    )


@triton.jit
def gate_topk(x, wo, io, n: tl.constexpr, K: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, n)
    v = tl.load(x + r * n + c)
    v = tl.exp(v - tl.max(v, 0))
    v = v / tl.sum(v, 0)
    for k in tl.static_range(K):
        i = tl.argmax(v, 0)
        m = tl.max(v, 0)
        tl.store(wo + r * K + k, m)
        tl.store(io + r * K + k, i)
        v = tl.where(c == i, -1.0, v)


@case
def moe_gate_4096x64_k8():
    x = rn(4096, 64)
    w = torch.empty(4096, 8)
    i = torch.empty(4096, 8, dtype=torch.int32)
    return (
        (lambda: gate_topk[(4096,)](x, w, i, 64, 8)),
        (lambda: torch.topk(torch.softmax(x, 1), 8)),
        w,
        torch.topk(torch.softmax(x.double(), 1), 8)[0],
    )


@triton.jit
def sort_k(x, o, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(o + r * B + c, tl.sort(tl.load(x + r * B + c)))


@case
def sort_256x512():
    x = rn(256, 512)
    o = torch.empty_like(x)
    return (
        (lambda: sort_k[(256,)](x, o, 512)),
        (lambda: torch.sort(x, 1)),
        o,
        torch.sort(x, 1)[0].double(),
    )


@triton.jit
def cumsum_k(x, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    tl.store(
        o + r * n + c,
        tl.cumsum(tl.load(x + r * n + c, mask=c < n, other=0.0), 0),
        mask=c < n,
    )


@case
def cumsum_1000x1000():
    x = rn(1000, 1000)
    o = torch.empty_like(x)
    return (
        (lambda: cumsum_k[(1000,)](x, o, 1000, 1024)),
        (lambda: torch.cumsum(x, 1)),
        o,
        torch.cumsum(x.double(), 1),
    )


@triton.jit
def lin(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scan_k(a, b, o, T, D, BT: tl.constexpr, BD: tl.constexpr):
    d = tl.program_id(0) * BD + tl.arange(0, BD)
    h = tl.zeros((BD,), tl.float32)
    for t in range(T):
        h = h * tl.load(a + t * D + d) + tl.load(b + t * D + d)
        tl.store(o + t * D + d, h)


@triton.jit
def ascan_k(a, b, o, n, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    _, h = tl.associative_scan((tl.load(a + r * n + c), tl.load(b + r * n + c)), 0, lin)
    tl.store(o + r * n + c, h)


@case
def recurrence_512x1024():
    a = torch.rand(512, 1024)
    b = rn(512, 1024)
    o = torch.empty_like(a)

    def t():
        h = torch.zeros(1024)
        out = torch.empty_like(a)
        for i in range(512):
            h = torch.addcmul(b[i], h, a[i])
            out[i] = h
        return out

    return (lambda: scan_k[(4,)](a, b, o, 512, 1024, 1, 256)), t, o, t().double()


@case
def assoc_scan_256x1024():
    a = torch.rand(256, 1024)
    b = rn(256, 1024)
    o = torch.empty_like(a)
    T = a.t().contiguous()
    U = b.t().contiguous()

    def t():
        h = torch.zeros(256)
        out = torch.empty_like(T)
        for i in range(1024):
            h = torch.addcmul(U[i], h, T[i])
            out[i] = h
        return out

    return (lambda: ascan_k[(256,)](a, b, o, 1024, 1024)), t, o, t().t().double()
