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
     "when to drop old screenshots from the context: all at once when it is full (sawtooth), the oldest one "
     "at each step (strict), or as the dialect specifies (auto)", NULL},
    {"max-images", 0, OPTION_INT, AT(max_images), "N", 0, 4, "0",
     "maximum number of screenshots in the context; 0: as in the dialect", NULL},
    {"reply-tokens", 0, OPTION_INT, AT(reply_tokens), "N", 0, 100000, "0",
     "maximum tokens of a single reply; 0: as in the dialect", NULL, .show = OPTION_MORE},
    {"fake", 0, OPTION_TEXT, AT(fake), "FILE", 0, 4096, NULL,
     "read the replies from a file instead of a model, one per line, or separated by empty lines; or play a "
     "recording (see holorun record)",
     NULL},
    SCREEN_OPTIONS(struct run_settings),
    {"on", 0, OPTION_TEXT, AT(on), "desk[:WIDTHxHEIGHT]", 0, 64, NULL,
     "work on a private desktop, opened for this run (see holorun desk)", NULL},
    {"start", 0, OPTION_TEXT, AT(start), "COMMAND", 0, 4096, NULL,
     "with --on desk: program to start; the run begins when a window opens", NULL},
    {"home", 0, OPTION_TEXT, AT(home), "DIR", 0, 1000, NULL,
     "with --on desk: home folder for programs on the desktop, created if missing, kept for the next run "
     "(with browser profiles, for example), and used by one desktop at a time; default: a temporary one",
     NULL},
    {"desk-view", 0, OPTION_MAYBE, AT(desk_view), "127.0.0.1:PORT|unix:PATH", 0, 256, NULL,
     "with --on desk: let VNC viewers watch and control the desktop, as holorun desk --view does", NULL},
    {"password-file", 0, OPTION_TEXT, AT(password_file), "FILE", 0, 4096, NULL,
     "with --desk-view: file with the password for viewers", NULL, .show = OPTION_MORE},
    PACE_OPTIONS(struct run_settings, ""),
    THINK_EARLY_OPTION(struct run_settings),
    ASSIST_OPTION(struct run_settings),
    {"max-steps", 'n', OPTION_INT, AT(max_steps), "N", 1, 100000, NULL,
     "maximum number of steps; default: 100, 1 in a dry run", NULL,
     .group = "budgets (see also the limits of a policy file)"},
    {"max-time", 0, OPTION_NUMBER, AT(max_time), "SECONDS", 0.1, 1e6, "1800",
     "maximum time; ends the run even in the middle of an action", NULL},
    {"max-tokens", 0, OPTION_INT, AT(max_tokens), "N", 0, 1e9, "0",
     "maximum number of generated tokens; 0: no limit", NULL},
    {"force-answer", 0, OPTION_FLAG, AT(force_answer), NULL, 0, 0, "yes",
     "request a final answer, without effect on the result, when a budget is used up", NULL,
     .show = OPTION_MORE},
    RULES_OPTIONS(struct run_settings),
    ELEMENTS_OPTIONS(struct run_settings),
    {"plain", 0, OPTION_CHOICE, AT(plain), "auto|only|no", 0, 0, "auto",
     "perform a task that consists of plain steps, as 'choose Large in Size, then press Save', on named "
     "elements without a model (holorun help sentences); auto: where the embedded model would be used",
     NULL},
    {"planner", 0, OPTION_CHOICE, AT(planner), "auto|only|no", 0, 0, "no",
     "propose plain steps for a freely worded task, without a model (holorun help planner); a user at the "
     "terminal confirms them, without a user they are performed only with --confirm yes-to-all and if the "
     "planner is sure; only: end with exit code 8 else; auto: use the model then, unless the user declined; "
     "with --dry-run: print the steps; with -m and a model without vision, that model is asked where the "
     "rules do not decide",
     NULL},
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), .help = "decide and record, but send no input"},
    {"observe-only", 0, OPTION_FLAG, AT(observe_only),
     .help = "allow only pointer moves, scrolling, waiting, screenshots, plans and answers"},
    {"secret", 0, OPTION_LIST, AT(secrets), "NAME=env:VARIABLE|NAME=file:PATH", 0, 0, NULL,
     "a value that the model can type but not see: it writes {{NAME}}; a task for the embedded model may "
     "call PASSWORD \"the password\"; may be repeated", NULL},
    {"redact-frames", 0, OPTION_FLAG, AT(redact_frames), NULL, 0, 0, "yes",
     "mask fields with typed secrets in screenshots and in the record", NULL},
    HIDE_OPTION(struct run_settings, ""),
    {"pause-on-human", 0, OPTION_FLAG, AT(pause_on_human),
     .help = "pause when the user uses pointer or keyboard of the display, then take a new screenshot"},
    {"human-quiet", 0, OPTION_NUMBER, AT(human_quiet), "SECONDS", 0, 3600, "5",
     "with --pause-on-human: time without user input after which the run continues", NULL,
     .show = OPTION_MORE},
    ASKED_ANEW_OPTIONS(struct run_settings, ""),
    STEP_OPTION(struct run_settings, ""),
    BREAK_OPTION(struct run_settings),
    {"ui-display", 0, OPTION_TEXT, AT(ui_display), ":N", 0, 256, NULL,
     "display for the step window; default: the display of the run, outside the view if there is space, "
     "else hidden during screenshots and actions; with --on desk: $DISPLAY, else the terminal", NULL},
    {"runs", 0, OPTION_TEXT, AT(runs), "DIR", 0, 4096, NULL,
     "folder for run directories; default: in the user's state folder", "HOLORUN_RUNS",
     .group = "record and output"},
    {"report", 0, OPTION_FLAG, AT(report), NULL, 0, 0, "yes", "write report.html at the end", NULL},
    {"log-tokens", 0, OPTION_FLAG, AT(log_tokens), NULL, 0, 0, "yes",
     "record ids and probabilities of all tokens, as needed by replay --verify", NULL, .show = OPTION_MORE},
    {"json", 'j', OPTION_FLAG, AT(json), .help = "print one JSON object on stdout instead of the answer"},
    QUIET_OPTION(struct run_settings),
    {"verbose", 0, OPTION_FLAG, AT(verbose), .help = "show the tokens of each step"},
    {0},
};
/* clang-format on */

void job_unset(struct run_settings *s)
{
    *s = (struct run_settings){
        .temperature = NAN, .settle_min = NAN, .settle_quiet = NAN, .settle_max = NAN, .key_delay = NAN};
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
        return err_set(e, ERR_USAGE, "the task on stdin is not text: byte %zu is NUL", n);
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
