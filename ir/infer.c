/* Rules of values, arithmetic, casts, shapes and structure, and the dispatch to all
   rules. */
#include "ir/infer.h"

#include "ir/base/util.h"
#include "ir/fold.h"
#include "ir/verify.h"

#include <stdarg.h>
#include <string.h>

bool
rule_fail(RuleCx *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(c->why, fmt, ap);
    va_end(ap);
    return false;
}

const Type *
rule_given(const RuleCx *c, int i)
{
    return c->op->results[i].type;
}

const Type *
rule_scalar(const RuleCx *c, ScalarKind k)
{
    return type_scalar(c->s->types, k);
}

const char *
rule_str(RuleCx *c, const Type *t)
{
    return type_str(c->why->arena, t);
}

bool
rule_is_int(const Type *t, int bits)
{
    return t->kind == TY_SCALAR && type_is_int(t) && type_bits(t) == bits;
}

static bool
is_data(const Type *t)
{
    return t->kind == TY_SCALAR || t->kind == TY_PTR || t->kind == TY_TILE;
}

/* All operands of one type, which the result has as well. */
static bool
all_same(RuleCx *c)
{
    for (int i = 0; i < c->op->noperand; i++) {
        if (!is_data(opnd(c, i)))
            return rule_fail(c, "operand %d must be a scalar or a tile, not %s", i,
                             rule_str(c, opnd(c, i)));
        if (opnd(c, i) != opnd(c, 0))
            return rule_fail(c, "operands must have one type, not %s and %s",
                             rule_str(c, opnd(c, 0)), rule_str(c, opnd(c, i)));
    }
    if (c->op->nresult)
        c->out[0] = opnd(c, 0);
    return true;
}

bool
rule_same(RuleCx *c)
{
    return all_same(c);
}

bool
rule_same_int(RuleCx *c)
{
    if (!all_same(c))
        return false;
    return type_is_int(opnd(c, 0)) ||
           rule_fail(c, "needs integers, not %s", rule_str(c, opnd(c, 0)));
}

bool
rule_same_float(RuleCx *c)
{
    if (!all_same(c))
        return false;
    return type_is_float(opnd(c, 0)) ||
           rule_fail(c, "needs floats, not %s", rule_str(c, opnd(c, 0)));
}

bool
rule_none(RuleCx *c)
{
    (void)c;
    return true;
}

bool
rule_free(RuleCx *c)
{
    return rule_given(c, 0) || rule_fail(c, "needs a result type");
}

bool
rule_asm(RuleCx *c)
{
    const Type *t = c->op->nresult ? rule_given(c, 0) : NULL;
    int64_t pack = attr_int(&c->op->attrs, ATTR_PACK, 0);
    int64_t first = attr_int(&c->op->attrs, ATTR_FIRST, 0);
    if (!t)
        return rule_fail(c, "needs a result type");
    if (!attr_has(&c->op->attrs, ATTR_ASM) || !attr_has(&c->op->attrs, ATTR_CONSTRAINTS))
        return rule_fail(c, "needs {asm} and {constraints}");
    if (pack < 1 || pack > 64 || first < 0 || first >= 1024)
        return rule_fail(c, "{pack} is 1 to 64 and {first} 0 to 1023");
    for (int i = 0; i < c->op->noperand; i++)
        if (!type_same_shape(opnd(c, i), t) || opnd(c, i)->layout != t->layout)
            return rule_fail(c, "operand %d must have the shape and layout of the result",
                             i);
    for (int i = 1; i < c->op->nresult; i++)
        if (!type_same_shape(rule_given(c, i), t) ||
            rule_given(c, i)->layout != t->layout)
            return rule_fail(c, "results must have one shape and layout");
    return true;
}

