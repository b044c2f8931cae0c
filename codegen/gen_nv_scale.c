/* Accumulators of wgmma times a factor of each row that is 1 where a select keeps what
   the loop carries: in attention exp2(high - new_high), and new_high is another one only
   where it is well above. A warp whose factors are all 1 leaves the products out, which
   change nothing then.

     before                              after
     mul.f32 d0, d0, f0;  ..             any lane's f0 or f1 is not 1?
     mul.f32 d63, d63, f1;               if so: mul.f32 d0, d0, f0;  ..

   One piece of assembly with the accumulators as inputs and outputs: as a branch of its
   own LLVM and ptxas would be free to copy them.

   Not of all widths: of 128 columns products stand between exponentials, which take
   longer, and the tensor cores are the limit. Old time over new, H200, 2026-11-27,
   4x16x4096x4096: 256 columns 1.21, causal 1.08; 64 columns (4x32) 1.06, of 512 keys
   1.05; 128 columns 0.96, causal 1.01; two sums, of 192 columns 0.95, of 160 causal
   0.96. */
#include "codegen/gen_nv.h"

#include "ir/base/str.h"

enum { FACTORS = 4, FEWEST = 16 }; /* factors of a thread; accumulators of each */
enum { NARROW = 64, WIDE = 256 };  /* columns */

/* Is v what a dot of a loop has added up, in this iteration or the one before? */
static bool
is_sum(const Value *v)
{
    const Op *loop = v->op ? v->op->parent->parent : v->region->parent;
    if (!loop || loop->kind != OP_FOR)
        return false;
    if (!v->op && v->index)
        v = op_operand(loop->regions[0]->last, v->index - 1);
    return value_def(v, OP_WGMMA_WAIT) != NULL;
}

/* Is v `old`, or what a select chose between it and something else? */
static bool
may_keep(const Value *v, const Value *old)
{
    const Op *choice = value_def(v, OP_SELECT);
    for (int depth = 0; choice && depth < 2; depth++) {
        const Value *a = op_operand(choice, 1), *b = op_operand(choice, 2);
        if (a == old || b == old)
            return true;
        choice = value_def(a, OP_SELECT);
        if (!choice)
            choice = value_def(b, OP_SELECT);
    }
    return false;
}

/* Is v an exponential of the difference of what the loop around op carries and its next
   value? */
static bool
is_growth(const Value *v, const Op *op)
{
    while (value_def(v, OP_BROADCAST) || value_def(v, OP_EXPAND_DIMS) ||
           value_def(v, OP_CONVERT_LAYOUT))
        v = op_operand(v->op, 0);
    if (!value_def(v, OP_EXP2) && !value_def(v, OP_EXP))
        return false;
    const Op *sub = value_def(op_operand(v->op, 0), OP_SUBF);
    const Value *old = sub ? op_operand(sub, 0) : NULL;
    return old && !old->op && old->region == op->parent && old->index &&
           may_keep(op_operand(sub, 1), old);
}

/* The number of factor x among those seen, added to them; -1: they are too many. */
static int
factor_of(LLVMValueRef *seen, int *n, LLVMValueRef x)
{
    for (int i = 0; i < *n; i++)
        if (seen[i] == x)
            return i;
    if (*n == FACTORS)
        return -1;
    seen[*n] = x;
    return (*n)++;
}

/* Is it the only such product of its loop, and of a width that gains by it? */
static bool
gains(const Op *op)
{
    const Type *t = op->results[0].type;
    int64_t columns = t->shape[t->rank - 1];
    int sums = 0;
    region_each(op->parent, other)
        for (int i = 0; other->kind == OP_MULF && i < 2; i++)
            sums += is_sum(op_operand(other, i)) && is_growth(op_operand(other, !i), op);
    return sums == 1 && (columns <= NARROW || columns >= WIDE);
}

bool
nv_scale_rows(Gen *g, const Op *op, Regs **in, Regs *out)
{
    LLVMValueRef seen[FACTORS];
    int n = 0, which = is_sum(op_operand(op, 0)) ? 0 : 1;
    if (op->kind != OP_MULF || !is_sum(op_operand(op, which)) ||
        !is_growth(op_operand(op, !which), op) || !gains(op) ||
        LLVMTypeOf(in[0]->v[0]) != g->f32)
        return false;
    int *factor = arena_array(&g->s->tmp, int, out->n);
    for (int r = 0; r < out->n; r++) {
        factor[r] = factor_of(seen, &n, in[!which]->v[r]);
        if (factor[r] < 0)
            return false;
    }
    if (out->n < FEWEST * n)
        return false;
    Buf b;
    buf_init(&b, &g->s->tmp);
    buf_printf(&b, "{ .reg .pred scale, other; setp.neu.f32 scale, $%d, 0f3F800000; ",
               out->n);
    for (int i = 1; i < n; i++)
        buf_printf(&b,
                   "setp.neu.f32 other, $%d, 0f3F800000; or.pred scale, scale, other; ",
                   out->n + i);
    buf_printf(&b, "vote.sync.any.pred scale, scale, -1; @!scale bra.uni same; ");
    for (int r = 0; r < out->n; r++) {
        out->v[r] = in[which]->v[r];
        buf_printf(&b, "mul.f32 $%d, $%d, $%d; ", r, r, out->n + factor[r]);
    }
    buf_printf(&b, "same: }");
    for (int i = 0; i < n; i++)
        seen[i] = LLVMBuildBitCast(g->b, seen[i], g->i32, "");
    nv_through_asm(g, b.s, out->v, out->n, seen, n);
    return true;
}
