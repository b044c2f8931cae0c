/* sdc_nn.h: the matmul. The plan says which tiles, in how many parts along k and
   what is packed first (runtime/nn/plan_gemm.c); here it is carried out. A
   batch, residuals and scales have kernels of their own, so that what is one matmul
   carries nothing more. */
#include "runtime/nn/matmul.h"

#include <stdlib.h>
#include <string.h>

/* PROMOTED: so many of k are summed by tensor cores alone, of fp8. */
enum { MAP_ALIGN = 16, JOIN = 512, PROMOTED = 128 };

bool
matmul_is_fp8(const SdcTensor *t)
{
    return t->dtype == SDC_FP8E4NV || t->dtype == SDC_FP8E5;
}

bool
matmul_type(Call *c, const SdcTensor *t, const char *what)
{
    return call_need(c,
                     t->dtype == SDC_FP32 || t->dtype == SDC_FP16 || t->dtype == SDC_BF16,
                     "'%s' is %s, possible are fp32, fp16 and bf16", what,
                     sdc_dtype_name(t->dtype) ? sdc_dtype_name(t->dtype) : "none");
}

bool
matmul_types(Call *c, const SdcTensor *a, const SdcTensor *b)
{
    if (!matmul_is_fp8(a))
        return matmul_type(c, a, "a") && call_same_type(c, b, a, "b");
    return call_need(c, matmul_is_fp8(b), "'b' is %s, needed is fp8 as 'a'",
                     sdc_dtype_name(b->dtype));
}

static int64_t
bytes_of(const SdcTensor *t)
{
    return sdc_dtype_size(t->dtype);
}

/* Strides that nothing is reached by are as a dense matrix would have them: a row alone,
   a column alone. */
SdcTensor
matmul_batch(const SdcTensor *t)
{
    int64_t each = MAP_ALIGN / bytes_of(t);
    int lead = t->rank - 2;
    SdcTensor x = {.dtype = t->dtype, .rank = 3, .data = t->data, .shape = {1}};
    each = each < 1 ? 1 : each;
    for (int i = 1; i < 3; i++) {
        x.shape[i] = t->shape[lead + i - 1];
        x.strides[i] = t->strides[lead + i - 1];
    }
    for (int i = 1; i < 3; i++)
        if (x.shape[i] == 1)
            x.strides[i] = x.shape[3 - i] > 1 && x.strides[3 - i] != 1
                               ? 1
                               : ceil_over(x.shape[3 - i], each) * each;
    /* of one matrix alone: no tensor map has a stride of 0 */
    x.strides[0] = x.strides[llabs(x.strides[1]) > llabs(x.strides[2]) ? 1 : 2];
    if (lead && t->shape[0] != 1) {
        x.shape[0] = t->shape[0];
        x.strides[0] = t->strides[0];
    }
    return x;
}

int32_t
matmul_rows(const SdcTensor *t)
{
    int unit = t->strides[2] == 1 ? 2 : 1;
    int64_t pitch = t->strides[3 - unit] * bytes_of(t);
    int64_t next = llabs(t->strides[0]) * bytes_of(t);
    if (t->strides[unit] != 1 || pitch <= 0)
        return 0;
    return (int32_t)matmul_divisor((uint64_t)pitch | (uint64_t)next | (uintptr_t)t->data,
                                   GEMM_LINE);
}

int16_t
matmul_across(const SdcTensor *a, const SdcTensor *b)
{
    return (int16_t)((a->strides[2] == 1 ? 0 : 1) |
                     (b->strides[1] == 1 && b->strides[2] != 1 ? 0 : 2));
}

GemmMath
matmul_math(const Matmul *p)
{
    if (matmul_is_fp8(&p->a))
        return p->promotes ? GEMM_FP8 : GEMM_FP8_FAST;
    return p->exact ? GEMM_EXACT : p->a.dtype == SDC_FP32 ? GEMM_TF32 : GEMM_HALF;
}

/* ---- the plan of a shape that came before */

