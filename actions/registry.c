/* registry.c - the table of actions.
 *
 * A parameter has the same meaning in every entry, so parameters are listed once; an entry lists its
 * parameters, marks the required ones, and gives the defaults of the others. */
#include "actions/registry.h"

#include <string.h>

static const struct param params[P_COUNT_OF_PARAMS] = {
    [P_ELEMENT] = {"element", PARAM_STRING, 1, 120, NULL,
                   "What to act on: its visible text, how it looks, where it is and what stands beside it"},
    [P_X] = {"x", PARAM_COORD, 0, 0, NULL, "Horizontal position of the target, from the left edge"},
    [P_Y] = {"y", PARAM_COORD, 0, 0, NULL, "Vertical position of the target, from the top edge"},
    [P_X2] = {"x2", PARAM_COORD, 0, 0, NULL, "Horizontal position where the drag ends"},
    [P_Y2] = {"y2", PARAM_COORD, 0, 0, NULL, "Vertical position where the drag ends"},
    [P_POINT] = {"point", PARAM_POINT, 0, 0, NULL, "Position of the target as [x, y]"},
    [P_POINT2] = {"point2", PARAM_POINT, 0, 0, NULL, "Position where the drag ends as [x, y]"},
    [P_PATH] = {"path", PARAM_PATH, 2, ACTION_MAX_PATH, NULL, "Positions the pointer passes while dragging"},
    [P_REGION] = {"region", PARAM_REGION, 0, 0, NULL, "Part of the screen as [left, top, right, bottom]"},
    [P_BUTTON] = {"button", PARAM_ENUM, 0, 0, "left|right|middle|back|forward", "Mouse button"},
    [P_COUNT] = {"count", PARAM_INT, 1, 3, NULL, "How many clicks in a row"},
    [P_DIRECTION] = {"direction", PARAM_ENUM, 0, 0, "up|down|left|right", "Where to scroll to"},
    [P_AMOUNT] = {"amount", PARAM_INT, 1, 100, NULL, "How far to scroll, in clicks of the wheel"},
    [P_DISTANCE] = {"distance", PARAM_INT, 1, 10000, NULL, "How far to scroll, in pixels"},
    [P_SCROLL_X] = {"scroll_x", PARAM_INT, -10000, 10000, NULL, "Pixels to scroll to the right"},
    [P_SCROLL_Y] = {"scroll_y", PARAM_INT, -10000, 10000, NULL, "Pixels to scroll down"},
    [P_SCROLL_UP] = {"scroll_up", PARAM_INT, -10000, 10000, NULL, "Pixels to scroll up"},
    [P_TEXT] = {"text", PARAM_STRING, 0, 2000, NULL, "Text"},
    [P_PRESS_ENTER] = {"press_enter", PARAM_BOOL, 0, 0, NULL, "Press Enter after the text"},
    [P_OVERWRITE] = {"overwrite", PARAM_BOOL, 0, 0, NULL,
                     "Replace what the field holds instead of adding to it"},
    [P_AT_END] = {"at_end", PARAM_BOOL, 0, 0, NULL, "Go to the end of the line first"},
    [P_KEY] = {"key", PARAM_KEY, 0, 0, NULL, "Key, or keys joined by +"},
    [P_KEYS] = {"keys", PARAM_KEYS, 1, 5, NULL, "Keys pressed together, in this order"},
    [P_REPEAT] = {"repeat", PARAM_INT, 1, 20, NULL, "How many times to press them"},
    [P_HOLD] = {"hold", PARAM_KEYS, 1, ACTION_MAX_HOLD, NULL, "Keys held down meanwhile"},
    [P_TAP] = {"tap", PARAM_KEYS, 1, 5, NULL, "Keys tapped one after the other while the others are held"},
    [P_SECONDS] = {"seconds", PARAM_NUMBER, 0, 100, NULL, "How long, in seconds"},
    [P_GOALS] = {"goals", PARAM_GOALS, 1, 20, NULL,
                 "The whole plan, every time; at most one goal is running at once"},
    [P_IGNORED] = {"ignored", PARAM_ANY, 0, 0, NULL, ""},
    [P_STATUS] = {"status", PARAM_ENUM, 0, 0, "success|failure", "Whether the task was done"},
};

/* clang-format off */
#define NEED(p) {P_##p, true, NULL}
#define MAY(p) {P_##p, false, NULL}
#define OR(p, json) {P_##p, false, json}
#define ENTRY(kind, name, flags, help, ...)                                                                  \
    [kind] = {name, help, flags, sizeof((struct param_use[]){__VA_ARGS__}) / sizeof(struct param_use),       \
              {__VA_ARGS__}}
#define BARE(kind, name, flags, help) [kind] = {name, help, flags, 0, {{P_ELEMENT, false, NULL}}}
/* clang-format on */

enum { /* classes that are used together */
       MOVES = ACTION_TOUCHES | ACTION_LOOKS,
       SCROLLS = MOVES | ACTION_CHANGES,
       PRESSES = ACTION_TOUCHES | ACTION_BUTTON,
       CLICKS = PRESSES | ACTION_CHANGES,
       CHORD = ACTION_TOUCHES | ACTION_KEYBOARD | ACTION_CHANGES,
       WRITES = CHORD | ACTION_CHARACTERS,
       KEYS = ACTION_TOUCHES | ACTION_KEYBOARD | ACTION_CHARACTERS | ACTION_NAMED_KEYS,
};

