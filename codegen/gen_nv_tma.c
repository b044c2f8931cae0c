/* TMA copies boxes of tensors between global and shared memory. One thread issues a copy;
   a tensor map, which the launcher passes as a parameter of the kernel, says where the
   tensor is and how the box lies in shared memory. Elements outside of the tensor are
   read as zeros and are not written.

   A tile consists of as many boxes as its rows have widths of the swizzle. A load reports
   its bytes to an mbarrier; stores form groups of the issuing thread, as cp.async
   does. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"
#include "ir/plan/tma_box.h"

#include "ir/base/util.h"

#include <stdio.h>
#include <string.h>

/* Address of the op's map, i64. */
static LLVMValueRef
map_address(Gen *g, const Op *op, const Map *of)
{
    if (tma_kernel_map(op_operand(op, 0)))
        return nv_scalar(g, op_operand(op, 0));
    const SdcrtMap *map = map_get(of, op);
    const SdcrtMeta *meta = nv_of(g)->meta;
    unsigned i = (unsigned)(meta->nparam + (map - meta->maps));
    return LLVMBuildPtrToInt(g->b, LLVMGetParam(g->fn, i), g->i64, "");
}

/* TMA will read the maps before anything else: they are on their way while the
   kernel computes its indices. */
void
nv_prefetch_maps(Gen *g)
{
    const Nv *nv = nv_of(g);
    LLVMValueRef args[2] = {NULL, nv->tid};
    if (!nv->meta->nmap || g->info.sm < 90)
        return;
    args[1] = LLVMBuildICmp(g->b, LLVMIntEQ, nv->tid, ll_int(g->i32, 0), "");
    for (int i = 0; i < nv->meta->nmap; i++) {
        LLVMValueRef map = LLVMGetParam(g->fn, (unsigned)(nv->meta->nparam + i));
        args[0] = LLVMBuildPtrToInt(g->b, map, g->i64, "");
        ptx_asm(g, "@$1 prefetch.tensormap [$0];", "l,b", LLVMVoidTypeInContext(g->cx),
                args, 2, true);
    }
}

/* "{$2, $3}": coordinates from operand `first` on. */
static void
coordinates(char *out, size_t size, int first, int n)
{
    int at = snprintf(out, size, "{");
    for (int i = 0; i < n; i++)
        at += snprintf(out + at, size - (size_t)at, "%s$%d", i ? ", " : "", first + i);
    snprintf(out + at, size - (size_t)at, "}");
}

typedef struct Copy {
    const Op *op;
    LLVMValueRef map, bar, pred; /* bar NULL: a store */
    LLVMValueRef both; /* where it holds, halves are asked for, for two programs */
    int rank;
    LLVMValueRef live; /* NULL, or a bit for each part of the tile: copied, or zeros */
    int along;         /* which dimension of the boxes has parts of so many elements */
    int64_t part;
} Copy;

/* One box: `smem` its address, `at` its coordinates, fastest first; `two`: for both
   programs of the cluster. */
static void
issue(Gen *g, const Copy *c, LLVMValueRef smem, LLVMValueRef *at, bool two)
{
    enum { BOTH = 3 }; /* a bit for each rank */
    char text[320], where[48], cons[64];
    LLVMValueRef args[5 + TMA_MAX_RANK];
    int n = 0, used;
    args[n++] = smem;
    args[n++] = c->map;
    for (int i = 0; i < c->rank; i++)
        args[n++] = at[i];
    coordinates(where, sizeof where, 2, c->rank);
    used = snprintf(cons, sizeof cons, "r,l");
    for (int i = 0; i < c->rank + (c->bar != NULL); i++)
        used += snprintf(cons + used, sizeof cons - (size_t)used, ",r");
    snprintf(cons + used, sizeof cons - (size_t)used, two ? ",h,b" : ",b");
    if (two) {
        args[n++] = c->bar;
        args[n++] = ll_int(LLVMInt16TypeInContext(g->cx), BOTH);
        snprintf(text, sizeof text,
                 "@$%d cp.async.bulk.tensor.%dd.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, %s], "
                 "[$%d], $%d;",
                 n, c->rank, where, n - 2, n - 1);
    } else if (c->bar) {
        args[n++] = c->bar;
        snprintf(text, sizeof text,
                 "@$%d cp.async.bulk.tensor.%dd.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [$0], [$1, %s], [$%d];",
                 n, c->rank, where, n - 1);
    } else {
        snprintf(text, sizeof text,
                 "@$%d cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group "
                 "[$1, %s], [$0];",
                 n, c->rank, where);
    }
    args[n++] = c->pred;
    ptx_asm(g, text, cons, LLVMVoidTypeInContext(g->cx), args, n, true);
}

