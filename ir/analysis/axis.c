/* Forward dataflow over structured control flow. Loop-carried values start from their
   initial facts and are lowered until the yielded facts agree: the lattice is finite and
   every meet takes greatest common divisors, so it ends after a few rounds. */
#include "ir/analysis/axis.h"

#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/fold.h"

#include <string.h>

struct Axis {
    Arena *arena;
    Map facts;   /* Value -> AxisFacts */
    long budget; /* ops still to be visited; nested loops are visited again and again */
};

enum { MAX_ROUNDS = 64, VISITS = 4000000 };

static const AxisFacts nothing = {
    .rank = 1,
    .contig = {1, 1, 1, 1, 1, 1, 1, 1},
    .div = {1, 1, 1, 1, 1, 1, 1, 1},
    .constancy = {1, 1, 1, 1, 1, 1, 1, 1},
};

static int64_t
pow2_divisor(int64_t v)
{
    if (!v)
        return AXIS_MAX_DIV;
    int64_t low = (int64_t)((uint64_t)v & (0 - (uint64_t)v));
    return low <= 0 || low > AXIS_MAX_DIV ? AXIS_MAX_DIV : low;
}

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b; /* gcd of powers of two */
}

/* Divisor of the first value of every aligned group of g elements. */
static int64_t
div_at(const AxisFacts *f, int d, int64_t g)
{
    return g >= f->contig[d] ? f->div[d] : least(f->div[d], g);
}

int64_t
axis_divisor(const AxisFacts *f, int d)
{
    return div_at(f, d, 1);
}

/* Divisor of all elements, whichever dimension shows it best. */
static int64_t
divisor(const AxisFacts *f)
{
    int64_t best = 1;
    for (int d = 0; d < f->rank; d++)
        best = max_i64(best, axis_divisor(f, d));
    return best;
}

int64_t
axis_aligned_run(const AxisFacts *f, int d, int elem_bytes)
{
    int64_t aligned = f->div[d] / elem_bytes;
    return least(f->contig[d], aligned < 1 ? 1 : aligned);
}

const AxisFacts *
axis_of(const Axis *a, const Value *v)
{
    const AxisFacts *f = map_get(&a->facts, v);
    return f ? f : &nothing;
}

static AxisFacts
start(const Type *t)
{
    AxisFacts f = nothing;
    f.rank = t->rank ? t->rank : 1;
    return f;
}

static int64_t
dim(const Type *t, int d)
{
    return t->rank ? t->shape[d] : 1;
}

static AxisFacts
uniform(const Type *t, int64_t div)
{
    AxisFacts f = start(t);
    for (int d = 0; d < f.rank; d++) {
        f.div[d] = div;
        f.constancy[d] = dim(t, d);
    }
    return f;
}

static AxisFacts
known(const Type *t, int64_t value)
{
    AxisFacts f = uniform(t, pow2_divisor(value));
    f.known = true;
    f.value = value;
    f.nonneg = value >= 0;
    return f;
}

/* What holds of both. */
static AxisFacts
meet(const AxisFacts *x, const AxisFacts *y)
{
    AxisFacts f = *x;
    for (int d = 0; d < f.rank; d++) {
        f.contig[d] = least(x->contig[d], y->contig[d]);
        f.constancy[d] = least(x->constancy[d], y->constancy[d]);
        f.div[d] = least(div_at(x, d, f.contig[d]), div_at(y, d, f.contig[d]));
    }
    f.known = x->known && y->known && x->value == y->value;
    f.nonneg = x->nonneg && y->nonneg;
    return f;
}

static bool
same(const AxisFacts *x, const AxisFacts *y)
{
    size_t n = (size_t)x->rank * sizeof(int64_t);
    return x->rank == y->rank && x->known == y->known && x->nonneg == y->nonneg &&
           memcmp(x->contig, y->contig, n) == 0 && memcmp(x->div, y->div, n) == 0 &&
           memcmp(x->constancy, y->constancy, n) == 0;
}

/* ---- rules of operations; x and y are the operands' facts, t the result's type */

/* Sum: a run plus a constant stretch is a run. `scale`: bytes per unit of y
   (pointers). */
