/* dialect.h - the prompt and reply format of a model family, as data (prompts/NAME.json).
 *
 * Prompt texts, tool table, coordinate space, conversation wrappers, image policy and sampling.  Built-in
 * dialects are part of the binary; the path of a JSON file can be given instead.
 *
 * A dialect file is one JSON object with the members of struct dialect below as keys.  "tools": see
 * tools.c, or the name of a built-in dialect whose table is used.  "system_file": "NAME.txt" names a text
 * beside the file, in place of "system".  "screen": [w, h].  Unknown keys are refused.
 */
#ifndef HOLORUN_ACTIONS_DIALECT_H
#define HOLORUN_ACTIONS_DIALECT_H

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
    char *task_open, *task_close;               /* around the task, in the first user turn */
    char *observation_open, *observation_close; /* around the image */
    char *tool_output;       /* template with {tool} and {result}; omitted when the result is empty, unless */
    bool tool_output_always; /* is set */
    char *tool_error;        /* template with {tool} and {message} */
    char *no_effect;         /* result text when the screen did not change; "" none */
    char *image_placeholder; /* replaces old screenshots */
    bool image_inline;       /* images stay where they are (else the template puts them first) */
    int max_images;          /* 1..4 */
    enum window_policy window;
    bool think;
    float temperature, top_p;
    int max_tokens;
    char *ground;            /* localizer question with {target}; "" when the family has none */
    char *ask;               /* question about images with {question} */
    char *judge, *validator; /* system texts for verdicts (judge/llm_judge.h); "": the built-in ones */
    bool yes_no;             /* it only knows to answer questions about one picture, with yes or no */
    char *schema;            /* JSON schema made from the tool table, "" when the syntax has none */
    char *tool_list;         /* one line per tool, from the same table: the {tools} slot */
    char *view;              /* part of the display it is shown unless told otherwise: "all" or "active" */
    int screen_w, screen_h;  /* the only screen size that this model supports, 0: any */
    int least_pixels, most_pixels; /* of the picture that PX28 is about; 0: as published */
    char *sha256;                  /* hex, of the dialect file's bytes */
    bool cmd_is_ctrl;              /* "cmd" is the Control key */
    bool native_tools;   /* an endpoint gets the tool table beside the messages, not within the prompt */
    bool run_all;        /* of several calls in one turn all are run, not only the first */
    bool verbatim;       /* replies are a person's: texts may contain markup of calls */
    struct tools *tools; /* tools.h */
};

/* name: a built-in dialect (dialect_names()) or a path ending in .json.  NULL with e: unknown name, unknown
 * key, wrong type. */
struct dialect *dialect_load(const char *name, struct err *e);
struct dialect *dialect_parse(const char *json, size_t len, const char *name, struct err *e);
void dialect_free(struct dialect *d);
const char *const *dialect_names(void); /* NULL-terminated */

/* Returns the models that a built-in dialect suits, for the help; NULL: not a built-in one. */
const char *dialect_suits(const char *name);
/* Returns the built-in dialect for a model by its name on a server ("qwen3-vl:8b"); NULL: an unknown name. */
const char *dialect_for_name(const char *model);

/* The dialect of a model directory: its holorun.json may contain {"dialect": "NAME"}; a NAME ending in .json
 * is a file in that directory.  Without holorun.json it follows from the architecture in config.json and the
 * model's name: "holo3" for most; of Qwen2.5-VL "uitars15", "fara", "holo15" or "qwen25", of Qwen3-VL "holo1"
 * (Holo2) or "qwen".  The caller frees the name, which is for dialect_load(). */
char *dialect_for_model(const char *model_dir, struct err *e);

/* The text of a dialect file: a built-in dialect with another coordinate space, for models that answer in
 * another space than they were trained for.  The caller frees it; NULL when name is not built in. */
char *dialect_in_space(const char *name, enum coord_space space, struct err *e);

/* Whether replies describe what they click, so that rules by element can see it. */
bool dialect_describes(const struct dialect *d);

/* Fills the {slots} of a template; slots: NULL-terminated pairs of name and value.  Unknown slots are
 * refused; a brace that does not open a {lower_case_name} is copied. */
int dialect_fill(const char *tmpl, const char *const *slots, struct buf *out, struct err *e);

/* How a reply begins that clicks an element of this name or types into it, for a syntax that names the
 * element first (pocket-wide); NULL: it does not.  kind: enum action_kind.  The caller frees it. */
char *dialect_step_begin(const struct dialect *d, int kind, const char *element);

/* The grammar of a reply: one step, the forced last step (the answer tool only), the localizer's output, a
 * verdict (judge/llm_judge.h; "yes" or "no" where yes_no says so), or free text.  NULL with a message when
 * the tokenizer lacks a token.
 *
 * The language is exactly the canonical form of what action_parse reads: one step, keys in the order of the
 * table, ", " and ": " between them, no other white space, numbers inside the coordinate space, one
 * spelling per text.  So a generated reply can stay in the history verbatim.
 *
 * The reply ends with the end-of-turn token <SPECIAL_12>, which is part of the language: after a newline in
 * pocket-wide, whose model was trained so; with or without it in the others.
 *
 * With d->think a step begins inside an open think block: free text, "</think>", then the step.
 * w, h: size of the image that places are about, which bounds coordinates in pixels; 0: d->screen_w and
 * screen_h, or unknown when these are 0, too. */
enum dialect_goal { GOAL_STEP, GOAL_ANSWER, GOAL_GROUND, GOAL_VERDICT, GOAL_TEXT };
struct grammar *dialect_grammar(const struct dialect *d, enum dialect_goal goal, const struct tokenizer *t,
                                int w, int h, struct err *e);
/* Whether the grammar depends on w and h. */
bool dialect_grammar_is_sized(const struct dialect *d);

/* A pair of coordinates as the model wrote it, in any range. */
struct dialect_numbers {
    double x, y;
    bool fx, fy; /* written with a decimal point */
};

/* Converts numbers to their exact position in a w x h image (not rounded to pixels) when read in some
 * space; returns -1 when they are out of range.  d gives the bounds of its picture; it and e may be
 * NULL. */
int dialect_exact_point(enum coord_space space, const struct dialect *d, const struct dialect_numbers *n,
                        int w, int h, double *x, double *y, struct err *e);
const char *dialect_space_name(enum coord_space space); /* "norm1000" */

/* The size of the picture that pixels of NATIVE, PX28 and FIT are about; false: it is the size of the image.
 * The second with the bounds of a dialect's model. */
bool dialect_picture_size(enum coord_space space, int *w, int *h);
bool dialect_shown_size(const struct dialect *d, int *w, int *h);

/* Two numbers of the dialect's space to a pixel of a w x h image; -1 when out of range. */
int dialect_to_pixels(const struct dialect *d, const double v[2], int w, int h, int32_t *x, int32_t *y);

#endif
