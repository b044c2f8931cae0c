/* Tensor maps that a kernel writes: descriptors whose addresses and sizes it has loaded.

   TMA reads maps in global memory, so each running program has a slot of the module's
   own, with room for every map of the kernel. It takes one where it begins, with an
   atomic operation on the slot's word, and gives it back where it ends: there are as many
   as programs can run at once, whatever grid, stream or graph they are of, and the first
   one that a program looks at is free as a rule. No launch allocates anything, or knows.

   A warp writes a map, in shared memory, where single fields can be replaced, and copies
   it to the slot with what the proxies of tensor maps need: a release by the copy, an
   acquire by the warp that uses it. All have waited for what went by the map that was
   there before. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"
#include "ir/plan/scratch.h"
#include "ir/plan/tma_box.h"

#include "ir/base/util.h"

#include <stdio.h>

enum {
    MOST_SMS = 256, /* of any GPU */
    SM_THREADS = 2048,
    SM_BLOCKS = 32,
    SM_SHARED = 233472, /* of which the system takes 1 KB for each block */
    BLOCK_SHARED = 1024,
    ISA = 85 /* that of NV_MAP_DRIVER */
};

/* How many there are; *one: the last of them. */
static int
count_maps(const Func *f, const Op **one)
{
    int n = 0;
    region_each_deep(f->body, op)
    {
        n += op->kind == OP_TENSOR_MAP;
        *one = op->kind == OP_TENSOR_MAP ? op : *one;
    }
    return n;
}

/* Programs that run at once on any GPU. */
static int64_t
count_slots(const Func *f)
{
    int64_t by_shared = SM_SHARED / (f->shared_bytes + BLOCK_SHARED);
    int64_t by_threads = SM_THREADS / (32 * nv_launch_warps(f));
    int64_t blocks = min_i64(SM_BLOCKS, min_i64(by_shared, by_threads));
    return MOST_SMS * max_i64(1, blocks);
}

/* Zeroed memory of the module. */
static LLVMValueRef
module_memory(Gen *g, const char *name, int64_t bytes)
{
    LLVMTypeRef t = LLVMArrayType2(g->i8, (uint64_t)bytes);
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(g->mod, t, name, 1);
    LLVMSetInitializer(v, LLVMConstNull(t));
    LLVMSetLinkage(v, LLVMInternalLinkage);
    LLVMSetAlignment(v, TENSOR_MAP_BYTES);
    return LLVMBuildPtrToInt(g->b, v, g->i64, "");
}

static void
statement(Gen *g, const char *text, const char *constraints, LLVMValueRef *args, int n)
{
    ptx_asm(g, text, constraints, LLVMVoidTypeInContext(g->cx), args, n, true);
}

static LLVMValueRef
is_first_lane(Gen *g)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, nv_of(g)->lane, ll_int(g->i32, 0), "");
}

static LLVMValueRef
is_first_thread(Gen *g)
{
    return LLVMBuildICmp(g->b, LLVMIntEQ, nv_of(g)->tid, ll_int(g->i32, 0), "");
}

/* The program's number in the grid. */
static LLVMValueRef
linear_program(Gen *g)
{
    static const PtxId id[] = {PTX_CTAID_X, PTX_CTAID_Y, PTX_CTAID_Z};
    static const PtxId num[] = {PTX_NCTAID_X, PTX_NCTAID_Y};
    LLVMValueRef at = ptx_call(g, id[2], NULL, 0);
    for (int i = 1; i >= 0; i--) {
        at = LLVMBuildMul(g->b, at, ptx_call(g, num[i], NULL, 0), "");
        at = LLVMBuildAdd(g->b, at, ptx_call(g, id[i], NULL, 0), "");
    }
    return at;
}

/* The first thread's number, by way of shared memory that nothing is in yet; TMA may
   fill it later. */
