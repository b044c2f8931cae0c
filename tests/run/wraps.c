/* Integers of 32 bits that pass the end of their range within a tile: the arithmetic
   wraps as written, and what widens, compares or divides it sees the wrapped numbers. */
#include <string.h>

#include "tests/run/support/harness.h"

enum { LANES = 64 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def wraps(out, ptr, start, step, n, MODE: tl.constexpr, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    x = start + i * step\n"
    "    if MODE == 'signed':\n"
    "        y = x.to(tl.int64)\n"
    "    elif MODE == 'unsigned':\n"
    "        y = x.to(tl.uint32).to(tl.int64)\n"
    "    elif MODE == 'less':\n"
    "        y = (x < n).to(tl.int64)\n"
    "    elif MODE == 'remainder':\n"
    "        y = (x % n).to(tl.int64)\n"
    "    else:\n"
    "        y = tl.zeros([B], tl.int64) + 1\n"
    "    if MODE == 'mask':\n"
    "        tl.store(out + i, y, mask=x < n)\n"
    "    elif MODE == 'address':\n"
    "        tl.store(ptr + x, y.to(tl.int8), mask=(x >= 0) & (x < n))\n"
    "    else:\n"
    "        tl.store(out + i, y)\n"
    "@triton.jit\n"
    "def declared(out, a: tl.int8, b: tl.uint16, c: tl.int32, d: tl.int1, e):\n"
    "    tl.store(out, a)\n"
    "    tl.store(out + 1, b)\n"
    "    tl.store(out + 2, c)\n"
    "    tl.store(out + 3, d)\n"
    "    tl.store(out + 4, e)\n"
    "@triton.jit\n"
    "def products(out, x, lo, hi, B: tl.constexpr, STAGES: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    sum = tl.zeros([B, B], tl.float32)\n"
    "    for k in tl.range(lo, hi, B, num_stages=STAGES):\n"
    "        a = tl.load(x + (k - lo) * B + i[:, None] * B + i[None, :])\n"
    "        sum = tl.dot(a, a, sum)\n"
    "    tl.store(out + i[:, None] * B + i[None, :], sum)\n";

typedef struct Case {
    int64_t start, step, n;
} Case;

static const Case cases[] = {
    {INT32_MAX - 10, 1, 5},
    {INT32_MAX - 10, 1, INT32_MAX},
    {-7, 1, 30},
    {INT32_MIN + 3, -1, 100},
    {INT32_MAX - 9, 2, 1000},
    {5, -1, 3},
    {INT32_MIN, 1, -2147483600},
    {12, 1, 50},
    {0, 1, 64},
    {1 << 20, 1 << 26, 1 << 30},
};

/* What the lane holds, from its bits. */
static double
lane_wants(const char *mode, const Case *c, int64_t i)
{
    int32_t x = (int32_t)(uint32_t)(c->start + i * c->step);
    if (!strcmp(mode, "signed"))
        return (double)x;
    if (!strcmp(mode, "unsigned"))
        return (double)(uint32_t)x;
    if (!strcmp(mode, "less"))
        return x < c->n;
    if (!strcmp(mode, "remainder"))
        return (double)(x % (int32_t)c->n);
    return x < c->n ? 1 : -1; /* mask: what was there stays */
}

static void
wraps_case(Env *env, const char *mode, const Case *c)
{
    Buf out = buf_poison(env, SDC_I64, 0, DIMS(LANES)); /* all bits set: -1 */
    if (!LAUNCH(env, "wraps", sdc_grid(1, 1, 1),
                env_text(env, "B=%d MODE=\"%s\"", LANES, mode), buf_arg(&out),
                sdc_none(), sdc_int(c->start), sdc_int(c->step), sdc_int(c->n)))
        return;
    for (int64_t i = 0; i < LANES; i++)
        ck_assert_msg(buf_get(&out, i) == lane_wants(mode, c, i),
                      "%s from %lld by %lld, n %lld: lane %lld is %.0f, not %.0f", mode,
                      (long long)c->start, (long long)c->step, (long long)c->n,
                      (long long)i, buf_get(&out, i), lane_wants(mode, c, i));
}

/* Arguments with more bits than the type that the source gives them. */
START_TEST(declared)
{
    static const int64_t args[][5] = {{300, 65537, 3000000000, 3, 1ll << 40},
                                      {-129, 70000, -3000000000, 2, -5},
                                      {5, 6, 7, 1, 8}};
    Env env = env_open_text("wraps.tk", source);
    for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++) {
        const int64_t *a = args[i];
        int64_t wants[] = {(int8_t)a[0], (uint16_t)a[1], (int32_t)a[2], a[3] & 1, a[4]};
        Buf out = buf_poison(&env, SDC_I64, 0, DIMS(5));
        if (LAUNCH(&env, "declared", sdc_grid(1, 1, 1), "", buf_arg(&out), sdc_int(a[0]),
                   sdc_int(a[1]), sdc_int(a[2]), sdc_int(a[3]), sdc_int(a[4])))
            for (int k = 0; k < 5; k++)
                ck_assert_msg(buf_get(&out, k) == (double)wants[k], "%d: %.0f, not %lld",
                              k, buf_get(&out, k), (long long)wants[k]);
    }
    env_close(&env);
}
END_TEST

START_TEST(numbers)
{
    static const char *const modes[] = {"signed", "unsigned", "less", "remainder",
                                        "mask"};
    Env env = env_open_text("wraps.tk", source);
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
            wraps_case(&env, modes[m], &cases[i]);
    env_close(&env);
}
END_TEST

/* A lane that wrapped is off by its mask, though the strip began inside of it. */
START_TEST(addresses)
{
    Env env = env_open_text("wraps.tk", source);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const Case *c = &cases[i];
        enum { SPAN = 100 }; /* the elements 0 .. SPAN - 1 exist */
        int8_t want[SPAN];
        Buf at = buf_poison(&env, SDC_I8, 0, DIMS(SPAN));
        memset(want, -1, sizeof(want));
        for (int64_t k = 0; k < LANES; k++) {
            int32_t x = (int32_t)(uint32_t)(c->start + k * c->step);
            if (x >= 0 && x < SPAN)
                want[x] = 1;
        }
        if (LAUNCH(&env, "wraps", sdc_grid(1, 1, 1),
                   env_text(&env, "B=%d MODE=\"address\"", LANES), sdc_none(),
                   buf_arg(&at), sdc_int(c->start), sdc_int(c->step), sdc_int(SPAN)))
            ck_assert_mem_eq(at.data, want, SPAN);
    }
    env_close(&env);
}
END_TEST

