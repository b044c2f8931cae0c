/* What a function costs in the layouts that it has: for layout_choose.c, which compares
   choices. In slots of a scheduler for a warp, where an addition takes one. Memory,
   shared memory and shuffles are shared by four schedulers, so each cycle of theirs is
   four slots.

   An access takes a cycle for each line of the cache that its lanes touch; a store also
   one for each sector, which it writes through. The bytes of global memory are the same
   in any layout: they take their time beside the rest, so that what memory hides gains
   little. Neither latency nor occupancy is known here. */
#include "passes/layout/layout.h"

#include "ir/base/util.h"
#include "ir/fold.h"
#include "ir/plan/scan_plan.h"
#include "ir/plan/scratch.h"
#include "passes/cost.h"

enum {
    LANES = 32,
    SECTOR = 32,
    LINE = 128, /* bytes */
    SLOTS = 4,  /* of a cycle of a unit that the schedulers share */
    ISSUE = 12, /* of an access: it, its address, its place in a queue */
    BYTES_A_CYCLE = 21, /* of global memory, of one SM of an H200 */
    BARRIER = 24,
    ROUNDS = 16,     /* of a loop, where they are not known */
    MOST_ROUNDS = 64 /* what more of them would not change */
};

/* ---- memory */

/* How many units of memory do accesses of `bytes` bytes at at[0 .. n - 1] touch? */
static int64_t
units_of(const int64_t *at, int n, int64_t bytes, int64_t unit)
{
    int64_t count = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < i && at[k] / unit != at[i] / unit)
            k++;
        count += k == i;
    }
    return count * max_i64(1, bytes / unit);
}

/* The bytes at which the lanes of a warp begin to access. Neighbours at an unknown
   distance are taken to be far from each other. */
static int
lane_addresses(const Op *op, int64_t *at)
{
    enum { FAR = 1 << 16 };
    const Type *t = op_operand(op, 0)->type;
    int64_t step[MAX_RANK], bytes = max_i64(1, type_bits(type_elem(t)->elem) / 8);
    uint32_t copies[LD_COUNT];
    int n = 0;
    layout_steps(op, step);
    layout_replication(t->layout, copies);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t c = layout_at(t->layout, LD_LANE, lane);
        int64_t sum = 0, far = 1;
        if (lane & copies[LD_LANE])
            continue;
        for (int d = 0; d < t->rank; d++) {
            int64_t by = step[d] == STEP_UNKNOWN ? FAR * far : step[d];
            sum += layout_part(t->layout, c, d) * by;
            far *= t->shape[d];
        }
        at[n++] = sum * bytes;
    }
    return n;
}

/* Bytes that the access moves, for one warp. */
static int64_t
access_bytes(const Layouts *p, const Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    int64_t step[MAX_RANK], bytes = max_i64(1, type_bits(type_elem(t)->elem) / 8);
    if (!type_is_tile(t))
        return 0;
    layout_steps(op, step);
    for (int d = 0; d < t->rank; d++)
        bytes *= step[d] ? t->shape[d] : 1;
    return bytes / p->f->num_warps;
}

/* *spread: the part that lanes side by side would save. */
static int64_t
access_slots(const Op *op, int64_t *spread)
{
    const Type *t = op_operand(op, 0)->type;
    int64_t at[LANES];
    int vec, dim = layout_access_dim(op, &vec);
    if (!type_is_tile(t))
        return ISSUE + SLOTS;
    int64_t bytes = max_i64(1, type_bits(type_elem(t)->elem) / 8);
    int64_t run = dim < 0 ? 1 : min_i64(vec, layout_run(t->layout, dim, NULL));
    int64_t times = layout_regs(t->layout) / run;
    int n = lane_addresses(op, at);
    int64_t units = units_of(at, n, run * bytes, LINE);
    int64_t least = max_i64(1, n * run * bytes / LINE);
    if (op->kind != OP_LOAD) {
        units += units_of(at, n, run * bytes, SECTOR);
        least += max_i64(1, n * run * bytes / SECTOR);
    }
    *spread = times * SLOTS * (units - least);
    return times * (ISSUE + SLOTS * units);
}

/* ---- exchanges between threads */

/* Words of 32 bits that a thread has of a tile of type t in layout l. */
static int64_t
words(const Type *t, const Layout *l)
{
    return max_i64(1, (int64_t)layout_regs(l) * shared_elem_bytes(t) / 4);
}

int64_t
layout_exchange_cost(const Type *t, const Layout *from, const Layout *to)
{
    return SLOTS * (words(t, from) + words(t, to)) + 2 * BARRIER;
}

static int64_t
convert_slots(Layouts *p, const Op *op)
{
    const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
    if (layout_conversion(from->layout, to->layout).kind <= CONV_REG)
        return 0;
    if (!scratch_bytes(op, p->target))
        return 2 * SLOTS * words(to, to->layout);
    return layout_exchange_cost(to, from->layout, to->layout) -
           (scratch_in_warp(op, p->target) ? BARRIER : 0);
}

