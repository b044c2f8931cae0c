/* Addresses as rows, columns and the rest; masks as bounds of the tensor. The addresses
   must be a plain matter of base + row * stride + column (ir/analysis/affine.h), the
   strides arguments or constants that are multiples of 16 bytes, the columns in the order
   in which the buffer lies. A mask may bound rows and columns from above and from below.
   Other parts of the address, `batch * stride`, become dimensions of their own, one
   element wide. */
#include "passes/schedule/tma_tile.h"

#include "ir/base/util.h"

#include <string.h>

enum { MASK_DEPTH = 16 };

/* ---- polynomials of the host */

static bool
is_argument(const Value *v)
{
    return !v->op && !v->region->parent;
}

/* An argument, or what the host computes of arguments: a number of chunks. */
static bool
is_host(const Value *v)
{
    return is_argument(v) || (type_is_int(v->type) && tma_host_value(v));
}

static bool
host_term(const PolyTerm *t)
{
    for (int i = 0; i < t->n; i++)
        if (!is_host(t->x[i]))
            return false;
    return true;
}

static bool
host_poly(const Poly *p)
{
    for (int i = 0; i < p->n; i++)
        if (!host_term(&p->t[i]))
            return false;
    return true;
}

/* Both parts of p. */
static void
split_host(const Poly *p, Poly *host, Poly *rest)
{
    *host = *rest = (Poly){0};
    for (int i = 0; i < p->n; i++)
        poly_add_term(host_term(&p->t[i]) ? host : rest, &p->t[i], 1);
}

/* May p, in elements of the tile, be a multiple of what TMA asks for? The launch looks at
   what arguments are in it: with others it runs code without tensor maps. */
static bool
may_be_aligned(const TmaTile *r, const Poly *p)
{
    int64_t k;
    return !poly_is_const(p, &k) || k * r->boxes.bytes % TMA_ALIGN == 0;
}

bool
tma_tile_in_pieces(const TmaTile *r, const Poly *p)
{
    for (int i = 0; i < p->n; i++) {
        int64_t div = r->boxes.bytes;
        for (int64_t k = p->t[i].k; k % 2 == 0 && div < TMA_ALIGN; k /= 2)
            div *= 2;
        for (int x = 0; x < p->t[i].n && div < TMA_ALIGN; x++)
            if (is_argument(p->t[i].x[x]))
                div *= max_i64(1, r->f->params[p->t[i].x[x]->index].div);
        if (div % TMA_ALIGN)
            return false;
    }
    return true;
}

/* ---- numbers of more than 32 bits, which TMA does not take */

/* Does every number in p have 32 bits? Its accumulators are taken not to wrap then. */
static bool
is_narrow(const Poly *p)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->t[i].n; k++)
            if (type_bits(p->t[i].x[k]->type) > 32)
                return false;
    return true;
}

/* lo..hi times what x may be; false when 64 bits do not hold that. */
static bool
times_range(const AxisFacts *x, int64_t *lo, int64_t *hi)
{
    int64_t p[4];
    if (__builtin_mul_overflow(*lo, x->lo, &p[0]) ||
        __builtin_mul_overflow(*lo, x->hi, &p[1]) ||
        __builtin_mul_overflow(*hi, x->lo, &p[2]) ||
        __builtin_mul_overflow(*hi, x->hi, &p[3]))
        return false;
    *lo = min_i64(min_i64(p[0], p[1]), min_i64(p[2], p[3]));
    *hi = max_i64(max_i64(p[0], p[1]), max_i64(p[2], p[3]));
    return true;
}

/* Is an index p into rows of such a stride, in elements, taken for, or known to be, a
   number of 32 bits? Where no mask bounds it, memory does, unless rows are short. */
static bool
fits(TmaTile *r, const Poly *p, const Poly *stride)
{
    enum { SHORT_ROW = 128 };
    int64_t low = 0, high = 0;
    bool is_long = stride->n == 1 && stride->t[0].k * r->boxes.bytes >= SHORT_ROW;
    if (is_narrow(p) || is_long)
        return true;
    r->axis = r->axis ? r->axis : axis_new(r->f, &r->s->tmp);
    for (int i = 0; i < p->n; i++) {
        int64_t lo = p->t[i].k, hi = lo;
        for (int k = 0; k < p->t[i].n; k++)
            if (!times_range(axis_of(r->axis, p->t[i].x[k]), &lo, &hi))
                return false;
        if (__builtin_add_overflow(low, lo, &low) ||
            __builtin_add_overflow(high, hi, &high))
            return false;
    }
    return low >= INT32_MIN && high <= INT32_MAX;
}

