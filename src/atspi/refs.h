/* refs.h - the refs that a client was shown ("e12"), with the role and name that each had then.
 *
 * A ref is the number of an object on the accessibility bus (bus name and object path), so it stays with its
 * element over any number of reads.  Programs reuse objects for other elements, so role and name are compared
 * before a ref is acted on.  The table keeps at most REFS_MAX refs, the latest ones. */
#pragma once

#include "atspi/elements.h"

enum { REFS_MAX = 8192 };

struct refs;

struct refs *refs_new(void);
void refs_free(struct refs *r); /* NULL is allowed */
int refs_count(const struct refs *r);

/* Notes the elements of s whose lines are in `text`, which elements_text() or lines.h wrote; NULL: all. */
void refs_note(struct refs *r, const struct snapshot *s, const char *text);

/* Reads "e12", also as "[e12]", "ref=e12" or "12".  Returns 0 if the text is none of these. */
uint32_t refs_read(const char *text);

/* Returns the element of a ref in a later snapshot if its role and name are those that were noted; NULL with
 * one line that says what the ref was and what to do. */
const struct element *refs_find(const struct refs *r, const struct snapshot *s, uint32_t ref, char *why,
                                size_t size);
/* Returns the element of a ref in a snapshot without comparing names; NULL: it is not there. */
const struct element *refs_element(const struct snapshot *s, uint32_t ref);

/* Appends what an element is, as `button "Save"`. */
void refs_describe(const struct element *e, struct buf *out);
