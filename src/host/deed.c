/* deed.c - deeds on elements that the client names by their refs, in a client-driven run; see private.h.
 *
 * A deed is carried out like a plain step (plain/player.h): its element is read again, checked for role and
 * name, clicked or typed into by replies of the run, and the result is verified.  The client gets the effect
 * and the lines of the elements that differ from those it saw last. */
#include "host/private.h"

#include "atspi/lines.h"
#include "atspi/roles.h"
#include "base/clock.h"
#include "base/lock.h"
#include "plain/player.h"
#include "screen/observed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 150, AGAIN_MAX = 3, WINDOWS_MAX = 64, TITLE_BYTES = 128 };

#define NOTHING "nothing was done"
#define UNSURE  "unsure whether the text arrived" /* screen/typing.c, overwrite.c */

struct titled { /* a window */
    uint32_t ref;
    unsigned long id;
    char title[TITLE_BYTES];
    bool popup;
};

struct titles {
    struct titled w[WINDOWS_MAX];
    int n;
};

struct deed {
    struct work *work;
    enum player_deed kind;
    uint32_t ref;
    char *value, *what;          /* what: of the element, `button "Save"`; NULL: not found yet */
    bool picture, acted, unread; /* unread: the value cannot be compared with the typed text */
    bool acted_before;           /* acted, without the last reply */
    bool all;                    /* reads all programs: the ref is of another one than the client saw last */
    struct player_ref *player;
    struct titles before;
    int again; /* replies that were taken back */
};

static const struct {
    const char *name, *done;
} kinds[PLAYER_DEEDS] = {
    [PLAYER_DO_PRESS] = {"press", "pressed"},
    [PLAYER_DO_DOUBLE_PRESS] = {"double_press", "pressed twice"},
    [PLAYER_DO_RIGHT_PRESS] = {"right_press", "pressed with the right button"},
    [PLAYER_DO_FILL] = {"fill", "filled"},
    [PLAYER_DO_CHOOSE] = {"choose", "chose"},
    [PLAYER_DO_TICK] = {"tick", "ticked"},
    [PLAYER_DO_UNTICK] = {"untick", "unticked"},
    [PLAYER_DO_FOCUS] = {"focus", "focused"},
    [PLAYER_DO_SCROLL] = {"scroll_to", "scrolled to"},
};

struct deed *deed_new(struct work *w, const char *call)
{
    json_auto_t *c = json_loads(call, 0, NULL);
    const char *name = json_string_value(json_object_get(c, "deed"));
    const char *value = json_string_value(json_object_get(c, "value"));
    struct deed *d = NULL;
    for (int i = 0; name && i < PLAYER_DEEDS; i++)
        if (!strcmp(kinds[i].name, name)) {
            d = xcalloc(1, sizeof *d);
            *d = (struct deed){.work = w,
                               .kind = (enum player_deed)i,
                               .ref = (uint32_t)json_integer_value(json_object_get(c, "ref")),
                               .value = xstrdup(value ? value : ""),
                               .picture = json_is_true(json_object_get(c, "picture"))};
        }
    return d;
}

void deed_free(struct deed *d)
{
    if (!d)
        return;
    player_ref_free(d->player);
    free(d->value);
    free(d->what);
    free(d);
}

/* ---- the report ---------------------------------------------------------------------------------------- */

static void list_windows(const struct snapshot *s, struct titles *out)
{
    out->n = 0;
    for (int i = 0; i < s->n && out->n < WINDOWS_MAX; i++)
        if (s->e[i].parent < 0) {
            struct titled *t = &out->w[out->n++];
            *t = (struct titled){
                .ref = s->e[i].ref, .id = s->e[i].window, .popup = !strcmp(s->e[i].role, "window")};
            snprintf(t->title, sizeof t->title, "%s", s->e[i].name);
        }
}

static const struct titled *window_of(const struct titles *in, uint32_t ref)
{
    for (int i = 0; i < in->n; i++)
        if (in->w[i].ref == ref)
            return &in->w[i];
    return NULL;
}

static void put_window(const char *what, const struct titled *w, struct buf *out)
{
    if (*w->title)
        buf_printf(out, "; the window \"%s\" %s", w->title, what);
    else
        buf_printf(out, "; %s %s", w->popup ? "a menu or list" : "a window without a title", what);
}

