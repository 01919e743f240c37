/* t_writes.c - tests that a write action, a click into a field and a text, is right in real programs or
 * reported as unsure.
 *
 * The agent's action is performed at a place in the field, after a screenshot as the agent takes it, over the
 * text of the action before or after it. In one of three the program is stopped for 300 ms at a random moment
 * of the action. The program itself reports the content.
 *
 * A field may open a dialog with a field of its own at the click: that one must stay empty.
 *
 * HOLORUN_WRITES=n: n writes per program instead of 3. HOLORUN_WRITES_RESULT=FILE: writes a table. / */
#include "check.h"
#include "typed_field.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/exec.h"
#include "screen/observed.h"

#include <X11/keysym.h>
#include <pthread.h>
#include <signal.h>

enum { TEXT_BYTES = 512, STOP_MS = 300, WORDS = 16 };
static const char *const words[WORDS] = {"Rome",     "12",    "Ana Lima",    "9:40",       "naïve", "café",
                                         "Zürich",   "a+b=c", "e@x.org",     "\"quoted\"", "Łódź",  "x",
                                         "C:\\temp", "100 %", "two  spaces", "ÀÉÎ"};

static int writes(void)
{
    const char *s = getenv("HOLORUN_WRITES");
    return s && atoi(s) > 0 ? atoi(s) : 3;
}

/* Makes a text of 1 to 20 words and up to `most` bytes, without white space at its ends. */
static void make_text(char out[TEXT_BYTES], size_t most, uint64_t *rng)
{
    int n = check_below(rng, 3) ? 1 + check_below(rng, 4) : 10 + check_below(rng, 11);
    size_t len = 0;
    for (int i = 0; i < n && len + 16 < most; i++)
        len += (size_t)snprintf(out + len, TEXT_BYTES - len, "%s%s", i ? " " : "",
                                words[check_below(rng, WORDS)]);
}

struct tally {
    int right, unsure, wrong, stopped;
    double ms[1000];
    int n;
    bool sure; /* the last write was right, so the content of the field is known */
};

struct stop { /* of the program */
    const struct field *f;
    double after_ms;
};

static void *stop_program(void *arg)
{
    const struct stop *t = arg;
    clock_sleep_ms(t->after_ms);
    kill(t->f->pid, SIGSTOP);
    clock_sleep_ms(STOP_MS);
    kill(t->f->pid, SIGCONT);
    return NULL;
}

/* Finds the window of the field, which need not have the focus itself: in Swing a child has. */
static void find_window(const struct field *f, struct screen_window *w)
{
    for (int y = 20; y < 768; y += 20)
        for (int x = 20; x < 1024; x += 40)
            if (screen_window_at(f->s, x, y, w) == 0 && (f->program->page || !strcmp(w->title, "typing")))
                return;
    fail_msg("%s has no window", f->program->name);
}

/* Takes a screenshot as the agent does, and performs a write at a place of the field. */
static enum action_fault write_at(struct field *f, const char *text, bool over, struct exec_result *r,
                                  struct err *e)
{
    static const struct settle rest = {-1, -1, -1};
    const struct view_transform place = {0, 0, 1, 1};
    struct image frame = {0};
    struct settled settled;
    struct screen_window w;
    assert_int_equal(screen_settle(f->s, &rest, &settled, NULL), 0);
    assert_int_equal(screen_capture(f->s, &frame, NULL), 0);
    observed_take(f->s, &frame);
    image_free(&frame);
    find_window(f, &w);
    char copy[TEXT_BYTES];
    snprintf(copy, sizeof copy, "%s", text);
    struct action a = {
        .kind = ACT_TYPE, .text = copy, .overwrite = over, .at_end = !over && !f->program->terminal};
    a.x = f->program->page ? 300 : w.rect.x + w.rect.w / 2;
    a.y = f->program->page ? 250 : w.rect.y + w.rect.h / 2;
    enum action_fault fault = action_execute(f->s, &a, &place, r, e);
    observed_drop(f->s);
    return fault;
}

static void count(struct field *f, int index, const char *want, enum action_fault fault,
                  const struct exec_result *r, const struct err *e, struct tally *sum)
{
    int right = sum->right;
    sum->ms[sum->n++] = r->ms;
    char *got = fault ? NULL : typed_wait(f, want);
    if (fault || r->unsure) {
        sum->unsure++;
        check_note("%s write %d: %s", f->program->name, index, fault ? e->text : r->unsure);
    } else if (strcmp(got, want) == 0) {
        sum->right++;
    } else {
        sum->wrong++;
        check_note("%s write %d: WRONG\n  want %s\n  got  %s", f->program->name, index, want, got);
    }
    sum->sure = sum->right > right;
    free(got);
}

