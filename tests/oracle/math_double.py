#!/usr/bin/env python3
"""How far fp64 functions are off on the CPU and in PTX, in ulp, beside mpmath.

    math_double.py [--count N] [--target cpu|cuda] [NAME...]

N (4096) arguments of each function, drawn by a seed over the range where it has a normal
value, half of them near one or zero; and special values (zeros, infinities, NaN, the ends
of ranges, subnormal numbers), of which it is said how many are wrong. `--target cuda` with
SDC_LIBCUDA=build/libsimcuda.so runs the PTX on the simulator. Prints the largest error and
where. Exit status 1 beyond --most ulp (5).
"""
import argparse
import math
import os
import subprocess
import sys
import tempfile

import mpmath
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
SDC = os.environ.get("SDC", os.path.join(HERE, "../../build/sdc"))
mpmath.mp.prec = 200
ONE, TWO = mpmath.mpf(1), mpmath.mpf(2)
# name: range of its arguments ("log:" their exponents are drawn), reference
FUNCTIONS = {
    "tl.exp": ((-708, 709), mpmath.exp),
    "tl.exp2": ((-1022, 1023), lambda x: TWO ** x),
    "tl.log": (("log", -1000, 1000), mpmath.log),
    "tl.log2": (("log", -1000, 1000), lambda x: mpmath.log(x) / mpmath.log(2)),
    "tl.sin": ((-1e4, 1e4), mpmath.sin),
    "tl.cos": ((-1e4, 1e4), mpmath.cos),
    "tl.sqrt": (("log", -1000, 1000), mpmath.sqrt),
    "tl.rsqrt": (("log", -1000, 1000), lambda x: 1 / mpmath.sqrt(x)),
    "tl.erf": ((-6, 6), mpmath.erf),
    "libdevice.exp10": ((-307, 308), lambda x: mpmath.mpf(10) ** x),
    "libdevice.expm1": ((-36, 709), mpmath.expm1),
    "libdevice.log10": (("log", -1000, 1000), mpmath.log10),
    "libdevice.log1p": ((-0.999, 100), mpmath.log1p),
    "libdevice.tan": ((-1e4, 1e4), mpmath.tan),
    "libdevice.asin": ((-1, 1), mpmath.asin),
    "libdevice.acos": ((-1, 1), mpmath.acos),
    "libdevice.atan": ((-100, 100), mpmath.atan),
    "libdevice.sinh": ((-709, 709), mpmath.sinh),
    "libdevice.cosh": ((-709, 709), mpmath.cosh),
    "libdevice.tanh": ((-20, 20), mpmath.tanh),
    "libdevice.asinh": (("log", -60, 1000), mpmath.asinh),
    "libdevice.acosh": ((1, 1e6), mpmath.acosh),
    "libdevice.atanh": ((-1, 1), mpmath.atanh),
    "libdevice.cbrt": (("log", -1000, 1000), lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x))),
    "libdevice.rcbrt": (("log", -1000, 1000), lambda x: 1 / mpmath.cbrt(x)),
    "libdevice.erfc": ((-6, 26), mpmath.erfc),
    "libdevice.tgamma": ((0.1, 170), mpmath.gamma),
    "libdevice.lgamma": ((0.1, 1e5), lambda x: mpmath.loggamma(x).real),
    "libdevice.sinpi": ((-100, 100), mpmath.sinpi),
    "libdevice.cospi": ((-100, 100), mpmath.cospi),
    "libdevice.pow": ((0.001, 100, -50, 50), lambda x, y: x ** y),
    "libdevice.atan2": ((-10, 10, -10, 10), mpmath.atan2),
    "libdevice.hypot": ((-1e3, 1e3, -1e3, 1e3), mpmath.hypot),
    "libdevice.fmod": ((-1e6, 1e6, -10, 10), lambda x, y: mpmath.sign(x) * (abs(x) % abs(y))),
}
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, -5e-324, 1e-310, 1.0, -1.0,
           2.2250738585072014e-308, 1.7976931348623157e308, 1e-17, -1e-17, 0.5, 1e22, -1e5]
KERNEL = """import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def k(a, b, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(a + i, mask=i < n, other=1.0)
    y = tl.load(b + i, mask=i < n, other=1.0)
    tl.store(out + i, {name}(x{second}), mask=i < n)
"""


