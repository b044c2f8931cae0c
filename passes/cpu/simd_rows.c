/* A dot of one or two rows. Each element of b is multiplied once or twice, so a packed
   copy of b, as other dots have, would cost more than the dot itself. Instead b is
   multiplied as it is loaded, row by row, and each strip is added to a strip of the
   accumulator.

       %c = dot %a, %b, %c                  for %k = 0, K, 1 { for %n = 0, N, 64 {
                                       =>     %s = vload .. ; %x = buf_load %c[0, %n]
                                              buf_store fma (%a[0, %k], %s, %x), .. } }

   A few rows of b go beside each other: memory delivers several streams faster than one,
   and a strip of the accumulator is read and written once for all of them.

   Decoders multiply tiles of 16 rows of which they store one. How many rows are stored is
   known when the kernel runs, so for tiles of up to 16 rows there is code for one row and
   code for all, and a branch.

   If the elements of b that lie side by side in memory belong to one column, a strip is
   part of a column. Such a dot of one row becomes an ordinary reduction along k:

       %s = reduce(addf) (mulf %b, broadcast %a) {axis=0};  %c = addf %c, %s */
#include "passes/cpu/simd.h"

#include "ir/edit.h"

/* Rows of the dot: without a branch, and with one. BESIDE: rows of b. */
enum { MOST_ROWS = 2, MOST_TILE = 16, BESIDE = 4 };

static const Value *
uncast(const Value *v)
{
    while (v->op && (v->op->kind == OP_FEXT || v->op->kind == OP_FTRUNC))
        v = op_operand(v->op, 0);
    return v;
}

/* Is it a dot of one row by a b that is loaded for it alone, column by column? */
static bool
is_row_by_columns(Simd *n, Op *dot)
{
    const Type *t = op_result(dot, 0)->type;
    const Value *b = op_operand(dot, 1), *from = uncast(b);
    if (t->rank != 2 || t->shape[0] != 1 || t->shape[1] < 2 || n->f->check ||
        !scalar_is_float(t->elem->scalar) || b->type->shape[0] < 16)
        return false;
    if (!value_def(from, OP_LOAD) || !value_only_user(from) || !value_only_user(b))
        return false;
    const Value *p = op_operand(from->op, 0);
    return simd_runs_along(n, p, 0) && !simd_runs_along(n, p, 1);
}

static Value *
widened(Builder *b, Value *v, const Type *elem)
{
    return type_elem(v->type) == elem ? v : build_cast(b, OP_FEXT, v, elem);
}

static void
sum_up(Simd *n, Op *dot)
{
    const Type *t = op_result(dot, 0)->type, *e = type_elem(t);
    Builder b = builder_before(dot);
    b.loc = dot->loc;
    static const int64_t swap[] = {1, 0};
    Value *y = widened(&b, op_operand(dot, 1), e);
    Value *x = build_trans(&b, widened(&b, op_operand(dot, 0), e), swap);
    x = build_binary(&b, OP_MULF, y, build_broadcast(&b, x, y->type->shape));
    AttrList l = {0};
    attr_set_int(&n->s->mod, &l, ATTR_AXIS, 0);
    Op *sum = build_op(&b, OP_REDUCE, &x, 1, &l, NULL, 1);
    Region *r = region_new(n->f, sum);
    Value *in[2] = {region_arg(r, e, NULL), region_arg(r, e, NULL)};
    Builder body = builder_at_end(n->f, r);
    Value *both = build_binary(&body, OP_ADDF, in[0], in[1]);
    build_yield(&body, &both, 1);
    Value *c = build_expand_dims(&b, op_result(sum, 0), 0);
    if (!simd_zero(op_operand(dot, 2)))
        c = build_binary(&b, OP_ADDF, op_operand(dot, 2), c);
    value_replace(op_result(dot, 0), c);
    op_erase(dot);
}

void
simd_row_sums(Simd *n, Region *r, int nesting)
{
    if (nesting > MAX_REGION_DEPTH)
        return;
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        for (int i = 0; i < op->nregion; i++)
            simd_row_sums(n, op->regions[i], nesting + 1);
        if (op->kind == OP_DOT && is_row_by_columns(n, op))
            sum_up(n, op);
    }
}

/* Is v computed strip by strip from memory and indices alone? A value that is kept in a
   buffer may depend on the accumulator, which changes while b is read. */
