/* pixels.c - converts pixels of the X server to RGB, with a fast path for 32-bit BGRX. */
#include "screen/x11/x11_impl.h"

#include <stddef.h>

struct channel {
    int shift, bits;
};

static struct channel channel_of(unsigned long mask)
{
    struct channel c = {0, 0};
    for (; mask && !(mask & 1); mask >>= 1)
        c.shift++;
    for (; mask & 1; mask >>= 1)
        c.bits++;
    return c;
}

/* Scales v from `bits` bits to 8; the largest value becomes 255. */
static uint8_t scale(uint32_t v, int bits)
{
    if (bits == 8)
        return (uint8_t)v;
    if (bits > 8)
        return (uint8_t)(v >> (bits - 8));
    uint32_t max = (1u << bits) - 1;
    return bits ? (uint8_t)((v * 255 + max / 2) / max) : 0;
}

static uint32_t load(const uint8_t *p, int bytes, bool msb_first)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << 8 * (msb_first ? bytes - 1 - i : i);
    return v;
}

static void row_bgrx(const uint8_t *from, uint8_t *to, int w)
{
    for (int x = 0; x < w; x++) {
        to[3 * x] = from[4 * x + 2];
        to[3 * x + 1] = from[4 * x + 1];
        to[3 * x + 2] = from[4 * x];
    }
}

int pixels_to_rgb(const XImage *from, uint8_t *rgb, int w, int h, struct err *e)
{
    struct channel r = channel_of(from->red_mask), g = channel_of(from->green_mask),
                   b = channel_of(from->blue_mask);
    int bytes = from->bits_per_pixel / 8;
    bool msb = from->byte_order == MSBFirst;
    if (from->format != ZPixmap || from->bits_per_pixel % 8 || bytes < 2 || bytes > 4 || !r.bits || !g.bits ||
        !b.bits || w > from->width || h > from->height)
        return err_set(e, ERR_ENV, "unsupported pixel format: %d bits per pixel, masks %lx %lx %lx",
                       from->bits_per_pixel, from->red_mask, from->green_mask, from->blue_mask);

    bool bgrx = bytes == 4 && !msb && from->red_mask == 0xff0000 && from->green_mask == 0xff00 &&
                from->blue_mask == 0xff;
    for (int y = 0; y < h; y++) {
        const uint8_t *in = (const uint8_t *)from->data + (ptrdiff_t)y * from->bytes_per_line;
        uint8_t *out = rgb + (ptrdiff_t)y * w * 3;
        if (bgrx) {
            row_bgrx(in, out, w);
            continue;
        }
        for (int x = 0; x < w; x++, in += bytes, out += 3) {
            uint32_t v = load(in, bytes, msb);
            out[0] = scale((uint32_t)((v & from->red_mask) >> r.shift), r.bits);
            out[1] = scale((uint32_t)((v & from->green_mask) >> g.shift), g.bits);
            out[2] = scale((uint32_t)((v & from->blue_mask) >> b.shift), b.bits);
        }
    }
    return 0;
}

void pixels_blend(struct image *to, const unsigned long *argb, int x0, int y0, int w, int h)
{
    for (int y = 0; y < h; y++) {
        if (y0 + y < 0 || y0 + y >= to->h)
            continue;
        for (int x = 0; x < w; x++) {
            if (x0 + x < 0 || x0 + x >= to->w)
                continue;
            uint32_t p = (uint32_t)argb[(ptrdiff_t)y * w + x], a = p >> 24;
            uint8_t *out = to->rgb + 3 * ((ptrdiff_t)(y0 + y) * to->w + x0 + x);
            for (int c = 0; c < 3; c++) {
                uint32_t v = (p >> (16 - 8 * c) & 255) + (out[c] * (255 - a) + 127) / 255;
                out[c] = (uint8_t)(v > 255 ? 255 : v);
            }
        }
    }
}
