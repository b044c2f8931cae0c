/* Passes that rewrite tile IR, over random functions: the same stores and no load that
   was not there. Each pass alone, behind the others, and the lists of the targets as far
   as tiles stay tiles. */
#include "tests/rules/support/mix.h"

#include <stdio.h>
#include <stdlib.h>

static const Mix mixes[] = {
    {.statements = 40,
     .floats = true,
     .tiles = true,
     .memory = true,
     .control = true,
     .counter = SK_I32},
    {.statements = 40, .tiles = true, .memory = true, .control = true, .counter = SK_I8},
    {.statements = 60, .floats = true, .tiles = true, .counter = SK_NONE},
    {.statements = 40,
     .tiles = true,
     .memory = true,
     .control = true,
     .counter = SK_NONE},
};

/* RULES_SEED and RULES_COUNT go on where the test ends. */
static void
over(const char *passes, int count)
{
    const char *first = getenv("RULES_SEED"), *more = getenv("RULES_COUNT");
    uint64_t seed = first ? strtoull(first, NULL, 10) : 0;
    count = more ? atoi(more) : count;
    for (int i = 0; i < count; i++)
        lab_check(&(LabTest){.name = passes,
                             .make = mix_make,
                             .user = &mixes[(seed + (uint64_t)i) % 4],
                             .passes = passes,
                             .seed = seed + (uint64_t)i,
                             .runs = 8});
}

#define OVER(test, passes, count)                                                        \
    START_TEST(test)                                                                     \
    {                                                                                    \
        over(passes, count);                                                             \
    }                                                                                    \
    END_TEST

OVER(canon, "canon", 300)
OVER(bounds, "fold-bounds", 300)
OVER(peel, "peel", 300)
OVER(peel_after_bounds, "fold-bounds,peel,peel,canon", 200)
OVER(carry, "canon,scalarize-induction,canon", 200)
OVER(threshold, "fold-rand-compare,undef-masked", 100)
OVER(motion, "cse,licm,dce", 200)
OVER(cpu,
     "canon,cse,dce,fold-rand-compare,fold-bounds,peel,canon,cse,fuse-forward,scalarize-"
     "induction,licm,dce",
     400)
OVER(gpu,
     "canon,cse,dce,fold-rand-compare,fold-bounds,canon,cse,licm,dce,peel,undef-masked,"
     "cse,licm,dce",
     400)

RULES_MAIN("random", canon, bounds, peel, peel_after_bounds, carry, threshold, motion,
           cpu, gpu)
