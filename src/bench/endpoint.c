/* endpoint.c - measures the number of agents that an endpoint supports: see bench.h.
 *
 * Agents are threads that do the same as a run, without a display: a new screenshot, a reply, a pause in
 * which an action would be performed and the screen would settle, and a new task after TASK_STEPS steps.
 * Their number is doubled until the p95 of a step exceeds the limit; then the middle between the largest good
 * and the smallest bad number is tried.  A request that fails counts as a step that took too long. */
#include "bench/bench.h"

#include "agent/context.h"
#include "base/clock.h"
#include "base/lock.h"
#include "llm/prompt.h"
#include "remote/llm_remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASK_STEPS = 8, REPLY = 96, W = 1280, H = 800, STEPS_MAX = 20000, STACK = 1 << 20 };

struct level { /* shared by its agents; the counters are guarded by `lock` */
    const struct bench *k;
    struct endpoint *endpoint;
    const struct dialect *dialect;
    const struct image *screen;
    int agents;
    int64_t start;
    pthread_mutex_t lock;
    double ms[STEPS_MAX];
    int n, failed;
    int64_t prompt, cached, said;
    char why[200]; /* message of the first failure */
};

struct agent_thread {
    struct level *l;
    int number;
    pthread_t thread;
};

static bool over(const struct level *l)
{
    return clock_ms_since(l->start) >= l->k->seconds * 1000;
}

static void count(struct level *l, double ms, const struct llm_usage *u, const struct err *e)
{
    LOCKED(&l->lock);
    if (e && !l->failed++)
        snprintf(l->why, sizeof l->why, "%.*s", (int)sizeof l->why - 1, e->text);
    if (l->n < STEPS_MAX)
        l->ms[l->n++] = e && ms < l->k->bound * 1000 ? l->k->bound * 1000 + 1 : ms;
    if (u && u->prompt > 0) {
        l->prompt += u->prompt;
        l->cached += u->cached > 0 ? u->cached : 0;
        l->said += u->reply > 0 ? u->reply : 0;
    }
}

/* Copies the screen with random pixels in its corner, so that no server has cached the image.  Returns -1 if
 * out of memory. */
static int new_screen(const struct level *l, uint32_t *random, struct image *out)
{
    if (image_copy(out, l->screen, NULL))
        return -1;
    for (int y = 0; y < 16; y++)
        for (int x = 0; x < 64; x++) {
            *random = *random * 1664525 + 1013904223;
            out->rgb[((size_t)y * (size_t)out->w + (size_t)x) * 3] = (uint8_t)(*random >> 24);
        }
    return 0;
}

static int one_step(struct level *l, struct context *c, const struct llm *llm, const char *lead,
                    uint32_t *random)
{
    struct context_cost cost;
    struct generated g = {0};
    struct err e = ERR_INIT;
    struct image screen = {0};
    struct llm_request r = {.goal = GOAL_STEP, .sampling = {0, 1, REPLY}};
    if (new_screen(l, random, &screen))
        return -1;
    int64_t start = clock_ns();
    int rc = context_observe(c, lead, &screen, &cost, &e) || context_think(c, &r, &g, &e) ||
                     context_accept(c, g.text.data ? g.text.data : "", true, &e)
                 ? -1
                 : 0;
    count(l, clock_ms_since(start), rc ? NULL : llm_usage(llm), rc ? &e : NULL);
    generated_free(&g);
    image_free(&screen);
    return rc;
}

/* Sleeps for 0.5 to 1.5 times the pause, so that agents do not run in step. */
static void rest(const struct level *l, uint32_t *random)
{
    *random = *random * 1664525 + 1013904223;
    double ms = l->k->pause * 1000 * (0.5 + (double)(*random >> 8) / (1 << 24));
    for (int64_t begun = clock_ns(); !over(l) && clock_ms_since(begun) < ms;)
        clock_sleep_ms(10);
}

static void one_task(struct level *l, int number, uint32_t *random)
{
    static const char task[] = "Book the 9:40 flight from Paris to Lima for Ada Lovelace";
    struct err e = ERR_INIT;
    struct prompt_vars w = {task, 100, l->screen->w, l->screen->h, 600};
    char name[40], *system = prompt_system(l->dialect, &w, &e), *lead = prompt_task(l->dialect, task);
    snprintf(name, sizeof name, "bench-%d-%u", number, *random);
    struct llm *llm = llm_remote(l->endpoint, l->dialect, (uint64_t)number + 1, name);
    struct context *c =
        context_new(llm, l->dialect, l->dialect->window, l->dialect->max_images, 0, system, &e);
    int rc = c ? 0 : -1;
    for (int i = 0; i < TASK_STEPS && rc == 0 && !over(l); i++) {
        rc = one_step(l, c, llm, i ? "" : lead, random);
        rest(l, random);
    }
    if (rc)
        rest(l, random);
    context_free(c);
    llm_free(llm);
    free(system);
    free(lead);
}

