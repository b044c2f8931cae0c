/* Computes tiles that do not fit into registers strip by strip.

       %x = load %p : tile<32768xf32>            %k = private_alloc : buf<f32, [8,4096]>
       %m = reduce %x {axis=0} max               %a = for %i = 0, 8, 1 (%s = nan) {
       %y = subf %x, (splat %m)            =>      %x = load .. : tile<4096xf32>
       store %q, %y                                private_store %k, %x, %i
                                                   yield (maxf %s, %x)
                                                 }
                                                 %m = reduce %a {axis=0} max
                                                 for %i = 0, 8, 1 {
                                                   %x = private_load %k, %i
                                                   store .., (subf %x, (splat %m))
                                                 }

   The highest bits of the index, which select registers of a thread and nothing else,
   number the strips; a strip is the part of the tile with one such number. A reduction
   ends a loop, since the operations behind it need all strips. Each operation goes into
   the first loop where all its operands are complete. A value that a later loop also
   needs is computed there again if that is cheap, or loaded again if nothing was written
   in between. Other values are kept in the thread's local memory (private_alloc). Without
   this pass ptxas would spill all of the unrolled tile there: ten times the code, several
   times the traffic, and compile times of ten seconds and more.

   Order of memory accesses: a load goes into a later loop than the stores before it. A
   store may share a loop with loads before it, so it may run before their later strips.
   No program may count on that order, since threads do not wait for one another between
   the two, unless a reduction stands between them; then the store is in a later loop.

   The pass leaves a region as it is if it has other operations on such tiles, tiles of
   more than one dimension, or a loop that carries one. */
#include "ir/analysis/param.h"
#include "ir/analysis/reduction.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/fold.h"
#include "ir/layout.h"
#include "passes/pass.h"

#include <math.h>

enum {
    MOST_WORDS = 256, /* of a tile: a thread has 255 registers */
    STRIP_WORDS = 16,
    MOST_LOOPS = 8,
    MOST_DEPTH = 64, /* of what is computed again */
};

/* Where an op of the region goes. */
typedef struct Place {
    int loop;   /* wide: the loop that it is in; else: the loop in front of which it is */
    bool wide;  /* it works on the tiles that are cut into strips */
    bool again; /* it is cheap: each loop that needs it computes it */
} Place;

typedef struct Strip {
    Session *s;
    Func *func;
    Region *region;
    const Layout *whole, *part; /* layouts of a tile and of a strip */
    int64_t numel;              /* elements of a tile */
    int64_t count;              /* strips of a tile */
    int loops;                  /* to build */
    Map place;                  /* Op -> Place */
    Map cheap;                  /* Op -> bool: what comes_again found */
    Writes writes;              /* of the region */
    bool reloads;               /* loads may be repeated: writes are in the last loop */
    Map kept;                   /* Value -> its private buffer */
    Map narrow;                 /* Value -> its strip, in the loop that is being built */
    Value *index;               /* number of the strip, in that loop */
    Vec(Op *) ops;              /* of the region, in their order */
} Strip;

static const Place nowhere = {.loop = 0};

static const Place *
place_of(const Strip *c, const Op *op)
{
    const Place *p = op ? map_get(&c->place, op) : NULL;
    return p ? p : &nowhere;
}

/* Is t a tile as large as those that are cut into strips? */
static bool
is_wide(const Strip *c, const Type *t)
{
    return type_is_tile(t) && type_numel(t) >= c->numel;
}

/* 32-bit registers that a thread needs for a tile of type t. */
static int
words(const Type *t)
{
    return layout_regs(t->layout) * (type_bits(t) < 8 ? 8 : type_bits(t)) / 32;
}

static bool
fits_strips(const Strip *c, const Type *t)
{
    return t->rank == 1 && t->layout == c->whole && t->shape[0] == c->numel;
}

/* ------------------------------------------------------------------ which tiles */

/* c->part: c->whole without the register bits that select the strip. False if one of the
   highest index bits is not selected by a register bit alone. */
