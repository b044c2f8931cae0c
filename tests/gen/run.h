/* Runs of a generated program: by the interpreter of tile IR, on the CPU, after passes in
   random order, on a GPU; and what was found. */
#ifndef SDC_TESTS_GEN_RUN_H
#define SDC_TESTS_GEN_RUN_H

#include <stdbool.h>

#include "runtime/sdc.h"
#include "tests/gen/program.h"

typedef enum Finding {
    FINDING_NONE,
    FINDING_DIFFERS,  /* other results than the interpreter's */
    FINDING_REFUSED,  /* a valid program is not compiled */
    FINDING_INTERNAL, /* an internal error, a verifier's complaint */
    FINDING_ORACLE,   /* the interpreter cannot run it, or sees an access outside */
    FINDING_CRASH,    /* a signal: an access of the code outside of its arrays, too */
    FINDING_TIME,     /* more CPU time than a program may take */
    FINDING_COUNT
} Finding;

/* Sets of comparisons. */
enum {
    RUN_CPU = 1,     /* full pipeline, one thread */
    RUN_PASSES = 2,  /* a random list of passes, interpreted */
    RUN_THREADS = 4, /* three threads */
    RUN_PLAIN = 8,   /* as few passes as there can be */
    RUN_PTX = 16,    /* compiled for the target, not run */
    RUN_CUDA = 32,   /* on a GPU, by three numbers of warps */
    RUN_ALL = RUN_CPU | RUN_PASSES | RUN_THREADS | RUN_PLAIN
};

enum { PASS_LIST = 400, RUN_LABEL = 480 };

typedef struct Report {
    Finding what;
    char label[RUN_LABEL]; /* which run: "cpu", "passes=mask,bounds" */
    char text[1200];
} Report;

/* Contents of the outputs after a run; others NULL. */
typedef struct Outputs {
    unsigned char *of[PROGRAM_MAX_ARGS];
    /* The interpreter's with the other choice of what docs/ir.md leaves undefined, such
       as the sign of a zero: elements that differ are not compared. NULL: none. */
    unsigned char *other[PROGRAM_MAX_ARGS];
} Outputs;

typedef struct Device Device;

typedef struct Runner {
    SdcContext *one, *many; /* CPU contexts */
    SdcContext *gpu;
    const char *target; /* RUN_PTX */
    int what;
    int often; /* RUN_THREADS and RUN_PLAIN: one program in so many */
    const char *ptxas;
    const char *pretend; /* texts with this word count as wrong: a test of the reducer */
    Device *device;
} Runner;

/* The first difference, in `text`; false when there is one. */
bool outputs_equal(const Program *p, const Outputs *want, const Outputs *got, char *text,
                   int size);
void outputs_free(Outputs *o);

void runner_open(Runner *r);
void runner_close(Runner *r);
/* All comparisons of r->what. */
void program_check(Runner *r, const Program *p, Report *out);
/* The comparison of a report's label. */
int run_of_label(const char *label);
/* Outputs of the interpreter for a program's own text. */
bool program_expected(Runner *r, const Program *p, Outputs *out, Report *rep);
/* The interpreter's results: false with the report filled. */
bool oracle_run(const Program *p, const char *tir, size_t size, Outputs *out,
                Report *rep);
/* Tile IR after these passes (NULL: none); malloc'd; NULL with the report filled. */
char *tile_ir(Runner *r, SdcModule *m, const Program *p, const char *passes, Report *rep);
void random_passes(uint64_t seed, char *out, int size);

/* `desc` lives until the launch has ended. */
void arg_of(const ProgramArg *a, void *data, SdcDesc *desc, SdcArg *out);
bool device_check(Runner *r, const Program *p, const Outputs *want, Report *rep);
void device_close(Runner *r);

/* Where a launch is, for the report of a child that dies. */
extern char *run_label; /* RUN_LABEL bytes, shared with the parent */

#endif
