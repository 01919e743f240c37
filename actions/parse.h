/* parse.h - declarations shared by the parsers.  Private to actions/.
 *
 * A parser gets the text without reasoning and code fence, and fills step.actions.  Every accepted deviation
 * sets a bit of step.repairs, for the trace. */
#pragma once

#include "actions/calls.h"
#include "actions/json_in.h"
#include "actions/keys.h"
#include "actions/place.h"
#include "actions/tools.h"

struct parse {
    const struct dialect *d;
    int w, h;               /* size in pixels of the image that the model saw */
    enum coord_space space; /* coordinate space: the dialect's, unless the numbers in the text imply another
                             * one */
    struct step *out;
    struct err *e;
};

enum { PARSE_MAX_REPLY = 64 << 10 /* bytes */ };

typedef enum action_fault parse_fn(struct parse *p, const char *text, size_t len);
parse_fn parse_holo, parse_uitars, parse_anthropic, parse_openai, parse_pyautogui, parse_calls;

/* Reads a call, or a list of them, from JSON: {"name", "arguments"} and its variants (parse_calls.c). */
enum action_fault parse_call_object(struct parse *p, const json_t *object);

/* Sets the message; returns f. */
enum action_fault parse_fault(struct parse *p, enum action_fault f, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Adds a text to step.check, for the user to look at; text may be NULL. */
void parse_check(struct parse *p, const char *text);

/* Adds text[0..len), an action that is not executed, to step.dropped, as one line. */
void parse_dropped(struct parse *p, const char *text, size_t len);

/* Appends an action of this kind with defaults: no coordinates, one left click.  NULL: too many. */
struct action *parse_add(struct parse *p, enum action_kind kind);

/* Strips white space at both ends of text[0..len). */
void parse_trim(const char **text, size_t *len);

/* Returns the beginning of the code after "```lang" at s. */
const char *parse_fence_end(const char *s, const char *end);

/* Returns whether the function names its tool in the argument "action". */
bool parse_is_computer(const char *name);

/* Copies text[0..len) if it is UTF-8 without control characters other than tab and newline. */
enum action_fault parse_text(struct parse *p, const char *text, size_t len, char **out);
/* Copies the text as one line, truncated to the size of the field; otherwise as parse_text(). */
enum action_fault parse_element(struct parse *p, const char *text, size_t len, char out[ACTION_MAX_ELEMENT]);

/* Parses JSON with json_in(); the caller releases *out, which is NULL after a fault. */
enum action_fault parse_json(struct parse *p, const char *text, size_t len, json_t **out);
/* Reports text next to the calls of a reply to the model, if it looks like a call that could not be read. */
void parse_beside(struct parse *p, const char *text, size_t len);
/* Records text after the calls of a reply, and reports it as parse_beside() does. */
void parse_rest(struct parse *p, const char *text, size_t len);

/* ---- coordinates (coords.c) ------------------------------------------------------------------------ */

/* Converts both numbers of a point to pixels; messages name `what` ("x, y" or "x2, y2").  In norm1000,
 * fractions from 0 to 1 are parts of the extent; in pixels such fractions are refused.  Other fractions
 * are rounded half up. */
enum action_fault coords_to_pixels(struct parse *p, const char *what, struct dialect_numbers n, int32_t *x,
                                   int32_t *y);

/* Converts a position as coords_to_pixels() does. A box must be inside the image, too. */
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
    bool failure;                 /* the argument status reports that the task was not done */
    struct key_sequence sequence; /* if there are several chords */
};

/* Reads one value into the action, or into the binding when its meaning depends on other values. */
enum action_fault bind_arg(struct binding *c, const struct tool_arg *arg, json_t *v);

/* ---- keys (keys.c) ---------------------------------------------------------------------------------- */

/* Names that the grammar offers; keys.c knows all of them.  NULL-terminated. */
extern const char *const keys_offered[], *const keys_modifiers[];
