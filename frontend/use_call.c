/* Evidence from calls: what builtins want of their arguments, helpers walked with theirs,
   methods of values. */
#include "frontend/use_walk.h"

#include "ir/base/util.h"

#include <string.h>

/* What a parameter of a builtin wants; "fn.param" before "param". */
static const struct {
    const char *what;
    unsigned want;
} wants[] = {
    {"pointer", USE_PTR},       {"mask", USE_BOOL},
    {"condition", USE_BOOL},
    {"make_block_ptr.base", USE_PTR},
    {"make_tensor_descriptor.base", USE_PTR},
    {"_experimental_make_tensor_descriptor.base", USE_PTR},
    {"make_block_ptr.shape", USE_INT},
    {"make_tensor_descriptor.shape", USE_INT},
    {"_experimental_make_tensor_descriptor.shape", USE_INT},
    {"strides", USE_INT},       {"offsets", USE_INT},
    {"block_shape", USE_SIZE},  {"shape", USE_SIZE},
    {"arange.start", USE_INT},  {"end", USE_SIZE},
    {"dtype", USE_DTYPE},       {"out_dtype", USE_DTYPE},
    {"element_ty", USE_DTYPE},
    {"seed", USE_INT},          {"offset", USE_INT},
    {"cdiv.x", USE_INT},        {"div", USE_INT},
    {"axis", USE_AXIS},         {"dim", USE_AXIS},
    {"num_stages", USE_STAGES}, {"loop_unroll_factor", USE_STAGES},
    {"sem", USE_TEXT},          {"scope", USE_TEXT},
    {"cache_modifier", USE_TEXT},   {"eviction_policy", USE_TEXT},
    {"padding_option", USE_TEXT},   {"input_precision", USE_TEXT},
    {"allow_tf32", USE_BOOL},   {"warp_specialize", USE_BOOL},
    {"disallow_acc_multi_buffer", USE_BOOL},
    {"flatten", USE_BOOL},      {"static_range.arg1", USE_ROUNDS},
    {"static_range.arg2", USE_ROUNDS},
    {"arg1", USE_INT},          {"arg2", USE_INT},
    {"step", USE_INT},          {"n_rounds", USE_INT},
};

static unsigned
param_wants(const char *fn, const char *param, int n)
{
    size_t nf = strlen(fn);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < COUNT_OF(wants); i++) {
            const char *what = wants[i].what, *dot = strchr(what, '.');
            if ((dot != NULL) != (pass == 0))
                continue;
            if (dot && (nf != (size_t)(dot - what) || memcmp(fn, what, nf) != 0))
                continue;
            const char *p = dot ? dot + 1 : what;
            if (strlen(p) == (size_t)n && memcmp(p, param, (size_t)n) == 0)
                return wants[i].want;
        }
    return 0;
}

/* The i-th name of "x, axis=None, *rest"; the last one again for a '*'. */
static const char *
nth_param(const char *params, int i, int *n)
{
    const char *p = params ? params : "";
    for (; *p; i--) {
        bool rest = *p == '*';
        p += rest;
        *n = (int)strcspn(p, ",= ");
        if (!i || rest)
            return p;
        int depth = 0;
        while (*p && (*p != ',' || depth)) {
            depth += *p == '(';
            depth -= *p == ')';
            p++;
        }
        p += *p == ',';
        p += strspn(p, " ");
    }
    *n = 0;
    return "";
}

static unsigned
result_of(const char *name, const Builtin *b)
{
    static const char *const ints[] = {"program_id", "num_programs", "arange", "cdiv",
                                       "argmax", "argmin", "randint", "histogram",
                                       "next_power_of_2", "numel"};
    static const char *const floats[] = {"dot", "rand", "randn", "softmax", "sigmoid",
                                         "fdiv", "div_rn", "dot_scaled"};
    for (int i = 0; i < COUNT_OF(ints); i++)
        if (strcmp(name, ints[i]) == 0)
            return USE_INT;
    for (int i = 0; i < COUNT_OF(floats); i++)
        if (strcmp(name, floats[i]) == 0)
            return USE_FLOAT;
    bool any = strcmp(name, "abs") == 0 || strcmp(name, "cdiv") == 0;
    return b->where & (IN_MATH | IN_LIB) && !any ? USE_FLOAT : 0;
}

