/* Tile IR to cpu form.

   The function is rebuilt. Scalar operations are copied. The plan (simd_plan.c) has put
   tile operations into groups; each group becomes loops over strips, at the place of its
   last member, where all that it reads is there. Loops and conditions carry scalars as
   before. Tiles that they carry live in buffers, since a strip ends with its loop.

       %c = addf %a, %b : tile<1024xf32>        for %i = 0, 1024, 32 {
       store %p, %c                         =>    %x = vload ..; %y = vload ..
                                                  vstore .., addf %x, %y } */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"
#include "ir/edit.h"
#include "ir/fold.h"

static void lower_region(Simd *n, Region *r, Builder *b, int nesting);

static Value *
scalar(Simd *n, const Value *v)
{
    Value *got = map_get(&n->map, v);
    if (!got)
        bug(&n->s->fail, "scalar %%%u has no value yet", (unsigned)v->id);
    return got;
}

static void
unless_it_runs(Simd *n, Builder *b, Group *g)
{
    Value *lo = scalar(n, op_operand(g->unless, 0));
    Value *none = build_cmp(b, OP_CMPI, "sge", lo, scalar(n, op_operand(g->unless, 1)));
    Op *branch = build_if(b, none, NULL, 0);
    for (int i = 0; i < 2; i++) {
        Builder arm = builder_at_end(n->f, branch->regions[i]);
        if (i == 0)
            simd_group(n, &arm, g);
        build_yield(&arm, NULL, 0);
    }
}

static void
lower_groups(Simd *n, Builder *b, Op *op)
{
    OpPlan *p = op_plan(n, op);
    for (int i = p->groups.n - 1; i >= 0; i--) {
        Group *g = p->groups.at[i];
        simd_fetch_scalars(n, b, g);
        if (g->unless)
            unless_it_runs(n, b, g);
        else
            simd_group(n, b, g);
    }
}

static void
clone_scalar(Simd *n, Builder *b, Op *op)
{
    if (op->nresult == 1 && map_get(&n->map, op_result(op, 0)))
        return; /* a loop of strips above needed it, and has made it */
    b->loc = op->loc;
    op_clone(b, op, &n->map);
}

/* ---- loops over the elements of a buffer, by scalars */

static Op *
count_loop(Simd *n, Builder *b, int64_t lo, int64_t hi, Value *const *inits, int k)
{
    return build_for(b, simd_int(b, n->i64, lo), simd_int(b, n->i64, hi),
                     simd_int(b, n->i64, 1), inits, k);
}

static Value *
element(Simd *n, Builder *b, Slot *s, const Ix *ix)
{
    Cx cx;
    cx_init(&cx, n, *b, 1);
    return simd_slot_load(&cx, s, slot_find(s)->type->elem, ix).v;
}

static void
set_element(Simd *n, Builder *b, Slot *s, int rank, const Ix *ix, Value *v)
{
    Cx cx;
    cx_init(&cx, n, *b, 1);
    simd_slot_store(&cx, s, rank, ix, (Ev){.kind = EV_UNI, .v = v});
}

static void
lower_histogram(Simd *n, Builder *b, Op *op)
{
    OpPlan *p = op_plan(n, op);
    Slot *out = plan_get(n, op_result(op, 0))->slot;
    int64_t bins = op_result(op, 0)->type->shape[0];
    int64_t size = op_operand(op, 0)->type->shape[0];
    const Type *e = type_elem(op_result(op, 0)->type);
    Op *clear = count_loop(n, b, 0, bins, NULL, 0);
    Builder in = builder_at_end(n->f, clear->regions[0]);
    Ix ix = {IX_UNI, 0, clear->regions[0]->args[0]};
    set_element(n, &in, out, 1, &ix, build_int(&in, e, 0));
    build_yield(&in, NULL, 0);
    Op *loop = count_loop(n, b, 0, size, NULL, 0);
    in = builder_at_end(n->f, loop->regions[0]);
    ix.v = loop->regions[0]->args[0];
    Value *v = element(n, &in, p->operand[0], &ix);
    if (type_bits(v->type) < 64)
        v = build_cast(&in, OP_SEXT, v, n->i64);
    Value *ok = build_cmp(&in, OP_CMPI, "ult", v, simd_int(&in, n->i64, bins));
    if (op->noperand > 1)
        ok = build_binary(&in, OP_AND, ok, element(n, &in, p->operand[1], &ix));
    Op *branch = build_if(&in, ok, NULL, 0);
    Builder arm = builder_at_end(n->f, branch->regions[0]);
    ix.v = v;
    Value *count = element(n, &arm, out, &ix);
    count = build_binary(&arm, OP_ADD, count, build_int(&arm, e, 1));
    set_element(n, &arm, out, 1, &ix, count);
    build_yield(&arm, NULL, 0);
    arm = builder_at_end(n->f, branch->regions[1]);
    build_yield(&arm, NULL, 0);
    build_yield(&in, NULL, 0);
}

