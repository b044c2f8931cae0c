/* Small helpers over LLVM's C API: types of tile IR scalars, constants of any shape,
   intrinsics, attributes. What differs between versions of LLVM is kept in llvm.c. */
#ifndef SDC_CODEGEN_LLVM_H
#define SDC_CODEGEN_LLVM_H

#include "ir/ir.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/* How a scalar lives in an LLVM register: bf16 and the 8-bit floats are integers, so that
   no backend decides how they are rounded. */
LLVMTypeRef ll_scalar(LLVMContextRef cx, ScalarKind k);
/* How it lives in memory: as above, i1 is a byte. */
LLVMTypeRef ll_memory(LLVMContextRef cx, ScalarKind k);
int ll_bytes(ScalarKind k); /* size in memory */

bool ll_is_vector(LLVMValueRef x);
unsigned ll_lanes(LLVMValueRef x); /* 1 for a scalar */
LLVMTypeRef ll_elem(LLVMValueRef x);
/* `elem` with as many lanes as x has. */
LLVMTypeRef ll_like(LLVMValueRef x, LLVMTypeRef elem);
LLVMTypeRef ll_vector(LLVMTypeRef elem, unsigned lanes); /* elem itself for one lane */

/* Constants of a scalar or vector type. */
LLVMValueRef ll_int(LLVMTypeRef t, int64_t v);
LLVMValueRef ll_float(LLVMTypeRef t, double v);
/* 0, 1, 2, ... */
LLVMValueRef ll_iota(LLVMTypeRef elem, unsigned lanes, int64_t start);

LLVMValueRef ll_splat(LLVMBuilderRef b, LLVMValueRef scalar, unsigned lanes);
/* Lanes first .. first + n - 1 (a scalar for n == 1); those past the end are
   undefined. */
LLVMValueRef ll_extract(LLVMBuilderRef b, LLVMValueRef v, unsigned first, unsigned n);
/* Pieces of equal width side by side; n is a power of two. */
LLVMValueRef ll_concat(LLVMBuilderRef b, LLVMValueRef *part, unsigned n);

/* Call of an overloaded intrinsic: `over` are the types that its name is made of. */
LLVMValueRef ll_intrinsic(LLVMBuilderRef b, const char *name, LLVMTypeRef *over,
                          int nover, LLVMValueRef *args, int nargs);
/* The common case: overloaded on the type of the first argument alone. */
LLVMValueRef ll_intrinsic1(LLVMBuilderRef b, const char *name, LLVMValueRef *args, int n);

/* The successor of a conditional branch that nearly always comes next: registers are
   allocated and blocks placed for it. */
void ll_likely(LLVMValueRef branch, unsigned successor);
/* Nobody is to unroll the loop that the branch goes back in. */
void ll_stays_loop(LLVMValueRef branch);

void ll_fn_attr(LLVMValueRef fn, const char *name);
void ll_arg_attr(LLVMValueRef fn, unsigned arg, const char *name, uint64_t value);

/* Once per process: targets registered, fatal errors caught. */
void ll_init(void);

/* LLVM is called in sections, one for a compile. Inside, a fatal error of LLVM leaves
   through `fail`, and so does running out of memory when a reserve is used up as well
   (llvm_memory.c); NULL: neither may happen, as while things are disposed of. */
typedef struct LlvmSection {
    struct LlvmSection *outer;
    FailPoint *fail;
    bool is_short; /* memory ran out, and what LLVM made since is of the reserve */
    bool left;     /* C++ frames were skipped: nothing of LLVM's may be touched again */
    bool in_callback; /* LLVM has called back, and waits below */
    int held;         /* locks taken inside */
    int64_t bytes;    /* allocated inside and not given back */
} LlvmSection;

void ll_enter(LlvmSection *s, FailPoint *fail);
void ll_exit(LlvmSection *s);
/* Out of LLVM to the section's fail point; returns when there is none. */
void ll_leave(int reason, const char *what);
/* Around what LLVM calls back: a jump out of it skips LLVM's frames. */
void ll_callback(bool begins);

/* Middle-end: a pass list in LLVM's textual form. False: message in *why (static). */
bool ll_run_passes(LLVMModuleRef m, LLVMTargetMachineRef tm, const char *passes,
                   char *why, size_t size);

#endif