static bool
cut_layout(Strip *c)
{
    Layout l = *c->whole;
    for (int64_t n = c->count; n > 1; n /= 2) {
        uint32_t bit = 1u << (l.log_shape[0] - 1);
        int reg = -1, owners = 0;
        for (int d = 0; d < LD_COUNT; d++)
            for (int i = 0; i < l.nbasis[d]; i++)
                if (l.basis[d][i] & bit) {
                    owners++;
                    reg = d == LD_REG && l.basis[d][i] == bit ? i : -1;
                }
        if (owners != 1 || reg < 0)
            return false;
        for (int i = reg; i + 1 < l.nbasis[LD_REG]; i++)
            l.basis[LD_REG][i] = l.basis[LD_REG][i + 1];
        l.basis[LD_REG][--l.nbasis[LD_REG]] = 0;
        l.log_shape[0]--;
    }
    c->part = layout_intern(c->s, &l);
    return true;
}

/* Finds the largest float tile that does not fit into registers, and cuts its layout. */
static bool
find_tile(Strip *c)
{
    const Type *most = NULL;
    region_each(c->region, op) for (int i = 0; i < op->nresult; i++)
    {
        const Type *t = op->results[i].type;
        bool number = type_is_tile(t) && t->layout && type_is_float(t) && op->noperand;
        if (number && words(t) >= MOST_WORDS && (!most || words(t) > words(most)))
            most = t;
    }
    if (!most || most->rank != 1)
        return false;
    c->whole = most->layout;
    c->numel = most->shape[0];
    c->count = words(most) / STRIP_WORDS;
    return !layout_is_replicated(most->layout) && cut_layout(c);
}

/* ------------------------------------------------------------------ which loops */

/* May the load be done again in a later loop? Not if a store of the region may write to
   what it reads, where different parameters are taken for different memory. If a caller
   passes one array for two of them that is still right: all stores are in the last loop,
   and there each element is loaded in front of its store. */
static bool
loads_again(const Strip *c, const Op *op)
{
    return c->reloads && op->kind == OP_LOAD && attr_has(&op->attrs, ATTR_CONTIG) &&
           !attr_has(&op->attrs, ATTR_VOLATILE) &&
           !writes_reach(&c->writes, op_operand(op, 0));
}

/* Is v cheap enough for each loop to compute it: integer and address work on scalars and
   indices, or a load that may be repeated? Answers are remembered in c->cheap, since
   values share operands. */
static bool
comes_again(Strip *c, const Value *v, int depth)
{
    const Op *op = v->op;
    if (!op || depth > MOST_DEPTH || !fits_strips(c, v->type) || op->nregion)
        return false;
    const bool *known = map_get(&c->cheap, op);
    if (known)
        return *known;
    bool cheap = op->kind == OP_ARANGE || op->kind == OP_SPLAT || op->kind == OP_CONST ||
                 op->kind == OP_ADDPTR || op->kind == OP_CMPI || loads_again(c, op) ||
                 (op_is(op, T_PURE | T_ELEMENTWISE | T_SPEC) && type_is_int(v->type));
    for (int i = 0; cheap && i < op->noperand; i++) {
        const Value *x = op_operand(op, i);
        cheap = !type_is_tile(x->type) || comes_again(c, x, depth + 1);
    }
    bool *found = arena_new(&c->s->tmp, bool);
    *found = cheap;
    map_set(&c->cheap, op, found);
    return cheap;
}

/* *out: the neutral element of operation k on type t. False: it has none here. */
static bool
neutral(OpKind k, const Type *t, Const *out)
{
    int bits = type_bits(t);
    *out = (Const){.is_float = type_is_float(t)};
    switch ((int)k) {
    case OP_ADDF: out->f = -0.0; return true;
    case OP_MULF: out->f = 1; return true;
    case OP_MINF:
    case OP_MAXF: out->f = NAN; return true;
    case OP_MINNAN: out->f = INFINITY; return true;
    case OP_MAXNAN: out->f = -INFINITY; return true;
    case OP_ADD:
    case OP_OR:
    case OP_XOR:
    case OP_MAXU: return true;
    case OP_MUL: out->i = 1; return true;
    case OP_AND:
    case OP_MINU: out->i = -1; return true;
    case OP_MAXS: out->i = (int64_t)(UINT64_MAX << (bits - 1)); return true;
    case OP_MINS: out->i = (int64_t)~(UINT64_MAX << (bits - 1)); return true;
    default: return false;
    }
}

/* The operation that a reduction combines two elements with. NULL: it is more than one
   operation, or has no neutral element. */
static const Op *
combines_by(const Op *reduce)
{
    Const c;
    const Op *op = reduction_operation(reduce);
    return op && neutral(op->kind, op_operand(reduce, 0)->type, &c) ? op : NULL;
}

/* Does op work on tiles that are cut into strips? *other: it works on wide tiles in a way
   that strips cannot do. */
