/* settings.c - the options of a run, its command line and its task.  See job.h.
 *
 * One table defines the options of `run`, `step` and `resume`, their help, and the settings in run.json,
 * which `resume` reads back.  A setting that was not given (0, NAN, auto) is filled from the dialect. */
#include "run/job.h"

#include "base/utf8.h"
#include "cli/shared_options.h"
#include "remote/endpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 100, STEPS_DRY = 1, WINDOW_AUTO = 0 };

#define AT(member) offsetof(struct run_settings, member)

/* clang-format off */
const struct option_spec job_options[] = {
    MODEL_OPTIONS(struct run_settings),
    ENDPOINT_OPTIONS(struct run_settings),
    DIALECT_OPTION(struct run_settings),
    {"temperature", 't', OPTION_NUMBER, AT(temperature), "T", 0, 10, NULL,
     "sampling temperature, 0 for greedy; default: the dialect's, more after an action without effect",
     NULL},
    {"seed", 's', OPTION_SEED, AT(seed), "N", 0, 0, "1", "random seed", NULL},
    {"window", 'w', OPTION_CHOICE, AT(window), "auto|sawtooth|strict", 0, 0, "auto",
     "which old screenshots leave the model's context: all at once when it is full (sawtooth), the oldest "
     "at every step (strict), or as the dialect says", NULL},
    {"max-images", 0, OPTION_INT, AT(max_images), "N", 0, 4, "0",
     "screenshots in the model's context, 0 for the dialect's number", NULL},
    {"reply-tokens", 0, OPTION_INT, AT(reply_tokens), "N", 0, 100000, "0",
     "longest single reply, 0 for the dialect's number", NULL, .show = OPTION_MORE},
    {"fake", 0, OPTION_TEXT, AT(fake), "FILE", 0, 4096, NULL,
     "take replies from a file instead of a model, one a line, or blocks between empty lines; or play a "
     "recording (see holorun record)",
     NULL},
    SCREEN_OPTIONS(struct run_settings),
    {"on", 0, OPTION_TEXT, AT(on), "desk[:WIDTHxHEIGHT]", 0, 64, NULL,
     "work on a private desktop, opened for this run (see holorun desk)", NULL},
    {"start", 0, OPTION_TEXT, AT(start), "COMMAND", 0, 4096, NULL,
     "with --on desk, what runs there; the run begins when a window opens", NULL},
    {"home", 0, OPTION_TEXT, AT(home), "DIR", 0, 1000, NULL,
     "with --on desk, the home folder of programs there, made when missing; it stays, with browser profiles "
     "for the next run, and one desktop at a time uses it; default: an empty one that is deleted", NULL},
    {"desk-view", 0, OPTION_MAYBE, AT(desk_view), "127.0.0.1:PORT|unix:PATH", 0, 256, NULL,
     "with --on desk, let VNC viewers look at it and take it over, as holorun desk --view does", NULL},
    {"password-file", 0, OPTION_TEXT, AT(password_file), "FILE", 0, 4096, NULL,
     "with --desk-view, the password of viewers", NULL, .show = OPTION_MORE},
    PACE_OPTIONS(struct run_settings, ""),
    {"max-steps", 'n', OPTION_INT, AT(max_steps), "N", 1, 100000, NULL,
     "steps; default: 100, 1 in a dry run", NULL, .group = "budgets (more of them: limits in a policy file)"},
    {"max-time", 0, OPTION_NUMBER, AT(max_time), "SECONDS", 0.1, 1e6, "1800",
     "time, which ends the run even in the middle of an action", NULL},
    {"max-tokens", 0, OPTION_INT, AT(max_tokens), "N", 0, 1e9, "0", "generated tokens, 0 for no limit", NULL},
    {"force-answer", 0, OPTION_FLAG, AT(force_answer), NULL, 0, 0, "yes",
     "ask once more for an answer when a budget is used up; it is shown, but does not count", NULL,
     .show = OPTION_MORE},
    RULES_OPTIONS(struct run_settings),
    ELEMENTS_OPTION(struct run_settings),
    {"plain", 0, OPTION_CHOICE, AT(plain), "auto|only|no", 0, 0, "auto",
     "perform a task that consists of plain steps, as 'choose Large in Size, then press Save', on named "
     "elements without a model (holorun help sentences); auto: where the embedded model would be used",
     NULL},
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), .help = "decide and record, but press nothing"},
    {"observe-only", 0, OPTION_FLAG, AT(observe_only),
     .help = "allow only moving the pointer, scrolling, waiting, looking, planning and answering"},
    {"secret", 0, OPTION_LIST, AT(secrets), "NAME=env:VARIABLE|NAME=file:PATH", 0, 0, NULL,
     "a value that may be typed but not seen: the model writes {{NAME}}, and a task for the embedded model "
     "may say \"the password\" for PASSWORD; may be repeated", NULL},
    {"redact-frames", 0, OPTION_FLAG, AT(redact_frames), NULL, 0, 0, "yes",
     "paint over fields that a secret was typed into, in screenshots and in the record", NULL},
    HIDE_OPTION(struct run_settings, ""),
    {"pause-on-human", 0, OPTION_FLAG, AT(pause_on_human),
     .help = "pause when a person uses keyboard or pointer of the display, and look again afterwards"},
    {"human-quiet", 0, OPTION_NUMBER, AT(human_quiet), "SECONDS", 0, 3600, "5",
     "with --pause-on-human, how long the person must have been idle", NULL, .show = OPTION_MORE},
    ASKED_ANEW_OPTIONS(struct run_settings, ""),
    STEP_OPTION(struct run_settings, ""),
    BREAK_OPTION(struct run_settings),
    {"ui-display", 0, OPTION_TEXT, AT(ui_display), ":N", 0, 256, NULL,
     "display for the step window; default: the one that is worked on, beside the view where there is "
     "space, else hidden while the agent looks and acts; with --on desk, $DISPLAY, else the terminal", NULL},
    {"runs", 0, OPTION_TEXT, AT(runs), "DIR", 0, 4096, NULL,
     "folder for run directories; default: the user's state folder", "HOLORUN_RUNS",
     .group = "record and output"},
    {"report", 0, OPTION_FLAG, AT(report), NULL, 0, 0, "yes", "write report.html at the end", NULL},
    {"log-tokens", 0, OPTION_FLAG, AT(log_tokens), NULL, 0, 0, "yes",
     "record ids and probabilities of all tokens, which replay --verify needs", NULL, .show = OPTION_MORE},
    {"json", 'j', OPTION_FLAG, AT(json), .help = "one JSON object on stdout instead of the answer"},
    QUIET_OPTION(struct run_settings),
    {"verbose", 0, OPTION_FLAG, AT(verbose), .help = "show the tokens of each step"},
    {0},
};
/* clang-format on */

