/* The command line: options, exit statuses and what the commands share. This is the only
   part of sdc that prints and exits. */
#ifndef SDC_CLI_H
#define SDC_CLI_H

#include "ir/base/arena.h"
#include "ir/base/str.h"
#include "ir/base/util.h"
#include "ir/base/vec.h"
#include "runtime/sdc.h"

#include <stdio.h>

/* Exit statuses. */
enum {
    EXIT_FINE = 0,
    EXIT_INPUT = 1,
    EXIT_USAGE = 2,
    EXIT_ENVIRONMENT = 3,
    EXIT_BUG = 70
};

typedef enum CommandId {
#define COMMAND(id, name, operand, doc) CMD_##id,
#define OPTION(...)
#include "runtime/cli/options.def"
    CMD_COUNT
} CommandId;

enum {
    C_CHECK = 1 << CMD_check,
    C_COMPILE = 1 << CMD_compile,
    C_EXPLAIN = 1 << CMD_explain,
    C_RUN = 1 << CMD_run,
    C_DOCTOR = 1 << CMD_doctor,
    C_CACHE = 1 << CMD_cache,
    C_TUNE = 1 << CMD_tune,
    C_BENCH = 1 << CMD_bench,
    C_PLOT = 1 << CMD_plot,
    C_LAUNCH = C_RUN | C_TUNE | C_BENCH, /* those that have arguments and a grid */
    C_SOURCE = C_CHECK | C_COMPILE | C_EXPLAIN | C_LAUNCH,
    C_ALL = (1 << CMD_COUNT) - 1
};

typedef enum OptionKind {
    OPT_FLAG,
    OPT_TEXT,
    OPT_LIST,
    OPT_NUMBER,
    OPT_MAYBE
} OptionKind;

typedef Vec(const char *) TextList;

/* One field an option; `given` counts how often. */
typedef struct OptionValue {
    const char *text;
    TextList list;
    int64_t number;
    int given;
} OptionValue;

typedef struct OptionInfo {
    char letter;
    const char *name, *arg;
    OptionKind kind;
    unsigned commands;
    const char *doc;
} OptionInfo;

typedef enum OptionId {
#define COMMAND(...)
#define OPTION(field, letter, name, arg, kind, commands, doc) O_##field,
#include "runtime/cli/options.def"
    OPTION_COUNT
} OptionId;

typedef struct CommandInfo {
    const char *name, *operand, *doc;
} CommandInfo;

extern const CommandInfo command_info[CMD_COUNT];
extern const OptionInfo option_info[OPTION_COUNT];

typedef struct Cli {
    Arena arena;
    FailPoint fail;
    CommandId command;
    const char *file; /* the operand; "-": standard input */
    TextList files;   /* check, plot: all of them */
    OptionValue opt[OPTION_COUNT];
    bool color; /* of the standard error */
    int argc; /* as the process was started */
    char **argv;
} Cli;

/* Messages to the standard error. cli_error returns its status, for "return
   cli_error(..". */
int cli_error(const Cli *c, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);
void cli_note(const Cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void cli_warning(const Cli *c, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Reads the command line. EXIT_FINE to go on; otherwise print nothing more and leave,
   with done true when that is a success (--help). */
int options_parse(Cli *c, int argc, char **argv, bool *done);

void help_all(FILE *to);
void help_command(FILE *to, CommandId id);
void print_man(FILE *to);
bool print_completion(FILE *to, const char *shell);

/* What an option does for this command: clauses that begin with the names of others are
   left out. */
enum { DOC_MOST = 1024 };
/* The targets of a command, "cuda cpu sm_80", in `to`. */
const char *target_words(CommandId id, char *to, size_t size);
const char *option_doc(const OptionInfo *o, CommandId id, char out[DOC_MOST]);

/* cmd_bundle.c: several targets or signatures, or a header, are asked of sdc compile. */
bool wants_bundle(const Cli *c);
int compile_bundle(Cli *c);

/* Source files in a folder and those below it that may hold kernels, in order of their
   names; false after an error. */
bool find_sources(Cli *c, const char *dir, TextList *out);
bool is_folder(const char *path);

int cmd_check(Cli *c);
int cmd_compile(Cli *c);
int cmd_explain(Cli *c);
int cmd_run(Cli *c);
int cmd_doctor(Cli *c);
int cmd_cache(Cli *c);
int cmd_tune(Cli *c);
int cmd_bench(Cli *c);
int cmd_plot(Cli *c);
int cmd_worker(Cli *c);

/* The context that the options ask for, and the module of the operand. On failure the
   message is printed and the exit status returned. */
int open_module(Cli *c, SdcContext **cx, SdcModule **mod);
/* The same, but what the library says is not reported: it is in *got. */
int load_module(Cli *c, SdcContext **cx, SdcModule **mod, SdcStatus *got);
/* Prints the context's message, writes a reproducer after an internal error, and returns
   the exit status that belongs to `status`. */
int report_status(Cli *c, SdcContext *cx, SdcStatus status);
/* -c, --num-warps and --num-stages as bindings. */
const char *const *bindings(Cli *c, int *n);

/* A whole file as text; NULL after an error. */
const char *read_file_text(Cli *c, const char *path);

/* Writes a file whole or not at all: to a temporary beside it, then renamed. "-" and what
   has no name (a pipe, /dev/stdout) are written directly. Never over the command's own
   input. */
int write_file(const Cli *c, const char *path, const void *bytes, size_t size);

/* Says on the standard error what takes so long, when it is a terminal and a second has
   passed. */
typedef struct Progress Progress;
Progress *progress_start(const char *what);
void progress_stop(Progress *p);

#endif
