/* t_cuda_faults.c - tests of GPU failures: no driver, an old driver, busy, out of memory, lost.
 *
 * They need the emulated GPU; on a real one they are skipped.
 */
#include "tiny_check.h"

#include "emu/emu.h"
#include "ops/ops.h"
#include "session/session_impl.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STUB_DRIVER = 34, BUSY = 46, NO_IMAGE = 209, ECC = 214, ILLEGAL_ADDRESS = 700, LAUNCH_FAILURE = 719 };

static struct emu_card whole; /* a working device */

static void only_emulated(void)
{
    if (!&emu_card)
        skip();
    whole = emu_card;
}

/* ---- opening a device ------------------------------------------------------------------------ */

struct missing {
    const char *naming, *to_do;
    struct emu_card card;
};

static void one_line(const char *text)
{
    assert_true(*text && !strchr(text, '\n'));
}

static void t_missing(void **state)
{
    only_emulated();
    struct missing all[] = {
        {"no NVIDIA driver", "", whole},
        {"driver supports CUDA 11.8, but this program requires 13.0", "update the driver to 580", whole},
        {"no CUDA-capable device", "", whole},
        {"compute capability 7.0", "--device cpu", whole},
        {"libcublasLt.so", "--device cpu", whole},
        {"busy or unavailable", "nvidia-smi", whole},
        {"stub library", "nvidia-smi", whole}};
    all[0].card.driver = 0;
    all[1].card.driver = 11080;
    all[2].card.cards = 0;
    all[3].card.major = 7;
    all[4].card.library = false;
    all[5].card.error = BUSY;
    all[6].card.error = STUB_DRIVER;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct err e = ERR_INIT;
        emu_card = all[i].card;
        struct backend *b = backend_open("cuda", NULL, 0, NULL, &e),
                       *any = backend_open("auto", NULL, 0, NULL, NULL);
        emu_card = whole;
        if (b || e.kind != ERR_ENV || !strstr(e.text, all[i].naming) || !strstr(e.text, all[i].to_do))
            fail_msg("'%s' is reported as: %d, %s", all[i].naming, (int)e.kind, e.text);
        one_line(e.text);
        assert_true(any && strcmp(any->ops->name, "cuda") != 0); /* "auto" falls back to the CPU */
        backend_free(any);
    }
    struct err e = ERR_INIT;
    assert_null(backend_open("cuda:1", NULL, 0, NULL, &e));
    assert_true(e.kind == ERR_USAGE && strstr(e.text, "GPU 1 not found"));
}

/* ---- failures during work -------------------------------------------------------------------- */

/* Runs fn in a child process, copies its stderr to said and returns its exit code. */
static int in_process(char *said, size_t room, void (*fn)(const void *arg), const void *arg)
{
    int ends[2], status = 0;
    size_t n = 0;
    ssize_t got;
    fflush(stdout);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        fn(arg);
        _exit(0);
    }
    close(ends[1]);
    while (n + 1 < room && (got = read(ends[0], said + n, room - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct work {
    struct engine *engine;
    long launches; /* number of launches until the device is lost */
    int error;     /* error with which it is lost */
};

static void work(const void *arg)
{
    const struct work *w = arg;
    struct err e = ERR_INIT;
    struct session *s = session_new(w->engine, 1);
    struct image im = tiny_image(90, 60, 1);
    emu_card.launches = w->launches;
    emu_card.then = w->error;
    for (int i = 0; i < 12; i++) {
        if (i == 5 && session_append_image(s, &im, &e))
            die(e.kind, "%s", e.text);
        if (session_append(s, &(int32_t){40 + i}, 1, &e) || session_compute_logits(s, &e))
            die(e.kind, "%s", e.text);
    }
    image_free(&im);
    session_free(s);
}

/* Fails unless the work exits with ERR_ENV and prints one line that contains both texts. */
static void ends_with(const struct work *w, const char *naming, const char *to_do)
{
    char said[4096];
    int code = in_process(said, sizeof said, work, w);
    size_t n = strlen(said);
    if (code != ERR_ENV || !strstr(said, naming) || !strstr(said, to_do))
        fail_msg("'%s' after %ld launches: exit %d: %s", naming, w->launches, code, said);
    assert_true(n > 1 && strchr(said, '\n') == said + n - 1);
}

static void t_lost(void **state)
{
    only_emulated();
    static const struct {
        int error;
        const char *naming, *to_do;
    } kinds[] = {{LAUNCH_FAILURE, "unspecified launch failure", "restart it"},
                 {ECC, "GPU: ", "restart it"},
                 {ILLEGAL_ADDRESS, "GPU: ", "restart it"},
                 {NO_IMAGE, "no kernel image", "--device cpu"}};
    static const long when[] = {1, 2, 40, 130, 300}; /* in a prompt, in the tower, in a recorded step */
    struct engine *g = tiny_open_on(&tiny, "cuda", NULL, false);
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < sizeof when / sizeof *when; i++)
            ends_with(&(struct work){g, when[i], kinds[k].error}, kinds[k].naming, kinds[k].to_do);
    char said[4096];
    assert_int_equal(in_process(said, sizeof said, work, &(struct work){g, 0, 0}), 0);
    assert_string_equal(said, "");
    engine_close(g);
}

/* ---- several devices ------------------------------------------------------------------------- */

static void read_some(struct engine *g)
{
    struct err e = ERR_INIT;
    struct session *s = session_new(g, 1);
    for (int i = 0; i < 4; i++)
        if (session_append(s, &(int32_t){40 + i}, 1, &e) || session_compute_logits(s, &e))
            fail_msg("%s", e.text);
    session_free(s);
}

static void *read_and_close(void *engine_)
{
    read_some(engine_);
    engine_close(engine_);
    return NULL;
}

/* The emulated GPU aborts if a thread submits work to a device that is not its current one. */
static void t_second(void **state)
{
    only_emulated();
    struct gpu found[2];
    pthread_t other;
    emu_card.cards = 2;
    struct engine *g = tiny_open_on(&tiny, "cuda:1", NULL, false);
    read_some(g);
    assert_int_equal(backend_gpu_list(found, 2, NULL), 2);
    struct backend *first = backend_open("cuda:0", NULL, 0, NULL, NULL);
    assert_non_null(first);
    backend_free(first);
    read_some(g);
    assert_int_equal(pthread_create(&other, NULL, read_and_close, g), 0);
    pthread_join(other, NULL);
    emu_card.cards = whole.cards;
}

static const struct CMUnitTest tests[] = {
    CLAIM("the second of two devices does the work of all threads, also if another thread opened it",
          t_second),
    CLAIM("a missing driver or library is reported in one line, and the CPU remains usable", t_missing),
    CLAIM("a lost device ends the program with one line that says what to do", t_lost),
};

TINY_MAIN(check_seed())
