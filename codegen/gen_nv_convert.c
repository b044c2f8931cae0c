/* A tile from one layout to another: registers renamed where that is all, shuffles inside
   of a warp where few suffice, else through shared memory, where ir/plan/swizzle.h has
   found each element a place. */
#include "codegen/gen_nv.h"
#include "codegen/ptx.h"

#include "ir/plan/scratch.h"

/* One side of an exchange: places of its registers, and which of them belong to a
   round: (register & mask) == part. */
typedef struct Side {
    SharedMap map;
    uint32_t mask, bit[LAYOUT_MAX_BITS]; /* register bit of each bit of the round */
} Side;

static Side
side_of(Gen *g, const Exchange *e, const Layout *l)
{
    Side s = {0};
    F2 map = exchange_map(e, l);
    nv_shared_map_make(g, &map, l, e->bytes, &s.map);
    int n = 0;
    for (uint32_t rest = e->rounds; rest; rest &= rest - 1, n++)
        for (int i = 0; i < l->nbasis[LD_REG]; i++)
            if (l->basis[LD_REG][i] == (rest & -rest))
                s.bit[n] = 1u << i;
    for (int i = 0; i < n; i++)
        s.mask |= s.bit[i];
    return s;
}

static uint32_t
part_of(const Side *s, int round)
{
    uint32_t part = 0;
    for (int i = 0; round >> i; i++)
        if (round >> i & 1)
            part |= s->bit[i];
    return part;
}

static void
meet(Gen *g, bool in_warp)
{
    LLVMValueRef all = ll_int(g->i32, -1);
    if (in_warp)
        ptx_call(g, PTX_BARRIER_WARP, &all, 1);
    else
        nv_barrier(g);
}

/* A warp whose part of the memory is its own waits for its lanes alone; that nobody else
   uses the memory is the barrier pass's work. */
static bool
through_shared(Gen *g, const Op *op, Regs *in, Regs *out)
{
    const Value *x = op_operand(op, 0), *v = &op->results[0];
    const Layout *from = x->type->layout, *to = v->type->layout;
    Exchange e = convert_exchange(op, &g->info);
    LLVMValueRef base = nv_scratch(g, op);
    if (!base)
        return false;
    bool in_warp = scratch_in_warp(op, &g->info);
    const Type *elem = type_elem(x->type);
    Side store = side_of(g, &e, from), load = side_of(g, &e, to);
    store.map.owner = nv_owner(g, from);
    for (int round = 0; round < 1 << e.nround; round++) {
        if (round || in_warp)
            meet(g, in_warp);
        uint32_t out_part = part_of(&store, round), in_part = part_of(&load, round);
        if (!e.store_matrix ||
            !nv_stmatrix(g, &store.map, base, elem, store.mask, out_part, in))
            nv_shared_write(g, &store.map, base, elem, store.mask, out_part, in);
        meet(g, in_warp);
        if (!e.load_matrix ||
            !nv_ldmatrix(g, &load.map, base, elem, load.mask, in_part, out))
            nv_shared_read(g, &load.map, base, elem, load.mask, in_part, out);
    }
    return true;
}

bool
nv_convert(Gen *g, const Op *op)
{
    const Value *v = &op->results[0], *x = op_operand(op, 0);
    Conversion c = layout_conversion(x->type->layout, v->type->layout);
    Regs *in = nv_regs(g, x), *out = nv_define(g, v, nv_count(v->type));
    if (!in || !out)
        return false;
    ShufflePlan plan;
    if (c.kind > CONV_REG && scratch_bytes(op, &g->info))
        return through_shared(g, op, in, out);
    if (c.kind > CONV_REG) {
        if (layout_shuffle(x->type->layout, v->type->layout, &plan))
            nv_convert_lanes(g, &plan, type_elem(v->type), in, out);
        return true;
    }
    for (int i = 0; i < out->n; i++)
        out->v[i] = in->v[f2_apply(&c.from, (uint64_t)i)];
    return true;
}
