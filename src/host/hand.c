/* hand.c - runs in which the client chooses each action instead of a model (host.h).
 *
 * Each call becomes a reply in the dialect "host" and completes when the loop delivers the next screenshot.
 * The events recorded in between form its result.  A deed on an element (deed.c) may take several replies.
 * An invalid call is rejected at once and is not a step.
 * After HOST_IDLE_S seconds without a call the run ends, which frees the display. */
#include "host/private.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"
#include "llm/llm_counted.h"

#include <stdlib.h>
#include <string.h>

struct hand {
    struct llm_counted c;
    struct work *work;
    struct dialect *dialect;
    const volatile int *cancel;
    struct deed *deed; /* in progress; NULL: none */
};

static struct hand *hand_of(const struct llm *m)
{
    return (struct hand *)(uintptr_t)m;
}

/* ---- the result of a call ------------------------------------------------------------------------------ */

static void take_over(json_t *to, const char *name, const json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    if (value && !json_is_null(value))
        json_object_set(to, name, value);
}

void hand_hear(struct work *w, const json_t *event)
{
    const char *kind = json_string_value(json_object_get(event, "kind"));
    if (!kind || !w->outcome)
        return;
    if (!strcmp(kind, "action")) {
        take_over(w->outcome, "what", event, "what");
        take_over(w->outcome, "step", event, "step");
    } else if (!strcmp(kind, "exec")) {
        take_over(w->outcome, "ok", event, "ok");
        take_over(w->outcome, "text", event, "error");
        take_over(w->outcome, "events", event, "events");
    } else if (!strcmp(kind, "gate")) {
        take_over(w->outcome, "rule", event, "rule");
        take_over(w->outcome, "ok", event, "pass");
        take_over(w->outcome, "text", event, "error");
    } else if (!strcmp(kind, "effect")) {
        take_over(w->outcome, "changed", event, "changed");
    } else if (!strcmp(kind, "error")) {
        json_object_set_new(w->outcome, "ok", json_false());
        take_over(w->outcome, "text", event, "message");
    } else if (!strcmp(kind, "tool_output")) {
        take_over(w->outcome, "text", event, "text");
    }
}

static void tell_outcome(struct work *w, const struct image *im)
{
    json_t *outcome = w->outcome, *picture = outcome ? look_picture(im, w->max_side) : NULL;
    w->outcome = NULL;
    if (!outcome)
        return;
    shown_forget(w->host, w->screen);
    if (picture)
        json_object_set_new(outcome, "picture", picture);
    host_tell(w, outcome);
}

static void refuse(struct work *w, const struct err *why)
{
    host_tell(w, json_pack("{s:s, s:b, s:s}", "kind", "act", "ok", false, "text", why->text));
}

/* ---- replies ------------------------------------------------------------------------------------------- */

/* Waits for a call and returns it; the caller frees it.  NULL: the run was finished or stopped, or
 * HOST_IDLE_S seconds have passed. */
static char *wait_for_act(struct hand *h)
{
    struct work *w = h->work;
    int64_t start = clock_ns();
    LOCKED(&w->host->lock);
    while (!w->act && !w->finish && !flag_up(h->cancel) && clock_ms_since(start) < 1000.0 * HOST_IDLE_S &&
           work_wait(w))
        ;
    char *act = w->act;
    w->act = NULL;
    return act;
}

/* Returns whether the loop would parse the reply as an action; false with why. */
static bool readable(struct hand *h, const char *reply, struct err *why)
{
    struct step step = {0};
    const struct image *seen = &h->work->seen;
    enum action_fault f = action_parse(reply, strlen(reply), h->dialect, seen->w, seen->h, &step, why);
    step_free(&step);
    return f == FAULT_NONE;
}

/* Writes the next reply of the deed in progress.  Returns false, and frees the deed, when it is over. */
static bool next_of_deed(struct hand *h, struct buf *out)
{
    struct err why = ERR_INIT;
    buf_clear(out);
    if (h->deed && deed_next(h->deed, out)) {
        if (readable(h, out->data, &why))
            return true;
        deed_refuse(h->deed, why.text);
    }
    deed_free(h->deed);
    h->deed = NULL;
    return false;
}

static void next_reply(struct hand *h, struct buf *out)
{
    if (next_of_deed(h, out))
        return;
    for (char *act; (act = wait_for_act(h));) {
        struct err why = ERR_INIT;
        h->deed = deed_new(h->work, act);
        if (h->deed) {
            free(act);
            if (next_of_deed(h, out))
                return;
            continue;
        }
        buf_clear(out);
        buf_printf(out, "<tool_call>%s</tool_call>", act);
        free(act);
        if (readable(h, out->data, &why)) {
            shown_use(h->work->host, h->work->screen);
            h->work->outcome = json_pack("{s:s, s:b}", "kind", "act", "ok", true);
            return;
        }
        refuse(h->work, &why);
    }
    buf_clear(out);
    buf_puts(out, "<tool_call>{\"name\": \"answer\", \"arguments\": {\"text\": \"no further "
                  "action\"}}</tool_call>");
}

static int hand_speak(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e)
{
    struct hand *h = hand_of(m);
    int64_t start = clock_ns();
    *out = (struct generated){.finish = FINISH_STOP, .n = 1};
    buf_init(&out->text, HOST_TEXT_MAX);
    next_reply(h, &out->text);
    if (flag_up(r->cancel) || flag_up(h->cancel))
        out->finish = FINISH_CANCELLED;
    h->c.stats.decoded++;
    h->c.length += (int64_t)out->text.len;
    out->ms = clock_ms_since(start);
    return 0;
}

/* Takes a message.  A screenshot completes the call before it. */
static int hand_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                     struct err *e)
{
    struct hand *h = hand_of(m);
    llm_counted_add(&h->c, parts, n);
    for (int i = 0; i < n; i++) {
        if (!parts[i].image)
            continue;
        image_free(&h->work->seen);
        if (image_copy(&h->work->seen, parts[i].image, e))
            return -1;
        if (!h->deed) /* a deed reports when it is over */
            tell_outcome(h->work, parts[i].image);
    }
    return 0;
}

/* ---- the other operations of llm.h --------------------------------------------------------------------- */

static void hand_set_cancel(struct llm *m, const volatile int *flag)
{
    hand_of(m)->cancel = flag;
}

static void hand_free(struct llm *m)
{
    autofree struct hand *h = hand_of(m);
    deed_free(h->deed);
    image_free(&h->work->seen);
    json_decref(h->work->outcome);
    h->work->outcome = NULL;
    dialect_free(h->dialect);
}

struct llm *hand_open(void *arg)
{
    static const struct llm_ops ops = {
        .user = hand_user,
        .speak = hand_speak,
        LLM_COUNTED_OPS,
        .set_cancel = hand_set_cancel,
        .free = hand_free,
    };
    struct hand *h = xcalloc(1, sizeof *h);
    h->c.base.ops = &ops;
    h->work = arg;
    h->dialect = dialect_load(HAND_DIALECT, NULL);
    if (!h->dialect)
        bug("the dialect '%s' is missing", HAND_DIALECT);
    return &h->c.base;
}
