/* fake_tree.c - see fake_tree.h. */
#include "fake_tree.h"

#include "atspi/bus.h"
#include "atspi/roles.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTED_MAX = 200, CELL_FROM = 1000000, CELL_H = 20, REGISTER_MS = 5000 };

static struct {
    DBusConnection *c;
    const struct fake_node *nodes;
    const char *toolkit;
    int n, calls;
} fake;

static const struct fake_node *node_of(const char *path)
{
    static struct fake_node cell;
    int id = 0;
    if (sscanf(path, "/n/%d", &id) != 1)
        return NULL;
    if (id >= CELL_FROM) { /* a cell of the table with too many children */
        static char name[32];
        int row = id - CELL_FROM;
        snprintf(name, sizeof name, "Cell %d", row);
        cell =
            (struct fake_node){id, 0, ROLE_TABLE_CELL, name, NULL, 0, 0, row * CELL_H, 400, CELL_H, 0, 0, 0};
        cell.states = 1ULL << STATE_SHOWING | 1ULL << STATE_VISIBLE;
        return &cell;
    }
    for (int i = 0; i < fake.n; i++)
        if (fake.nodes[i].id == id)
            return &fake.nodes[i];
    return NULL;
}

static void put_reference(DBusMessageIter *at, int id)
{
    DBusMessageIter pair;
    char path[32];
    const char *bus = dbus_bus_get_unique_name(fake.c), *p = path;
    snprintf(path, sizeof path, "/n/%d", id);
    dbus_message_iter_open_container(at, DBUS_TYPE_STRUCT, NULL, &pair);
    dbus_message_iter_append_basic(&pair, DBUS_TYPE_STRING, &bus);
    dbus_message_iter_append_basic(&pair, DBUS_TYPE_OBJECT_PATH, &p);
    dbus_message_iter_close_container(at, &pair);
}

static int count_children(int id, const struct fake_node *n)
{
    int count = n && n->also ? 1 : 0;
    for (int i = 0; i < fake.n; i++)
        count += fake.nodes[i].parent == id;
    return n && n->children ? n->children : count;
}

static void put_children(DBusMessage *r, int id, const struct fake_node *n)
{
    DBusMessageIter at, list;
    dbus_message_iter_init_append(r, &at);
    dbus_message_iter_open_container(&at, DBUS_TYPE_ARRAY, "(so)", &list);
    for (int i = 0; i < fake.n; i++)
        if (fake.nodes[i].parent == id)
            put_reference(&list, fake.nodes[i].id);
    if (n && n->also)
        put_reference(&list, n->also);
    dbus_message_iter_close_container(&at, &list);
}

static void put_variant(DBusMessage *r, int type, const void *value)
{
    DBusMessageIter at, in;
    const char signature[] = {(char)type, 0};
    dbus_message_iter_init_append(r, &at);
    dbus_message_iter_open_container(&at, DBUS_TYPE_VARIANT, signature, &in);
    dbus_message_iter_append_basic(&in, type, value);
    dbus_message_iter_close_container(&at, &in);
}

static void put_property(DBusMessage *call, DBusMessage *r, int id, const struct fake_node *n)
{
    const char *interface = "", *property = "", *name = n ? n->name : "fake", *toolkit = fake.toolkit;
    dbus_message_get_args(call, NULL, DBUS_TYPE_STRING, &interface, DBUS_TYPE_STRING, &property,
                          DBUS_TYPE_INVALID);
    dbus_int32_t number = 0;
    if (!strcmp(property, "Name")) {
        put_variant(r, DBUS_TYPE_STRING, &name);
    } else if (!strcmp(property, "ToolkitName")) {
        put_variant(r, DBUS_TYPE_STRING, &toolkit);
    } else {
        number = !strcmp(property, "ChildCount") ? count_children(id, n)
                 : n && n->text                  ? (int)strlen(n->text)
                                                 : 0;
        put_variant(r, DBUS_TYPE_INT32, &number);
    }
}

