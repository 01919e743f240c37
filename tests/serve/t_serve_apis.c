/* t_serve_apis.c - tests the protocols Responses and Messages of `holorun serve`, and images from clients. */
#include "check.h"
#include "served.h"

#include "base/file.h"

#define WHOLE "{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 99}"
#define CLICK                                                                                                \
    "{\"type\": \"object\", \"required\": [\"x\", \"y\"], \"properties\": {\"x\": " WHOLE ", \"y\": " WHOLE  \
    "}}"
#define HEAD "\"model\": \"tiny\", \"temperature\": 0, "

static struct said send(const struct served *v, const char *path, const char *body)
{
    return served_send(v, path, SERVED_TOKEN, body, strlen(body), -1);
}

static const char *text_at(json_t *root, const char *list, const char *type, const char *key)
{
    json_t *one;
    size_t i;
    json_array_foreach(json_object_get(root, list), i,
                       one) if (!strcmp(json_string_value(json_object_get(one, "type")),
                                        type)) return json_string_value(json_object_get(one, key));
    return NULL;
}

/* A question has the same answer in each protocol, and the second and third reuse the first one's session. */
static void t_same(void **state)
{
    struct served v;
    served_open(&v, NULL);
    struct said chat = send(&v, "/v1/chat/completions",
                            "{" HEAD "\"max_tokens\": 20, \"messages\": [{\"role\": \"system\", \"content\": "
                            "\"Be brief.\"}, {\"role\": \"user\", \"content\": \"Where?\"}]}"),
                messages =
                    send(&v, "/v1/messages",
                         "{" HEAD "\"max_tokens\": 20, \"system\": [{\"type\": \"text\", \"text\": \"Be "
                         "brief.\"}], \"messages\": [{\"role\": \"user\", \"content\": \"Where?\"}]}"),
                responses = send(&v, "/v1/responses",
                                 "{" HEAD "\"max_output_tokens\": 20, \"instructions\": \"Be brief.\", "
                                 "\"input\": \"Where?\"}");
    const char *want = said_content(&chat), *a = text_at(messages.json, "content", "text", "text");
    json_t *item = json_array_get(json_object_get(responses.json, "output"), 0);
    const char *b = text_at(item, "content", "output_text", "text");
    if (!a || !b || strcmp(want, a) != 0 || strcmp(want, b) != 0)
        fail_msg("%s | %s | %s", want, messages.text, responses.text);
    json_t *usage = json_object_get(messages.json, "usage");
    assert_int_equal(json_integer_value(json_object_get(usage, "input_tokens")) +
                         json_integer_value(json_object_get(usage, "cache_read_input_tokens")),
                     said_number(&chat, "prompt_tokens"));
    usage = json_object_get(responses.json, "usage");
    assert_int_equal(json_integer_value(json_object_get(usage, "input_tokens")),
                     said_number(&chat, "prompt_tokens"));
    assert_true(json_integer_value(
                    json_object_get(json_object_get(usage, "input_tokens_details"), "cached_tokens")) > 0);
    said_free(&chat);
    said_free(&messages);
    said_free(&responses);
    served_close(&v);
}

/* ---- formats accepted by the packages --------------------------------------------------------------- */

#define ASK_MESSAGES "\"messages\": [{\"role\": \"user\", \"content\": \"Shape.\"}], \"max_tokens\": 200"
#define ASK_RESPONSES                                                                                        \
    "\"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_text\", \"text\": \"Shape.\"}]}], "   \
    "\"max_output_tokens\": 200"

static const struct shape {
    const char *file, *path, *body;
} shapes[] = {
    {"messages_plain", "/v1/messages", ASK_MESSAGES},
    {"messages_tool", "/v1/messages",
     ASK_MESSAGES ", \"tools\": [{\"name\": \"click\", \"input_schema\": " CLICK
                  "}], \"tool_choice\": {\"type\": \"any\"}"},
    {"responses_plain", "/v1/responses", ASK_RESPONSES},
    {"responses_tool", "/v1/responses",
     ASK_RESPONSES ", \"tools\": [{\"type\": \"function\", \"name\": \"click\", \"description\": \"clicks\", "
                   "\"parameters\": " CLICK "}], \"tool_choice\": \"required\""},
};

/* Returns the names of the events, with repetitions removed. */
static char *event_names(const char *text)
{
    struct buf out;
    char last[64] = "";
    buf_init(&out, 1 << 16);
    for (const char *p = text; (p = strstr(p, "event: ")); p += 7) {
        int n = (int)strcspn(p + 7, "\n");
        if (n >= (int)sizeof last || (strlen(last) == (size_t)n && !strncmp(last, p + 7, (size_t)n)))
            continue;
        snprintf(last, sizeof last, "%.*s", n, p + 7);
        if (!strcmp(last, "response.incomplete"))
            snprintf(last, sizeof last, "response.completed");
        buf_printf(&out, "%s\n", last);
    }
    char *names = buf_take(&out);
    return names ? names : xstrdup("");
}

