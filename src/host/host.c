/* host.c - see host.h: list of runs and errands, their events, and the functions of the protocol's thread. */
#include "host/private.h"

#include "base/clock.h"
#include "base/flag.h"
#include "base/lock.h"
#include "base/pool.h"
#include "run/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct queued {
    struct queued *next;
    struct work *whose;
    json_t *event;
};

/* ---- opening and closing ------------------------------------------------------------------------------- */

static int read_secrets(struct host *h, struct err *e)
{
    for (const char *const *spec = h->settings ? h->settings->secrets : NULL; spec && *spec; spec++) {
        if (h->n_secrets == SECRETS_MAX)
            return err_set(e, ERR_USAGE, "more than %d secrets", SECRETS_MAX);
        h->secrets[h->n_secrets] = secrets_new();
        if (secrets_add(h->secrets[h->n_secrets++], *spec, e))
            return -1;
    }
    return 0;
}

struct host *host_open(const struct run_settings *settings, const char *build, int argc, char **argv,
                       struct err *e)
{
    pthread_condattr_t clock;
    struct host *h = xcalloc(1, sizeof *h);
    h->settings = settings;
    h->build = build;
    h->argc = argc;
    h->argv = argv;
    h->last = &h->first;
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_init(&h->model_lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&h->changed, &clock);
    pthread_condattr_destroy(&clock);
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    json_object_seed(0); /* must precede the first thread */
    if (h->wake < 0)
        err_set(e, ERR_ENV, "cannot make an eventfd");
    if (h->wake < 0 || read_secrets(h, e)) {
        host_close(h);
        return NULL;
    }
    h->covered = h->n_secrets && settings->redact_frames ? redact_new() : NULL;
    h->tree = tree_new(h);
    return h;
}

static void free_texts(struct work *w)
{
    free(w->task);
    free(w->resume);
    free(w->path);
    free(w->window);
    free(w->words);
    free(w->role);
    free(w->act);
    free(w->next_task);
    free(w);
}

static void work_free(struct work *w)
{
    pthread_join(w->thread, NULL);
    free_texts(w);
}

static void unlink_work(struct host *h, struct work *w)
{
    LOCKED(&h->lock);
    struct work **at = &h->works;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
}

void host_close(struct host *h)
{
    struct work *whose;
    if (!h)
        return;
    for (struct work *w = h->works; w; w = w->next)
        host_stop(w);
    /* A thread that hangs is left to the guard: it releases the keys, and a second signal ends this
     * process. */
    while (h->works) {
        json_decref(host_next(h, &whose));
        clock_sleep_ms(h->first ? 0 : 1);
    }
    for (int i = 0; i < h->n_secrets; i++)
        secrets_free(h->secrets[i]);
    redact_free(h->covered);
    tree_free(h->tree);
    job_model_close(&h->model);
    shown_free(h);
    pthread_mutex_destroy(&h->lock);
    pthread_mutex_destroy(&h->model_lock);
    pthread_cond_destroy(&h->changed);
    if (h->wake >= 0)
        close(h->wake);
    free(h);
}

/* ---- events -------------------------------------------------------------------------------------------- */

int host_fd(const struct host *h)
{
    return h->wake;
}

void host_tell(struct work *w, json_t *event)
{
    struct host *h = w->host;
    struct queued *q = xcalloc(1, sizeof *q);
    static const uint64_t one = 1;
    *q = (struct queued){.whose = w, .event = event};
    pthread_mutex_lock(&h->lock);
    *h->last = q;
    h->last = &q->next;
    pthread_mutex_unlock(&h->lock);
    ssize_t n = write(h->wake, &one, sizeof one);
    (void)n; /* EAGAIN: the counter is full, so the descriptor is readable already */
}

json_t *host_next(struct host *h, struct work **whose)
{
    uint64_t n;
    if (h->over) {
        unlink_work(h, h->over);
        work_free(h->over);
        h->over = NULL;
    }
    pthread_mutex_lock(&h->lock);
    autofree struct queued *q = h->first;
    if (q) {
        h->first = q->next;
        h->last = h->first ? h->last : &h->first;
    } else if (read(h->wake, &n, sizeof n) < 0) {
        n = 0;
    }
    pthread_mutex_unlock(&h->lock);
    if (!q)
        return NULL;
    json_t *event = q->event;
    *whose = q->whose;
    const char *kind = json_string_value(json_object_get(event, "kind"));
    if (kind && !strcmp(kind, "done"))
        h->over = *whose;
    return event;
}

