/* A row in order, by a bitonic network on vectors in memory. Two runs in order become
   one: an element is compared with the one as far from the other end, then with those
   half as far away, and so on; first vectors with vectors, then lanes with lanes.

       a b c d | e f g h:   a-h b-g c-f d-e   a-c b-d e-g f-h   a-b c-d e-f g-h

   No branch depends on the elements. A group of vectors goes through all distances below
   its size in registers, so a run of eight vectors is never in memory in between, and a
   longer one once for each distance above. The largest key comes first
   (gen_cpu_order.h). */
#include "codegen/gen_cpu_order.h"

#include "ir/base/util.h"

enum { GROUP = 8, MOST_LANES = 64 };

typedef struct Net {
    const Sort *s;
    LLVMTypeRef vec;
    LLVMValueRef work;
    unsigned lanes, group;
} Net;

static LLVMValueRef
extreme(Gen *g, bool most, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef in[2] = {a, b};
    return ll_intrinsic1(g->b, most ? "llvm.smax" : "llvm.smin", in, 2);
}

/* Lane i of the result is lane i ^ by. */
static LLVMValueRef
exchanged(Gen *g, const Net *n, LLVMValueRef x, unsigned by)
{
    LLVMValueRef from[MOST_LANES];
    for (unsigned i = 0; i < n->lanes; i++)
        from[i] = ll_int(g->i32, i ^ by);
    LLVMTypeRef t = LLVMTypeOf(x);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetUndef(t),
                                  LLVMConstVector(from, n->lanes), "");
}

/* Each lane and lane ^ by in order; `bit` is the highest of `by`. */
static LLVMValueRef
lanes_step(Gen *g, const Net *n, LLVMValueRef x, unsigned by, unsigned bit)
{
    LLVMValueRef first[MOST_LANES], y = exchanged(g, n, x, by);
    for (unsigned i = 0; i < n->lanes; i++)
        first[i] = ll_int(g->i1, !(i & bit));
    return LLVMBuildSelect(g->b, LLVMConstVector(first, n->lanes),
                           extreme(g, true, x, y), extreme(g, false, x, y), "");
}

static void
pair(Gen *g, LLVMValueRef *a, LLVMValueRef *b)
{
    LLVMValueRef x = *a, y = *b;
    *a = extreme(g, true, x, y);
    *b = extreme(g, false, x, y);
}

/* The other end's lanes need not be turned back: what follows takes them either way. */
static void
pair_mirrored(Gen *g, const Net *n, LLVMValueRef *a, LLVMValueRef *b)
{
    if (n->lanes > 1)
        *b = exchanged(g, n, *b, n->lanes - 1);
    pair(g, a, b);
}

/* From distances of `far` vectors down to single lanes. */
static void
finish(Gen *g, const Net *n, LLVMValueRef *x, unsigned count, unsigned far)
{
    for (unsigned d = far; d > 0; d /= 2)
        for (unsigned i = 0; i < count; i++)
            if (!(i & d))
                pair(g, &x[i], &x[i + d]);
    for (unsigned d = n->lanes / 2; d > 0; d /= 2)
        for (unsigned i = 0; i < count; i++)
            x[i] = lanes_step(g, n, x[i], d, d);
}

static LLVMValueRef
place(Gen *g, const Net *n, LLVMValueRef p, LLVMValueRef vector, int64_t by)
{
    LLVMValueRef i = LLVMBuildAdd(g->b, vector, ll_int(g->i64, by), "");
    i = LLVMBuildMul(g->b, i, ll_int(g->i64, n->lanes), "");
    return LLVMBuildGEP2(g->b, n->s->order.key, p, &i, 1, "");
}

static LLVMValueRef
load(Gen *g, const Net *n, LLVMValueRef p)
{
    LLVMValueRef x = LLVMBuildLoad2(g->b, n->vec, p, "");
    LLVMSetAlignment(x, LLVMGetIntTypeWidth(n->s->order.key) / 8);
    return x;
}

static void
store(Gen *g, const Net *n, LLVMValueRef x, LLVMValueRef p)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, x, p),
                     LLVMGetIntTypeWidth(n->s->order.key) / 8);
}

