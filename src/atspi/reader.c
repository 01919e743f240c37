/* reader.c - builds the tree of one program from replies; see reader_impl.h. */
#include "atspi/reader_impl.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EAGER = 12, GRID_COLUMNS = 4, PATH_BYTES = 512 };
enum { KNOWN_READS = 1024 }; /* reads after which an object that is not found any more may be dropped */

struct known {
    uint32_t ref, read; /* read: number of the read in which it was last found */
};

/* ---- nodes ------------------------------------------------------------------------------------------ */

/* Returns the number of an object, which it keeps for the life of the child, or 0 if this read has it
 * already: trees of programs may have cycles. */
static uint32_t number_of(struct reader *r, const char *bus, const char *path)
{
    char key[64 + PATH_BYTES + 2];
    if (snprintf(key, sizeof key, "%s %s", bus, path) >= (int)sizeof key)
        return 0;
    struct known *k = g_hash_table_lookup(r->known, key);
    if (!k) {
        k = xcalloc(1, sizeof *k);
        k->ref = ++r->refs;
        g_hash_table_insert(r->known, xstrdup(key), k);
    }
    if (k->read == r->read)
        return 0;
    k->read = r->read;
    return k->ref;
}

/* Returns the index of the new node, or -1 if it is known, invalid or one too many. */
static int add_node(struct reader *r, int parent, const char *bus, const char *path, int order)
{
    if (r->n >= READ_NODES || (parent >= 0 && r->nodes[parent].depth >= READ_DEPTH)) {
        r->cut = true;
        return -1;
    }
    uint32_t ref = dbus_validate_bus_name(bus, NULL) && strlen(bus) < 64 ? number_of(r, bus, path) : 0;
    if (!ref)
        return -1;
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 256;
        r->nodes = xrealloc(r->nodes, (unsigned long)r->cap, sizeof *r->nodes);
    }
    r->nodes[r->n] = (struct node){.bus = xstrdup(bus),
                                   .path = xstrdup(path),
                                   .ref = ref,
                                   .parent = parent,
                                   .order = order,
                                   .depth = parent < 0 ? -1 : r->nodes[parent].depth + 1,
                                   .top = parent > 0 ? r->nodes[parent].top : r->n,
                                   .role = ROLE_UNKNOWN,
                                   .number = NAN};
    return r->n++;
}

struct age {
    uint32_t read, kept;
};

static gboolean is_older(void *key, void *value, void *arg)
{
    const struct known *k = value;
    const struct age *age = arg;
    (void)key;
    return age->read - k->read > age->kept;
}

/* Drops the objects that were not found for the longest time until READ_KNOWN are left.  An object that comes
 * back gets a new number. */
static void forget_objects(struct reader *r)
{
    for (uint32_t kept = KNOWN_READS; kept && g_hash_table_size(r->known) > READ_KNOWN; kept /= 2) {
        struct age age = {r->read, kept};
        g_hash_table_foreach_remove(r->known, is_older, &age);
    }
}

void reader_begin(struct reader *r, struct program *p, int x, int y)
{
    r->program = p;
    forget_objects(r);
    r->read++;
    r->first = r->queued = 0;
    r->in_flight = r->calls = r->n_closed = 0;
    r->cut = false;
    r->hit = -1;
    r->x = x;
    r->y = y;
    memset(r->slots, 0, sizeof r->slots);
    int root = add_node(r, -1, p->bus, p->path, 0);
    if (root < 0)
        return;
    r->nodes[root].shown = true;
    r->nodes[root].missing = 1;
    reader_push(r, root, CALL_COUNT, 0, 0);
    if (!*p->toolkit) {
        reader_push(r, root, CALL_TOOLKIT, 0, 0);
        reader_push(r, root, CALL_VERSION, 0, 0);
    }
}

