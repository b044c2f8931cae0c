/* Loads, stores and atomics under many masks and at many kinds of addresses, generated
   code beside the interpreter of tile IR: every element type, runs forwards, backwards,
   with gaps, permuted, repeated, in two dimensions with strides of which something or
   nothing is known; masks that are prefixes, suffixes, windows, scattered and loaded.
   Buffers end at a page that cannot be touched. Bit for bit. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/run/support/harness.h"
#include "tests/run/support/oracle.h"

enum { LANES = 128, TEXT = 1 << 15, ROWS = 8, COLUMNS = 16, SPAN = 4 * LANES };

typedef struct Elem {
    const char *name, *sig;
    SdcDtype dtype;
    int bytes;
} Elem;

static const Elem elems[] = {
    {"i1", "i1", SDC_BOOL, 1},       {"i8", "i8", SDC_I8, 1},
    {"i16", "i16", SDC_I16, 2},      {"i32", "i32", SDC_I32, 4},
    {"i64", "i64", SDC_I64, 8},      {"f16", "fp16", SDC_FP16, 2},
    {"bf16", "bf16", SDC_BF16, 2},   {"f32", "fp32", SDC_FP32, 4},
    {"f64", "fp64", SDC_FP64, 8},    {"f8e4", "fp8e4nv", SDC_FP8E4NV, 1},
};
enum { ELEMS = sizeof elems / sizeof *elems };

/* Text with %i (lanes 0, 1, ..), %jv and %kv (parameters j and k in all lanes) and the
   constants of open_kernel that leaves offsets in %at: within SPAN for j from 1 to 3. */
static const struct {
    const char *text;
    bool unique; /* no two lanes meet */
} addresses[] = {
    {"  %at = add %i, %zero : T\n", true},
    {"  %at = mul %i, %two : T\n", true},
    {"  %at = mul %i, %jv : T\n", true},
    {"  %n1 = sub %last, %i : T\n  %at = mul %n1, %two : T\n", true},
    {"  %at = sub %last, %i : T\n", true},
    {"  %at = add %i, %jv : T\n", true},
    {"  %n1 = mul %i, %odd : T\n  %at = rems %n1, %lanes : T\n", true},
    {"  %at = divs %i, %four : T\n", false},
    {"  %at = rems %i, %four : T\n", false},
    {"  %at = add %jv, %zero : T\n", false},
    /* columns of a matrix of 16, transposed; rows of a matrix whose stride is j * 16 */
    {"  %n1 = rems %i, %eight : T\n  %n2 = mul %n1, %sixteen : T\n"
     "  %n3 = divs %i, %eight : T\n  %at = add %n2, %n3 : T\n", true},
    {"  %n1 = divs %i, %sixteen : T\n  %n2 = mul %n1, %sixteen : T\n"
     "  %n3 = mul %n2, %jv : T\n  %n4 = rems %i, %sixteen : T\n"
     "  %at = add %n3, %n4 : T\n", true},
    /* runs of four, apart; a run that is cut in two */
    {"  %n1 = divs %i, %four : T\n  %n2 = mul %n1, %eight : T\n"
     "  %n3 = rems %i, %four : T\n  %at = add %n2, %n3 : T\n", true},
    {"  %n1 = add %i, %kv : T\n  %at = remu %n1, %lanes : T\n", true},
};
enum { ADDRESSES = sizeof addresses / sizeof *addresses };

/* Leaves a mask in %m; NULL: none. */
static const char *const masks[] = {
    NULL,
    "  %m = cmpi %i, %kv {pred=\"slt\"} : B\n",
    "  %m = cmpi %i, %kv {pred=\"sge\"} : B\n",
    "  %m1 = cmpi %i, %kv {pred=\"slt\"} : B\n  %m2 = cmpi %i, %jv {pred=\"sgt\"} : B\n"
    "  %m = and %m1, %m2 : B\n",
    "  %m1 = rems %i, %three : T\n  %m = cmpi %m1, %zero {pred=\"eq\"} : B\n",
    "  %m1 = divs %i, %eight : T\n  %m2 = rems %m1, %two : T\n"
    "  %m = cmpi %m2, %zero {pred=\"eq\"} : B\n",
    "  %mb = splat %mask : tile<128xptr<i1>>\n"
    "  %mp = addptr %mb, %i : tile<128xptr<i1>>\n  %m = load %mp : B\n",
    "  %m1 = and %i, %kv : T\n  %m = cmpi %m1, %zero {pred=\"ne\"} : B\n",
    "  %m = cmpi %kv, %three {pred=\"sgt\"} : B\n",
};
enum { MASKS = sizeof masks / sizeof *masks };

