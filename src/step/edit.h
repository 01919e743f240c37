/* edit.h - changes to the step that is shown.  Private to step/.
 *
 * The result can be run: points on the screenshot, text that can be typed.  -1 leaves the step as it was.
 */
#ifndef HOLORUN_STEP_EDIT_H
#define HOLORUN_STEP_EDIT_H

#include "actions/action.h"
#include "base/image.h"

char *edit_to_json(const struct action *a);                             /* the caller frees it */
int edit_copy(struct step *to, const struct step *from, struct err *e); /* only the actions */
/* "{...}" for the first action, "2 {...}" for the second: members to change or, with "kind", all of it. */
int edit_json(struct step *s, const char *text, const struct image *frame, struct err *e);
int edit_target(struct step *s, bool second, int x, int y, const struct image *frame, struct err *e);
int edit_text(struct step *s, const char *text, struct err *e);

#endif