static void put_rect(DBusMessage *r, const struct fake_node *n)
{
    const dbus_int32_t v[4] = {n ? n->x : 0, n ? n->y : 0, n ? n->w : 0, n ? n->h : 0};
    DBusMessageIter at, in;
    dbus_message_iter_init_append(r, &at);
    dbus_message_iter_open_container(&at, DBUS_TYPE_STRUCT, NULL, &in);
    for (int i = 0; i < 4; i++)
        dbus_message_iter_append_basic(&in, DBUS_TYPE_INT32, &v[i]);
    dbus_message_iter_close_container(&at, &in);
}

/* Labels a node by the node `labelled_by`. */
static void put_relations(DBusMessage *r, const struct fake_node *n)
{
    DBusMessageIter at, all, one, targets;
    const dbus_uint32_t kind = 2; /* ATSPI_RELATION_LABELLED_BY */
    dbus_message_iter_init_append(r, &at);
    dbus_message_iter_open_container(&at, DBUS_TYPE_ARRAY, "(ua(so))", &all);
    if (n && n->labelled_by) {
        dbus_message_iter_open_container(&all, DBUS_TYPE_STRUCT, NULL, &one);
        dbus_message_iter_append_basic(&one, DBUS_TYPE_UINT32, &kind);
        dbus_message_iter_open_container(&one, DBUS_TYPE_ARRAY, "(so)", &targets);
        put_reference(&targets, n->labelled_by);
        dbus_message_iter_close_container(&one, &targets);
        dbus_message_iter_close_container(&all, &one);
    }
    dbus_message_iter_close_container(&at, &all);
}

/* Appends the element at a point: a cell of a table with too many children, else the node itself. */
static void put_hit(DBusMessage *call, DBusMessage *r, int id, const struct fake_node *n)
{
    dbus_int32_t x = 0, y = 0;
    DBusMessageIter at;
    dbus_message_get_args(call, NULL, DBUS_TYPE_INT32, &x, DBUS_TYPE_INT32, &y, DBUS_TYPE_INVALID);
    dbus_message_iter_init_append(r, &at);
    put_reference(&at, n && n->children == FAKE_CELLS ? CELL_FROM + y / CELL_H : id);
}

/* Notes a call that harms programs or reads a secret. */
static void watch(const char *interface, const char *method, int id, const struct fake_node *n)
{
    bool text = strstr(interface, "Text") != NULL;
    bool bad = strstr(interface, ".Action") || strstr(interface, "Cache") ||
               strstr(interface, "Collection") || !strcmp(method, "GrabFocus") ||
               (text && n && (n->role == ROLE_PASSWORD || role_hides_text(n->name))) ||
               (!strcmp(method, "GetChildren") && count_children(id, n) > LISTED_MAX);
    if (bad)
        dprintf(fake.calls, "%s.%s of node %d\n", interface, method, id);
}

