#!/usr/bin/env python3
"""How far fp32 functions for GPUs are off, of the very code that sdc makes for them.

    math_error.py [--step N] NAME...        fp32 arguments: every Nth (97) of all 2^32

The LLVM IR of a kernel of one call is compiled for this machine, with functions in the
place of the hardware's approximations, and compared with glibc's in double. Each
approximation is taken as the value rounded, and as far off on either side as NVIDIA's PTX
manual allows; the worst of the three counts. Two operands: pairs drawn by a seed. Special
values (zeros, infinities, NaN, subnormal numbers, ends of ranges) are all tried. Prints,
for each function, the largest error in ulp and where, and how often a special value is
wrong. Needs clang with the LLVM that sdc was built with.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SDC = os.environ.get("SDC", os.path.join(HERE, "../../build/sdc"))
CLANG = os.environ.get("CLANG", "clang-22")
TWO = ("atan2", "pow", "hypot", "fmod", "remainder", "fast_powf", "rhypot")
# glibc's name where it is another one, or an expression of x
REFERENCE = {"rcbrt": "1 / cbrt(x)", "erfinv": "erfinv_of(x)", "erfcinv": "erfcinv_of(x)",
             "normcdf": "erfc(-x * sqrt(0.5)) / 2", "sinpi": "sinpi_of(x)",
             "cospi": "cospi_of(x)", "rsqrt": "1 / sqrt(x)",
             "rhypot": "1 / hypot(x, y)", "normcdfinv": "-sqrtl(2) * erfcinv_of(2 * x)",
             "erfcx": "erfcx_of(x)"}
# where CUDA promises nothing: around lgamma's zeros
SKIPPED = {"lgamma": "x > -10.001 && x < -2.264"}

KERNEL = """import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def k(a, b, out):
    i = tl.arange(0, 128)
    tl.store(out + i, %s)
