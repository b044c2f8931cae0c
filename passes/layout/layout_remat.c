/* Computes values again instead of exchanging them between threads: a convert_layout of a
   value that is cheap to compute (indices, masks, constants) is replaced by the same
   computation in the layout wanted.

   Vectors with few elements per thread are loaded a second time, next to the first load:
   the data is in the L1 cache then, while an exchange takes a barrier. In regions with
   dots this is done only for short vectors that are used for addresses of other loads
   (row numbers, say), since an exchange would delay those loads. Other loads there are
   pipelined into shared memory, from which they can be read in any layout
   (passes/schedule/stage_read.c).

   fetch_near: a tile that meets an accumulator (a bias or a residual, say) is loaded by
   the warps that hold those elements of the accumulator, in a layout with the elements of
   one access in one thread. The conversion that remains stays within warps: it takes
   little scratch memory and no barrier.

       %x = load %p : tile<.., #rows>              %y = load %q : tile<.., #near>
       %z = convert_layout %x : #acc           =>  %z = convert_layout %y : #acc
*/
#include "ir/base/util.h"
#include "passes/layout/layout.h"

enum { REMAT_DEPTH = 64, REMAT_OPS = 256, LOAD_REGS = 16, ROW_REGS = 4 };

enum {
    SECTOR = 32,       /* bytes that memory transfers at once */
    MOST_SECTORS = 64, /* that a warp asks for instead of an exchange */
};

/* Is v used for addresses and masks of loads, and for nothing else? */
static bool
only_addresses(const Value *v, int depth, int *left)
{
    if (depth > REMAT_DEPTH || --*left < 0)
        return false;
    value_each_use(v, u)
    {
        const Op *op = u->user;
        bool load = op->kind == OP_LOAD && u->index < 2;
        if (!load && (!op_is(op, T_PURE) || op->nregion || op->kind == OP_DOT ||
                      !only_addresses(&op->results[0], depth + 1, left)))
            return false;
    }
    return v->uses;
}

/* The only dimension of t that has several elements, or the first; -1: there are more. */
static int
vector_dim(const Type *t)
{
    int dim = 0, wide = 0;
    for (int d = 0; d < t->rank; d++)
        if (t->shape[d] > 1) {
            dim = d;
            wide++;
        }
    return wide > 1 ? -1 : dim;
}

/* Sectors that a warp asks the cache for, for a vector in layout `to`: those of an
   access, whose lanes hold other elements or copies of them, for each access of a
   thread. */
static int64_t
sectors_asked(const Op *op, const Layout *to)
{
    int vec, dim = vector_dim(op->results[0].type);
    int64_t bytes = max_i64(1, type_bits(op->results[0].type) / 8), nearest = INT64_MAX;
    int64_t lanes = 1;
    layout_access_dim(op, &vec);
    int64_t run = min_i64(vec, layout_run(to, dim, NULL));
    for (int i = 0; i < to->nbasis[LD_LANE]; i++)
        if (to->basis[LD_LANE][i]) {
            lanes *= 2;
            nearest = min_i64(nearest, to->basis[LD_LANE][i]);
        }
    int64_t apart = lanes == 1 ? 1 : max_i64(1, lanes * nearest * bytes / SECTOR);
    int64_t each = min_i64(apart, lanes * max_i64(1, run * bytes / SECTOR));
    return layout_regs(to) / run * each;
}

/* May this load be done a second time, with a result in layout `to`? */
static bool
is_short_load(const Op *op, const Layout *to)
{
    int left = REMAT_OPS;
    bool dots = region_has(op->parent, OP_DOT);
    return op->kind == OP_LOAD && vector_dim(op->results[0].type) >= 0 &&
           !attr_has(&op->attrs, ATTR_VOLATILE) &&
           layout_regs(to) <= (dots ? ROW_REGS : LOAD_REGS) &&
           sectors_asked(op, to) <= MOST_SECTORS &&
           (!dots || only_addresses(&op->results[0], 0, &left));
}

static bool
is_cheap(const Op *op)
{
    switch ((int)op->kind) {
    case OP_CONST:
    case OP_UNDEF:
    case OP_ARANGE:
    case OP_SPLAT:
    case OP_BROADCAST:
    case OP_EXPAND_DIMS:
    case OP_TRANS:
    case OP_CONVERT_LAYOUT: return true;
    case OP_RESHAPE: return !type_is_tile(op_operand(op, 0)->type);
    default: return op_is(op, T_PURE | T_ELEMENTWISE);
    }
}

/* The layout in which op needs its operands for a result in layout `to`. */
static const Layout *
needed(Layouts *p, const Op *op, const Layout *to)
{
    bool same = op_is(op, T_ELEMENTWISE) || op->kind == OP_LOAD;
    return same ? to : layout_operand(p->s, op, to);
}

/* Can v be computed in layout `to`? *left: operations that the copy may still have. */
static bool
can_remat(Layouts *p, const Value *v, const Layout *to, int depth, int *left)
{
    const Op *op = v->op;
    if (!type_is_tile(v->type))
        return true;
    if (!op || depth > REMAT_DEPTH || --*left < 0 ||
        (!is_cheap(op) && (!to || !is_short_load(op, to))))
        return false;
    if (op->kind == OP_CONVERT_LAYOUT)
        return can_remat(p, op_operand(op, 0), to, depth + 1, left);
    const Layout *need = to ? needed(p, op, to) : NULL;
    for (int i = 0; i < op->noperand; i++)
        if (!can_remat(p, op_operand(op, i), need, depth + 1, left))
            return false;
    return true;
}

