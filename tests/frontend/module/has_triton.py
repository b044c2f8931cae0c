# There is Triton, whatever devices torch finds here.
# RUN: %sdc check %s -I %S/site | FileCheck %s
# RUN: %sdc check %s | FileCheck %s
from torch.utils._triton import has_triton, has_triton_package

# CHECK: 1 of 1 kernel passes
if has_triton() and has_triton_package():
    import triton
    import triton.language as tl

    @triton.jit
    def k(x):
        tl.store(x, 1.0)
