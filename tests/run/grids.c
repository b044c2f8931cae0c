/* Grids beyond what a device takes along an axis: every program is there, once, and knows
   which one it is. */
#include "tests/run/support/harness.h"

static const char text[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def ids(out_ptr):\n"
    "    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)\n"
    "    at = (z * tl.num_programs(1) + y) * tl.num_programs(0) + x\n"
    "    tl.atomic_add(out_ptr + at, x + 3 * y + 5 * z)\n";

static const int grids[][3] = {{2, 65537, 1}, {2, 1, 65536}, {3, 2, 5}};

START_TEST(beyond)
{
    const int *g = grids[_i];
    Env env = env_open_text("grids", text);
    int64_t n = (int64_t)g[0] * g[1] * g[2];
    Buf out = buf_poison(&env, SDC_I32, 0, DIMS(n));
    double *want = env_doubles(&env, n);
    for (int64_t i = 0; i < n; i++) {
        buf_set(&out, i, 1);
        want[i] = (double)(1 + i % g[0] + 3 * (i / g[0] % g[1]) + 5 * (i / g[0] / g[1]));
    }
    if (LAUNCH(&env, "ids", sdc_grid(g[0], g[1], g[2]), "num_warps=1", buf_arg(&out)))
        buf_check(&env, &out, "ids", want, NULL);
    env_close(&env);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("grids");
    TCase *tc = tcase_create("grids");
    tcase_set_timeout(tc, 600);
    tcase_add_loop_test(tc, beyond, 0, (int)(sizeof grids / sizeof *grids));
    suite_add_tcase(suite, tc);
    return suite_finish("grids", suite);
}
