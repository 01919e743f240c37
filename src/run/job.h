/* job.h - one run from its command line to its exit code: what `run`, `step` and `resume` share.
 *
 *   words -> settings (settings.c) -> open (open.c, canvas.c) -> work (work.c) -> account (account.c) ->
 *   close (open.c)
 *
 * A command fills the settings and the task, then job_run does the rest.  Everything that a run needs
 * hangs on struct job, is made in one place and freed in one place; each part reads what the parts
 * before it left.
 *
 * A program with many runs opens the model itself, gives it to each job, and calls job_work from a
 * thread for each.
 */
#ifndef HOLORUN_RUN_JOB_H
#define HOLORUN_RUN_JOB_H

#include "agent/agent.h"
#include "cli/options.h"
#include "replay/interrupted.h"
#include "session/session.h"
#include "step/step.h"

enum { JOB_TASK_MAX = 64 << 10 }; /* bytes */

struct run_settings {
    const char *model, *device, *isa, *display, *view, *ui_display, *dialect, *fake, *runs;
    const char *base_url, *key, *profile;
    int api, provider, threads, weights_in, weights, tower, activations, state, kv;
    int max_steps, max_tokens, reply_tokens, window, max_images;
    double max_time, temperature, settle_min, settle_quiet, settle_max, key_delay, keymap_settle, human_quiet;
    uint64_t seed;
    bool weight_cache, cursor, f32, force_answer, report, dry_run, log_tokens, json, quiet, verbose;
    bool pause_on_human;
    size_t state_memory;
    int min_pixels, max_pixels;
    int speculate;
    const char *policy, *confirm;
    double confirm_timeout;
    bool observe_only, redact_frames;
    int validator, max_validations;
    bool localizer;
    const char *secrets[OPTION_LIST_MAX + 1];
    const char *hide[OPTION_LIST_MAX + 1];
    const char *step, *breaks[OPTION_LIST_MAX + 1];
    const char *on, *start, *home, *desk_view, *password_file;
};

struct pace {     /* of a model on this machine */
    double rate;  /* flop a second of the tower */
    double token; /* seconds to decode one */
};

struct job_model { /* the model of one run, or one shared by many */
    char *dir;     /* NULL: a script or an endpoint replaces the model */
    struct engine *engine;
    struct endpoint *endpoint;
    uint64_t hash; /* of all its weights */
    bool hashed;
    struct pace pace; /* measured for models with a canvas of any size on a processor; else zeros */
    int max_pixels;   /* the limit that was chosen for this machine; 0: none */
};

/* Another program started the run and follows it (src/host); all are called by the run's own thread. */
struct job_host {
    void *arg;
    void (*opened)(void *arg, struct screen *s);            /* its display is open and can be stopped */
    void (*event)(void *arg, const char *json, size_t len); /* of its record, without secrets */
    enum confirm_answer (*ask)(void *arg, const struct confirm_question *q, double seconds,
                               const volatile int *stop); /* with --confirm auto */
    /* In place of a model: decides itself, in the dialect of the settings; NULL: a model decides. */
    struct llm *(*decide)(void *arg);
    /* The next task of the same conversation (agent.h); NULL: the run ends with its answer. */
    char *(*next_task)(void *arg, const struct agent_result *r);
};

