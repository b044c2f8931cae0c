/* Expressions of the host, from left to right as Python evaluates them. */
#include "frontend/py.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

Py
py_raise(Interp *in, Loc loc, const char *type, const char *fmt, ...)
{
    Buf b;
    va_list ap;
    buf_init(&b, in->a);
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    if (!in->raised.type)
        in->raised = (PyRaise){type, loc};
    return py_unknown(in, loc, NULL, "%s", b.s ? b.s : type);
}

bool
py_raises(const Interp *in)
{
    return in->raised.type != NULL;
}

bool
py_step(Interp *in, int64_t n)
{
    in->steps += n;
    in->all_steps += n;
    if (in->steps <= in->budget)
        return true;
    if (!in->raised.type)
        in->raised = (PyRaise){PY_LIMIT, {0}};
    return false;
}

/* Where the lines of a text begin; made once. */
static const size_t *
line_starts(Interp *in, const Source *src)
{
    size_t *at = map_get(&in->lines, src);
    if (at)
        return at;
    size_t n = 1;
    for (size_t i = 0; i < src->size; i++)
        n += src->text[i] == '\n';
    at = arena_array(in->a, size_t, n + 1);
    at[0] = n; /* line numbers begin with 1 */
    n = 1;
    at[n++] = 0;
    for (size_t i = 0; i < src->size; i++)
        if (src->text[i] == '\n')
            at[n++] = i + 1;
    map_set(&in->lines, src, at);
    return at;
}

const char *
py_source(Interp *in, const Node *n)
{
    enum { MAX_KEY = 80 };
    Loc l = n->loc;
    if (!l.src || l.line <= 0 || l.line != l.end_line || l.end_col <= l.col || l.col <= 0)
        return NULL;
    const size_t *starts = line_starts(in, l.src);
    size_t len = (size_t)(l.end_col - l.col);
    if ((size_t)l.line > starts[0] || len > MAX_KEY)
        return NULL;
    size_t from = starts[l.line] + (size_t)l.col - 1;
    if (from > l.src->size || len > l.src->size - from)
        return NULL;
    return arena_strndup(in->a, l.src->text + from, len);
}

/* The value that -D gives the expression, else v. */
static Py
defined_value(Interp *in, const Node *n, Py v)
{
    if (v->kind != PY_UNKNOWN || !module_has_defines(in->root))
        return v;
    const char *key = py_source(in, n);
    Py d = key ? module_define(in->root, key) : NULL;
    return d ? d : v;
}

/* ---- names */

static bool
is_outer(const PyScope *s, Name name)
{
    for (int i = 0; i < s->outer.n; i++)
        if (s->outer.at[i] == name)
            return true;
    return false;
}

Py
py_name(Interp *in, Name name)
{
    PyScope *top = in->frame->scope;
    for (PyScope *s = top; s; s = s->up) {
        if ((s->is_class && s != top) || is_outer(s, name))
            continue;
        Py v = s->up ? NULL : module_name(s->m, name);
        PyBind *b = s->up ? pyscope_find(s, name) : NULL;
        if (b || v)
            return b ? b->val : v;
    }
    return py_python_name(in, name);
}

static Py
eval_name(Interp *in, const Node *n)
{
    Py v = py_name(in, n->name);
    if (v)
        return py_resolve(in, v);
    return py_raise(in, n->loc, "NameError", "'%s' is not defined", n->name);
}

static Py
eval_constant(Interp *in, const Node *n)
{
    switch ((ConstantKind)n->sub) {
    case CK_INT:
        if (n->big)
            break;
        return py_int(in, (Wide)n->v.u);
    case CK_FLOAT: return py_float(in, n->v.f);
    case CK_STR: return py_strn(in, n->v.str.s, n->v.str.n);
    case CK_TRUE: return in->yes;
    case CK_FALSE: return in->no;
    case CK_NONE: return in->none;
    case CK_IMAGINARY:
    case CK_BYTES:
    case CK_ELLIPSIS: break;
    }
    return py_unknown(in, n->loc, NULL, "this literal has no meaning in a kernel");
}

/* ---- conditions: what is unknown may drop out */

