/* The text of a disassembly into instructions with the registers that each reads and
   writes. Widths come from names: an instruction that is not known moves one register, as
   nearly all do. */
#include "tests/sass/sass.h"

#include <ctype.h>
#include <string.h>

enum { OPERANDS = 16 };

typedef struct Parts { /* of an instruction */
    char *guard;       /* or NULL */
    char *name;
    char *op[OPERANDS];
    int n;
} Parts;

int
set_meet(const Set *a, const Set *b)
{
    for (int i = 0; i < REGISTERS; i++)
        if (set_has(a, i) && set_has(b, i))
            return i;
    return -1;
}

static bool
begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Is it one of the words between the dots of a name? */
static bool
has_part(const char *name, const char *part)
{
    size_t n = strlen(part);
    for (const char *s = name; s; s = strchr(s, '.')) {
        s += *s == '.';
        if (strncmp(s, part, n) == 0 && (s[n] == '.' || !s[n]))
            return true;
    }
    return false;
}

static bool
one_of(const char *name, const char *words)
{
    size_t n = strcspn(name, ".");
    for (const char *s = words; *s; s += strspn(s, " ")) {
        size_t m = strcspn(s, " ");
        if (n == m && strncmp(s, name, n) == 0)
            return true;
        s += m;
    }
    return false;
}

static void
cut(Parts *p, char *s)
{
    *p = (Parts){0};
    if (*s == '@') {
        p->guard = s;
        s += strcspn(s, " ");
        *s++ = '\0';
        s += strspn(s, " ");
    }
    p->name = s;
    s += strcspn(s, " ");
    while (*s) {
        *s++ = '\0';
        s += strspn(s, " ");
        if (!*s || p->n == OPERANDS)
            break;
        p->op[p->n++] = s;
        int depth = 0;
        for (; *s && (*s != ',' || depth); s++)
            depth += (*s == '[') - (*s == ']');
    }
    for (int i = 0; i < p->n; i++) {
        char *end = p->op[i] + strlen(p->op[i]);
        while (end > p->op[i] && isspace((unsigned char)end[-1]))
            *--end = '\0';
    }
}

static bool
is_predicate(const char *s)
{
    s += *s == '!';
    s += *s == 'U';
    return *s == 'P' && (isdigit((unsigned char)s[1]) || s[1] == 'T');
}

/* The register that stands here, or -1. */
static int
reg_of(const char *s)
{
    s += strspn(s, "-~|!");
    return *s == 'R' && isdigit((unsigned char)s[1]) ? atoi(s + 1) : -1;
}

/* ---------------------------------------------------------------- widths */

static int
memory_width(const char *name)
{
    return has_part(name, "128") ? 4 : has_part(name, "64") ? 2 : 1;
}

static int
result_width(const char *name)
{
    if (begins(name, "LDSM"))
        return has_part(name, "4") ? 4 : has_part(name, "2") ? 2 : 1;
    if (one_of(name, "LD LDG LDS LDL LDC ATOM ATOMG ATOMS"))
        return memory_width(name);
    if (one_of(name, "DADD DMUL DFMA DMNMX LEPC"))
        return 2;
    if (begins(name, "CS2R"))
        return has_part(name, "32") ? 1 : 2;
    if (begins(name, "IMAD"))
        return has_part(name, "WIDE") ? 2 : 1;
    if (begins(name, "F2F.F64") || begins(name, "I2F.F64") || begins(name, "FRND.F64") ||
        (begins(name, "F2I") && (has_part(name, "S64") || has_part(name, "U64"))))
        return 2;
    if (one_of(name, "HMMA IMMA DMMA QMMA BMMA"))
        return has_part(name, "F16") || has_part(name, "8816") ? 2 : 4;
    return 1;
}

static int
source_width(const char *name, int i)
{
    if (one_of(name, "ST STG STS STL STAS RED"))
        return memory_width(name);
    if (begins(name, "STSM"))
        return has_part(name, "4") ? 4 : has_part(name, "2") ? 2 : 1;
    if (one_of(name, "DADD DMUL DFMA DMNMX DSETP"))
        return 2;
    if (one_of(name, "HMMA IMMA QMMA"))
        return i == 2 ? 2 : has_part(name, "F16") && i == 3 ? 2 : 4;
    if (begins(name, "IMAD"))
        return has_part(name, "WIDE") && i == 3 ? 2 : 1;
    return 1;
}

/* ---------------------------------------------------------------- one instruction */

