/* gate_impl.h - struct gate.  Private to gate/bar.c, field.c, gate.c, question.c, targets.c and type.c. */
#ifndef HOLORUN_GATE_GATE_IMPL_H
#define HOLORUN_GATE_GATE_IMPL_H

#include "gate/gate.h"
#include "gate/goals.h"
#include "gate/redact.h"
#include "gate/subject.h"

enum { WINDOWS_KEPT = 8 };

struct gate {
    struct gate_options o;
    struct screen *screen;
    char *dir;
    struct redact *redact; /* NULL: nothing to cover */
    unsigned long window;  /* that the rules were applied to; keys may go there */
    char *pasted;          /* what the current action would paste; NULL: nothing, or not known */
    char bar[4608];        /* the address that the current action would open, its beginning */
    struct written {       /* by the run into one window (bar.c) */
        unsigned long window;
        char text[512];      /* in the field that has the keyboard, its end */
        bool moved;          /* the cursor may be elsewhere than at its end */
        bool unknown;        /* keys have changed the text since, in a way that is not known */
        bool selected;       /* all of it: the next text replaces it */
        bool bar;            /* the field is the address bar, as a key has gone there */
        bool in_bar;         /* a key or a click has gone to the bar, and none has left it since */
        size_t last;         /* bytes at the end of text that were written last and not changed since */
        bool left;           /* other fields hold text of the run */
        bool left_unknown;   /* ... and it is not known what */
        uint8_t seen[128];   /* how often each character was written, at most 255 */
    } written[WINDOWS_KEPT]; /* the newest first */
    const char *part;        /* text of the current action that was typed just now; NULL: nothing */
    bool in_menu;            /* the last action opened a context menu */
    bool in_launcher;        /* ... or a launcher */
    bool approved; /* a person, or who stands for one, has seen the current action and let it pass */
    unsigned long pressed_in; /* the window in which an action has left one down */
    unsigned buttons;         /* bits of those that actions have left down */
    char thought[1024];
    char check[256];        /* "safety check of the model's server: ...", the rule that asks; "": none */
    struct subject subject; /* of the current action; large */
    const char *named[SECRETS_MAX]; /* secrets that it would type */
    uint32_t held[POLICY_MAX_KEYS];
    int n_held, questions;
    bool warned_nobody;
    struct goals *goals; /* NULL: no task */
    struct policy_spent spent;
};

/* Fills in g->subject: what the action would touch and write, now.  -1: the display is lost. */
int gate_look(struct gate *g, const struct action *a, const struct view_transform *transform, struct err *e);
/* The element that the keys of the current action would press in the target's window. */
void gate_look_up_pressed(struct gate *g, struct policy_target *t);
/* The rules applied to g->subject. */
struct policy_ruling gate_apply_rules(const struct gate *g, const struct action *a);
/* Whether a ruling lets something pass without asking. */
bool gate_lets_through(const struct gate *g, const struct policy_ruling *r);
/* The rules applied to the same action if what it writes went into w instead.  false: they would ask or
 * forbid. */
bool gate_allows_window(struct gate *g, const struct action *a, const struct screen_window *w,
                        struct policy_ruling *out);
/* "title, class, program" of the window that g->subject would touch; "" when it touches none. */
void gate_describe_window(const struct gate *g, char *out, size_t size);
/* Asks a person about the action, again when what the question showed has changed meanwhile. */
int gate_ask(struct gate *g, const struct action *a, const struct view_transform *transform, int step,
             struct gate_ruling *out, struct err *e);
void gate_refuse(struct gate_ruling *out, enum action_fault fault, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Returns the tracked text of a window, an empty entry if the window is not tracked. */
const struct written *gate_written(const struct gate *g, unsigned long window);
/* Fills in g->subject.s.address (bar.c). */
void gate_look_up_address(struct gate *g);
/* Updates the tracked text of the window after the action was done. */
void gate_note_edit(struct gate *g, const struct action *a, unsigned long window);
/* Reads the focused element, again until it agrees with what the run has done in this window, within about a
 * second.  differs: it does not agree.  Returns false without an answer. */
bool gate_read_field(struct gate *g, const struct policy_target *t, struct gate_field *out, bool *differs);
/* After the action was done. */
void gate_note_written(struct gate *g, const struct action *a);

#endif
