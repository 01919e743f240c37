/* step.h - stepping through a run: views, commands and front ends.
 *
 *   agent --proposal--> stepper --view--> front end (terminal, window, script)
 *                               <--command--
 *
 * The stepper (stepper.c) is an overseer: it runs steps until a breakpoint, then shows the step and asks
 * for a command.  Every front end shows the same view and has the same verbs, so that a terminal over SSH
 * and a test can do all that the window can.
 */
#ifndef HOLORUN_STEP_STEP_H
#define HOLORUN_STEP_STEP_H

#include "agent/overseer.h"

enum { STEP_BREAKS = 32, STEP_ALTERNATIVES = 32, STEP_LINE = 4096, STEP_ODDS = 5 };

/* ---- views ----------------------------------------------------------------------------------- */

struct step_break {
    const char *spec; /* as it was given */
    bool off;
    int hits;
};

struct step_odds { /* the candidates of a step, as they were when it was asked about */
    int number;
    struct alternative verbs[STEP_ODDS], places[STEP_ODDS];
    int n_verbs, n_places;
};

struct step_view {
    const struct proposal *p;
    const struct step *step; /* what would run: the model's step, or as it was edited */
    bool edited;
    const char *why;     /* why the run stopped: "breakpoint: click", "first step", ... */
    const char *message; /* the error of the last command, or "" */
    bool error;
    double confidence; /* least probability among the sampled tokens of verb and places; -1: not known */
    struct alternative verbs[STEP_ALTERNATIVES], places[STEP_ALTERNATIVES];
    int n_verbs, n_places; /* likeliest first; 0: not known */
    struct step_break breaks[STEP_BREAKS];
    int n_breaks;
    const struct step_odds *odds; /* [n_odds] of earlier steps that were asked about */
    int n_odds;
};

/* The target of action i on the display, computed as the executor does.  second: the end of a drag.
 * false: it has no target. */
bool step_target(const struct step_view *v, int i, bool second, int *root_x, int *root_y);

/* The stop flag of the run, or of the process when the proposal has none. */
volatile int *step_stop_flag(const struct step_view *v);

/* ---- commands -------------------------------------------------------------------------------- */

enum step_verb {
    STEP_RUN,     /* the step as shown */
    STEP_EDIT,    /* text: an action in canonical JSON, or only the members that change */
    STEP_TARGET,  /* x y: pixels of the frame */
    STEP_TARGET2, /* x y: the end of a drag */
    STEP_TEXT,    /* text: what is typed or answered */
    STEP_RESET,   /* undo the edits */
    STEP_VETO,    /* text: the reason */
    STEP_AGAIN,
    STEP_REWIND,   /* n: a step */
    STEP_FORK,     /* n: how many */
    STEP_TAKE,     /* n: which of the replies; 0: the first */
    STEP_CONTINUE, /* run until a breakpoint */
    STEP_BREAK,    /* text: for break_parse() */
    STEP_UNTIL,    /* text: for break_parse(); runs until then, or another breakpoint */
    STEP_CLEAR,    /* n: which breakpoint, from 1; 0: all */
    STEP_TOGGLE,   /* n: switch a breakpoint off or on */
    STEP_STOP,     /* text: why, or "" */
    STEP_SHOW,     /* show the step again; text: "" or a topic of the front end */
};

struct step_command {
    enum step_verb verb;
    int n, x, y;
    char text[STEP_LINE];
};

/* Parses a line: "run", "veto it is the wrong page", "target 312 240", "break kind type".  A verb may be
 * abbreviated to a letter or an unambiguous prefix ("ru", "tak 2"). */
int step_parse(const char *line, struct step_command *out, struct err *e);
const char *step_verb_name(enum step_verb v);
const char *step_help(void); /* one line a verb */

/* ---- front ends ------------------------------------------------------------------------------ */

struct step_front {   /* the first member of each front end */
    const char *name; /* "terminal" */
    bool person;      /* a person sees what it shows */
    int beam_search;  /* candidates that it shows of a slot; 0: none */
    int (*show)(struct step_front *f, const struct step_view *v, struct err *e); /* may be NULL */
    /* Waits for a command or for step_stop_flag(v): ERR_STOPPED.  A front end that ends (its window was
     * closed) returns STEP_STOP. */
    int (*ask)(struct step_front *f, const struct step_view *v, struct step_command *out, struct err *e);
    /* Shows a step that runs without being asked about; may be NULL. */
    void (*passed)(struct step_front *f, const struct step_view *v);
    /* Shows the outcome of the run until a person has seen it; may be NULL.  No view is valid any more. */
    void (*ended)(struct step_front *f, const char *head, const char *text);
    void (*close)(struct step_front *f); /* frees it */
};

/* Commands from a file or a pipe, one a line; '#' begins a comment.  At its end the run stops.  Views are
 * written to `log` (may be NULL). */
struct step_front *step_script(const char *path, FILE *log, struct err *e);
/* On a terminal: commands from `in`, views to `out`. */
struct step_front *step_terminal(int in, FILE *out, struct err *e);

/* A window in SDL, in a thread of its own, so that it is redrawn and Stop works while the model
 * generates and the agent acts; then it shows the last view, dimmed.
 *
 * It must not be in the screenshots.  On the captured display it opens outside the captured view, on
 * another monitor or beside a captured window.  When there is no room, it is hidden while the agent
 * captures and acts, and says so. */
struct window_options {
    const char *display; /* where it opens; NULL: on `captured` */
    const char *captured;
    struct screen_rect view; /* captured part, in root pixels */
    int w, h;                /* pixels; 0: by the display */
};
/* NULL with e: the display cannot be opened. */
struct step_front *step_window(const struct window_options *o, struct err *e);

/* ---- the stepper ----------------------------------------------------------------------------- */

struct stepper;

struct step_where { /* for front ends */
    FILE *out;      /* the terminal */
    bool quiet;     /* a script logs nothing */
    bool insists;   /* the user named window.display: no other front end takes its place */
    bool unseen;    /* nobody sees the captured display, and window.display is NULL */
    struct window_options window;
};

/* how: "auto", "terminal", "window", "script:FILE".  auto: a window, or the terminal, with one line about
 * it, when no window can be opened where somebody sees it, or over SSH without w->window.display.  NULL with
 * e. */
struct stepper *stepper_open(const char *how, const char *const *breaks, const struct step_where *w,
                             struct err *e);

/* Takes over the front end, also on failure.  breaks: NULL-terminated or NULL; without any the run stops
 * at its first step. */
struct stepper *stepper_new(struct step_front *f, const char *const *breaks, struct err *e);
struct overseer *stepper_overseer(struct stepper *s);
/* Shows the outcome of the run, e.g. "Done" and its answer.  The step window, if it has shown a step, stays
 * until a key or button is pressed and released in it, a minute has passed, or the process is stopped. */
void stepper_ended(struct stepper *s, const char *head, const char *text);
void stepper_free(struct stepper *s); /* NULL is fine */

#endif
