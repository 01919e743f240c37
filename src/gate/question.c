/* question.c - asks the user about an action and checks that the screen is unchanged after the answer.
 *
 * look ─► image and text ─► answer ─► look again ─┬─ same ──────► pass
 *     ▲                                       ├─ changed ───► ask again, three times at most
 *     └───────────────────────────────────────┘  another window ─► refuse
 *
 * The image shows the area around the target within its window, or for keys the middle of the focused window.
 * All of it is compared: an amount next to a button is part of what the user has approved. */
#include "gate/gate_impl.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "screen/observed.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_W = 640, SHOWN_H = 400, QUESTION_MAX = 1 << 20, QUESTIONS = 3, LINES = 10 };
enum { TOLERANCE = 24, CARET_W = 3, BLOCK_W = 16, CARET_H = 48 }; /* colour tolerance; sizes in pixels */

/* Returns the last target, for a drag its end, or NULL. */
static const struct policy_target *last_target(const struct gate *g)
{
    const struct policy_subject *s = &g->subject.s;
    return s->n_targets ? &s->targets[s->n_targets - 1] : NULL;
}

void gate_describe_window(const struct gate *g, char *out, size_t size)
{
    const struct policy_target *t = last_target(g);
    const struct screen_window *w = t ? &t->window : NULL;
    out[0] = 0;
    if (!w)
        return;
    if (!w->id)
        snprintf(out, size, "the desktop");
    else
        snprintf(out, size, "%.120s%s%.60s%s%.100s", *w->title ? w->title : "without a title",
                 *w->class ? ", " : "", w->class, *w->program ? ", " : "", w->program);
    out[utf8_valid_prefix(out, strlen(out))] = 0;
}

/* ---- the image --------------------------------------------------------------------------------------- */

/* An area of the screen; empty if it cannot be captured, since a question works without an image. */
struct crop {
    struct image im;
    int x, y; /* target in im; -1: none */
};

/* Places an interval of length `wanted`, truncated to the range, around `at`. Returns its start. */
static int place_around(int at, int wanted, int min, int max, int *size)
{
    *size = int_clamp(wanted, 0, max - min);
    return int_clamp(at - *size / 2, min, max - *size);
}

/* Returns the area to show, within the target's window and a screenshot of `view`, in pixels of the
 * screenshot. */
static struct screen_rect shown_area(const struct gate *g, struct screen_rect view)
{
    const struct policy_target *t = last_target(g);
    if (!t)
        return (struct screen_rect){0};
    struct screen_rect r = t->window.rect, out;
    if (!t->window.id || r.w < 1 || r.h < 1) /* the desktop */
        r = (struct screen_rect){view.x, view.y, view.w, view.h};
    int left = int_clamp(r.x - view.x, 0, view.w), right = int_clamp(r.x + r.w - view.x, left, view.w);
    int top = int_clamp(r.y - view.y, 0, view.h), bottom = int_clamp(r.y + r.h - view.y, top, view.h);
    int cx = t->placed ? t->x - view.x : (left + right) / 2,
        cy = t->placed ? t->y - view.y : (top + bottom) / 2;
    out.x = place_around(cx, SHOWN_W, left, right, &out.w);
    out.y = place_around(cy, SHOWN_H, top, bottom, &out.h);
    return out;
}

/* Captures the area to show. observe: the action is later compared with this screenshot (observed.h). */
static void take_crop(struct gate *g, struct crop *out, bool observe)
{
    const struct policy_target *t = last_target(g);
    struct image all = {0};
    *out = (struct crop){.x = -1, .y = -1};
    if (!t || screen_capture(g->screen, &all, NULL))
        return;
    if (observe)
        observed_renew(g->screen, &all);
    struct screen_rect view = screen_view(g->screen); /* the screenshot may have updated it */
    gate_redact(g, &all);
    view.w = all.w;
    view.h = all.h;
    struct screen_rect r = shown_area(g, view);
    if (r.w > 0 && r.h > 0 && image_crop(&out->im, &all, r.x, r.y, r.w, r.h, NULL) == 0 && t->placed) {
        out->x = t->x - view.x - r.x;
        out->y = t->y - view.y - r.y;
    }
    image_free(&all);
}

