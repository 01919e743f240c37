/* masked.h - a copy of elements in which secrets are replaced by their names, and elements in hidden zones
 * are empty: the form that a model or another program may read. */
#pragma once

#include "atspi/elements.h"

struct masked {
    struct snapshot s; /* its texts are those of the original, or belong to this copy */
    char **texts;
    int n;
};

struct masked_by {
    char *(*mask)(const void *arg,
                  const char *text); /* returns a copy without secrets; NULL: keeps all texts */
    const void *arg;
    const char *const *hide; /* zones, as --hide has them; NULL: none */
    struct screen_rect root; /* for zones in percent */
};

/* Copies a snapshot, which must outlive the copy.  Returns -1 with e if a zone is invalid. */
int masked_copy(struct masked *m, const struct snapshot *s, const struct masked_by *by, struct err *e);
void masked_free(struct masked *m);
