/* Lowers block pointers and tensor descriptors to tiles of pointers with explicit masks,
   so that every access says which elements touch memory.

       %p = make_block_ptr %base, %m, %n, %sm, %sn, %i, %j {order=[1,0]} : block_ptr<..>
       %x = block_load %p {boundary=[0]} : tile<64x32xf32>
     =>
       %r = add (splat (sext %i)), (sext (arange)) : tile<64xi64>        // rows
       %c = ..                                       tile<32xi64>        // columns
       %q = addptr (splat %base), %r[:,None] * %sm + %c[None,:] * %sn
       %x = load %q, (0 <= %r < %m)[:,None] : tile<64x32xf32>

   Offsets are 64-bit, as in Triton. A block pointer or descriptor that a loop carries or
   an if returns is replaced by its components; canonicalization then finds those that do
   not change. */
#include "ir/analysis/param.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "ir/plan/tma_box.h"
#include "passes/pass.h"

#include <math.h>
#include <string.h>

enum {
    MAX_PARTS = 1 + 3 * MAX_RANK,
    FLAT_RANK = 2, /* on a GPU dimensions of size 1 are dropped down to this rank, since
                      pipelined loads and TMA copies have rows and columns only */
};

/* What loads through a descriptor do with the elements. It is known at compile time, so
   it is not a component that loops carry. */
typedef struct Reading {
    bool nan;  /* elements outside of the bounds are NaN */
    bool tf32; /* elements are rounded to tf32 */
} Reading;

/* A block pointer or descriptor as its components: base; shape.. and strides.. (i64);
   offsets.. (i32, block pointers only). */
typedef struct Parts {
    const Type *type;
    int n;
    Value *v[MAX_PARTS];
    Reading reading; /* of a descriptor */
} Parts;

typedef struct Lowering {
    Session *s;
    Arena *tmp;
    Map parts;      /* Value -> Parts */
    Map readings;   /* Region -> Reading[], of the operands of its terminator */
    Vec(Op *) dead; /* to be erased at the end */
    bool maps;      /* the target writes tensor maps in kernels */
    bool flatten;   /* drop dimensions of size 1: see FLAT_RANK */
    bool changed;
} Lowering;

static bool
is_block(const Type *t)
{
    return t->kind == TY_BLOCK_PTR || t->kind == TY_DESC;
}

static int
part_count(const Type *t)
{
    return 1 + (t->kind == TY_DESC ? 2 : 3) * t->rank;
}

static const Type *
part_type(Lowering *m, const Type *t, int i)
{
    if (i == 0)
        return type_ptr(m->s->types, t->elem, 0);
    return type_scalar(m->s->types, i <= 2 * t->rank ? SK_I64 : SK_I32);
}

static Parts *
parts_of(Lowering *m, const Value *v)
{
    return map_get(&m->parts, v);
}

/* Are the components of all block operands known? Descriptors that are kernel parameters
   or captures of a role have none: only TMA can use them. If not: an error. */
static bool
parts_known(Lowering *m, const Op *op)
{
    for (int i = 0; i < op->noperand; i++) {
        const Value *v = op_operand(op, i);
        if (!is_block(v->type) || parts_of(m, v))
            continue;
        diag_error(&m->s->diag, op->loc,
                   "not supported yet: '%s' on a descriptor that is passed in whole",
                   op_info[op->kind].name);
        return false;
    }
    return true;
}

/* Empty parts for v, to be filled in by the caller. */
static Parts *
new_parts(Lowering *m, const Value *v)
{
    Parts *p = arena_new(m->tmp, Parts);
    p->type = v->type;
    p->n = part_count(v->type);
    map_set(&m->parts, v, p);
    return p;
}

/* ---- addresses */

/* x[None, .., :, .., None]: a rank-1 tile along dimension `dim` of a rank-r tile. */
static Value *
along(Builder *b, Value *x, int dim, int rank, const int64_t *shape)
{
    for (int i = 0; i < rank; i++)
        if (i != dim)
            x = build_expand_dims(b, x, i);
    return rank > 1 ? build_broadcast(b, x, shape) : x;
}

static Value *
splat_like(Builder *b, Value *scalar, const Value *like)
{
    return build_splat(b, scalar, like->type);
}