/* ---- state that a run's thread waits for --------------------------------------------------------------- */

bool work_stopping(const struct work *w)
{
    return flag_up(&w->stop) || flag_up(w->screen_flag) || flag_up(screen_stop_flag(NULL));
}

/* Signals set a flag without waking the condition, hence the time limit. */
bool work_wait(struct work *w)
{
    struct timespec until = clock_after(CLOCK_MONOTONIC, HOST_LOOK_MS);
    pthread_cond_timedwait(&w->host->changed, &w->host->lock, &until);
    return !work_stopping(w);
}

/* ---- calls from the protocol's thread ------------------------------------------------------------------ */

const char *host_display(const struct host *h)
{
    return h->settings ? place_name(h->settings) : "";
}

int host_check_display(const struct host *h, const char *display, struct err *e)
{
    if (!h->settings || !display || !*display || place_is(h->settings, display))
        return 0;
    return err_set(
        e, ERR_USAGE,
        "argument 'display': '%.60s' is not the display of this server (%s); omit it, or start another "
        "server with --display",
        display, *host_display(h) ? host_display(h) : "not set");
}

bool host_caller_answers(const struct host *h)
{
    return h->settings && h->settings->confirm && !strcmp(h->settings->confirm, CONFIRM_CALLER);
}

char *host_mask(const struct host *h, const char *text)
{
    char *masked = xstrdup(text);
    for (int i = 0; i < h->n_secrets; i++) {
        autofree char *once = masked;
        masked = secrets_mask(h->secrets[i], once);
    }
    return masked;
}

static char *copy(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

struct work *host_start(struct host *h, const struct work_order *o, struct err *e)
{
    int n = 0;
    for (const struct work *w = h->works; w; w = w->next)
        n++;
    if (!h->settings) {
        err_set(e, ERR_USAGE, "this server does not start runs");
        return NULL;
    }
    if (n >= HOST_WORKS) {
        err_set(e, ERR_ENV, "%d runs are active; wait for one to end, or stop it", n);
        return NULL;
    }
    struct work *w = xcalloc(1, sizeof *w);
    *w = (struct work){.host = h,
                       .kind = o->kind,
                       .task = copy(o->task),
                       .resume = copy(o->resume),
                       .path = copy(o->path),
                       .max_steps = o->max_steps,
                       .max_side = o->max_side,
                       .stays = o->stays,
                       .region = o->region,
                       .marks = o->marks,
                       .elements = o->elements,
                       .window = copy(o->elements.window),
                       .words = copy(o->elements.words),
                       .role = copy(o->elements.role),
                       .order = ++h->orders};
    w->elements.window = w->window;
    w->elements.words = w->words;
    w->elements.role = w->role;
    pthread_mutex_lock(&h->lock);
    int rc = thread_start(&w->thread, 0, work_main, w);
    if (rc == 0) {
        w->next = h->works;
        h->works = w;
    }
    pthread_mutex_unlock(&h->lock);
    if (rc == 0)
        return w;
    err_set(e, ERR_ENV, "cannot start a thread: %s", strerror(rc));
    free_texts(w);
    return NULL;
}

void host_stop(struct work *w)
{
    LOCKED(&w->host->lock);
    flag_set(&w->stop, STOP_HOST);
    if (w->screen)
        screen_stop(w->screen, STOP_HOST);
    pthread_cond_broadcast(&w->host->changed);
}

static void answer(struct work *w, int question, enum confirm_answer is)
{
    LOCKED(&w->host->lock);
    if (question == w->asked && question > w->answered) {
        w->answered = question;
        w->answer = is;
        pthread_cond_broadcast(&w->host->changed);
    }
}

void host_answer(struct work *w, int question, bool allow)
{
    answer(w, question, allow ? CONFIRM_ALLOWED : CONFIRM_DECLINED);
}

void host_cannot_ask(struct work *w, int question)
{
    answer(w, question, CONFIRM_NOBODY);
}

static void hand_over(struct work *w, char **at, const char *text)
{
    LOCKED(&w->host->lock);
    free(*at);
    *at = xstrdup(text);
    pthread_cond_broadcast(&w->host->changed);
}

void host_act(struct work *w, const char *call)
{
    hand_over(w, &w->act, call);
}

void host_next_task(struct work *w, const char *task)
{
    hand_over(w, &w->next_task, task);
}

void host_finish(struct work *w)
{
    LOCKED(&w->host->lock);
    w->finish = true;
    pthread_cond_broadcast(&w->host->changed);
}
