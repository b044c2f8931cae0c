/* Loads and stores of cpu form. Consecutive elements are one vector access; lanes at
   other places are taken one by one. A masked-off lane never touches memory: the
   machine's masked accesses are used, of 32 and 64 bits with AVX2, of any with AVX-512;
   for other consecutive ones there is a loop over lanes with a branch, and lanes at other
   places access memory of the function's own when they are off. */
#include "codegen/gen_cpu.h"

#include "ir/base/util.h"
#include "ir/edit.h"

enum { UNROLLED = 64 };

LLVMTypeRef
cpu_element(Gen *g, const Type *elem)
{
    return elem->kind == TY_PTR ? g->ptr : ll_memory(g->cx, elem->scalar);
}

static bool
is_bool(const Type *elem)
{
    return elem->kind == TY_SCALAR && elem->scalar == SK_I1;
}

/* Between the form in memory and in registers: only i1 differs. */
static LLVMValueRef
from_memory(Gen *g, const Type *elem, LLVMValueRef x)
{
    return is_bool(elem)
               ? LLVMBuildICmp(g->b, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)), "")
               : x;
}

LLVMValueRef
cpu_to_memory(Gen *g, const Type *elem, LLVMValueRef x)
{
    return is_bool(elem) ? LLVMBuildZExt(g->b, x, ll_like(x, g->i8), "") : x;
}

static unsigned
bytes_of(const Type *elem)
{
    return elem->kind == TY_PTR ? 8 : (unsigned)ll_bytes(elem->scalar);
}

static void
store(Gen *g, LLVMValueRef x, LLVMValueRef p, unsigned align)
{
    LLVMSetAlignment(LLVMBuildStore(g->b, x, p), align);
}

/* ---- one lane at a time, under a mask */

typedef struct Lanes {
    CpuLoop loop;
    LLVMBasicBlockRef next;
} Lanes;

static LLVMValueRef
spill(Gen *g, LLVMValueRef v)
{
    LLVMValueRef p = cpu_alloca(g, LLVMTypeOf(v));
    LLVMBuildStore(g->b, v, p);
    return p;
}

static LLVMValueRef
lane_of(Gen *g, LLVMTypeRef t, LLVMValueRef base, LLVMValueRef i)
{
    return LLVMBuildGEP2(g->b, t, base, &i, 1, "");
}

/* Opens a loop whose body runs for the lanes that the mask has. */
static Lanes
lanes_open(Gen *g, LLVMValueRef mask)
{
    Lanes l;
    LLVMValueRef bytes = LLVMBuildZExt(g->b, mask, ll_like(mask, g->i8), "");
    LLVMValueRef m = spill(g, bytes);
    l.loop = cpu_loop(g, 0, ll_lanes(mask), 1);
    l.next = cpu_block(g, "next");
    LLVMBasicBlockRef on = cpu_block(g, "on");
    LLVMValueRef bit = LLVMBuildLoad2(g->b, g->i8, lane_of(g, g->i8, m, l.loop.i), "");
    LLVMValueRef is = LLVMBuildICmp(g->b, LLVMIntNE, bit, ll_int(g->i8, 0), "");
    LLVMBuildCondBr(g->b, is, on, l.next);
    LLVMPositionBuilderAtEnd(g->b, on);
    return l;
}

static void
lanes_close(Gen *g, Lanes *l)
{
    LLVMBuildBr(g->b, l->next);
    LLVMPositionBuilderAtEnd(g->b, l->next);
    cpu_loop_end(g, &l->loop);
}

static LLVMValueRef
load_lanes(Gen *g, LLVMTypeRef elem, unsigned align, LLVMValueRef p, LLVMValueRef mask,
           LLVMValueRef other)
{
    LLVMValueRef out = spill(g, other);
    Lanes l = lanes_open(g, mask);
    LLVMValueRef x = ll_load(g->b, elem, lane_of(g, elem, p, l.loop.i), align);
    LLVMBuildStore(g->b, x, lane_of(g, elem, out, l.loop.i));
    lanes_close(g, &l);
    return LLVMBuildLoad2(g->b, LLVMTypeOf(other), out, "");
}

