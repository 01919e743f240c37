/* t_check.c - claims about the checks of a test: each kind, on a desk of its own. */
#include "check.h"

#include "xvfb.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"
#include "qa/check.h"

#include <X11/Xlib.h>
#include <X11/Xutil.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATIENCE = 60 }; /* s: machines are loaded */

/* ---- a scene ---------------------------------------------------------------------------------------------------- */

struct scene {
    struct desk *desk;
    struct test test;
    struct attempt a;
    struct check_scene s;
    Display *dpy; /* the test's own */
    char out[300];
};

static void scene_open(struct scene *t)
{
    struct err e = ERR_INIT;
    *t = (struct scene){0};
    if (!program_exists("Xvfb"))
        skip();
    t->desk =
        desk_open(&(struct desk_options){.display = "xvfb:400x300,noglx", .wm = "", .seconds = PATIENCE}, &e);
    if (!t->desk)
        fail_msg("%s", e.text);
    snprintf(t->out, sizeof t->out, "%s/out", desk_home(t->desk));
    t->s = (struct check_scene){.test = &t->test,
                                .desk = t->desk,
                                .golden_dir = desk_home(t->desk),
                                .out_dir = t->out,
                                .ended = true};
    t->dpy = XOpenDisplay(desk_display(t->desk));
    t->s.screen = screen_open(&(struct screen_options){.display = desk_display(t->desk)}, &e);
    assert_non_null(t->dpy);
    if (!t->s.screen)
        fail_msg("%s", e.text);
}

static void scene_close(struct scene *t)
{
    attempt_free(&t->a);
    screen_close(t->s.screen);
    if (t->dpy)
        XCloseDisplay(t->dpy);
    desk_close(t->desk);
}

/* As a crash would; the test's own connection is given up before. */
static void kill_server(struct scene *t)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    assert_int_equal(getsockopt(ConnectionNumber(t->dpy), SOL_SOCKET, SO_PEERCRED, &peer, &size), 0);
    XCloseDisplay(t->dpy);
    t->dpy = NULL;
    assert_int_equal(kill(peer.pid, SIGKILL), 0);
    char what[256];
    for (int64_t start = clock_ns(); desk_state(t->desk, what, sizeof what) != DESK_NO_SERVER;
         clock_sleep_ms(20))
        assert_true(clock_ms_since(start) < 1000 * PATIENCE);
}

/* One check; its result stays until the next. */
static const struct check_result *ask(struct scene *t, struct check c)
{
    attempt_free(&t->a);
    if (c.kind == CHECK_REGION)
        c.tolerance = 16;
    t->test.checks[0] = c;
    t->test.n_checks = 1;
    checks_run(&t->s, &t->a);
    assert_int_equal(t->a.n_checks, 1);
    assert_ptr_equal(t->a.checks[0].check, &t->test.checks[0]);
    return &t->a.checks[0];
}

#define ASK(t, ...) ask(t, (struct check){__VA_ARGS__})

static void says(const struct check_result *r, enum answer a, const char *detail, const char *file, int line)
{
    if (r->answer == a && r->detail && strstr(r->detail, detail) && !strchr(r->detail, '\n'))
        return;
    fail_msg("%s:%d: answer %d: %s", file, line, r->answer, r->detail ? r->detail : "no detail");
}
#define SAYS(result, answer, detail) says(result, answer, detail, __FILE__, __LINE__)

static void put_file(const struct scene *t, const char *name, const char *text, size_t len)
{
    char *path = xasprintf("%s/%s", desk_home(t->desk), name);
    struct err e = ERR_INIT;
    if (file_write(path, text, len, &e))
        fail_msg("%s", e.text);
    free(path);
}

/* ---- shell ------------------------------------------------------------------------------------------------------ */

