"""One number to one number: math functions, gates, random numbers, an optimizer."""

import atexit
import importlib.util
import os
import shutil
import tempfile

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from cases import CASES, bf16, case, cd, f32, rn

SOURCE = """import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def k(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n).to(tl.float32)
    tl.store(o + i, {body}, mask=i < n)
"""
FOLDER = tempfile.mkdtemp()
atexit.register(shutil.rmtree, FOLDER)


def elem(name, body, tf, dt=f32, pos=False, n=1 << 18):
    """A kernel of one expression, in a file of its own: jit reads the source."""

    def c():
        path = os.path.join(FOLDER, name + ".py")
        with open(path, "w") as f:
            f.write(SOURCE.format(body=body))
        spec = importlib.util.spec_from_file_location(name, path)
        m = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(m)
        x = (torch.rand(n) + 0.1 if pos else rn(n)).to(dt)
        o = torch.empty_like(x)
        return (
            (lambda: m.k[(cd(n, 1024),)](x, o, n, 1024)),
            (lambda: tf(x)),
            o,
            tf(x.double()),
        )

    c.__name__ = f"elem_{name}_{dt}"
    CASES.append(c)


elem("exp", "tl.exp(v)", torch.exp)
elem("log", "tl.log(v)", torch.log, pos=True)
elem("tanh", "libdevice.tanh(v)", torch.tanh)
elem("erf", "tl.erf(v)", torch.erf)
elem("sin", "tl.sin(v)", torch.sin)
elem("cos", "tl.cos(v)", torch.cos)
elem("sigmoid", "tl.sigmoid(v)", torch.sigmoid)
elem("pow", "libdevice.pow(v, 2.3)", lambda x: torch.pow(x, 2.3), pos=True)
elem("gelu", "0.5 * v * (1 + tl.erf(v * 0.7071067811865476))", F.gelu)
elem(
    "gelutanh",
    "0.5 * v * (1 + libdevice.tanh(0.7978845608 * (v + 0.044715 * v * v * v)))",
    lambda x: F.gelu(x, approximate="tanh"),
)
elem("softplus", "tl.where(v > 20, v, libdevice.log1p(tl.exp(v)))", F.softplus)
elem("mish", "v * libdevice.tanh(libdevice.log1p(tl.exp(v)))", F.mish)
elem("rsqrt", "tl.rsqrt(v)", torch.rsqrt, pos=True)
elem(
    "atan2", "libdevice.atan2(v, 1.5)", lambda x: torch.atan2(x, torch.full_like(x, 1.5))
)
elem("elu", "tl.where(v > 0, v, libdevice.expm1(v))", F.elu)
elem("silu", "v * tl.sigmoid(v)", F.silu, bf16)
elem("gelub", "0.5 * v * (1 + tl.erf(v * 0.7071067811865476))", F.gelu, bf16)
elem("lgamma", "libdevice.lgamma(v)", torch.lgamma, pos=True)
elem("expm1", "libdevice.expm1(v)", torch.expm1)
elem("log2", "tl.log2(v)", torch.log2, pos=True)
elem("acos", "libdevice.acos(v * 0.1)", lambda x: torch.acos(x * 0.1))
elem("cbrt", "libdevice.cbrt(v)", lambda x: torch.sign(x) * torch.abs(x) ** (1 / 3))
elem("round", "libdevice.rint(v * 10)", lambda x: torch.round(x * 10))


@triton.jit
def swiglu_k(a, b, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    v = tl.load(a + i, mask=m).to(tl.float32)
    tl.store(
        o + i, (v * tl.sigmoid(v)).to(b.dtype.element_ty) * tl.load(b + i, mask=m), mask=m
    )


for dt in (f32, bf16):

    def c(dt=dt):
        n = 512 * 1000
        a = rn(n, dt=dt)
        b = rn(n, dt=dt)
        o = torch.empty_like(a)
        return (
            (lambda: swiglu_k[(cd(n, 1024),)](a, b, o, n, 1024)),
            (lambda: F.silu(a) * b),
            o,
            F.silu(a.double()) * b.double(),
        )

    c.__name__ = f"swiglu_{dt}"
    CASES.append(c)


@triton.jit
def dropout_k(x, o, n, p, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(
        o + i,
        tl.where(tl.rand(seed, i) > p, tl.load(x + i, mask=m) / (1 - p), 0.0),
        mask=m,
    )


@triton.jit
def randn_k(o, n, seed, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.randn(seed, i), mask=i < n)


@case
def dropout_262144():
    x = rn(1 << 18)
    o = torch.empty_like(x)
    return (
        (lambda: dropout_k[(256,)](x, o, 1 << 18, 0.1, 7, 1024)),
        (lambda: F.dropout(x, 0.1)),
        o,
        None,
    )


@case
def randn_262144():
    o = torch.empty(1 << 18)
    return (
        (lambda: randn_k[(256,)](o, 1 << 18, 7, 1024)),
        (lambda: torch.randn(1 << 18)),
        o,
        None,
    )


@triton.jit
def adamw_k(p, g, m, v, lr, b1, b2, eps, wd, c1, c2, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    k = i < n
    G = tl.load(g + i, mask=k)
    P = tl.load(p + i, mask=k)
    M = tl.load(m + i, mask=k) * b1 + (1 - b1) * G
    V = tl.load(v + i, mask=k) * b2 + (1 - b2) * G * G
    P = P * (1 - lr * wd) - lr * (M / c1) / (tl.sqrt(V / c2) + eps)
    tl.store(p + i, P, mask=k)
    tl.store(m + i, M, mask=k)
    tl.store(v + i, V, mask=k)


@case
def adamw_200000():
    n = 200000
    P = rn(n).requires_grad_()
    P.grad = rn(n)
    q = [rn(n), P.grad.clone(), torch.zeros(n), torch.zeros(n)]
    opt = torch.optim.AdamW([P], fused=True)
    return (
        (
            lambda: adamw_k[(cd(n, 1024),)](
                *q, 1e-3, 0.9, 0.999, 1e-8, 0.01, 0.1, 0.001, n, 1024
            )
        ),
        opt.step,
        q[0],
        None,
    )


@triton.jit
def addk(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


for n in (100, 5000, 100003):

    def c(n=n):
        x, y = rn(n), rn(n)
        o = torch.empty(n)
        return (
            (lambda: addk[(cd(n, 1024),)](x, y, o, n, 1024)),
            (lambda: torch.add(x, y)),
            o,
            x.double() + y.double(),
        )

    c.__name__ = f"add_{n}"
    CASES.append(c)