/* Writes one text. *before: the content of the field, updated. */
static void write_one(struct field *f, int index, char before[2 * TEXT_BYTES], uint64_t *rng,
                      struct tally *sum)
{
    char text[TEXT_BYTES], want[2 * TEXT_BYTES];
    struct err e = ERR_INIT;
    struct exec_result r = {0};
    /* a page reports its text as hexadecimal digits in its title, and Firefox cuts that to 255 */
    size_t most = f->program->page ? 60 : TEXT_BYTES / 2;
    struct stop t = {f, check_within(rng, 0, 200)};
    pthread_t thread;
    bool stop = !check_below(rng, 3), over;
    over = !f->program->terminal && (!sum->sure || strlen(before) > most / 2 || check_below(rng, 2));
    make_text(text, most, rng);
    snprintf(want, sizeof want, "%s%s", over ? "" : before, text);
    sum->stopped += stop;
    if (stop)
        pthread_create(&thread, NULL, stop_program, &t);
    enum action_fault fault = write_at(f, text, over, &r, &e);
    if (stop)
        pthread_join(thread, NULL);
    if (fault == FAULT_NONE && f->program->terminal) {
        const uint32_t enter = XK_Return;
        assert_int_equal(screen_chord(f->s, &enter, 1, NULL), 0);
    }
    count(f, index, want, fault, &r, &e, sum);
    if (f->program->terminal)
        f->line += fault == FAULT_NONE;
    else
        snprintf(before, 2 * TEXT_BYTES, "%s", want);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void put_result(const char *name, struct tally *sum)
{
    const char *path = getenv("HOLORUN_WRITES_RESULT");
    FILE *out = path ? fopen(path, "a") : NULL;
    qsort(sum->ms, (size_t)sum->n, sizeof *sum->ms, ascending);
    check_note("%s: %d writes, %d with a stop: %d right, %d unsure, %d wrong, median %.0f ms", name, sum->n,
               sum->stopped, sum->right, sum->unsure, sum->wrong, sum->ms[sum->n / 2]);
    if (!out)
        return;
    fprintf(out, "| %s | %d | %d | %d | %d | %d | %.0f |\n", name, sum->n, sum->stopped, sum->right,
            sum->unsure, sum->wrong, sum->ms[sum->n / 2]);
    fclose(out);
}

static void write_into(const char *name)
{
    static struct tally sum;
    struct field f;
    char before[2 * TEXT_BYTES] = "";
    uint64_t rng = check_seed() * 37 + (uint64_t)name[0] * 256 + (uint64_t)strlen(name);
    sum = (struct tally){.n = 0};
    typed_open(&f, name);
    for (int i = 0; i < writes() && i < 1000; i++)
        write_one(&f, i, before, &rng, &sum);
    typed_close(&f);
    put_result(name, &sum);
    assert_int_equal(sum.wrong, 0);
}

#define INTO(fn, name)                                                                                       \
    static void fn(void **state)                                                                             \
    {                                                                                                        \
        write_into(name);                                                                                    \
    }
INTO(t_tk, "Tk")
INTO(t_gtk3, "GTK 3")
INTO(t_gtk4, "GTK 4")
INTO(t_qt, "Qt")
INTO(t_swing, "Swing")
INTO(t_firefox, "Firefox line")
INTO(t_chromium, "Chromium line")
INTO(t_xterm, "xterm")

/* ---- a dialog ---------------------------------------------------------------------------------------- */

/* The text may end in the field that was clicked, in part or not at all, but never in the dialog. */
static void dialog_of(const char *name)
{
    struct field f;
    struct exec_result r = {0};
    struct err e = ERR_INIT;
    typed_open(&f, name);
    typed_tell(&f, "dialog");
    typed_told(&f);
    enum action_fault fault = write_at(&f, "must not go there", false, &r, &e);
    check_note("%s: %s after %.0f ms", name, fault ? e.text : "done", r.ms);
    char *path = xasprintf("%s/dialog", f.x.dir), *in_dialog = NULL;
    size_t n = 0;
    for (int ms = 0; ms < ARRIVE_MS && !file_exists(path); ms += 50)
        clock_sleep_ms(50);
    clock_sleep_ms(1500); /* for text on its way */
    char *text = typed_text(&f);
    assert_int_equal(file_read(path, 1 << 20, &in_dialog, &n, NULL), 0); /* it has opened */
    check_note("%s: field '%s', dialog '%s'", name, text, in_dialog);
    assert_string_equal(in_dialog, "");
    assert_true(fault || r.unsure || !strcmp(text, "must not go there"));
    free(in_dialog);
    free(text);
    free(path);
    typed_close(&f);
}

static void t_dialogs(void **state)
{
    static const char *const names[] = {"Tk", "GTK 3", "Qt", "Swing"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        dialog_of(names[i]);
}

static const struct CMUnitTest tests[] = {
    CLAIM("writes into Tk are right, or unsure", t_tk),
    CLAIM("writes into GTK 3 are right, or unsure", t_gtk3),
    CLAIM("writes into GTK 4 are right, or unsure", t_gtk4),
    CLAIM("writes into Qt are right, or unsure", t_qt),
    CLAIM("writes into Swing are right, or unsure", t_swing),
    CLAIM("writes into Firefox are right, or unsure", t_firefox),
    CLAIM("writes into Chromium are right, or unsure", t_chromium),
    CLAIM("writes into xterm are right, or unsure", t_xterm),
    CLAIM("a dialog that opens at the click of a write gets none of its text", t_dialogs),
};

CHECK_MAIN()
