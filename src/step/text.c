/* text.c - text front ends: a script of commands for tests and programs, and a terminal.
 *
 * An invalid command in a script ends the run, because nobody can correct it. In a terminal the view is
 * printed, then a line is read: a verb or its letter; an empty line runs the step. With at least 256 colours
 * the area around the target is drawn in half blocks. */
#include "step/private.h"

#include "base/bar.h"
#include "base/flag.h"
#include "gate/confirm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POLL_MS = 20, BEAM_SHOWN = 8, CROP_W = 256, CROP_H = 112, CROP_COLUMNS = 64 };

struct lines { /* lines from a file, a pipe or a terminal, read until the stop flag is set */
    int fd;
    char buf[STEP_LINE];
    size_t n;
    bool ended;
};

/* Moves the first line of the buffer to `line`. Returns false if it is incomplete. */
static bool lines_take(struct lines *l, char *line)
{
    char *end = memchr(l->buf, '\n', l->n);
    size_t len = end ? (size_t)(end - l->buf) : l->n;
    if (!end && !(l->ended && l->n))
        return false;
    memcpy(line, l->buf, len);
    line[len] = 0;
    size_t gone = end ? len + 1 : len;
    memmove(l->buf, l->buf + gone, l->n - gone);
    l->n -= gone;
    return true;
}

static int lines_fill(struct lines *l, struct err *e)
{
    struct pollfd p = {l->fd, POLLIN, 0};
    if (poll(&p, 1, POLL_MS) <= 0) /* the caller checks the flag */
        return 0;
    ssize_t n = read(l->fd, l->buf + l->n, sizeof l->buf - 1 - l->n);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
        return err_set(e, ERR_ENV, "cannot read commands: %s", strerror(errno));
    l->ended = n == 0;
    l->n += n > 0 ? (size_t)n : 0;
    return 0;
}

/* Reads a line without its newline. Returns 1, 0 at the end, or -1 with e if it is too long, reading fails or
 * the run is stopped. */
static int lines_next(struct lines *l, const volatile int *stop, char line[STEP_LINE], struct err *e)
{
    while (!lines_take(l, line)) {
        if (flag_up(stop))
            return err_set(e, ERR_STOPPED, "stopped while a step was shown");
        if (l->ended)
            return 0;
        if (l->n == sizeof l->buf - 1)
            return err_set(e, ERR_USAGE, "the command is longer than %zu bytes", sizeof l->buf - 1);
        if (lines_fill(l, e))
            return -1;
    }
    return 1;
}

/* Returns whether the line requests help. c: the parsed line; NULL: not parsed. */
static bool is_help(const char *line, const struct step_command *c)
{
    return !strcmp(line, "help") || !strcmp(line, "?") || !strcmp(line, "h") ||
           (c && c->verb == STEP_SHOW && !strcmp(c->text, "help"));
}

/* ---- scripts ---------------------------------------------------------------------------------- */

struct script {
    struct step_front base;
    struct lines lines;
    char *path;
    int number; /* number of the last line */
    FILE *log;
};

static int script_show(struct step_front *f, const struct step_view *v, struct err *e)
{
    struct script *s = (struct script *)f;
    if (s->log)
        step_print(s->log, v, PRINT_MORE);
    if (v->error)
        return err_set(e, ERR_USAGE, "%s:%d: %s", s->path, s->number, v->message);
    return 0;
}

static int script_ask(struct step_front *f, const struct step_view *v, struct step_command *out,
                      struct err *e)
{
    struct script *s = (struct script *)f;
    char line[STEP_LINE];
    for (;;) {
        int rc = lines_next(&s->lines, step_stop_flag(v), line, e);
        if (rc == 0) {
            *out = (struct step_command){.verb = STEP_STOP, .text = "the script has ended"};
            return 0;
        }
        s->number++;
        const char *p = line + strspn(line, " \t\r");
        bool help = rc > 0 && is_help(p, NULL);
        if (help && s->log)
            fputs(step_help(), s->log);
        if (help || (rc > 0 && (!*p || *p == '#')))
            continue;
        if (rc > 0 && step_parse(p, out, e) == 0)
            return 0;
        return e && e->kind == ERR_STOPPED ? -1 : err_prefix(e, "%s:%d", s->path, s->number);
    }
}

