/* report.c - see report.h.
 *
 * report.html is the page with {{slots}}; it is part of the binary.  Printing walks the template and
 * calls the function of each slot, which writes its part of the story.  Every screenshot is embedded
 * once and shown through <use>, large and in the strip, with markers in its own pixels.
 */
#include "trace/report.h"

#include "base/file.h"
#include "base/image.h"
#include "trace/story.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* The path is relative to the folder in which make runs. */
__asm__(".section .rodata\n"
        "report_template:\n"
        ".incbin \"src/trace/report.html\"\n"
        ".byte 0\n"
        ".previous\n");
extern const char report_template[];

struct page {
    FILE *f;
    const struct record *record;
    struct story story;
    struct size {
        int w, h; /* 0: the picture is missing */
    } * sizes;    /* [story.n] */
    char nonce[33];
};

static const struct {
    const char *css, *label;
} phases[PHASES] = {{"settle", "settling"},
                    {"see", "capture"},
                    {"read", "reading the screen"},
                    {"write", "deciding"},
                    {"act", "acting"}};

/* ---- text ----------------------------------------------------------------------------------- */

/* For element content and for attributes in double quotes alike. */
static void put_text(FILE *f, const char *s)
{
    for (; *s; s++) {
        switch (*s) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        case '\'':
            fputs("&#39;", f);
            break;
        default:
            if ((unsigned char)*s >= 0x20 || *s == '\n' || *s == '\t')
                fputc(*s, f);
        }
    }
}

static void put_duration(FILE *f, double ms)
{
    if (ms < 999.5)
        fprintf(f, "%.0f ms", ms);
    else if (ms < 59950)
        fprintf(f, "%.1f s", ms / 1000);
    else
        fprintf(f, "%.0f min %.0f s", floor(ms / 60000), floor(fmod(ms / 1000, 60)));
}

static void put_base64(FILE *f, const unsigned char *s, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (; n; s += 3) {
        unsigned b1 = n > 1 ? s[1] : 0, b2 = n > 2 ? s[2] : 0, v = (unsigned)s[0] << 16 | b1 << 8 | b2;
        fputc(digits[v >> 18], f);
        fputc(digits[v >> 12 & 63], f);
        fputc(n > 1 ? digits[v >> 6 & 63] : '=', f);
        fputc(n > 2 ? digits[v & 63] : '=', f);
        n -= n < 3 ? n : 3;
    }
}

/* <dt>name</dt><dd>value</dd> in a <div>; nothing when the value is empty. */
static void put_pair(FILE *f, const char *name, const char *value)
{
    if (!*value)
        return;
    fprintf(f, "<div><dt>%s</dt><dd>", name);
    put_text(f, value);
    fputs("</dd></div>\n", f);
}

static void put_bar(FILE *f, const double ms[PHASES])
{
    fputs("<div class=\"bar\" aria-hidden=\"true\">", f);
    for (int p = 0; p < PHASES; p++)
        if (ms[p] > 0)
            fprintf(f, "<span class=\"%s\" style=\"flex:%.3f\"></span>", phases[p].css, ms[p]);
    fputs("</div>\n<dl class=\"key number\">", f);
    for (int p = 0; p < PHASES; p++) {
        fprintf(f, "<div class=\"%s\"><i></i><dt>%s</dt><dd>", phases[p].css, phases[p].label);
        put_duration(f, ms[p]);
        fputs("</dd></div>", f);
    }
    fputs("</dl>\n", f);
}

/* ---- pictures and markers --------------------------------------------------------------------- */

/* Width and height from the first chunk of a PNG, which must be IHDR. */
static struct size png_size(const unsigned char *s, size_t n)
{
    if (n < 24 || memcmp(s, "\x89PNG\r\n\x1a\n", 8) != 0 || memcmp(s + 12, "IHDR", 4) != 0)
        return (struct size){0, 0};
    uint32_t w = (uint32_t)s[16] << 24 | (uint32_t)s[17] << 16 | (uint32_t)s[18] << 8 | s[19];
    uint32_t h = (uint32_t)s[20] << 24 | (uint32_t)s[21] << 16 | (uint32_t)s[22] << 8 | s[23];
    if (w < 1 || h < 1 || w > IMAGE_MAX_SIDE || h > IMAGE_MAX_SIDE)
        return (struct size){0, 0};
    return (struct size){(int)w, (int)h};
}

static int first_use(const struct story *s, int i)
{
    for (int k = 0; k < i; k++)
        if (s->steps[k].frame == s->steps[i].frame)
            return k;
    return i;
}