/* And what an equal call has launched before. */
static GemmPlan
matmul_plan(Call *c, const GemmAsk *q)
{
    SdcKernels *k = c->k;
    GemmPlan plan;
    if (context_lock(k->cx, &k->lock) != SDC_OK)
        return gemm_plan(&k->device, q);
    const GemmEntry *at = plan_find(&k->gemm_plans, q);
    if (at) {
        plan = at->plan;
        memcpy(c->functions, at->functions, sizeof c->functions);
    }
    pthread_mutex_unlock(&k->lock);
    return at ? plan : gemm_plan(&k->device, q);
}

static void
matmul_keep(Call *c, const GemmAsk *q, const GemmPlan *plan)
{
    SdcKernels *k = c->k;
    if (!c->found || c->status != SDC_OK || context_lock(k->cx, &k->lock) != SDC_OK)
        return;
    GemmEntry *at = plan_place(&k->gemm_plans, q);
    at->plan = *plan;
    memcpy(at->functions, c->functions, sizeof c->functions);
    pthread_mutex_unlock(&k->lock);
}

/* ---- launches */

void
matmul_bind(Call *c, const Matmul *p, const GemmTile *t)
{
    int columns = 1;
    while (columns * 2 <= t->n)
        columns *= 2;
    call_next(c);
    call_bind(c, "BLOCK_M", t->m);
    call_bind(c, "BLOCK_N", columns);
    call_bind(c, "REST_N", t->n - columns);
    call_bind(c, "BLOCK_K", t->k);
    call_bind_text(c, "PRECISION", p->exact ? "ieee" : "tf32");
    if (p->promotes)
        call_bind(c, "IMPRECISE", t->k < PROMOTED ? t->k : PROMOTED);
    call_bind(c, "num_warps", t->warps);
    call_bind(c, "num_stages", t->stages);
}

/* UNITS of matmul.tk: what 2, 4 or 8 divide of a number, in two bits. */
static int64_t
unit_at(uint64_t number, int which)
{
    return (int64_t)__builtin_ctzll(number | 8) << 2 * which;
}

/* Of the row stride of a tensor, the stride of its batch, and its size along a row, the
   numbers of dimensions 1 and 2 of which `size` has. */
static int64_t
units_of(const SdcTensor *t, int stride, int batch, const int size[2])
{
    int32_t rows = matmul_rows(t);
    int unit = t->strides[2] == 1 ? 2 : 1;
    if (!rows)
        return 0;
    uint64_t each = (uint64_t)(rows / bytes_of(t));
    return unit_at(each, stride + (2 - unit)) | unit_at(each, batch) |
           unit_at((uint64_t)t->shape[unit], size[unit - 1]);
}

/* Threads copy and store rows that no tensor map takes, in pieces of what these begin
   on. */
static void
bind_units(Call *c, const Matmul *p, bool stores)
{
    enum { M, N, K, A_STRIDE, B_STRIDE = 5, C_STRIDE = 7, A_BATCH = 9, B_BATCH, C_BATCH };
    bool maps = matmul_rows(&p->a) >= GEMM_MAP_ROWS &&
                matmul_rows(&p->b) >= GEMM_MAP_ROWS;
    int64_t units = 0;
    if (!maps)
        units = units_of(&p->a, A_STRIDE, A_BATCH, (const int[]){M, K}) |
                units_of(&p->b, B_STRIDE, B_BATCH, (const int[]){K, N});
    if (stores && (!maps || matmul_rows(&p->c) < GEMM_MAP_ROWS))
        units |= units_of(&p->c, C_STRIDE, C_BATCH, (const int[]){M, N});
    if (c->k->device.gpu && units)
        call_bind(c, "UNITS", units);
}

void
matmul_strides(Call *c, const SdcTensor *t, int first)
{
    for (int i = first; i < t->rank; i++)
        call_stride(c, t, i);
}

void
matmul_residual(Call *c, const Matmul *p)
{
    call_tensor(c, p->adds ? &p->residual : NULL);
}

void
matmul_residual_strides(Call *c, const Matmul *p, int first)
{
    const SdcTensor none = {.rank = 3};
    matmul_strides(c, p->adds ? &p->residual : &none, first);
}

