/* May an index be below 0? In front of index 0 TMA reads zeros, wherever the tensor
   begins, so what is added to a number that begins below 0 must stay in the same index.

   What arguments and memory hold is taken not to be below 0, and of a difference with a
   program's number nothing is known, which is no reason to refuse TMA: numbers are looked
   at that the program itself begins below 0, as range(-4, n), range(-r, r) and
   `tile = pid - step; for ..: tile += step` do, wherever they go from there. A number of
   memory may be below 0 where something makes up for it (start + offset): no reason to
   refuse TMA either, but to leave both in one index (TMA_MEMORY). */
#include "ir/base/util.h"
#include "passes/schedule/tma_tile.h"

enum { MAX_ASKED = 64, MAX_RAISED = 8 };

typedef struct Ask {
    TmaTile *t;
    int left; /* how many more values may be looked at */
    int64_t least; /* that arguments and memory hold; 1: and only numbers taken away
                      count */
    bool memory;   /* what memory holds may be below 0, and what is made of it */
} Ask;

static bool begins_below(Ask *a, const Value *v);
static bool counts_up(Ask *a, const Poly *p);

/* An argument, or what memory holds? */
static bool
is_given(const Value *v)
{
    return v->op ? v->op->kind == OP_LOAD : !v->region->parent;
}

/* The counter of a loop, or a value that one carries: what it begins with. */
static const Value *
begin_of(const Value *v)
{
    const Op *loop = v->op ? NULL : v->region->parent;
    if (!loop)
        return NULL;
    if (loop->kind == OP_FOR)
        return op_operand(loop, v->index ? v->index + 2 : 0);
    if (loop->kind == OP_WHILE)
        return v->region == loop->regions[0]
                   ? op_operand(loop, v->index)
                   : op_operand(loop->regions[0]->last, v->index + 1);
    return NULL;
}

/* Is v, and `more`, a sum with a negative part that nothing makes up for? */
static bool
sum_below(Ask *a, const Value *v, const Poly *more)
{
    Affine sum;
    bool below = false;
    if (!type_is_int(v->type) || !affine_of(v, NULL, &sum) ||
        !poly_add(&sum.base, more, 1))
        return false;
    for (int i = 0; i < sum.base.n; i++) {
        below |= sum.base.t[i].k < 0 && !(a->least && sum.base.t[i].n);
        for (int k = 0; k < sum.base.t[i].n && !below; k++)
            below |= begins_below(a, sum.base.t[i].x[k]);
    }
    return below && !counts_up(a, &sum.base);
}

static bool
starts_below(Ask *a, const Value *v)
{
    return sum_below(a, v, &(Poly){0});
}

/* Rounded towards zero, a quotient is below 0 where the dividend is by the divisor or
   more; that of (n + d - 1) / d is not where d is at least 1. */
static bool
quotient_below(Ask *a, const Op *op)
{
    Affine by;
    int64_t k;
    Poly more;
    if (!affine_of(op_operand(op, 1), NULL, &by))
        return starts_below(a, op_operand(op, 0));
    if (poly_is_const(&by.base, &k)) {
        more = poly_const(k - 1);
        return k > 0 && sum_below(a, op_operand(op, 0), &more);
    }
    more = poly_const(1); /* x - 1 is taken for at least 0: so are round-ups written */
    return sum_below(a, op_operand(op, 0), &more) &&
           (!poly_add(&more, &by.base, -1) || sum_below(a, op_operand(op, 0), &more));
}

static bool
result_below(Ask *a, const Value *v)
{
    const Op *op = v->op;
    switch ((int)op->kind) {
    case OP_SELECT:
        return starts_below(a, op_operand(op, 1)) || starts_below(a, op_operand(op, 2));
    case OP_MINS:
        return starts_below(a, op_operand(op, 0)) || starts_below(a, op_operand(op, 1));
    case OP_MAXS:
        return starts_below(a, op_operand(op, 0)) && starts_below(a, op_operand(op, 1));
    case OP_DIVS: return quotient_below(a, op);
    case OP_REMS:
    case OP_SHRS: return starts_below(a, op_operand(op, 0));
    case OP_FOR: return starts_below(a, op_operand(op, v->index + 3));
    case OP_IF:
        return starts_below(a, op_operand(op->regions[0]->last, v->index)) ||
               starts_below(a, op_operand(op->regions[1]->last, v->index));
    default: return a->memory && axis_of(a->t->axis, v)->lo < 0;
    }
}

