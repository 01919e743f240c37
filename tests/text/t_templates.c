/* t_templates.c - tests conversations rendered by chat templates against transformers' apply_chat_template.
 *
 * tests/golden/templates/FAMILY.jsonl has conversations for the published template of each family, with the
 * ids of the rendered text (tests/reference/make_templates.py); the templates are in build/templates
 * (tests/scripts/templates.sh) or $HOLORUN_TEMPLATES. $HOLORUN_TEMPLATE_CASES names a folder with larger
 * sets. qwen.json and qwen_json.json in tests/golden/chat test our own layouts, rendered by Jinja2.
 */
#include "chat_render.h"
#include "check.h"
#include "talk.h"
#include "tiny_dirs.h"

#include "base/file.h"
#include "base/sha256.h"
#include "text/conversation.h"
#include "text/tokenizer.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static json_t *golden;
static struct tokenizer *tk;

/* ---- published templates ---------------------------------------------------------------------------- */

struct ids { /* ids of a prompt, with an image as its three tokens */
    struct tokens all;
};

static int take_tokens(void *arg, const int32_t *ids, int64_t n, struct err *e)
{
    struct ids *to = arg;
    for (int64_t i = 0; i < n; i++)
        tokens_push(&to->all, ids[i]);
    return 0;
}

static int take_image(void *arg, const struct image *im, struct err *e)
{
    static const char *const marks[] = {"<|vision_start|>", "<|image_pad|>", "<|vision_end|>"};
    for (int i = 0; i < 3; i++) {
        int32_t id = tokenizer_find(tk, marks[i]);
        take_tokens(arg, &id, 1, e);
    }
    return 0;
}

struct counts {
    int n, equal, refused, apart;
};

/* Returns whether holorun differs on purpose: the role developer counts as system, and a list of texts is
 * joined if the template cannot use it. */
static bool is_apart(const json_t *c)
{
    size_t i;
    json_t *m;
    bool developer = false, lists = false;
    json_array_foreach(json_object_get(c, "messages"), i, m)
    {
        developer = developer || !strcmp(json_string_value(json_object_get(m, "role")), "developer");
        lists = lists || json_is_array(json_object_get(m, "content"));
    }
    return developer || (lists && json_is_true(json_object_get(c, "error")));
}

static bool same_ids(const struct ids *got, const json_t *c)
{
    const json_t *want = json_object_get(c, "ids");
    struct sha256 sum;
    char hex[65];
    for (int64_t i = 0; want && i < got->all.n; i++)
        if (json_integer_value(json_array_get(want, (size_t)i)) != got->all.ids[i])
            return false;
    if (want)
        return (int64_t)json_array_size(want) == got->all.n;
    sha256_begin(&sum);
    sha256_add(&sum, got->all.ids, (size_t)got->all.n * sizeof(int32_t));
    sha256_end(&sum, hex);
    return json_integer_value(json_object_get(c, "ids_count")) == got->all.n &&
           !strcmp(hex, json_string_value(json_object_get(c, "ids_sha256")));
}

static void check_published(const struct chat_template *t, const char *family, json_t *c, struct counts *k)
{
    struct err e = ERR_INIT;
    struct conversation v;
    struct ids ids = {0};
    struct layout l = layout_new();
    const struct layout_sink sink = {take_tokens, take_image, &ids};
    json_t *root = json_pack("{s:O}", "messages", json_object_get(c, "messages"));
    bool refuses = json_is_true(json_object_get(c, "error"));
    k->n++;
    if (is_apart(c)) {
        k->apart++;
        json_decref(root);
        layout_free(&l);
        return;
    }
    if (json_array_size(json_object_get(c, "tools")))
        json_object_set(root, "tools", json_object_get(c, "tools"));
    if (json_object_get(c, "options"))
        json_object_set(root, "chat_template_kwargs", json_object_get(c, "options"));
    int rc = conversation_take(&v, root, &e);
    v.chat.open_reply = json_is_true(json_object_get(c, "add_generation_prompt"));
    rc = rc || chat_template_render(t, &v.chat, &l, &e) || layout_encode(&l, tk, &sink, &e);
    if (refuses != (rc != 0) || (!rc && !same_ids(&ids, c))) {
        char *messages = json_dumps(c, 0);
        fail_msg("%s: %s\n%.2000s", family,
                 rc        ? e.text
                 : refuses ? "should be refused"
                           : "other ids",
                 messages);
    }
    k->refused += rc != 0;
    k->equal += rc == 0;
    tokens_free(&ids.all);
    layout_free(&l);
    conversation_free(&v);
}

static enum chat_family family_of(const char *name)
{
    return !strncmp(name, "nemotron", 8) ? CHAT_NEMOTRON : CHAT_QWEN;
}

