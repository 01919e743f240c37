/* report.c - writes the HTML report of a run; see report.h.
 *
 * report.html, embedded in the binary, is the page with {{slots}}; one function per slot writes its content.
 * Every screenshot is embedded once and shown through <use>, large and in the strip, with markers in its own
 * pixels. */
#include "trace/report.h"

#include "base/embed.h"
#include "base/file.h"
#include "trace/page.h"
#include "trace/status.h"
#include "trace/story.h"

#include <stdlib.h>
#include <string.h>

EMBED(report_template, "src/trace/report.html");

struct page {
    FILE *f;
    const struct record *record;
    struct story story;
    struct page_size *sizes; /* [story.n]; 0: the image is missing */
    char nonce[33];
};

/* ---- images and markers -------------------------------------------------------------------------- */

static int first_use(const struct story *s, int i)
{
    for (int k = 0; k < i; k++)
        if (s->steps[k].frame == s->steps[i].frame)
            return k;
    return i;
}

static void slot_frames(void *arg)
{
    struct page *p = arg;
    for (int i = 0; i < p->story.n; i++) {
        int number = p->story.steps[i].frame, first = first_use(&p->story, i);
        char *png;
        size_t len;
        p->sizes[i] = p->sizes[first];
        if (first < i || number < 0 || !p->record->dir || record_frame(p->record, number, &png, &len, NULL))
            continue;
        p->sizes[i] = page_png_size((const unsigned char *)png, len);
        if (p->sizes[i].w) {
            fprintf(p->f, "<image id=\"frame-%d\" width=\"%d\" height=\"%d\" href=\"data:image/png;base64,",
                    number, p->sizes[i].w, p->sizes[i].h);
            page_base64(p->f, (const unsigned char *)png, len);
            fputs("\"/>\n", p->f);
        }
        free(png);
    }
}

static void put_picture(struct page *p, int i, double scale, bool pulse)
{
    const struct story_step *s = &p->story.steps[i];
    struct page_size size = p->sizes[i];
    fprintf(
        p->f,
        "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"screen at step %d\"><use href=\"#frame-%d\"/>",
        size.w, size.h, s->number, s->frame);
    for (int k = 0; k < s->nactions; k++)
        page_marker(p->f, s->actions[k].action, size, scale, pulse);
    fputs("</svg>", p->f);
}

/* ---- the head of the page -------------------------------------------------------------------- */

static const char *status_of(const struct page *p)
{
    return field_text(p->story.end, "status");
}

static void slot_title(void *arg)
{
    struct page *p = arg;
    const char *task = field_text(p->record->run, "task");
    page_text(p->f, *task ? task : "holorun");
}

static void slot_nonce(void *arg)
{
    struct page *p = arg;
    fputs(p->nonce, p->f);
}

static void slot_status(void *arg)
{
    struct page *p = arg;
    const struct status_row *row = status_find(status_of(p));
    fprintf(p->f, "<span class=\"status %s\">", row ? status_class(row->colour) : "unsure");
    page_text(p->f, row ? row->meaning : status_of(p));
    const char *limit = field_text(p->story.end, "limit");
    if (*limit) {
        fputs(strchr(limit, '.') ? " (" : " (--", p->f); /* a limit of the policy file, or an option */
        page_text(p->f, limit);
        fprintf(p->f, " %.10g)", field_number(p->story.end, "allowed"));
    }
    fputs("</span>", p->f);
}

static void slot_answer(void *arg)
{
    struct page *p = arg;
    const char *answer = field_text(p->story.end, "answer"), *error = field_text(p->story.end, "error");
    if (*answer || *error) {
        const struct status_row *row = status_find(status_of(p));
        bool asked = *answer && row && !row->own && row != status_row(AGENT_DRY_RUN);
        bool green = row && row->colour == STATUS_GREEN;
        fputs(green ? "<p class=\"answer\">" : "<p class=\"answer open\">", p->f);
        fputs(asked ? "Final answer of the model, requested at the end: " : "", p->f);
        page_text(p->f, *answer ? answer : error);
        fputs("</p>\n", p->f);
    }
    const char *did = field_text(p->story.end, "did");
    if (*did)
        page_between(p->f, "<p class=\"did\">Actions: ", did, "</p>\n");
}

