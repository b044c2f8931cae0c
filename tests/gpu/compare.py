#!/usr/bin/env python3
"""sdc and Triton from the same .tk files, side by side on one GPU, in one process and CUDA
context: results compared elementwise and with a reference, then timed in turn. One table.

    tests/gpu/compare.py --lib build/libsdc.so.0 [--only matmul,attention] [--size 4096]

A time is that of one launch between two events, behind a write of 256 MB that empties the
second-level cache and gives the host time to be ahead of the device (as Triton's do_bench
does). Every round measures everybody, one after another, so that clocks and neighbours move
all alike, in an order of its own: a GPU at its power limit slows down behind heavy work, and
in a fixed order the same one would always come behind the same. A time is the median over the
rounds of each round's median, the spread is half the distance between the quartiles of the
rounds. With --replay N a time is that of one of N launches in a CUDA graph, everybody's
captured alike, the caches warm. `ratio` is Triton's time over sdc's, the median of
the rounds' ratios: above 1, sdc is faster; in brackets what it is at least with a confidence of
95% (of order statistics). The lines "best" have the same of everybody's best configuration.
`registers` are sdc's, of a thread, with the bytes of local memory where it spills.
Baselines are cuBLAS, cuDNN and torch's own kernels where there are any.

SKIPPED without torch and a GPU; without Triton too, unless --no-triton is given.
"""
import argparse
import importlib.machinery
import importlib.util
import math
import os
import random
import statistics
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests/repro")]
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "oracle"))
import kernel_imports  # noqa: E402
import libsdc  # noqa: E402

parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter,
                                 description=__doc__)
parser.add_argument("--lib", default=os.path.join(ROOT, "build/libsdc.so.0"))
parser.add_argument("--before", metavar="LIB", help="another libsdc, such as one of an older "
                    "commit, as one more baseline; in the lines \"best\" a ratio above 1 says that "
                    "the one of --lib is faster")
parser.add_argument("--target", default="cuda", help="of sdc's code: sm_80 for the "
                    "instructions that older GPUs have, too")
parser.add_argument("--kernels", default=os.path.join(ROOT, "kernels_dsl"))
parser.add_argument("--only", default="", help="a,=b: cases whose name contains a or is b")
parser.add_argument("--size", default="", help="a,b: sizes that contain one of them")
parser.add_argument("--config", action="append", default=[], metavar="CASE=A=1,B=2,w8,s3",
                    help="replaces the configurations of the cases whose name begins so: "
                    "constexprs by name, wN warps, sN stages; may be repeated")
parser.add_argument("--rounds", type=int, default=11)
parser.add_argument("--reps", type=int, default=7, help="launches in a round")
parser.add_argument("--warm", action="store_true", help="do not empty the cache before each")
parser.add_argument("--replay", type=int, default=0, metavar="N", help="a round replays a CUDA "
                    "graph of N launches; the cache is warm")
parser.add_argument("--check", action="store_true", help="compare results, measure nothing")
parser.add_argument("--repeat", type=int, default=0, metavar="N", help="measure nothing: "
                    "launch sdc's N times, in how many are any bits others than in the first")
parser.add_argument("--list", action="store_true", help="print the cases and leave")
parser.add_argument("--no-triton", action="store_true")
parser.add_argument("--no-baselines", action="store_true")
parser.add_argument("--ptx", metavar="FOLDER", help="write sdc's PTX of every case there")
args = parser.parse_args()


class Case:
    """One kernel at one size.

    name, size    for the table and the filters
    file, kernel  where the source is
    configs       [(constexprs, num_warps, num_stages)]
    make          () -> Data; called once the case is chosen, so that memory is there then
    """

    def __init__(self, name, size, file, kernel, configs, make):
        self.name, self.size, self.file, self.kernel = name, size, file, kernel
        self.configs, self.make = configs, make


class Data:
    """The arguments of a kernel and what is known of the results.

    args       values of the parameters that are not constexpr, in order
    outs       the tensors among them that the kernel writes
    grid       constexprs -> (x, y, z)
    work       (number, "GB/s" or "TFLOP/s"): bytes or operations of a launch
    baselines      {name: function}
    check      () -> None or a complaint, about what is in outs now
    close      how far sdc and Triton may be apart: (relative to the largest, absolute)
    before     other kernels of the file that belong to it, launched and timed with it:
    after      [(kernel, constexprs, num_warps, grid, args)]
    """

    def __init__(self, args, outs, grid, work, baselines=None, check=None, close=0.0, before=(),
                 after=()):
        self.args, self.outs, self.grid, self.work = args, outs, grid, work
        self.baselines, self.check, self.close = baselines or {}, check, close
        self.before, self.after = list(before), list(after)


