/* Every arithmetic instruction of the simulator as a line, a kernel around each, and
   inputs at the edges of its types: for test_conformance.c, which knows the answers, and
   for tests/gpu/ptx_conformance.c, which asks a GPU. */
#ifndef SDC_TESTS_SIM_CONFORMANCE_H
#define SDC_TESTS_SIM_CONFORMANCE_H

#include <stddef.h>
#include <stdint.h>

enum { CONF_SLOTS = 4, CONF_THREADS = 128 };

/* %0 is the result, %1.. the operands. Kinds, results first: w d h integers of 32, 64 and
   16 bits, s a count (32 bits), f F H B floats of 32, 64, 16 bits and bf16, x y two fp16
   or bf16 in 32 bits, b two fp8 in 16, p a predicate. */
typedef struct ConfInsn {
    const char *text, *kinds;
    double ulps, absolute; /* that a GPU may be away from the simulator */
} ConfInsn;
extern const ConfInsn conf_insns[];
int conf_count(void);

/* PTX of a kernel "f" of two pointers: from CONF_SLOTS words of 8 bytes for each thread
   to one. */
void conf_ptx(const ConfInsn *i, char *to, size_t size);

/* Inputs of case `n`: edges first, all combinations of some, then random ones. */
void conf_inputs(const ConfInsn *i, uint64_t n, uint64_t *slots);

/* Whether two results agree: 2 the same bits, 1 NaNs of other bits or within what the
   instruction allows, 0 no. */
int conf_agree(const ConfInsn *i, uint64_t a, uint64_t b);

#endif
