/* More warps than were asked for, where a dot's accumulators do not fit into the
   registers of those: 128 x 256 of fp32 are 256 registers of each thread of four warps,
   and 128 of eight. The number of warps is a matter of speed alone, unless the source
   has asked for it. */
#include "passes/layout/layout.h"

#include "ir/base/util.h"
#include "ir/op.h"

enum {
    MOST_REGISTERS = 256, /* of a thread, and some are needed for the rest */
    MOST_WARPS = 8,
    LANES = 32,
    WORD = 32
};

static void
see_dots(const Region *r, int64_t *words, int depth)
{
    for (const Op *op = r->first; op && depth < MAX_REGION_DEPTH; op = op->next) {
        if (op->kind == OP_DOT) {
            const Type *t = op->results[0].type;
            *words = max_i64(*words, type_numel(t) * type_bits(t) / WORD);
        }
        for (int i = 0; i < op->nregion; i++)
            see_dots(op->regions[i], words, depth + 1);
    }
}

void
layout_more_warps(Func *f)
{
    int64_t words = 0;
    int warps = f->num_warps;
    see_dots(f->body, &words, 0);
    while (warps < MOST_WARPS && words >= (int64_t)MOST_REGISTERS * LANES * warps)
        warps *= 2;
    if (!f->fixed_warps && words < (int64_t)MOST_REGISTERS * LANES * warps)
        f->num_warps = warps;
}
