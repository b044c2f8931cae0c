/* The constructors of layouts without interning: they fill *out. For ir/layout*.c, which
   also compare a map with what a constructor would give. Arguments as in ir/layout.h. */
#ifndef SDC_IR_LAYOUT_MAKE_H
#define SDC_IR_LAYOUT_MAKE_H

#include "ir/layout.h"

void fill_shape(Layout *out, LayoutKind kind, int rank, const int64_t *shape);
/* Appends the basis `coord` to input dimension d; a zero register basis is left out. */
void fill_basis(Layout *out, LayoutDim d, uint32_t coord);

void fill_blocked(Layout *out, int rank, const int64_t *shape, const int *size,
                  const int *lanes, const int *warps, const int *order);
void fill_mma(Layout *out, const int64_t *shape, const int *warps);
void fill_mma_operand(Layout *out, const int64_t *shape, const int *warps, int op,
                      int kwidth);
void fill_wgmma(Layout *out, const int64_t *shape, int n, const int *warps);
void fill_wgmma_operand(Layout *out, const int64_t *shape, const int *warps, int kwidth);
void fill_swizzled(Layout *out, int rank, const int64_t *shape, int vec, int per_phase,
                   int max_phase, const int *order);
void fill_nvmma(Layout *out, int rank, const int64_t *shape, int bits, int swizzle,
                const int *order);

/* Same kind, shape and map. */
bool layout_same(const Layout *a, const Layout *b);

#endif
