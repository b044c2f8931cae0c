/* Integers and masks: arithmetic of mixed types, division, shifts, comparisons, and masks
   that a compiler can decide, which then go everywhere that a value may. */
#include <string.h>

#include "tests/gen/gen.h"

/* The larger of two shapes of which one broadcasts to the other. */
static Type
joined(const Value *a, const Value *b, Dt dt)
{
    return with_dt(fits(&a->t, &b->t) ? b->t : a->t, dt);
}

Value *
make_int(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS});
    if (!a)
        return NULL;
    static const char ops[] = "+-*&|^+*&|";
    const char *op = tree_text(g->tree, "%c", ops[rnd(g, sizeof ops - 1)]);
    if (chance(g, 30)) {
        const char *k = one_of(g, "1|3|7|64|100|2|0|127|8");
        if (chance(g, 70))
            return let(g, a->t, "$ %s %s", a, op, k);
        return let(g, a->t, "%s %s $", k, op, a);
    }
    Value *b = pick(g, (Want){.dts = INTS | BOOLS, .into = &a->t});
    if (!b)
        return NULL;
    Type t = joined(a, b, joint_dt((Dt)a->t.dt, (Dt)b->t.dt));
    if (chance(g, 50))
        return let(g, t, "$ %s $", a, op, b);
    return let(g, t, "$ %s $", b, op, a);
}

/* Quotients and remainders; no zero below, and no -1 below the smallest number. */
Value *
make_div(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS});
    if (!a)
        return NULL;
    bool is_signed = BIT(a->t.dt) & SINTS;
    const char *op = chance(g, 50) ? "//" : "%";
    if (chance(g, 55)) {
        if (is_signed && chance(g, 35))
            return let(g, a->t, "$ %s %s", a, op, one_of(g, "(-3)|(-8)|(-2)|(-100)"));
        return let(g, a->t, "$ %s %s", a, op, one_of(g, "1|2|3|7|8|16|64|100|127"));
    }
    Value *b = pick(g, (Want){.dts = is_signed ? SINTS : UINTS, .into = &a->t});
    if (!b)
        return NULL;
    Type t = joined(a, b, joint_dt((Dt)a->t.dt, (Dt)b->t.dt));
    if (is_signed && chance(g, 40)) /* -127, -125 .. -3 */
        return let(g, t, "$ %s (($ | -128) & -3 | 1)", a, op, b);
    return let(g, t, "$ %s (($ & 127) | 1)", a, op, b);
}

Value *
make_shift(Gen *g)
{
    Value *a = pick(g, (Want){.dts = INTS});
    if (!a)
        return NULL;
    int w = dt_info[a->t.dt].bits;
    const char *op = chance(g, 50) ? "<<" : ">>", *tl = dt_info[a->t.dt].tl;
    Value *b = pick(g, (Want){.dts = INTS, .into = &a->t});
    if (!b || chance(g, 50))
        return let(g, a->t, "$ %s %d", a, op, between(g, 0, w - 1));
    return let(g, a->t, "$ %s ($ & %d).to(tl.%s)", a, op, b, w - 1, tl);
}

Value *
make_cmp(Gen *g)
{
    Value *a = pick(g, (Want){.dts = NUMS | BOOLS});
    if (!a)
        return NULL;
    const char *op = one_of(g, "<|<=|>|>=|==|!=");
    bool is_float = BIT(a->t.dt) & FLOATS;
    Type t = with_dt(a->t, I1);
    if (BIT(a->t.dt) & NUMS && chance(g, 30)) {
        const char *k = is_float               ? "0.0|1.5|-2.0|3.0|float(\"inf\")"
                        : BIT(a->t.dt) & UINTS ? "0|1|5|100"
                                               : "0|1|5|-1|100";
        return let(g, t, "$ %s %s", a, op, one_of(g, k));
    }
    unsigned dts = is_float        ? BIT(a->t.dt) | BIT(F32)
                   : a->t.dt == I1 ? (unsigned)BOOLS
                                   : (unsigned)INTS;
    Value *b = pick(g, (Want){.dts = dts, .into = &a->t});
    return b ? let(g, t, "$ %s $", a, op, b) : NULL;
}

Value *
make_bool(Gen *g)
{
    Value *a = pick(g, (Want){.dts = BOOLS});
    if (!a)
        return NULL;
    int how = between(g, 0, 9);
    if (how == 0)
        return let(g, a->t, "$ == 0", a);
    if (how == 1)
        return let(g, a->t, "~$", a);
    if (how < 5) {
        Dt dt = dt_of(g, INTS | BIT(F32) | BIT(F16));
        Value *v = let(g, with_dt(a->t, dt), "$.to(tl.%s)", a, dt_info[dt].tl);
        return flt(v, 1, 0, 0);
    }
    Value *b = pick(g, (Want){.dts = BOOLS, .into = &a->t});
    const char *op = how < 7 ? "&" : how < 9 ? "|" : "^";
    return b ? let(g, a->t, "$ %s $", a, op, b) : NULL;
}

