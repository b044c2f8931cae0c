/* buf_dot: acc += a * b on buffers. The processor decides which instruction multiplies
   (the form). The form says how many elements along k a lane takes, and how many rows of
   the accumulator fit into registers. b is read in panels of some columns, which stay in
   the L1 cache while all rows of a are multiplied by them. Operands that are not in the
   form's order or type are packed, a as a whole and b a few panels at a time, into memory
   that all dots of the program share.

       for s = 0, N, some {
         pack b[:, s .. s + some] into panels
         for n = s, s + some, cols
           for m = 0, M, rows { sums of rows x cols in registers, over k } } */
#include "codegen/gen_cpu_dot.h"

#include "ir/base/util.h"

/* FEW: rows for which a panel is not worth its copy. PACKED: bytes of panels that are
   packed at once, a quarter of the smallest second-level caches. */
enum { VECTORS = 2, FEW = 16, LEAST_LANES = 4, PACKED = 1 << 17 };

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
    d->rows = (c->avx512 ? 24 : c->avx2 ? 12 : 8) * d->lanes / d->cols;
    d->x.flip = d->form == DOT_BYTES;
}

/* buf_view: the operand is in memory, or in its buffer. */
static void
viewed(Gen *g, const Op *view, DotOperand *x)
{
    LLVMValueRef in[5];
    for (int i = 0; i < view->noperand; i++)
        in[i] = cpu_value(g, op_operand(view, i));
    x->p = LLVMBuildSelect(g->b, in[1], in[2], in[0], "");
    x->apart = LLVMBuildSelect(g->b, in[1], in[3], ll_int(g->i64, x->pitch), "");
    if (view->noperand > 4) {
        LLVMValueRef from = LLVMBuildPtrToInt(g->b, in[2], g->i64, "");
        LLVMValueRef to = LLVMBuildPtrToInt(g->b, in[4], g->i64, "");
        x->ahead = LLVMBuildSub(g->b, to, from, "");
    }
}

/* The last two dimensions of a buffer; the rest are batches. */
static DotOperand
operand(Gen *g, const Op *op, int i, LLVMValueRef batch)
{
    const Value *v = op_operand(op, i);
    const Op *view = value_def(v, OP_BUF_VIEW);
    const Type *t = v->type;
    int64_t rows = t->shape[t->rank - 2];
    const Attr *transposed = attr_find(&op->attrs, ATTR_TRANSPOSED);
    bool is_transposed = false;
    for (int j = 0; transposed && j < transposed->n; j++)
        is_transposed |= transposed->v.ints[j] == i;
    DotOperand x = {.kind = t->elem->scalar};
    x.k_runs = (i == 1) == is_transposed;
    x.pitch = cpu_pitch(t);
    if (view)
        viewed(g, view, &x);
    else
        x.p = cpu_value(g, v);
    LLVMTypeRef e = ll_memory(g->cx, x.kind);
    if (batch)
        x.p = dot_at(g, e, x.p, batch, rows * x.pitch, ll_int(g->i64, 0));
    return x;
}

/* Packing will look for subnormal numbers, if they matter. */
static void
watch(Gen *g, const Dot *d, DotOperand *x, int64_t count, bool k_runs)
{
    if (d->kind != SK_BF16)
        return;
    x->least = dot_watch(g, d, x, count, k_runs);
    dot_watch_begin(g, x->least);
}

/* a, as units in rows; bytes of workspace. */
static int64_t
rows_of_a(Gen *g, Dot *d)
{
    int64_t bytes = d->m * d->k * dot_unit_bytes(d);
    d->a = d->x.p;
    d->a_pitch = d->x.pitch / d->group;
    if (d->x.k_runs && d->x.kind == d->kind && !d->x.flip && !d->x.apart)
        return 0;
    watch(g, d, &d->x, d->m, true);
    d->a = cpu_workspace(g, 0, bytes);
    d->a_pitch = d->k;
    dot_pack_rows(g, d, d->a);
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

/* The same panel in fp32; this is rare, so its code is short. */
static void
exactly(Gen *g, const Dot *d)
{
    enum { ROWS = 4 };
    Dot e = *d;
    e.form = DOT_PAIRS;
    e.rows = min_i64(d->rows, ROWS);
    dot_blocks(g, &e);
}

/* `rare`: there may be subnormal numbers. */
static void
guarded(Gen *g, const Dot *d, LLVMValueRef rare)
{
    LLVMBasicBlockRef exact = cpu_block(g, "exact"), fast = cpu_block(g, "fast");
    LLVMBasicBlockRef next = cpu_block(g, "next");
    ll_likely(LLVMBuildCondBr(g->b, rare, exact, fast), 1);
    LLVMPositionBuilderAtEnd(g->b, exact);
    exactly(g, d);
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
    Dot row = *d;
    row.m = 1;
    rows_of_a(g, &row);
    dot_row(g, &row);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, more);
    return done;
}