static AxisFacts
rule_sum(const Type *t, const AxisFacts *x, const AxisFacts *y, bool minus, int64_t scale)
{
    AxisFacts f = start(t);
    for (int d = 0; d < f.rank; d++) {
        int64_t run = least(x->contig[d], y->constancy[d]);
        if (!minus)
            run = max_i64(run, least(x->constancy[d], y->contig[d]));
        f.contig[d] = run;
        f.constancy[d] = least(x->constancy[d], y->constancy[d]);
        int64_t dy = div_at(y, d, run);
        dy = dy > AXIS_MAX_DIV / scale ? AXIS_MAX_DIV : dy * scale;
        int64_t dx = x->contig[d] > run && scale > 1 ? least(x->div[d], run * scale)
                                                     : div_at(x, d, run);
        f.div[d] = least(dx, dy);
    }
    return f;
}

static AxisFacts
rule_product(const Type *t, const AxisFacts *x, const AxisFacts *y)
{
    if (x->known && x->value == 1)
        return *y;
    if (y->known && y->value == 1)
        return *x;
    AxisFacts f = start(t);
    for (int d = 0; d < f.rank; d++) {
        int64_t dx = axis_divisor(x, d), dy = axis_divisor(y, d);
        f.div[d] = dx > AXIS_MAX_DIV / dy ? AXIS_MAX_DIV : dx * dy;
        f.constancy[d] = least(x->constancy[d], y->constancy[d]);
    }
    return f;
}

/* Runs of x that stay inside one multiple of the constant c. */
static int64_t
run_within(const AxisFacts *x, int d, int64_t c)
{
    return least(least(x->contig[d], x->div[d]), pow2_divisor(c));
}

/* Quotient rounded down (or of values that are not negative) by a constant. */
static AxisFacts
rule_quotient(const Type *t, const AxisFacts *x, const AxisFacts *y, bool floors)
{
    AxisFacts f = start(t);
    bool exact = y->known && y->value > 0 && (floors || x->nonneg);
    for (int d = 0; d < f.rank; d++) {
        f.constancy[d] = least(x->constancy[d], y->constancy[d]);
        if (!exact)
            continue;
        f.constancy[d] = max_i64(f.constancy[d], run_within(x, d, y->value));
        if (is_pow2(y->value))
            f.div[d] = max_i64(1, axis_divisor(x, d) / y->value);
        if (y->value == 1)
            f = *x;
    }
    f.nonneg = x->nonneg && y->nonneg;
    return f;
}

static AxisFacts
rule_remainder(const Type *t, const AxisFacts *x, const AxisFacts *y, bool wraps_up)
{
    AxisFacts f = start(t);
    bool exact = y->known && y->value > 0 && (wraps_up || x->nonneg);
    for (int d = 0; d < f.rank; d++) {
        f.constancy[d] = least(x->constancy[d], y->constancy[d]);
        f.div[d] = least(axis_divisor(x, d), axis_divisor(y, d));
        if (!exact)
            continue;
        f.contig[d] = run_within(x, d, y->value);
        f.div[d] = least(div_at(x, d, f.contig[d]), pow2_divisor(y->value));
    }
    f.nonneg = x->nonneg || (exact && wraps_up);
    return f;
}

static AxisFacts
rule_bits(const Type *t, OpKind k, const AxisFacts *x, const AxisFacts *y)
{
    /* x & (2^n - 1) is a remainder, rounded as wanted for negative x as well */
    if (k == OP_AND && y->known && y->value > 0 && is_pow2(y->value + 1)) {
        AxisFacts c = *y;
        c.value++;
        for (int d = 0; d < c.rank; d++)
            c.div[d] = pow2_divisor(c.value);
        return rule_remainder(t, x, &c, true);
    }
    AxisFacts f = start(t);
    for (int d = 0; d < f.rank; d++) {
        int64_t dx = axis_divisor(x, d), dy = axis_divisor(y, d);
        f.div[d] = k == OP_AND ? max_i64(dx, dy) : least(dx, dy);
        f.constancy[d] = least(x->constancy[d], y->constancy[d]);
    }
    f.nonneg = k == OP_AND ? x->nonneg || y->nonneg : x->nonneg && y->nonneg;
    return f;
}

static AxisFacts
rule_shift(const Type *t, OpKind k, const AxisFacts *x, const AxisFacts *y)
{
    AxisFacts f = start(t);
    for (int d = 0; d < f.rank; d++)
        f.constancy[d] = least(x->constancy[d], y->constancy[d]);
    if (!y->known || y->value < 0 || y->value > 30)
        return f;
    AxisFacts c = known(t, (int64_t)1 << y->value);
    if (k == OP_SHL)
        return rule_product(t, x, &c);
    return rule_quotient(t, x, &c, k == OP_SHRS);
}

