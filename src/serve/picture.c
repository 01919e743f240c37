/* picture.c - see picture.h. */
#include "serve/picture.h"

#include <stdlib.h>
#include <string.h>

static const char prefix[] = "data:image/png;base64,";

static int digit_of(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

long base64_decode(const char *text, size_t n, unsigned char *out)
{
    unsigned bits = 0;
    long at = 0;
    while (n && text[n - 1] == '=' && n % 4 != 1)
        n--;
    if (n % 4 == 1)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int d = digit_of((unsigned char)text[i]);
        if (d < 0)
            return -1;
        bits = bits << 6 | (unsigned)d;
        if (i % 4)
            out[at++] = (unsigned char)(bits >> (6 - i % 4 * 2));
    }
    return at;
}

int picture_check(const char *url, struct err *e)
{
    if (!strncmp(url, prefix, strlen(prefix)))
        return 0;
    if (!strncmp(url, "data:", 5))
        return err_set(e, ERR_USAGE, "a picture must be a PNG: '%s...', not '%.40s'", prefix, url);
    return err_set(e, ERR_USAGE, "a picture must be a data URL ('%s...'): this server fetches nothing",
                   prefix);
}

/* The size stands in the header: a small file must not unpack to a large picture. */
static int check_size(const unsigned char *png, long n, struct err *e)
{
    if (n < 24)
        return err_set(e, ERR_USAGE, "a picture that is not a PNG");
    uint64_t w = (uint64_t)png[16] << 24 | (uint64_t)png[17] << 16 | (uint64_t)png[18] << 8 | png[19],
             h = (uint64_t)png[20] << 24 | (uint64_t)png[21] << 16 | (uint64_t)png[22] << 8 | png[23];
    if (w * h > PICTURE_MAX_PIXELS)
        return err_set(e, ERR_USAGE, "a picture of %llux%llu pixels; at most %d million",
                       (unsigned long long)w, (unsigned long long)h, PICTURE_MAX_PIXELS >> 20);
    return 0;
}

int picture_decode(const char *url, struct image *out, struct err *e)
{
    *out = (struct image){0};
    if (picture_check(url, e))
        return -1;
    const char *text = url + strlen(prefix);
    size_t n = strlen(text);
    unsigned char *png = xmalloc(n / 4 * 3 + 3, 1);
    long len = base64_decode(text, n, png);
    int rc = len < 0 ? err_set(e, ERR_USAGE, "a picture that is not base64") : check_size(png, len, e);
    if (rc == 0 && image_parse_png(out, png, (uint64_t)len, e))
        rc = err_set(e, ERR_USAGE, "a picture that cannot be read: it must be a whole PNG");
    free(png);
    return rc;
}
