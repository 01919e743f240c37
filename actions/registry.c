/* registry.c - the parameters, and the data of the table of actions (kinds.h).
 *
 * A parameter has the same meaning for every kind, so parameters are listed once; a row of kinds.h lists its
 * parameters, marks the required ones, and gives the defaults of the others. */
#include "actions/registry.h"

#include <X11/keysym.h>
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

enum { /* classes that are used together */
       MOVES = ACTION_TOUCHES | ACTION_LOOKS | ACTION_POINTER,
       PRESSES = ACTION_TOUCHES | ACTION_POINTER | ACTION_BUTTON,
       CHORD = ACTION_TOUCHES | ACTION_FOCUS | ACTION_KEYBOARD | ACTION_CHANGES,
       KEYS = ACTION_TOUCHES | ACTION_FOCUS | ACTION_KEYBOARD | ACTION_CHARACTERS | ACTION_NAMED_KEYS,
};

/* clang-format off */
#define NEED(p) {P_##p, true, NULL}
#define MAY(p) {P_##p, false, NULL}
#define OR(p, json) {P_##p, false, json}
#define PARAMS(...)                                                                                          \
    .nuses = sizeof((struct param_use[]){__VA_ARGS__}) / sizeof(struct param_use), .uses = {__VA_ARGS__}
#define ACTION(kind, execute, describe, tell, python, ...) [kind] = {__VA_ARGS__},
/* clang-format on */

static const struct action_entry entries[ACT_COUNT] = {
#include "actions/kinds.h"
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
    return action_is(k, ACTION_ENDS_RUN);
}

bool action_is(enum action_kind k, unsigned classes)
{
    return (registry_entry(k)->classes & classes) == classes;
}

bool action_takes(enum action_kind k, enum param_id id)
{
    return registry_param_use(k, id) != NULL;
}

int action_shortcut(enum action_kind k, uint32_t keys[2])
{
    memcpy(keys, registry_entry(k)->shortcut, 2 * sizeof *keys);
    return (keys[0] != 0) + (keys[1] != 0);
}
