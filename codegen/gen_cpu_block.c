/* Products by vectors: a block of sums is held in registers while k runs, as many rows of
   two vectors as the machine has registers for; units of a are broadcast, rows of the
   panel loaded. Rows that no block of that height divides are spread over two heights
   that differ by one. */
#include "codegen/gen_cpu_dot.h"

#include "ir/base/util.h"

enum { MOST_VECTORS = 2, MOST_SUMS = 28, FEW = 4 };

typedef struct Block {
    const Dot *d;
    int64_t rows, vectors;
    LLVMValueRef m; /* its first row */
    LLVMValueRef acc[MOST_SUMS + MOST_VECTORS]; /* of bytes: their excess, last */
    LLVMValueRef phi[MOST_SUMS + MOST_VECTORS];
    int n;
} Block;

LLVMValueRef
dot_sum(Gen *g, const Dot *d, LLVMValueRef m, int64_t r, int64_t by)
{
    LLVMValueRef p = dot_at(g, d->sum, d->c, m, d->c_pitch, d->col);
    LLVMValueRef off = ll_int(g->i64, r * d->c_pitch + by);
    return LLVMBuildGEP2(g->b, d->sum, p, &off, 1, "");
}

LLVMValueRef
dot_call(Gen *g, const char *name, LLVMValueRef *args, int n)
{
    unsigned id = LLVMLookupIntrinsicID(name, __builtin_strlen(name));
    LLVMTypeRef t = LLVMIntrinsicGetType(g->cx, id, NULL, 0), want[8];
    LLVMGetParamTypes(t, want);
    LLVMValueRef in[8];
    for (int i = 0; i < n; i++)
        in[i] = LLVMTypeOf(args[i]) == want[i]
                    ? args[i]
                    : LLVMBuildBitCast(g->b, args[i], want[i], "");
    return ll_intrinsic(g->b, name, NULL, 0, in, n);
}

static const char *
instruction(const Dot *d)
{
    static const char *const names[][3] = {
        [DOT_WORDS] = {"llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                       "llvm.x86.avx512.pmaddw.d.512"},
        [DOT_BYTES] = {"llvm.x86.avx512.vpdpbusd.128", "llvm.x86.avx512.vpdpbusd.256",
                       "llvm.x86.avx512.vpdpbusd.512"},
        [DOT_BF16] = {"llvm.x86.avx512bf16.dpbf16ps.128",
                      "llvm.x86.avx512bf16.dpbf16ps.256",
                      "llvm.x86.avx512bf16.dpbf16ps.512"}};
    return names[d->form][d->lanes == 16 ? 2 : d->lanes == 8 ? 1 : 0];
}

static LLVMValueRef
one_of_two(Gen *g, LLVMValueRef x, bool high)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    x = high ? LLVMBuildAnd(g->b, x, ll_int(t, (int32_t)0xffff0000), "")
             : LLVMBuildShl(g->b, x, ll_int(t, 16), "");
    return LLVMBuildBitCast(g->b, x, ll_like(x, g->f32), "");
}

static LLVMValueRef
multiply_add(Gen *g, const Dot *d, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    LLVMValueRef args[3] = {a, b, c}, sum[3] = {c, a, b};
    switch (d->form) {
    case DOT_WORDS:
        return LLVMBuildAdd(g->b, c, dot_call(g, instruction(d), args, 2), "");
    case DOT_PAIRS:
        for (int i = 0; i < 2; i++) {
            LLVMValueRef in[3] = {one_of_two(g, a, i), one_of_two(g, b, i), c};
            c = ll_intrinsic1(g->b, "llvm.fma", in, 3);
        }
        return c;
    case DOT_BYTES:
    case DOT_BF16: return dot_call(g, instruction(d), sum, 3);
    case DOT_ONE:
    case DOT_TILES: break;
    }
    return scalar_is_float(d->kind)
               ? ll_intrinsic1(g->b, "llvm.fma", args, 3)
               : LLVMBuildAdd(g->b, LLVMBuildMul(g->b, a, b, ""), c, "");
}

