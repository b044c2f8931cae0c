/* Every function of sdc_nn.h with NULL, and with tensors that do not fit, for each of its
   arguments: a status and a message that names the tensor, never a signal. */
#include "runtime/sdc_nn.h"
#include "tests/unit/all_called.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 16, MOST = 12 };

static SdcContext *cx;
static SdcKernels *kernels;
static float memory[MOST][2 * N * N];
static _Alignas(256) char workspace[1 << 20];

static void
setup(void)
{
    ck_assert_int_eq(sdc_context_create(&(SdcContextOptions){.threads = 1}, &cx), SDC_OK);
    ck_assert_int_eq(sdc_kernels_create(cx, &kernels), SDC_OK);
}

static void
teardown(void)
{
    sdc_kernels_destroy(kernels);
    sdc_context_destroy(cx);
}

/* A call with tensors by number; `t[i]` may be NULL. */
typedef SdcStatus Caller(SdcKernels *k, const SdcTensor *const *t, const void *options,
                         void *room);

static SdcStatus
dropout_forward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)room;
    return sdc_dropout_forward(k, t[0], t[1], t[2], t[3], o, NULL);
}

static SdcStatus
dropout_backward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)room;
    return sdc_dropout_backward(k, t[0], t[1], t[2], t[3], t[4], o, NULL);
}

static SdcStatus
sparse_forward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)room;
    return sdc_sparse_linear_forward(k, t[0], t[1], t[2], o, NULL);
}

static SdcStatus
sparse_backward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)room;
    return sdc_sparse_linear_backward(k, t[0], t[1], t[2], t[3], t[4], o, NULL);
}

static SdcStatus
matmul(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_matmul(k, t[0], t[1], t[2], t[3], SDC_ACT_NONE, 1, NULL);
}

static SdcStatus
softmax(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_softmax_forward(k, t[0], t[1], NULL);
}

static SdcStatus
norm_forward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_layer_norm_forward(k, t[0], t[1], t[2], t[3], t[4], t[5], 1e-5, NULL);
}

static SdcStatus
norm_backward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o;
    return sdc_layer_norm_backward(k, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7],
                                   room, NULL);
}

static SdcStatus
attention_forward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)room;
    return sdc_flash_attention_forward(k, t[0], t[1], t[2], t[3], t[4], o, NULL);
}

static SdcStatus
attention_backward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    return sdc_flash_attention_backward(k, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7],
                                        t[8], o, room, NULL);
}

static SdcStatus
products(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_matmul_with(k, t[0], t[1], t[2], NULL, NULL);
}

static SdcStatus
grouped(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_matmul_grouped(k, t[0], t[1], t[2], t[3], NULL, NULL);
}

static SdcStatus
grouped_sum(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_matmul_grouped_sum(k, t[0], t[1], t[2], t[3], 1, NULL);
}

static SdcStatus
rms_forward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_rms_norm_forward(k, t[0], t[1], t[2], t[3], 1e-5, NULL);
}

static SdcStatus
rms_backward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o;
    return sdc_rms_norm_backward(k, t[0], t[1], t[2], t[3], t[4], t[5], t[6], room, NULL);
}

static SdcStatus
loss_forward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_cross_entropy_forward(k, t[0], t[1], t[2], t[3], -1, NULL);
}

static SdcStatus
loss_backward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_cross_entropy_backward(k, t[0], t[1], t[2], t[3], t[4], 1, -1, NULL);
}

static SdcStatus
gate_forward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_swiglu_forward(k, t[0], t[1], t[2], NULL);
}

static SdcStatus
gate_backward(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_swiglu_backward(k, t[0], t[1], t[2], t[3], t[4], NULL);
}

static SdcStatus
rotary(SdcKernels *k, const SdcTensor *const *t, const void *o, void *room)
{
    (void)o, (void)room;
    return sdc_rotary(k, t[0], t[1], t[2], t[3], NULL, NULL);
}

