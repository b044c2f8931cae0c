/* Results that TMA stores in pieces, one after the other through a buffer of the size of
   one (passes/schedule/tma_store.c). */
#ifndef SDC_PASSES_SCHEDULE_TMA_PIECES_H
#define SDC_PASSES_SCHEDULE_TMA_PIECES_H

#include "ir/build.h"

enum { TMA_MOST_PIECES = 8 };

typedef struct TmaPieces {
    int n, dim;       /* so many, along that dimension of the tile */
    int64_t shape[2]; /* of one */
} TmaPieces;

/* n pieces, a power of two, of a tile of type x, each of which is registers of its own in
   every thread. False: there are none such. */
bool tma_pieces_of(const Type *x, int n, TmaPieces *out);

/* x in these pieces, in their order. */
void tma_cut(Builder *b, Value *x, const TmaPieces *p, Value **out);

#endif
