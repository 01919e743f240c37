/* earlier_xml.c - see earlier.h: test cases of a JUnit report.
 *
 * As much of XML as such files have: one tree of elements with attributes, comments, CDATA, the five entities and
 * characters by number.  A DOCTYPE is refused, with it all entities that files can define.  Tags must match, and nothing is
 * deeper than EARLIER_MAX_DEPTH; texts between tags are passed over.
 */
#include "qa/suite/earlier.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct name {
    const char *at;
    size_t len;
};

struct xml {
    const char *text, *p, *end, *path;
    struct err *e;
    struct earlier *found;
    struct name open[EARLIER_MAX_DEPTH];
    int depth;
    bool any; /* the outermost element has been there */
    int in;   /* depth of the test case that is open, 0: none */
    struct earlier_test t;
};

static int fault(struct xml *x, const char *what)
{
    int line = 1;
    for (const char *p = x->text; p < x->p && p < x->end; p++)
        line += *p == '\n';
    return err_set(x->e, ERR_USAGE, "%s:%d: no JUnit XML: %s", x->path, line, what);
}

static bool ahead(const struct xml *x, const char *s)
{
    return (size_t)(x->end - x->p) >= strlen(s) && !memcmp(x->p, s, strlen(s));
}

/* Behind the next `s`. */
static int skip_to(struct xml *x, const char *s)
{
    const char *found = memmem(x->p, (size_t)(x->end - x->p), s, strlen(s));
    if (!found)
        return fault(x, "something does not end");
    x->p = found + strlen(s);
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void skip_space(struct xml *x)
{
    while (x->p < x->end && is_space(*x->p))
        x->p++;
}

static struct name take_name(struct xml *x)
{
    struct name n = {x->p, 0};
    while (x->p < x->end && (isalnum((unsigned char)*x->p) || (*x->p && strchr("_:.-", *x->p)) ||
                             (unsigned char)*x->p >= 0x80))
        x->p++;
    n.len = (size_t)(x->p - n.at);
    return n;
}

static bool is(struct name n, const char *s)
{
    return n.len == strlen(s) && !memcmp(n.at, s, n.len);
}

/* "&lt;" and the like, at x->p, which stands on the &. */
static int take_entity(struct xml *x, struct buf *out)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (ahead(x, known[i].name)) {
            x->p += strlen(known[i].name);
            buf_putc(out, known[i].c);
            return 0;
        }
    }
    bool hex = ahead(x, "&#x");
    if (!ahead(x, "&#"))
        return fault(x, "an entity that XML does not have itself");
    uint32_t cp = 0;
    int digits = 0;
    for (x->p += 2 + hex; x->p < x->end && (hex ? isxdigit : isdigit)((unsigned char)*x->p) && digits < 8;
         x->p++, digits++)
        cp = cp * (hex ? 16 : 10) + (uint32_t)(isdigit((unsigned char)*x->p)
                                                   ? *x->p - '0'
                                                   : tolower((unsigned char)*x->p) - 'a' + 10);
    char utf8[4];
    int n = digits && cp ? utf8_encode(cp, utf8) : 0;
    if (!n || x->p == x->end || *x->p != ';')
        return fault(x, "a character by a number that it does not have");
    x->p++;
    return buf_put(out, utf8, (size_t)n) ? fault(x, "a name is too long") : 0;
}

/* The value in quotes at x->p; what is longer than a name may be is cut, as nobody wants it. */
static int take_value(struct xml *x, struct buf *out)
{
    char quote = x->p < x->end ? *x->p : 0;
    if (quote != '"' && quote != '\'')
        return fault(x, "an attribute without a value in quotes");
    for (x->p++; x->p < x->end && *x->p != quote;) {
        if (*x->p == '<')
            return fault(x, "< in the value of an attribute");
        if (*x->p == '&') {
            if (take_entity(x, out))
                return -1;
        } else {
            buf_putc(out, *x->p && !is_space(*x->p) ? *x->p : ' ');
            x->p++;
        }
    }
    if (x->p == x->end)
        return fault(x, "the value of an attribute does not end");
    x->p++;
    return 0;
}

static int keep_text(struct xml *x, char **text, const struct buf *value)
{
    if (value->full || utf8_valid_prefix(value->data, value->len) != value->len)
        return fault(x, "the name of a test that is too long, or not UTF-8");
    free(*text);
    *text = xstrdup(value->data);
    return 0;
}

/* An attribute that a test case has. */
static int keep(struct xml *x, struct name n, const struct buf *value)
{
    if (is(n, "name"))
        return keep_text(x, &x->t.id, value);
    if (is(n, "classname"))
        return keep_text(x, &x->t.suite, value);
    if (is(n, "time")) {
        char *end = value->data;
        double v = isdigit((unsigned char)*end) ? strtod(value->data, &end) : -1;
        x->t.seconds = v >= 0 && v < 1e9 && !*end ? v : -1;
    }
    return 0;
}

