/* What the files of pass delay-dot share: which ops of a loop run an iteration later,
   and where. */
#ifndef SDC_PASSES_SCHEDULE_DELAY_DOT_H
#define SDC_PASSES_SCHEDULE_DELAY_DOT_H

#include "ir/base/map.h"
#include "ir/base/vec.h"
#include "ir/ir.h"
#include "ir/target.h"

typedef struct Delay {
    Session *s;
    Func *f;
    const TargetInfo *target;
    Op *loop;
    Op *first; /* wait of the iteration's first dot */
    Op *end;   /* where the work on its result ends */
    Map needs; /* ops that need that result */
    Map light; /* ops of indices and addresses alone */
    Map late;  /* ops of the next iteration */
    Map again; /* light ones that both need: they are there twice */
    Map begin; /* those of them that the delayed dots need, the dots and their waits */
    Vec(Op *) order;    /* ops that are late, or there again */
    Vec(Value *) cross; /* what they need of the iteration before */
    Vec(Op *) moved;    /* other dots that begin where the work ends */
    bool alone;    /* no other program is on the SM */
    bool anywhere; /* addresses of the first iteration may be of no memory */
    /* 32-bit registers of all threads: accumulators and operands, what crosses, addresses
       and indices */
    int64_t words, crossing, others;
} Delay;

/* delay_dot_plan.c: what runs later, from s, f, target and loop. False: nothing; *why
   says why not, NULL: there is no such dot. */
bool delay_plan(Delay *d, const char **why);

/* Does op write what leaves the loop? */
bool delay_writes(const Op *op);
/* Is op used, and by ops of the set alone? */
bool delay_all_users_in(const Op *op, const Map *set);

#endif
