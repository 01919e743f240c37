/* completion.c - completion scripts for bash, zsh and fish. */
#include "cli/manual_impl.h"

#include <stdlib.h>
#include <string.h>

/* Prints the names of all commands and the additional words of an argument "[COMMAND|dialects|providers]". */
static void command_words(FILE *f, const char *argument, const struct command *const *commands)
{
    for (; *commands; commands++)
        fprintf(f, "%s ", (*commands)->name);
    for (const char *p = strchr(argument, '|'); p; p = strchr(p + 1, '|'))
        fprintf(f, "%.*s ", (int)strcspn(p + 1, "|]"), p + 1);
}

/* ---- kinds of values and arguments --------------------------------------------------------------------- */

enum value_kind { VALUE_ANY, VALUE_WORDS, VALUE_FOLDER, VALUE_FILE };

static enum value_kind value_of(const struct option_spec *o)
{
    if (o->type == OPTION_CHOICE || (o->unit && strchr(o->unit, '|')))
        return VALUE_WORDS;
    if (o->unit && !strcmp(o->unit, "DIR"))
        return VALUE_FOLDER;
    return o->unit && !strcmp(o->unit, "FILE") ? VALUE_FILE : VALUE_ANY;
}

enum argument_kind {
    ARGUMENT_NONE,
    ARGUMENT_COMMAND,
    ARGUMENT_RUN,
    ARGUMENT_RUNNING,
    ARGUMENT_FOLDER,
    ARGUMENT_WORDS,
    ARGUMENT_FILE
};

static enum argument_kind argument_of(const struct command *c)
{
    static const struct {
        const char *text;
        enum argument_kind kind;
    } known[] = {
        {"", ARGUMENT_NONE},          {"[RUN]", ARGUMENT_RUN},    {"[RUN|DISPLAY]", ARGUMENT_RUNNING},
        {"[MODEL]", ARGUMENT_FOLDER}, {"[DIR]", ARGUMENT_FOLDER}, {"DIR", ARGUMENT_FOLDER}};
    const char *a = c->arguments;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(a, known[i].text))
            return known[i].kind;
    if (!strncmp(a, "[COMMAND", 8))
        return ARGUMENT_COMMAND;
    if (!strncmp(a, "TASK", 4))
        return ARGUMENT_NONE;
    return !strchr(a, ' ') && !strpbrk(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") ? ARGUMENT_WORDS : ARGUMENT_FILE;
}

/* Prints the words of "a|b|c[:N]", a, b and c, without shell metacharacters. */
static void put_words(FILE *f, const char *choices)
{
    bool optional = false;
    for (const char *p = choices; *p; p++) {
        optional = *p == '[' || (optional && *p != '|');
        if (!optional && (*p == '|' || !strchr("'\\()$`\"", *p)))
            fputc(*p == '|' ? ' ' : *p, f);
    }
}

/* Prints the part of an option's help before the first semicolon, for single quotes; `special` characters get
 * a backslash. */
static void put_help(FILE *f, const char *help, const char *special)
{
    for (const char *p = help; *p && *p != ';'; p++) {
        if (*p == '\'')
            continue;
        if (strchr(special, *p))
            fputc('\\', f);
        fputc(*p, f);
    }
}

#define RUNS "${HOLORUN_RUNS:-${XDG_STATE_HOME:-$HOME/.local/state}/holorun/runs}"

/* ---- bash ------------------------------------------------------------------------------------------- */

#define BASH_FOLDERS ") compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n"
#define BASH_FILES   ") compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
#define BASH_NOTHING ") compopt +o default; return ;;\n"

static void bash_words(FILE *f, const char *choices)
{
    fputs(") words=\"", f);
    put_words(f, choices);
    fputs("\" ;;\n", f);
}

/* Prints one case of the script per option with a value: its words, paths, or nothing. */
static void bash_values(FILE *f, const struct command *c)
{
    static const char *const actions[] = {
        [VALUE_ANY] = BASH_NOTHING, [VALUE_FOLDER] = BASH_FOLDERS, [VALUE_FILE] = BASH_FILES};
    for (const struct option_spec *o = c->options; o && o->name; o++) {
        if (o->type == OPTION_FLAG || o->type == OPTION_MAYBE || o->show == OPTION_SWITCH)
            continue;
        fprintf(f, "    %s:--%s", c->name, o->name);
        if (o->letter)
            fprintf(f, "|%s:-%c", c->name, o->letter);
        if (value_of(o) == VALUE_WORDS)
            bash_words(f, o->unit);
        else
            fputs(actions[value_of(o)], f);
    }
}

