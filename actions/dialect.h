/* dialect.h - how one family of models wants to be spoken to, as data (prompts/NAME.json).
 *
 * Prompt texts, tool table, coordinate space, conversation wrappers, image policy and sampling of a
 * model family.  Built-in dialects are part of the binary; a path to a JSON file works in their place.
 *
 * A dialect file is one JSON object whose keys are the members of struct dialect below; "tools" is
 * described in tools.c, or the name of a built-in dialect whose table is used.  "system_file": "NAME.txt" names a prompt text beside the file, in place of
 * "system".  "screen": [w, h].  "cmd_is_ctrl", "run_all": see tools.h.  Unknown keys are refused.
 */
#ifndef HOLORUN_ACTIONS_DIALECT_H
#define HOLORUN_ACTIONS_DIALECT_H

#include "base/buf.h"
#include "base/err.h"
#include "grammar/grammar.h"
#include "text/tokenizer.h"

#include <stdbool.h>

enum dialect_syntax { /* which parser reads the output */
                      SYNTAX_HOLO3,
                      SYNTAX_HOLO1,
                      SYNTAX_UITARS,
                      SYNTAX_ANTHROPIC,
                      SYNTAX_OPENAI,
                      SYNTAX_PYAUTOGUI,
                      SYNTAX_POCKET,
                      SYNTAX_FUNCTION,
};
enum coord_space { COORD_NORM1000, COORD_NORM1, COORD_PIXEL, COORD_BIN64 };
enum window_policy { WINDOW_SAWTOOTH, WINDOW_STRICT };

struct dialect {
    char *name;
    enum dialect_syntax syntax;
    enum coord_space coords;
    char *system; /* template with {slots}: date max_steps max_time_s os width height task schema tools */
    char *task_open, *task_close;               /* around the task, in the first user turn */
    char *observation_open, *observation_close; /* around the image */
    char *tool_output;       /* template with {tool} and {result}; left out when the result is empty, but: */
    bool tool_output_always; /* write tool_output also around an empty result */
    char *tool_error;        /* template with {tool} and {message} */
    char *no_effect;         /* result text when the screen did not change; "" none */
    char *image_placeholder; /* what stands where an old screenshot stood */
    bool image_inline;       /* images stay where they are (else the template puts them first) */
    int max_images;          /* 1..4 */
    enum window_policy window;
    bool think;
    float temperature, top_p;
    int max_tokens;
    char *ground;            /* localizer question with {target}; "" when the family has none */
    char *ask;               /* question about images with {question} */
    char *judge, *validator; /* system texts of who is asked for a verdict (agent/llm_judge.h); "": ours */
    char *schema;            /* JSON schema text made from the tool table, "" when the syntax has none */
    char *tool_list;         /* one line for each tool, from the same table: the {tools} slot */
    int screen_w, screen_h;  /* the only screen size this model was made for, 0 when any */
    char *sha256;            /* hex, of the dialect file's bytes */
    void *tools;             /* private to dialect.c and the grammar builder */
};

/* name: a built-in ("holo3", "holo1", "holo1-abs", "function", "uitars", "anthropic", "openai",
 * "pyautogui", "pocket") or a path ending in .json.  NULL on failure: unknown name, unknown key, wrong
 * type, with the key named. */
struct dialect *dialect_load(const char *name, struct err *e);
struct dialect *dialect_parse(const char *json, size_t len, const char *name, struct err *e);
void dialect_free(struct dialect *d);
const char *const *dialect_names(void); /* NULL-terminated */

/* The dialect a model directory asks for: holorun.json there may hold {"dialect": "NAME"}; a NAME ending in
 * .json is a file in that directory.  "holo3" without such a file.  The caller frees the name, which
 * dialect_load takes. */
char *dialect_for_model(const char *model_dir, struct err *e);

/* A built-in dialect as a file of its own, complete, whose coordinates are in another space: what a model asks for
 * that was taught one thing and says another.  The caller frees the text; NULL for a dialect that is a file. */
char *dialect_in_space(const char *name, enum coord_space space, struct err *e);

/* Fills {slots} of a template; slots is NULL-terminated pairs name, value.  Unknown slots are refused;
 * a brace that does not open a {lower_case_name} stands for itself. */
int dialect_fill(const char *tmpl, const char *const *slots, struct buf *out, struct err *e);

/* The grammar of a reply: one step, the forced last step (the answer tool only), the localizer's output, a verdict
 * (agent/llm_judge.h; of the pocket dialect free text), or free text.  NULL with a message when the tokenizer lacks what it needs.
 *
 * The language is exactly the canonical form of what action_parse reads: one step, keys in the order of
 * the table, ", " and ": " between them, no other white space, numbers inside the coordinate space, one
 * spelling for each text.  What was generated can therefore stay in the history as it is.
 *
 * The reply ends with the end-of-turn token <SPECIAL_12>, which is part of the language: after a newline
 * in the pocket dialect, which was trained so; with or without it in the others.
 *
 * With d->think a step begins inside an open think block: free text, "</think>", then the step.
 *
 * w, h: size of the image the model sees, which bounds coordinates in pixels (0: dialect's screen, or
 * any; dialect_grammar passes 0). */
enum dialect_goal { GOAL_STEP, GOAL_ANSWER, GOAL_GROUND, GOAL_VERDICT, GOAL_TEXT };
struct grammar *dialect_grammar(const struct dialect *d, enum dialect_goal goal, const struct tokenizer *t,
                                struct err *e);
struct grammar *dialect_grammar_for(const struct dialect *d, enum dialect_goal goal, int w, int h,
                                    const struct tokenizer *t, struct err *e);

/* Reads the localizer's output; pixels of a w x h image. 0, or -1. */
int dialect_parse_point(const struct dialect *d, const char *text, size_t len, int w, int h, double *x,
                        double *y, struct err *e);

/* The same in two halves, for measuring.  First the model's own numbers, whatever their range; then where they
 * are in an image when they are read in some space, exactly (no rounding to pixels).  -1 when out of range;
 * NULL as an error is fine. */
struct dialect_numbers {
    double x, y;
    bool fx, fy; /* written with a decimal point */
};
int dialect_parse_numbers(const struct dialect *d, const char *text, size_t len, struct dialect_numbers *out,
                          struct err *e);
int dialect_exact_place(enum coord_space space, const struct dialect_numbers *n, int w, int h, double *x,
                        double *y, struct err *e);
const char *dialect_space_name(enum coord_space space); /* "norm1000" */

/* v in the dialect's space -> pixel, and back to text form; FAULT-free: returns -1 when out of range. */
int dialect_to_pixel(const struct dialect *d, double v, int size, int *pixel);

#endif
