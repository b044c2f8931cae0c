/* What module level code asks packages for: mathematics, versions, the environment, the
   target, and Triton's own decorators. The environment is empty but for -D; the versions
   are those of the Triton that sdc follows; the device is the target compiled for. */
#include "frontend/pylib.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- math */

static Py
math_function(Interp *in, const PyCall *c)
{
    static const struct {
        const char *name;
        double (*f)(double);
    } functions[] = {
        {"math.sqrt", sqrt},   {"math.exp", exp},     {"math.exp2", exp2},
        {"math.sin", sin},     {"math.cos", cos},     {"math.tan", tan},
        {"math.tanh", tanh},   {"math.erf", erf},     {"math.log2", log2},
        {"math.log10", log10}, {"math.log", log},     {"math.fabs", fabs},
        {"math.expm1", expm1}, {"math.log1p", log1p}, {"math.atan", atan},
        {"math.ceil", ceil},   {"math.floor", floor}, {"math.trunc", trunc},
    };
    Py a = c->n ? py_unwrapped_plain(c->at[0]) : NULL;
    if (!a || !py_is_number(a) || c->n > 2)
        return pylib_unknown(in, c);
    double x = py_double(a), y = NAN;
    bool log_of = strcmp(c->name, "math.log") == 0;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(functions[i].name, c->name) == 0)
            y = functions[i].f(x);
    if (c->n == 2) {
        Py b = py_unwrapped_plain(c->at[1]);
        if (!log_of || !py_is_number(b) || py_double(b) <= 0 || py_double(b) == 1)
            return pylib_unknown(in, c);
        y /= log(py_double(b));
    }
    if (!isfinite(y) && isfinite(x))
        return py_raise(in, c->loc, "ValueError", "'%s' has no value there", c->name);
    const char *f = c->name + strlen("math.");
    if (strcmp(f, "ceil") != 0 && strcmp(f, "floor") != 0 && strcmp(f, "trunc") != 0)
        return py_float(in, y);
    if (a->kind != PY_FLOAT)
        return py_int(in, a->u.i);
    return fabs(y) < 0x1p62 ? py_int(in, (Wide)y) : pylib_unknown(in, c);
}

static Py
math_two(Interp *in, const PyCall *c)
{
    Wide a, b;
    const char *f = c->name + strlen("math.");
    if (c->n != 2)
        return pylib_unknown(in, c);
    Py x = py_unwrapped_plain(c->at[0]), y = py_unwrapped_plain(c->at[1]);
    if (strcmp(f, "pow") == 0 && py_is_number(x) && py_is_number(y))
        return py_float(in, pow(py_double(x), py_double(y)));
    if (strcmp(f, "gcd") != 0 || !pyarg_int(c->at[0], &a) || !pyarg_int(c->at[1], &b))
        return pylib_unknown(in, c);
    for (a = a < 0 ? -a : a, b = b < 0 ? -b : b; b;) {
        Wide r = a % b;
        a = b;
        b = r;
    }
    return py_int(in, a);
}

static Py
math_prod(Interp *in, const PyCall *c)
{
    Py lost = NULL, v = py_int(in, 1);
    PyList *l = c->n == 1 ? py_elements(in, c->at[0], c->loc, &lost) : NULL;
    if (!l)
        return lost ? lost : pylib_unknown(in, c);
    for (int i = 0; i < l->n && !py_raises(in); i++)
        v = py_binary(in, OS_MUL, v, l->at[i], c->loc);
    return v;
}

/* ---- operator, functools, itertools, copy, types */

static Py
operator_call(Interp *in, const PyCall *c)
{
    static const struct {
        const char *name;
        int sign;
    } signs[] = {
        {"ge", OS_GE},
        {"gt", OS_GT},
        {"le", OS_LE},
        {"lt", OS_LT},
        {"eq", OS_EQ},
        {"ne", OS_NE},
        {"add", OS_ADD},
        {"sub", OS_SUB},
        {"mul", OS_MUL},
        {"truediv", OS_DIV},
        {"floordiv", OS_FLOORDIV},
        {"mod", OS_MOD},
    };
    const char *f = c->name + strlen("operator.");
    for (size_t i = 0; c->n == 2 && i < sizeof signs / sizeof *signs; i++)
        if (strcmp(f, signs[i].name) == 0)
            return signs[i].sign >= OS_EQ
                       ? py_compare(in, signs[i].sign, c->at[0], c->at[1], c->loc)
                       : py_binary(in, signs[i].sign, c->at[0], c->at[1], c->loc);
    return pylib_unknown(in, c);
}