/* Prints the completion of an argument: a command, a word, a run, a directory, else files. */
static void bash_arguments(FILE *f, const struct command *c, const struct command *const *commands)
{
    static const char *const actions[] = {
        [ARGUMENT_NONE] = BASH_NOTHING,
        [ARGUMENT_RUN] = ") words=$(ls \"" RUNS "\" 2>/dev/null) ;;\n",
        [ARGUMENT_RUNNING] = ") words=$(holorun stop --list 2>/dev/null | cut -f 1) ;;\n",
        [ARGUMENT_FOLDER] = BASH_FOLDERS,
        [ARGUMENT_FILE] = ") return ;;\n"}; /* files: completed by bash itself */
    fprintf(f, "        %s", c->name);
    if (argument_of(c) == ARGUMENT_COMMAND) {
        fputs(") words=\"", f);
        command_words(f, c->arguments, commands);
        fputs("\" ;;\n", f);
    } else if (argument_of(c) == ARGUMENT_WORDS) {
        bash_words(f, c->arguments);
    } else {
        fputs(actions[argument_of(c)], f);
    }
}

static void bash_names(FILE *f, const struct command *c)
{
    fprintf(f, "        %s) words=\"--help", c->name);
    for (const struct option_spec *o = c->options; o && o->name; o++)
        if (o->show != OPTION_SWITCH)
            fprintf(f, " --%s%s", option_on_by_default(o) ? "no-" : "", o->name);
    fputs("\" ;;\n", f);
}

void manual_bash(const struct command *const *commands, FILE *f)
{
    fputs("# Completion of holorun in bash.  To use it: source <(holorun completion bash)\n"
          "_holorun() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$word\" = = ]; then\n"
          "        word=\n"
          "    elif [ \"$previous\" = = ]; then\n"
          "        previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    fi\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        COMPREPLY=($(compgen -W \"",
          f);
    for (const struct command *const *c = commands; *c; c++)
        fprintf(f, "%s ", (*c)->name);
    fputs(
        "--help --version\" -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]}:$previous in\n",
        f);
    for (const struct command *const *c = commands; *c; c++)
        bash_values(f, *c);
    fputs("    esac\n    if [ -z \"$words\" ] && [[ $word == -* ]]; then\n        case ${COMP_WORDS[1]} in\n",
          f);
    for (const struct command *const *c = commands; *c; c++)
        bash_names(f, *c);
    fputs("        esac\n    elif [ -z \"$words\" ]; then\n        case ${COMP_WORDS[1]} in\n", f);
    for (const struct command *const *c = commands; *c; c++)
        bash_arguments(f, *c, commands);
    fputs("        *) return ;;\n        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- "
          "\"$word\"))\n}\n"
          "complete -o default -F _holorun holorun\n",
          f);
}

/* ---- zsh -------------------------------------------------------------------------------------------- */

static void zsh_value(FILE *f, const struct option_spec *o)
{
    static const char *const actions[] = {
        [VALUE_ANY] = " ", [VALUE_FOLDER] = "_files -/", [VALUE_FILE] = "_files"};
    enum value_kind kind = value_of(o);
    fprintf(f, ":%s:", o->type == OPTION_CHOICE || !o->unit ? "value" : "");
    if (kind == VALUE_WORDS) {
        fputc('(', f);
        put_words(f, o->unit);
        fputc(')', f);
    } else {
        fputs(actions[kind], f);
    }
}

/* Prints an option as '(-m --model)'{-m,--model=}'[help]:value:action'. */
static void zsh_option(FILE *f, const struct option_spec *o)
{
    const char *no = option_on_by_default(o) ? "no-" : "", *begin = o->type == OPTION_LIST ? "*" : "";
    const char *equals = o->type == OPTION_FLAG ? "" : o->type == OPTION_MAYBE ? "=-" : "=";
    fputs("            ", f);
    if (o->letter && !*begin)
        fprintf(f, "'(-%c --%s%s)'{-%c%s,--%s%s%s}'[", o->letter, no, o->name, o->letter,
                o->type == OPTION_FLAG ? "" : "+", no, o->name, equals);
    else
        fprintf(f, "'%s--%s%s%s[", begin, no, o->name, equals);
    put_help(f, o->help ? o->help : "", "[]:");
    fputc(']', f);
    if (o->type == OPTION_MAYBE)
        fputc(':', f); /* the value may be absent */
    if (o->type != OPTION_FLAG)
        zsh_value(f, o);
    fputs("' \\\n", f);
}

static void zsh_argument(FILE *f, const struct command *c, const struct command *const *commands)
{
    switch (argument_of(c)) {
    case ARGUMENT_COMMAND:
        fputs("            ':command:(", f);
        command_words(f, c->arguments, commands);
        fputs(")' ;;\n", f);
        break;
    case ARGUMENT_RUN:
        fputs("            \":run:_files -W " RUNS "\" ;;\n", f);
        break;
    case ARGUMENT_RUNNING:
        fputs("            ':run:($(holorun stop --list 2>/dev/null | cut -f 1))' ;;\n", f);
        break;
    case ARGUMENT_WORDS:
        fputs("            ':word:(", f);
        put_words(f, c->arguments);
        fputs(")' ;;\n", f);
        break;
    default:
        fprintf(f, "            '*:argument:%s' ;;\n",
                argument_of(c) == ARGUMENT_FOLDER ? "_files -/"
                : argument_of(c) == ARGUMENT_FILE ? "_files"
                                                  : " ");
    }
}

