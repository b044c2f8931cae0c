/* The machine code of a kernel, as nvdisasm and cuobjdump print it, and what ptxas may
   have done wrong with the registers of warpgroup matmuls, which they read and write
   while other instructions go on. Text is read (read.c), blocks and loops are found as in
   PTX (tests/record/flow.c), and two things are asked: what is touched while a matmul may
   be under way (flight.c), and whether its left operand can be a value that the PTX never
   gives it (origin.c). */
#ifndef SDC_TESTS_SASS_SASS_H
#define SDC_TESTS_SASS_SASS_H

#include <stdint.h>

#include "tests/record/record.h"

/* Numbers of registers; words of the stack follow. */
enum { REGISTERS = 256, STACK = REGISTERS };

typedef struct Set { /* of registers */
    uint64_t word[REGISTERS / 64];
} Set;

typedef struct Gmma { /* a matmul of a warpgroup: HGMMA, IGMMA, QGMMA */
    int acc, nacc;    /* registers of the sum: the first, and how many */
    int a;            /* the first of four registers of the left operand; -1: in memory */
    int n;            /* columns of the result */
    bool commits;     /* its group ends with it */
    bool fresh;       /* nothing is added to */
    bool empty; /* it computes nothing */
} Gmma;

typedef struct Sass { /* of one instruction, beside its Insn */
    unsigned at;      /* its address */
    const char *text;
    Set reads, writes;
    int copy;         /* the register that it only moves, or -1 */
    int stack; /* the word of the thread's stack that it moves from or to, or -1 */
    bool reload;       /* from */
    int spill, nspill; /* the registers of that: the first, and how many */
    bool guarded;     /* has a predicate: may write nothing */
    const Gmma *gmma; /* or NULL */
    int left;         /* groups that a wait leaves under way, or -1: no wait */
    bool fence;       /* WARPGROUP.ARRIVE */
} Sass;

typedef struct Program {
    Kernel k;   /* its instructions are jumps or of no name, for flow.c */
    Sass *sass; /* of each of them */
    int ngmma;
    int nindirect; /* branches whose targets are not known: not followed */
} Program;

static inline bool
set_has(const Set *s, int r)
{
    return r >= 0 && r < REGISTERS && (s->word[r / 64] >> (r % 64) & 1);
}

static inline void
set_add(Set *s, int r, int n)
{
    for (int i = r; i < r + n && i < REGISTERS; i++)
        s->word[i / 64] |= UINT64_C(1) << (i % 64);
}

/* The first register of both, or -1. */
int set_meet(const Set *a, const Set *b);

/* The functions of a disassembly; `text` is cut into pieces that the result keeps. */
Program *sass_read(Arena *a, char *text, int *count);

/* What other instructions do to registers of matmuls that may be under way, a line each
   on `out`; how many. */
int sass_flight(const Program *p, FILE *out);

/* Left operands in registers that have another origin than in the PTX; how many. */
int sass_origin(const Program *p, const Kernel *ptx, FILE *out);

#endif
