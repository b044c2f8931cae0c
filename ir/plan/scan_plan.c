/* Is a layout scannable as it is? If not, one in which the axis comes first always is. */
#include "ir/plan/scan_plan.h"

#include "ir/base/util.h"
#include "ir/plan/scratch.h"

/* Scratch memory beyond MOST_BYTES leaves an SM few programs, or none. */
enum { WARP = 32, MOST_BYTES = 1 << 16 };

/* Which bit of which input holds each bit of the axis; false when some bits share an
   input or an axis bit has two. */
typedef struct Home {
    LayoutDim dim;
    int bit;
} Home;

static bool
find_homes(const Layout *l, int axis, Home *home)
{
    uint32_t seen = 0;
    for (int d = 0; d < LD_COUNT; d++) {
        for (int i = 0; i < l->nbasis[d]; i++) {
            uint32_t basis = l->basis[d][i];
            uint32_t part = (uint32_t)layout_part(l, basis, axis);
            if (!part)
                continue;
            if (!is_pow2(part) || part << layout_shift(l, axis) != basis || (seen & part))
                return false;
            seen |= part;
            home[log2_floor(part)] = (Home){(LayoutDim)d, i};
        }
    }
    return seen == (1u << l->log_shape[axis]) - 1;
}

static bool
scannable(const Layout *l, int axis, ScanPlan *p)
{
    Home home[LAYOUT_MAX_BITS];
    int n = l->log_shape[axis], i = 0;
    if (!find_homes(l, axis, home))
        return false;
    p->inner = p->lanes = p->warps = p->outer = 0;
    for (; i < n && home[i].dim == LD_REG; i++)
        p->inner_bit[p->inner++] = home[i].bit;
    for (; i < n && home[i].dim == LD_LANE; i++, p->lanes++) {
        if (!p->lanes)
            p->lane_bit = home[i].bit;
        if (home[i].bit != p->lane_bit + p->lanes)
            return false;
    }
    for (; i < n && home[i].dim == LD_WARP; i++, p->warps++) {
        if (!p->warps)
            p->warp_bit = home[i].bit;
        if (home[i].bit != p->warp_bit + p->warps)
            return false;
    }
    for (; i < n && home[i].dim == LD_REG; i++)
        p->outer_bit[p->outer++] = home[i].bit;
    return i == n;
}

const Layout *
scan_axis_first(Session *s, const Op *op)
{
    const Type *t = op_operand(op, 0)->type;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    int order[MAX_RANK], n = 0, warps = layout_warps(t->layout);
    order[n++] = axis;
    for (int d = t->rank - 1; d >= 0; d--)
        if (d != axis)
            order[n++] = d;
    int64_t each = max_i64(type_numel(t) / (WARP * warps), 1);
    return layout_spread(s, t->rank, t->shape, (int)min_i64(each, t->shape[axis]), order,
                         warps);
}

static int64_t
align_up(int64_t n)
{
    return (n + 15) & ~(int64_t)15;
}

static int64_t
tile_bytes(const Type *t)
{
    return align_up(type_numel(t) * shared_elem_bytes(t));
}

void
scan_plan_in(Session *s, const Op *op, const Layout *l, ScanPlan *out)
{
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    *out = (ScanPlan){.work = l, .reverse = attr_has(&op->attrs, ATTR_REVERSE)};
    if (!scannable(out->work, axis, out) ||
        (out->warps && scan_sum_offset(op, out, op->nresult) > MOST_BYTES)) {
        out->work = scan_axis_first(s, op);
        if (!scannable(out->work, axis, out))
            bug(&s->fail, "a layout with the axis first cannot be scanned");
    }
    out->moved = out->work != l;
}

void
scan_plan(Session *s, const Op *op, ScanPlan *out)
{
    int64_t bytes = 0;
    scan_plan_in(s, op, op_operand(op, 0)->type->layout, out);
    for (int i = 0; i < op->noperand; i++) {
        out->moved |= op_operand(op, i)->type->layout != out->work ||
                      op->results[i].type->layout != out->work;
        bytes += tile_bytes(op->results[i].type);
    }
    out->in_turn = out->moved && bytes > MOST_BYTES;
}

int64_t
scan_tile_offset(const Op *op, const ScanPlan *p, int k)
{
    int64_t at = 0;
    for (int i = 0; i < k && !p->in_turn; i++)
        at += tile_bytes(op->results[i].type);
    return at;
}

/* A place for each thread and chunk: only the last lane's counts. */
int64_t
scan_sum_offset(const Op *op, const ScanPlan *p, int k)
{
    int64_t places = (int64_t)layout_regs(p->work) >> p->inner, at = 0;
    for (int i = 0; i < k; i++)
        at += align_up(places * WARP * layout_warps(p->work) *
                       shared_elem_bytes(op->results[i].type));
    return at;
}

int64_t
scan_bytes(const Op *op, const ScanPlan *p)
{
    int64_t tiles = 0;
    for (int i = 0; i < op->nresult && p->moved; i++)
        tiles = max_i64(tiles,
                        scan_tile_offset(op, p, i) + tile_bytes(op->results[i].type));
    int64_t sums = p->warps ? scan_sum_offset(op, p, op->nresult) : 0;
    return max_i64(tiles, sums);
}
