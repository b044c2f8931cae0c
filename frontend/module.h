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
const NodeList *module_statements(const FrontModule *m);

/* A jit function by name; without one an error that lists those there are. */
const Node *module_kernel(FrontModule *m, const char *name);
/* NULL when the name is not bound to such a thing. */
const Node *module_jit_function(FrontModule *m, Name name);
const Node *module_host_function(FrontModule *m, Name name);
const Node *module_global_node(FrontModule *m, Name name); /* its value expression */
bool module_import(FrontModule *m, Name name, ModuleImport *out);
/* The i-th thing a name is bound to, from the one that counts to fall-backs (other arms
   of its `try` or `if`) and earlier statements: a node, or, with NULL, an import. */
bool module_alternative(FrontModule *m, Name name, int i, const Node **value,
                        ModuleImport *im);
/* Does what the name means depend on a condition that sdc cannot decide? Then where two
   of its meanings are, and the condition. */
bool module_uncertain(FrontModule *m, Name name, Loc *one, Loc *other, Loc *cond);
#define MODULE_UNCERTAIN \
    "'%s' is one of several, and which one only Python could tell when it loads the file"
/* A module of Triton's, Python's or torch's that sdc knows without a file. */
bool module_is_known(const char *path);
/* The i-th `from x import *`. */
bool module_star_import(FrontModule *m, int i, ModuleImport *out);

/* The file of an import; NULL when there is none. */
FrontModule *module_load_import(FrontModule *from, Name path, int level);
/* A file already loaded for the same root file, by its path. */
FrontModule *module_cached(FrontModule *from, const char *path);
/* Parses a text as one more file of the same root. */
FrontModule *module_add(FrontModule *from, const Source *src);

#endif
