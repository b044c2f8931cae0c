/* Indices bent back into a matrix at its end, by a remainder, a choice or a minimum:
   where is not used those elements and where somebody does, sizes that divide the tile
   and not, rows on 16 bytes (TMA, where there is one) and not. */
#include "tests/run/support/harness.h"

static const char source[] =
    "import triton\n"
    "import triton.language as tl\n"
    "@triton.jit\n"
    "def bend(i, n, HOW: tl.constexpr):\n"
    "    if HOW == 'rem':\n"
    "        return i % n\n"
    "    elif HOW == 'where':\n"
    "        return tl.where(i < n, i, 0)\n"
    "    elif HOW == 'turned':\n"
    "        return tl.where(n > i, i, n - 1)\n"
    "    return tl.minimum(i, n - 1)\n"
    "@triton.jit\n"
    "def product(a_ptr, b_ptr, c_ptr, M, N, K, a_stride, b_stride, c_stride,\n"
    "            tiles, HOW: tl.constexpr, STEP: tl.constexpr, B: tl.constexpr):\n"
    "    k = tl.arange(0, 32)\n"
    "    tiles_n = tl.cdiv(N, B)\n"
    "    behind = tl.program_id(0) - STEP\n"
    "    for tile in range(tl.program_id(0), tiles, STEP):\n"
    "        m = tile // tiles_n * B + tl.arange(0, B)\n"
    "        n = tile % tiles_n * B + tl.arange(0, B)\n"
    "        a_at = a_ptr + bend(m, M, HOW)[:, None] * a_stride + k[None, :]\n"
    "        b_at = b_ptr + k[:, None] * b_stride + bend(n, N, HOW)[None, :]\n"
    "        sum = tl.zeros((B, B), tl.float32)\n"
    "        for i in range(0, K, 32):\n"
    "            a = tl.load(a_at, mask=(k < K - i)[None, :], other=0.0)\n"
    "            b = tl.load(b_at, mask=(k < K - i)[:, None], other=0.0)\n"
    "            sum = tl.dot(a, b, sum)\n"
    "            a_at += 32\n"
    "            b_at += 32 * b_stride\n"
    "        behind += STEP\n"
    "        m = behind // tiles_n * B + tl.arange(0, B)\n"
    "        n = behind % tiles_n * B + tl.arange(0, B)\n"
    "        c_at = c_ptr + m[:, None] * c_stride + n[None, :]\n"
    "        inside = (m < M)[:, None] & (n < N)[None, :]\n"
    "        tl.store(c_at, sum.to(tl.float16), mask=inside)\n"
    "@triton.jit\n"
    "def seen(x_ptr, all_ptr, sum_ptr, less_ptr, n, HOW: tl.constexpr):\n"
    "    i = tl.program_id(0) * 64 + tl.arange(0, 64)\n"
    "    x = tl.load(x_ptr + bend(i, n, HOW))\n"
    "    tl.store(all_ptr + i, x)\n"
    "    tl.store(sum_ptr + tl.program_id(0), tl.sum(x))\n"
    "    y = tl.load(x_ptr + bend(i, n, HOW))\n"
    "    tl.store(less_ptr + i, y, mask=i < n + 3)\n"
    "@triton.jit\n"
    "def in_arms(x_ptr, out_ptr, n, how):\n"
    "    i = tl.program_id(0) * 64 + tl.arange(0, 64)\n"
    "    if how > 1:\n"
    "        at = i % n\n"
    "    elif how > 0:\n"
    "        at = tl.where(i < n, i, 0)\n"
    "    else:\n"
    "        at = tl.minimum(i, n - 1)\n"
    "    tl.store(out_ptr + i, tl.load(x_ptr + at), mask=i < n)\n"
    "@triton.jit\n"
    "def of_the_last_step(x_ptr, out_ptr, n, steps):\n"
    "    at = tl.arange(0, 64)\n"
    "    for step in range(steps):\n"
    "        y = tl.load(x_ptr + at)\n"
    "        i = (steps - 1 - step) * 64 + tl.arange(0, 64)\n"
    "        tl.store(out_ptr + i, y, mask=i < n)\n"
    "        at = tl.where(i < n, i, 0)\n";

static const char *const ways[] = {"rem", "where", "turned", "min"};

typedef struct Shape {
    int64_t M, N, K;
} Shape;

