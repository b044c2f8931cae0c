/* buf_topk: of each row the elements that come first, in order. Where they are few, the
   best keys so far are held in registers, the last of them is the bound, and few elements
   pass it once a row has begun: strips of keys are compared with it, and only those that
   pass are put in their place. Otherwise the row is sorted (gen_cpu_sort.c).

       bound = best[k - 1]
       for strip of row {
         for each lane with key > bound:  best = max(best, min(shifted best, key)) } */
#include "codegen/gen_cpu_order.h"

#include "ir/base/util.h"

enum { MOST_BEST = 64, STRIPS = 4, BITS = 64 };

typedef struct TopK {
    Order order;
    int64_t n, k;
    unsigned lanes, strips, bests; /* of a vector; vectors of a step and of the best */
    LLVMTypeRef vec;
    LLVMValueRef best[MOST_BEST], bound, step; /* in memory, until LLVM lifts them */
} TopK;

static LLVMValueRef
at(Gen *g, const TopK *t, LLVMValueRef p, LLVMValueRef i, int64_t by)
{
    i = LLVMBuildAdd(g->b, i, ll_int(g->i64, by), "");
    return LLVMBuildGEP2(g->b, t->order.key, p, &i, 1, "");
}

/* The best with one key among them: what it displaces moves one place on. */
static void
insert(Gen *g, const TopK *t, LLVMValueRef key)
{
    LLVMValueRef x = ll_splat(g->b, key, t->lanes), old[MOST_BEST], from[2 * BITS];
    LLVMValueRef before = ll_int(t->vec, order_most(&t->order));
    for (unsigned v = 0; v < t->bests; v++)
        old[v] = LLVMBuildLoad2(g->b, t->vec, t->best[v], "");
    for (unsigned v = 0; v < t->bests; v++) {
        LLVMValueRef moved = before;
        for (unsigned i = 0; i < t->lanes; i++)
            from[i] = ll_int(g->i32, t->lanes - 1 + i);
        if (t->lanes > 1)
            moved = LLVMBuildShuffleVector(g->b, before, old[v],
                                           LLVMConstVector(from, t->lanes), "");
        LLVMValueRef args[2] = {moved, x};
        args[1] = ll_intrinsic1(g->b, "llvm.smin", args, 2);
        args[0] = old[v];
        LLVMBuildStore(g->b, ll_intrinsic1(g->b, "llvm.smax", args, 2), t->best[v]);
        before = old[v];
    }
}

static void
set_bound(Gen *g, const TopK *t)
{
    unsigned last = (unsigned)(t->k - 1);
    LLVMValueRef v = LLVMBuildLoad2(g->b, t->vec, t->best[last / t->lanes], "");
    v = ll_splat(g->b, ll_extract(g->b, v, last % t->lanes, 1), t->lanes);
    LLVMBuildStore(g->b, v, t->bound);
}

/* Those of a step whose bits are set. */
static void
insert_all(Gen *g, const TopK *t, LLVMValueRef bits)
{
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), body = cpu_block(g, "insert");
    LLVMBasicBlockRef done = cpu_block(g, "inserted");
    LLVMBuildBr(g->b, body);
    LLVMPositionBuilderAtEnd(g->b, body);
    LLVMValueRef left = LLVMBuildPhi(g->b, g->i64, "left");
    LLVMAddIncoming(left, &bits, &from, 1);
    LLVMValueRef args[2] = {left, ll_int(g->i1, 1)};
    LLVMValueRef lane = ll_intrinsic1(g->b, "llvm.cttz", args, 2);
    insert(g, t, LLVMBuildLoad2(g->b, t->order.key, at(g, t, t->step, lane, 0), ""));
    LLVMValueRef less = LLVMBuildAdd(g->b, left, ll_int(g->i64, -1), "");
    less = LLVMBuildAnd(g->b, left, less, "");
    LLVMAddIncoming(left, &less, &body, 1);
    LLVMValueRef some = LLVMBuildICmp(g->b, LLVMIntNE, less, ll_int(g->i64, 0), "");
    LLVMBuildCondBr(g->b, some, body, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    set_bound(g, t);
}

/* Which lanes pass the bound, as the low bits of a number. */
static LLVMValueRef
passes(Gen *g, const TopK *t, LLVMValueRef key, unsigned strip)
{
    LLVMValueRef bound = LLVMBuildLoad2(g->b, t->vec, t->bound, "");
    LLVMValueRef more = LLVMBuildICmp(g->b, LLVMIntSGT, key, bound, "");
    LLVMTypeRef bits = LLVMIntTypeInContext(g->cx, t->lanes);
    more = LLVMBuildBitCast(g->b, more, bits, "");
    if (t->lanes < BITS)
        more = LLVMBuildZExt(g->b, more, g->i64, "");
    return LLVMBuildShl(g->b, more, ll_int(g->i64, strip * t->lanes), "");
}

