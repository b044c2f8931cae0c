/* Trees of programs: their memory, their text, and the arguments that the text asks for.
 */
#include "tests/gen/gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Chunk {
    Chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char at[];
};

void *
tree_alloc(Tree *t, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (!t->mem || t->mem->size - t->mem->used < size) {
        size_t room = size > 65536 ? size : 65536;
        Chunk *c = calloc(1, sizeof *c + room);
        if (!c)
            abort();
        c->size = room;
        c->next = t->mem;
        t->mem = c;
    }
    void *p = t->mem->at + t->mem->used;
    t->mem->used += size;
    return p;
}

const char *
tree_text(Tree *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = tree_alloc(t, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

Tree *
tree_new(uint64_t seed)
{
    Tree *t = calloc(1, sizeof *t);
    if (!t)
        abort();
    t->seed = seed;
    return t;
}

void
tree_free(Tree *t)
{
    for (Chunk *c = t->mem; c;) {
        Chunk *next = c->next;
        free(c);
        c = next;
    }
    free(t);
}

/* ---------------------------------------------------------------- text */

typedef struct Text {
    char *s;
    size_t n, cap;
} Text;

static void __attribute__((format(printf, 2, 3))) add(Text *o, const char *fmt, ...)
{
    va_list ap;
    for (;;) {
        va_start(ap, fmt);
        int n = vsnprintf(o->s + o->n, o->cap - o->n, fmt, ap);
        va_end(ap);
        if (o->n + (size_t)n < o->cap) {
            o->n += (size_t)n;
            return;
        }
        o->cap = o->cap * 2 + (size_t)n + 256;
        o->s = realloc(o->s, o->cap);
        if (!o->s)
            abort();
    }
}

Value *
value_seen(const Value *v)
{
    while (v->same)
        v = v->same;
    return (Value *)v;
}

static void
add_used(Text *o, const Stmt *s, const char *text)
{
    for (const char *p = text; *p; p++) {
        if (*p & 0x80) {
            const Value *v = value_seen(s->use[*p & 0x7f]);
            add(o, "%c%d", v->letter, v->id);
        } else {
            add(o, "%c", *p);
        }
    }
}

static int add_list(Text *o, const Stmt *s, int depth);

static void
add_block(Text *o, const Stmt *s, int depth)
{
    for (int i = 0; i < s->nbody; i++) {
        add(o, "%*s", depth * 4, "");
        add_used(o, s, s->head[i]);
        add(o, ":\n");
        if (add_list(o, s->body[i], depth + 1) == 0)
            add(o, "%*spass\n", (depth + 1) * 4, "");
    }
}

/* The number of statements that are still there. */
static int
add_list(Text *o, const Stmt *s, int depth)
{
    int n = 0;
    for (; s; s = s->next) {
        if (s->gone)
            continue;
        n++;
        if (s->kind == STMT_BLOCK && s->unwrapped) {
            for (int i = 0; i < s->nres; i++)
                add(o, "%*s%c%d = tl.to_tensor(0)\n", depth * 4, "", s->res[i]->letter,
                    s->res[i]->id);
            n += s->nres - 1 + add_list(o, s->body[s->unwrapped - 1], depth);
            continue;
        }
        if (s->kind == STMT_BLOCK) {
            add_block(o, s, depth);
            continue;
        }
        add(o, "%*s", depth * 4, "");
        for (int i = 0; i < s->nres; i++)
            add(o, "%s%c%d", i ? ", " : "", s->res[i]->letter, s->res[i]->id);
        if (s->kind == STMT_SET)
            add(o, "%c%d", s->use[0]->letter, s->use[0]->id);
        if (s->kind != STMT_DO)
            add(o, " = ");
        add_used(o, s, s->instead ? s->instead : s->text);
        add(o, "\n");
    }
    return n;
}

static const char *const helpers[][2] = {
    {"h_add", "(a, b):\n    return a + b\n"},
    {"h_mul", "(a, b):\n    return a * b\n"},
    {"h_max", "(a, b):\n    return tl.maximum(a, b)\n"},
    {"h_xor", "(a, b):\n    return a ^ b\n"},
    {"h_or", "(a, b):\n    return a | b\n"},
    {"h_lin", "(a1, b1, a2, b2):\n    return a1 * a2, b1 * a2 + b2\n"},
    {"h_pick", "(v1, i1, v2, i2):\n    m = (v1 > v2) | ((v1 == v2) & (i1 < i2))\n"
               "    return tl.where(m, v1, v2), tl.where(m, i1, i2)\n"},
    {"h_two", "(a, b, k: tl.constexpr = 3, flip: tl.constexpr = False):\n    if flip:\n"
              "        return b * k, a\n    return a - b, b + k\n"},
    {"h_early", "(a, s):\n    if s > 2:\n        return a + 1\n    return a - 1\n"},
    {"h_loop",
     "(a, k):\n    for i in range(0, k):\n        a = a + tl.to_tensor(i).to(a.dtype)\n"
     "    return a\n"},
    {"h_turn", "(a, b, c, k):\n    for i in range(0, k):\n"
               "        a, b, c = b, c, tl.where(a > b, a, b)\n    return a, b, c\n"},
    {"h_pair", "(a, b, k):\n    while k > 0:\n        a, b = b, (a + b).to(a.dtype)\n"
               "        k = k - 1\n    return a, b\n"},
    {"h_order", "(a, b):\n    return tl.where(a < b, a, b), tl.where(a < b, b, a)\n"},
    {"h_three", "(a1, b1, c1, a2, b2, c2):\n    return a1 + a2, tl.where(b1 > b2, b1, "
                "b2), c1 ^ c2\n"},
    {"h_seg", "(v1, f1, v2, f2):\n    return tl.where(f2 != 0, v2, v1 + v2), f1 | f2\n"},
    {"h_many", "(a, s, k):\n    if s > 40:\n        return a\n    elif s > 7:\n"
               "        if k > 0:\n            return a + 1\n        b = a * 2\n"
               "        return b - 3\n    if k == s:\n        return a - 1\n    else:\n"
               "        for i in range(0, 2):\n            a = a ^ (a >> 1)\n"
               "        return a\n"},
    {"h_either", "(a, b, s):\n    if s > 3:\n        if s > 11:\n"
                 "            return b, a\n        return a - b, b\n"
                 "    return a, b * 5\n"},
    {"h_sign", "(a, b):\n    if a < b:\n        return a\n    elif a == b:\n"
               "        return b + 1\n    return a ^ b\n"},
    {"h_steps", "(x, most):\n    k = 0\n    while x != 1 and k < most:\n"
                "        if x % 2 == 0:\n            x = x // 2\n        else:\n"
                "            x = 3 * x + 1\n        k += 1\n    return k, x\n"},
    {"h_packed", "(a0, a1, b0, b1):\n    if a0 > b1:\n        a0 = a0 - b1\n"
                 "    return a0 + b0, a1, b0 ^ a1, b1 - a0\n"},
    {"h_apply", "(pair, f: tl.constexpr):\n    a, b = pair\n    return f(a, b)\n"},
};

/* Is the word in the text, as a whole? */
static bool
has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = text; (p = strstr(p, word)); p += n) {
        bool before =
            p > text && (p[-1] == '_' || p[-1] == '.' || (p[-1] >= 'a' && p[-1] <= 'z'));
        char c = p[n];
        bool after = c == '_' || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     (c == '=' && p[n + 1] != '=' && p[n + 1] != ' ');
        if (!before && !after)
            return true;
    }
    return false;
}

