/* The plan of pass specialize: which loads share the stages of a ring, where the
   consumers wait for a stage and release it, and what the producer has to compute.
   Nothing is changed here. */
#include "ir/edit.h"
#include "passes/schedule/double_buffer.h"
#include "passes/schedule/specialize.h"

#include "ir/analysis/async_dot.h"
#include "ir/analysis/param.h"
#include "ir/base/util.h"
#include "ir/loop.h"
#include "ir/plan/pipeline.h"
#include "ir/plan/scratch.h"
#include "ir/plan/tma_box.h"
#include "ir/plan/wgmma_left.h"
#include "ir/plan/wgmma_promote.h"

#include <stdarg.h>

enum { SCRATCH = 8192, BARRIERS = 512, FEW = 4 };

bool
specialize_refuse(Specialize *sp, const char *why, ...)
{
    Buf b;
    va_list ap;
    if (sp->why)
        return false;
    buf_init(&b, &sp->s->tmp);
    va_start(ap, why);
    buf_vprintf(&b, why, ap);
    va_end(ap);
    sp->why = b.s;
    return false;
}

static bool
refuse(Specialize *sp, const char *why)
{
    return specialize_refuse(sp, "%s", why);
}

const Group *
specialize_group(const Specialize *sp, const Op *load, int *slot)
{
    for (int i = 0; i < sp->ngroup; i++)
        for (int k = 0; k < sp->group[i].n; k++)
            if (sp->group[i].load[k] == load) {
                *slot = k;
                return &sp->group[i];
            }
    return NULL;
}

bool
specialize_inside(const Specialize *sp, int ring, const Op *op)
{
    for (int i = 0; i < sp->ngroup; i++)
        for (int k = 0; k < op->nregion; k++)
            if (sp->group[i].ring == ring &&
                region_within(sp->group[i].home, op->regions[k]))
                return true;
    return false;
}

/* ---- readers of a stage */

static void
take(Op **first, Op *op, bool earlier)
{
    if (!*first || *first == op || op_before(op, *first) == earlier)
        *first = op;
}

/* Extends g->first and g->last to the readers of buffer v, also through views. */
static bool
see_readers(Specialize *sp, Group *g, const Value *v, bool *by_dots)
{
    value_each_use(v, u)
    {
        Op *op = u->user, *done = op, *at = op_in_region(op, g->home);
        if (op->kind == OP_LOCAL_TRANS || op->kind == OP_LOCAL_SLICE) {
            if (!see_readers(sp, g, &op->results[0], by_dots))
                return false;
            continue;
        }
        if (op_is_async_dot(op) && u->index == DOT_LEFT && wgmma_by_steps(op)) {
            /* with the right operand's stage where the dot is then complete, too */
            done = wgmma_fences(op) ? dot_wait(op) : op;
        } else if (op_is_async_dot(op)) {
            *by_dots = true;
            done = dot_wait(op); /* behind the wait the operands have been read */
        } else if (op->kind != OP_LOCAL_LOAD) {
            return refuse(sp, "a loaded tile is used in an unknown way");
        }
        if (!at || !done)
            return refuse(sp, "a wgmma is not waited for where it is issued");
        take(&g->first, at, true);
        take(&g->last, op_in_region(done, g->home), false);
    }
    return true;
}

static bool
open_group(Specialize *sp, Op *load, Op *loop, Group *g)
{
    bool by_dots = false;
    *g = (Group){.ring = -1, .n = 1, .load = {load}, .loop = loop, .home = load->parent};
    value_each_use(&load->results[0], u)
    {
        if (u->user->kind != OP_LOCAL_ALLOC)
            return refuse(sp, "a loaded tile goes to registers");
        map_set(&sp->fill, &u->user->results[0], &load->results[0]);
        if (!see_readers(sp, g, &u->user->results[0], &by_dots))
            return false;
    }
    if (!g->first)
        return refuse(sp, "a loaded tile is not used");
    if (by_dots && pipeline_of(loop).pending)
        g->last = NULL;
    return true;
}

bool
specialize_readers(Specialize *sp, Group *g)
{
    bool by_dots = false;
    if (!see_readers(sp, g, &g->load[0]->results[0], &by_dots))
        return false;
    if (!by_dots)
        return refuse(sp, "a copied tile is not used by dots");
    if (pipeline_of(g->loop).pending)
        g->last = NULL;
    return true;
}

