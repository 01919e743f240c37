/* t_chat_qwen.c - conversations in the layouts of Qwen3.5, Qwen3-VL and Qwen2.5-VL against what Jinja2 renders
 * (tests/golden/chat/qwen.json and qwen_json.json, tests/reference/make_chat_qwen.py and make_chat_qwen_json.py
 * with the templates beside them): byte for byte, with up to four pictures a message, calls and results; and which texts may become added tokens. */
#include "check.h"
#include "place.h"
#include "talk.h"

#include "base/file.h"
#include "text/chat_qwen.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static json_t *golden;

static const json_t *cases(const char *file)
{
    char *path = xasprintf("tests/golden/chat/%s", file);
    json_decref(golden);
    golden = json_load_file(path, 0, NULL);
    assert_non_null(golden);
    free(path);
    return json_object_get(golden, "cases");
}

/* The rendered text, and how many marks stand in segments where they are recognised. */
static char *render(const struct chat_conversation *c, const struct template_traits *traits, int *marks,
                    struct err *e)
{
    static const char image[] = "<|vision_start|><|image_pad|><|vision_end|>";
    static const char *const names[] = {"<|endoftext|>",    "<|im_start|>",   "<|im_end|>",
                                        "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
                                        "<tool_call>",      "</tool_call>",   "<tool_response>",
                                        "</tool_response>", "<think>",        "</think>"};
    struct layout l = layout_new();
    struct buf out;
    buf_init(&out, 1 << 20);
    *marks = 0;
    int rc = qwen_layout(&l, c, traits, e);
    for (int i = 0; i < l.n && rc == 0; i++) {
        const struct layout_segment *s = &l.segments[i];
        buf_puts(&out, s->image ? image : "");
        *marks += s->image ? 3 : 0;
        buf_put(&out, l.texts.data + s->at, s->len);
        for (size_t at = 0; s->special && at < s->len; at++)
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                *marks += s->len - at >= strlen(names[k]) &&
                          !memcmp(l.texts.data + s->at + at, names[k], strlen(names[k]));
    }
    char *text = rc ? NULL : buf_take(&out);
    buf_free(&out);
    layout_free(&l);
    return text;
}

static void check_case(const json_t *v, const char *key, struct template_traits traits)
{
    struct err e = ERR_INIT;
    struct talk *t = talk_read(v);
    int marks;
    const char *want = json_string_value(json_object_get(v, key));
    char *got = render(&t->c, &traits, &marks, &e);
    if (!got || strcmp(got, want) != 0)
        fail_msg("%s:\n%s\ninstead of\n%s\n", json_string_value(json_object_get(v, "name")),
                 got ? got : e.text, want);
    if (!traits.json_values && marks != json_integer_value(json_object_get(v, "marks")))
        fail_msg("%s: %d marks instead of %lld in\n%s", json_string_value(json_object_get(v, "name")), marks,
                 (long long)json_integer_value(json_object_get(v, "marks")), got);
    free(got);
    talk_free(t);
}

static void t_text(void **state)
{
    (void)state;
    size_t i;
    json_t *v;
    int other = 0;
    json_array_foreach(cases("qwen.json"), i, v)
    {
        check_case(v, "rendered", (struct template_traits){0});
        if (json_object_get(v, "json")) {
            check_case(v, "json", (struct template_traits){.json_values = true});
            other++;
        }
    }
    check_note("%zu conversations, %d of them other in later templates", i, other);
    assert_true(i > 300 && other > 30);
}

static void t_json(void **state)
{
    (void)state;
    size_t i;
    json_t *v;
    json_array_foreach(cases("qwen_json.json"), i, v)
    {
        const char *form = json_string_value(json_object_get(v, "form"));
        check_case(v, "rendered",
                   (struct template_traits){.json_calls = true,
                                            .thinks = !strcmp(form, "thinks"),
                                            .greets = !strcmp(form, "greets")});
    }
    check_note("%zu conversations", i);
    assert_true(i > 300);
}

static void refuses(struct chat_message *messages, int n, const char *naming)
{
    struct err e = ERR_INIT;
    struct chat_conversation c = {.messages = messages, .n = n};
    int marks;
    assert_null(render(&c, &(struct template_traits){0}, &marks, &e));
    assert_non_null(strstr(e.text, naming));
}

