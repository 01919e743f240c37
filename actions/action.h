/* action.h - the agent's actions as data.
 *
 * Each action has one row in the table of actions (kinds.h): name, parameters, classes, functions.  The tool
 * list in the prompt, the grammar of replies and the parser are generated from that table, so they cannot
 * disagree; screen/exec.c performs each kind.
 *
 *     model text --action_parse--> struct step --gate--> action_execute --> X events
 *
 * Parsing is pure: it makes no X requests and can be tested and fuzzed separately. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum action_kind {
#define ACTION(kind, ...) kind,
#include "actions/kinds.h"
    ACT_COUNT
};

/* the error of the model's output; its text is returned to the model */
enum action_fault {
    FAULT_NONE,
    FAULT_PARSE,
    FAULT_NO_ACTION,
    FAULT_SCHEMA,
    FAULT_UNSUPPORTED,
    FAULT_RANGE,
    FAULT_KEY,
    FAULT_TEXT,
    FAULT_DENIED,
    FAULT_REFUSED,
    FAULT_FOCUS,
    FAULT_X11,
    FAULT_BUDGET,
    FAULT_STOPPED,
};
const char *action_fault_name(enum action_fault f); /* such as "E_PARSE" */

enum {
    ACTION_ABSENT = INT32_MIN,
    ACTION_MAX_KEYS = 8,
    ACTION_MAX_HOLD = 3,
    ACTION_MAX_PATH = 256,
    ACTION_MAX_TEXT = 64 << 10,
    ACTION_MAX_ELEMENT = 512,
    STEP_MAX_ACTIONS = 8,
};

struct action_point {
    int32_t x, y;
};

struct action {
    enum action_kind kind;
    int32_t x, y, x2, y2;      /* pixels of the captured image; ACTION_ABSENT: not given */
    double nx, ny, nx2, ny2;   /* as the model wrote them, for the trace */
    uint8_t button;            /* 1 left, 2 middle, 3 right, 8 back, 9 forward */
    uint8_t count;             /* clicks 1..3, key repeats 1..20 */
    struct action_point *path; /* points of DRAG, owned; NULL: none */
    int npath;
    uint32_t keys[ACTION_MAX_KEYS]; /* X keysyms in press order; HOLDTAP: the first nhold are held */
    int nkeys;
    uint32_t hold[ACTION_MAX_HOLD]; /* modifiers around CLICK, DRAG, SCROLL */
    int nhold;
    int16_t dx, dy; /* SCROLL: wheel clicks, +x right, +y down */
    char *text;     /* TYPE ANSWER INFEASIBLE GOTO ASK PLAN: UTF-8, owned; never NULL for these */
    bool press_enter, overwrite, at_end; /* TYPE; at_end: the End key is pressed first */
    bool secret;                         /* TYPE: typed with keys only, not recorded */
    bool wordless;                       /* ANSWER: the call may be without text, as terminate(success) */
    uint32_t ms;                         /* WAIT, DRAG duration */
    char element[ACTION_MAX_ELEMENT];    /* the model's description of the target */
};

enum repair { /* deviations that the parser has accepted, as bits */
              REPAIR_TRAILING_TEXT = 1,
              REPAIR_TRAILING_COMMA = 2,
              REPAIR_CONTROL_CHAR = 4,
              REPAIR_PYTHON_LITERAL = 8,
              REPAIR_NUMBER_STRING = 16,
              REPAIR_FLOAT = 32,
              REPAIR_FENCE = 64,
              REPAIR_ALIAS = 128,
              REPAIR_MIDPOINT = 256,
              REPAIR_CLAMP = 512,
              REPAIR_EXTRA_CALLS = 1024,
              REPAIR_CALL = 2048, /* the form of the call: closers, wrapper, spelling */
};

struct step {             /* one turn of the model; all zeros: empty */
    char *note, *thought; /* owned; NULL: absent */
    char *check;          /* safety checks for the user that the model's server requests; owned, NULL: none */
    char *dropped;        /* further calls of the reply, which are not executed; owned, NULL: none */
    struct action actions[STEP_MAX_ACTIONS];
    int nactions;
    unsigned repairs;
    bool cut; /* the text ended before the closer of the last call: further arguments may be missing */
};
void step_free(struct step *s);
void action_free(struct action *a);

struct dialect;

/* Returns the number of a ref of an element, "e12"; 0: the text is not exactly a ref. */
uint32_t action_ref(const char *text);

