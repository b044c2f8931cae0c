/* The CPU's code generator: cpu form (scalars, strips, buffers, loops) to LLVM. */
#ifndef SDC_CODEGEN_GEN_CPU_H
#define SDC_CODEGEN_GEN_CPU_H

#include "codegen/gen.h"

/* Most bytes of scratch that one running program may need. */
#define CPU_MAX_SCRATCH ((int64_t)256 << 20)
enum { CPU_MAX_OPERANDS = 64, CPU_MAX_ZIP = 64 };

typedef struct Cpu {
    LLVMValueRef scratch;
    LLVMValueRef pid[3], grid[3]; /* i32 */
    LLVMBasicBlockRef entry;      /* allocas */
    int64_t placed; /* bytes of scratch that buffers without an offset have taken */
    int64_t scratch_bytes;
    int64_t work_bytes;  /* behind them: what cpu_workspace lends */
    bool avx512; /* with its short forms, of bytes too */
    bool vnni, bf16, amx; /* products of bytes, of bf16, by tiles of both */
    bool tiles; /* AMX is used: its state is given back at the end */
    LLVMValueRef program;         /* i64: its number */
    LLVMBasicBlockRef leave;      /* ends the range of programs */
    LLVMValueRef hooks;           /* of the host; NULL: the kernel asks for nothing */
    LLVMValueRef words[3];        /* room for what they are given; NULL until needed */
    int checks;                   /* that have a number */
    bool avx2;   /* with FMA and F16C: what the forms of strips are made for */
} Cpu;

bool gen_cpu_func(Gen *g, Func *f, SdcrtMeta *meta);
LLVMValueRef cpu_value(Gen *g, const Value *v);
void cpu_set(Gen *g, const Value *v, LLVMValueRef x);
unsigned cpu_lanes(const Type *t);
LLVMTypeRef cpu_type(Gen *g, const Type *t); /* scalar, pointer or strip */
LLVMBasicBlockRef cpu_block(Gen *g, const char *name);
LLVMValueRef cpu_alloca(Gen *g, LLVMTypeRef t);
/* A counted loop from lo to hi by a constant step, at least one trip. */
typedef struct CpuLoop {
    LLVMBasicBlockRef body, done;
    LLVMValueRef i, step, hi;
} CpuLoop;
CpuLoop cpu_loop(Gen *g, int64_t lo, int64_t hi, int64_t step);
void cpu_loop_end(Gen *g, CpuLoop *l);

/* cpu_cleanup.c */
void cpu_cleanup(Gen *g);

/* gen_cpu_mem.c */
/* Elements of a buffer from one row to the next: a row that is a large power of two is a
   line longer, or the rows of a tile would all want the same few places of the caches. */
int64_t cpu_pitch(const Type *buf);
bool cpu_memory(Gen *g, const Op *op);
LLVMTypeRef cpu_element(Gen *g, const Type *elem); /* in memory */

/* Memory of `bytes`, `from` bytes behind all buffers: free between two ops. */
LLVMValueRef cpu_workspace(Gen *g, int64_t from, int64_t bytes);

/* gen_cpu_gather.c. Where the lanes of this access run down through memory, one element
   after another: the last one's address; else NULL. A vector the other way round. */
LLVMValueRef cpu_runs_down(Gen *g, const Op *op, LLVMTypeRef elem, unsigned lanes);
LLVMValueRef cpu_turned(Gen *g, LLVMValueRef x);
/* What a load of `align` bytes a lane finds at `ptrs`. */
LLVMValueRef cpu_gather(Gen *g, const Op *op, LLVMTypeRef elem, unsigned align,
                        LLVMValueRef ptrs, LLVMValueRef mask, LLVMValueRef other);
/* Pointers of lanes that are off lead to where `own` is kept. */
LLVMValueRef cpu_diverted(Gen *g, LLVMTypeRef elem, LLVMValueRef ptrs, LLVMValueRef mask,
                          LLVMValueRef own);

/* gen_cpu_atomic.c: one lane at a time. */
bool cpu_atomic(Gen *g, const Op *op);

LLVMValueRef cpu_to_memory(Gen *g, const Type *elem, LLVMValueRef x);

/* gen_cpu_hooks.c: print, assert and checks, by what the host lends. */
bool cpu_wants_hooks(const Region *r);
/* A program begins, unless the launch was stopped. */
void cpu_hooks_begin(Gen *g, LLVMBasicBlockRef go, bool checked);
bool cpu_hook(Gen *g, const Op *op);
/* Behind an op: tells the host when its result is NaN and what it was made of is not. */
void cpu_watch_nan(Gen *g, const Op *op);

/* gen_cpu_dot.c */
bool cpu_dot(Gen *g, const Op *op);

/* gen_cpu_bf16.c: the target's hook for casts of floats. */
LLVMValueRef cpu_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x);

/* gen_cpu_topk.c */
bool cpu_topk(Gen *g, const Op *op);

/* gen_cpu_math.c: the target's math hook. */
LLVMValueRef gen_cpu_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);

/* gen_cpu_exp.c: e^x, or 2^x, of f32: a strip or a scalar, with the same bits */
LLVMValueRef cpu_exp(Gen *g, bool base2, bool nonpositive, LLVMValueRef x);

/* Has the processor AVX2, FMA and F16C? `features`: what is said beside its name. */
bool cpu_has_avx2(const char *name, const char *features);

/* What else it has that code is made for. */
enum { AVX512 = 1, VNNI = 2, BF16 = 4, AMX = 8 };
unsigned cpu_units(const char *name, const char *features);

#endif
