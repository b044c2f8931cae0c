/* The rounds of Philox themselves, with words of 32 and of 64 bits, any counter and key:
   against the reference, which is held against the published known answers. */
#include "tests/run/support/harness.h"

enum { N = 64 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def rounds(ptr, out, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    a, b, c, d = tl.philox_impl(tl.load(ptr + i), tl.load(ptr + B + i),\n"
    "                                tl.load(ptr + 2 * B + i), tl.load(ptr + 3 * B + "
    "i),\n"
    "                                tl.load(ptr + 4 * B + i), tl.load(ptr + 5 * B + "
    "i))\n"
    "    tl.store(out + i, a)\n"
    "    tl.store(out + B + i, b)\n"
    "    tl.store(out + 2 * B + i, c)\n"
    "    tl.store(out + 3 * B + i, d)\n"
    "@triton.jit\n"
    "def seeded(ptr, out, seed, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    a, b, c, d = tl.philox(seed, tl.load(ptr + i), tl.load(ptr + B + i),\n"
    "                           tl.load(ptr + 2 * B + i), tl.load(ptr + 3 * B + i))\n"
    "    tl.store(out + i, a)\n"
    "    tl.store(out + B + i, b)\n"
    "    tl.store(out + 2 * B + i, c)\n"
    "    tl.store(out + 3 * B + i, d)\n";

START_TEST(words32)
{
    uint32_t in[6][N], out[4][N], want[4];
    Env env = env_open_text("philox.tk", source);
    ck_assert(ref_philox_selftest());
    for (int i = 0; i < 6 * N; i++)
        in[i / N][i % N] = (uint32_t)env_random(&env);
    bool ran =
        LAUNCH(&env, "rounds", sdc_grid(1, 1, 1), "B=64",
               sdc_ptr(SDC_U32, LEND(&env, in)), sdc_ptr(SDC_U32, LEND(&env, out)));
    for (int i = 0; ran && i < N; i++) {
        ref_philox((uint32_t[]){in[0][i], in[1][i], in[2][i], in[3][i]},
                   (uint32_t[]){in[4][i], in[5][i]}, want);
        for (int w = 0; w < 4; w++)
            ck_assert_uint_eq(out[w][i], want[w]);
    }
    env_close(&env);
}
END_TEST

/* Tiles of one and of two elements, too small for matmuls lane by lane. */
START_TEST(few)
{
    Env env = env_open_text("philox.tk", source);
    for (int n = 1; n <= 2; n++) {
        uint32_t in[12], out[8], want[4];
        for (int i = 0; i < 12; i++)
            in[i] = (uint32_t)env_random(&env);
        bool ran =
            LAUNCH(&env, "rounds", sdc_grid(1, 1, 1), n == 1 ? "B=1" : "B=2",
                   sdc_ptr(SDC_U32, LEND(&env, in)), sdc_ptr(SDC_U32, LEND(&env, out)));
        for (int i = 0; ran && i < n; i++) {
            ref_philox((uint32_t[]){in[i], in[n + i], in[2 * n + i], in[3 * n + i]},
                       (uint32_t[]){in[4 * n + i], in[5 * n + i]}, want);
            for (int w = 0; w < 4; w++)
                ck_assert_uint_eq(out[w * n + i], want[w]);
        }
    }
    env_close(&env);
}
END_TEST

START_TEST(words64)
{
    uint64_t in[6][N], out[4][N], want[4];
    Env env = env_open_text("philox.tk", source);
    for (int i = 0; i < 6 * N; i++)
        in[i / N][i % N] = env_random(&env);
    bool ran =
        LAUNCH(&env, "rounds", sdc_grid(1, 1, 1), "B=64",
               sdc_ptr(SDC_U64, LEND(&env, in)), sdc_ptr(SDC_U64, LEND(&env, out)));
    for (int i = 0; ran && i < N; i++) {
        ref_philox64((uint64_t[]){in[0][i], in[1][i], in[2][i], in[3][i]},
                     (uint64_t[]){in[4][i], in[5][i]}, want);
        for (int w = 0; w < 4; w++)
            ck_assert_uint_eq(out[w][i], want[w]);
    }
    ran = LAUNCH(&env, "seeded", sdc_grid(1, 1, 1), "B=64", sdc_ptr(SDC_U64, in),
                 sdc_ptr(SDC_U64, out), sdc_int(-77));
    for (int i = 0; ran && i < N; i++) {
        ref_philox64((uint64_t[]){in[0][i], in[1][i], in[2][i], in[3][i]},
                     (uint64_t[]){(uint64_t)-77, 0}, want);
        for (int w = 0; w < 4; w++)
            ck_assert_uint_eq(out[w][i], want[w]);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("philox", words32, few, words64);
}
