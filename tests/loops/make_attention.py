"""Arguments and references of attention.tk and decode.tk."""
import math
import random

import torch

from data import BF16, F16, F32, FLOOR, U, Data, cdiv, dot, rounded, some, tiles


# ---------------------------------------------------------------- attention.tk

def softmax_dot(s, es, live, v, kind):
    """softmax(s) v in fp64, masked by live (None: all), and the bound of a kernel that knows
    the scores within es and rounds weights to `kind`."""
    v = v.double()
    if live is not None:
        s = s.masked_fill(~live, -math.inf)
    s = s - s.max(-1, True).values
    p = torch.exp(s)
    total = p.sum(-1, True)
    p = p / total
    off = es + 2.0**-22 * s.abs().clamp(max=200) + 2.0**-20 + 2.0**-24 * s.shape[-1]
    if live is not None:
        off = off * live
    want = p @ v
    bound = (p * (off + U[kind])) @ v.abs() + (p * off).sum(-1, True) * want.abs()
    bound = bound + FLOOR[kind] / total * v.abs().sum(-2, True)
    return want, bound


def scores(q, k, scale):
    s, es = dot(q, k.transpose(-1, -2))
    return s * scale, es * scale + 2.0**-23 * (s * scale).abs()


class Part:
    """The heads and rows of a result that are looked at."""

    def __init__(self, t, o, heads=2, rows=64):
        self.o, self.heads = o, some(o.shape[0], heads, t.device)
        self.rows = some(o.shape[1], rows, t.device)

    def of(self, x):
        return x[self.heads][:, self.rows]

    def wants(self, want, bound):
        return [("o", lambda q: self.of(self.o), want, rounded(want, bound, self.o.dtype))]

    def causal(self, n):
        return self.rows[:, None] >= torch.arange(n, device=self.rows.device)


def heads_first(H, M):
    return lambda q: (cdiv(M, q["BLOCK_M"]), H)


def kv_int8(t, H, M, N, D=128):
    q, o = t.randn(H, M, D), t.empty(H, M, D)
    k, v = (t.ints(-127, 128, H, N, D, dtype=torch.int8) for _ in range(2))
    ks, vs = t.rand(H, N, low=0.5) / 64, t.rand(H, N, low=0.5) / 64
    part, scale = Part(t, o), D**-0.5

    def wants():
        h = part.heads
        s, es = scores(part.of(q), k[h].double() * ks[h, :, None].double(), scale)
        return part.wants(*softmax_dot(s, es, None,
                                       v[h].double() * vs[h, :, None].double(), F16))
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, ks_ptr=ks, vs_ptr=vs, o_ptr=o, scale=scale,
                     M=M, N=N), [o], heads_first(H, M), 4 * H * M * N * D, wants)


def bias_tile(t, H, M, N, D=64):
    q, o, bias = t.randn(H, M, D), t.empty(H, M, D), t.randn(H, M, N)
    k, v = (t.randn(H, N, D) for _ in range(2))
    part, scale = Part(t, o), D**-0.5

    def wants():
        s, es = scores(part.of(q), k[part.heads], scale)
        s = s + part.of(bias).double()
        return part.wants(*softmax_dot(s, es + 2.0**-24 * s.abs(), None, v[part.heads], F16))
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, bias_ptr=bias, o_ptr=o, scale=scale, M=M,
                     N=N), [o], heads_first(H, M), 4 * H * M * N * D, wants)


def two_terms(t, H, M, D=128, R=64):
    q, k, v = (t.randn(H, M, D, dtype=BF16) for _ in range(3))
    qr, kr, o = t.randn(H, M, R, dtype=BF16), t.randn(M, R, dtype=BF16), t.empty(
        H, M, D, dtype=BF16)
    part, scale = Part(t, o), (D + R)**-0.5

    def wants():
        h = part.heads
        s, es = scores(torch.cat([part.of(q), part.of(qr)], 2),
                       torch.cat([k[h], kr.expand(len(h), M, R)], 2), scale)
        return part.wants(*softmax_dot(s, es, part.causal(M), v[h], BF16))
    return Data(dict(q_ptr=q, qr_ptr=qr, k_ptr=k, kr_ptr=kr, v_ptr=v, o_ptr=o, scale=scale,
                     M=M), [o], heads_first(H, M), H * M * M * (2 * D + R), wants)


def soft_cap(t, H, M, D=128):
    q, k, v = (t.randn(H, M, D, dtype=BF16) for _ in range(3))
    o = t.empty(H, M, D, dtype=BF16)
    part, scale, cap = Part(t, o), 0.25, 30.0

    def wants():
        s, es = scores(part.of(q), k[part.heads], scale)
        # 1 - 2 / (exp(2x) + 1): absolute errors of some ulps of 1, times cap
        return part.wants(*softmax_dot(cap * torch.tanh(s / cap), es + cap * 2.0**-20,
                                       part.causal(M), v[part.heads], BF16))
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, o_ptr=o, scale=scale, cap=cap, M=M), [o],
                lambda q: (H, cdiv(M, q["BLOCK_M"])), 2 * H * M * M * D, wants)


