/* Does a test's source call every function of a public header? */
#ifndef SDC_TESTS_UNIT_ALL_CALLED_H
#define SDC_TESTS_UNIT_ALL_CALLED_H

#include <check.h>
#include <stdio.h>
#include <string.h>

static inline void
all_called_read(const char *path, char *to, size_t size)
{
    char whole[600];
    snprintf(whole, sizeof whole, "%s/%s", SDC_ROOT, path);
    FILE *f = fopen(whole, "r");
    ck_assert_msg(f != NULL, "%s", whole);
    to[fread(to, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* The number of functions; fails the test that asks when one is not called. `mark` stands
   in front of each, "\nSDC_API "; `behind` behind its name in the test, "(", or "" where
   one may also be called by its address. */
static inline int
all_called(const char *header, const char *mark, const char *behind, const char *test)
{
    static char text[1 << 17], self[1 << 17];
    int n = 0;
    all_called_read(header, text, sizeof text);
    all_called_read(test, self, sizeof self);
    for (const char *p = text; (p = strstr(p, mark)) != NULL; p++) {
        const char *open = strchr(p, '('), *name = open;
        while (name[-1] == '_' || (name[-1] >= 'a' && name[-1] <= 'z'))
            name--;
        char call[80];
        snprintf(call, sizeof call, "%.*s%s", (int)(open - name), name, behind);
        ck_assert_msg(strstr(self, call) != NULL, "%s is not called", call);
        n++;
    }
    return n;
}

#endif
