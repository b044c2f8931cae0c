/* The value that the variable of a for loop has behind the loop. */
#ifndef SDC_FRONTEND_LAST_H
#define SDC_FRONTEND_LAST_H

#include "frontend/sema.h"

/* Is this name of a loop read outside of the loops that bind it? */
bool last_is_read(Sema *s, Name name);
/* What the name is in front of the loop: NULL when it is not read behind it or was of
   another type, FE_ERROR when it was nothing. */
Val last_before(Sema *s, const Node *loop, DType iv);
/* What it is behind a loop over `at`: start, end and step, all of one type. */
Val last_value(Sema *s, const Val *at, Val before, Loc loc);

#endif
