/* t_base.c - tests of src/base. */
#include "check.h"
#include "place.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/image.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/regex.h"
#include "base/utf8.h"
#include "capacity/memory.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

enum { SMALL = 16 };

static void t_err(void **state)
{
    struct err e = ERR_INIT;
    assert_int_equal(err_set(&e, ERR_MODEL, "tensor '%s' is\nmissing", "a\tb"), -1);
    assert_int_equal(e.kind, ERR_MODEL);
    assert_string_equal(e.text, "tensor 'a?b' is?missing");
    assert_int_equal(err_prefix(&e, "shard %d", 3), -1);
    assert_string_equal(e.text, "shard 3: tensor 'a?b' is?missing");
    char *longer = malloc(2000);
    memset(longer, 'x', 1999);
    longer[1999] = 0;
    err_set(&e, ERR_ENV, "%s", longer);
    assert_int_equal(strlen(e.text), ERR_TEXT - 1);
    assert_string_equal(e.text + ERR_TEXT - 4, "...");
    free(longer);
    assert_int_equal(err_set(NULL, ERR_ENV, "ignored"), -1);
}

static void t_buf(void **state)
{
    struct buf b;
    buf_init(&b, 100);
    for (int i = 0; i < 10; i++)
        assert_int_equal(buf_printf(&b, "%08d--", i), 0);
    assert_int_equal(b.len, 100);
    assert_int_equal(buf_putc(&b, 'x'), -1);
    assert_true(b.full);
    assert_int_equal(b.len, 100);
    assert_int_equal(strlen(b.data), 100);
    buf_clear(&b);
    const char raw[] = "a\"\\\n\x01\xc3\xa9\xff\xf0\x9f\x99\x82";
    buf_put_json(&b, raw, sizeof raw - 1);
    assert_string_equal(b.data, "\"a\\\"\\\\\\n\\u0001\xc3\xa9\xef\xbf\xbd\xf0\x9f\x99\x82\"");
    buf_free(&b);
}

static void t_utf8(void **state)
{
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        char s[4];
        int n = utf8_encode(cp, s);
        bool valid = cp <= 0x10ffff && !(cp >= 0xd800 && cp <= 0xdfff);
        assert_int_equal(n > 0, valid);
        uint32_t back = 0;
        if (valid) {
            assert_int_equal(utf8_decode(s, (size_t)n, &back), n);
            assert_int_equal(back, cp);
            if (n > 1)
                assert_int_equal(utf8_decode(s, (size_t)n - 1, &back), -1);
        } else if (cp < 0xe000) {
            const char bare[] = {(char)(0xe0 | cp >> 12), (char)(0x80 | (cp >> 6 & 63)),
                                 (char)(0x80 | (cp & 63))};
            assert_int_equal(utf8_decode(bare, 3, &back), -1);
        }
    }
    uint32_t cp;
    static const char *const bad[] = {"\xc0\x80",         "\xe0\x80\x80", "\xc3\xff",
                                      "\xf4\x90\x80\x80", "\x80",         "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &cp), -1);
    assert_int_equal(utf8_valid_prefix("ab\xc3\xa9\xc3", 5), 4);
    assert_int_equal(utf8_complete("ab\xc3\xa9\xc3", 5), 4);
    assert_int_equal(utf8_complete("\xff"
                                   "a\xe6\x9d",
                                   4),
                     2); /* after an invalid byte */
    assert_int_equal(utf8_complete("\xf0\x9f\x99", 3), 0);
    assert_int_equal(utf8_complete("\xf0\x9f\x99\x82", 4), 4);
    assert_int_equal(utf8_complete("\xe6\x9d\xb1", 3), 3);
    assert_int_equal(utf8_complete("a\xe0\x80", 3), 3); /* cannot become a valid character */
    assert_int_equal(utf8_complete("a\xed\xa0", 3), 3);
    assert_int_equal(utf8_complete("a\xc0", 2), 2);
    assert_int_equal(utf8_complete("\x80\x80\x80\x80", 4), 4);
    assert_int_equal(utf8_complete("", 0), 0);
}

