/* Loops. Names that a loop's body assigns and that have a value before it are carried by
   the loop op and keep their type; other names of the body end with it, but for the
   loop's own (last.c). static_range is unrolled while walking. */
#include "frontend/lanes.h"
#include "frontend/last.h"
#include "frontend/sema.h"

#include "ir/edit.h"

#include <string.h>

/* Names bound anywhere in the code. */
typedef struct Assigned {
    Sema *s;
    Map names;
} Assigned;

static void collect(Assigned *as, const Node *n);

static void
collect_list(Assigned *as, const NodeList *l)
{
    for (int i = 0; i < l->n; i++)
        collect(as, l->at[i]);
}

static void
collect_target(Assigned *as, const Node *n)
{
    if (n->kind == ND_NAME)
        map_set(&as->names, n->name, (void *)1);
    else
        for (int i = 0; i < n->list.n; i++)
            collect_target(as, n->list.at[i]);
}

static void
collect(Assigned *as, const Node *n)
{
    if (!n)
        return;
    switch (n->kind) {
    case ND_ASSIGN:
        for (int i = 0; i < n->list.n; i++)
            collect_target(as, n->list.at[i]);
        break;
    case ND_AUG_ASSIGN:
    case ND_ANN_ASSIGN:
    case ND_GENERATOR: collect_target(as, n->a); break;
    case ND_FOR: /* an inner loop's name is carried only for those who read it behind */
        if (n->a->kind != ND_NAME || last_is_read(as->s, n->a->name))
            collect_target(as, n->a);
        break;
    case ND_NAMED_EXPR: map_set(&as->names, n->name, (void *)1); break;
    case ND_NAME:
    case ND_CONSTANT:
    case ND_FUNCTION:
    case ND_CLASS:
    case ND_LAMBDA: return;
    default: break;
    }
    collect(as, n->a);
    collect(as, n->b);
    collect(as, n->c);
    collect_list(as, &n->list);
    collect_list(as, &n->body);
    collect_list(as, &n->orelse);
    collect_list(as, &n->more);
}

/* The names a loop carries and their values before it. */
typedef struct Carried {
    Name *names;
    Val *before;
    Loc *set; /* where they got these values */
    int n;
    Flat inits;
    bool sets_own; /* the name of the loop is one: its body assigns it */
} Carried;

/* The loop's own name is among them where its body assigns it and `own_before` is given.
 */
static Carried
find_carried(Sema *s, const Node *loop, const Node *iv, Val own_before)
{
    Assigned as = { .s = s };
    Carried c = { 0 };
    Scope *sc = &s->frame->scope;
    map_init(&as.names, s->a);
    collect_list(&as, &loop->body);
    if (loop->kind == ND_WHILE)
        collect(&as, loop->a);
    c.names = arena_array(s->a, Name, as.names.n + 1);
    c.before = arena_array(s->a, Val, as.names.n + 1);
    c.set = arena_array(s->a, Loc, as.names.n + 1);
    for (int i = 0; i < as.names.n; i++) {
        Name name = as.names.entries[i].key;
        Binding *b = scope_find(sc, name);
        bool own = iv && iv->kind == ND_NAME && iv->name == name;
        if (own ? !own_before : !b || val_is_error(b->val))
            continue;
        if (own) {
            c.sets_own = true;
            scope_set(sc, name, own_before, b ? b->loc : loop->loc, false);
            b = scope_find(sc, name);
        }
        if (val_is_number(b->val) && !b->constexpr_)
            scope_set(sc, name, to_tensor(s, b->val, loop->loc), b->loc, false);
        b = scope_find(sc, name);
        if (val_is_const(b->val))
            continue; /* checked after the body: assigning it is an error */
        c.names[c.n] = name;
        c.set[c.n] = b->loc;
        c.before[c.n++] = b->val;
        flatten(s, b->val, &c.inits);
    }
    return c;
}

