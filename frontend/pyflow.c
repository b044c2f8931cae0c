/* Control flow of the host. Under an unknown condition both arms run, each on the state
   before it; an arm that surely raises what nobody catches is not the one that runs,
   since the file can be loaded. */
#include "frontend/py.h"

#include <string.h>

static bool
is_limit(const Interp *in)
{
    return in->raised.type && strcmp(in->raised.type, PY_LIMIT) == 0;
}

/* ---- conditions */

typedef struct Arm {
    PyFlow flow;
    PyChanges changes;
    PyRaise raised;
    Py ret;
} Arm;

static PyFlow exec_arms(Interp *in, const Node *n, int arm);

static Arm
run_arm(Interp *in, const Node *n, int arm, bool taken)
{
    PyFork f = pyfork_begin(in);
    Arm a = {0};
    in->frame->ret = NULL;
    a.flow = taken ? py_exec(in, &n->list.at[arm]->body) : exec_arms(in, n, arm + 1);
    a.raised = in->raised;
    a.ret = in->frame->ret;
    a.changes = pyfork_undo(in, f);
    if (!is_limit(in))
        in->raised.type = NULL;
    return a;
}

/* What a function may have returned, when it goes on as well. */
static void
may_return(Interp *in, const Arm *a, Py why)
{
    PyFrame *f = in->frame;
    if (a->flow == PYFLOW_RETURN) {
        f->pending = f->pending ? py_either(in, why, f->pending, a->ret,
                                            why->u.unknown->loc, why->u.unknown->loc)
                                : a->ret;
        f->pending_why = why;
    } else {
        f->lost_loop = true;
    }
}

static PyFlow
unknown_if(Interp *in, const Node *n, int arm, Py why)
{
    Arm a = run_arm(in, n, arm, true);
    if (is_limit(in))
        return PYFLOW_RAISE;
    Arm b = run_arm(in, n, arm, false);
    if (is_limit(in))
        return PYFLOW_RAISE;
    if (a.flow == PYFLOW_RAISE || b.flow == PYFLOW_RAISE) {
        Arm *left = a.flow == PYFLOW_RAISE ? &b : &a;
        pyfork_redo(in, &left->changes);
        if (in->try_ && !in->try_->maybe)
            in->try_->maybe = why;
        in->raised = left->raised;
        in->frame->ret = left->ret;
        return left->flow;
    }
    if (a.flow == b.flow) {
        pyfork_merge(in, &a.changes, &b.changes, why);
        if (a.flow == PYFLOW_RETURN)
            in->frame->ret = py_same(a.ret, b.ret)
                                 ? a.ret
                                 : py_either(in, why, a.ret, b.ret, why->u.unknown->loc,
                                             why->u.unknown->loc);
        return a.flow;
    }
    /* One arm leaves the function: the other goes on with its own names, and with what
       either may have done to all else. */
    Arm *leaves = a.flow != PYFLOW_NEXT ? &a : &b, *stays = leaves == &a ? &b : &a;
    may_return(in, leaves, why);
    if (stays->flow != PYFLOW_NEXT)
        may_return(in, stays, why);
    PyScope *own = leaves->flow == PYFLOW_RETURN && stays->flow == PYFLOW_NEXT
                       ? in->frame->scope
                       : NULL;
    PyChanges left[2] = {a.changes, b.changes};
    for (int i = 0; own && own->up && i < 2; i++)
        left[i] = pyfork_without(in, &left[i], own);
    pyfork_merge(in, &left[0], &left[1], why);
    if (own && own->up) {
        PyChanges names = pyfork_only(in, &stays->changes, own);
        pyfork_redo(in, &names);
    }
    return stays->flow;
}

static PyFlow
exec_arms(Interp *in, const Node *n, int arm)
{
    for (; arm < n->list.n; arm++) {
        Py why = NULL;
        int t = py_condition(in, n->list.at[arm]->a, &why);
        if (py_raises(in))
            return PYFLOW_RAISE;
        if (t > 0)
            return py_exec(in, &n->list.at[arm]->body);
        if (t < 0)
            return unknown_if(in, n, arm, why);
    }
    return py_exec(in, &n->orelse);
}

