/* t_newcomer.c - tests the first runs of a new user with the embedded model: advice, questions instead of
 * tasks, secrets, large screens.
 */
#include "check.h"
#include "driven.h"
#include "program.h"

#include "base/file.h"
#include "run/job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void put_text(const char *folder, const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", folder, name);
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
    free(path);
}

/* Makes a folder as `pull` leaves it. */
static void pretend_pulled(const char *cache, const char *repo)
{
    static const char commit[] = "0123456789012345678901234567890123456789";
    char *folder = xasprintf("%s/models--%s", cache, repo), *refs = xasprintf("%s/refs", folder),
         *snapshot = xasprintf("%s/snapshots/%s", folder, commit);
    assert_int_equal(dir_make(refs, NULL), 0);
    assert_int_equal(dir_make(snapshot, NULL), 0);
    put_text(refs, "main", commit);
    put_text(snapshot, "config.json", "{}");
    free(snapshot);
    free(refs);
    free(folder);
}

static void t_better(void **state)
{
    DRIVEN(t, o);
    char *cache = xvfb_place(&t.x, "hub");
    setenv("HF_HUB_CACHE", cache, 1);
    char *advised = xvfb_place(&t.x, "state");
    setenv("XDG_STATE_HOME", advised, 1);
    program_run(&t.x, &o, WORDS("run", "Press OK", "--dry-run"));
    assert_true(o.code == 0 || o.code == ERR_FAILED); /* the window has no OK */
    if (!strstr(o.err, "'holorun pull "))
        check_note("no model fits this machine's memory");
    assert_non_null(strstr(o.err, "the small embedded model"));
    program_run(&t.x, &o, WORDS("run", "Press OK", "--dry-run"));
    assert_null(strstr(o.err, "the small embedded"));
    char *stamp = xvfb_put(&t.x, "state/holorun/advised", "0.0.9\n"); /* of another version */
    pretend_pulled(cache, "Hcompany--Holo-3.1-0.8B");
    program_run(&t.x, &o, WORDS("run", "Press OK", "--dry-run"));
    assert_true(strstr(o.err, "on this machine: '-m holo3.1-0.8b'") || !strstr(o.err, "'holorun pull "));
    program_run(&t.x, &o, WORDS("run", "Press OK", "--dry-run", "-m", "assets/pocket/model"));
    assert_null(strstr(o.err, "the small embedded"));
    unsetenv("XDG_STATE_HOME");
    free(advised);
    free(stamp);
    unsetenv("HF_HUB_CACHE");
    free(cache);
}

static void t_questions(void **state)
{
    char *text;
    size_t len;
    int n = 0;
    assert_int_equal(file_read("tests/cases/questions.tsv", 1 << 16, &text, &len, NULL), 0);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++) {
        const char *task = strchr(line, '\t') + 1;
        bool question = !strncmp(line, "question", 8);
        if (job_task_is_question(task) != question)
            fail_msg("'%s' is taken for a %s", task, question ? "task" : "question");
    }
    assert_true(n > 20);
    free(text);
}

/* The message names the command that answers questions. */
static void t_asked(void **state)
{
    DRIVEN(t, o);
    program_run(&t.x, &o, WORDS("run", "Is there a Save button?"));
    ONE_LINE(&o, ERR_USAGE, "does not answer questions", "holorun ask --screen \"Is there a Save button?\"");
    program_run(&t.x, &o, WORDS("run", "Is there a Save button?", "--json"));
    assert_int_equal(o.code, ERR_USAGE);
    assert_non_null(strstr(o.out, "\"status\": \"failed\""));
    program_run(&t.x, &o, WORDS("ask", "--screen", "Is there a Save button?"));
    assert_int_equal(o.code, 0);
    assert_true(*o.out); /* the answer itself is not checked */
    program_run(&t.x, &o, WORDS("ask", "Is there a Save button?"));
    ONE_LINE(&o, ERR_USAGE, "--screen");
    char *replies = xvfb_put(&t.x, "replies", ANSWER("A window."));
    /* another model may answer */
    program_run(&t.x, &o, WORDS("run", "Is there a Save button?", "--fake", replies));
    assert_int_equal(o.code, 0);
    free(replies);
}

/* Real runs on forms: the program types the value, the embedded model finds the field. */
static void t_secret(void **state)
{
    static const struct {
        const char *task, *page, *title;
    } cases[] = {
        {"type the password into the Password field", "labels=User|Password&buttons=Sign in",
         "User=;Password=kR7%vq-19Xz$"},
        {"Type Ana into User and {{password}} into Password, then press Sign in",
         "labels=User|Password&buttons=Sign in|Cancel", "pressed=Sign in;User=Ana;Password=kR7%vq-19Xz$"},
    };
    if (access(helper_path("form"), X_OK))
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct xvfb x;
        OUTCOME(o);
        if (xvfb_start(&x, "640x480x24", NULL))
            skip();
        char *page =
            xasprintf("seed=%zu&kind=fields&title=Account&text=Please fill in.&%s", 7000 + i, cases[i].page);
        char *runs = xvfb_place(&x, "runs");
        xvfb_spawn(&x, "form.log", WORDS(helper_path("form"), page));
        assert_true(xvfb_wait_window(&x, "^DIALOG"));
        setenv("T_PASSWORD", "kR7%vq-19Xz", 1);
        program_run(&x, &o,
                    WORDS("run", cases[i].task, "--secret", "password=env:T_PASSWORD", "--confirm",
                          "yes-to-all", "--max-steps", "6", "--runs", runs));
        if (!xvfb_wait_window(&x, cases[i].title))
            fail_msg("%s: %s", cases[i].task, o.err);
        assert_null(strstr(o.err, "kR7%vq-19Xz"));
        xvfb_stop(&x);
        free(page);
        free(runs);
    }
}

static void t_large(void **state)
{
    struct stage t;
    OUTCOME(o);
    static const char *const sizes[] = {"1600x900x24", "1000x700x24"};
    for (int i = 0; i < 2; i++) {
        stage_open_sized(&t, sizes[i]);
        screen_close(t.s);
        t.s = NULL;
        program_run(&t.x, &o, WORDS("run", "Press OK", "--dry-run", "--view", "all"));
        bool told = strstr(o.err, "maximum of 1024 pixels per side") && strstr(o.err, "--view active");
        assert_int_equal(told, i == 0);
        stage_close(&t);
    }
}

static const struct CMUnitTest tests[] = {
    CLAIM("the embedded model's run suggests once a model that fits this machine or is installed", t_better),
    CLAIM("questions are distinguished from tasks, also from tasks that contain questions", t_questions),
    CLAIM("a question to the embedded model is refused with the command that answers it", t_asked),
    CLAIM("the embedded model types secrets by their names in the task", t_secret),
    CLAIM("a screenshot larger than the model's input gets a warning with the remedy", t_large),
};

CHECK_MAIN()
