/* From the text of a .tk or Triton .py file to typed tile IR. */
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

/* Warns of -D that nothing has asked for so far. */
void front_unused_defines(FrontModule *m);

/* Kernels (jit functions that can be launched) in source order. */
int front_kernel_count(const FrontModule *m);
const char *front_kernel_name(const FrontModule *m, int i);
/* Is the kernel of this name meant? One of a class, CLASS_f, may be asked for as CLASS.f.
 */
bool front_kernel_is(const char *name, const char *asked);

/* Notes to the last error, that there is no kernel of this name (NULL: none at all):
   functions that lack their decorator. */
void front_explain_missing(FrontModule *m, const char *name);

/* The same: functions that return a value, and so are no kernels. */
void front_explain_helpers(FrontModule *m, const char *name);

/* Signatures that a kernel could be launched with, the likeliest first: what the text
   and the overrides (as of front_spec_parse), annotations, configurations and heuristics
   leave open is guessed by what the kernel does with it. A parameter about which nothing
   can be said is left out. */
typedef struct FrontGuess {
    const char **signature;
    int n;
    int likely; /* those behind contradict what the kernel does with one parameter */
} FrontGuess;

/* `called`: the helpers that the kernel reaches are added, as nodes; may be NULL. False
   after an error: no such kernel, or a text that cannot be read. */
bool front_guess(FrontModule *m, const char *kernel, const char *signature,
                 const char *const *overrides, int noverride, struct Map *called,
                 FrontGuess *out);

/* What `sdc check` says of one jit function. */
typedef struct FrontCheck {
    const char *name;
    Loc loc;
    /* false: a helper. It returns a value, or others of the file call it and nothing
       launches it. */
    bool is_kernel;
    /* Of a helper that no kernel reaches: every name resolves and every construct is
       known. Of a kernel: it can be asked for. */
    bool ok;
    FrontGuess guess; /* signatures of a kernel */
} FrontCheck;

typedef struct FrontReport {
    FrontCheck *fn;
    int nfn;
    Loc *skipped; /* blocks of host code that were not understood */
    int nskipped;
} FrontReport;

/* What sdc check is asked about. */
typedef struct FrontAsked {
    const char *kernel;      /* NULL: all */
    const char *signature;   /* NULL: to be guessed */
    const char *const *bind; /* NAME=VALUE, each for kernels with that parameter */
    int nbind;
} FrontAsked;

/* The kernels of a file with their signatures, and a look at the names and constructs of
   helpers that they do not reach. Reasons go to s->diag. */
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
    SPEC_NAME,  /* a bare word: the jit function of that name, else its text */
    SPEC_TUPLE, /* of nitem values; types too, for an argument. str: its class, or NULL */
    SPEC_UNSET  /* the default of the parameter */
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
    bool launch_pdl; /* launches overlap with the end of the primary grid */
} FrontSpec;

/* What a host must know of a kernel's parameters before it can specialize it. */
typedef struct FrontParam {
    const char *name;
    bool is_constexpr;
    bool has_default;
    const char *annotated; /* type from the annotation in Triton's spelling, or NULL */
    bool no_specialize;
} FrontParam;

/* False when there is no such kernel (error in s->diag). */
bool front_params(FrontModule *m, const char *kernel, const FrontParam **params, int *n);

/* @triton.autotune as it is written: every configuration as NAME=VALUE texts, num_warps
   and its like among them, and the names that its lists hold. */
typedef struct FrontConfig {
    const char **bind;
    int nbind;
} FrontConfig;

typedef struct FrontConfigs {
    FrontConfig *config;
    int n; /* 0: there is no autotune */
    const char *const *key, *const *reset, *const *restore;
    int nkey, nreset, nrestore;
} FrontConfigs;

/* False after an error: no such kernel, or configurations that only Python can make. */
bool front_configs(FrontModule *m, const char *kernel, FrontConfigs *out);

/* What is known of an argument beside its type when a launch specializes. */
typedef struct FrontValue {
    bool known;
    int64_t i;
} FrontValue;

/* The arguments of a launch, one for each parameter, for the functions of
   @triton.heuristics; as long as the module. */
void front_values(FrontModule *m, const FrontValue *values, int n);
bool front_has_heuristics(FrontModule *m, const char *kernel);

/* What prune_configs_by of the decorator leaves of the configurations, one bool each.
   `values`: one a parameter, as front_values takes them; `bind`: what else is bound.
   Warns where those functions want what is not known here, and keeps all. */
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
