/* playback.c - chooses the reply for each step of a recording; see playback.h. */
#include "record/playback.h"

#include "actions/registry.h"
#include "base/clock.h"
#include "base/file.h"
#include "llm/llm_counted.h"
#include "record/look.h"
#include "record/playback_put.h"
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
    WAIT_MS = 100,       /* between two searches for a target */
    REST_MS = 500,       /* between two screenshots that must be equal */
    NEAR_PX = 4,         /* of a target from its recorded place in a window that looks as recorded */
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
    int known;             /* index of the step whose window looks as recorded; -1: none */
    int doubted;           /* index of the step whose target was not where that window has it; -1: none */
    int clicked;           /* index of the step whose field was clicked first, for its window; -1: none */
    int dx, dy;            /* of that window, from its recorded place */
};

static struct playback *playback_of(const struct llm *m)
{
    return (struct playback *)(uintptr_t)m;
}

/* ---- replies ---------------------------------------------------------------------------------------- */

/* Writes a call with one text argument. */
static void reply_with(struct buf *b, const char *tool, const char *key, const char *text)
{
    buf_printf(b, "<tool_call>{\"name\": \"%s\", \"arguments\": {\"%s\": ", tool, key);
    buf_put_json(b, text, strlen(text));
    buf_puts(b, "}}</tool_call>");
}

static void reply_wait(struct buf *b, const char *why, int ms)
{
    buf_printf(b, "%s\n<tool_call>{\"name\": \"wait\", \"arguments\": {\"seconds\": %.1f}}</tool_call>", why,
               ms / 1000.0);
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
static bool find_targets(struct playback *p, const struct recording_step *s, struct playback_place *from,
                         struct playback_place *to, bool last, char *how, size_t size)
{
    struct target_finder f = {p->screen, *s->target.role || *s->to.role ? elements_of(p) : NULL};
    struct screen_rect view = screen_view(p->screen);
    struct target_found a, b = {0};
    enum target_way way = target_find(&f, &s->target, &p->seen, view.x, view.y, last, &a);
    snprintf(how, size, "%s", a.text);
    if (!way)
        return false;
    *from = *to = (struct playback_place){a.x - view.x, a.y - view.y};
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
    *to = (struct playback_place){b.x - view.x, b.y - view.y};
    return true;
}

/* Returns whether a target is at its recorded place in its window. */
static bool is_in_place(const struct playback *p, const struct recording_step *s, struct playback_place at)
{
    struct screen_rect view = screen_view(p->screen);
    return !s->has_target || (abs(at.x + view.x - p->dx - s->target.x) <= NEAR_PX &&
                              abs(at.y + view.y - p->dy - s->target.y) <= NEAR_PX);
}

/* Returns whether the window at a place has the keyboard. */
static bool has_focus(const struct playback *p, struct playback_place at)
{
    struct screen_rect view = screen_view(p->screen);
    struct screen_window under, focused;
    return screen_window_at(p->screen, at.x + view.x, at.y + view.y, &under) == 0 &&
           screen_focused_window(p->screen, &focused) == 0 && under.id == focused.id;
}

/* Replies with the action of the current step, a wait for its target, or the statement that it cannot be
 * performed. */
static void play_step(struct playback *p, struct buf *b)
{
    const struct recording_step *s = &p->recording->steps[p->at];
    struct playback_place from = {0}, to = {0};
    char how[ERR_TEXT] = "";
    bool last = !patient(p, s); /* evaluated once: the search takes time */
    bool there = s->has_target ? find_targets(p, s, &from, &to, last, how, sizeof how)
                               : has_keyboard(p, s, how, sizeof how);
    if (!there && !last) {
        reply_wait(b, how, WAIT_MS);
        return;
    }
    if (there && p->known == p->at && !is_in_place(p, s, from)) {
        p->doubted = p->at;
        reply_wait(b, "its window looks as recorded, but it is elsewhere: waits until the screen settles",
                   WAIT_MS);
        return;
    }
    if (!there) {
        reply_failed(p, b, how);
        return;
    }
    buf_puts(b, how);
    if (s->action.overwrite && p->clicked != p->at && !has_focus(p, from)) {
        playback_put_click(b, s, from); /* the keyboard follows later */
        p->clicked = p->at;
        return;
    }
    playback_put_calls(b, s, from, to);
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
            reply_wait(b, why, WAIT_MS);
        return true;
    }
    if (!s->for_end && p->known <= p->at && (s->for_window ? !is_there(p, s) : !rests(p, s))) {
        reply_wait(b, s->for_window ? "waits for a window" : "waits until the screen stops changing",
                   s->for_window ? WAIT_MS : REST_MS);
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
    if (*p->failed && goal == GOAL_STEP) {
        p->at -= p->at > 0 && p->clicked != p->at; /* the first click into a field is part of its step */
        p->clicked = -1;
        if (!strstr(p->failed, OBSERVED_NOTHING)) {
            reply_failed(p, b, p->failed);
            return;
        } /* otherwise the screen had changed: searches for the target again */
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

/* ---- windows that look as recorded ------------------------------------------------------------------ */

static const char *class_of(const struct recording_step *s)
{
    return s->has_target ? s->target.class : s->class;
}

static const char *title_of(const struct recording_step *s)
{
    return s->has_target ? s->target.title : s->title;
}

/* Returns whether the action before a step changed the window in the recording, or opened it. Otherwise the
 * window does not show when the program is done with it: it may look the same beside a dialog that closes. */
static bool is_changed(const struct recording *r, int at)
{
    const struct recording_step *s = &r->steps[at], *last = NULL, *here = NULL;
    for (int i = 0; i < at; i++) {
        const struct recording_step *t = &r->steps[i];
        if (t->action.kind == ACT_NONE)
            continue;
        last = t;
        here = !strcmp(class_of(t), class_of(s)) && !strcmp(title_of(t), title_of(s)) ? t : here;
    }
    struct screen_rect target = look_of_target(s);
    return !here || (here == last && !look_same(&last->look, &s->look, &target, 1));
}

static bool is_known(struct playback *p, int at, const struct image *frame)
{
    const struct recording_step *s = &p->recording->steps[at];
    const char *class = class_of(s), *title = title_of(s);
    struct screen_rect view = screen_view(p->screen);
    struct screen_window w = {.rect = screen_root(p->screen)};
    struct recording_look now = {0};
    if (!s->look.image.rgb || at == p->doubted || !is_changed(p->recording, at) ||
        (*class && screen_find_window(p->screen, class, title, &w)))
        return false;
    p->dx = w.rect.x - s->target.rect.x;
    p->dy = w.rect.y - s->target.rect.y;
    look_take(frame, view.x, view.y, w.rect, &now);
    struct screen_rect target = look_of_target(s);
    bool same = look_same(&now, &s->look, &target, 1);
    image_free(&now.image);
    return same;
}

bool playback_known(void *arg, struct image *frame)
{
    struct playback *p = playback_of(arg);
    const struct recording *r = p->recording;
    char why[ERR_TEXT];
    int at = p->at;
    while (at < r->n && r->steps[at].action.kind == ACT_NONE && !r->steps[at].for_end)
        at++;
    bool known = at < r->n && (r->steps[at].for_end ? is_at_end(p, &r->steps[at], why, sizeof why)
                                                    : is_known(p, at, frame));
    p->known = known ? at : -1;
    return known;
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
    llm_counted_spoken(&p->c, r, start, out);
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
    p->known = p->doubted = p->clicked = -1;
    return &p->c.base;
}
