/* The parts of sdc bench. A bench has series: the kernel first, then what it is compared
   with. All that run here are measured in the same rounds, references for the roofline
   among them. */
#ifndef SDC_CLI_BENCH_H
#define SDC_CLI_BENCH_H

#include "runtime/cli/machine.h"
#include "runtime/cli/run.h"
#include "runtime/sdc_measure.h"

enum { MAX_SERIES = 9 };

/* What this machine reaches: the best of all rounds, of references and of the kernels. */
typedef struct Roof {
    double bytes;        /* a second */
    double flops;        /* a second */
    double seen_bytes, seen_flops; /* of the references alone */
    const char *product; /* the type of what is multiplied; NULL: not measured */
} Roof;

/* A value of the sweep for one series. */
typedef struct BenchPoint {
    SdcTimes times;     /* median 0: there is none */
    double spread;      /* as SdcMeasured's */
    double ratio, low, high; /* of its time to the kernel's */
    SdcVerdict verdict; /* of the kernel */
    bool same_code;     /* as the kernel, and so measured once */
    uint64_t code;
    const char *config; /* "BLOCK=1024 num_warps=4"; "" */
} BenchPoint;

typedef struct BenchRow {
    int64_t value;       /* of the swept argument */
    double bytes, flops; /* of a launch */
    double roof_bytes;   /* what may be more than the roof: of this size, caches warm */
} BenchRow;

typedef enum SeriesKind {
    SERIES_KERNEL,
    SERIES_CUBLAS,
    SERIES_TRITON,
    SERIES_FILE /* measured before */
} SeriesKind;

typedef struct Series {
    SeriesKind kind;
    const char *name;
    Run *run;             /* KERNEL */
    struct Cublas *cublas;
    struct TritonJob *triton;
    BenchPoint *at;       /* one a row */
    /* FILE: */
    const char *device, *caches;
    double copies, products; /* what the machine reached then */
    double drift; /* of the machine since then, as a factor of at least 1 */
    bool other_machine; /* or the caches were in another state */
} Series;

typedef struct Bench {
    Cli *c;
    const char *kernel, *device;
    const char *sweep; /* name of the swept argument; NULL: none */
    bool warm;
    BenchRow *row;
    int n;    /* rows that are measured */
    int want;
    Series series[MAX_SERIES];
    int nseries;
    Roof roof;
    Machine machine;
    const SdcDevice *gpu; /* NULL: the CPU */
    int threads;
    const char *command;
} Bench;

/* bench_series.c: the kernel and --vs. All return an exit status, the message printed. */
int series_open(Bench *b, Run *r);
/* Arrays are there: each kernel for their arguments, with its grid. */
int series_prepare(Bench *b, int row);
/* What the series gives sdc_measure_rounds; false: it is not measured here. */
bool series_measured(Series *s, SdcMeasured *out);
/* A message of a measured series that failed; EXIT_FINE without. */
int series_failed(Bench *b, Series *s);
void series_done(Bench *b);

typedef struct Cublas Cublas;
int cublas_open(Cli *c, Cublas **out);
/* The product of the run's first three arrays. */
int cublas_prepare(Cublas *b, const Run *r);
SdcStatus cublas_launch(void *cublas, void *stream);
bool cublas_failed(const Cublas *b);

/* A Python with Triton that waits for the next row. */
typedef struct TritonJob TritonJob;
int triton_open(Cli *c, const Run *r, TritonJob **out);
int triton_prepare(TritonJob *t, const Run *r, int64_t value);
SdcStatus triton_timed(void *triton, double *seconds);
bool triton_failed(const TritonJob *t);
void triton_done(TritonJob *t); /* NULL is allowed */

/* bench_roof.c: references, at most ROOF_MOST of them. */
enum { ROOF_MOST = 8 };
typedef struct RoofWork RoofWork;
SdcStatus roof_open(Bench *b, const Run *r, bool products, RoofWork **out);
/* Those for a row of so many bytes; how many. */
int roof_measured(RoofWork *w, double bytes, bool warm, SdcMeasured *out);
void roof_take(RoofWork *w, Bench *b, int row, const SdcMeasured *from);
void roof_done(RoofWork *w); /* NULL is allowed */
/* The share of the roofline that a point reaches. */
double roof_share(const Bench *b, int row, const BenchPoint *p);

/* bench_text.c: the table as it comes, what is to be said behind it, a file of values
   separated by commas. */
void table_head(const Bench *b);
void table_row(const Bench *b, int row);
void table_end(const Bench *b);
void bench_csv(Buf *to, const Bench *b);

/* bench_json.c */
void bench_json(Buf *to, const Bench *b);
/* The kernel of a file that bench_json wrote as a series; an exit status. */
int bench_read(Bench *b, const char *path, Series *s);

/* cmd_plot.c: of what bench_json wrote, by --y, --scale and --title. */
int plot_files(Cli *c, const char *const *names, const char *const *texts, int n,
               const char *path);

#endif
