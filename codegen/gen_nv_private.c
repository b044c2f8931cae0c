/* Strips of a tile in the thread's own memory (pass strip-mine): an array on its stack,
   the registers of a strip side by side, moved 16 bytes at a time where there are as
   many. */
#include "codegen/gen_nv.h"

#include "codegen/gen_nv_access.h"
#include "ir/base/util.h"
#include "ir/layout.h"

/* How an element lies in memory, and how many are moved at once. */
typedef struct Cells {
    const Type *elem;
    LLVMTypeRef cell, words;
    int bits, per;
} Cells;

static Cells
cells_of(Gen *g, const Type *elem, int regs)
{
    Cells c = {.elem = elem, .bits = nv_memory_bits(elem)};
    c.per = (int)min_i64(NV_ACCESS_BYTES * 8 / c.bits, regs);
    c.cell = LLVMIntTypeInContext(g->cx, (unsigned)c.bits);
    c.words = LLVMVectorType(c.cell, (unsigned)c.per);
    return c;
}

/* A buffer's elements of one thread: the strips' over the threads of the program. */
static bool
gen_alloc(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    const Type *t = v->type;
    Regs *out = nv_define(g, v, 1);
    if (!out)
        return false;
    int64_t regs = max_i64(1, t->shape[1] / (32 * nv_warps(g)));
    Cells c = cells_of(g, type_elem(t), (int)regs);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderAtEnd(g->b, nv_of(g)->entry);
    LLVMTypeRef all = LLVMArrayType2(c.cell, (uint64_t)(t->shape[0] * regs));
    out->v[0] = LLVMBuildAlloca(g->b, all, "");
    LLVMSetAlignment(out->v[0], NV_ACCESS_BYTES);
    LLVMPositionBuilderAtEnd(g->b, here);
    return true;
}

/* Where registers r .. of strip `strip` lie. */
static LLVMValueRef
cell_at(Gen *g, const Cells *c, LLVMValueRef base, LLVMValueRef strip, int regs, int r)
{
    LLVMValueRef at = LLVMBuildNUWMul(g->b, strip, ll_int(g->i32, regs), "");
    at = LLVMBuildNUWAdd(g->b, at, ll_int(g->i32, r), "");
    return LLVMBuildInBoundsGEP2(g->b, c->cell, base, &at, 1, "");
}

bool
nv_private(Gen *g, const Op *op)
{
    if (op->kind == OP_PRIVATE_ALLOC)
        return gen_alloc(g, op);
    bool load = op->kind == OP_PRIVATE_LOAD;
    const Value *tile = load ? &op->results[0] : op_operand(op, 1);
    const Type *buf = op_operand(op, 0)->type;
    LLVMValueRef base = nv_scalar(g, op_operand(op, 0));
    LLVMValueRef strip = nv_scalar(g, op_operand(op, load ? 1 : 2));
    Regs *x = load ? nv_define(g, tile, nv_count(tile->type)) : nv_regs(g, tile);
    if (!base || !strip || !x)
        return false;
    if (x->n * 32 * nv_warps(g) != buf->shape[1])
        return gen_unsupported(g, op, "of a tile that threads hold copies of") != NULL;
    Cells c = cells_of(g, type_elem(tile->type), x->n);
    for (int r = 0; r < x->n; r += c.per) {
        LLVMValueRef at = cell_at(g, &c, base, strip, x->n, r);
        LLVMValueRef all =
            load ? LLVMBuildLoad2(g->b, c.words, at, "") : LLVMGetPoison(c.words);
        for (int k = 0; k < c.per; k++) {
            LLVMValueRef i = ll_int(g->i32, k);
            if (load)
                x->v[r + k] = nv_from_bits(
                    g, c.elem, LLVMBuildExtractElement(g->b, all, i, ""));
            else
                all = LLVMBuildInsertElement(
                    g->b, all, nv_to_bits(g, c.elem, x->v[r + k], c.bits), i, "");
        }
        LLVMValueRef moved = load ? all : LLVMBuildStore(g->b, all, at);
        LLVMSetAlignment(moved, (unsigned)(c.per * c.bits / 8));
    }
    return true;
}
