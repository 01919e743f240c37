/* t_remote_elements.c - models that read elements as text and answer with refs: zenity's output is the judge. */
#include "check.h"
#include "far.h"
#include "program.h"
#include "replies.h"
#include "xvfb.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

static struct xvfb x;

#define BEGIN "Elements of the active window"

struct model { /* a model without vision that follows rules */
    int n;
    bool pictures;      /* a request had an image */
    int texts, omitted; /* in the last request */
    bool missing;       /* a text lacked what the rules look for */
    char *mistake;      /* message about a wrong ref in the last request; NULL: none */
};

static int count(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

/* Returns the ref of the line with these words in the newest text of elements; 0: none.  The request is JSON:
 * quotes have a backslash. */
static int ref_of(const char *request, const char *words)
{
    const char *newest = NULL, *found;
    for (const char *at = request; (at = strstr(at, BEGIN)); at++)
        newest = at;
    found = newest ? strstr(newest, words) : NULL;
    while (found && found > newest && !(found[-1] == 'e' && found[0] >= '0' && found[0] <= '9'))
        found--;
    return found && found > newest ? atoi(found) : 0;
}

static char *answer(void *arg, int n, const char *request)
{
    struct model *m = arg;
    int field = ref_of(request, " field"), ok = ref_of(request, " button \\\"OK\\\"");
    m->n = n;
    m->pictures |= strstr(request, "image_url") != NULL;
    m->texts = count(request, BEGIN);
    m->omitted = count(request, "[elements omitted]");
    m->missing |= n < 4 && (!field || !ok);
    if (n == 1 && strstr(request, "e999999 was not in a snapshot"))
        m->mistake = xstrdup("yes");
    char *reply = n == 0   ? xstrdup(STEP("\"click_desktop\", \"element\": \"e999999\""))
                  : n == 1 ? xasprintf(STEP("\"click_desktop\", \"element\": \"e%d\""), field)
                  : n == 2 ? xstrdup(TYPE("Ana Lima"))
                  : n == 3
                      ? xasprintf(STEP("\"click_desktop\", \"element\": \"e%d\", \"x\": 1, \"y\": 1"), ok)
                      : xstrdup(ANSWER("Done."));
    char *stream = far_stream(reply);
    free(reply);
    return stream;
}

static void run(struct model *m, const char *mode, const char *more)
{
    struct far_server server;
    OUTCOME(o);
    char *printed = xvfb_place(&x, "printed"), *runs = xvfb_place(&x, "runs");
    char *start = xasprintf("zenity --entry --text=Name >%s", printed), *text = NULL;
    size_t n = 0;
    *m = (struct model){0};
    far_open_with(&server, answer, m);
    char *url = far_address(&server);
    program_run(&x, &o,
                WORDS("run", "Enter the name Ana Lima", "--quiet", "--base-url", url, "-m", "tiny",
                      "--dialect", "holo3", "--elements-text", mode, "--max-images", more, "--on", "desk",
                      "--start", start, "--runs", runs, "--no-report"));
    if (file_read(printed, 1 << 16, &text, &n, NULL) || strcmp(text, "Ana Lima\n") != 0)
        fail_msg("zenity printed '%s' after %d requests\n%s%s", text ? text : "", m->n, o.out, o.err);
    far_close(&server);
    free(text);
    free(url);
    free(start);
    free(printed);
    free(runs);
}

static bool can_read(void)
{
    return zenity_fits() && program_exists("dbus-daemon") && file_exists("/usr/libexec/at-spi-bus-launcher");
}

static void t_only(void **state)
{
    struct model m;
    (void)state;
    if (!can_read())
        skip();
    run(&m, "only", "1");
    assert_false(m.pictures);
    assert_false(m.missing);
    assert_non_null(m.mistake);
    assert_int_equal(m.texts, 1);
    assert_true(m.omitted >= 3);
    free(m.mistake);
}

static void t_added(void **state)
{
    struct model m;
    (void)state;
    if (!can_read())
        skip();
    run(&m, "add", "3");
    assert_true(m.pictures);
    assert_false(m.missing);
    assert_non_null(m.mistake);
    free(m.mistake);
}

static void t_refused(void **state)
{
    OUTCOME(o);
    (void)state;
    program_run(&x, &o,
                WORDS("run", "Press Save", "--elements-text", "add", "--no-elements", "--fake", "x",
                      "--display", x.display));
    ONE_LINE(&o, ERR_USAGE, "--elements-text", "--no-elements");
}

static const struct CMUnitTest tests[] = {
    CLAIM("a model without vision completes a dialog by refs and gets no image", t_only),
    CLAIM("a model with vision gets elements beside its screenshots", t_added),
    CLAIM("--elements-text without elements is refused in one line", t_refused),
};

CHECK_MAIN_WITH(if (xvfb_start(&x, "640x480x24", NULL) < 0) return 0, xvfb_stop(&x))
