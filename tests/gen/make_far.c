/* Numbers near the ends of 32 and 64 bits: indices that go far and come back, counters of
   loops that pass 2^31, masks of long products; and floats of every width rounded to
   every narrower one. */
#include "tests/gen/gen.h"

/* An index of 64 bits that equals `o`, which is below 2^16. */
static const char *
far_and_back(Gen *g, const char *o)
{
    Tree *t = g->tree;
    const char *w = tree_text(t, "(%s).to(tl.int64)", o);
    const char *big = one_of(g, "2147483640|2147483648|3000000000|4294967296|-2147483649|"
                                "1152921504606846976");
    switch (between(g, 0, 8)) {
    case 0: return tree_text(t, "(%s + %s) - %s", w, big, big);
    case 1: {
        const char *k = one_of(g, "32771|715827883|1431655765|4294967311");
        return tree_text(t, "(%s * %s) // %s", w, k, k);
    }
    case 2: return tree_text(t, "(%s * 65537) >> 16", w);
    case 3: return tree_text(t, "(%s << 33) >> 33", w);
    case 4:
        return tree_text(t, "(%s + (pid.to(tl.int64) << 31)) - (pid.to(tl.int64) << 31)",
                         w);
    case 5: return tree_text(t, "((%s).to(tl.uint32) + 4294967290) + 6", o);
    case 6:
        return tree_text(t, "(%s + pid * 1073741824) - pid * 1073741824", o);
    case 7: return tree_text(t, "(%s * 4294967297) & 65535", w);
    default: return tree_text(t, "(%s + 2147483648) %% 2147483648", w);
    }
}

static Value *
far_load(Gen *g)
{
    Tree *t = g->tree;
    Dt dt = dt_of(g, ALL);
    Type s = random_shape(g, dt);
    const char *sig = dt_info[dt].sig, *o = offsets(g, &s);
    int half = (t->len - numel(&s)) / 2;
    const char *start = chance(g, 40) ? tree_text(t, "%d + ", half) : "";
    const char *ix = far_and_back(g, tree_text(t, "%s%s", start, o));
    const char *mask = "";
    if (chance(g, 40))
        mask = tree_text(t, ", mask=(%s).to(tl.int64) * %s < %s", o,
                         one_of(g, "268435457|2147483647|715827883"),
                         one_of(g, "tl.to_tensor(n).to(tl.int64) * 2147483648|4294967295|"
                                   "tl.to_tensor(q).to(tl.int64) * 2147483647"));
    if (chance(g, 25)) { /* the pointer itself goes */
        const char *by = one_of(g, "tl.full([], 3000000000, tl.int64)|268435456|"
                                   "tl.full([], -2147483648, tl.int64)");
        return loaded(let(g, s, "tl.load(((p_%s + %s) + (%s)) - %s%s)", sig, by, ix, by,
                          mask));
    }
    return loaded(let(g, s, "tl.load(p_%s + (%s)%s)", sig, ix, mask));
}

