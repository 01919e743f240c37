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
    for (int i = 0; i < form.n; i++) {
        assert_in_range(one.value[i], 0, form.l[i].n - 1);
        assert_true(one.p[i] > 0 && one.p[i] <= 1.0001F);
    }
    assert_true(*one.cannot && one.whole >= 0 && one.whole <= 1);
    assert_int_equal(writer_write(w, "Window: Other\n", "something else", &form, &again, &e), 0);
    written_free(&again);
    assert_int_equal(writer_write(w, "Window: Form\n", "do it", &form, &again, &e), 0);
    assert_string_equal(one.cannot, again.cannot);
    for (int i = 0; i < form.n; i++)
        assert_true(one.p[i] == again.p[i]);
    written_free(&one);
    written_free(&again);
    writer_free(w);
}

static const struct CMUnitTest tests[] = {
    WITH_MODEL_F32("a reply has one allowed value for each line, and a question leaves no trace", t_reply),
};

CHECK_MAIN()