/* The loads of iterations ahead are of those that exist, though the numbers of the others
   leave the type; elements behind the last are not the array's. */
START_TEST(iterations_ahead)
{
    enum { B = 32 };
    static const struct {
        int64_t lo, hi;
        int count;
    } loops[] = {
        {INT32_MAX - 3 * B, INT32_MAX - B, 2}, {INT32_MAX - 2 * B, INT32_MAX - 2 * B, 0},
        {INT32_MAX - B, INT32_MAX - B + 1, 1}, {INT32_MIN, INT32_MIN + 1, 1},
        {INT32_MIN, INT32_MIN + 5 * B, 5},     {INT32_MIN, INT32_MIN, 0},
        {0, INT32_MIN, 0},                     {-5, 3 * B, 4},
    };
    Env env = env_open_text("wraps.tk", source);
    for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
        for (int stages = 2; stages <= 4; stages++) {
            int n = loops[i].count;
            Buf x = buf_poison(&env, SDC_FP16, 0, DIMS(n ? n : 1, B, B));
            Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(B, B));
            for (int64_t k = 0; k < (n ? n : 1) * B * B; k++)
                buf_set(&x, k, 1);
            if (!LAUNCH(&env, "products", sdc_grid(1, 1, 1),
                        env_text(&env, "B=%d STAGES=%d", B, stages), buf_arg(&out),
                        buf_arg(&x), sdc_int(loops[i].lo), sdc_int(loops[i].hi)))
                continue;
            for (int64_t k = 0; k < B * B; k++)
                ck_assert_msg(buf_get(&out, k) == n * B, "%lld to %lld: %g, not %d",
                              (long long)loops[i].lo, (long long)loops[i].hi,
                              buf_get(&out, k), n * B);
        }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("wraps", declared, numbers, addresses, iterations_ahead);
}
