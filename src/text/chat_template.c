/* chat_template.c - renders a list of messages as the published template does (chat_template.h).
 *
 *   <s><SPECIAL_10>System\n{system}{tools}\n
 *   <SPECIAL_11>User\n{images}{text}\n
 *   <SPECIAL_11>Assistant\n{text}\n\n<TOOLCALL>[{calls}]</TOOLCALL>\n<SPECIAL_12>\n
 *   <SPECIAL_11>User\n<TOOL_RESPONSE>[{results}]</TOOL_RESPONSE>\n          consecutive results share a turn
 *
 * {system}, {images}{text} and an assistant's {text} are trim_since; results, and texts after images, lose
 * their leading line breaks.  The sentences around the tools are those of the model's own template where
 * template_traits.c understands it, else ours.
 */
#include "text/chat_layout.h"

#include <stdlib.h>
#include <string.h>

static const char think_end[] = "</think>";

/* ---- switches -------------------------------------------------------------------------------- */

static const char *find(const char *s, size_t n, const char *word)
{
    return n ? memmem(s, n, word, strlen(word)) : NULL;
}

/* Copies s without the word. */
static void put_without(struct buf *out, const char *s, size_t n, const char *word)
{
    for (const char *at; (at = find(s, n, word));) {
        buf_put(out, s, (size_t)(at - s));
        at += strlen(word);
        n -= (size_t)(at - s);
        s = at;
    }
    buf_put(out, s, n);
}

/* The switch in a text: 1 think, -1 do not, 0 none.  The text without switches goes to out, which may be
 * NULL. "/think" inside "</think>" is none. */
static int read_switches(const char *s, struct buf *out)
{
    bool on = false, off = false;
    struct buf half;
    buf_init(&half, (size_t)64 << 20);
    for (size_t n = strlen(s);;) {
        const char *end = find(s, n, think_end);
        size_t len = end ? (size_t)(end - s) : n;
        on = on || find(s, len, "/think");
        off = off || find(s, len, "/no_think");
        if (out) {
            buf_clear(&half);
            put_without(&half, s, len, "/think");
            put_without(out, half.data, half.len, "/no_think");
        }
        if (!end)
            break;
        if (out)
            buf_puts(out, think_end);
        s = end + strlen(think_end);
        n -= len + strlen(think_end);
    }
    buf_free(&half);
    return on ? 1 : -off;
}

