/* chat.c - see chat.h.
 *
 * A turn is a list of text parts and images.  Texts between two images are encoded together, as they
 * would be in the rendered template, but only our own pieces may hold added tokens.
 *
 * The switch words that the published template looks for in messages ("/think") are not interpreted:
 * who opens the reply says whether it thinks.
 */
#include "model/chat.h"

#include "base/file.h"
#include "base/sha256.h"
#include "model/tokenizer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* ---- a turn being put together --------------------------------------------------------------------------- */

struct turn {
    struct session *s;
    struct text_part *parts;
    int n, cap;
};

static void add_text(struct turn *t, const char *text, size_t len, bool special)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 8;
        t->parts = xrealloc(t->parts, (unsigned long)t->cap, sizeof *t->parts);
    }
    t->parts[t->n++] = (struct text_part){text, len, special};
}

static void add_template(struct turn *t, const char *text)
{
    add_text(t, text, strlen(text), true);
}

/* What was collected goes to the session. */
static int flush(struct turn *t, struct err *e)
{
    struct tokens ids = {0};
    tokenizer_encode_parts(engine_tokenizer(session_engine(t->s)), t->parts, t->n, &ids);
    t->n = 0;
    int rc = session_append(t->s, ids.ids, ids.n, e);
    tokens_free(&ids);
    return rc;
}

static int finish(struct turn *t, int rc, struct err *e)
{
    rc = rc ? rc : flush(t, e);
    free(t->parts);
    return rc;
}

/* ---- system and user ------------------------------------------------------------------------------------- */

int chat_system(struct session *s, const char *text, struct err *e)
{
    if (session_length(s))
        bug("the system block comes first");
    struct turn t = {.s = s};
    add_template(&t, "<s><SPECIAL_10>System\n");
    add_text(&t, text, strlen(text), false);
    add_template(&t, "\n");
    return finish(&t, 0, e);
}

static int add_image(struct turn *t, const struct image *im, struct err *e)
{
    return flush(t, e) || session_append_image(t->s, im, e) ? -1 : 0;
}

/* The published order: all images, numbered when there are several, then a newline, then the text. */
static int add_images_first(struct turn *t, const struct chat_part *parts, int n, struct err *e)
{
    int images = 0, k = 0;
    char label[48];
    for (int i = 0; i < n; i++)
        images += parts[i].image != NULL;
    for (int i = 0; i < n; i++) {
        if (!parts[i].image)
            continue;
        k++;
        snprintf(label, sizeof label, "%s<image %d>", k > 1 ? " " : "", k);
        if (images > 1)
            add_text(t, label, strlen(label), false);
        if (add_image(t, parts[i].image, e))
            return -1;
    }
    if (images)
        add_template(t, "\n");
    return 0;
}

int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e)
{
    struct turn t = {.s = s};
    add_template(&t, "<SPECIAL_11>User\n");
    int rc = place == CHAT_PLACE_TEMPLATE ? add_images_first(&t, parts, n, e) : 0;
    for (int i = 0; i < n && rc == 0; i++) {
        if (parts[i].text)
            add_text(&t, parts[i].text, strlen(parts[i].text), false);
        else if (parts[i].image && place == CHAT_PLACE_INLINE)
            rc = add_image(&t, parts[i].image, e);
    }
    add_template(&t, "\n");
    return finish(&t, rc, e);
}

/* ---- the assistant --------------------------------------------------------------------------------------- */

int chat_open_reply(struct session *s, bool think, struct err *e)
{
    struct turn t = {.s = s};
    add_template(&t, think ? "<SPECIAL_11>Assistant\n<think>\n" : "<SPECIAL_11>Assistant\n<think></think>");
    return finish(&t, 0, e);
}

int chat_close_reply(struct session *s, struct err *e)
{
    const struct tokenizer *tk = engine_tokenizer(session_engine(s));
    int32_t last = session_length(s) ? session_tokens(s)[session_length(s) - 1] : -1;
    size_t len;
    const char *bytes = tokenizer_bytes(tk, last, &len);
    struct turn t = {.s = s};
    if (last >= 0 && last == tokenizer_find(tk, "<SPECIAL_12>"))
        add_template(&t, "\n");
    else if (len && bytes[len - 1] == '\n')
        add_template(&t, "<SPECIAL_12>\n");
    else
        add_template(&t, "\n<SPECIAL_12>\n");
    return finish(&t, 0, e);
}

/* Marks that mean something to the template: in a reply they can only be text. */
static size_t mark_at(const char *s)
{
    static const char *const marks[] = {"<s>",          "</s>",    "<SPECIAL_10>", "<SPECIAL_11>",
                                        "<SPECIAL_12>", "<image>", "<img>",        "</img>"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!strncmp(s, marks[i], strlen(marks[i])))
            return strlen(marks[i]);
    return 0;
}

static void add_reply(struct turn *t, const char *reply)
{
    const char *from = reply, *p = reply;
    while (*p) {
        size_t mark = mark_at(p);
        if (mark) {
            add_text(t, from, (size_t)(p - from), true);
            add_text(t, p, mark, false);
            from = p + mark;
        }
        p += mark ? mark : 1;
    }
    add_text(t, from, (size_t)(p - from), true);
}

/* Encoded apart from the opening, as it was when the reply was generated. */
int chat_reply(struct session *s, const char *reply, struct err *e)
{
    if (chat_open_reply(s, false, e))
        return -1;
    size_t n = strlen(reply);
    struct turn t = {.s = s};
    add_reply(&t, reply);
    add_template(&t, n && reply[n - 1] == '\n' ? "<SPECIAL_12>\n" : "\n<SPECIAL_12>\n");
    return finish(&t, 0, e);
}

/* ---- is this the model's own template? --------------------------------------------------------------------- */

/* The template of a model directory: a file of its own, or inside the tokenizer's config. NULL: none. */
static char *read_template(const char *dir)
{
    char *path = xasprintf("%s/chat_template.jinja", dir), *text = NULL;
    size_t len;
    if (file_read(path, 1 << 20, &text, &len, NULL)) {
        free(path);
        path = xasprintf("%s/tokenizer_config.json", dir);
        json_t *root = file_read(path, 16 << 20, &text, &len, NULL) ? NULL : json_loadb(text, len, 0, NULL);
        free(text);
        const char *inside = json_string_value(json_object_get(root, "chat_template"));
        text = inside ? xstrdup(inside) : NULL;
        json_decref(root);
    }
    free(path);
    return text;
}

const char *chat_check(const struct engine *g)
{
    static const char *const known[] = {
        "7c20622a3c7cca9ddafa3b7934bda1afdc3a82b4f278d5b9c73178bfca7d357c", /* the pocket model */
    };
    static const char *const marks[] = {"<SPECIAL_10>System", "<SPECIAL_11>User", "<SPECIAL_11>Assistant",
                                        "<SPECIAL_12>"};
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
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        alike = alike && strstr(text, marks[i]);
    free(text);
    if (same)
        return NULL;
    return alike ? "the model's chat template is not one known here, but it has the marks of Nemotron VL, "
                   "whose layout is used"
                 : "the model's chat template has other marks than Nemotron VL, whose layout is used: "
                   "replies may be poor";
}
