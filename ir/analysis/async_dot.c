/* Questions about asynchronous dots; see async_dot.h. */
#include "ir/analysis/async_dot.h"

#include "ir/edit.h"

bool
dot_reads_shared(const Op *dot, int i)
{
    Effect e;
    for (int k = 0; k < 2 && opkind_effect(dot->kind, k, &e); k++)
        if (e.operand == i && e.resource == RES_SHARED)
            return op_operand(dot, i)->type->kind == TY_MEM;
    return false;
}

const Type *
dot_tile(const Type *t)
{
    return t->kind == TY_ASYNC ? t->elem : t;
}

bool
dot_of_fp8(const Op *dot)
{
    bool fp8 = true;
    for (int i = DOT_LEFT; i <= DOT_RIGHT; i++) {
        const Type *t = type_elem(op_operand(dot, i)->type);
        fp8 &= type_is_float(t) && type_bits(t) == 8;
    }
    return fp8;
}

Op *
dot_wait(const Op *dot)
{
    Op *wait = value_only_user(&dot->results[0]);
    return wait && op_is_dot_wait(wait) && wait->noperand == 1 &&
                   wait->parent == dot->parent
               ? wait
               : NULL;
}

Op *
dot_full_wait(const Op *dot)
{
    Op *wait = dot_wait(dot);
    return wait && !wait_pending(wait) ? wait : NULL;
}

Op *
wait_dot(const Op *wait)
{
    Op *dot = wait->noperand == 1 ? op_operand(wait, 0)->op : NULL;
    return dot && op_is_async_dot(dot) ? dot : NULL;
}

int64_t
wait_pending(const Op *wait)
{
    return attr_int(&wait->attrs, ATTR_PENDING, 0);
}

Op *
dot_added_to(const Op *dot)
{
    Op *before = op_operand(dot, DOT_ACC)->op;
    if (before && op_is_dot_wait(before))
        before = wait_dot(before);
    return before && op_is_async_dot(before) && before->parent == dot->parent ? before
                                                                              : NULL;
}

Op *
dot_adding_to(const Op *dot)
{
    const Op *wait = dot_full_wait(dot), *from = wait ? wait : dot;
    Op *next = value_only_user(&from->results[0]);
    bool adds = next && op_is_async_dot(next) && next->parent == dot->parent &&
                op_operand(next, DOT_ACC) == &from->results[0];
    return adds ? next : NULL;
}

Value *
dot_sums(const Op *dot)
{
    Op *wait = dot_wait(dot);
    return wait ? &wait->results[0] : dot_adding_to(dot) ? op_result((Op *)dot, 0) : NULL;
}

int
dots_between(const Op *first, const Op *end)
{
    int n = 0;
    for (const Op *op = first; op && op != end; op = op->next)
        n += op_is_async_dot(op);
    return n;
}

int
dots_within(const Region *r)
{
    int n = 0;
    region_each_deep(r, op) n += op_is_async_dot(op);
    return n;
}

static bool
hands_on(const Op *op)
{
    bool shared = op->kind == OP_LOCAL_ALLOC || op->kind == OP_LOCAL_TRANS ||
                  op->kind == OP_LOCAL_SLICE || op->kind == OP_LOCAL_LOAD;
    return op->nresult == 1 &&
           (shared || op->kind == OP_CONVERT_LAYOUT ||
            (op_is(op, T_PURE) && (op_is(op, T_ELEMENTWISE) || op_is(op, T_SHAPE))));
}

static bool
feeds_dot(const Value *v, const Region *block, bool async, int depth)
{
    enum { CHAIN_DEPTH = 16 };
    value_each_use(v, u)
    {
        const Op *op = u->user;
        if ((block && op->parent != block) || depth > CHAIN_DEPTH)
            continue;
        bool ends = op_is(op, T_DOT) || (!async && op->kind == OP_LOCAL_ALLOC);
        if (ends ? !async || op_is_async_dot(op)
                 : hands_on(op) && feeds_dot(&op->results[0], block, async, depth + 1))
            return true;
    }
    return false;
}

bool
value_feeds_dot(const Value *v, const Region *block, bool async)
{
    return feeds_dot(v, block, async, 0);
}
