/* Every elementwise operation over every scalar type, generated code beside the
   interpreter of tile IR: 8-bit integers with all pairs, 8- and 16-bit floats with all
   numbers where there is one operand, other types with all pairs of their edges and
   random bits. Exact operations bit for bit, but NaNs are one; what is undefined
   (docs/ir.md) is not compared; functions within the ulps that docs/language.md gives. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/run/support/harness.h"
#include "tests/run/support/oracle.h"

enum { LANES = 256, MAX_OPS = 40, TEXT = 1 << 16 };

typedef struct Scalar {
    const char *name, *sig;
    SdcDtype dtype;
    int bits;
    int mant; /* of a float; 0: an integer */
} Scalar;

static const Scalar scalars[] = {
    {"i1", "i1", SDC_BOOL, 1, 0},
    {"i8", "i8", SDC_I8, 8, 0},
    {"i16", "i16", SDC_I16, 16, 0},
    {"i32", "i32", SDC_I32, 32, 0},
    {"i64", "i64", SDC_I64, 64, 0},
    {"f8e5", "fp8e5", SDC_FP8E5, 8, 2},
    {"f8e4", "fp8e4nv", SDC_FP8E4NV, 8, 3},
    {"f8e4b15", "fp8e4b15", SDC_FP8E4B15, 8, 3},
    {"f16", "fp16", SDC_FP16, 16, 10},
    {"bf16", "bf16", SDC_BF16, 16, 7},
    {"f32", "fp32", SDC_FP32, 32, 23},
    {"f64", "fp64", SDC_FP64, 64, 52},
};
enum { SCALARS = sizeof scalars / sizeof *scalars };

typedef struct Operation {
    const char *text;   /* with its attributes */
    int operands;
    const Scalar *out;  /* NULL: that of the operands */
    int ulps;           /* 0: exact */
} Operation;

typedef struct Group {
    const Scalar *in;
    Operation op[MAX_OPS];
    int nop;
} Group;

static int
bytes_of(const Scalar *t)
{
    return t->bits < 8 ? 1 : t->bits / 8;
}

static void
add(Group *g, const char *text, int operands, const Scalar *out, int ulps)
{
    ck_assert_int_lt(g->nop, MAX_OPS);
    g->op[g->nop++] = (Operation){text, operands, out, ulps};
}

/* ---- the operations */

static void
integers(Group *g)
{
    static const char *const two[] = {
        "add",  "sub",  "mul",  "divs", "divu", "rems", "remu",   "and",   "or",
        "xor",  "shl",  "shrs", "shru", "mins", "maxs", "minu",   "maxu",  "mulhis",
        "mulhiu",
    };
    static const char *const preds[] = {"eq",  "ne",  "slt", "sle", "sgt",
                                        "sge", "ult", "ule", "ugt", "uge"};
    static const char *const counts[] = {"popc", "clz", "ffs", "brev"};
    static char text[2][10][40];
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (g->in->bits > 1 || two[i][0] != 'm' || two[i][1] != 'u')
            add(g, two[i], 2, NULL, 0);
    if (g->in->bits > 1)
        add(g, "abss", 1, NULL, 0);
    for (int i = 0; i < 10; i++) {
        snprintf(text[0][i], sizeof text[0][i], "cmpi {pred=\"%s\"}", preds[i]);
        add(g, text[0][i], 2, &scalars[0], 0);
    }
    for (int i = 0; i < 4 && g->in->bits >= 32; i++) {
        snprintf(text[1][i], sizeof text[1][i], "libm {fn=\"%s\"}", counts[i]);
        add(g, text[1][i], 1, NULL, 0);
    }
}

