/* recording_write.c - writes recordings; see recording.h. */
#include "record/recording.h"

#include "actions/registry.h"
#include "trace/page.h"

#include <stdlib.h>
#include <string.h>

static void put_window(const char *class, const char *title, const char *language,
                       const struct screen_rect *rect, struct buf *out)
{
    buf_puts(out, "{\"class\": ");
    buf_put_json(out, class, strlen(class));
    buf_put_member(out, "title", title);
    if (*language)
        buf_put_member(out, "language", language);
    if (rect)
        buf_printf(out, ", \"rect\": [%d, %d, %d, %d]", rect->x, rect->y, rect->w, rect->h);
    buf_putc(out, '}');
}

/* Appends ', "png": BASE64}'. */
static int put_png(const struct image *im, struct buf *out, struct err *e)
{
    void *png = NULL;
    uint64_t len;
    char *text = NULL;
    size_t n = 0;
    if (image_encode_png(im, &png, &len, e))
        return -1;
    FILE *f = open_memstream(&text, &n);
    if (f) {
        page_base64(f, png, len);
        fclose(f);
    }
    buf_puts(out, ", \"png\": \"");
    buf_put(out, text, n);
    buf_puts(out, "\"}");
    free(text);
    free(png);
    return f ? 0 : err_set(e, ERR_ENV, "out of memory");
}

static void put_element(const struct recording_target *t, struct buf *out)
{
    buf_puts(out, ", \"element\": {\"name\": ");
    buf_put_json(out, t->name, strlen(t->name));
    buf_put_member(out, "role", t->role);
    if (*t->label)
        buf_put_member(out, "label", t->label);
    if (*t->menu)
        buf_put_member(out, "menu", t->menu);
    for (int i = 0; i < t->n_near; i++) {
        buf_puts(out, i ? ", " : ", \"near\": [");
        buf_put_json(out, t->near[i], strlen(t->near[i]));
    }
    buf_puts(out, t->n_near ? "]" : "");
    if (t->equals > 1)
        buf_printf(out, ", \"equal\": [%d, %d]", t->equal, t->equals);
    if (*t->path)
        buf_put_member(out, "path", t->path);
    if (t->on != RECORDING_NO_STATE)
        buf_printf(out, ", \"on\": %s", t->on ? "true" : "false");
    if (t->w && t->h)
        buf_printf(out, ", \"size\": [%d, %d]", t->w, t->h);
    buf_printf(out, ", \"at\": [%.4g, %.4g]}", t->fx, t->fy);
}

static int put_target(const struct recording_target *t, struct buf *out, struct err *e)
{
    buf_printf(out, "{\"at\": [%d, %d], \"window\": ", t->x, t->y);
    put_window(t->class, t->title, t->language, &t->rect, out);
    if (*t->role)
        put_element(t, out);
    for (int i = 0; i < t->n_pictures; i++) {
        buf_puts(out, i ? ", " : ", \"pictures\": [");
        buf_printf(out, "{\"at\": [%d, %d]", t->pictures[i].x, t->pictures[i].y);
        if (put_png(&t->pictures[i].image, out, e))
            return -1;
    }
    buf_puts(out, t->n_pictures ? "]}" : "}");
    return 0;
}

void recording_put_head(int w, int h, struct buf *out)
{
    buf_printf(out, "%s %d, \"screen\": [%d, %d]}\n", RECORDING_MAGIC, RECORDING_VERSION, w, h);
}

static void put_end(const struct recording_step *s, struct buf *out)
{
    buf_puts(out, "{\"wait_until\": \"end\"");
    if (*s->class) {
        buf_puts(out, ", \"opened\": ");
        put_window(s->class, s->title, "", NULL, out);
    }
    if (*s->closed_class) {
        buf_puts(out, ", \"closed\": ");
        put_window(s->closed_class, s->closed_title, "", NULL, out);
    }
    buf_printf(out, ", \"seconds\": %.4g}\n", s->seconds);
}

int recording_put_step(const struct recording_step *s, struct buf *out, struct err *e)
{
    size_t before = out->len;
    if (s->for_end) {
        put_end(s, out);
        return 0;
    }
    if (s->for_window) {
        buf_puts(out, "{\"wait_until\": \"window\"");
        buf_put_member(out, "class", s->class);
        buf_put_member(out, "title", s->title);
        if (*s->language)
            buf_put_member(out, "language", s->language);
        buf_printf(out, ", \"seconds\": %.4g}\n", s->seconds);
        return 0;
    }
    if (s->action.kind == ACT_NONE) {
        buf_printf(out, "{\"wait_until\": \"rest\", \"seconds\": %.4g}\n", s->seconds);
        return 0;
    }
    buf_puts(out, "{\"action\": ");
    action_to_json(&s->action, out);
    buf_printf(out, ", \"pause\": %.3g", s->pause);
    if (*s->class) {
        buf_puts(out, ", \"keyboard\": ");
        put_window(s->class, s->title, s->language, NULL, out);
        if (*s->target.role && !s->has_target) {
            out->len--; /* inside the brace */
            put_element(&s->target, out);
            buf_putc(out, '}');
        }
    }
    if (s->has_target) {
        buf_puts(out, ", \"target\": ");
        if (put_target(&s->target, out, e))
            return -1;
    }
    if (s->has_to) {
        buf_puts(out, ", \"to\": ");
        if (put_target(&s->to, out, e))
            return -1;
    }
    if (s->look.image.rgb) {
        buf_printf(out, ", \"look\": {\"size\": [%d, %d]", s->look.w, s->look.h);
        if (put_png(&s->look.image, out, e))
            return -1;
    }
    buf_puts(out, "}\n");
    return out->full || out->len - before > RECORDING_MAX_LINE
               ? err_set(e, ERR_FAILED, "a step is too long to record")
               : 0;
}
