/* replay.c - `holorun replay RUN --verify`: feeds the recorded screenshots to the model again and compares
 * the result.
 *
 * The recorded settings determine how the model computes (instruction set, storage types), unless the command
 * line overrides them. */
#include "cmd/commands.h"

#include "checkpoint/find.h"
#include "cli/recorded.h"
#include "cmd/replay.h"
#include "replay/verify.h"
#include "screen/screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct replay_settings, member)

static const struct option_spec options[] = {
    {"verify", 0, OPTION_FLAG, AT(verify),
     .help =
         "feed the recorded screenshots to the model again and compare every token and a hash of all logits"},
    {"actions", 0, OPTION_FLAG, AT(actions), .help = "perform the recorded actions, without a model"},
    {"from", 0, OPTION_INT, AT(from), "K", 1, 100000, "1", "first step to perform", NULL},
    {"to", 0, OPTION_INT, AT(to), "K", 0, 100000, "0", "last step to perform, 0 for the last of the run",
     NULL},
    {"threshold", 0, OPTION_NUMBER, AT(threshold), "SHARE", 0, 1, "0.005",
     "fraction of the screen, in tiles of 32x32 pixels, that may differ from the record before an action",
     NULL},
    {"speed", 0, OPTION_NUMBER, AT(speed), "X", 0, 1000, "0",
     "1 keeps the recorded pauses, 2 halves them, 0 waits only for the recorded screen", NULL},
    {"dry-run", 0, OPTION_FLAG, AT(dry_run),
     .help = "compare the screen before each action, but send no input"},
    SCREEN_OPTIONS(struct replay_settings),
    PACE_OPTIONS(struct replay_settings, "; default: as in the run"),
    {"observe-only", 0, OPTION_FLAG, AT(observe_only),
     .help = "allow only pointer moves, scrolling, waiting and screenshots"},
    {"secret", 0, OPTION_LIST, AT(secrets), "NAME=env:VARIABLE|NAME=file:PATH", 0, 0, NULL,
     "value for {{NAME}} in recorded text, as for run; may be repeated", NULL},
    {"redact-frames", 0, OPTION_FLAG, AT(redact_frames), NULL, 0, 0, "yes",
     "mask fields with typed secrets; must be as in the run, or the screens differ", NULL},
    HIDE_OPTION(struct replay_settings, "; default: as in the run"),
    RULES_OPTIONS(struct replay_settings),
    {"report", 0, OPTION_FLAG, AT(report), NULL, 0, 0, "yes", "write report.html with both runs side by side",
     NULL},
    MODEL_OPTIONS(struct replay_settings),
    {"dialect", 0, OPTION_TEXT, AT(dialect), "NAME", 0, 4096, NULL,
     "prompt and reply format; default: the run's", NULL},
    RUNS_OPTION(struct replay_settings),
    JSON_OPTION(struct replay_settings),
    QUIET_OPTION(struct replay_settings),
    {0},
};

const struct command replay_command = {
    .name = "replay",
    .arguments = "[RUN]",
    .purpose = "repeat a recorded run and compare",
    .details =
        "RUN is a run directory or its name in the folder of runs; default: the newest run.\n\n"
        "--verify feeds the recorded screenshots to the model again with the recorded settings and random "
        "seeds. It compares the tokens of each prompt and reply, and a hash of all logits that the reply "
        "was sampled from, and reports a changed model, dialect or screenshot and the first different "
        "token. Exit code 0: the same; 1: something differs; 3, 4: it could not run.\n\n"
        "Results are bit-identical on the same kind of CPU (the recorded instruction set is used if this "
        "CPU has it) for any number of threads.\n\n"
        "--actions performs the recorded actions on a display, without a model. Each action waits until the "
        "screen shows the effect of the one before, as recorded; if that had no visible effect, until the "
        "screen settles. If the screen still differs from the record after --settle-max, the replay stops "
        "before the action, names the area, and shows both in the report of its own run directory. The "
        "record contains only the names of secrets: pass their values with --secret. The current rules "
        "apply; Escape twice, Ctrl-C and holorun stop end it.",
    .examples = "holorun replay --verify\nholorun replay 20261121T054500Z-9f3c01ab --verify --json\n",
    .options = options,
    .run = cmd_replay,
};

struct job {
    struct replay_settings s;
    struct record record;
    struct timeline timeline;
    struct dialect *dialect;
    struct engine *engine;
    struct verification v;
    char *model_dir;
};

static const json_t *of_run(const struct job *j, const char *key)
{
    return json_object_get(j->record.run, key);
}

static void note_of_run(struct job *j, enum differs kind, const char *recorded, const char *now,
                        const char *what)
{
    struct difference d = {.kind = kind, .token = -1};
    snprintf(d.recorded, sizeof d.recorded, "%s", recorded);
    snprintf(d.now, sizeof d.now, "%s", now);
    snprintf(d.what, sizeof d.what, "%s", what);
    verify_note(&j->v, &d);
}

