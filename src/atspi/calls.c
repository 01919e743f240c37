/* calls.c - calls in flight of reader_impl.h: builds, sends and times them.
 *
 * Replies are matched by serial number, without DBusPendingCall, whose time limits need a main loop. A reply
 * that comes late is dropped. */
#include "atspi/reader_impl.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define ATSPI "org.a11y.atspi."

void reader_push(struct reader *r, int node, enum call call, int x, int y)
{
    if (r->queued == r->queue_cap) {
        r->queue_cap = r->queue_cap ? 2 * r->queue_cap : 256;
        r->queue = xrealloc(r->queue, r->queue_cap, sizeof *r->queue);
    }
    r->queue[r->queued++] = (struct pending){.node = node, .call = call, .x = x, .y = y};
}

bool reader_is_gtk4(const struct reader *r)
{
    return !strcmp(r->program->toolkit, "GTK"); /* GTK 3 writes "gtk" */
}

/* Returns the system of coordinates to ask for, AtspiCoordType. GTK 4 knows only those of the window, and
 * prints a warning for each call with others. */
static dbus_uint32_t system_of(const struct reader *r)
{
    return reader_is_gtk4(r);
}

static DBusMessage *with_point(DBusMessage *m, int x, int y, dbus_uint32_t system)
{
    dbus_int32_t px = x, py = y;
    if (m)
        dbus_message_append_args(m, DBUS_TYPE_INT32, &px, DBUS_TYPE_INT32, &py, DBUS_TYPE_UINT32, &system,
                                 DBUS_TYPE_INVALID);
    return m;
}

static const char *number_name(enum call call)
{
    return call == CALL_LEAST ? "MinimumValue" : call == CALL_MOST ? "MaximumValue" : "CurrentValue";
}

static DBusMessage *build(const struct reader *r, const struct pending *p)
{
    const struct node *n = &r->nodes[p->node];
    dbus_int32_t from = 0, to = p->x;
    dbus_uint32_t system = system_of(r);
    const char *url = "DocURL";
    DBusMessage *m = NULL;
    switch (p->call) {
    case CALL_STATE:
        return bus_call(n->bus, n->path, ATSPI "Accessible", "GetState");
    case CALL_ROLE:
        return bus_call(n->bus, n->path, ATSPI "Accessible", "GetRole");
    case CALL_NAME:
        return bus_get(n->bus, n->path, ATSPI "Accessible", "Name");
    case CALL_COUNT:
        return bus_get(n->bus, n->path, ATSPI "Accessible", "ChildCount");
    case CALL_CHILDREN:
        return bus_call(n->bus, n->path, ATSPI "Accessible", "GetChildren");
    case CALL_CHILD:
        if ((m = bus_call(n->bus, n->path, ATSPI "Accessible", "GetChildAtIndex")))
            dbus_message_append_args(m, DBUS_TYPE_INT32, &from, DBUS_TYPE_INVALID);
        return m;
    case CALL_RECT:
        if ((m = bus_call(n->bus, n->path, ATSPI "Component", "GetExtents")))
            dbus_message_append_args(m, DBUS_TYPE_UINT32, &system, DBUS_TYPE_INVALID);
        return m;
    case CALL_HIT:
    case CALL_POINT:
        return with_point(bus_call(n->bus, n->path, ATSPI "Component", "GetAccessibleAtPoint"), p->x, p->y,
                          system);
    case CALL_LENGTH:
        return bus_get(n->bus, n->path, ATSPI "Text", "CharacterCount");
    case CALL_TEXT:
        if ((m = bus_call(n->bus, n->path, ATSPI "Text", "GetText")))
            dbus_message_append_args(m, DBUS_TYPE_INT32, &from, DBUS_TYPE_INT32, &to, DBUS_TYPE_INVALID);
        return m;
    case CALL_ACTION:
        if ((m = bus_call(n->bus, n->path, ATSPI "Action", "GetName")))
            dbus_message_append_args(m, DBUS_TYPE_INT32, &from, DBUS_TYPE_INVALID);
        return m;
    case CALL_NUMBER ... CALL_MOST:
        return bus_get(n->bus, n->path, ATSPI "Value", number_name(p->call));
    case CALL_ADDRESS:
        if ((m = bus_call(n->bus, n->path, ATSPI "Document", "GetAttributeValue")))
            dbus_message_append_args(m, DBUS_TYPE_STRING, &url, DBUS_TYPE_INVALID);
        return m;
    case CALL_RELATIONS:
        return bus_call(n->bus, n->path, ATSPI "Accessible", "GetRelationSet");
    case CALL_LABEL:
        if ((m = bus_call(n->bus, n->label, ATSPI "Text", "GetText")))
            dbus_message_append_args(m, DBUS_TYPE_INT32, &from, DBUS_TYPE_INT32, &to, DBUS_TYPE_INVALID);
        return m;
    case CALL_TOOLKIT:
        return bus_get(n->bus, n->path, ATSPI "Application", "ToolkitName");
    case CALL_VERSION:
        return bus_get(n->bus, n->path, ATSPI "Application", "Version");
    }
    return m;
}

