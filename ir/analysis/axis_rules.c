/* Transfer functions of axis facts. The one idea: an aligned block of q elements that
   counts up from a multiple of q crosses no multiple of q, so it lies in one bucket of a
   division by q, on one side of a bound that q divides, and never wraps. */
#include "ir/analysis/axis_rules.h"

#include "ir/base/util.h"

#include <string.h>

int64_t
axis_pow2(int64_t v)
{
    uint64_t u = (uint64_t)v;
    return u == 0 ? AXIS_MAX_DIV
                  : (int64_t)((u & -u) > AXIS_MAX_DIV ? AXIS_MAX_DIV : u & -u);
}

/* Bytes of one step of an address; 1 for integers. */
static int64_t
unit_bytes(const Type *t)
{
    const Type *e = type_elem(t);
    return e->kind == TY_PTR ? max_i64(type_bits(e->elem) / 8, 1) : 1;
}

/* The longest block along dimension d. */
static int64_t
whole(const Type *t, int d)
{
    return type_is_tile(t) ? t->shape[d] & -t->shape[d] : 1;
}

static void
full_range(const Type *t, int64_t *lo, int64_t *hi)
{
    int bits = type_is_int(t) ? type_bits(t) : 64;
    *lo = bits == 1 ? 0 : bits == 64 ? INT64_MIN : -((int64_t)1 << (bits - 1));
    *hi = bits == 1 ? 1 : bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
}

AxisFacts
axis_nothing(const Type *t)
{
    AxisFacts f = {.rank = type_is_tile(t) ? t->rank : 1};
    for (int d = 0; d < f.rank; d++)
        f.contig[d] = f.div[d] = f.constancy[d] = 1;
    full_range(t, &f.lo, &f.hi);
    return f;
}

bool
axis_same(const AxisFacts *a, const AxisFacts *b)
{
    for (int d = 0; d < a->rank; d++)
        if (a->contig[d] != b->contig[d] || a->div[d] != b->div[d] ||
            a->constancy[d] != b->constancy[d])
            return false;
    return a->lo == b->lo && a->hi == b->hi;
}

/* Divisor of the values at indices along d that are multiples of c. */
static int64_t
div_at(const AxisFacts *f, int d, int64_t c, int64_t unit)
{
    return c >= f->contig[d] ? f->div[d] : min_i64(f->div[d], axis_pow2(c * unit));
}

int64_t
axis_all_div(const AxisFacts *f, const Type *t)
{
    int64_t best = 1;
    for (int d = 0; d < f->rank; d++)
        best = max_i64(best, div_at(f, d, 1, unit_bytes(t)));
    if (f->lo == f->hi)
        best = max_i64(best, axis_pow2(f->lo));
    return best;
}

bool
axis_known(const AxisFacts *f, int64_t *value)
{
    *value = f->lo;
    return f->lo == f->hi;
}

AxisFacts
axis_join(const AxisFacts *a, const AxisFacts *b, const Type *t)
{
    AxisFacts f = {.rank = a->rank};
    int64_t unit = unit_bytes(t);
    for (int d = 0; d < f.rank; d++) {
        f.contig[d] = min_i64(a->contig[d], b->contig[d]);
        f.constancy[d] = min_i64(a->constancy[d], b->constancy[d]);
        f.div[d] =
            min_i64(div_at(a, d, f.contig[d], unit), div_at(b, d, f.contig[d], unit));
    }
    f.lo = min_i64(a->lo, b->lo);
    f.hi = max_i64(a->hi, b->hi);
    return f;
}

/* ---- ranges */

static void
set_range(AxisFacts *f, const Type *t, bool exact, int64_t lo, int64_t hi)
{
    int64_t least, most;
    full_range(t, &least, &most);
    if (exact && lo >= least && hi <= most && lo <= hi) {
        f->lo = lo;
        f->hi = hi;
    } else {
        f->lo = least;
        f->hi = most;
    }
}

