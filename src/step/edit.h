/* edit.h - changes to a step that is shown.  Private to step/.
 *
 * What comes out can be run: places on the screenshot, text that can be typed.  -1 leaves the step as it was.
 */
#ifndef HOLORUN_STEP_EDIT_H
#define HOLORUN_STEP_EDIT_H

#include "actions/action.h"
#include "base/image.h"

int edit_copy(struct step *to, const struct step *from, struct err *e); /* its actions */
/* "{...}" for the first action, "2 {...}" for the second: members of the canonical form; with "kind" all of it. */
int edit_json(struct step *s, const char *text, const struct image *frame, struct err *e);
int edit_target(struct step *s, bool second, int x, int y, const struct image *frame, struct err *e);
int edit_text(struct step *s, const char *text, struct err *e);

#endif
