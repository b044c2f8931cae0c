/* What the run tests of sdc_nn.h share: a handle beside the environment, tensors of
   buffers, calls that must do. */
#ifndef TESTS_RUN_SUPPORT_NN_H
#define TESTS_RUN_SUPPORT_NN_H

#include <string.h>

#include "runtime/sdc_nn.h"
#include "tests/run/support/harness.h"

typedef struct Nn {
    Env env;
    SdcKernels *k;
} Nn;

static inline Nn
nn_open(void)
{
    Nn n = {.env = env_open("vector_add")};
    SdcStatus s = sdc_kernels_create(n.env.ctx, &n.k);
    ck_assert_msg(s == SDC_OK, "%s", sdc_error(n.env.ctx));
    return n;
}

static inline void
nn_close(Nn *n)
{
    sdc_kernels_destroy(n->k);
    env_close(&n->env);
}

static inline SdcTensor
tensor(Nn *n, const Buf *b)
{
    SdcTensor t = {
        .dtype = b->dtype, .rank = b->rank, .data = env_place(&n->env, b->data)};
    for (int i = 0; i < b->rank; i++) {
        t.shape[i] = b->shape[i];
        t.strides[i] = b->strides[i];
    }
    return t;
}

static inline void
good(Nn *n, SdcStatus s)
{
    ck_assert_msg(s == SDC_OK, "%s: %s", sdc_status_name(s), sdc_error(n->env.ctx));
}

static inline void
refused(Nn *n, SdcStatus s, const char *why)
{
    ck_assert_int_eq(s, SDC_ERROR_ARGUMENT);
    ck_assert_msg(strstr(sdc_error(n->env.ctx), why) != NULL, "no '%s' in: %s", why,
                  sdc_error(n->env.ctx));
}

#endif