int
py_condition(Interp *in, const Node *n, Py *why)
{
    if (n->kind == ND_BOOLOP && py_step(in, 1) && in->depth < PY_MAX_DEPTH) {
        bool is_and = n->sub == OS_LAND;
        int all = is_and;
        in->depth++;
        for (int i = 0; i < n->list.n && all != !is_and; i++) {
            Py unknown = NULL;
            int t = py_condition(in, n->list.at[i], &unknown);
            if (t < 0) {
                all = -1;
                *why = *why ? *why : unknown;
            } else if (t != is_and) {
                all = t;
            }
            if (py_raises(in))
                break;
        }
        in->depth--;
        return all;
    }
    if (n->kind == ND_UNARYOP && n->sub == OS_NOT && in->depth < PY_MAX_DEPTH) {
        in->depth++;
        int t = py_condition(in, n->a, why);
        in->depth--;
        return t < 0 ? t : !t;
    }
    Py v = py_eval(in, n);
    int t = py_truth(in, v);
    if (t >= 0)
        return t;
    Py lost = py_lost(v);
    if (!lost && (v->kind == PY_LIST || v->kind == PY_SET))
        lost = v->u.list->lost;
    if (!lost && v->kind == PY_DICT)
        lost = v->u.dict->lost;
    const char *key = py_source(in, n);
    if (!lost)
        lost = py_unknown(in, n->loc, key, "only Python could tell whether this holds");
    Py d = defined_value(in, n, lost);
    if (d != lost)
        return py_truth(in, d);
    *why = lost;
    return -1;
}

static Py
eval_ifexp(Interp *in, const Node *n)
{
    Py why = NULL;
    int t = py_condition(in, n->a, &why);
    if (py_raises(in))
        return why ? why : in->none;
    if (t >= 0)
        return py_eval(in, t ? n->b : n->c);
    PyFork f = pyfork_begin(in);
    Py a = py_eval(in, n->b);
    if (py_raises(in) && strcmp(in->raised.type, PY_LIMIT) != 0)
        in->raised.type = NULL; /* then this is not the arm that runs */
    PyChanges ca = pyfork_undo(in, f);
    f = pyfork_begin(in);
    Py b = py_eval(in, n->c);
    PyChanges cb = pyfork_undo(in, f);
    pyfork_merge(in, &ca, &cb, why);
    return py_same(a, b) ? a : py_either(in, why, a, b, n->b->loc, n->c->loc);
}

static Py
eval_boolop(Interp *in, const Node *n)
{
    Py v = in->none;
    for (int i = 0; i < n->list.n; i++) {
        v = py_eval(in, n->list.at[i]);
        int t = py_truth(in, v);
        if (py_raises(in))
            return v;
        if (t < 0) {
            Py why = NULL;
            int all = py_condition(in, n, &why);
            return all >= 0 ? py_bool(in, all)
                   : why    ? why
                            : py_unknown(in, n->loc, py_source(in, n), "it is not known");
        }
        if (t != (n->sub == OS_LAND))
            return v;
    }
    return v;
}

static Py
eval_compare(Interp *in, const Node *n)
{
    Py x = py_eval(in, n->a), so_far = in->yes;
    for (int i = 0; i < n->list.n; i++) {
        Py y = py_eval(in, n->list.at[i]);
        if (py_raises(in))
            return y;
        so_far = py_compare(in, n->signs[i], x, y, n->loc);
        if (py_truth(in, so_far) <= 0)
            break;
        x = y;
    }
    return so_far;
}

/* ---- displays and comprehensions */

static Py
eval_items(Interp *in, const Node *n, PyKind kind)
{
    PyVal *v = (PyVal *)py_list(in, kind, NULL, 0);
    PyList *l = v->u.list;
    for (int i = 0; i < n->list.n; i++) {
        const Node *e = n->list.at[i];
        Py x = py_eval(in, e->kind == ND_STARRED ? e->a : e), lost = NULL;
        if (py_raises(in))
            return x;
        if (e->kind != ND_STARRED) {
            if (kind == PY_SET)
                py_set_add(in, l, x);
            else
                py_push(in, l, x);
            continue;
        }
        PyList *more = py_elements(in, x, e->loc, &lost);
        if (!more) {
            l->lost = lost;
            continue;
        }
        for (int k = 0; k < more->n; k++)
            py_push(in, l, more->at[k]);
    }
    return l->lost && kind == PY_TUPLE ? l->lost : v;
}

