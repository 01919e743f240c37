/* t_conversation.c - tests conversations in files: rendering by the published template (values by Jinja2 in
 * tests/golden/chat), and refusals.
 */
#include "chat_render.h"
#include "check.h"

#include "base/file.h"
#include "base/sha256.h"
#include "jinja/jinja.h"
#include "program.h"
#include "text/conversation.h"

#include <math.h>
#include <unistd.h>

#define MODEL "assets/pocket/model"

/* ---- rendering ------------------------------------------------------------------------------- */

/* Replaces sizes of drawn images with names. */
static void name_pictures(json_t *messages)
{
    size_t i, k;
    json_t *m, *part;
    json_array_foreach(messages, i, m)
    {
        json_t *content = json_object_get(m, "content");
        json_array_foreach(content, k, part)
        {
            if (json_object_get(part, "size"))
                json_object_set_new(part, "image", json_string("a.png"));
        }
    }
}

static void t_rendered(void **state)
{
    json_t *golden = json_load_file("tests/golden/chat/chat.json", 0, NULL), *c;
    assert_non_null(golden);
    size_t i;
    int told = 0;
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        name_pictures(json_object_get(c, "messages"));
        char *text = json_dumps(c, 0);
        struct conversation v;
        struct err e = ERR_INIT;
        if (conversation_parse(&v, text, strlen(text), &e))
            fail_msg("%s: %s", json_string_value(json_object_get(c, "name")), e.text);
        v.chat.place = json_is_true(json_object_get(c, "inline")) ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE;
        v.chat.think = json_is_true(json_object_get(c, "thinking")) ? CHAT_THINK_ON : CHAT_THINK_OFF;
        v.chat.open_reply = !json_is_false(json_object_get(c, "open"));
        char *got = chat_render(&v.chat, CHAT_NEMOTRON_VL, &e);
        assert_non_null(got);
        assert_string_equal(got, json_string_value(json_object_get(c, "rendered")));
        free(got);
        free(text);
        conversation_free(&v);
        told++;
    }
    check_note("%d conversations", told);
    assert_true(told >= 100);
    json_decref(golden);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t draw_below(uint64_t *state, uint64_t n) /* Draws of make_tokenizer.py */
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return ((z ^ z >> 31) >> 32) * n >> 32;
}

static void add_real(struct sha256 *sum, double v)
{
    json_t *real = json_real(v);
    char *text = jinja_json_text(real);
    sha256_add(sum, text, strlen(text));
    sha256_add(sum, "\n", 1);
    free(text);
    json_decref(real);
}

/* Repeats the numbers of reals() in make_chat.py; the golden file has a hash of Python's spelling. */
static void t_reals(void **state)
{
    json_t *golden = json_load_file("tests/golden/chat/chat.json", 0, NULL);
    uint64_t rng = 11;
    struct sha256 sum;
    char hex[65];
    sha256_begin(&sum);
    for (int k = -1074; k < 1024; k++)
        add_real(&sum, ldexp(1, k));
    for (int i = 0; i < 10000; i++) {
        double digits = (double)draw_below(&rng, 1000000);
        add_real(&sum, digits / pow(10, (double)draw_below(&rng, 23)));
        uint64_t bits = draw_below(&rng, (uint64_t)1 << 32) << 32;
        bits |= draw_below(&rng, (uint64_t)1 << 32);
        if ((bits >> 52 & 2047) == 2047)
            bits &= ~((uint64_t)1 << 52);
        double v;
        memcpy(&v, &bits, sizeof v);
        add_real(&sum, v);
    }
    sha256_end(&sum, hex);
    assert_string_equal(hex, json_string_value(json_object_get(golden, "reals")));
    json_decref(golden);
}

