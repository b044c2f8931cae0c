/* What the files of the CPU's code generator (gen_cpu*.c) share. It takes the cpu form,
   which pass lower-cpu makes: scalars, strips (LLVM vectors), buffers and loops.
   Functions that generate code for an op return false or NULL after an error, which is in
   s->diag. */
#ifndef SDC_CODEGEN_GEN_CPU_H
#define SDC_CODEGEN_GEN_CPU_H

#include "codegen/gen.h"

/* Scratch memory that one running program may need at most, in bytes. */
#define CPU_MAX_SCRATCH ((int64_t)256 << 20)
enum { CPU_MAX_OPERANDS = 64, CPU_MAX_ZIP = 64 };

typedef struct Cpu {
    LLVMValueRef scratch;         /* address of the program's scratch memory */
    LLVMValueRef pid[3], grid[3]; /* i32: the program's number and the grid's size */
    LLVMBasicBlockRef entry;      /* for allocas */
    int64_t placed;        /* scratch bytes of buffers that have no offset of their own */
    int64_t scratch_bytes; /* of all buffers */
    int64_t work_bytes;    /* behind them: the most that cpu_workspace was asked for */
    bool avx512;           /* with instructions on bytes and on short vectors */
    bool vnni, bf16, amx;  /* dot instructions of bytes, of bf16, and tiles of both */
    bool tiles;            /* AMX is used: its state must be released at the end */
    LLVMValueRef alone;    /* i1: no other thread runs atomics; NULL: never */
    LLVMValueRef program;  /* i64: the program's number in the grid */
    LLVMBasicBlockRef leave; /* ends the range of programs that this call runs */
    LLVMValueRef hooks;      /* functions of the host; NULL: the kernel needs none */
    LLVMValueRef words[3];   /* memory for their arguments; NULL until needed */
    int checks;              /* number of checks so far */
    bool avx2; /* with FMA and F16C */
} Cpu;

bool gen_cpu_func(Gen *g, Func *f, SdcrtMeta *meta);
/* What v is in LLVM, and setting it. */
LLVMValueRef cpu_value(Gen *g, const Value *v);
void cpu_set(Gen *g, const Value *v, LLVMValueRef x);
/* Lanes of a strip of type t; 1 for a scalar. */
unsigned cpu_lanes(const Type *t);
/* The LLVM type of a scalar, pointer or strip. */
LLVMTypeRef cpu_type(Gen *g, const Type *t);
/* A new block of the function, at its end. */
LLVMBasicBlockRef cpu_block(Gen *g, const char *name);
/* A variable in the function's frame. */
LLVMValueRef cpu_alloca(Gen *g, LLVMTypeRef t);
/* A loop that counts i from lo to below hi by a constant step, with one iteration at
   least. Code between cpu_loop (of bounds that are values: cpu_loop_from) and
   cpu_loop_end is its body. */
typedef struct CpuLoop {
    LLVMBasicBlockRef body, done;
    LLVMValueRef i, step, hi;
} CpuLoop;
CpuLoop cpu_loop(Gen *g, int64_t lo, int64_t hi, int64_t step);
CpuLoop cpu_loop_from(Gen *g, LLVMValueRef lo, LLVMValueRef hi, int64_t step);
void cpu_loop_end(Gen *g, CpuLoop *l);

/* cpu_cleanup.c */
void cpu_cleanup(Gen *g);

/* gen_cpu_mem.c */
/* Elements from one row of a buffer to the next. Rows of a large power of two are a cache
   line longer, since the rows of a tile would all fall into the same few cache sets. */
int64_t cpu_pitch(const Type *buf);
bool cpu_memory(Gen *g, const Op *op);
/* Loads and stores elements at p: a scalar, a strip from there on, or a strip of pointers
   that op accesses. */
LLVMValueRef cpu_load(Gen *g, const Op *op, const Type *elem, unsigned lanes,
                      LLVMValueRef p, LLVMValueRef mask, LLVMValueRef other);
void cpu_store(Gen *g, const Op *op, const Type *elem, LLVMValueRef p, LLVMValueRef x,
               LLVMValueRef mask);
/* The LLVM type of an element in memory. */
LLVMTypeRef cpu_element(Gen *g, const Type *elem);

/* Address of `bytes` bytes of scratch memory, `from` bytes behind all buffers. An op may
   use it; the next op may overwrite it. */
LLVMValueRef cpu_workspace(Gen *g, int64_t from, int64_t bytes);

/* ---- gen_cpu_group.c */

/* n lanes from `at` on, all of them or (mask) some; stores return NULL. */
typedef LLVMValueRef (*CpuPart)(Gen *g, void *cx, unsigned at, unsigned n,
                                LLVMValueRef mask);
/* All lanes in groups of `width`. other: of lanes that are off; NULL: of stores. */
LLVMValueRef cpu_groups(Gen *g, LLVMValueRef mask, LLVMValueRef other, unsigned width,
                        CpuPart part, void *cx);

