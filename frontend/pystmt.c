/* Statements of the host but for control flow: what they bind, and what becomes unknown
   when one cannot be run. */
#include "frontend/py.h"
#include "ir/base/util.h"

#include <string.h>

static PyFlow exec_one(Interp *in, const Node *n);

/* ---- targets */

static PyScope *
scope_for(Interp *in, Name name)
{
    PyScope *s = in->frame->scope;
    for (int i = 0; i < s->outer.n; i++)
        if (s->outer.at[i] == name) {
            PyScope *up = s->up;
            while (up && up->up && !pyscope_find(up, name))
                up = up->up;
            return up ? up : s;
        }
    return s;
}

static void
assign_name(Interp *in, const Node *target, Py v, bool constexpr_)
{
    PyScope *s = scope_for(in, target->name);
    pyscope_set(in, s, target->name,
                s->up || s->is_class ? v : module_bound(in, s->m, target, v), target->loc,
                constexpr_);
}

static void
assign_many(Interp *in, const Node *target, Py v)
{
    Py lost = NULL;
    PyList *l = py_elements(in, v, target->loc, &lost);
    int star = -1, n = target->list.n;
    for (int i = 0; i < n; i++)
        if (target->list.at[i]->kind == ND_STARRED)
            star = i;
    if (l && (star < 0 ? l->n != n : l->n < n - 1)) {
        lost = py_raise(in, target->loc, "ValueError", "%d values for %d names", l->n, n);
        l = NULL;
    }
    for (int i = 0; i < n; i++) {
        const Node *t = target->list.at[i];
        if (!l) {
            py_assign(in, t->kind == ND_STARRED ? t->a : t, lost, false);
        } else if (i == star) {
            py_assign(in, t->a, py_list(in, PY_LIST, l->at + i, l->n - n + 1), false);
        } else {
            py_assign(in, t, l->at[star < 0 || i < star ? i : i + l->n - n], false);
        }
    }
}

static void
assign_item(Interp *in, const Node *target, Py v)
{
    Py x = py_eval(in, target->a), i = py_eval(in, target->b);
    if (py_raises(in))
        return;
    if (x->kind == PY_DICT) {
        pydict_set(in, x->u.dict, i, v);
        return;
    }
    Py set = x->kind == PY_OBJECT
                 ? py_object_attribute(in, x, name_of(&in->s->names, "__setitem__"))
                 : NULL;
    if (set) {
        Py pair[2] = {i, v};
        PyCall c = {.at = pair, .n = 2, .named = py_dict(in), .loc = target->loc};
        py_call(in, set, &c);
    }
    if (x->kind >= PY_NONE && x->kind <= PY_TUPLE)
        py_raise(in, target->loc, "TypeError", "its items cannot be set");
    if (x->kind != PY_LIST)
        return;
    PyList *l = x->u.list;
    bool place = i->kind == PY_INT || i->kind == PY_BOOL;
    Wide at = place && i->u.i < 0 ? i->u.i + l->n : place ? i->u.i : 0;
    if (place && !l->lost && (at < 0 || at >= l->n)) {
        py_raise(in, target->loc, "IndexError", "an index that is out of range");
        return;
    }
    pylist_touch(in, l);
    if (place && !l->lost)
        l->at[at] = v;
    else if (!l->lost)
        l->lost =
            py_unknown(in, target->loc, NULL, "an element that is not known is set");
}

void
py_assign(Interp *in, const Node *target, Py v, bool constexpr_)
{
    if (!py_step(in, 1) || in->depth >= PY_MAX_DEPTH)
        return;
    in->depth++;
    switch (target->kind) {
    case ND_NAME: assign_name(in, target, v, constexpr_); break;
    case ND_TUPLE:
    case ND_LIST: assign_many(in, target, v); break;
    case ND_SUBSCRIPT: assign_item(in, target, v); break;
    case ND_ATTRIBUTE: {
        Py x = py_eval(in, target->a);
        if (!py_raises(in))
            py_set_attribute(in, x, target->name, v, target->loc);
        break;
    }
    default: break;
    }
    in->depth--;
}

/* Names that statements bind become unknown: a loop or a statement was not run, or not to
   its end (then in->keep). */
static void
lose_name(Interp *in, Name name, Py why, Loc loc, bool keep)
{
    PyScope *s = scope_for(in, name);
    PyBind *b = pyscope_find(s, name);
    if (!keep || !in->keep || !b || b->seq <= in->keep)
        pyscope_set(in, s, name, why, loc, false);
}

