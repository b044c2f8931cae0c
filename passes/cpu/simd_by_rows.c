/* A loop that adds up rows does so row by row.

   Each iteration reduces a part of every row, which takes many dependent steps for few
   numbers, and goes from row to row, where processors prefetch badly. If the loop does
   nothing else, the loop over the rows can be the outer one: a row is read from its
   beginning to its end, and reduced once.

       for %j {                                  for %r {
         for %r {                                  %a = for %j (%x = 0) {
           %a = for .. { .. } (strips)     =>        for .. { .. } (strips, from %x) }
           %s[%r] = reduce %a }                    %s[%r] = reduce %a }
         %t += %s }                              %t += %s

   Numbers are added in another order than in the source, as in simd_sums.c. */
#include "passes/cpu/simd.h"

#include "ir/analysis/reduction.h"
#include "ir/edit.h"

/* Is carried value i what a reduction along rows is added to, for no other use? */
static bool
is_sum(Simd *n, const Op *loop, int i)
{
    const Region *body = loop->regions[0];
    Value *arg = body->args[i + 1], *end = op_operand(body->last, i);
    const Op *step = end->op;
    if (!step || step->parent != body ||
        (step->kind != OP_ADDF && step->kind != OP_ADD) ||
        value_only_user(end) != body->last || value_only_user(arg) != step ||
        plan_get(n, end)->slot)
        return false;
    Value *x = op_operand(step, op_operand(step, 0) == arg);
    const Op *reduce = value_def(x, OP_REDUCE);
    if (!reduce || reduce->parent != body || reduce->noperand != 1 ||
        value_only_user(x) != step)
        return false;
    const Op *by = reduction_operation(reduce);
    return by && by->kind == step->kind;
}

/* Is the op, of the loop's body, done for a strip or as a scalar, and can it be repeated
   for each row? */
static bool
repeats(Simd *n, Op *op)
{
    bool loads = op->kind == OP_LOAD && !op_acquires(op) &&
                 !attr_has(&op->attrs, ATTR_VOLATILE);
    if (op->kind == OP_REDUCE)
        return true;
    if (op->nregion || (!loads && !op_is(op, T_PURE)))
        return false;
    for (int i = 0; i < op->nresult; i++)
        if (simd_tile(op_result(op, i)) && plan_get(n, op_result(op, i))->slot)
            return false;
    return !simd_touches_tiles(op) || simd_tile(op_result(op, 0));
}

/* The only nest of the body, which reduces rows; NULL: there is another one, or none. */
static Group *
only_nest(Simd *n, const Region *body)
{
    Group *g = NULL;
    for (Op *op = body->first; op != body->last; op = op->next) {
        const OpPlan *p = op_plan(n, op);
        if (!repeats(n, op) || p->groups.n > 1 || (g && p->groups.n))
            return NULL;
        g = p->groups.n ? p->groups.at[0] : g;
    }
    for (int i = 0; g && i < g->items.n; i++)
        if (g->items.at[i].kind != ROOT_REDUCE && g->items.at[i].kind != ROOT_LOAD)
            return NULL;
    return g;
}

Group *
simd_by_rows(Simd *n, Op *loop)
{
    Group *g = n->f->check ? NULL : only_nest(n, loop->regions[0]);
    if (!g || g->shape->rank != 2 || g->axis != 1 || simd_lane_dim(n, g) != 1 ||
        !loop->nresult)
        return NULL;
    for (int i = 0; i < loop->nresult; i++) {
        const Value *v = op_result(loop, i);
        if (simd_tile(v) ? !is_sum(n, loop, i) : v->uses != NULL)
            return NULL;
    }
    return g;
}

Op *
simd_around(Simd *n, Builder *b, Op *old, Value **accs, int count, Builder *in)
{
    Region *body = old->regions[0];
    Value **inits = arena_array(n->tmp, Value *, old->noperand + count);
    int k = 0;
    for (int i = 3; i < old->noperand; i++)
        if (!simd_tile(op_operand(old, i)))
            inits[k++] = map_get(&n->map, op_operand(old, i));
    for (int i = 0; i < count; i++)
        inits[k + i] = accs[i];
    Value *bounds[3];
    for (int i = 0; i < 3; i++)
        bounds[i] = map_get(&n->map, op_operand(old, i));
    b->loc = old->loc;
    Op *loop = build_for(b, bounds[0], bounds[1], bounds[2], inits, k + count);
    Region *now = loop->regions[0];
    now->args[0]->name = body->args[0]->name;
    map_set(&n->map, body->args[0], now->args[0]);
    *in = builder_at_end(n->f, now);
    k = 1;
    for (int i = 1; i < body->narg; i++)
        if (!simd_tile(body->args[i]))
            map_set(&n->map, body->args[i], now->args[k++]);
    for (int i = 0; i < count; i++)
        accs[i] = now->args[k + i];
    for (Op *op = body->first; op != body->last; op = op->next)
        if (!simd_touches_tiles(op)) {
            in->loc = op->loc;
            op_clone(in, op, &n->map);
        }
    return loop;
}

void
simd_around_end(Simd *n, Builder *in, Op *old, Op *loop, Value **accs, int count)
{
    const Op *end = old->regions[0]->last;
    Value **out = arena_array(n->tmp, Value *, old->noperand + count);
    int k = 0;
    for (int i = 0; i < end->noperand; i++)
        if (!simd_tile(op_operand(end, i)))
            out[k++] = map_get(&n->map, op_operand(end, i));
    for (int i = 0; i < count; i++) {
        out[k + i] = accs[i];
        accs[i] = op_result(loop, k + i);
    }
    build_yield(in, out, k + count);
}
