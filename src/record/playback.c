/* playback.c - chooses the reply for each step of a recording; see playback.h. */
#include "record/playback.h"

#include "actions/registry.h"
#include "base/clock.h"
#include "base/file.h"
#include "llm/llm_counted.h"
#include "record/target.h"
#include "record/target_element.h"
#include "record/windows.h"
#include "screen/observed.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    REPLY_MAX = 1 << 20,
    FOCUS_MS = 1000,     /* longest wait for the element with the keyboard */
    WAIT_MS = 500,       /* between two searches for a target */
    PATIENCE_MIN_S = 15, /* limits of the time for which a target may be missing */
    PATIENCE_MAX_S = 120,
};

struct playback {
    struct llm_counted c;
    struct recording *recording;
    struct screen *screen;
    struct elements *elements; /* opened at first use */
    bool elements_tried;
    int at;        /* index of the step to play */
    int64_t since; /* start of the search for its target; 0: not started */
    struct image seen, rested;
    char failed[ERR_TEXT]; /* why the last action was not performed; "": it was */
    int ways[TARGET_WAYS];
    struct windows before; /* before the last action */
};

static struct playback *playback_of(const struct llm *m)
{
    return (struct playback *)(uintptr_t)m;
}

/* ---- replies ---------------------------------------------------------------------------------------- */

static void put_keys(struct buf *b, const char *name, const uint32_t *keys, int n)
{
    struct action a = {.kind = ACT_KEY, .x = ACTION_ABSENT, .x2 = ACTION_ABSENT, .nkeys = n, .count = 1};
    struct buf json;
    if (!n)
        return;
    memcpy(a.keys, keys, (size_t)n * sizeof *keys);
    buf_init(&json, REPLY_MAX);
    action_to_json(&a, &json); /* for its spelling of keys */
    const char *list = strchr(json.data, '['), *end = list ? strchr(list, ']') : NULL;
    if (end)
        buf_printf(b, ", \"%s\": %.*s", name, (int)(end - list) + 1, list);
    buf_free(&json);
}

static void put_element(struct buf *b, const struct recording_target *t)
{
    if (!*t->name)
        return;
    buf_puts(b, ", \"element\": ");
    buf_put_json(b, t->name, strlen(t->name));
}

struct place {
    int x, y; /* image pixels */
};

/* Writes the path of a drag. Inside one window the recorded path is kept; to another target it is
 * straight. */
static void put_path(struct buf *b, const struct action *a, struct place from, struct place to)
{
    struct action_point ends[2] = {{a->x, a->y}, {a->x2, a->y2}};
    const struct action_point *p = a->npath ? a->path : ends;
    int n = a->npath ? a->npath : 2;
    bool moved = to.x - from.x != p[n - 1].x - p[0].x || to.y - from.y != p[n - 1].y - p[0].y;
    buf_puts(b, ", \"path\": [");
    for (int i = 0; i < n; i++) {
        struct place at = {from.x + p[i].x - p[0].x, from.y + p[i].y - p[0].y};
        if (moved && i && i < n - 1)
            continue;
        at = i == n - 1 ? to : at;
        buf_printf(b, "%s{\"x\": %d, \"y\": %d}", i ? ", " : "", at.x, at.y);
    }
    buf_putc(b, ']');
}

static void put_arguments(struct buf *b, const struct recording_step *s, struct place from, struct place to)
{
    const struct action *a = &s->action;
    if (action_is(a->kind, ACTION_TYPES)) {
        buf_puts(b, "\"text\": ");
        buf_put_json(b, a->text, strlen(a->text));
        buf_printf(b, ", \"press_enter\": %s", a->press_enter ? "true" : "false");
        return;
    }
    if (action_is(a->kind, ACTION_NAMED_KEYS)) {
        buf_printf(b, "\"repeat\": %d", a->count);
        put_keys(b, "keys", a->keys, a->nkeys);
        return;
    }
    if (action_is(a->kind, ACTION_DRAGS)) {
        buf_printf(b, "\"button\": \"%s\"", action_button_name(a->button));
        put_path(b, a, from, to);
    } else {
        buf_printf(b, "\"x\": %d, \"y\": %d", from.x, from.y);
    }
    if (action_takes(a->kind, P_DIRECTION))
        buf_printf(b, ", \"direction\": \"%s\", \"amount\": %d",
                   a->dy > 0   ? "down"
                   : a->dy < 0 ? "up"
                   : a->dx > 0 ? "right"
                               : "left",
                   abs(a->dy ? a->dy : a->dx));
    if (action_is(a->kind, ACTION_CLICKS))
        buf_printf(b, ", \"button\": \"%s\", \"count\": %d", action_button_name(a->button), a->count);
    put_element(b, &s->target);
    put_keys(b, "hold", a->hold, a->nhold);
}

