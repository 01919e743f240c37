/* desk.c - `holorun desk`: opens a private desktop and keeps it until a signal arrives.
 *
 * The address of the desktop goes to stdout, as lines for a shell's eval or as one JSON object; everything
 * else goes to stderr.  Signals are blocked from the start and accepted between two checks of the desktop. */
#include "cmd/commands.h"

#include "run/on_desk.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 500 };

struct settings {
    const char *size, *home, *view, *password_file;
    bool json, elements;
};

#define AT(member) offsetof(struct settings, member)

static const struct option_spec options[] = {
    {"size", 's', OPTION_TEXT, AT(size), "WIDTHxHEIGHT", 0, 32, ON_DESK_SIZE, "size of the desktop", NULL},
    {"home", 0, OPTION_TEXT, AT(home), "DIR", 0, 1000, NULL,
     "home folder for programs on the desktop, created if missing, kept afterwards, and used by one desktop "
     "at a time; default: a temporary one",
     NULL},
    {"view", 'v', OPTION_MAYBE, AT(view), "127.0.0.1:PORT|unix:PATH", 0, 256, NULL,
     "let VNC viewers watch and control the desktop; without a value: a socket in the user's runtime folder",
     NULL},
    {"password-file", 0, OPTION_TEXT, AT(password_file), "FILE", 0, 4096, NULL,
     "file whose first line is the password for viewers, readable only by its owner; required for a port",
     NULL},
    ELEMENTS_OPTION(struct settings),
    JSON_OPTION(struct settings),
    {0},
};

const struct command desk_command = {
    .name = "desk",
    .arguments = "[-- PROGRAM...]",
    .purpose = "open a private desktop until it is stopped",
    .details =
        "Starts an X server with a window manager and a home folder, for an agent that should not share the "
        "user's desktop, or under Wayland, where X11 input does not reach the windows. The desktop stays "
        "until Ctrl-C or SIGTERM; then all programs on it are ended. Its display and cookie file are "
        "printed; holorun run --display finds the cookie automatically. holorun run --on desk opens a "
        "desktop for a single run.\n\n"
        "With --view, up to eight VNC viewers (TigerVNC, Remmina, noVNC) can watch and control the desktop. "
        "Their input counts as the user's: a run on this desktop pauses, and continues after 5 s without "
        "input (--human-quiet), or at once when the viewer presses the Pause key. Escape twice stops the "
        "run. Viewers on other machines connect through ssh: ssh -L 5901:localhost:5901 HOST.\n\n"
        "Exit status: 0 after a signal, 3 if the desktop could not be opened or its server has ended.",
    .examples = "holorun desk -- chromium https://example.org\n"
                "holorun desk --view=127.0.0.1:5901 --password-file ~/.vnc-password\n"
                "vncviewer localhost:1\n",
    .options = options,
    .run = cmd_desk,
};

static void print_desk(const struct settings *s, const struct on_desk *d)
{
    const struct desk *desk = on_desk_desk(d);
    const char *address = on_desk_address(d);
    if (s->json) {
        options_print_json(json_pack("{s:s, s:s, s:s, s:s?}", "display", desk_display(desk), "xauthority",
                                     desk_auth(desk), "home", desk_home(desk), "view", address),
                           0);
    } else {
        printf("export DISPLAY='%s' XAUTHORITY='%s'\n", desk_display(desk), desk_auth(desk));
        if (address)
            fprintf(stderr, "holorun: vncviewer %s\n", address);
    }
    fflush(stdout);
}

/* Waits for a signal, or until the desktop is gone.  Reports once that a program has ended, and continues.
 * Returns -1 with e if server, window manager or supervisor have ended. */
static int keep(struct desk *desk, const sigset_t *set, struct err *e)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    bool said = false;
    while (sigtimedwait(set, NULL, &look) < 0) {
        char what[ERR_TEXT];
        enum desk_state state = desk_state(desk, what, sizeof what);
        bool program = state == DESK_NO_PROGRAM || state == DESK_PROGRAM_DONE;
        if (state != DESK_OK && !program)
            return err_set(e, ERR_ENV, "%s", what);
        if (program && !said)
            fprintf(stderr, "holorun: %s; the desktop stays\n", what);
        said = program;
    }
    return 0;
}

/* Returns words as a shell command, which the caller frees; NULL: no words. */
static char *shell_command(char *const *words, int n)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < n; i++) {
        buf_puts(&b, i ? " '" : "exec '");
        for (const char *p = words[i]; *p; p++)
            if (*p == '\'')
                buf_puts(&b, "'\\''");
            else
                buf_putc(&b, *p);
        buf_putc(&b, '\'');
    }
    return n ? buf_take(&b) : NULL;
}

static int run(const struct settings *s, char *const *program, int n, const sigset_t *set, struct err *e)
{
    autofree char *start = shell_command(program, n);
    const struct on_desk_options o = {.size = s->size,
                                      .start = start,
                                      .home = s->home,
                                      .no_elements = !s->elements,
                                      .viewed = s->view,
                                      .password_file = s->password_file};
    struct on_desk *d = on_desk_open(&o, e);
    int rc = d ? 0 : -1;
    if (d) {
        print_desk(s, d);
        rc = keep(on_desk_desk(d), set, e);
    }
    on_desk_close(d);
    return rc;
}

int cmd_desk(int argc, char **argv)
{
    struct err e = ERR_INIT;
    struct settings s = {0};
    sigset_t set;
    int n = options_parse(&desk_command, &s, argc, argv, &e);
    if (n < 0)
        return options_refuse(&desk_command, &e);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return run(&s, argv, n, &set, &e) ? options_failed(&e) : 0;
}