/* Appends what became of windows.  A window that is not in the snapshot may still be open. */
static void put_windows(struct deed *d, const struct snapshot *s, struct buf *out)
{
    struct titles now;
    struct screen_rect unused;
    list_windows(s, &now);
    for (int i = 0; i < d->before.n; i++) {
        const struct titled *was = &d->before.w[i], *is = window_of(&now, was->ref);
        bool open = is || (was->id && screen_window_rect(d->work->screen, was->id, &unused) == 0);
        if (is && strcmp(is->title, was->title) != 0)
            buf_printf(out, "; the window \"%s\" is now \"%s\"", was->title, is->title);
        else if (!is)
            put_window(open ? "is no longer in front" : "closed", was, out);
    }
    for (int i = 0; i < now.n; i++)
        if (!window_of(&d->before, now.w[i].ref))
            put_window("opened", &now.w[i], out);
}

/* Appends the lines that differ from those the client saw last; the whole text if that is shorter than the
 * difference by a fifth, or if the client has seen none. */
static void put_difference(struct deed *d, const struct snapshot *s, struct buf *out)
{
    struct tree *t = d->work->host->tree;
    const char *seen = tree_seen(t);
    struct buf text, difference;
    buf_init(&text, LINES_BYTES);
    buf_init(&difference, LINES_BYTES);
    buf_puts(&text, "");
    elements_text(s, false, &text);
    int n = seen ? lines_diff(seen, text.data, &difference) : 0;
    bool whole = !seen || difference.len > text.len * 4 / 5;
    size_t most = (size_t)HOST_TOKENS * HOST_TOKEN_BYTES;
    buf_puts(out, "\n");
    if (!s->n)
        buf_puts(out, "the active window describes no elements\n");
    else if (seen && !n)
        buf_puts(out, "no element changed\n");
    else
        lines_within(whole ? text.data : difference.data, most, out);
    refs_note(tree_refs(t), s, text.data);
    const struct elements_scope everything = {.all = true};
    tree_see(t, text.data, d->all ? &everything : NULL);
    buf_free(&text);
    buf_free(&difference);
}

static void tell(struct deed *d, bool ok, const char *report)
{
    struct work *w = d->work;
    json_t *event =
        json_pack("{s:s, s:b, s:o}", "kind", "act", "ok", ok, "report", json_clean_string(report));
    json_t *picture = d->picture ? look_picture(&w->seen, w->max_side) : NULL;
    if (picture) {
        shown_forget(w->host, w->screen);
        json_object_set_new(event, "picture", picture);
    }
    json_decref(w->outcome);
    w->outcome = NULL;
    host_tell(w, event);
}

static void put_what(const struct deed *d, struct buf *out)
{
    if (d->kind == PLAYER_DO_CHOOSE)
        buf_printf(out, "%s \"%.200s\" in ", kinds[d->kind].done, d->value);
    else
        buf_printf(out, "%s ", kinds[d->kind].done);
    buf_puts(out, d->what);
}

static void report_done(struct deed *d, const struct snapshot *s)
{
    autobuf out = buf_of(LINES_BYTES);
    put_what(d, &out);
    if (!d->acted)
        buf_puts(&out, ": it was so already");
    else if (d->unread)
        buf_puts(&out, ", which was not compared with the text");
    if (d->acted) {
        put_windows(d, s, &out);
        put_difference(d, s, &out);
    }
    tell(d, true, out.data);
}

void deed_refuse(struct deed *d, const char *why)
{
    autobuf out = buf_of(LINES_BYTES);
    buf_printf(&out, "%s%s", why, d->acted || strstr(why, NOTHING) ? "" : "; " NOTHING);
    tell(d, false, out.data);
}

/* ---- the steps ----------------------------------------------------------------------------------------- */

/* Reads the elements that the client saw last, and if the ref is not among them those of all programs, also
 * afterwards.  Returns NULL with e, and else a locked tree. */
static const struct snapshot *read_for(struct deed *d, struct err *e)
{
    struct tree *t = d->work->host->tree;
    const struct snapshot *s = d->all ? NULL : tree_read(t, NULL, d->work->screen, e);
    if (!d->all && (!s || d->acted || refs_element(s, d->ref)))
        return s;
    if (s)
        tree_done(t);
    d->all = true;
    return tree_read(t, &(struct elements_scope){.all = true}, d->work->screen, e);
}

