/* resume.c - `holorun resume [RUN]`: continues an interrupted run.
 *
 * The record gives the settings (recorded.h), the task and the conversation (replay/interrupted.h); the rest
 * is the same as for any run (run/job.h). */
#include "cmd/commands.h"
#include "plain/player.h"

#include "cli/recorded.h"
#include "cli/version.h"
#include "run/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct command resume_command = {
    .name = "resume",
    .arguments = "[RUN]",
    .purpose = "continue an interrupted run",
    .details =
        "RUN is a run directory or its name in the folder of runs; default: the newest run. The "
        "conversation is fed to the model again without the old screenshots, followed by a note about the "
        "interruption, and the run continues with the current screen. It gets its own run directory, which "
        "refers to the old one as its parent; the old one is not changed.\n\n"
        "The recorded settings apply unless overridden. Steps, tokens, time and typed characters continue "
        "to count: a run that used up a budget continues with a larger one. A run that has answered cannot "
        "be resumed.",
    .examples = "holorun resume\nholorun resume 20261121T054500Z-9f3c01ab --max-steps 200\n",
    .options = job_options,
    .run = cmd_resume,
};

/* clang-format off */
static const char *const taken[] = {
    "model", "device", "isa", "weights", "weights-in", "activations", "state", "kv", "f32", "dialect",
    "min-pixels", "max-pixels",
    "display", "view", "cursor", "pause-on-human", "human-quiet", "observe-only", "hide",
    "settle-min", "settle-quiet", "settle-max", "key-delay", "keymap-settle", "think-early", "assist",
    "max-steps", "max-time", "max-tokens",
    "seed", "reply-tokens", "window", "max-images", "force-answer", "validator", "max-validations",
    "localizer", "api",
    NULL};
/* clang-format on */

/* Puts the recorded settings before the words of the command line.  The command line is parsed twice: the
 * first time only to find the run's name.  Returns the result of options_parse(). */
static int read_interrupted(struct job *j, struct recorded_line *l, int argc, char **argv, struct err *e)
{
    const char *name;
    int n = recorded_name(&resume_command, &j->s, argc, argv, &name, e);
    if (n >= 0 && recorded_open(&j->record, name, j->s.runs, e))
        n = -1;
    if (n < 0)
        return n;
    job_unset(&j->s);
    json_auto_t *settings = recorded_settings(j->record.run);
    recorded_line(l, settings, job_options, taken, argc, argv);
    return options_parse(&resume_command, &j->s, l->argc, l->argv, e);
}

/* Checks the recorded dialect.  A dialect that the command line names is checked with the other settings.
 * Returns -1 with e. */
static int check_dialect(const struct job *j, struct err *e)
{
    const char *then = field_text(json_object_get(j->record.run, "settings"), "dialect");
    struct dialect *d = NULL;
    if (!j->s.dialect || strcmp(j->s.dialect, then) != 0)
        return 0;
    if ((d = recorded_dialect(&j->record, then, e)))
        dialect_free(d);
    return d ? 0 : -1;
}

/* Checks that the rules in force are the recorded ones, unless --policy selects others.  Rules are never read
 * from a run directory, which may come from anywhere.  Returns -1 with e. */
static int same_rules(struct job *j, struct err *e)
{
    const json_t *then = json_object_get(j->record.run, "policy");
    const char *sha256 = field_text(then, "sha256");
    struct policy *now = policy_open(j->s.policy, e);
    if (!now)
        return -1;
    bool same = !*sha256 || !strcmp(sha256, policy_sha256(now)) || j->s.policy;
    policy_free(now);
    return same ? 0
                : err_set(e, ERR_USAGE,
                          "the run used other rules ('%s'): select the rules to use with --policy",
                          field_text(then, "name"));
}

/* Prevents that a run whose replies came from a file silently continues with a model.  Returns -1 with e. */
static int same_llm(const struct job *j, struct err *e)
{
    const json_t *then = json_object_get(j->record.run, "settings");
    const char *url = field_text(json_object_get(j->record.run, "model"), "base_url");
    url = *url ? url : field_text(then, "base-url");
    if (*url && !ENDPOINT_GIVEN(j->s) &&
        !j->s.fake) /* a record may come from anywhere, and must not choose a server that gets a key */
        return err_set(e, ERR_USAGE,
                       "the model of that run was at %.200s: give --base-url and --key, or --provider, again",
                       url);
    if (!strcmp(field_text(then, "dialect"), PLAYER_DIALECT) && !j->s.dialect)
        return err_set(e, ERR_USAGE,
                       "that run performed plain sentences: run the remaining ones as a new task");
    bool other = j->s.model && strcmp(j->s.model, field_text(then, "model")) != 0;
    if (!*field_text(then, "fake") || j->s.fake || other)
        return 0;
    return err_set(e, ERR_USAGE,
                   "the replies of that run came from a file: give further replies with --fake, or a model "
                   "with --model");
}

static int open_interrupted(struct job *j, struct err *e)
{
    const char *task = field_text(j->record.run, "task");
    if (!*task)
        return err_set(e, ERR_USAGE, "'%s' has no task: its run.json is missing or damaged", j->record.dir);
    if (check_dialect(j, e) || same_rules(j, e) || timeline_open(&j->timeline, &j->record, e) ||
        interrupted_make(&j->resume, &j->timeline, e) || same_llm(j, e) || job_read_task(j, task, e))
        return -1;
    if (field_bool(j->record.run, "warm_up") && isnan(j->s.temperature))
        return 0;
    double then = field_number(json_object_get(j->record.run, "settings"), "temperature");
    if (isnan(j->s.temperature) && then >= 0 && then <= 10)
        j->s.temperature = then;
    return 0;
}

int cmd_resume(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct job j;
    struct recorded_line l = {0};
    job_begin(&j, version_build(), argc, argv);
    int n = read_interrupted(&j, &l, argc, argv, &e), code = 0;
    if (n >= 0 && open_interrupted(&j, &e) == 0)
        code = job_run(&j);
    else if (n != OPTIONS_HELP)
        code = n < 0 && e.kind == ERR_USAGE ? options_refuse(&resume_command, &e) : options_failed(&e);
    job_close(&j);
    screen_guard_end();
    recorded_line_free(&l);
    return code;
}
