/* Packs operands of dots into the order in which the machine multiplies them. Elements
   are converted, and those that go to one lane are put side by side. Where memory is
   contiguous along the other dimension, square blocks are transposed in registers:

       b [k][n] of bf16      two rows at a time: k0n0 k1n0 k0n1 k1n1 ..
       b [n][k] of bf16      pairs are there; rows of pairs become columns
       a [k][m]              both, to [m][k] */
#include "codegen/gen_cpu_dot.h"

#include "ir/base/util.h"

/* CACHED: bytes of a tile that the first-level cache keeps until its turn comes. NEAR:
   rows that are prefetched before. */
enum { MOST_LANES = 64, CACHED = 1 << 15, NEAR = 4 };

int64_t
dot_unit_bytes(const Dot *d)
{
    return d->group > 1 ? 4 : ll_bytes(d->kind);
}

/* What dot_at says, with a scale that may be no constant. */
static LLVMValueRef
dot_apart(Gen *g, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef i, LLVMValueRef scale,
          LLVMValueRef offset)
{
    LLVMValueRef at = LLVMBuildMul(g->b, i, scale, "");
    at = LLVMBuildAdd(g->b, at, offset, "");
    return LLVMBuildGEP2(g->b, t, p, &at, 1, "");
}

LLVMValueRef
dot_at(Gen *g, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef i, int64_t scale,
       LLVMValueRef offset)
{
    return dot_apart(g, t, p, i, ll_int(g->i64, scale), offset);
}

LLVMValueRef
dot_element(Gen *g, const DotOperand *x, LLVMValueRef row, LLVMValueRef offset)
{
    LLVMTypeRef e = ll_memory(g->cx, x->kind);
    return dot_apart(g, e, x->p, row, x->apart ? x->apart : ll_int(g->i64, x->pitch),
                     offset);
}

static LLVMValueRef
plus(Gen *g, LLVMValueRef i, int64_t by)
{
    return by ? LLVMBuildAdd(g->b, i, ll_int(g->i64, by), "") : i;
}

/* An operand as it is packed: it prefetches the tile of the next iteration if that is
   small, else its own rows, so many before their turn: rows that are some KiB apart share
   few sets of a cache, which forgets most of a tile before it is asked for it. */
static DotOperand
prefetching(Gen *g, const Dot *d, const DotOperand *x, unsigned rows)
{
    DotOperand y = *x;
    int64_t bytes = ll_bytes(x->kind), count = x == &d->x ? d->m : d->n;
    if (x->apart && count * d->k * d->group * bytes > CACHED)
        y.ahead = LLVMBuildMul(g->b, x->apart, ll_int(g->i64, rows * bytes), "");
    return y;
}

/* What lies `ahead` of n elements at p, into the first-level cache. */
static void
fetch(Gen *g, const DotOperand *x, LLVMValueRef p, unsigned n)
{
    enum { LINE = 64, FIRST = 3 };
    for (int64_t at = 0; at < n * (int64_t)ll_bytes(x->kind); at += LINE) {
        LLVMValueRef by = LLVMBuildAdd(g->b, x->ahead, ll_int(g->i64, at), "");
        LLVMValueRef args[4] = {LLVMBuildGEP2(g->b, g->i8, p, &by, 1, ""),
                                ll_int(g->i32, 0), ll_int(g->i32, FIRST),
                                ll_int(g->i32, 1)};
        ll_intrinsic1(g->b, "llvm.prefetch", args, 4);
    }
}

static LLVMValueRef
load(Gen *g, const Dot *d, const DotOperand *x, LLVMValueRef p, unsigned n)
{
    LLVMTypeRef e = ll_memory(g->cx, x->kind);
    LLVMValueRef v = LLVMBuildLoad2(g->b, ll_vector(e, n), p, "");
    LLVMSetAlignment(v, (unsigned)ll_bytes(x->kind));
    if (x->ahead)
        fetch(g, x, p, n);
    if (x->least) {
        LLVMValueRef least = LLVMBuildLoad2(g->b, LLVMTypeOf(v), x->least, "");
        LLVMBuildStore(g->b, dot_least(g, least, v), x->least);
    }
    if (x->kind != d->kind && scalar_is_float(d->kind))
        v = gen_fcast(g, x->kind, d->kind, false, v);
    else if (x->kind != d->kind)
        v = LLVMBuildSExt(g->b, v, ll_like(v, ll_scalar(g->cx, d->kind)), "");
    return x->flip ? LLVMBuildXor(g->b, v, ll_int(LLVMTypeOf(v), -128), "") : v;
}

