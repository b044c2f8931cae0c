/* Attributes of modules and values, and the names that Python has without an import. */
#include "frontend/pylib.h"

#include <ctype.h>
#include <string.h>

static bool
is_package(const char *path)
{
    static const char *const names[] = {
        "os.path",
        "importlib.util",
        "importlib.metadata",
        "torch.cuda",
        "torch.version",
        "torch.xpu",
        "packaging.version",
        "triton.runtime.driver.active",
        "collections.abc",
        "torch.backends",
        "torch.backends.cuda",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path, names[i]) == 0)
            return true;
    return module_is_known(path) ||
           (strncmp(path, "triton.", strlen("triton.")) == 0 && py_has_module(path) > 0);
}

/* triton.runtime.autotuner.Config is triton.Config, and so on. */
static const char *
canonical(const char *path)
{
    static const char *const names[] = {"jit", "autotune", "heuristics", "Config",
                                        "constexpr_function"};
    static const char *const full[] = {"triton.jit", "triton.autotune",
                                       "triton.heuristics", "triton.Config",
                                       "triton.constexpr_function"};
    const char *last = strrchr(path, '.');
    bool inside = strncmp(path, "triton.runtime", strlen("triton.runtime")) == 0 &&
                  strcmp(path, "triton.runtime.jit") != 0; /* a module */
    for (size_t i = 0; inside && last && i < sizeof names / sizeof *names; i++)
        if (strcmp(last + 1, names[i]) == 0)
            return full[i];
    return path;
}

/* hasattr(triton, x) is False for what is none of these. */
static bool
triton_lacks(const char *attr)
{
    static const char *const names[] = {
        "CompilationError",   "InterpreterError", "JITFunction",
        "KernelInterface",    "MockTensor",       "OutOfResources",
        "TensorWrapper",      "TritonError",      "compile",
        "must_use_result",    "reinterpret",      "set_allocator",
        "constexpr_function", "aggregate",        "AsyncCompileMode",
        "FutureKernel",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(attr, names[i]) == 0)
            return false;
    return true;
}

