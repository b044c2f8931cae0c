"""Operators of torch, torch.ops.sdc.*: the kernels of sdc_nn.h with their gradients.

They know their shapes without data, so that torch.compile takes them into its graphs, and
run on the CPU and on GPUs. Dropout keeps no mask: p, seed and offset say it again.

    import sdc.ops as F
    y = F.layer_norm(x, w, b)
    o = F.attention(q, k, v, causal=True)
"""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from . import nn
from .errors import ArgumentError


def _op(name: str, function, schema: str):
    """An operator sdc::`name` that reads its arguments only. What is another number in each
    call is a SymInt, or torch.compile would compile for each."""
    return torch.library.custom_op("sdc::" + name, function, mutates_args=(),
                                   schema=schema)


_dropout = _op("dropout", nn.dropout,
               "(Tensor x, Tensor? bias, Tensor? residual, float p, SymInt seed, "
               "SymInt offset, str act) -> Tensor")
_dropout_backward = _op("dropout_backward", nn.dropout_backward,
                        "(Tensor dy, Tensor? x, Tensor? bias, float p, SymInt seed, "
                        "SymInt offset, str act) -> (Tensor, Tensor)")
_sparse = _op("sparse_linear", nn.sparse_linear,
              "(Tensor x, Tensor w, float p, SymInt seed, SymInt offset, int block_m, "
              "int block_k) -> Tensor")
_sparse_backward = _op("sparse_linear_backward", nn.sparse_linear_backward,
                       "(Tensor dy, Tensor x, Tensor w, float p, SymInt seed, "
                       "SymInt offset, int block_m, int block_k) -> (Tensor, Tensor)")
_matmul = _op("matmul", nn.matmul,
              "(Tensor a, Tensor b, Tensor? bias, str act, bool exact) -> Tensor")
_softmax = _op("softmax", nn.softmax, "(Tensor x) -> Tensor")
_norm = _op("layer_norm", nn.layer_norm,
            "(Tensor x, Tensor w, Tensor b, float eps) -> (Tensor, Tensor, Tensor)")
_norm_backward = _op("layer_norm_backward", nn.layer_norm_backward,
                     "(Tensor dy, Tensor x, Tensor w, Tensor mean, Tensor rstd) "
                     "-> (Tensor, Tensor, Tensor)")
_attention = _op("attention", nn.attention,
                 "(Tensor q, Tensor k, Tensor v, bool causal, float scale, float p, "
                 "SymInt seed) -> (Tensor, Tensor)")
_attention_backward = _op("attention_backward", nn.attention_backward,
                          "(Tensor dout, Tensor q, Tensor k, Tensor v, Tensor o, "
                          "Tensor lse, bool causal, float scale, float p, SymInt seed) "
                          "-> (Tensor, Tensor, Tensor)")

_rms = _op("rms_norm", nn.rms_norm, "(Tensor x, Tensor w, float eps) -> (Tensor, Tensor)")
_rms_backward = _op("rms_norm_backward", nn.rms_norm_backward,
                    "(Tensor dy, Tensor x, Tensor w, Tensor rstd, Tensor? add) "
                    "-> (Tensor, Tensor)")
_entropy = _op("cross_entropy", nn.cross_entropy,
               "(Tensor x, Tensor target, int ignore) -> (Tensor, Tensor)")
_entropy_backward = _op("cross_entropy_backward", nn.cross_entropy_backward,
                        "(Tensor x, Tensor target, Tensor lse, Tensor? dloss, "
                        "float scale, int ignore) -> Tensor")
_swiglu = _op("swiglu", nn.swiglu, "(Tensor gate, Tensor up) -> Tensor")
_swiglu_backward = _op("swiglu_backward", nn.swiglu_backward,
                       "(Tensor dout, Tensor gate, Tensor up) -> (Tensor, Tensor)")
_rotary = _op("rotary", nn.rotary,
              "(Tensor x, Tensor cos, Tensor sin, Tensor? places, SymInt first, bool pairs, "
              "bool inverse) -> Tensor")

