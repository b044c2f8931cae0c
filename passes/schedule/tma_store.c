/* Results that the kernel does not read again are stored by TMA.

    %y = convert_layout %x : tile<.., #rows>        %m = local_alloc %x : mem<..>
    store %ptrs, %y, %mask                    =>    tma_store %d, %m, %i, %j
                                                    tma_wait {pending=0}

   The result of a dot is spread over threads so that no thread holds neighbours of a row.
   On its way to memory it goes through shared memory in either form. With TMA one thread
   sends it from there, without addresses and masks in registers.

   Nothing sees a TMA store before the kernel ends. So no access of memory may follow it
   in the kernel, except stores through other parameters and TMA stores beside this one:
   to other columns of the same tensor, where the launch checks that rows do not overlap.

   In a loop over tiles TMA has the time of the whole next tile: the buffer stands outside
   of the loop, and the store of the previous iteration is waited for where the buffer is
   filled again. Nothing in the loop may access the results then.

   A tile goes in pieces, one after the other through one buffer, if a loop over tiles
   gives TMA the time: one of more than half of the shared memory, as of fp32, in so many
   that no stage is lost, where that can be; another one in the fewest that leave the
   stages that were asked for.

   Warpgroups that have rows of their own in the result send them on their own, {groups}:
   one that is done does not wait for the others, which multiply meanwhile.

   Through a tensor map that the kernel writes, TMA stores only where the tensor has
   elements and its rows end on 16 bytes; a branch checks that, and threads store
   otherwise. */
#include "ir/analysis/param.h"
#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/plan/pipeline.h"
#include "passes/layout/layout.h"
#include "passes/mma/operand.h"
#include "passes/schedule/occupancy.h"
#include "passes/schedule/tma_pieces.h"
#include "passes/schedule/tma_tile.h"

enum { BESIDE = 1024 }; /* bytes for barriers */

/* A store that has become one by TMA. */
typedef struct Sent {
    const Op *op;
    const TmaTile *tile;
} Sent;

/* The state of the pass, which visits one store after the other. */
typedef struct Sends {
    Session *s;
    Func *f;
    int64_t shared; /* bytes that a program may have */
    Vec(Sent) sent;
    const Op *store; /* this one */
    TmaTile *tile;
} Sends;

static TmaTile *tile_of(Sends *c, const Op *store, const Type **mem, TmaPieces *pieces);

/* Does op, a store in the same block, also go by TMA and write other columns of the same
   tensor? */
static bool
is_beside(Sends *c, const Op *op)
{
    const Type *mem;
    const TmaTile *other = NULL;
    TmaPieces pieces;
    int64_t behind;
    if (op->parent != c->store->parent)
        return false;
    for (int i = 0; i < c->sent.n; i++)
        if (c->sent.at[i].op == op)
            other = c->sent.at[i].tile;
    if (op->kind == OP_STORE)
        other = tile_of(c, op, &mem, &pieces);
    if (!other || !tma_tile_beside(c->tile, other, &behind))
        return false;
    c->tile->apart = max_i64(c->tile->apart, 1 - min_i64(behind, 0));
    return true;
}

/* May op run after the store, or, in a loop that runs both again, before it? */
static bool
may_follow(Sends *c, const Op *op, Origin base, bool loop)
{
    Effect e;
    if (op_releases(op)) /* other programs may look for the results */
        return false;
    for (int i = 0; i < 2 && opkind_effect(op->kind, i, &e); i++) {
        Origin other = {0};
        if (e.resource == RES_GLOBAL && (loop || op->kind == OP_STORE))
            other = origin_of(op_operand(op, e.operand));
        Queue queue = opkind_waits(op->kind);
        bool wait = queue == QUEUE_STORE || (loop && queue == QUEUE_DOT);
        if ((e.resource == RES_ANY && !wait) ||
            (e.resource == RES_GLOBAL && origin_may_be(other, base) &&
             !is_beside(c, op)))
            return false;
    }
    for (int i = 0; i < op->nregion; i++)
        for (const Op *in = op->regions[i]->first; in; in = in->next)
            if (!may_follow(c, in, base, loop))
                return false;
    return true;
}

static bool
is_loop(const Op *op)
{
    return op && (op->kind == OP_FOR || op->kind == OP_WHILE);
}