/* Tools and calls in chat format: the template gets a tool unchanged, and a call without its wrapper. */
static void t_tools(void **state)
{
    static const char text[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"go\"}, {\"role\": \"assistant\", "
        "\"tool_calls\": "
        "[{\"type\": \"function\", \"function\": {\"name\": \"press\", \"arguments\": \"{\\\"x\\\":1}\"}}]}],"
        "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"press\", \"description\": "
        "\"\u6771\"}},"
        "{\"name\": \"look\"}]}";
    struct conversation v;
    struct err e = ERR_INIT;
    assert_int_equal(conversation_parse(&v, text, strlen(text), &e), 0);
    assert_int_equal(v.chat.n_tools, 2);
    assert_string_equal(
        v.chat.tools[0],
        "{\"type\": \"function\", \"function\": {\"name\": \"press\", \"description\": \"\u6771\"}}");
    assert_string_equal(v.chat.tools[1], "{\"name\": \"look\"}");
    assert_string_equal(v.messages[1].calls[0], "{\"name\": \"press\", \"arguments\": \"{\\\"x\\\":1}\"}");
    conversation_free(&v);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void t_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "not JSON"},
        {"{\"messages\": []}", "a list of 1 to"},
        {"{\"tools\": []}", "a list of 1 to"},
        {"[{\"role\": \"user\", \"role\": \"user\"}]", "not JSON"},
        {"[{\"role\": \"robot\"}]", "message 1: 'role' must be"},
        {"[{\"role\": \"user\", \"content\": 3}]", "message 1: 'content'"},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"audio\"}]}]",
         "message 1: a part must be of type text, image"},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]",
         "message 1: a text part without 'text'"},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]",
         "message 1: an image part has no file name"},
        {"[{\"role\": \"user\", \"tool_calls\": [{}]}]", "message 1: 'tool_calls'"},
        {"[{\"role\": \"assistant\", \"tool_calls\": [{\"arguments\": {}}]}]", "message 1: a call needs"},
        {"[{\"role\": \"assistant\", \"tool_calls\": [{\"name\": \"a\", \"arguments\": 3}]}]",
         "message 1: the 'arguments'"},
        {"{\"messages\": [{\"role\": \"user\"}], \"chat_template_kwargs\": 3}", "'chat_template_kwargs'"},
        {"{\"messages\": [{\"role\": \"user\"}], \"tools\": [3]}", "tool 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct conversation v;
        struct err e = ERR_INIT;
        assert_int_not_equal(conversation_parse(&v, cases[i].text, strlen(cases[i].text), &e), 0);
        assert_int_equal(e.kind, ERR_USAGE);
        if (!strstr(e.text, cases[i].why))
            fail_msg("'%s' is not in: %s", cases[i].why, e.text);
        conversation_free(&v);
    }
}

/* ---- command --------------------------------------------------------------------------------- */

static void t_asked(void **state)
{
    struct xvfb x;
    struct outcome one = {0}, whole = {0};
    xvfb_folder(&x);
    setenv("XDG_RUNTIME_DIR", x.dir, 1);
    char *chat = xvfb_place(&x, "chat.json");
    char *picture = realpath("tests/golden/pocket/page.png", NULL);
    char *text = xasprintf("[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
                           "\"Read row 6\\n\"}, {\"type\": \"image\", \"image\": \"%s\"}]}]",
                           picture);
    assert_int_equal(file_write(chat, text, strlen(text), NULL), 0);
    program_run(&x, &one, WORDS("ask", "Read row 6", picture, "--model", MODEL));
    program_run(&x, &whole, WORDS("ask", "--chat", chat, "--model", MODEL));
    assert_int_equal(one.code, 0);
    assert_int_equal(whole.code, 0);
    check_note("the picture says: %s", whole.out);
    assert_string_equal(one.out, whole.out);
    assert_int_equal(file_write(chat, "[]", 2, NULL), 0);
    program_run(&x, &whole, WORDS("ask", "--chat", chat, "--model", MODEL));
    ONE_LINE(&whole, ERR_USAGE, chat, "'messages' must be a list");
    free(text);
    free(picture);
    free(chat);
    outcome_free(&one);
    outcome_free(&whole);
    static const char *const left[] = {"out", "err", "chat.json"};
    for (int i = 0; i < 3; i++) {
        char *path = xvfb_place(&x, left[i]);
        unlink(path);
        free(path);
    }
    char *own = xvfb_place(&x, "holorun");
    rmdir(own);
    free(own);
    assert_int_equal(rmdir(x.dir), 0);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a tool is passed unchanged, and a call without its wrapper", t_tools),
    CLAIM("conversations in files are rendered as Jinja2 renders the template", t_rendered),
    CLAIM("22,098 numbers are spelled as Python spells them", t_reals),
    CLAIM("an invalid conversation is refused with the position of the error", t_refused),
    CLAIM("a question in a conversation gets the same answer as alone", t_asked),
};

CHECK_MAIN()