/* ---- dot */

static bool
swaps_last(const Op *op)
{
    const Attr *perm = attr_find(&op->attrs, ATTR_PERM);
    int r = op_operand(op, 0)->type->rank;
    for (int i = 0; i < r - 2; i++)
        if (perm->v.ints[i] != i)
            return false;
    return r >= 2 && perm->v.ints[r - 1] == r - 2;
}

/* The buffer that holds v with elements of the type of `of`, or NULL. The buffer that the
   dot writes its results to is none: an operand must not change meanwhile. */
static Slot *
slot_of(Simd *n, const Value *v, const Slot *of, Op *dot)
{
    const Plan *p = plan_get(n, v);
    Slot *sums = slot_find(plan_get(n, op_result(dot, 0))->slot);
    bool fits = p->slot && slot_find(p->slot)->type->elem == of->type->elem;
    return fits && slot_find(p->slot) != sums ? slot_find(p->slot) : NULL;
}

/* The buffer for a copy of an operand. Its order is that of the memory that the operand
   comes from, so that neither loads nor stores have to gather. */
static Slot *
copied(Simd *n, Group *pack, bool *transposed)
{
    Root *r = &pack->items.at[0];
    int rank = pack->shape->rank;
    int64_t shape[MAX_RANK];
    for (int i = 0; i < pack->items.n; i++)
        r = pack->items.at[i].kind == ROOT_COPY ? &pack->items.at[i] : r;
    *transposed = simd_lane_dim(n, pack) == rank - 2;
    if (*transposed) {
        for (int d = 0; d < rank; d++)
            shape[d] = pack->shape->shape[d];
        shape[rank - 1] = pack->shape->shape[rank - 2];
        shape[rank - 2] = pack->shape->shape[rank - 1];
        const Type *elem = r->dst->type->elem;
        r->transposed = true;
        r->dst = arena_new(n->tmp, Slot);
        r->dst->type = type_buf(n->tt, elem, rank, shape);
    }
    return r->dst;
}

/* The buffer that operand i is in already, as it is or transposed; else NULL. */
static Slot *
kept(Simd *n, Op *op, int i, bool *transposed)
{
    OpPlan *p = op_plan(n, op);
    Value *v = op_operand(op, i);
    const Op *trans = value_def(v, OP_TRANS);
    Slot *there = slot_of(n, v, p->operand[i], op);
    *transposed = false;
    if (!there && trans && swaps_last(trans)) {
        there = slot_of(n, op_operand(trans, 0), p->operand[i], op);
        *transposed = there != NULL;
    }
    return there;
}

/* A buffer of operand i: the one that it is in, or a copy of its own. */
static Slot *
packed(Simd *n, Builder *b, Op *op, int i, bool *transposed)
{
    Group *pack = op_plan(n, op)->pack[i];
    Slot *there = kept(n, op, i, transposed);
    if (there)
        return there;
    there = copied(n, pack, transposed);
    simd_group(n, b, pack);
    return there;
}

