/* t_locate.c - tests of finding an element by its name (locate.h): decoding of letters, compared with
 * tests/reference/make_locate.py on a real screen (tests/golden/locate.json), and element positions
 * on synthetic maps. */
#include "check.h"
#include "drawn_maps.h"

#include "llm/llm.h"
#include "pocket/private.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN "tests/golden/locate.json"

/* Corrects an element's position (x, y) and returns the result; frees the map. */
static struct at {
    double x, y;
    bool moved;
} found(struct patch_map *m, enum locate_for what, const char *name, double x, double y)
{
    struct at at = {x, y, false};
    at.moved = locate(m, name, what, &at.x, &at.y) == LOCATED_ELSEWHERE;
    check_note("\"%s\" at %.0f,%.0f found at %.0f,%.0f", name, x, y, at.x, at.y);
    patch_map_free(m);
    return at;
}

static bool within(struct at at, double x, double y, double by)
{
    return fabs(at.x - x) <= by && fabs(at.y - y) <= by;
}

/* ---- letters ------------------------------------------------------------------------------------------- */

static void t_decode(void **state)
{
    json_t *root = json_load_file(GOLDEN, 0, NULL), *claim, *letter;
    assert_non_null(root);
    struct patch_map m = empty_map((int)json_integer_value(json_object_get(root, "rows")),
                                   (int)json_integer_value(json_object_get(root, "cols")));
    size_t i;
    json_array_foreach(json_object_get(root, "claims"), i, claim)
    {
        int row = (int)json_integer_value(json_array_get(claim, 0)),
            col = (int)json_integer_value(json_array_get(claim, 1));
        struct patch_reading *p = &m.patches[row / 2 * m.cols + col / PATCH_SLOTS_ACROSS];
        int slot = row % 2 * PATCH_SLOTS_ACROSS + col % PATCH_SLOTS_ACROSS;
        p->present[slot] = (float)json_number_value(json_array_get(claim, 2));
        p->shift[slot] = (float)json_number_value(json_array_get(claim, 3));
        p->letter[slot] = (uint8_t)json_integer_value(json_array_get(claim, 4));
    }
    struct picture_text t = text_read(&m);
    json_t *want = json_object_get(root, "letters");
    int same = 0;
    json_array_foreach(want, i, letter)
    {
        double x = json_number_value(json_array_get(letter, 0)),
               y = json_number_value(json_array_get(letter, 1));
        char c = (char)(json_integer_value(json_array_get(letter, 2)) + 32);
        for (int k = 0; k < t.n; k++)
            same += fabs((double)t.letters[k].x - x) < 0.01 && fabs((double)t.letters[k].y - y) < 0.01 &&
                    t.letters[k].c == c;
    }
    check_note("%d letters, %d of them as in the reference, %d lines", t.n, same, t.n_lines);
    assert_int_equal(t.n, json_array_size(want));
    assert_int_equal(same, t.n);
    text_free(&t);
    patch_map_free(&m);
    json_decref(root);
}

static void t_names(void **state)
{
    static const struct {
        const char *name;
        int times;
        float cost;
    } cases[] = {{"Save as", 1, 0}, {"saveas", 1, 0}, {"Sava as", 1, 1}, {"Save", 1, 0},    {"Zeario", 2, 0},
                 {"Zeariom", 2, 0}, {"OK", 2, 0},     {"Paris", 0, 0},   {"ve as", 1, 0.8f}};
    struct patch_map m = empty_map(12, 30);
    put_text(&m, "Save as", 20, 20);
    put_text(&m, "Zeariom", 20, 60);
    put_text(&m, "Zeario", 20, 100);
    put_text(&m, "OK", 20, 140);
    put_text(&m, "OK", 200, 140);
    struct picture_text t = text_read(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct written w[LOCATE_PLACES];
        int n = text_find(&t, cases[i].name, 0.25f, w);
        check_note("\"%s\": %d, cost %.1f", cases[i].name, n, n ? (double)w[0].cost : 0.0);
        assert_int_equal(n, cases[i].times);
        assert_true(!n || fabsf(w[0].cost - cases[i].cost) < 0.01f);
    }
    text_free(&t);
    patch_map_free(&m);
}

/* ---- clicks -------------------------------------------------------------------------------------------- */

static void t_twin(void **state)
{
    for (int said = 0; said < 2; said++) {
        struct patch_map m = empty_map(10, 40);
        put_name(&m, "Zeario", 60, 40, 2, 5, false);
        put_name(&m, "Zeariom", 260, 40, 2, 18, false);
        struct at at = found(&m, LOCATE_CLICK, said ? "Zeario" : "Zeariom", said ? 290 : 80, 42);
        assert_true(at.moved && within(at, said ? 88 : 296, 40, 1));
    }
}

