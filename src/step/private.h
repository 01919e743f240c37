/* private.h - breakpoints, changes to the step that is shown (edit.c), a view as text (print.c).  Private to
 * step/. */
#ifndef HOLORUN_STEP_PRIVATE_H
#define HOLORUN_STEP_PRIVATE_H

#include "step/step.h"

/* ---- breakpoints: conditions at which the stepper stops and asks
 *
 *   step 7            before step 7 runs
 *   kind click        before an action of this kind
 *   text PATTERN      thought, note, element, typed or answered text matches
 *   window PATTERN    the active window's title or class matches
 *   irreversible      before an action that the built-in rules would ask about (gate/policy.h)
 *   confidence 0.8    a token of verb or place was sampled with a lower probability
 *   no-effect         the last action should have changed the screen and did not
 *   X and Y           when both hold: "window Shop and text Pay"
 *
 * PATTERN is a PCRE2 regular expression; case is ignored.  In double quotes it may hold " and ". */

struct breakpoint *break_parse(const char *spec, struct err *e);
void break_free(struct breakpoint *b);
const char *break_spec(const struct breakpoint *b);
/* Does not need the view's candidates. */
bool break_hit(const struct breakpoint *b, const struct step_view *v);

/* ---- edits: the result can be run: points on the screenshot, text that can be typed.  -1 leaves the step as
 * it was. */

char *edit_to_json(const struct action *a);                             /* the caller frees it */
int edit_copy(struct step *to, const struct step *from, struct err *e); /* only the actions */
/* "{...}" for the first action, "2 {...}" for the second: members to change or, with "kind", all of it. */
int edit_json(struct step *s, const char *text, const struct image *frame, struct err *e);
int edit_target(struct step *s, bool second, int x, int y, const struct image *frame, struct err *e);
int edit_text(struct step *s, const char *text, struct err *e);

/* ---- text: MORE shows also the raw reply, the action as JSON, the whole history */

enum { PRINT_COLOR = 1, PRINT_MORE = 2 };
void step_print(FILE *f, const struct step_view *v, unsigned flags);
/* A reply's actions, or why it has none; the caller frees it. */
char *describe_reply(const struct step *s, const char *message);
/* One line for a step that runs without being asked about. */
void step_print_passed(FILE *f, const struct step_view *v, unsigned flags);

#endif
