/* emptied.h - whether an action has emptied much of the view, so that its content probably comes later. */
#pragma once

#include "screen/screen.h"

struct emptied; /* the windows before the last action, and the screenshots before that of its decision */

struct emptied *emptied_new(void);
void emptied_free(struct emptied *m); /* NULL is allowed. */
/* Notes the windows of the last observation (observed.h). Call it after an action, before the next
 * observation. */
void emptied_note_windows(struct emptied *m, const struct screen *s);
/* Remembers a screenshot of the view, an earlier one than those compared next. The oldest of EMPTIED_PAST is
 * forgotten, and all if the size differs. */
enum { EMPTIED_PAST = 8 };
void emptied_note_shown(struct emptied *m, const struct image *shown);
/* Returns whether text or other detail of a sizable area has been replaced by blank or flat areas, with
 * hardly any new detail. An area that shows an earlier screenshot again does not count, nor one in which a
 * window has closed. before, now: the view before and after the action. */
bool emptied_since(const struct emptied *m, struct screen *s, const struct image *before,
                   const struct image *now);
