/* From the text of a .tk or Triton .py file to typed tile IR. Errors go to s->diag; what
   is returned is in the session's memory. */
#ifndef SDC_FRONTEND_FRONTEND_H
#define SDC_FRONTEND_FRONTEND_H

#include "ir/ir.h"

typedef struct FrontModule FrontModule;

typedef struct FrontOptions {
    const char *const *include_dirs; /* -I, searched for imports of jit helpers */
    int ninclude;
    const char *const *defines; /* -D NAME=VALUE: what module level code cannot know */
    int ndefine;
    const char *target;  /* "cpu", "sm_90a": what queries of the device answer; or NULL */
    /* Reads a file for an import; returns NULL when it does not exist. The text must
       live as long as the session. NULL: the file system. */
    const Source *(*read_file)(void *user, Session *s, const char *path);
    void *user;
} FrontOptions;

/* What read_file is when there is none: the file system. */
const Source *front_read_disk(Session *s, const char *path);

/* Parses a file; NULL after errors. The text must outlive the session's use of it. */
FrontModule *front_load(Session *s, const Source *src, const FrontOptions *opt);

/* Warns of each -D that the file has not used so far. */
void front_unused_defines(FrontModule *m);

/* Kernels (jit functions that can be launched) in source order. */
int front_kernel_count(const FrontModule *m);
const char *front_kernel_name(const FrontModule *m, int i);
/* Does `asked` mean the kernel of this name? Kernel CLASS_f, of a class, may also be
   asked for as CLASS.f. */
bool front_kernel_is(const char *name, const char *asked);

/* After the error that there is no kernel of this name (NULL: none at all): adds notes on
   functions without a decorator. */
void front_explain_missing(FrontModule *m, const char *name);

/* The same: adds notes on functions that return a value and so are no kernels. */
void front_explain_helpers(FrontModule *m, const char *name);

/* Signatures that a kernel could be launched with, the likeliest first. */
typedef struct FrontGuess {
    const char **signature;
    int n;
    int likely; /* the first so many fit all that the kernel does with its parameters */
} FrontGuess;

/* Guesses signatures. Parameters that `signature`, the overrides (as of
   front_spec_parse), annotations, configurations and heuristics leave open are guessed by
   what the kernel does with them; one on which there is no evidence is left out. called:
   the helpers that the kernel reaches are added, as FUNCTION nodes; may be NULL. False
   after an error: no such kernel, or a text that cannot be read. */
bool front_guess(FrontModule *m, const char *kernel, const char *signature,
                 const char *const *overrides, int noverride, struct Map *called,
                 FrontGuess *out);

/* What `sdc check` finds out about one jit function. */
typedef struct FrontCheck {
    const char *name;
    Loc loc;
    /* false: a helper. It returns a value, or other functions of the file call it and
       nothing launches it. */
    bool is_kernel;
    /* Of a kernel: there is one of this name. Of a helper that no kernel reaches: every
       name resolves and every construct is known. */
    bool ok;
    FrontGuess guess; /* signatures of a kernel */
} FrontCheck;

typedef struct FrontReport {
    FrontCheck *fn;
    int nfn;
    Loc *skipped; /* blocks of host code that were not understood */
    int nskipped;
} FrontReport;

/* What `sdc check` is asked to check. */
typedef struct FrontAsked {
    const char *kernel;      /* NULL: all */
    const char *signature;   /* NULL: to be guessed */
    const char *const *bind; /* NAME=VALUE, each for kernels with that parameter */
    int nbind;
} FrontAsked;

/* Finds the kernels of a file with their signatures, and checks names and constructs of
   helpers that no kernel reaches. The reasons of what is not ok go to s->diag. */
void front_check(FrontModule *m, const FrontAsked *asked, FrontReport *out);

