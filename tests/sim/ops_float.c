/* Instructions on fp32 and fp64. What PTX calls approximate is computed in double and
   rounded once: a GPU may be 1 to 2 ulp away, div.full 2, lg2 and sin also by an absolute
   error near 0. A NaN of fp32 is always 0x7fffffff, as on the device. */
#include "tests/sim/machine.h"
#include "tests/sim/number.h"

static inline float
min_f(float x, float y)
{
    if (x != x || y != y)
        return x != x ? y : x;
    return x == y ? (signbit(x) ? x : y) : x < y ? x : y;
}

static inline float
max_f(float x, float y)
{
    if (x != x || y != y)
        return x != x ? y : x;
    return x == y ? (signbit(x) ? y : x) : x > y ? x : y;
}

static inline double
min_d(double x, double y)
{
    if (x != x || y != y)
        return x != x ? y : x;
    return x == y ? (signbit(x) ? x : y) : x < y ? x : y;
}

static inline double
max_d(double x, double y)
{
    if (x != x || y != y)
        return x != x ? y : x;
    return x == y ? (signbit(x) ? y : x) : x > y ? x : y;
}

/* NaN, infinities and 0 are what lg2 and its kind say of them, in libm as in PTX. */
static inline float
sin_f(float x)
{
    return (float)sin((double)x);
}

#define UNARY(X)                                                                         \
    X(div1, "rcp.f32", 1.0f / x)                                                         \
    X(rcpa, "rcp.approx.f32", 1.0f / x)                                                  \
    X(sqrt1, "sqrt.f32", sqrtf(x))                                                       \
    X(sqrta, "sqrt.approx.f32", sqrtf(x))                                                \
    X(rsqrta, "rsqrt.approx.f32", (float)(1.0 / sqrt((double)x)))                        \
    X(ex2a, "ex2.approx.f32", (float)exp2((double)x))                                    \
    X(lg2a, "lg2.approx.f32", (float)log2((double)x))                                    \
    X(sina, "sin.approx.f32", sin_f(x))                                                  \
    X(cosa, "cos.approx.f32", (float)cos((double)x))                                     \
    X(tanha, "tanh.approx.f32", (float)tanh((double)x))

#define BINARY(X)                                                                        \
    X(addf, "add.f32", x + y)                                                            \
    X(subf, "sub.f32", x - y)                                                            \
    X(mulf, "mul.f32", x *y)                                                             \
    X(divf, "div.f32", x / y)                                                            \
    X(divfull, "div.full.f32", x / y)                                                    \
    X(diva, "div.approx.f32", x / y)                                                     \
    X(minf, "min.f32", min_f(x, y))                                                      \
    X(maxf, "max.f32", max_f(x, y))                                                      \
    X(minn, "min.NaN.f32", x != x || y != y ? NAN : min_f(x, y))                         \
    X(maxn, "max.NaN.f32", x != x || y != y ? NAN : max_f(x, y))

static inline uint32_t
saturated(uint32_t bits)
{
    float x = f32_of(bits);
    return x != x || x < 0 ? 0 : x > 1 ? 0x3f800000 : x == 0 ? 0 : bits;
}

#define X(id, name, expr)                                                                \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        uint32_t *d = R32(w, i->d);                                                      \
        const uint32_t *pa = R32(w, i->a);                                               \
        if (i->flags & FTZ)                                                              \
            EACH(mask, float x = f32_of(flush(pa[l])); d[l] = flush(f32_bits(expr)));    \
        else                                                                             \
            EACH(mask, float x = f32_of(pa[l]); d[l] = f32_bits(expr));                  \
        if (i->flags & SAT)                                                              \
            EACH(mask, d[l] = saturated(d[l]));                                          \
    }
UNARY(X)
#undef X
#define X(id, name, expr)                                                                \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        uint32_t *d = R32(w, i->d);                                                      \
        const uint32_t *pa = R32(w, i->a), *pb = R32(w, i->b);                           \
        if (i->flags & FTZ)                                                              \
            EACH(mask, float x = f32_of(flush(pa[l])); float y = f32_of(flush(pb[l]));   \
                 d[l] = flush(f32_bits(expr)));                                          \
        else                                                                             \
            EACH(mask, float x = f32_of(pa[l]); float y = f32_of(pb[l]);                 \
                 d[l] = f32_bits(expr));                                                 \
        if (i->flags & SAT)                                                              \
            EACH(mask, d[l] = saturated(d[l]));                                          \
    }
BINARY(X)
#undef X

static void
fmaf_(Warp *w, const Insn *i, uint32_t mask)
{
    uint32_t *d = R32(w, i->d);
    const uint32_t *a = R32(w, i->a), *b = R32(w, i->b), *c = R32(w, i->c);
    if (i->flags & FTZ)
        EACH(mask, d[l] = flush(f32_bits(fmaf(f32_of(flush(a[l])), f32_of(flush(b[l])),
                                              f32_of(flush(c[l]))))));
    else
        EACH(mask, d[l] = f32_bits(fmaf(f32_of(a[l]), f32_of(b[l]), f32_of(c[l]))));
    if (i->flags & SAT)
        EACH(mask, d[l] = saturated(d[l]));
}

/* Signs are bits: a NaN keeps the rest of its own. */
#define BITS(id, R, type, expr)                                                          \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        type *d = R(w, i->d);                                                            \
        const type *pa = R(w, i->a), *pb = R(w, i->b);                                   \
        (void)pb;                                                                        \
        EACH(mask, d[l] = expr);                                                         \
    }
