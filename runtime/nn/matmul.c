/* sdc_nn.h: the matmul. The plan says which tiles, in how many parts along k and
   what is packed first (runtime/nn/plan_gemm.c); here it is carried out. */
#include "runtime/kernels.h"

#include <stdlib.h>
#include <string.h>

enum { MAP_ALIGN = 16, PACK_ROWS = 32, PACK_COLS = 64, JOIN = 512 };

static bool
product_type(Call *c, const SdcTensor *t, const char *what)
{
    return call_need(c,
                     t->dtype == SDC_FP32 || t->dtype == SDC_FP16 || t->dtype == SDC_BF16,
                     "'%s' is %s, possible are fp32, fp16 and bf16", what,
                     sdc_dtype_name(t->dtype) ? sdc_dtype_name(t->dtype) : "none");
}

static bool
matmul_fits(Call *c, const SdcTensor *a, const SdcTensor *b, const SdcTensor *bias,
            const SdcTensor *to, SdcActivation act)
{
    if (!call_need(c, act_name(act) != NULL, "no activation has number %d", (int)act) ||
        !call_shape(c, a, "a", SHAPE(-1, -1)) || !product_type(c, a, "a") ||
        !call_shape(c, b, "b", SHAPE(a->shape[1], -1)) || !call_same_type(c, b, a, "b") ||
        !call_shape(c, to, "c", SHAPE(a->shape[0], b->shape[1])) ||
        !call_float(c, to, "c"))
        return false;
    if (bias && (!call_shape(c, bias, "bias", SHAPE(b->shape[1])) ||
                 !call_float(c, bias, "bias") || !call_dense(c, bias, "bias")))
        return false;
    return c->status == SDC_OK;
}

/* One matmul, as the kernels see it. */
typedef struct Product {
    SdcTensor a, b, c;
    const SdcTensor *bias;
    SdcActivation act;
    bool exact;
} Product;

static int64_t
bytes_of(const SdcTensor *t)
{
    return sdc_dtype_size(t->dtype);
}

/* Strides that nothing is reached by, as a dense matrix would have them: a row alone, a
   column alone. */
static SdcTensor
plain(const SdcTensor *t)
{
    SdcTensor x = *t;
    int64_t each = MAP_ALIGN / bytes_of(t);
    for (int i = 0; i < 2; i++)
        if (x.shape[i] == 1)
            x.strides[i] = x.shape[1 - i] > 1 && x.strides[1 - i] != 1
                               ? 1
                               : ceil_over(x.shape[1 - i], each) * each;
    return x;
}

/* The power of two, up to `most`, that all of these numbers are multiples of. */
static int64_t
divisor(uint64_t numbers, int64_t most)
{
    uint64_t low = numbers & -numbers;
    return low && low < (uint64_t)most ? (int64_t)low : most;
}

/* As GemmAsk has it. */
static int32_t
rows_of(const SdcTensor *t)
{
    int unit = t->strides[1] == 1 ? 1 : 0;
    int64_t pitch = t->strides[1 - unit] * bytes_of(t);
    if (t->strides[unit] != 1 || pitch <= 0)
        return 0;
    return (int32_t)divisor((uint64_t)pitch | (uintptr_t)t->data, GEMM_LINE);
}

/* ---- the plan of a shape that came before */

static uint64_t
hash_of(const GemmAsk *q)
{
    const unsigned char *p = (const unsigned char *)q;
    uint64_t h = 0xcbf29ce484222325;
    for (size_t i = 0; i < sizeof *q; i++)
        h = (h ^ p[i]) * 0x100000001b3;
    return h ^ h >> 29;
}

static GemmEntry *
entry_of(SdcKernels *k, const GemmAsk *q)
{
    return &k->gemm[hash_of(q) % GEMM_PLANS];
}