static Value *
to_i64(Lowering *m, Builder *b, Value *x)
{
    return type_bits(x->type) == 64
               ? x
               : build_cast(b, OP_SEXT, x, type_scalar(m->s->types, SK_I64));
}

/* offset + 0 .. size-1 as i64 */
static Value *
indices(Lowering *m, Builder *b, Value *offset, int64_t size)
{
    TypeTable *tt = m->s->types;
    AttrList l = {0};
    const Type *t = type_tile(tt, type_scalar(tt, SK_I32), 1, &size, NULL);
    attr_set_int(&m->s->mod, &l, ATTR_START, 0);
    Value *r = &build_op(b, OP_ARANGE, NULL, 0, &l, &t, 1)->results[0];
    r = to_i64(m, b, r);
    return build_binary(b, OP_ADD, splat_like(b, to_i64(m, b, offset), r), r);
}

static Value *
conjunction(Builder *b, Value *x, Value *y)
{
    return !x ? y : !y ? x : build_binary(b, OP_AND, x, y);
}

/* 0 <= index < size */
static Value *
in_bounds(Lowering *m, Builder *b, Value *index, Value *size)
{
    Value *zero = build_int(b, index->type, 0), *end = to_i64(m, b, size);
    Value *low = build_cmp(b, OP_CMPI, "sge", index, zero);
    if (type_is_tile(index->type))
        end = splat_like(b, end, index);
    return build_binary(b, OP_AND, low, build_cmp(b, OP_CMPI, "slt", index, end));
}

typedef struct Access {
    Value *ptr, *mask;
} Access;

/* Pointers and mask of an access. index[d]: a rank-1 tile, or a scalar for a dimension
   that is dropped. checks: the set of dimensions with a bounds check, bit d for dimension
   d. The mask is NULL if there are none. */
static Access
access_at(Lowering *m, Builder *b, const Parts *p, Value *const *index,
          const int64_t *shape, unsigned checks)
{
    int r = p->type->rank, n = 0, at = 0;
    int64_t kept[MAX_RANK];
    Value *base = p->v[0], *offset = NULL, *mask = NULL, *inside = NULL;
    for (int d = 0; d < r; d++)
        if (type_is_tile(index[d]->type))
            kept[n++] = shape[d];
    for (int d = 0; d < r; d++) {
        Value *stride = to_i64(m, b, p->v[1 + r + d]);
        bool check = checks >> d & 1;
        if (!type_is_tile(index[d]->type)) {
            Value *step = build_binary(b, OP_MUL, index[d], stride);
            base = build_binary(b, OP_ADDPTR, base, step);
            if (check)
                inside = conjunction(b, inside, in_bounds(m, b, index[d], p->v[1 + d]));
            continue;
        }
        Value *step = build_binary(b, OP_MUL, index[d], splat_like(b, stride, index[d]));
        Value *wide = along(b, step, at, n, kept);
        offset = offset ? build_binary(b, OP_ADD, offset, wide) : wide;
        if (check)
            mask = conjunction(
                b, mask, along(b, in_bounds(m, b, index[d], p->v[1 + d]), at, n, kept));
        at++;
    }
    if (inside) {
        const Type *i1 = type_scalar(m->s->types, SK_I1);
        inside = build_splat(b, inside, type_like(m->s->types, offset->type, i1));
        mask = conjunction(b, mask, inside);
    }
    base = splat_like(b, base, offset);
    return (Access){build_binary(b, OP_ADDPTR, base, offset), mask};
}

/* The same for a block that begins at `offsets`. */
static Access
block_access(Lowering *m, Builder *b, const Parts *p, Value *const *offsets,
             unsigned checks)
{
    Value *index[MAX_RANK];
    int left = p->type->rank;
    for (int d = 0; d < p->type->rank; d++) {
        bool flat = m->flatten && left > FLAT_RANK && p->type->shape[d] == 1;
        index[d] = flat ? to_i64(m, b, offsets[d])
                        : indices(m, b, offsets[d], p->type->shape[d]);
        left -= flat;
    }
    return access_at(m, b, p, index, p->type->shape, checks);
}

