/* Statements. A condition known at compile time picks the arm that is walked; the
   other is never looked at. A runtime condition becomes an `if` op whose results are
   the names that its arms change. When an arm may return, what follows the statement
   is walked inside the arms that go on, so that the IR needs no jump. */
#include "frontend/class.h"
#include "frontend/lanes.h"
#include "frontend/sema.h"
#include "frontend/spec.h"

#include <string.h>

/* What `x = v` binds to a plain name: constants become tensors. */
static Val
sanitize(Sema *s, Val v, Loc loc)
{
    switch (v->kind) {
    case FE_BOOL:
    case FE_INT:
    case FE_FLOAT: return s->host ? v : lanes_spread(s, to_tensor(s, v, loc), loc);
    case FE_TENSOR: return lanes_spread(s, v, loc);
    case FE_STR:
        if (s->host)
            return v;
        return sema_error(s, loc, "a string can only be bound as a compile-time value: "
                          "annotate the name with ': tl.constexpr'");
    case FE_TUPLE: {
        if (v->is_dict || (v->self && !object_is_tuple(v)))
            return v; /* an aggregate keeps its constants */
        Val *items = arena_array(s->a, Val, v->n + 1);
        for (int i = 0; i < v->n; i++)
            items[i] = sanitize(s, v->u.items[i], loc);
        return val_tuple_like(s, v, items);
    }
    default: return v;
    }
}

static void
name_value(Val v, Name name)
{
    if (!val_is_const(v) && v->kind != FE_TUPLE && v->v && !v->v->name)
        v->v->name = name;
}

/* A tuple with an element for each target: `first, *rest = v` gathers all that the others
   leave, maybe none. Any other value is its own. */
static Val
spread(Sema *s, const Node *target, Val v)
{
    const NodeList *l = &target->list;
    int star = 0;
    while (star < l->n && l->at[star]->kind != ND_STARRED)
        star++;
    if (star == l->n || v->kind != FE_TUPLE || v->n < l->n - 1)
        return v;
    int many = v->n - (l->n - 1);
    Val *items = arena_array(s->a, Val, l->n);
    for (int i = 0; i < l->n; i++)
        items[i] = i == star ? val_tuple(s, v->u.items + star, many)
                             : v->u.items[i < star ? i : i + many - 1];
    return val_tuple(s, items, l->n);
}

void
assign_target(Sema *s, const Node *target, Val v, bool constexpr_)
{
    switch (target->kind) {
    case ND_NAME:
        name_value(v, target->name);
        scope_set(&s->frame->scope, target->name, v, target->loc, constexpr_);
        return;
    case ND_TUPLE:
    case ND_LIST:
        v = spread(s, target, v);
        if (!val_is_error(v) && (v->kind != FE_TUPLE || v->n != target->list.n)) {
            bool star = false;
            for (int i = 0; i < target->list.n; i++)
                star |= target->list.at[i]->kind == ND_STARRED;
            sema_error(s, target->loc, "%d names need a tuple of %d%s, found %s",
                       target->list.n, target->list.n - star, star ? " or more" : "",
                       val_describe(s->a, v));
            v = val_error();
        }
        for (int i = 0; i < target->list.n; i++)
            assign_target(s, target->list.at[i], val_is_error(v) ? v : v->u.items[i],
                          constexpr_);
        return;
    case ND_STARRED: assign_target(s, target->a, v, constexpr_); return;
    case ND_SUBSCRIPT: {
        Val x = eval(s, target->a);
        if (!val_is_error(x) && x->kind == FE_TUPLE)
            sema_error(s, target->loc, "elements of a tuple cannot be assigned; make "
                       "another, 't[:1] + (value,) + t[2:]'");
        else if (val_is_tensor(x) && dtype_is_ptr(x->dt))
            sema_error(s, target->loc, "a pointer is not indexed; write tl.store(p + i, "
                       "value)");
        else if (!val_is_error(x))
            sema_error(s, target->loc, "elements of a tensor cannot be assigned; build "
                       "the tensor with tl.where, or store through a pointer");
        return;
    }
    case ND_ATTRIBUTE: {
        Val x = eval(s, target->a);
        if (!val_is_error(x) && !val_is_error(v))
            object_set(s, x, target->name, v, target->loc);
        return;
    }
    default: sema_error(s, target->loc, "cannot assign to this expression"); return;
    }
}

