/* job.h - one run from its command line to its exit code, as `run`, `step` and `resume` share it.
 *
 *      words -> settings (settings.c) -> open (open.c, canvas.c) -> work (work.c) -> account (account.c) ->
 *      close (open.c)
 *
 * A command fills the settings and the task; job_run() does the rest.  struct job owns everything that a run
 * needs; each member is created in one place and freed in one place, and each part reads the results of the
 * parts before it.
 *
 * A program with many runs opens the model itself, passes it to each job, and calls job_work() in one thread
 * per job. */
#pragma once

#include "agent/agent.h"
#include "cli/options.h"
#include "gate/confirm.h"
#include "plain/plain.h"
#include "replay/interrupted.h"
#include "session/session.h"
#include "step/step.h"

enum { JOB_TASK_MAX = 64 << 10 }; /* maximum size of a task in bytes */

enum job_elements { JOB_ELEMENTS_NO, JOB_ELEMENTS_ADD, JOB_ELEMENTS_ONLY };
enum job_plain { JOB_PLAIN_AUTO, JOB_PLAIN_ONLY, JOB_PLAIN_NO };

struct run_settings {
    const char *model, *device, *isa, *display, *view, *ui_display, *dialect, *fake, *runs;
    const char *base_url, *key, *profile;
    int api, provider, threads, weights_in, weights, tower, activations, state, kv;
    int think_early; /* enum think_early */
    int max_steps, max_tokens, reply_tokens, window, max_images;
    double max_time, temperature, settle_min, settle_quiet, settle_max, key_delay, keymap_settle, human_quiet;
    uint64_t seed;
    bool weight_cache, cursor, f32, force_answer, report, dry_run, log_tokens, json, quiet, verbose;
    bool pause_on_human, assist;
    size_t state_memory;
    int min_pixels, max_pixels;
    int speculate;
    const char *policy, *confirm;
    double confirm_timeout;
    bool observe_only, redact_frames, elements;
    int elements_text;  /* enum job_elements */
    int plain, planner; /* enum job_plain */
    int validator, max_validations;
    bool localizer;
    const char *secrets[OPTION_LIST_MAX + 1];
    const char *hide[OPTION_LIST_MAX + 1];
    const char *step, *breaks[OPTION_LIST_MAX + 1];
    const char *on, *start, *home, *desk_view, *password_file;
};

struct pace {     /* speed of a model on this machine */
    double rate;  /* rate of the vision encoder in flop per second */
    double token; /* seconds to decode one token */
};

struct job_model { /* the model of one run, or one shared by several runs */
    char *dir;     /* NULL: a script or an endpoint replaces the model */
    struct engine *engine;
    struct endpoint *endpoint;
    uint64_t hash; /* hash of all its weights; valid if hashed */
    bool hashed;
    struct pace pace; /* measured on a CPU for models with images of any size; else zeros */
    int max_pixels;   /* limit chosen for this machine; 0: none */
};

/* callbacks of a program that started the run and follows it (src/host), called by the run's own thread */
struct job_host {
    void *arg;
    void (*opened)(void *arg, struct screen *s);            /* the display is open and can be stopped */
    void (*event)(void *arg, const char *json, size_t len); /* an event of the record, without secrets */
    enum confirm_answer (*ask)(void *arg, const struct confirm_question *q, double seconds,
                               const volatile int *stop); /* asks a question with --confirm auto or caller */
    /* returns a client that replaces the model and uses the dialect of the settings; NULL: a model decides */
    struct llm *(*decide)(void *arg);
    /* returns the next task of the same conversation (agent.h), or NULL: the run ends with its answer */
    char *(*next_task)(void *arg, const struct agent_result *r);
};

