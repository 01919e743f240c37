/* page.c - building blocks of HTML pages; see page.h. */
#include "trace/page.h"

#include "base/buf.h"
#include "base/embed.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const struct {
    const char *css, *label;
} phases[PHASES] = {{"settle", "settling"},
                    {"see", "capture"},
                    {"read", "reading the screen"},
                    {"write", "deciding"},
                    {"act", "acting"}};

void page_text(FILE *f, const char *s)
{
    static const char *const escapes[128] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"};
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < 128 && escapes[c])
            fputs(escapes[c], f);
        else if (c >= 0x20 || c == '\n' || c == '\t')
            fputc(c, f);
    }
}

void page_between(FILE *f, const char *before, const char *s, const char *after)
{
    fputs(before, f);
    page_text(f, s);
    fputs(after, f);
}

void page_duration(FILE *f, double ms)
{
    if (ms < 999.5)
        fprintf(f, "%.0f ms", ms);
    else if (ms < 59950)
        fprintf(f, "%.1f s", ms / 1000);
    else
        fprintf(f, "%.0f min %.0f s", floor(ms / 60000), floor(fmod(ms / 1000, 60)));
}

void page_base64(FILE *f, const unsigned char *s, size_t n)
{
    struct buf b;
    buf_init(&b, n / 3 * 4 + 8);
    buf_put_base64(&b, s, n);
    fwrite(b.data, 1, b.len, f);
    buf_free(&b);
}

void page_pair(FILE *f, const char *name, const char *value)
{
    if (!*value)
        return;
    fprintf(f, "<div><dt>%s</dt><dd>", name);
    page_text(f, value);
    fputs("</dd></div>\n", f);
}

void page_pairf(FILE *f, const char *name, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    page_pair(f, name, text);
}

void page_bar(FILE *f, const double ms[PHASES])
{
    fputs("<div class=\"bar\" aria-hidden=\"true\">", f);
    for (int p = 0; p < PHASES; p++)
        if (ms[p] > 0)
            fprintf(f, "<span class=\"%s\" style=\"flex:%.3f\"></span>", phases[p].css, ms[p]);
    fputs("</div>\n<dl class=\"key number\">", f);
    for (int p = 0; p < PHASES; p++) {
        fprintf(f, "<div class=\"%s\"><i></i><dt>%s</dt><dd>", phases[p].css, phases[p].label);
        page_duration(f, ms[p]);
        fputs("</dd></div>", f);
    }
    fputs("</dl>\n", f);
}

struct page_size page_png_size(const unsigned char *s, size_t n)
{
    if (n < 24 || memcmp(s, "\x89PNG\r\n\x1a\n", 8) != 0 || memcmp(s + 12, "IHDR", 4) != 0)
        return (struct page_size){0, 0};
    uint32_t w = (uint32_t)s[16] << 24 | (uint32_t)s[17] << 16 | (uint32_t)s[18] << 8 | s[19];
    uint32_t h = (uint32_t)s[20] << 24 | (uint32_t)s[21] << 16 | (uint32_t)s[22] << 8 | s[23];
    if (w < 1 || h < 1 || w > IMAGE_MAX_SIDE || h > IMAGE_MAX_SIDE)
        return (struct page_size){0, 0};
    return (struct page_size){(int)w, (int)h};
}

/* Draws a ring; r: radius in pixels of the image. */
static void put_ring(FILE *f, double x, double y, double r, bool pulse)
{
    fprintf(f, "<circle class=\"halo\" cx=\"%g\" cy=\"%g\" r=\"%g\" stroke-width=\"%g\"/>", x, y, r, r * .42);
    fprintf(f, "<circle cx=\"%g\" cy=\"%g\" r=\"%g\" stroke-width=\"%g\"/>", x, y, r, r * .22);
    if (pulse)
        fprintf(f, "<circle class=\"pulse\" cx=\"%g\" cy=\"%g\" r=\"%g\" stroke-width=\"%g\"/>", x, y, r,
                r * .15);
    fprintf(f, "<circle class=\"dot\" cx=\"%g\" cy=\"%g\" r=\"%g\" stroke-width=\"%g\"/>", x, y, r * .2,
            r * .07);
}

static void put_arrow(FILE *f, double x, double y, double x2, double y2, double r)
{
    double dx = x2 - x, dy = y2 - y, len = sqrt(dx * dx + dy * dy);
    if (len < 1)
        return;
    dx *= r * .8 / len;
    dy *= r * .8 / len;
    static const char *const layers[] = {" class=\"halo\"", ""};
    for (int i = 0; i < 2; i++)
        fprintf(f,
                "<path%s stroke-width=\"%g\" stroke-linecap=\"round\" d=\"M%g %gL%g %gM%g %gL%g %gL%g %g\"/>",
                layers[i], r * (i ? .22 : .42), x, y, x2, y2, x2 - dx - dy * .7, y2 - dy + dx * .7, x2, y2,
                x2 - dx + dy * .7, y2 - dy - dx * .7);
}

void page_marker(FILE *f, const json_t *action, struct page_size size, double scale, bool pulse)
{
    double x = field_number(action, "x"), y = field_number(action, "y"),
           r = scale * (size.w > size.h ? size.w : size.h);
    if (!json_is_number(json_object_get(action, "x")))
        return;
    fputs("<g class=\"marker\">", f);
    double dx = field_number(action, "dx"), dy = field_number(action, "dy");
    if (json_is_number(json_object_get(action, "x2")))
        put_arrow(f, x, y, field_number(action, "x2"), field_number(action, "y2"), r);
    else if (dx != 0 || dy != 0)
        put_arrow(f, x, y, x + (dx > 0) * 4 * r - (dx < 0) * 4 * r, y + (dy > 0) * 4 * r - (dy < 0) * 4 * r,
                  r);
    put_ring(f, x, y, r, pulse);
    fputs("</g>", f);
}

void page_nonce(char nonce[33])
{
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        die(ERR_ENV, "cannot get random numbers from the kernel");
    for (int i = 0; i < 16; i++)
        snprintf(nonce + 2 * i, 3, "%02x", random[i]);
}

EMBED(page_style, "src/trace/page.css");

static void print_slot(const struct page_slot *slots, int n, const char *name, size_t len, FILE *f, void *arg)
{
    if (len == 5 && !strncmp(name, "style", len)) {
        fputs(page_style, f);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (strlen(slots[i].name) == len && !strncmp(slots[i].name, name, len)) {
            slots[i].print(arg);
            return;
        }
    }
    bug("a page has an unknown slot '%.*s'", (int)len, name);
}

void page_print(const char *template, const struct page_slot *slots, int n, FILE *f, void *arg)
{
    for (const char *s = template; *s;) {
        const char *open = strstr(s, "{{"), *close = open ? strstr(open, "}}") : NULL;
        if (!close) {
            fputs(s, f);
            break;
        }
        fwrite(s, 1, (size_t)(open - s), f);
        print_slot(slots, n, open + 2, (size_t)(close - open - 2), f, arg);
        s = close + 2;
    }
}
