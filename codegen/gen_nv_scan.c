/* Inclusive scans. A thread's chunks first, one element after the other; then the chunks'
   last elements across lanes by shuffles, across warps through shared memory, and from
   chunk to chunk of a thread; what comes before a chunk is combined into its elements
   last. The operation is any associative one: there is no neutral element, so a prefix
   carries the condition under which it exists. In reverse every index counts from the
   other end. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/base/util.h"
#include "ir/plan/scan_plan.h"
#include "ir/plan/scratch.h"

enum { MAX_IN = 8, WARP = 32 };

/* Values of all operands at one place. `valid` NULL: they exist everywhere. */
typedef struct Item {
    LLVMValueRef v[MAX_IN];
    bool none; /* they exist nowhere */
    LLVMValueRef valid;
} Item;

typedef struct Scan {
    Gen *g;
    const Op *op;
    ScanPlan p;
    int n;
    LLVMValueRef *v[MAX_IN]; /* the registers in the plan's layout */
    LLVMValueRef lane, warp; /* the thread's place along the axis */
    LLVMValueRef base;
    Item *before, *last; /* per chunk: its warp's elements before it, and up to its end */
} Scan;

/* a and then b, where both are there. */
static bool
combine(Scan *s, const Item *a, const Item *b, Item *out)
{
    LLVMValueRef args[2 * MAX_IN], r[MAX_IN];
    Gen *g = s->g;
    if (a->none || b->none) {
        *out = a->none ? *b : *a;
        return true;
    }
    for (int k = 0; k < s->n; k++) {
        args[k] = a->v[k];
        args[s->n + k] = b->v[k];
    }
    if (!nv_inline(g, s->op->regions[0], args, r))
        return false;
    Item x = {.valid = NULL};
    for (int k = 0; k < s->n; k++) {
        x.v[k] = b->valid ? LLVMBuildSelect(g->b, b->valid, r[k], args[k], "") : r[k];
        if (a->valid)
            x.v[k] = LLVMBuildSelect(g->b, a->valid, x.v[k], args[s->n + k], "");
    }
    if (a->valid && b->valid)
        x.valid = LLVMBuildOr(g->b, a->valid, b->valid, "");
    *out = x;
    return true;
}

static Item
item_at(const Scan *s, uint32_t reg)
{
    Item x = {.valid = NULL};
    for (int k = 0; k < s->n; k++)
        x.v[k] = s->v[k][reg];
    return x;
}

/* ---- places */

static uint32_t
spread(const int *bit, int n, uint32_t index)
{
    uint32_t r = 0;
    for (int i = 0; i < n; i++)
        r |= (index >> i & 1) << bit[i];
    return r;
}

static uint32_t
turned(const Scan *s, uint32_t index, int bits)
{
    return s->p.reverse ? (1u << bits) - 1 - index : index;
}

/* Register of element i of the chunk that begins at `reg`. */
static uint32_t
inner_reg(const Scan *s, uint32_t reg, uint32_t i)
{
    return reg | spread(s->p.inner_bit, s->p.inner, turned(s, i, s->p.inner));
}

static uint32_t
outer_reg(const Scan *s, uint32_t line, uint32_t i)
{
    return line | spread(s->p.outer_bit, s->p.outer, turned(s, i, s->p.outer));
}

static uint32_t
chunk_of(const Scan *s, uint32_t line, uint32_t i)
{
    uint32_t reg = outer_reg(s, line, i), n = 0, at = 0;
    uint32_t inside = spread(s->p.inner_bit, s->p.inner, ~0u);
    for (int b = 0; b < s->p.work->nbasis[LD_REG]; b++)
        if (!(inside >> b & 1))
            n |= (reg >> b & 1) << at++;
    return n;
}

/* The thread's number along the axis in a group of bits of v. */
static LLVMValueRef
place(Scan *s, LLVMValueRef v, int low, int bits)
{
    Gen *g = s->g;
    LLVMValueRef most = ll_int(g->i32, ((int64_t)1 << bits) - 1);
    v = LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, v, ll_int(g->i32, low), ""), most, "");
    return s->p.reverse ? LLVMBuildSub(g->b, most, v, "") : v;
}

