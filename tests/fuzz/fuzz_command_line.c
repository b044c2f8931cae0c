/* Command lines: arguments, one a line, through the parser of options. Nothing is run. */
#include "runtime/cli/cli.h"
#include "tests/fuzz/words.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 40 };

static void
parse(int argc, char **argv)
{
    Cli c = {0};
    bool done;
    arena_init(&c.arena, &c.fail, (size_t)64 << 20);
    if (setjmp(c.fail.env) == 0) {
        c.fail.set = 1;
        int status = options_parse(&c, argc, argv, &done);
        if (status != EXIT_FINE && status != EXIT_USAGE)
            abort();
        if (status == EXIT_FINE && !done) {
            int n;
            bindings(&c, &n);
            wants_bundle(&c);
        }
    }
    c.fail.set = 0;
    arena_done(&c.arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    char *argv[MOST + 2] = {"sdc"};
    int argc = 1;
    if (size > 4000 || memchr(data, '\0', size))
        return -1;
    if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
        abort();
    char *text = strndup((const char *)data, size);
    if (!text)
        return 0;
    for (char *p = text; p && argc <= MOST; argc++) {
        argv[argc] = p;
        if ((p = strchr(p, '\n')))
            *p++ = '\0';
    }
    /* What it prints is not looked at, and would drown what the fuzzer says. */
    FILE *out = stdout, *err = stderr;
    stdout = stderr = nowhere;
    parse(argc, argv);
    stdout = out;
    stderr = err;
    free(text);
    return 0;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    static const char *const words[] = {
#define COMMAND(id, name, operand, doc) name,
#define OPTION(field, letter, name, ...) "--" name,
#include "runtime/cli/options.def"
        "-k", "-s", "-c", "-g", "-a", "-o", "-h", "--", "-", "=", "sm_80", "cpu", "cuda",
        "a.tk", "9223372036854775808", "-1", "0", "--help", "help", "--version",
    };
    return words_mutate(data, size, max, seed, words, sizeof words / sizeof *words);
}
