/* Operations on whole tiles over element types, shapes and axes, generated code beside
   the interpreter of tile IR: moves (transposes, joins, splits, concatenations,
   broadcasts, gathers), reductions and scans with several combining regions (one that
   does not commute, for scans keep the order), histograms, matmuls. Numbers are small
   integers, so that sums are exact in any order and all is compared bit for bit. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/run/support/harness.h"
#include "tests/run/support/oracle.h"

enum { TEXT = 1 << 17, MAX_RANK = 6, MAX_STORES = 64, NUMBERS = 1 << 14 };

typedef struct Elem {
    const char *name, *sig;
    SdcDtype dtype;
    int bytes;
    bool is_float;
} Elem;

static const Elem elems[] = {
    {"i8", "i8", SDC_I8, 1, false},
    {"i16", "i16", SDC_I16, 2, false},
    {"i32", "i32", SDC_I32, 4, false},
    {"i64", "i64", SDC_I64, 8, false},
    {"f16", "fp16", SDC_FP16, 2, true},
    {"bf16", "bf16", SDC_BF16, 2, true},
    {"f32", "fp32", SDC_FP32, 4, true},
    {"f64", "fp64", SDC_FP64, 8, true},
    {"f8e5", "fp8e5", SDC_FP8E5, 1, true},
    {"f8e4", "fp8e4nv", SDC_FP8E4NV, 1, true},
};
enum { I8, I16, I32, I64, F16, BF16, F32, F64, F8E5, F8E4 };

typedef struct Shape {
    int rank;
    int at[MAX_RANK];
} Shape;

static const Shape shapes[] = {
    {1, {128}},      {1, {2}},     {2, {8, 16}},    {2, {1, 64}},
    {2, {32, 1}},    {2, {64, 4}}, {3, {4, 8, 4}},  {3, {2, 1, 32}},
    {3, {16, 2, 2}}, {2, {2, 128}}, {4, {2, 4, 2, 8}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* ---- the kernel's text */

typedef struct Kernel {
    char *s;
    int n;
    const Elem *in;
    int next; /* number of the next value */
    int nstore;
    const Elem *out[MAX_STORES];
    int count[MAX_STORES];
    char params[MAX_STORES * 40];
} Kernel;

static void __attribute__((format(printf, 2, 3)))
line(Kernel *k, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    k->n += vsnprintf(k->s + k->n, (size_t)(TEXT - k->n), fmt, ap);
    va_end(ap);
    ck_assert_int_lt(k->n, TEXT - 1);
}

static int
numel(Shape s)
{
    int n = 1;
    for (int i = 0; i < s.rank; i++)
        n *= s.at[i];
    return n;
}

/* "tile<8x16xf32>", or the element for rank 0. In one of a few buffers. */
static const char *
type(Shape s, const char *elem)
{
    static char text[8][80];
    static int turn;
    char *t = text[turn++ % 8];
    int n = snprintf(t, sizeof text[0], s.rank ? "tile<" : "");
    for (int i = 0; i < s.rank; i++)
        n += snprintf(t + n, sizeof text[0] - (size_t)n, "%dx", s.at[i]);
    snprintf(t + n, sizeof text[0] - (size_t)n, "%s%s", elem, s.rank ? ">" : "");
    return t;
}

/* Numbers from `from` on as a tile; which of the two inputs. */
static int
load(Kernel *k, Shape s, int input, int from)
{
    Shape flat = {1, {numel(s)}};
    const char *e = k->in->name;
    char ptr[24];
    int v = k->next++;
    snprintf(ptr, sizeof ptr, "ptr<%s>", e);
    line(k, "  %%i%d = arange {start=%d} : %s\n", v, from, type(flat, "i32"));
    line(k, "  %%p%d = splat %%in%d : %s\n", v, input, type(flat, ptr));
    line(k, "  %%q%d = addptr %%p%d, %%i%d : %s\n", v, v, v, type(flat, ptr));
    line(k, "  %%l%d = load %%q%d : %s\n", v, v, type(flat, e));
    line(k, "  %%v%d = reshape %%l%d : %s\n", v, v, type(s, e));
    return v;
}

