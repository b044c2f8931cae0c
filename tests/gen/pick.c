/* Random choices, the types of values, and the statements that a program is built of. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/gen/gen.h"

const DtInfo dt_info[NDT] = {
    [I1] = {"i1", "int1", 1, 1, 0},          [I8] = {"i8", "int8", 8, 1, 0},
    [I16] = {"i16", "int16", 16, 2, 0},      [I32] = {"i32", "int32", 32, 4, 0},
    [I64] = {"i64", "int64", 64, 8, 0},      [U8] = {"u8", "uint8", 8, 1, 0},
    [U16] = {"u16", "uint16", 16, 2, 0},     [U32] = {"u32", "uint32", 32, 4, 0},
    [U64] = {"u64", "uint64", 64, 8, 0},     [E4] = {"fp8e4nv", "float8e4nv", 8, 1, 4},
    [E5] = {"fp8e5", "float8e5", 8, 1, 3},   [F16] = {"fp16", "float16", 16, 2, 11},
    [BF16] = {"bf16", "bfloat16", 16, 2, 8}, [F32] = {"fp32", "float32", 32, 4, 24},
    [F64] = {"fp64", "float64", 64, 8, 53},
};

/* splitmix64 (Steele, Lea, Flood 2014). */
uint32_t
rnd(Gen *g, uint32_t n)
{
    uint64_t z = (g->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (uint32_t)(((z >> 32) * n) >> 32);
}

bool
chance(Gen *g, int percent)
{
    return (int)rnd(g, 100) < percent;
}

int
between(Gen *g, int low, int high)
{
    return low + (int)rnd(g, (uint32_t)(high - low + 1));
}

const char *
one_of(Gen *g, const char *words)
{
    int n = 1;
    for (const char *p = words; *p; p++)
        n += *p == '|';
    int k = (int)rnd(g, (uint32_t)n);
    const char *p = words;
    for (; k > 0; p++)
        k -= *p == '|';
    return tree_text(g->tree, "%.*s", (int)strcspn(p, "|"), p);
}

Dt
dt_of(Gen *g, unsigned set)
{
    if (set & ~g->banned)
        set &= ~g->banned;
    int k = (int)rnd(g, (uint32_t)__builtin_popcount(set));
    for (int dt = 0; dt < NDT; dt++)
        if (set & BIT(dt) && k-- == 0)
            return (Dt)dt;
    return I32;
}

int
log2_of(int x)
{
    return x <= 1 ? 0 : 32 - __builtin_clz((unsigned)x - 1);
}

int
numel(const Type *t)
{
    int n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

bool
same_shape(const Type *a, const Type *b)
{
    return a->rank == b->rank &&
           memcmp(a->dim, b->dim, sizeof(int) * (size_t)a->rank) == 0;
}

bool
fits(const Type *a, const Type *b)
{
    if (a->rank > b->rank)
        return false;
    if (a->rank == 0)
        return true;
    if (a->rank != b->rank) /* ones are added on the left: kept to equal ranks here */
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i] && a->dim[i] != 1)
            return false;
    return true;
}

Type
scalar(Dt dt)
{
    return (Type){.dt = dt};
}

Type
with_dt(Type t, Dt dt)
{
    t.dt = dt;
    return t;
}

Type
random_shape(Gen *g, Dt dt)
{
    static const int ranks[] = {1, 1, 1, 2, 2, 2, 3, 4};
    Type t = {.dt = dt, .rank = ranks[rnd(g, 8)]};
    int left = log2_of(g->tree->n);
    if (chance(g, 15)) /* fewer elements than the largest tile */
        left = between(g, 0, left);
    for (int i = 0; i < t.rank; i++) {
        int k = i == t.rank - 1 ? left : between(g, 0, left);
        t.dim[i] = 1 << k;
        left -= k;
    }
    for (int i = t.rank - 1; i > 0; i--) {
        int j = between(g, 0, i), keep = t.dim[i];
        t.dim[i] = t.dim[j];
        t.dim[j] = keep;
    }
    return t;
}