/* v computed in layout `to`, at b; a load is placed next to the one that it repeats. */
static Value *
remat(Layouts *p, Builder *b, Value *v, const Layout *to, int depth)
{
    Op *op = v->op;
    Value *in[8];
    if (!type_is_tile(v->type) || v->type->layout == to || depth > REMAT_DEPTH)
        return v;
    if (op->kind == OP_CONVERT_LAYOUT)
        return remat(p, b, op_operand(op, 0), to, depth + 1);
    const Layout *need = needed(p, op, to);
    if (op->noperand > 8)
        return v;
    Builder at = builder_before(op);
    b = op->kind == OP_LOAD ? &at : b;
    for (int i = 0; i < op->noperand; i++)
        in[i] =
            need ? remat(p, b, op_operand(op, i), need, depth + 1) : op_operand(op, i);
    const Type *t = type_with_layout(p->s->types, v->type, to);
    b->loc = op->loc;
    Value *r = &build_op(b, op->kind, in, op->noperand, &op->attrs, &t, 1)->results[0];
    r->name = v->name;
    return r;
}

/* ---- loads near the accumulator */

/* The register or lane bit of l whose image is exactly `image`; -1: there is none. */
static int
bit_of(const Layout *l, LayoutDim where, uint32_t image)
{
    for (int i = 0; i < l->nbasis[where]; i++)
        if (l->basis[where][i] == image)
            return i;
    return -1;
}

/* Layout `to`, changed so that `vec` consecutive elements of the last dimension are in
   the lowest registers of one thread. Where a lane bit selected one of these elements, it
   and a register bit for a higher element of the row change places; warps keep their
   elements. NULL: there is no such register, or neighbouring lanes would fill less than a
   sector. */
static const Layout *
near_layout(Layouts *p, const Layout *to, int vec, int64_t bytes)
{
    Layout l = *to;
    int wide = log2_floor((uint64_t)vec);
    uint32_t row = (uint32_t)1 << to->log_shape[to->rank - 1], unit = (uint32_t)vec;
    for (int k = 0; k < wide; k++) {
        int reg = bit_of(&l, LD_REG, 1u << k), lane = bit_of(&l, LD_LANE, 1u << k);
        for (uint32_t high = unit; reg < 0 && lane >= 0 && high < row; high *= 2) {
            reg = bit_of(&l, LD_REG, high);
            if (reg >= 0)
                l.basis[LD_LANE][lane] = high;
        }
        if (reg < 0)
            return NULL;
        for (int i = reg; i > k; i--)
            l.basis[LD_REG][i] = l.basis[LD_REG][i - 1];
        l.basis[LD_REG][k] = 1u << k;
    }
    while (bit_of(&l, LD_LANE, unit) >= 0)
        unit *= 2;
    return unit * bytes >= SECTOR ? layout_intern(p->s, &l) : NULL;
}

/* The load whose elements the conversion takes, perhaps widened; NULL: it is no load, or
   its data has other uses. */
static Op *
loaded(const Op *convert)
{
    Op *op = op_operand(convert, 0)->op;
    while (op && (op->kind == OP_FEXT || op->kind == OP_SEXT || op->kind == OP_ZEXT) &&
           !op->results[0].uses->next)
        op = op_operand(op, 0)->op;
    return op && op->kind == OP_LOAD && !op->results[0].uses->next ? op : NULL;
}

/* Is v used by elementwise operations only? */
static bool
is_term(const Value *v)
{
    const Use *u = v->uses;
    while (u && op_is(u->user, T_ELEMENTWISE))
        u = u->next;
    return !u;
}

/* Loads the tile of `convert` near the accumulator, as in the head of this file. */
static bool
fetch_near(Layouts *p, Op *convert)
{
    Op *load = loaded(convert);
    int vec;
    if (!load || !is_term(&convert->results[0]) || load->results[0].type->rank < 2 ||
        attr_has(&load->attrs, ATTR_VOLATILE) || region_has(load->parent, OP_DOT))
        return false;
    Value *x = &load->results[0];
    const Layout *to = convert->results[0].type->layout;
    if (layout_access_dim(load, &vec) != x->type->rank - 1 || vec < 2 ||
        layout_conversion(x->type->layout, to).kind != CONV_SHARED)
        return false;
    const Layout *near = near_layout(p, to, vec, max_i64(1, type_bits(x->type) / 8));
    if (!near || layout_conversion(near, to).kind != CONV_LANE)
        return false;
    int left = REMAT_OPS;
    for (int i = 0; i < load->noperand; i++)
        if (!can_remat(p, op_operand(load, i), near, 0, &left))
            return false;
    Builder b = builder_before(load);
    for (int i = 0; i < load->noperand; i++)
        op_set_operand(load, i, remat(p, &b, op_operand(load, i), near, 0));
    for (Value *v = x; v != &convert->results[0]; v = &v->uses->user->results[0])
        value_set_type(v, type_with_layout(p->s->types, v->type, near));
    return true;
}

void
layout_remat(Layouts *p)
{
    for (int i = p->converts.n - 1; i >= 0; i--) {
        Op *c = p->converts.at[i];
        Value *v = op_operand(c, 0);
        const Layout *to = c->results[0].type->layout;
        int left = REMAT_OPS;
        if (layout_conversion(v->type->layout, to).kind <= CONV_REG || fetch_near(p, c) ||
            !can_remat(p, v, to, 0, &left))
            continue;
        Builder b = builder_before(c);
        value_replace(&c->results[0], remat(p, &b, v, to, 0));
        op_erase(c);
    }
}
