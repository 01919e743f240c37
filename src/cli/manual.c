/* manual.c - see manual.h.
 *
 * The same tables give help in this file, manual pages in manual_page.c, and shell completion in
 * completion.c.  None of these files names an option: each row contains everything, so that all three are
 * complete. */
#include "cli/manual_impl.h"

#include "base/bar.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMN = 26, COLUMN_NARROW = 8, NARROW = 60, WIDTH = 96, WIDTH_MIN = 32 };

/* Returns the width of the terminal in columns, within WIDTH_MIN and WIDTH. */
static int width(void)
{
    int columns = bar_columns(WIDTH);
    return columns < WIDTH_MIN ? WIDTH_MIN : columns < WIDTH ? columns : WIDTH;
}

const char manual_exit_codes[] =
    "0 done, and confirmed by a change on the screen, a validator or the answer to a question; 1 not "
    "possible, or the last action was refused or failed; 2 wrong usage; 3 the environment failed (no "
    "display, disk full), or the endpoint (unreachable, reply cut off, timed out, conflict, rate limited, "
    "overloaded, server error, quota used up, key refused, not found, moved, not an endpoint); 4 the model "
    "failed, or the endpoint (request refused, reply withheld, unusable reply); 5 inconclusive (repeated "
    "actions without progress, interrupted by the user or another program); 6 step or token budget used up; "
    "7 the model reports success, but nothing confirms it; 8 the planner does not understand the task, or is "
    "not sure enough to act; 124 time budget used up; 130 stopped by the user "
    "or a signal";

bool manual_is_layout(const char *paragraph)
{
    return !strncmp(paragraph, "  ", 2);
}

char *manual_next_paragraph(const char **text)
{
    const char *begin = *text, *gap = strstr(begin, "\n\n");
    if (!*begin)
        return NULL;
    *text = gap ? gap + 2 : begin + strlen(begin);
    return xasprintf("%.*s", (int)((gap ? gap : *text) - begin), begin);
}

bool option_on_by_default(const struct option_spec *o)
{
    return o->type == OPTION_FLAG && o->standard && !strcmp(o->standard, "yes");
}

void manual_remark(const struct option_spec *o, char *out, size_t size)
{
    bool number = o->type == OPTION_INT || o->type == OPTION_NUMBER;
    size_t n =
        (size_t)snprintf(out, size, "%s%s", option_on_by_default(o) ? "do not " : "", o->help ? o->help : "");
    if (number && n < size && o->max < 1e6) /* larger bounds only keep the arithmetic safe */
        n += (size_t)snprintf(out + n, size - n, "; %.12g to %.12g", o->min, o->max);
    if (o->standard && o->type != OPTION_FLAG && n < size)
        n += (size_t)snprintf(out + n, size - n, " [%s]", o->standard);
    if (o->variable && n < size)
        snprintf(out + n, size - n, " ($%s)", o->variable);
}

/* Writes the spelling, such as "--max-steps N"; a flag that is on by default is shown as the option that
 * turns it off. */
void manual_spelling(const struct option_spec *o, char *out, size_t size)
{
    bool maybe = o->type == OPTION_MAYBE;
    snprintf(out, size, "--%s%s%s%s%s", option_on_by_default(o) ? "no-" : "", o->name,
             maybe     ? "[="
             : o->unit ? " "
                       : "",
             o->unit ? o->unit : "", maybe ? "]" : "");
}

/* Prints a text in lines of at most width() columns; lines after the first are indented. */
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

/* Prints the paragraphs of a text, separated by empty lines; a paragraph that begins with two spaces is not
 * wrapped. */
static void paragraphs(FILE *f, const char *text)
{
    for (char *one; (one = manual_next_paragraph(&text)); free(one)) {
        if (manual_is_layout(one))
            fprintf(f, "%s\n", one);
        else
            wrapped(f, one, 0, 0);
        if (*text)
            fputc('\n', f);
    }
}

static void print_option(FILE *f, char letter, const char *spelling, const char *remark)
{
    char head[80] = "    ";
    if (letter)
        snprintf(head, sizeof head, "-%c, ", letter);
    int column = width() < NARROW ? COLUMN_NARROW : COLUMN, n = fprintf(f, "  %s%s", head, spelling);
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
        manual_spelling(o, spelling, sizeof spelling);
        manual_remark(o, remark, sizeof remark);
        print_option(f, o->letter, spelling, remark);
    }
    fputs(c->options && c->options->name ? "" : "\noptions:\n", f);
    print_option(f, 'h', "--help",
                 left_out && !all ? "print this help; --help --all shows all options" : "print this help");
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
    wrapped(f,
            "Operates this X11 desktop with a vision-language model that runs in this process: takes a "
            "screenshot, decides on one action, performs it, and repeats.",
            0, 0);
    fputs("\ncommands:\n", f);
    for (; *commands; commands++) {
        fprintf(f, "  %-12s", (*commands)->name);
        wrapped(f, (*commands)->purpose, 14, 14);
    }
    fputc('\n', f);
    wrapped(f, "'holorun COMMAND --help' describes a command.", 0, 0);
    fputs("exit codes: ", f);
    wrapped(f, manual_exit_codes, 12, 12);
}