static void
floats(Group *g)
{
    static const char *const one[] = {"negf", "absf", "floor", "ceil", "sqrtrn"};
    static const char *const two[] = {"addf", "subf", "mulf", "divrn", "minf",
                                      "maxf", "minnan", "maxnan", "remf"};
    static const char *const preds[] = {"oeq", "une", "olt", "ole", "ogt", "oge", "uno"};
    static char text[7][40];
    bool wide = g->in->bits >= 32;
    for (size_t i = 0; i < sizeof one / sizeof *one; i++)
        add(g, one[i], 1, NULL, 0);
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        add(g, two[i], 2, NULL, 0);
    add(g, "divf", 2, NULL, wide ? 2 : 0);
    add(g, "fma", 3, NULL, 0);
    for (int i = 0; i < 7; i++) {
        snprintf(text[i], sizeof text[i], "cmpf {pred=\"%s\"}", preds[i]);
        add(g, text[i], 2, &scalars[0], 0);
    }
}

static void
functions(Group *g)
{
    static const char *const plain[] = {"sqrt", "rsqrt", "exp", "exp2", "log",
                                        "log2", "sin",   "cos", "erf"};
    static const char *const fns[] = {
        "tanh",  "sinh",  "cosh",  "tan",   "asin",  "acos",  "atan",
        "asinh", "acosh", "atanh", "expm1", "exp10", "log1p", "log10",
        "cbrt",  "erfc",
    };
    static const char *const exact[] = {"rint", "nearbyint", "round", "trunc"};
    static const char *const classes[] = {"isnan", "isinf", "isfinite", "signbit"};
    static char text[32][40];
    int n = 0;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        add(g, plain[i], 1, NULL, 4);
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++, n++) {
        snprintf(text[n], sizeof text[n], "libm {fn=\"%s\"}", fns[i]);
        add(g, text[n], 1, NULL, 4);
    }
    for (int i = 0; i < 4; i++, n++) {
        snprintf(text[n], sizeof text[n], "libm {fn=\"%s\"}", exact[i]);
        add(g, text[n], 1, NULL, 0);
    }
    for (int i = 0; i < 4; i++, n++) {
        snprintf(text[n], sizeof text[n], "libm {fn=\"%s\"}", classes[i]);
        add(g, text[n], 1, &scalars[0], 0);
    }
}

static void
pair_functions(Group *g)
{
    static const char *const exact[] = {"copysign", "fdim",      "fmod",
                                        "remainder", "nextafter"};
    static const char *const fns[] = {"atan2", "pow", "hypot"};
    static char text[8][40];
    int n = 0;
    for (int i = 0; i < 5; i++, n++) {
        snprintf(text[n], sizeof text[n], "libm {fn=\"%s\"}", exact[i]);
        add(g, text[n], 2, NULL, 0);
    }
    for (int i = 0; i < 3; i++, n++) {
        snprintf(text[n], sizeof text[n], "libm {fn=\"%s\"}", fns[i]);
        add(g, text[n], 2, NULL, 4);
    }
}

/* What the front end converts, and only that: 8-bit floats go by way of wider ones. */
static void
casts(Group *g)
{
    const Scalar *f = g->in;
    for (int i = 0; i < SCALARS; i++) {
        const Scalar *t = &scalars[i];
        if (t == f)
            continue;
        if (!f->mant && !t->mant && t->bits < f->bits)
            add(g, "trunc", 1, t, 0);
        if (!f->mant && !t->mant && t->bits > f->bits)
            add(g, "sext", 1, t, 0), add(g, "zext", 1, t, 0);
        if (!f->mant && t->bits >= 16 && t->mant)
            add(g, "sitof", 1, t, 0), add(g, "uitof", 1, t, 0);
        if (f->bits >= 32 && f->mant && !t->mant && t->bits > 1)
            add(g, "ftosi", 1, t, 0), add(g, "ftoui", 1, t, 0);
        if (f->mant && t->mant && t->bits > f->bits)
            add(g, "fext", 1, t, 0);
        if (f->mant && t->mant && t->bits < f->bits) {
            add(g, "ftrunc", 1, t, 0);
            if (t->bits == 16 || t->bits == 32)
                add(g, "ftrunc {round=\"rtz\"}", 1, t, 0);
        }
        if (f->bits == t->bits && f->bits > 1)
            add(g, "bitcast", 1, t, 0);
    }
}

