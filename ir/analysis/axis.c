/* Axis facts of a whole function: one walk in program order; what a loop carries starts
   with the facts of its first value and is walked again, joined with what the body
   yields, until nothing changes. Facts only get weaker, and bounds that keep growing are
   widened to the type's, so this ends; a budget bounds the work on deep nests, after
   which carried values are taken to be anything. */
#include "ir/analysis/axis.h"

#include "ir/analysis/axis_rules.h"
#include "ir/base/util.h"

enum { ROUNDS = 6, PASSES = 32 };

struct Axis {
    bool nowrap; /* integers are taken not to */
    Arena *arena;
    AxisFacts **facts; /* by the value's number */
    uint32_t n;        /* numbers that there were */
    Map later;         /* of values that were made since: Value -> AxisFacts */
    int64_t budget; /* ops that may still be visited before carried values give up */
};

static void visit_region(Axis *x, const Region *r, int depth);

/* Where v's facts are; *known: whether there were any. */
static AxisFacts *
place(Axis *x, const Value *v, bool *known)
{
    AxisFacts *f = v->id < x->n ? x->facts[v->id] : map_get(&x->later, v);
    *known = f != NULL;
    if (f)
        return f;
    f = arena_new(x->arena, AxisFacts);
    if (v->id < x->n)
        x->facts[v->id] = f;
    else
        map_set(&x->later, v, f);
    return f;
}

const AxisFacts *
axis_of(Axis *x, const Value *v)
{
    bool known;
    AxisFacts *f = place(x, v, &known);
    if (!known)
        *f = axis_nothing(v->type);
    return f;
}

static void
set(Axis *x, const Value *v, const AxisFacts *f)
{
    bool known;
    AxisFacts *old = place(x, v, &known);
    *old = *f;
    old->known = type_is_int(v->type) && f->lo == f->hi;
    old->value = f->lo;
    old->nonneg = type_is_int(v->type) && f->lo >= 0;
}

/* v may also be `also`. Returns whether that is news. round: how often v was joined. */
static bool
join_into(Axis *x, const Value *v, const Value *also, int round)
{
    const AxisFacts *old = axis_of(x, v);
    AxisFacts f = axis_join(old, axis_of(x, also), v->type);
    AxisFacts any = axis_nothing(v->type);
    if (axis_same(&f, old))
        return false;
    if (round > 0) { /* bounds that still move go all the way */
        f.lo = f.lo < old->lo ? any.lo : f.lo;
        f.hi = f.hi > old->hi ? any.hi : f.hi;
    }
    if (round >= ROUNDS || x->budget <= 0)
        f = any;
    set(x, v, &f);
    return true;
}

/* Without budget, arguments may be anything: then one walk is enough. */
static void
give_up(Axis *x, const Region *r, int first)
{
    for (int i = first; i < r->narg && x->budget <= 0; i++) {
        AxisFacts any = axis_nothing(r->args[i]->type);
        set(x, r->args[i], &any);
    }
}

/* Walks a loop body until its arguments, from `first` on, hold for what it yields. */
static void
fixpoint(Axis *x, const Region *body, int first, int depth)
{
    for (int round = 0;; round++) {
        bool news = false;
        give_up(x, body, first);
        visit_region(x, body, depth + 1);
        for (int i = first; body->last && i < body->narg; i++)
            if (i - first < body->last->noperand)
                news |=
                    join_into(x, body->args[i], op_operand(body->last, i - first), round);
        if (!news)
            return;
    }
}

static void
copy(Axis *x, const Value *to, const Value *from)
{
    AxisFacts f = *axis_of(x, from);
    set(x, to, &f);
}

/* Results of a counted loop: the first values when it runs not at all, else the last. */
static void
carried_results(Axis *x, const Op *op, const Region *body, int first)
{
    for (int i = 0; i < op->nresult; i++)
        copy(x, &op->results[i], body->args[first + i]);
}

static void
visit_for(Axis *x, const Op *op, int depth)
{
    const Region *body = op->regions[0];
    const AxisFacts *lo = axis_of(x, op_operand(op, 0));
    const AxisFacts *hi = axis_of(x, op_operand(op, 1));
    const AxisFacts *step = axis_of(x, op_operand(op, 2));
    const Type *t = body->args[0]->type;
    AxisFacts iv = axis_nothing(t);
    iv.div[0] = min_i64(axis_all_div(lo, t), axis_all_div(step, t));
    if (step->lo > 0 && hi->hi > INT64_MIN) {
        iv.lo = lo->lo;
        iv.hi = max_i64(hi->hi - 1, lo->lo);
    }
    set(x, body->args[0], &iv);
    for (int i = 1; i < body->narg; i++)
        copy(x, body->args[i], op_operand(op, 2 + i));
    fixpoint(x, body, 1, depth);
    carried_results(x, op, body, 1);
}