static bool
is_last(Sends *c, Origin base)
{
    for (const Op *at = c->store; at; at = at->parent->parent) {
        bool loop = is_loop(at->parent->parent);
        const Op *op = loop ? at->parent->first : at->next;
        for (; op; op = op->next)
            if (op != at && !may_follow(c, op, base, loop))
                return false;
    }
    return true;
}

/* Is l the register layout of a wgmma result, or the transpose of one whose rows are in
   pairs, so that a thread holds two neighbours of a row, or of whole words? */
static bool
is_result(Session *s, const Layout *l, int bits)
{
    static const int64_t swap[2] = {1, 0};
    int n, warps[2];
    bool pairs;
    return layout_is_wgmma(l, &n, warps, &pairs) ||
           (layout_is_wgmma(layout_trans(s, l, swap), &n, warps, &pairs) &&
            (pairs || bits == 32));
}

/* The wgmma result that is converted in order to be stored; NULL: none. */
static Value *
result_of(Session *s, const Op *store)
{
    Op *c = value_def(op_operand(store, 1), OP_CONVERT_LAYOUT);
    Value *x = c ? op_operand(c, 0) : NULL;
    int bits = x ? type_bits(x->type) : 0;
    bool good = x && x->type->rank == 2 && (bits == 8 || bits == 16 || bits == 32) &&
                is_result(s, x->type->layout, bits);
    return good ? x : NULL;
}

/* Is each iteration a program of the grid that was requested (pass persist)? These write
   to the same place in any order, if at all. */
static bool
runs_programs(const Op *loop)
{
    const Op *all = loop->kind == OP_FOR
                        ? value_def(op_operand(loop, 1), OP_NUM_PROGRAMS)
                        : NULL;
    return all && attr_has(&all->attrs, ATTR_CTAS_PER_SM);
}

/* Does the tile begin at a multiple of its own rows? Then no two tiles have a row that
   different warpgroups store. */
static bool
is_in_step(const TmaTile *tile, const Type *mem)
{
    const TmaDim *rows = &tile->dim[0];
    bool in_step = rows->kind == TMA_PLAIN;
    for (int i = 0; i < rows->at.n; i++)
        in_step &= rows->at.t[i].k % mem->shape[0] == 0;
    return in_step;
}

/* The number of warpgroups of which each holds rows of its own of x, 64 at a time in
   turn, in boxes of the buffer that hold none of another's; 0: not so. Each waits for its
   own stores alone, so in a loop it must be the one that stores to a place again. */
static int
groups_of(Session *s, const Value *x, const TmaTile *tile, const Type *mem,
          const Op *loop)
{
    int n, warps[2], along;
    bool pairs, rows = layout_is_wgmma(x->type->layout, &n, warps, &pairs);
    int groups = rows && !pairs && warps[1] == 1 ? warps[0] / 4 : 1;
    TmaBoxes boxes;
    bool own = groups > 1 && !tile->where && tma_boxes(s, mem, &boxes) &&
               tma_group_boxes(&boxes, groups, &along) &&
               (!loop || runs_programs(loop) || is_in_step(tile, mem));
    return own ? groups : 0;
}

static void
wait_for_engine(Session *s, Builder *b, bool written)
{
    AttrList attrs = {0};
    attr_set_int(&s->mod, &attrs, ATTR_PENDING, 0);
    if (written)
        attr_set_flag(&s->mod, &attrs, ATTR_WRITTEN);
    build_op(b, OP_TMA_WAIT, NULL, 0, &attrs, NULL, 0);
}

/* Are a and b in different arms of an `if`? */
static bool
excluded(const Op *a, const Op *b)
{
    const Region *r = a->parent;
    for (const Op *up = r->parent; up; r = up->parent, up = r->parent)
        for (int i = 0; i < up->nregion && up->kind == OP_IF; i++)
            if (up->regions[i] != r && region_within(b->parent, up->regions[i]))
                return true;
    return false;
}

/* A buffer of type `mem` in front of the loop that only TMA stores use. Unless `beside`,
   none of those may run in the same iteration as this store. */
