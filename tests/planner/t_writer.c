/* t_writer.c - the state of a window as a model without vision writes it: a tiny one, random weights. */
#include "tiny_check.h"

#include "base/file.h"
#include "plain/words.h"
#include "planner/writer.h"
#include "session/chat.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

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

/* Returns the only file of the cache; the caller frees it. */
static char *cached_file(void)
{
    struct err e = ERR_INIT;
    glob_t found;
    char *place = file_place(PLACE_CACHE, &e), *pattern = xasprintf("%s/planner-*", place);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    char *path = xstrdup(found.gl_pathv[0]);
    globfree(&found);
    free(pattern);
    free(place);
    return path;
}

static struct written reply_of(struct writer *w)
{
    struct err e = ERR_INIT;
    struct written reply;
    assert_int_equal(writer_write(w, "Window: Form\n", "do it", &form, &reply, &e), 0);
    writer_free(w);
    return reply;
}

static void t_cached(void **state)
{
    (void)state;
    struct err e = ERR_INIT;
    struct written first = reply_of(opened()), again;
    char *path = cached_file();
    for (int turn = 0; turn < 4; turn++) {
        struct session *other = session_new(engine, 1);
        if (turn == 1) /* a valid file with other tokens */
            assert_int_equal(chat_system(other, "another text", false, &e) || session_save(other, path, &e),
                             0);
        if (turn == 2)
            assert_int_equal(truncate(path, 1000), 0);
        if (turn == 3)
            assert_int_equal(file_write(path, "not a session", 13, &e), 0);
        session_free(other);
        again = reply_of(opened());
        assert_string_equal(first.cannot, again.cannot);
        for (int i = 0; i < form.n; i++)
            assert_true(first.value[i] == again.value[i] && first.p[i] == again.p[i]);
        written_free(&again);
        struct session *kept = session_load(engine, path, &e);
        assert_true(kept && session_length(kept) > 1000);
        session_free(kept);
    }
    written_free(&first);
    free(path);
}

static const struct CMUnitTest tests[] = {
    WITH_MODEL_F32("a reply has one allowed value for each line, and a question leaves no trace", t_reply),
    WITH_MODEL_F32(
        "instructions that are read from the cache give the same reply, and other files are replaced",
        t_cached),
};

CHECK_MAIN()