static bool
begins_below(Ask *a, const Value *v)
{
    const Value *begin = begin_of(v);
    int64_t least = a->least;
    if (a->left-- <= 0)
        return true;
    /* n - 1 elsewhere is that of a kernel that has something to do; of n - m nothing is
       known, nor of a program's number less another */
    a->least = begin ? 0 : 1;
    bool below = begin ? starts_below(a, begin) : v->op && result_below(a, v);
    a->least = least;
    return below;
}

/* What v is at least, if it begins there and only grows. */
static bool
grows_from(Ask *a, const Value *v, Poly *out)
{
    const Value *begin = begin_of(v);
    Affine from, by;
    if (!begin || v->region->parent->kind != OP_FOR || !affine_of(begin, NULL, &from) ||
        !(v->index ? affine_step(v, v->region->parent, &by)
                   : affine_of(op_operand(v->region->parent, 2), NULL, &by)) ||
        !counts_up(a, &by.base))
        return false;
    *out = from.base;
    return true;
}

/* p with values that begin below 0 and grow replaced by what they begin with. */
static void
lowered(Ask *a, Poly *p)
{
    for (int rounds = 0, i = 0; i < p->n && rounds < MAX_RAISED; i++)
        for (int k = 0; k < p->t[i].n && p->t[i].k > 0; k++) {
            PolyTerm t = p->t[i];
            Poly from, less = *p, rest = {.n = 1, .t = {{.k = t.k}}};
            if (!begins_below(a, t.x[k]) || !grows_from(a, t.x[k], &from))
                continue;
            for (int j = 0; j < t.n; j++)
                if (j != k)
                    rest.t[0].x[rest.t[0].n++] = t.x[j];
            if (!poly_mul(&rest, &from, &rest) || !poly_add_term(&less, &t, -1) ||
                !poly_add(&less, &rest, 1))
                return;
            *p = less;
            rounds++;
            i = -1;
            break;
        }
}

static bool
counts_up(Ask *a, const Poly *q)
{
    TmaTile *r = a->t;
    Poly p = *q;
    int64_t sum = 0;
    lowered(a, &p);
    for (int i = 0; i < p.n; i++) {
        int64_t lo = p.t[i].k, hi = lo;
        for (int k = 0; k < p.t[i].n; k++) {
            AxisFacts x = *axis_of(r->axis, p.t[i].x[k]);
            if (!begins_below(a, p.t[i].x[k])) {
                x.lo = max_i64(x.lo, is_given(p.t[i].x[k]) ? a->least : 0);
                x.hi = max_i64(x.hi, x.lo);
            }
            if (!tma_times_range(&x, &lo, &hi))
                return false;
        }
        if (__builtin_add_overflow(sum, lo, &sum))
            return false;
    }
    return sum >= 0;
}

static Ask
ask(TmaTile *r)
{
    r->axis = r->axis ? r->axis : axis_new(r->f, &r->s->tmp);
    return (Ask){.t = r, .left = MAX_ASKED};
}

bool
tma_counts_up(TmaTile *r, const Poly *p)
{
    Ask a = ask(r);
    return counts_up(&a, p);
}

bool
tma_is_below(TmaTile *r, const PolyTerm *t, TmaBelow which)
{
    bool below = false;
    for (int k = 0; k < t->n; k++) {
        Ask a = ask(r);
        const Value *x = t->x[k];
        a.memory = which == TMA_MEMORY;
        if (which != TMA_COUNTERS || (!x->op && !x->index))
            below |= begins_below(&a, x);
    }
    return below;
}
