/* image.c - RGB images: PNG, comparison, cropping, scaling (image.h). */
#include "base/image.h"

#include "base/file.h"

#include <spng.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { PNG_MAX_BYTES = 128 << 20 };

static size_t image_bytes(const struct image *im)
{
    return (size_t)im->w * (size_t)im->h * 3;
}

int image_alloc(struct image *im, int w, int h, struct err *e)
{
    *im = (struct image){0};
    if (w < 1 || h < 1 || w > IMAGE_MAX_SIDE || h > IMAGE_MAX_SIDE || (int64_t)w * h > IMAGE_MAX_PIXELS)
        return err_set(e, ERR_ENV, "image of %dx%d pixels refused: sides 1 to %d, at most %d million pixels",
                       w, h, IMAGE_MAX_SIDE, IMAGE_MAX_PIXELS >> 20);
    im->rgb = calloc((size_t)w * (size_t)h, 3);
    if (!im->rgb)
        return err_set(e, ERR_ENV, "out of memory for an image of %dx%d pixels", w, h);
    im->w = w;
    im->h = h;
    return 0;
}

void image_free(struct image *im)
{
    free(im->rgb);
    *im = (struct image){0};
}

int image_copy(struct image *dst, const struct image *src, struct err *e)
{
    if (image_alloc(dst, src->w, src->h, e))
        return -1;
    memcpy(dst->rgb, src->rgb, image_bytes(src));
    return 0;
}

uint64_t image_hash(const struct image *im)
{
    return XXH3_64bits_withSeed(im->rgb, image_bytes(im), (uint64_t)im->w << 32 | (uint32_t)im->h);
}

bool image_equal(const struct image *a, const struct image *b)
{
    return a->w == b->w && a->h == b->h && (a->w == 0 || !memcmp(a->rgb, b->rgb, image_bytes(a)));
}

/* ---- PNG ----------------------------------------------------------------------------------------- */

enum { SIGNATURE = 8, CHUNK_HEAD = 8, CHUNK = 12 };

struct png_source {
    const uint8_t *at, *end;
    size_t left; /* bytes left of the signature or chunk being read */
};

static uint32_t number_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Advances to the next critical chunk. A truncated one is read, so that it fails. */
static void next_chunk(struct png_source *s)
{
    for (;;) {
        size_t rest = (size_t)(s->end - s->at);
        uint64_t size = rest < CHUNK_HEAD ? rest : (uint64_t)number_at(s->at) + CHUNK;
        bool ancillary = rest >= CHUNK_HEAD && s->at[4] & 0x20;
        s->left = size < rest ? (size_t)size : rest;
        if (!ancillary || size > rest)
            return;
        s->at += size;
    }
}

static int read_png(spng_ctx *ctx, void *user, void *to, size_t n)
{
    struct png_source *s = user;
    for (uint8_t *out = to; n;) {
        if (!s->left)
            next_chunk(s);
        size_t part = n < s->left ? n : s->left;
        if (!part)
            return SPNG_IO_EOF;
        memcpy(out, s->at, part);
        s->at += part;
        s->left -= part;
        out += part;
        n -= part;
    }
    return 0;
}

static int decode_rows(struct image *im, spng_ctx *ctx, struct effort *w)
{
    size_t row = 3 * (size_t)im->w;
    struct spng_row_info info;
    int rc = spng_decode_image(ctx, NULL, 0, SPNG_FMT_RGB8, SPNG_DECODE_PROGRESSIVE);
    effort_begin(w);
    while (!rc && !(rc = spng_get_row_info(ctx, &info))) {
        if (effort_over(w, (unsigned)im->w))
            return SPNG_EUSER_HEIGHT;
        rc = spng_decode_row(ctx, im->rgb + info.row_num * row, row);
    }
    return rc == SPNG_EOI ? 0 : rc;
}

