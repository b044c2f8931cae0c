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
    int known = info->sm >= 120 ? 87 : info->sm >= 100 ? 86 : info->sm >= 89 ? 81 : 74;
    out->triple = "nvptx64-nvidia-cuda";
    out->cpu = opt->target;
    out->features = arena_printf(&s->perm, "+ptx%d", ptx > known ? ptx : known);
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
           "early-cse<memssa>,gvn,instcombine<no-verify-fixpoint>,simplifycfg)";
}

const Target target_nvptx = {
    .family = "nvptx",
    .gpu = true,
    .machine = machine,
    .func = gen_nv_func,
    .math = nv_math,
    .fcast = nv_fcast,
    .passes = passes,
    .cleanup = nv_cleanup,
};
