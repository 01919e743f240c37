/* t_qwen_whole.c - compares tiny models of Qwen3.5, Qwen3-VL and Qwen2.5-VL, opened from their directories,
 * with transformers: tokenizer, chat layout, images, tower and language model together
 * (tests/golden/qwen/whole*, tests/reference/make_qwen_whole.py and make_qwen_kin_whole.py). */
#include "check.h"
#include "golden.h"

#include "model/config.h"
#include "session/chat.h"
#include "session/session.h"

#include <math.h>
#include <unistd.h>

static struct golden g;
static struct engine *engine;
static struct image pictures[3];

static void copy_file(const char *name)
{
    struct err e = ERR_INIT;
    char *text;
    size_t len;
    char *from = xasprintf("%s/%s", g.dir, name), *to = xasprintf("%s/%s", g.checkpoint, name);
    if (file_read(from, 1 << 20, &text, &len, &e) || file_write(to, text, len, &e))
        fail_msg("%s", e.text);
    free(text);
    free(from);
    free(to);
}

static void open_case(const char *name)
{
    struct err e = ERR_INIT;
    golden_open(&g, name);
    golden_checkpoint(&g);
    copy_file("tokenizer.json");
    copy_file("preprocessor_config.json");
    engine = engine_open(&(struct engine_options){.dir = g.checkpoint, .threads = 1, .f32 = true}, &e);
    if (!engine)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < 3; i++) {
        const json_t *p = json_array_get(json_object_get(g.root, "pictures"), i);
        golden_picture(&pictures[i], (int)json_integer_value(json_array_get(p, 0)),
                       (int)json_integer_value(json_array_get(p, 1)),
                       (int)json_integer_value(json_array_get(p, 2)));
    }
}

static int setup(void **state)
{
    open_case("qwen/whole");
    return 0;
}

static int setup_vl3(void **state)
{
    open_case("qwen/whole_vl3");
    return 0;
}

static int setup_vl25(void **state)
{
    open_case("qwen/whole_vl25");
    return 0;
}

static int teardown(void **state)
{
    static const char *const files[] = {"tokenizer.json", "preprocessor_config.json"};
    for (int i = 0; i < 3; i++)
        image_free(&pictures[i]);
    engine_close(engine);
    for (int i = 0; i < 2; i++) {
        char *path = xasprintf("%s/%s", g.checkpoint, files[i]);
        unlink(path);
        free(path);
    }
    golden_close(&g);
    return 0;
}

static const float *logits_of(struct session *s)
{
    struct err e = ERR_INIT;
    if (session_prefill(s, &e))
        fail_msg("%s", e.text);
    return session_logits(s);
}

/* Compares the token ids and logits with a prompt of the golden data. */
static double agrees(struct session *s, const char *name)
{
    char key[32];
    snprintf(key, sizeof key, "%s.ids", name);
    struct golden_array ids = golden_find(&g, key);
    snprintf(key, sizeof key, "%s.logits", name);
    struct golden_array logits = golden_find(&g, key);
    assert_int_equal(session_length(s), ids.rows);
    assert_memory_equal(session_tokens(s), ids.data, (size_t)ids.rows * sizeof(int32_t));
    const float *got = logits_of(s), *want = logits.data;
    double most = 0, off = 0;
    for (int64_t i = 0; i < logits.rows; i++) {
        most = fmax(most, fabs((double)want[i]));
        off = fmax(off, fabs((double)got[i] - (double)want[i]));
    }
    return off / most;
}

static void says(struct session *s, const char *name)
{
    char key[32];
    struct err e = ERR_INIT;
    snprintf(key, sizeof key, "%s.said", name);
    struct golden_array want = golden_find(&g, key);
    for (int64_t k = 0; k < want.rows; k++) {
        const float *v = logits_of(s);
        int32_t best = 0;
        for (int32_t i = 1; i < 268; i++)
            best = v[i] > v[best] ? i : best;
        assert_int_equal(best, ((const int32_t *)want.data)[k]);
        if (best == 261) /* the image token can be neither generated nor appended */
            break;
        assert_int_equal(session_append(s, &best, 1, &e), 0);
    }
}

/* Starts the conversation, up to the first reply. */
static struct session *begin(bool system)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(engine, 1);
    const struct chat_part user[] = {{.text = " Look: "},
                                     {.image = &pictures[0]},
                                     {.text = " and "},
                                     {.image = &pictures[1]},
                                     {.text = "\nWhich is cafe\u0301? <|im_end|>\n"}};
    if (system)
        assert_int_equal(chat_system(s, "Be brief.\n", false, &e), 0);
    if (chat_user(s, user, 5, CHAT_PLACE_TEMPLATE, &e))
        fail_msg("%s", e.text);
    return s;
}

