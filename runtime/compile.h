/* The whole compiler as one function: source in, bytes and metadata out. */
#ifndef SDC_RUNTIME_COMPILE_H
#define SDC_RUNTIME_COMPILE_H

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "ir/base/util.h"
#include "passes/pass.h"
#include "runtime/sdc.h"

/* Where the time of a compile went. */
typedef struct StageTimes {
    double load;  /* read and parse */
    double lower; /* specialize, type, lower; or read tile IR */
    double passes;
    double codegen, llvm_opt, llvm_emit;
    double total;
    PassTime *pass;
    int npass;
} StageTimes;

/* GPU: what the code may use tensor maps for, where the source does not ask for them. */
typedef enum JobMaps {
    MAPS_ANY,   /* loads and results */
    MAPS_LOADS, /* results go by threads */
    MAPS_NONE
} JobMaps;

typedef struct CompileJob {
    Source src;
    bool is_tir;
    bool debug;
    int check; /* CHECK_* of the code, on the CPU */
    bool checks;         /* for sdc_module_check */
    const char *guessed; /* the signature, when nobody has asked for it; or NULL */
    bool launched;       /* the signature is that of a launch's arguments */
    int64_t tile_most;   /* elements; larger tiles are refused; 0: whatever they are */
    bool *tile_refused;  /* ... and this is set */
    bool bitcode; /* CPU: the code as codegen_bundle takes it */
    const FrontValue *values; /* of a launch, one a parameter; NULL: not known */
    int nvalue;
    /* Sees the tile IR before any pass; may be NULL. */
    void (*pre_pass)(const Module *m, void *user);
    void *pre_pass_user;
    JobMaps maps;
    bool folds; /* GPU: for grids beyond what the device takes along an axis */
    bool once;  /* GPU: for grids whose programs all run at once */
    FrontOptions front;
    SdcCompileOptions opt;
} CompileJob;

typedef struct CompileResult {
    const char *bytes; /* in s->perm */
    size_t size;
    SdcrtMeta *meta;
    int nmeta;
    FrontSpec spec;      /* what the parameters became; no args for tile IR */
    const FrontParam *params; /* of the source; NULL for tile IR */
    int nparam;
    const char *explain; /* what opt.explain asks for, or NULL */
    const char *running; /* pass that runs; NULL before and after */
    StageTimes times;
} CompileResult;

/* Fills `out` as it goes, so that times and the pass that ran are known after a failure
   too. False after errors (in s->diag). */
bool compile_run(Session *s, const CompileJob *job, CompileResult *out);

/* The first steps of compile_run for a kernel's source. Compiling several specializations
   of a file, a caller may load it once. NULL after errors. */
FrontModule *compile_load(Session *s, const CompileJob *job);
Module *compile_lower(Session *s, FrontModule *m, const CompileJob *job,
                      CompileResult *out);

/* The signature and bindings of a job as a specialization of the kernel. */
bool compile_spec(Session *s, FrontModule *m, const CompileJob *job, const char *kernel,
                  FrontSpec *spec);

/* Name of the only kernel, or of the one asked for; NULL after an error. */
const char *compile_kernel(Session *s, FrontModule *m, const char *asked);

/* Describes the parameters of the source in metadata, and what they were bound to;
   `params` NULL for tile IR. False after an error. */
bool meta_sources(Session *s, SdcrtMeta *meta, const FrontSpec *spec,
                  const FrontParam *params, int n);

/* A table of the times, in `out`. */
void times_print(Buf *out, const StageTimes *t);

#endif
