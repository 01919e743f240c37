/* chat_render.h - renders a conversation as text in the layout of a family, with the template's placeholder
 * for each image. The caller frees it. Returns NULL if it is refused.
 */
#pragma once

#include "base/buf.h"
#include "text/chat_layout.h"
#include "text/chat_template.h"

static inline char *chat_render(const struct chat_conversation *c, enum chat_family family, struct err *e)
{
    struct layout l = layout_new();
    struct chat_template *t = chat_template_of(NULL, NULL, family);
    struct buf out;
    buf_init(&out, (size_t)128 << 20);
    int rc = chat_template_render(t, c, &l, e);
    for (int i = 0; i < l.n && rc == 0; i++) {
        if (l.segments[i].image)
            buf_puts(&out, family >= CHAT_QWEN ? "<|vision_start|><|image_pad|><|vision_end|>" : "<image>");
        buf_put(&out, l.texts.data + l.segments[i].at, l.segments[i].len);
    }
    char *text = rc ? NULL : buf_take(&out);
    buf_free(&out);
    layout_free(&l);
    chat_template_free(t);
    return text;
}
