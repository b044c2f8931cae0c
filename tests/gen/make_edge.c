/* What a rule of algebra gets wrong at the ends of types: identities of real numbers that
   integers which wrap and floats with NaN and -0 do not keep, and what docs/ir.md defines
   where Triton does not (such a line ends with OURS, so that Triton's interpreter is not
   asked): shifts by the width and more, the smallest number divided by -1, floats outside
   of an integer's range, numbers outside of a histogram. */
#include "tests/gen/gen.h"

#define OURS "  # ours"

static Value *
shifted_out(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS});
    Value *b = a ? pick(g, (Want){.dts = INTS, .into = &a->t}) : NULL;
    if (!b)
        return NULL;
    const char *tl = dt_info[a->t.dt].tl, *op = one_of(g, "<<|>>");
    if (chance(g, 30))
        return let(g, a->t, "$ %s tl.full([], %d, tl.%s)" OURS, a, op,
                   between(g, 0, 2 * dt_info[a->t.dt].bits), tl);
    if (chance(g, 40))
        return let(g, a->t, "$ %s ($ & %d).to(tl.%s)" OURS, a, op, b,
                   2 * dt_info[a->t.dt].bits - 1, tl);
    return let(g, a->t, "$ %s $.to(tl.%s)" OURS, a, op, b, tl);
}

static Value *
divided(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS});
    Value *b = a ? pick(g, (Want){.dts = BIT(a->t.dt), .into = &a->t}) : NULL;
    if (!b)
        return NULL;
    const char *tl = dt_info[a->t.dt].tl, *op = one_of(g, "//|%");
    if (chance(g, 30)) /* a quotient that nobody reads */
        return let(g, a->t, "tl.where($ == 0, $, $ %s $)" OURS, b, a, a, op, b);
    return let(g, a->t, "$ %s tl.where($ == 0, 1, $).to(tl.%s)" OURS, a, op, b, b, tl);
}

static Value *
out_of_range(Gen *g)
{
    Value *a = pick(g, (Want){.dts = FLOATS});
    if (!a)
        return NULL;
    Dt dt = dt_of(g, INTS);
    return let(g, with_dt(a->t, dt), "$.to(tl.%s)" OURS, a, dt_info[dt].tl);
}

static Value *
counted(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS, .min_rank = 1, .max_rank = 1});
    int bins = 1 << between(g, 1, 5);
    if (!a || bins > g->tree->n)
        return NULL;
    Type s = {.dt = I32, .rank = 1, .dim = {bins}};
    return let(g, s, "tl.histogram($.to(tl.int32), %d)" OURS, a, bins);
}

static Value *
whole(Gen *g)
{
    static const char *const same[] = {
        "$ * -1",
        "($ * 8) // 8",
        "($ * 6) % 3",
        "($ << 3) >> 3",
        "($ << 2) // 4",
        "($ >> 2) << 2",
        "($ + 64) // 64 - 1",
        "($ // 7) * 7 + $ % 7",
        "(-$) // 4",
        "(-$) % 8",
        "($ | 1) % 2",
        "($ & 60) // 4",
        "tl.abs($) // 2",
        "tl.cdiv($, 8)",
        "$ - ($ // 16) * 16",
        "tl.minimum(tl.maximum($, 3), 1)",
        "tl.where($ > 5, $, 5)",
        "tl.where($ < 0, -$, $)",
        "($ ^ -1) + 1",
        "$ % 64 // 8",
        "$ // 8 % 8",
        "($ * 3 + 5) // 3",
        "($ + $) >> 1",
        "($ // 4) // 8",
        "($ % 24) % 8",
    };
    static const char *const masks[] = {
        "$ + 1 > $",
        "$ - 1 < $",
        "$ * 2 >= $",
        "$ + 8 < 16",
        "$ - 100 < 27",
        "$ * 4 == 8",
        "$ // 4 == 3",
        "$ // 4 < -1",
        "$ % 8 < 3",
        "-$ < 5",
        "($ << 4) < 64",
        "$ >> 2 >= 1",
        "($ & 12) == 8",
        "tl.abs($) >= 0",
        "tl.maximum($, 7) > 6",
        "($ > 3) & ($ > 5)",
        "($ < 3) | ($ > 2)",
        "($ >= 0) & ($ < 8)",
        "$ * $ >= 0",
    };
    bool mask = chance(g, 45);
    Value *a = pick(g, (Want){.dts = BIT(I32) | BIT(I64)});
    if (!a)
        return NULL;
    return mask ? let(g, with_dt(a->t, I1), masks[rnd(g, sizeof masks / sizeof *masks)],
                      a, a, a)
                : let(g, a->t, same[rnd(g, sizeof same / sizeof *same)], a, a, a);
}

