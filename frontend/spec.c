/* Signatures: Triton's positional form '*fp16:16,i32,128', the form by name
   'x=*fp16:16,BLOCK=128', and -c NAME=VALUE. What they leave open comes from annotations,
   the first autotune configuration and defaults. */
#include "frontend/spec.h"

#include "frontend/builtin.h"
#include "frontend/class.h"
#include "frontend/hint.h"
#include "frontend/module.h"
#include "frontend/py.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool
param_is_constexpr(const Node *p)
{
    if (!p->a)
        return false;
    const char *text =
        p->a->kind == ND_NAME || p->a->kind == ND_ATTRIBUTE ? p->a->name : node_str(p->a);
    return text && strstr(text, "constexpr");
}

bool
parse_desc_sig(const char *sig, DType *dt, Shape *block)
{
    static const char prefix[] = "tensordesc<";
    if (strncmp(sig, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *p = sig + sizeof prefix - 1, *open = strchr(p, '[');
    if (!open)
        return false;
    *dt = dtype_by_sig(p, (size_t)(open - p));
    *block = (Shape){0};
    p = open + 1;
    while (*dt != DT_NONE && block->rank < 5) {
        char *end;
        long n = strtol(p, &end, 10);
        if (end == p)
            return false;
        block->dim[block->rank++] = n;
        while (*end == ' ')
            end++;
        if (strcmp(end, "]>") == 0 || strncmp(end, "],", 2) == 0)
            return dtype_is_scalar(*dt);
        if (*end != ',')
            return false;
        p = end + 1;
    }
    return false;
}

/* "fp16", "*fp32", "i32", "tensordesc<fp16[64,64]>" of a parameter's annotation in
   Triton's spelling; NULL when it names no type. */
static const char *
annotation_sig(Arena *a, const Node *p)
{
    const char *text = p->a ? node_str(p->a) : NULL;
    DType dt = DT_NONE;
    Shape block;
    if (text) {
        if (parse_desc_sig(text, &dt, &block))
            return text;
        dt = dtype_by_sig(text, strlen(text));
    } else if (p->a && p->a->kind == ND_NAME) {
        if (strcmp(p->a->name, "int") == 0 || strcmp(p->a->name, "float") == 0 ||
            strcmp(p->a->name, "bool") == 0)
            dt = dtype_by_sig(p->a->name, strlen(p->a->name));
    } else if (p->a && p->a->kind == ND_ATTRIBUTE) {
        dt = dtype_by_tl_name(p->a->name, strlen(p->a->name));
    }
    if (dt == DT_NONE)
        return NULL;
    if (dtype_is_ptr(dt))
        return arena_printf(a, "*%s%s", dtype_is_const(dt) ? "k" : "",
                            dtype_info[dtype_pointee(dt)].sig);
    return dtype_info[dt].sig;
}

Val
spec_object(Sema *s, const char *class_, const Val *items, int n, Loc loc)
{
    Name name = name_of(&s->s->names, class_);
    Val k = module_lookup(s, s->m, name, loc, true);
    if (k && val_is_error(k))
        return k;
    if (!k || k->kind != FE_TYPE || k->n != CLASS_USER || !k->u.class_->is_tuple)
        return sema_error(s, loc, "'%s' is no NamedTuple of the file", class_);
    CallArg *args = arena_array(s->a, CallArg, n + 1);
    for (int i = 0; i < n; i++)
        args[i] = (CallArg){.v = items[i], .loc = loc, .name_loc = loc};
    return class_construct(s, k, args, n, loc);
}

/* "twice", "tl.exp", "Mode.FAST": a function, or what a class of the file says; NULL: the
   text is no such thing. */
static Val
named_value(Sema *s, const char *text, Loc loc)
{
    NameTable *names = &s->s->names;
    Diag before = s->s->diag;
    Name name = name_intern(names, text, strcspn(text, "."));
    bool member = false, host = !module_function(s->m, name, true);
    Val v = module_lookup(s, s->m, name, loc, true);
    for (const char *dot = strchr(text, '.'); v && dot; dot = strchr(dot + 1, '.')) {
        name = name_intern(names, dot + 1, strcspn(dot + 1, "."));
        member = v->kind == FE_TYPE && v->n == CLASS_USER;
        v = member                 ? class_attribute(s, v, name, loc)
            : v->kind == FE_MODULE ? module_attribute(s, v, name, loc, true)
                                   : NULL;
    }
    if (v && !member && v->kind != FE_BUILTIN && (v->kind != FE_FUNC || host))
        v = NULL;
    if (!v)
        diag_rewind(&s->s->diag, &before);
    return v;
}

Val
spec_value(Sema *s, const SpecArg *a, Loc loc)
{
    switch (a->kind) {
    case SPEC_INT: return val_int(s, a->i);
    case SPEC_FLOAT: return val_float(s, a->f);
    case SPEC_BOOL: return val_bool(s, a->i != 0);
    case SPEC_STR: return val_str(s, a->str);
    case SPEC_NONE: return val_none();
    case SPEC_NAME: {
        Val v = named_value(s, a->str, loc);
        return v ? v : val_str(s, a->str);
    }
    case SPEC_TUPLE: {
        Val *items = arena_array(s->a, Val, a->nitem + 1);
        for (int i = 0; i < a->nitem; i++) {
            items[i] = spec_value(s, &a->items[i], loc);
            if (val_is_error(items[i]))
                return items[i];
        }
        return a->str ? spec_object(s, a->str, items, a->nitem, loc)
                      : val_tuple(s, items, a->nitem);
    }
    case SPEC_DTYPE: {
        DType dt = dtype_by_sig(a->sig, strlen(a->sig));
        if (dt != DT_NONE)
            return val_dtype(s, dt);
        return sema_error(s, loc, "unknown dtype '%s'", a->sig);
    }
    case SPEC_TYPE:
    case SPEC_UNSET: break;
    }
    return NULL;
}

/* ---- reading one entry */

static bool parse_tuple(Session *s, const char *t, size_t n, bool types,
                        SpecArg *out);

/* A value of Python's constants: 3, -1, 0.5, True, None, 'text', tl.float16, (1, 2). */
static bool
parse_constant(Session *s, const char *t, SpecArg *out)
{
    size_t n = strlen(t);
    char *end;
    if (n >= 2 && ((t[0] == '(' && t[n - 1] == ')') || (t[0] == '[' && t[n - 1] == ']')))
        return parse_tuple(s, t + 1, n - 2, false, out);
    if (strcmp(t, "None") == 0 || strcmp(t, "none") == 0) {
        out->kind = SPEC_NONE;
        return true;
    }
    if (strcmp(t, "True") == 0 || strcmp(t, "False") == 0 || strcmp(t, "true") == 0 ||
        strcmp(t, "false") == 0) {
        out->kind = SPEC_BOOL;
        out->i = t[0] == 'T' || t[0] == 't';
        return true;
    }
    if (n >= 2 && (t[0] == '\'' || t[0] == '"') && t[n - 1] == t[0]) {
        out->kind = SPEC_STR;
        out->str = arena_strndup(&s->perm, t + 1, n - 2);
        return true;
    }
    errno = 0;
    long long i = strtoll(t, &end, 0);
    if (end != t && !*end && errno == 0) {
        out->kind = SPEC_INT;
        out->i = i;
        return true;
    }
    double f = strtod(t, &end);
    if (end != t && !*end && (isdigit((unsigned char)t[0]) || strchr("+-.", t[0]))) {
        out->kind = SPEC_FLOAT;
        out->f = f;
        return true;
    }
    const char *name = strncmp(t, "tl.", 3) == 0 ? t + 3 : t;
    DType dt = dtype_by_sig(name, strlen(name));
    if (dt != DT_NONE && dtype_is_scalar(dt)) {
        out->kind = SPEC_DTYPE;
        out->sig = dtype_info[dt].sig;
        return true;
    }
    return false;
}

static bool
parse_word(Session *s, const char *t, SpecArg *out)
{
    if (!isalpha((unsigned char)t[0]) && t[0] != '_' && t[0])
        return false;
    out->kind = SPEC_NAME;
    out->str = arena_strndup(&s->perm, t, strlen(t));
    return true;
}

static bool
parse_type(Session *s, const char *t, SpecArg *out)
{
    DType dt;
    Shape block;
    const char *colon = strrchr(t, ':');
    size_t n = colon ? (size_t)(colon - t) : strlen(t);
    char *sig = arena_strndup(&s->perm, t, n);
    out->div = 1;
    if (colon) {
        if (strcmp(colon, ":1") != 0 && strcmp(colon, ":16") != 0)
            return false;
        out->div = strcmp(colon, ":16") == 0 ? 16 : 1;
        if (strcmp(colon, ":1") == 0 && sig[0] != '*') { /* the value is 1 */
            out->kind = SPEC_INT;
            out->i = 1;
            return dtype_by_sig(sig, n) != DT_NONE;
        }
    }
    out->kind = SPEC_TYPE;
    out->sig = sig;
    if (parse_desc_sig(sig, &dt, &block))
        return true;
    dt = dtype_by_sig(sig, n);
    if (dt == DT_NONE)
        return false;
    out->sig = dtype_is_ptr(dt)
                   ? arena_printf(&s->perm, "*%s%s", dtype_is_const(dt) ? "k" : "",
                                  dtype_info[dtype_pointee(dt)].sig)
                   : dtype_info[dt].sig;
    return true;
}

static bool
parse_item(Session *s, const char *text, bool types, SpecArg *out)
{
    size_t n = strlen(text);
    if (types && n > 1 && text[0] == '(' && text[n - 1] == ')')
        return parse_tuple(s, text + 1, n - 2, true, out);
    if (types && parse_type(s, text, out))
        return true;
    *out = (SpecArg){0};
    return parse_constant(s, text, out) || (!types && parse_word(s, text, out));
}

/* The n characters between the brackets of a tuple: constants, and with `types` what a
   launch gives values for. */
static bool
parse_tuple(Session *s, const char *t, size_t n, bool types, SpecArg *out)
{
    Vec(SpecArg) items = {0};
    const char *start = t, *last = t + n;
    int depth = 0;
    char quote = 0;
    for (const char *p = t; p <= last; p++) {
        char c = p < last ? *p : ',';
        if (quote) {
            quote = c == quote && p < last ? 0 : quote;
            if (p < last)
                continue;
            return false;
        }
        quote = c == '\'' || c == '"' ? c : 0;
        depth += c == '(' || c == '[' || c == '<';
        depth -= c == ')' || c == ']' || c == '>';
        if (c != ',' || (depth && p < last))
            continue;
        const char *end = p;
        while (start < end && isspace((unsigned char)*start))
            start++;
        while (end > start && isspace((unsigned char)end[-1]))
            end--;
        if (start == end && p == last) /* behind the last comma, or () */
            break;
        SpecArg item = {0};
        const char *text = arena_strndup(&s->perm, start, (size_t)(end - start));
        if (depth || !*text || !parse_item(s, text, types, &item))
            return false;
        vec_push(&s->perm, &items, item);
        start = p + 1;
    }
    *out = (SpecArg){.kind = SPEC_TUPLE, .items = items.at, .nitem = items.n};
    return true;
}

/* "(i32, i32:16)" or "Point(*fp32, i32)": an argument that is a tuple, the second one of
   a class. */
static bool
parse_tuple_type(Session *s, const char *t, SpecArg *out)
{
    size_t n = strlen(t), name = strcspn(t, "(");
    bool dotted = name > 0 && !isalpha((unsigned char)t[0]) && t[0] != '_';
    if (n < 2 || t[name] != '(' || t[n - 1] != ')' || dotted)
        return false;
    if (!parse_tuple(s, t + name + 1, n - name - 2, true, out))
        return false;
    out->str = name ? arena_strndup(&s->perm, t, name) : NULL;
    return true;
}

static const char known_types[] =
    "types are such as *fp32, *bf16:16, i32, i32:16, fp32, tensordesc<fp16[64,32]>, "
    "tensordesc<fp16[64,32]>:16, (i32, *fp32); ";

static bool
parse_entry(Session *s, Loc loc, const Node *p, const char *text, SpecArg *out)
{
    bool constexpr_ = param_is_constexpr(p);
    *out = (SpecArg){0};
    if (!constexpr_ && (parse_type(s, text, out) || parse_tuple_type(s, text, out)))
        return true;
    *out = (SpecArg){0};
    if (parse_constant(s, text, out))
        return true;
    if (constexpr_ && parse_word(s, text, out)) /* ACT=relu needs no quotes */
        return true;
    diag_error(&s->diag, loc, "cannot read '%s' as the %s of '%s'", text,
               constexpr_ ? "value" : "type or value", p->name);
    const char *next = strchr(text, ',');
    if (constexpr_ && next && strchr(next, '='))
        diag_note(&s->diag, loc, "one at a time: -c '%s=%.*s' -c '%s'", p->name,
                  (int)(next - text), text, next + 1);
    else
        diag_note(&s->diag, loc,
                  "%svalues are such as 128, 0.5, True, None, 'text', tl.float16, "
                  "(1, 2), a jit function",
                  constexpr_ ? "" : known_types);
    return false;
}

static int
find_param(const Node *fn, const char *name, size_t n)
{
    for (int i = 0; i < fn->list.n; i++)
        if (strlen(fn->list.at[i]->name) == n &&
            memcmp(fn->list.at[i]->name, name, n) == 0)
            return i;
    return -1;
}

static void
note_near(Session *s, const Node *fn, const char *name)
{
    const char *near = NULL;
    int least = strlen(name) < 3 ? (int)strlen(name) : 3; /* no letter for another */
    for (int i = 0; i < fn->list.n; i++) {
        int d = name_distance(name, fn->list.at[i]->name);
        if (d < least) {
            least = d;
            near = fn->list.at[i]->name;
        }
    }
    if (near)
        diag_note(&s->diag, (Loc){0}, "did you mean '%s'?", near);
}

/* NAME=VALUE or VALUE; spaces around are dropped. */
static bool
take_entry(Session *s, const Node *fn, const char *text, size_t n, int *at,
           FrontSpec *out)
{
    while (n && isspace((unsigned char)*text))
        text++, n--;
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    const char *eq = memchr(text, '=', n);
    int i = eq && text[0] != '\'' && text[0] != '"'
                ? find_param(fn, text, (size_t)(eq - text))
            : at ? (*at)++
                 : -1;
    if (eq && i < 0) {
        diag_error(&s->diag, fn->loc, "kernel '%s' has no parameter '%.*s'", fn->name,
                   (int)(eq - text), text);
        note_near(s, fn, arena_strndup(&s->tmp, text, (size_t)(eq - text)));
        return false;
    }
    if (i < 0 || i >= fn->list.n) {
        diag_error(&s->diag, fn->loc,
                   i < 0 ? "'%.*s' must have the form NAME=VALUE"
                         : "the signature has too many entries at "
                           "'%.*s'",
                   (int)n, text);
        return false;
    }
    if (eq && at)
        *at = i + 1;
    const char *from = eq ? eq + 1 : text;
    char *value = arena_strndup(&s->tmp, from, (size_t)(text + n - from));
    return parse_entry(s, fn->loc, fn->list.at[i], value, &out->args[i]);
}

static bool
take_signature(Session *s, const Node *fn, const char *sig, FrontSpec *out)
{
    int depth = 0, at = 0;
    char quote = 0;
    const char *start = sig;
    for (const char *p = sig;; p++) {
        if (quote) {
            quote = *p == quote ? 0 : quote;
            if (*p)
                continue;
        }
        if (*p == '\'' || *p == '"')
            quote = *p;
        depth += strchr("[<(", *p ? *p : ' ') != NULL;
        depth -= strchr("]>)", *p ? *p : ' ') != NULL;
        if (*p && (*p != ',' || depth > 0))
            continue;
        if (p > start && !take_entry(s, fn, start, (size_t)(p - start), &at, out))
            return false;
        start = p + 1;
        if (!*p)
            return true;
    }
}

/* A value of the autotune configuration for the host. */
static bool
from_value(Sema *sema, Val v, SpecArg *out)
{
    Session *s = sema->s;
    switch (v->kind) {
    case FE_INT:
        *out = (SpecArg){.kind = SPEC_INT, .i = (int64_t)v->u.i};
        return v->u.i == out->i; /* more bits stay with the source */
    case FE_BOOL: *out = (SpecArg){.kind = SPEC_BOOL, .i = v->u.i != 0}; return true;
    case FE_FLOAT: *out = (SpecArg){.kind = SPEC_FLOAT, .f = v->u.f}; return true;
    case FE_NONE: *out = (SpecArg){.kind = SPEC_NONE}; return true;
    case FE_STR:
        *out = (SpecArg){.kind = SPEC_STR,
                         .str = arena_strndup(&s->perm, v->u.s, strlen(v->u.s))};
        return true;
    case FE_DTYPE:
        *out = (SpecArg){.kind = SPEC_DTYPE, .sig = dtype_info[v->dt].sig};
        return dtype_is_scalar(v->dt);
    case FE_FUNC: {
        const Node *fn = v->u.func;
        *out = (SpecArg){.kind = SPEC_NAME, .str = fn->name};
        return !v->self && fn->name && module_function(sema->m, fn->name, true) == fn;
    }
    case FE_TUPLE: {
        SpecArg *items = arena_array(&s->perm, SpecArg, v->n + 1);
        for (int i = 0; i < v->n; i++)
            if (!from_value(sema, v->u.items[i], &items[i]))
                return false;
        *out = (SpecArg){.kind = SPEC_TUPLE, .items = items, .nitem = v->n};
        return !v->self;
    }
    default: return false;
    }
}

/* What @triton.heuristics({"NAME": f}) makes of the values known so far; NULL: it needs
   one that is not known. */
static Val
heuristic_value(Sema *s, const Node *fn, const FrontSpec *spec, Name name)
{
    Interp *in = module_interp(s->m);
    Py all = decorator_value(s->m, fn, "heuristics", "values", 0);
    Py rule = all && all->kind == PY_DICT ? pydict_name(all->u.dict, name) : NULL;
    if (!rule)
        return NULL;
    Py args = py_dict(in);
    for (int i = 0; i < spec->narg; i++) {
        const FrontValue *given = module_value(s->m, i);
        const SpecArg *a = &spec->args[i];
        Val v = a->kind == SPEC_TYPE && given ? val_int(s, given->i)
                                              : spec_value(s, a, fn->loc);
        Name param = fn->list.at[i]->name;
        if (v && !val_is_error(v))
            pydict_set(in, args->u.dict, py_str(in, param), py_from_val(in, v));
        else
            pydict_set(in, args->u.dict, py_str(in, param),
                       py_unknown(in, fn->loc, NULL, "an argument of the launch"));
    }
    return py_call_host(s, rule, args);
}

/* The default of a constexpr, where it is a value that a host can be told: grids may name
   it. What is none, or is in error, is left to front_lower. */
static void
take_default(Sema *s, const Node *p, SpecArg *out)
{
    if (!param_is_constexpr(p))
        return;
    Diag before = s->s->diag;
    SpecArg value;
    s->host++;
    Val v = eval(s, p->b);
    s->host--;
    diag_rewind(&s->s->diag, &before);
    if (v && !val_is_error(v) && from_value(s, v, &value))
        *out = value;
}

/* Whether parameter i has neither type, value nor default. */
static bool
is_missing(const Node *fn, const FrontSpec *spec, int i)
{
    return spec->args[i].kind == SPEC_UNSET && !fn->list.at[i]->b;
}

/* Parameter i is missing, and which others: all are told at once. */
static void
say_missing(Session *s, const Node *fn, const Config *c, const FrontSpec *spec, int i)
{
    const Node *p = fn->list.at[i];
    bool type = !param_is_constexpr(p);
    Buf others;
    buf_init(&others, &s->tmp);
    for (int k = i + 1; k < fn->list.n; k++)
        if (is_missing(fn, spec, k))
            buf_printf(&others, "%s%s", others.n ? ", " : "", fn->list.at[k]->name);
    if (type)
        diag_error(&s->diag, p->loc, "no type for parameter '%s' of '%s': give it in "
                   "the signature, -s '%s=*fp32' or '%s=i32'", p->name, fn->name, p->name,
                   p->name);
    else
        diag_error(&s->diag, p->loc, "no value for constexpr parameter '%s' of '%s': "
                   "bind '%s=VALUE' (-c on the command line)", p->name, fn->name,
                   p->name);
    if (others.n)
        diag_note(&s->diag, (Loc){0}, "also without one: %s", others.s);
    if (type) {
        diag_note(&s->diag, (Loc){0}, "'sdc check' guesses a signature and prints it");
        return;
    }
    if (c->asked)
        diag_note(&s->diag, c->loc, "these configurations are not literals, so they "
                  "cannot be evaluated here");
    const Node *h = find_decorator(fn, "heuristics");
    if (h)
        diag_note(&s->diag, h->loc,
                  "heuristics are evaluated only on values given here");
}

/* What the text leaves open. `all`: what then has no value is an error. */
static bool
fill_open(Sema *sema, const Node *fn, const Config *c, bool all, FrontSpec *out)
{
    Session *s = sema->s;
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        SpecArg *a = &out->args[i];
        if (a->kind != SPEC_UNSET)
            continue;
        Val v = config_value(c, p->name);
        if (!v)
            v = heuristic_value(sema, fn, out, p->name);
        const char *sig = param_is_constexpr(p) ? NULL : annotation_sig(&s->perm, p);
        if (v && from_value(sema, v, a))
            continue;
        if (sig)
            *a = (SpecArg){.kind = SPEC_TYPE, .sig = sig, .div = 1};
        else if (p->b && all)
            take_default(sema, p, a);
    }
    for (int i = 0; all && i < fn->list.n; i++)
        if (is_missing(fn, out, i)) {
            say_missing(s, fn, c, out, i);
            return false;
        }
    return true;
}

static bool
listed(const Node *list, const Node *param, int index)
{
    if (!list)
        return false;
    for (int i = 0; i < list->list.n; i++) {
        const Node *e = list->list.at[i];
        const char *text = node_str(e);
        if (text
                ? strcmp(text, param->name) == 0
                : e->kind == ND_CONSTANT && e->sub == CK_INT && e->v.u == (uint64_t)index)
            return true;
    }
    return false;
}

static const Node *
frozen_list(const Node *fn)
{
    const Node *jit = find_decorator(fn, "jit");
    return jit && jit->kind == ND_CALL ? call_argument(jit, "do_not_specialize", -1)
                                       : NULL;
}

static bool
check_frozen(Session *s, const Node *fn)
{
    const Node *frozen = frozen_list(fn);
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        if (!param_is_constexpr(p) || !listed(frozen, p, i))
            continue;
        diag_error(&s->diag, p->loc, "%s marked as constexpr and listed in "
                   "do_not_specialize: a constexpr is always specialized on", p->name);
        return false;
    }
    return true;
}