/* The type of an operation on two values that are not literals. */
Dt
joint_dt(Dt a, Dt b)
{
    if (a == b)
        return a;
    if (BIT(a) & FLOATS || BIT(b) & FLOATS) {
        if (a == F64 || b == F64)
            return F64;
        if (a == F32 || b == F32)
            return F32;
        if (!(BIT(a) & FLOATS) || !(BIT(b) & FLOATS))
            return a == F16 || b == F16 ? F16 : F32;
        return F32;
    }
    if (a == I1 || b == I1)
        return a == I1 ? b : a;
    bool ua = BIT(a) & UINTS, ub = BIT(b) & UINTS;
    if (ua == ub)
        return dt_info[a].bits > dt_info[b].bits ? a : b;
    if (ua)
        return dt_info[a].bits >= dt_info[b].bits ? a : b;
    return dt_info[b].bits >= dt_info[a].bits ? b : a;
}

static bool
suits(const Value *v, const Want *w)
{
    if (!(BIT(v->t.dt) & w->dts) || v->flags & (w->never | V_SPECIAL))
        return false;
    if (w->same && !same_shape(&v->t, w->same))
        return false;
    if (w->into && !fits(&v->t, w->into))
        return false;
    if (w->min_rank && v->t.rank < w->min_rank)
        return false;
    return !w->max_rank || v->t.rank <= w->max_rank;
}

Value *
pick(Gen *g, Want w)
{
    Value *found[MAX_VALS];
    int n = 0;
    for (int i = 0; i < g->nval; i++)
        if (suits(g->val[i], &w))
            found[n++] = g->val[i];
    if (n == 0)
        return NULL;
    if (n > 6 && chance(g, 60)) /* what is recent, so that chains are long */
        return found[n - 1 - (int)rnd(g, 6)];
    return found[rnd(g, (uint32_t)n)];
}

void
in_scope(Gen *g, Value *v)
{
    if (g->nval < MAX_VALS)
        g->val[g->nval++] = v;
}

Value *
value_new(Gen *g, Type t, char letter)
{
    Value *v = tree_alloc(g->tree, sizeof *v);
    v->id = ++g->tree->nval;
    v->letter = letter;
    v->t = t;
    return v;
}

const char *
value_name(Tree *t, const Value *v)
{
    return tree_text(t, "%c%d", v->letter, v->id);
}

static Stmt *
stmt_new(Gen *g, StmtKind kind)
{
    Stmt *s = tree_alloc(g->tree, sizeof *s);
    s->kind = kind;
    *g->tail = s;
    g->tail = &s->next;
    return s;
}

/* `$` takes a Value and becomes the byte of its use. */
static void
format(Gen *g, Stmt *s, const char *fmt, va_list ap)
{
    char out[4096];
    size_t n = 0;
    for (const char *p = fmt; *p && n < sizeof out - 32; p++) {
        if (*p == '$') {
            Value *v = va_arg(ap, Value *);
            int k = 0;
            while (k < s->nuse && s->use[k] != v)
                k++;
            if (k == s->nuse)
                s->use[s->nuse++] = v;
            out[n++] = (char)(0x80 + k);
        } else if (*p == '%' && p[1] == 'd') {
            n += (size_t)snprintf(out + n, 16, "%d", va_arg(ap, int));
            p++;
        } else if (*p == '%' && p[1] == 'g') {
            double x = va_arg(ap, double);
            n += (size_t)snprintf(out + n, 40, x == floor(x) ? "%.1f" : "%.17g", x);
            p++;
        } else if (*p == '%' && p[1] == 's') {
            const char *t = va_arg(ap, const char *);
            size_t k = strlen(t);
            if (k > sizeof out - 32 - n)
                k = sizeof out - 32 - n;
            memcpy(out + n, t, k);
            n += k;
            p++;
        } else if (*p == '%' && p[1] == '%') {
            out[n++] = '%';
            p++;
        } else {
            out[n++] = *p;
        }
    }
    out[n] = 0;
    s->text = tree_text(g->tree, "%s", out);
}