static LLVMValueRef
at_least(Gen *g, LLVMValueRef v, int64_t n)
{
    return LLVMBuildICmp(g->b, LLVMIntUGE, v, ll_int(g->i32, n), "");
}

/* ---- lanes */

static LLVMValueRef
shuffle(Gen *g, const Type *e, LLVMValueRef x, LLVMValueRef from)
{
    int bits = 8 * shared_elem_bytes(e);
    LLVMValueRef v = nv_to_bits(g, e, x, bits), part[2];
    LLVMTypeRef word = LLVMTypeOf(v);
    for (int i = 0; i < (bits > 32 ? 2 : 1); i++) {
        LLVMValueRef w = i ? LLVMBuildLShr(g->b, v, ll_int(word, 32), "") : v;
        LLVMValueRef args[4] = {ll_int(g->i32, -1),
                                LLVMBuildIntCast2(g->b, w, g->i32, 0, ""), from,
                                ll_int(g->i32, WARP - 1)};
        part[i] =
            LLVMBuildIntCast2(g->b, ptx_call(g, PTX_SHFL_IDX, args, 4), word, 0, "");
    }
    if (bits > 32) {
        part[1] = LLVMBuildShl(g->b, part[1], ll_int(word, 32), "");
        part[0] = LLVMBuildOr(g->b, part[0], part[1], "");
    }
    return nv_from_bits(g, e, part[0]);
}

/* x as the lane `back` places before has it, where there is one. */
static Item
from_lane(Scan *s, const Item *x, int back)
{
    Gen *g = s->g;
    Item r = {.valid = at_least(g, s->lane, back)};
    int64_t step = (int64_t)back << s->p.lane_bit;
    LLVMValueRef from = LLVMBuildAdd(g->b, nv_of(g)->lane,
                                     ll_int(g->i32, s->p.reverse ? step : -step), "");
    for (int k = 0; k < s->n; k++)
        r.v[k] = shuffle(g, type_elem(s->op->results[k].type), x->v[k], from);
    return r;
}

/* x as the last lane of the line has it. */
static Item
from_last_lane(Scan *s, const Item *x)
{
    Gen *g = s->g;
    Item r = {.valid = NULL};
    int64_t mask = (((int64_t)1 << s->p.lanes) - 1) << s->p.lane_bit;
    LLVMValueRef lane = nv_of(g)->lane;
    LLVMValueRef from = s->p.reverse ? LLVMBuildAnd(g->b, lane, ll_int(g->i32, ~mask), "")
                                     : LLVMBuildOr(g->b, lane, ll_int(g->i32, mask), "");
    for (int k = 0; k < s->n; k++)
        r.v[k] = shuffle(g, type_elem(s->op->results[k].type), x->v[k], from);
    return r;
}

static bool
scan_chunk(Scan *s, uint32_t reg, Item *before, Item *last)
{
    Item x = item_at(s, inner_reg(s, reg, 0));
    for (uint32_t i = 1; i < 1u << s->p.inner; i++) {
        uint32_t r = inner_reg(s, reg, i);
        Item next = item_at(s, r);
        if (!combine(s, &x, &next, &x))
            return false;
        for (int k = 0; k < s->n; k++)
            s->v[k][r] = x.v[k];
    }
    *before = (Item){.none = true};
    for (int i = 0; i < s->p.lanes; i++) {
        Item other = from_lane(s, &x, 1 << i);
        if (!combine(s, &other, &x, &x))
            return false;
    }
    if (s->p.lanes)
        *before = from_lane(s, &x, 1);
    *last = x;
    return true;
}

/* ---- warps */

/* Address of operand k's sum of a chunk, as the warp at place w along the axis left it;
   w < 0: this thread's own. */