static LLVMValueRef
tell_all(Gen *g, LLVMValueRef number, LLVMValueRef where)
{
    LLVMValueRef args[3] = {nv_shared_word(g, where), number, is_first_thread(g)};
    statement(g, "@$2 st.shared.b32 [$0], $1;", "r,r,b", args, 3);
    nv_barrier(g);
    number = ptx_asm(g, "ld.shared.b32 $0, [$1];", "=r,r", g->i32, args, 1, true);
    statement(g, "fence.proxy.async.shared::cta;", "", NULL, 0);
    nv_barrier(g);
    return number;
}

void
nv_maps_begin(Gen *g, const Func *f)
{
    Nv *nv = nv_of(g);
    const Op *one = NULL;
    int n = count_maps(f, &one);
    LLVMValueRef where = n ? nv_scratch(g, one) : NULL;
    if (!where)
        return;
    int64_t slots = count_slots(f), bytes = (int64_t)n * TENSOR_MAP_BYTES;
    LLVMValueRef taken = module_memory(g, "tensor_map_taken", 4 * slots);
    LLVMValueRef maps = module_memory(g, "tensor_maps", bytes * slots);
    LLVMValueRef start =
        LLVMBuildURem(g->b, linear_program(g), ll_int(g->i32, slots), "");
    LLVMValueRef args[4] = {start, taken, ll_int(g->i32, slots), is_first_thread(g)};
    /* Programs begin in order, and one so many behind finds that this one has ended. */
    LLVMValueRef slot = ptx_asm(
        g,
        "{ .reg .pred busy; .reg .pred end; .reg .b32 was; .reg .b64 word; "
        "mov.b32 $0, $1; @!$4 bra over; "
        "again: mad.wide.u32 word, $0, 4, $2; "
        "atom.acquire.gpu.global.cas.b32 was, [word], 0, 1; "
        "setp.eq.s32 busy, was, 1; @!busy bra over; "
        "add.s32 $0, $0, 1; setp.eq.s32 end, $0, $3; @end mov.b32 $0, 0; bra again; "
        "over: }",
        "=&r,r,l,r,b", g->i32, args, 4, true);
    slot = LLVMBuildZExt(g->b, tell_all(g, slot, where), g->i64, "");
    nv->map_slot =
        LLVMBuildAdd(g->b, maps, LLVMBuildMul(g->b, slot, ll_int(g->i64, bytes), ""), "");
    nv->map_taken =
        LLVMBuildAdd(g->b, taken, LLVMBuildMul(g->b, slot, ll_int(g->i64, 4), ""), "");
    g->ptx = ISA > g->ptx ? ISA : g->ptx;
}

void
nv_maps_end(Gen *g)
{
    const Nv *nv = nv_of(g);
    if (!nv->map_slot)
        return;
    LLVMValueRef args[2] = {nv->map_taken, is_first_thread(g)};
    LLVMValueRef all = ll_int(g->i32, -1);
    if (nv_roles_of(g->func)) /* the others have seen the last copy land */
        nv_barrier(g);
    else
        ptx_call(g, PTX_BARRIER_WARP, &all, 1);
    statement(g, "@$1 st.release.gpu.global.b32 [$0], 0;", "l,b", args, 2);
}

/* ---- writing a map */

typedef struct Fields {
    int n; /* dimensions */
    LLVMValueRef base, size[TMA_MAX_RANK], stride[TMA_MAX_RANK]; /* fastest first */
    int64_t box[TMA_MAX_RANK];
    int type, swizzle;
} Fields;

/* The number of an element type in PTX, from the driver's. */
static int
element_code(const Type *elem)
{
    enum { DRIVER_F64 = 8, DRIVER_BF16 = 9, F64 = 9, BF16 = 10 };
    int driver = tma_data_type(elem);
    return driver == DRIVER_F64 ? F64 : driver == DRIVER_BF16 ? BF16 : driver;
}

