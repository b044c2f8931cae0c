/* sdc_nn.h: rotary position embedding. */
#include "runtime/kernels.h"

static bool
angles_fit(Call *c, const SdcTensor *cos, const SdcTensor *sin, int64_t dim)
{
    return call_shape(c, cos, "cos", SHAPE(-1, -1)) && call_float(c, cos, "cos") &&
           call_dense(c, cos, "cos") && call_shape(c, sin, "sin", 2, cos->shape) &&
           call_float(c, sin, "sin") && call_dense(c, sin, "sin") &&
           call_need(c, cos->shape[1] > 0 && 2 * cos->shape[1] <= dim,
                     "'cos' has %lld columns, 'x' is of %lld", (long long)cos->shape[1],
                     (long long)dim);
}

static bool
places_fit(Call *c, const SdcRotary *r, const SdcTensor *x, int64_t positions)
{
    const SdcTensor *p = r->places;
    if (!p)
        return call_need(c, r->first >= 0 && r->first + x->shape[2] <= positions,
                         "positions %lld to %lld, 'cos' has %lld", (long long)r->first,
                         (long long)(r->first + x->shape[2] - 1), (long long)positions);
    return call_shape(c, p, "places", SHAPE(x->shape[0], x->shape[2])) &&
           call_rows(c, p, "places") &&
           call_need(c, p->dtype == SDC_I32, "'places' needs to be i32");
}

/* A tile of some rows of one head. */
static int64_t
bind(Call *c, const SdcRotary *r, const SdcTensor *x, int64_t half)
{
    int64_t dim = x->shape[3], elements = c->k->on_gpu ? 2048 : 4096;
    int64_t block = power_over(half, 1 << 16), rest = dim - 2 * half;
    int64_t rows = elements / block;
    rows = power_over(x->shape[2], rows < 1 ? 1 : rows);
    call_bind(c, "BLOCK_M", rows);
    call_bind(c, "BLOCK", block);
    call_bind(c, "REST", rest ? power_over(rest, 1 << 16) : 0);
    call_bind_bool(c, "PAIRS", r->pairs);
    call_bind(c, "TURN", r->inverse ? -1 : 1);
    call_bind(c, "num_warps", 4);
    return x->shape[0] * x->shape[1] * ceil_over(x->shape[2], rows);
}

SdcStatus
sdc_rotary(SdcKernels *k, const SdcTensor *x, const SdcTensor *cos, const SdcTensor *sin,
           const SdcTensor *out, const SdcRotary *options, void *stream)
{
    Call c = call_begin(k, "sdc_rotary");
    SdcRotary r = {0};
    if (c.status != SDC_OK || !call_options(&c, options, &r, sizeof r) ||
        !call_shape(&c, x, "x", SHAPE(-1, -1, -1, -1)) || !call_float(&c, x, "x") ||
        !call_shape(&c, out, "out", 4, x->shape) || !call_float(&c, out, "out") ||
        !angles_fit(&c, cos, sin, x->shape[3]) || !places_fit(&c, &r, x, cos->shape[0]))
        return c.status;
    c.stream = stream;
    if (!x->shape[0] || !x->shape[1] || !x->shape[2])
        return SDC_OK;
    int64_t programs = bind(&c, &r, x, cos->shape[1]);
    call_tensor(&c, x);
    call_tensor(&c, cos);
    call_tensor(&c, sin);
    call_tensor(&c, r.places);
    call_tensor(&c, out);
    call_strides(&c, x);
    call_strides(&c, out);
    call_int(&c, r.places ? r.places->strides[0] : 0);
    call_int(&c, x->shape[1]);
    call_int(&c, x->shape[2]);
    call_int(&c, x->shape[3]);
    call_int(&c, cos->shape[1]);
    call_int(&c, r.first);
    call_run(&c, "rotary", "rotary", call_grid(&c, programs), stream);
    return call_end(&c);
}