/* The plan, and what an equal call has launched before. */
static GemmPlan
plan_of(Call *c, const GemmAsk *q)
{
    SdcKernels *k = c->k;
    GemmEntry *at = entry_of(k, q);
    GemmPlan plan;
    bool known = false;
    if (context_lock(k->cx, &k->lock) != SDC_OK)
        return gemm_plan(&k->device, q);
    if (at->full && memcmp(&at->ask, q, sizeof *q) == 0) {
        plan = at->plan;
        memcpy(c->functions, at->functions, sizeof c->functions);
        known = true;
    }
    pthread_mutex_unlock(&k->lock);
    return known ? plan : gemm_plan(&k->device, q);
}

static void
keep(Call *c, const GemmAsk *q, const GemmPlan *plan)
{
    SdcKernels *k = c->k;
    if (!c->found || c->status != SDC_OK || context_lock(k->cx, &k->lock) != SDC_OK)
        return;
    GemmEntry *at = entry_of(k, q);
    *at = (GemmEntry){.ask = *q, .plan = *plan, .full = true};
    memcpy(at->functions, c->functions, sizeof c->functions);
    pthread_mutex_unlock(&k->lock);
}

/* ---- launches */

/* A copy of t in temporary memory, rows on lines of the cache; neighbours in memory stay
   so. What is copied are numbers as wide as rows allow. */
static SdcTensor
packed(Call *c, const SdcTensor *t)
{
    static const SdcDtype wide[] = {[1] = SDC_I8, [2] = SDC_I16, [4] = SDC_I32,
                                    [8] = SDC_I64};
    bool turned = llabs(t->strides[0]) < llabs(t->strides[1]);
    int row = turned ? 1 : 0, col = 1 - row;
    int64_t size = bytes_of(t), rows = t->shape[row], cols = t->shape[col] * size;
    int64_t pitch = ceil_over(cols, GEMM_LINE) * GEMM_LINE, each = size;
    if (t->strides[col] == 1)
        each = divisor((uint64_t)(t->strides[row] * size) | (uint64_t)cols |
                           (uintptr_t)t->data,
                       8);
    SdcTensor x = *t, from = *t, to;
    x.strides[row] = pitch / size;
    x.strides[col] = 1;
    x.data = call_borrow(c, rows * pitch);
    if (!x.data)
        return x;
    from.dtype = wide[each];
    from.shape[col] = cols / each;
    from.strides[row] = t->strides[row] * size / each;
    to = from;
    to.data = x.data;
    to.strides[row] = pitch / each;
    to.strides[col] = 1;
    call_next(c);
    call_bind(c, "BLOCK_R", PACK_ROWS);
    call_bind(c, "BLOCK_C", PACK_COLS);
    call_bind(c, "num_warps", 4);
    call_tensor(c, &from);
    call_tensor(c, &to);
    call_int(c, rows);
    call_int(c, from.shape[col]);
    call_stride(c, &from, row);
    call_stride(c, &from, col);
    call_stride(c, &to, row);
    int64_t tiles = ceil_over(rows, PACK_ROWS) * ceil_over(from.shape[col], PACK_COLS);
    call_run(c, "pack", "pack", call_grid(c, tiles), c->stream);
    return x;
}

static void
bind_tile(Call *c, const Product *p, const GemmTile *t)
{
    call_next(c);
    call_bind(c, "BLOCK_M", t->m);
    call_bind(c, "BLOCK_N", t->n);
    call_bind(c, "BLOCK_K", t->k);
    call_bind_text(c, "PRECISION", p->exact ? "ieee" : "tf32");
    call_bind(c, "num_warps", t->warps);
    call_bind(c, "num_stages", t->stages);
}

static void
bind_epilogue(Call *c, const Product *p)
{
    call_bind_bool(c, "HAS_BIAS", p->bias != NULL);
    call_bind_text(c, "ACT", act_name(p->act));
}

static int64_t
tiles_of(const Product *p, const GemmTile *t)
{
    return ceil_over(p->c.shape[0], t->m) * ceil_over(p->c.shape[1], t->n);
}

