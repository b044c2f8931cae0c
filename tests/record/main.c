/* ptxrecord: what a kernel's PTX does that a schedule decides.

       ptxrecord show FILE.ptx    the record of its kernels
       ptxrecord diff OLD NEW     what differs between two files of records, in words

   Exit status: 1 when records differ, 2 when a file cannot be read. tests/record/run
   makes, compares and writes the records of all shipped configurations. */
#include "tests/record/record.h"

#include <string.h>

int
main(int argc, char **argv)
{
    Arena a;
    int status = 2, n;
    arena_init(&a, NULL, 0);
    if (argc == 3 && strcmp(argv[1], "show") == 0) {
        char *text = record_text(&a, argv[2]);
        Kernel *k = text ? ptx_read(&a, text, &n) : NULL;
        for (int j = 0; k && j < n; j++) {
            flow_find(&k[j]);
            show_kernel(&k[j], stdout);
        }
        status = k ? 0 : 2;
    } else if (argc == 4 && strcmp(argv[1], "diff") == 0) {
        char *before = record_text(&a, argv[2]), *after = record_text(&a, argv[3]);
        if (before && after)
            status = diff_records(&a, before, after, stdout);
    } else {
        fprintf(stderr, "usage: ptxrecord show FILE.ptx | ptxrecord diff OLD NEW\n");
    }
    arena_done(&a);
    return status;
}