int gate_shown(struct gate *g, const struct action *a, const struct view_transform *transform,
               struct screen_rect *area, char where[320], struct err *e)
{
    *area = (struct screen_rect){0};
    if (gate_look(g, a, transform, e))
        return -1;
    gate_describe_window(g, where, 320);
    *area = shown_area(g, screen_view(g->screen));
    return 0;
}

/* Ignores a text cursor: a caret is narrow, and a block cursor inverts a small box. */
bool gate_picture_changed(const struct image *was, const struct image *is)
{
    int x0 = was->w, y0 = was->h, x1 = -1, y1 = -1, n = 0;
    if (was->w != is->w || was->h != is->h)
        return true;
    for (int y = 0; y < was->h; y++)
        for (int x = 0; x < was->w; x++) {
            const uint8_t *a = was->rgb + 3 * ((size_t)y * (size_t)was->w + (size_t)x),
                          *b = is->rgb + (a - was->rgb);
            if (abs(a[0] - b[0]) <= TOLERANCE && abs(a[1] - b[1]) <= TOLERANCE &&
                abs(a[2] - b[2]) <= TOLERANCE)
                continue;
            n++;
            x0 = x < x0 ? x : x0;
            x1 = x > x1 ? x : x1;
            y0 = y < y0 ? y : y0;
            y1 = y;
        }
    int w = x1 - x0 + 1, h = y1 - y0 + 1;
    bool cursor = h <= CARET_H && (w <= CARET_W || (w <= BLOCK_W && n >= 0.85 * w * h));
    return n && !cursor;
}

static void mark_target(struct crop *c)
{
    static const uint8_t red[3] = {230, 40, 40}, white[3] = {255, 255, 255};
    if (c->x < 0)
        return;
    image_draw_ring(&c->im, c->x, c->y, 13, 5, white);
    image_draw_ring(&c->im, c->x, c->y, 12, 3, red);
}

/* Writes confirm/NNNN-N.png. name is "" and *path NULL if that fails. */
static void save_crop(struct gate *g, const struct crop *c, int step, char *name, size_t size, char **path)
{
    name[0] = 0;
    *path = NULL;
    if (!c->im.rgb || !g->dir)
        return;
    autofree char *folder = xasprintf("%s/confirm", g->dir);
    snprintf(name, size, "confirm/%04d-%d.png", step, ++g->questions);
    *path = xasprintf("%s/%s", g->dir, name);
    if (dir_make(folder, NULL) || image_write_png(&c->im, *path, NULL)) {
        free(*path);
        *path = NULL;
        name[0] = 0;
    }
}

/* ---- the text ---------------------------------------------------------------------------------------- */

static const char *const currencies[] = {"€",   "$",   "£",   "¥",   "₹",   "EUR", "USD", "GBP", "CHF", "JPY",
                                         "CNY", "INR", "CAD", "AUD", "BTC", "SEK", "NOK", "DKK", "PLN"};

/* Returns the length of a currency at the end (before) or the beginning of text, including at most one space;
 * 0: none. */
static size_t currency_near(const char *text, size_t n, bool before)
{
    bool space = n && text[before ? n - 1 : 0] == ' ';
    text += space && !before;
    n -= space;
    for (size_t i = 0; i < sizeof currencies / sizeof *currencies; i++) {
        size_t len = strlen(currencies[i]);
        if (len <= n && !memcmp(before ? text + n - len : text, currencies[i], len))
            return len + space;
    }
    return 0;
}

