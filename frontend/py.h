/* An interpreter for the Python code of a file outside of kernels. It executes the file
   once, from top to bottom, as Python would: names end up bound to the values that Python
   would give them, and kernels read those through module_lookup (globals.c).

   A value that only Python could compute (a call into a package that has no file here, a
   property of the machine) is PY_UNKNOWN. Operators and calls on it give PY_UNKNOWN. If a
   condition is unknown both arms are executed, each on the state before it; names on
   which they differ become unknown, with both values kept for messages. Nothing is
   guessed.

   Input is hostile: steps, depth and sizes are limited. What a limit cuts short is
   unknown, with the limit as the reason. The interpreter reports no errors itself.

   Values do not change once made, except the contents of lists, dicts and objects. All
   memory is in Interp.a. Functions that return a Py return PY_UNKNOWN for what is not
   known, and NULL only where their comment says so. */
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
    PY_MAX_CALLS = 100,     /* nested calls of functions of the source */
    PY_MAX_STEPS = 300000,  /* of one statement of a file */
    PY_ALL_STEPS = 3000000, /* of a file and all that it imports */
    PY_FEW_STEPS = 300,     /* of one statement when PY_ALL_STEPS are spent */
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
    PY_DECORATOR, /* triton.jit(..), autotune(..), heuristics(..), not applied yet */
    PY_MODULE,
    PY_IMPORT, /* an import, which is resolved when it is used */
    PY_FE      /* dtype, function or class of triton.language */
} PyKind;

typedef struct PyVal PyVal;
typedef const PyVal *Py;
typedef struct PyScope PyScope;

/* Why a value is not known. */
typedef struct PyUnknown {
    Loc loc;
    const char *why; /* "it needs a module that is not here", for messages */
    const char *key; /* the NAME with which -D NAME=VALUE decides it; NULL: too long */
    const char *missing; /* dotted name of an import that has no file */
    bool object;         /* an object of a class of a file, with an unknown base */
    Py one, other;       /* the values in both arms of a condition; NULL: not bound */
    Loc at[2];           /* where those are bound */
} PyUnknown;

/* Elements of a list, tuple or set. */
typedef struct PyList {
    Py *at;
    int n, cap;
    int epoch; /* the fork in which it was last logged, see pyfork_begin */
    Py lost;   /* not NULL: its contents are not known, and this unknown says why */
} PyList;

typedef struct PyDict {
    Py *key, *val;
    int n, cap;
    int epoch; /* as of PyList */
    Py lost;
} PyDict;

/* A decorator whose arguments are read later: autotune, heuristics, jit. */
typedef struct PyDecor {
    const char *kind; /* "jit", "autotune", "heuristics" */
    const Node *call; /* NULL: no arguments */
    Py args, named;   /* tuple, dict */
    const struct PyDecor *next;
} PyDecor;

typedef struct PyFunc {
    const Node *node;  /* FUNCTION or LAMBDA; a copy of its own for each jit function */
    FrontModule *home; /* its file, seen from the scope that it was made in */
    bool jit;
    bool is_generator;
    const PyDecor *decor; /* outermost first */
    Py defaults;          /* tuple, an element per parameter; NULL element: none */
} PyFunc;

typedef struct PyClass {
    const char *name;
    const Node *node;
    FrontModule *home; /* as of PyFunc */
    PyScope *body;
    Py bases; /* tuple */
    bool is_enum;
    bool is_int, is_str; /* IntEnum, StrEnum: its members are integers, strings */
    bool is_shown;       /* str() of a member is that of its value */
    bool is_data;        /* a dataclass: its fields are the parameters of __init__ */
    bool is_tuple;       /* a NamedTuple */
    bool is_aggregate;   /* triton.aggregate: kernels make its objects */
    Vec(Name) fields;
    bool known; /* false: an unknown base or decorator may change everything */
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
            struct PyVal *done; /* its value; NULL: not resolved yet */
            int busy;           /* it is being resolved: a cycle of imports */
        } * import;
        Val fe;
    } u;
};

/* ---- scopes (pyscope.c) */

typedef struct PyBind {
    Name name;
    Py val; /* NULL: deleted or not bound yet */
    Loc loc;
    int seq;         /* larger for later bindings */
    bool constexpr_; /* annotated so */
} PyBind;

/* from M import * */
typedef struct PyStar {
    ModuleImport what;
    Py from; /* the module; NULL: not resolved yet */
    int seq; /* as of PyBind */
} PyStar;

