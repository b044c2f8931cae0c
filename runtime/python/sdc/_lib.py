"""libsdc by ctypes: its structs, its functions and its errors as exceptions.

Every struct has the members of the one in runtime/sdc.h or runtime/sdc_nn.h, in their
order; tests/lint/binding.sh compares them.
"""

from __future__ import annotations

import ctypes as C
import os
from pathlib import Path
from typing import Optional

from . import errors
from ._version import __version__

MAX_DESC_RANK = 5
MAX_RANK = 4
MAX_ARGS = 128

(BOOL, I8, I16, I32, I64, U8, U16, U32, U64, FP8E5, FP8E4NV, FP8E4B15, FP16, BF16, FP32,
 FP64, FP8E4B8, FP8E5B16) = range(1, 19)
ARG_PTR, ARG_INT, ARG_FLOAT, ARG_NONE, ARG_DESC, ARG_BUFFER = range(6)
PAD_NAN, ROUND_TF32 = 0x100, 0x200
CHECK_ACCESS, CHECK_NAN = 1, 2

PRINT = C.CFUNCTYPE(None, C.c_void_p, C.c_char_p)


class Options(C.Structure):
    _fields_ = [("size", C.c_size_t),
                ("include_dirs", C.POINTER(C.c_char_p)), ("ninclude", C.c_int),
                ("threads", C.c_int), ("memory_limit", C.c_size_t), ("cpu", C.c_char_p),
                ("color", C.c_int), ("debug", C.c_int), ("target", C.c_char_p),
                ("device", C.c_int), ("cache_dir", C.c_char_p), ("worker", C.c_char_p),
                ("worker_seconds", C.c_int), ("check", C.c_int), ("print", PRINT),
                ("print_user", C.c_void_p), ("defines", C.POINTER(C.c_char_p)),
                ("ndefine", C.c_int)]


class Value(C.Union):
    _fields_ = [("ptr", C.c_void_p), ("i", C.c_int64), ("f", C.c_double)]


class Arg(C.Structure):
    _fields_ = [("kind", C.c_int32), ("dtype", C.c_int32), ("v", Value)]


class Grid(C.Structure):
    _fields_ = [("x", C.c_int32), ("y", C.c_int32), ("z", C.c_int32)]


class Buffer(C.Structure):
    _fields_ = [("dtype", C.c_int), ("ptr", C.c_void_p), ("bytes", C.c_size_t)]


class Desc(C.Structure):
    _fields_ = [("dtype", C.c_int), ("rank", C.c_int), ("base", C.c_void_p),
                ("shape", C.c_int64 * MAX_DESC_RANK),
                ("strides", C.c_int64 * MAX_DESC_RANK),
                ("block", C.c_int32 * MAX_DESC_RANK)]


class Device(C.Structure):
    _fields_ = [("name", C.c_char * 128), ("target", C.c_char_p), ("sm", C.c_int),
                ("driver", C.c_int), ("memory", C.c_int64), ("cuda", C.c_void_p)]


class Use(C.Structure):
    _fields_ = [("registers", C.c_int), ("local_bytes", C.c_int),
                ("shared_bytes", C.c_int64), ("num_warps", C.c_int),
                ("num_stages", C.c_int)]


class Tensor(C.Structure):
    _fields_ = [("dtype", C.c_int), ("rank", C.c_int), ("data", C.c_void_p),
                ("shape", C.c_int64 * MAX_RANK), ("strides", C.c_int64 * MAX_RANK)]


class Dropout(C.Structure):
    _fields_ = [("p", C.c_float), ("seed", C.c_int64), ("offset", C.c_int64),
                ("act", C.c_int), ("per_element", C.c_int)]


class BlockDropout(C.Structure):
    _fields_ = [("p", C.c_float), ("seed", C.c_int64), ("offset", C.c_int64),
                ("block_m", C.c_int), ("block_k", C.c_int), ("workspace", C.c_void_p)]


class MatmulOptions(C.Structure):
    _fields_ = [("size", C.c_size_t), ("bias", C.POINTER(Tensor)),
                ("residual", C.POINTER(Tensor)), ("act", C.c_int), ("exact", C.c_int),
                ("a_scale", C.POINTER(Tensor)), ("b_scale", C.POINTER(Tensor)),
                ("fast_sums", C.c_int)]


class Rotary(C.Structure):
    _fields_ = [("size", C.c_size_t), ("pairs", C.c_int), ("inverse", C.c_int),
                ("first", C.c_int64), ("places", C.POINTER(Tensor))]


class Attention(C.Structure):
    _fields_ = [("scale", C.c_float), ("causal", C.c_int), ("deterministic", C.c_int),
                ("exact", C.c_int), ("p", C.c_float), ("seed", C.c_int64),
                ("cu_q", C.c_void_p), ("cu_k", C.c_void_p), ("sequences", C.c_int64),
                ("longest_q", C.c_int64), ("longest_k", C.c_int64),
                ("options", C.c_void_p)]


_P, _S, _I, _Z = C.c_void_p, C.c_char_p, C.c_int, C.c_size_t
_T, _L = C.POINTER(Tensor), C.c_int64