static void
lose_target(Interp *in, const Node *t, Py why, int depth)
{
    if (!t || depth > 64)
        return;
    if (t->kind == ND_NAME)
        lose_name(in, t->name, why, t->loc, !in->cut);
    else if (t->kind == ND_STARRED)
        lose_target(in, t->a, why, depth + 1);
    else if (t->kind == ND_TUPLE || t->kind == ND_LIST)
        for (int i = 0; i < t->list.n; i++)
            lose_target(in, t->list.at[i], why, depth + 1);
}

static void
lose_container(Interp *in, const Node *e, Py why)
{
    Py x = e->kind == ND_NAME ? py_name(in, e->name) : NULL;
    if (x && x->kind == PY_LIST) {
        pylist_touch(in, x->u.list);
        x->u.list->lost = why;
    } else if (x && x->kind == PY_DICT) {
        pydict_touch(in, x->u.dict);
        x->u.dict->lost = why;
    }
}

static void
lose_list(Interp *in, const NodeList *l, Py why, int depth)
{
    for (int i = 0; i < l->n; i++)
        py_lose(in, l->at[i], why, depth);
}

void
py_lose(Interp *in, const Node *n, Py why, int depth)
{
    if (!n || depth > AST_MAX_DEPTH)
        return;
    switch ((int)n->kind) {
    case ND_ASSIGN:
        for (int i = 0; i < n->list.n; i++) {
            lose_target(in, n->list.at[i], why, 0);
            if (n->list.at[i]->kind == ND_SUBSCRIPT)
                lose_container(in, n->list.at[i]->a, why);
        }
        break;
    case ND_ANN_ASSIGN:
    case ND_AUG_ASSIGN:
    case ND_FOR: lose_target(in, n->a, why, 0); break;
    case ND_WITH_ITEM: lose_target(in, n->b, why, 0); break;
    case ND_EXPR: /* configs.append(x) */
        if (n->a->kind == ND_CALL && n->a->a->kind == ND_ATTRIBUTE)
            lose_container(in, n->a->a->a, why);
        return;
    case ND_FUNCTION:
    case ND_CLASS: lose_name(in, n->name, why, n->loc, true); return;
    case ND_IMPORT:
    case ND_IMPORT_FROM: exec_one(in, n); return;
    default: break;
    }
    lose_list(in, &n->list, why, depth + 1);
    lose_list(in, &n->body, why, depth + 1);
    lose_list(in, &n->orelse, why, depth + 1);
    lose_list(in, &n->more, why, depth + 1);
}

/* ---- the rest */

/* Whether a statement of that kind is in it, functions and classes inside it aside. */
static bool
contains(const Node *n, NodeKind kind, int depth)
{
    if (!n || depth > AST_MAX_DEPTH)
        return false;
    if (n->kind == kind)
        return true;
    if (n->kind == ND_FUNCTION || n->kind == ND_CLASS)
        return false;
    const NodeList *lists[] = {&n->list, &n->body, &n->orelse};
    for (int k = 0; k < COUNT_OF(lists); k++)
        for (int i = 0; i < lists[k]->n; i++)
            if (contains(lists[k]->at[i], kind, depth + 1))
                return true;
    return false;
}

/* What it binds is not known then, nor whether it leaves the function or the loop. */
static void
exec_match(Interp *in, const Node *n)
{
    PyFrame *f = in->frame;
    Py why = py_unknown(in, n->loc, NULL, "'match' is not evaluated here");
    py_lose(in, n, why, 0);
    if (contains(n, ND_RETURN, 0))
        f->pending = f->pending_why = why;
    f->lost_loop |= contains(n, ND_BREAK, 0) || contains(n, ND_CONTINUE, 0);
}


static bool
is_constexpr_annotation(const Node *n)
{
    const char *text =
        n->kind == ND_NAME || n->kind == ND_ATTRIBUTE ? n->name : node_str(n);
    size_t len = text ? strlen(text) : 0, tail = strlen("constexpr");
    return len >= tail && strcmp(text + len - tail, "constexpr") == 0;
}

/* Where no 'try' asks, one that fails is no reason to refuse what the file has. */
static PyFlow
exec_assert(Interp *in, const Node *n)
{
    if (!in->try_)
        return PYFLOW_NEXT;
    Py v = py_eval(in, n->a);
    int holds = py_raises(in) ? 0 : py_truth(in, v);
    if (holds < 0 && !in->try_->maybe)
        in->try_->maybe = py_lost(v) ? py_lost(v)
                                     : py_unknown(in, n->loc, NULL, "it is asserted");
    if (!holds && !py_raises(in))
        py_raise(in, n->loc, "AssertionError", "the assertion fails");
    return py_raises(in) ? PYFLOW_RAISE : PYFLOW_NEXT;
}