/* Appends the amounts of money in a text. */
static void put_amounts(const char *text, struct buf *out)
{
    size_t n = strlen(text);
    for (size_t i = 0, end; i < n; i = end + 1) {
        i += strcspn(text + i, "0123456789");
        end = i + strspn(text + i, "0123456789.,'");
        if (i >= n)
            return;
        size_t before = currency_near(text, i, true), after = currency_near(text + end, n - end, false);
        if (before || after)
            buf_printf(out, "%s%.*s", out->len ? ", " : "", (int)(end - i + before + after),
                       text + i - before);
    }
}

/* Collects amounts in the written text, the model's and the program's names of the target, and the window's
 * title. */
static void find_amounts(const struct gate *g, const struct action *a, struct buf *out)
{
    const struct policy_subject *s = &g->subject.s;
    put_amounts(a->text ? a->text : "", out);
    put_amounts(a->element, out);
    if (s->writing.known && s->writing.text != a->text)
        put_amounts(s->writing.text, out);
    for (int i = 0; i < s->n_targets; i++) {
        put_amounts(s->targets[i].name, out);
        put_amounts(s->targets[i].presses, out);
        put_amounts(s->targets[i].window.title, out);
    }
}

struct words {                         /* texts of a question */
    const char *what, *amounts, *path; /* path: file of the image, or NULL */
    bool again;
};

/* Returns the accessible name of the element that the action affects or that its keys press. */
static const char *target_name(const struct gate *g)
{
    const struct policy_target *t = last_target(g);
    return !t ? "" : *t->name ? t->name : g->subject.s.press ? t->presses : "";
}

static json_t *window_json(const struct screen_window *w)
{
    json_t *all = json_pack("{s:I}", "id", (json_int_t)w->id);
    json_set_text(all, "title", w->title);
    json_set_text(all, "class", w->class);
    json_set_text(all, "program", w->program);
    return all;
}

static void set_if(json_t *all, const char *key, const char *value)
{
    if (value && *value)
        json_set_text(all, key, value);
}

static void question_json(const struct gate *g, const struct action *a, const struct words *q,
                          const struct gate_ruling *out, struct buf *b)
{
    const struct policy_subject *s = &g->subject.s;
    const struct screen_window none = {0}, *w = s->n_targets ? &last_target(g)->window : &none;
    json_t *all = json_pack("{s:i}", "v", 1), *targets = json_array();
    autobuf action = buf_of(QUESTION_MAX);
    action_to_json(a, &action);
    json_set_text(all, "what", q->what);
    json_set_text(all, "rule", out->rule.rule);
    json_set_text(all, "task", g->o.task ? g->o.task : "");
    json_object_set_new(all, "action", json_loadb(action.data, action.len, 0, NULL));
    for (int i = 0; i < s->n_targets; i++)
        if (s->targets[i].placed)
            json_array_append_new(targets, json_pack("[i, i]", s->targets[i].x, s->targets[i].y));
    json_object_set_new(all, "targets", targets);
    json_object_set_new(all, "window", window_json(w));
    json_object_set_new(all, "seconds", json_plain_number(g->o.confirm.seconds));
    set_if(all, "name", target_name(g));
    set_if(all, "thought", g->thought);
    set_if(all, "amounts", q->amounts);
    set_if(all, "crop", q->path);
    if (q->again)
        json_object_set_new(all, "changed", json_true());
    autofree char *line = json_line(all, JSON_REAL_PRECISION(6));
    buf_printf(b, "%s\n", line);
    json_decref(all);
}

struct page { /* lines of a question */
    struct confirm_line lines[LINES];
    int n;
};

static void put_line(struct page *p, const char *name, const char *text)
{
    if (text && *text && p->n < LINES)
        p->lines[p->n++] = (struct confirm_line){name, text};
}

/* Returns the text that the action writes, without secrets; the caller frees it. A pasted part of a secret is
 * shown as the secret's name. */
static char *text_written(const struct gate *g, const struct action *a)
{
    const struct policy_writing *w = &g->subject.s.writing;
    const char *text = a->text ? a->text : w->known ? w->text : "", *names[SECRETS_MAX];
    bool gives_away = !a->text && secrets_find_values(g->o.secrets, text, names) > 0;
    return gives_away ? xasprintf("{{%s}}", names[0]) : secrets_mask(g->o.secrets, text);
}