/* Reads the output of utf8_print_result to `fd` from `from`. */
static void result(char *out, size_t size, int fd, int from, const char *text)
{
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    utf8_print_result(f, text, strlen(text));
    fflush(f);
    size_t n = 0; /* a terminal may split it */
    struct pollfd more = {.fd = from, .events = POLLIN};
    while (n + 1 < size && poll(&more, 1, n ? 50 : 5000) == 1) {
        ssize_t got = read(from, out + n, size - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
    }
    assert_true(n > 0);
    out[n] = 0;
    fclose(f);
    close(from);
}

static void t_terminal(void **state)
{
    static const char hostile[] = "done\033]52;c;cm0=\a\033[2J \xc2\x9b"
                                  "31m\x9b \xe2\x80\xaegpj\r\tna\xc3\xafve\nyes";
    static const char clean[] = "done?]52;c;cm0=??[2J ?31m? ?gpj?\tna\xc3\xafve\nyes\n";
    char got[256], line[sizeof hostile];
    int at = posix_openpt(O_RDWR | O_NOCTTY), pipes[2];
    assert_true(at >= 0 && grantpt(at) == 0 && unlockpt(at) == 0 && pipe(pipes) == 0);
    int terminal = open(ptsname(at), O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    struct termios t;
    assert_int_equal(tcgetattr(terminal, &t), 0);
    cfmakeraw(&t);
    assert_int_equal(tcsetattr(terminal, TCSANOW, &t), 0);
    result(got, sizeof got, terminal, at, hostile);
    assert_string_equal(got, clean);
    result(got, sizeof got, pipes[1], pipes[0], hostile);
    assert_memory_equal(got, hostile, sizeof hostile - 1);
    assert_string_equal(got + sizeof hostile - 1, "\n");
    memcpy(line, hostile, sizeof line);
    utf8_make_printable(line);
    assert_string_equal(line, "done?]52;c;cm0=??[2J ?31m? ?gpj??na\xc3\xafve?yes");
    struct err e = ERR_INIT;
    err_set(&e, ERR_ENV, "the server says: %s",
            "\xc2\x9b"
            "2J\033c\xff!");
    assert_string_equal(e.text, "the server says: ?2J?c?!");
}

struct count {
    int64_t *hits;
};

static void count_range(void *arg, int64_t begin, int64_t end, int thread)
{
    struct count *c = arg;
    for (int64_t i = begin; i < end; i++)
        __atomic_fetch_add(&c->hits[i], 1, __ATOMIC_RELAXED);
}

static void t_pool(void **state)
{
    for (int threads = 1; threads <= 5; threads++) {
        struct pool *p = pool_new(threads);
        assert_int_equal(pool_threads(p), threads);
        uint64_t rng = check_seed();
        for (int round = 0; round < 2000; round++) {
            int64_t n = (int64_t)(check_random(&rng) * 50), grain = (int64_t)(check_random(&rng) * 8);
            int64_t hits[50] = {0};
            if (round % 500 == 0)
                usleep(3000); /* lets workers go to sleep */
            pool_for(p, n, grain, count_range, &(struct count){hits});
            for (int64_t i = 0; i < 50; i++)
                assert_int_equal(hits[i], i < n);
        }
        pool_free(p);
    }
    int64_t hits[3] = {0};
    pool_for(NULL, 3, 1, count_range, &(struct count){hits});
    assert_int_equal(hits[2], 1);
}

static void random_image(struct image *im, int w, int h)
{
    uint64_t rng = check_seed();
    assert_int_equal(image_alloc(im, w, h, NULL), 0);
    for (int i = 0; i < w * h * 3; i++)
        im->rgb[i] = (uint8_t)(check_random(&rng) * 256);
}

static void t_png(void **state)
{
    char dir[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(dir)));
    char *path = xasprintf("%s/a.png", dir);
    struct image a, b = {0};
    struct err e = ERR_INIT;
    random_image(&a, 37, 21);
    assert_int_equal(image_write_png(&a, path, &e), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(image_read_png(&b, path, &e), 0);
    assert_true(image_equal(&a, &b));
    assert_int_equal(image_hash(&a), image_hash(&b));
    b.rgb[100] ^= 1;
    assert_int_not_equal(image_hash(&a), image_hash(&b));
    image_free(&b);

    char *data;
    size_t len;
    assert_int_equal(file_read(path, 1 << 20, &data, &len, &e), 0);
    for (size_t cut = 0; cut < len; cut += 7) { /* every truncation is refused and leaves nothing behind */
        assert_int_equal(image_parse_png(&b, data, cut, &e), -1);
        assert_null(b.rgb);
    }
    free(data);
    assert_int_equal(image_alloc(&b, 20000, 1, &e), -1);
    assert_int_equal(image_write_png(&a, "/dev/full/x.png", &e), -1);
    unlink(path);
    rmdir(dir);
    free(path);
    image_free(&a);
}

static void t_tiles(void **state)
{
    struct image a, b;
    random_image(&a, 100, 70); /* 4 x 3 tiles, partial ones at the edges */
    assert_int_equal(image_copy(&b, &a, NULL), 0);
    assert_true(image_tiles_changed(&a, &b, 0) == 0);
    b.rgb[0] ^= 0x80; /* one channel of one pixel in a full tile */
    assert_true(image_tiles_changed(&a, &b, 0) > 0.08 && image_tiles_changed(&a, &b, 0) < 0.09);
    assert_true(image_tiles_changed(&a, &b, 3) == 0);
    image_free(&b);
    random_image(&b, 70, 100);
    assert_true(image_tiles_changed(&a, &b, 3) == 1);
    image_free(&a);
    image_free(&b);
}

static void t_file(void **state)
{
    char dir[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(dir)));
    struct err e = ERR_INIT;
    char *path = xasprintf("%s/deep/er/file", dir), *parent = xasprintf("%s/deep/er", dir);
    assert_int_equal(dir_make(parent, &e), 0);
    assert_int_equal(dir_make(parent, &e), 0);
    assert_int_equal(file_write(path, "hello", 5, &e), 0);
    char *data;
    size_t len;
    assert_int_equal(file_read(path, 5, &data, &len, &e), 0);
    assert_string_equal(data, "hello");
    free(data);
    assert_int_equal(file_read(path, 4, &data, &len, &e), -1);
    assert_non_null(strstr(e.text, "larger than 4 bytes"));
    assert_int_equal(file_read(parent, 100, &data, &len, &e), -1);
    assert_int_equal(dir_make(path, &e), -1);
    struct file_map m;
    assert_int_equal(file_map(&m, path, &e), 0);
    assert_int_equal(m.len, 5);
    file_unmap(&m);
    assert_int_equal(file_map(&m, parent, &e), -1);
    setenv("XDG_STATE_HOME", parent, 1);
    char *place = file_place(PLACE_STATE, &e);
    assert_non_null(place);
    assert_true(file_exists(place));
    rmdir(place);
    free(place);
    setenv("XDG_STATE_HOME", "/proc/none", 1);
    assert_null(file_place(PLACE_STATE, &e));
    assert_non_null(strstr(e.text, "XDG_STATE_HOME names another directory"));
    setenv("XDG_STATE_HOME", "relative", 1);
    setenv("HOME", dir, 1);
    place = file_place(PLACE_STATE, &e);
    assert_true(place && !strncmp(place, dir, strlen(dir)));
    free(place);
    free(path);
    free(parent);
}

/* Returns the inode of a file; 0: it does not exist. */
static ino_t number_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_ino;
}