"""

HARNESS = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int side;
/* the last number that is no more than so much off */
static float off(double v, double relative)
{
    double most = v * (1 + side * relative);
    float f = (float)most;
    if (side && isfinite(f) && f != 0 && fabs(f - v) > fabs(most - v)) f = nextafterf(f, (float)v);
    return f;
}
static float flushed(float v) { return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v; }
float hw_ex2(float x) { return flushed(off(exp2(flushed(x)), 0x1p-22)); }
float hw_rcp(float x) { return flushed(off(1 / (double)flushed(x), 0x1p-23)); }
float hw_sqrt(float x) { return flushed(off(sqrt(flushed(x)), 0x1p-23)); }
float hw_rsqrt(float x) { return flushed(off(1 / sqrt(flushed(x)), 1.279e-7)); }
float hw_lg2(float x)
{
    double v = log2(x);
    return x > 0.5f && x < 2 ? (float)(v + side * 0x1p-22) : off(v, 0x1p-22);
}
float hw_sin(float x) { return (float)sin(x); }
float hw_cos(float x) { return (float)cos(x); }
/* within 2 ulp */
float hw_div(float a, float b)
{
    double v = (double)a / b, ulp = v != 0 && isfinite(v) ? ldexp(1, ilogb(v) - 23) : 0;
    int none = fabsf(b) >= 0x1p126f && fabsf(b) < INFINITY;
    return none ? copysignf(0, a / b) : (float)(v + side * 1.5 * ulp);
}
static const long double root_pi = 1.77245385090551602729816748334115L;
long double erfinv_of(long double y)
{
    if (!(fabsl(y) < 1)) return fabsl(y) == 1 ? y * INFINITY : NAN;
    long double w = -logl((1 - y) * (1 + y));
    long double x = fabsl(y) < 0.5 ? y * root_pi / 2 : copysignl(sqrtl(w > 1 ? w - 0.5L * logl(w) : w), y);
    for (int i = 0; i < 40; i++) {
        long double a = fabsl(x);
        long double f = a < 0.5 ? erfl(a) - fabsl(y) : (1 - fabsl(y)) - erfcl(a);
        long double d = f * expl(a * a) * root_pi / 2;
        d /= 1 + a * d;
        x = copysignl(a - d, y);
        if (fabsl(d) <= 1e-18L * a) break;
    }
    return x;
}
long double erfcinv_of(long double y)
{
    if (!(y > 0 && y < 2)) return y == 0 ? INFINITY : y == 2 ? -INFINITY : NAN;
    if (y > 1) return -erfcinv_of(2 - y);
    if (y > 0.5) return erfinv_of(1 - y);
    long double t = -logl(y), x = sqrtl(fmaxl(t - 0.5L * logl(3.2L * t + 1), 0.1L));
    for (int i = 0; i < 60; i++) {
        long double c = erfcl(x), f = logl(c / y), d = f * c * expl(x * x) * root_pi / 2;
        x += d;
        if (fabsl(d) <= 1e-18L * x) break;
    }
    return x;
}
long double sinpi_of(long double x)
{
    if (isinf(x)) return NAN;
    long double r = x - 2 * rintl(x / 2), q = rintl(2 * r);
    r = (r - q / 2) * M_PIl;
    switch ((int)q & 3) {
    case 0: return x == 0 ? x : sinl(r);
    case 1: return cosl(r);
    case 2: return -sinl(r);
    }
    return -cosl(r);
}
long double cospi_of(long double x)
{
    if (isinf(x)) return NAN;
    long double r = x - 2 * rintl(x / 2), q = rintl(2 * r);
    r = (r - q / 2) * M_PIl;
    switch ((int)q & 3) {
    case 0: return cosl(r);
    case 1: return -sinl(r);
    case 2: return -cosl(r);
    }
    return sinl(r);
}
long double erfcx_of(long double x)
{
    if (x < 25) return expl(x * x) * erfcl(x);
    long double f = x;
    for (int k = 60; k > 0; k--) f = x + k * 0.5L / f;
    return 1 / (root_pi * f);
}

int tid(void) { return 0; }
void k(float *a, float *b, float *out);

static double worst;
static float at_x, at_y, was;
static uint64_t special_wrong;
static float sx, sy, sgot, swant;

static int one(float x, float y, int special)
{
    if (SKIPPED) return 0;
    double w = WANT;
    float want = (float)w, got;
    for (side = -1; side <= 1; side++) {
        k(&x, &y, &got);
        if (isnan(want) || isinf(want) || want == 0 || isnan(got) || isinf(got)) {
            /* beyond the range within an ulp of its end counts as the end */
            int same = isnan(want) ? isnan(got) : got == want;
            if (want == 0 && w == 0 && !isnan(got)) same = same && signbit(got) == signbit(want);
            if (isinf(want) && isfinite(got)) same = isfinite((float)(w * (1 - 0x1p-20)));
            if (isinf(got) && isfinite(want)) same = isinf((float)(w * (1 + 0x1p-20)));
            if (want == 0 && fabsf(got) <= 0x1p-147f) same = w != 0 || same;
            if (got == 0 && fabs(w) < 0x1p-148) same = 1;
            if (!same && special_wrong++ == 0) sx = x, sy = y, sgot = got, swant = want;
            continue;
        }
        int e = ilogbf(want) < -126 ? -126 : ilogbf(want);
        double error = fabs(got - w) * ldexp(1, 23 - e);
        if (error > worst) worst = error, at_x = x, at_y = y, was = got;
    }
    return 0;
}

static uint64_t state = 88172645463325252u;
static uint32_t drawn(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16);
}
static float from(uint32_t b) { float f; memcpy(&f, &b, 4); return f; }

int main(int n, char **arg)
{
    static const float odd[] = {0, 1, 2, 3, 4, 5, 0.5f, 1.5f, 0.25f, 0.1f, 10, 100, 1000,
        0x1p-149f, 0x1p-126f, 0x1.fffffcp-127f, 0x1.fffffep127f, INFINITY, NAN, 0x1p-24f,
        0x1p-25f, 0x1.fffffep-1f, 0x1.000002p0f, 88.72283f, 88.7229f, 89.41598f, 89.4161f,
        38.53184f, 38.5319f, 10.0f, 9.9f, 10.2f, 0x1p23f, 0x1p24f, 0x1.000002p23f, 0x1p50f,
        0x1p63f, 0x1p64f, 1e13f, 1e14f, 1e30f, 0.575f, 87.3f, 103.9f, 44.8f, 45.2f, 255, 7, 33};
    enum { ODD = sizeof odd / sizeof *odd };
    uint64_t step = strtoull(arg[1], 0, 10);
    for (int i = 0; i < 2 * ODD; i++)
        for (int j = 0; j < 2 * ODD; j++)
            one(i % 2 ? -odd[i / 2] : odd[i / 2], j % 2 ? -odd[j / 2] : odd[j / 2], 1);
    for (uint64_t b = 0; b < 0x100000000u; b += step) {
        float x = from((uint32_t)b), y = 0;
        if (PAIRS) {
            uint32_t r = drawn();
            x = from(drawn()), y = from(drawn());
            if (r % 4) /* of about the same size */
                y = ldexpf(1 + (float)(drawn() % 8388608) / 8388608, ilogbf(x) + (int)(r / 4 % 13) - 6);
            if (POWER && r % 8) {
                x = ldexpf(1 + (float)(drawn() % 8388608) / 8388608, (int)(drawn() % (r % 3 ? 4 : 250)) - (r % 3 ? 2 : 125));
                y = (float)(((double)drawn() / 0x1p31 - 1) * 150 / (fabs(log2(x)) + 1e-3));
            }
        }
        one(x, y, 0);
    }
    printf("%-10s %.3f ulp at %a %a: %a; wrong special values %llu", arg[2], worst, at_x, at_y, was,
           (unsigned long long)special_wrong);
    if (special_wrong) printf(", such as %a %a: %a, not %a", sx, sy, sgot, swant);
    printf("\n");
    return 0;
}
"""