/* Bounds of x op y as mathematics has them; false when they do not fit in 64 bits. */
static bool
math_range(OpKind k, const AxisFacts *x, const AxisFacts *y, int64_t *lo, int64_t *hi)
{
    int64_t p[4];
    if (k == OP_ADD)
        return !__builtin_add_overflow(x->lo, y->lo, lo) &&
               !__builtin_add_overflow(x->hi, y->hi, hi);
    if (k == OP_SUB)
        return !__builtin_sub_overflow(x->lo, y->hi, lo) &&
               !__builtin_sub_overflow(x->hi, y->lo, hi);
    if (__builtin_mul_overflow(x->lo, y->lo, &p[0]) ||
        __builtin_mul_overflow(x->lo, y->hi, &p[1]) ||
        __builtin_mul_overflow(x->hi, y->lo, &p[2]) ||
        __builtin_mul_overflow(x->hi, y->hi, &p[3]))
        return false;
    *lo = min_i64(min_i64(p[0], p[1]), min_i64(p[2], p[3]));
    *hi = max_i64(max_i64(p[0], p[1]), max_i64(p[2], p[3]));
    return true;
}

/* Is v made of constants and indices alone, so that its bounds are values that it has? */
static bool
is_attained(const Value *v, int depth)
{
    enum { DEPTH = 8 };
    const Op *op = v->op;
    if (!op || depth > DEPTH || !(op_is(op, T_SHAPE) || op->kind == OP_ADD ||
                                  op->kind == OP_CONST || op->kind == OP_ARANGE ||
                                  op->kind == OP_SPLAT || op->kind == OP_CONVERT_LAYOUT))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!is_attained(op_operand(op, i), depth + 1))
            return false;
    return true;
}

/* The result of wrapping arithmetic: its bounds, and whether it cannot have wrapped. What
   is taken not to wrap does where a constant index passes the end of its type. */
static bool
arith_range(AxisFacts *f, const Op *op, const AxisFacts *x, const AxisFacts *y,
            bool nowrap)
{
    const Type *t = op->results[0].type;
    int64_t lo = 0, hi = -1, least, most;
    bool exact = math_range(op->kind, x, y, &lo, &hi);
    full_range(t, &least, &most);
    bool fits = exact && lo >= least && hi <= most;
    nowrap = attr_has(&op->attrs, ATTR_NOWRAP) ||
             (nowrap && (fits || !is_attained(&op->results[0], 0)));
    if (exact && nowrap) {
        lo = max_i64(lo, least);
        hi = min_i64(hi, most);
    }
    set_range(f, t, exact, lo, hi);
    return type_bits(t) == 64 || nowrap || fits;
}

/* ---- sums */

/* Blocks that count up when x does and y stays, or the other way round. */
static int64_t
sum_contig(const AxisFacts *x, const AxisFacts *y, int d)
{
    return max_i64(min_i64(x->contig[d], y->constancy[d]),
                   min_i64(x->constancy[d], y->contig[d]));
}

static AxisFacts
rule_sum(const Op *op, const AxisFacts *x, const AxisFacts *y, bool nowrap)
{
    const Type *t = op->results[0].type;
    AxisFacts f = axis_nothing(t);
    bool ptr = op->kind == OP_ADDPTR;
    int64_t unit = unit_bytes(t);
    bool safe = ptr || arith_range(&f, op, x, y, nowrap);
    for (int d = 0; d < f.rank; d++) {
        int64_t c = op->kind == OP_SUB ? min_i64(x->contig[d], y->constancy[d])
                                       : sum_contig(x, y, d);
        for (int round = 0; round < 2; round++) {
            int64_t dy = div_at(y, d, c, 1);
            f.contig[d] = c;
            f.div[d] = min_i64(div_at(x, d, c, unit), min_i64(dy * unit, AXIS_MAX_DIV));
            if (safe || c <= f.div[d])
                break;
            c = f.div[d]; /* a block from a multiple of its length does not wrap */
        }
        f.constancy[d] = min_i64(x->constancy[d], y->constancy[d]);
    }
    return f;
}

static AxisFacts
rule_mul(const Op *op, const AxisFacts *x, const AxisFacts *y, bool nowrap)
{
    const Type *t = op->results[0].type;
    AxisFacts f = axis_nothing(t);
    int64_t one, both = axis_all_div(x, t), other = axis_all_div(y, t);
    if (axis_known(y, &one) && one == 1)
        return *x;
    if (axis_known(x, &one) && one == 1)
        return *y;
    (void)arith_range(&f, op, x, y, nowrap);
    both = min_i64(both * other, AXIS_MAX_DIV);
    for (int d = 0; d < f.rank; d++) {
        f.div[d] = both;
        f.constancy[d] = min_i64(x->constancy[d], y->constancy[d]);
    }
    return f;
}

