/* sdc_nn.h: dropout. */
#include "runtime/kernels.h"

int64_t
sdc_dropout_counters(const SdcDropout *d, int64_t rows, int64_t cols)
{
    return d && d->per_element ? rows * cols : ceil_over(rows * cols, 4);
}

static bool
drop_fits(Call *c, const SdcDropout *d, const SdcTensor *x, const char *what)
{
    if (!call_need(c, d != NULL, "the options are missing") ||
        !call_need(c, d->p >= 0 && d->p < 1, "p is %g, needed is 0 <= p < 1",
                   (double)d->p) ||
        !call_need(c, act_name(d->act) != NULL, "no activation has number %d", d->act))
        return false;
    return call_shape(c, x, what, 2, (const int64_t[]){-1, -1});
}

/* A matrix of the sizes of `like`, stride 1 along its rows. */
static bool
drop_matrix(Call *c, const SdcTensor *t, const SdcTensor *like, const char *what)
{
    return call_shape(c, t, what, 2, like->shape) && call_float(c, t, what) &&
           call_rows(c, t, what);
}

static bool
drop_vector(Call *c, const SdcTensor *t, int64_t n, const char *what)
{
    return call_shape(c, t, what, SHAPE(n)) && call_float(c, t, what) &&
           call_dense(c, t, what);
}

/* Tensors without gaps as one row, which gives the same mask: rows of any length are
   read in whole vectors then, and few columns leave no thread idle. t: NULL stands for
   none. */
static void
fold_rows(const SdcTensor **t[3], SdcTensor row[3])
{
    for (int i = 0; i < 3; i++)
        if (*t[i] && (*t[i])->shape[0] > 1 && (*t[i])->strides[0] != (*t[i])->shape[1])
            return;
    for (int i = 0; i < 3; i++) {
        if (!*t[i])
            continue;
        const SdcTensor *x = *t[i];
        row[i] = sdc_matrix(x->dtype, x->data, 1, x->shape[0] * x->shape[1]);
        *t[i] = &row[i];
    }
}

/* Constants and grid that both directions have in common. */
static SdcGrid
drop_tile(Call *c, const SdcDropout *d, const SdcTensor *x, bool is_long)
{
    bool ragged = !d->per_element && x->shape[1] % 4 && x->shape[0] > 1;
    int64_t all = x->shape[1] + (ragged ? 3 : 0);
    /* a thread of a GPU has two vectors under way */
    int size = sdc_dtype_size(x->dtype);
    int64_t most = c->k->on_gpu ? 4096 / (size < 2 ? 2 : size) : 4096;
    int64_t cols = power_over(all, most), width = cols < 4 ? 4 : cols;
    int64_t height = power_over(x->shape[0], most / width);
    int64_t last = d->offset + sdc_dropout_counters(d, x->shape[0], x->shape[1]);
    call_bind(c, "BLOCK_R", height);
    call_bind(c, "BLOCK_C", width);
    call_bind_text(c, "ACT", act_name(d->act));
    call_bind_bool(c, "FOUR", !d->per_element);
    call_bind_bool(c, "RAGGED", ragged);
    call_bind_bool(c, "LONG", is_long || d->offset < 0 || last > INT32_MAX / 2);
    return sdc_grid(ceil_over(x->shape[0], height), ceil_over(all, width), 1);
}

static void
drop_numbers(Call *c, const SdcDropout *d)
{
    call_float_arg(c, (double)d->p);
    call_int(c, d->seed);
    call_int(c, d->offset);
}

