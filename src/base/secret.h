/* secret.h - values that are typed but never shown or recorded.
 *
 *     --secret PASSWORD=env:VAR       --secret PASSWORD=file:PATH
 *
 * The model knows the name and writes {{PASSWORD}}; the value is substituted only while an action of kind
 * "type" is performed, after the rules have allowed it (not in the address of "goto").  Values live in
 * locked memory that is not dumped, and are overwritten at the end.  Texts that leave the process go
 * through secrets_mask() or secrets_scrub_json(), which replace a value by its {{NAME}}, wherever it came
 * from.
 */
#ifndef HOLORUN_BASE_SECRET_H
#define HOLORUN_BASE_SECRET_H

#include "base/buf.h"
#include "base/err.h"

struct secrets;

enum { SECRETS_MAX = 16, SECRET_MIN = 4, SECRET_MAX = 1024, SECRET_NAME = 32 };

struct secrets *secrets_new(void);
/* Reads a value, after secrets_no_core().  spec: "NAME=env:VAR" (VAR is removed from the
 * environment) or "NAME=file:PATH" (a final newline is dropped).  -1 with ERR_USAGE; no message contains
 * the value. */
int secrets_add(struct secrets *s, const char *spec, struct err *e);
/* Copies the only secret of `from` under the name in spec: a variable can be read only once, and several
 * runs of one process may need it. */
int secrets_add_copy(struct secrets *s, const char *spec, const struct secrets *from, struct err *e);
/* From now on this process leaves no core, and only its owner's superuser may look into its memory. */
void secrets_no_core(void);
/* Adds all specs of a NULL-terminated list.  Empty list: 0, *out NULL. */
int secrets_open(struct secrets **out, const char *const *specs, struct err *e);
void secrets_free(struct secrets *s); /* overwrites; NULL is fine */

int secrets_count(const struct secrets *s); /* 0 for NULL */
const char *secrets_name(const struct secrets *s, int i);

/* Names of the secrets that text refers to, each once; returns how many. */
int secrets_find_names(const struct secrets *s, const char *text, const char *names[SECRETS_MAX]);

/* Finds the secrets that a pasted text gives away: it contains the value, also as JSON spells it, or it is
 * (without blanks at its ends) a part of the value of at least SECRET_MIN bytes.  Returns their number. */
int secrets_find_values(const struct secrets *s, const char *text, const char *names[SECRETS_MAX]);

/* text with the values substituted, in locked memory; wiped and freed by secrets_free_filled. */
char *secrets_fill(const struct secrets *s, const char *text);
void secrets_free_filled(char *filled);

/* text with names in place of values, plain or JSON-escaped; owned by the caller.  For texts shown to
 * people. */
char *secrets_mask(const struct secrets *s, const char *text);

/* Whether text contains a value, plain or JSON-escaped. */
bool secrets_contained_in(const struct secrets *s, const char *text);

/* Masks the values in the strings of a JSON text, in place, and redacts what looks like any key or password
 * (Authorization: Bearer ..., hk-..., sk-..., AKIA..., password=...).  A string may contain JSON in turn.
 * s may be NULL. */
void secrets_scrub_json(const struct secrets *s, struct buf *json);

#endif