static void
delete_attribute(Interp *in, const Node *t)
{
    Py x = py_eval(in, t->a);
    if (x->kind == PY_CLASS && !py_raises(in))
        pyscope_set(in, x->u.class_->body, t->name, NULL, t->loc, false);
    PyDict *d = x->kind == PY_OBJECT && !py_raises(in) ? x->u.object->attrs : NULL;
    for (int k = 0; d && k < d->n; k++)
        if (py_equal(in, d->key[k], py_str(in, t->name), 0) > 0) {
            pydict_del(in, d, k);
            return;
        }
    if (d)
        py_raise(in, t->loc, "AttributeError", "there is no '%s'", t->name);
}

static void delete (Interp *in, const Node *t)
{
    if (t->kind == ND_NAME) {
        pyscope_set(in, scope_for(in, t->name), t->name, NULL, t->loc, false);
        return;
    }
    if (t->kind == ND_ATTRIBUTE)
        delete_attribute(in, t);
    if (t->kind != ND_SUBSCRIPT)
        return;
    Py x = py_eval(in, t->a), i = py_eval(in, t->b), lost = NULL;
    if (py_raises(in))
        return;
    if (x->kind == PY_DICT)
        for (int k = 0; k < x->u.dict->n; k++)
            if (py_equal(in, x->u.dict->key[k], i, 0) > 0) {
                pydict_del(in, x->u.dict, k);
                return;
            }
    if (x->kind == PY_DICT && !pydict_get(in, x->u.dict, i, &lost) && !lost) {
        py_raise(in, t->loc, "KeyError", "a key that is not there");
        return;
    }
    if (x->kind == PY_LIST && !x->u.list->lost && pylist_delete(in, x->u.list, i, t->loc))
        return;
    Py why = py_unknown(in, t->loc, NULL, "an element is deleted from it");
    if (x->kind == PY_DICT || x->kind == PY_LIST)
        lose_container(in, t->a, why);
}

static void
import_names(Interp *in, const Node *n)
{
    PyScope *s = in->frame->scope;
    for (int i = 0; i < n->list.n && !py_raises(in); i++) {
        const Node *alias = n->list.at[i];
        ModuleImport im = {.path = alias->name, .loc = n->loc};
        Name name = alias->a ? alias->a->name : alias->name;
        const char *dot = alias->a ? NULL : strchr(alias->name, '.');
        Py whole = dot ? py_import(in, s->m, &im, true) : NULL;
        if (dot && !py_raises(in)) { /* `import a.b` binds a */
            im.path = name =
                name_intern(&in->s->names, alias->name, (size_t)(dot - alias->name));
            (void)whole;
        }
        Py v = py_raises(in) ? whole : py_import(in, s->m, &im, true);
        if (!py_raises(in))
            pyscope_set(in, scope_for(in, name), name, v, n->loc, false);
    }
}

static void
import_from(Interp *in, const Node *n)
{
    PyScope *s = in->frame->scope;
    ModuleImport im = {.path = n->name, .level = n->level, .loc = n->loc};
    if (!n->list.n) {
        PyStar star = {.what = im, .seq = ++in->seq};
        py_import(in, s->m, &im, true);
        if (!py_raises(in))
            vec_push(in->a, &s->stars, star);
        return;
    }
    for (int i = 0; i < n->list.n && !py_raises(in); i++) {
        const Node *alias = n->list.at[i];
        Name name = alias->a ? alias->a->name : alias->name;
        im.member = alias->name;
        Py v = py_import(in, s->m, &im, true);
        if (!py_raises(in))
            pyscope_set(in, scope_for(in, name), name, v, n->loc, false);
    }
}

static void
exec_aug(Interp *in, const Node *n)
{
    Py old = py_eval(in, n->a), by = py_eval(in, n->b), lost = NULL;
    if (py_raises(in))
        return;
    if (n->sub == OS_ADD && old->kind == PY_LIST) { /* in place */
        PyList *more = py_elements(in, by, n->loc, &lost);
        for (int i = 0; more && i < more->n; i++)
            py_push(in, old->u.list, more->at[i]);
        pylist_touch(in, old->u.list);
        if (!more)
            old->u.list->lost = lost;
        return;
    }
    Py v = py_binary(in, n->sub, old, by, n->loc);
    if (!py_raises(in))
        py_assign(in, n->a, v, false);
}

static void
exec_assign(Interp *in, const Node *n)
{
    Py v = py_eval(in, n->a);
    for (int i = 0; i < n->list.n && !py_raises(in); i++)
        py_assign(in, n->list.at[i], v, false);
}