/* ---- the kernel's text */

typedef struct Text {
    char s[TEXT];
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

/* T stands for the lanes' integers, B for masks. */
static void
piece(Text *t, const char *text)
{
    for (; *text; text++) {
        bool alone = text[1] == '\n' && text[-1] == ' ';
        if (alone && (*text == 'T' || *text == 'B'))
            line(t, "tile<%dx%s>", LANES, *text == 'T' ? "i32" : "i1");
        else
            line(t, "%c", *text);
    }
}

static void
open_kernel(Text *t, const Elem *e)
{
    static const struct {
        const char *name;
        int value;
    } constants[] = {
        {"zero", 0},  {"two", 2},      {"three", 3},          {"four", 4},
        {"eight", 8}, {"sixteen", 16}, {"last", LANES - 1},   {"lanes", LANES},
        {"odd", 37},  {"span", SPAN},
    };
    t->n = 0;
    line(t, "kernel @f(%%x: ptr<%s> {sig=\"*%s\"}, %%y: ptr<%s> {sig=\"*%s\"}, "
         "%%out: ptr<%s> {sig=\"*%s\"}, %%mask: ptr<i1> {sig=\"*i1\"}, "
         "%%j: i32 {sig=\"i32\"}, %%k: i32 {sig=\"i32\"}) {warps=4, stages=3} {\n",
         e->name, e->sig, e->name, e->sig, e->name, e->sig);
    line(t, "  %%i = arange {start=0} : tile<%dxi32>\n", LANES);
    line(t, "  %%jv = splat %%j : tile<%dxi32>\n", LANES);
    line(t, "  %%kv = splat %%k : tile<%dxi32>\n", LANES);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        line(t, "  %%%s = const {value=%d} : tile<%dxi32>\n", constants[i].name,
             constants[i].value, LANES);
}

/* %NAME: pointers into BASE at offsets. */
static void
pointers(Text *t, const Elem *e, const char *name, const char *base, const char *offset)
{
    line(t, "  %%%sb = splat %%%s : tile<%dxptr<%s>>\n", name, base, LANES, e->name);
    line(t, "  %%%s = addptr %%%sb, %%%s : tile<%dxptr<%s>>\n", name, name, offset, LANES,
         e->name);
}

/* ---- running */

typedef struct Buffers {
    unsigned char *x, *y, *mask, *out[2];
} Buffers;

/* Memory that ends where a page does; filled with numbers. */
static unsigned char *
buffer(Env *env, const Elem *e, int64_t n)
{
    Buf b = buf_poison(env, SDC_FP64, 0, DIMS((n * e->bytes + 7) / 8));
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = env_random(env) >> 17;
        if (e->dtype == SDC_BOOL)
            v &= 1;
        if (sdc_dtype_is_float(e->dtype) && e->bytes > 1) {
            v = 0;
            double x = (double)(env_random(env) >> 40) / 0x1p18;
            ref_store(ref_type(e->dtype), &v, 0, x);
        }
        memcpy(b.data + i * e->bytes, &v, (size_t)e->bytes);
    }
    return b.data;
}

