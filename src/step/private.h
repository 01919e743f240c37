/* private.h - breakpoints (breakpoint.c), edits of the shown step (edit.c), views as text (print.c). Private
 * to step/. */
#pragma once

#include "step/step.h"

/* ---- breakpoints: conditions at which the stepper stops and asks
 *
 *   step 7            before step 7 runs
 *   kind click        before an action of this kind
 *   text PATTERN      thought, note, element, typed or answered text matches
 *   window PATTERN    the active window's title or class matches
 *   irreversible      before an action that the built-in rules would ask about (gate/policy.h)
 *   confidence 0.8    a token of a verb or coordinate was sampled with a lower probability
 *   no-effect         the last action should have changed the screen and did not
 *   X and Y           when both hold: "window Shop and text Pay"
 *
 * PATTERN is a PCRE2 regular expression; case is ignored. In double quotes it may contain " and ". */

struct breakpoint *break_parse(const char *spec, struct err *e);
void break_free(struct breakpoint *b);
const char *break_spec(const struct breakpoint *b);
/* Returns whether all conditions hold. Does not use the view's candidates. */
bool break_hit(const struct breakpoint *b, const struct step_view *v);

/* ---- edits: the result is executable: points on the screenshot, text that can be typed. On failure -1 with
 * e, and the step is unchanged. */

/* Returns the action as JSON; the caller frees it. */
char *edit_to_json(const struct action *a);
int edit_copy(struct step *to, const struct step *from, struct err *e); /* Copies the actions only. */
/* Edits with "{...}" the first action, with "2 {...}" the second: changes members or, with "kind", all of
 * it. */
int edit_json(struct step *s, const char *text, const struct image *frame, struct err *e);
int edit_target(struct step *s, bool second, int x, int y, const struct image *frame, struct err *e);
int edit_text(struct step *s, const char *text, struct err *e);

/* ---- text: PRINT_MORE adds the raw reply, the action as JSON and the whole history */

enum { PRINT_COLOR = 1, PRINT_MORE = 2 };
void step_print(FILE *f, const struct step_view *v, unsigned flags);
/* Returns a reply's actions, or the reason why it has none; the caller frees the text. */
char *describe_reply(const struct step *s, const char *message);
/* Prints one line for a step that runs without a question. */
void step_print_passed(FILE *f, const struct step_view *v, unsigned flags);
