/* The host as a target: x86-64 with AVX2 and FMA unless told otherwise. Strips are
   vectors already, so LLVM's middle-end is only asked to clean up: its vectorizers and
   unrollers would cost the compile time and find nothing. */
#include "codegen/gen_cpu.h"

#include <stdio.h>
#include <string.h>

static bool
machine(Session *s, const CodegenOptions *opt, const TargetInfo *info, int ptx,
        Machine *out)
{
    (void)info, (void)ptx;
#ifndef __x86_64__
    diag_error(&s->diag, (Loc){0}, "not supported yet: the cpu target on this processor");
    return false;
#endif
    out->triple = "x86_64-unknown-linux-gnu";
    out->cpu = opt->cpu ? opt->cpu : "x86-64-v3";
    out->features = "";
    if (strcmp(out->cpu, "native") == 0) {
        char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
        out->cpu = arena_printf(&s->perm, "%s", cpu);
        out->features = arena_printf(&s->perm, "%s", features);
        LLVMDisposeMessage(cpu);
        LLVMDisposeMessage(features);
    }
    return true;
}

char *
codegen_host_cpu(void)
{
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures(), *both;
    int n = asprintf(&both, "%s %s", cpu, features);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    return n < 0 ? NULL : both;
}

static const char *
passes(int opt)
{
    if (opt <= 0)
        return "";
    return "function<eager-inv>(sroa,early-cse<memssa>,simplifycfg,"
           "instcombine<no-verify-fixpoint>,loop-mssa(licm<allowspeculation>),"
           "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg)";
}

const Target target_cpu = {
    .family = "cpu",
    .machine = machine,
    .func = gen_cpu_func,
    .math = gen_cpu_math,
    .passes = passes,
};