void
matmul_scales(Call *c, const Matmul *p)
{
    call_tensor(c, p->a_scale.data ? &p->a_scale : NULL);
    call_tensor(c, p->b_scale.data ? &p->b_scale : NULL);
}

static void
add_scales(Call *c, const Matmul *p)
{
    matmul_scales(c, p);
    call_strides(c, &p->a_scale);
    call_strides(c, &p->b_scale);
}

/* The kernels of one matmul do not take what a batch, a residual or scales need. */
static bool
is_plain(const Matmul *p)
{
    return p->c.shape[0] == 1 && !p->adds && !p->scales;
}

static int64_t
tiles_of(const Matmul *p, const GemmTile *t)
{
    return ceil_over(p->c.shape[1], t->m) * ceil_over(p->c.shape[2], t->n) *
           p->c.shape[0];
}

/* Bias and activation, as the kernels for one matmul and for more take them. */
static void
bind_epilogue(Call *c, const Matmul *p)
{
    if (is_plain(p))
        call_bind_bool(c, "HAS_BIAS", p->bias != NULL);
    call_bind_text(c, "ACT", act_name(p->act));
}

/* `tiles` of them, the first ones. */
static void
whole(Call *c, const Matmul *p, const GemmPlan *plan, int64_t tiles)
{
    bool plain = is_plain(p);
    matmul_bind(c, p, plan->tile);
    bind_units(c, p, true);
    bind_epilogue(c, p);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_tensor(c, p->bias);
    if (!plain)
        matmul_residual(c, p);
    call_int(c, p->c.shape[1]);
    call_int(c, p->c.shape[2]);
    call_int(c, p->a.shape[2]);
    matmul_strides(c, &p->a, plain);
    matmul_strides(c, &p->b, plain);
    matmul_strides(c, &p->c, plain);
    if (!plain) {
        call_int(c, p->bias_next);
        matmul_residual_strides(c, p, 0);
        add_scales(c, p);
    }
    call_run(c, "matmul", plain ? "matmul" : "matmul_batched", call_grid(c, tiles),
             c->stream);
}

/* Sums of the parts, [batch * parts, M * width]. */
static void
sum_parts(Call *c, const Matmul *p, const GemmPlan *plan, const SdcTensor *parts,
          int64_t width)
{
    bool plain = is_plain(p);
    matmul_bind(c, p, plan->tile);
    bind_units(c, p, false);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, parts);
    call_int(c, p->c.shape[1]);
    call_int(c, p->c.shape[2]);
    call_int(c, p->a.shape[2]);
    matmul_strides(c, &p->a, plain);
    matmul_strides(c, &p->b, plain);
    call_stride(c, parts, 0);
    call_int(c, width);
    if (!plain)
        call_int(c, plan->split);
    call_int(c, gemm_part(plan, p->a.shape[2]));
    call_run(c, "matmul", plain ? "matmul_split" : "matmul_batched_split",
             call_grid(c, plan->split * tiles_of(p, plan->tile)), c->stream);
}

static void
in_parts(Call *c, const Matmul *p, const GemmPlan *plan)
{
    bool plain = is_plain(p);
    int64_t M = p->c.shape[1], N = p->c.shape[2], batch = p->c.shape[0];
    int64_t width = ceil_over(N, 4) * 4, stride = M * width;
    SdcTensor parts = {.dtype = SDC_FP32,
                       .rank = 2,
                       .shape = {batch * plan->split, stride},
                       .strides = {stride, 1}};
    parts.data = call_borrow(c, parts.shape[0] * stride * (int64_t)sizeof(float));
    if (!parts.data)
        return;
    sum_parts(c, p, plan, &parts, width);
    call_next(c);
    bind_epilogue(c, p);
    call_bind(c, "PARTS", power_over(plan->split, 1 << 16));
    call_bind(c, "BLOCK_N", power_over(N, JOIN));
    call_bind(c, "num_warps", 4);
    call_tensor(c, &parts);
    call_tensor(c, &p->c);
    call_tensor(c, p->bias);
    if (!plain) {
        matmul_residual(c, p);
        call_int(c, M);
    }
    call_int(c, N);
    call_int(c, plan->split);
    call_stride(c, &parts, 0);
    call_int(c, width);
    matmul_strides(c, &p->c, plain);
    if (!plain) {
        call_int(c, p->bias_next);
        matmul_residual_strides(c, p, 0);
        add_scales(c, p);
    }
    call_run(c, "matmul", plain ? "matmul_join" : "matmul_batched_join",
             call_grid(c, batch * M * ceil_over(N, power_over(N, JOIN))), c->stream);
}