/* Sends queued calls while fewer than READ_IN_FLIGHT are in flight. */
static void send_queued(struct reader *r)
{
    for (int i = 0; i < READ_IN_FLIGHT && r->first < r->queued; i++) {
        struct slot *s = &r->slots[i];
        if (s->serial)
            continue;
        struct pending p = r->queue[r->first++];
        DBusMessage *m = build(r, &p);
        *s = (struct slot){.node = p.node, .call = p.call, .x = p.x, .y = p.y, .sent = clock_ns()};
        if (m && dbus_connection_send(r->bus, m, &s->serial)) {
            r->in_flight++;
            r->calls++;
        } else {
            s->serial = 0;
            reader_take(r, s, NULL);
        }
        if (m)
            dbus_message_unref(m);
    }
}

static void finish(struct reader *r, struct slot *s, DBusMessage *reply)
{
    struct slot done = *s;
    s->serial = 0;
    r->in_flight--;
    struct node *n = &r->nodes[s->node];
    if (reply)
        r->program->overdue = 0;
    else if (!n->late) /* further calls about the same node are late for the same reason */
        r->program->overdue++;
    n->late = n->late || !reply;
    r->cut = r->cut || !reply;
    reader_take(r, &done, reply);
}

static void receive(struct reader *r, void (*event)(void *arg, DBusMessage *m), void *arg)
{
    DBusMessage *m;
    while ((m = dbus_connection_pop_message(r->bus))) {
        uint32_t serial = dbus_message_get_reply_serial(m);
        event(arg, m);
        for (int i = 0; serial && i < READ_IN_FLIGHT; i++)
            if (r->slots[i].serial == serial) {
                finish(r, &r->slots[i], m);
                break;
            }
        dbus_message_unref(m);
    }
}

/* Gives up calls that have lasted max_ms. Returns the age of the oldest other call in ms. */
static double expire(struct reader *r, double max_ms)
{
    double oldest = 0;
    for (int i = 0; i < READ_IN_FLIGHT; i++) {
        struct slot *s = &r->slots[i];
        double ms = s->serial ? clock_ms_since(s->sent) : 0;
        if (ms > max_ms)
            finish(r, s, NULL);
        else
            oldest = ms > oldest ? ms : oldest;
    }
    return oldest;
}

enum snapshot_end reader_run(struct reader *r, double ms, void (*event)(void *arg, DBusMessage *m), void *arg)
{
    int64_t start = clock_ns();
    double oldest = 0, call_ms = ms / READ_CALLS > READ_CALL_MS ? ms / READ_CALLS : READ_CALL_MS;
    bool silent = false;
    while ((r->in_flight || r->first < r->queued) && !silent && !r->lost) {
        double left = ms - clock_ms_since(start);
        if (left <= 0)
            break;
        send_queued(r);
        r->lost = !dbus_connection_read_write(r->bus, left < 20 ? (int)left + 1 : 20);
        receive(r, event, arg);
        oldest = expire(r, call_ms);
        silent = r->program->overdue >= READ_SILENT;
    }
    bool cut = r->in_flight || r->first < r->queued;
    /* A snapshot that ends before a call is overdue tells a silent program by the age of its oldest call. */
    silent = silent || (cut && oldest > READ_CALL_MS / 2.0 && oldest > ms / 2);
    if (silent)
        r->program->silent_until = clock_ns() + READ_SILENT_MS * INT64_C(1000000);
    r->program->read_before = r->program->read_before || !cut;
    if (silent)
        return SNAPSHOT_SILENT;
    return cut || r->cut || r->lost ? SNAPSHOT_CUT : r->n > 1 ? SNAPSHOT_WHOLE : SNAPSHOT_NOTHING;
}
