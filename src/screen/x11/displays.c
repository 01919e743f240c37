/* displays.c - finds the local displays that this user may open, and the cookie files that open them.
 *
 * Listing does not connect to any server: a server without other clients resets when an accepted
 * connection closes, and drops clients that connect meanwhile. So a server is judged by the owner of its
 * socket and by whether a cookie file has an entry for its number. Only the display that is about to be
 * opened is probed, with the first message of a connection (xtrap_knock). */
#include "screen/x11/displays.h"

#include "base/buf.h"
#include "screen/x11/xtrap.h"

#include <X11/Xauth.h>
#include <ctype.h>
#include <dirent.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKETS "/tmp/.X11-unix"
#define DESKS   "/holorun-desks-*/*/auth"

enum { KNOCK_MS = 500, FILES_MAX = 64, PATTERN = 300, NUMBER_MAX = 65535, SOCKETS_MAX = 4096 };

/* ---- names ------------------------------------------------------------------------------------------ */

/* Writes the number of the local server whose socket is at this path; follows links. Returns false if the
 * path is not such a socket. */
static bool number_of_socket(const char *path, long *number)
{
    char *real = realpath(path, NULL);
    int end = 0;
    bool found = real && sscanf(real, SOCKETS "/X%5ld%n", number, &end) == 1 && !real[end];
    free(real);
    return found;
}

/* Canonicalizes a path to a socket, with or without a screen number, like "/tmp/.X11-unix/X7.0": Xlib
 * tries a path first. Returns false if it is not a path. */
static bool name_of_path(const char *given, char out[DISPLAY_NAME_MAX])
{
    char *file = xstrdup(given + (strncmp(given, "unix:", 5) ? 0 : 5)), *dot = strrchr(file, '.');
    struct stat st;
    long number;
    if (stat(file, &st) && dot)
        *dot = 0;
    bool is = stat(file, &st) == 0 && S_ISSOCK(st.st_mode);
    if (is && number_of_socket(file, &number))
        snprintf(out, DISPLAY_NAME_MAX, ":%ld", number);
    else if (is)
        snprintf(out, DISPLAY_NAME_MAX, "%.*s", DISPLAY_NAME_MAX - 1, file);
    free(file);
    return is;
}

static bool is_this_machine(const char *host)
{
    static const char *const names[] = {
        "localhost", "localhost.localdomain", "localhost6", "ip6-localhost", "ip6-loopback", "::1", "[::1]",
        NULL};
    char own[256] = "";
    gethostname(own, sizeof own - 1);
    bool is = !strncmp(host, "127.", 4) || !strcasecmp(host, own) ||
              (strcspn(own, ".") == strlen(host) && !strncasecmp(host, own, strlen(host)));
    for (int i = 0; names[i] && !is; i++)
        is = !strcasecmp(host, names[i]);
    return is;
}

/* Treats names of this machine as local only if the server has a local socket: ssh forwards displays of
 * other machines under names like "localhost:10". */
void displays_canonical(const char *name, char out[DISPLAY_NAME_MAX])
{
    char host[DISPLAY_NAME_MAX], socket[64];
    const char *given = name && *name ? name : getenv("DISPLAY");
    given = given ? given : "";
    if (name_of_path(given, out))
        return;
    const char *slash = strrchr(given, '/'), *from = slash ? slash + 1 : given, *colon = strrchr(from, ':');
    long number = colon ? strtol(colon + 1, NULL, 10) : 0;
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - from) : 0, from);
    bool local = !*host || !strcmp(host, "unix") || (slash && !strncmp(given, "unix/", 5));
    snprintf(socket, sizeof socket, SOCKETS "/X%ld", number);
    local = number_of_socket(socket, &number) ? local || is_this_machine(host) : local;
    if (!colon)
        snprintf(out, DISPLAY_NAME_MAX, "%.*s", DISPLAY_NAME_MAX - 1, given);
    else
        snprintf(out, DISPLAY_NAME_MAX, "%.*s:%ld", DISPLAY_NAME_MAX - 24, local ? "" : host, number);
    for (char *p = out; *p; p++)
        *p = (char)tolower((unsigned char)*p);
}