static void t_shell(void **state)
{
    (void)state;
    struct scene t;
    scene_open(&t);
    t.s.answer = "the 'answer' is\n42";
    t.s.run_dir = "/runs/x y";
    SAYS(ASK(&t, .text = "exit 0"), ANSWER_YES, "exit code 0, it was 0");
    SAYS(ASK(&t, .text = "echo one; echo 'no such user' >&2; echo; exit 3"), ANSWER_NO,
         "expected exit code 0, it was 3; the end of its output: no such user");
    assert_string_equal(t.a.checks[0].output, "one\nno such user\n\n");
    SAYS(ASK(&t, .text = "kill -9 $$"), ANSWER_NO, "it was 137");
    SAYS(ASK(&t, .text = "echo \"$HOLORUN_DIR|$HOLORUN_ANSWER|$HOLORUN_HOME\""), ANSWER_YES, "42|");
    char *want = xasprintf("/runs/x y|the 'answer' is\n42|%s\n", desk_home(t.desk));
    assert_string_equal(t.a.checks[0].output, want);
    free(want);
    ASK(&t, .text = "yes 1234567 | head -c 100000; echo; echo end");
    assert_int_equal(strlen(t.a.checks[0].output), 64 << 10);
    assert_string_equal(t.a.checks[0].output + (64 << 10) - 5, "\nend\n");
    SAYS(ASK(&t, .text = "printf 'a\\0b\\033[31mc'; exit 1"), ANSWER_NO, "output: a?b [31mc");

    /* It waits for its yes; what takes too long is ended. */
    SAYS(ASK(&t, .text = "cd $HOLORUN_HOME; n=$(cat n 2>/dev/null); echo x$n >n; test \"$n\" = xxx",
             .seconds = 20),
         ANSWER_YES, "was 0");
    SAYS(ASK(&t, .text = "echo begun; sleep 50", .seconds = 0.3), ANSWER_NO, "longer than 1 s and was ended");
    assert_string_equal(t.a.checks[0].output, "begun\n");
    SAYS(ASK(&t, .text = "cd $HOLORUN_HOME; test -e again && sleep 50; touch again; exit 4", .seconds = 0.2),
         ANSWER_NO, "it was 4");
    scene_close(&t);
}

/* ---- the answer ------------------------------------------------------------------------------------------------- */

static void t_answer(void **state)
{
    (void)state;
    struct scene t;
    scene_open(&t);
    SAYS(ASK(&t, .kind = CHECK_ANSWER, .text = "."), ANSWER_NO, "matches '.', there is none");
    t.s.answer = "VERDICT: PASSED\nIt shows \"2 tickets\".";
    SAYS(ASK(&t, .kind = CHECK_ANSWER, .text = "^VERDICT: PASSED$"), ANSWER_NO,
         "it is 'VERDICT: PASSED It shows");
    SAYS(ASK(&t, .kind = CHECK_ANSWER, .text = "(?m)^VERDICT: PASSED$"), ANSWER_YES, "matches");
    SAYS(ASK(&t, .kind = CHECK_ANSWER, .text = "verdict"), ANSWER_NO, "matches 'verdict'");
    SAYS(ASK(&t, .kind = CHECK_ANSWER, .text = "(oh"), ANSWER_ERROR, "missing closing parenthesis");
    t.s.answer = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    SAYS(ASK(&t, .kind = CHECK_ANSWER, .text = "^(a+)+$"), ANSWER_ERROR, "takes too long");
    scene_close(&t);
}

/* ---- files ------------------------------------------------------------------------------------------------------ */

