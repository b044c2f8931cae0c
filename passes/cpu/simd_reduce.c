/* Reductions of a nest: strips are accumulated, and their lanes are combined at the end
   of the reduced dimension.

   That takes many dependent steps for few numbers. Where rows are short, the strips of
   several rows are kept, and all rows reduced together, with a vector of results:

       for %i = 0, 64, 1 {              for %i = 0, 64, 16 { for %r = 0, 16, 1 {
         %a = for .. { .. }        =>       %a = for .. { .. }; buf_store %t, %a, %r, 0 }
         %s = reduce %a                   %s = buf_reduce %t : tile<16xf32>
         buf_store %o, %s, %i }           buf_store %o, %s, %i } */
#include "passes/cpu/simd_emit.h"

#include "ir/analysis/reduction.h"
#include "ir/base/util.h"
#include "ir/edit.h"

#include <math.h>

/* LONG_ROW: elements, of which the reduction is a small part. VECTORS: of a strip; to
   keep longer ones costs as much as it saves. */
enum { MOST_ROWS = 16, LEAST_ROWS = 4, LONG_ROW = 512, VECTORS = 2 };

bool
simd_identity(const Op *op, double *f, int64_t *i, bool *is_float)
{
    const Op *c = reduction_operation(op);
    if (!c)
        return false;
    int bits = type_bits(c->results[0].type);
    int64_t top = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
    *is_float = true;
    switch ((int)c->kind) {
    case OP_ADDF: *f = -0.0; return true;
    case OP_MULF: *f = 1.0; return true;
    case OP_MAXF: *f = -INFINITY; return true;
    case OP_MINF: *f = INFINITY; return true;
    default: break;
    }
    *is_float = false;
    switch ((int)c->kind) {
    case OP_ADD:
    case OP_OR:
    case OP_XOR:
    case OP_MAXU: *i = 0; return true;
    case OP_MUL: *i = 1; return true;
    case OP_AND:
    case OP_MINU: *i = -1; return true;
    case OP_MAXS: *i = -top - 1; return true;
    case OP_MINS: *i = top; return true;
    default: return false;
    }
}

void
simd_acc_init(Emit *e, Builder *b)
{
    Cx cx;
    cx_init(&cx, e->n, *b, e->w);
    e->acc = arena_array(e->n->tmp, Acc, e->g->items.n * SIMD_MAX_IN + 1);
    for (int i = e->g->items.n - 1; i >= 0; i--) {
        Root *r = &e->g->items.at[i];
        double f = 0;
        int64_t c = 0;
        bool is_float = false;
        if (r->kind != ROOT_REDUCE)
            continue;
        if (r->op->noperand > SIMD_MAX_IN)
            bug(&e->n->s->fail, "reduce of %d tiles", r->op->noperand);
        bool neutral = simd_identity(r->op, &f, &c, &is_float);
        for (int k = 0; k < r->op->noperand; k++) {
            Acc *a = &e->acc[e->nacc++];
            *a = (Acc){.root = r, .operand = k, .has_identity = neutral};
            a->type = strip_type(&cx, type_elem(op_operand(r->op, k)->type));
            if (!neutral)
                a->v = op_result(build_op(b, OP_UNDEF, NULL, 0, NULL, &a->type, 1), 0);
            else
                a->v = is_float ? build_float(b, a->type, f) : build_int(b, a->type, c);
        }
    }
}

void
simd_combine(Cx *cx, const Op *reduce, Value **args, Value **out)
{
    const Region *r = reduce->regions[0];
    Map map;
    map_init(&map, cx->n->tmp);
    for (int i = 0; i < r->narg; i++)
        map_set(&map, r->args[i], args[i]);
    for (const Op *op = r->first; op && op != r->last; op = op->next) {
        Value *in[SIMD_MAX_IN];
        if (!op_is(op, T_ELEMENTWISE) || op->noperand > SIMD_MAX_IN || op->nresult != 1) {
            diag_error(&cx->n->s->diag, op->loc,
                       "not supported yet: '%s' in a combine function on target cpu",
                       op_info[op->kind].name);
            break;
        }
        for (int i = 0; i < op->noperand; i++) {
            Value *v = op_operand(op, i), *got = map_get(&map, v);
            in[i] = got ? got : ev_strip(cx, simd_eval(cx, v, NULL));
        }
        const Type *t = strip_type(cx, op->results[0].type);
        Op *c = build_op(&cx->b, op->kind, in, op->noperand, &op->attrs, &t, 1);
        map_set(&map, &op->results[0], op_result(c, 0));
    }
    for (int i = 0; i < r->last->noperand; i++) {
        Value *v = op_operand(r->last, i), *got = map_get(&map, v);
        out[i] = got ? got : args[i];
        if (!got && v->region != r && map_get(&cx->n->map, v))
            out[i] = ev_strip(cx, simd_eval(cx, v, NULL));
    }
}

