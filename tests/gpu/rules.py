"""Kernels in which one rule of the compiler decides, a program for sdc.compare.

    python -m sdc.compare [--json rows.json] tests/gpu/rules.py [NAME,...]

What each is about stands in front of it. DEVICE=cpu takes small sizes.
"""

import os
import sys

import torch
import triton
import triton.language as tl

DEV = os.environ.get("DEVICE", "cuda")
SMALL = DEV == "cpu"
ONLY = sys.argv[1].split(",") if len(sys.argv) > 1 else []


def pick(large, small):
    return small if SMALL else large


def rn(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, dtype=torch.float32, device=DEV).to(dtype)


# Masks that 16 divides, in selects: one comparison for the elements of a thread.
@triton.jit
def masked_sums(x_ptr, w_ptr, y_ptr, n, rows, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    o = tl.arange(0, BLOCK)
    m = (r < rows)[:, None] & (o < n)[None, :]
    w = tl.load(w_ptr + o, mask=o < n, other=0.0).to(tl.float32)
    best = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for i in range(8):
        x = tl.load(x_ptr + (i * rows + r)[:, None] * n + o[None, :], mask=m, other=0.0)
        x = x.to(tl.float32)
        squares = tl.sum(tl.where(m, x * x, 0.0), 1)
        dots = tl.sum(tl.where(m, x * w[None, :], 0.0), 1)
        s = dots * tl.rsqrt(squares / n + 1e-6)
        new = tl.maximum(best, s)
        total = total * tl.exp(best - new) + tl.exp(s - new)
        best = new
    tl.store(y_ptr + r, best + tl.log(total), mask=r < rows)


def case_masked_sums():
    rows, n = pick((8192, 256), (64, 64))
    y = torch.empty(rows, dtype=torch.float32, device=DEV)
    x = rn(8, rows, n)
    block = triton.next_power_of_2(n)
    masked_sums[(triton.cdiv(rows, 16),)](x, rn(n), y, n, rows, 16, block)


# Pairs that are split, and vectors beside them.
@triton.jit
def rotate(f_ptr, x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, 2)
    f = tl.load(f_ptr + (i[:, None] * 2 + j[None, :]), mask=(i < n)[:, None], other=0.0)
    c, s = tl.split(f)
    a = tl.load(x_ptr + i * 2, mask=i < n, other=0.0).to(tl.float32)
    b = tl.load(x_ptr + i * 2 + 1, mask=i < n, other=0.0).to(tl.float32)
    tl.store(y_ptr + i * 2, a * c - b * s, mask=i < n)
    tl.store(y_ptr + i * 2 + 1, a * s + b * c, mask=i < n)


def case_rotate():
    n = pick(1 << 24, 2048)
    x = rn(2 * n)
    rotate[(n // 1024,)](rn(2 * n, dtype=torch.float32), x, torch.empty_like(x), n, 1024)


# Remainders and quotients by numbers that only the launch knows.
@triton.jit
def channels_last(x_ptr, bias_ptr, r_ptr, y_ptr, n, c, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK).to(tl.int64)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    b = tl.load(bias_ptr + i % c, mask=i < n).to(tl.float32)
    r = tl.load(r_ptr + i, mask=i < n).to(tl.float32)
    tl.store(y_ptr + i, (x + b + r).to(tl.bfloat16), mask=i < n)


@triton.jit
def channels_first(x_ptr, s_ptr, y_ptr, n, c, hw, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    s = tl.load(s_ptr + (i // hw) % c, mask=i < n).to(tl.float32)
    tl.store(y_ptr + i, x * s, mask=i < n)


@triton.jit
def heads_max(x_ptr, y_ptr, d, stride, count, BLOCK: tl.constexpr):
    best = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, count, BLOCK):
        i = first + tl.arange(0, BLOCK)
        at = tl.program_id(0) * d + (i // d) * stride + i % d
        x = tl.load(x_ptr + at, mask=i < count, other=0.0).to(tl.float32)
        best = tl.maximum(best, tl.abs(x))
    tl.store(y_ptr + tl.program_id(0), tl.max(best, 0))


def case_division():
    n, c = pick((1 << 26, 320), (4096, 64))
    x = rn(n)
    y = torch.empty_like(x)
    channels_last[(n // 1024,)](x, rn(c), x, y, n, c, 1024)
    channels_first[(n // 1024,)](x, rn(c), y, n, c, pick(4096, 16), 1024)
    heads, d, s = pick((1024, 128, 512), (2, 64, 64))
    y = torch.empty(heads, dtype=torch.float32, device=DEV)
    heads_max[(heads,)](rn(s, heads * d), y, d, heads * d, s * d, 2048, num_warps=8)


# Integers to bf16: known small ones, and any.
@triton.jit
def unpack4(w_ptr, s_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    w = tl.load(w_ptr + i // 8)
    v = ((w >> ((i % 8) * 4)) & 15).to(tl.bfloat16).to(tl.float32)
    tl.store(y_ptr + i, (v - 8.0) * tl.load(s_ptr + i // 128).to(tl.float32))


@triton.jit
def counts(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i).to(tl.bfloat16))


def case_integers():
    n = pick(1 << 26, 8192)
    w = torch.randint(-(2**31), 2**31 - 1, (n // 8,), dtype=torch.int32, device=DEV)
    y = torch.empty(n, dtype=torch.bfloat16, device=DEV)
    unpack4[(n // 1024,)](w, rn(n // 128), y, 1024)
    for x in (w, w.long(), w.to(torch.int8)):
        counts[(n // 8192,)](x, y.zero_(), 1024)


# Rows of 4096 in one warp: registers that masked loads set.
@triton.jit
def norm_row(x_ptr, r_ptr, w_ptr, b_ptr, o_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    m = o < n
    x = tl.load(x_ptr + row * n + o, mask=m, other=0.0).to(tl.float32)
    x += tl.load(r_ptr + row * n + o, mask=m, other=0.0).to(tl.float32)
    tl.store(o_ptr + row * n + o, x, mask=m)
    mean = tl.sum(x, 0) / n
    d = tl.where(m, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, 0) / n + eps)
    w = tl.load(w_ptr + o, mask=m).to(tl.float32)
    b = tl.load(b_ptr + o, mask=m).to(tl.float32)
    tl.store(y_ptr + row * n + o, (x - mean) * rstd * w + b, mask=m)


def case_norm():
    rows, n = pick((8192, 4096), (8, 256))
    x, r = rn(rows, n), rn(rows, n)
    w, b = rn(n, dtype=torch.float32), rn(n, dtype=torch.float32)
    for warps in pick((1, 2, 4, 8), (4,)):
        norm_row[(rows,)](
            x, r, w, b, torch.empty_like(x), torch.empty_like(x), n, 1e-5,
            triton.next_power_of_2(n), num_warps=warps,
        )


# Integers reduced over whole warps.
@triton.jit
def int_rows(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    o = tl.arange(0, BLOCK)
    least, total = 2147483647, 0
    for first in range(0, n, BLOCK):
        x = tl.load(x_ptr + row * n + first + o, mask=first + o < n, other=0)
        least = tl.minimum(least, tl.min(x, 0))
        total += tl.sum(x, 0)
    tl.store(y_ptr + 2 * row, least)
    tl.store(y_ptr + 2 * row + 1, total)


def case_int_rows():
    rows, n = pick((16384, 4096), (8, 64))
    x = torch.randint(-1000, 1000, (rows, n), dtype=torch.int32, device=DEV)
    y = torch.empty(2 * rows, dtype=torch.int32, device=DEV)
    int_rows[(rows,)](x, y, n, pick(1024, 64))


for name, run in list(globals().items()):
    if name.startswith("case_") and (not ONLY or name[5:] in ONLY):
        run()
