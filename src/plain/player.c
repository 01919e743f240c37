/* player.c - plain steps as a model: one reply for each screenshot. */
#include "plain/player_impl.h"

#include "atspi/roles.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "screen/observed.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ELEMENTS_TEXT_MAX = 1 << 18,
    AGAIN_MS = 150,
    BEGIN_MS = 3000,    /* for the first element of a web page to appear */
    DESCRIBE_MS = 5000, /* for a program that starts to describe its window */
};

static struct player *player_of(const struct llm *m)
{
    return (struct player *)(uintptr_t)m;
}

/* ---- what changed -------------------------------------------------------------------------------------- */

static char *elements_now(struct player *p)
{
    struct buf b;
    if (!p->now)
        return NULL;
    buf_init(&b, ELEMENTS_TEXT_MAX);
    buf_puts(&b, "");
    elements_text(p->now, false, &b);
    return buf_take(&b);
}

/* Returns whether the effect of the current step can be seen in an element: in the page, if a text of it was
 * pressed that may ignore clicks.  Browsers show tool tips and the memory of tabs at any time. */
static bool is_judged(const struct player *p, const struct element *e)
{
    bool page = resolve_page(p->now, e) || !strcmp(e->role, "document web");
    return !p->s.by_group || (page && resolve_in_active_window(p->now, e));
}

uint64_t player_digest(const struct player *p)
{
    static const int states[] = {STATE_CHECKED,  STATE_PRESSED,   STATE_SELECTED,
                                 STATE_EXPANDED, STATE_SENSITIVE, STATE_ENABLED};
    uint64_t sum = 14695981039346656037u;
    for (int i = 0; p->now && i < p->now->n; i++) {
        const struct element *e = &p->now->e[i];
        if (!is_judged(p, e))
            continue;
        bool named = !strcmp(e->value, e->name); /* Chromium: a button with the keyboard */
        const char *const texts[] = {e->role, e->name, named ? "" : e->value};
        for (int k = 0; k < 3; k++)
            for (const char *at = texts[k]; *at || at == texts[k]; at++) {
                sum = (sum ^ (unsigned char)*at) * 1099511628211u;
                if (!*at)
                    break;
            }
        for (size_t k = 0; k < sizeof states / sizeof *states; k++)
            sum = (sum ^ state_in(e->states, states[k])) * 1099511628211u;
    }
    return sum;
}

static size_t line_length(const char *text)
{
    return strcspn(text, "\n");
}

/* Returns the first line of a that b lacks, NULL: none.  Lines are compared without indentation. */
static const char *new_line(const char *a, const char *b, size_t *n)
{
    for (const char *at = a; *at; at += line_length(at) + (at[line_length(at)] != 0)) {
        const char *line = at + strspn(at, " ");
        *n = line_length(line);
        char *copy = xstrdup(line);
        copy[*n] = 0;
        bool found = strstr(b, copy) != NULL;
        free(copy);
        if (!found && *n)
            return line;
    }
    return NULL;
}

/* Returns the X window of the elements that were read; 0: unknown. */
static unsigned long window_now(const struct player *p)
{
    return p->now && p->now->n ? p->now->e[0].window : 0;
}

/* Writes a line of the elements without the number of the element. */
static void put_line(const char *what, const char *line, size_t n, char *out, size_t size)
{
    size_t digits = *line == 'e' ? strspn(line + 1, "0123456789") : 0;
    size_t skipped = digits && line[1 + digits] == ' ' ? digits + 2 : 0;
    n -= skipped;
    snprintf(out, size, "; %s%.*s", what, (int)(n < 120 ? n : 120), line + skipped);
}

static const char nothing_changed[] = "; no element changed";

/* Describes the effect of the last step: the window that closed or opened, or the line of the elements that
 * is new, or gone. */
