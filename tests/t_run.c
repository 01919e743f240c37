/* t_run.c - claims about the whole program, as a process, when something is wrong: what it says in how many
 * lines, with which exit code, what is on record, and what the X server has down afterwards.
 */
#include "check.h"
#include "driven.h"
#include "program.h"

#include "base/clock.h"
#include "base/file.h"
#include "screen/xtrap.h"
#include "trace/read.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"
/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void report_works(const struct stage *t)
{
    struct outcome o = {0};
    char *runs = xvfb_place(&t->x, "runs"), *page = xvfb_place(&t->x, "page.html");
    program_run(&t->x, &o, WORDS("report", "--runs", runs, "-o", page));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.err, "");
    assert_true(file_exists(page));
    outcome_free(&o);
    free(runs);
    free(page);
}

/* ---- no display ---------------------------------------------------------------------------------------------------- */

static void t_no_display(void **state)
{
    (void)state;
    static const char *const no_xtest[] = {"-extension", "XTEST", NULL};
    struct xvfb x;
    struct outcome o = {0};
    const char *const *words = WORDS("run", "Press Save", "--fake", "/dev/null");
    if (xvfb_start(&x, "320x240x24", no_xtest))
        skip();
    program_run(&x, &o, words);
    ONE_LINE(&o, ERR_ENV, x.display, "no XTEST", "start the X server without");
    program_run(&x, &o, WORDS("run", "Press Save", "--fake", "/dev/null", "--display", ":987"));
    ONE_LINE(&o, ERR_ENV, "cannot open display ':987'", "no X server there", "xauth");
    unsetenv("DISPLAY");
    program_run(&x, &o, words);
    ONE_LINE(&o, ERR_ENV, "DISPLAY is not set", "use --display :0", "Xvfb :1");
    setenv("WAYLAND_DISPLAY", "wayland-0", 1);
    program_run(&x, &o, WORDS("run", "Press Save", "--fake", "/dev/null", "--json"));
    ONE_LINE(&o, ERR_ENV, "Wayland session", "log in to an X11 session", "Xvfb :1");
    json_t *json = json_loads(o.out, 0, NULL); /* a program that reads stdout learns of it too */
    assert_int_equal(field_int(json, "exit"), ERR_ENV);
    assert_non_null(strstr(field_text(json, "error"), "Wayland session"));
    json_decref(json);
    unsetenv("WAYLAND_DISPLAY");
    outcome_free(&o);
    xvfb_stop(&x);
}

static void t_doctor(void **state)
{
    (void)state;
    struct stage t;
    struct outcome o = {0};
    driven_open(&t);
    program_run(&t.x, &o, WORDS("doctor"));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.err, "");
    assert_non_null(strstr(o.out, "twice within 0.6 s"));
    program_run(&t.x, &o, WORDS("doctor", "--json", "--model", "/nowhere"));
    assert_int_equal(o.code, ERR_MODEL);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_non_null(json);
    json_decref(json);
    unsetenv("DISPLAY");
    program_run(&t.x, &o, WORDS("doctor", "--model", "/nowhere"));
    assert_int_equal(o.code, ERR_ENV);
    assert_non_null(strstr(o.out, "DISPLAY is not set"));
    setenv("DISPLAY", t.x.display, 1);
    outcome_free(&o);
    stage_close(&t);
}

static void t_lost(void **state)
{
    (void)state;
    static const char *const replies[] = {CLICK(500, 500) SHIFT_DOWN TYPE_LONG ANSWER("Done."),
                                          CLICK(500, 500) CTRL_DRAG ANSWER("Done."),
                                          CLICK(500, 500) WAIT(30) ANSWER("Done.")};
    static const char *const events[] = {"key_press", "button_press", "button_press"};
    static const int n[] = {40, 2, 1};
    for (int i = 0; i < 3; i++) {
        struct stage t;
        struct outcome o = {0};
        struct record r;
        driven_open(&t);
        atomic_bool lost = false;
        xtrap_watch(t.other, &lost);
        pid_t pid = driven_start(&t, replies[i]);
        driven_wait(&t, events[i], n[i]);
        xvfb_kill_server(&t.x);
        program_finish(&t.x, pid, &o);
        ONE_LINE(&o, ERR_ENV, t.x.display, "was lost");
        driven_read(&t, &r);
        assert_string_equal(field_text(driven_last(&r, "end"), "status"), "failed");
        assert_non_null(strstr(field_text(driven_last(&r, "end"), "error"), "was lost"));
        assert_int_equal(field_int(r.run, "exit"), ERR_ENV);
        record_free(&r);
        report_works(&t);
        outcome_free(&o);
        stage_close(&t);
    }
}