static Py
call_partial(Interp *in, const PyCall *c)
{
    const PyList *p = c->self->u.list; /* function, arguments, names */
    const PyList *first = p->at[1]->u.list;
    PyCall all = *c;
    all.n = first->n + c->n;
    all.at = arena_array(in->a, Py, all.n + 1);
    for (int i = 0; i < all.n; i++)
        all.at[i] = i < first->n ? first->at[i] : c->at[i - first->n];
    all.named = py_binary(in, OS_OR, p->at[2], c->named, c->loc);
    return all.named->kind == PY_DICT ? py_call(in, p->at[0], &all) : all.named;
}

static Py
partial(Interp *in, const PyCall *c)
{
    if (!c->n)
        return pylib_unknown(in, c);
    Py part[3] = {c->at[0], py_list(in, PY_TUPLE, c->at + 1, c->n - 1), c->named};
    return py_builtin(in, "partial", call_partial, py_list(in, PY_TUPLE, part, 3));
}

static Py
identity(Interp *in, const PyCall *c)
{
    return c->n == 1 ? c->at[0] : pylib_unknown(in, c);
}

/* lru_cache(maxsize=1)(f), lru_cache(f), wraps(g)(f) */
static Py
keep_function(Interp *in, const PyCall *c)
{
    bool direct =
        c->n == 1 && c->at[0]->kind == PY_FUNC && strcmp(c->name, "functools.wraps") != 0;
    return direct ? c->at[0] : py_builtin(in, "decorator", identity, NULL);
}

static Py
reduce(Interp *in, const PyCall *c)
{
    Py lost = NULL, v = c->n > 2 ? c->at[2] : NULL;
    PyList *l = c->n >= 2 ? py_elements(in, c->at[1], c->loc, &lost) : NULL;
    if (!l)
        return lost ? lost : pylib_unknown(in, c);
    for (int i = 0; i < l->n && !py_raises(in); i++) {
        Py pair[2] = {v, l->at[i]};
        PyCall k = {.at = pair, .n = 2, .named = py_dict(in), .loc = c->loc};
        v = v ? py_call(in, c->at[0], &k) : l->at[i];
    }
    return v ? v : py_raise(in, c->loc, "TypeError", "reduce of nothing");
}

static Py
product(Interp *in, const PyCall *c)
{
    Py lost = NULL, none = py_list(in, PY_TUPLE, NULL, 0);
    PyList *all = py_list(in, PY_LIST, &none, 1)->u.list;
    if (c->named->u.dict->n)
        return pylib_unknown(in, c);
    for (int i = 0; i < c->n; i++) {
        PyList *l = py_elements(in, c->at[i], c->loc, &lost);
        if (!l)
            return lost;
        PyList *next = py_list(in, PY_LIST, NULL, 0)->u.list;
        for (int a = 0; a < all->n; a++)
            for (int b = 0; b < l->n && py_step(in, 1); b++)
                py_push(in, next,
                        py_binary(in, OS_ADD, all->at[a],
                                  py_list(in, PY_TUPLE, &l->at[b], 1), c->loc));
        all = next;
    }
    return py_list(in, PY_LIST, all->at, all->n);
}

static Py
chain(Interp *in, const PyCall *c)
{
    Py lost = NULL, v = py_list(in, PY_LIST, NULL, 0);
    for (int i = 0; i < c->n; i++) {
        PyList *l = py_elements(in, c->at[i], c->loc, &lost);
        if (!l)
            return lost;
        for (int k = 0; k < l->n && py_step(in, 1); k++)
            py_push(in, v->u.list, l->at[k]);
    }
    return v;
}

static Py
copy(Interp *in, const PyCall *c)
{
    Py v = c->n == 1 ? c->at[0] : NULL;
    if (v && (v->kind == PY_LIST || v->kind == PY_DICT)) {
        Py same = v->kind == PY_LIST ? py_list(in, PY_LIST, v->u.list->at, v->u.list->n)
                                     : py_binary(in, OS_OR, v, py_dict(in), c->loc);
        if (v->kind == PY_LIST)
            same->u.list->lost = v->u.list->lost;
        bool flat = strcmp(c->name, "copy.copy") == 0;
        for (int i = 0; v->kind == PY_LIST && i < v->u.list->n && !flat; i++)
            flat = v->u.list->at[i]->kind == PY_LIST || v->u.list->at[i]->kind == PY_DICT;
        return flat && strcmp(c->name, "copy.copy") != 0 ? pylib_unknown(in, c) : same;
    }
    return v && v->kind <= PY_TUPLE ? v : pylib_unknown(in, c);
}

