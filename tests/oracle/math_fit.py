#!/usr/bin/env python3
"""The coefficients of codegen's math functions: minimax polynomials by Remez' exchange.

    math_fit.py [NAME]...      needs mpmath

A line a fit: degree, interval, the largest weighted error, the coefficients. They are
rounded to the type they are used in one after another, from the lowest power on, and the
others are fitted again each time.
"""
import struct
import sys

from mpmath import mp, mpf

mp.dps = 40


def rounded(x, bits):
    kind = "f" if bits == 32 else "d"
    return mpf(struct.unpack(kind, struct.pack(kind, float(x)))[0])


def remez(target, weight, grid, powers):
    """Coefficients of the powers whose weighted error over the grid is least."""
    n = len(powers)
    last = len(grid) - 1
    at = [round((1 - mp.cos(mp.pi * i / n)) / 2 * last) for i in range(n + 1)]
    best = None
    for _ in range(30):
        rows = mp.matrix(n + 1, n + 1)
        right = mp.matrix(n + 1, 1)
        for i, k in enumerate(at):
            for j, p in enumerate(powers):
                rows[i, j] = grid[k]**p
            rows[i, n] = (-1)**i / weight[k]
            right[i] = target[k]
        try:
            c = mp.lu_solve(rows, right)
        except ZeroDivisionError:
            break
        error = [weight[k] * (target[k] - sum(c[j] * x**p for j, p in enumerate(powers)))
                 for k, x in enumerate(grid)]
        most = max(abs(e) for e in error)
        if best is None or most < best[0]:
            best = most, [c[j] for j in range(n)]
        if most <= abs(c[n]) * mpf("1.001"):
            break
        # One extremum between each two changes of sign.
        found, begin = [], 0
        for k in range(1, len(error) + 1):
            if k == len(error) or error[k] * error[begin] < 0:
                found.append(max(range(begin, k), key=lambda i: abs(error[i])))
                begin = k
        while len(found) > n + 1:
            drop = 0 if abs(error[found[0]]) < abs(error[found[-1]]) else -1
            found.pop(drop)
        if len(found) < n + 1:
            break
        at = found
    return best


def fit(f, low, high, powers, weight=lambda t: 1, bits=32, points=300):
    low, high = mpf(low), mpf(high)
    grid = [low + (high - low) * (1 - mp.cos(mp.pi * (2 * i + 1) / (2 * points))) / 2
            for i in range(points)]
    values = [mpf(f(t)) for t in grid]
    weights = [mpf(weight(t)) for t in grid]
    fixed = {}
    free, c, least = list(powers), None, mp.inf
    while free:
        rest = [v - sum(c * t**p for p, c in fixed.items()) for v, t in zip(values, grid)]
        found = remez(rest, weights, grid, free)
        # of powers without the 0th not every choice of points has a solution
        if found and found[0] < 4 * least:
            least, c = found[0], found[1]
        else:
            c = c[1:]
        fixed[free[0]] = rounded(c[0], bits)
        free = free[1:]
    error = max(abs(w * (v - sum(c * t**p for p, c in fixed.items())))
                for v, w, t in zip(values, weights, grid))
    return [fixed[p] for p in powers], error


def near(f):
    """f without trouble at 0."""
    def g(t):
        return f(t if abs(t) > mpf(10)**-12 else mpf(10)**-12)
    return g


def odd(f):
    """(f(x) - x) / x^3 of s = x^2"""
    return near(lambda s: (f(mp.sqrt(s)) / mp.sqrt(s) - 1) / s)


def erfcx(a):
    return mp.exp(a * a) * mp.erfc(a)


def erfinv_of(w):
    """erfinv of sqrt(1 - e^-w)"""
    if w < 30:
        return mp.erfinv(mp.sqrt(1 - mp.exp(-w)))
    y = -mp.expm1(mp.log1p(-mp.exp(-w)) / 2)  # 1 - sqrt(1 - e^-w)
    x = mp.sqrt(-mp.log(y * mp.sqrt(mp.pi * -mp.log(y))))
    return mp.findroot(lambda z: mp.log(mp.erfc(z) / y), x)


