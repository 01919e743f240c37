/* t_coverage.c - tests of finding names in the task that no reply mentions (src/pocket/task_names.h), with
 * synthetic patch maps, and a run in which the embedded model would repeat itself without coverage.c. */
#include "check.h"
#include "drawn_maps.h"
#include "program.h"

#include "base/file.h"
#include "pocket/task_names.h"
#include "trace/index.h"
#include "trace/read.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- words --------------------------------------------------------------------------------------------- */

static void t_spoken(void **state)
{
    static const struct {
        const char *text, *words;
        int at; /* -1: not found */
    } cases[] = {{"Tick Egg and egg", "EGG", 13},
                 {"Tick Eggs", "Egg", -1},
                 {"(Egg)", "egg", 1},
                 {"an Egg 24", "Egg 24", 3},
                 {"an Egg 245", "Egg 24", -1},
                 {"Zi", "", -1},
                 {"pick \xc3\xa9tage", "tage", -1},
                 {"", "Egg", -1},
                 {"x-ray", "ray", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = words_find_last(cases[i].text, cases[i].words);
        check_note("\"%s\" in \"%s\"", cases[i].words, cases[i].text);
        assert_int_equal(found ? (int)(found - cases[i].text) : -1, cases[i].at);
    }
    assert_int_equal(words_count("from Rome to rome, Romeo", "Rome"), 2);
    assert_int_equal(words_count("from Rome", ""), 0);
    char *words = reply_words("step 1<write>City<at><9><.5><21><.6>Rome 5\n");
    assert_string_equal(words, "step 1\nCity\n\n\n\n\nRome 5\n");
    free(words);
    words = reply_words("a < b");
    assert_string_equal(words, "a < b");
    free(words);
}

static void t_conditions(void **state)
{
    assert_true(task_has_conditions("Press OK, not Cancel"));
    assert_true(task_has_conditions("Press Yes or No"));
    assert_true(task_has_conditions("If there is a Save, press it"));
    assert_true(task_has_conditions("Don't press Delete"));
    assert_true(task_has_conditions("Tick what isn't red"));
    assert_false(task_has_conditions("Type n'tara into City"));
    assert_false(task_has_conditions("Tick Note and Orchid, then press Onlyx"));
}

static void t_pieces(void **state)
{
    static const char task[] = "Book the 9:00 flight from Slu to Rome on 19 June, for Stoo Crisde";
    static const struct {
        const char *said, *piece;
        bool is;
    } cases[] = {{"", "Slu to Rome", true},    {"", "19 June", true},         {"", "Stoo Crisde", true},
                 {"", "June, for", false},     {"", "Book", false},           {"", "for Stoo", false},
                 {"", "Book the 9:00", false}, {"Slu", "Slu to Rome", false}, {"slu\n9:00", "Rome", true},
                 {"Crisde", "Stoo", true}};
    char pieces[64][TASK_NAME];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = task_pieces(task, cases[i].said, pieces, 64);
        bool found = false;
        for (int k = 0; k < n; k++)
            found = found || !strcmp(pieces[k], cases[i].piece);
        check_note("reply \"%s\": %d pieces, \"%s\" %s", cases[i].said, n, cases[i].piece,
                   found ? "too" : "not");
        assert_int_equal(found, cases[i].is);
    }
    assert_int_equal(task_pieces("Type Rome into City and press Done", "City", pieces, 8), 1);
    assert_string_equal(pieces[0], "Rome");
    assert_int_equal(task_pieces(task, "", pieces, 3), 3);
    assert_int_equal(task_pieces("", "", pieces, 3), 0);
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* A form: a checkbox, a field, its label, a button, and a line of plain text. */
static struct seen form(void)
{
    struct patch_map m = empty_map(24, 40);
    put_text(&m, "Please tick what you want", 20, 20);
    put_name(&m, "Amber Zi", 60, 56, 3, 1, false);
    put_element(&m, ELEMENT_CHECK, 0.9f, 3, 1, 1, 1);
    put_name(&m, "Weekday", 20, 104, 6, 14, false);
    put_element(&m, ELEMENT_FIELD, 0.9f, 6, 12, 2, 12);
    put_name(&m, "Finish", 40, 152, 9, 4, false);
    put_element(&m, ELEMENT_BUTTON, 0.9f, 9, 2, 2, 6);
    return (struct seen){m, text_read(&m)};
}

static void t_left_out(void **state)
{
    static const char task[] = "Please tick Amber Zi, enter 4:15 in Weekday and press Finish.";
    static const struct {
        const char *said, *until, *name; /* until NULL: the whole task; name NULL: nothing is omitted */
        bool field, button;
    } cases[] = {{"", NULL, "Amber Zi", false, false},
                 {"\nAMBER ZI\n", NULL, "Weekday", true, false},
                 {"Amber Zi\nWeekday", NULL, "Finish", false, true},
                 {"Amber Zi\nWeekday", "Finish", NULL, false, false},
                 {"Finish", "Weekday", "Amber Zi", false, false},
                 {"Amber Zi\n4:15\nWeekday\nFinish", NULL, NULL, false, false},
                 {"Amber\nWeekday\nFinish", NULL, NULL, false, false}}; /* part of a name suffices */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen s = form();
        struct thing thing = {.p = 0};
        char name[TASK_NAME] = "";
        int until = (int)(cases[i].until ? strstr(task, cases[i].until) - task : (int)strlen(task));
        bool left_out = task_unmentioned(task, until, cases[i].said, &s, name, &thing);
        check_note("reply \"%s\": \"%s\" is omitted", cases[i].said, name);
        assert_int_equal(left_out, cases[i].name != NULL);
        if (left_out) {
            assert_string_equal(name, cases[i].name);
            assert_int_equal(thing.field, cases[i].field);
            assert_int_equal(thing.button, cases[i].button);
        }
        text_free(&s.text);
        patch_map_free(&s.map);
    }
}

