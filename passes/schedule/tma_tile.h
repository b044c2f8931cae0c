/* A tile of addresses as a block of a tensor that TMA can access: which tensor, and the
   offsets of the block. Shared by the passes that make TMA copies. */
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
    Poly stride; /* in elements; like `size` known where the map is made */
    Poly at;     /* index at which the tile begins */
    Poly size;
    bool bounded, low; /* size is known; `at` is what the mask compares with 0 */
    bool of_memory;    /* memory holds a part of the index, which may be below 0 */
    int64_t box;
    TmaKind kind;
    Poly left[TMA_BOUNDS]; /* indices are below all of these, if bounded */
    int nleft;
} TmaDim;

/* A part of the mask that is no bound: where it does not hold, elements are not read. It
   is the same for the whole tile, or for parts along its dimension `dim`. */
typedef struct TmaPart {
    Value *v;
    int dim; /* -1: none */
} TmaPart;

typedef struct TmaTile {
    Session *s;
    Func *f;
    const Op *loop; /* around the access; NULL: none */
    const Op *inside; /* the loop or access that a map must be made outside of */
    const Region *where; /* the kernel makes the tensor map here; NULL: the launch does */
    const Type *elem;
    Axis *axis; /* made when it is asked */
    Affine ptr;
    TmaBoxes boxes;
    TmaDim dim[TMA_MAX_RANK]; /* those of the tile first, in its order */
    int rank, n;              /* of the tile; of the tensor */
    Poly base;                /* from the pointer to the tensor's first element */
    /* Where one of these is below 0 the mask is off for the tile as a whole, and the tile
       is placed outside of the tensor. */
    Poly whole[TMA_MAX_RANK];
    int nwhole;
    TmaPart parts[TMA_MAX_RANK];
    int npart;
    int64_t parted; /* elements along parted_dim that are read or not; 0: all are */
    int parted_dim;
    int64_t apart; /* not 0: only a tensor whose rows do not overlap, which the launch
                      finds out; rows end so many columns, less one, behind this one's */
    const char *why;          /* it is none for TMA; NULL: it is one */
} TmaTile;

/* The tile that an access of `ptr` under `mask` (NULL: none) moves between memory and a
   buffer of type mem, or, in ->why, the reason why TMA cannot. A tensor map that the
   kernel makes is made outside of `inside`. Never NULL; allocated in the session's tmp
   arena. */
TmaTile *tma_tile(Func *f, const Op *loop, const Op *inside, const Value *ptr,
                  const Value *mask, const Type *mem);

/* Why pass_tma will not turn this load of the loop into one by TMA; NULL: it will. For
   targets that have TMA. */
const char *tma_refuses(Func *f, const Op *loop, Op *load);

/* Multiplies the range lo..hi by that of x; false on overflow of 64 bits. */
bool tma_times_range(const AxisFacts *x, int64_t *lo, int64_t *hi);

/* tma_below.c: is p at least 0, if what arguments and memory hold is? */
bool tma_counts_up(TmaTile *t, const Poly *p);
/* Which numbers are asked whether they may be below 0: counters of loops, all that the
   program itself begins below 0, or what memory holds and what is made of it, too. */
typedef enum TmaBelow { TMA_COUNTERS, TMA_NUMBERS, TMA_MEMORY } TmaBelow;

/* Does the term have such a factor? */
bool tma_is_below(TmaTile *t, const PolyTerm *term, TmaBelow which);

/* tma_clip.c: the program finds out where dimension d ends, which takes two more
   dimensions. NULL, or why that is not possible. */
const char *tma_clip(TmaTile *t, int d);
/* The index of the clipped dimension, or of its rows. */
Value *tma_clip_at(const TmaTile *t, const TmaDim *d, Builder *b);

/* tma_parts.c: v, a part of the mask whose dimension d is dims[d] of the tile, is no
   bound. False: TMA cannot take it into account. */
bool tma_part(TmaTile *t, const Value *v, const int *dims);
/* i1: is the tile to be read at all? NULL: it is. */
Value *tma_tile_gate(const TmaTile *t, Builder *b);
/* i32: a bit for each part of the tile that is to be read; NULL: all of them are. */
Value *tma_tile_live(const TmaTile *t, Builder *b);

/* p computed in type t, i32 or i64. */
Value *tma_build_poly(Builder *b, const Poly *p, const Type *t);

/* Are a and b different columns or rows, so that they have no element in common where
   rows of their tensor do not overlap? *behind: how many columns behind a's tensor
   b's begins; both end at the same column. */
bool tma_tile_beside(const TmaTile *a, const TmaTile *b, int64_t *behind);

/* Is p, in elements, known to be a multiple of 16 bytes? */
bool tma_tile_in_pieces(const TmaTile *t, const Poly *p);

/* Are all values in p at most 32 bits wide? Then their sum is assumed not to overflow. */
bool tma_is_narrow(const Poly *p);

/* The descriptor of the tensor, made at the start of the function, or by the kernel in
   front of the loops; NULL when the launch has no room for its tensor map. */
Value *tma_tile_desc(const TmaTile *t, Loc loc);
/* Computes the offsets of the block, one for each dimension of the descriptor; how
   many. */
int tma_tile_at(const TmaTile *t, Builder *b, Value **out);

/* i1: whether the tensor has elements, and the tile begins and rows end on 16 bytes:
   where the kernel makes the map it checks this in front of a store. */
Value *tma_tile_ends(const TmaTile *t, Builder *b);

/* tma_room.c: how many tensor maps a launch of f can carry. */
int tma_most_maps(const Func *f);
/* Do both descriptors have equal fields? */
bool tma_same_fields(const Op *a, const Op *b);
/* Is there room for one more TMA access, through desc in such boxes? */
bool tma_has_room(Session *s, const Func *f, const Op *desc, const TmaBoxes *boxes);

#endif