struct job {
    struct run_settings s;
    const char *build; /* build information of this program, for the record; "": unknown */
    int argc;
    char **argv; /* as given, for the record */
    char *task;
    struct running_own *told; /* entry in the registry of runs; NULL: not registered */
    bool warm_up, began;      /* began: the run has a record */
    bool playback;            /* a recording (record/playback.h) replaces the model */
    /* steps to perform whatever the words of the task are, borrowed; NULL: none */
    const struct plain_steps *given;
    struct plain_steps *plain;   /* steps that replace the model; NULL: none */
    struct agent_demand demand;  /* of a task of plain steps that the model performs */
    struct job_planner *planner; /* a planner that replaces the model; NULL: none */
    bool proposals;              /* planned steps are performed although the planner is not sure */
    bool unseen;                 /* the display is not visible to the user: no step window opens on it */
    /* one of several runs of this process, which has its own entry in the registry */
    bool among;
    const struct job_host *host; /* borrowed; NULL: started by a user at a terminal, or by a suite */
    struct job_model own;
    const struct job_model *model; /* &own, or a model that the caller opened */
    char *dialect_source;          /* argument of dialect_load() */
    struct dialect *dialect;
    struct llm *llm, *localizer;
    const char *reuse;     /* directory of an earlier run whose replies are repeated, borrowed; NULL: none */
    struct llm *reused;    /* repeats it, on top of llm; NULL: llm decides alone */
    struct assist *assist; /* assistance of the model; NULL: none */
    struct on_desk *desk;  /* NULL: the run works on an existing display */
    struct screen *screen;
    struct trace *trace;
    struct progress progress;
    struct policy *policy;
    struct redact *covered;  /* fields of earlier runs on the same display, borrowed; NULL: none */
    struct secrets *secrets; /* NULL: none; may be set before opening, instead of those in the settings */
    struct gate *gate;
    /* names of elements on the screen, as their programs report them; NULL: programs are not asked */
    struct elements *elements;
    /* a program has answered a request for a name: the child process has started */
    bool named;
    bool browser_named;         /* a name in a browser has been requested */
    struct agent_elements tell; /* their text for the model; read NULL: none */
    struct refs *refs;          /* that the text has shown */
    struct stepper *stepper;
    struct validator validator;
    char started[28];
    char *report; /* path; NULL: no report */

    /* resume: the run to continue */
    struct record record;
    struct timeline timeline;
    struct resume resume; /* parent NULL: the run continues no other */
};

/* ---- settings.c ------------------------------------------------------------------------------ */

extern const struct option_spec job_options[]; /* options that fill struct run_settings */

/* Initializes a job with its own model.  build: version_build(), borrowed.  Copies argv, because parsing
 * reorders it. */
void job_begin(struct job *j, const char *build, int argc, char **argv);
/* Sets the values before the command line is parsed. */
void job_unset(struct run_settings *s);
/* Reads the task from the command line, or from stdin if word is "-".  Returns -1 with e if the task is
 * empty, longer than JOB_TASK_MAX, or not valid UTF-8. */
int job_read_task(struct job *j, const char *word, struct err *e);
/* Fills settings that were not given from the dialect, which must be open; run.json contains the result. */
void job_resolve(struct job *j);

/* ---- tell_elements.c ------------------------------------------------------------------------- */

/* Prepares the text of elements for the model, if the settings want it.  Returns -1 with e. */
int job_tell_elements(struct job *j, struct err *e);

/* ---- open_plain.c ---------------------------------------------------------------------------- */

/* Sets j->plain and the dialect if the task is performed without a model.  Returns -1 with e if --plain only
 * or given steps cannot be followed. */
int job_open_plain(struct job *j, struct err *e);
struct llm *job_plain_llm(struct job *j); /* takes the steps */
void job_plain_free(struct job *j);

/* ---- open_planner.c -------------------------------------------------------------------------- */

/* Sets j->planner and the dialect if the task is planned without a model: its first steps are planned, and
 * confirmed by the user, if there is one.  Returns -1 with e, ERR_UNCLEAR with --planner only. */