void manual_zsh(const struct command *const *commands, FILE *f)
{
    fputs("#compdef holorun\n# Completion of holorun in zsh.  To use it: source <(holorun completion zsh)\n"
          "_holorun() {\n    local curcontext=$curcontext state line\n    local -a commands\n"
          "    _arguments -C '(- *)--help[explain the program]' '(- *)--version[print the version]' "
          "'1: :->command' '*:: :->rest' && return\n"
          "    case $state in\n    command)\n        commands=(\n",
          f);
    for (const struct command *const *c = commands; *c; c++) {
        fprintf(f, "            '%s:", (*c)->name);
        put_help(f, (*c)->purpose, ":");
        fputs("'\n", f);
    }
    fputs("        )\n        _describe command commands ;;\n    rest)\n        case $words[1] in\n", f);
    for (const struct command *const *c = commands; *c; c++) {
        fprintf(f,
                "        %s) _arguments -s \\\n            '(- *)'{-h,--help}'[explain this command]' \\\n",
                (*c)->name);
        for (const struct option_spec *o = (*c)->options; o && o->name; o++)
            if (o->show != OPTION_SWITCH)
                zsh_option(f, o);
        zsh_argument(f, *c, commands);
    }
    fputs("        esac ;;\n    esac\n}\n"
          "if [ \"$funcstack[1]\" = _holorun ]; then\n    _holorun \"$@\"\n"
          "else\n    compdef _holorun holorun\nfi\n",
          f);
}

/* ---- fish ------------------------------------------------------------------------------------------- */

static void fish_option(FILE *f, const struct command *c, const struct option_spec *o)
{
    fprintf(f, "complete -c holorun -n '__fish_seen_subcommand_from %s' -l %s%s", c->name,
            option_on_by_default(o) ? "no-" : "", o->name);
    if (o->letter)
        fprintf(f, " -s %c", o->letter);
    fputs(" -d '", f);
    put_help(f, o->help ? o->help : "", "\\");
    fputc('\'', f);
    if (o->type == OPTION_FLAG || o->type == OPTION_MAYBE) {
        fputs(" -f\n", f);
        return;
    }
    switch (value_of(o)) {
    case VALUE_WORDS:
        fputs(" -x -a '", f);
        put_words(f, o->unit);
        fputs("'\n", f);
        break;
    case VALUE_FOLDER:
        fputs(" -x -a '(__fish_complete_directories)'\n", f);
        break;
    default:
        fputs(value_of(o) == VALUE_FILE ? " -r -F\n" : " -x\n", f);
    }
}

static void fish_argument(FILE *f, const struct command *c, const struct command *const *commands)
{
    fprintf(f, "complete -c holorun -n '__fish_seen_subcommand_from %s' ", c->name);
    switch (argument_of(c)) {
    case ARGUMENT_COMMAND:
        fputs("-f -a '", f);
        command_words(f, c->arguments, commands);
        fputs("'\n", f);
        break;
    case ARGUMENT_RUN:
        fputs("-f -a '(sh -c \\'ls \"" RUNS "\" 2>/dev/null\\')'\n", f);
        break;
    case ARGUMENT_RUNNING:
        fputs("-f -a '(holorun stop --list 2>/dev/null | cut -f 1)'\n", f);
        break;
    case ARGUMENT_FOLDER:
        fputs("-f -a '(__fish_complete_directories)'\n", f);
        break;
    case ARGUMENT_WORDS:
        fputs("-f -a '", f);
        put_words(f, c->arguments);
        fputs("'\n", f);
        break;
    default:
        fputs(argument_of(c) == ARGUMENT_FILE ? "-F\n" : "-f\n", f);
    }
}

void manual_fish(const struct command *const *commands, FILE *f)
{
    fputs("# Completion of holorun in fish.  To use it: holorun completion fish | source\n"
          "complete -c holorun -n __fish_use_subcommand -f -l help -d 'explain the program'\n"
          "complete -c holorun -n __fish_use_subcommand -f -l version -d 'print the version'\n",
          f);
    for (const struct command *const *c = commands; *c; c++) {
        fprintf(f, "complete -c holorun -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        put_help(f, (*c)->purpose, "\\");
        fputs("'\n", f);
        fprintf(f,
                "complete -c holorun -n '__fish_seen_subcommand_from %s' -f -s h -l help -d 'show its "
                "help'\n",
                (*c)->name);
        for (const struct option_spec *o = (*c)->options; o && o->name; o++)
            if (o->show != OPTION_SWITCH)
                fish_option(f, *c, o);
        fish_argument(f, *c, commands);
    }
}
