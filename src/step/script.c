/* script.c - the front end of tests and programs: commands from a file or a pipe.
 *
 * A mistake in a script ends the run, because nobody is there to correct it.
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
    int number; /* of the last line */
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
        if (rc > 0 && (!*p || *p == '#'))
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
                                  .beam_search = 8,
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
