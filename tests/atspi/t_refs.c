/* t_refs.c - the compact text of elements by lines, and the refs that a client was shown. */
#include "check.h"

#include "atspi/elements_impl.h"
#include "atspi/lines.h"
#include "atspi/reader_impl.h"
#include "atspi/refs.h"
#include "atspi/roles.h"

#include <stdlib.h>
#include <string.h>

#define BIT(state) (1ULL << (state))
#define SHOWN      (BIT(STATE_SHOWING) | BIT(STATE_VISIBLE) | BIT(STATE_SENSITIVE) | BIT(STATE_ENABLED))

static struct element of(uint32_t ref, const char *role, const char *name, const char *value, int parent)
{
    return (struct element){.ref = ref,
                            .role = role,
                            .name = name,
                            .value = value,
                            .label = "",
                            .states = SHOWN,
                            .rect = {10, 10, 80, 20},
                            .parent = parent,
                            .depth = parent + 1};
}

static const char form[] = "window \"Form\" 400x300 active\n"
                           "  text \"Please fill in\"\n"
                           "  e3 field \"Name\" = \"Ana\" focused\n"
                           "  group \"Size\"\n"
                           "    e4 radio \"Small\" checked\n"
                           "    e5 radio \"Large\"\n"
                           "  e6 button \"Save\"\n"
                           "  e7 button \"Save as\"\n";

static char *found(const char *words, const char *role, int max, int *n)
{
    struct buf b;
    buf_init(&b, LINES_BYTES);
    buf_puts(&b, "");
    *n = lines_find(form, words, role, max, &b);
    return buf_take(&b);
}

/* ---- search and limit ---------------------------------------------------------------------------------- */

