/* t_cuda_opening.c - tests of opening a device: which devices are initialized, and what happens if one fails
 * during the comparison with the reference.
 */
#include "check.h"

#include "emu/emu.h"
#include "ops/ops.h"

#include <sys/wait.h>
#include <unistd.h>

enum { NO_IMAGE = 209, ECC = 214 };

static struct emu_card whole; /* a working device */

static void only_emulated(void)
{
    if (!&emu_card)
        skip();
    whole = emu_card;
}

/* Opens a device that is lost after a number of launches. */
static void open_lost(const void *arg)
{
    struct err e = ERR_INIT;
    emu_card.launches = *(const long *)arg;
    emu_card.then = NO_IMAGE;
    struct backend *named = backend_open("cuda", NULL, 0, NULL, &e);
    if (named || e.kind != ERR_ENV || !strstr(e.text, "no kernel image"))
        _exit(101);
    emu_card = whole;
    emu_card.launches = *(const long *)arg;
    emu_card.then = ECC;
    struct backend *b = backend_open("auto", NULL, 0, NULL, &e);
    _exit(b && strcmp(b->ops->name, "cuda") != 0 ? 0 : 102);
}

static int in_process(void (*fn)(const void *arg), const void *arg)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(100);
        fn(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Uses one process per case: a failed check leaks its memory, and a device is checked only once. */
static void t_lost(void **state)
{
    only_emulated();
    static const long when[] = {1, 9, 40, 86 /* in a recorded step */};
    for (size_t i = 0; i < sizeof when / sizeof *when; i++)
        assert_int_equal(in_process(open_lost, &when[i]), 0);
}

/* With eight devices, a context is created only on the one that is used. */
static void t_contexts(void **state)
{
    only_emulated();
    struct gpu found[8];
    for (int nvml = 0; nvml < 2; nvml++) {
        emu_card.cards = 8;
        emu_card.nvml = nvml;
        emu_card.contexts = 0;
        assert_int_equal(backend_gpu_list(found, 8, NULL), 8);
        assert_true(found[7].free > 0 && found[7].memory == whole.memory);
        assert_int_equal(emu_card.contexts, 0);
        struct backend *b = backend_open("cuda:5", NULL, 0, NULL, NULL);
        assert_int_equal(backend_gpu_list(found, 8, NULL), 8);
        assert_int_equal(emu_card.contexts, 1 << 5);
        struct tensor t = b->ops->alloc(b, DT_F32, 10, 10);
        b->ops->free(b, &t);
        backend_free(b);
    }
    emu_card.cards = whole.cards;
    emu_card.nvml = whole.nvml;
}

static const struct CMUnitTest tests[] = {
    CLAIM("a device that fails while it is checked is not used, and the CPU remains usable", t_lost),
    CLAIM("looking for devices creates no context", t_contexts),
};

CHECK_MAIN()