static bool
read_fields(Gen *g, const Op *op, Fields *f)
{
    const Type *t = op->results[0].type;
    const Attr *box = attr_find(&op->attrs, ATTR_BOX);
    int bytes = type_bits(t->elem) / 8;
    int64_t width = attr_int(&op->attrs, ATTR_SWIZZLE, 0);
    LLVMValueRef base = nv_scalar(g, op_operand(op, 0));
    f->n = t->rank;
    f->type = element_code(t->elem);
    f->swizzle = width == 128 ? 3 : width == 64 ? 2 : width == 32 ? 1 : 0;
    if (f->type < 0 || f->n > TMA_MAX_RANK)
        gen_unsupported(g, op, "of this type");
    if (!base || f->type < 0 || f->n > TMA_MAX_RANK)
        return false;
    f->base = LLVMBuildPtrToInt(g->b, base, g->i64, "");
    for (int d = 0; d < f->n; d++) {
        int from = t->rank - 1 - d;
        f->size[d] = nv_scalar(g, op_operand(op, 1 + from));
        f->stride[d] = nv_scalar(g, op_operand(op, 1 + t->rank + from));
        f->box[d] = d < box->n ? box->v.ints[d] : 1;
        if (!f->size[d] || !f->stride[d])
            return false;
        f->stride[d] = LLVMBuildMul(g->b, f->stride[d], ll_int(g->i64, bytes), "");
    }
    return true;
}

/* A map has one element at least. That of a tensor without any is a zero of the
   module's, and copies find zeros wherever they look. */
static void
make_whole(Gen *g, Fields *f)
{
    LLVMValueRef one = ll_int(g->i32, 1), empty = NULL;
    for (int d = 0; d < f->n; d++) {
        LLVMValueRef none = LLVMBuildICmp(g->b, LLVMIntSLT, f->size[d], one, "");
        empty = empty ? LLVMBuildOr(g->b, empty, none, "") : none;
    }
    LLVMValueRef zero = LLVMGetNamedGlobal(g->mod, "tensor_map_zero");
    zero = zero ? LLVMBuildPtrToInt(g->b, zero, g->i64, "")
                : module_memory(g, "tensor_map_zero", TMA_ALIGN);
    f->base = LLVMBuildSelect(g->b, empty, zero, f->base, "");
    for (int d = 0; d < f->n; d++)
        f->size[d] = LLVMBuildSelect(g->b, empty, one, f->size[d], "");
}

/* One field: `at` of several, or -1. */
static void
replace(Gen *g, LLVMValueRef smem, const char *field, int at, LLVMValueRef value)
{
    char text[160], index[16] = "";
    LLVMValueRef args[3] = {smem, value, is_first_lane(g)};
    bool wide = LLVMTypeOf(value) == g->i64, constant = LLVMIsConstant(value);
    if (at >= 0)
        snprintf(index, sizeof index, "%d, ", at);
    snprintf(text, sizeof text,
             "@$2 tensormap.replace.tile.%s.shared::cta.b1024.b%d [$0], %s$1;", field,
             wide ? 64 : 32, index);
    statement(g, text, wide ? "l,l,b" : constant && at < 0 ? "l,n,b" : "l,r,b", args, 3);
}

static void
write_fields(Gen *g, const Fields *f, LLVMValueRef smem)
{
    replace(g, smem, "global_address", -1, f->base);
    replace(g, smem, "rank", -1, ll_int(g->i32, f->n - 1));
    for (int d = 0; d < f->n; d++) {
        replace(g, smem, "box_dim", d, ll_int(g->i32, f->box[d]));
        replace(g, smem, "global_dim", d, f->size[d]);
        replace(g, smem, "element_stride", d, ll_int(g->i32, 1));
        if (d)
            replace(g, smem, "global_stride", d - 1, f->stride[d]);
    }
    replace(g, smem, "elemtype", -1, ll_int(g->i32, f->type));
    replace(g, smem, "interleave_layout", -1, ll_int(g->i32, 0));
    replace(g, smem, "swizzle_mode", -1, ll_int(g->i32, f->swizzle));
    replace(g, smem, "fill_mode", -1, ll_int(g->i32, 0));
}

