/* sdc_nn.h: softmax cross entropy over rows of any length (plan_rows.c). */
#include "runtime/nn/rows.h"

enum { STEP = 2048, FEW = 256 };

static bool
targets_fit(Call *c, const SdcTensor *target, int64_t rows)
{
    return call_shape(c, target, "target", SHAPE(rows)) &&
           call_dense(c, target, "target") &&
           call_need(c, target->dtype == SDC_I32 || target->dtype == SDC_I64,
                     "'target' needs to be i32 or i64");
}

/* Rows are gone through in tiles, few long ones by several programs each; but on the CPU
   a tile holds a row. */
static RowsPlan
plan(Call *c, const SdcTensor *x, bool *whole)
{
    *whole = !c->k->on_gpu && x->shape[1] <= ROWS_CPU_MOST;
    if (*whole) {
        RowsPlan one = rows_choose(c, ROWS_CPU_MOST, false, &x, 1);
        one.parts = 1;
        one.columns = x->shape[1];
        return one;
    }
    RowsPlan p = rows_choose(c, ROWS_STEP, false, &x, 1);
    if (!p.parts) {
        p.parts = 1;
        p.columns = x->shape[1];
    }
    p.block = power_over(x->shape[1], STEP);
    p.block = p.block < FEW ? FEW : p.block;
    p.warps = p.block >= STEP ? 8 : 4;
    return p;
}

SdcStatus
sdc_cross_entropy_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *target,
                          const SdcTensor *loss, const SdcTensor *lse, int64_t ignore,
                          void *stream)
{
    Call c = call_begin(k, "sdc_cross_entropy_forward");
    if (c.status != SDC_OK || !rows_matrix(&c, x, NULL, "x") ||
        !targets_fit(&c, target, x->shape[0]) ||
        !rows_vector(&c, loss, x->shape[0], true, "loss") ||
        !rows_vector(&c, lse, x->shape[0], true, "lse") ||
        !call_need(&c, x->shape[1] > 0, "'x' has no columns"))
        return c.status;
    c.stream = stream;
    if (!x->shape[0])
        return SDC_OK;
    bool whole;
    RowsPlan p = plan(&c, x, &whole);
    float *stat = p.parts > 1 ? rows_stat(&c, &p, x->shape[0], 3) : NULL;
    if (c.status != SDC_OK)
        return call_end(&c);
    rows_bind(&c, &p);
    call_bind_bool(&c, "PARTED", p.parts > 1);
    call_bind_bool(&c, "WHOLE", whole);
    call_tensor(&c, x);
    call_tensor(&c, target);
    call_tensor(&c, loss);
    call_tensor(&c, lse);
    if (stat)
        call_ptr(&c, SDC_FP32, stat);
    else
        call_tensor(&c, NULL);
    rows_numbers(&c, &p, x, NULL);
    call_int(&c, ignore);
    call_run(&c, "cross_entropy", "cross_entropy_total",
             call_grid(&c, x->shape[0] * p.parts), stream);
    if (p.parts > 1) {
        call_next(&c);
        call_bind(&c, "PARTS", power_over(p.parts, ROWS_PARTS_MOST));
        call_ptr(&c, SDC_FP32, stat);
        call_tensor(&c, target);
        call_tensor(&c, loss);
        call_tensor(&c, lse);
        call_int(&c, p.parts);
        call_int(&c, ignore);
        call_run(&c, "cross_entropy", "cross_entropy_join", call_grid(&c, x->shape[0]),
                 stream);
    }
    return call_end(&c);
}

SdcStatus
sdc_cross_entropy_backward(SdcKernels *k, const SdcTensor *x, const SdcTensor *target,
                           const SdcTensor *lse, const SdcTensor *dloss,
                           const SdcTensor *dx, double scale, int64_t ignore,
                           void *stream)
{
    Call c = call_begin(k, "sdc_cross_entropy_backward");
    if (c.status != SDC_OK || !rows_matrix(&c, x, NULL, "x") ||
        !targets_fit(&c, target, x->shape[0]) ||
        !rows_vector(&c, lse, x->shape[0], true, "lse") ||
        (dloss && !rows_vector(&c, dloss, x->shape[0], false, "dloss")) ||
        !rows_matrix(&c, dx, x, "dx"))
        return c.status;
    c.stream = stream;
    if (!x->shape[0] || !x->shape[1])
        return SDC_OK;
    RowsPlan p = {.block = power_over(x->shape[1], ROWS_STEP),
                  .unit = rows_unit((const SdcTensor *[]){x, dx}, 2)};
    p.block = p.block < FEW ? FEW : p.block;
    p.warps = p.block >= ROWS_STEP ? 8 : 4;
    rows_bind(&c, &p);
    call_tensor(&c, x);
    call_tensor(&c, target);
    call_tensor(&c, lse);
    call_tensor(&c, dloss);
    call_tensor(&c, dx);
    rows_pitch(&c, x, p.unit);
    rows_pitch(&c, dx, p.unit);
    call_int(&c, x->shape[1] / p.unit);
    call_float_arg(&c, scale);
    call_int(&c, ignore);
    call_run(&c, "cross_entropy", "cross_entropy_bwd",
             call_grid(&c, x->shape[0] * ceil_over(x->shape[1], p.block)), stream);
    return call_end(&c);
}
