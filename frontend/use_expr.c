/* Evidence from expressions: what they are, and what is wanted of them. */
#include "frontend/use_walk.h"

#include "ir/base/util.h"

#include <string.h>

/* ---- wants */

static void
want_sum(Walk *w, const Node *n, Inst *at)
{
    const Node *side[2] = {n->a, n->b};
    bool can[2];
    for (int i = 0; i < 2; i++) {
        Seen v = use_see(w, side[i], at);
        if (v.is & USE_PTR) {
            use_need(w, side[i], at, USE_PTR);
            use_need(w, side[1 - i], at, USE_INT);
            return;
        }
        can[i] = !(v.is & (NUMBERS | USE_CONST)) && side[i]->kind != ND_CONSTANT;
    }
    if (n->sub == OS_SUB)
        can[1] = false;
    if (can[0] == can[1] && (!can[0] || w->phase == IS_SURE))
        return;
    use_need(w, side[can[0] ? 0 : 1], at, USE_PTR);
    use_need(w, side[can[0] ? 1 : 0], at, USE_INT);
}

static void
want_binop(Walk *w, const Node *n, Inst *at, unsigned k)
{
    if (k & USE_PTR && (n->sub == OS_ADD || n->sub == OS_SUB))
        want_sum(w, n, at);
    unsigned both = k & (USE_INT | USE_SIZE | USE_ROUNDS);
    if (n->sub == OS_AND || n->sub == OS_OR)
        both |= k & USE_BOOL;
    if (both && n->sub != OS_DIV) {
        bool part = both & USE_SIZE && n->sub == OS_FLOORDIV; /* of a tile: a small one */
        use_need(w, n->a, at, both);
        use_need(w, n->b, at, part ? USE_INT | USE_STAGES : both);
    }
}

static const struct {
    const char *name;
    int from, to;
} through[] = {
    {"multiple_of", 0, 0}, {"max_contiguous", 0, 0}, {"max_constancy", 0, 0},
    {"broadcast_to", 0, 0}, {"expand_dims", 0, 0}, {"to", 0, 0}, {"cast", 0, 0},
    {"reshape", 0, 0}, {"view", 0, 0}, {"trans", 0, 0}, {"sum", 0, 0}, {"max", 0, 1},
    {"min", 0, 1}, {"abs", 0, 0}, {"constexpr", 0, 0}, {"cdiv", 0, 1},
    {"minimum", 0, 1}, {"maximum", 0, 1}, {"full", 1, 1}, {"where", 1, 2},
    {"cumsum", 0, 0}, {"cumprod", 0, 0}, {"flip", 0, 0}, {"sort", 0, 0},
    {"ravel", 0, 0}, {"gather", 0, 0}, {"permute", 0, 0}, {"squeeze", 0, 0},
    {"unsqueeze", 0, 0},
};

bool
use_through(const char *name, int i)
{
    for (int k = 0; k < COUNT_OF(through); k++)
        if (strcmp(name, through[k].name) == 0)
            return i >= through[k].from && i <= through[k].to;
    return true;
}

static void
want_call(Walk *w, const Node *n, Inst *at, unsigned k)
{
    Inst *in = map_get(&at->calls, n);
    if (in) {
        use_want(w, in->ret, k);
        return;
    }
    const Node *f = n->a;
    const char *name = f->name ? f->name : "";
    bool method = f->kind == ND_ATTRIBUTE && !use_global(w, f, at);
    const Node *first = method ? f->a : n->list.n ? n->list.at[0] : NULL;
    if (!first)
        return;
    if (strcmp(name, "load") == 0 || strncmp(name, "atomic_", 7) == 0) {
        Seen v = use_see(w, first, at);
        if (v.to)
            use_want(w, v.to, k);
        return;
    }
    bool convert = strcmp(name, "to") == 0 || strcmp(name, "cast") == 0;
    const Node *as = convert && n->list.n > !method ? n->list.at[!method] : NULL;
    if (as && as->kind == ND_ATTRIBUTE && strcmp(as->name, "dtype") == 0)
        use_need(w, as->a, at, k & USE_PTR); /* an address as one of x's type */
    Val wide = as && w->phase == IS_SURE ? use_global(w, as, at) : NULL;
    if (wide && wide->kind == FE_DTYPE && dtype_is_int(wide->dt) &&
        dtype_bits(wide->dt) == 64)
        return; /* an address may be, too */
    unsigned down = k & (USE_INT | USE_SIZE | USE_ROUNDS |
                         (convert ? 0u : USE_PTR | USE_BYTE | USE_HALF));
    for (int i = 0; i < COUNT_OF(through); i++) {
        if (strcmp(name, through[i].name) != 0)
            continue;
        if (through[i].from == 0)
            use_need(w, first, at, down);
        int from = through[i].from < 1 ? 1 - method : through[i].from - method;
        for (int a = from; a < n->list.n && a <= through[i].to - method; a++)
            use_need(w, n->list.at[a], at, down);
    }
}