SdcStatus
sdc_dropout_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *bias,
                    const SdcTensor *residual, const SdcTensor *out, const SdcDropout *d,
                    void *stream)
{
    Call c = call_begin(k, "sdc_dropout_forward");
    if (c.status != SDC_OK || !drop_fits(&c, d, x, "x") || !drop_matrix(&c, x, x, "x") ||
        !drop_matrix(&c, out, x, "out") ||
        (residual && !drop_matrix(&c, residual, x, "residual")) ||
        (bias && !drop_vector(&c, bias, x->shape[1], "bias")))
        return c.status;
    SdcTensor row[3];
    if (!bias)
        fold_rows((const SdcTensor **[]){&x, &residual, &out}, row);
    SdcGrid grid = drop_tile(
        &c, d, x, tensor_is_long(x) || tensor_is_long(out) || tensor_is_long(residual));
    call_bind_bool(&c, "HAS_BIAS", bias != NULL);
    call_bind_bool(&c, "HAS_RESIDUAL", residual != NULL);
    call_tensor(&c, x);
    call_tensor(&c, bias);
    call_tensor(&c, residual);
    call_tensor(&c, out);
    call_int(&c, x->shape[0]);
    call_int(&c, x->shape[1]);
    call_int(&c, x->strides[0]);
    call_int(&c, residual ? residual->strides[0] : 0);
    call_int(&c, out->strides[0]);
    drop_numbers(&c, d);
    return call_run(&c, "dropout", "dropout_fused_fwd", grid, stream);
}

static SdcStatus
sum_rows(Call *c, const SdcTensor *dx, const SdcTensor *dbias, void *stream)
{
    enum { BLOCK_R = 32, BLOCK_C = 64 };
    call_next(c);
    call_bind(c, "BLOCK_R", BLOCK_R);
    call_bind(c, "BLOCK_C", BLOCK_C);
    call_bind_bool(c, "LONG", tensor_is_long(dx));
    call_tensor(c, dx);
    call_tensor(c, dbias);
    call_int(c, dx->shape[0]);
    call_int(c, dx->shape[1]);
    call_int(c, dx->strides[0]);
    return call_run(c, "dropout", "bias_grad",
                    sdc_grid(ceil_over(dx->shape[1], BLOCK_C), 1, 1), stream);
}

SdcStatus
sdc_dropout_backward(SdcKernels *k, const SdcTensor *dy, const SdcTensor *x,
                     const SdcTensor *bias, const SdcTensor *dx, const SdcTensor *dbias,
                     const SdcDropout *d, void *stream)
{
    Call c = call_begin(k, "sdc_dropout_backward");
    if (c.status != SDC_OK || !drop_fits(&c, d, dy, "dy") ||
        !drop_matrix(&c, dy, dy, "dy") || !drop_matrix(&c, dx, dy, "dx"))
        return c.status;
    bool act = d->act != SDC_ACT_NONE;
    if ((act && !drop_matrix(&c, x, dy, "x")) ||
        (act && bias && !drop_vector(&c, bias, dy->shape[1], "bias")) ||
        (dbias && !drop_vector(&c, dbias, dy->shape[1], "dbias")))
        return c.status;
    SdcTensor row[3];
    const SdcTensor *whole = dx, *before = act ? x : NULL;
    if (!(act && bias))
        fold_rows((const SdcTensor **[]){&dy, &before, &dx}, row);
    x = before;
    SdcGrid grid =
        drop_tile(&c, d, dy,
                  tensor_is_long(dy) || tensor_is_long(dx) || (act && tensor_is_long(x)));
    call_bind_bool(&c, "HAS_BIAS", act && bias);
    call_tensor(&c, dy);
    call_tensor(&c, x);
    call_tensor(&c, act ? bias : NULL);
    call_tensor(&c, dx);
    call_int(&c, dy->shape[0]);
    call_int(&c, dy->shape[1]);
    call_int(&c, dy->strides[0]);
    call_int(&c, act ? x->strides[0] : 0);
    call_int(&c, dx->strides[0]);
    drop_numbers(&c, d);
    SdcStatus status = call_run(&c, "dropout", "dropout_fused_bwd", grid, stream);
    return status == SDC_OK && dbias ? sum_rows(&c, whole, dbias, stream) : status;
}
