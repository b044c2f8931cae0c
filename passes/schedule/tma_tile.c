/* Splits addresses into rows, columns and the rest, and masks into bounds of the tensor.
   The addresses must be an affine sum base + row * stride + column
   (ir/analysis/affine.h). The strides must be known where the tensor map is made: to the
   launch or, where a descriptor of the source promises that they are multiples of 16
   bytes, to the kernel itself. The columns must be in the order in which they lie in the
   buffer. A mask may bound rows and columns from above and from below. Other parts of the
   address, such as `batch * stride`, become dimensions of their own, one element wide. */
#include "passes/schedule/tma_tile.h"

#include "ir/base/util.h"
#include "ir/edit.h"

#include <string.h>

/* Elements of a row that no mask ends: as many as an index reaches, and a whole number of
   16 bytes, which is what rows that are stored to must have. */
enum { MASK_DEPTH = 16, UNBOUNDED = INT32_MAX / 16 * 16 };

/* ---- what the fields of a tensor map are made of */

static bool
is_argument(const Value *v)
{
    return !v->op && !v->region->parent;
}

/* Is v known where the map is made? At launch: an argument, or what the host can compute
   of arguments, such as a number of chunks. In the kernel: what the region of the map
   sees. */
static bool
is_fixed(const TmaTile *r, const Value *v)
{
    if (r->where)
        return region_within(r->where, v->op ? v->op->parent : v->region);
    return is_argument(v) || (type_is_int(v->type) && tma_host_value(v));
}

static bool
fixed_term(const TmaTile *r, const PolyTerm *t)
{
    for (int i = 0; i < t->n; i++)
        if (!is_fixed(r, t->x[i]))
            return false;
    return true;
}

static bool
fixed_poly(const TmaTile *r, const Poly *p)
{
    for (int i = 0; i < p->n; i++)
        if (!fixed_term(r, &p->t[i]))
            return false;
    return true;
}

/* Splits p into its fixed terms and the rest. */
static void
split_fixed(const TmaTile *r, const Poly *p, Poly *fixed, Poly *rest)
{
    *fixed = *rest = (Poly){0};
    for (int i = 0; i < p->n; i++)
        poly_add_term(fixed_term(r, &p->t[i]) ? fixed : rest, &p->t[i], 1);
}

/* Does a descriptor promise that the term is a multiple of 16 bytes? It does for
   multiples of a stride. */
static bool
is_promised(const TmaTile *r, const PolyTerm *t)
{
    PolyTerm q;
    for (int d = 0; d < r->rank; d++) {
        const Poly *by = &r->dim[d].stride;
        if (d != r->boxes.order[0] && by->n == 1 && by->t[0].n &&
            poly_divide(t, &by->t[0], &q))
            return true;
    }
    return false;
}

/* Can p, in elements of the tile, be a multiple of the alignment that TMA needs? The
   launch checks the arguments in it and otherwise runs code without tensor maps. A kernel
   checks nothing, so there it must be known or promised. */