static bool
streams(Simd *n, const Value *v)
{
    while (v->op && (v->op->kind == OP_FEXT || v->op->kind == OP_FTRUNC) &&
           !plan_get(n, v)->slot)
        v = op_operand(v->op, 0);
    if (!v->op || v->op->kind != OP_LOAD || plan_get(n, v)->slot)
        return false;
    for (int i = 0; i < v->op->noperand; i++)
        if (simd_tile(op_operand(v->op, i)) && !plan_get(n, op_operand(v->op, i))->index)
            return false;
    return true;
}

static bool
goes_by_rows(Simd *n, Op *dot, int most)
{
    const Type *t = op_result(dot, 0)->type;
    bool is_float = scalar_is_float(t->elem->scalar);
    return t->rank == 2 && t->shape[0] <= most && t->shape[1] > 1 && is_float &&
           !n->f->check && streams(n, op_operand(dot, 1)) &&
           simd_lane_dim(n, op_plan(n, dot)->pack[1]) == 1;
}

bool
simd_has_few_rows(Simd *n, Op *dot)
{
    return goes_by_rows(n, dot, MOST_ROWS);
}

bool
simd_may_have_one_row(Simd *n, Op *dot)
{
    return goes_by_rows(n, dot, MOST_TILE);
}

static void
fill(Simd *n, Builder *b, Op *dot, Slot *sums, Value *zeros)
{
    const Type *t = op_result(dot, 0)->type;
    Group g = {.at = dot, .region = dot->parent, .shape = t, .axis = -1, .closed = true};
    Root r = {.kind = ROOT_COPY, .op = dot, .v = zeros, .dst = sums, .axis = -1};
    vec_push(n->tmp, &g.items, r);
    simd_group(n, b, &g);
}

void
simd_rows(Simd *n, Builder *b, Op *dot, Slot *a, bool transposed, Value *zero,
          int64_t rows)
{
    OpPlan *p = op_plan(n, dot);
    Slot *sums = plan_get(n, op_result(dot, 0))->slot;
    Op *loop = p->zero_first;
    if (zero && !loop)
        fill(n, b, dot, sums, op_operand(dot, 2));
    if (loop) {
        Op *branch = build_if(b, zero, NULL, 0);
        for (int i = 0; i < 2; i++) {
            Builder arm = builder_at_end(n->f, branch->regions[i]);
            if (i == 0)
                fill(n, &arm, dot, sums, op_operand(loop, op_operand(dot, 2)->index + 2));
            build_yield(&arm, NULL, 0);
        }
    }
    Group g = *p->pack[1];
    g.items.at = arena_array(n->tmp, Root, g.items.n);
    for (int i = 0; i < g.items.n; i++) {
        Root *r = &g.items.at[i];
        *r = p->pack[1]->items.at[i];
        if (r->kind != ROOT_COPY)
            continue;
        r->kind = ROOT_ROWS;
        r->dst = a;
        r->transposed = transposed;
        r->offset = rows;
    }
    simd_group(n, b, &g);
}

void
simd_rows_step(Cx *cx, const Root *r, const Ix *ix)
{
    const Type *e = simd_wide(cx->n, op_result(r->op, 0)->type->elem);
    const Type *strip = strip_type(cx, e);
    Slot *sums = plan_get(cx->n, op_result(r->op, 0))->slot;
    Value *b = simd_convert(cx, ev_strip(cx, simd_eval(cx, r->v, ix)), e);
    for (int64_t m = 0; m < r->offset; m++) {
        Ix row = {IX_CONST, m, NULL}, at[2] = {row, ix[1]};
        Ix of_a[2] = {r->transposed ? ix[0] : row, r->transposed ? row : ix[0]};
        Value *a = ev_strip(cx, simd_slot_load(cx, r->dst, e, of_a));
        Value *in[3] = {a, b, ev_strip(cx, simd_slot_load(cx, sums, e, at))};
        Op *sum = build_op(&cx->b, OP_FMA, in, 3, NULL, &strip, 1);
        simd_slot_store(cx, sums, 2, at, (Ev){.kind = EV_VEC, .v = op_result(sum, 0)});
    }
}

int
simd_rows_beside(const Group *g, int lane)
{
    bool some = false;
    for (int i = 0; i < g->items.n; i++) {
        RootKind kind = g->items.at[i].kind;
        if (kind != ROOT_ROWS && kind != ROOT_LOAD)
            return 1;
        some |= kind == ROOT_ROWS;
    }
    return some && lane == 1 && g->shape->shape[0] % BESIDE == 0 ? BESIDE : 1;
}