BITS(negf, R32, uint32_t, pa[l] ^ 0x80000000)
BITS(absf, R32, uint32_t, pa[l] & 0x7fffffff)
BITS(negf_ftz, R32, uint32_t, flush(pa[l]) ^ 0x80000000)
BITS(absf_ftz, R32, uint32_t, flush(pa[l]) & 0x7fffffff)
BITS(signf, R32, uint32_t, (pa[l] & 0x80000000) | (pb[l] & 0x7fffffff))
#define TOP ((uint64_t)1 << 63)
BITS(negd, R64, uint64_t, pa[l] ^ TOP)
BITS(absd, R64, uint64_t, pa[l] & ~TOP)
BITS(signd, R64, uint64_t, (pa[l] & TOP) | (pb[l] & ~TOP))

static void
neg_or_abs(Warp *w, const Insn *i, uint32_t mask)
{
    bool ftz = i->flags & FTZ, neg = i->flags & SIGNED;
    (neg ? ftz ? negf_ftz : negf : ftz ? absf_ftz : absf)(w, i, mask);
}

#define BITS2(id, expr)                                                                  \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        EACH(mask, double x = f64_of(R64(w, i->a)[l]);                                   \
             R64(w, i->d)[l] = f64_bits(expr));                                          \
    }
BITS2(sqrtd, sqrt(x))
BITS2(rcpd, 1.0 / x)
BITS2(rsqrtd, 1.0 / sqrt(x))

#define DOUBLES(X)                                                                       \
    X(addd, "add.f64", x + y)                                                            \
    X(subd, "sub.f64", x - y)                                                            \
    X(muld, "mul.f64", x *y)                                                             \
    X(divd, "div.f64", x / y)                                                            \
    X(mind, "min.f64", min_d(x, y))                                                      \
    X(maxd, "max.f64", max_d(x, y))
#define X(id, name, expr)                                                                \
    static void id(Warp *w, const Insn *i, uint32_t mask)                                \
    {                                                                                    \
        EACH(mask, double x = f64_of(R64(w, i->a)[l]);                                   \
             double y = f64_of(R64(w, i->b)[l]); R64(w, i->d)[l] = f64_bits(expr));      \
    }
DOUBLES(X)
#undef X

static void
fmad(Warp *w, const Insn *i, uint32_t mask)
{
    EACH(mask, R64(w, i->d)[l] = f64_bits(fma(f64_of(R64(w, i->a)[l]),
                                              f64_of(R64(w, i->b)[l]),
                                              f64_of(R64(w, i->c)[l]))));
}

/* ---- comparisons: ordered ones are false of a NaN, the others true */

#define TESTS(X)                                                                         \
    X(eq, x == y)                                                                        \
    X(ne, x < y || x > y)                                                                \
    X(lt, x < y)                                                                         \
    X(le, x <= y)                                                                        \
    X(gt, x > y)                                                                         \
    X(ge, x >= y)                                                                        \
    X(equ, !(x < y || x > y))                                                            \
    X(neu, !(x == y))                                                                    \
    X(ltu, !(x >= y))                                                                    \
    X(leu, !(x > y))                                                                     \
    X(gtu, !(x <= y))                                                                    \
    X(geu, !(x < y))                                                                     \
    X(num, x == x && y == y)                                                             \
    X(nan, x != x || y != y)
#define X(id, expr)                                                                      \
    static void id##_f(Warp *w, const Insn *i, uint32_t mask)                            \
    {                                                                                    \
        const uint32_t *pa = R32(w, i->a), *pb = R32(w, i->b);                           \
        uint32_t r = 0, ftz = i->flags & FTZ;                                            \
        EACH(mask, float x = f32_of(ftz ? flush(pa[l]) : pa[l]);                         \
             float y = f32_of(ftz ? flush(pb[l]) : pb[l]); r |= (uint32_t)(expr) << l);  \
        PRED(w, i->d) = (PRED(w, i->d) & ~mask) | (r & mask);                            \
    }                                                                                    \
    static void id##_d(Warp *w, const Insn *i, uint32_t mask)                            \
    {                                                                                    \
        uint32_t r = 0;                                                                  \
        EACH(mask, double x = f64_of(R64(w, i->a)[l]);                                   \
             double y = f64_of(R64(w, i->b)[l]); r |= (uint32_t)(expr) << l);            \
        PRED(w, i->d) = (PRED(w, i->d) & ~mask) | (r & mask);                            \
    }
TESTS(X)
#undef X

#define X2(id, name, expr) {name, "ww", id, 0},
#define X3(id, name, expr) {name, "www", id, 0},
#define D3(id, name, expr) {name, "ddd", id, 0},
#define C2(id, expr) {"setp." #id ".f32", "pww", id##_f, 0},
#define C3(id, expr) {"setp." #id ".f64", "pdd", id##_d, 0},
const OpEntry ops_float[] = {
    UNARY(X2) BINARY(X3) DOUBLES(D3) TESTS(C2) TESTS(C3)
    {"fma.f32", "wwww", fmaf_, 0},
    {"mad.f32", "wwww", fmaf_, 0},
    {"neg.f32", "ww", neg_or_abs, SIGNED},
    {"abs.f32", "ww", neg_or_abs, 0},
    {"copysign.f32", "www", signf, 0},
    {"fma.f64", "dddd", fmad, 0},
    {"mad.f64", "dddd", fmad, 0},
    {"neg.f64", "dd", negd, 0},
    {"abs.f64", "dd", absd, 0},
    {"copysign.f64", "ddd", signd, 0},
    {"sqrt.f64", "dd", sqrtd, 0},
    {"rcp.f64", "dd", rcpd, 0},
    {"rcp.approx.f64", "dd", rcpd, 0},
    {"rsqrt.approx.f64", "dd", rsqrtd, 0},
    {NULL, NULL, NULL, 0},
};
