/* framing.h - strict checks of the headers that delimit a request and name its host.
 *
 * Two parsers of one request, such as a proxy and this server, must not disagree about them (request
 * smuggling). */
#pragma once

#include <microhttpd.h>
#include <stddef.h>

/* Returns a message about an invalid Content-Length, Transfer-Encoding or Host header, or NULL. *size:
 * announced bytes of the body, 0 without a length. */
const char *framing_fault(struct MHD_Connection *c, const char *version, size_t *size);
