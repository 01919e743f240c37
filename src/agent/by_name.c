/* by_name.c - puts a place right by the name of what is there, as the model's own tower reads it (locate.h).
 */
#include "agent/llm.h"

#include <math.h>

int llm_locate(struct llm *m, const struct image *im, const char *name, enum locate_for what, double *x,
               double *y, struct err *e)
{
    struct session *s = llm_session(m);
    struct patch_map map = {0};
    if (!s)
        return 0;
    if (session_read_patches(s, im, &map, e))
        return -1;
    double seen_x = *x * map.scale, seen_y = *y * map.scale;
    bool moved = map.patches && locate(&map, name, what, &seen_x, &seen_y);
    if (moved) {
        *x = fmin(seen_x / map.scale, im->w - 1);
        *y = fmin(seen_y / map.scale, im->h - 1);
    }
    patch_map_free(&map);
    return moved;
}

int llm_says_otherwise(struct llm *m, const struct image *im, const char *name, double x, double y,
                       struct err *e)
{
    struct session *s = llm_session(m);
    struct patch_map map = {0};
    if (!s)
        return 0;
    if (session_read_patches(s, im, &map, e))
        return -1;
    bool otherwise = map.patches && locate_says_otherwise(&map, name, x * map.scale, y * map.scale);
    patch_map_free(&map);
    return otherwise;
}
