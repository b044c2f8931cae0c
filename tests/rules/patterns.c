/* Rewrites that look for one pattern: made in all its forms, and nearly made, so that
   what is not quite the pattern stays what it is. */
#include "tests/rules/support/lab.h"

#include <stdio.h>
#include <stdlib.h>

enum { LANES = 8 };

static Value *
lanes(Lab *l)
{
    AttrList a = {0};
    int64_t n = LANES;
    const Type *t = lab_tile(l, SK_I32, 1, &n);
    attr_set_int(&l->s->mod, &a, ATTR_START, 0);
    return op_result(build_op(&l->b, OP_ARANGE, NULL, 0, &a, &t, 1), 0);
}

static const Type *
tile(Lab *l, ScalarKind k)
{
    int64_t n = LANES;
    return lab_tile(l, k, 1, &n);
}

static void
over(const char *name, LabMake *make, const char *passes, const char *target, int count)
{
    const char *first = getenv("RULES_SEED"), *more = getenv("RULES_COUNT");
    uint64_t seed = first ? strtoull(first, NULL, 10) : 0;
    count = more ? atoi(more) : count;
    for (int i = 0; i < count; i++)
        lab_check(&(LabTest){.name = name,
                             .make = make,
                             .passes = passes,
                             .target = target,
                             .may_refuse = true,
                             .seed = seed + (uint64_t)i,
                             .runs = 24});
}

/* ---- threshold: random bits as a float, against one bound */

static Value *
inverse_of(Lab *l, Value *x)
{
    Builder *b = &l->b;
    Value *minus_one = build_int(b, x->type, lab_random(l, 12) ? -1 : -2);
    Value *zero = build_int(b, x->type, 0), *one = build_int(b, x->type, 1);
    switch (lab_random(l, 3)) {
    case 0: return build_binary(b, OP_XOR, x, minus_one);
    case 1: return build_binary(b, OP_SUB, minus_one, x);
    default: return build_binary(b, OP_SUB, build_binary(b, OP_SUB, zero, x), one);
    }
}

/* The float that tl.rand makes of x, or nearly. */
static Value *
random_float(Lab *l, Value *x, ScalarKind k)
{
    Builder *b = &l->b;
    Value *zero = build_int(b, x->type, lab_random(l, 12) ? 0 : 1);
    Value *negative = build_cmp(b, OP_CMPI, lab_random(l, 12) ? "slt" : "sle", x, zero);
    Value *other = inverse_of(l, x);
    Value *y = lab_random(l, 12) ? build_select(b, negative, other, x)
                                 : build_select(b, negative, x, other);
    y = build_cast(b, lab_random(l, 12) ? OP_SITOF : OP_UITOF, y, lab_type(l, k));
    double scale = lab_random(l, 12) ? 0x1.fffffep-32 : 0x1p-31;
    scale = float_of_bits(k, bits_of_float(k, scale));
    return build_binary(b, OP_MULF, y, build_float(b, y->type, scale));
}

/* A bound near a float that occurs, or any number. */
static Value *
bound(Lab *l, Value *p, Value *x, ScalarKind k)
{
    Builder *b = &l->b;
    if (k != SK_F32 || type_bits(x->type) != 32 || lab_random(l, 4) == 0)
        return p;
    Value *most = build_int(b, x->type, INT32_MAX);
    Value *u = build_cast(b, OP_SITOF, build_binary(b, OP_AND, x, most), p->type);
    u = build_binary(b, OP_MULF, u, build_float(b, p->type, 0x1.fffffep-32));
    u = build_cast(b, OP_BITCAST, u, x->type);
    u = build_binary(b, OP_ADD, u, build_int(b, x->type, (int)lab_random(l, 5) - 2));
    return build_cast(b, OP_BITCAST, u, p->type);
}

static void
make_threshold(Lab *l)
{
    static const char *const preds[] = {"ogt", "oge", "olt", "ole", "oeq", "une"};
    ScalarKind ints = lab_random(l, 8) ? SK_I32 : SK_I64;
    ScalarKind floats = lab_random(l, 8) ? SK_F32 : lab_random(l, 2) ? SK_F64 : SK_F16;
    Value *x = lab_param(l, ints), *p = lab_param(l, floats);
    Value *at = lanes(l);
    if (ints == SK_I64)
        at = build_cast(&l->b, OP_SEXT, at, x->type);
    if (lab_random(l, 3) == 0) /* one after the other, or all over */
        at = build_binary(&l->b, OP_MUL, at, build_int(&l->b, at->type, 0x1f3d5b79));
    Value *bits = build_binary(&l->b, OP_ADD, build_splat(&l->b, x, tile(l, ints)), at);
    Value *u = random_float(l, bits, floats);
    Value *limit = build_splat(&l->b, bound(l, p, x, floats), u->type);
    for (int i = 0; i < 6; i++) {
        lab_keep(l, build_cmp(&l->b, OP_CMPF, preds[i], u, limit));
        lab_keep(l, build_cmp(&l->b, OP_CMPF, preds[i], limit, u));
    }
}