static void t_file(void **state)
{
    (void)state;
    struct scene t;
    scene_open(&t);
    char hex[65], path[120];
    struct sha256 sum;
    sha256_begin(&sum);
    sha256_add(&sum, "Hello\0there\n", 12);
    sha256_end(&sum, hex);
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt"), ANSWER_NO, "expected a file 'a.txt', there is none");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt", .absent = true), ANSWER_YES,
         "expected no file 'a.txt', there is none");
    put_file(&t, "a.txt", "Hello\0there\n", 12);
    snprintf(path, sizeof path, "%s/a.txt", desk_home(t.desk));
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt"), ANSWER_YES, "one of 12 bytes");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = path), ANSWER_YES, "one of 12 bytes");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt", .absent = true), ANSWER_NO, "expected no file");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt/b"), ANSWER_NO, "there is none");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "."), ANSWER_YES, "a folder");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "there$"), ANSWER_YES, "to find 'there$'");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "bye"), ANSWER_NO, "it has 12 bytes: 'Hello");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "bye", .absent = true), ANSWER_YES,
         "expected no 'bye'");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt", .sha256 = hex), ANSWER_YES, "12 bytes");
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "Hello", .sha256 = hex), ANSWER_YES, "Hello");
    hex[0] = hex[0] == '0' ? '1' : '0';
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "a.txt", .text2 = "Hello", .sha256 = hex), ANSWER_NO,
         hex[0] == '0' ? "sha256 0" : "sha256 1");

    /* What one could wait for, and what is too much. */
    snprintf(path, sizeof path, "%s/pipe", desk_home(t.desk));
    assert_int_equal(mkfifo(path, 0600), 0);
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "pipe", .text2 = "x"), ANSWER_NO, "no regular file");
    put_file(&t, "big", "", 0);
    snprintf(path, sizeof path, "%s/big", desk_home(t.desk));
    assert_int_equal(truncate(path, 5 << 20), 0);
    SAYS(ASK(&t, .kind = CHECK_FILE, .text = "big", .text2 = "x"), ANSWER_ERROR,
         "only 4194304 are looked at");
    scene_close(&t);
}

/* ---- processes and ports ---------------------------------------------------------------------------------------- */

static int listening(int *port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof to;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&to, &size), 0);
    *port = ntohs(to.sin_port);
    return fd;
}

static void t_process_port(void **state)
{
    (void)state;
    struct scene t;
    int port;
    scene_open(&t);
    struct err e = ERR_INIT;
    SAYS(ASK(&t, .kind = CHECK_PROCESS, .text = "sleep 98765"), ANSWER_NO, "there are none");
    assert_int_equal(desk_start(t.desk, "exec sleep 98765", &e), 0);
    SAYS(ASK(&t, .kind = CHECK_PROCESS, .text = "sleep 9876[0-9]", .seconds = PATIENCE), ANSWER_YES,
         "expected a process whose command matches 'sleep 9876[0-9]', there is 1");
    SAYS(ASK(&t, .kind = CHECK_PROCESS, .text = "sleep 98765", .absent = true), ANSWER_NO,
         "expected no process");
    SAYS(ASK(&t, .kind = CHECK_PROCESS, .text = "(oh"), ANSWER_ERROR, "missing closing parenthesis");
    int fd = listening(&port);
    SAYS(ASK(&t, .kind = CHECK_PORT, .port = port), ANSWER_NO, "expected somebody to listen on port");
    SAYS(ASK(&t, .kind = CHECK_PORT, .port = port, .absent = true), ANSWER_YES, "expected nobody");
    assert_int_equal(listen(fd, 1), 0);
    SAYS(ASK(&t, .kind = CHECK_PORT, .port = port), ANSWER_YES, "somebody does");
    SAYS(ASK(&t, .kind = CHECK_PORT, .port = port, .absent = true), ANSWER_NO, "somebody does");
    close(fd);
    scene_close(&t);
}

/* ---- windows ---------------------------------------------------------------------------------------------------- */

static Window put_window(Display *dpy, const char *title, const char *class, int x, int y, int w, int h,
                         unsigned long color)
{
    XSetWindowAttributes at = {.override_redirect = True, .background_pixel = color};
    Window win = XCreateWindow(dpy, DefaultRootWindow(dpy), x, y, (unsigned)w, (unsigned)h, 0, CopyFromParent,
                               InputOutput, CopyFromParent, CWOverrideRedirect | CWBackPixel, &at);
    char *name = xstrdup(class);
    XClassHint hint = {name, name};
    XStoreName(dpy, win, title);
    XSetClassHint(dpy, win, &hint);
    XMapRaised(dpy, win);
    XSync(dpy, False);
    free(name);
    return win;
}

static void *put_window_late(void *arg)
{
    struct scene *t = arg;
    Display *dpy = XOpenDisplay(desk_display(t->desk));
    clock_sleep_ms(300);
    put_window(dpy, "Late one", "Late", 10, 10, 20, 20, 0xff);
    return dpy;
}

