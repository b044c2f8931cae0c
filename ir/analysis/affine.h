/* Integers and addresses as polynomials in the values they are computed from; for tiles,
   also in the indices of the element. Shows where a tile of addresses lies without
   looking at its elements: row stride * index 0 + index 1 + a base.

   Sums and products are followed through loops that add the same amount in every
   iteration, and through extensions: 32-bit values are assumed not to wrap. */
#ifndef SDC_IR_ANALYSIS_AFFINE_H
#define SDC_IR_ANALYSIS_AFFINE_H

#include "ir/ir.h"

enum { POLY_TERMS = 12, POLY_FACTORS = 4, AFFINE_RANK = 4 };

/* k * x[0] * x[1] ..; factors are sorted by their ids. */
typedef struct PolyTerm {
    int64_t k;
    int n;
    const Value *x[POLY_FACTORS];
} PolyTerm;

/* A sum of terms with different factors, none of them 0. */
typedef struct Poly {
    int n;
    PolyTerm t[POLY_TERMS];
} Poly;

/* These return false when the result has too many terms or factors to be stored. */
bool poly_add(Poly *to, const Poly *p, int64_t times);
bool poly_mul(const Poly *a, const Poly *b, Poly *out);
bool poly_add_term(Poly *to, const PolyTerm *t, int64_t times);
Poly poly_const(int64_t k);
bool poly_is_const(const Poly *p, int64_t *k); /* also true for 0 */
bool poly_same(const Poly *a, const Poly *b);
/* t / by, if it is a single term without remainder. */
bool poly_divide(const PolyTerm *t, const PolyTerm *by, PolyTerm *out);

/* base + the sum of at[d] * (index along d); for an address, `ptr` plus that many
   elements. */
typedef struct Affine {
    const Value *ptr; /* a scalar pointer that is no addptr; NULL for integers */
    Poly base;
    Poly at[AFFINE_RANK];
} Affine;

/* v as seen inside of `loop`, which may be NULL: the loop counter is a factor like any
   other value, and values that the loop carries are followed. False: v is not affine. */
bool affine_of(const Value *v, const Op *loop, Affine *out);
/* The same, but an address is followed only as far as a descriptor of the source, a hint
   {tensor}, which then is `ptr`, whatever it is computed from. */
bool affine_of_tensor(const Value *v, const Op *loop, Affine *out);
/* What the loop adds in each iteration to all elements of `arg`, which it carries. False:
   it changes arg in another way. */
bool affine_step(const Value *arg, const Op *loop, Affine *out);

#endif