int job_open_planner(struct job *j, struct err *e);
struct llm *job_planner_llm(struct job *j);
const bool *job_planner_unclear(const struct job *j); /* NULL: no planner */
/* Returns the first plan as a sentence, which the caller frees; NULL: no planner. */
char *job_planner_text(const struct job *j);
const char *job_planner_json(const struct job *j); /* ... as a JSON object; borrowed */
/* Returns the steps that were given to the player, a line each, which the caller frees; NULL: none. */
char *job_planner_steps(const struct job *j);
void job_planner_free(struct job *j);

/* ---- open_reuse.c ---------------------------------------------------------------------------- */

/* Sets j->reused if there is a run to repeat; warns if its record cannot be used.  Without a model, its
 * screens only end waits. */
void job_open_reuse(struct job *j);
int job_reused(const struct job *j);        /* number of its replies that were repeated */
bool job_reused_whole(const struct job *j); /* all screens were the recorded ones */
/* Sets the screens that a recording or an earlier run lets expect. */
void job_expect(const struct job *j, struct agent_options *o);

/* ---- open.c ---------------------------------------------------------------------------------- */

/* job_model_find() finds the model, which takes no noticeable time; job_model_open() opens it.  stop: ends
 * loading when set.  share: several threads use the model, each with its own session.  Both return -1 with
 * e. */
int job_model_find(struct job_model *m, const struct run_settings *s, struct err *e);
int job_model_open(struct job_model *m, const struct run_settings *s, const volatile int *stop, bool share,
                   struct err *e);
/* Replaces a shared model that is not in use by the one in another directory.  Returns -1 with e and keeps
 * the old model. */
int job_model_replace(struct job_model *m, const struct run_settings *s, const char *dir, struct err *e);
void job_model_close(struct job_model *m);

/* Sets the functions that ask programs for the names of elements; arg of job_is_field(): the job. */
void job_name_elements(struct job *j, struct gate_options *o);
bool job_is_field(void *arg, const char *title); /* of screen_set_is_field() */

/* Reads who confirms actions: --confirm, or the program that started the run. */
int job_confirm(const struct job *j, struct confirm *out, struct err *e);

int job_open(struct job *j, struct err *e);
void job_close(struct job *j); /* closes all that is open; the command calls screen_guard_end() */

/* ---- canvas.c -------------------------------------------------------------------------------- */

/* Limits the pixels of images if a step would take too long.  Does nothing for models with tiles, on a GPU,
 * or if the settings give a limit.  Returns -1 with e. */
int job_fit_canvas(struct job_model *m, const struct run_settings *s, struct err *e);
/* Prints to stderr the size of images of this screen for the model, and the time of a step. */
void job_tell_canvas(const struct job *j);

/* ---- account.c ------------------------------------------------------------------------------- */

/* Writes run.json; exit_code -1: the run is in progress.  Returns -1 with e. */
int job_record(struct job *j, const char *status, int exit_code, struct err *e);
/* Prints the outcome, also of a run that did not begin: text on stderr, the answer or one JSON object on
 * stdout. */
void job_outcome(const struct job *j, const struct agent_result *r, const struct err *e, int code);

/* Prints the limits of an endpoint, or the advice about the embedded model. */
void job_tell_model(const struct job *j);

/* ---- advice.c ---------------------------------------------------------------------------------- */

/* Prints, once for each user and version, that a better model than the embedded one is available. */
void job_advise_model(const struct job *j);
/* Returns whether a task is only a question that requires no action. */
bool job_task_is_question(const char *task);
/* Rejects a question to the embedded model at a terminal: returns -1 with e, which contains the command that
 * answers it.  Else returns 0. */
int job_check_task(const struct job *j, struct err *e);

/* ---- work.c ---------------------------------------------------------------------------------- */

/* Carries out a job that has settings and task: guard, signals, job_work(), outcome.  Returns the exit
 * code. */
int job_run(struct job *j);

/* Opens the job, runs it and writes the report.  Returns the exit code; details are in *r (the caller frees
 * it), j->began and e. */
int job_work(struct job *j, struct agent_result *r, struct err *e);