static void slot_frames(struct page *p)
{
    for (int i = 0; i < p->story.n; i++) {
        int number = p->story.steps[i].frame, first = first_use(&p->story, i);
        char *png;
        size_t len;
        p->sizes[i] = p->sizes[first];
        if (first < i || number < 0 || !p->record->dir || record_frame(p->record, number, &png, &len, NULL))
            continue;
        p->sizes[i] = png_size((const unsigned char *)png, len);
        if (p->sizes[i].w) {
            fprintf(p->f, "<image id=\"frame-%d\" width=\"%d\" height=\"%d\" href=\"data:image/png;base64,",
                    number, p->sizes[i].w, p->sizes[i].h);
            put_base64(p->f, (const unsigned char *)png, len);
            fputs("\"/>\n", p->f);
        }
        free(png);
    }
}

/* A ring at a place; r in pixels of the picture. */
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

/* Where the action aimed, in pixels of the picture. */
static void put_marker(FILE *f, const json_t *action, struct size size, double scale, bool pulse)
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

static void put_picture(struct page *p, int i, double scale, bool pulse)
{
    const struct story_step *s = &p->story.steps[i];
    struct size size = p->sizes[i];
    fprintf(
        p->f,
        "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"screen at step %d\"><use href=\"#frame-%d\"/>",
        size.w, size.h, s->number, s->frame);
    for (int k = 0; k < s->nactions; k++)
        put_marker(p->f, s->actions[k].action, size, scale, pulse);
    fputs("</svg>", p->f);
}

/* ---- the head of the page --------------------------------------------------------------------- */

static const char *outcome(const struct page *p)
{
    const char *status = field_text(p->story.end, "status");
    return *status ? status : "unfinished";
}

static void slot_title(struct page *p)
{
    const char *task = field_text(p->record->run, "task");
    put_text(p->f, *task ? task : "holorun");
}

static void slot_nonce(struct page *p)
{
    fputs(p->nonce, p->f);
}

static void slot_status(struct page *p)
{
    static const struct {
        const char *status, *css, *label;
    } known[] = {
        {"answered", "good", "answered"},
        {"infeasible", "unsure", "says it cannot be done"},
        {"dry-run", "good", "dry run"},
        {"steps", "unsure", "step budget used up"},
        {"tokens", "unsure", "token budget used up"},
        {"time", "unsure", "time budget used up"},
        {"loop", "bad", "went in circles"},
        {"errors", "bad", "too many errors"},
        {"unparsable", "bad", "no usable step"},
        {"stopped", "bad", "stopped by a person"},
        {"failed", "bad", "failed"},
        {"unfinished", "bad", "did not end by itself"},
    };
    const char *status = outcome(p), *css = "unsure", *label = status;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(known[i].status, status)) {
            css = known[i].css;
            label = known[i].label;
        }
    }
    fprintf(p->f, "<span class=\"status %s\">", css);
    put_text(p->f, label);
    fputs("</span>", p->f);
}

static void slot_answer(struct page *p)
{
    const char *answer = field_text(p->story.end, "answer"), *error = field_text(p->story.end, "error");
    if (*answer || *error) {
        bool asked = *answer && strcmp(outcome(p), "answered") != 0 && strcmp(outcome(p), "infeasible") != 0;
        fputs("<p class=\"answer\">", p->f);
        fputs(asked ? "Asked for an answer at the end, the model said: " : "", p->f);
        put_text(p->f, *answer ? answer : error);
        fputs("</p>\n", p->f);
    }
}

static void slot_facts(struct page *p)
{
    const json_t *run = p->record->run, *display = json_object_get(run, "display"), *end = p->story.end;
    char text[96] = "";
    snprintf(text, sizeof text, "%d", p->story.counted);
    put_pair(p->f, "steps", text);
    double seconds = field_number(json_object_get(end, "totals"), "seconds");
    if (seconds > 0) {
        fputs("<div><dt>time</dt><dd>", p->f);
        put_duration(p->f, seconds * 1000);
        fputs("</dd></div>\n", p->f);
    }
    put_pair(p->f, "model", field_text(json_object_get(run, "model"), "name"));
    put_pair(p->f, "dialect", field_text(json_object_get(run, "dialect"), "name"));
    if (field_int(display, "w") > 0) {
        snprintf(text, sizeof text, "%s %dx%d", field_text(display, "name"), (int)field_int(display, "w"),
                 (int)field_int(display, "h"));
        put_pair(p->f, "display", text);
    }
    const json_t *totals = json_object_get(end, "totals");
    if (field_int(totals, "prefilled") > 0) {
        snprintf(text, sizeof text, "%lld generated, %lld read, %lld reused",
                 (long long)field_int(totals, "generated"), (long long)field_int(totals, "prefilled"),
                 (long long)field_int(totals, "reused"));
        put_pair(p->f, "tokens", text);
    }
    put_pair(p->f, "started", field_text(run, "started"));
    const char *slash = p->record->dir ? strrchr(p->record->dir, '/') : NULL;
    put_pair(p->f, "run", slash ? slash + 1 : p->record->dir ? p->record->dir : "");
}

