/* Chooses layouts of accesses by what the whole function costs in them.

   layout_anchor.c lays lanes and vectors along memory. That is best for accesses, but a
   sum along an axis that lies across lanes takes shuffles, one across warps a barrier,
   and tiles whose layouts do not agree are exchanged through shared memory. So other
   layouts are tried where such exchanges are a part of the cost that matters: the
   function is copied, gets all of its layouts, and is counted (layout_cost.c). What is
   tried for the accesses of one shape and one contiguous dimension:

     - dimensions wholly inside of threads, so that sums along them need no exchange;
     - lanes along other dimensions, in each order;
     - narrower accesses, so that more lanes lie along the contiguous dimension;
     - where no access is, more neighbours in a thread, so that the first steps of a sort
       need no exchange;
     - warps along the slowest dimension first.

   A layout is taken when it is better by more than the count can be wrong. Functions with
   dots keep theirs: what their loads cost is decided by pipelining. */
#include "passes/layout/layout.h"

#include "ir/base/util.h"

enum {
    MOST_TRIALS = 64,
    MOST_OPS = 40000, /* that all trials may copy: some ten milliseconds */
    PART = 8,         /* a gain that is less than 1 / PART of the cost is none */
    MOST_WAYS = 96
};

typedef struct Search {
    Func *f;
    PassCx *cx;
    Ways ways; /* chosen so far */
    int64_t cost;
    bool exchanges; /* they are a part of it that matters */
    int left;       /* trials */
    Vec(Choice) choices; /* of the function in those ways */
} Search;

const Layout *
layout_chosen(const Layouts *p, const Choice *c)
{
    for (int i = 0; i < p->ways.n; i++)
        if (p->ways.at[i].dim == c->dim && type_same_shape(p->ways.at[i].shape, c->shape))
            return p->ways.at[i].layout;
    return NULL;
}

/* ---- a trial */

static Region *
copy_body(const Func *f, Func *copy)
{
    Map map;
    map_init(&map, &f->module->s->tmp);
    Region *r = region_new(copy, NULL);
    for (int i = 0; i < f->body->narg; i++)
        map_set(&map, f->body->args[i],
                region_arg(r, f->body->args[i]->type, f->body->args[i]->name));
    Builder b = builder_at_end(copy, r);
    region_each(f->body, op) op_clone(&b, op, &map);
    return r;
}

/* Places layouts in a copy of the function and counts. `keep`: s->choices become those of
   this trial. */
static int64_t
trial(Search *s, const Ways *ways, bool keep)
{
    static const PassId clean[] = {PASS_cse, PASS_dce, PASS_licm, PASS_dce};
    Session *session = s->cx->s;
    ArenaMark mod = arena_mark(&session->mod), tmp = arena_mark(&session->tmp);
    Func copy = *s->f;
    copy.body = copy_body(s->f, &copy);
    Layouts p = {.s = session, .f = &copy, .target = &s->cx->target, .ways = *ways};
    layout_place(&p);
    for (int i = 0; i < COUNT_OF(clean); i++)
        pass_info[clean[i]].run(&copy, s->cx);
    LayoutCost cost = layout_cost(&p, copy.body);
    if (keep) {
        s->choices.n = 0;
        for (int i = 0; i < p.choices.n; i++)
            vec_push(&session->tmp, &s->choices, p.choices.at[i]);
        s->exchanges = cost.exchanges > cost.slots / PART;
    }
    arena_reset(&session->mod, mod);
    if (!keep)
        arena_reset(&session->tmp, tmp);
    s->left--;
    return layout_time(&cost);
}

/* ---- what is tried */

typedef struct Tried {
    int n;
    const Layout *at[MOST_WAYS];
} Tried;

/* Do both give each thread the same elements, perhaps in other registers? */
static bool
same_threads(const Layout *a, const Layout *b)
{
    for (int d = LD_LANE; d <= LD_WARP; d++)
        for (int i = 0; i < a->nbasis[d]; i++)
            if (a->basis[d][i] != b->basis[d][i])
                return false;
    return true;
}

static void
add(Tried *t, const Layout *l)
{
    for (int i = 0; i < t->n; i++)
        if (same_threads(t->at[i], l))
            return;
    if (t->n < MOST_WAYS)
        t->at[t->n++] = l;
}

/* Adds the layout with size[d] elements of a thread along d, lanes in `order`, and warps
   in it or from its end. */
static void
add_spread(Search *s, Tried *t, const Type *type, const int *size, const int *order,
           bool warps_last)
{
    int lanes[MAX_RANK], warps[MAX_RANK], lane = 32, warp = s->f->num_warps;
    int64_t left[MAX_RANK];
    for (int d = 0; d < type->rank; d++) {
        left[d] = type->shape[d] / size[d];
        lanes[d] = warps[d] = 1;
    }
    for (int i = 0; i < type->rank; i++) {
        int d = order[i];
        lanes[d] = (int)min_i64(lane, left[d]);
        left[d] /= lanes[d];
        lane /= lanes[d];
    }
    for (int i = 0; i < type->rank; i++) {
        int d = order[warps_last ? type->rank - 1 - i : i];
        warps[d] = (int)min_i64(warp, left[d]);
        warp /= warps[d];
    }
    lanes[order[type->rank - 1]] *= lane;
    warps[order[type->rank - 1]] *= warp;
    add(t, layout_blocked(s->cx->s, type->rank, type->shape, size, lanes, warps, order));
}

