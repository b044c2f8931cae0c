/* sasscheck: are the registers of warpgroup matmuls left alone by machine code?

       sasscheck FILE.sass [FILE.ptx]    what nvdisasm -c or cuobjdump -sass print of a
                                         cubin, and the PTX that it was made of

   A line for each finding. Exit status: 1 when there is one, 2 when a file cannot be
   read. tests/gpu/assemble does so with all that it assembles. */
#include "tests/sass/sass.h"

#include <string.h>

static const Kernel *
of_name(Kernel *k, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(k[i].name, name) == 0) {
            flow_find(&k[i]);
            return &k[i];
        }
    return NULL;
}

int
main(int argc, char **argv)
{
    Arena a;
    int np = 0, nk = 0, found = 0, dots = 0;
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: sasscheck FILE.sass [FILE.ptx]\n");
        return 2;
    }
    arena_init(&a, NULL, 0);
    char *sass = record_text(&a, argv[1]);
    char *ptx = argc == 3 ? record_text(&a, argv[2]) : NULL;
    if (!sass || (argc == 3 && !ptx)) {
        arena_done(&a);
        return 2;
    }
    Program *p = sass_read(&a, sass, &np);
    Kernel *k = ptx ? ptx_read(&a, ptx, &nk) : NULL;
    for (int i = 0; i < np; i++) {
        found += sass_flight(&p[i], stdout);
        const Kernel *of = of_name(k, nk, p[i].k.name);
        if (of)
            found += sass_origin(&p[i], of, stdout);
        if (p[i].ngmma && p[i].nindirect)
            printf("%s: jumps to where a register says are not followed\n", p[i].k.name);
        dots += p[i].ngmma;
    }
    printf("%d functions, %d matmuls of warpgroups, %d findings\n", np, dots, found);
    arena_done(&a);
    return found > 0;
}
