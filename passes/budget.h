/* What a kernel does without because shared memory is short. The bytes that it takes are
   known where they are placed (passes/finish/alloc_shared.c) and nowhere before: too many
   passes make buffers and exchanges for an estimate to be right. So a kernel that does
   not fit goes through the passes once more with the next smaller choice of a short list,
   and what fits at once pays nothing for it. */
#ifndef SDC_PASSES_BUDGET_H
#define SDC_PASSES_BUDGET_H

#include "ir/base/str.h"
#include "ir/ir.h"

enum { BUDGET_STEPS = 16 };

/* One choice that did not fit. */
typedef struct BudgetStep {
    int64_t bytes;    /* that it took */
    int stages;       /* of the deepest ring of buffers */
    const char *then; /* what is done without from here on */
} BudgetStep;

/* Of one function. All zero: nothing is done without. */
typedef struct Budget {
    int depth; /* at most so many buffers of a ring, 1: no load is pipelined; 0: any */
    bool no_double_buffers; /* one buffer for what threads leave for dots */
    bool no_tiles; /* tiles that threads alone read are loaded where they are used */
    bool no_roles;
    bool no_tma_stores;      /* no results by TMA */
    bool no_staged_operands; /* operands of mma change hands in parts, not through buffers
                              */
    bool staged_operands;    /* pass stage-mma-operands has made buffers */
    bool double_buffers;     /* pass double-buffer has made second buffers */
    bool tiles; /* pass stage-plan lets tiles that threads alone read are pipelined */
    bool again; /* the passes are to run again with this choice */
    int nstep;
    BudgetStep step[BUDGET_STEPS];
} Budget;

/* f takes so many bytes, too many: chooses what is done without next, in a fixed order:
   second buffers, depth, tiles ahead that threads read, roles, results by TMA, prefetched
   loads at all, whole operands of mma. False: nothing is left to do without. */
bool budget_reduce(Budget *b, const Func *f, int64_t bytes);

/* Forgets what the passes did, for their next run. Were they to run again? */
bool budget_again(Budget *b);

/* The choices that did not fit, a line each; `most`: the bytes that there are. */
void budget_print(Buf *out, const Budget *b, int most);

#endif
