/* t_eval.c - tests of grounding sets: their format, the scoring of answers, and confidence intervals. */
#include "check.h"

#include "eval/eval.h"
#include "judge/vqa.h"

#include <math.h>

/* ---- scoring ------------------------------------------------------------------------------------------- */

static void t_wilson(void **state)
{
    /* Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I, score method */
    static const struct {
        int hits, n;
        double low, high;
    } published[] = {
        {81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}};
    double low, high;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        wilson(published[i].hits, published[i].n, &low, &high);
        assert_true(fabs(low - published[i].low) < 5e-5 && fabs(high - published[i].high) < 5e-5);
        wilson(published[i].n - published[i].hits, published[i].n, &low, &high); /* mirrored */
        assert_true(fabs(1 - high - published[i].low) < 5e-5 && fabs(1 - low - published[i].high) < 5e-5);
    }
    wilson(0, 0, &low, &high);
    assert_true(low <= 0 && high >= 1);
    for (int n = 1; n < 40; n++)
        for (int k = 0; k <= n; k++) {
            wilson(k, n, &low, &high);
            assert_true(low >= 0 && high <= 1 && low <= (double)k / n && (double)k / n <= high);
        }
}

static void t_box(void **state)
{
    double at[] = {10, 20, 30, 40};
    struct target t = {TARGET_BOX, at, 2, 0, 0};
    assert_true(target_holds(&t, 10, 20) && target_holds(&t, 30, 40) && target_holds(&t, 15.5, 39.999));
    assert_false(target_holds(&t, 9.999, 30) || target_holds(&t, 30.001, 30) || target_holds(&t, 15, 40.001));
    assert_true(fabs(target_distance(&t, 33, 44) - 5) < 1e-12);
    t.kind = TARGET_NONE;
    assert_false(target_holds(&t, 15, 30));
}

static void t_polygon(void **state)
{
    double bent[] = {0, 0, 40, 0, 40, 40, 20, 10, 0, 40};   /* a notch from below */
    double star[] = {50, 0, 79, 90, 2, 35, 98, 35, 21, 90}; /* a pentagram; its centre is outside */
    struct target t = {TARGET_POLY, bent, 5, 0, 0}, s = {TARGET_POLY, star, 5, 0, 0};
    assert_true(target_holds(&t, 5, 20) && target_holds(&t, 35, 20));
    assert_false(target_holds(&t, 20, 20) || target_holds(&t, -1, 5) || target_holds(&t, 41, 5));
    assert_true(target_holds(&t, 20, 0) && target_holds(&t, 40, 17) &&
                target_holds(&t, 20, 10)); /* on an edge */
    assert_true(target_holds(&t, 10, 25)); /* on a diagonal edge */
    assert_true(fabs(target_distance(&t, 45, 20) - 5) < 1e-12);
    assert_true(target_holds(&s, 50, 20));
    assert_false(target_holds(&s, 50, 50));
}

static struct eval_answer judged(const char *dialect, const struct target *t, const char *reply, int w, int h)
{
    struct err e = ERR_INIT;
    struct eval_answer a = {0};
    struct dialect *d = dialect_load(dialect, &e);
    if (!d)
        fail_msg("%s", e.text);
    eval_score(t, d, reply, w, h, &a);
    dialect_free(d);
    return a;
}

static void t_judge(void **state)
{
    double thin[] = {320.5, 100, 320.9, 300}, parts[] = {0.25, 0.25, 0.5, 0.5}, large[] = {960, 0, 980, 1080};
    const struct target t = {TARGET_BOX, thin, 2, 0, 0}, f = {TARGET_BOX, parts, 2, 1, 1},
                        l = {TARGET_BOX, large, 2, 1920, 1080}, none = {0};
    struct eval_answer a = judged("holo3", &t, "{\"x\": 501, \"y\": 500}", 640, 480);
    assert_true(a.correct && a.placed && fabs(a.x - 320.64) < 1e-9 && fabs(a.y - 240) < 1e-9);
    a = judged("holo3", &t, "{\"x\": 502, \"y\": 500}", 640, 480);
    assert_true(!a.correct && !a.wrong_format && fabs(a.distance - 0.38) < 1e-9);
    assert_true(judged("holo3", &f, "{\"x\": 250, \"y\": 500}", 33, 77).correct);
    assert_false(judged("holo3", &f, "{\"x\": 249, \"y\": 500}", 33, 77).correct);
    assert_true(judged("holo3", &l, "{\"x\": 501, \"y\": 5}", 640, 480).correct);
    assert_true(judged("openai-computer", &l, "Click(321, 5)", 640, 480).correct);
    assert_true(judged("pocket-wide", &l, "only step<click>Save<at><20><.2><1><.5>\n", 640, 480).correct);

    a = judged("holo3", &t, "Click(1200, 5)", 640, 480);
    assert_true(a.wrong_format && !a.correct && !a.placed);
    a = judged("holo3", &t, "it is at the top", 640, 480);
    assert_true(a.wrong_format && !a.correct);
    assert_true(judged("holo3", &none, " None.\n", 640, 480).correct);
    assert_true(judged("pocket-wide", &none, "<missing>Save", 640, 480).correct);
    a = judged("pocket-wide", &t, "<missing>Save", 640, 480);
    assert_true(!a.correct && !a.wrong_format && !a.placed);
    assert_false(judged("holo3", &none, "none of these", 640, 480).correct);
    assert_false(judged("holo3", &none, "{\"x\": 1, \"y\": 1}", 640, 480).correct);
    a = judged("holo3", &t, "none", 640, 480);
    assert_true(!a.correct && !a.wrong_format);
}