static Reading
reading_of(const Op *op)
{
    Name pad = attr_str(&op->attrs, ATTR_PADDING);
    Name to = attr_str(&op->attrs, ATTR_ROUND);
    return (Reading){.nan = pad && strcmp(pad, "nan") == 0,
                     .tf32 = to && strcmp(to, "tf32") == 0};
}

/* The `other` of a load: NaN if the descriptor asks for it. NULL: masked elements are
   0. */
static Value *
padding(Builder *b, const Value *ptr, Reading r, TypeTable *tt)
{
    const Type *elem = type_elem(ptr->type)->elem;
    if (!r.nan || !type_is_float(elem))
        return NULL;
    return build_float(b, type_like(tt, ptr->type, elem), NAN);
}

/* Rounds fp32 x to the nearest tf32, ties to even; infinity and NaN stay as they are. */
static Value *
round_tf32(Builder *b, Value *x, TypeTable *tt)
{
    enum { DROPPED = 13, HALF = 1 << (DROPPED - 1) };
    const int64_t exponent = 0x7f800000;
    const Type *t = type_like(tt, x->type, type_scalar(tt, SK_I32));
    Value *bits = build_cast(b, OP_BITCAST, x, type_scalar(tt, SK_I32));
    Value *odd = build_binary(b, OP_SHRU, bits, build_int(b, t, DROPPED));
    odd = build_binary(b, OP_AND, odd, build_int(b, t, 1));
    Value *up = build_binary(b, OP_ADD, odd, build_int(b, t, HALF - 1));
    Value *near = build_binary(b, OP_ADD, bits, up);
    near = build_binary(b, OP_AND, near, build_int(b, t, -(1 << DROPPED)));
    Value *all = build_int(b, t, exponent);
    Value *special = build_cmp(b, OP_CMPI, "eq", build_binary(b, OP_AND, bits, all), all);
    near = build_cast(b, OP_BITCAST, near, type_elem(x->type));
    return build_select(b, special, x, near);
}

/* Attributes of the access that stay: cache hints and the like. */
static AttrList
hints(Lowering *m, const Op *op)
{
    AttrList l;
    attr_copy(&m->s->mod, &l, &op->attrs);
    attr_drop(&l, ATTR_BOUNDARY);
    attr_drop(&l, ATTR_PADDING);
    return l;
}

/* x with the shape of t: dropped dimensions come back. */
static Value *
fit(Builder *b, Value *x, const Type *t)
{
    return x->type == t ? x : build_reshape(b, x, t->rank, t->shape);
}

static void
finish_load(Lowering *m, Builder *b, Op *op, Access a, Reading r)
{
    AttrList l = hints(m, op);
    Value *other = a.mask ? padding(b, a.ptr, r, m->s->types) : NULL;
    Value *v = build_load(b, a.ptr, a.mask, other, &l);
    if (r.tf32)
        v = round_tf32(b, v, m->s->types);
    v = fit(b, v, op->results[0].type);
    v->name = op->results[0].name;
    value_replace(&op->results[0], v);
    op_erase(op);
}

static void
finish_store(Lowering *m, Builder *b, Op *op, Access a, Value *v)
{
    AttrList l = hints(m, op);
    int64_t *shape = (int64_t *)a.ptr->type->shape;
    if (!type_same_shape(v->type, a.ptr->type))
        v = build_reshape(b, v, a.ptr->type->rank, shape);
    if (op->kind == OP_DESC_ATOMIC) {
        Value *in[3] = {a.ptr, v, a.mask};
        build_op(b, OP_ATOMIC_RMW, in, a.mask ? 3 : 2, &l, NULL, 1);
    } else {
        build_store(b, a.ptr, v, a.mask, &l);
    }
    op_erase(op);
}

/* The dimensions of {boundary=[..]} as a set. */
static unsigned
boundary_set(const Op *op)
{
    const Attr *dims = attr_find(&op->attrs, ATTR_BOUNDARY);
    unsigned set = 0;
    for (int i = 0; dims && i < dims->n; i++)
        set |= 1u << dims->v.ints[i];
    return set;
}

static void
lower_block_access(Lowering *m, Builder *b, Op *op)
{
    const Parts *p = parts_of(m, op_operand(op, 0));
    Access a = block_access(m, b, p, &p->v[1 + 2 * p->type->rank], boundary_set(op));
    if (op->kind == OP_BLOCK_LOAD)
        finish_load(m, b, op, a, reading_of(op));
    else
        finish_store(m, b, op, a, op_operand(op, 1));
}

