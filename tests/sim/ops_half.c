/* Instructions on fp16 and bf16, one or two in a register. A float holds sums and
   dots of two so closely that rounding it again does no harm (24 >= 2 * 11 + 2
   bits); a fused dot goes through a double that is rounded to odd. */
#include "tests/sim/machine.h"
#include "tests/sim/number.h"

typedef uint32_t Element(uint32_t a, uint32_t b, uint32_t c, bool bf16);

static float
half_of(uint32_t h, bool bf16)
{
    h &= 0xffff;
    return bf16 ? bf16_of(h) : f16_of(h);
}

static uint32_t
half_bits(float x, bool bf16)
{
    return x != x ? 0x7fff : bf16 ? bf16_bits(x) : f16_bits(x);
}

static uint32_t
half_add(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)c;
    return half_bits(half_of(a, t) + half_of(b, t), t);
}

static uint32_t
half_sub(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)c;
    return half_bits(half_of(a, t) - half_of(b, t), t);
}

static uint32_t
half_mul(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)c;
    return half_bits(half_of(a, t) * half_of(b, t), t);
}

static uint32_t
half_fma(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    double r = fma_odd(half_of(a, t), half_of(b, t), half_of(c, t));
    return number_pack(r, t ? &format_bf16 : &format_f16, ROUND_NEAREST, false);
}

static uint32_t
half_neg(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)b, (void)c, (void)t;
    return (a ^ 0x8000) & 0xffff;
}

static uint32_t
half_abs(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)b, (void)c, (void)t;
    return a & 0x7fff;
}

static uint32_t
least(uint32_t a, uint32_t b, bool t, bool most, bool nan)
{
    float x = half_of(a, t), y = half_of(b, t);
    if (x != x || y != y)
        return nan || (x != x && y != y) ? 0x7fff : (x != x ? b : a) & 0xffff;
    bool first = x == y ? signbit(x) != 0 : x < y;
    return (first != most ? a : b) & 0xffff;
}

static uint32_t
half_min(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)c;
    return least(a, b, t, false, false);
}

static uint32_t
half_max(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)c;
    return least(a, b, t, true, false);
}

static uint32_t
half_min_nan(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)c;
    return least(a, b, t, false, true);
}

static uint32_t
half_max_nan(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)c;
    return least(a, b, t, true, true);
}

static uint32_t
half_ex2(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)b, (void)c;
    return half_bits((float)exp2((double)half_of(a, t)), t);
}

static uint32_t
half_tanh(uint32_t a, uint32_t b, uint32_t c, bool t)
{
    (void)b, (void)c;
    return half_bits((float)tanh((double)half_of(a, t)), t);
}

static void
each(Warp *w, const Insn *i, uint32_t mask, Element *fn, bool bf16, bool two)
{
    static const uint32_t none[LANES];
    uint32_t *d = R32(w, i->d);
    const uint32_t *a = R32(w, i->a), *b = i->ns > 1 ? R32(w, i->b) : none,
                   *c = i->ns > 2 ? R32(w, i->c) : none;
    for (uint32_t m = mask; m; m &= m - 1) {
        int l = __builtin_ctz(m);
        uint32_t r = fn(a[l], b[l], c[l], bf16) & 0xffff;
        if (two)
            r |= fn(a[l] >> 16, b[l] >> 16, c[l] >> 16, bf16) << 16;
        if (i->flags & RELU) {
            if ((r & 0x8000) && (r & 0x7fff) <= (bf16 ? 0x7f80 : 0x7c00))
                r &= 0xffff0000;
            if (two && r >> 31 && (r >> 16 & 0x7fff) <= (bf16 ? 0x7f80 : 0x7c00))
                r &= 0xffff;
        }
        d[l] = r;
    }
}

#define LIST(X)                                                                          \
    X(add, "add.", 3)                                                                    \
    X(sub, "sub.", 3)                                                                    \
    X(mul, "mul.", 3)                                                                    \
    X(fma, "fma.", 4)                                                                    \
    X(neg, "neg.", 2)                                                                    \
    X(abs, "abs.", 2)                                                                    \
    X(min, "min.", 3)                                                                    \
    X(max, "max.", 3)                                                                    \
    X(min_nan, "min.NaN.", 3)                                                            \
    X(max_nan, "max.NaN.", 3)                                                            \
    X(ex2, "ex2.approx.", 2)                                                             \
    X(tanh, "tanh.approx.", 2)

