/* TMA multicast: a tile that two neighbouring programs both read is loaded once for both.

   Two neighbouring programs of a matmul mostly have one operand in common: the same
   columns of b for different rows of a. Launched as a cluster of two, each loads one half
   of such a tile, and TMA writes it to both: half as many bytes leave the L2 cache, whose
   bandwidth is what limits a matmul of rows that do not begin on its cache lines
   (3000x5000x7000, fp16, H200, tests/gpu/shapes).

       for %t = %pid, %n, %p {                  for %t = %pid, %n, %p {
         %c = .. %t ..                            %c = .. %t ..
                                                  %o = .. (%t xor 1) ..
                                                  %both = in_cluster and (%t or 1) < %n
                                                  %same = %both and %c = %o
         for .. {                        =>       for .. {
           bar_wait %empty ..                       bar_wait %empty ..
           tma_load %d, %b, %full, .. %c ..         tma_load %d, %b, %full, .. %c ..,
   %same }                                                {multicast} } }
                                                }
       bar_arrive %empty                        bar_arrive %empty
                                                bar_arrive_cluster %empty, %both

   Each program computes the tile of the other one from its program id, just like its own,
   so the two agree without communicating; where their tiles differ, each loads its own. A
   stage is free when the consumers of both programs have read it, so the barriers count
   arrivals of both. The two must therefore go through their stages in step: the loops
   around the loads have the same trip counts in every program.

   The launcher decides whether to launch clusters (runtime/rt/cuda_kernel.c); the same
   code also runs without. */
#include "passes/schedule/multicast.h"

#include "ir/build.h"
#include "ir/edit.h"

/* v as the other program computes it. */
static Value *
other(Multicast *m, Builder *b, Map *to, Value *v)
{
    Value *have = map_get(to, v);
    if (have)
        return have;
    if (multicast_kind(m, v) == ALIKE)
        return v;
    if (!v->op || multicast_program(v)) {
        have = build_binary(b, OP_XOR, v, build_int(b, v->type, 1));
    } else {
        for (int i = 0; i < v->op->noperand; i++) {
            Value *in = op_operand(v->op, i);
            map_set(to, in, other(m, b, to, in));
        }
        have = &op_clone(b, v->op, to)->results[0];
    }
    map_set(to, v, have);
    return have;
}

static Value *
in_cluster(Builder *b)
{
    return &build_op(b, OP_IN_CLUSTER, NULL, 0, NULL, NULL, 1)->results[0];
}

/* i1: whether the other program of the cluster has a tile, too. */
static Value *
paired(Builder *b, const Walk *w)
{
    Value *in = in_cluster(b);
    if (!w->tiles)
        return in;
    Value *t = w->home->args[0], *one = build_int(b, t->type, 1);
    Value *last = build_binary(b, OP_OR, t, one);
    return build_binary(b, OP_AND, in,
                        build_cmp(b, OP_CMPI, "slt", last, op_operand(w->tiles, 1)));
}

static void
share_loads(Multicast *m)
{
    Builder b = builder_before(m->loop);
    b.loc = m->loop->loc;
    Value *both = paired(&b, &m->producer);
    Map to;
    map_init(&to, &m->s->tmp);
    for (int i = 0; i < m->nload; i++) {
        Shared *l = &m->load[i];
        Value *same = both;
        for (int k = 0; k < l->n; k++) {
            Value *o = other(m, &b, &to, l->leaf[k]);
            same = build_binary(&b, OP_AND, same,
                                build_cmp(&b, OP_CMPI, "eq", l->leaf[k], o));
        }
        op_add_operand(l->op, same);
        attr_set_flag(&m->s->mod, &l->op->attrs, ATTR_MULTICAST);
    }
}

/* The barriers that a wait or an arrival of a role is on; NULL: others. */
static Op *
barriers_of(const Op *split, const Op *op)
{
    Value *v = op_operand(op, 0);
    if (v->op && v->op->kind == OP_BAR_INDEX)
        v = op_operand(v->op, 0);
    if (v->op || v->region->parent != split)
        return NULL;
    v = op_operand(split, v->index);
    return v->op && v->op->kind == OP_BAR_ALLOC ? v->op : NULL;
}

static bool
find_waits(const Multicast *m, Map *empty)
{
    region_each_deep(m->producer.role, op)
    {
        Op *bars = op->kind == OP_BAR_WAIT ? barriers_of(m->split, op) : NULL;
        if (op->kind == OP_BAR_WAIT && (!bars || op->noperand > 2))
            return false;
        if (bars)
            map_set(empty, bars, bars);
    }
    return true;
}

/* Finds arrivals of the consumer at barriers that the producer waits for, all of which
   must be inside of its home. */
static bool
find_arrivals(const Multicast *m, const Map *empty, const Walk *w, Op **out, int most,
              int *n)
{
    region_each_deep(w->role, op)
    {
        Op *bars = op->kind == OP_BAR_ARRIVE ? barriers_of(m->split, op) : NULL;
        if (bars && map_has(empty, bars)) {
            if (*n == most || (w->tiles && op->parent == w->role))
                return false;
            out[(*n)++] = op;
        } else if (op->kind == OP_BAR_ARRIVE) {
            return false;
        }
    }
    return true;
}

/* Arrives at the other program's barrier, too, or, if that program has ended, once more
   at the own one in its place. */
static void
release_both(Builder *b, Op *arrival, Value *in, Value *both)
{
    Value *args[3] = {op_operand(arrival, 0), both, in};
    b->loc = arrival->loc;
    if (arrival->noperand > 1)
        args[2] = build_binary(b, OP_AND, in, op_operand(arrival, 1));
    build_op(b, OP_BAR_ARRIVE_CLUSTER, args, 3, NULL, NULL, 0);
}

static Op *
roles_of(const Func *f)
{
    region_each(f->body, op)
    {
        if (op->kind == OP_WARP_SPECIALIZE)
            return op->nregion == 2 ? op : NULL;
    }
    return NULL;
}

bool
pass_multicast(Func *f, PassCx *cx)
{
    enum { MOST = 32 };
    Multicast *m = arena_new(&cx->s->tmp, Multicast);
    Op *arrival[MOST];
    int n = 0;
    Map empty;
    m->s = cx->s;
    m->split = roles_of(f);
    if (!m->split || attr_has(&m->split->attrs, ATTR_BLOCKS))
        return false;
    map_init(&m->kinds, &cx->s->tmp);
    map_init(&empty, &cx->s->tmp);
    m->producer = multicast_walk(m->split->regions[0]);
    Walk consumer = multicast_walk(m->split->regions[1]);
    if (!m->producer.tiles != !consumer.tiles || !multicast_plan(m) ||
        !find_waits(m, &empty) ||
        !find_arrivals(m, &empty, &consumer, arrival, MOST, &n) || !n)
        return false;
    share_loads(m);
    Builder b = builder_before(consumer.home->first);
    Value *in = in_cluster(&b), *both = paired(&b, &consumer);
    for (int i = 0; i < n; i++) {
        Builder at = builder_before(arrival[i]->next);
        release_both(&at, arrival[i], in, both);
    }
    region_each(f->body, op)
    {
        if (op->kind == OP_BAR_ALLOC && map_has(&empty, op))
            attr_set_int(&cx->s->mod, &op->attrs, ATTR_CLUSTER, 2);
    }
    attr_set_int(&cx->s->mod, &m->split->attrs, ATTR_CLUSTER, 2);
    return true;
}