static Py
eval_dict(Interp *in, const Node *n)
{
    Py v = py_dict(in);
    for (int i = 0; i < n->list.n; i++) {
        Py key = n->list.at[i] ? py_eval(in, n->list.at[i]) : NULL;
        Py x = py_eval(in, n->more.at[i]);
        if (py_raises(in))
            return x;
        if (key)
            pydict_set(in, v->u.dict, key, x);
        else if (x->kind != PY_DICT)
            v->u.dict->lost =
                py_lost(x) ? py_lost(x) : py_unknown(in, n->loc, NULL, "'**' of no dict");
        for (int k = 0; !key && x->kind == PY_DICT && k < x->u.dict->n; k++)
            pydict_set(in, v->u.dict, x->u.dict->key[k], x->u.dict->val[k]);
    }
    return v;
}

/* The generators from g on. What is not known makes the result unknown. */
static Py
generate(Interp *in, const Node *n, int g, Py out)
{
    if (g == n->list.n) {
        Py x = py_eval(in, n->a);
        if (n->sub == COMP_DICT)
            pydict_set(in, out->u.dict, x, py_eval(in, n->b));
        else if (n->sub == COMP_SET)
            py_set_add(in, out->u.list, x);
        else
            py_push(in, out->u.list, x);
        return NULL;
    }
    const Node *gen = n->list.at[g];
    Py lost = NULL, it = py_eval(in, gen->b);
    PyList *l = py_raises(in) ? NULL : py_elements(in, it, gen->loc, &lost);
    if (!l)
        return lost ? lost : it;
    for (int i = 0; i < l->n; i++) {
        int pass = 1;
        py_assign(in, gen->a, l->at[i], false);
        for (int k = 0; k < gen->list.n && pass > 0; k++)
            pass = py_condition(in, gen->list.at[k], &lost);
        if (pass < 0 && lost)
            return lost;
        Py bad = pass && py_step(in, 1) ? generate(in, n, g + 1, out) : NULL;
        if (bad || py_raises(in))
            return bad ? bad : in->none;
    }
    return NULL;
}

static Py
eval_comprehension(Interp *in, const Node *n)
{
    PyFrame *f = in->frame;
    PyScope *outer = f->scope;
    Py out = n->sub == COMP_DICT
                 ? py_dict(in)
                 : py_list(in, n->sub == COMP_SET ? PY_SET : PY_LIST, NULL, 0);
    f->scope = pyscope_new(in, outer->m, outer);
    f->scope->is_comprehension = true;
    Py bad = generate(in, n, 0, out);
    f->scope = outer;
    return bad ? bad : out;
}

static Py
eval_joined(Interp *in, const Node *n)
{
    Buf b;
    buf_init(&b, in->a);
    buf_str(&b, "");
    for (int i = 0; i < n->list.n; i++) {
        const Node *e = n->list.at[i];
        if (e->kind == ND_CONSTANT) {
            buf_add(&b, e->v.str.s, e->v.str.n);
            continue;
        }
        Py v = py_eval(in, e->a);
        Py spec = e->b ? py_eval(in, e->b) : NULL;
        if (py_raises(in) || py_lost(v))
            return v;
        bool repr = e->name && e->name[0] != 's';
        Buf text;
        buf_init(&text, in->a);
        if (repr && spec && py_text(in, &text, v, true, 0))
            v = py_strn(in, text.s, text.n);
        if (spec ? spec->kind != PY_STR || !py_format(in, &b, v, spec->u.str.s)
                 : !py_text(in, &b, v, repr, 0))
            return py_unknown(in, e->loc, NULL,
                              "what it prints is known to Python alone");
    }
    return py_strn(in, b.s, b.n);
}

static Py
eval_lambda(Interp *in, const Node *n)
{
    return py_make_function(in, n);
}

static Py
eval_named(Interp *in, const Node *n)
{
    Py v = py_eval(in, n->a);
    PyScope *s = in->frame->scope;
    while (s->is_comprehension) /* binds outside of it */
        s = s->up;
    pyscope_set(in, s, n->name, v, n->loc, false);
    return v;
}

static Py
yield_each(Interp *in, const Node *n, Py from)
{
    Py lost = NULL;
    const PyList *l = py_elements(in, from, n->loc, &lost);
    if (!l)
        vec_push(in->a, &in->frame->yielded, lost ? lost : in->none);
    for (int i = 0; l && i < l->n && py_step(in, 1); i++)
        vec_push(in->a, &in->frame->yielded, l->at[i]);
    return in->none;
}

