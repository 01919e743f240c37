/* t_quantized_cache.c - tests of the file that stores weights quantized when a model is opened. */
#include "check.h"
#include "place.h"
#include "quantized.h"

#include "base/file.h"
#include "capacity/plan.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the file -------------------------------------------------------------------------------- */

static char home[PLACE_PATH];

static void new_home(void)
{
    assert_non_null(mkdtemp(place_template(home)));
    setenv("XDG_CACHE_HOME", home, 1);
}

/* Returns the number of files in the cache directory; *path is the last one. */
static int kept(char **path)
{
    char *folder = xasprintf("%s/holorun/weights", home);
    DIR *d = opendir(folder);
    int n = 0;
    for (const struct dirent *x; d && (x = readdir(d));)
        if (x->d_name[0] != '.') {
            n++;
            if (path) {
                free(*path);
                *path = xasprintf("%s/%s", folder, x->d_name);
            }
        }
    if (d)
        closedir(d);
    free(folder);
    return n;
}

static void count_progress(void *arg, double fraction, const char *what)
{
    ++*(int *)arg;
}

static struct timespec written(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mtim;
}

/* Opens the model with int4 and a cache and computes logits; returns whether the file at `path` was
 * replaced. */
static bool opened(const struct tiny *t, const char *path, float out[QUANTIZED_VOCAB])
{
    struct stat before = {0}, after = {0};
    bool was = path && stat(path, &before) == 0;
    quantized_look(quantized_open(t, NULL, false, WEIGHTS_INT4, true), out);
    return !was || stat(path, &after) || before.st_ino != after.st_ino ||
           before.st_mtim.tv_nsec != after.st_mtim.tv_nsec || before.st_mtim.tv_sec != after.st_mtim.tv_sec;
}

/* Writes a model into a new home; out: its logits with int4 and no cache. */
static void begin(struct tiny *t, float out[QUANTIZED_VOCAB])
{
    new_home();
    tiny_init(t, 5);
    tiny_write(t);
    quantized_look(quantized_open(t, NULL, false, WEIGHTS_INT4, false), out);
}

static void t_cache(void **state)
{
    struct tiny t;
    float want[QUANTIZED_VOCAB], have[QUANTIZED_VOCAB];
    char *path = NULL;
    begin(&t, want);
    assert_int_equal(kept(NULL), 0);
    opened(&t, NULL, have);
    assert_memory_equal(have, want, sizeof want);
    assert_int_equal(kept(&path), 1);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_false(opened(&t, path, have)); /* mapped */
    assert_memory_equal(have, want, sizeof want);
    quantized_look(quantized_open(&t, NULL, false, WEIGHTS_INT8, true), have); /* int8 has its own file */
    assert_int_equal(kept(NULL), 2);
    /* another model in the same directory is not confused with this one */
    struct tiny u;
    tiny_init(&u, 6);
    strcpy(u.dir, t.dir);
    tiny_write(&u);
    u.dir[0] = 0;
    tiny_free(&u);
    assert_true(opened(&t, path, have));
    assert_true(tiny_distance(want, have, QUANTIZED_VOCAB) > 0.01);
    assert_int_equal(kept(NULL), 2);
    tiny_write(&t); /* equal content with a new modification time */
    assert_true(opened(&t, path, have));
    assert_memory_equal(have, want, sizeof want);
    free(path);
    tiny_free(&t);
}

/* The second start uses the content of the file, which the test has changed. */
static void t_mapped(void **state)
{
    struct tiny t;
    float want[QUANTIZED_VOCAB], have[QUANTIZED_VOCAB];
    int steps[2] = {0};
    char *path = NULL;
    new_home();
    tiny_init(&t, 5);
    tiny_write(&t);
    opened(&t, NULL, want);
    assert_int_equal(kept(&path), 1);
    struct timespec first = written(path);
    for (int i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        struct engine_options o = {.dir = t.dir,
                                   .threads = 1,
                                   .weights = WEIGHTS_INT4,
                                   .cache = true,
                                   .progress = count_progress,
                                   .progress_arg = &steps[i]};
        struct engine *g = engine_open(&o, &e);
        assert_non_null(g);
        char line[512];
        int maps = 0;
        FILE *f = fopen("/proc/self/maps", "r");
        while (fgets(line, sizeof line, f))
            maps += strstr(line, path) != NULL;
        fclose(f);
        assert_true(maps >= 1);
        quantized_look(g, have);
        assert_memory_equal(have, want, sizeof want);
    }
    struct timespec last = written(path);
    assert_true(first.tv_sec == last.tv_sec && first.tv_nsec == last.tv_nsec);
    assert_true(steps[0] > 10);
    free(path);
    tiny_free(&t);
}

