/* Operands of dots on their way through shared memory: what the passes for mma
   (stage_mma_operands.c) and wgmma (lower_wgmma.c) have in common. */
#ifndef SDC_PASSES_MMA_OPERAND_H
#define SDC_PASSES_MMA_OPERAND_H

#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

/* The dimension along which v lies in memory; of what was not loaded the one along which
   a thread's elements lie one behind the other, or its neighbour has the next where all
   hold but one. */
int operand_fast_dim(const Value *v);
/* A buffer that holds v, swizzled for ldmatrix, wgmma and TMA alike: rows run along
   operand_fast_dim. tile: for threads that read it in this layout, where no TMA fills it
   (operand_banks); or NULL. */
Value *operand_buffer(Session *s, Builder *b, Value *v, const Layout *tile);
/* Its type, for a tile of type t and rows along that dimension. */
const Type *operand_buffer_type(Session *s, const Type *t, int fast);
/* The type of a buffer in place of mem, whose rows run along `fast`, that threads read in
   layout `tile` with fewer conflicts of banks, if there is one. */
const Type *operand_banks(Session *s, const Type *mem, int fast, const Layout *tile);
/* The buffer m of what `trans` transposes, seen transposed. */
Value *operand_transposed(Session *s, Builder *b, Value *m, const Op *trans);

/* A buffer of bytes that lies along `inner`, filled from m, which lies across; as_sums:
   in the order of ir/layout.h's layout_as_sums. */
Value *operand_across(Session *s, Builder *b, Value *m, int inner, bool as_sums);
/* The same of a tile that threads have computed. */
Value *operand_along(Session *s, Builder *b, Value *v, int inner);

/* Can threads copy what a load asks for into a buffer asynchronously? (cp.async moves
   four bytes at least.) */
bool operand_copies(const Op *load);

/* Is v elementwise work on exactly one loaded tile, and on what any thread can compute,
   with `vectors` also on rows or columns that repeat a vector? Then *load is that tile
   (else NULL). */
bool operand_is_work_on_load(Value *v, bool vectors, Value **load);
/* v computed again in layout `to` from `load`, which is there as `loaded` in that
   layout. */
Value *operand_redo(Session *s, Builder *b, Value *v, const Layout *to, Value *load,
                    Value *loaded);

#endif