static LLVMValueRef
shuffle(Gen *g, LLVMValueRef a, LLVMValueRef b, const unsigned *from, unsigned n)
{
    LLVMValueRef at[2 * MOST_LANES];
    for (unsigned i = 0; i < n; i++)
        at[i] = ll_int(g->i32, from[i]);
    return LLVMBuildShuffleVector(g->b, a, b, LLVMConstVector(at, n), "");
}

/* a0 b0 a1 b1 .., as numbers of twice the bits. */
static LLVMValueRef
interleave(Gen *g, LLVMValueRef a, LLVMValueRef b)
{
    unsigned n = ll_lanes(a), from[2 * MOST_LANES];
    LLVMTypeRef e = ll_elem(a);
    unsigned bits = e == g->i8 ? 8 : 16;
    LLVMTypeRef wide = ll_vector(LLVMIntTypeInContext(g->cx, 2 * bits), n);
    if (n == 1) {
        LLVMValueRef low = LLVMBuildZExt(g->b, a, wide, "");
        LLVMValueRef high = LLVMBuildZExt(g->b, b, wide, "");
        high = LLVMBuildShl(g->b, high, ll_int(wide, bits), "");
        return LLVMBuildOr(g->b, low, high, "");
    }
    for (unsigned i = 0; i < n; i++) {
        from[2 * i] = i;
        from[2 * i + 1] = n + i;
    }
    return LLVMBuildBitCast(g->b, shuffle(g, a, b, from, 2 * n), wide, "");
}

/* n units along k. */
static LLVMValueRef
along_k(Gen *g, const Dot *d, const DotOperand *x, LLVMValueRef o, LLVMValueRef k,
        unsigned n)
{
    LLVMValueRef at = LLVMBuildMul(g->b, k, ll_int(g->i64, d->group), "");
    LLVMValueRef p = dot_element(g, x, o, at);
    LLVMValueRef v = load(g, d, x, p, n * (unsigned)d->group);
    return LLVMBuildBitCast(g->b, v, ll_vector(d->unit, n), "");
}

/* n units along m or n. */
static LLVMValueRef
along_outer(Gen *g, const Dot *d, const DotOperand *x, LLVMValueRef o, LLVMValueRef k,
            unsigned n)
{
    LLVMValueRef v[4], row = LLVMBuildMul(g->b, k, ll_int(g->i64, d->group), "");
    for (int j = 0; j < d->group; j++)
        v[j] = load(g, d, x, dot_element(g, x, plus(g, row, j), o), n);
    for (int half = d->group / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            v[j] = interleave(g, v[2 * j], v[2 * j + 1]);
    return LLVMBuildBitCast(g->b, v[0], ll_vector(d->unit, n), "");
}

static void
store(Gen *g, const Dot *d, LLVMValueRef v, LLVMValueRef p)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, v, p), (unsigned)ll_bytes(d->kind));
}

/* Rows of a that run along k. */
static void
copy_rows(Gen *g, const Dot *d, LLVMValueRef to)
{
    int64_t room = d->room ? d->room : d->k;
    int64_t wide = min_i64(2 * d->lanes, MOST_LANES / d->group);
    unsigned n = (unsigned)min_i64(wide, d->k);
    DotOperand x = prefetching(g, d, &d->x, NEAR);
    CpuLoop m = cpu_loop(g, 0, d->m, 1), k = cpu_loop(g, 0, d->k, n);
    store(g, d, along_k(g, d, &x, m.i, k.i, n), dot_at(g, d->unit, to, m.i, room, k.i));
    cpu_loop_end(g, &k);
    cpu_loop_end(g, &m);
}

/* Columns first .. end - 1 of b, where they are contiguous, into panels at `to`: all of a
   row before the next one, since memory delivers lines that follow one another faster. */
static void
copy_panels(Gen *g, const Dot *d, LLVMValueRef first, LLVMValueRef end, LLVMValueRef to)
{
    int64_t room = d->room ? d->room : d->k;
    unsigned n = (unsigned)min_i64(min_i64(2 * d->lanes, MOST_LANES / d->group), d->cols);
    DotOperand y = prefetching(g, d, &d->y, NEAR * (unsigned)d->group);
    CpuLoop k = cpu_loop(g, 0, d->k, 1), p = cpu_loop_from(g, first, end, d->cols);
    CpuLoop j = cpu_loop(g, 0, d->cols, n);
    LLVMValueRef o = LLVMBuildAdd(g->b, p.i, j.i, "");
    LLVMValueRef v = along_outer(g, d, &y, o, k.i, n);
    LLVMValueRef panel = LLVMBuildSub(g->b, p.i, first, "");
    LLVMValueRef at = dot_at(g, d->unit, to, panel, room, j.i);
    store(g, d, v, dot_at(g, d->unit, at, k.i, d->cols, ll_int(g->i64, 0)));
    cpu_loop_end(g, &j);
    cpu_loop_end(g, &p);
    cpu_loop_end(g, &k);
}

