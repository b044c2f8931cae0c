/* Functions and attributes of Python, and of packages that programs around Triton use,
   for the interpreter (py.h): tables that are searched by name. */
#ifndef SDC_FRONTEND_PYLIB_H
#define SDC_FRONTEND_PYLIB_H

#include "frontend/py.h"

typedef struct PyEntry {
    const char *name;
    PyBuiltinFn *fn;
} PyEntry;

/* Argument i of a call, by position or by name; NULL: it is not given. */
Py pyarg(const PyCall *c, int i, const char *name);
/* An unknown result; if an argument is unknown, that is the reason. */
Py pylib_unknown(Interp *in, const PyCall *c);
/* v as an integer; false: it is none. */
bool pyarg_int(Py v, Wide *out);

extern const PyEntry pylib_str[], pylib_list[], pylib_dict[], pylib_set[];
extern const PyEntry pylib_python[]; /* builtins: "len" */
extern const PyEntry pylib_host[];   /* of modules: "math.sqrt", "os.getenv" */

/* A constant of a module by its dotted name, "math.pi" or "triton.__version__"; NULL:
   there is none. */
Py pylib_constant(Interp *in, const char *path, Loc loc);

#endif
