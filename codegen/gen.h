/* What all code generators share: the context of one compilation and the interface of a
   target, which is data plus some hooks; codegen/targets.def lists the targets.

   Functions that generate code do so where g->b stands. Unless a comment says otherwise,
   they return NULL or false after an error, which is in s->diag then. */
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
    int loops, blocks;
    int instructions; /* that Target.counts counts */
    int in_block;     /* of all kinds, in the longest block */
} Effort;

/* LLVM's names for a machine. */
typedef struct Machine {
    const char *triple, *cpu, *features;
} Machine;

typedef struct Target {
    const char *family; /* for messages: "cpu", "nvptx" */
    bool gpu;
    /* fp16 arithmetic is done in fp16; if false, each op is done in fp32 */
    bool native_f16;
    /* LLVM's names for the machine, with a PTX version of `ptx` or later. */
    bool (*machine)(Session *s, const CodegenOptions *opt, const TargetInfo *info,
                    int ptx, Machine *out);
    /* Generates one kernel into g->mod and sets those fields of *meta that only the
       target knows. */
    bool (*func)(Gen *g, Func *f, SdcrtMeta *meta);
    /* A transcendental or libm function of type k, f32 or f64, on scalars or vectors.
       NULL: the target has not got it, which the caller reports. */
    LLVMValueRef (*math)(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);
    /* Integer quotient or remainder. NULL, or a NULL result: LLVM's instruction is used,
       with a defined result where LLVM has none. */
    LLVMValueRef (*divide)(Gen *g, const Op *op, LLVMValueRef x, LLVMValueRef y);
    /* Float to float; rtz: rounded towards zero. NULL, or a NULL result: the general code
       in gen_cast.c is used. */
    LLVMValueRef (*fcast)(Gen *g, ScalarKind from, ScalarKind to, bool rtz,
                          LLVMValueRef x);
    const char *(*passes)(int opt); /* LLVM's middle-end, in its textual form */
    void (*cleanup)(Gen *g);        /* runs behind it; may be NULL */
    /* Runs in front of a backend that does not optimise (effort.c); may be NULL. */
    void (*unoptimised)(Gen *g);
    Effort most; /* the backend does not optimise a larger kernel: effort.c */
    bool (*counts)(LLVMOpcode op); /* does it count as an instruction of `most`? */
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
    int ptx; /* PTX version that the code so far needs, 84 for 8.4; 0: any */
    LLVMValueRef fn; /* function being generated */
    const Func *func;
    Map halves;   /* gen_elem.c: vector of 32-bit lanes -> two vectors of 64-bit lanes */
    Map values;   /* Value -> LLVMValueRef, or what the target keeps for a value */
    void *priv;   /* the target's own state */
    Lines *lines; /* NULL: no source lines wanted */
    LLVMTypeRef i1, i8, i32, i64, f32, f64, ptr;
    LlvmSection section;
};

#define TARGET(id) extern const Target target_##id;
#include "codegen/targets.def"

/* gen_elem.c: an elementwise op (T_ELEMENTWISE of ir/ops.def) on operands x, LLVM scalars
   or vectors of any width. Not const and undef, which have no operands: see gen_const. */
LLVMValueRef gen_elem(Gen *g, const Op *op, LLVMValueRef *x);
/* The constant of a const or undef op, with `lanes` lanes. */
LLVMValueRef gen_const(Gen *g, const Op *op, unsigned lanes);
/* Error "not supported yet: 'op' on target ..." at the op's place; returns NULL. */
LLVMValueRef gen_unsupported(Gen *g, const Op *op, const char *what);

/* ---- gen_cast.c: conversions, on scalars or vectors */
/* A conversion between float types; rtz: rounded towards zero. */
LLVMValueRef gen_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x);
/* f32 to the bits of bf16, to nearest, ties to even, with instructions of any machine. */
LLVMValueRef gen_to_bf16(Gen *g, LLVMValueRef x);
/* x[0] * x[1] + x[2], rounded once to the 16-bit float k. x are f32 with values of k. */
LLVMValueRef gen_fma16(Gen *g, ScalarKind k, LLVMValueRef *x);
/* Any cast op. */
LLVMValueRef gen_cast(Gen *g, const Op *op, LLVMValueRef x);
/* c ? x : y */
LLVMValueRef gen_select(Gen *g, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y);

/* ---- gen_polynomial.c: on f32 */
typedef LLVMValueRef GenUnary(Gen *g, LLVMValueRef x);
/* a * b + c, rounded once. */
LLVMValueRef gen_fma(Gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
/* c[0] + x * (c[1] + x * (..)) for n coefficients. */
LLVMValueRef gen_polynomial(Gen *g, LLVMValueRef x, const double *c, int n);
/* The error function. exp2_of: the target's 2^x, called for x <= 0. The error is small
   relative to the result; in the second function only relative to 1, which is cheaper. */
LLVMValueRef gen_erf(Gen *g, LLVMValueRef x, GenUnary *exp2_of);
LLVMValueRef gen_erf_beside_one(Gen *g, LLVMValueRef x, GenUnary *exp2_of);

/* gen_print.c: appends the text that device_print writes between an element's index and
   its value. */
void gen_print_text(Buf *b, const char *text, bool values, int operand, int count);

/* ---- lines.c: source lines of instructions */
/* Instructions from here on belong to loc. */
void lines_at(Gen *g, Loc loc);
/* For emit.c, in this order: makes the module to generate into; begins the function of
   number `index` of it; ends that; ends the module. */
LLVMModuleRef lines_module(Gen *g, const Module *m, const char *name);
void lines_function(Gen *g, int index);
void lines_function_end(Gen *g);
void lines_done(Gen *g);

/* ---- emit.c, also for bundle.c */
/* Opens LLVM's context and module `name`; m: for source lines, may be NULL. */
void emit_open(Gen *g, const Module *m, const char *name);
/* Makes the target machine, for g->opt's level. */
bool emit_machine(Gen *g);
/* Makes it again, for another level. */
bool emit_machine_at(Gen *g, LLVMCodeGenOptLevel level);
/* Leaves through the fail point when LLVM does not accept what was generated. */
void emit_verify(Gen *g);
/* Writes what g->opt asks for. */
bool emit_write(Gen *g, CodegenOut *out);
/* Calls fn in a section of LLVM (codegen/llvm.h), then frees all that g owns, also when
   the section is left by the session's fail point. Returns fn's result. */
typedef bool EmitFn(Gen *g, void *arg);
bool emit_section(Gen *g, EmitFn *fn, void *arg);
const Target *emit_target(bool gpu);

/* ptxas_quirks.c: PTX text, NUL-terminated, with instructions replaced that ptxas
   miscompiles. *size: its length, before and after. The result is in a, or ptx itself. */
const char *ptxas_quirks(Arena *a, const char *ptx, size_t *size);

/* effort.c: makes a machine without optimisations if a function of m is too large for
   them. */
bool limit_effort(Gen *g, Module *m);

/* meta.c: fills in everything that follows from the function's signature. */
bool meta_fill(Session *s, const Func *f, const char *target, SdcrtMeta *meta);
/* meta_map.c: the tensor maps of the function's TMA ops. *of: Op -> its SdcrtMap;
   *halves: Op -> the map by which it copies half a tile to two programs. */
bool meta_maps(Session *s, const Func *f, SdcrtMeta *meta, Map *of, Map *halves);

#endif
