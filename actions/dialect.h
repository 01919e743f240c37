/* dialect.h - how one family of models wants to be spoken to, as data (prompts/NAME.json).
 *
 * Prompt texts, tool table, coordinate space, conversation wrappers, image policy and sampling of a
 * model family.  Built-in dialects are part of the binary; a path to a JSON file works in their place.
 */
#ifndef HOLORUN_ACTIONS_DIALECT_H
#define HOLORUN_ACTIONS_DIALECT_H

#include "base/buf.h"
#include "base/err.h"
#include "model/grammar.h"
#include "model/tokenizer.h"

#include <stdbool.h>

enum dialect_syntax { /* which parser reads the output */
    SYNTAX_HOLO3, SYNTAX_HOLO1, SYNTAX_UITARS, SYNTAX_ANTHROPIC, SYNTAX_OPENAI, SYNTAX_PYAUTOGUI, SYNTAX_POCKET,
    SYNTAX_FUNCTION,
};
enum coord_space { COORD_NORM1000, COORD_NORM1, COORD_PIXEL, COORD_BIN64 };
enum window_policy { WINDOW_SAWTOOTH, WINDOW_STRICT };

struct dialect {
    char *name;
    enum dialect_syntax syntax;
    enum coord_space coords;
    char *system;             /* template with {slots}: date max_steps max_time_s os width height task schema tools */
    char *task_open, *task_close;               /* around the task, in the first user turn */
    char *observation_open, *observation_close; /* around the image */
    char *tool_output;        /* printf-like template with {tool} and {result}; "" for none when result is empty */
    char *tool_error;         /* template with {tool} and {message} */
    char *no_effect;          /* result text when the screen did not change; "" none */
    char *image_placeholder;  /* what stands where an old screenshot stood */
    bool image_inline;        /* images stay where they are (else the template puts them first) */
    int max_images;           /* 1..4 */
    enum window_policy window;
    bool think;
    float temperature, top_p;
    int max_tokens;
    char *ground;             /* localizer question with {target}; "" when the family has none */
    char *ask;                /* question about images with {question} */
    char *schema;             /* JSON schema text made from the tool table, "" when the syntax has none */
    int screen_w, screen_h;   /* the only screen size this model was made for, 0 when any */
    char *sha256;             /* hex, of the dialect file's bytes */
    void *tools;              /* private to dialect.c and the grammar builder */
};

/* name: a built-in ("holo3", "holo1", "holo1-abs", "uitars", "anthropic", "openai", "pyautogui", "pocket")
 * or a path ending in .json.  NULL on failure: unknown name, unknown key, wrong type, with the key named. */
struct dialect *dialect_load(const char *name, struct err *e);
struct dialect *dialect_parse(const char *json, size_t len, const char *name, struct err *e);
void dialect_free(struct dialect *d);
const char *const *dialect_names(void); /* NULL-terminated */

/* Fills {slots} of a template; slots is NULL-terminated pairs name, value. Unknown slots are refused. */
int dialect_fill(const char *tmpl, const char *const *slots, struct buf *out, struct err *e);

/* The grammar of one step in this dialect; answer_only: the forced last step.
 * ground: the localizer's output instead.  NULL with a message when the syntax has no grammar
 * (parsers of outside formats only). */
enum dialect_goal { GOAL_STEP, GOAL_ANSWER, GOAL_GROUND, GOAL_TEXT };
struct grammar *dialect_grammar(const struct dialect *d, enum dialect_goal goal, const struct tokenizer *t, struct err *e);

/* Reads the localizer's output; pixels of a w x h image. 0, or -1. */
int dialect_parse_point(const struct dialect *d, const char *text, size_t len, int w, int h, double *x, double *y, struct err *e);

/* v in the dialect's space -> pixel, and back to text form; FAULT-free: returns -1 when out of range. */
int dialect_to_pixel(const struct dialect *d, double v, int size, int *pixel);

#endif