static bool
is_stored_through(const Op *op)
{
    value_each_use(&op->results[0], u) if (u->user->kind == OP_TMA_STORE) return true;
    return false;
}

void
nv_acquire_map(Gen *g, LLVMValueRef map)
{
    statement(g, "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;", "l", &map, 1);
}

/* Is the next thing that happens another map, in other shared memory? Then both are
   written at once. */
static bool
is_followed(Gen *g, const Op *op)
{
    const Nv *nv = nv_of(g);
    for (op = op->next; op && op_is(op, T_PURE) && !op->nregion; op = op->next)
        if (op->nresult != 1 || type_is_tile(op->results[0].type) ||
            scratch_bytes(op, &g->info))
            return false;
    bool other = op && op->kind == OP_TENSOR_MAP;
    for (int i = 0; other && i < nv->nfresh; i++)
        other = attr_int(&op->attrs, ATTR_OFFSET, 0) !=
                attr_int(&nv->fresh[i]->attrs, ATTR_OFFSET, 0);
    return other;
}

static Guard
only_warp(Gen *g, int warp)
{
    LLVMValueRef n = ll_int(g->i32, warp);
    return nv_guard_begin(
        g, LLVMBuildICmp(g->b, LLVMIntEQ, nv_uniform_warp(g), n, ""));
}

/* The map in shared memory, and from there to the slot. */
static void
publish(Gen *g, const Fields *f, LLVMValueRef word, LLVMValueRef to)
{
    LLVMValueRef args[2], all = ll_int(g->i32, -1);
    args[0] = LLVMBuildAdd(
        g->b, word, LLVMBuildMul(g->b, nv_of(g)->lane, ll_int(g->i32, 4), ""), "");
    args[1] = ll_int(g->i32, 0);
    statement(g, "st.shared.b32 [$0], $1;", "r,r", args, 2);
    ptx_call(g, PTX_BARRIER_WARP, &all, 1);
    args[0] = to;
    args[1] = LLVMBuildZExt(g->b, word, g->i64, "");
    write_fields(g, f, args[1]);
    ptx_call(g, PTX_BARRIER_WARP, &all, 1);
    statement(g,
              "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"
              ".sync.aligned [$0], [$1], 128;",
              "l,l", args, 2);
}

/* By a warp for each of those that follow each other, since the steps wait: the first
   one for maps that its stores have gone by. Behind the barrier, which is that of ops
   with scratch memory, the first warp acquires them all. */
bool
nv_tensor_map(Gen *g, const Op *op)
{
    Nv *nv = nv_of(g);
    Fields f;
    if (nv->barrier || !g->info.tensor_maps)
        return gen_unsupported(g, op, nv->barrier ? "in a role" : NULL) != NULL;
    LLVMValueRef scratch = nv_scratch(g, op);
    Regs *out = scratch ? nv_define(g, &op->results[0], 1) : NULL;
    if (!out || !read_fields(g, op, &f))
        return false;
    LLVMValueRef number = ll_int(g->i64, (int64_t)nv->nmaps++ * TENSOR_MAP_BYTES);
    out->v[0] = LLVMBuildAdd(g->b, nv->map_slot, number, "");
    make_whole(g, &f);
    bool stored = is_stored_through(op);
    Guard guard = only_warp(g, stored ? 0 : (nv->nfresh + 1) % nv_warps(g));
    if (stored) /* what went by the map that was there has read it */
        statement(g, "cp.async.bulk.wait_group.read 0;", "", NULL, 0);
    publish(g, &f, nv_shared_word(g, scratch), out->v[0]);
    nv_guard_end(g, guard);
    nv->fresh[nv->nfresh++] = op;
    if (nv->nfresh < NV_FRESH_MAPS && is_followed(g, op))
        return true;
    nv_barrier(g);
    guard = only_warp(g, 0);
    for (int i = 0; i < nv->nfresh; i++)
        nv_acquire_map(g, nv_scalar(g, &nv->fresh[i]->results[0]));
    nv_guard_end(g, guard);
    nv->nfresh = 0;
    return true;
}
