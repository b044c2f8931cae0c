/* Rows that end where the program finds out: matmuls over groups of rows whose ends are
   loaded, inclusive, the least of several, or a number of the program's; from rows in
   front of a group, in an order that falls; results of which only some rows are stored.
   Rows on 16 bytes (TMA, where there is one; of loads only where 12 KB come in at once)
   and not. Of one byte each, too: TMA's address comes round again after 2^64 bytes. */
#include "tests/run/support/harness.h"

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def sums(a_ptr, b_ptr, c_ptr, ends_ptr, R, a_stride, b_stride, c_stride,\n"
    "         HOW: tl.constexpr, B: tl.constexpr, K: tl.constexpr):\n"
    "    g = tl.program_id(0)\n"
    "    first = tl.load(ends_ptr + g)\n"
    "    last = tl.load(ends_ptr + g + 1)\n"
    "    some = tl.load(ends_ptr + 16 + g)\n"
    "    upto = tl.load(ends_ptr + 32 + g)\n"
    "    if HOW == 'front':\n"
    "        first -= 3\n"
    "    elif HOW == 'number':\n"
    "        first = 0\n"
    "        last = (g + 1) * 48\n"
    "    m = tl.arange(0, B)\n"
    "    acc = tl.zeros((B, B), tl.float32)\n"
    "    for i in range(first, last, K):\n"
    "        if HOW == 'falls':\n"
    "            i = first + (last - 1 - i) // K * K\n"
    "        k = i + tl.arange(0, K)\n"
    "        if HOW == 'upto':\n"
    "            there = k <= upto\n"
    "        elif HOW == 'both':\n"
    "            there = (k < last) & (k < R)\n"
    "        elif HOW == 'least':\n"
    "            there = k < tl.minimum(last, R)\n"
    "        elif HOW == 'number':\n"
    "            there = k < (g + 1) * 48\n"
    "        else:\n"
    "            there = k < last\n"
    "        a = tl.load(a_ptr + k[None, :] * a_stride + m[:, None],\n"
    "                    mask=there[None, :], other=0.0)\n"
    "        b = tl.load(b_ptr + k[:, None] * b_stride + m[None, :],\n"
    "                    mask=there[:, None], other=0.0)\n"
    "        acc = tl.dot(a, b, acc)\n"
    "    c_ptrs = c_ptr + (g * B + m)[:, None] * c_stride + m[None, :]\n"
    "    tl.store(c_ptrs, acc.to(tl.float16), mask=(m < some)[:, None])\n";

enum { GROUPS = 5, ROWS = 230, B = 64 };

/* of groups; some rows of the results; the last row of each */
static const int32_t ends[GROUPS + 1] = {3, 70, 70, 134, 190, 230};
static const int32_t stored[GROUPS] = {64, 5, 0, 33, 70};

static void
want_group(Env *env, const char *how, int g, const Buf *a, const Buf *b, double *want,
           double *bound)
{
    bool number = how[0] == 'n';
    int from = number ? 0 : ends[g] - (how[0] == 'f' && how[1] == 'r' ? 3 : 0);
    int to = number ? 48 * (g + 1) : ends[g + 1];
    for (int m = 0; m < B && m < stored[g]; m++)
        for (int n = 0; n < B; n++) {
            double sum = 0, size = 0;
            for (int64_t k = from; k < to; k++) {
                double x =
                    buf_get(a, k * a->strides[0] + m) * buf_get(b, k * b->strides[0] + n);
                sum += x;
                size += fabs(x);
            }
            want[(g * B + m) * B + n] = sum;
            bound[(g * B + m) * B + n] =
                size * (0x1p-24 * (to - from + 8) + dot_unit(env, SDC_FP16));
        }
}

static void
ragged_case(Env *env, const char *how, SdcDtype type, int64_t pad, int k)
{
    int32_t all[48] = {0};
    for (int g = 0; g <= GROUPS; g++) {
        all[g] = ends[g];
        all[16 + g] = g < GROUPS ? stored[g] : 0;
        all[32 + g] = g < GROUPS ? ends[g + 1] - 1 : 0;
    }
    Buf a = buf_random(env, type, pad, DIMS(ROWS + 10, B));
    Buf b = buf_random(env, type, pad, DIMS(ROWS + 10, B));
    Buf c = buf_random(env, SDC_FP16, pad, DIMS(GROUPS * B, B));
    double *want = buf_doubles(env, &c), *bound = env_doubles(env, GROUPS * B * B);
    for (int g = 0; g < GROUPS; g++)
        want_group(env, how, g, &a, &b, want, bound);
    LEND(env, all);
    LAUNCH(env, "sums", sdc_grid(GROUPS, 1, 1),
           env_text(env, "HOW='%s' B=64 K=%d", how, k), buf_arg(&a), buf_arg(&b),
           buf_arg(&c), sdc_ptr(SDC_I32, all), sdc_int(ROWS), sdc_int(a.strides[0]),
           sdc_int(b.strides[0]), sdc_int(c.strides[0]));
    buf_check(env, &c, env_text(env, "%s, pad %lld", how, (long long)pad), want, bound);
}

START_TEST(groups)
{
    static const char *const ways[] = {"below", "upto",   "both", "least",
                                       "front", "number", "falls"};
    Env env = env_open_text("ragged.tk", source);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        ragged_case(&env, ways[i], SDC_FP16, 0, 64);
        ragged_case(&env, ways[i], SDC_FP16, 8, 32);
        ragged_case(&env, ways[i], SDC_FP16, 3, 32);
    }
    ragged_case(&env, "below", SDC_FP8E5, 16, 128);
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("ragged", groups);
}
