/* by_name.c - puts a place right by the name of what is there, as the model's own tower reads it. */
#include "agent/llm.h"

#include <math.h>

bool llm_is_located(const struct llm *m)
{
    const struct session *s = llm_session(m);
    return s && session_has_heads(s);
}

int llm_locate(struct llm *m, const struct image *im, const char *name, enum locate_for what, double *x,
               double *y, enum located *out, struct err *e)
{
    struct session *s = llm_session(m);
    struct patch_map map = {0};
    *out = LOCATED_THERE;
    if (!s)
        return 0;
    if (session_read_patches(s, im, &map, e))
        return -1;
    double seen_x = *x * map.scale, seen_y = *y * map.scale;
    if (map.patches)
        *out = locate(&map, name, what, &seen_x, &seen_y);
    if (*out == LOCATED_ELSEWHERE) {
        *x = fmin(seen_x / map.scale, im->w - 1);
        *y = fmin(seen_y / map.scale, im->h - 1);
    }
    patch_map_free(&map);
    return 0;
}

int llm_read_picture(struct llm *m, const struct image *im, struct patch_map *map, struct picture_text *text,
                     struct err *e)
{
    struct session *s = llm_session(m);
    *map = (struct patch_map){0};
    *text = (struct picture_text){0};
    if (s && session_read_patches(s, im, map, e))
        return -1;
    if (map->patches)
        *text = text_read(map);
    return 0;
}
