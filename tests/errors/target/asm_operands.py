# Texts and constraints of inline assembly on which LLVM would end the process.
# RUN: for k in word much large brace special nested end; do not %sdc compile %s -k $k --target sm_90a --emit ptx -s '*i32,*i32' -o - 2>&1; done | FileCheck %s
# RUN: for k in twice order clobber comma two; do not %sdc compile %s -k $k --target sm_90a --emit ptx -s '*i32,*i32' -o - 2>&1; done | FileCheck %s --check-prefix FORM
# RUN: for k in right spaces; do %sdc compile %s -k $k --target sm_90a --emit ptx -s '*i32,*i32' -o -; done | FileCheck %s --check-prefix RIGHT
import triton
import triton.language as tl


@triton.jit
def run(x_ptr, y_ptr, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr):
    o = tl.arange(0, 128)
    x = tl.load(x_ptr + o)
    y = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [x], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(y_ptr + o, y)


# CHECK: error: '$x' in inline assembly is no operand: its constraints have 2, from $0 on; $$ is the character itself
@triton.jit
def word(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $x;", "=r,r")


# CHECK: error: '$2' in inline assembly is no operand
@triton.jit
def much(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $2;", "=r,0")


# CHECK: error: '$99999999999' in inline assembly is no operand
@triton.jit
def large(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $99999999999;", "=r,r")


# CHECK: error: '${1:' in inline assembly is no operand
@triton.jit
def brace(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, ${1:;", "=r,r")


# CHECK: error: '${:foo}' in inline assembly is no operand
@triton.jit
def special(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, ${:foo};", "=r,r")


# CHECK: error: '$(b$)' in inline assembly is no operand
@triton.jit
def nested(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $1; $(a$(b$)", "=r,r")


# CHECK: error: '$' in inline assembly is no operand
@triton.jit
def end(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $1; $", "=r,r")


# FORM: error: the constraints of inline assembly, '=&&r,r', do not fit
@triton.jit
def twice(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $1;", "=&&r,r")


# FORM: error: the constraints of inline assembly, 'r,=r', do not fit
@triton.jit
def order(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $1;", "r,=r")


# FORM: error: the constraints of inline assembly, '=r,~x,r', do not fit
@triton.jit
def clobber(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $1;", "=r,~x,r")


# FORM: error: the constraints of inline assembly, '=r,r,', do not fit
@triton.jit
def comma(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $1;", "=r,r,")


# FORM: error: the constraints of inline assembly, '=rq,r', do not fit
@triton.jit
def two(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "mov.b32 $0, $1;", "=rq,r")


# RIGHT: add.s32 [[R:%r[0-9]+]], [[X:%r[0-9]+]], 7; // $
@triton.jit
def right(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "add.s32 ${0}, ${1:r}, 7; // $$", "=&r,~{memory},r")


# RIGHT: add.s32 [[R:%r[0-9]+]], [[X:%r[0-9]+]], 8;
@triton.jit
def spaces(x_ptr, y_ptr):
    run(x_ptr, y_ptr, "add.s32 $0, $1, 8;", " = r , r ")