static void describe_effect(struct player *p, const char *after, char *out, size_t size)
{
    size_t n = 0;
    struct screen_rect unused;
    unsigned long now = window_now(p);
    bool read = p->before && after;
    const char *line = read ? new_line(after, p->before, &n) : NULL;
    if (p->window && screen_window_rect(p->screen, p->window, &unused) < 0)
        snprintf(out, size, "; the window closed");
    else if (p->window && now && now != p->window)
        snprintf(out, size, "; now in window '%.80s'", p->now->e[0].name);
    else if (line)
        put_line("now ", line, n, out, size);
    else if (read && (line = new_line(p->before, after, &n)))
        put_line("gone: ", line, n, out, size);
    else
        snprintf(out, size, "%s", read ? nothing_changed : "");
}

/* Notes the outcome of the current step. */
static void note_outcome(struct player *p, enum player_end end, const char *text, const char *effect)
{
    struct player_outcome *o = &p->outcomes[p->s.at];
    o->end = end;
    o->seconds = p->begun ? clock_ms_since(p->begun) / 1000 : 0;
    snprintf(o->text, sizeof o->text, "%.320s%s", text, effect);
    o->text[utf8_valid_prefix(o->text, strlen(o->text))] = 0;
    p->begun = 0;
}

static void finish_step(struct player *p)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    struct buf text, done;
    char effect[160] = "", *after = elements_now(p);
    buf_init(&text, PLAYER_REPLY_MAX);
    buf_init(&done, PLAYER_REPLY_MAX);
    plain_print(s, &text);
    plain_print_done(s, &done);
    if (p->s.phase && !p->secret)
        describe_effect(p, after, effect, sizeof effect);
    bool idle = player_may_be_idle(s) && !p->s.verified && !strcmp(effect, nothing_changed),
         checks = player_asks(s);
    p->idle = (p->idle || idle) && !player_confirms(p);
    note_outcome(p, PLAYER_DONE, done.data, p->s.phase || checks ? effect : "; it was so already");
    snprintf(p->done, sizeof p->done, "%.90s%s", text.data, effect);
    p->done[utf8_valid_prefix(p->done, strlen(p->done))] = 0;
    player_make_safe(p->done);
    buf_free(&text);
    buf_free(&done);
    free(after);
    free(p->before);
    p->before = NULL;
    p->n_refs = 0;
    p->s = (struct player_state){.at = p->s.at + 1, .acted = p->s.acted};
}

/* ---- replies ------------------------------------------------------------------------------------------- */

static void reply_failed(struct player *p, struct buf *b, enum player_end end, const char *why)
{
    struct buf text;
    note_outcome(p, end, why, "");
    buf_init(&text, PLAYER_REPLY_MAX);
    buf_printf(&text, "step %d of %d cannot be performed: ", p->s.at + 1, p->steps.n);
    plain_print(&p->steps.s[p->s.at], &text);
    buf_printf(&text, ": %s", why);
    player_make_safe(text.data); /* a planned step has names of the screen */
    player_call(b, "infeasible", "text", text.data);
    buf_free(&text);
}

static void reply_done(const struct player *p, struct buf *b)
{
    char text[400];
    snprintf(text, sizeof text, "performed %d of %d steps%s%s", p->s.at, p->steps.n,
             *p->done ? "; the last: " : "", p->done);
    player_call(b, "answer", "text", text);
}

void player_look(struct player *p)
{
    struct err e = ERR_INIT;
    const struct plain_step *step = p->s.at < p->steps.n ? &p->steps.s[p->s.at] : NULL;
    bool asks = step && player_asks(step);
    struct elements_scope scope = {.all = asks && step->state == PLAIN_GONE,
                                   .beyond = asks || p->s.all,
                                   .closed = !step || (step->verb == PLAIN_CHOOSE && !step->in)};
    p->now = NULL;
    if (!p->elements)
        snprintf(p->unread, sizeof p->unread, "this run reads no elements (--no-elements, or no bus)");
    else if (elements_snapshot(p->elements, &scope, PLAYER_READ_MS, &p->now, &e) < 0) {
        p->now = NULL;
        snprintf(p->unread, sizeof p->unread, "%.190s", e.text);
    }
}

