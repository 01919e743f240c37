/* recorder_queue.c - the steps that are not written yet: secrets, waits, and the file. See recorder.c.
 *
 * Whether a text was typed into a password field is known only up to FOCUS_MS later, when the program has
 * reported the keyboard focus, and the name of a pressed element at times up to NAME_MS later: steps wait in
 * a queue until then.
 */
#include "atspi/elements.h"
#include "record/recorder_impl.h"

#include "base/clock.h"
#include "base/file.h"

#include <X11/keysym.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Returns the name PASSWORD, PASSWORD_2, ... of a value. Values are recognized by a salted hash, which is
 * never written. */
static const char *hidden_name(struct recorder *r, const char *value)
{
    char(*names)[SECRET_NAME] = r->result->hidden;
    int n = r->result->n_hidden;
    uint64_t hash = XXH3_64bits_withSeed(value, strlen(value), r->salt);
    for (int i = 0; i < n; i++)
        if (r->hashes[i] == hash)
            return names[i];
    if (n == RECORDER_SECRETS)
        return names[n - 1];
    for (int k = n + 1;; k++) {
        bool taken = false;
        snprintf(names[n], SECRET_NAME, k > 1 ? "PASSWORD_%d" : "PASSWORD", k);
        for (int i = 0; i < secrets_count(r->o->secrets); i++)
            taken = taken || !strcmp(names[n], secrets_name(r->o->secrets, i));
        if (!taken)
            break;
    }
    r->hashes[n] = hash;
    r->result->n_hidden++;
    return names[n];
}

static void replace_text(struct action *a, char *text)
{
    explicit_bzero(a->text, strlen(a->text));
    free(a->text);
    a->text = text;
}

static bool edits(const struct action *a)
{
    static const uint32_t keys[] = {XK_BackSpace, XK_Delete, XK_Left, XK_Right, XK_Home, XK_End};
    for (size_t i = 0; action_is(a->kind, ACTION_NAMED_KEYS) && i < sizeof keys / sizeof *keys; i++)
        if (a->keys[0] == keys[i])
            return true;
    return false;
}

/* Replaces a secret by its name. Returns false if the step belongs to the previous one, which types the
 * whole value. */
static bool hide_secret(struct recorder *r, struct item *q)
{
    struct action *a = &q->step.action;
    bool before = r->in_field;
    if (action_is(a->kind, ACTION_TYPES) && r->o->secrets)
        replace_text(a, secrets_mask(r->o->secrets, a->text));
    bool hidden = action_is(a->kind, ACTION_TYPES) &&
                  (q->hidden || elements_password_between(r->elements, q->from, q->until));
    r->in_field = hidden ? !a->press_enter : before && edits(a);
    if (hidden && before)
        replace_text(a, xstrdup(""));
    else if (hidden && !strstr(a->text, "{{"))
        replace_text(a, xasprintf("{{%s}}", hidden_name(r, a->text)));
    return !before || (hidden ? a->press_enter : !edits(a));
}

int recorder_append(struct recorder *r, const struct recording_step *s, struct err *e)
{
    struct buf line;
    buf_init(&line, RECORDING_MAX_LINE + 4096);
    int rc =
        recording_put_step(s, &line, e) || file_write_all(r->fd, r->part, line.data, line.len, e) ? -1 : 0;
    r->bytes += line.len;
    buf_free(&line);
    if (rc)
        return -1;
    r->result->steps++;
    return r->bytes > RECORDING_MAX_BYTES - RECORDING_MAX_LINE || r->result->steps >= RECORDING_MAX_STEPS - 1
               ? err_set(e, ERR_FAILED, "the recording is full: %d steps", r->result->steps)
               : 0;
}

static void show(const struct recorder *r, const struct recording_step *s)
{
    struct buf b;
    if (r->o->quiet)
        return;
    buf_init(&b, 1 << 20);
    action_describe(&s->action, &b);
    fprintf(stderr, "holorun: %s\n", b.data);
    buf_free(&b);
}

void recorder_mask_title(const struct recorder *r, char *title)
{
    if (r->o->secrets && secrets_contained_in(r->o->secrets, title))
        *title = 0;
}

static void mask_target(const struct recorder *r, struct recording_target *t)
{
    recorder_mask_title(r, t->title);
    recorder_mask_title(r, t->name);
    recorder_mask_title(r, t->label);
    recorder_mask_title(r, t->menu);
    for (int i = 0; i < t->n_near; i++)
        recorder_mask_title(r, t->near[i]);
}

static int wait_for_rest(struct recorder *r, const struct recording_step *s, struct err *e)
{
    const struct recording_step w = {.seconds = 5 + 2 * s->pause};
    return recorder_append(r, &w, e);
}

static int wait_for_window(struct recorder *r, const struct recording_step *s, struct err *e)
{
    struct recording_step w = {.for_window = true, .seconds = 10 + 2 * s->pause};
    snprintf(w.class, sizeof w.class, "%s", s->has_target ? s->target.class : s->class);
    snprintf(w.title, sizeof w.title, "%s", s->has_target ? s->target.title : s->title);
    memcpy(w.language, s->has_target ? s->target.language : s->language, sizeof w.language);
    return *w.class ? recorder_append(r, &w, e) : 0;
}

static int write_step(struct recorder *r, struct item *q, struct err *e)
{
    if (!hide_secret(r, q))
        return 0;
    recorder_mask_title(r, q->step.title);
    mask_target(r, &q->step.target);
    recorder_mask_title(r, q->step.to.title);
    if (q->step.has_target)
        snprintf(q->step.action.element, sizeof q->step.action.element, "%s", q->step.target.name);
    if ((q->opened && wait_for_window(r, &q->step, e)) || (q->wait && wait_for_rest(r, &q->step, e)))
        return -1;
    if (!*r->result->title && *q->step.target.title)
        recorder_name_program(r, &q->step);
    snprintf(r->result->title, sizeof r->result->title, "%s",
             *q->step.target.title ? q->step.target.title
             : *q->step.title      ? q->step.title
                                   : r->result->title);
    r->result->named += *q->step.target.role != 0;
    show(r, &q->step);
    return recorder_append(r, &q->step, e);
}

bool recorder_awaits(const struct recorder *r, const struct item *q)
{
    if (q->press.unnamed)
        return clock_ms_since(q->press.at) < NAME_MS;
    return action_is(q->step.action.kind, ACTION_TYPES) && r->elements &&
           clock_ms_since(q->done) < (q->unsure ? REPORT_MS : FOCUS_MS);
}

void recorder_free_item(struct item *q)
{
    if (q->step.action.text)
        explicit_bzero(q->step.action.text, strlen(q->step.action.text));
    recording_step_free(&q->step);
    image_free(&q->before);
}

int recorder_write_queue(struct recorder *r, bool all, struct err *e)
{
    int rc = 0, done = 0;
    while (done < r->n_queue && rc == 0) {
        struct item *q = &r->queue[done];
        if (!all && recorder_awaits(r, q))
            break;
        rc = write_step(r, q, e);
        recorder_free_item(q);
        done++;
    }
    memmove(r->queue, r->queue + done, (size_t)(r->n_queue - done) * sizeof *r->queue);
    r->n_queue -= done;
    return rc;
}