static struct patch_map stack_of_ticks(void)
{
    struct patch_map m = empty_map(12, 40);
    static const char *const names[] = {"Qotex", "Xrjob", "Cegmex"};
    for (int i = 0; i < 3; i++)
        put_name(&m, names[i], 60, 40 + 16 * i, 2 + i, 1, true);
    return m;
}

static void t_tick(void **state)
{
    struct patch_map m = stack_of_ticks();
    struct at at = found(&m, LOCATE_CLICK, "Xrjob", 15, 70);
    assert_true(at.moved && within(at, 32, 56, 1)); /* between the centres of two patches */
    m = stack_of_ticks();
    assert_true(within(found(&m, LOCATE_CLICK, "Cegmex", 41, 70), 32, 72, 1)); /* slightly beside it */
    m = stack_of_ticks();
    assert_false(found(&m, LOCATE_CLICK, "Cegmex", 70, 74).moved); /* on its label, which counts as well */
}

static void t_stays(void **state)
{
    struct patch_map m = stack_of_ticks();
    put_element(&m, ELEMENT_BUTTON, 0.9f, 8, 20, 2, 6);
    struct patch_map again = stack_of_ticks();
    put_element(&again, ELEMENT_BUTTON, 0.9f, 8, 20, 2, 6);
    assert_false(
        found(&m, LOCATE_CLICK, "Nothing", 350, 145).moved); /* on the button, whose name cannot be read */
    assert_true(
        within(found(&again, LOCATE_CLICK, "", 340, 112), 344, 136, 8)); /* on the background above it */
    m = empty_map(6, 20);
    assert_false(found(&m, LOCATE_TYPE, "City", 50, 50).moved);
}

/* Instructions on the page and typed text are not labels. */
static void t_plain(void **state)
{
    struct patch_map m = empty_map(16, 40);
    put_text(&m, "Click the textbox", 20, 20);
    put_element(&m, ELEMENT_SHAPE, 0.9f, 10, 10, 3, 3);
    assert_false(found(&m, LOCATE_CLICK, "textbox", 180, 180).moved);
    m = empty_map(16, 40);
    put_text(&m, "Send", 40, 40);
    put_name(&m, "Send", 60, 200, 12, 4, false);
    struct at at = found(&m, LOCATE_CLICK, "Send", 66, 50);
    assert_true(at.moved && within(at, 72, 200, 1));
    m = empty_map(16, 40); /* the name is typed in a field and is on the button to press */
    put_name(&m, "Send", 60, 40, 2, 4, false);
    put_name(&m, "Send", 60, 200, 12, 4, false);
    assert_false(found(&m, LOCATE_CLICK, "Send", 66, 196).moved);
}

/* Of two elements with the same name the nearer one is used, unless its probability is much lower. */
static void t_nearer(void **state)
{
    for (int doubt = 0; doubt <= 20; doubt += 20) { /* 20: plain text with a probability of one half */
        struct patch_map m = empty_map(16, 40);
        put_name(&m, "Edit", 400, 40, 2, 30, false);
        put_name(&m, "Edit", 60, 200, 12, 10, false);
        for (int col = 3; col <= 5; col++)
            m.patches[12 * m.cols + col].pointer.nothing = (float)(doubt ? 41.5 : 0);
        struct at at = found(&m, LOCATE_CLICK, "Edit", 240, 140);
        assert_true(at.moved && (doubt ? within(at, 488, 40, 1) : within(at, 168, 200, 1)));
    }
}

static bool says_otherwise(const char *on_it, const char *elsewhere, enum element_kind kind, const char *name)
{
    struct patch_map m = empty_map(16, 40);
    put_text(&m, on_it, 60, 40);
    put_element(&m, kind, 0.9f, 1, 2, 3, 8);
    put_text(&m, elsewhere, 60, 200);
    double x = 80, y = 40;
    bool otherwise = locate(&m, name, LOCATE_CLICK, &x, &y) == LOCATED_NOWHERE;
    check_note("\"%s\" on it, \"%s\" elsewhere, asked for \"%s\": %s", on_it, elsewhere, name,
               otherwise ? "otherwise" : "may be");
    patch_map_free(&m);
    return otherwise;
}

