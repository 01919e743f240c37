/* framing.h - the headers that say where a request ends and whom it is for, read strictly.
 *
 * Two readers of one request, such as a proxy and this server, must not disagree about them.
 */
#ifndef HOLORUN_SERVE_FRAMING_H
#define HOLORUN_SERVE_FRAMING_H

#include <microhttpd.h>
#include <stddef.h>

/* Returns the fault of a request's Content-Length, Transfer-Encoding and Host; NULL: none.  *size: bytes of
 * the body that it announces, 0 without a length. */
const char *framing_fault(struct MHD_Connection *c, const char *version, size_t *size);

#endif
