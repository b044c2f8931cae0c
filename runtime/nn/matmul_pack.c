/* Operands of matmuls that no tensor map takes, or only slowly: copied to rows that begin
   on lines of the cache. */
#include "runtime/nn/matmul.h"

#include <stdlib.h>

enum { PACK_ROWS = 32, PACK_COLS = 64 };

int64_t
matmul_divisor(uint64_t numbers, int64_t most)
{
    uint64_t low = numbers & -numbers;
    return low && low < (uint64_t)most ? (int64_t)low : most;
}

/* Dimension of the operand along which it is packed: neighbours in memory stay so. */
static int
packed_along(const SdcTensor *t)
{
    return llabs(t->strides[1]) < llabs(t->strides[2]) ? 1 : 2;
}

bool
matmul_packs(const SdcTensor *t)
{
    int row = 3 - packed_along(t);
    return t->shape[0] == 1 || !t->strides[0] ||
           t->strides[0] == t->shape[row] * t->strides[row];
}

/* What is copied are numbers as wide as rows allow. */
SdcTensor
matmul_packed(Call *c, const SdcTensor *t)
{
    static const SdcDtype wide[] = {
        [1] = SDC_I8, [2] = SDC_I16, [4] = SDC_I32, [8] = SDC_I64};
    int col = packed_along(t), row = 3 - col;
    int64_t size = sdc_dtype_size(t->dtype), each = size, cols = t->shape[col] * size;
    int64_t rows = t->shape[row] * (t->strides[0] ? t->shape[0] : 1);
    int64_t pitch = ceil_over(cols, GEMM_LINE) * GEMM_LINE;
    if (t->strides[col] == 1)
        each = matmul_divisor(
            (uint64_t)(t->strides[row] * size) | (uint64_t)cols | (uintptr_t)t->data, 8);
    SdcTensor x = *t;
    x.strides[0] = t->strides[0] ? t->shape[row] * pitch / size : 0;
    x.strides[row] = pitch / size;
    x.strides[col] = 1;
    x.data = call_borrow(c, rows * pitch);
    if (!x.data)
        return x;
    SdcTensor from = {.dtype = wide[each],
                      .rank = 2,
                      .data = t->data,
                      .shape = {rows, cols / each},
                      .strides = {t->strides[row] * size / each, t->strides[col]}};
    SdcTensor to = from;
    to.data = x.data;
    to.strides[0] = pitch / each;
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
    return x;
}
