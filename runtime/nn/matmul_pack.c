/* Operands of matmuls that no tensor map takes, or only slowly: copied to rows that begin
   on lines of the cache. Those of fp8 are transposed where they do not lie along k, as
   tensor cores want them: four bytes at a time where rows allow it, two operands in one
   launch. Programs of a transposition have their tile from three axes of the grid: two
   divisions in front of the loads take longer than the loads of a small one. */
#include "runtime/nn/matmul.h"

#include <stdlib.h>

enum { PACK_ROWS = 32, PACK_COLS = 64, WORD = 4, WORDS = 32, MOST_TILES = 65535 };

int64_t
matmul_divisor(uint64_t numbers, int64_t most)
{
    uint64_t low = numbers & -numbers;
    return low && low < (uint64_t)most ? (int64_t)low : most;
}

int
matmul_packed_along(const SdcTensor *t, int k, bool transposed)
{
    int near = llabs(t->strides[1]) < llabs(t->strides[2]) ? 1 : 2;
    return transposed || matmul_is_fp8(t) ? k : near;
}

/* Bytes that lie in words across `along`, and not too many for the axes of a grid. */
static bool
has_words(const SdcTensor *t, int along)
{
    int unit = 3 - along;
    return sdc_dtype_size(t->dtype) == 1 && t->strides[along] > 1 &&
           t->strides[unit] == 1 && t->shape[0] <= MOST_TILES &&
           t->shape[along] <= (int64_t)MOST_TILES * WORD * WORDS &&
           matmul_divisor((uint64_t)t->strides[along] | (uint64_t)t->shape[unit] |
                              (uint64_t)llabs(t->strides[0]) | (uintptr_t)t->data,
                          WORD) == WORD;
}

bool
matmul_packs(const SdcTensor *t, int along)
{
    int row = 3 - along;
    return t->shape[0] == 1 || !t->strides[0] || has_words(t, along) ||
           t->strides[0] == t->shape[row] * t->strides[row];
}

SdcTensor
matmul_place(const SdcTensor *t, int along, int64_t *bytes)
{
    SdcTensor x = *t;
    int row = 3 - along;
    int64_t size = sdc_dtype_size(t->dtype);
    int64_t rows = t->shape[row] * (t->strides[0] ? t->shape[0] : 1);
    int64_t pitch = ceil_over(t->shape[along] * size, GEMM_LINE) * GEMM_LINE;
    x.strides[0] = t->strides[0] ? t->shape[row] * pitch / size : 0;
    x.strides[row] = pitch / size;
    x.strides[along] = 1;
    x.data = NULL;
    *bytes = rows * pitch;
    return x;
}

static SdcTensor
place_of(Call *c, const SdcTensor *t, int along)
{
    int64_t bytes;
    SdcTensor x = matmul_place(t, along, &bytes);
    x.data = call_borrow(c, bytes);
    return x;
}

/* What is copied are numbers as wide as rows allow. */
static void
copy(Call *c, const SdcTensor *t, const SdcTensor *x, int along)
{
    static const SdcDtype wide[] = {
        [1] = SDC_I8, [2] = SDC_I16, [4] = SDC_I32, [8] = SDC_I64};
    int row = 3 - along;
    int64_t size = sdc_dtype_size(t->dtype), each = size, cols = t->shape[along] * size;
    int64_t rows = t->shape[row] * (t->strides[0] ? t->shape[0] : 1);
    if (t->strides[along] == 1)
        each = matmul_divisor(
            (uint64_t)(t->strides[row] * size) | (uint64_t)cols | (uintptr_t)t->data, 8);
    SdcTensor from = {.dtype = wide[each],
                      .rank = 2,
                      .data = t->data,
                      .shape = {rows, cols / each},
                      .strides = {t->strides[row] * size / each, t->strides[along]}};
    SdcTensor to = from;
    to.data = x->data;
    to.strides[0] = x->strides[row] * size / each;
    to.strides[1] = 1;
    call_next(c);
    call_bind(c, "BLOCK_R", PACK_ROWS);
    call_bind(c, "BLOCK_C", PACK_COLS);
    call_bind(c, "num_warps", 4);
    call_tensor(c, &from);
    call_tensor(c, &to);
    call_int(c, rows);
    call_int(c, from.shape[1]);
    call_stride(c, &from, 0);
    call_stride(c, &from, 1);
    call_stride(c, &to, 0);
    int64_t tiles = ceil_over(rows, PACK_ROWS) * ceil_over(from.shape[1], PACK_COLS);
    call_run(c, "pack", "pack", call_grid(c, tiles), c->stream);
}

