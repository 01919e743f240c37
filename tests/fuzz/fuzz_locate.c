/* fuzz_locate.c - any numbers as the tower's output for patches, and any bytes as a name; every position
 * that is found is inside the image. */
#include "base/err.h"
#include "pocket/locate.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *data;
    size_t size, at;
};

static uint8_t next(struct input *in)
{
    return in->size ? in->data[in->at++ % in->size] : 0;
}

static void fill(struct patch_reading *p, struct input *in)
{
    for (int s = 0; s < PATCH_SLOTS; s++) {
        p->present[s] = (float)next(in) / 255;
        p->shift[s] = (float)next(in) / 255;
        p->letter[s] = next(in) % PATCH_LETTERS;
    }
    for (int k = 0; k < ELEMENT_KINDS; k++)
        p->kind[k] = (float)(next(in) % 16) / 15;
    float *pointer = (float *)&p->pointer;
    for (size_t k = 0; k < sizeof p->pointer / sizeof *pointer; k += 1 + next(in))
        pointer[k] = (float)(next(in) - 128) * (next(in) % 8 ? 0.1f : 1e6f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size, 0};
    char name[80];
    struct patch_map m = {next(&in) % 16 + 1, next(&in) % 24 + 1, 16, 1, NULL};
    size_t n = next(&in) % sizeof name;
    for (size_t i = 0; i < n; i++)
        name[i] = (char)next(&in);
    name[n] = 0;
    m.patches = xcalloc((size_t)(m.rows * m.cols), sizeof *m.patches);
    for (int i = 0; i < m.rows * m.cols; i++)
        fill(&m.patches[i], &in);
    for (int what = LOCATE_CLICK; what <= LOCATE_TYPE; what++) {
        double x = next(&in) % (m.cols * m.side), y = next(&in) % (m.rows * m.side);
        locate(&m, name, (enum locate_for)what, &x, &y);
        if (!(x >= 0 && x <= m.cols * m.side && y >= 0 && y <= m.rows * m.side))
            bug("%g,%g is outside the image of %dx%d", x, y, m.cols * m.side, m.rows * m.side);
    }
    patch_map_free(&m);
    return 0;
}