static LLVMValueRef
sum_at(Scan *s, int k, uint32_t chunk, int w)
{
    Gen *g = s->g;
    Nv *nv = nv_of(g);
    int bytes = shared_elem_bytes(s->op->results[k].type);
    int64_t lanes = (((int64_t)1 << s->p.lanes) - 1) << s->p.lane_bit;
    int64_t warps = (((int64_t)1 << s->p.warps) - 1) << s->p.warp_bit;
    int64_t threads = WARP * layout_warps(s->p.work);
    LLVMValueRef at = LLVMBuildAnd(g->b, nv->tid, ll_int(g->i32, ~lanes), "");
    if (w >= 0) {
        int64_t to = (int64_t)turned(s, (uint32_t)w, s->p.warps) << s->p.warp_bit;
        at = LLVMBuildAnd(g->b, at, ll_int(g->i32, ~(warps * WARP)), "");
        at = LLVMBuildOr(g->b, at, ll_int(g->i32, to * WARP), "");
    }
    at = LLVMBuildAdd(g->b, at, ll_int(g->i32, (int64_t)chunk * threads), "");
    at = LLVMBuildMul(g->b, at, ll_int(g->i32, bytes), "");
    LLVMValueRef base = nv_scratch_part(g, s->base, scan_sum_offset(s->op, &s->p, k));
    return LLVMBuildInBoundsGEP2(g->b, g->i8, base, &at, 1, "");
}

static void
leave_sums(Scan *s, int chunks)
{
    Gen *g = s->g;
    Guard guard = {0};
    if (s->p.lanes)
        guard = nv_guard_begin(g, at_least(g, s->lane, (1 << s->p.lanes) - 1));
    for (int c = 0; c < chunks; c++) {
        for (int k = 0; k < s->n; k++) {
            const Type *e = type_elem(s->op->results[k].type);
            LLVMValueRef x = nv_to_bits(g, e, s->last[c].v[k], 8 * shared_elem_bytes(e));
            LLVMBuildStore(g->b, x, sum_at(s, k, (uint32_t)c, -1));
        }
    }
    nv_guard_end(g, guard);
    nv_barrier(g);
}

/* What the warps before this one make of a chunk, and what all of them do. */
static bool
scan_warps(Scan *s, uint32_t chunk, Item *before, Item *all)
{
    Gen *g = s->g;
    *before = *all = (Item){.none = true};
    for (int w = 0; w < 1 << s->p.warps; w++) {
        Item x = {.valid = NULL};
        if (w) {
            for (int k = 0; k < s->n; k++) {
                LLVMValueRef here =
                    LLVMBuildICmp(g->b, LLVMIntEQ, s->warp, ll_int(g->i32, w), "");
                before->v[k] =
                    w > 1 ? LLVMBuildSelect(g->b, here, all->v[k], before->v[k], "")
                          : all->v[k];
            }
            before->none = false;
            before->valid = at_least(g, s->warp, 1);
        }
        for (int k = 0; k < s->n; k++) {
            const Type *e = type_elem(s->op->results[k].type);
            LLVMTypeRef t =
                LLVMIntTypeInContext(g->cx, 8 * (unsigned)shared_elem_bytes(e));
            LLVMValueRef at = sum_at(s, k, chunk, w);
            x.v[k] = nv_from_bits(g, e, LLVMBuildLoad2(g->b, t, at, ""));
        }
        if (!combine(s, all, &x, all))
            return false;
    }
    return true;
}

/* ---- all of it */

/* The chunks of one line: what comes before each is now known. */
static bool
finish_line(Scan *s, uint32_t line)
{
    Item carry = {.none = true}, warp = {.none = true}, all, before;
    for (uint32_t i = 0; i < 1u << s->p.outer; i++) {
        uint32_t c = chunk_of(s, line, i), reg = outer_reg(s, line, i);
        bool more = i + 1 < 1u << s->p.outer;
        if (s->p.warps && !scan_warps(s, c, &warp, &all))
            return false;
        if (!s->p.warps && more)
            all = s->p.lanes ? from_last_lane(s, &s->last[c]) : s->last[c];
        if (!combine(s, &carry, &warp, &before) ||
            !combine(s, &before, &s->before[c], &before))
            return false;
        for (uint32_t k = 0; !before.none && k < 1u << s->p.inner; k++) {
            uint32_t r = inner_reg(s, reg, k);
            Item x = item_at(s, r);
            if (!combine(s, &before, &x, &x))
                return false;
            for (int j = 0; j < s->n; j++)
                s->v[j][r] = x.v[j];
        }
        if (more && !combine(s, &carry, &all, &carry))
            return false;
    }
    return true;
}

