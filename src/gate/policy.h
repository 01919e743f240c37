/* policy.h - what the agent may do: rules that allow, ask or forbid.
 *
 * A policy is a YAML file, read before the rules that are built in (builtin.yaml, the same format):
 *
 *     builtin: yes                # the built-in rules follow these; no: only these
 *     otherwise: allow            # if no rule matches: allow, confirm or deny
 *     rules:
 *       - confirm: orders         # the verdict, and a name for people
 *         actions: [click, type]  # kinds, as in the record of a run
 *         element: buy|order      # regex, on the model's description of the target and its accessible
 *                                 # name; without a description also on the thought and a dialog's title;
 *                                 # with "click" also on what Enter or space would press
 *         text: invoice           # regex, on the text that is typed, pasted or dropped, or the address
 *         title: Shop             # regex, on the title of the window ...
 *         class: firefox          # ... on its class ...
 *         program: bin/xterm$     # ... on the file of its process
 *         terminal: yes           # the window is a terminal, by its class or its shell, or a launcher
 *         browser: yes            # the window is a web browser's, by its class
 *         dialog: delet(e|ing)    # regex, on the title and the text of a dialog, for a button that agrees
 *                                 # (Yes, OK, Continue); "element" is tried on these, too
 *         except: accept cookies  # regex, on the same names as "element": they do not match after all
 *         zone: [0, 0, 100%, 32]  # x, y, width, height on the root window; pixels or %; a drag through
 *                                 # it counts
 *         keys: [ctrl+w, alt+F4]  # chords, spelled as models spell them
 *         longer: 500             # the text has more characters than this
 *         host: ["*.example.org"] # of the address, also of one that Enter opens in a browser's address bar;
 *                                 # "code:" is one that would run, also in a text written; "internal:"
 *                                 # a page of the browser itself or a file; "unknown:" one that Enter opens
 *                                 # and that could not be read
 *         secret: [PASSWORD]      # names of secrets that are typed; "*": any
 *         new_goal: yes           # a plan with goals unrelated to the task (goals.h)
 *         after: [50 steps]       # the run has used so many steps, seconds, tokens, actions, typed
 *                                 # characters, or made so many errors in a row
 *
 * The first rule that matches decides.  A rule matches when all its keys do, a key with a list when one
 * item does.  Regexes are PCRE2, case-insensitive, and are tried on each text as it is and as a person
 * reads it (fold.h).  In doubt a rule forbids rather than allows:
 *
 *     an action has several targets (a drag)      deny, confirm: any of them     allow: all of them
 *     more keys are down than the chord names     match                          no match
 *     a regex runs into its limit                 match                          no match
 *     an address whose host is unclear            match                          no match
 *     a text that is pasted and cannot be read    match                          no match
 */
#ifndef HOLORUN_GATE_POLICY_H
#define HOLORUN_GATE_POLICY_H

#include "actions/action.h"
#include "screen/screen.h"

#include <jansson.h>

enum policy_verdict { POLICY_ALLOW, POLICY_CONFIRM, POLICY_DENY };
const char *policy_verdict_name(enum policy_verdict v); /* "confirm" */

enum { POLICY_MAX_RULES = 500, POLICY_MAX_TARGETS = 8, POLICY_MAX_KEYS = 24 };

struct policy_target {
    bool placed; /* x, y are valid: root pixels of the event */
    int x, y;
    struct screen_window window; /* at x, y, else the focused one */
    bool writes;                 /* what is written goes into this window */
    bool shell;       /* its process has a shell of its own: it is a terminal, whatever its class */
    char name[256];   /* of the element at x, y, as the program tells it (AT-SPI); "": not known */
    char dialog[512]; /* text of the dialog around the element, as the program tells it; "": none */
    bool silent;      /* the program did not tell it in time */
    bool presses_known;
    char presses[256]; /* what the action's keys would press here (AT-SPI); "": nothing, if that is known */
};

/* Text that an action puts into a window: by typing, by keys that are characters, by pasting (the middle
 * button, Ctrl+V, Shift+Insert), or by dropping it.  Such an action counts as "type", too. */
struct policy_writing {
    bool any, known;    /* known: text is what would be written */
    const char *text;   /* never NULL when known */
    const char *before; /* what was written into the same window just before; "": nothing */
    bool moved;         /* ... and the cursor may not be at its end any more */
};