void reader_end(struct reader *r)
{
    for (int i = 0; i < r->n; i++) {
        free(r->nodes[i].bus);
        free(r->nodes[i].path);
        free(r->nodes[i].name);
        free(r->nodes[i].value);
        free(r->nodes[i].label);
    }
    free(r->nodes);
    free(r->queue);
    r->nodes = NULL;
    r->queue = NULL;
    r->n = r->cap = 0;
    r->first = r->queued = r->queue_cap = 0;
}

/* Returns whether the node is a window: a child of its program. */
static bool is_window(const struct node *n)
{
    return n->parent == 0;
}

/* ---- the calls about a node -------------------------------------------------------------------------- */

static void ask_first(struct reader *r, int i)
{
    static const enum call calls[] = {CALL_ROLE, CALL_NAME, CALL_COUNT, CALL_RECT};
    r->nodes[i].asked = true;
    r->nodes[i].missing = 4;
    for (size_t k = 0; k < 4; k++)
        reader_push(r, i, calls[k], 0, 0);
}

static bool overlap(struct screen_rect a, struct screen_rect b)
{
    struct screen_rect both = screen_rect_intersect(a, b);
    return both.w > 0 && both.h > 0;
}

/* Asks for the elements at the points of a grid, since the node has too many children to list them. */
static void ask_grid(struct reader *r, int i)
{
    struct screen_rect t = r->nodes[i].told;
    int rows = READ_HITS / GRID_COLUMNS;
    r->nodes[i].sampled = true;
    for (int row = 0; row < rows && r->nodes[i].placed; row++)
        for (int column = 0; column < GRID_COLUMNS; column++)
            reader_push(r, i, CALL_HIT, t.x + t.w * (2 * column + 1) / (2 * GRID_COLUMNS),
                        t.y + t.h * (2 * row + 1) / (2 * rows));
}

static void ask_children(struct reader *r, int i)
{
    const struct node *n = &r->nodes[i];
    if (n->children > READ_CHILDREN)
        ask_grid(r, i);
    else if (n->children > 0)
        reader_push(r, i, CALL_CHILDREN, 0, 0);
}

bool reader_class_name(const char *name)
{
    if (strncmp(name, "Gtk", 3) != 0 || !isupper((unsigned char)name[3]))
        return false;
    for (name += 3; isalnum((unsigned char)*name) || *name == '_';)
        name++;
    return !*name;
}

/* Shortens "Save Save" to "Save": GTK 4 joins the name of a button with the text of the label in it. A label
 * may have the text "Bora Bora" itself, and is left out. */
static void drop_repetition(char *name)
{
    size_t half = strlen(name) / 2;
    if (half && name[half] == ' ' && !name[2 * half + 1] && !strncmp(name, name + half + 1, half))
        name[half] = 0;
}

/* Continues with text and children when role, name, number of children and rectangle have arrived. */
static void described(struct reader *r, int i)
{
    struct node *n = &r->nodes[i];
    const struct node *up = n->parent >= 0 ? &r->nodes[n->parent] : NULL;
    bool by_visible = r->nodes[n->top].by_visible;
    bool holds_text = n->role == ROLE_LABEL || n->role == ROLE_TEXT || n->role == ROLE_ENTRY;
    if (reader_is_gtk4(r) && n->name && !holds_text)
        drop_repetition(n->name);
    reader_drop_memory(r, n);
    if (by_visible && up && up->parent >= 0 && up->placed && (!n->placed || !overlap(n->told, up->told))) {
        n->shown = false;
        return;
    }
    if (by_visible && n->name && reader_class_name(n->name))
        n->name[0] = 0;
    if ((n->role == ROLE_TEXT || n->role == ROLE_ENTRY) && n->name && role_hides_text(n->name))
        n->role = ROLE_PASSWORD;
    if (n->role == ROLE_PASSWORD)
        return;
    bool hit = r->x >= 0 && up && is_window(n) && n->placed && screen_rect_contains(n->told, r->x, r->y);
    if (hit)
        reader_push(r, i, CALL_POINT, r->x, r->y);
    if (reader_has_range(n)) {
        reader_push(r, i, CALL_LEAST, 0, 0);
        reader_push(r, i, CALL_MOST, 0, 0);
        if (n->role == ROLE_SPIN_BUTTON)
            reader_push(r, i, CALL_TAKEN, 0, 0);
    }
    if (reader_has_number(n))
        reader_push(r, i, CALL_NUMBER, 0, 0);
    else if (reader_has_text(n))
        reader_push(r, i, CALL_LENGTH, 0, 0);
    if (reader_needs_label(r, n))
        reader_push(r, i, CALL_RELATIONS, 0, 0);
    if (reader_may_click(r, i))
        reader_push(r, i, CALL_ACTION, 0, 0);
    if (n->role == ROLE_DOCUMENT_WEB || n->role == ROLE_DOCUMENT_FRAME)
        reader_push(r, i, CALL_ADDRESS, 0, 0);
    ask_children(r, i);
}