static const char prefixes[][3] = {"p", "w", "o", "z", "t", "at"};
static const char *const scalars[] = {"n", "m", "q", "s"};
enum { FIRST_HOST = 6 * NDT + sizeof scalars / sizeof *scalars };

/* The next parameter of the kernel whose body is `text`; `at` counts all that may be. */
static bool
next_param(const char *text, int *at, char name[PROGRAM_NAME])
{
    for (; *at < FIRST_HOST + MAX_HOST; ++*at) {
        if (*at < 6 * NDT)
            snprintf(name, PROGRAM_NAME, "%s_%s", prefixes[*at / NDT],
                     dt_info[*at % NDT].sig);
        else if (*at < FIRST_HOST)
            snprintf(name, PROGRAM_NAME, "%s", scalars[*at - 6 * NDT]);
        else
            snprintf(name, PROGRAM_NAME, "d_%d", *at - FIRST_HOST);
        if (has_word(text, name))
            return ++*at, true;
    }
    return false;
}

static const char *
pid_text(const Tree *t)
{
    if (t->grid[1] == 1 && t->grid[2] == 1)
        return "    pid = tl.program_id(0)\n";
    return "    pid = (tl.program_id(0) + tl.program_id(1) * tl.num_programs(0)\n"
           "           + tl.program_id(2) * tl.num_programs(0) * tl.num_programs(1))\n";
}

