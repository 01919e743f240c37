/* t_desk_killed.c - tests desktops when a part of them or their owner is killed at random moments. */
#include "check.h"
#include "desks.h"
#include "place.h"
#include "xvfb.h"

#include "base/clock.h"
#include "base/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DESKS = 3, VICTIMS = 5, ROUNDS = 4, PATIENCE = 60, MOMENT_MS = 900 };
#define NASTY                                                                                                \
    "trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM; (sleep 4441 &) ; sleep 4442' &) ; setsid setsid "  \
    "sleep 4443 & while :; do sleep 0.05; done"

/* ---- victim process -------------------------------------------------------------------------------- */

enum stage { OPENING, OPEN, REFUSED };
struct life { /* one desktop; in shared memory */
    atomic_int stage;
    enum desk_state state; /* at its end */
    struct desk_trace trace;
    char what[ERR_TEXT];
};
struct victim {
    atomic_bool stop;
    struct life lives[DESKS];
    pid_t pid;
    char tmp[PLACE_PATH]; /* its TMPDIR */
};

struct liver {
    struct victim *v;
    int i;
};

static void *live(void *arg)
{
    struct victim *v = ((struct liver *)arg)->v;
    struct life *l = &v->lives[((struct liver *)arg)->i];
    struct err e = ERR_INIT;
    const char *wm = program_exists("openbox") ? NULL : "";
    struct desk *d =
        desk_open(&(struct desk_options){.display = "xvfb:320x240,noglx", .wm = wm, .seconds = PATIENCE}, &e);
    if (!d) {
        snprintf(l->what, sizeof l->what, "%s", e.text);
        l->stage = REFUSED;
        return NULL;
    }
    l->trace = desk_trace_of(d);
    l->stage = OPEN;
    desk_start(d, NASTY, &e);
    while (!v->stop) {
        desk_run(d, "(setsid sleep 4445 &); true", NULL, PATIENCE, NULL, NULL, NULL, &e);
        clock_sleep_ms(20);
    }
    l->state = desk_state(d, l->what, sizeof l->what);
    desk_close(d);
    return NULL;
}

_Noreturn static void be_victim(struct victim *v)
{
    struct err e = ERR_INIT;
    pthread_t threads[DESKS];
    struct liver livers[DESKS];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("TMPDIR", v->tmp, 1);
    if (desks_begin(&e)) {
        printf("%s\n", e.text);
        _exit(9);
    }
    for (int i = 0; i < DESKS; i++) {
        livers[i] = (struct liver){v, i};
        pthread_create(&threads[i], NULL, live, &livers[i]);
    }
    for (int i = 0; i < DESKS; i++)
        pthread_join(threads[i], NULL);
    desks_end();
    _exit(0);
}