/* Of any bits; the sign of a zero counts. */
static Value *
wild(Gen *g)
{
    static const char *const same[] = {
        "$ * 1.0",    "$ + 0.0",
        "$ - 0.0",    "0.0 - $",
        "$ * 0.0",    "$ * -1.0",
        "$ - $",      "-(-$)",
        "tl.abs(-$)", "tl.where($ > 0, $, -$)",
        "-tl.abs($)", "tl.where($ == $, $, 0.0)",
        "(0.0 + $)",  "tl.where($ >= 0, $, 0.0)",
        "$ * 2.0",    "tl.where($ != 0, $, 0.0)",
    };
    static const char *const pairs[] = {
        "tl.where($ < $, $, $)",  "tl.where($ <= $, $, $)", "tl.where($ > $, $, $)",
        "tl.where($ >= $, $, $)", "tl.where($ == $, $, $)", "tl.where($ != $, $, $)",
    };
    static const char *const masks[] = {
        "($ < $) == 0",        "~($ >= $)",           "($ < $) | ($ >= $)",
        "($ < $) | ($ > $)",   "($ <= $) & ($ >= $)", "($ != $) & ($ < $)",
        "($ == $) | ($ != $)", "($ > $) & ($ < $)",
    };
    Value *a = pick(g, (Want){.dts = BIT(F32) | BIT(F64), .never = V_ZERO | V_PROD});
    if (!a)
        return NULL;
    if (chance(g, 40)) {
        const char *f = same[rnd(g, sizeof same / sizeof *same)];
        return flt(let(g, a->t, f, a, a, a), 0, 0, V_WILD);
    }
    Value *b =
        pick(g, (Want){.dts = BIT(a->t.dt), .same = &a->t, .never = V_ZERO | V_PROD});
    if (!b)
        return NULL;
    if (chance(g, 40))
        return let(g, with_dt(a->t, I1), masks[rnd(g, sizeof masks / sizeof *masks)], a,
                   b, a, b);
    Value *c = chance(g, 70) ? a : b, *d = c == a ? b : a;
    return flt(let(g, a->t, pairs[rnd(g, sizeof pairs / sizeof *pairs)], a, b, c, d), 0,
               0, V_WILD);
}

/* What does not depend on the order of its operands, NaN among them. */
static Value *
sorted(Gen *g)
{
    Value *a = pick(g, (Want){.dts = BIT(F32), .min_rank = 1, .max_rank = 2});
    if (!a)
        return NULL;
    int axis = between(g, 0, a->t.rank - 1);
    Type s = a->t;
    for (int i = axis; i + 1 < s.rank; i++)
        s.dim[i] = s.dim[i + 1];
    s.rank--;
    if (chance(g, 40))
        return flt(let(g, a->t, "tl.associative_scan($, %d, h_max%s)", a, axis,
                       one_of(g, "|, reverse=True")),
                   0, 0, V_WILD | V_ZERO);
    return flt(let(g, s, "tl.%s($, axis=%d)", one_of(g, "max|min"), a, axis), 0, 0,
               V_WILD | V_ZERO);
}

Value *
make_edge(Gen *g)
{
    switch (between(g, 0, 9)) {
    case 0: return shifted_out(g);
    case 1: return divided(g);
    case 2: return out_of_range(g);
    case 3: return counted(g);
    case 4: return sorted(g);
    case 5:
    case 6: return wild(g);
    default: return whole(g);
    }
}
