/* Which arms of the top level's `if` and `try` run when Python loads the file. */
#ifndef SDC_FRONTEND_GUARD_H
#define SDC_FRONTEND_GUARD_H

#include "frontend/module.h"

enum { GUARD_ELSE = -1, GUARD_BODY = -2 }; /* parts of a statement; from 0: its arms or
                                              handlers */

/* A binding stands in this part of a statement, which stands in those above. */
typedef struct Guard {
    const Node *stmt; /* IF or TRY */
    int part;
    int at;           /* in the body of TRY: number of the statement */
    const struct Guard *up;
} Guard;

typedef enum Decision { RUNS_NOT, RUNS_MAYBE, RUNS } Decision;

/* Is what stands there executed? */
Decision guard_decide(FrontModule *m, const Guard *g);

#endif