/* Both runs of the kernel for some j and k; outputs must be the same. */
static void
check(Text *t, const Elem *e, const char *what)
{
    static const int ks[] = {0, 1, 33, 96, 127, 128, -5};
    line(t, "  return\n}\n");
    Env env = env_open_tir(t->s);
    Buffers b = {.x = buffer(&env, e, SPAN), .y = buffer(&env, e, LANES),
                 .mask = buffer(&env, &elems[0], LANES)};
    const size_t bytes[] = {(size_t)(SPAN * e->bytes), (size_t)(LANES * e->bytes),
                            (size_t)((SPAN + LANES) * e->bytes), LANES, 0, 0};
    for (size_t c = 0; c < sizeof ks / sizeof *ks; c++) {
        b.out[0] = buffer(&env, e, SPAN + LANES);
        b.out[1] = env_alloc(&env, bytes[2]);
        memcpy(b.out[1], b.out[0], bytes[2]);
        SdcArg args[] = {sdc_ptr(e->dtype, b.x),      sdc_ptr(e->dtype, b.y),
                         sdc_ptr(e->dtype, b.out[0]), sdc_ptr(SDC_BOOL, b.mask),
                         sdc_int_of(SDC_I32, 1 + (int)c % 3), sdc_int_of(SDC_I32, ks[c])};
        if (!launch(&env, "f", sdc_grid(1, 1, 1), "", args, 6))
            continue;
        args[2] = sdc_ptr(e->dtype, b.out[1]);
        oracle_text(t->s, args, bytes, 6, sdc_grid(1, 1, 1), 0);
        for (size_t i = 0; i < bytes[2]; i++)
            ck_assert_msg(b.out[0][i] == b.out[1][i],
                          "%s of %s, j %d, k %d: element %zu differs\n%s", what, e->name,
                          1 + (int)c % 3, ks[c], i / (size_t)e->bytes, t->s);
    }
    env_close(&env);
}

/* Every kind of address with some of the masks, all of them over the types. */
START_TEST(loads)
{
    static Text t;
    const Elem *e = &elems[_i % ELEMS];
    int a = _i / ELEMS;
    for (int m = (_i + a) % 5; m < MASKS; m += 5) {
        bool other = m % 2;
        open_kernel(&t, e);
        piece(&t, addresses[a].text);
        if (masks[m])
            piece(&t, masks[m]);
        pointers(&t, e, "p", "x", "at");
        pointers(&t, e, "q", "y", "i");
        pointers(&t, e, "o", "out", "i");
        line(&t, "  %%w = load %%q : tile<%dx%s>\n", LANES, e->name);
        line(&t, "  %%v = load %%p%s%s : tile<%dx%s>\n  store %%o, %%v\n",
             masks[m] ? ", %m" : "", masks[m] && other ? ", %w" : "", LANES, e->name);
        check(&t, e, "load");
    }
}
END_TEST

START_TEST(stores)
{
    static Text t;
    const Elem *e = &elems[_i % ELEMS];
    int a = _i / ELEMS;
    for (int m = (_i + a + 1) % 5; m < MASKS && addresses[a].unique; m += 5) {
        open_kernel(&t, e);
        piece(&t, addresses[a].text);
        if (masks[m])
            piece(&t, masks[m]);
        pointers(&t, e, "p", "out", "at");
        pointers(&t, e, "q", "y", "i");
        /* Every other time the load has the mask, too: then nothing is left to do in a
           strip that is off. */
        line(&t, "  %%w = load %%q%s : tile<%dx%s>\n  store %%p, %%w%s\n",
             masks[m] && (_i + m / 5) % 2 ? ", %m" : "", LANES, e->name,
             masks[m] ? ", %m" : "");
        check(&t, e, "store");
    }
}
END_TEST

/* The greatest of what is loaded, after work that is worth a test in front of a strip. */
START_TEST(maxima)
{
    static Text t;
    static const int types[] = {3, 4, 5, 7, 8};
    const Elem *e = &elems[types[_i % 5]];
    int a = _i / 5;
    const char *mul = sdc_dtype_is_float(e->dtype) ? "mulf" : "mul";
    const char *max = sdc_dtype_is_float(e->dtype) ? "maxf" : "maxs";
    for (int m = 1 + (_i + a) % 4; m < MASKS; m += 4) {
        open_kernel(&t, e);
        piece(&t, addresses[a].text);
        piece(&t, masks[m]);
        pointers(&t, e, "p", "x", "at");
        pointers(&t, e, "q", "y", "i");
        line(&t, "  %%w = load %%q, %%m : tile<%dx%s>\n", LANES, e->name);
        line(&t, "  %%v0 = load %%p, %%m : tile<%dx%s>\n", LANES, e->name);
        for (int i = 0; i < 6; i++)
            line(&t, "  %%v%d = %s %%v%d, %%w : tile<%dx%s>\n", i + 1, mul, i, LANES,
                 e->name);
        line(&t, "  %%most = reduce %%v6 {axis=0} : %s (%%a: %s, %%b: %s) {\n"
             "    %%ab = %s %%a, %%b : %s\n    yield %%ab\n  }\n  store %%out, %%most\n",
             e->name, e->name, e->name, max, e->name);
        check(&t, e, "maximum");
    }
}
END_TEST