bool
spec_read(Sema *sema, const Node *fn, const SpecText *text, bool all, FrontSpec *out)
{
    Session *s = sema->s;
    memset(out, 0, sizeof *out);
    out->narg = fn->list.n;
    out->args = arena_array(&s->perm, SpecArg, fn->list.n + 1);
    for (int i = 0; i < fn->list.n; i++)
        out->args[i].kind = SPEC_UNSET;
    bool ok = check_frozen(s, fn) &&
              (!text->signature || take_signature(s, fn, text->signature, out));
    for (int i = 0; ok && i < text->nbind; i++)
        ok = take_entry(s, fn, text->bind[i], strlen(text->bind[i]), NULL, out);
    if (ok) {
        Config c = config_first(sema, fn);
        ok = fill_open(sema, fn, &c, all, out);
        out->num_warps = c.num_warps;
        out->num_stages = c.num_stages;
        out->num_ctas = c.num_ctas;
    }
    return ok;
}

bool
front_spec_parse(FrontModule *m, const char *kernel, const char *signature,
                 const char *const *overrides, int noverride, FrontSpec *out)
{
    Session *s = module_session(m);
    const Node *fn = module_kernel(m, kernel);
    if (!fn)
        return false;
    ArenaMark mark = arena_mark(&s->tmp);
    Sema sema;
    Frame host;
    sema_init(&sema, m, &host);
    SpecText text = {signature, overrides, noverride};
    s->diag.stage = "signature";
    bool ok = spec_read(&sema, fn, &text, true, out);
    arena_reset(&s->tmp, mark);
    return ok;
}

/* ---- what a host must know before */

bool
front_has_heuristics(FrontModule *m, const char *kernel)
{
    const Node *fn = module_kernel(m, kernel);
    return fn && find_decorator(fn, "heuristics");
}

bool
front_params(FrontModule *m, const char *kernel, const FrontParam **params, int *n)
{
    Session *s = module_session(m);
    const Node *fn = module_kernel(m, kernel);
    if (!fn)
        return false;
    const Node *frozen = frozen_list(fn);
    FrontParam *out = arena_array(&s->perm, FrontParam, fn->list.n + 1);
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        out[i] = (FrontParam){.name = p->name,
                              .is_constexpr = param_is_constexpr(p),
                              .has_default = p->b != NULL,
                              .annotated = annotation_sig(&s->perm, p),
                              .no_specialize = listed(frozen, p, i)};
    }
    *params = out;
    *n = fn->list.n;
    return true;
}
