/* Builds descriptors for the tensors that passes/schedule/tma_tile.c finds, and the
   offsets of a tile in them, as tile IR.

   Where all fields of the tensor map are known at launch, the descriptor stands at the
   start of the function and the launcher makes the map. Else it is a tensor_map, which
   the kernel writes in front of the loops that use it; maps with equal fields and boxes
   are shared. */
#include "passes/schedule/tma_tile.h"

#include "ir/base/util.h"
#include "ir/edit.h"

Value *
tma_build_poly(Builder *b, const Poly *p, const Type *t)
{
    Value *sum = NULL;
    int bits = type_bits(t);
    for (int i = 0; i < p->n; i++) {
        const PolyTerm *at = &p->t[i];
        Value *term = at->k == 1 && at->n ? NULL : build_int(b, t, at->k);
        for (int k = 0; k < at->n; k++) {
            Value *x = (Value *)at->x[k];
            if (type_bits(x->type) != bits)
                x = build_cast(b, type_bits(x->type) > bits ? OP_TRUNC : OP_SEXT, x, t);
            term = term ? build_binary(b, OP_MUL, term, x) : x;
        }
        sum = sum ? build_binary(b, OP_ADD, sum, term) : term;
    }
    return sum ? sum : build_int(b, t, 0);
}

/* A copy of what the host computes, at the place of the builder. */
static Value *
host_copy(Builder *b, Value *v)
{
    Value *in[2];
    const Op *op = v->op;
    if (!op)
        return v;
    for (int i = 0; i < op->noperand; i++)
        in[i] = host_copy(b, op_operand(op, i));
    return &build_op(b, op->kind, in, op->noperand, &op->attrs, &v->type, 1)->results[0];
}

static Poly
host_poly_copy(Builder *b, const Poly *p)
{
    Poly copy = *p;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->t[i].n; k++)
            copy.t[i].x[k] = host_copy(b, (Value *)p->t[i].x[k]);
    return copy;
}

/* p in 32 bits, as TMA takes it. A value beyond 32 bits is saturated: that is outside of
   any tensor, where loads read 0 and stores write nothing. */
static Value *
build_at(Builder *b, const Poly *p, const Type *i32, const Type *i64)
{
    if (tma_is_narrow(p))
        return tma_build_poly(b, p, i32);
    Value *v = tma_build_poly(b, p, i64);
    v = build_binary(b, OP_MINS, v, build_int(b, i64, INT32_MAX));
    v = build_binary(b, OP_MAXS, v, build_int(b, i64, INT32_MIN));
    return build_cast(b, OP_TRUNC, v, i32);
}

/* A size that the host computes. One of more than 31 bits becomes 0, which makes no valid
   tensor map, so the launch runs code without TMA. */
static Value *
build_size(Builder *b, const Poly *p, const Type *i32, const Type *i64)
{
    if (tma_is_narrow(p))
        return tma_build_poly(b, p, i32);
    Value *v = tma_build_poly(b, p, i64), *one = build_int(b, i64, 1);
    Value *beyond = build_binary(b, OP_DIVS, v, build_int(b, i64, (int64_t)1 << 31));
    beyond = build_binary(b, OP_MINS, beyond, one);
    v = build_binary(b, OP_MUL, v, build_binary(b, OP_SUB, one, beyond));
    return build_cast(b, OP_TRUNC, v, i32);
}

/* The size of a row; 0 where the stride is smaller than `size + before`, so that rows
   overlap. */
static Value *
build_apart(Builder *b, Value *size, Value *stride, int64_t before, const Type *i32,
            const Type *i64)
{
    Value *v = build_cast(b, OP_SEXT, size, i64), *one = build_int(b, i64, 1);
    Value *row = build_binary(b, OP_ADD, v, build_int(b, i64, before));
    Value *over = build_binary(b, OP_DIVS, row, build_binary(b, OP_ADD, stride, one));
    over = build_binary(b, OP_MAXS, over, build_int(b, i64, 0));
    over = build_binary(b, OP_MINS, over, one);
    v = build_binary(b, OP_MUL, v, build_binary(b, OP_SUB, one, over));
    return build_cast(b, OP_TRUNC, v, i32);
}

/* The number in r->dim of dimension i of the tensor, slowest first. */
static int
slowest(const TmaTile *r, int i)
{
    int extras = r->n - r->rank;
    if (i < extras)
        return r->n - 1 - i;
    return r->boxes.order[r->rank - 1 - (i - extras)];
}

/* Fills in the operands of a descriptor, base first. `copy`: what the host computes is
   computed once more at the place of the builder. */
static const Type *
build_fields(const TmaTile *r, Builder *b, bool copy, Value **in)
{
    TypeTable *tt = r->s->types;
    const Type *i32 = type_scalar(tt, SK_I32), *i64 = type_scalar(tt, SK_I64);
    int64_t shape[TMA_MAX_RANK];
    Poly base = copy ? host_poly_copy(b, &r->base) : r->base;
    in[0] = (Value *)r->ptr.ptr;
    if (base.n)
        in[0] = build_binary(b, OP_ADDPTR, in[0], tma_build_poly(b, &base, i64));
    for (int i = 0; i < r->n; i++) {
        const TmaDim *d = &r->dim[slowest(r, i)];
        shape[i] = d->box;
        Poly size = copy ? host_poly_copy(b, &d->size) : d->size;
        Poly stride = copy ? host_poly_copy(b, &d->stride) : d->stride;
        in[1 + i] = copy ? build_size(b, &size, i32, i64) : build_at(b, &size, i32, i64);
        in[1 + r->n + i] = tma_build_poly(b, &stride, i64);
    }
    if (r->apart) /* of two dimensions; rows are the last but one */
        in[r->n] = build_apart(b, in[r->n], in[2 * r->n - 1], r->apart - 1, i32, i64);
    return type_desc(tt, r->elem, r->n, shape);
}

