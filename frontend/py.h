/* Module level code, executed as Python would: a small interpreter of statements and
   expressions over values of the host. It runs a file once, from top to bottom; names end
   up bound to what Python would bind them to, and what a kernel may use of them goes
   through module_lookup (globals.c).

   What cannot be known without Python (a call into a package that has no file here, a
   property of the machine) is the value PY_UNKNOWN. It goes through operators and calls.
   A condition that is unknown runs both arms, each on the state before it; names that
   then differ are unknown, with both values kept for the message. Nothing is guessed.

   Every input is hostile: steps, depth and sizes are limited, and what a limit cut short
   is unknown, with the limit as its reason. No message is made here. */
#ifndef SDC_FRONTEND_PY_H
#define SDC_FRONTEND_PY_H

#include "frontend/module.h"
#include "frontend/sema.h"
#include "frontend/value.h"
#include "ir/base/map.h"
#include "ir/base/vec.h"

__extension__ typedef unsigned __int128 PyWord;

enum {
    PY_MAX_DEPTH = 1500,    /* nested evaluations, calls included */
    PY_MAX_CALLS = 100,     /* calls of functions of the source in one another */
    PY_MAX_STEPS = 300000,  /* of one statement of a file */
    PY_ALL_STEPS = 3000000, /* of a file and all that it imports */
    PY_FEW_STEPS = 300,     /* of one statement when those are spent */
    PY_MAX_SIZE = 100000,   /* elements of a list, bytes of a string */
    PY_MAX_ABOVE = 16,      /* classes that inherit from one another */
};

typedef enum PyKind {
    PY_UNKNOWN,
    PY_NONE,
    PY_BOOL,
    PY_INT,
    PY_FLOAT,
    PY_STR,
    PY_TUPLE,
    PY_LIST,
    PY_SET,
    PY_DICT,
    PY_RANGE,
    PY_SLICE,
    PY_CONSTEXPR, /* tl.constexpr(x) */
    PY_FUNC,      /* function or lambda of a file, jit or not */
    PY_BUILTIN,   /* function of Python or of a library that pylib.c knows, or a method */
    PY_CLASS,     /* of a file */
    PY_OBJECT,    /* of such a class, or of one that pylib.c knows */
    PY_DECORATOR, /* triton.jit(..), autotune(..), heuristics(..) before it has a function
                   */
    PY_MODULE,
    PY_IMPORT, /* not looked at before it is used */
    PY_FE      /* dtype, function or class of triton.language */
} PyKind;

typedef struct PyVal PyVal;
typedef const PyVal *Py;
typedef struct PyScope PyScope;

/* Why a value is not known. */
typedef struct PyUnknown {
    Loc loc;
    const char *why; /* "it needs a module that is not here": no subject, lower case */
    const char *key; /* what -D decides it by; NULL: nothing short */
    const char *missing; /* dotted name of an import that has no file */
    bool object; /* of a class of a file, whose base is not known here */
    Py one, other;       /* with a condition: the values, NULL: not bound */
    Loc at[2];           /* where those are bound */
} PyUnknown;

/* Elements of a list, tuple or set. */
typedef struct PyList {
    Py *at;
    int n, cap;
    int epoch; /* of the last copy, see pyscope.c */
    Py lost;   /* not NULL: what it holds is this unknown */
} PyList;

typedef struct PyDict {
    Py *key, *val;
    int n, cap;
    int epoch;
    Py lost;
} PyDict;

/* A decorator whose arguments matter later: autotune, heuristics, jit. */
typedef struct PyDecor {
    const char *kind; /* "jit", "autotune", "heuristics" */
    const Node *call; /* NULL: no arguments */
    Py args, named;   /* tuple, dict */
    const struct PyDecor *next;
} PyDecor;

typedef struct PyFunc {
    const Node *node;  /* FUNCTION or LAMBDA; of its own for each jit function */
    FrontModule *home; /* a view of its file with the scope it was made in */
    bool jit;
    bool is_generator;
    const PyDecor *decor; /* outermost first */
    Py defaults;          /* tuple, one a parameter, NULL element: none */
} PyFunc;

typedef struct PyClass {
    const char *name;
    const Node *node;
    FrontModule *home; /* as of PyFunc */
    PyScope *body;
    Py bases; /* tuple */
    bool is_enum;
    bool is_int, is_str; /* its members are integers, strings, too */
    bool is_shown;       /* str() of a member is that of its value */
    bool is_data; /* fields in order are the parameters of __init__ */
    bool is_tuple;     /* a NamedTuple */
    bool is_aggregate; /* of Triton: kernels make its objects */
    Vec(Name) fields;
    bool known; /* false: a base or decorator may change everything */
    Loc loc;
} PyClass;