static void
lower_desc_access(Lowering *m, Builder *b, Op *op)
{
    const Parts *p = parts_of(m, op_operand(op, 0));
    bool load = op->kind == OP_DESC_LOAD;
    Value *offsets[MAX_RANK];
    for (int d = 0; d < p->type->rank; d++)
        offsets[d] = op_operand(op, d + (load ? 1 : 2));
    Access a = block_access(m, b, p, offsets, (1u << p->type->rank) - 1);
    if (load)
        finish_load(m, b, op, a, p->reading);
    else
        finish_store(m, b, op, a, op_operand(op, 1));
}

/* Gather and scatter: rows picked by an index tile, columns from an offset on. */
static void
lower_desc_rows(Lowering *m, Builder *b, Op *op)
{
    bool load = op->kind == OP_DESC_GATHER;
    const Parts *p = parts_of(m, op_operand(op, 0));
    const Type *t = load ? op->results[0].type : op_operand(op, 1)->type;
    Value *index[2] = {
        to_i64(m, b, op_operand(op, load ? 1 : 2)),
        indices(m, b, op_operand(op, load ? 2 : 3), t->shape[1]),
    };
    Access a = access_at(m, b, p, index, t->shape, 3);
    if (load)
        finish_load(m, b, op, a, p->reading);
    else
        finish_store(m, b, op, a, op_operand(op, 1));
}

/* ---- make and advance */

/* Has the descriptor components that are not known at the launch? Then the kernel may
   write its tensor map itself (passes/schedule/tma_build.c). For that, ATTR_TENSOR keeps
   with the address what the source guarantees of descriptors. */
static bool
is_made_in_kernel(const Op *op)
{
    bool host = param_of(op_operand(op, 0)) != NULL;
    for (int i = 1; i < op->noperand; i++)
        host &= tma_host_value(op_operand(op, i));
    return op->kind == OP_MAKE_DESC && !host;
}

static Value *
tensor_hint(Lowering *m, Builder *b, Value *base)
{
    AttrList l = {0};
    attr_set_flag(&m->s->mod, &l, ATTR_TENSOR);
    return &build_op(b, OP_HINT, &base, 1, &l, NULL, 1)->results[0];
}

/* Notes the components of a new block pointer or descriptor. */
static void
take_make(Lowering *m, Builder *b, Op *op)
{
    Parts *p = new_parts(m, &op->results[0]);
    for (int i = 0; i < p->n; i++) {
        Value *v = op_operand(op, i);
        p->v[i] = i >= 1 && i <= 2 * p->type->rank ? to_i64(m, b, v) : v;
    }
    if (m->maps && is_made_in_kernel(op))
        p->v[0] = tensor_hint(m, b, p->v[0]);
    p->reading = reading_of(op);
    vec_push(m->tmp, &m->dead, op);
}

/* The components of an advanced block pointer: other offsets. */
static void
take_advance(Lowering *m, Builder *b, Op *op)
{
    const Parts *from = parts_of(m, op_operand(op, 0));
    Parts *p = new_parts(m, &op->results[0]);
    int r = from->type->rank;
    memcpy(p->v, from->v, sizeof p->v);
    for (int d = 0; d < r; d++)
        p->v[1 + 2 * r + d] =
            build_binary(b, OP_ADD, from->v[1 + 2 * r + d], op_operand(op, 1 + d));
    vec_push(m->tmp, &m->dead, op);
}

/* ---- regions */

typedef Vec(Value *) ValueVec;
typedef Vec(const Type *) TypeVec;

/* Appends v, or its components. */
static void
expand_value(Lowering *m, ValueVec *out, Value *v)
{
    if (!is_block(v->type)) {
        vec_push(m->tmp, out, v);
        return;
    }
    const Parts *p = parts_of(m, v);
    for (int i = 0; i < p->n; i++)
        vec_push(m->tmp, out, p->v[i]);
}

/* Appends t, or the types of its components. */
static void
expand_type(Lowering *m, TypeVec *out, const Type *t)
{
    if (!is_block(t)) {
        vec_push(m->tmp, out, t);
        return;
    }
    for (int i = 0; i < part_count(t); i++)
        vec_push(m->tmp, out, part_type(m, t, i));
}

