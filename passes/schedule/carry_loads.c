/* Small loads are issued one iteration before their value is used, into registers.

       for %i = 0, %n, 1 (..) {                %x0 = load %p, 0 < %n
         %x = load %p + %i                     for %i = 0, %n, 1 (.., %x = %x0) {
         .. %x ..                        =>      .. %x ..
         ..                                      %next = load %p + (%i + 1), %i + 1 < %n
         yield ..                                ..
       }                                         yield .., %next
                                               }

   A load that stage_plan.c does not pipeline, such as a scale for the whole tile or the
   vectors of a time step, stalls where its value is used for as long as memory takes, and
   the dots of the iteration stall, too. The load for the next iteration stands behind the
   last user of this iteration's value, so that both can use the same registers. Loads
   that only the addresses of copies need stay in place, because those copies are issued
   iterations ahead anyway.

   Loops without dots and copies are left to pass `unroll`, which has many loads in
   flight, except for recurrences that write in every iteration: those are not unrolled,
   and every iteration waits for the one before anyway.

   As in stage_plan.c, addresses may depend on what is quickly computed from the loop
   counter and from carried addresses, and the loop may not write the memory that is
   loaded. The load is masked off where no next iteration exists. */
#include "passes/schedule/carry_loads.h"

#include "ir/analysis/async_dot.h"
#include "ir/analysis/param.h"
#include "ir/analysis/slice.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/edit.h"
#include "ir/loop.h"
#include "ir/layout.h"
#include "passes/pass.h"
#include "passes/schedule/occupancy.h"

enum {
    BESIDE_DOTS = 8,  /* registers of a thread for such loads beside dots */
    MOST_SUMS = 128,  /* more registers than this for accumulators leave none */
    RECURRENCE = 64,  /* registers of a thread in a loop without dots */
    ADDRESS_OPS = 64, /* ops of an address that may be computed a second time */
};

typedef struct Carry {
    Session *s;
    Op *loop;
    Writes writes;
    int64_t left; /* registers */
} Carry;

Op *
load_where(Builder *b, const Op *load, const Map *map, Value *pred)
{
    Value *in[3] = {value_mapped(map, op_operand(load, 0))};
    const Type *t = load->results[0].type;
    Value *mask = load->noperand > 1 ? value_mapped(map, op_operand(load, 1)) : NULL;
    b->loc = load->loc;
    in[1] = build_guard(b, pred, mask, t);
    if (load->noperand > 2)
        in[2] = value_mapped(map, op_operand(load, 2));
    AttrList attrs = load->attrs;
    return build_op(b, OP_LOAD, in, (int)max_i64(load->noperand, 2), &attrs, &t, 1);
}

/* Slice callback: can v of the next iteration be computed in this one, cheaply and by
   each thread for itself? */
static bool
enter_next(Slice *sl, const Value *v)
{
    const Op *op = v->op;
    bool view = op && (op->kind == OP_SPLAT || op->kind == OP_BROADCAST ||
                       op->kind == OP_EXPAND_DIMS || op->kind == OP_ARANGE);
    if ((op ? op->parent : v->region) != sl->within ||
        (op &&
         (op->nregion || !op_is(op, T_PURE) || !(view || op_is(op, T_ELEMENTWISE)))))
        sl->why = "the loop computes it";
    return true;
}

static int64_t
thread_registers(const Type *t)
{
    int64_t n = type_is_tile(t) ? layout_regs(t->layout) : 1;
    return n * max_i64(type_bits(t), 32) / 32;
}

/* The op of the loop body that is, or contains, the last user of v. */
static Op *
last_user(const Region *body, const Value *v)
{
    Op *last = NULL;
    value_each_use(v, u)
    {
        Op *op = op_in_region(u->user, body);
        if (!last || op_before(last, op))
            last = op;
    }
    return last;
}

/* Do only the addresses of copies depend on v? Copies are issued ahead as it is. */
static bool
feeds_copies(const Value *v, int depth, int *left)
{
    if (depth > ADDRESS_OPS || --*left < 0)
        return false;
    value_each_use(v, u)
    {
        const Op *op = u->user;
        if (op->kind != OP_ASYNC_COPY && op->kind != OP_TMA_LOAD &&
            (!op_is(op, T_PURE) || op->nregion ||
             !feeds_copies(&op->results[0], depth + 1, left)))
            return false;
    }
    return v->uses;
}

/* The op behind which the load for the next iteration goes. A proxy fence waits for loads
   in front of it, so the load goes behind the dots, which have a fence in front of
   them. */
static Op *
place(const Region *body, Op *last)
{
    for (Op *op = last; op != body->last; op = op->next)
        if (op_is_async_dot(op))
            last = op;
    return last;
}