/* ---- sets ---------------------------------------------------------------------------------------------- */

#define HEAD "{\"image\": \"a.png\", \"instruction\": \"Save\", "

static void t_refused(void **state)
{
    static const struct {
        const char *line, *because;
    } bad[] = {
        {"{", "not JSON"},
        {"[1]", "not a JSON object"},
        {"{\"image\": \"a.png\", \"image\": \"b.png\"}", "not JSON"},
        {"{\"instruction\": \"Save\", \"box\": null}", "'image'"},
        {"{\"image\": \"\", \"instruction\": \"Save\", \"box\": null}", "'image'"},
        {"{\"image\": \"a.png\", \"box\": null}", "'instruction'"},
        {"{\"image\": \"a.png\", \"instruction\": 7, \"box\": null}", "'instruction'"},
        {HEAD "\"bbox\": [1, 2, 3, 4]}", "neither 'box' nor 'poly'"},
        {HEAD "\"box\": [1, 2, 3, 4], \"poly\": [1, 2, 3, 4, 5, 6]}", "both"},
        {HEAD "\"box\": \"1 2 3 4\"}", "list of numbers"},
        {HEAD "\"box\": [1, 2, 3]}", "3 numbers"},
        {HEAD "\"box\": [1, 2, 3, 4, 5, 6]}", "[x1, y1, x2, y2]"},
        {HEAD "\"box\": [100, 20, 30, 40]}", "not a width"},
        {HEAD "\"box\": [1, 2, 3, 1e400]}", "JSON"},
        {HEAD "\"box\": [1, 2, 3, 1e9]}", "between"},
        {HEAD "\"box\": [1, 2, 3, \"4\"]}", "between"},
        {HEAD "\"poly\": [1, 2, 3, 4]}", "3 corners"},
        {HEAD "\"box\": null, \"w\": 640}", "'w' and 'h'"},
        {HEAD "\"box\": null, \"w\": 640, \"h\": 0}", "'w' and 'h'"},
        {HEAD "\"box\": null, \"w\": 640, \"h\": \"480\"}", "'w' and 'h'"},
        {HEAD "\"box\": null, \"tags\": [\"web\"]}", "'tags'"},
        {HEAD "\"box\": null, \"tags\": {\"platform\": {\"a\": 1}}}", "'platform'"},
        {HEAD "\"box\": null, \"id\": 1.5}", "'id'"},
        {HEAD "\"box\": null, \"id\": \"1\"}", "also on line 1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct err e = ERR_INIT;
        struct eval_set s;
        char *text = xasprintf(HEAD "\"box\": null, \"id\": 1}\n%s\n", bad[i].line);
        int rc = eval_set_parse(&s, text, strlen(text), "set", &e);
        if (rc == 0 || !strstr(e.text, bad[i].because) || !strstr(e.text, "line 2"))
            fail_msg("%s: %d %s", bad[i].line, rc, e.text);
        assert_int_equal(e.kind, ERR_USAGE);
        eval_set_free(&s);
        free(text);
    }
}

static void t_limits(void **state)
{
    struct err e = ERR_INIT;
    struct eval_set s;
    struct buf text;
    buf_init(&text, 64 << 20);
    buf_puts(&text, HEAD "\"box\": null, \"note\": \"");
    while (text.len < 20 << 20)
        buf_puts(&text, "0123456789abcdef");
    buf_puts(&text, "\"}\n");
    assert_int_equal(eval_set_parse(&s, text.data, text.len, "set", &e), -1);
    assert_non_null(strstr(e.text, "longer than"));
    eval_set_free(&s);

    buf_clear(&text);
    buf_puts(&text, HEAD "\"poly\": [1, 2");
    for (int i = 0; i < EVAL_MAX_CORNERS; i++)
        buf_puts(&text, ", 3, 4");
    buf_puts(&text, "]}");
    assert_int_equal(eval_set_parse(&s, text.data, text.len, "set", &e), -1);
    eval_set_free(&s);

    buf_clear(&text);
    for (int i = 0; i < 100000; i++)
        buf_putc(&text, '[');
    assert_int_equal(eval_set_parse(&s, text.data, text.len, "set", &e), -1);
    assert_non_null(strstr(e.text, "not JSON: maximum parsing depth"));
    eval_set_free(&s);

    assert_int_equal(eval_set_parse(&s, "", 0, "set", &e), -1);
    assert_non_null(strstr(e.text, "no items"));
    eval_set_free(&s);
    assert_int_equal(eval_set_parse(&s, " \n\r\n\n", 5, "set", &e), -1);
    assert_non_null(strstr(e.text, "no items"));
    eval_set_free(&s);
    buf_free(&text);
}

static void t_set(void **state)
{
    static const char text[] =
        HEAD "\"box\": [1, 2, 3, 4], \"source\": \"x\", \"also\": 1}\r\n\n" HEAD
             "\"poly\": [1, 2, 3, 4, 5, 6], \"id\": 77, \"w\": 1, \"h\": 1}\n" HEAD "\"box\": null}";
    struct err e = ERR_INIT;
    struct eval_set s;
    if (eval_set_parse(&s, text, strlen(text), "set", &e))
        fail_msg("%s", e.text);
    assert_int_equal(s.n, 3);
    assert_string_equal(s.items[0].id, "1");
    assert_string_equal(s.items[1].id, "77");
    assert_string_equal(s.items[2].id, "4");
    assert_int_equal(s.items[0].target.kind, TARGET_BOX);
    assert_int_equal(s.items[1].target.kind, TARGET_POLY);
    assert_int_equal(s.items[2].target.kind, TARGET_NONE);
    assert_int_equal(json_object_size(s.unknown), 2);
    assert_non_null(json_object_get(s.unknown, "source"));
    eval_set_free(&s);
}

/* ---- confidence ---------------------------------------------------------------------------------------- */

/* Returns vqa_confidence for a reply of four tokens with these probabilities; the third and fourth are
 * coordinates. */
static double sure_of(const char *dialect, const char *const tokens[4], bool forced)
{
    static const float p[4] = {0.9F, 0.8F, 0.3F, 0.2F};
    struct err e = ERR_INIT;
    struct token_choice choices[4] = {{0}};
    struct vqa v = {.dialect = dialect_load(dialect, &e)};
    double confidence = -1;
    assert_non_null(v.dialect);
    buf_init(&v.reply.text, 1 << 10);
    for (int i = 0; i < 4; i++) {
        buf_puts(&v.reply.text, tokens[i]);
        choices[i] = (struct token_choice){
            .logprob = logf(p[i]), .end = (uint32_t)v.reply.text.len, .forced = forced && i == 1};
    }
    v.reply.choices = choices;
    v.reply.n = 4;
    assert_true(vqa_confidence(&v, &confidence));
    v.reply.choices = NULL;
    double unknown;
    assert_false(vqa_confidence(&v, &unknown)); /* a server gives no probabilities */
    buf_free(&v.reply.text);
    dialect_free(v.dialect);
    return confidence;
}

static void t_confidence(void **state)
{
    static const char *const marks[] = {"<click>", "OK<at>", "<12><.3>", "<20><.0>"},
                             *const gone[] = {"<missing>", "O", "K", "!"},
                             *const json[] = {"{\"x\": ", "1", "2, \"y\": ", "34}"};
    assert_true(fabs(sure_of("pocket-wide", marks, false) - 0.9 * 0.8) < 1e-6);
    assert_true(fabs(sure_of("pocket-wide", marks, true) - 0.9) < 1e-6);
    assert_true(fabs(sure_of("pocket-wide", gone, false) - 0.9 * 0.8 * 0.3 * 0.2) < 1e-6);
    assert_true(fabs(sure_of("anthropic-computer", json, false) - 0.9 * 0.8 * 0.3 * 0.2) < 1e-6);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the embedded model's confidence ignores coordinate tokens and counts all others", t_confidence),
    CLAIM("Wilson's interval has the published values", t_wilson),
    CLAIM("the edges of a box belong to it", t_box),
    CLAIM("polygons use the even-odd rule, and their edges belong to them", t_polygon),
    CLAIM("a position is mapped exactly into the target's image; replies without one are wrong", t_judge),
    CLAIM("an invalid line is refused with its number and the reason", t_refused),
    CLAIM("huge lines, deep nesting, long polygons and empty files are refused", t_limits),
    CLAIM("ids, targets and unknown fields are read", t_set),
};

CHECK_MAIN()