/* ---- buckets: division, remainder, shifts and masks by a constant n > 0 */

/* The longest block of x that counts up inside one bucket of size n. */
static int64_t
bucket(const AxisFacts *x, int d, int64_t n)
{
    return min_i64(min_i64(x->contig[d], x->div[d]), axis_pow2(n));
}

/* x / n rounded down; in_range: x as a signed number is what is divided. */
static AxisFacts
quotient(const Type *t, const AxisFacts *x, int64_t n, bool in_range)
{
    AxisFacts f = axis_nothing(t);
    int64_t all = axis_all_div(x, t);
    for (int d = 0; d < f.rank; d++) {
        f.constancy[d] = max_i64(x->constancy[d], bucket(x, d, n));
        f.div[d] = is_pow2(n) && all >= n ? all / n : 1;
    }
    if (in_range) {
        f.lo = x->lo >= 0 ? x->lo / n : -((-(x->lo + 1)) / n) - 1;
        f.hi = x->hi >= 0 ? x->hi / n : -((-(x->hi + 1)) / n) - 1;
    }
    return f;
}

static AxisFacts
remainder_of(const Type *t, const AxisFacts *x, int64_t n)
{
    AxisFacts f = axis_nothing(t);
    for (int d = 0; d < f.rank; d++) {
        f.contig[d] = bucket(x, d, n);
        f.constancy[d] = x->constancy[d];
        f.div[d] = min_i64(div_at(x, d, f.contig[d], 1), axis_pow2(n));
    }
    f.lo = 0;
    f.hi = n - 1;
    if (x->lo >= 0)
        f.hi = min_i64(f.hi, x->hi);
    return f;
}

/* Elementwise with nothing known but what is equal stays equal; div: of all elements. */
static AxisFacts
pointwise(const Op *op, const AxisFacts *const *in, int64_t div)
{
    AxisFacts f = axis_nothing(op->results[0].type);
    for (int d = 0; d < f.rank; d++) {
        f.div[d] = div;
        f.constancy[d] = whole(op->results[0].type, d);
        for (int i = 0; i < op->noperand; i++)
            f.constancy[d] = min_i64(f.constancy[d], in[i]->constancy[d]);
    }
    return f;
}

/* x rems y: the sign of x, less than y, and no further from 0 than x. */
static void
rest_range(AxisFacts *f, const AxisFacts *x, const AxisFacts *y)
{
    int64_t most =
        y->lo > -INT64_MAX ? max_i64(max_i64(-y->lo, y->hi) - 1, 0) : INT64_MAX;
    f->lo = x->lo >= 0 ? 0 : max_i64(x->lo, -most);
    f->hi = x->hi <= 0 ? 0 : min_i64(x->hi, most);
}

/* x / n or its rest, n unknown and the same for neighbours, what divides n is known: a
   block that divides n lies in one bucket. */
static void
rule_bucket(AxisFacts *f, const AxisFacts *x, const AxisFacts *n, int64_t div, bool rest)
{
    for (int d = 0; d < f->rank; d++) {
        int64_t block = min_i64(bucket(x, d, div), n->constancy[d]);
        if (block > 1 && rest) {
            f->contig[d] = block;
            f->div[d] = min_i64(div_at(x, d, block, 1), div);
        } else if (block > 1) {
            f->constancy[d] = max_i64(f->constancy[d], block);
        }
    }
}

static AxisFacts
rule_division(const Op *op, const AxisFacts *const *in)
{
    const Type *t = op->results[0].type;
    bool is_signed = op->kind == OP_DIVS || op->kind == OP_REMS;
    bool rest = op->kind == OP_REMS || op->kind == OP_REMU;
    /* a rest is a sum of multiples of both */
    int64_t n, div = rest ? min_i64(axis_all_div(in[0], t), axis_all_div(in[1], t)) : 1;
    /* A signed quotient goes toward zero: a bucket around zero would be twice as large.
     */
    if (!axis_known(in[1], &n) || n <= 0 || (is_signed && in[0]->lo < 0)) {
        bool exact = !rest && axis_known(in[1], &n) && n > 0 && is_pow2(n);
        int64_t all = axis_all_div(in[0], t);
        AxisFacts f = pointwise(op, in, exact && all >= n ? all / n : div);
        if (op->kind == OP_REMS)
            rest_range(&f, in[0], in[1]);
        if (!is_signed || in[0]->lo >= 0)
            rule_bucket(&f, in[0], in[1], axis_all_div(in[1], t), rest);
        return f;
    }
    if (op->kind == OP_DIVS || op->kind == OP_DIVU)
        return n == 1 ? *in[0] : quotient(t, in[0], n, in[0]->lo >= 0);
    if (is_pow2(n) || in[0]->lo >= 0)
        return remainder_of(t, in[0], n);
    return pointwise(op, in, 1);
}