static enum confirm_answer ask_user(struct gate *g, const struct action *a, const struct crop *crop, int step,
                                    bool again, struct gate_ruling *out)
{
    struct page page = {.n = 0};
    struct buf what, json, amounts;
    autofree char *path = NULL;
    buf_init(&what, QUESTION_MAX);
    buf_init(&json, QUESTION_MAX);
    buf_init(&amounts, QUESTION_MAX);
    action_describe(a, &what);
    find_amounts(g, a, &amounts);
    autofree char *written = text_written(g, a);
    save_crop(g, crop, step, out->crop, sizeof out->crop, &path);
    question_json(g, a, &(struct words){what.data, amounts.data, path, again}, out, &json);
    secrets_scrub_json(g->o.secrets, &json);
    put_line(&page, "changed", again ? "the screen has changed; this is its current state" : NULL);
    put_line(&page, "wants to", what.data);
    put_line(&page, "writes", written);
    put_line(&page, "target", target_name(g));
    put_line(&page, "amounts", amounts.data);
    put_line(&page, "window", out->where);
    put_line(&page, "rule", out->rule.rule);
    put_line(&page, "thought", g->thought);
    put_line(&page, "task", g->o.task);
    put_line(&page, "picture", path);
    struct confirm_question q = {page.lines, page.n, crop->im.rgb ? &crop->im : NULL, json.data};
    enum confirm_answer answer = confirm_ask(&g->o.confirm, &q, screen_stop_flag(g->screen), &out->who);
    buf_free(&what);
    buf_free(&json);
    buf_free(&amounts);
    return answer;
}

/* ---- the answer ------------------------------------------------------------------------------- */

void gate_refuse(struct gate_ruling *out, enum action_fault fault, const char *fmt, ...)
{
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    out->pass = false;
    out->fault = fault;
    snprintf(out->told, sizeof out->told, "%s: not done: %s", action_fault_name(fault), text);
    out->told[utf8_valid_prefix(out->told, strlen(out->told))] = 0;
}

static void apply_answer(struct gate *g, enum confirm_answer answer, struct gate_ruling *out)
{
    const char *rule = out->rule.rule;
    switch (answer) {
    case CONFIRM_ALLOWED:
        out->pass = true;
        return;
    case CONFIRM_DECLINED:
        gate_refuse(out, FAULT_REFUSED,
                    "the user was asked (rule \"%s\") and declined; do not try it in another way", rule);
        return;
    case CONFIRM_TIMED_OUT:
        gate_refuse(out, FAULT_REFUSED, "the user was asked (rule \"%s\") and did not answer in time", rule);
        return;
    case CONFIRM_STOPPED:
        gate_refuse(out, FAULT_REFUSED, "stopped");
        return;
    case CONFIRM_NOBODY:
        gate_refuse(out, FAULT_REFUSED,
                    "the rule \"%s\" requires the user's confirmation, and nobody can be asked", rule);
        if (!g->warned_nobody)
            warn("the rule \"%s\" requires confirmation, but nobody can be asked: see --confirm", rule);
        g->warned_nobody = true;
    }
}

/* Returns whether the windows and the text that the user has approved are still the same. */
static bool same_targets(const struct policy_subject *a, const struct policy_subject *b)
{
    bool same = a->n_targets == b->n_targets && a->writing.known == b->writing.known &&
                (!a->writing.known || !strcmp(a->writing.text, b->writing.text));
    for (int i = 0; same && i < a->n_targets; i++) {
        const struct screen_window *v = &a->targets[i].window, *w = &b->targets[i].window;
        same = v->id == w->id && !strcmp(v->class, w->class);
    }
    return same;
}

/* Returns whether the names agree. A name that was reported only once is not a change. */
static bool same_name(const char *a, const char *b)
{
    return !*a || !*b || !strcmp(a, b);
}

