/* masked.c - see masked.h. */
#include "gate/masked.h"

#include "gate/zone.h"

#include <stdlib.h>
#include <string.h>

static const char *keep(struct masked *m, const struct masked_by *by, const char *text)
{
    if (!by->mask || !*text)
        return text;
    m->texts = xrealloc(m->texts, (unsigned long)m->n + 1, sizeof *m->texts);
    return m->texts[m->n++] = by->mask(by->arg, text);
}

static void empty(struct element *e)
{
    e->name = e->label = e->value = "";
    e->role = "hidden";
    e->states = 0;
}

/* Removes the value of an element that a zone touches, and everything if its middle is in the zone. */
static void hide(struct element *e, struct screen_rect zone)
{
    struct screen_rect both = screen_rect_intersect(e->rect, zone);
    if (both.w <= 0 || both.h <= 0)
        return;
    e->value = "";
    if (screen_rect_contains(zone, e->rect.x + e->rect.w / 2, e->rect.y + e->rect.h / 2))
        empty(e);
}

/* Empties an element whose place is unknown if its parent is hidden. */
static void hide_below(struct element *e, const struct element *all)
{
    bool placed = e->trust != PLACE_NONE && e->trust != PLACE_DOUBTFUL && e->rect.w > 0 && e->rect.h > 0;
    if (!placed && e->parent >= 0 && !strcmp(all[e->parent].role, "hidden"))
        empty(e);
}

int masked_copy(struct masked *m, const struct snapshot *s, const struct masked_by *by, struct err *e)
{
    struct zone zones[ZONES_MAX];
    int n = by->hide ? zones_read(by->hide, "--hide", zones, e) : 0;
    *m = (struct masked){.s = *s};
    if (n < 0)
        return -1;
    m->s.e = xcalloc((unsigned long)s->n + 1, sizeof *m->s.e);
    for (int i = 0; i < s->n; i++) {
        struct element *one = &m->s.e[i];
        *one = s->e[i];
        one->name = keep(m, by, one->name);
        one->label = keep(m, by, one->label);
        one->value = keep(m, by, one->value);
        for (int z = 0; z < n; z++)
            hide(one, zone_rect(&zones[z], by->root.w, by->root.h));
        hide_below(one, m->s.e);
    }
    return 0;
}

void masked_free(struct masked *m)
{
    for (int i = 0; i < m->n; i++)
        free(m->texts[i]);
    free(m->texts);
    free(m->s.e);
    *m = (struct masked){.n = 0};
}
