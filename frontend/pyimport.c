/* Imports. A file is read and run when something of it is first used, so that a package
   costs what is taken out of it, and circles of imports end by themselves. What has no
   file is a module of the host: that it is missing matters to nobody but a `try`, and to
   kernels that need it. */
#include "frontend/pylib.h"

#include <string.h>

/* Top-level packages that a Python which runs Triton has, those that torch requires among
   them. Nothing of theirs is run: no kernel takes its constants from there. */
static bool
is_standard(const char *path)
{
    static const char *const names[] = {
        "__future__",
        "abc",
        "argparse",
        "ast",
        "asyncio",
        "base64",
        "bisect",
        "builtins",
        "collections",
        "concurrent",
        "contextlib",
        "copy",
        "csv",
        "ctypes",
        "dataclasses",
        "datetime",
        "decimal",
        "enum",
        "filelock",
        "fsspec",
        "functools",
        "gc",
        "glob",
        "hashlib",
        "heapq",
        "importlib",
        "inspect",
        "io",
        "itertools",
        "jinja2",
        "json",
        "logging",
        "math",
        "mpmath",
        "multiprocessing",
        "networkx",
        "numbers",
        "numpy",
        "operator",
        "os",
        "packaging",
        "pathlib",
        "pickle",
        "pkgutil",
        "platform",
        "pprint",
        "queue",
        "random",
        "re",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "statistics",
        "string",
        "struct",
        "subprocess",
        "sympy",
        "sys",
        "tempfile",
        "textwrap",
        "threading",
        "time",
        "torch",
        "traceback",
        "types",
        "typing",
        "typing_extensions",
        "unittest",
        "uuid",
        "warnings",
        "weakref",
        "zlib",
    };
    size_t n = strcspn(path, ".");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncmp(path, names[i], n) == 0)
            return true;
    return false;
}

/* Modules of Triton 3.9 that are none of kernels. */
static bool
is_triton(const char *path)
{
    static const char *const names[] = {
        "_C",
        "_utils",
        "backends",
        "backends.compiler",
        "backends.driver",
        "backends.nvidia",
        "backends.nvidia.compiler",
        "backends.nvidia.driver",
        "compiler",
        "compiler.code_generator",
        "compiler.compiler",
        "compiler.errors",
        "errors",
        "knobs",
        "language.semantic",
        "profiler",
        "runtime",
        "runtime.autotuner",
        "runtime.build",
        "runtime.cache",
        "runtime.driver",
        "runtime.errors",
        "runtime.interpreter",
        "runtime.jit",
        "testing",
        "tools",
        "tools.compile",
        "tools.disasm",
        "tools.link",
        "tools.mxfp",
        "tools.ragged_tma",
        "tools.tensor_descriptor",
        "language.extra.cuda.gdc",
        "language.extra.cuda.utils",
        "language.extra.hip",
        "language.extra.hip.libdevice",
        "language.extra.hip.utils",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(path + strlen("triton."), names[i]) == 0)
            return true;
    return false;
}

int
py_has_module(const char *path)
{
    if (module_is_known(path) || is_standard(path))
        return 1;
    if (strncmp(path, "triton.", strlen("triton.")) == 0)
        return is_triton(path);
    return -1;
}

bool
py_is_below(const char *path, const char *top)
{
    size_t n = strlen(top);
    return strncmp(path, top, n) == 0 && (!path[n] || path[n] == '.');
}

static const char *
shown_path(Interp *in, const ModuleImport *im)
{
    return arena_printf(in->a, "%.*s%s%s%s", im->level > 16 ? 16 : im->level,
                        "................", im->path ? im->path : "",
                        im->member && im->path ? "." : "", im->member ? im->member : "");
}

/* from package import file */
static FrontModule *
member_file(Interp *in, FrontModule *from, const ModuleImport *im)
{
    const char *path = im->path ? im->path : "";
    const char *sub = *path ? arena_printf(in->a, "%s.%s", path, im->member) : im->member;
    return module_load_import(from, name_of(&in->s->names, sub), im->level);
}

/* Packages that hand Triton on (`from vllm.triton_utils import tl, triton`) and are not
   here: these names mean Triton's own. */
