/* t_serve_tools.c - tests prompts and tools of `holorun serve` and of runs with published chat templates, on
 * small random models of Qwen3.5, Qwen3-VL and Nemotron 3 (tiny_dirs.h). t_templates.c checks the ids of
 * whole conversations against transformers; here each path to a prompt is compared with them.
 */
#include "check.h"
#include "served.h"
#include "tiny_dirs.h"

#include "llm/llm.h"
#include "serve/picture.h"
#include "session/chat.h"
#include "session/generate.h"
#include "text/conversation.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const families[] = {"qwen3_5_nothink",  "qwen3_5_think",   "qwen3_6",
                                       "qwen3_8",          "qwen3_vl",        "nemotron_3_nano",
                                       "nemotron_3_super", "nemotron_3_ultra"};
enum { FAMILIES = sizeof families / sizeof *families };

static const char *served_dir;

static void use_dir(struct service_options *o, struct server_options *s)
{
    o->model.dir = served_dir;
    s->model.dir = served_dir;
}

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"press\", \"description\": \"Presses a button.\", "
    "\"parameters\": {\"type\": \"object\", \"properties\": {\"button\": {\"type\": \"string\", \"enum\": [\"left\", "
    "\"right\"]}, \"times\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 9}, \"hold\": {\"type\": \"boolean\"}}, "
    "\"required\": [\"button\", \"times\"]}}}, {\"type\": \"function\", \"function\": {\"name\": \"wait\", \"parameters\": "
    "{\"type\": \"object\", \"properties\": {}}}}]";

struct family {
    struct tiny_dir dir;
    struct served v;
    struct weights_set *weights;
    struct engine *engine;
};

/* Returns false without published templates. */
static bool family_open(struct family *f, const char *name)
{
    char *template = published_template(name);
    if (!template)
        return false;
    *f = (struct family){0};
    tiny_dir_open(&f->dir, tiny_dir_kind_of(name), template);
    served_dir = f->dir.dir;
    served_open(&f->v, use_dir);
    f->weights = weights_acquire(f->v.service.weights, NULL);
    f->engine = f->weights->engine;
    free(template);
    return true;
}

static void family_close(struct family *f)
{
    weights_release(f->v.service.weights, f->weights);
    served_close(&f->v);
    tiny_dir_close(&f->dir);
}

/* Returns a session with a conversation as its template renders it. */
static struct session *whole(struct family *f, const json_t *body, enum chat_think think)
{
    struct err e = ERR_INIT;
    struct conversation v;
    struct session *s = session_new(f->engine, 1);
    if (conversation_take(&v, json_deep_copy(body), &e))
        fail_msg("%s", e.text);
    for (int i = 0; i < v.n_images; i++)
        if (picture_decode(v.files[i], NULL, &v.images[i], &e))
            fail_msg("%s", e.text);
    v.chat.think = think;
    v.chat.normalise = true;
    if (chat_append(s, &v.chat, &e))
        fail_msg("%s", e.text);
    conversation_free(&v);
    return s;
}

static void same_ids(const struct session *s, const json_t *ids, const char *family, const char *what)
{
    if ((int64_t)json_array_size(ids) != session_length(s))
        fail_msg("%s: %s has %zu ids instead of %lld", family, what, json_array_size(ids),
                 (long long)session_length(s));
    for (int64_t i = 0; i < session_length(s); i++)
        if (json_integer_value(json_array_get(ids, (size_t)i)) != session_tokens(s)[i])
            fail_msg("%s: id %lld of %s differs", family, (long long)i, what);
}

/* ---- prompts ------------------------------------------------------------------------------------------- */