const Type *
specialize_buffer(const Op *load)
{
    if (load->kind == OP_LOCAL_ALLOC)
        return load->results[0].type;
    return load->results[0].uses->user->results[0].type;
}

/* ---- rings */

/* Does the swizzle make addresses depend on where the buffer is placed
   (passes/finish/alloc_shared.c)? */
static bool
is_swizzled(const Type *mem)
{
    const Layout *l = mem->layout;
    for (int i = 0; l && i < l->nbasis[LD_OFFSET]; i++)
        if (!is_pow2(l->basis[LD_OFFSET][i]))
            return true;
    return false;
}

/* May tiles of both types use the stages of one ring one after the other? */
static bool
swaps(const Type *a, const Type *b)
{
    enum { WHOLE = 1024 };
    int64_t bytes = shared_stage_bytes(a);
    return a == b || (a->elem == b->elem && bytes == shared_stage_bytes(b) &&
                      bytes % WHOLE == 0 && is_swizzled(a) == is_swizzled(b));
}

/* Does b's loop run while a stage of a is held, or loaded and not yet read? Stages are
   released in the order in which they were filled. */
static bool
holds_over(const Group *a, const Group *b)
{
    const Op *at = op_in_region(b->loop, a->home);
    return at && (!a->last || (!op_before(at, a->load[0]) && !op_before(a->last, at)));
}

/* Consecutive loops share a ring if their tiles have the same size, whatever their
   layout; a loop and one inside of it only if the one has released its stages by then.
   All readers of a ring are in one role, because each role counts the stages it has
   read. */
static bool
ring_fits(const Specialize *sp, const Ring *r, const Group *g)
{
    bool same =
        r->n == g->n && r->by_copier == (g->layout != NULL) && r->for_copier == g->copied;
    for (int k = 0; k < g->n && same; k++)
        same = swaps(r->mem[k], specialize_buffer(g->load[k]));
    for (int i = 0; i < sp->ngroup && same; i++) {
        const Group *other = &sp->group[i];
        if (other->ring == r - sp->ring &&
            (other->loop == g->loop || holds_over(g, other) || holds_over(other, g)))
            same = false;
    }
    return same;
}

static bool
find_ring(Specialize *sp, Group *g)
{
    int i = 0;
    while (i < sp->nring && !ring_fits(sp, &sp->ring[i], g))
        i++;
    if (i == SP_RINGS)
        return refuse(sp, "too many rings of buffers");
    Ring *r = &sp->ring[i];
    g->ring = i;
    r->again |= op_in_loop(g->loop);
    if (i < sp->nring) {
        r->again = true;
        return true;
    }
    sp->nring++;
    r->n = g->n;
    r->by_copier = g->layout != NULL;
    r->for_copier = g->copied;
    r->stages = pipeline_of(g->loop).stages;
    for (int k = 0; k < g->n; k++) {
        r->mem[k] = specialize_buffer(g->load[k]);
        r->bytes += shared_stage_bytes(r->mem[k]);
    }
    return true;
}

/* Groups the planned loads of the loop: loads with the same first and last readers arrive
   together. */
static bool
group_loads(Specialize *sp, Op *loop)
{
    int first = sp->ngroup;
    region_each(loop->regions[0], op)
    {
        Group g;
        int i = first;
        if (!op_is_planned(op))
            continue;
        if (op->kind != OP_DESC_LOAD)
            return refuse(sp, "not all loads go by TMA");
        const Op *own = tma_kernel_map(op_operand(op, 0));
        if (own && own->parent != sp->f->body)
            return refuse(sp, "the kernel writes their tensor maps in a loop");
        if (!own && !tma_desc(op_operand(op, 0)))
            return refuse(sp, "a descriptor is not the kernel's");
        if (!open_group(sp, op, loop, &g))
            return false;
        while (i < sp->ngroup &&
               (sp->group[i].first != g.first || sp->group[i].last != g.last))
            i++;
        if (i == SP_GROUPS || (i < sp->ngroup && sp->group[i].n == SP_LOADS))
            return refuse(sp, "too many loads");
        if (i == sp->ngroup)
            sp->group[sp->ngroup++] = g;
        else
            sp->group[i].load[sp->group[i].n++] = op;
    }
    for (int i = first, n = sp->ngroup; i < n && sp->copies; i++)
        if (!specialize_copy(sp, &sp->group[i]))
            return false;
    for (int i = first; i < sp->ngroup; i++)
        if (!find_ring(sp, &sp->group[i]))
            return false;
    return true;
}

