/* What analyses claim, against the values themselves: axis facts of every value and the
   answers about comparisons hold for what the evaluator computes there, in random
   functions of every width, with loops, conditions and promises; so do the polynomials of
   ir/analysis/affine.h, as far as nothing wraps. Scalars of 8 bits meet all pairs of
   arguments. */
#include "ir/analysis/affine.h"
#include "ir/analysis/axis.h"
#include "ir/analysis/bounds.h"

#include "tests/rules/support/mix.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = 12, PARAMS = SK_COUNT + LAB_PARAMS };

typedef struct Claims {
    Axis *axis;
    const Eval *eval;
    Affine **affine;         /* by a value's number; NULL: none */
    const AxisFacts **facts; /* by a value's number */
    signed char *answer;     /* by an op's number: of a comparison, 2 when not asked */
    const char *wrong;
    const Value *at;
    int64_t found;
} Claims;

static int64_t
number_of(const Value *v, uint64_t bits)
{
    int width = type_bits(v->type);
    return width == 1 ? (int64_t)bits : bits_signed(width, bits);
}

/* One line of elements along a dimension: n of them, `stride` apart. */
static const char *
line_wrong(const Claims *c, const Value *v, const Datum *d, int dim, int first, int n,
           int stride)
{
    const AxisFacts *f = c->facts[v->id];
    const Type *e = type_elem(v->type);
    int64_t unit = e->kind == TY_PTR ? (type_bits(e->elem) + 7) / 8 : 1, before = 0;
    for (int k = 0; k < n; k++) {
        int64_t x = number_of(v, d->bits[first + k * stride]);
        if (k % f->contig[dim] ? x != (int64_t)((uint64_t)before + (uint64_t)unit)
                               : x % f->div[dim] != 0)
            return k % f->contig[dim] ? "run" : "divisor";
        if (k % f->constancy[dim] && x != before)
            return "constancy";
        before = x;
    }
    return NULL;
}

static const char *
facts_wrong(const Claims *c, const Value *v, const Datum *d)
{
    const AxisFacts *f = c->facts[v->id];
    const Type *t = v->type;
    int rank = type_is_tile(t) ? t->rank : 1, stride = 1;
    for (int i = 0; i < d->n && type_is_int(t); i++) {
        int64_t x = number_of(v, d->bits[i]);
        if (x < f->lo || x > f->hi || (f->nonneg && x < 0))
            return "fold-bounds";
        if (f->known && x != f->value)
            return "known value";
    }
    for (int dim = rank - 1; dim >= 0; dim--) {
        int n = type_is_tile(t) ? (int)t->shape[dim] : 1;
        for (int i = 0; i < d->n; i++) {
            const char *why =
                i / stride % n == 0 ? line_wrong(c, v, d, dim, i, n, stride) : NULL;
            if (why)
                return why;
        }
        stride *= n;
    }
    return NULL;
}

/* ---- polynomials */

static uint64_t
poly_at(const Claims *c, const Poly *p)
{
    uint64_t sum = 0;
    for (int i = 0; i < p->n; i++) {
        uint64_t product = (uint64_t)p->t[i].k;
        for (int k = 0; k < p->t[i].n; k++) {
            const Value *x = p->t[i].x[k];
            product *= (uint64_t)number_of(x, c->eval->values[x->id].bits[0]);
        }
        sum += product;
    }
    return sum;
}

/* The narrowest number that the value is made of: modulo that the polynomial holds,
   though sums wrap. */
static int
narrowest(const Value *v, int depth)
{
    int bits = type_is_int(v->type) ? type_bits(v->type) : 64;
    if (bits == 1) /* a condition: no part of the sum, unless it is the sum */
        return depth ? 64 : 1;
    for (int i = 0; v->op && depth < 40 && !v->op->nregion && i < v->op->noperand; i++) {
        int other = narrowest(op_operand(v->op, i), depth + 1);
        bits = other < bits ? other : bits;
    }
    return bits;
}

static bool
affine_wrong(const Claims *c, const Value *v, const Datum *d)
{
    const Affine *a = c->affine[v->id];
    uint64_t mask = bits_mask(narrowest(v, 0));
    for (int i = 0; i < d->n; i++) {
        int rest = i, rank = type_is_tile(v->type) ? v->type->rank : 0;
        uint64_t x = poly_at(c, &a->base);
        for (int k = rank - 1; k >= 0; k--) {
            x += poly_at(c, &a->at[k]) * (uint64_t)(rest % v->type->shape[k]);
            rest /= (int)v->type->shape[k];
        }
        if ((x ^ (uint64_t)number_of(v, d->bits[i])) & mask)
            return true;
    }
    return false;
}

static bool
is_known(const Claims *c, const Poly *p)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->t[i].n; k++)
            if (c->eval->values[p->t[i].x[k]->id].any)
                return false;
    return true;
}

static void
claim_affine(Claims *c, Arena *arena, const Value *v)
{
    Affine a;
    if (!type_is_int(v->type) || !affine_of(v, NULL, &a))
        return;
    c->affine[v->id] = arena_new(arena, Affine);
    *c->affine[v->id] = a;
}

