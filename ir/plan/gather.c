/* Lanes and registers must lie along the axis or across it, not both, and the source and
   the result must agree on all that lies across: then the element wanted is in the same
   warp, in a lane that differs from this one along the axis alone. */
#include "ir/plan/gather.h"

#include "ir/attr.h"
#include "ir/buffer.h"
#include "ir/op.h"

/* Words shuffled beyond one for each element of the result: about what writing to shared
   memory and a barrier cost. */
enum { MOST_MORE = 4 };

/* The bits of a coordinate along the axis. */
static uint32_t
along(const Layout *l, int axis)
{
    return (((uint32_t)1 << l->log_shape[axis]) - 1) << layout_shift(l, axis);
}

static bool
one_bit(uint32_t x)
{
    return x && !(x & (x - 1));
}

/* Threads: as the result across the axis, and a lane's share along it is a single bit. */
static bool
place_threads(const Layout *s, const Layout *d, uint32_t axis, int low, GatherPlan *p)
{
    for (int k = LD_LANE; k < LD_COUNT; k++) {
        if (s->nbasis[k] != d->nbasis[k])
            return false;
        for (int i = 0; i < s->nbasis[k]; i++) {
            uint32_t at = s->basis[k][i];
            if ((at & ~axis) != (d->basis[k][i] & ~axis))
                return false;
            if (!(at & axis))
                continue;
            if (k != LD_LANE || !one_bit(at))
                return false;
            p->lane[__builtin_ctz(at) - low] = (int8_t)i;
            p->lanes |= 1u << i;
        }
    }
    return true;
}

/* The index's bits that choose registers; their number or -1. */
static int
place_registers(const Layout *s, const Layout *d, uint32_t axis, int low, GatherPlan *p)
{
    int chosen = 0;
    for (int i = 0; i < s->nbasis[LD_REG]; i++) {
        uint32_t at = s->basis[LD_REG][i];
        if (!(at & axis))
            continue;
        if (!one_bit(at))
            return -1;
        p->reg[__builtin_ctz(at) - low] = (int8_t)i;
        chosen++;
    }
    for (int i = 0; i < d->nbasis[LD_REG]; i++) {
        uint32_t want = d->basis[LD_REG][i] & ~axis;
        int j = 0;
        while (want && j < s->nbasis[LD_REG] && s->basis[LD_REG][j] != want)
            j++;
        if (want && j == s->nbasis[LD_REG])
            return -1;
        p->beside[i] = want ? 1u << j : 0;
    }
    return chosen;
}

bool
gather_in_warp(const Op *op, GatherPlan *out)
{
    const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
    const Layout *s = from->layout, *d = to->layout;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    if (!s || !d || op_operand(op, 1)->type->layout != d)
        return false;
    for (int k = 0; k < from->rank; k++)
        if (from->shape[k] != to->shape[k])
            return false;
    *out = (GatherPlan){.bits = s->log_shape[axis]};
    for (int i = 0; i < out->bits; i++)
        out->lane[i] = out->reg[i] = -1;
    uint32_t mask = along(s, axis);
    int low = layout_shift(s, axis);
    if (!place_threads(s, d, mask, low, out))
        return false;
    int chosen = place_registers(s, d, mask, low, out);
    for (int i = 0; i < out->bits; i++)
        if (out->lane[i] < 0 && out->reg[i] < 0)
            return false;
    int64_t words = (int64_t)layout_regs(d) * (shared_elem_bytes(from) > 4 ? 2 : 1);
    return chosen >= 0 && (((int64_t)1 << chosen) - 1) * words <= MOST_MORE;
}
