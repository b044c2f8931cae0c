/* Buffers for the operands of dots; see passes/mma/operand.h. */
#include "passes/mma/operand.h"

#include "ir/analysis/async_dot.h"
#include "ir/base/util.h"
#include "ir/plan/tma_box.h"
#include "passes/layout/layout.h"

enum { LINE = 128, HOIST_DEPTH = 16 };

/* Are the elements of a thread's first two registers neighbours along dimension d? */
static bool
begins_along(const Layout *l, int d)
{
    int reg[LAYOUT_MAX_BITS];
    return layout_run(l, d, reg) > 1 && reg[0] == 0;
}

/* The dimension along which neighbouring elements are closest in l: in one thread, or
   else in neighbouring lanes. */
static int
fast_dim_of_layout(const Layout *l)
{
    for (int d = l->rank - 1; d >= 0; d--)
        if (begins_along(l, d))
            return d;
    int best = l->rank - 1, run = layout_run(l, best, NULL);
    for (int d = l->rank - 2; d >= 0; d--) {
        int n = layout_run(l, d, NULL);
        if (n > run) {
            best = d;
            run = n;
        }
    }
    for (int d = 0; run == 1 && l->nbasis[LD_LANE] && d < l->rank; d++) /* lanes 0, 1 */
        if (l->basis[LD_LANE][0] == (uint32_t)1 << layout_shift(l, d))
            best = d;
    return best;
}

int
operand_fast_dim(const Value *v)
{
    int dim = layout_operand_dim(v);
    return dim >= 0 ? dim : fast_dim_of_layout(v->type->layout);
}

const Type *
operand_buffer_type(Session *s, const Type *t, int fast)
{
    int order[MAX_RANK], n = 0, bits = type_bits(t);
    order[n++] = fast;
    for (int d = t->rank - 1; d >= 0; d--)
        if (d != fast)
            order[n++] = d;
    bits = bits < 8 ? 8 : bits;
    int64_t row = t->shape[fast] * bits / 8;
    int swizzle = row >= LINE ? LINE : row >= 32 ? (int)row : 0;
    if (type_numel(t) / t->shape[fast] < TMA_PHASES)
        swizzle = 0; /* the next buffer would begin inside a swizzle pattern */
    const Layout *l = layout_nvmma(s, t->rank, t->shape, bits, swizzle, order);
    return type_mem(s->types, t->elem, t->rank, t->shape, l, 0);
}

/* A buffer that v was put into before, in v's own region: of type mem, or of `any` type
   if threads read it. NULL: there is none. So each v is copied once. One that was made
   for a later user is made in front of this one, which b stands in front of. */
static Value *
buffer_made(const Builder *b, const Value *v, const Type *mem, bool any)
{
    const Region *here = v->op ? v->op->parent : v->region;
    value_each_use(v, u)
    {
        Op *alloc = u->user, *user = op_in_region(b->before, here);
        if (alloc->kind != OP_LOCAL_ALLOC || alloc->parent != here || alloc == user ||
            (!any && alloc->results[0].type != mem))
            continue;
        if (user && op_before(user, alloc))
            op_move_before(alloc, user);
        return &alloc->results[0];
    }
    return NULL;
}

/* Where something is computed from v, so that a loop that does not change v does not
   repeat it: right behind v's op. For an argument of a region, at its start if the user,
   which b stands in front of, is in a loop of that region: fences behind stores to shared
   memory wait for the loads that come before, which may be those of the next iteration.
   Else in front of the op that contains the user. */
static Builder
made_at(const Builder *b, const Value *v)
{
    Op *user = v->op ? NULL : op_in_region(b->before, v->region);
    if (user && (user->kind == OP_FOR || user->kind == OP_WHILE))
        user = v->region->first;
    Builder at = v->op ? builder_after(v->op) : user ? builder_before(user) : *b;
    at.loc = b->loc;
    return at;
}

/* The buffer is filled right after v is computed: all users find it there, and a loop
   that does not change v does not fill it anew. */
Value *
operand_buffer(Session *s, Builder *b, Value *v, const Layout *tile)
{
    int fast = operand_fast_dim(v);
    const Type *mem = operand_buffer_type(s, v->type, fast);
    Value *made = buffer_made(b, v, mem, tile != NULL);
    if (made)
        return made;
    if (tile)
        mem = operand_banks(s, mem, fast, tile);
    Builder at = made_at(b, v);
    return &build_op(&at, OP_LOCAL_ALLOC, &v, 1, NULL, &mem, 1)->results[0];
}

