/* gate.h - decides before each action whether it may be done.
 *
 *     gate_decide    looks up the windows the action would touch, finds the rule, asks if the rule says so
 *     gate_execute   only when ruling.pass: action_execute, with secrets substituted for their names
 *
 * Keys go to the window that has the keyboard when they are pressed, which may be another one than was
 * judged: a click raises a window, a window opens.  So gate_execute looks at the focus before each event,
 * and applies the rules again when it has changed: what they would ask about or forbid is not written
 * (E_FOCUS).
 *
 * After a person's yes all that the question showed is compared with the screen: if it has changed, the
 * person is asked again about what is there now; if the target is in another window, the action is refused.
 * Keys that actions leave down are tracked, as they are part of every later chord.
 */
#ifndef HOLORUN_GATE_GATE_H
#define HOLORUN_GATE_GATE_H

#include "base/secret.h"
#include "gate/confirm.h"
#include "gate/policy.h"
#include "gate/zone.h"

struct gate;
struct redact; /* redact.h */

struct gate_field {  /* the focused element of a browser's window */
    bool in_page;    /* part of a web page: Enter opens no address */
    bool tools;      /* part of the developer tools, which run typed text */
    bool editable;   /* a text field */
    char text[4096]; /* the beginning of its text */
};

struct gate_options { /* pointers are borrowed */
    const struct policy *policy;
    struct confirm confirm;
    bool dry_run;      /* nobody is asked: "confirm" passes */
    bool observe_only; /* allow only moving, scrolling, waiting, observing, planning and answering */
    const char *task;  /* shown with a question, and compared with the goals of plans */
    const struct secrets *secrets; /* NULL: none */
    bool redact;                   /* cover fields into which a secret was typed (redact.h) */
    struct redact *covered; /* fields of earlier runs on this display, and of this one; NULL: its own only */
    struct zone hide[ZONES_MAX]; /* covered in every picture */
    int n_hide;
    /* The accessible name of the element at a point of the root window, in the window of this title,
     * within a time limit; NULL: nobody knows.  false: it has none, or no answer came. */
    bool (*name_at)(void *arg, int x, int y, const char *title, char *name, size_t size);
    /* The element that Enter, or else space, would press in the window of this title; name "": none.
     * false: no answer came. */
    bool (*pressed)(void *arg, bool enter, const char *title, char *name, size_t size);
    /* Reads the text of the dialog around the element at a point, or around the focused one if x is -1.
     * Returns 1 with the text ("" without a dialog), 0 if no program reports it, -1 without an answer in
     * time. */
    int (*dialog)(void *arg, int x, int y, const char *title, char *text, size_t size);
    /* Reads the focused element in the window of this title.  Returns false without an answer. */
    bool (*field)(void *arg, const char *title, struct gate_field *out);
    void *name_arg; /* of all of these */
};

struct gate *gate_new(const struct gate_options *o);
/* Before the first action.  dir: the run's folder, copied; pictures shown with questions go to its
 * confirm/. */
void gate_begin(struct gate *g, struct screen *s, const char *dir);
void gate_free(struct gate *g); /* NULL is fine */

struct gate_ruling {
    struct policy_ruling rule;
    bool pass;
    enum action_fault fault; /* NONE when it passes, else DENIED or REFUSED */
    const char *who;         /* "policy", or who was asked (confirm.h) */
    char told[400];          /* message for the model when it does not pass */
    char where[320];         /* the window, for people and the record */
    char crop[64];           /* picture shown with the question, relative to dir; "" when nobody was asked */
    double ms;               /* until the answer */

    enum confirm_answer answer; /* of who was asked */
};

/* place: as for action_execute.  step: names the crop.  reviewed: a person has just approved this step in
 * the stepper, so "confirm" passes; "deny" does not.  -1: stopped while asking, or the display is lost. */
int gate_decide(struct gate *g, const struct action *a, const struct view_transform *transform, int step,
                bool reviewed, struct gate_ruling *out, struct err *e);

/* Performs the action that has just passed, like action_execute.  A secret is typed only while the window
 * that the rules were applied to has the focus, and never uses the clipboard. */
enum action_fault gate_execute(struct gate *g, const struct action *a, const struct view_transform *transform,
                               struct exec_result *r, struct err *e);

/* Covers typed secrets and hidden zones in a capture of the screen's view, in place.  Call it for every
 * capture. */
void gate_redact(struct gate *g, struct image *capture);

/* Applies the rules to the action, without asking anybody. */
int gate_judge(struct gate *g, const struct action *a, const struct view_transform *transform,
               struct policy_ruling *out, struct err *e);

/* The part of a capture, around the target and within its window, that a question about the action
 * shows, and that window in words (where[320]); w 0: it has no target. */
int gate_shown(struct gate *g, const struct action *a, const struct view_transform *transform,
               struct screen_rect *area, char where[320], struct err *e);
/* Whether pictures of the same place differ by more than a text cursor that blinks. */
bool gate_picture_changed(const struct image *was, const struct image *is);

/* The model's thought about its next action, for actions that do not describe their target.  NULL:
 * nothing. */
void gate_set_thought(struct gate *g, const char *thought);

/* The safety checks that the model's server wants a person to look at before the next action, copied;
 * NULL: none.  What the rules allow is then asked about, too. */
void gate_set_check(struct gate *g, const char *text);

/* The task from now on, borrowed. */
void gate_set_task(struct gate *g, const char *task);

/* The budget that the run has used so far, for rules with "after". */
void gate_set_spent(struct gate *g, const struct policy_spent *spent);

/* After an action was done; after all keys were released. */
void gate_action_done(struct gate *g, const struct action *a);
void gate_keys_released(struct gate *g);

#endif