static void slot_phases(struct page *p)
{
    put_bar(p->f, p->story.ms);
}

/* ---- steps ------------------------------------------------------------------------------------ */

/* Only what somebody was asked about or a rule forbade: that nothing was in the way is not worth a line. */
static void put_gate(FILE *f, const json_t *gate)
{
    const char *verdict = field_text(gate, "verdict");
    bool pass = field_bool(gate, "pass");
    if (!gate || (pass && !strcmp(verdict, "allow")))
        return;
    fprintf(f, "<span class=\"gate%s\">", pass ? "" : " shut");
    put_text(f, field_text(gate, "rule"));
    fputs(!strcmp(verdict, "deny") ? ": forbidden" : pass ? ": confirmed by " : ": refused by ", f);
    if (strcmp(verdict, "deny") != 0)
        put_text(f, field_text(gate, "who"));
    fputs("</span>", f);
}

static void put_actions(FILE *f, const struct story_step *s)
{
    if (!s->nactions)
        return;
    fputs("<ol class=\"actions\">", f);
    for (int k = 0; k < s->nactions; k++) {
        fprintf(f, "<li%s>", *s->actions[k].failure ? " class=\"failed\"" : "");
        put_text(f, s->actions[k].what);
        put_gate(f, s->actions[k].gate);
        fputs("</li>", f);
    }
    fputs("</ol>\n", f);
}

static void put_effect(FILE *f, const json_t *effect)
{
    if (!effect)
        return;
    double tiles = field_number(effect, "tiles") * 100;
    if (field_bool(effect, "changed"))
        fprintf(f, "<div><dt>effect</dt><dd>%.0f %% of the screen changed</dd></div>\n",
                tiles < 1 ? 1 : tiles);
    else
        fputs("<div><dt>effect</dt><dd>the screen did not change</dd></div>\n", f);
}

static void put_lines(FILE *f, const struct story_step *s)
{
    char text[160];
    const json_t *window = json_object_get(s->observe, "window");
    fputs("<dl class=\"lines number\">", f);
    put_effect(f, s->effect);
    for (int k = 0; k < s->nactions; k++)
        put_pair(f, "failed", s->actions[k].failure);
    put_pair(f, "error", field_text(s->error, "message"));
    put_pair(f, "told it", field_text(s->output, "text"));
    put_pair(f, "window", field_text(window, "title"));
    if (s->prompt) {
        snprintf(text, sizeof text, "%lld read, %lld reused, %lld generated, %lld forced",
                 (long long)field_int(s->prompt, "tokens_prefilled"),
                 (long long)field_int(s->prompt, "tokens_reused"),
                 (long long)(field_int(s->generate, "tokens") - field_int(s->generate, "forced")),
                 (long long)field_int(s->generate, "forced"));
        put_pair(f, "tokens", text);
    }
    if (s->attempts > 1) {
        snprintf(text, sizeof text, "%d", s->attempts);
        put_pair(f, "attempts", text);
    }
    fputs("</dl>\n", f);
}

static void put_figure(struct page *p, int i)
{
    const struct story_step *s = &p->story.steps[i];
    struct size size = p->sizes[i];
    fputs("<figure>", p->f);
    if (size.w) {
        put_picture(p, i, .022, true);
        fprintf(p->f,
                "<figcaption><span class=\"when\">before the action</span>"
                "<span class=\"number\">frame %d, %d x %d</span></figcaption>",
                s->frame, size.w, size.h);
    } else {
        fputs("<div class=\"none\">no screenshot of this step</div>", p->f);
    }
    fputs("</figure>\n", p->f);
}

static int last_number(const struct story *s)
{
    int i = s->n - 1;
    while (i > 0 && s->steps[i].beyond)
        i--;
    return s->steps[i].number;
}

