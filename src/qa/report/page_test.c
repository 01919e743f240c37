/* page_test.c - writes one test of the suite's HTML report. */
#include "qa/report/page.h"

#include "base/file.h"
#include "base/image.h"
#include "qa/report/summary.h"
#include "trace/page.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAMES = 3,             /* number of last screenshots for a test that needs attention */
    STEPS = 40,             /* number of last steps listed for a run */
    SHRUNK_WIDTH = 800,     /* width of reduced screenshots, in pixels */
    LIGHT = 64 << 10,       /* size up to which an image is not reduced, in bytes */
    PICTURE_MAX = 64 << 20, /* file size limit, in bytes */
};
static const double marker_radius = .022; /* fraction of the image width */

/* An attempt and the recording of its run. */
struct attempt_run {
    const struct attempt *a;
    struct record record;
    struct story story;
    bool has_run; /* the recording could be read */
};

static void attempt_run_open(struct attempt_run *t, const struct attempt *a)
{
    *t = (struct attempt_run){.a = a};
    t->has_run = a && a->run_dir && record_open(&t->record, a->run_dir, NULL) == 0;
    if (t->has_run)
        story_make(&t->story, &t->record);
}

static void attempt_run_close(struct attempt_run *t)
{
    if (t->has_run) {
        story_free(&t->story);
        record_free(&t->record);
    }
}

/* ---- images -------------------------------------------------------------------------------------- */

/* Reduces a large screenshot if that makes the file smaller; replaces *png and *len. */
static void shrink(char **png, size_t *len, struct page_size size)
{
    struct image whole = {0}, small = {0};
    void *shorter = NULL;
    uint64_t n = 0;
    if (*len <= LIGHT || size.w <= SHRUNK_WIDTH)
        return;
    int h = (int)((int64_t)size.h * SHRUNK_WIDTH / size.w);
    if (image_parse_png(&whole, *png, *len, NULL) == 0 &&
        image_shrink(&small, &whole, SHRUNK_WIDTH, h < 1 ? 1 : h, NULL) == 0 &&
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

/* Writes an embedded image with markers at the positions that the step clicked; frees png. Returns false if
 * it is not a PNG or too large for the page. */
static bool put_png(struct qa_page *p, char *png, size_t len, const struct story_step *s, const char *label)
{
    struct page_size size = page_png_size((const unsigned char *)png, len);
    if (size.w && p->image_bytes > LIGHT)
        shrink(&png, &len, size);
    bool shown = size.w && len + len / 3 <= p->image_bytes;
    if (shown) {
        p->image_bytes -= len + len / 3;
        fprintf(p->f,
                "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\"><image width=\"%d\" "
                "height=\"%d\" href=\"data:image/png;base64,",
                size.w, size.h, label, size.w, size.h);
        page_base64(p->f, (const unsigned char *)png, len);
        fputs("\"/>", p->f);
        for (int i = 0; s && i < s->nactions; i++)
            page_marker(p->f, s->actions[i].action, size, marker_radius, false);
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
                there ? "too large to embed: open the file" : "the file is missing");
    if (there)
        fputs("</a>", p->f);
    fprintf(p->f, "<figcaption>%s</figcaption></figure>\n", label);
}

static void put_frame(struct qa_page *p, const struct attempt_run *t, int step, const char *what)
{
    const struct story_step *s = &t->story.steps[step];
    char *path = artifact_frame(t->a->run_dir, s->frame), label[64];
    snprintf(label, sizeof label, "%sbefore step %d", what, s->number);
    put_picture(p, path, s, label);
    free(path);
}

/* Writes the final screen (or the last frame) in large, and the frames before it below, in order. */
static void put_frames(struct qa_page *p, const struct attempt_run *t, int most)
{
    int steps[FRAMES];
    const char *end = t->a->picture;
    int n = t->has_run ? artifact_last_steps(&t->story, steps, end ? most - 1 : most) : 0;
    if (!n && !end)
        return;
    fputs("<div class=\"seen\">", p->f);
    if (end)
        put_picture(p, end, NULL, "final screen");
    else
        put_frame(p, t, steps[--n], "last screen, ");
    for (int i = 0; i < n; i++) {
        fputs(i ? "" : "<div class=\"before\">", p->f);
        put_frame(p, t, steps[i], "");
    }
    fputs(n ? "</div></div>\n" : "</div>\n", p->f);
}

/* Writes the expected, actual and difference images of region checks that did not pass. */
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

/* ---- text ---------------------------------------------------------------------------------------- */

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
        fprintf(f, "</b><span class=\"said number\">%s", summary_answer(c->answer));
        if (check_evidence(c->check->kind) == BY_MODEL)
            fputs(c->check->reading ? ", read by the embedded model" : ", by a model", f);
        if (c->ms >= 1)
            fputs(", ", f), page_duration(f, c->ms);
        fputs("</span>\n", f);
        if (c->detail && *c->detail) {
            fputs("<p>", f);
            qa_page_text(f, c->detail);
            fputs("</p>\n", f);
        }
        put_folded(f, check_evidence(c->check->kind) == BY_MODEL ? "the model's reason" : "output",
                   c->output);
        fputs("</li>\n", f);
    }
    fputs("</ul>\n", f);
}