static void
find_gmma(Arena *a, Program *p, Sass *s, const Parts *x)
{
    const char *shape = strchr(x->name, '.'), *by = shape ? strchr(shape, 'x') : NULL;
    if (!by || !one_of(x->name, "HGMMA IGMMA QGMMA BGMMA"))
        return;
    Gmma *g = arena_calloc(a, 1, sizeof *g, 8);
    g->n = atoi(by + 1);
    g->empty = strcmp(x->op[0], "RZ") == 0;
    g->acc = reg_of(x->op[0]);
    g->nacc = has_part(x->name, "F16") ? g->n / 4 : g->n / 2;
    g->a = x->n > 1 ? reg_of(x->op[1]) : -1;
    for (int i = 1; i < x->n; i++) {
        g->commits |= begins(x->op[i], "gsb0");
        g->fresh |= strcmp(x->op[i], "!UPT") == 0;
    }
    s->gmma = g;
    p->ngmma++;
}

/* An operand inside of brackets: R2.64 is two registers. */
static void
add_address(Set *set, const char *s)
{
    for (; *s; s++)
        if (*s == 'R' && isdigit((unsigned char)s[1]) && strchr("[+-, ", s[-1]))
            set_add(set, atoi(s + 1),
                    begins(s + 1 + strspn(s + 1, "0123456789"), ".64") ? 2 : 1);
}

static void
find_registers(Sass *s, const Parts *x)
{
    int i = 0;
    bool writes = !one_of(x->name, "BAR WARPSYNC NANOSLEEP BRA BRX JMP JMX CALL RET R2P "
                                   "BSSY BSYNC BREAK ISETP FSETP DSETP HSETP2 FCHK");
    if (writes) {
        while (i < x->n && is_predicate(x->op[i]))
            i++;
        if (i < x->n && reg_of(x->op[i]) >= 0)
            set_add(&s->writes, reg_of(x->op[i]), result_width(x->name));
        if (i < x->n && *x->op[i] == 'R')
            i++;
    }
    for (int first = i; i < x->n; i++)
        if (strchr(x->op[i], '['))
            add_address(&s->reads, strchr(x->op[i], '['));
        else if (reg_of(x->op[i]) >= 0)
            set_add(&s->reads, reg_of(x->op[i]),
                    source_width(x->name, i - first + writes));
}

static int
copied(const Parts *x)
{
    if (begins(x->name, "MOV") && !begins(x->name, "MOVM") && x->n >= 2)
        return reg_of(x->op[1]);
    if (begins(x->name, "IMAD.MOV") && x->n == 4 && begins(x->op[1], "RZ"))
        return *x->op[3] == '-' ? -1 : reg_of(x->op[3]);
    return -1;
}

/* Registers that are put aside on the stack, or come back. */
static void
find_spill(Sass *s, const Parts *x)
{
    bool reload = begins(x->name, "LDL");
    int at = reload ? 1 : 0, reg = x->n == 2 ? reg_of(x->op[1 - at]) : -1;
    if (reg < 0 || !one_of(x->name, "LDL STL") || !begins(x->op[at], "[R1") ||
        !strchr("+]", x->op[at][3]))
        return;
    s->reload = reload;
    s->stack = (int)strtol(x->op[at] + (x->op[at][3] == '+' ? 4 : 3), NULL, 0) / 4;
    s->spill = reg;
    s->nspill = memory_width(x->name);
}

/* What flow.c wants to know: jumps and ends. */
static Insn
flow_of(const Parts *x, char *target)
{
    Insn i = {.op = "", .guarded = x->guard && strcmp(x->guard, "@PT") != 0};
    if (begins(x->name, "BRA") && target) {
        for (int j = 0; j < x->n; j++)
            i.guarded |= is_predicate(x->op[j]);
        i.op = "bra";
        i.arg[i.narg++] = target;
        i.guarded |= has_part(x->name, "DIV") || has_part(x->name, "CONV");
    } else if (begins(x->name, "EXIT") || begins(x->name, "KILL")) {
        i.op = "exit";
    } else if (begins(x->name, "RET") || begins(x->name, "BRX") ||
               begins(x->name, "JMP")) {
        i.op = "ret";
    }
    return i;
}

static char *
target_of(char *s)
{
    char *label = strstr(s, "`("), *number = strstr(s, " 0x");
    if (label) {
        label += 2;
        return label;
    }
    return number ? number + 1 : NULL;
}

