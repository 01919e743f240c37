/* writes.c - texts that earlier replies wrote into fields, by the names of these fields. */
#include "pocket/coverage.h"

#include "base/err.h"

#include <string.h>
#include <strings.h>

static bool copy_slot(const char *reply, const struct slot *slot, char out[TASK_NAME])
{
    size_t n = slot->end - slot->begin;
    if (n >= TASK_NAME)
        return false;
    memcpy(out, reply + slot->begin, n);
    out[n] = 0;
    return true;
}

static bool read_write(const struct dialect *d, const char *reply, struct write *out)
{
    struct slot name, text;
    return dialect_word_slot(d, SLOT_NAME, reply, strlen(reply), &name) &&
           dialect_word_slot(d, SLOT_TEXT, reply, strlen(reply), &text) &&
           copy_slot(reply, &name, out->name) && copy_slot(reply, &text, out->text);
}

struct writes writes_before(const struct assist_step *s)
{
    struct writes w = {.all = xmalloc((size_t)s->n_earlier + 1, sizeof *w.all)};
    for (int i = 0; i < s->n_earlier; i++)
        w.n += s->earlier[i] && read_write(s->dialect, s->earlier[i], &w.all[w.n]);
    return w;
}

/* Returns whether a later write went into the same field as write i. */
static bool is_written_over(const struct writes *w, int i)
{
    for (int k = i + 1; k < w->n; k++)
        if (!strcasecmp(w->all[k].name, w->all[i].name))
            return true;
    return false;
}

int times_standing(const struct writes *w, const char *text)
{
    int times = 0;
    for (int i = 0; i < w->n; i++)
        times += !is_written_over(w, i) && words_find_last(w->all[i].text, text);
    return times;
}
