/* page_test.c - one test on the suite's page; see page.h. */
#include "qa/report/page.h"

#include "base/file.h"
#include "base/image.h"
#include "qa/report/words.h"
#include "trace/page.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAMES = 3,             /* last screenshots of a test that wants a look */
    STEPS = 40,             /* lines of a run, the last ones */
    SHRUNK = 800,           /* pixels across, of what is large otherwise */
    LIGHT = 64 << 10,       /* bytes of a picture that may stay as it is */
    PICTURE_MAX = 64 << 20, /* bytes of a file */
};
static const double ring = .022;

/* An attempt with its run, if that can be read. */
struct tried {
    const struct attempt *a;
    struct record record;
    struct story story;
    bool has_run;
};

static void tried_open(struct tried *t, const struct attempt *a)
{
    *t = (struct tried){.a = a};
    t->has_run = a && a->run_dir && record_open(&t->record, a->run_dir, NULL) == 0;
    if (t->has_run)
        story_make(&t->story, &t->record);
}

static void tried_close(struct tried *t)
{
    if (t->has_run) {
        story_free(&t->story);
        record_free(&t->record);
    }
}

/* ---- pictures ------------------------------------------------------------------------------------------------------- */

/* A large screenshot in fewer pixels, where that is shorter; *png and *len are replaced. */
static void lighten(char **png, size_t *len, struct page_size size)
{
    struct image whole = {0}, small = {0};
    void *shorter = NULL;
    uint64_t n = 0;
    if (*len <= LIGHT || size.w <= SHRUNK)
        return;
    int h = (int)((int64_t)size.h * SHRUNK / size.w);
    if (image_parse_png(&whole, *png, *len, NULL) == 0 &&
        image_shrink(&small, &whole, SHRUNK, h < 1 ? 1 : h, NULL) == 0 &&
        image_encode_png(&small, &shorter, &n, NULL) == 0 && n < *len) {
        free(*png);
        *png = shorter;
        *len = n;
        shorter = NULL;
    }
    free(shorter);
    image_free(&whole);
    image_free(&small);
}

/* The picture in its own pixels, with a marker where the step aimed; freed. False: no room, or no picture. */
static bool put_png(struct qa_page *p, char *png, size_t len, const struct story_step *s, const char *label)
{
    struct page_size size = page_png_size((const unsigned char *)png, len);
    if (size.w && p->room > LIGHT)
        lighten(&png, &len, size);
    bool shown = size.w && len + len / 3 <= p->room;
    if (shown) {
        p->room -= len + len / 3;
        fprintf(p->f,
                "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\"><image width=\"%d\" height=\"%d\" "
                "href=\"data:image/png;base64,",
                size.w, size.h, label, size.w, size.h);
        page_base64(p->f, (const unsigned char *)png, len);
        fputs("\"/>", p->f);
        for (int i = 0; s && i < s->nactions; i++)
            page_marker(p->f, s->actions[i].action, size, ring, false);
        fputs("</svg>", p->f);
    }
    free(png);
    return shown;
}

static void put_picture(struct qa_page *p, const char *path, const struct story_step *s, const char *label)
{
    char *png = NULL;
    size_t len;
    bool there = file_read(path, PICTURE_MAX, &png, &len, NULL) == 0;
    fputs("<figure>", p->f);
    if (there)
        fputs("<a href=\"", p->f), qa_page_href(p, path), fputs("\">", p->f);
    if (!there || !put_png(p, png, len, s, label))
        fprintf(p->f, "<span class=\"none\">%s</span>",
                there ? "not in this page, but in a file" : "the picture is missing");
    if (there)
        fputs("</a>", p->f);
    fprintf(p->f, "<figcaption>%s</figcaption></figure>\n", label);
}

static void put_frame(struct qa_page *p, const struct tried *t, int step, const char *what)
{
    const struct story_step *s = &t->story.steps[step];
    char *path = words_frame_path(t->a->run_dir, s->frame), label[64];
    snprintf(label, sizeof label, "%sbefore step %d", what, s->number);
    put_picture(p, path, s, label);
    free(path);
}

/* The last one large, that of the end or of the last step, those before it below, in order; of many tests the last one
 * alone. */
static void put_frames(struct qa_page *p, const struct tried *t, int most)
{
    int steps[FRAMES];
    const char *end = t->a->picture;
    int n = t->has_run ? words_last_steps(&t->story, steps, end ? most - 1 : most) : 0;
    if (!n && !end)
        return;
    fputs("<div class=\"seen\">", p->f);
    if (end)
        put_picture(p, end, NULL, "the last screen, at the end");
    else
        put_frame(p, t, steps[--n], "the last screen, ");
    for (int i = 0; i < n; i++) {
        fputs(i ? "" : "<div class=\"before\">", p->f);
        put_frame(p, t, steps[i], "");
    }
    fputs(n ? "</div></div>\n" : "</div>\n", p->f);
}