static void
bind_carried(Sema *s, const Carried *c, Value *const *at, Loc loc)
{
    int next = 0;
    for (int i = 0; i < c->n; i++) {
        Binding *b = scope_find(&s->frame->scope, c->names[i]);
        Loc where = b ? b->loc : loc;
        Val v = unflatten(s, c->before[i], at, &next);
        if (v->kind != FE_TUPLE && v->v && !v->v->name)
            v->v->name = c->names[i];
        scope_set(&s->frame->scope, c->names[i], v, where, false);
    }
}

/* The values at the end of the body, checked; false after an error. */
static bool
yield_carried(Sema *s, const Carried *c, Flat *out)
{
    bool ok = true;
    for (int i = 0; i < c->n; i++) {
        Binding *b = scope_find(&s->frame->scope, c->names[i]);
        Val v = b ? b->val : NULL;
        if (!v)
            v = sema_error(s, c->set[i], "'%s' has a value before the loop and none at "
                           "the end of its body; give it another name there",
                           c->names[i]);
        if (val_is_number(v))
            v = to_tensor(s, v, b->loc);
        if (val_is_error(v)) {
            ok = false;
        } else if (!val_same_type(c->before[i], v)) {
            sema_error(s, b->loc, "'%s' is %s before the loop but %s at the end of its "
                       "body; a name keeps one type in a loop", c->names[i],
                       val_describe(s->a, c->before[i]), val_describe(s->a, v));
            diag_note(&s->s->diag, c->set[i], "it is %s here",
                      val_describe(s->a, c->before[i]));
            ok = false;
        } else {
            flatten(s, v, out);
        }
    }
    return ok;
}

static void
check_constants(Sema *s, int mark)
{
    int *slots;
    Scope *sc = &s->frame->scope;
    int n = scope_changes(sc, mark, &slots);
    for (int i = 0; i < n; i++) {
        Binding old = scope_at(sc, mark, slots[i]), *now = &sc->slots[slots[i]];
        if (!old.val || !val_is_const(old.val) || !now->val || val_is_const(now->val) ||
            val_is_error(old.val))
            continue;
        sema_error(s, now->loc, "'%s' is the compile-time value %s before the loop and "
                   "cannot be assigned in it", now->name, val_describe(s->a, old.val));
    }
}

/* Back to the mark; names that only the body has are remembered for messages. */
static void
forget_names(Sema *s, int mark)
{
    int *slots;
    Scope *sc = &s->frame->scope;
    int n = scope_changes(sc, mark, &slots);
    Loc *last = arena_array(s->a, Loc, n + 1);
    for (int i = 0; i < n; i++)
        last[i] = sc->slots[slots[i]].loc;
    scope_rollback(sc, mark);
    for (int i = 0; i < n; i++)
        if (!sc->slots[slots[i]].val)
            sc->slots[slots[i]].loc = last[i];
}

/* Walks a body whose carried names are bound, and yields them. Names fall back to what
   they were at the mark. */
static bool
walk_body(Sema *s, const Node *loop, const Carried *c, int mark)
{
    Flat out = { 0 };
    Val ret = NULL;
    s->frame->loop_depth++;
    exec_list(s, &loop->body, 0, NULL, &ret);
    s->frame->loop_depth--;
    s->b.loc = loop->loc;
    bool ok = yield_carried(s, c, &out);
    if (ok && s->lanes && loop->kind == ND_WHILE) {
        /* Elements that have stopped keep what they had. */
        Region *r = s->b.region;
        Val going = s->lanes->active;
        for (int i = 0; i < out.n; i++)
            out.at[i] = build_select(&s->b, going->v, out.at[i], r->args[i]);
        vec_push(s->a, &out, going->v);
    }
    if (ok)
        build_yield(&s->b, out.at, out.n);
    for (int i = 0; i < c->n; i++)
        scope_unset(&s->frame->scope, c->names[i]);
    if (loop->kind == ND_FOR)
        scope_unset(&s->frame->scope, loop->a->name);
    check_constants(s, mark);
    forget_names(s, mark);
    return ok;
}

