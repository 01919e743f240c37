/* picture.c - see picture.h. */
#include "serve/picture.h"

#include <stdlib.h>
#include <string.h>

static const char png_url[] = "data:image/png;base64,", jpeg_url[] = "data:image/jpeg;base64,";

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

static bool begins(const char *url, const char *with)
{
    return !strncmp(url, with, strlen(with));
}

int picture_check(const char *url, struct err *e)
{
    if (begins(url, png_url) || begins(url, jpeg_url))
        return 0;
    if (begins(url, "data:"))
        return err_set(e, ERR_USAGE, "a picture must be a PNG or a JPEG: '%s...', not '%.40s'", png_url, url);
    return err_set(e, ERR_USAGE, "a picture must be a data URL ('%s...'): this server fetches nothing",
                   png_url);
}

/* The size stands in the header: a small file must not unpack to a large picture. */
static int check_png(const unsigned char *png, long n, struct err *e)
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

static int parse(const unsigned char *file, long len, bool jpeg, struct image *out, struct err *e)
{
    struct err why = ERR_INIT;
    if (!jpeg && check_png(file, len, e))
        return -1;
    if (jpeg ? image_parse_jpeg(out, file, (uint64_t)len, &why)
             : image_parse_png(out, file, (uint64_t)len, &why))
        return err_set(e, ERR_USAGE, "a picture that cannot be read: %s", why.text);
    if ((int64_t)out->w * out->h <= PICTURE_MAX_PIXELS)
        return 0;
    err_set(e, ERR_USAGE, "a picture of %dx%d pixels; at most %d million", out->w, out->h,
            PICTURE_MAX_PIXELS >> 20);
    image_free(out);
    return -1;
}

int picture_decode(const char *url, struct image *out, struct err *e)
{
    *out = (struct image){0};
    if (picture_check(url, e))
        return -1;
    bool jpeg = begins(url, jpeg_url);
    const char *text = url + strlen(jpeg ? jpeg_url : png_url);
    size_t n = strlen(text);
    unsigned char *file = xmalloc(n / 4 * 3 + 3, 1);
    long len = base64_decode(text, n, file);
    int rc = len < 0 ? err_set(e, ERR_USAGE, "a picture that is not base64") : parse(file, len, jpeg, out, e);
    free(file);
    return rc;
}