static void t_otherwise(void **state)
{
    assert_true(says_otherwise("Delete", "Sure?", ELEMENT_BUTTON, "OK"));
    assert_true(says_otherwise("Delete", "Sure?", ELEMENT_BUTTON, "Save as"));
    assert_false(
        says_otherwise("Delete", "Save as", ELEMENT_BUTTON, "Save as")); /* on the page, so it may be meant */
    assert_false(says_otherwise("Dalete", "", ELEMENT_BUTTON, "Delete"));            /* misread */
    assert_false(says_otherwise("Save      Close it", "", ELEMENT_BUTTON, "Saved")); /* two labels */
    assert_true(says_otherwise("No", "Look here", ELEMENT_BUTTON, "OK"));
    assert_false(says_otherwise("Odd", "", ELEMENT_BUTTON, "Odd for -2"));
    assert_false(says_otherwise("Odd", "", ELEMENT_BUTTON, ""));
    assert_false(says_otherwise("CK", "", ELEMENT_BUTTON, "OK"));
    assert_false(says_otherwise("", "", ELEMENT_BUTTON, "Save")); /* may be an icon */
    assert_false(says_otherwise("Delete", "", ELEMENT_ITEM, "the first"));
    drawn_faint = 0.5f;
    assert_false(says_otherwise("Delete", "Sure?", ELEMENT_BUTTON, "OK")); /* uncertain text */
    drawn_faint = 0.98f;
}

/* ---- fields -------------------------------------------------------------------------------------------- */