void
assign_value(Sema *s, const Node *target, Val v, Loc loc)
{
    bool many = target->kind == ND_TUPLE || target->kind == ND_LIST;
    const Map *declared = &s->frame->declared;
    if (many)
        v = spread(s, target, v);
    if (many && v->kind == FE_TUPLE && v->n == target->list.n) {
        for (int i = 0; i < v->n; i++)
            assign_value(s, target->list.at[i], v->u.items[i], loc);
    } else if (target->kind == ND_STARRED) {
        assign_value(s, target->a, v, loc);
    } else if (target->kind == ND_NAME && declared->arena && val_is_const(v) &&
               map_get(declared, target->name)) {
        assign_target(s, target, v, true);
    } else { /* a field keeps constants */
        assign_target(s, target, target->kind == ND_ATTRIBUTE ? v : sanitize(s, v, loc),
                      false);
    }
}

static void
exec_assign(Sema *s, const Node *n)
{
    Val v = eval(s, n->a);
    s->b.loc = n->loc;
    if (n->list.n != 1) {
        sema_error(s, n->loc, "'a = b = value' is not supported: write two assignments");
        v = val_error();
    }
    for (int i = 0; i < n->list.n; i++)
        assign_value(s, n->list.at[i], v, n->a->loc);
}

static void
exec_aug_assign(Sema *s, const Node *n)
{
    Node sum = { .kind = ND_BINOP, .sub = n->sub, .loc = n->loc, .a = n->a, .b = n->b };
    if (n->a->kind != ND_NAME && n->a->kind != ND_ATTRIBUTE) {
        assign_target(s, n->a, val_error(), false);
        return;
    }
    Val v = eval(s, &sum);
    s->b.loc = n->loc;
    assign_target(s, n->a, sanitize(s, v, n->loc), false);
}

static bool
is_constexpr_annotation(const Node *n)
{
    return (n->kind == ND_NAME || n->kind == ND_ATTRIBUTE) &&
           strcmp(n->name, "constexpr") == 0;
}

static void
exec_ann_assign(Sema *s, const Node *n)
{
    if (!n->c && n->a->kind == ND_NAME && is_constexpr_annotation(n->b)) {
        Map *declared = &s->frame->declared;
        if (!declared->arena)
            map_init(declared, s->a);
        map_set(declared, n->a->name, (void *)n);
    }
    if (!n->c)
        return;
    Val v = eval(s, n->c);
    s->b.loc = n->loc;
    if (!is_constexpr_annotation(n->b)) {
        assign_target(s, n->a, sanitize(s, v, n->c->loc), false);
        return;
    }
    if (n->a->kind != ND_NAME) {
        assign_target(s, n->a, val_error(), false);
        return;
    }
    Binding *old = scope_find(&s->frame->scope, n->a->name);
    if (old && !val_is_error(old->val)) {
        sema_error(s, n->a->loc, "'%s' is already defined: a constexpr cannot be "
                   "reassigned", n->a->name);
        diag_note(&s->s->diag, old->loc, "it was defined here");
        return;
    }
    bool known = val_is_error(v) || val_is_const(v) || v->kind == FE_TUPLE;
    if (!known)
        diag_warning(
            &s->s->diag, n->c->loc,
            "'%s' is declared constexpr, but its value is known only at run time",
            n->a->name);
    assign_target(s, n->a, v, known);
}

/* May control leave the function inside these statements? */
static bool
contains_return(const NodeList *list)
{
    for (int i = 0; i < list->n; i++) {
        const Node *n = list->at[i];
        if (n->kind == ND_RETURN)
            return true;
        if (n->kind == ND_IF)
            for (int k = 0; k < n->list.n; k++)
                if (contains_return(&n->list.at[k]->body))
                    return true;
        bool nests = n->kind == ND_IF || n->kind == ND_FOR || n->kind == ND_WHILE ||
                     n->kind == ND_WITH;
        if (nests && (contains_return(&n->body) || contains_return(&n->orelse)))
            return true;
    }
    return false;
}

static bool
rest_returns(const Node *n, int arm)
{
    for (int i = arm; i < n->list.n; i++)
        if (contains_return(&n->list.at[i]->body))
            return true;
    return contains_return(&n->orelse);
}

