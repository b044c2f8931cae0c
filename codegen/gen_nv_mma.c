/* Products of tiles: fragments of mma.sync where the layout pass chose them, else each
   thread multiplies and adds for the elements of the result that it owns.

   The instruction is inline assembly, convergent and
   without side effects: one table (codegen/mma.def) covers every type. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

#include <stdio.h>
#include <string.h>

typedef struct Mma {
    const char *shape, *types;
    int k, bits;
    ScalarKind in, acc;
    int sm, ptx;
} Mma;

static const Mma mmas[] = {
#define MMA(in, acc, shape, types, k, bits, sm, ptx)                                     \
    {shape, types, k, bits, SK_##in, SK_##acc, sm, ptx},
#include "codegen/mma.def"
};

static const Mma *
mma_find(ScalarKind in, ScalarKind acc)
{
    for (int i = 0; i < COUNT_OF(mmas); i++)
        if (mmas[i].in == in && mmas[i].acc == acc)
            return &mmas[i];
    return NULL;
}

/* Is l the accumulator of m16n8 instructions? */
static bool
is_mma_acc(const Layout *l)
{
    static const struct {
        LayoutDim d;
        int bit, dim, at;
    } want[] = {{LD_REG, 0, 1, 0},  {LD_REG, 1, 0, 3},  {LD_LANE, 0, 1, 1},
                {LD_LANE, 1, 1, 2}, {LD_LANE, 2, 0, 0}, {LD_LANE, 3, 0, 1},
                {LD_LANE, 4, 0, 2}};
    if (l->rank != 2 || l->n[LD_REG] < 2)
        return false;
    for (int i = 0; i < COUNT_OF(want); i++)
        if (l->b[want[i].d][want[i].bit] !=
            1u << (layout_shift(l, want[i].dim) + want[i].at))
            return false;
    return true;
}

/* Registers of a tile by coordinate. */
typedef struct Tile {
    const Layout *l;
    Regs *r;
} Tile;

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
issue(Gen *g, const Mma *m, const LLVMValueRef *a, const LLVMValueRef *b, LLVMValueRef *d,
      int nd)
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

/* ---- fp32 from three tf32 products: x = big + small, both with a short mantissa */

static LLVMValueRef
big_part(Gen *g, LLVMValueRef word)
{
    return LLVMBuildAnd(g->b, word, ll_int(g->i32, (int32_t)0xffffe000), "");
}

static LLVMValueRef
small_part(Gen *g, LLVMValueRef word)
{
    LLVMValueRef x = LLVMBuildBitCast(g->b, word, g->f32, "");
    LLVMValueRef big = LLVMBuildBitCast(g->b, big_part(g, word), g->f32, "");
    return LLVMBuildBitCast(g->b, LLVMBuildFSub(g->b, x, big, ""), g->i32, "");
}

static void
issue_x3(Gen *g, const Mma *m, const LLVMValueRef *a, const LLVMValueRef *b,
         LLVMValueRef *d)
{
    LLVMValueRef ab[4], as[4], bb[2], bs[2];
    for (int i = 0; i < 4; i++)
        ab[i] = big_part(g, a[i]), as[i] = small_part(g, a[i]);
    for (int i = 0; i < 2; i++)
        bb[i] = big_part(g, b[i]), bs[i] = small_part(g, b[i]);
    issue(g, m, as, bb, d, 4);
    issue(g, m, ab, bs, d, 4);
    issue(g, m, ab, bb, d, 4);
}

/* ---- the product */

typedef struct Frag {
    LLVMValueRef word[4];
} Frag;

typedef struct Product {
    Gen *g;
    const Mma *m;
    Tile t[3];    /* a, b, result */
    int depth;    /* instructions along k */
    Map frags[2]; /* first row or column + 1 -> Frag[depth] */
    bool x3;
} Product;

static Frag *
fragments(Product *p, int op, uint32_t major)
{
    const void *key = (const void *)(uintptr_t)(major + 1);
    Frag *f = map_get(&p->frags[op], key);
    if (f)
        return f;
    f = arena_array(&p->g->s->tmp, Frag, p->depth);
    for (int k = 0; k < p->depth; k++)
        if (!nv_fragment(p->g, p->t[op].l, p->t[op].r, op, major, (uint32_t)(k * p->m->k),
                         p->m->bits, f[k].word))
            return NULL;
    map_set(&p->frags[op], key, f);
    return f;
}

/* The accumulators of one instruction: four registers of the result from `reg` on, or two
   pairs. */
typedef struct Block {
    const Frag *a, *b; /* one for each step along k */
    LLVMValueRef d[4];
} Block;

static bool
open_block(Product *p, int reg, const Regs *acc, Block *out)
{
    const Layout *l = p->t[2].l;
    uint32_t c = layout_at(l, LD_REG, (uint32_t)reg);
    out->a = fragments(p, 0, (uint32_t)layout_part(l, c, 0));
    out->b = fragments(p, 1, (uint32_t)layout_part(l, c, 1));
    nv_acc_pack(p->g, &acc->v[reg], 4, out->d);
    return out->a && out->b;
}

static void
step_block(Product *p, Block *block, int k)
{
    const LLVMValueRef *a = block->a[k].word, *b = block->b[k].word;
    if (p->x3)
        issue_x3(p->g, p->m, a, b, block->d);
    else
        issue(p->g, p->m, a, b, block->d, p->m->acc == SK_F16 ? 2 : 4);
}

