/* t_programs.c - what is typed into eight kinds of program is right there, or said to be unsure.
 *
 * Tk, GTK 3, GTK 4, Qt, Swing, Firefox, Chromium and xterm, each with one text field of its own.  Texts of
 * ten scripts, with combining marks and joined emoji, at random; in two of three the program stalls at a
 * random moment for up to 5 s, in its event loop or as a stopped process, and in one of three somebody
 * loads another keyboard layout at a random moment.  What arrived is read from the program's own report: a
 * file that it writes, or the title that its page sets.
 *
 * HOLORUN_TYPING_TEXTS=n: n texts for each program instead of 2.  HOLORUN_TYPING_RESULT=FILE: a table of
 * it.
 */
#include "check.h"
#include "xvfb.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/screen.h"

#include <X11/keysym.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char *const pieces[] = {
    "plain ASCII, 3 < 5",
    "naïve café, Žluťoučký kůň",
    "Árvíztűrő TÜKÖR",
    "Ελλάδα Ωω",
    "Привет, мир Ёё",
    "שלום עולם",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "สวัสดีชาวโลก",
    "日本語テキスト",
    "中文字符",
    "한국어 한글",
    "e\u0301 a\u0308 o\u0302\u0301 q\u0323",
    "😀🚀🎉",
    "👩‍💻 👨‍👩‍👧‍👦",
    "👍🏽 🇫🇷 ✈️",
    "€ § ∑ √ “q” — …",
    "ABC abc @#{}[]|\\~^",
};
enum { PIECES = sizeof pieces / sizeof *pieces, MOST_STALL_MS = 5000, ARRIVE_MS = 12000 };
static const char *const layouts[] = {"us", "de", "fr", "ru", "gr", "ara", "us,ru", "cz"};

struct program {
    const char *name, *needs;     /* needs: an executable */
    const char *check;            /* a command that says whether it can run; NULL: it can */
    bool page, terminal, no_loop; /* no_loop: it stalls as a stopped process only */
    const char *argv[14];         /* @ stands for the folder */
};
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
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

struct field { /* a program that runs */
    const struct program *program;
    struct xvfb x;
    pid_t pid;
    struct screen *s;
    int line; /* of the terminal */
};

static int texts(void)
{
    const char *s = getenv("HOLORUN_TYPING_TEXTS");
    return s && atoi(s) > 0 ? atoi(s) : 2;
}

/* ---- starting -------------------------------------------------------------------------------- */

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

static void field_open(struct field *f, const struct program *p)
{
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
        clock_sleep_ms(50); /* the window manager gives it the keyboard */
    clock_sleep_ms(p->page ? 1500 : 300);
    assert_int_equal(screen_click(f->s, p->page ? 300 : -1, p->page ? 250 : 0, 1, p->page ? 1 : 0, NULL), 0);
}

static void field_close(struct field *f)
{
    kill(f->pid, SIGCONT);
    screen_close(f->s);
    xvfb_stop(&f->x);
}

static void load_layout(const char *layout)
{
    char *argv[] = {(char *)"setxkbmap", (char *)"-layout", (char *)layout, NULL};
    pid_t pid;
    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
        waitpid(pid, NULL, 0);
}

/* ---- what is in it --------------------------------------------------------------------------- */

static void tell(const struct field *f, const char *what)
{
    char *path = xasprintf("%s/do", f->x.dir);
    assert_int_equal(file_write(path, what, strlen(what), NULL), 0);
    free(path);
}

/* The program has read what it was told: otherwise it clears, late, what is typed meanwhile. */
static void wait_until_read(const struct field *f)
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

/* The caller frees it. */
static char *field_text(const struct field *f)
{
    char *path, *text, *line, *end;
    size_t n;
    if (f->program->page)
        return read_title(f);
    path = xasprintf("%s/text", f->x.dir);
    if (file_read(path, 1 << 20, &text, &n, NULL))
        text = xstrdup("");
    free(path);
    line = text;
    for (int i = 0; f->program->terminal && line && i < f->line; i++)
        line = (line = strchr(line, '\n')) ? line + 1 : NULL;
    end = line ? strchr(line, '\n') : NULL;
    line = xasprintf("%.*s", (int)(end ? end - line : line ? (ptrdiff_t)strlen(line) : 0), line ? line : "");
    free(text);
    return line;
}