static void t_field(void **state)
{
    static const struct {
        int row, col; /* of the field with the label City */
        double x, y;  /* position in the reply */
        bool moves;
    } cases[] = {
        {2, 12, 400, 90, true}, {4, 2, 50, 40, true}, {2, 12, 300, 36, false}, {2, 30, 50, 40, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int row = cases[i].row, col = cases[i].col;
        struct patch_map m = empty_map(12, 40);
        put_name(&m, "City", 40, 40, row, col, false);
        put_element(&m, ELEMENT_FIELD, 0.8f, row, col, 1, 8);
        put_element(&m, ELEMENT_FIELD, 0.8f, 5, 20, 1, 8); /* another field */
        struct at at = found(&m, LOCATE_TYPE, "City", cases[i].x, cases[i].y);
        assert_int_equal(at.moved, cases[i].moves);
        assert_true(!at.moved || within(at, col * DRAWN_SIDE + 8, row * DRAWN_SIDE + 8, 1));
    }
}

/* The pointer head is undecided between two positions, one of them certainly a field. */
static void t_field_kind(void **state)
{
    for (int twice = 0; twice < 2; twice++) {
        struct patch_map m = empty_map(12, 40);
        put_name(&m, "City", 40, 40, 2, 20, false);
        for (int col = 2; col <= 4; col++)
            m.patches[2 * m.cols + col].pointer.right[POINTER_FAR + 30 - col] =
                19; /* a third of the other pointer's weight */
        put_element(&m, ELEMENT_FIELD, 0.8f, 2, 30, 1, 6);
        if (twice)
            put_element(&m, ELEMENT_FIELD, 0.8f, 2, 18, 1, 6);
        assert_true(within(found(&m, LOCATE_TYPE, "City", 50, 44), twice ? 328 : 488, 40, 1));
    }
}

/* The label is in a heading as well, or far before its field: the pointer decides. */
static void t_field_meant(void **state)
{
    for (int far = 0; far < 2; far++) {
        struct patch_map m = empty_map(12, 40);
        put_name(&m, "To", 300, 20, 1, 10, false);
        put_name(&m, "To", 300, 104, 7, far ? 14 : 24, false);
        put_element(&m, ELEMENT_FIELD, 0.8f, 7, 24, 1, 8);
        struct at at = found(&m, LOCATE_TYPE, "To", 305, 100);
        assert_true(far ? !at.moved : at.moved && within(at, 392, 120, 1));
    }
}

/* A field that is not detected is located by its label's pointer.  A position without a name moves to a
 * nearby field; one with a name that is not on the screen does not move. */
static void t_field_unknown(void **state)
{
    struct patch_map m = empty_map(12, 40);
    put_name(&m, "City", 40, 40, 2, 20, false);
    assert_true(within(found(&m, LOCATE_TYPE, "City", 50, 44), 328, 40, 1));
    m = empty_map(12, 40); /* the text is hardly readable; a click needs a better match */
    put_name(&m, "Crarmctor", 40, 40, 2, 20, false);
    put_name(&m, "Number", 40, 80, 5, 20, false);
    assert_true(within(found(&m, LOCATE_TYPE, "Character", 50, 84), 328, 40, 1));
    m = empty_map(12, 40);
    put_name(&m, "Crarmctor", 40, 40, 2, 20, false);
    assert_false(found(&m, LOCATE_CLICK, "Character", 50, 84).moved);
    m = empty_map(12, 40);
    put_element(&m, ELEMENT_FIELD, 0.8f, 2, 12, 1, 8);
    assert_true(within(found(&m, LOCATE_TYPE, "", 240, 60), 232, 40, 9));
    assert_false(found(&m, LOCATE_TYPE, "Town", 240, 60).moved);
    m = empty_map(6, 20);
    assert_false(found(&m, LOCATE_TYPE, "City", 50, 50).moved);
}

/* ---- answers ------------------------------------------------------------------------------------------- */

static struct picture_text some_lines(struct patch_map *m)
{
    *m = empty_map(16, 50);
    put_text(m, "Please tick Onyx and Amber", 20, 40);
    put_text(m, "Total 24 Euro", 20, 80);
    put_text(m, "Save as", 20, 120);
    return text_read(m);
}

static void t_aloud(void **state)
{
    static const struct {
        const char *said, *read; /* NULL: no line is close enough */
    } cases[] = {{"Please tick Onyr and Embers of", "Please tick Onyx and Amber"},
                 {"Please tick Onyx and Ambor", NULL}, /* two equally close lines */
                 {"Onyx aud Embor", "Onyx and Amber"},
                 {"23 Eur", "24 Euro"},
                 {"yes", NULL},
                 {"Quite another thing here", NULL},
                 {"", NULL}};
    struct patch_map m;
    struct picture_text t = some_lines(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char out[64] = "";
        bool near = text_aloud(&t, cases[i].said, out, sizeof out);
        check_note("\"%s\": \"%s\"", cases[i].said, out);
        assert_int_equal(near, cases[i].read != NULL);
        if (near)
            assert_string_equal(out, cases[i].read);
    }
    char shorter[8];
    assert_true(text_aloud(&t, "Please tick Onyr and Embers of", shorter, sizeof shorter));
    assert_true(strlen(shorter) < sizeof shorter);
    text_free(&t);
    patch_map_free(&m);
}

static void t_absent(void **state)
{
    static const struct {
        const char *question;
        bool absent;
    } cases[] = {{"Is there Amber?", false},
                 {"Is there Umber?", false}, /* possibly misread */
                 {"Is there Violet?", true},
                 {"Is \"violet\" there?", true},
                 {"Is there violet?", false},
                 {"Is there a Save as button?", false},
                 {"Is there a Send to button?", true},
                 {"Violet?", false},
                 {"Is Onyx there, and Violet?", true},
                 {"Is Violet gone?", false},
                 {"Isn't Violet there?", false},
                 {"Is there Violet: yes or no?", true},
                 {"", false}};
    struct patch_map m;
    struct picture_text t = some_lines(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_note("%s", cases[i].question);
        assert_int_equal(asks_for_absent(&t, cases[i].question), cases[i].absent);
    }
    assert_true(text_absent(&t, "the volume slider") > 0);
    assert_true(text_absent(&t, "the Total") == 0);
    text_free(&t);
    patch_map_free(&m);
}

static const struct CMUnitTest tests[] = {
    CLAIM("letters of a real screen are decoded as by torch's decoder", t_decode),
    CLAIM("a name is found in other case, without spaces, with one letter in four misread", t_names),
    CLAIM("of two names that differ by a letter the right one is clicked", t_twin),
    CLAIM("a checkbox is where its label points, between patches too; its label may be clicked as well",
          t_tick),
    CLAIM("a position with an unknown name stays; one without a name moves to the nearest element", t_stays),
    CLAIM("plain text and typed text are not elements", t_plain),
    CLAIM("of two elements with one name the nearer is used, unless it is much less probable", t_nearer),
    CLAIM("a button with another name is detected if its name is legible and the requested one is absent",
          t_otherwise),
    CLAIM("a field is identified by the label that points at it, not by text far before it", t_field_meant),
    CLAIM("typing goes to the field that its label points at; a position in that field stays", t_field),
    CLAIM("of two positions that a label points at, the one that is certainly a field is used", t_field_kind),
    CLAIM("a transcription with few errors becomes the recognized line, from its first word on", t_aloud),
    CLAIM("a name in a question that no text on the screen resembles is detected", t_absent),
    CLAIM("an undetected field is where its label points; a position without a name moves to a near field",
          t_field_unknown),
};

CHECK_MAIN()
