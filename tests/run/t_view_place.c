/* t_view_place.c - tests the addresses and passwords of viewers. */
#include "check.h"
#include "program.h"

#include "desk/view_impl.h"

#include <sys/stat.h>

static void t_places(void **state)
{
    static const struct {
        const char *where;
        int port; /* -1: refused */
        bool six;
    } cases[] = {{"5901", 5901, false},     {"127.0.0.1:0", 0, false},
                 {"localhost:7", 7, false}, {"[::1]:65535", 65535, true},
                 {"0.0.0.0:5901", -1, 0},   {"[::]:5901", -1, 0},
                 {"host:5901", -1, 0},      {"192.168.0.1:5", -1, 0},
                 {"65536", -1, 0},          {"-1", -1, 0},
                 {"5901x", -1, 0},          {"", -1, 0},
                 {"127.0.0.1:", -1, 0},     {"127.0.0.1", -1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool six = false;
        int port = -1;
        if (place_parse(cases[i].where, &six, &port, NULL))
            port = -1;
        if (port != cases[i].port || (port >= 0 && six != cases[i].six))
            fail_msg("'%s' is taken as port %d", cases[i].where, port);
    }
    static const struct {
        int mode;
        const char *text, *password; /* NULL: refused */
    } files[] = {{0600, "secret\nmore\n", "secret"},
                 {0400, "longer than eight", "longer t"},
                 {0640, "secret", NULL},
                 {0620, "secret", NULL},
                 {0604, "secret", NULL},
                 {0602, "secret", NULL},
                 {0600, "\nsecret", NULL},
                 {0600, "", NULL}};
    struct xvfb x;
    xvfb_folder(&x);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char password[PASSWORD + 1], *path = xvfb_put(&x, "password", files[i].text);
        assert_int_equal(chmod(path, (mode_t)files[i].mode), 0);
        assert_int_equal(password_read(path, password, NULL), files[i].password ? 0 : -1);
        assert_string_equal(password, files[i].password ? files[i].password : "");
        free(path);
    }
    xvfb_stop(&x);
}

static void t_refused(void **state)
{
    struct xvfb x;
    OUTCOME(o);
    xvfb_folder(&x);
    if (!program_exists("Xvfb"))
        skip();
    char *open = xvfb_put(&x, "open", "secret\n"), *empty = xvfb_put(&x, "empty", "\n");
    char *kept = xvfb_put(&x, "kept", "secret\n");
    chmod(open, 0640);
    program_run(&x, &o, WORDS("desk", "--view=127.0.0.1:0", "--password-file", open));
    ONE_LINE(&o, ERR_USAGE, open, "mode 640", "chmod 600");
    program_run(&x, &o, WORDS("desk", "--view=127.0.0.1:0", "--password-file", empty));
    ONE_LINE(&o, ERR_USAGE, empty, "empty");
    program_run(&x, &o, WORDS("desk", "--view=5901"));
    ONE_LINE(&o, ERR_USAGE, "5901", "--password-file");
    program_run(&x, &o, WORDS("desk", "--view=0.0.0.0:5901", "--password-file", kept));
    ONE_LINE(&o, ERR_USAGE, "0.0.0.0:5901", "ssh -L");
    program_run(&x, &o, WORDS("desk", "--password-file", kept));
    ONE_LINE(&o, ERR_USAGE, "needs a desktop with viewers");
    program_run(&x, &o, WORDS("desk", "--size", "big"));
    ONE_LINE(&o, ERR_USAGE, "big", "1280x720");
    program_run(&x, &o, WORDS("run", "Press Save", "--start", "xterm"));
    ONE_LINE(&o, ERR_USAGE, "--on desk");
    program_run(&x, &o, WORDS("run", "Press Save", "--on", "moon"));
    ONE_LINE(&o, ERR_USAGE, "moon", "desk:1280x800");
    free(open);
    free(empty);
    free(kept);
    xvfb_stop(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("only ports of this machine are accepted, and only a password file private to the user", t_places),
    CLAIM("a password that others can read, a port without one and other machines are refused", t_refused),
};

CHECK_MAIN()
