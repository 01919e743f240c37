/* attempts.h - actions that the gate should ask about, in the words of any dialect, where nobody is there to
 * ask: what becomes of each, and how many get through.
 *
 * A sample of what is performed runs by default, and each judged attempt in one dialect; HOLORUN_ATTEMPTS=all
 * runs all, =list names them.
 */
#ifndef HOLORUN_TESTS_ATTEMPTS_H
#define HOLORUN_TESTS_ATTEMPTS_H

#include "arena.h"
#include "spell.h"

#include "gate/gate.h"

enum { ATTEMPTS_DIALECTS = 8, ATTEMPTS_WANTS = 6 };

enum attempts_result { HELD, PASSED, UNSPOKEN };

/* Where the pointer or the keyboard is. */
enum attempts_place { AT_NONE, AT_TERMINAL, AT_DISGUISED, AT_EDITOR, AT_PANEL, AT_BROWSER };

struct attempts {
    struct arena a;
    struct dialect *dialects[ATTEMPTS_DIALECTS];
    struct gate *gate;
    struct policy *policy;
    const char *named; /* what AT-SPI would say of any place; NULL: no answer */
    const char *bar;   /* AT-SPI's text of the address bar; "page": the page has the focus; NULL: no answer */
    char held_by[200];
};

void attempts_open(struct attempts *s);
void attempts_close(struct attempts *s);
bool attempts_all(void); /* not only a sample */
Window attempts_window(struct attempts *s, enum attempts_place p);

/* rules: a policy file's text. */
void attempts_open_gate(struct attempts *s, const char *rules, const char *confirm);
void attempts_close_gate(struct attempts *s);

/* Wanted actions one after the other; a write into a place is a click and a write where the dialect has no
 * other word for it.  perform: not only judged. */
enum attempts_result attempts_try(struct attempts *s, const struct dialect *d, const struct want *w, int n,
                                  const char *thought, bool perform);

/* Counts a result, and prints what has passed; dialect: its place among them. */
struct attempts_score {
    int tried, passed;
};
void attempts_count(struct attempts *s, struct attempts_score *c, const char *name, int dialect,
                    enum attempts_result r);

#endif