void job_unset(struct run_settings *s)
{
    *s = (struct run_settings){.temperature = NAN};
}

void job_begin(struct job *j, const char *build, int argc, char **argv)
{
    *j = (struct job){.build = build};
    j->model = &j->own;
    job_unset(&j->s);
    j->argc = argc;
    j->argv = xcalloc((unsigned long)argc, sizeof *j->argv);
    for (int i = 0; i < argc; i++)
        j->argv[i] = xstrdup(argv[i]);
}

int job_read_task(struct job *j, const char *word, struct err *e)
{
    size_t got = 0;
    j->task = xcalloc(JOB_TASK_MAX + 2, 1);
    if (strcmp(word, "-") != 0)
        snprintf(j->task, JOB_TASK_MAX + 2, "%s", word);
    else if (!(got = fread(j->task, 1, JOB_TASK_MAX + 1, stdin)))
        return err_set(e, ERR_USAGE, "no task on stdin");
    size_t n = strlen(j->task);
    if (got > n)
        return err_set(e, ERR_USAGE, "the task on stdin is no text: byte %zu is zero", n);
    while (n && strchr(" \n\t", j->task[n - 1]))
        j->task[--n] = 0;
    if (n == 0)
        return err_set(e, ERR_USAGE, "the task is empty");
    if (n > JOB_TASK_MAX)
        return err_set(e, ERR_USAGE, "the task is longer than %d bytes", JOB_TASK_MAX);
    if (utf8_valid_prefix(j->task, n) != n)
        return err_set(e, ERR_USAGE, "the task is not valid UTF-8 (byte %zu)", utf8_valid_prefix(j->task, n));
    return 0;
}

void job_resolve(struct job *j)
{
    struct run_settings *s = &j->s;
    const struct dialect *d = j->dialect;
    j->warm_up = isnan(s->temperature);
    if (j->warm_up)
        s->temperature = (double)d->temperature;
    if (!s->max_steps)
        s->max_steps = s->dry_run ? STEPS_DRY : STEPS;
    if (!s->view)
        s->view = d->view;
    if (!s->max_images)
        s->max_images = d->max_images;
    if (!s->reply_tokens)
        s->reply_tokens = d->max_tokens;
    if (s->window == WINDOW_AUTO)
        s->window = d->window == WINDOW_SAWTOOTH ? 1 : 2;
}
