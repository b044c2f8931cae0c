"""The functions of runtime/sdc_nn.h on tensors of torch, without autograd.

What a call needs beside its tensors is here: the handle of the tensors' device, structs
and workspace. sdc.ops makes operators of torch of them.
"""

from __future__ import annotations

import ctypes as C
import os
from typing import Any, Optional

import torch

from . import _lib as L
from . import context, dtypes
from .errors import ArgumentError
from .launch import _stream_of

ACTIVATIONS = {"none": 0, "relu": 1, "silu": 2, "gelu": 3}
# by device and, in the child of a fork, its process
_handles: dict[tuple[str, int, int], Kernels] = {}


class Kernels:
    """The library's kernels on one device."""

    def __init__(self, where: tuple[str, int]) -> None:
        self.context, self.handle = context.get(*where), C.c_void_p()
        self.stream = _stream_of(where)
        self.context.check(L.lib.sdc_kernels_create(self.context.handle,
                                                    C.byref(self.handle)))

    def __call__(self, name: str, *args: Any) -> None:
        """sdc_`name` of the arguments, tensors as they are, on the current stream."""
        given = [C.byref(tensor(a)) if isinstance(a, torch.Tensor) else
                 C.byref(a) if isinstance(a, C.Structure) else a for a in args]
        stream = self.stream() if self.stream else None
        self.context.check(getattr(L.lib, "sdc_" + name)(self.handle, *given, stream))


def of(x: torch.Tensor, *others: Optional[torch.Tensor]) -> Kernels:
    """The kernels where `x` is, and the others are."""
    for other in others:
        if other is not None and other.device != x.device:
            raise ArgumentError(f"tensors at different places: {x.device} and "
                                f"{other.device}")
    where = (x.device.type, x.device.index or 0)
    key = (*where, os.getpid())
    found = _handles.get(key)
    if found is None:
        if where[0] not in ("cpu", "cuda"):
            raise ArgumentError(f"a tensor on '{where[0]}': kernels run on cpu and cuda")
        found = _handles[key] = Kernels(where)
    return found


def tensor(x: torch.Tensor) -> L.Tensor:
    """An SdcTensor of a tensor of torch."""
    if not 1 <= x.dim() <= L.MAX_RANK:
        raise ArgumentError(f"a tensor of {x.dim()} dimensions: 1 to {L.MAX_RANK}")
    return L.Tensor(dtypes.code(x.dtype), x.dim(), x.data_ptr(),
                    tuple(x.shape), tuple(x.stride()))


