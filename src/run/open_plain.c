/* open_plain.c - decides whether a task is performed as plain steps, without a model.
 *
 * Given steps, those of a suite, always are.  With --plain auto that is so where the embedded model would be
 * used, every word of the task is understood, and the active window describes the first element, if the first
 * step names one, or, without a planner, other elements but none of this name; otherwise planner or model
 * decide.  The number of the model's actions is then compared with that of the steps, because it often
 * reports success too early. */
#include "run/job.h"

#include "cli/shared_options.h"
#include "plain/player.h"

#include <stdlib.h>

/* Prepares the player: it takes as many steps as waiting needs. */
static void use_player(struct job *j, struct plain_steps steps)
{
    j->plain = xcalloc(1, sizeof *j->plain);
    *j->plain = steps;
    if (!j->s.max_steps && !j->s.dry_run)
        j->s.max_steps = PLAYER_STEPS;
    j->s.dialect = PLAYER_DIALECT;
}

static int open_given(struct job *j, struct err *e)
{
    struct plain_steps copy = {0};
    if (!j->elements)
        return err_set(
            e, ERR_ENV,
            "steps on named elements need the elements of programs, which are switched off; remove "
            "--no-elements or HOLORUN_ELEMENTS=no");
    for (int i = 0; i < j->given->n; i++)
        plain_add(&copy, &j->given->s[i]);
    use_player(j, copy);
    return 0;
}

/* Counts the steps that act, and those that check something. */
static struct agent_demand count_steps(const struct plain_steps *steps)
{
    struct agent_demand d = {0};
    for (int i = 0; i < steps->n; i++) {
        enum plain_verb verb = steps->s[i].verb;
        d.checks += verb == PLAIN_CHECK;
        d.actions += verb != PLAIN_CHECK && verb != PLAIN_WAIT && verb != PLAIN_SCROLL;
    }
    return d;
}

int job_open_plain(struct job *j, struct err *e)
{
    if (j->given)
        return open_given(j, e);
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
    if (plain_parse(j->task, &steps, &why))
        return only ? err_set(e, ERR_USAGE, "--plain only: %s (holorun help sentences)", why.text) : 0;
    if (!only && (!j->elements || !player_can_begin(&steps, j->elements, j->s.planner == JOB_PLAIN_NO))) {
        j->demand = count_steps(&steps);
        plain_free(&steps);
        return 0;
    }
    use_player(j, steps);
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
