/* bus.c - connects to accessibility buses and builds messages; see bus.h. */
#include "atspi/bus.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { OPEN_MS = 2000, AGAIN_MS = 50, MESSAGE_MAX = 16 << 20 };

static DBusConnection *connect_to(const char *address, struct err *e)
{
    DBusError error = DBUS_ERROR_INIT;
    DBusConnection *c = dbus_connection_open_private(address, &error);
    if (c && dbus_bus_register(c, &error)) {
        dbus_connection_set_exit_on_disconnect(c, false);
        dbus_connection_set_max_message_size(c, MESSAGE_MAX);
        return c;
    }
    err_set(e, ERR_ENV, "cannot connect to the D-Bus bus '%.200s': %.200s", address, error.message);
    dbus_error_free(&error);
    bus_close(c);
    return NULL;
}

void bus_close(DBusConnection *c)
{
    if (!c)
        return;
    dbus_connection_close(c);
    dbus_connection_unref(c);
}

/* Connects to the session bus of the environment. libdbus would start one if there is none. */
static DBusConnection *connect_session(struct err *e)
{
    const char *given = getenv("DBUS_SESSION_BUS_ADDRESS"), *runtime = getenv("XDG_RUNTIME_DIR");
    char socket[200], address[400];
    if (given && *given)
        return connect_to(given, e);
    snprintf(socket, sizeof socket, "%s/bus", runtime ? runtime : "");
    if (runtime && access(socket, F_OK) == 0 && bus_address(socket, address, sizeof address) == 0)
        return connect_to(address, e);
    err_set(e, ERR_ENV,
            "no accessibility bus: the display names none, and DBUS_SESSION_BUS_ADDRESS is not set");
    return NULL;
}

DBusMessage *bus_call(const char *name, const char *path, const char *interface, const char *method)
{
    if (!dbus_validate_bus_name(name, NULL) || !dbus_validate_path(path, NULL))
        return NULL;
    DBusMessage *m = dbus_message_new_method_call(name, path, interface, method);
    if (m)
        dbus_message_set_auto_start(m, true);
    return m;
}

DBusMessage *bus_get(const char *name, const char *path, const char *interface, const char *property)
{
    DBusMessage *m = bus_call(name, path, DBUS_INTERFACE_PROPERTIES, "Get");
    if (m)
        dbus_message_append_args(m, DBUS_TYPE_STRING, &interface, DBUS_TYPE_STRING, &property,
                                 DBUS_TYPE_INVALID);
    return m;
}

DBusMessage *bus_ask(DBusConnection *c, DBusMessage *call, int ms)
{
    DBusMessage *reply = call ? dbus_connection_send_with_reply_and_block(c, call, ms, NULL) : NULL;
    if (call)
        dbus_message_unref(call);
    return reply;
}

/* Moves to the first value of a reply, into a variant. Returns false if the reply has no value. */
static bool value_of(DBusMessage *reply, DBusMessageIter *at)
{
    if (!reply || dbus_message_get_type(reply) != DBUS_MESSAGE_TYPE_METHOD_RETURN ||
        !dbus_message_iter_init(reply, at))
        return false;
    if (dbus_message_iter_get_arg_type(at) == DBUS_TYPE_VARIANT) {
        DBusMessageIter inner;
        dbus_message_iter_recurse(at, &inner);
        *at = inner;
    }
    return true;
}

void bus_text(DBusMessage *reply, char *out, size_t size)
{
    DBusMessageIter at;
    const char *text = "";
    if (value_of(reply, &at) && dbus_message_iter_get_arg_type(&at) == DBUS_TYPE_STRING)
        dbus_message_iter_get_basic(&at, &text);
    size_t n = 0;
    for (const char *from = text; *from;) {
        uint32_t cp;
        int k = utf8_decode(from, strnlen(from, 4), &cp);
        if (k < 1 || n + (size_t)k >= size)
            break;
        if (!utf8_printable(cp) && (cp <= ' ' || cp == 127)) /* hidden characters and U+FFFC are dropped */
            out[n++] = ' ';
        else if (utf8_printable(cp) && cp != 0xfffc) {
            memcpy(out + n, from, (size_t)k);
            n += (size_t)k;
        }
        from += k;
    }
    out[n] = 0;
}

