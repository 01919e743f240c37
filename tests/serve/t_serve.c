/* t_serve.c - tests `holorun serve`: tokens equal to those in this process, the cost of a turn, forks, the
 * format of replies, and stop conditions.
 */
#include "check.h"
#include "served.h"

#include "base/clock.h"
#include "base/flag.h"
#include "llm/llm.h"
#include "serve/picture.h"
#include "serve/prompt.h"
#include "serve/store.h"
#include "session/chat.h"
#include "session/generate.h"

#include <pthread.h>

static json_t *request(json_t *messages, int tokens)
{
    return json_pack("{s:s, s:O, s:i, s:i, s:b}", "model", "tiny", "messages", messages, "temperature", 0,
                     "max_tokens", tokens, "return_token_ids", 1);
}

static struct said ask(const struct served *v, json_t *messages, int tokens, bool stream)
{
    json_t *body = request(messages, tokens);
    if (stream) {
        json_object_set_new(body, "stream", json_true());
        json_object_set_new(body, "stream_options", json_pack("{s:b}", "include_usage", 1));
    }
    struct said r = served_post(v, "/v1/chat/completions", body);
    if (r.status != 200)
        fail_msg("%d: %.300s", r.status, r.text);
    return r;
}

/* ---- equal tokens -------------------------------------------------------------------------------------- */

struct here { /* an agent's conversation in this process */
    struct llm *llm;
    struct llm_mark *mark;
    struct err e;
};

/* Reads the last turn of the messages part by part, and prefills after each image, as the server does for its
 * checkpoints. */
static void see(struct here *h, const json_t *messages, int pictures)
{
    struct session *s = llm_session(h->llm);
    struct conversation v;
    struct prompt p;
    assert_int_equal(conversation_take(&v, json_deep_copy(messages), &h->e), 0);
    assert_int_equal(prompt_build(&p, engine_chat(session_engine(s)), &v, &h->e), 0);
    for (int i = p.n - 1 - pictures; i < p.n; i++) {
        const struct layout_segment *last = &p.layout.segments[p.cuts[i + 1] - 1];
        struct image *im = last->image ? &v.images[last->image - v.images] : NULL;
        if (i == p.pictures)
            assert_int_equal(session_prefill(s, &h->e), 0);
        if (im)
            assert_int_equal(picture_decode(v.files[im - v.images], NULL, im, &h->e), 0);
        assert_int_equal(chat_append_layout(s, &p.layout, p.cuts[i], p.cuts[i + 1], &h->e), 0);
        if (im)
            assert_int_equal(session_prefill(s, &h->e), 0);
    }
    prompt_free(&p);
    conversation_free(&v);
    h->llm->ops->mark_free(h->mark);
    h->mark = h->llm->ops->mark(h->llm, &h->e);
}

static struct generated answer(struct here *h, int tokens)
{
    const struct llm_request r = {
        .goal = GOAL_TEXT, .sampling = {.temperature = 0, .top_p = 1, .max_tokens = tokens}, .free = true};
    struct generated g;
    assert_int_equal(h->llm->ops->speak(h->llm, &r, &g, &h->e), 0);
    return g;
}

/* Leaves the session in the state for the next prompt. */
static void accept(struct here *h, const char *reply)
{
    if (chat_keeps_reply(llm_session(h->llm), reply)) {
        assert_int_equal(h->llm->ops->close(h->llm, &h->e), 0);
        return;
    }
    assert_int_equal(h->llm->ops->rewind(h->llm, h->mark, &h->e), 0);
    assert_int_equal(h->llm->ops->reply(h->llm, reply, &h->e), 0);
}

static int compare_ids(const struct said *r, const struct generated *g)
{
    json_t *ids = said_ids(r);
    if ((int)json_array_size(ids) != g->n)
        fail_msg("%zu tokens from the server, %d here", json_array_size(ids), g->n);
    for (int i = 0; i < g->n; i++)
        if (json_integer_value(json_array_get(ids, (size_t)i)) != g->choices[i].id)
            fail_msg("token %d of %d differs; %lld of %lld tokens were cached; the text: %s", i, g->n,
                     (long long)said_number(r, "cached_tokens"), (long long)said_number(r, "prompt_tokens"),
                     said_content(r));
    return g->n;
}

