/* sdc: the command. */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int
dispatch(Cli *c, int argc, char **argv)
{
    bool done;
    if (argc == 2 && strcmp(argv[1], "worker") == 0)
        return cmd_worker(c);
    int status = options_parse(c, argc, argv, &done);
    if (done || status != EXIT_FINE)
        return status;
    switch (c->command) {
    case CMD_check: return cmd_check(c);
    case CMD_compile: return cmd_compile(c);
    case CMD_explain: return cmd_explain(c);
    case CMD_run: return cmd_run(c);
    case CMD_doctor: return cmd_doctor(c);
    case CMD_cache: return cmd_cache(c);
    case CMD_tune: return cmd_tune(c);
    case CMD_bench: return cmd_bench(c);
    case CMD_plot: return cmd_plot(c);
    case CMD_COUNT: break;
    }
    return EXIT_BUG;
}

int
main(int argc, char **argv)
{
    Cli c = {.argc = argc, .argv = argv};
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    c.color = isatty(STDERR_FILENO) && (!no_color || !*no_color) && term &&
              strcmp(term, "dumb") != 0;
    arena_init(&c.arena, &c.fail, 0);
    int status;
    if (setjmp(c.fail.env) == 0) {
        c.fail.set = 1;
        status = dispatch(&c, argc, argv);
    } else {
        status = cli_error(&c, EXIT_ENVIRONMENT, "%s", c.fail.message);
    }
    c.fail.set = 0;
    arena_done(&c.arena);
    /* A full disk behind the standard output shows only now, or has shown before. */
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == EXIT_FINE)
        status = cli_error(&c, EXIT_ENVIRONMENT, "cannot write the standard output%s%s",
                           errno ? ": " : "", errno ? strerror(errno) : "");
    return status;
}
