/* Masked-off lanes never touch memory, also where the compiler can tell that half of a
   strip is off: LLVM once dropped the mask of such a half. */
#include <math.h>

#include "tests/run/support/harness.h"

static const char text[] =
    "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
    "def low(x_ptr, out_ptr, ROWS: tl.constexpr):\n"
    "    blk = tl.make_block_ptr(x_ptr, (ROWS, 18), (1, ROWS), (1, 8), (16, 8), (0, 1))\n"
    "    t = tl.load(blk, boundary_check=(0, 1), padding_option=\"zero\")\n"
    "    tl.store(out_ptr + tl.arange(0, 16), tl.min(t, axis=1))\n";

/* Row minima of the block that starts at (1, 8) of a column-major rows x 18 matrix. */
START_TEST(block_tail)
{
    Env env = env_open_text("low.tk", text);
    for (int rows = 2; rows <= 18; rows++)
        for (int end = 0; end < 2; end++) {
            env.at_end = end;
            Buf x = buf_random(&env, SDC_FP32, 0, DIMS(18, rows));
            Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(16));
            double *want = env_doubles(&env, 16);
            for (int r = 0; r < 16 && r + 1 < rows; r++) {
                want[r] = INFINITY;
                for (int c = 8; c < 16; c++)
                    want[r] = fmin(want[r], buf_get(&x, c * rows + r + 1));
            }
            LAUNCH(&env, "low", sdc_grid(1, 1, 1), env_text(&env, "ROWS=%d", rows),
                   buf_arg(&x), buf_arg(&out));
            buf_check(&env, &out, env_text(&env, "%d rows", rows), want, NULL);
        }
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("masks", block_tail);
}
