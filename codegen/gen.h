/* What all code generators share: the context of one compilation and the table of
   targets. A target is data plus a few hooks; see codegen/targets.def for the list. */
#ifndef SDC_CODEGEN_GEN_H
#define SDC_CODEGEN_GEN_H

#include "codegen/codegen.h"
#include "codegen/llvm.h"
#include "ir/base/map.h"
#include "ir/target.h"

typedef struct Gen Gen;

typedef struct Lines Lines; /* codegen/lines.c */

/* The size of a kernel. */
typedef struct Effort {
    int loops, blocks, instructions; /* as the target counts them */
    int in_block;                    /* all that the longest block has */
} Effort;

typedef struct Machine {
    const char *triple, *cpu, *features;
} Machine;

typedef struct Target {
    const char *family; /* for messages: "cpu", "nvptx" */
    bool gpu;
    /* half arithmetic stays in half; otherwise each op is done in f32 */
    bool native_f16;
    /* LLVM's names for the machine, of a PTX version that is `ptx` at least; false after
       an error in s->diag. */
    bool (*machine)(Session *s, const CodegenOptions *opt, const TargetInfo *info,
                    int ptx, Machine *out);
    /* Generates one kernel into g->mod, sets meta's fields that only it knows. False
       after an error in s->diag. */
    bool (*func)(Gen *g, Func *f, SdcrtMeta *meta);
    /* Transcendental functions and libm on f32 or f64 (scalar or vector). NULL when the
       target has none: the caller reports it. */
    LLVMValueRef (*math)(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);
    /* Integer quotient or remainder. NULL, or a NULL result: LLVM's, with its gaps
       filled. */
    LLVMValueRef (*divide)(Gen *g, const Op *op, LLVMValueRef x, LLVMValueRef y);
    /* Float to float. NULL, or a NULL result: the general code in gen_cast.c. */
    LLVMValueRef (*fcast)(Gen *g, ScalarKind from, ScalarKind to, bool rtz,
                          LLVMValueRef x);
    const char *(*passes)(int opt); /* LLVM's middle-end, as text */
    void (*cleanup)(Gen *g);        /* after it; may be NULL */
    /* In front of a backend that does not optimise (effort.c); may be NULL. */
    void (*unoptimised)(Gen *g);
    Effort most; /* a kernel with more is not optimised by the backend: effort.c */
    bool (*counts)(LLVMOpcode op); /* as an instruction of `most` */
} Target;

struct Gen {
    Session *s;
    const Target *target;
    TargetInfo info;
    const CodegenOptions *opt;
    LLVMContextRef cx;
    LLVMModuleRef mod;
    LLVMBuilderRef b;
    LLVMTargetMachineRef tm;
    int ptx; /* version of PTX that the code generated so far needs, 84 for 8.4, or 0 */
    LLVMValueRef fn; /* function being generated */
    const Func *func;
    Map halves;   /* gen_elem.c: vectors of 32-bit lanes as two of 64 */
    Map values;   /* Value -> LLVMValueRef or what the target keeps per value */
    void *priv;   /* the target's own state */
    Lines *lines; /* NULL: no source lines wanted */
    LLVMTypeRef i1, i8, i32, i64, f32, f64, ptr;
    LlvmSection section;
};

#define TARGET(id) extern const Target target_##id;
#include "codegen/targets.def"

/* Elementwise operations (T_ELEMENTWISE of ir/ops.def), on LLVM scalars or vectors of any
   width; operands in order. const and undef have no operands: gen_const. Returns NULL
   after an error in s->diag: "not supported yet: ...". */
LLVMValueRef gen_elem(Gen *g, const Op *op, LLVMValueRef *x);
/* The constant of a const or undef op, with so many lanes. */
LLVMValueRef gen_const(Gen *g, const Op *op, unsigned lanes);
/* "not supported yet: 'op' on target ..." at the op's place; returns NULL. */
LLVMValueRef gen_unsupported(Gen *g, const Op *op, const char *what);

/* gen_cast.c */
LLVMValueRef gen_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x);
/* f32 to the bits of bf16, to nearest, ties to even: on any machine. */
LLVMValueRef gen_to_bf16(Gen *g, LLVMValueRef x);
/* x[0] * x[1] + x[2] of f32 that came from a 16-bit float k, rounded to k once. */
LLVMValueRef gen_fma16(Gen *g, ScalarKind k, LLVMValueRef *x);
LLVMValueRef gen_cast(Gen *g, const Op *op, LLVMValueRef x);
LLVMValueRef gen_select(Gen *g, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y);

/* gen_polynomial.c: of f32. a * b + c, one rounding; c[0] + x * (c[1] + x * (..)), n
   coefficients; the error function, by the target's own 2^x, of x <= 0, relative to its
   size or to 1. */
typedef LLVMValueRef GenUnary(Gen *g, LLVMValueRef x);
LLVMValueRef gen_fma(Gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
LLVMValueRef gen_polynomial(Gen *g, LLVMValueRef x, const double *c, int n);
LLVMValueRef gen_erf(Gen *g, LLVMValueRef x, GenUnary *exp2_of);
LLVMValueRef gen_erf_beside_one(Gen *g, LLVMValueRef x, GenUnary *exp2_of);

/* gen_print.c: the text between an element's index and its value. */
void gen_print_text(Buf *b, const char *text, bool values, int operand, int count);

/* lines.c: the place in the source that instructions from here on belong to. */
void lines_at(Gen *g, Loc loc);
/* For emit.c: the module to generate into; before and after the function of that number;
   after all of them. */
LLVMModuleRef lines_module(Gen *g, const Module *m, const char *name);
void lines_function(Gen *g, int index);
void lines_function_end(Gen *g);
void lines_done(Gen *g);

/* For bundle.c, by emit.c: opens the context with an empty module of this name (`m` NULL)
   and the target's machine; writes what g->opt asks for; frees everything. */
void emit_open(Gen *g, const Module *m, const char *name);
bool emit_machine(Gen *g);
/* The same again, for code of another level. */
bool emit_machine_at(Gen *g, LLVMCodeGenOptLevel level);
bool emit_write(Gen *g, CodegenOut *out);

/* PTX text, NUL-terminated, in words that ptxas gets right; *size changes with it. */
const char *ptxas_quirks(Arena *a, const char *ptx, size_t *size);
/* Calls `fn` in a section of LLVM and frees everything, also when it is left by the
   session's fail point. */
typedef bool EmitFn(Gen *g, void *arg);
bool emit_section(Gen *g, EmitFn *fn, void *arg);
const Target *emit_target(bool gpu);

/* effort.c: for functions that are too large for the backend's optimisations, a machine
   without them. */
bool limit_effort(Gen *g, Module *m);

/* meta.c: everything that follows from the function's signature. */
bool meta_fill(Session *s, const Func *f, const char *target, SdcrtMeta *meta);
/* meta_map.c: tensor maps of the function's TMA ops; of: (Op) -> its SdcrtMap, halves:
   the one by which it asks for a half for two programs. False
   after an error in s->diag. */
bool meta_maps(Session *s, const Func *f, SdcrtMeta *meta, Map *of, Map *halves);

#endif
