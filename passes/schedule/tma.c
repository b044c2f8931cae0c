/* Planned loads become loads through a tensor descriptor where TMA can do them: one
   thread issues the copy, and no addresses take up registers.

    %a = load %ptrs, %mask {stage=0}            %d = make_desc %a_ptr, %m, %k, %sm, 1
    %s = local_alloc %a : mem<..>         =>    ..
                                                %a = desc_load %d, %i, %k {stage=0}
                                                %s = local_alloc %a : mem<..>

   passes/schedule/tma_tile.c decides which addresses qualify. Masked-off elements are 0
   in both forms. The bounds of the mask become the sizes of the tensor, so an index below
   0 reads 0, too; where the source has no lower bound, such an index would read in front
   of the tensor.

   TMA does not see what threads of the program have just stored: a barrier orders only
   their own accesses. Memory that the kernel itself writes is therefore loaded by
   threads.

   The values of the launch's arguments are not known here. The launcher checks whether
   they make a valid tensor map, and runs code without TMA where they do not
   (runtime/gpu.c). */
#include "ir/analysis/param.h"
#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/loop.h"
#include "ir/plan/pipeline.h"
#include "passes/mma/operand.h"
#include "passes/schedule/stage.h"
#include "passes/schedule/tma_tile.h"

enum { DEAD_DEPTH = 16 };

/* Erases users of v that earlier passes left behind and that have no use. */
static void
drop_dead(Value *v, int depth)
{
    value_each_use(v, u)
    {
        Op *op = u->user;
        if (!op_is(op, T_PURE) || op->nregion || depth > DEAD_DEPTH)
            continue;
        for (int i = 0; i < op->nresult; i++)
            drop_dead(op_result(op, i), depth + 1);
        if (!op_has_uses(op))
            op_erase(op);
    }
}

/* The buffer that the tile goes into; NULL: its users want different ones. `all`: unused
   transposes that are left over are erased first. */
static const Type *
buffer_of(Session *s, Op *load, bool all)
{
    const Type *t = NULL;
    if (all)
        drop_dead(&load->results[0], 0);
    value_each_use(&load->results[0], u)
    {
        const Op *user = u->user;
        if (user->kind != OP_LOCAL_ALLOC)
            continue;
        if (t && user->results[0].type != t)
            return NULL;
        t = user->results[0].type;
    }
    return staged_buffer(s, load);
}

/* Does an iteration copy so little that all threads together issue the copies sooner than
   TMA does? Many programs share an SM then, and its one TMA unit. On an H200, 32x32x32
   tiles in 2 stages ran at 0.30 of Triton's speed by TMA and at 1.02 by cp.async,
   128x32x32 at 0.83 and 0.99, 64x128x32 (12 KB) at 1.04 and 1.00 (2026-11-23, python -m
   sdc.compare on a linear layer of fp16). */
static bool
copies_little(const Op *loop)
{
    enum { LITTLE = 12 << 10 };
    int64_t bytes = 0;
    if (attr_has(&loop->attrs, ATTR_WARP_SPEC))
        return false;
    region_each(loop->regions[0], op)
    {
        const Type *t = op->nresult ? op->results[0].type : NULL;
        if (op->kind == OP_DESC_LOAD)
            return false;
        if (op->kind != OP_LOAD || !type_is_tile(t) || t->rank < 2)
            continue;
        if (!operand_copies(op))
            return false;
        bytes += type_bytes(t);
    }
    return bytes < LITTLE;
}

/* The tile that TMA would load; NULL: it cannot, and *why says why not. */
static TmaTile *
tile_of(Session *s, Func *f, const Op *loop, Op *load, bool all, const char **why)
{
    const Type *mem = buffer_of(s, load, all);
    Value *mask = load->noperand > 1 ? op_operand(load, 1) : NULL;
    Origin from = origin_of(op_operand(load, 0));
    TmaTile *tile = NULL;
    if (copies_little(loop))
        *why = "an iteration copies less than 12 KB, which is faster without TMA";
    else if (!mem)
        *why = "dots need the tile in two different orders";
    else if (!from.param)
        *why = "its address does not come from an argument of the launch";
    else if (origin_written_before(load, from))
        *why = "the kernel itself may have written that memory";
    else
        *why = (tile = tma_tile(f, loop, loop, op_operand(load, 0), mask, mem))->why;
    if (tile && tile->why && from.loads && !tile->where)
        *why = "its address does not come from an argument of the launch";
    return *why ? NULL : tile;
}

const char *
tma_refuses(Func *f, const Op *loop, Op *load)
{
    const char *why;
    tile_of(f->module->s, f, loop, load, load->results[0].type->rank < 2, &why);
    return why;
}

