/* A dot of one row by columns that lie contiguously in memory, as in a decoder, which
   multiplies a tile of 16 rows of which it stores one. Other dots transpose such columns
   first; for one row that costs more than the dot. So as many columns as a vector has
   lanes are multiplied along k, and the lanes of all of them are summed in one tree:

       a0 a1 a2 a3, b0 b1 b2 b3  =>  a0+a1 a2+a3 b0+b1 b2+b3  =>  .. */
#include "codegen/gen_cpu_dot.h"

enum { MOST_LANES = 16 };

bool
dot_may_be_row(const Dot *d)
{
    return d->live_rows && d->form == DOT_ONE && d->kind == SK_F32 &&
           d->y.kind == SK_F32 && d->y.k_runs && d->lanes <= MOST_LANES &&
           d->lanes >= 4 && d->n >= d->lanes && d->k >= d->lanes;
}

static LLVMValueRef
every_second(Gen *g, LLVMValueRef a, LLVMValueRef b, unsigned from)
{
    LLVMValueRef at[MOST_LANES];
    unsigned n = ll_lanes(a);
    for (unsigned i = 0; i < n; i++)
        at[i] = ll_int(g->i32, 2 * i + from);
    return LLVMBuildShuffleVector(g->b, a, b, LLVMConstVector(at, n), "");
}

/* Lane i: the sum of the lanes of v[i]. */
static LLVMValueRef
sums_of(Gen *g, LLVMValueRef *v, unsigned n)
{
    for (; n > 1; n /= 2)
        for (unsigned i = 0; i < n / 2; i++) {
            LLVMValueRef a = v[2 * i], b = v[2 * i + 1];
            v[i] = LLVMBuildFAdd(g->b, every_second(g, a, b, 0),
                                 every_second(g, a, b, 1), "");
        }
    return v[0];
}

static void
load_sums(Gen *g, void *cx, LLVMValueRef *v)
{
    const Dot *d = cx;
    v[0] = ll_load(g->b, ll_vector(g->f32, d->lanes),
                   dot_sum(g, d, ll_int(g->i64, 0), 0, 0), 4);
}

void
dot_row(Gen *g, const Dot *whole)
{
    Dot d = *whole;
    LLVMTypeRef vec = ll_vector(g->f32, d.lanes);
    LLVMValueRef acc[MOST_LANES], phi[MOST_LANES], old[1];
    CpuLoop n = cpu_loop(g, 0, d.n, d.lanes);
    n.hi = d.live_cols ? d.live_cols : n.hi;
    d.col = n.i;
    dot_begin(g, &d, load_sums, &d, old, 1);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    CpuLoop k = cpu_loop(g, 0, d.k, d.lanes);
    for (unsigned i = 0; i < d.lanes; i++) {
        LLVMValueRef zero = LLVMConstNull(vec);
        acc[i] = phi[i] = LLVMBuildPhi(g->b, vec, "");
        LLVMAddIncoming(phi[i], &zero, &from, 1);
    }
    LLVMValueRef a = ll_load(g->b, vec, LLVMBuildGEP2(g->b, g->f32, d.a, &k.i, 1, ""), 4);
    for (unsigned i = 0; i < d.lanes; i++) {
        LLVMValueRef o = LLVMBuildAdd(g->b, n.i, ll_int(g->i64, i), "");
        LLVMValueRef at = dot_element(g, &d.y, o, k.i);
        LLVMValueRef b = ll_load(g->b, vec, at, 4);
        LLVMValueRef in[3] = {a, b, acc[i]};
        acc[i] = ll_intrinsic1(g->b, "llvm.fma", in, 3);
    }
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    cpu_loop_end(g, &k);
    for (unsigned i = 0; i < d.lanes; i++)
        LLVMAddIncoming(phi[i], &acc[i], &latch, 1);
    LLVMValueRef sum = LLVMBuildFAdd(g->b, old[0], sums_of(g, acc, d.lanes), "");
    LLVMValueRef to = dot_sum(g, &d, ll_int(g->i64, 0), 0, 0);
    LLVMSetAlignment(LLVMBuildStore(g->b, sum, to), 4);
    cpu_loop_end(g, &n);
}