static int open_dialect(struct job *j, struct err *e)
{
    const json_t *then = of_run(j, "dialect");
    const char *sha256 = field_text(then, "sha256");
    const char *source = field_text(then, "source"), *name = *source ? source : field_text(then, "name");
    if (j->s.dialect)
        name = j->s.dialect;
    if (!*name)
        return err_set(e, ERR_USAGE,
                       "'%s' has no dialect: its run.json is missing or damaged; set it with --dialect",
                       j->record.dir);
    j->dialect = j->s.dialect ? dialect_load(name, e) : recorded_dialect(&j->record, name, e);
    if (!j->dialect)
        return -1;
    if (*sha256 && strcmp(sha256, j->dialect->sha256) != 0)
        note_of_run(j, DIFFERS_DIALECT, sha256, j->dialect->sha256, j->dialect->name);
    return 0;
}

/* Compares every byte of the weights if the run recorded their hash, else the parts that engine_hash()
 * covers.  Returns -1 with e. */
static int compare_model(struct job *j, struct err *e)
{
    const json_t *then = of_run(j, "model");
    char hash[17];
    const char *recorded = field_text(then, "hash");
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)engine_hash(j->engine));
    if (*recorded && strcmp(recorded, hash) != 0) {
        note_of_run(j, DIFFERS_MODEL, recorded, hash, "config, tensor table or the start of a tensor");
        return 0;
    }
    uint64_t all;
    recorded = field_text(then, "weights");
    int large = *recorded ? model_hash_weights(j->model_dir, MODEL_HASH_MOST, &all, e) : 1;
    if (large)
        return large < 0 ? -1 : 0;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)all);
    if (strcmp(recorded, hash) != 0)
        note_of_run(j, DIFFERS_MODEL, recorded, hash, "a weight");
    return 0;
}

static int open_model(struct job *j, struct err *e)
{
    struct engine_options o = MODEL_ENGINE(j->s);
    if (!(j->model_dir = model_find(j->s.model, e)))
        return -1;
    o.dir = j->model_dir;
    if (!(j->engine = engine_open(&o, e)))
        return -1;
    llm_fit_dialect(j->dialect, j->engine);
    return compare_model(j, e);
}

static void stepped(void *arg, int step, const struct verification *v)
{
    const struct job *j = arg;
    if (!j->s.quiet && !v->n)
        fprintf(stderr, "step %d: %lld tokens so far, all the same\n", step, (long long)v->tokens);
}

static void print_differences(const struct job *j)
{
    for (int i = 0; i < j->v.n; i++) {
        const struct difference *d = &j->v.differences[i];
        printf("%s", differs_name(d->kind));
        if (d->step)
            printf(", step %d", d->step);
        printf(": %s\n  recorded  %s\n  now       %s\n", d->what, *d->recorded ? d->recorded : "unknown",
               *d->now ? d->now : "missing");
    }
}

static void print_outcome(const struct job *j)
{
    const struct verification *v = &j->v;
    const char *isa = field_text(of_run(j, "model"), "isa");
    print_differences(j);
    if (v->n && *isa && strcmp(isa, engine_isa(j->engine)) != 0)
        printf("the run used the kernels %s, this machine uses %s: results may differ\n", isa,
               engine_isa(j->engine));
    printf("%s: %d step%s, %d repl%s, %lld tokens, logits of %d compared\n", v->n ? "differs" : "the same",
           v->steps, v->steps == 1 ? "" : "s", v->replies, v->replies == 1 ? "y" : "ies",
           (long long)v->tokens, v->hashed);
}

static void print_json(const struct job *j)
{
    const struct verification *v = &j->v;
    json_t *all = json_pack("{s:s, s:i}", "status", v->n ? "differs" : "same", "exit", v->n ? ERR_FAILED : 0);
    json_t *list = json_array();
    json_set_text(all, "run_dir", j->record.dir);
    json_object_update_new(all, json_pack("{s:i, s:i, s:I, s:i}", "steps", v->steps, "replies", v->replies,
                                          "tokens", (json_int_t)v->tokens, "logits", v->hashed));
    json_set_text(all, "isa", engine_isa(j->engine));
    for (int i = 0; i < v->n; i++) {
        const struct difference *d = &v->differences[i];
        json_t *one = json_pack("{s:s, s:i, s:I}", "kind", differs_name(d->kind), "step", d->step, "token",
                                (json_int_t)d->token);
        json_set_text(one, "recorded", d->recorded);
        json_set_text(one, "now", d->now);
        json_set_text(one, "what", d->what);
        json_array_append_new(list, one);
    }
    json_object_set_new(all, "differences", list);
    options_print_json(all, 0);
}