static Value *
filled(const Op *store, Op *loop, const Type *mem, bool beside)
{
    for (Op *op = loop->prev; op; op = op->prev) {
        bool good = op->kind == OP_LOCAL_ALLOC && !op->noperand &&
                    op->results[0].type == mem && op->results[0].uses;
        if (!good)
            continue;
        value_each_use(&op->results[0], u) good &=
            (u->user->kind == OP_LOCAL_STORE || u->user->kind == OP_TMA_STORE) &&
            (beside || excluded(store, u->user));
        if (good)
            return &op->results[0];
    }
    return NULL;
}

/* Does a wait in front of the builder guarantee that all stores of earlier iterations
   have read their buffers, and reached memory if that matters? */
static bool
is_awaited(const Builder *b, bool written)
{
    const Op *op = b->before ? b->before->prev : b->region->last;
    for (; op; op = op->prev)
        if (op->kind == OP_TMA_WAIT && (!written || attr_has(&op->attrs, ATTR_WRITTEN)))
            return true;
    return false;
}

/* Stores x to a buffer: to `buffer` if there is one, else to a new one. If a loop sends
   two tiles to the same place the later one must win, so the first must have reached
   memory; a store of this iteration must only have read its buffer. */
static Value *
fill(Session *s, Builder *b, Value *x, const Type *mem, Op *loop, Value *buffer,
     const AttrList *attrs)
{
    if (!loop)
        return &build_op(b, OP_LOCAL_ALLOC, &x, 1, attrs, &mem, 1)->results[0];
    Builder out = builder_before(loop);
    out.loc = b->loc;
    bool ordered = !runs_programs(loop), awaited = is_awaited(b, ordered);
    Value *in[2] = {buffer, x};
    if (!buffer)
        in[0] = &build_op(&out, OP_LOCAL_ALLOC, NULL, 0, NULL, &mem, 1)->results[0];
    if (!awaited || buffer)
        wait_for_engine(s, b, !awaited && ordered);
    build_op(b, OP_LOCAL_STORE, in, 2, attrs, NULL, 0);
    return in[0];
}

/* The outermost loop around op. */
static Op *
loop_around(const Op *op)
{
    Op *loop = NULL;
    for (Op *up = op->parent->parent; up; up = up->parent->parent)
        if (is_loop(up))
            loop = up;
    return loop;
}

/* Bytes of the buffers that stand in front of the loop and are filled in it. */
static int64_t
buffers_before(const Op *loop)
{
    int64_t sum = 0;
    for (const Op *op = loop->prev; op; op = op->prev)
        if (op->kind == OP_LOCAL_ALLOC && !op->noperand)
            sum += type_bytes(op->results[0].type);
    return sum;
}

/* The buffer of the store lies beside the stages of the loops in its loop. Where not all
   fit, they get fewer stages, but at least `least`. False: not even that fits. */
enum { ALL = 1 << 20 };

/* So many stages of the loop do not fit. */
static int
stages_lost(const Op *loop, int64_t room)
{
    int64_t one = loop_is_pipelined(loop) ? stage_bytes(loop) : 0;
    return one ? (int)max_i64(0, pipeline_of(loop).stages - room / one) : 0;
}

static bool
keeps_stages(Region *r, int64_t room, int64_t least)
{
    region_each_deep(r, op)
    {
        int less = stages_lost(op, room), stages = pipeline_of(op).stages;
        if (less && stages - less < min_i64(least, stages))
            return false;
    }
    return true;
}

static bool
make_room(Session *s, Region *r, int64_t room, int64_t least)
{
    if (!keeps_stages(r, room, least))
        return false;
    region_each_deep(r, op)
    {
        Pipeline p = pipeline_of(op);
        int less = stages_lost(op, room);
        if (!less)
            continue;
        p.stages -= less;
        p.ahead = (int)max_i64(1, min_i64(p.ahead - less, p.stages - 1));
        pipeline_set(s, op, p);
    }
    return true;
}

/* Finds an existing buffer (*buffer) or room for a new one. Sharing the buffer of another
   store of the iteration, one after the other, is better than giving up a stage. */
static bool
find_room(Session *s, Op *store, Op *loop, const Type *mem, int64_t room, Value **buffer)
{
    int64_t bytes = type_bytes(mem);
    Region *body = loop->regions[loop->nregion - 1];
    room -= buffers_before(loop);
    *buffer = filled(store, loop, mem, false);
    if (*buffer || make_room(s, body, room - bytes, ALL))
        return true;
    *buffer = filled(store, loop, mem, true);
    return *buffer || make_room(s, body, room - bytes, 2);
}