static void t_driven(void **state)
{
    (void)state;
    struct stage t;
    struct outcome o = {0};
    stage_open(&t); /* this process keeps the hands */
    program_finish(&t.x, driven_start(&t, CLICK(500, 500) ANSWER("Done.")), &o);
    char *number = xasprintf("(process %d)", (int)getpid());
    ONE_LINE(&o, ERR_ENV, "driven by another holorun", number, "stop that one first");
    char *runs = xvfb_place(&t.x, "runs");
    assert_null(record_newest(runs, NULL)); /* refused before anything is opened that takes long */
    program_run(&t.x, &o, WORDS("run", "Press Save", "--model", POCKET, "--json", "--runs", runs));
    assert_int_equal(o.code, ERR_ENV);
    assert_null(record_newest(runs, NULL));
    free(runs);
    assert_int_equal(json_array_size(stage_events(&t, NULL)), 0);
    free(number);
    outcome_free(&o);
    stage_close(&t);
}

/* ---- damaged models -------------------------------------------------------------------------------------------------- */

/* Replaces the first occurrence by a text of the same length, in place. */
static void damage(const char *file, const char *from, const char *to)
{
    char *data;
    size_t len;
    assert_int_equal(strlen(from), strlen(to));
    assert_int_equal(file_read(file, 64 << 20, &data, &len, NULL), 0);
    char *at = memmem(data, len, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
    assert_int_equal(file_write(file, data, len, NULL), 0);
    free(data);
}

static void damage_model(const char *dir, int which)
{
    static const char index[] = "{\"weight_map\": {\"a\": \"model-00001-of-00002.safetensors\"}}";
    char *weights = xasprintf("%s/model.safetensors", dir), *tokens = xasprintf("%s/tokenizer.json", dir),
         *config = xasprintf("%s/config.json", dir),
         *list = xasprintf("%s/model.safetensors.index.json", dir);
    int fd = -1;
    switch (which) {
    case 0:
        assert_int_equal(unlink(weights), 0);
        assert_int_equal(file_write(list, index, sizeof index - 1, NULL), 0);
        break;
    case 1:
        assert_int_equal(truncate(weights, 1000), 0);
        break;
    case 2: /* the header's length: 2^56 bytes and a few */
        assert_true((fd = open(weights, O_WRONLY)) >= 0);
        assert_int_equal(pwrite(fd, "\1", 1, 7), 1);
        close(fd);
        break;
    case 3:
        damage(weights, "\"shape\":[768,1,4]", "\"shape\":[384,2,4]");
        break;
    case 4:
        damage(config, "\"M-*-M-", "\"M-X-M-");
        break;
    case 5:
        assert_int_equal(truncate(tokens, 9000), 0);
        break;
    default:
        assert_int_equal(unlink(config), 0);
    }
    free(weights);
    free(tokens);
    free(config);
    free(list);
}

static void t_models(void **state)
{
    (void)state;
    static const char *const names[][4] = {
        {"model-00001-of-00002.safetensors", "No such file"},
        {"model.safetensors", "12512 bytes of a file of 1000", "download it again"},
        {"model.safetensors", "the header claims", "download it again"},
        {"conv1d.weight", "[384, 2, 4]", "[768, 1, 4]"},
        {"hybrid_override_pattern", "'X'"},
        {"tokenizer.json", "line"},
        {"config.json", "not a model directory"},
    };
    struct xvfb x;
    struct outcome o = {0};
    xvfb_folder(&x);
    char *dir = xvfb_place(&x, "model"), *copy = xasprintf("rm -rf %s && cp -r %s %s", dir, POCKET, dir);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(system(copy), 0);
        damage_model(dir, i);
        program_run(&x, &o, WORDS("ask", "What is this?", "--model", dir));
        ONE_LINE(&o, ERR_MODEL, names[i][0], names[i][1], names[i][2] ? names[i][2] : "");
        assert_string_equal(o.out, "");
    }
    outcome_free(&o);
    free(copy);
    free(dir);
    xvfb_stop(&x);
}

