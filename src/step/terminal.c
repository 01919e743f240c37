/* terminal.c - the front end in a terminal.
 *
 * Prints the view, then reads a line: a verb or its letter; Return alone runs the step.  With 24-bit
 * colours the surroundings of the target are drawn in half blocks.
 */
#include "step/lines.h"
#include "step/print.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BEAM_SHOWN = 8, CROP_COLS = 64, CROP_ROWS = 14 };

struct terminal {
    struct step_front base;
    struct lines lines;
    FILE *out;
    bool color, colors24;
    bool more; /* the next view in full */
};

static int terminal_show(struct step_front *f, const struct step_view *v, struct err *e)
{
    struct terminal *t = (struct terminal *)f;
    (void)e;
    step_print(t->out, v, (t->color ? PRINT_COLOR : 0) | (t->more ? PRINT_MORE : 0));
    const struct action *a = v->step->nactions ? &v->step->actions[0] : NULL;
    if (t->colors24 && a && a->x != ACTION_ABSENT && !v->error)
        step_print_crop(t->out, v->p->frame, a->x, a->y, CROP_COLS, CROP_ROWS);
    t->more = false;
    fflush(t->out);
    return 0;
}

/* Whether the line asked for help, which is printed. */
static bool print_help(struct terminal *t, const char *line, const struct step_command *c)
{
    bool help = !strcmp(line, "help") || !strcmp(line, "?") || !strcmp(line, "h") ||
                (c && c->verb == STEP_SHOW && !strcmp(c->text, "help"));
    if (help)
        fprintf(t->out, "  Return alone runs the step.\n%s", step_help());
    return help;
}

static int terminal_ask(struct step_front *f, const struct step_view *v, struct step_command *out,
                        struct err *e)
{
    struct terminal *t = (struct terminal *)f;
    char line[STEP_LINE];
    for (;;) {
        struct err wrong = ERR_INIT;
        fputs("run, edit, veto, again, rewind, fork, continue, break, stop (help)? ", t->out);
        fflush(t->out);
        int rc = lines_next(&t->lines, step_stop_flag(v), line, e);
        if (rc < 0)
            return -1;
        line[strcspn(line, "\r")] = 0;
        *out = (struct step_command){.verb = rc ? STEP_RUN : STEP_STOP};
        if (rc == 0)
            snprintf(out->text, sizeof out->text, "the terminal has closed");
        if (rc == 0 || !line[strspn(line, " \t")])
            return 0;
        if (print_help(t, line, NULL))
            continue;
        if (step_parse(line, out, &wrong)) {
            fprintf(t->out, "  %s\n", wrong.text);
            continue;
        }
        if (print_help(t, line, out))
            continue;
        t->more = out->verb == STEP_SHOW;
        return 0;
    }
}

static void terminal_passed(struct step_front *f, const struct step_view *v)
{
    struct terminal *t = (struct terminal *)f;
    step_print_passed(t->out, v, t->color ? PRINT_COLOR : 0);
    fflush(t->out);
}

static void terminal_close(struct step_front *f)
{
    free(f);
}

struct step_front *step_terminal(int in, FILE *out, struct err *e)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM"), *depth = getenv("COLORTERM");
    if (!isatty(in)) {
        err_set(e, ERR_USAGE, "there is no terminal to read commands from; use --step=script:FILE");
        return NULL;
    }
    struct terminal *t = xcalloc(1, sizeof *t);
    t->base = (struct step_front){.name = "terminal",
                                  .person = true,
                                  .beam_search = BEAM_SHOWN,
                                  .show = terminal_show,
                                  .ask = terminal_ask,
                                  .passed = terminal_passed,
                                  .close = terminal_close};
    t->lines.fd = in;
    t->out = out;
    t->color = isatty(fileno(out)) && !(no && *no) && !(term && !strcmp(term, "dumb"));
    t->colors24 = t->color && depth && (!strcmp(depth, "truecolor") || !strcmp(depth, "24bit"));
    return &t->base;
}