/* The tiles behind the first, whose sums are blocks of their own. */
static void
rest_in_parts(Call *c, const Matmul *p, const GemmPlan *plan)
{
    const GemmTile *t = plan->tile;
    int64_t rest = tiles_of(p, t) - plan->first, stride = rest * t->m * t->n;
    SdcTensor parts = {.dtype = SDC_FP32,
                       .rank = 2,
                       .shape = {plan->split, stride},
                       .strides = {stride, 1}};
    parts.data = call_borrow(c, parts.shape[0] * stride * (int64_t)sizeof(float));
    if (!parts.data)
        return;
    matmul_bind(c, p, t);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &parts);
    call_int(c, p->c.shape[1]);
    call_int(c, p->c.shape[2]);
    call_int(c, p->a.shape[2]);
    matmul_strides(c, &p->a, 1);
    matmul_strides(c, &p->b, 1);
    call_int(c, plan->first);
    call_int(c, rest);
    call_stride(c, &parts, 0);
    call_int(c, gemm_part(plan, p->a.shape[2]));
    call_run(c, "matmul", "matmul_rest", call_grid(c, plan->split * rest), c->stream);
    call_next(c);
    bind_epilogue(c, p);
    call_bind(c, "PARTS", power_over(plan->split, 1 << 16));
    call_bind(c, "BLOCK_M", t->m);
    call_bind(c, "WIDTH", t->n);
    call_bind(c, "COLUMNS", power_over(t->n, 1 << 16));
    call_bind(c, "num_warps", 4);
    call_tensor(c, &parts);
    call_tensor(c, &p->c);
    call_tensor(c, p->bias);
    call_int(c, p->c.shape[1]);
    call_int(c, p->c.shape[2]);
    call_int(c, plan->first);
    call_int(c, plan->split);
    call_stride(c, &parts, 0);
    matmul_strides(c, &p->c, 1);
    call_run(c, "matmul", "matmul_rest_join", call_grid(c, rest * t->m), c->stream);
}

/* ---- calls */

/* a and b fit, and c, whose sizes stand in p->c. */
static bool
operands_fit(Call *c, const SdcTensor *a, const SdcTensor *b, const SdcTensor *to)
{
    int lead = a && a->rank == 3;
    const int64_t batch = lead ? a->shape[0] : 1;
    if (!(lead ? call_shape(c, a, "a", SHAPE(-1, -1, -1))
               : call_shape(c, a, "a", SHAPE(-1, -1))))
        return false;
    if (!matmul_is_fp8(a) && !matmul_type(c, a, "a"))
        return false;
    int64_t K = a->shape[lead + 1];
    if (!(lead ? call_shape(c, b, "b", SHAPE(batch, K, -1))
               : call_shape(c, b, "b", SHAPE(K, -1))) ||
        !matmul_types(c, a, b))
        return false;
    int64_t M = a->shape[lead], N = b->shape[lead + 1];
    return (lead ? call_shape(c, to, "c", SHAPE(batch, M, N))
                 : call_shape(c, to, "c", SHAPE(M, N))) &&
           call_float(c, to, "c");
}

