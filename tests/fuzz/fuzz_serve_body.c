/* fuzz_serve_body.c - any bytes as the body of a request to `holorun serve`, in each protocol: rejected
 * with a reason, or parsed up to its images, the grammar of its schema, and the prefix hashes of its
 * conversation.
 */
#include "serve/api.h"
#include "serve/json_schema.h"
#include "serve/picture.h"
#include "serve/prompt.h"
#include "serve/reply_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_pictures(const struct chat_body *b)
{
    for (int i = 0; i < b->talk.n_images; i++) {
        struct err e = ERR_INIT;
        struct image im;
        if (picture_decode(b->talk.files[i], NULL, &im, &e) && !*e.text)
            bug("an image refused without a reason");
        image_free(&im);
    }
}

static void read_schema(const json_t *schema)
{
    struct err e = ERR_INIT;
    struct gx *x = gx_new();
    if (json_schema_expression(x, schema, &e) < 0 && !*e.text)
        bug("a schema refused without a reason");
    gx_free(x);
}

/* Parses the same bytes as the text of a reply, in pieces of all sizes. */
static void take_apart(const char *text, size_t size)
{
    static const char *const stops[] = {"\n\n", "ab"};
    struct reply_text r;
    json_t *tools = json_loads(
        "[{\"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"x\": {\"type\": \"integer\"}}}}}]",
        0, NULL);
    reply_text_init(&r, size & 1, size & 2 ? tools : NULL, stops, 2);
    for (size_t at = 0, n = 1; at < size; at += n, n = n * 2 % 13 + 1)
        reply_text_feed(&r, text + at, n < size - at ? n : size - at);
    reply_text_end(&r);
    json_decref(reply_text_calls(&r, "x"));
    reply_text_free(&r);
    json_decref(tools);
}

static void read_body(const uint8_t *data, size_t size, const struct api *api)
{
    const struct body_defaults d = {.sampling = {.temperature = 1, .top_p = 1}};
    struct err e = ERR_INIT;
    struct chat_body b;
    if (body_parse(&b, (const char *)data, size, &d, api->translate, &e) == 0) {
        read_pictures(&b);
        if (b.schema)
            read_schema(b.schema);
        struct prompt p;
        static struct chat_template *t;
        t = t ? t : chat_template_of(NULL, NULL, CHAT_QWEN);
        if (prompt_build(&p, t, &b.talk, &e) == 0 && (p.n < 0 || p.cuts[p.n] > p.layout.n))
            __builtin_trap();
        prompt_free(&p);
    } else if (!*e.text) {
        bug("refused without a reason");
    }
    body_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_body(data, size, &api_chat);
    read_body(data, size, &api_responses);
    read_body(data, size, &api_messages);
    take_apart((const char *)data, size);
    return 0;
}