/* Runs a conversation of some turns in both; returns the number of tokens. */
static int converse(struct served *v, struct engine *g, const struct dialect *d, uint64_t seed, uint64_t *rng)
{
    struct here h = {.llm = llm_local(g, d, 1), .e = ERR_INIT};
    json_t *messages = json_array();
    int turns = 1 + check_below(rng, 3), tokens = 0, left = 1 + check_below(rng, 4);
    bool system = check_random(rng) < 0.7;
    if (system)
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", "Be a test."));
    assert_int_equal(h.llm->ops->begin(h.llm, system ? "Be a test." : "", &h.e), 0);
    h.mark = h.llm->ops->mark(h.llm, &h.e);
    for (int i = 0; i < turns; i++) {
        char text[64];
        int pictures = i == turns - 1 ? left : check_below(rng, left + 1), n = 5 + check_below(rng, 20);
        snprintf(text, sizeof text, "What now, %d of %llu?", i, (unsigned long long)seed);
        left -= pictures;
        json_array_append_new(messages, served_user(text, pictures, seed * 100 + (uint64_t)i * 10));
        see(&h, messages, pictures);
        struct generated out = answer(&h, n);
        struct said r = ask(v, messages, n, check_random(rng) < 0.5);
        tokens += compare_ids(&r, &out);
        json_array_append(messages, said_message(&r));
        accept(&h, said_content(&r));
        said_free(&r);
        generated_free(&out);
    }
    h.llm->ops->mark_free(h.mark);
    llm_free(h.llm);
    json_decref(messages);
    return tokens;
}

static void t_same_tokens(void **state)
{
    enum { CONVERSATIONS = 50 };
    struct served v;
    uint64_t rng = check_seed();
    int tokens = 0;
    served_open(&v, NULL);
    struct engine *g = tiny_open(&v.tiny, NULL, 1, false);
    struct dialect *d = dialect_load("holo3", NULL);
    for (int i = 0; i < CONVERSATIONS; i++)
        tokens += converse(&v, g, d, (uint64_t)i + 1, &rng);
    check_note("%d conversations, %d tokens, streamed and not", CONVERSATIONS, tokens);
    dialect_free(d);
    engine_close(g);
    served_close(&v);
}

/* ---- cost of a turn -------------------------------------------------------------------------------------
 */

struct talker { /* a client with its own conversation */
    const struct served *v;
    int number, turns;
    int64_t least, most; /* tokens prefilled per turn, after the first */
    pthread_t thread;
};

static void *talk(void *arg)
{
    struct talker *t = arg;
    json_t *messages =
        json_pack("[{s:s, s:s}]", "role", "system", "content", "Look at the pictures in turn.");
    for (int i = 0; i < t->turns; i++) {
        json_array_append_new(messages, served_user("Next?", 1, 7000 + (uint64_t)(t->number * 60)));
        struct said r = ask(t->v, messages, 8, i % 2);
        int64_t read = said_number(&r, "prompt_tokens") - said_number(&r, "cached_tokens");
        if (i && (i == 1 || read < t->least))
            t->least = read;
        if (i && read > t->most)
            t->most = read;
        json_array_append(messages, said_message(&r));
        said_free(&r);
    }
    json_decref(messages);
    return NULL;
}

static void t_flat(void **state)
{
    enum { TURNS = 30, CLIENTS = 16 };
    struct served v;
    served_open(&v, NULL);
    struct talker t[CLIENTS];
    for (int clients = 1; clients <= CLIENTS; clients += CLIENTS - 1) {
        int64_t least = INT64_MAX, most = 0;
        for (int i = 0; i < clients; i++) {
            t[i] = (struct talker){.v = &v, .number = i + clients, .turns = TURNS};
            pthread_create(&t[i].thread, NULL, talk, &t[i]);
        }
        for (int i = 0; i < clients; i++) {
            pthread_join(t[i].thread, NULL);
            least = t[i].least < least ? t[i].least : least;
            most = t[i].most > most ? t[i].most : most;
        }
        check_note("%2d clients, %d turns with an image each: %lld to %lld tokens prefilled per turn",
                   clients, TURNS, (long long)least, (long long)most);
        assert_true(most < 160 && most - least < 100);
    }
    served_close(&v);
}

