/* What tile IR means, in plain C: an evaluator of small functions that shares nothing
   with the compiler but its data structures. Numbers are bits of their type; arithmetic
   is C's on integers of the width, C's on float and double, and for narrower floats C's
   on double rounded by integer shifts.

   A pass is tested by evaluating a function before and after it: the same stores of the
   same values, in the same order, and no load from a place that was not read before. What
   is undefined (a quotient by 0, a float out of an integer's range) may become anything;
   where it would decide an address, a mask or a branch nothing is claimed at all. */
#ifndef TESTS_RULES_SUPPORT_EVAL_H
#define TESTS_RULES_SUPPORT_EVAL_H

#include "ir/ir.h"

enum { EVAL_LANES = 64, EVAL_ACCESSES = 2048, EVAL_STEPS = 20000 };

typedef struct Datum {
    int n;
    uint64_t any; /* lanes that may be anything */
    uint64_t bits[EVAL_LANES];
} Datum;

typedef struct Access {
    bool write;
    bool any; /* the value may be anything */
    uint64_t address, bits;
    int size; /* in bytes */
    const Type *elem;
} Access;

typedef struct Trace {
    int n;
    bool open; /* nothing is claimed: undefined control, a broken promise, too long */
    Access at[EVAL_ACCESSES];
} Trace;

typedef struct Eval {
    /* Called for every value that is computed, when not NULL. */
    void (*seen)(void *user, const Value *v, const Datum *d);
    void *user;
    uint64_t programs[3], program[3];
    Trace *trace;
    Datum *values; /* by the value's number */
    int nvalues;
    int steps;
    bool generous; /* more steps: a pass may add some */
} Eval;

/* Runs f with scalar arguments. The caller sets `seen` and programs first, or nothing. */
void eval_run(Eval *e, const Func *f, const uint64_t *params, Trace *trace);
void eval_done(Eval *e);

/* One elementwise op on one element of each operand; false: may be anything. */
bool eval_element(const Op *op, const uint64_t *in, uint64_t *out);

/* NULL when `after` is a refinement of `before`, else what is wrong. */
const char *trace_differs(const Trace *before, const Trace *after, int *at);

/* ---- bits and numbers */

uint64_t bits_mask(int bits);
int64_t bits_signed(int bits, uint64_t v);
double float_of_bits(ScalarKind k, uint64_t bits);
uint64_t bits_of_float(ScalarKind k, double v); /* to nearest, ties to even */
bool bits_are_nan(ScalarKind k, uint64_t bits);
/* Equal, or both NaN of a float type. */
bool bits_same(const Type *elem, uint64_t a, uint64_t b);

#endif