static int decode_png(struct image *im, spng_ctx *ctx, struct png_source *from, const struct image_limits *l)
{
    struct spng_ihdr ih;
    size_t size;
    int rc;
    if ((rc = spng_set_image_limits(ctx, IMAGE_MAX_SIDE, IMAGE_MAX_SIDE)) ||
        (rc = spng_set_chunk_limits(ctx, PNG_MAX_BYTES, PNG_MAX_BYTES)) ||
        (rc = spng_set_png_stream(ctx, read_png, from)) || (rc = spng_get_ihdr(ctx, &ih)) ||
        (rc = spng_decoded_image_size(ctx, SPNG_FMT_RGB8, &size)))
        return rc;
    if ((l->pixels && (int64_t)ih.width * ih.height > l->pixels) ||
        image_alloc(im, (int)ih.width, (int)ih.height, NULL))
        return SPNG_EUSER_WIDTH;
    if (size != image_bytes(im))
        return SPNG_EBUFSIZ;
    rc = decode_rows(im, ctx, l->effort);
    return rc ? rc : spng_decode_chunks(ctx); /* up to IEND, so that a truncated file fails */
}

int image_size(const void *data, size_t len, uint32_t *w, uint32_t *h, struct err *e)
{
    const uint8_t *p = data;
    const char *format = image_format(data, len);
    bool png = format && !strcmp(format, "PNG") && len >= 24 && !memcmp(p + 12, "IHDR", 4);
    *w = *h = 0;
    if (png) {
        *w = number_at(p + 16);
        *h = number_at(p + 20);
        return 0;
    }
    if (format && !strcmp(format, "JPEG") && image_jpeg_size(p, len, w, h))
        return 0;
    return err_set(e, ERR_ENV, "image header without a size");
}

const char *image_format(const char *data, size_t len)
{
    static const struct {
        const char *name, *begins;
        size_t at;
    } known[] = {{"PNG", "\x89PNG\r\n\x1a\n", 0},
                 {"JPEG", "\xff\xd8\xff", 0},
                 {"GIF", "GIF8", 0},
                 {"WebP", "WEBP", 8},
                 {"BMP", "BM", 0},
                 {"TIFF", "II*", 0},
                 {"TIFF", "MM", 0},
                 {"AVIF or HEIC", "ftyp", 4},
                 {"PPM", "P6", 0},
                 {"PDF", "%PDF", 0},
                 {"SVG", "<svg", 0}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t n = strlen(known[i].begins);
        if (len >= known[i].at + n && !memcmp(data + known[i].at, known[i].begins, n))
            return known[i].name;
    }
    return NULL;
}

int image_parse_png_within(struct image *im, const void *data, uint64_t len, const struct image_limits *l,
                           struct err *e)
{
    struct png_source from = {.at = data, .end = (const uint8_t *)data + len};
    from.left = len < SIGNATURE ? len : SIGNATURE;
    *im = (struct image){0};
    spng_ctx *ctx = spng_ctx_new(0);
    if (!ctx)
        return err_set(e, ERR_ENV, "out of memory while reading a PNG");
    int rc = decode_png(im, ctx, &from, l);
    spng_ctx_free(ctx);
    if (!rc)
        return 0;
    image_free(im);
    if (effort_over(l->effort, 0))
        return effort_error(l->effort, "decoding the images", e);
    return err_set(e, ERR_ENV, "not a readable PNG: %s", spng_strerror(rc));
}

int image_parse_png(struct image *im, const void *data, uint64_t len, struct err *e)
{
    return image_parse_png_within(im, data, len, &(struct image_limits){0}, e);
}

int image_read_png(struct image *im, const char *path, struct err *e)
{
    autofree char *data = NULL;
    size_t len;
    *im = (struct image){0};
    if (file_read(path, PNG_MAX_BYTES, &data, &len, e))
        return -1;
    int rc = image_parse_png(im, data, len, e);
    const char *other = rc ? image_format(data, len) : NULL;
    if (other && strcmp(other, "PNG") != 0)
        err_set(
            e, ERR_ENV,
            "file format is %s, only PNG is supported; to convert it: convert '%s' picture.png (ImageMagick)",
            other, path);
    return rc ? err_prefix(e, "'%s'", path) : 0;
}

