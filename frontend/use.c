/* Evidence on parameters. The text is walked several times, helpers with it, until
   nothing new is found: forward, what each expression is (`use_see`); backward, what its
   place wants of the names in it (`use_need`). A sum is the one doubtful case, since any
   of its terms may be the pointer: a term that is known to be a number is not, and of
   several that could be the first is taken, but only when everything else has been said.
   After that, names that are bound to whole numbers are integers, and elements that
   nothing is known of are floats. */
#include "frontend/use_walk.h"

#include "frontend/spec.h"

#include <string.h>

enum { MAX_ROUNDS = 6, MAX_USE_STEPS = 400000, MAX_USE_DEPTH = 200 };

bool
use_step(Walk *w)
{
    return ++w->steps < MAX_USE_STEPS && w->depth < MAX_USE_DEPTH;
}

/* ---- names */

static void
add_bits(Walk *w, unsigned *to, unsigned bits)
{
    w->changed |= (*to | bits) != *to;
    *to |= bits;
}

Evidence *
use_new(Walk *w)
{
    return arena_new(w->s->a, Evidence);
}

Evidence *
use_name(Walk *w, Inst *at, Name name, bool make)
{
    Evidence *u = map_get(&at->names, name);
    if (!u && make) {
        u = use_new(w);
        map_set(&at->names, name, u);
    }
    return u;
}

void
use_want(Walk *w, Evidence *u, unsigned k)
{
    if (u->constexpr_)
        k &= ~(unsigned)(USE_PTR | USE_ADDRESS);
    if (u->constexpr_ && w->phase < FLOAT_ELEMENTS)
        k &= ~(unsigned)USE_FLOAT; /* a size multiplies floats, too */
    if ((u->want | k) == u->want)
        return;
    add_bits(w, &u->want, k);
    if (k & USE_PTR && u->param && !u->to)
        u->to = use_new(w);
    for (const EvidenceDef *d = u->defs; d; d = d->next)
        use_need(w, d->e, d->at, k);
}

void
use_define(Walk *w, Evidence *u, const Node *e, Inst *at, Seen v)
{
    add_bits(w, &u->is, v.is);
    if (v.to && !u->to) {
        u->to = v.to;
        w->changed = true;
    }
    if (u->is & USE_INT && !(u->is & (USE_FLOAT | USE_PTR)))
        use_want(w, u, USE_INT); /* a name keeps one type */
    if (!e)
        return;
    use_need(w, e, at, u->want); /* each time: more is known of what is in it */
    for (const EvidenceDef *d = u->defs; d; d = d->next)
        if (d->e == e && d->at == at)
            return;
    EvidenceDef *d = arena_new(w->s->a, EvidenceDef);
    *d = (EvidenceDef){e, at, u->defs};
    u->defs = d;
    w->changed = true;
}

Seen
use_seen(const Evidence *u)
{
    Seen v = {.is = u->is, .to = u->to};
    if (u->param && u->want & USE_PTR)
        v.is |= USE_PTR;
    else if (u->param && !u->is) /* the truth of a pointer may be asked for */
        v.is |= u->want & NUMBERS & ~(unsigned)USE_BOOL;
    if (v.is & (USE_INT | USE_SIZE | USE_ROUNDS))
        v.is &= ~(unsigned)USE_FLOAT; /* an integer multiplies floats, too */
    if (u->constexpr_ && !v.is)
        v.is = USE_CONST;
    if (v.is & (USE_SIZE | USE_ROUNDS))
        v.is = (v.is | USE_INT) & ~(unsigned)(USE_SIZE | USE_ROUNDS);
    return v;
}

Seen
use_join(Seen a, Seen b)
{
    return (Seen){.is = a.is | b.is, .to = a.to ? a.to : b.to};
}

/* ---- what a name of the module is */

