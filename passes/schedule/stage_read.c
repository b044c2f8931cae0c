/* Tiles that are loaded ahead of their loop and read by threads: the threads read them
   from the staged buffer, in the layout in which each reader needs the elements.

    %a = load %p {stage=0} : tile<.., #blk>     %a = load %p {stage=0} : tile<.., #blk>
    %x = fext %a                            =>  %m = local_alloc %a : mem<..>
    %y = convert_layout %x : #mma               %l = local_load %m : tile<.., #mma>
    .. addf %s, %y ..                           %y = fext %l
                                                .. addf %s, %y ..

   A read from shared memory costs the same in any layout, whereas a conversion between
   threads would go through shared memory a second time. Tiles are read while the dot in
   front of their first user runs; vectors, which are small, where they were loaded, ahead
   of the dots. What only an arm of a condition reads is read there. The buffer holds
   exactly what memory holds, and any number of dots and threads read it, so a later pass
   may have TMA fill it. */
#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "passes/mma/operand.h"
#include "passes/schedule/stage.h"

enum { CHAIN_DEPTH = 16 };

typedef struct Reads {
    Session *s;
    Value *v, *mem;      /* what is loaded; the buffer */
    Vec(Op *) converted; /* conversions of elementwise work on it alone */
} Reads;

/* Two chains may meet, as in a select between a value and its negation. */
static bool
is_seen(const Reads *r, const Op *op)
{
    for (int i = 0; i < r->converted.n; i++)
        if (r->converted.at[i] == op)
            return true;
    return false;
}

/* Collects conversions at the ends of chains of elementwise work whose values each have a
   single use. */
static void
see_converted(Reads *r, Value *v, int depth)
{
    value_each_use(v, u)
    {
        Op *op = u->user;
        Value *load;
        if (op->kind == OP_CONVERT_LAYOUT) {
            if (!is_seen(r, op) && operand_is_work_on_load(v, true, &load) &&
                load == r->v)
                vec_push(&r->s->tmp, &r->converted, op);
        } else if (op_is(op, T_PURE | T_ELEMENTWISE) && op->nresult == 1 &&
                   op->results[0].uses && !op->results[0].uses->next &&
                   depth < CHAIN_DEPTH) {
            see_converted(r, &op->results[0], depth + 1);
        }
    }
}

/* Where to read for `op`: behind the last dot in front of it, so that the read overlaps
   with that dot, if the dot stands behind the buffer; else right in front of `op`. */
static Builder
read_place(const Reads *r, Op *op)
{
    Op *at = op->prev;
    while (at && !op_is_async_dot(at) && at != r->mem->op)
        at = at->prev;
    return at && op_is_async_dot(at) ? builder_after(at) : builder_before(op);
}

/* The elements of the buffer in layout l, read in front of op. */
static Value *
read_before(Reads *r, Op *op, const Layout *l)
{
    const Type *t = type_with_layout(r->s->types, r->v->type, l);
    value_each_use(r->mem, u) if (u->user->kind == OP_LOCAL_LOAD &&
                                  u->user->results[0].type == t &&
                                  u->user->parent == op->parent &&
                                  op_before(u->user, op)) return &u->user->results[0];
    Builder b = read_place(r, op);
    b.loc = op->loc;
    return &build_op(&b, OP_LOCAL_LOAD, &r->mem, 1, NULL, &t, 1)->results[0];
}

/* Erases work that has been repeated in another layout, as far as it is now unused. */
static void
drop_unused(const Reads *r, Value *v, int depth)
{
    Op *op = v->op;
    Value *in[8];
    if (v == r->v || !op || op_has_uses(op) || op->noperand > COUNT_OF(in) ||
        op->nregion || !op_is(op, T_PURE) || depth > CHAIN_DEPTH)
        return;
    int n = op->noperand;
    for (int i = 0; i < n; i++)
        in[i] = op_operand(op, i);
    op_erase(op);
    for (int i = 0; i < n; i++)
        drop_unused(r, in[i], depth + 1);
}

/* The first op that reads v itself, or contains one that does, in the arm of a condition
   outside of which nothing reads it; NULL: nothing does. */
static Op *
first_user(Value *v)
{
    const Region *home = v->op->parent, *at = NULL;
    Op *first = NULL;
    value_each_use(v, u)
    {
        if (u->user->kind == OP_LOCAL_ALLOC)
            continue;
        const Region *r = u->user->parent;
        at = at ? at : r;
        while (!region_within(r, at))
            at = at->parent->parent;
    }
    for (const Region *r = at; r && r != home; r = r->parent->parent)
        at = r->parent->kind == OP_IF ? at : r->parent->parent;
    value_each_use(v, u)
    {
        Op *user = u->user->kind == OP_LOCAL_ALLOC ? NULL : op_in_region(u->user, at);
        if (user && (!first || op_before(user, first)))
            first = user;
    }
    return first;
}

void
stage_read(Session *s, Op *load)
{
    Reads r = {.s = s, .v = &load->results[0]};
    bool alone = true;
    value_each_use(r.v, u)
    {
        bool fills = u->user->kind == OP_LOCAL_ALLOC;
        r.mem = fills ? op_result(u->user, 0) : r.mem;
        alone &= fills;
    }
    if (r.mem && alone)
        return;
    if (!r.mem) {
        const Type *t = staged_buffer(s, load);
        Builder b = builder_after(load);
        b.loc = load->loc;
        r.mem = &build_op(&b, OP_LOCAL_ALLOC, &r.v, 1, NULL, &t, 1)->results[0];
    }
    see_converted(&r, r.v, 0); /* vectors, too: an exchange takes a barrier */
    for (int i = 0; i < r.converted.n; i++) {
        Op *c = r.converted.at[i];
        Builder b = builder_before(c);
        const Layout *to = c->results[0].type->layout;
        Value *read = read_before(&r, r.v->type->rank == 1 ? r.mem->op->next : c, to);
        Value *old = op_operand(c, 0);
        b.loc = c->loc;
        value_replace(&c->results[0], operand_redo(s, &b, old, to, r.v, read, NULL));
        op_erase(c);
        drop_unused(&r, old, 0);
    }
    Op *first = first_user(r.v);
    if (!first)
        return;
    if (r.v->type->rank == 1)
        first = first->parent == load->parent ? r.mem->op->next : first->parent->first;
    Value *read = read_before(&r, first, r.v->type->layout);
    value_each_use(r.v, u) if (u->user->kind != OP_LOCAL_ALLOC)
        op_set_operand(u->user, u->index, read);
}