static void
bind_results(Sema *s, const Carried *c, Op *op, bool ok, Loc loc)
{
    Flat all = { 0 };
    for (int i = 0; i < op->nresult; i++)
        vec_push(s->a, &all, op_result(op, i));
    if (ok) {
        bind_carried(s, c, all.at, loc);
        return;
    }
    for (int i = 0; i < c->n; i++)
        scope_set(&s->frame->scope, c->names[i], val_error(), loc, false);
}

static bool
loop_bound(Sema *s, Val *v, const char *what, Loc loc)
{
    *v = to_tensor(s, *v, loc);
    if (val_is_error(*v))
        return false;
    if ((*v)->kind == FE_TENSOR && dtype_is_int((*v)->dt) &&
        shape_numel(val_shape(*v)) == 1) {
        *v = unsplat(s, *v, loc);
        return true;
    }
    bool quotient = (*v)->kind == FE_TENSOR && dtype_is_float((*v)->dt);
    sema_error(s, loc, "the %s of a loop must be an integer scalar, found %s%s", what,
               val_describe(s->a, *v), quotient ? "; '//' gives an integer" : "");
    return false;
}

static void
loop_attrs(Sema *s, Val range, Op *op)
{
    static const struct {
        int item;
        AttrKey key;
        bool flag;
    } options[] = {
        { 3, ATTR_STAGES, false },
        { 5, ATTR_DOTS_STAY, true },
        { 7, ATTR_WARP_SPEC, true },
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        Val v = range->u.items[options[i].item];
        if (v->kind == FE_NONE)
            continue;
        if (options[i].flag && val_truth(v))
            attr_set_flag(&s->s->mod, &op->attrs, options[i].key);
        if (!options[i].flag && val_is_int(v))
            attr_set_int(&s->s->mod, &op->attrs, options[i].key, (int64_t)v->u.i);
    }
}

static void
exec_runtime_for(Sema *s, const Node *n, Val range)
{
    Val at[3];
    static const char *const what[] = { "start", "end", "step" };
    for (int i = 0; i < 3; i++) {
        at[i] = range->u.items[i];
        if (i == 2 && val_is_int(at[i]) && at[i]->u.i == 0) {
            sema_error(s, n->b->loc, "the step of a loop must not be 0");
            return;
        }
        if (!loop_bound(s, &at[i], what[i], n->b->loc))
            return;
    }
    DType iv = promote_int(promote_int(at[0]->dt, at[1]->dt), at[2]->dt);
    for (int i = 0; i < 3; i++)
        at[i] = cast(s, at[i], iv, n->b->loc);
    if (!sema_enter(s, n->loc))
        return;
    Val before = last_before(s, n, iv);
    Val first = before && val_is_error(before) ? at[0] : before;
    Carried c = find_carried(s, n, n->a, first);
    s->b.loc = n->loc;
    Op *op = build_for(&s->b, at[0]->v, at[1]->v, at[2]->v, c.inits.at, c.inits.n);
    loop_attrs(s, range, op);
    Builder outside = s->b;
    Region *body = op->regions[0];
    int mark = scope_mark(&s->frame->scope);
    s->b.region = body;
    s->b.before = NULL;
    bind_carried(s, &c, body->args + 1, n->loc);
    assign_target(s, n->a, val_tensor(s, body->args[0], iv), false);
    bool ok = walk_body(s, n, &c, mark);
    s->b = outside;
    bind_results(s, &c, op, ok, n->loc);
    if (!c.sets_own)
        scope_unset(&s->frame->scope, n->a->name);
    if (ok && before && !c.sets_own)
        assign_target(s, n->a, last_value(s, at, first, n->loc), false);
    s->nest--;
}

