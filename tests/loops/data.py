"""Arguments of a launch, and what must come out.

References are in fp64, of a part of the result where all of it would take long. Bounds are
those of the arithmetic: half an ulp of what is rounded and 2^-24 of each of the sums in fp32,
applied to the magnitudes of what is added up.
"""
import math

import torch

U = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}
F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
FLOOR = {F16: 2.0**-25, BF16: 2.0**-133, F32: 2.0**-149}


def cdiv(a, b):
    return -(-a // b)


class Maker:
    """Makes tensors on a device. place(tensor) moves it to where a launch may use it."""

    def __init__(self, device, place=None, seed=1):
        self.device, self.place, self.sms = device, place or (lambda x: x), 132
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
        return self.place(out)

    def ints(self, low, high, *shape, dtype=torch.int32):
        return torch.randint(low, high, shape, dtype=dtype, device=self.device,
                             generator=self.random)

    def rand(self, *shape, low=0.0, high=1.0):
        r = torch.rand(shape, device=self.device, generator=self.random)
        return r * (high - low) + low

    def empty(self, *shape, dtype=F16):
        return self.place(torch.empty(shape, dtype=dtype, device=self.device))

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