/* Operand i of buf_dot: a buffer, or memory. */
static Value *
operand(Simd *n, Builder *b, Op *op, int i, bool *transposed)
{
    Group *pack = op_plan(n, op)->pack[i];
    Slot *there = kept(n, op, i, transposed);
    if (there)
        return simd_buffer(n, there);
    there = copied(n, pack, transposed);
    b->loc = op->loc;
    Value *view = simd_view(n, b, pack, op_operand(op, i), *transposed, there);
    if (view)
        return view;
    simd_group(n, b, pack);
    return simd_buffer(n, there);
}

/* i1: the sums are 0, whatever is in their buffer. NULL: never. */
static Value *
sums_are_zero(Simd *n, Builder *b, const OpPlan *p)
{
    const Op *loop = p->zero_first;
    if (loop)
        return build_cmp(b, OP_CMPI, "eq", scalar(n, loop->regions[0]->args[0]),
                         scalar(n, op_operand(loop, 0)));
    return p->pack[2] ? NULL : build_int(b, n->i1, 1);
}

/* What a dot is given besides its second operand. */
typedef struct Given {
    Slot *a;         /* the first one, or */
    Value *of_a;     /* as buf_dot takes it; both NULL: it is loaded where it is used */
    bool transposed; /* it */
    Value *zero;    /* see sums_are_zero */
    Value *live[2]; /* see simd_live, or NULLs */
    int64_t rounds; /* see simd_at_once */
    Value *last;    /* if there is more than one: i1 */
} Given;

/* Room for what is kept from one iteration to the next. */
static Value *
kept_buffer(Simd *n, const Op *op, int64_t rounds)
{
    int64_t bytes = simd_kept_bytes(op, rounds);
    Slot *s = arena_new(n->tmp, Slot);
    s->type = type_buf(n->tt, type_scalar(n->tt, SK_I8), 1, &bytes);
    return simd_buffer(n, s);
}

static void
dot_of_buffers(Simd *n, Builder *b, Op *op, const Given *d)
{
    const Type *t = op_result(op, 0)->type;
    Value *live[2] = {d->live[0], d->live[1]}, *zero = d->zero;
    bool keeps = d->rounds > 1;
    bool transposed[2] = {d->transposed};
    Value *of_a = d->of_a ? d->of_a : operand(n, b, op, 0, &transposed[0]);
    Value *of_b = operand(n, b, op, 1, &transposed[1]);
    b->loc = op->loc;
    for (int i = 0; i < 2 && keeps && !d->live[0]; i++)
        live[i] = simd_int(b, n->i64, t->shape[i]);
    if (live[0] && !zero)
        zero = build_int(b, n->i1, 0);
    Value *sums = simd_buffer(n, plan_get(n, op_result(op, 0))->slot);
    Value *in[] = {of_a, of_b, sums, zero, live[0], live[1], d->last,
                   keeps ? kept_buffer(n, op, d->rounds) : NULL};
    int64_t which[2];
    AttrList l = {0};
    int k = 0;
    for (int i = 0; i < 2; i++)
        if (transposed[i])
            which[k++] = i;
    if (k)
        attr_set_ints(&n->s->mod, &l, ATTR_TRANSPOSED, which, k);
    if (keeps)
        attr_set_int(&n->s->mod, &l, ATTR_AT_ONCE, d->rounds);
    build_op(b, OP_BUF_DOT, in, keeps ? 8 : live[0] ? 6 : zero ? 4 : 3, &l, NULL, 0);
}

static void
rows_of(Simd *n, Builder *b, Op *op, const Given *d, int64_t rows)
{
    bool transposed = d->transposed;
    Slot *a = d->a ? d->a : packed(n, b, op, 0, &transposed);
    simd_rows(n, b, op, a, transposed, d->zero, rows);
}

/* The first operand in front of what changes the sums, which it may be computed from. */
static void
first_operand(Simd *n, Builder *b, Op *op, bool by_rows, Given *d)
{
    if (by_rows && simd_may_view(n, op_operand(op, 0)))
        return;
    d->a = by_rows ? packed(n, b, op, 0, &d->transposed) : NULL;
    d->of_a = d->a ? simd_buffer(n, d->a) : operand(n, b, op, 0, &d->transposed);
}