static void slot_steps(struct page *p)
{
    for (int i = 0; i < p->story.n; i++) {
        const struct story_step *s = &p->story.steps[i];
        fprintf(p->f, "<section class=\"step\" id=\"step-%d\">\n", s->number);
        put_figure(p, i);
        fputs("<div class=\"told\"><h2>", p->f);
        if (s->beyond)
            fputs("After the last step: an answer was asked for", p->f);
        else
            fprintf(p->f, "Step %d of %d", s->number, last_number(&p->story));
        fputs("</h2>\n<p class=\"thought\">", p->f);
        put_text(p->f, field_text(s->step, "thought"));
        fputs("</p>\n", p->f);
        const char *note = field_text(s->step, "note"), *raw = field_text(s->generate, "text");
        if (*note) {
            fputs("<p class=\"note\">", p->f);
            put_text(p->f, note);
            fputs("</p>\n", p->f);
        }
        put_actions(p->f, s);
        put_lines(p->f, s);
        put_bar(p->f, s->ms);
        if (*raw) {
            fputs("<details><summary>what the model wrote</summary><pre>", p->f);
            put_text(p->f, raw);
            fputs("</pre></details>\n", p->f);
        }
        fputs("</div>\n</section>\n", p->f);
    }
    if (!p->story.n)
        fputs("<p>No step was recorded.</p>\n", p->f);
}

static void slot_strip(struct page *p)
{
    for (int i = 0; i < p->story.n; i++) {
        const struct story_step *s = &p->story.steps[i];
        bool failed = s->error != NULL;
        for (int k = 0; k < s->nactions; k++)
            failed = failed || *s->actions[k].failure;
        fprintf(p->f, "<a href=\"#step-%d\"%s>", s->number, failed ? " class=\"failed\"" : "");
        if (p->sizes[i].w)
            put_picture(p, i, .06, false);
        else
            fputs("<span class=\"blank\"></span>", p->f);
        if (s->beyond)
            fputs("<span><b class=\"number\">end</b><em>", p->f);
        else
            fprintf(p->f, "<span><b class=\"number\">%d</b><em>", s->number);
        put_text(p->f, s->nactions ? field_text(s->actions[0].action, "kind") : failed ? "error" : "");
        fputs("</em></span></a>\n", p->f);
    }
}

/* ---- the page --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*print)(struct page *p);
} slots[] = {
    {"frames", slot_frames}, {"title", slot_title},   {"nonce", slot_nonce}, {"task", slot_title},
    {"status", slot_status}, {"answer", slot_answer}, {"facts", slot_facts}, {"phases", slot_phases},
    {"steps", slot_steps},   {"strip", slot_strip},
};

static void print_slot(struct page *p, const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        if (strlen(slots[i].name) == len && !strncmp(slots[i].name, name, len)) {
            slots[i].print(p);
            return;
        }
    }
    bug("report.html has an unknown slot '%.*s'", (int)len, name);
}

static void make_nonce(char nonce[33])
{
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        die(ERR_ENV, "no random numbers from the kernel");
    for (int i = 0; i < 16; i++)
        snprintf(nonce + 2 * i, 3, "%02x", random[i]);
}

void report_print(const struct record *r, FILE *f)
{
    struct page p = {.f = f, .record = r};
    story_make(&p.story, r);
    p.sizes = xcalloc((unsigned long)p.story.n + 1, sizeof *p.sizes);
    make_nonce(p.nonce);
    for (const char *s = report_template; *s;) {
        const char *open = strstr(s, "{{"), *close = open ? strstr(open, "}}") : NULL;
        if (!close) {
            fputs(s, f);
            break;
        }
        fwrite(s, 1, (size_t)(open - s), f);
        print_slot(&p, open + 2, (size_t)(close - open - 2));
        s = close + 2;
    }
    free(p.sizes);
    story_free(&p.story);
}

int report_write(const char *dir, const char *path, struct err *e)
{
    struct record r;
    if (record_open(&r, dir, e))
        return -1;
    char *standard = xasprintf("%s/report.html", r.dir);
    const char *to = path ? path : standard;
    char *tmp = xasprintf("%s.%d.tmp", to, (int)getpid());
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    int rc = -1;
    if (f) {
        report_print(&r, f);
        bool bad = ferror(f);
        rc = fclose(f) || bad || rename(tmp, to) ? -1 : 0;
    }
    if (rc) {
        err_set(e, ERR_ENV, "cannot write '%s': %s", to, strerror(errno));
        unlink(tmp);
    }
    free(tmp);
    free(standard);
    record_free(&r);
    return rc;
}