static Py namespace(Interp *in, const PyCall *c)
{
    Py v = py_object_of(in, "namespace");
    for (int i = 0; i < c->named->u.dict->n; i++)
        pydict_set(in, v->u.object->attrs, c->named->u.dict->key[i],
                   c->named->u.dict->val[i]);
    return v;
}

/* What the class of an enumeration puts in the place of auto(). */
static Py
member_number(Interp *in, const PyCall *c)
{
    return c->n ? pylib_unknown(in, c) : py_object_of(in, "auto");
}

/* ---- versions, packages, the environment */

static Py
version(Interp *in, const PyCall *c)
{
    Py text = pyarg(c, 0, "version"), v = py_object_of(in, "Version");
    Py release = py_list(in, PY_TUPLE, NULL, 0);
    if (!text || text->kind != PY_STR)
        return pylib_unknown(in, c);
    const char *p = text->u.str.s;
    while (isdigit((unsigned char)*p) && release->u.list->n < 8) {
        char *end;
        py_push(in, release->u.list, py_int(in, strtol(p, &end, 10)));
        p = end;
        if (*p != '.' || !isdigit((unsigned char)p[1]))
            break;
        p++;
    }
    /* Versions before a release ("3.0rc1", "2.1.dev0") come before it: Python's rules for
       those are not known here. A local part ("+cu130") does not count. */
    if (!release->u.list->n || (*p && *p != '+'))
        return pylib_unknown(in, c);
    while (release->u.list->n > 1 &&
           release->u.list->at[release->u.list->n - 1]->u.i == 0)
        release->u.list->n--;
    pydict_set(in, v->u.object->attrs, py_str(in, "release"), release);
    pydict_set(in, v->u.object->attrs, py_str(in, "text"), text);
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"major", "minor", "micro"};
        pydict_set(in, v->u.object->attrs, py_str(in, names[i]),
                   i < release->u.list->n ? release->u.list->at[i] : py_int(in, 0));
    }
    return v;
}

static Py
import_module(Interp *in, const PyCall *c)
{
    if (c->n < 1 || c->at[0]->kind != PY_STR || c->at[0]->u.str.s[0] == '.' ||
        !c->at[0]->u.str.n)
        return pylib_unknown(in, c);
    ModuleImport im = {.path = name_of(&in->s->names, c->at[0]->u.str.s), .loc = c->loc};
    return py_resolve(in, py_import(in, in->frame->scope->m, &im, true));
}

/* importlib.util.find_spec(x): None, or something. */
static Py
find_spec(Interp *in, const PyCall *c)
{
    if (c->n < 1 || c->at[0]->kind != PY_STR || !c->at[0]->u.str.n)
        return pylib_unknown(in, c);
    const char *path = c->at[0]->u.str.s;
    int has = py_has_module(path);
    if (has < 0)
        has = module_load_import(in->frame->scope->m, name_of(&in->s->names, path), 0) !=
              NULL;
    if (!has)
        return in->none;
    Py v = py_object_of(in, "ModuleSpec");
    pydict_set(in, v->u.object->attrs, py_str(in, "name"), c->at[0]);
    pydict_set(in, v->u.object->attrs, py_str(in, "loader"),
               py_object_of(in, "ModuleLoader"));
    return v;
}

/* The module that loader.exec_module would fill. */
static Py
module_from_spec(Interp *in, const PyCall *c)
{
    Py spec = pyarg(c, 0, "spec");
    Py name = spec && spec->kind == PY_OBJECT && spec->u.object->attrs
                  ? pydict_name(spec->u.object->attrs, "name")
                  : NULL;
    PyCall one = {.at = &name, .n = 1, .named = c->named, .node = c->node, .loc = c->loc};
    return name ? import_module(in, &one) : pylib_unknown(in, c);
}

/* tl functions that run at compile time are that already. */
static Py
keep_value(Interp *in, const PyCall *c)
{
    Py v = pyarg(c, 0, "fn");
    return v && (v->kind == PY_FE || v->kind == PY_FUNC) ? v : pylib_unknown(in, c);
}

static Py
getenv_call(Interp *in, const PyCall *c)
{
    Py all = pylib_constant(in, "os.environ", c->loc), key = pyarg(c, 0, "key");
    Py v = key && key->kind == PY_STR ? pydict_name(all->u.dict, key->u.str.s) : NULL;
    return v ? v : pyarg(c, 1, "default") ? pyarg(c, 1, "default") : in->none;
}

/* ---- the device */