/* Writes a call with one text argument. */
static void reply_with(struct buf *b, const char *tool, const char *key, const char *text)
{
    buf_printf(b, "<tool_call>{\"name\": \"%s\", \"arguments\": {\"%s\": ", tool, key);
    buf_put_json(b, text, strlen(text));
    buf_puts(b, "}}</tool_call>");
}

static void reply_wait(struct buf *b, const char *why)
{
    buf_printf(b, "%s\n<tool_call>{\"name\": \"wait\", \"arguments\": {\"seconds\": %.1f}}</tool_call>", why,
               WAIT_MS / 1000.0);
}

static void reply_failed(const struct playback *p, struct buf *b, const char *why)
{
    const struct recording_step *s =
        &p->recording->steps[p->at < p->recording->n ? p->at : p->recording->n - 1];
    struct buf text;
    buf_init(&text, REPLY_MAX);
    buf_printf(&text, "step %d of %d (line %d) cannot be played: ", p->at + 1, p->recording->n, s->line);
    if (s->action.kind == ACT_NONE)
        buf_puts(&text, "the end");
    else
        action_describe(&s->action, &text);
    buf_printf(&text, ": %s", why);
    reply_with(b, "infeasible", "text", text.data);
    buf_free(&text);
}

static void reply_done(const struct playback *p, struct buf *b)
{
    char text[256];
    snprintf(text, sizeof text,
             "played %d of %d steps; targets found by image %d, name %d, position %d, mended %d", p->at,
             p->recording->n, p->ways[TARGET_PICTURE], p->ways[TARGET_NAME], p->ways[TARGET_PIXEL],
             p->ways[TARGET_MENDED]);
    reply_with(b, "answer", "text", text);
}

/* ---- one step --------------------------------------------------------------------------------------- */

static double patience(const struct recording_step *s)
{
    return fmin(fmax(PATIENCE_MIN_S, 2 * s->pause + 3), PATIENCE_MAX_S);
}

static bool patient(const struct playback *p, const struct recording_step *s)
{
    return clock_ms_since(p->since) < 1000 * patience(s);
}

static struct elements *elements_of(struct playback *p)
{
    if (!p->elements_tried)
        p->elements = elements_open(screen_name(p->screen));
    p->elements_tried = true;
    return p->elements;
}

/* Returns whether the screen is unchanged since the last screenshot, or the step's time limit has passed. */
static bool rests(struct playback *p, const struct recording_step *s)
{
    bool same = p->rested.rgb && image_tiles_changed(&p->rested, &p->seen, IMAGE_EFFECT_LEVEL) == 0;
    if (same || clock_ms_since(p->since) > 1000 * s->seconds)
        return true;
    image_free(&p->rested);
    image_copy(&p->rested, &p->seen, NULL);
    return false;
}

static bool is_there(const struct playback *p, const struct recording_step *s)
{
    return windows_there(p->screen, s) || clock_ms_since(p->since) > 1000 * s->seconds;
}

/* Returns whether the last action has had its recorded effect; otherwise writes the reason to why. */
static bool is_at_end(const struct playback *p, const struct recording_step *s, char *why, size_t size)
{
    struct windows *now = xcalloc(1, sizeof *now);
    *now = p->before;
    windows_read(p->screen, now);
    bool agree = windows_agree(&p->before, now, s, p->ways[TARGET_MENDED] > 0, why, size);
    free(now);
    return agree;
}

