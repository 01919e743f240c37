/* events.c - parses server-sent events, the lines of a streamed reply.
 *
 * A line ends with LF, CR or both; an empty line ends the event. Only the field "data" is used, because it
 * also names the kind of event. Older llama.cpp servers send errors in a field "error". */
#include "remote/events.h"

#include <string.h>

enum { MAX_EVENT = 16 << 20 };

void events_init(struct events *s, int (*on_event)(void *arg, const char *data, size_t n), void *arg)
{
    *s = (struct events){.on_event = on_event, .arg = arg};
    buf_init(&s->line, MAX_EVENT);
    buf_init(&s->data, MAX_EVENT);
}

void events_free(struct events *s)
{
    buf_free(&s->line);
    buf_free(&s->data);
}

static void end_event(struct events *s)
{
    if (s->data.len && s->on_event(s->arg, s->data.data, s->data.len))
        s->ended = true;
    buf_clear(&s->data);
}

static void end_line(struct events *s)
{
    const char *line = s->line.data ? s->line.data : "";
    if (!s->line.len) {
        end_event(s);
    } else if (!strncmp(line, "data:", 5) || !strncmp(line, "error:", 6)) {
        const char *value = strchr(line, ':') + 1;
        value += *value == ' ';
        if (s->data.len)
            buf_putc(&s->data, '\n');
        buf_put(&s->data, value, s->line.len - (size_t)(value - line));
    }
    s->too_long = s->too_long || s->line.full || s->data.full;
    buf_clear(&s->line);
}

int events_feed(struct events *s, const char *bytes, size_t n)
{
    const char *end = bytes + n;
    if (n && s->after_cr && *bytes == '\n')
        bytes++;
    s->after_cr = s->after_cr && !n;
    while (bytes < end && !s->ended && !s->too_long) {
        size_t len = 0, left = (size_t)(end - bytes);
        while (len < left && bytes[len] != '\n' && bytes[len] != '\r')
            len++;
        buf_put(&s->line, bytes, len);
        s->too_long = s->line.full;
        if (len == left)
            break;
        bool cr = bytes[len] == '\r';
        end_line(s);
        bytes += len + 1;
        s->after_cr = cr && bytes == end;
        if (cr && bytes < end && *bytes == '\n')
            bytes++;
    }
    return s->ended || s->too_long;
}

int events_end(struct events *s)
{
    if (s->line.len)
        end_line(s);
    if (!s->ended)
        end_event(s);
    return s->too_long ? -1 : 0;
}