static bool
see_loops(Specialize *sp)
{
    region_each_deep(sp->f->body,
                     op) if (loop_is_pipelined(op) && !group_loads(sp, op)) return false;
    return true;
}

/* Bytes of buffers beside the rings that op makes, all live at once; doubled for buffers
   that threads fill for dots that stay in flight (passes/schedule/double_buffer.c). */
static int64_t
other_buffers(const Specialize *sp, const Op *op)
{
    int64_t sum = 0;
    const Op *loop = op->parent->parent;
    int slot;
    if (op->kind == OP_LOCAL_ALLOC && !map_has(&sp->fill, &op->results[0]) &&
        !specialize_group(sp, op, &slot))
        sum = shared_buffer_bytes(op->results[0].type);
    if (is_double_buffered(op) && sp->double_buffers && loop && pipeline_of(loop).pending)
        sum *= 2;
    for (int i = 0; i < op->nregion; i++)
        region_each(op->regions[i], in) sum += other_buffers(sp, in);
    return sum;
}

static bool
used_behind(Op *op, const Op *last)
{
    for (int i = 0; i < op->nresult; i++)
        value_each_use(&op->results[i], u)
        {
            const Op *user = op_in_region(u->user, last->parent);
            if (user && op_before(last, user))
                return true;
        }
    return false;
}

/* The same for the kernel. Buffers behind the last loop of a ring, such as those of
   results stored by TMA, reuse the memory of buffers that only the loops use. */
static int64_t
beside_rings(const Specialize *sp)
{
    int64_t before = 0, behind = 0;
    const Op *last = NULL;
    for (Op *op = sp->f->body->last; op; op = op->prev) {
        int64_t bytes = other_buffers(sp, op);
        for (int i = 0; i < sp->nring && !last; i++)
            last = specialize_inside(sp, i, op) ? op : NULL;
        if (last)
            before += bytes;
        if (!last || (bytes && used_behind(op, last)))
            behind += bytes;
    }
    return max_i64(before, behind);
}

/* Does an op exchange elements between threads through scratch memory, for which roles
   cannot use shuffles? */
static bool
needs_scratch(const Specialize *sp)
{
    region_each_deep(sp->f->body, op)
    {
        if ((!op->nresult || op->results[0].uses) && op->kind != OP_LOCAL_ALLOC &&
            scratch_bytes(op, sp->target) && !scratch_can_shuffle(op))
            return true;
    }
    return false;
}

/* Which of two rings loses a stage: the one with more stages, else the smaller one, whose
   tiles arrive sooner. */
static Ring *
shorter(Ring *a, Ring *b)
{
    if (a->stages != b->stages)
        return a->stages > b->stages ? a : b;
    return b->bytes < a->bytes ? b : a;
}

/* Reduces stages until shared memory suffices; then gives up double buffers, whose dots
   are then waited for. */
static bool
limit_stages(Specialize *sp)
{
    int64_t scratch = BARRIERS + (needs_scratch(sp) ? SCRATCH : 0);
    int64_t room = sp->target->shared_bytes / sp->blocks - scratch;
    for (;;) {
        int64_t beside = beside_rings(sp), sum = beside;
        for (int i = 0; i < sp->nring; i++)
            sum += sp->ring[i].bytes * sp->ring[i].stages;
        sp->bytes = sum + scratch;
        if (sum <= room)
            return true;
        Ring *most = &sp->ring[0];
        for (int i = 1; i < sp->nring; i++)
            most = shorter(most, &sp->ring[i]);
        if (most->stages > 2)
            most->stages--;
        else if (sp->double_buffers)
            sp->double_buffers = false;
        else
            return specialize_refuse(
                sp,
                "two stages of all rings take %lld bytes of shared memory, %lld are "
                "free",
                (long long)(sum - beside), (long long)(room - beside));
    }
}

/* ---- what the producer needs */