static void t_window(void **state)
{
    (void)state;
    struct scene t;
    scene_open(&t);
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "."), ANSWER_NO,
         "expected a window titled '.', there is none at all");
    put_window(t.dpy, "Nimbus - Tickets", "Nimbus", 0, 0, 50, 50, 0xff0000);
    Window other = put_window(t.dpy, "Terminal", "XTerm", 60, 0, 50, 50, 0xff00);
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "^Nimbus"), ANSWER_YES, "there is 'Nimbus - Tickets'");
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text2 = "^XTerm$"), ANSWER_YES, "'Terminal' of class 'XTerm'");
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "Nimbus", .text2 = "XTerm"), ANSWER_NO,
         "of class 'XTerm', there is 'Terminal'");
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "Mail"), ANSWER_NO, "there is 'Terminal', 'Nimbus - Tickets'");
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "Mail", .absent = true), ANSWER_YES,
         "expected no window titled 'Mail'");
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "Term", .absent = true), ANSWER_NO, "there is 'Terminal'");
    XUnmapWindow(t.dpy, other);
    XSync(t.dpy, False);
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "Term", .absent = true), ANSWER_YES, "expected no window");

    pthread_t later;
    void *dpy;
    assert_int_equal(pthread_create(&later, NULL, put_window_late, &t), 0);
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "Late", .seconds = 60), ANSWER_YES, "'Late one'");
    pthread_join(later, &dpy);
    XCloseDisplay(dpy);
    scene_close(&t);
}

/* ---- regions ---------------------------------------------------------------------------------------------------- */

static void picture(const struct scene *t, const char *name, struct image *im)
{
    char *path = xasprintf("%s/%s", desk_home(t->desk), name);
    struct err e = ERR_INIT;
    if (image_read_png(im, path, &e))
        fail_msg("%s", e.text);
    free(path);
}

#define REGION(...) .kind = CHECK_REGION, .text = "golden/box.png", __VA_ARGS__

static void t_region(void **state)
{
    (void)state;
    struct scene t;
    struct image im = {0};
    scene_open(&t);
    put_window(t.dpy, "red", "Red", 100, 50, 40, 20, 0xff0000);
    SAYS(ASK(&t, REGION(.area = {100, 50, 40, 20})), ANSWER_ERROR, "--update-golden makes it");
    t.s.update_golden = true;
    SAYS(ASK(&t, REGION(.area = {100, 50, 40, 20})), ANSWER_YES, "golden/box.png', 40x20, as it is now");
    t.s.update_golden = false;
    picture(&t, "golden/box.png", &im);
    assert_int_equal(im.w, 40);
    assert_memory_equal(im.rgb, "\xff\0\0", 3);
    image_free(&im);
    SAYS(ASK(&t, REGION(.area = {100, 50, 40, 20})), ANSWER_YES, "at most 0 % of the pixels");
    assert_null(t.a.checks[0].pictures[0]);

    /* A tenth of it is another, by more than the tolerance; then by as much. */
    Window spot = put_window(t.dpy, "spot", "Spot", 100, 50, 4, 20, 0xffu << 16 | 17);
    const struct check_result *r = ASK(&t, REGION(.area = {100, 50, 40, 20}, .max_diff = 0.099));
    SAYS(r, ANSWER_NO,
         "at most 9.9 % of the pixels to differ from 'golden/box.png' by more than 16, 10 % do");
    static const char *const names[] = {"expected", "actual", "difference"};
    for (int i = 0; i < 3; i++) {
        char *name = xasprintf("%s/check-1-%s.png", t.out, names[i]);
        assert_string_equal(r->pictures[i], name);
        free(name);
    }
    picture(&t, "out/check-1-difference.png", &im);
    assert_true(im.rgb[0] > im.rgb[1] + 50);            /* marked */
    assert_int_equal(im.rgb[3 * 4], im.rgb[3 * 4 + 1]); /* grey */
    image_free(&im);
    picture(&t, "out/check-1-actual.png", &im);
    assert_memory_equal(im.rgb, "\xff\0\x11", 3);
    image_free(&im);
    SAYS(ASK(&t, REGION(.area = {100, 50, 40, 20}, .max_diff = 0.1)), ANSWER_YES, "10 % do");
    XSetWindowBackground(t.dpy, spot, 0xffu << 16 | 16);
    XClearWindow(t.dpy, spot);
    XSync(t.dpy, False);
    SAYS(ASK(&t, REGION(.area = {100, 50, 40, 20})), ANSWER_YES, ", 0 % do");

    /* Sizes: another one, the whole screen's, and outside of it. */
    SAYS(ASK(&t, REGION(.area = {100, 50, 39, 20})), ANSWER_NO, "which is 40x20; the area is 39x20");
    assert_non_null(t.a.checks[0].pictures[1]);
    assert_null(t.a.checks[0].pictures[2]);
    SAYS(ASK(&t, REGION(.area = {380, 50, 40, 20})), ANSWER_ERROR,
         "not within the screen, which has 400x300");
    t.s.update_golden = true;
    SAYS(ASK(&t, REGION()), ANSWER_YES, "400x300");
    t.s.update_golden = false;
    SAYS(ASK(&t, REGION(.area = {90, 40, 40, 20})), ANSWER_YES, ", 0 % do");
    XSetWindowBackground(t.dpy, spot, 0xff);
    XClearWindow(t.dpy, spot);
    XMoveWindow(t.dpy, spot, 110, 50);
    XSync(t.dpy, False);
    SAYS(ASK(&t, REGION(.area = {90, 40, 40, 20})), ANSWER_NO, ", 5 % do");
    put_file(&t, "golden/box.png", "no picture", 10);
    SAYS(ASK(&t, REGION()), ANSWER_ERROR, "not a readable PNG");
    scene_close(&t);
}

