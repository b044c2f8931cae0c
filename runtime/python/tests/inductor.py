"""Small models under torch.compile with inductor's Triton kernels run by sdc.

    python inductor.py [--device cpu] [--mode reduce-overhead] [MODEL ...]

Forward and backward beside eager; a line each with the worst difference, the number of
kernels, and on a GPU the time of forward passes beside Triton's, in shuffled rounds:
medians, and Triton's time over sdc's with its interval.
"""

import argparse
import random
import statistics
import sys
import time

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.w


class Llama(nn.Module):
    """Two blocks: RMS norm, rotary attention, gated MLP."""

    def __init__(self, n=64, heads=4):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(100, n)
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "a": Norm(n), "qkv": nn.Linear(n, 3 * n, bias=False),
            "o": nn.Linear(n, n, bias=False), "b": Norm(n),
            "up": nn.Linear(n, 4 * n, bias=False),
            "down": nn.Linear(2 * n, n, bias=False)}) for _ in range(2))

    def forward(self, x):
        x = self.embed(x)
        B, T, n = x.shape
        angle = torch.arange(T, device=x.device)[:, None] / 10 ** torch.linspace(
            0, 3, n // self.heads // 2, device=x.device)
        cos, sin = angle.cos(), angle.sin()

        def turn(v):
            a, b = v.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

        for block in self.blocks:
            q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2)
                       for t in block["qkv"](block["a"](x)).chunk(3, -1))
            s = turn(q) @ turn(k).transpose(2, 3) / q.shape[-1] ** 0.5
            s = s.masked_fill(~torch.ones_like(s, dtype=torch.bool).tril(), -torch.inf)
            y = (s.softmax(-1) @ v).transpose(1, 2).reshape(B, T, n)
            x = x + block["o"](y)
            up, gate = block["up"](block["b"](x)).chunk(2, -1)
            x = x + block["down"](up * nn.functional.silu(gate))
        return x


class Vit(nn.Module):
    def __init__(self, n=48):
        super().__init__()
        self.patch = nn.Conv2d(3, n, 4, 4)
        self.layer = nn.TransformerEncoderLayer(n, 4, 96, dropout=0.0, batch_first=True)
        self.head = nn.Linear(n, 10)

    def forward(self, x):
        return self.head(self.layer(self.patch(x).flatten(2).mT).mean(1))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.GroupNorm(4, 16),
                                  nn.SiLU())
        self.up = nn.ConvTranspose2d(16, 16, 2, 2)
        self.out = nn.Conv2d(19, 3, 3, 1, 1)

    def forward(self, x):
        return self.out(torch.cat([x, self.up(self.down(x))], 1))


class Moe(nn.Module):
    def __init__(self, n=32, experts=4):
        super().__init__()
        self.gate = nn.Linear(n, experts)
        self.w = nn.Parameter(torch.randn(experts, n, n) / n ** 0.5)

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        top, index = p.topk(2, -1)
        top = top / top.sum(-1, keepdim=True)
        y = torch.einsum("btn,enm->btem", x, self.w)
        chosen = y.gather(2, index[..., None].expand(*index.shape, y.shape[-1]))
        return (torch.relu(chosen) * top[..., None]).sum(2)


class Rnn(nn.Module):
    def __init__(self, n=32):
        super().__init__()
        self.w, self.u = nn.Linear(n, n), nn.Linear(n, n)

    def forward(self, x):
        h = torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            h = torch.tanh(self.w(x[:, t]) + self.u(h))
        return h


class Diffusion(nn.Module):
    """A block of a diffusion transformer: norms that a condition shifts and scales."""

    def __init__(self, n=64):
        super().__init__()
        self.norm = nn.LayerNorm(n, elementwise_affine=False)
        self.ada = nn.Linear(n, 3 * n)
        self.mlp = nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(approximate="tanh"),
                                 nn.Linear(2 * n, n))

    def forward(self, x):
        shift, scale, gate = self.ada(nn.functional.silu(x.mean(1))).chunk(3, -1)
        h = self.norm(x) * (1 + scale[:, None]) + shift[:, None]
        return x + gate[:, None] * self.mlp(h)


