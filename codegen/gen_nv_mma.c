/* Dots by mma.sync, in the fragments that the layout pass chose.

   The instruction is inline assembly, convergent and without side effects: one table
   (codegen/mma.def) covers every type.

   fp32 can be computed from dots of shorter numbers (input_precision). Each operand
   is split into parts, x = p0 + p1 (+ p2), every part as near to what is left as its type
   allows; of the dots of parts the large ones are added, the smallest first:

       tf32x3, bf16x3:  p1 q0 + p0 q1 + p0 q0
       bf16x6:          p2 q0 + p1 q1 + p0 q2 + p1 q0 + p0 q1 + p0 q0

   Where p0 is infinite p1 is not a number, or 0 * p0 is: so all but the last dot have
   a sum of their own, of which NaN counts as 0. The last one says what is not finite.

   Hopper's mma.sync has no 8-bit floats: ptxas makes two instructions of f16 of one, and
   four additions, since it begins each with zeros. So the two are issued here, without.
   The four k of a word are two of the first half of k and two of the second one then, in
   both operands alike. */
#include "codegen/gen_nv_dot.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

#include <stdio.h>
#include <string.h>

static const Mma mmas[] = {
#define MMA(a, b, acc, shape, types, k, bits, sm, ptx)                                   \
    {shape, types, k, bits, SK_##a, SK_##b, SK_##acc, sm, ptx},
#include "codegen/mma.def"
};

static const Mma *
mma_find(ScalarKind a, ScalarKind b, ScalarKind acc)
{
    for (int i = 0; i < COUNT_OF(mmas); i++)
        if (mmas[i].a == a && mmas[i].b == b && mmas[i].acc == acc)
            return &mmas[i];
    return NULL;
}

/* Is l the accumulator of m16n8 instructions? */
static bool
is_mma_acc(const Layout *l)
{
    enum { ROW, COL };
    static const struct {
        LayoutDim d;
        int bit, dim, at;
    } want[] = {{LD_REG, 0, COL, 0},  {LD_REG, 1, ROW, 3},  {LD_LANE, 0, COL, 1},
                {LD_LANE, 1, COL, 2}, {LD_LANE, 2, ROW, 0}, {LD_LANE, 3, ROW, 1},
                {LD_LANE, 4, ROW, 2}};
    if (l->rank < 2 || l->nbasis[LD_REG] < 2)
        return false;
    for (int i = 0; i < COUNT_OF(want); i++)
        if (l->basis[want[i].d][want[i].bit] !=
            1u << (layout_shift(l, l->rank - 2 + want[i].dim) + want[i].at))
            return false;
    return true;
}

static Split
split_of(const Op *op)
{
    static const char *const name[] = {
        [SPLIT_TF32X3] = "tf32x3", [SPLIT_BF16X3] = "bf16x3", [SPLIT_BF16X6] = "bf16x6"};
    Name said = attr_str(&op->attrs, ATTR_PRECISION);
    for (int i = 1; said && i < COUNT_OF(name); i++)
        if (strcmp(said, name[i]) == 0)
            return (Split)i;
    return SPLIT_NONE;
}

void
nv_find_mma(Multiply *p)
{
    const Type *a = op_operand(p->op, 0)->type, *acc = p->op->results[0].type;
    ScalarKind in = type_elem(a)->scalar;
    ScalarKind other = type_elem(op_operand(p->op, 1)->type)->scalar;
    Name said = attr_str(&p->op->attrs, ATTR_PRECISION);
    int r = acc->rank;
    p->m = p->wide = NULL;
    p->split = in == SK_F32 ? split_of(p->op) : SPLIT_NONE;
    if (in != other && (in == SK_F32 || other == SK_F32))
        return;
    if (in == SK_F32 && p->split == SPLIT_NONE && !(said && strcmp(said, "tf32") == 0))
        return;
    bool short_ = p->split == SPLIT_BF16X3 || p->split == SPLIT_BF16X6;
    const Mma *m = mma_find(short_ ? SK_BF16 : in, short_ ? SK_BF16 : other,
                            type_elem(acc)->scalar);
    if (m && is_mma_acc(acc->layout) && acc->shape[r - 2] >= 16 &&
        a->shape[r - 1] >= m->k && p->g->info.sm >= m->sm)
        p->m = m;
    if (p->m && (in == SK_F8E4 || in == SK_F8E5) && p->g->info.sm / 10 == 9)
        p->wide = mma_find(SK_F16, SK_F16, SK_F32);
}

int
nv_mma_kwidth(const Multiply *p)
{
    return p->m->bits < 32 ? 32 / p->m->bits : 1;
}

/* ---- one instruction */

static void
mark_convergent(Gen *g, LLVMValueRef call)
{
    unsigned kind = LLVMGetEnumAttributeKindForName("convergent", 10);
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(g->cx, kind, 0));
}