/* ---- the kernel */

typedef struct Text {
    char *s;
    int n;
} Text;

static void __attribute__((format(printf, 2, 3)))
line(Text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    t->n += vsnprintf(t->s + t->n, (size_t)(TEXT - t->n), fmt, ap);
    va_end(ap);
    ck_assert_int_lt(t->n, TEXT - 1);
}

/* x, y, z and one pointer for each operation; element i of each to element i. */
static void
write_kernel(const Group *g, char *text)
{
    Text t = {text, 0};
    const char *T = g->in->name;
    line(&t, "kernel @f(");
    for (int i = 0; i < 3; i++)
        line(&t, "%s%%in%d: ptr<%s> {sig=\"*%s\"}", i ? ", " : "", i, T, g->in->sig);
    for (int i = 0; i < g->nop; i++) {
        const Scalar *o = g->op[i].out ? g->op[i].out : g->in;
        line(&t, ", %%out%d: ptr<%s> {sig=\"*%s\"}", i, o->name, o->sig);
    }
    line(&t, ") {warps=4, stages=3} {\n  %%pid = program_id {axis=0} : i32\n"
         "  %%n = const {value=%d} : i32\n  %%base = mul %%pid, %%n : i32\n"
         "  %%bv = splat %%base : tile<%dxi32>\n"
         "  %%lane = arange {start=0} : tile<%dxi32>\n"
         "  %%i = add %%bv, %%lane : tile<%dxi32>\n", LANES, LANES, LANES, LANES);
    for (int i = 0; i < 3; i++)
        line(&t, "  %%s%d = splat %%in%d : tile<%dxptr<%s>>\n"
             "  %%p%d = addptr %%s%d, %%i : tile<%dxptr<%s>>\n"
             "  %%x%d = load %%p%d : tile<%dx%s>\n", i, i, LANES, T, i, i, LANES, T, i, i,
             LANES, T);
    for (int i = 0; i < g->nop; i++) {
        const Operation *op = &g->op[i];
        const char *O = op->out ? op->out->name : T;
        int word = (int)strcspn(op->text, " ");
        line(&t, "  %%r%d = %.*s %%x0%s%s%s : tile<%dx%s>\n", i, word, op->text,
             op->operands > 1 ? ", %x1" : "", op->operands > 2 ? ", %x2" : "",
             op->text + word, LANES, O);
        line(&t, "  %%t%d = splat %%out%d : tile<%dxptr<%s>>\n"
             "  %%q%d = addptr %%t%d, %%i : tile<%dxptr<%s>>\n  store %%q%d, %%r%d\n",
             i, i, LANES, O, i, i, LANES, O, i, i);
    }
    line(&t, "  return\n}\n");
}

/* ---- numbers */

static const double reals[] = {
    0,     1,   0.5, 1.5,     2,     3,     0.1,   1e-3, 100,    127.5,
    255,   448, 449, 1024.75, 32767, 65504, 65520, 1e10, 0x1p31, 0x1p63,
    1e30,  0x1p-126, 0x1p-140, 0x1.8p-149, 0x1p-14, 0x1p-24, 0x1.8p-25,
    3.4028234e38,
};
enum { REALS = sizeof reals / sizeof *reals, EDGES = 2 * REALS + 4 };

/* The bits of edge number i. */
static uint64_t
edge(const Scalar *t, int i)
{
    uint64_t top = (uint64_t)1 << (t->bits - 1);
    static const int64_t small[] = {0,  1,  -1, 2,  -2, 3,  7, -7,
                                    10, 31, 32, 33, 63, 64, -9};
    if (!t->mant) {
        int n = sizeof small / sizeof *small;
        return i < n     ? (uint64_t)small[i]
               : i == n  ? top
               : i < n + 3 ? top - 1 + (uint64_t)(i - n - 1) * 2
                         : top / 2 + (uint64_t)i;
    }
    double v = (i & 1 ? -1 : 1) * (i < 2 * REALS ? reals[i / 2] : HUGE_VAL);
    uint64_t bits = 0;
    float f = (float)v;
    if (i >= 2 * REALS + 2)
        v = f = NAN;
    if (t->bits == 64)
        memcpy(&bits, &v, 8);
    else
        memcpy(&bits, &f, 4);
    return t->bits < 32 ? bits >> (32 - t->bits) : bits; /* of 16 and 8 bits just some */
}