/* A compile-time value given from outside. */
typedef enum SpecKind {
    SPEC_TYPE,  /* runtime argument of type `sig`, with hints */
    SPEC_INT,
    SPEC_FLOAT,
    SPEC_BOOL,
    SPEC_STR,
    SPEC_DTYPE, /* constexpr dtype: sig is its Triton name, "fp16" */
    SPEC_NONE,
    SPEC_NAME,  /* a bare word in str: the jit function of that name, or a string */
    SPEC_TUPLE, /* items[nitem], of an argument: types; str: its class, or NULL */
    SPEC_UNSET  /* not given: the parameter's default */
} SpecKind;

typedef struct SpecArg {
    SpecKind kind;
    /* SPEC_TYPE: "*fp16", "i32", "tensordesc<fp16[64,64]>"; SPEC_DTYPE */
    const char *sig;
    int64_t div;     /* SPEC_TYPE: known divisor (16 or 1) */
    int64_t i;
    double f;
    const char *str;
    const struct SpecArg *items;
    int nitem;
} SpecArg;

typedef struct FrontSpec {
    SpecArg *args;   /* one per parameter of the kernel, in order */
    int narg;
    int num_warps, num_stages, num_ctas; /* 0: from autotune's first config, or 4, 3, 1 */
    bool debug;      /* device_assert and assert are compiled in */
    bool launch_pdl; /* programmatic dependent launch */
    bool exact;      /* enable_fp_fusion=False: sums and products are rounded apart */
} FrontSpec;

/* A parameter of a kernel, as a host must know it to specialize the kernel. */
typedef struct FrontParam {
    const char *name;
    bool is_constexpr;
    bool has_default;
    const char *annotated; /* type from the annotation in Triton's spelling, or NULL */
    bool no_specialize;
} FrontParam;

/* False when there is no such kernel (error in s->diag). */
bool front_params(FrontModule *m, const char *kernel, const FrontParam **params, int *n);

/* A configuration of @triton.autotune: NAME=VALUE texts, also for num_warps and the
   like. */
typedef struct FrontConfig {
    const char **bind;
    int nbind;
} FrontConfig;

/* All of them, and the names in its lists key, reset_to_zero and restore_value. */
typedef struct FrontConfigs {
    FrontConfig *config;
    int n; /* 0: there is no autotune */
    const char *const *key, *const *reset, *const *restore;
    int nkey, nreset, nrestore;
} FrontConfigs;

/* False after an error: no such kernel, or configurations that only Python could
   compute. */
bool front_configs(FrontModule *m, const char *kernel, FrontConfigs *out);

/* The value of an argument in the launch that is specialized. */
typedef struct FrontValue {
    bool known;
    int64_t i;
} FrontValue;

/* Sets the arguments of a launch, one for each parameter, for the functions of
   @triton.heuristics. The array must live as long as the module. */
void front_values(FrontModule *m, const FrontValue *values, int n);
/* Has the kernel @triton.heuristics? */
bool front_has_heuristics(FrontModule *m, const char *kernel);

/* Calls the functions of prune_configs_by: keep[i] says whether configuration i stays.
   values: one for each parameter, as for front_values; bind: NAME=VALUE of further ones.
   If the functions need what is not known here it warns and keeps all. False after an
   error. */
bool front_prune(FrontModule *m, const char *kernel, const FrontValue *values,
                 const char *const *bind, int nbind, FrontConfigs *configs, bool *keep);

/* Reads a SIGNATURE (positional "'*fp16:16,i32,128'" or by name
   "x=*fp16:16,BLOCK=128") and then the -c NAME=VALUE overrides into a spec. With
   signature NULL only annotations, defaults and overrides count. */
bool front_spec_parse(FrontModule *m, const char *kernel, const char *signature,
                      const char *const *overrides, int noverride, FrontSpec *out);

/* Types, specializes and lowers one kernel into `out`; NULL after errors. The name of the
   function is the kernel's. */
Func *front_lower(FrontModule *m, const char *kernel, const FrontSpec *spec, Module *out);

/* Prints the syntax tree (--emit=ast). */
void front_print_ast(const FrontModule *m, Buf *out);

#endif
