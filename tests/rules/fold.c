/* Every rule of constant folding: bits of one flag and of 8 bits exhaustively, the other
   types at their edges, against C's own arithmetic. A rule may refuse only where the
   result is undefined, or for the few operations that are listed. */
#include "ir/fold.h"

#include "tests/rules/support/lab.h"

#include <math.h>

static const ScalarKind ints[] = {SK_I1, SK_I8, SK_I16, SK_I32, SK_I64};
static const ScalarKind floats[] = {SK_F16, SK_BF16, SK_F32, SK_F64};
static const OpKind int_ops[] = {OP_ADD,  OP_SUB,  OP_MUL,    OP_AND,   OP_OR,
                                 OP_XOR,  OP_SHL,  OP_SHRS,   OP_SHRU,  OP_MINS,
                                 OP_MAXS, OP_MINU, OP_MAXU,   OP_DIVS,  OP_DIVU,
                                 OP_REMS, OP_REMU, OP_MULHIS, OP_MULHIU};
static const OpKind float_ops[] = {OP_ADDF,  OP_SUBF, OP_MULF, OP_DIVF,
                                   OP_DIVRN, OP_MINF, OP_MAXF};
static const OpKind float_unary[] = {OP_NEGF, OP_ABSF, OP_FLOOR, OP_CEIL, OP_SQRTRN};
static const char *const int_preds[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                        "sge", "ult", "ule", "ugt", "uge"};
static const char *const float_preds[] = {"oeq", "une", "olt", "ole",
                                          "ogt", "oge", "uno"};

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

static void
nothing(Lab *l)
{
    (void)l;
}

static Lab
open(void)
{
    LabTest t = {.name = "fold", .make = nothing, .seed = 1};
    Lab l = lab_open(&t);
    l.b = builder_before(l.f->body->last);
    return l;
}

static Const
const_of(ScalarKind k, uint64_t bits)
{
    if (scalar_is_float(k))
        return (Const){.is_float = true, .f = float_of_bits(k, bits)};
    return (Const){.i = k == SK_I1 ? (int64_t)bits : bits_signed(scalar_bits(k), bits)};
}

/* The op folded on these bits, and evaluated. */
static void
agree(const Op *op, const uint64_t *in, bool may_refuse)
{
    Const c[3], out;
    uint64_t want, got;
    const Type *t = type_elem(op->results[0].type);
    for (int i = 0; i < op->noperand; i++)
        c[i] = const_of(type_elem(op_operand(op, i)->type)->scalar, in[i]);
    bool defined = eval_element(op, in, &want), folded = fold_op(op, c, &out);
    if (!defined)
        return;
    if (!folded && may_refuse)
        return;
    if (!folded) /* Check writes to a file at every assertion: too slow for millions */
        ck_abort_msg("%s of %s: not folded for 0x%llx, 0x%llx", op_info[op->kind].name,
                     kind_name(t->scalar), (unsigned long long)in[0],
                     (unsigned long long)in[1]);
    bool is_float = scalar_is_float(t->scalar);
    got = is_float ? bits_of_float(t->scalar, out.f)
                   : (uint64_t)out.i & bits_mask(scalar_bits(t->scalar));
    /* as build_int would hold it; a float exact, so that nothing is rounded again */
    bool exact = is_float ? isnan(out.f) || float_of_bits(t->scalar, got) == out.f
                          : out.i == const_of(t->scalar, want).i;
    if (out.is_float != is_float || !bits_same(t, got, want) || !exact)
        ck_abort_msg("%s of %s: 0x%llx, 0x%llx gives 0x%llx, not 0x%llx",
                     op_info[op->kind].name, kind_name(t->scalar),
                     (unsigned long long)in[0], (unsigned long long)in[1],
                     (unsigned long long)got, (unsigned long long)want);
}

static int
inputs_of(ScalarKind k, uint64_t *in)
{
    if (scalar_bits(k) > 8)
        return edges_of(k, in);
    int n = 1 << scalar_bits(k);
    for (int i = 0; i < n; i++)
        in[i] = (uint64_t)i;
    return n;
}

static void
pairs(Lab *l, const Op *op, ScalarKind k, bool may_refuse)
{
    uint64_t in[256];
    int n = inputs_of(k, in);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            agree(op, (uint64_t[]){in[i], in[j], in[i]}, may_refuse);
    for (int i = 0; i < 2000 && scalar_bits(k) > 8; i++)
        agree(op, (uint64_t[]){lab_edge(l, k), lab_edge(l, k), lab_edge(l, k)},
              may_refuse);
}

START_TEST(integer_ops_fold_as_in_c)
{
    Lab l = open();
    for (int i = 0; i < COUNT(ints); i++) {
        Value *x = lab_const(&l, lab_type(&l, ints[i]), 0);
        for (int k = 0; k < COUNT(int_ops); k++)
            pairs(&l, build_binary(&l.b, int_ops[k], x, x)->op, ints[i], false);
        for (int k = 0; k < COUNT(int_preds); k++)
            pairs(&l, build_cmp(&l.b, OP_CMPI, int_preds[k], x, x)->op, ints[i], false);
        pairs(&l, build_unary(&l.b, OP_ABSS, x)->op, ints[i], false);
    }
    lab_close(&l);
}
END_TEST