static LLVMValueRef
load(Gen *g, LLVMTypeRef t, const Dot *d, LLVMValueRef p)
{
    LLVMValueRef x = LLVMBuildLoad2(g->b, t, p, "");
    LLVMSetAlignment(x, d->sum == g->f64 ? 8 : 4);
    return x;
}

/* One unit along k. Bytes are multiplied as those of a plus 128: what that adds is summed
   on its own. */
static void
step(Gen *g, Block *s, LLVMValueRef k, int64_t off)
{
    const Dot *d = s->d;
    LLVMTypeRef vec = ll_vector(d->unit, d->lanes);
    LLVMValueRef b[MOST_VECTORS], u = ll_int(g->i64, off);
    for (int64_t v = 0; v < s->vectors; v++) {
        LLVMValueRef by = ll_int(g->i64, off * d->pitch + v * d->lanes);
        LLVMValueRef p = dot_at(g, d->unit, d->b, k, d->pitch, by);
        b[v] = load(g, vec, d, p);
    }
    for (int64_t r = 0; r < s->rows; r++) {
        LLVMValueRef row = dot_at(g, d->unit, d->a, s->m, d->a_pitch, k);
        LLVMValueRef by = LLVMBuildAdd(g->b, ll_int(g->i64, r * d->a_pitch), u, "");
        LLVMValueRef a =
            load(g, d->unit, d, LLVMBuildGEP2(g->b, d->unit, row, &by, 1, ""));
        a = ll_splat(g->b, a, d->lanes);
        for (int64_t v = 0; v < s->vectors; v++) {
            LLVMValueRef *acc = &s->acc[r * s->vectors + v];
            *acc = multiply_add(g, d, a, b[v], *acc);
        }
    }
    LLVMValueRef excess = ll_int(vec, (int32_t)0x80808080);
    for (int64_t v = 0; v < s->vectors && d->form == DOT_BYTES; v++) {
        LLVMValueRef *acc = &s->acc[s->rows * s->vectors + v];
        *acc = multiply_add(g, d, excess, b[v], *acc);
    }
}

static void
load_sums(Gen *g, void *cx, LLVMValueRef *v)
{
    const Block *s = cx;
    const Dot *d = s->d;
    for (int64_t i = 0; i < s->rows * s->vectors; i++)
        v[i] = load(g, ll_vector(d->sum, d->lanes), d,
                    dot_sum(g, d, s->m, i / s->vectors, i % s->vectors * d->lanes));
}

void
dot_begin(Gen *g, const Dot *d, DotLoad *load_all, void *cx, LLVMValueRef *v, int n)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    if (!d->zero) {
        load_all(g, cx, v);
        return;
    }
    LLVMBasicBlockRef old = cpu_block(g, "sums"), next = cpu_block(g, "begin");
    LLVMBuildCondBr(g->b, d->zero, next, old);
    LLVMPositionBuilderAtEnd(g->b, old);
    load_all(g, cx, v);
    LLVMBasicBlockRef loaded = LLVMGetInsertBlock(g->b);
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
    for (int i = 0; i < n; i++) {
        LLVMValueRef phi = LLVMBuildPhi(g->b, LLVMTypeOf(v[i]), "");
        LLVMValueRef in[2] = {LLVMConstNull(LLVMTypeOf(v[i])), v[i]};
        LLVMAddIncoming(phi, in, (LLVMBasicBlockRef[]){from, loaded}, 2);
        v[i] = phi;
    }
}