/* Writes the steps of the test's task, with what each did. */
static void put_script(FILE *f, const struct attempt *a)
{
    static const char *const classes[STEP_ENDS] = {[STEP_NOT_RUN] = "unasked",
                                                   [STEP_DONE] = "yes",
                                                   [STEP_NOT_FOUND] = "no",
                                                   [STEP_FAILED] = "no",
                                                   [STEP_UNREAD] = "error"};
    if (!a->n_script)
        return;
    fputs("<ul class=\"checks\">\n", f);
    for (int i = 0; i < a->n_script; i++) {
        const struct step_result *s = &a->script[i];
        fprintf(f, "<li class=\"%s\"><b>", classes[s->end]);
        qa_page_line(f, s->text);
        fprintf(f, "</b><span class=\"said number\">%s, line %d", step_end_name(s->end), s->line);
        if (s->seconds > 0)
            fputs(", ", f), page_duration(f, 1000 * s->seconds);
        fputs("</span>\n", f);
        if (s->said) {
            fputs("<p>", f);
            qa_page_text(f, s->said);
            fputs("</p>", f);
        }
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

static void put_steps(FILE *f, const struct attempt_run *t)
{
    if (!t->has_run || !t->story.n)
        return;
    int first = t->story.n > STEPS ? t->story.n - STEPS : 0;
    fprintf(f, "<ol class=\"steps number\" start=\"%d\">\n", t->story.steps[first].number);
    for (int i = first; i < t->story.n; i++) {
        const struct story_step *s = &t->story.steps[i];
        fprintf(f, "<li value=\"%d\"%s>", s->number, step_failed(s) ? " class=\"failed\"" : "");
        qa_page_line(f, s->step            ? field_text(s->step, "thought")
                        : s->beyond_budget ? "final answer requested"
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
    qa_page_fact(f, "answer", a->answer);
    qa_page_fact(f, "did", a->did);
    qa_page_fact(f, "agent", a->status);
    if (r->outcome != OUTCOME_ERROR) /* for an error it is already the headline */
        qa_page_fact(f, "error", a->error);
    if (r->flaky != FLAKY_NOT) {
        qa_page_fact(f, "flaky", flaky_description(r->flaky));
        qa_page_fact(f, "differs", r->flaky_where);
    }
    autofree char *reused = summary_reused(a);
    qa_page_fact(f, "reused", reused);
    qa_page_fact(f, "program of test", a->program_of);
    put_seconds(f, "agent time", a->seconds);
    put_seconds(f, "setup time", a->start_seconds);
    qa_page_fact(f, "display", r->test->display);
    qa_page_fact(f, "program", r->test->start);
    for (int i = 0; i < SUITE_MAX_TAGS && r->test->tags[i] && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "", r->test->tags[i]);
    qa_page_fact(f, "tags", text);
    page_pairf(f, "seed", "%llu", (unsigned long long)r->test->seed);
    qa_page_fact(f, "expected", r->test->expect_fail ? "to fail" : "");
    snprintf(text, sizeof text, "%s:%d", s->path, r->test->line);
    qa_page_fact(f, "defined in", r->test->line > 0 ? text : "");
    fputs("</dl>\n", f);
}

/* Writes a link to the page of the run, or to its directory. */
static void put_link(const struct qa_page *p, const struct attempt *a)
{
    if (!a->run_dir)
        return;
    autofree char *page = xasprintf("%s/report.html", a->run_dir);
    bool there = file_exists(page);
    fputs("<p class=\"link\"><a href=\"", p->f);
    qa_page_href(p, there ? page : a->run_dir);
    fprintf(p->f, "\">%s</a></p>\n", there ? "full run, step by step" : "directory of the run");
}

static void put_earlier_attempts(struct qa_page *p, const struct result *r)
{
    for (int i = 0; i < r->n - 1; i++) {
        const struct attempt *a = &r->attempts[i];
        struct result before = summary_as_of(r, i);
        autofree char *why = summary_reason(&before);
        fprintf(p->f, "<details class=\"earlier\"><summary>attempt %d of %d: %s%s", i + 1, r->n,
                outcome_name(a->outcome), *why ? ", " : "");
        page_text(p->f, why);
        fputs("</summary>\n", p->f);
        struct attempt_run t;
        attempt_run_open(&t, a);
        put_frames(p, &t, 1);
        attempt_run_close(&t);
        put_script(p->f, a);
        put_checks(p->f, a);
        qa_page_fact(p->f, "answer", a->answer);
        qa_page_fact(p->f, "did", a->did);
        put_folded(p->f, "output of the program", a->log);
        put_link(p, a);
        fputs("</details>\n", p->f);
    }
}

/* ---- the test ------------------------------------------------------------------------------------ */

static void put_figures(FILE *f, const struct result *r)
{
    const struct attempt *a = summary_last_attempt(r);
    fputs("<span class=\"when number\">", f);
    if (a) {
        fprintf(f, "%d step%s, ", a->steps, a->steps == 1 ? "" : "s");
        page_duration(f, r->seconds * 1000);
    }
    fputs("</span>", f);
}

static void put_details(struct qa_page *p, const struct result *r, const struct attempt_run *t)
{
    put_script(p->f, t->a);
    put_checks(p->f, t->a);
    if (!t->a->n_script)
        put_steps(p->f, t);
    put_facts(p->f, p->r->suite, r, t->a);
    put_folded(p->f, "output of the program", t->a->log);
    put_earlier_attempts(p, r);
    put_link(p, t->a);
}

/* Opens the element of a test and its head, up to the id; the caller closes both. */
static void open_test(FILE *f, const struct result *r, int number, const char *element, const char *head)
{
    const char *group = summary_group_class(summary_group(r)), *name = summary_group_name(summary_group(r));
    fprintf(f,
            "<%s class=\"test of-%s\" id=\"test-%d\" data-of=\"%s\">\n<%s class=\"head\"><span "
            "class=\"mark\">%s</span><h2>",
            element, group, number, group, head, name);
    qa_page_line(f, r->test->id);
    fputs("</h2>", f);
}

static void put_task(FILE *f, const struct result *r)
{
    fputs("<p class=\"task\">", f);
    qa_page_text(f, r->test->task);
    fputs("</p>\n", f);
}

/* Writes an expanded test with screenshots. */
static void put_section(struct qa_page *p, const struct result *r, int number)
{
    struct attempt_run t;
    autofree char *why = summary_reason(r);
    attempt_run_open(&t, summary_last_attempt(r));
    open_test(p->f, r, number, "section", "div");
    put_figures(p->f, r);
    page_between(p->f, "</div>\n<p class=\"why\">", why, "</p>\n");
    put_task(p->f, r);
    if (t.a) {
        fputs("<div class=\"two\">\n", p->f);
        put_frames(p, &t, p->image_bytes > QA_PAGE_IMAGE_BYTES / 2 ? FRAMES : 1);
        fputs("<div class=\"told\">\n", p->f);
        put_details(p, r, &t);
        fputs("</div></div>\n", p->f);
        put_compared(p, t.a);
    }
    fputs("</section>\n", p->f);
    attempt_run_close(&t);
}

/* Writes a test as a line that can be expanded. */
static void put_folded_test(struct qa_page *p, const struct result *r, int number)
{
    struct attempt_run t;
    autofree char *why = summary_reason(r);
    attempt_run_open(&t, summary_last_attempt(r));
    open_test(p->f, r, number, "details", "summary");
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
        put_details(p, r, &t);
    fputs("</details>\n", p->f);
    attempt_run_close(&t);
}

void qa_page_test(struct qa_page *p, const struct result *r, int number)
{
    if (summary_needs_attention(r))
        put_section(p, r, number);
    else
        put_folded_test(p, r, number);
}
