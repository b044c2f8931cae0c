/* The tuner's parts. Private to tune*.c. */
#ifndef SDC_RUNTIME_TUNE_H
#define SDC_RUNTIME_TUNE_H

#include "runtime/internal.h"

#include <math.h>

enum { TUNE_MAX_BIND = 64 };

/* A configuration with what became of it. */
typedef struct Candidate {
    SdcTrial trial;
    char **bind; /* NAME=VALUE */
    int nbind;
    SdcKernel *kernel;
    SdcGrid grid;
    struct Candidate *same; /* its machine code, measured before; NULL: none */
    SdcFunction *f; /* NULL: not looked at */
    double guess;   /* of the cost model, in cycles; 0: none */
    bool ready;     /* compiled, or given up; under the lock of the tuning */
    bool given_up; /* whether or not there was memory to say why */
    bool tried;     /* by the thread that measures */
    double prune_seconds, seconds; /* until it was ready */
    SdcStatus status; /* why it FAILED */
} Candidate;

/* A copy of such memory: beside it on the device, or on the host where that is full. */
typedef struct Kept {
    uint64_t at; /* address on the device; 0: there is none */
    char *here;
} Kept;

/* The memory behind an argument or an element of one, while candidates run on it. */
typedef struct TuneMemory {
    int arg, leaf; /* which element of a tuple; -1: the argument is none */
    void *at;     /* address on the host or the device */
    size_t bytes; /* 0: none that is known */
    SdcDtype dtype;
    int pattern; /* the byte that it is filled with for a check */
    bool zero, restore; /* the decorator says so */
    bool written;       /* `before` is there */
    Kept before, first; /* contents before anything ran, and after the first candidate */
    double level;       /* of the elements of `first`; 0: not known yet */
} TuneMemory;

/* Where the time of a tuning went, on the calling thread and on those that compile. */
typedef struct TuneTimes {
    double start, wait, check, measure, finals, total;
    double prune, compile, load; /* of all threads together; `load` is the driver's */
    double longest;              /* of one candidate */
    int threads;
} TuneTimes;

struct SdcTuning {
    SdcModule *mod;
    const KernelInfo *info;
    const SdcTuneOptions *o;
    FrontConfigs configs; /* texts are copied into `texts` */
    char **texts;
    int ntext;
    Candidate **all;
    int n, cap;
    TuneMemory *memory; /* one an argument, and one an element of a tuple */
    int nmemory;
    bool have_first;    /* the reference results */
    SdcModule *compare; /* kernels that compare; NULL until they are needed */
    uint64_t word;      /* 8 bytes of the device for their results; 0: none */
    struct Measure *measure;
    TuneTimes times;
    char *report, *warnings;
    double start;
    bool stopped;
    int done;
    Candidate *best;
    char *line;
    pthread_mutex_t lock;
    pthread_cond_t step;
    int next, until;   /* candidates that nobody works at yet: next .. until - 1 */
    double best_guess; /* of all that were looked at; 0: none */
};

/* tune_list.c: a configuration behind what all have in common, unless it is there already
   or beyond the limit; false when out of memory. The list of the source inside a session
   (`arg` is the tuning). */
bool tune_add(SdcTuning *t, const char *const *config, int n);
SdcStatus tune_list(Session *s, void *arg);
void tune_give_up(Candidate *c, SdcTried what, const char *why);
void tune_candidate_free(Candidate *c); /* NULL is allowed */

/* tune.c: looks at, compiles and tries the candidates first .. t->n - 1. */
SdcStatus tune_batch(SdcTuning *t, int first);

/* tune_search.c */
SdcStatus tune_search(SdcTuning *t);

/* tune_check.c: memory is read and kept; the results of a candidate are those of the
   first, or it is marked WRONG; everything is as before. */
SdcStatus tune_memory(SdcTuning *t);
SdcStatus tune_check(SdcTuning *t, Candidate *c);
SdcStatus tune_restore(SdcTuning *t);
void tune_memory_done(SdcTuning *t);
/* Compiles what compares, while nothing else is there to do. */
void tune_check_prepare(SdcTuning *t);

/* tune_compare.c: on the device. The level of m->first; the lowest element of m->at that
   differs from it, or -1. */
SdcStatus tune_level_there(SdcTuning *t, TuneMemory *m);
SdcStatus tune_differs_there(SdcTuning *t, const TuneMemory *m, double most, int64_t *at);
bool tune_compares_there(const TuneMemory *m);
/* False: by bits alone, so that the host must look at what is not the same. */
bool tune_decides_there(const TuneMemory *m);

/* tune_work.c: what one program does. */
typedef struct TuneKnown {
    const char *name;
    int64_t value;
} TuneKnown;

typedef struct TuneWork {
    const TargetInfo *target;
    const TuneKnown *known; /* integers of the launch */
    int nknown;
    int64_t grid[3]; /* 0: not known */
    /* filled by tune_work */
    const Func *func;
    int warps, stages;
    int64_t accumulators; /* bytes of the largest matmul's result */
    int64_t operands;     /* bytes of its operands */
    double bytes;         /* loaded and stored */
    double product;       /* cycles of an SM's tensor cores */
    double elements;      /* of tiles that are computed */
    bool unknown;         /* a loop's rounds are, and nothing follows from the rest */
} TuneWork;

void tune_work(TuneWork *w, const Func *f);

/* tune_model.c: NULL, or why a configuration does not fit; with a guess of its time.
   Then, when all have been looked at: NULL, or why it cannot be fast enough to try. */
char *tune_look(SdcTuning *t, Candidate *c, SdcFunction *f);
char *tune_prune(const SdcTuning *t, const Candidate *c);

/* tune_text.c: "NAME | device | target | types | key | config | time". */
char *tune_line(const SdcTuning *t, const Candidate *c);
/* A table of where the time went, malloc'ed; NULL when out of memory. */
char *tune_report(const TuneTimes *t);
/* Keys and configurations of the lines for this kernel, target and types: those of the
   device, or, when there are none or `device` is NULL, of any. */
typedef struct TuneEntry {
    char key[512], config[512];
} TuneEntry;
int tune_entries(const char *text, const char *kernel, const char *device,
                 const char *target, const char *types, TuneEntry *out, int most);
/* The device's name as such lines have it. */
const char *tune_device(SdcContext *cx, char *to, size_t size);
/* Types of the arguments as lines have them: "*fp16,*fp16,i32". */
void tune_types(Buf *b, const SdcrtMeta *meta);

#endif
