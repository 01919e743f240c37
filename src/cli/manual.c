/* manual.c - see manual.h.
 *
 * Three renderings of the same tables.  No option is named here: its row says everything, so the manual
 * is complete.
 */
#include "cli/manual.h"

#include "base/bar.h"
#include "cli/version.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMN = 26, COLUMN_NARROW = 8, NARROW = 60, WIDTH = 96, WIDTH_MIN = 32 };

/* Width of the terminal, within reason. */
static int width(void)
{
    int columns = bar_columns(WIDTH);
    return columns < WIDTH_MIN ? WIDTH_MIN : columns < WIDTH ? columns : WIDTH;
}

static int option_column(void)
{
    return width() < NARROW ? COLUMN_NARROW : COLUMN;
}

static const char general_exit[] =
    "0 answered; 1 answered that it cannot be done; 2 wrong usage; 3 the environment failed (no display, "
    "disk full); 4 the model failed; 5 inconclusive (going in circles); 6 step or token budget used up; "
    "124 time budget used up; 130 stopped, by a person or a signal";

static const char environment_and_files[] =
    ".TP\n.B XDG_STATE_HOME, XDG_CACHE_HOME, XDG_RUNTIME_DIR\nwhere the folders below are.\n"
    ".TP\n.B NO_COLOR\nwhen it is not empty, progress has no colours.\n"
    ".SH FILES\n"
    ".TP\n.I $XDG_STATE_HOME/holorun/runs\nrun directories (by default below ~/.local/state); each holds "
    "run.json, events.jsonl, frames/ and report.html.\n"
    ".TP\n.I $XDG_STATE_HOME/holorun/eval\nresults of holorun eval, one file for each time.\n"
    ".TP\n.I $XDG_CACHE_HOME/holorun\nweights in smaller numbers, made once (by default below ~/.cache); "
    "may be deleted.\n"
    ".TP\n.I $XDG_RUNTIME_DIR/holorun/held\\-DISPLAY.json\nwhat is pressed on a display, "
    "and a lock beside the server's own "
    "(without XDG_RUNTIME_DIR in /tmp/holorun\\-UID).\n"
    ".TP\n.I $XDG_RUNTIME_DIR/holorun/stop\na number of seconds since 1970 in it, later than a run began, "
    "stops that run; nothing in it, and the time of the file counts.\n"
    ".TP\n.I $XDG_RUNTIME_DIR/holorun/stop\\-PID\nthe same for the run of one process.\n"
    ".TP\n.I $XDG_RUNTIME_DIR/holorun/run\\-PID.json\na run that is under way: display, run directory, "
    "task.\n"
    ".TP\n.I MODEL/holorun.json\ndialect and coordinates of a model, as holorun calibrate has kept them.\n";

/* A paragraph whose lines stay as they are, such as the keys of a file. */
static bool is_layout(const char *paragraph)
{
    return !strncmp(paragraph, "  ", 2);
}