#define X(id, name, n)                                                                   \
    static void id##_h(Warp *w, const Insn *i, uint32_t mask)                            \
    {                                                                                    \
        each(w, i, mask, half_##id, false, false);                                       \
    }                                                                                    \
    static void id##_h2(Warp *w, const Insn *i, uint32_t mask)                           \
    {                                                                                    \
        each(w, i, mask, half_##id, false, true);                                        \
    }                                                                                    \
    static void id##_b(Warp *w, const Insn *i, uint32_t mask)                            \
    {                                                                                    \
        each(w, i, mask, half_##id, true, false);                                        \
    }                                                                                    \
    static void id##_b2(Warp *w, const Insn *i, uint32_t mask)                           \
    {                                                                                    \
        each(w, i, mask, half_##id, true, true);                                         \
    }
LIST(X)
#undef X

#define TESTS(X)                                                                         \
    X(eq, x == y)                                                                        \
    X(ne, x<y || x> y)                                                                   \
    X(lt, x < y)                                                                         \
    X(le, x <= y)                                                                        \
    X(gt, x > y)                                                                         \
    X(ge, x >= y)                                                                        \
    X(neu, !(x == y))                                                                    \
    X(ltu, !(x >= y))                                                                    \
    X(leu, !(x > y))                                                                     \
    X(gtu, !(x <= y))                                                                    \
    X(geu, !(x < y))                                                                     \
    X(equ, !(x < y || x > y))                                                            \
    X(num, x == x && y == y)                                                             \
    X(nan, x != x || y != y)
#define X(id, expr)                                                                      \
    static void test_##id(Warp *w, const Insn *i, uint32_t mask)                         \
    {                                                                                    \
        bool bf16 = i->flags & SIGNED;                                                   \
        uint32_t r = 0;                                                                  \
        EACH(mask, float x = half_of(R32(w, i->a)[l], bf16);                             \
             float y = half_of(R32(w, i->b)[l], bf16); r |= (uint32_t)(expr) << l);      \
        PRED(w, i->d) = (PRED(w, i->d) & ~mask) | (r & mask);                            \
    }
TESTS(X)
#undef X

/* Of sm_100 and later: halves that are fp32 where they enter. */
#define MIXED(X)                                                                         \
    X(add, "hw", x + f32_of(b[l]))                                                       \
    X(sub, "hw", x - f32_of(b[l]))                                                       \
    X(fma, "hhw", fmaf(x, half_of(b[l], bf16), f32_of(R32(w, i->c)[l])))
#define X(id, in, expr)                                                                  \
    static void mixed_##id(Warp *w, const Insn *i, uint32_t mask)                        \
    {                                                                                    \
        bool bf16 = i->flags & SIGNED;                                                   \
        uint32_t *d = R32(w, i->d);                                                      \
        const uint32_t *a = R32(w, i->a), *b = R32(w, i->b);                             \
        EACH(mask, float x = half_of(a[l], bf16); d[l] = f32_bits(expr));                \
    }
MIXED(X)
#undef X

#define ONE_2 "hh"
#define ONE_3 "hhh"
#define ONE_4 "hhhh"
#define TWO_2 "ww"
#define TWO_3 "www"
#define TWO_4 "wwww"
#define X(id, name, n)                                                                   \
    {name "f16", ONE_##n, id##_h, 0}, {name "f16x2", TWO_##n, id##_h2, 0},               \
        {name "bf16", ONE_##n, id##_b, 0}, {name "bf16x2", TWO_##n, id##_b2, 0},
#define C(id, expr)                                                                      \
    {"setp." #id ".f16", "phh", test_##id, 0},                                           \
        {"setp." #id ".bf16", "phh", test_##id, SIGNED},
#define M(id, in, expr)                                                                  \
    {#id ".f32.f16", "w" in, mixed_##id, 0},                                             \
        {#id ".f32.bf16", "w" in, mixed_##id, SIGNED},
const OpEntry ops_half[] = {LIST(X) TESTS(C) MIXED(M){NULL, NULL, NULL, 0}};
