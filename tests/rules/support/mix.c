/* See mix.h. Values are picked by type out of a pool; a statement that finds none that
   fit is left out. Tiles have one of five shapes, so that most of them meet. */
#include "tests/rules/support/mix.h"

#include <string.h>

enum { SHAPES = 5, CARRIED = 2 };

static const int64_t shapes[SHAPES][2] = {{8}, {1, 8}, {4, 1}, {4, 8}, {8, 4}};
static const int ranks[SHAPES] = {1, 2, 2, 2, 2};

typedef struct Maker {
    Lab *l;
    const Mix *mix;
    Value *pool[MIX_VALUES];
    int n, depth, left;
} Maker;

static uint32_t
dice(Maker *m, uint32_t n)
{
    return lab_random(m->l, n);
}

static void
add(Maker *m, Value *v)
{
    if (m->n < MIX_VALUES)
        m->pool[m->n++] = v;
}

static ScalarKind
int_kind(Maker *m)
{
    static const ScalarKind kinds[] = {SK_I8, SK_I16, SK_I32, SK_I64};
    if (m->mix->counter != SK_NONE && dice(m, 4))
        return m->mix->counter;
    return kinds[dice(m, 4)];
}

static ScalarKind
float_kind(Maker *m)
{
    static const ScalarKind kinds[] = {SK_F32, SK_F16, SK_BF16, SK_F32, SK_F64, SK_F8E5};
    return kinds[dice(m, 6)];
}

static const Type *
shaped(Maker *m, ScalarKind k)
{
    uint32_t s = m->mix->tiles ? dice(m, SHAPES + 4) : SHAPES;
    return s < SHAPES ? lab_tile(m->l, k, ranks[s], shapes[s]) : lab_type(m->l, k);
}

/* A value of the type, later ones rather; NULL when there is none. */
static Value *
pick(Maker *m, const Type *t)
{
    Value *fit[MIX_VALUES];
    int n = 0;
    for (int i = 0; i < m->n; i++)
        if (m->pool[i]->type == t)
            fit[n++] = m->pool[i];
    if (!n)
        return NULL;
    int late = dice(m, 3) && n > 3 ? n - 3 : 0;
    return fit[late + (int)dice(m, (uint32_t)(n - late))];
}

/* A number of more than one bit; of one bit sometimes, where flag says so. */
static Value *
any_int(Maker *m, bool flag)
{
    Value *v = m->pool[dice(m, (uint32_t)m->n)];
    int least = flag && dice(m, 4) == 0 ? 1 : 2;
    for (int i = 0; i < 20 && (!type_is_int(v->type) || type_bits(v->type) < least); i++)
        v = m->pool[dice(m, (uint32_t)m->n)];
    return type_is_int(v->type) && type_bits(v->type) >= least ? v : NULL;
}

static Value *
number(Maker *m, const Type *t)
{
    static const int64_t small[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 32, -1, -2, -8};
    const Type *e = type_elem(t);
    if (type_is_float(t))
        return lab_const(m->l, t, lab_edge(m->l, e->scalar));
    if (dice(m, 4))
        return build_int(&m->l->b, t, small[dice(m, sizeof small / sizeof *small)]);
    return lab_const(m->l, t, lab_edge(m->l, e->scalar));
}

/* A value of the type or a number. */
static Value *
operand(Maker *m, const Type *t)
{
    Value *v = dice(m, 3) ? pick(m, t) : NULL;
    return v ? v : number(m, t);
}

static Value *
as_tile(Maker *m, Value *scalar, const Type *shape)
{
    if (!type_is_tile(shape))
        return scalar;
    return build_splat(&m->l->b, scalar, type_like(m->l->s->types, shape, scalar->type));
}

static const Type *
like(Maker *m, const Type *shape, ScalarKind k)
{
    return type_like(m->l->s->types, shape, lab_type(m->l, k));
}

/* ---- arithmetic */

