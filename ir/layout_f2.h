/* Linear algebra over the field of two elements: maps from bit strings to bit strings
   where addition is exclusive or. A map is known from the images of the single bits, so
   it is a small bit matrix and every question about it is Gaussian elimination. Layouts
   are such maps (ir/layout.h); conversions between them are quotients of such maps. */
#ifndef SDC_IR_LAYOUT_F2_H
#define SDC_IR_LAYOUT_F2_H

#include <stdbool.h>
#include <stdint.h>

enum { F2_MAX = 64 };

/* col[i] is the image of input bit i; only bits below nout are set. */
typedef struct F2 {
    int nin, nout;
    uint64_t col[F2_MAX];
} F2;

F2 f2_zero(int nin, int nout);
F2 f2_identity(int n);
uint64_t f2_apply(const F2 *a, uint64_t x);
/* x -> outer(inner(x)); inner->nout == outer->nin. */
F2 f2_compose(const F2 *outer, const F2 *inner);
/* Input bits [in, in + nin) and output bits [out, out + nout) alone. */
F2 f2_sub(const F2 *a, int in, int nin, int out, int nout);

int f2_rank(const F2 *a);
bool f2_is_surjective(const F2 *a);
bool f2_is_injective(const F2 *a);
bool f2_is_identity(const F2 *a);
/* x with a(x(i)) == b(i) for all i, free variables 0; false when b leaves a's image. */
bool f2_solve(const F2 *a, const F2 *b, F2 *x);
bool f2_invert(const F2 *a, F2 *inverse);        /* a must be a bijection */
bool f2_right_inverse(const F2 *a, F2 *inverse); /* a(inverse(x)) == x; a onto */
/* Input bits whose image is in the span of the images of lower input bits: changing one
   of them reaches nothing that the others do not. */
uint64_t f2_free(const F2 *a);
/* What some columns span, by its reduced rows; all zero: nothing but 0. */
typedef struct F2Span {
    uint64_t row[F2_MAX];  /* by leading bit; 0: none */
    uint64_t comb[F2_MAX]; /* columns whose sum the row is */
    int n;                 /* rows */
} F2Span;
/* Adds v, column i (any number where nobody asks for `comb`); false when it was in the
   span already. */
bool f2_span_add(F2Span *s, uint64_t v, int i);
/* Is v in the span of a's columns selected by `mask`? */
bool f2_in_span(const F2 *a, uint64_t mask, uint64_t v);

#endif
