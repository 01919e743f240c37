/* engine_tower.c - the vision tower for heads that are not part of the model: their tensors, and the
 * tower's rows of an image. */
#include "session/engine_impl.h"

#include "model/preprocess.h"

#include <string.h>

const struct extra_tensor *engine_extra_tensor(const struct engine *g, const char *name)
{
    const struct vision_extra *extra = &g->weights.vision.extra;
    size_t n = strlen(VISION_EXTRA);
    for (int i = 0; i < extra->n && !strncmp(name, VISION_EXTRA, n); i++)
        if (!strcmp(extra->list[i].name, name + n))
            return &extra->list[i];
    return NULL;
}

int engine_use_tower(struct engine *g, const struct image *im, const volatile int *cancel,
                     vision_use_rows *use, void *arg, struct err *e)
{
    struct scheduler_client client = {.stop = cancel};
    if (!g->config.vision || !g->weights.vision.extra.n)
        return 0;
    struct tile_grid grid = preprocess_grid(&g->config, im->w, im->h);
    if (engine_try_enter(g, &client, e))
        return -1;
    g->vision.caller_cancel = cancel;
    int rc = vision_use_tower(&g->vision, im, &grid, g->round8, g->pool, use, arg, e);
    g->vision.caller_cancel = NULL;
    engine_leave(g);
    return rc;
}

int engine_rounded_matrices(const struct engine *g)
{
    return g->weights.rounded;
}
