"""What tests/gpu/loops.py launches for each line of tests/loops/list, and what must come out.

    for loop in loops(): loop.name, loop.configs, loop.signature
    data = loop.make(Maker("cuda"), "full")         arguments of one launch
    data.check()                                    None, or a complaint, and the error

References are in fp64, of a part of the result where all of it would take long. Bounds are
those of the arithmetic: `u` is half an ulp of what is rounded, 2^-24 of each of the sums in
fp32, applied to the products of the operands' magnitudes.
"""
import math
import os
import random

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
U = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32,
         "fp8e4nv": torch.float8_e4m3fn, "i8": torch.int8, "u8": torch.uint8,
         "i32": torch.int32, "i64": torch.int64}
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
FLOOR = {F16: 2.0**-25, BF16: 2.0**-133, F32: 2.0**-149}


def cdiv(a, b):
    return -(-a // b)


class Config:
    """One of the grid: the constexprs, warps and stages."""

    def __init__(self, line):
        warps, stages, text = line.split()
        self.warps, self.stages = int(warps), int(stages)
        self.constants = {k: int(v) for k, v in (c.split("=") for c in text.split(","))}

    def __str__(self):
        short = " ".join(f"{k.replace('BLOCK_', '')}={v}" for k, v in self.constants.items())
        return f"{short} w{self.warps} s{self.stages}"


class Loop:
    """A kernel of the list: file, kernel, signature {name: type}, configs."""

    def __init__(self, line):
        self.file, self.kernel, text = line.split()
        self.name = f"{self.file}.{self.kernel}"
        self.path = os.path.join(HERE, self.file + ".tk")
        self.signature = dict(p.split("=") for p in text.split(","))
        self.configs = []

    def make(self, maker, size):
        """The arguments at a size, "full" or "tiny"."""
        dims, of = MAKERS[self.name]
        data = of(maker, **dims[size])
        names = list(self.signature)
        assert list(data.args) == names, (self.name, list(data.args), names)
        return data

    def values(self, data, config):
        """The arguments in order; functions among them are of the configuration."""
        values = [v(config.constants) if callable(v) else v for v in data.args.values()]
        for name, value, kind in zip(self.signature, values, self.signature.values()):
            assert kind == kind_of(value), f"{self.name}: {name} is {kind_of(value)}"
        return values


def kind_of(value):
    """As the list spells it."""
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, int):
        return "i32:16" if value % 16 == 0 else "i32"
    name = next(k for k, v in TYPES.items() if v == value.dtype)
    return f"*{name}:16" if value.data_ptr() % 16 == 0 else f"*{name}"


def loops():
    found = []
    with open(os.path.join(HERE, "list")) as f:
        for line in f:
            if line.startswith(" "):
                found[-1].configs.append(Config(line))
            elif not line.startswith("#"):
                found.append(Loop(line))
    return found


class Maker:
    """Makes tensors on a device."""

    def __init__(self, device, seed=1):
        self.device, self.sms = device, 132
        self.random = torch.Generator(device=device)
        self.random.manual_seed(seed)

    def randn(self, *shape, dtype=F16, scale=1.0):
        # in pieces: fp32 of the largest arrays would be several times their size
        out = torch.empty(shape, dtype=dtype, device=self.device)
        flat, step = out.view(-1), 1 << 26
        for i in range(0, flat.numel(), step):
            n = min(step, flat.numel() - i)
            part = torch.randn(n, device=self.device, generator=self.random) * scale
            flat[i:i + n] = part.to(dtype)
        return out

    def ints(self, low, high, *shape, dtype=torch.int32):
        return torch.randint(low, high, shape, dtype=dtype, device=self.device,
                             generator=self.random)

    def rand(self, *shape, low=0.0, high=1.0):
        r = torch.rand(shape, device=self.device, generator=self.random)
        return r * (high - low) + low

    def empty(self, *shape, dtype=F16):
        return torch.empty(shape, dtype=dtype, device=self.device)

    def tensor(self, values, dtype=torch.int32):
        return torch.tensor(values, dtype=dtype, device=self.device)


