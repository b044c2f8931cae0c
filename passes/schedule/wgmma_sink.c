/* Dots are waited for where their results are used, not where they begin.

       %r = wgmma %k, %q, %zero                %r = wgmma %k, %q, %zero
       %s = wgmma_wait %r {pending=0}          %t = wgmma %v, %o, %zero
       %t = wgmma %v, %o, %zero          =>    %s = wgmma_wait %r {pending=1}
       %d = wgmma_wait %t {pending=0}          %p = exp2 %s
       %p = exp2 %s                            %d = wgmma_wait %t {pending=0}
       %x = mulf %p, %d                        %x = mulf %p, %d

   The tensor cores work on one dot while the warps work on another's result. A wait
   goes down within its block as far as nothing reads the result and nothing could touch
   what the dot still reads: buffers that are filled on the way are other ones, since
   places are given later (passes/finish/alloc_shared.c) and count to the wait. {pending}
   is the number of dots begun in between.

   A accumulator that an iteration ends with stays in flight over its end, where the next
   one waits for it before anything is written that it reads.

   What is loaded from shared memory for work on a result goes down as well: registers are
   short while dots are in flight. */
#include "ir/analysis/shared.h"
#include "ir/base/util.h"
#include "ir/build.h"
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

/* Work that a dot in flight does not mind. A wait for a later dot would wait for
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

/* Dots begun after that of `wait`, before it. */
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

static const Op *
buffer_of(const Value *v)
{
    const Op *op = v->op;
    while (op && (op->kind == OP_LOCAL_TRANS || op->kind == OP_LOCAL_INDEX ||
                  op->kind == OP_LOCAL_SLICE))
        op = op_operand(op, 0)->op;
    return op && op->kind == OP_LOCAL_ALLOC ? op : NULL;
}

static bool
reads(const Op *product, const Op *alloc)
{
    return buffer_of(op_operand(product, 0)) == alloc ||
           buffer_of(op_operand(product, 1)) == alloc;
}

/* Does the body wait for what was begun before it, ahead of all that fills buffers? Other
   warps fill them, too: all have waited where threads leave a tile behind the wait, and a
   dot reads it. */
static bool
waits_early(const Region *body)
{
    const Op *left = NULL;
    int n = 0;
    bool waited = false, met = false;
    for (const Op *op = body->first; op; op = op->next) {
        bool leaves = op->kind == OP_LOCAL_ALLOC && op->noperand;
        if (op->nregion || op->kind == OP_LOCAL_STORE || op->kind == OP_ASYNC_COPY ||
            (op->kind == OP_TMA_LOAD && !met) || (leaves && !waited))
            return false;
        if (op->kind == OP_WGMMA_WAIT)
            waited |= attr_int(&op->attrs, ATTR_PENDING, 0) <= n;
        if (leaves)
            left = op;
        if (op->kind == OP_WGMMA) {
            met |= left && reads(op, left);
            n++;
        }
    }
    return waited;
}

/* A wait for what was begun before the body, in front of the first tile that threads
   leave, if a dot that the body has begun goes on meanwhile. */
static bool
wait_early(Session *s, Region *body)
{
    int n = 0;
    Op *op = body->first;
    while (op && (op->kind != OP_LOCAL_ALLOC || !op->noperand)) {
        n += op->kind == OP_WGMMA;
        op = op->next;
    }
    if (!op || !n)
        return false;
    AttrList attrs = {0};
    Builder b = builder_before(op);
    b.loc = op->loc;
    attr_set_int(&s->mod, &attrs, ATTR_PENDING, n);
    Op *wait = build_op(&b, OP_WGMMA_WAIT, NULL, 0, &attrs, NULL, 0);
    if (waits_early(body))
        return true;
    op_erase(wait);
    return false;
}

/* Does the dot read only what stays where it is? */
static bool
reads_lasting(const Op *g)
{
    for (int i = 0; i < 2; i++) {
        const Op *alloc = buffer_of(op_operand(g, i));
        bool shared = type_is_shared(op_operand(g, i)->type);
        if (shared && (!alloc || alloc->parent == g->parent))
            return false;
    }
    return true;
}

/* Are the left operand's registers written behind a wait of the iteration for what was
   begun before it? They are where it is made; where the dot is, if that is not in the
   iteration. `own`: the wait that is to go. */
static bool
writes_late(const Op *g, const Op *own)
{
    const Value *a = op_operand(g, 0);
    int n = 0;
    if (type_is_shared(a->type))
        return true;
    while (a->op && a->op->kind == OP_CONVERT_LAYOUT && a->op->parent == g->parent)
        a = op_operand(a->op, 0);
    if (!a->op && a->region == g->parent)
        return false; /* at the end of the iteration before */
    const Op *made = a->op && a->op->parent == g->parent ? a->op : g;
    for (const Op *op = g->parent->first; op != made; op = op->next) {
        if (op != own && op->kind == OP_WGMMA_WAIT &&
            attr_int(&op->attrs, ATTR_PENDING, 0) <= n)
            return true;
        n += op->kind == OP_WGMMA;
    }
    return false;
}

/* A accumulator that the iteration ends with stays in flight. */
static bool
carry(Op *wait)
{
    const Value *v = &wait->results[0];
    Op *yield = wait->next, *loop = wait->parent->parent;
    Op *g = wait->noperand == 1 ? value_def(op_operand(wait, 0), OP_WGMMA) : NULL;
    if (!g || !yield || yield->kind != OP_YIELD || !loop || loop->kind != OP_FOR ||
        !v->uses || v->uses->next || v->uses->user != yield || !reads_lasting(g))
        return false;
    int i = v->uses->index;
    Value *arg = loop->regions[0]->args[i + 1], *acc = op_operand(g, 2);
    Builder b = builder_before(loop);
    if (acc != arg || !arg->uses || arg->uses->next || !writes_late(g, wait) ||
        !(waits_early(wait->parent) || wait_early(b.s, wait->parent)))
        return false;
    b.loc = g->loc;
    Value *init = op_operand(loop, i + 3);
    Value *open = &build_op(&b, OP_WGMMA_OPEN, &init, 1, NULL, NULL, 1)->results[0];
    op_set_operand(loop, i + 3, open);
    value_set_type(arg, open->type);
    value_replace(&wait->results[0], &g->results[0]);
    op_erase(wait);
    Value *r = op_result(loop, i);
    value_set_type(r, open->type);
    b = builder_after(loop);
    b.loc = g->loc;
    AttrList attrs = {0};
    attr_set_int(&b.s->mod, &attrs, ATTR_PENDING, 0);
    Op *done = build_op(&b, OP_WGMMA_WAIT, &r, 1, &attrs, NULL, 1);
    value_replace(r, &done->results[0]);
    op_set_operand(done, 0, r);
    done->results[0].name = r->name;
    return true;
}

static bool
visit_carry(void *user, Op *op)
{
    (void)user;
    return op->kind == OP_WGMMA_WAIT && carry(op);
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
    bool changed = visit(cx->s, f->body, 0);
    return pass_walk(f->body, visit_carry, NULL) || changed;
}