/* Reads the rest of a node that shows. */
static void show(struct reader *r, int i)
{
    r->nodes[i].shown = true;
    if (!r->nodes[i].asked)
        ask_first(r, i);
    else if (!r->nodes[i].missing)
        described(r, i);
}

/* ---- replies ----------------------------------------------------------------------------------------- */

/* Reads a state set of two words.  Programs cannot set STATE_CLICKABLE, which is not of AT-SPI. */
static uint64_t states_of(DBusMessage *reply)
{
    const dbus_uint32_t *words = NULL;
    int n = 0;
    if (!reply || dbus_message_get_type(reply) != DBUS_MESSAGE_TYPE_METHOD_RETURN ||
        !dbus_message_get_args(reply, NULL, DBUS_TYPE_ARRAY, DBUS_TYPE_UINT32, &words, &n, DBUS_TYPE_INVALID))
        return 0;
    uint64_t states = (n > 0 ? words[0] : 0) | (n > 1 ? (uint64_t)words[1] << 32 : 0);
    return states & ~(UINT64_C(1) << STATE_CLICKABLE);
}

/* GTK 4.8 sets SHOWING on windows only: if no child of a window shows, those that are VISIBLE count. */
static void window_seen(struct reader *r, int window)
{
    struct node *w = &r->nodes[window];
    if (w->unseen || w->any_shown)
        return;
    w->by_visible = true;
    for (int i = 0; i < r->n; i++)
        if (r->nodes[i].parent == window && state_in(r->nodes[i].states, STATE_VISIBLE))
            show(r, i);
}

/* Returns whether a node that does not show is part of a closed menu or list, or of a page behind another. */
static bool is_closed(struct reader *r, const struct node *n)
{
    const struct node *up = n->parent >= 0 ? &r->nodes[n->parent] : NULL;
    if (!r->closed || !up || !up->shown)
        return false;
    bool holds = up->closed || up->role == ROLE_MENU || up->role == ROLE_MENU_ITEM ||
                 up->role == ROLE_COMBO_BOX || up->role == ROLE_PAGE_TAB;
    if (!holds || ++r->n_closed > READ_CLOSED) {
        r->cut = r->cut || holds;
        return false;
    }
    return true;
}

static void take_state(struct reader *r, int i, DBusMessage *reply)
{
    struct node *n = &r->nodes[i];
    const struct node *only =
        n->parent >= 0 && r->nodes[n->parent].children == 1 ? &r->nodes[n->parent] : NULL;
    n->states = states_of(reply);
    if (!n->states && only &&
        only->shown) /* sockets have no states at times, and are all that the parent shows */
        n->states = only->states & ~(UINT64_C(1) << STATE_FOCUSED);
    bool shows = state_in(n->states, STATE_SHOWING) ||
                 (r->nodes[n->top].by_visible && n->depth > 0 && state_in(n->states, STATE_VISIBLE));
    int up = n->parent;
    shows = shows && !(up >= 0 && r->nodes[up].closed); /* Qt 6: the entries of a closed list */
    bool in_window = up > 0 && is_window(&r->nodes[up]);
    bool beyond = r->beyond && !shows && up >= 0 && r->nodes[up].shown &&
                  state_in(n->states, STATE_VISIBLE) && reader_in_page(r, up);
    n->closed = !shows && !beyond && is_closed(r, n);
    if (shows || beyond || n->closed)
        show(r, i);
    if (in_window) {
        r->nodes[up].unseen--;
        r->nodes[up].any_shown |= shows;
        window_seen(r, up);
    }
}

