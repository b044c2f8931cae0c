/* How a buffer in shared memory is filled from a tensor by TMA: in boxes, each of which
   TMA writes as one piece, with the swizzle that it knows. */
#ifndef SDC_IR_PLAN_TMA_BOX_H
#define SDC_IR_PLAN_TMA_BOX_H

#include "ir/ir.h"

enum {
    TMA_MAX_RANK = 5,
    TMA_MAX_BOX = 256,
    TMA_ALIGN = 16,         /* of addresses and strides of a tensor, of a box's rows */
    TMA_PHASES = 8,         /* rows after which a swizzle begins anew, by their address */
    TMA_MAX_MAPS = 32,   /* of a kernel: what 4 KB of parameters hold */
    TMA_MAX_TERMS = 1024, /* numbers that the host computes for all of them */
    TENSOR_MAP_BYTES = 128 /* of one, and what it is aligned to where kernels write it */
};

typedef struct TmaBoxes {
    int order[2];    /* dimensions of the buffer, fastest first; [1] -1: it has one */
    int swizzle;     /* bytes: 0, 32, 64, 128 */
    int bytes;       /* of an element */
    int64_t box[2];  /* elements of a box, fastest first */
    int64_t n[2];    /* boxes along each */
    int64_t by[2];   /* bytes in the buffer from one box to the next */
} TmaBoxes;

/* False: TMA cannot write (or read) a buffer of this type. */
bool tma_boxes(Session *s, const Type *mem, TmaBoxes *out);

/* The boxes of which one half of the tile is one half: those of the tile, or twice as
   many, each half as high. False: there is no half. */
bool tma_halves(TmaBoxes *boxes);

/* Does a block of the descriptor run as the buffer lies? Its last dimension is the
   buffer's fastest; dimensions of one element may stand before. */
bool tma_fits(const TmaBoxes *b, const Type *mem, const Type *desc);

/* The make_desc that a descriptor comes from, through captures of roles; else NULL. */
const Op *tma_desc(const Value *v);

/* The tensor_map that a descriptor comes from, in the same way; else NULL. */
const Op *tma_kernel_map(const Value *v);

/* Can the host compute v from the kernel's arguments? */
bool tma_host_value(const Value *v);

/* How the driver numbers elements of that kind (CUtensorMapDataType); -1: TMA has
   none. */
int tma_data_type(const Type *elem);

/* At most so many numbers the host computes for the fields of a make_desc. */
int tma_terms(const Op *desc);

#endif