static void slot_facts(void *arg)
{
    struct page *p = arg;
    const json_t *run = p->record->run, *display = json_object_get(run, "display"),
                 *totals = json_object_get(p->story.end, "totals");
    page_pairf(p->f, "steps", "%d", p->story.counted);
    double seconds = field_number(totals, "seconds");
    if (seconds > 0) {
        fputs("<div><dt>time</dt><dd>", p->f);
        page_duration(p->f, seconds * 1000);
        fputs("</dd></div>\n", p->f);
    }
    page_pair(p->f, "model", field_text(json_object_get(run, "model"), "name"));
    page_pair(p->f, "dialect", field_text(json_object_get(run, "dialect"), "name"));
    if (field_int(display, "w") > 0)
        page_pairf(p->f, "display", "%s %dx%d", field_text(display, "name"), (int)field_int(display, "w"),
                   (int)field_int(display, "h"));
    if (field_int(totals, "prefilled") > 0)
        page_pairf(p->f, "tokens", "%lld generated, %lld prefilled, %lld reused",
                   (long long)field_int(totals, "generated"), (long long)field_int(totals, "prefilled"),
                   (long long)field_int(totals, "reused"));
    if (field_int(totals, "cancelled") > 0)
        page_pairf(p->f, "cancelled", "%lld turns, %lld tokens", (long long)field_int(totals, "cancelled"),
                   (long long)field_int(totals, "cancelled_tokens"));
    page_pair(p->f, "started", field_text(run, "started"));
    const char *slash = p->record->dir ? strrchr(p->record->dir, '/') : NULL;
    page_pair(p->f, "run", slash ? slash + 1 : p->record->dir ? p->record->dir : "");
}