/* Comparisons with one answer, or nearly: k is the number of elements, o an index. */
static const char *const proven[] = {
    "O < K",
    "O >= 0",
    "O < 0",
    "O >= K",
    "O <= K1",
    "O < K1",
    "O > 0",
    "K1 - O >= 0",
    "O + pid * K >= 0",
    "pid * K + O < KP",
    "pid * K + O < K",
    "(O % 8) < 8",
    "(O & 7) < 7",
    "(O // 4) < H",
    "O * 2 < K2",
    "O - K < 0",
    "O == O",
    "O != O",
    "(O).to(tl.uint32) < K",
    "(O - 1).to(tl.uint32) < K",
    "O * pid >= 0",
    "O % 3 < 3",
    "-O <= 0",
    "(O).to(tl.int8) >= 0",
    "O * 67108864 >= 0",
    "O + 2147483640 > 0",
    "(O ^ 1) < K",
    "(O | 1) > 0",
    "tl.minimum(O, 5) <= 5",
    "tl.maximum(O, 5) >= 5",
    "tl.cdiv(O + 1, 4) >= 1",
    "(O << 1) >= 0",
    "(O >> 1) < K",
    "O < n",
    "O < n * 16",
    "(O < K) & (O >= 0)",
    "(O < 0) | (O >= K)",
    "(O < n) | (O < K)",
    "n - O > n - K",
    "(O < K) == (O >= 0)",
    "tl.where(O < K, O, -1) >= 0",
    "O.to(tl.int64) * K < K * K",
    "(O % n1) >= 0",
    "(O % n1) < n1",
    "pid < NP",
    "(pid * 0 + O) <= K1",
    "O // K == 0",
    "(O + K) // K == 1",
    "~O < 0",
    "(O + n1) > O",
    "O * n1 >= O",
};

Value *
make_proven(Gen *g)
{
    Tree *t = g->tree;
    Type s = random_shape(g, I1);
    if (chance(g, 50)) {
        Value *v = pick(g, (Want){.dts = ALL, .min_rank = 1});
        if (v)
            s = with_dt(v->t, I1);
    }
    int k = numel(&s);
    const char *o = offsets(g, &s);
    const char *p = proven[rnd(g, sizeof proven / sizeof *proven)];
    const char *out = "";
    bool has_index = strchr(p, 'O') != NULL;
    for (; *p; p++) {
        if (*p == 'O')
            out = tree_text(t, "%s%s", out, o);
        else if (*p == 'K') {
            int x = k;
            if (p[1] == '1')
                x = k - 1, p++;
            else if (p[1] == '2')
                x = 2 * k, p++;
            else if (p[1] == 'P')
                x = k * t->nprog, p++;
            out = tree_text(t, "%s%d", out, x);
        } else if (*p == 'H')
            out = tree_text(t, "%s%d", out, k / 4 > 0 ? k / 4 : 1);
        else if (*p == 'N' && p[1] == 'P')
            out = tree_text(t, "%s%d", out, t->nprog), p++;
        else if (*p == 'n' && p[1] == '1')
            out = tree_text(t, "%s(tl.abs(tl.to_tensor(n)) %% 64 + 1)", out), p++;
        else
            out = tree_text(t, "%s%c", out, *p);
    }
    Value *m = let(g, has_index ? s : scalar(I1), "%s", out);
    if (chance(g, 35))
        return m;
    /* and an arbitrary use: constants by the mask, or what is loaded under it */
    Dt dt = dt_of(g, INTS | BIT(F32) | BIT(F16) | BIT(F64));
    bool is_float = BIT(dt) & FLOATS;
    const char *tl = dt_info[dt].tl;
    const char *words = is_float ? "0.0|1.5|-2.0|1.0|0.5|4.0" : "0|1|2|6|8|3|7|64|127";
    Value *v;
    if (chance(g, 60) || m->t.rank == 0) {
        v = let(g, with_dt(m->t, dt), "tl.where($, %s, %s)", m, one_of(g, words),
                one_of(g, words));
        if (is_float)
            v->t.dt = F32;
        else
            v->t.dt = I32;
        if (chance(g, 50)) {
            v = flt(v, 4, 1, 0);
            v = let(g, with_dt(m->t, dt), "$.to(tl.%s)", v, tl);
        }
    } else {
        v = let(g, with_dt(m->t, dt), "tl.load(p_%s + %s, mask=$, other=%s)",
                dt_info[dt].sig, offsets(g, &s), m, one_of(g, words));
        if (is_float)
            return flt(v, 16, 1, 0);
    }
    flt(v, 4, 1, 0);
    if (BIT(v->t.dt) & FLOATS || chance(g, 30))
        return v;
    Value *b = pick(g, (Want){.dts = INTS, .same = &v->t});
    if (!b)
        return v;
    put(g, v);
    Dt r = joint_dt((Dt)v->t.dt, (Dt)b->t.dt);
    const char *op = one_of(g, "&|or|^|*|+|-");
    if (op[0] == 'o')
        op = "|";
    return chance(g, 50) ? let(g, with_dt(v->t, r), "$ %s $", v, op, b)
                         : let(g, with_dt(v->t, r), "$ %s $", b, op, v);
}

Value *
make_bitcast(Gen *g)
{
    Value *a = pick(g, (Want){.dts = NUMS, .never = V_ZERO | V_WILD});
    if (!a)
        return NULL;
    static const unsigned of[] = {BIT(I8) | BIT(U8), BIT(I16) | BIT(U16),
                                  BIT(I32) | BIT(U32), BIT(I64) | BIT(U64)};
    Dt dt = dt_of(g, of[log2_of(dt_info[a->t.dt].bytes)]);
    if (BIT(a->t.dt) & INTS && dt_info[a->t.dt].bytes > 1 && chance(g, 50)) {
        Dt f = a->t.dt == I64 || a->t.dt == U64 ? F64
               : dt_info[a->t.dt].bytes == 4    ? F32
                                                : dt_of(g, BIT(F16) | BIT(BF16));
        Value *v =
            let(g, with_dt(a->t, f), "$.to(tl.%s, bitcast=True)", a, dt_info[f].tl);
        return flt(v, 0, 0, V_WILD);
    }
    return let(g, with_dt(a->t, dt), "$.to(tl.%s, bitcast=True)", a, dt_info[dt].tl);
}