Val
use_global(Walk *w, const Node *n, Inst *at)
{
    Sema *s = w->s;
    Diag before = s->s->diag;
    Val v = NULL;
    if (n->kind == ND_NAME) {
        v = module_lookup(s, at->home, n->name, n->loc, false);
        const Builtin *b = v ? NULL : builtin_find(s, n->name, IN_PY);
        v = b ? val_builtin(s, b) : v;
    } else if (n->kind == ND_ATTRIBUTE) {
        Val base = n->a->kind == ND_NAME && use_name(w, at, n->a->name, false)
                       ? NULL
                       : use_global(w, n->a, at);
        if (base && base->kind == FE_MODULE)
            v = module_attribute(s, base, n->name, n->loc, true);
        else if (base && base->kind == FE_TYPE) /* a function of a class */
            v = get_attribute(s, base, n->name, n->loc, true);
    }
    diag_rewind(&s->s->diag, &before);
    return v && !val_is_error(v) ? v : NULL;
}

/* The element that a dtype names: tl.int32, x.dtype.element_ty: nothing is known. */
unsigned
use_dtype(Walk *w, const Node *n, Inst *at)
{
    Val v = n ? use_global(w, n, at) : NULL;
    if (!v || v->kind != FE_DTYPE)
        return n && n->kind == ND_CALL && n->a->kind == ND_ATTRIBUTE &&
                       strcmp(n->a->name, "pointer_type") == 0
                   ? USE_PTR
                   : 0;
    return dtype_is_ptr(v->dt)     ? USE_PTR
           : dtype_is_float(v->dt) ? USE_FLOAT
           : v->dt == DT_INT1      ? USE_BOOL
                                   : USE_INT;
}

/* ---- statements */

/* `t` in one function gets the value of `e` in another, or the same. */
static void
assign(Walk *w, const Node *t, Inst *at, const Node *e, Inst *from, Seen v)
{
    if (t->kind == ND_NAME) {
        bool whole = w->phase >= WHOLE_NUMBERS && e && e->kind == ND_CONSTANT &&
                     e->sub == CK_INT;
        v.is |= whole ? USE_INT : 0; /* in sums an integer goes with anything */
        use_define(w, use_name(w, at, t->name, true), e, from, v);
        return;
    }
    if (t->kind != ND_TUPLE && t->kind != ND_LIST) {
        use_see(w, t, at);
        return;
    }
    const Inst *in = e && e->kind == ND_CALL ? map_get(&from->calls, e) : NULL;
    for (const EvidenceDef *d = in ? in->ret->defs : NULL; d; d = d->next)
        for (int i = 0; i < t->list.n && d->e->list.n == t->list.n; i++)
            assign(w, t->list.at[i], at, d->e->list.at[i], d->at,
                   use_see(w, d->e->list.at[i], d->at));
    bool match = v.tuple && v.tuple->list.n == t->list.n;
    Evidence *u = e && e->kind == ND_NAME ? use_name(w, from, e->name, false) : NULL;
    if (!match && u && u->param && !v.is) {
        use_want(w, u, USE_TUPLE);
        u->items = t->list.n;
    }
    for (int i = 0; i < t->list.n; i++) {
        const Node *item = match ? v.tuple->list.at[i] : NULL;
        Seen part = item ? use_see(w, item, v.at) : (Seen){0};
        assign(w, t->list.at[i], at, item, v.at, part);
    }
}

static void
walk_for(Walk *w, const Node *n, Inst *at)
{
    use_see(w, n->b, at);
    assign(w, n->a, at, NULL, at, (Seen){.is = USE_INT});
    Evidence *u = n->a->kind == ND_NAME ? use_name(w, at, n->a->name, true) : NULL;
    if (u && n->b->kind == ND_CALL && n->b->list.n == 3) {
        u->step = n->b->list.at[2];
        u->step_at = at;
    }
    use_walk(w, &n->body, at);
}