/* x < y with both cut at multiples of one number: whole groups are true or false. */
static int64_t
compare_run(const AxisFacts *x, const AxisFacts *y, int d)
{
    return least(least(x->contig[d], x->div[d]),
                 least(y->constancy[d], axis_divisor(y, d)));
}

static AxisFacts
rule_compare(const Op *op, const Type *t, const AxisFacts *x, const AxisFacts *y)
{
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    AxisFacts f = start(t);
    bool below = !strcmp(pred, "slt") || !strcmp(pred, "sge") || !strcmp(pred, "ult") ||
                 !strcmp(pred, "uge");
    bool above = !strcmp(pred, "sgt") || !strcmp(pred, "sle") || !strcmp(pred, "ugt") ||
                 !strcmp(pred, "ule");
    for (int d = 0; d < f.rank; d++) {
        f.constancy[d] = least(x->constancy[d], y->constancy[d]);
        if (below)
            f.constancy[d] = max_i64(f.constancy[d], compare_run(x, y, d));
        if (above)
            f.constancy[d] = max_i64(f.constancy[d], compare_run(y, x, d));
    }
    return f;
}

static AxisFacts
rule_select(const AxisFacts *c, const AxisFacts *x, const AxisFacts *y)
{
    AxisFacts f = meet(x, y);
    for (int d = 0; d < f.rank; d++) {
        int64_t run = least(f.contig[d], c->constancy[d]);
        f.div[d] = div_at(&f, d, run);
        f.contig[d] = run;
        f.constancy[d] = least(f.constancy[d], c->constancy[d]);
    }
    return f;
}

/* To more bits: a run that may wrap in between is cut at its alignment. */
static AxisFacts
rule_extend(const Op *op, const AxisFacts *x, bool is_signed)
{
    AxisFacts f = *x;
    const Op *from = op_operand(op, 0)->op;
    bool nowrap = from && attr_has(&from->attrs, ATTR_NOWRAP) && is_signed;
    for (int d = 0; !nowrap && !x->nonneg && d < f.rank; d++) {
        int64_t run = least(f.contig[d], f.div[d]);
        f.div[d] = div_at(x, d, run);
        f.contig[d] = run;
    }
    f.nonneg = is_signed ? x->nonneg : true;
    if (!is_signed && x->known && x->value < 0)
        f.known = false;
    return f;
}

static AxisFacts
rule_expand(const Op *op, const AxisFacts *x, const Type *t)
{
    AxisFacts f = start(t);
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    for (int d = 0; d < t->rank; d++) {
        int from = d > axis ? d - 1 : d;
        bool fresh = d == axis;
        f.contig[d] = fresh ? 1 : x->contig[from];
        f.constancy[d] = fresh ? 1 : x->constancy[from];
        f.div[d] = fresh ? divisor(x) : x->div[from];
    }
    f.known = x->known;
    f.value = x->value;
    f.nonneg = x->nonneg;
    return f;
}

static AxisFacts
rule_broadcast(const Op *op, const AxisFacts *x, const Type *t)
{
    AxisFacts f = *x;
    const Type *from = op_operand(op, 0)->type;
    for (int d = 0; d < t->rank; d++) {
        if (from->shape[d] == t->shape[d])
            continue;
        f.div[d] = axis_divisor(x, d);
        f.contig[d] = 1;
        f.constancy[d] = t->shape[d];
    }
    return f;
}

static AxisFacts
rule_trans(const Op *op, const AxisFacts *x, const Type *t)
{
    AxisFacts f = *x;
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    for (int d = 0; d < t->rank; d++) {
        int from = (int)perm->v.ints[d];
        f.contig[d] = x->contig[from];
        f.div[d] = x->div[from];
        f.constancy[d] = x->constancy[from];
    }
    return f;
}

static AxisFacts
rule_reshape(const AxisFacts *x, const Type *t)
{
    AxisFacts f = uniform(t, divisor(x));
    for (int d = 0; d < f.rank && !x->known; d++)
        f.constancy[d] = 1;
    f.known = x->known;
    f.value = x->value;
    f.nonneg = x->nonneg;
    return f;
}

