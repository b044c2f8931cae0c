/* Checked launches: what checked.c (arrays), checked_race.c (races, memory that nothing
   has written) and checked_text.c (messages) share. */
#ifndef SDC_RUNTIME_CHECKED_H
#define SDC_RUNTIME_CHECKED_H

#include "runtime/hooks.h"

/* Who touched the elements of a piece of memory in this launch: an event each for the
   last writer and the first reader since; 0: nobody. */
enum { GROUP = 16 };

/* An event for each element. A group of them that have the same one has it itself, and
   the entries count for nothing; 0: they count. */
typedef struct Events {
    uint32_t *entry; /* NULL: none yet, or no memory */
    uint32_t *group;
} Events;

typedef struct Shadow {
    uintptr_t lo, hi;
    uintptr_t grain;  /* bytes that have an entry */
    Events writer, reader;
    uint32_t *sync;   /* step of the last atomic by which programs may wait; or NULL */
    bool failed;      /* no memory */
} Shadow;

/* What a parameter's addresses may reach. */
typedef struct Span {
    bool known, null;
    uintptr_t lo, hi;
    const char *name;
    int rank; /* 0: no shape known */
    const int64_t *shape;
    Range *range;   /* that it is in; NULL: none */
    Shadow *shadow; /* NULL: nobody writes there */
} Span;

typedef enum Fault {
    FAULT_NONE,
    FAULT_OUTSIDE,
    FAULT_NULL,
    FAULT_UNWRITTEN,
    FAULT_RACE,
    FAULT_NAN
} Fault;

/* An access of another program, and the one that met it. */
typedef struct Meeting {
    const SdcrtSite *site, *other;
    int64_t program, other_program;
    const Span *span;
    uintptr_t at;
} Meeting;

enum { MOST_BORN = 4 };

struct Checker {
    Running *r;
    Span of[SDCRT_MAX_PARAMS];
    SdcrtFree free[SDCRT_MAX_PARAMS];
    Span *all; /* every known array, for addresses of unknown origin */
    int nall;
    bool closed; /* all pointers are known: there is nothing else to be reached */
    int64_t program;
    Fault fault;
    const Span *span; /* of the fault; NULL: none in particular */
    uintptr_t at;
    Meeting race;  /* of FAULT_RACE */
    Meeting equal; /* stores of what was there already; site NULL: none */
    /* NaN of this program: the places where one was born, and whether one was loaded */
    const SdcrtSite *born[MOST_BORN];
    int nborn;
    bool nan_loaded;
    /* races */
    const SdcrtSite **site; /* by number */
    Shadow *shadows;
    int nshadow;
    Entries *taken; /* memory of the shadows */
    bool races;     /* are looked for */
    bool wide;      /* the machine has AVX2 */
    uint32_t base;  /* first event of this launch */
    uint32_t *steps; /* the program of each step */
    uint32_t nstep, cap, nsite;
    uint32_t own;      /* first event of this program */
    uint32_t now;      /* event of site 0 in this step */
    uint32_t acquired; /* steps before this one may have been waited for */
};

/* Is the access of these lanes, of consecutive elements of one span, one that another
   program's meets, or of memory without a value? Returns the lane, or -1; notes it as
   made otherwise. */
int32_t race_row(Checker *c, const SdcrtSite *s, const Span *p, uintptr_t at,
                 uint64_t mask, const unsigned char *values);
bool race_open(Checker *c);
void race_enter(Checker *c);
void race_close(Checker *c);

#endif
