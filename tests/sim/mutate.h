/* One change of a PTX text: tests break code so, and the simulator must notice. */
#ifndef SDC_TESTS_SIM_MUTATE_H
#define SDC_TESTS_SIM_MUTATE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What happens to the nth line that has the text (0: to all): its statement is dropped,
   the last operand or the predicate replaced, or the found text itself. */
typedef enum How { DROP, LAST, BARE, TEXT } How;
typedef struct Mutation {
    int subject;
    const char *line;
    int nth;
    How how;
    const char *text;
} Mutation;

/* What the mutation replaces around its place in the text. */
static void
span(const Mutation *m, const char *hit, const char **from, const char **to)
{
    *from = hit;
    *to = m->how == TEXT ? hit + strlen(m->line) : strchr(hit, ';');
    if (m->how == LAST)
        for (*from = *to; !strchr(", \t", (*from)[-1]);)
            --*from;
    if (m->how == DROP || m->how == BARE)
        while ((*from)[-1] != '\n')
            --*from;
    if (m->how == BARE)
        *to = hit;
    if (m->how == DROP && strstr(m->line, "try_wait")) { /* its loop, too */
        *from = strstr(*from, "again:");
        *to = strstr(hit, "over:");
    }
}

/* NULL: there is no such place. */
static char *
mutate(const char *ptx, const Mutation *m)
{
    char *out = malloc(2 * strlen(ptx) + 1);
    const char *copied = ptx, *search = ptx, *from, *to;
    size_t used = 0;
    int seen = 0, done = 0;
    for (const char *hit; (hit = strstr(search, m->line));) {
        search = hit + strlen(m->line);
        if (++seen != m->nth && m->nth)
            continue;
        span(m, hit, &from, &to);
        memcpy(out + used, copied, (size_t)(from - copied));
        used += (size_t)(from - copied);
        used += (size_t)sprintf(out + used, "%s", m->text ? m->text : "");
        copied = to;
        done++;
    }
    strcpy(out + used, copied);
    if (done)
        return out;
    free(out);
    return NULL;
}

#endif
