/* probe.c - tests of a server's capabilities for `holorun doctor`. Each request is short, so that all tests
 * take seconds. */
#include "remote/probe.h"

#include "base/clock.h"
#include "base/image.h"
#include "remote/reply_body.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PICTURES = 4, PICTURE_SIDE = 112, LONG_PROMPT = 400, TRIES = 3 };

static PRINTF_LIKE(4, 5) void probe_add(struct probe *p, const char *name, bool good, const char *fmt, ...)
{
    va_list ap;
    if (p->n == PROBE_ROWS)
        bug("more than %d findings", PROBE_ROWS);
    struct probe_row *r = &p->rows[p->n++];
    *r = (struct probe_row){.name = name, .good = good};
    va_start(ap, fmt);
    vsnprintf(r->detail, sizeof r->detail, fmt, ap);
    va_end(ap);
}

void probe_free(struct probe *p)
{
    http_close(p->http);
    json_decref(p->found);
    *p = (struct probe){0};
}

/* ---- one question ---------------------------------------------------------------------------------- */

struct question {
    json_t *content; /* content of the user's message; owned */
    json_t *extra;   /* additional members of the request; owned, may be NULL */
    int max_tokens;
    float temperature;
    uint64_t seed;
};

struct answer {
    const struct protocol *protocol;
    struct reply_body in;
    int64_t start; /* clock_ns() of the last attempt */
    double first_ms, ms;
};

static int on_data(void *arg, const char *data, size_t n)
{
    struct answer *a = arg;
    return reply_body_feed(&a->in, data, n);
}

static void answer_free(struct answer *a)
{
    reply_body_free(&a->in);
}

static char *body_of(const struct probe *p, struct question *q)
{
    static const struct dialect plain = {.name = (char *)"", .schema = (char *)"", .ground = (char *)""};
    const struct llm_request how = {
        .goal = GOAL_TEXT,
        .sampling = {.temperature = q->temperature, .top_p = 1, .max_tokens = q->max_tokens}};
    json_auto_t *messages =
        json_pack("[{s:s, s:o, s:s}]", "role", "user", "content", q->content, "result", "");
    const struct remote_turn turn = {
        .endpoint = p->endpoint, .dialect = &plain, .messages = messages, .how = &how, .seed = q->seed};
    json_auto_t *body = p->endpoint->protocol->request(&turn);
    if (q->extra)
        json_object_update(body, q->extra);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(q->extra);
    return text;
}

static void begin_answer(void *arg)
{
    struct answer *a = arg;
    answer_free(a);
    reply_body_begin(&a->in, a->protocol);
    a->start = clock_ns();
}

static int end_answer(void *arg, struct http_reply *r, struct failure *f)
{
    struct answer *a = arg;
    int rc = r->broken && a->in.reply.finished ? 0 : reply_body_end(&a->in);
    *f = a->in.reply.failed;
    return rc;
}

/* Sends a question and waits for the answer. Returns -1 with e; ERR_STOPPED if stopped. The caller frees the
 * answer in both cases. */
static int ask(struct probe *p, struct question q, struct answer *a, struct err *e)
{
    autofree char *text = body_of(p, &q);
    struct http_reply h = {0};
    struct http_request request = {
        .body = text, .len = strlen(text), .stop = p->stop, .on_data = on_data, .arg = a};
    const struct endpoint_call call = {p->endpoint->protocol->path, "probe", &request, begin_answer,
                                       end_answer};
    *a = (struct answer){.protocol = p->endpoint->protocol};
    int rc = endpoint_send(p->endpoint, p->http, &call, &h, e);
    a->ms = clock_ms_since(a->start);
    a->first_ms = a->in.reply.first_ns ? (double)(a->in.reply.first_ns - a->start) / 1e6 : -1;
    http_reply_free(&h);
    return rc;
}

static json_t *words(const char *text)
{
    return json_pack("[{s:s, s:s}]", "type", "text", "text", text);
}

static bool stopped(const struct err *e)
{
    return e->kind == ERR_STOPPED;
}

/* ---- kind of server -------------------------------------------------------------------------------- */