bool
rule_constant(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    bool is_int = attr_has(&c->op->attrs, ATTR_VALUE);
    if (is_int == attr_has(&c->op->attrs, ATTR_FVALUE))
        return rule_fail(c, "needs exactly one of {value=} and {fvalue=}");
    if (!t)
        return rule_fail(c, "needs a result type");
    if (is_int ? !type_is_int(t) : !type_is_float(t))
        return rule_fail(c, "%s cannot have the type %s", is_int ? "value" : "fvalue",
                         rule_str(c, t));
    int64_t v = attr_int(&c->op->attrs, ATTR_VALUE, 0);
    return !is_int || const_wrap(type_elem(t)->scalar, v) == v ||
           rule_fail(c, "value does not fit %s", rule_str(c, type_elem(t)));
}

bool
rule_i32(RuleCx *c)
{
    int64_t axis = attr_int(&c->op->attrs, ATTR_AXIS, -1);
    c->out[0] = rule_scalar(c, SK_I32);
    return (axis >= 0 && axis <= 2) || rule_fail(c, "{axis} must be 0, 1 or 2");
}

bool
rule_arange(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    if (!t || t->kind != TY_TILE || t->rank != 1 || t->elem != rule_scalar(c, SK_I32))
        return rule_fail(c, "needs a result type tile<Nxi32>");
    if (!attr_has(&c->op->attrs, ATTR_START))
        return rule_fail(c, "needs {start}");
    int64_t first = attr_int(&c->op->attrs, ATTR_START, 0);
    return (first >= INT32_MIN && first <= INT32_MAX - t->shape[0] + 1) ||
           rule_fail(c, "values must fit in i32");
}

bool
rule_libm(RuleCx *c)
{
    static const struct {
        const char *name;
        int arity;
        char class;
    } table[] = {
#define F 'F'
#define P 'P'
#define I 'I'
#define L 'L'
#define MATH(id, name, arity, f32, f64, class) {name, arity, class},
#include "ir/math.def"
#undef F
#undef P
#undef I
#undef L
    };
    Name fn = attr_str(&c->op->attrs, ATTR_FN);
    for (int i = 0; fn && i < COUNT_OF(table); i++) {
        if (strcmp(table[i].name, fn) != 0)
            continue;
        if (c->op->noperand != table[i].arity)
            return rule_fail(c, "'%s' takes %d operands", fn, table[i].arity);
        if (table[i].class != 'I' && !type_is_float(opnd(c, 0)))
            return rule_fail(c, "'%s' needs floats", fn);
        if (table[i].class == 'F' || table[i].class == 'P')
            if (!all_same(c))
                return false;
        c->out[0] = opnd(c, 0);
        if (table[i].class == 'P')
            c->out[0] = type_like(c->s->types, opnd(c, 0), rule_scalar(c, SK_I1));
        /* popc, clz, ffs of 64 bits give i32: author's choice */
        if (table[i].class == 'I')
            c->out[0] = rule_given(c, 0) ? rule_given(c, 0) : opnd(c, 0);
        return true;
    }
    return rule_fail(c, "{fn} must name a function of ir/math.def");
}

static bool
compare(RuleCx *c, const char *const *preds, int n)
{
    Name pred = attr_str(&c->op->attrs, ATTR_PRED);
    if (!all_same(c))
        return false;
    c->out[0] = type_like(c->s->types, opnd(c, 0), rule_scalar(c, SK_I1));
    for (int i = 0; pred && i < n; i++)
        if (strcmp(pred, preds[i]) == 0)
            return true;
    return rule_fail(c, "{pred} must be a comparison of its kind");
}

bool
rule_cmpi(RuleCx *c)
{
    static const char *const preds[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                        "sge", "ult", "ule", "ugt", "uge"};
    if (type_is_float(opnd(c, 0)))
        return rule_fail(c, "needs integers or pointers");
    return compare(c, preds, COUNT_OF(preds));
}

bool
rule_cmpf(RuleCx *c)
{
    static const char *const preds[] = {"oeq", "une", "olt", "ole", "ogt", "oge", "uno"};
    if (!type_is_float(opnd(c, 0)))
        return rule_fail(c, "needs floats");
    return compare(c, preds, COUNT_OF(preds));
}