static void
add_insn(Arena *a, Program *p, int *room, Insn i, Sass s)
{
    if (p->k.ninsn == *room) {
        *room = *room ? 2 * *room : 256;
        Sass *more = arena_calloc(a, (size_t)*room, sizeof *more, 8);
        if (p->sass)
            memcpy(more, p->sass, (size_t)p->k.ninsn * sizeof *more);
        p->sass = more;
    }
    p->sass[p->k.ninsn] = s;
    *PUSH(a, p->k.insn, p->k.ninsn) = i;
}

static void
instruction(Arena *a, Program *p, int *room, unsigned at, char *text)
{
    Sass s = {.at = at, .text = text, .copy = -1, .stack = -1, .left = -1};
    char *copy = arena_strndup(a, text, strlen(text)), *target = NULL;
    Parts x;
    if (strstr(copy, "BRA")) {
        target = target_of(arena_strndup(a, text, strlen(text)));
        if (target)
            target[strcspn(target, " ),;")] = '\0';
    }
    cut(&x, copy);
    find_gmma(a, p, &s, &x);
    if (!s.gmma) {
        find_registers(&s, &x);
        s.copy = copied(&x);
        find_spill(&s, &x);
    }
    s.guarded = x.guard != NULL;
    s.fence = begins(x.name, "WARPGROUP.ARRIVE");
    if (begins(x.name, "WARPGROUP.DEPBAR"))
        s.left = x.n > 1 ? (int)strtol(x.op[1], NULL, 0) : 0;
    p->nindirect += one_of(x.name, "BRX JMP JMX");
    add_insn(a, p, room, flow_of(&x, target), s);
}

/* ---------------------------------------------------------------- the text */

/* Labels where branches go to: cuobjdump has addresses instead. */
static void
label_targets(Arena *a, Program *p)
{
    Program old = *p;
    int room = 0;
    bool any = false;
    for (int i = 0; i < p->k.ninsn; i++)
        any |= p->k.insn[i].narg && begins(p->k.insn[i].arg[0], "0x");
    if (!any)
        return;
    p->k.insn = NULL, p->k.ninsn = 0, p->sass = NULL;
    for (int i = 0; i < old.k.ninsn; i++) {
        bool aimed = false;
        for (int j = 0; j < old.k.ninsn && !aimed; j++) {
            const Insn *b = &old.k.insn[j];
            aimed = b->narg && begins(b->arg[0], "0x") &&
                    strtoul(b->arg[0], NULL, 16) == old.sass[i].at;
        }
        if (aimed) {
            char name[24];
            int n = snprintf(name, sizeof name, "0x%x", old.sass[i].at);
            add_insn(a, p, &room, (Insn){.label = arena_strndup(a, name, (size_t)n)},
                     (Sass){.copy = -1, .stack = -1, .left = -1});
        }
        add_insn(a, p, &room, old.k.insn[i], old.sass[i]);
    }
}

static char *
trimmed(char *s)
{
    s += strspn(s, " \t");
    char *end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        *--end = '\0';
    return s;
}

Program *
sass_read(Arena *a, char *text, int *count)
{
    Program *all = NULL, *p = NULL;
    int room = 0;
    *count = 0;
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        char *s = trimmed(line), *name = NULL, *end;
        if (begins(s, ".text.") && s[strlen(s) - 1] == ':')
            name = s + strlen(".text.");
        else if (begins(s, "Function : "))
            name = s + strlen("Function : ");
        if (name) {
            p = PUSH(a, all, *count);
            room = 0;
            *p = (Program){.k = {.a = a}};
            p->k.name = arena_strndup(a, name, strcspn(name, ": "));
        } else if (p && begins(s, "/*") && (end = strstr(s, "*/")) && isxdigit(s[2])) {
            unsigned at = (unsigned)strtoul(s + 2, NULL, 16);
            char *body = trimmed(end + 2), *stop = strchr(body, ';');
            if (stop && *body && !begins(body, "/*")) {
                *stop = '\0';
                instruction(a, p, &room, at, trimmed(body));
            }
        } else if (p && *s && s[strlen(s) - 1] == ':') {
            s[strlen(s) - 1] = '\0';
            add_insn(a, p, &room, (Insn){.label = s},
                     (Sass){.copy = -1, .stack = -1, .left = -1});
        }
    }
    for (int i = 0; i < *count; i++) {
        label_targets(a, &all[i]);
        flow_find(&all[i].k);
    }
    return all;
}