/* At the end of a row TMA clips in pieces of 16 bytes (H200, 2026-11-22): it would write
   masked-off elements of the last piece. So tiles must begin on such a piece, and rows
   must end on one, unless the launch or the kernel checks the end. */
static bool
in_pieces(const TmaTile *t)
{
    const TmaDim *d = &t->dim[t->boxes.order[0]];
    int64_t size;
    if (t->where) /* the kernel looks, too */
        return true;
    bool ends = !d->bounded || !poly_is_const(&d->size, &size) ||
                tma_tile_in_pieces(t, &d->size);
    return ends && tma_tile_in_pieces(t, &d->at);
}

/* Where the kernel makes the map, it also checks whether TMA may store: returns the arm
   for TMA; threads store in the other one. */
static Region *
split(Builder *b, Op *store, Value *ok)
{
    Op *convert = op_operand(store, 1)->op;
    Op *branch = build_if(b, ok, NULL, 0);
    op_move_to_end(store, branch->regions[1]);
    if (!op_operand(store, 1)->uses->next)
        op_move_before(convert, store);
    Builder end = builder_at_end(b->func, branch->regions[1]);
    end.loc = b->loc;
    build_yield(&end, NULL, 0);
    return branch->regions[0];
}

/* The type of the buffer for a tile of that shape. */
static const Type *
buffer_of(Session *s, const Op *store, const int64_t *shape)
{
    const Value *y = op_operand(store, 1);
    int vec, dim = layout_access_dim(store, &vec);
    const Type *t = type_tile(s->types, type_elem(y->type), y->type->rank, shape, NULL);
    return operand_buffer_type(s, t, dim >= 0 ? dim : operand_fast_dim(y));
}

/* Bytes of the results that other stores of the block will send, through buffers of their
   own: not like this store's. */
static int64_t
beside_bytes(Sends *c, const Op *store, const Type *mem)
{
    int64_t sum = 0;
    region_each(store->parent, op)
    {
        const Value *x = op != store && op->kind == OP_STORE ? result_of(c->s, op) : NULL;
        const Type *own = x ? buffer_of(c->s, op, x->type->shape) : mem;
        sum += own == mem ? 0 : type_bytes(own);
    }
    return sum;
}

/* The type of the buffer, and the pieces that go through it. */
static const Type *
in_few_pieces(Sends *c, const Op *store, const Op *loop, TmaPieces *pieces)
{
    const Value *x = result_of(c->s, store);
    const Type *whole = buffer_of(c->s, store, x->type->shape), *mem = whole;
    Region *body = loop ? loop->regions[loop->nregion - 1] : NULL;
    int64_t half = c->shared / 2, room = c->shared - BESIDE;
    int64_t least = type_bytes(whole) > half ? ALL : c->f->num_stages;
    *pieces = (TmaPieces){.n = 1};
    if (!loop)
        return whole;
    room -= buffers_before(loop) + (least == ALL ? 0 : beside_bytes(c, store, whole));
    bool fits = least != ALL && keeps_stages(body, room - type_bytes(whole), least);
    for (int n = 2; n <= TMA_MOST_PIECES && !fits; n *= 2) {
        TmaPieces more;
        if (!tma_pieces_of(x->type, n, &more))
            break;
        *pieces = more;
        mem = buffer_of(c->s, store, more.shape);
        fits = keeps_stages(body, room - type_bytes(mem), least);
    }
    if (fits || least == ALL)
        return mem;
    *pieces = (TmaPieces){.n = 1};
    return whole;
}

/* The tile that the store writes, through a buffer of type *mem, in pieces; NULL: not by
   TMA. */
static TmaTile *
tile_of(Sends *c, const Op *store, const Type **mem, TmaPieces *pieces)
{
    const Value *x = result_of(c->s, store);
    Op *loop = loop_around(store);
    if (!x || attr_has(&store->attrs, ATTR_VOLATILE))
        return NULL;
    *mem = in_few_pieces(c, store, loop, pieces);
    Value *mask = store->noperand > 2 ? op_operand(store, 2) : NULL;
    TmaTile *tile = tma_tile(c->f, loop, store, op_operand(store, 0), mask, *mem);
    if (pieces->n > 1 && (tile->where || tile->dim[pieces->dim].kind)) {
        *pieces = (TmaPieces){.n = 1};
        *mem = buffer_of(c->s, store, x->type->shape);
        tile = tma_tile(c->f, loop, store, op_operand(store, 0), mask, *mem);
    }
    bool good = !tile->why && !tile->parted && type_bytes(*mem) <= c->shared / 2;
    return good && in_pieces(tile) ? tile : NULL;
}

