/* index.c - parses frames.idx and checks screenshots against it; see index.h. */
#include "trace/index.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { LINE_MAX_BYTES = 200 };

static bool parse_line(const char *line, struct index_frame *f)
{
    unsigned long long pixels, file;
    long long ns;
    int got = sscanf(line, "%d %16llx %d %d %lld %16llx", &f->number, &pixels, &f->w, &f->h, &ns, &file);
    if (got < 5 || f->number < 0 || f->number >= INDEX_MAX_FRAMES || f->w < 1 || f->h < 1 ||
        f->w > IMAGE_MAX_SIDE || f->h > IMAGE_MAX_SIDE)
        return false;
    f->pixels = pixels;
    f->has_file = got == 6;
    f->file = f->has_file ? file : 0;
    return true;
}

int index_parse(struct frame_index *x, const char *data, size_t len, struct err *e)
{
    for (const char *p = data, *end = data + len; p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        char line[LINE_MAX_BYTES];
        struct index_frame f = {0};
        if (!stop) /* incomplete */
            break;
        size_t n = (size_t)(stop - p);
        bool fits = n < sizeof line;
        memcpy(line, p, fits ? n : 0);
        line[fits ? n : 0] = 0;
        p = stop + 1;
        if (!parse_line(line, &f)) {
            x->skipped++;
            continue;
        }
        if (x->n == INDEX_MAX_FRAMES)
            return err_set(e, ERR_ENV, "more than %d screenshots", INDEX_MAX_FRAMES);
        if (x->n == x->cap) {
            x->cap = x->cap ? x->cap * 2 : 64;
            x->frames = xrealloc(x->frames, (unsigned long)x->cap, sizeof *x->frames);
        }
        x->frames[x->n++] = f;
    }
    return 0;
}

int index_open(struct frame_index *x, const struct record *r, struct err *e)
{
    char *path = xasprintf("%s/frames.idx", r->dir), *data;
    size_t len;
    int rc = 0;
    *x = (struct frame_index){0};
    if (file_exists(path) && (rc = file_read(path, INDEX_MAX_BYTES, &data, &len, e)) == 0) {
        if ((rc = index_parse(x, data, len, e)))
            err_prefix(e, "'%s'", path);
        free(data);
    }
    free(path);
    if (rc)
        index_free(x);
    return rc;
}

void index_free(struct frame_index *x)
{
    free(x->frames);
    *x = (struct frame_index){0};
}

/* Finds a frame. Numbers count up from 0, so line n usually has number n. */
const struct index_frame *index_find(const struct frame_index *x, int number)
{
    if (number >= 0 && number < x->n && x->frames[number].number == number)
        return &x->frames[number];
    for (int i = 0; i < x->n; i++)
        if (x->frames[i].number == number)
            return &x->frames[i];
    return NULL;
}

enum index_fault index_image(const struct frame_index *x, const struct record *r, int number,
                             struct image *im, struct err *why)
{
    const struct index_frame *f = index_find(x, number);
    char *png;
    size_t len;
    *im = (struct image){0};
    if (record_frame(r, number, &png, &len, why))
        return FRAME_MISSING;
    bool other = f && f->has_file && XXH3_64bits(png, len) != f->file;
    int rc = image_parse_png(im, png, len, why);
    free(png);
    if (rc) {
        err_prefix(why, "frames/%06d.png", number);
        return FRAME_UNREADABLE;
    }
    if (f && image_hash(im) != f->pixels) {
        err_set(why, ERR_FAILED, "frames/%06d.png has hash %016llx, frames.idx says %016llx", number,
                (unsigned long long)image_hash(im), (unsigned long long)f->pixels);
        return FRAME_PIXELS;
    }
    if (other) {
        err_set(why, ERR_FAILED, "frames/%06d.png has the same pixels, but is not the file that was written",
                number);
        return FRAME_FILE;
    }
    return FRAME_AS_WRITTEN;
}