/* May the load be carried? *sl: what its operands need. */
static bool
can_carry(Carry *c, const Op *load, Slice *sl)
{
    const Value *v = &load->results[0];
    int left = ADDRESS_OPS;
    if (load->kind != OP_LOAD || attr_has(&load->attrs, ATTR_VOLATILE) || !v->uses ||
        thread_registers(v->type) > c->left ||
        writes_reach(&c->writes, op_operand(load, 0)) || feeds_copies(v, 0, &left))
        return false;
    slice_init(sl, &c->s->tmp, load->parent, enter_next, NULL);
    for (int i = 0; i < load->noperand; i++)
        if (!slice_add(sl, op_operand(load, i)))
            return false;
    return sl->ops.n <= ADDRESS_OPS;
}

static void
clone_slice(const Slice *sl, Builder *b, const Region *body, Map *map)
{
    region_each(body, op) if (slice_has(sl, op)) slice_clone(sl, b, op, map);
}

/* The load of the iteration `iv`, if `exists`; `map` has what the iteration carries. */
static Value *
load_at(const Carry *c, Builder *b, const Op *load, const Slice *sl, Map *map, Value *iv,
        Value *exists)
{
    const Region *body = load->parent;
    map_set(map, body->args[0], iv);
    clone_slice(sl, b, body, map);
    Value *v = &load_where(b, load, map, exists)->results[0];
    attr_set_int(&c->s->mod, &v->op->attrs, ATTR_PREFETCH, 1);
    v->name = load->results[0].name;
    return v;
}

static void
carry(Carry *c, Op *load, const Slice *sl)
{
    Op *loop = c->loop;
    Region *body = loop->regions[0];
    int n = loop->nresult;
    Map first, now, next;
    map_init(&first, &c->s->tmp);
    map_init(&now, &c->s->tmp);
    map_init(&next, &c->s->tmp);
    Op *last = place(body, last_user(body, &load->results[0]));
    Builder before = builder_before(loop);
    Builder in = last == body->last ? builder_before(last) : builder_after(last);
    before.loc = in.loc = load->loc;
    for (int i = 0; i < n; i++)
        map_set(&first, body->args[i + 1], op_operand(loop, i + 3));
    Value *init = load_at(c, &before, load, sl, &first, op_operand(loop, 0),
                          build_loop_reaches(&before, loop, 0));
    clone_slice(sl, &in, body, &now); /* for what it carries to the next */
    for (int i = 0; i < n; i++)
        if (map_has(&sl->values, body->args[i + 1]))
            map_set(&next, body->args[i + 1],
                    value_mapped(&now, op_operand(body->last, i)));
    Value *iv = build_binary(&in, OP_ADD, body->args[0], op_operand(loop, 2));
    Value *exists = build_iteration_exists(&in, loop, body->args[0], 1);
    Value *later = load_at(c, &in, load, sl, &next, iv, exists);
    value_replace(&load->results[0], for_carry(loop, init));
    op_add_operand(body->last, later);
    op_erase(load);
}

/* Does each iteration write memory, and depend on the one before? */
static bool
is_recurrence(const Op *loop, const Writes *w)
{
    bool computed = false;
    for (int i = 0; i < loop->nresult; i++)
        computed |= type_is_float(loop->results[i].type);
    return computed && w->n && !w->all;
}

/* Registers of a thread for the accumulators of the dots in the body. */
static int64_t
sums_of(const Region *body)
{
    int64_t n = mma_registers(body) / (32 * body->func->num_warps);
    for (const Op *op = body->first; op; op = op->next)
        if (op_is(op, T_DOT) && !op_is_async_dot(op))
            n += thread_registers(op->results[0].type);
    return n;
}

static int64_t
room(const Op *loop, const Writes *w)
{
    const Region *body = loop->regions[0];
    bool dots = false;
    for (const Op *op = body->first; op; op = op->next) {
        dots |= op_is(op, T_DOT) || op->kind == OP_TMA_LOAD || op->kind == OP_ASYNC_COPY;
        if (op->kind == OP_TMA_STORE) /* its descriptor names no parameter */
            return 0;
    }
    if (dots)
        return sums_of(body) > MOST_SUMS ? 0 : BESIDE_DOTS;
    return is_recurrence(loop, w) ? RECURRENCE : 0;
}

static bool
visit_loop(void *user, Op *loop)
{
    PassCx *cx = user;
    Carry c = {.s = cx->s, .loop = loop};
    if (loop->kind != OP_FOR || attr_has(&loop->attrs, ATTR_AT_ONCE) || !loop_step(loop))
        return false;
    writes_add(&c.writes, loop);
    c.left = c.writes.ordered ? 0 : room(loop, &c.writes);
    Vec(Op *) loads = {0};
    region_each(loop->regions[0], op) if (op->kind == OP_LOAD)
        vec_push(&c.s->tmp, &loads, op);
    bool changed = false;
    for (int i = 0; i < loads.n; i++) {
        Slice sl;
        Op *load = loads.at[i];
        if (!can_carry(&c, load, &sl))
            continue;
        c.left -= thread_registers(load->results[0].type);
        carry(&c, load, &sl);
        changed = true;
    }
    return changed;
}

bool
pass_carry_loads(Func *f, PassCx *cx)
{
    return cx->target.gpu && pass_walk(f->body, visit_loop, cx);
}