/* Waits until it is this; what it is then or after ARRIVE_MS. */
static char *field_wait(const struct field *f, const char *want)
{
    int64_t start = clock_ns();
    for (;;) {
        char *got = field_text(f);
        if (!strcmp(got, want) || clock_ms_since(start) > ARRIVE_MS)
            return got;
        free(got);
        clock_sleep_ms(20);
    }
}

/* Until nothing more comes: what is typed may not be read when the step is unsure of it. */
static void field_rest(const struct field *f)
{
    enum { REST_MS = 1500 };
    int64_t start = clock_ns(), since = start;
    char *last = field_text(f);
    while (clock_ms_since(since) < REST_MS && clock_ms_since(start) < ARRIVE_MS) {
        clock_sleep_ms(50);
        char *now = field_text(f);
        if (strcmp(now, last) != 0)
            since = clock_ns();
        free(last);
        last = now;
    }
    free(last);
}

static void press(struct screen *s, uint32_t modifier, uint32_t key)
{
    const uint32_t keys[] = {modifier, key};
    assert_int_equal(modifier ? screen_chord(s, keys, 2, NULL) : screen_chord(s, keys + 1, 1, NULL), 0);
}

/* Empty, by the program itself where it can. */
static void field_clear(struct field *f)
{
    if (f->program->terminal) {
        press(f->s, 0, XK_Return);
        clock_sleep_ms(200);
        char *path = xasprintf("%s/text", f->x.dir), *text;
        size_t n;
        f->line = 0;
        if (file_read(path, 1 << 20, &text, &n, NULL) == 0) {
            for (size_t i = 0; i < n; i++)
                f->line += text[i] == '\n';
            free(text);
        }
        free(path);
        return;
    }
    if (f->program->page) {
        press(f->s, XK_Control_L, XK_a);
        press(f->s, 0, XK_BackSpace);
    } else {
        tell(f, "clear");
        wait_until_read(f);
    }
    char *left = field_wait(f, "");
    assert_string_equal(left, "");
    free(left);
}

/* ---- what happens meanwhile ------------------------------------------------------------------ */

struct trouble {
    const struct field *f;
    double stall_after_ms, stall_ms, layout_after_ms; /* stall_ms 0, layout NULL: none */
    const char *layout;
    bool in_loop;
};

static void *stall(void *arg)
{
    const struct trouble *t = arg;
    clock_sleep_ms(t->stall_after_ms);
    if (t->in_loop) {
        char command[32];
        snprintf(command, sizeof command, "stall %.0f", t->stall_ms);
        tell(t->f, command);
        return NULL;
    }
    kill(t->f->pid, SIGSTOP);
    clock_sleep_ms(t->stall_ms);
    kill(t->f->pid, SIGCONT);
    return NULL;
}

static void *change_layout(void *arg)
{
    const struct trouble *t = arg;
    clock_sleep_ms(t->layout_after_ms);
    load_layout(t->layout);
    return NULL;
}

/* ---- texts ----------------------------------------------------------------------------------- */

struct tally {
    int right, unsure, wrong, stalled, changed;
    double ms;
};

static void make_text(char out[1024], uint64_t *rng)
{
    int n = 1 + check_below(rng, 4);
    size_t len = 0;
    for (int i = 0; i < n; i++)
        len +=
            (size_t)snprintf(out + len, 1024 - len, "%s%s", i ? " " : "", pieces[check_below(rng, PIECES)]);
}