static void slot_phases(void *arg)
{
    struct page *p = arg;
    page_bar(p->f, p->story.ms);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Prints the ruling, only if a rule asked or denied. */
static void put_gate(FILE *f, const json_t *gate)
{
    const char *verdict = field_text(gate, "verdict");
    bool pass = field_bool(gate, "pass");
    if (!gate || (pass && !strcmp(verdict, "allow")))
        return;
    fprintf(f, "<span class=\"gate%s\">", pass ? "" : " shut");
    page_text(f, field_text(gate, "rule"));
    fputs(!strcmp(verdict, "deny") ? ": denied" : pass ? ": confirmed by " : ": refused by ", f);
    if (strcmp(verdict, "deny") != 0)
        page_text(f, field_text(gate, "who"));
    fputs("</span>", f);
}

static void put_actions(FILE *f, const struct story_step *s)
{
    if (!s->nactions)
        return;
    fputs("<ol class=\"actions\">", f);
    for (int k = 0; k < s->nactions; k++) {
        fprintf(f, "<li%s>", *s->actions[k].failure ? " class=\"failed\"" : "");
        page_text(f, s->actions[k].what);
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
        page_pairf(f, "effect", "%.0f %% of the screen changed", tiles < 1 ? 1 : tiles);
    else
        page_pair(f, "effect", "the screen did not change");
}

/* Describes a user's decision about a step. */
static void describe_human(const json_t *human, char *out, size_t size)
{
    static const char *const words[][2] = {
        {"run", "let it run"},         {"edit", "edited the action"},
        {"veto", "refused it"},        {"again", "sampled another reply"},
        {"rewind", "rewound to step"}, {"fork", "sampled more replies"},
        {"take", "took reply"},        {"stop", "stopped the run"},
    };
    const char *what = field_text(human, "what"), *said = what, *reason = field_text(human, "reason");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        said = strcmp(words[i][0], what) ? said : words[i][1];
    size_t n = (size_t)snprintf(out, size, "%s", said);
    if (json_object_get(human, "n") && n < size)
        n += (size_t)snprintf(out + n, size - n, ": %d", (int)field_int(human, "n"));
    if (json_is_integer(json_object_get(human, "to")) && n < size)
        n += (size_t)snprintf(out + n, size - n, " %d", (int)field_int(human, "to"));
    if (*reason && n < size)
        snprintf(out + n, size - n, ": %s", reason);
}

static void put_human(FILE *f, const struct story_step *s)
{
    char text[512];
    if (s->from)
        page_pairf(f, "screen", "as recorded in step %d", s->from);
    for (int i = 0; i < s->nhuman; i++) {
        if (s->nhuman == 1 && !strcmp(field_text(s->human[i], "what"), "run"))
            continue;
        describe_human(s->human[i], text, sizeof text);
        page_pair(f, "user", text);
    }
}

static void put_corrections(FILE *f, const struct story_step *s)
{
    for (int i = 0; i < s->ncorrections; i++) {
        const struct story_correction *c = &s->corrections[i];
        if (c->resampled)
            page_pairf(f, "corrected", "an earlier reply was replaced; this reply had to start with %s",
                       c->to);
        else if (!*c->element)
            page_pairf(f, "corrected", "\"%s\" (from the task) instead of \"%s\"", c->to, c->from);
        else if (!*c->to)
            page_pairf(f, "located", "\"%.80s\" not found", c->element);
        else if (*c->from)
            page_pairf(f, "located", "\"%.80s\" is probably at %s; the model gave %s", c->element, c->to,
                       c->from);
    }
}

static void put_lines(FILE *f, const struct story_step *s)
{
    int64_t tokens = field_int(s->generate, "tokens"), forced = field_int(s->generate, "forced");
    fputs("<dl class=\"lines number\">", f);
    put_human(f, s);
    put_corrections(f, s);
    put_effect(f, s->effect);
    for (int k = 0; k < s->nactions; k++)
        page_pair(f, "failed", s->actions[k].failure);
    if (s->stale)
        page_pairf(f, "screen changed", "%.1f s after the screenshot (%s)",
                   field_number(s->stale, "ms") / 1000, field_text(s->stale, "reason"));
    page_pair(f, "error", field_text(s->error, "message"));
    page_pair(f, "tool output", field_text(s->output, "text"));
    page_pair(f, "window", field_text(json_object_get(s->observe, "window"), "title"));
    if (s->prompt)
        page_pairf(f, "tokens", "%lld prefilled, %lld reused, %lld generated, %lld forced",
                   (long long)field_int(s->prompt, "tokens_prefilled"),
                   (long long)field_int(s->prompt, "tokens_reused"), (long long)(tokens - forced),
                   (long long)forced);
    if (s->cancelled)
        page_pairf(f, "cancelled", "%d turn%s, because the screen changed", s->cancelled,
                   s->cancelled == 1 ? "" : "s");
    if (field_bool(s->generate, "reused"))
        page_pair(f, "reply", "of an earlier run");
    if (s->attempts > 1)
        page_pairf(f, "attempts", "%d", s->attempts);
    fputs("</dl>\n", f);
}

static void put_figure(struct page *p, int i)
{
    const struct story_step *s = &p->story.steps[i];
    struct page_size size = p->sizes[i];
    fputs("<figure>", p->f);
    if (size.w) {
        put_picture(p, i, .022, true);
        fprintf(p->f,
                "<figcaption><span class=\"when\">before the action</span><span class=\"number\">frame %d, "
                "%d x %d</span></figcaption>",
                s->frame, size.w, size.h);
    } else {
        fputs("<div class=\"none\">no screenshot of this step</div>", p->f);
    }
    fputs("</figure>\n", p->f);
}

static int last_number(const struct story *s)
{
    int i = s->n - 1;
    while (i > 0 && s->steps[i].beyond_budget)
        i--;
    return s->steps[i].number;
}

static void slot_steps(void *arg)
{
    struct page *p = arg;
    for (int i = 0; i < p->story.n; i++) {
        const struct story_step *s = &p->story.steps[i];
        fprintf(p->f, "<section class=\"step\" id=\"step-%d\">\n", s->number);
        put_figure(p, i);
        fputs("<div class=\"told\"><h2>", p->f);
        if (s->beyond_budget)
            fputs("After the last step: final answer requested", p->f);
        else
            fprintf(p->f, "Step %d of %d", s->number, last_number(&p->story));
        page_between(p->f, "</h2>\n<p class=\"thought\">", field_text(s->step, "thought"), "</p>\n");
        const char *note = field_text(s->step, "note"), *raw = field_text(s->generate, "text");
        if (*note)
            page_between(p->f, "<p class=\"note\">", note, "</p>\n");
        put_actions(p->f, s);
        put_lines(p->f, s);
        page_bar(p->f, s->ms);
        if (*raw)
            page_between(p->f, "<details><summary>raw reply of the model</summary><pre>", raw,
                         "</pre></details>\n");
        fputs("</div>\n</section>\n", p->f);
    }
    if (!p->story.n)
        fputs("<p>No step was recorded.</p>\n", p->f);
}

static void slot_strip(void *arg)
{
    struct page *p = arg;
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
        if (s->beyond_budget)
            fputs("<span><b class=\"number\">end</b><em>", p->f);
        else
            fprintf(p->f, "<span><b class=\"number\">%d</b><em>", s->number);
        page_text(p->f, s->nactions ? field_text(s->actions[0].action, "kind") : failed ? "error" : "");
        fputs("</em></span></a>\n", p->f);
    }
}

static const struct page_slot slots[] = {
    {"frames", slot_frames}, {"title", slot_title},   {"nonce", slot_nonce}, {"task", slot_title},
    {"status", slot_status}, {"answer", slot_answer}, {"facts", slot_facts}, {"phases", slot_phases},
    {"steps", slot_steps},   {"strip", slot_strip},
};

void report_print(const struct record *r, FILE *f)
{
    struct page p = {.f = f, .record = r};
    story_make(&p.story, r);
    p.sizes = xcalloc((unsigned long)p.story.n + 1, sizeof *p.sizes);
    page_nonce(p.nonce);
    page_print(report_template, slots, (int)(sizeof slots / sizeof *slots), f, &p);
    free(p.sizes);
    story_free(&p.story);
}

int report_write(const char *dir, const char *path, struct err *e)
{
    struct record r;
    if (record_open(&r, dir, e))
        return -1;
    autofree char *standard = xasprintf("%s/report.html", r.dir);
    const char *to = path ? path : standard;
    struct file_stream out;
    int rc = file_stream_open(&out, to, e);
    if (rc == 0) {
        report_print(&r, out.f);
        rc = file_stream_close(&out, e);
    }
    record_free(&r);
    return rc;
}