static bool
uses_strips(const Strip *c, const Op *op, bool *other)
{
    int tiles = 0, all = 0;
    for (int i = 0; i < op->noperand + op->nresult; i++) {
        const Type *t = i < op->noperand ? op_operand(op, i)->type
                                         : op->results[i - op->noperand].type;
        all += is_wide(c, t);
        tiles += fits_strips(c, t);
    }
    bool known = op_is(op, T_PURE | T_ELEMENTWISE) || op->kind == OP_ARANGE ||
                 op->kind == OP_SPLAT ||
                 (op->kind == OP_LOAD && !attr_has(&op->attrs, ATTR_VOLATILE)) ||
                 op->kind == OP_STORE || (op->kind == OP_REDUCE && combines_by(op));
    *other = all != tiles || (all && !known);
    return tiles > 0;
}

static int
later(int a, int b)
{
    return a > b ? a : b;
}

/* The first loop that the next access may be in, or in front of for an access of a
   scalar, so that memory is touched in the order of the program. */
typedef struct Order {
    int load, store; /* of a strip */
    int scalar;      /* behind all accesses so far */
} Order;

/* The first loop in which the operands of op are complete: op goes into it, or in front
   of it. -1: an operand is a wide tile from outside the region. */
static int
first_loop(Strip *c, const Op *op)
{
    int at = 0;
    for (int i = 0; i < op->noperand; i++) {
        const Value *v = op_operand(op, i);
        const Place *p = place_of(c, v->op);
        if (is_wide(c, v->type) && value_outside(v, c->region) && !comes_again(c, v, 0))
            return -1;
        at = later(at, p->loop + (p->wide && v->op->kind == OP_REDUCE));
    }
    return at;
}

/* `at`, or a later loop if op touches memory and its order demands that. Updates *o. */
static int
order_memory(Order *o, const Op *op, bool wide, int at)
{
    OpEffects fx = op_effects(op);
    if (op->kind == OP_REDUCE) /* threads have waited for one another */
        o->store = later(o->store, wide ? later(o->scalar, at + 1) : o->scalar);
    if (!fx.reads && !fx.writes)
        return at;
    bool reads = op->kind == OP_LOAD;
    at = later(at, !wide ? o->scalar : reads ? o->load : o->store);
    o->store = later(o->store, at);
    o->load = later(o->load, at + (wide && !reads));
    o->scalar = later(o->scalar, at + wide);
    return at;
}

/* Gives each op its loop; false: the region cannot be done in strips. */
static bool
place_ops(Strip *c)
{
    Order o = {0};
    c->ops.n = c->loops = 0;
    map_init(&c->place, &c->s->tmp);
    map_init(&c->cheap, &c->s->tmp);
    region_each(c->region, op)
    {
        bool other, wide = uses_strips(c, op, &other);
        if (other)
            return false;
        if (op == c->region->last)
            break;
        OpEffects fx = op_effects(op);
        int at = first_loop(c, op);
        if (at < 0 || fx.keep || fx.convergent || (op->nregion && op->kind != OP_REDUCE))
            return false;
        at = order_memory(&o, op, wide, at);
        Place *p = arena_new(&c->s->tmp, Place);
        *p = (Place){.loop = at, .wide = wide};
        p->again = wide && op->nresult == 1 && comes_again(c, &op->results[0], 0);
        map_set(&c->place, op, p);
        vec_push(&c->s->tmp, &c->ops, op);
        c->loops = later(c->loops, at + wide);
        if (at >= MOST_LOOPS)
            return false;
    }
    return true;
}

/* Is nothing written in front of the last loop? Collects c->writes. */
static bool
writes_last(Strip *c)
{
    for (int k = 0; k < c->ops.n; k++) {
        const Op *op = c->ops.at[k];
        const Place *p = place_of(c, op);
        if (op_effects(op).writes && p->loop + p->wide < c->loops)
            return false;
        writes_add(&c->writes, op);
    }
    return true;
}

/* Are all wide values used by wide ops of this region, and not carried by a loop or used
   in a nested region? */
static bool
stays_inside(const Strip *c)
{
    for (int k = 0; k < c->ops.n; k++) {
        const Op *op = c->ops.at[k];
        for (int i = 0; i < op->nresult; i++)
            value_each_use(&op->results[i], u) if (is_wide(c, op->results[i].type) &&
                                                   !place_of(c, u->user)->wide)
                return false;
    }
    return true;
}