static Flow exec_arms(Sema *s, const Node *n, int arm, const Cont *cont, Val *ret);
static Flow exec_rest(Sema *s, const Cont *cont, Val *ret);

/* One name after a runtime `if`: what it held before and at the end of both arms. */
typedef struct Merge {
    Name name;
    Loc loc;
    Binding live; /* before; val may be NULL */
    Val end[2];
    Loc other;    /* where the second arm sets it */
    int at;       /* first result, -1 when no result is needed */
} Merge;

static bool
check_merge(Sema *s, const Merge *m)
{
    static const char *const arms[] = { "then", "else" };
    for (int i = 0; i < 2; i++) {
        if (val_is_error(m->end[i]))
            return false;
        if (m->live.val && !val_same_type(m->live.val, m->end[i])) {
            sema_error(s, m->loc, "Mismatched type for %s: it is %s before the 'if' but "
                       "%s after its '%s' branch; a name keeps one type across a runtime "
                       "'if'", m->name,
                       val_describe(s->a, m->live.val), val_describe(s->a, m->end[i]),
                       arms[i]);
            diag_note(&s->s->diag, m->live.loc, "it is %s here",
                      val_describe(s->a, m->live.val));
            return false;
        }
    }
    if (val_same_type(m->end[0], m->end[1]))
        return true;
    sema_error(s, m->loc, "Mismatched type for %s: it is %s after the 'then' branch but "
               "%s after the 'else' branch", m->name, val_describe(s->a, m->end[0]),
               val_describe(s->a, m->end[1]));
    if (m->other.line)
        diag_note(&s->s->diag, m->other, "it is %s here",
                  val_describe(s->a, m->end[1]));
    return false;
}

static bool
is_runtime(Val v)
{
    return !val_is_const(v) || val_is_number(v);
}

/* Counts of static_range are of their loop alone: what an arm leaves there is not for the
   statements behind the 'if'. */
static bool
is_count(Val v)
{
    return !v || (val_is_const(v) && val_is_number(v));
}

/* Names changed in one arm, as (slot, value) in slot order. */
typedef struct Changes {
    int *slot;
    Binding *end;
    int n;
} Changes;

static Changes
take_changes(Sema *s, int mark)
{
    Scope *sc = &s->frame->scope;
    Changes c = { 0 };
    c.n = scope_changes(sc, mark, &c.slot);
    c.end = arena_array(s->a, Binding, c.n + 1);
    for (int i = 0; i < c.n; i++)
        c.end[i] = sc->slots[c.slot[i]];
    scope_rollback(sc, mark);
    return c;
}

/* Decides what becomes of one changed name; false when it is dropped. */
static bool
plan_merge(Sema *s, int slot, const Binding *end0, const Binding *end1, Merge *m)
{
    Binding *live = &s->frame->scope.slots[slot];
    const Binding *some = end0 ? end0 : end1;
    *m = (Merge){ .name = live->name, .loc = some->loc, .live = *live, .at = -1 };
    if (end0 && end1)
        m->other = end1->loc;
    m->end[0] = end0 ? end0->val : live->val;
    m->end[1] = end1 ? end1->val : live->val;
    bool counts = is_count(live->val) && is_count(m->end[0]) && is_count(m->end[1]);
    if (!m->end[0] || !m->end[1] ||
        (counts && !val_same_type(m->end[0], m->end[1])) ||
        (live->val && !is_runtime(live->val) && (!end0 || !end1))) {
        live->loc = some->loc; /* for the message, should the name be used */
        return false;
    }
    if (live->val && !is_runtime(live->val))
        m->live.val = NULL;
    return m->end[0] != m->end[1];
}

static void
merge_arms(Sema *s, Branch *br, const Changes *c, Merge *m, int *nm)
{
    int i = 0, j = 0, n = 0;
    while (i < c[0].n || j < c[1].n) {
        int slot0 = i < c[0].n ? c[0].slot[i] : INT32_MAX;
        int slot1 = j < c[1].n ? c[1].slot[j] : INT32_MAX;
        int slot = slot0 < slot1 ? slot0 : slot1;
        const Binding *e0 = slot0 == slot ? &c[0].end[i++] : NULL;
        const Binding *e1 = slot1 == slot ? &c[1].end[j++] : NULL;
        if (!plan_merge(s, slot, e0, e1, &m[n])) {
            if (m[n].end[0] && m[n].end[0] == m[n].end[1])
                m[n++].at = -1;
            continue;
        }
        if (!check_merge(s, &m[n])) {
            m[n].end[0] = val_error();
        } else if (!val_is_const(m[n].end[0]) || !val_is_const(m[n].end[1])) {
            m[n].at = br->arm[0].n;
            flatten(s, m[n].end[0], &br->arm[0]);
            flatten(s, m[n].end[1], &br->arm[1]);
        }
        n++;
    }
    *nm = n;
}

