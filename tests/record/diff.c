/* Two files of records in words. A configuration's lines are aligned by their longest
   common subsequence; what is left over between two lines that both have is paired by its
   first word. Configurations that changed alike are named together. */
#include "tests/record/record.h"

#include <stdarg.h>
#include <string.h>

typedef struct Line {
    const char *text;  /* without the number of a loop */
    const char *place; /* "loop 2 of role consumer" */
    int depth;
    bool holds; /* has lines below it */
} Line;

typedef struct Config {
    const char *name; /* the whole line after "config" */
    const char *regs; /* what ptxas says, or NULL */
    Line *line;
    int nline;
    bool seen;
} Config;

typedef struct File {
    const char *ptxas;
    Config *config;
    int nconfig;
} File;

typedef struct Words { /* text that grows */
    Arena *a;
    char *text;
    int n;
} Words;

static void __attribute__((format(printf, 2, 3))) say(Words *w, const char *format, ...)
{
    char more[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(more, sizeof more, format, args);
    va_end(args);
    for (const char *s = more; *s; s++)
        *PUSH(w->a, w->text, w->n) = *s;
    *PUSH(w->a, w->text, w->n) = '\0';
    w->n--;
}

static bool
begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* ---------------------------------------------------------------- reading */

enum { DEEP = 64 };

static const char *
place_of(Arena *a, char *const *above, int depth)
{
    const char *loop = NULL, *role = NULL, *entry = NULL;
    for (int d = 0; d < depth; d++) {
        if (!above[d])
            continue;
        loop = begins(above[d], "loop") ? above[d] : loop;
        role = begins(above[d], "role") ? above[d] : role;
        loop = begins(above[d], "role") ? NULL : loop;
        entry = begins(above[d], "entry") ? above[d] : entry;
    }
    if (loop || role)
        return arena_printf(a, "%s%s%s", loop ? loop : "", loop && role ? " of " : "",
                            role ? role : "");
    return entry ? "outside of loops" : "";
}

static void
read_line(Arena *a, Config *c, char **above, char *s)
{
    int depth = 0;
    for (; s[0] == ' ' && s[1] == ' ' && depth < DEEP - 1; s += 2)
        depth++;
    if (!depth && begins(s, "registers")) {
        c->regs = s;
        return;
    }
    Line *l = PUSH(a, c->line, c->nline);
    bool entry = begins(s, "entry");
    l->depth = depth;
    l->place = place_of(a, above, depth);
    l->text = s;
    if (c->nline > 1 && l[-1].depth < depth)
        l[-1].holds = true;
    above[depth] = entry ? arena_strndup(a, s, strcspn(s, ":")) : s;
    for (int d = depth + 1; d < DEEP; d++)
        above[d] = NULL;
}

static File
read_records(Arena *a, char *text)
{
    File f = {0};
    char *above[DEEP] = {NULL};
    for (char *s = text, *next; *s; s = next) {
        next = s + strcspn(s, "\n");
        if (*next)
            *next++ = '\0';
        if (begins(s, "config "))
            PUSH(a, f.config, f.nconfig)->name = s + strlen("config ");
        else if (begins(s, "ptxas "))
            f.ptxas = s;
        else if (*s && *s != '#' && f.nconfig)
            read_line(a, &f.config[f.nconfig - 1], above, s);
    }
    return f;
}

/* ---------------------------------------------------------------- words */

static size_t
first_word(const char *s)
{
    size_t n = begins(s, "also ") ? strlen("also ") : 0;
    return n + strcspn(s + n, " ");
}

/* The same instruction, with other operands or another predicate. */
static bool
alike(const Line *a, const Line *b)
{
    const char *x = a->text + (*a->text == '@'), *y = b->text + (*b->text == '@');
    size_t n = first_word(x);
    return n == first_word(y) && strncmp(x, y, n) == 0;
}

static const char *
plain(const char *text)
{
    return text + (begins(text, "also ") ? strlen("also ") : 0);
}

static void
say_place(Words *w, const Line *l)
{
    say(w, "    %s%s", l->place, *l->place ? ": " : "");
}

/* A line that one side alone has, and what is below it: how many lines. */
static int
say_alone(Words *w, const Line *l, int n, const char *what)
{
    int below = 0;
    while (l->holds && 1 + below < n && l[1 + below].depth > l->depth)
        below++;
    say_place(w, l);
    say(w, "%s is %s", plain(l->text), what);
    if (below)
        say(w, ", with %d lines in it", below);
    say(w, "\n");
    return 1 + below;
}

/* What stands between two lines that both sides have. */
static void
say_hunk(Words *w, const Line *a, int na, const Line *b, int nb)
{
    bool *used = arena_array(w->a, bool, nb + 1);
    for (int i = 0; i < na;) {
        int j = 0;
        while (j < nb && (used[j] || !alike(&a[i], &b[j])))
            j++;
        if (j == nb) {
            i += say_alone(w, &a[i], na - i, "gone");
            continue;
        }
        used[j] = true;
        if (strcmp(a[i].text, b[j].text) != 0) {
            say_place(w, &a[i]);
            say(w, "%s became %s\n", plain(a[i].text), plain(b[j].text));
        } else if (strcmp(a[i].place, b[j].place) != 0) {
            say_place(w, &a[i]);
            say(w, "%s moved to %s\n", plain(a[i].text), b[j].place);
        } else {
            say_place(w, &a[i]);
            say(w, "%s stands elsewhere\n", plain(a[i].text));
        }
        i++;
    }
    for (int j = 0; j < nb;)
        j += used[j] ? 1 : say_alone(w, &b[j], nb - j, "new");
}

static bool
equal(const Line *a, const Line *b)
{
    bool loops = begins(a->text, "loop ") && begins(b->text, "loop ");
    return a->depth == b->depth && (loops || strcmp(a->text, b->text) == 0);
}

static void
compare(Words *w, const Config *x, const Config *y)
{
    int n = x->nline, m = y->nline;
    int *common = arena_array(w->a, int, (n + 1) * (m + 1));
#define COMMON(i, j) common[(i) * (m + 1) + (j)]
    for (int i = n - 1; i >= 0; i--)
        for (int j = m - 1; j >= 0; j--) {
            int skip =
                COMMON(i + 1, j) > COMMON(i, j + 1) ? COMMON(i + 1, j) : COMMON(i, j + 1);
            COMMON(i, j) =
                equal(&x->line[i], &y->line[j]) ? 1 + COMMON(i + 1, j + 1) : skip;
        }
    for (int i = 0, j = 0; i < n || j < m;) {
        int i0 = i, j0 = j;
        while ((i < n || j < m) && !(i < n && j < m && equal(&x->line[i], &y->line[j])))
            if (j == m || (i < n && COMMON(i + 1, j) >= COMMON(i, j + 1)))
                i++;
            else
                j++;
        say_hunk(w, &x->line[i0], i - i0, &y->line[j0], j - j0);
        i++;
        j++;
    }
#undef COMMON
}

/* "registers 168, spills 0, stack 0": each that differs. */
static void
compare_registers(Words *w, const char *x, const char *y)
{
    for (int n = 0; *x && *y; n++) {
        size_t name = strcspn(x, " ");
        long a = strtol(x + name, NULL, 10), b = strtol(y + name, NULL, 10);
        if (a != b)
            say(w, "    %.*s %ld -> %ld\n", (int)name, x, a, b);
        x += strcspn(x, ",");
        y += strcspn(y, ",");
        x += strspn(x, ", ");
        y += strspn(y, ", ");
    }
}

/* "flash_attention_fwd on sm_90a, 8 warps, 3 stages, fp16, HEAD_DIM=128 BLOCK_M=64": the
   arguments that are constants, and the type of the first. */
static const char *
short_name(Arena *a, const char *name)
{
    char arch[32], kernel[96], stages[32], out[512], type[16] = "";
    int warps, at = 0, used;
    if (sscanf(name, "%31s %95s %d %31s %n", arch, kernel, &warps, stages, &at) < 4)
        return name;
    used = snprintf(out, sizeof out, "%s on %s, %d warps, %d stages", kernel, arch, warps,
                    atoi(stages));
    const char *s = name + at, *star = strchr(s, '*');
    if (star && sscanf(star, "*%15[a-z0-9]", type) == 1)
        used += snprintf(out + used, sizeof out - (size_t)used, ", %s", type);
    for (const char *sep = ", "; *s; s += strcspn(s, ","), s += *s == ',') {
        size_t n = strcspn(s, ","), name_end = strcspn(s, "=");
        if (name_end < n && *s >= 'A' && *s <= 'Z' && s[1] >= 'A' &&
            !strchr("*if", s[name_end + 1]) && (size_t)used + n + 3 < sizeof out) {
            used +=
                snprintf(out + used, sizeof out - (size_t)used, "%s%.*s", sep, (int)n, s);
            sep = " ";
        }
    }
    return arena_printf(a, "%s", out);
}

int
diff_records(Arena *a, char *before, char *after, FILE *out)
{
    File x = read_records(a, before), y = read_records(a, after);
    bool regs = x.ptxas && y.ptxas && strcmp(x.ptxas, y.ptxas) == 0;
    const char **what = arena_array(a, const char *, x.nconfig + 1);
    int differ = 0;
    for (int i = 0; i < x.nconfig; i++) {
        Words w = {.a = a};
        int j = 0;
        while (j < y.nconfig && strcmp(x.config[i].name, y.config[j].name) != 0)
            j++;
        if (j == y.nconfig) {
            what[i] = "    is gone\n";
            continue;
        }
        y.config[j].seen = true;
        compare(&w, &x.config[i], &y.config[j]);
        if (regs && x.config[i].regs && y.config[j].regs)
            compare_registers(&w, x.config[i].regs, y.config[j].regs);
        what[i] = w.text;
    }
    for (int i = 0; i < x.nconfig; i++) {
        if (!what[i])
            continue;
        for (int j = i; j < x.nconfig; j++)
            if (what[j] && strcmp(what[i], what[j]) == 0) {
                fprintf(out, "%s\n", short_name(a, x.config[j].name));
                what[j] = j == i ? what[j] : NULL;
                differ++;
            }
        fprintf(out, "%s", what[i]);
    }
    for (int j = 0; j < y.nconfig; j++)
        if (!y.config[j].seen) {
            fprintf(out, "%s\n    is new\n", short_name(a, y.config[j].name));
            differ++;
        }
    if (differ)
        fprintf(out, "%d of %d configurations differ\n", differ, x.nconfig);
    return differ > 0;
}
