"""The kernels of inductor.py's models one by one: time on the GPU beside Triton's.

    python inductor_kernels.py [MODEL ...]

Each kernel of a forward pass is launched 200 times in a CUDA graph, with the arguments
that it had there; Triton's and sdc's in shuffled rounds. A line each: microseconds of a
launch, Triton's over sdc's with its interval, and the configuration of each.
"""

import argparse
import sys
import time

import torch
from inductor import backend, beside, models

LAUNCHES = 200


def recorded(f, x):
    """The kernels that a call runs, in order: (kernel, arguments)."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    seen, run = {}, CachingAutotuner.run

    def noted(self, *args, **kwargs):
        seen.setdefault(id(self), (self, args))
        return run(self, *args, **kwargs)

    CachingAutotuner.run = noted
    try:
        f(x)
    finally:
        CachingAutotuner.run = run
    return list(seen.values())


def many(kernel, args, device):
    """A function that launches it LAUNCHES times, on a GPU as a graph."""
    def once(stream):
        for _ in range(LAUNCHES):
            kernel.run(*args, stream=stream)

    if device == "cpu":
        return lambda _: once(0)
    kernel.run(*args, stream=torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        once(torch.cuda.current_stream().cuda_stream)
    return lambda _: graph.replay()


def name_of(kernel):
    """Its name, and the configuration that inductor chose."""
    config = kernel.launchers[0].config
    chosen = " ".join(f"{k}={v}" for k, v in config.kwargs.items())
    return kernel.fn.__name__, f"{chosen} w{config.num_warps}"


def one(name, model, x, device):
    """The lines of a model."""
    import sdc
    torch._dynamo.reset()
    found = []
    with torch.no_grad():
        for ours in (False, True):
            if ours or device == "cpu":
                sdc.install(device)
            try:
                f = torch.compile(model, fullgraph=True, backend=backend(None))
                f(x)
                found.append(recorded(f, x))
            finally:
                sdc.uninstall()
    theirs = {name_of(k)[0]: (k, args) for k, args in found[0]}
    for kernel, args in found[1]:
        called, chosen = name_of(kernel)
        if called not in theirs:
            print(f"{name:9} {called}: Triton has no such kernel", flush=True)
            continue
        other, others = theirs[called]
        (t, s), (ratio, low, high) = beside(
            [many(other, others, device), many(kernel, args, device)], None, 15)
        print(f"{name:9} {called[:60]:60} Triton {t / LAUNCHES * 1e3:7.3f} us, sdc "
              f"{s / LAUNCHES * 1e3:7.3f} us, {ratio:.3f} [{low:.3f}, {high:.3f}]  "
              f"{name_of(other)[1]} | {chosen}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cuda")
    p.add_argument("models", nargs="*")
    a = p.parse_args()
    torch.manual_seed(0)
    failed, begin = 0, time.time()
    for name, (model, x) in models().items():
        if a.models and name not in a.models:
            continue
        try:
            one(name, model.to(a.device), x.to(a.device), a.device)
        except Exception as e:
            failed += 1
            print(f"{name:9} FAILED {type(e).__name__}: {str(e)[:1000]}", flush=True)
    print(f"{time.time() - begin:.0f} s")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
