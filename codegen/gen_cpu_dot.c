/* buf_dot: acc += a * b on buffers. The processor decides which instruction multiplies
   (the form). The form says how many elements along k a lane takes, and how many rows of
   the accumulator fit into registers. b is read in panels of some columns, which stay in
   the L1 cache while all rows of a are multiplied by them. Operands that are not in the
   form's order or type are packed, a as a whole and b panel by panel, into memory that
   all dots of the program share.

       for n = 0, N, cols {
         panel = pack b[:, n .. n + cols]
         for m = 0, M, rows { sums of rows x cols in registers, over k } } */
#include "codegen/gen_cpu_dot.h"

#include "ir/base/util.h"

/* FEW: rows for which a panel is not worth its copy. */
enum { VECTORS = 2, FEW = 16, LEAST_LANES = 4 };

static void
set_form(Dot *d, DotForm form, ScalarKind kind, int group)
{
    d->form = form;
    d->kind = kind;
    d->group = group;
}

/* Of elements that are alike. Sizes are powers of two. */
static void
choose(Dot *d, const Cpu *c, ScalarKind sum)
{
    int64_t depth = d->k;
    bool lanes = d->n >= LEAST_LANES, tiles = c->amx && d->m >= LEAST_LANES && lanes;
    set_form(d, DOT_ONE, sum, 1);
    if (d->x.kind != d->y.kind)
        return;
    if (d->x.kind == SK_BF16 && sum == SK_F32) {
        if (tiles && depth >= 16)
            set_form(d, DOT_TILES, SK_BF16, 2);
        else if (c->bf16 && lanes && depth >= 2)
            set_form(d, DOT_BF16, SK_BF16, 2);
    } else if (d->x.kind == SK_I8 && sum == SK_I32) {
        if (tiles && depth >= 32)
            set_form(d, DOT_TILES, SK_I8, 4);
        else if (c->vnni && lanes && depth >= 4)
            set_form(d, DOT_BYTES, SK_I8, 4);
        else if (c->avx2 && lanes && depth >= 2)
            set_form(d, DOT_WORDS, SK_I16, 2);
    }
}

static void
shape(Gen *g, Dot *d, ScalarKind sum)
{
    const Cpu *c = g->priv;
    int64_t width = c->avx512 ? 64 : c->avx2 ? 32 : 16;
    choose(d, c, sum);
    d->k /= d->group;
    d->sum = ll_scalar(g->cx, sum);
    d->unit = d->group > 1 ? g->i32 : d->sum;
    d->lanes = (unsigned)min_i64(width / ll_bytes(sum), d->n);
    d->cols = min_i64(VECTORS * d->lanes, d->n);
    if (d->form == DOT_TILES)
        d->cols = min_i64(32, d->n);
    d->rows = c->avx512 ? 12 : c->avx2 ? 6 : 4;
    d->x.flip = d->form == DOT_BYTES;
}

/* The last two dimensions of a buffer; the rest are batches. */
static DotOperand
operand(Gen *g, const Op *op, int i, LLVMValueRef batch)
{
    const Value *v = op_operand(op, i);
    const Type *t = v->type;
    int64_t rows = t->shape[t->rank - 2];
    const Attr *transposed = attr_find(&op->attrs, ATTR_TRANSPOSED);
    bool is_transposed = false;
    for (int j = 0; transposed && j < transposed->n; j++)
        is_transposed |= transposed->v.ints[j] == i;
    DotOperand x = {.p = cpu_value(g, v), .kind = t->elem->scalar};
    x.k_runs = (i == 1) == is_transposed;
    x.pitch = cpu_pitch(t);
    LLVMTypeRef e = ll_memory(g->cx, x.kind);
    if (batch)
        x.p = dot_at(g, e, x.p, batch, rows * x.pitch, ll_int(g->i64, 0));
    return x;
}

/* a, as units in rows; bytes of workspace. */
static int64_t
rows_of_a(Gen *g, Dot *d)
{
    int64_t bytes = d->m * d->k * (d->group > 1 ? 4 : ll_bytes(d->kind));
    d->a = d->x.p;
    d->a_pitch = d->x.pitch / d->group;
    if (d->x.k_runs && d->x.kind == d->kind && !d->x.flip)
        return 0;
    d->a = cpu_workspace(g, 0, bytes);
    d->a_pitch = d->k;
    dot_pack(g, d, &d->x, ll_int(g->i64, 0), d->m, d->a, true);
    return bytes;
}

static void
blocks(Gen *g, const Dot *d)
{
    if (d->form == DOT_TILES)
        dot_tiles(g, d);
    else
        dot_blocks(g, d);
}

