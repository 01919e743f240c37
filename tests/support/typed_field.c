/* typed_field.c - see typed_field.h. */
#include "typed_field.h"

#include "check.h"

#include "base/clock.h"
#include "base/file.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const struct program programs[] = {
    {"Tk", "python3", "/usr/bin/python3 -c 'import tkinter'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "tk", "@", NULL}},
    {"GTK 3", "python3", "/usr/bin/python3 -c 'import gi; gi.require_version(\"Gtk\", \"3.0\")'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "gtk3", "@", NULL}},
    {"GTK 4", "python3", "/usr/bin/python3 -c 'import gi; gi.require_version(\"Gtk\", \"4.0\")'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "gtk4", "@", NULL}},
    {"Qt", "python3", "/usr/bin/python3 -c 'import PyQt5.QtWidgets'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "qt", "@", NULL}},
    {"Swing", "java", "java --list-modules | grep -q jdk.compiler && ls /usr/lib/jvm/*/lib/libawt_xawt.so",
     .argv = {"java", "-Dfile.encoding=UTF-8", "tests/typed/Field.java", "@", NULL}},
    {"Firefox", "firefox-esr", .page = true, .no_loop = true,
     .argv = {"firefox-esr", "--no-remote", "--profile", "@/profile", "--new-window", "file://@/page.html",
              NULL}},
    {"Chromium", "chromium", .page = true, .no_loop = true,
     .argv = {"chromium", "--no-sandbox", "--user-data-dir=@/profile", "--no-first-run",
              "--password-store=basic", "--disable-gpu", "--window-size=800,600", "--app=file://@/page.html",
              NULL}},
    {"xterm", "xterm", .terminal = true, .no_loop = true,
     .argv = {"xterm", "-u8", "-T", "typing", "-e", "sh", "-c", "cat >@/text", NULL}},
    {"Tk text", "python3", "/usr/bin/python3 -c 'import tkinter'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "tk-text", "@", NULL}},
    {"GTK 3 text", "python3", "/usr/bin/python3 -c 'import gi; gi.require_version(\"Gtk\", \"3.0\")'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "gtk3-text", "@", NULL}},
    {"GTK 4 text", "python3", "/usr/bin/python3 -c 'import gi; gi.require_version(\"Gtk\", \"4.0\")'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "gtk4-text", "@", NULL}},
    {"Qt text", "python3", "/usr/bin/python3 -c 'import PyQt5.QtWidgets'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "qt-text", "@", NULL}},
    {"Qt 6", "python3", "/usr/bin/python3 -c 'import PyQt6.QtWidgets'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "qt6", "@", NULL}},
    {"Qt 6 text", "python3", "/usr/bin/python3 -c 'import PyQt6.QtWidgets'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "qt6-text", "@", NULL}},
    {"Writer", "soffice", "/usr/bin/python3 -c 'import uno'", .no_loop = true,
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "writer", "@", NULL}},
    {"Firefox line", "firefox-esr", .page = true, .no_loop = true,
     .argv = {"firefox-esr", "--no-remote", "--profile", "@/profile", "--new-window",
              "file://@/page.html#line", NULL}},
    {"Chromium line", "chromium", .page = true, .no_loop = true,
     .argv = {"chromium", "--no-sandbox", "--user-data-dir=@/profile", "--no-first-run",
              "--password-store=basic", "--disable-gpu", "--window-size=800,600",
              "--app=file://@/page.html#line", NULL}},
    {"GTK 3 password", "python3", "/usr/bin/python3 -c 'import gi; gi.require_version(\"Gtk\", \"3.0\")'",
     .argv = {"/usr/bin/python3", "tests/typed/field.py", "gtk3-password", "@", NULL}},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

/* ---- start ----------------------------------------------------------------------------------- */

static char *filled(const char *word, const char *folder)
{
    const char *at = strchr(word, '@');
    return at ? xasprintf("%.*s%s%s", (int)(at - word), word, folder, at + 1) : xstrdup(word);
}

static bool can_run(const struct program *p)
{
    char *quiet = p->check ? xasprintf("{ %s; } >/dev/null 2>&1", p->check) : NULL;
    bool can = program_exists(p->needs) && (!quiet || system(quiet) == 0);
    free(quiet);
    return can;
}

static const struct program *find_program(const char *name)
{
    for (int i = 0; i < PROGRAMS; i++)
        if (!strcmp(programs[i].name, name))
            return &programs[i];
    fail_msg("no program is called '%s'", name);
    return NULL;
}

static bool is_ready(const struct field *f)
{
    char *path = xasprintf("%s/ready", f->x.dir);
    bool ready = f->program->page || f->program->terminal || file_exists(path);
    free(path);
    return ready && xvfb_find_window(f->s, f->program->page ? "^ready" : "^typing$", NULL, 0, NULL) == 1;
}

static void write_page(const struct field *f)
{
    char *text, *path = xasprintf("%s/page.html", f->x.dir), *profile = xasprintf("%s/profile", f->x.dir);
    size_t n;
    assert_int_equal(file_read("tests/typed/page.html", 1 << 20, &text, &n, NULL), 0);
    assert_int_equal(file_write(path, text, n, NULL), 0);
    assert_int_equal(dir_make(profile, NULL), 0);
    free(text);
    free(path);
    free(profile);
}

void typed_open_with(struct field *f, const char *name, void (*prepare)(struct xvfb *x))
{
    const struct program *p = find_program(name);
    char *argv[14] = {0};
    *f = (struct field){.program = p};
    screen_stop_all(0);
    if (!can_run(p)) {
        check_note("%s is not installed", p->name);
        skip();
    }
    if (xvfb_start(&f->x, "1024x768x24", NULL))
        skip();
    setenv("LANG", "C.UTF-8", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("NO_AT_BRIDGE", "1", 1);
    setenv("MOZ_DISABLE_CONTENT_SANDBOX", "1", 1);
    if (xvfb_window_manager(&f->x))
        check_note("no window manager here (openbox)");
    if (prepare)
        prepare(&f->x);
    if (p->page)
        write_page(f);
    for (int i = 0; p->argv[i]; i++)
        argv[i] = filled(p->argv[i], f->x.dir);
    f->pid = xvfb_spawn(&f->x, "program.log", (const char *const *)argv);
    for (int i = 0; argv[i]; i++)
        free(argv[i]);
    f->s = screen_open(NULL, NULL);
    assert_non_null(f->s);
    for (int ms = 0; ms < 60000 && !is_ready(f); ms += 50)
        clock_sleep_ms(50);
    if (!is_ready(f))
        fail_msg("%s shows no window", p->name);
    struct screen_window w;
    for (int ms = 0; ms < 10000 && (screen_focused_window(f->s, &w) || !*w.class); ms += 50)
        clock_sleep_ms(50); /* until the window manager gives it the focus */
    clock_sleep_ms(p->page ? 1500 : 300);
    assert_int_equal(screen_click(f->s, p->page ? 300 : -1, p->page ? 250 : 0, 1, p->page ? 1 : 0, NULL), 0);
}

void typed_open(struct field *f, const char *name)
{
    typed_open_with(f, name, NULL);
}

void typed_close(struct field *f)
{
    kill(f->pid, SIGCONT);
    screen_close(f->s);
    xvfb_stop(&f->x);
}

void typed_layout(const char *layout)
{
    char *argv[] = {(char *)"setxkbmap", (char *)"-layout", (char *)layout, NULL};
    pid_t pid;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
        waitpid(pid, NULL, 0);
}

/* ---- content ---------------------------------------------------------------------------------- */

void typed_tell(const struct field *f, const char *what)
{
    char *path = xasprintf("%s/do", f->x.dir);
    assert_int_equal(file_write(path, what, strlen(what), NULL), 0);
    free(path);
}

/* Without this wait the program could clear text that is typed after the command. */
void typed_told(const struct field *f)
{
    char *path = xasprintf("%s/do", f->x.dir);
    for (int ms = 0; ms < ARRIVE_MS && file_exists(path); ms += 10)
        clock_sleep_ms(10);
    assert_false(file_exists(path));
    free(path);
}

static char *read_title(const struct field *f)
{
    static char title[32 << 10];
    char *out = xcalloc(sizeof title, 1);
    size_t n = 0;
    if (xvfb_find_window(f->s, "^T[0-9a-f]*\\.", title, sizeof title, NULL) == 1)
        for (const char *p = title + 1; sscanf(p, "%2hhx", (unsigned char *)&out[n]) == 1; p += 2)
            n++;
    out[n] = 0;
    return out;
}

char *typed_text(const struct field *f)
{
    char *path, *text, *line, *end;
    size_t n;
    if (f->program->page)
        return read_title(f);
    path = xasprintf("%s/text", f->x.dir);
    if (file_read(path, 1 << 20, &text, &n, NULL))
        text = xstrdup("");
    free(path);
    if (!f->program->terminal)
        return text;
    line = text;
    for (int i = 0; line && i < f->line; i++)
        line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    end = line ? strchr(line, '\n') : NULL;
    line = xasprintf("%.*s", (int)(end ? end - line : line ? (ptrdiff_t)strlen(line) : 0), line ? line : "");
    free(text);
    return line;
}

char *typed_wait(const struct field *f, const char *want)
{
    int64_t start = clock_ns();
    for (;;) {
        char *got = typed_text(f);
        if (!strcmp(got, want) || clock_ms_since(start) > ARRIVE_MS)
            return got;
        free(got);
        clock_sleep_ms(20);
    }
}