class Data:
    """args {name: tensor, number or a function of the constexprs}; grid, of the constexprs;
    outs, written; zeros, of them those to which is added; work, operations; wants: () ->
    [(name, got, want, bound)], all in double."""

    def __init__(self, args, outs, grid, work, wants, zeros=()):
        self.args, self.outs, self.grid, self.work = args, outs, grid, work
        self.wants, self.zeros, self.cached = wants, zeros, None

    def poison(self):
        for t in self.outs:
            if any(t is z for z in self.zeros):
                t.zero_()
            else:
                t.fill_(float("nan") if t.dtype.is_floating_point else -7)

    def check(self, q):
        """(complaint or None, largest error over its bound)"""
        worst, text = 0.0, None
        if self.cached is None:
            self.cached = self.wants()
        for name, got, want, bound in self.cached:
            got = got(q) if callable(got) else got
            off = (got.double() - want).abs()
            ratio = off / bound.clamp(min=1e-300)
            ratio = torch.where(off == 0, torch.zeros_like(ratio), ratio)
            ratio = torch.where(ratio.isnan(), torch.full_like(ratio, math.inf), ratio)
            top = ratio.max().item()
            if top > 1:
                at = int(ratio.flatten().argmax())
                text = text or (f"{name}: {int((ratio > 1).sum())} of {want.numel()} wrong, "
                                f"{got.double().flatten()[at].item():.7g} instead of "
                                f"{want.flatten()[at].item():.7g}")
            worst = max(worst, top)
        return text, worst


def some(n, most, device):
    """Up to `most` of n indices, first and last among them."""
    return torch.linspace(0, n - 1, min(n, most), device=device).round().long().unique()


def dot(a, b, extra=0.0):
    """a b in fp64 and the bound of its sum in fp32 with `extra`, relative to |a| |b|."""
    a, b = a.double(), b.double()
    return a @ b, (a.abs() @ b.abs()) * (2.0**-24 * (a.shape[-1] + 8) + extra)


def rounded(want, bound, dtype):
    """The bound once `want`, known within `bound`, is rounded to dtype."""
    return bound + U[dtype] * (want.abs() + bound) + FLOOR[dtype]


def tiles(m, n):
    return lambda q: (cdiv(m, q["BLOCK_M"]) * cdiv(n, q["BLOCK_N"]),)


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


# ---------------------------------------------------------------- gemm_quant.tk

# Tensor cores add products of fp8 with 14 bits of the largest: so much of a step's sum.
FP8_SUM = 2.0**-12


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


# ---------------------------------------------------------------- recurrent.tk