bool displays_same(const char *a, const char *b)
{
    char one[DISPLAY_NAME_MAX], other[DISPLAY_NAME_MAX];
    displays_canonical(a, one);
    displays_canonical(b, other);
    return !strcmp(one, other);
}

/* ---- cookie files ------------------------------------------------------------------------------------ */

struct file {
    char path[256];
    bool desk;
};
struct files {
    struct file list[FILES_MAX];
    int n;
};

/* Adds a file unless it belongs to another user or is writable by others: a cookie that anyone could have
 * placed there must not be sent. */
static void add_file(struct files *f, const char *path, bool desk)
{
    struct stat st;
    if (f->n == FILES_MAX || strlen(path) >= sizeof f->list[0].path || stat(path, &st) ||
        !S_ISREG(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 022) || access(path, R_OK))
        return;
    struct file *x = &f->list[f->n++];
    snprintf(x->path, sizeof x->path, "%s", path);
    x->desk = desk;
}

__attribute__((format(printf, 3, 4))) static void add_matches(struct files *f, bool desk, const char *fmt,
                                                              ...)
{
    char pattern[PATTERN];
    va_list ap;
    glob_t found;
    va_start(ap, fmt);
    int n = vsnprintf(pattern, sizeof pattern, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof pattern || glob(pattern, GLOB_NOSORT, NULL, &found))
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_file(f, found.gl_pathv[i], desk);
    globfree(&found);
}

/* Collects the cookie files of display managers and sessions: GDM, SDDM, KDE, Mutter, xinit, LightDM. */
static void find_files(struct files *f)
{
    const char *home = getenv("HOME"), *user = getenv("USER"), *tmp = getenv("TMPDIR");
    char run[64];
    snprintf(run, sizeof run, "/run/user/%d", (int)getuid());
    f->n = 0;
    if (home && *home)
        add_matches(f, false, "%s/.Xauthority", home);
    add_matches(f, true, "/tmp" DESKS);
    if (tmp && *tmp == '/' && strcmp(tmp, "/tmp") != 0)
        add_matches(f, true, "%s" DESKS, tmp);
    add_matches(f, false, "%s/gdm/Xauthority", run);
    add_matches(f, false, "%s/xauth_*", run);
    add_matches(f, false, "%s/.mutter-Xwaylandauth.*", run);
    add_matches(f, false, "/tmp/xauth_*");
    add_matches(f, false, "/tmp/serverauth.*");
    if (home && *home)
        add_matches(f, false, "%s/.serverauth.*", home);
    if (user && *user && !strchr(user, '/'))
        add_matches(f, false, "/run/lightdm/%s/xauthority", user);
}

/* ---- probing a server -------------------------------------------------------------------------------- */

static bool is(const char *text, unsigned short n, const char *word)
{
    return n == strlen(word) && !memcmp(text, word, n);
}

static bool entry_is_for(const Xauth *a, const char *number)
{
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    bool here =
        a->family == FamilyWild || (a->family == FamilyLocal && is(a->address, a->address_length, host));
    return here && is(a->name, a->name_length, "MIT-MAGIC-COOKIE-1") &&
           (!a->number_length || is(a->number, a->number_length, number));
}

/* Returns whether this file has a cookie for the display; with knock, whether that cookie opens it. */
static bool file_opens(const char *path, const char *name, bool knock)
{
    FILE *f = fopen(path, "re");
    bool yes = false;
    for (Xauth *a; f && !yes && (a = XauReadAuth(f)); XauDisposeAuth(a))
        yes =
            entry_is_for(a, name + 1) && (!knock || xtrap_knock(name, a->data, a->data_length, KNOCK_MS) > 0);
    if (f)
        fclose(f);
    return yes;
}

/* Returns whether the display opens without a cookie: with knock the server is asked, otherwise its owner
 * must be this user. */
static bool opens_freely(const char *name, bool knock)
{
    return knock ? xtrap_knock(name, NULL, 0, KNOCK_MS) > 0 : xtrap_owner(name) == (long)getuid();
}

