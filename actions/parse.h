/* parse.h - what the parsers share.  Private to actions/.
 *
 * A parser gets the text without reasoning and code fence, and fills step.actions.  Every deviation that it
 * accepts sets a bit of step.repairs, for the trace.
 */
#ifndef HOLORUN_ACTIONS_PARSE_H
#define HOLORUN_ACTIONS_PARSE_H

#include "actions/keys.h"
#include "actions/place.h"
#include "actions/tools.h"

#include <jansson.h>

struct parse {
    const struct dialect *d;
    int w, h;               /* of the image that the model saw */
    enum coord_space space; /* of the numbers; the dialect's unless the text shows another */
    struct step *out;
    struct err *e;
};

typedef enum action_fault parse_fn(struct parse *p, const char *text, size_t len);
parse_fn parse_holo, parse_uitars, parse_anthropic, parse_openai, parse_pyautogui, parse_function,
    parse_pocket, parse_xml, parse_qwen;

/* Sets the message; returns f. */
enum action_fault parse_fault(struct parse *p, enum action_fault f, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Adds to step.check what a person is to look at; text may be NULL. */
void parse_check(struct parse *p, const char *text);

/* Appends an action of this kind with defaults: no coordinates, one left click.  NULL: too many. */
struct action *parse_add(struct parse *p, enum action_kind kind);

/* Drops white space at both ends of text[0..len). */
void parse_trim(const char **text, size_t *len);

/* Copies text[0..len) if it is UTF-8 without control characters other than tab and newline. */
enum action_fault parse_text(struct parse *p, const char *text, size_t len, char **out);
/* The same as one line, truncated to the size of the field. */
enum action_fault parse_element(struct parse *p, const char *text, size_t len, char out[ACTION_MAX_ELEMENT]);

/* Parses JSON with json_in(); the caller releases *out, which is NULL after a fault. */
enum action_fault parse_json(struct parse *p, const char *text, size_t len, json_t **out);

/* A call "<function=NAME><parameter=KEY>...</function>" at *at, which moves behind it: its name and its
 * arguments, of the types of the tool, which the caller owns (parse_xml.c). */
enum action_fault parse_xml_call(struct parse *p, const char **at, const char *end, char **name,
                                 json_t **args);

/* ---- coordinates (coords.c) ------------------------------------------------------------------------ */

/* Converts both numbers of a point to pixels; messages name `what` ("x, y" or "x2, y2").  In norm1000,
 * fractions from 0 to 1 are parts of the extent; in pixels such fractions are refused.  Other fractions
 * are rounded half up. */
enum action_fault coords_to_pixels(struct parse *p, const char *what, struct dialect_numbers n, int32_t *x,
                                   int32_t *y);

/* The same for a place.  A box must be inside of the image, too. */
enum action_fault coords_place(struct parse *p, const char *what, const struct place *at, int32_t *x,
                               int32_t *y);

/* ---- tool calls (bind.c) --------------------------------------------------------------------------- */

/* Turns the arguments of a call, a JSON object, into an action: names and aliases from the dialect's tool
 * table, types and ranges from the registry.  ignore: a key that is not an argument, or NULL. */
enum action_fault bind_call(struct parse *p, const char *tool, json_t *args, const char *ignore);

struct binding {
    struct parse *p;
    const struct tool *tool;
    struct action *a;
    struct place at[2]; /* x, y and x2, y2, if given as one value */
    struct place_axes {
        struct place_axis {
            double least, most; /* equal for a single number */
            bool given, list, real;
        } x, y;
    } axes[2];      /* if given as two values */
    bool whole[2];  /* `at` is set */
    char direction; /* u d l r, 0 none */
    int amount;
    bool failure;                 /* status: the task was not done */
    struct key_sequence sequence; /* of chords, when there are several */
};

/* Reads one value into the action, or into the binding when its meaning depends on other values. */
enum action_fault bind_arg(struct binding *c, const struct tool_arg *arg, json_t *v);

/* ---- keys (keys.c) ---------------------------------------------------------------------------------- */

/* Names that the grammar offers; keys.c knows all of them.  NULL-terminated. */
extern const char *const keys_offered[], *const keys_modifiers[];

/* ---- JSON as models write it (json_in.c) ------------------------------------------------------------
 *
 * Accepted, and recorded as repairs: text after the first balanced value, one trailing comma, raw control
 * characters in strings, and, in families that write them, Python's single quotes and True, False,
 * None.  Refused: a truncated value (actions are not guessed), NaN and infinities, more than
 * JSON_IN_MAX_LEN bytes or JSON_IN_MAX_DEPTH levels.  Of duplicate keys the last wins. */
enum { JSON_IN_MAX_LEN = 64 << 10, JSON_IN_MAX_DEPTH = 8 };

/* The first value of text[0..len), an object or a list.  NULL with a message when it is not JSON.  *repairs
 * gets REPAIR_ bits; *used: length of the value. */
json_t *json_in(const char *text, size_t len, bool python, unsigned *repairs, size_t *used, struct err *e);

/* ---- pyautogui scripts (python_in.c) ---------------------------------------------------------------
 *
 * Calls with literal arguments, one per statement; anything else is refused.  Nothing is run. */

struct python_in {
    const char *at, *end;
    bool cut; /* refused because it is truncated */
    struct err *e;
};

struct python_call {
    char name[64]; /* dotted: "pyautogui.click" */
    bool called;   /* false: a name alone, such as DONE */
    int times;     /* 1, or n of "for _ in range(n):" */
    json_t *list;  /* positional arguments */
    json_t *keywords;
};

/* The next statement; imports, comments and empty lines are skipped.  1 read, 0 at the end, -1 refused.
 * Free it with python_call_free. */
int python_next(struct python_in *in, struct python_call *call);
void python_call_free(struct python_call *call);

#endif
