/* Matrices that are stored along another dimension than they are loaded: squares are
   transposed in registers, edges go row by row. Copies by strides and by tl.trans,
   beside an operand that is loaded the straight way, of elements of 8 to 64 bits, in
   place as well (one square matrix becomes itself plus its transpose, within a tile; on a
   CPU alone, since a GPU's threads would need a barrier). */
#include <stdlib.h>

#include "tests/run/support/harness.h"

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def turn(x, y, out, M, N, sm, sn, TRANS: tl.constexpr, B: tl.constexpr,\n"
    "         C: tl.constexpr):\n"
    "    m = tl.program_id(0) * B + tl.arange(0, B)[:, None]\n"
    "    n = tl.program_id(1) * C + tl.arange(0, C)[None, :]\n"
    "    k = (m < M) & (n < N)\n"
    "    v = tl.load(x + m * N + n, mask=k)\n"
    "    if TRANS:\n"
    "        m = tl.program_id(0) * B + tl.arange(0, B)[None, :]\n"
    "        n = tl.program_id(1) * C + tl.arange(0, C)[:, None]\n"
    "        k = (m < M) & (n < N)\n"
    "        w = tl.trans(v) + tl.load(y + n * M + m, mask=k)\n"
    "        tl.store(out + n * M + m, w, mask=k)\n"
    "    else:\n"
    "        w = v + tl.load(y + n * M + m, mask=k)\n"
    "        tl.store(out + n * sn + m * sm, w, mask=k)\n"
    "@triton.jit\n"
    "def both(x, N, B: tl.constexpr):\n"
    "    m = tl.arange(0, B)[:, None]\n"
    "    n = tl.arange(0, B)[None, :]\n"
    "    k = (m < N) & (n < N)\n"
    "    v = tl.load(x + m * N + n, mask=k) + tl.load(x + n * N + m, mask=k)\n"
    "    tl.store(x + m * N + n, v, mask=k)\n";

static const SdcDtype types[] = {SDC_I8, SDC_FP16, SDC_BF16, SDC_FP32, SDC_I64, SDC_FP64};
enum { TYPES = sizeof types / sizeof *types };

static void
turn_case(Env *env, SdcDtype t, int m, int n, int b, int c, bool trans)
{
    Buf x = buf_poison(env, t, 0, DIMS(m, n)), y = buf_poison(env, t, 0, DIMS(n, m));
    Buf out = buf_poison(env, t, 0, DIMS(n, m));
    double *want = env_doubles(env, m * n);
    for (int i = 0; i < m * n; i++) {
        buf_set(&x, i, i % 23);
        buf_set(&y, i, i % 7);
    }
    for (int i = 0; i < n * m; i++)
        want[i] = (i % m * n + i / m) % 23 + i % 7;
    const char *given = env_text(env, "TRANS=%d B=%d C=%d", trans, b, c);
    SdcGrid grid = sdc_grid((m + b - 1) / b, (n + c - 1) / c, 1);
    if (LAUNCH(env, "turn", grid, given, buf_arg(&x), buf_arg(&y), buf_arg(&out),
               sdc_int(m), sdc_int(n), sdc_int(1), sdc_int(m)))
        buf_check(env, &out, given, want, NULL);
}

START_TEST(turns)
{
    Env env = env_open_text("transposed.tk", source);
    for (int trans = 0; trans < 2; trans++) {
        turn_case(&env, types[_i], 64, 32, 32, 32, trans);
        turn_case(&env, types[_i], 50, 70, 32, 64, trans);
        turn_case(&env, types[_i], 33, 129, 64, 16, trans);
        turn_case(&env, types[_i], 9, 5, 8, 4, trans);
        turn_case(&env, types[_i], 40, 3, 32, 2, trans);
    }
    env_close(&env);
}
END_TEST

START_TEST(in_place)
{
    Env env = env_open_text("transposed.tk", source);
    for (int n = 30; n <= 32; n++) {
        Buf x = buf_poison(&env, types[_i], 0, DIMS(n, n));
        double *want = env_doubles(&env, n * n);
        for (int i = 0; i < n * n; i++)
            buf_set(&x, i, i % 23);
        for (int i = 0; i < n * n; i++)
            want[i] = i % 23 + (i % n * n + i / n) % 23;
        if (LAUNCH(&env, "both", sdc_grid(1, 1, 1), "B=32", buf_arg(&x), sdc_int(n)))
            buf_check(&env, &x, "both", want, NULL);
    }
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("transposed");
    TCase *tc = tcase_create("types");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, turns, 0, TYPES);
    if (!getenv("SDC_TEST_TARGET"))
        tcase_add_loop_test(tc, in_place, 0, TYPES);
    suite_add_tcase(suite, tc);
    return suite_finish("transposed", suite);
}
