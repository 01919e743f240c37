/* t_report.c - tests the page of a run: complete, self-contained, and safe against hostile text. */
#include "base/buf.h"
#include "base/file.h"
#include "base/image.h"
#include "trace/report.h"
#include "trace/story.h"

#include "check.h"
#include "place.h"

#include <sys/stat.h>

#define EVENT(step, kind, rest) "{\"v\": 1, \"step\": " #step ", \"kind\": \"" kind "\"" rest "}\n"

static const char hostile[] =
    "</script><script>alert(1)</script>\"'><img src=http://x/y onerror=alert(2)> {{steps}} &amp; \x7f";

/* Returns the page for the lines of an events.jsonl and a run.json; the caller frees it. */
static char *page_of(const char *events, const char *run, const char *dir)
{
    struct record r = {.run = json_loads(run, 0, NULL), .dir = dir ? xstrdup(dir) : NULL};
    struct err e = ERR_INIT;
    assert_non_null(r.run);
    assert_int_equal(record_parse(&r, events, strlen(events), &e), 0);
    char *page;
    size_t size;
    FILE *f = open_memstream(&page, &size);
    report_print(&r, f);
    fclose(f);
    record_free(&r);
    return page;
}

static void assert_has(const char *page, const char *what)
{
    if (!strstr(page, what))
        fail_msg("the page lacks: %s", what);
}

static const char two_steps[] =
    EVENT(0, "start", "") EVENT(1, "observe", ", \"frame\": 0, \"settle_ms\": 300.0, \"capture_ms\": 2")
        EVENT(1, "prompt", ", \"ms\": 41, \"tokens_prefilled\": 270, \"tokens_reused\": 9") EVENT(
            1, "generate", ", \"ms\": 20, \"tokens\": 12, \"forced\": 2, \"text\": \"search<click>Go<at>\"")
            EVENT(1, "generate",
                  ", \"ms\": 22, \"tokens\": 12, \"forced\": 2, \"text\": \"search<click>Go<at><1><2>\"")
                EVENT(1, "step", ", \"thought\": \"the form is filled\", \"note\": \"price 12\"")
                    EVENT(1, "action",
                          ", \"index\": 0, \"what\": \"click \\\"Go\\\" at 210,120\", \"action\": {\"kind\": "
                          "\"click\", \"x\": 210, \"y\": 120}")
                        EVENT(1, "exec",
                              ", \"index\": 0, \"ok\": false, \"error\": \"the pointer is held\", \"ms\": 80")
                            EVENT(1, "effect", ", \"changed\": true, \"tiles\": 0.25")
                                EVENT(2, "observe", ", \"frame\": 0, \"settle_ms\": 310")
                                    EVENT(2, "step", ", \"thought\": \"finished\"")
                                        EVENT(2, "end",
                                              ", \"status\": \"answered\", \"answer\": \"It costs 12.\", "
                                              "\"totals\": {\"seconds\": 75}");

static void t_story(void **state)
{
    struct record r = {0};
    struct story s;
    assert_int_equal(record_parse(&r, two_steps, sizeof two_steps - 1, NULL), 0);
    story_make(&s, &r);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.steps[0].number, 1);
    assert_int_equal(s.steps[0].attempts, 2);
    assert_int_equal(s.steps[0].nactions, 1);
    assert_string_equal(s.steps[0].actions[0].failure, "the pointer is held");
    assert_true(s.steps[0].ms[PHASE_WRITE] == 42 && s.steps[0].ms[PHASE_READ] == 41);
    assert_true(s.ms[PHASE_SETTLE] == 610 && s.ms[PHASE_ACT] == 80);
    assert_string_equal(field_text(s.end, "answer"), "It costs 12.");
    story_free(&s);
    record_free(&r);
}

