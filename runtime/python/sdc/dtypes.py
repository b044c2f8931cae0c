"""Names of element types: numpy's, torch's and Triton's, as numbers of the library."""

from __future__ import annotations

from typing import Any

from . import _lib as L
from .errors import ArgumentError

NAMES = {
    "bool": L.BOOL, "int8": L.I8, "int16": L.I16, "int32": L.I32, "int64": L.I64,
    "uint8": L.U8, "uint16": L.U16, "uint32": L.U32, "uint64": L.U64,
    "float8_e5m2": L.FP8E5, "float8_e4m3fn": L.FP8E4NV, "float16": L.FP16,
    "float8_e4m3fnuz": L.FP8E4B8, "float8_e5m2fnuz": L.FP8E5B16,
    "bfloat16": L.BF16, "float32": L.FP32, "float64": L.FP64,
    "int1": L.BOOL, "fp8e5": L.FP8E5, "fp8e4nv": L.FP8E4NV, "fp8e4b15": L.FP8E4B15,
    "fp8e4b8": L.FP8E4B8, "fp8e5b16": L.FP8E5B16,
    "fp16": L.FP16, "bf16": L.BF16, "fp32": L.FP32, "fp64": L.FP64,
}

# how Triton's types are written in a source
SPELLING = {"fp8e5": "float8e5", "fp8e4nv": "float8e4nv", "fp8e4b15": "float8e4b15",
            "fp8e4b8": "float8e4b8", "fp8e5b16": "float8e5b16", "fp16": "float16",
            "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}

_seen: dict[Any, int] = {}


def code(dtype: Any) -> int:
    """SdcDtype of a dtype of numpy, torch or Triton, or of its name."""
    found = _seen.get(dtype)
    if found is None:
        if getattr(dtype, "isnative", True) is False:
            raise ArgumentError(f"elements of type {dtype.str} have the bytes of another "
                                "machine's order: a.astype(a.dtype.newbyteorder('='))")
        name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None)
        name = name or str(dtype).rpartition(".")[2]
        found = NAMES.get(name)
        if found is None:
            raise ArgumentError(f"kernels have no elements of type {name}")
        _seen[dtype] = found
    return found