static void script_passed(struct step_front *f, const struct step_view *v)
{
    struct script *s = (struct script *)f;
    if (s->log)
        step_print_passed(s->log, v, 0);
}

static void script_close(struct step_front *f)
{
    struct script *s = (struct script *)f;
    if (s->lines.fd >= 0)
        close(s->lines.fd);
    free(s->path);
    free(s);
}

struct step_front *step_script(const char *path, FILE *log, struct err *e)
{
    struct script *s = xcalloc(1, sizeof *s);
    s->base = (struct step_front){.name = "script",
                                  .beam_search = BEAM_SHOWN,
                                  .show = script_show,
                                  .ask = script_ask,
                                  .passed = script_passed,
                                  .close = script_close};
    s->path = xstrdup(path);
    s->log = log;
    s->lines.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->lines.fd >= 0)
        return &s->base;
    err_set(e, ERR_USAGE, "cannot read commands from '%s': %s", path, strerror(errno));
    script_close(&s->base);
    return NULL;
}

/* ---- terminals -------------------------------------------------------------------------------- */

struct terminal {
    struct step_front base;
    struct lines lines;
    FILE *out;
    bool color;
    bool more; /* show the next view in full */
};

static void print_surroundings(FILE *f, const struct image *frame, int x, int y)
{
    static const uint8_t red[3] = {255, 0, 80};
    int w = frame->w < CROP_W ? frame->w : CROP_W, h = frame->h < CROP_H ? frame->h : CROP_H;
    int left = x < w / 2 ? 0 : x > frame->w - w + w / 2 ? frame->w - w : x - w / 2;
    int top = y < h / 2 ? 0 : y > frame->h - h + h / 2 ? frame->h - h : y - h / 2;
    struct image crop = {0};
    if (image_crop(&crop, frame, left, top, w, h, NULL) == 0) {
        image_draw_ring(&crop, x - left, y - top, 5, 4, red);
        confirm_print_picture(f, &crop, CROP_COLUMNS);
    }
    image_free(&crop);
}

static int terminal_show(struct step_front *f, const struct step_view *v, struct err *e)
{
    struct terminal *t = (struct terminal *)f;
    step_print(t->out, v, (t->color ? PRINT_COLOR : 0) | (t->more ? PRINT_MORE : 0));
    const struct action *a = v->step->nactions ? &v->step->actions[0] : NULL;
    if (t->color && a && a->x != ACTION_ABSENT && !v->error)
        print_surroundings(t->out, v->p->frame, a->x, a->y);
    t->more = false;
    fflush(t->out);
    return 0;
}

static void print_help(const struct terminal *t)
{
    fprintf(t->out, "  An empty line runs the step.\n%s", step_help());
}

static int terminal_ask(struct step_front *f, const struct step_view *v, struct step_command *out,
                        struct err *e)
{
    struct terminal *t = (struct terminal *)f;
    char line[STEP_LINE];
    for (;;) {
        struct err wrong = ERR_INIT;
        fputs("run, edit, veto, again, rewind, fork, continue, break, quit (help)? ", t->out);
        fflush(t->out);
        int rc = lines_next(&t->lines, step_stop_flag(v), line, e);
        if (rc < 0)
            return -1;
        line[strcspn(line, "\r")] = 0;
        *out = (struct step_command){.verb = rc ? STEP_RUN : STEP_STOP};
        if (rc == 0) {
            snprintf(out->text, sizeof out->text, "the input has ended");
            fputc('\n', t->out);
        }
        if (rc == 0 || !line[strspn(line, " \t")])
            return 0;
        if (is_help(line, NULL)) {
            print_help(t);
            continue;
        }
        if (step_parse(line, out, &wrong)) {
            fprintf(t->out, "  %s\n", wrong.text);
            continue;
        }
        if (is_help(line, out)) {
            print_help(t);
            continue;
        }
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
    if (!isatty(in)) {
        err_set(e, ERR_USAGE, "cannot read commands: stdin is not a terminal; use --step=script:FILE");
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
    t->color = bar_colors(out);
    return &t->base;
}
