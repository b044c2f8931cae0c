/* sdc_nn.h: SwiGLU. */
#include "runtime/nn/rows.h"

/* Tiles of a few rows; the grid. */
static SdcGrid
tile(Call *c, const SdcTensor *const *t, int n, int64_t *unit)
{
    int64_t rows = t[0]->shape[0], cols = t[0]->shape[1];
    int64_t elements = c->k->on_gpu ? 2048 : 4096;
    int64_t width = power_over(cols, elements);
    width = width < 16 ? 16 : width;
    int64_t height = power_over(rows, elements / width);
    *unit = rows_unit(t, n);
    call_bind(c, "BLOCK_R", height);
    call_bind(c, "BLOCK_C", width);
    call_bind(c, "UNIT", *unit);
    call_bind(c, "num_warps", 4);
    return call_grid(c, ceil_over(rows, height) * ceil_over(cols, width));
}

static SdcStatus
run(Call *c, const char *kernel, const SdcTensor *const *t, int n, void *stream)
{
    int64_t unit;
    c->stream = stream;
    if (!t[0]->shape[0] || !t[0]->shape[1])
        return SDC_OK;
    SdcGrid grid = tile(c, t, n, &unit);
    for (int i = 0; i < n; i++)
        call_tensor(c, t[i]);
    for (int i = 0; i < n; i++)
        rows_pitch(c, t[i], unit);
    call_int(c, t[0]->shape[0]);
    call_int(c, t[0]->shape[1] / unit);
    call_run(c, "swiglu", kernel, grid, stream);
    return call_end(c);
}

SdcStatus
sdc_swiglu_forward(SdcKernels *k, const SdcTensor *gate, const SdcTensor *up,
                   const SdcTensor *out, void *stream)
{
    Call c = call_begin(k, "sdc_swiglu_forward");
    if (c.status != SDC_OK || !rows_matrix(&c, gate, NULL, "gate") ||
        !rows_matrix(&c, up, gate, "up") || !rows_matrix(&c, out, gate, "out"))
        return c.status;
    return run(&c, "swiglu_fwd", (const SdcTensor *[]){gate, up, out}, 3, stream);
}

SdcStatus
sdc_swiglu_backward(SdcKernels *k, const SdcTensor *dout, const SdcTensor *gate,
                    const SdcTensor *up, const SdcTensor *dgate, const SdcTensor *dup,
                    void *stream)
{
    Call c = call_begin(k, "sdc_swiglu_backward");
    if (c.status != SDC_OK || !rows_matrix(&c, dout, NULL, "dout") ||
        !rows_matrix(&c, gate, dout, "gate") || !rows_matrix(&c, up, dout, "up") ||
        !rows_matrix(&c, dgate, dout, "dgate") || !rows_matrix(&c, dup, dout, "dup"))
        return c.status;
    return run(&c, "swiglu_bwd", (const SdcTensor *[]){dout, gate, up, dgate, dup}, 5,
               stream);
}
