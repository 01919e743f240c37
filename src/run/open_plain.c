/* open_plain.c - decides whether a task is performed as plain steps, without a model.
 *
 * With --plain auto that is so where the embedded model would be used, every word of the task is understood,
 * and the active window describes the first element, if the first step names one; otherwise the model
 * decides. */
#include "run/job.h"

#include "cli/shared_options.h"
#include "plain/player.h"

#include <stdlib.h>

enum { BEGIN_MS = 3000 }; /* for the first element to appear */

int job_open_plain(struct job *j, struct err *e)
{
    bool only = j->s.plain == JOB_PLAIN_ONLY;
    bool replaced =
        j->s.fake || j->host || j->resume.parent || j->s.dialect || j->s.localizer || j->s.validator;
    struct plain_steps steps;
    struct err why = ERR_INIT;
    if (only && replaced)
        return err_set(
            e, ERR_USAGE,
            "--plain only does not go with --fake, --dialect, --localizer, --validator, resume or another "
            "program");
    if (j->s.plain == JOB_PLAIN_NO || replaced || (!only && (j->among || ENDPOINT_GIVEN(j->s) || j->s.model)))
        return 0;
    if (!only && j->s.planner != JOB_PLAIN_NO && j->s.dry_run) /* the planner prints the steps */
        return 0;
    if (only && !j->elements)
        return err_set(
            e, ERR_ENV,
            "--plain only needs the elements of programs: not with --no-elements or HOLORUN_ELEMENTS=no");
    if (!j->elements)
        return 0;
    if (plain_parse(j->task, &steps, &why))
        return only ? err_set(e, ERR_USAGE, "--plain only: %s (holorun help sentences)", why.text) : 0;
    if (!only && !player_can_begin(&steps, j->elements, BEGIN_MS)) {
        plain_free(&steps);
        return 0;
    }
    j->plain = xcalloc(1, sizeof *j->plain);
    *j->plain = steps;
    if (!j->s.max_steps && !j->s.dry_run)
        j->s.max_steps = PLAYER_STEPS;
    j->s.dialect = PLAYER_DIALECT;
    return 0;
}

struct llm *job_plain_llm(struct job *j)
{
    struct llm *m = player_open(*j->plain, j->screen, j->elements, NULL);
    *j->plain = (struct plain_steps){0};
    return m;
}

void job_plain_free(struct job *j)
{
    if (j->plain)
        plain_free(j->plain);
    free(j->plain);
}