/* Removes the client's input and whether a random model's reply ended. */
static json_t *without_chance(json_t *reply)
{
    json_object_del(reply, "incomplete_details");
    json_t *tool = json_array_get(json_object_get(reply, "tools"), 0);
    json_object_del(tool, "parameters");
    return reply;
}

/* tests/scripts/serve_clients.py recorded replies that the vendors' packages validate. */
static void t_recorded(void **state)
{
    struct served v;
    served_open(&v, NULL);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        char *json = xasprintf("tests/cases/serve/%s.json", s->file),
             *sse = xasprintf("tests/cases/serve/%s.sse", s->file), *was = NULL;
        char *body = xasprintf("{%s%s}", HEAD, s->body),
             *streamed = xasprintf("{%s%s, \"stream\": true}", HEAD, s->body);
        size_t len;
        json_t *whole = json_load_file(json, 0, NULL);
        struct said r = send(&v, s->path, body), events = send(&v, s->path, streamed);
        assert_int_equal(file_read(sse, 1 << 20, &was, &len, NULL), 0);
        if (r.status != 200 || events.status != 200)
            fail_msg("%s: %s %s", s->file, r.text, events.text);
        said_same_shape(without_chance(whole), without_chance(r.json), s->file);
        char *want = event_names(was), *got = event_names(events.text);
        assert_string_equal(got, want);
        free(want);
        free(got);
        free(was);
        free(body);
        free(streamed);
        free(json);
        free(sse);
        json_decref(whole);
        said_free(&r);
        said_free(&events);
    }
    served_close(&v);
}

/* ---- conversations with calls ------------------------------------------------------------------------ */

/* After a call and its result with an image the conversation continues in its session. */
static void t_calls(void **state)
{
    struct served v;
    served_open(&v, NULL);
    json_t *picture = served_picture(3);
    const char *url = json_string_value(json_object_get(json_object_get(picture, "image_url"), "url"));
    char *body = xasprintf("{%s%s}", HEAD, shapes[3].body);
    struct said first = send(&v, "/v1/responses", body);
    json_t *call = json_array_get(json_object_get(first.json, "output"), 0);
    json_t *request = json_loads(body, 0, NULL), *input = json_object_get(request, "input");
    assert_string_equal(json_string_value(json_object_get(call, "type")), "function_call");
    json_array_append(input, call);
    json_array_append_new(input,
                          json_pack("{s:s, s:O, s:[{s:s, s:s}, {s:s, s:s}]}", "type", "function_call_output",
                                    "call_id", json_object_get(call, "call_id"), "output", "type",
                                    "input_text", "text", "Done.", "type", "input_image", "image_url", url));
    json_object_set_new(request, "tool_choice", json_string("auto"));
    struct said next = served_post(&v, "/v1/responses", request);
    if (next.status != 200)
        fail_msg("%s", next.text);
    json_t *usage = json_object_get(next.json, "usage");
    assert_true(json_integer_value(
                    json_object_get(json_object_get(usage, "input_tokens_details"), "cached_tokens")) > 0);
    said_free(&first);
    said_free(&next);
    free(body);
    body = xasprintf("{%s%s}", HEAD, shapes[1].body);
    first = send(&v, "/v1/messages", body);
    json_t *use = json_array_get(json_object_get(first.json, "content"), 0);
    request = json_loads(body, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(use, "type")), "tool_use");
    assert_true(json_is_integer(json_object_get(json_object_get(use, "input"), "x")));
    json_array_append_new(json_object_get(request, "messages"),
                          json_pack("{s:s, s:[O]}", "role", "assistant", "content", use));
    json_array_append_new(json_object_get(request, "messages"),
                          json_pack("{s:s, s:[{s:s, s:O, s:[{s:s, s:s}, {s:s, s:{s:s, s:s, s:s}}]}]}", "role",
                                    "user", "content", "type", "tool_result", "tool_use_id",
                                    json_object_get(use, "id"), "content", "type", "text", "text", "Done.",
                                    "type", "image", "source", "type", "base64", "media_type", "image/png",
                                    "data", strchr(url, ',') + 1));
    json_object_del(request, "tool_choice");
    next = served_post(&v, "/v1/messages", request);
    if (next.status != 200)
        fail_msg("%s", next.text);
    assert_true(json_integer_value(
                    json_object_get(json_object_get(next.json, "usage"), "cache_read_input_tokens")) > 0);
    said_free(&first);
    said_free(&next);
    free(body);
    json_decref(picture);
    served_close(&v);
}

/* ---- refusals ---------------------------------------------------------------------------------------- */

#define SAY "\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]"