/* Returns whether the cookie in $XAUTHORITY opens the display. */
static bool opens_as_it_is(const char *name, bool knock)
{
    const char *given = getenv("XAUTHORITY");
    return given && *given && file_opens(given, name, knock);
}

/* Finds the file that opens the display. A server that needs no cookie accepts any, so a successful knock
 * does not identify its file. */
static bool find_auth(const struct files *files, struct display_found *d, bool knock)
{
    *d->auth = 0;
    d->desk = false;
    if (knock && opens_freely(d->name, knock))
        return true;
    bool opens = opens_as_it_is(d->name, knock);
    for (int i = 0; i < files->n; i++)
        if ((!opens || files->list[i].desk) && file_opens(files->list[i].path, d->name, knock)) {
            d->desk = files->list[i].desk;
            if (!opens)
                snprintf(d->auth, sizeof d->auth, "%s", files->list[i].path);
            return true;
        }
    return opens || opens_freely(d->name, knock);
}

/* ---- interface -------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Lists display numbers with a socket, in ascending order; killed servers leave theirs. Returns their
 * number. */
static int sockets(int out[SOCKETS_MAX])
{
    DIR *dir = opendir(SOCKETS);
    int n = 0, number, end;
    for (struct dirent *d; dir && n < SOCKETS_MAX && (d = readdir(dir));) {
        end = 0;
        if (sscanf(d->d_name, "X%5d%n", &number, &end) == 1 && end && !d->d_name[end] && number >= 0 &&
            number <= NUMBER_MAX)
            out[n++] = number;
    }
    if (dir)
        closedir(dir);
    qsort(out, (size_t)n, sizeof *out, by_number);
    return n;
}

int displays_list(struct display_found *out, int max)
{
    struct files *files = xcalloc(1, sizeof *files);
    int numbers[SOCKETS_MAX], n = sockets(numbers), found = 0;
    find_files(files);
    for (int i = 0; i < n && found < max; i++) {
        snprintf(out[found].name, sizeof out[found].name, ":%d", numbers[i]);
        if (xtrap_owner(out[found].name) >= 0)
            found += find_auth(files, &out[found], false);
    }
    free(files);
    return found;
}

int displays_refuse(struct err *e)
{
    struct display_found found[DISPLAYS_MAX];
    int n = displays_list(found, DISPLAYS_MAX);
    struct buf names;
    if (!n)
        return err_set(e, ERR_ENV,
                       "no display: DISPLAY is not set, and this user may not open any X server on this "
                       "machine; use a private desktop: holorun run --on desk, or holorun desk");
    buf_init(&names, ERR_TEXT / 2);
    for (int i = 0; i < n; i++)
        buf_printf(&names, "%s%s%s", i ? ", " : "", found[i].name,
                   found[i].desk ? " (a desk of holorun)" : "");
    err_set(e, ERR_ENV,
            "no display: DISPLAY is not set; this user may open %s%s: name one with --display %s, or use a "
            "private desktop: holorun run --on desk",
            names.data, names.full ? ", ..." : "", found[0].name);
    buf_free(&names);
    return -1;
}

bool displays_auth_of(const char *name, char *file, unsigned long size)
{
    const char *given = name && *name ? name : getenv("DISPLAY");
    struct display_found d;
    int number, end = 0;
    if (!given || sscanf(given, ":%5d%n", &number, &end) != 1 || (given[end] && given[end] != '.'))
        return false;
    snprintf(d.name, sizeof d.name, ":%d", number);
    struct files *files = xcalloc(1, sizeof *files);
    find_files(files);
    bool found = find_auth(files, &d, true) && *d.auth;
    free(files);
    return found && (unsigned long)snprintf(file, size, "%s", d.auth) < size;
}

void displays_authorize(const char *name)
{
    char file[sizeof((struct display_found *)NULL)->auth];
    if (displays_auth_of(name, file, sizeof file))
        setenv("XAUTHORITY", file, 1);
}