/* ---- loops */

static PyFlow
lose_loop(Interp *in, const Node *n, Py why)
{
    py_lose(in, n, why, 0);
    return PYFLOW_NEXT;
}

static PyFlow
run_for(Interp *in, const Node *n)
{
    Py it = py_eval(in, n->b), lost = NULL;
    PyList *l = py_raises(in) ? NULL : py_elements(in, it, n->b->loc, &lost);
    if (py_raises(in))
        return PYFLOW_RAISE;
    if (!l)
        return lose_loop(in, n, lost);
    bool outer = in->frame->lost_loop;
    in->frame->lost_loop = false;
    PyFlow f = PYFLOW_NEXT;
    for (int i = 0; i < l->n && f == PYFLOW_NEXT && !in->frame->lost_loop; i++) {
        py_assign(in, n->a, l->at[i], false);
        f = py_exec(in, &n->body);
        f = f == PYFLOW_CONTINUE ? PYFLOW_NEXT : f;
    }
    bool cut = in->frame->lost_loop;
    in->frame->lost_loop = outer;
    if (cut)
        return lose_loop(
            in, n, py_unknown(in, n->loc, NULL, "the loop ends where only Python knows"));
    if (f == PYFLOW_NEXT && n->orelse.n)
        return py_exec(in, &n->orelse);
    return f == PYFLOW_BREAK ? PYFLOW_NEXT : f;
}

static PyFlow
run_while(Interp *in, const Node *n)
{
    bool outer = in->frame->lost_loop;
    in->frame->lost_loop = false;
    PyFlow f = PYFLOW_NEXT;
    Py why = NULL;
    int t = 1;
    while (f == PYFLOW_NEXT && !in->frame->lost_loop) {
        t = py_condition(in, n->a, &why);
        if (py_raises(in) || t <= 0)
            break;
        f = py_exec(in, &n->body);
        f = f == PYFLOW_CONTINUE ? PYFLOW_NEXT : f;
    }
    bool cut = in->frame->lost_loop || t < 0;
    in->frame->lost_loop = outer;
    if (py_raises(in))
        return PYFLOW_RAISE;
    if (cut)
        return lose_loop(
            in, n,
            why ? why
                : py_unknown(in, n->loc, NULL, "the loop ends where only Python knows"));
    if (f == PYFLOW_NEXT && n->orelse.n)
        return py_exec(in, &n->orelse);
    return f == PYFLOW_BREAK ? PYFLOW_NEXT : f;
}

/* ---- exceptions */

/* Could a handler of this type catch it? `type` NULL: what is not known. */
static bool
catches(const Node *type, const char *raised, int depth)
{
    if (!type)
        return true;
    if (type->kind == ND_TUPLE && depth < 8) {
        for (int i = 0; i < type->list.n; i++)
            if (catches(type->list.at[i], raised, depth + 1))
                return true;
        return false;
    }
    if (type->kind != ND_NAME && type->kind != ND_ATTRIBUTE)
        return !raised;
    return !raised || py_exception_is(raised, type->name);
}

static PyFlow
run_handler(Interp *in, const Node *h)
{
    if (h->name)
        pyscope_set(in, in->frame->scope, h->name,
                    py_unknown(in, h->loc, NULL, "it is an exception"), h->loc, false);
    return py_exec(in, &h->body);
}

/* Something in the body may have raised: what the handlers would have done counts, too.
 */