START_TEST(float_ops_fold_as_in_c)
{
    Lab l = open();
    for (int i = 0; i < COUNT(floats); i++) {
        ScalarKind t = floats[i];
        Value *x = lab_const(&l, lab_type(&l, t), 0);
        for (int k = 0; k < COUNT(float_ops); k++)
            pairs(&l, build_binary(&l.b, float_ops[k], x, x)->op, t, false);
        for (int k = 0; k < COUNT(float_preds); k++)
            pairs(&l, build_cmp(&l.b, OP_CMPF, float_preds[k], x, x)->op, t, false);
        for (int k = 0; k < COUNT(float_unary); k++)
            pairs(&l, build_unary(&l.b, float_unary[k], x)->op, t, false);
        Value *same[3] = {x, x, x};
        const Type *ty = x->type;
        Op *fma = build_op(&l.b, OP_FMA, same, 3, NULL, &ty, 1);
        pairs(&l, fma, t, t != SK_F64);
    }
    lab_close(&l);
}
END_TEST

/* What cast there is from one type to the other, of each kind. */
static int
casts_of(ScalarKind from, ScalarKind to, OpKind *out)
{
    int a = scalar_bits(from), b = scalar_bits(to), n = 0;
    bool ff = scalar_is_float(from), tf = scalar_is_float(to);
    if (!ff && !tf && a > b)
        out[n++] = OP_TRUNC;
    if (!ff && !tf && a < b) {
        out[n++] = OP_SEXT;
        out[n++] = OP_ZEXT;
    }
    if (ff && tf && a != b)
        out[n++] = a < b ? OP_FEXT : OP_FTRUNC;
    if (!ff && tf) {
        out[n++] = OP_SITOF;
        out[n++] = OP_UITOF;
    }
    if (ff && !tf)
        out[n++] = OP_FTOSI;
    return n;
}

static void
cast(Lab *l, ScalarKind from, ScalarKind to, OpKind kind)
{
    uint64_t in[256];
    Value *x = lab_const(l, lab_type(l, from), 0);
    const Op *op = build_cast(&l->b, kind, x, lab_type(l, to))->op;
    /* left open: what would round twice, and the least integer */
    bool may_refuse = kind == OP_FTOSI || kind == OP_SITOF || kind == OP_UITOF;
    int n = inputs_of(from, in);
    for (int i = 0; i < n; i++)
        agree(op, (uint64_t[]){in[i], 0}, may_refuse);
    for (int i = 0; i < 65536 && scalar_bits(from) == 16; i++)
        agree(op, (uint64_t[]){(uint64_t)i, 0}, may_refuse);
    for (int i = 0; i < 3000 && scalar_bits(from) > 16; i++)
        agree(op, (uint64_t[]){lab_edge(l, from), 0}, may_refuse);
}

START_TEST(casts_fold_as_in_c)
{
    static const ScalarKind all[] = {SK_I1,  SK_I8,   SK_I16, SK_I32, SK_I64,
                                     SK_F16, SK_BF16, SK_F32, SK_F64};
    Lab l = open();
    OpKind kinds[2];
    for (int i = 0; i < COUNT(all); i++)
        for (int j = 0; j < COUNT(all); j++) {
            int n = casts_of(all[i], all[j], kinds);
            for (int k = 0; k < n; k++)
                cast(&l, all[i], all[j], kinds[k]);
        }
    lab_close(&l);
}
END_TEST

static const ScalarKind narrow[] = {SK_F8E5, SK_F8E4, SK_F8E4B15};

/* To and from formats of 8 bits, which saturate: what `other=0.0` of a masked load is. */
START_TEST(narrow_casts)
{
    static const ScalarKind wide[] = {SK_F16, SK_BF16, SK_F32, SK_F64};
    Lab l = open();
    for (int i = 0; i < COUNT(narrow); i++)
        for (int j = 0; j < COUNT(wide); j++) {
            cast(&l, narrow[i], wide[j], OP_FEXT);
            cast(&l, wide[j], narrow[i], OP_FTRUNC);
        }
    lab_close(&l);
}
END_TEST

/* Formats of 8 bits have no other rule; whoever adds one has to add it here. */
START_TEST(narrow_floats_stay)
{
    Lab l = open();
    Const in[3] = {{.is_float = true, .f = 1}, {.is_float = true, .f = 2}}, out;
    for (int i = 0; i < COUNT(narrow); i++) {
        Value *x = build_float(&l.b, lab_type(&l, narrow[i]), 1);
        for (int k = 0; k < COUNT(float_ops); k++)
            ck_assert(!fold_op(build_binary(&l.b, float_ops[k], x, x)->op, in, &out));
        ck_assert(!fold_op(build_cmp(&l.b, OP_CMPF, "olt", x, x)->op, in, &out));
    }
    lab_close(&l);
}
END_TEST

/* The choice takes the condition's arm, of any type. */
START_TEST(selects_fold_to_an_arm)
{
    Lab l = open();
    Value *c = build_int(&l.b, lab_type(&l, SK_I1), 1);
    Value *i = build_int(&l.b, lab_type(&l, SK_I8), 1);
    Value *f = build_float(&l.b, lab_type(&l, SK_BF16), 1);
    const Op *of[] = {build_select(&l.b, c, i, i)->op, build_select(&l.b, c, f, f)->op};
    for (int k = 0; k < 2; k++)
        for (int b = 0; b < 2; b++) {
            agree(of[k], (uint64_t[]){(uint64_t)b, 0x80, 0x7f}, false);
            agree(of[k], (uint64_t[]){(uint64_t)b, 0, 0x80}, false);
        }
    lab_close(&l);
}
END_TEST

RULES_MAIN("fold", integer_ops_fold_as_in_c, float_ops_fold_as_in_c, casts_fold_as_in_c,
           narrow_casts, narrow_floats_stay, selects_fold_to_an_arm)
