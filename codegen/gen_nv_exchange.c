/* Operations that move elements between threads in other ways than a conversion of
   layouts: gather and histogram. Both use their scratch memory, in which tiles are
   row-major arrays; a gather inside of a warp shuffles (ir/plan/gather.h). */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/plan/gather.h"
#include "ir/plan/scratch.h"

/* ---- a second operand whose layout does not fit the op */

static const Type *
second_type(Gen *g, const Op *op, const Layout *l)
{
    return type_with_layout(g->s->types, op_operand(op, 1)->type, l);
}

/* Writes the operand to scratch memory; returns registers for reading it back in the
   layout wanted, NULL if it has that. */
static Regs *
second_write(Gen *g, const Op *op, const Layout *l)
{
    const Value *v = op_operand(op, 1);
    LLVMValueRef at = nv_scratch_part(g, nv_scratch(g, op), second_offset(op));
    if (v->type->layout == l)
        return NULL;
    nv_scratch_write(g, at, v->type, nv_regs(g, v));
    Regs *r = arena_new(&g->s->tmp, Regs);
    r->n = layout_regs(l);
    r->v = arena_array(&g->s->tmp, LLVMValueRef, r->n);
    return r;
}

static Regs *
second_read(Gen *g, const Op *op, const Layout *l, Regs *to)
{
    LLVMValueRef at = nv_scratch_part(g, nv_scratch(g, op), second_offset(op));
    nv_scratch_read(g, at, second_type(g, op, l), to);
    return to;
}

/* ---- gather */

/* The lane that holds the element of this index: bits that keep their distance move
   together. */
static LLVMValueRef
lane_of(Gen *g, const GatherPlan *p, LLVMValueRef index)
{
    LLVMValueRef stays = ll_int(g->i32, 31 & ~p->lanes);
    LLVMValueRef lane = LLVMBuildAnd(g->b, nv_of(g)->tid, stays, "");
    uint32_t done = 0;
    for (int i = 0; i < p->bits; i++) {
        int by = i - p->lane[i];
        uint32_t to = 0;
        if (p->lane[i] < 0 || done >> i & 1)
            continue;
        for (int k = i; k < p->bits; k++)
            if (p->lane[k] >= 0 && k - p->lane[k] == by) {
                to |= 1u << p->lane[k];
                done |= 1u << k;
            }
        LLVMValueRef part =
            by < 0 ? LLVMBuildShl(g->b, index, ll_int(g->i32, -by), "")
                   : LLVMBuildLShr(g->b, index, ll_int(g->i32, by), "");
        part = LLVMBuildAnd(g->b, part, ll_int(g->i32, to), "");
        lane = LLVMBuildOr(g->b, lane, part, "");
    }
    return lane;
}

/* Of register `reg` of that lane, and of those that index bits from `bit` on choose. */
static LLVMValueRef
chosen(Gen *g, const GatherPlan *p, const Regs *in, uint32_t reg, int bit,
       LLVMValueRef index, LLVMValueRef lane)
{
    while (bit < p->bits && p->reg[bit] < 0)
        bit++;
    if (bit == p->bits)
        return nv_shuffle_from(g, in->v[reg], lane);
    LLVMValueRef a = chosen(g, p, in, reg, bit + 1, index, lane);
    LLVMValueRef b = chosen(g, p, in, reg | 1u << p->reg[bit], bit + 1, index, lane);
    LLVMValueRef c = LLVMBuildAnd(g->b, index, ll_int(g->i32, 1 << bit), "");
    c = LLVMBuildICmp(g->b, LLVMIntNE, c, ll_int(g->i32, 0), "");
    return LLVMBuildSelect(g->b, c, b, a, "");
}

static bool
by_shuffles(Gen *g, const Op *op, const GatherPlan *p)
{
    const Value *v = &op->results[0];
    Regs *in = nv_regs(g, op_operand(op, 0)), *at = nv_regs(g, op_operand(op, 1));
    Regs *out = nv_define(g, v, nv_count(v->type));
    if (!in || !at || !out)
        return false;
    for (int r = 0; r < out->n; r++) {
        LLVMValueRef index = LLVMBuildIntCast2(g->b, at->v[r], g->i32, 1, "");
        uint32_t reg = 0;
        for (int i = 0; r >> i; i++)
            reg |= r >> i & 1 ? p->beside[i] : 0;
        out->v[r] = chosen(g, p, in, reg, 0, index, lane_of(g, p, index));
    }
    return true;
}

