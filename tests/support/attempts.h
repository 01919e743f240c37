/* attempts.h - actions that need a confirmation which no one can give, in each dialect: counts those that the
 * gate passes.
 *
 * By default a sample is executed, and each judged attempt uses one dialect; HOLORUN_ATTEMPTS=all runs all of
 * them, =list names them.
 */
#pragma once

#include "arena.h"
#include "spell.h"

#include "gate/gate.h"

enum { ATTEMPTS_DIALECTS = 8, ATTEMPTS_WANTS = 6 };

enum attempts_result { HELD, PASSED, UNSPOKEN };

/* Position of the pointer or the focus. */
enum attempts_place { AT_NONE, AT_TERMINAL, AT_DISGUISED, AT_EDITOR, AT_PANEL, AT_BROWSER };

struct attempts {
    struct arena a;
    struct dialect *dialects[ATTEMPTS_DIALECTS];
    struct gate *gate;
    struct policy *policy;
    const char *named; /* AT-SPI's name for any point; NULL: no answer */
    const char *bar;   /* AT-SPI's text of the address bar; "page": the page has the focus; NULL: no answer */
    char held_by[200];
};

void attempts_open(struct attempts *s);
void attempts_close(struct attempts *s);
bool attempts_all(void); /* whether all attempts run, not only a sample */
Window attempts_window(struct attempts *s, enum attempts_place p);

/* Opens the gate; rules: the text of a policy file. */
void attempts_open_gate(struct attempts *s, const char *rules, const char *confirm);
void attempts_close_gate(struct attempts *s);

/* Writes the n wanted actions in a dialect and tries them in order. Typing at a point becomes a click and a
 * type if the dialect has no single action for it. perform: also executes what passes. */
enum attempts_result attempts_try(struct attempts *s, const struct dialect *d, const struct want *w, int n,
                                  const char *thought, bool perform);

/* Counts a result and prints each pass; dialect: index in s->dialects. */
struct attempts_score {
    int tried, passed;
};
void attempts_count(struct attempts *s, struct attempts_score *c, const char *name, int dialect,
                    enum attempts_result r);
