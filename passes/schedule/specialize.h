/* Shared by the files of pass specialize: the loads that go through rings, and where
   their stages are waited for and released. */
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
    const Type *mem[SP_LOADS]; /* type of one stage */
    int64_t bytes;             /* of one stage, which arrive together */
    bool again;                /* the ring goes on after a loop */
    bool by_copier;            /* the copier fills it, not the producer */
    bool for_copier;           /* the copier reads it, not the consumers */
    Value *buf[SP_LOADS], *full, *empty;
} Ring;

/* Loads of one iteration that fill one stage of a ring. */
typedef struct Group {
    int ring, n;
    Op *load[SP_LOADS]; /* in program order */
    Op *loop;
    Region *home; /* region of the loads */
    Op *first;    /* first op of `home` that reads the stage */
    Op *last;     /* behind it the stage has been read; NULL: it has when the dots of the
                     next iteration have been issued */
    bool copied;  /* the copier copies it to the ring of another group */
    const Layout *layout; /* of that other group: layout of the tile in the copier */
    int source;           /* of that other group: the group it is copied from */
} Group;

typedef struct Specialize {
    Session *s;
    Func *f;
    const TargetInfo *target;
    Ring ring[SP_RINGS];
    Group group[SP_GROUPS];
    int nring, ngroup;
    Map fill;        /* result of a local_alloc -> the load whose value it holds */
    Slice keep;      /* what the producer has to compute */
    Map moves;       /* ops that move to the copier */
    int ncopy;       /* groups that the copier fills */
    bool copies;     /* a copier is allowed */
    int64_t regs[SP_ROLES]; /* registers of a thread of each role */
    int blocks;      /* programs that are to fit on one SM */
    int64_t bytes;   /* of shared memory, of one program */
    const char *why; /* why it cannot be done; NULL: it can so far */
    bool double_buffers; /* buffers that threads fill for dots in flight are doubled */
} Specialize;

/* specialize_plan.c: plans rings and groups, and what the producer needs. False:
   sp->why. */
bool specialize_plan(Specialize *sp);
/* Finds the first and last readers of a group of one load; false: sp->why. */
bool specialize_readers(Specialize *sp, Group *g);
/* specialize_copy.c: if threads read what the group brings in order to store it again,
   makes a further group of what they store. False: sp->why. */
bool specialize_copy(Specialize *sp, Group *source);
/* specialize_build.c */
void specialize_build(Specialize *sp);

/* Sets sp->why unless it is set already. Returns false. */
bool specialize_refuse(Specialize *sp, const char *why, ...)
    __attribute__((format(printf, 2, 3)));

/* specialize.c: is warp specialization possible, whether or not it pays off? *blocks:
   programs on one SM with it; *without: without it. */
bool specialize_possible(Func *f, PassCx *cx, int *blocks, int *without);

/* The group of a load, and its index in the group; NULL: none. */
const Group *specialize_group(const Specialize *sp, const Op *load, int *slot);
/* The type of the buffer that a load, or the copier, fills. */
const Type *specialize_buffer(const Op *load);
/* Does op have loads of the ring in its regions? */
bool specialize_inside(const Specialize *sp, int ring, const Op *op);

#endif
