/* secret.h - what may be typed and never be seen.
 *
 *     --secret PASSWORD=env:VAR       --secret PASSWORD=file:PATH
 *
 * The model knows the name and writes {{PASSWORD}}; the value takes its place while an action of kind "type" is
 * performed, after the rules have let it pass, and nowhere else: an address that is gone to keeps the name.
 * Values live in memory that is locked and not dumped, and are overwritten at the end.  Texts that leave the
 * process go through secrets_mask() or secrets_scrub_json(): a value in them becomes its {{NAME}} again, wherever
 * it came from.
 */
#ifndef HOLORUN_GATE_SECRET_H
#define HOLORUN_GATE_SECRET_H

#include "base/buf.h"
#include "base/err.h"

struct secrets;

enum { SECRETS_MAX = 16, SECRET_MIN = 4, SECRET_MAX = 1024, SECRET_NAME = 32 };

struct secrets *secrets_new(void);
/* Takes "NAME=env:VAR" (and removes VAR from the environment) or "NAME=file:PATH" (without the newline at its
 * end).  ERR_USAGE; no message holds the value. */
int secrets_add(struct secrets *s, const char *spec, struct err *e);
/* The only secret of `from` once more, under the name in spec: a variable can be read only once, and many runs of one
 * process may want it. */
int secrets_add_copy(struct secrets *s, const char *spec, const struct secrets *from, struct err *e);
/* All specs of a list that NULL ends; this process leaves no core dump from then on.  An empty list: 0, *out NULL. */
int secrets_open(struct secrets **out, const char *const *specs, struct err *e);
void secrets_free(struct secrets *s); /* overwrites; NULL is fine */

int secrets_count(const struct secrets *s); /* 0 for NULL */
const char *secrets_name(const struct secrets *s, int i);

/* Names of the secrets that text would have typed, each once; the number of them. */
int secrets_named(const struct secrets *s, const char *text, const char *names[SECRETS_MAX]);

/* text with values for names, in memory of the same care; wiped and freed by secrets_drop. */
char *secrets_fill(const struct secrets *s, const char *text);
void secrets_drop(char *filled);

/* text with names for values, as they are or as JSON spells them; owned by the caller.  For what people see. */
char *secrets_mask(const struct secrets *s, const char *text);

/* Whether text has a value in it, as it is or as JSON spells it. */
bool secrets_spelled(const struct secrets *s, const char *text);

/* The same within the strings of a JSON text, in place, and of what looks like a key or a password of anybody
 * (Authorization: Bearer ..., hk-..., sk-..., AKIA..., password=...) the part that is secret.  A string may hold JSON in
 * turn.  s may be NULL. */
void secrets_scrub_json(const struct secrets *s, struct buf *json);

#endif
