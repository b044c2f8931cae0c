/* A third role, the copier, for tiles that threads have to rearrange for dots.

   A right operand of bytes whose inner dimension is not contiguous is read by threads and
   stored again (passes/mma/lower_wgmma.c). Done by the consumers, this work stands in
   front of every dot and needs a barrier of all of them. Here four warps of their own do
   it: they wait for the tile from TMA and store it to a stage of another ring, which the
   consumers read.

    bar_wait %full[%s], %ph
    %t = local_load %ring[%s]
    bar_wait %empty1[%u], %qh
    local_store %ring1[%u], %t        (and the fence of pass insert-proxy-fence)
    bar_arrive %full1[%u]
    bar_arrive %empty[%s]

   The stage that TMA filled is released when its tile has been stored, behind the fence:
   an arrival right behind the load would not wait for the loaded values, and TMA writes
   through another proxy than threads read.

   The ring between copier and consumers has groups like those of loads; the "load" of
   such a group is the local_alloc that the consumers had. */
#include "passes/schedule/specialize.h"

#include "ir/layout.h"

static Op *
only_user(const Value *v, OpKind kind)
{
    Op *op = value_only_user(v);
    return op && op->kind == kind ? op : NULL;
}

/* The layout in which the copier's warps hold the tile, if t's is one of a copy by bytes
   of `warps` warps; NULL: it is not. */
static const Layout *
copier_layout(Specialize *sp, const Type *t, int warps)
{
    for (int i = 0; t->rank == 2 && i < 4; i++)
        if (layout_bytes(sp->s, t->shape, i & 1, warps, i >> 1) == t->layout)
            return layout_bytes(sp->s, t->shape, i & 1, SP_COPIERS, i >> 1);
    return NULL;
}

/* Do two copies of the tile, as loaded and as stored, fit into the copier's registers? */
static bool
is_small(const Type *t)
{
    enum { THREADS = 32 * SP_COPIERS, BYTES = 128 };
    return type_bytes(t) <= BYTES * THREADS;
}

bool
specialize_copy(Specialize *sp, Group *source)
{
    Op *fill = only_user(&source->load[0]->results[0], OP_LOCAL_ALLOC), *view, *load, *to;
    Value *v = fill ? &fill->results[0] : NULL;
    if (!v || source->n != 1 || sp->ngroup == SP_GROUPS)
        return true;
    while ((view = only_user(v, OP_LOCAL_TRANS)))
        v = &view->results[0];
    load = only_user(v, OP_LOCAL_LOAD);
    to = load ? only_user(&load->results[0], OP_LOCAL_ALLOC) : NULL;
    if (!to || load->parent != source->home || to->parent != source->home)
        return true;
    const Type *t = load->results[0].type;
    const Layout *l = copier_layout(sp, t, sp->f->num_warps);
    if (!l || !is_small(t))
        return true;
    Group *g = &sp->group[sp->ngroup];
    *g = (Group){
        .ring = -1, .n = 1, .load = {to}, .loop = source->loop, .home = to->parent};
    g->layout = l;
    g->source = (int)(source - sp->group);
    if (!specialize_readers(sp, g))
        return false;
    for (Op *op = load; op != fill; op = op_operand(op, 0)->op)
        map_set(&sp->moves, op, op);
    source->copied = true;
    sp->ngroup++;
    sp->ncopy++;
    return true;
}
