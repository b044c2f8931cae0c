"""Enough of Triton for module level code to run in a plain Python."""
__version__ = "3.9.0"


def jit(fn=None, **_):
    return fn if fn else lambda f: f


class Config:
    def __init__(self, kwargs, num_warps=4, num_stages=3):
        self.kwargs, self.num_warps, self.num_stages = kwargs, num_warps, num_stages


def autotune(configs, key, **_):
    return lambda f: f


def heuristics(values):
    return lambda f: f


def cdiv(a, b):
    return (a + b - 1) // b


def next_power_of_2(n):
    return 1 << (n - 1).bit_length()
