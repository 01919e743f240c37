/* secret.h - values that are typed but never shown or recorded.
 *
 *     --secret PASSWORD=env:VAR       --secret PASSWORD=file:PATH
 *
 * The model knows the name and writes {{PASSWORD}}; the value is substituted only while an action of kind
 * "type" is executed, after the rules have allowed it (not in the address of "goto"). Values are kept in
 * locked memory that is excluded from core dumps, and are overwritten at the end. Texts that leave the
 * process pass through secrets_mask() or secrets_scrub_json(), which replace a value by its {{NAME}},
 * whatever its origin. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct secrets;

enum { SECRETS_MAX = 16, SECRET_MIN = 4, SECRET_MAX = 1024, SECRET_NAME = 32 };

struct secrets *secrets_new(void);
/* Reads a value and calls secrets_no_core(). spec: "NAME=env:VAR" (VAR is removed from the environment) or
 * "NAME=file:PATH" (a final newline is dropped). Returns -1 with ERR_USAGE; messages do not contain the
 * value. */
int secrets_add(struct secrets *s, const char *spec, struct err *e);
/* Copies the only secret of `from` under the name in spec: a variable can be read only once, and several
 * runs of one process may need it. */
int secrets_add_copy(struct secrets *s, const char *spec, const struct secrets *from, struct err *e);
/* Disables core dumps of this process and access to its memory by other processes of the user. */
void secrets_no_core(void);
/* Adds all specs of a NULL-terminated list. *out is NULL for an empty list. Returns -1 with e. */
int secrets_open(struct secrets **out, const char *const *specs, struct err *e);
void secrets_free(struct secrets *s); /* Overwrites the values. NULL is allowed. */

int secrets_count(const struct secrets *s); /* Returns the number of secrets, 0 for NULL. */
const char *secrets_name(const struct secrets *s, int i);

/* Lists the names of the secrets that text refers to, each once. Returns their number. */
int secrets_find_names(const struct secrets *s, const char *text, const char *names[SECRETS_MAX]);

/* Finds the secrets that a pasted text would reveal: it contains the value, also JSON-escaped, or it is
 * (without white space at its ends) a part of the value of at least SECRET_MIN bytes. Returns their
 * number. */
int secrets_find_values(const struct secrets *s, const char *text, const char *names[SECRETS_MAX]);

/* Returns text with the values substituted, in locked memory; free it with secrets_free_filled(), which wipes
 * it. */
char *secrets_fill(const struct secrets *s, const char *text);
void secrets_free_filled(char *filled);

/* Returns text with values, plain or JSON-escaped, replaced by names; the caller frees it. For texts shown to
 * users. */
char *secrets_mask(const struct secrets *s, const char *text);

/* Returns whether text contains a value, plain or JSON-escaped. */
bool secrets_contained_in(const struct secrets *s, const char *text);

/* Masks the values in the strings of a JSON text, in place, and redacts text that looks like a key or
 * password (Authorization: Bearer ..., hk-..., sk-..., AKIA..., password=...). A string may itself contain
 * JSON. s may be NULL. */
void secrets_scrub_json(const struct secrets *s, struct buf *json);
