/* t_injections.c - makes one system call or allocation fail at a random point of a random command. Nothing
 * may stay pressed, no file may be lost, and the program must report an error instead of crashing.
 *
 * `make test` tries a few, HOLORUN_INJECTIONS=300 (`make injections`) that many. HOLORUN_INJECT_CASE, _KIND
 * and _AT repeat one.
 */
#include "check.h"
#include "driven.h"
#include "inject/inject.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/sha256.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define POCKET "assets/pocket/model"
#define ACTING TYPE("ab\xce\xa9") CTRL_DRAG SHIFT_DOWN CLICK(300, 300) TYPE("Cd") WAIT(0) ANSWER("Done.")

enum { FEW = 10, FEW_CASES = 5, WORDS_MOST = 16, RELEASED_MS = 4000, CASES_MOST = 24 };

static const char *const kinds[] = {"memory", "files", "connections", "processes", "display"};

/* %i: input folder, %o: new output folder. */
static const struct {
    const char *name;
    const char *words[WORDS_MOST];
    bool same; /* with exit code 0 the output equals that of an undisturbed run */
} cases[] = {
    {"version", {"version"}, true},
    {"help", {"help", "run"}, true},
    {"policy", {"policy", "%i/policy.yaml"}, true},
    {"inspect", {"inspect", POCKET}, true},
    {"plan", {"plan", POCKET, "--memory", "8G", "--bandwidth", "50", "--flops", "1"}, false},
    {"ask", {"ask", "What is in To?", "%i/screen.png", "--max-tokens", "8"}, true},
    {"ground", {"ground", "%i/screen.png", "Search"}, true},
    {"report", {"report", "%i/run", "-o", "%o/page.html"}, false},
    {"diff", {"diff", "%i/run", "%i/run", "--html", "%o/both.html"}, true},
    {"export osworld", {"export", "-f", "osworld", "%i/run", "-o", "%o/x"}, false},
    {"qa --list", {"qa", "%i/suite.yaml", "--list"}, true},
    {"stop", {"stop", "--list"}, true},
    {"doctor", {"doctor"}, false},
    {"run",
     {"run", "Type", "--fake", "%i/script", "--runs", "%o", "--settle-quiet", "30", "--settle-min", "1"},
     false},
    {"step",
     {"run", "Type", "--fake", "%i/script", "--runs", "%o", "--settle-quiet", "30", "--step=script:%i/steps"},
     false},
    {"replay",
     {"replay", "%i/run", "--actions", "--runs", "%o", "--threshold", "1", "--settle-quiet", "30"},
     false},
    {"resume", {"resume", "%i/cut", "--fake", "%i/script", "--runs", "%o", "--settle-quiet", "30"}, false},
    {"qa", {"qa", "%i/suite.yaml", "--fake", "%i/script", "--out", "%o/q", "--quiet"}, false},
};
enum { CASES = sizeof cases / sizeof *cases };

struct trial {
    struct stage t;
    struct injection *shared;
    char file[120], input[120], before[65];
    char *said[CASES]; /* output of an undisturbed run; NULL: not run yet */
    struct injection counted[CASES];
    int n, wrong, not_reached, tried[CASES][INJECTION_KINDS], went_on[CASES];
};

/* ---- input --------------------------------------------------------------------------------------- */