/* With the dimensions of `inside` wholly in threads, if that is not too much, and the
   others in `order`, with `vec` elements along the first. */
static void
add_inside(Search *s, Tried *t, const Choice *c, uint32_t inside, const int *order,
           int vec)
{
    enum { MOST_INSIDE = 64 };
    const Type *type = c->shape;
    int size[MAX_RANK], n = 0, lanes[MAX_RANK];
    int64_t each = 1;
    for (int pass = 1; pass >= 0; pass--)
        for (int i = 0; i < type->rank; i++) {
            int d = order[i];
            if ((int)(inside >> d & 1) != pass)
                continue;
            bool first = !pass && n == __builtin_popcount(inside);
            size[d] = pass ? (int)type->shape[d]
                      : first ? (int)min_i64(vec, type->shape[d]) : 1;
            each *= size[d];
            lanes[n++] = d;
        }
    if (each > MOST_INSIDE || each * 32 * s->f->num_warps > type_numel(type))
        return;
    add_spread(s, t, type, size, lanes, false);
    add_spread(s, t, type, size, lanes, true);
}

/* The next permutation of order[0 .. n - 1] in lexical order; false after the last. */
static bool
next_order(int *order, int n)
{
    int i = n - 2, k = n - 1;
    while (i >= 0 && order[i] >= order[i + 1])
        i--;
    if (i < 0)
        return false;
    while (order[k] <= order[i])
        k--;
    int x = order[i];
    order[i] = order[k];
    order[k] = x;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        x = order[a];
        order[a] = order[b];
        order[b] = x;
    }
    return true;
}

static void
collect_ways(Search *s, const Choice *c, Tried *t)
{
    enum { MOST_WIDE = 3, MOST_RUN = 16 };
    int first[MAX_RANK], at[MAX_RANK], order[MAX_RANK], n = 0, rank = c->shape->rank;
    if (rank < 2 || rank > MOST_WIDE)
        return;
    if (c->dim >= 0)
        first[n++] = c->dim;
    for (int d = rank - 1; d >= 0; d--)
        if (d != c->dim)
            first[n++] = d;
    for (int i = 0; i < rank; i++)
        at[i] = i;
    do {
        for (int i = 0; i < rank; i++)
            order[i] = first[at[i]];
        int most = c->dim < 0 ? MOST_RUN : order[0] == c->dim ? c->vec : 1;
        for (uint32_t inside = 0; inside < 1u << rank; inside++)
            for (int vec = most; vec >= 1; vec /= 2)
                add_inside(s, t, c, inside, order, vec);
    } while (next_order(at, rank));
}

/* ---- the search */

static void
try_choice(Search *s, const Choice *c)
{
    Tried t = {0};
    if (!c->layout[FOR_DATA] || layout_chosen(&(Layouts){.ways = s->ways}, c))
        return;
    add(&t, c->layout[FOR_DATA]);
    collect_ways(s, c, &t);
    const Layout *best = NULL;
    int64_t least = s->cost;
    for (int i = 1; i < t.n && s->left > 0; i++) {
        Ways ways = s->ways;
        vec_push(&s->cx->s->tmp, &ways, ((Way){c->shape, c->dim, t.at[i]}));
        int64_t cost = trial(s, &ways, false);
        if (cost < least) {
            least = cost;
            best = t.at[i];
        }
    }
    if (!best || s->cost - least <= s->cost / PART)
        return;
    vec_push(&s->cx->s->tmp, &s->ways, ((Way){c->shape, c->dim, best}));
    s->cost = least;
}

/* Is there a tile of several dimensions whose layout matters? */
static bool
is_worth(const Func *f, int *ops)
{
    bool moves = false;
    region_each_deep(f->body, op)
    {
        if (op_is(op, T_DOT))
            return false;
        moves |= (layout_is_access(op) || op->kind == OP_REDUCE || op->kind == OP_SCAN) &&
                 op_operand(op, 0)->type->rank > 1;
        ++*ops;
    }
    return moves;
}

Ways
layout_choose(Func *f, PassCx *cx)
{
    int ops = 1;
    Search s = {.f = f, .cx = cx};
    if (!is_worth(f, &ops))
        return s.ways;
    s.left = (int)min_i64(MOST_TRIALS, MOST_OPS / ops);
    if (s.left < 2)
        return s.ways;
    s.cost = trial(&s, &s.ways, true);
    if (!s.exchanges)
        return s.ways;
    for (int i = 0; i < s.choices.n; i++)
        try_choice(&s, &s.choices.at[i]);
    return s.ways;
}
