/* Shared by the files of pass delay-dot: which ops of a loop run an iteration later, and
   where. */
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
    Op *first; /* wait for the first dot of the iteration */
    Op *end;   /* op at which the work on its result ends */
    Map needs; /* ops that depend on that result */
    Map light; /* ops that only compute indices and addresses */
    Map late;  /* ops that move to the next iteration */
    Map again; /* light ops that both iterations need, so they are duplicated */
    Map begin; /* delayed dots, their waits, and the late ops they need */
    Vec(Op *) order;    /* late and duplicated ops, in program order */
    Vec(Value *) cross; /* what they need from the iteration before */
    Vec(Op *) moved;    /* other dots, which are issued where that work ends */
    bool alone; /* the program is alone on its SM */
    /* 32-bit registers of all threads: accumulators and operands; values that are carried
       over; addresses and indices */
    int64_t words, crossing, others;
} Delay;

/* delay_dot_plan.c: plans what runs later, given s, f, target and loop. False: nothing
   does; *why says why not, NULL: there is no dot that could. */
bool delay_plan(Delay *d, const char **why);

/* Has op users, all of which are in the set? */
bool delay_all_users_in(const Op *op, const Map *set);

#endif