static void take_rect(struct node *n, DBusMessage *reply)
{
    dbus_int32_t v[4] = {0};
    DBusMessageIter at, in;
    if (!reply || dbus_message_get_type(reply) != DBUS_MESSAGE_TYPE_METHOD_RETURN ||
        !dbus_message_iter_init(reply, &at) || dbus_message_iter_get_arg_type(&at) != DBUS_TYPE_STRUCT)
        return;
    dbus_message_iter_recurse(&at, &in);
    for (int i = 0; i < 4 && dbus_message_iter_get_arg_type(&in) == DBUS_TYPE_INT32;
         i++, dbus_message_iter_next(&in))
        dbus_message_iter_get_basic(&in, &v[i]);
    for (int i = 0; i < 4; i++) /* places far outside any screen would overflow sums */
        v[i] = v[i] < -100000 ? -100000 : v[i] > 100000 ? 100000 : v[i];
    n->told = (struct screen_rect){v[0], v[1], v[2], v[3]};
    n->placed = v[2] > 0 && v[3] > 0;
}

static void add_child(struct reader *r, int i, const char *bus, const char *path, int order)
{
    int child = add_node(r, i, bus, path, order);
    if (child < 0)
        return;
    r->nodes[i].unseen++;
    reader_push(r, child, CALL_STATE, 0, 0);
    if (r->nodes[i].children <= EAGER) /* most of few siblings show: saves a round trip */
        ask_first(r, child);
}

static void take_children(struct reader *r, int i, DBusMessage *reply)
{
    DBusMessageIter at, in;
    const char *bus, *path;
    if (!reply || !dbus_message_iter_init(reply, &at) ||
        dbus_message_iter_get_arg_type(&at) != DBUS_TYPE_ARRAY)
        return;
    dbus_message_iter_recurse(&at, &in);
    if (r->nodes[i].children == 1 && dbus_message_iter_get_arg_type(&in) == DBUS_TYPE_INVALID)
        reader_push(r, i, CALL_CHILD, 0, 0);
    for (int k = 0; k < READ_CHILDREN && dbus_message_iter_get_arg_type(&in) != DBUS_TYPE_INVALID; k++) {
        if (reader_reference(&in, &bus, &path))
            add_child(r, i, bus, path, k);
        dbus_message_iter_next(&in);
    }
}

static void take_child(struct reader *r, int i, DBusMessage *reply)
{
    DBusMessageIter at;
    const char *bus, *path;
    if (reply && dbus_message_iter_init(reply, &at) && reader_reference(&at, &bus, &path))
        add_child(r, i, bus, path, 0);
}

static int node_at(const struct reader *r, const char *bus, const char *path)
{
    for (int i = 0; i < r->n; i++)
        if (!strcmp(r->nodes[i].path, path) && !strcmp(r->nodes[i].bus, bus))
            return i;
    return -1;
}

/* Descends with hit tests to the innermost element at the point. Elements that the tree lacks end the
 * search. */
static void take_point(struct reader *r, const struct slot *s, DBusMessage *reply)
{
    DBusMessageIter at;
    const char *bus, *path;
    if (!reply || !dbus_message_iter_init(reply, &at) || !reader_reference(&at, &bus, &path))
        return;
    int found = node_at(r, bus, path);
    if (found < 0 || found == s->node || r->nodes[found].depth <= r->nodes[s->node].depth)
        return;
    r->hit = found;
    reader_push(r, found, CALL_POINT, s->x, s->y);
}

