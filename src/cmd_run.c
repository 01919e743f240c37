/* cmd_run.c - `holorun run TASK`: options, open, run, close, outcome.
 *
 * Opens what a run needs (dialect, model or script, screen, run directory), lets the agent work, makes the
 * report and says how it ended.  stdout gets the answer, or with --json one object; everything a person
 * watches goes to stderr.
 */
#include "commands.h"

#include "agent/agent.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "brakes/running.h"
#include "model/find.h"
#include "model/model.h"
#include "model/tokenizer.h"
#include "recorded.h"
#include "replay/interrupted.h"
#include "step/step.h"
#include "trace/report.h"
#include "version.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* Weights up to HASHED bytes are hashed whole at the start; of larger ones only what engine_hash covers. */
enum { HASHED = 1 << 30, TASK_MAX = 64 << 10, STEPS = 100, STEPS_DRY = 1, WINDOW_AUTO = 0 };

struct settings {
    const char *model, *device, *isa, *display, *view, *ui_display, *dialect, *fake, *runs;
    int threads, hold, weights, state, kv, max_steps, max_tokens, reply_tokens, window, max_images;
    double max_time, temperature, settle_min, settle_quiet, settle_max, key_delay, keymap_settle, human_quiet;
    uint64_t seed;
    bool weight_cache, cursor, f32, force_answer, report, dry_run, log_tokens, json, quiet, verbose;
    bool pause_on_human, corner_stop;
    size_t state_memory;
    const char *policy, *confirm;
    double confirm_timeout;
    bool observe_only, redact_frames;
    const char *secrets[OPTION_LIST_MAX + 1];
    const char *step, *breaks[OPTION_LIST_MAX + 1];
};

#define AT(member) offsetof(struct settings, member)

