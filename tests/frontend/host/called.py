# A decorator that is called by hand makes a kernel as well.
# RUN: %sdc check %s | FileCheck %s
# RUN: %sdc run %s -g 1 -a x=arange:f32[64] -a o=zeros:f32[64] | FileCheck %s --check-prefix=DONE
# CHECK: kernel twice(x, o, N: constexpr)
# DONE: o: fp32[64] sum 4032
import triton
import triton.language as tl

def twice(x, o, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(o + i, tl.load(x + i) * 2)

twice = triton.jit(twice)
twice = triton.heuristics({"N": lambda args: 64})(twice)