/* Vectors as rows of a square become its columns. */
static void
transpose(Gen *g, LLVMValueRef *v, unsigned n)
{
    unsigned low[MOST_LANES], high[MOST_LANES];
    for (unsigned s = 1; s < n; s *= 2) {
        for (unsigned i = 0; i < n; i++) {
            low[i] = i & s ? n + i - s : i;
            high[i] = i & s ? n + i : i + s;
        }
        for (unsigned i = 0; i < n; i++) {
            LLVMValueRef a = v[i], b;
            if (i & s)
                continue;
            b = v[i + s];
            v[i] = shuffle(g, a, b, low, n);
            v[i + s] = shuffle(g, a, b, high, n);
        }
    }
}

/* Squares of n by n, along memory's rows. */
static void
pack_transposed(Gen *g, const Dot *d, const DotOperand *x, LLVMValueRef first,
                int64_t count, LLVMValueRef to)
{
    unsigned n = (unsigned)min_i64(d->lanes, min_i64(count, d->k));
    LLVMValueRef v[MOST_LANES];
    int64_t room = d->room ? d->room : d->k, rows = x->k_runs ? count : d->k;
    DotOperand y = prefetching(g, d, x, x->k_runs ? n : n * (unsigned)d->group);
    CpuLoop r = cpu_loop(g, 0, rows, n), c = cpu_loop(g, 0, x->k_runs ? d->k : count, n);
    LLVMValueRef o = x->k_runs ? r.i : c.i, k = x->k_runs ? c.i : r.i;
    LLVMValueRef from = LLVMBuildAdd(g->b, o, first, "");
    for (unsigned i = 0; i < n; i++)
        v[i] = x->k_runs ? along_k(g, d, &y, plus(g, from, i), k, n)
                         : along_outer(g, d, &y, from, plus(g, k, i), n);
    if (n > 1)
        transpose(g, v, n);
    for (unsigned i = 0; i < n; i++)
        store(g, d, v[i],
              x->k_runs ? dot_at(g, d->unit, to, plus(g, k, i), count, o)
                        : dot_at(g, d->unit, to, plus(g, o, i), room, k));
    cpu_loop_end(g, &c);
    cpu_loop_end(g, &r);
}

/* Elements that one load of a pack takes. */
static unsigned
width(const Dot *d, const DotOperand *x, int64_t count, bool k_runs)
{
    int64_t minor = k_runs ? d->k : count;
    int64_t n = x->k_runs == k_runs ? min_i64(2 * d->lanes, MOST_LANES / d->group)
                                    : min_i64(d->lanes, min_i64(count, d->k));
    n = x->k_runs == k_runs ? min_i64(n, minor) : n;
    return (unsigned)(x->k_runs ? n * d->group : n);
}

LLVMValueRef
dot_watch(Gen *g, const Dot *d, const DotOperand *x, int64_t count, bool k_runs)
{
    unsigned n = width(d, x, count, k_runs);
    return cpu_alloca(g, ll_vector(ll_memory(g->cx, x->kind), n));
}

void
dot_pack_rows(Gen *g, const Dot *d, LLVMValueRef to)
{
    if (d->x.k_runs)
        copy_rows(g, d, to);
    else
        pack_transposed(g, d, &d->x, ll_int(g->i64, 0), d->m, to);
}

void
dot_pack_panels(Gen *g, const Dot *d, LLVMValueRef first, LLVMValueRef end,
                LLVMValueRef to)
{
    if (!d->y.k_runs) {
        copy_panels(g, d, first, end, to);
        return;
    }
    CpuLoop p = cpu_loop_from(g, first, end, d->cols);
    LLVMValueRef panel = LLVMBuildSub(g->b, p.i, first, "");
    int64_t room = d->room ? d->room : d->k;
    pack_transposed(g, d, &d->y, p.i, d->cols,
                    dot_at(g, d->unit, to, panel, room, ll_int(g->i64, 0)));
    cpu_loop_end(g, &p);
}