/* Another user has created files with the names that a writer could use in a shared directory, and keeps
 * them open. */
static void t_temporary(void **state)
{
    char dir[PLACE_PATH], *taken;
    struct err e = ERR_INIT;
    assert_non_null(mkdtemp(place_template(dir)));
    char *path = xasprintf("%s/token", dir);
    taken = xasprintf("%s.%d.tmp", path, (int)getpid());
    int theirs = open(taken, O_RDWR | O_CREAT, 0666);
    assert_true(theirs >= 0);
    ino_t before = number_of(taken);
    assert_int_equal(file_write(path, "secret", 6, &e), 0);
    struct stat st;
    assert_true(fstat(theirs, &st) == 0 && st.st_size == 0);
    assert_true(number_of(path) != before && number_of(taken) == before);
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    char *one, *other;
    int a = file_temp(path, &one, &e), b = file_temp(path, &other, &e);
    assert_true(a >= 0 && b >= 0 && strcmp(one, other) != 0);
    close(a);
    close(b);
    close(theirs);
    free(one);
    free(other);
    free(taken);
    free(path);
}

/* Directories that are not private, or replaced by files, are not used for locks and tokens. */
static void t_runtime(void **state)
{
    static const char *const cases[] = {
        "chmod 755 .",
        "chmod 777 .",
        "mkdir -m 755 holorun",
        "mkdir -m 777 holorun",
        "mkdir -m 700 other; ln -s other holorun",
        "touch holorun",
        "chown 65534 .",
        "mkdir -m 700 holorun; chown 65534 holorun",
    };
    char dir[PLACE_PATH], common[64];
    struct err e = ERR_INIT;
    snprintf(common, sizeof common, "/tmp/holorun-%u", (unsigned)getuid());
    char *before = getenv("XDG_RUNTIME_DIR") ? xstrdup(getenv("XDG_RUNTIME_DIR")) : NULL;
    for (int i = -1; i < (int)(sizeof cases / sizeof *cases); i++) {
        assert_non_null(mkdtemp(place_template(dir)));
        if (i >= 0 && strstr(cases[i], "chown") && getuid() != 0)
            continue;
        char *shell = xasprintf("cd '%s' && { %s; }", dir, i < 0 ? "true" : cases[i]);
        assert_int_equal(system(shell), 0);
        setenv("XDG_RUNTIME_DIR", dir, 1);
        char *place = file_place(PLACE_RUNTIME, &e), *own = xasprintf("%s/holorun", dir);
        if (!place || strcmp(place, i < 0 ? own : common) != 0)
            fail_msg("%s: %s", i < 0 ? "a private folder" : cases[i], place ? place : e.text);
        free(shell);
        free(place);
        free(own);
    }
    if (before)
        setenv("XDG_RUNTIME_DIR", before, 1);
    else
        unsetenv("XDG_RUNTIME_DIR");
    free(before);
}