static bool
may_be_aligned(const TmaTile *r, const Poly *p)
{
    int64_t k;
    if (poly_is_const(p, &k))
        return k * r->boxes.bytes % TMA_ALIGN == 0;
    for (int i = 0; i < p->n && r->where; i++) {
        Poly one = {.n = 1, .t = {p->t[i]}};
        if (!tma_tile_in_pieces(r, &one) && !is_promised(r, &p->t[i]))
            return false;
    }
    return true;
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

/* b - a, if that is a constant. */
static bool
distance(const Poly *a, const Poly *b, int64_t *by)
{
    Poly p = *b;
    return poly_add(&p, a, -1) && poly_is_const(&p, by);
}

/* The tensor of b may begin some columns and rows behind that of a, and ends with it. Of
   all dimensions of the tile one is enough in which no index is both tiles'. */
bool
tma_tile_beside(const TmaTile *a, const TmaTile *b, int64_t *behind)
{
    int unit = a->boxes.order[0];
    int64_t none = 0;
    bool beside = false, alike = !a->where && !b->where && a->rank == 2 && b->rank == 2 &&
                                 a->n == b->n && b->boxes.order[0] == unit &&
                                 a->ptr.ptr == b->ptr.ptr && a->dim[unit].bounded;
    Poly base = b->base;
    alike &= poly_add(&base, &a->base, -1);
    for (int i = 0; i < a->n && alike; i++) {
        const TmaDim *x = &a->dim[i], *y = &b->dim[i];
        int64_t by = 0, moved = 0;
        alike = x->kind == y->kind && x->bounded == y->bounded && x->nleft == y->nleft &&
                poly_same(&x->stride, &y->stride) && distance(&x->at, &y->at, &by) &&
                (!x->bounded || distance(&y->size, &x->size, &moved)) &&
                poly_add(&base, &x->stride, -moved);
        for (int k = 0; k < x->nleft && alike && x->kind != TMA_PLAIN; k++)
            alike = poly_same(&x->left[k], &y->left[k]);
        by += moved;
        bool apart =
            i < a->rank && x->kind == TMA_PLAIN && (by >= x->box || -by >= y->box);
        alike &= by == 0 || apart;
        beside |= apart;
        if (i == unit)
            *behind = moved;
    }
    return alike && beside && poly_is_const(&base, &none) && none == 0;
}

/* ---- numbers of more than 32 bits, which TMA does not take */

bool
tma_is_narrow(const Poly *p)
{
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->t[i].n; k++)
            if (type_bits(p->t[i].x[k]->type) > 32)
                return false;
    return true;
}

/* Multiplies the range lo..hi by that of x; false on overflow of 64 bits. */
bool
tma_times_range(const AxisFacts *x, int64_t *lo, int64_t *hi)
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

/* Does p fit into 32 bits by its range? */
static bool
in_range(TmaTile *r, const Poly *p)
{
    int64_t low = 0, high = 0;
    r->axis = r->axis ? r->axis : axis_new(r->f, &r->s->tmp);
    for (int i = 0; i < p->n; i++) {
        int64_t lo = p->t[i].k, hi = lo;
        for (int k = 0; k < p->t[i].n; k++)
            if (!tma_times_range(axis_of(r->axis, p->t[i].x[k]), &lo, &hi))
                return false;
        if (__builtin_add_overflow(low, lo, &low) ||
            __builtin_add_overflow(high, hi, &high))
            return false;
    }
    return low >= INT32_MIN && high <= INT32_MAX;
}

/* Does an index p into rows of this stride fit into 32 bits, by its type or by its range?
   Where no mask bounds it, the size of memory does, unless rows are short. */
static bool
fits(TmaTile *r, const Poly *p, const Poly *stride)
{
    enum { SHORT_ROW = 128 };
    bool is_long = stride->n == 1 && stride->t[0].k * r->boxes.bytes >= SHORT_ROW;
    return tma_is_narrow(p) || is_long || in_range(r, p);
}

/* May an index have lost so large a number to the tensor's base or size that the rest of
   it has more than 32 bits? In (i - 2147483640) * 32 that is i * 32. What is left of an
   index that fits does too, but for tensors of 2^30 rows or columns, when less than
   2^30 was taken. */
static bool
is_torn(TmaTile *r)
{
    enum { LITTLE = 1 << 30 };
    bool torn = false;
    for (int i = -1; i < r->n; i++) {
        const Poly *p = i < 0 ? &r->base : &r->dim[i].size;
        for (int k = 0; k < p->n; k++)
            torn |= (i < 0 || !p->t[k].n) &&
                    (p->t[k].k > LITTLE || p->t[k].k < -LITTLE) &&
                    !(i >= 0 && !r->dim[i].bounded);
    }
    for (int i = 0; torn && i < r->n; i++)
        if (!in_range(r, &r->dim[i].at))
            return true;
    return false;
}