/* Adds all files below a folder to a digest. */
static void add_folder(struct sha256 *sum, const char *dir)
{
    struct dirent **list;
    int n = scandir(dir, &list, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char *path = xasprintf("%s/%s", dir, list[i]->d_name), *data;
        struct stat st;
        size_t len;
        if (list[i]->d_name[0] != '.' && stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
            add_folder(sum, path);
        } else if (list[i]->d_name[0] != '.') {
            sha256_add(sum, path, strlen(path) + 1);
            if (file_read(path, 64 << 20, &data, &len, NULL) == 0) {
                sha256_add(sum, data, len);
                free(data);
            }
        }
        free(path);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

static void digest(const char *dir, char hex[65])
{
    struct sha256 sum;
    sha256_begin(&sum);
    add_folder(&sum, dir);
    sha256_end(&sum, hex);
}

static void put(const struct trial *x, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", x->input, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    free(path);
}

static void shell(const char *format, const char *a, const char *b)
{
    char *line = xasprintf(format, a, b);
    assert_int_equal(system(line), 0);
    free(line);
}

/* Makes a finished run, a truncated one, an image, rules, a suite and scripts. */
static void make_input(struct trial *x)
{
    OUTCOME(o);
    struct record r;
    snprintf(x->input, sizeof x->input, "%s/input", x->t.x.dir);
    assert_int_equal(mkdir(x->input, 0700), 0);
    driven_run(&x->t, ACTING, NULL, &o);
    if (o.code)
        fail_msg("the run to repeat: exit code %d: %s", o.code, o.err);
    driven_read(&x->t, &r);
    shell("cp -r '%s' '%s/run'", r.dir, x->input);
    shell("cp -r '%s' '%s/cut'", r.dir, x->input);
    shell("cd '%s/cut' && head -n 20 events.jsonl >e && mv e events.jsonl && "
          "cp ../run/frames/000000.png ../screen.png%s",
          x->input, "");
    record_free(&r);
    put(x, "script", ACTING);
    put(x, "steps", "run\nrun\nrun\nrun\nrun\nrun\nrun\nrun\n");
    put(x, "policy.yaml", "rules:\n  - deny: mine\n    keys: ctrl+q\n");
    put(x, "suite.yaml",
        "suite: { name: x, display: \"xvfb:320x240\" }\ntests:\n  - id: a\n    task: Type.\n"
        "    checks: [{ kind: shell, run: \"true\" }]\n");
    digest(x->input, x->before);
}

static void open_trial(struct trial *x)
{
    *x = (struct trial){0};
    driven_open(&x->t);
    make_input(x);
    snprintf(x->file, sizeof x->file, "%s/injection", x->t.x.dir);
    int fd = open(x->file, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(ftruncate(fd, sizeof *x->shared), 0);
    x->shared = mmap(NULL, sizeof *x->shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_ptr_not_equal(x->shared, MAP_FAILED);
}

static void close_trial(struct trial *x)
{
    for (int i = 0; i < CASES; i++)
        free(x->said[i]);
    munmap(x->shared, sizeof *x->shared);
    stage_close(&x->t);
}

/* ---- one trial ----------------------------------------------------------------------------------- */

static void run_case(struct trial *x, int c, enum injection_kind kind, unsigned long at, struct outcome *o)
{
    const char *words[WORDS_MOST + 1] = {NULL};
    char *owned[WORDS_MOST] = {NULL}, *out = xvfb_place(&x->t.x, "written");
    shell("rm -rf '%s' && mkdir '%s'", out, out);
    for (int i = 0; cases[c].words[i]; i++) {
        const char *w = cases[c].words[i], *mark = strstr(w, "%i"), *place = x->input;
        if (!mark && (mark = strstr(w, "%o")))
            place = out;
        owned[i] = mark ? xasprintf("%.*s%s%s", (int)(mark - w), w, place, mark + 2) : xstrdup(w);
        words[i] = owned[i];
    }
    *x->shared = (struct injection){.kind = kind, .at = at};
    char *library = realpath(helper_path("inject.so"), NULL);
    setenv("LD_PRELOAD", library, 1);
    setenv("HOLORUN_INJECT", x->file, 1);
    pid_t pid = program_start(&x->t.x, words);
    unsetenv("LD_PRELOAD");
    unsetenv("HOLORUN_INJECT");
    program_finish(&x->t.x, pid, o);
    for (int i = 0; i < WORDS_MOST; i++)
        free(owned[i]);
    free(library);
    free(out);
}

/* Returns whether all lines of the written records are complete, except for a torn last one. */
static bool records_are_whole(const struct trial *x)
{
    char *out = xvfb_place(&x->t.x, "written");
    DIR *d = opendir(out);
    bool whole = true;
    for (struct dirent *f; d && (f = readdir(d));) {
        char *dir = xasprintf("%s/%s", out, f->d_name), *events = xasprintf("%s/events.jsonl", dir),
             *run = xasprintf("%s/run.json", dir); /* without it the folder is an export */
        struct record r;
        if (f->d_name[0] != '.' && file_exists(run) && file_exists(events) &&
            record_open(&r, dir, NULL) == 0) {
            whole = whole && !r.skipped;
            record_free(&r);
        }
        free(events);
        free(run);
        free(dir);
    }
    if (d)
        closedir(d);
    free(out);
    return whole;
}

/* Returns NULL or the first problem found afterwards. */
static const char *judge(const struct trial *x, int c, const struct outcome *o)
{
    int64_t start = clock_ns();
    char now[65];
    if (o->code < 0)
        return "ended by a signal, or not at all";
    if (strstr(o->err, "bug at"))
        return "found a bug in itself";
    while ((pressed(x->t.other) || borrowed_keycodes(x->t.other)) && clock_ms_since(start) < RELEASED_MS)
        clock_sleep_ms(20);
    if (pressed(x->t.other))
        return "a key or button is down";
    if (borrowed_keycodes(x->t.other))
        return "a keycode is borrowed";
    if (o->code == 0 && cases[c].same && strcmp(o->out, x->said[c]))
        return "said something else with exit code 0";
    if (o->code && !*o->err && !*o->out)
        return "failed without a word";
    digest(x->input, now);
    if (strcmp(now, x->before))
        return "changed or lost existing files";
    return records_are_whole(x) ? NULL : "wrote a broken record";
}

/* So that the next trial starts with nothing pressed. */
static void release_all(const struct trial *x)
{
    for (unsigned k = 8; k < 256; k++)
        XTestFakeKeyEvent(x->t.other, k, False, CurrentTime);
    for (unsigned b = 1; b < 8; b++)
        XTestFakeButtonEvent(x->t.other, b, False, CurrentTime);
    XSync(x->t.other, False);
}

static void try_one(struct trial *x, int c, enum injection_kind kind, unsigned long at)
{
    OUTCOME(o);
    run_case(x, c, kind, at, &o);
    if (!*x->shared->failed) {
        x->not_reached++;
        return;
    }
    const char *wrong = judge(x, c, &o);
    x->n++;
    if (wrong || getenv("HOLORUN_INJECT_AT"))
        check_note("%s: %s %lu of %s (%s): %s; exit code %d: %.300s", wrong ? "WRONG" : "fine", cases[c].name,
                   at, kinds[kind], x->shared->failed, wrong ? wrong : "", o.code, o.err);
    x->wrong += wrong != NULL;
    if (wrong)
        release_all(x);
    x->tried[c][kind]++;
    x->went_on[c] += o.code == 0;
}

/* Counts the calls of the undisturbed command. */
static void count_calls(struct trial *x, int c)
{
    OUTCOME(o);
    if (x->said[c])
        return;
    run_case(x, c, INJECT_MEMORY, 0, &o);
    if (o.code < 0)
        fail_msg("%s, undisturbed: %s", cases[c].name, o.err);
    x->counted[c] = *x->shared;
    x->said[c] = xstrdup(o.out);
}

static void print_table(const struct trial *x)
{
    for (int c = 0; c < CASES; c++) {
        const int *k = x->tried[c];
        if (x->said[c])
            check_note(
                "%-16s %3d memory %3d files %3d connections %3d processes %3d display; %3d ended with 0",
                cases[c].name, k[INJECT_MEMORY], k[INJECT_FILES], k[INJECT_CONNECTIONS], k[INJECT_PROCESSES],
                k[INJECT_DISPLAY], x->went_on[c]);
    }
}

static void t_injections(void **state)
{
    const char *many = getenv("HOLORUN_INJECTIONS"), *one = getenv("HOLORUN_INJECT_CASE");
    int n = many ? atoi(many) : FEW;
    uint64_t rng = check_seed();
    int few[FEW_CASES];
    struct trial x;
    for (int i = 0; i < FEW_CASES; i++)
        few[i] = check_below(&rng, CASES);
    if (access(helper_path("inject.so"), R_OK) || CHECK_SANITIZED)
        skip();
    open_trial(&x);
    for (int i = 0; i < CASES && one; i++)
        if (!strcmp(cases[i].name, one)) {
            count_calls(&x, i);
            try_one(&x, i, (enum injection_kind)atoi(getenv("HOLORUN_INJECT_KIND")),
                    strtoul(getenv("HOLORUN_INJECT_AT"), NULL, 10));
            n = 0;
        }
    for (int tries = 0; x.n < n && tries < 3 * n + 50; tries++) {
        int c = many ? tries % CASES : few[check_below(&rng, FEW_CASES)];
        enum injection_kind kind = (enum injection_kind)check_below(&rng, INJECTION_KINDS);
        count_calls(&x, c);
        unsigned long calls = x.counted[c].counts[kind];
        if (calls)
            try_one(&x, c, kind, 1 + (unsigned long)check_below(&rng, (int)calls));
    }
    print_table(&x);
    check_note("%d failures injected, %d points not reached, %d wrong", x.n, x.not_reached, x.wrong);
    int wrong = x.wrong;
    close_trial(&x);
    assert_int_equal(wrong, 0);
}

static int case_of(const char *name)
{
    int c = 0;
    while (strcmp(cases[c].name, name))
        c++;
    return c;
}

/* Failures after the end of a run, while its record or report is written. */
static void t_last_writes(void **state)
{
    struct trial x;
    OUTCOME(o);
    int c = case_of("run"), failed = 0;
    if (access(helper_path("inject.so"), R_OK) || CHECK_SANITIZED)
        skip();
    open_trial(&x);
    count_calls(&x, c);
    char *out = xvfb_place(&x.t.x, "written");
    unsigned long calls = x.counted[c].counts[INJECT_FILES];
    for (unsigned long at = calls - 30; at <= calls + 2; at++) {
        run_case(&x, c, INJECT_FILES, at, &o);
        struct record r;
        char *dir = *x.shared->failed ? record_newest(out, NULL) : NULL;
        if (!dir || record_open(&r, dir, NULL)) {
            free(dir);
            continue;
        }
        if (!strcmp(field_text(r.run, "status"), "running"))
            fail_msg("%s %lu: run.json still says 'running'; %s", x.shared->failed, at, o.err);
        if (o.code && !strstr(o.err, "No space left") && !strstr(o.err, "Input/output") &&
            !strstr(o.err, "Too many open"))
            fail_msg("%s %lu: exit code %d without the reason: %s", x.shared->failed, at, o.code, o.err);
        failed += o.code != 0;
        record_free(&r);
        free(dir);
    }
    check_note("%d runs ended with the reason", failed);
    free(out);
    close_trial(&x);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a failed write at the end of a run is reported, and run.json has the run's status", t_last_writes),
    CLAIM("a failed call at any point: nothing pressed, no file lost, no crash", t_injections),
};

CHECK_MAIN()
