/* Products that each thread computes for the elements of the result that it owns: fp32 in
   full precision, integers, small sizes. Every element of the operands' registers is
   widened once; sums are of the wide type (nv_fma_wide) from the first product to the
   last. */
#include "codegen/gen_nv_dot.h"

ScalarKind
nv_fma_wide(ScalarKind acc)
{
    if (!scalar_is_float(acc))
        return acc;
    return acc == SK_F64 ? SK_F64 : SK_F32;
}

/* An operand's element as what it is multiplied in. */
static LLVMValueRef
widen(Gen *g, ScalarKind from, ScalarKind to, LLVMValueRef x)
{
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

typedef struct Side {
    const int *first; /* for each register of the sums: the operand's, k being 0 */
    const int *step;  /* for each k: the bits that it adds to that */
    LLVMValueRef *wide;
} Side;

/* Registers are numbered linearly, so that of (row, k) is the two's exclusive or. */
static bool
open_side(Multiply *p, int op, ScalarKind to, Side *out)
{
    Gen *g = p->g;
    const Layout *l = p->l[op];
    int dim = op == 0 ? l->rank - 1 : l->rank - 2, depth = 1 << l->log_shape[dim];
    int *first = arena_array(&g->s->tmp, int, p->r[2].n);
    int *step = arena_array(&g->s->tmp, int, depth);
    ScalarKind from = p->elem[op]->scalar;
    for (int i = 0; i < p->r[2].n; i++) {
        uint32_t c = layout_at(p->l[2], LD_REG, (uint32_t)i);
        if (((uint32_t)i & p->only) != p->part)
            continue;
        first[i] = nv_reg_at(l, nv_operand_at(p, op, c));
        if (first[i] < 0)
            return false;
    }
    for (int k = 0; k < depth; k++) {
        step[k] = nv_reg_at(l, (uint32_t)k << layout_shift(l, dim));
        if (step[k] < 0)
            return false;
    }
    out->wide = arena_array(&g->s->tmp, LLVMValueRef, p->r[op].n);
    for (int i = 0; i < p->r[op].n; i++)
        if (p->r[op].v[i])
            out->wide[i] = widen(g, from, to, p->r[op].v[i]);
    out->first = first;
    out->step = step;
    return true;
}

bool
nv_multiply_fma(Multiply *p)
{
    Side a, b;
    ScalarKind wide = nv_fma_wide(type_elem(p->op->results[0].type)->scalar);
    int rank = p->l[0]->rank, depth = 1 << p->l[0]->log_shape[rank - 1];
    if (!open_side(p, 0, wide, &a) || !open_side(p, 1, wide, &b))
        return false;
    for (int k = 0; k < depth; k++) /* neighbours do not wait for one another */
        for (int i = 0; i < p->r[2].n; i++)
            if (((uint32_t)i & p->only) == p->part)
                p->r[2].v[i] = mul_add(p->g, a.wide[a.first[i] ^ a.step[k]],
                                       b.wide[b.first[i] ^ b.step[k]], p->r[2].v[i]);
    return true;
}
