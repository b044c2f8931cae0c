"""A program that is written for Triton; tests run it under sdc.install()."""

import sys

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

DEVICE = triton.runtime.driver.active.get_active_torch_device()
HALF: tl.constexpr = tl.constexpr(0.5)


@triton.jit
def halve(x):
    return x * HALF


@triton.autotune([triton.Config({"BLOCK": 64}),
                  triton.Config({"BLOCK": 128}, num_warps=8),
                  triton.Config({"BLOCK": 100})], key=["n"], reset_to_zero=["total"])
@triton.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})
@triton.jit
def sums(x, out, total, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = None if EVEN else i < n
    v = halve(tl.load(x + i, mask=m))
    tl.store(out + i, v, mask=m)
    tl.atomic_add(total, tl.sum(tl.where(i < n, v, 0.0)))


@triton.jit
def pair(values, out):
    tl.store(out, values[0] + values[1][0])


@triton.jit
def wrong(out, N: tl.constexpr):
    tl.static_assert(N < 4, "too many")
    tl.store(out, nothing)  # noqa: F821


@triton.jit
def copy(source, target, M: tl.constexpr, N: tl.constexpr):
    target.store([0, 0], source.load([0, 0]))


def test_autotune():
    x = torch.rand(1000, device=DEVICE)
    out, total = torch.empty_like(x), torch.zeros(1, device=DEVICE)
    sums[lambda m: (triton.cdiv(1000, m["BLOCK"]),)](x, out, total, 1000)
    assert torch.equal(out, x / 2)
    torch.testing.assert_close(total, out.sum()[None])
    assert sums.best_config.kwargs["BLOCK"] in (64, 128)


def test_tuple():
    out = torch.zeros(1, device=DEVICE)
    pair[(1,)]((3, (4.5, None)), out)
    assert out.item() == 7.5


def test_descriptor():
    x, y = torch.rand(16, 32, device=DEVICE), torch.empty(16, 32, device=DEVICE)
    copy[(1,)](TensorDescriptor.from_tensor(x, [16, 32]),
               TensorDescriptor.from_tensor(y, [16, 32]), 16, 32)
    assert torch.equal(x, y)


def test_warmup_and_hooks():
    kernel = triton.jit(pair.fn)
    seen = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: seen.append(len(args)))
    out = torch.zeros(1, device=DEVICE)
    made = kernel.warmup((1, (2, None)), torch.float32, grid=(1,))
    assert made.metadata.num_warps == 4
    kernel[(1,)]((1, (2, None)), out)
    assert out.item() == 3 and seen == [2, 2]


def test_launch_hooks():
    knobs = getattr(triton, "knobs", None)
    if knobs is None:
        return
    names = []

    def hook(metadata):
        names.append(metadata.get()["name"])

    knobs.runtime.launch_enter_hook.add(hook)
    out = torch.zeros(1, device=DEVICE)
    pair[(1,)]((1, (2, None)), out)
    knobs.runtime.launch_enter_hook.remove(hook)
    pair[(1,)]((1, (2, None)), out)
    assert names == ["pair"]


def test_errors():
    out = torch.zeros(1, device=DEVICE)
    for n in (3, 4):
        try:
            wrong[(1,)](out, n)
        except triton.CompilationError as e:
            assert ("nothing" if n == 3 else "too many") in str(e), e
        else:
            raise AssertionError("no error")


def test_bench():
    x = torch.rand(64, device=DEVICE)
    ms = triton.testing.do_bench(lambda: x + x, quantiles=[0.5, 0.2, 0.8], rep=2)
    assert len(ms) == 3 and ms[1] <= ms[0] <= ms[2]


if __name__ == "__main__":
    for name, f in list(globals().items()):
        if name.startswith("test_"):
            f()
            print(name)
    sys.exit(0)