static bool same_names(const struct policy_subject *a, const struct policy_subject *b)
{
    bool same = true;
    for (int i = 0; same && i < a->n_targets; i++) {
        const struct policy_target *v = &a->targets[i], *w = &b->targets[i];
        same = !strcmp(v->window.title, w->window.title) && same_name(v->name, w->name) &&
               same_name(v->presses, w->presses);
    }
    return same;
}

enum since { SINCE_SAME, SINCE_CHANGED, SINCE_ELSEWHERE };

/* Checks the screen again after a yes. If the content has changed, the rules are applied to it. */
static int look_again(struct gate *g, const struct action *a, const struct view_transform *transform,
                      const struct crop *shown, struct gate_ruling *out, enum since *since, struct err *e)
{
    struct policy_subject asked = g->subject.s; /* its corners are not compared */
    struct crop now;
    char *text = xstrdup(asked.writing.known ? asked.writing.text : "");
    asked.writing.text = text;
    int rc = gate_look(g, a, transform, e);
    bool same = rc == 0 && same_targets(&asked, &g->subject.s);
    free(text);
    *since = same ? SINCE_SAME : SINCE_ELSEWHERE;
    if (rc || !same)
        return rc;
    take_crop(g, &now, true);
    if (!same_names(&asked, &g->subject.s) ||
        (shown->im.rgb && (!now.im.rgb || gate_picture_changed(&shown->im, &now.im))))
        *since = SINCE_CHANGED;
    image_free(&now.im);
    if (*since == SINCE_CHANGED) {
        out->rule = gate_apply_rules(g, a);
        gate_describe_window(g, out->where, sizeof out->where);
    }
    return 0;
}

/* Asks once. *since: SINCE_CHANGED if the user agreed to content that is no longer shown. */
static int ask_once(struct gate *g, const struct action *a, const struct view_transform *transform, int step,
                    bool again, struct gate_ruling *out, enum since *since, struct err *e)
{
    struct crop shown, marked = {.x = -1};
    int rc = 0;
    take_crop(g, &shown, false);
    if (shown.im.rgb && image_copy(&marked.im, &shown.im, NULL) == 0) {
        marked.x = shown.x;
        marked.y = shown.y;
        mark_target(&marked);
    }
    enum confirm_answer answer = ask_user(g, a, &marked, step, again, out);
    *since = SINCE_SAME;
    out->answer = answer;
    if (answer == CONFIRM_STOPPED)
        rc = err_set(e, ERR_STOPPED, "stopped while waiting for a confirmation");
    else if (answer == CONFIRM_ALLOWED && g->o.confirm.method != CONFIRM_YES)
        rc = look_again(g, a, transform, &shown, out, since, e);
    apply_answer(g, answer, out);
    image_free(&marked.im);
    image_free(&shown.im);
    return rc;
}

int gate_ask(struct gate *g, const struct action *a, const struct view_transform *transform, int step,
             struct gate_ruling *out, struct err *e)
{
    int64_t start = clock_ns();
    enum since since = SINCE_CHANGED;
    int rc = 0;
    for (int i = 0; i < QUESTIONS && rc == 0 && since == SINCE_CHANGED && out->rule.verdict != POLICY_DENY;
         i++)
        rc = ask_once(g, a, transform, step, i > 0, out, &since, e);
    if (since == SINCE_ELSEWHERE)
        gate_refuse(out, FAULT_REFUSED, "the target has changed while the user was asked; look again");
    else if (out->rule.verdict == POLICY_DENY)
        gate_refuse(out, FAULT_DENIED, "the rule \"%s\" forbids it; do not try it in another way",
                    out->rule.rule);
    else if (since == SINCE_CHANGED)
        gate_refuse(
            out, FAULT_REFUSED,
            "the screen around the target has changed each time the user was asked; wait and look again");
    out->ms = clock_ms_since(start);
    return rc;
}