/* ---- masks: conjunctions of accumulators that are at least 0 */

static bool
bound(TmaTile *r, const Affine *sum)
{
    int64_t k, dim = -1, sign = 0;
    if (sum->ptr)
        return false;
    for (int d = 0; d < AFFINE_RANK; d++) {
        if (!sum->at[d].n)
            continue;
        if (dim >= 0 || d >= r->rank || !poly_is_const(&sum->at[d], &k) ||
            (k != 1 && k != -1))
            return false;
        dim = d;
        sign = k;
    }
    if (dim < 0)
        return poly_is_const(&sum->base, &k) && k >= 0;
    TmaDim *to = &r->dim[dim];
    Poly p = sum->base, one = poly_const(1);
    if (sign > 0) { /* at + index >= 0 */
        bool again = to->low && !poly_same(&to->at, &p);
        to->low = true;
        to->at = p;
        return !again;
    }
    /* index < p + 1 */
    if (!poly_add(&p, &one, 1) || (to->bounded && !poly_same(&to->size, &p)))
        return false;
    to->bounded = true;
    to->size = p;
    return true;
}

/* a <= b, a < b */
static bool
compared(const Affine *a, const Affine *b, bool less, Affine *out)
{
    Poly one = poly_const(1);
    *out = *b;
    bool ok = !a->ptr && poly_add(&out->base, &a->base, -1);
    for (int d = 0; d < AFFINE_RANK && ok; d++)
        ok = poly_add(&out->at[d], &a->at[d], -1);
    return ok && (!less || poly_add(&out->base, &one, -1));
}

/* Where the dimensions of a part of the mask are among those of the tile; -1: one of size
   1, along which it is repeated. */
typedef struct Where {
    int dim[MAX_RANK];
} Where;

static bool
comparison(TmaTile *r, const Op *op, Where at)
{
    Affine a, b, sum, out = {0};
    Name pred = attr_str(&op->attrs, ATTR_PRED);
    bool turned = pred[1] == 'g';
    if (pred[0] != 's' || !affine_of(op_operand(op, turned), r->loop, &a) ||
        !affine_of(op_operand(op, !turned), r->loop, &b) ||
        !compared(&a, &b, pred[2] == 't', &sum))
        return false;
    const Type *t = op->results[0].type;
    int rank = type_is_tile(t) ? t->rank : 0;
    for (int d = 0; d < AFFINE_RANK; d++) {
        if (!sum.at[d].n || (d < rank && t->shape[d] == 1))
            continue;
        if (d >= rank || at.dim[d] < 0)
            return false;
        out.at[at.dim[d]] = sum.at[d];
    }
    out.base = sum.base;
    return bound(r, &out);
}

static bool
mask_part(TmaTile *r, const Value *v, Where at, int depth)
{
    const Op *op = v->op;
    if (!op || depth > MASK_DEPTH)
        return false;
    Where in = at;
    switch ((int)op->kind) {
    case OP_AND:
        return mask_part(r, op_operand(op, 0), at, depth + 1) &&
               mask_part(r, op_operand(op, 1), at, depth + 1);
    case OP_CONST: return attr_int(&op->attrs, ATTR_VALUE, 0) != 0;
    case OP_EXPAND_DIMS: {
        int axis = (int)attr_int(&op->attrs, ATTR_AXIS, 0);
        for (int d = axis; d < op_operand(op, 0)->type->rank; d++)
            in.dim[d] = at.dim[d + 1];
        return mask_part(r, op_operand(op, 0), in, depth + 1);
    }
    case OP_BROADCAST:
        for (int d = 0; d < v->type->rank; d++)
            if (op_operand(op, 0)->type->shape[d] == 1)
                in.dim[d] = -1;
        return mask_part(r, op_operand(op, 0), in, depth + 1);
    case OP_SPLAT:
    case OP_CONVERT_LAYOUT: return mask_part(r, op_operand(op, 0), at, depth + 1);
    case OP_CMPI: return comparison(r, op, at);
    default: return false;
    }
}

/* ---- dimensions */

/* From the bounds to places and sizes: index < p means at + index < size, where p is the
   size less `at`. */
static bool
place_bounded(TmaDim *d)
{
    Poly host, rest;
    if (!d->bounded)
        return !d->low; /* from below alone: the tile's end has no name */
    if (d->low)
        return poly_add(&d->size, &d->at, 1) && host_poly(&d->size);
    split_host(&d->size, &host, &rest);
    d->size = host;
    d->at = (Poly){0};
    return poly_add(&d->at, &rest, -1);
}