/* Returns whether step i presses one of these keys of a calculator. */
static bool presses_key(const struct player *p, int i, const char *keys)
{
    const struct plain_step *s = &p->steps.s[i];
    return s->verb == PLAIN_PRESS && s->what && s->what[0] && !s->what[1] && strchr(keys, s->what[0]);
}

/* Returns whether the current step is a key of a sum, whose effect is seen at "=" after it. */
static bool is_of_sum(const struct player *p)
{
    int i = p->s.at;
    while (i < p->steps.n && presses_key(p, i, "0123456789+-*/.()"))
        i++;
    return i > p->s.at && i < p->steps.n && presses_key(p, i, "=");
}

/* Returns whether the last step changed an element.  Steps that verify a value have an effect; the keys of a
 * sum need none, nor do keys that select text or move the caret, which no program reports.  The keyboard
 * focus alone is one only of keys, and of a press that asks for it. */
static bool has_effect(struct player *p)
{
    const struct plain_step *s = &p->steps.s[p->s.at];
    enum plain_verb v = s->verb;
    if (is_of_sum(p) || (v == PLAIN_KEYS && text_choice("ctrl+a|ctrl+home|ctrl+end", s->what) >= 0))
        return true;
    bool presses =
        v <= PLAIN_RIGHT_CLICK || v == PLAIN_MENU || v == PLAIN_TAB || v == PLAIN_KEYS || v == PLAIN_CLOSE;
    if ((!p->source && !p->s.by_group) || !presses || !p->s.phase || !p->before || p->s.verified ||
        player_digest(p) != p->digest)
        return true;
    if (v != PLAIN_KEYS && !p->s.focuses)
        return false;
    char *after = elements_now(p);
    bool changed = !after || strcmp(after, p->before) != 0;
    free(after);
    return changed;
}

/* Notes whether steps type a secret. */
static void note_secrets(struct player *p, const struct plain_steps *steps)
{
    for (int i = 0; i < steps->n; i++)
        p->secret = p->secret || (steps->s[i].value && strstr(steps->s[i].value, "{{"));
}

/* Appends steps, which are taken. */
static void add_steps(struct player *p, struct plain_steps *more)
{
    note_secrets(p, more);
    p->steps.s = xrealloc(p->steps.s, (unsigned long)(p->steps.n + more->n), sizeof *more->s);
    memcpy(p->steps.s + p->steps.n, more->s, (size_t)more->n * sizeof *more->s);
    p->outcomes = xrealloc(p->outcomes, (unsigned long)(p->steps.n + more->n), sizeof *p->outcomes);
    memset(p->outcomes + p->steps.n, 0, (size_t)more->n * sizeof *p->outcomes);
    p->steps.n += more->n;
    p->s.since = 0;
    free(more->s);
    *more = (struct plain_steps){0};
}

/* Asks the source for further steps.  Returns NEXT_STEP with them, or when the task is done. */
static enum player_next more_steps(struct player *p, struct buf *b, char *why, size_t size)
{
    static const struct snapshot nothing = {.hit = -1};
    struct plain_steps more = {0};
    bool last = p->s.since && clock_ms_since(p->s.since) >= PLAYER_PATIENCE_MS;
    player_look(p);
    int got = p->source->next(p->source->arg, p->now ? p->now : &nothing, last, &more, why, size);
    if (got == 0) {
        p->ended = true;
        return NEXT_STEP;
    }
    if (got == 1) {
        add_steps(p, &more);
        return NEXT_STEP;
    }
    p->s.since = p->s.since ? p->s.since : clock_ns();
    why[utf8_valid_prefix(why, strlen(why))] = 0;
    player_make_safe(why);
    if (got == -1 && !last) {
        player_wait(p, why, b);
        return NEXT_WAIT;
    }
    p->source->unclear = true;
    player_call(b, "infeasible", "text", why);
    return NEXT_FAILED;
}