/* %NAME is stored to an output of its own. */
static void
store(Kernel *k, const char *name, Shape s, const Elem *e)
{
    Shape flat = {1, {numel(s)}};
    int o = k->nstore++;
    char ptr[24];
    ck_assert_int_lt(o, MAX_STORES);
    k->out[o] = e;
    k->count[o] = numel(s);
    snprintf(ptr, sizeof ptr, "ptr<%s>", e->name);
    line(k, "  %%f%d = reshape %%%s : %s\n", o, name, type(flat, e->name));
    line(k, "  %%oi%d = arange {start=0} : %s\n", o, type(flat, "i32"));
    line(k, "  %%op%d = splat %%out%d : %s\n", o, o, type(flat, ptr));
    line(k, "  %%oq%d = addptr %%op%d, %%oi%d : %s\n", o, o, o, type(flat, ptr));
    line(k, "  store %%oq%d, %%f%d\n", o, o);
}

static const char *
fresh(Kernel *k)
{
    static char name[4][16];
    char *n = name[k->next % 4];
    snprintf(n, sizeof name[0], "r%d", k->next++);
    return n;
}

/* ---- moves */

static void
transposes(Kernel *k, Shape s)
{
    int x = load(k, s, 0, 0);
    for (int code = 0; code < 256 && k->nstore < 24; code++) {
        int perm[MAX_RANK] = {0}, seen = 0;
        Shape to = {s.rank, {0}};
        char text[40] = "";
        for (int d = 0; d < s.rank; d++) {
            perm[d] = code >> 2 * d & 3;
            seen |= 1 << perm[d];
        }
        if (code >> 2 * s.rank || seen != (1 << s.rank) - 1)
            continue;
        for (int d = 0; d < s.rank; d++) {
            to.at[d] = s.at[perm[d]];
            sprintf(text + strlen(text), "%s%d", d ? "," : "", perm[d]);
        }
        const char *r = fresh(k);
        line(k, "  %%%s = trans %%v%d {perm=[%s]} : %s\n", r, x, text,
             type(to, k->in->name));
        store(k, r, to, k->in);
    }
}

static void
joins(Kernel *k, Shape s)
{
    const char *e = k->in->name;
    int x = load(k, s, 0, 0), y = load(k, s, 1, 5);
    Shape two = s, wide;
    two.at[two.rank++] = 2;
    const char *j = fresh(k);
    line(k, "  %%%s = join %%v%d, %%v%d : %s\n", j, x, y, type(two, e));
    store(k, j, two, k->in);
    line(k, "  %%sa, %%sb = split %%%s : %s, %s\n", j, type(s, e), type(s, e));
    store(k, "sb", s, k->in);
    store(k, "sa", s, k->in);
    for (int d = 0; d < s.rank; d++) {
        const char *r = fresh(k);
        wide = s;
        wide.at[d] *= 2;
        line(k, "  %%%s = cat %%v%d, %%v%d {axis=%d} : %s\n", r, x, y, d, type(wide, e));
        store(k, r, wide, k->in);
    }
    for (int d = 0; d <= s.rank && s.rank < 3; d++) {
        Shape one = s, more;
        one.rank++;
        for (int i = s.rank; i > d; i--)
            one.at[i] = s.at[i - 1];
        one.at[d] = 1;
        more = one;
        more.at[d] = 4;
        const char *r = fresh(k), *b = fresh(k);
        line(k, "  %%%s = expand_dims %%v%d {axis=%d} : %s\n", r, x, d, type(one, e));
        line(k, "  %%%s = broadcast %%%s : %s\n", b, r, type(more, e));
        store(k, b, more, k->in);
    }
}

/* Indices from the numbers themselves, taken modulo the size. */
static void
gathers(Kernel *k, Shape s)
{
    const char *e = k->in->name;
    int x = load(k, s, 0, 0);
    if (k->in->is_float)
        return;
    for (int d = 0; d < s.rank; d++) {
        const char *r = fresh(k);
        int y = load(k, s, 1, 3 + d);
        line(k, "  %%c%d = const {value=%d} : %s\n", y, s.at[d] - 1, type(s, e));
        line(k, "  %%ix%d = and %%v%d, %%c%d : %s\n", y, y, y, type(s, e));
        line(k, "  %%%s = gather %%v%d, %%ix%d {axis=%d} : %s\n", r, x, y, d, type(s, e));
        store(k, r, s, k->in);
    }
}

