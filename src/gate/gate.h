/* gate.h - before each single action: may it be done?
 *
 *     gate_decide    looks at what the action would touch, finds the rule, asks if the rule says so
 *     gate_execute   only when ruling.pass: action_execute, with secrets in the place of their names
 *
 * What is asked about is looked at again after the answer: when the window under the target or the picture
 * around it is another by then, the answer is worth nothing.  Keys that actions leave down are remembered, as
 * they are part of every later chord.
 */
#ifndef HOLORUN_GATE_GATE_H
#define HOLORUN_GATE_GATE_H

#include "gate/confirm.h"
#include "gate/policy.h"
#include "gate/secret.h"
#include "gate/zone.h"

struct gate;

struct gate_options { /* pointers are borrowed */
    const struct policy *policy;
    struct confirm confirm;
    bool dry_run;      /* nobody is asked: what a person would be asked about passes */
    bool observe_only; /* nothing but moving, scrolling, waiting, looking, planning and answering */
    const char *task;  /* shown with a question; goals of plans are held against it */
    const struct secrets *secrets; /* NULL: none */
    bool redact;                   /* take fields out of pictures into which a secret was typed (redact.h) */
    struct zone hide[ZONES_MAX];   /* taken out of every picture, whatever is there */
    int n_hide;
};

struct gate *gate_new(const struct gate_options *o);
/* Before the first action.  dir: the run's folder, where pictures shown with questions go to confirm/; copied. */
void gate_begin(struct gate *g, struct screen *s, const char *dir);
void gate_free(struct gate *g); /* NULL is fine */

struct gate_ruling {
    struct policy_ruling rule;
    bool pass;
    enum action_fault fault; /* NONE when it passes, else DENIED or REFUSED */
    const char *who;         /* "policy", or who was asked (confirm.h) */
    char told[400];          /* what the model reads when it does not pass */
    char where[320];         /* the window, for people and the record */
    char crop[64];           /* the picture shown with the question, below dir; "" when nobody was asked */
    double ms;               /* that somebody took to answer */
};

/* place: as for action_execute.  step: names the crop.  seen: a person has just looked at this very step and let it run,
 * so nobody is asked once more; what is forbidden stays so.  -1: stopped while asking, or the display is lost. */
int gate_decide(struct gate *g, const struct action *a, const struct exec_place *place, int step, bool seen,
                struct gate_ruling *out, struct err *e);

/* Performs what has just passed; as action_execute.  Typing a secret clicks first, if there is a place, and types
 * only when the window that the rules were asked about has the keyboard; it never uses the clipboard. */
enum action_fault gate_execute(struct gate *g, const struct action *a, const struct exec_place *place,
                               struct exec_result *r, struct err *e);

/* Takes secrets, and what is to be hidden, out of a capture of the screen's view, in place.  To be called with every one. */
void gate_hide(struct gate *g, struct image *capture);

/* What the rules say, without asking anybody. */
int gate_look(struct gate *g, const struct action *a, const struct exec_place *place,
              struct policy_ruling *out, struct err *e);

/* To be told of what the run has used up, for rules with "after". */
void gate_spent(struct gate *g, const struct policy_spent *spent);

/* To be told of what was done, and that all keys were released. */
void gate_done(struct gate *g, const struct action *a);
void gate_released(struct gate *g);

#endif