/* Lane bits that select elements along the axis, and no copies. */
static int
lane_bits(const Layout *l, int axis)
{
    uint32_t copies[LD_COUNT];
    int n = 0;
    layout_replication(l, copies);
    for (int i = 0; i < l->nbasis[LD_LANE]; i++)
        n += layout_part(l, l->basis[LD_LANE][i], axis) && !(copies[LD_LANE] >> i & 1);
    return n;
}

static int64_t
reduce_slots(Layouts *p, const Op *op)
{
    const Type *t = op_operand(op, 0)->type, *r = op->results[0].type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    const Layout *rest = t->rank > 1 ? layout_slice(p->s, t->layout, axis) : NULL;
    int64_t each = region_code(op->regions[0], 1), n = rest ? layout_regs(rest) : 1;
    int parts = __builtin_popcount(reduce_warp_bits(op));
    int64_t slots = 0;
    for (int i = lane_bits(t->layout, axis); i > 0; i--) {
        bool halves = parts && n > 1; /* lanes share the results out */
        n = halves ? n / 2 : n;
        slots += n * (each + SLOTS * op->noperand) + (halves ? 2 * n * op->noperand : 0);
    }
    if (scratch_bytes(op, p->target)) {
        int64_t to = type_is_tile(r) ? layout_regs(r->layout) : 1, own = to, second = 0;
        if (reduce_in_two(op)) {
            own = layout_regs(reduce_first_layout(op));
            second = SLOTS * op->noperand * (own + to) + BARRIER;
        }
        slots += SLOTS * op->noperand * (n + (own << parts)) + (own << parts) * each +
                 second + 2 * BARRIER;
    }
    return slots;
}

int64_t
layout_scan_cost(Layouts *p, const Op *op, const Layout *l)
{
    ScanPlan plan;
    const Type *t = op_operand(op, 0)->type;
    scan_plan_in(p->s, op, l, &plan);
    int64_t regs = layout_regs(plan.work), chunks = regs >> plan.inner, slots = 0;
    int64_t each = region_code(op->regions[0], 1);
    for (int i = 0; i < op->noperand; i++)
        slots += plan.moved ? 2 * layout_exchange_cost(t, l, plan.work) : 0;
    slots += regs * each + chunks * plan.lanes * (each + SLOTS * op->noperand);
    if (plan.warps)
        slots += SLOTS * chunks * (1 + ((int64_t)1 << plan.warps)) * op->noperand +
                 2 * BARRIER;
    return slots;
}

/* ---- a region */

static int64_t
rounds_of(const Op *op)
{
    Const lo, hi, step;
    if (op->kind != OP_FOR)
        return op->kind == OP_WHILE ? ROUNDS : 1;
    if (!value_const(op_operand(op, 0), &lo) || !value_const(op_operand(op, 1), &hi) ||
        !value_const(op_operand(op, 2), &step) || step.i <= 0)
        return ROUNDS;
    return max_i64(1, min_i64((hi.i - lo.i + step.i - 1) / step.i, MOST_ROUNDS));
}

static void count_region(Layouts *p, const Region *r, int64_t times, int depth,
                         LayoutCost *sum);

/* Adds what op costs; `times`: how often it is done. */
static void
count(Layouts *p, const Op *op, int64_t times, int depth, LayoutCost *sum)
{
    int64_t moves = 0;
    int64_t own = op->nregion || op->kind == OP_ADDPTR ? 0 : op_code(op, depth);
    if (layout_is_access(op))
        own = access_slots(op, &moves);
    else if (op->kind == OP_CONVERT_LAYOUT)
        own = moves = convert_slots(p, op);
    else if (op->kind == OP_REDUCE || op->kind == OP_SCAN)
        own = op_code(op, depth) +
              (moves = op->kind == OP_SCAN
                       ? layout_scan_cost(p, op, op_operand(op, 0)->type->layout)
                       : reduce_slots(p, op));
    else
        for (int i = 0; i < op->nregion && depth < MAX_REGION_DEPTH; i++)
            count_region(p, op->regions[i], times * rounds_of(op), depth + 1, sum);
    sum->slots += own * times;
    sum->exchanges += moves * times;
    sum->bytes += layout_is_access(op) ? access_bytes(p, op) * times : 0;
}

static void
count_region(Layouts *p, const Region *r, int64_t times, int depth, LayoutCost *sum)
{
    for (const Op *op = r->first; op; op = op->next)
        count(p, op, times, depth, sum);
}

int64_t
layout_time(const LayoutCost *c)
{
    int64_t memory = SLOTS * c->bytes / BYTES_A_CYCLE;
    return max_i64(c->slots, memory) + min_i64(c->slots, memory) / 4;
}

LayoutCost
layout_cost(Layouts *p, const Region *r)
{
    LayoutCost sum = {0};
    count_region(p, r, 1, 0, &sum);
    return sum;
}
