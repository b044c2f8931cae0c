/* The pass lists of each target. Where the order matters for a reason that forms
   cannot say, the reason stands beside the line. */
#include "passes/pass.h"

#include "ir/base/util.h"

static const PassId cpu_list[] = {
    PASS_canon, /* first: static conditions and trip counts become visible */
    PASS_cse,
    PASS_dce,
    PASS_fold_accumulator,  /* the 0 that dots begin with is a constant by now */
    PASS_fold_rand_compare, /* before licm: the bound is computed once */
    PASS_lower_block_ptr,   /* before licm: the index arithmetic that it makes is mostly
                               invariant */
    PASS_fold_bounds,       /* before canon: constant conditions take their arms along */
    PASS_peel,
    PASS_canon,
    PASS_cse,
    PASS_fuse_forward,        /* after cse: equal addresses are one value */
    PASS_scalarize_induction, /* after canon: splats are next to the additions */
    PASS_licm,                /* after cse: one copy of each invariant is moved */
    PASS_dce,
    PASS_lower_cpu,
    PASS_canon, /* index arithmetic that lower-cpu repeated is merged and hoisted again */
    PASS_cse,
    PASS_licm,
    PASS_dce,
};

static const PassId gpu_list[] = {
    PASS_canon, /* as on the CPU */
    PASS_cse,
    PASS_dce,
    PASS_fold_accumulator,
    PASS_fold_rand_compare,
    PASS_unflatten, /* before unwrap and tma: what they prove holds in a loop over k */
    PASS_lower_block_ptr,
    PASS_fold_bounds,
    PASS_canon,
    PASS_cse,
    PASS_fuse_forward,
    PASS_scalarize_induction,
    PASS_unwrap,           /* after cse: equal sizes are one value */
    PASS_assume_divisible, /* sums stand right in front of the remainders */
    PASS_distinct,
    PASS_short_steps,
    PASS_rounds, /* after distinct: words of eight rows move by an eighth */
    PASS_split_dot, /* before licm: parts of an operand that no iteration changes */
    PASS_canon,
    PASS_cse,
    PASS_licm,
    PASS_dce,
    PASS_relax_exp, /* after dce: every use counts */
    PASS_layout,
    PASS_cse, /* what layout computed again in two places */
    PASS_dce,
    PASS_licm, /* before stage-mma-operands: an operand that no iteration changes stays in
                  registers, */
    PASS_cse,  /* which two loops may have in common */
    PASS_strip_mine, /* after licm: what it computes again stands outside */
    PASS_stage_mma_operands,
    PASS_lower_wgmma,
    PASS_defer_reduction, /* after layout; before roles, which copy the loops */
    PASS_dce,             /* transposes of what is read transposed now: views of it */
    PASS_stage_plan,
    PASS_tma, /* after layout has given the buffers their order */
    PASS_persist,
    PASS_tma_store, /* before the roles, whose stages leave it room */
    PASS_specialize,
    PASS_multicast,
    PASS_peel, /* after stage-plan: which loops are pipelined is known */
    PASS_dce,  /* what the roles do not need */
    PASS_delay_dot, /* after it: of warpgroups with roles one computes meanwhile */
    PASS_rotate_loop,
    PASS_stage_expand,
    PASS_dce,
    PASS_double_buffer,
    PASS_place_waits, /* after both: the order of dots and what they read are known */
    PASS_unroll,
    PASS_carry_loads, /* after it: of loops that it has not changed; after stage-expand:
                         what copies fill is no load any more */
    PASS_insert_proxy_fence,
    PASS_cse,
    PASS_licm,
    PASS_dce,          /* addresses that only the copies use now */
    PASS_undef_masked, /* after the stages: a copy fills what is masked off by itself */
    PASS_fold_convert, /* after the last conversion was made or dropped */
    PASS_alloc_shared, /* after all passes that make, move or drop what takes shared
                          memory */
    PASS_insert_barriers,   /* after alloc-shared: offsets say what conflicts */
    PASS_insert_read_fence, /* after it: fences go in front of barriers */
    PASS_insert_pdl, /* last: nothing moves an access in front of the wait any more */
};

const PassId *
pipeline_for(const TargetInfo *t, int *n)
{
    *n = t->gpu ? COUNT_OF(gpu_list) : COUNT_OF(cpu_list);
    return t->gpu ? gpu_list : cpu_list;
}