char *
tree_print(const Tree *t)
{
    Text body = {0}, out = {0};
    add(&body, "%s", "");
    if (add_list(&body, t->body, 1) == 0)
        add(&body, "    pass\n");
    add(&out, "import triton\nimport triton.language as tl\n\n\n");
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
        if (has_word(body.s, helpers[i][0]))
            add(&out, "@triton.jit\ndef %s%s\n\n", helpers[i][0], helpers[i][1]);
    add(&out, "@triton.jit\ndef k(");
    char name[PROGRAM_NAME];
    for (int at = 0, n = 0; next_param(body.s, &at, name); n++)
        add(&out, "%s%s", n ? ", " : "", name);
    add(&out, "):\n");
    if (has_word(body.s, "pid"))
        add(&out, "%s", pid_text(t));
    add(&out, "%s", body.s);
    free(body.s);
    return out.s;
}

/* ---------------------------------------------------------------- arguments */

int
host_new(Tree *t, Host h)
{
    if (t->nhost == MAX_HOST)
        return -1;
    t->aligned = true;
    h.count = 1;
    for (int i = 0; i < h.rank; i++)
        h.count += (h.shape[i] - 1) * h.strides[i];
    t->host[t->nhost] = h;
    return t->nhost++;
}

static void
host(const Tree *t, ProgramArg *a, const Host *h)
{
    a->kind = ARG_DESC;
    snprintf(a->dtype, sizeof a->dtype, "%s", dt_info[h->dt].sig);
    a->rank = h->rank;
    a->nan = h->nan;
    memcpy(a->shape, h->shape, sizeof a->shape);
    memcpy(a->strides, h->strides, sizeof a->strides);
    memcpy(a->block, h->block, sizeof a->block);
    a->count = (size_t)h->count;
    a->bytes = a->count * (size_t)dt_info[h->dt].bytes;
    a->is_output = h->output;
    a->exact = h->kind != BUF_ZERO && !(h->kind == BUF_ATOMIC && BIT(h->dt) & FLOATS);
    a->data = malloc(a->bytes);
    if (!a->data)
        abort();
    if (h->output && h->kind != BUF_ATOMIC)
        poison_fill(a);
    else
        input_fill(t->seed, a, h->dt, false);
}

static void
buffer(const Tree *t, ProgramArg *a, int prefix, Dt dt)
{
    a->kind = ARG_BUFFER;
    snprintf(a->dtype, sizeof a->dtype, "%s", dt_info[dt].sig);
    a->exact = 1;
    if (prefix < 2) {
        a->count = (size_t)t->len;
    } else if (prefix == 5) {
        a->count = 16;
        a->is_output = 1;
    } else {
        BufKind kind = prefix == 2 ? BUF_EXACT : prefix == 3 ? BUF_ZERO : BUF_NEAR;
        a->count = (size_t)t->slots[kind][dt] * (size_t)t->nprog * (size_t)t->n;
        a->is_output = 1;
        a->exact = kind == BUF_EXACT;
        a->tolerance = kind == BUF_NEAR ? 4e-6 : 0;
    }
    a->bytes = a->count * (size_t)dt_info[dt].bytes;
    a->data = malloc(a->bytes ? a->bytes : 1);
    if (!a->data)
        abort();
    if (prefix < 2 || prefix == 5)
        input_fill(t->seed, a, dt, prefix == 1);
    else
        poison_fill(a);
}

Program *
tree_program(const Tree *t)
{
    Program *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    p->seed = t->seed;
    p->text = tree_print(t);
    snprintf(p->kernel, sizeof p->kernel, "k");
    memcpy(p->grid, t->grid, sizeof p->grid);
    p->num_warps = t->warps;
    p->num_stages = t->stages;
    p->aligned = t->aligned;
    const char *body = strstr(p->text, "def k(");
    char name[PROGRAM_NAME];
    for (int at = 0; next_param(body, &at, name) && p->narg < PROGRAM_MAX_ARGS;) {
        ProgramArg *a = &p->arg[p->narg++];
        snprintf(a->name, sizeof a->name, "%s", name);
        if (at <= 6 * NDT) {
            buffer(t, a, (at - 1) / NDT, (Dt)((at - 1) % NDT));
            continue;
        }
        if (at > FIRST_HOST) {
            host(t, a, &t->host[at - 1 - FIRST_HOST]);
            continue;
        }
        a->kind = name[0] == 's' ? ARG_FLOAT : ARG_INT;
        snprintf(a->dtype, sizeof a->dtype, "%s",
                 name[0] == 's'   ? "fp32"
                 : name[0] == 'q' ? "i64"
                                  : "i32");
        a->i = name[0] == 'n' ? t->arg_n : name[0] == 'm' ? t->arg_m : t->arg_q;
        a->f = t->arg_s;
    }
    return p;
}

void
program_free(Program *p)
{
    for (int i = 0; i < p->narg; i++)
        free(p->arg[i].data);
    free(p->text);
    free(p);
}