/* Tests a misread letter, a comma inside a name, a name that is too long, and a task without words. */
static void t_nearly(void **state)
{
    static const struct {
        const char *task, *name;
    } cases[] = {{"Fill in Weekdoy", "Weekdoy"},
                 {"Fill in Weekdoyxy", NULL},
                 {"Tick Amber, Zi", "Amber"},
                 {"press Finishing", NULL},
                 {"Type a into Finesh", "Finesh"},
                 {"", NULL},
                 {" , . ", NULL},
                 {"Tick Amberxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct seen s = form();
        struct thing thing;
        char name[TASK_NAME] = "";
        bool left_out = task_unmentioned(cases[i].task, (int)strlen(cases[i].task), "", &s, name, &thing);
        check_note("\"%s\": \"%s\"", cases[i].task, name);
        assert_int_equal(left_out, cases[i].name != NULL);
        if (left_out)
            assert_string_equal(name, cases[i].name);
        text_free(&s.text);
        patch_map_free(&s.map);
    }
}

/* ---- a run --------------------------------------------------------------------------------------------- */

/* In this dialog the embedded model fills the third field with the text of the second, unless it is
 * corrected. */
#define TASK "Type auk into Croovsal, 3:58 into Klooba and Spauv Zugbert into Video, then press Finish"
#define PAGE                                                                                                 \
    "dialog.html?seed=1100047&kind=fields&text=Left%20printer%20undone%20piano%3F"                           \
    "&labels=Croovsal%7CKlooba%7CVideo&buttons=Finish"

static void t_typed_again(void **state)
{
    struct xvfb x;
    struct outcome o = {0};
    if (access(helper_path("form"), X_OK) || xvfb_start(&x, "640x480x24", NULL))
        skip();
    const char *form[] = {helper_path("form"), PAGE, NULL};
    assert_true(xvfb_spawn(&x, "form.log", form) > 0);
    assert_true(xvfb_wait_window(&x, "^DIALOG"));
    char *runs = xvfb_place(&x, "runs");
    program_run(
        &x, &o,
        WORDS("run", TASK, "--model", "assets/pocket/model", "--runs", runs, "-q", "-n", "3", "--no-report"));
    assert_int_equal(o.code, ERR_STEPS);
    char *run = record_newest(runs, NULL), *path = xasprintf("%s/events.jsonl", run), *events;
    size_t len;
    assert_int_equal(file_read(path, 1 << 20, &events, &len, NULL), 0);
    const char *cover = strstr(events, "\"kind\": \"assist\"");
    assert_non_null(cover);
    check_note("%.*s", (int)strcspn(cover, "}"), cover);
    assert_non_null(strstr(cover, "\"taken\": true"));
    assert_non_null(strstr(cover, "write \\\"Spauv Zugbert\\\" into \\\"Video\\\""));
    program_run(&x, &o, WORDS("replay", run, "--verify", "-q"));
    check_note("%s", o.out);
    assert_int_equal(o.code, 0);
    outcome_free(&o);
    free(events);
    free(path);
    free(run);
    free(runs);
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("words are found as words of their own, in any case, without punctuation", t_spoken),
    CLAIM("pieces of a task that no reply mentions contain no punctuation and no fillers at their ends",
          t_pieces),
    CLAIM("a task with a condition is distinguished from a list of actions", t_conditions),
    CLAIM("the first thing that a task names and no reply mentions is found, up to an offset", t_left_out),
    CLAIM("a text that was typed before is replaced by other text of the task, reproducibly", t_typed_again),
    CLAIM("a name may be misread slightly; plain text, split and longer names do not match", t_nearly),
};

CHECK_MAIN()