bool
rule_select(RuleCx *c)
{
    const Type *t = opnd(c, 1);
    c->out[0] = t;
    if (opnd(c, 2) != t)
        return rule_fail(c, "arms must have one type, not %s and %s", rule_str(c, t),
                         rule_str(c, opnd(c, 2)));
    if (opnd(c, 0) != type_like(c->s->types, t, rule_scalar(c, SK_I1)))
        return rule_fail(c, "condition must be i1 in the arms' shape, not %s",
                         rule_str(c, opnd(c, 0)));
    return true;
}

/* What a cast goes from and to, and how the widths relate: '<' to more bits, '>' to
   fewer, '=' equal, '?' any. */
static const struct {
    OpKind kind;
    char from, to; /* i int, f float, p pointer, a anything */
    char widths;
} casts[] = {
    {OP_TRUNC, 'i', 'i', '>'},    {OP_SEXT, 'i', 'i', '<'},
    {OP_ZEXT, 'i', 'i', '<'},     {OP_FEXT, 'f', 'f', '?'},
    {OP_FTRUNC, 'f', 'f', '?'},   {OP_SITOF, 'i', 'f', '?'},
    {OP_UITOF, 'i', 'f', '?'},    {OP_FTOSI, 'f', 'i', '?'},
    {OP_FTOUI, 'f', 'i', '?'},    {OP_BITCAST, 'a', 'a', '='},
    {OP_PTRTOINT, 'p', 'i', '='}, {OP_INTTOPTR, 'i', 'p', '='},
};

static bool
is_class(const Type *t, char class)
{
    switch (class) {
    case 'i': return type_is_int(t);
    case 'f': return type_is_float(t);
    case 'p': return type_is_ptr(t);
    default: return is_data(t);
    }
}

bool
rule_cast(RuleCx *c)
{
    const Type *from = opnd(c, 0), *to = rule_given(c, 0);
    if (!to)
        return rule_fail(c, "needs a result type");
    if (type_like(c->s->types, from, type_elem(to)) != to)
        return rule_fail(c, "result must have the operand's shape and layout: %s and %s",
                         rule_str(c, from), rule_str(c, to));
    for (int i = 0; i < COUNT_OF(casts); i++) {
        if (casts[i].kind != c->op->kind)
            continue;
        int a = type_bits(from), b = type_bits(to);
        bool fits = casts[i].widths == '?' || (casts[i].widths == '<' && a < b) ||
                    (casts[i].widths == '>' && a > b) ||
                    (casts[i].widths == '=' && a == b);
        if (is_class(from, casts[i].from) && is_class(to, casts[i].to) && fits)
            return true;
    }
    return rule_fail(c, "cannot take %s to %s", rule_str(c, from), rule_str(c, to));
}

bool
rule_addptr(RuleCx *c)
{
    const Type *p = opnd(c, 0), *n = opnd(c, 1);
    c->out[0] = p;
    if (!type_is_ptr(p))
        return rule_fail(c, "first operand must be a pointer, not %s", rule_str(c, p));
    if (!type_is_int(n) || type_like(c->s->types, p, type_elem(n)) != n)
        return rule_fail(c, "offset must be an integer in the pointer's shape: %s and %s",
                         rule_str(c, p), rule_str(c, n));
    return type_bits(n) == 32 || type_bits(n) == 64 ||
           rule_fail(c, "offset must be i32 or i64, not %s", rule_str(c, n));
}

bool
rule_splat(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    if (!t || t->kind != TY_TILE || type_elem(t) != opnd(c, 0))
        return rule_fail(c, "needs a result tile of %s", rule_str(c, opnd(c, 0)));
    return true;
}

