/* The CPU's code generator: cpu form (scalars, strips, buffers, loops) to LLVM. */
#ifndef SDC_CODEGEN_GEN_CPU_H
#define SDC_CODEGEN_GEN_CPU_H

#include "codegen/gen.h"

/* Most bytes of scratch that one running program may need. */
#define CPU_MAX_SCRATCH ((int64_t)256 << 20)

bool gen_cpu_func(Gen *g, Func *f, SdcrtMeta *meta);

/* gen_cpu_math.c: the target's math hook. */
LLVMValueRef gen_cpu_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);

#endif
