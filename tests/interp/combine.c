/* Reductions and scans with any combining region. A region of elementwise operations
   runs for many pairs at once, any other for one pair after the other. Neighbours are
   combined, so that only associativity is counted on: the order of elements stays. */
#include "tests/interp/machine.h"

#include <stdlib.h>
#include <string.h>

typedef struct Combine {
    Machine *m;
    const Op *op;
    const Region *r;
    int k;       /* tiles */
    bool simple; /* the region is elementwise */
    int64_t outer, size, inner;
    uint64_t **at; /* the tiles, (outer, size, inner) */
} Combine;

static bool
is_simple(const Region *r)
{
    for (const Op *op = r->first; op; op = op->next)
        if (!op_is(op, T_ELEMENTWISE) && !op_is(op, T_TERMINATOR) &&
            op->kind != OP_PROGRAM_ID && op->kind != OP_NUM_PROGRAMS)
            return false;
    return true;
}

/* The region on n pairs, which are in its arguments; results in out[i][0..n). */
static bool
apply(Combine *c, uint64_t *const *a, uint64_t *const *b, uint64_t *const *out, int64_t n)
{
    Machine *m = c->m;
    int64_t each = c->simple ? n : 1;
    for (int64_t first = 0; first < n; first += each) {
        for (int i = 0; i < 2 * c->k; i++) {
            const uint64_t *from = i < c->k ? a[i] : b[i - c->k];
            uint64_t *to = machine_write(m, c->r->args[i], each);
            if (!to)
                return false;
            memcpy(to, from + first, (size_t)each * sizeof *to);
        }
        m->lanes = c->simple ? each : 0;
        bool ok = machine_region(m, c->r);
        m->lanes = 0;
        if (!ok)
            return false;
        for (int i = 0; i < c->k; i++) {
            const uint64_t *r = machine_read(m, op_operand(c->r->last, i), each, 0);
            if (!r)
                return false;
            memcpy(out[i] + first, r, (size_t)each * sizeof *r);
        }
    }
    return true;
}

/* Rows from, from + step, .. of every outer index, packed into `to`. */
static int64_t
gather_rows(const Combine *c, const uint64_t *in, uint64_t *to, int64_t from,
            int64_t step)
{
    int64_t n = 0;
    for (int64_t o = 0; o < c->outer; o++)
        for (int64_t j = from; j < c->size; j += step, n += c->inner)
            memcpy(to + n, in + (o * c->size + j) * c->inner,
                   (size_t)c->inner * sizeof *to);
    return n;
}

/* (x0 x1) (x2 x3) .., until one row is left. Sizes are powers of two. */
static bool
reduce(Combine *c, uint64_t *const *a, uint64_t *const *b)
{
    while (c->size > 1) {
        int64_t n = 0;
        for (int i = 0; i < c->k; i++) {
            n = gather_rows(c, c->at[i], a[i], 0, 2);
            gather_rows(c, c->at[i], b[i], 1, 2);
        }
        if (!apply(c, a, b, c->at, n))
            return false;
        c->size /= 2;
    }
    return true;
}

/* In place, row after row. */
static bool
scan(Combine *c, uint64_t *const *a, uint64_t *const *b)
{
    bool reverse = attr_has(&c->op->attrs, ATTR_REVERSE);
    for (int64_t s = 0; s < c->size; s++) {
        int64_t j = reverse ? c->size - 1 - s : s, n = 0;
        for (int i = 0; i < c->k; i++)
            n = gather_rows(c, c->at[i], s ? b[i] : a[i], j, c->size);
        if (s && !apply(c, a, b, a, n))
            return false;
        for (int i = 0; i < c->k; i++)
            for (int64_t o = 0; o < c->outer; o++)
                memcpy(c->at[i] + (o * c->size + j) * c->inner, a[i] + o * c->inner,
                       (size_t)c->inner * sizeof *a[i]);
    }
    return true;
}

static uint64_t **
tables(int k, int64_t n)
{
    uint64_t **t = calloc((size_t)k, sizeof *t);
    for (int i = 0; t && i < k; i++)
        t[i] = malloc((size_t)n * sizeof **t);
    return t;
}

static bool
is_whole(uint64_t *const *t, int k)
{
    bool ok = t != NULL;
    for (int i = 0; ok && i < k; i++)
        ok = t[i] != NULL;
    return ok;
}

static void
tables_free(uint64_t **t, int k)
{
    for (int i = 0; t && i < k; i++)
        free(t[i]);
    free(t);
}

static bool
run(Combine *c, uint64_t **a, uint64_t **b, int64_t n)
{
    const Op *op = c->op;
    for (int i = 0; i < c->k; i++)
        memcpy(c->at[i], machine_slot(c->m, op_operand(op, i))->cell,
               (size_t)n * sizeof **c->at);
    if (!(op->kind == OP_REDUCE ? reduce : scan)(c, a, b))
        return false;
    for (int i = 0; i < c->k; i++) {
        int64_t count = type_numel(op->results[i].type);
        uint64_t *out = machine_write(c->m, &op->results[i], count);
        if (!out)
            return false;
        memcpy(out, c->at[i], (size_t)count * sizeof *out);
    }
    return true;
}

bool
run_combine(Machine *m, const Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    int64_t n = type_numel(t);
    Combine c = {.m = m, .op = op, .r = op->regions[0], .k = op->noperand,
                 .simple = is_simple(op->regions[0]), .outer = 1, .inner = 1};
    for (int d = 0; d < t->rank; d++)
        *(d < axis ? &c.outer : d > axis ? &c.inner : &c.size) =
            (d == axis ? 1 : d < axis ? c.outer : c.inner) * t->shape[d];
    c.at = tables(c.k, n);
    uint64_t **a = tables(c.k, n), **b = tables(c.k, n);
    bool ok = is_whole(c.at, c.k) && is_whole(a, c.k) && is_whole(b, c.k);
    ok = ok ? machine_count(m, op, n) && run(&c, a, b, n)
            : machine_stop(m, INTERP_LIMIT, op, "out of memory");
    tables_free(c.at, c.k);
    tables_free(a, c.k);
    tables_free(b, c.k);
    return ok;
}