Flow
exec_static_rounds(Sema *s, const Node *loop, Wide i, Wide stop, Wide step,
                   const Cont *cont, Val *ret)
{
    uint32_t start = s->f ? s->f->next_id : 0;
    for (; step > 0 ? i < stop : i > stop; i += step) {
        if (!sema_step(s, loop->loc, 1)) {
            *ret = val_error();
            return FLOW_RETURNED;
        }
        /* Every op takes a number, and so does its result. */
        if (s->f && s->f->next_id - start > 2 * MAX_UNROLLED) {
            sema_error(s, loop->loc,
                       "static_range unrolls to more than %d operations; use "
                       "range or tl.range",
                       MAX_UNROLLED);
            return FLOW_NEXT;
        }
        Cont rounds = { .loop = loop, .i = i + step, .stop = stop, .step = step,
                        .next = cont };
        int errors = s->s->diag.errors;
        scope_set(&s->frame->scope, loop->a->name, val_int(s, i), loop->a->loc, true);
        if (exec_list(s, &loop->body, 0, &rounds, ret) == FLOW_RETURNED)
            return FLOW_RETURNED;
        if (s->s->diag.errors > errors)
            return FLOW_NEXT; /* the next round would only say it again */
    }
    return FLOW_NEXT;
}

static Flow
exec_static_for(Sema *s, const Node *n, Val range, const Cont *cont, Val *ret)
{
    for (int i = 0; i < 3; i++)
        if (!val_is_int(range->u.items[i])) {
            sema_error(s, n->b->loc, "the bounds of static_range must be compile-time "
                       "integers, found %s; use range", val_describe(s->a,
                       range->u.items[i]));
            return FLOW_NEXT;
        }
    if (range->u.items[2]->u.i == 0) {
        sema_error(s, n->b->loc, "the step of a loop must not be 0");
        return FLOW_NEXT;
    }
    if (n->a->kind != ND_NAME) {
        sema_error(s, n->a->loc, "a loop over a range has one name");
        return FLOW_NEXT;
    }
    return exec_static_rounds(s, n, range->u.items[0]->u.i, range->u.items[1]->u.i,
                              range->u.items[2]->u.i, cont, ret);
}

/* Loops of functions that run at compile time: true while rounds go on. */
static bool
host_round(Sema *s, const Node *n, Val *ret, Flow *out)
{
    *out = exec_list(s, &n->body, 0, NULL, ret);
    bool on = *out == FLOW_NEXT || *out == FLOW_CONTINUE;
    if (*out != FLOW_RETURNED)
        *out = FLOW_NEXT;
    return on;
}

static Flow
exec_host_for(Sema *s, const Node *n, Val it, Val *ret)
{
    Flow f = FLOW_NEXT;
    if (it->kind == FE_TUPLE) {
        for (int i = 0; i < it->n; i++) {
            assign_target(s, n->a, it->u.items[i], false);
            if (!host_round(s, n, ret, &f))
                break;
        }
        return f;
    }
    const Val *at = it->u.items;
    if (!val_is_int(at[0]) || !val_is_int(at[1]) || !val_is_int(at[2]) || !at[2]->u.i) {
        sema_error(s, n->b->loc, "the bounds of this loop are not integers");
        return FLOW_NEXT;
    }
    Wide step = at[2]->u.i;
    for (Wide i = at[0]->u.i; step > 0 ? i < at[1]->u.i : i > at[1]->u.i; i += step) {
        assign_target(s, n->a, val_int(s, i), false);
        if (!sema_step(s, n->loc, 1) || !host_round(s, n, ret, &f))
            break;
    }
    return f;
}

static Flow
exec_host_while(Sema *s, const Node *n, Val *ret)
{
    Flow f = FLOW_NEXT;
    for (;;) {
        bool known = false, truth = false;
        eval_condition(s, n->a, &known, &truth);
        if (!known || !truth || !sema_step(s, n->loc, 1) || !host_round(s, n, ret, &f))
            return f;
    }
}

