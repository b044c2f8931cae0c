/* Canonicalization: constant folding and local rules, applied in program order until
   nothing changes. Operands come before their users, so one walk settles almost
   everything and the second finds nothing; the bound only guards against rules that undo
   one another.

       %a = add %x, %zero : i32        =>   %x
       %b = splat %c5 : tile<8xi32>    =>   const {value=5} : tile<8xi32>
       if %true { A } else { B }       =>   A */
#include "passes/simplify/canon.h"

enum { MAX_ROUNDS = 16 };

static Value *
make_const(Builder *b, const Type *t, const Const *c)
{
    return c->is_float ? build_float(b, t, c->f) : build_int(b, t, c->i);
}

static Value *
fold(Builder *b, Op *op)
{
    Const in[8], out;
    if (op->nresult != 1 || op->nregion || op->noperand > 8 || !op_is(op, T_PURE))
        return NULL;
    const Type *t = op->results[0].type;
    if (type_elem(t)->kind != TY_SCALAR || op->kind == OP_CONST)
        return NULL;
    if (op_is(op, T_SHAPE)) /* a constant tile looks the same however it is moved */
        return op->noperand == 1 && value_const(&op->results[0], &out)
                   ? make_const(b, t, &out)
                   : NULL;
    for (int i = 0; i < op->noperand; i++)
        if (!value_const(op_operand(op, i), &in[i]))
            return NULL;
    return fold_op(op, in, &out) ? make_const(b, t, &out) : NULL;
}

/* Constants go last, so that the rules look in one place only. */
static bool
swap_constant(Op *op)
{
    Const c;
    if (!op_is(op, T_COMMUTES) || !value_const(op_operand(op, 0), &c) ||
        value_const(op_operand(op, 1), &c))
        return false;
    Value *x = op_operand(op, 0), *y = op_operand(op, 1);
    op_set_operand(op, 0, y);
    op_set_operand(op, 1, x);
    return true;
}

Value *
canon_value(Builder *b, Op *op, bool *changed)
{
    *changed = swap_constant(op);
    Value *v = fold(b, op);
    if (!v)
        v = canon_algebra(b, op);
    return v ? v : canon_shape(b, op);
}

static bool
access(Builder *b, Op *op)
{
    Value *gives;
    CanonAccess a = canon_access(b, op, &gives);
    if (a != ACCESS_NONE)
        return a == ACCESS_UNMASKED;
    if (gives)
        value_replace(&op->results[0], gives);
    op_erase(op);
    return true;
}

static bool
visit_op(Op *op)
{
    Builder b = builder_before(op);
    b.loc = op->loc;
    bool changed;
    Value *v = canon_value(&b, op, &changed);
    if (v) {
        if (!v->name)
            v->name = op->results[0].name;
        value_replace(&op->results[0], v);
        op_erase(op);
        return true;
    }
    return canon_control(&b, op) || access(&b, op) || changed;
}

static bool
visit(void *user, Op *op)
{
    (void)user;
    return !op_is(op, T_TERMINATOR) && visit_op(op);
}

bool
pass_canon(Func *f, PassCx *cx)
{
    (void)cx;
    bool changed = false;
    /* Bodies first: an arm that becomes empty lets its if go in the same round. */
    for (int round = 0; round < MAX_ROUNDS && pass_walk(f->body, visit, NULL); round++)
        changed = true;
    return changed;
}