static void
exec_runtime_if(Sema *s, const Node *n, int arm, Val cond)
{
    Changes c[2];
    Branch br = branch_begin(s, cond);
    int mark = scope_mark(&s->frame->scope);
    Val ret = NULL;
    branch_arm(s, &br, 0);
    exec_list(s, &n->list.at[arm]->body, 0, NULL, &ret);
    c[0] = take_changes(s, mark);
    branch_arm(s, &br, 1);
    exec_arms(s, n, arm + 1, NULL, &ret);
    c[1] = take_changes(s, mark);
    int nm = 0;
    Merge *m = arena_array(s->a, Merge, c[0].n + c[1].n + 1);
    merge_arms(s, &br, c, m, &nm);
    branch_end(s, &br);
    for (int i = 0; i < nm; i++) {
        int at = m[i].at;
        Val v = at < 0 ? m[i].end[0] : branch_result(s, &br, m[i].end[0], &at);
        name_value(v, m[i].name);
        scope_set(&s->frame->scope, m[i].name, v, m[i].loc, false);
    }
}

/* One arm returns a number, the other nothing. */
static bool
nothing_returned(const Val *got)
{
    for (int i = 0; i < 2; i++)
        if (got[i]->kind == FE_NONE &&
            (val_is_tensor(got[!i]) || val_is_number(got[!i])))
            return true;
    return false;
}

static Val
undefined_like(Sema *s, Val like)
{
    const Type *t = like->v->type;
    return val_tensor(s, op_result(build_op(&s->b, OP_UNDEF, NULL, 0, NULL, &t, 1), 0),
                      like->dt);
}

/* Both arms end the function: no name survives, only what they return. */
static Flow
exec_returning_if(Sema *s, const Node *n, int arm, Val cond, const Cont *cont, Val *ret)
{
    Branch br = branch_begin(s, cond);
    int mark = scope_mark(&s->frame->scope);
    Val got[2] = { NULL, NULL };
    for (int i = 0; i < 2; i++) {
        branch_arm(s, &br, i);
        Flow f = i ? exec_arms(s, n, arm + 1, cont, &got[1])
                   : exec_list(s, &n->list.at[arm]->body, 0, cont, &got[0]);
        if (f == FLOW_NEXT)
            exec_rest(s, cont, &got[i]);
        scope_rollback(&s->frame->scope, mark);
    }
    bool same = val_same_type(got[0], got[1]);
    if (!same && !nothing_returned(got) &&
        val_is_number(got[0]) != val_is_tensor(got[0])) {
        for (int i = 0; i < 2; i++) {
            branch_arm(s, &br, i);
            if (got[i]->kind != FE_NONE)
                got[i] = sanitize(s, got[i], n->loc);
        }
        same = val_same_type(got[0], got[1]);
    } else if (!same && s->frame->caller && nothing_returned(got)) {
        int none = got[1]->kind == FE_NONE;
        branch_arm(s, &br, !none);
        got[!none] = to_tensor(s, got[!none], n->loc);
        branch_arm(s, &br, none);
        diag_warning(&s->s->diag, n->loc, "'%s' returns %s on one way and nothing on "
                     "another: what its caller sees there is undefined",
                     s->frame->fn->name, val_describe(s->a, got[!none]));
        got[none] = undefined_like(s, got[!none]);
        same = true;
    } else if (!same && got[0]->kind == FE_TUPLE && got[1]->kind == FE_TUPLE) {
        for (int i = 0; i < 2; i++) {
            branch_arm(s, &br, i);
            got[i] = sanitize(s, got[i], n->loc);
        }
        same = val_same_type(got[0], got[1]);
    }
    bool bad = val_is_error(got[0]) || val_is_error(got[1]);
    if (!same && !bad) {
        sema_error(s, n->loc,
                   "Return type mismatch: %s and %s; returned values have one type",
                   val_describe(s->a, got[0]), val_describe(s->a, got[1]));
        bad = true;
    }
    for (int i = 0; i < 2 && !bad; i++)
        flatten(s, got[i], &br.arm[i]);
    branch_end(s, &br);
    int at = 0;
    *ret = bad ? val_error() : branch_result(s, &br, got[0], &at);
    return FLOW_RETURNED;
}

