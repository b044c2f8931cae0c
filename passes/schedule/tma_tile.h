/* A tile of addresses as a block of a tensor that TMA can address: which
   tensor, and where the block begins. Shared by the passes that make TMA copies. */
#ifndef SDC_PASSES_SCHEDULE_TMA_TILE_H
#define SDC_PASSES_SCHEDULE_TMA_TILE_H

#include "ir/analysis/affine.h"
#include "ir/analysis/axis.h"
#include "ir/build.h"
#include "ir/plan/tma_box.h"

/* What a dimension of the tensor is for; the last three: passes/schedule/tma_clip.c. */
typedef enum TmaKind { TMA_PLAIN, TMA_CLIP, TMA_ROWS, TMA_WRAP } TmaKind;

enum { TMA_BOUNDS = 3 };

/* One dimension of the tensor. */
typedef struct TmaDim {
    Poly stride; /* elements; known where the tensor map is made, as `size` */
    Poly at;     /* where the tile begins */
    Poly size;
    bool bounded, low; /* size is known; `at` is what the mask compares with 0 */
    int64_t box;
    TmaKind kind;
    Poly left[TMA_BOUNDS]; /* indices are below all of these, if bounded */
    int nleft;
} TmaDim;

typedef struct TmaTile {
    Session *s;
    Func *f;
    const Op *loop; /* around the access; NULL: none that matters */
    const Op *inside; /* a tensor map is made outside of it: the loop, or the access */
    const Region *where; /* the kernel makes the tensor map here; NULL: the launch does */
    const Type *elem;
    Axis *axis; /* made when it is asked */
    Affine ptr;
    TmaBoxes boxes;
    TmaDim dim[TMA_MAX_RANK]; /* those of the tile first, in its order */
    int rank, n;              /* of the tile; of the tensor */
    Poly base;                /* from the pointer to the tensor's first element */
    Poly whole[TMA_MAX_RANK];  /* at least 0 where the mask lets the tile as a whole */
    int nwhole;
    int64_t apart; /* not 0: only a tensor whose rows do not overlap, which the launch
                      finds out; rows end so many columns, less one, behind this one's */
    const char *why;          /* it is none for TMA; NULL: it is one */
} TmaTile;

/* The tile that an access of `ptr` under `mask` (NULL: none) moves between memory and a
   buffer of type mem, or why TMA cannot. A tensor map that the kernel makes is made
   outside of `inside`. Never NULL; in the session's tmp arena. */
TmaTile *tma_tile(Func *f, const Op *loop, const Op *inside, const Value *ptr,
                  const Value *mask, const Type *mem);

/* Why pass_tma will not make a load of the loop's rows and columns one of TMA;
   NULL: it will. Asked on targets that have it. */
const char *tma_refuses(Func *f, const Op *loop, Op *load);

/* tma_clip.c: dimension d ends where the program finds out: two dimensions more. NULL, or
   why not. */
const char *tma_clip(TmaTile *t, int d);
/* Its index, or that of its rows. */
Value *tma_clip_at(const TmaTile *t, const TmaDim *d, Builder *b);

/* p of the type t, i32 or i64. */
Value *tma_build_poly(Builder *b, const Poly *p, const Type *t);

/* Have a and b no element in common where rows of their tensor do not overlap: columns
   beside each other of the same rows? *behind: by how many columns b's tensor begins
   behind a's; both end together. */
bool tma_tile_beside(const TmaTile *a, const TmaTile *b, int64_t *behind);

/* Is p, in elements of the tile, known to be a multiple of 16 bytes? */
bool tma_tile_in_pieces(const TmaTile *t, const Poly *p);

/* Has every number in p 32 bits? Its accumulators are taken not to wrap then. */
bool tma_is_narrow(const Poly *p);

/* The tensor's descriptor, made where the function begins, or by the kernel in front of
   the loops; NULL when the launch has no room for its tensor map. */
Value *tma_tile_desc(const TmaTile *t, Loc loc);
/* Where the block begins: as many numbers as the descriptor has dimensions. */
int tma_tile_at(const TmaTile *t, Builder *b, Value **out);

/* i1: the tensor has elements, and the tile begins, and rows end, on 16 bytes; where the
   kernel makes the map it is to find that out in front of a store. */
Value *tma_tile_ends(const TmaTile *t, Builder *b);

/* tma_room.c: at most so many tensor maps a launch of f carries. */
int tma_most_maps(const Func *f);
/* Do both compute the same fields? */
bool tma_same_fields(const Op *a, const Op *b);
/* May one more access go by TMA, through desc in such boxes? */
bool tma_has_room(Session *s, const Func *f, const Op *desc, const TmaBoxes *boxes);

#endif