static int verify(struct job *j, struct err *e)
{
    const json_t *settings = of_run(j, "settings");
    if (!strcmp(field_text(of_run(j, "model"), "name"), "script"))
        return err_set(e, ERR_USAGE, "cannot verify '%s': its replies came from a file, not from a model",
                       j->record.dir);
    if (*field_text(of_run(j, "model"), "base_url"))
        return err_set(
            e, ERR_USAGE,
            "cannot verify '%.300s': its model ran on a server, whose logits are unknown; 'holorun run "
            "--base-url recorded:RUN' replays the replies",
            j->record.dir);
    int64_t images = field_int(settings, "max-images");
    if (timeline_open(&j->timeline, &j->record, e) || timeline_complete(&j->timeline, e) ||
        open_dialect(j, e) || open_model(j, e))
        return -1;
    struct verify_options o = {
        .engine = j->engine,
        .dialect = j->dialect,
        .window = !strcmp(field_text(settings, "window"), "strict") ? WINDOW_STRICT : WINDOW_SAWTOOTH,
        .max_images = images >= 1 && images <= 4 ? (int)images : j->dialect->max_images,
        .seed = json_seed_value(json_object_get(settings, "seed")),
        .cancel = screen_stop_flag(NULL),
        .stepped = stepped,
        .arg = j};
    return verify_run(&j->timeline, &o, &j->v, e);
}

static int replay(struct job *j, struct err *e)
{
    if (verify(j, e))
        return -1;
    if (j->s.json)
        print_json(j);
    else
        print_outcome(j);
    return 0;
}

static void job_close(struct job *j)
{
    timeline_free(&j->timeline);
    record_free(&j->record);
    engine_close(j->engine);
    if (j->dialect)
        dialect_free(j->dialect);
    free(j->model_dir);
}

static bool is_processor(const char *isa)
{
    return !strcmp(isa, "ref") || !strncmp(isa, "avx", 3) || !strncmp(isa, "neon", 4);
}

/* Returns the recorded settings with the values that were in effect: the model's directory, the device, and
 * on a CPU the instruction set. */
static json_t *settings_of(const json_t *run)
{
    const json_t *model = json_object_get(run, "model");
    const char *isa = field_text(model, "isa"), *dir = field_text(model, "dir");
    json_t *settings = recorded_settings(run);
    if (*dir)
        json_object_set_new(settings, "model", json_string(dir));
    if (*isa)
        json_object_set_new(settings, "device", json_string(is_processor(isa) ? "cpu" : "cuda"));
    if (is_processor(isa))
        json_object_set_new(settings, "isa", json_string(isa));
    return settings;
}

static const struct replay_settings unset = {
    .settle_min = NAN, .settle_quiet = NAN, .settle_max = NAN, .key_delay = NAN};

/* Parses the command line twice: it names the run, and the run has the settings.  Returns the result of
 * options_parse(). */
static int read_words(struct job *j, struct recorded_line *l, int argc, char **argv, struct err *e)
{
    static const char *const taken[] = {"model",        "device",    "isa",           "weights",
                                        "weights-in",   "f32",       "dialect",       "state",
                                        "view",         "cursor",    "settle-min",    "settle-max",
                                        "settle-quiet", "key-delay", "keymap-settle", "observe-only",
                                        "kv",           "hide",      "min-pixels",    "max-pixels",
                                        "activations",  NULL};
    const char *name;
    int n = recorded_name(&replay_command, &j->s, argc, argv, &name, e);
    if (n >= 0 && j->s.verify == j->s.actions)
        n = err_set(e, ERR_USAGE, "replay needs either --verify or --actions");
    if (n >= 0 && recorded_open(&j->record, name, j->s.runs, e))
        n = -1;
    if (n < 0)
        return n;
    json_auto_t *settings = settings_of(j->record.run);
    j->s = unset; /* lists would be appended to twice otherwise */
    recorded_line(l, settings, options, taken, argc, argv);
    return options_parse(&replay_command, &j->s, l->argc, l->argv, e);
}

int cmd_replay(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct job j = {.s = unset};
    struct recorded_line l = {0};
    int n = read_words(&j, &l, argc, argv, &e), code = n == OPTIONS_HELP ? 0 : (int)e.kind;
    if (n >= 0 && j.s.actions) {
        code = replay_actions(&j.s, &j.record);
    } else if (n >= 0) {
        screen_install_signals();
        code = replay(&j, &e) ? options_failed(&e) : j.v.n ? ERR_FAILED : 0;
    } else if (n != OPTIONS_HELP) {
        code = e.kind == ERR_USAGE ? options_refuse(&replay_command, &e) : options_failed(&e);
    }
    job_close(&j);
    recorded_line_free(&l);
    return code;
}
