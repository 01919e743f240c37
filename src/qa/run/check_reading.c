/* check_reading.c - check for a text on the screen, read by the embedded model, so that a suite needs no
 * other model.
 *
 * The screen is divided into images of the size that this model was trained on, and each of their lines is
 * read. The model overlooks and misreads lines, especially in themes other than its own: finding the text
 * proves that it is visible, but not finding it proves nothing. So the answer is yes or unknown. */
#include "qa/run/check_impl.h"

#include "judge/vqa.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_HEIGHT = 30,
    MOST_PICTURES = 12,
    MOST_TOKENS = 64,
    ENOUGH = 400 /* bytes of read lines in the detail */
};

struct reading {
    const struct probe *probe;
    struct vqa reader;
    char *wanted;     /* normalized text to look for */
    struct buf lines; /* the lines that were read */
};

/* Replaces whitespace by single spaces. The caller frees the result. */
static char *normalize(const char *text)
{
    char *out = xcalloc(strlen(text) + 1, 1);
    size_t n = 0;
    for (const char *p = text; *p; p++)
        if (!isspace((unsigned char)*p))
            out[n++] = *p;
        else if (n && out[n - 1] != ' ')
            out[n++] = ' ';
    out[n - (n && out[n - 1] == ' ')] = 0;
    return out;
}

static enum answer read_lines(struct reading *r, const struct image *picture, struct err *e)
{
    const struct sampling greedy = {.temperature = 0, .top_p = 1, .max_tokens = MOST_TOKENS};
    enum answer a = ANSWER_UNKNOWN;
    for (int row = 1; row * LINE_HEIGHT <= picture->h && a == ANSWER_UNKNOWN; row++) {
        char *question = xasprintf("Read row %d", row);
        int rc = probe_cancelled(r->probe) ? err_set(e, ERR_STOPPED, "stopped")
                                           : vqa_ask(&r->reader, question, picture, 1, GOAL_TEXT, &greedy, e);
        free(question);
        if (rc)
            return ANSWER_ERROR;
        char *line = normalize(r->reader.reply.text.data);
        if (strstr(line, r->wanted))
            a = ANSWER_YES;
        if (a == ANSWER_YES)
            buf_clear(&r->lines);
        if (*line && strcmp(line, "nothing") != 0 && r->lines.len < ENOUGH)
            buf_printf(&r->lines, "%s%s", r->lines.len ? " | " : "", line);
        free(line);
    }
    return a;
}

/* Reads the screen in images of w x h pixels; the last ones end at the edge of the screen. */
static enum answer read_screen(struct reading *r, const struct image *screen, int w, int h, struct err *e)
{
    enum answer a = ANSWER_UNKNOWN;
    int pictures = 0;
    for (int y = 0; y < screen->h && a == ANSWER_UNKNOWN; y += h)
        for (int x = 0; x < screen->w && a == ANSWER_UNKNOWN && pictures++ < MOST_PICTURES; x += w) {
            int left = x + w > screen->w ? screen->w - w : x, top = y + h > screen->h ? screen->h - h : y;
            struct image part = {0};
            a = image_crop(&part, screen, left > 0 ? left : 0, top > 0 ? top : 0,
                           w < screen->w ? w : screen->w, h < screen->h ? h : screen->h, e)
                    ? ANSWER_ERROR
                    : read_lines(r, &part, e);
            image_free(&part);
        }
    return a;
}

enum answer check_reading(struct probe *probe, struct err *e)
{
    const struct engine_options embedded = {.threads = 1};
    struct reading r = {.probe = probe, .wanted = normalize(probe->c->text)};
    struct image screen = {0};
    enum answer a = ANSWER_ERROR;
    buf_init(&r.lines, 64 << 10);
    if (screen_capture(probe->s->screen, &screen, e) == 0 &&
        vqa_open(&r.reader, NULL, &embedded, 1, e) == 0) {
        const struct dialect *d = r.reader.dialect;
        gate_redact(probe->s->gate, &screen);
        a = read_screen(&r, &screen, d->screen_w ? d->screen_w : 640, d->screen_h ? d->screen_h : 480, e);
    }
    const char *lines = r.lines.len ? r.lines.data : "nothing";
    if (a != ANSWER_ERROR)
        probe_detail(probe, "expected '%.160s' %s; the embedded model reads: %.*s", r.wanted,
                     probe->c->absent ? "not to be there" : "to be there", probe_cut(lines, strlen(lines)),
                     lines);
    vqa_close(&r.reader);
    image_free(&screen);
    buf_free(&r.lines);
    free(r.wanted);
    return a;
}
