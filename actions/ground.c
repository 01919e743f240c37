/* ground.c - reads the answer to the localizer's question: the position of the named element, or the
 * statement that the element is absent, in the notation of the dialect's syntax or else of place.h. */
#include "actions/syntax.h"

int dialect_read_place(const struct dialect *d, const char *text, size_t len, struct place *out,
                       struct err *e)
{
    return d->syntax->read_place ? d->syntax->read_place(d, text, len, out, e)
                                 : place_read(text, len, out, e);
}