bool
rule_broadcast(RuleCx *c)
{
    const Type *from = opnd(c, 0), *to = rule_given(c, 0);
    if (!to || to->kind != TY_TILE || from->kind != TY_TILE || from->rank != to->rank ||
        from->elem != to->elem)
        return rule_fail(c, "needs a result tile of the operand's rank and element");
    for (int i = 0; i < to->rank; i++)
        if (from->shape[i] != to->shape[i] && from->shape[i] != 1)
            return rule_fail(c, "dimension %d cannot go from %lld to %lld", i,
                             (long long)from->shape[i], (long long)to->shape[i]);
    return true;
}

/* A shape op sets the result only where no layout is in play: layout passes give it. */
static bool
shape_result(RuleCx *c, int i, const Type *t)
{
    const Type *given = rule_given(c, i);
    if (!given) {
        c->out[i] = t;
        return true;
    }
    if (type_with_layout(c->s->types, given, NULL) !=
        type_with_layout(c->s->types, t, NULL))
        return rule_fail(c, "result must be %s, not %s", rule_str(c, t),
                         rule_str(c, given));
    return true;
}

static bool
need_tile(RuleCx *c, int i)
{
    return opnd(c, i)->kind == TY_TILE ||
           rule_fail(c, "operand %d must be a tile, not %s", i, rule_str(c, opnd(c, i)));
}

static const Type *
tile_of(RuleCx *c, const Type *elem, int rank, const int64_t *shape)
{
    return type_tile(c->s->types, elem, rank, shape, NULL);
}

bool
rule_expand_dims(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    int64_t axis = attr_int(&c->op->attrs, ATTR_AXIS, -1), shape[MAX_RANK + 1];
    if (!need_tile(c, 0))
        return false;
    if (axis < 0 || axis > t->rank || t->rank == MAX_RANK)
        return rule_fail(c, "{axis} must be from 0 to %d, rank at most %d", t->rank,
                         MAX_RANK);
    for (int i = 0, j = 0; i <= t->rank; i++)
        shape[i] = i == axis ? 1 : t->shape[j++];
    return shape_result(c, 0, tile_of(c, t->elem, t->rank + 1, shape));
}

bool
rule_reshape(RuleCx *c)
{
    const Type *from = opnd(c, 0), *to = rule_given(c, 0);
    if (!to || !is_data(from) || !is_data(to) || type_elem(from) != type_elem(to))
        return rule_fail(c, "needs a result of the operand's element type");
    return type_numel(from) == type_numel(to) ||
           rule_fail(c, "%lld elements cannot become %lld", (long long)type_numel(from),
                     (long long)type_numel(to));
}

/* Checks {perm} against a rank and permutes shape. */
static bool
permute(RuleCx *c, const Type *t, int64_t *shape)
{
    const Attr *p = attr_find(&c->op->attrs, ATTR_PERM);
    unsigned seen = 0;
    if (!p || p->n != t->rank)
        return rule_fail(c, "{perm} must have %d entries", t->rank);
    for (int i = 0; i < p->n; i++) {
        if (p->v.ints[i] < 0 || p->v.ints[i] >= t->rank || (seen >> p->v.ints[i] & 1))
            return rule_fail(c, "{perm} must be a permutation of 0..%d", t->rank - 1);
        seen |= 1u << p->v.ints[i];
        shape[i] = t->shape[p->v.ints[i]];
    }
    return true;
}

bool
rule_trans(RuleCx *c)
{
    int64_t shape[MAX_RANK];
    if (!need_tile(c, 0) || !permute(c, opnd(c, 0), shape))
        return false;
    return shape_result(c, 0, tile_of(c, opnd(c, 0)->elem, opnd(c, 0)->rank, shape));
}

bool
rule_local_trans(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    int64_t shape[MAX_RANK];
    if (t->kind != TY_MEM || t->stages)
        return rule_fail(c, "needs one shared buffer, not %s", rule_str(c, t));
    return permute(c, t, shape) &&
           (rule_given(c, 0) || rule_fail(c, "needs a result type"));
}

