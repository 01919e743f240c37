/* chat_template.c - renders conversations with the model's Jinja chat template (chat_template.h).
 *
 * The variables are those of transformers' apply_chat_template: messages, tools, add_generation_prompt,
 * enable_thinking if it is set, the special tokens, and the caller's own. */
#include "text/chat_template_impl.h"

#include "base/embed.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

EMBED(template_nemotron_vl, "src/text/templates/nemotron_vl.jinja");
EMBED(template_nemotron, "src/text/templates/nemotron.jinja");
EMBED(template_qwen, "src/text/templates/qwen.jinja");
EMBED(template_qwen_json, "src/text/templates/qwen_json.jinja");

const char *chat_end_mark(const struct tokenizer *t)
{
    return layout_is_chatml(t) ? "<|im_end|>" : "<SPECIAL_12>";
}

const char *chat_placeholder(const struct chat_template *c)
{
    return c->family >= CHAT_QWEN ? "<|vision_start|><|image_pad|><|vision_end|>" : "<image>";
}

/* ---- opening ---------------------------------------------------------------------------------------- */

static const char *builtin(enum chat_family family)
{
    static const char *const sources[] = {template_nemotron_vl, template_nemotron, template_qwen,
                                          template_qwen_json, template_qwen_json};
    return sources[family];
}

static void open_source(struct chat_template *c, const char *source)
{
    c->jinja = jinja_parse(source, strlen(source), &c->why);
    if (!c->jinja) {
        c->warning = xasprintf("the model's chat template cannot be used: %s", c->why.text);
        return;
    }
    chat_find_turns(c);
    chat_find_calls(c);
    if (c->turns_why.kind)
        c->warning = xasprintf("the model's chat template cannot be used for runs: %s", c->turns_why.text);
}

static struct chat_template *template_new(const struct tokenizer *t, enum chat_family family)
{
    struct chat_template *c = xcalloc(1, sizeof *c);
    c->tokenizer = t;
    c->family = family;
    return c;
}

struct chat_template *chat_template_of(const char *source, const struct tokenizer *t, enum chat_family family)
{
    struct chat_template *c = template_new(t, family);
    open_source(c, source ? source : builtin(family));
    return c;
}

struct chat_template *chat_template_open(const char *dir, const struct tokenizer *t, enum chat_family family)
{
    static const char *const names[] = {"Nemotron VL", "Nemotron 3", "Qwen3.5", "Qwen3-VL", "Qwen2.5-VL"};
    struct chat_template *c = template_new(t, family);
    autofree char *source = template_read(dir, c);
    open_source(c, source ? source : builtin(family));
    if (!source && !c->warning)
        c->warning = xasprintf("the model has no chat template; using the layout of %s", names[family]);
    return c;
}

static void free_turns(struct chat_turns *t)
{
    free(t->preamble);
    free(t->open);
    for (int i = 0; i < 2; i++) {
        free(t->system[i]);
        free(t->user[i]);
        free(t->reply[i]);
    }
}

void chat_template_free(struct chat_template *c)
{
    if (!c)
        return;
    jinja_free(c->jinja);
    free(c->warning);
    for (int i = 0; i < 4; i++) {
        free(c->special[i][0]);
        free(c->special[i][1]);
    }
    chat_free_calls(c);
    free_turns(&c->turns[0]);
    free_turns(&c->turns[1]);
    free(c);
}

const char *chat_template_warning(const struct chat_template *c)
{
    return c->warning;
}

/* Forms of input that not every template accepts: arguments as objects instead of JSON text, and the texts
 * of a message as one string instead of a list. */
enum { FORM_OBJECTS = 1, FORM_TEXTS = 2 };

/* ---- variables -------------------------------------------------------------------------------------- */

static struct jinja_value template_text(struct jinja_arena *a, const char *text)
{
    return jinja_text(a, text, strlen(text), JINJA_TEMPLATE);
}

