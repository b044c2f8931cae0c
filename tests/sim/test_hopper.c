/* Code for Hopper on the simulator: a dot, attention and its gradients in
   configurations that ship, right under several interleavings of their warps; and the
   same PTX with a wait, fence, phase, count or barrier taken away or changed, which must
   be found each time. */
#include "tests/sim/compile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/rt/cuda.h"
#include "tests/sim/number.h"

enum { MATMUL, FORWARD, BACKWARD, SUBJECTS, SEEDS = 3, TRIES = 6, MAX_ARGS = 64 };

/* Arrays of up to ROWS rows, by the names of their parameters less "_ptr". */
enum { M = 384, N = 384, K = 160, DIM = 128, ROWS = 384, COLS = 384, MAX_ARRAYS = 12 };

typedef struct Array {
    char name[16];
    int rows, cols, bytes; /* of an element: 2 are bf16 (fp16 in the dot) */
    double x[ROWS][COLS];  /* what it began with */
    uint64_t at;
} Array;

typedef struct Subject {
    char *ptx;
    SdcrtMeta *meta;
    int grid[3];
    Array *array;
    int narray;
    uint64_t args[MAX_ARGS];
} Subject;

static SdcrtCuda *cuda;
static SdcrtError e;
static Random rng = {.state = 11};
static Subject subjects[SUBJECTS];

#define CUDA(call) ck_assert_msg((call) == SDCRT_OK, "%s", e.text)

static Array *
array(Subject *s, const char *name)
{
    for (int k = 0; k < s->narray; k++)
        if (strcmp(s->array[k].name, name) == 0)
            return &s->array[k];
    ck_abort_msg("no array '%s'", name);
    return NULL;
}

static Array *
add_array(Subject *s, const char *name, int rows, int cols, int bytes)
{
    Array *a = &s->array[s->narray++];
    snprintf(a->name, sizeof a->name, "%s", name);
    a->rows = rows, a->cols = cols, a->bytes = bytes;
    CUDA(sdcrt_cuda_alloc(cuda, (size_t)rows * (size_t)cols * (size_t)bytes, &a->at, &e));
    return a;
}

static double
element(const Array *a, int which, bool half)
{
    const unsigned char *p = (const unsigned char *)(uintptr_t)a->at;
    uint16_t h;
    float f;
    if (a->bytes == 4) {
        memcpy(&f, p + 4 * which, 4);
        return (double)f;
    }
    memcpy(&h, p + 2 * which, 2);
    return (double)(half ? f16_of(h) : bf16_of(h));
}

static void
put(const Array *a, int which, double x, bool half)
{
    unsigned char *p = (unsigned char *)(uintptr_t)a->at;
    uint16_t h = (uint16_t)(half ? f16_bits((float)x) : bf16_bits((float)x));
    float f = (float)x;
    memcpy(p + a->bytes * which, a->bytes == 4 ? (const void *)&f : (const void *)&h,
           (size_t)a->bytes);
}

static void
randomize(Array *a, double scale, bool half)
{
    for (int i = 0; i < a->rows; i++)
        for (int j = 0; j < a->cols; j++) {
            put(a, i * a->cols + j, scale * random_normal(&rng), half);
            a->x[i][j] = element(a, i * a->cols + j, half);
        }
}

/* Parameters by name: arrays, their strides, and numbers. */
static void
bind(Subject *s, float scale)
{
    for (int k = 0; k < s->meta->nparam; k++) {
        const char *name = s->meta->params[k].name;
        const char *stride = strstr(name, "_stride_"), *ptr = strstr(name, "_ptr");
        char of[32];
        snprintf(of, sizeof of, "%.*s",
                 (int)(stride ? stride - name
                       : ptr  ? ptr - name
                              : 0),
                 name);
        s->args[k] = 0;
        if (stride) {
            const Array *a = array(s, of);
            bool row = strchr("mnk", stride[8]) != NULL;
            s->args[k] = (uint64_t)(row ? a->cols : a->rows * a->cols);
        } else if (ptr) {
            s->args[k] = array(s, of)->at;
        } else if (strcmp(name, "scale") == 0) {
            s->args[k] = f32_raw(scale);
        } else if (strcmp(name, "M") == 0 || strcmp(name, "N") == 0) {
            s->args[k] = *name == 'M' ? M : N;
        } else if (strcmp(name, "K") == 0) {
            s->args[k] = K;
        } else if (strcmp(name, "H") == 0) {
            s->args[k] = 1;
        }
    }
}

