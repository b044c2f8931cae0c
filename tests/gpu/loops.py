#!/usr/bin/env python3
"""The 40 loops of tests/loops: Triton over the grid of configurations, sdc over the same grid
from the same files, both compared with a reference, one row a loop.

    tests/gpu/loops.py --lib build/libsdc.so.0 [--only attention,gemm.swiglu] [--quick]

First everything is compiled, in parallel processes that leave it in both disk caches. Then
each loop is measured: a time is that of one launch between two events behind a write of
256 MB that empties the second-level cache; in every round everybody is measured, all
configurations of both, in an order of its own; a time is the median over the rounds of each
round's median. `same` is Triton's best time over sdc's in that configuration, `best` Triton's
best over sdc's best: above 1, sdc is faster. `error` is the largest over what is allowed, of
sdc and of Triton: above 1 is wrong. `use` is registers, spilled bytes (sdc: of local memory)
and shared memory.

What --limit seconds do not suffice for is reported as not run. Without a GPU:

    tests/gpu/loops.py --target cpu --size tiny          sdc's code for the CPU
    SDC_LIBCUDA=build/libsimcuda.so FAKE_CUDA_SM=90 tests/gpu/loops.py --size tiny
                                     its code for sm_90a on the simulator of tests/sim
    TRITON_INTERPRET=1 tests/gpu/loops.py --target none --size tiny
                                     Triton's interpreter (its bf16 and fp8 are coarse)
"""
import argparse
import datetime
import importlib.machinery
import importlib.util
import math
import multiprocessing
import os
import random
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests/loops")]


def options():
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__)
    parser.add_argument("--lib", default=os.path.join(ROOT, "build/libsdc.so.0"))
    parser.add_argument("--target", default="cuda", help="of sdc: cuda, sm_80 (older code on "
                        "this GPU), cpu, or none")
    parser.add_argument("--only", default="", help="a,b: loops whose name contains one")
    parser.add_argument("--size", default="full", choices=["full", "tiny"])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--reps", type=int, default=3, help="launches in a round")
    parser.add_argument("--quick", action="store_true", help="3 rounds, and of the "
                        "configurations the first two")
    parser.add_argument("--check", action="store_true", help="results only, no times")
    parser.add_argument("--no-triton", action="store_true")
    parser.add_argument("--limit", type=float, default=300, help="seconds for everything")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--list", action="store_true", help="print the loops and leave")
    args = parser.parse_args()
    if args.quick:
        args.rounds = min(args.rounds, 3)
    return args


class Fake:
    """A tensor as far as a compiler looks at it."""

    def __init__(self, dtype):
        self.dtype = dtype

    def data_ptr(self):
        return 4096


def stand_ins(loop, table):
    """Arguments of the types and properties that the list says."""
    values = []
    for kind in loop.signature.values():
        name, _, div = kind.partition(":")
        if name[0] == "*":
            values.append(Fake(table.TYPES[name[1:]]))
        else:
            values.append(0.5 if name == "fp32" else 48 if div else 47)
    return values


def simulated(path):
    """Moves tensors into the memory of a driver that simulates a GPU."""
    import ctypes
    import torch
    driver, context, placed = ctypes.CDLL(path), ctypes.c_void_p(), {}
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxPushCurrent_v2(context)

    def place(x):
        if x.data_ptr() in placed:
            return x
        size = max(1, x.numel() * x.element_size())
        at = ctypes.c_uint64()
        if driver.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)):
            raise MemoryError("the simulated GPU has no more memory")
        buffer = (ctypes.c_char * size).from_address(at.value)
        there = torch.frombuffer(buffer, dtype=torch.uint8)[:x.numel() * x.element_size()]
        there = there.view(x.dtype).view(x.shape)
        there.copy_(x)
        x.data = there
        placed[at.value] = buffer
        return x
    return place


def import_tk(path):
    name = os.path.basename(path)[:-3]
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


class Worker:
    """Compiles, in a process of its own."""

    def __init__(self, lib, target):
        import table
        self.table, self.loops, self.lib, self.target = table, table.loops(), lib, target
        self.sdc = None

    def compile(self, task):
        which, config, who = task
        loop = self.loops[which]
        q = loop.configs[config]
        values = stand_ins(loop, self.table)
        began = time.process_time()
        try:
            if who == "sdc":
                import libsdc
                self.sdc = self.sdc or libsdc.Context(self.lib, self.target)
                self.sdc.load(loop.path).function(loop.kernel, q.constants, q.warps,
                                                  q.stages).use(values)
            else:
                import torch
                from triton.runtime.jit import MockTensor
                mocks = [MockTensor(v.dtype) if isinstance(v, Fake) else v for v in values]
                torch.cuda.init()
                getattr(import_tk(loop.path), loop.kernel).warmup(
                    *mocks, grid=(1,), num_warps=q.warps, num_stages=q.stages, **q.constants)
        except Exception as e:
            return task, f"{type(e).__name__}: {e}", 0
        return task, None, time.process_time() - began