typedef struct PyObject {
    Py class_;        /* PY_CLASS, or NULL */
    const char *type; /* of pylib.c: "Config", "Version", "namespace" */
    PyDict *attrs;
} PyObject;

typedef struct Interp Interp;
typedef struct PyCall PyCall;
typedef Py PyBuiltinFn(Interp *in, const PyCall *c);

/* Arguments of a call. */
struct PyCall {
    Py self; /* of a method */
    Py *at;
    int n;
    Py named; /* dict, never NULL */
    const Node *node;
    const char *name; /* of the function */
    Loc loc;
};

struct PyVal {
    PyKind kind;
    union {
        Wide i;
        double f;
        struct {
            const char *s;
            size_t n;
        } str;
        PyList *list;
        PyDict *dict;
        struct {
            Wide start, stop, step;
        } range;
        Py slice[3];
        const PyUnknown *unknown;
        Py inner;
        const PyFunc *func;
        const PyDecor *decor;
        struct {
            const char *name;
            PyBuiltinFn *fn;
            Py self;
        } builtin;
        PyClass *class_;
        PyObject *object;
        struct {
            Name path;         /* dotted */
            FrontModule *file; /* NULL: known by name only */
        } module;
        struct {
            FrontModule *from;
            ModuleImport what;
            struct PyVal *done; /* its value, once it is known */
            int busy;
        } * import;
        Val fe;
    } u;
};

/* ---- scopes (pyscope.c) */

typedef struct PyBind {
    Name name;
    Py val; /* NULL: deleted or not there yet */
    Loc loc;
    int seq;         /* later bindings have larger ones */
    bool constexpr_; /* annotated so */
} PyBind;

typedef struct PyStar {
    ModuleImport what;
    Py from; /* NULL: nobody has asked */
    int seq;
} PyStar;

struct PyScope {
    PyScope *up; /* where the function was made; NULL: a module's */
    Map index;   /* Name -> PyBind, in the order of first binding */
    Vec(PyStar) stars;
    Vec(Name) outer; /* global and nonlocal names */
    FrontModule *m;
    bool is_class; /* its names are not seen from functions inside */
    bool is_comprehension;
};

PyScope *pyscope_new(Interp *in, FrontModule *m, PyScope *up);
PyBind *pyscope_find(const PyScope *s, Name name); /* NULL when not bound there */
void pyscope_set(Interp *in, PyScope *s, Name name, Py v, Loc loc, bool constexpr_);

/* What happened since a fork; forks nest. */
typedef struct PyChange {
    PyScope *scope;
    Name name;
    PyList *list;
    PyDict *dict;
    PyBind old_bind, new_bind; /* scope */
    PyList old_list, new_list;
    PyDict old_dict, new_dict;
    bool was_there;
} PyChange;
typedef Vec(PyChange) PyChanges;
typedef struct PyFork {
    int mark, epoch;
} PyFork;
PyFork pyfork_begin(Interp *in);
/* Takes back what was changed, and says what it was. */
PyChanges pyfork_undo(Interp *in, PyFork f);
void pyfork_redo(Interp *in, const PyChanges *c);
/* Those of the names of a scope, or all others. */
PyChanges pyfork_only(Interp *in, const PyChanges *c, const PyScope *s);
PyChanges pyfork_without(Interp *in, const PyChanges *c, const PyScope *s);
/* The state after one of two arms ran, and nobody knows which. `why` is the unknown that
   decides. */
void pyfork_merge(Interp *in, const PyChanges *a, const PyChanges *b, Py why);
/* Before a change of their contents. */
void pylist_touch(Interp *in, PyList *l);
/* del l[at]; false: nothing was done, since only Python knows what. */
bool pylist_delete(Interp *in, PyList *l, Py at, Loc loc);
void pydict_touch(Interp *in, PyDict *d);

/* One of two values, and `why`, an unknown, decides. */
Py py_either(Interp *in, Py why, Py a, Py b, Loc at_a, Loc at_b);

/* ---- the interpreter */

typedef enum PyFlow {
    PYFLOW_NEXT,
    PYFLOW_RETURN,
    PYFLOW_BREAK,
    PYFLOW_CONTINUE,
    PYFLOW_RAISE
} PyFlow;