static AxisFacts
rule_shift(const Op *op, const AxisFacts *const *in, bool nowrap)
{
    const Type *t = op->results[0].type;
    int64_t k, bits = type_bits(t);
    if (!axis_known(in[1], &k) || k < 0 || k >= bits || k >= 62)
        return pointwise(op, in, 1);
    if (k == 0)
        return *in[0];
    if (op->kind == OP_SHL) {
        AxisFacts by = *in[1];
        by.lo = by.hi = (int64_t)1 << k;
        if (k == bits - 1)
            return pointwise(op, in, min_i64((int64_t)1 << k, AXIS_MAX_DIV));
        Op as_mul = *op;
        as_mul.kind = OP_MUL;
        return rule_mul(&as_mul, in[0], &by, nowrap);
    }
    if (k == bits - 1)
        return pointwise(op, in, 1);
    bool in_range = op->kind == OP_SHRS || in[0]->lo >= 0;
    return quotient(t, in[0], (int64_t)1 << k, in_range);
}

static AxisFacts
rule_bits(const Op *op, const AxisFacts *const *in)
{
    const Type *t = op->results[0].type;
    int64_t a = axis_all_div(in[0], t), b = axis_all_div(in[1], t), m;
    AxisFacts f = pointwise(op, in, op->kind == OP_AND ? max_i64(a, b) : min_i64(a, b));
    if (op->kind != OP_AND) {
        if (in[0]->lo >= 0 && in[1]->lo >= 0) {
            int64_t most = in[0]->hi | in[1]->hi;
            int top = most ? log2_floor((uint64_t)most) : 0;
            f.lo = 0;
            f.hi = top >= 62 ? INT64_MAX : ((int64_t)2 << top) - 1;
            if (type_bits(t) == 1)
                f.hi = 1;
        }
        return f;
    }
    for (int i = 0; i < 2; i++) {
        const AxisFacts *x = in[!i];
        if (in[i]->lo >= 0) { /* no more than the operand that is not negative */
            f.lo = 0;
            f.hi = min_i64(f.hi, in[i]->hi);
        }
        if (type_bits(t) == 1 || !axis_known(in[i], &m) || m == 0)
            continue;
        if (m > 0 && m < INT64_MAX && is_pow2(m + 1)) /* the low bits */
            return remainder_of(t, x, m + 1);
        if (m < 0 && m > INT64_MIN && is_pow2(-m)) /* all but the low bits */
            for (int d = 0; d < f.rank; d++)
                f.constancy[d] = max_i64(f.constancy[d], bucket(x, d, -m));
    }
    return f;
}

static AxisFacts
rule_minmax(const Op *op, const AxisFacts *const *in)
{
    const AxisFacts *x = in[0], *y = in[1];
    const Type *t = op->results[0].type;
    AxisFacts f = pointwise(op, in, min_i64(axis_all_div(x, t), axis_all_div(y, t)));
    bool is_min = op->kind == OP_MINS || op->kind == OP_MINU;
    bool is_signed = op->kind == OP_MINS || op->kind == OP_MAXS;
    if (is_signed && type_bits(t) == 1) /* 1 is the lesser one then */
        return f;
    if (is_signed || (x->lo >= 0 && y->lo >= 0)) {
        f.lo = is_min ? min_i64(x->lo, y->lo) : max_i64(x->lo, y->lo);
        f.hi = is_min ? min_i64(x->hi, y->hi) : max_i64(x->hi, y->hi);
    }
    return f;
}

/* ---- comparison and choice */