bool
rule_join(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    int64_t shape[MAX_RANK + 1];
    if (opnd(c, 1) != t || !is_data(t) || t->rank == MAX_RANK)
        return rule_fail(c, "operands must be of one type, of rank below %d", MAX_RANK);
    for (int i = 0; i < t->rank; i++)
        shape[i] = t->shape[i];
    shape[t->rank] = 2;
    return shape_result(c, 0, tile_of(c, type_elem(t), t->rank + 1, shape));
}

bool
rule_split(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    if (t->kind != TY_TILE || t->shape[t->rank - 1] != 2)
        return rule_fail(c, "needs a tile whose last dimension is 2, not %s",
                         rule_str(c, t));
    const Type *r = t->rank == 1 ? t->elem : tile_of(c, t->elem, t->rank - 1, t->shape);
    return shape_result(c, 0, r) && shape_result(c, 1, r);
}

bool
rule_cat(RuleCx *c)
{
    const Type *a = opnd(c, 0), *b = opnd(c, 1);
    int64_t axis = attr_int(&c->op->attrs, ATTR_AXIS, 0), shape[MAX_RANK];
    if (!need_tile(c, 0) || !need_tile(c, 1))
        return false;
    if (a->rank != b->rank || a->elem != b->elem || axis < 0 || axis >= a->rank)
        return rule_fail(
            c, "operands must agree in rank and element; {axis} below the rank");
    for (int i = 0; i < a->rank; i++) {
        if (i != axis && a->shape[i] != b->shape[i])
            return rule_fail(c, "dimension %d differs: %lld and %lld", i,
                             (long long)a->shape[i], (long long)b->shape[i]);
        shape[i] = i == axis ? a->shape[i] + b->shape[i] : a->shape[i];
    }
    return shape_result(c, 0, tile_of(c, a->elem, a->rank, shape));
}

bool
rule_gather(RuleCx *c)
{
    const Type *a = opnd(c, 0), *b = opnd(c, 1);
    int64_t axis = attr_int(&c->op->attrs, ATTR_AXIS, -1);
    if (!need_tile(c, 0) || !need_tile(c, 1))
        return false;
    if (!type_is_int(b) || a->rank != b->rank || axis < 0 || axis >= a->rank)
        return rule_fail(c,
                         "needs an integer index tile of the source's rank and {axis}");
    for (int i = 0; i < a->rank; i++)
        if (i != axis && a->shape[i] != b->shape[i])
            return rule_fail(c, "dimension %d differs: %lld and %lld", i,
                             (long long)a->shape[i], (long long)b->shape[i]);
    return shape_result(c, 0, tile_of(c, a->elem, b->rank, b->shape));
}

static bool
reduced(RuleCx *c, bool keep)
{
    const Type *first = opnd(c, 0);
    int64_t axis = attr_int(&c->op->attrs, ATTR_AXIS, -1);
    if (c->op->nresult != c->op->noperand)
        return rule_fail(c, "needs as many results as operands");
    for (int i = 0; i < c->op->noperand; i++) {
        const Type *t = opnd(c, i);
        int64_t shape[MAX_RANK];
        int n = 0;
        if (!need_tile(c, i))
            return false;
        if (!type_same_shape(t, first) || axis < 0 || axis >= t->rank)
            return rule_fail(c, "operands must have one shape; {axis} below the rank");
        for (int k = 0; k < t->rank; k++)
            if (k != axis)
                shape[n++] = t->shape[k];
        const Type *r = keep ? t : n ? tile_of(c, t->elem, n, shape) : t->elem;
        if (!shape_result(c, i, r))
            return false;
    }
    return true;
}

bool
rule_reduce(RuleCx *c)
{
    return reduced(c, false);
}

bool
rule_scan(RuleCx *c)
{
    return reduced(c, true);
}

bool
rule_topk(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    if (!need_tile(c, 0))
        return false;
    return rule_rows_of(c, t, opnd(c, 0), TY_TILE);
}

