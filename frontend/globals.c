/* Names of a module as a kernel sees them: jit functions, imported modules and their
   members, tl.constexpr globals. Python globals that are not constexpr are errors with
   Triton's advice, unless a default value or a host expression asks. */
#include "frontend/builtin.h"
#include "frontend/hint.h"
#include "frontend/module.h"
#include "frontend/prelude.h"
#include "frontend/pylib.h"
#include "frontend/spec.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const struct {
    const char *path;
    int ns;
} known_modules[] = {
    {"triton", NS_TRITON},
    {"triton.language", NS_TL},
    {"triton.language.core", NS_TL},
    {"triton.language.standard", NS_TL},
    {"triton.language.random", NS_TL},
    {"triton.language.math", NS_TL_MATH},
    {"triton.language.extra", NS_EXTRA},
    {"triton.language.extra.libdevice", NS_LIBDEVICE},
    {"triton.language.extra.cuda", NS_CUDA},
    {"triton.language.extra.cuda.utils", NS_CUDA},
    {"triton.language.extra.cuda.gdc", NS_CUDA},
    {"triton.language.extra.cuda.libdevice", NS_LIBDEVICE},
    {"triton.language.libdevice", NS_LIBDEVICE},
    {"triton.language.target_info", NS_TARGET},
    {"math", NS_PYMATH},
    {"numpy", NS_PYMATH},
    {"torch", NS_TORCH},
    {"torch.version", NS_TORCH},
    {"os", NS_OS},
    {"os.environ", NS_ENVIRON},
};

static Val
val_module(Sema *s, int ns, FrontModule *home, const char *path)
{
    FeVal *v = val_new(s, FE_MODULE);
    v->n = ns;
    v->home = home;
    v->u.path = path;
    return v;
}

Val
module_known(Sema *s, const char *path)
{
    for (size_t i = 0; i < sizeof known_modules / sizeof *known_modules; i++)
        if (strcmp(path, known_modules[i].path) == 0)
            return val_module(s, known_modules[i].ns, NULL, known_modules[i].path);
    return NULL;
}

bool
module_is_known(const char *path)
{
    for (size_t i = 0; i < sizeof known_modules / sizeof *known_modules; i++)
        if (strcmp(path, known_modules[i].path) == 0)
            return true;
    return false;
}

static Val
class_value(Sema *s, int class)
{
    FeVal *v = val_new(s, FE_TYPE);
    v->n = class;
    return v;
}

static const struct {
    const char *name;
    int class;
} classes[] = {
    {"tensor", CLASS_TENSOR},
    {"dtype", CLASS_DTYPE},
    {"tensor_descriptor", CLASS_DESC},
    {"tensor_descriptor_base", CLASS_DESC},
    {"const", CLASS_CONST},
    {"tensor_descriptor_type", CLASS_TYPE_DESC},
    {"tensor_descriptor_base_type", CLASS_TYPE_DESC},
};

static Val
tl_member(Sema *s, Val module, Name attr)
{
    /* Real files import private helpers from triton.language.standard. */
    unsigned where = IN_TL;
    if (prelude_owns(s->frame->module) || strcmp(module->u.path, "triton.language") != 0)
        where |= IN_CORE;
    const Builtin *b = builtin_find(s, attr, where);
    if (b && (b->fn || b->file))
        return val_builtin(s, b);
    DType dt = dtype_by_tl_name(attr, strlen(attr));
    if (dt != DT_NONE)
        return val_dtype(s, dt);
    if (strcmp(attr, "void") == 0)
        return val_dtype(s, DT_VOID);
    if (strcmp(attr, "pi32_t") == 0)
        return val_dtype(s, DT_INT32 + DT_PTR);
    if (strcmp(attr, "TRITON_MAX_TENSOR_NUMEL") == 0)
        return val_int(s, MAX_NUMEL);
    if (strcmp(attr, "CONSTEXPR_0") == 0) /* of core, a default in copies of its sort */
        return val_int(s, 0);
    if (strcmp(attr, "PropagateNan") == 0)
        return class_value(s, CLASS_STR);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strcmp(attr, classes[i].name) == 0)
            return class_value(s, classes[i].class);
    return b ? val_builtin(s, b) : NULL;
}

static Val
core_builtin(Sema *s, const char *name)
{
    const Builtin *b = builtin_find(s, name_of(&s->s->names, name), IN_CORE);
    return b ? val_builtin(s, b) : NULL;
}

/* math.pi, math.log2(...): constants of the host's Python. */
static Val
pymath_member(Sema *s, Name attr)
{
    static const struct {
        const char *name;
        double value;
    } constants[] = {
        {"pi", 3.141592653589793},
        {"e", 2.718281828459045},
        {"tau", 6.283185307179586},
        {"inf", INFINITY},
        {"nan", NAN},
    };
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (strcmp(attr, constants[i].name) == 0)
            return val_float(s, constants[i].value);
    return core_builtin(s, arena_printf(s->a, "math.%s", attr));
}