/* d = a * b + d; nd words of the accumulator. */
static void
issue_m16(Gen *g, const Mma *m, const LLVMValueRef *a, const LLVMValueRef *b,
          LLVMValueRef *d, int nd)
{
    LLVMTypeRef t = LLVMTypeOf(d[0]), all[4] = {t, t, t, t};
    const char c = t == g->f32 ? 'f' : 'r';
    char text[160], cons[80];
    LLVMValueRef args[10];
    int at = 0, n = 0;
    g->ptx = m->ptx > g->ptx ? m->ptx : g->ptx;
    snprintf(text, sizeof text,
             nd == 4 ? "mma.sync.aligned.%s.row.col.%s {$0, $1, $2, $3}, "
                       "{$4, $5, $6, $7}, {$8, $9}, {$0, $1, $2, $3};"
                     : "mma.sync.aligned.%s.row.col.%s {$0, $1}, {$2, $3, $4, $5}, "
                       "{$6, $7}, {$0, $1};",
             m->shape, m->types);
    for (int i = 0; i < nd; i++)
        at += snprintf(cons + at, sizeof cons - (size_t)at, "%s=%c", i ? "," : "", c);
    for (int i = 0; i < 6; i++) {
        args[n++] = i < 4 ? a[i] : b[i - 4];
        at += snprintf(cons + at, sizeof cons - (size_t)at, ",r");
    }
    for (int i = 0; i < nd; i++) {
        args[n++] = d[i];
        at += snprintf(cons + at, sizeof cons - (size_t)at, ",%d", i);
    }
    LLVMTypeRef result = LLVMStructTypeInContext(g->cx, all, (unsigned)nd, 0);
    LLVMValueRef call = ptx_asm(g, text, cons, result, args, n, false);
    mark_convergent(g, call);
    for (int i = 0; i < nd; i++)
        d[i] = LLVMBuildExtractValue(g->b, call, (unsigned)i, "");
}

/* Eight rows, columns and four of k at a time: a quarter of the others. */
static void
issue_f64(Gen *g, const Mma *m, const LLVMValueRef *a, const LLVMValueRef *b,
          LLVMValueRef *d)
{
    LLVMTypeRef f64 = LLVMDoubleTypeInContext(g->cx), all[2] = {f64, f64};
    LLVMTypeRef result = LLVMStructTypeInContext(g->cx, all, 2, 0);
    char text[120];
    snprintf(text, sizeof text,
             "mma.sync.aligned.%s.row.col.%s {$0, $1}, {$2}, {$3}, "
             "{$0, $1};",
             m->shape, m->types);
    for (int k = 0; k < 2; k++) {
        for (int half = 0; half < 4; half += 2) {
            LLVMValueRef args[4] = {a[half / 2 + 2 * k], b[k], d[half], d[half + 1]};
            LLVMValueRef call = ptx_asm(g, text, "=d,=d,d,d,0,1", result, args, 4, false);
            mark_convergent(g, call);
            for (unsigned i = 0; i < 2; i++)
                d[half + (int)i] = LLVMBuildExtractValue(g->b, call, i, "");
        }
    }
}