static void
whole(Call *c, const Product *p, const GemmPlan *plan)
{
    bind_tile(c, p, plan->tile);
    bind_epilogue(c, p);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &p->c);
    call_tensor(c, p->bias);
    call_int(c, p->c.shape[0]);
    call_int(c, p->c.shape[1]);
    call_int(c, p->a.shape[1]);
    call_strides(c, &p->a);
    call_strides(c, &p->b);
    call_strides(c, &p->c);
    call_run(c, "matmul", "matmul", call_grid(c, tiles_of(p, plan->tile)), c->stream);
}

static void
in_parts(Call *c, const Product *p, const GemmPlan *plan)
{
    int64_t M = p->c.shape[0], N = p->c.shape[1], K = p->a.shape[1];
    int64_t width = ceil_over(N, 4) * 4, stride = M * width;
    SdcTensor parts = {.dtype = SDC_FP32,
                       .rank = 2,
                       .shape = {plan->split, stride},
                       .strides = {stride, 1}};
    parts.data = call_borrow(c, plan->split * stride * (int64_t)sizeof(float));
    if (!parts.data)
        return;
    bind_tile(c, p, plan->tile);
    call_tensor(c, &p->a);
    call_tensor(c, &p->b);
    call_tensor(c, &parts);
    call_int(c, M);
    call_int(c, N);
    call_int(c, K);
    call_strides(c, &p->a);
    call_strides(c, &p->b);
    call_stride(c, &parts, 0);
    call_int(c, width);
    call_int(c, gemm_part(plan, K));
    call_run(c, "matmul", "matmul_split",
             call_grid(c, plan->split * tiles_of(p, plan->tile)), c->stream);
    call_next(c);
    bind_epilogue(c, p);
    call_bind(c, "PARTS", power_over(plan->split, 1 << 16));
    call_bind(c, "BLOCK_N", power_over(N, JOIN));
    call_bind(c, "num_warps", 4);
    call_tensor(c, &parts);
    call_tensor(c, &p->c);
    call_tensor(c, p->bias);
    call_int(c, N);
    call_int(c, plan->split);
    call_stride(c, &parts, 0);
    call_int(c, width);
    call_strides(c, &p->c);
    call_run(c, "matmul", "matmul_join",
             call_grid(c, M * ceil_over(N, power_over(N, JOIN))), c->stream);
}

SdcStatus
sdc_matmul(SdcKernels *k, const SdcTensor *a, const SdcTensor *b, const SdcTensor *bias,
           const SdcTensor *c, SdcActivation act, int exact, void *stream)
{
    Call call = call_begin(k, "sdc_matmul");
    if (call.status != SDC_OK || !matmul_fits(&call, a, b, bias, c, act))
        return call.status;
    call.stream = stream;
    if (!c->shape[0] || !c->shape[1])
        return SDC_OK;
    Product p = {plain(a), plain(b), plain(c), bias, act, exact};
    GemmMath math = exact                   ? GEMM_EXACT
                    : a->dtype == SDC_FP32 ? GEMM_TF32
                                           : GEMM_HALF;
    GemmAsk ask = {.m = c->shape[0],
                   .n = c->shape[1],
                   .k = a->shape[1],
                   .math = math,
                   .bytes = (int32_t)bytes_of(a),
                   .result = (int32_t)bytes_of(c),
                   .a_rows = rows_of(&p.a),
                   .b_rows = rows_of(&p.b),
                   .epilogue = (int32_t)act << 1 | (bias != NULL)};
    GemmPlan plan = plan_of(&call, &ask);
    call_note(&call, &(Note){.kind = NOTE_GEMM, .of.gemm = {ask, plan}});
    if (plan.pack_a)
        p.a = packed(&call, &p.a);
    if (plan.pack_b && call.status == SDC_OK)
        p.b = packed(&call, &p.b);
    if (call.status == SDC_OK)
        (plan.split > 1 ? in_parts : whole)(&call, &p, &plan);
    keep(&call, &ask, &plan);
    return call_end(&call);
}