/* `n` numbers for each of a batch, of which one may stand for all. */
static bool
scale_fits(Call *c, const SdcTensor *s, const char *what, int64_t batch, int64_t n,
           SdcTensor *to)
{
    *to = (SdcTensor){.dtype = SDC_FP32, .rank = 2, .shape = {batch, n}};
    if (!s)
        return true;
    int lead = s->rank == 2;
    if (!(lead ? call_shape(c, s, what, SHAPE(-1, -1))
               : call_shape(c, s, what, SHAPE(-1))) ||
        !call_need(c, s->dtype == SDC_FP32, "'%s' is %s, needed is fp32", what,
                   sdc_dtype_name(s->dtype)) ||
        !call_need(c, s->shape[lead] == n || s->shape[lead] == 1,
                   "'%s' has %lld numbers, needed are %lld or 1", what,
                   (long long)s->shape[lead], (long long)n) ||
        !call_need(c, !lead || s->shape[0] == batch || s->shape[0] == 1,
                   "dimension 0 of '%s' is %lld, needed is %lld or 1", what,
                   (long long)s->shape[0], (long long)batch))
        return false;
    to->data = s->data;
    to->strides[0] = lead && s->shape[0] > 1 ? s->strides[0] : 0;
    to->strides[1] = s->shape[lead] > 1 ? s->strides[lead] : 0;
    return true;
}

bool
matmul_options(Call *c, const SdcMatmulOptions *o, int64_t groups, Matmul *p)
{
    const SdcTensor *bias = o->bias, *add = o->residual;
    int64_t N = p->c.shape[2];
    if (!call_need(c, act_name(o->act) != NULL, "no activation has number %d",
                   (int)o->act))
        return false;
    if (bias) {
        bool rows = bias->rank == 2;
        if (!(rows ? call_shape(c, bias, "bias", SHAPE(groups, N))
                   : call_shape(c, bias, "bias", SHAPE(N))) ||
            !call_float(c, bias, "bias") ||
            !(rows ? call_rows(c, bias, "bias") : call_dense(c, bias, "bias")))
            return false;
        p->bias = bias;
        p->bias_next = rows && groups > 1 ? bias->strides[0] : 0;
    }
    if (add) {
        bool lead = p->c.shape[0] > 1 || add->rank == 3;
        if (!(lead ? call_shape(c, add, "residual", 3, p->c.shape)
                   : call_shape(c, add, "residual", 2, p->c.shape + 1)) ||
            !call_float(c, add, "residual"))
            return false;
        p->adds = true;
        p->residual = matmul_batch(add);
    }
    p->act = o->act;
    p->exact = o->exact && !matmul_is_fp8(&p->a);
    /* other tensor cores and threads sum in fp32 */
    p->promotes = matmul_is_fp8(&p->a) && !o->fast_sums && c->k->device.wgmma;
    p->scales = o->a_scale || o->b_scale;
    return scale_fits(c, o->a_scale, "a_scale", groups, p->c.shape[1], &p->a_scale) &&
           scale_fits(c, o->b_scale, "b_scale", groups, N, &p->b_scale);
}

static int32_t
matmul_epilogue(const Matmul *p)
{
    return (int32_t)p->act << 3 | p->scales << 2 | p->adds << 1 | (p->bias != NULL);
}

/* Do the rows of the batch's matrices follow each other? Then they are one matrix's, if
   32 bits count its elements. */
static bool
is_one(const SdcTensor *t)
{
    int64_t rows = t->shape[0] * t->shape[1], by = t->strides[1];
    return t->strides[0] == t->shape[1] * by && by >= 0 &&
           rows * (by > 1 ? by : 1) + t->shape[2] * t->strides[2] <= INT32_MAX;
}

static void
make_one(SdcTensor *t)
{
    t->shape[1] *= t->shape[0];
    t->shape[0] = 1;
}

/* All matrices of a batch by the same one are one matrix by it: fewer tiles that are not
   full, and the kernel that has no batch. */
static void
fold_batch(Matmul *p)
{
    if (p->c.shape[0] < 2 || p->b.strides[0] != 0 || p->bias_next || !is_one(&p->a) ||
        !is_one(&p->c) || (p->adds && !is_one(&p->residual)) ||
        p->a_scale.strides[0] || p->a_scale.strides[1] || p->b_scale.strides[0])
        return;
    make_one(&p->a);
    make_one(&p->c);
    if (p->adds)
        make_one(&p->residual);
    p->b.shape[0] = 1;
}

