/* Signatures for `sdc check`: what annotations, defaults, configurations and heuristics
   leave open is guessed by what the kernel does with each parameter (use.h). How wide the
   elements are, whether a flag is set and how large a tile is, no use says: there are a
   few guesses, the likeliest first, which are those that host code names (told.h). At
   last one parameter after the other is taken to be what it does not seem to be: a name
   that is bound to integers and then to floats, or a pointer whose name becomes a tile,
   is both to use.h, and a constant may be a number of a few that only its tests know. */
#include "frontend/module.h"
#include "frontend/spec.h"
#include "frontend/told.h"
#include "frontend/use.h"
#include "ir/base/util.h"

#include <stdlib.h>
#include <string.h>

/* What nothing in the text decides. */
typedef struct Variant {
    const char *element, *integer; /* behind pointers */
    bool flag;
    int size;
    bool none; /* in the place of what may be None */
} Variant;

static const Variant variants[] = {
    {"fp32", "i32", true, 64, false},  {"fp16", "i32", true, 64, false},
    {"fp32", "i32", false, 64, false}, {"fp16", "i32", false, 64, false},
    {"fp32", "i64", true, 64, false},  {"fp16", "i64", true, 64, false},
    {"fp32", "i64", false, 64, false}, {"fp32", "i32", true, 16, false},
    {"fp32", "i32", false, 16, false}, {"bf16", "i32", true, 64, false},
    {"fp32", "i32", true, 128, false}, {"i32", "i32", true, 64, false},
    {"i32", "i32", false, 64, false},  {"i8", "i32", true, 64, false},
    {"i8", "i32", false, 64, false},   {"fp64", "i32", true, 64, false},
    {"fp32", "i32", true, 64, true},   {"fp32", "i32", false, 64, true},
};

typedef struct Guesser {
    FrontModule *m;
    const Node *fn;
    Evidence **use;
    const FrontSpec *spec;
    bool *serves; /* the default of a parameter */
    const char **told; /* constants that the host names; NULL: it does not */
    bool as_told;
    bool shares; /* a dimension beside numbers makes up a tile with them */
    const Variant *v;
    const Evidence *odd;  /* the parameter that is not what it seems to be */
    const char *odd_text; /* but of these elements, or this constant */
} Guesser;

static bool
gives_value(const NodeList *l)
{
    for (int i = 0; i < l->n; i++) {
        const Node *n = l->at[i];
        if (n->kind == ND_RETURN && n->a)
            return true;
        for (int k = 0; n->kind == ND_IF && k < n->list.n; k++)
            if (gives_value(&n->list.at[k]->body))
                return true;
        if (gives_value(&n->body) || gives_value(&n->orelse))
            return true;
    }
    return false;
}

/* A helper of the file that can be called with so many arguments. */
static const char *
any_function(const FrontModule *m, int nargs)
{
    const Node *fn;
    for (int i = 0; (fn = module_own_function(m, i)) != NULL; i++)
        if (fn->list.n == nargs && gives_value(&fn->body))
            return fn->name;
    return NULL;
}

static const char *
element_text(const Guesser *g, const Evidence *to)
{
    unsigned k = to ? to->want : 0;
    if (to && to->typed)
        return dtype_info[to->type].sig;
    if (k & (USE_ADDRESS | USE_PTR))
        return "i64";
    if (k & (USE_BYTE | USE_HALF))
        return k & USE_BYTE ? "i8" : "i16";
    if (k & USE_INT && k & USE_BOOL && !g->v->flag)
        return "i1";
    bool floats = to && (to->is & USE_FLOAT || (k & USE_FLOAT && !g->v->flag));
    if (k & USE_INT && !floats)
        return g->v->integer;
    return k & USE_BOOL && !floats ? "i1" : g->v->element;
}

static const char *
tuple_text(const Guesser *g, Arena *a, const Evidence *u)
{
    const char *item = "i32";
    if (u->constexpr_)
        item = arena_printf(a, "%d", g->v->size);
    else if (u->want & USE_PTR)
        item = arena_printf(a, "*%s", element_text(g, u->to));
    Buf b;
    buf_init(&b, a);
    for (int i = 0; i < u->items; i++)
        buf_printf(&b, "%s%s", i ? "," : "(", item);
    buf_str(&b, u->items == 1 ? ",)" : ")");
    return b.s;
}