/* exp(x), but not abs(x). */
static bool
wants_float(const Builtin *b)
{
    return result_of(b->name, b) == USE_FLOAT && b->where & IN_MATH;
}

/* What is stored is what the elements are. */
static void
note_stored(Walk *w, const Node *n, const Node *pointer, int nself, Inst *at)
{
    const Node *value = 1 - nself < n->list.n ? n->list.at[1 - nself] : NULL;
    Seen p = use_see(w, pointer, at);
    if (p.to && value && use_see(w, value, at).is == USE_FLOAT)
        use_define(w, p.to, NULL, at, (Seen){.is = USE_FLOAT});
}

static Seen
see_load(Walk *w, const Node *pointer, Inst *at)
{
    Seen p = use_see(w, pointer, at);
    if (!p.to)
        return (Seen){.is = p.is & USE_DESC ? USE_FLOAT : 0};
    Seen v = {.is = p.to->is, .to = p.to->to};
    v.is |= p.to->want & (USE_INT | USE_BOOL | USE_PTR);
    if (p.to->want & USE_ADDRESS)
        v.is = USE_PTR;
    if (w->phase == FLOAT_ELEMENTS && !v.is)
        v.is = USE_FLOAT;
    return v;
}

/* Parameters of a function; those of the language are texts of their own. */
static const char *
params_of(const Builtin *b)
{
    static const char *const prelude[][2] = {
        {"rand", "seed, offset, n_rounds"},     {"randint", "seed, offset, n_rounds"},
        {"randn", "seed, offset, n_rounds"},    {"rand4x", "seed, offset, n_rounds"},
        {"randint4x", "seed, offset, n_rounds"}, {"sum", "input, axis"},
        {"max", "input, axis"},                 {"min", "input, axis"},
        {"argmax", "input, axis"},              {"argmin", "input, axis"},
        {"cumsum", "input, axis"},              {"cumprod", "input, axis"},
        {"swizzle2d", "arg1, arg1, arg1, arg1, arg1"},
    };
    for (int i = 0; b->file && i < COUNT_OF(prelude); i++)
        if (strcmp(b->name, prelude[i][0]) == 0)
            return prelude[i][1];
    return b->params ? b->params : "";
}

/* The elements of an argument that is a tuple or a list; NULL: it is something else. */
static const NodeList *
elements_of(const Node *n, int place, const char *name)
{
    const Node *e = place < n->list.n ? n->list.at[place] : NULL;
    for (int i = 0; i < n->more.n; i++)
        if (n->more.at[i]->name && strcmp(n->more.at[i]->name, name) == 0)
            e = n->more.at[i]->a;
    bool is = e && (e->kind == ND_LIST || e->kind == ND_TUPLE) && e->list.n;
    return is ? &e->list : NULL;
}

/* The parameter that an expression is; NULL: it is something else. */
static Evidence *
param_of(Walk *w, const Node *e, Inst *at)
{
    Evidence *u = e->kind == ND_NAME ? use_name(w, at, e->name, false) : NULL;
    while (u && !u->param && u->defs && !u->defs->next && u->defs->e &&
           u->defs->e->kind == ND_NAME)
        u = use_name(w, u->defs->at, u->defs->e->name, false);
    return u && u->param ? u : NULL;
}

/* That must be this number. */
static void
note_number(Walk *w, const Node *e, Inst *at, int64_t number)
{
    Evidence *u = param_of(w, e, at);
    if (u) {
        u->must = u->has_number = true;
        u->number = number;
    }
}

/* The last stride of a descriptor is the constant 1. */
static void
note_last_stride(Walk *w, const Node *n, int nself, Inst *at)
{
    const NodeList *l = elements_of(n, 2 - nself, "strides");
    if (l)
        note_number(w, l->at[l->n - 1], at, 1);
}

