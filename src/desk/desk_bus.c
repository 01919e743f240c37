/* desk_bus.c - starts the session bus and the accessibility bus of a desk, in its supervisor.
 *
 * The session bus is a dbus-daemon with a socket in the run directory of the desk. It is started after the X
 * server, because at-spi-bus-launcher, which it activates, writes the address of the accessibility bus into
 * the property AT_SPI_BUS of the root window, and is awaited before any program but openbox starts: programs
 * decide at their start whether they describe their elements. ScreenReaderEnabled is set, too: on this bus no
 * desktop starts a screen reader by it. */
#include "desk/private.h"

#include "atspi/bus.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPLY_MS = 2000, WAKE_MS = 5000 };

bool desk_bus_installed(void)
{
    return child_installed("dbus-daemon");
}

static int start_daemon(struct supervisor *k, const char *address, int64_t deadline, struct err *e)
{
    char print[32], listen[DESK_PATH + 16];
    int ready[2];
    if (pipe2(ready, O_CLOEXEC))
        return err_set(e, ERR_ENV, "cannot start a session bus: %s", strerror(errno));
    snprintf(print, sizeof print, "--print-address=%d", ready[1]);
    snprintf(listen, sizeof listen, "--address=%s", address);
    const char *argv[] = {"dbus-daemon", "--session", "--nofork", "--nopidfile", listen, print, NULL};
    struct child_options h = {
        .argv = argv,
        .keep = ready[1],
        .oom = OOM_SERVER,
        .mark = "GSETTINGS_BACKEND=memory"}; /* at-spi-bus-launcher would write IsEnabled into HOME */
    int rc = supervisor_start(k, &k->bus, &h, &k->bus_log, 0, NULL);
    if (rc)
        err_set(e, ERR_ENV, "cannot start dbus-daemon: %s", strerror(errno));
    close(ready[1]);
    if (rc == 0)
        rc = supervisor_wait_line(k, &k->bus, ready[0], deadline, "session bus", "bus.log", e);
    close(ready[0]);
    return rc;
}

/* Starts the accessibility bus from a process of its own, because libdbus may wait for it. */
static int wake(struct supervisor *k, const char *address, struct err *e)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || bus_wake(address, REPLY_MS, e)) {
            dprintf(k->bus_log.fd, "%s\n", e->text);
            _exit(1);
        }
        _exit(0);
    }
    if (pid < 0)
        return err_set(e, ERR_ENV, "cannot start the accessibility bus: %s", strerror(errno));
    k->wake = (struct process){.pid = pid};
    return 0;
}

/* Writes scripts that start Chromium and its relatives with --force-renderer-accessibility, without which
 * they describe no pages; child.c puts their directory first into PATH. */
static void write_wrappers(const struct supervisor *k)
{
    static const char *const names[] = {
        "chromium",      "chromium-browser", "google-chrome", "google-chrome-stable",
        "brave-browser", "microsoft-edge",   "code"};
    char path[DESK_PATH + 32], program[CHILD_FILE];
    snprintf(path, sizeof path, "%s/bin", k->context.dir);
    if (mkdir(path, 0700))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!child_find(names[i], program) || strchr(program, '\''))
            continue;
        snprintf(path, sizeof path, "%s/bin/%s", k->context.dir, names[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
        if (fd < 0)
            continue;
        if (dprintf(fd, "#!/bin/sh\nexec '%s' --force-renderer-accessibility \"$@\"\n", program) < 0)
            unlink(path); /* an empty script would hide the program */
        close(fd);
    }
}

void supervisor_start_bus(struct supervisor *k, int64_t deadline)
{
    struct err e = ERR_INIT;
    char socket[DESK_PATH + 16], address[DESK_PATH];
    snprintf(socket, sizeof socket, "%s/run/bus", k->context.dir);
    if (!desk_bus_installed())
        err_set(&e, ERR_ENV, "dbus-daemon is not installed");
    else if (bus_address(socket, address, sizeof address))
        err_set(&e, ERR_ENV, "the path of '%s' is too long for a socket", socket);
    else if (start_daemon(k, address, deadline, &e) == 0) {
        snprintf(k->context.bus, sizeof k->context.bus, "%s", address);
        wake(k, address, &e);
        write_wrappers(k);
    }
    if (e.kind)
        dprintf(k->bus_log.fd, "%s\n", e.text);
}

void supervisor_await_bus(struct supervisor *k)
{
    int64_t start = clock_ns();
    if (!k->wake.pid)
        return;
    while (!k->wake.ended && clock_ms_since(start) < WAKE_MS)
        if (supervisor_wait(k, -1, false, 50) & SUPERVISOR_GONE)
            supervisor_end(k);
    if (!k->wake.ended)
        kill(k->wake.pid, SIGKILL);
    if (!k->wake.ended || k->wake.status)
        dprintf(k->bus_log.fd, "the accessibility bus has not started; install at-spi2-core\n");
}
