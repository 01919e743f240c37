/* writes.c - what earlier replies wrote into fields, by the names that they gave these. */
#include "agent/coverage.h"

#include "base/err.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const float nearly = 0.3f; /* share of a name's letters that may be read wrongly */

static bool piece_of(const char *reply, const struct slot *slot, char out[TASK_NAME])
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
           piece_of(reply, &name, out->name) && piece_of(reply, &text, out->text);
}

struct writes writes_before(const struct agent *a)
{
    int first = a->run.turns_before, turns = context_turns(a->run.context);
    struct writes w = {.all = xmalloc((size_t)(turns - first) + 1, sizeof *w.all)};
    for (int i = first; i + 1 < turns; i++) {
        const char *reply = context_reply(a->run.context, i);
        w.n += reply && read_write(a->o->dialect, reply, &w.all[w.n]);
    }
    return w;
}

bool is_filled(const struct writes *w, const char *name)
{
    for (int i = 0; i < w->n; i++)
        if (names_differ(w->all[i].name, name) <= nearly || names_differ(w->all[i].text, name) <= nearly)
            return true;
    return false;
}

bool is_written_over(const struct writes *w, int i)
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
        times += !is_written_over(w, i) && spoken_of(w->all[i].text, text);
    return times;
}
