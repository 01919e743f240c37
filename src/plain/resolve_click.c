/* resolve_click.c - texts and images of a page that a click handler makes buttons. */
#include "plain/resolve.h"

#include "atspi/roles.h"

#include <string.h>

/* Returns whether an element is inside `top` and is neither its first text nor the only one that can be
 * pressed there. */
static bool is_one_of_many(const struct snapshot *s, const struct element *e, const struct element *top)
{
    bool first = true;
    for (const struct element *in = top + 1; in < s->e + s->n && in->depth > top->depth; in++) {
        if (in == e && first)
            return false;
        first = first && !*resolve_name(in);
        if (resolve_is_button(in) || state_in(in->states, STATE_CLICKABLE))
            return true;
    }
    return false;
}

/* Returns whether an element covers more than half of its page: libraries handle all clicks there. */
static bool is_most_of_page(const struct snapshot *s, const struct element *e)
{
    const struct element *page = resolve_page(s, e);
    return page && 2LL * e->rect.w * e->rect.h > (long long)page->rect.w * page->rect.h;
}

/* Returns the group around a text or image of a page whose click handler gets a click on it, NULL: none. */
static const struct element *clicked_group(const struct snapshot *s, const struct element *e)
{
    for (int i = e->parent; i >= 0 && strcmp(s->e[i].role, "document web") != 0; i = s->e[i].parent)
        if (state_in(s->e[i].states, STATE_CLICKABLE))
            return is_one_of_many(s, e, &s->e[i]) || is_most_of_page(s, &s->e[i]) ? NULL : &s->e[i];
    return NULL;
}

bool resolve_is_clickable(const struct snapshot *s, const struct element *e)
{
    static const char *const shown[] = {"static", "label", "heading", "paragraph", "section",
                                        "image",  "panel", "caption", NULL};
    return text_listed(shown, e->role) && (state_in(e->states, STATE_CLICKABLE) || clicked_group(s, e));
}

bool resolve_acts_by_group(const struct snapshot *s, const struct element *e)
{
    bool own = resolve_suits(e, RESOLVE_PRESS) || state_in(e->states, STATE_CLICKABLE);
    const struct element *group = own ? NULL : clicked_group(s, e);
    int top = group ? (int)(group - s->e) : s->n;
    for (int i = top + 1; i < s->n && s->e[i].depth > s->e[top].depth; i++)
        if (*resolve_name(&s->e[i]) && !resolve_same(resolve_name(&s->e[i]), resolve_name(e)))
            return true;
    return false;
}
