/* What ptxas does not do as PTX says, and other words for it. The last step on PTX text,
   since LLVM's instruction selection chooses the words.

   neg.s16, abs.s16: the least number has no opposite, so PTX keeps it. When the result
   is widened ptxas (CUDA 12.8 to 13.0, and the driver's) negates the widened operand
   instead: of -32768 it makes 32768.

       neg.s16 r, x; cvt.s64.s16 y, r;      y = 32768
   =>
       mul.lo.s16 r, x, -1; cvt.s64.s16 y, r;

   sub.s16 from 0 is the same to ptxas as neg.s16.

   fence.proxy.async and nothing between it and wgmma.wait_group, in a loop: ptxas of CUDA
   12.9 ends with signal 11 at many of those. The two do not depend on each other, and a
   barrier or wgmma that the fence is for stands behind both: they change places. */
#include "codegen/gen.h"

#include "ir/base/util.h"

#include <string.h>

/* $ is the result, @ the operand. */
static const struct {
    const char *word, *instead;
} quirks[] = {
    {"neg.s16", "mul.lo.s16 $, @, -1"},
    {"abs.s16", "{.reg .b32 wide; cvt.s32.s16 wide, @; abs.s32 wide, wide; "
                "cvt.u16.u32 $, wide;}"},
};

typedef struct Text {
    char *at; /* NULL: only counted */
    size_t n;
} Text;

static void
put(Text *t, const char *s, size_t n)
{
    if (t->at)
        memcpy(t->at + t->n, s, n);
    t->n += n;
}

/* The operand that begins at or behind `s`: a register's name. */
static const char *
operand(const char *s, size_t *n)
{
    s += strspn(s, " \t,");
    *n = strcspn(s, " \t,;\n");
    return s;
}

/* `s` stands on the word of quirk i; returns where the text goes on, at its ';'. */
static const char *
rewrite(Text *t, int i, const char *s)
{
    size_t nr, nx;
    const char *r = operand(s + strlen(quirks[i].word), &nr);
    const char *x = operand(r + nr, &nx);
    for (const char *c = quirks[i].instead; *c; c++) {
        if (*c == '$')
            put(t, r, nr);
        else if (*c == '@')
            put(t, x, nx);
        else
            put(t, c, 1);
    }
    return x + nx + (quirks[i].instead[0] == '{'); /* a block ends without ';' */
}

/* The next word of a quirk from `s` on, or NULL; `which`: of which. */
static const char *
find(const char *s, int *which)
{
    const char *first = NULL;
    for (int i = 0; i < COUNT_OF(quirks); i++) {
        const char *at = strstr(s, quirks[i].word);
        if (at && (!first || at < first)) {
            first = at;
            *which = i;
        }
    }
    return first;
}

static void
copy(Text *t, const char *s)
{
    int i;
    for (const char *at; (at = find(s, &i)) != NULL;) {
        put(t, s, (size_t)(at - s));
        s = rewrite(t, i, at);
    }
    put(t, s, strlen(s));
}

static const char fence[] = "fence.proxy.async.shared::cta;";
static const char wait[] = "wgmma.wait_group.sync.aligned ";

/* The first statement at or behind `s`. */
static const char *
statement(const char *s)
{
    for (;;) {
        s += strspn(s, " \t\n");
        if (s[0] != '/' || s[1] != '/')
            return s;
        s += strcspn(s, "\n");
    }
}

/* The next fence from `s` on that a wait follows, or NULL; the wait in *w. */
static const char *
fenced_wait(const char *s, const char **w)
{
    while ((s = strstr(s, fence)) != NULL) {
        *w = statement(s + strlen(fence));
        if (strncmp(*w, wait, strlen(wait)) == 0)
            return s;
        s += strlen(fence);
    }
    return NULL;
}

/* Lets each such wait stand in front of its fence. */
static void
waits_first(char *ptx)
{
    const char *w;
    for (const char *at; (at = fenced_wait(ptx, &w)) != NULL;) {
        char *f = ptx + (at - ptx), number[16];
        size_t between = (size_t)(w - at) - strlen(fence);
        size_t n = strcspn(w, ";") + 1 - strlen(wait);
        if (n > sizeof number)
            return;
        memcpy(number, w + strlen(wait), n);
        memmove(f + strlen(wait) + n, f + strlen(fence), between);
        memcpy(f, wait, strlen(wait));
        memcpy(f + strlen(wait), number, n);
        ptx = f + strlen(wait) + n + between;
        memcpy(ptx, fence, strlen(fence));
    }
}

const char *
ptxas_quirks(Arena *a, const char *ptx, size_t *size)
{
    int i;
    const char *w;
    Text t = {0};
    if (!find(ptx, &i) && !fenced_wait(ptx, &w))
        return ptx;
    copy(&t, ptx);
    *size = t.n;
    t = (Text){.at = arena_array(a, char, *size + 1)};
    copy(&t, ptx);
    t.at[*size] = 0;
    waits_first(t.at);
    return t.at;
}