static PyFlow
maybe_handled(Interp *in, const Node *n, PyFlow flow, PyChanges *body, Py why)
{
    PyRaise raised = in->raised;
    Py ret = in->frame->ret;
    in->raised.type = NULL;
    PyFork whole = pyfork_begin(in);
    /* It may have happened anywhere in the body. */
    PyChanges none = {0};
    pyfork_merge(in, body, &none, why);
    PyFlow h = PYFLOW_NEXT;
    for (int i = 0; i < n->list.n && h == PYFLOW_NEXT; i++)
        if (catches(n->list.at[i]->a, NULL, 0)) {
            h = run_handler(in, n->list.at[i]);
            break;
        }
    Py ret_h = in->frame->ret;
    PyChanges handled = pyfork_undo(in, whole);
    if (is_limit(in))
        return PYFLOW_RAISE;
    in->raised = raised;
    in->frame->ret = ret;
    if (h == PYFLOW_RAISE) { /* then it did not happen */
        pyfork_redo(in, body);
        return flow;
    }
    if (flow == PYFLOW_RAISE) {
        in->raised.type = NULL;
        pyfork_redo(in, &handled);
        in->frame->ret = ret_h;
        return h;
    }
    pyfork_merge(in, body, &handled, why);
    if (h == flow) {
        if (h == PYFLOW_RETURN && !py_same(ret, ret_h))
            in->frame->ret = py_either(in, why, ret, ret_h, n->loc, n->loc);
        return h;
    }
    may_return(in,
               &(Arm){.flow = h != PYFLOW_NEXT ? h : flow,
                      .ret = h != PYFLOW_NEXT ? ret_h : ret},
               why);
    return PYFLOW_NEXT;
}

static PyFlow
exec_try(Interp *in, const Node *n)
{
    PyTry t = {.up = in->try_, .catches_import = in->try_ && in->try_->catches_import};
    for (int i = 0; i < n->list.n; i++)
        t.catches_import |= catches(n->list.at[i]->a, "ModuleNotFoundError", 0),
            t.catches_other |= catches(n->list.at[i]->a, "RuntimeError", 0);
    if (n->list.n)
        in->try_ = &t;
    PyFork fork = pyfork_begin(in);
    PyFlow f = py_exec(in, &n->body);
    if (f == PYFLOW_NEXT)
        f = py_exec(in, &n->orelse);
    in->try_ = t.up;
    PyChanges body = pyfork_undo(in, fork);
    if (is_limit(in))
        return PYFLOW_RAISE;
    int by = -1;
    for (int i = 0; f == PYFLOW_RAISE && i < n->list.n && by < 0; i++)
        by = catches(n->list.at[i]->a, in->raised.type, 0) ? i : -1;
    if (t.maybe && by < 0) {
        f = maybe_handled(in, n, f, &body, t.maybe);
    } else {
        pyfork_redo(in, &body);
        if (by >= 0) {
            in->raised.type = NULL;
            f = run_handler(in, n->list.at[by]);
        }
    }
    if (is_limit(in))
        return PYFLOW_RAISE;
    PyRaise raised = in->raised;
    Py ret = in->frame->ret;
    in->raised.type = NULL;
    PyFlow last = py_exec(in, &n->more);
    if (last != PYFLOW_NEXT)
        return last;
    in->raised = raised;
    in->frame->ret = ret;
    return f;
}

static PyFlow
exec_raise(Interp *in, const Node *n)
{
    const Node *e = n->a && n->a->kind == ND_CALL ? n->a->a : n->a;
    bool named = e && (e->kind == ND_NAME || e->kind == ND_ATTRIBUTE);
    py_raise(in, n->loc, named ? e->name : "Exception", "it raises %s",
             named ? e->name : "an exception");
    return PYFLOW_RAISE;
}

static PyFlow
exec_with(Interp *in, const Node *n)
{
    for (int i = 0; i < n->list.n; i++) {
        Py v = py_eval(in, n->list.at[i]->a);
        if (py_raises(in))
            return PYFLOW_RAISE;
        if (n->list.at[i]->b)
            py_assign(in, n->list.at[i]->b,
                      py_unknown(in, n->loc, NULL, "it is what 'with' makes of it"),
                      false);
        (void)v;
    }
    return py_exec(in, &n->body);
}

PyFlow
py_control(Interp *in, const Node *n)
{
    switch ((int)n->kind) {
    case ND_IF: return exec_arms(in, n, 0);
    case ND_FOR: return run_for(in, n);
    case ND_WHILE: return run_while(in, n);
    case ND_TRY: return exec_try(in, n);
    case ND_WITH: return exec_with(in, n);
    default: return exec_raise(in, n);
    }
}