/* ---- models ----------------------------------------------------------------------------------------------------- */

struct scripted {
    const char *answers; /* + - ? ! one after the other */
    struct question asked;
    char text[200];
    struct image first, last; /* copies */
};

static enum answer scripted_ask(void *arg, const struct question *q, char **reason, struct err *e)
{
    struct scripted *s = arg;
    s->asked = *q;
    snprintf(s->text, sizeof s->text, "%s", q->text);
    image_free(&s->first);
    image_free(&s->last);
    image_copy(&s->first, &q->frames[0], NULL);
    image_copy(&s->last, &q->frames[q->n - 1], NULL);
    char c = *s->answers++;
    assert_true(c);
    if (c == '!')
        err_set(e, ERR_MODEL, "no memory for the judge");
    else
        *reason = xasprintf("because of %c", c);
    return c == '+' ? ANSWER_YES : c == '-' ? ANSWER_NO : c == '?' ? ANSWER_UNKNOWN : ANSWER_ERROR;
}

/* Red pixels from one line to another. */
static int occurrences(const struct image *im, int from, int to)
{
    int n = 0;
    for (int i = from * im->w; i < to * im->w; i++)
        n += !memcmp(im->rgb + 3 * i, "\xff\0\0", 3);
    return n;
}

static void t_model(void **state)
{
    (void)state;
    struct scene t;
    scene_open(&t);
    put_window(t.dpy, "red", "Red", 0, 0, 400, 300, 0xff0000);
    struct image frames[3] = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(image_alloc(&frames[i], 4 + i, 4, NULL), 0);
    t.s.frames = frames;
    t.s.n_frames = 3;
    SAYS(ASK(&t, .kind = CHECK_JUDGE, .text = "Is it red?", .passes = 1, .frames = 1), ANSWER_UNKNOWN,
         "no model");
    struct scripted model = {.answers = "++"};
    t.s.judge = (struct judge){scripted_ask, &model};
    SAYS(ASK(&t, .kind = CHECK_JUDGE, .text = "Is it red?", .passes = 2, .frames = 3), ANSWER_YES,
         "asked 2 times and says yes: because of +");
    assert_string_equal(t.a.checks[0].output, "because of +");
    assert_string_equal(model.text, "Is it red?");
    assert_int_equal(model.asked.n, 3);
    assert_int_equal(model.asked.pass, 1);
    assert_int_equal(model.first.w, 5); /* two of the run, then the screen of now */
    assert_int_equal(model.last.w, 400);
    assert_memory_equal(model.last.rgb, "\xff\0\0", 3);
    /* What the run hid is hidden from the judge, too. */
    struct gate_options hiding = {.policy = policy_builtin(), .n_hide = 1};
    assert_int_equal(zones_read((const char *const[]){"0,0,100%,10", NULL}, "", hiding.hide, NULL), 1);
    t.s.gate = gate_new(&hiding);
    gate_begin(t.s.gate, t.s.screen, NULL);
    model.answers = "+";
    SAYS(ASK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 1, .frames = 1), ANSWER_YES, "asked 1 time");
    assert_int_equal(occurrences(&model.last, 0, 10), 0);
    assert_int_equal(occurrences(&model.last, 10, 300), 400 * 290);
    gate_free(t.s.gate);
    policy_free((struct policy *)hiding.policy);
    t.s.gate = NULL;
    model.answers = "+-+";
    SAYS(ASK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 3, .frames = 1), ANSWER_NO,
         "asked 2 times and says no");
    assert_int_equal(model.asked.n, 1);
    model.answers = "?";
    SAYS(ASK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 3, .frames = 9), ANSWER_UNKNOWN, "not known");
    assert_int_equal(model.asked.n, 4);
    model.answers = "!";
    SAYS(ASK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 1, .frames = 1), ANSWER_ERROR,
         "no memory for the judge");
    /* The run's last frame is the screen of now: it is shown once. */
    image_free(&frames[2]);
    assert_int_equal(image_copy(&frames[2], &model.last, NULL), 0);
    model.answers = "+";
    SAYS(ASK(&t, .kind = CHECK_JUDGE, .text = "?", .passes = 1, .frames = 2), ANSWER_YES, "yes");
    assert_int_equal(model.asked.n, 2);
    assert_int_equal(model.first.w, 5);
    model.answers = "+-?";
    SAYS(ASK(&t, .kind = CHECK_TEXT, .text = "Log out"), ANSWER_YES, "yes");
    assert_non_null(strstr(model.text, "\"Log out\""));
    SAYS(ASK(&t, .kind = CHECK_TEXT, .text = "Log out", .absent = true), ANSWER_YES, "says no");
    SAYS(ASK(&t, .kind = CHECK_TEXT, .text = "Log out", .absent = true), ANSWER_UNKNOWN, "not known");
    for (int i = 0; i < 3; i++)
        image_free(&frames[i]);
    image_free(&model.first);
    image_free(&model.last);
    scene_close(&t);
}

