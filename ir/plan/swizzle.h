/* A tile that goes from one distributed layout to another through shared memory: where
   each element lies meanwhile. The place is a linear map, chosen so that a thread's
   accesses are wide and the lanes of a warp meet in different banks; it works for any
   pair of layouts and needs no padding. */
#ifndef SDC_IR_PLAN_SWIZZLE_H
#define SDC_IR_PLAN_SWIZZLE_H

#include "ir/layout.h"

enum {
    EXCHANGE_LIMIT = 65536, /* bytes that one conversion takes at most, if it can */
    SHARED_BANKS = 32,
    SHARED_ACCESS = 16, /* bytes that one thread moves at once */
    /* units that an exchange may use */
    EXCHANGE_LDMATRIX = 1,
    EXCHANGE_STMATRIX = 2
};

typedef struct Exchange {
    /* element (flattened coordinates) -> its offset, in elements; the bits in `rounds`
       do not matter */
    F2 offset;
    /* Coordinate bits that both sides hold in registers of their own: the tile goes in
       1 << nround parts, one for each value of them, through the same memory. */
    uint32_t rounds;
    int nround;
    int bytes;                 /* of an element */
    int store, load;           /* elements that one access takes, a power of two */
    int store_ways, load_ways; /* bank conflicts: 1 is free */
    /* stored by stmatrix, loaded by ldmatrix: the ways are theirs then */
    bool store_matrix, load_matrix;
} Exchange;

/* `bytes` of an element: 1, 2, 4 or 8. units: EXCHANGE_*. */
Exchange layout_exchange(const Layout *src, const Layout *dst, int bytes, int64_t limit,
                         int units);
int64_t exchange_bytes(const Exchange *e);

/* What a round does: the offset in elements of each register, lane and warp bit of l;
   input bits as layout_matrix. */
F2 exchange_map(const Exchange *e, const Layout *l);

/* How often the banks serve an access of one warp more than its bytes need: lane bit i
   changes the address by `lane[i]` bytes (exclusive or), a thread moves `bytes` from an
   aligned address. */
int shared_conflicts(const uint64_t lane[5], int bytes);

/* Elements (a power of two) that lie in a row at an offset and in registers of one
   thread, no more than `most`; map: register bits first, `regs` of them, to offsets.
   reg_bit[i] gets the register bit of offset bit i. */
int shared_run(const F2 *map, int regs, int most, int reg_bit[LAYOUT_MAX_BITS]);

#endif