/* -1: x < y and its negation; 1: x > y; 0: neither way has blocks of one answer. */
static int
compare_side(const char *pred)
{
    static const char *const less[] = {"slt", "sge", "ult", "uge"};
    static const char *const more[] = {"sgt", "sle", "ugt", "ule"};
    for (int i = 0; i < 4; i++)
        if (strcmp(pred, less[i]) == 0)
            return -1;
        else if (strcmp(pred, more[i]) == 0)
            return 1;
    return 0;
}

/* -1 unknown, else the answer for all elements. */
static int
compare_ranges(const char *pred, const AxisFacts *x, const AxisFacts *y)
{
    bool lt = x->hi < y->lo, ge = x->lo >= y->hi;
    bool gt = x->lo > y->hi, le = x->hi <= y->lo;
    bool negative = x->lo < 0 || y->lo < 0;
    if (strcmp(pred, "eq") == 0 || strcmp(pred, "ne") == 0) {
        bool ne = pred[0] == 'n';
        if (lt || gt)
            return ne;
        return x->lo == x->hi && y->lo == y->hi && x->lo == y->lo ? !ne : -1;
    }
    if (pred[0] == 'u' && negative)
        return -1;
    if (strcmp(pred + 1, "lt") == 0)
        return lt ? 1 : ge ? 0 : -1;
    if (strcmp(pred + 1, "ge") == 0)
        return ge ? 1 : lt ? 0 : -1;
    if (strcmp(pred + 1, "gt") == 0)
        return gt ? 1 : le ? 0 : -1;
    return le ? 1 : gt ? 0 : -1;
}

static AxisFacts
rule_compare(const Op *op, const AxisFacts *const *in)
{
    const Type *t = op_operand(op, 0)->type;
    const char *pred = attr_str(&op->attrs, ATTR_PRED);
    AxisFacts f = pointwise(op, in, 1);
    if (!pred || type_is_ptr(t) || type_bits(t) == 1)
        return f;
    int side = compare_side(pred);
    const AxisFacts *moving = in[side > 0], *bound = in[side <= 0];
    for (int d = 0; d < f.rank && side; d++) {
        int64_t q = min_i64(min_i64(moving->contig[d], moving->div[d]),
                            min_i64(bound->constancy[d], axis_all_div(bound, t)));
        f.constancy[d] = max_i64(f.constancy[d], q);
    }
    int known = compare_ranges(pred, in[0], in[1]);
    if (known >= 0)
        f.lo = f.hi = known;
    for (int d = 0; d < f.rank && known >= 0; d++)
        f.constancy[d] = whole(op->results[0].type, d);
    return f;
}

static AxisFacts
rule_select(const Op *op, const AxisFacts *const *in)
{
    const Type *t = op->results[0].type;
    int64_t c;
    if (type_is_int(op_operand(op, 0)->type) && axis_known(in[0], &c))
        return *in[c ? 1 : 2];
    AxisFacts f = axis_join(in[1], in[2], t);
    int64_t unit = unit_bytes(t);
    for (int d = 0; d < f.rank; d++) {
        f.contig[d] = min_i64(f.contig[d], in[0]->constancy[d]);
        f.constancy[d] = min_i64(f.constancy[d], in[0]->constancy[d]);
        f.div[d] = min_i64(div_at(in[1], d, f.contig[d], unit),
                           div_at(in[2], d, f.contig[d], unit));
    }
    return f;
}

/* ---- conversion */

static AxisFacts
rule_cast(const Op *op, const AxisFacts *x)
{
    const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
    bool ints = type_is_int(from) && type_is_int(to);
    AxisFacts f = pointwise(op, &x, 1);
    if (ints && op->kind == OP_BITCAST)
        return *x;
    if (type_is_ptr(from) && type_is_ptr(to) && unit_bytes(from) == unit_bytes(to))
        return *x;
    if (!ints) {
        bool address = (type_is_ptr(from) || type_is_int(from)) &&
                       (type_is_ptr(to) || type_is_int(to));
        for (int d = 0; d < f.rank && address; d++)
            f.div[d] = axis_all_div(x, from);
        return f;
    }
    int64_t least, most;
    full_range(op->kind == OP_TRUNC ? to : from, &least, &most);
    if (type_bits(from) == 1) { /* i1 is 0 or 1 */
        f.lo = op->kind == OP_SEXT ? -x->hi : x->lo;
        f.hi = op->kind == OP_SEXT ? -x->lo : x->hi;
        return f;
    }
    bool fits = op->kind == OP_SEXT || (op->kind == OP_ZEXT && x->lo >= 0) ||
                (op->kind == OP_TRUNC && x->lo >= least && x->hi <= most);
    if (type_bits(to) == 1)
        return f;
    int64_t half = (int64_t)1 << (min_i64(type_bits(from), type_bits(to)) - 1);
    for (int d = 0; d < f.rank; d++) {
        f.contig[d] =
            fits ? x->contig[d] : min_i64(x->contig[d], min_i64(x->div[d], half));
        f.div[d] = div_at(x, d, f.contig[d], 1);
        if (!fits)
            f.div[d] = min_i64(f.div[d], half);
        f.constancy[d] = x->constancy[d];
    }
    if (fits) {
        f.lo = x->lo;
        f.hi = x->hi;
    } else if (op->kind == OP_ZEXT) {
        f.lo = 0;
        f.hi = 2 * most + 1;
    }
    return f;
}

