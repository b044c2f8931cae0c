/* Suggestions for error messages: what to write instead. */
#ifndef SDC_FRONTEND_HINT_H
#define SDC_FRONTEND_HINT_H

#include "frontend/sema.h"

/* A name of the scope, the file or Python that is spelled nearly so; NULL: there is
   none. */
const char *hint_name(Sema *s, const char *name);

/* Text to add to a message about v where an integer is needed; "" if there is none. */
const char *hint_float(Val v);
/* The same for a wrong `param` of `function`: tl.max reduces along an axis, and who
   passes two values means the larger. */
const char *hint_larger(const char *function, const char *param);
/* The edit distance of two names if it is at most 3, else a number that is larger. */
int name_distance(const char *a, const char *b);
/* For a builtin of Python, what does the same in a kernel: "tl.abs" for abs; NULL:
   nothing does. */
const char *hint_python(const char *name);
/* For a function or dtype of numpy or torch, the member of tl that does the same; NULL:
   there is none. */
const char *hint_host(Sema *s, const char *name);
/* v is a run-time value where a constant is needed: adds a note if it is a parameter that
   could be declared constexpr. */
void note_parameter(Sema *s, Val v);

#endif
