/* t_scheduler.c - tests the scheduler without an engine: waiting threads are served in order, and a stopped
 * thread stops waiting.
 */
#include "threads.h"
#include "tiny_check.h"

#include "base/flag.h"

#include <pthread.h>

/* ---- order of grants ------------------------------------------------------------------------- */

enum { LINE = 12 };

struct comer;

struct said { /* the order of grants: one name each, and a bar after each batch */
    char text[4 * LINE];
    struct scheduler *t;
    struct comer *late; /* arrives while 'a' is served; NULL: none */
};

struct comer {
    struct said *said;
    char name;
    bool together;
    struct scheduler_client client;
    pthread_t id;
    int rc;
};

struct named_request {
    struct scheduler_request request;
    char name;
};

static void put(struct said *s, char c)
{
    size_t n = strlen(s->text);
    assert_true(n + 1 < sizeof s->text);
    s->text[n] = c;
}

static void *come(void *arg);

static void serve_names(void *arg, struct scheduler_request *w)
{
    struct said *s = arg;
    for (; w; w = w->next) {
        char name = ((struct named_request *)w)->name;
        put(s, name);
        if (name == 'a' && s->late) {
            int n = scheduler_stats(s->t).waiting;
            assert_int_equal(pthread_create(&s->late->id, NULL, come, s->late), 0);
            threads_wait(s->t, n + 1);
        }
    }
    put(s, '|');
}

static void *come(void *arg)
{
    struct comer *c = arg;
    if (c->together) {
        struct named_request w = {{.rows = 1}, c->name};
        c->rc = scheduler_submit(c->said->t, &c->client, &w.request);
    } else if ((c->rc = scheduler_acquire(c->said->t, &c->client, true)) == 0) {
        put(c->said, c->name);
        scheduler_release(c->said->t);
    }
    return NULL;
}

static void queue_up(struct said *s, struct comer *c, const char *names)
{
    for (int i = 0; names[i]; i++) {
        c[i].said = s;
        c[i].name = names[i];
        c[i].together = names[i] >= 'a';
        assert_int_equal(pthread_create(&c[i].id, NULL, come, &c[i]), 0);
        threads_wait(s->t, i + 1);
    }
}

static void leave(struct comer *c, int n)
{
    for (int i = 0; i < n; i++)
        pthread_join(c[i].id, NULL);
}

/* Capitals request an exclusive grant. */
static void t_order(void **state)
{
    struct said s = {.text = ""};
    struct comer c[LINE] = {{.name = 0}};
    s.t = scheduler_new(serve_names, &s, NULL);
    assert_int_equal(scheduler_acquire(s.t, NULL, true), 0);
    assert_int_equal(scheduler_acquire(s.t, NULL, true), 0); /* nested: not a second grant */
    scheduler_release(s.t);
    queue_up(&s, c, "ABaCbcDd");
    scheduler_release(s.t);
    leave(c, 8);
    assert_string_equal(s.text, "abcd|ABCD");
    struct scheduler_stats n = scheduler_stats(s.t);
    assert_int_equal(n.exclusive, 5);
    assert_int_equal(n.batches, 1);
    assert_int_equal(n.rows, 4);
    assert_int_equal(n.most_waited, 4);
    scheduler_free(s.t);
}

/* A thread that decodes again and again does not delay exclusive grants. */
static void t_alternate(void **state)
{
    struct said s = {.text = ""};
    struct comer c[LINE] = {{.name = 0}}, late = {.said = &s, .name = 'b', .together = true};
    s.late = &late;
    s.t = scheduler_new(serve_names, &s, NULL);
    assert_int_equal(scheduler_acquire(s.t, NULL, true), 0);
    queue_up(&s, c, "ABa");
    scheduler_release(s.t);
    leave(c, 3);
    leave(&late, 1);
    assert_string_equal(s.text, "a|Ab|B");
    scheduler_free(s.t);
}

/* A thread that yields queues after the others; a batch runs between two exclusive grants. */
static void t_between(void **state)
{
    struct said s = {.text = ""};
    struct comer c[LINE] = {{.name = 0}};
    s.t = scheduler_new(serve_names, &s, NULL);
    assert_int_equal(scheduler_acquire(s.t, NULL, true), 0);
    queue_up(&s, c, "ABa");
    assert_int_equal(scheduler_yield(s.t, NULL), 0);
    put(&s, '.');
    scheduler_release(s.t);
    leave(c, 3);
    assert_string_equal(s.text, "a|AB.");
    scheduler_free(s.t);
}

static void t_stopped(void **state)
{
    struct said s = {.text = ""};
    struct comer c[LINE] = {{.name = 0}};
    volatile int stop = 0;
    s.t = scheduler_new(serve_names, &s, NULL);
    assert_int_equal(scheduler_acquire(s.t, NULL, true), 0);
    c[1].client.stop = c[2].client.stop = &stop;
    queue_up(&s, c, "AaBb");
    flag_set(&stop, 1);
    pthread_join(c[1].id, NULL); /* both return while the grant is still held here */
    pthread_join(c[2].id, NULL);
    assert_int_equal(scheduler_stats(s.t).waiting, 2);
    assert_true(c[1].rc == -1 && c[2].rc == -1);
    scheduler_release(s.t);
    pthread_join(c[0].id, NULL);
    pthread_join(c[3].id, NULL);
    assert_string_equal(s.text, "b|A");
    assert_int_equal(scheduler_acquire(s.t, &c[1].client, true), -1);
    assert_int_equal(scheduler_acquire(s.t, &c[1].client, false), 0);
    scheduler_release(s.t);
    scheduler_free(s.t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("batches and exclusive grants alternate, each in order of arrival", t_order),
    CLAIM("repeated decoding does not delay exclusive grants", t_alternate),
    CLAIM("a thread that yields is served after those already waiting", t_between),
    CLAIM("a stopped thread stops waiting", t_stopped),
};

TINY_MAIN(check_seed())
