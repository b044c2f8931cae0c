/* A loop that carries a tile only to add one number to all its elements carries a scalar
   instead. Users get the tile from before the loop plus that scalar. The loop carries one
   register instead of a tile, and analyses see how far the tile has moved.

       for .. (%p = %p0) {                        for .. (%o = 0) {
         %x = load %p                               %p = addptr %p0, splat %o
         %p1 = addptr %p, splat %s        =>        %x = load %p
         yield %p1                                  %o1 = add %o, sext %s
       }                                            yield %o1

   For pointers the scalar counts elements in 64 bits, and each addend is sign-extended as
   `addptr` does; integers wrap as before. A tile to which different numbers are added per
   element stays as it is. */
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/pass.h"

enum { MAX_STEPS = 8, MAX_DEPTH = 16 };

/* The additions that lead from the carried value to its next one. */
typedef struct Chain {
    Op *op[MAX_STEPS]; /* last first */
    int n;
} Chain;

/* Has the tile the same value in all elements? */
static bool
is_uniform(const Value *v, int depth)
{
    if (v->type->kind != TY_TILE)
        return true;
    if (!v->op || depth > MAX_DEPTH)
        return false;
    switch ((int)v->op->kind) {
    case OP_CONST:
    case OP_SPLAT: return true;
    case OP_BROADCAST:
    case OP_EXPAND_DIMS: return is_uniform(op_operand(v->op, 0), depth + 1);
    default: return false;
    }
}

/* The value of all elements of uniform tile v, as a scalar. */
static Value *
uniform(Builder *b, Value *v)
{
    while (v->type->kind == TY_TILE) {
        if (v->op->kind == OP_CONST)
            return build_int(b, type_elem(v->type),
                             attr_int(&v->op->attrs, ATTR_VALUE, 0));
        v = op_operand(v->op, 0);
    }
    return v;
}

/* Fills *c with the additions from `carried` to v; false: v is computed otherwise. */
static bool
find_chain(const Region *body, Value *v, const Value *carried, Chain *c)
{
    c->n = 0;
    while (v != carried) {
        Op *op = v->op;
        if (!op || op->parent != body || c->n == MAX_STEPS)
            return false;
        if (op->kind != OP_ADDPTR && op->kind != OP_ADD && op->kind != OP_SUB)
            return false;
        int by = op->kind == OP_ADD && is_uniform(op_operand(op, 0), 0) ? 0 : 1;
        if (!is_uniform(op_operand(op, by), 0))
            return false;
        c->op[c->n++] = op;
        v = op_operand(op, !by);
    }
    return c->n > 0;
}

/* The carried scalar `offset` after the additions of one iteration. */
static Value *
advance(Builder *b, const Chain *c, Value *offset)
{
    for (int i = c->n - 1; i >= 0; i--) {
        Op *op = c->op[i];
        b->loc = op->loc;
        int by = op->kind == OP_ADD && is_uniform(op_operand(op, 0), 0) ? 0 : 1;
        Value *s = uniform(b, op_operand(op, by));
        if (type_bits(s->type) < type_bits(offset->type))
            s = build_cast(b, OP_SEXT, s, offset->type);
        offset = build_binary(b, op->kind == OP_SUB ? OP_SUB : OP_ADD, offset, s);
    }
    return offset;
}

/* v becomes a scalar of type t; users of the tile get init + v. */
static void
as_scalar(Session *s, Builder *b, Value *v, const Type *t, Value *init)
{
    Vec(Use *) uses = {0};
    const Type *tile = v->type;
    value_each_use(v, u) vec_push(&s->tmp, &uses, u);
    value_set_type(v, t);
    if (!uses.n)
        return;
    OpKind add = type_is_ptr(type_elem(tile)) ? OP_ADDPTR : OP_ADD;
    Value *now = build_binary(b, add, init, build_splat(b, v, tile));
    now->name = v->name;
    for (int i = 0; i < uses.n; i++)
        op_set_operand(uses.at[i]->user, uses.at[i]->index, now);
}

static bool
rewrite(Session *s, Op *loop, int i)
{
    Region *body = loop->regions[0];
    Value *arg = body->args[i + 1], *init = op_operand(loop, 3 + i);
    Chain c;
    if (arg->type->kind != TY_TILE ||
        !find_chain(body, op_operand(body->last, i), arg, &c))
        return false;
    const Type *elem = type_elem(arg->type);
    const Type *t = type_is_ptr(elem) ? type_scalar(s->types, SK_I64) : elem;
    Builder b = builder_before(loop);
    b.loc = loop->loc;
    op_set_operand(loop, 3 + i, build_int(&b, t, 0));
    b = builder_before(body->first);
    b.loc = loop->loc;
    as_scalar(s, &b, arg, t, init);
    b = builder_before(body->last);
    op_set_operand(body->last, i, advance(&b, &c, arg));
    b = builder_after(loop);
    b.loc = loop->loc;
    as_scalar(s, &b, op_result(loop, i), t, init);
    return true;
}

/* Is it worth while for carried value i? Always on a CPU. On a GPU registers are many,
   and adding to a tile of addresses costs less than computing it from a scalar (matmul
   128x128x32 with four warps on an H200, 2026-11-21: 646 TFLOP/s, with this pass 585).
   The exception is short vectors outside of dot loops: a carried tile has one layout, but
   one computed from a scalar can be loaded again in another
   (passes/layout/layout_remat.c). */
static bool
pays(const PassCx *cx, const Op *loop, int i)
{
    enum { OF_THREAD = 2, WARP = 32 };
    const Type *t = loop->results[i].type;
    int64_t few = OF_THREAD * WARP * (int64_t)loop->parent->func->num_warps;
    return !cx->target.gpu ||
           (t->kind == TY_TILE && t->rank == 1 && type_numel(t) <= few &&
            !region_has(loop->regions[0], OP_DOT));
}

static bool
visit(void *user, Op *op)
{
    PassCx *cx = user;
    bool changed = false;
    for (int i = 0; op->kind == OP_FOR && i < op->nresult; i++)
        changed |= pays(cx, op, i) && rewrite(cx->s, op, i);
    return changed;
}

bool
pass_scalarize_induction(Func *f, PassCx *cx)
{
    return pass_walk(f->body, visit, cx);
}
