/* What the command line of gen says, and its verbs. */
#ifndef SDC_TESTS_GEN_MAIN_H
#define SDC_TESTS_GEN_MAIN_H

#include "tests/gen/run.h"

typedef struct Options {
    uint64_t seed, count;
    int jobs;
    double seconds;  /* of CPU time, for one program */
    long stop_after; /* no program begins after so many seconds; 0: no limit */
    const char *keep, *emit;
    bool first, verbose, print, reduce;
    Runner runner;
} Options;

/* program_check in a child of its own; crashes are reports. */
void run_apart(const Options *o, const Program *p, Report *out);

int reduce(const Options *o); /* shrink.c */
int emit(const Options *o);   /* emit.c */

#endif
