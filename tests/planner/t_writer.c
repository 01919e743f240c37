/* t_writer.c - the state of a window as a model without vision writes it: a tiny one, random weights. */
#include "tiny_check.h"

#include "plain/words.h"
#include "planner/writer.h"

#include <math.h>

static struct form_value name_values[] = {{(char *)"\"\""}, {(char *)"\"Ana\""}, {(char *)"\"Ana Lima\""}},
                         size_values[] = {{(char *)"Small"}, {(char *)"Large"}},
                         tick_values[] = {{(char *)"no"}, {(char *)"yes"}};

static const struct form form = {.l = {{.kind = LINE_FIELD, .name = "Name", .v = name_values, .n = 3},
                                       {.kind = LINE_LIST, .name = "Size = 'x'", .v = size_values, .n = 2},
                                       {.kind = LINE_TICK, .name = "A > B", .v = tick_values, .n = 2}},
                                 .n = 3};

static struct writer *opened(void)
{
    struct err e = ERR_INIT;
    struct writer *w = writer_open(engine, NULL, &e);
    if (!w)
        fail_msg("%s", e.text);
    return w;
}

static void t_reply(void **state)
{
    (void)state;
    struct writer *w = opened();
    struct err e = ERR_INIT;
    struct written one, again;
    if (writer_write(w, "Window: Form\n", "do it", &form, &one, &e))
        fail_msg("%s", e.text);
    struct buf b;
    buf_init(&b, 4096);
    for (int i = 0; i < form.n; i++) {
        assert_in_range(one.value[i], 0, form.l[i].n - 1);
        assert_true(one.p[i] > 0 && one.p[i] <= 1.0001F);
        buf_printf(&b, "%s = %s\n", form.l[i].name, form.l[i].v[one.value[i]].text);
    }
    assert_string_equal(one.text, b.data);
    assert_int_equal(writer_write(w, "Window: Other\n", "something else", &form, &again, &e), 0);
    written_free(&again);
    assert_int_equal(writer_write(w, "Window: Form\n", "do it", &form, &again, &e), 0);
    assert_string_equal(one.text, again.text);
    for (int i = 0; i < form.n; i++)
        assert_true(one.p[i] == again.p[i]);
    written_free(&one);
    written_free(&again);
    buf_free(&b);
    writer_free(w);
}

static void t_score(void **state)
{
    (void)state;
    struct writer *w = opened();
    struct err e = ERR_INIT;
    double a, same, other;
    assert_int_equal(writer_score(w, "Window: Form\n", "one two", "Name = \"\"\n", &a, &e), 0);
    assert_int_equal(writer_score(w, "Window: Form\n", "one", "Name = \"\"\n", &other, &e), 0);
    assert_int_equal(writer_score(w, "Window: Form\n", "one two", "Name = \"\"\n", &same, &e), 0);
    check_note("%.4f %.4f", a, other);
    assert_true(a < 0 && a == same && a != other);
    writer_free(w);
}

static const struct CMUnitTest tests[] = {
    WITH_MODEL_F32("a reply has one allowed value for each line, and a question leaves no trace", t_reply),
    WITH_MODEL_F32("the score of a reply depends on the request alone", t_score),
};

CHECK_MAIN()
