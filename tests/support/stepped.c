/* stepped.c - see stepped.h. */
#include "stepped.h"

#include "check.h"

#include "base/file.h"

void stepped_open(struct play *p)
{
    play_open(p);
    p->o.log_tokens = true;
}

void stepped_by(struct play *p, struct step_front *f, const char *const *breaks, const char *replies)
{
    struct err e = ERR_INIT;
    struct stepper *s = stepper_new(f, breaks, &e);
    if (!s)
        fail_msg("%s", e.text);
    play_forget();
    play_script(p, replies, stepper_overseer(s));
    stepper_free(s);
}

void stepped(struct play *p, const char *const *breaks, const char *commands, const char *replies)
{
    char *path = xasprintf("%s/commands", p->stage.x.dir);
    assert_int_equal(file_write(path, commands, strlen(commands), NULL), 0);
    struct step_front *f = step_script(path, NULL, NULL);
    assert_non_null(f);
    stepped_by(p, f, breaks, replies);
    free(path);
}

void stepped_ended(const struct play *p, enum agent_status status)
{
    if (p->r.status != status)
        fail_msg("ended as '%s', not as '%s' (%s)", agent_status_name(p->r.status), agent_status_name(status),
                 p->e.text);
}

json_t *stepped_presses(struct play *p)
{
    return stage_events(&p->stage, "button_press");
}

const json_t *stepped_event(const struct play *p, const char *kind, int step)
{
    const json_t *found = NULL;
    for (int k = 0; k < p->record.n; k++)
        if (!strcmp(p->record.events[k].kind, kind) && p->record.events[k].step == step)
            found = p->record.events[k].fields;
    return found;
}
