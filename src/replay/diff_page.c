/* diff_page.c - writes the comparison of two runs as an HTML page without scripts. The template is diff.html,
 * embedded in the program. */
#include "replay/diff.h"

#include "base/embed.h"
#include "base/file.h"
#include "trace/page.h"

#include <stdlib.h>
#include <string.h>

EMBED(diff_template, "src/replay/diff.html");

struct diff_page {
    const struct run_diff *d;
    const char *title;
    FILE *f;
};

static const char *const sides[] = {"a", "b"};
static const double ring = .022;

static void slot_title(void *arg)
{
    const struct diff_page *p = arg;
    page_text(p->f, p->title);
}

static void slot_status(void *arg)
{
    const struct diff_page *p = arg;
    if (diff_any(p->d))
        fprintf(p->f, "<span class=\"status bad\">%d of %d steps differ%s</span>", p->d->differing, p->d->n,
                p->d->end_differs ? ", and the end" : "");
    else
        fprintf(p->f, "<span class=\"status good\">the same in all %d steps</span>", p->d->n);
}

static void slot_runs(void *arg)
{
    const struct diff_page *p = arg;
    for (int k = 0; k < 2; k++) {
        const struct record *r = &p->d->record[k];
        const json_t *end = p->d->story[k].end;
        const char *slash = r->dir ? strrchr(r->dir, '/') : NULL, *status = field_text(end, "status");
        fprintf(p->f, "<div><h2>%s: ", sides[k]);
        page_text(p->f, slash ? slash + 1 : r->dir ? r->dir : "");
        fputs("</h2><dl class=\"facts\">", p->f);
        page_pair(p->f, "task", field_text(r->run, "task"));
        page_pair(p->f, "started", field_text(r->run, "started"));
        page_pair(p->f, "model", field_text(json_object_get(r->run, "model"), "name"));
        page_pair(p->f, "ended", *status ? status : "interrupted");
        page_pair(p->f, "answer", field_text(end, "answer"));
        page_pair(p->f, "error", field_text(end, "error"));
        fputs("</dl>\n", p->f);
        page_bar(p->f, p->d->story[k].ms);
        fputs("</div>\n", p->f);
    }
}

static void put_frame(const struct diff_page *p, const struct diff_step *s, int k)
{
    const struct story_step *step = s->side[k];
    char *png;
    size_t len;
    fputs("<figure>", p->f);
    struct page_size size = {0, 0};
    if (step && step->frame >= 0 && p->d->record[k].dir &&
        record_frame(&p->d->record[k], step->frame, &png, &len, NULL) == 0) {
        size = page_png_size((const unsigned char *)png, len);
        if (size.w) {
            fprintf(p->f,
                    "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"screen of %s at step %d\"><image "
                    "width=\"%d\" height=\"%d\" href=\"data:image/png;base64,",
                    size.w, size.h, sides[k], s->number, size.w, size.h);
            page_base64(p->f, (const unsigned char *)png, len);
            fputs("\"/>", p->f);
            for (int i = 0; i < step->nactions; i++)
                page_marker(p->f, step->actions[i].action, size, ring, false);
            fputs("</svg>", p->f);
        }
        free(png);
    }
    if (!size.w)
        fputs("<div class=\"none\">no screenshot</div>", p->f);
    fprintf(p->f, "<figcaption><span>%s</span></figcaption></figure>\n", sides[k]);
}

static void put_difference(const struct diff_page *p, const struct diff_step *s)
{
    struct image a, b, out = {0};
    autofree void *png = NULL;
    uint64_t len;
    diff_image(p->d, 0, s->side[0], &a);
    diff_image(p->d, 1, s->side[1], &b);
    if (a.rgb && b.rgb && image_difference(&out, &a, &b, IMAGE_EFFECT_LEVEL, NULL) == 0 &&
        image_encode_png(&out, &png, &len, NULL) == 0) {
        fputs("<figure><img alt=\"differences between the two screens\" src=\"data:image/png;base64,", p->f);
        page_base64(p->f, png, len);
        fprintf(p->f, "\"><figcaption><span>difference: %.1f %% of the screen</span></figcaption></figure>\n",
                s->tiles * 100);
    }
    image_free(&a);
    image_free(&b);
    image_free(&out);
}

