/* address.c - a text for an address bar: the text that is typed, and the host that a browser would open.
 *
 * The executor and the rules both use this interpretation, so they cannot disagree.  An address is one line:
 * a line end would open one address and type the rest elsewhere.  Addresses may be disguised: user names
 * before an @, backslashes, percent signs, look-alike letters.  A part that a browser interprets as a path is
 * a path here; anything but ASCII letters, digits, dots and hyphens makes the host unclear. */
#include "actions/action.h"

#include "base/utf8.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Returns the length of the scheme at the start: letters and a colon that is not followed by a port; 0:
 * none. */
static size_t scheme_of(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || (n && strchr("+-.", s[n]) && s[n]))
        n++;
    if (!n || !isalpha((unsigned char)s[0]) || s[n] != ':')
        return 0;
    bool port = isdigit((unsigned char)s[n + 1]); /* such as localhost:8080 */
    return port ? 0 : n;
}

/* Returns whether text contains neither a line end nor another control character. */
static bool one_line(const char *text)
{
    uint32_t c;
    for (size_t n = strlen(text); n;) {
        int len = utf8_decode(text, n, &c);
        if (len <= 0 || c < 0x20 || (c >= 0x7f && c < 0xa0))
            return false;
        text += len;
        n -= (size_t)len;
    }
    return true;
}

static void put_lower(char host[256], const char *s, size_t len)
{
    size_t n = len < 255 ? len : 255;
    for (size_t i = 0; i < n; i++)
        host[i] = (char)tolower((unsigned char)s[i]);
    host[n] = 0;
}

/* Returns the authority without user name, password, port and trailing dots; *len: its length. */
static const char *host_of(const char *authority, size_t *len)
{
    const char *p = authority;
    size_t n = strcspn(p, "/\\?#");
    const char *at = memrchr(p, '@', n);
    if (at) {
        n -= (size_t)(at + 1 - p);
        p = at + 1;
    }
    size_t port = n;
    while (port && isdigit((unsigned char)p[port - 1]))
        port--;
    if (port && p[port - 1] == ':')
        n = port - 1;
    while (n && p[n - 1] == '.') /* example.org. is the same host as example.org */
        n--;
    *len = n;
    return p;
}

/* Reads the host of an address.  Returns false if the host is unclear. */
static bool read_host(const char *s, char host[256])
{
    size_t scheme = scheme_of(s), n;
    bool web = (scheme == 4 && !strncasecmp(s, "http", 4)) || (scheme == 5 && !strncasecmp(s, "https", 5));
    if (scheme && !web) {
        put_lower(host, s, scheme + 1);
        return true;
    }
    const char *p = scheme ? s + scheme + 1 : s;
    p = host_of(p + strspn(p, "/\\"), &n);
    bool clear = n > 0 && n < 256;
    for (size_t i = 0; clear && i < n; i++) /* neither %41 nor look-alike letters */
        clear = isalnum((unsigned char)p[i]) || strchr("-.:[]", p[i]);
    if (clear)
        put_lower(host, p, n);
    return clear;
}

int action_address(const char *text, struct action_address *out, struct err *e)
{
    size_t n = strlen(text);
    *out = (struct action_address){0};
    while (n && *text == ' ')
        text++, n--;
    while (n && text[n - 1] == ' ')
        n--;
    if (n >= sizeof out->typed)
        return err_set(e, ERR_USAGE, "the address is longer than %zu bytes", sizeof out->typed - 1);
    memcpy(out->typed, text, n);
    if (!one_line(out->typed))
        return err_set(e, ERR_USAGE, "an address must be one line without control characters");
    out->clear = read_host(out->typed, out->host);
    return 0;
}

/* ---- schemes other than those of the web ------------------------------------------------------------ */

enum { LINE = 80 };

/* Writes the start of the text as a browser interprets it: in lower case, without blanks, control characters
 * and non-ASCII characters (browsers drop some of these from pasted text).  Full-width forms become ASCII
 * characters, and ';' becomes ':', as in Chromium. */
static void squeeze(const char *text, char line[LINE])
{
    uint32_t c;
    size_t n = 0;
    for (size_t left = strlen(text); left && n < LINE - 1;) {
        int len = utf8_decode(text, left, &c);
        len = len > 0 ? len : 1;
        c = c > 0xff00 && c < 0xff5f ? c - 0xfee0 : c;
        if (c > ' ' && c < 0x7f)
            line[n++] = c == ';' ? ':' : (char)tolower((int)c);
        text += len;
        left -= (size_t)len;
    }
    line[n] = 0;
}

/* Returns whether a blank follows the first colon, as in prose ("Data: 5 rows"): then the text before it is
 * not a scheme. */
static bool is_prose(const char *text)
{
    const char *colon = strpbrk(text, ":;");
    return !colon || colon[1] == ' ' || !colon[1];
}

static const char *after_word(const char *line, const char *const *words)
{
    for (; *words; words++)
        if (!strncmp(line, *words, strlen(*words)))
            return line + strlen(*words);
    return NULL;
}

/* Returns whether the media type of a "data:" address may hold a script. */
static bool holds_document(const char *rest, bool prose)
{
    static const char *const types[] = {"text/",    "application/", "image/", "multipart/", "model/",
                                        "message/", "audio/",       "video/", "x-",         NULL};
    return prose ? after_word(rest, types) != NULL : *rest != 0;
}

bool action_is_code(const char *text)
{
    static const char *const schemes[] = {"javascript:", "vbscript:", "livescript:", "mocha:", "jar:", NULL};
    static const char *const around[] = {"view-source:", "feed:", "pcast:", NULL};
    static const char *const data[] = {"data:", NULL};
    char line[LINE];
    squeeze(text, line);
    const char *at = line;
    for (const char *inner; (inner = after_word(at, around));)
        at = inner;
    if (after_word(at, schemes))
        return true;
    const char *rest = after_word(at, data);
    return rest && holds_document(rest, at == line && is_prose(text));
}

bool action_is_internal(const char *text)
{
    static const char *const schemes[] = {
        "view-source:", "file:", "filesystem:", "blob:",    "about:",        "chrome:",   "chrome-",
        "devtools:",    "edge:", "brave:",      "opera:",   "vivaldi:",      "resource:", "moz-extension:",
        "moz-icon:",    "ms-",   "intent:",     "content:", "isolated-app:", "wyciwyg:",  NULL};
    static const char *const empty[] = {"about:blank", "about:newtab", "about:home", "chrome://newtab", NULL};
    char line[LINE] = "";
    squeeze(text, line);
    const char *rest = after_word(line, empty);
    if ((rest && (!*rest || !strcmp(rest, "/"))) || !after_word(line, schemes) || !strchr(line, ':'))
        return false;
    return !is_prose(text) || strchr(line, '/');
}