static void
store_lanes(Gen *g, LLVMTypeRef elem, unsigned align, LLVMValueRef p, LLVMValueRef x,
            LLVMValueRef mask)
{
    LLVMValueRef vals = spill(g, x);
    Lanes l = lanes_open(g, mask);
    LLVMValueRef v = LLVMBuildLoad2(g->b, elem, lane_of(g, elem, vals, l.loop.i), "");
    store(g, v, lane_of(g, elem, p, l.loop.i), align);
    lanes_close(g, &l);
}

static void
masked_store(Gen *g, LLVMValueRef x, LLVMValueRef p, LLVMValueRef mask)
{
    LLVMTypeRef over[2] = {LLVMTypeOf(x), g->ptr};
    LLVMValueRef args[3] = {x, p, mask};
    ll_intrinsic(g->b, "llvm.masked.store", over, 2, args, 3);
}

/* ---- groups of lanes under a mask */

/* What cpu_load and cpu_store hand down. */
typedef struct Access {
    LLVMTypeRef elem;
    unsigned align;
    LLVMValueRef p, x; /* x: what is stored, or of masked-off lanes */
    bool has;          /* has the machine a mask for these lanes? */
} Access;

static LLVMValueRef
address_of(Gen *g, const Access *a, unsigned at)
{
    LLVMValueRef by = ll_int(g->i64, at);
    return LLVMBuildGEP2(g->b, a->elem, a->p, &by, 1, "");
}

static LLVMValueRef
store_part(Gen *g, void *cx, unsigned at, unsigned n, LLVMValueRef mask)
{
    const Access *a = cx;
    LLVMValueRef x = ll_extract(g->b, a->x, at, n), to = address_of(g, a, at);
    if (!mask)
        store(g, x, to, a->align);
    else if (a->has)
        masked_store(g, x, to, mask);
    else
        store_lanes(g, a->elem, a->align, to, x, mask);
    return NULL;
}

static LLVMValueRef
load_part(Gen *g, void *cx, unsigned at, unsigned n, LLVMValueRef mask)
{
    const Access *a = cx;
    LLVMValueRef from = address_of(g, a, at);
    if (!mask)
        return ll_load(g->b, LLVMVectorType(a->elem, n), from, a->align);
    return load_lanes(g, a->elem, a->align, from, mask, ll_extract(g->b, a->x, at, n));
}

/* Lanes of 32 bytes, of 16 where the machine has no mask for them. */
static unsigned
group_lanes(unsigned bytes)
{
    return (bytes >= 4 ? 32 : 16) / bytes;
}

/* ---- scalars under a mask */

static LLVMValueRef
load_scalar(Gen *g, LLVMTypeRef t, unsigned align, LLVMValueRef p, LLVMValueRef mask,
            LLVMValueRef other)
{
    if (!mask)
        return ll_load(g->b, t, p, align);
    LLVMBasicBlockRef from = LLVMGetInsertBlock(g->b), on = cpu_block(g, "on");
    LLVMBasicBlockRef done = cpu_block(g, "done");
    LLVMBuildCondBr(g->b, mask, on, done);
    LLVMPositionBuilderAtEnd(g->b, on);
    LLVMValueRef x = ll_load(g->b, t, p, align);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
    LLVMValueRef phi = LLVMBuildPhi(g->b, t, "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){other, x}, (LLVMBasicBlockRef[]){from, on}, 2);
    return phi;
}

static void
store_scalar(Gen *g, unsigned align, LLVMValueRef p, LLVMValueRef x, LLVMValueRef mask)
{
    if (!mask) {
        store(g, x, p, align);
        return;
    }
    LLVMBasicBlockRef on = cpu_block(g, "on"), done = cpu_block(g, "done");
    LLVMBuildCondBr(g->b, mask, on, done);
    LLVMPositionBuilderAtEnd(g->b, on);
    store(g, x, p, align);
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, done);
}

/* ---- strips */

