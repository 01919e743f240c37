/* bus.h - the accessibility bus of an X display, through libdbus-1.
 *
 * Only child processes use these functions: libdbus waits up to 25 s for a bus that does not answer. */
#pragma once

#include "base/err.h"

#include <dbus/dbus.h>
#include <stdbool.h>

#define ATSPI_REGISTRY "org.a11y.atspi.Registry"
#define ATSPI_ROOT     "/org/a11y/atspi/accessible/root"

/* Connects to the bus at `x11_address`, the property AT_SPI_BUS of a display, or if that is "" to the one
 * that the session bus of the environment names. Returns NULL with ERR_ENV if no such bus exists. The caller
 * closes the connection. */
DBusConnection *bus_open(const char *x11_address, struct err *e);
void bus_close(DBusConnection *c); /* accepts NULL */

/* Returns a new call without arguments, or NULL if a name is invalid or memory is short. */
DBusMessage *bus_call(const char *name, const char *path, const char *interface, const char *method);
/* Returns a new call that reads a property. */
DBusMessage *bus_get(const char *name, const char *path, const char *interface, const char *property);
/* Sends a call and waits at most ms for its reply; releases the call. Returns NULL without a reply or for an
 * error. */
DBusMessage *bus_ask(DBusConnection *c, DBusMessage *call, int ms);
/* Writes the string in a reply, or "" if it has none. Control characters become spaces; longer texts are
 * cut. */
void bus_text(DBusMessage *reply, char *out, size_t size);
/* Reads the integer in a reply, also from a variant. Returns false if it has none. */
bool bus_integer(DBusMessage *reply, dbus_int64_t *out);

/* Writes the D-Bus address of a socket. Returns -1 if its path is too long for a socket. */
int bus_address(const char *socket, char *out, size_t size);
/* Starts the accessibility bus and the registry of the session bus at this address, and sets IsEnabled and
 * ScreenReaderEnabled there. Returns -1 with ERR_ENV if one of them does not start. Waits at most ms for
 * each of four replies. */
int bus_wake(const char *session_address, int ms, struct err *e);
