/* Lanes at places of their own in memory.

   Few elements apart, always as many: windows of memory from the first lane to the last
   are loaded whole and the lanes taken out of them. What lies between is on pages that
   lanes are on, so it is there.

       x[2 * lane], 16 lanes    =>    a = x[0 .. 15], b = x[15 .. 30], then one shuffle

   Lanes that run down through memory are a row the other way round, loads and stores.
   Lanes whose number of elements apart only the launch knows are scalar loads: their
   addresses are scalars. Any others are those of a vector; processors as old as AVX-512's
   bf16 gather faster than they take addresses out of one, older ones (with what is done
   there about Downfall) do not. Lanes that are off elsewhere are led into memory of the
   function's own, so that all are followed without a branch. */
#include "codegen/gen_cpu.h"

#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/fold.h"

enum { MOST_LANES = 64, MOST_APART = 4, LEAST = 4, LEAST_GATHERED = 8 };

typedef struct Places {
    bool count;         /* are they equally far apart? */
    LLVMValueRef first; /* where that is known: the first lane's, .. */
    int64_t apart;      /* .. and elements between two */
} Places;

static bool
counts(const Value *v)
{
    const Op *op = v->op;
    if (op && (op->kind == OP_SEXT || op->kind == OP_ZEXT))
        op = op_operand(op, 0)->op;
    return op && op->kind == OP_ARANGE && !attr_int(&op->attrs, ATTR_START, 0);
}

/* Of splat(p) + lane * n, and of buffers whose indices are scalars. */
static Places
places_of(Gen *g, const Op *op)
{
    Places x = {.count = op->kind == OP_BUF_LOAD};
    for (int i = 1; i < op->noperand && x.count; i++)
        x.count = !type_is_tile(op_operand(op, i)->type);
    Op *add = value_def(op_operand(op, 0), OP_ADDPTR);
    Op *first = add ? value_def(op_operand(add, 0), OP_SPLAT) : NULL;
    Op *mul = first ? value_def(op_operand(add, 1), OP_MUL) : NULL;
    Const c;
    for (int i = 0; mul && i < 2; i++) {
        const Value *n = op_operand(mul, !i);
        bool is_known = value_const(n, &c);
        if (!counts(op_operand(mul, i)) || (!is_known && !value_def(n, OP_SPLAT)))
            continue;
        x.count = true;
        x.first = cpu_value(g, op_operand(first, 0));
        x.apart = is_known ? c.i : 0;
    }
    return x;
}

static bool
is_plain(const Op *op)
{
    return !attr_has(&op->attrs, ATTR_VOLATILE) && !op_acquires(op);
}

const Value *
cpu_row_of(const Op *op)
{
    const Op *add = value_def(op_operand(op, 0), OP_ADDPTR);
    const Op *first = add ? value_def(op_operand(add, 0), OP_SPLAT) : NULL;
    return first && counts(op_operand(add, 1)) ? op_operand(first, 0) : NULL;
}

static LLVMValueRef
last_lane(Gen *g, LLVMTypeRef e, const Places *x, unsigned lanes)
{
    LLVMValueRef by = ll_int(g->i64, x->apart * ((int64_t)lanes - 1));
    return LLVMBuildGEP2(g->b, e, x->first, &by, 1, "");
}

LLVMValueRef
cpu_runs_down(Gen *g, const Op *op, LLVMTypeRef e, unsigned lanes)
{
    Places x = places_of(g, op);
    bool down = x.first && x.apart == -1 && lanes >= LEAST && is_plain(op);
    return down ? last_lane(g, e, &x, lanes) : NULL;
}

LLVMValueRef
cpu_reversed(Gen *g, LLVMValueRef x)
{
    LLVMValueRef at[MOST_LANES];
    unsigned n = ll_lanes(x);
    for (unsigned i = 0; i < n; i++)
        at[i] = ll_int(g->i32, n - 1 - i);
    return LLVMBuildShuffleVector(g->b, x, LLVMGetPoison(LLVMTypeOf(x)),
                                  LLVMConstVector(at, n), "");
}

/* n lanes from p on. Of the last window only what the last lane ends is loaded. */
static LLVMValueRef
windows(Gen *g, LLVMTypeRef e, unsigned align, LLVMValueRef p, unsigned n, unsigned apart)
{
    LLVMTypeRef t = LLVMVectorType(e, n);
    LLVMValueRef x = NULL, at[MOST_LANES];
    for (unsigned k = 0, taken = 0; k < apart; k++) {
        unsigned from = k + 1 < apart ? k * n : (apart - 1) * (n - 1);
        LLVMValueRef by = ll_int(g->i64, from);
        LLVMValueRef y = ll_load(g->b, t, LLVMBuildGEP2(g->b, e, p, &by, 1, ""), align);
        unsigned end = min_i64((from + n - 1) / apart + 1, n);
        for (unsigned i = 0; i < n; i++)
            at[i] = ll_int(g->i32, i < taken ? (x && k > 1 ? i : i * apart)
                                   : i < end ? n + i * apart - from
                                             : 0);
        if (x)
            x = LLVMBuildShuffleVector(g->b, x, y, LLVMConstVector(at, n), "");
        else
            x = y;
        taken = end;
    }
    return x;
}