void
use_need(Walk *w, const Node *n, Inst *at, unsigned k)
{
    if (!n || !k || !use_step(w))
        return;
    w->depth++;
    switch ((int)n->kind) {
    case ND_NAME: {
        Evidence *u = use_name(w, at, n->name, false);
        if (u)
            use_want(w, u, k);
        break;
    }
    case ND_BINOP: want_binop(w, n, at, k); break;
    case ND_UNARYOP: use_need(w, n->a, at, k & ~(unsigned)USE_PTR); break;
    case ND_IFEXP:
        use_need(w, n->b, at, k);
        use_need(w, n->c, at, k);
        break;
    case ND_SUBSCRIPT: use_need(w, n->a, at, k & ~(unsigned)USE_SIZE); break;
    case ND_TUPLE:
    case ND_LIST:
        for (int i = 0; i < n->list.n; i++)
            use_need(w, n->list.at[i], at, k);
        break;
    case ND_CALL: want_call(w, n, at, k); break;
    default: break;
    }
    w->depth--;
}

/* ---- what expressions are */

static Seen
seen_value(Val v)
{
    switch (v ? (int)v->kind : -1) {
    case FE_INT: return (Seen){.is = USE_INT};
    case FE_BOOL: return (Seen){.is = USE_BOOL};
    case FE_FLOAT: return (Seen){.is = USE_FLOAT};
    case FE_DTYPE: return (Seen){.is = USE_DTYPE};
    default: return (Seen){0};
    }
}

static Seen
see_binop(Walk *w, const Node *n, Inst *at)
{
    Seen a = use_see(w, n->a, at), b = use_see(w, n->b, at);
    a.is &= ~(unsigned)USE_CONST;
    b.is &= ~(unsigned)USE_CONST;
    unsigned both = a.is | b.is;
    switch ((int)n->sub) {
    case OS_ADD:
    case OS_SUB:
        if (both & USE_PTR) {
            bool left = a.is & USE_PTR;
            if (!(a.is & b.is & USE_PTR))
                use_need(w, left ? n->b : n->a, at, USE_INT);
            return left ? a : b;
        }
        /* fall through */
    case OS_MUL:
        if (both & USE_FLOAT) {
            use_need(w, a.is ? n->b : n->a, at, a.is && b.is ? 0 : USE_FLOAT);
            return (Seen){.is = USE_FLOAT};
        }
        if (n->sub == OS_MUL && both & USE_INT)
            use_need(w, a.is ? n->b : n->a, at, USE_INT);
        return (Seen){.is = n->sub == OS_MUL || (a.is && b.is) ? both & USE_INT : 0};
    case OS_DIV: /* by an integer, too */
        if (both & USE_FLOAT && w->phase >= FLOAT_ELEMENTS)
            use_need(w, a.is ? n->b : n->a, at, a.is && b.is ? 0 : USE_FLOAT);
        return (Seen){.is = USE_FLOAT};
    case OS_POW: return (Seen){.is = both & USE_FLOAT};
    case OS_AND:
    case OS_OR:
        if (both & USE_BOOL)
            return (Seen){.is = USE_BOOL};
        /* fall through */
    case OS_FLOORDIV:
    case OS_MOD:
    case OS_XOR:
    case OS_SHL:
    case OS_SHR:
        use_need(w, n->a, at, USE_INT);
        use_need(w, n->b, at, USE_INT);
        return (Seen){.is = USE_INT};
    default: return (Seen){0};
    }
}

/* A parameter is compared with a literal: one of the values that it has. */
static void
note_literal(Walk *w, const Node *n, const Node *literal, Inst *at)
{
    Evidence *u = n->kind == ND_NAME ? use_name(w, at, n->name, false) : NULL;
    while (u && u->defs && !u->defs->next && u->defs->e &&
           u->defs->e->kind == ND_NAME && !u->param)
        u = use_name(w, u->defs->at, u->defs->e->name, false);
    const char *text = u ? node_str(literal) : NULL;
    Val v = u && literal->kind != ND_CONSTANT ? use_global(w, literal, at) : NULL;
    if (v && v->kind == FE_INT && !u->has_number) { /* MODE == NONE */
        u->has_number = true;
        u->number = (int64_t)v->u.i;
    }
    if (!u || literal->kind != ND_CONSTANT)
        return;
    if (text && !u->text)
        u->text = text;
    if (literal->sub == CK_INT && !u->has_number) {
        u->has_number = true;
        u->number = (int64_t)literal->v.u;
    }
    if (literal->sub == CK_TRUE || literal->sub == CK_FALSE)
        use_want(w, u, USE_BOOL);
}