/* ---- when they are not asked ------------------------------------------------------------------------------------ */

static void t_not_asked(void **state)
{
    (void)state;
    struct scene t;
    scene_open(&t);
    t.s.ended = false;
    SAYS(ASK(&t, .text = "exit 0"), ANSWER_NOT_ASKED, "did not come to an end of its own");
    SAYS(ASK(&t, .text = "exit 0", .always = true), ANSWER_YES, "was 0");
    t.s.ended = true;

    /* All are asked, whatever the first says; each is told of by its own line. */
    attempt_free(&t.a);
    t.test.checks[0] = (struct check){.text = "exit 1"};
    t.test.checks[1] = (struct check){.kind = CHECK_WINDOW, .text = "x"};
    t.test.checks[2] = (struct check){.text = "exit 0"};
    t.test.n_checks = 3;
    struct screen *screen = t.s.screen;
    t.s.screen = NULL;
    assert_int_equal(checks_run(&t.s, &t.a), 0);
    t.s.screen = screen;
    SAYS(&t.a.checks[0], ANSWER_NO, "it was 1");
    SAYS(&t.a.checks[1], ANSWER_ERROR, "the screen of the test was lost");
    SAYS(&t.a.checks[2], ANSWER_YES, "it was 0");

    t.s.desk = NULL;
    SAYS(ASK(&t, .text = "exit 0"), ANSWER_ERROR, "the desktop of the test was lost");
    scene_close(&t);
}

/* A program under test that ends at once, and what the desk says of it then. */
static void ends_as(struct scene *t, const char *command, enum desk_state state)
{
    struct err e = ERR_INIT;
    char what[256];
    assert_int_equal(desk_start(t->desk, command, &e), 0);
    for (int64_t start = clock_ns(); desk_state(t->desk, what, sizeof what) != state; clock_sleep_ms(20))
        assert_true(clock_ms_since(start) < 1000 * PATIENCE);
}

/* A no of a desk that is not well is no verdict, nor is the yes of what is absent there; but how the program under test is
 * is its own affair. */
