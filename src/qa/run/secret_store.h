/* secret_store.h - the secrets of a suite, read once for all of its tests.
 *
 * Reading a secret from the environment removes it there, so that programs started later do not inherit it;
 * each test that names it gets a copy.
 */
#ifndef HOLORUN_QA_RUN_SECRET_STORE_H
#define HOLORUN_QA_RUN_SECRET_STORE_H

#include "gate/secret.h"
#include "qa/suite/suite.h"

struct secret_store;

/* Secrets of the selected tests and of `more` (as `run` has them, ended by NULL).  Call it before
 * desks_begin(). */
struct secret_store *secret_store_open(const struct suite *s, const char *const *more, struct err *e);
void secret_store_free(struct secret_store *s); /* NULL is fine */

/* Copies for one run, which frees them; *out NULL: the list is empty.  Any thread. */
int secret_store_copy(const struct secret_store *s, const char *const *specs, struct secrets **out,
                      struct err *e);

/* text with all secret values replaced by their names; owned by the caller.  s may be NULL. */
char *secret_store_mask(const struct secret_store *s, const char *text);

#endif
