/* Dropout at 64-bit counters, and fused with bias, activation and residual, forward and
   backward, against its reference. The plain kernels are in elementwise.c, what masks owe
   to chance in rng_statistics.c.

   The reference decides which elements are kept, bit for bit: so the mask is the same on
   every target, for every tile and every launch. */
#include <math.h>

#include "tests/run/support/harness.h"

static const SdcDtype floats[] = {SDC_FP32, SDC_FP16, SDC_BF16};
static const char *const act_names[] = {"none", "relu", "silu", "gelu"};

/* ---------------------------------------------------------------- long */

static void
long_case(Env *env, SdcDtype t, int64_t n, int64_t seed, int64_t offset, bool four,
          int block)
{
    Buf x = buf_random(env, t, 0, DIMS(n)), out = buf_poison(env, t, 0, DIMS(n));
    double *want = env_doubles(env, n), *bound = env_doubles(env, n);
    double *dx = env_doubles(env, n), *dx_bound = env_doubles(env, n);
    double *in = buf_doubles(env, &x);
    /* One row: its counters are those of the flat array. */
    ref_drop(&(RefDrop){.rows = 1,
                        .cols = n,
                        .x = in,
                        .dy = in,
                        .p = 0.3f,
                        .seed = seed,
                        .offset = (uint64_t)offset,
                        .four = four,
                        .out = want,
                        .dx = dx,
                        .out_bound = bound,
                        .dx_bound = dx_bound});
    LAUNCH(env, four ? "dropout_long_bwd" : "dropout_long_fwd",
           sdc_grid(ceil_div(n, block), 1, 1),
           env_text(env, "BLOCK=%d FOUR=%s", block, four ? "True" : "False"), buf_arg(&x),
           buf_arg(&out), sdc_int(n), sdc_float((double)0.3f), sdc_int(seed),
           sdc_int(offset));
    buf_check(env, &out,
              env_text(env, "long %s n=%lld offset=%lld four=%d", sdc_dtype_name(t),
                       (long long)n, (long long)offset, four),
              want, bound);
}

/* Counters on both sides of 2^32 and 2^64 (they wrap), of a 32-bit and a 64-bit offset.
 */
START_TEST(counters)
{
    static const int64_t offsets[] = {
        0, 77, (1ll << 31) - 100, (1ll << 32) - 100, (1ll << 45) + 3, -100};
    Env env = env_open("dropout");
    for (int i = 0; i < 6; i++)
        for (int four = 0; four < 2; four++) {
            env.at_end = (i + four) % 2;
            long_case(&env, floats[i % 3], 1001, i % 2 ? -5 : 1ll << 33, offsets[i], four,
                      four ? 64 : 256);
        }
    env_close(&env);
}
END_TEST

/* ---------------------------------------------------------------- fused */

typedef struct Fused {
    int64_t rows, cols, offset;
    RefAct act;
    bool bias, residual, four, wide;
    int block_r, block_c;
} Fused;

static const char *
fused_name(Env *env, const char *what, SdcDtype t, const Fused *f)
{
    return env_text(env, "%s %s %lldx%lld act %s bias %d residual %d four %d tile %dx%d",
                    what, sdc_dtype_name(t), (long long)f->rows, (long long)f->cols,
                    act_names[f->act], f->bias, f->residual, f->four, f->block_r,
                    f->block_c);
}

static SdcGrid
grid_of(const Fused *f)
{
    int64_t cols = f->cols + (f->four && f->cols % 4 ? 3 : 0);
    return sdc_grid(ceil_div(f->rows, f->block_r), ceil_div(cols, f->block_c), 1);
}

static void
fused_backward(Env *env, SdcDtype t, const Fused *f, const RefDrop *r, const char *binds,
               const Buf in[3])
{
    int64_t rows = f->rows, cols = f->cols;
    Buf dx = buf_poison(env, t, 1, DIMS(rows, cols));
    Buf db = buf_poison(env, SDC_FP32, 0, DIMS(cols));
    SdcGrid grid = grid_of(f);
    LAUNCH(env, "dropout_fused_bwd", grid, binds, buf_arg(&in[0]), buf_arg(&in[1]),
           f->bias ? buf_arg(&in[2]) : sdc_none(), buf_arg(&dx), sdc_int(rows),
           sdc_int(cols), sdc_int(in[0].strides[0]), sdc_int(in[1].strides[0]),
           sdc_int(dx.strides[0]), sdc_float((double)r->p), sdc_int(r->seed),
           sdc_int(f->offset));
    buf_check(env, &dx, fused_name(env, "dx", t, f), r->dx, r->dx_bound);
    double *got = buf_doubles(env, &dx), *sum = env_doubles(env, cols);
    double *bound = env_doubles(env, cols);
    for (int64_t i = 0; i < rows * cols; i++) {
        sum[i % cols] += got[i];
        bound[i % cols] += REF_U32 * (double)rows * fabs(got[i]);
    }
    LAUNCH(env, "bias_grad", sdc_grid(ceil_div(cols, 16), 1, 1),
           env_text(env, "BLOCK_R=8 BLOCK_C=16 LONG=%s", f->wide ? "True" : "False"),
           buf_arg(&dx), buf_arg(&db), sdc_int(rows), sdc_int(cols),
           sdc_int(dx.strides[0]));
    buf_check(env, &db, fused_name(env, "db", t, f), sum, bound);
}