/* ---- reductions and scans */

static void
region(Kernel *k, const char *op)
{
    const char *e = k->in->name;
    int u = k->next++;
    line(k, " (%%a%d: %s, %%b%d: %s) {\n    %%c%d = %s %%a%d, %%b%d : %s\n"
         "    yield %%c%d\n  }\n", u, e, u, e, u, op, u, u, e, u);
}

/* Value and place of the greatest: the first one of equals. */
static void
greatest(Kernel *k)
{
    const char *e = k->in->name, *cmp = k->in->is_float ? "cmpf" : "cmpi";
    const char *o = k->in->is_float ? "o" : "s";
    int u = k->next++;
    line(k, " (%%a%d: %s, %%g%d: i32, %%b%d: %s, %%j%d: i32) {\n", u, e, u, u, e, u);
    line(k, "    %%more%d = %s %%a%d, %%b%d {pred=\"%sgt\"} : i1\n", u, cmp, u, u, o);
    line(k, "    %%same%d = %s %%a%d, %%b%d {pred=\"%seq\"} : i1\n", u, cmp, u, u,
         k->in->is_float ? "o" : "");
    line(k, "    %%front%d = cmpi %%g%d, %%j%d {pred=\"slt\"} : i1\n", u, u, u);
    line(k, "    %%tie%d = and %%same%d, %%front%d : i1\n", u, u, u);
    line(k, "    %%first%d = or %%more%d, %%tie%d : i1\n", u, u, u);
    line(k, "    %%m%d = select %%first%d, %%a%d, %%b%d : %s\n", u, u, u, u, e);
    line(k, "    %%at%d = select %%first%d, %%g%d, %%j%d : i32\n", u, u, u, u);
    line(k, "    yield %%m%d, %%at%d\n  }\n", u, u);
}

/* Maps x -> p x + q, one after the other: the order counts. Integers wrap. */
static void
affine(Kernel *k)
{
    const char *e = k->in->name;
    int u = k->next++;
    line(k, " (%%a%d: %s, %%b%d: %s, %%g%d: %s, %%h%d: %s) {\n", u, e, u, e, u, e, u, e);
    line(k, "    %%ag%d = mul %%a%d, %%g%d : %s\n", u, u, u, e);
    line(k, "    %%bg%d = mul %%b%d, %%g%d : %s\n", u, u, u, e);
    line(k, "    %%sum%d = add %%bg%d, %%h%d : %s\n", u, u, u, e);
    line(k, "    yield %%ag%d, %%sum%d\n  }\n", u, u);
}

static Shape
without(Shape s, int axis)
{
    Shape r = {s.rank - 1, {0}};
    for (int i = 0, n = 0; i < s.rank; i++)
        if (i != axis)
            r.at[n++] = s.at[i];
    return r;
}

static void
reductions(Kernel *k, Shape s)
{
    static const char *const ints[] = {"add", "maxs", "minu", "xor"};
    static const char *const reals[] = {"addf", "maxf", "minnan"};
    const char *e = k->in->name;
    int x = load(k, s, 0, 0), i = k->next++;
    Shape flat = {1, {numel(s)}};
    line(k, "  %%n%d = arange {start=0} : %s\n", i, type(flat, "i32"));
    line(k, "  %%v%d = reshape %%n%d : %s\n", i, i, type(s, "i32"));
    for (int d = 0; d < s.rank; d++) {
        Shape to = without(s, d);
        for (int op = 0; op < (k->in->is_float ? 3 : 4); op++) {
            const char *r = fresh(k);
            line(k, "  %%%s = reduce %%v%d {axis=%d} : %s", r, x, d, type(to, e));
            region(k, k->in->is_float ? reals[op] : ints[op]);
            store(k, r, to, k->in);
        }
        const char *m = fresh(k), *at = fresh(k);
        line(k, "  %%%s, %%%s = reduce %%v%d, %%v%d {axis=%d} : %s, %s", m, at, x, i, d,
             type(to, e), type(to, "i32"));
        greatest(k);
        store(k, at, to, &elems[I32]);
        store(k, m, to, k->in);
    }
}