static void
block(Gen *g, const Dot *d, LLVMValueRef m, int64_t rows)
{
    Block s = {.d = d, .rows = rows, .m = m};
    LLVMTypeRef vec = ll_vector(d->sum, d->lanes);
    s.vectors = d->cols / d->lanes;
    int64_t n = rows * s.vectors, unroll = min_i64(d->k, n < 16 ? 4 : 2);
    unroll = d->form == DOT_PAIRS ? 1 : unroll;
    dot_begin(g, d, load_sums, &s, s.acc, (int)n);
    s.n = (int)(n + (d->form == DOT_BYTES ? s.vectors : 0));
    for (int64_t i = n; i < s.n; i++)
        s.acc[i] = LLVMConstNull(vec);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b);
    CpuLoop k = cpu_loop(g, 0, d->k, unroll);
    k.hi = d->depth ? d->depth : k.hi;
    for (int i = 0; i < s.n; i++) {
        s.phi[i] = LLVMBuildPhi(g->b, vec, "");
        LLVMAddIncoming(s.phi[i], &s.acc[i], &from, 1);
        s.acc[i] = s.phi[i];
    }
    for (int64_t u = 0; u < unroll; u++)
        step(g, &s, k.i, u);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
    cpu_loop_end(g, &k);
    for (int i = 0; i < s.n; i++)
        LLVMAddIncoming(s.phi[i], &s.acc[i], &latch, 1);
    for (int64_t i = 0; i < n; i++) {
        LLVMValueRef x = s.acc[i];
        if (d->form == DOT_BYTES)
            x = LLVMBuildSub(g->b, x, s.acc[n + i % s.vectors], "");
        LLVMValueRef p = dot_sum(g, d, m, i / s.vectors, i % s.vectors * d->lanes);
        LLVMSetAlignment(LLVMBuildStore(g->b, x, p), d->sum == g->f64 ? 8 : 4);
    }
}

/* The wanted rows of those from lo to hi. */
static void
rows_of(Gen *g, const Dot *d, int64_t lo, int64_t hi, int64_t height)
{
    LLVMValueRef live = d->live_rows, end = ll_int(g->i64, hi);
    LLVMBasicBlockRef done = NULL;
    if (live && lo) {
        LLVMBasicBlockRef some = cpu_block(g, "some");
        done = cpu_block(g, "none");
        LLVMValueRef any = LLVMBuildICmp(g->b, LLVMIntUGT, live, ll_int(g->i64, lo), "");
        LLVMBuildCondBr(g->b, any, some, done);
        LLVMPositionBuilderAtEnd(g->b, some);
    }
    LLVMValueRef few = live ? LLVMBuildICmp(g->b, LLVMIntULT, live, end, "") : NULL;
    end = live ? LLVMBuildSelect(g->b, few, live, end, "") : end;
    CpuLoop m = cpu_loop(g, lo, hi, height);
    m.hi = end;
    block(g, d, m.i, height);
    cpu_loop_end(g, &m);
    if (done) {
        LLVMBuildBr(g->b, done);
        LLVMPositionBuilderAtEnd(g->b, done);
    }
}

static void
all_blocks(Gen *g, const Dot *d)
{
    int64_t most = min_i64(d->rows, MOST_SUMS * d->lanes / d->cols);
    int64_t blocks = (d->m + most - 1) / most;
    int64_t low = d->m / blocks, high = d->m % blocks * (low + 1);
    if (high)
        rows_of(g, d, 0, high, low + 1);
    rows_of(g, d, high, d->m, low);
}

void
dot_blocks(Gen *g, const Dot *d)
{
    if (!d->live_rows || d->m < 2 * FEW) {
        all_blocks(g, d);
        return;
    }
    /* As one row of a matrix has that is multiplied in tiles of 16. */
    LLVMBasicBlockRef low = cpu_block(g, "few"), full = cpu_block(g, "many");
    LLVMBasicBlockRef done = cpu_block(g, "multiplied");
    LLVMValueRef few =
        LLVMBuildICmp(g->b, LLVMIntULE, d->live_rows, ll_int(g->i64, FEW), "");
    LLVMBuildCondBr(g->b, few, low, full);
    LLVMPositionBuilderAtEnd(g->b, low);
    block(g, d, ll_int(g->i64, 0), FEW);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, full);
    all_blocks(g, d);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
}