static PyFlow
exec_one(Interp *in, const Node *n)
{
    PyScope *s = in->frame->scope;
    Py v;
    switch (n->kind) {
    case ND_ASSIGN: exec_assign(in, n); break;
    case ND_AUG_ASSIGN: exec_aug(in, n); break;
    case ND_ANN_ASSIGN:
        if (!n->c)
            break;
        v = py_eval(in, n->c);
        if (!py_raises(in))
            py_assign(in, n->a, v, is_constexpr_annotation(n->b));
        break;
    case ND_EXPR: py_eval(in, n->a); break;
    case ND_FUNCTION:
        v = py_make_function(in, n);
        if (!py_raises(in))
            pyscope_set(in, scope_for(in, n->name), n->name,
                        s->up ? v : module_defined(in, s->m, n, v), n->loc, false);
        break;
    case ND_CLASS:
        v = py_make_class(in, n);
        if (!s->up && !py_raises(in))
            module_class_defined(in, s->m, v);
        pyscope_set(in, s, n->name, v, n->loc, false);
        break;
    case ND_IF:
    case ND_FOR:
    case ND_WHILE:
    case ND_TRY:
    case ND_WITH:
    case ND_RAISE: return py_control(in, n);
    case ND_ASSERT: return exec_assert(in, n);
    case ND_RETURN:
        in->frame->ret = n->a ? py_eval(in, n->a) : in->none;
        return py_raises(in) ? PYFLOW_RAISE : PYFLOW_RETURN;
    case ND_IMPORT: import_names(in, n); break;
    case ND_IMPORT_FROM: import_from(in, n); break;
    case ND_GLOBAL:
    case ND_NONLOCAL:
        for (int i = 0; i < n->list.n; i++)
            vec_push(in->a, &s->outer, n->list.at[i]->name);
        break;
    case ND_DELETE:
        for (int i = 0; i < n->list.n; i++)
            delete (in, n->list.at[i]);
        break;
    case ND_BREAK: return PYFLOW_BREAK;
    case ND_CONTINUE: return PYFLOW_CONTINUE;
    case ND_MATCH: exec_match(in, n); break;
    default: break;
    }
    return py_raises(in) ? PYFLOW_RAISE : PYFLOW_NEXT;
}

PyFlow
py_exec(Interp *in, const NodeList *l)
{
    PyFlow f = PYFLOW_NEXT;
    if (in->depth >= PY_MAX_DEPTH) {
        in->raised = (PyRaise){.type = PY_LIMIT};
        return PYFLOW_RAISE;
    }
    in->depth++;
    for (int i = 0; i < l->n && f == PYFLOW_NEXT; i++)
        f = py_step(in, 1) ? exec_one(in, l->at[i]) : PYFLOW_RAISE;
    in->depth--;
    return f;
}

/* A statement that fails would end the program in Python. Here it is host code, which may
   ask for what is not there: what it would have bound is unknown, and the file goes on.
 */
void
py_run(Interp *in, FrontModule *m)
{
    Interp outer = *in;
    PyFrame frame = {.scope = module_scope(m)};
    const NodeList *l = module_statements(m);
    in->frame = &frame;
    in->try_ = NULL;
    in->raised.type = NULL;
    in->epoch = 0;
    for (int i = 0; i < l->n; i++) {
        int before = in->seq;
        in->steps = 0;
        in->budget = in->all_steps < PY_ALL_STEPS ? PY_MAX_STEPS : PY_FEW_STEPS;
        PyFlow f = exec_one(in, l->at[i]);
        PyRaise r = in->raised;
        in->raised.type = NULL;
        if (f != PYFLOW_RAISE)
            continue;
        bool limit = r.type && strcmp(r.type, PY_LIMIT) == 0;
        Py why =
            limit ? py_unknown(in, l->at[i]->loc, NULL,
                               "evaluating it takes more than %d steps", (int)in->budget)
                  : py_unknown(in, r.loc.line ? r.loc : l->at[i]->loc, NULL,
                               "Python raises %s here", r.type ? r.type : "Exception");
        in->steps = 0;
        in->keep = before;
        in->cut = limit;
        if (l->at[i]->kind != ND_IMPORT && l->at[i]->kind != ND_IMPORT_FROM)
            py_lose(in, l->at[i], why, 0);
        in->keep = 0;
        in->raised.type = NULL;
    }
    in->frame = outer.frame;
    in->try_ = outer.try_;
    in->raised = outer.raised;
    in->epoch = outer.epoch;
    in->steps = outer.steps;
    in->budget = outer.budget;
    in->keep = outer.keep;
    in->cut = outer.cut;
}
