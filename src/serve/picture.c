/* picture.c - checks, measures and decodes the images of a request; see picture.h. */
#include "serve/picture.h"

#include "base/image_orient.h"

#include <curl/curl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* leading bytes of a URL that contain the size of the image in most files */
enum { HEADER = 256, LONG_HEADER = 128 << 10 };

/* ---- base64 ------------------------------------------------------------------------------------------ */

static int digit_of(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

long base64_decode(const char *text, size_t n, unsigned char *out)
{
    unsigned bits = 0;
    long at = 0, digits = 0;
    size_t i = 0;
    for (; i < n && text[i] != '='; i++) {
        int d = digit_of((unsigned char)text[i]);
        if (is_space(text[i]))
            continue;
        if (d < 0)
            return -1;
        bits = bits << 6 | (unsigned)d;
        if (digits % 4)
            out[at++] = (unsigned char)(bits >> (6 - digits % 4 * 2));
        digits++;
    }
    for (; i < n; i++)
        if (text[i] != '=' && !is_space(text[i]))
            return -1;
    return digits % 4 == 1 ? -1 : at;
}

/* ---- the URL ----------------------------------------------------------------------------------------- */

static const char *skip_space(const char *text)
{
    while (is_space(*text))
        text++;
    return text;
}

/* Returns whether the text is base64 of a PNG or JPEG file without "data:". */
static bool is_bare(const char *url)
{
    return !strncmp(url, "iVBORw0KGgo", 11) || !strncmp(url, "/9j/", 4) || !strncmp(url, "_9j_", 4);
}

int picture_check(const char *url, struct err *e)
{
    url = skip_space(url);
    if (!strncasecmp(url, "data:", 5))
        return strchr(url, ',') ? 0 : err_set(e, ERR_USAGE, "a data URL without a comma: '%.40s'", url);
    return is_bare(url)
               ? 0
               : err_set(e, ERR_USAGE,
                         "an image must be a data URL ('data:image/png;base64,...'), not '%.40s': this "
                         "server does not fetch URLs",
                         url);
}

/* Returns the bytes of the file contained in the first `most` bytes of a URL; the caller frees them. Returns
 * NULL with ERR_USAGE, or with ERR_ENV if memory is short. */
static unsigned char *read_url(const char *url, size_t most, long *len, struct err *e)
{
    const char *comma = memchr(url, ',', most), *text = comma ? comma + 1 : url;
    bool base64 = !comma;
    for (const char *p = url; comma && p < comma; p++)
        base64 = base64 || (*p == ';' && !strncasecmp(skip_space(p + 1), "base64", 6));
    size_t n = most - (size_t)(text - url);
    bool escaped = n && n <= INT_MAX && memchr(text, '%', n);
    int left = (int)n;
    char *plain = escaped ? curl_easy_unescape(NULL, text, left, &left) : NULL;
    unsigned char *file = malloc(n + 3);
    if (!file || (escaped && !plain)) {
        err_set(e, ERR_ENV, "out of memory for an image of %zu bytes", n);
    } else {
        if (plain) {
            n = (size_t)left;
            text = plain;
        }
        *len = base64 ? base64_decode(text, n, file) : (long)n;
        if (!base64)
            memcpy(file, text, n);
        if (*len <= 0)
            err_set(e, ERR_USAGE, *len ? "invalid base64 in an image" : "an image without data");
    }
    curl_free(plain);
    if (file && *len > 0)
        return file;
    free(file);
    return NULL;
}

/* ---- the file ---------------------------------------------------------------------------------------- */

/* Checks the size from the header, so that a small file cannot unpack to a large image. */
static int check_size(uint64_t w, uint64_t h, struct err *e)
{
    if (w <= IMAGE_MAX_SIDE && h <= IMAGE_MAX_SIDE && w * h <= PICTURE_MAX_PIXELS)
        return 0;
    return err_set(e, ERR_USAGE,
                   "an image of %llux%llu pixels is too large: at most %d million, and %d per side",
                   (unsigned long long)w, (unsigned long long)h, PICTURE_MAX_PIXELS >> 20, IMAGE_MAX_SIDE);
}

static int parse(const unsigned char *file, long len, struct effort *w, struct image *out, struct err *e)
{
    struct err why = ERR_INIT;
    const struct image_limits limits = {PICTURE_MAX_PIXELS, w};
    const char *format = image_format((const char *)file, (size_t)len);
    bool jpeg = format && !strcmp(format, "JPEG"), png = format && !strcmp(format, "PNG");
    uint32_t wide, high;
    if (!jpeg && !png)
        return err_set(e, ERR_USAGE, "an image must be PNG or JPEG, not %s%s",
                       format ? "" : "an unknown format", format ? format : "");
    if (image_size(file, (size_t)len, &wide, &high, NULL))
        return err_set(e, ERR_USAGE, "cannot read an image: %s file truncated before its size", format);
    if (check_size(wide, high, e))
        return -1;
    if (jpeg ? image_parse_jpeg_within(out, file, (uint64_t)len, &limits, &why)
             : image_parse_png_within(out, file, (uint64_t)len, &limits, &why))
        return effort_over(w, 0) ? err_set(e, why.kind, "%s", why.text)
                                 : err_set(e, ERR_USAGE, "cannot read an image: %s", why.text);
    return image_orient(out, image_orientation(file, (size_t)len), e);
}

int picture_decode(const char *url, struct effort *w, struct image *out, struct err *e)
{
    long len = 0;
    *out = (struct image){0};
    url = skip_space(url);
    if (picture_check(url, e))
        return -1;
    autofree unsigned char *file = read_url(url, strlen(url), &len, e);
    return file ? parse(file, len, w, out, e) : -1;
}

/* ---- the size ---------------------------------------------------------------------------------------- */

int picture_size(const char *url, int *w, int *h, struct err *e)
{
    long len = 0;
    struct err why = ERR_INIT;
    uint32_t wide = 0, high = 0;
    *w = *h = 0;
    url = skip_space(url);
    if (picture_check(url, e))
        return -1;
    autofree unsigned char *file = read_url(url, strlen(url), &len, e);
    if (!file)
        return -1;
    int rc = image_size(file, (size_t)len, &wide, &high, &why);
    rc = rc ? err_set(e, ERR_USAGE, "%s", why.text) : check_size(wide, high, e);
    bool turned = rc == 0 && image_orientation(file, (size_t)len) > 4;
    if (rc == 0) {
        *w = (int)(turned ? high : wide);
        *h = (int)(turned ? wide : high);
    }
    return rc;
}

int64_t picture_pixels(const char *url)
{
    static const size_t begins[] = {HEADER, LONG_HEADER, SIZE_MAX};
    uint32_t w = 0, h = 0;
    url = skip_space(url);
    for (size_t i = 0; i < sizeof begins / sizeof *begins && !w; i++) {
        long len = 0;
        size_t n = strnlen(url, begins[i]);
        unsigned char *file = read_url(url, n, &len, NULL);
        if (!file) /* a single base64 digit at the end is less than a byte */
            file = read_url(url, n - (n > 0), &len, NULL);
        if (file)
            image_size(file, (size_t)len, &w, &h, NULL);
        free(file);
        if (n < begins[i])
            break;
    }
    return w <= IMAGE_MAX_SIDE && h <= IMAGE_MAX_SIDE ? (int64_t)w * h
                                                      : 0; /* larger ones are rejected later */
}
