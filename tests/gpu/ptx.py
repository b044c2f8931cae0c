#!/usr/bin/env python3
"""PTX of several compilers for one kernel, launched with the same arguments on one GPU:
results compared, then timed in turn. The driver assembles all of it, so that code for an
older GPU is timed beside code for an older GPU.

    tests/gpu/ptx.py FOLDER [--only a,b] [--rounds 15] [--reps 5]

FOLDER/spec.json: a list of cases,
    {"name": .., "flops": .., "grid": [x, y, z], "close": allowed difference over the largest,
     "args": [["f32", rows, cols], .., ["out", "f32", rows, cols], ["i32", n], ["fp32", x]],
     "codes": {who: {"ptx": file, "threads": n, "shared": bytes}}}
Parameters of the PTX beyond the arguments are null. A time is that of one launch between two
events, behind a write of 256 MB that empties the second-level cache; every round measures
everybody in an order of its own; medians over the rounds. `over the first`: the first code's
time over this one's.

SKIPPED without torch and a GPU.
"""
import argparse
import ctypes
import json
import os
import random
import re
import statistics
import sys

parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter,
                                 description=__doc__)
parser.add_argument("folder")
parser.add_argument("--only", default="", help="a,b: cases whose name contains one of them")
parser.add_argument("--rounds", type=int, default=15)
parser.add_argument("--reps", type=int, default=5, help="launches in a round")
args = parser.parse_args()

try:
    import torch
except ImportError:
    torch = None
if torch is None or not torch.cuda.is_available():
    print("ptx: SKIPPED: no torch or no GPU")
    sys.exit(0)

cuda = ctypes.CDLL(os.environ.get("SDC_LIBCUDA", "libcuda.so.1"))


def call(name, *values):
    status = getattr(cuda, name)(*values)
    if status:
        raise RuntimeError(f"{name}: CUDA error {status}")


def load(path, shared):
    """The kernel of a PTX file, and how many parameters it has."""
    with open(path, "rb") as f:
        text = f.read()
    module, fn = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), text + b"\0")
    entry = re.search(rb"\.entry\s+(\w+)\s*\(([^)]*)\)", text)
    call("cuModuleGetFunction", ctypes.byref(fn), module, entry[1])
    call("cuFuncSetAttribute", fn, 8, shared)  # of dynamic shared memory, at most
    return fn, entry[2].count(b".param")


TYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32"}


def tensor(kind, shape):
    return torch.randn(*shape, device="cuda", dtype=getattr(torch, TYPES[kind]))


def arguments(spec):
    """(what is passed, the tensors that are written)."""
    values, outs = [], []
    for kind, *rest in spec:
        if kind == "out":
            outs.append(tensor(rest[0], rest[1:]))
            values.append(ctypes.c_uint64(outs[-1].data_ptr()))
        elif len(rest) > 1:
            t = tensor(kind, rest)
            outs_alive.append(t)
            values.append(ctypes.c_uint64(t.data_ptr()))
        else:
            values.append((ctypes.c_float if kind == "fp32" else ctypes.c_int32)(rest[0]))
    return values, outs


outs_alive = []


def launcher(code, values, grid):
    fn, count = load(os.path.join(args.folder, code["ptx"]), code["shared"])
    all_ = values + [ctypes.c_uint64(0) for _ in range(count - len(values))]
    params = (ctypes.c_void_p * len(all_))(*[ctypes.addressof(v) for v in all_])
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def run(keep=(all_, params)):
        call("cuLaunchKernel", fn, *grid, code["threads"], 1, 1, code["shared"], stream,
             keep[1], None)
    return run


def measure(runs):
    flush = torch.empty(64 << 20, dtype=torch.int32, device="cuda")
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)]
             for _ in range(args.reps)]
    rounds, order = {who: [] for who in runs}, list(runs)
    shuffle = random.Random(1).shuffle
    for i in range(args.rounds + 1):
        shuffle(order)
        for who in order:
            for start, end in pairs:
                flush.zero_()
                start.record()
                runs[who]()
                end.record()
            torch.cuda.synchronize()
            if i:
                rounds[who].append(statistics.median(s.elapsed_time(e) for s, e in pairs))
    return rounds


def main():
    with open(os.path.join(args.folder, "spec.json")) as f:
        cases = json.load(f)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, {args.rounds} rounds "
          f"of {args.reps} launches, cache emptied")
    print("| case | code | ms | TFLOP/s | over the first | apart |\n|---|---|---|---|---|---|")
    wrong = 0
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    for case in cases:
        if args.only and not any(o in case["name"] for o in args.only.split(",")):
            continue
        torch.manual_seed(1)
        outs_alive.clear()
        values, outs = arguments(case["args"])
        runs, first, far = {}, None, {}
        for who, code in case["codes"].items():
            for t in outs:
                t.fill_(float("nan"))
            runs[who] = launcher(code, values, case["grid"])
            runs[who]()
            torch.cuda.synchronize()
            got = [t.clone().double() for t in outs]
            first = first or got
            far[who] = max(((a - b).abs().max() / b.abs().max()).item()
                           for a, b in zip(got, first))
            wrong += not far[who] <= case["close"]
        times = measure(runs)
        lead = times[next(iter(runs))]
        for who, ms in times.items():
            mid = statistics.median(ms)
            ratio = statistics.median(a / b for a, b in zip(lead, ms))
            note = "" if far[who] <= case["close"] else " WRONG"
            print(f"| {case['name']} | {who} | {mid:.4f} | {case['flops'] / mid * 1e-9:.1f} | "
                  f"{ratio:.3f} | {far[who]:.1e}{note} |", flush=True)
    print(f"ptx: {wrong} wrong")
    return 1 if wrong else 0


sys.exit(main())
