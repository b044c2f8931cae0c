/* Puts operands of dots into shared memory: what the passes for mma
   (stage_mma_operands.c) and wgmma (lower_wgmma.c) share. A buffer here is a value of
   type mem<..>. */
#ifndef SDC_PASSES_MMA_OPERAND_H
#define SDC_PASSES_MMA_OPERAND_H

#include "ir/build.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "passes/pass.h"

/* The dimension along which v is contiguous in memory. If v was not loaded, the one along
   which a thread holds neighbouring elements, or neighbouring lanes do if each thread
   holds one. */
int operand_fast_dim(const Value *v);
/* A buffer that holds v; an existing one if v has one. Its rows run along
   operand_fast_dim(v), and its swizzle suits ldmatrix, wgmma and TMA. tile: NULL, or the
   layout in which threads read the buffer, where no TMA fills it: then it may be the type
   of operand_banks. b: gives the place if v is an argument, and the location. */
Value *operand_buffer(Session *s, Builder *b, Value *v, const Layout *tile);
/* The type of such a buffer, for a tile of type t and rows along dimension `fast`. */
const Type *operand_buffer_type(Session *s, const Type *t, int fast);
/* A buffer type like mem, with rows along `fast`, whose swizzle gives the fewest bank
   conflicts when threads read it in layout `tile`; mem itself if none is better. */
const Type *operand_banks(Session *s, const Type *mem, int fast, const Layout *tile);
/* A view of buffer m, which holds the operand of `trans`, as the transposed tile. */
Value *operand_transposed(Session *s, Builder *b, Value *m, const Op *trans);

/* A copy of buffer m, of 8- or 32-bit elements with rows along the other dimension, in a
   buffer with rows along `inner`. An existing copy is used again. as_acc: in the row
   order of ir/layout.h's layout_acc_order. */
Value *operand_across(Session *s, Builder *b, Value *m, int inner, bool as_acc);
/* A buffer with rows along `inner` for tile v, which threads have computed. */
Value *operand_along(Session *s, Builder *b, Value *v, int inner);

/* Can cp.async do this load into a buffer? It moves at least four consecutive bytes. */
bool operand_copies(const Op *load);

/* Is v elementwise work on one loaded tile at most and on values that any thread can
   compute (constants, indices; with `vectors` also repeated vectors)? *load: the loaded
   tile, or NULL if there is none. */
bool operand_is_work_on_load(Value *v, bool vectors, Value **load);
/* Does the work of operand_is_work_on_load(v) again in layout `to`, with tile `load`
   replaced by `loaded`, which has that layout. made: what was done before in front of b,
   by the tile that it was done again for; used and added to. NULL: nothing. */
Value *operand_redo(Session *s, Builder *b, Value *v, const Layout *to, Value *load,
                    Value *loaded, Map *made);
/* What `made` has of v in layout `to`; NULL: nothing. */
Value *operand_made(const Map *made, const Value *v, const Layout *to);

#endif
