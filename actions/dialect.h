/* dialect.h - the prompt and reply format of a model family, as data (prompts/NAME.json).
 *
 * Prompt texts, tool table, coordinate space, conversation wrappers, image policy and sampling.  Built-in
 * dialects are part of the binary; the path of a JSON file can be given instead.
 *
 * A dialect file is one JSON object with the members of struct dialect below as keys.  "tools": see tools.c,
 * or the name of a built-in dialect whose table is used.  "system_file": "NAME.txt" names a text in the same
 * directory, instead of "system".  "screen": [w, h].  Unknown keys are errors. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "grammar/grammar.h"
#include "text/tokenizer.h"

#include <stdbool.h>

struct syntax; /* syntax.h */
struct tools;

enum coord_space { /* coords.c */
                   COORD_NORM1000,
                   COORD_NORM1,
                   COORD_PIXEL,
                   COORD_NATIVE,
                   COORD_PX28,
                   COORD_FIT,
};
enum window_policy { WINDOW_SAWTOOTH, WINDOW_STRICT };

struct dialect {
    char *name;
    const struct syntax *syntax; /* selects parser and grammar */
    enum coord_space coords;
    char *system; /* template with {slots}: date max_steps max_time_s os width height task schema tools */
    char *task_open, *task_close;               /* text before and after the task, in the first user turn */
    char *observation_open, *observation_close; /* text before and after the image */
    char *tool_output;       /* template with {tool} and {result}; omitted if the result is empty, unless */
    bool tool_output_always; /* is set */
    char *tool_error;        /* template with {tool} and {message} */
    char *no_effect;         /* result text if the screen did not change; "": none */
    char *image_placeholder; /* replaces old screenshots */
    /* images keep their position in the message; otherwise the template puts them first */
    bool image_inline;
    int max_images; /* 1..4 */
    enum window_policy window;
    bool think;
    float temperature, top_p;
    int max_tokens;
    char *ground;                  /* localizer question with {target}; "": the family has none */
    char *ask;                     /* question about images, with {question} */
    char *judge, *validator;       /* system texts for verdicts (judge/llm_judge.h); "": the built-in ones */
    bool yes_no;                   /* the model can only answer questions about one image, with yes or no */
    char *schema;                  /* JSON schema generated from the tool table; "": the syntax has none */
    char *tool_list;               /* one line per tool, from the same table: the {tools} slot */
    char *view;                    /* default part of the display that the model sees: "all" or "active" */
    int screen_w, screen_h;        /* the only screen size that this model supports; 0: any */
    int least_pixels, most_pixels; /* limits of the image that PX28 refers to; 0: as published */
    char *sha256;                  /* hexadecimal hash of the dialect file's bytes */
    bool cmd_is_ctrl;              /* "cmd" is the Control key */
    bool native_tools;   /* an endpoint gets the tool table next to the messages, not within the prompt */
    bool run_all;        /* all calls of one turn are executed, not only the first */
    bool verbatim;       /* replies are written by a user: texts may contain markup of calls */
    bool refs;           /* set by the run: the ref of an element ("e12") may stand for a place */
    struct tools *tools; /* tools.h */
};

/* Loads a dialect.  name: a built-in dialect (dialect_names()) or a path ending in .json.  Returns NULL with
 * e for an unknown name, an unknown key or a wrong type. */
struct dialect *dialect_load(const char *name, struct err *e);
struct dialect *dialect_parse(const char *json, size_t len, const char *name, struct err *e);
void dialect_free(struct dialect *d);
const char *const *dialect_names(void); /* NULL-terminated */

/* Returns a description of the models that a built-in dialect suits, for the help; NULL: not a built-in
 * dialect. */
const char *dialect_suits(const char *name);
/* Returns the built-in dialect for a model by its name on a server ("qwen3-vl:8b"); NULL: unknown name. */
const char *dialect_for_name(const char *model);

