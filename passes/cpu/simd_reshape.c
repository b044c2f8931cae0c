/* Indices through a reshape. If only dimensions of size 1 come and go, indices are
   renamed. If not, the row-major position is computed and taken apart again. All sizes
   are powers of two. */
#include "passes/cpu/simd.h"

#include "ir/base/util.h"

static Ix
ix_const(int64_t c)
{
    return (Ix){IX_CONST, c, NULL};
}

/* If both shapes are the same without their dimensions of size 1: maps the index
   directly. */
static bool
same_but_ones(const Type *to, const Ix *ix, const Type *from, Ix *out)
{
    int i = 0;
    for (int k = 0; k < from->rank; k++) {
        if (from->shape[k] == 1) {
            out[k] = ix_const(0);
            continue;
        }
        while (i < to->rank && to->shape[i] == 1)
            i++;
        if (i == to->rank || to->shape[i] != from->shape[k])
            return false;
        out[k] = ix[i++];
    }
    while (i < to->rank && to->shape[i] == 1)
        i++;
    return i == to->rank;
}

static Value *
arith(Cx *cx, OpKind k, Value *x, int64_t c)
{
    const Type *t = x->type;
    Value *y = build_int(&cx->b, t, c);
    return build_binary(&cx->b, k, x, y);
}

static Ix
ix_shift(Cx *cx, Ix x, OpKind k, int bits)
{
    if (bits == 0)
        return x;
    if (x.kind == IX_CONST)
        return ix_const(k == OP_SHL ? x.c << bits : x.c >> bits);
    x.v = arith(cx, k, x.v, bits);
    return x;
}

static Ix
ix_low(Cx *cx, Ix x, int64_t size)
{
    if (x.kind == IX_CONST)
        return ix_const(x.c & (size - 1));
    x.v = arith(cx, OP_AND, x.v, size - 1);
    return x;
}

static Ix
ix_add(Cx *cx, Ix x, Ix y)
{
    if (x.kind == IX_CONST && x.c == 0)
        return y;
    if (y.kind == IX_CONST && y.c == 0)
        return x;
    IxKind kind = x.kind > y.kind ? x.kind : y.kind;
    if (kind == IX_CONST)
        return ix_const(x.c + y.c);
    bool strip = kind == IX_VEC;
    Value *a = strip ? ix_strip(cx, x) : ix_value(cx, x);
    Value *b = strip ? ix_strip(cx, y) : ix_value(cx, y);
    return (Ix){kind, 0, build_binary(&cx->b, OP_ADD, a, b)};
}

void
simd_reshape_index(Cx *cx, const Type *to, const Ix *ix, const Type *from, Ix *out)
{
    if (same_but_ones(to, ix, from, out))
        return;
    if (cx->pre && simd_in_front(cx, to->rank, ix))
        cx = cx->pre; /* where tests of masks use the index */
    Ix lin = ix_const(0);
    int shift = 0;
    for (int i = to->rank - 1; i >= 0; i--) {
        Ix x = ix[i];
        if (x.kind == IX_AFF && shift)
            x = (Ix){IX_VEC, 0, ix_strip(cx, x)};
        lin = ix_add(cx, ix_shift(cx, x, OP_SHL, shift), lin);
        shift += log2_floor((uint64_t)to->shape[i]);
    }
    /* the lanes of an aligned strip differ in the low bits only */
    for (int i = from->rank - 1; i >= 0; i--) {
        int64_t size = from->shape[i];
        int bits = log2_floor((uint64_t)size);
        if (size == 1) {
            out[i] = ix_const(0);
            continue;
        }
        if (lin.kind == IX_AFF && size < cx->w)
            lin = (Ix){IX_VEC, 0, ix_strip(cx, lin)};
        out[i] = ix_low(cx, lin, size);
        if (lin.kind == IX_AFF)
            lin.kind = IX_UNI;
        lin = ix_shift(cx, lin, OP_SHRU, bits);
    }
}