/* The author's promises hold where they say more. */
static AxisFacts
rule_hint(const Op *op, const AxisFacts *x)
{
    AxisFacts f = *x;
    const Attr *div = attr_find(&op->attrs, ATTR_DIV);
    const Attr *run = attr_find(&op->attrs, ATTR_CONTIG);
    const Attr *eq = attr_find(&op->attrs, ATTR_CONSTANCY);
    for (int d = 0; d < f.rank; d++) {
        if (run && d < run->n && is_pow2(run->v.ints[d]))
            f.contig[d] = max_i64(f.contig[d], run->v.ints[d]);
        if (div && d < div->n && div->v.ints[d] > 0)
            f.div[d] = max_i64(f.div[d], pow2_divisor(div->v.ints[d]));
        if (eq && d < eq->n && is_pow2(eq->v.ints[d]))
            f.constancy[d] = max_i64(f.constancy[d], eq->v.ints[d]);
    }
    return f;
}

static AxisFacts
rule_arange(const Op *op, const Type *t)
{
    AxisFacts f = start(t);
    int64_t first = attr_int(&op->attrs, ATTR_START, 0);
    f.contig[0] = t->shape[0];
    f.div[0] = pow2_divisor(first);
    f.nonneg = first >= 0;
    return f;
}

static AxisFacts
facts_of(const Axis *a, const Op *op)
{
    const Type *t = op->results[0].type;
    const AxisFacts *x = op->noperand > 0 ? axis_of(a, op_operand(op, 0)) : &nothing;
    const AxisFacts *y = op->noperand > 1 ? axis_of(a, op_operand(op, 1)) : &nothing;
    const AxisFacts *z = op->noperand > 2 ? axis_of(a, op_operand(op, 2)) : &nothing;
    switch ((int)op->kind) {
    case OP_CONST:
        return attr_has(&op->attrs, ATTR_VALUE)
                   ? known(t, attr_int(&op->attrs, ATTR_VALUE, 0))
                   : uniform(t, 1);
    case OP_ARANGE: return rule_arange(op, t);
    case OP_PROGRAM_ID:
    case OP_NUM_PROGRAMS: {
        AxisFacts f = start(t);
        f.nonneg = true;
        return f;
    }
    case OP_SPLAT: {
        AxisFacts f = uniform(t, divisor(x));
        f.known = x->known;
        f.value = x->value;
        f.nonneg = x->nonneg;
        return f;
    }
    case OP_ADD: return rule_sum(t, x, y, false, 1);
    case OP_SUB: return rule_sum(t, x, y, true, 1);
    case OP_ADDPTR:
        return rule_sum(t, x, y, false, max_i64(1, type_bits(type_elem(t)->elem) / 8));
    case OP_MUL: return rule_product(t, x, y);
    case OP_DIVS: return rule_quotient(t, x, y, false);
    case OP_DIVU: return rule_quotient(t, x, y, true);
    case OP_REMS: return rule_remainder(t, x, y, false);
    case OP_REMU: return rule_remainder(t, x, y, true);
    case OP_AND:
    case OP_OR:
    case OP_XOR: return rule_bits(t, op->kind, x, y);
    case OP_SHL:
    case OP_SHRS:
    case OP_SHRU: return rule_shift(t, op->kind, x, y);
    case OP_CMPI: return rule_compare(op, t, x, y);
    case OP_SELECT: return rule_select(x, y, z);
    case OP_SEXT: return rule_extend(op, x, true);
    case OP_ZEXT: return rule_extend(op, x, false);
    case OP_EXPAND_DIMS: return rule_expand(op, x, t);
    case OP_BROADCAST: return rule_broadcast(op, x, t);
    case OP_TRANS: return rule_trans(op, x, t);
    case OP_RESHAPE: return rule_reshape(x, t);
    case OP_HINT: return rule_hint(op, x);
    case OP_CONVERT_LAYOUT:
    case OP_PTRTOINT:
    case OP_BITCAST:
        /* same bits; a pointer's run is in elements of its own size */
        return op->kind == OP_CONVERT_LAYOUT || !type_is_ptr(t) ? rule_reshape(x, t)
               : type_bits(type_elem(t)->elem) ==
                       type_bits(type_elem(op_operand(op, 0)->type)->elem)
                   ? *x
                   : rule_reshape(x, t);
    case OP_MINS:
    case OP_MAXS:
    case OP_MINU:
    case OP_MAXU: {
        AxisFacts f = meet(x, y);
        for (int d = 0; d < f.rank; d++) {
            f.div[d] = div_at(&f, d, 1);
            f.contig[d] = 1;
        }
        return f;
    }
    default: break;
    }
    AxisFacts f = start(t);
    for (int d = 0; op_is(op, T_ELEMENTWISE) && op->noperand && d < f.rank; d++) {
        f.constancy[d] = dim(t, d); /* equal operands give equal results */
        for (int i = 0; i < op->noperand; i++)
            f.constancy[d] =
                least(f.constancy[d], axis_of(a, op_operand(op, i))->constancy[d]);
    }
    return f;
}

