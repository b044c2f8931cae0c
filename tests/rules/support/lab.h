/* Small functions of tile IR, made by a test, that passes are run over: evaluated before
   and after with many arguments, both must agree. A test gives a maker, which is called
   once for each seed; what fails is made again and printed.

   Values go to memory by lab_keep; each kind of scalar has a pointer parameter of its
   own, far from the others. */
#ifndef TESTS_RULES_SUPPORT_LAB_H
#define TESTS_RULES_SUPPORT_LAB_H

#include "ir/build.h"
#include "tests/rules/support/eval.h"

enum { LAB_PARAMS = 12 };

typedef struct Lab {
    Session *s;
    Module *m;
    Func *f;
    Builder b;
    Value *memory[SK_COUNT];
    Value *param[LAB_PARAMS];
    int nparam, kept;
    uint64_t seed;
    const void *user;
} Lab;

typedef void LabMake(Lab *l);

typedef struct LabTest {
    const char *name;
    LabMake *make;
    const void *user;   /* for make */
    const char *passes; /* "canon,dce" */
    const char *target; /* NULL: cpu */
    bool may_refuse;    /* errors of a pass are no failure */
    uint64_t seed;
    int runs;   /* with random arguments and edges; */
    bool sweep; /* else with every value of 8 bits for the first argument */
} LabTest;

/* Fails the running test of Check on a difference. */
void lab_check(const LabTest *t);
/* For tests that look themselves: makes the function; lab_close ends it. */
Lab lab_open(const LabTest *t);
void lab_close(Lab *l);
void lab_print(Lab *l, const char *title);
/* Arguments of run i. */
void lab_arguments(Lab *l, const LabTest *t, int i, uint64_t *params);

const Type *lab_type(Lab *l, ScalarKind k);
const Type *lab_tile(Lab *l, ScalarKind k, int rank, const int64_t *shape);
Value *lab_param(Lab *l, ScalarKind k);
/* Of a scalar type or a tile: all elements have these bits. */
Value *lab_const(Lab *l, const Type *t, uint64_t bits);
void lab_keep(Lab *l, Value *v);
uint32_t lab_random(Lab *l, uint32_t n);
/* Bits of a number at the edge of its type, or any. */
uint64_t lab_edge(Lab *l, ScalarKind k);
int edges_of(ScalarKind k, uint64_t *out); /* at most 64 */
const char *kind_name(ScalarKind k);

#define RULES_MAIN(name, ...)                                                            \
    int main(void)                                                                       \
    {                                                                                    \
        return rules_run(                                                                \
            name, (const TTest *const[]){__VA_ARGS__},                                   \
            (int)(sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(TTest *)));       \
    }

#include <check.h>
int rules_run(const char *name, const TTest *const *tests, int n);

#endif