/* Notes which elements are on the screen before the first action of a step. */
static void note_refs(struct player *p)
{
    p->n_refs = p->now ? p->now->n : 0;
    p->refs = xrealloc(p->refs, (size_t)p->n_refs + 1, sizeof *p->refs);
    for (int i = 0; i < p->n_refs; i++)
        p->refs[i] = p->now->e[i].ref;
}

/* Looks at the current step.  Returns NEXT_STEP when it is complete; otherwise b has the reply. */
static enum player_next reply_step(struct player *p, struct buf *b)
{
    char why[ERR_TEXT] = "";
    player_look(p);
    p->begun = p->begun ? p->begun : clock_ns();
    p->blame = PLAYER_NOT_DONE;
    char *before = elements_now(p);
    enum player_next next = player_step(p, b, why, sizeof why);
    if (next == NEXT_STEP && !has_effect(p)) {
        snprintf(why, sizeof why, "no effect was seen");
        p->s.since = p->s.since ? p->s.since : clock_ns();
        next = clock_ms_since(p->s.since) < PLAYER_EFFECT_MS ? NEXT_WAIT : NEXT_FAILED;
    }
    why[utf8_valid_prefix(why, strlen(why))] = 0;
    player_make_safe(why);
    if (next == NEXT_ACTION && !p->s.phase) {
        free(p->before);
        p->before = before;
        before = NULL;
        p->digest = player_digest(p);
        p->window = window_now(p);
        note_refs(p);
        if (player_may_be_idle(&p->steps.s[p->s.at]) && !p->idle)
            player_look_ahead(p);
    }
    free(before);
    if (next == NEXT_ACTION) {
        p->s.phase++;
        p->s.acted = true;
        p->s.since = 0;
    } else if (next == NEXT_WAIT) {
        player_wait(p, why, b);
    } else if (next == NEXT_FAILED) {
        reply_failed(p, b, p->blame, why);
    } else {
        finish_step(p);
    }
    return next;
}

static void next_reply(struct player *p, enum dialect_goal goal, struct buf *b)
{
    char why[ERR_TEXT] = "";
    if (goal != GOAL_STEP && goal != GOAL_ANSWER) {
        player_call(b, "infeasible", "text", "plain steps answer no questions");
        return;
    }
    bool again = *p->failed && (strstr(p->failed, OBSERVED_NOTHING) || strstr(p->failed, "nothing was done"));
    p->s.unsure = strstr(p->failed, "unsure whether") && p->s.at < p->steps.n &&
                  p->steps.s[p->s.at].verb == PLAIN_ENTER && p->steps.s[p->s.at].what;
    if (*p->failed && !again && !p->s.unsure && p->s.at < p->steps.n) {
        reply_failed(p, b, PLAYER_NOT_DONE, p->failed);
        return;
    }
    p->s.phase -= again && p->s.phase > 0; /* the screen had changed: looks again */
    p->s.keys -= again && p->s.keyed;
    p->s.mark = again && p->s.keyed ? 0 : p->s.mark;
    p->s.keyed = p->s.keyed && !again;
    while (goal == GOAL_STEP) {
        enum player_next next = p->s.at < p->steps.n ? reply_step(p, b)
                                : p->source          ? more_steps(p, b, why, sizeof why)
                                                     : NEXT_STEP;
        if (next != NEXT_STEP)
            return;
        if (p->s.at == p->steps.n && (!p->source || p->ended))
            break;
    }
    reply_done(p, b);
}

/* ---- the interface of llm.h ---------------------------------------------------------------------------- */