/* ---- shapes */

static AxisFacts
rule_splat(const Type *t, const AxisFacts *x, const Type *from)
{
    AxisFacts f = axis_nothing(t);
    for (int d = 0; d < f.rank; d++) {
        f.div[d] = axis_all_div(x, from);
        f.constancy[d] = whole(t, d);
    }
    f.lo = x->lo;
    f.hi = x->hi;
    return f;
}

static AxisFacts
rule_broadcast(const Op *op, const AxisFacts *x)
{
    const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
    AxisFacts f = *x;
    for (int d = 0; d < f.rank; d++)
        if (from->shape[d] == 1)
            f.constancy[d] = whole(to, d);
    return f;
}

static AxisFacts
rule_expand(const Op *op, const AxisFacts *x)
{
    const Type *t = op->results[0].type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    AxisFacts f = axis_nothing(t);
    for (int d = 0, k = 0; d < f.rank; d++) {
        if (d == axis) {
            f.div[d] = axis_all_div(x, t);
            continue;
        }
        f.contig[d] = x->contig[k];
        f.div[d] = x->div[k];
        f.constancy[d] = x->constancy[k++];
    }
    f.lo = x->lo;
    f.hi = x->hi;
    return f;
}

static AxisFacts
rule_trans(const Op *op, const AxisFacts *x)
{
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    AxisFacts f = *x;
    for (int d = 0; d < f.rank; d++) {
        f.contig[d] = x->contig[perm->v.ints[d]];
        f.div[d] = x->div[perm->v.ints[d]];
        f.constancy[d] = x->constancy[perm->v.ints[d]];
    }
    return f;
}

/* Row-major order is kept: blocks of the last dimension are blocks of the flat index. */
static AxisFacts
rule_reshape(const Op *op, const AxisFacts *x)
{
    const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
    AxisFacts f = axis_nothing(to);
    f.lo = x->lo;
    f.hi = x->hi;
    for (int d = 0; d < f.rank; d++)
        f.div[d] = axis_all_div(x, from);
    if (attr_has(&op->attrs, ATTR_REORDER) || !type_is_tile(from) || !type_is_tile(to))
        return f;
    int last = from->rank - 1;
    int64_t equal = x->constancy[last], stride = 1;
    for (int d = last; d > 0 && x->constancy[d] == from->shape[d]; d--)
        equal *= x->constancy[d - 1];
    for (int d = to->rank - 1; d >= 0; d--) {
        if (is_pow2(stride))
            f.constancy[d] = min_i64(max_i64(equal / stride, 1), whole(to, d));
        stride *= to->shape[d];
    }
    int minor = to->rank - 1, from_minor = last;
    while (minor > 0 && to->shape[minor] == 1)
        minor--; /* sizes of 1 do not move the flat index */
    while (from_minor > 0 && from->shape[from_minor] == 1)
        from_minor--;
    f.contig[minor] = min_i64(x->contig[from_minor], whole(to, minor));
    f.div[minor] =
        max_i64(div_at(x, from_minor, f.contig[minor], unit_bytes(to)), f.div[minor]);
    return f;
}