def window(t, H, M, size, D=64):
    q, k, v = (t.randn(H, M, D) for _ in range(3))
    o = t.empty(H, M, D)
    part, scale = Part(t, o), D**-0.5

    def wants():
        s, es = scores(part.of(q), k[part.heads], scale)
        near = part.rows[:, None] - torch.arange(M, device=t.device) < size
        return part.wants(*softmax_dot(s, es, part.causal(M) & near, v[part.heads], F16))
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, o_ptr=o, scale=scale, M=M, size=size), [o],
                heads_first(H, M), 4 * H * M * min(size, M) * D, wants)


def alibi(t, H, M, N, group=4, D=64):
    q, o = t.randn(H, M, D), t.empty(H, M, D)
    k, v = (t.randn(H // group, N, D) for _ in range(2))
    slope = 2.0 ** -(8.0 * torch.arange(1, H + 1, device=t.device) / H)
    part, scale = Part(t, o), D**-0.5

    def wants():
        h = part.heads
        s, es = scores(part.of(q), k[h // group], scale)
        far = (part.rows[:, None] - torch.arange(N, device=t.device)).abs()
        s = s - slope[h, None, None].double() * far
        es = es + 2.0**-22 * slope[h, None, None].double() * far
        return part.wants(*softmax_dot(s, es, None, v[h // group], F16))
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, slope_ptr=slope, o_ptr=o, scale=scale, M=M,
                     N=N), [o], heads_first(H, M), 4 * H * M * N * D, wants)


def d96(t, H, M):
    q, k, v = (t.randn(H, M, 96) for _ in range(3))
    o = t.empty(H, M, 96)
    part, scale = Part(t, o), 96**-0.5

    def wants():
        s, es = scores(part.of(q), k[part.heads], scale)
        return part.wants(*softmax_dot(s, es, part.causal(M), v[part.heads], F16))
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, o_ptr=o, scale=scale, M=M), [o],
                heads_first(H, M), 2 * H * M * M * 96, wants)


def block_map(t, H, M, D=64):
    q, k, v = (t.randn(H, M, D) for _ in range(3))
    o, scale = t.empty(H, M, D), D**-0.5
    choose = random.Random(7)
    # tiles of 128 x 64 below the diagonal with a chance of 0.4; those on it are all live
    live = [[int(j >= 2 * i or choose.random() < 0.4) if j <= 2 * i + 1 else 0
             for j in range(M // 64)] for i in range(M // 128)]
    table, part = t.tensor(live), Part(t, o)

    def wants():
        s, es = scores(part.of(q), k[part.heads], scale)
        on = table.bool()[part.rows // 128].repeat_interleave(64, 1)
        return part.wants(*softmax_dot(s, es, part.causal(M) & on, v[part.heads], F16))
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, live_ptr=table, o_ptr=o, scale=scale, M=M,
                     N=M), [o], heads_first(H, M), 4 * H * sum(map(sum, live)) * 8192 * D,
                wants)


# ---------------------------------------------------------------- decode.tk

def paged(t, batch, heads, most, group=4, page=16, D=128):
    pages = most // page
    q, o = t.randn(batch, heads, group, D, dtype=BF16), t.empty(batch, heads, group, D,
                                                               dtype=BF16)
    k, v = (t.randn(batch * pages, page, heads, D, dtype=BF16) for _ in range(2))
    length = t.ints(most // 4, most + 1, batch)
    table = torch.randperm(batch * pages, generator=t.random, device=t.device) \
        .to(torch.int32).view(batch, pages)
    scale, pick = D**-0.5, some(batch, 4, t.device).tolist()

    def wants():
        out = []
        for b in pick:
            n = int(length[b])
            mine = table[b].long()
            ks, vs = (x[mine].flatten(0, 1)[:n].transpose(0, 1) for x in (k, v))
            s, es = scores(q[b], ks, scale)
            want, bound = softmax_dot(s, es, None, vs, BF16)
            out.append((f"o{b}", lambda q, b=b: o[b], want, rounded(want, bound, BF16)))
        return out
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, table_ptr=table, length_ptr=length, o_ptr=o,
                     scale=scale, heads=heads, pages=pages), [o], lambda q: (batch, heads),
                int(length.sum()) * heads * group * D * 4, wants)


def split_fp8(t, heads, N, splits, group=8, D=128):
    fp8 = torch.float8_e4m3fn
    q = t.randn(heads, group, D, dtype=BF16)
    k, v = (t.randn(heads, N, D, dtype=fp8) for _ in range(2))
    ks, vs = t.rand(heads, N, low=0.5), t.rand(heads, N, low=0.5)
    part = t.empty(heads, splits, group, D, dtype=F32)
    lse = t.empty(heads, splits, group, dtype=F32)
    scale, pick = D**-0.5, some(heads, 2, t.device)

    def together(q):
        w = torch.softmax(lse[pick].double() * math.log(2), 1)
        return (w[..., None] * part[pick].double()).sum(1)

    def wants():
        s, es = scores(q[pick], k[pick].double() * ks[pick, :, None].double(), scale)
        return [("o", together, *softmax_dot(s, es + 2.0**-20, None, v[pick].double()
                                             * vs[pick, :, None].double(), BF16))]
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, ks_ptr=ks, vs_ptr=vs, part_ptr=part,
                     lse_ptr=lse, scale=scale, N=N, splits=splits), [part, lse],
                lambda q: (heads, splits), 4 * heads * group * N * D, wants)
