"""One argument of a launch, typed as Triton types it.

Arrays are torch's, numpy's, what has `data_ptr` and `dtype`, or anything with
`__dlpack__`. This is the way for all arguments; launches of tensors and numbers alone
take the shorter one of launch.py.
"""

from __future__ import annotations

import ctypes as C
from typing import Any

from . import _lib as L
from . import dtypes
from .context import Context
from .errors import ArgumentError

# types of numbers and texts that stand for themselves
SIMPLE = (bool, int, float, str, type(None))


def address(array: Any) -> int:
    """Where the elements of a numpy array are that may be written."""
    try:
        return C.addressof(C.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):  # read-only, empty or not contiguous
        if is_read_only(array):
            raise AttributeError("read-only") from None  # goes the general way
        return array.__array_interface__["data"][0]


def is_read_only(v: Any) -> bool:
    """Is this a numpy array that must not be written: of a file, of JAX, a view?"""
    return getattr(getattr(v, "flags", None), "writeable", True) is False


def is_array(v: Any) -> bool:
    """Is this memory with elements of a type?"""
    if isinstance(v, type):
        return False
    return hasattr(v, "data_ptr") or _has_interface(v) or hasattr(v, "__dlpack__")


def _has_interface(v: Any) -> bool:
    """Is this numpy's array, or like one? Its scalars cannot be set, and are numbers."""
    return hasattr(v, "__array_interface__") and hasattr(v, "__setitem__")


def is_dtype(v: Any) -> bool:
    """A dtype of torch or numpy: in a warmup it stands for an array."""
    if isinstance(v, type):
        return v.__module__ == "numpy"
    return type(v).__module__.partition(".")[0] in ("torch", "numpy") and \
        not hasattr(v, "item") and hasattr(v, "itemsize")


def is_descriptor(v: Any) -> bool:
    """Triton's TensorDescriptor, or sdc's."""
    return hasattr(v, "block_shape") and hasattr(v, "base")


def pointer(v: Any) -> int:
    """The address of an array's first element."""
    if hasattr(v, "data_ptr"):
        return v.data_ptr()
    return v.__array_interface__["data"][0] if is_read_only(v) else address(v)


def place(v: Any) -> tuple[str, int]:
    """Where an array is: ("cpu", 0) or ("cuda", number)."""
    if is_descriptor(v):
        v = v.base
    device = getattr(v, "device", None)
    kind = getattr(device, "type", None)
    if device is not None and kind is not None:
        if kind not in ("cpu", "cuda"):
            raise ArgumentError(f"a tensor on '{kind}': kernels run on cpu and cuda")
        if getattr(v, "is_sparse", False) or getattr(v, "is_sparse_csr", False):
            raise ArgumentError("a sparse tensor: kernels take dense ones, and the values "
                                "and indices of this one")
        return kind, device.index or 0
    if hasattr(v, "__dlpack_device__"):
        number, index = v.__dlpack_device__()
        if int(number) in (2, 13):
            return "cuda", int(index)
    return "cpu", 0


def anywhere(v: Any) -> bool:
    """Can a GPU take this array of the CPU: no element, or memory that is pinned?"""
    if not hasattr(v, "data_ptr"):
        return False
    return v.data_ptr() == 0 or bool(v.device.type == "cpu" and v.is_pinned())


def names_of(v: Any, values: dict[str, Any]) -> list[str]:
    """The parameters that `v` is the argument of, or where in a tuple it is, "x[1]"."""
    names: list[str] = []
    for name, x in values.items():
        if x is v:
            names.append(name)
        elif isinstance(x, (tuple, list)):
            names += names_of(v, {f"{name}[{i}]": y for i, y in enumerate(x)})
    return names


def extent(v: Any) -> int:
    """Bytes from an array's first element to the end of its memory; 0: unknown."""
    if hasattr(v, "untyped_storage"):
        storage = v.untyped_storage()
        return storage.data_ptr() + storage.nbytes() - v.data_ptr()
    if hasattr(v, "strides") and hasattr(v, "itemsize") and hasattr(v, "shape"):
        if 0 in v.shape or any(s < 0 for s in v.strides):  # the first is not the lowest
            return 0
        return sum((n - 1) * s for n, s in zip(v.shape, v.strides)) + v.itemsize
    return 0


def argument(v: Any, ctx: Context, keep: list[Any]) -> L.Arg:
    """The SdcArg of a value; `keep` holds what it points to during the launch."""
    a = L.Arg()
    if v is None:
        a.kind = L.ARG_NONE
    elif is_dtype(v):  # a pointer that no memory is behind
        name = v.__name__ if isinstance(v, type) else v
        a.kind, a.dtype, a.v.ptr = L.ARG_PTR, dtypes.code(name), 4096
    elif is_descriptor(v):
        d = _descriptor(v)
        keep.append(d)
        nan = L.PAD_NAN if getattr(v, "padding", "zero") == "nan" else 0
        tf32 = L.ROUND_TF32 if getattr(v, "round_f32_to_tf32", False) else 0
        a.kind, a.dtype, a.v.ptr = L.ARG_DESC, d.dtype | nan | tf32, C.addressof(d)
    elif hasattr(v, "data_ptr") or _has_interface(v):
        a.kind, a.dtype, a.v.ptr = L.ARG_PTR, dtypes.code(v.dtype), pointer(v)
        if ctx.checks and (size := extent(v)) > 0:
            b = L.Buffer(a.dtype, a.v.ptr, size)
            keep.append(b)
            a.kind, a.v.ptr = L.ARG_BUFFER, C.addressof(b)
    elif isinstance(v, bool):
        a.kind, a.dtype, a.v.i = L.ARG_INT, L.BOOL, v
    elif isinstance(v, int):
        a.kind, a.dtype = L.ARG_INT, int_code(v)
        a.v.i = v if v < 2**63 else v - 2**64
    elif isinstance(v, float):
        a.kind, a.dtype, a.v.f = L.ARG_FLOAT, L.FP32, v
    elif hasattr(v, "item") and hasattr(v, "dtype"):  # a number of numpy
        return argument(v.item(), ctx, keep)
    elif hasattr(v, "__dlpack__"):
        _dlpack(v, ctx, keep, a)
    elif hasattr(v, "__index__"):
        return argument(v.__index__(), ctx, keep)
    else:
        raise ArgumentError(
            f"a kernel takes no argument of type {type(v).__name__}: tensors of torch, "
            "arrays of numpy or with __dlpack__, numbers, tuples and descriptors it does")
    return a


def int_code(v: int) -> int:
    """Triton's type of an integer: 32 bits where they are enough."""
    if -2**31 <= v < 2**31:
        return L.I32
    if not -2**63 <= v < 2**64:
        raise OverflowError(f"{v} has more than 64 bits")
    return L.I64 if v < 2**63 else L.U64


def _descriptor(v: Any) -> L.Desc:
    d = L.Desc(dtype=dtypes.code(v.base.dtype), rank=len(v.shape), base=pointer(v.base))
    for i, (size, stride, block) in enumerate(zip(v.shape, v.strides, v.block_shape)):
        d.shape[i], d.strides[i], d.block[i] = int(size), int(stride), int(block)
    return d


def _dlpack(v: Any, ctx: Context, keep: list[Any], a: L.Arg) -> None:
    capsule = v.__dlpack__()
    get = C.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
    # a DLManagedTensor begins with its DLTensor; the capsule frees it, since it was
    # never renamed to "used_dltensor"
    tensor = get(capsule, b"dltensor")
    keep.append(capsule)
    ctx.check(L.lib.sdc_arg_dlpack(ctx.handle, tensor, C.byref(a)))