def cdiv(a, b):
    return -(-a // b)


# ---------------------------------------------------------------- the cases

def differs(got, want, bound):
    """A complaint when any element is further from `want` than `bound` (both in double)."""
    got = got.double()
    bad = ~((got - want).abs() <= bound)
    if not bad.any():
        return None
    at = int(bad.flatten().nonzero()[0])
    return (f"{int(bad.sum())} of {bad.numel()} wrong, first {got.flatten()[at].item():.9g} "
            f"instead of {want.flatten()[at].item():.9g}")


def unit(t):
    return {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24}[t]


def vector_add(n, dtype):
    x, y = (torch.randn(n, device="cuda", dtype=dtype) for _ in range(2))
    out = torch.empty_like(x)

    def check():
        return None if torch.equal(out, x + y) else "is not x + y"
    return Data([x, y, out, n], [out], lambda c: (cdiv(n, c["BLOCK"]),),
                (3 * x.element_size() * n, "GB/s"),
                {"torch": lambda: torch.add(x, y, out=out)}, check)


def dropout(n, dtype):
    x = torch.randn(n, device="cuda", dtype=dtype)
    out = torch.empty_like(x)
    p = 0.5

    def check():
        kept = out != 0
        share = kept.double().mean().item()
        if abs(share - (1 - p)) > 5 * math.sqrt(p * (1 - p) / n):
            return f"keeps {share}"
        return differs(out[:1 << 20], torch.where(kept, x / (1 - p), 0)[:1 << 20].double(),
                       2.0**-21 * x[:1 << 20].double().abs())
    return Data([x, out, n, p, 42], [out], lambda c: (cdiv(n, c["BLOCK"]),),
                (2 * x.element_size() * n, "GB/s"),
                {"torch": lambda: torch.nn.functional.dropout(x, p),
                 "copy": lambda: out.copy_(x)}, check, 2.0**-22)


def softmax(rows, cols, dtype):
    x = torch.randn(rows, cols, device="cuda", dtype=dtype)
    out = torch.empty_like(x)

    def check():
        some = slice(0, rows, max(1, rows // 64))
        a = x[some].double()
        want = torch.softmax(a, 1)
        high, low = a.max(1, True).values, a.min(1, True).values
        bound = want * (2.0**-23 * (8 + 2 * (high - low)) + 2.0**-24 * cols + unit(dtype))
        return differs(out[some], want, bound)
    return Data([x, out, cols, cols, rows, cols], [out], lambda c: (rows,),
                (2 * x.element_size() * rows * cols, "GB/s"),
                {"torch": lambda: torch.softmax(x, 1)}, check, 2.0**-20)


def layer_norm(rows, cols, dtype):
    x = torch.randn(rows, cols, device="cuda", dtype=dtype)
    w, b = (torch.randn(cols, device="cuda", dtype=dtype) for _ in range(2))
    out = torch.empty_like(x)
    mean, rstd = (torch.empty(rows, device="cuda") for _ in range(2))

    def check():
        some = slice(0, rows, max(1, rows // 64))
        want = torch.nn.functional.layer_norm(x[some].double(), (cols,), w.double(),
                                              b.double(), 1e-5)
        size = (want - b.double()).abs() + b.double().abs() + w.double().abs()
        return differs(out[some], want, (2.0**-24 * (cols + 8) + unit(dtype)) * size)
    return Data([x, w, b, out, mean, rstd, cols, cols, cols, 1e-5], [out, mean, rstd],
                lambda c: (rows,), (2 * x.element_size() * rows * cols, "GB/s"),
                {"torch": lambda: torch.nn.functional.layer_norm(x, (cols,), w, b)},
                check, 2.0**-18)


def layer_norm_bwd(rows, cols, dtype):
    x, dy = (torch.randn(rows, cols, device="cuda", dtype=dtype) for _ in range(2))
    w = torch.randn(cols, device="cuda", dtype=dtype)
    mean = x.float().mean(1)
    rstd = torch.rsqrt(x.float().var(1, correction=0) + 1e-5)
    parts = 132 * 4
    dx = torch.empty_like(x)
    dw, db = (torch.empty(parts, cols, device="cuda") for _ in range(2))

    def check():
        some = slice(0, rows, max(1, rows // 64))
        hat = (x[some].double() - mean[some, None]) * rstd[some, None]
        g = dy[some].double() * w.double()
        want = (g - hat * (g * hat).mean(1, True) - g.mean(1, True)) * rstd[some, None]
        return differs(dx[some], want, 2.0**-24 * (cols + 64) * (g.abs() + 1) * 4
                       + unit(dtype) * want.abs())
    return Data([dy, x, w, mean, rstd, dx, dw, db, cols, cols, cols, rows, cols],
                [dx, dw, db], lambda c: (parts,),
                (3 * x.element_size() * rows * cols, "GB/s"), {}, check, 2.0**-16)


# What a dot of two fp32 numbers may be off, by input_precision (tests/run/dots.c).
OFF = {"tf32": 2.0**-9, "tf32x3": 3 * 2.0**-20, "bf16x3": 3 * 2.0**-18,
       "bf16x6": 2.0**-24, "ieee": 0.0}


def matmul(m, n, k, dtype, turned=False, desc=False, most=None, precision="tf32"):
    """most: so many persistent kernel. precision: of fp32, as the configurations
    say; cuBLAS computes in tf32 or fp32."""
    a = torch.randn(m, k, device="cuda", dtype=dtype)
    b = torch.randn(n, k, device="cuda", dtype=dtype).t() if turned else \
        torch.randn(k, n, device="cuda", dtype=dtype)
    c = torch.empty(m, n, device="cuda", dtype=dtype)
    out = torch.empty_like(c)
    off = OFF[precision] if dtype == torch.float32 else 0.0

    def cublas():
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        torch.matmul(a, b, out=out)

    def check():
        rows = torch.arange(0, m, max(1, m // 48), device="cuda")
        x, y = a[rows].double(), b.double()
        bound = (x.abs() @ y.abs()) * (2.0**-24 * (k + 8) + off)
        want = x @ y
        return differs(c[rows], want, bound + unit(dtype) * want.abs())
    strides = [a.stride(0), b.stride(0), c.stride(0)] if desc else \
        [*a.stride(), *b.stride(), *c.stride()]
    return Data([a, b, c, None if desc else a, m, n, k, *strides], [c],
                lambda q: (min(cdiv(m, q["BLOCK_M"]) * cdiv(n, q["BLOCK_N"]),
                               most or m * n),),
                (2 * m * n * k, "TFLOP/s"),
                {"cuBLAS": cublas}, check, off or 2 * unit(dtype))


def wrapping(m, n, k, dtype):
    """As Triton's tutorial 03: rows and columns wrap around at the ends."""
    data = matmul(m, n, k, dtype)
    del data.args[3]  # no bias
    return data


def sparsedrop(m, n, k, block, p, kernel, dtype=None):
    dtype = dtype or torch.float16
    a = torch.randn(m, k, device="cuda", dtype=dtype)
    b = torch.randn(k, n, device="cuda", dtype=dtype)
    c = torch.empty(m, n, device="cuda", dtype=dtype)
    cols = (k if kernel[0] == "d" else n) // block
    mask = blocks_live(m // block, cols, 42, p)
    scale = 1 / (1 - p)
    wide = mask.repeat_interleave(block, 0).repeat_interleave(block, 1)

    def check():
        rows = torch.arange(0, m, max(1, m // 48), device="cuda")
        x, y, keep = a[rows].double(), b.double(), wide[rows].double()
        if kernel[0] == "d":
            x = x * keep
            want, size = x @ y * scale, x.abs() @ y.abs() * scale
        else:
            want, size = (x @ y) * keep * scale, (x.abs() @ y.abs()) * keep * scale
        return differs(c[rows], want, size * (2.0**-24 * (k + 4) + 2 * lost(dtype)) +
                       unit(dtype) * want.abs())
    out = torch.empty_like(c)
    head, tail = [a, b, c, None], [m, n, k, scale, *a.stride(), *b.stride(), *c.stride(), 0,
                                   42, 0, p, cols, 1]
    # wave (more than there are tiles), parts, part_stride
    tail += [1 << 30] * (kernel == "dsd_matmul") + [1, 0]
    grid = lambda q: (cdiv(m, q["BLOCK_M"]) * cdiv(n, q["BLOCK_N"]),)  # noqa: E731
    if kernel.endswith("listed"):
        order, _, words = work_list(mask.cpu())
        head, tail = [a, b, c, order, words], tail[:10]
        grid = lambda q: (torch.cuda.get_device_properties(0)  # noqa: E731
                          .multi_processor_count,)
    return Data(head + tail, [c], grid,
                (2 * m * n * k * float(mask.float().mean()), "TFLOP/s"),
                {"cuBLAS dense": lambda: torch.matmul(a, b, out=out)}, check, 2.0**-10)


def sparsedrop_gradients(m, n, k, block, p):
    """Of x (half of whose blocks are dead) and w, from dy; the library's are dense."""
    dy, x, w, dx, dw = (torch.randn(*s, device="cuda", dtype=torch.float16)
                        for s in ((m, n), (m, k), (k, n), (m, k), (k, n)))
    mask = blocks_live(m // block, k // block, 42, p)
    scale = 1 / (1 - p)
    wide = mask.repeat_interleave(block, 0).repeat_interleave(block, 1)

    def check():
        rows = torch.arange(0, m, max(1, m // 48), device="cuda")
        a, b, keep = dy[rows].double(), w.double().t(), wide[rows].double()
        want, size = a @ b * keep * scale, a.abs() @ b.abs() * scale
        bad = differs(dx[rows], want, size * 2.0**-24 * (n + 4) + 2.0**-11 * want.abs())
        rows = torch.arange(0, k, max(1, k // 48), device="cuda")
        a, b = x[:, rows].double().t() * wide[:, rows].double().t(), dy.double()
        want, size = a @ b * scale, a.abs() @ b.abs() * scale
        return bad or differs(dw[rows], want,
                              size * 2.0**-24 * (m + 4) + 2.0**-11 * want.abs())
    _, units, _ = work_list(mask.cpu())
    order, _, words = work_list(mask.cpu().t())
    outs = torch.empty_like(dx), torch.empty_like(dw)
    strides = [s for t in (dy, x, w, dx, dw) for s in t.stride()]

    def dense():
        torch.matmul(dy, w.t(), out=outs[0])
        torch.matmul(x.t(), dy, out=outs[1])
    return Data([dy, x, w, dx, dx, dx, dw, dw, units, order, words, m, n, k, scale, *strides],
                [dx, dw], lambda q: (torch.cuda.get_device_properties(0)
                                     .multi_processor_count,),
                (4 * m * n * k * float(mask.float().mean()), "TFLOP/s"),
                {"cuBLAS dense": dense}, check, 2.0**-10)


def work_list(mask):
    """What kernel work_list of sparsedrop.tk writes: (order, units, words)."""
    rows, cols = mask.shape
    order = torch.argsort(mask.sum(1), descending=True, stable=True).int()
    twos, ones, dead = [], [], []
    for i in range(rows):
        live = mask[i].nonzero().flatten().tolist()
        twos += [[i << 16 | a, b] for a, b in zip(live[::2], live[1::2])]
        ones += [[i << 16 | live[-1], -1]] if len(live) % 2 else []
        dead += [i << 16 | j for j in (~mask[i]).nonzero().flatten().tolist()]
    words = (mask.long() << torch.arange(cols)).sum(1)[order.long()]
    units = sum(twos + ones, [])
    space = [0] * (2 * rows * cols - len(units))
    units = torch.tensor([len(twos), len(ones), 0, 0] + units + space + dead,
                         dtype=torch.int32)
    return order.cuda(), units.cuda(), words.cuda()


def attention(batch, heads, n, dim, causal, dtype):
    q, k, v = (torch.randn(batch, heads, n, dim, device="cuda", dtype=dtype)
               for _ in range(3))
    o = torch.empty_like(q)
    lse = torch.empty(batch, heads, n, device="cuda")
    scale = dim**-0.5

    def check():
        rows = torch.arange(0, n, max(1, n // 24), device="cuda")
        x, y, z = q[0, :2][:, rows].double(), k[0, :2].double(), v[0, :2].double()
        s = x @ y.transpose(1, 2) * scale
        reach = (x.abs() @ y.abs().transpose(1, 2)).amax(2, True) * scale
        if causal:
            seen = torch.arange(n, device="cuda")[None, :] <= rows[:, None]
            s = s.masked_fill(~seen, -math.inf)
        p = torch.softmax(s, 2)
        r = 2.0**-24 * ((dim + 4) * reach + 4 * reach + 32) + 2 * lost(dtype) * reach
        bound = (2 * r + 2.0**-24 * (2 * n + 8) + unit(dtype) + 2 * lost(dtype)) * (
            p @ z.abs())
        bound += 2.0**-25 * z.abs().sum(1, True) + unit(dtype) * (p @ z).abs()
        return differs(o[0, :2][:, rows], p @ z, bound)

    def torch_attention(backend):
        def run():
            from torch.nn.attention import SDPBackend, sdpa_kernel
            with sdpa_kernel(getattr(SDPBackend, backend)):
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return run
    flops = 4 * batch * heads * n * n * dim * (0.5 if causal else 1)
    return Data([q, k, v, o, lse, scale, *q.stride(), *k.stride(), *v.stride(), *o.stride(),
                 heads, n, n, None, None, 0.0, 0], [o, lse],
                lambda c: (cdiv(n, c["BLOCK_M"]), batch * heads), (flops, "TFLOP/s"),
                {"cuDNN": torch_attention("CUDNN_ATTENTION"),
                 "FA2": torch_attention("FLASH_ATTENTION")}, check, 2.0**-8)


def lost(dtype):
    """Of each factor of a product of this type: fp32 goes to the tensor cores as tf32."""
    return 2.0**-10 if dtype == torch.float32 else 0.0


FP8 = 2.0**-12  # what a step of 32 loses of an fp8 sum in the tensor cores, at most


def fp8_product(n, order, other, imprecise):
    """n x n x n of e4m3 and `other`; order: n or t for each operand, "nt": both lie along the
    inner dimension. imprecise: of the inner dimension, summed by the tensor cores alone."""
    along = [torch.randn(n, n, device="cuda").to(t) for t in (torch.float8_e4m3fn, other)]
    a, b = along[0], along[1].t()
    if order[0] == "t":
        a = a.t().contiguous().t()
    if order[1] == "n":
        b = b.contiguous()
    c = torch.empty(n, n, device="cuda", dtype=torch.bfloat16)

    def check():
        rows = slice(0, n, max(1, n // 64))
        x, y = a[rows].double(), b.double()
        size = x.abs() @ y.abs()
        bound = (min(imprecise or n, n) // 32 * FP8 + n * 2.0**-24) * size
        return differs(c[rows], x @ y, bound + unit(c.dtype) * (x @ y).abs())
    one = torch.ones((), device="cuda")

    def scaled(fast):
        return lambda: torch._scaled_mm(along[0], along[1].t(), scale_a=one, scale_b=one,
                                        out_dtype=torch.bfloat16, use_fast_accum=fast)
    return Data([a, b, c, n, n, n, *a.stride(), *b.stride()], [c],
                lambda c: (cdiv(n, c["BLOCK_M"]) * cdiv(n, c["BLOCK_N"]),),
                (2 * n**3, "TFLOP/s"),
                {"cuBLAS, fast sums": scaled(True), "cuBLAS": scaled(False)}, check,
                # of sums up to 2^8 each step of the unit may drop 2^-13
                max(2.0**-4, min(imprecise or n, n) // 32 * 2.0**-5))


def fp8_attention(batch, heads, n, dim, causal, along):
    """along: v lies along the sequence, as a product of fp8 wants it."""
    q, k, v = (torch.randn(batch, heads, n, dim, device="cuda").to(torch.float8_e4m3fn)
               for _ in range(3))
    if along:
        v = v.transpose(2, 3).contiguous().transpose(2, 3)
    o = torch.empty(batch, heads, n, dim, device="cuda", dtype=torch.float16)
    lse = torch.empty(batch, heads, n, device="cuda")
    scale = dim**-0.5

    def check():
        rows = torch.arange(0, n, max(1, n // 24), device="cuda")
        x, y, z = (t[0, :2].double() for t in (q, k, v))
        x = x[:, rows]
        s = x @ y.transpose(1, 2) * scale
        reach = (x.abs() @ y.abs().transpose(1, 2)).amax(2, True) * scale
        if causal:
            seen = torch.arange(n, device="cuda")[None, :] <= rows[:, None]
            s = s.masked_fill(~seen, -math.inf)
        p = torch.softmax(s, 2)
        total = torch.exp(s - s.amax(2, True)).sum(2, True)
        # a weight has 4 bits, and 2^-9 is the least; sums as in fp8_product
        rel = 2.0**-4 + dim / 32 * FP8 * reach + n / 32 * FP8
        bound = rel * (p @ z.abs()) + 2.0**-10 * z.abs().sum(1, True) / total
        return differs(o[0, :2][:, rows], p @ z, bound)
    flops = 4 * batch * heads * n * n * dim * (0.5 if causal else 1)
    return Data([q, k, v, o, lse, scale, *q.stride(), *k.stride(), *v.stride(), *o.stride(),
                 heads, n, n, None, None, 0.0, 0], [o, lse],
                lambda c: (cdiv(n, c["BLOCK_M"]), batch * heads), (flops, "TFLOP/s"),
                {}, check, 2.0**-2)


def one_head(q, k, v, o, do, causal, rows):
    """Of one head in double, for these rows: p, ds, what fp32 may be off in ds, all
    without rounding of weights."""
    scale = q.shape[1]**-0.5
    s = q[rows] @ k.t() * scale
    if causal:
        seen = torch.arange(k.shape[0], device="cuda")[None, :] <= rows[:, None]
        s = s.masked_fill(~seen, -math.inf)
    p = torch.softmax(s, 1)
    reach = (q[rows].abs() @ k.abs().t()) * scale
    dp, delta = do[rows] @ v.t(), (do[rows] * o[rows]).sum(1, True)
    size = do[rows].abs() @ v.abs().t() + (do[rows] * o[rows]).abs().sum(1, True)
    unit32 = 2.0**-24 * (q.shape[1] + 8)
    off = p * (size * unit32 + (dp - delta).abs() * (unit32 * (reach + s.amax(1, True).abs())
                                                      + 2.0**-18))
    return p, p * (dp - delta), off


def attention_bwd(batch, heads, n, dim, causal, dtype):
    q, k, v, do = (torch.randn(batch, heads, n, dim, device="cuda", dtype=dtype)
                   for _ in range(4))
    scale = dim**-0.5
    o, lse = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, causal)[:2]
    lse2, delta = (torch.empty(batch, heads, n, device="cuda") for _ in range(2))
    total = torch.empty(batch, heads, cdiv(n, 64) * 64, dim, device="cuda")
    dq, dk, dv = (torch.empty_like(q) for _ in range(3))

    def check():
        a = [t[0, -1].double() for t in (q, k, v, o, do)]
        some = torch.arange(0, n, max(1, n // 24), device="cuda")
        u, terms = unit(dtype), 2.0**-24 * (2 * n + 8)
        p, ds, off = one_head(*a, causal, some)
        bound = (off + ds.abs() * (u + terms) + 2.0**-25) @ a[1].abs() * scale
        want = ds @ a[1] * scale
        wrong = differs(dq[0, -1, some], want, bound + u * want.abs())
        if wrong:
            return "dq: " + wrong
        sums = [torch.zeros(len(some), dim, device="cuda", dtype=torch.double)
                for _ in range(4)]
        for part in torch.arange(n, device="cuda").split(2048):
            p, ds, off = (t[:, some].t() for t in one_head(*a, causal, part))
            rel = u + terms + 2.0**-14
            for sum, x, y in zip(sums, (ds, off + ds.abs() * rel + 2.0**-25, p,
                                        p * rel + 2.0**-25), (0, 0, 4, 4)):
                sum += x @ (a[y][part] if sum is sums[0] or sum is sums[2]
                            else a[y][part].abs())
        wrong = differs(dk[0, -1, some], sums[0] * scale,
                        (sums[1] + u * sums[0].abs()) * scale)
        if wrong:
            return "dk: " + wrong
        wrong = differs(dv[0, -1, some], sums[2], sums[3] + u * sums[2].abs())
        return wrong and "dv: " + wrong

    def torch_backward(backend):
        from torch.nn.attention import SDPBackend, sdpa_kernel
        leaves = [t.detach().requires_grad_() for t in (q, k, v)]
        out = []

        def run():
            if not out:
                with sdpa_kernel(getattr(SDPBackend, backend)):
                    out.append(torch.nn.functional.scaled_dot_product_attention(
                        *leaves, is_causal=causal))
            torch.autograd.grad(out[0], leaves, do, retain_graph=True)
        return run
    flops = 10 * batch * heads * n * n * dim * (0.5 if causal else 1)
    c = {"HEAD_DIM": dim, "BLOCK_M": 64}
    rows = (cdiv(n, 64), batch * heads)
    return Data([q, k, v, do, lse2, delta, dk, dv, total, scale, *q.stride(), *k.stride(),
                 *v.stride(), *do.stride(), *dk.stride(), *dv.stride(), heads, n, n, None, None, 0.0, 0],
                [dq, dk, dv, lse2, delta], lambda c: (cdiv(n, c["BLOCK_N"]), batch * heads),
                (flops, "TFLOP/s"),
                {"cuDNN": torch_backward("CUDNN_ATTENTION"),
                 "FA2": torch_backward("FLASH_ATTENTION")}, check, 2.0**-8,
                [("flash_attention_bwd_rows", c, 4, rows,
                  [o, do, lse, lse2, delta, total, *o.stride(), *do.stride(), heads, n])],
                [("flash_attention_bwd_cast", c, 4, rows,
                  [total, dq, scale, *dq.stride(), heads, n])])


def cases():
    f32, f16 = torch.float32, torch.float16
    yield Case("vector_add", "2^28 fp32", "vector_add", "vector_add",
               [({"BLOCK": 1024}, 4, 3)], lambda: vector_add(1 << 28, f32))
    for kernel in ("dropout_fwd", "dropout4_fwd"):
        configs = [({"BLOCK": 1024}, 4, 3)]
        if kernel == "dropout_fwd":
            configs += [({"BLOCK": 8192, "TILE": 1024}, 4, 3)]
        yield Case(kernel, "2^28 fp32", "dropout", kernel, configs,
                   lambda: dropout(1 << 28, f32))
    for cols in (1024, 4096, 8192):
        yield Case("softmax", f"16384x{cols} fp32", "softmax", "softmax",
                   [({"BLOCK": cols}, 4 if cols < 4096 else 8, 3)],
                   lambda cols=cols: softmax(16384, cols, f32))
    for cols in (1024, 4096, 8192):
        configs = [({"BLOCK": cols}, 4 if cols < 4096 else 8, 3)]
        yield Case("layer_norm_fwd", f"16384x{cols} fp32", "layernorm", "layer_norm_fwd",
                   configs, lambda cols=cols: layer_norm(16384, cols, f32))
        yield Case("layer_norm_bwd", f"16384x{cols} fp32", "layernorm", "layer_norm_bwd",
                   configs, lambda cols=cols: layer_norm_bwd(16384, cols, f32))

    def tiles(m, n, k):
        return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}
    big = [(tiles(128, 256, 64), 8, 3), (tiles(128, 128, 64), 8, 3),
           (tiles(128, 128, 32), 4, 4)]
    small = [(tiles(64, 128, 128), 4, 3), (tiles(128, 64, 64), 4, 7),
             (tiles(128, 64, 64), 4, 4), (tiles(128, 128, 64), 8, 3)]
    for n in (1024, 2048, 4096, 8192):
        configs = small if n <= 1024 else big
        yield Case("matmul", f"{n}^3 fp16", "matmul", "matmul", configs,
                   lambda n=n: matmul(n, n, n, f16))
    yield Case("matmul_nt", "4096^3 fp16", "matmul", "matmul", big[:2],
               lambda: matmul(4096, 4096, 4096, f16, turned=True))
    for n in (4096, 8192):
        yield Case("matmul_wrapping", f"{n}^3 fp16", "../tests/run/wrapping_matmul",
                   "wrapping_matmul", big[:2], lambda n=n: wrapping(n, n, n, f16))
    yield Case("matmul_tf32", "4096^3 fp32", "matmul", "matmul",
               [(tiles(256, 128, 32), 8, 3), (tiles(128, 128, 32), 8, 3)], lambda: matmul(4096, 4096, 4096, f32))
    for how in ("ieee", "tf32x3", "bf16x3", "bf16x6"):
        configs = [({**tiles(m, n, k), "PRECISION": how}, w, 3) for m, n, k, w in
                   ((128, 128, 16, 8), (128, 64, 32, 8), (64, 64, 32, 4))]
        yield Case(f"matmul_{how}", "2048^3 fp32", "matmul", "matmul", configs,
                   lambda how=how: matmul(2048, 2048, 2048, f32, precision=how))
    yield Case("matmul_odd", "4095x4097x4099 fp16", "matmul", "matmul",
               big[2:] + [(tiles(128, 128, 16), 4, 3)],
               lambda: matmul(4095, 4097, 4099, f16))
    yield Case("matmul_block", "4096^3 fp16", "matmul", "matmul_block", big[:2],
               lambda: matmul(4096, 4096, 4096, f16))
    yield Case("matmul_desc", "4096^3 fp16", "matmul", "matmul_desc", big[:2],
               lambda: matmul(4096, 4096, 4096, f16, desc=True))
    for n in (4096, 8192):
        yield Case("matmul_persistent", f"{n}^3 fp16", "matmul", "matmul_persistent", big[:1],
                   lambda n=n: matmul(
                       n, n, n, f16, desc=True,
                       most=torch.cuda.get_device_properties(0).multi_processor_count))
    e4, e5 = torch.float8_e4m3fn, torch.float8_e5m2
    for n in (4096, 8192):
        for order, other in (("nt", e4), ("nn", e4), ("tn", e4), ("tt", e4), ("nt", e5)):
            for imprecise in (None, 128) if other == e4 else (None,):
                more = {} if imprecise is None else {"IMPRECISE": imprecise}
                configs = [({**tiles(m, k, 128), **more}, 8, stages)
                           for m, k, stages in ((128, 256, 3), (128, 128, 4), (256, 128, 3))]
                if imprecise:  # sums of two parts: one is added while the other goes on
                    configs += [({**tiles(128, 128, 256), **more}, 8, 3)]
                yield Case(f"fp8_{order}" + (f"_every{imprecise}" if imprecise else ""),
                           f"{n}^3 e4m3 {'e4m3' if other == e4 else 'e5m2'}",
                           "../tests/run/fp8", "product", configs,
                           lambda n=n, order=order, other=other, imprecise=imprecise:
                           fp8_product(n, order, other, imprecise))
    for causal in (False, True):
        for along in (True, False):
            c = {"HEAD_DIM": 128, "BLOCK_M": 128, "BLOCK_N": 128, "CAUSAL": causal}
            yield Case("fp8_attention" + ("" if along else "_v_across"),
                       f"1x16x16384 D128 e4m3 {'causal' if causal else 'full'}",
                       "flash_attention", "flash_attention_fwd",
                       [(c, 8, 2), (c, 8, 3), ({**c, "BLOCK_N": 64}, 8, 3)],
                       lambda causal=causal, along=along:
                       fp8_attention(1, 16, 16384, 128, causal, along))
    for kernel, side in (("dsd_matmul", "MASK_K"), ("sdd_matmul", "MASK_N"),
                         ("dsd_listed", "MASK_K")):
        more = {"ONE_WORD": True} if kernel == "dsd_matmul" else {}
        wide = 256 if kernel == "dsd_listed" else 128
        file = "sparsedrop_list" if kernel == "dsd_listed" else "sparsedrop"
        yield Case(kernel, "4096^3 fp16 half dead", file, kernel,
                   [({**tiles(128, wide, 64), "MASK_M": 128, side: 128, **more},
                     8, 3)],
                   lambda kernel=kernel: sparsedrop(4096, 4096, 4096, 128, 0.5, kernel))
    for kernel, side, wide in (("dsd_matmul", "MASK_K", 256), ("sdd_matmul", "MASK_N", 128)):
        more = {"ONE_WORD": True} if kernel == "dsd_matmul" else {}
        yield Case(kernel, "4096^3 fp32 half dead", "sparsedrop", kernel,
                   [({**tiles(128, wide, 32), "MASK_M": 128, side: 128, **more},
                     8, 3)],
                   lambda kernel=kernel: sparsedrop(4096, 4096, 4096, 128, 0.5, kernel, f32))
    yield Case("sparsedrop_gradients", "4096^3 fp16 half dead", "sparsedrop_list",
               "gradients_listed",
               [({"MASK_M": 128, "MASK_K": 128, "BLOCK_N": 128, "STEP": 64},
                 8, 3)], lambda: sparsedrop_gradients(4096, 4096, 4096, 128, 0.5))
    for n, batch in ((4096, 4), (16384, 1)):
        for dim, heads in ((64, 32), (128, 16)):
            for causal in (False, True):
                c = {"HEAD_DIM": dim, "BLOCK_M": 128, "BLOCK_N": 64, "CAUSAL": causal}
                configs = [(c, 4 if dim == 64 else 8, 3), ({**c, "BLOCK_N": 128}, 8, 2)]
                if dim == 64:
                    configs += [({**c, "BLOCK_M": 256}, 16, 4)]
                yield Case("attention",
                           f"{batch}x{heads}x{n} D{dim} fp16 {'causal' if causal else 'full'}",
                           "flash_attention", "flash_attention_fwd", configs,
                           lambda n=n, batch=batch, dim=dim, heads=heads, causal=causal:
                           attention(batch, heads, n, dim, causal, f16))
    c = {"HEAD_DIM": 96, "BLOCK_M": 128, "BLOCK_N": 64, "CAUSAL": True}
    yield Case("attention", "4x16x4096 D96 bf16 causal", "flash_attention",
               "flash_attention_fwd", [(c, 4, 2), ({**c, "BLOCK_N": 32}, 8, 2), (c, 8, 2)],
               lambda: attention(4, 16, 4096, 96, True, torch.bfloat16))
    for dim, m, n in ((64, 64, 64), (128, 64, 32)):
        yield Case("attention", f"1x8x4096 D{dim} fp32 causal", "flash_attention",
                   "flash_attention_fwd",
                   [({"HEAD_DIM": dim, "BLOCK_M": m, "BLOCK_N": n, "CAUSAL": True}, 4, 2)],
                   lambda dim=dim: attention(1, 8, 4096, dim, True, f32))
    for n, batch in ((4096, 4), (16384, 1)):
        for dim, heads in ((64, 32), (128, 16)):
            for causal in (False, True):
                c = {"HEAD_DIM": dim, "BLOCK_M": 64, "BLOCK_N": 128, "CAUSAL": causal}
                configs = [(c, 8, 3)]
                if dim == 64:
                    narrow = {**c, "BLOCK_N": 64}
                    configs = [(narrow, 4, 2), (narrow, 4, 3), *configs]
                yield Case("grad_attention",
                           f"{batch}x{heads}x{n} D{dim} fp16 {'causal' if causal else 'full'}",
                           "flash_attention_bwd", "flash_attention_bwd", configs,
                           lambda n=n, batch=batch, dim=dim, heads=heads, causal=causal:
                           attention_bwd(batch, heads, n, dim, causal, f16))


# ---------------------------------------------------------------- running

def import_tk(name):
    kernel_imports.allow(args.kernels)
    path = os.path.join(args.kernels, name + ".tk")
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def config_text(config):
    constants, warps, stages = config
    return " ".join([f"{k.replace('BLOCK_', '')}={v}" for k, v in constants.items()
                     if not k.startswith("HEAD") and k != "CAUSAL"] + [f"w{warps} s{stages}"])


def parse_config(text, like):
    """"BLOCK_M=64,w4,s3" over the constants of a configuration that the case has."""
    constants, warps, stages = dict(like[0]), like[1], like[2]
    for item in text.split(","):
        if "=" in item:
            name, value = item.split("=")
            constants[name] = eval(value, {})
        elif item[0] == "w":
            warps = int(item[1:])
        else:
            stages = int(item[1:])
    return constants, warps, stages


def configs_of(case):
    chosen = [c.split("=", 1)[1] for c in args.config if case.name.startswith(c.split("=")[0])]
    return [parse_config(c, case.configs[0]) for c in chosen] or case.configs


def launched(runs):
    """{name: milliseconds of each round} of functions, one launch between two events."""
    flush = None if args.warm else torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    start, end = ([torch.cuda.Event(enable_timing=True) for _ in range(args.reps)]
                  for _ in range(2))
    rounds = {name: [] for name in runs}
    order, shuffle = list(runs), random.Random(1).shuffle
    for i in range(args.rounds + 1):
        shuffle(order)
        for name in order:
            run = runs[name]
            if i == 0:
                run()
                run()
            for j in range(args.reps):
                if flush is not None:
                    flush.zero_()
                start[j].record()
                run()
                end[j].record()
            torch.cuda.synchronize()
            if i:
                rounds[name].append(statistics.median(
                    s.elapsed_time(e) for s, e in zip(start, end)))
    return rounds


def replayed(runs):
    """The same of graphs of args.replay launches."""
    graphs = {name: bench.capture(run, args.replay) for name, run in runs.items()}
    return bench.measure(graphs, args.replay, args.rounds)


def measure(runs):
    """{name: (milliseconds, spread, milliseconds of each round)} of functions, in turn."""
    out = {}
    for name, times in (replayed if args.replay else launched)(runs).items():
        quarters = statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3
        out[name] = statistics.median(times), (quarters[2] - quarters[0]) / 2, times
    return out


def ratio_of(theirs, ours):
    """Their time over ours: the median of the rounds' ratios and the lower end of its
    one-sided confidence interval of 95%, an order statistic."""
    ratios = sorted(a / b for a, b in zip(theirs[2], ours[2]))
    n, below, k = len(ratios), 0.0, 0
    while k < n and (below := below + math.comb(n, k) / 2**n) <= 0.05:
        k += 1  # the chance that at most k of n rounds lie below the true median
    low = f" (>= {ratios[k - 1]:.3f})" if k else ""
    return f"{statistics.median(ratios):.3f}{low}"


def in_turn(before, after, run):
    calls = [*before, run, *after]
    return run if len(calls) == 1 else lambda: [call() for call in calls] and None


def poison(data):
    for t in data.outs:
        t.fill_(math.nan)


def try_run(what, run, data, complaints):
    """Runs on poisoned outputs; copies of them, or None with a complaint."""
    poison(data)
    try:
        run()
        torch.cuda.synchronize()
    except Exception as e:
        text = str(e).strip().splitlines()
        complaints.append(f"{what}: {text[0] if text else type(e).__name__}")
        return None
    wrong = data.check() if data.check else None
    if wrong:
        complaints.append(f"{what} is WRONG: {wrong}")
    return [t.clone() for t in data.outs]


def apart(data, a, b):
    """How far the results of two are apart, in units of what is allowed."""
    worst = 0.0
    for x, y in zip(a, b):
        scale = y.abs().max().item() or 1.0
        diff = 0.0
        for p, q in zip(x.flatten().split(1 << 26), y.flatten().split(1 << 26)):
            d = (p.float() - q.float()).abs()
            d[(p == q) | (p.isnan() & q.isnan())] = 0  # infinities too
            diff = max(diff, math.inf if d.isnan().any() else d.max().item())
        worst = max(worst, diff / scale)
    return worst


def bits(t):
    return t.contiguous().view({1: torch.int8, 2: torch.int16, 4: torch.int32,
                                8: torch.int64}[t.element_size()])


def repeat(run, data, first):
    """In how many of args.repeat launches the results are not those of the first."""
    others = torch.zeros((), dtype=torch.int64, device="cuda")
    for _ in range(args.repeat):
        poison(data)
        run()
        differ = [(bits(t) != bits(f)).any() for t, f in zip(data.outs, first)]
        others += torch.stack(differ).any()
    return int(others)


def prepared(sdc, case, config, data, grid):
    """The launches of a case through one libsdc, and its function."""
    constants, warps, stages = config
    tk = sdc.load(os.path.join(args.kernels, case.file + ".tk"))
    fn = tk.function(case.kernel, constants, warps, stages)
    stream = (lambda: torch.cuda.current_stream().cuda_stream) if args.replay else None
    return in_turn(*([tk.function(k, c, w).prepare(g, a, stream) for k, c, w, g, a in list_]
                     for list_ in (data.before, data.after)),
                   fn.prepare(grid, data.args, stream)), fn


def run_case(case, sdc, rows, before=None):
    data = case.make()
    module = None if args.no_triton else import_tk(case.file)
    baselines = {} if args.no_baselines else dict(data.baselines)
    for name in list(baselines):
        try:
            baselines[name]()
            torch.cuda.synchronize()
        except Exception:  # a backend that this build of torch or this size has not
            del baselines[name]
    ok = True
    for i, config in enumerate(configs_of(case)):
        constants, warps, stages = config
        grid = data.grid(constants)
        complaints, runs, outs, use = [], {}, {}, None
        began = time.perf_counter()
        try:
            runs["sdc"], fn = prepared(sdc, case, config, data, grid)
            use = fn.use(data.args)
            took = time.perf_counter() - began
            if before:
                runs["before"] = prepared(before, case, config, data, grid)[0]
            if args.ptx:
                name = f"{case.name}-{case.size}-{config_text(config)}.ptx"
                with open(os.path.join(args.ptx, name.replace(" ", "_")), "w") as f:
                    f.write(fn.ptx(data.args))
        except libsdc.Error as e:
            complaints.append(("UNSUPPORTED " if e.unsupported else "sdc: ") +
                              str(e).splitlines()[0])
            ok &= e.unsupported
        if module:
            kernel = getattr(module, case.kernel)
            runs["Triton"] = in_turn(*(
                [lambda k=k, c=c, w=w, g=g, a=a: getattr(module, k)[g](*a, **c, num_warps=w)
                 for k, c, w, g, a in list_] for list_ in (data.before, data.after)),
                lambda: kernel[grid](*data.args, **constants, num_warps=warps,
                                     num_stages=stages))
        for name in list(runs):
            outs[name] = try_run(name, runs[name], data, complaints)
            if outs[name] is None:
                ok &= name != "sdc"
                del runs[name]
        far = None
        if outs.get("sdc") and outs.get("Triton"):
            far = apart(data, outs["sdc"], outs["Triton"])
            if far > data.close:
                complaints.append(f"results are {far:.2g} apart, allowed {data.close:.2g}")
        if args.repeat and outs.get("sdc"):
            others = repeat(runs["sdc"], data, outs["sdc"])
            complaints.append(f"{args.repeat} launches, {others} with other bits")
        del outs
        ok &= not any("WRONG" in c or "apart" in c for c in complaints
                      if not c.startswith("Triton"))
        runs.update(baselines if i == 0 else {})
        times = {} if args.check or args.repeat else measure(runs)
        rows.append(dict(case=case, config=config, data_work=data.work, times=times,
                         complaints=complaints, far=far, use=use))
        print(line(rows[-1]), flush=True)
        if use is not None:
            print(f"    {use.shared_bytes} B of shared memory, compiled and loaded in "
                  f"{took * 1e3:.0f} ms", file=sys.stderr)
    return ok


def rate(work, ms):
    return work[0] / ms * (1e-6 if work[1] == "GB/s" else 1e-9)


def line(row):
    def cell(name, spread=True):
        if name not in row["times"]:
            return " | "
        ms, width = row["times"][name][:2]
        text = f"{ms:.4f} | {rate(row['data_work'], ms):.0f}"
        return text.replace(" |", f" ±{100 * width / ms:.1f}% |") if spread else text
    t = row["times"]
    ratio = ratio_of(t["Triton"], t["sdc"]) if "sdc" in t and "Triton" in t else ""
    baselines = ", ".join(f"{n} {t[n][0]:.4f} ({rate(row['data_work'], t[n][0]):.0f})"
                      for n in t if n not in ("sdc", "Triton"))
    far = "" if row["far"] is None else "equal" if row["far"] == 0 else f"{row['far']:.1e}"
    note = "; ".join(row["complaints"])
    use = row["use"]
    regs = "" if use is None else str(use.registers)
    if use is not None and use.local_bytes:
        regs += f" + {use.local_bytes} B"
    return (f"| {row['case'].name} | {row['case'].size} | {config_text(row['config'])} | "
            f"{regs} | {cell('sdc')} | {cell('Triton')} | {ratio} | {row['data_work'][1]} | {baselines} | "
            f"{far} | {note} |")


HEAD = ("| kernel | size | configuration | registers | sdc ms | rate | Triton ms | rate | ratio | unit | "
        "baselines: ms (rate) | apart | |\n" + "|---" * 13 + "|")


def best(rows):
    """Each kernel and size with the best configuration of either."""
    groups = {}
    for row in rows:
        groups.setdefault((row["case"].name, row["case"].size), []).append(row)
    for (name, size), group in groups.items():
        found = {}
        for row in group:
            for who, time in row["times"].items():
                if who not in found or time[0] < found[who][0][0]:
                    found[who] = time, row
        if len(found) < 2 or "sdc" not in found:
            continue
        work = group[0]["data_work"]
        print(f"best {name} {size}: " + ", ".join(
            f"{who} {time[0]:.4f} ms {rate(work, time[0]):.0f} {work[1]}" +
            (f" [{config_text(row['config'])}]" if who in ("sdc", "Triton") else "") +
            (f" {ratio_of(time, found['sdc'][0])}" if who != "sdc" else "")
            for who, (time, row) in found.items()))


def main():
    chosen = [c for c in cases()
              if (not args.only or any(o in c.name or o == "=" + c.name
                                      for o in args.only.split(",")))
              and (not args.size or any(s in c.size for s in args.size.split(",")))]
    if args.list:
        for c in chosen:
            print(f"{c.name}  {c.size}  " + "; ".join(config_text(k) for k in configs_of(c)))
        return 0
    sdc = libsdc.Context(args.lib, args.target)
    before = libsdc.Context(args.before, args.target) if args.before else None
    print(f"sdc {sdc.lib.sdc_version().decode()} for {sdc.device.target.decode()}, " +
          ("no Triton" if args.no_triton else f"Triton {triton.__version__}") +
          f", torch {torch.__version__}, {torch.cuda.get_device_name()}, driver for CUDA "
          f"{sdc.device.driver // 1000}.{sdc.device.driver % 1000 // 10}; {args.rounds} rounds "
          f"of {args.reps} launches, cache {'warm' if args.warm else 'emptied'}")
    print(HEAD, flush=True)
    rows, ok = [], True
    for case in chosen:
        try:
            ok &= run_case(case, sdc, rows, before)
        except Exception:
            print(f"{case.name} {case.size} failed:")
            traceback.print_exc(file=sys.stdout)
            ok = False
        torch.cuda.empty_cache()
    best(rows)
    wrong = sum("WRONG" in c or "apart" in c for r in rows for c in r["complaints"])
    missing = sum("UNSUPPORTED" in c for r in rows for c in r["complaints"])
    # (no memory for a configuration is none of the file's faults)
    refused = sum(c.startswith("Triton: at ") for r in rows for c in r["complaints"])
    print(f"compare: {len(rows)} rows, {wrong} wrong, {missing} unsupported, {refused} that "
          "Triton does not take for its language")
    return 0 if ok and not refused else 1


try:
    import torch
    import bench
    from masks import blocks_live
    if not args.no_triton:
        import triton
except (ImportError, OSError) as e:
    print(f"compare: SKIPPED: {e}")
    sys.exit(0)
if __name__ == "__main__":
    if not args.list and not torch.cuda.is_available():
        print("compare: SKIPPED: no GPU")
        sys.exit(0)
    torch.manual_seed(1)
    torch.cuda.init() if not args.list else None
    torch.backends.cuda.matmul.allow_tf32 = True
    if not args.no_triton and hasattr(triton, "set_allocator"):
        triton.set_allocator(lambda size, align, stream: torch.empty(
            size, dtype=torch.int8, device="cuda"))
    sys.exit(main())