/* Returns whether GET of a path next to the base address (without its "/v1") returns an object with that
 * member. The member is checked because many sites return a page for any path. */
static bool has_member(struct probe *p, const char *path, const char *member)
{
    const char *base = p->endpoint->base;
    size_t n = strlen(base);
    n -= n > 3 && !strcmp(base + n - 3, "/v1") ? 3 : 0;
    autofree char *url = xasprintf("%.*s%s", (int)n, base, path);
    struct http_request q = {.url = url, .stop = p->stop, .connect_s = 5, .first_s = 5, .max_bytes = 1 << 20};
    struct http_reply r;
    struct err ignored = ERR_INIT;
    bool there = http_send(p->http, &q, &r, &ignored) == 0 && r.status == 200;
    json_auto_t *root = there && r.body.len ? json_loadb(r.body.data, r.body.len, 0, NULL) : NULL;
    there = json_object_get(root, member);
    http_reply_free(&r);
    return there;
}

static void probe_kind(struct probe *p)
{
    const char *kind = has_member(p, "/props", "default_generation_settings") ? "llama.cpp"
                       : has_member(p, "/get_server_info", "model_path")      ? "SGLang"
                       : has_member(p, "/version", "version")                 ? "vLLM"
                                                                              : "not recognized by its paths";
    probe_add(p, "server", true, "%s; model %s, protocol %s", kind, p->endpoint->model,
              p->endpoint->protocol->name);
    json_object_set_new(p->found, "api", json_string(p->endpoint->protocol->name));
}

/* Adds the measured speed. Without streaming the time of the first text is unknown; for a reply in one piece
 * the rate is. */
static void add_speed(struct probe *p, const struct answer *a)
{
    double rest = a->ms - a->first_ms;
    int64_t n = a->in.reply.tokens > 1 ? a->in.reply.tokens - 1 : (int64_t)a->in.reply.text.len / 3;
    if (a->in.whole.len)
        probe_add(p, "speed", true, "the whole reply after %.0f ms (no streaming)", a->ms);
    else if (a->first_ms < 0)
        probe_add(p, "speed", false, "a reply without text after %.0f ms", a->ms);
    else if (rest > 1 && n > 0)
        probe_add(p, "speed", true, "first text after %.0f ms, then %.1f tokens/s", a->first_ms,
                  1000 * (double)n / rest);
    else
        probe_add(p, "speed", true, "first text after %.0f ms, all of it at once", a->first_ms);
}

static int probe_speed(struct probe *p, struct err *e)
{
    struct answer a;
    int rc = ask(
        p, (struct question){.content = words("Count from 1 to 60, as: 1 2 3 ..."), .max_tokens = 64}, &a, e);
    if (rc == 0) {
        add_speed(p, &a);
        bool thinks = a.in.reply.thought.len > 0;
        probe_add(p, "reasoning", true, "%s",
                  thinks ? "thoughts are in a separate field" : "no separate field in this reply");
    }
    answer_free(&a);
    return rc;
}

/* ---- a schema ---------------------------------------------------------------------------------------- */

#define UNLIKELY "brindle-41"

/* Returns a request member with a schema that allows one text, which no model would write without it. */
static json_t *schema_member(const char *way)
{
    json_t *schema =
        json_pack("{s:s, s:{s:{s:s, s:[s]}}, s:[s], s:b}", "type", "object", "properties", "zq", "type",
                  "string", "enum", UNLIKELY, "required", "zq", "additionalProperties", 0);
    json_t *value = schema;
    if (!strcmp(way, "response_format"))
        value = json_pack("{s:s, s:{s:s, s:b, s:o}}", "type", "json_schema", "json_schema", "name", "probe",
                          "strict", 1, "schema", schema);
    else if (!strcmp(way, "structured_outputs"))
        value = json_pack("{s:o}", "json", schema);
    return json_pack("{s:o}", way, value);
}

static bool holds_schema(const struct remote_reply *r)
{
    const struct buf *said = r->text.len ? &r->text : &r->thought;
    json_auto_t *v = said->len ? json_loadb(said->data, said->len, 0, NULL) : NULL;
    const char *word = json_string_value(json_object_get(v, "zq"));
    return word && !strcmp(word, UNLIKELY);
}

