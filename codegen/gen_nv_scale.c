/* Accumulators of wgmma times a factor of each row that is 1 where a select keeps what
   the loop carries: in attention exp2(high - new_high), and new_high is another one only
   where it is well above. A warp whose factors are all 1 leaves the products out, which
   change nothing then.

     before                              after
     mul.f32 d0, d0, f0;  ..             any lane's f0 or f1 is not 1?
     mul.f32 d63, d63, f1;               if so: mul.f32 d0, d0, f0;  ..

   One piece of assembly with the accumulators as inputs and outputs: as a branch of its
   own LLVM and ptxas would be free to copy them.

   A plain maximum with what is carried keeps it, too, but a warp has 16 rows, and of the
   j-th tile of keys the largest score of one of them is new with a probability of about
   16 / j. Old time over new where such factors were voted on, 35 kernels of others, sums
   of all widths: 0.91 to 1.07, geometric mean 0.98 (tutorial 06 of 64 columns by eight
   warps 1.04, by four 0.91; tests/loops 0.91 to 0.98).

   Not of all widths: of 128 columns products stand between exponentials, which take
   longer, and the tensor cores are the limit. Old time over new, H200, 2026-11-27,
   4x16x4096x4096: 256 columns 1.21, causal 1.08; 64 columns (4x32) 1.06, of 512 keys
   1.05; 128 columns 0.96, causal 1.01; two sums, of 192 columns 0.95, of 160 causal
   0.96. */
#include "codegen/gen_nv.h"

#include "ir/base/str.h"

enum { FACTORS = 4, FEWEST = 16 }; /* factors of a thread; accumulators of each */
enum { NARROW = 64, WIDE = 256 };  /* columns */
enum { DEPTH = 3 };                /* operations between a factor and what is carried */

/* The body of the innermost loop around op, or of the function. */
static const Region *
body_of(const Op *op)
{
    const Region *r = op->parent;
    while (r->parent && r->parent->kind == OP_IF)
        r = r->parent->parent;
    return r;
}

/* Is v what a dot has added up, on some way through branches? */
static bool
is_dot(const Value *v, int depth)
{
    const Op *branch = value_def(v, OP_IF);
    if (!branch || depth == 0)
        return value_def(v, OP_WGMMA_WAIT) != NULL;
    return is_dot(op_operand(branch->regions[0]->last, v->index), depth - 1) ||
           is_dot(op_operand(branch->regions[1]->last, v->index), depth - 1);
}

/* Is v what a dot of a loop has added up, in this iteration or the one before? */
static bool
is_sum(const Value *v)
{
    const Op *loop = v->op ? body_of(v->op)->parent : v->region->parent;
    if (!loop || loop->kind != OP_FOR)
        return false;
    if (!v->op && v->index)
        v = op_operand(loop->regions[0]->last, v->index - 1);
    return is_dot(v, DEPTH);
}

/* v without what only places it: a factor of each row is one of each element. */
static const Value *
bare(const Value *v)
{
    while (value_def(v, OP_BROADCAST) || value_def(v, OP_EXPAND_DIMS) ||
           value_def(v, OP_CONVERT_LAYOUT))
        v = op_operand(v->op, 0);
    return v;
}

/* Is v `old`, or what selects chose between it and something else? */
static bool
may_keep(const Value *v, const Value *old, int depth)
{
    v = bare(v);
    if (v == old)
        return true;
    const Op *op = v->op;
    if (!op || depth == 0)
        return false;
    return op->kind == OP_SELECT && (may_keep(op_operand(op, 1), old, depth - 1) ||
                                     may_keep(op_operand(op, 2), old, depth - 1));
}

/* Are a and b the same where a select keeps what the loop around them carries: that value
   and the select, or equal functions of them? */
static bool
agree(const Value *a, const Value *b, const Region *body, int depth)
{
    a = bare(a);
    b = bare(b);
    if (a == b || (!a->op && a->region == body && a->index && may_keep(b, a, DEPTH)))
        return true;
    if (!a->op || !b->op || depth == 0 || a->op->kind != b->op->kind ||
        !op_is(a->op, T_ELEMENTWISE) || a->op->noperand != b->op->noperand)
        return false;
    for (int i = 0; i < a->op->noperand; i++)
        if (!agree(op_operand(a->op, i), op_operand(b->op, i), body, depth - 1))
            return false;
    return true;
}

/* Is v 0 where the loop keeps what it carries? */
static bool
is_zero(const Value *v, const Region *body, int depth)
{
    v = bare(v);
    const Op *op = v->op;
    if (!op || depth == 0)
        return false;
    switch (op->kind) {
    case OP_SUBF: return agree(op_operand(op, 0), op_operand(op, 1), body, DEPTH);
    case OP_MULF:
        return is_zero(op_operand(op, 0), body, depth - 1) ||
               is_zero(op_operand(op, 1), body, depth - 1);
    case OP_SELECT:
        return is_zero(op_operand(op, 1), body, depth - 1) ||
               is_zero(op_operand(op, 2), body, depth - 1);
    default: return false;
    }
}

/* Is v an exponential that is 1 where the loop around op keeps what it carries? */
static bool
is_growth(const Value *v, const Op *op)
{
    v = bare(v);
    for (int depth = 0; depth < DEPTH && value_def(v, OP_SELECT); depth++) {
        const Value *a = bare(op_operand(v->op, 1));
        v = value_def(a, OP_EXP2) || value_def(a, OP_EXP) ? a
                                                          : bare(op_operand(v->op, 2));
    }
    return (value_def(v, OP_EXP2) || value_def(v, OP_EXP)) &&
           is_zero(op_operand(v->op, 0), body_of(op), DEPTH);
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
