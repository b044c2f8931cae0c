/* PTX as text into statements, and which registers are constants. */
#include "tests/record/record.h"

#include <ctype.h>
#include <string.h>

typedef struct Text {
    char *at;
    int depth; /* of braces inside the body */
} Text;

static void
skip_space(Text *t)
{
    for (;;) {
        t->at += strspn(t->at, " \t\r\n");
        if (t->at[0] != '/' || t->at[1] != '/')
            return;
        t->at += strcspn(t->at, "\n");
    }
}

/* The operands, apart at commas outside of brackets. */
static void
split(Insn *i, char *s)
{
    int depth = 0;
    s += strspn(s, " \t\n");
    for (i->narg = 0; *s && i->narg < ARGS; i->narg++) {
        i->arg[i->narg] = s;
        for (; *s && (*s != ',' || depth); s++)
            depth += (*s == '{' || *s == '[' || *s == '(') -
                     (*s == '}' || *s == ']' || *s == ')');
        if (!*s)
            continue;
        *s++ = '\0';
        s += strspn(s, " \t\n");
    }
}

static size_t
word(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || (s[n] && strchr("_$%.:", s[n])))
        n++;
    return n;
}

/* One statement; false at the brace that ends the body. */
static bool
statement(Text *t, Kernel *k)
{
    skip_space(t);
    if (*t->at == '{' || *t->at == '}') {
        t->depth += *t->at == '{' ? 1 : -1;
        t->at++;
        return t->depth >= 0;
    }
    if (!*t->at)
        return false;
    if (strncmp(t->at, ".loc", 4) == 0 || strncmp(t->at, ".file", 5) == 0) {
        t->at += strcspn(t->at, "\n");
        return true;
    }
    size_t n = word(t->at);
    char *colon = memchr(t->at, ':', n);
    if (colon && colon[1] != ':' &&
        (colon[1] == '\0' || isspace((unsigned char)colon[1]))) {
        *colon = '\0';
        if (!t->depth)
            *PUSH(k->a, k->insn, k->ninsn) = (Insn){.label = t->at};
        t->at = colon + 1;
        return true;
    }
    char *s = t->at, *end = s + strcspn(s, ";");
    t->at = *end ? end + 1 : end;
    *end = '\0';
    Insn i = {.local = t->depth > 0};
    if (*s == '@') {
        i.guarded = true;
        s += strcspn(s, " \t");
        s += strspn(s, " \t");
    }
    i.op = s;
    s += strcspn(s, " \t\n");
    if (*s)
        *s++ = '\0';
    split(&i, s);
    if (*i.op != '.' || strcmp(i.op, ".branchtargets") == 0)
        *PUSH(k->a, k->insn, k->ninsn) = i;
    return true;
}

/* ---------------------------------------------------------------- constants */

static int
slot(const Kernel *k, const char *name, size_t n)
{
    unsigned h = 5381;
    for (size_t j = 0; j < n; j++)
        h = h * 33 + (unsigned char)name[j];
    int at = (int)(h % (unsigned)k->reg_room);
    while (k->reg[at].name &&
           (strncmp(k->reg[at].name, name, n) != 0 || k->reg[at].name[n]))
        at = (at + 1) % k->reg_room;
    return at;
}

static void
define(Kernel *k, const char *name, size_t n, bool known, long value)
{
    int at = slot(k, name, n);
    if (k->reg[at].name) {
        k->reg[at].known = false;
        return;
    }
    k->reg[at].name = arena_strndup(k->a, name, n);
    k->reg[at].known = known;
    k->reg[at].value = value;
}

/* A register is a constant when nothing but one move of a number writes it. What writes
   no register begins with an address, but for barriers. */
static void
find_constants(Kernel *k)
{
    k->reg_room = 4 * k->ninsn + 64;
    k->reg = arena_calloc(k->a, (size_t)k->reg_room, sizeof *k->reg, 8);
    for (int j = 0; j < k->ninsn; j++) {
        const Insn *i = &k->insn[j];
        if (i->label || !i->narg || strncmp(i->op, "bar", 3) == 0 || *i->arg[0] == '[')
            continue;
        char *end = NULL;
        long v = i->narg == 2 ? strtol(i->arg[1], &end, 0) : 0;
        bool number = end && end != i->arg[1] && !*end && strncmp(i->op, "mov.", 4) == 0;
        int used = 0;
        for (const char *s = strchr(i->arg[0], '%'); s && used < k->ninsn;
             s = strchr(s + 1, '%'), used++)
            define(k, s, word(s), number && !i->guarded, v);
    }
}

bool
ptx_value(const Kernel *k, const char *operand, long *value)
{
    char *end;
    *value = strtol(operand, &end, 0);
    if (end != operand && !*end)
        return true;
    int at = slot(k, operand, strlen(operand));
    *value = k->reg[at].value;
    return k->reg[at].name && k->reg[at].known;
}

/* ---------------------------------------------------------------- the module */

static int
directive(const char *head, const char *name)
{
    const char *s = strstr(head, name);
    return s ? atoi(s + strlen(name)) : 0;
}

static Kernel
entry(Arena *a, Text *t)
{
    Kernel k = {.a = a};
    skip_space(t);
    k.name = arena_strndup(a, t->at, word(t->at));
    char *body = t->at + strcspn(t->at, "{");
    if (*body)
        *body++ = '\0';
    k.threads = directive(t->at, ".reqntid");
    k.min_ctas = directive(t->at, ".minnctapersm");
    k.max_regs = directive(t->at, ".maxnreg");
    t->at = body;
    t->depth = 0;
    while (statement(t, &k))
        continue;
    find_constants(&k);
    return k;
}

Kernel *
ptx_read(Arena *a, char *text, int *count)
{
    Kernel *all = NULL;
    Text t = {.at = text};
    *count = 0;
    while ((t.at = strstr(t.at, ".entry"))) {
        t.at += strlen(".entry");
        Kernel k = entry(a, &t);
        *PUSH(a, all, *count) = k;
    }
    return all;
}