static bool thinks(const struct chat_conversation *c)
{
    bool think = c->think;
    for (int i = 0; i < c->n; i++) {
        if (c->messages[i].role != CHAT_SYSTEM && c->messages[i].role != CHAT_USER)
            continue;
        char *text = chat_message_text(&c->messages[i]);
        int found = read_switches(text, NULL);
        think = found ? found > 0 : think;
        free(text);
    }
    return think;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* A text without its switches. */
static void put_text(struct layout *l, const char *text)
{
    struct buf left;
    buf_init(&left, (size_t)64 << 20);
    read_switches(text, &left);
    layout_text(l, left.data, left.len);
    buf_free(&left);
}

/* Trims what was laid out since `from` where the template does; whether anything is left. */
static bool trim_since(struct layout *l, const struct layout_marks *m, int from)
{
    bool any = false;
    if (m->trim)
        return layout_trim(l, from);
    for (int i = from; i < l->n; i++)
        any = any || l->segments[i].len || l->segments[i].image;
    return any;
}

/* The template cuts leading line breaks separately. */
static const char *skip_breaks(const char *text, const struct layout_marks *m)
{
    return m->trim ? text + strspn(text, "\n") : text;
}

static void put_list(struct layout *l, const char *open, const char *const *items, int n, const char *close)
{
    layout_template(l, open);
    for (int i = 0; i < n; i++) {
        if (i)
            layout_template(l, ", ");
        layout_text(l, items[i], strlen(items[i]));
    }
    layout_template(l, close);
}

static void put_system(struct layout *l, const struct chat_conversation *c, const struct layout_marks *m)
{
    bool any = false;
    layout_template(l, m->system);
    if (c->n && c->messages[0].role == CHAT_SYSTEM) {
        char *text = chat_message_text(&c->messages[0]);
        put_text(l, text);
        any = trim_since(l, m, 1);
        free(text);
    }
    if (c->n_tools) {
        if (any)
            layout_template(l, "\n\n");
        put_list(l, m->tools[0], c->tools, c->n_tools, m->tools[1]);
    }
    layout_template(l, "\n");
}

static void put_user(struct layout *l, const struct chat_message *m, enum chat_place place,
                     const struct layout_marks *marks)
{
    layout_template(l, marks->user);
    int from = l->n;
    if (place == CHAT_PLACE_TEMPLATE) {
        char *text = chat_message_text(m);
        layout_images_first(l, m->parts, m->n);
        put_text(l, skip_breaks(text, marks));
        free(text);
    }
    for (int i = 0; i < m->n && place == CHAT_PLACE_INLINE; i++) {
        if (m->parts[i].image)
            layout_image(l, m->parts[i].image);
        else if (m->parts[i].text)
            put_text(l, m->parts[i].text);
    }
    trim_since(l, marks, from);
    layout_template(l, marks->close);
}

static void put_assistant(struct layout *l, const struct chat_message *m, const struct layout_marks *marks)
{
    char *text = chat_message_text(m);
    layout_template(l, marks->reply);
    int from = l->n;
    layout_reply(l, text);
    bool any = trim_since(l, marks, from);
    if (m->n_calls)
        put_list(l, any ? "\n\n<TOOLCALL>[" : "<TOOLCALL>[", m->calls, m->n_calls, "]</TOOLCALL>");
    layout_template(l, "\n<SPECIAL_12>\n");
    free(text);
}

/* n consecutive results. */
static void put_results(struct layout *l, const struct chat_message *m, int n,
                        const struct layout_marks *marks)
{
    char **results = xcalloc((unsigned long)n, sizeof *results);
    const char **texts = xcalloc((unsigned long)n, sizeof *texts);
    for (int i = 0; i < n; i++)
        texts[i] = skip_breaks(results[i] = chat_message_text(&m[i]), marks);
    put_list(l, "<SPECIAL_11>User\n<TOOL_RESPONSE>[", texts, n, "]</TOOL_RESPONSE>\n");
    for (int i = 0; i < n; i++)
        free(results[i]);
    free(results);
    free(texts);
}

static int results_from(const struct chat_conversation *c, int i)
{
    int n = 0;
    while (i + n < c->n && c->messages[i + n].role == CHAT_TOOL)
        n++;
    return n;
}

/* ---- the conversation ------------------------------------------------------------------------ */

static int check(const struct chat_conversation *c, struct err *e)
{
    for (int i = 0; i < c->n; i++) {
        const struct chat_message *m = &c->messages[i];
        if (i && m->role == CHAT_SYSTEM)
            return err_set(e, ERR_USAGE, "message %d: a system message can only be the first", i + 1);
        for (int k = 0; k < m->n; k++)
            if (m->parts[k].image && m->role != CHAT_USER)
                return err_set(e, ERR_USAGE, "message %d: only a user's message can hold an image", i + 1);
    }
    return 0;
}

int layout_conversation(struct layout *l, const struct chat_conversation *c, struct layout_marks marks,
                        struct err *e)
{
    if (check(c, e))
        return -1;
    put_system(l, c, &marks);
    for (int i = 0; i < c->n; i++) {
        const struct chat_message *m = &c->messages[i];
        int results = results_from(c, i);
        if (m->role == CHAT_USER)
            put_user(l, m, c->place, &marks);
        else if (m->role == CHAT_ASSISTANT)
            put_assistant(l, m, &marks);
        else if (results)
            put_results(l, m, results, &marks);
        i += results ? results - 1 : 0;
    }
    if (c->open_reply)
        layout_template(l, thinks(c) ? "<SPECIAL_11>Assistant\n<think>\n"
                                     : "<SPECIAL_11>Assistant\n<think></think>");
    return 0;
}