struct PyScope {
    PyScope *up; /* the scope that the function was made in; NULL: this is a module's */
    Map index;   /* Name -> PyBind, in the order of first binding */
    Vec(PyStar) stars;
    Vec(Name) outer; /* global and nonlocal names */
    FrontModule *m;
    bool is_class; /* functions inside do not see its names */
    bool is_comprehension;
};

PyScope *pyscope_new(Interp *in, FrontModule *m, PyScope *up);
/* NULL: not bound in this scope; outer ones are not searched. */
PyBind *pyscope_find(const PyScope *s, Name name);
void pyscope_set(Interp *in, PyScope *s, Name name, Py v, Loc loc, bool constexpr_);

/* Forks: state is recorded at pyfork_begin, one arm of a condition is executed, its
   changes are undone, then the other arm is executed, and pyfork_merge makes the state
   after both. Forks nest. A change is of a name of a scope, of a list or of a dict. */
typedef struct PyChange {
    PyScope *scope; /* or NULL */
    Name name;
    PyList *list; /* or NULL */
    PyDict *dict; /* or NULL */
    PyBind old_bind, new_bind;
    PyList old_list, new_list;
    PyDict old_dict, new_dict;
    bool was_there;
} PyChange;
typedef Vec(PyChange) PyChanges;
/* A point in Interp.log to which changes are undone. */
typedef struct PyFork {
    int mark, epoch;
} PyFork;
PyFork pyfork_begin(Interp *in);
/* Undoes all changes since the fork and returns them; ends the fork. */
PyChanges pyfork_undo(Interp *in, PyFork f);
/* Makes these changes again. */
void pyfork_redo(Interp *in, const PyChanges *c);
/* The changes of names of scope s alone, and all but those. */
PyChanges pyfork_only(Interp *in, const PyChanges *c, const PyScope *s);
PyChanges pyfork_without(Interp *in, const PyChanges *c, const PyScope *s);
/* Makes the state after one of two arms, with changes a or b, of which `why`, an unknown,
   decides which one ran. */
void pyfork_merge(Interp *in, const PyChanges *a, const PyChanges *b, Py why);
/* To be called before the contents of a list or dict are changed: logs them. */
void pylist_touch(Interp *in, PyList *l);
void pydict_touch(Interp *in, PyDict *d);
/* del l[at]; false: nothing was deleted, since the index is not known. */
bool pylist_delete(Interp *in, PyList *l, Py at, Loc loc);

/* The unknown that is a or b; `why`, an unknown, decides which. */
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
/* The exception on its way up. */
typedef struct PyRaise {
    const char *type; /* NULL: nothing is raised */
    Loc loc;
} PyRaise;

/* A try statement whose body is being executed. */
typedef struct PyTry {
    struct PyTry *up;
    bool catches_import; /* ImportError */
    bool catches_other;  /* any other exception that may happen */
    Py maybe; /* an unknown that may have raised an exception; NULL: none */
} PyTry;

/* A function, or the code of a module, that is being executed. */
typedef struct PyFrame {
    PyScope *scope;
    const PyFunc *func; /* NULL: a module */
    Py self;            /* its first argument, or NULL */
    Py ret;             /* what it returns */
    Py pending;         /* what it has returned if an unknown condition held; or NULL */
    Py pending_why;     /* that unknown */
    Vec(Py) yielded;
    bool lost_loop; /* the loop has ended if an unknown condition held */
} PyFrame;

struct Interp {
    Session *s;
    Arena *a;
    FrontModule *root;
    PyFrame *frame;
    PyTry *try_;
    PyRaise raised;
    int depth, calls;      /* now: nested evaluations and calls */
    int64_t steps;         /* of the statement so far */
    int64_t all_steps;     /* of the file and its imports so far */
    int64_t budget;        /* of the statement */
    bool cut;              /* a limit cut the statement short */
    int keep;              /* > 0: py_lose keeps names bound after this PyBind.seq */
    int epoch, last_epoch; /* of the innermost fork, 0: none; of the latest one */
    Vec(PyChange) log;     /* changes in the forks that are open */
    int seq;               /* of the next binding */
    Map lines;             /* Source -> where its lines begin */
    Map files;             /* path -> loaded file, but for the root */
    Map found;             /* import_file.c: path that was searched -> file, or none */
    Map jit_nodes;         /* FUNCTION node -> PyFunc */
    Sema *sema;            /* evaluates what belongs to triton.language */
    const char *target;    /* "cpu", "sm_90a"; NULL: not known */
    Py none, yes, no;
};