/* Returns one text with placeholders for images. */
static struct jinja_value joined_content(const struct chat_template *c, struct jinja_arena *a,
                                         const struct chat_message *m, enum jinja_origin origin)
{
    struct jinja_value parts = jinja_list(a);
    for (int i = 0; i < m->n; i++)
        jinja_add(a, parts,
                  m->parts[i].image ? template_text(a, chat_placeholder(c))
                                    : jinja_text(a, m->parts[i].text, strlen(m->parts[i].text), origin));
    return jinja_concat(a, parts);
}

static struct jinja_value content_of(const struct chat_template *c, struct jinja_arena *a,
                                     const struct chat_message *m, enum chat_place place, unsigned forms)
{
    enum jinja_origin origin = m->role == CHAT_ASSISTANT ? JINJA_REPLY : JINJA_TEXT;
    bool images = false;
    for (int i = 0; i < m->n; i++)
        images = images || m->parts[i].image;
    bool list = images ? c->in_order || place == CHAT_PLACE_TEMPLATE : m->listed && !(forms & FORM_TEXTS);
    if (!list || (images && !c->lists))
        return joined_content(c, a, m, origin);
    struct jinja_value all = jinja_list(a);
    for (int i = 0; i < m->n; i++) {
        struct jinja_value part = jinja_dict(a);
        jinja_set(a, part, "type", template_text(a, m->parts[i].image ? "image" : "text"));
        if (!m->parts[i].image)
            jinja_set(a, part, "text", jinja_text(a, m->parts[i].text, strlen(m->parts[i].text), origin));
        jinja_add(a, all, part);
    }
    return all;
}

/* Replaces arguments in JSON text by the object; text that is not an object stays, or becomes {}. */
static void parse_arguments(json_t *call)
{
    const json_t *given = json_object_get(call, "arguments");
    if (!json_is_string(given))
        return;
    json_t *parsed = json_loads(json_string_value(given), 0, NULL);
    if (!json_is_object(parsed)) {
        json_decref(parsed);
        parsed = json_object();
    }
    json_object_set_new(call, "arguments", parsed);
}

static struct jinja_value calls_of(struct jinja_arena *a, const struct chat_message *m, unsigned forms)
{
    struct jinja_value all = jinja_list(a);
    for (int i = 0; i < m->n_calls; i++) {
        json_auto_t *json = json_loads(m->calls[i], JSON_DECODE_ANY, NULL);
        if (forms & FORM_OBJECTS)
            parse_arguments(json);
        struct jinja_value call = jinja_dict(a);
        jinja_set(a, call, "type", template_text(a, "function"));
        jinja_set(a, call, "function", jinja_of_json(a, json, JINJA_REPLY));
        jinja_add(a, all, call);
    }
    return all;
}

static struct jinja_value message_of(const struct chat_template *c, struct jinja_arena *a,
                                     const struct chat_message *m, const struct chat_conversation *v,
                                     unsigned forms)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    struct jinja_value out = jinja_dict(a);
    jinja_set(a, out, "role", template_text(a, roles[m->role]));
    jinja_set(a, out, "content", content_of(c, a, m, v->place, forms));
    if (m->reasoning)
        jinja_set(a, out, "reasoning_content",
                  jinja_text(a, m->reasoning, strlen(m->reasoning), JINJA_REPLY));
    if (m->n_calls)
        jinja_set(a, out, "tool_calls", calls_of(a, m, forms));
    return out;
}

static struct jinja_value tools_of(struct jinja_arena *a, const struct chat_conversation *v)
{
    struct jinja_value all = jinja_list(a);
    for (int i = 0; i < v->n_tools; i++) {
        json_auto_t *json = json_loads(v->tools[i], JSON_DECODE_ANY, NULL);
        jinja_add(a, all, jinja_of_json(a, json, JINJA_TEXT));
    }
    return all;
}