#define PY_LIMIT "limit" /* raised by a limit of sdc: nothing catches it */
typedef struct PyRaise {
    const char *type; /* NULL: nothing is raised */
    Loc loc;
} PyRaise;

/* A try statement that runs. */
typedef struct PyTry {
    struct PyTry *up;
    bool catches_import, catches_other; /* ImportError; what else may happen */
    Py maybe; /* an unknown that may have raised anything; NULL: none */
} PyTry;

typedef struct PyFrame {
    PyScope *scope;
    const PyFunc *func; /* that runs, NULL: the module */
    Py self;            /* its first argument, or NULL */
    Py ret;
    Py pending; /* what it may have returned under an unknown condition */
    Py pending_why;
    Vec(Py) yielded;
    bool lost_loop; /* break under an unknown condition */
} PyFrame;

struct Interp {
    Session *s;
    Arena *a;
    FrontModule *root;
    PyFrame *frame;
    PyTry *try_;
    PyRaise raised;
    int depth, calls;
    int64_t steps, all_steps, budget;
    bool cut;              /* by a limit: of those only functions and classes are whole */
    int keep;              /* > 0: what was bound later than this is not lost */
    int epoch, last_epoch; /* of the innermost fork; 0: none */
    Vec(PyChange) log;
    int seq;
    Map lines;          /* Source -> where its lines begin */
    Map files;          /* path -> file that was loaded; not the root */
    Map found;          /* import_file.c: what was looked for -> file, or none */
    Map jit_nodes;      /* FUNCTION node -> PyFunc */
    Sema *sema;         /* evaluates what belongs to triton.language */
    const char *target; /* "cpu", "sm_90a"; NULL: not known */
    Py none, yes, no;
};

/* pyvalue.c */
PyVal *py_new(Interp *in, PyKind k);
Py py_bool(Interp *in, bool b);
Py py_int(Interp *in, Wide i);
Py py_float(Interp *in, double f);
Py py_str(Interp *in, const char *s);
Py py_strn(Interp *in, const char *s, size_t n);
Py py_list(Interp *in, PyKind k, const Py *at, int n); /* copies */
Py py_dict(Interp *in);
Py py_builtin(Interp *in, const char *name, PyBuiltinFn *fn, Py self);
Py py_module(Interp *in, Name path, FrontModule *file);
Py py_unknown(Interp *in, Loc loc, const char *key, const char *why, ...)
    __attribute__((format(printf, 4, 5)));
/* The unknown in it, looking into constexpr; NULL: it is known. */
Py py_lost(Py v);
bool py_is_ascii(Py text); /* bytes are characters */
bool py_is_number(Py v);
double py_double(Py v);
/* 1, 0, or -1: not known. */
int py_truth(Interp *in, Py v);
int py_equal(Interp *in, Py a, Py b, int depth);
/* A member of an IntEnum or StrEnum as its integer or string; anything else as it is. */
Py py_plain(Py v);
void py_member_text(Buf *b, Py v, bool repr); /* of an enumeration */
bool py_same(Py a, Py b); /* one object, or equal numbers and strings */
/* As str() and repr() do; false: not known. */
bool py_text(Interp *in, Buf *b, Py v, bool repr, int depth);
void py_push(Interp *in, PyList *l, Py v);
void py_set_add(Interp *in, PyList *l, Py v);
Py py_constexpr(Interp *in, Py inner);
Py pydict_get(Interp *in, const PyDict *d, Py key, Py *lost); /* NULL: not there */
Py pydict_name(const PyDict *d, const char *name);
void pydict_set(Interp *in, PyDict *d, Py key, Py v);
bool pydict_del(Interp *in, PyDict *d, int i);

