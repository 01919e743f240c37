/* settings.c - what a run is asked for: the options, the words as they were, the task.  See job.h.
 *
 * One table is the options of `run`, `step` and `resume`, their help, and the settings in run.json, from which `resume`
 * takes them again.  A setting that was not given (0, NAN, auto) is decided by the dialect once that is known.
 */
#include "run/job.h"

#include "base/utf8.h"
#include "shared_options.h"

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
    {"dialect", 0, OPTION_TEXT, AT(dialect), "NAME", 0, 4096, NULL,
     "how to speak to the model, a built-in name or a file; without it as the model's directory says", NULL},
    {"max-steps", 'n', OPTION_INT, AT(max_steps), "N", 1, 100000, NULL,
     "steps before the run ends, 100 without it, 1 in a dry run", NULL},
    {"max-time", 0, OPTION_NUMBER, AT(max_time), "SECONDS", 0.1, 1e6, "1800",
     "time before the run ends, in the middle of an action if need be", NULL},
    {"max-tokens", 0, OPTION_INT, AT(max_tokens), "N", 0, 1e9, "0",
     "generated tokens before the run ends, 0 for no limit", NULL},
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
    {"localizer", 0, OPTION_FLAG, AT(localizer),
     .help = "ask the model anew for the place of each element that it wants to click or write into, shown "
             "nothing but the "
             "newest screenshot"},
    {"validator", 0, OPTION_INT, AT(validator), "N", 0, 9, "0",
     "an answer counts only when the model, asked anew and shown the last screenshots, says N times in a row "
     "that the task "
     "was carried out; else its reason goes back to the agent, which goes on",
     NULL},
    {"max-validations", 0, OPTION_INT, AT(max_validations), "N", 1, 100, "3",
     "answers that --validator looks at before the run ends with exit code 1", NULL},
    {"dry-run", 0, OPTION_FLAG, AT(dry_run), .help = "decide and record, but press nothing"},
    {"secret", 0, OPTION_LIST, AT(secrets), "NAME=env:VARIABLE|NAME=file:PATH", 0, 0, NULL,
     "a value that may be typed but not seen: the model writes {{NAME}}; may be given several times", NULL},
    {"redact-frames", 0, OPTION_FLAG, AT(redact_frames), NULL, 0, 0, "yes",
     "paint over fields that a secret was typed into, in what the model sees and in what is recorded", NULL},
    {"observe-only", 0, OPTION_FLAG, AT(observe_only),
     .help = "nothing but moving the pointer, scrolling, waiting, looking, planning and answering"},
    {"policy", 0, OPTION_TEXT, AT(policy), "FILE", 0, 4096, NULL,
     "rules on what may be done (see holorun policy); without it policy.yaml in the user's configuration "
     "folder "
     "when there is one; the built-in rules follow",
     "HOLORUN_POLICY"},
    {"confirm", 0, OPTION_TEXT, AT(confirm), "HOW", 0, 4096, "auto",
     "who is asked before what the rules want a person to confirm: tty, cmd:COMMAND (the question is JSON on "
     "its "
     "stdin, exit code 0 is yes), never (the answer is no), yes-to-all (nobody is asked, all of it is done), "
     "or "
     "auto: tty when there is a terminal, else never",
     "HOLORUN_CONFIRM"},
    {"confirm-timeout", 0, OPTION_NUMBER, AT(confirm_timeout), "SECONDS", 0.1, 86400, "60",
     "no answer within this time is no", NULL},
    {"step", 0, OPTION_MAYBE, AT(step), "terminal|window|script:FILE", 0, 4096, NULL,
     "show each step before it runs, and ask: run it, change it, refuse it, decide again, go back; see "
     "holorun "
     "step",
     NULL},
    {"ui-display", 0, OPTION_TEXT, AT(ui_display), ":N", 0, 256, NULL,
     "with --step: where its window opens; without it on the display that is worked on, beside what is "
     "looked at where "
     "there is room, else hidden while the agent looks and acts",
     NULL},
    {"break", 0, OPTION_LIST, AT(breaks), "WHEN", 0, 127, NULL,
     "with --step: run until this, more than once if need be: step 7, kind click, text PATTERN, window "
     "PATTERN, "
     "irreversible, confidence 0.8, no-effect",
     NULL},
    {"settle-min", 0, OPTION_NUMBER, AT(settle_min), "MS", 0, 60000, "150",
     "shortest wait for the screen after an action", NULL},
    {"settle-quiet", 0, OPTION_NUMBER, AT(settle_quiet), "MS", 0, 60000, "300",
     "quiet time that counts as settled", NULL},
    {"settle-max", 0, OPTION_NUMBER, AT(settle_max), "MS", 0, 600000, "3000", "longest wait for the screen",
     NULL},
    {"pause-on-human", 0, OPTION_FLAG, AT(pause_on_human),
     .help =
         "when a person uses keyboard or pointer of the display, break off, wait for quiet, and look again"},
    {"human-quiet", 0, OPTION_NUMBER, AT(human_quiet), "SECONDS", 0, 3600, "3",
     "quiet after which --pause-on-human goes on", NULL},
    {"corner-stop", 0, OPTION_FLAG, AT(corner_stop),
     .help = "stop also when a person leaves the pointer in the top left corner for a second"},
    {"key-delay", 0, OPTION_NUMBER, AT(key_delay), "MS", 0, 1000, "5", "pause between typed characters",
     NULL},
    {"keymap-settle", 0, OPTION_NUMBER, AT(keymap_settle), "MS", 0, 5000, "50",
     "pause after borrowing keycodes", NULL},
    {"runs", 0, OPTION_TEXT, AT(runs), "DIR", 0, 4096, NULL,
     "folder for run directories; without it the user's state folder", "HOLORUN_RUNS"},
    {"report", 0, OPTION_FLAG, AT(report), NULL, 0, 0, "yes", "write report.html at the end", NULL},
    {"log-tokens", 0, OPTION_FLAG, AT(log_tokens), NULL, 0, 0, "yes",
     "keep the ids and probabilities of all tokens, which replay --verify needs", NULL},
    {"fake", 0, OPTION_TEXT, AT(fake), "FILE", 0, 4096, NULL,
     "take replies from a file instead of a model, one a line or one between empty lines", NULL},
    {"f32", 0, OPTION_FLAG, AT(f32), .help = "compute in f32 instead of bf16"},
    {"json", 'j', OPTION_FLAG, AT(json), .help = "one JSON object on stdout instead of the answer"},
    {"quiet", 'q', OPTION_FLAG, AT(quiet), .help = "no progress on stderr"},
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
    j->task = xcalloc(JOB_TASK_MAX + 2, 1);
    if (strcmp(word, "-") != 0)
        snprintf(j->task, JOB_TASK_MAX + 2, "%s", word);
    else if (!fread(j->task, 1, JOB_TASK_MAX + 1, stdin))
        return err_set(e, ERR_USAGE, "no task on stdin");
    size_t n = strlen(j->task);
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