static struct jinja_value variables_of(const struct chat_template *c, struct jinja_arena *a,
                                       const struct chat_conversation *v, unsigned forms)
{
    struct jinja_value all = v->variables ? jinja_of_json(a, v->variables, JINJA_TEXT) : jinja_dict(a);
    struct jinja_value messages = jinja_list(a), none = {.kind = JINJA_NONE};
    for (int i = 0; i < v->n; i++)
        jinja_add(a, messages, message_of(c, a, &v->messages[i], v, forms));
    jinja_set(a, all, "messages", messages);
    jinja_set(a, all, "tools", v->n_tools ? tools_of(a, v) : none);
    jinja_set(a, all, "documents", none);
    jinja_set(a, all, "add_generation_prompt", jinja_bool(v->open_reply));
    if (v->think != CHAT_THINK_DEFAULT)
        jinja_set(a, all, "enable_thinking", jinja_bool(v->think == CHAT_THINK_ON));
    if (c->family == CHAT_QWEN25_VL)
        jinja_set(a, all, "greets", jinja_bool(true)); /* variable of the built-in template */
    for (int i = 0; i < 4 && c->special[i][0]; i++)
        jinja_set(a, all, c->special[i][0], template_text(a, c->special[i][1]));
    return all;
}

int chat_render_text(const struct chat_template *c, const struct chat_conversation *v, struct jinja_arena *a,
                     struct jinja_string *out, struct err *e)
{
    if (!c->jinja)
        return err_set(e, c->why.kind, "%s", c->why.text);
    struct err why = ERR_INIT;
    unsigned forms = v->normalise ? FORM_OBJECTS | FORM_TEXTS : 0;
    if (jinja_render(c->jinja, a, variables_of(c, a, v, forms), out, &why) == 0)
        return 0;
    if (why.kind == ERR_MODEL &&
        jinja_render(c->jinja, a, variables_of(c, a, v, FORM_OBJECTS | FORM_TEXTS), out, e) == 0)
        return 0; /* the template supports only these forms */
    return err_set(e, why.kind, "%s", why.text);
}

/* ---- layout ----------------------------------------------------------------------------------------- */

static const struct image *image_number(const struct chat_conversation *v, int i)
{
    for (int k = 0; k < v->n; k++)
        for (int p = 0; p < v->messages[k].n; p++)
            if (v->messages[k].parts[p].image && i-- == 0)
                return v->messages[k].parts[p].image;
    return NULL;
}

/* Lays out text of the template, with images for its placeholders. Returns -1 if there are too many
 * placeholders. */
static int put_template(struct layout *l, const char *text, size_t len, const char *placeholder,
                        const struct chat_conversation *v, int *images)
{
    size_t n = strlen(placeholder);
    for (const char *at; (at = memmem(text, len, placeholder, n));) {
        const struct image *im = image_number(v, (*images)++);
        if (!im)
            return -1;
        layout_template_part(l, text, (size_t)(at - text));
        layout_image(l, im);
        len -= (size_t)(at - text) + n;
        text = at + n;
    }
    layout_template_part(l, text, len);
    return 0;
}

static int put_rendered(const struct chat_template *c, const struct jinja_string *s,
                        const struct chat_conversation *v, struct layout *l, struct err *e)
{
    int images = 0, bad = 0;
    for (size_t at = 0, end; at < s->len && !bad; at = end) {
        int origin = s->origin ? s->origin[at] : JINJA_TEMPLATE;
        for (end = at + 1; end < s->len && (s->origin ? s->origin[end] : JINJA_TEMPLATE) == origin;)
            end++;
        if (origin == JINJA_TEMPLATE)
            bad = put_template(l, s->data + at, end - at, chat_placeholder(c), v, &images);
        else if (origin == JINJA_TEXT)
            layout_text(l, s->data + at, end - at);
        else
            layout_reply(l, s->data + at, end - at);
    }
    if (bad || image_number(v, images))
        return err_set(e, ERR_USAGE,
                       "the chat template shows a different number of images than the conversation has");
    return 0;
}

int chat_template_render(const struct chat_template *c, const struct chat_conversation *v, struct layout *l,
                         struct err *e)
{
    struct jinja_arena *a = jinja_arena_new();
    struct jinja_string out = {0};
    int rc = chat_render_text(c, v, a, &out, e) || put_rendered(c, &out, v, l, e) ? -1 : 0;
    jinja_arena_free(a);
    return rc;
}