static Py
eval_slice(Interp *in, const Node *n)
{
    PyVal *v = py_new(in, PY_SLICE);
    const Node *part[] = {n->a, n->b, n->c};
    for (int i = 0; i < 3; i++)
        v->u.slice[i] = part[i] ? py_eval(in, part[i]) : in->none;
    return v;
}

static Py
eval_attribute(Interp *in, const Node *n)
{
    Py x = py_eval(in, n->a);
    if (py_raises(in))
        return x;
    const char *key = module_has_defines(in->root) ? py_source(in, n) : NULL;
    Py d = key ? module_define(in->root, key) : NULL;
    if (d)
        return d;
    return py_resolve(in, py_attribute(in, x, n->name, n, false));
}

static Py
eval_unary(Interp *in, const Node *n)
{
    if (n->sub == OS_NOT) {
        Py why = NULL;
        int t = py_condition(in, n->a, &why);
        return t >= 0 || !why ? py_bool(in, !t) : why;
    }
    Py x = py_eval(in, n->a), k = x;
    k = py_unwrapped(k);
    if (py_raises(in) || k->kind == PY_UNKNOWN)
        return x;
    Py v = NULL;
    if (k->kind == PY_FLOAT && n->sub != OS_INVERT)
        v = py_float(in, n->sub == OS_NEG ? -k->u.f : k->u.f);
    else if (k->kind == PY_INT || k->kind == PY_BOOL)
        v = n->sub == OS_POS      ? py_int(in, k->u.i)
            : n->sub == OS_INVERT ? py_int(in, ~k->u.i)
                                  : py_binary(in, OS_SUB, py_int(in, 0), k, n->loc);
    if (!v)
        return py_unknown(in, n->loc, py_source(in, n), "'%s' of it is not known",
                          sign_text((OpSign)n->sub));
    return x->kind == PY_CONSTEXPR ? py_constexpr(in, v) : v;
}

static Py
eval_kind(Interp *in, const Node *n)
{
    switch (n->kind) {
    case ND_NAME: return eval_name(in, n);
    case ND_CONSTANT: return eval_constant(in, n);
    case ND_ATTRIBUTE: return eval_attribute(in, n);
    case ND_BINOP: {
        Py a = py_eval(in, n->a), b = py_eval(in, n->b);
        return py_raises(in) ? b : py_binary(in, n->sub, a, b, n->loc);
    }
    case ND_UNARYOP: return eval_unary(in, n);
    case ND_BOOLOP: return eval_boolop(in, n);
    case ND_COMPARE: return eval_compare(in, n);
    case ND_IFEXP: return eval_ifexp(in, n);
    case ND_CALL: return defined_value(in, n, py_eval_call(in, n));
    case ND_SUBSCRIPT: {
        Py x = py_eval(in, n->a), i = py_eval(in, n->b);
        return py_raises(in) ? i : defined_value(in, n, py_subscript(in, x, i, n));
    }
    case ND_SLICE: return eval_slice(in, n);
    case ND_TUPLE: return eval_items(in, n, PY_TUPLE);
    case ND_LIST: return eval_items(in, n, PY_LIST);
    case ND_SET: return eval_items(in, n, PY_SET);
    case ND_DICT: return eval_dict(in, n);
    case ND_COMPREHENSION: return eval_comprehension(in, n);
    case ND_NAMED_EXPR: return eval_named(in, n);
    case ND_JOINED_STR: return eval_joined(in, n);
    case ND_LAMBDA: return eval_lambda(in, n);
    case ND_YIELD: {
        Py v = n->a ? py_eval(in, n->a) : in->none;
        if (n->name && !py_raises(in)) /* yield from */
            return yield_each(in, n, v);
        vec_push(in->a, &in->frame->yielded, v);
        return in->none;
    }
    default:
        return py_unknown(in, n->loc, NULL, "%s is not evaluated here",
                          node_kind_name(n->kind));
    }
}

Py
py_eval(Interp *in, const Node *n)
{
    static const char too_deep[] = "it is nested too deeply to be evaluated here";
    if (py_raises(in))
        return py_unknown(in, n->loc, NULL, "something went wrong before it");
    if (!py_step(in, 1))
        return py_unknown(in, n->loc, NULL, "it takes more than %d steps", PY_MAX_STEPS);
    if (in->depth >= PY_MAX_DEPTH) {
        in->raised = (PyRaise){PY_LIMIT, n->loc};
        return py_unknown(in, n->loc, NULL, too_deep);
    }
    in->depth++;
    Py v = eval_kind(in, n);
    in->depth--;
    return v;
}