static LLVMValueRef
plus(Gen *g, LLVMValueRef x, int64_t by)
{
    return by ? LLVMBuildAdd(g->b, x, ll_int(g->i32, by), "") : x;
}

/* The column of a box whose first element has such an index along the parts: in front of
   any tensor, where TMA reads zeros, if its part is not copied. */
static LLVMValueRef
live_column(Gen *g, const Copy *c, LLVMValueRef column, int64_t index)
{
    LLVMValueRef bit = ll_int(g->i32, (int64_t)1 << index / c->part);
    LLVMValueRef some = LLVMBuildAnd(g->b, c->live, bit, "");
    some = LLVMBuildICmp(g->b, LLVMIntNE, some, ll_int(g->i32, 0), "");
    return LLVMBuildSelect(g->b, some, column, ll_int(g->i32, TMA_OUTSIDE), "");
}

/* Boxes [0, n) of the tile in shared memory at `base`, its first element at `at`. */
static void
copy_boxes(Gen *g, const Copy *c, const TmaBoxes *b, const int64_t *n, LLVMValueRef base,
           const LLVMValueRef *at, bool two)
{
    LLVMValueRef now[TMA_MAX_RANK];
    memcpy(now, at, sizeof now);
    for (int64_t y = 0; y < n[1]; y++)
        for (int64_t x = 0; x < n[0]; x++) {
            now[0] = plus(g, at[0], x * b->box[0]);
            if (c->rank > 1)
                now[1] = plus(g, at[1], y * b->box[1]);
            if (c->live)
                now[0] = live_column(g, c, now[0],
                                     c->along ? y * b->box[1] : x * b->box[0]);
            issue(g, c, plus(g, base, x * b->by[0] + y * b->by[1]), now, two);
        }
}

/* The half of the tile that is this program's to ask for, by its rank. */
static bool
copy_half(Gen *g, const Copy *whole, const TmaBoxes *boxes, LLVMValueRef base,
          LLVMValueRef *at)
{
    TmaBoxes halves = *boxes, *b = &halves;
    Copy half = *whole, *c = &half;
    if (!tma_halves(b))
        return false;
    c->map = map_address(g, c->op, &nv_of(g)->halves);
    int along = b->n[0] % 2;
    int64_t n[2] = {b->n[0], b->n[1]};
    LLVMValueRef rank = ptx_call(g, PTX_CLUSTER_RANK, NULL, 0), from[TMA_MAX_RANK];
    memcpy(from, at, sizeof from);
    n[along] /= 2;
    from[along] = LLVMBuildAdd(
        g->b, at[along],
        LLVMBuildMul(g->b, rank, ll_int(g->i32, n[along] * b->box[along]), ""), "");
    base = LLVMBuildAdd(
        g->b, base, LLVMBuildMul(g->b, rank, ll_int(g->i32, n[along] * b->by[along]), ""),
        "");
    copy_boxes(g, c, b, n, base, from, true);
    return true;
}

/* The boxes with this warpgroup's rows. */
static bool
copy_group(Gen *g, const Copy *c, const TmaBoxes *boxes, int groups, LLVMValueRef base,
           const LLVMValueRef *at)
{
    TmaBoxes own = *boxes, *b = &own;
    int along;
    if (!tma_group_boxes(b, groups, &along))
        return false;
    LLVMValueRef group = nv_group(g), from[TMA_MAX_RANK];
    const int64_t each = GROUP_ROWS / b->box[along], turns = b->n[along] / each / groups;
    const int64_t bytes = each * b->by[along];
    b->n[along] = each;
    base = LLVMBuildAdd(g->b, base, LLVMBuildMul(g->b, group, ll_int(g->i32, bytes), ""),
                        "");
    memcpy(from, at, sizeof from);
    LLVMValueRef first = LLVMBuildAdd(
        g->b, at[along], LLVMBuildMul(g->b, group, ll_int(g->i32, GROUP_ROWS), ""), "");
    for (int64_t i = 0; i < turns; i++) {
        from[along] = plus(g, first, i * groups * GROUP_ROWS);
        copy_boxes(g, c, b, b->n, plus(g, base, i * groups * bytes), from, false);
    }
    return true;
}