static const SdcDropout drop = {.p = 0.5f, .act = SDC_ACT_RELU};
static const SdcBlockDropout blocks = {.p = 0.5f};
static const SdcAttention attend = {.causal = 1};

/* Letters: m matrix, v vector, q [1, 1, N, N], l [1, 1, N], g [1, N, N], h [N, N / 2], o
   two and t N numbers of i32; a capital one is optional. */
static const struct {
    const char *tensors;
    Caller *call;
    const void *options;
    int needs_room;
} calls[] = {
    {"mVMm", dropout_forward, &drop, 0},
    {"mmVmV", dropout_backward, &drop, 0},
    {"mmm", sparse_forward, &blocks, 0},
    {"mmmMM", sparse_backward, &blocks, 0},
    {"mmVm", matmul, NULL, 0},
    {"mm", softmax, NULL, 0},
    {"mvvmvv", norm_forward, NULL, 0},
    {"mmvvvmvv", norm_backward, NULL, 1},
    {"qqqql", attention_forward, &attend, 0},
    {"qqqqlqqqq", attention_backward, &attend, 1},
    {"mmm", products, NULL, 0},
    {"mgom", grouped, NULL, 0},
    {"mmog", grouped_sum, NULL, 0},
    {"mvmv", rms_forward, NULL, 0},
    {"mmvvMmv", rms_backward, NULL, 1},
    {"mtvv", loss_forward, NULL, 0},
    {"mtvVm", loss_backward, NULL, 0},
    {"mmm", gate_forward, NULL, 0},
    {"mmmmm", gate_backward, NULL, 0},
    {"qhhq", rotary, NULL, 0},
};

static SdcTensor
make(char letter, float *data)
{
    static const int64_t four[4] = {1, 1, N, N};
    if (strchr("ght", letter) || letter == 'o')
        return letter == 'g'   ? sdc_tensor(SDC_FP32, data, 3, four + 1)
               : letter == 'h' ? sdc_tensor(SDC_FP32, data, 2, (int64_t[]){N, N / 2})
               : letter == 't' ? sdc_tensor(SDC_I32, data, 1, four + 3)
                               : sdc_tensor(SDC_I32, data, 1, (int64_t[]){2});
    int rank = letter == 'q' ? 4 : letter == 'l' ? 3 : strchr("mM", letter) ? 2 : 1;
    return sdc_tensor(SDC_FP32, data, rank, four + (rank < 3 ? 4 - rank : 0));
}

START_TEST(every_argument)
{
    const char *kinds = calls[_i].tensors;
    int n = (int)strlen(kinds);
    SdcTensor t[MOST];
    const SdcTensor *at[MOST];
    for (int i = 0; i < n; i++) {
        t[i] = make(kinds[i], memory[i]);
        at[i] = &t[i];
    }
    SdcStatus fine = calls[_i].call(kernels, at, calls[_i].options, workspace);
    ck_assert_msg(fine == SDC_OK, "%s", sdc_error(cx));
    ck_assert_int_eq(calls[_i].call(NULL, at, calls[_i].options, workspace),
                     SDC_ERROR_ARGUMENT);
    if (calls[_i].options) {
        ck_assert_int_eq(calls[_i].call(kernels, at, NULL, workspace),
                         SDC_ERROR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(sdc_error(cx), "options are missing"));
    }
    if (calls[_i].needs_room) {
        ck_assert_int_eq(calls[_i].call(kernels, at, calls[_i].options, NULL),
                         SDC_ERROR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(sdc_error(cx), "workspace is missing"));
    }
    for (int i = 0; i < n; i++) {
        const SdcTensor wrong[] = {
            {.dtype = SDC_FP32, .rank = 99},
            {.dtype = SDC_FP32, .rank = -1},
            {.dtype = (SdcDtype)271, .rank = t[i].rank},
            {.dtype = t[i].dtype == SDC_I32 ? SDC_FP32 : SDC_I32, .rank = t[i].rank},
            {.dtype = SDC_FP32, .rank = t[i].rank, .shape = {-5, -5, -5, -5}},
            {.dtype = SDC_FP32, .rank = t[i].rank},
        };
        bool optional = kinds[i] < 'a';
        at[i] = NULL;
        SdcStatus got = calls[_i].call(kernels, at, calls[_i].options, workspace);
        ck_assert_msg(got == (optional ? SDC_OK : SDC_ERROR_ARGUMENT), "%d: %s", i,
                      sdc_error(cx));
        ck_assert(optional || strstr(sdc_error(cx), "is missing"));
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            SdcTensor bad = t[i];
            bad.dtype = wrong[w].dtype;
            bad.rank = wrong[w].rank;
            if (wrong[w].shape[0] < 0)
                memcpy(bad.shape, wrong[w].shape, sizeof bad.shape);
            if (w == 5)
                bad.data = NULL;
            at[i] = &bad;
            got = calls[_i].call(kernels, at, calls[_i].options, workspace);
            ck_assert_msg(got == SDC_ERROR_ARGUMENT && strchr(sdc_error(cx), '\''),
                          "tensor %d, fault %d: %d %s", i, (int)w, got, sdc_error(cx));
        }
        at[i] = &t[i];
    }
}
END_TEST

