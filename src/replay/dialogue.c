/* dialogue.c - keeps a conversation, and tells it to a model; see dialogue.h. */
#include "replay/dialogue.h"

#include <stdlib.h>
#include <string.h>

enum { IMAGE_TOKENS = 256 };

static void free_turn(struct dialogue_turn *t)
{
    for (int i = 0; i < t->n; i++) {
        free((char *)(uintptr_t)t->parts[i].text);
        autofree struct image *im = (struct image *)(uintptr_t)t->parts[i].image;
        if (im)
            image_free(im);
    }
    free(t->reply);
}

void dialogue_cut(struct dialogue *d, int n)
{
    while (d->n > n)
        free_turn(&d->turns[--d->n]);
}

void dialogue_free(struct dialogue *d)
{
    dialogue_cut(d, 0);
    free(d->turns);
    free(d->system);
    *d = (struct dialogue){0};
}

void dialogue_begin(struct dialogue *d, const char *system)
{
    dialogue_free(d);
    d->system = xstrdup(system);
}

static struct dialogue_turn *add_turn(struct dialogue *d)
{
    d->turns = xrealloc(d->turns, (unsigned long)d->n + 1, sizeof *d->turns);
    d->turns[d->n] = (struct dialogue_turn){0};
    return &d->turns[d->n++];
}

int dialogue_user(struct dialogue *d, const struct chat_part *parts, int n, enum chat_place place,
                  struct err *e)
{
    struct dialogue_turn *t = add_turn(d);
    t->place = place;
    if (n > DIALOGUE_PARTS)
        bug("a turn of more than %d parts", DIALOGUE_PARTS);
    for (; t->n < n; t->n++) {
        struct image *im = parts[t->n].image ? xcalloc(1, sizeof *im) : NULL;
        t->parts[t->n] =
            (struct chat_part){.text = parts[t->n].text ? xstrdup(parts[t->n].text) : NULL, .image = im};
        if (im && image_copy(im, parts[t->n].image, e))
            return -1;
    }
    return 0;
}

void dialogue_reply(struct dialogue *d, const char *text)
{
    add_turn(d)->reply = xstrdup(text);
}

int64_t dialogue_length(const struct dialogue *d)
{
    size_t n = d->system ? strlen(d->system) : 0;
    for (int i = 0; i < d->n; i++) {
        const struct dialogue_turn *t = &d->turns[i];
        n += t->reply ? strlen(t->reply) : 0;
        for (int k = 0; k < t->n; k++)
            n += t->parts[k].image ? IMAGE_TOKENS : t->parts[k].text ? strlen(t->parts[k].text) : 0;
    }
    return (int64_t)n;
}

int dialogue_tell(const struct dialogue *d, int n, struct llm *m, struct err *e)
{
    int rc = m->ops->begin(m, d->system, e);
    for (int i = 0; i < n && rc == 0; i++) {
        const struct dialogue_turn *t = &d->turns[i];
        rc = t->reply ? m->ops->reply(m, t->reply, e) : m->ops->user(m, t->parts, t->n, t->place, e);
    }
    return rc;
}