/* A repeated prompt, and two continuations of one conversation. */
static void t_forks(void **state)
{
    struct served v;
    served_open(&v, NULL);
    json_t *messages = json_array();
    json_array_append_new(messages, served_user("Look.", 2, 50));
    struct said first = ask(&v, messages, 9, false), again = ask(&v, messages, 9, true);
    assert_string_equal(said_content(&first), said_content(&again));
    assert_true(said_number(&again, "prompt_tokens") - said_number(&again, "cached_tokens") < 45);
    json_array_append(messages, said_message(&first));
    json_t *other = json_copy(messages);
    json_array_append_new(messages, served_user("Left?", 0, 0));
    json_array_append_new(other, served_user("Right?", 0, 0));
    struct said left = ask(&v, messages, 9, false), right = ask(&v, other, 9, false);
    int64_t pictures = said_number(&first, "prompt_tokens");
    assert_true(said_number(&left, "cached_tokens") >= pictures - 45);
    assert_true(said_number(&right, "cached_tokens") >= pictures - 45);
    said_free(&right);
    said_free(&left);
    right = ask(&v, other, 9, false);
    left = ask(&v, messages, 9, true);
    assert_true(said_number(&left, "cached_tokens") > pictures);
    check_note("%.0f continued, %.0f branched, %.0f begun", served_metric(&v, "conversations_continued"),
               served_metric(&v, "conversations_branched"), served_metric(&v, "conversations_begun"));
    assert_int_equal((int)served_metric(&v, "conversations_begun"), 1);
    assert_int_equal((int)served_metric(&v, "pictures_total"), 2);
    said_free(&right);
    said_free(&left);
    said_free(&first);
    said_free(&again);
    json_decref(other);
    json_decref(messages);
    served_close(&v);
}

struct asker {
    const struct served *v;
    json_t *messages;
    pthread_t thread;
    char *content;
};

static void *ask_it(void *arg)
{
    struct asker *a = arg;
    struct said r = ask(a->v, a->messages, 20, false);
    a->content = xstrdup(said_content(&r));
    said_free(&r);
    return NULL;
}

/* Sends the same messages from eight clients at once; returns how many images were encoded. */
static int ask_at_once(const struct served *v, json_t *messages)
{
    enum { CLIENTS = 8 };
    struct asker a[CLIENTS];
    double before = served_metric(v, "pictures_total");
    for (int i = 0; i < CLIENTS; i++) {
        /* reference counts are not atomic */
        a[i] = (struct asker){.v = v, .messages = json_deep_copy(messages)};
        pthread_create(&a[i].thread, NULL, ask_it, &a[i]);
    }
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(a[i].thread, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        assert_string_equal(a[0].content, a[i].content);
        json_decref(a[i].messages);
    }
    for (int i = 0; i < CLIENTS; i++)
        free(a[i].content);
    return (int)(served_metric(v, "pictures_total") - before);
}

/* A prompt, the next turn after its reply, one after another reply, and that again. */
static void t_at_once(void **state)
{
    struct served v;
    served_open(&v, NULL);
    json_t *messages = json_array(), *other = json_array();
    json_array_append_new(messages, served_user("All at once.", 4, 90));
    assert_int_equal(ask_at_once(&v, messages), 4);
    json_array_append(other, json_array_get(messages, 0));
    struct said r = ask(&v, messages, 20, false);
    json_array_append(messages, said_message(&r));
    said_free(&r);
    json_array_append_new(other, json_pack("{s:s, s:s}", "role", "assistant", "content", "Something else."));
    for (int i = 0; i < 3; i++) {
        json_array_append_new(messages, served_user("And then?", 2, 190 + (uint64_t)i));
        json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "assistant", "content", "Well."));
        json_array_append_new(other, served_user("Else?", 3, 290 + (uint64_t)i));
        json_t *cut = json_deep_copy(messages);
        json_array_remove(cut, json_array_size(cut) - 1);
        assert_int_equal(ask_at_once(&v, cut), 2);
        assert_int_equal(ask_at_once(&v, other), 3);
        json_array_append_new(other, json_pack("{s:s, s:s}", "role", "assistant", "content", "So."));
        json_decref(cut);
    }
    check_note("%.0f images encoded, %.0f branches", served_metric(&v, "pictures_total"),
               served_metric(&v, "conversations_branched"));
    assert_int_equal((int)served_metric(&v, "conversations_begun"), 1);
    json_decref(messages);
    json_decref(other);
    served_close(&v);
}

/* ---- waiting for a session ------------------------------------------------------------------------------
 */

