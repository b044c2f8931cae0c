/* Functions and attributes that belong to Python and to the packages that every program
   around Triton uses: lines of tables, found by name. */
#ifndef SDC_FRONTEND_PYLIB_H
#define SDC_FRONTEND_PYLIB_H

#include "frontend/py.h"

typedef struct PyEntry {
    const char *name;
    PyBuiltinFn *fn;
} PyEntry;

/* Argument i, by place or by name; NULL: not given. */
Py pyarg(const PyCall *c, int i, const char *name);
/* A result that only Python knows; arguments that are unknown are the reason. */
Py pylib_unknown(Interp *in, const PyCall *c);
bool pyarg_int(Py v, Wide *out);
/* py_plain of what constexprs hold. */
Py pyarg_plain(Py v);

extern const PyEntry pylib_str[], pylib_list[], pylib_dict[], pylib_set[];
extern const PyEntry pylib_python[]; /* names without a module */
extern const PyEntry pylib_host[];   /* "math.sqrt", "os.getenv", ... */

/* Constants and queries of modules: "math.pi", "triton.__version__"; NULL: none. */
Py pylib_constant(Interp *in, const char *path, Loc loc);

#endif
