/* policy.h - rules for the agent's actions: allow, confirm or deny.
 *
 * A policy is a YAML file, read before the built-in rules (builtin.yaml, the same format):
 *
 * builtin: yes # the built-in rules follow these; no: only these otherwise: allow # if no rule matches:
 * allow, confirm or deny rules:
 *   - confirm: orders         # the verdict, and a name for users
 *     actions: [click, type]  # kinds of actions, as in the record of a run
 *     element: buy|order      # regex on the model's description of the target and its accessible
 *                             # name; without a description also on the thought and a dialog's title;
 *                             # with "click" also on the element that Enter or space would press
 *     text: invoice           # regex on the text that is typed, pasted or dropped, or the address
 *     title: Shop             # regex on the title of the window ...
 *     class: firefox          # ... on its class ...
 *     program: bin/xterm$     # ... on the executable of its process
 *     terminal: yes           # the window is a terminal, by its class or its shell, or a launcher
 *     browser: yes            # the window belongs to a web browser, by its class
 *     dialog: delet(e|ing)    # regex on the title and the text of a dialog, for a button that accepts
 *                             # it (Yes, OK, Continue); "element" is also matched against these
 *     except: accept cookies  # regex on the same names as "element"; names that match are excluded
 *     zone: [0, 0, 100%, 32]  # x, y, width, height on the root window; pixels or %; a drag through
 *                             # it counts
 *     keys: [ctrl+w, alt+F4]  # chords, spelled as models spell them
 *     longer: 500             # the text has more characters than this
 *     host: ["*.example.org"] # host of the address, also of one that Enter opens in the address bar;
 *                             # "code:" an address that would run code, also in written text;
 *                             # "internal:" a page of the browser itself or a file; "unknown:" an
 *                             # address that Enter opens and that could not be read
 *     secret: [PASSWORD]      # names of secrets that are typed; "*": any
 *     new_goal: yes           # a plan with goals unrelated to the task (goals.h)
 *     after: [50 steps]       # the run has used this many steps, seconds, tokens, actions, typed
 *                             # characters, or has had this many consecutive errors
 *
 * The first matching rule decides. A rule matches if all its keys do, a key with a list if one item does.
 * Regexes are PCRE2, case-insensitive, and are applied to each text unchanged and folded (fold.h). In doubt a
 * rule denies rather than allows:
 *
 * case confirm, deny allow an action has several targets (a drag) any of them all of them more keys are down
 * than the chord names match no match a regex exceeds its limit match no match an address whose host is
 * unclear match no match a pasted text that cannot be read match no match */
#pragma once

#include "actions/action.h"
#include "screen/screen.h"

#include <jansson.h>

enum policy_verdict { POLICY_ALLOW, POLICY_CONFIRM, POLICY_DENY };
const char *policy_verdict_name(enum policy_verdict v); /* Returns "allow", "confirm" or "deny". */

enum { POLICY_MAX_RULES = 500, POLICY_MAX_TARGETS = 8, POLICY_MAX_KEYS = 24 };

struct policy_target {
    bool placed; /* x, y are valid: position of the event in root pixels */
    int x, y;
    struct screen_window window; /* window at x, y, otherwise the focused one */
    bool writes;                 /* the action writes into this window */
    bool shell;                  /* its process has a shell: it is a terminal, whatever its class */
    char name[256];              /* accessible name (AT-SPI) of the element at x, y; "": unknown */
    char other[256];             /* name of the element that the program's hit test finds at x, y, if it is
                                  * another element; "": none */
    char dialog[512];            /* text of the dialog around the element (AT-SPI); "": none */
    bool silent;                 /* the program did not report the dialog in time */
    bool presses_known;
    char presses[256]; /* element that the action's keys would press (AT-SPI); "": none, if presses_known */
};

/* Text that an action writes into a window: by typing, by keys that are characters, by pasting (middle
 * button, Ctrl+V, Shift+Insert), or by dropping it. Such an action also counts as "type". */
struct policy_writing {
    bool any, known;    /* known: text is the text that would be written */
    const char *text;   /* never NULL if known */
    const char *before; /* text written into the same window just before; "": none */
    bool moved;         /* the cursor may not be at the end of `before` */
};

/* An address that the action would open in a browser without containing it: by Enter in the address bar, or
 * by a click while the bar contains it. */
struct policy_address {
    bool goes, known;
    const char *text; /* never NULL if known */
};

