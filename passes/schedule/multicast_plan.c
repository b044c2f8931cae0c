/* The plan of pass multicast: compares values of neighbouring programs, and finds the
   loads and loops. */
#include "passes/schedule/multicast.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/plan/tma_box.h"

enum { LEAST_BYTES = 4096, DEEP = 64 };

bool
multicast_program(const Value *v)
{
    return v->op && v->op->kind == OP_PROGRAM_ID &&
           !attr_int(&v->op->attrs, ATTR_AXIS, 0);
}

/* Is v the number of launched programs, by which a program's tiles are apart? It is even
   in clusters. */
static bool
is_stride(const Value *v)
{
    const Op *op = v->op;
    return op && op->kind == OP_NUM_PROGRAMS && !attr_int(&op->attrs, ATTR_AXIS, 0) &&
           !attr_has(&op->attrs, ATTR_CTAS_PER_SM);
}

Walk
multicast_walk(Region *role)
{
    Walk w = {.role = role, .home = role};
    region_each(role, op)
    {
        if (op->kind != OP_FOR || !multicast_program(op_operand(op, 0)) ||
            !is_stride(op_operand(op, 2)))
            continue;
        w.tiles = op;
        w.home = op->regions[0];
    }
    return w;
}

static Region *
region_of(const Value *v)
{
    return v->op ? v->op->parent : v->region;
}

/* The kind of a value of the home region or from outside of it. */
static Kind
kind_of(Multicast *m, Value *v, int depth)
{
    const Walk *w = &m->producer;
    const Op *op = v->op;
    intptr_t known = (intptr_t)map_get(&m->kinds, v);
    Kind k = ALIKE;
    if (known)
        return (Kind)(known - 1);
    if (depth > DEEP)
        return UNKNOWN;
    if (!op)
        return v->region == w->role                                ? ALIKE
               : w->tiles && v->region == w->home && v->index == 0 ? VARIES
                                                                   : UNKNOWN;
    if (multicast_program(v))
        k = w->tiles && region_of(v) == w->home ? UNKNOWN : VARIES;
    else if (op->kind == OP_NUM_PROGRAMS || op->kind == OP_CONST)
        k = ALIKE;
    else if (!op_is(op, T_PURE) || op->nregion)
        k = UNKNOWN;
    for (int i = 0; i < op->noperand && k != UNKNOWN; i++) {
        Kind in = kind_of(m, op_operand(op, i), depth + 1);
        k = in == UNKNOWN ? UNKNOWN : in == VARIES ? VARIES : k;
    }
    map_set(&m->kinds, v, (void *)(intptr_t)(k + 1));
    return k;
}

Kind
multicast_kind(Multicast *m, Value *v)
{
    return kind_of(m, v, 0);
}

/* Collects the varying values that v, which a load uses, depends on. False: v depends on
   something that cannot be computed for the other program. */
static bool
add_leaves(Multicast *m, Shared *l, Value *v, int depth)
{
    const Region *r = region_of(v);
    if (map_has(&m->seen, v))
        return true;
    map_set(&m->seen, v, v);
    if (depth > DEEP)
        return false;
    if (value_outside(v, m->loop->regions[0])) {
        Kind k = kind_of(m, v, 0);
        if (k != VARIES)
            return k == ALIKE;
        if (l->n == MC_LEAVES)
            return false;
        l->leaf[l->n++] = v;
        return true;
    }
    if (v->op) {
        if (!op_is(v->op, T_PURE) || v->op->nregion)
            return false;
        for (int i = 0; i < v->op->noperand; i++)
            if (!add_leaves(m, l, op_operand(v->op, i), depth + 1))
                return false;
        return true;
    }
    const Op *loop = r->parent;
    if (!loop || loop->kind != OP_FOR)
        return false;
    if (v->index == 0)
        return true; /* bounds are alike */
    return add_leaves(m, l, op_operand(loop, v->index + 2), depth + 1) &&
           add_leaves(m, l, op_operand(r->last, v->index - 1), depth + 1);
}

/* Bytes of one half of the tile; 0: it cannot be halved. */
static int64_t
half_bytes(Session *s, const Op *load)
{
    const Type *mem = op_operand(load, 1)->type;
    TmaBoxes b;
    if (attr_has(&load->attrs, ATTR_PARTED) || !tma_boxes(s, mem, &b) ||
        tma_kernel_map(op_operand(load, 0)) || !tma_halves(&b))
        return 0;
    return type_numel(mem) * b.bytes / 2;
}

/* Accesses that may need a tensor map of the launch, each of which may need a second one
   for halves. */
static int
maps_of(const Region *r)
{
    int n = 0;
    region_each_deep(r, op) n += op->kind == OP_TMA_LOAD || op->kind == OP_TMA_STORE;
    return n;
}

/* Finds the loop and the loads of the producer's home. False: the two programs would not
   run in step, or there is more than this pass can handle. */