/* Text in lines of at most width() columns, each after the first indented. */
static void wrapped(FILE *f, const char *text, int column, int indent)
{
    int most = width();
    while (*text) {
        int word = (int)strcspn(text, " \n");
        if (column > indent && column + word + 1 > most) {
            fprintf(f, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', f);
            column++;
        }
        fprintf(f, "%.*s", word, text);
        column += word;
        text += word;
        if (!strncmp(text, "\n\n", 2)) {
            fprintf(f, "\n\n%*s", indent, "");
            column = indent;
        }
        text += strspn(text, " \n");
    }
    fputc('\n', f);
}

/* The next paragraph of a text, which the caller frees; NULL: none. */
static char *next_paragraph(const char **text)
{
    const char *begin = *text, *gap = strstr(begin, "\n\n");
    if (!*begin)
        return NULL;
    *text = gap ? gap + 2 : begin + strlen(begin);
    return xasprintf("%.*s", (int)((gap ? gap : *text) - begin), begin);
}

/* The paragraphs of a text, with empty lines between them; one that begins with two spaces stays as it is. */
static void paragraphs(FILE *f, const char *text)
{
    for (char *one; (one = next_paragraph(&text)); free(one)) {
        if (is_layout(one))
            fprintf(f, "%s\n", one);
        else
            wrapped(f, one, 0, 0);
        if (*text)
            fputc('\n', f);
    }
}

static bool on_by_default(const struct option_spec *o)
{
    return o->type == OPTION_FLAG && o->standard && !strcmp(o->standard, "yes");
}

static void option_remark(const struct option_spec *o, char *out, size_t size)
{
    bool number = o->type == OPTION_INT || o->type == OPTION_NUMBER;
    size_t n = (size_t)snprintf(out, size, "%s%s", on_by_default(o) ? "do not " : "", o->help ? o->help : "");
    if (number && n < size && o->max < 1e6) /* larger bounds only keep the arithmetic safe */
        n += (size_t)snprintf(out + n, size - n, "; %.12g to %.12g", o->min, o->max);
    if (o->standard && o->type != OPTION_FLAG && n < size)
        n += (size_t)snprintf(out + n, size - n, " [%s]", o->standard);
    if (o->variable && n < size)
        snprintf(out + n, size - n, " ($%s)", o->variable);
}

/* "--max-steps N"; a flag that is on by default is shown as the way to switch it off. */
static void option_spelling(const struct option_spec *o, char *out, size_t size)
{
    bool maybe = o->type == OPTION_MAYBE;
    snprintf(out, size, "--%s%s%s%s%s", on_by_default(o) ? "no-" : "", o->name,
             maybe     ? "[="
             : o->unit ? " "
                       : "",
             o->unit ? o->unit : "", maybe ? "]" : "");
}

static void print_option(FILE *f, char letter, const char *spelling, const char *remark)
{
    char head[80] = "    ";
    if (letter)
        snprintf(head, sizeof head, "-%c, ", letter);
    int column = option_column(), n = fprintf(f, "  %s%s", head, spelling);
    if (n + 2 > column) {
        fputc('\n', f);
        n = 0;
    }
    fprintf(f, "%*s", column - n, "");
    wrapped(f, remark, column, column);
}

static void print_options(const struct command *c, bool all, FILE *f)
{
    bool left_out = false;
    const char *group = "options";
    for (const struct option_spec *o = c->options; o && o->name; o++) {
        char spelling[96], remark[512];
        if (o->group)
            group = o->group;
        left_out = left_out || o->show == OPTION_MORE;
        if (o->show == OPTION_SWITCH || (o->show == OPTION_MORE && !all))
            continue;
        if (group)
            fprintf(f, "\n%s:\n", group);
        group = NULL;
        option_spelling(o, spelling, sizeof spelling);
        option_remark(o, remark, sizeof remark);
        print_option(f, o->letter, spelling, remark);
    }
    fputs(c->options && c->options->name ? "" : "\noptions:\n", f);
    print_option(f, 'h', "--help",
                 left_out && !all ? "this text; --help --all shows every option" : "this text");
}

void manual_help(const struct command *c, bool all, FILE *f)
{
    fprintf(f, "usage: holorun %s%s%s%s\n\n", c->name, c->options ? " [OPTION...]" : "",
            *c->arguments ? " " : "", c->arguments);
    wrapped(f, c->purpose, 0, 0);
    if (c->details) {
        fputc('\n', f);
        paragraphs(f, c->details);
    }
    print_options(c, all, f);
    if (c->examples && *c->examples) {
        fputs("\nexamples:\n", f);
        for (const char *p = c->examples; *p;) {
            int n = (int)strcspn(p, "\n");
            fprintf(f, "  %.*s\n", n, p);
            p += n + (p[n] == '\n');
        }
    }
}

void manual_overview(const struct command *const *commands, FILE *f)
{
    fputs("usage: holorun COMMAND [OPTION...] [ARGUMENT...]\n"
          "       holorun \"TASK\"   the same as holorun run \"TASK\"\n\n",
          f);
    wrapped(
        f,
        "Drives this X11 desktop with a vision-language model that runs inside this process: looks at the "
        "screen, decides on one action, performs it, and looks again.",
        0, 0);
    fputs("\ncommands:\n", f);
    for (; *commands; commands++) {
        fprintf(f, "  %-12s", (*commands)->name);
        wrapped(f, (*commands)->purpose, 14, 14);
    }
    fputc('\n', f);
    wrapped(f, "'holorun COMMAND --help' tells more about one of them.", 0, 0);
    fputs("exit codes: ", f);
    wrapped(f, general_exit, 12, 12);
}

/* roff takes "." and "'" at a line start and "\" anywhere as its own; "-" must not become a hyphen. */
static void roff(FILE *f, const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\''))
            fputs("\\&", f);
        if (*text == '\\')
            fputs("\\e", f);
        else if (*text == '-')
            fputs("\\-", f);
        else
            fputc(*text, f);
        start = *text == '\n';
    }
}

