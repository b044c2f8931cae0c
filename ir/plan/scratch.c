/* Sizes of scratch memory, from layouts alone. */
#include "ir/plan/scratch.h"

#include "ir/base/util.h"
#include "ir/layout.h"
#include "ir/plan/shuffle.h"
#include "ir/plan/swizzle.h"
#include "ir/plan/tma_box.h"

enum { SCRATCH_ALIGN = 16 };

static int64_t
align_up(int64_t n)
{
    return (n + SCRATCH_ALIGN - 1) & ~(int64_t)(SCRATCH_ALIGN - 1);
}

/* ---- conversions */

static ConvertKind
kind_of(const Op *op)
{
    const Layout *from = op_operand(op, 0)->type->layout;
    const Layout *to = op->results[0].type->layout;
    return from && to ? layout_conversion(from, to).kind : CONV_NONE;
}

Exchange
convert_exchange(const Op *op, const TargetInfo *t)
{
    const Type *from = op_operand(op, 0)->type, *to = op->results[0].type;
    int64_t limit = attr_int(&op->attrs, ATTR_BYTES, EXCHANGE_LIMIT);
    limit = min_i64(limit, t->shared_bytes);
    const Type *e = type_elem(from);
    int units = EXCHANGE_LDMATRIX | (t->stmatrix ? EXCHANGE_STMATRIX : 0);
    if (e->kind == TY_PTR || e->scalar == SK_I1)
        units = 0;
    return layout_exchange(from->layout, to->layout, shared_elem_bytes(from), limit,
                           units);
}

bool
scratch_can_shuffle(const Op *op)
{
    ShufflePlan plan;
    return op->kind == OP_CONVERT_LAYOUT && kind_of(op) == CONV_LANE &&
           layout_shuffle(op_operand(op, 0)->type->layout, op->results[0].type->layout,
                          &plan);
}

static bool
in_role(const Op *op)
{
    while (op && op->kind != OP_WARP_SPECIALIZE)
        op = op->parent->parent;
    return op;
}

/* Where shared memory is short, and in roles, whose stages take all of it, also what is
   dear. A copy in another warp would have to wait for that warp. */
static bool
by_shuffles(const Op *op)
{
    ShufflePlan plan;
    uint32_t copies[LD_COUNT];
    const Type *from = op_operand(op, 0)->type;
    if (!layout_shuffle(from->layout, op->results[0].type->layout, &plan))
        return false;
    layout_replication(from->layout, copies);
    return copies[LD_WARP] || attr_has(&op->attrs, ATTR_BYTES) || in_role(op) ||
           !shuffle_is_dear(&plan, shared_elem_bytes(from) * 8);
}

static int64_t
convert_bytes(const Op *op, const TargetInfo *t)
{
    ConvertKind kind = kind_of(op);
    if (kind <= CONV_REG || (kind == CONV_LANE && by_shuffles(op)))
        return 0;
    Exchange e = convert_exchange(op, t);
    return exchange_bytes(&e);
}

/* ---- reductions */

uint32_t
reduce_warp_bits(const Op *op)
{
    const Layout *l = op_operand(op, 0)->type->layout;
    int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
    uint32_t copies[LD_COUNT], bits = 0;
    if (!l)
        return 0;
    layout_replication(l, copies);
    for (int i = 0; i < l->nbasis[LD_WARP]; i++)
        if (layout_part(l, l->basis[LD_WARP][i], axis) && !(copies[LD_WARP] >> i & 1))
            bits |= 1u << i;
    return bits;
}

/* Do the results lie elsewhere than the operand's layout leaves them? */
static bool
reduce_moves(const Op *op)
{
    const Layout *from = op_operand(op, 0)->type->layout;
    const Layout *to = op->results[0].type->layout;
    if (!to || !from || from->rank < 2)
        return false;
    Session *s = op->parent->func->module->s;
    from = layout_slice(s, from, (int)attr_int(&op->attrs, ATTR_AXIS, 0));
    return layout_conversion(from, to).kind > CONV_REG;
}