static LLVMValueRef
by_windows(Gen *g, LLVMTypeRef e, unsigned align, LLVMValueRef p, unsigned lanes,
           unsigned apart)
{
    LLVMValueRef part[MOST_LANES];
    const Cpu *c = g->priv;
    unsigned width = (c->avx512 ? 64 : c->avx2 ? 32 : 16) / align, n = 0;
    width = min_i64(width, lanes);
    for (unsigned i = 0; i < lanes; i += width) {
        LLVMValueRef by = ll_int(g->i64, (int64_t)i * apart);
        part[n++] = windows(g, e, align, LLVMBuildGEP2(g->b, e, p, &by, 1, ""), width,
                            apart);
    }
    return ll_concat(g->b, part, n);
}

LLVMValueRef
cpu_diverted(Gen *g, LLVMTypeRef elem, LLVMValueRef ptrs, LLVMValueRef mask,
             LLVMValueRef own)
{
    LLVMValueRef lanes = ll_iota(g->i64, ll_lanes(ptrs), 0);
    LLVMValueRef p = cpu_alloca(g, LLVMTypeOf(own));
    LLVMBuildStore(g->b, own, p);
    LLVMValueRef to = LLVMBuildGEP2(g->b, elem, p, &lanes, 1, "");
    return LLVMBuildSelect(g->b, mask, ptrs, to, "");
}

static LLVMValueRef
gathered(Gen *g, LLVMTypeRef t, LLVMValueRef ptrs, LLVMValueRef mask, LLVMValueRef other)
{
    LLVMTypeRef over[2] = {t, LLVMTypeOf(ptrs)};
    LLVMTypeRef bits = ll_like(ptrs, LLVMInt1TypeInContext(g->cx));
    LLVMValueRef args[3] = {ptrs, mask ? mask : LLVMConstAllOnes(bits),
                            other ? other : LLVMConstNull(t)};
    return ll_intrinsic(g->b, "llvm.masked.gather", over, 2, args, 3);
}

/* Lanes one by one. */
typedef struct Apart {
    LLVMTypeRef elem;
    unsigned align;
    LLVMValueRef ptrs, other;
} Apart;

static LLVMValueRef
load_apart(Gen *g, void *cx, unsigned at, unsigned n, LLVMValueRef mask)
{
    const Apart *a = cx;
    LLVMValueRef part[MOST_LANES], ptrs = ll_extract(g->b, a->ptrs, at, n);
    if (mask)
        ptrs = cpu_diverted(g, a->elem, ptrs, mask, ll_extract(g->b, a->other, at, n));
    for (unsigned i = 0; i < n; i++)
        part[i] = ll_load(g->b, a->elem, ll_extract(g->b, ptrs, i, 1), a->align);
    return ll_concat(g->b, part, n);
}

LLVMValueRef
cpu_gather(Gen *g, const Op *op, LLVMTypeRef e, unsigned align, LLVMValueRef ptrs,
           LLVMValueRef mask, LLVMValueRef other)
{
    const Cpu *c = g->priv;
    unsigned lanes = ll_lanes(ptrs);
    Places x = places_of(g, op);
    bool plain = is_plain(op);
    if (!mask && plain && lanes >= LEAST && x.apart > 1 && x.apart <= MOST_APART)
        return by_windows(g, e, align, x.first, lanes, (unsigned)x.apart);
    if (!mask && plain && lanes >= LEAST && x.apart < -1 && x.apart >= -MOST_APART)
        return cpu_reversed(g, by_windows(g, e, align, last_lane(g, e, &x, lanes), lanes,
                                        (unsigned)-x.apart));
    bool has = c->bf16 && align >= 4 && e != g->ptr;
    if (has && plain && lanes >= LEAST_GATHERED && (mask || !x.count))
        return gathered(g, ll_vector(e, lanes), ptrs, mask, other);
    Apart a = {.elem = e, .align = align, .ptrs = ptrs, .other = other};
    if (mask && !c->avx512)
        return cpu_groups(g, mask, other, GROUP_APART, load_apart, &a);
    return load_apart(g, &a, 0, lanes, mask);
}
