/* rope.c - rotary positions and their tables of cosines and sines (rope.h). */
#include "model/rope.h"

#include "model/language.h"

#include <math.h>

/* Returns the image that contains token i, or NULL for text. */
static const struct image_rows *image_at(const struct image_rows *images, int n_images, int64_t i)
{
    for (int k = 0; k < n_images; k++)
        if (i >= images[k].at && i < images[k].at + images[k].rows.rows)
            return &images[k];
    return NULL;
}

int64_t rope_walk(struct rope_position *out, int64_t next, int64_t first, int64_t n,
                  const struct image_rows *images, int n_images)
{
    for (int64_t i = first; i < first + n; i++) {
        const struct image_rows *im = image_at(images, n_images, i);
        struct rope_position *p = &out[i - first];
        if (!im) {
            *p = (struct rope_position){{next, next, next}};
            next++;
            continue;
        }
        int64_t cell = i - im->at, rows = im->rows.rows / im->cols;
        *p = (struct rope_position){{next, next + cell / im->cols, next + cell % im->cols}};
        if (cell + 1 == im->rows.rows)
            next += rows > im->cols ? rows : im->cols;
    }
    return next;
}

static int axis_of(const struct rope_shape *r, int pair)
{
    if (r->sectioned)
        return pair < r->section[0] ? 0 : pair < r->section[0] + r->section[1] ? 1 : 2;
    int axis = pair % 3;
    return axis && pair < 3 * r->section[axis] ? axis : 0;
}

/* Computes in f32, as the reference does: at large positions another rounding gives another angle. */
void rope_table(float *table, const struct rope_shape *r, const struct rope_position *p, int64_t n)
{
    int half = r->dims / 2;
    for (int k = 0; k < half; k++) {
        float frequency = 1.0f / powf(r->theta, (float)(2 * k) / (float)r->dims);
        for (int64_t t = 0; t < n; t++) {
            float angle = (float)p[t].axis[axis_of(r, k)] * frequency;
            table[t * r->dims + k] = cosf(angle);
            table[t * r->dims + half + k] = sinf(angle);
        }
    }
}
