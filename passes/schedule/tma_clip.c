/* Rows whose end only the program knows: the end of a sequence or group whose length is
   loaded, or the least of several bounds. The launch makes one tensor map, with the same
   sizes for all programs, so the index moves instead: the tile is placed as far from the
   end of a very long dimension as it has rows left, and two more dimensions take the
   address back to where the rows are.

    dimension   stride      size            index
    clip        s           2^30 - AHEAD    2^30 - AHEAD - left
    rows        s           2^31 - 1        AHEAD + left + row
    wrap        2^34 - s    2^31 - 1        2^30

   The offsets add up to row * s + 2^64 elements, and addresses wrap at 2^64 bytes. `left`
   is clamped to 0 .. rows of the tile, which does not change the contents of the tile.
   Rows down to -AHEAD read memory in front of the pointer, just as threads would.

   Technique: ragged tensor descriptors of Triton (python/triton/tools/ragged_tma.py). */
#include "passes/schedule/tma_tile.h"

enum { AHEAD = 1 << 15, FAR = 1 << 30 };

const char *
tma_clip(TmaTile *t, int d)
{
    const int64_t round = (int64_t)1 << 34;
    TmaDim *clip = &t->dim[d];
    Poly back = poly_const(round);
    if (d == t->boxes.order[0])
        return "a bound within a row is not known at launch";
    for (int i = 0; i < t->n; i++)
        if (t->dim[i].kind != TMA_PLAIN)
            return "two of its bounds are not known at launch";
    if (t->n + 2 > TMA_MAX_RANK || !poly_add(&back, &clip->stride, -1))
        return "a bound is not known at launch";
    clip->kind = TMA_CLIP;
    clip->at = (Poly){0};
    clip->size = poly_const(FAR - AHEAD);
    t->dim[t->n++] = (TmaDim){.kind = TMA_ROWS, .stride = clip->stride, .box = 1};
    t->dim[t->n++] =
        (TmaDim){.kind = TMA_WRAP, .stride = back, .at = poly_const(FAR), .box = 1};
    return NULL;
}

/* The number of rows of the tile in front of the bounds. */
static Value *
left_of(const TmaDim *d, Builder *b, const Type *i32, const Type *i64)
{
    Value *least = NULL;
    for (int i = 0; i < d->nleft; i++) {
        bool narrow = tma_is_narrow(&d->left[i]);
        const Type *t = narrow ? i32 : i64;
        Value *v = tma_build_poly(b, &d->left[i], t);
        v = build_binary(b, OP_MAXS, v, build_int(b, t, 0));
        v = build_binary(b, OP_MINS, v, build_int(b, t, d->box));
        v = narrow ? v : build_cast(b, OP_TRUNC, v, i32);
        least = least ? build_binary(b, OP_MINS, least, v) : v;
    }
    return least;
}

Value *
tma_clip_at(const TmaTile *t, const TmaDim *d, Builder *b)
{
    const Type *i32 = type_scalar(t->s->types, SK_I32);
    const Type *i64 = type_scalar(t->s->types, SK_I64);
    const TmaDim *clip = t->dim;
    while (clip->kind != TMA_CLIP)
        clip++;
    Value *left = left_of(clip, b, i32, i64);
    if (d == clip)
        return build_binary(b, OP_SUB, build_int(b, i32, FAR - AHEAD), left);
    bool narrow = tma_is_narrow(&d->at);
    Value *row = tma_build_poly(b, &d->at, narrow ? i32 : i64);
    row = narrow ? row : build_cast(b, OP_TRUNC, row, i32);
    left = build_binary(b, OP_ADD, left, build_int(b, i32, AHEAD));
    return build_binary(b, OP_ADD, left, row);
}
