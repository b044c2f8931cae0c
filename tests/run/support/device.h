/* Launches of the run tests on a GPU; private to tests/run/support. */
#ifndef TESTS_RUN_SUPPORT_DEVICE_H
#define TESTS_RUN_SUPPORT_DEVICE_H

#include "tests/run/support/harness.h"

struct Block {
    Block *next;
    unsigned char *base;
    size_t mapped;      /* bytes at base; 0: from calloc */
    unsigned char *mem; /* what a kernel may be given pointers into */
    size_t size;
    bool lent;          /* the caller's */
    bool input;         /* filled by buf_random */
    bool unsupported;   /* a launch that the target cannot do should have written here */
    bool unknown;       /* a launch wrote here that did not really run */
    uint64_t device;    /* during a launch: where mem is on the device */
    uint64_t allocated; /* and what to free */
};

/* What the programs of a suite did, also in children. */
typedef struct Tally {
    int launches, unsupported, skipped;
    int nseen;
    uint64_t seen[256]; /* messages that were printed */
} Tally;

Tally *tally(void);

const char *device_target(void); /* of the contexts of the tests */
bool device_wanted(void); /* SDC_TEST_TARGET=cuda or cuda-dry */
bool device_dry(void);    /* SDC_TEST_TARGET=cuda-dry */

/* Copies every block that an argument points into to the device, between guard zones of
   poison, launches, waits, copies back and looks at the guard zones. */
SdcStatus device_launch(Env *env, SdcFunction *fn, SdcGrid grid, const SdcArg *args,
                        int nargs);

/* The block that holds the address, or NULL. */
Block *block_of(Env *env, const void *p);

#endif
