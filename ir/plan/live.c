/* Ops are numbered as they stand; a region's ops lie between the op and its end. A use
   in a loop that does not contain the allocation counts to the loop's end: the next round
   may use the buffer again. What a copy still writes, or a dot still reads, is in use
   until a wait for all of them; barriers, and buffers that other units read and write on
   their own, stay for the rest of the function; barriers that are not made once alone
   have their place from the beginning. */
#include "ir/analysis/async_dot.h"
#include "ir/plan/live.h"

#include "ir/analysis/shared.h"
#include "ir/base/map.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/edit.h"
#include "ir/plan/scratch.h"

typedef struct Span {
    const Op *op;
    int first, last;
} Span;

typedef struct Liveness {
    Arena *arena;
    const TargetInfo *target;
    Map span;  /* Op -> Span */
    Map range; /* Op -> its index in `ranges` + 1 */
    Vec(LiveRange) ranges;
    Vec(const Op *) waits; /* for all copies, dots or stores */
    int next;
} Liveness;

static int64_t
bytes_of(const Liveness *v, const Op *op)
{
    if (op->kind == OP_LOCAL_ALLOC)
        return shared_buffer_bytes(op->results[0].type);
    if (op->kind == OP_BAR_ALLOC)
        return 8 * max_i64(1, op->results[0].type->stages);
    return scratch_bytes(op, v->target);
}

static const Region *
role_of(const Op *op)
{
    for (const Region *r = op->parent; r->parent; r = r->parent->parent)
        if (r->parent->kind == OP_WARP_SPECIALIZE)
            return r;
    return NULL;
}

static void
number(Liveness *v, Region *r, int depth)
{
    for (Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        Span *s = arena_new(v->arena, Span);
        *s = (Span){.op = op, .first = v->next++};
        map_set(&v->span, op, s);
        int64_t bytes = bytes_of(v, op);
        if (bytes) {
            bool again = op->kind == OP_BAR_ALLOC && r->parent;
            LiveRange range = {op, bytes, again ? 0 : s->first, s->first, role_of(op)};
            vec_push(v->arena, &v->ranges, range);
            map_set(&v->range, op, (void *)(intptr_t)v->ranges.n);
        }
        for (int i = 0; i < op->nregion; i++)
            number(v, op->regions[i], depth + 1);
        s->last = v->next++;
        if (opkind_waits(op->kind) && !wait_pending(op))
            vec_push(v->arena, &v->waits, op);
    }
}

/* Where a use of a buffer ends, `alloc` being its allocation. */
static int
use_end(const Liveness *v, const Op *use, const Op *alloc)
{
    int last = ((const Span *)map_get(&v->span, use))->last;
    for (const Op *up = use->parent->parent; up; up = up->parent->parent) {
        /* in a loop the next round uses it, in a role the others may be behind */
        bool loop =
            up->kind == OP_FOR || up->kind == OP_WHILE || up->kind == OP_WARP_SPECIALIZE;
        bool inside = false;
        for (int i = 0; i < up->nregion; i++)
            inside |= region_within(alloc->parent, up->regions[i]);
        if (inside)
            break;
        if (loop)
            last = ((const Span *)map_get(&v->span, up))->last;
    }
    return last;
}

/* The wait that every way from `op` comes to: it stands later and around it. */
static const Op *
waited_for(const Liveness *v, const Op *op, Queue queue)
{
    int first = ((const Span *)map_get(&v->span, op))->first;
    for (int i = 0; i < v->waits.n; i++) {
        const Op *w = v->waits.at[i];
        if (opkind_waits(w->kind) == queue &&
            ((const Span *)map_get(&v->span, w))->first > first &&
            region_within(op->parent, w->parent))
            return w;
    }
    return NULL;
}

/* Where the op is done with its operand i, a view of what `alloc` allocated. */
static int
operand_end(const Liveness *v, const Op *op, int i, const Op *alloc)
{
    Effect e;
    for (int k = 0; k < 2; k++) {
        if (!opkind_effect(op->kind, k, &e) || e.operand != i ||
            e.resource != RES_SHARED || !(e.kind & ACC_ASYNC))
            continue;
        if (attr_has(&op->attrs, ATTR_WAITED))
            break;
        Queue queue = opkind_issues(op->kind); /* none: an mbarrier tells of it */
        const Op *wait = queue ? waited_for(v, op, queue) : NULL;
        return wait ? use_end(v, wait, alloc) : v->next;
    }
    return use_end(v, op, alloc);
}

static void
see_uses(Liveness *v, const Region *r, int depth)
{
    for (const Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        for (int i = 0; i < op->noperand; i++) {
            SharedRoot *root;
            if (!type_is_shared(op_operand(op, i)->type))
                continue;
            int n = shared_roots(op_operand(op, i), v->arena, &root);
            for (int k = 0; k < n; k++) {
                intptr_t at = (intptr_t)map_get(&v->range, root[k].alloc);
                if (!at)
                    continue;
                LiveRange *range = &v->ranges.at[at - 1];
                int last = operand_end(v, op, i, root[k].alloc);
                if (root[k].alloc->kind == OP_BAR_ALLOC)
                    last = v->next;
                range->last = (int)max_i64(range->last, last);
            }
        }
        for (int i = 0; i < op->nregion; i++)
            see_uses(v, op->regions[i], depth + 1);
    }
}

bool
live_together(const LiveRange *a, const LiveRange *b)
{
    bool at_once =
        a->role && b->role && a->role != b->role && a->role->parent == b->role->parent;
    return at_once || (a->first <= b->last && b->first <= a->last);
}

int
live_ranges(Func *f, const TargetInfo *t, Arena *arena, LiveRange **out)
{
    Liveness v = {.arena = arena, .target = t};
    map_init(&v.span, arena);
    map_init(&v.range, arena);
    number(&v, f->body, 0);
    see_uses(&v, f->body, 0);
    *out = v.ranges.at;
    return v.ranges.n;
}