static int encode_png(const struct image *im, spng_ctx *ctx)
{
    struct spng_ihdr ih = {.width = (uint32_t)im->w,
                           .height = (uint32_t)im->h,
                           .bit_depth = 8,
                           .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
    int rc;
    if ((rc = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1)) ||
        (rc = spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL, 1)) || (rc = spng_set_ihdr(ctx, &ih)))
        return rc;
    return spng_encode_image(ctx, im->rgb, image_bytes(im), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
}

int image_encode_png(const struct image *im, void **png, uint64_t *len, struct err *e)
{
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    *png = NULL;
    *len = 0;
    if (!ctx)
        return err_set(e, ERR_ENV, "out of memory while encoding a PNG");
    int rc = encode_png(im, ctx), get = 0;
    size_t n = 0;
    *png = rc ? NULL : spng_get_png_buffer(ctx, &n, &get);
    *len = n;
    spng_ctx_free(ctx);
    return *png ? 0 : err_set(e, ERR_ENV, "cannot encode a PNG: %s", spng_strerror(rc ? rc : get));
}

int image_write_png(const struct image *im, const char *path, struct err *e)
{
    autofree void *png = NULL;
    uint64_t len = 0;
    if (image_encode_png(im, &png, &len, e))
        return err_prefix(e, "'%s'", path);
    return file_write(path, png, len, e);
}

double image_tile_difference(const struct image *a, const struct image *b, int tx, int ty)
{
    int x0 = tx * IMAGE_TILE, y0 = ty * IMAGE_TILE;
    int x1 = x0 + IMAGE_TILE < a->w ? x0 + IMAGE_TILE : a->w,
        y1 = y0 + IMAGE_TILE < a->h ? y0 + IMAGE_TILE : a->h;
    int64_t sum = 0;
    for (int y = y0; y < y1; y++) {
        size_t at = ((size_t)y * (size_t)a->w + (size_t)x0) * 3;
        for (size_t i = at; i < at + (size_t)(x1 - x0) * 3; i++)
            sum += abs(a->rgb[i] - b->rgb[i]);
    }
    return (double)sum / ((double)(x1 - x0) * (y1 - y0) * 3);
}

double image_tiles_changed(const struct image *a, const struct image *b, double level)
{
    if (a->w != b->w || a->h != b->h)
        return 1.0;
    int cols = (a->w + IMAGE_TILE - 1) / IMAGE_TILE, rows = (a->h + IMAGE_TILE - 1) / IMAGE_TILE, changed = 0;
    for (int ty = 0; ty < rows; ty++)
        for (int tx = 0; tx < cols; tx++)
            changed += image_tile_difference(a, b, tx, ty) > level;
    int tiles = cols * rows;
    return tiles > 0 ? (double)changed / tiles : 0;
}

static void fade_tile(struct image *im, int x0, int y0, int x1, int y1)
{
    for (int y = y0; y < y1; y++) {
        uint8_t *p = im->rgb + ((size_t)y * (size_t)im->w + (size_t)x0) * 3;
        for (int x = x0; x < x1; x++, p += 3) {
            int grey = (p[0] * 2 + p[1] * 5 + p[2]) / 8;
            p[0] = p[1] = p[2] = (uint8_t)(192 + grey / 4);
        }
    }
}

static void frame_tile(struct image *im, int x0, int y0, int x1, int y1)
{
    static const uint8_t mark[3] = {232, 32, 90};
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            if (x < x0 + 1 || y < y0 + 1 || x >= x1 - 1 || y >= y1 - 1)
                memcpy(im->rgb + ((size_t)y * (size_t)im->w + (size_t)x) * 3, mark, 3);
}

int image_difference(struct image *out, const struct image *a, const struct image *b, double level,
                     struct err *e)
{
    bool same_size = a->w == b->w && a->h == b->h;
    if (image_copy(out, b, e))
        return -1;
    for (int y = 0; y < b->h; y += IMAGE_TILE) {
        for (int x = 0; x < b->w; x += IMAGE_TILE) {
            int x1 = x + IMAGE_TILE < b->w ? x + IMAGE_TILE : b->w,
                y1 = y + IMAGE_TILE < b->h ? y + IMAGE_TILE : b->h;
            bool same = same_size && image_tile_difference(a, b, x / IMAGE_TILE, y / IMAGE_TILE) <= level;
            (same ? fade_tile : frame_tile)(out, x, y, x1, y1);
        }
    }
    return 0;
}

