/* step.h - stepping through a run: views, commands and front ends.
 *
 *   agent --proposal--> stepper --view--> front end (terminal, window, script)
 *                              <--command--
 *
 * The stepper (stepper.c) is an overseer: it lets steps run until a breakpoint, then shows the step and asks
 * for a command. All front ends show the same view and have the same verbs, so that a terminal over SSH or a
 * test can do everything that the window can. */
#pragma once

#include "agent/overseer.h"

enum { STEP_BREAKS = 32, STEP_ALTERNATIVES = 32, STEP_LINE = 4096, STEP_ODDS = 5 };

/* ---- views ----------------------------------------------------------------------------------- */

struct step_break {
    const char *spec; /* as specified */
    bool off;
    int hits;
};

struct step_odds { /* candidates of a step, recorded when it was shown */
    int number;
    struct alternative verbs[STEP_ODDS], places[STEP_ODDS];
    int n_verbs, n_places;
};

struct step_view {
    const struct proposal *p;
    const struct step *step; /* the step that would run: the model's, or the edited one */
    bool edited;
    const char *why;     /* why the run stopped: "breakpoint: click", "first step", ... */
    const char *message; /* error of the last command, or "" */
    bool error;
    double confidence; /* lowest probability of a sampled token of verb or coordinates; -1: unknown */
    struct alternative verbs[STEP_ALTERNATIVES], places[STEP_ALTERNATIVES];
    int n_verbs, n_places; /* most probable first; 0: unknown */
    struct step_break breaks[STEP_BREAKS];
    int n_breaks;
    const struct step_odds *odds; /* [n_odds] of earlier steps that were shown */
    int n_odds;
};

/* Computes the target of action i on the display, like the executor. second: the end of a drag. Returns false
 * if the action has none. */
bool step_target(const struct step_view *v, int i, bool second, int *root_x, int *root_y);

/* Returns the stop flag of the run, or that of the process if the proposal has none. */
volatile int *step_stop_flag(const struct step_view *v);

/* ---- commands -------------------------------------------------------------------------------- */

enum step_verb {
    STEP_RUN,     /* run the step as shown */
    STEP_EDIT,    /* text: an action in canonical JSON, or the members to change */
    STEP_TARGET,  /* x, y: pixels of the frame */
    STEP_TARGET2, /* x, y: the end of a drag */
    STEP_TEXT,    /* text: to type or answer */
    STEP_RESET,   /* undo the edits */
    STEP_VETO,    /* text: the reason */
    STEP_AGAIN,
    STEP_REWIND,   /* n: number of the step */
    STEP_FORK,     /* n: number of replies */
    STEP_TAKE,     /* n: index of the reply; 0: the first */
    STEP_CONTINUE, /* run until a breakpoint */
    STEP_BREAK,    /* text: for break_parse() */
    STEP_UNTIL,    /* text: for break_parse(); run until this or another breakpoint */
    STEP_CLEAR,    /* n: number of the breakpoint, from 1; 0: all */
    STEP_TOGGLE,   /* n: breakpoint to switch off or on */
    STEP_STOP,     /* text: reason, or "" */
    STEP_SHOW,     /* show the step again; text: "" or a topic of the front end */
};

struct step_command {
    enum step_verb verb;
    int n, x, y;
    char text[STEP_LINE];
};

/* Parses a line: "run", "veto it is the wrong page", "target 312 240", "break kind type". A verb may be
 * abbreviated to a letter or an unambiguous prefix ("ru", "tak 2"). Returns -1 with e. */
int step_parse(const char *line, struct step_command *out, struct err *e);
const char *step_verb_name(enum step_verb v);
const char *step_help(void); /* Returns one line per verb. */

/* ---- front ends ------------------------------------------------------------------------------ */

struct step_front {   /* first member of each front end */
    const char *name; /* "terminal" */
    bool person;      /* a human sees its output */
    int beam_search;  /* number of candidates per slot that it shows; 0: none */
    int (*show)(struct step_front *f, const struct step_view *v, struct err *e); /* may be NULL */
    /* Waits for a command, or until step_stop_flag(v) is set (ERR_STOPPED). A front end that ends, for
     * example because its window was closed, returns STEP_STOP. */
    int (*ask)(struct step_front *f, const struct step_view *v, struct step_command *out, struct err *e);
    /* Shows a step that runs without a question; may be NULL. */
    void (*passed)(struct step_front *f, const struct step_view *v);
    /* Shows the outcome of the run until the user has seen it; may be NULL. No view is valid any more. */
    void (*ended)(struct step_front *f, const char *head, const char *text);
    void (*close)(struct step_front *f); /* Frees the front end. */
};

/* Opens a script: commands from a file or pipe, one per line; '#' begins a comment. At its end the run stops.
 * Views are written to `log` (may be NULL). Returns NULL with e. */
struct step_front *step_script(const char *path, FILE *log, struct err *e);
/* Opens a terminal: commands from `in`, views to `out`. Returns NULL with e. */
struct step_front *step_terminal(int in, FILE *out, struct err *e);

/* Opens an SDL window in its own thread, so that it is redrawn and Stop works while the model generates and
 * the agent acts; meanwhile it shows the last view, dimmed.
 *
 * It must not appear in screenshots. On the captured display it opens outside the captured view, on another
 * monitor or next to a captured window. If neither has enough space, the window is hidden while the agent
 * captures and acts, and says so. */
struct window_options {
    const char *display; /* display on which the window opens; NULL: `captured` */
    const char *captured;
    struct screen_rect view; /* captured area, in root pixels */
    int w, h;                /* pixels; 0: chosen by the display */
};
/* Returns NULL with e if the display cannot be opened. */
struct step_front *step_window(const struct window_options *o, struct err *e);

/* ---- the stepper ----------------------------------------------------------------------------- */

struct stepper;

struct step_where { /* resources of front ends */
    FILE *out;      /* the terminal */
    bool quiet;     /* a script writes no log */
    bool insists;   /* the user specified window.display: do not use another front end */
    bool unseen;    /* nobody sees the captured display, and window.display is NULL */
    struct window_options window;
};

/* Opens a stepper. how: "auto", "terminal", "window" or "script:FILE". auto: a window; or the terminal, with
 * one line that explains it, if no visible window can be opened, or over SSH without w->window.display.
 * Returns NULL with e. */
struct stepper *stepper_open(const char *how, const char *const *breaks, const struct step_where *w,
                             struct err *e);

/* Takes ownership of the front end, also on failure. breaks: NULL-terminated, or NULL; without any the run
 * stops at its first step. Returns NULL with e. */
struct stepper *stepper_new(struct step_front *f, const char *const *breaks, struct err *e);
struct overseer *stepper_overseer(struct stepper *s);
/* Shows the outcome of the run, for example "Done" and its answer. The step window, if it has shown a step,
 * stays until a key or button is pressed and released in it, a minute has passed, or the process is
 * stopped. */
void stepper_ended(struct stepper *s, const char *head, const char *text);
void stepper_free(struct stepper *s); /* NULL is allowed. */
