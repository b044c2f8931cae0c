/* A launch of code with hooks: what hooks.c and the checked launches of checked*.c
   share. */
#ifndef SDC_RUNTIME_HOOKS_H
#define SDC_RUNTIME_HOOKS_H

#include "runtime/internal.h"

typedef struct Checker Checker;

typedef struct Running {
    SdcrtHooks hooks; /* first: the code has its address */
    SdcKernel *k;
    SdcGrid grid;
    bool locks; /* false: the child of a fork, where nobody would unlock */
    /* what ended the launch: an assertion, or an access that its check refused */
    const SdcrtSite *failed;
    int64_t program, index[MAX_RANK];
    Checker *checker; /* NULL: not a checked launch */
} Running;

enum { HOOK_LINE = 1200 };

/* "pid (1, 0, 0)" and " idx (3, 17)" behind n bytes of a text of HOOK_LINE; returns the
   new length. `stride`: from one dimension of the index to the next. */
int hook_program(const Running *r, char *to, int n, int64_t program);
int hook_index(char *to, int n, const int64_t *index, int rank, int stride);

/* A place of running code for messages; the calls through which it came, as notes. */
Loc place_loc(Session *s, const SdcrtPlace *p);
void place_callers(Session *s, const SdcrtPlace *p);

/* checked.c. Sets the hooks of r; NULL without memory. */
Checker *checker_new(Running *r, const SdcArg *args, const uint64_t *slots);
/* The errors and warnings of the launch. */
SdcStatus checker_tell(Session *s, void *running);
bool checker_has_news(const Checker *c);
void checker_free(Checker *c);

#endif
