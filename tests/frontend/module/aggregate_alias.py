# A decorator of classes under another name, as triton_kernels has it for older versions.
# RUN: %sdc compile %s -k k -s '*fp32,i32' --emit tir -o - | FileCheck %s
from dataclasses import dataclass

import triton
import triton.language as tl

try:
    record = triton.aggregate
except (AttributeError, NotImplementedError):
    record = dataclass(frozen=True)


@record
class Row:
    at: object
    n: object


@triton.jit
def first(row):
    return tl.load(row.at + row.n)


# CHECK: kernel @k
# CHECK: load
@triton.jit
def k(x, n):
    tl.store(x, first(Row(x, n)))
