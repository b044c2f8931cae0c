/* What sdc_nn.h's functions over rows of matrices have in common, see rows.h. */
#include "runtime/nn/rows.h"

bool
rows_matrix(Call *c, const SdcTensor *t, const SdcTensor *like, const char *what)
{
    const int64_t any[2] = {-1, -1};
    return call_shape(c, t, what, 2, like ? like->shape : any) &&
           call_float(c, t, what) && call_rows(c, t, what);
}

bool
rows_vector(Call *c, const SdcTensor *t, int64_t n, bool fp32, const char *what)
{
    return call_shape(c, t, what, SHAPE(n)) && call_float(c, t, what) &&
           call_dense(c, t, what) &&
           call_need(c, !fp32 || t->dtype == SDC_FP32, "'%s' needs to be fp32", what);
}

int64_t
rows_unit(const SdcTensor *const *t, int n)
{
    for (int64_t unit = 8; unit > 1; unit /= 2) {
        bool fits = t[0]->shape[1] % unit == 0;
        for (int i = 0; i < n; i++)
            fits &= t[i]->strides[0] % unit == 0;
        if (fits && unit != 2)
            return unit;
    }
    return 1;
}

void
rows_pitch(Call *c, const SdcTensor *t, int64_t unit)
{
    SdcTensor in_units = *t;
    in_units.strides[0] /= unit;
    if (tensor_is_long(t)) /* as wide as offsets of elements need it */
        in_units.shape[1] = INT64_MAX / 2;
    call_stride(c, &in_units, 0);
}

RowsPlan
rows_choose(Call *c, int64_t most, bool shares, const SdcTensor *const *t, int n)
{
    RowsAsk q = {.rows = t[0]->shape[0],
                 .cols = t[0]->shape[1],
                 .most = most,
                 .step = ROWS_STEP,
                 .shares = shares};
    RowsPlan p = rows_plan(&c->k->device, &q);
    p.unit = rows_unit(t, n);
    call_note(c, &(Note){.kind = NOTE_ROWS, .of.rows = {q, p}});
    return p;
}

void
rows_bind(Call *c, const RowsPlan *p)
{
    call_next(c);
    call_bind(c, "BLOCK", p->block);
    call_bind(c, "UNIT", p->unit);
    call_bind(c, "num_warps", p->warps);
}

float *
rows_stat(Call *c, const RowsPlan *p, int64_t rows, int each)
{
    return call_borrow(c, each * rows * p->parts * (int64_t)sizeof(float));
}

void
rows_numbers(Call *c, const RowsPlan *p, const SdcTensor *x, const SdcTensor *y)
{
    rows_pitch(c, x, p->unit);
    if (y)
        rows_pitch(c, y, p->unit);
    call_int(c, x->shape[1] / p->unit);
    call_int(c, p->parts);
    call_int(c, p->columns);
}