/* What an assertion that holds says of names in it. */
void
use_assert(Walk *w, const Node *n, Inst *at, bool holds)
{
    Evidence *u = NULL;
    switch ((int)n->kind) {
    case ND_NAME:
        u = use_name(w, at, n->name, false);
        if (u && u->param) {
            u->must = true;
            u->flag = holds;
            use_want(w, u, USE_BOOL);
        }
        break;
    case ND_UNARYOP:
        if (n->sub == OS_NOT)
            use_assert(w, n->a, at, !holds);
        break;
    case ND_BOOLOP: /* of several that may be false, the last one is */
        if (n->sub == OS_LOR && holds && n->list.at[0]->kind == ND_COMPARE)
            use_same_type(w, n->list.at[0], at); /* of several types the first */
        for (int i = 0; i < n->list.n; i++)
            if ((n->sub == OS_LAND) == holds || i == n->list.n - 1)
                use_assert(w, n->list.at[i], at, holds);
        break;
    case ND_COMPARE:
        if (!holds || n->list.n != 1 || n->signs[0] != OS_EQ)
            break;
        use_same_type(w, n, at);
        if (n->a->kind != ND_NAME)
            break;
        u = use_name(w, at, n->a->name, false);
        if (u && u->param && n->list.at[0]->kind == ND_CONSTANT &&
            n->list.at[0]->sub == CK_INT) {
            u->must = u->has_number = true;
            u->number = (int64_t)n->list.at[0]->v.u;
        }
        break;
    default: break;
    }
}

static Seen
see_compare(Walk *w, const Node *n, Inst *at)
{
    const Node *left = n->a;
    for (int i = 0; i < n->list.n; i++) {
        const Node *right = n->list.at[i];
        Seen a = use_see(w, left, at), b = use_see(w, right, at);
        bool orders = n->signs[i] >= OS_LT && n->signs[i] <= OS_GE;
        if (n->signs[i] == OS_IN)
            for (int k = 0; k < right->list.n; k++)
                note_literal(w, left, right->list.at[k], at);
        bool is = n->signs[i] == OS_IS || n->signs[i] == OS_IS_NOT;
        if (is && right->kind == ND_CONSTANT && right->sub == CK_NONE &&
            left->kind == ND_NAME && use_name(w, at, left->name, false))
            use_name(w, at, left->name, false)->none = true;
        if (n->signs[i] == OS_EQ || n->signs[i] == OS_NE) {
            note_literal(w, left, right, at);
            note_literal(w, right, left, at);
        }
        if (left->kind != ND_CONSTANT && right->kind != ND_CONSTANT) {
            if (a.is & USE_INT && !b.is)
                use_need(w, right, at, USE_INT);
            if (b.is & USE_INT && !a.is)
                use_need(w, left, at, USE_INT);
            if ((a.is | b.is) == USE_FLOAT && !(a.is & b.is) &&
                w->phase >= FLOAT_ELEMENTS)
                use_need(w, a.is ? right : left, at, USE_FLOAT);
        } else if (orders) {
            const Node *k = left->kind == ND_CONSTANT ? left : right;
            use_need(w, k == left ? right : left, at,
                 k->sub == CK_FLOAT ? USE_FLOAT : k->sub == CK_INT ? USE_INT : 0);
        }
        left = right;
    }
    return (Seen){.is = USE_BOOL};
}

/* The kernel's parameter that a helper's one is, handed on by name; or what it is. */
static Evidence *
handed_on(Walk *w, Evidence *u)
{
    enum { MAX_HELPERS = 12 };
    for (int i = 0; i < MAX_HELPERS && u && !u->param; i++) {
        const EvidenceDef *d = u->defs;
        if (!d || !d->e || d->e->kind != ND_NAME)
            return u;
        u = use_name(w, d->at, d->e->name, false);
    }
    return u;
}