const Layout *
reduce_first_layout(const Op *op)
{
    const Type *t = op->results[0].type;
    int64_t shape[MAX_RANK];
    int order[MAX_RANK];
    for (int d = 0; d < t->rank; d++) {
        shape[d] = t->shape[d];
        order[d] = t->rank - 1 - d;
    }
    return layout_spread(op->parent->func->module->s, t->rank, shape, 1, order,
                         layout_warps(t->layout));
}

bool
reduce_in_two(const Op *op)
{
    enum { GAIN = 32 }; /* words, about what the second barrier costs */
    const Layout *to = op->results[0].type->layout;
    int lg = __builtin_popcount(reduce_warp_bits(op));
    if (!to || !lg || to->nbasis[LD_BLOCK])
        return false;
    int64_t all = layout_regs(to), own = layout_regs(reduce_first_layout(op));
    return (all << lg) >= (own << lg) + all + GAIN;
}

int64_t
reduce_part_offset(const Op *op, int k)
{
    int64_t at = 0;
    int warps = __builtin_popcount(reduce_warp_bits(op));
    for (int i = 0; i < k; i++) {
        const Type *t = op->results[i].type;
        at += align_up((type_numel(t) << warps) * shared_elem_bytes(t));
    }
    return at;
}

int64_t
reduce_result_offset(const Op *op, int k)
{
    int64_t at = reduce_part_offset(op, op->nresult);
    for (int i = 0; i < k; i++) {
        const Type *t = op->results[i].type;
        at += align_up(type_numel(t) * shared_elem_bytes(t));
    }
    return at;
}

static int64_t
reduce_bytes(const Op *op)
{
    if ((!reduce_warp_bits(op) && !reduce_moves(op)) || reduce_is_own(op))
        return 0;
    return reduce_result_offset(op, reduce_in_two(op) ? op->nresult : 0);
}

/* Can threads do this while others of their warp are elsewhere? */
static bool
is_local(const Op *op)
{
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_SPLAT:
    case OP_LOAD:
    case OP_STORE:
    case OP_FOR:
    case OP_IF:
    case OP_WHILE: return true;
    case OP_ATOMIC_RMW:
    case OP_ATOMIC_CAS: return !scratch_bytes_of_op(op);
    case OP_REDUCE: return reduce_is_own(op);
    default: return op_is(op, T_ELEMENTWISE) || op_is(op, T_TERMINATOR);
    }
}

bool
reduce_is_own(const Op *op)
{
    const Op *loop = op->parent->parent;
    if (!attr_has(&op->attrs, ATTR_OWN) || !loop || loop->kind != OP_WHILE)
        return false;
    for (int i = 0; i < loop->nresult; i++)
        if (!type_is_tile(loop->results[i].type))
            return false;
    for (int k = 0; k < loop->nregion; k++)
        region_each_deep(loop->regions[k], in)
            if (in != op && in->parent != op->regions[0] && !is_local(in))
                return false;
    return true;
}

int64_t
scratch_bytes(const Op *op, const TargetInfo *t)
{
    switch ((int)op->kind) {
    case OP_CONVERT_LAYOUT: return convert_bytes(op, t);
    case OP_REDUCE: return reduce_bytes(op);
    default: return align_up(scratch_bytes_of_op(op));
    }
}

bool
scratch_in_warp(const Op *op, const TargetInfo *t)
{
    uint32_t copies[LD_COUNT];
    if (op->kind != OP_CONVERT_LAYOUT || kind_of(op) != CONV_LANE)
        return false;
    /* a copy in another warp is not written: its owner's is read */
    layout_replication(op_operand(op, 0)->type->layout, copies);
    return !copies[LD_WARP] && convert_bytes(op, t) > 0;
}