/* A condition that differs between elements: both arms are walked, and each element has
   the names and the result of its own. */
static Flow
exec_lanes_if(Sema *s, const Node *n, int arm, Val cond, const Cont *cont, Val *ret)
{
    bool returns = !s->frame->loop_depth && rest_returns(n, arm);
    int mark = scope_mark(&s->frame->scope);
    Val got[2] = {NULL, NULL};
    Changes c[2];
    const Cont *next = returns ? cont : NULL;
    for (int i = 0; i < 2; i++) {
        Val outer = lanes_enter(s, cond, !i, n->loc);
        Flow f = i ? exec_arms(s, n, arm + 1, next, &got[1])
                   : exec_list(s, &n->list.at[arm]->body, 0, next, &got[0]);
        if (returns && f == FLOW_NEXT)
            exec_rest(s, cont, &got[i]);
        c[i] = take_changes(s, mark);
        lanes_leave(s, outer);
    }
    if (returns) {
        *ret = lanes_select(s, cond, got[0], got[1], n->loc);
        return FLOW_RETURNED;
    }
    for (int i = 0, j = 0; i < c[0].n || j < c[1].n;) {
        int slot0 = i < c[0].n ? c[0].slot[i] : INT32_MAX;
        int slot1 = j < c[1].n ? c[1].slot[j] : INT32_MAX;
        int slot = slot0 < slot1 ? slot0 : slot1;
        const Binding *e0 = slot0 == slot ? &c[0].end[i++] : NULL;
        const Binding *e1 = slot1 == slot ? &c[1].end[j++] : NULL;
        Merge m;
        if (plan_merge(s, slot, e0, e1, &m) || (m.end[0] && m.end[0] == m.end[1])) {
            Val v = lanes_select(s, cond, m.end[0], m.end[1], m.loc);
            scope_set(&s->frame->scope, m.name, v, m.loc, false);
        }
    }
    return FLOW_NEXT;
}

static Flow
exec_arms(Sema *s, const Node *n, int arm, const Cont *cont, Val *ret)
{
    for (; arm < n->list.n; arm++) {
        const Node *a = n->list.at[arm];
        bool known, truth;
        s->b.loc = a->loc;
        Val c = eval_condition(s, a->a, &known, &truth);
        s->b.loc = a->loc;
        if (val_is_error(c))
            continue;
        if (known && !truth)
            continue;
        if (known)
            return exec_list(s, &a->body, 0, cont, ret);
        if (!sema_enter(s, a->loc))
            return FLOW_NEXT;
        if (c->rank) {
            Flow lanes = exec_lanes_if(s, n, arm, c, cont, ret);
            s->nest--;
            return lanes;
        }
        Flow f = FLOW_NEXT;
        if (!s->frame->loop_depth && rest_returns(n, arm))
            f = exec_returning_if(s, n, arm, c, cont, ret);
        else
            exec_runtime_if(s, n, arm, c);
        s->nest--;
        return f;
    }
    return exec_list(s, &n->orelse, 0, cont, ret);
}

static Flow
exec_return(Sema *s, const Node *n, Val *ret)
{
    if (s->frame->loop_depth) {
        sema_error(s, n->loc,
                   "Cannot have `return` statements inside `while` or `for` statements "
                   "in triton: keep the value in a name and return it after the loop");
        *ret = val_error();
        return FLOW_RETURNED;
    }
    *ret = n->a ? eval(s, n->a) : val_none();
    if (!s->frame->caller && (*ret)->kind != FE_NONE && !val_is_error(*ret) && !s->host) {
        sema_error(s, n->loc, "a kernel returns nothing: store the result through a "
                   "pointer");
        *ret = val_error();
    }
    return FLOW_RETURNED;
}

/* `tl.multiple_of(x, 16)` as a statement is a promise about x itself: what follows sees
   it. Only about a value of the region that is being built, so that no other region ends
   with a new x. */
