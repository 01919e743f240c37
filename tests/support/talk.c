/* talk.c - see talk.h. */
#include "talk.h"

#include "check.h"
#include "tiny_model.h"

#include "jinja/jinja.h"
#include "text/conversation.h"

static enum chat_role role_of(const char *name)
{
    static const char *const names[] = {"system", "user", "assistant", "tool"};
    for (int i = 0; i < 4; i++)
        if (!strcmp(name, names[i]))
            return (enum chat_role)i;
    fail_msg("no role '%s'", name);
    return CHAT_USER;
}

static void read_part(struct talk *t, struct chat_part *to, const json_t *part)
{
    const json_t *size = json_object_get(part, "size");
    to->text = json_string_value(json_object_get(part, "text"));
    if (!size)
        return;
    t->images[t->n_images] = tiny_image((int)json_integer_value(json_array_get(size, 0)),
                                        (int)json_integer_value(json_array_get(size, 1)), 7);
    to->image = &t->images[t->n_images++];
}

static void read_message(struct talk *t, int i, const json_t *m)
{
    const json_t *content = json_object_get(m, "content"), *calls = json_object_get(m, "tool_calls");
    struct chat_message *to = &t->messages[i];
    to->role = role_of(json_string_value(json_object_get(m, "role")));
    to->parts = t->parts[i];
    to->listed = json_is_array(content);
    to->n = json_is_string(content) ? 1 : (int)json_array_size(content);
    assert_true(to->n <= MAX_PARTS && json_array_size(calls) <= MAX_TOOLS);
    t->parts[i][0].text = json_string_value(content);
    for (size_t k = 0; k < json_array_size(content); k++)
        read_part(t, &t->parts[i][k], json_array_get(content, k));
    for (size_t k = 0; k < json_array_size(calls); k++)
        t->calls[i][k] = jinja_json_text(json_array_get(calls, k));
    to->calls = (const char *const *)t->calls[i];
    to->n_calls = (int)json_array_size(calls);
    to->reasoning = json_string_value(json_object_get(m, "reasoning_content"));
}

struct talk *talk_read(const json_t *v)
{
    struct talk *t = calloc(1, sizeof *t);
    const json_t *messages = json_object_get(v, "messages"), *tools = json_object_get(v, "tools");
    t->c = (struct chat_conversation){
        .messages = t->messages,
        .n = (int)json_array_size(messages),
        .tools = (const char *const *)t->tools,
        .n_tools = (int)json_array_size(tools),
        .place = json_is_true(json_object_get(v, "inline")) ? CHAT_PLACE_INLINE : CHAT_PLACE_TEMPLATE,
        .think = json_is_true(json_object_get(v, "thinking")) ? CHAT_THINK_ON : CHAT_THINK_OFF,
        .open_reply = !json_is_false(json_object_get(v, "open"))};
    assert_true(t->c.n <= MAX_MESSAGES && t->c.n_tools <= MAX_TOOLS);
    for (int i = 0; i < t->c.n; i++)
        read_message(t, i, json_array_get(messages, (size_t)i));
    for (int i = 0; i < t->c.n_tools; i++)
        t->tools[i] = jinja_json_text(json_array_get(tools, (size_t)i));
    return t;
}

void talk_free(struct talk *t)
{
    for (int i = 0; i < t->n_images; i++)
        image_free(&t->images[i]);
    for (int i = 0; i < MAX_MESSAGES; i++)
        for (int k = 0; k < MAX_TOOLS; k++)
            free(t->calls[i][k]);
    for (int i = 0; i < MAX_TOOLS; i++)
        free(t->tools[i]);
    free(t);
}