/* 90 of "sm_90a"; 0: the CPU; -1: no target yet. */
static int
target_sm(const Interp *in)
{
    if (!in->target)
        return -1;
    return strncmp(in->target, "sm_", 3) == 0 ? atoi(in->target + 3) : 0;
}

static Py
no_target(Interp *in, const PyCall *c)
{
    return py_unknown(in, c->loc, c->node ? py_source(in, c->node) : NULL,
                      "it depends on the device");
}

static Py
cuda_available(Interp *in, const PyCall *c)
{
    int sm = target_sm(in);
    return sm < 0 ? no_target(in, c) : py_bool(in, sm > 0);
}

static Py
cuda_capability(Interp *in, const PyCall *c)
{
    int sm = target_sm(in);
    if (sm <= 0)
        return no_target(in, c);
    Py pair[2] = {py_int(in, sm / 10), py_int(in, sm % 10)};
    return py_list(in, PY_TUPLE, pair, 2);
}

static Py
never(Interp *in, const PyCall *c)
{
    (void)c;
    return in->no;
}

/* torch looks for a device that its drivers know; kernels are here all the same. */
static Py
always(Interp *in, const PyCall *c)
{
    (void)c;
    return in->yes;
}

static Py
current_target(Interp *in, const PyCall *c)
{
    int sm = target_sm(in);
    if (sm < 0)
        return no_target(in, c);
    Py v = py_object_of(in, "GPUTarget");
    const char *backend = sm ? "cuda" : "cpu";
    pydict_set(in, v->u.object->attrs, py_str(in, "backend"), py_str(in, backend));
    pydict_set(in, v->u.object->attrs, py_str(in, "arch"), py_int(in, sm));
    pydict_set(in, v->u.object->attrs, py_str(in, "warp_size"), py_int(in, sm ? 32 : 0));
    return v;
}

/* ---- Triton */

static Py
decorator(Interp *in, const PyCall *c)
{
    PyVal *v = py_new(in, PY_DECORATOR);
    PyDecor *d = arena_new(in->a, PyDecor);
    const char *kind = c->name + strlen("triton.");
    *d = (PyDecor){.kind = kind,
                   .call = c->node && c->node->kind == ND_CALL ? c->node : NULL,
                   .args = py_list(in, PY_TUPLE, c->at, c->n),
                   .named = c->named};
    v->u.decor = d;
    if (c->n < 1 || c->at[0]->kind != PY_FUNC || strcmp(kind, "jit") != 0)
        return v;
    /* @triton.jit, or triton.jit(f, ..) */
    if (!c->named->u.dict->n)
        d->call = NULL;
    PyCall one = {.at = c->at, .n = 1, .named = py_dict(in), .loc = c->loc};
    return py_call(in, v, &one);
}

static Py
config(Interp *in, const PyCall *c)
{
    static const char *const names[] = {"kwargs",   "num_warps", "num_stages",
                                        "num_ctas", "maxnreg",   "pre_hook"};
    Py v = py_object_of(in, "Config");
    for (int i = 0; i < 6; i++) {
        Py x = pyarg(c, i, names[i]);
        if (x)
            pydict_set(in, v->u.object->attrs, py_str(in, names[i]), x);
    }
    return v;
}

static Py
constexpr_call(Interp *in, const PyCall *c)
{
    Py v = pyarg(c, 0, "value");
    return v ? py_constexpr(in, v) : pylib_unknown(in, c);
}

static Py
cdiv(Interp *in, const PyCall *c)
{
    if (c->n != 2)
        return pylib_unknown(in, c);
    Py up = py_binary(in, OS_SUB, py_binary(in, OS_ADD, c->at[0], c->at[1], c->loc),
                      py_int(in, 1), c->loc);
    return py_raises(in) ? up : py_binary(in, OS_FLOORDIV, up, c->at[1], c->loc);
}

static Py
next_power(Interp *in, const PyCall *c)
{
    Wide n, p = 1;
    if (c->n != 1 || !pyarg_int(c->at[0], &n) || n < 1 || n > (Wide)1 << 62)
        return pylib_unknown(in, c);
    while (p < n)
        p *= 2;
    return py_int(in, p);
}