/* Parses a reply.  w, h: size in pixels of the image that the model saw, for coordinates.  Returns FAULT_NONE
 * and fills *out, or a fault with a message in *e and *out empty. */
enum action_fault action_parse(const char *text, size_t len, const struct dialect *d, int w, int h,
                               struct step *out, struct err *e);

/* Appends one line for users: click "Save" at 312,240 | type "Paris" into "From" at 120,60 */
void action_describe(const struct action *a, struct buf *out);
/* Returns the descriptions of n actions, separated by "; "; the caller frees the result. */
char *actions_describe(const struct action *a, int n);

/* Appends the action in a few words without positions: "press 'Save'"; past: "pressed 'Save'". */
void action_tell(const struct action *a, bool past, struct buf *out);

/* action_to_json() appends the canonical form as a JSON object, for the trace; action_from_json() reads it
 * and returns -1 with e if it is invalid. */
void action_to_json(const struct action *a, struct buf *out);
int action_from_json(const char *json, size_t len, struct action *out, struct err *e);

/* Returns the number of characters that the action types: of its text, address or keys. */
int action_characters(const struct action *a);
/* The effects of a kind of action, as bits: each row of kinds.h states them. */
enum action_class {
    ACTION_ENDS_RUN = 1 << 0,
    ACTION_NEEDS_POINT = 1 << 1, /* a call without a position is rejected */
    ACTION_TOUCHES = 1 << 2,     /* sends input */
    ACTION_LOOKS = 1 << 3,       /* changes nothing: allowed with --observe-only */
    ACTION_CHANGES = 1 << 4,     /* changes the screen, as expected */
    ACTION_POINTER = 1 << 5,     /* acts at its position, or at the pointer if it has none */
    ACTION_BUTTON = 1 << 6,      /* presses or releases a mouse button */
    ACTION_CLICKS = 1 << 7,      /* presses and releases a button at one position */
    ACTION_DRAGS = 1 << 8,       /* ends at a second place */
    ACTION_CARRIES = 1 << 9,     /* continues a drag while a button is down */
    ACTION_FOCUS = 1 << 10,      /* its keys go to the focused window */
    ACTION_KEYBOARD = 1 << 11,   /* presses keys, fixed or named ones */
    ACTION_CHARACTERS = 1 << 12, /* the keys may be characters for the focused window */
    ACTION_NAMED_KEYS = 1 << 13, /* each key is named */
    ACTION_TYPES = 1 << 14,      /* types its text into a field, the focused one or the one at its position */
    ACTION_ADDRESS = 1 << 15,    /* its text is an address for a browser */
    ACTION_HOLDS = 1 << 16,      /* leaves keys or a button pressed */
    ACTION_RELEASES = 1 << 17,   /* releases keys or a button that an earlier action pressed */
    ACTION_RECORDED = 1 << 18,   /* a recording may contain it (src/record) */
};
bool action_is(enum action_kind k, unsigned classes); /* returns whether k has all of these classes */

/* Writes the chord of BACK, FORWARD and REFRESH, or for GOTO the one that focuses the address bar.  Returns
 * the number of keys; 0: none. */
int action_shortcut(enum action_kind k, uint32_t keys[2]);

const char *action_kind_name(enum action_kind k); /* such as "click" */
bool action_ends_run(enum action_kind k);         /* ANSWER, INFEASIBLE, ASK */

/* Makes letters of a chord lower case, because "CTRL+A" does not include Shift. */
void action_plain_keys(struct action *a);

/* ---- addresses (address.c) ----------------------------------------------------------------------- */

struct action_address { /* a text for an address bar */
    char typed[8192];   /* the text that is typed, without surrounding spaces */
    /* the host that a browser would open, in lower case; for a scheme without a host the scheme with its
     * colon ("file:") */
    char host[256];
    bool clear; /* false: the host is unclear, and host is "" */
};
/* Reads an address.  Returns -1 with ERR_USAGE if the text is more than a line. */
int action_address(const char *text, struct action_address *out, struct err *e);
/* Returns whether an address bar would run the text as a program ("javascript:..."); tabs and line ends,
 * which browsers drop, are ignored. */
bool action_is_code(const char *text);
/* Returns whether an address bar would open a page of the browser itself or a local file ("about:config",
 * "view-source:...", "file:..."), except empty pages ("about:blank"). */
bool action_is_internal(const char *text);
