/* chat.c - see chat.h.
 *
 * Each turn becomes a list of texts and images (text/chat_layout.h), which is encoded and appended.
 */
#include "session/chat.h"

#include "session/engine_impl.h"
#include "text/chat_qwen.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

static int append_tokens(void *session, const int32_t *ids, int64_t n, struct err *e)
{
    return session_append(session, ids, n, e);
}

static int append_image(void *session, const struct image *im, struct err *e)
{
    return session_append_image(session, im, e);
}

/* Encodes and appends a layout, and frees it. */
static int append_layout(struct session *s, struct layout *l, struct err *e)
{
    const struct layout_sink sink = {append_tokens, append_image, s};
    int rc = layout_encode(l, engine_tokenizer(session_engine(s)), &sink, e);
    layout_free(l);
    return rc;
}

static struct layout_marks marks_of(const struct session *s)
{
    const struct engine *g = session_engine(s);
    return layout_marks_of(engine_tokenizer(g), &g->traits);
}

/* ---- system and user ------------------------------------------------------------------------- */

int chat_system(struct session *s, const char *text, struct err *e)
{
    if (session_length(s))
        bug("the system block must come first");
    struct layout l = layout_new();
    struct layout_marks m = marks_of(s);
    layout_template(&l, m.system);
    layout_text(&l, text, strlen(text));
    if (m.trim)
        layout_trim(&l, 1);
    layout_template(&l, m.close);
    return append_layout(s, &l, e);
}

int chat_system_tools(struct session *s, const char *text, const char *tools, struct err *e)
{
    enum { MOST = 256 };
    const struct engine *g = session_engine(s);
    const char *lines[MOST];
    int n = 0;
    if (!qwen_is_family(engine_tokenizer(g)))
        return err_set(e, ERR_USAGE,
                       "the dialect's tools are listed by a chat template like Qwen3.5's, which this "
                       "model does not have; name another --dialect");
    char *copy = xstrdup(tools), *rest = copy;
    for (char *line; n < MOST && (line = strsep(&rest, "\n"));)
        if (*line)
            lines[n++] = line;
    struct layout l = layout_new();
    qwen_system(&l, text, lines, n, &g->traits);
    free(copy);
    return append_layout(s, &l, e);
}

int chat_user(struct session *s, const struct chat_part *parts, int n, enum chat_place place, struct err *e)
{
    struct layout l = layout_new();
    struct layout_marks m = marks_of(s);
    place = m.in_order ? CHAT_PLACE_INLINE : place;
    bool first =
        m.trim && place == CHAT_PLACE_TEMPLATE; /* the template cuts line breaks before the first text */
    if (m.greeting && !session_length(s)) {
        layout_template(&l, m.system);
        layout_template(&l, m.greeting);
        layout_template(&l, m.close);
    }
    int from = l.n + 1;
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
        layout_trim(&l, from);
    layout_template(&l, m.close);
    return append_layout(s, &l, e);
}

/* ---- the assistant --------------------------------------------------------------------------- */

int chat_open_reply(struct session *s, bool think, struct err *e)
{
    struct layout l = layout_new();
    layout_template(&l, marks_of(s).reply);
    layout_template(&l, marks_of(s).think[think]);
    return append_layout(s, &l, e);
}

/* The text that is missing after a reply whose last byte is `last`. */
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
    return append_layout(s, &l, e);
}

/* The reply is encoded apart from its opening, as it was generated, where the opening stays in the prompt. */
int chat_reply(struct session *s, const char *reply, struct err *e)
{
    struct layout_marks m = marks_of(s);
    if (!m.drops_reasoning && chat_open_reply(s, false, e))
        return -1;
    size_t n = strlen(reply);
    struct layout l = layout_new();
    if (m.drops_reasoning)
        layout_template(&l, m.reply);
    int from = l.n;
    layout_reply(&l, reply + (m.drops_reasoning ? strspn(reply, "\n") : 0));
    if (m.trim)
        layout_trim(&l, from);
    layout_end(&l, &m, n && !m.trim ? reply[n - 1] : 0);
    return append_layout(s, &l, e);
}

bool chat_keeps_reply(const struct session *s)
{
    return !marks_of(s).drops_reasoning;
}

int chat_results(struct session *s, const char *const *results, int n, struct err *e)
{
    struct layout_marks m = marks_of(s);
    if (layout_is_chatml(engine_tokenizer(session_engine(s))))
        return err_set(e, ERR_USAGE, "results of tools are not implemented for models with ChatML");
    struct layout l = layout_new();
    layout_template(&l, m.user);
    layout_template(&l, "<TOOL_RESPONSE>[");
    for (int i = 0; i < n; i++) {
        const char *text = results[i] + (m.trim ? strspn(results[i], "\n") : 0);
        layout_template(&l, i ? ", " : "");
        layout_text(&l, text, strlen(text));
    }
    layout_template(&l, "]</TOOL_RESPONSE>");
    layout_template(&l, m.close);
    return append_layout(s, &l, e);
}

/* ---- a whole conversation -------------------------------------------------------------------- */

/* Qwen's template lists each tool as the whole object that a conversation file has around it. */
static int layout_qwen(struct layout *l, const struct chat_conversation *c, const struct template_traits *h,
                       struct err *e)
{
    struct chat_conversation whole = *c;
    char **tools = xcalloc((unsigned long)c->n_tools + 1, sizeof *tools);
    for (int i = 0; i < c->n_tools; i++)
        tools[i] = xasprintf("{\"type\": \"function\", \"function\": %s}", c->tools[i]);
    whole.tools = (const char *const *)tools;
    int rc = qwen_layout(l, &whole, h, e);
    for (int i = 0; i < c->n_tools; i++)
        free(tools[i]);
    free(tools);
    return rc;
}

int chat_append(struct session *s, const struct chat_conversation *c, struct err *e)
{
    if (session_length(s))
        bug("a whole conversation needs an empty session");
    const struct engine *g = session_engine(s);
    bool qwen = qwen_is_family(engine_tokenizer(g));
    if (!qwen && layout_is_chatml(engine_tokenizer(g)))
        return err_set(e, ERR_USAGE, "whole conversations are not implemented for models with ChatML");
    struct layout l = layout_new();
    if (qwen ? layout_qwen(&l, c, &g->traits, e)
             : layout_conversation(&l, c, layout_marks_vl(&g->traits), e)) {
        layout_free(&l);
        return -1;
    }
    return append_layout(s, &l, e);
}