static void
scans(Kernel *k, Shape s)
{
    const char *e = k->in->name;
    int x = load(k, s, 0, 0), y = load(k, s, 1, 9);
    for (int d = 0; d < s.rank; d++)
        for (int back = 0; back < 2; back++) {
            const char *r = fresh(k), *more = back ? ", reverse" : "";
            line(k, "  %%%s = scan %%v%d {axis=%d%s} : %s", r, x, d, more, type(s, e));
            region(k, k->in->is_float ? "addf" : "maxs");
            store(k, r, s, k->in);
            if (k->in->is_float)
                continue;
            const char *p = fresh(k), *q = fresh(k);
            line(k, "  %%%s, %%%s = scan %%v%d, %%v%d {axis=%d%s} : %s, %s", p, q, x, y,
                 d, more, type(s, e), type(s, e));
            affine(k);
            store(k, q, s, k->in);
        }
}

static void
histograms(Kernel *k, Shape s)
{
    Shape flat = {1, {numel(s)}};
    if (k->in != &elems[I32])
        return;
    for (int bins = 2; bins <= 64; bins *= 4) {
        const char *r = fresh(k), *h = fresh(k);
        Shape to = {1, {bins}};
        int x = load(k, flat, 1, bins), y = load(k, flat, 0, 0);
        line(k, "  %%%s = histogram %%v%d : %s\n", r, x, type(to, "i32"));
        store(k, r, to, k->in);
        line(k, "  %%m%d = cmpi %%v%d, %%v%d {pred=\"slt\"} : %s\n", x, x, y,
             type(flat, "i1"));
        line(k, "  %%%s = histogram %%v%d, %%m%d : %s\n", h, x, x, type(to, "i32"));
        store(k, h, to, k->in);
    }
}

/* Tiles that two loops carry, one behind the other, to be reduced behind them. */
static void
carried(Kernel *k, Shape s)
{
    const char *e = k->in->name, *ops[2][3] = {{"add", "xor", "mins"},
                                               {"addf", "maxf", "minf"}};
    for (int turn = 0; turn < 3 * s.rank; turn++) {
        const char *op = ops[k->in->is_float][turn % 3], *r = fresh(k);
        int axis = turn / 3, v = load(k, s, 0, turn);
        Shape flat = {1, {numel(s)}}, to = {s.rank - 1, {0}};
        char ptr[24];
        snprintf(ptr, sizeof ptr, "ptr<%s>", e);
        for (int d = 0; d < to.rank; d++)
            to.at[d] = s.at[d + (d >= axis)];
        line(k, "  %%z%d = const {%s} : %s\n", v,
             k->in->is_float ? "fvalue=0x0p+0" : "value=0", type(s, e));
        for (int i = 0; i < 2; i++) {
            char from[16];
            snprintf(from, sizeof from, i ? "c%d_0" : "z%d", v);
            line(k, "  %%b%d_%d = const {value=%d} : i32\n", v, i, i ? 3 : 0);
            line(k, "  %%e%d_%d = const {value=%d} : i32\n", v, i, i ? 4 : 3);
            line(k, "  %%n%d_%d = const {value=1} : i32\n", v, i);
            line(k, "  %%c%d_%d = for %%g%d_%d = %%b%d_%d, %%e%d_%d, %%n%d_%d (", v, i, v,
                 i, v, i, v, i, v, i);
            line(k, "%%a%d_%d = %%%s) : %s {\n", v, i, from, type(s, e));
            line(k, "  %%s%d_%d = splat %%g%d_%d : %s\n", v, i, v, i, type(flat, "i32"));
            line(k, "  %%t%d_%d = addptr %%q%d, %%s%d_%d : %s\n", v, i, v, v, i,
                 type(flat, ptr));
            line(k, "  %%u%d_%d = load %%t%d_%d : %s\n", v, i, v, i, type(flat, e));
            line(k, "  %%x%d_%d = reshape %%u%d_%d : %s\n", v, i, v, i, type(s, e));
            line(k, "  %%y%d_%d = %s %%a%d_%d, %%x%d_%d : %s\n", v, i, op, v, i, v, i,
                 type(s, e));
            line(k, "  yield %%y%d_%d\n  }\n", v, i);
        }
        line(k, "  %%%s = reduce %%c%d_1 {axis=%d} : %s ", r, v, axis, type(to, e));
        line(k, "(%%h%d: %s, %%k%d: %s) {\n", v, e, v, e);
        line(k, "  %%hk%d = %s %%h%d, %%k%d : %s\n  yield %%hk%d\n  }\n", v, op, v, v, e,
             v);
        if (to.rank == 0) {
            to = (Shape){1, {2}};
            line(k, "  %%ro%d = splat %%%s : %s\n", v, r, type(to, e));
            char name[16];
            snprintf(name, sizeof name, "ro%d", v);
            store(k, name, to, k->in);
        } else {
            store(k, r, to, k->in);
        }
    }
}