static void *agent_main(void *arg)
{
    struct agent_thread *a = arg;
    uint32_t random = (uint32_t)a->number * 2654435761u + 1;
    rest(a->l, &random); /* staggers the starts */
    while (!over(a->l))
        one_task(a->l, a->number, &random);
    return NULL;
}

static void print_level(const struct level *l, struct timing t, double p95)
{
    double seconds = clock_ms_since(l->start) / 1000, rate = l->n / seconds;
    double cached = l->prompt ? 100.0 * (double)l->cached / (double)l->prompt : 0;
    if (l->k->json)
        printf("{\"section\": \"endpoint\", \"agents\": %d, \"steps\": %d, \"seconds\": %.2f, "
               "\"steps_per_s\": %.3f, \"median_ms\": %.1f, \"p95_ms\": %.1f, \"prompt_tokens\": %lld, "
               "\"cached_percent\": %.1f, \"reply_tokens\": %lld, \"failed\": %d}\n",
               l->agents, l->n, seconds, rate, t.median, p95, (long long)l->prompt, cached,
               (long long)l->said, l->failed);
    else
        printf("%6d agents  %7.2f steps/s  median %8.0f ms  p95 %8.0f ms  %3.0f %% of prompts cached%s%s\n",
               l->agents, rate, t.median, p95, cached, l->failed ? "  failed: " : "", l->why);
    fflush(stdout);
}

/* Returns whether this number of agents has a p95 within the limit; -1 with e if a thread cannot be started
 * or no step ended. */
static int try_level(struct level *l, int agents, struct err *e)
{
    autofree struct agent_thread *a = xcalloc((unsigned long)agents, sizeof *a);
    pthread_attr_t attr;
    int started = 0;
    l->agents = agents;
    l->n = l->failed = 0;
    l->prompt = l->cached = l->said = 0;
    *l->why = 0;
    l->start = clock_ns();
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    for (; started < agents; started++) {
        a[started] = (struct agent_thread){.l = l, .number = started};
        if (pthread_create(&a[started].thread, &attr, agent_main, &a[started]))
            break;
    }
    for (int i = 0; i < started; i++)
        pthread_join(a[i].thread, NULL);
    pthread_attr_destroy(&attr);
    if (started < agents)
        return err_set(e, ERR_ENV, "cannot start %d threads", agents);
    if (!l->n)
        return err_set(e, ERR_MODEL, "no step ended within %g s", l->k->seconds);
    struct timing t = bench_timing(l->ms, l->n); /* sorts l->ms */
    double p95 = l->ms[(l->n - 1) * 95 / 100];
    print_level(l, t, p95);
    return p95 <= l->k->bound * 1000;
}

/* Doubles the number up to --agents, then halves the interval until it is at most an eighth of the good
 * number.  Returns -1 with e. */
static int search(struct level *l, int *good, struct err *e)
{
    int bad = 0, next = 1, rc;
    *good = 0;
    while (next && (rc = try_level(l, next, e)) >= 0) {
        if (rc)
            *good = next;
        else
            bad = next;
        if (*good == l->k->agents || bad == 1)
            return 0;
        next = !bad                            ? (2 * *good < l->k->agents ? 2 * *good : l->k->agents)
               : bad - *good > (*good + 7) / 8 ? (*good + bad) / 2
                                               : 0;
    }
    return rc < 0 ? -1 : 0;
}

static void draw_screen(struct image *screen)
{
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) /* similar to lines of text: a PNG of about 100 KB */
            memset(screen->rgb + ((size_t)y * W + (size_t)x) * 3,
                   y % 20 < 10 && (x * 7 + y * 13 + x * y / 11) % 5 == 0 ? 40 : 235, 3);
}

int bench_endpoint(const struct bench *k, const struct endpoint_options *o, struct err *e)
{
    autofree struct level *l = xcalloc(1, sizeof *l);
    struct image screen = {0};
    struct dialect *dialect = NULL;
    int good = 0, rc = -1;
    *l = (struct level){.k = k, .screen = &screen};
    pthread_mutex_init(&l->lock, NULL);
    if ((l->endpoint = endpoint_open(o, NULL, e)) &&
        (dialect = dialect_load(k->dialect ? k->dialect : endpoint_dialect(l->endpoint), e)) &&
        image_alloc(&screen, W, H, e) == 0) {
        draw_screen(&screen);
        l->dialect = dialect;
        if (!k->json)
            printf("%s at %s: steps of %dx%d, a pause of %g s, p95 within %g s, %g s for each number\n",
                   l->endpoint->model, l->endpoint->base, W, H, k->pause, k->bound, k->seconds);
        rc = search(l, &good, e);
    }
    if (rc == 0 && !k->json)
        printf("%d agents%s\n", good, good == k->agents ? ", the maximum set by --agents" : "");
    else if (rc == 0)
        printf("{\"section\": \"endpoint\", \"carries\": %d, \"bound_s\": %g, \"pause_s\": %g}\n", good,
               k->bound, k->pause);
    pthread_mutex_destroy(&l->lock);
    image_free(&screen);
    dialect_free(dialect);
    endpoint_free(l->endpoint);
    return rc;
}
