"""Arguments and references of gemm_quant.tk and gemm_grouped.tk."""
import random

import torch

from data import BF16, F16, Data, cdiv, dot, rounded, some, tiles


# ---------------------------------------------------------------- gemm_quant.tk

# Tensor cores keep 14 bits of the largest when they add dots of fp8: each of the four
# instructions of a step of 128 may lose 2^-13 of the magnitudes.
FP8_SUM = 4 * 2.0**-13


def fp8_block(t, M, N, K):
    a, b = (t.randn(n, K, dtype=torch.float8_e4m3fn) for n in (M, N))
    sa, sb = t.rand(M, K // 128), t.rand(N // 128, K // 128)
    sa, sb = padded(t, sa), padded(t, sb)
    c = t.empty(M, N, dtype=BF16)
    rows = some(M, 64, t.device)

    def wants():
        x = a[rows].double() * sa[rows, :K // 128].double().repeat_interleave(128, 1)
        y = b.double() * sb[:, :K // 128].double().repeat_interleave(128, 0) \
            .repeat_interleave(128, 1)
        want, bound = dot(x, y.t(), FP8_SUM)
        return [("c", lambda q: c[rows], want, rounded(want, bound, BF16))]
    return Data(dict(a_ptr=a, b_ptr=b, c_ptr=c, as_ptr=sa, bs_ptr=sb, M=M, N=N, K=K,
                     stride_as=sa.shape[1], stride_bs=sb.shape[1]), [c], tiles(M, N),
                2 * M * N * K, wants)


def padded(t, x):
    """With rows of a multiple of 16."""
    out = torch.zeros(x.shape[0], cdiv(x.shape[1], 16) * 16, device=t.device)
    out[:, :x.shape[1]] = x
    return out


def int8_dequant(t, M, N, K):
    a, b = (t.ints(-127, 128, n, K, dtype=torch.int8) for n in (M, N))
    sa, sb = t.rand(M) / 128, t.rand(N) / 128
    c = t.empty(M, N)
    rows = some(M, 64, t.device)

    def wants():
        want = a[rows].double() @ b.double().t() * sa[rows, None].double() * sb.double()
        return [("c", lambda q: c[rows], want, rounded(want, 2.0**-22 * want.abs(), F16))]
    return Data(dict(a_ptr=a, b_ptr=b, c_ptr=c, as_ptr=sa, bs_ptr=sb, M=M, N=N, K=K), [c],
                tiles(M, N), 2 * M * N * K, wants)


def w4a16(t, M, N, K, group=128):
    a, scale = t.randn(M, K), (t.rand(K // group, N) * K**-0.5).to(F16)
    q4 = t.ints(0, 16, K, N)
    word = torch.zeros(K // 8, N, dtype=torch.int32, device=t.device)
    for i in range(8):
        word |= q4[i::8] << (4 * i)
    c = t.empty(M, N)
    rows = some(M, 32, t.device)
    b = ((q4 - 8).to(F16) * scale.repeat_interleave(group, 0))  # as exact as the kernel

    def wants():
        want, bound = dot(a[rows], b)
        return [("c", lambda q: c[rows], want, rounded(want, bound, F16))]
    return Data(dict(a_ptr=a, q_ptr=word, s_ptr=scale, c_ptr=c, M=M, N=N, K=K), [c],
                tiles(M, N), 2 * M * N * K, wants)


# ---------------------------------------------------------------- gemm_grouped.tk

def grouped(t, shapes):
    mats = [(t.randn(m, k), t.randn(k, n), t.empty(m, n)) for m, n, k in shapes]
    addr = t.tensor([[x.data_ptr() for x in g] for g in mats], torch.int64)
    size = t.tensor(shapes)
    stride = t.tensor([[x.stride(0) for x in g] for g in mats])

    def wants():
        out = []
        for i, (a, b, c) in enumerate(mats):
            rows = some(a.shape[0], 32, t.device)
            want, bound = dot(a[rows], b)
            out.append((f"c{i}", lambda q, c=c, rows=rows: c[rows], want,
                        rounded(want, bound, F16)))
        return out
    return Data(dict(addr_ptr=addr, size_ptr=size, stride_ptr=stride, groups=len(shapes)),
                [g[2] for g in mats], lambda q: (q["PROGRAMS"],),
                sum(2 * m * n * k for m, n, k in shapes), wants)


def moe(t, tokens, experts, N, K, top=2):
    x = t.randn(tokens, K, dtype=BF16)
    w = t.randn(experts, N, K, dtype=BF16, scale=K**-0.5)
    pairs = tokens * top
    choice = t.ints(0, experts, pairs).cpu()
    rows, owner = [], []
    for e in range(experts):
        mine = (choice == e).nonzero().flatten().tolist()
        mine += [pairs] * (-len(mine) % 128)
        rows += mine
        owner += [e] * (len(mine) // 128)
    y = t.empty(pairs, N, dtype=BF16)
    pick = some(pairs, 128, t.device)
    whose = choice.to(t.device)[pick].long()

    def wants():
        want, bound = torch.empty(len(pick), N, dtype=torch.float64, device=t.device), None
        bound = torch.empty_like(want)
        for e in whose.unique():
            at = whose == e
            want[at], bound[at] = dot(x[pick[at] // top], w[e].t())
        return [("y", lambda q: y[pick], want, rounded(want, bound, BF16))]
    return Data(dict(x_ptr=x, w_ptr=w, y_ptr=y, rows_ptr=t.tensor(rows),
                     expert_ptr=t.tensor(owner), pairs=pairs, N=N, K=K, stride_we=N * K),
                [y], lambda q: (cdiv(len(rows), q["BLOCK_M"]) * cdiv(N, q["BLOCK_N"]),),
                2 * pairs * N * K, wants)


def segments(t, lengths, K, N):
    rows = sum(lengths)
    x, dy = t.randn(rows, K, dtype=BF16), t.randn(rows, N, dtype=BF16)
    start = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    dw = t.empty(len(lengths), K, N, dtype=BF16)
    pick = some(K, 32, t.device)

    def wants():
        out = []
        for i in range(len(lengths)):
            mine = slice(start[i], start[i + 1])
            want, bound = dot(x[mine][:, pick].t(), dy[mine])
            out.append((f"dw{i}", lambda q, i=i: dw[i, pick], want,
                        rounded(want, bound, BF16)))
        return out
    return Data(dict(x_ptr=x, dy_ptr=dy, dw_ptr=dw, start_ptr=t.tensor(start), K=K, N=N),
                [dw], lambda q: (*tiles(K, N)(q), len(lengths)), 2 * rows * K * N, wants)


def bsr(t, rows, cols, N, share, block=64):
    choose = random.Random(5)
    lists = [sorted(j for j in range(cols) if choose.random() < share) for _ in range(rows)]
    begin = [sum(map(len, lists[:i])) for i in range(rows + 1)]
    value, b = t.randn(begin[-1], block, block), t.randn(cols * block, N)
    c = t.empty(rows * block, N)
    pick = sorted({int(i) for i in some(rows, 4, "cpu")})

    def wants():
        out = []
        for r in pick:
            a = value[begin[r]:begin[r + 1]].transpose(0, 1).reshape(block, -1)
            x = b.view(cols, block, N)[lists[r]].reshape(-1, N)
            want, bound = dot(a, x)
            out.append((f"row {r}", lambda q, r=r: c[r * block:(r + 1) * block], want,
                        rounded(want, bound, F16)))
        return out
    return Data(dict(value_ptr=value, col_ptr=t.tensor(sum(lists, [])),
                     begin_ptr=t.tensor(begin), b_ptr=b, c_ptr=c, rows=rows, N=N), [c],
                lambda q: (q["PROGRAMS"], cdiv(N, q["BLOCK_N"])),
                2 * begin[-1] * block * block * N, wants)