# ---------------------------------------------------------------- shapes


def _dense(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


_dropout.register_fake(lambda x, *rest: _dense(x))
_dropout_backward.register_fake(lambda dy, x, bias, *rest: (
    _dense(dy), dy.new_empty(0) if bias is None else torch.empty_like(bias)))
_sparse.register_fake(lambda x, w, *rest: x.new_empty(x.shape[0], w.shape[1]))
_sparse_backward.register_fake(lambda dy, x, w, *rest: (torch.empty_like(x),
                                                       torch.empty_like(w)))
_matmul.register_fake(lambda a, b, *rest: a.new_empty(a.shape[0], b.shape[1]))
_softmax.register_fake(_dense)


@_norm.register_fake
def _(x, w, b, eps):
    row = x.new_empty(x.shape[0], dtype=torch.float32)
    return _dense(x), row, torch.empty_like(row)


_norm_backward.register_fake(lambda dy, x, w, mean, rstd: (
    _dense(x), torch.empty_like(w), torch.empty_like(w)))
_attention.register_fake(lambda q, k, v, *rest: (
    nn.like(q, v), q.new_empty(q.shape[:3], dtype=torch.float32)))
_attention_backward.register_fake(lambda dout, q, k, v, *rest: (
    torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)))

_rms.register_fake(lambda x, w, eps: (
    _dense(x), x.new_empty(x.shape[0], dtype=torch.float32)))
_rms_backward.register_fake(lambda dy, x, w, rstd, add: (_dense(x), torch.empty_like(w)))
_entropy.register_fake(lambda x, *rest: tuple(
    x.new_empty(x.shape[0], dtype=torch.float32) for _ in "le"))
_entropy_backward.register_fake(lambda x, *rest: _dense(x))
_swiglu.register_fake(lambda gate, up: gate.new_empty(gate.shape))
_swiglu_backward.register_fake(lambda dout, gate, up: (gate.new_empty(gate.shape),
                                                       up.new_empty(up.shape)))
_rotary.register_fake(lambda x, *rest: torch.empty_like(x))

# ---------------------------------------------------------------- gradients


def _keep(count: int):
    """A set-up that keeps the first inputs for the gradient, and the rest as they are."""
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:count])
        ctx.rest = inputs[count:]
    return setup


def _dropout_gradient(ctx, dy):
    x, bias, residual = ctx.saved_tensors
    act = ctx.rest[-1]
    dx, db = _dropout_backward(dy.contiguous(), x if act != "none" else None, bias,
                               *ctx.rest)
    return (dx.to(x.dtype), db if bias is not None else None,
            dy if residual is not None else None, None, None, None, None)


def _sparse_gradient(ctx, dy):
    x, w = ctx.saved_tensors
    return (*_sparse_backward(dy, x, w, *ctx.rest), None, None, None, None, None)


def _matmul_gradient(ctx, dc):
    a, b, bias = ctx.saved_tensors
    act, exact = ctx.rest
    if act != "none":  # what went into the activation is computed again
        before = _matmul(a, b, bias, "none", exact)
        dc, _ = _dropout_backward(dc.contiguous(), before, None, 0.0, 0, 0, act)
    da = _matmul(dc, b.t(), None, "none", exact) if ctx.needs_input_grad[0] else None
    db = _matmul(a.t(), dc, None, "none", exact) if ctx.needs_input_grad[1] else None
    return da, db, dc.sum(0) if bias is not None else None, None, None


def _softmax_setup(ctx, inputs, output):
    ctx.save_for_backward(output)


def _softmax_gradient(ctx, dy):
    y, = ctx.saved_tensors
    s = y * dy
    return s - y * s.sum(-1, keepdim=True)


def _norm_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2], *output[1:])


def _norm_gradient(ctx, dy, dmean, drstd):
    return (*_norm_backward(dy.contiguous(), *ctx.saved_tensors), None)


def _attention_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3], *output)
    ctx.rest = inputs[3:]