/* torch.float16 and torch.finfo(torch.float32).max, in constants of real files. */
static Val
torch_member(Sema *s, Name attr)
{
    static const struct {
        const char *name;
        DType t;
    } dtypes[] = {
        {"bool", DT_INT1},   {"half", DT_FP16},         {"float", DT_FP32},
        {"double", DT_FP64}, {"int", DT_INT32},         {"long", DT_INT64},
        {"short", DT_INT16}, {"float8_e5m2", DT_FP8E5}, {"float8_e4m3fn", DT_FP8E4NV},
        {"float8_e4m3fnuz", DT_FP8E4B8},                {"float8_e5m2fnuz", DT_FP8E5B16},
    };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(attr, dtypes[i].name) == 0)
            return val_dtype(s, dtypes[i].t);
    DType dt = dtype_by_tl_name(attr, strlen(attr));
    if (dt != DT_NONE)
        return val_dtype(s, dt);
    if (strcmp(attr, "finfo") == 0 || strcmp(attr, "iinfo") == 0)
        return core_builtin(s, "__finfo__");
    return NULL;
}

/* The limits of a dtype, as torch.finfo and torch.iinfo name them. */
static Val
finfo_member(Sema *s, DType t, Name attr)
{
    static const struct {
        DType t;
        double max, eps, tiny;
    } floats[] = {
        {DT_FP16, 65504.0, 0x1p-10, 0x1p-14},
        {DT_BF16, 0x1.fep127, 0x1p-7, 0x1p-126},
        {DT_FP32, FLT_MAX, FLT_EPSILON, FLT_MIN},
        {DT_FP64, DBL_MAX, DBL_EPSILON, DBL_MIN},
        {DT_FP8E5, 57344.0, 0.25, 0x1p-14},
        {DT_FP8E4NV, 448.0, 0.125, 0x1p-6},
        {DT_FP8E4B8, 240.0, 0.125, 0x1p-7},
        {DT_FP8E5B16, 57344.0, 0.125, 0x1p-15},
    };
    if (strcmp(attr, "bits") == 0)
        return val_int(s, dtype_bits(t));
    if (dtype_is_int(t) && strcmp(attr, "max") == 0)
        return val_int(s, dtype_max(t));
    if (dtype_is_int(t) && strcmp(attr, "min") == 0)
        return val_int(s, dtype_min(t));
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        if (floats[i].t != t)
            continue;
        if (strcmp(attr, "max") == 0)
            return val_float(s, floats[i].max);
        if (strcmp(attr, "min") == 0)
            return val_float(s, -floats[i].max);
        if (strcmp(attr, "eps") == 0)
            return val_float(s, floats[i].eps);
        if (strcmp(attr, "tiny") == 0 || strcmp(attr, "smallest_normal") == 0)
            return val_float(s, floats[i].tiny);
    }
    return NULL;
}

Val
bi_finfo(Sema *s, Args *a)
{
    DType dt;
    if (!arg_dtype(s, a, 0, &dt))
        return val_error();
    FeVal *v = val_new(s, FE_MODULE);
    v->n = NS_FINFO;
    v->dt = dt;
    v->u.path = "finfo";
    return v;
}

static Val
find_member(Sema *s, Val module, Name attr, Loc loc)
{
    const Builtin *b = NULL;
    Val sub;
    switch (module->n) {
    case NS_FILE: return module_lookup(s, module->home, attr, loc, s->host > 0);
    case NS_TL: {
        Val v = tl_member(s, module, attr);
        if (v)
            return v;
        break;
    }
    case NS_TL_MATH: b = builtin_find(s, attr, IN_MATH); break;
    case NS_LIBDEVICE: b = builtin_find(s, attr, IN_LIB); break;
    case NS_TRITON: b = builtin_find(s, attr, IN_TRITON); break;
    case NS_CUDA: b = builtin_find(s, attr, IN_CUDA); break;
    case NS_TARGET:
        b = builtin_find(s, attr, IN_TARGET);
        if (strcmp(attr, "constexpr_function") == 0) /* it is only imported there */
            return class_value(s, CLASS_CONST);
        break;
    case NS_EXTRA: break;
    case NS_PYMATH: return pymath_member(s, attr);
    case NS_TORCH: {
        Val v = torch_member(s, attr);
        const char *path = arena_printf(s->a, "%s.%s", module->u.path, attr);
        Py known = v ? NULL : pylib_constant(module_interp(s->m), path, loc);
        if (v || known)
            return v ? v : py_to_val(s, known, path, loc);
        break;
    }
    case NS_OS:
    case NS_ENVIRON:
        if (strcmp(attr, module->n == NS_OS ? "getenv" : "get") == 0)
            return core_builtin(s, "os.getenv");
        break;
    case NS_FINFO: return finfo_member(s, module->dt, attr);
    default: return NULL;
    }
    if (b)
        return val_builtin(s, b);
    sub = module_known(s, arena_printf(s->a, "%s.%s", module->u.path, attr));
    return sub;
}

