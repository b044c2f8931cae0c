/* Reductions: first among a thread's own registers, then across lanes by shuffles,
   then across warps through shared memory (hopper.md's D.7 order: cheapest first).
   Which bits of the thread's number lie along the axis is read off the layout; bits
   that only lead to copies are skipped, so no element counts twice. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"

enum { MAX_IN = 8, WARP = 32 };

typedef struct Reduction {
    Gen *g;
    const Op *op;
    const Layout *l; /* of the operands */
    int axis, n;
    LLVMValueRef *acc[MAX_IN]; /* one per result register */
    int count;
} Reduction;

/* acc[.][i] = combine(acc[.][i], other[.]) */
static bool
combine(Reduction *r, int i, LLVMValueRef *other)
{
    LLVMValueRef args[2 * MAX_IN], out[MAX_IN];
    for (int k = 0; k < r->n; k++) {
        args[k] = r->acc[k][i];
        args[r->n + k] = other[k];
    }
    if (!nv_inline(r->g, r->op->regions[0], args, out))
        return false;
    for (int k = 0; k < r->n; k++)
        r->acc[k][i] = out[k];
    return true;
}

static uint32_t
without_axis(const Layout *l, uint32_t coord, int axis)
{
    uint32_t along = (uint32_t)layout_part(l, coord, axis) << layout_shift(l, axis);
    return coord & ~along;
}

/* Registers that differ along the axis alone become one. */
static bool
reduce_registers(Reduction *r, const Layout *to)
{
    Gen *g = r->g;
    int regs = layout_regs(r->l);
    for (int i = 0; i < r->count; i++) {
        bool first = true;
        for (int q = 0; q < regs; q++) {
            LLVMValueRef x[MAX_IN];
            uint32_t c = layout_at(r->l, LD_REG, (uint32_t)q), rest = 0;
            for (int d = 0, o = 0; to && d < r->l->rank; d++)
                if (d != r->axis)
                    rest |= (uint32_t)layout_part(r->l, c, d) << layout_shift(to, o++);
            if (to && rest != layout_at(to, LD_REG, (uint32_t)i))
                continue;
            for (int k = 0; k < r->n; k++)
                x[k] = nv_regs(g, op_operand(r->op, k))->v[q];
            if (first)
                for (int k = 0; k < r->n; k++)
                    r->acc[k][i] = x[k];
            else if (!combine(r, i, x))
                return false;
            first = false;
        }
        if (first)
            return gen_unsupported(g, r->op, "between threads") != NULL;
    }
    return true;
}

static LLVMValueRef
shuffle32(Gen *g, LLVMValueRef x, int lanes)
{
    LLVMValueRef args[4] = {ll_int(g->i32, -1), x, ll_int(g->i32, lanes),
                            ll_int(g->i32, 31)};
    return ptx_call(g, PTX_SHFL_BFLY, args, 4);
}

static LLVMValueRef
shuffle(Gen *g, LLVMValueRef x, int lanes)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    bool ptr = LLVMGetTypeKind(t) == LLVMPointerTypeKind;
    unsigned bits = ptr                                         ? 64
                    : LLVMGetTypeKind(t) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(t)
                    : t == g->f64                               ? 64
                    : t == g->f32                               ? 32
                                                                : 16;
    LLVMTypeRef word = LLVMIntTypeInContext(g->cx, bits);
    LLVMValueRef v =
        ptr ? LLVMBuildPtrToInt(g->b, x, word, "") : LLVMBuildBitCast(g->b, x, word, "");
    if (bits <= 32) {
        v = shuffle32(g, LLVMBuildZExt(g->b, v, g->i32, ""), lanes);
        v = LLVMBuildTrunc(g->b, v, word, "");
    } else {
        LLVMValueRef half = ll_int(g->i64, 32);
        LLVMValueRef lo = shuffle32(g, LLVMBuildTrunc(g->b, v, g->i32, ""), lanes);
        LLVMValueRef hi =
            LLVMBuildTrunc(g->b, LLVMBuildLShr(g->b, v, half, ""), g->i32, "");
        hi = LLVMBuildShl(g->b, LLVMBuildZExt(g->b, shuffle32(g, hi, lanes), g->i64, ""),
                          half, "");
        v = LLVMBuildOr(g->b, hi, LLVMBuildZExt(g->b, lo, g->i64, ""), "");
    }
    return ptr ? LLVMBuildIntToPtr(g->b, v, t, "") : LLVMBuildBitCast(g->b, v, t, "");
}

static bool
on_axis(const Reduction *r, uint32_t basis)
{
    return basis && without_axis(r->l, basis, r->axis) != basis;
}

static bool
reduce_lanes(Reduction *r)
{
    for (int j = 0; j < r->l->n[LD_LANE]; j++) {
        if (!on_axis(r, r->l->b[LD_LANE][j]))
            continue;
        for (int i = 0; i < r->count; i++) {
            LLVMValueRef other[MAX_IN];
            for (int k = 0; k < r->n; k++)
                other[k] = shuffle(r->g, r->acc[k][i], 1 << j);
            if (!combine(r, i, other))
                return false;
        }
    }
    return true;
}

