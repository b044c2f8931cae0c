/* Small helpers over LLVM's C API: types of tile IR scalars, constants of any shape,
   intrinsics, attributes. What differs between versions of LLVM is kept in llvm.c. */
#ifndef SDC_CODEGEN_LLVM_H
#define SDC_CODEGEN_LLVM_H

#include "ir/ir.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/* The LLVM type of a scalar in a register. bf16 and 8-bit floats are integers, so that no
   backend decides how they are rounded. */
LLVMTypeRef ll_scalar(LLVMContextRef cx, ScalarKind k);
/* In memory: the same, but i1 is a byte. */
LLVMTypeRef ll_memory(LLVMContextRef cx, ScalarKind k);
int ll_bytes(ScalarKind k); /* bytes in memory */

bool ll_is_vector(LLVMValueRef x);
unsigned ll_lanes(LLVMValueRef x); /* 1 for a scalar */
LLVMTypeRef ll_elem(LLVMValueRef x);
/* `elem` with as many lanes as x has. */
LLVMTypeRef ll_like(LLVMValueRef x, LLVMTypeRef elem);
LLVMTypeRef ll_vector(LLVMTypeRef elem, unsigned lanes); /* elem itself for one lane */

/* Constants of a scalar or vector type. */
LLVMValueRef ll_int(LLVMTypeRef t, int64_t v);
LLVMValueRef ll_float(LLVMTypeRef t, double v);
/* What memory at p holds, which is aligned to `align` bytes. */
LLVMValueRef ll_load(LLVMBuilderRef b, LLVMTypeRef t, LLVMValueRef p, unsigned align);
/* The vector start, start + 1, .. */
LLVMValueRef ll_iota(LLVMTypeRef elem, unsigned lanes, int64_t start);

LLVMValueRef ll_splat(LLVMBuilderRef b, LLVMValueRef scalar, unsigned lanes);
/* Lanes first .. first + n - 1 (a scalar for n == 1); those past the end are
   undefined. */
LLVMValueRef ll_extract(LLVMBuilderRef b, LLVMValueRef v, unsigned first, unsigned n);
/* n pieces of equal width as one vector; n is a power of two. */
LLVMValueRef ll_concat(LLVMBuilderRef b, LLVMValueRef *part, unsigned n);

/* Calls an overloaded intrinsic; `over`: the types that select the overload. */
LLVMValueRef ll_intrinsic(LLVMBuilderRef b, const char *name, LLVMTypeRef *over,
                          int nover, LLVMValueRef *args, int nargs);
/* The common case: overloaded on the type of the first argument alone. */
LLVMValueRef ll_intrinsic1(LLVMBuilderRef b, const char *name, LLVMValueRef *args, int n);

/* Says that this successor of a conditional branch is nearly always taken: LLVM places
   blocks and allocates registers for it. */
void ll_likely(LLVMValueRef branch, unsigned successor);
/* Forbids to unroll the loop of which this is the back edge. */
void ll_stays_loop(LLVMValueRef branch);

void ll_fn_attr(LLVMValueRef fn, const char *name);
void ll_arg_attr(LLVMValueRef fn, unsigned arg, const char *name, uint64_t value);

/* Calls fn for every instruction of the module. fn may erase or replace the instruction,
   but not the next one. */
void ll_each_instruction(LLVMModuleRef m, void (*fn)(void *user, LLVMValueRef i),
                         void *user);

/* Registers LLVM's targets and catches its fatal errors; once per process, any thread. */
void ll_init(void);

/* LLVM is called in sections, one for each compilation. Inside, a fatal error of LLVM
   jumps to `fail`, and so does running out of memory, once a reserve is used up as well
   (llvm_memory.c). fail NULL: neither can happen, as while LLVM's objects are disposed
   of. */
typedef struct LlvmSection {
    struct LlvmSection *outer;
    FailPoint *fail;
    bool is_short;    /* memory ran out: allocations now come from the reserve */
    bool left;        /* a jump skipped C++ frames: no object of LLVM may be used again */
    bool in_callback; /* LLVM has called us, and its frames are below */
    int held;         /* locks taken inside */
    int64_t bytes;    /* allocated inside and not freed */
} LlvmSection;

void ll_enter(LlvmSection *s, FailPoint *fail);
void ll_exit(LlvmSection *s);
/* Jumps out of LLVM to the section's fail point; returns if there is none. */
void ll_leave(int reason, const char *what);
/* At the begin and end of a function that LLVM calls, since a jump out of it skips LLVM's
   frames. */
void ll_callback(bool begins);

/* Runs a pass list in LLVM's textual form. False: the reason is in why[size]. */
bool ll_run_passes(LLVMModuleRef m, LLVMTargetMachineRef tm, const char *passes,
                   char *why, size_t size);

#endif