/* The operation to accumulate with. minf and maxf ignore NaN, so an accumulator that
   begins with an infinity is never NaN. Then a comparison and a select are enough, which
   are one instruction on many machines, instead of three. */
static OpKind
never_nan(const Acc *a)
{
    const Op *c = a->root->op->regions[0]->first;
    bool plain = a->has_identity && (c->kind == OP_MAXF || c->kind == OP_MINF);
    return plain ? c->kind : OP_COUNT;
}

static Value *
extreme(Builder *b, OpKind k, Value *acc, Value *x)
{
    Value *better = build_cmp(b, OP_CMPF, k == OP_MAXF ? "ogt" : "olt", x, acc);
    return build_select(b, better, x, acc);
}

void
simd_reduce_step(Emit *e, Cx *cx, int at, Value **accs)
{
    const Op *op = e->acc[at].root->op;
    int n = op->noperand;
    Value *args[2 * SIMD_MAX_IN], *out[SIMD_MAX_IN];
    for (int k = 0; k < n; k++) {
        args[k] = accs[at + k];
        args[n + k] = ev_strip(cx, simd_eval(cx, op_operand(op, k), e->ix));
    }
    if (!e->first && !e->acc[at].has_identity) { /* a single step */
        for (int k = 0; k < n; k++)
            accs[at + k] = args[n + k];
        return;
    }
    if (never_nan(&e->acc[at]) != OP_COUNT) {
        accs[at] = extreme(&cx->b, never_nan(&e->acc[at]), args[0], args[1]);
        return;
    }
    simd_combine(cx, op, args, out);
    for (int k = 0; k < n; k++) {
        accs[at + k] = out[k];
        if (e->acc[at].has_identity)
            continue;
        Value *c = e->first;
        if (e->w > 1)
            c = build_splat(&cx->b, c, strip_type(cx, e->n->i1));
        accs[at + k] = build_select(&cx->b, c, args[n + k], out[k]);
    }
}

/* Maps the scalars from outside that a combine region uses to those of the new code. */
static void
map_outside(Simd *n, const Region *r, Map *map)
{
    for (const Op *op = r->first; op; op = op->next) {
        for (int i = 0; i < op->noperand; i++) {
            Value *v = op_operand(op, i), *got = map_get(&n->map, v);
            if (got)
                map_set(map, v, got);
        }
    }
}

/* Copies the combine region of the old reduction into the new one, `now`. */
static void
combine_region(Emit *e, const Acc *a, Op *now)
{
    const Region *old = a->root->op->regions[0];
    Region *body = region_new(e->n->f, now);
    Value *out[SIMD_MAX_IN];
    Map map;
    map_init(&map, e->n->tmp);
    for (int i = 0; i < old->narg; i++)
        map_set(&map, old->args[i],
                region_arg(body, old->args[i]->type, old->args[i]->name));
    Builder in = builder_at_end(e->n->f, body);
    if (never_nan(a) != OP_COUNT) {
        out[0] = extreme(&in, never_nan(a), body->args[0], body->args[1]);
        build_yield(&in, out, 1);
        return;
    }
    map_outside(e->n, old, &map);
    region_clone_into(&in, old, &map);
    for (int k = 0; k < now->nresult; k++) {
        Value *y = op_operand(old->last, k), *got = map_get(&map, y);
        out[k] = got ? got : y;
    }
    build_yield(&in, out, now->nresult);
}

