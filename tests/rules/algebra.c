/* Identities of canonicalization: every operation with a constant on either side, with
   itself, twice in a row, casts of casts, choices. Constants of one and of 8 bits are all
   tried, on all arguments; of other types their edges. */
#include "tests/rules/support/lab.h"

#include <stdio.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static const ScalarKind ints[] = {SK_I1, SK_I8, SK_I16, SK_I32, SK_I64};
static const ScalarKind floats[] = {SK_F8E5, SK_F8E4, SK_F8E4B15, SK_F16,
                                    SK_BF16, SK_F32,  SK_F64};
static const OpKind int_ops[] = {OP_ADD,  OP_SUB,  OP_MUL,    OP_AND,   OP_OR,
                                 OP_XOR,  OP_SHL,  OP_SHRS,   OP_SHRU,  OP_MINS,
                                 OP_MAXS, OP_MINU, OP_MAXU,   OP_DIVS,  OP_DIVU,
                                 OP_REMS, OP_REMU, OP_MULHIS, OP_MULHIU};
static const OpKind float_ops[] = {OP_ADDF, OP_SUBF, OP_MULF,   OP_DIVF,  OP_DIVRN,
                                   OP_MINF, OP_MAXF, OP_MINNAN, OP_MAXNAN};
static const char *const int_preds[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                        "sge", "ult", "ule", "ugt", "uge"};
static const char *const float_preds[] = {"oeq", "une", "olt", "ole",
                                          "ogt", "oge", "uno"};

typedef struct Case {
    ScalarKind type;
    uint64_t c;
    OpKind op;
} Case;

static void
keep_int_choices(Lab *l, Value *x, Value *c, Value *y)
{
    Value *yes = build_int(&l->b, lab_type(l, SK_I1), 1);
    Value *no = build_int(&l->b, lab_type(l, SK_I1), 0);
    for (int i = 0; i < COUNT(int_preds); i++) {
        lab_keep(l, build_cmp(&l->b, OP_CMPI, int_preds[i], x, c));
        lab_keep(l, build_cmp(&l->b, OP_CMPI, int_preds[i], c, x));
        Value *m = build_cmp(&l->b, OP_CMPI, int_preds[i], x, y);
        lab_keep(l, build_binary(&l->b, OP_XOR, m, yes));
        lab_keep(l, build_binary(&l->b, OP_XOR, no, m));
        lab_keep(l, build_cmp(&l->b, OP_CMPI, int_preds[i], x, x));
        lab_keep(l, build_select(&l->b, m, c, y));
    }
    lab_keep(l, build_select(&l->b, yes, x, c));
    lab_keep(l, build_select(&l->b, no, x, c));
    Value *m = build_cmp(&l->b, OP_CMPI, "ult", x, y);
    lab_keep(l, build_select(&l->b, m, y, y));
}

static void
make_int(Lab *l)
{
    const Case *u = l->user;
    Value *x = lab_param(l, u->type), *y = lab_param(l, u->type);
    Value *c = lab_const(l, x->type, u->c);
    for (int i = 0; i < COUNT(int_ops); i++) {
        lab_keep(l, build_binary(&l->b, int_ops[i], x, c));
        lab_keep(l, build_binary(&l->b, int_ops[i], c, x));
        lab_keep(l, build_binary(&l->b, int_ops[i], x, x));
        Value *twice = build_binary(&l->b, int_ops[i], x, c);
        twice = build_binary(&l->b, int_ops[i], lab_const(l, x->type, u->c >> 1), twice);
        lab_keep(l, build_binary(&l->b, int_ops[(i + 3) % COUNT(int_ops)], twice, y));
    }
    keep_int_choices(l, x, c, y);
    if (u->type == SK_I32 || u->type == SK_I64) {
        Value *p = build_binary(&l->b, OP_ADDPTR, l->memory[SK_F64], c);
        lab_keep(l, build_cast(&l->b, OP_PTRTOINT, p, lab_type(l, SK_I64)));
    }
}

START_TEST(integer_ops_with_a_constant)
{
    for (int i = 0; i < COUNT(ints); i++) {
        uint64_t c[256];
        int bits = scalar_bits(ints[i]), n = bits > 8 ? edges_of(ints[i], c) : 1 << bits;
        for (int k = 0; k < n; k++) {
            Case u = {.type = ints[i], .c = bits > 8 ? c[k] : (uint64_t)k};
            lab_check(&(LabTest){.name = kind_name(ints[i]),
                                 .make = make_int,
                                 .user = &u,
                                 .passes = "canon",
                                 .seed = (uint64_t)k,
                                 .sweep = bits == 8 && k % 4 == 0,
                                 .runs = 40});
        }
    }
}
END_TEST

