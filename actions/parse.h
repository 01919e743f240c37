/* parse.h - what the parsers share. Private to actions/.
 *
 * A parser gets the text after its reasoning and code fence were taken off, and fills step.actions.
 * Every leniency sets a bit of step.repairs, so that the trace shows what was forgiven.
 */
#ifndef HOLORUN_ACTIONS_PARSE_H
#define HOLORUN_ACTIONS_PARSE_H

#include "actions/json_in.h"
#include "actions/tools.h"

struct parse {
    const struct dialect *d;
    int w, h;               /* the image the model saw */
    enum coord_space space; /* of the numbers being read; the dialect's unless the text shows another */
    struct step *out;
    struct err *e;
};

typedef enum action_fault parse_fn(struct parse *p, const char *text, size_t len);
parse_fn parse_holo, parse_uitars, parse_anthropic, parse_openai, parse_pyautogui, parse_function,
    parse_pocket;

/* {"name", "arguments"}, or a list of such. */
enum action_fault parse_function_object(struct parse *p, json_t *root);

/* Sets the message; returns f. */
enum action_fault parse_fault(struct parse *p, enum action_fault f, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* A fresh action of this kind at the end of the step: absent places, one left click. NULL: too many. */
struct action *parse_add(struct parse *p, enum action_kind kind);

/* Copies text[0..len) if it may be typed: UTF-8, no control character but tab and newline. */
enum action_fault parse_text(struct parse *p, const char *text, size_t len, char **out);
/* The same for a description, cut at the size of the field. */
enum action_fault parse_element(struct parse *p, const char *text, size_t len, char out[ACTION_MAX_ELEMENT]);

/* text as lenient JSON; text after it is recorded. *out is NULL after a fault; the caller drops it. */
enum action_fault parse_json(struct parse *p, const char *text, size_t len, json_t **out);

/* ---- coordinates (coords.c) ------------------------------------------------------------------------ */

/* One number of a space to a pixel of an extent; -1 when it is out of range. Up to 1 % beyond the edge is
 * taken as the edge, and says so in *clamped. */
int coords_map(enum coord_space space, double v, int size, int *pixel, bool *clamped);

/* Two numbers as the model wrote them; fx, fy: with a decimal point. */
struct place {
    double x, y;
    bool fx, fy;
};

/* Both numbers of a place to pixels; messages name `what` ("x, y" or "x2, y2"). Where whole numbers are
 * expected, fractions between 0 and 1 are parts of the whole, other fractions are rounded half up. */
enum action_fault coords_place(struct parse *p, const char *what, struct place n, int32_t *x, int32_t *y);

/* ---- a tool call in JSON (bind.c) ------------------------------------------------------------------ */

/* Arguments of one call, as a JSON object, become an action: names and aliases through the dialect's
 * tool table, types and ranges through the registry. `ignore`: a key that is not an argument, or NULL. */
enum action_fault bind_call(struct parse *p, const char *tool, json_t *args, const char *ignore);

/* ---- keys (keys.c) ---------------------------------------------------------------------------------- */

/* Names that the grammar offers; every one is known to action_keysym. NULL-terminated. */
extern const char *const keys_offered[], *const keys_modifiers[];

/* "ctrl+shift+t", "ctrl c", "plus": the keysyms of a chord. -1 with the part that is unknown in *bad, -2 when
 * there are more than max. */
int keys_chord(const char *text, size_t len, bool cmd_is_ctrl, uint32_t *keys, int max, char bad[64]);

#endif