/* Replaces `old`, a result or argument, by at[*i]; a block, by as many values from there
   on as it has components. Advances *i. */
static void
take_place(Lowering *m, Value *old, Value *const *at, int *i, Reading reading)
{
    if (!is_block(old->type)) {
        if (!at[*i]->name)
            at[*i]->name = old->name;
        value_replace(old, at[(*i)++]);
        return;
    }
    Parts *p = new_parts(m, old);
    p->reading = reading;
    for (int k = 0; k < p->n; k++)
        p->v[k] = at[(*i)++];
}

static void visit(Lowering *m, Region *r, int depth);

static bool
touches_blocks(const Op *op)
{
    for (int i = 0; i < op->nresult; i++)
        if (is_block(op->results[i].type))
            return true;
    for (int i = 0; i < op->noperand; i++)
        if (is_block(op_operand(op, i)->type))
            return true;
    return false;
}

/* Error if descriptors of different readings reach the same value. */
static void
want_same(Lowering *m, const Op *op, Reading a, Reading b)
{
    if (a.nan != b.nan)
        diag_error(&m->s->diag, op->loc,
                   "not supported yet: descriptors of different padding meet here");
    else if (a.tf32 != b.tf32)
        diag_error(&m->s->diag, op->loc,
                   "not supported yet: descriptors that round to tf32 and others meet "
                   "here");
}

/* The reading of a carried value: that of its initial value. */
static Reading
initial_reading(Lowering *m, const Op *op, int carried)
{
    int first = op->kind == OP_FOR ? 3 : 0;
    return parts_of(m, op_operand(op, first + carried))->reading;
}

/* The reading of a result: that of the value with which the regions of `to` end. If these
   differ, or differ from *start (NULL: there is none), it is an error. */
static Reading
final_reading(Lowering *m, const Op *to, int result, const Reading *start)
{
    Reading r = start ? *start : (Reading){0};
    for (int k = 0; k < to->nregion; k++) {
        if (to->kind == OP_WHILE && k == 1)
            continue; /* its values have another order: check_body_readings */
        const Reading *list = map_get(&m->readings, to->regions[k]);
        Reading mine = list ? list[result + (to->kind == OP_WHILE)] : (Reading){0};
        if (k || start)
            want_same(m, to, mine, r);
        r = mine;
    }
    return r;
}

/* The body of a while must end with readings that its condition began with. */
static void
check_body_readings(Lowering *m, const Op *op, const Op *to)
{
    const Reading *list = map_get(&m->readings, to->regions[1]);
    for (int i = 0; list && i < op->noperand; i++)
        if (is_block(op_operand(op, i)->type))
            want_same(m, to, list[i], initial_reading(m, op, i));
}

static Reading
argument_reading(Lowering *m, const Op *op, const Op *to, int region, int arg)
{
    if (op->kind == OP_WHILE && region == 1) /* what the condition passes on */
        return final_reading(m, to, arg, NULL);
    return initial_reading(m, op, arg - (op->kind == OP_FOR));
}

/* Replaces a loop or if by one whose operands, results and region arguments are
   components, and moves the ops of its regions over. */
static void
rebuild(Lowering *m, Op *op, int depth)
{
    ValueVec in = {0};
    TypeVec out = {0};
    for (int i = 0; i < op->noperand; i++)
        expand_value(m, &in, op_operand(op, i));
    for (int i = 0; i < op->nresult; i++)
        expand_type(m, &out, op->results[i].type);
    Builder b = builder_before(op);
    Op *to = build_unchecked(&b, op->kind, in.at, in.n, &op->attrs, out.at, out.n);
    for (int k = 0; k < op->nregion; k++) {
        Region *from = op->regions[k], *r = region_new(b.func, to);
        for (int i = 0; i < from->narg; i++) {
            TypeVec types = {0};
            expand_type(m, &types, from->args[i]->type);
            int at = r->narg;
            for (int t = 0; t < types.n; t++)
                region_arg(r, types.at[t], NULL);
            Reading reading = {0};
            if (is_block(from->args[i]->type))
                reading = argument_reading(m, op, to, k, i);
            take_place(m, from->args[i], r->args, &at, reading);
        }
        while (from->first)
            op_move_to_end(from->first, r);
        visit(m, r, depth + 1);
    }
    ValueVec results = {0};
    for (int i = 0; i < to->nresult; i++)
        vec_push(m->tmp, &results, &to->results[i]);
    for (int i = 0, at = 0; i < op->nresult; i++) {
        Reading reading = {0}, start = {0};
        if (is_block(op->results[i].type)) {
            start = op->kind == OP_FOR ? initial_reading(m, op, i) : start;
            reading = final_reading(m, to, i, op->kind == OP_FOR ? &start : NULL);
        }
        take_place(m, &op->results[i], results.at, &at, reading);
    }
    if (op->kind == OP_WHILE)
        check_body_readings(m, op, to);
    vec_push(m->tmp, &m->dead, op);
    m->changed = true;
}