static json_t *random_body(uint64_t *rng, bool pictures, int turns)
{
    static const char *const texts[] = {"Hello",        " padded\n", "", "caf\u00e9 \u6771\u4eac",
                                        "{\"a\": [1]}", "two\nlines"};
    json_t *messages = json_array();
    if (check_random(rng) < 0.6)
        json_array_append_new(
            messages, json_pack("{s:s, s:s}", "role", "system", "content", texts[check_below(rng, 6)]));
    for (int i = 0; i < turns; i++) {
        if (i)
            json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "assistant", "content",
                                                      texts[check_below(rng, 6)]));
        int n = pictures ? check_below(rng, 3) : 0;
        json_array_append_new(
            messages, n ? served_user(texts[check_below(rng, 6)], n, (uint64_t)check_below(rng, 90))
                        : json_pack("{s:s, s:s}", "role", "user", "content", texts[check_below(rng, 6)]));
        if (check_random(rng) < 0.3 && i + 1 < turns) {
            json_array_append_new(messages, json_pack("{s:s, s:s, s:[{s:s, s:s, s:{s:s, s:s}}]}", "role",
                                                      "assistant", "content", "I will.", "tool_calls", "id",
                                                      "c1", "type", "function", "function", "name", "press",
                                                      "arguments", "{\"button\": \"left\", \"times\": 2}"));
            bool shown = pictures && check_random(rng) < 0.5;
            json_array_append_new(messages, shown ? json_pack("{s:s, s:s, s:[{s:s, s:s}, o]}", "role", "tool",
                                                              "tool_call_id", "c1", "content", "type", "text",
                                                              "text", "done", served_picture((uint64_t)i))
                                                  : json_pack("{s:s, s:s, s:s}", "role", "tool",
                                                              "tool_call_id", "c1", "content", "done"));
        }
    }
    json_t *body = json_pack("{s:o, s:i, s:i, s:b}", "messages", messages, "max_tokens", 2, "temperature", 0,
                             "return_token_ids", 1);
    if (check_random(rng) < 0.5)
        json_object_set_new(body, "tools", json_loads(tools, 0, NULL));
    return body;
}

static void t_served_prompts(void **state)
{
    uint64_t rng = check_seed();
    int n = 0;
    for (int k = 0; k < FAMILIES; k++) {
        struct family f;
        if (!family_open(&f, families[k]))
            skip();
        for (int i = 0; i < 8; i++, n++) {
            json_t *body = random_body(&rng, f.dir.kind != TINY_NEMOTRON3, 1 + check_below(&rng, 3));
            enum chat_think think = (enum chat_think)check_below(&rng, 3);
            struct session *s = whole(&f, body, think);
            if (think)
                json_object_set_new(body, "reasoning_effort",
                                    json_string(think == CHAT_THINK_ON ? "medium" : "none"));
            struct said r = served_chat(&f.v, body);
            if (r.status != 200)
                fail_msg("%s: %d %s", families[k], r.status, r.text);
            same_ids(s, json_object_get(r.json, "prompt_token_ids"), families[k], "a served prompt");
            session_free(s);
            said_free(&r);
        }
        family_close(&f);
    }
    check_note("%d prompts", n);
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

/* Compares a run's session after some turns with the same messages rendered whole. */
static void check_run(struct family *f, const char *family, const struct dialect *d, uint64_t *rng)
{
    static const char *const texts[] = {"Press Save",          "seen:\n",    "",
                                        "<observation>\u6771", "two\nlines", "a "};
    static const char *const replies[] = {"I press it.", "{\"x\": 1}", " caf\u00e9\n", "done"};
    struct err e = ERR_INIT;
    struct llm *m = llm_local(f->engine, d, 1);
    json_t *messages = json_array();
    struct image im = tiny_image(64, 48, 5);
    bool pictures = f->dir.kind != TINY_NEMOTRON3;
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "system", "content", "Be a test."));
    if (m->ops->begin(m, "Be a test.", &e))
        fail_msg("%s: %s", family, e.text);
    for (int i = 0; i < 3; i++) {
        const char *lead = texts[check_below(rng, 6)], *reply = replies[check_below(rng, 4)];
        struct chat_part parts[3] = {{.text = lead}, {.image = &im}, {.text = "\n"}};
        json_t *content = json_array();
        json_array_append_new(content, json_pack("{s:s, s:s}", "type", "text", "text", lead));
        if (pictures)
            json_array_append_new(content, json_pack("{s:s, s:s}", "type", "image", "image", "x.png"));
        json_array_append_new(content, json_pack("{s:s, s:s}", "type", "text", "text", "\n"));
        parts[1] = pictures ? parts[1] : parts[2];
        if (m->ops->user(m, parts, pictures ? 3 : 2, CHAT_PLACE_INLINE, &e) ||
            (i < 2 && m->ops->reply(m, reply, &e)))
            fail_msg("%s: %s", family, e.text);
        json_array_append_new(messages, json_pack("{s:s, s:o}", "role", "user", "content", content));
        if (i < 2)
            json_array_append_new(messages, json_pack("{s:s, s:s}", "role", "assistant", "content", reply));
    }
    struct session *s = llm_session(m), *all = session_new(f->engine, 1);
    if (chat_open_reply(s, d->think, &e))
        fail_msg("%s: %s", family, e.text);
    struct conversation v;
    json_t *root = json_pack("{s:o}", "messages", messages);
    if (d->native_tools) {
        char *list = xasprintf("[%s]", d->schema), *at = list;
        while ((at = strstr(at, "\n{")))
            *at = ',';
        json_object_set_new(root, "tools", json_loads(list, 0, NULL));
        free(list);
    }
    assert_int_equal(conversation_take(&v, root, &e), 0);
    for (int i = 0; i < v.n_images; i++)
        assert_int_equal(image_copy(&v.images[i], &im, &e), 0);
    v.chat.think = d->think ? CHAT_THINK_ON : CHAT_THINK_OFF;
    v.chat.place = CHAT_PLACE_INLINE;
    v.chat.normalise = true; /* a run's texts are one text unless there is an image */
    if (chat_append(all, &v.chat, &e))
        fail_msg("%s: %s", family, e.text);
    if (session_length(s) != session_length(all) ||
        memcmp(session_tokens(s), session_tokens(all), (size_t)session_length(s) * sizeof(int32_t)) != 0)
        fail_msg("%s, dialect %s: a run's prompt has other ids (%lld, %lld)", family, d->name,
                 (long long)session_length(s), (long long)session_length(all));
    conversation_free(&v);
    session_free(all);
    image_free(&im);
    llm_free(m);
}