/* ---- without a result ------------------------------------------------------------------------------------------ */

/* stdout must be one object that says the same as the exit code and stderr. */
static void one_object(const struct outcome *o, int code, const char *status)
{
    json_t *json = json_loads(o->out, 0, NULL);
    if (!json || o->code != code || field_int(json, "exit") != code)
        fail_msg("exit %d instead of %d, stdout '%s'", o->code, code, o->out);
    assert_string_equal(field_text(json, "status"), status);
    assert_non_null(strstr(o->err, field_text(json, "error")));
    json_decref(json);
}

static void t_json_failures(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *words[8];
    } cases[] = {
        {ERR_USAGE, {"ask", "--json"}},
        {ERR_USAGE, {"ask", "--bogus", "--json"}},
        {ERR_USAGE, {"ask", "Hello", "--model", POCKET, "--json"}},
        {ERR_ENV, {"ask", "What?", "nowhere.png", "--json"}},
        {ERR_USAGE, {"ground", "--json"}},
        {ERR_ENV, {"ground", "nowhere.png", "it", "--json"}},
        {ERR_ENV,
         {"ground", "tests/cases/eval/pocket/dialog-ticks.png", "it", "--json", "-o", "/no/where.png"}},
        {ERR_MODEL, {"plan", "/nowhere", "--json"}},
        {ERR_USAGE, {"plan", POCKET, "--gpu", "0G", "--json"}},
        {ERR_MODEL, {"inspect", "/nowhere", "--json"}},
        {ERR_USAGE, {"eval", "nowhere.jsonl", "--json"}},
        {ERR_MODEL, {"calibrate", "--json", "-m", "/nowhere"}},
        {ERR_USAGE, {"run", "--json"}},
        {ERR_USAGE, {"run", "one", "two", "-j"}},
        {ERR_ENV, {"run", "one", "-d", ":987", "-j"}},
    };
    struct xvfb x;
    struct outcome o = {0};
    xvfb_folder(&x);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program_run(&x, &o, cases[i].words);
        one_object(&o, cases[i].code, "failed");
    }
    program_run(&x, &o, WORDS("ground", "nowhere.png", "it"));
    assert_string_equal(o.out, "");
    outcome_free(&o);
    xvfb_stop(&x);
}

static void t_pictures(void **state)
{
    (void)state;
    static const char jpeg[] = "\xff\xd8\xff\xe0 and more", ppm[] = "P6 1 1 255 abc";
    struct xvfb x;
    struct outcome o = {0};
    xvfb_folder(&x);
    char *photo = xvfb_place(&x, "photo.jpg"), *plain = xvfb_place(&x, "picture.png");
    assert_int_equal(file_write(photo, jpeg, sizeof jpeg - 1, NULL), 0);
    assert_int_equal(file_write(plain, ppm, sizeof ppm - 1, NULL), 0);
    program_run(&x, &o, WORDS("ask", photo, "What?"));
    ONE_LINE(&o, ERR_ENV, "photo.jpg", "a JPEG", "only PNG is read", "convert");
    program_run(&x, &o, WORDS("ground", plain, "it"));
    ONE_LINE(&o, ERR_ENV, "picture.png", "a PPM", "only PNG is read");
    program_run(&x, &o, WORDS("ground", "Search", plain));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "no picture 'Search'; the picture comes first"));
    program_run(&x, &o, WORDS("ground", plain, ""));
    assert_int_equal(o.code, ERR_USAGE);
    program_run(&x, &o, WORDS("ask", "", plain));
    assert_int_equal(o.code, ERR_USAGE);
    program_run(&x, &o, WORDS("ask", "What is the capital of France?", "--model", POCKET));
    ONE_LINE(&o, ERR_USAGE, "only answers questions about screens", "640x480");
    assert_string_equal(o.out, "");
    outcome_free(&o);
    free(photo);
    free(plain);
    xvfb_stop(&x);
}

