/* chat_calls.c - finds the format of tools and tool calls in a chat template by rendering probes
 * (chat_template.h).
 *
 * A reply with one call of N with the arguments P1 and P2 is rendered. The text between these contents
 * shows the format:
 *
 *     XML   <tool_call>\n<function= N >\n<parameter= P1 >\n V1 \n</parameter>\n<parameter= P2 >\n V2 ...
 *     JSON  <tool_call>\n{"name": " N ", "arguments": {" P1 ": " V1 ", " P2 ": " V2 "}}\n</tool_call> */
#include "text/chat_template_impl.h"

#include <stdlib.h>
#include <string.h>

/* Renders the probe: a question, a call, its result. Returns false on failure. */
static bool render_call(const struct chat_template *c, struct chat_probe *p)
{
    static const char *const call = "{\"name\": \"N\", \"arguments\": {\"K\": \"V\", \"L\": \"W\"}}";
    static const char *const tool =
        "{\"type\": \"function\", \"function\": {\"name\": \"T\", \"description\": \"D\", "
        "\"parameters\": {\"type\": \"object\", \"properties\": {}}}}";
    const struct chat_part a = {.text = "A"}, b = {.text = "B"};
    const struct chat_message messages[3] = {{.role = CHAT_USER, .parts = &a, .n = 1},
                                             {.role = CHAT_ASSISTANT, .calls = &call, .n_calls = 1},
                                             {.role = CHAT_TOOL, .parts = &b, .n = 1}};
    struct chat_conversation v = {.messages = messages, .n = 3, .tools = &tool, .n_tools = 1};
    struct jinja_arena *arena = jinja_arena_new();
    struct jinja_string out;
    struct err e = ERR_INIT;
    bool named = false; /* the name of the tool is shown */
    if (chat_render_text(c, &v, arena, &out, &e) == 0)
        for (size_t i = 0; i < out.len && out.origin; i++)
            named = named || (out.data[i] == 'T' && out.origin[i] != JINJA_TEMPLATE);
    v.n_tools = 0;
    bool ok = named && chat_render_text(c, &v, arena, &out, &e) == 0 && chat_probe_split(p, &out, &e) == 0;
    jinja_arena_free(arena);
    return ok;
}

static int find_content(const struct chat_probe *p, const char *text)
{
    for (int i = 0; i < p->n; i++)
        if (!strcmp(p->contents[i], text))
            return i;
    return -1;
}

/* Splits a text before the last occurrence of `mark`. Returns false if there is none; the caller frees
 * both parts. */
static bool halve(const char *text, const char *mark, char **before, char **from)
{
    const char *last = NULL;
    for (const char *p = text; (p = strstr(p, mark)); p++)
        last = p;
    if (!last)
        return false;
    *before = xasprintf("%.*s", (int)(last - text), text);
    *from = xstrdup(last);
    return true;
}

static void free_calls(struct chat_calls *k)
{
    free(k->begin);
    free(k->end);
    for (int i = 0; i < 4; i++)
        free(k->part[i]);
    *k = (struct chat_calls){0};
}

/* Truncates `text` at the first occurrence of `mark`, if any. */
static void cut_at(char *text, const char *mark)
{
    char *at = *mark ? strstr(text, mark) : NULL;
    if (at)
        *at = 0;
}

static bool read_xml(struct chat_calls *k, const struct chat_probe *p, int name)
{
    char *value_end = NULL, *key_open = NULL;
    if (!halve(p->between[name + 1], "<", &k->part[0], &k->part[1]) || /* ">\n", "<parameter=" */
        !halve(p->between[name + 3], "<", &value_end, &key_open))
        return false;
    bool same = !strcmp(key_open, k->part[1]);
    free(key_open);
    k->part[2] = xstrdup(p->between[name + 2]); /* ">\n" */
    k->part[3] = value_end;                     /* "\n</parameter>\n" */
    const char *rest = p->between[name + 5];
    size_t n = strlen(value_end);
    if (!same || strncmp(rest, value_end, n) != 0)
        return false;
    k->end = xstrdup(rest + n);
    return true;
}

static bool read_json(struct chat_calls *k, const struct chat_probe *p, int name)
{
    const char *rest = p->between[name + 5]; /* "}}\n</tool_call>..." */
    cut_at(k->begin, "{\"name\": \"");
    if (strcmp(p->between[name + 1], "\", \"arguments\": {\"") != 0 || strncmp(rest, "\"}}", 3) != 0)
        return false;
    k->end = xstrdup(rest + 3);
    return true;
}

/* Returns whether an image in a tool result is rendered as its placeholder. */
static bool shows_result_images(const struct chat_template *c)
{
    static const struct image image = {0};
    static const char *const call = "{\"name\": \"N\", \"arguments\": {\"K\": \"V\"}}";
    const struct chat_part a = {.text = "A"}, result[2] = {{.text = "B"}, {.image = &image}};
    const struct chat_message messages[3] = {{.role = CHAT_USER, .parts = &a, .n = 1},
                                             {.role = CHAT_ASSISTANT, .calls = &call, .n_calls = 1},
                                             {.role = CHAT_TOOL, .parts = result, .n = 2, .listed = true}};
    const struct chat_conversation v = {.messages = messages, .n = 3};
    struct layout l = layout_new();
    struct err e = ERR_INIT;
    bool shown = c->lists && chat_template_render(c, &v, &l, &e) == 0;
    layout_free(&l);
    return shown;
}

bool chat_template_result_images(const struct chat_template *c)
{
    return c->result_images;
}

void chat_find_calls(struct chat_template *c)
{
    c->result_images = shows_result_images(c);
    struct chat_probe p = {0};
    struct chat_calls *k = &c->calls;
    const char *close = c->turns_why.kind ? "" : c->turns[0].reply[1];
    bool ok = render_call(c, &p);
    int name = ok ? find_content(&p, "N") : -1;
    if (name < 0 || name + 5 > p.n || strcmp(p.contents[name + 1], "K") != 0 ||
        strcmp(p.contents[name + 4], "W") != 0) {
        chat_probe_free(&p);
        return;
    }
    /* the text before the call belongs to the turn up to the first tag of a call */
    const char *open = p.between[name], *tag = strstr(open, "<tool_call>");
    tag = tag ? tag : strstr(open, "<TOOLCALL>");
    if (tag) {
        k->begin = xstrdup(tag);
        bool xml = strstr(tag, "<function=");
        if (xml ? read_xml(k, &p, name) : read_json(k, &p, name)) {
            k->form = xml ? CHAT_CALLS_XML : CHAT_CALLS_JSON;
            cut_at(k->end, close);
        }
    }
    if (!k->form)
        free_calls(k);
    chat_probe_free(&p);
}

void chat_free_calls(struct chat_template *c)
{
    free_calls(&c->calls);
}

const struct chat_calls *chat_template_calls(const struct chat_template *c)
{
    return c->calls.form ? &c->calls : NULL;
}