static const struct option_spec options[] = {
    MODEL_OPTIONS(struct settings),
    SCREEN_OPTIONS(struct settings),
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

const struct command run_command = {
    .name = "run",
    .arguments = "TASK|-",
    .purpose = "work on a task until it is done",
    .details =
        "Looks at the screen, thinks, acts, and again, until the model answers or a budget is used up. "
        "The answer, when the model gives one by itself, goes to stdout, what happens to stderr, and "
        "everything to a run "
        "directory with a report. "
        "With - the task is read from stdin.\n\n"
        "Before each action the rules are looked at (holorun policy prints them): they forbid some keys, and "
        "ask "
        "before sending, paying, deleting, granting, passwords, terminals and new addresses.  They go by the "
        "model's "
        "own words for its target, by keys, places and windows; there is no other judgement of what a page "
        "is up to, "
        "so give the agent an account and a desktop where little can go wrong.\n\n"
        "Escape twice on the display, Ctrl-C here, or holorun stop from elsewhere stops at once, also in the "
        "middle of a word, and "
        "releases every key and button. A small process beside it, holorun-guard, does so when the run is "
        "killed, "
        "suspended or hangs in an action.",
    .examples = "holorun run \"Book the 9:40 flight from Paris to Rome on 12 May for Ana Lima\"\n"
                "holorun run --display :1 --max-steps 20 --json \"Press Save\"\n",
    .options = options,
    .run = cmd_run,
};

const struct command resume_command = {
    .name = "resume",
    .arguments = "[RUN]",
    .purpose = "go on with a run that broke off",
    .details = "RUN is a run's folder or its name in the folder of runs; without it the newest run is taken. "
               "What was said "
               "is said again, without the old screenshots, the model is told that it was interrupted, and "
               "the run goes on "
               "with the screen as it is now, in a run directory of its own that names the old one as its "
               "parent: what was "
               "recorded stays as it was.\n\n"
               "Settings are those of then, unless others are given here. Steps, tokens and time count on: a "
               "run that used up "
               "a budget goes on when it gets a larger one. A run that answered is over.",
    .examples = "holorun resume\nholorun resume 20261121T054500Z-9f3c01ab --max-steps 200\n",
    .options = options,
    .run = cmd_resume,
};

const struct command step_command = {
    .name = "step",
    .arguments = "TASK|-",
    .purpose = "work on a task step by step, asking before each",
    .details = "The same as run --step: each step is shown before it happens, with what the model saw, "
               "thought and wants, "
               "how sure it was and what else it could have said. Then it can be run, changed, refused with "
               "a reason that "
               "the model reads, decided again with other dice, or left for an earlier one, which is decided "
               "again from "
               "the state and on the screen of then. Breakpoints let it run until something happens.\n\n"
               "In a terminal 'help' lists the commands; --step=script:FILE takes them from a file or a "
               "pipe, a line "
               "each, and stops at its end. What a person did is on record and in the report. The clock of "
               "--max-time "
               "stands still while a step is shown.",
    .examples = "holorun step \"Press Save\"\n"
                "holorun step --break \"kind type\" --break irreversible \"Fill in the form and send it\"\n"
                "holorun run --step=script:commands.txt \"Press Save\"\n",
    .options = options,
    .run = cmd_step,
};

struct job {
    struct settings s;
    int argc;
    char **argv; /* as given, for the record */
    char *task;
    bool warm_up, told;
    char *model_dir;
    char *dialect_source; /* what dialect_load was given */
    struct dialect *dialect;
    struct engine *engine;
    struct mind *mind;
    struct screen *screen;
    struct trace *trace;
    struct progress progress;
    struct policy *policy;
    struct secrets *secrets; /* NULL: none */
    struct gate *gate;
    struct stepper *stepper;
    char started[28];
    uint64_t weights_hash;
    bool weights_hashed;
    char *report; /* path, NULL when there is none */

    /* resume: the run that is gone on with */
    struct record record;
    struct timeline timeline;
    struct resume resume; /* parent NULL: a run of its own */
};

/* ---- opening ------------------------------------------------------------------------------------ */

/* The task from the command line, or from stdin for "-". */
static int read_task(struct job *j, const char *word, struct err *e)
{
    j->task = xcalloc(TASK_MAX + 2, 1);
    if (strcmp(word, "-") != 0)
        snprintf(j->task, TASK_MAX + 2, "%s", word);
    else if (!fread(j->task, 1, TASK_MAX + 1, stdin))
        return err_set(e, ERR_USAGE, "no task on stdin");
    size_t n = strlen(j->task);
    while (n && strchr(" \n\t", j->task[n - 1]))
        j->task[--n] = 0;
    if (n == 0)
        return err_set(e, ERR_USAGE, "the task is empty");
    if (n > TASK_MAX)
        return err_set(e, ERR_USAGE, "the task is longer than %d bytes", TASK_MAX);
    if (utf8_valid_prefix(j->task, n) != n)
        return err_set(e, ERR_USAGE, "the task is not valid UTF-8 (byte %zu)", utf8_valid_prefix(j->task, n));
    return 0;
}

/* What was not given is decided by the dialect; run.json shows the settings in force. */
static void resolve(struct job *j)
{
    struct settings *s = &j->s;
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

static int open_dialect(struct job *j, struct err *e)
{
    if (!j->s.fake && !(j->model_dir = model_find(j->s.model, e)))
        return -1;
    if (j->s.dialect)
        j->dialect_source = xstrdup(j->s.dialect);
    else
        j->dialect_source = j->model_dir ? dialect_for_model(j->model_dir, e) : xstrdup("holo3");
    j->dialect = j->dialect_source ? dialect_load(j->dialect_source, e) : NULL;
    if (!j->dialect)
        return -1;
    resolve(j);
    return 0;
}

static int open_mind(struct job *j, struct err *e)
{
    if (j->s.fake) {
        j->mind = mind_script_file(j->s.fake, e);
        return j->mind ? 0 : -1;
    }
    struct engine_options o = MODEL_ENGINE(j->s);
    o.dir = j->model_dir;
    o.f32 = j->s.f32;
    o.cancel = screen_stop_flag();
    if (!(j->engine = engine_open(&o, e)))
        return -1;
    const char *odd = chat_check(j->engine);
    if (odd)
        warn("%s", odd);
    odd = j->s.verbose ? tokenizer_check(engine_tokenizer(j->engine)) : NULL;
    if (odd)
        warn("%s", odd);
    int large = model_hash_weights(j->model_dir, HASHED, &j->weights_hash, e);
    j->weights_hashed = large == 0;
    j->mind = mind_model(j->engine, j->dialect, j->s.seed);
    return large < 0 ? -1 : 0;
}

static int open_screen(struct job *j, struct err *e)
{
    struct screen_options o = {.display = j->s.display,
                               .view = j->s.view,
                               .cursor = j->s.cursor,
                               .heed_person = j->s.pause_on_human,
                               .corner_stop = j->s.corner_stop,
                               .key_delay_ms = j->s.key_delay,
                               .keymap_settle_ms = j->s.keymap_settle};
    if (!(j->screen = screen_open(&o, e)))
        return -1;
    struct err unwatched = ERR_INIT;
    int deaf = screen_watch(j->screen, &unwatched);
    if (!j->s.dry_run && screen_hands(j->screen, e))
        return -1;
    if (!j->s.dry_run && !deaf)
        deaf = screen_watch_check(j->screen, &unwatched);
    if (deaf && unwatched.kind != ERR_STOPPED)
        warn("Escape twice will not stop this run (%s); Ctrl-C and holorun stop do%s", unwatched.text,
             j->s.pause_on_human ? ", and it will not pause for a person" : "");
    const struct dialect *d = j->dialect;
    struct screen_rect view = screen_view(j->screen);
    if (d->screen_w && (view.w != d->screen_w || view.h != d->screen_h))
        warn("this model was made for screens of %dx%d, this one is %dx%d: expect mistakes, or give it a "
             "window "
             "of that size with --view",
             d->screen_w, d->screen_h, view.w, view.h);
    return 0;
}

/* ---- run.json ------------------------------------------------------------------------------------- */

static void put_pair(struct buf *b, const char *key, const char *value)
{
    buf_printf(b, ", \"%s\": ", key);
    if (value)
        buf_put_json(b, value, strlen(value));
    else
        buf_puts(b, "null");
}

/* Which model, and how it computes. */
static void put_engine(const struct job *j, struct buf *b)
{
    buf_printf(b, ", \"hash\": \"%016llx\", \"isa\": \"%s\", \"threads\": %d, \"weights\": ",
               (unsigned long long)engine_hash(j->engine), engine_isa(j->engine), engine_threads(j->engine));
    if (j->weights_hashed)
        buf_printf(b, "\"%016llx\"", (unsigned long long)j->weights_hash);
    else
        buf_puts(b, "null");
    char *dir = realpath(j->model_dir, NULL);
    put_pair(b, "dir", dir);
    free(dir);
}

static int write_run_json(struct job *j, const char *status, int exit_code, struct err *e)
{
    struct screen_rect view = screen_view(j->screen);
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_puts(&b, "{\"schema\": 1");
    put_pair(&b, "version", HOLORUN_VERSION);
    put_pair(&b, "build", *version_build() ? version_build() : NULL);
    put_pair(&b, "parent", j->resume.parent);
    put_pair(&b, "task", j->task);
    buf_puts(&b, ", \"argv\": [");
    for (int i = 0; i < j->argc; i++) {
        buf_puts(&b, i ? ", " : "");
        buf_put_json(&b, j->argv[i], strlen(j->argv[i]));
    }
    buf_puts(&b, "]");
    buf_printf(&b, ", \"warm_up\": %s", j->warm_up ? "true" : "false");
    put_pair(&b, "started", j->started);
    put_pair(&b, "status", status);
    if (exit_code >= 0)
        buf_printf(&b, ", \"exit\": %d", exit_code);
    buf_puts(&b, ", \"model\": {\"name\": ");
    const char *name = j->model_dir ? j->model_dir : "script";
    buf_put_json(&b, name, strlen(name));
    if (j->engine)
        put_engine(j, &b);
    buf_puts(&b, "}, \"dialect\": {\"name\": ");
    buf_put_json(&b, j->dialect->name, strlen(j->dialect->name));
    put_pair(&b, "sha256", j->dialect->sha256);
    put_pair(&b, "source", j->dialect_source);
    buf_puts(&b, "}, \"policy\": {\"name\": ");
    buf_put_json(&b, policy_name(j->policy), strlen(policy_name(j->policy)));
    put_pair(&b, "sha256", policy_sha256(j->policy));
    buf_puts(&b, "}, \"display\": {\"name\": ");
    buf_put_json(&b, screen_name(j->screen), strlen(screen_name(j->screen)));
    buf_printf(&b, ", \"x\": %d, \"y\": %d, \"w\": %d, \"h\": %d}, \"settings\": ", view.x, view.y, view.w,
               view.h);
    options_to_json(options, &j->s, &b);
    buf_puts(&b, "}\n");
    int rc = trace_run_json(j->trace, b.data, b.len, e);
    buf_free(&b);
    return rc;
}

/* ---- the outcome ------------------------------------------------------------------------------------ */

static void print_json(const struct job *j, const struct agent_result *r, const struct err *e, int code)
{
    static const char *const phases[PHASES] = {"settle", "see", "read", "decide", "act"};
    struct buf b;
    buf_init(&b, 4 << 20);
    buf_printf(&b, "{\"status\": \"%s\", \"exit\": %d", agent_status_name(r->status), code);
    put_pair(&b, "answer", r->answer);
    if (e->kind)
        put_pair(&b, "error", e->text);
    buf_printf(&b, ", \"steps\": %d, \"seconds\": %.3f", r->steps, r->seconds);
    put_pair(&b, "run_dir", j->trace ? trace_dir(j->trace) : NULL);
    put_pair(&b, "report", j->report);
    buf_puts(&b, ", \"ms\": {");
    for (int p = 0; p < PHASES; p++)
        buf_printf(&b, "%s\"%s\": %.1f", p ? ", " : "", phases[p], r->ms[p]);
    buf_printf(
        &b, "}, \"tokens\": {\"generated\": %lld, \"forced\": %lld, \"prefilled\": %lld, \"reused\": %lld}}",
        (long long)r->generated, (long long)r->forced, (long long)r->prefilled, (long long)r->reused);
    puts(b.data);
    buf_free(&b);
}

static void print_outcome(const struct job *j, const struct agent_result *r, const struct err *e, int code)
{
    const struct progress *p = &j->progress;
    char text[128];
    bool done = r->status == AGENT_ANSWERED, own = done || r->status == AGENT_INFEASIBLE;
    const char *why = e->kind ? e->text : agent_status_meaning(r->status);
    progress_tail(p, code == 0, done ? "done" : "ended", done ? r->answer : why);
    const char *asked = own ? NULL : r->answer; /* for because a budget was used up: no result */
    if (asked)
        progress_head(p, "said", asked);
    snprintf(text, sizeof text, "%d step%s in %.1f s", r->steps, r->steps == 1 ? "" : "s", r->seconds);
    progress_head(p, "took", text);
    progress_head(p, "run", trace_dir(j->trace));
    if (j->report)
        progress_head(p, "see", j->report);
    if (j->s.quiet && code) /* quiet about progress, not about failure */
        fprintf(stderr, "holorun: %s\n", why);
    if (j->s.json)
        print_json(j, r, e, code);
    else if (own)
        puts(r->answer);
}

/* ---- the run ---------------------------------------------------------------------------------------- */

static char *mask(const void *secrets, const char *text)
{
    return secrets_mask(secrets, text);
}

static void scrub(const void *secrets, struct buf *json)
{
    secrets_scrub_json(secrets, json);
}

/* Values must not be in what the system keeps of a process that dies, nor in what is asked of the model. */
static int open_secrets(struct job *j, struct err *e)
{
    static const struct rlimit none = {0, 0};
    if (!*j->s.secrets)
        return 0;
    prctl(PR_SET_DUMPABLE, 0);
    setrlimit(RLIMIT_CORE, &none);
    j->secrets = secrets_new();
    for (const char *const *spec = j->s.secrets; *spec; spec++)
        if (secrets_add(j->secrets, *spec, e))
            return -1;
    char *task = secrets_mask(j->secrets, j->task);
    free(j->task);
    j->task = task;
    j->progress.mask = mask;
    j->progress.mask_arg = j->secrets;
    return 0;
}

static int open_gate(struct job *j, struct err *e)
{
    struct confirm confirm = {.seconds = j->s.confirm_timeout};
    if (confirm_parse(j->s.confirm, &confirm, e) || !(j->policy = policy_open(j->s.policy, e)))
        return -1;
    struct gate_options o = {.policy = j->policy,
                             .confirm = confirm,
                             .dry_run = j->s.dry_run,
                             .observe_only = j->s.observe_only,
                             .secrets = j->secrets,
                             .redact = j->s.redact_frames,
                             .task = j->task};
    j->gate = gate_new(&o);
    return 0;
}

/* Breakpoints are for steps that are shown. */
static int open_stepper(struct job *j, struct err *e)
{
    if (!j->s.step && *j->s.breaks)
        j->s.step = "auto";
    if (!j->s.step)
        return 0;
    const struct step_where where = {.out = stderr,
                                     .quiet = j->s.quiet,
                                     .captured = screen_name(j->screen),
                                     .view = screen_view(j->screen),
                                     .display = j->s.ui_display};
    return (j->stepper = stepper_open(j->s.step, j->s.breaks, &where, e)) ? 0 : -1;
}

static void fill_options(struct job *j, struct agent_options *o)
{
    const struct settings *s = &j->s;
    const struct dialect *d = j->dialect;
    *o = (struct agent_options){
        .task = j->task,
        .dialect = d,
        .mind = j->mind,
        .screen = j->screen,
        .trace = j->trace,
        .secrets = j->secrets,
        .gate = j->gate,
        .resume = j->resume.parent ? &j->resume : NULL,
        .progress = &j->progress,
        .window = s->window == 1 ? WINDOW_SAWTOOTH : WINDOW_STRICT,
        .max_images = s->max_images,
        .sampling = {(float)s->temperature, d->top_p, s->reply_tokens},
        .warm_up = j->warm_up,
        .max_steps = s->max_steps,
        .max_seconds = s->max_time,
        .max_tokens = s->max_tokens,
        .force_answer = s->force_answer,
        .dry_run = s->dry_run,
        .log_tokens = s->log_tokens,
        .human_quiet_ms = 1000 * s->human_quiet,
        .settle = {s->settle_min, s->settle_quiet, s->settle_max},
        .overseer = j->stepper ? stepper_overseer(j->stepper) : NULL,
    };
}

/* Everything is open: run, close the record, say how it ended. */
static int work(struct job *j)
{
    struct err e = ERR_INIT, late = ERR_INIT;
    struct agent_options o;
    struct agent_result r = {0};
    fill_options(j, &o);
    progress_head(&j->progress, "task", j->task);
    agent_run(&o, &r, &e);
    int code = agent_exit_code(r.status, &e);
    if (write_run_json(j, agent_status_name(r.status), code, &late) && !e.kind) {
        e = late;
        code = e.kind;
    }
    char *dir = xstrdup(trace_dir(j->trace));
    if (j->s.report) {
        j->report = xasprintf("%s/report.html", dir);
        if (trace_sync(j->trace, &late) || report_write(dir, j->report, &late)) {
            if (strcmp(late.text, e.text) != 0) /* a full disk need not be told twice */
                warn("no report: %s", late.text);
            free(j->report);
            j->report = NULL;
        }
    }
    print_outcome(j, &r, &e, code);
    free(r.answer);
    free(dir);
    return code;
}

static void job_close(struct job *j)
{
    struct err e = ERR_INIT;
    screen_close(j->screen);
    if (j->told)
        running_leave();
    if (trace_close(j->trace, &e))
        warn("%s", e.text);
    mind_free(j->mind);
    engine_close(j->engine);
    interrupted_free(&j->resume);
    timeline_free(&j->timeline);
    record_free(&j->record);
    stepper_free(j->stepper);
    gate_free(j->gate);
    secrets_free(j->secrets);
    policy_free(j->policy);
    if (j->dialect)
        dialect_free(j->dialect);
    free(j->dialect_source);
    free(j->model_dir);
    free(j->report);
    for (int i = 0; i < j->argc; i++)
        free(j->argv[i]);
    free(j->argv);
    free(j->task);
}

/* Parsing moves the words of argv: the record keeps them as they were. */
static void keep_argv(struct job *j, int argc, char **argv)
{
    j->argc = argc;
    j->argv = xcalloc((unsigned long)argc, sizeof *j->argv);
    for (int i = 0; i < argc; i++)
        j->argv[i] = xstrdup(argv[i]);
}

/* So that `holorun stop` finds this run. */
static void tell_others(struct job *j)
{
    struct err e = ERR_INIT;
    char *dir = j->trace ? realpath(trace_dir(j->trace), NULL) : NULL;
    if (running_enter(screen_name(j->screen), dir, j->task, j->started, &e))
        warn("holorun stop will not find this run: %s", e.text);
    j->told = true;
    free(dir);
}

/* The screen is opened before the model: a missing display, or one that is driven by another, is known at once. */
static int open_all(struct job *j, struct err *e)
{
    if (open_secrets(j, e) || open_gate(j, e) || open_dialect(j, e) || open_screen(j, e) ||
        open_stepper(j, e))
        return -1;
    tell_others(j);
    if (open_mind(j, e))
        return -1;
    if (!(j->trace = trace_open(j->s.runs, e)))
        return err_set(e, e->kind, "%s; choose another place for runs with --runs", e->text);
    tell_others(j);
    trace_scrub(j->trace, scrub, j->secrets);
    gate_begin(j->gate, j->screen, trace_dir(j->trace));
    return write_run_json(j, "running", -1, e);
}

static int fail_to_open(const struct job *j, const struct err *e)
{
    const struct agent_result none = {.status = e->kind == ERR_STOPPED ? AGENT_STOPPED : AGENT_FAILED};
    int code = e->kind ? (int)e->kind : ERR_ENV;
    fprintf(stderr, "holorun: %s\n", e->text);
    if (j->s.json)
        print_json(j, &none, e, code);
    return code;
}

static int go(struct job *j, struct err *e)
{
    clock_iso(j->started);
    progress_open(&j->progress, stderr, j->s.quiet, j->s.verbose);
    struct err unguarded = ERR_INIT;
    if (!j->s.dry_run && screen_guard(&unguarded)) /* before there are threads */
        warn("%s", unguarded.text);
    screen_install_signals();
    return open_all(j, e) ? fail_to_open(j, e) : work(j);
}

/* step: how steps are shown unless the command line says so. */
static int run_or_step(const struct command *command, const char *step, int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct job j = {.s = {.temperature = NAN, .step = step}};
    keep_argv(&j, argc, argv);
    int n = options_parse(command, &j.s, argc, argv, &e), code = 0;
    if (n > 1) {
        char *quoted = options_quoted(argv, n);
        n = err_set(&e, ERR_USAGE, "a task is one argument; put it in quotes: holorun %s %s", command->name,
                    quoted);
        free(quoted);
    } else if (n == 0) {
        n = err_set(&e, ERR_USAGE, "%s takes a task in quotes, or - to read it from stdin", command->name);
    }
    if (n == 1 && read_task(&j, argv[0], &e))
        n = -1;
    if (n == 1)
        code = go(&j, &e);
    else if (n != OPTIONS_HELP)
        code = options_refuse(command, &e);
    job_close(&j);
    screen_guard_end();
    return code;
}

int cmd_run(int argc, char **argv)
{
    return run_or_step(&run_command, NULL, argc, argv);
}

int cmd_step(int argc, char **argv)
{
    return run_or_step(&step_command, "auto", argc, argv);
}

/* ---- going on ------------------------------------------------------------------------------------------ */

/* The settings of then are words before those of now: the words are read twice, first to learn which run it is. */
static int read_interrupted(struct job *j, struct recorded_line *l, int argc, char **argv, struct err *e)
{
    static const char *const taken[] = {"model",          "device",       "isa",         "weights",
                                        "hold",           "display",      "view",        "cursor",
                                        "dialect",        "max-steps",    "max-time",    "max-tokens",
                                        "seed",           "reply-tokens", "window",      "max-images",
                                        "force-answer",   "settle-min",   "f32",         "settle-max",
                                        "settle-quiet",   "observe-only", "key-delay",   "keymap-settle",
                                        "pause-on-human", "human-quiet",  "corner-stop", NULL};
    char **first = xcalloc((unsigned long)argc + 1, sizeof *first);
    memcpy(first, argv, (size_t)argc * sizeof *first);
    int n = options_parse(&resume_command, &j->s, argc, first, e);
    if (n > 1)
        n = err_set(e, ERR_USAGE, "one run at a time, not %d", n);
    char *dir = n >= 0 ? recorded_find(n ? first[0] : NULL, j->s.runs, e) : NULL;
    free(first);
    if (n >= 0 && (!dir || record_open(&j->record, dir, e)))
        n = -1;
    free(dir);
    if (n < 0)
        return n;
    j->s = (struct settings){.temperature = NAN};
    recorded_line(l, json_object_get(j->record.run, "settings"), options, taken, argc, argv);
    return options_parse(&resume_command, &j->s, l->argc, l->argv, e);
}

/* The rules are not taken from a folder that may come from anywhere: those in force must be those of then. */
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
                          "the run went by other rules ('%s'): say with --policy which are to be in force",
                          field_text(then, "name"));
}

static int open_interrupted(struct job *j, struct err *e)
{
    const char *task = field_text(j->record.run, "task");
    if (!*task)
        return err_set(e, ERR_USAGE, "'%s' has no task: its run.json is missing or damaged", j->record.dir);
    if (same_rules(j, e) || timeline_open(&j->timeline, &j->record, e) ||
        interrupted_make(&j->resume, &j->timeline, e) || read_task(j, task, e))
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
    struct job j = {.s = {.temperature = NAN}};
    struct recorded_line l = {0};
    keep_argv(&j, argc, argv);
    int n = read_interrupted(&j, &l, argc, argv, &e), code = 0;
    if (n >= 0 && open_interrupted(&j, &e) == 0)
        code = go(&j, &e);
    else if (n != OPTIONS_HELP)
        code = n < 0 && e.kind == ERR_USAGE ? options_refuse(&resume_command, &e) : options_failed(&e);
    job_close(&j);
    screen_guard_end();
    recorded_line_free(&l);
    return code;
}