def models():
    """Name: model and input."""
    image = torch.randn(2, 3, 32, 32)
    rows = torch.randn(4, 16, 32)
    return {
        "mlp": (nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64),
                              nn.Linear(64, 10), nn.LogSoftmax(-1)), torch.randn(20, 32)),
        "llama": (Llama(), torch.randint(100, (2, 24))),
        "vit": (Vit(), image),
        "unet": (Unet(), image),
        "moe": (Moe(), rows),
        "rnn": (Rnn(), rows),
        "cnn": (nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8),
                              nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                              nn.Linear(8 * 225, 10)),
                image),
        "diffusion": (Diffusion(), torch.randn(2, 20, 64)),
    }


def gradients(f, model, x):
    """Result and gradients of the parameters."""
    model.zero_grad()
    y = f(x)
    y.square().mean().backward()
    return [y.detach(), *(p.grad.clone() for p in model.parameters()
                          if p.grad is not None)]


def backend(mode):
    """A backend of its own, so that code of two compilers lives side by side: dynamo
    takes what it has compiled where the backend is the same one."""
    def compile_fx(graph, inputs):
        import torch._inductor.compile_fx as inductor
        options = torch._inductor.list_mode_options(mode) if mode else {}
        return inductor.compile_fx(graph, inputs, config_patches=options)
    return compile_fx


def forward_ms(f, x, calls):
    """Milliseconds of a forward pass, one behind the other."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        f(x)
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls * 1e3


def beside(ways, x, rounds=25):
    """Medians of shuffled rounds, and the ratio of the first two with its interval: 19 of
    20 times the median is between those."""
    with torch.no_grad():
        for f in ways:
            forward_ms(f, x, 5)
        calls = max(1, int(5 / max(forward_ms(f, x, 5) for f in ways)))
        times = [[0.0] * len(ways) for _ in range(rounds)]
        for row in times:
            for i in random.sample(range(len(ways)), len(ways)):
                row[i] = forward_ms(ways[i], x, calls)
    ratios = sorted(row[0] / row[1] for row in times)
    beyond = int(rounds / 2 - 0.98 * rounds ** 0.5)
    return [statistics.median(column) for column in zip(*times)], (
        statistics.median(ratios), ratios[beyond], ratios[-1 - beyond])


def worst_of(f, model, x, wanted):
    """The worst difference beside eager's results and gradients."""
    return max(((g - w).abs().max() / (w.abs().max() + 1e-9)).item()
               for g, w in zip(gradients(f, model, x), wanted))


def one(name, model, x, a):
    """A line about a model; is it right?"""
    import sdc
    from sdc import inductor
    wanted = gradients(model, model, x)
    ways = []
    if a.device == "cuda" and not a.stub:
        torch._dynamo.reset()
        ways.append(torch.compile(model, fullgraph=True, backend=backend(a.mode)))
        with torch.no_grad():
            ways[0](x)
    made = []
    build = inductor.compile

    def kept(*args, **options):
        made.append(build(*args, **options))
        return made[-1]

    inductor.compile = kept
    sdc.install(a.device)
    try:
        if not ways:  # not before install(): dynamo looks whether there is a Triton
            torch._dynamo.reset()
        ways.append(torch.compile(model, fullgraph=True, backend=backend(a.mode)))
        worst = worst_of(ways[-1], model, x, wanted)
        kernels = len({b.launcher for b in made if b.launched})
        good = worst < 2e-3 and kernels > 0
        line = f"{name:10} {'ok' if good else 'WRONG':6} worst {worst:.1e}, " \
               f"{kernels} kernels"
        if len(ways) == 2:
            with torch.no_grad():
                ways[1](x)
            (theirs, ours), (ratio, low, high) = beside(ways, x)
            line += f", forward Triton {theirs:.4f} ms, sdc {ours:.4f} ms, " \
                    f"{ratio:.3f} [{low:.3f}, {high:.3f}]"
        print(line, flush=True)
    finally:
        inductor.compile = build
        sdc.uninstall()
    return good


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--device", default="cpu")
    p.add_argument("--stub", action="store_true", help="as if Triton were missing")
    p.add_argument("--mode", help="of torch.compile; reduce-overhead: CUDA graphs")
    p.add_argument("models", nargs="*")
    a = p.parse_args()
    torch.manual_seed(0)
    if a.stub:
        sys.modules["triton"] = None
    failed = 0
    for name, (model, x) in models().items():
        if a.models and name not in a.models:
            continue
        try:
            failed += not one(name, model.to(a.device), x.to(a.device), a)
        except Exception as e:
            failed += 1
            if a.models:
                raise
            print(f"{name:10} FAILED {type(e).__name__}: {str(e)[:1500]}", flush=True)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