/* A part of the address that belongs to no dimension of the tile. */
static bool
extra(TmaTile *r, const PolyTerm *t)
{
    PolyTerm stride = {.k = t->k}, at = {.k = 1};
    if (t->k < 1)
        return false;
    for (int i = 0; i < t->n; i++) {
        PolyTerm *to = is_host(t->x[i]) ? &stride : &at;
        to->x[to->n++] = t->x[i];
    }
    Poly by = {.n = 1, .t = {stride}};
    for (int i = r->rank; i < r->n; i++)
        if (poly_same(&r->dim[i].stride, &by))
            return poly_add_term(&r->dim[i].at, &at, 1);
    if (r->n == TMA_MAX_RANK)
        return false;
    r->dim[r->n++] = (TmaDim){.stride = by, .at = {.n = 1, .t = {at}}, .box = 1};
    return true;
}

/* Does a part of the address fall, as with `n - 1 - i`? What it is taken from has to be
   in the same index then: one below 0 is outside of the tensor, wherever that begins. */
static bool
falls(const Poly *p)
{
    for (int i = 0; i < p->n; i++)
        if (p->t[i].k < 0 && !host_term(&p->t[i]))
            return true;
    return false;
}

/* One term of the address, to where it belongs; with `based` what the host knows is
   added to where the tensor begins. */
static bool
place_term(TmaTile *r, const PolyTerm *t, bool based)
{
    int unit = r->boxes.order[0];
    bool plain = true; /* no argument in it */
    if (based && host_term(t))
        return poly_add_term(&r->base, t, 1);
    for (int i = 0; i < t->n; i++)
        plain &= !is_host(t->x[i]);
    for (int d = 0; d < r->rank; d++) {
        PolyTerm q;
        TmaDim *to = &r->dim[d];
        if (d != unit && !to->bounded && to->stride.n == 1 &&
            poly_divide(t, &to->stride.t[0], &q) &&
            fits(r, &(Poly){.n = 1, .t = {q}}, &to->stride))
            return poly_add_term(&to->at, &q, 1);
    }
    if (plain && !r->dim[unit].bounded)
        return poly_add_term(&r->dim[unit].at, t, 1);
    return (based || !host_term(t)) && extra(r, t);
}

/* The address as rows, columns and the rest. */
static bool
place(TmaTile *r)
{
    Poly left = r->ptr.base;
    for (int d = 0; d < r->rank; d++) {
        Poly part;
        if (!place_bounded(&r->dim[d]) ||
            (r->dim[d].bounded && (!poly_mul(&r->dim[d].at, &r->dim[d].stride, &part) ||
                                   !poly_add(&left, &part, -1))))
            return false;
    }
    bool based = !falls(&left);
    for (int i = 0; i < left.n; i++)
        if (!place_term(r, &left.t[i], based))
            return false;
    for (int i = 0; i < r->n; i++) {
        TmaDim *d = &r->dim[i];
        if (!d->bounded) /* nothing is clipped */
            d->size = poly_const(d->at.n ? INT32_MAX : d->box);
    }
    return true;
}

/* Does every row begin on 16 bytes, for all that is known? */
static bool
rows_may_be_aligned(const TmaTile *r)
{
    bool ok = may_be_aligned(r, &r->base);
    for (int i = 0; i < r->n; i++)
        ok &= i == r->boxes.order[0] || may_be_aligned(r, &r->dim[i].stride);
    return ok;
}

static const char *
open_tile(TmaTile *r, const Value *ptr)
{
    const Type *t = ptr->type;
    int64_t one;
    if (!affine_of(ptr, r->loop, &r->ptr) || !r->ptr.ptr)
        return "its addresses are no sum of rows and columns";
    const Value *root = r->ptr.ptr;
    r->elem = type_elem(t)->elem;
    if (!is_argument(root))
        return "its address comes from no argument of the launch";
    if (root->type->elem != r->elem)
        return "it reads an argument as another type";
    r->rank = r->n = t->rank;
    for (int d = 0; d < r->rank; d++) {
        TmaDim *to = &r->dim[d];
        to->stride = r->ptr.at[d];
        to->box = t->shape[d];
        if (!to->stride.n || !host_poly(&to->stride))
            return "a stride is 0, or no argument of the launch";
    }
    return poly_is_const(&r->dim[r->boxes.order[0]].stride, &one) && one == 1
               ? NULL
               : "neighbours in a row of the buffer are none in memory";
}

/* ---- building */

static Value *
build_poly(Builder *b, const Poly *p, const Type *t)
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

/* The same of the host's numbers, computed at the builder's place. */
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

/* p as TMA counts, in 32 bits. What lies beyond them is as far out of the tensor
   as there is: 0 is read there, nothing written. */