static void
row(Gen *g, const TopK *t, LLVMValueRef from, LLVMValueRef to)
{
    LLVMValueRef key[STRIPS], bits = NULL;
    LLVMValueRef least = ll_int(t->vec, -order_most(&t->order) - 1);
    for (unsigned v = 0; v < t->bests; v++)
        LLVMBuildStore(g->b, least, t->best[v]);
    LLVMBuildStore(g->b, least, t->bound);
    CpuLoop l = cpu_loop(g, 0, t->n, t->strips * t->lanes);
    unsigned bytes = LLVMGetIntTypeWidth(t->order.key) / 8;
    for (unsigned s = 0; s < t->strips; s++) {
        LLVMValueRef p = at(g, t, from, l.i, s * t->lanes);
        LLVMValueRef x = LLVMBuildLoad2(g->b, t->vec, p, "");
        LLVMSetAlignment(x, bytes);
        key[s] = order_key(g, &t->order, x);
        LLVMValueRef more = passes(g, t, key[s], s);
        bits = bits ? LLVMBuildOr(g->b, bits, more, "") : more;
    }
    LLVMBasicBlockRef some = cpu_block(g, "some"), next = cpu_block(g, "next");
    LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntEQ, bits, ll_int(g->i64, 0), "");
    ll_likely(LLVMBuildCondBr(g->b, none, next, some), 0);
    LLVMPositionBuilderAtEnd(g->b, some);
    for (unsigned s = 0; s < t->strips; s++)
        LLVMBuildStore(g->b, key[s],
                       at(g, t, t->step, ll_int(g->i64, s * t->lanes), 0));
    insert_all(g, t, bits);
    LLVMBuildBr(g->b, next);
    LLVMPositionBuilderAtEnd(g->b, next);
    cpu_loop_end(g, &l);
    for (unsigned v = 0; v < t->bests; v++) {
        LLVMValueRef x = LLVMBuildLoad2(g->b, t->vec, t->best[v], "");
        x = order_element(g, &t->order, x);
        unsigned n = (unsigned)min_i64(t->lanes, t->k);
        x = ll_extract(g->b, x, 0, n);
        LLVMValueRef p = at(g, t, to, ll_int(g->i64, v * t->lanes), 0);
        LLVMSetAlignment(LLVMBuildStore(g->b, x, p), bytes);
    }
}

/* What holds the best in registers. False: so many of so few are found sooner by sorting
   them all. */
static bool
selects(Gen *g, TopK *t)
{
    enum { VECTORS = 16, SHARE = 8 };
    t->strips = (unsigned)min_i64(min_i64(STRIPS, BITS / t->lanes), t->n / t->lanes);
    t->bests = (unsigned)((t->k + t->lanes - 1) / t->lanes);
    if (t->k > MOST_BEST || SHARE * t->k > t->n || t->n < VECTORS * t->lanes)
        return false;
    t->vec = LLVMVectorType(t->order.key, t->lanes);
    for (unsigned v = 0; v < t->bests; v++)
        t->best[v] = cpu_alloca(g, t->vec);
    t->bound = cpu_alloca(g, t->vec);
    t->step = cpu_alloca(g, LLVMArrayType2(t->vec, t->strips));
    return true;
}

bool
cpu_topk(Gen *g, const Op *op)
{
    const Type *from = op_operand(op, 0)->type, *to = op_operand(op, 1)->type;
    const Cpu *c = g->priv;
    int bytes = ll_bytes(from->elem->scalar);
    int width = c->avx512 ? 64 : c->avx2 ? 32 : 16;
    TopK t = {.order = order_of(g, from->elem, attr_str(&op->attrs, ATTR_PRED)),
              .n = from->shape[from->rank - 1],
              .k = to->shape[to->rank - 1]};
    t.lanes = (unsigned)min_i64(width / bytes, t.n);
    Sort s = {.order = t.order, .n = t.n, .k = t.k, .lanes = t.lanes};
    bool few = selects(g, &t);
    LLVMValueRef work = NULL;
    if (!few && t.k < t.n)
        work = cpu_workspace(g, 0, t.n * bytes);
    CpuLoop r = cpu_loop(g, 0, type_numel(from) / t.n, 1);
    LLVMValueRef here[2];
    for (int i = 0; i < 2; i++) {
        const Type *b = op_operand(op, i)->type;
        LLVMValueRef off = LLVMBuildMul(g->b, r.i, ll_int(g->i64, cpu_pitch(b)), "");
        here[i] = at(g, &t, cpu_value(g, op_operand(op, i)), off, 0);
    }
    if (few)
        row(g, &t, here[0], here[1]);
    else
        cpu_sort_row(g, &s, here[0], work ? work : here[1], here[1]);
    cpu_loop_end(g, &r);
    return true;
}
