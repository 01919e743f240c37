/* look_elements.c - requests for elements: snapshot and search, as text or JSON.  They send no input. */
#include "host/private.h"

#include "atspi/elements_json.h"
#include "atspi/lines.h"
#include "base/json.h"
#include "run/place.h"

#include <stdlib.h>
#include <string.h>

enum { JSON_BYTES = HOST_REPLY_BYTES / 3 }; /* as text in a result, quotes need an escape */

/* Appends a line if elements are missing. */
static void put_end(const struct snapshot *s, bool all, struct buf *out)
{
    if (s->end == SNAPSHOT_NOTHING || !s->n)
        buf_printf(out, "%s no elements: use screenshot, and act with x and y.\n",
                   all ? "The programs describe" : "The active window describes");
    if (s->end == SNAPSHOT_SILENT)
        buf_puts(out, "A program does not answer; its elements are missing.\n");
    if (s->end == SNAPSHOT_CUT)
        buf_puts(out, "Elements are missing: a limit of time, depth or number was reached.\n");
}

static void put_json(const struct snapshot *s, struct buf *out)
{
    int n = s->n;
    bool whole = s->end == SNAPSHOT_WHOLE || s->end == SNAPSHOT_NOTHING;
    for (char *text = NULL;; n /= 2) {
        json_auto_t *all =
            json_pack("{s:o, s:b}", "elements", elements_json(s, n), "complete", whole && n == s->n);
        text = json_line(all, JSON_COMPACT);
        bool fits = !text || strlen(text) <= JSON_BYTES || n < 2;
        if (fits && text)
            buf_puts(out, text);
        free(text);
        if (fits)
            return;
    }
}

static void put_found(const struct elements_order *o, const char *text, struct buf *out)
{
    int max = o->limit ? o->limit : HOST_MATCHES, n = lines_find(text, o->words, o->role, max, out);
    if (!n && o->words && o->role && (n = lines_find(text, o->words, NULL, max, out)))
        buf_printf(out, "No %.40s matches; these have other roles.\n", o->role);
    if (!n)
        buf_puts(out, "No element matches; call snapshot, or find with fewer words.\n");
    if (n > max)
        buf_printf(out, "… %d more matches\n", n - max);
}

/* Returns whether a window has this title. */
static bool has_window(const struct snapshot *s, const char *title)
{
    for (int i = 0; i < s->n; i++)
        if (s->e[i].parent < 0 && !strcmp(s->e[i].name, title))
            return true;
    return false;
}

/* Writes the answer, and notes the refs in it. */
static void put_elements(struct tree *t, const struct elements_order *o, const struct elements_scope *scope,
                         const struct snapshot *s, struct buf *out)
{
    autobuf text = buf_of(LINES_BYTES);
    buf_puts(&text, "");
    elements_text(s, o->boxes && !o->json, &text);
    if (o->json)
        put_json(s, out);
    else if (o->find)
        put_found(o, text.data, out);
    else
        lines_within(text.data, (size_t)HOST_TOKEN_BYTES * (size_t)(o->limit ? o->limit : HOST_TOKENS), out);
    refs_note(tree_refs(t), s, o->json ? NULL : out->data);
    if (!o->find && !o->json && !o->boxes)
        tree_see(t, text.data, scope);
    if (!o->json)
        put_end(s, o->all, out);
}

json_t *look_at_elements(const struct work *w, struct err *e)
{
    const struct elements_order *o = &w->elements;
    const struct elements_scope scope = {.window = o->window, .all = o->all};
    const struct screen_options plain = {0};
    struct screen *screen = place_screen(w->host->settings, plain, e);
    const struct snapshot *s = screen ? tree_read(w->host->tree, &scope, screen, e) : NULL;
    json_t *event = NULL;
    struct buf out;
    if (s && o->window && *o->window && !o->all && !has_window(s, o->window)) {
        err_set(e, ERR_USAGE, "no window '%.80s' describes elements; call windows for the titles", o->window);
    } else if (s) {
        buf_init(&out, LINES_BYTES);
        buf_puts(&out, "");
        put_elements(w->host->tree, o, &scope, s, &out);
        event = json_pack("{s:o}", "text", json_clean_string(out.data));
        buf_free(&out);
    }
    if (s)
        tree_done(w->host->tree);
    screen_close(screen);
    return event;
}
