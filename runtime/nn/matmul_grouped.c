/* sdc_nn.h: matmuls of different sizes in one launch. How many rows a group has only the
   device knows: a first launch lists the tiles of rows, and the programs of the second
   take one after another until none is left. Sums over groups have as many tiles each;
   programs take these in turn, too, since a group has few steps, and the next tile's
   operands come while one is stored. */
#include "runtime/nn/matmul.h"

enum { MOST_GROUPS = 4096, LIST = 4096, LIST_TILES = 32, LIST_ENTRY = 4 };

static bool
offsets_fit(Call *c, const SdcTensor *offsets)
{
    return call_shape(c, offsets, "offsets", SHAPE(-1)) &&
           call_dense(c, offsets, "offsets") &&
           call_need(c, offsets->dtype == SDC_I32, "'offsets' needs to be i32") &&
           call_need(c, offsets->shape[0] > 1 && offsets->shape[0] <= MOST_GROUPS + 1,
                     "%lld groups, possible are 1 to %d",
                     (long long)offsets->shape[0] - 1, MOST_GROUPS);
}

/* As many programs as run at once, of that many tiles at most. */
static SdcGrid
grid_of(Call *c, const GemmTile *t, int64_t tiles)
{
    int64_t at_once = (int64_t)c->k->programs * t->resident;
    return call_grid(c, c->k->on_gpu && at_once < tiles ? at_once : tiles);
}

/* The plan for groups of the average size. */
static GemmPlan
plan_of(Call *c, const Matmul *p, int64_t groups, GemmAsk *ask)
{
    *ask = (GemmAsk){.m = p->c.shape[1],
                     .n = p->c.shape[2],
                     .k = p->a.shape[2],
                     .batch = groups,
                     .math = matmul_math(p),
                     .bytes = (int32_t)sdc_dtype_size(p->a.dtype),
                     .result = (int32_t)sdc_dtype_size(p->c.dtype),
                     .a_rows = matmul_rows(&p->a),
                     .b_rows = matmul_rows(&p->b),
                     .way = (int16_t)c->k->way,
                     .stay = 3,
                     .whole = 1,
                     .across = matmul_across(&p->a, &p->b)};
    return gemm_plan(&c->k->device, ask);
}

/* Their number and [row_tiles, 4]; NULL after an error. */
static void *
tile_list(Call *c, const SdcTensor *offsets, int64_t row_tiles, int rows)
{
    int64_t groups = power_over(offsets->shape[0] - 1, MOST_GROUPS);
    int64_t tiles = groups * LIST_TILES > LIST ? LIST / groups : LIST_TILES;
    void *list = call_borrow(c, (row_tiles + 1) * LIST_ENTRY * (int64_t)sizeof(int32_t));
    if (!list)
        return NULL;
    call_next(c);
    call_bind(c, "BLOCK_M", rows);
    call_bind(c, "GROUPS", groups);
    call_bind(c, "BLOCK_T", tiles);
    call_bind(c, "num_warps", 4);
    call_tensor(c, offsets);
    call_ptr(c, SDC_I32, list);
    call_int(c, offsets->shape[0] - 1);
    call_int(c, row_tiles);
    call_run(c, "matmul", "group_tiles", call_grid(c, ceil_over(row_tiles, tiles)),
             c->stream);
    return list;
}

static SdcStatus
multiply(Call *c, const Matmul *p, const SdcTensor *offsets)
{
    int64_t rows = p->c.shape[1], N = p->c.shape[2], groups = offsets->shape[0] - 1;
    if (!rows || !N)
        return SDC_OK;
    GemmAsk ask;
    Matmul each = *p;
    each.c.shape[1] = ceil_over(rows, groups);
    GemmPlan plan = plan_of(c, &each, groups, &ask);
    const GemmTile *t = plan.tile;
    int64_t row_tiles = rows / t->m + groups;
    call_note(c, &(Note){.kind = NOTE_GEMM, .of.gemm = {ask, plan}});
    row_tiles = row_tiles < rows ? row_tiles : rows;
    void *list = tile_list(c, offsets, row_tiles, t->m);
    if (!list)
        return call_end(c);
    matmul_bind(c, p, t);
    call_bind_text(c, "ACT", act_name(p->act));
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_tensor(c, p->bias);
    matmul_residual(c, p);
    call_ptr(c, SDC_I32, list);
    call_int(c, rows);
    call_int(c, N);
    call_int(c, p->a.shape[2]);
    matmul_strides(c, &p->a, 1);
    matmul_strides(c, &p->b, 0);
    matmul_strides(c, &p->c, 1);
    call_int(c, p->bias_next);
    matmul_residual_strides(c, p, 1);
    matmul_scales(c, p);
    call_stride(c, &p->a_scale, 1);
    matmul_strides(c, &p->b_scale, 0);
    call_run(c, "matmul", "matmul_grouped",
             grid_of(c, t, row_tiles * ceil_over(N, t->n)), c->stream);
    return call_end(c);
}

