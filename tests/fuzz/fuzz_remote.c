/* fuzz_remote.c - any bytes as the response of a server: an event stream in pieces, one JSON text, the body
 * of an error, a retry header, a profile.  Byte 0 selects the protocol, byte 1 the size of the pieces.  A
 * complete reply goes to the dialect's parser and into the next request; token probabilities become
 * candidates of its slots.
 */
#include "actions/action.h"
#include "base/retry.h"
#include "remote/exchanges.h"
#include "remote/odds.h"
#include "remote/reply_body.h"
#include "remote/turns.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct protocol *const protocols[] = {&protocol_chat, &protocol_responses, &protocol_messages};
static const struct protocol *protocol;

static struct endpoint *endpoint(void)
{
    const struct endpoint_options o = {.base_url = "http://127.0.0.1:1/v1", .model = "m"};
    static struct endpoint *p;
    return p ? p : (p = endpoint_open(&o, NULL, NULL));
}

/* Uses the reply as a turn, in a request, and in the record of that. */
static void go_on(struct remote_reply *r, const struct dialect *d)
{
    static const struct llm_request how = {.goal = GOAL_STEP, .sampling = {.max_tokens = 9}};
    const char *said = r->action.len ? r->action.data : r->text.len ? r->text.data : "";
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "system", "content", "s");
    json_array_append_new(messages, turn_of_reply(r, said, 1));
    json_array_append_new(messages, json_pack("{s:s, s:[{s:s, s:s}], s:s}", "role", "user", "content", "type",
                                              "text", "text", "done", "result", "do"));
    const struct remote_turn turn = {
        .endpoint = endpoint(), .dialect = d, .messages = messages, .how = &how, .shown_w = 8, .shown_h = 8};
    json_t *body = protocol->request(&turn), *plain = exchange_without_pictures(body);
    if (!json_is_object(plain))
        bug("a request that is not an object");
    json_decref(plain);
    json_decref(body);
    json_decref(messages);
}

static void weigh(const struct remote_reply *r, const struct dialect *d)
{
    struct generated g = {0};
    struct slot slots[SLOTS_MAX];
    struct beam_candidate found[4];
    buf_init(&g.text, 1 << 24);
    buf_puts(&g.text, "hm");
    buf_put(&g.text, r->text.data ? r->text.data : "", r->text.len);
    odds_keep(&g, r->odds, g.text.data + 2, g.text.len - 2, 2);
    int n = dialect_slots(d, g.text.data, g.text.len, slots, SLOTS_MAX);
    for (int i = 0; i < n; i++)
        for (int k = odds_candidates(d, &g, &slots[i], found, 4); k-- > 1;)
            if (!(found[k - 1].p >= found[k].p))
                bug("candidates without an order");
    generated_free(&g);
}

static void parse(struct remote_reply *r)
{
    static struct dialect *dialects[3];
    struct dialect **d = &dialects[protocol == protocols[1] ? 1 : protocol == protocols[2] ? 2 : 0];
    if (!*d)
        *d = dialect_load(protocol == &protocol_chat ? "holo31" : protocol->dialect, NULL);
    if (protocol->finish)
        protocol->finish(r);
    const struct buf *said = r->action.len ? &r->action : &r->text;
    struct step step = {0};
    if (said->len)
        action_parse(said->data, said->len, *d, 640, 480, &step, NULL);
    step_free(&step);
    go_on(r, *d);
    weigh(r, *d);
}

static void stream(const char *data, size_t size, size_t piece)
{
    struct reply_body b;
    reply_body_begin(&b, protocol);
    for (size_t at = 0; at < size && !reply_body_feed(&b, data + at, piece < size - at ? piece : size - at);)
        at += piece < size - at ? piece : size - at;
    if (reply_body_end(&b) == 0)
        parse(&b.reply);
    else if (!b.reply.failed.class || !*b.reply.failed.said)
        bug("a failure without a class or a message");
    reply_body_free(&b);
}

static void whole(const char *data, size_t size)
{
    struct remote_reply r;
    remote_reply_init(&r);
    if (protocol->read_whole(&r, data, size) == 0)
        parse(&r);
    else if (!r.failed.class)
        bug("a failure without a class");
    remote_reply_free(&r);
}

/* Parses the failure in an error, and a retry header. */
static void wait_for(const char *text, size_t size)
{
    static const char *const headers[] = {"retry-after", "retry-after-ms", "x-ratelimit-reset"};
    const struct retry_limits limits = {20, 86400, 1};
    struct failure f;
    for (int status = 300; status < 600; status += 103) {
        failure_of_status(&f, status, text, size);
        if (!f.class || retry_wait(&limits, &f, 1, 0, 0) > 86400)
            bug("a failure without a class, or a wait without a bound");
    }
    struct retry_hint h = {0};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        retry_header(&h, headers[i], text, 1e9);
    if (!(h.after >= 0 && h.after < 1e9) || !(h.reset >= 0 && h.reset < 1e9) || !(retry_in_text(text) >= 0))
        bug("a wait that is not one");
}

static void refusal_and_profile(const char *data, size_t size)
{
    char *text = xcalloc(size + 1, 1);
    struct profile p;
    struct err e = ERR_INIT;
    memcpy(text, data, size);
    endpoint_learn(endpoint(), text, protocol->optional, 4);
    profile_init(&p);
    if (profile_parse(&p, data, size, "p", &e) && !*e.text)
        bug("a refusal without a message");
    profile_free(&p);
    wait_for(text, size);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    protocol = protocols[data[0] % 3];
    const char *text = (const char *)data + 2;
    stream(text, size - 2, (size_t)data[1] + 1);
    whole(text, size - 2);
    refusal_and_profile(text, size - 2);
    return 0;
}