/* The variable, which holds `bits` when the function is entered. */
static LLVMValueRef
state(Gen *g, LLVMValueRef p, int64_t bits)
{
    const Cpu *c = g->priv;
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMPositionBuilderBefore(g->b, LLVMGetBasicBlockTerminator(c->entry));
    LLVMBuildStore(g->b, ll_int(LLVMGetAllocatedType(p), bits), p);
    LLVMPositionBuilderAtEnd(g->b, here);
    return p;
}

/* Products that are kept until there are `most` of them: each is packed behind the one
   before, as if they were one with a longer k. */
typedef struct Kept {
    int64_t most;
    LLVMValueRef a, b;  /* addresses: rows of a; panels of b, each with all products */
    LLVMValueRef count; /* variables: how many there are, i64; */
    LLVMValueRef fresh; /* the sums are 0, i1 */
} Kept;

static CpuLoop
panels(Gen *g, Dot *d)
{
    CpuLoop n = cpu_loop(g, 0, d->n, d->cols);
    n.hi = d->live_cols ? d->live_cols : n.hi;
    d->col = n.i;
    return n;
}

static void
keep(Gen *g, Dot *d, const Kept *s, LLVMValueRef n)
{
    LLVMValueRef at = LLVMBuildMul(g->b, n, ll_int(g->i64, d->k), "");
    LLVMValueRef to = LLVMBuildGEP2(g->b, d->unit, s->a, &at, 1, "");
    dot_pack_rows(g, d, to);
    at = LLVMBuildMul(g->b, at, ll_int(g->i64, d->cols), "");
    to = LLVMBuildGEP2(g->b, d->unit, s->b, &at, 1, "");
    LLVMValueRef end = d->live_cols ? d->live_cols : ll_int(g->i64, d->n);
    dot_pack_panels(g, d, ll_int(g->i64, 0), end, to);
}

static void
multiply(Gen *g, const Dot *d, const Kept *s, LLVMValueRef n)
{
    Dot e = *d;
    LLVMValueRef rare = NULL;
    if (d->kind == SK_BF16) {
        rare = LLVMBuildOr(g->b, dot_watched(g, d->x.least), dot_watched(g, d->y.least),
                           "");
        dot_watch_begin(g, d->x.least);
        dot_watch_begin(g, d->y.least);
    }
    e.a = s->a;
    e.a_pitch = d->room;
    e.pitch = d->cols;
    e.zero = LLVMBuildLoad2(g->b, g->i1, s->fresh, "");
    e.depth = LLVMBuildMul(g->b, n, ll_int(g->i64, d->k), "");
    CpuLoop p = panels(g, &e);
    e.b = dot_at(g, d->unit, s->b, p.i, d->room, ll_int(g->i64, 0));
    if (rare)
        guarded(g, &e, rare);
    else
        dot_blocks(g, &e);
    cpu_loop_end(g, &p);
    LLVMBuildStore(g->b, ll_int(g->i1, 0), s->fresh);
    LLVMBuildStore(g->b, ll_int(g->i64, 0), s->count);
}

static void
several(Gen *g, Dot *d, Kept *s, LLVMValueRef last)
{
    d->room = s->most * d->k;
    int64_t of_a = d->m * d->room * dot_unit_bytes(d);
    LLVMValueRef bytes = ll_int(g->i64, (of_a + 63) / 64 * 64);
    s->b = LLVMBuildGEP2(g->b, g->i8, s->a, &bytes, 1, "");
    s->count = state(g, cpu_alloca(g, g->i64), 0);
    s->fresh = state(g, cpu_alloca(g, g->i1), 0);
    if (d->kind == SK_BF16) {
        d->x.least = state(g, dot_watch(g, d, &d->x, d->m, true), -1);
        d->y.least = state(g, dot_watch(g, d, &d->y, d->cols, false), -1);
    }
    LLVMValueRef fresh = LLVMBuildLoad2(g->b, g->i1, s->fresh, "");
    LLVMBuildStore(g->b, LLVMBuildOr(g->b, fresh, d->zero, ""), s->fresh);
    LLVMValueRef n = LLVMBuildLoad2(g->b, g->i64, s->count, "");
    keep(g, d, s, n);
    n = LLVMBuildAdd(g->b, n, ll_int(g->i64, 1), "");
    LLVMBuildStore(g->b, n, s->count);
    LLVMValueRef all = LLVMBuildICmp(g->b, LLVMIntEQ, n, ll_int(g->i64, s->most), "");
    LLVMBasicBlockRef now = cpu_block(g, "now"), next = cpu_block(g, "next");
    LLVMBuildCondBr(g->b, LLVMBuildOr(g->b, all, last, ""), now, next);
    LLVMPositionBuilderAtEnd(g->b, now);
    multiply(g, d, s, n);
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
}