/* What the author promises. */
static AxisFacts
rule_hint(const Op *op, const AxisFacts *x)
{
    const Type *t = op->results[0].type;
    AxisFacts f = *x;
    const Attr *div = attr_find(&op->attrs, ATTR_DIV);
    const Attr *contig = attr_find(&op->attrs, ATTR_CONTIG);
    const Attr *equal = attr_find(&op->attrs, ATTR_CONSTANCY);
    for (int d = 0; d < f.rank; d++) {
        int64_t most = whole(t, d);
        if (contig && d < contig->n && contig->v.ints[d] > 0)
            f.contig[d] =
                max_i64(f.contig[d], min_i64(axis_pow2(contig->v.ints[d]), most));
        if (equal && d < equal->n && equal->v.ints[d] > 0)
            f.constancy[d] =
                max_i64(f.constancy[d], min_i64(axis_pow2(equal->v.ints[d]), most));
        if (div && d < div->n && div->v.ints[d] > 0)
            f.div[d] = max_i64(f.div[d], axis_pow2(div->v.ints[d]));
    }
    return f;
}

static AxisFacts
rule_source(const Op *op)
{
    const Type *t = op->results[0].type;
    AxisFacts f = axis_nothing(t);
    int64_t start = attr_int(&op->attrs, ATTR_START, 0);
    int64_t value = attr_int(&op->attrs, ATTR_VALUE, 0);
    switch ((int)op->kind) {
    case OP_CONST:
        for (int d = 0; d < f.rank; d++) {
            f.constancy[d] = whole(t, d);
            f.div[d] = type_is_int(t) ? axis_pow2(value) : 1;
        }
        if (type_is_int(t))
            f.lo = f.hi = value;
        break;
    case OP_ARANGE:
        f.contig[0] = whole(t, 0);
        f.div[0] = axis_pow2(start);
        set_range(&f, t, true, start, start + t->shape[0] - 1);
        break;
    case OP_PROGRAM_ID:
        f.lo = 0;
        f.hi--; /* below the number of programs */
        break;
    case OP_NUM_PROGRAMS: f.lo = 1; break;
    default: break;
    }
    return f;
}

AxisFacts
axis_rule(const Op *op, int i, const AxisFacts *const *in, bool nowrap)
{
    const Type *t = op->results[i].type;
    const Type *from = op->noperand ? op_operand(op, 0)->type : t;
    bool number = type_is_int(t) || type_is_ptr(t);
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_ARANGE:
    case OP_PROGRAM_ID:
    case OP_NUM_PROGRAMS: return rule_source(op);
    case OP_ADD:
    case OP_SUB:
        if (type_bits(t) == 1)
            return pointwise(op, in, 1);
        return rule_sum(op, in[0], in[1], nowrap);
    case OP_ADDPTR: return rule_sum(op, in[0], in[1], nowrap);
    case OP_MUL:
        if (type_bits(t) == 1)
            return pointwise(op, in, 1);
        return rule_mul(op, in[0], in[1], nowrap);
    case OP_DIVS:
    case OP_DIVU:
    case OP_REMS:
    case OP_REMU: return rule_division(op, in);
    case OP_SHL:
    case OP_SHRS:
    case OP_SHRU: return rule_shift(op, in, nowrap);
    case OP_AND:
    case OP_OR:
    case OP_XOR: return rule_bits(op, in);
    case OP_MINS:
    case OP_MAXS:
    case OP_MINU:
    case OP_MAXU: return rule_minmax(op, in);
    case OP_CMPI: return rule_compare(op, in);
    case OP_SELECT: return rule_select(op, in);
    case OP_SPLAT: return rule_splat(t, in[0], from);
    case OP_BROADCAST: return rule_broadcast(op, in[0]);
    case OP_EXPAND_DIMS: return rule_expand(op, in[0]);
    case OP_TRANS: return rule_trans(op, in[0]);
    case OP_RESHAPE: return rule_reshape(op, in[0]);
    case OP_HINT: return number ? rule_hint(op, in[0]) : *in[0];
    case OP_CONVERT_LAYOUT: return *in[0];
    case OP_SEXT:
    case OP_ZEXT:
    case OP_TRUNC:
    case OP_BITCAST:
    case OP_PTRTOINT:
    case OP_INTTOPTR: return rule_cast(op, in[0]);
    default: break;
    }
    if (op_is(op, T_ELEMENTWISE | T_PURE) && op->noperand > 0)
        return pointwise(op, in, 1);
    return axis_nothing(t);
}