def activation(name: str) -> int:
    """The number of an activation."""
    if name not in ACTIVATIONS:
        raise ArgumentError(f"no activation '{name}': {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def workspace(like: torch.Tensor, size: int) -> tuple[torch.Tensor, Optional[int]]:
    """Memory on the tensor's device and the address in it that falls on 256 bytes."""
    memory = torch.empty(size + 256, dtype=torch.uint8, device=like.device)
    return memory, (memory.data_ptr() + 255) & ~255 if size else None


def dropout(x: torch.Tensor, bias: Optional[torch.Tensor],
            residual: Optional[torch.Tensor], p: float, seed: int, offset: int,
            act: str) -> torch.Tensor:
    """residual + drop(act(x + bias))."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    d = L.Dropout(p, seed, offset, activation(act), 0)
    of(x, bias, residual)("dropout_forward", x, bias, residual, out, d)
    return out


def dropout_backward(dy: torch.Tensor, x: Optional[torch.Tensor],
                     bias: Optional[torch.Tensor], p: float, seed: int, offset: int,
                     act: str) -> tuple[torch.Tensor, torch.Tensor]:
    """dx and dbias; dbias is empty without a bias."""
    dx = torch.empty_like(dy, memory_format=torch.contiguous_format)
    db = dy.new_empty(0) if bias is None else torch.empty_like(bias)
    d = L.Dropout(p, seed, offset, activation(act), 0)
    of(dy, x, bias)("dropout_backward", dy, x, bias, dx, None if bias is None else db, d)
    return dx, db


def sparse_linear(x: torch.Tensor, w: torch.Tensor, p: float, seed: int, offset: int,
                  block_m: int, block_k: int) -> torch.Tensor:
    """(x with blocks dropped) @ w / (1 - p)."""
    y = x.new_empty(x.shape[0], w.shape[1])
    k = of(x, w)
    size = L.lib.sdc_sparse_linear_workspace(k.handle, *x.shape)
    memory, at = workspace(x, size)
    k("sparse_linear_forward", x, w, y,
      L.BlockDropout(p, seed, offset, block_m, block_k, at))
    del memory
    return y


def sparse_linear_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor, p: float,
                           seed: int, offset: int, block_m: int,
                           block_k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """dx and dw."""
    dx, dw = torch.empty_like(x), torch.empty_like(w)
    k = of(x, dy, w)
    size = L.lib.sdc_sparse_linear_workspace(k.handle, *x.shape)
    memory, at = workspace(x, size)
    k("sparse_linear_backward", dy, x, w, dx, dw,
      L.BlockDropout(p, seed, offset, block_m, block_k, at))
    del memory
    return dx, dw


def matmul(a: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor], act: str,
           exact: bool) -> torch.Tensor:
    """act(a @ b + bias)."""
    c = a.new_empty(a.shape[0], b.shape[1])
    of(a, b, bias)("matmul", a, b, bias, c, activation(act), int(exact))
    return c


def _options(act: str, exact: bool, fast_sums: bool,
             **tensors: Optional[torch.Tensor]) -> L.MatmulOptions:
    o = L.MatmulOptions(size=C.sizeof(L.MatmulOptions), act=activation(act),
                        exact=int(exact), fast_sums=int(fast_sums))
    for name, t in tensors.items():
        if t is not None:
            setattr(o, name, C.pointer(tensor(t)))
    return o


def matmul_with(a: torch.Tensor, b: torch.Tensor, bias: Optional[torch.Tensor] = None,
                residual: Optional[torch.Tensor] = None, act: str = "none",
                exact: bool = False, *, a_scale: Optional[torch.Tensor] = None,
                b_scale: Optional[torch.Tensor] = None, fast_sums: bool = False,
                out_dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """act(a_scale * b_scale * (a @ b) + bias) + residual, of matrices or of batches of them;
    scales of rows of a and columns of b, fp32. Products of fp8 are bf16 unless said."""
    c = a.new_empty(*a.shape[:-1], b.shape[-1], dtype=out_dtype or _result(a))
    of(a, b, bias, residual, a_scale, b_scale)(
        "matmul_with", a, b, c,
        _options(act, exact, fast_sums, bias=bias, residual=residual, a_scale=a_scale,
                 b_scale=b_scale))
    return c


def _result(a: torch.Tensor) -> torch.dtype:
    return torch.bfloat16 if a.dtype.itemsize == 1 else a.dtype


def matmul_grouped(a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor,
                   bias: Optional[torch.Tensor] = None,
                   residual: Optional[torch.Tensor] = None, act: str = "none",
                   exact: bool = False, *, a_scale: Optional[torch.Tensor] = None,
                   b_scale: Optional[torch.Tensor] = None, fast_sums: bool = False,
                   out_dtype: Optional[torch.dtype] = None) -> torch.Tensor:
    """Rows offsets[g] to offsets[g + 1] of a times b[g]; rows of no group are zero. Options
    as matmul_with's."""
    c = a.new_zeros(a.shape[0], b.shape[2], dtype=out_dtype or _result(a))
    of(a, b, offsets, bias, residual, a_scale, b_scale)(
        "matmul_grouped", a, b, offsets, c,
        _options(act, exact, fast_sums, bias=bias, residual=residual, a_scale=a_scale,
                 b_scale=b_scale))
    return c


def matmul_grouped_sum(a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor,
                       exact: bool) -> torch.Tensor:
    """Those rows of a, turned, times those of b: [groups, columns of a, columns of b]."""
    c = a.new_empty(offsets.shape[0] - 1, a.shape[1], b.shape[1])
    of(a, b, offsets)("matmul_grouped_sum", a, b, offsets, c, int(exact))
    return c


def softmax(x: torch.Tensor) -> torch.Tensor:
    """softmax over the last dimension of a matrix."""
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    of(x)("softmax_forward", x, out)
    return out


def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: float) -> \
        tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """y, mean and rstd of the rows of a matrix."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    mean = x.new_empty(x.shape[0], dtype=torch.float32)
    rstd = torch.empty_like(mean)
    of(x, w, b)("layer_norm_forward", x, w, b, y, mean, rstd, eps)
    return y, mean, rstd


def layer_norm_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor,
                        mean: torch.Tensor, rstd: torch.Tensor) -> \
        tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dx, dw and db."""
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    dw, db = torch.empty_like(w), torch.empty_like(w)
    k = of(x, dy, w)
    memory, at = workspace(x, L.lib.sdc_layer_norm_workspace(k.handle, x.shape[1]))
    k("layer_norm_backward", dy, x, w, mean, rstd, dx, dw, db, at)
    del memory
    return dx, dw, db


