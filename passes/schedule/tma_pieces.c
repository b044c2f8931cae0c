/* Pieces of a tile as values of their own. Upper bits of a dimension that are those of
   registers become a dimension, the last one, which is taken apart:

       %r = reshape %x : tile<256x2x64>    %t = trans %r : tile<256x64x2>
       %a, %b = split %t : tile<256x64>, tile<256x64> */
#include "passes/schedule/tma_pieces.h"

#include "ir/base/util.h"
#include "ir/layout.h"

/* A dimension whose upper log2(n) bits are those of registers: pieces along it are
   registers of each thread, and take no instruction. -1: there is none. */
static int
dim_of(const Layout *l, int n)
{
    for (int dim = 1; dim >= 0; dim--) {
        int top = layout_shift(l, dim) + l->log_shape[dim];
        int bits = log2_floor((uint64_t)n);
        bool all = bits < l->log_shape[dim];
        for (int bit = top - bits; bit < top && all; bit++) {
            bool own = false;
            for (int i = 0; i < l->nbasis[LD_REG]; i++)
                own |= l->basis[LD_REG][i] == UINT32_C(1) << bit;
            all = own;
        }
        if (all)
            return dim;
    }
    return -1;
}

bool
tma_pieces_of(const Type *x, int n, TmaPieces *out)
{
    int dim = x->rank == 2 && x->layout ? dim_of(x->layout, n) : -1;
    *out = (TmaPieces){.n = n, .dim = dim};
    if (dim < 0)
        return false;
    for (int d = 0; d < 2; d++)
        out->shape[d] = d == dim ? x->shape[d] / n : x->shape[d];
    return true;
}

static Value *
shaped(Builder *b, OpKind kind, Value *x, const AttrList *attrs, int rank,
       const int64_t *shape, const Layout *l)
{
    const Type *t = type_tile(b->s->types, type_elem(x->type), rank, shape, l);
    return &build_op(b, kind, &x, 1, attrs, &t, 1)->results[0];
}

/* The first and the second half of x along dim: a new dimension of size 2, made the
   last one and taken apart. */
static void
halve(Builder *b, Value *x, int dim, Value *half[2])
{
    const int64_t *s = x->type->shape;
    const int64_t cut[3] = {dim ? s[0] : 2, dim ? 2 : s[0] / 2, dim ? s[1] / 2 : s[1]};
    const int64_t perm[3] = {dim ? 0 : 1, 2, dim ? 1 : 0};
    const int64_t last[3] = {cut[perm[0]], cut[perm[1]], cut[perm[2]]};
    AttrList attrs = {0};
    attr_set_ints(&b->s->mod, &attrs, ATTR_PERM, perm, 3);
    const Layout *l = layout_reshape(b->s, x->type->layout, 3, cut);
    x = shaped(b, OP_RESHAPE, x, NULL, 3, cut, l);
    l = layout_trans(b->s, l, perm);
    x = shaped(b, OP_TRANS, x, &attrs, 3, last, l);
    const Type *t =
        type_tile(b->s->types, type_elem(x->type), 2, last, layout_split(b->s, l));
    Op *op = build_op(b, OP_SPLIT, &x, 1, NULL, (const Type *[]){t, t}, 2);
    half[0] = &op->results[0], half[1] = &op->results[1];
}

void
tma_cut(Builder *b, Value *x, const TmaPieces *p, Value **out)
{
    out[0] = x;
    for (int n = 1; n < p->n; n *= 2)
        for (int i = n - 1; i >= 0; i--) {
            Value *half[2];
            halve(b, out[i], p->dim, half);
            out[2 * i] = half[0], out[2 * i + 1] = half[1];
        }
}
