"""What the programs beside this one are launched with: random tensors on DEVICE (cuda; cpu: small
ones), and the cases that the arguments name."""

import os
import sys

import torch
import triton

DEV = os.environ.get("DEVICE", "cuda")
SMALL = DEV == "cpu"
bf16, fp16, f32 = torch.bfloat16, torch.float16, torch.float32
cd = triton.cdiv
torch.manual_seed(0)


def pick(large, small):
    return small if SMALL else large


# Triton's interpreter multiplies the bits of bf16 in tl.dot
half = pick(bf16, fp16)


def rn(*shape, dtype=bf16, scale=1.0):
    return (torch.randn(*shape, device=DEV, dtype=f32) * scale).to(dtype)


def ri(low, high, *shape, dtype=torch.int32):
    return torch.randint(low, high, shape, device=DEV, dtype=dtype)


def ze(*shape, dtype=f32):
    return torch.zeros(*shape, device=DEV, dtype=dtype)


def run(names):
    """Runs the functions case_NAME of a program that its arguments name, or all."""
    cases = {n[5:]: f for n, f in names.items() if n.startswith("case_")}
    if "--list" in sys.argv:
        print("\n".join(cases))
        return
    for name in [a for a in sys.argv[1:] if a in cases] or cases:
        cases[name]()
