/* Completions for shells, from the table options.def: commands, options, and the values
   of those that take one of a few words. */
#include "runtime/cli/cli.h"

#include <string.h>

static bool
takes_word(const OptionInfo *o)
{
    return o->kind != OPT_FLAG && o->kind != OPT_MAYBE;
}

/* "a|b|c" as "a b c". */
static void
put_words(const char *text, char *to, size_t size)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++)
        to[n++] = *text == '|' ? ' ' : *text;
    to[n] = '\0';
}

/* The words that an option of a command takes, "a b c"; NULL: any text. */
static const char *
option_values(const OptionInfo *o, CommandId id, char *to, size_t size)
{
    if (o == &option_info[O_target])
        return target_words(id, to, size);
    if (!takes_word(o) || !strchr(o->arg, '|'))
        return NULL;
    put_words(o->arg, to, size);
    return to;
}

/* The words that stand behind a command instead of a file; NULL: files. */
static const char *
operands_of(CommandId id, char *to, size_t size)
{
    if (!strchr(command_info[id].operand, '|'))
        return NULL;
    put_words(command_info[id].operand, to, size);
    return to;
}

/* Cases of "COMMAND OPTION" with the words that may follow. */
static void
bash_values(FILE *to)
{
    char text[256];
    for (int c = 0; c < CMD_COUNT; c++)
        for (int i = 0; i < OPTION_COUNT; i++) {
            const OptionInfo *o = &option_info[i];
            const char *values = option_values(o, (CommandId)c, text, sizeof text);
            if (!values || !(o->commands & (1u << c)))
                continue;
            fprintf(to, "    '%s --%s'", command_info[c].name, o->name);
            if (o->letter)
                fprintf(to, " | '%s -%c'", command_info[c].name, o->letter);
            fprintf(to, ") values='%s' ;;\n", values);
        }
}

/* Bash takes '=' for a word of its own. */
static void
complete_bash(FILE *to)
{
    char text[256];
    fputs("_sdc() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} cmd=${COMP_WORDS[1]} words= values=\n"
          "    local prev=${COMP_WORDS[COMP_CWORD-1]} operands=\n"
          "    [ \"$cur\" != = ] || cur=\n"
          "    [ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ] || [ \"$prev\" = help ]; then\n"
          "        words='",
          to);
    for (int c = 0; c < CMD_COUNT; c++)
        fprintf(to, "%s%s", c ? " " : "", command_info[c].name);
    fputs("'\n        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "        return\n    fi\n    case $cmd in\n",
          to);
    for (int c = 0; c < CMD_COUNT; c++) {
        const char *operands = operands_of((CommandId)c, text, sizeof text);
        fprintf(to, "    %s)\n        words='", command_info[c].name);
        for (int i = 0; i < OPTION_COUNT; i++)
            if (option_info[i].commands & (1u << c))
                fprintf(to, "--%s ", option_info[i].name);
        fprintf(to, "'\n        operands='%s'\n        ;;\n", operands ? operands : "");
    }
    fputs("    esac\n    case \"$cmd $prev\" in\n", to);
    bash_values(to);
    fputs("    esac\n"
          "    case $cur in\n"
          "    -*) COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
          "    *)\n"
          "        values=${values:-$operands}\n"
          "        if [ -n \"$values\" ]; then\n"
          "            COMPREPLY=($(compgen -W \"$values\" -- \"$cur\"))\n"
          "        else\n"
          "            COMPREPLY=($(compgen -f -- \"$cur\"))\n"
          "        fi\n"
          "        ;;\n"
          "    esac\n}\ncomplete -o filenames -F _sdc sdc\n",
          to);
}

/* Inside single quotes of a shell. */
static void
put_quoted(FILE *to, const char *text, const char *drop)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", to);
        else if (!strchr(drop, *text))
            fputc(*text, to);
    }
}

/* The options of a command as arguments of _arguments. */
static void
zsh_options(FILE *to, CommandId id)
{
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionInfo *o = &option_info[i];
        if (!(o->commands & (1u << id)))
            continue;
        fprintf(to, " \\\n            '%s--%s%s[", o->kind == OPT_LIST ? "*" : "",
                o->name, takes_word(o) ? "=" : "");
        char doc[DOC_MOST], text[256];
        put_quoted(to, option_doc(o, id, doc), "[]:");
        fputc(']', to);
        if (takes_word(o)) {
            const char *values = option_values(o, id, text, sizeof text);
            fputc(':', to);
            put_quoted(to, o->arg, "[]:");
            if (values)
                fprintf(to, ":(%s)", values);
            else
                fputs(":_files", to);
        }
        fputc('\'', to);
    }
}

static void
complete_zsh(FILE *to)
{
    fputs("#compdef sdc\n_sdc() {\n    local -a commands\n    commands=(\n", to);
    for (int c = 0; c < CMD_COUNT; c++) {
        fprintf(to, "        '%s:", command_info[c].name);
        put_quoted(to, command_info[c].doc, ":");
        fputs("'\n", to);
    }
    fputs("    )\n    if (( CURRENT == 2 )) || [[ $words[2] == help ]]; then\n"
          "        _describe command commands\n        return\n    fi\n"
          "    case $words[2] in\n",
          to);
    for (int c = 0; c < CMD_COUNT; c++) {
        char text[256];
        const char *operands = operands_of((CommandId)c, text, sizeof text);
        fprintf(to,
                "    %s)\n        shift words\n        (( CURRENT-- ))\n"
                "        _arguments",
                command_info[c].name);
        zsh_options(to, (CommandId)c);
        if (operands)
            fprintf(to, " \\\n            '1:action:(%s)'\n        ;;\n", operands);
        else
            fputs(" \\\n            '*:file:_files'\n        ;;\n", to);
    }
    fputs("    esac\n}\n_sdc \"$@\"\n", to);
}

static void
complete_fish(FILE *to)
{
    char text[256];
    for (int c = 0; c < CMD_COUNT; c++) {
        const char *name = command_info[c].name;
        const char *operands = operands_of((CommandId)c, text, sizeof text);
        fprintf(to, "complete -c sdc -n __fish_use_subcommand -f -a %s -d '", name);
        put_quoted(to, command_info[c].doc, "");
        fprintf(to, "'\ncomplete -c sdc -n '__fish_seen_subcommand_from help' -f -a %s\n",
                name);
        if (operands)
            fprintf(to,
                    "complete -c sdc -n '__fish_seen_subcommand_from %s' -f -a '%s'\n",
                    name, operands);
        for (int i = 0; i < OPTION_COUNT; i++) {
            const OptionInfo *o = &option_info[i];
            if (!(o->commands & (1u << c)))
                continue;
            fprintf(to, "complete -c sdc -n '__fish_seen_subcommand_from %s' -l %s", name,
                    o->name);
            if (o->letter)
                fprintf(to, " -s %c", o->letter);
            if (takes_word(o))
                fputs(" -r", to);
            const char *values = option_values(o, (CommandId)c, text, sizeof text);
            if (values)
                fprintf(to, " -f -a '%s'", values);
            fputs(" -d '", to);
            char doc[DOC_MOST];
            put_quoted(to, option_doc(o, (CommandId)c, doc), "");
            fputs("'\n", to);
        }
    }
}

bool
print_completion(FILE *to, const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        complete_bash(to);
    else if (strcmp(shell, "zsh") == 0)
        complete_zsh(to);
    else if (strcmp(shell, "fish") == 0)
        complete_fish(to);
    else
        return false;
    return true;
}