static bool
gen_mma(Gen *g, const Op *op, const Mma *m, Regs *out)
{
    Product p = {.g = g, .m = m};
    const Regs *acc = nv_regs(g, op_operand(op, 2));
    Name precision = attr_str(&op->attrs, ATTR_PRECISION);
    p.x3 = m->in == SK_F32 && precision && strcmp(precision, "tf32x3") == 0;
    for (int i = 0; i < 2; i++) {
        p.t[i] = (Tile){op_operand(op, i)->type->layout, nv_regs(g, op_operand(op, i))};
        map_init(&p.frags[i], &g->s->tmp);
        if (!p.t[i].r)
            return false;
    }
    p.t[2] = (Tile){op->results[0].type->layout, out};
    p.depth = (int)(op_operand(op, 0)->type->shape[1] / m->k);
    Block *block = arena_array(&g->s->tmp, Block, out->n / 4);
    for (int i = 0; i < out->n / 4; i++)
        if (!open_block(&p, 4 * i, acc, &block[i]))
            return gen_unsupported(g, op, "on these layouts") != NULL;
    for (int k = 0; k < p.depth; k++) /* neighbours do not wait for one another */
        for (int i = 0; i < out->n / 4; i++)
            step_block(&p, &block[i], k);
    for (int i = 0; i < out->n / 4; i++)
        nv_acc_unpack(g, block[i].d, m->acc == SK_F16 ? 2 : 4, m->acc == SK_F16,
                      &out->v[4 * i]);
    return true;
}

/* ---- element by element */

/* An operand's element as what it is multiplied in. */
static LLVMValueRef
widen(Gen *g, const Type *t, ScalarKind to, LLVMValueRef x)
{
    ScalarKind from = type_elem(t)->scalar;
    if (from == to)
        return x;
    if (scalar_is_float(from))
        return gen_fcast(g, from, to, false, x);
    return LLVMBuildSExt(g->b, x, ll_scalar(g->cx, to), "");
}

static LLVMValueRef
mul_add(Gen *g, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    if (LLVMGetTypeKind(LLVMTypeOf(c)) == LLVMIntegerTypeKind)
        return LLVMBuildAdd(g->b, LLVMBuildMul(g->b, a, b, ""), c, "");
    LLVMValueRef args[3] = {a, b, c};
    return ll_intrinsic1(g->b, "llvm.fma", args, 3);
}

static Regs *
widened(Gen *g, const Value *v, ScalarKind to)
{
    Regs *in = nv_regs(g, v), *out = arena_new(&g->s->tmp, Regs);
    if (!in)
        return NULL;
    out->n = in->n;
    out->v = arena_array(&g->s->tmp, LLVMValueRef, in->n);
    for (int i = 0; i < in->n; i++)
        out->v[i] = widen(g, v->type, to, in->v[i]);
    return out;
}

/* The coordinates of the result with dimension `drop` replaced by k, as the operand has
   them. */
static uint32_t
operand_coord(const Layout *acc, uint32_t c, const Layout *l, int drop, uint32_t k)
{
    uint32_t r = k << layout_shift(l, drop);
    for (int i = 0; i < acc->rank; i++)
        if (i != drop)
            r |= (uint32_t)layout_part(acc, c, i) << layout_shift(l, i);
    return r;
}

static bool
gen_fma(Gen *g, const Op *op, Regs *out)
{
    const Value *va = op_operand(op, 0), *vb = op_operand(op, 1);
    const Layout *la = va->type->layout, *lb = vb->type->layout;
    const Layout *lacc = op->results[0].type->layout;
    ScalarKind acc = type_elem(op->results[0].type)->scalar;
    ScalarKind wide = scalar_is_float(acc) ? (acc == SK_F64 ? SK_F64 : SK_F32) : acc;
    Regs *a = widened(g, va, wide), *b = widened(g, vb, wide);
    const Regs *in = nv_regs(g, op_operand(op, 2));
    int rank = lacc->rank;
    uint32_t depth = (uint32_t)va->type->shape[rank - 1];
    if (!a || !b || !in)
        return false;
    for (int i = 0; i < out->n; i++) {
        uint32_t c = layout_at(lacc, LD_REG, (uint32_t)i);
        LLVMValueRef sum = in->v[i];
        if (acc != wide)
            sum = gen_fcast(g, acc, wide, false, sum);
        for (uint32_t k = 0; k < depth; k++) {
            int x = nv_reg_at(la, operand_coord(lacc, c, la, rank - 1, k));
            int y = nv_reg_at(lb, operand_coord(lacc, c, lb, rank - 2, k));
            if (x < 0 || y < 0)
                return gen_unsupported(g, op, "on these layouts") != NULL;
            sum = mul_add(g, a->v[x], b->v[y], sum);
        }
        out->v[i] = acc == wide ? sum : gen_fcast(g, wide, acc, false, sum);
    }
    return true;
}

bool
nv_dot(Gen *g, const Op *op)
{
    const Value *v = &op->results[0];
    ScalarKind in = type_elem(op_operand(op, 0)->type)->scalar;
    ScalarKind other = type_elem(op_operand(op, 1)->type)->scalar;
    const Mma *m = mma_find(in, type_elem(v->type)->scalar);
    Regs *out = nv_define(g, v, nv_count(v->type));
    if (!out || !nv_regs(g, op_operand(op, 2)))
        return false;
    if (m && in == other && is_mma_acc(v->type->layout) && v->type->shape[0] >= 16 &&
        op_operand(op, 0)->type->shape[1] >= m->k && g->info.sm >= m->sm) {
        Name precision = attr_str(&op->attrs, ATTR_PRECISION);
        if (in != SK_F32 || (precision && strncmp(precision, "tf32", 4) == 0))
            return gen_mma(g, op, m, out);
    }
    return gen_fma(g, op, out);
}
