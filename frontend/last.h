/* The value that the variable of a for loop has after the loop, where Python keeps it. */
#ifndef SDC_FRONTEND_LAST_H
#define SDC_FRONTEND_LAST_H

#include "frontend/sema.h"

/* Does the function read this variable outside of the loops that bind it? */
bool last_is_read(Sema *s, Name name);
/* The value of the loop's variable in front of the loop, which it keeps if there is no
   iteration. NULL: it is not read after the loop, or was of another type than `iv`.
   FE_ERROR: it was not bound. */
Val last_before(Sema *s, const Node *loop, DType iv);
/* The value after the loop over at[0] (start), at[1] (end), at[2] (step), all of one
   type; before: what last_before returned. */
Val last_value(Sema *s, const Val *at, Val before, Loc loc);

#endif