bool
rule_histogram(RuleCx *c)
{
    const Type *t = rule_given(c, 0);
    if (!need_tile(c, 0) || opnd(c, 0)->rank != 1 || !type_is_int(opnd(c, 0)))
        return rule_fail(c, "needs a rank-1 integer tile");
    return (t && t->kind == TY_TILE && t->rank == 1) ||
           rule_fail(c, "needs a result type");
}

bool
rule_dot_elems(const Type *a, const Type *b, const Type *acc)
{
    bool all_float = type_is_float(a) && type_is_float(b) && type_is_float(acc);
    return all_float || (type_is_int(a) && type_is_int(b) && type_is_int(acc));
}

bool
rule_dot_sizes(RuleCx *c)
{
    const Type *a = opnd(c, 0), *b = opnd(c, 1), *acc = opnd(c, 2);
    int r = acc->rank;
    if (a->rank != r || b->rank != r || r < 2)
        return rule_fail(c, "operands must have one rank of at least 2");
    for (int i = 0; i < r - 2; i++)
        if (a->shape[i] != acc->shape[i] || b->shape[i] != acc->shape[i])
            return rule_fail(c, "batch dimension %d differs", i);
    if (a->shape[r - 1] != b->shape[r - 2])
        return rule_fail(c, "inner sizes must agree: %lld and %lld",
                         (long long)a->shape[r - 1], (long long)b->shape[r - 2]);
    if (a->shape[r - 2] != acc->shape[r - 2] || b->shape[r - 1] != acc->shape[r - 1])
        return rule_fail(c, "accumulator must be %lldx%lld, not %s",
                         (long long)a->shape[r - 2], (long long)b->shape[r - 1],
                         rule_str(c, acc));
    return rule_dot_elems(a->elem, b->elem, acc->elem) ||
           rule_fail(c, "elements must be numbers, all floats or all integers");
}

bool
rule_dot(RuleCx *c)
{
    if (!need_tile(c, 0) || !need_tile(c, 1) || !need_tile(c, 2) ||
        !rule_dot_sizes(c))
        return false;
    c->out[0] = opnd(c, 2);
    return true;
}

static bool
carried(RuleCx *c, int first)
{
    if (c->op->noperand - first != c->op->nresult)
        return rule_fail(c, "needs one result for each carried value");
    for (int i = 0; i < c->op->nresult; i++)
        c->out[i] = opnd(c, first + i);
    return true;
}

bool
rule_for(RuleCx *c)
{
    const Type *t = opnd(c, 0);
    if (t->kind != TY_SCALAR || !type_is_int(t) || opnd(c, 1) != t || opnd(c, 2) != t)
        return rule_fail(c, "bounds and step must be scalar integers of one type");
    return carried(c, 3);
}

bool
rule_while(RuleCx *c)
{
    (void)c; /* results follow the condition op of the first region */
    return true;
}

bool
rule_if(RuleCx *c)
{
    return rule_is_int(opnd(c, 0), 1) || rule_fail(c, "condition must be a scalar i1");
}

bool
rule_condition(RuleCx *c)
{
    return rule_is_int(opnd(c, 0), 1) || rule_fail(c, "condition must be a scalar i1");
}

static RuleFn *const rules[OP_COUNT] = {
#define OP(id, name, min, max, nres, nregion, traits, effects, rule, doc) \
    [OP_##id] = rule_##rule,
#include "ir/ops.def"
};

bool
op_infer(Session *s, const Op *op, const Type **types, Buf *why)
{
    const OpInfo *info = &op_info[op->kind];
    RuleCx c = {s, op, types, why};
    for (int i = 0; i < op->nresult; i++)
        types[i] = NULL;
    if (op->noperand < info->min || (info->max >= 0 && op->noperand > info->max))
        return rule_fail(&c, "%d operands, needs %d%s", op->noperand, info->min,
                         info->max == info->min ? "" : " or more");
    if (info->nres >= 0 && op->nresult != info->nres)
        return rule_fail(&c, "%d results, has %d", op->nresult, info->nres);
    return rules[op->kind](&c);
}