static void t_find(void **state)
{
    static const struct {
        const char *words, *role, *lines;
        int max, n;
    } rows[] = {
        {"large", NULL, "window \"Form\" 400x300 active\n  group \"Size\"\n    e5 radio \"Large\"\n", 9, 1},
        {"SAVE", "button", "window \"Form\" 400x300 active\n  e6 button \"Save\"\n  e7 button \"Save as\"\n",
         9, 2},
        {"save", "push button", "window \"Form\" 400x300 active\n  e6 button \"Save\"\n", 1, 2},
        {"as save", NULL, "window \"Form\" 400x300 active\n  e7 button \"Save as\"\n", 9, 1},
        {"ana", "field", "window \"Form\" 400x300 active\n  e3 field \"Name\" = \"Ana\" focused\n", 9, 1},
        {"", "radio",
         "window \"Form\" 400x300 active\n  group \"Size\"\n    e4 radio \"Small\" checked\n"
         "    e5 radio \"Large\"\n",
         9, 2},
        {"delete", NULL, "", 9, 0},
        {"e6", NULL, "", 9, 0}, /* refs are not words */
        {"save", "but", "", 9, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n;
        char *text = found(rows[i].words, rows[i].role, rows[i].max, &n);
        assert_string_equal(text, rows[i].lines);
        assert_int_equal(n, rows[i].n);
        free(text);
    }
}

/* With any limit the lines that stay are those of the text, in its order; texts are left out before buttons,
 * and the field with the focus last. */
static void t_within(void **state)
{
    struct buf b, rows;
    (void)state;
    buf_init(&rows, LINES_BYTES);
    buf_puts(&rows, form);
    for (int i = 0; i < 100; i++)
        buf_printf(&rows, "  e%d row \"Row %d\"\n", 100 + i, i);
    buf_puts(&rows, "  e900 button \"Last\"\n");
    for (size_t limit = 60; limit < rows.len + 200; limit += 37) {
        buf_init(&b, LINES_BYTES);
        buf_puts(&b, "");
        lines_within(rows.data, limit, &b);
        if (b.len > limit + 90)
            fail_msg("%zu bytes of %zu", b.len, limit);
        const char *at = rows.data;
        struct lines l;
        lines_split(b.data, &l);
        for (int i = 0; i < l.n; i++) {
            char *line = xasprintf("%.*s\n", (int)l.l[i].n, l.l[i].text);
            at = strstr(line, "left out") ? at : strstr(at, line);
            if (!at)
                fail_msg("limit %zu: %s", limit, line);
            free(line);
        }
        if (limit > 400) {
            assert_non_null(strstr(b.data, "e3 field"));
            assert_non_null(strstr(b.data, "e900 button"));
        }
        lines_free(&l);
        buf_free(&b);
    }
    buf_free(&rows);
}

/* ---- difference ---------------------------------------------------------------------------------------- */

static char *difference(const char *before, const char *after, int *n)
{
    struct buf b;
    buf_init(&b, LINES_BYTES);
    buf_puts(&b, "");
    *n = lines_diff(before, after, &b);
    return buf_take(&b);
}

static void t_diff(void **state)
{
    static const char after[] = "window \"Form\" 400x300\n"
                                "  e3 field \"Name\" = \"Eva\"\n"
                                "  group \"Size\"\n"
                                "      e4 radio \"Small\"\n" /* indentation alone does not count */
                                "    e5 radio \"Large\"\n"
                                "  e7 button \"Save as\"\n"
                                "window \"Sure?\" 200x100 active\n"
                                "  e8 button \"Yes\"\n";
    int n;
    (void)state;
    char *text = difference(form, after, &n);
    assert_string_equal(text, "changed:\n  e3 field \"Name\" = \"Eva\"\n  e4 radio \"Small\"\n"
                              "new:\n  window \"Form\" 400x300\n  window \"Sure?\" 200x100 active\n"
                              "  e8 button \"Yes\"\n"
                              "gone:\n  window \"Form\" 400x300 active\n  text \"Please fill in\"\n"
                              "  e6 button \"Save\"\n");
    assert_int_equal(n, 8);
    free(text);
    text = difference(form, form, &n);
    assert_string_equal(text, "");
    assert_int_equal(n, 0);
    free(text);
}

/* Applying a difference to the old lines gives the new ones, whatever both are. */
static void t_diff_random(void **state)
{
    (void)state;
    for (int round = 0; round < 300; round++) {
        char *seen[2][64] = {{0}};
        int n, expected = 0;
        struct buf text[2];
        for (int k = 0; k < 2; k++) {
            buf_init(&text[k], LINES_BYTES);
            buf_puts(&text[k], "");
            for (int ref = 1; ref < 64; ref++)
                if (rand() % 3) {
                    seen[k][ref] = xasprintf("e%d field \"F\" = \"%d\"", ref, rand() % 2);
                    buf_printf(&text[k], "%*s%s\n", rand() % 5, "", seen[k][ref]);
                }
        }
        char *d = difference(text[0].data, text[1].data, &n);
        for (int ref = 1; ref < 64; ref++) {
            const char *a = seen[0][ref], *b = seen[1][ref];
            bool differs = !a != !b || (a && b && strcmp(a, b) != 0);
            expected += differs;
            char *line = xasprintf("  %s\n", b ? b : a ? a : "-");
            assert_int_equal(strstr(d, line) != NULL, differs);
            free(line);
        }
        assert_int_equal(n, expected);
        free(d);
        for (int k = 0; k < 2; k++) {
            buf_free(&text[k]);
            for (int ref = 1; ref < 64; ref++)
                free(seen[k][ref]);
        }
    }
}

/* ---- refs ---------------------------------------------------------------------------------------------- */

static void t_read(void **state)
{
    static const struct {
        const char *text;
        uint32_t ref;
    } rows[] = {{"e12", 12}, {"E12", 12}, {"[e12]", 12}, {"ref=e12", 12}, {"12", 12},
                {" e7 ", 7}, {"e", 0},    {"", 0},       {"12x", 0},      {"e-1", 0},
                {"e0", 0},   {"f12", 0},  {"e1 e2", 0},  {"e 3", 0},      {"e99999999999", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (refs_read(rows[i].text) != rows[i].ref)
            fail_msg("'%s' is read as %u", rows[i].text, refs_read(rows[i].text));
}

static void says(const struct refs *r, const struct snapshot *s, uint32_t ref, const char *expected)
{
    char why[ERR_TEXT] = "";
    const struct element *e = refs_find(r, s, ref, why, sizeof why);
    if (expected) {
        assert_null(e);
        assert_string_equal(why, expected);
    } else {
        assert_non_null(e);
        assert_int_equal(e->ref, ref);
    }
}

static void t_stale(void **state)
{
    struct element before[] = {of(1, "frame", "W", "", -1), of(2, "push button", "Save", "", 0),
                               of(3, "entry", "", "Ana", 0), of(4, "push button", "Unseen", "", 0)};
    struct element after[] = {of(1, "frame", "W", "", -1), of(2, "push button", "Delete", "", 0),
                              of(3, "entry", "", "Eva", 0), of(5, "push button", "Save", "", 0)};
    struct snapshot old = {.e = before, .n = 4}, new = {.e = after, .n = 4}, none = {.n = 0};
    struct refs *r = refs_new();
    (void)state;
    before[2].label = after[2].label = "Name";
    refs_note(r, &old, "window \"W\"\n  e2 button \"Save\"\n  e3 field \"Name\" = \"Ana\"\n");
    assert_int_equal(refs_count(r), 2);
    says(r, &old, 2, NULL);
    says(r, &new, 3, NULL); /* its value may change */
    says(r, &new, 2, "e2 was button \"Save\" and is now button \"Delete\"; call snapshot again");
    says(r, &none, 3, "e3 was field \"Name\" and is gone; call snapshot again");
    says(r, &old, 4, "e4 was not in a snapshot; call snapshot first");
    says(r, &new, 99, "e99 was not in a snapshot; call snapshot first");
    refs_note(r, &new, "e2 button \"Delete\"\n");
    says(r, &new, 2, NULL); /* the client has seen its new name */
    refs_free(r);
}

static void t_bound(void **state)
{
    enum { TEXTS = 2000, EACH = 50 };
    struct element e[EACH];
    struct snapshot s = {.e = e, .n = EACH};
    struct refs *r = refs_new();
    (void)state;
    for (uint32_t text = 0; text < TEXTS; text++) {
        for (uint32_t i = 0; i < EACH; i++)
            e[i] = of(text * EACH + i + 1, "push button", "B", "", i ? 0 : -1);
        refs_note(r, &s, NULL);
        assert_true(refs_count(r) <= REFS_MAX);
    }
    assert_true(refs_count(r) >= EACH);
    says(r, &s, TEXTS * EACH, NULL);
    says(r, &s, 1, "e1 was not in a snapshot; call snapshot first");
    refs_free(r);
}

/* Reads the root of a program.  Returns its ref. */
static uint32_t read_one(struct reader *r, const char *path)
{
    struct program p = {.bus = ":1.5"};
    snprintf(p.path, sizeof p.path, "%s", path);
    reader_begin(r, &p, -1, 0);
    uint32_t ref = r->nodes[0].ref;
    reader_end(r);
    return ref;
}

static void t_objects(void **state)
{
    struct reader r = {.known = g_hash_table_new_full(g_str_hash, g_str_equal, free, free)};
    char path[64];
    uint32_t first = read_one(&r, "/stays"), newest = first;
    (void)state;
    for (int i = 0; i < 3 * READ_KNOWN; i++) {
        snprintf(path, sizeof path, "/passes/%d", i);
        uint32_t ref = read_one(&r, path);
        assert_true(ref > newest); /* never reused */
        newest = ref;
        if (i % 100 == 0)
            assert_int_equal(read_one(&r, "/stays"), first);
        assert_true(g_hash_table_size(r.known) <= READ_KNOWN + 1);
    }
    assert_true(read_one(&r, "/passes/0") > newest); /* dropped, and numbered again */
    g_hash_table_destroy(r.known);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a search returns the lines with all words, and the groups they are in", t_find),
    CLAIM("a limited text keeps fields and buttons and counts the missing lines", t_within),
    CLAIM("a difference lists changed, new and gone lines", t_diff),
    CLAIM("a difference of random texts lists exactly the lines that differ", t_diff_random),
    CLAIM("refs are read in the spellings that models use, and nothing else is", t_read),
    CLAIM("a ref whose element is gone or another now is refused in one line", t_stale),
    CLAIM("the table of refs has a bound, and keeps the latest", t_bound),
    CLAIM("the table of objects has a bound, keeps those that are read, and reuses no ref", t_objects),
};

CHECK_MAIN()
