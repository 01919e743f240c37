/* breakpoint.h - conditions at which the stepper stops and asks.
 *
 *   step 7            before step 7 runs
 *   kind click        before an action of this kind
 *   text PATTERN      thought, note, element, typed or answered text matches
 *   window PATTERN    the active window's title or class matches
 *   irreversible      before an action that the built-in rules would ask about (gate/policy.h)
 *   confidence 0.8    a token of verb or place was sampled with a lower probability
 *   no-effect         the last action should have changed the screen and did not
 *
 * PATTERN is a PCRE2 regular expression; case is ignored.
 */
#ifndef HOLORUN_STEP_BREAKPOINT_H
#define HOLORUN_STEP_BREAKPOINT_H

#include "step/step.h"

struct breakpoint;

struct breakpoint *break_parse(const char *spec, struct err *e);
void break_free(struct breakpoint *b);
const char *break_spec(const struct breakpoint *b);
/* Does not need the view's candidates. */
bool break_hit(const struct breakpoint *b, const struct step_view *v);

#endif
