/* picture.c - see picture.h. */
#include "serve/picture.h"

#include "base/image_orient.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

static int hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

/* Resolves %XX; returns the bytes in out, which has room for strlen(text). */
static size_t unescape(const char *text, char *out)
{
    size_t n = 0;
    for (; *text; text++) {
        int high = *text == '%' ? hex_of(text[1]) : -1, low = high < 0 ? -1 : hex_of(text[2]);
        out[n++] = (char)(low < 0 ? *text : high << 4 | low);
        text += low < 0 ? 0 : 2;
    }
    return n;
}

static const char *skip_space(const char *text)
{
    while (is_space(*text))
        text++;
    return text;
}

/* Base64 of a PNG's or a JPEG's first bytes. */
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
                         "a picture must be a data URL ('data:image/png;base64,...'), not '%.40s': this "
                         "server fetches nothing",
                         url);
}

/* The bytes of a file that a URL holds, for the caller to free; NULL with ERR_USAGE. */
static unsigned char *read_url(const char *url, long *len, struct err *e)
{
    const char *comma = strchr(url, ','), *text = comma ? comma + 1 : url;
    bool base64 = !comma;
    for (const char *p = url; comma && p < comma; p++)
        base64 = base64 || (*p == ';' && !strncasecmp(skip_space(p + 1), "base64", 6));
    size_t n = strlen(text);
    char *plain = NULL;
    if (!base64 || memchr(text, '%', n)) {
        plain = xmalloc(n + 1, 1);
        n = unescape(text, plain);
        text = plain;
    }
    unsigned char *file = xmalloc(n + 3, 1);
    *len = base64 ? base64_decode(text, n, file) : (long)n;
    if (!base64)
        memcpy(file, text, n);
    free(plain);
    if (*len > 0)
        return file;
    free(file);
    err_set(e, ERR_USAGE, *len ? "a picture that is not base64" : "a picture without data");
    return NULL;
}

/* ---- the file ---------------------------------------------------------------------------------------- */

/* The size stands in the header: a small file must not unpack to a large picture. */
static int check_size(uint64_t w, uint64_t h, struct err *e)
{
    if (w <= IMAGE_MAX_SIDE && h <= IMAGE_MAX_SIDE && w * h <= PICTURE_MAX_PIXELS)
        return 0;
    return err_set(e, ERR_USAGE, "a picture of %llux%llu pixels; at most %d million, and %d on a side",
                   (unsigned long long)w, (unsigned long long)h, PICTURE_MAX_PIXELS >> 20, IMAGE_MAX_SIDE);
}

static uint64_t number_at(const unsigned char *p)
{
    return (uint64_t)p[0] << 24 | (uint64_t)p[1] << 16 | (uint64_t)p[2] << 8 | p[3];
}

static int check_png(const unsigned char *png, long n, struct err *e)
{
    if (n < 24 || memcmp(png + 12, "IHDR", 4) != 0)
        return err_set(e, ERR_USAGE, "a picture that is cut off: a PNG without its size");
    return check_size(number_at(png + 16), number_at(png + 20), e);
}

/* The size of the first frame of a JPEG is checked before its pixels get memory. */
static int check_jpeg(const unsigned char *jpeg, long n, struct err *e)
{
    for (long at = 2; at + 9 <= n && jpeg[at] == 0xff;) {
        unsigned marker = jpeg[at + 1];
        bool bare = marker == 0xff || marker == 1 || (marker >= 0xd0 && marker <= 0xd7);
        if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc)
            return check_size((uint64_t)jpeg[at + 7] << 8 | jpeg[at + 8],
                              (uint64_t)jpeg[at + 5] << 8 | jpeg[at + 6], e);
        at += bare ? marker == 0xff ? 1 : 2 : 2 + (jpeg[at + 2] << 8 | jpeg[at + 3]);
    }
    return 0;
}

static int parse(const unsigned char *file, long len, struct image *out, struct err *e)
{
    struct err why = ERR_INIT;
    const char *format = image_format((const char *)file, (size_t)len);
    bool jpeg = format && !strcmp(format, "JPEG"), png = format && !strcmp(format, "PNG");
    if (!jpeg && !png)
        return err_set(e, ERR_USAGE, "a picture must be a PNG or a JPEG, and this is %s%s",
                       format ? "a " : "neither", format ? format : "");
    if (jpeg ? check_jpeg(file, len, e) : check_png(file, len, e))
        return -1;
    if (jpeg ? image_parse_jpeg(out, file, (uint64_t)len, &why)
             : image_parse_png(out, file, (uint64_t)len, &why))
        return err_set(e, ERR_USAGE, "a picture that cannot be read: %s", why.text);
    return image_orient(out, image_orientation(file, (size_t)len), e);
}

int picture_decode(const char *url, struct image *out, struct err *e)
{
    long len;
    *out = (struct image){0};
    url = skip_space(url);
    if (picture_check(url, e))
        return -1;
    unsigned char *file = read_url(url, &len, e);
    int rc = file ? parse(file, len, out, e) : -1;
    free(file);
    return rc;
}