/* The order of a block is a permutation: the last dimension first, most often. */
static void
note_order(Walk *w, const Node *n, int nself, Inst *at)
{
    const NodeList *l = elements_of(n, 5 - nself, "order");
    for (int i = 0; l && i < l->n; i++)
        note_number(w, l->at[i], at, l->n - 1 - i);
}

/* reshape(x, [GROUPS, 32]): of a tile's elements the parameter is a part. */
static void
note_share(Walk *w, const Node *n, int nself, Inst *at)
{
    const NodeList *l = elements_of(n, 1 - nself, "shape");
    int first = l ? 0 : 1 - nself;
    int64_t others = 1;
    Evidence *share = NULL;
    for (int i = first; i < (l ? l : &n->list)->n; i++) {
        const Node *e = (l ? l : &n->list)->at[i];
        if (e->kind == ND_CONSTANT && e->sub == CK_INT && !e->big && e->v.u < 1024 &&
            others < 1024)
            others *= (int64_t)e->v.u;
        else if (share || !(share = param_of(w, e, at)) || !share->constexpr_)
            return;
    }
    if (share && others > 1)
        share->share = others;
}

static bool
is_bitcast(const Node *n)
{
    for (int i = 0; i < n->more.n; i++) {
        const Node *named = n->more.at[i];
        if (named->name && strcmp(named->name, "bitcast") == 0)
            return named->a->kind == ND_CONSTANT && named->a->sub == CK_TRUE;
    }
    return false;
}

static unsigned
bits_of(Walk *w, const Node *dtype, Inst *at)
{
    Val v = use_global(w, dtype, at);
    int bits = v && v->kind == FE_DTYPE && !dtype_is_ptr(v->dt) ? dtype_bits(v->dt) : 0;
    return bits == 8 ? USE_BYTE : bits == 16 ? USE_HALF : 0;
}

/* d.load(where, ..) and load_tensor_descriptor(d, where): d is a descriptor, of as many
   dimensions as there are offsets. */
static void
note_block(Walk *w, const Node *d, const Node *where, Inst *at)
{
    Evidence *u = use_name(w, at, d->name, false);
    while (u->defs && !u->defs->next && u->defs->e && u->defs->e->kind == ND_NAME &&
           use_name(w, u->defs->at, u->defs->e->name, false))
        u = use_name(w, u->defs->at, u->defs->e->name, false);
    if (where->kind == ND_LIST || where->kind == ND_TUPLE) {
        u->rank = where->list.n;
        use_extents(w, u, where, at);
    }
    use_need(w, d, at, USE_DESC);
    use_need(w, where, at, USE_INT);
}

static bool
is_block_access(const char *name)
{
    return strcmp(name, "load_tensor_descriptor") == 0 ||
           strcmp(name, "store_tensor_descriptor") == 0;
}

/* What the arguments of a builtin's call say. */
typedef struct Arguments {
    const Node *first; /* what it is a method of, or else the first argument; or NULL */
    const Node *dtype; /* the argument that is a dtype, or NULL */
    Seen all;          /* what the arguments are that have the type of the result */
} Arguments;

/* Sees each argument, and notes what its parameter wants. */
static Arguments
see_arguments(Walk *w, const Builtin *b, const Node *self, const Node *n, Inst *at)
{
    const char *params = params_of(b);
    Arguments a = {.first = self};
    int nself = self != NULL;
    for (int i = -nself; i < n->list.n + n->more.n; i++) {
        const Node *named = i >= n->list.n ? n->more.at[i - n->list.n] : NULL;
        const Node *e = i < 0 ? self : named ? named->a : n->list.at[i];
        int len = 0;
        const char *p = named && named->name ? named->name
                                             : nth_param(params, i + nself, &len);
        len = named && named->name ? (int)strlen(p) : len;
        Seen v = use_see(w, e, at);
        unsigned k = param_wants(b->name, p, len);
        use_need(w, e, at, k ? k : wants_float(b) ? USE_FLOAT : 0);
        if (k == USE_DTYPE && strcmp(b->name, "pointer_type") != 0)
            a.dtype = e;
        else if (!k && use_through(b->name, i + nself))
            a.all = use_join(a.all, v);
        if (i == 0 && !a.first)
            a.first = e;
    }
    return a;
}