/* NULL: nothing can be said. */
static const char *
constant_text(const Guesser *g, Arena *a, const Evidence *u)
{
    unsigned k = u->want;
    const char *flag = g->v->flag ? "True" : "False";
    if (u->must)
        return u->has_number ? arena_printf(a, "%lld", (long long)u->number)
               : u->flag     ? "True"
                             : "False";
    if (u->text)
        return arena_printf(a, "'%s'", u->text);
    if (u->none && g->v->none)
        return "None";
    if (k & USE_FUNC) {
        const char *fn = any_function(g->m, u->nargs);
        return fn ? fn : u->none || !g->v->flag ? "None" : NULL;
    }
    if (k & USE_TUPLE && u->items)
        return tuple_text(g, a, u);
    if (k & USE_DTYPE)
        return g->v->element;
    if (k & USE_SIZE && k & USE_ROUNDS && g->v->size == variants->size)
        return "4"; /* each round is code */
    if (k & USE_SIZE && g->shares && u->share && u->share < g->v->size)
        return arena_printf(a, "%d", g->v->size / (int)u->share);
    if (k & USE_SIZE)
        return arena_printf(a, "%d", g->v->size);
    if (k & USE_STAGES)
        return "2";
    if (k & USE_AXIS)
        return "0";
    if (k & USE_TEXT)
        return "None";
    if (u->has_number)
        return arena_printf(a, "%lld", (long long)u->number);
    if (k & USE_ROUNDS)
        return "4";
    if (k & USE_FLOAT && !(k & USE_INT))
        return "1.0";
    if (k & USE_BOOL && !(k & USE_INT))
        return flag;
    return arena_printf(a, "%d", g->v->size);
}

/* The constant that a launch gives to this parameter, or that is guessed; 0: none. */
static int64_t
extent_number(const Guesser *g, Arena *a, const Evidence *u)
{
    for (int i = 0; u && i < g->fn->list.n; i++) {
        if (g->use[i] != u)
            continue;
        const SpecArg *known = &g->spec->args[i];
        const char *text = known->kind == SPEC_UNSET ? constant_text(g, a, u) : NULL;
        return known->kind == SPEC_INT ? known->i : text ? strtoll(text, NULL, 10) : 0;
    }
    return 0;
}

static const char *
desc_text(const Guesser *g, Arena *a, const Evidence *u)
{
    Buf b;
    int rank = u->rank ? u->rank : 2;
    buf_init(&b, a);
    buf_printf(&b, "tensordesc<%s[", g->v->element);
    for (int i = 0; i < rank; i++) { /* at most the leading ones are of size 1 */
        int64_t n = i < MAX_EXTENTS ? extent_number(g, a, u->extent[i]) : 0;
        n = n > 0 ? n : rank > 2 && i < rank - 2 ? 1 : g->v->size;
        n /= u == g->odd && i == rank - 1 && n > 1 ? 2 : 1; /* halves of a tile */
        buf_printf(&b, "%s%lld", i ? "," : "", (long long)n);
    }
    buf_str(&b, "]>");
    return b.s;
}

static const char *
type_text(const Guesser *g, Arena *a, const Evidence *u)
{
    unsigned k = u->want;
    if (k & USE_ADDRESS && !(k & USE_PTR)) /* a pointer can be converted as well */
        return "i64";
    if (u->none && g->v->none)
        return "None";
    if (u->must && u->has_number && k & (USE_INT | USE_SIZE))
        return arena_printf(a, "%lld", (long long)u->number);
    if (k & USE_TUPLE && u->items)
        return tuple_text(g, a, u);
    if (k & USE_PTR)
        return arena_printf(a, "*%s", g->odd == u ? g->odd_text : element_text(g, u->to));
    if (k & USE_DESC)
        return desc_text(g, a, u);
    if (k & USE_FLOAT && !g->v->flag && !(k & USE_SIZE))
        return "fp32";
    if (k & (USE_INT | USE_SIZE | USE_ROUNDS))
        return "i32";
    if (k & USE_FLOAT)
        return "fp32";
    return k & USE_BOOL ? "i1" : "i32";
}

/* A default is what a launch gives that says nothing; but None in the place of a pointer
   is what it gives when there is no such tensor, and some only Python could evaluate. */
static bool
default_serves(Sema *s, const Node *p, const Evidence *u)
{
    bool none = p->b && p->b->kind == ND_CONSTANT && p->b->sub == CK_NONE;
    if (!p->b || (none && u->want & (USE_PTR | USE_DESC)))
        return false;
    Diag before = s->s->diag;
    s->host++;
    bool known = !val_is_error(eval(s, p->b));
    s->host--;
    diag_rewind(&s->s->diag, &before);
    return known;
}

