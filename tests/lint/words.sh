#!/usr/bin/env bash
# The field's words: words.sh ROOT
#
# Code, messages and pages use the words of CUDA, Triton and CUTLASS. Each line names
# words of our own that once stood for one of those, and says what to write instead; none
# may come back.
set -euo pipefail
cd "$1"
if [ -e .git ] && git rev-parse --git-dir >/dev/null 2>&1; then
    mapfile -t files < <(git ls-files --cached --others --exclude-standard)
else
    mapfile -t files < <(find . -type f -not -path './build*' | sed 's|^\./||')
fi
existing=()
for file in "${files[@]}"; do
    case $file in
    tests/lint/words.sh | tests/fuzz/seeds/* | tests/golden/* | \
        tests/oracle/* | LICENSE | *.npy | CHANGELOG*) ;;
    *) [ -f "$file" ] && existing+=("$file") ;;
    esac
done
bad=0
# instead OF PATTERN: a word of the field, and what stands for it no more
instead() {
    local hits
    hits=$(grep -nHIwE -e "$2" -- "${existing[@]}" || true)
    [ -n "$hits" ] || return 0
    cut -d: -f1,2 <<<"$hits" | sed "s|\$|: write: $1|"
    bad=1
}
instead 'dot, matmul, GEMM or wgmma' 'products? of (warpgroups|warps)'
instead 'accumulator' 'sums of (products|dots)'
instead 'warp specialization' 'roles of warps|, all alike'
instead 'producer warp, issues TMA loads' 'asks? for tiles|asking for tiles'
instead 'persistent kernel' '[tT]iles in turn|turns='
instead 'ping-pong' 'turn_(open|take|pass)|OP_TURN_[A-Z]+|ATTR_TURNS'
instead 'double buffer' 'pass_turns|no_turns|PASS_turns'
instead 'transposed, swap A and B' 'operand_turned|layout_turns?(_bytes)?'
instead 'transposed, square block' 'SIMD_MOST_TURNED|(cx|e)->turn|turn_bytes'
instead 'baseline' '[pP]eers?'
instead 'pinned' 'ATTR_LATE'
instead 'attention backward' '[gG]radients of attention'
instead 'loop rotation, software pipelining' '[sS]kew(ed)?|pass_skew|PASS_skew'
instead 'stage operands' 'pass_share|PASS_share'
instead 'software pipelining, prefetch distance' \
    'ATTR_AHEAD|loads? (that|which) runs? ahead|stage plan'
instead 'TMA' "[cC]opy (engine|unit)|the engine('s)?"
instead 'outstanding store' 'SENDING|sent by TMA'
instead 'reduction across lanes' 'puts? together between threads'
instead '32-bit registers' 'KEPT_WORDS|MANY_WORDS|(loop|step|product)_words'
instead 'offset in shared memory' 'places? in shared memory'
instead 'release stage, issue loads' 'give_back|end_late|after_late'
instead 'proxy fence' 'pass_fence(_reads)?|PASS_fence(_reads)?'
instead 'launch_dependents, primary and secondary grid' \
    'grid_next|OP_GRID_NEXT|the grid (before|behind|in front)'
instead 'insert_pdl' 'pass_overlap|PASS_overlap'
instead 'assume divisible' 'pass_modulo|PASS_modulo'
instead 'undef_masked, masked off' '[uU]nseen|nobody sees'
instead 'fuse_forward' 'pass_forward|PASS_forward'
instead 'scalarize_induction' 'pass_carry|PASS_carry'
instead 'fold_rand_compare' 'pass_threshold|PASS_threshold'
instead 'simd, lower_cpu' 'nest_[a-z]+|below0|NEST_[A-Z]+'
instead 'replication' 'layout_copies'
instead 'fallback' '[tT]wins?'
instead 'guarded arguments' 'some_args'
instead 'cost model' '[jJ]udgements?'
instead 'results' '[fF]igures of|the figures|write the figures'
instead 'SM' '[mM]ultiprocessors?'
instead 'reductions over rows' 'row kernels?'
instead 'RNG statistics' 'run/chance|run_chance'
exit $bad