enum policy_counter {
    SPENT_STEPS,
    SPENT_SECONDS,
    SPENT_TOKENS,
    SPENT_ACTIONS,
    SPENT_CHARACTERS,
    SPENT_ERRORS,
    SPENT_COUNTERS
};

struct policy_spent { /* totals used by this run, one per counter */
    double of[SPENT_COUNTERS];
};
/* Returns "steps", "seconds", ... */
const char *policy_spent_name(enum policy_counter c);
/* Parses "50 steps". Returns false for other texts. */
bool policy_spent_read(const char *text, enum policy_counter *c, double *n);

struct policy_subject { /* an action and the windows that it would affect */
    const struct action *action;
    int root_w, root_h;
    struct policy_target targets[POLICY_MAX_TARGETS];
    int n_targets;
    unsigned long pressed_in; /* window in which the button was pressed; 0: unknown */
    bool drags;               /* a button is down meanwhile; the action also counts as "drag" */
    /* The action's keys press the focused element: for rules that confirm or deny by element it also counts
     * as "click" on that element. */
    enum policy_press { PRESS_NOTHING, PRESS_IN_TEXT, PRESS_SPACE, PRESS_ENTER, PRESS_MNEMONIC } press;
    bool in_menu; /* a context menu is open, in which letters activate entries */
    /* Points of a drag's path, borrowed x, y pairs: a zone matches if a line between two of them touches
     * it. */
    const int *corners;
    int n_corners;
    struct policy_writing writing;
    struct policy_address address;
    /* Returns the keysym of a key with Shift, 0: unknown. NULL: the US layout is assumed. */
    uint32_t (*shifted)(void *keyboard, uint32_t key);
    void *keyboard;
    const char *thought; /* thought of the model, for actions that do not describe their target; NULL: none */
    uint32_t held[POLICY_MAX_KEYS]; /* keys that earlier actions left pressed */
    int n_held;
    const char *const *secrets; /* names of the secrets that it would type */
    int n_secrets;
    bool new_goal;
    struct policy_spent spent;
};

struct policy_ruling {
    enum policy_verdict verdict;
    const char *rule; /* name of the rule; borrowed from the policy */
    const char *file;
    int line; /* 0: "otherwise" */
};

struct policy;

/* Limits of a run from the block "limits:" of a policy file; 0: no limit. */
struct policy_limits {
    int typed;        /* characters typed */
    int rate;         /* screen actions per minute */
    int errors;       /* consecutive failed or refused steps, 5 by default */
    int repeats;      /* repetitions of one action without a visible effect, 5 by default */
    int no_effect;    /* consecutive actions of any kind without a visible effect, 12 by default */
    bool corner_stop; /* a pointer left in the top left corner for a second stops the run */
};

/* Returns the built-in rules. */
struct policy *policy_builtin(void);
/* Parses a policy: its rules, followed by the built-in ones unless it contains "builtin: no". Returns NULL
 * with ERR_USAGE, which names file, line, key and the expected value. */
struct policy *policy_parse(const char *text, size_t len, const char *name, struct err *e);
/* Reads the file at path; NULL: the user's policy.yaml if it exists, otherwise policy_builtin(). Returns NULL
 * with e. */
struct policy *policy_open(const char *path, struct err *e);
void policy_free(struct policy *p); /* NULL is allowed. */

/* Returns the ruling of the first matching rule, or "otherwise". Never fails. */
struct policy_ruling policy_judge(const struct policy *p, const struct policy_subject *s);

/* Returns whether windows of this class take the keyboard to execute typed commands (rofi, krunner). */
bool policy_is_launcher(const struct policy *p, const char *class);
/* Returns whether a window belongs to a web browser. */
bool policy_is_browser(const struct policy *p, const struct screen_window *w);
/* Returns whether a button with this name accepts its dialog (Yes, OK, Continue). */
bool policy_agrees(const struct policy *p, const char *name);

const struct policy_limits *policy_limits(const struct policy *p);
struct buf;
json_t *policy_limits_json(const struct policy *p); /* Returns the limits; the caller owns the object. */
const char *policy_name(const struct policy *p);    /* Returns the file name, or "built in". */
/* Returns the hash of the source text of all rules in force. */
const char *policy_sha256(const struct policy *p);
void policy_print(const struct policy *p, struct buf *out); /* Prints the rules in force, one per line. */
/* Prints the names of the rules, grouped by verdict, with the number of patterns of each verdict. */
void policy_print_summary(const struct policy *p, struct buf *out);

/* Returns the canonical keysym: the same for left and right, keypad and main block, lower and upper case. */
uint32_t policy_key(uint32_t keysym);