GemmAsk
matmul_ask(const Matmul *p)
{
    return (GemmAsk){.m = p->c.shape[1],
                     .n = p->c.shape[2],
                     .k = p->a.shape[2],
                     .batch = p->c.shape[0],
                     .math = matmul_math(p),
                     .bytes = (int32_t)bytes_of(&p->a),
                     .result = (int32_t)bytes_of(&p->c),
                     .a_rows = matmul_rows(&p->a),
                     .b_rows = matmul_rows(&p->b),
                     .c_rows = (int16_t)matmul_rows(&p->c),
                     .epilogue = (int16_t)matmul_epilogue(p),
                     .swaps = !p->bias, /* which is of columns */
                     .rests = is_plain(p),
                     .across = matmul_across(&p->a, &p->b)};
}

/* c^T = b^T a^T. */
static void
swap_operands(Matmul *p)
{
    const SdcTensor a = p->a, a_scale = p->a_scale;
    p->a = tensor_transposed(&p->b);
    p->b = tensor_transposed(&a);
    p->c = tensor_transposed(&p->c);
    if (p->adds)
        p->residual = tensor_transposed(&p->residual);
    p->a_scale = p->b_scale;
    p->b_scale = a_scale;
}

void
matmul_run(Call *c, Matmul *p, const GemmPlan *plan, int transposed)
{
    matmul_pack(c, p, plan, transposed);
    if (plan->swapped)
        swap_operands(p);
    if (c->status != SDC_OK)
        return;
    if (plan->split > 1 && !plan->first)
        in_parts(c, p, plan);
    else
        whole(c, p, plan, plan->first ? plan->first : tiles_of(p, plan->tile));
    if (c->status == SDC_OK && plan->first)
        rest_in_parts(c, p, plan);
}

/* All of it fits. */
static SdcStatus
multiply(Call *c, Matmul *p)
{
    if (!p->c.shape[0] || !p->c.shape[1] || !p->c.shape[2])
        return SDC_OK;
    fold_batch(p);
    GemmAsk ask = matmul_ask(p);
    int transposed = gemm_transposed(&ask);
    int along_a = matmul_packed_along(&p->a, 2, transposed & 1);
    int along_b = matmul_packed_along(&p->b, 1, transposed & 2);
    ask.way = (int16_t)c->k->way;
    ask.stay = (int16_t)((matmul_packs(&p->a, along_a) ? 0 : 1) |
                         (matmul_packs(&p->b, along_b) ? 0 : 2));
    GemmPlan plan = matmul_plan(c, &ask);
    call_note(c, &(Note){.kind = NOTE_GEMM, .of.gemm = {ask, plan}});
    matmul_run(c, p, &plan, transposed);
    matmul_keep(c, &ask, &plan);
    return call_end(c);
}

SdcStatus
sdc_matmul_with(SdcKernels *k, const SdcTensor *a, const SdcTensor *b, const SdcTensor *c,
                const SdcMatmulOptions *options, void *stream)
{
    Call call = call_begin(k, "sdc_matmul_with");
    SdcMatmulOptions o = {0};
    if (call.status != SDC_OK || !call_options(&call, options, &o, sizeof o) ||
        !operands_fit(&call, a, b, c))
        return call.status;
    Matmul p = {.a = matmul_batch(a), .b = matmul_batch(b), .c = matmul_batch(c)};
    call.stream = stream;
    if (!matmul_options(&call, &o, p.c.shape[0], &p))
        return call.status;
    return multiply(&call, &p);
}

SdcStatus
sdc_matmul(SdcKernels *k, const SdcTensor *a, const SdcTensor *b, const SdcTensor *bias,
           const SdcTensor *c, SdcActivation act, int exact, void *stream)
{
    Call call = call_begin(k, "sdc_matmul");
    const SdcMatmulOptions o = {.bias = bias, .act = act, .exact = exact};
    if (call.status != SDC_OK || !call_shape(&call, a, "a", SHAPE(-1, -1)) ||
        !operands_fit(&call, a, b, c))
        return call.status;
    Matmul p = {.a = matmul_batch(a), .b = matmul_batch(b), .c = matmul_batch(c)};
    call.stream = stream;
    if (!matmul_options(&call, &o, 1, &p))
        return call.status;
    return multiply(&call, &p);
}
