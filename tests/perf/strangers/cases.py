"""What the cases share. A case returns its launch, PyTorch's call, the result, and what it
should be in fp64 (None: not compared).
"""

import torch
import triton

f32, bf16 = torch.float32, torch.bfloat16
cd = triton.cdiv
CASES = []


def case(f):
    CASES.append(f)
    return f


def rn(*shape, dt=f32):
    return torch.randn(*shape).to(dt)