/* The condition's values go to the body and, in the end, to the results. */
static void
visit_while(Axis *x, const Op *op, int depth)
{
    const Region *cond = op->regions[0], *body = op->regions[1];
    for (int i = 0; i < cond->narg; i++)
        copy(x, cond->args[i], op_operand(op, i));
    for (int round = 0;; round++) {
        bool news = false;
        give_up(x, cond, 0);
        visit_region(x, cond, depth + 1);
        for (int i = 0; i < body->narg; i++)
            copy(x, body->args[i], op_operand(cond->last, i + 1));
        visit_region(x, body, depth + 1);
        for (int i = 0; i < cond->narg; i++)
            news |= join_into(x, cond->args[i], op_operand(body->last, i), round);
        if (!news)
            break;
    }
    for (int i = 0; i < op->nresult; i++)
        copy(x, &op->results[i], op_operand(cond->last, i + 1));
}

static void
visit_if(Axis *x, const Op *op, int depth)
{
    const Region *yes = op->regions[0], *no = op->regions[1];
    visit_region(x, yes, depth + 1);
    visit_region(x, no, depth + 1);
    for (int i = 0; i < op->nresult; i++) {
        AxisFacts f = axis_join(axis_of(x, op_operand(yes->last, i)),
                                axis_of(x, op_operand(no->last, i)), op->results[i].type);
        set(x, &op->results[i], &f);
    }
}

/* Combining regions, roles, and what may come: arguments are captures or anything. */
static void
visit_other(Axis *x, const Op *op, int depth)
{
    for (int k = 0; k < op->nregion; k++) {
        const Region *r = op->regions[k];
        for (int i = 0; i < r->narg; i++) {
            AxisFacts any = axis_nothing(r->args[i]->type);
            set(x, r->args[i], &any);
            if (op_is(op, T_ISOLATED) && i < op->noperand)
                copy(x, r->args[i], op_operand(op, i));
        }
        visit_region(x, r, depth + 1);
    }
    for (int i = 0; i < op->nresult; i++) {
        AxisFacts any = axis_nothing(op->results[i].type);
        set(x, &op->results[i], &any);
    }
}

static void
visit_plain(Axis *x, const Op *op)
{
    const AxisFacts *few[8], **in = few;
    if (op->noperand > COUNT_OF(few))
        in = arena_array(x->arena, const AxisFacts *, op->noperand);
    for (int i = 0; i < op->noperand; i++)
        in[i] = axis_of(x, op_operand(op, i));
    for (int i = 0; i < op->nresult; i++) {
        AxisFacts f = axis_rule(op, i, in, x->nowrap);
        set(x, &op->results[i], &f);
    }
}

static void
visit_region(Axis *x, const Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH + 1)
        return;
    for (const Op *op = r->first; op; op = op->next) {
        x->budget--;
        switch ((int)op->kind) {
        case OP_FOR: visit_for(x, op, depth); break;
        case OP_WHILE: visit_while(x, op, depth); break;
        case OP_IF: visit_if(x, op, depth); break;
        default:
            if (op->nregion)
                visit_other(x, op, depth);
            else if (op->nresult)
                visit_plain(x, op);
        }
    }
}

static int64_t
count_ops(const Region *r)
{
    int64_t n = 0;
    region_each_deep(r, op) n++;
    return n;
}

static Axis *
walk(const Func *f, Arena *a, bool nowrap)
{
    Axis *x = arena_new(a, Axis);
    x->arena = a;
    x->nowrap = nowrap;
    x->budget = PASSES * count_ops(f->body);
    x->n = f->next_id;
    x->facts = arena_array(a, AxisFacts *, x->n);
    map_init(&x->later, a);
    for (int i = 0; i < f->body->narg; i++) {
        const Value *v = f->body->args[i];
        AxisFacts any = axis_nothing(v->type);
        if (!type_is_tile(v->type))
            any.div[0] = axis_pow2(max_i64(f->params[i].div, f->params[i].multiple));
        set(x, v, &any);
    }
    visit_region(x, f->body, 0);
    return x;
}

Axis *
axis_new(const Func *f, Arena *a)
{
    return walk(f, a, false);
}

Axis *
axis_new_nowrap(const Func *f, Arena *a)
{
    return walk(f, a, true);
}

int64_t
axis_aligned_run(const AxisFacts *f, int d, int elem_bytes)
{
    return min_i64(f->contig[d], max_i64(f->div[d] / elem_bytes, 1));
}
