/* Prefetches: memory is requested before it is needed.

   Processors prefetch consecutive lines by themselves, but only up to the end of a page.
   If rows begin on pages, each row would begin with a wait. So contiguous loads prefetch
   one page ahead; a sum of arrays that no cache holds gets 10 to 50 percent faster. Tiles
   of several rows prefetch what a later iteration of their loop loads, or, outside of
   loops, rows further down. Nothing is prefetched behind a row whose number was loaded,
   since the next row will be elsewhere.

   If several nests go through the same rows, as in a softmax, the nest that computes most
   prefetches, since it does not wait for memory: the next row, and the lines that the
   next nest will write. What the first nest alone loads is prefetched in the second one,
   if that only computes. Scalars that the addresses need are computed in front of the
   nest.

       for %i = 0, 1024, 64 {                     for %i = 0, 1024, 64 {
         %x = vload %p                              vfetch %p {offset=4096, bytes=256}
         buf_store %e, exp (%x - %max)      =>      vfetch %q {write, bytes=256}
       }                                            .. }
       for %i .. { vstore %q, .. }                for %i .. { vstore %q, .. } */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"

/* LEAST: bytes of a strip; for fewer a prefetch costs more than it gains. MOST: bytes of
   a tile, so that what is prefetched stays in the first-level cache until it is used. */
enum {
    PAGE = 4096,
    LEAST = 64,
    MOST = 16384,
    LONG = 16384, /* bytes of a row: a page ahead belongs to the same row */
    ROUND = 65536, /* bytes of a tile: the next one fits the second-level cache */
    FAR = 16384, /* bytes that a loop reads between what it prefetches and its use */
    AHEAD = 2048, /* bytes of short rows between what is read and what is prefetched */
    MOST_STEPS = 64
};

static int64_t
tile_bytes(const Type *elem, const Type *shape)
{
    return type_numel(shape) * max_i64(type_bits(elem), 8) / 8;
}

static void
fetch(Cx *cx, Value *p, int64_t offset, bool near, bool write)
{
    AttrList l = {0};
    Arena *m = &cx->n->s->mod;
    attr_set_int(m, &l, ATTR_OFFSET, offset);
    attr_set_int(m, &l, ATTR_BYTES, cx->w * max_i64(type_bits(p->type->elem), 8) / 8);
    if (near)
        attr_set_flag(m, &l, ATTR_NEAR);
    if (write)
        attr_set_flag(m, &l, ATTR_WRITE);
    build_op(&cx->b, OP_VFETCH, &p, 1, &l, NULL, 0);
}

static bool
wide(const Cx *cx, const Type *elem)
{
    return cx->w * max_i64(type_bits(elem), 8) / 8 >= LEAST;
}

static bool
has_load(const Group *g, const Op *load)
{
    for (int i = 0; i < g->items.n; i++)
        if (g->items.at[i].kind == ROOT_LOAD && g->items.at[i].op == load)
            return true;
    return false;
}

static bool
is_ready(Simd *n, const Value *v, int *left, bool *kept)
{
    if (!simd_tile(v))
        return map_get(&n->map, v) != NULL;
    const Plan *p = plan_get(n, v);
    if (p->slot)
        return *kept = true;
    bool ok = v->op && op_is(v->op, T_PURE) && !v->op->nregion;
    *left -= ok ? max_i64(op_cost(v->op), 1) : 0;
    for (int i = 0; ok && *left >= 0 && i < v->op->noperand; i++)
        ok = is_ready(n, op_operand(v->op, i), left, kept);
    return ok && *left >= 0;
}

/* Can v be computed now, at little cost: from indices, from scalars that are computed,
   and from buffers that an earlier nest has written (then *kept)? */
static bool
ready(Simd *n, const Value *v, bool *kept)
{
    int left = MOST_STEPS;
    *kept = false;
    return is_ready(n, v, &left, kept);
}

/* The address `ahead` rows further along d, if lanes are contiguous there; else NULL.
   kept: it is read from a buffer, where row numbers wrap around at the end. */