/* The panel once more, in fp32, `used` bytes of workspace behind. */
static void
in_fp32(Gen *g, const Dot *d, int64_t used)
{
    Dot e = *d;
    e.x.watch = e.y.watch = false;
    int64_t width = ((const Cpu *)g->priv)->avx512 ? 16 : 8;
    set_form(&e, DOT_ONE, SK_F32, 1);
    e.unit = g->f32;
    e.k = d->k * d->group;
    e.lanes = (unsigned)min_i64(width, e.cols);
    e.a = cpu_workspace(g, used, e.m * e.k * 4);
    e.b = cpu_workspace(g, used + (e.m * e.k * 4 + 63) / 64 * 64, e.cols * e.k * 4);
    e.a_pitch = e.k;
    e.pitch = e.cols;
    dot_pack(g, &e, &e.x, ll_int(g->i64, 0), e.m, e.a, true);
    dot_pack(g, &e, &e.y, e.col, e.cols, e.b, false);
    dot_blocks(g, &e);
}

/* `rare`: the rows of a have a subnormal number. */
static void
guarded(Gen *g, const Dot *d, LLVMValueRef rare, int64_t used)
{
    LLVMValueRef here = d->y.least;
    LLVMBasicBlockRef exact = cpu_block(g, "exact"), fast = cpu_block(g, "fast");
    LLVMBasicBlockRef next = cpu_block(g, "next");
    here = LLVMBuildOr(g->b, here, rare, "");
    ll_likely(LLVMBuildCondBr(g->b, here, exact, fast), 1);
    LLVMPositionBuilderAtEnd(g->b, exact);
    in_fp32(g, d, used);
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, fast);
    blocks(g, d);
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
}

/* Code for one live row, and goes on where there are more. Returns where both meet. */
static LLVMBasicBlockRef
row_or(Gen *g, const Dot *d)
{
    LLVMBasicBlockRef one = cpu_block(g, "one"), more = cpu_block(g, "more");
    LLVMBasicBlockRef done = cpu_block(g, "dot");
    LLVMValueRef is_one =
        LLVMBuildICmp(g->b, LLVMIntEQ, d->live_rows, ll_int(g->i64, 1), "");
    LLVMBuildCondBr(g->b, is_one, one, more);
    LLVMPositionBuilderAtEnd(g->b, one);
    dot_row(g, d);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, more);
    return done;
}

static void
product(Gen *g, Dot *d)
{
    int64_t used = rows_of_a(g, d);
    int64_t bytes = d->cols * d->k * (d->group > 1 ? 4 : ll_bytes(d->kind));
    bool bf16 = d->kind == SK_BF16;
    d->y.watch = bf16;
    int64_t depth = d->k * d->group, pitch = d->a_pitch * d->group;
    LLVMValueRef rare = NULL;
    if (bf16 && pitch == depth)
        rare = dot_subnormal(g, d->a, 1, d->m * depth, 0);
    else if (bf16)
        rare = dot_subnormal(g, d->a, d->m, depth, pitch);
    bool in_order = !d->y.k_runs && d->y.kind == d->kind && d->group == 1;
    bool as_it_is = in_order && (d->n == d->cols || d->m <= FEW);
    if (d->form == DOT_TILES)
        dot_tiles_begin(g, d);
    LLVMBasicBlockRef done = dot_may_be_row(d) ? row_or(g, d) : NULL;
    CpuLoop n = cpu_loop(g, 0, d->n, d->cols);
    if (d->live_cols)
        n.hi = d->live_cols;
    d->col = n.i;
    d->pitch = as_it_is ? d->y.pitch : d->cols;
    if (as_it_is) {
        d->b = LLVMBuildGEP2(g->b, d->unit, d->y.p, &n.i, 1, "");
    } else {
        d->b = cpu_workspace(g, used, bytes);
        dot_pack(g, d, &d->y, n.i, d->cols, d->b, false);
    }
    if (bf16)
        guarded(g, d, rare, used + bytes);
    else
        blocks(g, d);
    cpu_loop_end(g, &n);
    if (done) {
        LLVMBuildBr(g->b, done);
        LLVMPositionBuilderAtEnd(g->b, done);
    }
}

bool
cpu_dot(Gen *g, const Op *op)
{
    const Type *t = op_operand(op, 2)->type;
    int64_t m = t->shape[t->rank - 2], n = t->shape[t->rank - 1];
    int64_t batches = type_numel(t) / (m * n);
    ScalarKind sum = t->elem->scalar;
    CpuLoop each = {0};
    if (batches > 1)
        each = cpu_loop(g, 0, batches, 1);
    LLVMValueRef i = batches > 1 ? each.i : NULL;
    Dot d = {.x = operand(g, op, 0, i), .y = operand(g, op, 1, i), .m = m, .n = n};
    const Type *a = op_operand(op, 0)->type;
    d.k = type_numel(a) / (m * batches);
    d.c = operand(g, op, 2, i).p;
    d.c_pitch = cpu_pitch(t);
    d.zero = op->noperand > 3 ? cpu_value(g, op_operand(op, 3)) : NULL;
    d.live_rows = op->noperand > 4 ? cpu_value(g, op_operand(op, 4)) : NULL;
    d.live_cols = op->noperand > 4 ? cpu_value(g, op_operand(op, 5)) : NULL;
    shape(g, &d, sum);
    product(g, &d);
    if (batches > 1)
        cpu_loop_end(g, &each);
    return true;
}