/* (x op c) op 0..255 */
static void
make_twice(Lab *l)
{
    const Case *u = l->user;
    Value *x = lab_param(l, SK_I8);
    Value *once = build_binary(&l->b, u->op, x, lab_const(l, x->type, u->c));
    for (uint64_t c = 0; c < 256; c++)
        lab_keep(l, build_binary(&l->b, u->op, once, lab_const(l, x->type, c)));
}

START_TEST(two_ops_with_constants)
{
    static const OpKind ops[] = {OP_ADD, OP_MUL, OP_AND, OP_OR, OP_XOR, OP_SHL, OP_SHRS};
    for (int i = 0; i < COUNT(ops); i++)
        for (int c = 0; c < 256; c += i < 5 ? 1 : 7) {
            Case u = {.op = ops[i], .c = (uint64_t)c};
            lab_check(&(LabTest){.name = op_info[ops[i]].name,
                                 .make = make_twice,
                                 .user = &u,
                                 .passes = "canon",
                                 .seed = (uint64_t)c,
                                 .runs = 4});
        }
}
END_TEST

static void
make_float(Lab *l)
{
    const Case *u = l->user;
    Value *x = lab_param(l, u->type), *y = lab_param(l, u->type);
    Value *c = lab_const(l, x->type, u->c);
    Value *yes = build_int(&l->b, lab_type(l, SK_I1), 1);
    for (int i = 0; i < COUNT(float_ops); i++) {
        lab_keep(l, build_binary(&l->b, float_ops[i], x, c));
        lab_keep(l, build_binary(&l->b, float_ops[i], c, x));
        lab_keep(l, build_binary(&l->b, float_ops[i], x, x));
        Value *twice = build_binary(&l->b, float_ops[i], x, c);
        lab_keep(l, build_binary(&l->b, float_ops[i], twice, c));
    }
    for (int i = 0; i < COUNT(float_preds); i++) {
        Value *m = build_cmp(&l->b, OP_CMPF, float_preds[i], x, c);
        lab_keep(l, build_cmp(&l->b, OP_CMPF, float_preds[i], c, x));
        lab_keep(l, build_cmp(&l->b, OP_CMPF, float_preds[i], x, x));
        lab_keep(l, build_binary(&l->b, OP_XOR, m, yes));
        lab_keep(l, build_select(&l->b, m, c, y));
    }
    lab_keep(l, build_unary(&l->b, OP_NEGF, build_unary(&l->b, OP_NEGF, x)));
    lab_keep(l, build_unary(&l->b, OP_ABSF, build_unary(&l->b, OP_NEGF, x)));
    lab_keep(l, build_select(&l->b, yes, x, c));
}

START_TEST(float_ops_with_a_constant)
{
    for (int i = 0; i < COUNT(floats); i++) {
        uint64_t c[256];
        int bits = scalar_bits(floats[i]), n = bits > 8 ? edges_of(floats[i], c) : 256;
        for (int k = 0; k < n; k++) {
            Case u = {.type = floats[i], .c = bits > 8 ? c[k] : (uint64_t)k};
            lab_check(&(LabTest){.name = kind_name(floats[i]),
                                 .make = make_float,
                                 .user = &u,
                                 .passes = "canon",
                                 .seed = (uint64_t)k,
                                 .runs = 50});
        }
    }
}
END_TEST

/* ---- casts of casts: from `type` through all others */

static int
casts_of(const Type *from, const Type *to, OpKind *out)
{
    int a = type_bits(from), b = type_bits(to), n = 0;
    bool ff = type_is_float(from), tf = type_is_float(to);
    if (!ff && !tf && a > b)
        out[n++] = OP_TRUNC;
    if (!ff && !tf && a < b) {
        out[n++] = OP_SEXT;
        out[n++] = OP_ZEXT;
    }
    if (ff && tf && a != b)
        out[n++] = a < b ? OP_FEXT : OP_FTRUNC;
    if (ff != tf) {
        out[n++] = ff ? OP_FTOSI : OP_SITOF;
        out[n++] = ff ? OP_FTOUI : OP_UITOF;
    }
    if (a == b)
        out[n++] = OP_BITCAST;
    return n;
}

static const ScalarKind all[] = {SK_I1,   SK_I8,      SK_I16, SK_I32,  SK_I64, SK_F8E5,
                                 SK_F8E4, SK_F8E4B15, SK_F16, SK_BF16, SK_F32, SK_F64};