static void t_refusals(void **state)
{
    static const struct {
        const char *path, *body, *says;
        int status;
    } cases[] = {
        {"/v1/messages", "{" SAY "}", "'max_tokens' is missing", 400},
        {"/v1/messages", "{" SAY ", \"max_tokens\": 5, \"model\": \"claude\"}", "model 'claude' not found",
         404},
        {"/v1/messages",
         "{\"max_tokens\": 5, \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": \"document\"}]}]}",
         "'document' is not supported", 400},
        {"/v1/messages", "[]", "not a JSON object", 400},
        {"/v1/responses", "{}", "'input' must be a string or a list", 400},
        {"/v1/responses", "{\"input\": \"x\", \"previous_response_id\": \"resp_1\"}", "are not stored", 400},
        {"/v1/responses", "{\"input\": \"x\", \"background\": true}", "'background' is not supported", 400},
        {"/v1/responses", "{\"input\": \"x\", \"tools\": [{\"type\": \"computer\"}]}",
         "'computer' is not supported", 400},
        {"/v1/responses", "{\"input\": [{\"role\": \"user\", \"content\": [{\"type\": \"input_file\"}]}]}",
         "'input_file' is not supported", 400},
    };
    struct served v;
    served_open(&v, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said r = send(&v, cases[i].path, cases[i].body);
        json_t *error = json_object_get(r.json, "error");
        const char *says = json_string_value(json_object_get(error, "message"));
        bool anthropic = !strcmp(cases[i].path, "/v1/messages");
        if (r.status != cases[i].status || !says || !strstr(says, cases[i].says) ||
            anthropic != (json_object_get(r.json, "type") != NULL))
            fail_msg("case %zu, %.80s: %d %s", i, cases[i].body, r.status, r.text);
        said_free(&r);
    }
    served_close(&v);
}

/* ---- images ------------------------------------------------------------------------------------------ */

/* The PNGs hold Pillow's pixels of the JPEGs. */
static void t_jpeg(void **state)
{
    static const char *const names[] = {"colour", "progressive", "grey"};
    for (size_t i = 0; i < 3; i++) {
        char *jpeg = xasprintf("tests/cases/serve/%s.jpg", names[i]),
             *png = xasprintf("tests/cases/serve/%s.png", names[i]), *data;
        struct image a, b;
        struct err e = ERR_INIT;
        size_t len;
        assert_int_equal(file_read(jpeg, 1 << 20, &data, &len, NULL), 0);
        if (image_parse_jpeg(&a, data, len, &e) || image_read_png(&b, png, &e))
            fail_msg("%s: %s", names[i], e.text);
        assert_true(image_pixels_changed(&a, &b, 1) == 0);
        image_free(&a);
        image_free(&b);
        for (size_t cut = 0; cut < len; cut += 1 + len / 40) {
            e = (struct err)ERR_INIT;
            assert_int_equal(image_parse_jpeg(&a, data, cut, &e), -1);
            assert_non_null(strstr(e.text, "not a readable JPEG"));
        }
        free(data);
        free(jpeg);
        free(png);
    }
}

static struct said show(const struct served *v, const char *name, const char *type)
{
    char *data, *path = xasprintf("tests/cases/serve/%s", name);
    size_t len;
    struct buf url;
    assert_int_equal(file_read(path, 1 << 20, &data, &len, NULL), 0);
    buf_init(&url, 1 << 20);
    buf_printf(&url, "data:image/%s;base64,", type);
    buf_put_base64(&url, data, len);
    struct said r = served_chat(v, json_pack("{s:[{s:s, s:[{s:s, s:{s:s}}]}], s:i, s:i}", "messages", "role",
                                             "user", "content", "type", "image_url", "image_url", "url",
                                             url.data, "max_tokens", 16, "temperature", 0));
    buf_free(&url);
    free(data);
    free(path);
    return r;
}

static void t_picture(void **state)
{
    struct served v;
    served_open(&v, NULL);
    struct said jpeg = show(&v, "grey.jpg", "jpeg"), png = show(&v, "grey.png", "png"),
                wrong = show(&v, "grey.png", "jpeg");
    assert_int_equal(jpeg.status, 200);
    assert_string_equal(said_content(&jpeg), said_content(&png));
    assert_int_equal(wrong.status, 200);
    assert_string_equal(said_content(&wrong), said_content(&png));
    said_free(&jpeg);
    said_free(&png);
    said_free(&wrong);
    served_close(&v);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a question has the same answer in every protocol", t_same),
    CLAIM("replies and events have the formats that the openai and anthropic packages accept", t_recorded),
    CLAIM("a conversation continues after a call and its result with an image", t_calls),
    CLAIM("invalid requests are refused in the protocol's own format", t_refusals),
    CLAIM("JPEGs are decoded like by Pillow, and refused when truncated", t_jpeg),
    CLAIM("a JPEG gives the same image as a PNG", t_picture),
};

CHECK_MAIN()