/* An address that the action would open in a browser without naming it: by Enter in the address bar, or by a
 * click while the bar contains it. */
struct policy_address {
    bool goes, known;
    const char *text; /* never NULL when known */
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

struct policy_spent { /* by the run so far */
    double of[SPENT_COUNTERS];
};
const char *policy_spent_name(enum policy_counter c);                        /* "steps" */
bool policy_spent_read(const char *text, enum policy_counter *c, double *n); /* "50 steps" */

struct policy_subject { /* an action and what it would touch */
    const struct action *action;
    int root_w, root_h;
    struct policy_target targets[POLICY_MAX_TARGETS];
    int n_targets;
    unsigned long pressed_in; /* the window in which the button went down; 0: it is not known */
    bool drags;               /* a button is down meanwhile; this counts as "drag", too */
    /* Its keys press what has the keyboard: for rules that ask or forbid by element it counts as
     * "click", too, with what it presses as the element. */
    enum policy_press { PRESS_NOTHING, PRESS_IN_TEXT, PRESS_SPACE, PRESS_ENTER, PRESS_MNEMONIC } press;
    bool in_menu; /* a context menu is open, in which letters press entries */
    /* Points of a drag's path: a zone counts when a line between two of them touches it.  Borrowed x, y
     * pairs. */
    const int *corners;
    int n_corners;
    struct policy_writing writing;
    struct policy_address address;
    /* The keysym that a key gives while Shift is down, 0: not known; NULL: the US layout. */
    uint32_t (*shifted)(void *keyboard, uint32_t key);
    void *keyboard;
    const char *thought; /* of the model, for actions that do not describe their target; NULL: none */
    uint32_t held[POLICY_MAX_KEYS]; /* keys that earlier actions left down */
    int n_held;
    const char *const *secrets; /* names of the secrets it would type */
    int n_secrets;
    bool new_goal;
    struct policy_spent spent;
};

struct policy_ruling {
    enum policy_verdict verdict;
    const char *rule; /* its name; borrowed from the policy */
    const char *file;
    int line; /* 0: "otherwise" */
};

struct policy;

/* Budgets of a run from the block "limits:" of a policy file; 0: no limit. */
struct policy_limits {
    int typed;        /* characters typed */
    int rate;         /* actions on the screen within a minute */
    int errors;       /* failed or refused steps in a row, 5 by default */
    int repeats;      /* of one action without a visible effect, 5 by default */
    int no_effect;    /* of different actions without a visible effect in a row, 12 by default */
    bool corner_stop; /* a pointer left in the top left corner for a second stops the run */
};

/* The built-in rules alone. */
struct policy *policy_builtin(void);
/* A file's rules, followed by the built-in ones unless it says "builtin: no".  NULL with ERR_USAGE: file,
 * line, key and what was expected. */
struct policy *policy_parse(const char *text, size_t len, const char *name, struct err *e);
/* The file at path; NULL: the user's policy.yaml if it exists, else policy_builtin(). */
struct policy *policy_open(const char *path, struct err *e);
void policy_free(struct policy *p); /* NULL is fine */

/* The first rule that matches.  Never fails. */
struct policy_ruling policy_judge(const struct policy *p, const struct policy_subject *s);

/* Whether windows of this class take the keyboard to run what is typed (rofi, krunner). */
bool policy_is_launcher(const struct policy *p, const char *class);
/* Returns whether a window belongs to a web browser. */
bool policy_is_browser(const struct policy *p, const struct screen_window *w);
/* Returns whether a button of this name agrees to its dialog (Yes, OK, Continue). */
bool policy_agrees(const struct policy *p, const char *name);

const struct policy_limits *policy_limits(const struct policy *p);
struct buf;
json_t *policy_limits_json(const struct policy *p);         /* the caller owns the object */
const char *policy_name(const struct policy *p);            /* its file, or "built in" */
const char *policy_sha256(const struct policy *p);          /* of the source text of all rules in force */
void policy_print(const struct policy *p, struct buf *out); /* the rules in force, one per line */
/* Prints the names of the rules, grouped by verdict, with the number of patterns of each verdict. */
void policy_print_summary(const struct policy *p, struct buf *out);

/* The canonical keysym: the same for left and right, keypad and main block, lower and upper case. */
uint32_t policy_key(uint32_t keysym);

#endif
