/* fuzz_png.c - any bytes as a PNG or a JPEG: decoded, rotated, cut into tiles and resized. */
#include "base/image_orient.h"
#include "model/preprocess.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image im;
    bool jpeg = size > 2 && data[0] == 0xff;
    if (jpeg ? image_parse_jpeg(&im, data, size, NULL) : image_parse_png(&im, data, size, NULL))
        return 0;
    image_orient(&im, image_orientation(data, size), NULL);
    if (im.w <= 512 && im.h <= 512) { /* larger ones only take more time */
        struct model_config c = {.max_tiles = 4, .thumbnail = true};
        c.vit.tile = 32;
        c.vit.patch = 16;
        c.std[0] = c.std[1] = c.std[2] = 1;
        struct tile_grid g = preprocess_grid(&c, im.w, im.h);
        float *patches = malloc(preprocess_image_floats(&c, &g) * sizeof *patches);
        preprocess_image(&c, &im, &g, false, NULL, patches);
        free(patches);
    }
    image_free(&im);
    return 0;
}