static Py
handed_on(Interp *in, const ModuleImport *im)
{
    static const struct {
        const char *member, *path;
    } names[] = {
        {"triton", "triton"},
        {"tl", "triton.language"},
        {"tldevice", "triton.language.extra.libdevice"},
        {"libdevice", "triton.language.extra.libdevice"},
    };
    for (size_t i = 0; im->member && i < sizeof names / sizeof *names; i++)
        if (strcmp(im->member, names[i].member) == 0)
            return py_module(in, name_of(&in->s->names, names[i].path), NULL);
    return NULL;
}

/* What a file of torch's has, in a folder that -I names: kernels that torch.compile wrote
   call helpers of inductor. NULL: none. */
static Py
included(Interp *in, FrontModule *from, const ModuleImport *im)
{
    const char *sub = arena_printf(in->a, "%s.%s", im->path, im->member);
    FrontModule *file = module_load_included(from, im->path);
    Py v = file ? module_name(file, im->member) : NULL;
    if (v)
        return v;
    file = module_load_included(from, name_of(&in->s->names, sub));
    return file ? py_module(in, name_of(&in->s->names, sub), file) : NULL;
}

/* What the import gives; NULL: it surely fails, `why` says so. */
static Py
import_now(Interp *in, FrontModule *from, const ModuleImport *im, Py self, Py *why)
{
    const char *shown = shown_path(in, im), *path = im->path ? im->path : "";
    bool host = !im->level && (py_has_module(path) > 0 || py_is_below(path, "triton"));
    FrontModule *file = host ? NULL : module_load_import(from, im->path, im->level);
    if (host && !im->member)
        return py_has_module(path) > 0 ? py_module(in, im->path, NULL) : NULL;
    if (file && !im->member)
        return py_module(in, name_of(&in->s->names, shown), file);
    Py v = NULL;
    if (host && py_has_module(path) > 0) {
        v = py_module_attribute(in, py_module(in, im->path, NULL), im->member, im->loc);
        if (v && v->kind == PY_UNKNOWN && handed_on(in, im))
            v = handed_on(in, im);
        else if (v && v->kind == PY_UNKNOWN && py_is_below(path, "torch"))
            v = included(in, from, im) ? included(in, from, im) : v;
    } else if (file) {
        v = module_name(file, im->member);
        if (v == self)
            v = NULL; /* `from . import x` in the package's own file */
    }
    if (v || host)
        return v;
    FrontModule *sub = im->member ? member_file(in, from, im) : NULL;
    if (sub)
        return py_module(in, name_of(&in->s->names, shown), sub);
    if (!file && (v = handed_on(in, im)) != NULL)
        return v;
    *why = py_unknown(in, im->loc, NULL,
                      "no file was found for '%s': give the folder of its module with -I",
                      shown);
    if (file)
        *why = py_unknown(in, im->loc, NULL, "'%s' has no member '%s'", module_path(file),
                          im->member);
    else
        ((PyUnknown *)(uintptr_t)(*why)->u.unknown)->missing = shown;
    return NULL;
}

Py
py_import(Interp *in, FrontModule *from, const ModuleImport *im, bool raise)
{
    PyVal *v = py_new(in, PY_IMPORT);
    v->u.import = arena_alloc(in->a, sizeof *v->u.import, alignof(max_align_t));
    v->u.import->from = from;
    v->u.import->what = *im;
    if (!raise || !in->try_ || !in->try_->catches_import || in->depth >= PY_MAX_DEPTH)
        return v;
    Py why = NULL;
    in->depth++;
    Py made = import_now(in, from, im, v, &why);
    in->depth--;
    if (!made)
        return py_raise(in, im->loc, "ModuleNotFoundError", "there is no '%s'",
                        shown_path(in, im));
    v->u.import->done = (PyVal *)(uintptr_t)made;
    return v;
}