/* An atomic operation: its result is what the pointer in `first` points to. */
static Seen
see_atomic(Walk *w, const char *name, const Node *first, Inst *at)
{
    Seen p = use_see(w, first, at);
    if (strcmp(name, "atomic_cas") == 0) {
        if (p.to)
            use_want(w, p.to, USE_INT);
        return (Seen){.is = USE_INT};
    }
    return (Seen){.is = p.to ? p.to->is | (p.to->want & USE_INT) : 0};
}

/* len(x): a parameter x is a tuple. */
static Seen
see_len(Walk *w, const Node *x, Inst *at)
{
    Evidence *u = use_name(w, at, x->name, false);
    if (u && u->param && !u->items) {
        use_want(w, u, USE_TUPLE);
        u->items = 2;
    }
    return (Seen){.is = USE_INT};
}

/* A cast to the dtype of the arguments, if there is one; else what is known of the
   builtin's result. */
static Seen
see_result(Walk *w, const Builtin *b, const Node *n, const Arguments *a, Inst *at)
{
    unsigned cast = use_dtype(w, a->dtype, at);
    if (a->dtype && a->first && is_bitcast(n))
        use_need(w, a->first, at, bits_of(w, a->dtype, at));
    if (cast & USE_PTR && a->first) {
        use_need(w, a->first, at, USE_ADDRESS);
        Evidence *to = map_get(&at->calls, &n->list); /* one for each conversion */
        if (!to) {
            to = use_new(w);
            map_set(&at->calls, &n->list, to);
        }
        return (Seen){.is = USE_PTR, .to = to};
    }
    if (cast)
        return (Seen){.is = cast};
    unsigned known = result_of(b->name, b);
    return known ? (Seen){.is = known} : a->all;
}

static Seen
see_builtin(Walk *w, const Builtin *b, const Node *self, const Node *n, Inst *at)
{
    const char *name = b->name;
    int nself = self != NULL;
    Arguments a = see_arguments(w, b, self, n, at);
    const Node *first = a.first;
    bool atomic = strncmp(name, "atomic_", 7) == 0;
    if ((strcmp(name, "static_assert") == 0 || strcmp(name, "assume") == 0) && first)
        use_assert(w, first, at, true);
    if (strcmp(name, "dot_scaled") == 0)
        use_formats(w, n, at);
    if (strcmp(name, "reshape") == 0 || strcmp(name, "view") == 0)
        note_share(w, n, nself, at);
    if (strcmp(name, "load") == 0 && first)
        return see_load(w, first, at);
    if (is_block_access(name) && n->list.n > 1 && first->kind == ND_NAME &&
        use_name(w, at, first->name, false))
        note_block(w, first, n->list.at[1], at);
    if (first && (strcmp(name, "store") == 0 ||
                  (atomic && strcmp(name, "atomic_cas") != 0)))
        note_stored(w, n, first, nself, at);
    if (atomic && first)
        return see_atomic(w, name, first, at);
    if (strncmp(name, "make_block_ptr", 14) == 0 || strcmp(name, "advance") == 0) {
        Seen p = first ? use_see(w, first, at) : a.all;
        if (*name == 'm')
            note_order(w, n, nself, at);
        return (Seen){.is = USE_PTR, .to = p.to};
    }
    if (strstr(name, "make_tensor_descriptor")) {
        note_last_stride(w, n, nself, at);
        return (Seen){.is = USE_DESC};
    }
    if (strcmp(name, "len") == 0 && first && first->kind == ND_NAME)
        return see_len(w, first, at);
    return see_result(w, b, n, &a, at);
}