static void
product_case(Env *env, const char *how, const Shape *s, int64_t pad, int64_t programs)
{
    enum { B = 64 };
    int64_t odd_k = (8 - s->K % 8) % 8, odd_n = (8 - s->N % 8) % 8;
    Buf a = buf_random(env, SDC_FP16, pad ? pad : odd_k, DIMS(s->M, s->K));
    Buf b = buf_random(env, SDC_FP16, pad ? pad : odd_n, DIMS(s->K, s->N));
    Buf c = buf_poison(env, SDC_FP16, pad ? pad : odd_n, DIMS(s->M, s->N));
    double *want = env_doubles(env, s->M * s->N), *bound = env_doubles(env, s->M * s->N);
    ref_matmul(s->M, s->N, s->K, buf_doubles(env, &a), buf_doubles(env, &b), NULL,
               REF_NONE, dot_unit(env, SDC_FP16), want, bound);
    int64_t tiles = ceil_div(s->M, B) * ceil_div(s->N, B);
    LAUNCH(env, "product", sdc_grid(programs, 1, 1),
           env_text(env, "HOW='%s' STEP=%d B=%d", how, (int)programs, B), buf_arg(&a),
           buf_arg(&b), buf_arg(&c), sdc_int(s->M), sdc_int(s->N), sdc_int(s->K),
           sdc_int(a.strides[0]), sdc_int(b.strides[0]), sdc_int(c.strides[0]),
           sdc_int(tiles));
    buf_check(env, &c,
              env_text(env, "%s %lldx%lldx%lld pad %lld", how, (long long)s->M,
                       (long long)s->N, (long long)s->K, (long long)pad),
              want, bound);
}

START_TEST(products)
{
    static const Shape shapes[] = {
        {64, 64, 64}, {70, 45, 33}, {1, 8, 8}, {130, 100, 72}, {63, 65, 40}};
    Env env = env_open_text("bent.tk", source);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            env.at_end = (w + i) % 2;
            product_case(&env, ways[w], &shapes[i], 0, 1 + (int64_t)(i % 3));
            product_case(&env, ways[w], &shapes[i], 3, 2);
        }
    env_close(&env);
}
END_TEST

static int64_t
bend(const char *how, int64_t i, int64_t n)
{
    if (i < n)
        return i;
    switch (how[0]) {
    case 'r': return i % n;
    case 'w': return 0;
    default: return n - 1;
    }
}

/* What is stored for every index, and what goes into a sum, is the bent one's. */
START_TEST(somebody_looks)
{
    enum { N = 150, PROGRAMS = 3, LANES = 64 * PROGRAMS };
    Env env = env_open_text("bent.tk", source);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        double all[LANES], sum[PROGRAMS] = {0}, none[LANES] = {0};
        Buf x = buf_random(&env, SDC_FP32, 0, DIMS(N));
        Buf every = buf_poison(&env, SDC_FP32, 0, DIMS(LANES));
        Buf sums = buf_poison(&env, SDC_FP32, 0, DIMS(PROGRAMS));
        Buf less = buf_poison(&env, SDC_FP32, 0, DIMS(N + 3));
        double bound[PROGRAMS] = {1e-4, 1e-4, 1e-4};
        for (int64_t i = 0; i < LANES; i++) {
            all[i] = buf_get(&x, bend(ways[w], i, N));
            sum[i / 64] += all[i];
        }
        LAUNCH(&env, "seen", sdc_grid(PROGRAMS, 1, 1),
               env_text(&env, "HOW='%s'", ways[w]), buf_arg(&x), buf_arg(&every),
               buf_arg(&sums), buf_arg(&less), sdc_int(N));
        buf_check(&env, &every, env_text(&env, "%s, all", ways[w]), all, none);
        buf_check(&env, &sums, env_text(&env, "%s, sums", ways[w]), sum, bound);
        buf_check(&env, &less, env_text(&env, "%s, three more", ways[w]), all, none);
    }
    env_close(&env);
}
END_TEST

/* A branch bends the index, and what is behind the branch uses it. */
START_TEST(in_a_branch)
{
    enum { N = 150, PROGRAMS = 3 };
    Env env = env_open_text("bent.tk", source);
    for (int how = 0; how < 3; how++) {
        double none[N] = {0};
        Buf x = buf_random(&env, SDC_FP32, 0, DIMS(N));
        Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(N));
        LAUNCH(&env, "in_arms", sdc_grid(PROGRAMS, 1, 1), "", buf_arg(&x), buf_arg(&out),
               sdc_int(N), sdc_int(how));
        buf_check(&env, &out, env_text(&env, "arm %d", how), buf_doubles(&env, &x), none);
    }
    env_close(&env);
}
END_TEST

/* An index of the step before is bent by a bound that masks other elements now. */
START_TEST(in_the_step_before)
{
    enum { N = 150, STEPS = 4 };
    Env env = env_open_text("bent.tk", source);
    double want[N], none[N] = {0};
    Buf x = buf_random(&env, SDC_FP32, 0, DIMS(N));
    Buf out = buf_poison(&env, SDC_FP32, 0, DIMS(N));
    for (int64_t i = 0; i < N; i++) /* of i + 64, the step before */
        want[i] = buf_get(&x, i + 64 < N ? i + 64 : 0);
    LAUNCH(&env, "of_the_last_step", sdc_grid(1, 1, 1), "", buf_arg(&x), buf_arg(&out),
           sdc_int(N), sdc_int(STEPS));
    buf_check(&env, &out, "the step before", want, none);
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("bent", products, somebody_looks, in_a_branch, in_the_step_before);
}