static void
issue(Gen *g, const Mma *m, const LLVMValueRef *a, const LLVMValueRef *b, LLVMValueRef *d)
{
    if (m->bits == 64)
        issue_f64(g, m, a, b, d);
    else
        issue_m16(g, m, a, b, d, m->acc == SK_F16 ? 2 : 4);
}

/* ---- operands in parts */

enum { MAX_PARTS = 3 };

typedef struct Term {
    int a, b; /* parts */
} Term;

static const struct {
    int parts, n;
    Term term[6];
} splits[] = {
    [SPLIT_NONE] = {1, 1, {{0, 0}}},
    [SPLIT_TF32X3] = {2, 3, {{1, 0}, {0, 1}, {0, 0}}},
    [SPLIT_BF16X3] = {2, 3, {{1, 0}, {0, 1}, {0, 0}}},
    [SPLIT_BF16X6] = {3, 6, {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}}},
};

int
nv_mma_terms(const Multiply *p)
{
    return splits[p->split].n * (p->m->bits == 64 ? 4 : 1);
}

/* The part of the fp32 number x that the instruction multiplies. */
static LLVMValueRef
leading_part(Gen *g, Split split, LLVMValueRef x)
{
    if (split != SPLIT_TF32X3)
        return gen_fcast(g, SK_F32, SK_BF16, false, x);
    LLVMValueRef word = LLVMBuildBitCast(g->b, x, g->i32, "");
    word = LLVMBuildAnd(g->b, word, ll_int(g->i32, (int32_t)0xffffe000), "");
    return LLVMBuildBitCast(g->b, word, g->f32, "");
}

static void
make_parts(Multiply *p, int op, Regs *out)
{
    Gen *g = p->g;
    const Regs *in = &p->r[op];
    int n = splits[p->split].parts;
    out[0] = *in;
    for (int k = 0; n > 1 && k < n; k++)
        out[k] = (Regs){in->n, arena_array(&g->s->tmp, LLVMValueRef, in->n)};
    for (int i = 0; n > 1 && i < in->n; i++) {
        LLVMValueRef rest = in->v[i];
        for (int k = 0; rest && k < n; k++) {
            LLVMValueRef part = leading_part(g, p->split, rest), wide = part;
            out[k].v[i] = part;
            if (p->split == SPLIT_TF32X3 && k == 1)
                out[k].v[i] = rest; /* the instruction cuts it off itself */
            if (k + 1 == n)
                break;
            if (p->split != SPLIT_TF32X3)
                wide = gen_fcast(g, SK_BF16, SK_F32, false, part);
            rest = LLVMBuildFSub(g->b, rest, wide, "");
        }
    }
}

/* ---- 8-bit floats as f16 */

/* Words of four into words of two: w[0] for the first instruction, w[1] for the second.
   The left operand has its two rows side by side. */
static void
widen_words(Gen *g, ScalarKind k, int op, LLVMValueRef w[2][4])
{
    PtxId id = k == SK_F8E4 ? PTX_E4M3X2_F16X2 : PTX_E5M2X2_F16X2;
    int n = op ? 2 : 4, rows = n / 2;
    LLVMValueRef in[4];
    for (int i = 0; i < n; i++)
        in[i] = w[0][i];
    for (int i = 0; i < n; i++)
        for (int half = 0; half < 2; half++) {
            LLVMValueRef v = LLVMBuildLShr(g->b, in[i], ll_int(g->i32, 16 * half), "");
            v = LLVMBuildTrunc(g->b, v, LLVMInt16TypeInContext(g->cx), "");
            v = LLVMBuildBitCast(g->b, ptx_call(g, id, &v, 1), g->i32, "");
            w[i / rows][i % rows + rows * half] = v;
        }
}

/* ---- the dot */

typedef struct Frag {
    LLVMValueRef word[MAX_PARTS][4];
} Frag;