def host_ir(text):
    """The kernel's IR as a function of the host: k(a, b, out) of one element."""
    text = re.sub(r"target (datalayout|triple) = .*\n", "", text)
    text = text.replace(" addrspace(1)", "").replace("addrspace(4) ", "")
    text = text.replace("ptr addrspace(4)", "ptr")
    text = text.replace("ptx_kernel ", "").replace("attributes #", "; #")
    text = re.sub(r" #\d+", "", text)
    text = text.replace("@llvm.nvvm.read.ptx.sreg.tid.x", "@tid")
    text = re.sub(r"declare .*@tid\(\)", "declare i32 @tid()", text)
    text = re.sub(r'asm sideeffect "ld\.[\w.:]+ \$0, \[\$1\];", "=r,l"', "@ld32", text)
    text = re.sub(r'asm sideeffect "st\.[\w.:]+ \[\$0\], \$1;", "l,r"', "@st32", text)
    text = re.sub(r'asm "(\w+)\.approx[\w.]* \$0, \$1;", "=f,f"', r"@hw_\1", text)
    text = re.sub(r"@llvm\.nvvm\.(sqrt|rsqrt)\.approx\.f", r"@hw_\1", text)
    text = text.replace("@llvm.nvvm.div.full", "@hw_div")
    text = re.sub(r"declare float @hw_\w+\(.*\n", "", text)
    names = set(re.findall(r"@(hw_\w+)\(", text))
    two = {"hw_div": "float, float"}
    text += "".join("declare float @%s(%s)\n" % (n, two.get(n, "float")) for n in names)
    return text + """
define internal i32 @ld32(i64 %p) alwaysinline {
  %q = inttoptr i64 %p to ptr
  %v = load i32, ptr %q
  ret i32 %v
}
define internal void @st32(i64 %p, i32 %v) alwaysinline {
  %q = inttoptr i64 %p to ptr
  store i32 %v, ptr %q
  ret void
}
"""


def check(name, step, folder):
    two = name in TWO
    loads = "tl.load(a + i)" + (", tl.load(b + i)" if two else "")
    call = ("tl.math.%s" if name in ("sin", "cos", "exp", "log") else "libdevice.%s") % name
    path = os.path.join(folder, name)
    with open(path + ".py", "w") as f:
        f.write(KERNEL % ("%s(%s)" % (call, loads)))
    p = subprocess.run([SDC, "compile", path + ".py", "--target", "sm_90a", "--emit",
                        "llvm", "-s", "*fp32:16,*fp32:16,*fp32:16"], capture_output=True,
                       text=True)
    if p.returncode:
        return p.stderr
    with open(path + ".ll", "w") as f:
        f.write(host_ir(p.stdout))
    plain = re.sub(r"^fast_(\w+)f$", r"\1", name)
    want = REFERENCE.get(name, plain + ("(x, y)" if two else "(x)"))
    with open(path + ".c", "w") as f:
        f.write("#define _GNU_SOURCE\n#define WANT (%s)\n#define PAIRS %d\n#define POWER %d\n"
                "#define SKIPPED (%s)\n"
                % (want, two, "pow" in name, SKIPPED.get(name, "0")) + HARNESS)
    p = subprocess.run([CLANG, "-O2", "-march=native", "-ffp-contract=off", "-w",
                        "-fno-math-errno", "-o", path, path + ".c", path + ".ll", "-lm"],
                       capture_output=True, text=True)
    if p.returncode:
        return p.stderr
    return subprocess.run([path, str(step), name], capture_output=True, text=True).stdout


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--step", type=int, default=97)
    p.add_argument("names", nargs="+")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = os.environ.get("KEEP", folder)
        for name in a.names:
            print(check(name, a.step, folder).rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
