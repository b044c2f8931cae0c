/* Parsing of the command line from the table options.def. Options and operand come in any
   order; "--" ends the options; --name=value and --name value, -n value and -nvalue are
   the same. */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const CommandInfo command_info[CMD_COUNT] = {
#define COMMAND(id, name, operand, doc) [CMD_##id] = { name, operand, doc },
#define OPTION(...)
#include "runtime/cli/options.def"
};

const OptionInfo option_info[OPTION_COUNT] = {
#define COMMAND(...)
#define OPTION(field, letter, name, arg, kind, commands, doc)                            \
    [O_##field] = { letter, name, arg, OPT_##kind, commands, doc },
#include "runtime/cli/options.def"
};

/* Letters to change for one word to become the other; small words only. */
static int
distance(const char *a, const char *b)
{
    enum { MOST = 24 };
    int row[MOST + 1];
    int n = (int)strlen(b);
    if (n > MOST || strlen(a) > MOST)
        return MOST;
    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            int cost = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int least = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
            row[j] = cost < least ? cost : least;
        }
    }
    return row[n];
}

static const char *
nearest_command(const char *word)
{
    const char *best = NULL;
    int least = 3;
    for (int i = 0; i < CMD_COUNT; i++) {
        int d = distance(word, command_info[i].name);
        if (d < least) {
            least = d;
            best = command_info[i].name;
        }
    }
    return best;
}

static const char *
nearest_option(const char *word, unsigned command)
{
    const char *best = NULL;
    int least = 3;
    for (int i = 0; i < OPTION_COUNT; i++) {
        int d = distance(word, option_info[i].name);
        if (d < least && option_info[i].commands & command) {
            least = d;
            best = option_info[i].name;
        }
    }
    return best;
}

/* A choice "a|b|c" holds the text. */
static bool
in_choice(const char *choice, const char *text)
{
    size_t n = strlen(text);
    for (const char *p = choice; n && p; p = strchr(p, '|')) {
        p += *p == '|';
        if (strncmp(p, text, n) == 0 && (p[n] == '|' || !p[n]))
            return true;
    }
    return false;
}

const char *
target_words(CommandId id, char *to, size_t size)
{
    size_t n = 0;
    if (1u << id & (C_LAUNCH | C_DOCTOR))
        n = (size_t)snprintf(to, size, "cuda ");
    for (const char *p = id == CMD_doctor ? "" : sdc_targets(); *p && n + 1 < size; p++)
        if (*p != ',')
            to[n++] = *p;
    to[n - (n > 0 && to[n - 1] == ' ')] = '\0';
    return to;
}

/* Is every target of the text, "sm_90a,cpu", one of the command's? */
static int
check_targets(Cli *c, const char *text)
{
    char words[256];
    bool several = 1u << c->command & (C_COMPILE | C_CHECK);
    target_words(c->command, words, sizeof words);
    for (const char *p = text; *p;) {
        size_t n = several ? strcspn(p, ",") : strlen(p);
        bool known = false;
        for (const char *w = words; *w && !known; w += strspn(w, " ")) {
            size_t len = strcspn(w, " ");
            known = n == len && memcmp(w, p, n) == 0;
            w += len;
        }
        if (!known)
            return cli_error(c, EXIT_USAGE, "sdc %s has no target '%.*s': %s",
                             command_info[c->command].name, (int)n, p, words);
        p += n + (p[n] == ',');
    }
    return EXIT_FINE;
}

static int
set_option(Cli *c, OptionId id, const char *text)
{
    const OptionInfo *o = &option_info[id];
    OptionValue *v = &c->opt[id];
    v->given++;
    v->text = text;
    if (o->kind == OPT_LIST) {
        vec_push(&c->arena, &v->list, text);
        return EXIT_FINE;
    }
    if (o->kind == OPT_NUMBER) {
        char *end;
        errno = 0;
        v->number = strtoll(text, &end, 10);
        if (end == text || *end || errno || v->number < 0 || v->number > INT32_MAX)
            return cli_error(c, EXIT_USAGE, "--%s needs a whole number, not '%s'",
                             o->name, text);
    }
    if (o->kind == OPT_TEXT && strchr(o->arg, '|') && !in_choice(o->arg, text))
        return cli_error(c, EXIT_USAGE, "--%s is one of %s, not '%s'", o->name, o->arg,
                         text);
    if (v->given > 1 && o->kind != OPT_FLAG)
        return cli_error(c, EXIT_USAGE, "--%s is given twice", o->name);
    return id == O_target ? check_targets(c, text) : EXIT_FINE;
}

static int
unknown_option(Cli *c, const char *arg, const char *name)
{
    const char *near = nearest_option(name, 1u << c->command);
    int status = cli_error(c, EXIT_USAGE, "'%s' has no option '%s'",
                           command_info[c->command].name, arg);
    if (near)
        cli_note(c, "did you mean '--%s'?", near);
    else
        cli_note(c, "'sdc %s --help' lists the options", command_info[c->command].name);
    return status;
}