/* ---- running */

static void
numbers(Env *env, const Elem *e, unsigned char *to)
{
    static const int32_t f8[2][4] = {{0, 0x3c, 0xbc, 0x40}, {0, 0x38, 0xb8, 0x40}};
    for (int i = 0; i < NUMBERS; i++) {
        int v = (int)(env_random(env) >> 20) % 4 - 1;
        uint64_t bits = 0;
        if (e->bytes == 1 && e->is_float)
            bits = (uint64_t)f8[e == &elems[F8E4]][v & 3];
        else if (e->is_float)
            ref_store(ref_type(e->dtype), &bits, 0, v);
        else
            bits = v ? (uint64_t)(int64_t)v : env_random(env) >> 30;
        memcpy(to + i * e->bytes, &bits, (size_t)e->bytes);
    }
}

static void
kernel_open(Kernel *k, const Elem *in)
{
    static char text[TEXT];
    *k = (Kernel){.s = text, .in = in};
}

/* The body is written: puts the head in front, runs both, compares. */
static void
kernel_check(Kernel *k, const char *what)
{
    static char text[TEXT + MAX_STORES * 64];
    int n = 0;
    if (!k->nstore)
        return;
    for (int i = 0; i < 2; i++)
        n += sprintf(text + n, "%s%%in%d: ptr<%s> {sig=\"*%s\"}",
                     i ? ", " : "kernel @f(", i, k->in->name, k->in->sig);
    for (int i = 0; i < k->nstore; i++)
        n += sprintf(text + n, ", %%out%d: ptr<%s> {sig=\"*%s\"}", i, k->out[i]->name,
                     k->out[i]->sig);
    sprintf(text + n, ") {warps=4, stages=3} {\n%s  return\n}\n", k->s);
    Env env = env_open_tir(text);
    void *data[2][2 + MAX_STORES];
    size_t bytes[2 + MAX_STORES];
    SdcArg args[2][2 + MAX_STORES];
    for (int i = 0; i < 2 + k->nstore; i++) {
        const Elem *e = i < 2 ? k->in : k->out[i - 2];
        bytes[i] = (size_t)(i < 2 ? NUMBERS : k->count[i - 2]) * (size_t)e->bytes;
        data[0][i] = data[1][i] = env_alloc(&env, bytes[i]);
        if (i < 2)
            numbers(&env, e, data[0][i]);
        else
            data[1][i] = env_alloc(&env, bytes[i]);
        for (int run = 0; run < 2; run++)
            args[run][i] = sdc_ptr(e->dtype, data[run][i]);
    }
    bool ran = launch(&env, "f", sdc_grid(1, 1, 1), "", args[0], 2 + k->nstore);
    oracle_text(text, args[1], bytes, 2 + k->nstore, sdc_grid(1, 1, 1), 0);
    for (int i = 2; ran && i < 2 + k->nstore; i++) {
        const unsigned char *g = data[0][i], *w = data[1][i];
        for (size_t b = 0; b < bytes[i]; b++)
            ck_assert_msg(g[b] == w[b], "%s of %s: output %d, element %zu differs\n%s",
                          what, k->in->name, i - 2,
                          b / (size_t)k->out[i - 2]->bytes, text);
    }
    env_close(&env);
}