Flow
exec_for(Sema *s, const Node *n, const Cont *cont, Val *ret)
{
    if (n->orelse.n) {
        sema_error(s, n->orelse.at[0]->loc,
                   "'else' of a loop cannot be used in a kernel");
        return FLOW_NEXT;
    }
    Val range = eval(s, n->b);
    s->b.loc = n->loc;
    if (val_is_error(range))
        return FLOW_NEXT;
    if (s->host && (range->kind == FE_TUPLE || range->kind == FE_RANGE))
        return exec_host_for(s, n, range, ret);
    if (range->kind != FE_RANGE) {
        sema_error(s, n->b->loc, "a loop in a kernel goes over range, tl.range or "
                   "tl.static_range, found %s", val_describe(s->a, range));
        return FLOW_NEXT;
    }
    if (range->n)
        return exec_static_for(s, n, range, cont, ret);
    if (n->a->kind != ND_NAME)
        sema_error(s, n->a->loc, "a loop over a range has one name");
    else
        exec_runtime_for(s, n, range);
    return FLOW_NEXT;
}

/* Cond region: carried values in, `condition` out. */
static bool
walk_condition(Sema *s, const Node *n, const Carried *c, Region *r)
{
    bool known, truth;
    s->b.region = r;
    s->b.before = NULL;
    bind_carried(s, c, r->args, n->loc);
    Val cond = eval_condition(s, n->a, &known, &truth);
    if (known)
        cond = sema_error(s, n->a->loc, "the condition of 'while' is always %s: it must "
                          "change at run time", truth ? "true" : "false");
    Value *going = s->lanes ? r->args[r->narg - 1] : NULL;
    if (going && !val_is_error(cond)) { /* on as long as an element goes on */
        cond = lanes_spread(s, cond, n->a->loc);
        going = build_binary(&s->b, OP_AND, going, cond->v);
        cond = lanes_any(s, val_tensor(s, going, DT_INT1), n->a->loc);
    }
    if (val_is_error(cond))
        return false;
    Flat out = { 0 };
    vec_push(s->a, &out, cond->v);
    for (int i = 0; i < r->narg; i++)
        vec_push(s->a, &out, going && i == r->narg - 1 ? going : r->args[i]);
    s->b.loc = n->loc;
    build_op(&s->b, OP_CONDITION, out.at, out.n, NULL, NULL, 0);
    return true;
}

Flow
exec_while(Sema *s, const Node *n, Val *ret)
{
    if (n->orelse.n) {
        sema_error(s, n->orelse.at[0]->loc,
                   "'else' of a loop cannot be used in a kernel");
        return FLOW_NEXT;
    }
    if (s->host)
        return exec_host_while(s, n, ret);
    if (!sema_enter(s, n->loc))
        return FLOW_NEXT;
    Carried c = find_carried(s, n, NULL, NULL);
    if (s->lanes) /* behind the names: the elements that still go on */
        vec_push(s->a, &c.inits, lanes_start(s, n->loc)->v);
    int count = c.inits.n;
    const Type **types = arena_array(s->a, const Type *, count + 1);
    for (int i = 0; i < count; i++)
        types[i] = c.inits.at[i]->type;
    s->b.loc = n->loc;
    Op *op = build_op(&s->b, OP_WHILE, c.inits.at, count, NULL, types, count);
    Region *r[2];
    for (int k = 0; k < 2; k++) {
        r[k] = region_new(s->f, op);
        for (int i = 0; i < count; i++)
            region_arg(r[k], types[i], NULL);
    }
    Builder outside = s->b;
    int mark = scope_mark(&s->frame->scope);
    bool ok = walk_condition(s, n, &c, r[0]);
    scope_rollback(&s->frame->scope, mark);
    if (ok) {
        s->b.region = r[1];
        s->b.before = NULL;
        bind_carried(s, &c, r[1]->args, n->loc);
        Val outer = s->lanes ? s->lanes->active : NULL;
        if (s->lanes)
            s->lanes->active = val_tensor(s, r[1]->args[count - 1], DT_INT1);
        ok = walk_body(s, n, &c, mark);
        if (s->lanes)
            s->lanes->active = outer;
    }
    s->b = outside;
    bind_results(s, &c, op, ok, n->loc);
    s->nest--;
    return FLOW_NEXT;
}
