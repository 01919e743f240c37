/* settings.c - what a run is asked for: the options, the words as they were, the task.  See job.h.
 *
 * One table is the options of `run`, `step` and `resume`, their help, and the settings in run.json, from which `resume`
 * takes them again.  A setting that was not given (0, NAN, auto) is decided by the dialect once that is known.
 */
#include "run/job.h"

#include "base/utf8.h"
#include "cli/shared_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 100, STEPS_DRY = 1, WINDOW_AUTO = 0 };

#define AT(member) offsetof(struct run_settings, member)

const struct option_spec job_options[] = {
    MODEL_OPTIONS(struct run_settings),
    SCREEN_OPTIONS(struct run_settings),
    {"monitor", 0, OPTION_TEXT, AT(view), "NAME", 0, 256, NULL, "the same as --view", NULL},
    DIALECT_OPTION(struct run_settings),
    {"max-steps", 'n', OPTION_INT, AT(max_steps), "N", 1, 100000, NULL,
     "steps before the run ends, 100 without it, 1 in a dry run", NULL},
    {"max-time", 0, OPTION_NUMBER, AT(max_time), "SECONDS", 0.1, 1e6, "1800",
     "time before the run ends, in the middle of an action if need be", NULL},
    {"max-tokens", 0, OPTION_INT, AT(max_tokens), "N", 0, 1e9, "0",
     "generated tokens before the run ends, 0 for no limit", NULL},
    LIMIT_OPTIONS(struct run_settings),
    {"reply-tokens", 0, OPTION_INT, AT(reply_tokens), "N", 0, 100000, "0",
     "longest single reply, 0 for what the dialect says", NULL},
    {"temperature", 't', OPTION_NUMBER, AT(temperature), "T", 0, 10, NULL,
     "0 for the likeliest reply, more for variety; without it what the dialect says, a little more after an "
     "action without effect",
     NULL},
    {"seed", 's', OPTION_SEED, AT(seed), "N", 0, 0, "1", "seed of the dice", NULL},
    {"window", 'w', OPTION_CHOICE, AT(window), "auto|sawtooth|strict", 0, 0, "auto",
     "how old screenshots leave the model's view: all at once, one by one, or as the dialect says", NULL},
    {"max-images", 0, OPTION_INT, AT(max_images), "N", 0, 4, "0",
     "screenshots in the model's view, 0 for what the dialect says", NULL},
    {"force-answer", 0, OPTION_FLAG, AT(force_answer), NULL, 0, 0, "yes",
     "ask for an answer once more when a budget is used up; it is shown, but is no result", NULL},
    ASKED_ANEW_OPTIONS(struct run_settings, ""),
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), .help = "decide and record, but press nothing"},
    {"secret", 0, OPTION_LIST, AT(secrets), "NAME=env:VARIABLE|NAME=file:PATH", 0, 0, NULL,
     "a value that may be typed but not seen: the model writes {{NAME}}; may be given several times", NULL},
    {"redact-frames", 0, OPTION_FLAG, AT(redact_frames), NULL, 0, 0, "yes",
     "paint over fields that a secret was typed into, in what the model sees and in what is recorded", NULL},
    HIDE_OPTION(struct run_settings, ""),
    {"observe-only", 0, OPTION_FLAG, AT(observe_only),
     .help = "nothing but moving the pointer, scrolling, waiting, looking, planning and answering"},
    RULES_OPTIONS(struct run_settings),
    STEP_OPTION(struct run_settings, ""),
    {"ui-display", 0, OPTION_TEXT, AT(ui_display), ":N", 0, 256, NULL,
     "with --step: where its window opens; without it on the display that is worked on, beside what is "
     "looked at where "
     "there is room, else hidden while the agent looks and acts",
     NULL},
    BREAK_OPTION(struct run_settings),
    PACE_OPTIONS(struct run_settings, ""),
    {"pause-on-human", 0, OPTION_FLAG, AT(pause_on_human),
     .help =
         "when a person uses keyboard or pointer of the display, break off, wait for quiet, and look again"},
    {"human-quiet", 0, OPTION_NUMBER, AT(human_quiet), "SECONDS", 0, 3600, "3",
     "quiet after which --pause-on-human goes on", NULL},
    {"corner-stop", 0, OPTION_FLAG, AT(corner_stop),
     .help = "stop also when a person leaves the pointer in the top left corner for a second"},
    {"runs", 0, OPTION_TEXT, AT(runs), "DIR", 0, 4096, NULL,
     "folder for run directories; without it the user's state folder", "HOLORUN_RUNS"},
    {"report", 0, OPTION_FLAG, AT(report), NULL, 0, 0, "yes", "write report.html at the end", NULL},
    {"log-tokens", 0, OPTION_FLAG, AT(log_tokens), NULL, 0, 0, "yes",
     "keep the ids and probabilities of all tokens, which replay --verify needs", NULL},
    {"fake", 0, OPTION_TEXT, AT(fake), "FILE", 0, 4096, NULL,
     "take replies from a file instead of a model, one a line or one between empty lines", NULL},
    F32_OPTION(struct run_settings),
    {"json", 'j', OPTION_FLAG, AT(json), .help = "one JSON object on stdout instead of the answer"},
    QUIET_OPTION(struct run_settings),
    {"verbose", 0, OPTION_FLAG, AT(verbose), .help = "tokens of each step too"},
    {0},
};

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
    if (!s->max_images)
        s->max_images = d->max_images;
    if (!s->reply_tokens)
        s->reply_tokens = d->max_tokens;
    if (s->window == WINDOW_AUTO)
        s->window = d->window == WINDOW_SAWTOOTH ? 1 : 2;
}
