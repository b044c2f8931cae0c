/* Which maps from registers, lanes and warps to offsets in shared memory are those of
   ldmatrix and stmatrix: a warp moves matrices of 8 rows of 16 bytes, each lane names one
   row and holds four bytes of each matrix.

       plain       the bytes of a word are its registers', lane bits 0 and 1 are the words
                   of a row, lane bits 2 to 4 and everything else choose whole rows
       transposed  (16-bit elements) lane bits 2 to 4 are the elements of a row, register
                   bit 0 and lane bits 0 and 1 its number

   where "choose rows" means: move by multiples of 16 bytes, in any linear way. So one
   test covers every swizzle, accumulators and both operands. */
#ifndef SDC_IR_LAYOUT_MATRIX_H
#define SDC_IR_LAYOUT_MATRIX_H

#include "ir/layout_f2.h"

typedef struct MatrixForm {
    bool trans;
    int word_bits;   /* register bits inside of a word */
    int word[2];     /* those */
    uint32_t row[3]; /* image of the bits of a row's number, in bytes */
} MatrixForm;

/* map: `regs` register bits, five lane bits, warp bits -> offset in elements of `bytes`.
 */
bool matrix_form(const F2 *map, int regs, int bytes, MatrixForm *out);

#endif
