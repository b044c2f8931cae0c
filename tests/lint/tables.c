/* Writes a generated page of docs/: tables ops | passes. The lint compares, the target
   "docs" writes; "sdc doctor" prints the same pages. */
#include "runtime/cli/tables.h"

#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "ops") == 0)
        print_ops();
    else if (argc == 2 && strcmp(argv[1], "passes") == 0)
        print_passes();
    else
        return 2;
    return fflush(stdout) == 0 ? 0 : 1;
}
