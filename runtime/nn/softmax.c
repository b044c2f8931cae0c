/* sdc_nn.h: softmax, of rows of any length (plan_rows.c). */
#include "runtime/nn/rows.h"

enum { ACCESS = 16, LANES = 32 };

/* Rows that begin on any element: whole accesses, but for their edges. */
static int64_t
edge_of(const RowsPlan *p, const SdcTensor *x, const SdcTensor *out)
{
    int64_t size = min_i64(sdc_dtype_size(x->dtype), sdc_dtype_size(out->dtype));
    bool alike = x->strides[0] == out->strides[0];
    return alike && p->unit * size < ACCESS ? ACCESS / size : 0;
}

static void
softmax_bind(Call *c, const RowsPlan *p, int64_t edge)
{
    rows_bind(c, p);
    call_bind(c, "EDGE", edge);
}

/* A row in tiles of DEEP lines, of which each thread has one access: it goes through
   columns of its own, and the loop exchanges nothing. One program a row takes twice as
   much at a time. */
static void
softmax_deep(Call *c, const RowsPlan *p, const SdcTensor *x, int64_t edge)
{
    RowsPlan each = *p;
    int64_t size = sdc_dtype_size(x->dtype);
    if (p->parts == 1) {
        each.block *= 2;
        each.warps *= size > 2 ? 2 : 1;
    }
    int64_t deep = max_i64(each.block * size / (ACCESS * LANES * each.warps), 1);
    each.block /= deep;
    softmax_bind(c, &each, edge);
    call_bind(c, "DEEP", deep);
}

static void
softmax_parts(Call *c, const RowsPlan *p, const SdcTensor *x, const SdcTensor *out)
{
    int64_t programs = x->shape[0] * p->parts, edge = edge_of(p, x, out);
    float *stat = rows_stat(c, p, x->shape[0], 2);
    if (!stat)
        return;
    softmax_deep(c, p, x, edge);
    call_tensor(c, x);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, x, NULL);
    call_run(c, "softmax", "softmax_part", call_grid(c, programs), c->stream);
    softmax_deep(c, p, x, edge);
    call_bind(c, "PARTS", power_over(p->parts, ROWS_PARTS_MOST));
    call_tensor(c, x);
    call_tensor(c, out);
    call_ptr(c, SDC_FP32, stat);
    rows_numbers(c, p, x, out);
    call_run(c, "softmax", "softmax_apply", call_grid(c, programs), c->stream);
}

SdcStatus
sdc_softmax_forward(SdcKernels *k, const SdcTensor *x, const SdcTensor *out, void *stream)
{
    Call c = call_begin(k, "sdc_softmax_forward");
    if (c.status != SDC_OK || !rows_matrix(&c, x, NULL, "x") ||
        !rows_matrix(&c, out, x, "out"))
        return c.status;
    c.stream = stream;
    if (!x->shape[0] || !x->shape[1])
        return SDC_OK;
    RowsPlan p = rows_choose(&c, k->on_gpu ? ROWS_SOFTMAX_MOST : ROWS_CPU_MOST, true,
                             (const SdcTensor *[]){x, out}, 2);
    if (p.parts > 1) {
        softmax_parts(&c, &p, x, out);
        return call_end(&c);
    }
    bool wide = p.parts && k->on_gpu, shared = p.together > 1;
    if (wide)
        softmax_deep(&c, &p, x, edge_of(&p, x, out));
    else if (k->on_gpu && !shared)
        softmax_bind(&c, &p, edge_of(&p, x, out));
    else
        rows_bind(&c, &p);
    if (shared)
        call_bind(&c, "BLOCK_R", p.together);
    call_tensor(&c, x);
    call_tensor(&c, out);
    rows_pitch(&c, x, p.unit);
    rows_pitch(&c, out, p.unit);
    if (!wide)
        call_int(&c, x->shape[0]);
    call_int(&c, x->shape[1] / p.unit);
    const char *kernel = wide      ? "softmax_wide"
                         : shared  ? "softmax_rows"
                         : p.parts ? "softmax_online"
                                   : "softmax";
    call_run(&c, "softmax", kernel, call_grid(&c, ceil_over(x->shape[0], p.together)),
             stream);
    return call_end(&c);
}
