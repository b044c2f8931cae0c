/* Tile IR to machine code. Callers see bytes only, no object of LLVM. Each call has an
   LLVM context and target machine of its own, so threads may compile at the same time,
   each in its own session. */
#ifndef SDC_CODEGEN_CODEGEN_H
#define SDC_CODEGEN_CODEGEN_H

#include "ir/ir.h"
#include "runtime/rt/meta.h"

/* ASM: assembly, on a GPU PTX. BITCODE: optimised, for codegen_bundle. */
typedef enum EmitKind { EMIT_LLVM, EMIT_ASM, EMIT_OBJ, EMIT_BITCODE } EmitKind;

typedef struct CodegenOptions {
    const char *target; /* "cpu", "sm_80", "sm_90a" */
    const char *cpu;    /* host: "native", "x86-64-v3", ...; NULL: x86-64-v3 */
    int opt;            /* 0..3 */
    EmitKind emit;
    bool lineinfo;
    bool folds;         /* GPU: TargetInfo.folds */
} CodegenOptions;

typedef struct CodegenOut {
    const char *bytes;  /* in s->perm; text is NUL-terminated */
    size_t size;
    SdcrtMeta *meta;    /* in s->perm; one per function of the module */
    int nmeta;
    double opt_seconds, emit_seconds; /* time spent in LLVM's middle-end and backend */
} CodegenOut;

/* Compiles a module that has been through the target's passes. False after errors, which
   are in s->diag; a fatal error inside LLVM goes to the session's fail point as
   FAIL_BUG. */
bool codegen_run(Module *m, const CodegenOptions *opt, CodegenOut *out);

/* How many compilations of this process ended in the middle of LLVM; *bytes: what they
   left allocated. */
int codegen_lost(int64_t *bytes);

/* The name and features of the CPU that "native" stands for; malloc'ed, NULL when out of
   memory. */
char *codegen_host_cpu(void);

/* One compiled kernel of a bundle, see runtime/rt/bundle.h. */
typedef struct BundleCode {
    const SdcrtMeta *meta;
    int kind;          /* SdcrtCodeKind */
    const void *bytes; /* CPU: bitcode or LLVM IR; else what the driver takes */
    size_t size;
} BundleCode;

typedef struct BundleGroup {
    const char *name; /* the object defines NAME_bundle */
    const BundleCode *code;
    int ncode;
} BundleGroup;

/* Makes one object file for the host, for CPU `cpu` (as CodegenOptions.cpu), with all
   groups in it. False after errors, which are in s->diag. */
bool codegen_bundle(Session *s, const char *cpu, const BundleGroup *groups, int n,
                    CodegenOut *out);

#endif