static void
keep_promise(Sema *s, const Node *call, Val v)
{
    const Node *arg = call->kind == ND_CALL && call->list.n ? call->list.at[0] : NULL;
    const Op *op = v->kind == FE_TENSOR ? v->v->op : NULL;
    if (!arg || arg->kind != ND_NAME || !op || op->kind != OP_HINT)
        return;
    Binding *x = scope_find(&s->frame->scope, arg->name);
    const Value *of = op_operand(op, 0);
    const Region *home = of->op ? of->op->parent : of->region;
    if (x && x->val && x->val->kind == FE_TENSOR && x->val->v == of &&
        home == s->b.region)
        scope_set(&s->frame->scope, arg->name, v, x->loc, x->constexpr_);
}

/* What @triton.must_use_result("..") says of it. */
static const char *
words_of_promise(Sema *s, const Node *fn)
{
    const Node *d = find_decorator(fn, "must_use_result");
    const char *text = d->kind == ND_CALL && d->list.n ? node_str(d->list.at[0]) : NULL;
    return text ? arena_printf(s->a, ". %s", text)
                : ": it is marked by @triton.must_use_result";
}

/* A function that @triton.must_use_result decorates, called by this expression. */
static const Node *
unused_result(Sema *s, const Node *called)
{
    const Node *root = called;
    while (root->kind == ND_ATTRIBUTE)
        root = root->a;
    Val fn = root->kind == ND_NAME ? eval_quiet(s, called) : val_none();
    if (fn->kind != FE_FUNC)
        return NULL;
    return find_decorator(fn->u.func, "must_use_result") ? fn->u.func : NULL;
}

static void
exec_expr(Sema *s, const Node *n)
{
    if (n->a->kind == ND_CONSTANT && (n->a->sub == CK_STR || n->a->sub == CK_ELLIPSIS))
        return;
    Val v = eval(s, n->a);
    const Node *called = n->a->kind == ND_CALL ? n->a->a : NULL;
    if (v->kind == FE_BLOCK_PTR && called && called->name &&
        strcmp(called->name, "advance") == 0)
        sema_error(s, n->loc, "the result of 'advance' is not used: it returns the moved "
                   "block pointer and leaves its argument as it is");
    const Node *fn = called ? unused_result(s, called) : NULL;
    if (fn)
        sema_error(s, n->loc, "The result of %s is not being used%s",
                   node_dotted(s->a, called) ? node_dotted(s->a, called) : fn->name,
                   words_of_promise(s, fn));
    keep_promise(s, n->a, v);
}

static void
exec_assert(Sema *s, const Node *n)
{
    Val args[2] = { eval(s, n->a), n->b ? eval(s, n->b) : val_str(s, "") };
    s->b.loc = n->loc;
    if (!val_is_error(args[0]) && !val_is_error(args[1]))
        call_tl(s, "device_assert", args, 2, n->loc);
}

static const struct {
    NodeKind kind;
    const char *what;
} rejected[] = {
    {ND_BREAK, "'break' cannot be used in a kernel; use 'while' with a condition, or a "
               "mask"},
    {ND_CONTINUE, "'continue' cannot be used in a kernel; put the rest of the body under "
                  "an 'if'"},
    {ND_TRY, "'try' cannot be used in a kernel"},
    {ND_RAISE, "'raise' cannot be used in a kernel; use tl.static_assert or "
               "tl.device_assert"},
    {ND_IMPORT, "'import' cannot be used in a kernel; import at the top of the file"},
    {ND_IMPORT_FROM, "'import' cannot be used in a kernel; import at the top of the "
                     "file"},
    {ND_CLASS, "a class cannot be defined in a kernel"},
    {ND_FUNCTION,
     "nested function definition is not supported; write a @triton.jit function "
     "beside it"},
    {ND_DELETE, "'del' cannot be used in a kernel"},
    {ND_GLOBAL, "'global' cannot be used in a kernel"},
    {ND_NONLOCAL, "'nonlocal' cannot be used in a kernel"},
    {ND_WITH, "'with' cannot be used in a kernel"},
    {ND_SKIPPED, "this statement was not understood"},
};