static void
int_op(Maker *m)
{
    static const OpKind ops[] = {OP_ADD,  OP_SUB,  OP_MUL,  OP_AND,  OP_OR,    OP_XOR,
                                 OP_SHL,  OP_SHRS, OP_SHRU, OP_MINS, OP_MAXS,  OP_MINU,
                                 OP_MAXU, OP_DIVS, OP_DIVU, OP_REMS, OP_REMU,  OP_ADD,
                                 OP_SUB,  OP_ADD,  OP_AND,  OP_OR,   OP_MULHIS};
    Value *x = any_int(m, true);
    if (!x)
        return;
    Value *y = operand(m, x->type);
    bool swap = dice(m, 3) == 0;
    OpKind k = ops[dice(m, sizeof ops / sizeof *ops)];
    add(m, build_binary(&m->l->b, k, swap ? y : x, swap ? x : y));
}

static void
float_op(Maker *m)
{
    static const OpKind ops[] = {OP_ADDF, OP_SUBF, OP_MULF,   OP_DIVRN,
                                 OP_MINF, OP_MAXF, OP_MAXNAN, OP_ADDF};
    Value *x = pick(m, shaped(m, float_kind(m)));
    if (x)
        add(m, build_binary(&m->l->b, ops[dice(m, 8)], x, operand(m, x->type)));
}

static void
compare(Maker *m)
{
    static const char *const preds[] = {"slt", "sge", "ult", "slt", "sgt", "sle",
                                        "uge", "ugt", "ule", "eq",  "ne"};
    static const char *const float_preds[] = {"olt", "oge", "oeq", "une", "uno"};
    Value *x = m->mix->floats && dice(m, 6) == 0 ? pick(m, shaped(m, float_kind(m)))
                                                 : any_int(m, true);
    if (!x)
        return;
    Value *y = operand(m, x->type);
    if (type_is_float(x->type))
        add(m, build_cmp(&m->l->b, OP_CMPF, float_preds[dice(m, 5)], x, y));
    else
        add(m, build_cmp(&m->l->b, OP_CMPI, preds[dice(m, 11)], x, y));
}

static const char *
order(Maker *m)
{
    static const char *const preds[] = {"slt", "sle", "sgt", "sge", "ult", "uge", "eq"};
    return preds[dice(m, 7)];
}

/* Comparisons of numbers that have to do with one another, on the edge of having one
   answer. */
static void
relate(Maker *m, Value *x, Value *y)
{
    Builder *b = &m->l->b;
    const Type *t = x->type;
    Value *small = build_int(b, t, (int64_t)dice(m, 4) - 1);
    Value *moved = build_binary(b, dice(m, 2) ? OP_ADD : OP_SUB, y, small);
    add(m, build_cmp(b, OP_CMPI, order(m), x, y));
    add(m,
        build_cmp(b, OP_CMPI, order(m), dice(m, 2) ? x : moved, dice(m, 2) ? y : moved));
}

static void
derive(Maker *m)
{
    static const OpKind ops[] = {OP_DIVS, OP_DIVU, OP_MINS, OP_MAXS, OP_REMS,
                                 OP_ADD,  OP_SHRS, OP_MINU, OP_SUB};
    Builder *b = &m->l->b;
    Value *x = any_int(m, false);
    if (!x)
        return;
    Value *c = build_int(b, x->type, 1 + (int64_t)dice(m, 9));
    OpKind k = ops[dice(m, 9)];
    Value *y = build_binary(b, k, x, dice(m, 4) ? c : operand(m, x->type));
    add(m, y);
    relate(m, x, y);
    if (k == OP_DIVS || k == OP_DIVU) {
        y = build_binary(b, OP_MUL, y, c);
        relate(m, y, x);
        relate(m, build_binary(b, OP_SUB, x, y), c);
    }
}

static Value *
mask_of(Maker *m, const Type *shape)
{
    return pick(m, like(m, shape, SK_I1));
}

static void
join_masks(Maker *m)
{
    static const OpKind ops[] = {OP_AND, OP_OR, OP_AND, OP_XOR};
    const Type *t = shaped(m, SK_I1);
    Value *x = pick(m, t);
    if (x)
        add(m, build_binary(&m->l->b, ops[dice(m, 4)], x, operand(m, t)));
}

static void
choose(Maker *m)
{
    const Type *t =
        shaped(m, m->mix->floats && dice(m, 3) == 0 ? float_kind(m) : int_kind(m));
    Value *c = mask_of(m, t);
    if (c)
        add(m, build_select(&m->l->b, c, operand(m, t), operand(m, t)));
}

