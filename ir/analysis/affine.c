/* A walk over what a value is made from; see ir/analysis/affine.h. */
#include "ir/analysis/affine.h"

#include "ir/base/util.h"
#include "ir/edit.h"

#include <string.h>

enum { MAX_DEPTH = 32, MAX_VISITS = 2000, MAX_STEPS = 8 };

/* ---- polynomials */

static bool
same_factors(const PolyTerm *a, const PolyTerm *b)
{
    size_t size = (size_t)a->n * sizeof *a->x;
    return a->n == b->n && (!a->n || memcmp(a->x, b->x, size) == 0);
}

bool
poly_add_term(Poly *to, const PolyTerm *t, int64_t times)
{
    PolyTerm add = *t;
    if (__builtin_mul_overflow(t->k, times, &add.k))
        return false;
    for (int i = 0; i < to->n; i++) {
        if (!same_factors(&to->t[i], &add))
            continue;
        if (__builtin_add_overflow(to->t[i].k, add.k, &to->t[i].k))
            return false;
        if (!to->t[i].k)
            to->t[i] = to->t[--to->n];
        return true;
    }
    if (!add.k)
        return true;
    if (to->n == POLY_TERMS)
        return false;
    to->t[to->n++] = add;
    return true;
}

bool
poly_add(Poly *to, const Poly *p, int64_t times)
{
    for (int i = 0; i < p->n; i++)
        if (!poly_add_term(to, &p->t[i], times))
            return false;
    return true;
}

/* Factors merged in order. */
static bool
term_mul(const PolyTerm *a, const PolyTerm *b, PolyTerm *out)
{
    *out = (PolyTerm){.n = a->n + b->n};
    if (out->n > POLY_FACTORS || __builtin_mul_overflow(a->k, b->k, &out->k))
        return false;
    for (int i = 0, j = 0; i + j < out->n;) {
        bool left = j == b->n || (i < a->n && a->x[i]->id <= b->x[j]->id);
        out->x[i + j] = left ? a->x[i] : b->x[j];
        i += left;
        j += !left;
    }
    return true;
}

bool
poly_mul(const Poly *a, const Poly *b, Poly *out)
{
    Poly r = {0};
    PolyTerm t;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++)
            if (!term_mul(&a->t[i], &b->t[j], &t) || !poly_add_term(&r, &t, 1))
                return false;
    *out = r;
    return true;
}

Poly
poly_const(int64_t k)
{
    Poly p = {.n = k != 0};
    p.t[0].k = k;
    return p;
}

bool
poly_is_const(const Poly *p, int64_t *k)
{
    *k = p->n ? p->t[0].k : 0;
    return !p->n || (p->n == 1 && !p->t[0].n);
}

bool
poly_same(const Poly *a, const Poly *b)
{
    Poly d = *a;
    return poly_add(&d, b, -1) && !d.n;
}

bool
poly_divide(const PolyTerm *t, const PolyTerm *by, PolyTerm *out)
{
    *out = (PolyTerm){0};
    if (!by->k || (by->k == -1 && t->k == INT64_MIN) || t->k % by->k)
        return false;
    out->k = t->k / by->k;
    int j = 0;
    for (int i = 0; i < t->n; i++) {
        if (j < by->n && t->x[i] == by->x[j])
            j++;
        else
            out->x[out->n++] = t->x[i];
    }
    return j == by->n;
}

/* ---- values */

typedef struct Walk {
    const Op *loop;
    int visits;
    bool tensor; /* hints {tensor} are where addresses begin */
} Walk;

static bool visit(Walk *w, const Value *v, int depth, Affine *out);

static void
atom(const Value *v, Affine *out)
{
    out->base.n = 1;
    out->base.t[0] = (PolyTerm){.k = 1, .n = 1, .x = {v}};
}

static bool
add(Affine *to, const Affine *x, int64_t times)
{
    if (x->ptr && (to->ptr || times != 1))
        return false;
    if (x->ptr)
        to->ptr = x->ptr;
    bool ok = poly_add(&to->base, &x->base, times);
    for (int d = 0; d < AFFINE_RANK && ok; d++)
        ok = poly_add(&to->at[d], &x->at[d], times);
    return ok;
}

static bool
is_uniform(const Affine *a)
{
    for (int d = 0; d < AFFINE_RANK; d++)
        if (a->at[d].n)
            return false;
    return !a->ptr;
}

static bool
multiply(const Affine *a, const Affine *b, Affine *out)
{
    if (!is_uniform(b)) {
        const Affine *swap = a;
        a = b;
        b = swap;
    }
    if (!is_uniform(b) || a->ptr || !poly_mul(&a->base, &b->base, &out->base))
        return false;
    for (int d = 0; d < AFFINE_RANK; d++)
        if (!poly_mul(&a->at[d], &b->base, &out->at[d]))
            return false;
    return true;
}

/* What the loop adds to its carried value `arg` in each iteration. */
static bool
step_of(Walk *w, const Value *arg, int depth, Affine *sum)
{
    const Region *body = arg->region;
    const Value *v = op_operand(body->last, arg->index - 1);
    *sum = (Affine){0};
    for (int i = 0; v != arg; i++) {
        const Op *op = v->op;
        Affine by;
        if (!op || op->parent != body || i == MAX_STEPS ||
            (op->kind != OP_ADDPTR && op->kind != OP_ADD && op->kind != OP_SUB))
            return false;
        if (!visit(w, op_operand(op, 1), depth + 1, &by) || !is_uniform(&by) ||
            !add(sum, &by, op->kind == OP_SUB ? -1 : 1))
            return false;
        v = op_operand(op, 0);
    }
    return true;
}

