/* The host as a target: x86-64 with AVX2 and FMA unless told otherwise. Strips are
   vectors already, so LLVM's middle-end is only asked to clean up: its vectorizers and
   unrollers would cost the compile time and find nothing. */
#include "codegen/gen_cpu.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    bool avx2;
    unsigned units;
} cpus[] = {
#define CPU(name, avx2, units) {name, avx2, units},
#include "codegen/cpus.def"
};

static bool
known_cpu(Session *s, const char *name)
{
    Buf b;
    buf_init(&b, &s->tmp);
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++) {
        if (strcmp(name, cpus[i].name) == 0)
            return true;
        buf_printf(&b, ", %s", cpus[i].name);
    }
    diag_error(&s->diag, (Loc){0}, "no CPU of 64 bits is named '%s'; names: native%s",
               name, b.s);
    return false;
}

bool
cpu_has_avx2(const char *name, const char *features)
{
    if (strstr(features, "-avx2") || strstr(features, "-fma,") ||
        strstr(features, "-f16c"))
        return false; /* a machine that hides some of what it is */
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus; i++)
        if (strcmp(name, cpus[i].name) == 0)
            return cpus[i].avx2 || strstr(features, "+avx2");
    return strstr(features, "+avx2") != NULL;
}

/* Is `feature` said to be there, of "+a,-b,.."? */
static bool
has(const char *features, const char *feature)
{
    size_t n = strlen(feature);
    for (const char *p = features; (p = strchr(p, '+')) != NULL;)
        if (strncmp(++p, feature, n) == 0 && (p[n] == ',' || !p[n]))
            return true;
    return false;
}

unsigned
cpu_units(const char *name, const char *features)
{
    unsigned units = 0;
    for (size_t i = 0; i < sizeof cpus / sizeof *cpus && !*features; i++)
        if (strcmp(name, cpus[i].name) == 0)
            units = cpus[i].units;
    if (!has(features, "avx512f") || !has(features, "avx512vl") ||
        !has(features, "avx512bw"))
        return units;
    units = AVX512;
    units |= has(features, "avx512vnni") ? VNNI : 0;
    units |= has(features, "avx512bf16") ? BF16 : 0;
    bool tiles = has(features, "amx-tile") && has(features, "amx-bf16");
    tiles &= has(features, "amx-int8") && !strstr(features, "-amx-tile");
    return units | (tiles ? AMX : 0);
}

/* What the system does not let this process use of its processor: tiles must be asked
   for, for all threads at once. */
static const char *
refused(const char *features)
{
    bool given = !has(features, "amx-tile");
#ifdef __x86_64__
    enum { ASK = 0x1023, TILE_DATA = 18 };
    given = given || syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
#endif
    if (given)
        return "";
    return ",-amx-tile,-amx-bf16,-amx-int8,-amx-fp16,-amx-complex";
}

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
        if (!cpu || !features)
            fail_jump(&s->fail, FAIL_MEMORY, "out of memory");
        out->cpu = arena_printf(&s->perm, "%s", cpu);
        out->features = arena_printf(&s->perm, "%s%s", features, refused(features));
        LLVMDisposeMessage(cpu);
        LLVMDisposeMessage(features);
        return true;
    }
    return known_cpu(s, out->cpu);
}

char *
codegen_host_cpu(void)
{
    LlvmSection section;
    char *both = NULL;
    ll_enter(&section, NULL);
    char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
    int n = cpu && features
                ? asprintf(&both, "%s %s%s", cpu, features, refused(features))
                : -1;
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
    ll_exit(&section);
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

/* The kernels of kernels_dsl/ have up to 6,800, in 365 blocks. */
static bool
counts(LLVMOpcode op)
{
    (void)op;
    return true;
}

const Target target_cpu = {
    .family = "cpu",
    .machine = machine,
    .func = gen_cpu_func,
    .math = gen_cpu_math,
    .fcast = cpu_fcast,
    .passes = passes,
    .cleanup = cpu_cleanup,
    .most = {.loops = 256, .blocks = 1024, .instructions = 24576, .in_block = 2048},
    .counts = counts,
};