static const struct action_entry entries[ACT_COUNT] = {
    BARE(ACT_NONE, "none", 0, "Nothing"),
    ENTRY(ACT_MOVE, "move", ENTRY_NEEDS_POINT | MOVES, "Move the pointer to an element without clicking",
          NEED(ELEMENT), NEED(X), NEED(Y), MAY(POINT)),
    ENTRY(ACT_CLICK, "click", CLICKS, "Click an element", NEED(ELEMENT), NEED(X), NEED(Y), MAY(POINT),
          OR(BUTTON, "\"left\""), OR(COUNT, "1"), MAY(HOLD)),
    ENTRY(ACT_MDOWN, "mouse_down", PRESSES, "Press a mouse button where the pointer is and keep it down",
          OR(BUTTON, "\"left\""), MAY(X), MAY(Y), MAY(POINT), MAY(ELEMENT)),
    ENTRY(ACT_MUP, "mouse_up", PRESSES, "Release a mouse button where the pointer is", OR(BUTTON, "\"left\""),
          MAY(X), MAY(Y), MAY(POINT), MAY(ELEMENT)),
    ENTRY(ACT_DRAG, "drag", CLICKS, "Press the left button at one place, move to another, release",
          NEED(ELEMENT), NEED(X), NEED(Y), NEED(X2), NEED(Y2), MAY(POINT), MAY(POINT2), MAY(PATH), MAY(HOLD),
          OR(BUTTON, "\"left\"")),
    ENTRY(ACT_SCROLL, "scroll", SCROLLS, "Turn the mouse wheel over an element", NEED(ELEMENT), NEED(X),
          NEED(Y), MAY(POINT), NEED(DIRECTION), OR(AMOUNT, "5"), MAY(DISTANCE), MAY(SCROLL_X), MAY(SCROLL_Y),
          MAY(SCROLL_UP), MAY(HOLD)),
    ENTRY(ACT_TYPE, "type", WRITES, "Type text where the keyboard focus is", NEED(TEXT),
          OR(PRESS_ENTER, "false"), OR(OVERWRITE, "false"), MAY(AT_END), MAY(ELEMENT), MAY(X), MAY(Y),
          MAY(POINT)),
    ENTRY(ACT_KEY, "key", KEYS | ACTION_CHANGES, "Press keys together and release them", NEED(KEYS), MAY(KEY),
          OR(REPEAT, "1")),
    ENTRY(ACT_KEYDOWN, "key_down", KEYS, "Press a key and keep it down", NEED(KEY)),
    ENTRY(ACT_KEYUP, "key_up", ACTION_TOUCHES, "Release a key that is down", NEED(KEY)),
    ENTRY(ACT_HOLDTAP, "hold_and_tap", KEYS | ACTION_CHANGES, "Hold keys down, tap others, release",
          NEED(HOLD), NEED(TAP), MAY(SECONDS)),
    ENTRY(ACT_WAIT, "wait", ACTION_LOOKS, "Wait, for example while something loads", OR(SECONDS, "2")),
    BARE(ACT_OBSERVE, "observe", ACTION_LOOKS, "Look at the screen again"),
    ENTRY(ACT_ZOOM, "zoom", ACTION_LOOKS, "Look at a part of the screen", NEED(REGION)),
    ENTRY(ACT_PLAN, "plan", ACTION_LOOKS, "Write down the plan, or update it", NEED(GOALS)),
    ENTRY(ACT_GOTO, "goto", WRITES, "Open an address in the browser", NEED(TEXT)),
    BARE(ACT_BACK, "back", CHORD, "Go back one page in the browser"),
    BARE(ACT_FORWARD, "forward", CHORD, "Go forward one page in the browser"),
    BARE(ACT_REFRESH, "refresh", CHORD, "Load the page again"),
    BARE(ACT_RESTART, "restart", ACTION_TOUCHES, "Start over from where the task began"),
    ENTRY(ACT_ASK, "ask", ENTRY_ENDS_RUN, "End the task because a person has to help", MAY(TEXT)),
    ENTRY(ACT_ANSWER, "answer", ENTRY_ENDS_RUN | ACTION_LOOKS, "End the task and say what was done or found",
          NEED(TEXT), MAY(STATUS)),
    ENTRY(ACT_INFEASIBLE, "infeasible", ENTRY_ENDS_RUN | ACTION_LOOKS,
          "End the task because it cannot be done", MAY(TEXT)),
};

const struct action_entry *registry_entry(enum action_kind k)
{
    return &entries[k > ACT_NONE && k < ACT_COUNT ? k : ACT_NONE];
}

enum action_kind registry_kind(const char *name)
{
    for (int k = ACT_NONE + 1; k < ACT_COUNT; k++)
        if (!strcmp(entries[k].name, name))
            return (enum action_kind)k;
    return ACT_NONE;
}

const struct param *registry_param(enum param_id id)
{
    return &params[id];
}

int registry_param_id(const char *name)
{
    for (int i = 0; i < P_COUNT_OF_PARAMS; i++)
        if (!strcmp(params[i].name, name))
            return i;
    return -1;
}

const struct param_use *registry_param_use(enum action_kind k, enum param_id id)
{
    static const struct param_use ignored = {P_IGNORED, false, NULL};
    if (id == P_IGNORED)
        return &ignored;
    const struct action_entry *entry = registry_entry(k);
    for (int i = 0; i < entry->nuses; i++)
        if (entry->uses[i].id == id)
            return &entry->uses[i];
    return NULL;
}

const char *action_kind_name(enum action_kind k)
{
    return registry_entry(k)->name;
}

bool action_ends_run(enum action_kind k)
{
    return registry_entry(k)->flags & ENTRY_ENDS_RUN;
}

bool action_is(enum action_kind k, unsigned classes)
{
    return (registry_entry(k)->flags & classes) == classes;
}