struct taker { /* a request that looks for its session */
    struct served *v;
    struct conversation talk;
    struct prompt prompt;
    struct weights_set *weights;
    struct cached_session *got;
    int matched; /* length of the matched prefix */
    volatile int done;
    pthread_t thread;
};

/* Takes over the messages. */
static void taker_init(struct taker *t, struct served *v, json_t *messages)
{
    struct err e = ERR_INIT;
    *t = (struct taker){.v = v, .weights = weights_acquire(v->service.weights, NULL)};
    assert_int_equal(conversation_take(&t->talk, messages, &e), 0);
    assert_int_equal(prompt_build(&t->prompt, engine_chat(t->weights->engine), &t->talk, &e), 0);
}

static void *take(void *arg)
{
    struct taker *t = arg;
    t->got = store_acquire(t->v->service.store, t->weights, t->prompt.hashes, t->prompt.n, &t->matched, NULL);
    flag_set(&t->done, 1);
    return NULL;
}

static void taker_free(struct taker *t)
{
    store_discard(t->v->service.store, t->got);
    weights_release(t->v->service.weights, t->weights);
    prompt_free(&t->prompt);
    conversation_free(&t->talk);
}

static void mark_end(struct taker *t)
{
    struct err e = ERR_INIT;
    assert_int_equal(
        store_mark(t->v->service.store, t->got, STORE_BEFORE_REPLY, t->prompt.hashes[t->prompt.n], &e), 0);
}

/* Two requests with the same next turn of a session in use: one gets a branch of it, the other a branch of
 * that. */
static void t_next_turn(void **state)
{
    struct served v;
    struct err e = ERR_INIT;
    struct taker first, two[2];
    served_open(&v, NULL);
    taker_init(&first, &v, json_pack("[o]", served_user("Wait.", 0, 5)));
    take(&first);
    assert_int_equal(chat_system(cached_session(first.got), "A session in use.", false, &e), 0);
    mark_end(&first);
    for (int i = 0; i < 2; i++) {
        taker_init(&two[i], &v, json_pack("[o, o]", served_user("Wait.", 0, 5), served_user("Go.", 0, 6)));
        pthread_create(&two[i].thread, NULL, take, &two[i]);
    }
    while (!flag_up(&two[0].done) && !flag_up(&two[1].done)) {
        store_serve(v.service.store, first.got);
        clock_sleep_ms(1);
    }
    struct taker *lead = flag_up(&two[0].done) ? &two[0] : &two[1], *other = lead == two ? &two[1] : two;
    mark_end(lead);
    while (!flag_up(&other->done)) {
        store_serve(v.service.store, lead->got);
        clock_sleep_ms(1);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(two[i].thread, NULL);
    assert_int_equal(lead->matched, first.prompt.n);
    assert_int_equal(other->matched, lead->prompt.n);
    taker_free(&two[0]);
    taker_free(&two[1]);
    taker_free(&first);
    served_close(&v);
}

/* The request that uses a session is paused: waiting requests get sessions of their own, and the pause
 * completes. */
static void t_frozen(void **state)
{
    struct served v;
    struct taker first, other;
    served_open(&v, NULL);
    taker_init(&first, &v, json_pack("[o]", served_user("Wait.", 1, 5)));
    taker_init(&other, &v, json_pack("[o]", served_user("Wait.", 1, 5)));
    take(&first);
    /* waits, because the first is about to read that prompt */
    pthread_create(&other.thread, NULL, take, &other);
    store_pause(v.service.store, first.got, true);
    pthread_join(other.thread, NULL);
    assert_true(other.got && cached_session(other.got) != cached_session(first.got));
    assert_int_equal(store_counts(v.service.store).begun, 2);
    taker_free(&other);
    taker_free(&first);
    served_close(&v);
}

static const struct CMUnitTest tests[] = {
    CLAIM("50 conversations with 1 to 4 images have the same tokens as in this process", t_same_tokens),
    CLAIM("30 turns with an image each cost the same, for 1 and 16 clients", t_flat),
    CLAIM("a repeated prompt and two continuations prefill nothing twice", t_forks),
    CLAIM("eight clients with one prompt at once prefill it once, also in later turns", t_at_once),
    CLAIM("of two next turns of a session in use one is prefilled, the other branches from it", t_next_turn),
    CLAIM("a request does not wait for the session of a paused request", t_frozen),
};

CHECK_MAIN()