/* Slice callback: what the producer may compute for the coordinates of its loads. */
static bool
enter_producer(Slice *sl, const Value *v)
{
    const Op *op = v->op, *home = (op ? op->parent : v->region)->parent;
    bool plain = !op || op->kind == OP_IF || (op_is(op, T_PURE) && !op->nregion) ||
                 (op->kind == OP_LOAD && !attr_has(&op->attrs, ATTR_VOLATILE));
    if (type_is_tile(v->type))
        sl->why = "a coordinate is computed from tiles";
    else if (home && home->kind != OP_FOR && home->kind != OP_IF)
        sl->why = "a coordinate comes out of a while or a reduction";
    else if (!plain)
        sl->why = "a coordinate is computed by more than arithmetic and loads";
    return true;
}

static bool
slice_load(Specialize *sp, Op *load)
{
    bool can = true;
    for (int i = 1; i < load->noperand && can; i++)
        can = slice_add(&sp->keep, op_operand(load, i));
    for (const Op *op = load->parent->parent; op && can; op = op->parent->parent)
        if (op->kind != OP_FOR && op->kind != OP_IF)
            return refuse(sp, "a load stands in control flow other than for and if");
    return (can && slice_add_control(&sp->keep, load)) || refuse(sp, sp->keep.why);
}

/* ---- what forbids it */

/* Does the producer read memory that is written, by the loads of the rings or for their
   coordinates? */
static bool
reads_written(const Specialize *sp, const Writes *w)
{
    region_each_deep(sp->f->body, op)
    {
        int slot;
        bool load = (op->kind == OP_DESC_LOAD && specialize_group(sp, op, &slot)) ||
                    (op->kind == OP_LOAD && slice_has(&sp->keep, op));
        if (load && writes_reach(w, op_operand(op, 0)))
            return true;
    }
    return false;
}

/* Does op write memory that the producer reads, or wait for another program that does? */
static bool
writes_read(const Specialize *sp, const Op *op)
{
    Writes w = {0};
    writes_add(&w, op);
    return w.all || (w.n && reads_written(sp, &w));
}

/* Is memory that the producer reads written before the last loop with a ring has ended?
   The producer runs ahead and could read it too early; writes to other memory are
   harmless. */
static bool
writes_before(const Specialize *sp)
{
    bool seen = false;
    for (Op *op = sp->f->body->last; op; op = op->prev) {
        for (int i = 0; i < sp->nring; i++)
            seen |= specialize_inside(sp, i, op);
        if (seen && writes_read(sp, op))
            return true;
    }
    return false;
}

/* Do all loops together have few iterations, all of them known? */
static bool
few_iterations(const Specialize *sp)
{
    int64_t sum = 0;
    for (int i = 0; i < sp->ngroup; i++) {
        int64_t trips = loop_trips(sp->group[i].loop);
        if (trips < 0)
            return false;
        sum += trips;
        if (op_in_loop(sp->group[i].loop))
            return false;
    }
    return sum < FEW;
}

/* Do dots read a loaded tile, or what threads compute from one? */
static bool
feeds_dots(const Specialize *sp)
{
    for (int i = 0; i < sp->ngroup; i++) {
        const Op *first = sp->group[i].first;
        if (op_is_async_dot(first) || (first->kind == OP_LOCAL_LOAD &&
                                       value_feeds_dot(&first->results[0], NULL, true)))
            return true;
    }
    return false;
}

/* Is a loaded tile first read inside of a condition? */
static bool
read_in_condition(const Specialize *sp)
{
    for (int i = 0; i < sp->ngroup; i++)
        if (sp->group[i].first->kind == OP_IF)
            return true;
    return false;
}

bool
specialize_plan(Specialize *sp)
{
    map_init(&sp->fill, &sp->s->tmp);
    slice_init(&sp->keep, &sp->s->tmp, sp->f->body, enter_producer, NULL);
    map_init(&sp->moves, &sp->s->tmp);
    if (!see_loops(sp) || !sp->ngroup)
        return false;
    if (!feeds_dots(sp))
        return refuse(sp, read_in_condition(sp) ? "only conditions read the tiles"
                                                : "no wgmma reads the tiles");
    if (few_iterations(sp))
        return refuse(sp, "the loop has few iterations");
    for (int i = 0; i < sp->ngroup; i++)
        for (int k = 0; k < sp->group[i].n; k++)
            if (!slice_load(sp, sp->group[i].load[k]))
                return false;
    if (writes_before(sp))
        return refuse(sp, "memory is written before all tiles are read");
    return limit_stages(sp);
}