/* ---- masks: conjunctions of sums that are at least 0 */

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
    if (dim < 0 && poly_is_const(&sum->base, &k))
        return k >= 0;
    if (dim < 0) {
        if (r->nwhole == TMA_MAX_RANK)
            return false;
        r->whole[r->nwhole++] = sum->base;
        return true;
    }
    TmaDim *to = &r->dim[dim];
    Poly p = sum->base, one = poly_const(1);
    if (sign > 0) { /* at + index >= 0 */
        bool again = to->low && !poly_same(&to->at, &p);
        to->low = true;
        to->at = p;
        return !again;
    }
    /* index < p + 1 */
    if (!poly_add(&p, &one, 1))
        return false;
    for (int i = 0; i < to->nleft; i++)
        if (poly_same(&to->left[i], &p))
            return true;
    if (to->nleft == TMA_BOUNDS)
        return false;
    to->bounded = true;
    to->left[to->nleft++] = p;
    return true;
}

/* *out = b - a, less 1 if `less`: at least 0 where a <= b, or a < b. */
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

/* The dimension of the tile that each dimension of a part of the mask is; -1: one of size
   1, along which the part is broadcast. */
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
        return tma_part(r, v, at.dim);
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
    case OP_CMPI: return comparison(r, op, at) || tma_part(r, v, at.dim);
    default: return tma_part(r, v, at.dim);
    }
}

/* ---- dimensions */

/* Does the address also move along dimension d by a value that only the program knows? */
static bool
moves_along(const TmaTile *r, int d, const Poly *address)
{
    const Poly *by = &r->dim[d].stride;
    for (int i = 0; i < address->n; i++) {
        const PolyTerm *t = &address->t[i];
        PolyTerm q = *t;
        bool plain = true;
        for (int k = 0; k < t->n; k++)
            plain &= !is_fixed(r, t->x[k]);
        bool along =
            d == r->boxes.order[0] ? plain : by->n == 1 && poly_divide(t, &by->t[0], &q);
        if (along && !fixed_term(r, &q))
            return true;
    }
    return false;
}

/* An index that decreases, as `n - 1 - i` does with an argument n, or that memory holds a
   part of, is counted from where the argument of the address points: what is fixed of the
   address along dimension d becomes part of the index, and of the size. */
static bool
from_start(TmaTile *r, int d, const Poly *address, Poly *at, Poly *size)
{
    const Poly *by = &r->dim[d].stride;
    PolyTerm q;
    if (by->n != 1)
        return false;
    for (int i = 0; i < address->n; i++)
        if (fixed_term(r, &address->t[i]) && poly_divide(&address->t[i], &by->t[0], &q) &&
            (!poly_add_term(at, &q, 1) || !poly_add_term(size, &q, 1)))
            return false;
    return true;
}

/* May `at` be an index of dimension d? In front of index 0 TMA reads zeros, so the index
   must not be negative where the tile is in memory: it is known not to be, or what
   remains of the address consists of arguments alone. */
static bool
is_index(TmaTile *r, int d, const Poly *at, const Poly *address)
{
    Poly part, rest = *address;
    return tma_counts_up(r, at) ||
           (poly_mul(at, &r->dim[d].stride, &part) && poly_add(&rest, &part, -1) &&
            !moves_along(r, d, &rest));
}

/* Of index < n - 128, where the address has 128 more, the 128 are part of the index, not
   of the tensor's base: n may be less, and a tensor of no elements has no map. */
static bool
from_address(const TmaTile *r, int d, const Poly *address, Poly *at, Poly *size)
{
    const Poly *by = &r->dim[d].stride;
    for (int i = 0; i < size->n; i++) {
        const PolyTerm c = {.k = -size->t[i].k};
        if (size->t[i].n || size->n == 1 || c.k <= 0 || by->n != 1)
            continue;
        for (int k = 0; k < address->n; k++) {
            PolyTerm q;
            if (poly_divide(&address->t[k], &by->t[0], &q) && !q.n && q.k >= c.k)
                return poly_add_term(at, &c, 1) && poly_add_term(size, &c, 1);
        }
    }
    return true;
}

