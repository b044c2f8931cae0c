/* What follows from a mask of one known value: the conjunction with it, the tile that it
   is spread to, the access or choice that it controls. */
#include "passes/masks.h"

#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"

typedef Vec(Op *) OpVec;

typedef struct Spread {
    Session *s;
    OpVec todo; /* ops that use a mask which is a constant now */
} Spread;

static void
take(Spread *w, Value *old, Value *by)
{
    value_each_use(old, u) vec_push(&w->s->tmp, &w->todo, u->user);
    if (!by->name)
        by->name = old->name;
    value_replace(old, by);
}

static Value *
constant_like(Op *op, Const c)
{
    Builder b = builder_before(op);
    b.loc = op->loc;
    return build_int(&b, op->results[0].type, c.i);
}

/* The operand of a conjunction or disjunction that remains, or the constant it becomes.
 */
static Value *
join(const Op *op)
{
    for (int i = 0; i < 2; i++) {
        Const c;
        if (!value_const(op_operand(op, i), &c))
            continue;
        bool neutral = (c.i != 0) == (op->kind == OP_AND);
        return op_operand(op, neutral ? !i : i);
    }
    return NULL;
}

static Value *
zero_like(Op *load)
{
    const Type *t = load->results[0].type;
    Builder b = builder_before(load);
    b.loc = load->loc;
    if (type_is_ptr(t) || attr_has(&load->attrs, ATTR_VOLATILE))
        return NULL;
    if (load->noperand > 2)
        return op_operand(load, 2);
    return type_is_float(t) ? build_float(&b, t, 0) : build_int(&b, t, 0);
}

/* The mask of an access, an operand from the first one on that may be left out. */
static void
access(Spread *w, Op *op, int mask)
{
    Const c;
    if (op->noperand <= mask || !value_const(op_operand(op, mask), &c))
        return;
    if (c.i) {
        while (op->noperand > mask)
            op_drop_operand(op, op->noperand - 1);
    } else if (op->kind == OP_STORE) {
        for (int i = 0; i < w->todo.n; i++) /* it may stand there twice */
            if (w->todo.at[i] == op)
                w->todo.at[i] = NULL;
        op_erase(op);
    } else if (op->kind == OP_LOAD) {
        Value *none = zero_like(op);
        if (none)
            take(w, &op->results[0], none);
    }
}

static void
simplify(Spread *w, Op *op)
{
    Const c;
    Value *v = NULL;
    switch ((int)op->kind) {
    case OP_AND:
    case OP_OR: v = join(op); break;
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_RESHAPE:
    case OP_TRANS:
    case OP_CONVERT_LAYOUT:
        if (value_const(op_operand(op, 0), &c))
            v = constant_like(op, c);
        break;
    case OP_SELECT:
        if (value_const(op_operand(op, 0), &c))
            v = op_operand(op, c.i ? 1 : 2);
        break;
    case OP_LOAD: access(w, op, 1); return;
    case OP_STORE:
    case OP_ATOMIC_RMW: access(w, op, 2); return;
    default: return;
    }
    if (v)
        take(w, &op->results[0], v);
}

void
mask_is(Session *s, Op *cmp, bool holds)
{
    Spread w = {.s = s};
    Builder b = builder_before(cmp);
    b.loc = cmp->loc;
    take(&w, &cmp->results[0], build_int(&b, cmp->results[0].type, holds));
    for (int i = 0; i < w.todo.n; i++)
        if (w.todo.at[i])
            simplify(&w, w.todo.at[i]);
}
