# Of what the evaluator does not follow the results are unknown, never those of a part of it.
# RUN: not %sdc compile %s -s '*fp32' --emit tir -o - 2>&1 | FileCheck %s
import functools

import triton
import triton.language as tl


def pick(x):
    match x:
        case 1:
            return 5
    return 6


class Config:
    def __init__(self):
        self.n = 1

    @property
    def size(self):
        return self._size

    @size.setter
    def size(self, v):
        self._size = 2 * v


class Any:
    def __getattr__(self, name):
        return 3


def named(f):
    @functools.wraps(f)
    def inner():
        return 0
    return inner


@named
def first():
    return 0


config = Config()
config.size = 8
PICKED = tl.constexpr(pick(1))
SIZE = tl.constexpr(config.size)
ANY = tl.constexpr(getattr(Any(), "n", 4))
NAME = tl.constexpr(first.__name__)


@triton.jit
def k(x):
    # CHECK-DAG: error: 'PICKED' is
    # CHECK-DAG: error: 'SIZE' is
    # CHECK-DAG: error: 'ANY' is
    # CHECK-DAG: error: 'NAME' is
    tl.store(x, PICKED)
    tl.store(x, SIZE)
    tl.store(x, ANY)
    tl.static_assert(NAME == "first")
