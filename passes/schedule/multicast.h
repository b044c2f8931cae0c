/* Shared by the files of pass multicast: the loop over tiles of a role, and the loads
   whose tiles two neighbouring programs both read. */
#ifndef SDC_PASSES_SCHEDULE_MULTICAST_H
#define SDC_PASSES_SCHEDULE_MULTICAST_H

#include "ir/base/map.h"
#include "passes/pass.h"

enum { MC_LOADS = 8, MC_LEAVES = 16 };

/* How a value of one program compares to that of its neighbour. */
typedef enum Kind { UNKNOWN, ALIKE, VARIES } Kind;

/* A tma_load whose tile two programs may share. */
typedef struct Shared {
    Op *op;
    Value *leaf[MC_LEAVES]; /* varying values that its coordinates depend on */
    int n;
} Shared;

/* How a role goes through the tiles. */
typedef struct Walk {
    Region *role;
    Op *tiles;    /* the loop over tiles; NULL: each program has one tile */
    Region *home; /* region of the work on one tile */
} Walk;

typedef struct Multicast {
    Session *s;
    Op *split; /* warp_specialize */
    Walk producer;
    Op *loop; /* in the home of the producer; contains all loads */
    Shared load[MC_LOADS];
    int nload;
    Map kinds; /* Value -> Kind + 1 */
    Map seen;
} Multicast;

/* multicast_plan.c */
Walk multicast_walk(Region *role);
/* Is v the program id along axis 0? */
bool multicast_program(const Value *v);
/* The kind of a value of the producer's home, or of a value from outside of it. */
Kind multicast_kind(Multicast *m, Value *v);
/* Fills in the rest, given m->split and m->producer. False: there is no tile worth
   sharing. */
bool multicast_plan(Multicast *m);

#endif
