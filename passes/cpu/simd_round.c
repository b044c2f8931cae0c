/* The address that a tile has in a later iteration of the loop around it.

   What memory is asked for ahead should arrive before it is wanted and not long before:
   for a tile of short rows that is what one of the next iterations loads. Scalars of the
   loop's body are computed once more from what its arguments will be, and stand for the
   old ones while the address is evaluated.

       for %k = 0, %K, 64 (%p = %b) {           for ..  {
         load %p + %rows * %s + %cols      =>     %q = %p + %step
         yield %p + %step }                       vload ..; vfetch %q + .. } */
#include "passes/cpu/simd.h"

#include "ir/edit.h"

enum { MOST_STEPS = 64, MOST_SCALARS = 8, COSTLY = 8 };

typedef struct Round {
    Cx *cx;
    Op *loop;
    int left; /* steps */
    int64_t ahead; /* iterations */
    bool moves; /* something differs from this iteration */
    Value *v[MOST_SCALARS], *was[MOST_SCALARS];
    int n;
} Round;

static bool
is_inside(const Value *v, const Region *of)
{
    const Region *r = v->op ? v->op->parent : v->region;
    while (r && r != of)
        r = r->parent ? r->parent->parent : NULL;
    return r;
}

static Value *
same(const Round *r, const Value *v)
{
    return map_get(&r->cx->n->map, v);
}

static Value *
advanced(Round *r, OpKind k, Value *now, Value *by)
{
    Builder *b = &r->cx->b;
    if (r->ahead > 1)
        by = build_binary(b, OP_MUL, by, build_int(b, by->type, r->ahead));
    return build_binary(b, k, now, by);
}

/* What the loop hands on as its i-th argument: this one and something of outside. */
static Value *
next_argument(Round *r, const Value *arg, int i)
{
    const Region *body = r->loop->regions[0];
    Value *now = same(r, arg);
    if (!now)
        return NULL;
    r->moves = true;
    if (i == 0) {
        Value *step = same(r, op_operand(r->loop, 2));
        return step ? advanced(r, OP_ADD, now, step) : NULL;
    }
    Op *add = op_operand(body->last, i - 1)->op;
    if (!add || (add->kind != OP_ADD && add->kind != OP_ADDPTR) ||
        op_operand(add, 0) != arg || is_inside(op_operand(add, 1), body))
        return NULL;
    Value *by = same(r, op_operand(add, 1));
    return by ? advanced(r, add->kind, now, by) : NULL;
}

/* A scalar in the next iteration; NULL: unknown, or too much work. */
static Value *
next_scalar(Round *r, Value *v)
{
    const Region *body = r->loop->regions[0];
    Op *op = v->op;
    if (--r->left < 0)
        return NULL;
    if (!is_inside(v, body))
        return same(r, v);
    for (int i = 0; i < body->narg; i++)
        if (body->args[i] == v)
            return next_argument(r, v, i);
    if (!op || !op_is(op, T_PURE) || op->nregion || op->nresult != 1 ||
        op->noperand > SIMD_MAX_IN || op_cost(op) > COSTLY)
        return NULL;
    Value *in[SIMD_MAX_IN], *was[SIMD_MAX_IN];
    for (int i = 0; i < op->noperand; i++)
        if (simd_tile(op_operand(op, i)) || !(in[i] = next_scalar(r, op_operand(op, i))))
            return NULL;
    Map *map = &r->cx->n->map;
    Value *old = map_get(map, v);
    for (int i = 0; i < op->noperand; i++) {
        was[i] = map_get(map, op_operand(op, i));
        map_set(map, op_operand(op, i), in[i]);
    }
    Op *copy = op_clone(&r->cx->b, op, map);
    for (int i = op->noperand - 1; i >= 0; i--)
        map_set(map, op_operand(op, i), was[i]);
    map_set(map, v, old);
    return op_result(copy, 0);
}

/* Lets the scalars that tile v is computed from be those of the next iteration. */
static bool
substitute(Round *r, Value *v)
{
    Op *op = v->op;
    if (--r->left < 0)
        return false;
    if (!simd_tile(v)) {
        if (!is_inside(v, r->loop->regions[0]))
            return same(r, v) != NULL;
        for (int i = 0; i < r->n; i++)
            if (r->v[i] == v)
                return true;
        Value *next = r->n < MOST_SCALARS ? next_scalar(r, v) : NULL;
        if (!next)
            return false;
        r->v[r->n] = v;
        r->was[r->n++] = map_get(&r->cx->n->map, v);
        map_set(&r->cx->n->map, v, next);
        return true;
    }
    if (!op || plan_get(r->cx->n, v)->slot || !op_is(op, T_PURE) || op->nregion)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!substitute(r, op_operand(op, i)))
            return false;
    return true;
}

Value *
simd_next_round(Cx *cx, Value *to, const Op *load, const Ix *ix, int64_t ahead)
{
    Op *loop = load->parent->parent;
    Round r = {.cx = cx, .loop = loop, .left = MOST_STEPS, .ahead = ahead};
    if (!loop || loop->kind != OP_FOR)
        return NULL;
    Ev p = {.kind = EV_VEC};
    if (substitute(&r, to) && r.moves)
        p = simd_eval_trusting(cx, to, ix, TRUST_HARMLESS);
    while (r.n--)
        map_set(&cx->n->map, r.v[r.n], r.was[r.n]);
    return p.kind == EV_AFF && p.stride == 1 ? p.v : NULL;
}