SdcStatus
sdc_matmul_grouped(SdcKernels *k, const SdcTensor *a, const SdcTensor *b,
                   const SdcTensor *offsets, const SdcTensor *c,
                   const SdcMatmulOptions *options, void *stream)
{
    Call call = call_begin(k, "sdc_matmul_grouped");
    SdcMatmulOptions o = {0};
    if (call.status != SDC_OK || !call_options(&call, options, &o, sizeof o) ||
        !call_shape(&call, a, "a", SHAPE(-1, -1)) || !offsets_fit(&call, offsets) ||
        !call_shape(&call, b, "b", SHAPE(offsets->shape[0] - 1, a->shape[1], -1)) ||
        !matmul_types(&call, a, b) ||
        !call_shape(&call, c, "c", SHAPE(a->shape[0], b->shape[2])) ||
        !call_float(&call, c, "c"))
        return call.status;
    Matmul p = {.a = matmul_batch(a), .b = matmul_batch(b), .c = matmul_batch(c)};
    call.stream = stream;
    if (o.a_scale && !call_need(&call, o.a_scale->rank == 1,
                                "'a_scale' has %d dimensions, needed is 1, all rows",
                                o.a_scale->rank))
        return call.status;
    if (!matmul_options(&call, &o, offsets->shape[0] - 1, &p))
        return call.status;
    return multiply(&call, &p, offsets);
}

static SdcStatus
sum_groups(Call *c, const Matmul *p, const SdcTensor *offsets)
{
    int64_t groups = p->c.shape[0], M = p->c.shape[1], N = p->c.shape[2];
    if (!M || !N)
        return SDC_OK;
    GemmAsk ask;
    Matmul each = *p;
    each.a.shape[2] = ceil_over(p->a.shape[2], groups);
    GemmPlan plan = plan_of(c, &each, groups, &ask);
    const GemmTile *t = plan.tile;
    call_note(c, &(Note){.kind = NOTE_GEMM, .of.gemm = {ask, plan}});
    matmul_bind(c, p, t);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_tensor(c, offsets);
    call_int(c, groups);
    call_int(c, M);
    call_int(c, N);
    call_stride(c, &p->a, 2);
    call_stride(c, &p->a, 1);
    matmul_strides(c, &p->b, 1);
    matmul_strides(c, &p->c, 0);
    call_run(c, "matmul", "matmul_grouped_sum",
             grid_of(c, t, groups * ceil_over(M, t->m) * ceil_over(N, t->n)), c->stream);
    return call_end(c);
}

SdcStatus
sdc_matmul_grouped_sum(SdcKernels *k, const SdcTensor *a, const SdcTensor *b,
                       const SdcTensor *offsets, const SdcTensor *c, int exact,
                       void *stream)
{
    Call call = call_begin(k, "sdc_matmul_grouped_sum");
    if (call.status != SDC_OK || !call_shape(&call, a, "a", SHAPE(-1, -1)) ||
        !matmul_type(&call, a, "a") ||
        !call_shape(&call, b, "b", SHAPE(a->shape[0], -1)) ||
        !call_same_type(&call, b, a, "b") || !offsets_fit(&call, offsets) ||
        !call_shape(&call, c, "c",
                    SHAPE(offsets->shape[0] - 1, a->shape[1], b->shape[1])) ||
        !call_float(&call, c, "c"))
        return call.status;
    SdcTensor transposed = *a;
    transposed.shape[0] = a->shape[1];
    transposed.shape[1] = a->shape[0];
    transposed.strides[0] = a->strides[1];
    transposed.strides[1] = a->strides[0];
    Matmul p = {.a = matmul_batch(&transposed),
                 .b = matmul_batch(b),
                 .c = matmul_batch(c),
                 .exact = exact};
    call.stream = stream;
    return sum_groups(&call, &p, offsets);
}