Value *
operand_transposed(Session *s, Builder *b, Value *m, const Op *trans)
{
    const Attr *perm = attr_find(&trans->attrs, ATTR_PERM);
    const Type *mem = m->type;
    int64_t shape[MAX_RANK];
    for (int i = 0; i < mem->rank; i++)
        shape[i] = mem->shape[perm->v.ints[i]];
    const Layout *l = layout_trans(s, mem->layout, perm->v.ints);
    const Type *t = type_mem(s->types, mem->elem, mem->rank, shape, l, 0);
    return &build_op(b, OP_LOCAL_TRANS, &m, 1, &trans->attrs, &t, 1)->results[0];
}

bool
operand_copies(const Op *load)
{
    enum { LEAST = 4 };
    const Type *t = load->results[0].type;
    const Attr *contig = attr_find(&load->attrs, ATTR_CONTIG);
    int64_t best = 1;
    for (int d = 0; t->layout && contig && d < contig->n && d < t->rank; d++)
        best = max_i64(best, min_i64(contig->v.ints[d], layout_run(t->layout, d, NULL)));
    return best * max_i64(type_bits(t), 8) / 8 >= LEAST;
}

/* Where threads copy m: behind where m is made, so once if that is outside of the user's
   loop. In the user's region, which b points into, it is in front of the last wait for a
   dot before b, so that the copy runs while that dot does. */
static Builder
copy_place(const Builder *b, const Value *m)
{
    Builder at = made_at(b, m);
    bool here = m->op && b->before && b->before->parent == m->op->parent;
    for (Op *op = here ? m->op->next : NULL; op && op != b->before; op = op->next)
        if (op_is_dot_wait(op))
            at = builder_before(op);
    at.loc = b->loc;
    return at;
}

/* Is op run before what b builds? */
static bool
is_before(const Op *op, const Builder *b)
{
    const Op *at = op_in_region(b->before, op->parent);
    return at && op_before(op, at);
}

/* A copy of buffer m that was made before b: a local_load of type `tile`, then a
   local_alloc of type `mem`. NULL: there is none. */
static Value *
made_before(const Builder *b, const Value *m, const Type *tile, const Type *mem)
{
    value_each_use(m, u)
    {
        Op *load = u->user;
        if (load->kind != OP_LOCAL_LOAD || load->results[0].type != tile)
            continue;
        value_each_use(&load->results[0], w)
        {
            Op *made = w->user;
            if (made->kind == OP_LOCAL_ALLOC && made->results[0].type == mem &&
                is_before(made, b))
                return &made->results[0];
        }
    }
    return NULL;
}

Value *
operand_across(Session *s, Builder *b, Value *m, int inner, bool as_acc)
{
    const Type *t = type_tile(s->types, m->type->elem, 2, m->type->shape, NULL);
    const Type *mem = operand_buffer_type(s, t, inner);
    const Layout *l = layout_bytes(s, t->shape, inner, b->func->num_warps, as_acc);
    if (as_acc)
        mem = type_mem(s->types, mem->elem, 2, mem->shape,
                       layout_acc_order(s, mem->layout, inner), 0);
    if (!l) /* too few bytes for anything better */
        l = layout_spread(s, 2, t->shape, 1, (int[]){1, 0}, b->func->num_warps);
    t = type_with_layout(s->types, t, l);
    Value *old = made_before(b, m, t, mem);
    if (old)
        return old;
    Builder at = copy_place(b, m);
    Value *v = &build_op(&at, OP_LOCAL_LOAD, &m, 1, NULL, &t, 1)->results[0];
    return &build_op(&at, OP_LOCAL_ALLOC, &v, 1, NULL, &mem, 1)->results[0];
}

Value *
operand_along(Session *s, Builder *b, Value *v, int inner)
{
    const Type *mem = operand_buffer_type(s, v->type, inner);
    Builder at = copy_place(b, v);
    value_each_use(v, u) if (u->user->kind == OP_LOCAL_ALLOC &&
                             u->user->results[0].type == mem && is_before(u->user, b))
        return &u->user->results[0];
    return &build_op(&at, OP_LOCAL_ALLOC, &v, 1, NULL, &mem, 1)->results[0];
}

/* Is v a vector repeated along rows or columns, or elementwise work on such tiles? */
static bool
repeats_vector(const Value *v, int depth)
{
    const Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op || depth > HOIST_DEPTH)
        return false;
    if (op->kind == OP_EXPAND_DIMS)
        return op_operand(op, 0)->type->rank == 1;
    if (op->kind != OP_BROADCAST && op->kind != OP_SPLAT && op->kind != OP_CONST &&
        !op_is(op, T_PURE | T_ELEMENTWISE))
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!repeats_vector(op_operand(op, i), depth + 1))
            return false;
    return true;
}