/* Returns whether the recorded window, and for a text the recorded field, has the keyboard. */
static bool has_keyboard(struct playback *p, const struct recording_step *s, char *why, size_t size)
{
    struct screen_window w;
    int focus;
    if (!windows_keyboard(p->screen, s, why, size))
        return false;
    if (!*s->target.role || !action_is(s->action.kind, ACTION_TYPES) || screen_focused_window(p->screen, &w))
        return true;
    elements_ask_focus(elements_of(p), w.title);
    const struct snapshot *now = elements_answer_focus(p->elements, w.title, FOCUS_MS, &focus);
    bool translated = window_translated(w.pid, s->language);
    return !now || target_has_keyboard(now, &s->target, focus, translated, why, size);
}

/* Finds the targets of a step. Returns false with the reason in `how` if one is missing. last: accepts every
 * way to find a target. */
static bool find_targets(struct playback *p, const struct recording_step *s, struct place *from,
                         struct place *to, bool last, char *how, size_t size)
{
    struct target_finder f = {p->screen, *s->target.role || *s->to.role ? elements_of(p) : NULL};
    struct screen_rect view = screen_view(p->screen);
    struct target_found a, b = {0};
    enum target_way way = target_find(&f, &s->target, &p->seen, view.x, view.y, last, &a);
    snprintf(how, size, "%s", a.text);
    if (!way)
        return false;
    *from = *to = (struct place){a.x - view.x, a.y - view.y};
    p->ways[way]++;
    if (!s->has_to)
        return true;
    bool together = !strcmp(s->to.class, s->target.class) && !strcmp(s->to.title, s->target.title) &&
                    s->to.rect.x == s->target.rect.x && s->to.rect.y == s->target.rect.y;
    if (together) { /* inside one window: same offset */
        to->x += s->to.x - s->target.x;
        to->y += s->to.y - s->target.y;
        return true;
    }
    if (!target_find(&f, &s->to, &p->seen, view.x, view.y, last, &b)) {
        snprintf(how, size, "end of the drag: %.400s", b.text);
        p->ways[way]--;
        return false;
    }
    *to = (struct place){b.x - view.x, b.y - view.y};
    return true;
}

/* Replies with the action of the current step, a wait for its target, or the statement that it cannot be
 * performed. */
static void play_step(struct playback *p, struct buf *b)
{
    const struct recording_step *s = &p->recording->steps[p->at];
    struct place from = {0}, to = {0};
    char how[ERR_TEXT] = "";
    bool last = !patient(p, s); /* evaluated once: the search takes time */
    bool there = s->has_target ? find_targets(p, s, &from, &to, last, how, sizeof how)
                               : has_keyboard(p, s, how, sizeof how);
    if (!there && !last) {
        reply_wait(b, how);
        return;
    }
    if (!there) {
        reply_failed(p, b, how);
        return;
    }
    buf_printf(b, "%s\n<tool_call>{\"name\": \"%s\", \"arguments\": {", how,
               action_kind_name(s->action.kind));
    put_arguments(b, s, from, to);
    buf_puts(b, "}}</tool_call>");
    windows_read(p->screen, &p->before);
    p->at++;
    p->since = 0;
}

/* Looks at a step that waits. Returns true, with a reply in b, while it is not over, or if it failed. */
static bool wait_step(struct playback *p, const struct recording_step *s, struct buf *b)
{
    char why[ERR_TEXT] = "";
    if (s->for_end && !is_at_end(p, s, why, sizeof why)) {
        if (clock_ms_since(p->since) > 1000 * s->seconds)
            reply_failed(p, b, why);
        else
            reply_wait(b, why);
        return true;
    }
    if (!s->for_end && (s->for_window ? !is_there(p, s) : !rests(p, s))) {
        reply_wait(b, s->for_window ? "waits for a window" : "waits until the screen stops changing");
        return true;
    }
    return false;
}