static LLVMValueRef
scatter_part(Gen *g, void *cx, unsigned at, unsigned n, LLVMValueRef mask)
{
    const Access *a = cx;
    LLVMValueRef x = ll_extract(g->b, a->x, at, n), to = ll_extract(g->b, a->p, at, n);
    if (mask)
        to = cpu_diverted(g, a->elem, to, mask, x);
    for (unsigned i = 0; i < n; i++)
        store(g, ll_extract(g->b, x, i, 1), ll_extract(g->b, to, i, 1), a->align);
    return NULL;
}

static LLVMValueRef
masked_load_whole(Gen *g, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef mask,
                  LLVMValueRef other)
{
    LLVMTypeRef over[2] = {t, g->ptr};
    LLVMValueRef args[3] = {p, mask, other};
    return ll_intrinsic(g->b, "llvm.masked.load", over, 2, args, 3);
}

/* A mask by way of an empty piece of assembly: what the optimiser does not know it cannot
   fold. LLVM 22, for machines with AVX2, turns a masked load whose lanes it finds to be
   off into one without a mask: it reads what it must not. The mask goes in the form that
   the machine has it in: lanes of all bits or none (`wide`), or bits. */
static LLVMValueRef
masked_opaque(Gen *g, LLVMValueRef mask, LLVMValueRef wide)
{
    LLVMTypeRef bits = LLVMIntTypeInContext(g->cx, ll_lanes(mask));
    LLVMValueRef in = wide ? wide : LLVMBuildBitCast(g->b, mask, bits, "");
    LLVMTypeRef t = LLVMTypeOf(in), fn = LLVMFunctionType(t, &t, 1, 0);
    LLVMValueRef code = LLVMGetInlineAsm(fn, "", 0, wide ? "=x,0" : "=r,0", 4, 0, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMValueRef out = LLVMBuildCall2(g->b, fn, code, &in, 1, "");
    return wide ? LLVMBuildICmp(g->b, LLVMIntSLT, out, LLVMConstNull(t), "")
                : LLVMBuildBitCast(g->b, out, LLVMTypeOf(mask), "");
}

static LLVMValueRef
masked_load(Gen *g, LLVMTypeRef t, LLVMValueRef p, LLVMValueRef mask, LLVMValueRef other)
{
    LLVMTypeRef elem = LLVMGetElementType(t);
    unsigned lanes = LLVMGetVectorSize(t), n = 0;
    LLVMTypeKind kind = LLVMGetTypeKind(elem);
    unsigned bytes = kind == LLVMHalfTypeKind      ? 2
                     : kind == LLVMFloatTypeKind   ? 4
                     : kind == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(elem) / 8
                                                   : 8;
    bool avx512 = ((const Cpu *)g->priv)->avx512;
    LLVMValueRef part[64], wide = NULL;
    unsigned width = (avx512 && lanes * bytes >= 64 ? 64 : 32) / bytes;
    width = lanes < width ? lanes : width;
    if (!avx512 || width < 8)
        wide = LLVMBuildSExt(g->b, mask, ll_like(mask, bytes == 8 ? g->i64 : g->i32), "");
    for (unsigned at = 0; at < lanes; at += width) {
        LLVMValueRef by = ll_int(g->i64, (int64_t)at * bytes);
        LLVMValueRef from = LLVMBuildGEP2(g->b, g->i8, p, &by, 1, "");
        LLVMValueRef on = masked_opaque(g, ll_extract(g->b, mask, at, width),
                                        wide ? ll_extract(g->b, wide, at, width) : NULL);
        part[n++] = masked_load_whole(g, LLVMVectorType(elem, width), from, on,
                                      ll_extract(g->b, other, at, width));
    }
    return ll_concat(g->b, part, n);
}

/* Has the machine a masked access for these? AVX2 has them of 32 and 64 bits. */
static bool
has_masked(Gen *g, const Type *elem, unsigned lanes)
{
    const Cpu *c = g->priv;
    unsigned bytes = bytes_of(elem);
    bool has = c->avx512 || (c->avx2 && bytes >= 4);
    return has && elem->kind == TY_SCALAR && lanes * bytes >= 16;
}

/* Requests for lines of the cache, see passes/cpu/simd_fetch.c. Further along a run of
   memory, one line of two: the second level fetches pairs, and a request that finds its
   line there takes the place of a load. */
static void
fetch_lines(Gen *g, const Op *op)
{
    enum { LINE = 64, SECOND = 2, FIRST = 3 };
    int64_t from = attr_int(&op->attrs, ATTR_OFFSET, 0);
    int64_t bytes = attr_int(&op->attrs, ATTR_BYTES, 0);
    bool write = attr_has(&op->attrs, ATTR_WRITE);
    int close = attr_has(&op->attrs, ATTR_NEAR) ? FIRST : SECOND;
    int step = close == SECOND && from ? 2 * LINE : LINE;
    for (int64_t at = from; at < from + bytes; at += step) {
        LLVMValueRef by = ll_int(g->i64, at), p = cpu_value(g, op_operand(op, 0));
        LLVMValueRef args[4] = {LLVMBuildGEP2(g->b, g->i8, p, &by, 1, ""),
                                ll_int(g->i32, write), ll_int(g->i32, close),
                                ll_int(g->i32, 1)};
        ll_intrinsic1(g->b, "llvm.prefetch", args, 4);
    }
}

LLVMValueRef
cpu_load(Gen *g, const Op *op, const Type *elem, unsigned lanes, LLVMValueRef p,
         LLVMValueRef mask, LLVMValueRef other)
{
    LLVMTypeRef e = cpu_element(g, elem), t = ll_vector(e, lanes);
    unsigned align = bytes_of(elem);
    if (other)
        other = cpu_to_memory(g, elem, other);
    if (mask && !other)
        other = LLVMConstNull(t);
    LLVMValueRef x, down = NULL;
    if (lanes > 1 && ll_is_vector(p) && (down = cpu_runs_down(g, op, e, lanes))) {
        p = down;
        mask = mask ? cpu_reversed(g, mask) : NULL;
        other = mask ? cpu_reversed(g, other) : NULL;
    }
    if (lanes == 1)
        x = load_scalar(g, e, align, p, mask, other);
    else if (ll_is_vector(p))
        x = cpu_gather(g, op, e, align, p, mask, other);
    else if (!mask)
        x = ll_load(g->b, t, p, align);
    else if (!ll_is_vector(p) && has_masked(g, elem, lanes))
        x = masked_load(g, t, p, mask, other);
    else
        x = cpu_groups(g, mask, other, group_lanes(align), load_part,
                       &(Access){.elem = e, .align = align, .p = p, .x = other});
    return from_memory(g, elem, down ? cpu_reversed(g, x) : x);
}

void
cpu_store(Gen *g, const Op *op, const Type *elem, LLVMValueRef p, LLVMValueRef x,
          LLVMValueRef mask)
{
    unsigned align = bytes_of(elem), lanes = ll_lanes(x);
    LLVMTypeRef e = cpu_element(g, elem);
    LLVMValueRef down = NULL;
    bool avx512 = ((const Cpu *)g->priv)->avx512, has = has_masked(g, elem, lanes);
    x = cpu_to_memory(g, elem, x);
    if (lanes > 1 && ll_is_vector(p) &&
        (down = cpu_runs_down(g, op, e, lanes))) {
        p = down;
        x = cpu_reversed(g, x);
        mask = mask ? cpu_reversed(g, mask) : NULL;
    }
    Access a = {.elem = e, .align = align, .p = p, .x = x, .has = has};
    if (lanes == 1)
        store_scalar(g, align, p, x, mask);
    else if (ll_is_vector(p) && mask && !avx512)
        cpu_groups(g, mask, NULL, GROUP_APART, scatter_part, &a);
    else if (ll_is_vector(p))
        scatter_part(g, &a, 0, lanes, mask);
    else if (!mask)
        store(g, x, p, align);
    else if (avx512 && has)
        masked_store(g, x, p, mask);
    else
        cpu_groups(g, mask, NULL, group_lanes(align), store_part, &a);
}

/* ---- buffers */

int64_t
cpu_pitch(const Type *t)
{
    enum { LONG = 1024, LINE = 64 };
    int64_t n = t->shape[t->rank - 1], bytes = bytes_of(t->elem);
    return t->rank > 1 && n * bytes >= LONG ? n + LINE / bytes : n;
}

LLVMValueRef
cpu_workspace(Gen *g, int64_t from, int64_t bytes)
{
    Cpu *c = g->priv;
    int64_t offset = (from + 63) / 64 * 64;
    c->work_bytes = max_i64(c->work_bytes, offset + bytes);
    LLVMValueRef at = ll_int(g->i64, c->scratch_bytes + offset);
    return LLVMBuildGEP2(g->b, g->i8, c->scratch, &at, 1, "work");
}

/* The address in a buffer, or a strip of addresses where an index is a strip or lanes do
   not run along the last dimension. */
static LLVMValueRef
buffer_address(Gen *g, const Op *op, int first, unsigned lanes)
{
    const Type *t = op_operand(op, 0)->type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, t->rank - 1);
    LLVMTypeRef e = cpu_element(g, t->elem);
    LLVMValueRef at = NULL;
    int64_t stride = 1, lane_stride = 1;
    bool strips = false;
    for (int i = t->rank - 1; i >= 0; i--) {
        LLVMValueRef x = cpu_value(g, op_operand(op, first + i));
        LLVMValueRef y = LLVMBuildMul(g->b, x, ll_int(LLVMTypeOf(x), stride), "");
        strips |= ll_is_vector(x);
        if (at && ll_is_vector(at) != ll_is_vector(y)) {
            at = ll_is_vector(at) ? at : ll_splat(g->b, at, lanes);
            y = ll_is_vector(y) ? y : ll_splat(g->b, y, lanes);
        }
        at = at ? LLVMBuildAdd(g->b, at, y, "") : y;
        if (i == axis)
            lane_stride = stride;
        stride *= i == t->rank - 1 ? cpu_pitch(t) : t->shape[i];
    }
    if (!strips && lanes > 1 && lane_stride != 1) {
        LLVMValueRef step = ll_int(LLVMVectorType(g->i64, lanes), lane_stride);
        LLVMValueRef l = LLVMBuildMul(g->b, ll_iota(g->i64, lanes, 0), step, "");
        at = LLVMBuildAdd(g->b, ll_splat(g->b, at, lanes), l, "");
    }
    return LLVMBuildGEP2(g->b, e, cpu_value(g, op_operand(op, 0)), &at, 1, "");
}