static void t_complete(void **state)
{
    char *page =
        page_of(two_steps, "{\"task\": \"find the price\", \"model\": {\"name\": \"pocket\"}}", NULL);
    static const char *const wanted[] = {
        "<title>find the price</title>",
        "<h1>find the price</h1>",
        "<span class=\"status good\">answered</span>",
        "It costs 12.",
        "id=\"step-1\"",
        "id=\"step-2\"",
        "href=\"#step-2\"",
        "the form is filled",
        "price 12",
        "click &quot;Go&quot; at 210,120",
        "<li class=\"failed\">",
        "the pointer is held",
        "25 % of the screen changed",
        "270 prefilled, 9 reused, 10 generated, 2 forced",
        "1 min 15 s",
        "<dd>300 ms</dd>",
        "<dd>42 ms</dd>",
        "search&lt;click&gt;Go&lt;at&gt;&lt;1&gt;&lt;2&gt;",
        "</html>",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_has(page, wanted[i]);
    assert_null(strstr(page, "{{"));
    free(page);
}

static void t_beyond(void **state)
{
    char *page =
        page_of(EVENT(1, "observe", ", \"frame\": 0") EVENT(1, "step", ", \"thought\": \"still looking\"")
                    EVENT(2, "observe", ", \"frame\": 0, \"beyond_budget\": true")
                        EVENT(2, "step", ", \"thought\": \"what shall I say\"")
                            EVENT(2, "end", ", \"status\": \"steps\", \"answer\": \"Perhaps 12.\""),
                "{}", NULL);
    assert_has(page, "Step 1 of 1");
    assert_null(strstr(page, "Step 2"));
    assert_has(page, "After the last step");
    assert_has(page, "requested at the end: Perhaps 12.");
    assert_has(page, "<dt>steps</dt><dd>1</dd>");
    free(page);
}

static void t_hostile(void **state)
{
    struct buf text, events, run;
    buf_init(&text, 4096);
    buf_init(&events, 1 << 16);
    buf_init(&run, 1 << 16);
    buf_put_json(&text, hostile, sizeof hostile - 1);
    const char *t = text.data;
    buf_printf(&events, "{\"step\": 1, \"kind\": \"observe\", \"window\": {\"title\": %s}}\n", t);
    buf_printf(&events, "{\"step\": 1, \"kind\": \"generate\", \"text\": %s}\n", t);
    buf_printf(&events, "{\"step\": 1, \"kind\": \"step\", \"thought\": %s, \"note\": %s}\n", t, t);
    buf_printf(
        &events,
        "{\"step\": 1, \"kind\": \"action\", \"what\": %s, \"action\": {\"kind\": %s, \"x\": \"%s\"}}\n", t,
        t, "1");
    buf_printf(&events, "{\"step\": 1, \"kind\": \"exec\", \"error\": %s}\n", t);
    buf_printf(&events, "{\"step\": 1, \"kind\": \"tool_output\", \"text\": %s}\n", t);
    buf_printf(&events, "{\"step\": 1, \"kind\": \"error\", \"message\": %s}\n", t);
    buf_printf(&events, "{\"step\": 1, \"kind\": \"end\", \"status\": %s, \"answer\": %s}\n", t, t);
    buf_printf(&run,
               "{\"task\": %s, \"started\": %s, \"model\": {\"name\": %s}, \"dialect\": {\"name\": %s}, ", t,
               t, t, t);
    buf_printf(&run, "\"display\": {\"name\": %s, \"w\": 1, \"h\": 1}}", t);
    char *page = page_of(events.data, run.data, NULL);
    assert_int_equal(check_count(page, "<script"), 1);
    assert_int_equal(check_count(page, "</script"), 1);
    assert_int_equal(check_count(page, "<img"), 0);
    assert_int_equal(check_count(page, "alert(1)"),
                     check_count(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert_true(check_count(page, "alert(1)") >= 14);
    assert_null(strstr(page, "'><"));
    assert_has(page, "&lt;img src=http://x/y onerror=alert(2)&gt; {{steps}} &amp;amp;");
    free(page);
    buf_free(&text);
    buf_free(&events);
    buf_free(&run);
}

static void t_self_contained(void **state)
{
    char *page = page_of(two_steps, "{}", NULL);
    static const char *const never[] = {"http:", "https:",  "src=",   "@import", "url(",
                                        "<link", "<iframe", "fetch(", "XMLHttp", "import("};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(page, never[i]))
            fail_msg("the page has '%s'", never[i]);
    const char *policy =
        strstr(page, "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-");
    assert_non_null(policy);
    char nonce[33], tag[64];
    snprintf(nonce, sizeof nonce, "%.32s", strstr(policy, "nonce-") + 6);
    assert_int_equal(strspn(nonce, "0123456789abcdef"), 32);
    snprintf(tag, sizeof tag, "<script nonce=\"%s\">", nonce);
    assert_has(page, tag);
    char *other = page_of(two_steps, "{}", NULL);
    assert_null(strstr(other, nonce));
    free(other);
    free(page);
}

static void t_pictures(void **state)
{
    char dir[PLACE_PATH];
    struct err e = ERR_INIT;
    assert_non_null(mkdtemp(place_template(dir)));
    char *frames = xasprintf("%s/frames", dir), *png = xasprintf("%s/frames/000000.png", dir),
         *events = xasprintf("%s/events.jsonl", dir), *html = xasprintf("%s/report.html", dir), *page;
    struct image im;
    size_t len;
    assert_int_equal(dir_make(frames, &e), 0);
    assert_int_equal(image_alloc(&im, 320, 200, &e), 0);
    assert_int_equal(image_write_png(&im, png, &e), 0);
    image_free(&im);
    assert_int_equal(file_write(events, two_steps, sizeof two_steps - 1, &e), 0);
    assert_int_equal(report_write(dir, NULL, &e), 0);
    struct stat st;
    assert_int_equal(stat(html, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(file_read(html, 1 << 20, &page, &len, &e), 0);
    assert_int_equal(check_count(page, "data:image/png;base64,iVBORw0KGgo"), 1);
    assert_has(page, "<image id=\"frame-0\" width=\"320\" height=\"200\"");
    assert_int_equal(check_count(page, "<use href=\"#frame-0\"/>"), 4);
    assert_int_equal(check_count(page, "viewBox=\"0 0 320 200\""), 4);
    assert_has(page, "<circle cx=\"210\" cy=\"120\"");
    free(page);
    assert_int_equal(file_write(png, "not a png", 9, &e), 0);
    assert_int_equal(report_write(dir, NULL, &e), 0);
    assert_int_equal(file_read(html, 1 << 20, &page, &len, &e), 0);
    assert_has(page, "no screenshot of this step");
    free(page);
    assert_int_equal(report_write("/tmp/holorun-no-such-run", NULL, &e), -1);
    assert_non_null(strstr(e.text, "/tmp/holorun-no-such-run/events.jsonl"));
    remove(html), remove(events), remove(png), remove(frames), remove(dir);
    free(frames), free(png), free(events), free(html);
}

static void t_unfinished(void **state)
{
    char *page = page_of(EVENT(1, "observe", "") EVENT(3, "observe", "") EVENT(2, "observe", "")
                             EVENT(99999999, "step", ""),
                         "{}", NULL);
    assert_has(page, "was interrupted before its end");
    assert_has(page, "id=\"step-3\"");
    assert_int_equal(check_count(page, "<section"), 2);
    free(page);
    page = page_of("", "{}", NULL);
    assert_has(page, "No step was recorded.");
    free(page);
}

static void check_corrected(const char *events)
{
    char *page = page_of(events, "{\"task\": \"x\"}", NULL);
    assert_has(page, "&quot;Paulchea&quot; (from the task) instead of &quot;Paulcheak&quot;");
    assert_has(page, "&quot;Day&quot; is probably at 50, 60; the model gave 3, 4");
    assert_has(page, "&quot;Gone&quot; not found");
    assert_has(page, "this reply had to start with &lt;click&gt;Zi&lt;at&gt;");
    assert_int_equal(check_count(page, "corrected"), 2);
    assert_int_equal(check_count(page, ">located<"), 2);
    free(page);
}

/* The page lists the corrections of the accepted reply and none of rejected ones. Records of older versions
 * have the events copy, localize and cover instead of assist. */
static void t_corrected(void **state)
{
    check_corrected(
        EVENT(1, "observe", ", \"frame\": 0") EVENT(
            1, "assist", ", \"by\": \"task\", \"index\": 0, \"from\": \"Paulcheak\", \"to\": \"Paulchea\"")
            EVENT(1, "assist",
                  ", \"by\": \"name\", \"element\": \"Day\", \"from\": \"3, 4\", \"to\": \"50, 60\"")
                EVENT(1, "assist", ", \"by\": \"name\", \"element\": \"Gone\", \"from\": \"3, 4\"") EVENT(
                    1, "assist",
                    ", \"by\": \"omission\", \"to\": \"<click>Zi<at>\", \"logprob\": -2, \"taken\": true")
                    EVENT(1, "assist",
                          ", \"by\": \"omission\", \"to\": \"<write>Zi<at>\", \"logprob\": -20, \"taken\": "
                          "false") EVENT(1, "step", ", \"thought\": \"\""));
    static const char events[] = EVENT(1, "observe", ", \"frame\": 0")
        EVENT(1, "copy", ", \"said\": \"Paulcheak\", \"text\": \"Paulchea\"") EVENT(
            1, "localize",
            ", \"element\": \"Day\", \"found\": true, \"said_x\": 3, \"said_y\": 4, \"x\": 50, \"y\": 60")
            EVENT(1, "localize", ", \"element\": \"Gone\", \"found\": false, \"said_x\": 3, \"said_y\": 4")
                EVENT(1, "cover", ", \"begins\": \"<click>Zi<at>\", \"logprob\": -2, \"taken\": true")
                    EVENT(1, "cover", ", \"begins\": \"<write>Zi<at>\", \"logprob\": -20, \"taken\": false")
                        EVENT(1, "step", ", \"thought\": \"\"");
    check_corrected(events);
#define MOVED(name)                                                                                          \
    EVENT(1, "localize", ", \"element\": \"" name "\", \"found\": true, \"said_x\": 3, \"x\": 5")
    static const char instead[] =
        EVENT(1, "observe", ", \"frame\": 0") EVENT(1, "generate", "") MOVED("First") EVENT(1, "generate", "")
            MOVED("Second") EVENT(1, "cover", ", \"begins\": \"b\", \"taken\": true") EVENT(1, "generate", "")
                MOVED("Third") EVENT(1, "cover", ", \"begins\": \"c\", \"taken\": false");
    char *page = page_of(instead, "{\"task\": \"x\"}", NULL);
    assert_null(strstr(page, "First"));
    assert_has(page, "&quot;Second&quot; is probably at");
    assert_null(strstr(page, "Third"));
    assert_int_equal(check_count(page, "corrected"), 1);
    free(page);
    struct buf many;
    buf_init(&many, 1 << 16);
    for (int i = 0; i < 3 * STORY_MAX_CORRECTIONS; i++)
        buf_puts(&many, EVENT(1, "copy", ", \"said\": \"a\", \"text\": \"b\""));
    page = page_of(many.data, "{\"task\": \"x\"}", NULL);
    assert_int_equal(check_count(page, "corrected"), STORY_MAX_CORRECTIONS);
    free(page);
    buf_free(&many);
}

static const struct CMUnitTest tests[] = {
    CLAIM("an answer requested at the end is neither a step nor the result", t_beyond),
    CLAIM("events are sorted into steps with their times, attempts and failures", t_story),
    CLAIM("the page shows task, outcome, thoughts, actions, effects and times", t_complete),
    CLAIM("the page lists corrections of the accepted reply, in records of old and new versions",
          t_corrected),
    CLAIM("hostile text from task, screen and model stays text", t_hostile),
    CLAIM("the page loads nothing from outside and runs only its own script", t_self_contained),
    CLAIM("each screenshot is embedded once, with a marker at the target", t_pictures),
    CLAIM("an unfinished or empty run still makes a page", t_unfinished),
};

CHECK_MAIN()