/* The function that a call goes to, walked with these arguments. */
static Inst *
call_inst(Walk *w, const Node *n, Inst *at)
{
    Inst *in = map_get(&at->calls, n);
    Val v = in ? NULL : use_global(w, n->a, at);
    if (in || !v || v->kind != FE_FUNC || !v->u.func)
        return in;
    for (const Inst *c = at; c; c = c->caller)
        if (c->fn == v->u.func)
            return NULL;
    in = arena_new(w->s->a, Inst);
    *in = (Inst){.caller = at, .fn = v->u.func, .home = v->home ? v->home : at->home};
    in->ret = use_new(w);
    map_init(&in->names, w->s->a);
    map_init(&in->calls, w->s->a);
    map_set(&at->calls, n, in);
    if (w->called)
        map_set(w->called, in->fn, in);
    return in;
}

static int
param_at(const Node *fn, Name name)
{
    for (int i = 0; i < fn->list.n; i++)
        if (fn->list.at[i]->name == name)
            return i;
    return -1;
}

static Seen
see_helper(Walk *w, const Node *n, Inst *in, Inst *at)
{
    for (int i = 0; i < n->list.n + n->more.n; i++) {
        const Node *named = i >= n->list.n ? n->more.at[i - n->list.n] : NULL;
        const Node *e = named ? named->a : n->list.at[i];
        int p = named ? param_at(in->fn, named->name) : i;
        Seen v = use_see(w, e, at);
        if (p >= 0 && p < in->fn->list.n)
            use_define(w, use_name(w, in, in->fn->list.at[p]->name, true), e, at, v);
    }
    if (w->calls >= MAX_CALL_DEPTH)
        return (Seen){0};
    w->calls++;
    use_walk(w, &in->fn->body, in);
    w->calls--;
    return use_seen(in->ret);
}

/* x.to(..), desc.load(..), F(..): the base is a value of the kernel. */
static Seen
see_method(Walk *w, const Node *n, Inst *at)
{
    const Node *f = n->a;
    if (f->kind == ND_NAME) {
        Evidence *u = use_name(w, at, f->name, false);
        for (int i = 0; i < n->list.n; i++)
            use_see(w, n->list.at[i], at);
        if (u) {
            u->nargs = n->list.n;
            use_need(w, f, at, USE_FUNC);
        }
        return (Seen){0};
    }
    if (f->kind != ND_ATTRIBUTE) { /* functions[0](x) */
        use_see(w, f, at);
        for (int i = 0; i < n->list.n; i++)
            use_see(w, n->list.at[i], at);
        return (Seen){0};
    }
    const Node *where = n->list.n ? n->list.at[0] : NULL;
    bool moves = strcmp(f->name, "load") == 0 || strcmp(f->name, "store") == 0 ||
                 strncmp(f->name, "atomic_", 7) == 0;
    if (moves && where && f->a->kind == ND_NAME && use_name(w, at, f->a->name, false)) {
        note_block(w, f->a, where, at);
        for (int i = 1; i < n->list.n; i++)
            use_see(w, n->list.at[i], at);
        return (Seen){.is = USE_FLOAT};
    }
    Seen base = use_see(w, f->a, at);
    const Builtin *b = builtin_find(w->s, f->name, IN_METHOD);
    if (b)
        return see_builtin(w, b, f->a, n, at);
    for (int i = 0; i < n->list.n; i++)
        use_see(w, n->list.at[i], at);
    return base;
}

Seen
use_call(Walk *w, const Node *n, Inst *at)
{
    const Node *f = n->a;
    Inst *in = map_get(&at->calls, n);
    bool local = f->kind == ND_NAME && use_name(w, at, f->name, false);
    Val v = in || local ? NULL : use_global(w, f, at);
    if (v && v->kind == FE_BUILTIN)
        return see_builtin(w, v->u.builtin, NULL, n, at);
    if (!in && v)
        in = call_inst(w, n, at);
    if (in)
        return see_helper(w, n, in, at);
    if (v) {
        for (int i = 0; i < n->list.n; i++)
            use_see(w, n->list.at[i], at);
        return (Seen){0};
    }
    return see_method(w, n, at);
}
