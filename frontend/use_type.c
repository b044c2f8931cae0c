/* Types that the text names: an assertion `p.dtype.element_ty == tl.uint8` says what is
   behind p, `x.dtype == tl.uint32` where x was loaded from, and "e2m1" operands of
   dot_scaled are bytes. Backward, from the value to the pointer. */
#include "frontend/use_walk.h"

#include <string.h>

static void use_type(Walk *w, const Node *n, Inst *at, DType dt);

static void
name_type(Walk *w, Evidence *u, DType dt)
{
    if (u->typing || (u->typed && u->type != dt)) /* what is said first holds */
        return;
    w->changed |= !u->typed;
    u->typed = u->typing = true;
    u->type = dt;
    for (const EvidenceDef *d = u->defs; d; d = d->next) /* each time: pointers are known
                                                            later than names */
        use_type(w, d->e, d->at, dt);
    u->typing = false;
}

/* n is loaded from elements of type dt. */
static void
use_type(Walk *w, const Node *n, Inst *at, DType dt)
{
    if (!n || !use_step(w))
        return;
    w->depth++;
    Inst *in = n->kind == ND_CALL ? map_get(&at->calls, n) : NULL;
    if (n->kind == ND_NAME) {
        Evidence *u = use_name(w, at, n->name, false);
        if (u)
            name_type(w, u, dt);
    } else if (n->kind == ND_IFEXP) {
        use_type(w, n->b, at, dt);
        use_type(w, n->c, at, dt);
    } else if (n->kind == ND_SUBSCRIPT) {
        use_type(w, n->a, at, dt);
    } else if (in) {
        name_type(w, in->ret, dt);
    } else if (n->kind == ND_CALL) {
        const Node *f = n->a;
        bool method = f->kind == ND_ATTRIBUTE && !use_global(w, f, at);
        const Node *first = method ? f->a : n->list.n ? n->list.at[0] : NULL;
        static const char *const same[] = {"trans", "reshape", "view", "permute", "T"};
        Seen p = first && f->name && strcmp(f->name, "load") == 0 ? use_see(w, first, at)
                                                                  : (Seen){0};
        if (p.to)
            name_type(w, p.to, dt);
        for (size_t i = 0; f->name && i < sizeof same / sizeof *same; i++)
            if (strcmp(f->name, same[i]) == 0)
                use_type(w, first, at, dt);
    } else if (n->kind == ND_ATTRIBUTE && strcmp(n->name, "T") == 0) {
        use_type(w, n->a, at, dt);
    }
    w->depth--;
}

/* Follows names that are bound once: `t: tl.constexpr = p.dtype.element_ty`. */
static const Node *
definition(Walk *w, const Node *n, Inst **at)
{
    for (int i = 0; n && n->kind == ND_NAME && i < 8; i++) {
        Evidence *u = use_name(w, *at, n->name, false);
        const EvidenceDef *d = u ? u->defs : NULL;
        if (!d || d->next || !d->e)
            return n;
        n = d->e;
        *at = d->at;
    }
    return n;
}

void
use_same_type(Walk *w, const Node *compare, Inst *at)
{
    const Node *e = compare->a;
    bool is = compare->list.n == 1 && compare->signs[0] == OS_EQ;
    Val v = is ? use_global(w, compare->list.at[0], at) : NULL;
    if (!v || v->kind != FE_DTYPE || dtype_is_ptr(v->dt))
        return;
    e = definition(w, e, &at);
    if (!e || e->kind != ND_ATTRIBUTE)
        return;
    bool behind = strcmp(e->name, "element_ty") == 0;
    const Node *of = behind ? definition(w, e->a, &at) : e;
    if (!of || of->kind != ND_ATTRIBUTE ||
        (strcmp(of->name, "dtype") != 0 && strcmp(of->name, "type") != 0))
        return;
    if (!behind) {
        use_type(w, of->a, at, v->dt);
        return;
    }
    Seen p = use_see(w, of->a, at);
    if (p.to)
        name_type(w, p.to, v->dt);
}

static DType
format_type(Walk *w, const Node *e, Inst *at)
{
    static const struct {
        const char *format;
        DType type;
    } rows[] = {{"e2m1", DT_UINT8}, {"e4m3", DT_FP8E4NV}, {"e5m2", DT_FP8E5},
                {"fp16", DT_FP16},  {"bf16", DT_BF16}};
    e = definition(w, e, &at);
    if (e && e->kind == ND_IFEXP)
        e = e->b;
    for (size_t i = 0; e && e->kind == ND_CONSTANT && e->sub == CK_STR &&
                       i < sizeof rows / sizeof *rows; i++)
        if (strcmp(e->v.str.s, rows[i].format) == 0)
            return rows[i].type;
    return DT_NONE;
}

void
use_formats(Walk *w, const Node *call, Inst *at)
{
    for (int i = 0; i + 2 < call->list.n && i <= 3; i += 3) {
        DType dt = format_type(w, call->list.at[i + 2], at);
        if (dt != DT_NONE)
            use_type(w, call->list.at[i], at, dt);
        use_type(w, call->list.at[i + 1], at, DT_UINT8);
    }
}