static void
fused_case(Env *env, SdcDtype t, const Fused *f)
{
    int64_t rows = f->rows, cols = f->cols, n = rows * cols;
    Buf x = buf_random(env, t, 1, DIMS(rows, cols));
    Buf dy = buf_random(env, t, 0, DIMS(rows, cols));
    Buf res = buf_random(env, t, 2, DIMS(rows, cols));
    Buf bias = buf_random(env, t, 0, DIMS(cols));
    Buf out = buf_poison(env, t, 0, DIMS(rows, cols));
    RefDrop r = {.rows = rows,
                 .cols = cols,
                 .x = buf_doubles(env, &x),
                 .bias = f->bias ? buf_doubles(env, &bias) : NULL,
                 .residual = f->residual ? buf_doubles(env, &res) : NULL,
                 .dy = buf_doubles(env, &dy),
                 .act = f->act,
                 .p = 0.25f,
                 .seed = 31,
                 .offset = (uint64_t)f->offset,
                 .four = f->four,
                 .out = env_doubles(env, n),
                 .dx = env_doubles(env, n),
                 .out_bound = env_doubles(env, n),
                 .dx_bound = env_doubles(env, n)};
    ref_drop(&r);
    const char *binds =
        env_text(env,
                 "BLOCK_R=%d BLOCK_C=%d HAS_BIAS=%s ACT='%s' FOUR=%s RAGGED=%s "
                 "LONG=%s",
                 f->block_r, f->block_c, f->bias ? "True" : "False", act_names[f->act],
                 f->four ? "True" : "False", cols % 4 ? "True" : "False",
                 f->wide ? "True" : "False");
    LAUNCH(env, "dropout_fused_fwd", grid_of(f),
           env_text(env, "%s HAS_RESIDUAL=%s", binds, f->residual ? "True" : "False"),
           buf_arg(&x), f->bias ? buf_arg(&bias) : sdc_none(),
           f->residual ? buf_arg(&res) : sdc_none(), buf_arg(&out), sdc_int(rows),
           sdc_int(cols), sdc_int(x.strides[0]), sdc_int(res.strides[0]),
           sdc_int(out.strides[0]), sdc_float((double)r.p), sdc_int(r.seed),
           sdc_int(f->offset));
    buf_check(env, &out, fused_name(env, "out", t, f), r.out, r.out_bound);
    fused_backward(env, t, f, &r, binds, (const Buf[]){dy, x, bias});
}

START_TEST(fused)
{
    static const Fused cases[] = {
        {1, 1, 0, REF_NONE, true, true, true, false, 4, 16},
        {33, 70, 5, REF_GELU, true, true, true, false, 8, 32},
        {17, 64, (1ll << 40) - 50, REF_SILU, true, false, false, true, 4, 64},
        {40, 51, 0, REF_RELU, false, true, true, true, 16, 4},
        {9, 300, 1ll << 33, REF_NONE, false, false, false, false, 1, 128},
    };
    Env env = env_open("dropout");
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 5; i++) {
            env.at_end = (t + i) % 2;
            fused_case(&env, floats[t], &cases[i]);
        }
    env_close(&env);
}
END_TEST

/* Any tile gives the mask of the reference, hence the same one. */
START_TEST(fused_tiles)
{
    static const int tiles[][2] = {{1, 4}, {2, 128}, {64, 8}, {16, 16}};
    Env env = env_open("dropout");
    for (int i = 0; i < 4; i++)
        for (int four = 0; four < 2; four++)
            fused_case(&env, SDC_FP32,
                       &(Fused){37, 90, 3, REF_NONE, true, true, four, i % 2, tiles[i][0],
                                tiles[i][1]});
    env_close(&env);
}
END_TEST

int
main(void)
{
    return RUN_TESTS("dropout", counters, fused, fused_tiles);
}