/* Is every factor made outside of the loop? */
static bool
is_invariant(const Poly *p, const Region *body)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->t[i].n; k++)
            if (!value_outside(p->t[i].x[k], body))
                return false;
    return true;
}

/* init + step * (iv - lo) / (the loop's step), which divides */
static bool
carried(Walk *w, const Value *arg, int depth, Affine *out)
{
    const Op *loop = w->loop;
    Affine by, lo;
    Poly rounds = {0};
    int64_t stride;
    if (!step_of(w, arg, depth, &by) || !is_invariant(&by.base, arg->region) ||
        !visit(w, op_operand(loop, arg->index + 2), depth + 1, out))
        return false;
    Affine step;
    if (!visit(w, op_operand(loop, 2), depth + 1, &step) ||
        !visit(w, op_operand(loop, 0), depth + 1, &lo) ||
        !poly_is_const(&step.base, &stride) || stride < 1)
        return false;
    for (int i = 0; i < by.base.n; i++) {
        if (by.base.t[i].k % stride)
            return false;
        by.base.t[i].k /= stride;
    }
    atom(loop->regions[0]->args[0], &step);
    return poly_add(&rounds, &step.base, 1) && poly_add(&rounds, &lo.base, -1) &&
           poly_mul(&rounds, &by.base, &rounds) && poly_add(&out->base, &rounds, 1);
}

static bool
argument(Walk *w, const Value *v, int depth, Affine *out)
{
    if (w->loop && v->region == w->loop->regions[0] && v->index > 0)
        if (carried(w, v, depth, out))
            return true;
    *out = (Affine){0};
    if (type_is_tile(v->type))
        return false;
    if (v->type->kind == TY_PTR)
        out->ptr = v;
    else if (type_is_int(v->type))
        atom(v, out);
    else
        return false;
    return true;
}

static bool
turn(const Op *op, const Affine *in, Affine *out)
{
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    *out = *in;
    for (int d = 0; d < op->results[0].type->rank; d++)
        out->at[d] = in->at[perm->v.ints[d]];
    return true;
}

static bool
expand(const Op *op, const Affine *in, Affine *out)
{
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    *out = *in;
    for (int d = axis; d < op->results[0].type->rank; d++)
        out->at[d] = d > axis ? in->at[d - 1] : (Poly){0};
    return true;
}

/* Along what is repeated the index counts for nothing. */
static void
spread(const Op *op, Affine *out)
{
    const Type *from = op_operand(op, 0)->type;
    for (int d = 0; d < from->rank; d++)
        if (from->shape[d] == 1)
            out->at[d] = (Poly){0};
}

static bool
visit(Walk *w, const Value *v, int depth, Affine *out)
{
    const Op *op = v->op;
    Affine a, b;
    *out = (Affine){0};
    if (depth > MAX_DEPTH || ++w->visits > MAX_VISITS || v->type->rank > AFFINE_RANK)
        return false;
    if (!op)
        return argument(w, v, depth, out);
    switch ((int)op->kind) {
    case OP_CONST:
        out->base = poly_const(attr_int(&op->attrs, ATTR_VALUE, 0));
        return type_is_int(v->type);
    case OP_ARANGE:
        out->base = poly_const(attr_int(&op->attrs, ATTR_START, 0));
        out->at[0] = poly_const(1);
        return true;
    case OP_SEXT:
        if (type_bits(op_operand(op, 0)->type) == 1)
            break; /* 0 and 1 become 0 and -1 */
        return visit(w, op_operand(op, 0), depth + 1, out);
    case OP_HINT:
        if (w->tensor && attr_has(&op->attrs, ATTR_TENSOR)) {
            out->ptr = v;
            return true;
        }
        return visit(w, op_operand(op, 0), depth + 1, out);
    case OP_SPLAT:
    case OP_CONVERT_LAYOUT: return visit(w, op_operand(op, 0), depth + 1, out);
    case OP_BROADCAST:
        if (!visit(w, op_operand(op, 0), depth + 1, out))
            return false;
        spread(op, out);
        return true;
    case OP_EXPAND_DIMS:
        return visit(w, op_operand(op, 0), depth + 1, &a) && expand(op, &a, out);
    case OP_TRANS:
        return visit(w, op_operand(op, 0), depth + 1, &a) && turn(op, &a, out);
    case OP_ADD:
    case OP_SUB:
    case OP_ADDPTR:
        return visit(w, op_operand(op, 0), depth + 1, out) &&
               visit(w, op_operand(op, 1), depth + 1, &b) &&
               add(out, &b, op->kind == OP_SUB ? -1 : 1);
    case OP_MUL:
        if (visit(w, op_operand(op, 0), depth + 1, &a) &&
            visit(w, op_operand(op, 1), depth + 1, &b) && multiply(&a, &b, out))
            return true;
        *out = (Affine){0};
        break;
    default: break;
    }
    if (v->type->kind == TY_PTR) { /* loaded, or chosen */
        out->ptr = v;
        return true;
    }
    if (type_is_tile(v->type) || !type_is_int(v->type))
        return false;
    atom(v, out);
    return true;
}

bool
affine_of(const Value *v, const Op *loop, Affine *out)
{
    Walk w = {.loop = loop};
    return visit(&w, v, 0, out);
}

bool
affine_of_tensor(const Value *v, const Op *loop, Affine *out)
{
    Walk w = {.loop = loop, .tensor = true};
    return visit(&w, v, 0, out);
}

bool
affine_step(const Value *arg, const Op *loop, Affine *out)
{
    Walk w = {.loop = loop};
    return step_of(&w, arg, 0, out) && is_invariant(&out->base, arg->region);
}