static Value *
rows_on(Cx *cx, Value *to, const Ix *ix, int d, int64_t ahead, bool kept)
{
    Ix next[MAX_RANK];
    Builder *b = &cx->b;
    for (int i = 0; i < to->type->rank; i++)
        next[i] = ix[i];
    next[d].v = build_binary(b, OP_ADD, ix[d].v, build_int(b, cx->n->i64, ahead));
    if (kept)
        next[d].v = build_binary(b, OP_AND, next[d].v,
                                 build_int(b, cx->n->i64, to->type->shape[d] - 1));
    Ev p = simd_eval_trusting(cx, to, next, TRUST_HARMLESS);
    return p.kind == EV_AFF && p.stride == 1 ? p.v : NULL;
}

/* For tiles of short rows: prefetches what the next iteration of the loop loads, or the
   same columns some rows further down, since the memory behind a short row belongs to
   another tile. Nothing for a tile of few rows, or for long ones beside each other, which
   are streams enough. `load`: NULL for a store. False: rows are long, or read from one
   tile to the next. */
static bool
fetch_rows(Cx *cx, Value *to, const Ix *ix, const Op *load)
{
    const Type *t = to->type;
    int lane = -1, down = -1;
    for (int i = 0; i < t->rank; i++)
        lane = ix[i].kind == IX_AFF ? i : lane;
    for (int i = 0; i < t->rank; i++)
        down = i != lane && t->shape[i] > 1 ? i : down;
    if (lane < 0 || down < 0)
        return false;
    int64_t row = tile_bytes(type_elem(t)->elem, t) * t->shape[lane] / type_numel(t);
    if (row >= LONG || (load && cx->g && cx->g->around))
        return cx->rows > 0;
    Value *next = NULL;
    int64_t bytes = tile_bytes(type_elem(t)->elem, t);
    if (load && bytes <= ROUND)
        next = simd_next_round(cx, to, load, ix, max_i64(FAR / bytes, 1));
    if (next) {
        fetch(cx, next, 0, false, false);
        return true;
    }
    int64_t ahead = max_i64(AHEAD / row, max_i64(cx->rows, 1));
    ahead = min_i64(ahead, t->shape[down] / 4);
    bool kept;
    bool counts = ix[down].kind == IX_UNI && ahead && ready(cx->n, to, &kept);
    Value *p = counts ? rows_on(cx, to, ix, down, ahead, kept) : NULL;
    if (p)
        fetch(cx, p, 0, false, !load);
    return true;
}

static bool
was_loaded(const Value *v, int *left)
{
    const Op *op = v->op;
    if (!op || --*left < 0)
        return false;
    bool found = op->kind == OP_LOAD;
    for (int i = 0; i < op->noperand && !found; i++)
        found = was_loaded(op_operand(op, i), left);
    return found;
}

/* Is the memory behind the tile of no use, as behind a row whose number was loaded? In a
   loop the next iteration may need it. */
static bool
ends(const Op *load)
{
    int left = MOST_STEPS;
    return !load->parent->parent && was_loaded(op_operand(load, 0), &left);
}

/* Does the nest behind that of the load only compute? Then it prefetches what the load
   needs for the next tile, while memory is idle. */
static bool
has_idle_next(Simd *n, const Group *g, const Op *load)
{
    const Group *next = g ? g->then : NULL;
    const Value *from = op_operand(load, 0);
    bool kept;
    if (!next || g->axis < 0 || next->region != g->region ||
        !type_same_shape(next->shape, g->shape) ||
        tile_bytes(type_elem(from->type)->elem, from->type) > MOST)
        return false;
    for (int i = 0; i < next->items.n; i++)
        if (next->items.at[i].kind == ROOT_LOAD)
            return false;
    return ready(n, from, &kept) && !kept;
}

/* Is the root a load, of a tile that is kept or not? */
static bool
loads_here(const Root *r)
{
    return r->kind == ROOT_LOAD || (r->kind == ROOT_MAT && r->op->kind == OP_LOAD);
}