static void page_option(FILE *f, const struct option_spec *o)
{
    char spelling[96], remark[512];
    option_spelling(o, spelling, sizeof spelling);
    option_remark(o, remark, sizeof remark);
    fputs(".TP\n.B ", f);
    if (o->letter)
        fprintf(f, "\\-%c, ", o->letter);
    roff(f, spelling);
    fputc('\n', f);
    roff(f, remark);
    fputs(".\n", f);
}

static void page_command(FILE *f, const struct command *c)
{
    fprintf(f, ".SS holorun %s ", c->name);
    roff(f, c->arguments);
    fputc('\n', f);
    roff(f, c->purpose);
    fputs(".\n", f);
    const char *details = c->details ? c->details : "";
    for (char *one; (one = next_paragraph(&details)); free(one)) {
        bool layout = is_layout(one);
        fputs(layout ? ".PP\n.nf\n" : ".PP\n", f);
        roff(f, one);
        fputs(layout ? "\n.fi\n" : "\n", f);
    }
    for (const struct option_spec *o = c->options; o && o->name; o++)
        if (o->show != OPTION_SWITCH)
            page_option(f, o);
    if (c->examples && *c->examples) {
        fputs(".PP\nExamples:\n.PP\n.nf\n.RS\n", f);
        roff(f, c->examples);
        fputs(".RE\n.fi\n", f);
    }
}

/* One paragraph for each code. */
static void page_exit(FILE *f)
{
    fputs(".SH EXIT STATUS\n", f);
    for (const char *p = general_exit; *p;) {
        int code = (int)strcspn(p, " "), all = (int)strcspn(p, ";");
        fprintf(f, ".TP\n.B %.*s\n%.*s\n", code, p, all - code - 1, p + code + 1);
        p += all;
        p += strspn(p, "; ");
    }
}

/* Each variable once, with the first option it belongs to. */
static void page_environment(const struct command *const *commands, FILE *f)
{
    const char *seen[64];
    int n = 0;
    fputs(".SH ENVIRONMENT\n", f);
    for (const struct command *const *c = commands; *c; c++)
        for (const struct option_spec *o = (*c)->options; o && o->name; o++) {
            bool known = !o->variable || n == 64;
            for (int i = 0; i < n && !known; i++)
                known = !strcmp(seen[i], o->variable);
            if (known)
                continue;
            seen[n++] = o->variable;
            fprintf(f, ".TP\n.B %s\n", o->variable);
            if (o->show != OPTION_SWITCH) {
                fputs("default of ", f);
                roff(f, "--");
                roff(f, o->name);
                fputs(": ", f);
            }
            roff(f, o->help);
            fputs(".\n", f);
        }
}