def arguments(about, n, rng):
    """Two arrays."""
    if about[0] == "log":
        x = np.ldexp(1 + rng.random(n), rng.integers(about[1], about[2], n))
    else:
        x = about[0] + (about[1] - about[0]) * rng.random(n)
        near = np.ldexp(rng.random(n) - 0.5, rng.integers(-20, 2, n))
        near = np.where((near > about[0]) & (near < about[1]), near, x)
        x = np.where(rng.random(n) < 0.5, near, x)
    low, high = about[2:] if len(about) == 4 else (0, 1)
    return x, low + (high - low) * rng.random(n)


def run(name, x, y, target, folder):
    """Results of the kernel."""
    two = len(FUNCTIONS[name][0]) == 4
    source, out = f"{folder}/k.tk", f"{folder}/out.npy"
    with open(source, "w", encoding="utf-8") as f:
        f.write(KERNEL.format(name=name, second=", y" if two else ""))
    np.save(f"{folder}/a.npy", x)
    np.save(f"{folder}/b.npy", y)
    command = [SDC, "run", source, "-g", "cdiv(n,BLOCK)", "-c", "BLOCK=128", "--target",
               target, "-a", f"a=@{folder}/a.npy", "-a", f"b=@{folder}/b.npy", "-a",
               f"n={len(x)}", "-a", "out=empty:fp64[n]", "--threads", "1"]
    done = subprocess.run([*command, "--no-check", "--out", f"out={out}"], text=True,
                          capture_output=True)
    if done.returncode:
        sys.exit(done.stderr)
    return np.load(out)


def ulps(got, want):
    """By how many of the last bits of `want` a result is off."""
    if math.isnan(got) or math.isinf(got):
        return math.inf
    exponent = max(mpmath.frexp(want)[1], -1021) if want else -1021
    return float(abs(mpmath.mpf(got) - want) / mpmath.ldexp(ONE, exponent - 53))


def library(name, v):
    """What C's own function gives for a special value; None: not asked."""
    short = name.rpartition(".")[2]
    f = {"exp2": getattr(math, "exp2", None), "cbrt": getattr(math, "cbrt", None),
         "exp10": None, "rsqrt": None, "rcbrt": None, "tgamma": None, "lgamma": None,
         "sinpi": None, "cospi": None}.get(short, getattr(math, short, None))
    if f is None:
        return None
    try:
        return f(v)
    except OverflowError:
        return math.copysign(math.inf, v if short in ("sinh", "expm1") else 1)
    except ValueError:
        if short in ("log", "log2", "log10") and v == 0 or short == "log1p" and v == -1:
            return -math.inf
        if short == "atanh" and abs(v) == 1:
            return math.copysign(math.inf, v)
        return math.nan


def main():
    """A line a function."""
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--count", type=int, default=4096)
    p.add_argument("--target", default="cpu")
    p.add_argument("--most", type=float, default=5)
    p.add_argument("names", nargs="*")
    a = p.parse_args()
    rng = np.random.default_rng(1)
    beyond = 0
    for name, (about, reference) in FUNCTIONS.items():
        short = name.rpartition(".")[2]
        x, y = arguments(about, a.count, rng)
        if a.names and short not in a.names:
            continue
        one = len(about) != 4
        n = len(x)
        if one:
            x, y = np.concatenate([x, SPECIAL]), np.concatenate([y, SPECIAL])
        with tempfile.TemporaryDirectory() as folder:
            got = run(name, x, y, a.target, folder)
        worst, where = 0.0, ""
        for i in range(n):
            want = reference(*[mpmath.mpf(float(v)) for v in ((x[i],) if one else (x[i], y[i]))])
            e = ulps(float(got[i]), want)
            if e > worst:
                worst, where = e, f"{x[i]!r}" if one else f"{x[i]!r}, {y[i]!r}"
        wrong = []
        for v, g in zip(SPECIAL, got[n:]) if one else ():
            want = library(name, v)
            if want is not None and not (
                    math.isnan(want) and math.isnan(g) or
                    want == g and math.copysign(1, want) == math.copysign(1, g) or
                    math.isfinite(want) and abs(want - g) <= 4e-16 * abs(want)):
                wrong.append(f"{v!r}: {g!r}, not {want!r}")
        beyond += worst > a.most or bool(wrong)
        print(f"{short:8} {worst:8.2f} ulp at {where.replace('np.float64', '')}"
              + "".join(f"\n         special {w}" for w in wrong), flush=True)
    return int(beyond > 0)


if __name__ == "__main__":
    sys.exit(main())