/* Reduces n strips, or the rows of one buffer, to results of these types. */
static void
reduced(Emit *e, Builder *b, const Acc *a, OpKind kind, Value *const *v, int n,
        const Type *const *types, Value **out)
{
    AttrList l = {0};
    if (kind == OP_REDUCE)
        attr_set_int(&e->n->s->mod, &l, ATTR_AXIS, 0);
    Op *r = build_op(b, kind, v, n, &l, types, n);
    combine_region(e, a, r);
    for (int k = 0; k < n; k++)
        out[k] = op_result(r, k);
}

/* Puts a result where it is used; w: lanes. */
static void
put(Emit *e, Builder *b, Value *result, Value *v, int w)
{
    Cx cx;
    cx_init(&cx, e->n, *b, w);
    Ix ix[MAX_RANK];
    int rank = 0;
    for (int d = 0; d < e->g->shape->rank; d++)
        if (d != e->g->axis)
            ix[rank++] = e->ix[d];
    Ev ev = {.kind = simd_tile(v) ? EV_VEC : EV_UNI, .v = v};
    if (simd_tile(result))
        simd_slot_store(&cx, plan_get(e->n, result)->slot, rank, ix, ev);
    else
        map_set(&e->n->map, result, v);
    *b = cx.b;
}

static void
keep_row(Emit *e, Builder *b, Acc *a)
{
    int64_t shape[2] = {e->rows, e->w};
    if (!a->rows) {
        a->rows = arena_new(e->n->tmp, Slot);
        a->rows->type = type_buf(e->n->tt, type_elem(a->v->type), 2, shape);
    }
    Cx cx;
    cx_init(&cx, e->n, *b, e->w);
    Ix ix[2] = {{IX_UNI, 0, e->row}, {IX_AFF, 0, NULL}};
    simd_slot_store(&cx, a->rows, 2, ix, (Ev){.kind = EV_VEC, .v = a->v});
    *b = cx.b;
}

void
simd_reduce_finish(Emit *e, Builder *b, int at)
{
    Op *op = e->acc[at].root->op;
    int n = op->noperand;
    Value *v[SIMD_MAX_IN];
    const Type *types[SIMD_MAX_IN];
    if (e->row) {
        keep_row(e, b, &e->acc[at]);
        return;
    }
    for (int k = 0; k < n; k++) {
        v[k] = e->acc[at + k].v;
        types[k] = type_elem(v[k]->type);
    }
    if (e->g->axis == e->lane && e->w > 1)
        reduced(e, b, &e->acc[at], OP_REDUCE, v, n, types, v);
    for (int k = 0; k < n; k++)
        put(e, b, op_result(op, k), v[k], e->w);
}

/* ---- several rows together */

int
simd_rows_together(const Emit *e, int d)
{
    const Type *t = e->g->shape;
    int64_t rows = min_i64(MOST_ROWS, min_i64(e->w, t->shape[d]));
    if (e->n->f->check || e->g->axis != e->lane || e->row_dim >= 0 || rows < LEAST_ROWS ||
        t->shape[e->lane] > LONG_ROW)
        return 1;
    int64_t most = VECTORS * 8 * e->n->vector_bytes;
    for (int i = 0; i < e->g->items.n; i++) {
        const Root *r = &e->g->items.at[i];
        double f;
        int64_t c;
        bool is_float;
        if (r->kind == ROOT_REDUCE &&
            (r->op->noperand > 1 || !simd_tile(op_result(r->op, 0)) ||
             type_bits(op_result(r->op, 0)->type) < 8 ||
             type_bits(op_result(r->op, 0)->type) * e->w > most ||
             !simd_identity(r->op, &f, &c, &is_float)))
            return 1;
    }
    return (int)rows;
}

void
simd_reduce_rows(Emit *e, Builder *b)
{
    for (int i = 0; i < e->nacc; i++) {
        const Acc *a = &e->acc[i];
        Cx cx;
        cx_init(&cx, e->n, *b, e->rows);
        const Type *t = strip_type(&cx, a->rows->type->elem);
        Value *v = simd_buffer(e->n, a->rows);
        reduced(e, b, a, OP_BUF_REDUCE, &v, 1, &t, &v);
        put(e, b, op_result(a->root->op, 0), v, e->rows);
    }
}
