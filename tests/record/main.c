/* ptxrecord: what a kernel's PTX does that a schedule decides.

       ptxrecord show FILE.ptx    the record of its kernels
       ptxrecord diff OLD NEW     what differs between two files of records, in words

   Exit status: 1 when records differ, 2 when a file cannot be read. tests/record/run
   makes, compares and writes the records of all shipped configurations. */
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

static char *
file_text(Arena *a, const char *path)
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

int
main(int argc, char **argv)
{
    Arena a;
    int status = 2, n;
    arena_init(&a, NULL, 0);
    if (argc == 3 && strcmp(argv[1], "show") == 0) {
        char *text = file_text(&a, argv[2]);
        Kernel *k = text ? ptx_read(&a, text, &n) : NULL;
        for (int j = 0; k && j < n; j++) {
            flow_find(&k[j]);
            show_kernel(&k[j], stdout);
        }
        status = k ? 0 : 2;
    } else if (argc == 4 && strcmp(argv[1], "diff") == 0) {
        char *before = file_text(&a, argv[2]), *after = file_text(&a, argv[3]);
        if (before && after)
            status = diff_records(&a, before, after, stdout);
    } else {
        fprintf(stderr, "usage: ptxrecord show FILE.ptx | ptxrecord diff OLD NEW\n");
    }
    arena_done(&a);
    return status;
}
