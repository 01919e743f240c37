/* typing.c - converts text to keysyms and types it. */
#include "screen/private.h"

#include "base/utf8.h"

#include <X11/keysym.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20 };

/* Converts the text to *n keysyms; the caller frees them. Returns NULL with e if the text is too long, not
 * UTF-8 or has a control character. */
static uint32_t *decode(const char *utf8, size_t len, size_t *n, struct err *e)
{
    if (len > TEXT_MAX) {
        err_set(e, ERR_USAGE, "text of %zu bytes; the limit is %d", len, TEXT_MAX);
        return NULL;
    }
    uint32_t *out = xmalloc(len + 1, sizeof *out);
    *n = 0;
    for (size_t i = 0; i < len;) {
        uint32_t c;
        int k = utf8_decode(utf8 + i, len - i, &c);
        if (k < 0 || (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || (c >= 0x7f && c < 0xa0)) {
            err_set(e, ERR_USAGE, "text has %s at byte %zu", k < 0 ? "invalid UTF-8" : "a control character",
                    i);
            free(out);
            return NULL;
        }
        i += (size_t)k;
        if (c == '\r' && i < len && utf8[i] == '\n')
            continue;
        if (c == '\n' || c == '\r')
            out[(*n)++] = XK_Return;
        else if (c == '\t')
            out[(*n)++] = XK_Tab;
        else
            out[(*n)++] = c < 0x100 ? c : 0x01000000 | c; /* keysym encoding of Unicode */
    }
    return out;
}

static int type_with(struct screen *s, const char *utf8, size_t len, bool secret, struct err *e)
{
    struct screen_text t = {.utf8 = utf8, .len = len, .secret = secret};
    if (screen_alive(s, e))
        return -1;
    uint32_t *keysyms = decode(utf8, len, &t.n, e);
    if (!keysyms)
        return -1;
    t.keysyms = keysyms;
    int rc = t.n ? s->ops->type(s, &t, e) : 0;
    explicit_bzero(keysyms, t.n * sizeof *keysyms);
    free(keysyms);
    return rc;
}

int screen_type(struct screen *s, const char *utf8, size_t len, struct err *e)
{
    return type_with(s, utf8, len, false, e);
}

int screen_type_secret(struct screen *s, const char *utf8, size_t len, struct err *e)
{
    struct err why = ERR_INIT;
    int rc = type_with(s, utf8, len, true, &why);
    if (rc && why.kind == ERR_USAGE)
        return err_set(e, ERR_USAGE,
                       "a secret has a character that no key gives, and secrets are not pasted");
    return rc ? err_set(e, why.kind, "%s", why.text) : 0;
}
