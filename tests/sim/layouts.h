/* Random layouts of tiles and their text, for the tests beside this file. */
#ifndef SDC_TESTS_SIM_LAYOUTS_H
#define SDC_TESTS_SIM_LAYOUTS_H

#include "tests/sim/compile.h"

enum { MAX_BASES = 16 };

/* Images of the bits of registers, lanes and warps, flattened; onto, with copies. */
typedef struct Bases {
    int n[3], v[3][MAX_BASES];
} Bases;
enum { REGS, LANES_OF, WARPS_OF };

Bases layout_random(Random *r, int bits, int warp_bits);
/* The same with a register that also moves what a lane moves, sometimes. */
Bases layout_bent(Random *r, Bases l);
/* Registers and lanes exchanged: the warps keep what they have. */
Bases layout_near(Random *r, Bases l);
/* Two layouts, one whose threads hold what is a row of matrices in the other: for
   stmatrix or ldmatrix, plain or transposed. */
void layout_fragments(Random *r, int bits, int warp_bits, Bases *a, Bases *b);

/* Text that grows. */
typedef struct Text {
    char *at;
    size_t n, room;
} Text;
void text_add(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* As tile IR spells it, for one dimension (cols 0) or for rows of `cols`. */
void text_layout(Text *t, const Bases *l, int cols);

#endif
