/* Accumulators that stay in flight over the end of an iteration.

       %s = for .. (%acc = %zero) {                %o = wgmma_open %zero : async<..>
         %r = wgmma %a, %b, %acc                   %t = for .. (%acc = %o) : async<..> {
         %y = wgmma_wait %r {pending=0}      =>      %r = wgmma %a, %b, %acc
         ..                                          wgmma_wait {pending=1}
         yield %y                                    ..
       } {pending=1}                                 yield %r
                                                   }
                                                   %s = wgmma_wait %t {pending=0}

   The tensor cores go on while the warps meet and start copies. The pipeline schedule has
   asked for it, {pending=dots in flight}, and given such a loop a buffer more; the wait
   that is left says that the dots of the iteration before have read their buffers. */
#include "ir/base/util.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/pass.h"

bool pass_wgmma_defer(Func *f, PassCx *cx);

static Op *
wait_before(Builder *b, Value **v, int n, int64_t pending)
{
    AttrList attrs = {0};
    attr_set_int(&b->s->mod, &attrs, ATTR_PENDING, pending);
    return build_op(b, OP_WGMMA_WAIT, v, n, &attrs, NULL, n);
}

/* Carried value i is the accumulator of dot g. */
static void
carry_async(Op *loop, int i, Op *g)
{
    Region *body = loop->regions[0];
    Op *wait = g->results[0].uses->user;
    Builder b = builder_before(loop);
    b.loc = g->loc;
    Value *init = op_operand(loop, i + 3);
    Value *open = &build_op(&b, OP_WGMMA_OPEN, &init, 1, NULL, NULL, 1)->results[0];
    op_set_operand(loop, i + 3, open);
    value_set_type(body->args[i + 1], open->type);
    value_replace(&wait->results[0], &g->results[0]);
    op_erase(wait);
    Value *r = op_result(loop, i);
    value_set_type(r, open->type);
    b = builder_after(loop);
    b.loc = g->loc;
    Op *done = wait_before(&b, &r, 1, 0);
    value_replace(r, &done->results[0]);
    op_set_operand(done, 0, r);
    done->results[0].name = r->name;
}

static void
defer(Op *loop)
{
    Region *body = loop->regions[0];
    Op *last = NULL;
    for (Op *op = body->first; op; op = op->next) { /* waits behind op go */
        if (op->kind != OP_WGMMA)
            continue;
        carry_async(loop, op_operand(op, 2)->index - 1, op);
        last = op;
    }
    if (!last)
        return;
    Builder b = builder_after(last);
    b.loc = last->loc;
    wait_before(&b, NULL, 0, attr_int(&loop->attrs, ATTR_PENDING, 1));
}

static bool
visit(void *user, Op *op)
{
    (void)user;
    if (op->kind != OP_FOR || !attr_has(&op->attrs, ATTR_PENDING))
        return false;
    defer(op);
    attr_drop(&op->attrs, ATTR_PENDING);
    return true;
}

bool
pass_wgmma_defer(Func *f, PassCx *cx)
{
    (void)cx;
    return pass_walk(f->body, visit, NULL);
}