static struct victim *start_victim(void)
{
    struct victim *v = mmap(NULL, sizeof *v, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(v != MAP_FAILED);
    assert_non_null(mkdtemp(place_template(v->tmp)));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        be_victim(v);
    assert_true(pid > 0);
    v->pid = pid;
    return v;
}

/* ---- kills ----------------------------------------------------------------------------------------- */

static const char *const targets[] = {"owner", "zygote", "supervisor", "Xvfb", "openbox", "sleep"};
enum { OWNER, ZYGOTE, SUPERVISOR, SERVER, WM, PROGRAM, TARGETS };

/* Finds children of a process with this name. */
static int children_named(pid_t parent, const char *name, pid_t *out, int max)
{
    struct proc *list;
    int n = procs_below(parent, &list), count = 0;
    for (int i = 0; i < n && count < max; i++) {
        char path[64], *comm = NULL;
        size_t len;
        snprintf(path, sizeof path, "/proc/%d/comm", (int)list[i].pid);
        if (!list[i].zombie && file_read(path, 100, &comm, &len, NULL) == 0 &&
            !strncmp(comm, name, strlen(name)))
            out[count++] = list[i].pid;
        free(comm);
    }
    free(list);
    return count;
}

static int find(const struct victim *v, int target, pid_t *out, int max)
{
    switch (target) {
    case OWNER:
        out[0] = v->pid;
        return 1;
    case ZYGOTE:
        return children_named(v->pid, "holorun-desks", out, max);
    case SUPERVISOR:
        return children_named(v->pid, "holorun-desk-sv", out, max);
    default: {
        int n = desks_marked(v->tmp, targets[target], out, max);
        return n < max ? n : max;
    }
    }
}

/* Kills one such process as soon as one exists. */
static void kill_one(const struct victim *v, int target, uint64_t *random)
{
    pid_t pids[64];
    int64_t start = clock_ns();
    for (int n; clock_ms_since(start) < PATIENCE * 1000; clock_sleep_ms(1))
        if ((n = find(v, target, pids, 64)) > 0) {
            kill(pids[(int)(check_random(random) * n)], SIGKILL);
            return;
        }
    fail_msg("no %s to kill", targets[target]);
}

/* ---- leftovers ------------------------------------------------------------------------------------- */

static bool empty(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n <= 2;
}

static const char *left_of(const struct victim *v)
{
    static char what[200];
    for (int i = 0; i < DESKS; i++) {
        const char *left = v->lives[i].stage == OPEN ? desk_trace_left(&v->lives[i].trace) : NULL;
        if (left)
            return left;
    }
    int n = desks_marked(v->tmp, NULL, NULL, 0);
    if (!n && empty(v->tmp))
        return NULL;
    snprintf(what, sizeof what, "%d processes, or files in '%s', are left", n, v->tmp);
    return what;
}

/* After the owner's death other processes clean up with a delay. */
static void assert_nothing_left(const struct victim *v, bool later, const char *killed)
{
    int64_t start = clock_ns();
    const char *left;
    while ((left = left_of(v)) && later && clock_ms_since(start) < PATIENCE * 1000)
        clock_sleep_ms(10);
    if (left)
        fail_msg("%s was killed: %s", killed, left);
}

/* At most one desktop may fail, and only if the killed process belongs to a desktop. */
static void assert_others_well(const struct victim *v, int target)
{
    static const enum desk_state seen[TARGETS] = {[SUPERVISOR] = DESK_NO_SUPERVISOR,
                                                  [SERVER] = DESK_NO_SERVER,
                                                  [WM] = DESK_NO_WM,
                                                  [PROGRAM] = DESK_NO_PROGRAM};
    int hurt = 0;
    for (int i = 0; i < DESKS; i++) {
        const struct life *l = &v->lives[i];
        if (l->stage == OPEN && l->state == DESK_OK)
            continue;
        if (target == ZYGOTE && l->stage == REFUSED && strstr(l->what, "killed"))
            continue;
        if (l->stage == OPEN && l->state != seen[target])
            fail_msg("%s was killed: a desk reports %d '%s'", targets[target], l->state, l->what);
        hurt++;
    }
    if (hurt > (target == ZYGOTE ? 0 : 1))
        fail_msg("%s was killed: %d desks failed: '%s' '%s' '%s'", targets[target], hurt, v->lives[0].what,
                 v->lives[1].what, v->lives[2].what);
}

static void end_victim(struct victim *v, int target)
{
    int status = 0;
    if (target != OWNER) {
        clock_sleep_ms(50);
        v->stop = true;
    }
    assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
    if (target != OWNER && status)
        fail_msg("%s was killed: its owner ended with status %x", targets[target], status);
    assert_nothing_left(v, target == OWNER, targets[target]);
    if (target != OWNER)
        assert_others_well(v, target);
    rmdir(v->tmp);
    munmap(v, sizeof *v);
}

static void t_any_moment(void **state)
{
    if (!program_exists("Xvfb"))
        skip();
    uint64_t random = check_seed();
    int counts[TARGETS] = {0}, targets_n = program_exists("openbox") ? TARGETS : WM;
    for (int round = 0; round < ROUNDS; round++) {
        struct victim *v[VICTIMS];
        int target[VICTIMS];
        for (int i = 0; i < VICTIMS; i++)
            v[i] = start_victim();
        for (int i = 0; i < VICTIMS; i++) { /* one at a time, at random moments */
            clock_sleep_ms(check_random(&random) * MOMENT_MS / VICTIMS);
            target[i] = (int)(check_random(&random) * targets_n);
            counts[target[i]]++;
            kill_one(v[i], target[i], &random);
        }
        for (int i = 0; i < VICTIMS; i++)
            end_victim(v[i], target[i]);
    }
    for (int i = 0; i < TARGETS; i++)
        check_note("%s: %d times", targets[i], counts[i]);
}

static void wait_all_open(const struct victim *v)
{
    for (int i = 0; i < DESKS; i++)
        while (v->lives[i].stage != OPEN)
            clock_sleep_ms(5);
}

/* A process that the dead ones just forked holds their lock until it executes its program: waits for that. */
static void wait_unlocked(const struct victim *v)
{
    glob_t found;
    char pattern[PLACE_PATH + 32];
    snprintf(pattern, sizeof pattern, "%s/holorun-desks-*/lock", v->tmp);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    int fd = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    int64_t start = clock_ns();
    int rc;
    while ((rc = flock(fd, LOCK_EX | LOCK_NB)) && clock_ms_since(start) < PATIENCE * 1000)
        clock_sleep_ms(5);
    assert_int_equal(rc, 0);
    close(fd);
    globfree(&found);
}

/* Calls desks_begin() with the victim's TMPDIR, like another process that starts. */
static void begin_beside(const struct victim *v)
{
    struct err e = ERR_INIT;
    setenv("TMPDIR", v->tmp, 1);
    assert_int_equal(desks_begin(&e), 0);
    desks_end();
    unsetenv("TMPDIR");
}

/* Kills all processes at once, and returns after they have ended and released their locks. */
static void kill_all(const pid_t *pids, int n)
{
    struct pollfd ends[2 + DESKS + 1];
    for (int i = 0; i < n; i++) { /* stopped first, so that none notices another's end */
        ends[i] = (struct pollfd){.fd = (int)syscall(SYS_pidfd_open, pids[i], 0), .events = POLLIN};
        assert_true(ends[i].fd >= 0);
        kill(pids[i], SIGSTOP);
    }
    for (int i = 0; i < n; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < n; i++) {
        assert_int_equal(poll(&ends[i], 1, PATIENCE * 1000), 1);
        close(ends[i].fd);
    }
}

/* No process is left to clean up: the next start does. */
static void t_all_at_once(void **state)
{
    if (!program_exists("Xvfb"))
        skip();
    struct victim *v = start_victim();
    wait_all_open(v);
    while (desks_marked(v->tmp, "sleep", NULL, 0) < 4 * DESKS)
        clock_sleep_ms(5);
    pid_t pids[2 + DESKS + 1];
    int n = children_named(v->pid, "holorun-", pids, DESKS + 1);
    assert_int_equal(n, DESKS + 1);
    pids[n++] = v->pid;
    kill_all(pids, n);
    assert_int_equal(waitpid(v->pid, NULL, 0), v->pid);
    assert_non_null(left_of(v));
    wait_unlocked(v);
    begin_beside(v);
    assert_nothing_left(v, false, "everything");
    rmdir(v->tmp);
    munmap(v, sizeof *v);
}

/* Another process that starts takes nothing from one that runs. */
static void t_neighbours(void **state)
{
    if (!program_exists("Xvfb"))
        skip();
    struct victim *v = start_victim();
    wait_all_open(v);
    begin_beside(v);
    v->stop = true;
    int status;
    assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < DESKS; i++)
        assert_int_equal(v->lives[i].state, DESK_OK);
    assert_nothing_left(v, false, "nobody");
    rmdir(v->tmp);
    munmap(v, sizeof *v);
}

