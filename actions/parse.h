/* parse.h - what the parsers share.  Private to actions/.
 *
 * A parser gets the text without reasoning and code fence, and fills step.actions.  Every deviation that it
 * accepts sets a bit of step.repairs, for the trace.
 */
#ifndef HOLORUN_ACTIONS_PARSE_H
#define HOLORUN_ACTIONS_PARSE_H

#include "actions/json_in.h"
#include "actions/tools.h"

struct parse {
    const struct dialect *d;
    int w, h;               /* of the image that the model saw */
    enum coord_space space; /* of the numbers; the dialect's unless the text shows another */
    struct step *out;
    struct err *e;
};

typedef enum action_fault parse_fn(struct parse *p, const char *text, size_t len);
parse_fn parse_holo, parse_uitars, parse_anthropic, parse_openai, parse_pyautogui, parse_function,
    parse_pocket;

/* {"name", "arguments"}, or a list of them. */
enum action_fault parse_function_object(struct parse *p, json_t *root);

/* Sets the message; returns f. */
enum action_fault parse_fault(struct parse *p, enum action_fault f, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Appends an action of this kind with defaults: no coordinates, one left click.  NULL: too many. */
struct action *parse_add(struct parse *p, enum action_kind kind);

/* Copies text[0..len) if it is UTF-8 without control characters other than tab and newline. */
enum action_fault parse_text(struct parse *p, const char *text, size_t len, char **out);
/* The same, truncated to the size of the field. */
enum action_fault parse_element(struct parse *p, const char *text, size_t len, char out[ACTION_MAX_ELEMENT]);

/* Parses JSON with json_in(); the caller releases *out, which is NULL after a fault. */
enum action_fault parse_json(struct parse *p, const char *text, size_t len, json_t **out);

/* ---- coordinates (coords.c) ------------------------------------------------------------------------ */

/* Both numbers of a point to pixels; messages name `what` ("x, y" or "x2, y2").  In spaces of whole
 * numbers, fractions from 0 to 1 are parts of the extent, other fractions are rounded half up. */
enum action_fault coords_to_pixels(struct parse *p, const char *what, struct dialect_numbers n, int32_t *x,
                                   int32_t *y);

/* ---- tool calls (bind.c) --------------------------------------------------------------------------- */

/* Turns the arguments of a call, a JSON object, into an action: names and aliases from the dialect's tool
 * table, types and ranges from the registry.  ignore: a key that is not an argument, or NULL. */
enum action_fault bind_call(struct parse *p, const char *tool, json_t *args, const char *ignore);

/* ---- keys (keys.c) ---------------------------------------------------------------------------------- */

/* Names that the grammar offers; keys.c knows all of them.  NULL-terminated. */
extern const char *const keys_offered[], *const keys_modifiers[];

#endif
