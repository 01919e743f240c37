/* policy_host.c - the host of a text typed into an address bar, as a browser would parse it.
 *
 * Addresses may be disguised: user names before an @, backslashes, percent signs, look-alike letters.  What
 * a browser reads as a path is a path here; anything but ASCII letters, digits, dots and hyphens makes the
 * host unclear.
 */
#include "gate/policy.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Length of the scheme at the start: letters and a colon that no port follows; 0: none. */
static size_t scheme_of(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || (n && strchr("+-.", s[n]) && s[n]))
        n++;
    if (!n || !isalpha((unsigned char)s[0]) || s[n] != ':')
        return 0;
    bool port = isdigit((unsigned char)s[n + 1]); /* localhost:8080 */
    return port ? 0 : n;
}

/* Like browsers: drops tabs and newlines anywhere, control characters and spaces at both ends. */
static void strip(const char *address, char *out, size_t size)
{
    size_t n = 0;
    while (*address && (unsigned char)*address <= ' ')
        address++;
    for (; *address && n + 1 < size; address++)
        if (*address != '\t' && *address != '\n' && *address != '\r')
            out[n++] = *address;
    while (n && (unsigned char)out[n - 1] <= ' ')
        n--;
    out[n] = 0;
}

static void put_lower(char host[256], const char *s, size_t len)
{
    size_t n = len < 255 ? len : 255;
    for (size_t i = 0; i < n; i++)
        host[i] = (char)tolower((unsigned char)s[i]);
    host[n] = 0;
}

/* The authority without user name, password, port and trailing dots. */
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
    while (n && p[n - 1] == '.') /* example.org. is example.org */
        n--;
    *len = n;
    return p;
}

bool policy_host(const char *address, char host[256])
{
    char s[4096] = "";
    host[0] = 0;
    strip(address, s, sizeof s);
    size_t scheme = scheme_of(s), n;
    bool web = (scheme == 4 && !strncasecmp(s, "http", 4)) || (scheme == 5 && !strncasecmp(s, "https", 5));
    if (scheme && !web) {
        put_lower(host, s, scheme + 1);
        return true;
    }
    const char *p = scheme ? s + scheme + 1 : s;
    p = host_of(p + strspn(p, "/\\"), &n);
    bool clear = n > 0 && n < 256;
    for (size_t i = 0; clear && i < n; i++) /* no %41, no look-alike letters */
        clear = isalnum((unsigned char)p[i]) || strchr("-.:[]", p[i]);
    if (clear)
        put_lower(host, p, n);
    return clear;
}