static void t_hidden(void **state)
{
    static const char *const rows[][2] = {
        {"a\u202enp.exe", "a<U+202E>np.exe"},
        {"\x1b[2J", "<U+001B>[2J"},
        {"one\r\ntwo\tthree", "one\ntwo\tthree"},
        {"\U000e0041\U000e0042", "<U+E0041><U+E0042>"},
        {"\u200bx\ufeff", "<U+200B>x<U+FEFF>"},
        {"\U0001f469\u200d\U0001f52c na\u00efve \u0645\u06cc\u200c\u062e", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *list = json_pack("{s:[s]}", "a", rows[i][0]);
        json_make_visible(list);
        const char *is = json_string_value(json_array_get(json_object_get(list, "a"), 0));
        assert_string_equal(is, rows[i][1] ? rows[i][1] : rows[i][0]);
        json_decref(list);
        struct buf b; /* in a file the characters are escaped */
        buf_init(&b, 1000);
        buf_put_json(&b, rows[i][0], strlen(rows[i][0]));
        assert_true(!strstr(b.data, "\u202e") && !strstr(b.data, "\U000e0041"));
        json_t *back = json_loads(b.data, JSON_DECODE_ANY, NULL);
        assert_string_equal(json_string_value(back), rows[i][0]);
        json_decref(back);
        json_t *text = json_string(rows[i][0]);
        char *line = json_line(text, 0);
        assert_true(!strstr(line, "\u202e") && !strstr(line, "\U000e0041"));
        back = json_loads(line, JSON_DECODE_ANY, NULL);
        assert_string_equal(json_string_value(back), rows[i][0]);
        json_decref(back);
        json_decref(text);
        free(line);
        buf_free(&b);
    }
}

static void t_clock(void **state)
{
    char utc[20], iso[28];
    clock_utc(utc);
    clock_iso(iso);
    assert_int_equal(strlen(utc), 16);
    assert_int_equal(strlen(iso), 24);
    int64_t t = clock_ns();
    clock_sleep_ms(12.5);
    assert_true(clock_ms_since(t) >= 12.5);
}

static void t_regex(void **state)
{
    struct err e = ERR_INIT;
    assert_null(regex_new("(abc", false, &e));
    assert_int_equal(e.kind, ERR_USAGE);
    assert_non_null(strstr(e.text, "character 5 of '(abc'"));
    char *longer = xcalloc(REGEX_MAX + 2, 1);
    memset(longer, 'a', REGEX_MAX + 1);
    assert_null(regex_new(longer, false, &e));
    free(longer);
    struct regex *r = regex_new("^B\xc3\xbcros?$", false, &e), *any = regex_new("save", true, &e);
    assert_string_equal(regex_pattern(any), "save");
    assert_int_equal(regex_find(r, "B\xc3\xbcro", 5), 1);
    assert_int_equal(regex_find(r, "b\xc3\xbcro", 5), 0);
    assert_int_equal(regex_find(any, "\xff\xfe a.txt - SAVED?", 17), 1); /* matches after invalid bytes */
    assert_int_equal(regex_find(any, "sa\0ve", 6), 0);
    regex_free(any);
    regex_free(r);
    r = regex_new("^(a+)+$", false, &e); /* takes exponential time */
    assert_int_equal(regex_find(r, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 56), -1);
    regex_free(r);
    regex_free(NULL);
}

/* Allocates blocks of the size of screenshots, between small permanent ones, like a thread of a suite. */
static void *churn(void *arg)
{
    char **small = arg;
    free(malloc(8 << 20)); /* would raise malloc's threshold for mmap */
    for (int i = 0; i < SMALL; i++) {
        char *large = malloc(3 << 20);
        memset(large, i, 3 << 20);
        small[i] = malloc(100);
        small[i][0] = large[i];
        free(large);
    }
    return NULL;
}

static void t_large_blocks(void **state)
{
    char *small[2 * SMALL];
    pthread_t threads[2];
    if (!memory_heap()) /* another malloc, such as a sanitizer's */
        skip();
    memory_return_large();
    size_t before = mallinfo2().fordblks;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, small + i * SMALL), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    int64_t kept = (int64_t)mallinfo2().fordblks - (int64_t)before;
    check_note("%lld KiB are still allocated after %d blocks of 3 MiB", (long long)kept / 1024, 2 * SMALL);
    assert_true(kept < 1 << 20);
    for (int i = 0; i < 2 * SMALL; i++)
        free(small[i]);
}

