/* reading.c - reads the lines of a screen with the embedded model, for checks that need no other model.
 *
 * The screen is cut into images of the size on which this model was trained, and each of their lines is
 * transcribed.  The model overlooks and misreads lines, above all in themes other than its own.
 */
#include "pocket/reading.h"

#include "base/flag.h"
#include "judge/vqa.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_HEIGHT = 30,
    MAX_IMAGES = 12,
    MAX_TOKENS = 64, /* maximum tokens of a line */
    MAX_LINES = 400  /* bytes of lines that are reported */
};

struct reading {
    struct vqa reader;
    const volatile int *cancel;
    const char *wanted; /* normalized */
    bool found;
    struct buf *lines;
};

char *reading_normalize(const char *text)
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

static int read_lines(struct reading *r, const struct image *im, struct err *e)
{
    const struct sampling greedy = {.temperature = 0, .top_p = 1, .max_tokens = MAX_TOKENS};
    for (int row = 1; row * LINE_HEIGHT <= im->h && !r->found; row++) {
        autofree char *question = xasprintf("Read row %d", row);
        int rc = flag_up(r->cancel) ? err_set(e, ERR_STOPPED, "stopped")
                                    : vqa_ask(&r->reader, question, im, 1, GOAL_TEXT, &greedy, e);
        if (rc)
            return -1;
        autofree char *line = reading_normalize(r->reader.reply.text.data);
        r->found = strstr(line, r->wanted);
        if (r->found)
            buf_clear(r->lines);
        if (*line && strcmp(line, "nothing") != 0 && r->lines->len < MAX_LINES)
            buf_printf(r->lines, "%s%s", r->lines->len ? " | " : "", line);
    }
    return 0;
}

/* Reads images of w x h; the last ones end at the edge of the screen. */
static int read_images(struct reading *r, const struct image *screen, int w, int h, struct err *e)
{
    int images = 0, rc = 0;
    for (int y = 0; y < screen->h && rc == 0 && !r->found; y += h)
        for (int x = 0; x < screen->w && rc == 0 && !r->found && images++ < MAX_IMAGES; x += w) {
            int left = x + w > screen->w ? screen->w - w : x, top = y + h > screen->h ? screen->h - h : y;
            struct image part = {0};
            rc = image_crop(&part, screen, left > 0 ? left : 0, top > 0 ? top : 0,
                            w < screen->w ? w : screen->w, h < screen->h ? h : screen->h, e);
            if (rc == 0)
                rc = read_lines(r, &part, e);
            image_free(&part);
        }
    return rc;
}

int pocket_read_screen(const struct image *screen, const char *text, const volatile int *cancel, bool *found,
                       struct buf *lines, struct err *e)
{
    const struct engine_options embedded = {.threads = 1};
    struct reading r = {.wanted = text, .cancel = cancel, .lines = lines};
    int rc = vqa_open(&r.reader, NULL, &embedded, 1, e);
    if (rc == 0) {
        const struct dialect *d = r.reader.dialect;
        rc = read_images(&r, screen, d->screen_w ? d->screen_w : 640, d->screen_h ? d->screen_h : 480, e);
    }
    *found = r.found;
    vqa_close(&r.reader);
    return rc;
}