static void next_reply(struct playback *p, enum dialect_goal goal, struct buf *b)
{
    const struct recording *r = p->recording;
    if (goal != GOAL_STEP && goal != GOAL_ANSWER) { /* a question about the screen */
        reply_with(b, "infeasible", "text", "a recording cannot answer questions");
        return;
    }
    if (*p->failed && goal == GOAL_STEP && strstr(p->failed, OBSERVED_NOTHING)) {
        p->at -= p->at > 0; /* the screen had changed: searches for the target again */
    } else if (*p->failed && goal == GOAL_STEP) {
        p->at -= p->at > 0;
        reply_failed(p, b, p->failed);
        return;
    }
    while (goal == GOAL_STEP && p->at < r->n) {
        if (!p->since)
            p->since = clock_ns();
        if (r->steps[p->at].action.kind != ACT_NONE) {
            play_step(p, b);
            return;
        }
        if (wait_step(p, &r->steps[p->at], b))
            return;
        image_free(&p->rested);
        p->at++;
        p->since = 0;
    }
    reply_done(p, b);
}

/* ---- the interface of llm.h ------------------------------------------------------------------------- */

/* Keeps the newest screenshot, and the reason if the last action failed. */
static int play_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                     struct err *e)
{
    struct playback *p = playback_of(m);
    llm_counted_add(&p->c, parts, n);
    for (int i = 0; i < n; i++) {
        if (!parts[i].image)
            continue;
        llm_counted_failed(parts, p->c.stats.decoded ? i : 0, p->failed); /* the first text is the task */
        image_free(&p->seen);
        if (image_copy(&p->seen, parts[i].image, e))
            return -1;
    }
    return 0;
}

static int play_speak(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e)
{
    struct playback *p = playback_of(m);
    int64_t start = clock_ns();
    *out = (struct generated){.finish = FINISH_STOP};
    buf_init(&out->text, REPLY_MAX);
    if (!p->seen.rgb)
        return err_set(e, ERR_FAILED, "a recording can only be played on a screen");
    next_reply(p, r->goal, &out->text);
    if (out->text.full)
        return err_set(e, ERR_FAILED, "a recorded step is too long");
    out->n = 1;
    p->c.stats.decoded++;
    p->c.length += (int64_t)out->text.len;
    if (r->on_text)
        r->on_text(r->arg, out->text.data, out->text.len);
    out->ms = clock_ms_since(start);
    return 0;
}

static void play_free(struct llm *m)
{
    struct playback *p = playback_of(m);
    elements_close(p->elements);
    recording_free(p->recording);
    image_free(&p->seen);
    image_free(&p->rested);
    free(p);
}

bool playback_is(const char *path)
{
    char head[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
    if (fd >= 0)
        close(fd);
    return n > 0 && recording_is(head, (size_t)n);
}

/* Fails with ERR_USAGE if a secret is missing, before any input is sent. */
static int check_secrets(const struct recording *r, const char *path, const struct secrets *secrets,
                         struct err *e)
{
    for (int i = 0; i < r->n_secrets; i++) {
        bool known = false;
        for (int k = 0; k < secrets_count(secrets); k++)
            known = known || !strcmp(r->secrets[i], secrets_name(secrets, k));
        if (!known)
            return err_set(e, ERR_USAGE, "'%s' types {{%s}}: set it with --secret %s=env:VARIABLE", path,
                           r->secrets[i], r->secrets[i]);
    }
    return 0;
}

struct llm *playback_open(const char *path, struct screen *screen, const struct secrets *secrets,
                          struct err *e)
{
    static const struct llm_ops ops = {
        .user = play_user,
        .speak = play_speak,
        LLM_COUNTED_OPS,
        .free = play_free,
    };
    struct recording *r = recording_read(path, e);
    if (!r || check_secrets(r, path, secrets, e) ||
        (!r->n && err_set(e, ERR_USAGE, "'%s' contains no steps", path))) {
        recording_free(r);
        return NULL;
    }
    struct playback *p = xcalloc(1, sizeof *p);
    p->c.base.ops = &ops;
    p->recording = r;
    p->screen = screen;
    return &p->c.base;
}