START_TEST(the_rest)
{
    SdcTensor q = make('q', memory[0]), odd = {.rank = 77};
    SdcKernels *none = kernels;
    ck_assert_int_eq(sdc_kernels_create(NULL, &none), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(sdc_kernels_create(cx, NULL), SDC_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(sdc_error(cx), "no place"));
    sdc_kernels_destroy(NULL);
    ck_assert_int_eq(sdc_dropout_counters(NULL, 2, 4), 2);
    ck_assert_uint_gt(sdc_sparse_linear_workspace(NULL, 1, 1), 0); /* of any device */
    ck_assert_uint_eq(sdc_layer_norm_workspace(NULL, 1), 0);
    ck_assert_uint_eq(sdc_flash_attention_workspace(NULL, &q, &attend), 0);
    ck_assert_uint_eq(sdc_sparse_linear_workspace(kernels, -1, INT64_MAX), 0);
    ck_assert_uint_eq(sdc_layer_norm_workspace(kernels, -1), 0);
    ck_assert_uint_eq(sdc_rms_norm_workspace(NULL, 1), 0);
    ck_assert_uint_eq(sdc_rms_norm_workspace(kernels, -1), 0);
    ck_assert_uint_eq(sdc_flash_attention_workspace(kernels, NULL, &attend), 0);
    ck_assert_uint_eq(sdc_flash_attention_workspace(kernels, &q, NULL), 0);
    ck_assert_uint_eq(sdc_flash_attention_workspace(kernels, &odd, &attend), 0);
    ck_assert_int_eq(sdc_tensor(SDC_FP32, NULL, 2, NULL).rank, 0);
    char text[8] = "x";
    ck_assert_uint_eq(sdc_nn_explain(NULL, text, sizeof text), 0);
    ck_assert_str_eq(text, "");
    sdc_nn_explain(kernels, NULL, 100);
    ck_assert_int_eq(sdc_nn_take(NULL, 0), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_nn_take(kernels, -1), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_nn_take(kernels, SDC_NN_WAYS), SDC_ERROR_ARGUMENT);
    ck_assert_int_eq(sdc_nn_take(kernels, 0), SDC_OK);
}
END_TEST

START_TEST(nothing_is_left_out)
{
    const char *self = "tests/unit/test_api_misuse_nn.c";
    ck_assert_int_gt(all_called("runtime/sdc_nn.h", "\nSDC_API ", "(", self), 12);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("api_misuse_nn");
    TCase *c = tcase_create("api_misuse_nn");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 100);
    tcase_add_loop_test(c, every_argument, 0, (int)(sizeof calls / sizeof *calls));
    tcase_add_test(c, the_rest);
    tcase_add_test(c, nothing_is_left_out);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
