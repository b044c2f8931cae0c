/* What the functions of sdc_nn.h that go over rows of matrices have in common: what fits,
   the plan, and the arguments that come from it. Private to runtime/nn. */
#ifndef SDC_RUNTIME_NN_ROWS_H
#define SDC_RUNTIME_NN_ROWS_H

#include "runtime/kernels.h"

#include "ir/base/util.h"

/* Columns that one tile holds: beyond, what a thread keeps of a row spills, or passes
   over it are dearer than reading it twice; and the tile of longer rows. On the CPU tiles
   are buffers. */
enum {
    ROWS_MOST = 8192,
    ROWS_SOFTMAX_MOST = 32768,
    ROWS_CPU_MOST = 65536,
    ROWS_STEP = 4096,
    ROWS_PARTS_MOST = 1024
};

/* A matrix of any floating type with stride 1 along a row, of the sizes of `like` unless
   that is NULL; a contiguous vector. */
bool rows_matrix(Call *c, const SdcTensor *t, const SdcTensor *like, const char *what);
bool rows_vector(Call *c, const SdcTensor *t, int64_t n, bool fp32, const char *what);

/* What strides and columns of all these matrices are multiples of: 8, 4 or 1. Kernels
   take them in that unit, so that one variant serves whatever the multiple is. */
int64_t rows_unit(const SdcTensor *const *t, int n);
void rows_pitch(Call *c, const SdcTensor *t, int64_t unit);

/* The plan for matrices that are all of one shape. */
RowsPlan rows_choose(Call *c, int64_t most, bool shares, const SdcTensor *const *t,
                     int n);
/* A further launch, with the plan's tile. */
void rows_bind(Call *c, const RowsPlan *p);
/* So many numbers of each part of each row; NULL after an error. */
float *rows_stat(Call *c, const RowsPlan *p, int64_t rows, int each);
/* The numbers of parts of rows: of x, to y unless that is NULL. */
void rows_numbers(Call *c, const RowsPlan *p, const SdcTensor *x, const SdcTensor *y);

#endif
