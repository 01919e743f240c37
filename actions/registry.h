/* registry.h - the data of the table of actions (kinds.h): name, parameters, help, classes.
 *
 * A dialect maps these entries to the tool and argument names of its family (tools.h).  The JSON schema, the
 * tool list in the prompt, the grammar and the argument parser are generated from both. */
#pragma once

#include "actions/action.h"

enum param_type {
    PARAM_STRING, /* UTF-8 */
    PARAM_INT,    /* within min..max */
    PARAM_NUMBER, /* within min..max */
    PARAM_BOOL,
    PARAM_ENUM,   /* one of the words in `values` */
    PARAM_COORD,  /* one number in the dialect's coordinate space */
    PARAM_POINT,  /* [x, y] in that space */
    PARAM_PATH,   /* [{"x": x, "y": y}, ...] in that space */
    PARAM_REGION, /* [x0, y0, x1, y1] in that space */
    PARAM_KEY,    /* a key or chord, such as "ctrl+s" */
    PARAM_KEYS,   /* a list of min..max keys */
    PARAM_GOALS,  /* the plan: a list of {title, status} */
    PARAM_ANY,    /* read and ignored, never offered */
};

enum param_id {
    P_ELEMENT,
    P_X,
    P_Y,
    P_X2,
    P_Y2,
    P_POINT,
    P_POINT2,
    P_PATH,
    P_REGION,
    P_BUTTON,
    P_COUNT,
    P_DIRECTION,
    P_AMOUNT,
    P_DISTANCE,
    P_SCROLL_X,
    P_SCROLL_Y,
    P_SCROLL_UP,
    P_TEXT,
    P_PRESS_ENTER,
    P_OVERWRITE,
    P_AT_END,
    P_KEY,
    P_KEYS,
    P_REPEAT,
    P_HOLD,
    P_TAP,
    P_SECONDS,
    P_GOALS,
    P_STATUS,
    P_IGNORED,
    P_COUNT_OF_PARAMS
};

struct param {
    const char *name;
    enum param_type type;
    /* limits of numbers and list lengths; STRING: limits of the scalars that the grammar allows */
    int min, max;
    const char *values; /* ENUM: such as "left|middle|right" */
    const char *help;   /* one sentence for the schema */
};

struct param_use { /* use of a parameter in an entry */
    enum param_id id;
    bool required;
    const char *fallback; /* JSON text of the default; NULL: none */
};

enum { ENTRY_MAX_USES = 11 };

struct action_entry { /* the data of a row of kinds.h */
    const char *name; /* such as "click" */
    const char *help; /* one sentence for the schema */
    /* words of action_tell() before and after the action, {"drag", "dragged"}; NULL: the name */
    const char *words[2];
    unsigned classes;     /* enum action_class */
    uint32_t shortcut[2]; /* action_shortcut(); 0: none */
    const char *result;   /* tool output of the performed action; NULL: "" */
    int nuses;
    struct param_use uses[ENTRY_MAX_USES];
};

/* Appends the X names of keys (describe.c). */
void action_put_keys(struct buf *out, const uint32_t *keys, int n, const char *between);
/* Returns the name of a mouse button, such as "left". */
const char *action_button_name(int number);

const struct action_entry *registry_entry(enum action_kind k);
enum action_kind registry_kind(const char *name); /* ACT_NONE if unknown */
const struct param *registry_param(enum param_id id);
int registry_param_id(const char *name); /* -1 if unknown */
/* Returns the use of a parameter; NULL: the kind does not have it. */
const struct param_use *registry_param_use(enum action_kind k, enum param_id id);
bool action_takes(enum action_kind k, enum param_id id); /* returns whether the kind has the parameter */