static void
lower_dot(Simd *n, Builder *b, Op *op)
{
    OpPlan *p = op_plan(n, op);
    bool few = simd_has_few_rows(n, op), one_row = simd_may_have_one_row(n, op);
    Given d = {.rounds = few ? 1 : simd_at_once(n, op)};
    first_operand(n, b, op, few || one_row, &d);
    if (p->pack[2])
        simd_group(n, b, p->pack[2]);
    b->loc = op->loc;
    d.zero = sums_are_zero(n, b, p);
    d.last = d.rounds > 1 ? simd_last_round(b) : NULL;
    if (few) {
        rows_of(n, b, op, &d, op_result(op, 0)->type->shape[0]);
        return;
    }
    Const all;
    if (!simd_live(n, b, op, &d.live[0], &d.live[1]) || value_const(d.live[0], &all) ||
        !one_row) {
        dot_of_buffers(n, b, op, &d);
        return;
    }
    Value *one = build_cmp(b, OP_CMPI, "sle", d.live[0], simd_int(b, n->i64, 1));
    Op *branch = build_if(b, one, NULL, 0);
    for (int i = 0; i < 2; i++) {
        Builder arm = builder_at_end(n->f, branch->regions[i]);
        arm.loc = op->loc;
        if (i == 0)
            rows_of(n, &arm, op, &d, 1);
        else
            dot_of_buffers(n, &arm, op, &d);
        build_yield(&arm, NULL, 0);
    }
}

static void
lower_topk(Simd *n, Builder *b, Op *op)
{
    Value *in[] = {simd_buffer(n, op_plan(n, op)->operand[0]),
                   simd_buffer(n, plan_get(n, op_result(op, 0))->slot)};
    b->loc = op->loc;
    build_op(b, OP_BUF_TOPK, in, 2, &op->attrs, NULL, 0);
}

/* ---- structured ops */

/* The scalars among the operands of a terminator or the initial values of a loop. */
static int
scalars_of(Simd *n, Op *op, int first, Value **out)
{
    int k = 0;
    for (int i = first; i < op->noperand; i++)
        if (!simd_tile(op_operand(op, i)))
            out[k++] = scalar(n, op_operand(op, i));
    return k;
}

static void
map_args(Simd *n, Region *old, Region *now, int first)
{
    int k = first;
    for (int i = first; i < old->narg; i++)
        if (!simd_tile(old->args[i]))
            map_set(&n->map, old->args[i], now->args[k++]);
}

static void
map_results(Simd *n, Op *old, Op *now)
{
    int k = 0;
    for (int i = 0; i < old->nresult; i++)
        if (!simd_tile(op_result(old, i)))
            map_set(&n->map, op_result(old, i), op_result(now, k++));
}

static int
scalar_types(Simd *n, Op *op, const Type **types)
{
    int k = 0;
    (void)n;
    for (int i = 0; i < op->nresult; i++)
        if (!simd_tile(op_result(op, i)))
            types[k++] = op_result(op, i)->type;
    return k;
}

static void lower_loop_end(Simd *n, Builder *b, Op *loop, Op *yield);

static void
lower_for(Simd *n, Builder *b, Op *op, int nesting)
{
    Group *rows = simd_by_rows(n, op);
    if (rows) {
        rows->around = op;
        simd_group(n, b, rows);
        lower_loop_end(n, b, op, op->regions[0]->last);
        return;
    }
    Value **inits = arena_array(n->tmp, Value *, op->noperand);
    int k = scalars_of(n, op, 3, inits);
    b->loc = op->loc;
    Op *loop = build_for(b, scalar(n, op_operand(op, 0)), scalar(n, op_operand(op, 1)),
                         scalar(n, op_operand(op, 2)), inits, k);
    loop->regions[0]->args[0]->name = op->regions[0]->args[0]->name;
    map_set(&n->map, op->regions[0]->args[0], loop->regions[0]->args[0]);
    map_args(n, op->regions[0], loop->regions[0], 1);
    Builder in = builder_at_end(n->f, loop->regions[0]);
    lower_region(n, op->regions[0], &in, nesting + 1);
    map_results(n, op, loop);
}