static bool pixel_differs(const uint8_t *p, const uint8_t *q, int tolerance)
{
    return abs(p[0] - q[0]) > tolerance || abs(p[1] - q[1]) > tolerance || abs(p[2] - q[2]) > tolerance;
}

double image_pixels_changed(const struct image *a, const struct image *b, int tolerance)
{
    if (a->w != b->w || a->h != b->h)
        return 1.0;
    size_t n = (size_t)a->w * (size_t)a->h, changed = 0;
    for (size_t i = 0; i < n; i++)
        changed += pixel_differs(a->rgb + 3 * i, b->rgb + 3 * i, tolerance);
    return n ? (double)changed / (double)n : 0;
}

int image_mark_pixels(struct image *out, const struct image *a, const struct image *b, int tolerance,
                      struct err *e)
{
    static const uint8_t mark[3] = {232, 32, 90};
    if (image_copy(out, b, e))
        return -1;
    fade_tile(out, 0, 0, out->w, out->h);
    for (size_t i = 0; i < (size_t)a->w * (size_t)a->h; i++)
        if (pixel_differs(a->rgb + 3 * i, b->rgb + 3 * i, tolerance))
            memcpy(out->rgb + 3 * i, mark, 3);
    return 0;
}

int image_crop(struct image *out, const struct image *im, int x, int y, int w, int h, struct err *e)
{
    if (image_alloc(out, w, h, e))
        return -1;
    for (int row = 0; row < h; row++)
        memcpy(out->rgb + (size_t)row * (size_t)w * 3,
               im->rgb + ((size_t)(y + row) * (size_t)im->w + (size_t)x) * 3, (size_t)w * 3);
    return 0;
}

double image_native_scale(int w, int h, int side)
{
    double longest = w > h ? w : h, enlarged = 1.5;
    if ((double)w * h * enlarged * enlarged <= 640 * 480 && longest * enlarged <= side)
        return enlarged;
    return longest > side ? side / longest : 1;
}

int image_shrink(struct image *out, const struct image *in, int w, int h, struct err *e)
{
    *out = (struct image){0};
    if (w > in->w || h > in->h)
        return err_set(e, ERR_ENV, "an image of %dx%d pixels cannot be shrunk to %dx%d", in->w, in->h, w, h);
    if (image_alloc(out, w, h, e))
        return -1;
    for (int y = 0; y < h; y++) {
        int y0 = (int)((int64_t)y * in->h / h), y1 = (int)((int64_t)(y + 1) * in->h / h);
        for (int x = 0; x < w; x++) {
            int x0 = (int)((int64_t)x * in->w / w), x1 = (int)((int64_t)(x + 1) * in->w / w);
            uint64_t sum[3] = {0}, n = (uint64_t)(y1 - y0) * (uint64_t)(x1 - x0);
            for (int v = y0; v < y1; v++)
                for (int u = x0; u < x1; u++)
                    for (int c = 0; c < 3; c++)
                        sum[c] += in->rgb[((size_t)v * (size_t)in->w + (size_t)u) * 3 + (size_t)c];
            for (int c = 0; c < 3; c++)
                out->rgb[((size_t)y * (size_t)w + (size_t)x) * 3 + (size_t)c] =
                    (uint8_t)((sum[c] + n / 2) / n);
        }
    }
    return 0;
}

void image_draw_ring(struct image *im, int cx, int cy, int r, int thick, const uint8_t rgb[3])
{
    int64_t outer = (int64_t)r * r, inner = (int64_t)(r - thick) * (r - thick);
    for (int y = cy - r; y <= cy + r; y++) {
        for (int x = cx - r; x <= cx + r; x++) {
            int64_t d = (int64_t)(x - cx) * (x - cx) + (int64_t)(y - cy) * (y - cy);
            if (x >= 0 && y >= 0 && x < im->w && y < im->h && d <= outer && d >= inner)
                memcpy(im->rgb + ((size_t)y * (size_t)im->w + (size_t)x) * 3, rgb, 3);
        }
    }
}