/* Indices outside of the source are undefined, but must not access other memory. */
bool
nv_gather(Gen *g, const Op *op)
{
    const Value *src = op_operand(op, 0), *index = op_operand(op, 1);
    const Type *t = src->type, *e = type_elem(t), *to = op->results[0].type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0), bytes = shared_elem_bytes(t);
    LLVMTypeRef word = LLVMIntTypeInContext(g->cx, 8 * (unsigned)bytes);
    GatherPlan plan;
    if (gather_in_warp(op, &plan))
        return by_shuffles(g, op, &plan);
    LLVMValueRef base = nv_scratch(g, op);
    Regs *in = nv_regs(g, src), *at = nv_regs(g, index);
    Regs *out = nv_define(g, &op->results[0], nv_count(to));
    if (!base || !in || !at || !out)
        return false;
    nv_scratch_write(g, base, t, in);
    Regs *moved = second_write(g, op, to->layout);
    nv_barrier(g);
    if (moved)
        at = second_read(g, op, to->layout, moved);
    for (uint32_t r = 0; r < (uint32_t)out->n; r++) {
        LLVMValueRef sum = ll_int(g->i32, 0);
        for (int d = 0; d < t->rank; d++) {
            LLVMValueRef c;
            if (d == axis) {
                c = LLVMBuildIntCast2(g->b, at->v[r], g->i32, 1, "");
                c = LLVMBuildAnd(g->b, c, ll_int(g->i32, t->shape[d] - 1), "");
            } else {
                c = nv_coord(g, to->layout, r, d);
            }
            int64_t unit = bytes * ((int64_t)1 << layout_shift(t->layout, d));
            c = LLVMBuildMul(g->b, c, ll_int(g->i32, unit), "");
            sum = LLVMBuildAdd(g->b, sum, c, "");
        }
        LLVMValueRef from = LLVMBuildInBoundsGEP2(g->b, g->i8, base, &sum, 1, "");
        out->v[r] = nv_from_bits(g, e, LLVMBuildLoad2(g->b, word, from, ""));
    }
    return true;
}

/* ---- histogram */

static void
count_one(Gen *g, LLVMValueRef base, LLVMValueRef bin, LLVMValueRef pred)
{
    LLVMValueRef at = LLVMBuildShl(g->b, bin, ll_int(g->i32, 2), "");
    LLVMValueRef p = LLVMBuildPtrToInt(g->b, base, g->i32, "");
    LLVMValueRef args[2] = {LLVMBuildAdd(g->b, p, at, ""), pred};
    ptx_asm(g, "@$1 red.relaxed.cta.shared.add.u32 [$0], 1;", "r,b",
            LLVMVoidTypeInContext(g->cx), args, 2, true);
}

/* Counts in shared memory by one atomic addition per element; elements outside of the
   bins do not count. */
bool
nv_histogram(Gen *g, const Op *op)
{
    const Value *x = op_operand(op, 0), *v = &op->results[0];
    int64_t bins = v->type->shape[0];
    LLVMValueRef base = nv_scratch(g, op), owner = nv_owner(g, x->type->layout);
    Regs *in = nv_regs(g, x), *mask = NULL, *out = nv_define(g, v, nv_count(v->type));
    if (!base || !in || !out ||
        (op->noperand > 1 && !(mask = nv_regs(g, op_operand(op, 1)))))
        return false;
    if (type_bits(v->type) != 32)
        return gen_unsupported(g, op, "of this type") != NULL;
    for (int r = 0; r < out->n; r++)
        out->v[r] = ll_int(g->i32, 0);
    nv_scratch_write(g, base, v->type, out);
    Regs *moved = mask ? second_write(g, op, x->type->layout) : NULL;
    nv_barrier(g);
    if (moved)
        mask = second_read(g, op, x->type->layout, moved);
    for (int r = 0; r < in->n; r++) {
        LLVMTypeRef t = LLVMTypeOf(in->v[r]);
        LLVMValueRef pred = LLVMConstInt(g->i1, 1, 0), bin = in->v[r];
        if (LLVMGetIntTypeWidth(t) > 16 || bins < (int64_t)1 << LLVMGetIntTypeWidth(t))
            pred = LLVMBuildICmp(g->b, LLVMIntULT, bin, ll_int(t, bins), "");
        if (owner)
            pred = LLVMBuildAnd(g->b, pred, owner, "");
        if (mask)
            pred = LLVMBuildAnd(g->b, pred, mask->v[r], "");
        count_one(g, base, LLVMBuildIntCast2(g->b, bin, g->i32, 0, ""), pred);
    }
    nv_barrier(g);
    nv_scratch_read(g, base, v->type, out);
    return true;
}