/* All boxes of the tile; `first`: operand number of the first coordinate. */
static bool
copy_tile(Gen *g, Copy *c, int first)
{
    const Op *op = c->op;
    LLVMValueRef base = nv_scalar(g, op_operand(op, 1)), at[TMA_MAX_RANK] = {NULL};
    TmaBoxes b;
    c->rank = op_operand(op, 0)->type->rank;
    if (!base || !tma_boxes_of(g->s, op, op_operand(op, 1)->type, &b))
        return false;
    base = nv_shared_word(g, base);
    for (int i = 0; i < c->rank; i++)
        if (!(at[i] = nv_scalar(g, op_operand(op, first + c->rank - 1 - i))))
            return false;
    const Attr *parted = attr_find(&op->attrs, ATTR_PARTED);
    if (parted && !(c->live = nv_scalar(g, op_operand(op, first + c->rank))))
        return false;
    c->along = parted && b.order[0] != parted->v.ints[0];
    c->part = parted ? parted->v.ints[1] : 0;
    int groups = (int)attr_int(&op->attrs, ATTR_GROUPS, 0);
    if (groups)
        return copy_group(g, c, &b, groups, base, at);
    Guard guard = nv_guard_begin(g, c->both);
    if (c->both) {
        if (!copy_half(g, c, &b, base, at))
            return false;
        nv_guard_end(g, guard);
        guard = nv_guard_begin(g, LLVMBuildNot(g->b, c->both, ""));
    }
    copy_boxes(g, c, &b, b.n, base, at, false);
    nv_guard_end(g, guard);
    return true;
}

static bool
gen_load(Gen *g, const Op *op)
{
    int last = 3 + op_operand(op, 0)->type->rank + attr_has(&op->attrs, ATTR_PARTED);
    LLVMValueRef bar = nv_scalar(g, op_operand(op, 2));
    Copy c = {
        .op = op, .map = map_address(g, op, &nv_of(g)->maps), .pred = nv_elected(g)};
    if (!bar)
        return false;
    c.bar = nv_shared_word(g, bar);
    if (op->noperand > last) {
        LLVMValueRef pred = nv_scalar(g, op_operand(op, last));
        if (!pred)
            return false;
        if (attr_has(&op->attrs, ATTR_MULTICAST))
            c.both = pred;
        else
            c.pred = LLVMBuildAnd(g->b, c.pred, pred, "");
    }
    return copy_tile(g, &c, 3);
}

static bool
gen_store(Gen *g, const Op *op)
{
    bool groups = attr_has(&op->attrs, ATTR_GROUPS);
    Copy c = {.op = op,
              .map = map_address(g, op, &nv_of(g)->maps),
              .pred = groups ? nv_elected_of_group(g) : nv_elected(g)};
    if (!copy_tile(g, &c, 2))
        return false;
    ptx_asm(g, "@$0 cp.async.bulk.commit_group;", "b", LLVMVoidTypeInContext(g->cx),
            &c.pred, 1, true);
    return true;
}

/* Threads that asked for nothing have nothing to wait for. */
static bool
gen_wait(Gen *g, const Op *op)
{
    char text[64];
    snprintf(text, sizeof text, "cp.async.bulk.wait_group%s %d;",
             attr_has(&op->attrs, ATTR_WRITTEN) ? "" : ".read",
             (int)attr_int(&op->attrs, ATTR_PENDING, 0));
    ptx_asm(g, text, "", LLVMVoidTypeInContext(g->cx), NULL, 0, true);
    return true;
}

bool
nv_tma(Gen *g, const Op *op)
{
    if (g->info.sm < 90)
        return gen_unsupported(g, op, NULL) != NULL;
    if (op->kind == OP_TMA_WAIT)
        return gen_wait(g, op);
    return op->kind == OP_TMA_LOAD ? gen_load(g, op) : gen_store(g, op);
}
