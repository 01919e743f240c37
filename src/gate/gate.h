/* gate.h - decides before each action whether it may be executed.
 *
 *   gate_decide    looks up the windows that the action would affect, finds the rule, asks the user if needed
 *   gate_execute   only if ruling.pass: action_execute, with secrets substituted for their names
 *
 * Keys go to the window that has the focus when they are pressed, which may differ from the window that was
 * checked: a click raises a window, a window opens. Therefore gate_execute checks the focus before each event
 * and applies the rules again if it has changed; text that they would ask about or deny is not written
 * (E_FOCUS).
 *
 * After the user has agreed, everything that the question showed is compared with the screen: if it has
 * changed, the user is asked again about the current state; if the target is in another window, the action is
 * refused. Keys that actions leave pressed are tracked, because they are part of every later chord. */
#pragma once

#include "base/secret.h"
#include "gate/confirm.h"
#include "gate/policy.h"
#include "gate/zone.h"
#include "screen/exec.h"

struct gate;
struct redact; /* redact.h */

struct gate_field {  /* the focused element of a browser window */
    bool in_page;    /* part of a web page: Enter does not open an address */
    bool tools;      /* part of the developer tools, which execute typed text */
    bool editable;   /* a text field */
    char text[4096]; /* beginning of its text */
};

struct gate_options { /* pointers are borrowed */
    const struct policy *policy;
    struct confirm confirm;
    bool dry_run;      /* do not ask: actions that need confirmation pass */
    bool observe_only; /* allow only moving, scrolling, waiting, observing, planning and answering */
    const char *task;  /* shown with a question, and compared with the goals of plans */
    const struct secrets *secrets; /* NULL: none */
    bool redact;                   /* cover fields into which a secret was typed (redact.h) */
    struct redact *covered;        /* fields of all runs on this display; NULL: only those of this run */
    struct zone hide[ZONES_MAX];   /* areas covered in every image */
    int n_hide;
    /* Reads the accessible name of the element at a point of the root window, in the window with this title,
     * within a time limit. other: the name of the element that the program's hit test finds, if it is another
     * element; else "". NULL: not available. Returns false if no answer arrived. Both buffers have `size`
     * bytes. */
    bool (*name_at)(void *arg, int x, int y, const char *title, char *name, char *other, size_t size);
    /* Finds the element that Enter, or else space, would press in the window with this title; name "": none.
     * Returns false if no answer arrived. */
    bool (*pressed)(void *arg, bool enter, const char *title, char *name, size_t size);
    /* Reads the text of the dialog around the element at a point, or around the focused one if x is -1.
     * Returns 1 with the text ("" without a dialog), 0 if no program reports it, -1 without an answer in
     * time. */
    int (*dialog)(void *arg, int x, int y, const char *title, char *text, size_t size);
    /* Reads the focused element in the window with this title. Returns false if no answer arrived. */
    bool (*field)(void *arg, const char *title, struct gate_field *out);
    void *name_arg; /* argument of these functions */
};

struct gate *gate_new(const struct gate_options *o);
/* Starts a run; call before the first action. dir: the run's directory, copied; images shown with questions
 * are written to its confirm/. */
void gate_begin(struct gate *g, struct screen *s, const char *dir);
void gate_free(struct gate *g); /* NULL is allowed. */

struct gate_ruling {
    struct policy_ruling rule;
    bool pass;
    enum action_fault fault; /* FAULT_NONE if it passes, otherwise DENIED or REFUSED */
    const char *who;         /* "policy", or who answered (confirm.h) */
    char told[400];          /* message for the model if it does not pass */
    char where[320];         /* the window, for users and the record */
    char crop[64];           /* image shown with the question, relative to dir; "" if nobody was asked */
    double ms;               /* time until the answer */

    enum confirm_answer answer; /* answer to the question */
};

/* Decides about an action. transform: as for action_execute. step: number in the name of the image. reviewed:
 * the user has just approved this step in the stepper, so "confirm" passes; "deny" does not. Returns -1 with
 * e if stopped during the question or the display is lost. */
int gate_decide(struct gate *g, const struct action *a, const struct view_transform *transform, int step,
                bool reviewed, struct gate_ruling *out, struct err *e);

/* Executes the action that has just passed, like action_execute. A secret is typed only while the window that
 * the rules were applied to has the focus, and never through the clipboard. */
enum action_fault gate_execute(struct gate *g, const struct action *a, const struct view_transform *transform,
                               struct exec_result *r, struct err *e);

/* Covers typed secrets and hidden zones in a screenshot of the screen's view, in place. Call it for every
 * screenshot. */
void gate_redact(struct gate *g, struct image *capture);

/* Applies the rules to the action without asking. Returns -1 with e if the display is lost. */
int gate_judge(struct gate *g, const struct action *a, const struct view_transform *transform,
               struct policy_ruling *out, struct err *e);

/* Computes the area of a screenshot that a question about the action shows, around the target and within its
 * window, and describes that window (where[320]). area->w is 0 if the action has no target. Returns -1 with
 * e. */
int gate_shown(struct gate *g, const struct action *a, const struct view_transform *transform,
               struct screen_rect *area, char where[320], struct err *e);
/* Returns whether two images of the same area differ by more than a blinking text cursor. */
bool gate_picture_changed(const struct image *was, const struct image *is);

/* Sets the model's thought about its next action, used for actions that do not describe their target. NULL:
 * none. */
void gate_set_thought(struct gate *g, const char *thought);

/* Sets the safety checks that the model's server requests for the next action, copied; NULL: none. Actions
 * that the rules allow then need confirmation, too. */
void gate_set_check(struct gate *g, const char *text);

/* Sets the task, borrowed. */
void gate_set_task(struct gate *g, const char *task);

/* Sets the budget used so far, for rules with "after". */
void gate_set_spent(struct gate *g, const struct policy_spent *spent);

/* Update the state after an action was executed, and after all keys were released. */
void gate_action_done(struct gate *g, const struct action *a);
void gate_keys_released(struct gate *g);