static void put_told(const struct diff_page *p, const struct story_step *s)
{
    fputs("<div>", p->f);
    if (!s) {
        fputs("<p class=\"thought\">step does not exist</p></div>\n", p->f);
        return;
    }
    page_between(p->f, "<p class=\"thought\">", field_text(s->step, "thought"),
                 "</p>\n<ol class=\"actions\">");
    for (int i = 0; i < s->nactions; i++) {
        fprintf(p->f, "<li%s>", *s->actions[i].failure ? " class=\"failed\"" : "");
        page_text(p->f, s->actions[i].what);
        fputs("</li>", p->f);
    }
    fputs("</ol>\n<dl class=\"lines number\">", p->f);
    page_pair(p->f, "note", field_text(s->step, "note"));
    for (int i = 0; i < s->nactions; i++)
        page_pair(p->f, "failed", s->actions[i].failure);
    if (s->effect)
        page_pair(p->f, "effect",
                  field_bool(s->effect, "changed") ? "the screen changed" : "the screen did not change");
    page_pair(p->f, "error", field_text(s->error, "message"));
    page_pair(p->f, "tool output", field_text(s->output, "text"));
    fputs("</dl>\n", p->f);
    page_bar(p->f, s->ms);
    fputs("</div>\n", p->f);
}

static void put_tags(FILE *f, const struct diff_step *s)
{
    static const struct {
        int bit;
        const char *name;
    } tags[] = {{DIFF_MISSING, "only in one"},
                {DIFF_FRAME, "screen"},
                {DIFF_THOUGHT, "thought"},
                {DIFF_ACTION, "action"},
                {DIFF_EFFECT, "effect"}};
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (s->differs & tags[i].bit)
            fprintf(f, "<span class=\"tag\">%s</span>", tags[i].name);
    if (!s->differs)
        fputs("<span class=\"tag good\">same</span>", f);
}

static void slot_steps(void *arg)
{
    const struct diff_page *p = arg;
    for (int i = 0; i < p->d->n; i++) {
        const struct diff_step *s = &p->d->steps[i];
        bool three = s->differs & DIFF_FRAME && s->tiles > 0;
        fprintf(p->f, "<section class=\"pair%s\" id=\"step-%d\">\n<h2>Step %d ", s->differs ? "" : " same",
                s->number, s->number);
        put_tags(p->f, s);
        fprintf(p->f, "</h2>\n<div class=\"columns%s\">\n", three ? " three" : "");
        put_frame(p, s, 0);
        put_frame(p, s, 1);
        if (three)
            put_difference(p, s);
        fputs("</div>\n<div class=\"columns\">\n", p->f);
        put_told(p, s->side[0]);
        put_told(p, s->side[1]);
        fputs("</div>\n</section>\n", p->f);
    }
    if (!p->d->n)
        fputs("<p>Both runs are empty.</p>\n", p->f);
}

static void slot_strip(void *arg)
{
    const struct diff_page *p = arg;
    for (int i = 0; i < p->d->n; i++)
        fprintf(p->f, "<a href=\"#step-%d\"%s>%d</a>\n", p->d->steps[i].number,
                p->d->steps[i].differs ? " class=\"bad\"" : "", p->d->steps[i].number);
}

void diff_page_print(const struct run_diff *d, const char *title, FILE *f)
{
    static const struct page_slot slots[] = {{"title", slot_title},
                                             {"status", slot_status},
                                             {"runs", slot_runs},
                                             {"steps", slot_steps},
                                             {"strip", slot_strip}};
    struct diff_page p = {d, title, f};
    page_print(diff_template, slots, (int)(sizeof slots / sizeof *slots), f, &p);
}

int diff_page_write(const struct run_diff *d, const char *title, const char *path, struct err *e)
{
    struct file_stream out;
    if (file_stream_open(&out, path, e))
        return -1;
    diff_page_print(d, title, out.f);
    return file_stream_close(&out, e);
}