/* What packages of other vendors put into torch; there is no target of theirs. */
static bool
is_vendor(const char *attr)
{
    static const char *const names[] = {"npu", "mlu",  "musa", "corex",
                                        "gcu", "ptpu", "aipu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(attr, names[i]) == 0)
            return true;
    return false;
}

/* What math has beside the functions that pylib_host.c knows. */
static bool
math_lacks(const char *attr)
{
    static const char *const names[] = {
        "acos",  "acosh",     "asin",      "asinh",    "atan2",   "atanh",
        "cbrt",  "comb",      "copysign",  "cosh",     "degrees", "dist",
        "erfc",  "factorial", "fma",       "fmod",     "frexp",   "fsum",
        "gamma", "hypot",     "isclose",   "isfinite", "isinf",   "isnan",
        "isqrt", "lcm",       "ldexp",     "lgamma",   "modf",    "nextafter",
        "perm",  "radians",   "remainder", "sinh",     "sumprod", "ulp",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(attr, names[i]) == 0)
            return false;
    return true;
}

Py
py_module_attribute(Interp *in, Py m, Name attr, Loc loc)
{
    FrontModule *file = m->u.module.file;
    if (file) {
        Py v = module_name(file, attr);
        ModuleImport sub = {.path = attr, .level = 1, .loc = loc};
        FrontModule *f = v || !module_is_package(file)
                             ? NULL
                             : module_load_import(file, sub.path, sub.level);
        return v   ? v
               : f ? py_module(
                         in,
                         name_of(&in->s->names,
                                 arena_printf(in->a, "%s.%s", m->u.module.path, attr)),
                         f)
                   : NULL;
    }
    const char *path = canonical(arena_printf(in->a, "%s.%s", m->u.module.path, attr));
    Py v = module_define(in->root, path);
    if (!v)
        v = pylib_constant(in, path, loc);
    for (const PyEntry *e = pylib_host; e->name && !v; e++)
        if (strcmp(e->name, path) == 0)
            v = py_builtin(in, e->name, e->fn, NULL);
    if (!v && is_package(path))
        return py_module(in, name_of(&in->s->names, path), NULL);
    if (!v && module_is_known(m->u.module.path))
        v = py_fe_member(in, m->u.module.path, attr, loc);
    if (v)
        return v;
    bool kernel_side = py_is_below(m->u.module.path, "triton.language");
    if (kernel_side && module_is_known(m->u.module.path))
        return NULL;
    if (strcmp(m->u.module.path, "triton") == 0 && triton_lacks(attr))
        return NULL;
    if (strcmp(m->u.module.path, "torch") == 0 && is_vendor(attr))
        return NULL;
    if (strcmp(m->u.module.path, "math") == 0 && math_lacks(attr))
        return NULL;
    return py_unknown(in, loc, name_of(&in->s->names, path),
                      "'%s' is known to Python alone", path);
}

bool
py_is_name(const char *key)
{
    for (const char *p = key; p && *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return key && *key && !isdigit((unsigned char)*key);
}

Py
py_unknown_part(Interp *in, Py whole, const Node *n)
{
    Py lost = py_lost(whole);
    const char *key = n ? py_source(in, n) : NULL;
    PyVal *v = py_new(in, PY_UNKNOWN);
    PyUnknown *u = arena_new(in->a, PyUnknown);
    *u = *lost->u.unknown;
    u->one = u->other = NULL;
    u->missing = NULL;
    if (key && u->key && !py_is_name(u->key)) {
        u->key = key;
        u->loc = n->loc;
    }
    v->u.unknown = u;
    return v;
}

static Py
bit_length(Interp *in, const PyCall *c)
{
    Wide v = c->self->u.i;
    PyWord rest = v < 0 ? -(PyWord)v : (PyWord)v;
    int n = 0;
    for (; rest; rest >>= 1)
        n++;
    return py_int(in, n);
}

static Py
method(Interp *in, Py x, Name attr)
{
    if ((x->kind == PY_INT || x->kind == PY_BOOL) && strcmp(attr, "bit_length") == 0)
        return py_builtin(in, "bit_length", bit_length, x);
    const PyEntry *e = x->kind == PY_STR                           ? pylib_str
                       : x->kind == PY_LIST || x->kind == PY_TUPLE ? pylib_list
                       : x->kind == PY_DICT                        ? pylib_dict
                       : x->kind == PY_SET                         ? pylib_set
                                                                   : NULL;
    for (; e && e->name; e++)
        if (strcmp(e->name, attr) == 0 &&
            (x->kind != PY_TUPLE || attr[0] == 'i' || strcmp(attr, "count") == 0))
            return py_builtin(in, e->name, e->fn, x);
    return NULL;
}

/* functools.wraps gives it the name of another. */
static bool
is_wrapped(const Node *fn)
{
    for (int i = 0; i < fn->more.n; i++)
        if (strcmp(py_decorator_name(fn->more.at[i]), "wraps") == 0)
            return true;
    return false;
}

Py
py_attribute(Interp *in, Py x, Name attr, const Node *n, bool quiet)
{
    Loc loc = n ? n->loc : (Loc){0};
    Py v = NULL;
    bool sure = false;
    if (py_lost(x))
        return py_unknown_part(in, x, n);
    switch (x->kind) {
    case PY_CONSTEXPR:
        v = strcmp(attr, "value") == 0 ? x->u.inner
                                       : py_attribute(in, x->u.inner, attr, n, quiet);
        break;
    case PY_MODULE:
        v = py_module_attribute(in, x, attr, loc);
        sure = true;
        break;
    case PY_FE:
        v = py_fe_attribute(in, x, attr, loc);
        sure = x->u.fe->kind == FE_DTYPE;
        break;
    case PY_OBJECT:
        v = py_object_attribute(in, x, attr);
        sure = x->u.object->class_ && x->u.object->class_->u.class_->known &&
               !x->u.object->class_->u.class_->is_data && strncmp(attr, "__", 2) != 0;
        break;
    case PY_CLASS:
        v = py_class_attribute(in, x, attr);
        sure = x->u.class_->known && !x->u.class_->is_data && strncmp(attr, "__", 2) != 0;
        if (!v && strcmp(attr, "__name__") == 0)
            v = py_str(in, x->u.class_->name);
        break;
    case PY_FUNC:
        if (strcmp(attr, "__name__") == 0 && x->u.func->node->name &&
            !is_wrapped(x->u.func->node))
            v = py_str(in, x->u.func->node->name);
        else if (strcmp(attr, "fn") == 0 && x->u.func->jit)
            v = x;
        break;
    case PY_NONE: sure = attr[0] != '_'; break;
    default: v = method(in, x, attr); break;
    }
    v = v ? py_resolve(in, v) : NULL;
    if (v)
        return v;
    if (sure && quiet)
        return NULL;
    if (sure)
        return py_raise(in, loc, "AttributeError", "there is no '%s'", attr);
    return py_unknown(in, loc, n ? py_source(in, n) : NULL,
                      "its attribute '%s' is known to Python alone", attr);
}

Py
py_python_name(Interp *in, Name name)
{
    static const char *const others[] = {
        "object",      "type",
        "property",    "staticmethod",
        "classmethod",
        "globals",     "locals",
        "vars",        "dir",
        "id",          "iter",
        "next",        "open",
        "eval",        "exec",
        "input",       "issubclass",
        "delattr",
        "hash",        "hex",
        "oct",         "bin",
        "format",      "bytes",
        "bytearray",   "complex",
        "slice",       "memoryview",
        "compile",     "ascii",
        "breakpoint",  "NotImplemented",
        "Ellipsis",    "exit",
        "quit",        "help",
        "__import__",  "__spec__",
        "__loader__",  "__package__",
        "__doc__",     "__builtins__",
        "__path__",    "__file__",
    };
    for (const PyEntry *e = pylib_python; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return py_builtin(in, e->name, e->fn, NULL);
    if (strcmp(name, "__name__") == 0)
        return py_str(in, "kernels"); /* the file is imported, not the program */
    if (strcmp(name, "__debug__") == 0)
        return in->yes;
    size_t n = strlen(name);
    bool exception = (n > 5 && strcmp(name + n - 5, "Error") == 0) ||
                     strcmp(name, "Exception") == 0 ||
                     strcmp(name, "BaseException") == 0 ||
                     (n > 7 && strcmp(name + n - 7, "Warning") == 0);
    for (size_t i = 0; i < sizeof others / sizeof *others && !exception; i++)
        exception = strcmp(name, others[i]) == 0;
    return exception
               ? py_unknown(in, (Loc){0}, NULL, "'%s' is known to Python alone", name)
               : NULL;
}