def _attention_gradient(ctx, dout, dlse):
    return (*_attention_backward(dout, *ctx.saved_tensors, *ctx.rest), None, None, None,
            None)


def _rms_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2], output[1])


def _rms_gradient(ctx, dy, drstd):
    return (*_rms_backward(dy.contiguous(), *ctx.saved_tensors, None), None)


def _entropy_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:2], output[1])
    ctx.ignore = inputs[2]


def _entropy_gradient(ctx, dloss, dlse):
    return (_entropy_backward(*ctx.saved_tensors, dloss.contiguous(), 1.0, ctx.ignore),
            None, None)


def _swiglu_gradient(ctx, dout):
    return _swiglu_backward(dout.contiguous(), *ctx.saved_tensors)


def _rotary_gradient(ctx, dout):
    cos, sin, places = ctx.saved_tensors
    first, pairs, inverse = ctx.rest
    return (_rotary(dout, cos, sin, places, first, pairs, not inverse), None, None, None,
            None, None, None)


def _rotary_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[1:4])
    ctx.rest = inputs[4:]


_rms.register_autograd(_rms_gradient, setup_context=_rms_setup)
_entropy.register_autograd(_entropy_gradient, setup_context=_entropy_setup)
_swiglu.register_autograd(_swiglu_gradient, setup_context=_keep(2))
_rotary.register_autograd(_rotary_gradient, setup_context=_rotary_setup)
_dropout.register_autograd(_dropout_gradient, setup_context=_keep(3))
_sparse.register_autograd(_sparse_gradient, setup_context=_keep(2))
_matmul.register_autograd(_matmul_gradient, setup_context=_keep(3))
_softmax.register_autograd(_softmax_gradient, setup_context=_softmax_setup)
_norm.register_autograd(_norm_gradient, setup_context=_norm_setup)
_attention.register_autograd(_attention_gradient, setup_context=_attention_setup)

# ---------------------------------------------------------------- for users


def _need(call: str, least: tuple[int, ...], **tensors: Optional[Tensor]) -> None:
    """Tensors on one device, each of so many dimensions at least; None is left out."""
    place = None
    for n, (name, t) in zip(least, tensors.items()):
        if t is None:
            continue
        if not isinstance(t, Tensor):
            raise TypeError(f"{call}(): '{name}' is a {type(t).__name__}, needed is a "
                            "torch.Tensor")
        if t.dim() < n:
            raise ArgumentError(f"{call}(): '{name}' has {t.dim()} dimensions, at least "
                                f"{n} are needed")
        place = place or t.device
        if t.device != place:
            raise ArgumentError(f"{call}(): '{name}' is on {t.device}, others on {place}")


def _seed(seed: int) -> int:
    """torch.seed() has 64 bits, the schema's int has a sign."""
    return seed - 2**64 if isinstance(seed, int) and seed >= 2**63 else seed


def _matrix(x: Tensor) -> Tensor:
    return x.reshape(x.shape[:-1].numel(), x.shape[-1])


def _rows(x: Tensor) -> Tensor:
    return _matrix(x).contiguous()


def _autocast(products: bool, *tensors: Optional[Tensor]) -> tuple:
    """Under torch.autocast as torch's own: operands of products in its dtype, norms and
    sums in fp32."""
    device = next(t.device.type for t in tensors if t is not None)
    if device == "meta" or not torch.is_autocast_enabled(device):
        return tensors
    dtype = torch.get_autocast_dtype(device) if products else torch.float32
    return tuple(t if t is None or t.dtype == torch.float64 else t.to(dtype)
                 for t in tensors)


def dropout(x: Tensor, p: float, seed: int, offset: int = 0,
            bias: Optional[Tensor] = None, residual: Optional[Tensor] = None,
            act: str = "none") -> Tensor:
    """residual + drop(act(x + bias)); act: none, relu, silu or gelu."""
    _need("dropout", (1, 1, 1), x=x, bias=bias, residual=residual)
    r = None if residual is None else _rows(residual)
    return _dropout(_rows(x), bias, r, p, _seed(seed), offset, act).view(x.shape)