/* ------------------------------------------------------------------ the loops */

/* The type of a strip of type t; t itself if it is a scalar. */
static const Type *
narrow_type(Strip *c, const Type *t)
{
    int64_t n = c->numel / c->count;
    return type_is_tile(t) ? type_tile(c->s->types, t->elem, 1, &n, c->part) : t;
}

/* The value to keep for v: v before widening casts, which a later loop does again, so
   that fewer bytes are kept. */
static Value *
kept_source(const Strip *c, Value *v)
{
    while (v->op && v->op->noperand == 1 && place_of(c, v->op)->wide &&
           op_is(v->op, T_PURE | T_ELEMENTWISE) &&
           (v->op->kind == OP_FEXT || v->op->kind == OP_SEXT || v->op->kind == OP_ZEXT) &&
           type_bits(op_operand(v->op, 0)->type) >= 8)
        v = op_operand(v->op, 0);
    return v;
}

static Value *in_strip(Strip *c, Builder *b, Value *v, int loop);

/* op, computed for the strip, in loop `loop`. */
static Value *
copy_narrow(Strip *c, Builder *b, const Op *op, int loop)
{
    Value *in[8];
    const Type *types[1] = {op->nresult ? narrow_type(c, op->results[0].type) : NULL};
    for (int i = 0; i < op->noperand; i++)
        in[i] = in_strip(c, b, op_operand(op, i), loop);
    b->loc = op->loc;
    Op *to = build_op(b, op->kind, in, op->noperand, &op->attrs, types, op->nresult);
    if (!op->nresult)
        return NULL;
    Value *v = &to->results[0];
    if (op->kind == OP_ARANGE) {
        const Type *t = type_scalar(c->s->types, type_elem(v->type)->scalar);
        Value *by = build_int(b, t, c->numel / c->count);
        by = build_binary(b, OP_MUL, c->index, by);
        v = build_binary(b, OP_ADD, v, build_splat(b, by, v->type));
    }
    return v;
}

/* The strip of v in loop `loop`, which b builds: computed before, read from its private
   buffer, or computed now. */
static Value *
in_strip(Strip *c, Builder *b, Value *v, int loop)
{
    Value *got = type_is_tile(v->type) ? map_get(&c->narrow, v) : v;
    if (got)
        return got;
    const Place *p = place_of(c, v->op);
    if (p->wide && !p->again && p->loop < loop) {
        Value *from = kept_source(c, v), *at[2] = {map_get(&c->kept, from), c->index};
        const Type *t = narrow_type(c, from->type);
        if (from == v) {
            b->loc = v->op->loc;
            got = op_result(build_op(b, OP_PRIVATE_LOAD, at, 2, NULL, &t, 1), 0);
        }
    }
    got = got ? got : copy_narrow(c, b, v->op, loop);
    map_set(&c->narrow, v, got);
    return got;
}

/* Allocates a private buffer for each value that a later loop reads and does not compute
   again. */
static void
find_kept(Strip *c)
{
    Builder b = builder_before(c->region->first);
    for (int k = 0; k < c->ops.n; k++) {
        const Op *op = c->ops.at[k];
        const Place *p = place_of(c, op);
        for (int i = 0; p->wide && i < op->noperand; i++) {
            Value *v = op_operand(op, i);
            const Place *from = place_of(c, v->op);
            if (!type_is_tile(v->type) || !from->wide || from->again ||
                from->loop == p->loop)
                continue;
            v = kept_source(c, v);
            if (place_of(c, v->op)->again || map_has(&c->kept, v))
                continue;
            int64_t shape[2] = {c->count, c->numel / c->count};
            const Type *t = type_buf(c->s->types, type_elem(v->type), 2, shape);
            b.loc = v->op->loc;
            Op *buf = build_op(&b, OP_PRIVATE_ALLOC, NULL, 0, NULL, &t, 1);
            map_set(&c->kept, v, op_result(buf, 0));
        }
    }
}

/* A reduction that ends a loop: it becomes one of what the loop carries. */
typedef struct Partial {
    Op *reduce;
    const Op *by; /* combines two elements */
    Value *init;  /* neutral elements, of a strip */
} Partial;
typedef Vec(Partial) Partials;