def chunk_state(t, batch, L, heads, P=64, S=128, chunk=256):
    x = t.randn(batch, L, heads, P, dtype=BF16)
    b = t.randn(batch, L, S, dtype=BF16)
    dt = t.rand(batch, heads, L, low=0.1)
    log = (-0.05 * t.rand(batch, heads, L)).view(batch, heads, -1, chunk).cumsum(3)
    log = log.view(batch, heads, L).contiguous()
    chunks = L // chunk
    out = t.empty(batch, chunks, heads, P, S, dtype=F32)
    pick = some(batch, 2, t.device)

    def wants():
        g = log[pick].view(-1, heads, chunks, chunk).double()
        w = torch.exp(g[..., -1:] - g) * dt[pick].view_as(g).double()
        bb = b[pick].double().view(-1, 1, chunks, chunk, S) * w[..., None]
        xx = x[pick].double().view(-1, chunks, chunk, heads, P).permute(0, 3, 1, 4, 2)
        want, bound = dot(xx, bb, U[BF16] + 2.0**-20)
        return [("state", lambda q: out[pick], want.transpose(1, 2), bound.transpose(1, 2))]
    return Data(dict(x_ptr=x, b_ptr=b, dt_ptr=dt, sum_ptr=log, out_ptr=out, L=L,
                     heads=heads), [out],
                lambda q: (P // q["BLOCK_P"] * (S // q["BLOCK_S"]), chunks, batch * heads),
                2 * batch * L * heads * P * S, wants)


def lower(n, device):
    return torch.ones(n, n, device=device, dtype=torch.float64).tril()


def linear_fwd(t, H, T, K=128, V=128, chunk=64):
    q, k = (t.randn(H, T, K, scale=K**-0.5) for _ in range(2))
    v, o, scale = t.randn(H, T, V), t.empty(H, T, V), 0.5
    pick = some(H, 2, t.device)

    def wants():
        # every weight, in a chunk or through the state, is rounded to fp16 once
        want, size = [], []
        for h in pick:
            for store, a, b, c in ((want, q[h], k[h], v[h]),
                                   (size, q[h].abs(), k[h].abs(), v[h].abs())):
                w = (a.double() @ b.double().t()).tril()
                store.append(w @ c.double())
        want, size = torch.stack(want) * scale, torch.stack(size) * scale
        bound = size * (U[F16] + 2.0**-24 * (T + K)) + FLOOR[F16] * chunk * 8
        return [("o", lambda q: o[pick], want, rounded(want, bound, F16))]
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, o_ptr=o, T=T, scale=scale), [o],
                lambda q: (V // q["BLOCK_V"], H), 4 * H * T * (K * V + 32 * (K + V)), wants)


def linear_bwd(t, H, T, D=64):
    q, k, v, do = (t.randn(H, T, D, dtype=BF16, scale=D**-0.5) for _ in range(4))
    dq, dk, dv = (t.empty(H, T, D, dtype=BF16) for _ in range(3))
    pick = some(H, 2, t.device)
    states = {}

    def state(q):  # at the beginning of the chunks of this configuration
        c = q["CHUNK"]
        if c not in states:
            kv = k.view(H, -1, c, D).float().transpose(2, 3) @ v.view(H, -1, c, D).float()
            begin = kv.cumsum(1) - kv
            states[c] = begin.to(BF16)
        return states[c]

    def wants():
        a, b, c, d = (x[pick].double() for x in (q, k, v, do))

        def grads(a, b, c, d):
            qk, dp = (a @ b.mT).tril(), (d @ c.mT).tril()
            return dp @ b, dp.mT @ a, qk.mT @ d
        # weights and states are rounded once; the state that is given in fp32 before
        rel = U[BF16] + 2.0**-24 * (2 * T + D)
        return [(n, lambda q, x=x: x[pick], w, rounded(w, s * rel, BF16)) for n, x, w, s in
                zip(("dq", "dk", "dv"), (dq, dk, dv), grads(a, b, c, d),
                    grads(a.abs(), b.abs(), c.abs(), d.abs()))]
    return Data(dict(q_ptr=q, k_ptr=k, v_ptr=v, do_ptr=do, state_ptr=state, dq_ptr=dq,
                     dk_ptr=dk, dv_ptr=dv, T=T), [dq, dk, dv], lambda q: (H,),
                2 * H * T * D * (4 * D + 5 * 64), wants)


def delta_fwd(t, H, T, K=128, V=128, chunk=64):
    q, k, w = (t.randn(H, T, K, dtype=BF16, scale=s * K**-0.5) for s in (1, 1, 0.25))
    u, o = t.randn(H, T, V, dtype=BF16), t.empty(H, T, V, dtype=BF16)
    g = (-0.1 * t.rand(H, T)).view(H, -1, chunk).cumsum(2).view(H, T).contiguous()
    pick = some(H, 2, t.device)

    def wants():
        """The recurrence in fp64, and beside it what the state may be off (es)."""
        ub, uf = U[BF16], 2.0**-24 * (K + chunk)
        s = torch.zeros(len(pick), K, V, dtype=torch.float64, device=t.device)
        es, want, bound = torch.zeros_like(s), [], []
        low = lower(chunk, t.device)
        for i in range(0, T, chunk):
            a, b, c, d = (x[pick, i:i + chunk].double() for x in (q, k, w, u))
            gg = g[pick, i:i + chunk].double()
            last = gg[:, -1:, None]
            e1 = es + ub * (s.abs() + es)
            fresh = d - c @ s
            ef = c.abs() @ (e1 + uf * s.abs()) + 2.0**-23 * d.abs()
            weight = torch.exp(gg[:, :, None] - gg[:, None, :]) * low
            p = (a @ b.mT) * weight
            size = (a.abs() @ b.abs().mT) * weight
            decay = torch.exp(gg)[..., None]
            want.append((a @ s) * decay + p @ fresh)
            bound.append((a.abs() @ (e1 + uf * s.abs())) * decay + p.abs() @ (
                ef * (1 + ub) + ub * fresh.abs()) + (p.abs() * ub + size * 2 * uf)
                @ (fresh.abs() + ef))
            keep = torch.exp(last - gg[..., None])
            s_new = s * torch.exp(last) + b.mT @ (fresh * keep)
            es = es * torch.exp(last) + b.abs().mT @ ((ef + (ub + uf) * fresh.abs()) * keep) \
                + 2.0**-22 * s_new.abs()
            s = s_new
        want, bound = torch.cat(want, 1), torch.cat(bound, 1)
        return [("o", lambda q: o[pick], want, rounded(want, bound, BF16))]
    return Data(dict(q_ptr=q, k_ptr=k, w_ptr=w, u_ptr=u, g_ptr=g, o_ptr=o, T=T), [o],
                lambda q: (V // q["BLOCK_V"], H),
                2 * H * T * (3 * K * V + chunk * (K + V)), wants)


# ---------------------------------------------------------------- rows.tk

def norm_fwd(t, rows, cols):
    x, w, b = t.randn(rows, cols), t.randn(cols, dtype=F32), t.randn(cols, dtype=F32)
    y, eps, pick = t.empty(rows, cols), 1e-5, some(rows, 64, t.device)

    def wants():
        a = x[pick].double()
        want = torch.nn.functional.layer_norm(a, (cols,), w.double(), b.double(), eps)
        size = (want - b.double()).abs() + w.double().abs() + b.double().abs()
        # E[x^2] - E[x]^2 of values about 0
        bound = size * 2.0**-24 * (cols // 1024 + 24)
        return [("y", lambda q: y[pick], want, rounded(want, bound, F16))]
    return Data(dict(x_ptr=x, w_ptr=w, b_ptr=b, y_ptr=y, cols=cols, eps=eps), [y],
                lambda q: (rows,), 8 * rows * cols, wants)


def norm_bwd(t, rows, cols):
    x, dy = (t.randn(rows, cols, dtype=BF16) for _ in range(2))
    mean = x.float().mean(1)
    rstd = torch.rsqrt(x.float().var(1, correction=0) + 1e-5)
    most = 64
    dw, db = (t.empty(most, cols, dtype=F32) for _ in range(2))

    def wants():
        hat = (x.double() - mean[:, None].double()) * rstd[:, None].double()
        part = dy.double() * hat
        rel = 2.0**-24 * (rows + 16)
        return [("dw", lambda q: dw[:q["PARTS"]].double().sum(0), part.sum(0),
                 part.abs().sum(0) * rel),
                ("db", lambda q: db[:q["PARTS"]].double().sum(0), dy.double().sum(0),
                 dy.double().abs().sum(0) * rel)]
    return Data(dict(dy_ptr=dy, x_ptr=x, mean_ptr=mean, rstd_ptr=rstd, dw_ptr=dw, db_ptr=db,
                     rows=rows, cols=cols), [dw, db],
                lambda q: (cdiv(cols, q["BLOCK_C"]), q["PARTS"]), 6 * rows * cols, wants)


def softmax_long(t, rows, cols):
    x, y = t.randn(rows, cols, dtype=BF16, scale=2.0), t.empty(rows, cols, dtype=BF16)
    pick = some(rows, 64, t.device)

    def wants():
        a = x[pick].double()
        want = torch.softmax(a, 1)
        bound = want * (2.0**-24 * cols / 8 + 2.0**-22 * (4 + (a.amax(1, True) - a)))
        return [("y", lambda q: y[pick], want, rounded(want, bound, BF16))]
    return Data(dict(x_ptr=x, y_ptr=y, cols=cols), [y], lambda q: (rows,), 5 * rows * cols,
                wants)


def cross_entropy(t, rows, cols):
    x, dx = t.randn(rows, cols, dtype=BF16, scale=2.0), t.empty(rows, cols, dtype=BF16)
    label = t.ints(0, cols, rows, dtype=torch.int64)
    loss, weight, pick = t.empty(rows, dtype=F32), 0.125, some(rows, 64, t.device)

    def wants():
        a, hit = x[pick].double(), label[pick]
        lse = torch.logsumexp(a, 1, True)
        p = torch.exp(a - lse)
        d = p.scatter_add(1, hit[:, None], -torch.ones_like(lse)) * weight
        e = 2.0**-24 * cols / 8 + 2.0**-21 + 2.0**-23 * lse.abs()
        off = weight * p * (e + 2.0**-22 * (a - lse).abs()) + 2.0**-24 * d.abs()
        own = a.gather(1, hit[:, None])
        return [("dx", lambda q: dx[pick], d, rounded(d, off, BF16)),
                ("loss", lambda q: loss[pick, None], lse - own,
                 e + 2.0**-23 * (lse.abs() + own.abs()))]
    return Data(dict(x_ptr=x, dx_ptr=dx, label_ptr=label, loss_ptr=loss, cols=cols,
                     weight=weight), [dx, loss], lambda q: (rows,), 7 * rows * cols, wants)


def top1(t, rows, cols):
    x = t.randn(rows, cols, dtype=F32)
    value, index = t.empty(rows, dtype=F32), t.empty(rows, dtype=torch.int32)

    def wants():
        v, i = x.max(1)
        none = torch.zeros(rows, dtype=torch.float64, device=t.device)
        # of equal ones any will do
        return [("value", value, v.double(), none),
                ("index", lambda q: x.gather(1, index[:, None].clamp(0, cols - 1).long())[:, 0]
                 - (index < 0) * math.inf if (index < 0).any() else
                 x.gather(1, index[:, None].clamp(0, cols - 1).long())[:, 0], v.double(),
                 none)]
    return Data(dict(x_ptr=x, value_ptr=value, index_ptr=index, rows=rows, cols=cols),
                [value, index], lambda q: (cdiv(rows, q["ROWS"]),), rows * cols, wants)


def count(t, n, each):
    x = t.ints(0, 256, n, dtype=torch.uint8)
    out = t.empty(256, dtype=torch.int32)

    def wants():
        want = sum(torch.bincount(p.long(), minlength=256) for p in x.split(1 << 24))
        return [("out", out, want.double(), torch.zeros_like(want).double())]
    return Data(dict(x_ptr=x, out_ptr=out, n=n, each=each), [out],
                lambda q: (cdiv(n, each),), n, wants, [out])


# ---------------------------------------------------------------- conv.tk

def conv2d(t, batch, H, W, C=128, F=128, R=3, S=3):
    x, w = t.randn(batch, H, W, C), t.randn(R * S * C, F, scale=(R * S * C)**-0.5)
    y, pick = t.empty(batch, H, W, F), some(batch, 2, t.device)

    def wants():
        a = torch.nn.functional.pad(x[pick].double(), (0, 0, S // 2, S // 2, R // 2, R // 2))
        a = torch.cat([a[:, r:r + H, s:s + W] for r in range(R) for s in range(S)], 3)
        want, bound = dot(a, w)
        return [("y", lambda q: y[pick], want, rounded(want, bound, F16))]
    return Data(dict(x_ptr=x, w_ptr=w, y_ptr=y, batch=batch, H=H, W=W, F=F), [y],
                lambda q: (cdiv(batch * H * W, q["BLOCK_M"]), cdiv(F, q["BLOCK_N"])),
                2 * batch * H * W * F * C * R * S, wants)


def conv1d(t, batch, T, C, width=4):
    x, w = t.randn(batch, T, C, dtype=BF16), t.randn(width, C, dtype=BF16)
    bias, y = t.randn(C, dtype=BF16), t.empty(batch, T, C, dtype=BF16)
    pick = some(batch, 1, t.device)

    def wants():
        a = torch.nn.functional.pad(x[pick].double(), (0, 0, width - 1, 0))
        terms = [a[:, i:i + T] * w[i].double() for i in range(width)]
        z = bias.double() + sum(terms)
        bound = (bias.double().abs() + sum(i.abs() for i in terms)) * 2.0**-22
        want = z * torch.sigmoid(z)
        return [("y", lambda q: y[pick], want, rounded(want, 1.1 * bound + 2.0**-21
                                                       * want.abs(), BF16))]
    return Data(dict(x_ptr=x, w_ptr=w, bias_ptr=bias, y_ptr=y, T=T, C=C), [y],
                lambda q: (C // q["BLOCK_C"], cdiv(T, q["STRETCH"]), batch),
                2 * batch * T * C * width, wants)


# ---------------------------------------------------------------- sizes

def sizes(of, full, tiny):
    return {"full": full, "tiny": tiny}, of


MAKERS = {
    "gemm.bias_gelu": sizes(bias_gelu, dict(M=4096, N=4096, K=4096),
                            dict(M=144, N=272, K=160)),
    "gemm.split_store": sizes(split_store, dict(M=512, N=1024, K=16384, splits=16),
                              dict(M=144, N=144, K=256, splits=2)),
    "gemm.split_atomic": sizes(split_atomic, dict(M=64, N=4096, K=8192),
                               dict(M=64, N=128, K=1024)),
    "gemm.persistent": sizes(persistent, dict(M=8192, N=4096, K=2048),
                             dict(M=272, N=272, K=144)),
    "gemm.stream_k": sizes(stream_k, dict(M=3072, N=3072, K=4096),
                           dict(M=256, N=256, K=4096)),
    "gemm.norm_gemm": sizes(norm_gemm, dict(M=4096, N=4096, K=4096),
                            dict(M=144, N=256, K=128)),
    "gemm.batched_small": sizes(batched_small, dict(B=2048, M=64, N=64, K=128),
                                dict(B=2, M=64, N=64, K=128)),
    "gemm_two.swiglu": sizes(swiglu, dict(M=4096, N=4096, K=4096),
                             dict(M=144, N=256, K=128)),
    "gemm_two.lora": sizes(lora, dict(M=4096, N=4096, K=4096), dict(M=128, N=256, K=128)),
    "gemm_two.mlp_chain": sizes(mlp_chain, dict(M=32768, H=2048), dict(M=144, H=256)),
    "gemm_two.norm_chain": sizes(norm_chain, dict(M=32768, heads=32), dict(M=128, heads=16)),
    "gemm_quant.fp8_block": sizes(fp8_block, dict(M=4096, N=4096, K=4096),
                                  dict(M=144, N=256, K=256)),
    "gemm_quant.int8_dequant": sizes(int8_dequant, dict(M=4096, N=4096, K=4096),
                                     dict(M=144, N=272, K=256)),
    "gemm_quant.w4a16": sizes(w4a16, dict(M=512, N=8192, K=4096), dict(M=80, N=256, K=256)),
    "gemm_grouped.grouped": sizes(
        grouped, dict(shapes=[(2048, 2048, 1024), (1024, 2048, 2048), (512, 4096, 4096),
                              (4096, 1024, 1024), (256, 4096, 2048), (128, 8192, 4096),
                              (2048, 1024, 4096), (1024, 1024, 8192), (384, 2048, 2048)]),
        dict(shapes=[(128, 256, 64), (256, 128, 128), (128, 128, 192)])),
    "gemm_grouped.moe": sizes(moe, dict(tokens=4096, experts=8, N=2048, K=2048),
                              dict(tokens=96, experts=2, N=128, K=128)),
    "gemm_grouped.segments": sizes(
        segments, dict(lengths=[1024, 300, 2000, 17, 1500, 996, 850, 1505], K=2048, N=2048),
        dict(lengths=[100, 0, 156], K=128, N=128)),
    "gemm_grouped.bsr": sizes(bsr, dict(rows=128, cols=128, N=4096, share=0.15),
                              dict(rows=16, cols=16, N=256, share=0.2)),
    "attention.kv_int8": sizes(kv_int8, dict(H=32, M=4096, N=4096), dict(H=2, M=128, N=256)),
    "attention.bias_tile": sizes(bias_tile, dict(H=32, M=2048, N=2048),
                                 dict(H=2, M=128, N=256)),
    "attention.two_terms": sizes(two_terms, dict(H=32, M=4096), dict(H=2, M=256)),
    "attention.soft_cap": sizes(soft_cap, dict(H=32, M=4096), dict(H=2, M=256)),
    "attention.window": sizes(window, dict(H=64, M=8192, size=1024),
                              dict(H=2, M=272, size=144)),
    "attention.alibi": sizes(alibi, dict(H=32, M=4096, N=4096), dict(H=4, M=256, N=256)),
    "attention.d96": sizes(d96, dict(H=32, M=4096), dict(H=2, M=256)),
    "attention.block_map": sizes(block_map, dict(H=32, M=4096), dict(H=2, M=512)),
    "decode.paged": sizes(paged, dict(batch=64, heads=8, most=2048),
                          dict(batch=2, heads=2, most=256)),
    "decode.split_fp8": sizes(split_fp8, dict(heads=64, N=8192, splits=16),
                              dict(heads=2, N=4096, splits=16)),
    "recurrent.chunk_state": sizes(chunk_state, dict(batch=8, L=4096, heads=32),
                                   dict(batch=1, L=512, heads=16)),
    "recurrent.linear_fwd": sizes(linear_fwd, dict(H=128, T=4096), dict(H=2, T=256)),
    "recurrent.linear_bwd": sizes(linear_bwd, dict(H=256, T=2048), dict(H=2, T=256)),
    "recurrent.delta_fwd": sizes(delta_fwd, dict(H=64, T=4096), dict(H=2, T=256)),
    "rows.norm_fwd": sizes(norm_fwd, dict(rows=4096, cols=12288), dict(rows=4, cols=5008)),
    "rows.norm_bwd": sizes(norm_bwd, dict(rows=16384, cols=4096), dict(rows=4096, cols=272)),
    "rows.softmax_long": sizes(softmax_long, dict(rows=2048, cols=50304),
                               dict(rows=4, cols=5008)),
    "rows.cross_entropy": sizes(cross_entropy, dict(rows=1024, cols=128256),
                                dict(rows=4, cols=9008)),
    "rows.top1": sizes(top1, dict(rows=4096, cols=16384), dict(rows=16, cols=2064)),
    "rows.count": sizes(count, dict(n=1 << 27, each=1 << 16), dict(n=8208, each=4096)),
    "conv.conv2d": sizes(conv2d, dict(batch=64, H=57, W=57), dict(batch=16, H=5, W=5)),
    "conv.conv1d": sizes(conv1d, dict(batch=8, T=4096, C=4096), dict(batch=1, T=512, C=256)),
}