static void
convert(Maker *m)
{
    Value *x = m->pool[dice(m, (uint32_t)m->n)];
    if (type_is_ptr(x->type))
        return;
    bool to_float = m->mix->floats && dice(m, 3) == 0;
    const Type *to = lab_type(m->l, to_float ? float_kind(m) : int_kind(m));
    int a = type_bits(x->type), b = type_bits(to);
    OpKind k;
    if (type_is_float(x->type))
        k = !to_float ? (dice(m, 2) ? OP_FTOSI : OP_FTOUI)
            : a < b   ? OP_FEXT
            : a > b   ? OP_FTRUNC
                      : OP_BITCAST;
    else if (to_float)
        k = dice(m, 2) ? OP_SITOF : OP_UITOF;
    else
        k = a > b ? OP_TRUNC : a == b ? OP_BITCAST : dice(m, 2) ? OP_SEXT : OP_ZEXT;
    add(m, build_cast(&m->l->b, k, x, to));
}

/* ---- shapes */

static Value *
lanes(Maker *m, ScalarKind k, int64_t n, int64_t start)
{
    AttrList a = {0};
    const Type *t = lab_tile(m->l, SK_I32, 1, &n), *elem = lab_type(m->l, k);
    attr_set_int(&m->l->s->mod, &a, ATTR_START, start);
    Value *v = op_result(build_op(&m->l->b, OP_ARANGE, NULL, 0, &a, &t, 1), 0);
    return k == SK_I32 ? v
                       : build_cast(&m->l->b, k == SK_I64 ? OP_SEXT : OP_TRUNC, v, elem);
}

static void
arange(Maker *m)
{
    ScalarKind k = int_kind(m);
    int64_t start = dice(m, 3) ? 0 : (int64_t)dice(m, 5) * 4;
    if (dice(m, 2))
        add(m, lanes(m, k, 8, start));
    else if (dice(m, 2))
        add(m, build_expand_dims(&m->l->b, lanes(m, k, 8, start), 0));
    else
        add(m, build_expand_dims(&m->l->b, lanes(m, k, 4, start), 1));
}

static void
reshape(Maker *m)
{
    Value *x = m->pool[dice(m, (uint32_t)m->n)];
    const Type *t = x->type;
    Builder *b = &m->l->b;
    if (!type_is_tile(t))
        add(m, as_tile(m, x, lab_tile(m->l, SK_I1, 2, shapes[1 + dice(m, 3)])));
    else if (t->rank == 1)
        add(m,
            dice(m, 2) ? build_expand_dims(b, x, 0) : build_reshape(b, x, 2, shapes[1]));
    else if (t->shape[0] == 1)
        add(m, dice(m, 2) ? build_broadcast(b, x, shapes[3])
                          : build_reshape(b, x, 1, shapes[0]));
    else if (t->shape[1] == 1)
        add(m, build_broadcast(b, x, shapes[3]));
    else if (dice(m, 2))
        add(m, build_trans(b, x, (const int64_t[]){1, 0}));
    else
        add(m, build_reshape(b, x, 2, shapes[t->shape[0] == 8 ? 3 : 4]));
}

/* ---- memory */

/* A small number of any sign: offsets of accesses. */
static Value *
offsets(Maker *m, const Type *shape)
{
    Value *x = pick(m, like(m, shape, SK_I32));
    if (!x)
        return number(m, like(m, shape, SK_I32));
    return x;
}

/* New ones, or some that were made before and perhaps moved by a loop. */
static Value *
addresses(Maker *m, ScalarKind k, const Type *shape)
{
    const Type *t = type_like(m->l->s->types, shape, m->l->memory[k]->type);
    Value *p = dice(m, 2) ? pick(m, t) : NULL;
    if (p)
        return p;
    p = build_binary(&m->l->b, OP_ADDPTR, as_tile(m, m->l->memory[k], shape),
                     offsets(m, shape));
    if (type_is_tile(t))
        add(m, p);
    return p;
}