static int probe_constraint(struct probe *p, struct err *e)
{
    static const char *const ways[] = {"response_format", "structured_outputs", "guided_json", "json_schema"};
    const char *found = NULL;
    char tried[120] = "";
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !found; i++) {
        struct err why = ERR_INIT;
        struct answer a;
        int rc = ask(p, (struct question){words("Say hello."), schema_member(ways[i]), 40, 0, 0}, &a, &why);
        found = rc == 0 && holds_schema(&a.in.reply) ? ways[i] : NULL;
        snprintf(tried + strlen(tried), sizeof tried - strlen(tried), "%s%s %s", i ? ", " : "", ways[i],
                 rc ? "refused" : "ignored");
        answer_free(&a);
        if (rc && stopped(&why))
            return err_set(e, ERR_STOPPED, "stopped");
    }
    probe_add(p, "constraint", found != NULL, "%s", found ? found : tried);
    json_object_set_new(p->found, "constraint", json_string(found ? found : "none"));
    free(p->endpoint->profile.constraint);
    p->endpoint->profile.constraint = xstrdup(found ? found : "none");
    return 0;
}

/* ---- thinking, seed, cache, images ----------------------------------------------------------------- */

static int thought_with(struct probe *p, const char *name, bool on, bool *thought, struct err *e)
{
    struct answer a;
    json_t *extra = !strcmp(name, "reasoning_effort")
                        ? json_pack("{s:s}", name, on ? "medium" : "none")
                        : json_pack("{s:{s:b}}", "chat_template_kwargs", name, on);
    int rc = ask(p, (struct question){words("What is 17 + 25?"), extra, 64, 0, 0}, &a, e);
    *thought = rc == 0 &&
               (a.in.reply.thought.len || (a.in.reply.text.len && strstr(a.in.reply.text.data, "<think>")));
    answer_free(&a);
    return rc;
}

static int probe_thinking(struct probe *p, struct err *e)
{
    static const char *const ways[] = {"enable_thinking", "thinking", "reasoning_effort"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !found; i++) {
        bool on = false, off = false;
        struct err why = ERR_INIT;
        int rc = thought_with(p, ways[i], true, &on, &why) || thought_with(p, ways[i], false, &off, &why);
        if (rc && stopped(&why))
            return err_set(e, ERR_STOPPED, "stopped");
        found = rc == 0 && on && !off ? ways[i] : NULL;
    }
    probe_add(p, "thinking", true, "%s", found ? found : "no option changes it");
    json_object_set_new(p->found, "thinking", json_string(found ? found : "none"));
    return 0;
}

static int probe_seed(struct probe *p, struct err *e)
{
    char *said[3] = {NULL};
    struct err why = ERR_INIT;
    int rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++) {
        struct answer a;
        const struct question q = {words("Invent a name for a boat."), NULL, 24, 1, i < 2 ? 11 : 12};
        rc = ask(p, q, &a, &why);
        said[i] = xstrdup(a.in.reply.text.len ? a.in.reply.text.data : "");
        answer_free(&a);
    }
    bool same = rc == 0 && !strcmp(said[0], said[1]);
    if (rc)
        probe_add(p, "seed", false, "%.150s", why.text);
    else
        probe_add(p, "seed", same, "%s%s", same ? "repeats a reply" : "does not repeat a reply",
                  same && !strcmp(said[0], said[2]) ? ", as another seed does" : "");
    for (int i = 0; i < 3; i++)
        free(said[i]);
    return rc && stopped(&why) ? err_set(e, ERR_STOPPED, "stopped") : 0;
}

