/* What to write instead: the second half of error messages. */
#ifndef SDC_FRONTEND_HINT_H
#define SDC_FRONTEND_HINT_H

#include "frontend/sema.h"

/* A name of the scope, the file or Python that is nearly this one; NULL: none. */
const char *hint_name(Sema *s, const char *name);

/* What is added to a message that found this where an integer is needed, or "". */
const char *hint_float(Val v);
/* Edit distance up to 3, on short names; large when more. */
int name_distance(const char *a, const char *b);
/* "tl.abs" of Python's abs, "tl.static_range" of enumerate, ...; NULL: none. */
const char *hint_python(const char *name);
/* The member of tl that does what a function of numpy or torch of this name does, or the
   dtype that a kind of number means; NULL: none. */
const char *hint_host(Sema *s, const char *name);
/* A run-time value where a constant is needed: a note when it is a parameter that could
   be declared constexpr. */
void note_parameter(Sema *s, Val v);

#endif