static void
find_partials(Strip *c, Builder *b, int loop, Partials *out)
{
    for (int k = 0; k < c->ops.n; k++) {
        Op *op = c->ops.at[k];
        const Place *p = place_of(c, op);
        if (op->kind != OP_REDUCE || !p->wide || p->loop != loop)
            continue;
        Const n;
        const Type *t = narrow_type(c, op_operand(op, 0)->type);
        Partial sum = {.reduce = op, .by = combines_by(op)};
        b->loc = op->loc;
        neutral(sum.by->kind, t, &n);
        sum.init = n.is_float ? build_float(b, t, n.f) : build_int(b, t, n.i);
        vec_push(&c->s->tmp, out, sum);
    }
}

/* for %i = 0, count, 1 that carries the partial results */
static Op *
build_head(Strip *c, Builder *b, const Partials *sums)
{
    Vec(Value *) inits = {0};
    Value *bound[3];
    const Type *i32 = type_scalar(c->s->types, SK_I32);
    for (int i = 0; i < 3; i++)
        bound[i] = build_int(b, i32, i == 1 ? c->count : i == 2);
    for (int i = 0; i < sums->n; i++)
        vec_push(&c->s->tmp, &inits, sums->at[i].init);
    return build_for(b, bound[0], bound[1], bound[2], inits.at, inits.n);
}

/* The ops of the loop on one strip, and stores of what later loops read. */
static void
build_body(Strip *c, Builder *in, int loop)
{
    for (int k = 0; k < c->ops.n; k++) {
        Op *op = c->ops.at[k];
        const Place *p = place_of(c, op);
        if (!p->wide || p->loop != loop || p->again || op->kind == OP_REDUCE)
            continue;
        Value *v = op->nresult ? in_strip(c, in, &op->results[0], loop)
                               : copy_narrow(c, in, op, loop);
        if (v && map_has(&c->kept, &op->results[0])) {
            Value *to[3] = {map_get(&c->kept, &op->results[0]), v, c->index};
            build_op(in, OP_PRIVATE_STORE, to, 3, NULL, NULL, 0);
        }
    }
}

static void
build_loop(Strip *c, int loop)
{
    Partials sums = {0};
    Vec(Value *) ends = {0};
    Builder b = builder_before(c->region->last);
    find_partials(c, &b, loop, &sums);
    Op *each = build_head(c, &b, &sums);
    Region *body = each->regions[0];
    Builder in = builder_at_end(c->func, body);
    c->index = body->args[0];
    map_init(&c->narrow, &c->s->tmp);
    build_body(c, &in, loop);
    for (int i = 0; i < sums.n; i++) {
        in.loc = sums.at[i].reduce->loc;
        Value *x = in_strip(c, &in, op_operand(sums.at[i].reduce, 0), loop);
        vec_push(&c->s->tmp, &ends,
                 build_binary(&in, sums.at[i].by->kind, body->args[1 + i], x));
    }
    build_yield(&in, ends.at, ends.n);
    for (int i = 0; i < sums.n; i++) { /* reduces a strip of partial results now */
        Op *op = sums.at[i].reduce;
        op_move_before(op, c->region->last);
        op_set_operand(op, 0, &each->results[i]);
    }
}

static void
build_loops(Strip *c)
{
    find_kept(c);
    for (int loop = 0; loop <= c->loops; loop++) {
        for (int k = 0; k < c->ops.n; k++) {
            const Place *p = place_of(c, c->ops.at[k]);
            if (!p->wide && p->loop == loop)
                op_move_before(c->ops.at[k], c->region->last);
        }
        if (loop < c->loops)
            build_loop(c, loop);
    }
    for (int k = c->ops.n - 1; k >= 0; k--)
        if (place_of(c, c->ops.at[k])->wide && c->ops.at[k]->kind != OP_REDUCE)
            op_erase(c->ops.at[k]);
}

static bool
visit(Func *f, Session *s, Region *r, int depth)
{
    bool changed = false;
    region_each(r, op) for (int i = 0; depth < MAX_REGION_DEPTH && i < op->nregion; i++)
        changed |= visit(f, s, op->regions[i], depth + 1);
    Strip c = {.s = s, .func = f, .region = r};
    map_init(&c.kept, &s->tmp);
    if (!find_tile(&c) || !place_ops(&c) || !stays_inside(&c))
        return changed;
    c.reloads = writes_last(&c);
    if (c.reloads && !place_ops(&c))
        return changed;
    build_loops(&c);
    return true;
}

bool
pass_strip_mine(Func *f, PassCx *cx)
{
    return visit(f, cx->s, f->body, 0);
}
