#!/usr/bin/env python3
"""Random programs through Triton's own interpreter, or Triton on a GPU, against the values
that the interpreter of tile IR expects.

    build/randgen --emit DIR --seed 1 --count 200
    tests/oracle/gen.py DIR [--device cpu|cuda] [--seed N]

Prints SKIPPED without triton or torch. Programs that Triton's interpreter is known to run
wrongly are counted, not compared: bf16 arithmetic; arguments equal to 1, which compiled kernels
see as constants; what it has no implementation for.
"""
import argparse
import glob
import importlib.machinery
import importlib.util
import os
import sys
import warnings

parser = argparse.ArgumentParser()
parser.add_argument("dir")
parser.add_argument("--device", default="cpu")
parser.add_argument("--seed")
args = parser.parse_args()
if args.device == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
try:
    import numpy as np
    import torch
    import triton  # noqa: F401
except (ImportError, OSError) as e:
    print(f"SKIPPED: {e}")
    sys.exit(0)
warnings.filterwarnings("ignore")
np.seterr(all="ignore")
torch.set_num_threads(1)

TYPES = {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64,
         "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64,
         "fp8e4nv": torch.float8_e4m3fn, "fp8e5": torch.float8_e5m2, "fp16": torch.float16,
         "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}


def load(path):
    loader = importlib.machinery.SourceFileLoader("k" + os.path.basename(path)[:-3], path)
    mod = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(mod)
    return mod.k


def facts(path):
    f = {"args": []}
    for line in open(path):
        w = line.split()
        if w[0] in ("buffer", "desc", "int", "float"):
            f["args"].append(w)
        else:
            f[w[0]] = w[1:]
    return f


def numbers(raw, dtype):
    """Bytes as numbers that compare: floats in double precision, integers as they are."""
    t = torch.from_numpy(raw.copy()).view(TYPES[dtype])
    return t.to(torch.float64).numpy() if t.dtype.is_floating_point else t.view(torch.uint8).numpy()


def differs(a, raw, want):
    """Index of the first element that is wrong, or None."""
    if np.array_equal(raw, want):
        return None
    size = len(want) // int(a[3])
    if not a[2].startswith(("fp", "bf")):
        return int(np.nonzero(raw != want)[0][0]) // size
    x, y = numbers(raw, a[2]), numbers(want, a[2])
    bad = ~((x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= float(a[7]) * (1 + np.abs(y))))
    if a[6] == "exact":
        bad |= (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
    return int(np.nonzero(bad)[0][0]) if bad.any() else None


def descriptor(a, t):
    """A desc line's fields behind those of a buffer: padding, rank, shape, strides, block."""
    from triton.tools.tensor_descriptor import TensorDescriptor
    n = int(a[9])
    shape, strides, block = ([int(x) for x in a[10 + k * n:10 + k * n + n]] for k in range(3))
    return TensorDescriptor(t, shape, strides, block, padding=a[8])


def run(base):
    f = facts(base + ".txt")
    text = open(base + ".tk").read()
    if args.device == "cpu" and ("bfloat16" in text or "_bf16" in text):
        return "skipped", "bf16"
    if "# ours" in text:
        return "skipped", "what Triton does not define"
    if "make_block_ptr" in text:
        return "skipped", "Triton 3.9 has no block pointers"
    if args.device == "cpu" and any(a[0] == "int" and a[3] == "1" for a in f["args"]):
        return "skipped", "an argument is 1"
    data, want = (np.fromfile(base + e, np.uint8) for e in (".in", ".want"))
    values, bufs = [], []
    for a in f["args"]:
        if a[0] in ("buffer", "desc"):
            size = TYPES[a[2]].itemsize
            raw = data[int(a[4]):int(a[4]) + int(a[3]) * size].copy()
            t = torch.from_numpy(raw).view(TYPES[a[2]]).to(args.device)
            bufs.append((a, t, size))
            values.append(t if a[0] == "buffer" else descriptor(a, t))
        else:
            values.append(int(a[3]) if a[0] == "int" else float(a[3]))
    extra = {} if args.device == "cpu" else {"num_warps": int(f["warps"][0]), "num_stages": int(f["stages"][0])}
    load(base + ".tk")[tuple(int(g) for g in f["grid"])](*values, **extra)
    for a, t, size in bufs:
        if int(a[5]) < 0:
            continue
        raw = t.cpu().view(torch.uint8).numpy()
        at = differs(a, raw, want[int(a[5]):int(a[5]) + len(raw)])
        if at is not None:
            part = slice(at * size, at * size + size)
            return "DIFFERS", f"{a[1]}[{at}]: Triton {raw[part].tobytes().hex()}, expected " \
                              f"{want[int(a[5]):][part].tobytes().hex()}"
    return "equal", ""


count = {}
for path in sorted(glob.glob(os.path.join(args.dir, (args.seed or "*") + ".tk")), key=lambda p: (len(p), p)):
    try:
        what, why = run(path[:-3])
    except Exception as e:  # noqa: BLE001
        if "must be 16-byte aligned" in str(e) and args.device == "cpu":  # a demand of the interpreter's alone
            what = "skipped"
        else:
            what = "error"
        why = f"{type(e).__name__}: {str(e).strip().splitlines()[-1] if str(e).strip() else ''}"[:200]
    count[what] = count.get(what, 0) + 1
    if what not in ("equal", "skipped"):
        print(f"seed {os.path.basename(path)[:-3]} {what}: {why}", flush=True)
print(", ".join(f"{v} {k}" for k, v in sorted(count.items())))
sys.exit(1 if count.get("DIFFERS") else 0)
