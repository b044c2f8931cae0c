"""What a launch costs from Python, beside Triton's where it is: microseconds.

    python launch_time.py [--device cpu]
"""

import argparse
import importlib.util
import timeit
from types import SimpleNamespace

import sdc
from sdc.inductor import Binary

import kernels as k


def measure(name, call, wait):
    """The least of many short rounds: others have the machine, too."""
    n = 500
    best = float("inf")
    for _ in range(60):
        wait()
        best = min(best, timeit.timeit(call, number=n) / n)
    print(f"{name:40} {best * 1e6:7.2f} us")


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--device", default="cpu")
    device = p.parse_args().device
    import torch
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    x, y, out = (torch.rand(64, device=device) for _ in range(3))
    measure("sdc, torch, a grid", lambda: k.add[(1,)](x, y, out, 64, BLOCK=64), wait)
    measure("sdc, torch, a callable grid",
            lambda: k.add[lambda m: (1,)](x, y, out, 64, BLOCK=64), wait)
    made = k.add[(1,)](x, y, out, 64, BLOCK=64)
    lib, grid, packed = sdc._lib.lib, sdc.grid.make_grid((1,)), made.sample
    stream = made.stream() if made.stream else None
    measure("sdc_launch alone",
            lambda: lib.sdc_launch(made.handle, grid, packed, 4, stream), wait)
    signature = {p.name: "*fp32" for p in k.add.params} | {"n": "i32"}
    told = Binary(k.add.launcher, SimpleNamespace(
        fn=k.add, signature=signature, constants={"BLOCK": 64}), {})
    raw = stream or 0
    measure("sdc, as torch.compile launches", lambda: told.run(
        1, 1, 1, raw, None, None, None, None, None, x, y, out, 64, 64), wait)
    square = [torch.rand(16, 16, device=device) for _ in "xyo"]
    blocks = [sdc.TensorDescriptor.from_tensor(t, [16, 16]) for t in square]
    measure("sdc, three descriptors",
            lambda: k.add_blocks[(1,)](*blocks, M=16, N=16), wait)
    if device == "cpu":
        a, b, c = x.numpy(), y.numpy(), out.numpy()
        measure("sdc, numpy", lambda: k.add[(1,)](a, b, c, 64, BLOCK=64), wait)
    if importlib.util.find_spec("triton") is None:
        return
    import triton_kernels as t
    if device == "cuda":
        t.add[(1,)](x, y, out, 64, BLOCK=64)
        measure("Triton", lambda: t.add[(1,)](x, y, out, 64, BLOCK=64), wait)
    sdc.install(device)
    measure("triton.jit under sdc.install()",
            lambda: t.add[(1,)](x, y, out, 64, BLOCK=64), wait)


if __name__ == "__main__":
    main()