/* A loop whose counter passes 2^31, or ends beside the end of its type. */
static Value *
far_loop(Gen *g)
{
    Tree *t = g->tree;
    if (g->depth > 1)
        return NULL;
    static const struct {
        const char *head, *from, *by; /* counted from there in steps of `by` */
    } of[] = {
        {"range(2147483644, 2147483647)", "2147483644", "1"},
        {"range(-2147483645, -2147483648, -1)", "-2147483645", "-1"},
        {"range(4294967294, 4294967298)", "4294967294", "1"},
        {"tl.range(tl.to_tensor(2147483645).to(tl.int64), 2147483649)", "2147483645",
         "1"},
        {"range(-2147483650, -2147483647)", "-2147483650", "1"},
        {"range(0, 2147483646, 1073741823)", "0", "1073741823"},
        {"tl.range(-2147483648, 2147483647, 1431655765)", "-2147483648", "1431655765"},
        {"range(2147483647, -2147483648, -1431655765)", "2147483647", "-1431655765"},
        {"tl.range(9223372036854775801, 9223372036854775807, 2)",
         "9223372036854775801", "2"},
        {"range(-9223372036854775805, -9223372036854775808, -1)",
         "-9223372036854775805", "-1"},
        {"range(0, pid * 3 + 3, pid + 1)", "0", "(pid + 1)"},
        {"tl.range(pid, 4 * tl.num_programs(0), tl.num_programs(0))", "pid",
         "tl.num_programs(0)"},
        {"range(6, -1, -2)", "6", "-2"},
        {"tl.range(2147483647 - m, 2147483647)", "(2147483647 - m)", "1"}};
    int k = between(g, 0, (int)(sizeof of / sizeof *of) - 1);
    Dt dt = dt_of(g, INTS | BIT(F32));
    Type s = random_shape(g, dt);
    int step = (t->len - numel(&s)) / 8;
    const char *sig = dt_info[dt].sig, *o = offsets(g, &s);
    Value *acc =
        let(g, s, "tl.full(%s, 0, tl.%s)", dims(g, &s), dt_info[dt].tl);
    acc->letter = 'a';
    flt(acc, 256, 1, V_ZERO);
    Value *i = value_new(g, scalar(I32), 'i');
    i->flags = V_SPECIAL;
    Stmt *b = loop_new(g, tree_text(t, "for %s in %s", value_name(t, i), of[k].head), i,
                       false);
    int scope = g->nval;
    Stmt **tail = block_open(g, b, 0);
    Value *at = let(g, scalar(I64), "(tl.to_tensor($).to(tl.int64) - %s) // %s", i,
                    of[k].from, of[k].by);
    Value *v = loaded(let(g, s, "tl.load(p_%s + $ * %d + %s)", sig, at, step, o));
    if (chance(g, 30))
        block_of_steps(g, 1);
    set(g, acc, "$ %s $", acc, one_of(g, "+|-"), v);
    block_close(g, tail, scope);
    return acc;
}

Value *
make_far(Gen *g)
{
    return chance(g, 70) ? far_load(g) : far_loop(g);
}

/* Any bits as floats of 8 bits, those of other makers' devices too. */
static Value *
bits_of_8(Gen *g)
{
    Type s = random_shape(g, U8);
    Value *v = let(g, s, "tl.load(p_u8 + %s)", offsets(g, &s));
    Dt to = dt_of(g, BIT(F32) | BIT(F16) | BIT(BF16));
    const char *from =
        one_of(g, "float8e4nv|float8e5|float8e4b15|float8e4b8|float8e5b16");
    if (from[6] == 'e' && from[7] == '4' && from[9] == '1' && to == BF16)
        to = F16; /* e4b15 */
    return flt(let(g, with_dt(s, to), "$.to(tl.%s, bitcast=True).to(tl.%s)", v, from,
                   dt_info[to].tl),
               0, 0, V_WILD);
}

Value *
make_round(Gen *g)
{
    if (chance(g, 20))
        return bits_of_8(g);
    Dt dt = dt_of(g, BIT(F32) | BIT(F64) | BIT(F16) | BIT(BF16));
    Value *a = pick(g, (Want){.dts = BIT(dt)});
    if (!a || chance(g, 60)) {
        Type s = random_shape(g, dt);
        a = flt(let(g, s, "tl.load(w_%s + %s)", dt_info[dt].sig, offsets(g, &s)), 0, 0,
                V_WILD);
    }
    static const unsigned narrower[NDT] = {
        [F64] = BIT(F32) | BIT(F16) | BIT(BF16) | BIT(E5) | BIT(E4),
        [F32] = BIT(F16) | BIT(BF16) | BIT(E5) | BIT(E4),
        [F16] = BIT(E5) | BIT(E4),
        [BF16] = BIT(E5) | BIT(E4)};
    Dt to = dt_of(g, narrower[dt]);
    const char *mode = one_of(g, "|, fp_downcast_rounding=\"rtne\"|, "
                                 "fp_downcast_rounding=\"rtz\"");
    const char *tl = dt_info[to].tl;
    if (BIT(to) & FP8S && chance(g, 70)) { /* of larger ones Triton's interpreter keeps
                                              a part */
        a = like(let(g, a->t, "tl.minimum(tl.maximum($, -400.0), 400.0).to(tl.%s)", a,
                     dt_info[dt].tl),
                 a);
        a->flags |= V_ZERO;
    }
    unsigned zero = a->flags & V_ZERO;
    Value *v = chance(g, 70) ? let(g, with_dt(a->t, to), "$.to(tl.%s%s)", a, tl, mode)
                             : let(g, with_dt(a->t, to), "tl.cast($, tl.%s%s)", a, tl,
                                   mode);
    return flt(v, 0, 0, V_WILD | zero);
}
