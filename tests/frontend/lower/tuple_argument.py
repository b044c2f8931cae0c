# Tuples and NamedTuples as arguments: a parameter of the code for each element that the
# launch gives a value for; members of an IntEnum are integers.
# RUN: %sdc compile %s -k k -s 'out=*fp32,shape=(i32,(i32:16,4)),p=Point(*fp32,5)' -c MODE=Mode.FAST --emit tir -o - | FileCheck %s
# RUN: %sdc compile %s -k k -s '*fp32,(i32,(i32:16,4)),(*fp32,5)' -c MODE=2 --emit tir -o - | FileCheck %s
# RUN: not %sdc compile %s -k k -s '*fp32,(i32,(i32:16,4)),Mode(*fp32,5)' -c MODE=2 2>&1 | FileCheck %s --check-prefix=CLASS
# RUN: not %sdc compile %s -k k -s '*fp32,(i32,tensordesc<fp16[64]>),(*fp32,5)' -c MODE=2 2>&1 | FileCheck %s --check-prefix=DESC
# RUN: not %sdc compile %s -k k -s '*fp32,(i32,(i32:16,4)),(*fp32,5)' -c MODE=2 --header %t.h -o %t.o 2>&1 | FileCheck %s --check-prefix=AOT
# RUN: %sdc run %s -k numbers -g 1 -a out=empty:f32[1] -a 'shape=(3, 0.5)' | FileCheck %s --check-prefix=SUM
# CHECK: kernel @k(%out: ptr<f32> {{.*}}, %shape_0: i32 {sig="i32"}, %shape_1_0: i32 {sig="i32", div=16, source=1, part=1}, %p_0: ptr<f32> {sig="*fp32", source=2})
# CHECK: addptr %p_0
# CHECK: const {value=6}
# CLASS: error: 'Mode' is no NamedTuple of the file
# DESC: error: not supported yet: tensordesc<fp16[64]> in a tuple, 'shape'
# AOT: error: not supported yet: 'k' takes a tuple, 'shape', ahead of time
# SUM: out: fp32[1] sum 1.5
import enum
from typing import NamedTuple

import triton
import triton.language as tl


class Mode(enum.IntEnum):
    SLOW = 1
    FAST = 2


class Point(NamedTuple):
    x: tl.tensor
    n: tl.tensor


@triton.constexpr_function
def thrice(n):
    return n * (Mode.SLOW + Mode.FAST)


SIX = tl.constexpr(thrice(Mode.FAST))


@triton.jit
def k(out, shape, p: Point, MODE: tl.constexpr, LAST: tl.constexpr = Mode.FAST):
    i, (j, n) = shape
    if MODE == Mode.FAST:
        tl.store(p.x + i * j, p.n + n)
    tl.static_assert(LAST == 2)
    tl.store(out + i, SIX)


@triton.jit
def numbers(out, shape):
    tl.store(out, shape[0] * shape[1])
