/* gate_impl.h - struct gate. Private to gate/bar.c, field.c, gate.c, question.c, targets.c and type.c. */
#pragma once

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
    unsigned long window;  /* window that the rules were applied to; keys may go there */
    char *pasted;          /* text that the current action would paste; NULL: none, or unknown */
    char bar[4608];        /* beginning of the address that the current action would open */
    struct written {       /* text that the run has written into one window (bar.c) */
        unsigned long window;
        char text[512]; /* end of the text in the focused field */
        bool moved;     /* the cursor may not be at the end of the text */
        bool unknown;   /* keys have changed the text in an unknown way */
        bool selected;  /* all of it is selected: the next text replaces it */
        bool bar;       /* a key has moved the focus to the address bar */
        /* a key or click has moved the focus to the bar, and none has moved it away since */
        bool in_bar;
        size_t last;          /* bytes at the end of text that were written last and are unchanged */
        bool left;            /* other fields contain text of the run */
        bool left_unknown;    /* the content of those fields is unknown */
        uint8_t seen[128];    /* number of times that each character was written, at most 255 */
    } written[WINDOWS_KEPT];  /* newest first */
    int64_t copied;           /* clock_ns() of the last copy or cut key; 0: none */
    const char *part;         /* part of the current action's text that was typed last; NULL: none */
    bool in_menu;             /* the last action opened a context menu */
    bool in_launcher;         /* the last action opened a launcher */
    bool approved;            /* the user or a substitute has seen the current action and approved it */
    unsigned long pressed_in; /* window in which an action has left a button pressed */
    unsigned buttons;         /* bit mask of buttons that actions have left pressed */
    char thought[1024];
    char check[256];        /* "the model's server requests a check: ...", the name of the rule; "": none */
    struct subject subject; /* about the current action; large */
    const char *named[SECRETS_MAX]; /* names of the secrets that it would type */
    uint32_t held[POLICY_MAX_KEYS];
    int n_held, questions;
    bool warned_nobody;
    struct goals *goals; /* NULL: no task */
    struct policy_spent spent;
};

/* Fills in g->subject: the windows that the action would currently affect and the text that it would write.
 * Returns -1 with e if the display is lost. */
int gate_look(struct gate *g, const struct action *a, const struct view_transform *transform, struct err *e);
/* Applies the rules to g->subject. */
struct policy_ruling gate_apply_rules(const struct gate *g, const struct action *a);
/* Returns whether a ruling passes without a question. */
bool gate_lets_through(const struct gate *g, const struct policy_ruling *r);
/* Applies the rules to the same action as if it wrote into window w. Returns false if they would ask or
 * deny. */
bool gate_allows_window(struct gate *g, const struct action *a, const struct screen_window *w,
                        struct policy_ruling *out);
/* Writes "title, class, program" of the window that g->subject would affect; "" if there is none. */
void gate_describe_window(const struct gate *g, char *out, size_t size);
/* Asks the user about the action, and again if the shown content has changed meanwhile. Returns -1 with e if
 * stopped. */
int gate_ask(struct gate *g, const struct action *a, const struct view_transform *transform, int step,
             struct gate_ruling *out, struct err *e);
void gate_refuse(struct gate_ruling *out, enum action_fault fault, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Returns the tracked text of a window, an empty entry if the window is not tracked. */
const struct written *gate_written(const struct gate *g, unsigned long window);
/* Fills in g->subject.s.address (bar.c). */
void gate_look_up_address(struct gate *g);
/* Updates the tracked text of the window after the action was done. */
void gate_note_edit(struct gate *g, const struct action *a, unsigned long window);
/* Reads the focused element until it agrees with the run's own input in this window, for about one second.
 * *differs: it does not agree. Returns false if no answer arrived. */
bool gate_read_field(struct gate *g, const struct policy_target *t, struct gate_field *out, bool *differs);
/* Updates the tracked state after the action was executed. */
void gate_note_written(struct gate *g, const struct action *a);
