/* A generated program: a kernel's text, its arguments and the grid. */
#ifndef SDC_TESTS_GEN_PROGRAM_H
#define SDC_TESTS_GEN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From this seed on programs are loops of matmuls (make_loops.c). Below, the bits from
   MAKER_SHIFT on say which maker a program uses above all (of makers.def, from 1; 0:
   any). */
#define LOOP_SEEDS (UINT64_C(1) << 40)
enum { MAKER_SHIFT = 32 };

enum { PROGRAM_MAX_ARGS = 32, PROGRAM_NAME = 32, PROGRAM_RANK = 3 };

/* ARG_DESC: a tensor descriptor that the host makes, with memory of its own. */
typedef enum ProgramArgKind { ARG_BUFFER, ARG_INT, ARG_FLOAT, ARG_DESC } ProgramArgKind;

/* An argument, in the order of the kernel's parameters that are not constexpr. */
typedef struct ProgramArg {
    char name[PROGRAM_NAME];
    ProgramArgKind kind;
    char dtype[8]; /* as in a signature, without "*": "fp32", "i8", "bf16", "fp8e4nv" */
    size_t count;  /* memory: elements; 0 for numbers */
    size_t bytes;  /* count times the element's size */
    unsigned char *data; /* what it holds before the launch; NULL for numbers */
    int is_output;       /* the kernel stores to it: compared after the launch */
    int exact;           /* compared bit for bit; otherwise within `tolerance` */
    double tolerance;
    int64_t i; /* ARG_INT */
    double f;  /* ARG_FLOAT */
    int rank;  /* ARG_DESC */
    int shape[PROGRAM_RANK], strides[PROGRAM_RANK], block[PROGRAM_RANK];
    bool nan; /* what is loaded outside of it */
} ProgramArg;

typedef struct Program {
    uint64_t seed;
    char *text; /* a valid Triton module */
    char kernel[PROGRAM_NAME];
    int grid[3];
    int num_warps, num_stages;
    int aligned; /* buffers must begin on 16 bytes: descriptors */
    int narg;
    ProgramArg arg[PROGRAM_MAX_ARGS];
} Program;

#endif