/* Handles argv[*i]; may take the next one as its argument. */
static int
parse_option(Cli *c, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    const char *value = NULL;
    int id = 0;
    char name[64] = "";
    if (arg[1] == '-') {
        size_t n = strcspn(arg + 2, "=");
        snprintf(name, sizeof name, "%.*s", (int)min_i64((int64_t)n, 60), arg + 2);
        value = arg[2 + n] ? arg + 3 + n : NULL;
        while (id < OPTION_COUNT && (!(option_info[id].commands & (1u << c->command)) ||
                                     strlen(option_info[id].name) != n ||
                                     strncmp(option_info[id].name, arg + 2, n) != 0))
            id++;
    } else {
        snprintf(name, sizeof name, "%c", arg[1]);
        value = arg[2] ? arg + 2 + (arg[2] == '=') : NULL;
        while (id < OPTION_COUNT && option_info[id].letter != arg[1])
            id++;
    }
    if (id == OPTION_COUNT || !(option_info[id].commands & (1u << c->command)))
        return unknown_option(c, arg, name);
    if (option_info[id].kind == OPT_FLAG) {
        if (value)
            return cli_error(c, EXIT_USAGE, "'%s' takes no value", arg);
        return set_option(c, (OptionId)id, "");
    }
    if (option_info[id].kind == OPT_MAYBE) {
        if (value && !in_choice(option_info[id].arg, value))
            return cli_error(c, EXIT_USAGE, "--%s is followed by nothing or '=%s'",
                             option_info[id].name, option_info[id].arg);
        return set_option(c, (OptionId)id, value ? value : "");
    }
    if (!value) {
        if (++*i >= argc)
            return cli_error(c, EXIT_USAGE, "'%s' needs a value: %s", arg,
                             option_info[id].arg);
        value = argv[*i];
    }
    return set_option(c, (OptionId)id, value);
}

static int
parse_command(Cli *c, const char *word)
{
    for (int i = 0; i < CMD_COUNT; i++) {
        if (strcmp(word, command_info[i].name) == 0) {
            c->command = (CommandId)i;
            return EXIT_FINE;
        }
    }
    const char *near = nearest_command(word);
    int status = cli_error(c, EXIT_USAGE, "there is no command '%s'", word);
    if (near)
        cli_note(c, "did you mean 'sdc %s'?", near);
    else if (strchr(word, '.'))
        cli_note(c, "'sdc check %s' lists its kernels, 'sdc run %s' runs one", word,
                 word);
    else
        cli_note(c, "'sdc --help' lists the commands");
    return status;
}

/* n=1000 without what it belongs to is taken for one. */
static int
second_file(Cli *c, const char *word)
{
    int status = cli_error(c, EXIT_USAGE, "one file at a time: '%s' and '%s' are given",
                           c->file, word);
    if (strchr(word, '=') && option_info[O_bind].commands & (1u << c->command))
        cli_note(c, option_info[O_arg].commands & (1u << c->command)
                        ? "-a %s is an argument, -c %s a constexpr"
                        : "-c %s is a constexpr",
                 word, word);
    return status;
}

int
options_parse(Cli *c, int argc, char **argv, bool *done)
{
    const char *first = argc > 1 ? argv[1] : "";
    *done = true;
    if (argc < 2) {
        help_all(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0) {
        help_all(stdout);
        return EXIT_FINE;
    }
    if (strcmp(first, "--version") == 0) {
        printf("sdc %s\n", sdc_version());
        return EXIT_FINE;
    }
    if (strcmp(first, "help") == 0) {
        if (argc < 3) {
            help_all(stdout);
            return EXIT_FINE;
        }
        int status = parse_command(c, argv[2]);
        if (status == EXIT_FINE)
            help_command(stdout, c->command);
        return status;
    }
    int status = parse_command(c, first);
    bool options = true;
    for (int i = 2; i < argc && status == EXIT_FINE; i++) {
        if (options && strcmp(argv[i], "--") == 0)
            options = false;
        else if (options && argv[i][0] == '-' && argv[i][1])
            status = parse_option(c, argc, argv, &i);
        else if (c->file && c->command != CMD_check && c->command != CMD_plot)
            status = second_file(c, argv[i]);
        else {
            c->file = c->file ? c->file : argv[i];
            vec_push(&c->arena, &c->files, argv[i]);
        }
    }
    if (status == EXIT_FINE && c->opt[O_help].given) {
        help_command(stdout, c->command);
        return EXIT_FINE;
    }
    *done = false;
    if (status == EXIT_FINE && !c->file &&
        strncmp(command_info[c->command].operand, "FILE", 4) == 0)
        status =
            cli_error(c, EXIT_USAGE, "'sdc %s' needs a file; 'sdc %s --help' shows how",
                      command_info[c->command].name, command_info[c->command].name);
    return status;
}