START_TEST(random_number_compared_with_a_constant)
{
    over("fold-rand-compare", make_threshold, "fold-rand-compare", NULL, 500);
    over("fold-rand-compare", make_threshold, "canon,cse,fold-rand-compare,canon", NULL,
         200);
}
END_TEST

/* ---- masked-off lanes and fusion: loads under masks, work, stores under masks */

static Value *
work(Lab *l, Value *v)
{
    static const OpKind ops[] = {OP_ADD, OP_MUL, OP_XOR, OP_SHRS, OP_MAXS, OP_AND};
    static const OpKind float_ops[] = {OP_ADDF, OP_MULF, OP_SUBF, OP_MAXF};
    int n = (int)lab_random(l, 4);
    for (int i = 0; i < n; i++) {
        Value *c = lab_const(l, v->type, lab_edge(l, type_elem(v->type)->scalar));
        Value *other = lab_random(l, 3) ? c : v;
        if (type_is_float(v->type))
            v = build_binary(&l->b, float_ops[lab_random(l, 4)], v, other);
        else
            v = build_binary(&l->b, ops[lab_random(l, 6)], v, other);
    }
    return v;
}

static Value *
any_mask(Lab *l, Value *x)
{
    static const char *const preds[] = {"slt", "ult", "ne"};
    Value *limit = build_binary(&l->b, OP_AND, x, build_int(&l->b, x->type, 15));
    return build_cmp(&l->b, OP_CMPI, preds[lab_random(l, 3)], lanes(l),
                     build_splat(&l->b, limit, tile(l, SK_I32)));
}

static Value *
splat_pointer(Lab *l, Value *p)
{
    const Type *t = type_like(l->s->types, tile(l, SK_I32), p->type);
    return build_binary(&l->b, OP_ADDPTR, build_splat(&l->b, p, t), lanes(l));
}

static ScalarKind
some_kind(Lab *l)
{
    static const ScalarKind kinds[] = {SK_I32, SK_F32, SK_I8,   SK_F16,
                                       SK_F64, SK_I64, SK_BF16, SK_F8E4};
    return kinds[lab_random(l, 8)];
}

/* Stores to another place than loads, one of several. */
static void
put(Lab *l, Value *v, Value *mask)
{
    ScalarKind k = type_elem(v->type)->scalar;
    Value *far = build_int(&l->b, lab_type(l, SK_I32), 4096 * ++l->kept);
    Value *p = build_binary(&l->b, OP_ADDPTR, l->memory[k], far);
    build_store(&l->b, splat_pointer(l, p), v, mask, NULL);
}

static void
make_masked_off(Lab *l)
{
    ScalarKind k = some_kind(l);
    Value *x = lab_param(l, SK_I32), *y = lab_param(l, SK_I32);
    Value *mask = any_mask(l, x), *other = any_mask(l, y);
    Value *p = splat_pointer(l, l->memory[k]);
    Value *v = build_load(&l->b, p, mask, NULL, NULL), *w = work(l, v);
    put(l, w, mask);
    switch (lab_random(l, 6)) {
    case 0: put(l, v, NULL); break;
    case 1: put(l, work(l, w), other); break;
    case 2: put(l, build_select(&l->b, other, v, w), mask); break;
    case 3:
        put(l, build_binary(&l->b, OP_AND, mask, other), NULL);
        put(l, w, build_binary(&l->b, OP_AND, mask, other));
        break;
    default: put(l, work(l, v), mask);
    }
}

START_TEST(masked_off)
{
    over("undef-masked", make_masked_off, "undef-masked", NULL, 300);
    over("undef-masked", make_masked_off, "canon,cse,undef-masked,canon,cse,dce", NULL,
         200);
}
END_TEST

static void
make_forward(Lab *l)
{
    ScalarKind k = some_kind(l);
    AttrList a = {0};
    Value *x = lab_param(l, SK_I32), *y = lab_param(l, SK_I32), *v[3];
    Value *mask = lab_random(l, 3) ? any_mask(l, x) : NULL;
    Value *other = lab_random(l, 6) ? mask : any_mask(l, y);
    Value *base = l->memory[k];
    attr_set_str(&l->s->mod, &a, ATTR_BUFFER, name_of(&l->s->names, "one.x"));
    const Type *t = base->type;
    base = op_result(build_op(&l->b, OP_HINT, &base, 1, &a, &t, 1), 0);
    Value *from = splat_pointer(l, l->memory[k == SK_I32 ? SK_F32 : SK_I32]);
    Value *p = splat_pointer(l, base);
    v[0] = build_load(&l->b, from, mask, NULL, NULL);
    if (type_elem(v[0]->type)->scalar != k)
        v[0] = lab_const(l, tile(l, k), lab_edge(l, k));
    build_store(&l->b, p, v[0], mask, NULL);
    Value *none =
        lab_random(l, 2) && other ? lab_const(l, v[0]->type, lab_edge(l, k)) : NULL;
    v[1] = build_load(&l->b, p, other, none, NULL);
    put(l, work(l, v[1]), lab_random(l, 2) ? other : NULL);
    if (lab_random(l, 2)) {
        build_store(&l->b, p, work(l, v[1]), other, NULL);
        v[2] = build_load(&l->b, p, other, NULL, NULL);
        put(l, v[2], lab_random(l, 2) ? mask : NULL);
    }
}

