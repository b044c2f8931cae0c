/* Raises num_warps where accumulators do not fit into the registers of so many warps:
   128 x 256 of fp32 take 256 registers of each thread with four warps, 128 with eight;
   and so do two of 128 x 128 that a loop adds up. Tiles that loops around a dot carry
   are live while it is computed, and its own result is, unless it is added to one of
   these. The number of warps changes only speed, so this is safe, except where the
   source sets it or has inline assembly with effects, which may count threads. */
#include "passes/layout/layout.h"

#include "ir/base/util.h"
#include "ir/op.h"

enum {
    MOST_WARPS = 8,
    LANES = 32,
    WORD = 32,
    BESIDE = 32 /* registers for addresses and operands beside several accumulators */
};

/* Registers of all threads. */
typedef struct Words {
    int64_t one;  /* the largest accumulator */
    int64_t live; /* at a dot: tiles that loops around it carry, and its result */
    bool fixed;   /* there is assembly that may count threads */
} Words;

static int64_t
words_of(const Type *t)
{
    bool tile = t->kind == TY_TILE && t->rank > 1 && !type_is_ptr(type_elem(t));
    return tile ? type_numel(t) * type_bits(t) / WORD : 0;
}

/* Does the dot, or do dots in a row, add to a value that its block is given? */
static bool
adds_to_carried(const Op *dot)
{
    const Value *v = op_operand(dot, 2);
    while (v->op && v->op->kind == OP_DOT && v->op->parent == dot->parent)
        v = op_operand(v->op, 2);
    return !v->op && v->region == dot->parent;
}

static void
count(Words *w, const Region *r, int64_t carried, int depth)
{
    for (const Op *op = r->first; op && depth <= MAX_REGION_DEPTH; op = op->next) {
        int64_t in = carried;
        bool loop = op->kind == OP_FOR || op->kind == OP_WHILE;
        for (int i = 0; loop && i < op->nresult; i++)
            in += words_of(op->results[i].type);
        for (int i = 0; i < op->nregion; i++)
            count(w, op->regions[i], in, depth + 1);
        if (op->kind == OP_DOT) {
            int64_t words = words_of(op->results[0].type);
            w->one = max_i64(w->one, words);
            w->live = max_i64(w->live, carried + (adds_to_carried(op) ? 0 : words));
        }
        w->fixed |= op->kind == OP_ASM_EFFECT;
    }
}

static bool
fits(const Words *w, int warps)
{
    int64_t threads = (int64_t)LANES * warps;
    return w->one < MANY_REGISTERS * threads &&
           (w->live <= w->one || w->live < (MANY_REGISTERS - BESIDE) * threads);
}

void
layout_more_warps(Func *f)
{
    Words w = {.fixed = f->fixed_warps};
    int warps = f->num_warps;
    count(&w, f->body, 0, 0);
    while (warps < MOST_WARPS && !fits(&w, warps))
        warps *= 2;
    if (!w.fixed && fits(&w, warps))
        f->num_warps = warps;
}