/* Returns the field in a list that also takes text, and any other element itself. */
static const struct element *field_of(const struct deed *d, const struct snapshot *s,
                                      const struct element *on)
{
    bool typed = d->kind == PLAYER_DO_FILL || d->kind == PLAYER_DO_FOCUS;
    if (!typed || strcmp(on->role, "combo box") != 0)
        return on;
    for (const struct element *e = on + 1; e < s->e + s->n && e->depth > on->depth; e++)
        if (state_in(e->states, STATE_EDITABLE))
            return e;
    return on;
}

/* Checks the element and begins the deed.  Returns -1 with e. */
static int begin(struct deed *d, const struct snapshot *s, struct err *e)
{
    char why[ERR_TEXT];
    struct buf what;
    const struct element *on = refs_find(tree_refs(d->work->host->tree), s, d->ref, why, sizeof why);
    if (!on)
        return err_set(e, ERR_USAGE, "%s", why);
    if (d->player)
        return 0;
    buf_init(&what, ERR_TEXT);
    refs_describe(on, &what);
    d->what = buf_take(&what);
    d->unread = d->kind == PLAYER_DO_FILL &&
                (element_is_password(on) || strstr(d->value, "{{") || strlen(d->value) > PLAYER_VERIFIED_MAX);
    list_windows(s, &d->before);
    d->player = player_ref_open(d->kind, field_of(d, s, on), d->value, d->work->screen, e);
    return d->player ? 0 : -1;
}

/* Takes the result of the last reply.  Returns false after ending the deed with the reason of a failure. */
static bool go_on(struct deed *d)
{
    json_t *outcome = d->work->outcome;
    if (!outcome)
        return true;
    const char *text = json_string_value(json_object_get(outcome, "text"));
    /* the field itself reports the text that arrived (player_step.c) */
    bool unsure = d->kind == PLAYER_DO_FILL && text && text_starts(text, UNSURE) && !d->unread;
    bool ok = json_is_true(json_object_get(outcome, "ok")) || unsure;
    bool stale = text && (strstr(text, OBSERVED_NOTHING) || strstr(text, NOTHING));
    if (!ok && stale && d->again++ < AGAIN_MAX) {
        player_ref_again(d->player); /* the screen had changed: the element is read again */
        d->acted = d->acted_before;
    } else if (!ok) {
        d->acted = d->acted_before || json_integer_value(json_object_get(outcome, "events")) > 0;
        autofree char *why = xasprintf("%s: %s", d->what, text ? text : "the action failed");
        deed_refuse(d, why);
        return false;
    }
    json_decref(outcome);
    d->work->outcome = NULL;
    return true;
}

static void pause_before_reading(struct work *w)
{
    int64_t start = clock_ns();
    LOCKED(&w->host->lock);
    while (clock_ms_since(start) < AGAIN_MS && work_wait(w))
        ;
}

/* Reads once and takes the next step; sets *over at the end of the deed.  Returns whether out has a reply. */
static bool step(struct deed *d, struct buf *out, bool *over)
{
    struct err e = ERR_INIT;
    char why[ERR_TEXT] = "";
    const struct snapshot *s = read_for(d, &e);
    enum player_answer answer = PLAYER_GIVES_UP;
    if (s && (d->acted || begin(d, s, &e) == 0))
        answer = player_ref_next(d->player, s, out, why, sizeof why);
    *over = answer == PLAYER_IS_DONE || answer == PLAYER_GIVES_UP;
    if (answer == PLAYER_IS_DONE)
        report_done(d, s);
    if (s)
        tree_done(d->work->host->tree);
    if (answer == PLAYER_GIVES_UP)
        deed_refuse(d, e.kind ? e.text : why);
    return answer == PLAYER_REPLIES;
}

bool deed_next(struct deed *d, struct buf *out)
{
    bool over = !go_on(d);
    while (!over && !work_stopping(d->work)) {
        if (step(d, out, &over)) {
            d->acted_before = d->acted;
            d->acted = true;
            d->work->outcome = json_pack("{s:s, s:b}", "kind", "act", "ok", true);
            return true;
        }
        if (!over)
            pause_before_reading(d->work);
    }
    return false;
}
