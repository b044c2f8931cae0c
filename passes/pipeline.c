/* The pass lists of each target. Where the order matters for a reason that the property
   bits cannot say, the reason stands beside the line. */
#include "passes/pass.h"

#include "ir/base/util.h"

static const PassId cpu_list[] = {
    PASS_canon, /* first: static conditions and trip counts become visible */
    PASS_cse,       PASS_dce,
    PASS_sums,      /* the 0 that products begin with is a constant by now */
    PASS_threshold, /* before licm: the bound is computed once */
    PASS_mask,   /* before licm: the index arithmetic that it makes is mostly invariant */
    PASS_bounds, /* before canon: constant conditions take their arms along */
    PASS_peel,      PASS_canon,
    PASS_cse,       PASS_forward, /* after cse: equal addresses are one value */
    PASS_carry, /* after canon: splats stand right in front of the additions */
    PASS_licm,  /* after cse: one copy of each invariant is moved */
    PASS_dce,       PASS_nest,
    PASS_canon, /* index arithmetic that nest repeated is merged and hoisted again */
    PASS_cse,       PASS_licm,
    PASS_dce,
};

static const PassId gpu_list[] = {
    PASS_canon, /* as on the CPU */
    PASS_cse,
    PASS_dce,
    PASS_sums,
    PASS_threshold,
    PASS_mask,
    PASS_bounds,
    PASS_canon,
    PASS_cse,
    PASS_forward,
    PASS_carry,
    PASS_unwrap, /* after cse: equal sizes are one value */
    PASS_modulo, /* sums stand right in front of the remainders */
    PASS_distinct,
    PASS_rounds, /* after it: words of eight rows move by an eighth */
    PASS_canon,
    PASS_cse,
    PASS_licm,
    PASS_dce,
    PASS_layout,
    PASS_cse, /* what layout computed again in two places */
    PASS_dce,
    PASS_licm, /* before share: an operand that no iteration changes stays in registers */
    PASS_cse,  /* which two loops may have in common */
    PASS_share,
    PASS_wgmma,
    PASS_partial_sums, /* after layout; before roles, which copy the loops */
    PASS_dce, /* transposes of what is read the other way round now: views of it */
    PASS_stage_plan,
    PASS_tma, /* after layout has given the buffers their order */
    PASS_persist,
    PASS_tma_store, /* before the roles, whose stages leave it room */
    PASS_specialize,
    PASS_peel, /* after stage-plan: which loops run ahead is known */
    PASS_stage_expand,
    PASS_wgmma_defer,
    PASS_dce, /* what the roles do not need */
    PASS_skew,
    PASS_wgmma_sink, /* after it: what goes around the loop is not waited for at all */
    PASS_turns,      /* after it: a store would hold a wait up */
    PASS_fence,
    PASS_cse,
    PASS_licm,
    PASS_dce,           /* addresses that only the copies use now */
    PASS_unseen,        /* after the stages: a copy fills what is masked off by itself */
    PASS_reduce_layout, /* after the last conversion was made or dropped */
    PASS_smem,    /* after all passes that make, move or drop what takes shared memory */
    PASS_barrier, /* behind smem: places say what conflicts */
    PASS_fence_reads, /* after it: in front of barriers, as early as those who read */
    PASS_overlap,     /* last: nothing moves an access in front of the wait any more */
};

const PassId *
pipeline_for(const TargetInfo *t, int *n)
{
    *n = t->gpu ? COUNT_OF(gpu_list) : COUNT_OF(cpu_list);
    return t->gpu ? gpu_list : cpu_list;
}
