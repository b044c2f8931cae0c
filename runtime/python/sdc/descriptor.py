"""TensorDescriptor: a tensor that a kernel takes in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Sequence


@dataclass
class TensorDescriptor:
    """Triton's, for host code that has no Triton."""

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]  # in elements; the last one is 1
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        if not len(self.shape) == len(self.strides) == len(self.block_shape):
            raise ValueError("shape, strides and block_shape have one length")
        if self.padding not in ("zero", "nan"):
            raise ValueError("padding is 'zero' or 'nan'")
        if self.round_f32_to_tf32 and str(self.base.dtype).split(".")[-1] != "float32":
            raise ValueError("round_f32_to_tf32 is for float32 alone")

    @staticmethod
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero",
                    round_f32_to_tf32: bool = False) -> TensorDescriptor:
        """The whole of a tensor of torch or numpy."""
        strides = tensor.stride() if hasattr(tensor, "stride") else [
            s // tensor.itemsize for s in tensor.strides]
        return TensorDescriptor(tensor, tensor.shape, strides, block_shape, padding,
                                round_f32_to_tf32)