/* ---- pyvalue.c */
/* A value of kind k, whose fields the caller fills in. */
PyVal *py_new(Interp *in, PyKind k);
Py py_bool(Interp *in, bool b);
Py py_int(Interp *in, Wide i);
Py py_float(Interp *in, double f);
Py py_str(Interp *in, const char *s);
Py py_strn(Interp *in, const char *s, size_t n);
/* A list, tuple or set with a copy of these elements. */
Py py_list(Interp *in, PyKind k, const Py *at, int n);
Py py_dict(Interp *in);
/* self: the value that a method is bound to, or NULL. */
Py py_builtin(Interp *in, const char *name, PyBuiltinFn *fn, Py self);
Py py_module(Interp *in, Name path, FrontModule *file);
/* An unknown; key and why as in PyUnknown. */
Py py_unknown(Interp *in, Loc loc, const char *key, const char *why, ...)
    __attribute__((format(printf, 4, 5)));
/* v if it is unknown, or the unknown that a constexpr holds; NULL: v is known. */
Py py_lost(Py v);
bool py_is_ascii(Py text); /* so that its bytes are its characters */
bool py_is_number(Py v);
double py_double(Py v); /* of a number */
/* bool(v) and a == b: 1, 0, or -1 if that is not known. depth: 0, it limits recursion. */
int py_truth(Interp *in, Py v);
int py_equal(Interp *in, Py a, Py b, int depth);
/* A member of an IntEnum or StrEnum as its integer or string; anything else as it is. */
Py py_plain(Py v);
/* What v holds if it is a constexpr; anything else as it is. And that as py_plain. */
Py py_unwrapped(Py v);
Py py_unwrapped_plain(Py v);
/* Appends the text of a member of an enumeration. */
void py_member_text(Buf *b, Py v, bool repr);
/* Are they one object, or equal numbers or strings? */
bool py_same(Py a, Py b);
/* Appends str(v), or repr(v); false: it is not known. */
bool py_text(Interp *in, Buf *b, Py v, bool repr, int depth);
void py_push(Interp *in, PyList *l, Py v);
void py_set_add(Interp *in, PyList *l, Py v); /* if it is not there */
Py py_constexpr(Interp *in, Py inner);
/* d[key]; NULL: it has none, or, with *lost set to an unknown, that is not known. */
Py pydict_get(Interp *in, const PyDict *d, Py key, Py *lost);
/* The same for a string; NULL: there is none. */
Py pydict_name(const PyDict *d, const char *name);
void pydict_set(Interp *in, PyDict *d, Py key, Py v);
/* Deletes the i-th entry; always true. */
bool pydict_del(Interp *in, PyDict *d, int i);

/* ---- pyexpr.c */
Py py_eval(Interp *in, const Node *n);
/* Raises an exception in the program that is executed; returns an unknown that says
   so. */
