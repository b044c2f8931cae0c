/* Masks that are the same for all elements of a tile, or of parts of it: rows of several
   blocks or groups, each of which is read or not. Where a part is not to be read, its
   boxes are placed outside of the tensor, and TMA fills them with zeros.

    %w = select %first, %x, %y : tile<128xi1>     // %first: rows below 64
    %m = expand_dims %w ..                    =>  %live = or (zext %x), (shl (zext %y), 1)
    %a = load %ptrs, (broadcast %m)               %a = desc_load .., %live {parted=[0,64]}

   A part of the mask is computed again as a scalar, at the first element of each part of
   the tile; so it consists of scalars, constants and indices. */
#include "ir/base/util.h"
#include "passes/schedule/tma_tile.h"

enum { DEPTH = 16, MOST_PARTS = 32 };

/* What a tile holds at index i along dimension d; d -1: it has one element. b NULL: 0 is
   returned where it cannot be computed, else a value that says nothing. */
static Value *
at_index(Builder *b, Value *v, int d, int64_t i, int depth)
{
    const Op *op = v->op;
    Value *in[3];
    if (!type_is_tile(v->type))
        return v;
    if (!op || depth > DEPTH)
        return NULL;
    const Type *elem = type_elem(v->type);
    switch ((int)op->kind) {
    case OP_SPLAT: return op_operand(op, 0);
    case OP_CONVERT_LAYOUT: return at_index(b, op_operand(op, 0), d, i, depth + 1);
    case OP_ARANGE:
        i = attr_int(&op->attrs, ATTR_START, 0) + (d == 0 ? i : 0);
        return b ? build_int(b, elem, i) : v;
    case OP_CONST:
        return b ? &build_op(b, OP_CONST, NULL, 0, &op->attrs, &elem, 1)->results[0] : v;
    case OP_EXPAND_DIMS: {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        return at_index(b, op_operand(op, 0), d == axis ? -1 : d - (d > axis), i,
                        depth + 1);
    }
    case OP_BROADCAST:
        d = d >= 0 && op_operand(op, 0)->type->shape[d] == 1 ? -1 : d;
        return at_index(b, op_operand(op, 0), d, i, depth + 1);
    default: break;
    }
    if (!op_is(op, T_ELEMENTWISE) || !op_is(op, T_PURE) || op->nresult != 1 ||
        op->noperand > COUNT_OF(in))
        return NULL;
    for (int k = 0; k < op->noperand; k++)
        if (!(in[k] = at_index(b, op_operand(op, k), d, i, depth + 1)))
            return NULL;
    return b ? &build_op(b, op->kind, in, op->noperand, &op->attrs, &elem, 1)->results[0]
             : v;
}

/* The one dimension of v along which its elements may differ, -1: none, -2: several. */
static int
dimension_of(const AxisFacts *facts, const Type *t)
{
    int dim = -1;
    for (int d = 0; d < t->rank; d++)
        if (facts->constancy[d] < t->shape[d])
            dim = dim == -1 ? d : -2;
    return dim;
}

bool
tma_part(TmaTile *r, const Value *v, const int *dims)
{
    TmaPart *part = &r->parts[r->npart];
    if (r->npart == TMA_MAX_RANK)
        return false;
    *part = (TmaPart){.v = (Value *)v, .dim = -1};
    if (!type_is_tile(v->type)) {
        r->npart++;
        return true;
    }
    r->axis = r->axis ? r->axis : axis_new(r->f, &r->s->tmp);
    const AxisFacts *facts = axis_of(r->axis, v);
    part->dim = dimension_of(facts, v->type);
    if (part->dim == -2 || !at_index(NULL, part->v, part->dim, 0, 0))
        return false;
    r->npart++;
    if (part->dim == -1)
        return true;
    int d = dims[part->dim], along;
    int64_t each = facts->constancy[part->dim];
    if (d < 0 || r->rank < 2 || (r->parted && r->parted_dim != d))
        return false;
    r->parted = r->parted ? min_i64(r->parted, each) : each;
    r->parted_dim = d;
    return r->dim[d].box / r->parted <= MOST_PARTS &&
           tma_part_boxes(&r->boxes, d, r->parted, &along);
}

/* Whether all that bounds the tile, or its part from element i on, lets it be read; NULL:
   nothing does. */
static Value *
lives(const TmaTile *r, Builder *b, bool whole, int64_t i)
{
    Value *all = NULL;
    for (int k = 0; k < r->npart; k++) {
        const TmaPart *part = &r->parts[k];
        if (whole != (part->dim == -1))
            continue;
        Value *v = at_index(b, part->v, part->dim, i, 0);
        all = all ? build_binary(b, OP_AND, all, v) : v;
    }
    return all;
}

Value *
tma_tile_gate(const TmaTile *r, Builder *b)
{
    TypeTable *tt = r->s->types;
    Value *all = lives(r, b, true, 0);
    for (int i = 0; i < r->nwhole; i++) {
        const Type *t = type_scalar(tt, tma_is_narrow(&r->whole[i]) ? SK_I32 : SK_I64);
        Value *sum = tma_build_poly(b, &r->whole[i], t);
        Value *v = build_cmp(b, OP_CMPI, "sge", sum, build_int(b, t, 0));
        all = all ? build_binary(b, OP_AND, all, v) : v;
    }
    return all;
}

Value *
tma_tile_live(const TmaTile *r, Builder *b)
{
    const Type *i32 = type_scalar(r->s->types, SK_I32);
    Value *bits = NULL;
    for (int64_t i = 0; r->parted && i < r->dim[r->parted_dim].box / r->parted; i++) {
        Value *v = build_cast(b, OP_ZEXT, lives(r, b, false, i * r->parted), i32);
        v = i ? build_binary(b, OP_SHL, v, build_int(b, i32, i)) : v;
        bits = bits ? build_binary(b, OP_OR, bits, v) : v;
    }
    return bits;
}
