/* chat.c - appends the turns of a conversation to a session (chat.h).
 *
 * Each turn becomes a list of texts and images (text/chat_layout.h), which is encoded and appended. */
#include "session/chat.h"

#include "session/engine_impl.h"
#include "text/chat_layout.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* ---- the template ---------------------------------------------------------------------------- */

/* Returns the chat layout of this model family, used when the model has no template. */
static enum chat_family family_of(const struct engine *g)
{
    switch (g->config.family) {
    case FAMILY_QWEN35:
        return CHAT_QWEN;
    case FAMILY_QWEN3VL:
        return CHAT_QWEN3_VL;
    case FAMILY_QWEN25VL:
        return CHAT_QWEN25_VL;
    default:
        return layout_is_chatml(g->tokenizer) ? CHAT_NEMOTRON : CHAT_NEMOTRON_VL;
    }
}

struct chat_template *chat_open_template(const struct engine *g)
{
    return chat_template_open(g->dir, g->tokenizer, family_of(g));
}

const struct chat_template *engine_chat(const struct engine *g)
{
    return g->chat;
}

/* ---- layouts --------------------------------------------------------------------------------- */

static int append_tokens(void *session, const int32_t *ids, int64_t n, struct err *e)
{
    return session_append(session, ids, n, e);
}

static int append_image(void *session, const struct image *im, struct err *e)
{
    return session_append_image(session, im, e);
}

int chat_append_layout(struct session *s, const struct layout *l, int from, int to, struct err *e)
{
    const struct layout_sink sink = {append_tokens, append_image, s};
    return layout_encode_part(l, from, to, engine_tokenizer(session_engine(s)), &sink, e);
}

/* Encodes and appends a layout, then frees it. */
static int append_layout(struct session *s, struct layout *l, struct err *e)
{
    int rc = chat_append_layout(s, l, 0, l->n, e);
    layout_free(l);
    return rc;
}

static const struct chat_turns *turns_of(const struct session *s, bool think, struct err *e)
{
    return chat_template_turns(engine_chat(session_engine(s)), think, e);
}

/* ---- system and user ------------------------------------------------------------------------- */

int chat_system(struct session *s, const char *text, bool think, struct err *e)
{
    const struct chat_turns *t = turns_of(s, think, e);
    if (session_length(s))
        bug("the system block must come first");
    if (!t)
        return -1;
    struct layout l = layout_new();
    if (*text) {
        layout_template(&l, t->system[0]);
        int from = l.n;
        layout_text(&l, text, strlen(text));
        layout_trim(&l, from, t->trim_system);
        layout_template(&l, t->system[1]);
    } else {
        layout_template(&l, t->preamble);
    }
    return append_layout(s, &l, e);
}

int chat_system_tools(struct session *s, const char *text, const char *tools, bool think, struct err *e)
{
    enum { MAX_TOOLS = 256 };
    const char *lines[MAX_TOOLS];
    int n = 0;
    char *copy = xstrdup(tools), *rest = copy;
    for (char *line; n < MAX_TOOLS && (line = strsep(&rest, "\n"));)
        if (*line)
            lines[n++] = line;
    struct layout l = layout_new();
    int rc = chat_template_system(engine_chat(session_engine(s)), text, lines, n, think, &l, e);
    free(copy);
    if (rc == 0)
        return append_layout(s, &l, e);
    layout_free(&l);
    return -1;
}

int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e)
{
    const struct chat_turns *t = turns_of(s, false, e);
    if (!t)
        return -1;
    struct layout l = layout_new();
    place = t->in_order ? CHAT_PLACE_INLINE : place;
    /* templates that put images first drop newlines before the first text */
    bool first = t->trim_user && place == CHAT_PLACE_TEMPLATE;
    if (!session_length(s))
        layout_template(&l, t->preamble);
    layout_template(&l, t->user[0]);
    int from = l.n;
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
    layout_trim(&l, from, t->trim_user);
    layout_template(&l, t->user[1]);
    return append_layout(s, &l, e);
}

/* ---- the assistant --------------------------------------------------------------------------- */

int chat_open_reply(struct session *s, bool think, struct err *e)
{
    const struct chat_turns *t = turns_of(s, think, e);
    if (!t)
        return -1;
    struct layout l = layout_new();
    layout_template(&l, t->open);
    if (!think && layout_opens_thought(&l)) /* the template has no switch that disables thinking */
        layout_template(&l, "\n</think>\n\n");
    return append_layout(s, &l, e);
}

/* Lays out the end of a reply whose last byte is `last`. A newline before the end tag is not doubled. */
static void layout_end(struct layout *l, const struct chat_turns *t, char last)
{
    layout_template(l, t->reply[1] + (last == '\n' && t->reply[1][0] == '\n'));
}

int chat_close_reply(struct session *s, struct err *e)
{
    const struct tokenizer *tk = engine_tokenizer(session_engine(s));
    const struct chat_turns *t = turns_of(s, false, e);
    if (!t)
        return -1;
    int32_t last = session_length(s) ? session_tokens(s)[session_length(s) - 1] : -1;
    size_t len;
    const char *bytes = tokenizer_bytes(tk, last, &len);
    const char *mark = last >= 0 && tokenizer_is_special(tk, last) && len
                           ? memmem(t->reply[1], strlen(t->reply[1]), bytes, len)
                           : NULL;
    struct layout l = layout_new();
    if (mark)
        layout_template(&l, mark + len);
    else
        layout_end(&l, t, len ? bytes[len - 1] : 0);
    return append_layout(s, &l, e);
}

/* Encodes the opening and the reply separately if the template keeps replies verbatim, as they were
 * generated. */
int chat_reply(struct session *s, const char *reply, struct err *e)
{
    const struct chat_turns *t = turns_of(s, false, e);
    size_t n = strlen(reply);
    if (!t)
        return -1;
    struct layout l = layout_new();
    layout_template(&l, t->reply[0]);
    int opening = l.n;
    layout_reply(&l, reply, n);
    layout_trim(&l, opening, t->trim_reply);
    layout_end(&l, t, n && !t->trim_reply ? reply[n - 1] : 0);
    int rc = t->keeps_reply ? chat_append_layout(s, &l, 0, opening, e) : 0;
    rc = rc ? rc : chat_append_layout(s, &l, t->keeps_reply ? opening : 0, l.n, e);
    layout_free(&l);
    return rc;
}

bool chat_keeps_reply(const struct session *s, const char *reply)
{
    struct err e = ERR_INIT;
    const struct chat_turns *t = turns_of(s, false, &e);
    struct layout l = layout_new();
    size_t n = strlen(reply);
    layout_text(&l, reply, n);
    bool whole = !t || !n || (layout_trim(&l, 0, t->trim_reply) && l.segments[0].len == n);
    layout_free(&l);
    return t && t->keeps_reply && whole;
}

/* ---- a whole conversation -------------------------------------------------------------------- */

int chat_append(struct session *s, const struct chat_conversation *c, struct err *e)
{
    if (session_length(s))
        bug("a whole conversation needs an empty session");
    struct layout l = layout_new();
    if (chat_template_render(engine_chat(session_engine(s)), c, &l, e)) {
        layout_free(&l);
        return -1;
    }
    return append_layout(s, &l, e);
}
