/* manual_page.c - manual pages in man(7) macros: one for the program with all commands, and one per
 * command. */
#include "cli/manual_impl.h"

#include "cli/version.h"

#include <stdlib.h>
#include <string.h>

static const char environment_and_files[] =
    ".TP\n"
    ".B XDG_STATE_HOME, XDG_CACHE_HOME, XDG_RUNTIME_DIR\n"
    "locations of the folders below.\n"
    ".TP\n"
    ".B NO_COLOR\n"
    "if not empty, progress is printed without colours.\n"
    ".SH FILES\n"
    ".TP\n"
    ".I $XDG_STATE_HOME/holorun/runs\n"
    "run directories (by default below ~/.local/state); each holds run.json, events.jsonl, frames/ and "
    "report.html.\n"
    ".TP\n"
    ".I $XDG_STATE_HOME/holorun/eval\n"
    "results of holorun eval, one file per evaluation.\n"
    ".TP\n"
    ".I $XDG_CACHE_HOME/holorun\n"
    "quantized weights, created once (by default below ~/.cache); may be deleted.\n"
    ".TP\n"
    ".I $XDG_RUNTIME_DIR/holorun/held\\-DISPLAY.json\n"
    "keys and buttons held on a display; also a lock, in addition to the lock in the X server (in "
    "/tmp/holorun\\-UID without a private XDG_RUNTIME_DIR).\n"
    ".TP\n"
    ".I $XDG_RUNTIME_DIR/holorun/stop\n"
    "stops all runs that started before the time in it (seconds since 1970), or, if it is empty, before its "
    "modification time.\n"
    ".TP\n"
    ".I $XDG_RUNTIME_DIR/holorun/stop\\-PID\n"
    "the same for the runs of one process.\n"
    ".TP\n"
    ".I $XDG_RUNTIME_DIR/holorun/run\\-PID.json\n"
    "an active run: display, run directory, task.\n"
    ".TP\n"
    ".I MODEL/holorun.json\n"
    "dialect and coordinate space of a model, written by holorun calibrate.\n";

/* Prints text for roff, which interprets "." and "'" at the start of a line and "\" anywhere; "-" must not
 * become a hyphen. */
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
    manual_spelling(o, spelling, sizeof spelling);
    manual_remark(o, remark, sizeof remark);
    fputs(".TP\n.B ", f);
    if (o->letter)
        fprintf(f, "\\-%c, ", o->letter);
    roff(f, spelling);
    fputc('\n', f);
    roff(f, remark);
    fputs(".\n", f);
}

static void page_details(FILE *f, const char *details)
{
    for (char *one; (one = manual_next_paragraph(&details)); free(one)) {
        bool layout = manual_is_layout(one);
        fputs(layout ? ".PP\n.nf\n" : ".PP\n", f);
        roff(f, one);
        fputs(layout ? "\n.fi\n" : "\n", f);
    }
}

static void page_options(FILE *f, const struct command *c)
{
    for (const struct option_spec *o = c->options; o && o->name; o++)
        if (o->show != OPTION_SWITCH)
            page_option(f, o);
}

static void page_examples(FILE *f, const struct command *c, const char *heading)
{
    if (!c->examples || !*c->examples)
        return;
    fprintf(f, "%s.nf\n.RS\n", heading);
    roff(f, c->examples);
    fputs(".RE\n.fi\n", f);
}

static void page_command(FILE *f, const struct command *c)
{
    fprintf(f, ".SS holorun %s ", c->name);
    roff(f, c->arguments);
    fputc('\n', f);
    roff(f, c->purpose);
    fputs(".\n", f);
    page_details(f, c->details ? c->details : "");
    page_options(f, c);
    page_examples(f, c, ".PP\nExamples:\n.PP\n");
}

/* Prints one paragraph per exit code. */
static void page_exit(FILE *f)
{
    fputs(".SH EXIT STATUS\n", f);
    for (const char *p = manual_exit_codes; *p;) {
        int code = (int)strcspn(p, " "), all = (int)strcspn(p, ";");
        fprintf(f, ".TP\n.B %.*s\n%.*s\n", code, p, all - code - 1, p + code + 1);
        p += all;
        p += strspn(p, "; ");
    }
}

