/* A parsed file and the names at its top level: jit functions, host functions, globals
   and imports, also those inside top-level `if` and `try`. The files that it imports are
   looked for beside it, in the folders of -I, and in the folders above it as far as its
   package goes. Each file is loaded once. */
#ifndef SDC_FRONTEND_MODULE_H
#define SDC_FRONTEND_MODULE_H

#include "frontend/ast.h"
#include "frontend/frontend.h"

/* What an import statement binds a name to: a module, or `member` of one. */
typedef struct ModuleImport {
    Name path;   /* dotted; NULL in `from . import x` */
    Name member; /* NULL: the module itself */
    int level;   /* leading dots */
    Loc loc;
} ModuleImport;

Session *module_session(const FrontModule *m);
/* Value of parameter i in the launch that is specialized; NULL when it is not known. */
const FrontValue *module_value(const FrontModule *m, int i);
const char *module_path(const FrontModule *m);
const FrontOptions *module_options(const FrontModule *m); /* NULL: none were given */
/* "sm_90a": 90; 0 for the CPU, or when no target is known. */
int module_capability(const FrontModule *m);
bool module_is_for_cpu(const FrontModule *m);
const NodeList *module_statements(const FrontModule *m);

/* The FUNCTION node of a jit function by name; NULL after an error, which lists those
   that exist. */
const Node *module_kernel(FrontModule *m, const char *name);
/* The function, jit or of the host, that a name is bound to; NULL: none. */
const Node *module_function(FrontModule *m, Name name, bool jit);
/* The i-th jit function that the file defines and binds to a name, in source order; NULL:
   it has fewer. */
const Node *module_own_function(const FrontModule *m, int i);

/* The first `return` with a value in these statements, which makes a function a helper;
   NULL: there is none. */
const Node *module_returned(const NodeList *l);
/* Message about a name that is bound to several functions, by conditions that are
   unknown. */
#define MODULE_UNCERTAIN                                                                 \
    "'%s' is one of several, and which one only Python could tell when it loads the "    \
    "file"
/* Is it a module of Triton, Python or torch that sdc knows without a file? */
bool module_is_known(const char *path);

/* The file of an import; NULL when there is none. */
FrontModule *module_load_import(FrontModule *from, Name path, int level);
/* The same in the folders of -I only: for modules that the interpreter replaces. */
FrontModule *module_load_included(FrontModule *from, Name path);
/* A file already loaded for the same root file, by its path. */
FrontModule *module_cached(FrontModule *from, const char *path);
/* Parses a text as one more file of the same root. */
FrontModule *module_add(FrontModule *from, const Source *src);

/* ---- for the interpreter of module level code (py.h) */

struct PyVal;
struct PyScope;
struct PyFunc;
struct Interp;

struct Interp *module_interp(const FrontModule *m);
/* The innermost scope that code of this file, or of this view of it, sees. */
struct PyScope *module_scope(const FrontModule *m);
/* The file as seen by a function that was made in this scope. */
FrontModule *module_view(FrontModule *m, struct PyScope *scope);
bool module_is_package(const FrontModule *m); /* __init__.py */
/* The value of a name of the file, imported ones included; NULL: it has none. Executes
   the file if that was not done. */
const struct PyVal *module_name(FrontModule *m, Name name);
/* Called for each top-level assignment or definition, of value v: notes kernels, and
   returns the value to bind, which -D may replace. */
const struct PyVal *module_bound(struct Interp *in, FrontModule *m, const Node *target,
                                 const struct PyVal *v);
const struct PyVal *module_defined(struct Interp *in, FrontModule *m, const Node *n,
                                   const struct PyVal *v);
/* Called for each top-level class: notes its jit functions. */
void module_class_defined(struct Interp *in, FrontModule *m, const struct PyVal *class_);
/* The jit function that a FUNCTION node belongs to; NULL: none. */
const struct PyFunc *module_jit_object(const FrontModule *m, const Node *fn);
/* The view of its file that the code of function fn sees. */
FrontModule *module_home(FrontModule *m, const Node *fn);
/* Adds notes to the last error: why a value is not known, and which -D decides it. */
void module_explain(FrontModule *m, const struct PyVal *unknown);

/* Adds a note for each environment variable that the file reads and -D does not set,
   since such variables often decide what is not known. */
void module_explain_environment(FrontModule *m, const Source *src);

/* -D NAME=VALUE: the value of a name, NULL without one; their number; the i-th NAME, and
   its VALUE as text. */
bool module_has_defines(const FrontModule *m);
const struct PyVal *module_define(const FrontModule *m, const char *name);
int module_define_count(const FrontModule *m);
const char *module_define_text(const FrontModule *m, int i, const char **value);

#endif