static int take_attributes(struct xml *x, bool of_test)
{
    for (;;) {
        const char *before = x->p;
        skip_space(x);
        if (x->p == x->end)
            return fault(x, "a tag does not end");
        if (*x->p == '/' || *x->p == '>')
            return 0;
        struct name n = take_name(x);
        if (!n.len || before == n.at)
            return fault(x, "expected an attribute in a tag");
        skip_space(x);
        if (!ahead(x, "="))
            return fault(x, "an attribute without a value");
        x->p++;
        skip_space(x);
        struct buf value;
        buf_init(&value, EARLIER_MAX_NAME);
        int rc = take_value(x, &value);
        if (!rc && of_test)
            rc = keep(x, n, &value);
        buf_free(&value);
        if (rc)
            return rc;
    }
}

static void drop_test(struct xml *x)
{
    free(x->t.id);
    free(x->t.suite);
    x->t = (struct earlier_test){.seconds = -1, .passed = true};
    x->in = 0;
}

static int end_test(struct xml *x)
{
    struct earlier_test t = x->t;
    x->t = (struct earlier_test){.seconds = -1, .passed = true};
    x->in = 0;
    if (!t.suite)
        t.suite = xstrdup("");
    if (!t.id) {
        free(t.suite);
        return fault(x, "a testcase without a name");
    }
    return earlier_add(x->found, t) ? fault(x, "too many test cases") : 0;
}

static int open_tag(struct xml *x)
{
    x->p++;
    struct name n = take_name(x);
    bool test = is(n, "testcase");
    if (!n.len)
        return fault(x, "a < that begins nothing");
    if (!x->depth && x->any)
        return fault(x, "a second outermost element");
    if (!x->depth && !is(n, "testsuites") && !is(n, "testsuite"))
        return fault(x, "the outermost element is neither testsuites nor testsuite");
    if (x->depth == EARLIER_MAX_DEPTH)
        return fault(x, "elements are nested too deep");
    if (test && x->in)
        return fault(x, "a testcase in a testcase");
    x->any = true;
    x->open[x->depth++] = n;
    if (test)
        x->in = x->depth;
    else if (x->in == x->depth - 1 && (is(n, "failure") || is(n, "error") || is(n, "skipped")))
        x->t.passed = false;
    if (take_attributes(x, test))
        return -1;
    bool empty = *x->p == '/';
    x->p += empty;
    if (!ahead(x, ">"))
        return fault(x, "a / within a tag");
    x->p++;
    if (!empty)
        return 0;
    x->depth--;
    return test ? end_test(x) : 0;
}

static int close_tag(struct xml *x)
{
    x->p += 2;
    struct name n = take_name(x);
    skip_space(x);
    if (!ahead(x, ">"))
        return fault(x, "a tag does not end");
    if (!x->depth || x->open[x->depth - 1].len != n.len || memcmp(x->open[x->depth - 1].at, n.at, n.len) != 0)
        return fault(x, "a tag is closed that is not open");
    x->p++;
    return x->depth-- == x->in ? end_test(x) : 0;
}

static int take_text(struct xml *x)
{
    const char *p = memchr(x->p, '<', (size_t)(x->end - x->p));
    p = p ? p : x->end;
    for (; x->p < p; x->p++)
        if (!x->depth && !is_space(*x->p))
            return fault(x, "text outside of all elements");
    return 0;
}

static int take_next(struct xml *x)
{
    if (*x->p != '<')
        return take_text(x);
    if (ahead(x, "<?"))
        return skip_to(x, "?>");
    if (ahead(x, "<!--")) {
        x->p += 4;
        return skip_to(x, "-->");
    }
    if (ahead(x, "<![CDATA[") && x->depth)
        return skip_to(x, "]]>");
    if (ahead(x, "<!"))
        return fault(x, "a DOCTYPE or the like, which is not read");
    return ahead(x, "</") ? close_tag(x) : open_tag(x);
}

int earlier_xml(const char *text, size_t len, const char *path, struct earlier *p, struct err *e)
{
    struct xml x = {.text = text, .p = text, .end = text + len, .path = path, .e = e, .found = p};
    drop_test(&x);
    if (ahead(&x, "\xef\xbb\xbf"))
        x.p += 3;
    int rc = 0;
    while (!rc && x.p < x.end)
        rc = take_next(&x);
    if (!rc && (x.depth || !x.any))
        rc = fault(&x, x.any ? "it ends before its elements do" : "there is nothing in it");
    drop_test(&x);
    return rc;
}