static bool
raise(Session *s, Func *f, const Op *loop, Op *load, bool all)
{
    const Type *t = load->results[0].type;
    Value *in[2 + TMA_MAX_RANK];
    const char *why;
    TmaTile *tile = tile_of(s, f, loop, load, all, &why);
    if (!tile)
        return false;
    if (!(in[0] = tma_tile_desc(tile, load->loc))) {
        attr_set_str(&s->mod, &load->attrs, ATTR_WHY,
                     name_of(&s->names, "the launch has no room for another tensor map"));
        if (!operand_copies(load)) /* planned for TMA alone */
            attr_drop(&load->attrs, ATTR_STAGE);
        return false;
    }
    Builder b = builder_before(load);
    b.loc = load->loc;
    int n = 1 + tma_tile_at(tile, &b, in + 1);
    if ((in[n] = tma_tile_live(tile, &b)))
        n++;
    Op *to = build_op(&b, OP_DESC_LOAD, in, n, &load->attrs, &t, 1);
    if (tile->parted)
        attr_set_ints(&s->mod, &to->attrs, ATTR_PARTED,
                      (int64_t[]){tile->parted_dim, tile->parted}, 2);
    attr_drop(&to->attrs, ATTR_CONTIG);
    attr_drop(&to->attrs, ATTR_WHY);
    to->results[0].name = load->results[0].name;
    value_replace(&load->results[0], &to->results[0]);
    op_erase(load);
    return true;
}

static bool
is_planned(const Op *op)
{
    return op->kind == OP_LOAD && op_is_planned(op);
}

/* Planned tiles, visited in descending order of their bytes. */
typedef struct Largest {
    Session *s;
    Func *f;
    int n;
    int64_t below, bytes; /* the largest size below `below` */
} Largest;

static int64_t
planned_bytes(const Op *op)
{
    const Type *t = is_planned(op) ? op->results[0].type : NULL;
    return t && t->rank > 1 ? type_bytes(t) : 0;
}

static bool
see_largest(void *user, Op *op)
{
    Largest *l = user;
    int64_t bytes = planned_bytes(op);
    l->n += is_planned(op);
    if (bytes < l->below)
        l->bytes = max_i64(l->bytes, bytes);
    return false;
}

static bool
raise_largest(void *user, Op *op)
{
    const Largest *l = user;
    return planned_bytes(op) == l->bytes &&
           raise(l->s, l->f, op->parent->parent, op, false);
}

/* Where a launch cannot carry a tensor map for every load, the largest tiles get one, and
   threads load the rest. */
static void
largest_first(Session *s, Func *f)
{
    Largest l = {.s = s, .f = f, .below = INT64_MAX};
    pass_walk(f->body, see_largest, &l);
    while (l.n > tma_most_maps(f) && l.bytes) {
        pass_walk(f->body, raise_largest, &l);
        l.below = l.bytes;
        l.bytes = l.n = 0;
        pass_walk(f->body, see_largest, &l);
    }
}

/* Loads of the loop: first tiles, then vectors, if all tiles go by TMA. Threads read the
   vectors, but copies of both kinds would keep a barrier of the whole program in the
   loop. If every copy goes by TMA, a stage is free as soon as its readers are done, so
   loads can be issued one iteration earlier; a loop with no more iterations than stages
   takes one for each and fills none again. */
static bool
visit_loop(Session *s, Func *f, const TargetInfo *t, Op *loop)
{
    Region *body = loop->regions[0];
    Pipeline p = pipeline_of(loop);
    bool changed = false, every = true;
    region_each(body, op) changed |= op->kind == OP_DESC_LOAD && op_is_planned(op);
    region_each(body, op) if (is_planned(op) && op->results[0].type->rank > 1)
    {
        bool done = raise(s, f, loop, op, false);
        changed |= done;
        every &= done;
    }
    region_each(body, op) if (is_planned(op) && op->results[0].type->rank == 1)
    {
        every &= changed && every && raise(s, f, loop, op, true);
        if (!every && !operand_copies(op))
            attr_drop(&op->attrs, ATTR_STAGE);
    }
    if (changed && every) {
        int n = (int)loop_trips(loop);
        bool once = stage_once(f, t, loop, p.stages);
        pipeline_set(s, loop, once ? (Pipeline){n, n, p.pending}
                                   : (Pipeline){p.stages, p.stages - 1, p.pending});
    }
    return changed;
}

bool
pass_tma(Func *f, PassCx *cx)
{
    bool changed = false;
    if (!cx->target.tma)
        return false;
    largest_first(cx->s, f);
    region_each_deep(f->body, op) if (loop_is_pipelined(op)) changed |=
        visit_loop(cx->s, f, &cx->target, op);
    return changed;
}