const PyEntry pylib_host[] = {
    {"math.sqrt", math_function},
    {"math.exp", math_function},
    {"math.exp2", math_function},
    {"math.sin", math_function},
    {"math.cos", math_function},
    {"math.tan", math_function},
    {"math.tanh", math_function},
    {"math.erf", math_function},
    {"math.log", math_function},
    {"math.log2", math_function},
    {"math.log10", math_function},
    {"math.fabs", math_function},
    {"math.expm1", math_function},
    {"math.log1p", math_function},
    {"math.atan", math_function},
    {"math.ceil", math_function},
    {"math.floor", math_function},
    {"math.trunc", math_function},
    {"math.pow", math_two},
    {"math.gcd", math_two},
    {"math.prod", math_prod},
    {"numpy.sqrt", math_function},
    {"operator.ge", operator_call},
    {"operator.gt", operator_call},
    {"operator.le", operator_call},
    {"operator.lt", operator_call},
    {"operator.eq", operator_call},
    {"operator.ne", operator_call},
    {"operator.add", operator_call},
    {"operator.sub", operator_call},
    {"operator.mul", operator_call},
    {"operator.truediv", operator_call},
    {"operator.floordiv", operator_call},
    {"operator.mod", operator_call},
    {"enum.auto", member_number},
    {"functools.partial", partial},
    {"functools.reduce", reduce},
    {"functools.lru_cache", keep_function},
    {"functools.cache", keep_function},
    {"functools.wraps", keep_function},
    {"itertools.product", product},
    {"itertools.chain", chain},
    {"copy.copy", copy},
    {"copy.deepcopy", copy},
    {"types.SimpleNamespace", namespace},
    {"packaging.version.parse", version},
    {"packaging.version.Version", version},
    {"importlib.import_module", import_module},
    {"importlib.util.find_spec", find_spec},
    {"importlib.util.module_from_spec", module_from_spec},
    {"os.getenv", getenv_call},
    {"triton.constexpr_function", keep_value},
    {"torch.cuda.is_available", cuda_available},
    {"torch.cuda.get_device_capability", cuda_capability},
    {"torch.xpu.is_available", never},
    {"torch.utils._triton.has_triton", always},
    {"torch.utils._triton.has_triton_package", always},
    {"triton.aggregate", keep_value},
    {"triton.language.core._aggregate", keep_value},
    {"triton.jit", decorator},
    {"triton.runtime.driver.active.get_current_target", current_target},
    {"triton.autotune", decorator},
    {"triton.heuristics", decorator},
    {"triton.Config", config},
    {"triton.cdiv", cdiv},
    {"triton.language.cdiv", cdiv},
    {"triton.next_power_of_2", next_power},
    {"triton.language.constexpr", constexpr_call},
    {NULL, NULL},
};

/* ---- constants */

static Py
environment(Interp *in)
{
    Py v = py_dict(in);
    for (int i = 0; i < module_define_count(in->root); i++) {
        const char *value, *name = module_define_text(in->root, i, &value);
        pydict_set(in, v->u.dict, py_str(in, name), py_str(in, value));
    }
    return v;
}

static Py
cuda_version(Interp *in, Loc loc)
{
    int sm = target_sm(in);
    return sm > 0 ? py_str(in, "13.0")
           : sm == 0
               ? in->none
               : py_unknown(in, loc, "torch.version.cuda", "it depends on the device");
}

Py
pylib_constant(Interp *in, const char *path, Loc loc)
{
    static const struct {
        const char *path;
        double value;
    } numbers[] = {{"math.pi", 3.141592653589793},
                   {"math.e", 2.718281828459045},
                   {"math.tau", 6.283185307179586},
                   {"math.inf", INFINITY},
                   {"math.nan", NAN},
                   {"numpy.pi", 3.141592653589793},
                   {"numpy.inf", INFINITY},
                   {"numpy.e", 2.718281828459045},
                   {"torch.pi", 3.141592653589793},
                   {"torch.inf", INFINITY}};
    static const struct {
        const char *path, *text;
    } texts[] = {{"triton.__version__", "3.9.0"},
                 {"sys.platform", "linux"},
                 {"os.name", "posix"},
                 {"os.sep", "/"}};
    static const char *const off[] = {"typing.TYPE_CHECKING"};
    static const char *const none[] = {"torch.version.hip", "torch.version.xpu"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(path, numbers[i].path) == 0)
            return py_float(in, numbers[i].value);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(path, texts[i].path) == 0)
            return py_str(in, texts[i].text);
    if (strcmp(path, off[0]) == 0)
        return in->no;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        if (strcmp(path, none[i]) == 0)
            return in->none;
    if (strcmp(path, "os.environ") == 0)
        return environment(in);
    if (strcmp(path, "torch.version.cuda") == 0)
        return cuda_version(in, loc);
    if (strcmp(path, "sys.version_info") == 0) {
        Py v[3] = {py_int(in, 3), py_int(in, 12), py_int(in, 0)};
        return py_list(in, PY_TUPLE, v, 3);
    }
    return NULL;
}