static void t_refused(void **state)
{
    (void)state;
    struct image im = {0};
    struct chat_part text = {.text = "a"}, wrapped = {.text = " <tool_response>\nx\n</tool_response> "},
                     image = {.image = &im};
    struct chat_message a[] = {{CHAT_USER, &text, 1}, {CHAT_SYSTEM, &text, 1}};
    refuses(a, 2, "message 2");
    struct chat_message b[] = {{CHAT_USER, &wrapped, 1}, {CHAT_ASSISTANT, &text, 1}};
    refuses(b, 2, "no message is a question");
    struct chat_message c[] = {{CHAT_SYSTEM, &image, 1}, {CHAT_USER, &text, 1}};
    refuses(c, 2, "only a user's message");
}

/* The way published files write this. */
static const char block[] =
    "{%- if tools and tools is iterable and tools is not mapping %}\n"
    "    {{- '<|im_start|>system\\n' }}\n    {{- \"# Tools\\n<tools>\" }}\n"
    "    {%- for tool in tools %}\n        {{- \"\\n\" }}\n        {{- tool | tojson }}\n"
    "    {%- endfor %}\n    {{- \"\\n</tools>\" }}\n    {{- '\\n\\nIt\\'s so.' }}\n"
    "    {%- if messages[0].role == 'system' %}\n";

/* And the way of those before. */
static const char older_block[] =
    "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- if messages[0].role == 'system' %}\n"
    "        {%- if messages[0].content is string %}\n            {{- messages[0].content }}\n"
    "        {%- else %}\n            {{- 'other' }}\n        {%- endif %}\n        {{- '\\n\\n' }}\n    {%- endif %}\n"
    "    {{- \"# Tools\\n<tools>\" }}\n    {%- for tool in tools %}\n        {{- \"\\n\" }}\n"
    "        {{- tool | tojson }}\n    {%- endfor %}\n    {{- \"\\n</tools>\\n\\nIt's so.<|im_end|>\\n\" }}\n"
    "{%- else %}\n";

static void reads_sentences(const char *text)
{
    struct buf before, after;
    buf_init(&before, 1 << 12);
    buf_init(&after, 1 << 12);
    assert_true(template_read_qwen_tools(text, &before, &after));
    buf_putc(&before, 0);
    buf_putc(&after, 0);
    assert_string_equal(before.data, "# Tools\n<tools>");
    assert_string_equal(after.data, "\n</tools>\n\nIt's so.");
    buf_free(&before);
    buf_free(&after);
}

/* The words that tell the layouts apart, as each family's published template has it. */
static void t_traits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool json, thinks, greets;
    } cases[] = {
        {"<|vision_start|> <tool_call>\\n<function= </think>", false, false, false},
        {"<|vision_start|> <tool_call>\\n{\"name\": \"", true, false, false},
        {"<|vision_start|> <tool_call>\\n{\"name\": \" '</think>' in content", true, true, false},
        {"<|im_start|>system\nYou are a helpful assistant.<|im_end|> <|vision_start|>", true, false, true},
        {"<|im_start|> You are a helpful assistant.", false, false, false}, /* no pictures: not Qwen's */
    };
    char dir[PLACE_PATH], path[PLACE_PATH + 32];
    assert_non_null(mkdtemp(place_template(dir)));
    snprintf(path, sizeof path, "%s/chat_template.jinja", dir);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(file_write(path, cases[i].text, strlen(cases[i].text), NULL), 0);
        struct template_traits h = template_traits_of(dir);
        assert_true(h.given && h.json_calls == cases[i].json && h.thinks == cases[i].thinks &&
                    h.greets == cases[i].greets);
        template_traits_free(&h);
    }
    unlink(path);
    rmdir(dir);
}

static void t_sentences(void **state)
{
    (void)state;
    struct buf before, after;
    buf_init(&before, 1 << 12);
    buf_init(&after, 1 << 12);
    reads_sentences(block);
    reads_sentences(older_block);
    for (size_t n = 0; n < sizeof block - 60; n++) { /* cut anywhere before the loop's end */
        char *part = xasprintf("%.*s", (int)n, block);
        buf_clear(&before);
        buf_clear(&after);
        assert_false(template_read_qwen_tools(part, &before, &after));
        free(part);
    }
    buf_free(&before);
    buf_free(&after);
}

static const struct CMUnitTest tests[] = {
    CLAIM("hundreds of conversations are rendered byte for byte, and only the template's marks are marks",
          t_text),
    CLAIM("hundreds in the layouts whose calls are JSON, too: plain, thinking and greeting", t_json),
    CLAIM("the layouts are told apart by what their templates say", t_traits),
    CLAIM("the sentences around tools are read from a model's own template", t_sentences),
    CLAIM("what the published template refuses is refused", t_refused),
};

int main(int argc, char **argv)
{
    int rc = check_main(argc, argv, tests, sizeof tests / sizeof *tests);
    json_decref(golden);
    return rc;
}