static void t_not_well(void **state)
{
    (void)state;
    struct scene t;
    scene_open(&t);
    ends_as(&t, "exit 3", DESK_NO_PROGRAM);
    SAYS(ASK(&t, .text = "exit 1"), ANSWER_NO, "it was 1");
    kill_server(&t);
    SAYS(ASK(&t, .text = "exit 1"), ANSWER_ERROR, "the X server has ended");
    SAYS(ASK(&t, .kind = CHECK_PROCESS, .text = "none", .absent = true), ANSWER_ERROR,
         "the X server has ended");
    SAYS(ASK(&t, .text = "exit 0"), ANSWER_YES, "it was 0");
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "x", .absent = true), ANSWER_ERROR, "was lost");
    SAYS(ASK(&t, .kind = CHECK_REGION, .text = "x.png"), ANSWER_ERROR, "was lost");
    SAYS(ASK(&t, .kind = CHECK_TEXT, .text = "x"), ANSWER_ERROR, "was lost");
    scene_close(&t);
}

/* To close it may have been the task. */
static void t_closed(void **state)
{
    (void)state;
    struct scene t;
    scene_open(&t);
    ends_as(&t, "exit 0", DESK_PROGRAM_DONE);
    SAYS(ASK(&t, .kind = CHECK_PROCESS, .text = "none", .absent = true), ANSWER_YES, "");
    SAYS(ASK(&t, .kind = CHECK_WINDOW, .text = "none", .absent = true), ANSWER_YES, "");
    SAYS(ASK(&t, .text = "exit 1"), ANSWER_NO, "it was 1");
    scene_close(&t);
}

static void *cancel_soon(void *arg)
{
    clock_sleep_ms(200);
    *(volatile int *)arg = 1;
    return NULL;
}

static void t_cancel(void **state)
{
    (void)state;
    struct scene t;
    volatile int cancel = 0;
    pthread_t later;
    scene_open(&t);
    t.s.cancel = &cancel;
    static const char *const commands[] = {"exit 1", "sleep 1000"}; /* between two looks, and in one */
    for (int i = 0; i < 2; i++) {
        attempt_free(&t.a);
        cancel = 0;
        t.test.checks[0] = (struct check){.text = "exit 0", .seconds = 1000};
        t.test.checks[1] = (struct check){.text = commands[i], .seconds = 1000};
        t.test.checks[2] = (struct check){.text = "exit 0", .seconds = 1000};
        t.test.n_checks = 3;
        assert_int_equal(pthread_create(&later, NULL, cancel_soon, (void *)(uintptr_t)&cancel), 0);
        assert_int_equal(checks_run(&t.s, &t.a), -1);
        pthread_join(later, NULL);
        assert_int_equal(t.a.n_checks, 3);
        SAYS(&t.a.checks[1], ANSWER_NOT_ASKED, "stopped");
        SAYS(&t.a.checks[2], ANSWER_NOT_ASKED, "stopped before");
    }
    scene_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a command's exit code decides, with its output, its environment and its time", t_shell),
    CLAIM("the answer is matched as it stands", t_answer),
    CLAIM("a file is there, has this in it, is this one; what is no file or too large is said", t_file),
    CLAIM("processes and ports are there or not", t_process_port),
    CLAIM("a window is found by title and class, waited for, and missed by what is there instead", t_window),
    CLAIM("a region is compared pixel by pixel, shown when it differs, and written anew when asked",
          t_region),
    CLAIM("a model is asked as often as wanted, about the last frames and the screen of now", t_model),
    CLAIM("what cannot be asked is not a no, and all others are asked", t_not_asked),
    CLAIM("who stops the checks need not wait for them", t_cancel),
    CLAIM("on a desk that is lost nothing is a no, nor absent", t_not_well),
    CLAIM("a program that was closed leaves a desk whose checks are answered", t_closed),
};

int main(int argc, char **argv)
{
    struct err e = ERR_INIT;
    if (desks_begin(&e)) /* before there are threads */
        die(e.kind, "%s", e.text);
    int rc = check_main(argc, argv, tests, sizeof tests / sizeof *tests);
    desks_end();
    return rc;
}
