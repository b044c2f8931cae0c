"""Arguments and references of gemm.tk and gemm_two.tk."""

import torch

from data import BF16, F16, F32, FLOOR, U, Data, cdiv, dot, rounded, some, tiles


# ---------------------------------------------------------------- gemm.tk

def bias_gelu(t, M, N, K):
    a, b, bias = t.randn(M, K), t.randn(K, N, scale=K**-0.5), t.randn(N)
    c = t.empty(M, N, dtype=F32)
    rows = some(M, 64, t.device)

    def wants():
        x, bound = dot(a[rows], b)
        x = x + bias.double()
        want = torch.nn.functional.gelu(x)
        bound = 1.2 * (bound + 2.0**-24 * x.abs()) + 2.0**-21 * x.abs()
        return [("c", lambda q: c[rows], want, bound)]
    return Data(dict(a_ptr=a, b_ptr=b, bias_ptr=bias, c_ptr=c, M=M, N=N, K=K, stride_am=K,
                     stride_bk=N, stride_cm=N), [c], tiles(M, N), 2 * M * N * K, wants)


def split_store(t, M, N, K, splits):
    a, b = t.randn(M, K), t.randn(K, N)
    part = t.empty(splits, M, N, dtype=F32)
    stretch = K // splits
    rows = some(M, 32, t.device)

    def wants():
        x = a[rows].view(-1, splits, stretch).transpose(0, 1)
        want, bound = dot(x, b.view(splits, stretch, N))
        return [("part", lambda q: part[:, rows], want, bound)]
    return Data(dict(a_ptr=a, b_ptr=b, part_ptr=part, M=M, N=N, K=K, stretch=stretch),
                [part], lambda q: (*tiles(M, N)(q), splits), 2 * M * N * K, wants)


def split_atomic(t, M, N, K):
    a, b = t.randn(M, K, dtype=BF16), t.randn(N, K, dtype=BF16)
    c = t.empty(M, N, dtype=F32)

    def wants():
        return [("c", c, *dot(a, b.t()))]
    return Data(dict(a_ptr=a, b_ptr=b, c_ptr=c, M=M, N=N, K=K, stride_am=K, stride_bn=K,
                     stride_cm=N), [c], lambda q: (*tiles(M, N)(q), q["SPLIT"]),
                2 * M * N * K, wants, [c])


def persistent(t, M, N, K):
    a, b, c = t.randn(M, K), t.randn(N, K), t.empty(M, N)
    rows = some(M, 64, t.device)

    def wants():
        want, bound = dot(a[rows], b.t())
        return [("c", lambda q: c[rows], want, rounded(want, bound, F16))]
    return Data(dict(a_ptr=a, b_ptr=b, c_ptr=c, M=M, N=N, K=K), [c],
                lambda q: (min(q["PROGRAMS"], tiles(M, N)(q)[0]),), 2 * M * N * K, wants)


def stream_k(t, M, N, K):
    a, b, c = t.randn(M, K), t.randn(K, N), t.empty(M, N, dtype=F32)
    rows = some(M, 64, t.device)

    def share(q):  # odd, so that it is no multiple of 16
        return cdiv(tiles(M, N)(q)[0] * cdiv(K, q["BLOCK_K"]), t.sms) | 1

    def wants():
        return [("c", lambda q: c[rows], *dot(a[rows], b))]
    return Data(dict(a_ptr=a, b_ptr=b, c_ptr=c, M=M, N=N, K=K, share=share), [c],
                lambda q: (cdiv(tiles(M, N)(q)[0] * cdiv(K, q["BLOCK_K"]), share(q)),),
                2 * M * N * K, wants, [c])


def norm_gemm(t, M, N, K):
    x, gain = t.randn(M, K, dtype=F32), t.randn(K, dtype=F32)
    rstd = torch.rsqrt(x.square().mean(1))
    b, c = t.randn(K, N, dtype=BF16, scale=K**-0.5), t.empty(M, N, dtype=BF16)
    rows = some(M, 64, t.device)

    def wants():
        a = x[rows].double() * rstd[rows, None].double() * gain.double()
        want, bound = dot(a, b, U[BF16] + 2.0**-22)
        return [("c", lambda q: c[rows], want, rounded(want, bound, BF16))]
    return Data(dict(x_ptr=x, rstd_ptr=rstd, gain_ptr=gain, b_ptr=b, c_ptr=c, M=M, N=N, K=K),
                [c], tiles(M, N), 2 * M * N * K, wants)


def batched_small(t, B, M, N, K):
    a, b, c = t.randn(B, M, K), t.randn(B, K, N), t.empty(B, M, N)
    pick = some(B, 64, t.device)

    def wants():
        want, bound = dot(a[pick], b[pick])
        return [("c", lambda q: c[pick], want, rounded(want, bound, F16))]
    return Data(dict(a_ptr=a, b_ptr=b, c_ptr=c, M=M, N=N, K=K, stride_ab=M * K,
                     stride_bb=K * N, stride_cb=M * N), [c],
                lambda q: (*tiles(M, N)(q), B), 2 * B * M * N * K, wants)


