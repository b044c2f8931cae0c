/* The GPU's code generator: every tile is an array of LLVM scalars, one per register
   of its layout; all threads of a program run the same code. Shared by gen_nv*.c,
   gen_layout.c. */
#ifndef SDC_CODEGEN_GEN_NV_H
#define SDC_CODEGEN_GEN_NV_H

#include "codegen/gen.h"
#include "ir/layout.h"

/* Registers that one thread may need for one tile. */
enum { NV_MAX_REGS = 1024, NV_MAX_THREADS = 1024 };

/* What a Value is in LLVM: one scalar, or one per register of the layout. */
typedef struct Regs {
    int n;
    LLVMValueRef *v;
} Regs;

typedef struct Nv {
    LLVMValueRef tid;        /* thread of the program, 0 .. 32 * warps - 1 */
    LLVMValueRef lane, warp; /* its parts */
    LLVMBasicBlockRef entry; /* where what depends on the thread alone is computed */
    Map lead;                /* (Layout) -> per-thread coordinates, see gen_layout.c */
    LLVMValueRef shared;     /* dynamic shared memory of the program, or NULL */
} Nv;

static inline Nv *
nv_of(Gen *g)
{
    return g->priv;
}

/* ---- gen_nv.c */
bool gen_nv_func(Gen *g, Func *f, SdcrtMeta *meta);
/* The registers of a value; NULL after an error. */
Regs *nv_regs(Gen *g, const Value *v);
LLVMValueRef nv_scalar(Gen *g, const Value *v);
/* Room for n registers of v, entered in the map; NULL after an error. */
Regs *nv_define(Gen *g, const Value *v, int n);
int nv_count(const Type *t); /* registers that a value of the type takes */
LLVMTypeRef nv_type(Gen *g, const Type *t); /* of one register */
/* Shared memory at `offset` bytes from where the program's begins. */
LLVMValueRef nv_shared(Gen *g, int64_t offset);
/* Where placement (passes/smem.c) put the op's buffer or scratch memory; NULL after an
   error. */
LLVMValueRef nv_scratch(Gen *g, const Op *op);
/* Code of a region that is computed on scalars: arguments in, what it yields out. */
bool nv_inline(Gen *g, const Region *r, LLVMValueRef *args, LLVMValueRef *out);

/* ---- gen_layout.c: where an element is, and elements that only change registers */
/* Coordinate of register `reg` along dim, as i32. */
LLVMValueRef nv_coord(Gen *g, const Layout *l, uint32_t reg, int dim);
/* i1: this thread is the one that acts for its elements; NULL: every thread is. */
LLVMValueRef nv_owner(Gen *g, const Layout *l);
/* The register of l whose share of the coordinates is `coord`; -1 when there is none. */
int nv_reg_at(const Layout *l, uint32_t coord);
bool nv_shape_op(Gen *g, const Op *op);
bool nv_arange(Gen *g, const Op *op);
bool nv_convert(Gen *g, const Op *op);

/* ---- gen_nv_elem.c: the target's hooks for elementwise work */
LLVMValueRef nv_elem(Gen *g, const Op *op, LLVMValueRef *x);
LLVMValueRef nv_math(Gen *g, const Op *op, ScalarKind k, LLVMValueRef *x);
LLVMValueRef nv_fcast(Gen *g, ScalarKind from, ScalarKind to, bool rtz, LLVMValueRef x);

/* ---- gen_nv_mem.c, gen_nv_atomic.c */
bool nv_load(Gen *g, const Op *op);
bool nv_store(Gen *g, const Op *op);
bool nv_atomic(Gen *g, const Op *op);

/* ---- gen_nv_reduce.c */
bool nv_reduce(Gen *g, const Op *op);

#endif