Val
module_attribute(Sema *s, Val module, Name attr, Loc loc, bool quiet)
{
    Val v = find_member(s, module, attr, loc);
    if (v || quiet)
        return v;
    const char *path = module->u.path ? module->u.path : "module";
    if (module->n == NS_UNKNOWN)
        return sema_error(s, loc,
                          "no file was found for '%s': give the folder of its module "
                          "with -I",
                          path);
    static const unsigned where[] = {[NS_TL] = IN_TL,
                                     [NS_TL_MATH] = IN_MATH,
                                     [NS_LIBDEVICE] = IN_LIB,
                                     [NS_UNKNOWN] = 0};
    const char *near = module->n < NS_UNKNOWN && where[module->n]
                           ? builtin_near(attr, where[module->n])
                           : NULL;
    Name name = name_of(&s->s->names, attr);
    bool tl = module->n == NS_TL || module->n == NS_TL_MATH;
    if (tl && builtin_find(s, name, IN_LIB))
        return sema_error(s, loc, "'%s' has no '%s': libdevice has it; from "
                          "triton.language.extra import libdevice", path, attr);
    bool host = module->n == NS_TORCH || module->n == NS_PYMATH;
    const char *use = tl || host ? hint_host(s, attr) : NULL;
    if (use && tl)
        return sema_error(s, loc, "'%s' has no member '%s'; use %s", path, attr, use);
    if (use)
        return sema_error(s, loc, "'%s.%s' is host code, which a kernel cannot call: use "
                          "%s", path, attr, use);
    if (near)
        return sema_error(s, loc, "'%s' has no member '%s'; did you mean '%s'?", path,
                          attr, near);
    return host && !s->host
               ? sema_error(s, loc, "'%s.%s' is host code, which a kernel cannot call",
                            path, attr)
               : sema_error(s, loc, "'%s' has no member '%s'", path, attr);
}

/* Python globals that are not constexpr cannot be read in a kernel. */
static bool
is_plain(Py v)
{
    return v->kind == PY_BOOL || v->kind == PY_INT || v->kind == PY_FLOAT ||
           v->kind == PY_STR || v->kind == PY_TUPLE || v->kind == PY_LIST ||
           v->kind == PY_DICT || v->kind == PY_SET;
}

static Val
check_global(Sema *s, Name name, const PyBind *b, Py v, Loc loc)
{
    if (!is_plain(v) || (b && b->constexpr_))
        return py_to_val(s, v, name, loc);
    sema_error(s, loc,
               "'%s' is a global variable that is not constexpr: write %s = "
               "tl.constexpr(...), or pass it as a parameter",
               name, name);
    if (b)
        diag_note(&s->s->diag, b->loc, "it is set here");
    return val_error();
}

/* Nothing, or what no kernel can use. With `any` it is no kernel that asks: a default
   value may well be None or an integer. */
static bool
is_no_use(Py v, bool any)
{
    return !v || (py_is_hosts(v) && (!any || v->kind == PY_FUNC)) ||
           (!any && is_plain(v));
}

/* Where one arm alone of what nobody can decide binds a name to what a kernel can use
   (`if has_triton(): import triton.language as tl`, a jit function beside one of the host
   that raises, libdevice beside an object in its place, a constexpr beside a plain
   number), a kernel that uses it ran after that arm: Python has no other value that
   compiles. */
static Py
only_binding(Sema *s, Interp *in, Py v, Name name, bool any)
{
    enum { MOST = 4 }; /* arms in the file of an import in an arm */
    for (int i = 0; i < MOST && v->kind == PY_UNKNOWN; i++) {
        const PyUnknown *u = v->u.unknown;
        bool one = !is_no_use(u->one, any), other = !is_no_use(u->other, any);
        if (one == other || builtin_find(s, name, IN_PY))
            return v;
        v = py_resolve(in, one ? u->one : u->other);
    }
    return v;
}

static Val
lookup(Sema *s, FrontModule *m, Name name, Loc loc, bool any)
{
    Interp *in = module_interp(m);
    PyBind *b = NULL;
    Py v = NULL;
    for (PyScope *sc = module_scope(m); sc && !v; sc = sc->up) {
        b = pyscope_find(sc, name);
        v = sc->up ? (b ? b->val : NULL) : module_name(m, name);
    }
    if (!v)
        return NULL;
    v = only_binding(s, in, py_resolve(in, v), name, any || (b && b->constexpr_));
    if (any || (s->host && v->kind == PY_FUNC))
        return py_to_val(s, v, name, loc);
    if (v->kind == PY_FUNC && !v->u.func->jit) {
        const Node *fn = v->u.func->node;
        if (find_decorator(fn, "constexpr") || find_decorator(fn, "constexpr_function") ||
            find_decorator(fn, "builtin"))
            return py_to_val(s, v, name, loc);
        return sema_error(s, loc,
                          "'%s' is a Python function of the host: decorate it with "
                          "@triton.jit to call it in a kernel",
                          name);
    }
    return check_global(s, name, b, v, loc);
}

Val
module_lookup(Sema *s, FrontModule *m, Name name, Loc loc, bool any)
{
    /* Files may import from one another in a circle. */
    if (s->depth >= MAX_WALK_DEPTH)
        return sema_error(s, loc, "'%s' is imported through too many files", name);
    s->depth++;
    Val v = lookup(s, m, name, loc, any);
    s->depth--;
    return v;
}
