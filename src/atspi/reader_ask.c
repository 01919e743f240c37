/* reader_ask.c - which further calls describe a node; see reader_impl.h. */
#include "atspi/reader_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABELLED_BY = 2 }; /* AtspiRelationType */

#define UNBOUNDED 1e15 /* toolkits report the greatest number */

static bool is_among(uint32_t role, const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == role)
            return true;
    return false;
}

bool reader_has_text(const struct node *n)
{
    static const uint32_t named[] = {
        ROLE_LABEL,   ROLE_STATIC,     ROLE_LIST_ITEM,   ROLE_TABLE_CELL,       ROLE_PARAGRAPH,
        ROLE_HEADING, ROLE_SECTION,    ROLE_BLOCK_QUOTE, ROLE_CAPTION,          ROLE_COMMENT,
        ROLE_ALERT,   ROLE_STATUS_BAR, ROLE_LOG,         ROLE_DESCRIPTION_TERM, ROLE_DESCRIPTION_VALUE};
    if (n->role == ROLE_UNKNOWN) /* no reply about its role: possibly a password */
        return false;
    if (state_in(n->states, STATE_FOCUSED) || state_in(n->states, STATE_EDITABLE) || n->role == ROLE_ENTRY ||
        n->role == ROLE_TEXT || n->role == ROLE_SPIN_BUTTON)
        return true;
    return (!n->name || !*n->name) && is_among(n->role, named, sizeof named / sizeof *named);
}

bool reader_has_number(const struct node *n)
{
    return n->role == ROLE_SLIDER || n->role == ROLE_PROGRESS_BAR || n->role == ROLE_LEVEL_BAR ||
           n->role == ROLE_DIAL;
}

bool reader_has_range(const struct node *n)
{
    return n->role == ROLE_SLIDER || n->role == ROLE_SPIN_BUTTON || n->role == ROLE_DIAL;
}

bool reader_in_page(const struct reader *r, int i)
{
    while (i >= 0 && r->nodes[i].role != ROLE_DOCUMENT_WEB)
        i = r->nodes[i].parent;
    return i >= 0;
}

bool reader_may_click(const struct reader *r, int i)
{
    static const uint32_t roles[] = {ROLE_STATIC, ROLE_SECTION,   ROLE_PARAGRAPH,  ROLE_HEADING,
                                     ROLE_IMAGE,  ROLE_LIST_ITEM, ROLE_TABLE_CELL, ROLE_PANEL};
    uint32_t role = r->nodes[i].role;
    bool leaf = role == ROLE_STATIC && !strcmp(r->program->toolkit, "Chromium");
    return !leaf && is_among(role, roles, sizeof roles / sizeof *roles) && reader_in_page(r, i);
}

/* GTK 4.18 leaves the items of its menus without a name, and the labels in them out of the tree. */
bool reader_needs_label(const struct reader *r, const struct node *n)
{
    static const uint32_t roles[] = {ROLE_MENU_ITEM,   ROLE_CHECK_MENU_ITEM, ROLE_RADIO_MENU_ITEM,
                                     ROLE_PUSH_BUTTON, ROLE_TOGGLE_BUTTON,   ROLE_LIST_ITEM};
    return reader_is_gtk4(r) && (!n->name || !*n->name) &&
           is_among(n->role, roles, sizeof roles / sizeof *roles);
}

bool reader_reference(DBusMessageIter *at, const char **bus, const char **path)
{
    DBusMessageIter in;
    if (dbus_message_iter_get_arg_type(at) != DBUS_TYPE_STRUCT)
        return false;
    dbus_message_iter_recurse(at, &in);
    if (dbus_message_iter_get_arg_type(&in) != DBUS_TYPE_STRING)
        return false;
    dbus_message_iter_get_basic(&in, bus);
    if (!dbus_message_iter_next(&in) || dbus_message_iter_get_arg_type(&in) != DBUS_TYPE_OBJECT_PATH)
        return false;
    dbus_message_iter_get_basic(&in, path);
    return strcmp(*path, "/org/a11y/atspi/null") != 0;
}

void reader_take_relations(struct reader *r, int i, DBusMessage *reply)
{
    DBusMessageIter at, all, one, targets;
    dbus_uint32_t kind = 0;
    const char *bus, *path;
    if (!reply || !dbus_message_has_signature(reply, "a(ua(so))") || !dbus_message_iter_init(reply, &at))
        return;
    for (dbus_message_iter_recurse(&at, &all); dbus_message_iter_get_arg_type(&all) == DBUS_TYPE_STRUCT;
         dbus_message_iter_next(&all)) {
        dbus_message_iter_recurse(&all, &one);
        dbus_message_iter_get_basic(&one, &kind);
        dbus_message_iter_next(&one);
        dbus_message_iter_recurse(&one, &targets);
        if (kind != LABELLED_BY || r->nodes[i].label || !reader_reference(&targets, &bus, &path) ||
            strcmp(bus, r->nodes[i].bus) != 0)
            continue;
        r->nodes[i].label = xstrdup(path);
        reader_push(r, i, CALL_LABEL, -1, 0);
    }
}

/* Cuts a text at its last " - ". Returns where, NULL: it has none. */
static char *cut_at_dash(char *text)
{
    char *found = NULL;
    for (char *at = text; (at = strstr(at, " - ")); at++)
        found = at;
    if (found)
        *found = 0;
    return found;
}

void reader_drop_memory(const struct reader *r, struct node *n)
{
    if (n->role != ROLE_PAGE_TAB || !n->name || strcmp(r->program->toolkit, "Chromium") != 0)
        return;
    bool bytes = *n->name && n->name[strlen(n->name) - 1] == 'B'; /* "Page - Memory usage - 22.6 MB" */
    char *at = bytes ? cut_at_dash(n->name) : NULL;
    if (at && (at[3] < '0' || at[3] > '9' || !cut_at_dash(n->name)))
        *at = ' ';
}

void reader_take_number(struct node *n, enum call call, DBusMessage *reply)
{
    DBusMessageIter at, in;
    double v;
    if (!reply || !dbus_message_iter_init(reply, &at) ||
        dbus_message_iter_get_arg_type(&at) != DBUS_TYPE_VARIANT)
        return;
    dbus_message_iter_recurse(&at, &in);
    if (dbus_message_iter_get_arg_type(&in) != DBUS_TYPE_DOUBLE)
        return;
    dbus_message_iter_get_basic(&in, &v);
    if (call == CALL_NUMBER) {
        free(n->value);
        n->value = xasprintf("%.6g", v);
    }
    bool bounded = isfinite(v) && fabs(v) < UNBOUNDED;
    if (call == CALL_LEAST) /* without a bound the range is empty, which means unknown */
        n->least = bounded ? v : UNBOUNDED;
    else if (call == CALL_MOST)
        n->most = bounded ? v : -UNBOUNDED;
    else if (isfinite(v))
        n->number = v;
}