/* Sends x, the result or a piece of it that begins `first` elements behind along dim. */
static Value *
send(Sends *c, Builder *b, Value *x, const Type *mem, Value *desc, Op *loop,
     Value *buffer, int dim, int64_t first)
{
    const TmaTile *tile = c->tile;
    Value *in[2 + TMA_MAX_RANK] = {desc};
    int groups = groups_of(c->s, x, tile, mem, loop);
    AttrList attrs = {0};
    if (groups)
        attr_set_int(&c->s->mod, &attrs, ATTR_GROUPS, groups);
    in[1] = fill(c->s, b, x, mem, loop, buffer, &attrs);
    int n = 2 + tma_tile_at(tile, b, in + 2);
    if (first) { /* the dimensions of the tile come last, the fastest one of all */
        Value **at = &in[tile->boxes.order[0] == dim ? n - 1 : n - 2];
        *at = build_binary(b, OP_ADD, *at, build_int(b, (*at)->type, first));
    }
    Op *op = build_op(b, OP_TMA_STORE, in, n, &attrs, NULL, 0);
    vec_push(&c->s->tmp, &c->sent, ((Sent){op, tile}));
    return in[1];
}

/* The descriptor of the pieces. */
static Value *
desc_of(const TmaTile *tile, const TmaPieces *p, Loc loc)
{
    TmaTile one = *tile;
    if (p->n > 1)
        one.dim[p->dim].box = p->shape[p->dim];
    return tma_tile_desc(&one, loc);
}

static bool
rewrite(Sends *c, Op *store)
{
    Session *s = c->s;
    Func *f = c->f;
    Value *buffer = NULL, *desc = NULL, *part[TMA_MOST_PIECES];
    Op *loop = loop_around(store);
    const Type *mem;
    TmaPieces pieces;
    TmaTile *tile = tile_of(c, store, &mem, &pieces);
    c->store = store;
    c->tile = tile;
    if (!tile || !is_last(c, origin_of(tile->ptr.ptr)))
        return false;
    Value *x = result_of(s, store);
    if (!tile->where && !(desc = desc_of(tile, &pieces, store->loc)))
        return false;
    if (loop && !find_room(s, store, loop, mem, c->shared - BESIDE, &buffer))
        return false;
    if (tile->where) /* an operation, not a parameter: none that nobody uses */
        desc = tma_tile_desc(tile, store->loc);
    Builder b = builder_before(store);
    b.loc = store->loc;
    if (tile->where)
        b = builder_at_end(f, split(&b, store, tma_tile_ends(tile, &b)));
    tma_cut(&b, x, &pieces, part);
    for (int i = 0; i < pieces.n; i++)
        buffer = send(c, &b, part[i], mem, desc, loop, buffer, pieces.dim,
                      i * pieces.shape[pieces.dim]);
    Builder end = loop ? builder_after(loop) : b;
    wait_for_engine(s, &end, false);
    if (tile->where)
        build_yield(&b, NULL, 0);
    else
        op_erase(store);
    return true;
}

/* Visits stores outside of pipelined loops; stores inside those are not results. */
static bool
visit(Sends *c, Region *r)
{
    bool changed = false;
    region_each(r, op)
    {
        bool in = op->kind == OP_IF || op->kind == OP_WHILE ||
                  (op->kind == OP_FOR && !loop_is_pipelined(op));
        if (op->kind == OP_STORE)
            changed |= rewrite(c, op);
        for (int i = 0; in && i < op->nregion; i++)
            changed |= visit(c, op->regions[i]);
    }
    return changed;
}

bool
pass_tma_store(Func *f, PassCx *cx)
{
    Sends c = {.s = cx->s, .f = f, .shared = cx->target.shared_bytes};
    return cx->target.tma && !cx->target.no_tma_store && !cx->budget->no_tma_stores &&
           visit(&c, f->body);
}