static void
walk_aug(Walk *w, const Node *n, Inst *at)
{
    Node *sum = map_get(&at->calls, n); /* x += y is x = x + y */
    if (!sum) {
        sum = arena_new(w->s->a, Node);
        *sum = *n;
        sum->kind = ND_BINOP;
        map_set(&at->calls, n, sum);
    }
    Seen v = use_see(w, sum, at);
    if (n->a->kind != ND_NAME)
        return;
    Evidence *u = use_name(w, at, n->a->name, true);
    use_define(w, u, sum, at, v);
    if (u->want & USE_PTR || use_seen(u).is & USE_PTR)
        use_need(w, n->b, at, USE_INT);
}

static void
walk_statement(Walk *w, const Node *n, Inst *at)
{
    switch ((int)n->kind) {
    case ND_ASSIGN: {
        Seen v = use_see(w, n->a, at);
        for (int i = 0; i < n->list.n; i++)
            assign(w, n->list.at[i], at, n->a, at, v);
        break;
    }
    case ND_ANN_ASSIGN:
        if (n->c)
            assign(w, n->a, at, n->c, at, use_see(w, n->c, at));
        break;
    case ND_AUG_ASSIGN: walk_aug(w, n, at); break;
    case ND_EXPR: use_see(w, n->a, at); break;
    case ND_RETURN:
        if (n->a)
            use_define(w, at->ret, n->a, at, use_see(w, n->a, at));
        break;
    case ND_ASSERT: use_see(w, n->a, at); break;
    case ND_FOR: walk_for(w, n, at); break;
    case ND_WHILE:
        use_see(w, n->a, at);
        use_walk(w, &n->body, at);
        break;
    case ND_IF:
        for (int i = 0; i < n->list.n; i++) {
            use_see(w, n->list.at[i]->a, at);
            use_need(w, n->list.at[i]->a, at, USE_BOOL);
            use_walk(w, &n->list.at[i]->body, at);
        }
        use_walk(w, &n->orelse, at);
        break;
    default: break;
    }
}

void
use_walk(Walk *w, const NodeList *l, Inst *at)
{
    for (int i = 0; i < l->n && use_step(w); i++)
        walk_statement(w, l->at[i], at);
}

/* ---- the kernel */

static unsigned
known_bits(const SpecArg *a)
{
    switch (a->kind) {
    case SPEC_INT: return USE_INT;
    case SPEC_FLOAT: return USE_FLOAT;
    case SPEC_BOOL: return USE_BOOL;
    case SPEC_TYPE:
        return a->sig[0] == '*'                          ? USE_PTR
               : strncmp(a->sig, "tensordesc", 10) == 0  ? USE_DESC
               : a->sig[0] == 'f' || a->sig[0] == 'b'    ? USE_FLOAT
                                                         : USE_INT;
    default: return 0;
    }
}

Evidence **
use_collect(Sema *s, const Node *fn, FrontModule *home, const FrontSpec *spec,
            Map *called)
{
    Walk w = {.s = s, .called = called};
    Inst *top = arena_new(s->a, Inst);
    Evidence **params = arena_array(s->a, Evidence *, fn->list.n + 1);
    FrontModule *outer = s->frame->module;
    *top = (Inst){.fn = fn, .home = home, .ret = use_new(&w)};
    map_init(&top->names, s->a);
    map_init(&top->calls, s->a);
    s->frame->module = home;
    for (int i = 0; i < fn->list.n; i++) {
        const Node *p = fn->list.at[i];
        Evidence *u = params[i] = use_name(&w, top, p->name, true);
        u->param = true;
        u->constexpr_ = param_is_constexpr(p);
        u->is = known_bits(&spec->args[i]);
        if (u->is & USE_PTR)
            u->to = use_new(&w);
    }
    for (w.phase = 0; w.phase < PHASES; w.phase++) {
        w.changed = true;
        for (int round = 0; w.changed && round < MAX_ROUNDS; round++) {
            w.changed = false;
            w.steps = 0;
            use_walk(&w, &fn->body, top);
        }
    }
    s->frame->module = outer;
    return params;
}