/* Expected, actual, difference: of checks that are not well. */
static void put_compared(struct qa_page *p, const struct attempt *a)
{
    static const char *const labels[] = {"expected", "actual", "difference"};
    for (int i = 0; i < a->n_checks; i++) {
        const struct check_result *c = &a->checks[i];
        if (c->answer == ANSWER_YES || (!c->pictures[0] && !c->pictures[1] && !c->pictures[2]))
            continue;
        fputs("<div class=\"compared\"><h3>", p->f);
        qa_page_line(p->f, c->check->name);
        fputs("</h3>\n", p->f);
        for (int k = 0; k < 3; k++)
            if (c->pictures[k])
                put_picture(p, c->pictures[k], NULL, labels[k]);
        fputs("</div>\n", p->f);
    }
}

/* ---- words ---------------------------------------------------------------------------------------------------------- */

static void put_folded(FILE *f, const char *what, const char *text)
{
    if (!text || !*text)
        return;
    fprintf(f, "<details><summary>%s</summary><pre>", what);
    qa_page_text(f, text);
    fputs("</pre></details>\n", f);
}

static void put_checks(FILE *f, const struct attempt *a)
{
    static const char *const classes[] = {"yes", "no", "unknown", "error", "unasked"};
    if (!a->n_checks)
        return;
    fputs("<ul class=\"checks\">\n", f);
    for (int i = 0; i < a->n_checks; i++) {
        const struct check_result *c = &a->checks[i];
        fprintf(f, "<li class=\"%s\"><b>", (unsigned)c->answer < 5 ? classes[c->answer] : "unknown");
        qa_page_line(f, c->check->name);
        fprintf(f, "</b><span class=\"said number\">%s", words_answer(c->answer));
        if (check_by_model(c->check->kind))
            fputs(", says a model", f);
        if (c->ms >= 1)
            fputs(", ", f), page_duration(f, c->ms);
        fputs("</span>\n", f);
        if (c->detail && *c->detail) {
            fputs("<p>", f);
            qa_page_text(f, c->detail);
            fputs("</p>\n", f);
        }
        put_folded(f, check_by_model(c->check->kind) ? "what the model says" : "output", c->output);
        fputs("</li>\n", f);
    }
    fputs("</ul>\n", f);
}

static bool step_failed(const struct story_step *s)
{
    bool failed = s->error != NULL;
    for (int k = 0; k < s->nactions; k++)
        failed = failed || *s->actions[k].failure;
    return failed;
}

static void put_steps(FILE *f, const struct tried *t)
{
    if (!t->has_run || !t->story.n)
        return;
    int first = t->story.n > STEPS ? t->story.n - STEPS : 0;
    fprintf(f, "<ol class=\"steps number\" start=\"%d\">\n", t->story.steps[first].number);
    for (int i = first; i < t->story.n; i++) {
        const struct story_step *s = &t->story.steps[i];
        fprintf(f, "<li value=\"%d\"%s>", s->number, step_failed(s) ? " class=\"failed\"" : "");
        qa_page_line(f, s->step     ? field_text(s->step, "thought")
                        : s->beyond ? "asked for an answer at the end"
                                    : "");
        if (s->error)
            fputs("<code>", f), qa_page_line(f, field_text(s->error, "message")), fputs("</code>", f);
        for (int k = 0; k < s->nactions; k++) {
            fputs("<code>", f);
            qa_page_line(f, s->actions[k].what);
            fputs("</code>", f);
        }
        fputs("</li>\n", f);
    }
    fputs("</ol>\n", f);
}

static void put_fact(FILE *f, const char *name, const char *value)
{
    char *line = words_line(value, 400);
    page_pair(f, name, line);
    free(line);
}

static void put_seconds(FILE *f, const char *name, double seconds)
{
    if (seconds <= 0)
        return;
    fprintf(f, "<div><dt>%s</dt><dd>", name);
    page_duration(f, seconds * 1000);
    fputs("</dd></div>\n", f);
}

static void put_facts(FILE *f, const struct suite *s, const struct result *r, const struct attempt *a)
{
    char text[160] = "";
    size_t n = 0;
    fputs("<dl class=\"lines number\">", f);
    put_fact(f, "answer", a->answer);
    put_fact(f, "agent", a->status);
    if (r->outcome != OUTCOME_ERROR) /* there it is the reason already */
        put_fact(f, "error", a->error);
    if (r->flaky != FLAKY_NOT) {
        put_fact(f, "flaky", flaky_meaning(r->flaky));
        put_fact(f, "differs", r->flaky_where);
    }
    put_seconds(f, "run", a->seconds);
    put_seconds(f, "desk", a->start_seconds);
    put_fact(f, "display", r->test->display);
    put_fact(f, "program", r->test->start);
    for (int i = 0; i < SUITE_MAX_TAGS && r->test->tags[i] && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "", r->test->tags[i]);
    put_fact(f, "tags", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)r->test->seed);
    put_fact(f, "seed", text);
    put_fact(f, "expected", r->test->expect_fail ? "to fail" : "");
    snprintf(text, sizeof text, "%s:%d", s->path, r->test->line);
    put_fact(f, "in", r->test->line > 0 ? text : "");
    fputs("</dl>\n", f);
}