static void
set(Axis *a, const Value *v, const AxisFacts *f)
{
    AxisFacts *slot = map_get(&a->facts, v);
    if (!slot) {
        slot = arena_new(a->arena, AxisFacts);
        map_set(&a->facts, v, slot);
    }
    *slot = *f;
}

static bool
tracked(const Type *t)
{
    return type_is_int(t) || type_is_ptr(t);
}

static void visit(Axis *a, const Region *r, int depth);

/* Lowers the facts of region arguments until they hold for what the loop yields. */
static void
visit_loop(Axis *a, const Op *op, int depth)
{
    const Region *body = op->regions[op->nregion - 1];
    int first_arg = body->narg - op->nresult;
    int first_init = op->kind == OP_FOR ? 3 : 0;
    if (op->kind == OP_FOR) {
        AxisFacts iv = meet(axis_of(a, op_operand(op, 0)), axis_of(a, op_operand(op, 2)));
        iv.known = false;
        iv.nonneg = axis_of(a, op_operand(op, 0))->nonneg &&
                    axis_of(a, op_operand(op, 2))->nonneg;
        set(a, body->args[0], &iv);
    }
    for (int i = 0; i < op->nresult; i++) {
        AxisFacts none = start(op->results[i].type);
        set(a, body->args[first_arg + i],
            a->budget < 0 ? &none : axis_of(a, op_operand(op, first_init + i)));
    }
    for (int round = 0;; round++) {
        bool changed = false;
        visit(a, body, depth + 1);
        for (int i = 0; i < op->nresult; i++) {
            const Value *arg = body->args[first_arg + i];
            AxisFacts low = meet(axis_of(a, arg), axis_of(a, op_operand(body->last, i)));
            if (round >= MAX_ROUNDS || a->budget < 0)
                low = start(arg->type);
            if (tracked(arg->type) && !same(&low, axis_of(a, arg))) {
                set(a, arg, &low);
                changed = true;
            }
        }
        if (!changed)
            break;
    }
    for (int i = 0; i < op->nresult; i++)
        set(a, &op->results[i], axis_of(a, body->args[first_arg + i]));
}

static void
visit_regions(Axis *a, const Op *op, int depth)
{
    if (op->kind == OP_FOR) {
        visit_loop(a, op, depth);
        return;
    }
    for (int i = 0; i < op->nregion; i++) /* arguments start as nothing known */
        visit(a, op->regions[i], depth + 1);
    for (int i = 0; op->kind == OP_IF && i < op->nresult; i++) {
        if (!tracked(op->results[i].type))
            continue;
        AxisFacts f = meet(axis_of(a, op_operand(op->regions[0]->last, i)),
                           axis_of(a, op_operand(op->regions[1]->last, i)));
        set(a, &op->results[i], &f);
    }
}

static void
visit(Axis *a, const Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return;
    for (const Op *op = r->first; op; op = op->next) {
        a->budget--;
        if (op->nregion) {
            visit_regions(a, op, depth);
        } else if (op->nresult == 1 && tracked(op->results[0].type)) {
            AxisFacts f = facts_of(a, op);
            set(a, &op->results[0], &f);
        }
    }
}

Axis *
axis_new(const Func *f, Arena *arena)
{
    Axis *a = arena_new(arena, Axis);
    a->arena = arena;
    a->budget = VISITS;
    map_init(&a->facts, arena);
    for (int i = 0; i < f->body->narg; i++) {
        const Value *v = f->body->args[i];
        AxisFacts p = uniform(v->type, pow2_divisor(max_i64(1, f->params[i].div)));
        set(a, v, &p);
    }
    visit(a, f->body, 0);
    return a;
}
