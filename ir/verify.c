/* The verifier: structure (terminators, region counts, dominance by nesting, use
   lists) and, op by op, the rules. All violations are collected. */
#include "ir/analysis/async_dot.h"
#include "ir/verify.h"

#include "ir/base/map.h"
#include "ir/edit.h"
#include "ir/layout.h"
#include "ir/target.h"
#include "ir/text.h"

#include <string.h>

typedef struct Verifier {
    Session *s;
    Func *f;
    Map seen; /* Values that dominate the current place */
    int errors;
} Verifier;

static void violation(Verifier *v, const Op *op, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void
violation(Verifier *v, const Op *op, const char *fmt, ...)
{
    Buf b;
    va_list ap;
    buf_init(&b, &v->s->perm);
    va_start(ap, fmt);
    buf_vprintf(&b, fmt, ap);
    va_end(ap);
    v->errors++;
    diag_error(&v->s->diag, op ? op->loc : v->f->loc, "%s%s%s%s", op ? "'" : "",
               op ? op_info[op->kind].name : "", op ? "': " : "", b.s);
}

/* A dot in flight may only be added to, awaited or handed on. */
static bool
takes_async(const Op *op, int i)
{
    if (op_is_async_dot(op))
        return i == DOT_ACC;
    if (op->kind == OP_FOR)
        return i >= 3;
    return op_is_dot_wait(op) || op->kind == OP_WHILE || op->kind == OP_YIELD ||
           op->kind == OP_CONDITION;
}

/* A wait returns accumulators of dots that are done behind it. */
static bool
waits_for(const Op *wait)
{
    for (int i = 0; i < wait->noperand; i++) {
        const Op *dot = op_operand(wait, i)->op;
        if (dot && op_is_async_dot(dot) && dot->parent == wait->parent &&
            wait_pending(wait) > dots_between(dot->next, wait))
            return false;
    }
    return true;
}

/* Registers hold the sums of one dot: behind a dot that adds to sums in flight nothing
   uses the old ones. */
static bool
takes_last(const Op *dot)
{
    const Value *acc = op_operand(dot, DOT_ACC);
    for (const Use *u = acc->uses; u && acc->type->kind == TY_ASYNC; u = u->next) {
        const Op *user = op_in_region(u->user, dot->parent);
        if (user && user != dot && op_before(dot, user))
            return false;
    }
    return true;
}

static void
check_async(Verifier *v, const Op *op)
{
    if (op_is_dot_wait(op) && !waits_for(op))
        violation(v, op, "a dot whose sums it returns may be in flight behind it");
    if (op_is_async_dot(op) && attr_has(&op->attrs, ATTR_MAX_IMPRECISE) &&
        op_operand(op, DOT_ACC)->type->kind == TY_ASYNC)
        violation(v, op, "threads add to the sums, which are in flight");
    if (op_is_async_dot(op) && !takes_last(op))
        violation(v, op, "the sums in flight that it adds to are used behind it");
}

static void
check_uses(Verifier *v, const Op *op, const Value *value)
{
    for (const Use *u = value->uses; u; u = u->next) {
        if (u->value == value && *u->link == u)
            continue;
        violation(v, op, "use list of %%%s is broken", value->name ? value->name : "");
        return;
    }
}

/* What the form of the function promises of every value. */
static void
check_form(Verifier *v, const Op *op, const Value *value)
{
    const Type *t = value->type;
    if (!t)
        return;
    if ((v->f->props & FORM_ACCESS) && t->kind == TY_BLOCK_PTR)
        violation(v, op, "a block pointer in a function of explicit accesses");
    if ((v->f->props & FORM_LAYOUT) && t->kind == TY_TILE && !t->layout)
        violation(v, op, "a tile without layout in a function with layouts: %s",
                  type_str(&v->s->perm, t));
    if (t->layout && !layout_fits(t->layout, t))
        violation(v, op, "layout does not fit %s", type_str(&v->s->perm, t));
}

static void
check_operands(Verifier *v, const Op *op)
{
    for (int i = 0; i < op->noperand; i++) {
        const Use *u = &op->operands[i];
        if (u->user != op || u->index != i || !u->link || *u->link != u)
            violation(v, op, "use list of operand %d is broken", i);
        if (!map_has(&v->seen, u->value))
            violation(v, op, "operand %d is not defined where it is used", i);
        if (u->value->type && u->value->type->kind == TY_ASYNC && !takes_async(op, i))
            violation(v, op, "operand %d is in flight: wgmma_wait must release it", i);
    }
}

static void
check_rule(Verifier *v, const Op *op)
{
    ArenaMark mark = arena_mark(&v->s->tmp);
    const Type **types = arena_array(&v->s->tmp, const Type *, op->nresult + 1);
    Buf why;
    buf_init(&why, &v->s->tmp);
    if (!op_infer(v->s, op, types, &why))
        violation(v, op, "%s", why.s ? why.s : "ill-typed");
    else
        for (int i = 0; i < op->nresult; i++)
            if (types[i] && types[i] != op->results[i].type)
                violation(v, op, "result %d must be %s, not %s", i,
                          type_str(&v->s->perm, types[i]),
                          type_str(&v->s->perm, op->results[i].type));
    arena_reset(&v->s->tmp, mark);
}

/* The values that end a region must have the types that its op passes on. */
static void
check_end(Verifier *v, const Op *op, const Region *r, const Value *to, int n, int skip)
{
    const Op *end = r->last;
    if (!end || end->noperand - skip != n) {
        violation(v, end ? end : op, "must yield %d values", n);
        return;
    }
    for (int i = 0; i < n; i++)
        if (op_operand(end, i + skip)->type != to[i].type)
            violation(v, end, "value %d must be %s, not %s", i,
                      type_str(&v->s->perm, to[i].type),
                      type_str(&v->s->perm, op_operand(end, i + skip)->type));
}

static void
check_arg(Verifier *v, const Op *op, const Region *r, int i, const Type *want)
{
    if (r->args[i]->type != want)
        violation(v, op, "region argument %d must be %s, not %s", i,
                  type_str(&v->s->perm, want), type_str(&v->s->perm, r->args[i]->type));
}

static void
check_for(Verifier *v, const Op *op)
{
    const Region *r = op->regions[0];
    if (r->narg != op->nresult + 1 || op->noperand != op->nresult + 3) {
        violation(v, op, "body must have %d arguments", op->nresult + 1);
        return;
    }
    check_arg(v, op, r, 0, op_operand(op, 0)->type);
    for (int i = 0; i < op->nresult; i++)
        check_arg(v, op, r, i + 1, op->results[i].type);
    check_end(v, op, r, op->results, op->nresult, 0);
}

static void
check_while(Verifier *v, const Op *op)
{
    const Region *cond = op->regions[0], *body = op->regions[1];
    if (cond->narg != op->noperand || body->narg != op->nresult) {
        violation(v, op, "regions must take the carried values and the results");
        return;
    }
    for (int i = 0; i < op->noperand; i++)
        check_arg(v, op, cond, i, op_operand(op, i)->type);
    for (int i = 0; i < op->nresult; i++)
        check_arg(v, op, body, i, op->results[i].type);
    check_end(v, op, cond, op->results, op->nresult, 1);
    if (!body->last || body->last->noperand != op->noperand) {
        violation(v, op, "body must yield %d values", op->noperand);
        return;
    }
    for (int i = 0; i < op->noperand; i++)
        if (op_operand(body->last, i)->type != op_operand(op, i)->type)
            violation(v, body->last, "value %d has another type than it started with", i);
}

static const Type *
element_of(const Type *t)
{
    return t->kind == TY_BUF ? t->elem : type_elem(t);
}

/* reduce and scan: (a.., b..) -> yield, on elements. */
static void
check_combine(Verifier *v, const Op *op)
{
    const Region *r = op->regions[0];
    int n = op->noperand;
    if (r->narg != 2 * n || !r->last || r->last->noperand != n) {
        violation(v, op, "region must take %d elements and yield %d", 2 * n, n);
        return;
    }
    for (int i = 0; i < 2 * n; i++)
        check_arg(v, op, r, i, element_of(op_operand(op, i % n)->type));
    for (int i = 0; i < n; i++)
        if (op_operand(r->last, i)->type != element_of(op_operand(op, i)->type))
            violation(v, r->last, "value %d must have the element's type", i);
}

static void
check_roles(Verifier *v, const Op *op)
{
    const Attr *warps = attr_find(&op->attrs, ATTR_WARPS);
    if (!warps || warps->n != op->nregion) {
        violation(v, op, "needs one region for each entry of {warps}");
        return;
    }
    for (int k = 0; k < op->nregion; k++) {
        const Region *r = op->regions[k];
        if (r->narg != op->noperand) {
            violation(v, op, "every region must take the %d captures", op->noperand);
            continue;
        }
        for (int i = 0; i < r->narg; i++)
            check_arg(v, op, r, i, op_operand(op, i)->type);
        check_end(v, op, r, op->results, 0, 0);
    }
}

static void
check_structure(Verifier *v, const Op *op)
{
    switch ((int)op->kind) {
    case OP_FOR: check_for(v, op); break;
    case OP_WHILE: check_while(v, op); break;
    case OP_REDUCE:
    case OP_BUF_REDUCE:
    case OP_SCAN: check_combine(v, op); break;
    case OP_WARP_SPECIALIZE: check_roles(v, op); break;
    case OP_IF:
        if (op->nregion != 2)
            violation(v, op, "needs two regions");
        else
            for (int i = 0; i < 2; i++)
                check_end(v, op, op->regions[i], op->results, op->nresult, 0);
        break;
    default: break;
    }
}

static OpKind
terminator_of(const Region *r)
{
    if (!r->parent)
        return OP_RETURN;
    return r->parent->kind == OP_WHILE && r == r->parent->regions[0] ? OP_CONDITION
                                                                     : OP_YIELD;
}

static void visit(Verifier *v, const Region *r, int depth);

static void
check_op(Verifier *v, const Op *op, int depth)
{
    const OpInfo *info = &op_info[op->kind];
    check_operands(v, op);
    if (info->nregion >= 0 && op->nregion != info->nregion) {
        violation(v, op, "%d regions, needs %d", op->nregion, info->nregion);
        return;
    }
    bool isolated = op_is(op, T_ISOLATED);
    Map outer = v->seen;
    for (int i = 0; i < op->nregion; i++) {
        if (isolated)
            map_init(&v->seen, &v->s->tmp);
        visit(v, op->regions[i], depth + 1);
    }
    if (isolated)
        v->seen = outer;
    check_rule(v, op);
    check_structure(v, op);
    for (int i = 0; i < op->nresult; i++) {
        if (!op->results[i].type || op->results[i].op != op || op->results[i].index != i)
            violation(v, op, "result %d is malformed", i);
        check_uses(v, op, &op->results[i]);
        check_form(v, op, &op->results[i]);
        map_set(&v->seen, &op->results[i], v);
    }
}

static void
visit(Verifier *v, const Region *r, int depth)
{
    if (depth > MAX_REGION_DEPTH) {
        violation(v, r->parent, "nested deeper than %d", MAX_REGION_DEPTH);
        return;
    }
    int outside = v->seen.n;
    for (int i = 0; i < r->narg; i++) {
        map_set(&v->seen, r->args[i], v);
        check_uses(v, r->parent, r->args[i]);
        check_form(v, r->parent, r->args[i]);
    }
    if (!r->last || r->last->kind != terminator_of(r))
        violation(v, r->last ? r->last : r->parent, "region must end with '%s'",
                  op_info[terminator_of(r)].name);
    for (const Op *op = r->first; op; op = op->next) {
        if (op->parent != r || (op->next && op->next->prev != op))
            violation(v, op, "op list is broken");
        if (op_is(op, T_TERMINATOR) && op != r->last)
            violation(v, op, "must be the last op of its region");
        check_op(v, op, depth);
    }
    map_truncate(&v->seen, outside);
}

bool
func_verify(Func *f)
{
    Session *s = f->module->s;
    ArenaMark mark = arena_mark(&s->tmp);
    Verifier v = {.s = s, .f = f};
    map_init(&v.seen, &s->tmp);
    visit(&v, f->body, 0);
    /* Dots in flight are looked at several at once: where each is what its rule says. */
    if (!v.errors)
        region_each_deep(f->body, op)
            check_async(&v, op);
    arena_reset(&s->tmp, mark);
    return v.errors == 0;
}

bool
module_verify(Module *m)
{
    bool ok = true;
    for (int i = 0; i < m->nfunc; i++)
        ok &= func_verify(m->funcs[i]);
    return ok;
}

/* ---- for a target */

static const char *
misfit(const Op *op, const TargetInfo *t)
{
    if (op_is(op, T_CPU) && t->gpu)
        return "of the form for a CPU";
    if (op_is(op, T_GPU) && !t->gpu)
        return "of the form for a GPU";
    if ((op->kind == OP_ASM || op->kind == OP_ASM_EFFECT) && !t->gpu)
        return "PTX, assembly for a GPU";
    if (op_is(op, T_SM90) && t->sm < 90)
        return "of the form for sm_90 and later";
    if (op_is(op, T_SM90A) && !t->wgmma)
        return "of the form for sm_90a";
    for (int i = 0; i < op->nresult && !t->gpu; i++)
        if (op->results[i].type->layout)
            return "on tiles with layouts, as GPUs have them";
    return NULL;
}

static bool
ops_fit(const Func *f, const TargetInfo *t, const char *name)
{
    Session *s = f->module->s;
    region_each_deep(f->body, op)
    {
        const char *why = misfit(op, t);
        if (why) {
            diag_error(&s->diag, op->loc, "no code for target %s: '%s' is %s", name,
                       op_info[op->kind].name, why);
            return false;
        }
    }
    return true;
}

bool
func_fits(const Func *f, const TargetInfo *t, const char *name)
{
    return ops_fit(f, t, name);
}

static bool
params_fit(Session *s, const Func *f)
{
    for (int i = 0; i < f->body->narg; i++) {
        const Value *v = f->body->args[i];
        if (v->type->kind == TY_SCALAR || v->type->kind == TY_PTR)
            continue;
        diag_error(&s->diag, f->loc,
                   "no code for a kernel that takes %s as '%s': a host can pass scalars "
                   "and pointers",
                   type_str(&s->perm, v->type), f->params[i].name);
        return false;
    }
    return true;
}

bool
module_fits(Module *m, const TargetInfo *t, const char *name)
{
    bool ok = true;
    for (int i = 0; i < m->nfunc; i++)
        ok &= params_fit(m->s, m->funcs[i]) && func_fits(m->funcs[i], t, name);
    return ok;
}