static void
lower_if(Simd *n, Builder *b, Op *op, int nesting)
{
    const Type **types = arena_array(n->tmp, const Type *, op->nresult + 1);
    int k = scalar_types(n, op, types);
    b->loc = op->loc;
    Op *branch = build_if(b, scalar(n, op_operand(op, 0)), types, k);
    for (int i = 0; i < 2; i++) {
        Builder in = builder_at_end(n->f, branch->regions[i]);
        lower_region(n, op->regions[i], &in, nesting + 1);
    }
    map_results(n, op, branch);
}

static void
lower_while(Simd *n, Builder *b, Op *op, int nesting)
{
    const Type **types = arena_array(n->tmp, const Type *, op->nresult + 1);
    Value **inits = arena_array(n->tmp, Value *, op->noperand + 1);
    int k = scalar_types(n, op, types), ni = scalars_of(n, op, 0, inits);
    b->loc = op->loc;
    Op *loop = build_op(b, OP_WHILE, inits, ni, NULL, types, k);
    for (int i = 0; i < 2; i++) {
        Region *r = region_new(n->f, loop), *old = op->regions[i];
        for (int a = 0; a < old->narg; a++)
            if (!simd_tile(old->args[a]))
                region_arg(r, old->args[a]->type, old->args[a]->name);
        map_args(n, old, r, 0);
        Builder in = builder_at_end(n->f, r);
        lower_region(n, old, &in, nesting + 1);
    }
    map_results(n, op, loop);
}

/* At the end of an iteration, may the loops over strips that compute the new value of
   carried buffer i write it in place? Not if other loops there still read the old value,
   or if these read it at other indices than they write. */
static bool
overwrites_safely(Simd *n, Op *loop, Op *yield, int i, const Group *writer)
{
    Plan *p = plan_get(n, loop->regions[0]->args[i + 1]);
    for (int k = 0; k < p->nd; k++) {
        const Demand *d = &p->d[k];
        if (d->g->at == yield && (d->g != writer || d->shifted))
            return false;
    }
    return !p->many;
}

/* Writes that are not safe go to a temporary buffer, which is copied over the carried one
   when all loops of the iteration have run. */
static void
lower_loop_end(Simd *n, Builder *b, Op *loop, Op *yield)
{
    OpPlan *p = op_plan(n, yield), *lp = op_plan(n, loop);
    Slot **temp = arena_array(n->tmp, Slot *, loop->nresult + 1);
    for (int g = 0; g < p->groups.n; g++) {
        Group *group = p->groups.at[g];
        for (int k = 0; k < group->items.n; k++) {
            Root *r = &group->items.at[k];
            for (int i = 0; r->kind == ROOT_COPY && i < loop->nresult; i++) {
                if (r->dst != lp->carry[i] || !lp->carry[i] ||
                    plan_get(n, r->v)->slot == lp->carry[i] ||
                    overwrites_safely(n, loop, yield, i, group))
                    continue;
                const Type *t = lp->carry[i]->type;
                temp[i] = slot_new(n, t->elem, t);
                r->dst = temp[i];
                break;
            }
        }
    }
    lower_groups(n, b, yield);
    for (int i = 0; i < loop->nresult; i++)
        if (temp[i])
            simd_copy(n, b, temp[i], lp->carry[i]);
}

static void
lower_terminator(Simd *n, Builder *b, Op *op)
{
    Op *up = op->parent->parent;
    if (op->kind == OP_YIELD && up && up->kind == OP_FOR)
        lower_loop_end(n, b, up, op);
    else
        lower_groups(n, b, op);
    Value **vals = arena_array(n->tmp, Value *, op->noperand + 1);
    int k = scalars_of(n, op, 0, vals);
    b->loc = op->loc;
    build_op(b, op->kind, vals, k, NULL, NULL, 0);
}

static bool
is_scalar_op(Op *op)
{
    for (int i = 0; i < op->noperand; i++)
        if (simd_tile(op_operand(op, i)))
            return false;
    for (int i = 0; i < op->nresult; i++)
        if (simd_tile(op_result(op, i)))
            return false;
    return true;
}