static Value *
convert(Lab *l, OpKind k, Value *x, const Type *to, bool toward_zero)
{
    AttrList a = {0};
    if (k == OP_FTRUNC && toward_zero)
        attr_set_str(&l->s->mod, &a, ATTR_ROUND, name_of(&l->s->names, "rtz"));
    return op_result(build_op(&l->b, k, &x, 1, &a, &to, 1), 0);
}

static void
make_casts(Lab *l)
{
    const Case *u = l->user;
    OpKind first[4], second[4];
    Value *x = lab_param(l, u->type);
    const Type *from = x->type;
    for (int i = 0; i < COUNT(all); i++) {
        const Type *middle = lab_type(l, all[i]);
        int n = casts_of(from, middle, first);
        for (int j = 0; j < n; j++) {
            Value *y = convert(l, first[j], x, middle, u->c != 0);
            for (int k = 0; k < COUNT(all); k++) {
                const Type *to = lab_type(l, all[k]);
                int m = casts_of(middle, to, second);
                for (int h = 0; h < m; h++)
                    lab_keep(l, convert(l, second[h], y, to, u->c > 1));
            }
        }
    }
}

START_TEST(casts_of_casts)
{
    for (int i = 0; i < COUNT(all); i++)
        for (uint64_t round = 0; round < 3; round++) {
            Case u = {.type = all[i], .c = round};
            bool byte = scalar_bits(all[i]) == 8;
            lab_check(&(LabTest){.name = kind_name(all[i]),
                                 .make = make_casts,
                                 .user = &u,
                                 .passes = "canon",
                                 .seed = round,
                                 .sweep = byte && round == 0,
                                 .runs = 60});
        }
}
END_TEST

static void
make_addresses(Lab *l)
{
    const Type *i64 = lab_type(l, SK_I64);
    Value *x = lab_param(l, SK_I64), *i = lab_param(l, SK_I32);
    Value *p = l->memory[SK_F32], *q = l->memory[SK_I8];
    Value *back = build_cast(&l->b, OP_INTTOPTR, x, p->type);
    lab_keep(l, build_cast(&l->b, OP_PTRTOINT, back, i64));
    Value *there = build_cast(&l->b, OP_PTRTOINT, p, i64);
    Value *again = build_cast(&l->b, OP_INTTOPTR, there, p->type);
    lab_keep(l, build_cast(&l->b, OP_PTRTOINT, again, i64));
    again = build_cast(&l->b, OP_INTTOPTR, there, q->type);
    again = build_binary(&l->b, OP_ADDPTR, again, i);
    lab_keep(l, build_cast(&l->b, OP_PTRTOINT, again, i64));
    Value *other =
        build_cast(&l->b, OP_BITCAST, build_cast(&l->b, OP_BITCAST, p, q->type),
                   l->memory[SK_F64]->type);
    other = build_binary(&l->b, OP_ADDPTR, other, build_int(&l->b, i64, 3));
    lab_keep(l, build_cast(&l->b, OP_PTRTOINT, other, i64));
    lab_keep(l, build_cmp(&l->b, OP_CMPI, "ult", p, back));
}

START_TEST(pointer_arithmetic)
{
    lab_check(&(LabTest){
        .name = "addresses", .make = make_addresses, .passes = "canon", .runs = 50});
}
END_TEST

/* Permutations of permutations. */
static void
make_transposes(Lab *l)
{
    static const int64_t perms[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                        {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const int64_t n = 32, shape[3] = {2, 4, 4};
    AttrList a = {0};
    const Type *t = lab_tile(l, SK_I32, 1, &n);
    attr_set_int(&l->s->mod, &a, ATTR_START, 0);
    Value *x = op_result(build_op(&l->b, OP_ARANGE, NULL, 0, &a, &t, 1), 0);
    x = build_reshape(&l->b, x, 3, shape);
    for (int i = 0; i < 36; i++) {
        Value *y = build_trans(&l->b, build_trans(&l->b, x, perms[i / 6]), perms[i % 6]);
        lab_keep(l, build_reshape(&l->b, y, 1, &n));
    }
}

START_TEST(permutations_of_permutations)
{
    lab_check(&(LabTest){
        .name = "transposes", .make = make_transposes, .passes = "canon", .runs = 1});
}
END_TEST

RULES_MAIN("algebra", permutations_of_permutations, integer_ops_with_a_constant,
           two_ops_with_constants, float_ops_with_a_constant, casts_of_casts,
           pointer_arithmetic)