/* ---- gen_cpu_gather.c */

enum { GROUP_APART = 8 }; /* lanes of a group that are apart in memory */
/* The first lane's address, if the lanes are known to follow each other in memory; else
   NULL. */
const Value *cpu_row_of(const Op *op);
/* The address of the last lane, if each lane's address is one element below that of the
   lane before; else NULL. Then one access of reversed lanes serves. */
LLVMValueRef cpu_runs_down(Gen *g, const Op *op, LLVMTypeRef elem, unsigned lanes);
/* The vector with its lanes in reverse order. */
LLVMValueRef cpu_reversed(Gen *g, LLVMValueRef x);
/* Loads a vector from `ptrs`, each aligned to `align` bytes; lanes that mask excludes get
   those of `other`. */
LLVMValueRef cpu_gather(Gen *g, const Op *op, LLVMTypeRef elem, unsigned align,
                        LLVMValueRef ptrs, LLVMValueRef mask, LLVMValueRef other);
/* ptrs, where lanes that mask excludes point to a variable that holds `own`. */
LLVMValueRef cpu_diverted(Gen *g, LLVMTypeRef elem, LLVMValueRef ptrs, LLVMValueRef mask,
                          LLVMValueRef own);

/* gen_cpu_atomic.c: one lane at a time. */
typedef struct Strip {
    LLVMValueRef x[3];    /* operands without the mask */
    LLVMValueRef at[3];   /* in memory */
    LLVMTypeRef t[3];     /* of their elements */
    int n;
    LLVMValueRef mask, mask_at; /* i1, bytes in memory; or NULL */
    LLVMValueRef out;           /* results, in memory; NULL: nobody reads them */
    LLVMValueRef row; /* the first address of lanes known to be a row, or NULL */
} Strip;
bool cpu_atomic(Gen *g, const Op *op);
/* Puts the operands into memory. */
void cpu_spill(Gen *g, const Strip *s);
/* What {rmw} leaves in memory. */
LLVMValueRef cpu_combine(Gen *g, const Op *op, int rmw, LLVMValueRef old, LLVMValueRef v);
/* Operands in memory, so that a loop can pick lanes: those from i on. */
LLVMValueRef cpu_lane(Gen *g, LLVMValueRef spilled, LLVMTypeRef t, LLVMTypeRef elem,
                      LLVMValueRef i);
/* i1: are all lanes on? NULL for NULL. */
LLVMValueRef cpu_all_on(Gen *g, LLVMValueRef mask);
/* i1: are the lanes next to each other, and all of the mask (NULL: none) on? */
LLVMValueRef cpu_is_row(Gen *g, LLVMTypeRef elem, LLVMValueRef ptrs, LLVMValueRef mask);

/* gen_cpu_alone.c: without locked instructions. */
void cpu_may_be_alone(const Func *f, SdcrtMeta *meta);
void cpu_alone_begin(Gen *g);
bool cpu_alone_helps(const Gen *g, const Op *op);
void cpu_atomic_alone(Gen *g, const Op *op, int rmw, const Strip *s);

/* x as elements are in memory: i1 as bytes. */
LLVMValueRef cpu_to_memory(Gen *g, const Type *elem, LLVMValueRef x);

/* ---- gen_cpu_hooks.c: print, assert and checks, which call functions of the host */
bool cpu_wants_hooks(const Region *r);
/* A program begins: branches to `go`, or to `leave` if the launch was stopped. */
void cpu_hooks_begin(Gen *g, LLVMBasicBlockRef go, bool checked);
bool cpu_hook(Gen *g, const Op *op);
/* Behind an op: tells the host if its result is NaN and its operands are not. */
void cpu_watch_nan(Gen *g, const Op *op);

/* gen_cpu_dot.c */
bool cpu_dot(Gen *g, const Op *op);

/* gen_cpu_bf16.c: the target's hook for casts of floats. */
LLVMValueRef cpu_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x);

/* gen_cpu_topk.c */
bool cpu_topk(Gen *g, const Op *op);

/* gen_cpu_math.c: the target's math hook. */
LLVMValueRef gen_cpu_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);

/* gen_cpu_exp.c: e^x of f32, or 2^x (base2), with the same bits for a strip and a scalar.
   nonpositive: x <= 0 is known. */
LLVMValueRef cpu_exp(Gen *g, bool base2, bool nonpositive, LLVMValueRef x);

/* Has the processor of this name AVX2, FMA and F16C? features: LLVM's "+a,-b" in addition
   to the name. */
bool cpu_has_avx2(const char *name, const char *features);

/* The other units that code is generated for, as a set. */
enum { AVX512 = 1, VNNI = 2, BF16 = 4, AMX = 8 };
unsigned cpu_units(const char *name, const char *features);

#endif