static void
compile(Subject *s, const char *file, const char *kernel, const char *spec, int stages)
{
    SdcContext *ctx;
    SdcModule *mod;
    SdcOutput *out;
    char path[512], st[32];
    const char *options[] = {"num_warps=8", st};
    int n;
    snprintf(path, sizeof path, "%s/kernels_dsl/%s.tk", SDC_ROOT, file);
    snprintf(st, sizeof st, "num_stages=%d", stages);
    ck_assert_int_eq(sdc_context_create(NULL, &ctx), SDC_OK);
    SdcCompileOptions o = {.kernel = kernel,
                           .signature = spec,
                           .bind = options,
                           .nbind = 2,
                           .target = "sm_90a",
                           .emit = SDC_EMIT_ASM};
    if (sdc_module_load_file(ctx, path, &mod) != SDC_OK ||
        sdc_compile(mod, &o, &out) != SDC_OK)
        ck_abort_msg("%s", sdc_error(ctx));
    s->ptx = strdup(sdc_output_data(out, NULL));
    s->meta = malloc(sizeof *s->meta);
    *s->meta = *sdc_output_meta(out, &n);
    s->array = calloc(MAX_ARRAYS, sizeof *s->array);
    sdc_output_destroy(out);
    sdc_context_destroy(ctx);
}

/* ---------------------------------------------------------------- the kernels */

static void
strides(char *to, const char *const *names, const char *rows, int n)
{
    for (int k = 0; k < n; k++)
        sprintf(
            to + strlen(to),
            ",%s_stride_b=i32:16,%s_stride_h=i32:16,%s_stride_%c=i32:16,%s_stride_d=1",
            names[k], names[k], names[k], rows[k], names[k]);
}

static void
open_matmul(Subject *s)
{
    compile(
        s, "matmul", "matmul",
        "a_ptr=*fp16:16,b_ptr=*fp16:16,c_ptr=*fp16:16,bias_ptr=None,M=i32:16,N=i32:16,"
        "K=i32:16,a_stride_m=i32:16,a_stride_k=1,b_stride_k=i32:16,b_stride_n=1,"
        "c_stride_m=i32:16,c_stride_n=1,BLOCK_M=128,BLOCK_N=128,BLOCK_K=64",
        3);
    randomize(add_array(s, "a", M, K, 2), 0.5, true);
    randomize(add_array(s, "b", K, N, 2), 0.5, true);
    add_array(s, "c", M, N, 2);
    s->grid[0] = M / 128 * (N / 128);
    bind(s, 0);
}