/* See operand_is_work_on_load. */
static bool
is_work(Value *v, Value **load, bool vectors, int depth)
{
    Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op || depth > HOIST_DEPTH)
        return false;
    if (op->kind == OP_LOAD) {
        if (*load && *load != v)
            return false;
        *load = v;
        return true;
    }
    if (vectors && op->kind == OP_BROADCAST)
        return repeats_vector(v, depth);
    bool each = op_is(op, T_PURE | T_ELEMENTWISE) && op->kind != OP_UNDEF;
    bool spread = op->kind == OP_SPLAT || op->kind == OP_ARANGE;
    if (!each && !spread)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!is_work(op_operand(op, i), load, vectors, depth + 1))
            return false;
    return true;
}

bool
operand_is_work_on_load(Value *v, bool vectors, Value **load)
{
    *load = NULL;
    return is_work(v, load, vectors, 0);
}

/* Vector v in layout `to`. The conversion is placed where v is made, so that users share
   it, and a loop that does not change v does not repeat it. */
static Value *
convert_vector(Session *s, Builder *b, Value *v, const Layout *to)
{
    const Type *t = type_with_layout(s->types, v->type, to);
    if (v->type == t)
        return v;
    Builder at = made_at(b, v);
    return &build_op(&at, OP_CONVERT_LAYOUT, &v, 1, NULL, &t, 1)->results[0];
}

/* Is v a short computation on indices and scalars? It is done again sooner than its
   result is exchanged between threads. */
static bool
is_index(const Value *v, int depth)
{
    enum { SHORT = 4 };
    const Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op || depth > SHORT)
        return false;
    switch ((int)op->kind) {
    case OP_ARANGE:
    case OP_SPLAT: return true;
    case OP_ADD:
    case OP_SUB:
        return is_index(op_operand(op, 0), depth + 1) &&
               is_index(op_operand(op, 1), depth + 1);
    default: return false;
    }
}

/* Is v made in region `here` by work on vectors that come from outside of it? */
static bool
is_work_on_outer(const Value *v, const Region *here, int depth, int *left)
{
    const Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op)
        return v->region != here;
    if (op->parent != here)
        return true;
    bool each = op_is(op, T_PURE | T_ELEMENTWISE) && op->kind != OP_UNDEF;
    if ((!each && op->kind != OP_SPLAT && op->kind != OP_ARANGE) || depth > HOIST_DEPTH ||
        --*left < 0)
        return false;
    for (int i = 0; i < op->noperand; i++)
        if (!is_work_on_outer(op_operand(op, i), here, depth + 1, left))
            return false;
    return true;
}

/* Is vector v computed in the loop that b stands in, by little work on vectors that the
   loop does not change? Done again in layout `to` it takes conversions of those alone,
   which are not repeated: one in a loop takes barriers, which keep its warps in step. */
static bool
is_cheap_in_loop(const Builder *b, const Value *v, const Layout *to)
{
    enum { MOST_WORK = 64 };
    int left = MOST_WORK / (int)max_i64(1, layout_regs(to));
    const Region *here = v->op ? v->op->parent : NULL;
    return here && here->parent && here->parent->kind == OP_FOR && b->before &&
           b->before->parent == here && is_work_on_outer(v, here, 0, &left);
}

Value *
operand_made(const Map *made, const Value *v, const Layout *to)
{
    Value *there = made ? map_get(made, v) : NULL;
    return there && there->type->layout == to ? there : NULL;
}

Value *
operand_redo(Session *s, Builder *b, Value *v, const Layout *to, Value *load,
             Value *loaded, Map *made)
{
    Value *in[8], *there = operand_made(made, v, to);
    if (v == load)
        return loaded;
    if (there || !type_is_tile(v->type))
        return there ? there : v;
    if (v->type->rank == 1 && (!load || load->type->rank > 1) && !is_index(v, 0) &&
        !is_cheap_in_loop(b, v, to))
        return convert_vector(s, b, v, to);
    Op *op = v->op;
    bool shape = op->kind == OP_BROADCAST || op->kind == OP_EXPAND_DIMS;
    const Layout *from = shape ? layout_operand(s, op, to) : to;
    if (op->noperand > 8)
        return v;
    for (int i = 0; i < op->noperand; i++)
        in[i] = operand_redo(s, b, op_operand(op, i), from, load, loaded, made);
    const Type *t = type_with_layout(s->types, v->type, to);
    Op *again = build_op(b, op->kind, in, op->noperand, &op->attrs, &t, 1);
    again->results[0].name = v->name;
    if (made)
        map_set(made, v, &again->results[0]);
    return &again->results[0];
}
