/* NVIDIA GPUs through LLVM's NVPTX backend. The PTX version is the oldest that knows the
   architecture and what the code uses, so that older drivers accept the text. LLVM's
   middle-end runs with the target machine (it must know which operations are convergent)
   and is asked to clean up: registers are scalars already and there is nothing to
   vectorize. */
#include "codegen/gen_nv.h"

static bool
machine(Session *s, const CodegenOptions *opt, const TargetInfo *info, int ptx,
        Machine *out)
{
    out->triple = "nvptx64-nvidia-cuda";
    out->cpu = opt->target;
    out->features = arena_printf(&s->perm, "+ptx%d", ptx > info->ptx ? ptx : info->ptx);
    return true;
}

static const char *
passes(int opt)
{
    if (opt <= 0)
        return "";
    return "always-inline,globaldce,"
           "function<eager-inv>(sroa,early-cse<memssa>,simplifycfg,"
           "instcombine<no-verify-fixpoint>,loop-mssa(licm<allowspeculation>),"
           "gvn,aggressive-instcombine,"
           "instcombine<no-verify-fixpoint>,simplifycfg)";
}

/* What straight-line strength reduction looks at. The most that a kernel of kernels_dsl/
   has is 1,200, with 9 loops. In a block everything counts, since selection looks at all
   of it: those have up to 2,000, a GEMM of 128x256 with erf behind it
   4,300, in 0.1 s, and 6,800 of weights of pixels took 17 s (sdc compile, 2026-11-22). */
static bool
counts(LLVMOpcode op)
{
    return op == LLVMAdd || op == LLVMSub || op == LLVMMul || op == LLVMShl ||
           op == LLVMGetElementPtr;
}

const Target target_nvptx = {
    .family = "nvptx",
    .gpu = true,
    .machine = machine,
    .func = gen_nv_func,
    .math = nv_math,
    .divide = nv_divide,
    .fcast = nv_fcast,
    .passes = passes,
    .most = {.loops = 64, .blocks = 1024, .instructions = 2048, .in_block = 5120},
    .counts = counts,
    .cleanup = nv_cleanup,
    .unoptimised = nv_serial,
};