static Seen
see_subscript(Walk *w, const Node *n, Inst *at)
{
    Seen v = use_see(w, n->a, at);
    const Node *i = n->b;
    bool number = i->kind == ND_CONSTANT && i->sub == CK_INT;
    if (v.tuple && number && i->v.u < (uint64_t)v.tuple->list.n)
        return use_see(w, v.tuple->list.at[i->v.u], v.at);
    Evidence *u = n->a->kind == ND_NAME
                      ? handed_on(w, use_name(w, at, n->a->name, false))
                      : NULL;
    bool counts = i->kind == ND_NAME || i->kind == ND_BINOP; /* tensors take no numbers */
    bool open = !(v.is & ~(unsigned)USE_CONST);
    if (u && u->param && (number || counts) && (open || u->want & USE_TUPLE)) {
        enum { UNSAID = 4, MOST = 16 };
        int items = !number ? UNSAID : i->v.u < MOST ? (int)i->v.u + 1 : 0;
        use_want(w, u, USE_TUPLE);
        u->items = items > u->items ? items : u->items;
    }
    use_see(w, i, at);
    return (Seen){.is = v.is, .to = v.to};
}

static Seen
see_attribute(Walk *w, const Node *n, Inst *at)
{
    if (n->a->kind == ND_ATTRIBUTE && strcmp(n->name, "element_ty") == 0) {
        const Node *base = n->a->a;
        Evidence *u = base->kind == ND_NAME ? use_name(w, at, base->name, false) : NULL;
        if (u && !u->param && strcmp(n->a->name, "type") == 0) /* a tile has it, too */
            u = NULL;
        if (u && !(use_seen(u).is & (USE_DESC | USE_INT)) && !(u->want & USE_DESC))
            use_want(w, u, USE_PTR);
        return (Seen){.is = USE_DTYPE};
    }
    Val v = use_global(w, n, at);
    if (v)
        return seen_value(v);
    Seen base = use_see(w, n->a, at);
    if (strcmp(n->name, "dtype") == 0)
        return (Seen){.is = USE_DTYPE};
    return strcmp(n->name, "T") == 0 ? base : (Seen){0};
}

static Seen
see_constant(const Node *n)
{
    switch ((ConstantKind)n->sub) {
    case CK_FLOAT: return (Seen){.is = USE_FLOAT};
    case CK_TRUE:
    case CK_FALSE: return (Seen){.is = USE_BOOL};
    default: return (Seen){0}; /* an integer goes with anything */
    }
}

static Seen
see_inner(Walk *w, const Node *n, Inst *at)
{
    switch ((int)n->kind) {
    case ND_NAME: {
        const Evidence *u = use_name(w, at, n->name, false);
        Seen v = u ? use_seen(u) : seen_value(use_global(w, n, at));
        if (u && u->defs && !u->defs->next && u->defs->e &&
            (u->defs->e->kind == ND_TUPLE || u->defs->e->kind == ND_LIST)) {
            v.tuple = u->defs->e;
            v.at = u->defs->at;
        }
        return v;
    }
    case ND_CONSTANT: return see_constant(n);
    case ND_ATTRIBUTE: return see_attribute(w, n, at);
    case ND_BINOP: return see_binop(w, n, at);
    case ND_COMPARE: return see_compare(w, n, at);
    case ND_SUBSCRIPT: return see_subscript(w, n, at);
    case ND_CALL: return use_call(w, n, at);
    case ND_UNARYOP: {
        Seen v = use_see(w, n->a, at);
        if (n->sub != OS_NOT)
            return v;
        use_need(w, n->a, at, USE_BOOL);
        return (Seen){.is = USE_BOOL};
    }
    case ND_BOOLOP:
        for (int i = 0; i < n->list.n; i++) {
            use_see(w, n->list.at[i], at);
            use_need(w, n->list.at[i], at, USE_BOOL);
        }
        return (Seen){.is = USE_BOOL};
    case ND_IFEXP:
        use_see(w, n->a, at);
        use_need(w, n->a, at, USE_BOOL);
        return use_join(use_see(w, n->b, at), use_see(w, n->c, at));
    case ND_TUPLE:
    case ND_LIST:
        for (int i = 0; i < n->list.n; i++)
            use_see(w, n->list.at[i], at);
        return (Seen){.tuple = n, .at = at};
    case ND_NAMED_EXPR: return use_see(w, n->a, at);
    default: return (Seen){0};
    }
}

Seen
use_see(Walk *w, const Node *n, Inst *at)
{
    if (!n || !use_step(w))
        return (Seen){0};
    w->depth++;
    Seen v = see_inner(w, n, at);
    w->depth--;
    return v;
}