# name: function, interval, coefficients, weight (error relative to the result)
FITS = {
    "asin": (odd(mp.asin), 0, 0.335, 6, lambda s: s),
    "atan": (odd(mp.atan), 0, 1, 8, lambda s: s),
    "tan": (odd(mp.tan), 0, 0.6170, 6, lambda s: s),
    "expm1": (near(lambda f: (mp.expm1(f) / f - 1) / f), -0.41, 0.41, 6,
              lambda f: max(abs(f), mpf("0.03"))),
    "exp": (near(lambda f: (mp.expm1(f) / f - 1) / f), -0.34662, 0.34662, 5,
            lambda f: max(f * f, mpf("0.01"))),
    "exp2": (near(lambda f: (2**f - 1) / f), -0.5, 0.5, 6,
             lambda f: max(abs(f), mpf("0.03"))),
    "exp10": (near(lambda f: (mpf(10)**f - 1) / f), -0.15052, 0.15052, 6,
              lambda f: max(abs(f), mpf("0.01"))),
    "log": (near(lambda f: (mp.log1p(f) / f - 1) / f), -0.2929, 0.4143, 9,
            lambda f: max(abs(f), mpf("0.01"))),
    "log1p": (near(lambda f: (mp.log1p(f) / f - 1) / f), -0.25, 0.5, 9,
              lambda f: max(abs(f), mpf("0.01"))),
    "sinh": (odd(mp.sinh), 0, 1.0, 4, lambda s: s),
    "atanh": (odd(mp.atanh), 0, 0.0295, 4, lambda s: s),
    "erfcx": (lambda t: (lambda a: erfcx(a) * (1 + 2 * a))((2 + 2 * t) / (1 - t)),
              -1, 0.67, 11, lambda t: 1),
    # with w = -log(1 - x^2): erfinv / x around w = 2.1875, whose value has few bits more
    # than fp32; erfinv / r of 1 / r, r = sqrt(w)
    "erfinv": (lambda u: erfinv_of(u + 2.1875) / mp.sqrt(1 - mp.exp(-u - 2.1875)),
               -2.1873, 2.8125, 10,
               lambda u: mp.sqrt(1 - mp.exp(-u - 2.1875)) / erfinv_of(u + 2.1875)),
    "erfinv_far": (lambda v: erfinv_of(v**-2) * v, 0.0985, 0.4473, 10, lambda v: 1),
    "erfcx_all": (lambda t: (lambda a: erfcx(a) * (1 + 2 * a))((2 + 2 * t) / (1 - t)),
                  -1, 0.998, 12, lambda t: 1),
    # Stirling's series by v = 1 / x; lgamma around 1 and 2
    "stirling": (near(lambda v: (mp.loggamma(1 / v) - (1 / v - 0.5) * mp.log(1 / v) + 1 / v
                                 - mp.log(2 * mp.pi) / 2) / v), 0.001, 0.5, 4,
                 lambda v: v),
    "lgamma_1": (near(lambda t: mp.loggamma(1 + t) / t), -0.5, 0.5, 13, lambda t: 1),
    "lgamma_2": (near(lambda t: mp.loggamma(2 + t) / t), -0.5, 1.0, 10, lambda t: 1),
    "sinpi": (near(lambda s: (mp.sinpi(mp.sqrt(s)) / mp.sqrt(s) - mp.pi) / s), 0, 0.0625,
              4, lambda s: s),
    "cospi": (near(lambda s: (mp.cospi(mp.sqrt(s)) - 1) / s), 0, 0.0625, 4, lambda s: s),
    # of fp64, beside pi in two parts; gamma is y^(y - 1/2) e^-y times a polynomial of 1 / y
    "sinpi_64": (near(lambda s: (mp.sinpi(mp.sqrt(s)) / mp.sqrt(s) - mp.pi) / s), 0, 0.0625,
                 7, lambda s: s, 64),
    "cospi_64": (near(lambda s: (mp.cospi(mp.sqrt(s)) - 1) / s), 0, 0.0625, 8,
                 lambda s: s, 64),
    "gamma_64": (near(lambda t: mp.exp(mp.loggamma(1 / t) - (1 / t - 0.5) * mp.log(1 / t)
                                       + 1 / t)), 0.005, 0.5, 15, lambda t: 0.4, 64),
    "exp_64": (near(lambda r: (mp.exp(r) - 1 - r) / r**2), -0.3466, 0.3466, 10,
               lambda r: 0.12, 64),
    "digamma": (lambda t: mp.digamma(1 / t), 0.25, 0.5, 3, lambda t: 1),
}


def main():
    for name in sys.argv[1:] or FITS:
        f, low, high, n, weight = FITS[name][:5]
        bits = FITS[name][5] if len(FITS[name]) > 5 else 32
        c, error = fit(f, low, high, range(n), weight, bits)
        print("%s: %d coefficients, [%s, %s], error 2^%.1f" %
              (name, n, low, high, mp.log(error, 2)))
        print("    " + ", ".join(mp.nstr(x, 9 if bits == 32 else 17) for x in c),
              flush=True)


if __name__ == "__main__":
    main()