Value *
let(Gen *g, Type t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Stmt *s = stmt_new(g, STMT_LET);
    format(g, s, fmt, ap);
    va_end(ap);
    s->res[s->nres++] = value_new(g, t, 'v');
    in_scope(g, s->res[0]);
    return s->res[0];
}

Value *
let2(Gen *g, Type t, Type t2, Value **second, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Stmt *s = stmt_new(g, STMT_LET);
    format(g, s, fmt, ap);
    va_end(ap);
    s->res[s->nres++] = value_new(g, t, 'v');
    s->res[s->nres++] = *second = value_new(g, t2, 'v');
    in_scope(g, s->res[0]);
    in_scope(g, s->res[1]);
    return s->res[0];
}

void
let_all(Gen *g, int n, const Type *t, Value **out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Stmt *s = stmt_new(g, STMT_LET);
    format(g, s, fmt, ap);
    va_end(ap);
    for (int i = 0; i < n; i++) {
        s->res[s->nres++] = out[i] = value_new(g, t[i], 'v');
        in_scope(g, out[i]);
    }
}

Stmt *
act(Gen *g, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Stmt *s = stmt_new(g, STMT_DO);
    format(g, s, fmt, ap);
    va_end(ap);
    return s;
}

void
set(Gen *g, Value *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Stmt *s = stmt_new(g, STMT_SET);
    s->use[s->nuse++] = v;
    format(g, s, fmt, ap);
    va_end(ap);
}

Stmt *
block_new(Gen *g, int nbody)
{
    Stmt *s = stmt_new(g, STMT_BLOCK);
    s->nbody = nbody;
    s->text = "";
    return s;
}

void
begin(Gen *g, Value *v, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Stmt *s = stmt_new(g, STMT_LET);
    format(g, s, fmt, ap);
    va_end(ap);
    s->res[s->nres++] = v;
}

Stmt *
loop_new(Gen *g, const char *head, Value *i, bool is_while)
{
    Stmt *b = block_new(g, 1);
    b->head[0] = head;
    if (is_while)
        b->use[b->nuse++] = i;
    else
        b->res[b->nres++] = i;
    return b;
}

Stmt **
block_open(Gen *g, Stmt *b, int body)
{
    Stmt **tail = g->tail;
    g->tail = &b->body[body];
    g->depth++;
    g->quiet++;
    return tail;
}

void
block_close(Gen *g, Stmt **tail, int scope)
{
    g->quiet--;
    g->depth--;
    g->nval = scope;
    g->tail = tail;
}

Value *
flt(Value *v, double bound, int frac, unsigned flags)
{
    v->bound = bound;
    v->frac = frac;
    v->flags = flags;
    return v;
}

Value *
like(Value *v, const Value *a)
{
    return flt(v, a->bound, a->frac, a->flags & ~(unsigned)V_SPECIAL);
}

const char *
dims(Gen *g, const Type *t)
{
    const char *s = "";
    for (int i = 0; i < t->rank; i++)
        s = tree_text(g->tree, "%s%s%d", s, i ? ", " : "", t->dim[i]);
    return tree_text(g->tree, "[%s]", s);
}

const char *
offsets(Gen *g, const Type *t)
{
    Tree *tree = g->tree;
    int n = numel(t);
    if (t->rank <= 1)
        return tree_text(tree, "tl.arange(0, %d)", n);
    if (chance(g, 35))
        return tree_text(tree, "tl.reshape(tl.arange(0, %d), %s)", n, dims(g, t));
    const char *s = "";
    int stride = n;
    for (int d = 0; d < t->rank; d++) {
        stride /= t->dim[d];
        const char *ix = "";
        for (int i = 0; i < t->rank; i++)
            ix = tree_text(tree, "%s%s%s", ix, i ? ", " : "", i == d ? ":" : "None");
        s = tree_text(tree, "%s%stl.arange(0, %d)[%s] * %d", s, d ? " + " : "", t->dim[d],
                      ix, stride);
    }
    return tree_text(tree, "(%s)", s);
}
