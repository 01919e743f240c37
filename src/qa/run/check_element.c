/* check_element.c - checks of elements in the accessibility tree, by name, role, state or content. */
#include "qa/run/check_impl.h"

#include "atspi/elements.h"
#include "atspi/roles.h"

#include <string.h>

enum { TREE_MS = 5000 };

/* Matches a role. "push button" is also called "button", by at-spi2-core from 2.53 on and possibly by the
 * suite. */
static enum answer has_role(const char *pattern, const char *role, struct err *e)
{
    static const char newer[] = "button";
    enum answer a = probe_find(pattern, role, strlen(role), e);
    return a == ANSWER_NO && !strcmp(role, "push button") ? probe_find(pattern, newer, strlen(newer), e) : a;
}

static const char *window_of(const struct snapshot *s, const struct element *one)
{
    while (one->parent >= 0)
        one = &s->e[one->parent];
    return one->name;
}

/* Writes the states of an element as words. */
static void put_states(const struct element *one, struct buf *out)
{
    static const struct {
        int bit;
        const char *name;
    } states[] = {{STATE_ACTIVE, "active"},         {STATE_CHECKED, "checked"},
                  {STATE_EDITABLE, "editable"},     {STATE_ENABLED, "enabled"},
                  {STATE_EXPANDABLE, "expandable"}, {STATE_EXPANDED, "expanded"},
                  {STATE_FOCUSABLE, "focusable"},   {STATE_FOCUSED, "focused"},
                  {STATE_PRESSED, "pressed"},       {STATE_SELECTED, "selected"},
                  {STATE_SENSITIVE, "sensitive"},   {STATE_VISIBLE, "visible"},
                  {STATE_IS_DEFAULT, "default"},    {STATE_INDETERMINATE, "indeterminate"}};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (state_in(one->states, states[i].bit))
            buf_printf(out, "%s%s", out->len ? " " : "", states[i].name);
}

static enum answer matches(const struct check *c, const struct snapshot *s, const struct element *one,
                           struct err *e)
{
    autobuf words = buf_of(1000);
    put_states(one, &words);
    const struct {
        const char *pattern, *text;
    } all[] = {{c->text, one->name},
               {c->window, window_of(s, one)},
               {c->content, one->value},
               {c->state, words.data ? words.data : ""}};
    enum answer a = has_role(c->text2, one->role, e);
    for (size_t i = 0; a == ANSWER_YES && i < sizeof all / sizeof *all; i++)
        a = probe_find(all[i].pattern, all[i].text, strlen(all[i].text), e);
    return a;
}

/* Writes the element that was found, or those with the right role or name, else a count. */
static void put_detail(struct probe *probe, const struct snapshot *s, const struct element *found, int near)
{
    const struct check *c = probe->c;
    autobuf asked = buf_of(1000);
    const char *const keys[] = {"name", "role", "window", "content", "state"};
    const char *const patterns[] = {c->text, c->text2, c->window, c->content, c->state};
    for (int i = 0; i < 5; i++)
        if (patterns[i])
            buf_printf(&asked, "%s%s '%.60s'", asked.len ? ", " : "", keys[i], patterns[i]);
    if (found)
        probe_detail(probe, "expected %s element with %s, there is %s '%.100s' in '%.60s'",
                     c->absent ? "no" : "an", asked.data, found->role, found->name, window_of(s, found));
    else
        probe_detail(probe, "expected %s element with %s, there is none among %d%s", c->absent ? "no" : "an",
                     asked.data, s->n, near ? "; the name is there with another role or state" : "");
}

static enum answer search(struct probe *probe, const struct snapshot *s, struct err *e)
{
    const struct check *c = probe->c;
    const struct element *found = NULL;
    enum answer a = ANSWER_NO;
    int near = 0;
    for (int i = 0; i < s->n && a == ANSWER_NO; i++) {
        const struct element *one = &s->e[i];
        a = matches(c, s, one, e);
        near += c->text && probe_find(c->text, one->name, strlen(one->name), NULL) == ANSWER_YES;
        found = a == ANSWER_YES ? one : NULL;
    }
    if (a != ANSWER_ERROR)
        put_detail(probe, s, found, near);
    bool cut = s->end == SNAPSHOT_CUT || s->end == SNAPSHOT_SILENT;
    if (a != ANSWER_NO || !c->absent || (!cut && s->n))
        return a;
    err_set(
        e, ERR_ENV,
        cut ? "the accessibility tree was not read to its end: a program does not answer, or it is too large"
            : "no program on the desktop publishes its elements");
    return ANSWER_ERROR;
}

enum answer check_element(struct probe *probe, struct err *e)
{
    const struct snapshot *s;
    struct elements *x = elements_open(desk_display(probe->s->desk));
    int rc = elements_snapshot(x, &(struct elements_scope){.all = true}, TREE_MS, &s, e);
    enum answer a = rc ? ANSWER_ERROR : search(probe, s, e);
    elements_close(x);
    return a;
}
