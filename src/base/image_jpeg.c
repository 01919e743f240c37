/* image_jpeg.c - decodes untrusted JPEG files with libjpeg (image.h).
 *
 * The library leaves by longjmp on errors. A truncated file or damaged pixels are only warnings in libjpeg
 * and errors here: half a screenshot must not be processed as if it were complete. */
#include "base/image.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

enum { MAX_SCANS = 64 }; /* in a progressive file: each scan costs as much as the image */

struct reading {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf leave;
    const struct image_limits *limits;
    bool over; /* the CPU time limit was exceeded */
    char why[JMSG_LENGTH_MAX];
};

static void give_up(j_common_ptr jpeg)
{
    struct reading *r = jpeg->client_data;
    jpeg->err->format_message(jpeg, r->why);
    longjmp(r->leave, 1);
}

/* Returns whether a warning is harmless: cameras and editors write bytes between segments and markers of
 * other versions, and no pixel is lost. */
static bool is_harmless(int code)
{
    return code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM ||
           code == JWRN_TOO_MUCH_DATA;
}

static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0 && !is_harmless(jpeg->err->msg_code))
        give_up(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
    struct reading *r = jpeg->client_data;
    r->over = effort_over(r->limits->effort, 8 * r->jpeg.image_width); /* a row of blocks */
    if (r->over)
        longjmp(r->leave, 1);
    if (r->jpeg.input_scan_number <= MAX_SCANS)
        return;
    snprintf(r->why, sizeof r->why, "more than %d scans", MAX_SCANS);
    longjmp(r->leave, 1);
}

/* Returns a * b / 255, rounded. */
static unsigned scaled(unsigned a, unsigned b)
{
    unsigned t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

/* Converts w pixels of CMYK, inverted as Adobe's programs write it, to RGB. */
static void to_rgb(JSAMPROW row, const JSAMPLE *cmyk, int w)
{
    for (int x = 0; x < w; x++, cmyk += 4, row += 3)
        for (int c = 0; c < 3; c++)
            row[c] = (JSAMPLE)(cmyk[3] - scaled(255u - cmyk[c], cmyk[3]));
}

static void read_rows(struct reading *r, struct image *im, const void *data, uint64_t len, struct err *e)
{
    struct jpeg_decompress_struct *j = &r->jpeg;
    jpeg_mem_src(j, data, (unsigned long)len);
    jpeg_read_header(j, TRUE);
    bool cmyk = j->num_components == 4,
         large = r->limits->pixels && (int64_t)j->image_width * j->image_height > r->limits->pixels;
    j->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    j->dct_method = JDCT_ISLOW;
    if (large || image_alloc(im, (int)j->image_width, (int)j->image_height, e)) {
        snprintf(r->why, sizeof r->why, "%ux%u pixels", j->image_width, j->image_height);
        longjmp(r->leave, 1);
    }
    JSAMPARRAY four = cmyk ? j->mem->alloc_sarray((j_common_ptr)j, JPOOL_IMAGE, 4 * j->image_width, 1) : NULL;
    jpeg_start_decompress(j);
    while (j->output_scanline < j->output_height) {
        JSAMPROW row = im->rgb + (size_t)j->output_scanline * 3 * (size_t)im->w;
        jpeg_read_scanlines(j, four ? four : &row, 1);
        if (four)
            to_rgb(row, four[0], im->w);
    }
    jpeg_finish_decompress(j);
}

/* Skips other segments, and bytes between segments, as the library does. */
bool image_jpeg_size(const uint8_t *jpeg, size_t n, uint32_t *w, uint32_t *h)
{
    for (size_t at = 2; at + 9 <= n;) {
        unsigned marker = jpeg[at + 1];
        bool bare = marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8);
        if (jpeg[at] != 0xff || marker == 0xff) {
            at++;
        } else if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
            *w = (uint32_t)jpeg[at + 7] << 8 | jpeg[at + 8];
            *h = (uint32_t)jpeg[at + 5] << 8 | jpeg[at + 6];
            return true;
        } else {
            at += 2u + (bare ? 0u : (size_t)jpeg[at + 2] << 8 | jpeg[at + 3]);
        }
    }
    return false;
}

int image_parse_jpeg(struct image *im, const void *data, uint64_t len, struct err *e)
{
    return image_parse_jpeg_within(im, data, len, &(struct image_limits){0}, e);
}

int image_parse_jpeg_within(struct image *im, const void *data, uint64_t len, const struct image_limits *l,
                            struct err *e)
{
    struct reading r = {.why = "", .limits = l};
    volatile int rc = 0;
    *im = (struct image){0};
    r.jpeg.err = jpeg_std_error(&r.errors);
    r.errors.error_exit = give_up;
    r.errors.emit_message = on_message;
    r.progress.progress_monitor = on_progress;
    r.jpeg.client_data = &r;
    if (setjmp(r.leave) == 0) {
        jpeg_create_decompress(&r.jpeg);
        r.jpeg.progress = &r.progress;
        effort_begin(l->effort);
        read_rows(&r, im, data, len, e);
    } else {
        rc = r.over ? effort_error(l->effort, "decoding the images", e)
                    : err_set(e, ERR_ENV, "not a readable JPEG: %s", r.why);
        image_free(im);
    }
    jpeg_destroy_decompress(&r.jpeg);
    return rc;
}