worker = None


def worker_begin(*args):
    global worker
    worker = Worker(*args)


def worker_do(task):
    return worker.compile(task)


def compile_all(args, chosen, end):
    """{task: complaint} of everything; what is missing was not compiled in time."""
    who = ["Triton"] * (not args.no_triton) + ["sdc"] * (args.target != "none")
    tasks = [(i, c, w) for i, loop in chosen for c in range(len(loop.configs)) for w in who]
    done, spent = {}, {"Triton": 0.0, "sdc": 0.0}
    os.environ.setdefault("CUDA_CACHE_MAXSIZE", str(4 << 30))  # what the driver makes of PTX
    pool = multiprocessing.get_context("spawn").Pool(args.jobs, worker_begin,
                                                     (args.lib, args.target))
    results = pool.imap_unordered(worker_do, tasks)
    try:
        for _ in tasks:
            # (a process that died never answers)
            task, complaint, seconds = results.next(
                max(1.0, min(60.0, end - time.monotonic())))
            done[task] = complaint
            spent[task[2]] += seconds
    except multiprocessing.TimeoutError:
        print(f"compiled {len(done)} of {len(tasks)} in time")
    pool.terminate()
    print(f"compiled {len(done)} kernels: " +
          ", ".join(f"{w} {s:.0f} s of CPU time" for w, s in spent.items() if s))
    return done


class Run:
    """One side in one configuration: launches, and what is known of it."""

    def __init__(self, who, config, call, use=""):
        self.who, self.config, self.call, self.use = who, config, call, use
        self.rounds, self.error, self.complaint = [], None, None

    def time(self):
        return statistics.median(self.rounds)


def make_runs(args, loop, data, sdc, done, which):
    runs, complaints = [], []
    module = None if args.no_triton else import_tk(loop.path)
    for i, q in enumerate(loop.configs):
        values = loop.values(data, q)
        grid = data.grid(q.constants)
        for who in ("Triton", "sdc"):
            if who == "Triton" and module is None or who == "sdc" and sdc is None:
                continue
            why = done.get((which, i, who), "not compiled in time") if done is not None \
                else None
            if why is None:
                try:
                    make = triton_run if who == "Triton" else sdc_run
                    runs.append(make(module if who == "Triton" else sdc, loop, q, grid,
                                     values))
                    continue
                except Exception as e:
                    why = f"{type(e).__name__}: {e}"
            complaints.append(f"{who} [{q}]: {' '.join(why.split())[:300]}")
    return runs, complaints


def triton_run(module, loop, q, grid, values):
    kernel = getattr(module, loop.kernel)

    def call():
        return kernel[grid](*values, num_warps=q.warps, num_stages=q.stages, **q.constants)
    made = call()
    use = "" if not hasattr(made, "n_regs") else \
        f"{made.n_regs}/{made.n_spills}/{made.metadata.shared}"
    return Run("Triton", q, call, use)


def sdc_run(sdc, loop, q, grid, values):
    fn = sdc.load(loop.path).function(loop.kernel, q.constants, q.warps, q.stages)
    use = ""
    if sdc.target != "cpu":
        u = fn.use(values)
        use = f"{u.registers}/{u.local_bytes}/{u.shared_bytes}"
    return Run("sdc", q, fn.prepare(grid, values), use)


def measure(torch, runs, rounds, reps, flush):
    for n in range(rounds + 1):
        for run in random.sample(runs, len(runs)):
            pairs = []
            for _ in range(reps if n else 1):
                flush.zero_()
                pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                pair[0].record()
                run.call()
                pair[1].record()
                pairs.append(pair)
            torch.cuda.synchronize()
            if n:  # the first is to warm up
                run.rounds.append(statistics.median(a.elapsed_time(b) for a, b in pairs))