void
simd_fetch_loads(Cx *cx, const Ix *ix)
{
    const Group *g = cx->g->before;
    for (int i = 0; g && cx->fast && i < g->items.n; i++) {
        const Op *load = g->items.at[i].op;
        if (!loads_here(&g->items.at[i]) || !has_idle_next(cx->n, g, load))
            continue;
        Value *from = op_operand(load, 0);
        const Type *elem = type_elem(from->type)->elem;
        Ev p = simd_eval_trusting(cx, from, ix, TRUST_HARMLESS);
        if (wide(cx, elem) && p.kind == EV_AFF && p.stride == 1)
            fetch(cx, p.v, (tile_bytes(elem, from->type) + PAGE - 1) / PAGE * PAGE, false,
                  false);
    }
}

void
simd_fetch_next(Cx *cx, const Op *load, const Ix *ix, Value *p)
{
    const Type *elem = p->type->elem;
    const Plan *plan = plan_get(cx->n, op_result((Op *)load, 0));
    int64_t bytes = tile_bytes(elem, op_operand(load, 0)->type);
    if (!wide(cx, elem) || fetch_rows(cx, op_operand(load, 0), ix, load) ||
        (bytes <= PAGE && ends(load)) || has_idle_next(cx->n, cx->g, load))
        return;
    if (plan->nd < 2 || !cx->g) {
        fetch(cx, p, PAGE, false, false);
        return;
    }
    for (int i = 0; i < plan->nd; i++) {
        const Group *g = plan->d[i].g;
        if (g->cost > cx->g->cost && has_load(g, load))
            return;
    }
    fetch(cx, p, (bytes + PAGE - 1) / PAGE * PAGE, bytes <= MOST, false);
}

static void
compute(Simd *n, Builder *b, const Group *g, const Value *v, int *left)
{
    Op *op = v->op;
    if (!op || --*left < 0 || (!simd_tile(v) && map_get(&n->map, v)))
        return;
    for (int i = 0; i < op->noperand; i++)
        compute(n, b, g, op_operand(op, i), left);
    if (simd_tile(v) || op->parent != g->region || !op_is(op, T_PURE) || op->nregion ||
        op_cost(op) > OP_COSTLY)
        return;
    for (int i = 0; i < op->noperand; i++)
        if (!map_get(&n->map, op_operand(op, i)))
            return;
    op_clone(b, op, &n->map);
}

void
simd_fetch_scalars(Simd *n, Builder *b, const Group *g)
{
    for (int i = 0; g->then && i < g->then->items.n; i++) {
        const Root *r = &g->then->items.at[i];
        int left = MOST_STEPS;
        if (r->kind == ROOT_STORE)
            compute(n, b, g, op_operand(r->op, 0), &left);
    }
}

void
simd_fetch_long(Cx *cx, const Op *store, const Ix *ix, Value *p)
{
    const Type *elem = p->type->elem;
    Value *to = op_operand(store, 0);
    int64_t bytes = tile_bytes(elem, to->type);
    bool goes_on = store->parent->parent != NULL; /* in a loop: no nest prefetched it */
    bool is_long = bytes > MOST || (goes_on && bytes == MOST);
    if (wide(cx, elem) && is_long && !fetch_rows(cx, to, ix, NULL))
        fetch(cx, p, PAGE, false, true);
}

void
simd_fetch_stores(Cx *cx, const Ix *ix)
{
    const Group *next = cx->g->then;
    bool kept;
    if (!next || !cx->fast || !type_same_shape(next->shape, cx->g->shape))
        return;
    for (int i = next->items.n - 1; i >= 0; i--) {
        const Root *r = &next->items.at[i];
        if (r->kind != ROOT_STORE)
            continue;
        Value *to = op_operand(r->op, 0);
        const Type *elem = type_elem(to->type)->elem;
        if (!wide(cx, elem) || tile_bytes(elem, next->shape) > MOST ||
            !ready(cx->n, to, &kept) || kept)
            continue;
        cx->fast = false; /* a prefetch is not worth a test */
        Ev p = simd_eval(cx, to, ix);
        cx->fast = true;
        if (p.kind == EV_AFF && p.stride == 1)
            fetch(cx, p.v, 0, true, true);
    }
}