/* Groups of vectors, each in order. */
static void
groups(Gen *g, const Net *n, LLVMValueRef from, int64_t vectors)
{
    LLVMValueRef x[GROUP];
    CpuLoop l = cpu_loop(g, 0, vectors, n->group);
    for (unsigned i = 0; i < n->group; i++)
        x[i] = order_key(g, &n->s->order, load(g, n, place(g, n, from, l.i, i)));
    for (unsigned run = 2; run <= n->lanes; run *= 2)
        for (unsigned i = 0; i < n->group; i++) {
            x[i] = lanes_step(g, n, x[i], run - 1, run / 2);
            for (unsigned d = run / 4; d > 0; d /= 2)
                x[i] = lanes_step(g, n, x[i], d, d);
        }
    for (unsigned run = 2; run <= n->group; run *= 2) {
        for (unsigned i = 0; i < n->group; i++)
            if (!(i & (run / 2)))
                pair_mirrored(g, n, &x[i], &x[i ^ (run - 1)]);
        finish(g, n, x, n->group, run / 4);
    }
    for (unsigned i = 0; i < n->group; i++)
        store(g, n, x[i], place(g, n, n->work, l.i, i));
    cpu_loop_end(g, &l);
}

/* Vectors of blocks of `run`, each with the one `run / 2` further on, or mirrored: as far
   from the block's other end. */
static void
pass(Gen *g, const Net *n, int64_t vectors, int64_t run, bool mirrored)
{
    CpuLoop block = cpu_loop(g, 0, vectors, run);
    CpuLoop l = cpu_loop(g, 0, run / 2, 1);
    LLVMValueRef at = LLVMBuildAdd(g->b, block.i, l.i, ""), other = at;
    if (mirrored)
        other = LLVMBuildSub(g->b, block.i, l.i, "");
    LLVMValueRef p = place(g, n, n->work, at, 0);
    LLVMValueRef q = place(g, n, n->work, other, mirrored ? run - 1 : run / 2);
    LLVMValueRef a = load(g, n, p), b = load(g, n, q);
    if (mirrored)
        pair_mirrored(g, n, &a, &b);
    else
        pair(g, &a, &b);
    store(g, n, a, p);
    store(g, n, b, q);
    cpu_loop_end(g, &l);
    cpu_loop_end(g, &block);
}

static void
last_passes(Gen *g, const Net *n, int64_t vectors)
{
    LLVMValueRef x[GROUP];
    CpuLoop l = cpu_loop(g, 0, vectors, n->group);
    for (unsigned i = 0; i < n->group; i++)
        x[i] = load(g, n, place(g, n, n->work, l.i, i));
    finish(g, n, x, n->group, n->group / 2);
    for (unsigned i = 0; i < n->group; i++)
        store(g, n, x[i], place(g, n, n->work, l.i, i));
    cpu_loop_end(g, &l);
}

void
cpu_sort_row(Gen *g, const Sort *s, LLVMValueRef from, LLVMValueRef work,
             LLVMValueRef to)
{
    Net n = {.s = s, .work = work, .lanes = s->lanes};
    n.vec = LLVMVectorType(s->order.key, s->lanes);
    int64_t vectors = s->n / s->lanes;
    n.group = (unsigned)min_i64(vectors, GROUP);
    groups(g, &n, from, vectors);
    for (int64_t run = 2 * n.group; run <= vectors; run *= 2) {
        pass(g, &n, vectors, run, true);
        for (int64_t part = run / 2; part > n.group; part /= 2)
            pass(g, &n, vectors, part, false);
        last_passes(g, &n, vectors);
    }
    n.lanes = (unsigned)min_i64(s->lanes, s->k);
    n.vec = LLVMVectorType(s->order.key, n.lanes);
    CpuLoop l = cpu_loop(g, 0, s->k / n.lanes, 1);
    LLVMValueRef x = load(g, &n, place(g, &n, work, l.i, 0));
    store(g, &n, order_element(g, &s->order, x), place(g, &n, to, l.i, 0));
    cpu_loop_end(g, &l);
}
