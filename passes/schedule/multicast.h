/* What the two files of pass multicast share: one role's way through the tiles, the loads
   whose tiles two neighbouring programs read alike. */
#ifndef SDC_PASSES_SCHEDULE_MULTICAST_H
#define SDC_PASSES_SCHEDULE_MULTICAST_H

#include "ir/base/map.h"
#include "passes/pass.h"

enum { MC_LOADS = 8, MC_LEAVES = 16 };

/* What a value is for two neighbouring programs. */
typedef enum Kind { UNKNOWN, ALIKE, VARIES } Kind;

/* A tma_load whose tile may come for both. */
typedef struct Shared {
    Op *op;
    Value *leaf[MC_LEAVES]; /* that its coordinates vary by */
    int n;
} Shared;

/* One role's way through the tiles. */
typedef struct Walk {
    Region *role;
    Op *tiles;    /* the loop over tiles; NULL: a program has one */
    Region *home; /* of the work on one tile */
} Walk;

typedef struct Multicast {
    Session *s;
    Op *split; /* warp_specialize */
    Walk producer;
    Op *loop; /* in the producer's home, around all loads */
    Shared load[MC_LOADS];
    int nload;
    Map kinds; /* Value -> Kind + 1 */
    Map seen;
} Multicast;

/* multicast_plan.c */
Walk multicast_walk(Region *role);
/* Is it the number of the program along axis 0? */
bool multicast_program(const Value *v);
/* Of a value of the producer's home, or from outside of it. */
Kind multicast_kind(Multicast *m, Value *v);
/* m->split and m->producer are known: the rest. False: no tile is worth it. */
bool multicast_plan(Multicast *m);

#endif