def rms_norm(x: torch.Tensor, w: torch.Tensor,
             eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """y and rstd of the rows of a matrix."""
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    rstd = x.new_empty(x.shape[0], dtype=torch.float32)
    of(x, w)("rms_norm_forward", x, w, y, rstd, eps)
    return y, rstd


def rms_norm_backward(dy: torch.Tensor, x: torch.Tensor, w: torch.Tensor,
                      rstd: torch.Tensor, add: Optional[torch.Tensor]) -> \
        tuple[torch.Tensor, torch.Tensor]:
    """dx, with `add` on top, and dw."""
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    dw, k = torch.empty_like(w), of(x, dy, w, add)
    memory, at = workspace(x, L.lib.sdc_rms_norm_workspace(k.handle, x.shape[1]))
    k("rms_norm_backward", dy, x, w, rstd, add, dx, dw, at)
    del memory
    return dx, dw


def cross_entropy(x: torch.Tensor, target: torch.Tensor,
                  ignore: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of each row and the logarithm of its sum of exponentials."""
    if x.device.type == "cpu":  # as torch's own, which asks on a GPU later, if at all
        outside = ((target < 0) | (target >= x.shape[1])) & (target != ignore)
        if outside.any():
            raise IndexError(f"target {int(target[outside][0])} is none of {x.shape[1]} "
                             "classes")
    loss = x.new_empty(x.shape[0], dtype=torch.float32)
    lse = torch.empty_like(loss)
    of(x, target)("cross_entropy_forward", x, target, loss, lse, ignore)
    return loss, lse


def cross_entropy_backward(x: torch.Tensor, target: torch.Tensor, lse: torch.Tensor,
                           dloss: Optional[torch.Tensor], scale: float,
                           ignore: int) -> torch.Tensor:
    """dx for dloss * scale."""
    dx = torch.empty_like(x, memory_format=torch.contiguous_format)
    of(x, target, dloss)("cross_entropy_backward", x, target, lse, dloss, dx, scale,
                         ignore)
    return dx


def swiglu(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """silu(gate) * up."""
    out = gate.new_empty(gate.shape)
    of(gate, up)("swiglu_forward", gate, up, out)
    return out


def swiglu_backward(dout: torch.Tensor, gate: torch.Tensor,
                    up: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """dgate and dup."""
    dgate, dup = gate.new_empty(gate.shape), up.new_empty(up.shape)
    of(gate, up, dout)("swiglu_backward", dout, gate, up, dgate, dup)
    return dgate, dup


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor,
           places: Optional[torch.Tensor], first: int, pairs: bool,
           inverse: bool) -> torch.Tensor:
    """x [batch, heads, rows, dim] turned by the angles of its positions."""
    out = torch.empty_like(x)
    r = L.Rotary(size=C.sizeof(L.Rotary), pairs=int(pairs), inverse=int(inverse),
                 first=first)
    if places is not None:
        r.places = C.pointer(tensor(places))
    of(x, cos, sin, places)("rotary", x, cos, sin, out, r)
    return out


def like(q: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Memory for rows as wide as v's in the place of q's."""
    if q.shape[3] == v.shape[3]:
        return torch.empty_like(q)
    return q.new_empty(*q.shape[:3], v.shape[3])


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool,
              scale: float, p: float, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """softmax(scale q k^T) v and the logarithms that the backward pass needs."""
    o = like(q, v)
    lse = q.new_empty(q.shape[:3], dtype=torch.float32)
    of(q, k, v)("flash_attention_forward", q, k, v, o, lse,
                _attention(causal, scale, p, seed))
    return o, lse


def attention_backward(dout: torch.Tensor, q: torch.Tensor, k: torch.Tensor,
                       v: torch.Tensor, o: torch.Tensor, lse: torch.Tensor, causal: bool,
                       scale: float, p: float, seed: int) -> \
        tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dq, dk and dv."""
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    kernels, a = of(q, k, v, dout), _attention(causal, scale, p, seed)
    size = L.lib.sdc_flash_attention_workspace(kernels.handle, C.byref(tensor(q)),
                                               C.byref(a))
    memory, at = workspace(q, size)
    kernels("flash_attention_backward", q, k, v, o, lse, dout, dq, dk, dv, a, at)
    del memory
    return dq, dk, dv


def _attention(causal: bool, scale: float, p: float, seed: int) -> L.Attention:
    return L.Attention(scale=scale, causal=int(causal), p=p, seed=seed)