static Value *
build_at(Builder *b, const Poly *p, const Type *i32, const Type *i64)
{
    if (is_narrow(p))
        return build_poly(b, p, i32);
    Value *v = build_poly(b, p, i64);
    v = build_binary(b, OP_MINS, v, build_int(b, i64, INT32_MAX));
    v = build_binary(b, OP_MAXS, v, build_int(b, i64, INT32_MIN));
    return build_cast(b, OP_TRUNC, v, i32);
}

/* A size that the host finds; one of more than 31 bits becomes 0, which makes no tensor
   map: the launch runs code without. */
static Value *
build_size(Builder *b, const Poly *p, const Type *i32, const Type *i64)
{
    if (is_narrow(p))
        return build_poly(b, p, i32);
    Value *v = build_poly(b, p, i64), *one = build_int(b, i64, 1);
    Value *beyond = build_binary(b, OP_DIVS, v, build_int(b, i64, (int64_t)1 << 31));
    beyond = build_binary(b, OP_MINS, beyond, one);
    v = build_binary(b, OP_MUL, v, build_binary(b, OP_SUB, one, beyond));
    return build_cast(b, OP_TRUNC, v, i32);
}

/* Dimension of the tensor, slowest first, as a number of r->dim. */
static int
slowest(const TmaTile *r, int i)
{
    int extras = r->n - r->rank;
    if (i < extras)
        return r->n - 1 - i;
    return r->boxes.order[r->rank - 1 - (i - extras)];
}

Value *
tma_tile_desc(const TmaTile *r, Loc loc)
{
    TypeTable *tt = r->s->types;
    const Type *i32 = type_scalar(tt, SK_I32), *i64 = type_scalar(tt, SK_I64);
    Value *in[1 + 2 * TMA_MAX_RANK];
    int64_t shape[TMA_MAX_RANK];
    Builder b = builder_before(r->f->body->first);
    b.loc = loc;
    in[0] = (Value *)r->ptr.ptr;
    Poly base = host_poly_copy(&b, &r->base);
    if (base.n)
        in[0] = build_binary(&b, OP_ADDPTR, in[0], build_poly(&b, &base, i64));
    for (int i = 0; i < r->n; i++) {
        const TmaDim *d = &r->dim[slowest(r, i)];
        shape[i] = d->box;
        Poly size = host_poly_copy(&b, &d->size);
        Poly stride = host_poly_copy(&b, &d->stride);
        in[1 + i] = build_size(&b, &size, i32, i64);
        in[1 + r->n + i] = build_poly(&b, &stride, i64);
    }
    const Type *t = type_desc(tt, r->elem, r->n, shape);
    Op *desc = build_op(&b, OP_MAKE_DESC, in, 1 + 2 * r->n, NULL, &t, 1);
    return tma_has_room(r->s, r->f, desc, &r->boxes) ? &desc->results[0] : NULL;
}

int
tma_tile_at(const TmaTile *r, Builder *b, Value **out)
{
    TypeTable *tt = r->s->types;
    const Type *i32 = type_scalar(tt, SK_I32), *i64 = type_scalar(tt, SK_I64);
    for (int i = 0; i < r->n; i++)
        out[i] = build_at(b, &r->dim[slowest(r, i)].at, i32, i64);
    return r->n;
}

static const char *
make_tile(TmaTile *r, const Value *ptr, const Value *mask, const Type *mem)
{
    Where at;
    for (int d = 0; d < MAX_RANK; d++)
        at.dim[d] = d;
    if (!tma_boxes(r->s, mem, &r->boxes))
        return "the buffer is in no order that TMA has";
    const char *why = open_tile(r, ptr);
    if (why)
        return why;
    if (mask && !mask_part(r, mask, at, 0))
        return "the mask is more than bounds of rows and columns";
    if (!place(r))
        return "rows and columns begin at what is no sum of arguments and indices";
    if (!rows_may_be_aligned(r))
        return "rows do not begin on 16 bytes";
    for (int i = 0; i < r->n; i++) {
        const TmaDim *d = &r->dim[i];
        if (!d->bounded && !fits(r, &d->at, &d->stride))
            return "an index may have more than 32 bits, and no mask bounds it";
    }
    return NULL;
}

TmaTile *
tma_tile(Func *f, const Op *loop, const Value *ptr, const Value *mask, const Type *mem)
{
    Session *s = f->module->s;
    TmaTile *r = arena_new(&s->tmp, TmaTile);
    *r = (TmaTile){.s = s, .f = f, .loop = loop};
    r->why = make_tile(r, ptr, mask, mem);
    return r;
}