static void t_run_prompts(void **state)
{
    static const char *const dialects[] = {"holo31", "qwen", "holo3", "gemini"};
    uint64_t rng = check_seed();
    for (int k = 0; k < FAMILIES; k++) {
        struct family f;
        if (!family_open(&f, families[k]))
            skip();
        for (int i = 0; i < 4; i++) {
            struct err e = ERR_INIT;
            struct dialect *d = dialect_load(dialects[i], &e);
            assert_non_null(d);
            char *second =
                d->native_tools ? strchr(d->schema, '\n') : NULL; /* two of its tools fill the context */
            second = second ? strchr(second + 1, '\n') : NULL;
            if (second)
                *second = 0;
            check_run(&f, families[k], d, &rng);
            dialect_free(d);
        }
        family_close(&f);
    }
}

/* ---- questions ----------------------------------------------------------------------------------------- */

/* A question about an image as `ask`, `ground` and `eval` ask it: the image first, no system text, no
 * tools. */
static void check_question(struct family *f, const char *family, const struct dialect *d)
{
    struct err e = ERR_INIT;
    struct llm *m = llm_local(f->engine, d, 1);
    struct image im = tiny_image(70, 50, 3);
    struct chat_part parts[3];
    int n = llm_question(d, " Where is Save?\n", &im, 1, parts);
    if (m->ops->begin(m, "", &e) || m->ops->user(m, parts, n, CHAT_PLACE_TEMPLATE, &e) ||
        chat_open_reply(llm_session(m), false, &e))
        fail_msg("%s: %s", family, e.text);
    struct session *s = llm_session(m), *all = session_new(f->engine, 1);
    const struct chat_part want[2] = {{.image = &im}, {.text = " Where is Save?\n"}};
    const struct chat_message message = {.role = CHAT_USER, .parts = want, .n = 2, .listed = true};
    const struct chat_conversation v = {
        .messages = &message, .n = 1, .think = CHAT_THINK_OFF, .open_reply = true};
    assert_int_equal(chat_append(all, &v, &e), 0);
    if (session_length(s) != session_length(all) ||
        memcmp(session_tokens(s), session_tokens(all), (size_t)session_length(s) * sizeof(int32_t)) != 0)
        fail_msg("%s, dialect %s: a question has other ids", family, d->name);
    session_free(all);
    image_free(&im);
    llm_free(m);
}

static void t_questions(void **state)
{
    static const char *const dialects[] = {"holo31", "qwen", "holo15", "fara"};
    for (int k = 0; k < FAMILIES; k++) {
        struct family f;
        if (tiny_dir_kind_of(families[k]) == TINY_NEMOTRON3)
            continue;
        if (!family_open(&f, families[k]))
            skip();
        for (int i = 0; i < 4; i++) {
            struct dialect *d = dialect_load(dialects[i], NULL);
            assert_non_null(d);
            check_question(&f, families[k], d);
            dialect_free(d);
        }
        family_close(&f);
    }
}

/* ---- tools --------------------------------------------------------------------------------------------- */

