/* Descriptors that round to tf32 what is loaded (Triton's round_f32_to_tf32): every class
   of numbers, both paddings, gathered rows, and as operands of matmuls, where what tensor
   cores drop is then zero. */
#include "tests/run/support/harness.h"

#include <math.h>
#include <string.h>

static const char text[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def copied(d, out_ptr):\n"
    "    o = tl.arange(0, 16)\n"
    "    tl.store(out_ptr + o[:, None] * 16 + o, d.load([0, 0]))\n"
    "@triton.jit\n"
    "def gathered(d, out_ptr):\n"
    "    o = tl.arange(0, 16)\n"
    "    tl.store(out_ptr + o[:, None] * 16 + o, d.gather(15 - o, 0))\n"
    "@triton.jit\n"
    "def product(a, b, out_ptr, K, N: tl.constexpr, B: tl.constexpr):\n"
    "    acc = tl.zeros((N, N), tl.float32)\n"
    "    for k in range(0, K, B):\n"
    "        acc = tl.dot(a.load([0, k]), b.load([0, k]).T, acc)\n"
    "    o = tl.arange(0, N)\n"
    "    tl.store(out_ptr + o[:, None] * N + o, acc)\n";

/* To the next multiple of the last bit that tf32 keeps, in double precision. */
static float
rounded(float x)
{
    int e;
    if (!isfinite(x) || x == 0)
        return x;
    frexp(x, &e);
    double unit = ldexp(1, (e < -125 ? -125 : e) - 11);
    return (float)(rint(x / unit) * unit);
}

static void
same(float got, float want, int i)
{
    ck_assert_msg(isnan(want) ? isnan(got) : memcmp(&got, &want, sizeof got) == 0,
                  "element %d is %a, not %a", i, (double)got, (double)want);
}

static float
number(int i)
{
    static const float odd[] = {0.0f,       -0.0f,      INFINITY,       -INFINITY,
                                NAN,        0x1p-149f,  0x1.002p0f,     0x1.006p0f,
                                -0x1.002p3f, 0x1.001ffep0f, 0x1.002002p0f, 0x1.3p-130f,
                                0x1.fffffep127f, 0x1.ffep127f,
                                0x1.fffp-1f, -0x1.ffffp20f};
    if (i < 16)
        return odd[i];
    return (float)ldexp(sin(i * 1.7), i % 40 - 20);
}

START_TEST(loads)
{
    static _Alignas(16) float x[16 * 16], out[16 * 16];
    Env env = env_open_text("rounding.tk", text);
    for (int i = 0; i < 16 * 16; i++)
        x[i] = number(i);
    LEND(&env, x), LEND(&env, out);
    SdcDesc d = {.dtype = SDC_FP32, .rank = 2, .base = x, .shape = {10, 12},
                 .strides = {16, 1}, .block = {16, 16}};
    for (int round = 0; round < 8; round++) {
        bool nan = round & 1, tf32 = round & 2, rows = round & 4;
        SdcArg arg = tf32 ? sdc_desc_tf32(&d) : sdc_desc(&d);
        if (nan)
            arg.dtype |= SDC_PAD_NAN;
        d.block[0] = rows ? 1 : 16;
        if (!LAUNCH(&env, rows ? "gathered" : "copied", sdc_grid(1, 1, 1), "", arg,
                    sdc_ptr(SDC_FP32, out)))
            break;
        for (int i = 0; i < 16 * 16; i++) {
            int row = rows ? 15 - i / 16 : i / 16, column = i % 16;
            float v = x[row * 16 + column];
            bool in = row < 10 && column < 12;
            same(out[i], !in ? (nan ? NAN : 0) : tf32 ? rounded(v) : v, i);
        }
    }
    env_close(&env);
}
END_TEST

/* b picks one element of each row of a: the sums are exact. */
START_TEST(operands)
{
    enum { N = 64, K = 128 };
    static _Alignas(16) float a[N * K], b[N * K], out[N * N];
    static const char *const binds[] = {"N=64 B=32 num_warps=4", "N=64 B=64 num_warps=8"};
    Env env = env_open_text("rounding.tk", text);
    for (int i = 0; i < N * K; i++) {
        int row = i / K, column = i % K;
        a[i] = (float)sin(i * 1.3) * 3;
        b[i] = column == row * 5 % K ? 1 : 0;
    }
    LEND(&env, a), LEND(&env, b), LEND(&env, out);
    for (int round = 0; round < 2; round++) {
        SdcDesc d[2];
        for (int i = 0; i < 2; i++)
            d[i] = (SdcDesc){.dtype = SDC_FP32, .rank = 2, .base = i ? b : a,
                             .shape = {N, K}, .strides = {K, 1},
                             .block = {N, round ? 64 : 32}};
        if (!LAUNCH(&env, "product", sdc_grid(1, 1, 1), binds[round],
                    sdc_desc_tf32(&d[0]), sdc_desc_tf32(&d[1]), sdc_ptr(SDC_FP32, out),
                    sdc_int(K)))
            break;
        for (int i = 0; i < N * N; i++)
            same(out[i], rounded(a[i / N * K + i % N * 5 % K]), i);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("rounding", loads, operands);
}