START_TEST(fused_loads_take_stored_values)
{
    over("fuse-forward", make_forward, "cse,fuse-forward", NULL, 500);
}
END_TEST

/* ---- modulo: rows that wrap around at the end of a matrix */

static Value *
begin(Lab *l, Value *x, int depth)
{
    Builder *b = &l->b;
    AttrList a = {0};
    const Type *i32 = lab_type(l, SK_I32);
    static const OpKind ops[] = {OP_ADD,  OP_SUB,  OP_MUL, OP_DIVS,
                                 OP_REMS, OP_MINS, OP_MAXS};
    attr_set_int(&l->s->mod, &a, ATTR_AXIS, 0);
    if (depth == 0 || lab_random(l, 4) == 0)
        switch (lab_random(l, 4)) {
        case 0: return x;
        case 1: return build_int(b, i32, (int)lab_random(l, 9) - 3);
        default: return op_result(build_op(b, OP_PROGRAM_ID, NULL, 0, &a, &i32, 1), 0);
        }
    OpKind k = ops[lab_random(l, 7)];
    Value *y = begin(l, x, depth - 1), *z = begin(l, x, depth - 1);
    /* what is divided by counts something */
    if (k == OP_DIVS || k == OP_REMS)
        z = build_int(b, i32, 1 + (int)lab_random(l, 5));
    return build_binary(b, k, y, z);
}

static void
make_modulo(Lab *l)
{
    Builder *b = &l->b;
    const Type *i32 = lab_type(l, SK_I32);
    Value *m = lab_param(l, SK_I32), *x = lab_param(l, SK_I32);
    /* sums that wrap are taken for ones that do not: small numbers */
    x = build_binary(b, OP_SHRS, x, build_int(b, i32, 24));
    Value *from = begin(l, x, (int)lab_random(l, 4));
    if (lab_random(l, 8))
        from = build_binary(b, OP_MUL, from, build_int(b, i32, LANES));
    Value *at = build_splat(b, from, tile(l, SK_I32)), *i = lanes(l);
    at = lab_random(l, 2) ? build_binary(b, OP_ADD, at, i)
                          : build_binary(b, OP_ADD, i, at);
    OpKind k = lab_random(l, 6) ? OP_REMS : OP_REMU;
    lab_keep(l, build_binary(b, k, at, build_splat(b, m, at->type)));
}

START_TEST(rows_that_wrap_at_a_multiple)
{
    over("assume-divisible", make_modulo, "assume-divisible", "sm_90a", 1500);
}
END_TEST

/* ---- carry: tiles of pointers that a loop moves by the same for all elements */

static Value *
step_of(Lab *l, Value *x)
{
    bool wide = lab_random(l, 2);
    const Type *t = tile(l, wide ? SK_I64 : SK_I32);
    if (lab_random(l, 2))
        return build_int(&l->b, t, (int)lab_random(l, 9) - 6);
    return build_splat(&l->b, wide ? build_cast(&l->b, OP_SEXT, x, type_elem(t)) : x, t);
}

static void
make_carry(Lab *l)
{
    Builder *b = &l->b;
    const Type *i32 = lab_type(l, SK_I32);
    Value *x = lab_param(l, SK_I32), *p = splat_pointer(l, l->memory[SK_I32]);
    x = build_binary(b, OP_SHRS, x, build_int(b, i32, 24));
    Value *lo = build_int(b, i32, 0), *hi = build_int(b, i32, lab_random(l, 5));
    Op *loop = build_for(b, lo, hi, build_int(b, i32, 1), &p, 1);
    Builder outer = *b;
    *b = builder_at_end(l->f, loop->regions[0]);
    Value *now = loop->regions[0]->args[1];
    put(l, build_load(b, now, NULL, NULL, NULL), NULL);
    for (uint32_t n = 1 + lab_random(l, 3); n > 0; n--)
        now = build_binary(b, OP_ADDPTR, now, step_of(l, x));
    build_yield(b, &now, 1);
    *b = outer;
    put(l, build_load(b, op_result(loop, 0), NULL, NULL, NULL), NULL);
}

START_TEST(carried_tiles_become_scalars)
{
    over("scalarize-induction", make_carry, "scalarize-induction", NULL, 200);
}
END_TEST

RULES_MAIN("patterns", random_number_compared_with_a_constant, masked_off,
           fused_loads_take_stored_values, rows_that_wrap_at_a_multiple,
           carried_tiles_become_scalars)
