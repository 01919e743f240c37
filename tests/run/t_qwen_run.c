/* t_qwen_run.c - whole runs with a tiny random model of Qwen3.5's shape (tests/golden/qwen/whole) on private
 * displays, whose records are then verified. The grammar turns any output of the model into actions.
 */
#include "check.h"
#include "golden.h"
#include "qa_program.h"

#include "base/file.h"
#include "trace/read.h"

#include <unistd.h>

#define SHORT_CONTEXT "\"max_position_embeddings\": 4096"
#define LONG_CONTEXT  "\"max_position_embeddings\": 65536"

static struct golden g;

/* Enlarges the golden model's context, which is too small for the prompts of a run. */
static void write_model(void)
{
    static const char *const files[] = {"config.json", "tokenizer.json", "preprocessor_config.json"};
    golden_open(&g, "qwen/whole");
    golden_checkpoint(&g);
    for (int i = 0; i < 3; i++) {
        char *text, *from = xasprintf("%s/%s", g.dir, files[i]),
                    *to = xasprintf("%s/%s", g.checkpoint, files[i]);
        size_t len;
        assert_int_equal(file_read(from, 1 << 20, &text, &len, NULL), 0);
        char *at = strstr(text, SHORT_CONTEXT);
        assert_true(at || i);
        char *rest = at ? at + strlen(SHORT_CONTEXT) : text + len;
        char *whole =
            xasprintf("%.*s%s%s", (int)((at ? at : rest) - text), text, at ? LONG_CONTEXT : "", rest);
        assert_int_equal(file_write(to, whole, strlen(whole), NULL), 0);
        free(whole);
        free(text);
        free(from);
        free(to);
    }
}

static void forget_model(void)
{
    static const char *const files[] = {"tokenizer.json", "preprocessor_config.json"};
    for (int i = 0; i < 2; i++) {
        char *path = xasprintf("%s/%s", g.checkpoint, files[i]);
        unlink(path);
        free(path);
    }
    golden_close(&g);
}

struct work {
    struct xvfb x;
    struct outcome o;
    char *runs;
};

static void work_open(struct work *w)
{
    *w = (struct work){0};
    if (xvfb_start(&w->x, "640x480x24", NULL))
        skip();
    w->runs = xvfb_place(&w->x, "runs");
    write_model();
}

static void work_close(struct work *w)
{
    outcome_free(&w->o);
    free(w->runs);
    xvfb_stop(&w->x);
    forget_model();
}

/* `holorun run`: three steps with two screenshots in view. SHORT: short prompts and replies. */
#define OPTIONS                                                                                              \
    "-q", "--seed", "8", "--temperature", "0.9", "--max-images", "2", "--no-report", "--settle-quiet", "30", \
        "--no-force-answer", "-n", "3"
#define RUN(w, ...)                                                                                          \
    run(&w, WORDS("run", "Press Save", "--model", g.checkpoint, "--runs", w.runs, OPTIONS, __VA_ARGS__))
#define SHORT "--dialect", "uitars"

/* A random model may answer, give up, or not end its reply. */
static void ended(const struct work *w)
{
    if (w->o.code != ERR_STEPS && w->o.code != ERR_FAILED && w->o.code != ERR_MODEL &&
        w->o.code != ERR_UNVERIFIED && w->o.code)
        fail_msg("exit %d: %s", w->o.code, w->o.err);
}

static void run(struct work *w, const char *const *words)
{
    program_run(&w->x, &w->o, words);
    ended(w);
}

/* Verifies the newest run, or `dir`. */
static void verify(struct work *w, const char *runs, const char *dir)
{
    program_run(
        &w->x, &w->o,
        WORDS("replay", "--verify", "-q", "--runs", runs, "--model", g.checkpoint, "--threads", "1", dir));
    if (w->o.code)
        fail_msg("exit %d: %s%s", w->o.code, w->o.out, w->o.err);
    check_note("%.*s", (int)strcspn(w->o.out, "\n"), w->o.out);
}

static void t_windows(void **state)
{
    struct work w;
    work_open(&w);
    RUN(w, "--window", "sawtooth");
    verify(&w, w.runs, NULL);
    RUN(w, "--window", "strict", SHORT);
    verify(&w, w.runs, NULL);
    work_close(&w);
}

static void t_stepped(void **state)
{
    struct work w;
    work_open(&w);
    char *commands = xvfb_put(&w.x, "commands", "fork 3\ntake 2\nrun\nrun\nrewind 1\nrun\nrun\nrun\n");
    char *how = xasprintf("--step=script:%s", commands);
    RUN(w, how, SHORT);
    verify(&w, w.runs, NULL);
    free(how);
    free(commands);
    work_close(&w);
}

static void t_resumed(void **state)
{
    struct work w;
    work_open(&w);
    for (int seed = 1; w.o.code != ERR_STEPS && seed < 30; seed++) {
        char *text = xasprintf("%d", seed);
        RUN(w, SHORT, "--seed", text, "-n", "2");
        free(text);
    }
    program_run(&w.x, &w.o, WORDS("resume", "--runs", w.runs, "-q", "-n", "3"));
    ended(&w);
    verify(&w, w.runs, NULL);
    work_close(&w);
}

/* Sessions in a batch compute the same as alone. */
static void t_suite(void **state)
{
    struct qa_program q;
    struct work w = {0};
    qa_program_open(&q);
    write_model();
    q.model = g.checkpoint;
    qa_program_suite(&q,
                     "  steps: 2\ntests:\n  - id: \"t{n}\"\n    matrix: { n: 1..4 }\n    task: Press {n}.\n"
                     "    checks: [{kind: file, path: made}]\n");
    qa_program_run(&q, WORDS("--quiet", "--jobs", "4", SHORT));
    w.x = q.x;
    for (int i = 1; i <= 4; i++) {
        char *id = xasprintf("t%d", i), *name = xasprintf("out.d/runs/%s", id),
             *runs = xvfb_place(&q.x, name);
        assert_string_not_equal(qa_program_outcome(&q, id), "skipped");
        verify(&w, runs, NULL);
        free(runs);
        free(name);
        free(id);
    }
    outcome_free(&w.o);
    qa_program_close(&q);
    forget_model();
}

static const struct CMUnitTest tests[] = {
    CLAIM("with either window policy a run's tokens are verified", t_windows),
    CLAIM("a run's tokens are verified after a fork and a rewind", t_stepped),
    CLAIM("an interrupted run is resumed and verified", t_resumed),
    CLAIM("each run of a suite with four jobs is verified", t_suite),
};

CHECK_MAIN()