SdcTensor
matmul_packed(Call *c, const SdcTensor *t)
{
    int along = matmul_packed_along(t, 0, false);
    SdcTensor x = place_of(c, t, along);
    if (x.data)
        copy(c, t, &x, along);
    return x;
}

/* A transposition by words: [batch, rows, words] each. */
typedef struct Transposition {
    SdcTensor from, to;
} Transposition;

static SdcTensor
words_of(const SdcTensor *t, int row, int64_t batch)
{
    int unit = 3 - row;
    return (SdcTensor){
        .dtype = SDC_U32,
        .rank = 3,
        .data = t->data,
        .shape = {batch, t->shape[row], ceil_over(t->shape[unit], WORD)},
        .strides = {batch > 1 ? t->strides[0] / WORD : 0, t->strides[row] / WORD, 1}};
}

static Transposition
transposition_of(const SdcTensor *t, const SdcTensor *x, int along)
{
    int64_t batch = t->strides[0] ? t->shape[0] : 1;
    return (Transposition){words_of(t, along, batch), words_of(x, 3 - along, batch)};
}

/* One operand, or two in one launch: with k rows both, and as many matrices. */
static void
transpose(Call *c, const Transposition *all, int n)
{
    const SdcTensor *first = &all[0].from;
    int64_t tiles = 0;
    call_next(c);
    call_bind(c, "BLOCK_R", WORDS);
    call_bind(c, "BLOCK_C", WORDS);
    call_bind(c, "num_warps", 4);
    for (int i = 0; i < n; i++) {
        call_tensor(c, &all[i].from);
        call_tensor(c, &all[i].to);
        if (n == 1)
            call_int(c, first->shape[1]);
        call_int(c, all[i].from.shape[2]);
        call_stride(c, &all[i].from, 0);
        call_stride(c, &all[i].from, 1);
        call_stride(c, &all[i].to, 0);
        tiles += ceil_over(all[i].from.shape[2], WORDS);
    }
    if (n > 1)
        call_int(c, first->shape[1]);
    call_stride(c, &all[0].to, 1);
    SdcGrid grid = call_grid(c, tiles);
    grid.y = (int32_t)ceil_over(first->shape[1], WORD * WORDS);
    grid.z = (int32_t)first->shape[0];
    call_run(c, "pack", n > 1 ? "transpose_two" : "transpose", grid, c->stream);
}

void
matmul_pack(Call *c, Matmul *p, const GemmPlan *plan, int transposed)
{
    const bool packs[] = {plan->pack_a, plan->pack_b};
    SdcTensor *const operands[] = {&p->a, &p->b};
    Transposition later[2];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        SdcTensor *t = operands[i];
        int along = matmul_packed_along(t, 2 - i, transposed >> i & 1);
        if (!packs[i] || c->status != SDC_OK)
            continue;
        SdcTensor x = place_of(c, t, along);
        if (x.data && has_words(t, along))
            later[n++] = transposition_of(t, &x, along);
        else if (x.data)
            copy(c, t, &x, along);
        *t = x;
    }
    bool together = n < 2 || later[0].from.shape[0] == later[1].from.shape[0];
    for (int i = 0; i < n && c->status == SDC_OK; i += together ? n : 1)
        transpose(c, later + i, together ? n : 1);
}