void manual_page(const struct command *const *commands, FILE *f)
{
    fputs(
        ".\\\" Written by 'holorun help --man' from the command tables.\n.TH HOLORUN 1 \"\" "
        "\"holorun " HOLORUN_VERSION "\" \"User Commands\"\n.SH NAME\nholorun \\- drive an X11 desktop with "
        "a vision\\-language model in one "
        "process\n.SH SYNOPSIS\n.B holorun\n.RI \\(dq TASK \\(dq\n.br\n.B holorun\n.I COMMAND\n"
        ".RI [ OPTION ...]\n.RI [ ARGUMENT ...]\n.SH DESCRIPTION\nLooks at the screen, lets the model decide "
        "on one "
        "action, performs it, looks again, until the model answers or a budget is used up.\nThe answer goes "
        "to "
        "standard output, progress to standard error, and everything seen and done into a run directory with "
        "a "
        "report.\nEscape twice on the display, Ctrl\\-C in the terminal or holorun stop stops a run; "
        "whatever key or button is held is released.\n.SH COMMANDS\n",
        f);
    for (const struct command *const *c = commands; *c; c++)
        page_command(f, *c);
    page_exit(f);
    page_environment(commands, f);
    fputs(environment_and_files, f);
}

/* The words of "a|b|c[:N]": a, b and c. */
static void bash_words(FILE *f, const char *choices)
{
    bool optional = false;
    fputs(") words=\"", f);
    for (const char *p = choices; *p; p++) {
        optional = *p == '[' || (optional && *p != '|');
        if (!optional)
            fputc(*p == '|' ? ' ' : *p, f);
    }
    fputs("\" ;;\n", f);
}

/* One case of the script per option with a value: its words, paths, or nothing. */
static void bash_values(FILE *f, const struct command *c)
{
    for (const struct option_spec *o = c->options; o && o->name; o++) {
        if (o->type == OPTION_FLAG || o->type == OPTION_MAYBE || o->show == OPTION_SWITCH)
            continue;
        fprintf(f, "    %s:--%s", c->name, o->name);
        if (o->letter)
            fprintf(f, "|%s:-%c", c->name, o->letter);
        if (o->type == OPTION_CHOICE || (o->unit && strchr(o->unit, '|')))
            bash_words(f, o->unit);
        else if (o->unit && !strcmp(o->unit, "DIR"))
            fputs(") compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n", f);
        else if (o->unit && !strcmp(o->unit, "FILE"))
            fputs(") compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", f);
        else
            fputs(") compopt +o default; return ;;\n", f);
    }
}

/* Completion of an argument: a command, a word, a run, a folder, else files. */
static void bash_arguments(FILE *f, const struct command *c, const struct command *const *commands)
{
    const char *a = c->arguments;
    fprintf(f, "        %s", c->name);
    if (!strcmp(a, "[COMMAND]")) {
        fputs(") words=\"", f);
        for (; *commands; commands++)
            fprintf(f, "%s ", (*commands)->name);
        fputs("\" ;;\n", f);
    } else if (!strcmp(a, "[RUN]")) {
        fputs(") words=$(ls \"${HOLORUN_RUNS:-${XDG_STATE_HOME:-$HOME/.local/state}/holorun/runs}\" "
              "2>/dev/null) ;;\n",
              f);
    } else if (!strcmp(a, "[RUN|DISPLAY]")) {
        fputs(") words=$(holorun stop --list 2>/dev/null | cut -f 1) ;;\n", f);
    } else if (!strcmp(a, "[MODEL]") || !strcmp(a, "[DIR]") || !strcmp(a, "DIR")) {
        fputs(") compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n", f);
    } else if (!*a || !strncmp(a, "TASK", 4)) {
        fputs(") compopt +o default; return ;;\n", f);
    } else if (!strchr(a, ' ') && !strpbrk(a, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
        bash_words(f, a);
    } else {
        fputs(") return ;;\n", f); /* files, by bash itself */
    }
}

static void bash_names(FILE *f, const struct command *c)
{
    fprintf(f, "        %s) words=\"--help", c->name);
    for (const struct option_spec *o = c->options; o && o->name; o++)
        if (o->show != OPTION_SWITCH)
            fprintf(f, " --%s%s", on_by_default(o) ? "no-" : "", o->name);
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
