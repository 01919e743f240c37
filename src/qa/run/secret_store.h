/* secret_store.h - the secrets of a suite, read once for all of its tests.
 *
 * Reading one from the environment takes it out of there, before programs are started that would inherit it; tests that
 * name it get copies.
 */
#ifndef HOLORUN_QA_RUN_SECRET_STORE_H
#define HOLORUN_QA_RUN_SECRET_STORE_H

#include "gate/secret.h"
#include "qa/suite/suite.h"

struct secret_store;

/* Of the tests that are chosen, and of `more` (a list ended by NULL, as `run` has it): before desks_begin(). */
struct secret_store *secret_store_open(const struct suite *s, const char *const *more, struct err *e);
void secret_store_free(struct secret_store *v); /* NULL is fine */

/* Those of a list, for one run, which frees them; *out NULL when the list is empty.  Any thread. */
int secret_store_take(const struct secret_store *v, const char *const *specs, struct secrets **out,
                      struct err *e);

/* text with names for the values of all of them; owned by the caller.  v may be NULL. */
char *secret_store_mask(const struct secret_store *v, const char *text);

#endif