static void t_first(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = begin(true);
    assert_int_equal(chat_open_reply(s, false, &e), 0);
    double off = agrees(s, "first");
    check_note("logits off by %.1e of the largest", off);
    assert_true(off < 1e-4);
    says(s, "first");
    session_free(s);
}

static void t_later(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = begin(true);
    const struct chat_part user[] = {{.image = &pictures[2]}, {.text = "And now?"}};
    struct checkpoint *before = session_try_checkpoint(s, &e);
    assert_non_null(before);
    assert_int_equal(chat_open_reply(s, true, &e), 0);
    logits_of(s);
    assert_false(chat_keeps_reply(s, "a"));
    assert_int_equal(session_rewind(s, before, &e), 0);
    assert_int_equal(chat_reply(s, json_string_value(json_object_get(g.root, "reply")), &e), 0);
    assert_int_equal(chat_user(s, user, 2, CHAT_PLACE_TEMPLATE, &e), 0);
    assert_int_equal(chat_open_reply(s, true, &e), 0);
    double off = agrees(s, "later");
    check_note("logits off by %.1e of the largest", off);
    assert_true(off < 1e-4);
    says(s, "later");
    checkpoint_free(before);
    session_free(s);
}

/* In the older families replies stay verbatim, so that the next turn continues the session.  Qwen2.5-VL has
 * its own system prompt. */
static void t_kin(void **state)
{
    struct err e = ERR_INIT;
    struct session *s = begin(engine_config(engine)->family == FAMILY_QWEN3VL);
    const struct chat_part user[] = {{.image = &pictures[2]}, {.text = "And now?"}};
    struct checkpoint *before = session_try_checkpoint(s, &e);
    assert_int_equal(chat_open_reply(s, false, &e), 0);
    double off = agrees(s, "first");
    says(s, "first");
    assert_true(chat_keeps_reply(s, "a"));
    assert_int_equal(session_rewind(s, before, &e), 0);
    assert_int_equal(chat_reply(s, json_string_value(json_object_get(g.root, "reply")), &e), 0);
    assert_int_equal(chat_user(s, user, 2, CHAT_PLACE_TEMPLATE, &e), 0);
    assert_int_equal(chat_open_reply(s, false, &e), 0);
    double later = agrees(s, "later");
    says(s, "later");
    check_note("logits off by %.1e and %.1e of the largest", off, later);
    assert_true(off < 1e-4 && later < 1e-4);
    checkpoint_free(before);
    session_free(s);
}

/* A conversation appended at once has the same token ids as turn by turn; its tools are listed as whole
 * objects. */
static void t_at_once(void **state)
{
    struct err e = ERR_INIT;
    static const char *const tools[] = {"{\"type\": \"function\", \"function\": {\"name\": \"click\"}}"};
    const struct chat_part system = {.text = "Be brief."}, user = {.text = "Hello."};
    const struct chat_message messages[] = {{CHAT_SYSTEM, &system, 1}, {CHAT_USER, &user, 1}};
    struct chat_conversation c = {.messages = messages, .n = 2, .open_reply = true};
    for (int with = 0; with < 2; with++) {
        struct session *a = session_new(engine, 1), *b = session_new(engine, 1);
        c.tools = tools;
        c.n_tools = with;
        assert_int_equal(chat_append(a, &c, &e), 0);
        if (with)
            assert_int_equal(
                chat_system_tools(b, "Be brief.",
                                  "{\"type\": \"function\", \"function\": {\"name\": \"click\"}}", false, &e),
                0);
        else
            assert_int_equal(chat_system(b, "Be brief.", false, &e), 0);
        assert_int_equal(chat_user(b, &user, 1, CHAT_PLACE_INLINE, &e), 0);
        assert_int_equal(chat_open_reply(b, false, &e), 0);
        assert_int_equal(session_length(a), session_length(b));
        assert_memory_equal(session_tokens(a), session_tokens(b),
                            (size_t)session_length(a) * sizeof(int32_t));
        session_free(a);
        session_free(b);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM_WITH("a prompt with two images has the ids, logits and greedy tokens of transformers", t_first,
               setup, teardown),
    CLAIM_WITH("a conversation at once, with tools or without, has the same token ids", t_at_once, setup,
               teardown),
    CLAIM_WITH("two turns of Qwen3-VL with three images have the ids, logits and tokens of transformers",
               t_kin, setup_vl3, teardown),
    CLAIM_WITH("two turns of Qwen2.5-VL have the ids, logits and tokens of transformers", t_kin, setup_vl25,
               teardown),
    CLAIM_WITH("the next turn, with the reply without its reasoning, agrees with transformers", t_later,
               setup, teardown),
};

CHECK_MAIN()