static void t_damaged(void **state)
{
    uint64_t rng = check_seed();
    struct tiny t;
    float want[QUANTIZED_VOCAB], have[QUANTIZED_VOCAB];
    char *path = NULL, *data;
    size_t len;
    new_home();
    tiny_init(&t, 5);
    tiny_write(&t);
    opened(&t, NULL, want);
    assert_int_equal(kept(&path), 1);
    assert_int_equal(file_read(path, 1 << 26, &data, &len, NULL), 0);
    for (int round = 0; round < 12; round++) {
        size_t at = (size_t)(check_random(&rng) * (double)len), cut = 0;
        if (round < 3)
            at = (size_t)(check_random(&rng) * 64); /* in the header */
        else if (round == 3)
            cut = 1;
        else if (round == 4)
            cut = len;
        else if (round == 5)
            cut = len - 4096;
        char old = data[at];
        data[at] ^= 0x10;
        assert_int_equal(file_write(path, data, len - cut, NULL), 0);
        data[at] = old;
        bool rebuilt = opened(&t, path, have), inside = at < 64 || cut;
        assert_true(rebuilt || !inside); /* a flipped bit in padding is not detected */
        assert_memory_equal(have, want, sizeof want);
        assert_false(opened(&t, path, have));
    }
    free(data);
    free(path);
    tiny_free(&t);
}

/* Repeats the test in a child process with a file size limit, or with a plain file instead of the cache
 * directory. */
static void alone(const struct tiny *t, rlim_t limit, const float *want)
{
    pid_t pid = fork();
    if (pid == 0) {
        float have[QUANTIZED_VOCAB];
        struct rlimit r = {limit, limit};
        signal(SIGXFSZ, SIG_IGN);
        if (limit)
            setrlimit(RLIMIT_FSIZE, &r);
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        quantized_look(quantized_open(t, NULL, false, WEIGHTS_INT4, true), have);
        _exit(memcmp(have, want, sizeof have) ? 1 : 0);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void t_unwritable(void **state)
{
    struct tiny t;
    float want[QUANTIZED_VOCAB];
    begin(&t, want);
    for (rlim_t limit = 10; limit < 40000; limit = limit * 7 / 2) { /* the disk is full at some point */
        alone(&t, limit, want);
        assert_int_equal(kept(NULL), 0);
    }
    char *weights = xasprintf("%s/holorun/weights", home);
    assert_int_equal(rmdir(weights), 0);
    assert_int_equal(file_write(weights, "", 0, NULL), 0); /* prevents creating the directory */
    alone(&t, 0, want);
    unlink(weights);
    assert_int_equal(mkdir(weights, 0500), 0);
    if (getuid()) { /* root can write anywhere */
        alone(&t, 0, want);
        assert_int_equal(kept(NULL), 0);
    }
    free(weights);
    tiny_free(&t);
}

static void t_together(void **state)
{
    struct tiny t;
    float want[QUANTIZED_VOCAB], have[QUANTIZED_VOCAB];
    char *path = NULL;
    begin(&t, want);
    pid_t pids[4];
    for (int i = 0; i < 4; i++)
        if ((pids[i] = fork()) == 0) {
            quantized_look(quantized_open(&t, NULL, false, WEIGHTS_INT4, true), have);
            _exit(memcmp(have, want, sizeof have) ? 1 : 0);
        }
    for (int i = 0; i < 4; i++) {
        int status;
        waitpid(pids[i], &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(kept(&path), 1); /* and no temporary files */
    assert_false(opened(&t, path, have));
    assert_memory_equal(have, want, sizeof want);
    free(path);
    tiny_free(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("quantized weights are stored in a private file, which belongs to one state of one model", t_cache),
    CLAIM("the second start maps the file and writes nothing", t_mapped),
    CLAIM("a damaged or truncated file is detected and rewritten", t_damaged),
    CLAIM("if no file can be written the model works without it", t_unwritable),
    CLAIM("several processes at once leave one complete file", t_together),
};

CHECK_MAIN()
