/* field.c - reads the focused element of a browser until the report agrees with the run's own input.
 *
 * A busy browser reports the state before the last keys: the page has the focus although it has moved to the
 * address bar, or a text lacks its end. The rules would then miss an address that the browser is about to
 * open. */
#include "gate/gate_impl.h"

#include "base/clock.h"

#include <string.h>

enum {
    AGREE_MS = 800, /* time for the report to agree */
    QUIET_MS = 250, /* time for which an edited text must stay unchanged */
    POLL_MS = 50,
    COMPARED = 60, /* bytes of a written text that must be in the field */
};

/* Returns whether the report contains the text that was written last, if it is known. */
static bool agrees(const struct gate *g, const struct written *w, const struct gate_field *f)
{
    if (f->in_page || !f->editable)
        return !w->in_bar;
    size_t have = strlen(w->text), n = w->last < have ? w->last : have;
    const char *last = g->part ? g->part : w->text + have - n;
    n = strlen(last);
    last += n > COMPARED ? n - COMPARED : 0;
    return strpbrk(last, "\t\r\n") || strlen(f->text) > sizeof f->text / 2 || strstr(f->text, last);
}

static bool is_same(const struct gate_field *a, const struct gate_field *b)
{
    return a->in_page == b->in_page && a->editable == b->editable && !strcmp(a->text, b->text);
}

bool gate_read_field(struct gate *g, const struct policy_target *t, struct gate_field *out, bool *differs)
{
    const struct written *w = gate_written(g, t->window.id);
    int64_t start = clock_ns(), same = start;
    struct gate_field now;
    *differs = false;
    if (!g->o.field || !g->o.field(g->o.name_arg, t->window.title, out))
        return false;
    for (;;) {
        bool bar = !out->in_page && out->editable, edited = bar && (w->moved || w->unknown || g->part);
        bool good = out->tools || agrees(g, w, out);
        if (good && (!edited || clock_ms_since(same) >= QUIET_MS))
            return true;
        *differs = clock_ms_since(start) > AGREE_MS + (good ? QUIET_MS : 0);
        if (*differs || screen_wait(g->screen, POLL_MS, NULL))
            return *differs = true;
        if (!g->o.field(g->o.name_arg, t->window.title, &now))
            return false;
        same = is_same(out, &now) ? same : clock_ns();
        *out = now;
    }
}