static bool
find_loads(Multicast *m)
{
    const Region *home = m->producer.home;
    region_each_deep(home, op)
    {
        bool outside = op->parent == home;
        if (op->kind == OP_TMA_LOAD) {
            const int plain = 3 + op_operand(op, 0)->type->rank +
                              attr_has(&op->attrs, ATTR_PARTED);
            if (outside || m->nload == MC_LOADS || op->noperand != plain)
                return false;
            m->load[m->nload++] = (Shared){.op = op};
        }
        if (op->nregion && (op->kind != OP_FOR || (outside && m->loop)))
            return false;
        if (op->nregion && outside)
            m->loop = op;
    }
    return true;
}

/* Do the loop and those inside have the same trip counts in both programs? */
static bool
even(Multicast *m, Op *loop)
{
    Shared bounds = {0};
    map_init(&m->seen, &m->s->tmp);
    for (int i = 0; i < 3; i++) {
        Value *v = op_operand(loop, i);
        bool outside = loop == m->loop || value_outside(v, m->loop->regions[0]);
        if (outside ? kind_of(m, v, 0) != ALIKE
                    : !add_leaves(m, &bounds, v, 0) || bounds.n)
            return false;
    }
    region_each(loop->regions[0], op)
    {
        if (op->kind == OP_FOR && !even(m, op))
            return false;
    }
    return true;
}

/* ---- which tiles neighbours share

   Computes the values that a load depends on for some neighbours of a typical grid. If
   programs go through groups of rows, the usual order, neighbours share one operand; if
   they go row by row, the other one. So loads whose tiles are never shared stay as they
   are. */

enum { SAMPLES = 32, SIZE = 6144, PROGRAMS = 132, TILES = 1152 };

static bool
value_at(const Value *v, int64_t program, int depth, Const *out)
{
    enum { MOST = 3 };
    const Op *op = v->op;
    Const in[MOST];
    if (depth > DEEP || type_is_tile(v->type) || type_is_float(v->type))
        return false;
    if (value_const(v, out))
        return true;
    if (!op) { /* the tile, or an argument */
        const Op *up = v->region->parent;
        *out = (Const){.i = up && up->kind == OP_FOR ? program : SIZE};
        return v->type->kind == TY_SCALAR;
    }
    if (op->kind == OP_PROGRAM_ID || op->kind == OP_NUM_PROGRAMS) {
        bool first = !attr_int(&op->attrs, ATTR_AXIS, 0);
        bool all = attr_has(&op->attrs, ATTR_CTAS_PER_SM);
        *out = (Const){.i = op->kind == OP_PROGRAM_ID ? (first ? program : 0)
                            : all                     ? TILES
                                                      : PROGRAMS};
        return true;
    }
    if (op->kind == OP_HINT)
        return value_at(op_operand(op, 0), program, depth + 1, out);
    if (!op_is(op, T_ELEMENTWISE) || op->noperand > MOST)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!value_at(op_operand(op, i), program, depth + 1, &in[i]))
            return false;
    return fold_op(op, in, out) && !out->is_float;
}

static bool
often_alike(const Shared *l)
{
    int alike = 0;
    for (int k = 0; k < SAMPLES; k++) {
        bool same = true;
        for (int i = 0; i < l->n && same; i++) {
            Const x, y;
            if (!value_at(l->leaf[i], 2 * k, 0, &x) ||
                !value_at(l->leaf[i], 2 * k + 1, 0, &y))
                return false;
            same = x.i == y.i;
        }
        alike += same;
    }
    return 2 * alike > SAMPLES;
}

/* Do all dots read the same left operand from shared memory? */
static bool
share_left(const Region *r)
{
    const Value *left = NULL;
    region_each_deep(r, op)
    {
        if (!op_is_async_dot(op))
            continue;
        const Value *v = op_operand(op, DOT_LEFT);
        if (!dot_reads_shared(op, DOT_LEFT) || (left && left != v))
            return false;
        left = v;
    }
    return true;
}

/* One dot, or several with the same left operand, whose right operands are each program's
   own. Two dots with work between them wait for each other rather than for their
   operands, and only pay for being ready for clusters (loops/gemm_two, mlp_chain, H200,
   2026-11-23, tests/gpu/loops.py, two runs: 0.0516 ms without, 0.0638 with, no clusters
   launched). */
static bool
is_matmul(const Region *r)
{
    int n = dots_within(r);
    return n == 1 || (n > 1 && share_left(r));
}

bool
multicast_plan(Multicast *m)
{
    if (!is_matmul(m->split->regions[1]) ||
        maps_of(m->split->parent) + MC_LOADS > TMA_MAX_MAPS || !find_loads(m) ||
        !m->loop || !even(m, m->loop))
        return false;
    int n = 0;
    for (int i = 0; i < m->nload; i++) {
        Shared l = m->load[i];
        bool ok = half_bytes(m->s, l.op) >= LEAST_BYTES;
        map_init(&m->seen, &m->s->tmp);
        for (int k = 3; ok && k < l.op->noperand; k++)
            ok = add_leaves(m, &l, op_operand(l.op, k), 0);
        if (ok && often_alike(&l))
            m->load[n++] = l;
    }
    bool own = n < m->nload;
    m->nload = n;
    return n > 0 && own;
}
