/* Integers and addresses as polynomials: of a scalar in what it is made from, of a tile
   in its element's indices on top. Tells where a tile of addresses lies without looking
   at its elements: row stride * index 0 + index 1 + wherever it begins.

   Sums and products are followed through loops that add the same in every iteration, and
   through extensions: a 32-bit number that wraps is taken for one that does not. */
#ifndef SDC_IR_ANALYSIS_AFFINE_H
#define SDC_IR_ANALYSIS_AFFINE_H

#include "ir/ir.h"

enum { POLY_TERMS = 12, POLY_FACTORS = 4, AFFINE_RANK = 4 };

/* k * x[0] * x[1] ..; factors in order of their ids. */
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

/* These return false when the result is too large to be kept. */
bool poly_add(Poly *to, const Poly *p, int64_t times);
bool poly_mul(const Poly *a, const Poly *b, Poly *out);
bool poly_add_term(Poly *to, const PolyTerm *t, int64_t times);
Poly poly_const(int64_t k);
bool poly_is_const(const Poly *p, int64_t *k); /* 0 is a constant too */
bool poly_same(const Poly *a, const Poly *b);
/* t / by, when it is one term without remainder. */
bool poly_divide(const PolyTerm *t, const PolyTerm *by, PolyTerm *out);

/* base + sum of at[d] * (index along d); of an address `ptr` plus that, in elements. */
typedef struct Affine {
    const Value *ptr; /* a scalar pointer that is no sum; NULL for integers */
    Poly base;
    Poly at[AFFINE_RANK];
} Affine;

/* v as seen inside of `loop`: its iteration variable is a factor like any other value,
   and what it carries is followed. loop may be NULL. False: v is no such thing. */
bool affine_of(const Value *v, const Op *loop, Affine *out);
/* The same, but an address ends where a descriptor of the source begins, at a
   hint {tensor}: that is `ptr` then, whatever it is made from. */
bool affine_of_tensor(const Value *v, const Op *loop, Affine *out);
/* What the loop adds to all elements of `arg`, which it carries, in each iteration.
   False: it does something else to it. */
bool affine_step(const Value *arg, const Op *loop, Affine *out);

#endif
