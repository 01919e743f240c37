/* chat_render.h - a conversation as text, rendered with Nemotron VL's template, "<image>" for each
 * image; the caller frees it.  NULL: refused. */
#ifndef HOLORUN_TESTS_CHAT_RENDER_H
#define HOLORUN_TESTS_CHAT_RENDER_H

#include "text/chat_layout.h"

static inline char *chat_render(const struct chat_conversation *c, struct err *e)
{
    struct layout l = layout_new();
    struct template_traits traits = {true, true, {NULL, NULL}};
    struct buf out;
    buf_init(&out, (size_t)128 << 20);
    int rc = layout_conversation(&l, c, layout_marks_vl(&traits), e);
    for (int i = 0; i < l.n && rc == 0; i++) {
        if (l.segments[i].image)
            buf_puts(&out, "<image>");
        buf_put(&out, l.texts.data + l.segments[i].at, l.segments[i].len);
    }
    char *text = rc ? NULL : buf_take(&out);
    buf_free(&out);
    layout_free(&l);
    return text;
}

#endif
