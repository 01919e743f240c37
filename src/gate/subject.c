/* subject.c - computes the points that an action would affect; see subject.h. */
#include "gate/subject.h"

#include "base/number.h"

#include <string.h>

struct builder {
    struct subject *out;
    const struct view_transform *p;
    const struct subject_root *root;
};

static void to_root(const struct builder *m, int32_t x, int32_t y, int *rx, int *ry)
{
    action_root_point(m->p, x, y, rx, ry);
    *rx = int_clamp(*rx, 0, m->root->w - 1);
    *ry = int_clamp(*ry, 0, m->root->h - 1);
}

/* Adds a position of the image, or the pointer position if the action has none. */
static void add_place(const struct builder *m, int32_t x, int32_t y)
{
    struct policy_target *t = &m->out->s.targets[m->out->s.n_targets++];
    bool given = x != ACTION_ABSENT && y != ACTION_ABSENT;
    t->placed = given || m->root->pointer;
    if (given)
        to_root(m, x, y, &t->x, &t->y);
    else if (t->placed)
        t->x = int_clamp(m->root->pointer[0], 0, m->root->w - 1),
        t->y = int_clamp(m->root->pointer[1], 0, m->root->h - 1);
}

/* Adds the path of a drag, with its first and last point as targets. */
static void add_drag(const struct builder *m, const struct action *a)
{
    struct subject *out = m->out;
    int n = 0;
    if (a->path && a->npath >= 2) {
        add_place(m, a->path[0].x, a->path[0].y);
        add_place(m, a->path[a->npath - 1].x, a->path[a->npath - 1].y);
        for (; n < a->npath && n < SUBJECT_CORNERS; n++)
            to_root(m, a->path[n].x, a->path[n].y, &out->corners[2 * n], &out->corners[2 * n + 1]);
        out->s.n_corners = n;
        return;
    }
    add_place(m, a->x, a->y);
    if (a->x2 != ACTION_ABSENT && a->y2 != ACTION_ABSENT)
        add_place(m, a->x2, a->y2);
    for (; n < out->s.n_targets && out->s.targets[n].placed; n++)
        out->corners[2 * n] = out->s.targets[n].x, out->corners[2 * n + 1] = out->s.targets[n].y;
    out->s.n_corners = n;
}

/* Adds the line of a move or release that continues a drag, from the current pointer position to the
 * target. */
static void add_rest_of_drag(const struct builder *m)
{
    const struct policy_target *t = &m->out->s.targets[0];
    if (!m->root->button_down || !m->root->pointer || !t->placed)
        return;
    const int line[4] = {int_clamp(m->root->pointer[0], 0, m->root->w - 1),
                         int_clamp(m->root->pointer[1], 0, m->root->h - 1), t->x, t->y};
    memcpy(m->out->corners, line, sizeof line);
    m->out->s.n_corners = 2;
    m->out->s.drags = true;
}

void subject_build(struct subject *out, const struct action *a, const struct view_transform *p,
                   const struct subject_root *root)
{
    struct builder m = {out, p, root};
    *out = (struct subject){.s = {.action = a, .root_w = root->w, .root_h = root->h}};
    out->s.corners = out->corners;
    bool placed = action_is(a->kind, ACTION_TYPES) && a->x != ACTION_ABSENT;
    if (action_is(a->kind, ACTION_DRAGS))
        add_drag(&m, a);
    else if (action_is(a->kind, ACTION_POINTER) || placed)
        add_place(&m, a->x, a->y);
    else if (action_is(a->kind, ACTION_FOCUS))
        out->s.n_targets = 1; /* the focused window */
    if (action_is(a->kind, ACTION_CARRIES))
        add_rest_of_drag(&m);
    writing_begin(&out->s, out->typed);
}

bool subject_has_key(const struct policy_subject *s, uint32_t key)
{
    const struct action *a = s->action;
    for (int i = 0; i < a->nkeys; i++)
        if (policy_key(a->keys[i]) == key)
            return true;
    for (int i = 0; i < s->n_held; i++)
        if (s->held[i] == key)
            return true;
    return false;
}

void subject_update_held(const struct action *a, uint32_t held[POLICY_MAX_KEYS], int *n)
{
    bool down = action_is(a->kind, ACTION_HOLDS | ACTION_FOCUS);
    bool up = action_is(a->kind, ACTION_RELEASES | ACTION_FOCUS);
    for (int i = 0; i < a->nkeys && (down || up); i++) {
        uint32_t k = policy_key(a->keys[i]);
        int at = 0;
        while (at < *n && held[at] != k)
            at++;
        if (down && at == *n && *n < POLICY_MAX_KEYS)
            held[(*n)++] = k;
        else if (up && at < *n)
            memmove(held + at, held + at + 1, (size_t)(--*n - at) * sizeof *held);
    }
}