def sparse_linear(x: Tensor, w: Tensor, p: float, seed: int, offset: int = 0,
                  block: tuple[int, int] = (128, 128)) -> Tensor:
    """(x with blocks dropped) @ w / (1 - p); dead blocks are not multiplied."""
    _need("sparse_linear", (1, 2), x=x, w=w)
    x, w = _autocast(True, x, w)
    y = _sparse(_matrix(x), w, p, _seed(seed), offset, *block)
    return y.view(*x.shape[:-1], w.shape[1])


def matmul(a: Tensor, b: Tensor, bias: Optional[Tensor] = None, act: str = "none",
           exact: bool = False) -> Tensor:
    """act(a @ b + bias) for matrices b; fp32 in tf32 on a GPU unless `exact`."""
    _need("matmul", (1, 2, 1), a=a, b=b, bias=bias)
    a, b, bias = _autocast(True, a, b, bias)
    c = _matmul(_matrix(a), b, bias, act, exact)
    return c.view(*a.shape[:-1], b.shape[1])


def softmax(x: Tensor) -> Tensor:
    """softmax over the last dimension."""
    _need("softmax", (1,), x=x)
    x, = _autocast(False, x)
    return _softmax(_rows(x)).view(x.shape)


def layer_norm(x: Tensor, w: Tensor, b: Tensor, eps: float = 1e-5) -> Tensor:
    """Layer norm over the last dimension."""
    _need("layer_norm", (1, 1, 1), x=x, w=w, b=b)
    x, w, b = _autocast(False, x, w, b)
    return _norm(_rows(x), w, b, eps)[0].view(x.shape)


def rms_norm(x: Tensor, w: Tensor, eps: float = 1e-5) -> Tensor:
    """Root mean square norm over the last dimension."""
    _need("rms_norm", (1, 1), x=x, w=w)
    x, w = _autocast(False, x, w)
    return _rms(_rows(x), w, eps)[0].view(x.shape)


def cross_entropy(x: Tensor, target: Tensor, ignore: int = -100) -> Tensor:
    """The loss of each row of x [.., classes], 0 where the target is `ignore`. A target that is
    neither that nor a class: IndexError on the CPU, as in torch; on a GPU, where nobody waits for
    the answer, loss and gradient of the row are NaN."""
    _need("cross_entropy", (1, 0), x=x, target=target)
    x, = _autocast(False, x)
    return _entropy(_rows(x), target.reshape(-1), ignore)[0].view(target.shape)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate) * up; both may be halves of one tensor's last dimension."""
    _need("swiglu", (1, 1), gate=gate, up=up)
    return _swiglu(_matrix(gate), _matrix(up)).view(gate.shape)


def rotary(x: Tensor, cos: Tensor, sin: Tensor, places: Optional[Tensor] = None,
           first: int = 0, pairs: bool = False) -> Tensor:
    """x [batch, heads, rows, dim] turned by the angles [positions, dim / 2] of each
    row's position: first + row, or places [batch, rows]."""
    _need("rotary", (4, 2, 2, 2), x=x, cos=cos, sin=sin, places=places)
    return _rotary(x, cos, sin, places, first, pairs, False)


def attention(q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float = 0.0,
              p: float = 0.0, seed: Optional[int] = None) -> Tensor:
    """softmax(scale q k^T) v of [batch, heads, rows, dim]; scale 0: 1 / sqrt(dim).

    causal: the last row sees all keys, the one before one less, as rows behind a cache of
    keys do (torch's is_causal counts from the first). Heads of q may be a multiple of those
    of k and v. With p > 0 a seed is needed, another one in each call: one seed drops the
    same."""
    _need("attention", (4, 4, 4), q=q, k=k, v=v)
    if p > 0 and seed is None:
        raise ArgumentError("attention(): p > 0 needs a seed, another one in each call")
    q, k, v = _autocast(True, q, k, v)
    return _attention(q, k, v, causal, scale, p, _seed(seed or 0))[0]