static bool check_family(const char *dir, const char *family, struct counts *all)
{
    char *source = published_template(family), *path = xasprintf("%s/%s.jsonl", dir, family), *line = NULL;
    struct counts k = {0};
    size_t cap = 0;
    if (!source) {
        free(path);
        return false;
    }
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    struct chat_template *t = chat_template_of(source, tk, family_of(family));
    if (chat_template_warning(t))
        fail_msg("%s: %s", family, chat_template_warning(t));
    while (getline(&line, &cap, f) > 0) {
        json_t *c = json_loads(line, JSON_ALLOW_NUL, NULL);
        assert_non_null(c);
        check_published(t, family, c, &k);
        json_decref(c);
    }
    check_note("%-24s %4d conversations, %4d with equal ids, %2d refused by both, %2d apart", family, k.n,
               k.equal, k.refused, k.apart);
    all->n += k.n;
    all->equal += k.equal;
    chat_template_free(t);
    fclose(f);
    free(line);
    free(path);
    free(source);
    return true;
}

static void t_published(void **state)
{
    static const char *const families[] = {
        "qwen2_5_vl", "qwen3_vl",        "qwen3_5_nothink",    "qwen3_5_think",    "qwen3_6",
        "qwen3_8",    "nemotron_3_nano", "nemotron_3_super",   "nemotron_3_ultra", "nemotron_3_5_lightning",
        "qwen2_5",    "qwen3",           "qwen3_instruct_2507"};
    const char *dir = getenv("HOLORUN_TEMPLATE_CASES");
    struct counts all = {0};
    char *json;
    size_t len;
    struct err e = ERR_INIT;
    assert_int_equal(file_read("tests/golden/templates/tokenizer.json", 1 << 20, &json, &len, NULL), 0);
    tk = tokenizer_parse(json, len, &e);
    free(json);
    if (!tk)
        fail_msg("%s", e.text);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (!check_family(dir ? dir : "tests/golden/templates", families[i], &all)) {
            check_note("no published templates: run tests/scripts/templates.sh");
            tokenizer_free(tk);
            skip();
        }
    check_note("%d conversations, %d equal", all.n, all.equal);
    tokenizer_free(tk);
}

/* ---- our own layouts -------------------------------------------------------------------------------- */

static const json_t *cases(const char *file)
{
    char *path = xasprintf("tests/golden/chat/%s", file);
    json_decref(golden);
    golden = json_load_file(path, 0, NULL);
    assert_non_null(golden);
    free(path);
    return json_object_get(golden, "cases");
}

/* Counts special tokens in segments where the tokenizer recognizes them. */
static int count_marks(const struct layout *l)
{
    static const char *const names[] = {"<|endoftext|>",    "<|im_start|>",   "<|im_end|>",
                                        "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
                                        "<tool_call>",      "</tool_call>",   "<tool_response>",
                                        "</tool_response>", "<think>",        "</think>"};
    int marks = 0;
    for (int i = 0; i < l->n; i++) {
        const struct layout_segment *s = &l->segments[i];
        marks += s->image ? 3 : 0;
        for (size_t at = 0; s->special && at < s->len; at++)
            for (size_t k = 0; k < sizeof names / sizeof *names; k++)
                marks += s->len - at >= strlen(names[k]) &&
                         !memcmp(l->texts.data + s->at + at, names[k], strlen(names[k]));
    }
    return marks;
}

static void check_own(const json_t *v, const char *key, enum chat_family family, json_t *variables,
                      bool marks)
{
    struct err e = ERR_INIT;
    struct talk *t = talk_read(v);
    struct layout l = layout_new();
    struct chat_template *own = chat_template_of(NULL, NULL, family);
    t->c.variables = variables;
    char *got = chat_render(&t->c, family, &e);
    const char *want = json_string_value(json_object_get(v, key));
    if (!got || strcmp(got, want) != 0)
        fail_msg("%s:\n%s\ninstead of\n%s\n", json_string_value(json_object_get(v, "name")),
                 got ? got : e.text, want);
    assert_int_equal(chat_template_render(own, &t->c, &l, &e), 0);
    if (marks && count_marks(&l) != json_integer_value(json_object_get(v, "marks")))
        fail_msg("%s: %d marks instead of %lld in\n%s", json_string_value(json_object_get(v, "name")),
                 count_marks(&l), (long long)json_integer_value(json_object_get(v, "marks")), got);
    chat_template_free(own);
    layout_free(&l);
    free(got);
    talk_free(t);
    json_decref(variables);
}

static void t_own(void **state)
{
    size_t i;
    json_t *v;
    const json_t *list = cases("qwen.json");
    json_array_foreach(list, i, v)
    {
        check_own(v, "rendered", CHAT_QWEN, NULL, true);
        if (json_object_get(v, "json"))
            check_own(v, "json", CHAT_QWEN, json_pack("{s:b}", "json_values", 1), false);
    }
    assert_true(i > 300);
    list = cases("qwen_json.json");
    json_array_foreach(list, i, v)
    {
        const char *form = json_string_value(json_object_get(v, "form"));
        bool greets = !strcmp(form, "greets");
        check_own(v, "rendered", greets ? CHAT_QWEN25_VL : CHAT_QWEN3_VL,
                  json_pack("{s:b}", "thinks", !strcmp(form, "thinks")), false);
    }
    assert_true(i > 300);
}

static const struct CMUnitTest tests[] = {
    CLAIM("conversations have apply_chat_template's ids for each family's published template", t_published),
    CLAIM("our own layouts are rendered exactly, and only special tokens of the template are special", t_own),
};

CHECK_MAIN_WITH(, json_decref(golden))