/* Returns the dialect of a model directory.  Its holorun.json may contain {"dialect": "NAME"}; a NAME ending
 * in .json is a file in that directory.  Without holorun.json the dialect follows from the architecture in
 * config.json and the model's name: "holo3" for most; for Qwen2.5-VL "uitars15", "fara", "holo15" or
 * "qwen25", for Qwen3-VL "holo1" (Holo2) or "qwen".  The caller frees the name, which is an argument of
 * dialect_load().  NULL with e. */
char *dialect_for_model(const char *model_dir, struct err *e);

/* Returns the text of a dialect file: a built-in dialect with another coordinate space, for models that
 * answer in another space than the one in which they were trained.  The caller frees it; NULL with e if name
 * is not built in. */
char *dialect_in_space(const char *name, enum coord_space space, struct err *e);

/* Returns whether replies describe the elements that they click, so that rules by element can use it. */
bool dialect_describes(const struct dialect *d);

/* Fills the {slots} of a template; slots: NULL-terminated pairs of name and value.  Returns -1 with e for an
 * unknown slot; a brace that does not open a {lower_case_name} is copied. */
int dialect_fill(const char *tmpl, const char *const *slots, struct buf *out, struct err *e);

/* Returns the beginning of a reply that clicks an element of this name or types into it, for a syntax that
 * names the element first (pocket-wide); otherwise NULL.  kind: enum action_kind.  The caller frees it. */
char *dialect_step_begin(const struct dialect *d, int kind, const char *element);

/* Returns the grammar of a reply: one step, the forced last step (the answer tool only), the localizer's
 * output, a verdict (judge/llm_judge.h; "yes" or "no" if yes_no is set), or free text.  NULL with e if the
 * tokenizer lacks a token.
 *
 * The language is exactly the canonical form of the input of action_parse(): one step, keys in the order of
 * the table, ", " and ": " between them, no other white space, numbers inside the coordinate space, one
 * spelling per text.  A generated reply can therefore stay in the history verbatim.
 *
 * The reply ends with the end-of-turn token <SPECIAL_12>, which is part of the language: after a newline in
 * pocket-wide, whose model was trained so; with or without a newline in the others.
 *
 * With d->think a step begins inside an open think block: free text, "</think>", then the step.  w, h: size
 * of the image that coordinates refer to, which bounds coordinates in pixels; 0: d->screen_w and screen_h, or
 * unknown if these are 0, too. */
enum dialect_goal { GOAL_STEP, GOAL_ANSWER, GOAL_GROUND, GOAL_VERDICT, GOAL_TEXT };
struct grammar *dialect_grammar(const struct dialect *d, enum dialect_goal goal, const struct tokenizer *t,
                                int w, int h, struct err *e);
/* Returns whether the grammar depends on w and h. */
bool dialect_grammar_is_sized(const struct dialect *d);

/* a pair of coordinates as the model wrote it, in any range */
struct dialect_numbers {
    double x, y;
    bool fx, fy; /* written with a decimal point */
};

/* Converts numbers of a space to their exact position in a w x h image, not rounded to pixels.  Returns -1
 * with e if they are out of range.  d gives the limits of its image; d and e may be NULL. */
int dialect_exact_point(enum coord_space space, const struct dialect *d, const struct dialect_numbers *n,
                        int w, int h, double *x, double *y, struct err *e);
const char *dialect_space_name(enum coord_space space); /* such as "norm1000" */

/* Compute the size of the image that pixels of NATIVE, PX28 and FIT refer to; return false if it is the size
 * of the given image.  dialect_shown_size() uses the limits of a dialect's model. */
bool dialect_picture_size(enum coord_space space, int *w, int *h);
bool dialect_shown_size(const struct dialect *d, int *w, int *h);

/* Converts two numbers of the dialect's space to a pixel of a w x h image.  Returns -1 if they are out of
 * range. */
int dialect_to_pixels(const struct dialect *d, const double v[2], int w, int h, int32_t *x, int32_t *y);