static void answer(DBusMessage *call)
{
    const char *path = dbus_message_get_path(call), *method = dbus_message_get_member(call);
    const char *interface = dbus_message_get_interface(call), *text;
    const struct fake_node *n = node_of(path ? path : "");
    int id = n ? n->id : 0;
    if (n && n->silent)
        return;
    bool get = interface && method && !strcmp(method, "Get");
    const char *of = interface ? interface : "";
    if (get) /* a property of the interface that is its first argument */
        dbus_message_get_args(call, NULL, DBUS_TYPE_STRING, &of, DBUS_TYPE_INVALID);
    watch(of, method ? method : "", id, n);
    DBusMessage *r = dbus_message_new_method_return(call);
    if (get) {
        put_property(call, r, id, n);
    } else if (method && !strcmp(method, "GetState")) {
        const dbus_uint32_t v[2] = {n ? (uint32_t)n->states : 0, n ? (uint32_t)(n->states >> 32) : 0}, *p = v;
        dbus_message_append_args(r, DBUS_TYPE_ARRAY, DBUS_TYPE_UINT32, &p, 2, DBUS_TYPE_INVALID);
    } else if (method && !strcmp(method, "GetRole")) {
        const dbus_uint32_t role = n ? n->role : 75;
        dbus_message_append_args(r, DBUS_TYPE_UINT32, &role, DBUS_TYPE_INVALID);
    } else if (method && !strcmp(method, "GetChildren")) {
        put_children(r, id, n);
    } else if (method && !strcmp(method, "GetExtents")) {
        put_rect(r, n);
    } else if (method && !strcmp(method, "GetAccessibleAtPoint")) {
        put_hit(call, r, id, n);
    } else if (method && !strcmp(method, "GetRelationSet")) {
        put_relations(r, n);
    } else if (method && !strcmp(method, "GetText")) {
        text = n && n->text ? n->text : "";
        dbus_message_append_args(r, DBUS_TYPE_STRING, &text, DBUS_TYPE_INVALID);
    }
    dbus_connection_send(fake.c, r, NULL);
    dbus_message_unref(r);
}

static int enroll(void)
{
    DBusMessage *m = bus_call(ATSPI_REGISTRY, ATSPI_ROOT, "org.a11y.atspi.Socket", "Embed");
    const char *bus = dbus_bus_get_unique_name(fake.c), *path = ATSPI_ROOT;
    DBusMessageIter at, pair;
    dbus_message_iter_init_append(m, &at);
    dbus_message_iter_open_container(&at, DBUS_TYPE_STRUCT, NULL, &pair);
    dbus_message_iter_append_basic(&pair, DBUS_TYPE_STRING, &bus);
    dbus_message_iter_append_basic(&pair, DBUS_TYPE_OBJECT_PATH, &path);
    dbus_message_iter_close_container(&at, &pair);
    DBusMessage *reply = bus_ask(fake.c, m, REGISTER_MS);
    if (reply)
        dbus_message_unref(reply);
    return reply ? 0 : -1;
}

_Noreturn static void serve(int ready)
{
    struct err e = ERR_INIT;
    DBusMessage *m;
    fake.c = bus_open("", &e);
    char ok = fake.c && enroll() == 0 ? 'y' : 'n';
    if (write(ready, &ok, 1) != 1 || ok == 'n')
        _exit(1);
    while (dbus_connection_read_write(fake.c, 1000))
        while ((m = dbus_connection_pop_message(fake.c))) {
            if (dbus_message_get_type(m) == DBUS_MESSAGE_TYPE_METHOD_CALL)
                answer(m);
            dbus_message_unref(m);
        }
    _exit(0);
}

int fake_tree_start(struct fake_tree *t, const char *toolkit, const struct fake_node *nodes, int n)
{
    int ready[2], calls[2];
    char ok = 'n';
    if (pipe2(ready, O_CLOEXEC) || pipe2(calls, O_CLOEXEC | O_NONBLOCK))
        return -1;
    t->pid = fork();
    if (t->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fake.nodes = nodes;
        fake.n = n;
        fake.toolkit = toolkit;
        fake.calls = calls[1];
        serve(ready[1]);
    }
    close(ready[1]);
    close(calls[1]);
    t->calls = calls[0];
    ssize_t got = read(ready[0], &ok, 1);
    close(ready[0]);
    return got == 1 && ok == 'y' ? 0 : -1;
}

int fake_tree_stop(struct fake_tree *t, char *what, size_t size)
{
    int lines = 0;
    kill(t->pid, SIGKILL);
    while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    ssize_t n = read(t->calls, what, size - 1);
    what[n > 0 ? n : 0] = 0;
    for (const char *p = what; *p; p++)
        lines += *p == '\n';
    what[strcspn(what, "\n")] = 0;
    close(t->calls);
    return lines;
}