/* The panel d->b. `rare` is of bf16: there may be subnormal numbers. */
static void
panel(Gen *g, const Dot *d, LLVMValueRef rare)
{
    if (rare)
        guarded(g, d, rare);
    else
        blocks(g, d);
}

/* Some panels after others, which are packed behind the `used` bytes of workspace. */
static void
packed(Gen *g, Dot *d, int64_t used, LLVMValueRef rare)
{
    int64_t bytes = d->cols * d->k * dot_unit_bytes(d), some = d->cols;
    while (some < d->n && some / d->cols * bytes < PACKED)
        some *= 2;
    LLVMValueRef all = d->live_cols ? d->live_cols : ll_int(g->i64, d->n);
    LLVMValueRef to = cpu_workspace(g, used, some / d->cols * bytes);
    d->pitch = d->cols;
    CpuLoop s = cpu_loop_from(g, ll_int(g->i64, 0), all, some);
    LLVMValueRef end = LLVMBuildAdd(g->b, s.i, s.step, "");
    end = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntULT, end, all, ""), end, all,
                          "");
    watch(g, d, &d->y, d->cols, false);
    dot_pack_panels(g, d, s.i, end, to);
    if (d->y.least)
        rare = LLVMBuildOr(g->b, rare, dot_watched(g, d->y.least), "");
    CpuLoop n = cpu_loop_from(g, s.i, end, d->cols);
    LLVMValueRef at = LLVMBuildSub(g->b, n.i, s.i, "");
    d->col = n.i;
    d->b = dot_at(g, d->unit, to, at, d->k, ll_int(g->i64, 0));
    panel(g, d, rare);
    cpu_loop_end(g, &n);
    cpu_loop_end(g, &s);
}

static void
once(Gen *g, Dot *d)
{
    int64_t used = rows_of_a(g, d);
    bool bf16 = d->kind == SK_BF16;
    int64_t depth = d->k * d->group, pitch = d->a_pitch * d->group;
    LLVMValueRef rare = NULL;
    if (d->x.least)
        rare = dot_watched(g, d->x.least);
    else if (bf16 && pitch == depth)
        rare = dot_subnormal(g, d->a, 1, d->m * depth, 0);
    else if (bf16)
        rare = dot_subnormal(g, d->a, d->m, depth, pitch);
    bool in_order =
        !d->y.k_runs && d->y.kind == d->kind && d->group == 1 && !d->y.apart;
    if (d->form == DOT_TILES)
        dot_tiles_begin(g, d);
    if (in_order && (d->n == d->cols || d->m <= FEW)) {
        CpuLoop n = panels(g, d);
        d->pitch = d->y.pitch;
        d->b = LLVMBuildGEP2(g->b, d->unit, d->y.p, &n.i, 1, "");
        panel(g, d, rare);
        cpu_loop_end(g, &n);
    } else {
        packed(g, d, used, rare);
    }
}

/* `kept`: where operands may be kept; its address NULL: nowhere. */
static void
product(Gen *g, Dot *d, Kept *kept, LLVMValueRef last)
{
    LLVMBasicBlockRef done = dot_may_be_row(d) ? row_or(g, d) : NULL;
    if (kept->a && d->form != DOT_TILES)
        several(g, d, kept, last);
    else
        once(g, d);
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
    Kept kept = {.most = attr_int(&op->attrs, ATTR_AT_ONCE, 1)};
    kept.a = op->noperand > 7 ? cpu_value(g, op_operand(op, 7)) : NULL;
    shape(g, &d, sum);
    product(g, &d, &kept, kept.a ? cpu_value(g, op_operand(op, 6)) : NULL);
    if (batches > 1)
        cpu_loop_end(g, &each);
    return true;
}