static void
load(Maker *m)
{
    ScalarKind k = m->mix->floats && dice(m, 2) ? float_kind(m) : int_kind(m);
    const Type *t = shaped(m, k);
    Value *p = addresses(m, k, t), *mask = dice(m, 4) ? mask_of(m, t) : NULL;
    Value *other = mask && dice(m, 2) ? operand(m, t) : NULL;
    add(m, build_load(&m->l->b, p, mask, other, NULL));
}

static void
store(Maker *m)
{
    Value *v = m->pool[dice(m, (uint32_t)m->n)];
    if (type_is_ptr(v->type))
        return;
    /* far from what is loaded: loads of parts of what was stored say nothing */
    Value *at = build_int(&m->l->b, lab_type(m->l, SK_I64), INT64_C(1) << 33);
    Value *p =
        build_binary(&m->l->b, OP_ADDPTR, m->l->memory[type_elem(v->type)->scalar], at);
    p = build_binary(&m->l->b, OP_ADDPTR, as_tile(m, p, v->type), offsets(m, v->type));
    build_store(&m->l->b, p, v, dice(m, 3) ? mask_of(m, v->type) : NULL, NULL);
}

/* ---- control */

static void statements(Maker *m, int n);

/* Lanes of a loop's tile in front of its end, said in one of several ways. */
static void
tail_mask(Maker *m, Value *iv, Value *hi)
{
    Builder *b = &m->l->b;
    ScalarKind k = iv->type->scalar;
    Value *lane = lanes(m, k, 8, 0);
    const Type *t = lane->type;
    Value *at = build_binary(b, OP_ADD, build_splat(b, iv, t), lane);
    Value *end = build_splat(b, hi, t), *mask;
    if (dice(m, 2))
        mask = build_cmp(b, OP_CMPI, dice(m, 4) ? "slt" : "ult", at, end);
    else if (dice(m, 2))
        mask = build_cmp(b, OP_CMPI, "slt", lane,
                         build_splat(b, build_binary(b, OP_SUB, hi, iv), t));
    else
        mask = build_cmp(b, OP_CMPI, "sgt", end, at);
    add(m, at);
    add(m, mask);
    if (dice(m, 2))
        add(m, build_expand_dims(b, mask, 0));
    /* and any use of what it chooses */
    Value *x = build_select(b, mask, number(m, t), operand(m, t));
    add(m, x);
    add(m, build_binary(b, dice(m, 2) ? OP_AND : OP_OR, x, operand(m, t)));
}

/* What a loop carries, a step further: by the same in all elements, mostly. */
static Value *
moved(Maker *m, Value *v)
{
    bool ptr = type_is_ptr(v->type);
    const Type *t = ptr ? like(m, v->type, dice(m, 2) ? SK_I32 : SK_I64) : v->type;
    OpKind k = ptr ? OP_ADDPTR : dice(m, 3) ? OP_ADD : OP_SUB;
    for (uint32_t n = dice(m, 3) + 1; n > 0; n--) {
        Value *by = dice(m, 6) ? number(m, t) : operand(m, t);
        Value *scalar = pick(m, type_elem(t));
        if (scalar && type_is_tile(t) && dice(m, 3) == 0)
            by = build_splat(&m->l->b, scalar, t);
        v = build_binary(&m->l->b, k, v, by);
    }
    return v;
}

static void
loop(Maker *m)
{
    static const int64_t steps[] = {8, 8, 1, 4, 3, 16, 2, -1, -4};
    Builder *b = &m->l->b;
    const Type *t = lab_type(m->l, int_kind(m));
    int64_t by = steps[dice(m, 9)];
    Value *hi = operand(m, t), *lo = build_int(b, t, dice(m, 3) ? 0 : dice(m, 20));
    if (dice(m, 5) == 0)
        lo = build_binary(b, OP_AND, operand(m, t), build_int(b, t, 7));
    if (dice(m, 3)) /* mostly short */
        hi = build_binary(b, OP_AND, hi, build_int(b, t, dice(m, 2) ? 31 : 24));
    if (by < 0) {
        Value *first = hi;
        hi = lo;
        lo = first;
    }
    int carried = (int)dice(m, CARRIED + 1), before = m->n;
    Value *inits[CARRIED], *last[CARRIED];
    for (int i = 0; i < carried; i++)
        inits[i] = m->pool[dice(m, (uint32_t)m->n)];
    Value *step = build_int(b, t, by);
    Op *op = build_for(b, lo, hi, step, inits, carried);
    Builder outer = *b;
    *b = builder_at_end(m->l->f, op->regions[0]);
    for (int i = 0; i <= carried; i++)
        add(m, op->regions[0]->args[i]);
    if (by > 0 && m->mix->tiles)
        tail_mask(m, op->regions[0]->args[0], hi);
    m->depth++;
    statements(m, 4 + (int)dice(m, 10));
    m->depth--;
    for (int i = 0; i < carried; i++) {
        Value *v = pick(m, inits[i]->type);
        if (type_is_ptr(v->type) || (dice(m, 2) && type_is_int(v->type)))
            v = moved(m, op->regions[0]->args[i + 1]);
        last[i] = v;
    }
    build_yield(b, last, carried);
    *b = outer;
    m->n = before;
    for (int i = 0; i < carried; i++)
        add(m, op_result(op, i));
}