/* ---- across warps */

static void
barrier(Gen *g)
{
    LLVMValueRef id = ll_int(g->i32, 0);
    ptx_call(g, PTX_BARRIER, &id, 1);
}

/* Place of this thread's register i in a buffer [register][thread], seen from another
   warp: warp number xor `flip`. */
static LLVMValueRef
place(Gen *g, LLVMValueRef buf, LLVMTypeRef t, int i, int threads, int flip)
{
    LLVMValueRef tid = nv_of(g)->tid;
    if (flip)
        tid = LLVMBuildXor(g->b, tid, ll_int(g->i32, flip * WARP), "");
    tid = LLVMBuildAdd(g->b, tid, ll_int(g->i32, (int64_t)i * threads), "");
    return LLVMBuildGEP2(g->b, t, buf, &tid, 1, "");
}

static LLVMValueRef
shared_buffer(Gen *g, LLVMTypeRef t, int count)
{
    LLVMTypeRef array = LLVMArrayType2(t, (uint64_t)count);
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(g->mod, array, "reduce", 3);
    LLVMSetLinkage(v, LLVMInternalLinkage);
    LLVMSetInitializer(v, LLVMGetUndef(array));
    LLVMSetAlignment(v, 16);
    return v;
}

static LLVMTypeRef
stored_type(Gen *g, LLVMValueRef x)
{
    return LLVMTypeOf(x) == g->i1 ? g->i8 : LLVMTypeOf(x);
}

static bool
reduce_warps(Reduction *r)
{
    Gen *g = r->g;
    int warps = 1 << r->l->n[LD_WARP], threads = WARP * warps, flips = 0;
    LLVMValueRef buf[MAX_IN];
    for (int j = 0; j < r->l->n[LD_WARP]; j++)
        if (on_axis(r, r->l->b[LD_WARP][j]))
            flips |= 1 << j;
    if (!flips)
        return true;
    for (int k = 0; k < r->n; k++) {
        LLVMTypeRef t = stored_type(g, r->acc[k][0]);
        buf[k] = shared_buffer(g, t, threads * r->count);
        for (int i = 0; i < r->count; i++) {
            LLVMValueRef x = r->acc[k][i];
            if (LLVMTypeOf(x) == g->i1)
                x = LLVMBuildZExt(g->b, x, t, "");
            LLVMBuildStore(g->b, x, place(g, buf[k], t, i, threads, 0));
        }
    }
    barrier(g);
    /* Every warp combines the parts in the order of warp numbers, so that all get the
       same bits. */
    for (int i = 0; i < r->count; i++) {
        bool first = true;
        for (int w = 0; w < warps; w++) {
            LLVMValueRef x[MAX_IN];
            if (w & ~flips)
                continue;
            for (int k = 0; k < r->n; k++) {
                LLVMTypeRef t = stored_type(g, r->acc[k][i]);
                LLVMValueRef tid = nv_of(g)->tid;
                tid =
                    LLVMBuildAnd(g->b, tid, ll_int(g->i32, ~((int64_t)flips * WARP)), "");
                tid = LLVMBuildOr(g->b, tid, ll_int(g->i32, (int64_t)w * WARP), "");
                tid = LLVMBuildAdd(g->b, tid, ll_int(g->i32, (int64_t)i * threads), "");
                LLVMValueRef at = LLVMBuildGEP2(g->b, t, buf[k], &tid, 1, "");
                x[k] = LLVMBuildLoad2(g->b, t, at, "");
                if (LLVMTypeOf(r->acc[k][i]) == g->i1)
                    x[k] = LLVMBuildTrunc(g->b, x[k], g->i1, "");
            }
            if (first)
                for (int k = 0; k < r->n; k++)
                    r->acc[k][i] = x[k];
            else if (!combine(r, i, x))
                return false;
            first = false;
        }
    }
    barrier(g); /* the buffer may be written again: a loop may be around */
    return true;
}

bool
nv_reduce(Gen *g, const Op *op)
{
    Reduction r = {.g = g,
                   .op = op,
                   .n = op->noperand,
                   .l = op_operand(op, 0)->type->layout,
                   .axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0)};
    if (r.n > MAX_IN || !r.l)
        return gen_unsupported(g, op, "of so many tiles") != NULL;
    const Type *t = op->results[0].type;
    const Layout *to = t->layout;
    r.count = nv_count(t);
    for (int k = 0; k < r.n; k++) {
        Regs *out = nv_define(g, &op->results[k], r.count);
        if (!out || !nv_regs(g, op_operand(op, k)))
            return false;
        r.acc[k] = out->v;
    }
    return reduce_registers(&r, to) && reduce_lanes(&r) && reduce_warps(&r);
}
