/* Arrays that grow, and files as text. */
#include "tests/record/record.h"

#include <string.h>

void *
record_room(Arena *a, void *array, size_t n, size_t size)
{
    if (n & (n - 1))
        return array; /* there is room up to the next power of two */
    void *more = arena_calloc(a, n ? 2 * n : 1, size, 16);
    if (n)
        memcpy(more, array, n * size);
    return more;
}

char *
record_text(Arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    int n = 0, c;
    if (!f) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return NULL;
    }
    while ((c = getc(f)) != EOF)
        *PUSH(a, text, n) = (char)c;
    fclose(f);
    *PUSH(a, text, n) = '\0';
    return text;
}