/* Each lives for a moment, and its child has another parent, session and group. */
static void t_hopping(void **state)
{
    if (!program_exists("Xvfb"))
        skip();
    static const char hop[] =
        "echo 'setsid sh ~/hop & exit' >~/hop; for i in 1 2 3 4 5 6 7 8; do sh ~/hop & done";
    struct err e = ERR_INIT;
    assert_int_equal(desks_begin(&e), 0);
    struct desk *d =
        desk_open(&(struct desk_options){.display = "xvfb:320x240,noglx", .wm = "", .seconds = PATIENCE}, &e);
    if (!d)
        fail_msg("%s", e.text);
    struct desk_trace t = desk_trace_of(d);
    assert_int_equal(desk_run(d, hop, NULL, PATIENCE, NULL, NULL, NULL, &e), 0);
    int64_t waited = clock_ns();
    while (!desk_processes(d, "hop", &e) && clock_ms_since(waited) < PATIENCE * 1000)
        ;
    int64_t start = clock_ns();
    desk_close(d);
    check_note("ended in %.1f s", clock_ms_since(start) / 1000);
    const char *left = desk_trace_left(&t);
    if (left)
        fail_msg("%s", left);
    desks_end();
}

static const struct CMUnitTest tests[] = {
    CLAIM("any desktop process killed at 20 random moments: nothing is left, other desktops are well",
          t_any_moment),
    CLAIM("leftovers of killing all processes at once are removed at the next start", t_all_at_once),
    CLAIM("a starting process takes nothing from running ones", t_neighbours),
    CLAIM("detached processes that keep forking are ended", t_hopping),
};

CHECK_MAIN()
