/* The 8-bit floats of AMD's GPUs: each of their 256 bytes as fp32, fp16 and bf16, every
   fp16 and bf16 and random fp32 as one of them, against the host's own rounding; and what
   arithmetic makes of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/run/support/harness.h"

static const char source[] =
    "import triton\nimport triton.language as tl\n"
    "@triton.jit\n"
    "def convert(x, y, N: tl.constexpr):\n"
    "    i = tl.program_id(0) * N + tl.arange(0, N)\n"
    "    tl.store(y + i, tl.load(x + i).to(y.dtype.element_ty))\n"
    "@triton.jit\n"
    "def toward_zero(x, y, N: tl.constexpr):\n"
    "    i = tl.program_id(0) * N + tl.arange(0, N)\n"
    "    y8 = tl.load(x + i).to(y.dtype.element_ty, fp_downcast_rounding='rtz')\n"
    "    tl.store(y + i, y8)\n"
    "@triton.jit\n"
    "def compute(x, y, N: tl.constexpr):\n"
    "    i = tl.arange(0, N)\n"
    "    v = tl.load(x + i, mask=i < N, other=0.0)\n"
    "    up = tl.where(v.to(tl.float16) > 0, 1.0, 0.0)\n"
    "    tl.store(y + i, tl.abs(v).to(tl.float32) - (v + v) + up)\n";

static const SdcDtype types[] = {SDC_FP8E4B8, SDC_FP8E5B16};

static bool
same(double a, double b)
{
    return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

START_TEST(widened)
{
    static const SdcDtype to[] = {SDC_FP32, SDC_FP16, SDC_BF16};
    Env env = env_open_text("fnuz.tk", source);
    SdcDtype t = types[_i];
    for (int k = 0; k < 3; k++) {
        Buf x = buf_poison(&env, t, 0, DIMS(256));
        Buf y = buf_poison(&env, to[k], 0, DIMS(256));
        for (int i = 0; i < 256; i++)
            ((unsigned char *)x.data)[i] = (unsigned char)i;
        bool ran =
            LAUNCH(&env, "convert", sdc_grid(1, 1, 1), "N=256", buf_arg(&x), buf_arg(&y));
        for (int i = 0; ran && i < 256; i++) {
            unsigned char byte = (unsigned char)i;
            double want = sdc_dtype_load(t, &byte), got = buf_get(&y, i);
            ck_assert_msg(same(got, want), "%s 0x%02x is %g, not %g", sdc_dtype_name(t),
                          i, got, want);
        }
    }
    env_close(&env);
}
END_TEST

static void
narrow(Env *env, SdcDtype from, SdcDtype to, const char *kernel, int64_t n,
       const void *bits)
{
    enum { N = 256 };
    Buf x = buf_poison(env, from, 0, DIMS(n)), y = buf_poison(env, to, 0, DIMS(n));
    memcpy(x.data, bits, (size_t)(n * sdc_dtype_size(from)));
    if (!LAUNCH(env, kernel, sdc_grid(n / N, 1, 1), "N=256", buf_arg(&x), buf_arg(&y)))
        return;
    bool zero = strcmp(kernel, "toward_zero") == 0;
    for (int64_t i = 0; i < n; i++) {
        unsigned char want, got = ((unsigned char *)y.data)[i];
        double v = buf_get(&x, i);
        sdc_dtype_store(to, v, &want);
        double w = sdc_dtype_load(to, &want);
        if (zero && (isnan(w) ? isfinite(v) : fabs(w) > fabs(v)))
            want = isnan(w)             ? (unsigned char)(signbit(v) ? 0xff : 0x7f)
                   : (want & 0x7f) == 1 ? 0
                                        : (unsigned char)(want - 1);
        ck_assert_msg(got == want, "%s: %a as %s is 0x%02x, not 0x%02x", kernel, v,
                      sdc_dtype_name(to), got, want);
    }
}

START_TEST(narrowed)
{
    enum { ALL = 65536 };
    static uint16_t half[ALL];
    static uint32_t word[ALL];
    Env env = env_open_text("fnuz.tk", source);
    for (int i = 0; i < ALL; i++) {
        half[i] = (uint16_t)i;
        word[i] = (uint32_t)env_random(&env);
        if (i % 2) /* most random floats are far outside of the range */
            word[i] = (word[i] & 0x80ffffffu) | (uint32_t)(0x37 + i % 18) << 24;
        if (i % 7 == 0)
            word[i] &= 0xfff80000u; /* ties */
    }
    static const char *const kernel[] = {"convert", "toward_zero"};
    for (int k = 0; k < 2; k++) {
        narrow(&env, SDC_FP16, types[_i], kernel[k], ALL, half);
        narrow(&env, SDC_BF16, types[_i], kernel[k], ALL, half);
        narrow(&env, SDC_FP32, types[_i], kernel[k], ALL, word);
    }
    env_close(&env);
}
END_TEST

START_TEST(computed)
{
    Env env = env_open_text("fnuz.tk", source);
    Buf x = buf_poison(&env, types[_i], 0, DIMS(256));
    Buf y = buf_poison(&env, SDC_FP32, 0, DIMS(256));
    for (int i = 0; i < 256; i++)
        ((unsigned char *)x.data)[i] = (unsigned char)(i & 0x8f); /* sums fit fp16 */
    bool ran =
        LAUNCH(&env, "compute", sdc_grid(1, 1, 1), "N=256", buf_arg(&x), buf_arg(&y));
    for (int i = 0; ran && i < 256; i++) {
        unsigned char byte = (unsigned char)(i & 0x8f);
        double v = sdc_dtype_load(types[_i], &byte);
        double want = fabs(v) - 2 * v + (v > 0), got = buf_get(&y, i);
        ck_assert_msg(got == want || (isnan(got) && isnan(want)), "0x%02x: %g, not %g",
                      byte, got, want);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("fnuz");
    TCase *tc = tcase_create("fnuz");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, widened, 0, 2);
    tcase_add_loop_test(tc, narrowed, 0, 2);
    tcase_add_loop_test(tc, computed, 0, 2);
    suite_add_tcase(suite, tc);
    return suite_finish("fnuz", suite);
}
