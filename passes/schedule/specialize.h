/* What the files of pass specialize share: the loads that go through rings, and
   where their stages are awaited and given back. */
#ifndef SDC_PASSES_SCHEDULE_SPECIALIZE_H
#define SDC_PASSES_SCHEDULE_SPECIALIZE_H

#include "ir/analysis/slice.h"
#include "ir/build.h"
#include "ir/edit.h"
#include "passes/pass.h"

enum { SP_LOADS = 4, SP_RINGS = 8, SP_GROUPS = 16, SP_COPIERS = 4 };
enum { SP_PRODUCER, SP_CONSUMER, SP_COPIER, SP_ROLES };

/* Buffers of several stages and the two barriers of each stage. */
typedef struct Ring {
    int n, stages;
    const Type *mem[SP_LOADS]; /* of one stage */
    int64_t bytes;             /* that arrive together */
    bool again;                /* its stages are used after a loop, too */
    bool by_copier;            /* who fills it */
    bool for_copier;           /* who reads it */
    Value *buf[SP_LOADS], *full, *empty;
} Ring;

/* Loads of one iteration that fill one stage of a ring. */
typedef struct Group {
    int ring, n;
    Op *load[SP_LOADS]; /* in order of the text */
    Op *loop;
    Region *home; /* that they stand in */
    Op *first;    /* first op of `home` that reads */
    Op *last;     /* after it all have read; NULL: when the next iteration's dots
                     have begun */
    bool copied;  /* by the copier, to the ring of another group */
    const Layout *layout; /* of such another group: how the copier's threads hold it */
    int source;           /* and the group that it is copied from */
} Group;

typedef struct Specialize {
    Session *s;
    Func *f;
    const TargetInfo *target;
    Ring ring[SP_RINGS];
    Group group[SP_GROUPS];
    int nring, ngroup;
    Map fill;        /* local_alloc's result -> Value of the load */
    Slice keep;      /* what the producer computes */
    Map moves;       /* ops that are the copier's */
    int ncopy;       /* groups that it fills */
    bool copies;     /* it may */
    int64_t regs[SP_ROLES]; /* of a thread of each role */
    int blocks;      /* on one SM */
    int64_t bytes;   /* of shared memory, of one of them */
    const char *why; /* it cannot be done */
    bool double_buffers; /* what threads fill for dots in flight has two buffers */
} Specialize;

/* specialize_plan.c: rings, groups, what the producer needs. False: sp->why. */
bool specialize_plan(Specialize *sp);
/* The first and last readers of the group's first buffer; false: sp->why. */
bool specialize_readers(Specialize *sp, Group *g);
/* specialize_copy.c: if what the group brings is read by threads to be written again, a
   further group for what they write. False: sp->why. */
bool specialize_copy(Specialize *sp, Group *source);
/* specialize_build.c */
void specialize_build(Specialize *sp);

/* Says why it cannot be done, the first time. False. */
bool specialize_refuse(Specialize *sp, const char *why, ...)
    __attribute__((format(printf, 2, 3)));

/* specialize.c: would it be done if it paid? *blocks: programs on one SM with
   it, *without: and without. */
bool specialize_possible(Func *f, PassCx *cx, int *blocks, int *without);

/* The group and place in it of a load; NULL: none. */
const Group *specialize_group(const Specialize *sp, const Op *load, int *slot);
/* The type of the buffer that a load, or the copier, fills. */
const Type *specialize_buffer(const Op *load);
/* Do loads of the ring stand inside of op? */
bool specialize_inside(const Specialize *sp, int ring, const Op *op);

#endif