static void
open_attention(Subject *s, bool backward)
{
    static const char *const names[] = {"q", "k", "v", "o"};
    static const char *const more[] = {"q", "k", "v", "do", "dk", "dv"};
    char spec[4096] = "";
    if (backward)
        strcpy(spec, "q_ptr=*bf16:16,k_ptr=*bf16:16,v_ptr=*bf16:16,do_ptr=*bf16:16,"
                     "lse2_ptr=*fp32:16,delta_ptr=*fp32:16,dk_ptr=*bf16:16,"
                     "dv_ptr=*bf16:16,dq_sum_ptr=*fp32:16,scale=fp32");
    else
        strcpy(spec, "q_ptr=*bf16:16,k_ptr=*bf16:16,v_ptr=*bf16:16,o_ptr=*bf16:16,"
                     "lse_ptr=*fp32:16,scale=fp32");
    strides(spec, backward ? more : names, backward ? "mnnmnn" : "mnnm",
            backward ? 6 : 4);
    sprintf(spec + strlen(spec),
            ",H=i32,M=i32:16,N=i32:16,cu_q_ptr=None,cu_k_ptr=None,p=fp32,seed=i32,"
            "HEAD_DIM=%d,BLOCK_M=%d,BLOCK_N=128,CAUSAL=True",
            DIM, backward ? 64 : 128);
    compile(s, backward ? "flash_attention_bwd" : "flash_attention",
            backward ? "flash_attention_bwd" : "flash_attention_fwd", spec,
            backward ? 3 : 2);
    randomize(add_array(s, "q", M, DIM, 2), 1, false);
    randomize(add_array(s, "k", N, DIM, 2), 1, false);
    randomize(add_array(s, "v", N, DIM, 2), 1, false);
    s->grid[0] = backward ? N / 128 : M / 128;
    if (backward) {
        randomize(add_array(s, "do", M, DIM, 2), 1, false);
        add_array(s, "dk", N, DIM, 2);
        add_array(s, "dv", N, DIM, 2);
        add_array(s, "lse2", 1, M, 4);
        add_array(s, "delta", 1, M, 4);
        add_array(s, "dq_sum", M, DIM, 4);
    } else {
        add_array(s, "o", M, DIM, 2);
        add_array(s, "lse", 1, M, 4);
    }
    bind(s, (float)(1 / sqrt(DIM)));
}

/* ---------------------------------------------------------------- references */

static double w[M][N], ds[M][N];

static double
dot(const double *x, const double *y, int n)
{
    double sum = 0;
    for (int d = 0; d < n; d++)
        sum += x[d] * y[d];
    return sum;
}

/* Weights of causal attention; in the backward pass its inputs, and their gradients. */
static void
weights(Subject *s, bool backward)
{
    const Array *q = array(s, "q"), *k = array(s, "k"), *v = array(s, "v");
    for (int i = 0; i < M; i++) {
        double most = -INFINITY, sum = 0, delta = 0, dw[N];
        for (int j = 0; j <= i; j++)
            most = fmax(most, w[i][j] = dot(q->x[i], k->x[j], DIM) / sqrt(DIM));
        for (int j = 0; j <= i; j++)
            sum += exp(w[i][j] - most);
        for (int j = 0; j < N; j++)
            w[i][j] = j <= i ? exp(w[i][j] - most) / sum : 0;
        if (!backward)
            continue;
        for (int j = 0; j <= i; j++)
            delta += w[i][j] * (dw[j] = dot(array(s, "do")->x[i], v->x[j], DIM));
        for (int j = 0; j < N; j++)
            ds[i][j] = j <= i ? w[i][j] * (dw[j] - delta) : 0;
        put(array(s, "lse2"), i, (most + log(sum)) / log(2), false);
        put(array(s, "delta"), i, -delta, false);
    }
}

static bool
near(double got, double want, double by)
{
    return fabs(got - want) <= by;
}

static bool
right_matmul(Subject *s)
{
    const Array *a = array(s, "a"), *b = array(s, "b"), *c = array(s, "c");
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double want = 0;
            for (int k = 0; k < K; k++)
                want += a->x[i][k] * b->x[k][j];
            if (!near(element(c, i * N + j, true), want, 2e-3 + fabs(want) / 1000))
                return false;
        }
    return true;
}

static bool
right_forward(Subject *s)
{
    const Array *v = array(s, "v"), *o = array(s, "o");
    for (int i = 0; i < M; i++)
        for (int d = 0; d < DIM; d++) {
            double want = 0;
            for (int j = 0; j <= i; j++)
                want += w[i][j] * v->x[j][d];
            if (!near(element(o, i * DIM + d, false), want, 0.03))
                return false;
        }
    return true;
}

static bool
right_backward(Subject *s)
{
    const Array *q = array(s, "q"), *o = array(s, "do");
    for (int j = 0; j < N; j++)
        for (int d = 0; d < DIM; d++) {
            double dk = 0, dv = 0;
            for (int i = j; i < M; i++) {
                dk += ds[i][j] * q->x[i][d] / sqrt(DIM);
                dv += w[i][j] * o->x[i][d];
            }
            if (!near(element(array(s, "dk"), j * DIM + d, false), dk, 0.1) ||
                !near(element(array(s, "dv"), j * DIM + d, false), dv, 0.1))
                return false;
        }
    return true;
}

