/* What a kernel gives up because shared memory is short. How many bytes it takes is known
   only where they are placed (passes/finish/alloc_shared.c): too many passes make buffers
   and exchanges for an estimate to be right. A kernel that does not fit goes through the
   passes again with the next cheaper choice of a short list; a kernel that fits at once
   pays nothing for this. */
#ifndef SDC_PASSES_BUDGET_H
#define SDC_PASSES_BUDGET_H

#include "ir/base/str.h"
#include "ir/ir.h"

enum { BUDGET_STEPS = 16 };

/* One choice that did not fit. */
typedef struct BudgetStep {
    int64_t bytes;    /* that the kernel took */
    int stages;       /* of its deepest ring */
    const char *then; /* what it gives up from here on */
} BudgetStep;

/* The choices for one function. All zero: nothing is given up. */
typedef struct Budget {
    int depth; /* most stages of a ring; 1: no load is pipelined; 0: no limit */
    bool no_double_buffers; /* one buffer for tiles that threads store for dots */
    bool no_tiles; /* tiles that only threads read are not pipelined */
    bool no_roles;
    bool no_tma_stores;      /* no results are stored by TMA */
    bool no_staged_operands; /* operands of mma are exchanged in parts, not staged */
    bool staged_operands;    /* pass stage-mma-operands has made buffers */
    bool double_buffers;     /* pass double-buffer has made second buffers */
    bool tiles; /* pass stage-plan has pipelined tiles that only threads read */
    bool again; /* the passes are to run again with this choice */
    int nstep;
    BudgetStep step[BUDGET_STEPS];
} Budget;

/* f takes `bytes` bytes of shared memory, which is too much: chooses what to give up
   next, in a fixed order: second buffers, stages, pipelined tiles that threads read,
   roles, results by TMA, pipelining, whole operands of mma. False: nothing is left to
   give up. */
bool budget_reduce(Budget *b, const Func *f, int64_t bytes);

/* Resets what the passes have reported, for their next run. True: they are to run
   again. */
bool budget_again(Budget *b);

/* Prints a line for each choice that did not fit; `most`: bytes of shared memory that
   there are. */
void budget_print(Buf *out, const Budget *b, int most);

#endif
