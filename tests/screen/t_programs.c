/* t_programs.c - tests that text typed into eight kinds of program is right, or reported as unsure.
 *
 * Tk, GTK 3, GTK 4, Qt, Swing, Firefox, Chromium and xterm, each with one text field. The random texts are in
 * ten scripts, with combining marks and joined emoji. In two of three the program stalls at a random moment
 * for up to 5 s, in its event loop or as a stopped process; in one of three another keyboard layout is loaded
 * at a random moment. The program reports the content: in a file, or in the title that its page sets.
 *
 * HOLORUN_TYPING_TEXTS=n: n texts per program instead of 2. HOLORUN_TYPING_RESULT=FILE: writes a table.
 */
#include "check.h"
#include "typed_field.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/screen.h"

#include <X11/keysym.h>
#include <pthread.h>
#include <signal.h>

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
enum { PIECES = sizeof pieces / sizeof *pieces, MOST_STALL_MS = 5000 };
static const char *const layouts[] = {"us", "de", "fr", "ru", "gr", "ara", "us,ru", "cz"};

static int texts(void)
{
    const char *s = getenv("HOLORUN_TYPING_TEXTS");
    return s && atoi(s) > 0 ? atoi(s) : 2;
}

/* Waits until no more text arrives: after an unsure step keys may still be in flight. */
static void field_rest(const struct field *f)
{
    enum { REST_MS = 1500 };
    int64_t start = clock_ns(), since = start;
    char *last = typed_text(f);
    while (clock_ms_since(since) < REST_MS && clock_ms_since(start) < ARRIVE_MS) {
        clock_sleep_ms(50);
        char *now = typed_text(f);
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

/* Empties the field, through the program itself if it can. */
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
        typed_tell(f, "clear");
        typed_told(f);
    }
    char *left = typed_wait(f, "");
    assert_string_equal(left, "");
    free(left);
}

/* ---- disturbances ---------------------------------------------------------------------------- */

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
        typed_tell(t->f, command);
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
    typed_layout(t->layout);
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
    typed_layout("us");
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
    char *got = rc ? NULL : typed_wait(f, text);
    if (rc) {
        sum->unsure++;
        check_note("%s text %d (stall %.0f ms after %.0f, layout %s): %s", f->program->name, index,
                   t.stall_ms, t.stall_after_ms, t.layout ? t.layout : "-", e.text);
        if (!strstr(e.text, "unsure"))
            sum->wrong++;
        clock_sleep_ms(t.stall_ms); /* before the next text */
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

static void put_result(const char *name, int n, const struct tally *sum)
{
    const char *path = getenv("HOLORUN_TYPING_RESULT");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (!out)
        return;
    fprintf(out, "| %s | %d | %d | %d | %d | %d | %d | %.0f |\n", name, n, sum->stalled, sum->changed,
            sum->right, sum->unsure, sum->wrong, sum->ms / n);
    fclose(out);
}

static void type_into(const char *name)
{
    struct field f;
    struct tally sum = {0};
    uint64_t rng = check_seed() * 31 + *name + 1;
    int n = texts();
    typed_open(&f, name);
    for (int i = 0; i < n; i++)
        type_one(&f, i, &rng, &sum);
    typed_close(&f);
    check_note(
        "%s: %d texts, %d with a stall, %d with another layout: %d right, %d unsure, %d wrong, %.0f ms each",
        name, n, sum.stalled, sum.changed, sum.right, sum.unsure, sum.wrong, sum.ms / n);
    put_result(name, n, &sum);
    assert_int_equal(sum.wrong, 0);
}

#define INTO(fn, name)                                                                                       \
    static void fn(void **state)                                                                             \
    {                                                                                                        \
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
    CLAIM("text typed into a stalling Tk program arrives unchanged, or the step is unsure", t_tk),
    CLAIM("text typed into a stalling GTK 3 program arrives unchanged, or the step is unsure", t_gtk3),
    CLAIM("text typed into a stalling GTK 4 program arrives unchanged, or the step is unsure", t_gtk4),
    CLAIM("text typed into a stalling Qt program arrives unchanged, or the step is unsure", t_qt),
    CLAIM("text typed into a stalling Swing program arrives unchanged, or the step is unsure", t_swing),
    CLAIM("text typed into a stalling Firefox arrives unchanged, or the step is unsure", t_firefox),
    CLAIM("text typed into a stalling Chromium arrives unchanged, or the step is unsure", t_chromium),
    CLAIM("text typed into a stalling xterm arrives unchanged, or the step is unsure", t_xterm),
};

CHECK_MAIN()