/* To the run's own page, or its folder. */
static void put_link(const struct qa_page *p, const struct attempt *a)
{
    if (!a->run_dir)
        return;
    char *page = xasprintf("%s/report.html", a->run_dir);
    bool there = file_exists(page);
    fputs("<p class=\"link\"><a href=\"", p->f);
    qa_page_href(p, there ? page : a->run_dir);
    fprintf(p->f, "\">%s</a></p>\n", there ? "the whole run, step by step" : "the run's folder");
    free(page);
}

static void put_earlier(struct qa_page *p, const struct result *r)
{
    for (int i = 0; i < r->n - 1; i++) {
        const struct attempt *a = &r->attempts[i];
        struct result before = *r;
        before.n = i + 1;
        before.outcome = a->outcome;
        before.flaky = FLAKY_NOT;
        char *why = words_why(&before);
        fprintf(p->f, "<details class=\"earlier\"><summary>attempt %d of %d: %s%s", i + 1, r->n,
                outcome_name(a->outcome), *why ? ", " : "");
        page_text(p->f, why);
        fputs("</summary>\n", p->f);
        struct tried t;
        tried_open(&t, a);
        put_frames(p, &t, 1);
        tried_close(&t);
        put_checks(p->f, a);
        put_fact(p->f, "answer", a->answer);
        put_folded(p->f, "what the program wrote", a->log);
        put_link(p, a);
        fputs("</details>\n", p->f);
        free(why);
    }
}

/* ---- the test ------------------------------------------------------------------------------------------------------- */

static void put_figures(FILE *f, const struct result *r)
{
    const struct attempt *a = words_last(r);
    fputs("<span class=\"when number\">", f);
    if (a) {
        fprintf(f, "%d step%s, ", a->steps, a->steps == 1 ? "" : "s");
        page_duration(f, r->seconds * 1000);
    }
    fputs("</span>", f);
}

static void put_told(struct qa_page *p, const struct result *r, const struct tried *t)
{
    put_checks(p->f, t->a);
    put_steps(p->f, t);
    put_facts(p->f, p->r->suite, r, t->a);
    put_folded(p->f, "what the program wrote", t->a->log);
    put_earlier(p, r);
    put_link(p, t->a);
}

/* The element of a test up to its name: the caller goes on in its head, and closes both. */
static void put_name(FILE *f, const struct result *r, int number, const char *element, const char *head)
{
    const char *group = qa_page_group(r);
    fprintf(f,
            "<%s class=\"test of-%s\" id=\"test-%d\" data-of=\"%s\">\n<%s class=\"head\"><span "
            "class=\"mark\">%s</span><h2>",
            element, group, number, group, head, group);
    qa_page_line(f, r->test->id);
    fputs("</h2>", f);
}

static void put_task(FILE *f, const struct result *r)
{
    fputs("<p class=\"task\">", f);
    qa_page_text(f, r->test->task);
    fputs("</p>\n", f);
}

/* Open, with pictures. */
static void put_bad(struct qa_page *p, const struct result *r, int number)
{
    struct tried t;
    char *why = words_why(r);
    tried_open(&t, words_last(r));
    put_name(p->f, r, number, "section", "div");
    put_figures(p->f, r);
    fputs("</div>\n<p class=\"why\">", p->f);
    page_text(p->f, why);
    fputs("</p>\n", p->f);
    put_task(p->f, r);
    if (t.a) {
        fputs("<div class=\"two\">\n", p->f);
        put_frames(p, &t, p->room > QA_PAGE_ROOM / 2 ? FRAMES : 1);
        fputs("<div class=\"told\">\n", p->f);
        put_told(p, r, &t);
        fputs("</div></div>\n", p->f);
        put_compared(p, t.a);
    }
    fputs("</section>\n", p->f);
    tried_close(&t);
    free(why);
}

/* A line that opens. */
static void put_line(struct qa_page *p, const struct result *r, int number)
{
    struct tried t;
    char *why = words_why(r);
    tried_open(&t, words_last(r));
    put_name(p->f, r, number, "details", "summary");
    fputs("<span class=\"brief\">", p->f);
    if (*why)
        page_text(p->f, why);
    else
        qa_page_line(p->f, r->test->task);
    fputs("</span>", p->f);
    put_figures(p->f, r);
    fputs("</summary>\n", p->f);
    put_task(p->f, r);
    if (t.a)
        put_told(p, r, &t);
    fputs("</details>\n", p->f);
    tried_close(&t);
    free(why);
}

void qa_page_test(struct qa_page *p, const struct result *r, int number)
{
    if (words_wants_a_look(r))
        put_bad(p, r, number);
    else
        put_line(p, r, number);
}