/* Bits near a number of few bits or the middle of two: where rounding is decided. */
static uint64_t
near_middle(Env *env, const Scalar *t)
{
    uint64_t bits = env_random(env), r = env_random(env);
    if (!t->mant) /* an integer, whose float is rounded */
        return r & 1 ? bits : ((bits % 4096) << (r >> 16) % 56) + (r >> 9) % 3 - 1;
    static const int kept[] = {2, 3, 4, 7, 8, 10, 11, 23, 24};
    int keep = kept[r % (sizeof kept / sizeof *kept)];
    if (keep < t->mant)
        bits = bits >> (t->mant - keep) << (t->mant - keep);
    if (t->bits == 32 && r >> 8 & 1) /* of a size that small formats have */
        bits = (bits & ~((uint64_t)0xff << 23)) | (100 + (r >> 16) % 48) << 23;
    if (t->bits == 64 && r >> 8 & 1)
        bits = (bits & ~((uint64_t)0x7ff << 52)) | (990 + (r >> 16) % 60) << 52;
    return bits + (r >> 9) % 3 - 1;
}

static int64_t
count_of(const Scalar *t, bool unary)
{
    return t->bits == 8 || (t->bits == 16 && unary) ? 65536 : unary ? 16384 : 8192;
}

static void
fill(Env *env, const Scalar *t, bool unary, int64_t n, unsigned char *const *in)
{
    int size = bytes_of(t);
    for (int64_t i = 0; i < n; i++) {
        uint64_t v[3];
        for (int k = 0; k < 3; k++)
            v[k] = env_random(env) % 4 ? near_middle(env, t)
                                       : edge(t, (int)(env_random(env) % EDGES));
        if (t->bits <= 8)
            v[0] = (uint64_t)i, v[1] = (uint64_t)i >> 8;
        else if (unary && t->bits == 16)
            v[0] = (uint64_t)i;
        else if (i < EDGES * EDGES)
            v[0] = edge(t, (int)(i % EDGES)), v[1] = edge(t, (int)(i / EDGES));
        for (int k = 0; k < 3; k++) {
            v[k] &= t->bits == 1 ? 1 : ~(uint64_t)0;
            memcpy(in[k] + i * size, &v[k], (size_t)size);
        }
    }
}

/* ---- comparison */

static bool
is_nan_code(const Scalar *t, uint64_t code)
{
    uint64_t infinity = t->bits == 8 && t->mant == 3 ? 0x7e
                        : (((uint64_t)1 << (t->bits - 1 - t->mant)) - 1) << t->mant;
    return (code & (((uint64_t)1 << (t->bits - 1)) - 1)) > infinity;
}

/* The place of a float in the order of all of its type. */
static int64_t
rank_of(const Scalar *t, uint64_t code)
{
    uint64_t sign = (uint64_t)1 << (t->bits - 1);
    return code & sign ? -(int64_t)(code & (sign - 1)) : (int64_t)code;
}

static bool
same(const Scalar *t, int ulps, uint64_t got, uint64_t want)
{
    if (got == want || !t->mant)
        return got == want;
    if (is_nan_code(t, got) || is_nan_code(t, want))
        return is_nan_code(t, got) && is_nan_code(t, want);
    return ulps && llabs(rank_of(t, got) - rank_of(t, want)) <= ulps;
}

static uint64_t
code_at(const unsigned char *p, int64_t i, int size)
{
    uint64_t v = 0;
    memcpy(&v, p + i * size, (size_t)size);
    return v;
}