typedef struct MmaSteps {
    Multiply *p;
    int depth;                /* instructions along k */
    Regs parts[2][MAX_PARTS]; /* of the operands */
    Map frags[2];             /* coordinates of the first + 1 -> Frag[depth] */
} MmaSteps;

static Frag *
fragments(MmaSteps *x, int op, uint32_t first)
{
    const Multiply *p = x->p;
    const void *key = (const void *)(uintptr_t)(first + 1);
    Frag *f = map_get(&x->frags[op], key);
    if (f)
        return f;
    f = arena_array(&p->g->s->tmp, Frag, x->depth);
    for (int k = 0; k < x->depth; k++) {
        for (int i = 0; i < splits[p->split].parts; i++)
            if (!nv_fragment(p->g, p->l[op], &x->parts[op][i], op, first,
                             (uint32_t)(k * p->m->k), p->m->bits, NULL, f[k].word[i]))
                return NULL;
        if (p->wide)
            widen_words(p->g, p->elem[op]->scalar, op, f[k].word);
    }
    map_set(&x->frags[op], key, f);
    return f;
}

/* The accumulators of one instruction: four registers of the result from `reg` on, or two
   pairs. */
typedef struct Block {
    int reg;
    const Frag *a, *b; /* one for each step along k */
    LLVMValueRef d[4];
} Block;

static bool
open_block(MmaSteps *x, int reg, Block *out)
{
    const Multiply *p = x->p;
    uint32_t c = layout_at(p->l[2], LD_REG, (uint32_t)reg);
    out->reg = reg;
    out->a = fragments(x, 0, nv_operand_at(p, 0, c));
    out->b = fragments(x, 1, nv_operand_at(p, 1, c));
    nv_acc_pack(p->g, &p->r[2].v[reg], 4, out->d);
    return out->a && out->b;
}

/* All dots but the last have a sum of their own, which is added where it is a number.
 */
static void
step_block(Multiply *p, Block *block, int k)
{
    Gen *g = p->g;
    const Frag *a = &block->a[k], *b = &block->b[k];
    int n = splits[p->split].n;
    LLVMValueRef zero = LLVMConstReal(g->f32, 0), small[4] = {zero, zero, zero, zero};
    for (int i = 0; p->wide && i < 2; i++)
        issue(g, p->wide, a->word[i], b->word[i], block->d);
    for (int i = 0; !p->wide && i < n; i++) {
        Term t = splits[p->split].term[i];
        issue(g, p->m, a->word[t.a], b->word[t.b], i + 1 < n ? small : block->d);
    }
    for (int i = 0; n > 1 && i < 4; i++) {
        LLVMValueRef is = LLVMBuildFCmp(g->b, LLVMRealORD, small[i], small[i], "");
        LLVMValueRef add = LLVMBuildSelect(g->b, is, small[i], zero, "");
        block->d[i] = LLVMBuildFAdd(g->b, block->d[i], add, "");
    }
}

bool
nv_multiply_mma(Multiply *p)
{
    Gen *g = p->g;
    int inner = 1 << p->l[0]->log_shape[p->l[0]->rank - 1];
    MmaSteps x = {.p = p, .depth = inner / p->m->k};
    Regs *sum = &p->r[2];
    bool half = p->m->acc == SK_F16;
    int n = 0;
    for (int i = 0; i < 2; i++) {
        map_init(&x.frags[i], &g->s->tmp);
        make_parts(p, i, x.parts[i]);
    }
    Block *block = arena_array(&g->s->tmp, Block, sum->n / 4);
    for (int r = 0; r < sum->n; r += 4)
        if (((uint32_t)r & p->only) == p->part && !open_block(&x, r, &block[n++]))
            return false;
    for (int k = 0; k < x.depth; k++) /* neighbours do not wait for one another */
        for (int i = 0; i < n; i++)
            step_block(p, &block[i], k);
    for (int i = 0; i < n; i++)
        nv_acc_unpack(g, block[i].d, half ? 2 : 4, half, &sum->v[block[i].reg]);
    return true;
}
