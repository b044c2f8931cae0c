/* Raises num_warps where an accumulator does not fit into the registers of so many warps:
   128 x 256 of fp32 take 256 registers of each thread with four warps, 128 with eight.
   The number of warps changes only speed, so this is safe, except where the source sets
   it or has inline assembly with effects, which may count threads. */
#include "passes/layout/layout.h"

#include "ir/base/util.h"
#include "ir/op.h"

enum { MOST_WARPS = 8, LANES = 32, WORD = 32 };

/* *words: of 32 bits, of the largest accumulator. *fixed: there is such assembly. */
static void
find_accumulators(const Func *f, int64_t *words, bool *fixed)
{
    region_each_deep(f->body, op)
    {
        if (op->kind == OP_DOT) {
            const Type *t = op->results[0].type;
            *words = max_i64(*words, type_numel(t) * type_bits(t) / WORD);
        }
        *fixed |= op->kind == OP_ASM_EFFECT;
    }
}

static bool
fits(int64_t words, int warps)
{
    return words < (int64_t)MANY_REGISTERS * LANES * warps;
}

void
layout_more_warps(Func *f)
{
    int64_t words = 0;
    int warps = f->num_warps;
    bool fixed = f->fixed_warps;
    find_accumulators(f, &words, &fixed);
    while (warps < MOST_WARPS && !fits(words, warps))
        warps *= 2;
    if (!fixed && fits(words, warps))
        f->num_warps = warps;
}