static int
compare(const Group *g, int k, int64_t n, unsigned char *const *in,
        const unsigned char *got, const unsigned char *want, const unsigned char *other)
{
    const Operation *op = &g->op[k];
    const Scalar *t = op->out ? op->out : g->in;
    int size = bytes_of(t), wrong = 0, from = bytes_of(g->in);
    for (int64_t i = 0; i < n; i++) {
        uint64_t a = code_at(got, i, size), b = code_at(want, i, size);
        if (same(t, op->ulps, a, b) || code_at(other, i, size) != b)
            continue;
        if (!wrong++)
            fprintf(stderr,
                    "%s of %s(0x%llx, 0x%llx, 0x%llx): 0x%llx, not 0x%llx of %s\n",
                    op->text, g->in->name, (unsigned long long)code_at(in[0], i, from),
                    (unsigned long long)code_at(in[1], i, from),
                    (unsigned long long)code_at(in[2], i, from), (unsigned long long)a,
                    (unsigned long long)b, t->name);
    }
    return wrong;
}

static void
check_group(Group *g, bool unary)
{
    static char text[TEXT];
    int64_t n = count_of(g->in, unary);
    if (!g->nop)
        return;
    write_kernel(g, text);
    Env env = env_open_tir(text);
    unsigned char *in[3], *out[3][MAX_OPS] = {{0}};
    size_t bytes[3 + MAX_OPS];
    SdcArg args[3 + MAX_OPS];
    SdcGrid grid = sdc_grid((int)(n / LANES), 1, 1);
    for (int i = 0; i < 3; i++) {
        bytes[i] = (size_t)(n * bytes_of(g->in));
        in[i] = env_alloc(&env, bytes[i]);
        args[i] = sdc_ptr(g->in->dtype, in[i]);
    }
    fill(&env, g->in, unary, n, in);
    for (int run = 0; run < 3; run++) {
        for (int k = 0; k < g->nop; k++) {
            const Scalar *t = g->op[k].out ? g->op[k].out : g->in;
            bytes[3 + k] = (size_t)(n * bytes_of(t));
            out[run][k] = env_alloc(&env, bytes[3 + k]);
            args[3 + k] = sdc_ptr(t->dtype, out[run][k]);
        }
        if (run)
            oracle_text(text, args, bytes, 3 + g->nop, grid, run == 2 ? 0x5eed : 0);
        else if (!launch(&env, "f", grid, "", args, 3 + g->nop))
            break;
    }
    int wrong = 0;
    for (int k = 0; k < g->nop && out[2][k]; k++) {
        if (g->op[k].ulps && env.cuda) /* the hardware's own: docs/language.md */
            continue;
        wrong += compare(g, k, n, in, out[0][k], out[1][k], out[2][k]);
    }
    env_close(&env);
    ck_assert_msg(!wrong, "%d results of %s", wrong, g->in->name);
}

START_TEST(arithmetic)
{
    Group g = {.in = &scalars[_i]};
    if (g.in->mant)
        floats(&g);
    else
        integers(&g);
    if (g.in->bits > 8 || !g.in->mant) /* 8-bit floats are storage only */
        check_group(&g, false);
}
END_TEST

START_TEST(conversions)
{
    Group g = {.in = &scalars[_i]};
    casts(&g);
    check_group(&g, true);
}
END_TEST

START_TEST(math)
{
    Group one = {.in = &scalars[_i]}, two = {.in = &scalars[_i]};
    functions(&one);
    check_group(&one, true);
    pair_functions(&two);
    check_group(&two, false);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("operations");
    TCase *tc = tcase_create("kernels");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, arithmetic, 0, SCALARS);
    tcase_add_loop_test(tc, conversions, 0, SCALARS);
    tcase_add_loop_test(tc, math, SCALARS - 2, SCALARS);
    suite_add_tcase(suite, tc);
    return suite_finish("operations", suite);
}