bool bus_integer(DBusMessage *reply, dbus_int64_t *out)
{
    DBusMessageIter at;
    int type = value_of(reply, &at) ? dbus_message_iter_get_arg_type(&at) : DBUS_TYPE_INVALID;
    DBusBasicValue v;
    if (type != DBUS_TYPE_INT32 && type != DBUS_TYPE_UINT32)
        return false;
    dbus_message_iter_get_basic(&at, &v);
    *out = type == DBUS_TYPE_INT32 ? v.i32 : (dbus_int64_t)v.u32;
    return true;
}

/* Asks the session bus for the address of the accessibility bus, which starts it. */
static int ask_address(DBusConnection *c, int ms, char *out, size_t size)
{
    DBusMessage *reply =
        bus_ask(c, bus_call("org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus", "GetAddress"), ms);
    bus_text(reply, out, size);
    if (reply)
        dbus_message_unref(reply);
    return *out ? 0 : -1;
}

DBusConnection *bus_open(const char *x11_address, struct err *e)
{
    char address[512];
    if (*x11_address)
        return connect_to(x11_address, e);
    DBusConnection *c = connect_session(e);
    if (!c)
        return NULL;
    int rc = ask_address(c, OPEN_MS, address, sizeof address);
    bus_close(c);
    if (rc == 0)
        return connect_to(address, e);
    err_set(e, ERR_ENV,
            "no accessibility bus: the session bus cannot start org.a11y.Bus; install at-spi2-core");
    return NULL;
}

int bus_address(const char *socket, char *out, size_t size)
{
    char *escaped =
        strlen(socket) < sizeof((struct sockaddr_un *)0)->sun_path ? dbus_address_escape_value(socket) : NULL;
    int n = escaped ? snprintf(out, size, "unix:path=%s", escaped) : -1;
    dbus_free(escaped);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

/* ---- starting --------------------------------------------------------------------------------------- */

static bool set_status(DBusConnection *c, const char *property, int ms)
{
    const char *interface = "org.a11y.Status";
    dbus_bool_t yes = true;
    DBusMessageIter at, value;
    DBusMessage *m = bus_call("org.a11y.Bus", "/org/a11y/bus", DBUS_INTERFACE_PROPERTIES, "Set");
    if (!m)
        return false;
    dbus_message_iter_init_append(m, &at);
    dbus_message_iter_append_basic(&at, DBUS_TYPE_STRING, &interface);
    dbus_message_iter_append_basic(&at, DBUS_TYPE_STRING, &property);
    dbus_message_iter_open_container(&at, DBUS_TYPE_VARIANT, "b", &value);
    dbus_message_iter_append_basic(&value, DBUS_TYPE_BOOLEAN, &yes);
    dbus_message_iter_close_container(&at, &value);
    DBusMessage *reply = bus_ask(c, m, ms);
    if (reply)
        dbus_message_unref(reply);
    return reply != NULL;
}

/* Starts the registry by a call to it. The bus reports an error if the registry ends while it starts, as it
 * does on a loaded machine; then it is called again. */
static int wake_registry(const char *address, int ms, struct err *e)
{
    DBusConnection *c = connect_to(address, e);
    if (!c)
        return -1;
    DBusMessage *reply = NULL;
    for (int64_t start = clock_ns(); !reply && clock_ms_since(start) < ms;
         clock_sleep_ms(reply ? 0 : AGAIN_MS))
        reply =
            bus_ask(c, bus_get(ATSPI_REGISTRY, ATSPI_ROOT, "org.a11y.atspi.Accessible", "ChildCount"), ms);
    bool running = reply != NULL;
    if (reply)
        dbus_message_unref(reply);
    bus_close(c);
    return running ? 0 : err_set(e, ERR_ENV, "the registry of the accessibility bus does not answer");
}

int bus_wake(const char *session_address, int ms, struct err *e)
{
    char address[512];
    DBusConnection *c = connect_to(session_address, e);
    if (!c)
        return -1;
    int rc = ask_address(c, ms, address, sizeof address) || !set_status(c, "IsEnabled", ms);
    if (!rc)
        set_status(c, "ScreenReaderEnabled", ms); /* at-spi2-core 2.62 does not have it */
    bus_close(c);
    if (rc)
        return err_set(e, ERR_ENV, "at-spi-bus-launcher does not start; install at-spi2-core");
    return wake_registry(address, ms, e);
}
