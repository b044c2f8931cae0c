# Tuples and NamedTuples as arguments: a parameter of the code for each element that the
# launch gives a value for; members of an IntEnum are integers.
# RUN: %sdc compile %s -k k -s 'out=*fp32,shape=(i32,(i32:16,4)),p=Point(*fp32,5)' -c MODE=Mode.FAST --emit tir -o - | FileCheck %s
# RUN: %sdc compile %s -k k -s '*fp32,(i32,(i32:16,4)),(*fp32,5)' -c MODE=2 --emit tir -o - | FileCheck %s
# RUN: not %sdc compile %s -k k -s '*fp32,(i32,(i32:16,4)),Mode(*fp32,5)' -c MODE=2 2>&1 | FileCheck %s --check-prefix=CLASS
# RUN: %sdc compile %s -k tiles -s '*fp32,(tensordesc<fp16[16,16],nan>:16,i32),4' --emit tir -o - | FileCheck %s --check-prefix=DESC
# RUN: %sdc run %s -k numbers -g 1 -a out=empty:f32[1] -a 'shape=(3, 0.5)' | FileCheck %s --check-prefix=SUM
# RUN: %sdc run %s -k tiles -g 1 -a out=empty:f32[1] -a m=ones:f16[20,16] -a first=3 -a 'tiles=(desc:m[16,16], first)' | FileCheck %s --check-prefix=TILES
# RUN: not %sdc run %s -k tiles -g 1 -a out=empty:f32[1] -a first=3 -a 'tiles=(desc:m[16,16], first)' 2>&1 | FileCheck %s --check-prefix=ARRAY
# RUN: not %sdc run %s -k numbers -g 1 -a out=empty:f32[1] -a 'shape=(3, 0.5' 2>&1 | FileCheck %s --check-prefix=CLOSE
# CHECK: kernel @k(%out: ptr<f32> {{.*}}, %shape_0: i32 {sig="i32"}, %shape_1_0: i32 {sig="i32", div=16, source=1, part=1}, %p_0: ptr<f32> {sig="*fp32", source=2})
# CHECK: addptr %p_0
# CHECK: const {value=6}
# CLASS: error: 'Mode' is no NamedTuple of the file
# DESC: kernel @tiles(%out: ptr<f32> {{.*}}, %tiles_0: ptr<f16> {sig="*fp16", div=16}, %tiles_0_shape0: i32 {sig="i32", source=1, part=1}, %tiles_0_shape1: i32 {sig="i32", div=16, source=1, part=2}, %tiles_0_stride0: {{.*}} part=3}, %tiles_0_stride1: {{.*}} part=4}, %tiles_1: i32 {sig="i32", source=1, part=5})
# DESC: make_desc {{.*}}padding="nan"
# SUM: out: fp32[1] sum 1.5
# TILES: out: fp32[1] sum 224
# ARRAY: argument 'tiles': there is no array 'm'
# CLOSE: '(3, 0.5' is no tuple of at most 24 numbers, arrays and descriptors
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


@triton.jit
def tiles(out, tiles, first):
    desc, row = tiles
    tl.store(out, tl.sum(desc.load([row + first, 0]).to(tl.float32)))