static void
check(const Elem *e, void (*write)(Kernel *, Shape), const char *what)
{
    for (int i = 0; i < SHAPES; i++) {
        Kernel k;
        int turn = i + (int)(e - elems); /* all shapes of two types, a third of others */
        if (turn % 3 && e != &elems[I32] && e != &elems[F32])
            continue;
        kernel_open(&k, e);
        write(&k, shapes[i]);
        kernel_check(&k, what);
    }
}

START_TEST(moves)
{
    check(&elems[_i], transposes, "trans");
    check(&elems[_i], joins, "join");
    check(&elems[_i], gathers, "gather");
}
END_TEST

START_TEST(combinations)
{
    check(&elems[_i], reductions, "reduce");
    check(&elems[_i], scans, "scan");
    check(&elems[_i], histograms, "histogram");
    check(&elems[_i], carried, "for");
}
END_TEST

START_TEST(large_scans)
{
    Kernel k;
    kernel_open(&k, &elems[I64]);
    scans(&k, (Shape){2, {256, 32}});
    kernel_check(&k, "scan");
}
END_TEST

typedef struct Product {
    int in, out;
    int batch, m, n, k;
} Product;

static const Product products[] = {
    {F16, F32, 1, 16, 16, 16},   {F16, F32, 1, 64, 32, 64}, {F16, F16, 1, 32, 64, 32},
    {BF16, F32, 1, 32, 16, 128}, {F32, F32, 1, 16, 32, 16}, {F32, F32, 1, 64, 64, 32},
    {F64, F64, 1, 16, 16, 16},   {I8, I32, 1, 32, 32, 64},  {I8, I32, 1, 16, 64, 32},
    {F8E5, F32, 1, 32, 32, 64},  {F8E4, F32, 1, 64, 32, 32}, {F16, F32, 4, 16, 16, 32},
    {I8, I32, 2, 32, 16, 32},    {F32, F32, 2, 16, 16, 16},
    {F16, F32, 1, 128, 16, 16},
};

/* a * b, and once more with that as accumulator and operands exchanged. */
START_TEST(dots)
{
    const Product *p = &products[_i];
    Kernel k;
    kernel_open(&k, &elems[p->in]);
    int b = p->batch > 1 ? 3 : 2;
    Shape sa = {b, {p->m, p->k}}, sb = {b, {p->k, p->n}}, sc = {b, {p->m, p->n}};
    if (b == 3) {
        sa = (Shape){3, {p->batch, p->m, p->k}};
        sb = (Shape){3, {p->batch, p->k, p->n}};
        sc = (Shape){3, {p->batch, p->m, p->n}};
    }
    const Elem *out = &elems[p->out];
    int x = load(&k, sa, 0, 0), y = load(&k, sb, 1, 0), z = load(&k, sa, 1, 777);
    line(&k, "  %%zero = const {%s} : %s\n", out->is_float ? "fvalue=0x0p+0" : "value=0",
         type(sc, out->name));
    line(&k, "  %%d = dot %%v%d, %%v%d, %%zero {precision=\"ieee\"} : %s\n", x, y,
         type(sc, out->name));
    store(&k, "d", sc, out);
    line(&k, "  %%e = dot %%v%d, %%v%d, %%d {precision=\"ieee\"} : %s\n", z, y,
         type(sc, out->name));
    store(&k, "e", sc, out);
    kernel_check(&k, "dot");
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("tiles");
    TCase *tc = tcase_create("kernels");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, moves, 0, F64 + 1);
    tcase_add_loop_test(tc, combinations, 0, F64 + 1);
    tcase_add_test(tc, large_scans);
    tcase_add_loop_test(tc, dots, 0, (int)(sizeof products / sizeof *products));
    suite_add_tcase(suite, tc);
    return suite_finish("tiles", suite);
}