/* Do rows d have one stride, and an index of which memory holds a part? */
static bool
is_of_memory(TmaTile *r, int d, const Poly *at)
{
    bool some = false;
    for (int i = 0; i < at->n; i++)
        some |= tma_is_below(r, &at->t[i], TMA_MEMORY);
    return some && d != r->boxes.order[0] && r->dim[d].stride.n == 1;
}

/* Offset and size of a bounded dimension: index < p means at + index < size, where p is
   the size less `at`. NULL, or why not. */
static const char *
place_bounded(TmaTile *r, int dim, const Poly *address)
{
    static const char *const why = "a bound is not known at launch";
    TmaDim *d = &r->dim[dim];
    Poly fixed, rest, at = {0};
    int64_t size;
    if (!d->bounded)
        return d->low ? why : NULL; /* from below alone: the tile's end has no name */
    if (d->low) {
        d->size = d->left[0];
        return d->nleft == 1 && poly_add(&d->size, &d->at, 1) && fixed_poly(r, &d->size)
                   ? NULL
                   : why;
    }
    split_fixed(r, &d->left[0], &fixed, &rest);
    if (d->nleft > 1 || !poly_add(&at, &rest, -1) ||
        !from_address(r, dim, address, &at, &fixed) ||
        ((!tma_counts_up(r, &at) || is_of_memory(r, dim, &at)) &&
         !from_start(r, dim, address, &at, &fixed)) ||
        !is_index(r, dim, &at, address) || (poly_is_const(&fixed, &size) && size < 1))
        return tma_clip(r, dim);
    d->size = fixed;
    d->at = at;
    return NULL;
}