# ---------------------------------------------------------------- gemm_two.tk

def swiglu(t, M, N, K):
    x = t.randn(M, K, dtype=BF16)
    wg, wu = (t.randn(K, N, dtype=BF16, scale=K**-0.5) for _ in range(2))
    y = t.empty(M, N, dtype=BF16)
    rows = some(M, 64, t.device)

    def wants():
        g, eg = dot(x[rows], wg)
        u, eu = dot(x[rows], wu)
        act = g * torch.sigmoid(g)
        want = act * u
        # the slope of silu is below 1.1
        bound = 1.1 * eg * u.abs() + act.abs() * eu + 1.1 * eg * eu + 2.0**-20 * want.abs()
        return [("y", lambda q: y[rows], want, rounded(want, bound, BF16))]
    return Data(dict(x_ptr=x, wg_ptr=wg, wu_ptr=wu, y_ptr=y, M=M, N=N, K=K, stride_xm=K,
                     stride_wk=N, stride_ym=N), [y],
                lambda q: (cdiv(M, q["BLOCK_M"]), cdiv(N, q["BLOCK_N"])), 4 * M * N * K,
                wants)


def lora(t, M, N, K, rank=16):
    x, w = t.randn(M, K), t.randn(K, N, scale=K**-0.5)
    a, b = t.randn(K, rank, scale=K**-0.5), t.randn(rank, N)
    y, scale = t.empty(M, N), 0.5
    rows = some(M, 64, t.device)

    def wants():
        main, bound = dot(x[rows], w)
        low, el = dot(x[rows], a)
        size = b.double().abs()
        want = main + scale * low @ b.double()
        bound = bound + scale * (el + (U[F16] + 2.0**-22) * low.abs() + 2.0**-23) @ size
        return [("y", lambda q: y[rows], want, rounded(want, bound, F16))]
    return Data(dict(x_ptr=x, w_ptr=w, a_ptr=a, b_ptr=b, y_ptr=y, M=M, N=N, K=K,
                     scale=scale), [y],
                lambda q: (cdiv(N, q["BLOCK_N"]), cdiv(M, q["BLOCK_M"])),
                2 * M * K * (N + rank) + 2 * M * N * rank, wants)


def mlp_chain(t, M, H, D=128):
    x = t.randn(M, D, dtype=BF16)
    w1 = t.randn(D, H, dtype=BF16, scale=D**-0.5)
    w2 = t.randn(H, D, dtype=BF16, scale=H**-0.5)
    y = t.empty(M, D, dtype=BF16)
    rows = some(M, 256, t.device)

    def wants():
        h, eh = dot(x[rows], w1)
        h = h.clamp(min=0)
        p = h * h
        ep = (2 * h + eh) * eh + (U[BF16] + 2.0**-23) * p + FLOOR[BF16]
        want, bound = dot(p, w2)
        bound = bound + ep @ w2.double().abs()
        return [("y", lambda q: y[rows], want, rounded(want, bound, BF16))]
    return Data(dict(x_ptr=x, w1_ptr=w1, w2_ptr=w2, y_ptr=y, M=M, H=H), [y],
                lambda q: (cdiv(M, q["BLOCK_M"]),), 4 * M * D * H, wants)


def norm_chain(t, M, heads, D=128, head=64):
    x, w1 = t.randn(M, D), t.randn(D, heads * head, scale=D**-0.5)
    w2, y, eps = t.randn(heads * head, D, scale=(heads * head)**-0.5), t.empty(M, D), 1e-5
    rows = some(M, 256, t.device)

    def wants():
        h, eh = (v.view(-1, heads, head) for v in dot(x[rows], w1))
        rstd = torch.rsqrt(h.square().mean(2, True) + eps)
        # of rstd: the error of the mean square, relative, and that of its sum
        er = (h.abs() * eh).mean(2, True) * rstd**2 + 2.0**-24 * head
        p = (h * rstd).flatten(1)
        ep = (eh * rstd + (h * rstd).abs() * (er + U[F16] + 2.0**-21)).flatten(1) + 2.0**-25
        want, bound = dot(p, w2)
        bound = bound + ep @ w2.double().abs()
        return [("y", lambda q: y[rows], want, rounded(want, bound, F16))]
    return Data(dict(x_ptr=x, w1_ptr=w1, w2_ptr=w2, y_ptr=y, M=M, heads=heads, eps=eps), [y],
                lambda q: (cdiv(M, q["BLOCK_M"]),), 4 * M * D * heads * head, wants)
