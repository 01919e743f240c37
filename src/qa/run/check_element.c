/* check_element.c - checks of elements in the accessibility tree, by name, role, state or content.
 *
 * The tree is read by `holorun elements`, which runs on the desktop of the test under a time limit, because
 * libatspi and the programs that it queries may hang. */
#include "qa/run/check_impl.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TREE_MAX = 16 << 20, TREE_SECONDS = 5, SHOWN = 300 };

/* Returns the tree, or NULL with a message. */
static json_t *read_tree(const struct probe *probe, struct err *e)
{
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    exe[n < 0 ? 0 : n] = 0;
    char *command = xasprintf("exec \"$HOLORUN_SELF\" elements --json --seconds %d 2>&1", TREE_SECONDS);
    char *name = xasprintf("HOLORUN_SELF=%s", exe);
    struct buf out;
    int code = 0;
    buf_init(&out, TREE_MAX);
    json_t *tree = NULL;
    if (!desk_run(probe->s->desk, command, (const char *const[]){name, NULL}, 3 * TREE_SECONDS,
                  probe->s->cancel, &code, &out, e)) {
        size_t len;
        const char *line = text_last_line(out.data, out.len, &len);
        tree = code ? NULL : json_loadb(out.data, out.len, 0, NULL);
        if (!tree)
            err_set(e, ERR_ENV, "cannot read the accessibility tree: %.*s", probe_cut(line, len), line);
    }
    buf_free(&out);
    free(name), free(command);
    return tree;
}

static const char *text(const json_t *one, const char *key)
{
    const char *s = json_string_value(json_object_get(one, key));
    return s ? s : "";
}

/* Matches a role. "push button" is also called "button", by at-spi2-core from 2.53 on and possibly by the
 * suite. */
static enum answer has_role(const char *pattern, const char *role, struct err *e)
{
    static const char newer[] = "button";
    enum answer a = probe_find(pattern, role, strlen(role), e);
    return a == ANSWER_NO && !strcmp(role, "push button") ? probe_find(pattern, newer, strlen(newer), e) : a;
}

static enum answer matches(const struct check *c, const json_t *one, struct err *e)
{
    struct buf words;
    size_t i;
    json_t *state;
    buf_init(&words, 1000);
    json_array_foreach(json_object_get(one, "states"), i, state)
        buf_printf(&words, "%s%s", i ? " " : "", json_string_value(state));
    const struct {
        const char *pattern, *text;
    } all[] = {{c->text, text(one, "name")},
               {c->window, text(one, "window")},
               {c->content, text(one, "content")},
               {c->state, words.data ? words.data : ""}};
    enum answer a = has_role(c->text2, text(one, "role"), e);
    for (i = 0; a == ANSWER_YES && i < sizeof all / sizeof *all; i++)
        a = probe_find(all[i].pattern, all[i].text, strlen(all[i].text), e);
    buf_free(&words);
    return a;
}

/* Writes the element that was found, or those with the right role or name, else a count. */
static void put_detail(struct probe *probe, const json_t *tree, const json_t *found, int near)
{
    const struct check *c = probe->c;
    struct buf asked;
    buf_init(&asked, 1000);
    const char *const keys[] = {"name", "role", "window", "content", "state"}, *const patterns[] = {
                                                                                   c->text, c->text2,
                                                                                   c->window, c->content,
                                                                                   c->state};
    for (int i = 0; i < 5; i++)
        if (patterns[i])
            buf_printf(&asked, "%s%s '%.60s'", asked.len ? ", " : "", keys[i], patterns[i]);
    if (found)
        probe_detail(probe, "expected %s element with %s, there is %s '%.100s' in '%.60s'",
                     c->absent ? "no" : "an", asked.data, text(found, "role"), text(found, "name"),
                     text(found, "window"));
    else
        probe_detail(probe, "expected %s element with %s, there is none among %zu%s", c->absent ? "no" : "an",
                     asked.data, json_array_size(tree),
                     near ? "; the name is there with another role or state" : "");
    buf_free(&asked);
}

enum answer check_element(struct probe *probe, struct err *e)
{
    const struct check *c = probe->c;
    json_t *all = read_tree(probe, e), *one, *found = NULL, *tree = json_object_get(all, "elements");
    enum answer a = ANSWER_NO;
    int near = 0;
    size_t i;
    if (!all)
        return ANSWER_ERROR;
    json_array_foreach(tree, i, one)
    {
        a = matches(c, one, e);
        near +=
            c->text && probe_find(c->text, text(one, "name"), strlen(text(one, "name")), NULL) == ANSWER_YES;
        found = a == ANSWER_YES ? one : NULL;
        if (a != ANSWER_NO)
            break;
    }
    bool cut = json_is_false(json_object_get(all, "complete"));
    if (a != ANSWER_ERROR)
        put_detail(probe, tree, found, near);
    if (a == ANSWER_NO && c->absent && (cut || !json_array_size(tree))) {
        err_set(e, ERR_ENV,
                cut ? "the accessibility tree was not read to its end: a program does not answer"
                    : "no program on the desktop publishes its elements");
        a = ANSWER_ERROR;
    }
    json_decref(all);
    return a;
}