def ratio(slow, fast):
    """The median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(slow.rounds, fast.rounds))


def one(args, which, loop, maker, sdc, done, flush):
    """(lines to print, same, best, wrong)"""
    import torch
    data = loop.make(maker, args.size)
    runs, complaints = make_runs(args, loop, data, sdc, done, which)
    wrong = sum(c.startswith("sdc") for c in complaints)
    for run in list(runs):
        data.poison()
        run.call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        run.complaint, run.error = data.check(run.config.constants)
        if run.complaint:
            complaints.append(f"{run.who} [{run.config}] WRONG: {run.complaint}")
            runs.remove(run)
            wrong += run.who == "sdc"
    errors = "/".join(f"{max([r.error for r in runs if r.who == w], default=math.nan):.2g}"
                      for w in ("sdc", "Triton"))
    lines = [f"    {c}" for c in complaints]
    if args.check or not runs:
        return [f"| {loop.name} | error {errors} |"] + lines, None, None, wrong
    measure(torch, runs, args.rounds, args.reps, flush)
    top = {w: min((r for r in runs if r.who == w), key=Run.time, default=None)
           for w in ("Triton", "sdc")}
    same = best = None
    cells = [loop.name]
    if top["Triton"]:
        t = top["Triton"]
        rate = data.work / t.time() * 1e-9
        cells += [str(t.config), f"{t.time():.4f}", f"{rate:.3g}", t.use]
        same_config = next((r for r in runs if r.who == "sdc" and r.config is t.config), None)
        same = ratio(t, same_config) if same_config else None
        cells += [f"{same_config.time():.4f}", f"**{same:.2f}**", same_config.use] if same_config else ["-"] * 3
        if top["sdc"]:
            best = ratio(t, top["sdc"])
    else:
        cells += ["-"] * 7
    s = top["sdc"]
    cells += [str(s.config), f"{s.time():.4f}", f"**{best:.2f}**" if best else "-", s.use] \
        if s else ["-"] * 4
    lines.insert(0, "| " + " | ".join(cells + [errors]) + " |")
    for q in loop.configs:
        pair = [next((r for r in runs if r.who == w and r.config is q), None)
                for w in ("Triton", "sdc")]
        text = ", ".join(f"{r.who} {r.time():.4f} ms ({r.use})" for r in pair if r)
        both = f", {ratio(*pair):.2f}" if all(pair) else ""
        lines.append(f"    [{q}]: {text}{both}")
    return lines, same, best, wrong


HEAD = ("| loop | Triton's best | ms | TFLOP/s | use | sdc there, ms | same | use | sdc's best "
        "| ms | best | use | error |\n" + "|---" * 13 + "|")


def mean(ratios):
    return math.exp(statistics.mean(map(math.log, ratios))) if ratios else math.nan


def main():
    args = options()
    began = time.monotonic()
    end = began + args.limit
    import data
    import table
    chosen = [(i, loop) for i, loop in enumerate(table.loops())
              if not args.only or any(o in loop.name for o in args.only.split(","))]
    for _, loop in chosen:
        if args.quick:
            del loop.configs[2:]
        if args.list:
            print(loop.name, *loop.configs, sep="\n    ")
    if args.list:
        return 0
    import torch
    gpu = torch.cuda.is_available()
    fake = os.environ.get("SDC_LIBCUDA")
    if not gpu and not fake and args.target not in ("cpu", "none"):
        print("loops: SKIPPED: no GPU")
        return 0
    on_cpu = not gpu or fake or args.target in ("cpu", "none")
    args.no_triton |= "TRITON_INTERPRET" not in os.environ and on_cpu
    args.check |= on_cpu
    text = ["no Triton"]
    if not args.no_triton:
        import triton
        text = [f"Triton {triton.__version__}"]
        if hasattr(triton, "set_allocator"):
            triton.set_allocator(lambda size, align, stream: torch.empty(
                size, dtype=torch.int8, device="cuda"))
    done = None
    if not on_cpu:
        done = compile_all(args, chosen, began + 0.6 * args.limit)
        text += [torch.cuda.get_device_name()]
    sdc = None
    if args.target != "none":
        import libsdc
        sdc = libsdc.Context(args.lib, args.target)
        sdc.target = args.target
        text.append(f"sdc {sdc.lib.sdc_version().decode()}")
    print(", ".join(text + [f"torch {torch.__version__}", str(datetime.date.today()),
                            f"{args.rounds} rounds of {args.reps}"]))
    print(HEAD if not args.check else "", flush=True)
    place = simulated(os.path.abspath(fake)) if fake and sdc else None
    flush = None if args.check else torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    same, best, wrong, late = [], [], 0, []
    for which, loop in chosen:
        if time.monotonic() > end:
            late.append(loop.name)
            continue
        try:
            maker = data.Maker("cpu" if on_cpu else "cuda", place)
            lines, s, b, bad = one(args, which, loop, maker, sdc, done, flush)
        except Exception as e:
            lines, s, b, bad = [f"| {loop.name} | failed: {type(e).__name__}: {e} |"], None, \
                None, 1
        print("\n".join(lines), flush=True)
        same += [s] * (s is not None)
        best += [b] * (b is not None)
        wrong += bad
        if not on_cpu:
            torch.cuda.empty_cache()
    if same:
        print(f"same configuration: geometric mean {mean(same):.3f} of {len(same)}, least "
              f"{min(same):.2f}, {sum(r < 0.95 for r in same)} below 0.95")
    if best:
        print(f"best against best: geometric mean {mean(best):.3f} of {len(best)}, least "
              f"{min(best):.2f}, {sum(r < 1 for r in best)} below 1")
    if late:
        print(f"not run, {args.limit:.0f} s were over: " + ", ".join(late))
    print(f"loops: {len(chosen) - len(late)} loops, {wrong} of sdc's wrong or refused, "
          f"{time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