/* An equal map that is written in front of `end`; NULL: none. */
static Op *
same_map(const Op *map, const Op *end)
{
    for (Op *op = map->parent->first; op != end; op = op->next)
        if (op != map && op->kind == OP_TENSOR_MAP &&
            op->results[0].type == map->results[0].type &&
            attr_eq(&op->attrs, &map->attrs) && tma_same_fields(op, map))
            return op;
    return NULL;
}

static bool
poly_uses(const Poly *p, const Op *op)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->t[i].n; k++)
            if (p->t[i].x[k]->op == op)
                return true;
    return false;
}

/* Does op compute a value that a field of the map uses? */
static bool
is_in_fields(const TmaTile *r, const Op *op)
{
    bool is = r->ptr.ptr->op == op || poly_uses(&r->base, op);
    for (int i = 0; i < r->n; i++)
        is |= poly_uses(&r->dim[i].size, op) || poly_uses(&r->dim[i].stride, op);
    return is;
}

/* Writes the map in the region where its fields are known, as soon as they are. Maps with
   the same place follow one another, in front of the first loop. */
static Value *
kernel_desc(const TmaTile *r, Loc loc)
{
    Value *in[1 + 2 * TMA_MAX_RANK];
    Op *at = op_in_region(r->inside, r->where), *last = NULL;
    for (Op *op = r->where->first; op != at; op = op->next)
        last = is_in_fields(r, op) ? op : last;
    Builder b = last ? builder_after(last) : builder_before(r->where->first);
    b.loc = loc;
    const Type *t = build_fields(r, &b, false, in);
    AttrList attrs = {0};
    int boxes = r->boxes.order[1] < 0 ? 1 : 2;
    attr_set_ints(&r->s->mod, &attrs, ATTR_BOX, r->boxes.box, boxes);
    attr_set_int(&r->s->mod, &attrs, ATTR_SWIZZLE, r->boxes.swizzle);
    Op *map = build_op(&b, OP_TENSOR_MAP, in, 1 + 2 * r->n, &attrs, &t, 1);
    Op *old = same_map(map, at);
    if (old)
        op_erase(map);
    return &(old ? old : map)->results[0];
}

Value *
tma_tile_desc(const TmaTile *r, Loc loc)
{
    Value *in[1 + 2 * TMA_MAX_RANK];
    if (r->where)
        return kernel_desc(r, loc);
    Builder b = builder_before(r->f->body->first);
    b.loc = loc;
    const Type *t = build_fields(r, &b, true, in);
    Op *desc = build_op(&b, OP_MAKE_DESC, in, 1 + 2 * r->n, NULL, &t, 1);
    return tma_has_room(r->s, r->f, desc, &r->boxes) ? &desc->results[0] : NULL;
}

int
tma_tile_at(const TmaTile *r, Builder *b, Value **out)
{
    TypeTable *tt = r->s->types;
    const Type *i32 = type_scalar(tt, SK_I32), *i64 = type_scalar(tt, SK_I64);
    for (int i = 0; i < r->n; i++) {
        const TmaDim *d = &r->dim[slowest(r, i)];
        out[i] = d->kind == TMA_CLIP || d->kind == TMA_ROWS
                     ? tma_clip_at(r, d, b)
                     : build_at(b, &d->at, i32, i64);
    }
    Value *gate = tma_tile_gate(r, b), **column = &out[r->n - 1];
    if (gate)
        *column = build_select(b, gate, *column, build_int(b, i32, TMA_OUTSIDE));
    return r->n;
}

Value *
tma_tile_ends(const TmaTile *r, Builder *b)
{
    TypeTable *tt = r->s->types;
    const Type *i32 = type_scalar(tt, SK_I32), *i64 = type_scalar(tt, SK_I64);
    Value *ok = NULL, *zero = build_int(b, i32, 0);
    for (int i = 0; i < r->n; i++) {
        Value *size = build_at(b, &r->dim[i].size, i32, i64);
        Value *some = build_cmp(b, OP_CMPI, "sgt", size, zero);
        ok = ok ? build_binary(b, OP_AND, ok, some) : some;
        if (i != r->boxes.order[0])
            continue;
        Value *rest = size, *piece = build_int(b, i32, TMA_ALIGN / r->boxes.bytes - 1);
        if (!tma_tile_in_pieces(r, &r->dim[i].at))
            rest = build_binary(b, OP_OR, rest, build_at(b, &r->dim[i].at, i32, i64));
        rest = build_binary(b, OP_AND, rest, piece);
        ok = build_binary(b, OP_AND, ok, build_cmp(b, OP_CMPI, "eq", rest, zero));
    }
    return ok;
}
