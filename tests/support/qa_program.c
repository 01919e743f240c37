/* qa_program.c - see qa_program.h.
 *
 * Leftover processes are found by an environment variable: all programs of a desktop inherit
 * HOLORUN_TEST_MARK, which names this test's folder.
 */
#include "qa_program.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"

/* cmocka.h needs these headers first */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAVE_MS = 20000, ENVIRON_BYTES = 1 << 20 };

void qa_program_open(struct qa_program *q)
{
    *q = (struct qa_program){0};
    if (!program_exists("Xvfb"))
        skip();
    xvfb_folder(&q->x);
    char *runtime = xvfb_place(&q->x, "runtime"), *replies = xvfb_place(&q->x, "replies");
    assert_int_equal(dir_make(runtime, NULL) || dir_make(replies, NULL), 0);
    setenv("HOME", q->x.dir, 1);
    setenv("XDG_RUNTIME_DIR", runtime, 1);
    setenv("TMPDIR", runtime, 1);
    setenv("HOLORUN_TEST_MARK", q->x.dir, 1);
    unsetenv("DISPLAY");
    unsetenv("WAYLAND_DISPLAY");
    free(runtime);
    free(replies);
}

void qa_program_close(struct qa_program *q)
{
    outcome_free(&q->o);
    json_decref(q->results);
    xvfb_stop(&q->x);
    *q = (struct qa_program){0};
}

static void write_text(const struct qa_program *q, const char *name, const char *text)
{
    char *path = xvfb_place(&q->x, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    free(path);
}

void qa_program_suite(struct qa_program *q, const char *tests)
{
    char *client = realpath(helper_path("xclient"), NULL);
    assert_non_null(client);
    char *text =
        xasprintf("suite:\n  name: quality\n  display: xvfb:800x600\n  timeout_s: 60\n"
                  "  start: \"exec %s \\\"$HOME/events.jsonl\\\" --title client --geometry 600x400+50+50\"\n"
                  "  window: client\n%s",
                  client, tests);
    write_text(q, "suite.yaml", text);
    free(text);
    free(client);
}

void qa_program_reply(struct qa_program *q, const char *id, const char *replies)
{
    char *name = xasprintf("replies/%s.txt", id);
    write_text(q, name, replies);
    free(name);
}

pid_t qa_program_start(struct qa_program *q, const char *const *more)
{
    char *suite = xvfb_place(&q->x, "suite.yaml"), *replies = xvfb_place(&q->x, "replies"),
         *out = xvfb_place(&q->x, "out.d");
    const char *words[32] = {"qa",    suite, q->model ? "--model" : "--fake", q->model ? q->model : replies,
                             "--out", out};
    int n = 6;
    for (; *more && n < 31; more++)
        words[n++] = *more;
    pid_t pid = program_start(&q->x, words);
    free(suite);
    free(replies);
    free(out);
    return pid;
}

void qa_program_finish(struct qa_program *q, pid_t pid)
{
    char *path = xvfb_place(&q->x, "out.d/results.json");
    program_finish(&q->x, pid, &q->o);
    json_decref(q->results);
    q->results = json_load_file(path, 0, NULL);
    free(path);
}

void qa_program_run(struct qa_program *q, const char *const *more)
{
    char *old = xvfb_place(&q->x, "out.d/results.json");
    unlink(old);
    free(old);
    qa_program_finish(q, qa_program_start(q, more));
}

const json_t *qa_program_test(const struct qa_program *q, const char *id)
{
    json_t *t;
    size_t i;
    json_array_foreach(json_object_get(q->results, "tests"), i,
                       t) if (!strcmp(field_text(t, "id"), id)) return t;
    fail_msg("no test '%s' in the results; exit %d, stderr: %s", id, q->o.code, q->o.err);
    return NULL;
}

const char *qa_program_outcome(const struct qa_program *q, const char *id)
{
    return field_text(qa_program_test(q, id), "outcome");
}

/* ---- leftovers ----------------------------------------------------------------------------------- */

static bool has_mark(const char *pid, const char *mark)
{
    char *path = xasprintf("/proc/%s/environ", pid), *data = NULL;
    char *want = xasprintf("HOLORUN_TEST_MARK=%s", mark);
    size_t len;
    bool found = file_read(path, ENVIRON_BYTES, &data, &len, NULL) == 0 &&
                 memmem(data, len, want, strlen(want) + 1) != NULL;
    free(path);
    free(data);
    free(want);
    return found;
}

/* comm: program name; NULL: any. */
int qa_program_processes(const struct qa_program *q, const char *comm, pid_t *pids, int max)
{
    int n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *p; d && (p = readdir(d));) {
        char *path = xasprintf("/proc/%s/comm", p->d_name), *name = NULL;
        size_t len;
        bool is = p->d_name[0] >= '1' && p->d_name[0] <= '9' && atoi(p->d_name) != getpid() &&
                  file_read(path, 256, &name, &len, NULL) == 0;
        if (is && comm)
            is = strlen(comm) + 1 == len && !strncmp(name, comm, len - 1);
        if (is && n < max && has_mark(p->d_name, q->x.dir))
            pids[n++] = atoi(p->d_name);
        free(name);
        free(path);
    }
    closedir(d);
    return n;
}

static int processes(const struct qa_program *q, bool print)
{
    pid_t pids[256];
    int n = qa_program_processes(q, NULL, pids, 256);
    for (int i = 0; i < n && print; i++)
        printf("           left: process %d\n", (int)pids[i]);
    return n;
}

/* Counts folders of desktops, and locks of servers in /tmp if no other program's tests run. */
static int litter(const struct qa_program *q, bool print)
{
    int n = 0;
    char *runtime = xvfb_place(&q->x, "runtime");
    DIR *d = opendir(runtime);
    for (struct dirent *f; d && (f = readdir(d));) {
        if (!strstr(f->d_name, "holorun-desks-"))
            continue;
        n++;
        if (print)
            printf("           left: %s/%s\n", runtime, f->d_name);
    }
    if (d)
        closedir(d);
    free(runtime);
    return n;
}

int qa_program_remains(const struct qa_program *q)
{
    int64_t start = clock_ns();
    while (processes(q, false) + litter(q, false) > 0 && clock_ms_since(start) < LEAVE_MS)
        clock_sleep_ms(50);
    return processes(q, true) + litter(q, true);
}