static void page_variable(FILE *f, const struct option_spec *o)
{
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

/* Prints each environment variable once, with the first option that uses it.  Returns their number, at most
 * 64. */
static int page_environment(const struct command *const *commands, FILE *f)
{
    const char *seen[64];
    int n = 0;
    for (const struct command *const *c = commands; *c; c++)
        for (const struct option_spec *o = (*c)->options; o && o->name; o++) {
            bool known = !o->variable || n == 64;
            for (int i = 0; i < n && !known; i++)
                known = !strcmp(seen[i], o->variable);
            if (known)
                continue;
            if (!n)
                fputs(".SH ENVIRONMENT\n", f);
            seen[n++] = o->variable;
            page_variable(f, o);
        }
    return n;
}

void manual_page(const struct command *const *commands, FILE *f)
{
    fputs(".\\\" Written by 'holorun help --man' from the command tables.\n.TH HOLORUN 1 \"\" "
          "\"holorun " HOLORUN_VERSION "\" \"User Commands\"\n"
          ".SH NAME\n"
          "holorun \\- drive an X11 desktop with a vision\\-language model in one process\n"
          ".SH SYNOPSIS\n"
          ".B holorun\n"
          ".RI \\(dq TASK \\(dq\n"
          ".br\n"
          ".B holorun\n"
          ".I COMMAND\n"
          ".RI [ OPTION ...]\n"
          ".RI [ ARGUMENT ...]\n"
          ".SH DESCRIPTION\n"
          "Takes a screenshot, lets the model decide on one action, performs it, and repeats this until "
          "the model answers or a budget is used up.\n"
          "The answer goes to standard output, progress to standard error, and the record with a report "
          "to a run directory.\n"
          "Escape twice on the display, Ctrl\\-C in the terminal or holorun stop stops a run; all held "
          "keys and buttons are released.\n"
          ".SH COMMANDS\n",
          f);
    for (const struct command *const *c = commands; *c; c++)
        page_command(f, *c);
    page_exit(f);
    page_environment(commands, f);
    fputs(environment_and_files, f);
}

void manual_page_section(const char *name, const char *about, const char *lines, FILE *f)
{
    fputs(".SH ", f);
    for (const char *p = name; *p; p++)
        fputc(*p - 'a' + 'A', f);
    fputc('\n', f);
    roff(f, about);
    fputs(".\n.PP\n.nf\n", f);
    roff(f, lines);
    fputs(".fi\n", f);
}

static void page_title(FILE *f, const struct command *c)
{
    fputs(".\\\" Written by 'holorun help --pages' from the command tables.\n.TH \"HOLORUN\\-", f);
    for (const char *p = c->name; *p; p++)
        fputc(*p - 'a' + 'A', f);
    fprintf(f, "\" 1 \"\" \"holorun " HOLORUN_VERSION "\" \"User Commands\"\n.SH NAME\nholorun\\-%s \\- ",
            c->name);
    roff(f, c->purpose);
    fprintf(f, "\n.SH SYNOPSIS\n.B holorun %s\n", c->name);
    if (c->options && c->options->name)
        fputs(".RI [ OPTION ...]\n", f);
    roff(f, c->arguments);
    fputc('\n', f);
}

void manual_page_of(const struct command *c, FILE *f)
{
    const struct command *const alone[] = {c, NULL};
    page_title(f, c);
    fputs(".SH DESCRIPTION\n", f);
    roff(f, c->purpose);
    fputs(".\n", f);
    page_details(f, c->details ? c->details : "");
    fputs(".SH OPTIONS\n", f);
    page_options(f, c);
    fputs(".TP\n.B \\-h, \\-\\-help\nprint the help.\n", f);
    page_exit(f);
    page_environment(alone, f);
    page_examples(f, c, ".SH EXAMPLES\n");
    fputs(".SH SEE ALSO\n.BR holorun (1)\n", f);
}
