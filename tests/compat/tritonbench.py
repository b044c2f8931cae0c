"""TritonBench-G's programs, from their own host code: a program for sdc.compare.

    python -m sdc.compare tests/compat/tritonbench.py FOLDER CASE
    tests/compat/each.py --time _perf tests/compat/tritonbench.py FOLDER      all of them

FOLDER is a clone of github.com/thunlp/TritonBench. CASE `matmul_triton1` is that
program with its own tests (which run when it is imported), `matmul_triton1_perf` calls it
with the last but one of its performance inputs, or a smaller one when memory runs out.
`--list` in the place of CASE: their names.
DEVICE=cpu: on the CPU, tests alone.
"""

import importlib
import os
import sys
import tempfile

FOLDER, CASE = os.path.abspath(sys.argv[1]), sys.argv[2]
PROGRAMS = os.path.join(FOLDER, "data/TritonBench_G_v1")
PERF = os.path.join(FOLDER, "performance_metrics/perf_G")
TESTS = "#" * 146  # a line between a program and its tests


def names():
    """The programs."""
    return sorted(f[:-3] for f in os.listdir(PROGRAMS) if f.endswith(".py"))


def performance(case, folder):
    """Its kernel without its tests, on one of its performance inputs."""
    import host
    import torch
    name = case.removesuffix("_perf")
    with open(os.path.join(PROGRAMS, name + ".py"), encoding="utf-8") as f:
        program = f.read().split(TESTS)[0]
    with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as f:
        f.write(program)
    host.module("TritonBench_v1").__path__ = [folder]
    sys.path[:0] = [PERF, os.path.join(PERF, "golden_metrics")]
    metrics = importlib.import_module(case).performance_metrics()
    metrics.get_input_tensors()
    inputs = metrics.input_tensors
    for i in dict.fromkeys([max(0, len(inputs) - 2), len(inputs) // 2, 0]):
        try:
            metrics.call_op(metrics.to_cuda(inputs[i]))
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
        else:
            return


def main():
    """One case."""
    if CASE == "--list":
        found = names()
        if os.environ.get("DEVICE") != "cpu":
            found += [n + "_perf" for n in found
                      if os.path.exists(f"{PERF}/golden_metrics/{n}_perf.py")]
        print("\n".join(found))
        return
    import host
    import torch
    torch.manual_seed(0)
    torch.set_default_device(host.DEVICE)
    if CASE.endswith("_perf"):
        with tempfile.TemporaryDirectory() as folder:
            performance(CASE, folder)
    else:
        sys.path.insert(0, PROGRAMS)
        importlib.import_module(CASE)


main()