typedef struct Atomic {
    int elem;
    const char *rmw; /* NULL: compare and swap */
    bool in_order;   /* lanes that meet must not */
} Atomic;

static const Atomic atomics[] = {
    {3, "add", false},  {3, "smax", false}, {3, "umin", false}, {3, "and", false},
    {3, "or", false},   {3, "xor", false},  {3, "xchg", true},  {3, "smin", false},
    {3, "umax", false}, {4, "add", false},  {4, "smax", false}, {4, "umax", false},
    {4, "xor", false},  {4, "xchg", true},  {7, "fadd", true},  {8, "fadd", true},
    {5, "fadd", true},  {6, "fadd", true},  {7, "xchg", true},  {3, NULL, true},
    {4, NULL, true},    {2, NULL, true},
};

/* Every other lane compares with what is there, the rest with what is likely not. */
static void
swap(Text *t, const Elem *e)
{
    line(t, "  %%bit = rems %%i, %%two : tile<%dxi32>\n", LANES);
    line(t, "  %%odd2 = cmpi %%bit, %%zero {pred=\"ne\"} : tile<%dxi1>\n", LANES);
    line(t, "  %%is = load %%p : tile<%dx%s>\n", LANES, e->name);
    line(t, "  %%c = select %%odd2, %%is, %%w : tile<%dx%s>\n", LANES, e->name);
    line(t, "  %%old = atomic_cas %%p, %%c, %%w : tile<%dx%s>\n", LANES, e->name);
}

/* What is left in memory; behind it the old values, where lanes do not meet. */
START_TEST(atomic)
{
    static Text t;
    const Atomic *r = &atomics[_i];
    const Elem *e = &elems[r->elem];
    for (int a = _i % 2; a < ADDRESSES; a += 2) {
        int m = r->rmw ? (a * 5 + _i) % MASKS : 0;
        if (!addresses[a].unique && r->in_order)
            continue;
        open_kernel(&t, e);
        piece(&t, addresses[a].text);
        if (masks[m])
            piece(&t, masks[m]);
        pointers(&t, e, "p", "out", "at");
        pointers(&t, e, "q", "y", "i");
        line(&t, "  %%w = load %%q : tile<%dx%s>\n", LANES, e->name);
        if (r->rmw)
            line(&t, "  %%old = atomic_rmw %%p, %%w%s {rmw=\"%s\"} : tile<%dx%s>\n",
                 masks[m] ? ", %m" : "", r->rmw, LANES, e->name);
        else
            swap(&t, e);
        line(&t, "  %%back = add %%i, %%span : tile<%dxi32>\n", LANES);
        pointers(&t, e, "o", "out", "back");
        if (addresses[a].unique)
            line(&t, "  store %%o, %%old%s\n", masks[m] ? ", %m" : "");
        check(&t, e, r->rmw ? r->rmw : "cas");
    }
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("accesses");
    TCase *tc = tcase_create("kernels");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, loads, 0, ELEMS * ADDRESSES);
    tcase_add_loop_test(tc, stores, 0, ELEMS * ADDRESSES);
    tcase_add_loop_test(tc, maxima, 0, 5 * ADDRESSES);
    tcase_add_loop_test(tc, atomic, 0, (int)(sizeof atomics / sizeof *atomics));
    suite_add_tcase(suite, tc);
    return suite_finish("accesses", suite);
}