struct job {
    struct run_settings s;
    const char *build; /* of this program, for the record; "": not known */
    int argc;
    char **argv; /* as given, for the record */
    char *task;
    struct running_own *told;    /* entry in the registry of runs; NULL: not yet */
    bool warm_up, began;         /* began: it has a record */
    bool playback;               /* a recording (record/playback.h) takes the place of a model */
    bool unseen;                 /* nobody sees its display: a step window does not open there */
    bool among;                  /* one of many in this process, which has an entry of its own */
    const struct job_host *host; /* borrowed; NULL: a person at a terminal started it, or a suite */
    struct job_model own;
    const struct job_model *model; /* &own, or one that the caller opened */
    char *dialect_source;          /* what dialect_load was given */
    struct dialect *dialect;
    struct llm *llm, *localizer;
    struct assist *assist; /* of the model; NULL: none */
    struct on_desk *desk;  /* NULL: it works on a display that was there */
    struct screen *screen;
    struct trace *trace;
    struct progress progress;
    struct policy *policy;
    struct redact *covered;  /* fields of earlier runs on the same display, borrowed; NULL: none */
    struct secrets *secrets; /* NULL: none; may be there before it opens, in place of those in the settings */
    struct gate *gate;
    struct elements *elements; /* what programs call what is on the screen; NULL: they are not asked */
    bool named;                /* one name was asked for: the child has started */
    bool browser_named;        /* the same of an element in a browser */
    struct stepper *stepper;
    struct validator validator;
    char started[28];
    char *report; /* path, NULL when there is none */

    /* resume: the run to continue */
    struct record record;
    struct timeline timeline;
    struct resume resume; /* parent NULL: a run of its own */
};

/* ---- settings.c ------------------------------------------------------------------------------ */

extern const struct option_spec job_options[]; /* of struct run_settings */

/* An empty job with a model of its own.  build: version_build().  Copies argv, because parsing reorders
 * it. */
void job_begin(struct job *j, const char *build, int argc, char **argv);
/* Settings before the command line is parsed. */
void job_unset(struct run_settings *s);
/* The task from the command line, or from stdin for "-". */
int job_read_task(struct job *j, const char *word, struct err *e);
/* Fills settings that were not given from the dialect, which must be open; run.json has the result. */
void job_resolve(struct job *j);

/* ---- open.c ---------------------------------------------------------------------------------- */

/* Finds the model, which is cheap; opens it.  stop: ends loading when set.  share: several threads use
 * it, each with a session of its own. */
int job_model_find(struct job_model *m, const struct run_settings *s, struct err *e);
int job_model_open(struct job_model *m, const struct run_settings *s, const volatile int *stop, bool share,
                   struct err *e);
/* Another directory in the place of a shared model that nobody uses; -1 leaves the old one. */
int job_model_replace(struct job_model *m, const struct run_settings *s, const char *dir, struct err *e);
void job_model_close(struct job_model *m);

int job_open(struct job *j, struct err *e);
void job_close(struct job *j); /* closes what is open; the command calls screen_guard_end() */

/* ---- canvas.c -------------------------------------------------------------------------------- */

/* Limits the pixels of pictures where a step would take too long; nothing for models with tiles, on a GPU, or
 * when settings say how many. */
int job_fit_canvas(struct job_model *m, const struct run_settings *s, struct err *e);
/* Says on stderr how large pictures of this screen are for the model, and what a step takes. */
void job_tell_canvas(const struct job *j);

/* ---- account.c ------------------------------------------------------------------------------- */

/* Writes run.json; exit_code -1: the run is in progress. */
int job_record(struct job *j, const char *status, int exit_code, struct err *e);
/* Prints the outcome, also of a run that did not begin: text on stderr, the answer or one JSON object on
 * stdout. */
void job_outcome(const struct job *j, const struct agent_result *r, const struct err *e, int code);

/* Says of an endpoint what it cannot give, and of the embedded model what would be better here. */
void job_tell_model(const struct job *j);

/* ---- advice.c ---------------------------------------------------------------------------------- */

/* Says once for each user and version that a better model than the embedded one can be fetched. */
void job_advise_model(const struct job *j);
/* Returns whether a task is only a question, without an action to do. */
bool job_task_is_question(const char *task);
/* Refuses a question to the embedded model at a terminal, with the command that answers it; else 0. */
int job_check_task(const struct job *j, struct err *e);

/* ---- work.c ---------------------------------------------------------------------------------- */

/* Runs a job with settings and task: guard, signals, job_work, outcome.  Returns the exit code. */
int job_run(struct job *j);

/* Opens, runs, writes the report.  Returns the exit code; details are in r (the caller frees its
 * answer), j->began and e. */
int job_work(struct job *j, struct agent_result *r, struct err *e);

#endif
