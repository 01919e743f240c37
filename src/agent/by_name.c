/* by_name.c - puts a place right by the name of what is there, as the model's own tower reads it. */
#include "llm/llm.h"

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

/* In pixels of what the tower saw. */
static void find_in(const struct patch_map *map, const struct picture_text *t, const char *name,
                    struct llm_found *f)
{
    struct thing is;
    float differs = text_absent(t, name);
    if (f->missing && thing_of_name(map, t, name, false, LOCATE_CLICK, &is))
        *f = (struct llm_found){false, (double)is.x, (double)is.y, (double)is.p};
    else if (!f->missing && differs > 0)
        *f = (struct llm_found){.missing = true, .p = (double)differs};
    else if (!f->missing)
        f->missing = locate(map, name, LOCATE_CLICK, &f->x, &f->y) == LOCATED_NOWHERE;
}

int llm_find(struct llm *m, const struct image *im, const char *name, struct llm_found *f, struct err *e)
{
    struct patch_map map;
    struct picture_text text;
    if (llm_read_picture(m, im, &map, &text, e))
        return -1;
    if (map.patches) {
        f->x *= map.scale;
        f->y *= map.scale;
        find_in(&map, &text, name, f);
        f->x = fmin(f->x / map.scale, im->w - 1);
        f->y = fmin(f->y / map.scale, im->h - 1);
    }
    text_free(&text);
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