/* In a constexpr function: the error is what Python would say. */
static Flow
exec_raise(Sema *s, const Node *n, Val *ret)
{
    const Node *e = n->a, *type = e && e->kind == ND_CALL ? e->a : e;
    bool named = type && (type->kind == ND_NAME || type->kind == ND_ATTRIBUTE);
    Val text = e && e->kind == ND_CALL && e->list.n == 1 ? eval_quiet(s, e->list.at[0])
                                                         : val_error();
    bool says = text->kind == FE_STR;
    sema_error(s, n->loc, "%s%s%s", named ? type->name : "an exception",
               says ? ": " : " is raised", says ? text->u.s : "");
    *ret = val_error();
    return FLOW_RETURNED;
}

static Flow
exec_statement(Sema *s, const Node *n, const Cont *cont, Val *ret)
{
    s->b.loc = n->loc;
    if (n->loc.src)
        s->s->fail.path = n->loc.src->path;
    s->s->fail.line = n->loc.line;
    switch (n->kind) {
    case ND_ASSIGN: exec_assign(s, n); return FLOW_NEXT;
    case ND_AUG_ASSIGN: exec_aug_assign(s, n); return FLOW_NEXT;
    case ND_ANN_ASSIGN: exec_ann_assign(s, n); return FLOW_NEXT;
    case ND_EXPR: exec_expr(s, n); return FLOW_NEXT;
    case ND_IF: return exec_arms(s, n, 0, cont, ret);
    case ND_FOR: return exec_for(s, n, cont, ret);
    case ND_WHILE: return exec_while(s, n, ret);
    case ND_RETURN: return exec_return(s, n, ret);
    case ND_ASSERT: exec_assert(s, n); return FLOW_NEXT;
    case ND_PASS: return FLOW_NEXT;
    default: break;
    }
    if (s->host && n->kind == ND_BREAK)
        return FLOW_BREAK;
    if (s->host && n->kind == ND_CONTINUE)
        return FLOW_CONTINUE;
    if (s->host && n->kind == ND_RAISE)
        return exec_raise(s, n, ret);
    for (size_t i = 0; i < sizeof rejected / sizeof *rejected; i++)
        if (rejected[i].kind == n->kind) {
            sema_error(s, n->loc, "%s", rejected[i].what);
            return FLOW_NEXT;
        }
    sema_error(s, n->loc, "%s cannot be used in a kernel", node_kind_name(n->kind));
    return FLOW_NEXT;
}

Flow
exec_list(Sema *s, const NodeList *list, int at, const Cont *cont, Val *ret)
{
    if (list->n && s->depth >= MAX_WALK_DEPTH) {
        *ret = sema_stop(s, list->at[0]->loc, "code is nested too deeply");
        return FLOW_RETURNED;
    }
    s->depth++;
    Flow f = FLOW_NEXT;
    for (int i = at; i < list->n && f == FLOW_NEXT; i++) {
        Cont rest = { .list = list, .at = i + 1, .next = cont };
        if (!sema_step(s, list->at[i]->loc, 1)) {
            *ret = val_error();
            f = FLOW_RETURNED;
            break;
        }
        f = exec_statement(s, list->at[i], &rest, ret);
    }
    s->depth--;
    return f;
}

/* Code after a conditional return is walked once for each way to reach it. */
static bool
count_copy(Sema *s, const Cont *c)
{
    if (!c->list || c->at >= c->list->n)
        return true;
    Map *m = &s->frame->copies;
    const Node *first = c->list->at[c->at];
    if (!m->arena)
        map_init(m, s->a);
    intptr_t n = (intptr_t)map_get(m, first) + 1;
    map_set(m, first, (void *)n);
    if (n <= MAX_COPIES)
        return true;
    sema_stop(s, first->loc, "too many conditional returns before this: return at the "
              "end, or mask the rest");
    return false;
}

/* Walks a continuation to the end of the function: always FLOW_RETURNED. */
static Flow
exec_rest(Sema *s, const Cont *cont, Val *ret)
{
    for (; cont; cont = cont->next) {
        if (!count_copy(s, cont)) {
            *ret = val_error();
            return FLOW_RETURNED;
        }
        Flow f = cont->list ? exec_list(s, cont->list, cont->at, cont->next, ret)
                            : exec_static_rounds(s, cont->loop, cont->i, cont->stop,
                                                 cont->step, cont->next, ret);
        if (f == FLOW_RETURNED)
            return f;
    }
    *ret = val_none();
    return FLOW_RETURNED;
}