static void
assert_scalar(Simd *n, Builder *b, Op *op)
{
    Cx cx;
    b->loc = op->loc;
    cx_init(&cx, n, *b, 1);
    simd_assert(&cx, op, NULL);
}

static void
check_scalar(Simd *n, Builder *b, Op *op)
{
    int m = op->kind == OP_LOAD ? 1 : 2;
    Value *in[3] = {NULL};
    Cx cx;
    if (!n->f->check || (op->kind != OP_LOAD && op->kind != OP_STORE &&
                         op->kind != OP_ATOMIC_RMW && op->kind != OP_ATOMIC_CAS))
        return;
    for (int i = 0; i < op->noperand && i < COUNT_OF(in); i++)
        in[i] = scalar(n, op_operand(op, i));
    b->loc = op->loc;
    cx_init(&cx, n, *b, 1);
    bool masked = op->kind != OP_ATOMIC_CAS && op->noperand > m;
    simd_check(&cx, op, in[0], masked ? in[m] : NULL, in[1], 1, NULL);
}

static void
lower_op(Simd *n, Builder *b, Op *op, int nesting)
{
    if (op_is(op, T_TERMINATOR)) {
        lower_terminator(n, b, op);
        return;
    }
    lower_groups(n, b, op);
    switch ((int)op->kind) {
    case OP_FOR: lower_for(n, b, op, nesting); return;
    case OP_IF: lower_if(n, b, op, nesting); return;
    case OP_WHILE: lower_while(n, b, op, nesting); return;
    case OP_DOT: lower_dot(n, b, op); return;
    case OP_PRINT: simd_prints(n, b, op); return;
    case OP_SCAN: simd_scan(n, b, op); return;
    case OP_HISTOGRAM: lower_histogram(n, b, op); return;
    case OP_TOPK: lower_topk(n, b, op); return;
    case OP_BARRIER:
    case OP_GRID_WAIT: /* launches do not overlap, and a program has one thread */
    case OP_LAUNCH_DEPENDENTS:
    case OP_ASSUME: return; /* analyses have used it by now */
    default: break;
    }
    if (op->kind == OP_REDUCE)
        return;
    if (op->nregion) {
        diag_error(&n->s->diag, op->loc, "not supported yet: '%s' on target cpu",
                   op_info[op->kind].name);
        return;
    }
    if (!is_scalar_op(op))
        return;
    if (op->kind == OP_ASSERT) {
        assert_scalar(n, b, op);
        return;
    }
    check_scalar(n, b, op);
    clone_scalar(n, b, op);
}

static void
lower_region(Simd *n, Region *r, Builder *b, int nesting)
{
    if (nesting > MAX_REGION_DEPTH)
        fail_jump(&n->s->fail, FAIL_LIMIT, "control flow nested deeper than %d levels",
                  MAX_REGION_DEPTH);
    for (Op *op = r->first; op && diag_ok(&n->s->diag); op = op->next)
        lower_op(n, b, op, nesting);
}

bool
pass_lower_cpu(Func *f, PassCx *cx)
{
    Session *s = cx->s;
    Simd n = {.s = s, .tt = s->types, .f = f, .tmp = &s->tmp};
    n.i1 = type_scalar(s->types, SK_I1);
    n.i32 = type_scalar(s->types, SK_I32);
    n.i64 = type_scalar(s->types, SK_I64);
    map_init(&n.plans, n.tmp);
    map_init(&n.ops, n.tmp);
    map_init(&n.map, n.tmp);
    n.vector_bytes = cx->target.vector_bytes;
    simd_row_sums(&n, f->body, 0);
    simd_sums(&n);
    n.axis = axis_new(f, n.tmp);
    simd_plan(&n);
    Region *body = region_new(f, NULL), *old = f->body;
    for (int i = 0; i < old->narg; i++)
        map_set(&n.map, old->args[i],
                region_arg(body, old->args[i]->type, old->args[i]->name));
    Builder b = builder_at_end(f, body);
    n.entry = build_int(&b, n.i64, 0)->op;
    lower_region(&n, old, &b, 0);
    if (!diag_ok(&s->diag))
        return true;
    op_erase(n.entry);
    f->body = body;
    return true;
}