static int probe_cache(struct probe *p, struct err *e)
{
    struct buf text;
    struct err why = ERR_INIT;
    int64_t cached = -1, prompt = -1;
    int rc = 0;
    buf_init(&text, 1 << 16);
    for (int i = 0; i < LONG_PROMPT; i++)
        buf_printf(&text, "%d ", i * 7919 % 1000);
    buf_puts(&text, "\nWhich number stands first?");
    for (int i = 0; i < 2 && rc == 0; i++) {
        struct answer a;
        rc = ask(p, (struct question){words(text.data), NULL, 4, 0, 0}, &a, &why);
        cached = a.in.reply.cached;
        prompt = a.in.reply.prompt_tokens;
        answer_free(&a);
    }
    buf_free(&text);
    if (rc)
        probe_add(p, "cached tokens", false, "%.150s", why.text);
    else if (cached < 0)
        probe_add(p, "cached tokens", true, "not reported");
    else
        probe_add(p, "cached tokens", cached > 0, "%lld of %lld when a prompt is repeated", (long long)cached,
                  (long long)prompt);
    return rc && stopped(&why) ? err_set(e, ERR_STOPPED, "stopped") : 0;
}

/* Tests the token probabilities, which a heat map needs. */
static int probe_odds(struct probe *p, struct err *e)
{
    struct answer a;
    struct err why = ERR_INIT;
    json_t *extra = json_pack("{s:b, s:i}", "logprobs", 1, "top_logprobs", 5);
    int rc = ask(p, (struct question){words("Say hello."), extra, 4, 0, 0}, &a, &why);
    size_t n = json_array_size(json_object_get(json_array_get(a.in.reply.odds, 0), "top_logprobs"));
    if (rc)
        probe_add(p, "alternatives", false, "%.150s", why.text);
    else
        probe_add(p, "alternatives", n > 0, n ? "%zu per token, with probabilities" : "not returned", n);
    answer_free(&a);
    return rc && stopped(&why) ? err_set(e, ERR_STOPPED, "stopped") : 0;
}

static json_t *pictures(int n)
{
    struct image im = {0};
    autobuf url = buf_of(1 << 20);
    autofree void *png = NULL;
    uint64_t len = 0;
    json_t *content = words("What do you see?");
    if (image_alloc(&im, PICTURE_SIDE, PICTURE_SIDE, NULL) || image_encode_png(&im, &png, &len, NULL))
        die(ERR_ENV, "not enough memory for an image");
    buf_puts(&url, "data:image/png;base64,");
    buf_put_base64(&url, png, len);
    for (int i = 0; i < n; i++)
        json_array_append_new(content,
                              json_pack("{s:s, s:{s:s}}", "type", "image_url", "image_url", "url", url.data));
    image_free(&im);
    return content;
}

static int probe_pictures(struct probe *p, struct err *e)
{
    struct err why = ERR_INIT;
    int most = 0;
    for (int n = 1; n <= MOST_PICTURES && most == n - 1; n++) {
        struct answer a;
        int rc = ask(p, (struct question){pictures(n), NULL, 4, 0, 0}, &a, &why);
        most = rc ? most : n;
        answer_free(&a);
        if (rc && stopped(&why))
            return err_set(e, ERR_STOPPED, "stopped");
    }
    if (most == MOST_PICTURES)
        probe_add(p, "images", true, "%d in a request, or more", most);
    else
        probe_add(p, "images", most > 0, "%d in a request: %.140s", most, why.text);
    if (most && most < MOST_PICTURES)
        json_object_set_new(p->found, "max_images", json_integer(most));
    return 0;
}

/* ---- all tests ------------------------------------------------------------------------------------- */

int probe_server(struct probe *p, struct endpoint *endpoint, const volatile int *stop, struct err *e)
{
    *p = (struct probe){.endpoint = endpoint, .stop = stop, .http = http_open(), .found = json_object()};
    /* a question that the server cannot answer should not be repeated long */
    if (endpoint->profile.tries > TRIES)
        endpoint->profile.tries = TRIES;
    bool chat = endpoint->protocol == &protocol_chat;
    if (!endpoint->replayed)
        probe_kind(p);
    if (probe_speed(p, e) ||
        (chat && (probe_constraint(p, e) || probe_thinking(p, e) || probe_seed(p, e) || probe_odds(p, e))))
        return -1;
    return probe_cache(p, e) || probe_pictures(p, e) ? -1 : 0;
}