# name: result and parameters; what gives a status gives an int
_FUNCTIONS = {
    "sdc_version": (_S, []),
    "sdc_targets": (_S, []),
    "sdc_status_name": (_S, [_I]),
    "sdc_context_create": (_I, [_P, _P]),
    "sdc_context_destroy": (None, [_P]),
    "sdc_context_threads": (_I, [_P]),
    "sdc_context_device": (_I, [_P, _P]),
    "sdc_error": (_S, [_P]),
    "sdc_warnings": (_S, [_P]),
    "sdc_error_reproducer": (_S, [_P]),
    "sdc_module_load_text": (_I, [_P, _S, _S, _Z, _I, _P]),
    "sdc_module_unload": (None, [_P]),
    "sdc_function_get": (_I, [_P, _S, _P, _I, _P]),
    "sdc_launch": (_I, [_P, Grid, _P, _I, _P]),
    "sdc_specialize": (_I, [_P, _P, _I, _P]),
    "sdc_kernel_launch": (_I, [_P, Grid, _P, _I, _P]),
    "sdc_kernel_use": (_I, [_P, _P]),
    "sdc_kernel_ptx": (_S, [_P]),
    "sdc_kernel_writes": (_I, [_P, _I]),
    "sdc_arg_dlpack": (_I, [_P, _P, _P]),
    "sdc_kernels_create": (_I, [_P, _P]),
    "sdc_kernels_destroy": (None, [_P]),
    "sdc_dropout_counters": (_L, [_P, _L, _L]),
    "sdc_dropout_forward": (_I, [_P, _T, _T, _T, _T, _P, _P]),
    "sdc_dropout_backward": (_I, [_P, _T, _T, _T, _T, _T, _P, _P]),
    "sdc_sparse_linear_workspace": (_Z, [_P, _L, _L]),
    "sdc_sparse_linear_forward": (_I, [_P, _T, _T, _T, _P, _P]),
    "sdc_sparse_linear_backward": (_I, [_P, _T, _T, _T, _T, _T, _P, _P]),
    "sdc_matmul": (_I, [_P, _T, _T, _T, _T, _I, _I, _P]),
    "sdc_matmul_with": (_I, [_P, _T, _T, _T, _P, _P]),
    "sdc_matmul_grouped": (_I, [_P, _T, _T, _T, _T, _P, _P]),
    "sdc_matmul_grouped_sum": (_I, [_P, _T, _T, _T, _T, _I, _P]),
    "sdc_softmax_forward": (_I, [_P, _T, _T, _P]),
    "sdc_layer_norm_forward": (_I, [_P] + [_T] * 6 + [C.c_double, _P]),
    "sdc_layer_norm_workspace": (_Z, [_P, _L]),
    "sdc_layer_norm_backward": (_I, [_P] + [_T] * 8 + [_P, _P]),
    "sdc_rms_norm_forward": (_I, [_P] + [_T] * 4 + [C.c_double, _P]),
    "sdc_rms_norm_workspace": (_Z, [_P, _L]),
    "sdc_rms_norm_backward": (_I, [_P] + [_T] * 7 + [_P, _P]),
    "sdc_cross_entropy_forward": (_I, [_P] + [_T] * 4 + [_L, _P]),
    "sdc_cross_entropy_backward": (_I, [_P] + [_T] * 5 + [C.c_double, _L, _P]),
    "sdc_swiglu_forward": (_I, [_P] + [_T] * 3 + [_P]),
    "sdc_swiglu_backward": (_I, [_P] + [_T] * 5 + [_P]),
    "sdc_rotary": (_I, [_P] + [_T] * 4 + [_P, _P]),
    "sdc_flash_attention_forward": (_I, [_P] + [_T] * 5 + [_P, _P]),
    "sdc_flash_attention_workspace": (_Z, [_P, _T, _P]),
    "sdc_flash_attention_backward": (_I, [_P] + [_T] * 9 + [_P, _P, _P]),
}


def _candidates() -> list[str]:
    """Where the library may be: $SDC_LIBRARY, in the package, in a build of the tree."""
    here = Path(__file__).resolve().parent
    named = os.environ.get("SDC_LIBRARY")
    found = [named] if named else []
    found += [str(p) for p in (here / "libsdc.so.0",
                               here.parents[2] / "build" / "libsdc.so.0") if p.exists()]
    return found or ["libsdc.so.0"]


def _load() -> C.CDLL:
    path = _candidates()[0]
    try:
        lib = C.CDLL(path)
    except OSError as e:
        raise ImportError(f"sdc: no libsdc: {e}; SDC_LIBRARY names its file") from e
    for name, (result, parameters) in _FUNCTIONS.items():
        f = getattr(lib, name, None)
        if f is None:
            raise ImportError(f"sdc: {path} has no {name}: it is of another version")
        f.restype, f.argtypes = result, parameters
    version = lib.sdc_version().decode()
    if version != __version__:
        raise ImportError(f"sdc: {path} is version {version}, the package {__version__}")
    return lib


lib = _load()


def check(status: int, ctx: Optional[C.c_void_p]) -> None:
    """Raises what `status` says, with the message of the context."""
    if status:
        text = lib.sdc_error(ctx).decode(errors="replace").strip() if ctx else ""
        reproducer = ""
        if status == 70 and ctx:
            reproducer = lib.sdc_error_reproducer(ctx).decode(errors="replace")
        raise errors.of_status(status, text or lib.sdc_status_name(status).decode(),
                               reproducer)


def texts(values: list[str]) -> C.Array:
    """An array of C strings; of one element at least."""
    return (C.c_char_p * max(1, len(values)))(*[v.encode() for v in values])