static void take_hit(struct reader *r, const struct slot *s, DBusMessage *reply)
{
    DBusMessageIter at;
    const char *bus, *path;
    if (reply && dbus_message_iter_init(reply, &at) && reader_reference(&at, &bus, &path) &&
        strcmp(path, r->nodes[s->node].path) != 0)
        add_child(r, s->node, bus, path, s->y * 10000 + s->x);
}

static void take_text(struct node *n, DBusMessage *reply)
{
    char text[4 * READ_FIELD + 1];
    bus_text(reply, text, sizeof text);
    free(n->value);
    n->value = *text ? xstrdup(text) : NULL;
}

/* Marks an element that browsers describe as text, but that a page makes clickable. */
static void take_action(struct node *n, DBusMessage *reply)
{
    char name[16];
    bus_text(reply, name, sizeof name);
    if (!strcmp(name, "click"))
        n->states |= UINT64_C(1) << STATE_CLICKABLE;
}

/* Handles the reply to one of the first four calls. */
static void take_first(struct reader *r, const struct slot *s, DBusMessage *reply)
{
    struct node *n = &r->nodes[s->node];
    char name[READ_NAME];
    dbus_int64_t v = 0;
    if (s->call == CALL_NAME) {
        bus_text(reply, name, sizeof name);
        free(n->name);
        n->name = xstrdup(name);
    } else if (s->call == CALL_RECT) {
        take_rect(n, reply);
    } else if (bus_integer(reply, &v) && s->call == CALL_ROLE) {
        n->role = v >= 0 && v < 1000 ? (uint32_t)v : ROLE_UNKNOWN;
    } else if (s->call == CALL_COUNT) {
        n->children = v > 0 ? (int)v : 0;
    }
    if (--n->missing == 0 && n->shown)
        described(r, s->node);
}

void reader_take(struct reader *r, const struct slot *s, DBusMessage *reply)
{
    struct node *n = &r->nodes[s->node];
    dbus_int64_t length = 0;
    switch (s->call) {
    case CALL_STATE:
        take_state(r, s->node, reply);
        break;
    case CALL_ROLE:
    case CALL_NAME:
    case CALL_COUNT:
    case CALL_RECT:
        take_first(r, s, reply);
        break;
    case CALL_CHILDREN:
        take_children(r, s->node, reply);
        break;
    case CALL_CHILD:
        take_child(r, s->node, reply);
        break;
    case CALL_HIT:
        take_hit(r, s, reply);
        break;
    case CALL_POINT:
        take_point(r, s, reply);
        break;
    case CALL_LENGTH: {
        int most = state_in(n->states, STATE_FOCUSED) ? READ_FIELD : READ_TEXT;
        if (bus_integer(reply, &length) && length > 0)
            reader_push(r, s->node, CALL_TEXT, length < most ? (int)length : most, 0);
        else if (n->role == ROLE_SPIN_BUTTON && !state_in(n->states, STATE_EDITABLE)) /* part of a date */
            reader_push(r, s->node, CALL_NUMBER, 0, 0);
        break;
    }
    case CALL_TEXT:
    case CALL_ADDRESS:
        take_text(n, reply);
        break;
    case CALL_NUMBER ... CALL_MOST:
        reader_take_number(n, s->call, reply);
        break;
    case CALL_ACTION:
        take_action(n, reply);
        break;
    case CALL_RELATIONS:
        reader_take_relations(r, s->node, reply);
        break;
    case CALL_LABEL: {
        char name[READ_NAME];
        bus_text(reply, name, sizeof name);
        free(n->name);
        n->name = xstrdup(name);
        break;
    }
    case CALL_TOOLKIT:
        bus_text(reply, r->program->toolkit, sizeof r->program->toolkit);
        break;
    case CALL_VERSION:
        bus_text(reply, r->program->version, sizeof r->program->version);
        break;
    }
}
