#!/usr/bin/env python3
"""Computes tests/golden/language.json: what Triton makes of the kernels of tests/run/lang.

    tests/oracle/language.py [--device cuda|cpu] [--compare] [--out FILE] [--add MODULE]

The committed values come from a GPU. With --device cpu Triton's interpreter runs the kernels,
which cannot do bf16 and a few more; --compare reports differences from the committed file
instead of writing one; --add puts the kernels of one module of tests/run/lang into it and
leaves the others as they are. Prints SKIPPED without triton or torch.
"""
import argparse
import glob
import importlib.machinery
import importlib.util
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(ROOT, "tests/golden/language.json")
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")
parser.add_argument("--compare", action="store_true")
parser.add_argument("--out", default=GOLDEN)
parser.add_argument("--add", default="")
args = parser.parse_args()
if args.device == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
try:
    import numpy as np
    import torch
    import triton
except (ImportError, OSError) as e:
    print(f"SKIPPED: {e}")
    sys.exit(0)

TYPES = {"*fp32": torch.float32, "*i32": torch.int32, "*i64": torch.int64, "*i8": torch.int8}

# Kernels whose floats are equal bit for bit: they only move values, or each result is rounded
# once. Others may differ by 2^-20, relative where the value is above 1: GPUs contract
# products and sums, and their functions are approximations.
EXACT = set("""masked strided scattered blocks block_padding pointer_tiles flipping gathering
    sorting extremes exact_division exact_root rounding toward_zero eight_bit_floats int_float
    nan_min_max hints joining tuned guessed long_offsets stored_pairs nan_reductions
    rounded planes""".split())
# Powers of two for those that need more: fewer bits in the computation, or cancellation.
LOOSE = {"half_ops": -8, "dot_loop": -16, "doubles": -18, "bfloat_ops": -5, "exponentials": -18, "scans": -17, "products": -6,
         "batched_products": -16, "pair_scan": -18, "float_remainder": -14, "sums": -18,
         "loop_pointers": -17}

# Values that Triton's heuristics compute by lambdas, which sdc takes from the command line.
BINDS = {"guessed": "BLOCK=64 EVEN=True"}


def inputs():
    rng = np.random.default_rng(2026)
    x = (rng.standard_normal(128) * 3).astype(np.float32)
    y = (rng.standard_normal(128) * 3).astype(np.float32)
    i = rng.integers(-1000, 1000, 128).astype(np.int32)
    i[:6] = -2**31, 2**31 - 1, 7, 12345, 5, -9
    return x, y, i


def modules():
    for path in sorted(glob.glob(os.path.join(ROOT, "tests/run/lang/*.tk"))):
        name = os.path.basename(path)[:-3]
        if args.add and name != args.add:
            continue
        loader = importlib.machinery.SourceFileLoader(name, path)
        module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
        loader.exec_module(module)
        yield name, module


def hexes(array):
    return [v.tobytes()[::-1].hex() for v in array]


def run():
    x, y, i = inputs()
    golden = {"triton": triton.__version__, "x": hexes(x), "y": hexes(y), "i": hexes(i),
              "kernels": []}
    dev = [torch.from_numpy(t).to(args.device) for t in (x, y, i)]
    if args.device == "cuda":
        triton.set_allocator(lambda size, align, stream: torch.empty(
            size, dtype=torch.int8, device="cuda"))
    for module_name, module in modules():
        for name, fn in list(vars(module).items()):
            inner = fn
            while hasattr(inner, "fn"):  # autotune and heuristics wrap the kernel
                inner = inner.fn
            kind = getattr(inner, "__annotations__", {}).get("out_ptr")
            if kind is None:
                continue
            out = torch.zeros(128, dtype=TYPES[kind], device=args.device)
            try:
                fn[(1,)](*(t.clone() for t in dev), out)
            except Exception as e:  # report all of them
                print(f"{module_name}.{name}: {str(e)[:300]}")
                continue
            tol = 0 if kind != "*fp32" or name in EXACT else LOOSE.get(name, -20)
            golden["kernels"].append({"file": module_name, "name": name, "out": kind[1:],
                                      "binds": BINDS.get(name, ""), "tolerance": tol, "values": hexes(out.cpu().numpy())})
    return golden


def compare(got, want):
    wants = {k["name"]: k for k in want["kernels"]}
    for k in got["kernels"]:
        if k["name"] not in wants:
            print(f"{k['name']}: not in the golden file")
            continue
        w = wants[k["name"]]
        types = {"fp32": np.float32, "i32": np.int32, "i64": np.int64, "i8": np.int8}
        a, b = (np.array([int(v, 16) for v in t["values"]], np.uint64)
                .astype(f"u{np.dtype(types[w['out']]).itemsize}").view(types[w["out"]])
                for t in (k, w))
        tol = 2.0**w["tolerance"] if w["tolerance"] else 0.0
        bad = ~(np.abs(a.astype(float) - b) <= tol * np.maximum(1, np.abs(b.astype(float))))
        if bad.any():
            at = int(np.argmax(bad))
            print(f"{k['name']}: {bad.sum()} differ, first at {at}: {a[at]}, golden {b[at]}")


golden = run()
if args.add:
    with open(GOLDEN) as f:
        old = json.load(f)
    assert all(old[t] == golden[t] for t in "xyi"), "other inputs"
    old["kernels"] = [k for k in old["kernels"] if k["file"] != args.add] + golden["kernels"]
    golden = old
if args.compare:
    with open(GOLDEN) as f:
        compare(golden, json.load(f))
else:
    with open(args.out, "w") as f:
        json.dump(golden, f, separators=(",", ":"))
        f.write("\n")
print(f"{len(golden['kernels'])} kernels, Triton {triton.__version__} on {args.device}")
