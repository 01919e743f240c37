/* t_jinja.c - tests the interpreter of chat templates against transformers' environment of Jinja2: 528 small
 * templates with their results (tests/golden/templates/expressions.json,
 * tests/reference/make_expressions.py).
 *
 * The interpreter may refuse a template, because the user gets the reason. It must not render other output,
 * except for the templates in tests/cases/jinja-differences.txt, which are not reproducible.
 */
#include "check.h"

#include "base/file.h"
#include "jinja/jinja.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_REFUSED = 64 };

static char *differences;

/* Renders a template; the caller frees the text. Returns NULL with e if it is refused. */
static char *render(const char *source, size_t len, const json_t *variables, struct err *e)
{
    struct jinja_arena *a = jinja_arena_new();
    struct jinja_string out;
    char *text = NULL;
    struct jinja *t = jinja_parse(source, len, e);
    struct jinja_value v = variables ? jinja_of_json(a, variables, JINJA_TEXT) : jinja_dict(a);
    if (t && jinja_render(t, a, v, &out, e) == 0)
        text = xasprintf("%.*s", (int)out.len, out.data);
    jinja_free(t);
    jinja_arena_free(a);
    return text;
}

static bool is_known_difference(const char *source)
{
    char *line = xasprintf("\n%s\n", source);
    bool known = strstr(differences, line);
    free(line);
    return known;
}

static void t_expressions(void **state)
{
    json_t *golden = json_load_file("tests/golden/templates/expressions.json", JSON_ALLOW_NUL, NULL), *c;
    size_t i, len;
    int same = 0, refused = 0, both = 0;
    assert_non_null(golden);
    assert_int_equal(file_read("tests/cases/jinja-differences.txt", 1 << 20, &differences, &len, NULL), 0);
    json_array_foreach(json_object_get(golden, "cases"), i, c)
    {
        struct err e = ERR_INIT;
        const json_t *source = json_object_get(c, "template");
        const char *want = json_string_value(json_object_get(c, "rendered"));
        char *got =
            render(json_string_value(source), json_string_length(source), json_object_get(c, "context"), &e);
        both += !got && !want;
        refused += !got && want;
        same += got && want && !strcmp(got, want);
        if (got && (!want || strcmp(got, want) != 0) && !is_known_difference(json_string_value(source)))
            fail_msg("%s\n  renders '%s'\n  instead of '%s'", json_string_value(source), got,
                     want ? want : json_string_value(json_object_get(c, "error")));
        if (!got && !*e.text)
            fail_msg("%s is refused without a reason", json_string_value(source));
        free(got);
    }
    check_note("%d outputs equal, %d refused by both, %d refused here alone", same, both, refused);
    assert_true(refused <= MAX_REFUSED && same > 280);
    json_decref(golden);
    free(differences);
}

/* Checks the origins of rendered bytes: '.' template, 't' text, 'r' reply. */
static void check_origins(const char *source, const char *want)
{
    struct err e = ERR_INIT;
    struct jinja_arena *a = jinja_arena_new();
    struct jinja_value v = jinja_dict(a), list = jinja_list(a);
    struct jinja_string out;
    jinja_set(a, v, "t", jinja_text(a, " <a>\n", 5, JINJA_TEXT));
    jinja_set(a, v, "r", jinja_text(a, "RE", 2, JINJA_REPLY));
    jinja_add(a, list, jinja_text(a, "x\"y", 3, JINJA_TEXT));
    jinja_set(a, v, "l", list);
    struct jinja *t = jinja_parse(source, strlen(source), &e);
    if (!t || jinja_render(t, a, v, &out, &e))
        fail_msg("%s", e.text);
    assert_int_equal(out.len, strlen(want));
    for (size_t i = 0; i < out.len; i++)
        if ((out.origin ? ".tr"[out.origin[i]] : '.') != want[i])
            fail_msg("%s: byte %zu of '%.*s' is not of %c", source, i, (int)out.len, out.data, want[i]);
    jinja_free(t);
    jinja_arena_free(a);
}

static void t_origins(void **state)
{
    check_origins("a{{ t }}b", ".ttttt.");
    check_origins("{{ '<' + t|trim + r ~ '>' }}", ".tttrr.");
    check_origins("{{ t[1:3] }}{{ t.upper() }}{{ (t ~ r).split('<')[1] }}", "ttttttttttrr");
    check_origins("{{ l|tojson }}", "..tttt..");
    check_origins("{{ t|replace('a', 'b') }}{{ l }}", "tt.tt.."
                                                      "ttt"
                                                      "..");
    check_origins(
        "{% set ns = namespace(x='') %}{% for c in r %}{% set ns.x = ns.x + c %}{% endfor %}{{ ns.x }}",
        "rr");
    check_origins("{% macro m(x) %}[{{ x }}]{% endmacro %}{{ m(r) }}", ".rr.");
}

static void check_refused(const char *source, const char *part)
{
    struct err e = ERR_INIT;
    char *got = render(source, strlen(source), NULL, &e);
    if (got || !strstr(e.text, part))
        fail_msg("'%.60s': '%s' instead of '%s'", source, got ? got : e.text, part);
}

static void t_refused(void **state)
{
    check_refused("{{ 'a", "line 1: a string has no closing quote");
    check_refused("\n{% if x %}", "line 2: 'elif' is missing");
    check_refused("{% set = 1 %}", "the name of a variable is missing");
    check_refused("{% include 'x' %}", "line 1: the tag 'include' is not supported");
    check_refused("a\n{{ x.y.z }}", "line 2: 'x' is undefined and has no attribute 'y'");
    check_refused("{{ x|nothing }}", "the filter 'nothing' is not supported");
    check_refused("{{ raise_exception('No user query.') }}", "refuses the conversation: No user query.");
    check_refused("{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "nested too deeply");
    check_refused(
        "{% set ns = namespace(x='abcdefgh') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "needs more than");
    char *deep = xcalloc(1, 8006);
    memset(deep, '(', 4002);
    memset(deep + 4003, ')', 4000);
    memcpy(deep, "{{", 2);
    deep[4002] = '1';
    memcpy(deep + 8003, "}}", 2);
    check_refused(deep, "nested too deeply");
    free(deep);
}

static const struct CMUnitTest tests[] = {
    CLAIM("528 templates render as with transformers, or are refused", t_expressions),
    CLAIM("each byte of the output keeps its origin", t_origins),
    CLAIM("invalid templates are refused with their line", t_refused),
};

CHECK_MAIN()