static void type_one(struct field *f, int index, uint64_t *rng, struct tally *sum)
{
    char text[1024];
    struct err e = ERR_INIT;
    pthread_t threads[2];
    struct trouble t = {.f = f};
    make_text(text, rng);
    if (check_below(rng, 3)) {
        t.stall_ms = check_within(rng, 0, MOST_STALL_MS);
        t.stall_after_ms = check_within(rng, 0, 600);
        t.in_loop = !f->program->no_loop && check_below(rng, 2);
        sum->stalled++;
    }
    if (!check_below(rng, 3)) {
        t.layout = layouts[check_below(rng, sizeof layouts / sizeof *layouts)];
        t.layout_after_ms = check_within(rng, 0, 1500);
        sum->changed++;
    }
    load_layout("us");
    field_clear(f);
    if (t.stall_ms > 0)
        pthread_create(&threads[0], NULL, stall, &t);
    if (t.layout)
        pthread_create(&threads[1], NULL, change_layout, &t);
    int64_t start = clock_ns();
    int rc = screen_type(f->s, text, strlen(text), &e);
    sum->ms += clock_ms_since(start);
    if (t.stall_ms > 0)
        pthread_join(threads[0], NULL);
    if (t.layout)
        pthread_join(threads[1], NULL);
    if (rc == 0 && f->program->terminal)
        press(f->s, 0, XK_Return);
    char *got = rc ? NULL : field_wait(f, text);
    if (rc) {
        sum->unsure++;
        check_note("%s text %d (stall %.0f ms after %.0f, layout %s): %s", f->program->name, index,
                   t.stall_ms, t.stall_after_ms, t.layout ? t.layout : "-", e.text);
        if (!strstr(e.text, "unsure"))
            sum->wrong++;
        clock_sleep_ms(t.stall_ms); /* before the next one */
        field_rest(f);
    } else if (strcmp(got, text) == 0) {
        sum->right++;
    } else {
        sum->wrong++;
        check_note(
            "%s text %d (stall %.0f ms after %.0f %s, layout %s after %.0f): WRONG\n  want %s\n  got  %s",
            f->program->name, index, t.stall_ms, t.stall_after_ms, t.in_loop ? "in its loop" : "stopped",
            t.layout ? t.layout : "-", t.layout_after_ms, text, got);
    }
    free(got);
}

static void put_result(const struct program *p, int n, const struct tally *sum)
{
    const char *path = getenv("HOLORUN_TYPING_RESULT");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (!out)
        return;
    fprintf(out, "| %s | %d | %d | %d | %d | %d | %d | %.0f |\n", p->name, n, sum->stalled, sum->changed,
            sum->right, sum->unsure, sum->wrong, sum->ms / n);
    fclose(out);
}

static void type_into(const char *name)
{
    const struct program *p = programs;
    while (strcmp(p->name, name) != 0)
        p++;
    struct field f;
    struct tally sum = {0};
    uint64_t rng = check_seed() * 31 + (uint64_t)(p - programs) + 1;
    int n = texts();
    field_open(&f, p);
    for (int i = 0; i < n; i++)
        type_one(&f, i, &rng, &sum);
    field_close(&f);
    check_note(
        "%s: %d texts, %d with a stall, %d with another layout: %d right, %d unsure, %d wrong, %.0f ms each",
        p->name, n, sum.stalled, sum.changed, sum.right, sum.unsure, sum.wrong, sum.ms / n);
    put_result(p, n, &sum);
    assert_int_equal(sum.wrong, 0);
}

#define INTO(fn, name)                                                                                       \
    static void fn(void **state)                                                                             \
    {                                                                                                        \
        (void)state;                                                                                         \
        type_into(name);                                                                                     \
    }
INTO(t_tk, "Tk")
INTO(t_gtk3, "GTK 3")
INTO(t_gtk4, "GTK 4")
INTO(t_qt, "Qt")
INTO(t_swing, "Swing")
INTO(t_firefox, "Firefox")
INTO(t_chromium, "Chromium")
INTO(t_xterm, "xterm")

static const struct CMUnitTest tests[] = {
    CLAIM("a Tk program that stalls has each text as it was typed, or the step is unsure", t_tk),
    CLAIM("the same in GTK 3", t_gtk3),
    CLAIM("the same in GTK 4", t_gtk4),
    CLAIM("the same in Qt", t_qt),
    CLAIM("the same in Swing", t_swing),
    CLAIM("the same in Firefox", t_firefox),
    CLAIM("the same in Chromium", t_chromium),
    CLAIM("the same in xterm", t_xterm),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
