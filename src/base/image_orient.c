/* image_orient.c - EXIF orientation of JPEG and PNG files (image_orient.h). */
#include "base/image_orient.h"

#include <string.h>

struct span {
    const unsigned char *data;
    size_t len;
};

/* ---- TIFF, the format of EXIF data ------------------------------------------------------------------- */

enum { TAG = 0x0112, SHORT = 3, LONG = 4, ENTRY = 12 };

static unsigned number(const unsigned char *p, int bytes, bool little)
{
    unsigned v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[little ? bytes - 1 - i : i];
    return v;
}

/* Returns the orientation in TIFF data, or 0 if it has none. */
static int orientation_in_tiff(struct span t)
{
    bool little = t.len >= 8 && !memcmp(t.data, "II", 2);
    if (t.len < 8 || (!little && memcmp(t.data, "MM", 2) != 0) || number(t.data + 2, 2, little) != 42)
        return 0;
    size_t at = number(t.data + 4, 4, little);
    if (at > t.len - 2)
        return 0;
    size_t n = number(t.data + at, 2, little);
    for (at += 2; n > 0 && at + ENTRY <= t.len; n--, at += ENTRY) {
        const unsigned char *p = t.data + at;
        unsigned type = number(p + 2, 2, little);
        if (number(p, 2, little) == TAG && (type == SHORT || type == LONG))
            return (int)number(p + 8, type == SHORT ? 2 : 4, little);
    }
    return 0;
}

/* Returns the orientation in XMP data: tiff:Orientation="6" or <tiff:Orientation>6; 0: none. */
static int orientation_in_xmp(struct span x)
{
    static const char name[] = "tiff:Orientation";
    const unsigned char *p = x.len ? memmem(x.data, x.len, name, strlen(name)) : NULL;
    if (!p)
        return 0;
    const unsigned char *end = x.data + x.len;
    p += strlen(name);
    p += p < end && *p == '>' ? 1 : end - p >= 2 && !memcmp(p, "=\"", 2) ? 2 : end - p;
    return p < end && *p >= '0' && *p <= '9' ? *p - '0' : 0;
}

/* ---- files ------------------------------------------------------------------------------------------- */

static bool begins(struct span s, const char *with, size_t n)
{
    return s.len >= n && !memcmp(s.data, with, n);
}

static struct span behind(struct span s, size_t n)
{
    return (struct span){s.data + n, s.len - n};
}

/* Finds the EXIF and XMP segments of a JPEG before the image data. */
static void read_jpeg(struct span f, struct span *exif, struct span *xmp)
{
    static const char exif_mark[] = "Exif\0", xmp_mark[] = "http://ns.adobe.com/xap/1.0/";
    for (size_t at = 2; at + 4 <= f.len && f.data[at] == 0xff;) {
        unsigned marker = f.data[at + 1], size = number(f.data + at + 2, 2, false);
        if (marker == 0xff) { /* fill byte */
            at++;
            continue;
        }
        if (marker == 0xda || marker == 0xd9 || size < 2 || at + 2 + size > f.len)
            return;
        struct span segment = {f.data + at + 4, size - 2};
        if (marker == 0xe1 && begins(segment, exif_mark, 6) && !exif->data)
            *exif = behind(segment, 6);
        if (marker == 0xe1 && begins(segment, xmp_mark, sizeof xmp_mark) && !xmp->data)
            *xmp = behind(segment, sizeof xmp_mark);
        at += 2 + size;
    }
}

static void read_png(struct span f, struct span *exif, struct span *xmp)
{
    static const char keyword[] = "XML:com.adobe.xmp";
    for (size_t at = 8; at + 12 <= f.len;) {
        size_t size = number(f.data + at, 4, false);
        if (size > f.len - at - 12)
            return;
        struct span chunk = {f.data + at + 8, size};
        if (!memcmp(f.data + at + 4, "eXIf", 4))
            *exif = chunk;
        if (!memcmp(f.data + at + 4, "iTXt", 4) && begins(chunk, keyword, sizeof keyword))
            *xmp = chunk;
        at += 12 + size;
    }
}

int image_orientation(const void *file, size_t len)
{
    struct span f = {file, len}, exif = {0}, xmp = {0};
    if (begins(f, "\xff\xd8", 2))
        read_jpeg(f, &exif, &xmp);
    else if (begins(f, "\x89PNG", 4))
        read_png(f, &exif, &xmp);
    if (begins(exif, "Exif\0", 6))
        exif = behind(exif, 6);
    int o = exif.data ? orientation_in_tiff(exif) : 0;
    o = o ? o : orientation_in_xmp(xmp);
    return o >= 1 && o <= 8 ? o : 1;
}

/* ---- rotation ---------------------------------------------------------------------------------------- */

int image_orient(struct image *im, int orientation, struct err *e)
{
    bool across = orientation >= 5,
         flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8,
         flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    struct image out;
    if (orientation <= 1 || orientation > 8)
        return 0;
    if (image_alloc(&out, across ? im->h : im->w, across ? im->w : im->h, e))
        return -1;
    for (int y = 0; y < out.h; y++)
        for (int x = 0; x < out.w; x++) {
            int u = across ? y : x, v = across ? x : y;
            u = flip_x ? im->w - 1 - u : u;
            v = flip_y ? im->h - 1 - v : v;
            memcpy(out.rgb + 3 * ((size_t)y * (size_t)out.w + (size_t)x),
                   im->rgb + 3 * ((size_t)v * (size_t)im->w + (size_t)u), 3);
        }
    image_free(im);
    *im = out;
    return 0;
}