static void
guess(const Guesser *g, Arena *a, Buf *out)
{
    for (int i = 0; i < g->fn->list.n; i++) {
        const Node *p = g->fn->list.at[i];
        const Evidence *u = g->use[i];
        if (g->spec->args[i].kind != SPEC_UNSET || g->serves[i])
            continue;
        bool told = g->as_told && g->told[i] && u->constexpr_ && !u->must;
        const char *text = told             ? g->told[i]
                           : u->constexpr_ ? constant_text(g, a, u)
                                           : type_text(g, a, u);
        if (u == g->odd && u->constexpr_ && !u->must)
            text = text && *text >= '0' && *text <= '9' ? g->odd_text : text;
        else if (u == g->odd && text && strcmp(text, "i32") == 0)
            text = g->odd_text;
        if (text)
            buf_printf(out, "%s%s=%s", out->n ? "," : "", p->name, text);
    }
}

/* Of a kernel with many parameters that nothing suits not all can be tried: each costs
   what the kernel does. */
enum { MOST_GUESSES = 512 };

/* One more text, unless it is among them. */
static void
add_guess(Guesser *g, Session *s, const char *signature, FrontGuess *out)
{
    Buf b;
    buf_init(&b, &s->perm);
    buf_str(&b, signature ? signature : "");
    guess(g, &s->tmp, &b);
    bool known = out->n == MOST_GUESSES;
    for (int k = 0; k < out->n && !known; k++)
        known = strcmp(out->signature[k], b.s) == 0;
    if (!known)
        out->signature[out->n++] = b.s;
}

static void
add_guesses(Guesser *g, Session *s, const char *signature, FrontGuess *out)
{
    static const Variant bases[] = {{"fp32", "i32", true, 64, false},
                                    {"fp16", "i32", true, 64, false},
                                    {"fp16", "i32", false, 64, false},
                                    {"i8", "i32", true, 64, false}};
    static const struct {
        bool constant;
        const char *text;
    } odd[] = {{false, "fp32"}, {false, "fp16"}, {false, "i32"}, {false, "fp8e4nv"},
               {false, "*fp32"}, {true, "3"},    {true, "1"},    {true, "32"},
               {true, "256"}};
    int n = g->fn->list.n;
    out->signature = arena_array(&s->perm, const char *, MOST_GUESSES);
    for (int i = 0; i < 4 * COUNT_OF(variants); i++) {
        g->as_told = i / COUNT_OF(variants) % 2 == 0;
        g->shares = i >= 2 * COUNT_OF(variants);
        g->v = &variants[i % COUNT_OF(variants)];
        add_guess(g, s, signature, out);
    }
    g->as_told = true;
    g->shares = false;
    out->likely = out->n;
    for (int i = 0; i < COUNT_OF(bases) * COUNT_OF(odd); i++)
        for (int k = 0; k < n; k++) {
            g->v = &bases[i / COUNT_OF(odd)];
            g->odd = g->use[k];
            g->odd_text = odd[i % COUNT_OF(odd)].text;
            bool small = g->odd->want & USE_SIZE && strlen(g->odd_text) == 1;
            /* the name of a pointer that something else is bound to later */
            bool pointer = *g->odd_text == '*';
            if (pointer && (g->odd->want & USE_PTR || !g->odd->defs))
                continue;
            if (g->odd->constexpr_ == odd[i % COUNT_OF(odd)].constant && !small)
                add_guess(g, s, signature, out);
        }
}

bool
front_guess(FrontModule *m, const char *kernel, const char *signature,
            const char *const *overrides, int noverride, Map *called, FrontGuess *out)
{
    Session *s = module_session(m);
    const Node *fn = module_kernel(m, kernel);
    *out = (FrontGuess){0};
    if (!fn)
        return false;
    ArenaMark mark = arena_mark(&s->tmp);
    Sema sema;
    Frame host;
    FrontSpec spec;
    SpecText text = {signature, overrides, noverride};
    sema_init(&sema, m, &host);
    bool ok = spec_read(&sema, fn, &text, false, &spec);
    Guesser g = {.m = m, .fn = fn, .spec = &spec};
    if (ok) {
        g.use = use_collect(&sema, fn, module_home(m, fn), &spec, called);
        g.serves = arena_array(&s->tmp, bool, fn->list.n + 1);
        g.told = arena_array(&s->tmp, const char *, fn->list.n + 1);
        sema.frame->module = module_home(m, fn);
        for (int i = 0; i < fn->list.n; i++) {
            g.serves[i] = default_serves(&sema, fn->list.at[i], g.use[i]);
            g.told[i] = told_constant(m, &s->tmp, fn->name, fn->list.at[i]->name, i);
        }
    }
    if (ok)
        add_guesses(&g, s, signature, out);
    arena_reset(&s->tmp, mark);
    return ok;
}
