/* A double becomes a half in one rounding: through fp32 a number just beside the middle
   of two halves would first be moved onto it. */
#include <math.h>

#include "tests/run/support/harness.h"

enum { N = 512 };

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def narrow(x_ptr, out_ptr, B: tl.constexpr):\n"
    "    i = tl.arange(0, B)\n"
    "    tl.store(out_ptr + i, tl.load(x_ptr + i).to(out_ptr.dtype.element_ty))\n"
    "@triton.jit\n"
    "def whole(out_ptr, q, SHIFT: tl.constexpr):\n"
    "    x = tl.to_tensor(q).to(tl.int64) << SHIFT\n"
    "    tl.store(out_ptr, x.to(tl.float16).to(tl.float64))\n"
    "    tl.store(out_ptr + 1, x.to(tl.uint64).to(tl.float16).to(tl.float64))\n";

static void
narrow_to(SdcDtype t, int mantissa)
{
    Env env = env_open_text("narrow.tk", source);
    Buf x = buf_poison(&env, SDC_FP64, 0, DIMS(N)), out = buf_poison(&env, t, 0, DIMS(N));
    double *want = env_doubles(&env, N);
    for (int i = 0; i < N; i++) {
        /* A number of the type, half a step, and a trace of fp64 or none. */
        double whole = (double)((1 << mantissa) + (int)(env_random(&env) % 100));
        double trace = (double)(i % 5 - 2) * 0x1p-40;
        double v =
            ldexp(whole + 0.5 + trace, (int)(env_random(&env) % 20) - 10 - mantissa);
        buf_set(&x, i, i % 2 ? -v : v);
        want[i] = ref_round(ref_type(t), buf_get(&x, i));
    }
    bool ran =
        LAUNCH(&env, "narrow", sdc_grid(1, 1, 1), "B=512", buf_arg(&x), buf_arg(&out));
    const double *got = buf_doubles(&env, &out);
    for (int i = 0; ran && i < N; i++)
        ck_assert_msg(got[i] == want[i], "%a becomes %a, not %a", buf_get(&x, i), got[i],
                      want[i]);
    env_close(&env);
}

START_TEST(to_fp16)
{
    narrow_to(SDC_FP16, 10);
}
END_TEST

START_TEST(to_bf16)
{
    narrow_to(SDC_BF16, 7);
}
END_TEST

/* An integer of few significant bits and any size: infinite beyond the largest half. */
START_TEST(integers)
{
    static const int shift[] = {0, 5, 10, 12, 57};
    Env env = env_open_text("narrow.tk", source);
    for (int s = 0; s < 5; s++)
        for (int q = -96; q <= 96; q += 8) {
            Buf out = buf_poison(&env, SDC_FP64, 0, DIMS(2));
            int64_t x = (int64_t)((uint64_t)(int64_t)q << shift[s]);
            double want[2] = {ref_round(REF_FP16, (double)x),
                              ref_round(REF_FP16, (double)(uint64_t)x)};
            if (!LAUNCH(&env, "whole", sdc_grid(1, 1, 1),
                        env_text(&env, "SHIFT=%d", shift[s]), buf_arg(&out), sdc_int(q)))
                continue;
            const double *got = buf_doubles(&env, &out);
            for (int i = 0; i < 2; i++)
                ck_assert_msg(got[i] == want[i], "%d << %d becomes %g, not %g", q,
                              shift[s], got[i], want[i]);
        }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("narrow", to_fp16, to_bf16, integers);
}