Py py_raise(Interp *in, Loc loc, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Is an exception on its way up, PY_LIMIT included? Callers stop then. */
bool py_raises(const Interp *in);
/* Counts n steps; false, and raises PY_LIMIT, when the budget is spent. */
bool py_step(Interp *in, int64_t n);
/* sign: an OpSign */
Py py_binary(Interp *in, int sign, Py a, Py b, Loc loc);
Py py_compare(Interp *in, int sign, Py a, Py b, Loc loc);
/* x[i:j:k] of a string, a list or a tuple. */
Py py_slice(Interp *in, Py x, Py s, Loc loc);
Py py_subscript(Interp *in, Py x, Py i, const Node *n);
/* The elements of anything that a for loop takes, as a list; NULL: they are not known,
   and *lost says why. */
PyList *py_elements(Interp *in, Py v, Loc loc, Py *lost);
bool py_is_name(const char *key); /* is it one identifier? */
/* The unknown that is an attribute, element or call result of an unknown; n: the
   expression, or NULL. */
Py py_unknown_part(Interp *in, Py whole, const Node *n);
/* The value of a PY_IMPORT, or of an unknown that is either Triton or a stand-in of the
   file for it; any other value as it is. */
Py py_resolve(Interp *in, Py v);
/* Is it surely of no use to a kernel: None, an object, a function of the host? */
bool py_is_hosts(Py v);
/* The value of a name in the current scopes; NULL: it is not defined. */
Py py_name(Interp *in, Name name);
/* The truth of an expression: 1, 0, or -1 with the unknown that decides in *why. */
int py_condition(Interp *in, const Node *n, Py *why);
/* The text of an expression in its file; NULL: too long. */
const char *py_source(Interp *in, const Node *n);

/* ---- pyformat.c */
/* Appends format(v, spec); false: it is not known. */
bool py_format(Interp *in, Buf *b, Py v, const char *spec);
Py py_percent(Interp *in, Py text, Py args, Loc loc); /* text % args */

/* ---- pystmt.c */
/* Executes statements, until one does not go on to the next. */
PyFlow py_exec(Interp *in, const NodeList *l);
/* target = v; constexpr_: it is annotated so. */
void py_assign(Interp *in, const Node *target, Py v, bool constexpr_);
/* Executes a whole file. */
void py_run(Interp *in, FrontModule *m);
/* Makes unknown what a statement binds that was not executed, or not to its end; `why`:
   an unknown. */
void py_lose(Interp *in, const Node *n, Py why, int depth);

/* ---- pyflow.c */
/* Executes an if, for, while, try, with or raise. */
PyFlow py_control(Interp *in, const Node *n);

/* ---- pycall.c */
Py py_call(Interp *in, Py fn, PyCall *c);
Py py_eval_call(Interp *in, const Node *n);
/* The value of a def or lambda, with its decorators applied. */
Py py_make_function(Interp *in, const Node *n);
/* The same without decorators, in the scope of `home`. */
Py py_function_of(Interp *in, const Node *n, const FrontModule *home);
/* The result of calling an unknown function: it may change lists and dicts among its
   arguments, and may raise. */
Py py_call_unknown(Interp *in, Py fn, const PyCall *c);
const char *py_decorator_name(const Node *d); /* "jit" of @triton.jit */
Py py_renamed(Interp *in, Py fn, Name name);  /* a jit function under another name */

/* ---- pyclass.c */
Py py_make_class(Interp *in, const Node *n);
Py py_instantiate(Interp *in, Py class_, const PyCall *c);
/* An object without attributes of a class that pylib.c knows. */
Py py_object_of(Interp *in, const char *type);
/* x.name of an object or a class; NULL: there is none. */
Py py_object_attribute(Interp *in, Py x, Name name);
Py py_class_attribute(Interp *in, Py class_, Name name);
/* super() */
Py py_super(Interp *in, const PyCall *c);
/* x.name = v */
void py_set_attribute(Interp *in, Py x, Name name, Py v, Loc loc);
/* What class k or a base of it binds the name to; NULL: nothing. */
Py py_class_find(Interp *in, const PyClass *k, Name name);

/* ---- pyattr.c */
/* A builtin of Python by name; NULL: there is none. */
Py py_python_name(Interp *in, Name name);
/* x.attr. n: the expression, for messages. Without the attribute it raises
   AttributeError; quiet: it returns NULL, if it surely has none. */
Py py_attribute(Interp *in, Py x, Name attr, const Node *n, bool quiet);
/* The same of a module; NULL: it surely has none. */
Py py_module_attribute(Interp *in, Py m, Name attr, Loc loc);

/* ---- pyimport.c */
/* Is the dotted name `top`, or inside of that package? */
bool py_is_below(const char *path, const char *top);
/* Has a Python installation that runs Triton this module? 1, 0, or -1: it belongs to the
   program. */
int py_has_module(const char *path);
/* What an import binds. raise: in a try that catches ImportError, an import without a
   file raises it; else the result is unknown. */
Py py_import(Interp *in, FrontModule *from, const ModuleImport *im, bool raise);
/* Is exception `type` one of `of`, as `except` would say? */
bool py_exception_is(const char *type, const char *of);

/* ---- pybridge.c: to and from values of kernels (frontend/value.h) */
/* v for a kernel; an error, which names it `name`, if kernels have no such value. */
Val py_to_val(Sema *s, Py v, const char *name, Loc loc);
Py py_from_val(Interp *in, Val v);
/* A call of a function of triton.language by host code. */
Py py_fe_call(Interp *in, Py fn, const PyCall *c);
/* A member of a module of triton.language, by its path, and an attribute of a PY_FE;
   NULL: there is none. */
Py py_fe_member(Interp *in, const char *path, Name attr, Loc loc);
Py py_fe_attribute(Interp *in, Py x, Name attr, Loc loc);
/* Calls a function of the host, such as one of @triton.heuristics, with what a launch
   knows; NULL: the result needs more. */
Val py_call_host(Sema *s, Py fn, Py args);
/* Calls a constexpr function; NULL: it raises, its result is unknown, or an argument is
   no constant. */
Val py_call_constexpr(Sema *s, Val fn, const CallArg *args, int n, Loc loc);
/* A method that Python has for a constant, bound to it; NULL: there is none. */
Val py_method(Sema *s, Val x, Name name);
/* An attribute of a member of an enumeration: name, value, what its class has; NULL:
   none. */
Val py_member_attribute(Sema *s, Val x, Name attr, Loc loc);
/* The member that a constexpr holds. */
Val py_member_bare(Sema *s, Val m);

#endif
