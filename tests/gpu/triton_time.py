"""The same .tk files under Triton: median times of the kernels that pointwise.c times.
Prints the same rows; needs torch, triton and a GPU, and says SKIPPED without them."""
import importlib.machinery
import importlib.util
import os
import sys


def load(folder, name):
    path = os.path.join(folder, name)
    loader = importlib.machinery.SourceFileLoader(name.replace(".", "_"), path)
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def median(torch, run):
    for _ in range(3):
        run()
    times = []
    for _ in range(21):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        run()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b))
    return sorted(times)[len(times) // 2]


def row(name, size, ms, nbytes):
    print(f"{name:12s} {size:14s} {ms:8.4f} ms {nbytes / ms * 1e-6:8.0f} GB/s")


def main():
    try:
        import torch
        import triton
    except ImportError as e:
        print("SKIPPED:", e)
        return
    if not torch.cuda.is_available():
        print("SKIPPED: no GPU")
        return
    folder = sys.argv[1] if len(sys.argv) > 1 else "kernels_dsl"
    print("Triton", triton.__version__, torch.cuda.get_device_name())
    add, drop, soft = (load(folder, f) for f in
                       ("vector_add.tk", "dropout.tk", "softmax.tk"))
    n = 1 << 28
    x, y = (torch.randn(n, device="cuda") for _ in range(2))
    out = torch.empty_like(x)
    row("copy", "2^28 fp32", median(torch, lambda: out.copy_(x)), 8 * n)
    row("vector_add", "2^28 fp32",
        median(torch, lambda: add.vector_add[(n // 1024,)](x, y, out, n, BLOCK=1024)), 12 * n)
    row("dropout_fwd", "2^28 fp32",
        median(torch, lambda: drop.dropout_fwd[(n // 1024,)](x, out, n, 0.5, 42, BLOCK=1024)),
        8 * n)
    row("dropout4_fwd", "2^28 fp32",
        median(torch, lambda: drop.dropout4_fwd[(n // 1024,)](x, out, n, 0.5, 42, BLOCK=1024)),
        8 * n)
    for cols in (1024, 4096, 8192):
        a, b = x[:16384 * cols], out[:16384 * cols]
        row("softmax", f"16384x{cols}",
            median(torch, lambda: soft.softmax[(16384,)](a, b, cols, cols, 16384, cols,
                                                         BLOCK=cols)), 8 * 16384 * cols)


main()
