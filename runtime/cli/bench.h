/* The parts of sdc bench. */
#ifndef SDC_CLI_BENCH_H
#define SDC_CLI_BENCH_H

#include "runtime/cli/run.h"

/* What this machine reaches, measured: the two lines of the roofline. */
typedef struct Roof {
    double bytes;        /* a second, of a copy far larger than caches */
    double flops;        /* a second, of products of tiles */
    const char *product; /* their type */
} Roof;

typedef struct BenchRow {
    int64_t value; /* of the swept argument */
    SdcTimes times;
    double bytes, flops; /* of a launch */
    double vs;           /* median seconds of the baseline; 0: none */
} BenchRow;

typedef struct Bench {
    const char *kernel, *device;
    const char *sweep; /* name of the swept argument; NULL: none */
    BenchRow *row;
    int n;
    Roof roof;
    const char *baseline; /* what row.vs is of */
} Bench;

/* --vs cublas and --vs triton: each returns an exit status, the message printed. */
typedef struct Cublas Cublas;
int cublas_open(Cli *c, Cublas **out);
/* The product of the row's first three arrays. */
int cublas_measure(const Cublas *b, Run *r, const SdcMeasureOptions *o, double *seconds);

/* Rows are noted while their arrays are there; then all are measured at once. */
typedef struct TritonJob TritonJob;
TritonJob *triton_job(Cli *c);
int triton_add(TritonJob *t, const Run *r, int64_t value);
int triton_measure(TritonJob *t, const Run *r, const char **lines);
void triton_done(TritonJob *t); /* NULL is allowed */

/* Fails only where launches fail. */
SdcStatus roof_measure(SdcContext *cx, const SdcDevice *gpu, Roof *out);

/* The share of the roofline that a row reaches, with cold caches: warm ones would give
   more than there is. */
double roof_share(const Roof *roof, const BenchRow *row);

void bench_table(FILE *to, const Bench *b);
void bench_json(Buf *to, const Bench *b);
void bench_svg(Buf *to, const Bench *b);
/* Medians of a file that bench_json wrote, into row.vs by the swept value. */
void bench_baseline(Bench *b, const char *json);

#endif