/* Makes a term of the address that belongs to no dimension of the tile one of its own. */
static bool
extra(TmaTile *r, const PolyTerm *t)
{
    PolyTerm stride = {.k = t->k}, at = {.k = 1};
    if (t->k < 1)
        return false;
    for (int i = 0; i < t->n; i++) {
        PolyTerm *to = is_fixed(r, t->x[i]) ? &stride : &at;
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

/* Does a part of the address decrease, as with `n - 1 - i`, or count from below 0? What
   it is subtracted from, or added to, must then be in the same index: an index below 0 is
   outside of the tensor, wherever that begins. */
static bool
falls(TmaTile *r, const Poly *p)
{
    for (int i = 0; i < p->n; i++)
        if ((p->t[i].k < 0 && !fixed_term(r, &p->t[i])) ||
            tma_is_below(r, &p->t[i], TMA_NUMBERS))
            return true;
    return false;
}

/* May an index with a counter that no mask bounds be below 0, as far as ranges tell? */
static bool
is_in_front(TmaTile *r, const Poly *at)
{
    for (int i = 0; i < at->n; i++)
        if (tma_is_below(r, &at->t[i], TMA_COUNTERS))
            return !tma_counts_up(r, at);
    return false;
}

/* The dimension of rows that a term of the address steps along, and how many; NULL: none
   without a bound. */
static TmaDim *
rows_of(TmaTile *r, const PolyTerm *t, PolyTerm *steps)
{
    for (int d = 0; d < r->rank; d++) {
        TmaDim *to = &r->dim[d];
        for (int i = r->rank; i < r->n && to->kind == TMA_CLIP; i++)
            to = r->dim[i].kind == TMA_ROWS ? &r->dim[i] : to;
        if (d != r->boxes.order[0] && !to->bounded && to->stride.n == 1 &&
            poly_divide(t, &to->stride.t[0], steps) &&
            fits(r, &(Poly){.n = 1, .t = {*steps}}, &to->stride))
            return to;
    }
    return NULL;
}

/* A term may become part of the index within rows: no argument is in it, so that it is
   small. */
static bool
is_within(const TmaTile *r, const PolyTerm *t)
{
    bool plain = !r->dim[r->boxes.order[0]].bounded;
    for (int i = 0; i < t->n; i++)
        plain &= !is_fixed(r, t->x[i]);
    return plain;
}

/* Finds the indices that memory holds a part of. */
static void
find_of_memory(TmaTile *r, const Poly *address)
{
    for (int i = 0; i < address->n; i++) {
        const PolyTerm *t = &address->t[i];
        PolyTerm steps;
        TmaDim *rows = rows_of(r, t, &steps);
        if (!rows && is_within(r, t))
            rows = &r->dim[r->boxes.order[0]];
        if (rows && tma_is_below(r, t, TMA_MEMORY))
            rows->of_memory = true;
    }
}

/* Adds one term of the address to the dimension it belongs to; with `based`, terms that
   are fixed are added to the base of the tensor instead, unless memory holds another
   part of that index. */
static bool
place_term(TmaTile *r, const PolyTerm *t, bool based)
{
    TmaDim *unit = &r->dim[r->boxes.order[0]];
    PolyTerm steps;
    TmaDim *rows = rows_of(r, t, &steps);
    if (based && fixed_term(r, t)) {
        if (rows && rows->of_memory)
            return poly_add_term(&rows->at, &steps, 1);
        const Poly one = {.n = 1, .t = {*t}};
        bool within = !rows && unit->of_memory && tma_is_narrow(&one);
        return poly_add_term(within ? &unit->at : &r->base, t, 1);
    }
    if (rows)
        return poly_add_term(&rows->at, &steps, 1);
    if (is_within(r, t))
        return poly_add_term(&unit->at, t, 1);
    return (based || !fixed_term(r, t)) && extra(r, t);
}

/* A part of the mask that applies to the whole tile may bound a dimension of one element:
   not below 0, or below a size. */
static bool
place_whole(TmaTile *r, const Poly *p)
{
    for (int i = r->rank; i < r->n; i++) {
        TmaDim *d = &r->dim[i];
        Poly size = poly_const(1);
        if (d->kind != TMA_PLAIN)
            continue;
        if (poly_same(p, &d->at))
            return true;
        if (!poly_add(&size, p, 1) || !poly_add(&size, &d->at, 1) ||
            !fixed_poly(r, &size) || (d->bounded && !poly_same(&size, &d->size)))
            continue;
        d->bounded = true;
        d->size = size;
        return true;
    }
    return false;
}

/* Splits the address into rows, columns and the rest. NULL, or why not. */
static const char *
place(TmaTile *r)
{
    static const char *const why =
        "rows and columns do not begin at a sum of arguments and indices";
    Poly left = r->ptr.base;
    for (int d = 0; d < r->rank; d++) {
        Poly part;
        const char *no = place_bounded(r, d, &left);
        if (no)
            return no;
        if (r->dim[d].bounded && (!poly_mul(&r->dim[d].at, &r->dim[d].stride, &part) ||
                                  !poly_add(&left, &part, -1)))
            return why;
    }
    bool based = !falls(r, &left);
    find_of_memory(r, &left);
    for (int i = 0; i < left.n; i++)
        if (!place_term(r, &left.t[i], based))
            return why;
    int unplaced = 0;
    for (int i = 0; i < r->nwhole; i++)
        if (!place_whole(r, &r->whole[i]))
            r->whole[unplaced++] = r->whole[i];
    r->nwhole = unplaced;
    for (int i = 0; i < r->n; i++) {
        TmaDim *d = &r->dim[i];
        if (!d->bounded && is_in_front(r, &d->at))
            return why;
        if (!d->bounded) /* nothing is clipped */
            d->size = poly_const(d->at.n || d->kind ? UNBOUNDED : d->box);
    }
    return NULL;
}

/* As far as is known, can every row begin on 16 bytes? */
static bool
rows_may_be_aligned(const TmaTile *r)
{
    bool ok = may_be_aligned(r, &r->base);
    for (int i = 0; i < r->n; i++)
        ok &= i == r->boxes.order[0] || may_be_aligned(r, &r->dim[i].stride);
    return ok;
}

/* Does a descriptor of the source begin there? */
static bool
is_tensor(const Value *v)
{
    return v->op && v->op->kind == OP_HINT && attr_has(&v->op->attrs, ATTR_TENSOR);
}

static const char *
open_tile(TmaTile *r, const Value *ptr)
{
    const Type *t = ptr->type;
    int64_t one;
    bool sum = r->where ? affine_of_tensor(ptr, r->loop, &r->ptr)
                        : affine_of(ptr, r->loop, &r->ptr);
    if (!sum || !r->ptr.ptr)
        return "its addresses are not a sum of rows and columns";
    const Value *root = r->ptr.ptr;
    r->elem = type_elem(t)->elem;
    if (r->where ? !is_tensor(root) || !is_fixed(r, root) : !is_argument(root))
        return "its address does not come from an argument of the launch";
    if (root->type->elem != r->elem)
        return "it reads an argument as another type";
    r->rank = r->n = t->rank;
    for (int d = 0; d < r->rank; d++) {
        TmaDim *to = &r->dim[d];
        to->stride = r->ptr.at[d];
        to->box = t->shape[d];
        if (!to->stride.n || !fixed_poly(r, &to->stride))
            return "a stride is 0, or not known at launch";
    }
    return poly_is_const(&r->dim[r->boxes.order[0]].stride, &one) && one == 1
               ? NULL
               : "neighbours in a row of the buffer are not neighbours in memory";
}

static const char *
make_tile(TmaTile *r, const Value *ptr, const Value *mask, const Type *mem)
{
    Where at;
    for (int d = 0; d < MAX_RANK; d++)
        at.dim[d] = d;
    if (!tma_boxes(r->s, mem, &r->boxes))
        return "TMA does not support the order of the buffer";
    const char *why = open_tile(r, ptr);
    if (why)
        return why;
    if (mask && !mask_part(r, mask, at, 0))
        return "the mask does more than bound rows and columns";
    if ((why = place(r)))
        return why;
    if (!rows_may_be_aligned(r))
        return "rows do not begin on 16 bytes";
    if (is_torn(r))
        return "an index is a difference of numbers of more than 32 bits";
    for (int i = 0; i < r->n; i++) {
        const TmaDim *d = &r->dim[i];
        int64_t size;
        if (poly_is_const(&d->size, &size) && size < 1) /* it has nothing known in it */
            return "a bound is not known at launch";
        if (!d->bounded && !fits(r, &d->at, &d->stride))
            return "an index may have more than 32 bits, and no mask bounds it";
    }
    return NULL;
}

/* Regions around op, the outermost first. */
static int
regions_around(const Op *op, const Region **out)
{
    int n = 0;
    for (const Region *r = op->parent; r && n < MAX_REGION_DEPTH;
         r = r->parent ? r->parent->parent : NULL)
        out[n++] = r;
    for (int i = 0; i < n / 2; i++) {
        const Region *swap = out[i];
        out[i] = out[n - 1 - i];
        out[n - 1 - i] = swap;
    }
    return n;
}

/* The launch makes the tensor map where it knows its fields; else the kernel does, as far
   outside of its loops as the fields are known. */
TmaTile *
tma_tile(Func *f, const Op *loop, const Op *inside, const Value *ptr, const Value *mask,
         const Type *mem)
{
    Session *s = f->module->s;
    const Region *around[MAX_REGION_DEPTH];
    TmaTile *r = arena_new(&s->tmp, TmaTile), *in = NULL;
    *r = (TmaTile){.s = s, .f = f, .loop = loop};
    r->why = make_tile(r, ptr, mask, mem);
    Affine a;
    if (!r->why || !affine_of_tensor(ptr, loop, &a) || !a.ptr || !is_tensor(a.ptr))
        return r;
    int n = regions_around(inside, around);
    for (int i = 0; i < n; i++) {
        in = in ? in : arena_new(&s->tmp, TmaTile);
        *in =
            (TmaTile){.s = s, .f = f, .loop = loop, .inside = inside, .where = around[i]};
        in->why = make_tile(in, ptr, mask, mem);
        if (!in->why)
            return in;
    }
    return in ? in : r;
}