/* pyexpr.c */
Py py_eval(Interp *in, const Node *n);
/* Raises in the program that runs; the value is an unknown that says so. */
Py py_raise(Interp *in, Loc loc, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool py_raises(const Interp *in); /* and a limit */
bool py_step(Interp *in, int64_t n);
Py py_binary(Interp *in, int sign, Py a, Py b, Loc loc);
Py py_compare(Interp *in, int sign, Py a, Py b, Loc loc);
/* x[i:j:k] of a string, a list or a tuple. */
Py py_slice(Interp *in, Py x, Py s, Loc loc);
Py py_subscript(Interp *in, Py x, Py i, const Node *n);
/* Elements of anything that a for loop takes, as a list; NULL: unknown, in *lost. */
PyList *py_elements(Interp *in, Py v, Loc loc, Py *lost);
bool py_is_name(const char *key); /* a plain name */
/* Part of something unknown. */
Py py_unknown_part(Interp *in, Py whole, const Node *n);
/* What an import or an unknown of modules stands for. */
Py py_resolve(Interp *in, Py v);
/* Surely nothing that a kernel can use: None, an object, a function of the host. */
bool py_is_hosts(Py v);
Py py_name(Interp *in, Name name); /* NULL: not defined */
/* 1, 0, or -1 with the unknown that decides in *why. */
int py_condition(Interp *in, const Node *n, Py *why);
const char *py_source(Interp *in, const Node *n); /* text of an expression or NULL */

/* pyformat.c: format(v, spec) appended; false: not known */
bool py_format(Interp *in, Buf *b, Py v, const char *spec);
Py py_percent(Interp *in, Py text, Py args, Loc loc); /* text % args */

/* pystmt.c */
PyFlow py_exec(Interp *in, const NodeList *l);
void py_assign(Interp *in, const Node *target, Py v, bool constexpr_);
PyFlow py_exec_one(Interp *in, const Node *n);
void py_run(Interp *in, FrontModule *m);
/* What a statement that was not run, or not to its end, would have bound is unknown. */
void py_lose(Interp *in, const Node *n, Py why, int depth);

/* pyflow.c: if, for, while, try, with, raise */
PyFlow py_control(Interp *in, const Node *n);

/* pycall.c */
Py py_call(Interp *in, Py fn, PyCall *c);
Py py_eval_call(Interp *in, const Node *n);
Py py_make_function(Interp *in, const Node *n);
/* The function of a node, as the code of its file made it, without its decorators. */
Py py_function_of(Interp *in, const Node *n, const FrontModule *home);
/* A call of which nothing is known. */
Py py_call_unknown(Interp *in, Py fn, const PyCall *c);
const char *py_decorator_name(const Node *d); /* its last part */
Py py_renamed(Interp *in, Py fn, Name name);  /* a jit function under another name */

/* pyclass.c */
Py py_make_class(Interp *in, const Node *n);
Py py_instantiate(Interp *in, Py class_, const PyCall *c);
Py py_object_of(Interp *in, const char *type);
Py py_object_attribute(Interp *in, Py x, Name name); /* NULL: none */
Py py_class_attribute(Interp *in, Py class_, Name name);
Py py_super(Interp *in, const PyCall *c);
void py_set_attribute(Interp *in, Py x, Name name, Py v, Loc loc);
/* What it or a base binds; NULL: none. */
Py py_class_find(Interp *in, const PyClass *k, Name name);

/* pyattr.c */
Py py_python_name(Interp *in, Name name); /* NULL: there is none */
Py py_attribute(Interp *in, Py x, Name attr, const Node *n, bool quiet); /* NULL: none */
Py py_module_attribute(Interp *in, Py m, Name attr, Loc loc); /* NULL: surely none */
/* pyimport.c */
/* Is a dotted name this one or inside of it? */
bool py_is_below(const char *path, const char *top);
/* Does a Python that runs Triton have it? 1, 0, or -1: it is a host's. */
int py_has_module(const char *path);
Py py_import(Interp *in, FrontModule *from, const ModuleImport *im, bool raise);
bool py_exception_is(const char *type, const char *of);

/* pybridge.c: to and from the values of kernels */
Val py_to_val(Sema *s, Py v, const char *name, Loc loc); /* reports what has no value */
Py py_fe_call(Interp *in, Py fn, const PyCall *c);
/* NULL: there is none. */
Py py_fe_member(Interp *in, const char *path, Name attr, Loc loc);
Py py_fe_attribute(Interp *in, Py x, Name attr, Loc loc);
/* Calls a function of the host with what a launch knows; NULL: it needs more. */
Val py_call_host(Sema *s, Py fn, Py args);
/* A call of a constexpr function, as Python runs it; NULL: it raises, or Python alone
   could tell, or an argument is no constant. */
Val py_call_constexpr(Sema *s, Val fn, const CallArg *args, int n, Loc loc);
/* A method of Python's of a constant, bound to it; NULL: there is none. */
Val py_method(Sema *s, Val x, Name name);
Py py_from_val(Interp *in, Val v);
/* Of a member of an enumeration: name, value, what its class has; NULL: none. */
Val py_member_attribute(Sema *s, Val x, Name attr, Loc loc);
Val py_member_bare(Sema *s, Val m); /* out of its constexpr */

#endif
