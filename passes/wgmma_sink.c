/* Products are waited for where their results are used, not where they begin.

       %r = wgmma %k, %q, %zero                %r = wgmma %k, %q, %zero
       %s = wgmma_wait %r {pending=0}          %t = wgmma %v, %o, %zero
       %t = wgmma %v, %o, %zero          =>    %s = wgmma_wait %r {pending=1}
       %d = wgmma_wait %t {pending=0}          %p = exp2 %s
       %p = exp2 %s                            %d = wgmma_wait %t {pending=0}
       %x = mulf %p, %d                        %x = mulf %p, %d

   The tensor cores work on one product while the warps work on another's result. A wait
   goes down within its block as far as nothing reads the result and nothing could touch
   what the product still reads: buffers that are filled on the way are other ones, since
   places are given later (passes/smem.c) and count to the wait. {pending} is the number
   of products begun in between.

   What is loaded from shared memory for work on a result goes down as well: registers are
   short while products are in flight. */
#include "ir/base/util.h"
#include "ir/edit.h"
#include "passes/pass.h"

bool pass_wgmma_sink(Func *f, PassCx *cx);

static bool
uses(const Op *op, const Value *v)
{
    for (int i = 0; i < op->noperand; i++)
        if (op_operand(op, i) == v)
            return true;
    return false;
}

/* Work that a product in flight does not mind. A wait for a later product would wait for
   this one, too. */
static bool
may_pass(const Op *op)
{
    if (op->nregion || op_is(op, T_TERMINATOR))
        return false;
    switch ((int)op->kind) {
    case OP_WGMMA:
    case OP_LOCAL_ALLOC:
    case OP_LOCAL_LOAD:
    case OP_FENCE_ASYNC:
    case OP_BAR_EXPECT:
    case OP_BAR_WAIT:
    case OP_TMA_LOAD: /* into another stage than those that are read */
    case OP_LOAD:
    case OP_STORE: return true;
    case OP_ATOMIC_RMW: return !op->results[0].uses;
    default: return op_is_pure(op);
    }
}

/* How far down `op` can go: to the first use of its result at most. */
static Op *
place_for(const Op *op)
{
    bool load = op->kind == OP_LOCAL_LOAD;
    Op *at = op->next;
    while (at && (may_pass(at) || (load && at->kind == OP_WGMMA_WAIT)) &&
           !uses(at, &op->results[0]))
        at = at->next;
    return at;
}

/* Products begun after that of `wait`, before it. */
static int
count_between(const Op *product, const Op *wait)
{
    int n = 0;
    for (const Op *op = product->next; op && op != wait; op = op->next)
        n += op->kind == OP_WGMMA;
    return n;
}

static bool
sink(Session *s, Op *wait)
{
    Op *product = wait->noperand == 1 ? value_def(op_operand(wait, 0), OP_WGMMA) : NULL;
    if (!product || product->parent != wait->parent ||
        attr_int(&wait->attrs, ATTR_PENDING, 0))
        return false;
    Op *at = place_for(wait);
    if (!at || at == wait->next)
        return false;
    op_move_before(wait, at);
    attr_set_int(&s->mod, &wait->attrs, ATTR_PENDING, count_between(product, wait));
    return true;
}

static bool
sink_load(Op *load)
{
    Op *at = place_for(load);
    bool product = false;
    for (const Op *op = load; at && op != at; op = op->next)
        product |= op->kind == OP_WGMMA;
    if (product)
        op_move_before(load, at);
    return product;
}

/* From the last to the first, so that a wait that goes further down meets only those
   that have found their places. */
static bool
visit(Session *s, Region *r, int depth)
{
    bool changed = false;
    for (Op *op = r->last, *prev; op && depth <= MAX_REGION_DEPTH; op = prev) {
        prev = op->prev;
        for (int i = 0; i < op->nregion; i++)
            changed |= visit(s, op->regions[i], depth + 1);
        if (op->kind == OP_WGMMA_WAIT)
            changed |= sink(s, op);
        else if (op->kind == OP_LOCAL_LOAD)
            changed |= sink_load(op);
    }
    return changed;
}

bool
pass_wgmma_sink(Func *f, PassCx *cx)
{
    return visit(cx->s, f->body, 0);
}
