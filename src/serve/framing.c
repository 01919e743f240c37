/* framing.c - checks the headers that delimit a request; see framing.h. */
#include "serve/framing.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LENGTH_DIGITS = 15 };

struct framing {
    int lengths, hosts, codings;
    const char *length, *coding;
    bool odd; /* a header name is empty or has white space, or a value has a zero byte */
};

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *name, size_t name_size,
                                 const char *value, size_t size)
{
    struct framing *f = arg;
    f->odd = f->odd || !*name || name[strcspn(name, " \t")] || strlen(name) != name_size ||
             (value && strlen(value) != size);
    if (!strcasecmp(name, "Content-Length")) {
        f->lengths++;
        f->length = value;
    } else if (!strcasecmp(name, "Host")) {
        f->hosts++;
    } else if (!strcasecmp(name, "Transfer-Encoding")) {
        f->codings++;
        f->coding = value;
    }
    return MHD_YES;
}

static bool is_length(const char *s)
{
    size_t n = strspn(s, "0123456789");
    return n && n <= LENGTH_DIGITS && !s[n];
}

const char *framing_fault(struct MHD_Connection *c, const char *version, size_t *size)
{
    struct framing f = {0};
    *size = 0;
    MHD_get_connection_values_n(c, MHD_HEADER_KIND, on_header, &f);
    if (f.odd)
        return "invalid header: white space in its name, no name, or a zero byte";
    if (f.lengths > 1)
        return "more than one Content-Length header";
    if (f.length && !is_length(f.length))
        return "Content-Length is not a number of bytes";
    if (f.codings > 1 || (f.coding && strcasecmp(f.coding, "chunked") != 0))
        return "unsupported Transfer-Encoding: only chunked, once";
    if (f.codings && f.lengths)
        return "both Content-Length and Transfer-Encoding";
    if (f.codings && !strcmp(version, "HTTP/1.0"))
        return "Transfer-Encoding in a request of HTTP/1.0";
    if (f.hosts > 1 || (!f.hosts && strcmp(version, "HTTP/1.0") != 0))
        return f.hosts ? "more than one Host header" : "no Host header";
    *size = f.length ? strtoull(f.length, NULL, 10) : 0;
    return NULL;
}