/* Four turns, each with a required call and its result. */
static void check_loop(struct family *f, const char *family)
{
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "Press the buttons.");
    for (int i = 0; i < 4; i++) {
        json_t *body = json_pack("{s:O, s:o, s:s, s:i, s:i, s:s}", "messages", messages, "tools",
                                 json_loads(tools, 0, NULL), "tool_choice", "required", "max_tokens", 400,
                                 "seed", 7 + i, "reasoning_effort", "none");
        if (i % 2)
            json_object_set_new(body, "stream", json_true());
        struct said r = served_chat(&f->v, body);
        if (r.status != 200 || !said_finish(&r) || strcmp(said_finish(&r), "tool_calls") != 0)
            fail_msg("%s, turn %d: %d %s", family, i, r.status, r.text);
        json_t *call = json_array_get(json_object_get(said_message(&r), "tool_calls"), 0);
        json_t *function = json_object_get(call, "function");
        const char *name = json_string_value(json_object_get(function, "name"));
        json_t *arguments = json_loads(json_string_value(json_object_get(function, "arguments")), 0, NULL);
        assert_true(json_is_object(arguments));
        if (!strcmp(name, "press")) {
            const char *button = json_string_value(json_object_get(arguments, "button"));
            assert_true(button && (!strcmp(button, "left") || !strcmp(button, "right")));
            assert_true(json_is_integer(json_object_get(arguments, "times")));
        } else {
            assert_string_equal(name, "wait");
        }
        json_decref(arguments);
        json_array_append(messages, said_message(&r));
        json_array_append_new(messages, json_pack("{s:s, s:O, s:s}", "role", "tool", "tool_call_id",
                                                  json_object_get(call, "id"), "content", "done"));
        said_free(&r);
    }
    struct said r = served_chat(&f->v, json_pack("{s:O, s:o, s:i}", "messages", messages, "tools",
                                                 json_loads(tools, 0, NULL), "max_tokens", 5));
    if (r.status != 200)
        fail_msg("%s, the end: %d %s", family, r.status, r.text);
    assert_true(said_number(&r, "cached_tokens") > 0);
    said_free(&r);
    json_decref(messages);
}

static void t_loops(void **state)
{
    for (int k = 0; k < FAMILIES; k++) {
        struct family f;
        if (!family_open(&f, families[k]))
            skip();
        check_loop(&f, families[k]);
        family_close(&f);
    }
}

/* A second question about an image prefills only the question. */
static void t_picture_cached(void **state)
{
    struct family f;
    if (!family_open(&f, "qwen3_5_nothink"))
        skip();
    for (int i = 0; i < 3; i++) {
        char text[32];
        snprintf(text, sizeof text, "Question %d?", i);
        struct said r = served_chat(
            &f.v, json_pack("{s:[o], s:i}", "messages", served_user(text, 2, 50), "max_tokens", 4));
        assert_int_equal(r.status, 200);
        int64_t left = said_number(&r, "prompt_tokens") - said_number(&r, "cached_tokens");
        if (i && left > 40)
            fail_msg("question %d: %lld of %lld tokens were prefilled", i, (long long)left,
                     (long long)said_number(&r, "prompt_tokens"));
        said_free(&r);
    }
    assert_int_equal((int)served_metric(&f.v, "pictures_total"), 2);
    family_close(&f);
}

/* If the template has no tools, the client is told that they are ignored; a call cannot be required. */
static void t_without_tools(void **state)
{
    char *template = published_template("qwen2_5_vl");
    struct family f = {0};
    if (!template)
        skip();
    tiny_dir_open(&f.dir, TINY_QWEN35, template);
    served_dir = f.dir.dir;
    served_open(&f.v, use_dir);
    struct said r = served_chat(&f.v, json_pack("{s:[o], s:o, s:i}", "messages", served_user("Go", 0, 1),
                                                "tools", json_loads(tools, 0, NULL), "max_tokens", 2));
    assert_int_equal(r.status, 200);
    assert_string_equal(r.ignored, "tools");
    said_free(&r);
    r = served_chat(&f.v, json_pack("{s:[o], s:o, s:s}", "messages", served_user("Go", 0, 1), "tools",
                                    json_loads(tools, 0, NULL), "tool_choice", "required"));
    assert_int_equal(r.status, 400);
    assert_non_null(strstr(r.text, "the model's chat template does not support tools"));
    said_free(&r);
    served_close(&f.v);
    tiny_dir_close(&f.dir);
    free(template);
}

static const struct CMUnitTest tests[] = {
    CLAIM("served prompts have the ids of the whole conversation, with tools, pictures and thinking",
          t_served_prompts),
    CLAIM("prompts of runs have the ids of the whole conversation in each dialect", t_run_prompts),
    CLAIM("questions about an image have the image first, no system text and no tools", t_questions),
    CLAIM("four turns with a required tool work with each template", t_loops),
    CLAIM("another question about the same images does not encode them again", t_picture_cached),
    CLAIM("the client is told when the template does not show its tools", t_without_tools),
};

CHECK_MAIN()
