/* action.h - what the agent can do, as data.
 *
 * One action, one registry entry: name, parameters, help and executor.  The list the model is shown,
 * the grammar its output must follow, the parser that reads it and the executor that performs it all
 * come from the same table (registry.c), so they cannot disagree.
 *
 *   model text --action_parse--> struct step --action_check--> --action_execute--> X events
 *
 * Parsing and checking are pure: they never touch X and can be tested and fuzzed alone.
 */
#ifndef HOLORUN_ACTIONS_ACTION_H
#define HOLORUN_ACTIONS_ACTION_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum action_kind {
    ACT_NONE,
    ACT_MOVE,
    ACT_CLICK,
    ACT_MDOWN,
    ACT_MUP,
    ACT_DRAG,
    ACT_SCROLL,
    ACT_TYPE,
    ACT_KEY,
    ACT_KEYDOWN,
    ACT_KEYUP,
    ACT_HOLDTAP,
    ACT_WAIT,
    ACT_OBSERVE,
    ACT_ZOOM,
    ACT_PLAN,
    ACT_GOTO,
    ACT_BACK,
    ACT_FORWARD,
    ACT_REFRESH,
    ACT_RESTART,
    ACT_ASK,
    ACT_ANSWER,
    ACT_INFEASIBLE,
    ACT_COUNT
};

/* What was wrong with the model's output; the text goes back to the model. */
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
    FAULT_ZONE,
    FAULT_REFUSED,
    FAULT_GRAB,
    FAULT_FOCUS,
    FAULT_X11,
    FAULT_BUDGET,
    FAULT_STOPPED,
};
const char *action_fault_name(enum action_fault f); /* "E_PARSE" */

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
    int32_t x, y, x2, y2;      /* pixels of the captured image, ACTION_ABSENT when not given */
    double nx, ny, nx2, ny2;   /* the model's own numbers, for the log */
    uint8_t button;            /* 1 left 2 middle 3 right 8 back 9 forward */
    uint8_t count;             /* clicks 1..3, key repeats 1..20 */
    struct action_point *path; /* DRAG polyline, owned; NULL when none */
    int npath;
    uint32_t keys[ACTION_MAX_KEYS]; /* X keysyms in press order; HOLDTAP: the first nhold are held */
    int nkeys;
    uint32_t hold[ACTION_MAX_HOLD]; /* modifiers around CLICK, DRAG, SCROLL */
    int nhold;
    int16_t dx, dy; /* SCROLL: wheel clicks, +x right, +y down */
    char *text;     /* TYPE ANSWER INFEASIBLE GOTO ASK PLAN: UTF-8, owned; never NULL for these */
    bool press_enter, overwrite; /* TYPE */
    bool secret;                 /* TYPE: typed with keys only, never told of; not a part of the record */
    uint32_t ms;                 /* WAIT, DRAG duration */
    char element[ACTION_MAX_ELEMENT]; /* the model's description of the target */
};

enum repair { /* leniencies used while parsing, as bits */
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
};

struct step {             /* one turn of the model; zero-initialised is empty */
    char *note, *thought; /* owned, NULL when absent */
    struct action actions[STEP_MAX_ACTIONS];
    int nactions;
    unsigned repairs;
};
void step_free(struct step *s);
void action_free(struct action *a);

struct dialect;

/* Reads what the model wrote. w, h: size of the image it saw, for coordinates.
 * Returns FAULT_NONE and fills *out, or the fault with a message in *e and *out empty. */
enum action_fault action_parse(const char *text, size_t len, const struct dialect *d, int w, int h,
                               struct step *out, struct err *e);

/* One line for people: click "Save" at 312,240 | type "Paris" into "From" at 120,60 */
void action_describe(const struct action *a, struct buf *out);

/* The canonical form as a JSON object, for the trace. */
void action_to_json(const struct action *a, struct buf *out);
int action_from_json(const char *json, size_t len, struct action *out, struct err *e);

/* Characters that it types: those of its text or address, as they are written there, and of keys that make one each. */
int action_characters(const struct action *a);
/* Whether it touches the screen: all but waiting, looking, planning, asking and answering. */
bool action_touches(enum action_kind k);

const char *action_kind_name(enum action_kind k); /* "click" */
bool action_ends_run(enum action_kind k);         /* ANSWER, INFEASIBLE, ASK */

/* Key names to keysyms; 0 when unknown. cmd_is_ctrl: the holo3 dialect's habit. */
uint32_t action_keysym(const char *name, size_t len, bool cmd_is_ctrl);

/* In a chord a capital is only the way the key is written: "CTRL+A" has no shift in it. */
void action_plain_keys(struct action *a);

/* ---- execution (exec.c): the only part that knows the screen ------------------------------------ */

struct screen;
struct exec_result {
    int events;
    double ms;
};

/* Performs one action on the screen. (ox, oy, sx, sy): root = o + image * s.
 * Every XTest request is preceded by a look at the stop flag; on any failure everything held by this
 * action is released.  FAULT_STOPPED when asked to stop. */
struct exec_place {
    double ox, oy, sx, sy;
};
enum action_fault action_execute(struct screen *s, const struct action *a, const struct exec_place *p,
                                 struct exec_result *r, struct err *e);

/* Where a pixel of the image is on the root window; the screen clamps what lies outside of it. */
void action_root_point(const struct exec_place *p, int32_t x, int32_t y, int *root_x, int *root_y);

#endif