static int print_exe_dir(const char *program)
{
    autofree char *dir = unlink(program) ? NULL : file_exe_dir();
    return !dir || printf("%s", dir) < 0;
}

/* Runs a copy of this program that deletes its own file, as an upgrade does. */
static void t_exe_dir(void **state)
{
    char dir[PLACE_PATH], want[PATH_MAX], have[PATH_MAX] = "";
    assert_true(mkdtemp(place_template(dir)) && realpath(dir, want));
    autofree char *exe = file_exe_dir();
    autofree char *line =
        xasprintf("cp /proc/%d/exe %s/t && LD_LIBRARY_PATH='%s/..' %s/t --exe-dir", getpid(), dir, exe, dir);
    FILE *f = popen(line, "r");
    assert_true(fgets(have, sizeof have, f) && !pclose(f));
    assert_string_equal(have, want);
}

static const struct CMUnitTest tests[] = {
    CLAIM("the program's folder is known after its file was deleted", t_exe_dir),
    CLAIM("large blocks that are freed go back to the system, whichever thread had them", t_large_blocks),
    CLAIM("a pattern is found or not; errors and timeouts in it are reported", t_regex),
    CLAIM("an error is one printable line, with a prefix, and shortened if necessary", t_err),
    CLAIM("a buffer stops at its limit and escapes any bytes to valid JSON", t_buf),
    CLAIM("a terminal gets no control sequence of a model or a server, a pipe gets every byte", t_terminal),
    CLAIM("every Unicode scalar survives UTF-8, everything else is refused", t_utf8),
    CLAIM("a parallel loop visits each index once, for 1 to 5 threads", t_pool),
    CLAIM("a PNG is restored bit for bit, has mode 0600, and every truncation is refused", t_png),
    CLAIM("changed tiles are counted, partial tiles included", t_tiles),
    CLAIM("files and directories have limits, parents, modes and XDG rules", t_file),
    CLAIM("a temporary file is new and this user's alone", t_temporary),
    CLAIM("a folder that is not private is not used for locks and tokens", t_runtime),
    CLAIM("hidden characters are escaped in files and spelt out for hosts", t_hidden),
    CLAIM("clocks have fixed formats and sleep long enough", t_clock),
};

CHECK_MAIN(if (argc == 2 && !strcmp(argv[1], "--exe-dir")) return print_exe_dir(argv[0]))