/* ---------------------------------------------------------------- running */

static SdcrtStatus
launch(Subject *s, const char *ptx, int seed)
{
    SdcrtCudaKernel *k;
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    setenv("SIM_SEED", text, 1);
    for (int a = 0; a < s->narray; a++)
        if (s->array[a].x[0][0] == 0 && strncmp(s->array[a].name, "lse2", 4) != 0 &&
            strcmp(s->array[a].name, "delta") != 0)
            memset((void *)(uintptr_t)s->array[a].at, 0,
                   (size_t)s->array[a].rows * (size_t)s->array[a].cols *
                       (size_t)s->array[a].bytes);
    const SdcGrid grid = {s->grid[0], 1, 1};
    SdcrtStatus status = sdcrt_cuda_load(cuda, ptx, s->meta, &k, &e);
    if (status != SDCRT_OK)
        ck_abort_msg("%s", e.text);
    status = sdcrt_cuda_launch(cuda, k, s->args, grid, NULL, &e);
    sdcrt_cuda_unload(cuda, k);
    return status;
}

static void
setup(void)
{
    CUDA(sdcrt_cuda_open(0, &cuda, &e));
    rng.state = 11;
    for (int k = 0; k < SUBJECTS; k++)
        subjects[k] = (Subject){.grid = {1, 1, 1}};
}

static Subject *
subject(int which)
{
    Subject *s = &subjects[which];
    if (which == MATMUL) {
        open_matmul(s);
    } else {
        open_attention(s, which == BACKWARD);
        weights(s, which == BACKWARD);
    }
    return s;
}

START_TEST(shipped_kernels_are_right)
{
    static bool (*const checks[])(Subject *) = {right_matmul, right_forward,
                                                right_backward};
    Subject *s = subject(_i);
    for (int seed = 0; seed < SEEDS; seed++) {
        ck_assert_msg(launch(s, s->ptx, seed) == SDCRT_OK, "%s", e.text);
        ck_assert_msg(checks[_i](s), "%s: wrong results, seed %d", s->meta->name, seed);
    }
}
END_TEST

#include "tests/sim/mutations.h"

START_TEST(mutations_are_noticed)
{
    int n = 0, missed = 0;
    for (int which = 0; which < SUBJECTS; which++) {
        Subject *s = subject(which);
        for (size_t k = 0; k < sizeof mutations / sizeof *mutations; k++) {
            const Mutation *m = &mutations[k];
            SdcrtStatus status = SDCRT_OK;
            if (m->subject != which)
                continue;
            char *ptx = mutate(s->ptx, m);
            ck_assert_msg(ptx, "'%s' is not there %d times", m->line, m->nth);
            int seed = 1;
            for (; seed <= TRIES && status == SDCRT_OK; seed++)
                status = launch(s, ptx, seed);
            const char *why = strstr(e.text, "found: ");
            if (status == SDCRT_OK)
                missed++;
            printf("%-20s %-34s %d %-5s %-6s: %.100s\n", s->meta->name, m->line, m->nth,
                   how_names[m->how], m->text ? m->text : "",
                   status == SDCRT_OK ? "NOT FOUND"
                   : why              ? why + 7
                                      : e.text);
            n++;
            free(ptx);
        }
    }
    printf("%d mutations, %d not found\n", n, missed);
    fflush(stdout);
    ck_assert_int_eq(missed, 0);
    ck_assert_int_ge(n, 60);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("hopper");
    TCase *tc = tcase_create("hopper");
    setenv("SDC_LIBCUDA", SIM_DRIVER, 1);
    setenv("SIM_PROCESSORS", "2", 1); /* a program of the dot does two tiles */
    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, shipped_kernels_are_right, 0, SUBJECTS);
    tcase_add_test(tc, mutations_are_noticed);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed > 0;
}
