/* player_reply.c - replies of the player: calls in the dialect PLAYER_DIALECT. */
#include "plain/player_impl.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 256 };

void player_call(struct buf *b, const char *tool, const char *key, const char *text)
{
    buf_printf(b, "<tool_call>{\"name\": \"%s\", \"arguments\": {\"%s\": ", tool, key);
    buf_put_json(b, text, strlen(text));
    buf_puts(b, "}}</tool_call>");
}

void player_make_safe(char *text)
{
    for (; *text; text++)
        if (strchr("<{[`", *text))
            *text = '(';
}

/* Begins a call with an element and its middle, in pixels of the screenshot. */
static void begin_call(struct player *p, const char *tool, const struct element *e, struct buf *b)
{
    static const char *const rows[] = {"table cell", "list item", "tree item", NULL};
    struct screen_rect view = screen_view(p->screen);
    const char *said = p->steps.s[p->s.at].what;
    char name[NAME_BYTES];
    bool wide = (e->rect.w > 4 * e->rect.h && text_listed(rows, e->role)) ||
                !strcmp(e->role, "spin button"); /* GTK has its + and - on the right */
    snprintf(name, sizeof name, "%s", *resolve_name(e) ? resolve_name(e) : said ? said : "");
    name[utf8_valid_prefix(name, strlen(name))] = 0;
    player_make_safe(name);
    buf_printf(b, "found by its name\n<tool_call>{\"name\": \"%s\", \"arguments\": {\"element\": ", tool);
    buf_put_json(b, name, strlen(name));
    buf_printf(b, ", \"x\": %d, \"y\": %d", e->rect.x + e->rect.w / (wide ? 6 : 2) - view.x,
               e->rect.y + e->rect.h / 2 - view.y);
}

void player_click(struct player *p, const struct element *e, const char *button, int count, struct buf *b)
{
    begin_call(p, "click", e, b);
    buf_printf(b, ", \"button\": \"%s\", \"count\": %d}}</tool_call>", button, count);
}

void player_write(struct player *p, const struct element *e, const char *text, struct buf *b)
{
    p->field = e->rect;
    begin_call(p, "write", e, b);
    buf_puts(b, ", \"text\": ");
    buf_put_json(b, text, strlen(text));
    buf_puts(b, "}}</tool_call>");
}

void player_keys(const char *keys, int times, struct buf *b)
{
    buf_printf(b, "<tool_call>{\"name\": \"key\", \"arguments\": {\"repeat\": %d, \"keys\": [", times);
    char *copy = xstrdup(keys), *rest = NULL;
    bool plus = strlen(copy) > 1 && copy[strlen(copy) - 1] == '+'; /* "ctrl++" */
    if (plus)
        copy[strlen(copy) - 1] = 0;
    int n = 0;
    for (char *k = strtok_r(copy, "+", &rest); k; k = strtok_r(NULL, "+", &rest)) {
        buf_puts(b, n++ ? ", " : "");
        buf_put_json(b, k, strlen(k));
    }
    buf_puts(b, plus ? ", \"+\"]}}</tool_call>" : "]}}</tool_call>");
    free(copy);
}

void player_wait(struct player *p, const char *why, struct buf *b)
{
    buf_printf(b, "waits: %s\n<tool_call>", why);
    if (p->s.dismiss) {
        struct screen_rect view = screen_view(p->screen), f = p->field;
        p->field = (struct screen_rect){0};
        buf_printf(b,
                   "{\"name\": \"click\", \"arguments\": {\"x\": %d, \"y\": %d, \"button\": \"left\", "
                   "\"count\": 1}}",
                   f.x + f.w / 2 - view.x, f.y + f.h / 2 - view.y);
    } else if (p->s.search) {
        struct screen_rect view = screen_view(p->screen);
        buf_printf(b,
                   "{\"name\": \"scroll\", \"arguments\": {\"x\": %d, \"y\": %d, \"direction\": \"%s\", "
                   "\"amount\": %d}}",
                   p->s.x - view.x, p->s.y - view.y, p->s.upwards ? "up" : "down", p->s.amount);
    } else if (p->s.aside) {
        buf_puts(b, "{\"name\": \"move\", \"arguments\": {\"x\": 1, \"y\": 1}}");
    } else {
        buf_puts(b, "{\"name\": \"wait\", \"arguments\": {\"seconds\": 0.3}}");
    }
    buf_puts(b, "</tool_call>");
    p->s.dismiss = p->s.aside = p->s.search = false;
}
