/* script.c - commands from a file or a pipe: the front end of tests and of programs.
 *
 * A mistake in a script ends the run: whoever wrote it is not there to correct it.
 */
#include "step/lines.h"
#include "step/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct script {
    struct step_front base;
    struct lines lines;
    char *path;
    int number; /* of the line that was read last */
    FILE *log;
};

static int show(struct step_front *f, const struct step_view *v, struct err *e)
{
    struct script *s = (struct script *)f;
    if (s->log)
        step_print(s->log, v, PRINT_MORE);
    if (v->error)
        return err_set(e, ERR_USAGE, "%s:%d: %s", s->path, s->number, v->message);
    return 0;
}

static int ask(struct step_front *f, const struct step_view *v, struct step_command *out, struct err *e)
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
        if (rc > 0 && (!*p || *p == '#'))
            continue;
        if (rc > 0 && step_parse(p, out, e) == 0)
            return 0;
        return e && e->kind == ERR_STOPPED ? -1 : err_prefix(e, "%s:%d", s->path, s->number);
    }
}

static int passed(struct step_front *f, const struct step_view *v, struct err *e)
{
    struct script *s = (struct script *)f;
    (void)e;
    if (s->log)
        step_print_passed(s->log, v, 0);
    return 0;
}

static void close_script(struct step_front *f)
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
                                  .beam_search = 8,
                                  .show = show,
                                  .ask = ask,
                                  .passed = passed,
                                  .close = close_script};
    s->path = xstrdup(path);
    s->log = log;
    s->lines.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (s->lines.fd >= 0)
        return &s->base;
    err_set(e, ERR_USAGE, "cannot read commands from '%s': %s", path, strerror(errno));
    close_script(&s->base);
    return NULL;
}