static Py
resolve_import(Interp *in, Py v)
{
    Py why = NULL;
    const ModuleImport *im = &v->u.import->what;
    if (v->u.import->done)
        return v->u.import->done;
    /* What runs the file for the first time may come by here again: its names are those
       that are bound by then. */
    enum { MAX_ROUNDS = 2 };
    if (v->u.import->busy >= MAX_ROUNDS || in->depth >= PY_MAX_DEPTH)
        return py_unknown(in, im->loc, NULL, "'%s' imports itself", shown_path(in, im));
    v->u.import->busy++;
    in->depth++;
    Py made = import_now(in, v->u.import->from, im, v, &why);
    made = made ? py_resolve(in, made) : NULL;
    in->depth--;
    v->u.import->busy--;
    if (!made)
        made =
            why ? why
                : py_unknown(in, im->loc, NULL, "there is no '%s'", shown_path(in, im));
    v->u.import->done = (PyVal *)(uintptr_t)made;
    return made;
}

/* libdevice has several names. */
static bool
same_module(Interp *in, Py a, Py b)
{
    if (a->kind != PY_MODULE || b->kind != PY_MODULE || a->u.module.file ||
        b->u.module.file)
        return false;
    Val x = module_known(in->sema, a->u.module.path);
    Val y = module_known(in->sema, b->u.module.path);
    return x && y && x->n == y->n;
}

/* Is it an import of Triton itself, or of its language? */
static bool
is_tritons(Py v)
{
    const ModuleImport *im = v->kind == PY_IMPORT ? &v->u.import->what : NULL;
    if (!im || im->level || !im->path)
        return false;
    if (!im->member)
        return strcmp(im->path, "triton") == 0 ||
               strcmp(im->path, "triton.language") == 0;
    return strcmp(im->path, "triton") == 0 && strcmp(im->member, "language") == 0;
}

bool
py_is_hosts(Py v)
{
    switch (v->kind) {
    case PY_NONE: return true;
    case PY_UNKNOWN: return v->u.unknown->object;
    case PY_OBJECT:
        return v->u.object->class_ && !v->u.object->class_->u.class_->is_tuple &&
               !v->u.object->class_->u.class_->is_aggregate;
    case PY_FUNC:
        return !v->u.func->jit && v->u.func->node->kind == ND_FUNCTION &&
               !v->u.func->node->more.n;
    default: return false;
    }
}

Py
py_resolve(Interp *in, Py v)
{
    if (v->kind == PY_IMPORT)
        return resolve_import(in, v);
    if (v->kind != PY_UNKNOWN || !v->u.unknown->one || !v->u.unknown->other)
        return v;
    Py a = v->u.unknown->one, b = v->u.unknown->other;
    /* Triton or a stand-in for it (`if HAS_TRITON: import triton`, `else: triton =
       Placeholder()`): with the stand-in the file has no kernels. */
    if (is_tritons(a) && py_is_hosts(b))
        return resolve_import(in, a);
    if (is_tritons(b) && py_is_hosts(a))
        return resolve_import(in, b);
    /* One of two imports: what is not there cannot be what Python found. */
    if (a->kind != PY_IMPORT || b->kind != PY_IMPORT)
        return v;
    a = resolve_import(in, a);
    b = resolve_import(in, b);
    if (py_same(a, b) || same_module(in, a, b) || b->kind == PY_UNKNOWN)
        return a;
    return a->kind == PY_UNKNOWN ? b : v;
}

/* ---- exceptions */

bool
py_exception_is(const char *type, const char *of)
{
    static const struct {
        const char *type, *of;
    } parents[] = {
        {"ModuleNotFoundError", "ImportError"},
        {"PackageNotFoundError", "ModuleNotFoundError"},
        {"KeyError", "LookupError"},
        {"IndexError", "LookupError"},
        {"ZeroDivisionError", "ArithmeticError"},
        {"OverflowError", "ArithmeticError"},
        {"NotImplementedError", "RuntimeError"},
        {"FileNotFoundError", "OSError"},
        {"UnboundLocalError", "NameError"},
    };
    if (strcmp(type, PY_LIMIT) == 0)
        return false;
    if (strcmp(of, "Exception") == 0 || strcmp(of, "BaseException") == 0)
        return true;
    for (int depth = 0; depth < 4; depth++) {
        if (strcmp(type, of) == 0)
            return true;
        const char *up = NULL;
        for (size_t i = 0; i < sizeof parents / sizeof *parents; i++)
            if (strcmp(parents[i].type, type) == 0)
                up = parents[i].of;
        if (!up)
            return false;
        type = up;
    }
    return false;
}