static void t_facts(void **state)
{
    (void)state;
    struct xvfb x;
    struct outcome o = {0};
    xvfb_folder(&x);
    program_run(&x, &o, WORDS("version"));
    assert_int_equal(o.code, 0);
    static const char *const lines[] = {"holorun 0.", "\ncompiler   ", "\nkernels    ref ",
                                        "glibc 2.",   "jansson 2.",    "/" POCKET "\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(o.out, lines[i]))
            fail_msg("version lacks '%s': %s", lines[i], o.out);
    assert_null(strstr(o.out, ".."));
    program_run(&x, &o, WORDS("report", "nonsense", "--runs", x.dir));
    ONE_LINE(&o, ERR_USAGE, "there is no run 'nonsense'", x.dir);
    program_run(&x, &o, WORDS("report", x.dir));
    ONE_LINE(&o, ERR_USAGE, "is no run", "events.jsonl");
    outcome_free(&o);
    xvfb_stop(&x);
}

static void t_quotes(void **state)
{
    (void)state;
    struct xvfb x;
    struct outcome o = {0};
    xvfb_folder(&x);
    program_run(&x, &o, WORDS("book", "a", "flight", "--dry-run"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "holorun run \"book a flight\" --dry-run\n"));
    program_run(&x, &o, WORDS("help", "nonsense"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_null(strstr(o.err, "holorun run"));
    program_run(&x, &o, WORDS("run", "--dry-run", "pay", "$5", "for", "Ana's", "book"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.err, "holorun run 'pay $5 for Ana'\\''s book'\n"));
    outcome_free(&o);
    xvfb_stop(&x);
}

/* ---- the disk ----------------------------------------------------------------------------------------------------------- */

static void t_no_place(void **state)
{
    (void)state;
    struct stage t;
    struct outcome o = {0};
    driven_open(&t);
    const char *const *words =
        WORDS("run", "Press Save", "--fake", "/dev/null", "--runs", "/proc/holorun/runs");
    program_run(&t.x, &o, words);
    ONE_LINE(&o, ERR_ENV, "cannot make folder '/proc/holorun", "--runs");
    program_run(&t.x, &o, WORDS("run", "Press Save", "--fake", "/dev/null", "--runs", "/dev/null"));
    ONE_LINE(&o, ERR_ENV, "'/dev/null' is not a folder", "--runs");
    char *script = xvfb_place(&t.x, "script");
    assert_int_equal(file_write(script, ANSWER("Done."), strlen(ANSWER("Done.")), NULL), 0);
    program_finish(
        &t.x, program_start_into(&t.x, "/dev/full", WORDS("run", "Press Save", "-q", "--fake", script)), &o);
    ONE_LINE(&o, ERR_ENV, "cannot write to stdout", "No space left");
    free(script);
    outcome_free(&o);
    stage_close(&t);
}

/* Many steps in a little room: moves, of which nobody expects that the screen changes. */
static char *long_script(void)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_puts(&b, SHIFT_DOWN);
    for (int i = 0; i < 90; i++)
        buf_printf(&b, STEP("\"move_to_desktop\", \"element\": \"number %d\", \"x\": %d, \"y\": 500"), i,
                   100 + i);
    char *text = buf_take(&b);
    buf_free(&b);
    return text;
}

static void t_full_disk(void **state)
{
    (void)state;
    struct stage t;
    struct outcome o = {0};
    struct record r = {0};
    driven_open(&t);
    char *runs = xvfb_place(&t.x, "runs"), *script = long_script();
    assert_int_equal(mkdir(runs, 0700), 0);
    if (mount("none", runs, "tmpfs", 0, "size=64k")) {
        printf("           a small file system cannot be mounted here\n");
        free(script);
        free(runs);
        stage_close(&t);
        skip();
    }
    program_finish(&t.x, driven_start(&t, script), &o);
    char *dir = record_newest(runs, NULL);
    int rc = dir ? record_open(&r, dir, NULL) : -1;
    struct outcome page = {0};
    char *file = xvfb_place(&t.x, "page.html");
    program_run(&t.x, &page, WORDS("report", "--runs", runs, "-o", file));
    assert_int_equal(umount2(runs, MNT_DETACH), 0); /* first of all, whatever comes out */

    ONE_LINE(&o, ERR_ENV, runs, "No space left", "--runs");
    assert_int_equal(rc, 0);
    assert_int_equal(r.skipped, 0);
    assert_true(r.n > 40);
    check_note("%d events of %d steps were on disk", r.n, r.events[r.n - 1].step);
    assert_int_equal(page.code, 0);
    assert_true(file_exists(file));
    assert_int_equal(pressed(t.other), 0);
    record_free(&r);
    outcome_free(&o);
    outcome_free(&page);
    free(file);
    free(dir);
    free(script);
    free(runs);
    stage_close(&t);
}

/* ---- stopped and killed --------------------------------------------------------------------------------------------------- */

static void t_signals(void **state)
{
    (void)state;
    static const struct {
        int signal;
        const char *name, *replies, *event;
        int n;
    } cases[] = {
        {SIGINT, "SIGINT", SHIFT_DOWN TYPE_LONG ANSWER("Done."), "key_press", 30},
        {SIGTERM, "SIGTERM", TYPE_LONG ANSWER("Done."), "key_press", 30},
        {SIGTERM, "SIGTERM", CTRL_DRAG ANSWER("Done."), "button_press", 1},
        {SIGINT, "SIGINT", CTRL_DRAG ANSWER("Done."), "button_press", 1},
        {SIGHUP, "SIGHUP", SHIFT_DOWN CLICK(500, 500) WAIT(60) ANSWER("Done."), "button_release", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage t;
        struct outcome o = {0};
        struct record r;
        driven_open(&t);
        pid_t pid = driven_start(&t, cases[i].replies);
        driven_wait(&t, cases[i].event, cases[i].n);
        if (strstr(cases[i].replies, "wait"))
            clock_sleep_ms(500);                      /* it has begun to wait */
        assert_true(i != 2 || pressed(t.other) == 2); /* Control and the button */
        int64_t asked = clock_ns();
        kill(pid, cases[i].signal);
        program_finish(&t.x, pid, &o);
        double ms = clock_ms_since(asked);
        ONE_LINE(&o, ERR_STOPPED, "stopped by signal", cases[i].name);
        assert_true(ms < 1500);
        assert_int_equal(pressed(t.other), 0);
        assert_int_equal(borrowed_keycodes(t.other), 0);
        driven_read(&t, &r);
        assert_false(r.torn);
        const json_t *exec = driven_last(&r, "exec"), *end = driven_last(&r, "end");
        assert_non_null(driven_last(&r, "action"));
        assert_false(field_bool(exec, "ok"));
        assert_non_null(strstr(field_text(exec, "error"), cases[i].name));
        assert_string_equal(field_text(end, "status"), "stopped");
        assert_string_equal(field_text(r.run, "status"), "stopped");
        assert_int_equal(field_int(r.run, "exit"), ERR_STOPPED);
        record_free(&r);
        report_works(&t);
        outcome_free(&o);
        stage_close(&t);
    }
}

/* What is on stdout is a result. */
static void t_no_result(void **state)
{
    (void)state;
    struct stage t;
    struct outcome o = {0};
    driven_open(&t);
    char *script = xvfb_place(&t.x, "script"), *runs = xvfb_place(&t.x, "runs");
    const char *text = CLICK(500, 500) CLICK(400, 400) CLICK(300, 300) ANSWER("Done.");
    assert_int_equal(file_write(script, text, strlen(text), NULL), 0);
#define THREE                                                                                                \
    "run", "Press Save", "-n", "3", "--fake", script, "--runs", runs, "--settle-min", "1", "--settle-quiet", \
        "30"
    program_run(&t.x, &o, WORDS(THREE));
    assert_int_equal(o.code, ERR_STEPS);
    assert_string_equal(o.out, "");
    assert_non_null(strstr(o.err, "used up its steps"));
    assert_non_null(strstr(o.err, "said  Done."));
    assert_non_null(strstr(o.err, "3 steps in"));
    assert_null(strstr(o.err, "   4  "));
    program_run(&t.x, &o, WORDS(THREE, "--json"));
    json_t *json = json_loads(o.out, 0, NULL);
    assert_string_equal(field_text(json, "status"), "steps");
    assert_string_equal(field_text(json, "answer"), "Done.");
    assert_int_equal(field_int(json, "steps"), 3);
    json_decref(json);
    program_run(&t.x, &o, WORDS(THREE, "-n", "4", "-q"));
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "Done.\n");
    outcome_free(&o);
    free(script);
    free(runs);
    stage_close(&t);
}

static void t_killed(void **state)
{
    (void)state;
    static const char *const replies[] = {SHIFT_DOWN TYPE_LONG, CTRL_DRAG};
    static const char *const events[] = {"key_press", "button_press"};
    static const int n[] = {30, 1};
    for (int i = 0; i < 2; i++) {
        struct stage t;
        struct outcome o = {0};
        struct record r;
        driven_open(&t);
        pid_t pid = driven_start(&t, replies[i]);
        driven_wait(&t, events[i], n[i]);
        kill(pid, SIGKILL);
        program_finish(&t.x, pid, &o);
        assert_int_equal(o.code, -1);
        for (int ms = 0; ms < 3000 && pressed(t.other); ms += 10) /* its watchdog is still there */
            clock_sleep_ms(10);
        assert_int_equal(pressed(t.other), 0);

        driven_read(&t, &r); /* what it was about to do is on disk, that it was done is not */
        assert_string_equal(r.events[r.n - 1].kind, "gate");
        assert_string_equal(field_text(json_object_get(driven_last(&r, "action"), "action"), "kind"),
                            i ? "drag" : "type");
        assert_string_equal(field_text(r.run, "status"), "running");
        record_free(&r);
        report_works(&t);

        program_run(&t.x, &o, WORDS("doctor"));
        assert_int_equal(o.code, 0);
        assert_int_equal(pressed(t.other), 0);
        assert_int_equal(borrowed_keycodes(t.other), 0);
        outcome_free(&o);
        stage_close(&t);
    }
}

static void t_unread(void **state)
{
    (void)state;
    struct stage t;
    int fds[2], status = 0;
    driven_open(&t);
    char *script = xvfb_place(&t.x, "script"), *runs = xvfb_place(&t.x, "runs");
    assert_int_equal(file_write(script, CLICK(500, 500) CTRL_DRAG ANSWER("Done."),
                                strlen(CLICK(500, 500) CTRL_DRAG ANSWER("Done.")), NULL),
                     0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fds[1], 2);
        dup2(open("/dev/null", O_WRONLY), 1);
        execl(program_path(), "holorun", "run", "Press Save", "--fake", script, "--runs", runs, NULL);
        _exit(127);
    }
    close(fds[0]); /* nobody reads what it says */
    close(fds[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(pressed(t.other), 0);
    assert_int_equal(json_array_size(stage_events(&t, "button_release")), 2);
    free(script);
    free(runs);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("no display, no server, Wayland only, no XTEST: exit code 3 and one line that says what to do",
          t_no_display),
    CLAIM("doctor's exit code: 0 on a display, 3 without one, 4 without a model", t_doctor),
    CLAIM("a display lost while typing, dragging, waiting: one line, and the record is complete", t_lost),
    CLAIM("a display that another holorun drives is left alone", t_driven),
    CLAIM("a damaged model directory: exit code 4 and one line that names file and fault", t_models),
    CLAIM("with --json a failure is one object with status, exit code and error", t_json_failures),
    CLAIM("a picture that is no PNG, or none at all: refused with what to do", t_pictures),
    CLAIM("version tells what was built with what; a run that is none is told as that", t_facts),
    CLAIM("a task without quotes is suggested with them, whole", t_quotes),
    CLAIM("nowhere to write runs or the answer: refused with what to do", t_no_place),
    CLAIM("a disk that becomes full: one line, nothing pressed, what was recorded makes a report",
          t_full_disk),
    CLAIM("SIGINT, SIGTERM, SIGHUP while typing, dragging, waiting: nothing pressed, all on record",
          t_signals),
    CLAIM("an answer that was asked for at the end is no result: not on stdout, and no step", t_no_result),
    CLAIM("SIGKILL while typing or dragging: what was down goes up, what was recorded makes a report",
          t_killed),
    CLAIM("a run goes on when nobody reads what it says", t_unread),
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, tests, sizeof tests / sizeof *tests);
}