static bool
scan_registers(Scan *s)
{
    Gen *g = s->g;
    int regs = layout_regs(s->p.work), chunks = regs >> s->p.inner;
    uint32_t along =
        spread(s->p.inner_bit, s->p.inner, ~0u) | spread(s->p.outer_bit, s->p.outer, ~0u);
    s->before = arena_array(&g->s->tmp, Item, chunks);
    s->last = arena_array(&g->s->tmp, Item, chunks);
    s->lane = place(s, nv_of(g)->lane, s->p.lane_bit, s->p.lanes);
    s->warp = place(s, nv_of(g)->warp, s->p.warp_bit, s->p.warps);
    for (uint32_t line = 0; line < (uint32_t)regs; line++) {
        for (uint32_t i = 0; !(line & along) && i < 1u << s->p.outer; i++) {
            uint32_t c = chunk_of(s, line, i);
            if (!scan_chunk(s, outer_reg(s, line, i), &s->before[c], &s->last[c]))
                return false;
        }
    }
    if (s->p.warps && s->p.moved)
        nv_barrier(g); /* the memory was read as tiles */
    if (s->p.warps)
        leave_sums(s, chunks);
    for (uint32_t line = 0; line < (uint32_t)regs; line++)
        if (!(line & along) && !finish_line(s, line))
            return false;
    return true;
}

static LLVMValueRef
tile_place(Scan *s, int k)
{
    return nv_scratch_part(s->g, s->base, scan_tile_offset(s->op, &s->p, k));
}

/* The tiles from the layouts that they have to those given, through scratch memory. */
static void
move(Scan *s, const Type **from, Regs **in, const Type **to, Regs **out)
{
    Gen *g = s->g;
    for (int first = 0, end; first < s->n; first = end) {
        end = s->p.in_turn ? first + 1 : s->n;
        if (first)
            nv_barrier(g); /* the tile before was read */
        for (int k = first; k < end; k++)
            nv_scratch_write(g, tile_place(s, k), from[k], in[k]);
        nv_barrier(g);
        for (int k = first; k < end; k++)
            nv_scratch_read(g, tile_place(s, k), to[k], out[k]);
    }
}

bool
nv_scan(Gen *g, const Op *op)
{
    Scan s = {.g = g, .op = op, .n = op->noperand};
    Regs *in[MAX_IN], *out[MAX_IN], *work[MAX_IN], room[MAX_IN];
    const Type *from[MAX_IN], *to[MAX_IN], *mid[MAX_IN];
    if (s.n > MAX_IN)
        return gen_unsupported(g, op, "of so many tiles") != NULL;
    scan_plan(g->s, op, &s.p);
    if (scan_bytes(op, &s.p) && !(s.base = nv_scratch(g, op)))
        return false;
    for (int k = 0; k < s.n; k++) {
        from[k] = op_operand(op, k)->type;
        to[k] = op->results[k].type;
        mid[k] = type_with_layout(g->s->types, to[k], s.p.work);
        in[k] = nv_regs(g, op_operand(op, k));
        out[k] = nv_define(g, &op->results[k], nv_count(to[k]));
        if (!in[k] || !out[k])
            return false;
        work[k] = &room[k];
        room[k].n = layout_regs(s.p.work);
        room[k].v = arena_array(&g->s->tmp, LLVMValueRef, room[k].n);
        s.v[k] = room[k].v;
        for (int r = 0; !s.p.moved && r < room[k].n; r++)
            s.v[k][r] = in[k]->v[r];
    }
    if (s.p.moved)
        move(&s, from, in, mid, work);
    if (!scan_registers(&s))
        return false;
    if (s.p.moved) {
        nv_barrier(g);
        move(&s, mid, work, to, out);
    }
    for (int k = 0; k < s.n; k++)
        for (int r = 0; !s.p.moved && r < out[k]->n; r++)
            out[k]->v[r] = room[k].v[r];
    return true;
}
