/* How TMA fills a buffer in shared memory from a tensor: in boxes, each of which it
   copies as one piece, with a swizzle that it supports. */
#ifndef SDC_IR_PLAN_TMA_BOX_H
#define SDC_IR_PLAN_TMA_BOX_H

#include "ir/ir.h"

enum {
    TMA_MAX_RANK = 5,
    TMA_MAX_BOX = 256,
    TMA_ALIGN = 16,         /* bytes: of addresses and strides, of rows of a box */
    TMA_PHASES = 8,         /* rows after which a swizzle repeats, by address */
    TMA_MAX_MAPS = 32,   /* of a kernel, as 4 KB of parameters hold them */
    TMA_MAX_TERMS = 1024, /* numbers that the host computes for all maps */
    GROUP_ROWS = 64,       /* of a wgmma, of which each warpgroup does one */
    TMA_OUTSIDE = INT32_MIN / 2, /* a column in front of any tensor, for all boxes of a
                                    tile: loads read 0, stores write nothing */
    TENSOR_MAP_BYTES = 128 /* size of a map, and its alignment if kernels write it */
};

typedef struct TmaBoxes {
    int order[2];    /* dimensions of the buffer, fastest first; [1] is -1 for rank 1 */
    int swizzle;     /* bytes: 0, 32, 64, 128 */
    int bytes;       /* of an element */
    int64_t box[2];  /* elements of a box, fastest first */
    int64_t n[2];    /* number of boxes along each dimension */
    int64_t by[2];   /* bytes in the buffer from one box to the next */
} TmaBoxes;

/* False: TMA cannot access a buffer of this type. */
bool tma_boxes(Session *s, const Type *mem, TmaBoxes *out);

/* The boxes of a desc_load, tma_load or tma_store to or from a buffer of type mem. */
bool tma_boxes_of(Session *s, const Op *op, const Type *mem, TmaBoxes *out);

/* Changes the boxes so that each lies in one of the parts of n elements along dimension d
   of the buffer. *along: which dimension of the boxes that is. False: that is not
   possible. */
bool tma_part_boxes(TmaBoxes *boxes, int d, int64_t n, int *along);

/* Changes the boxes so that half of the tile consists of half of them: the same, or twice
   as many of half the height. False: that is not possible. */
bool tma_halves(TmaBoxes *boxes);

/* Where each of `groups` warpgroups copies rows of its own, GROUP_ROWS at a time, round
   robin: changes the boxes so that each is one warpgroup's. *along: which dimension of
   the boxes the rows lie along. False: that is not possible. */
bool tma_group_boxes(TmaBoxes *boxes, int groups, int *along);

/* Does a block of the descriptor have the element order of the buffer? Its last dimension
   must be the fastest of the buffer; dimensions of one element may stand before. */
bool tma_fits(const TmaBoxes *b, const Type *mem, const Type *desc);

/* The make_desc that a descriptor comes from, through captures of roles; else NULL. */
const Op *tma_desc(const Value *v);

/* The tensor_map that a descriptor comes from, in the same way; else NULL. */
const Op *tma_kernel_map(const Value *v);

/* Can the host compute v from the kernel's arguments? */
bool tma_host_value(const Value *v);

/* The driver's CUtensorMapDataType for elements of that type; -1: TMA has none. */
int tma_data_type(const Type *elem);

/* Upper bound of how many numbers the host computes for the fields of a make_desc. */
int tma_terms(const Op *desc);

#endif