/* Keeps the reason if the last action failed. */
static int player_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                       struct err *e)
{
    struct player *p = player_of(m);
    (void)place;
    (void)e;
    llm_counted_add(&p->c, parts, n);
    for (int i = 0; i < n; i++) {
        if (!parts[i].image)
            continue;
        llm_counted_failed(parts, p->turns ? i : 0, p->failed); /* the first text is the task */
        p->seen = true;
        p->turns++;
    }
    p->s.length = p->c.length;
    p->asked = p->s;
    return 0;
}

/* Takes the last reply back if the conversation is rewound to the turn that it answered: another reply is
 * wanted.  Rewinding further only removes old turns from the context. */
static int player_rewind(struct llm *m, const struct llm_mark *at, struct err *e)
{
    struct player *p = player_of(m);
    int rc = llm_counted_rewind(m, at, e);
    if (p->c.length == p->asked.length)
        p->s = p->asked;
    return rc;
}

static int player_speak(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e)
{
    struct player *p = player_of(m);
    int64_t start = clock_ns();
    *out = (struct generated){.finish = FINISH_STOP};
    buf_init(&out->text, PLAYER_REPLY_MAX);
    if (!p->seen)
        return err_set(e, ERR_FAILED, "plain steps can only be performed on a screen");
    next_reply(p, r->goal, &out->text);
    llm_counted_spoken(&p->c, r, start, out);
    return 0;
}

static void player_free(struct llm *m)
{
    struct player *p = player_of(m);
    plain_free(&p->steps);
    free(p->before);
    free(p->refs);
    free(p->typed_over);
    free(p->weights);
    free(p->outcomes);
    free(p);
}

const bool *player_idle(const struct llm *m)
{
    return &player_of(m)->idle;
}

const struct player_outcome *player_outcomes(const struct llm *m, int *n)
{
    struct player *p = player_of(m);
    *n = p->steps.n;
    return p->outcomes;
}

/* Returns 1 if the window names elements, 0 if it names none, -1 if it has a web page, or the keyboard is in
 * a terminal: the run may have been started there for another window. */
static int described(const struct snapshot *s)
{
    bool named = false;
    for (int i = 0; s && i < s->n; i++) {
        bool shell = !strcmp(s->e[i].role, "terminal") && state_in(s->e[i].states, STATE_FOCUSED);
        if (shell || !strcmp(s->e[i].role, "document web"))
            return -1;
        named = named || (*s->e[i].name && element_word(s->e[i].role));
    }
    return named;
}

bool player_can_begin(const struct plain_steps *steps, struct elements *elements, bool without)
{
    struct player p = {.steps = *steps, .elements = elements};
    for (int64_t start = clock_ns();; clock_sleep_ms(AGAIN_MS)) {
        player_look(&p);
        int names = described(p.now);
        if ((without && names > 0) || player_finds(&p))
            return true;
        if (clock_ms_since(start) >= (names ? BEGIN_MS : DESCRIBE_MS))
            return false;
    }
}

struct llm *player_open(struct plain_steps steps, struct screen *screen, struct elements *elements,
                        struct player_source *source)
{
    static const struct llm_ops ops = {
        .begin = llm_counted_begin,
        .user = player_user,
        .reply = llm_counted_reply,
        .speak = player_speak,
        .close = llm_counted_close,
        .mark = llm_counted_mark,
        .rewind = player_rewind,
        .branch = player_rewind,
        .mark_length = llm_counted_mark_length,
        .mark_free = llm_counted_mark_free,
        .length = llm_counted_length,
        .stats = llm_counted_stats,
        .free = player_free,
    };
    struct player *p = xcalloc(1, sizeof *p);
    p->c.base.ops = &ops;
    p->steps = steps;
    p->screen = screen;
    p->elements = elements;
    p->outcomes = xcalloc((size_t)steps.n + 1, sizeof *p->outcomes);
    p->source = source;
    note_secrets(p, &steps);
    return &p->c.base;
}