static void
expand_terminator(Lowering *m, Op *op)
{
    ValueVec vals = {0};
    if (!touches_blocks(op))
        return;
    Reading *readings = arena_array(m->tmp, Reading, op->noperand);
    for (int i = 0; i < op->noperand; i++)
        if (is_block(op_operand(op, i)->type))
            readings[i] = parts_of(m, op_operand(op, i))->reading;
    map_set(&m->readings, op->parent, readings);
    for (int i = 0; i < op->noperand; i++)
        expand_value(m, &vals, op_operand(op, i));
    while (op->noperand)
        op_drop_operand(op, op->noperand - 1);
    for (int i = 0; i < vals.n; i++)
        op_add_operand(op, vals.at[i]);
}

/* Does this pass lower ops of this kind when they touch blocks? The others (TMA, roles)
   are made by later passes, for hardware that uses descriptors. */
static bool
lowered(const Op *op)
{
    return op_info[op->kind].effects == 0
               ? !op_is(op, T_ISOLATED)
               : op->kind == OP_BLOCK_LOAD || op->kind == OP_BLOCK_STORE ||
                     op->kind == OP_DESC_LOAD || op->kind == OP_DESC_STORE ||
                     op->kind == OP_DESC_ATOMIC || op->kind == OP_DESC_GATHER ||
                     op->kind == OP_DESC_SCATTER;
}

static void
visit_op(Lowering *m, Op *op, int depth)
{
    Builder b = builder_before(op);
    b.loc = op->loc;
    if (lowered(op) && !parts_known(m, op))
        return;
    m->changed |= op->nregion == 0 && lowered(op) && touches_blocks(op);
    switch ((int)op->kind) {
    case OP_MAKE_BLOCK_PTR:
    case OP_MAKE_DESC: take_make(m, &b, op); return;
    case OP_ADVANCE: take_advance(m, &b, op); return;
    case OP_BLOCK_LOAD:
    case OP_BLOCK_STORE: lower_block_access(m, &b, op); return;
    case OP_DESC_LOAD:
    case OP_DESC_STORE:
    case OP_DESC_ATOMIC: lower_desc_access(m, &b, op); return;
    case OP_DESC_GATHER:
    case OP_DESC_SCATTER: lower_desc_rows(m, &b, op); return;
    case OP_FOR:
    case OP_WHILE:
    case OP_IF:
        if (touches_blocks(op)) {
            rebuild(m, op, depth);
            return;
        }
        break;
    default: break;
    }
    if (op_is(op, T_TERMINATOR))
        expand_terminator(m, op);
    for (int i = 0; i < op->nregion; i++)
        visit(m, op->regions[i], depth + 1);
}

static void
visit(Lowering *m, Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH)
        return;
    region_each(r, op) visit_op(m, op, depth);
}

bool
pass_lower_block_ptr(Func *f, PassCx *cx)
{
    Lowering m = {.s = cx->s,
                  .tmp = &cx->s->tmp,
                  .maps = cx->target.tma && cx->target.tensor_maps,
                  .flatten = cx->target.gpu};
    map_init(&m.parts, m.tmp);
    map_init(&m.readings, m.tmp);
    visit(&m, f->body, 0);
    for (int i = m.dead.n - 1; i >= 0; i--) /* users come after what they use */
        if (!op_has_uses(m.dead.at[i]))
            op_erase(m.dead.at[i]);
    return m.changed;
}
