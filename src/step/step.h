/* step.h - stepping through a run: what is shown, what can be asked, who shows it.
 *
 *   agent --proposal--> stepper --view--> front end (terminal, window, script)
 *                               <--command--
 *
 * The stepper (stepper.c) is an overseer: it lets steps run until a breakpoint, then shows the step and asks.  Every
 * front end shows the same view and has the same verbs, so that what can be done in a window can be done over SSH and in
 * a test.
 */
#ifndef HOLORUN_STEP_STEP_H
#define HOLORUN_STEP_STEP_H

#include "agent/overseer.h"

enum { STEP_BREAKS = 32, STEP_ALTERNATIVES = 32, STEP_LINE = 4096 };

/* ---- what is shown --------------------------------------------------------------------------- */

struct step_view {
    const struct proposal *p;
    const struct step *step; /* what would run: the model's, or as it was edited here */
    bool edited;
    const char *why;     /* why it stopped here: "breakpoint: click", "first step", ... */
    const char *message; /* what came of the last command: an error, or "" */
    bool error;
    double confidence; /* least probability of the sampled tokens of verb and places; -1: not known */
    struct alternative verbs[STEP_ALTERNATIVES], places[STEP_ALTERNATIVES];
    int n_verbs, n_places;         /* likeliest first; 0: not known */
    char breaks[STEP_BREAKS][128]; /* as they were asked for */
    int n_breaks;
};

/* Where action i of the step aims on the display: the executor's own arithmetic.  second: the end of a drag.  false: at
 * no place. */
bool step_target(const struct step_view *v, int i, bool second, int *root_x, int *root_y);

/* The stop flag of the run; that of the process where the proposal has none. */
volatile int *step_stop_flag(const struct step_view *v);

/* ---- what can be asked ----------------------------------------------------------------------- */

enum step_verb {
    STEP_RUN,     /* this step, as it is shown */
    STEP_EDIT,    /* text: an action in canonical JSON, whole, or only the members that change */
    STEP_TARGET,  /* x y: pixels of the frame */
    STEP_TARGET2, /* x y: the end of a drag */
    STEP_TEXT,    /* text: what is typed or answered */
    STEP_RESET,   /* forget the edits */
    STEP_VETO,    /* text: the reason */
    STEP_AGAIN,
    STEP_REWIND,   /* n: a step */
    STEP_FORK,     /* n: how many */
    STEP_TAKE,     /* n: which of the replies, from 1; 0: the one that was there before */
    STEP_CONTINUE, /* run this one and all that follow until a breakpoint */
    STEP_BREAK,    /* text: break_parse's words */
    STEP_CLEAR,    /* n: which breakpoint, from 1; 0: all */
    STEP_STOP,     /* text: why, or "" */
    STEP_SHOW,     /* once more; text: "" or a topic of the front end's */
};

struct step_command {
    enum step_verb verb;
    int n, x, y;
    char text[STEP_LINE];
};

/* One line: "run", "veto it is the wrong page", "target 312 240", "break kind type".  Words may be cut short as long as
 * they are clear ("ru", "tak 2"). */
int step_parse(const char *line, struct step_command *out, struct err *e);
const char *step_verb_name(enum step_verb v);
const char *step_help(void); /* a line for each verb */

/* ---- who shows it ---------------------------------------------------------------------------- */

struct step_front {   /* the first member of each front end */
    const char *name; /* "terminal" */
    bool person;      /* somebody looks at what it shows */
    int beam_search;  /* alternatives that it would show of a slot */
    int (*show)(struct step_front *f, const struct step_view *v, struct err *e);
    /* Waits for a command, and meanwhile looks at step_stop_flag(v); ERR_STOPPED when it is set.  A front end that
     * ends (its window was closed) says STEP_STOP. */
    int (*ask)(struct step_front *f, const struct step_view *v, struct step_command *out, struct err *e);
    /* A step that was not asked about, while the run goes on to a breakpoint; NULL: not interested. */
    int (*passed)(struct step_front *f, const struct step_view *v, struct err *e);
    void (*close)(struct step_front *f); /* frees it */
};

/* Commands from a file or a pipe, one a line; '#' begins a comment.  At its end the run stops.  Each view is written to
 * `log` as text (NULL: not). */
struct step_front *step_script(const char *path, FILE *log, struct err *e);
/* On a terminal: commands from `in`, views to `out`. */
struct step_front *step_terminal(int in, FILE *out, struct err *e);

/* ---- the stepper ----------------------------------------------------------------------------- */

struct stepper;

struct step_where {       /* for front ends */
    FILE *out;            /* the terminal's side that is written to */
    bool quiet;           /* a script shows nothing */
    const char *captured; /* the display that the model sees, of it `view` */
    struct screen_rect view;
    const char *display; /* where a window opens; NULL: there too */
};

/* how: "auto", "terminal", "window", "script:FILE".  auto: the window, but the terminal where none can be opened, or over
 * SSH without a display named for it.  NULL: with the reason. */
struct stepper *stepper_open(const char *how, const char *const *breaks, const struct step_where *w,
                             struct err *e);

/* Takes over the front end, also when it fails.  breaks: NULL-terminated or NULL; without one it stops at the first step. */
struct stepper *stepper_new(struct step_front *f, const char *const *breaks, struct err *e);
struct overseer *stepper_overseer(struct stepper *s);
void stepper_free(struct stepper *s); /* NULL is fine */

#endif
