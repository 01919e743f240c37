/* elements_json.c - see elements_json.h. */
#include "atspi/elements_json.h"

#include "atspi/roles.h"

static const struct {
    int bit;
    const char *name;
} states[] = {
    {STATE_ACTIVE, "active"},     {STATE_CHECKED, "checked"},     {STATE_CLICKABLE, "clickable"},
    {STATE_EDITABLE, "editable"}, {STATE_ENABLED, "enabled"},     {STATE_EXPANDABLE, "expandable"},
    {STATE_EXPANDED, "expanded"}, {STATE_FOCUSABLE, "focusable"}, {STATE_FOCUSED, "focused"},
    {STATE_PRESSED, "pressed"},   {STATE_SELECTED, "selected"},   {STATE_SENSITIVE, "sensitive"},
    {STATE_VISIBLE, "visible"},   {STATE_IS_DEFAULT, "default"},  {STATE_INDETERMINATE, "indeterminate"}};

static json_t *states_of(const struct element *e)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (state_in(e->states, states[i].bit))
            json_array_append_new(list, json_string(states[i].name));
    return list;
}

static json_t *json_of(const struct snapshot *s, int i)
{
    static const char *const trusts[] = {NULL, "shifted", "apart", "doubtful", NULL};
    const struct element *e = &s->e[i], *window = e;
    while (window->parent >= 0)
        window = &s->e[window->parent];
    json_t *one =
        json_pack("{s:I, s:s, s:s, s:s, s:i, s:o}", "ref", (json_int_t)e->ref, "role", e->role, "name",
                  e->name, "window", window->name, "depth", e->depth, "states", states_of(e));
    if (*e->label)
        json_object_set_new(one, "label", json_string(e->label));
    if (*e->value)
        json_object_set_new(one, "content", json_string(e->value));
    if (e->least < e->most)
        json_object_set_new(one, "range", json_pack("[f, f]", e->least, e->most));
    if (e->children)
        json_object_set_new(one, "children", json_integer(e->children));
    if (e->trust != PLACE_NONE)
        json_object_set_new(one, "box",
                            json_pack("[i, i, i, i]", e->rect.x, e->rect.y, e->rect.w, e->rect.h));
    if (trusts[e->trust])
        json_object_set_new(one, "place", json_string(trusts[e->trust]));
    return one;
}

json_t *elements_json(const struct snapshot *s, int max)
{
    json_t *list = json_array();
    for (int i = 0; i < s->n && i < max; i++)
        json_array_append_new(list, json_of(s, i));
    return list;
}
