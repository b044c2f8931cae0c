"""A user's own kernels under torch.compile: called, and as torch.library operators.

    python user_kernels.py [--stub]

Says what torch warned of; nothing, where it knows which arguments a kernel writes.
"""

import argparse
import sys

p = argparse.ArgumentParser(description=__doc__)
p.add_argument("--device", default="cpu")
p.add_argument("--stub", action="store_true", help="as if Triton were missing")
options = p.parse_args()
if options.stub:
    sys.modules["triton"] = None
import sdc
sdc.install(options.device)
import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.autotune([triton.Config({"BLOCK": b}) for b in (128, 512)], key=["n"])
@triton.jit
def scale_kernel(x, out, s, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    tl.store(out + i, tl.load(x + i, mask=m) * s, mask=m)


@triton_op("sdc_tests::add", mutates_args={})
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(add_kernel)[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), 256)
    return out


def f(x, y):
    z, out = torch.relu(add(x.sin(), y)), torch.empty_like(x)
    scale_kernel[lambda m: (triton.cdiv(x.numel(), m["BLOCK"]),)](z, out, 2.0, x.numel())
    return out.cos()


x, y = (torch.randn(1000, device=options.device) for _ in "xy")
wanted = (2 * torch.relu(x.sin() + y)).cos()
for g in (f, torch.compile(f, fullgraph=True)):
    worst = (g(x, y) - wanted).abs().max().item()
    print("ok" if worst < 1e-5 else "WRONG", worst)
from torch._higher_order_ops import triton_kernel_wrap as wrap
arguments = dict(x=x, y=y, out=y, n=1000, BLOCK=256)
if hasattr(wrap, "identify_accessed_tensors"):  # since torch 2.12
    found = wrap.identify_accessed_tensors(add_kernel, arguments, {})
    written = [d.name for d in found.read_writes.writes]
else:
    written = wrap.identify_mutated_tensors(add_kernel, arguments, {})
print("written:", *sorted(written))
