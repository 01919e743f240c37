/* chat.c - see chat.h.
 *
 * Each turn is laid out as a list of texts and images and appended (chat_layout.h).
 */
#include "model/chat.h"

#include "base/file.h"
#include "base/sha256.h"
#include "model/chat_layout.h"
#include "model/engine.h"
#include "model/tokenizer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Appends what was laid out. */
static int finish(struct session *s, struct layout *l, struct err *e)
{
    int rc = layout_append(l, s, e);
    layout_free(l);
    return rc;
}

static struct layout_marks marks_of(const struct session *s)
{
    const struct engine *g = session_engine(s);
    return layout_marks_of(engine_tokenizer(g), &g->habits);
}

/* ---- system and user ------------------------------------------------------------------------------------- */

int chat_system(struct session *s, const char *text, struct err *e)
{
    if (session_length(s))
        bug("the system block comes first");
    struct layout l = layout_new();
    struct layout_marks m = marks_of(s);
    layout_template(&l, m.system);
    layout_text(&l, text, strlen(text));
    if (m.trim)
        layout_trim(&l, 1);
    layout_template(&l, m.close);
    return finish(s, &l, e);
}

int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e)
{
    struct layout l = layout_new();
    struct layout_marks m = marks_of(s);
    bool first =
        m.trim && place == CHAT_PLACE_TEMPLATE; /* the template cuts line breaks before a first text */
    layout_template(&l, m.user);
    if (place == CHAT_PLACE_TEMPLATE)
        layout_images_first(&l, parts, n);
    for (int i = 0; i < n; i++) {
        if (parts[i].text) {
            const char *text = parts[i].text + (first ? strspn(parts[i].text, "\n") : 0);
            layout_text(&l, text, strlen(text));
            first = first && !*text;
        } else if (parts[i].image && place == CHAT_PLACE_INLINE) {
            layout_image(&l, parts[i].image);
        }
    }
    if (m.trim)
        layout_trim(&l, 1);
    layout_template(&l, m.close);
    return finish(s, &l, e);
}

/* ---- the assistant --------------------------------------------------------------------------------------- */

int chat_open_reply(struct session *s, bool think, struct err *e)
{
    struct layout l = layout_new();
    layout_template(&l, marks_of(s).reply);
    layout_template(&l, think ? "<think>\n" : "<think></think>");
    return finish(s, &l, e);
}

/* What is missing of a reply's end, when its last byte is `last`. */
static void layout_end(struct layout *l, const struct layout_marks *m, char last)
{
    if (last != '\n')
        layout_template(l, m->newline);
    layout_template(l, m->end);
    layout_template(l, "\n");
}

int chat_close_reply(struct session *s, struct err *e)
{
    const struct tokenizer *tk = engine_tokenizer(session_engine(s));
    int32_t last = session_length(s) ? session_tokens(s)[session_length(s) - 1] : -1;
    size_t len;
    const char *bytes = tokenizer_bytes(tk, last, &len);
    struct layout l = layout_new();
    struct layout_marks m = marks_of(s);
    if (last >= 0 && last == tokenizer_find(tk, m.end))
        layout_template(&l, "\n");
    else
        layout_end(&l, &m, len ? bytes[len - 1] : 0);
    return finish(s, &l, e);
}

/* Encoded apart from the opening, as it was when the reply was generated. */
int chat_reply(struct session *s, const char *reply, struct err *e)
{
    if (chat_open_reply(s, false, e))
        return -1;
    size_t n = strlen(reply);
    struct layout l = layout_new();
    struct layout_marks m = marks_of(s);
    layout_reply(&l, reply);
    if (m.trim)
        layout_trim(&l, 0);
    layout_end(&l, &m, n && !m.trim ? reply[n - 1] : 0);
    return finish(s, &l, e);
}

const char *chat_end_mark(const struct tokenizer *t)
{
    return layout_is_chatml(t) ? "<|im_end|>" : "<SPECIAL_12>";
}

/* ---- is this the model's own template? --------------------------------------------------------------------- */

/* The value of "chat_template" in a file: a text, or a list of named ones. */
static char *template_inside(const char *dir, const char *file)
{
    char *path = xasprintf("%s/%s", dir, file), *text = NULL;
    size_t len, i;
    json_t *root = file_read(path, 16 << 20, &text, &len, NULL) ? NULL : json_loadb(text, len, 0, NULL), *v;
    const json_t *inside = json_object_get(root, "chat_template"), *list = inside;
    json_array_foreach(list, i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));
        if (name && !strcmp(name, "default"))
            inside = json_object_get(v, "template");
    }
    free(text);
    text = json_is_string(inside) ? xstrdup(json_string_value(inside)) : NULL;
    json_decref(root);
    free(path);
    return text;
}

/* The template of a model directory: a file of its own, or inside another. NULL: none. */
static char *read_template(const char *dir)
{
    char *path = xasprintf("%s/chat_template.jinja", dir), *text = NULL;
    size_t len;
    if (file_read(path, 1 << 20, &text, &len, NULL) && !(text = template_inside(dir, "chat_template.json")))
        text = template_inside(dir, "tokenizer_config.json");
    free(path);
    return text;
}

struct chat_habits chat_habits_of(const char *dir)
{
    enum { SENTENCES = 64 << 10 };
    char *text = read_template(dir);
    struct chat_habits h = {.start = !text || strstr(text, "bos_token") || strstr(text, "<s>"),
                            .trim = !text || strstr(text, "strip()") || strstr(text, "| trim")};
    struct buf front, behind;
    buf_init(&front, SENTENCES);
    buf_init(&behind, SENTENCES);
    if (text && chat_tools_read(text, &front, &behind)) {
        h.tools[0] = buf_take(&front);
        h.tools[1] = buf_take(&behind);
    }
    buf_free(&front);
    buf_free(&behind);
    free(text);
    return h;
}

void chat_habits_free(struct chat_habits *h)
{
    free(h->tools[0]);
    free(h->tools[1]);
    *h = (struct chat_habits){0};
}

const char *chat_check(const struct engine *g)
{
    static const char *const known[] = {
        "7c20622a3c7cca9ddafa3b7934bda1afdc3a82b4f278d5b9c73178bfca7d357c", /* the pocket model */
    };
    bool chatml = layout_is_chatml(engine_tokenizer(g));
    static const char *const known_marks[2][4] = {
        {"<SPECIAL_10>System", "<SPECIAL_11>User", "<SPECIAL_11>Assistant", "<SPECIAL_12>"},
        {"<|im_start|>system", "<|im_start|>", "<|im_start|>assistant", "<|im_end|>"}};
    const char *const *marks = known_marks[chatml];
    char *text = read_template(engine_dir(g));
    if (!text)
        return "the model has no chat template; the layout of Nemotron VL is used";
    struct sha256 sum;
    char hex[65];
    sha256_begin(&sum);
    sha256_add(&sum, text, strlen(text));
    sha256_end(&sum, hex);
    bool same = false, alike = true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        same = same || !strcmp(hex, known[i]);
    for (size_t i = 0; i < 4; i++)
        alike = alike && strstr(text, marks[i]);
    free(text);
    if (same)
        return NULL;
    if (chatml && alike)
        return "the model's chat template is not one known here, but it has the marks of ChatML, whose "
               "layout "
               "as Nemotron 3 has it is used";
    return alike ? "the model's chat template is not one known here, but it has the marks of Nemotron VL, "
                   "whose layout is used"
                 : "the model's chat template has other marks than Nemotron VL, whose layout is used: "
                   "replies may be poor";
}