bool
cpu_memory(Gen *g, const Op *op)
{
    LLVMValueRef p, mask = NULL, other = NULL;
    const Type *elem;
    bool loads = op->nresult == 1;
    if (op->kind == OP_VFETCH) {
        fetch_lines(g, op);
        return true;
    }
    unsigned lanes = cpu_lanes(loads ? op->results[0].type : op_operand(op, 1)->type);
    if (op->kind == OP_BUF_LOAD || op->kind == OP_BUF_STORE) {
        elem = op_operand(op, 0)->type->elem;
        p = buffer_address(g, op, loads ? 1 : 2, lanes);
    } else {
        int m = loads ? 1 : 2;
        elem = type_elem(op_operand(op, 0)->type)->elem;
        p = cpu_value(g, op_operand(op, 0));
        mask = op->noperand > m ? cpu_value(g, op_operand(op, m)) : NULL;
        other = loads && op->noperand > 2 ? cpu_value(g, op_operand(op, 2)) : NULL;
    }
    if (lanes > UNROLLED)
        return gen_unsupported(g, op, "of more than 64 lanes") != NULL;
    if (loads)
        cpu_set(g, &op->results[0], cpu_load(g, op, elem, lanes, p, mask, other));
    if (op_acquires(op))
        LLVMBuildFence(g->b, LLVMAtomicOrderingAcquire, 0, "");
    if (!loads)
        cpu_store(g, op, elem, p, cpu_value(g, op_operand(op, 1)), mask);
    return true;
}