static void
condition(Maker *m)
{
    Builder *b = &m->l->b;
    Value *c = pick(m, lab_type(m->l, SK_I1)), *v[2];
    const Type *t = shaped(m, int_kind(m));
    if (!c)
        return;
    Op *op = build_if(b, c, &t, 1);
    Builder outer = *b;
    int before = m->n;
    for (int i = 0; i < 2; i++) {
        *b = builder_at_end(m->l->f, op->regions[i]);
        m->depth++;
        if (value_def(c, OP_CMPI) && type_is_int(op_operand(c->op, 0)->type))
            relate(m, op_operand(c->op, 0), op_operand(c->op, 1));
        statements(m, (int)dice(m, 6));
        m->depth--;
        v[i] = operand(m, t);
        build_yield(b, &v[i], 1);
        m->n = before;
    }
    *b = outer;
    add(m, op_result(op, 0));
}

static void
promise(Maker *m)
{
    Value *c = pick(m, lab_type(m->l, SK_I1));
    if (c)
        build_op(&m->l->b, OP_ASSUME, &c, 1, NULL, NULL, 0);
}

static void
statement(Maker *m)
{
    const Mix *x = m->mix;
    uint32_t d = dice(m, 40);
    if (d < 10)
        int_op(m);
    else if (d < 12)
        derive(m);
    else if (d < 17)
        compare(m);
    else if (d < 20)
        choose(m);
    else if (d < 22)
        join_masks(m);
    else if (d < 25)
        convert(m);
    else if (d < 28 && x->tiles)
        reshape(m);
    else if (d < 30 && x->tiles)
        arange(m);
    else if (d < 32 && x->floats)
        float_op(m);
    else if (d < 34 && x->memory)
        load(m);
    else if (d < 36 && x->memory)
        store(m);
    else if (d < 38 && x->control && m->depth < 2)
        loop(m);
    else if (d == 38 && x->control && m->depth < 3)
        condition(m);
    else if (d == 39 && x->control && dice(m, 3) == 0)
        promise(m);
}

static void
statements(Maker *m, int n)
{
    for (int i = 0; i < n && m->left > 0; i++, m->left--)
        statement(m);
    Value *last = m->n ? m->pool[m->n - 1] : NULL;
    if (m->depth && last &&
        !type_is_ptr(last->type)) /* of every body something is seen */
        lab_keep(m->l, last);
}

void
mix_make(Lab *l)
{
    Maker m = {.l = l, .mix = l->user, .left = 200};
    for (int i = 0; i < 4; i++)
        add(&m, lab_param(l, int_kind(&m)));
    add(&m, lab_param(l, SK_I1));
    add(&m, build_cmp(&l->b, OP_CMPI, "slt", m.pool[0], number(&m, m.pool[0]->type)));
    if (m.mix->floats)
        for (int i = 0; i < 2; i++)
            add(&m, lab_param(l, float_kind(&m)));
    if (m.mix->tiles)
        arange(&m);
    statements(&m, m.mix->statements);
    for (int i = m.n > 24 ? m.n - 24 : 0; i < m.n; i++)
        if (!type_is_ptr(m.pool[i]->type))
            lab_keep(l, m.pool[i]);
}