static void
seen(void *user, const Value *v, const Datum *d)
{
    Claims *c = user;
    if (d->any || c->wrong || !c->facts[v->id])
        return;
    if (type_is_int(v->type) || type_is_ptr(v->type))
        c->wrong = facts_wrong(c, v, d);
    const Affine *a = c->affine[v->id];
    if (a && !c->wrong && is_known(c, &a->base) && affine_wrong(c, v, d))
        c->wrong = "polynomial";
    int answer = v->op && v->op->kind == OP_CMPI ? c->answer[v->op->id] : 2;
    for (int i = 0; i < d->n && (answer == 0 || answer == 1); i++)
        if (d->bits[i] != (uint64_t)answer)
            c->wrong = "answer";
    c->at = v;
}

static void
claim_value(Claims *c, Arena *arena, const Value *v)
{
    c->facts[v->id] = axis_of(c->axis, v);
    claim_affine(c, arena, v);
}

static void
claim(Claims *c, Arena *arena, Bounds *b, const Region *r)
{
    for (int i = 0; i < r->narg; i++)
        claim_value(c, arena, r->args[i]);
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->nresult; i++)
            claim_value(c, arena, &op->results[i]);
        if (op->kind == OP_CMPI)
            c->answer[op->id] = (signed char)bounds_compare(b, op);
        else if (op->kind == OP_ASSUME)
            bounds_assume(b, op_operand(op, 0), true);
        for (int i = 0; i < op->nregion; i++) {
            BoundsMark m = bounds_mark(b);
            bounds_enter(b, op, i);
            claim(c, arena, b, op->regions[i]);
            bounds_leave(b, m);
        }
    }
}

static Claims
claims_of(Lab *l)
{
    Claims c = {.axis = axis_new(l->f, &l->s->perm)};
    c.facts = arena_array(&l->s->perm, const AxisFacts *, (int)l->f->next_id + 1);
    c.answer = arena_array(&l->s->perm, signed char, (int)l->f->next_id + 1);
    c.affine = arena_array(&l->s->perm, Affine *, (int)l->f->next_id + 1);
    claim(&c, &l->s->perm, bounds_new(c.axis, &l->s->perm), l->f->body);
    return c;
}

static void
fail_if_wrong(const LabTest *t, const Claims *c, const uint64_t *params)
{
    if (!c->wrong)
        return;
    Lab l = lab_open(t);
    lab_print(&l, t->name);
    for (int i = 0; i < l.nparam; i++)
        fprintf(stderr, "%%x%d = 0x%llx\n", i, (unsigned long long)params[SK_COUNT + i]);
    ck_abort_msg("%s, seed %llu: %s of value %u (%s)", t->name,
                 (unsigned long long)t->seed, c->wrong, c->at->id,
                 c->at->op ? op_info[c->at->op->kind].name : "argument");
}

/* What is seen before a promise is broken counts as well: facts do not rest on it, and
   answers only behind it. */
static void
check(const LabTest *t, int runs)
{
    static Trace trace;
    Lab l = lab_open(t);
    Claims c = claims_of(&l);
    Eval e = {.seen = seen, .user = &c, .programs = {5, 2, 1}, .program = {3, 1, 0}};
    uint64_t params[PARAMS];
    c.eval = &e;
    for (int i = 0; i < runs; i++) {
        lab_arguments(&l, t, i, params);
        if (runs == 65536) {
            params[SK_COUNT] = (uint64_t)i & 255;
            params[SK_COUNT + 1] = (uint64_t)i >> 8;
        }
        eval_run(&e, l.f, params, &trace);
        fail_if_wrong(t, &c, params);
    }
    eval_done(&e);
    lab_close(&l);
}

static void
over(const Mix *mixes, int n, int count, int runs)
{
    const char *first = getenv("RULES_SEED"), *more = getenv("RULES_COUNT");
    uint64_t seed = first ? strtoull(first, NULL, 10) : 0;
    count = more ? atoi(more) / (runs > RUNS ? 1000 : 1) : count;
    for (int i = 0; i < count; i++)
        check(&(LabTest){.name = "facts",
                         .make = mix_make,
                         .user = &mixes[(seed + (uint64_t)i) % (uint64_t)n],
                         .seed = seed + (uint64_t)i},
              runs);
}

START_TEST(everywhere)
{
    static const Mix mixes[] = {
        {.statements = 50, .tiles = true, .control = true, .counter = SK_I32},
        {.statements = 50, .tiles = true, .control = true, .counter = SK_I8},
        {.statements = 50, .tiles = true, .memory = true, .counter = SK_NONE},
        {.statements = 50, .tiles = true, .control = true, .counter = SK_I64},
        {.statements = 40, .control = true, .counter = SK_I8},
    };
    over(mixes, 5, 600, RUNS);
}
END_TEST

START_TEST(all_pairs)
{
    static const Mix scalars = {.statements = 16, .counter = SK_I8};
    over(&scalars, 1, 3, 65536);
}
END_TEST

RULES_MAIN("facts", everywhere, all_pairs)
