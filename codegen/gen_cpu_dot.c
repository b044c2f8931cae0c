/* buf_dot: acc += a * b on buffers. A block of accumulators is held in registers while
   the inner dimension runs: 4 rows by two machine vectors, where the shape allows;
   elements of a are broadcast, rows of b loaded. Columns are the outer loop, so that
   the columns of b in use stay in the first-level cache while the rows of a pass. */
#include "codegen/gen_cpu.h"

#include "ir/base/util.h"

enum { MAX_ROWS = 4, MAX_VECTORS = 2, UNROLL = 4 };

typedef struct Dot {
    const Type *a, *b, *c;
    LLVMValueRef pa, pb, pc;
    LLVMTypeRef elem;
    bool is_float;
    int64_t rows, vectors; /* of the block */
    unsigned lanes;
    LLVMValueRef m, n; /* its first row and column */
} Dot;

static LLVMValueRef
address(Gen *g, const Dot *d, LLVMValueRef base, const Type *t, LLVMValueRef row,
        int64_t row_off, LLVMValueRef col, int64_t col_off)
{
    LLVMValueRef r = LLVMBuildMul(g->b, row, ll_int(g->i64, t->shape[1]), "");
    LLVMValueRef at = LLVMBuildAdd(g->b, r, col, "");
    LLVMValueRef p = LLVMBuildGEP2(g->b, d->elem, base, &at, 1, "");
    LLVMValueRef off = ll_int(g->i64, row_off * t->shape[1] + col_off);
    return LLVMBuildGEP2(g->b, d->elem, p, &off, 1, "");
}

static LLVMValueRef
load(Gen *g, const Dot *d, LLVMTypeRef t, LLVMValueRef p)
{
    LLVMValueRef x = LLVMBuildLoad2(g->b, t, p, "");
    LLVMTypeRef e = d->elem;
    LLVMSetAlignment(x, e == g->f64 ? 8 : 4);
    return x;
}

static LLVMValueRef
multiply_add(Gen *g, const Dot *d, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    if (!d->is_float)
        return LLVMBuildAdd(g->b, LLVMBuildMul(g->b, a, b, ""), c, "");
    LLVMValueRef args[3] = {a, b, c};
    return ll_intrinsic1(g->b, "llvm.fma", args, 3);
}

/* One step of the inner dimension. */
static void
step(Gen *g, const Dot *d, LLVMValueRef k, int64_t off, LLVMValueRef *acc)
{
    LLVMTypeRef vec = ll_vector(d->elem, d->lanes);
    LLVMValueRef b[MAX_VECTORS];
    for (int64_t v = 0; v < d->vectors; v++)
        b[v] = load(g, d, vec, address(g, d, d->pb, d->b, k, off, d->n, v * d->lanes));
    for (int64_t r = 0; r < d->rows; r++) {
        LLVMValueRef a = load(g, d, d->elem, address(g, d, d->pa, d->a, d->m, r, k, off));
        a = ll_splat(g->b, a, d->lanes);
        for (int64_t v = 0; v < d->vectors; v++)
            acc[r * MAX_VECTORS + v] =
                multiply_add(g, d, a, b[v], acc[r * MAX_VECTORS + v]);
    }
}

static void
block(Gen *g, const Dot *d)
{
    LLVMValueRef acc[MAX_ROWS * MAX_VECTORS], phi[MAX_ROWS * MAX_VECTORS];
    LLVMTypeRef vec = ll_vector(d->elem, d->lanes);
    int64_t depth = d->a->shape[1], unroll = min_i64(depth, UNROLL);
    for (int64_t r = 0; r < d->rows; r++)
        for (int64_t v = 0; v < d->vectors; v++)
            acc[r * MAX_VECTORS + v] =
                load(g, d, vec, address(g, d, d->pc, d->c, d->m, r, d->n, v * d->lanes));
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    CpuLoop k = cpu_loop(g, 0, depth, unroll);
    for (int64_t r = 0; r < d->rows; r++)
        for (int64_t v = 0; v < d->vectors; v++) {
            int64_t i = r * MAX_VECTORS + v;
            phi[i] = LLVMBuildPhi(g->b, vec, "");
            LLVMAddIncoming(phi[i], &acc[i], &from, 1);
            acc[i] = phi[i];
        }
    for (int64_t u = 0; u < unroll; u++)
        step(g, d, k.i, u, acc);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    cpu_loop_end(g, &k);
    for (int64_t r = 0; r < d->rows; r++)
        for (int64_t v = 0; v < d->vectors; v++) {
            int64_t i = r * MAX_VECTORS + v;
            LLVMAddIncoming(phi[i], &acc[i], &latch, 1);
            LLVMValueRef p = address(g, d, d->pc, d->c, d->m, r, d->n, v * d->lanes);
            LLVMSetAlignment(LLVMBuildStore(g->b, acc[i], p), d->elem == g->f64 ? 8 : 4);
        }
}

/* The last two dimensions of a buffer as a type of their own; the rest are batches. */
static Type
matrix_of(const Type *t)
{
    Type m = *t;
    m.rank = 2;
    m.shape[0] = t->shape[t->rank - 2];
    m.shape[1] = t->shape[t->rank - 1];
    return m;
}

/* Base of matrix number i of a buffer. */
static LLVMValueRef
batch(Gen *g, const Dot *d, const Value *buf, const Type *m, LLVMValueRef i)
{
    LLVMValueRef p = cpu_value(g, buf);
    LLVMValueRef size = ll_int(g->i64, m->shape[0] * m->shape[1]);
    LLVMValueRef at = i ? LLVMBuildMul(g->b, i, size, "") : NULL;
    return at ? LLVMBuildGEP2(g->b, d->elem, p, &at, 1, "") : p;
}

bool
cpu_dot(Gen *g, const Op *op)
{
    const Type *t = op_operand(op, 2)->type;
    Type a = matrix_of(op_operand(op, 0)->type), b = matrix_of(op_operand(op, 1)->type);
    Type c = matrix_of(t);
    Dot d = {.a = &a, .b = &b, .c = &c};
    ScalarKind k = c.elem->scalar;
    if (a.elem != c.elem || b.elem != c.elem)
        return gen_unsupported(g, op, "of mixed element types") != NULL;
    d.elem = ll_scalar(g->cx, k);
    d.is_float = scalar_is_float(k);
    int64_t width = k == SK_F64 || k == SK_I64 ? 4 : 8;
    int64_t batches = type_numel(t) / (c.shape[0] * c.shape[1]);
    d.lanes = (unsigned)min_i64(width, c.shape[1]);
    d.vectors = min_i64(MAX_VECTORS, c.shape[1] / d.lanes);
    d.rows = min_i64(MAX_ROWS, c.shape[0]);
    CpuLoop each = {0};
    if (batches > 1)
        each = cpu_loop(g, 0, batches, 1);
    LLVMValueRef i = batches > 1 ? each.i : NULL;
    d.pa = batch(g, &d, op_operand(op, 0), &a, i);
    d.pb = batch(g, &d, op_operand(op, 1), &b, i);
    d.pc = batch(g, &d, op_operand(op, 2), &c, i);
    CpuLoop n = cpu_loop(g, 0, c.shape[1], d.lanes * d.vectors);
    d.n = n.i;
    CpuLoop m = cpu_loop(g, 0, c.shape[0], d.rows);
    d.m = m.i;
    block(g, &d);
    cpu_loop_end(g, &m);
    cpu_loop_end(g, &n);
    if (batches > 1)
        cpu_loop_end(g, &each);
    return true;
}
