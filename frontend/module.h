/* A parsed file and the names at its top level: jit functions, host functions, globals
   and imports, those inside of top-level `if` and `try` too. Files that it imports are
   found beside it, in the folders of -I, and above it as far as its package goes; each
   is loaded once. */
#ifndef SDC_FRONTEND_MODULE_H
#define SDC_FRONTEND_MODULE_H

#include "frontend/ast.h"
#include "frontend/frontend.h"

/* What an import statement binds a name to: a module, or `member` of one. */
typedef struct ModuleImport {
    Name path;   /* dotted; may be NULL in `from . import x` */
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

/* A jit function by name; without one an error that lists those there are. */
const Node *module_kernel(FrontModule *m, const char *name);
/* The function, jit or of the host, that a name is bound to; NULL: none. */
const Node *module_function(FrontModule *m, Name name, bool jit);
/* The i-th jit function that the file made and bound to a name, in order; NULL: no more.
 */
const Node *module_own_function(const FrontModule *m, int i);

/* The first 'return' with a value in these statements, which makes a function a helper;
   NULL: there is none. */
const Node *module_returned(const NodeList *l);
#define MODULE_UNCERTAIN                                                                 \
    "'%s' is one of several, and which one only Python could tell when it loads the "    \
    "file"
/* A module of Triton's, Python's or torch's that sdc knows without a file. */
bool module_is_known(const char *path);

/* The file of an import; NULL when there is none. */
FrontModule *module_load_import(FrontModule *from, Name path, int level);
/* The same in the folders of -I alone: for what the interpreter stands in for. */
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
/* The names that code of this file, or of a function in it, sees first. */
struct PyScope *module_scope(const FrontModule *m);
/* The file as a function sees it that was made in this scope. */
FrontModule *module_view(FrontModule *m, struct PyScope *scope);
bool module_is_package(const FrontModule *m); /* __init__.py */
/* What the file binds a name to, its imports included; NULL: nothing. Runs the file when
   that was not done. */
const struct PyVal *module_name(FrontModule *m, Name name);
/* What a top-level assignment or definition binds: kernels are noted, -D replaces. */
const struct PyVal *module_bound(struct Interp *in, FrontModule *m, const Node *target,
                                 const struct PyVal *v);
const struct PyVal *module_defined(struct Interp *in, FrontModule *m, const Node *n,
                                   const struct PyVal *v);
/* A class at the top of the file: its jit functions are noted. */
void module_class_defined(struct Interp *in, FrontModule *m, const struct PyVal *class_);
/* The jit function that a FUNCTION node belongs to; NULL: none. */
const struct PyFunc *module_jit_object(const FrontModule *m, const Node *fn);
/* The names that its code sees: those of its file, or of the function that made it. */
FrontModule *module_home(FrontModule *m, const Node *fn);
/* Notes to the last error: why a value is not known, and what decides it. */
void module_explain(FrontModule *m, const struct PyVal *unknown);

/* A note for each variable of the environment that the file asks for and -D does not set:
   mostly it is what decides. */
void module_explain_environment(FrontModule *m, const Source *src);

/* -D NAME=VALUE */
bool module_has_defines(const FrontModule *m);
const struct PyVal *module_define(const FrontModule *m, const char *name);
int module_define_count(const FrontModule *m);
const char *module_define_text(const FrontModule *m, int i, const char **value);

#endif
