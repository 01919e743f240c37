/* t_replies.c - tests replies of real models: an action is performed only if the text states it.
 *
 * tests/cases/replies/DIALECT.jsonl has one line per reply: {"reply", "verdict", "actions", "seen"}. Verdict
 * and actions come from a second implementation (scripts/real_replies.py), never from the reader under test:
 *
 *   must   the reply states the actions in the requested form: they are read, and nothing else
 *   may    it states them in another form: the first of them, or all, are read, or the reply is refused
 *   none   it states no action that may be performed: it is refused
 */
#include "check.h"

#include "actions/action.h"
#include "actions/dialect.h"

#include "base/file.h"

#include <jansson.h>
#include <unistd.h>

enum { WIDTH = 1280, HEIGHT = 800, MAX_FILE = 4 << 20, MAX_TEXT = 1 << 20, CUT_EVERY = 13 };

/* Returns the actions of a step in the form of the record. */
static json_t *actions_of(const struct step *s)
{
    json_t *actions = json_array();
    for (int i = 0; i < s->nactions; i++) {
        struct buf one;
        buf_init(&one, MAX_TEXT);
        action_to_json(&s->actions[i], &one);
        json_array_append_new(actions, json_loadb(one.data, one.len, 0, NULL));
        buf_free(&one);
    }
    return actions;
}

/* Parses prefixes of a reply, as a token limit leaves it. */
static void parse_cut(const char *text, size_t len, const struct dialect *d)
{
    for (size_t n = 0; n < len; n += CUT_EVERY) {
        struct err e = ERR_INIT;
        struct step s;
        char *cut = xmalloc(n + 1, 1);
        memcpy(cut, text, n);
        if (action_parse(cut, n, d, WIDTH, HEIGHT, &s, &e))
            assert_true(*e.text);
        step_free(&s);
        free(cut);
    }
}

/* Returns whether the actions are as expected. all: none may be left to the next turn. */
static bool as_stated(const json_t *have, const json_t *want, bool all)
{
    size_t n = json_array_size(have);
    bool equal = n > 0 && (all ? n == json_array_size(want) : n <= json_array_size(want));
    for (size_t i = 0; i < n && equal; i++)
        equal = json_equal(json_array_get(have, i), json_array_get(want, i));
    return equal;
}

static void check_reply(json_t *line, const struct dialect *d)
{
    struct err e = ERR_INIT;
    struct step s;
    json_t *reply = json_object_get(line, "reply"), *want = json_object_get(line, "actions");
    const char *verdict = json_string_value(json_object_get(line, "verdict"));
    size_t len = json_string_length(reply);
    enum action_fault f = action_parse(json_string_value(reply), len, d, WIDTH, HEIGHT, &s, &e);
    json_t *have = actions_of(&s);
    bool must = !strcmp(verdict, "must");
    bool right = f ? !must : strcmp(verdict, "none") != 0 && as_stated(have, want, must);
    if (!right) {
        char *w = json_dumps(want, 0), *h = json_dumps(have, 0);
        fail_msg("%s: read differently (%s)\n  reply    %.600s\n  expected %.600s\n  got      %.600s %s",
                 d->name, verdict, json_string_value(reply), w, h, f ? e.text : "");
    }
    json_decref(have);
    step_free(&s);
    parse_cut(json_string_value(reply), len, d);
}

/* Checks the replies of one dialect; returns the number of distinct ones, and adds their occurrences to *all.
 * A dialect without a file has none. */
static int check_file(const char *name, int *all)
{
    struct err e = ERR_INIT;
    char *path = xasprintf("tests/cases/replies/%s.jsonl", name), *data;
    struct dialect *d = dialect_load(name, &e);
    size_t len;
    int n = 0;
    if (!d)
        fail_msg("%s", e.text);
    if (access(path, F_OK)) {
        dialect_free(d);
        free(path);
        return 0;
    }
    if (file_read(path, MAX_FILE, &data, &len, &e))
        fail_msg("%s", e.text);
    for (char *line = strtok(data, "\n"); line; line = strtok(NULL, "\n"), n++) {
        json_t *o = json_loads(line, 0, NULL);
        if (!o)
            fail_msg("%s:%d: not JSON", path, n + 1);
        check_reply(o, d);
        *all += (int)json_array_size(json_object_get(o, "seen"));
        json_decref(o);
    }
    dialect_free(d);
    free(data);
    free(path);
    return n;
}

static void t_read_as_stated(void **state)
{
    int distinct = 0, all = 0;
    for (const char *const *name = dialect_names(); *name; name++)
        distinct += check_file(*name, &all);
    assert_true(distinct > 0);
    check_note("%d replies, %d of them distinct", all, distinct);
}

static const struct CMUnitTest tests[] = {
    CLAIM("real replies are read as stated in their text, or refused", t_read_as_stated),
};

CHECK_MAIN()
