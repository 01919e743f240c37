/* t_episode.c - tests whole runs on a real page in a real browser, with a script instead of a model. They are
 * judged by the page's window title and the run directory.
 */
#include "check.h"
#include "place.h"
#include "program.h"

#include "base/err.h"
#include "base/file.h"
#include "trace/read.h"
#include "trace/story.h"

#include <sys/wait.h>
#include <unistd.h>

/* Runs an episode; writes the last title to `title` and the run directory to *dir (the caller frees it). */
static int episode(const char *page, const char *replies, const char *options, char title[256], char **dir)
{
    char runs[PLACE_PATH];
    assert_non_null(mkdtemp(place_template(runs)));
    char *command = xasprintf("tests/scripts/episode.sh '%s' '%s' '%s' '%s' %s", program_path(), page,
                              replies, runs, options);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    title[0] = 0;
    if (!fgets(title, 256, f))
        title[0] = 0;
    title[strcspn(title, "\n")] = 0;
    int status = pclose(f);
    free(command);
    if (WEXITSTATUS(status) == 77)
        skip();
    *dir = record_newest(runs, NULL);
    return WEXITSTATUS(status);
}

static void t_flight(void **state)
{
    char title[256], *dir;
    int code = episode("flight.html?seed=1000102", "tests/cases/episodes/flight.txt", "", title, &dir);
    check_note("exit %d, the page's title: %s", code, title);
    assert_int_equal(code, 0);
    assert_string_equal(title, "BOOKED Paris>Rome|12 May|9:40|Ana Lima");

    struct record r;
    struct story s;
    struct err e = ERR_INIT;
    assert_non_null(dir);
    assert_int_equal(record_open(&r, dir, &e), 0);
    story_make(&s, &r);
    assert_int_equal(s.n, 8);
    for (int i = 0; i < 7; i++) { /* each action was done and changed the screen */
        assert_int_equal(s.steps[i].nactions, 1);
        assert_string_equal(s.steps[i].actions[0].failure, "");
        assert_true(field_bool(s.steps[i].effect, "changed"));
    }
    assert_string_equal(field_text(s.end, "status"), "answered");
    char *report = xasprintf("%s/report.html", dir);
    assert_true(file_exists(report));
    free(report);
    story_free(&s);
    record_free(&r);
    free(dir);
}

static void t_claimed(void **state)
{
    char title[256], *dir, script[PLACE_PATH];
    int fd = mkstemp(place_template(script));
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, script, "booked<done>Booked.\n", 20, NULL), 0);
    close(fd);
    int code = episode("flight.html?seed=1000102", script, "", title, &dir);
    assert_int_equal(code, ERR_UNVERIFIED); /* the model reports success without an action */
    assert_string_equal(title, "Flights");
    unlink(script);
    free(dir);
}

static void t_budget(void **state)
{
    char title[256], *dir;
    int code = episode("flight.html?seed=1000102", "tests/cases/episodes/flight.txt",
                       "--max-steps 2 --no-force-answer", title, &dir);
    assert_int_equal(code, ERR_STEPS);
    assert_string_equal(title, "Flights");
    free(dir);
}

static void t_dry_run(void **state)
{
    char title[256], *dir;
    int code =
        episode("flight.html?seed=1000102", "tests/cases/episodes/flight.txt", "--dry-run", title, &dir);
    assert_int_equal(code, 0);
    assert_string_equal(title, "Flights");
    struct record r;
    struct story s;
    assert_non_null(dir);
    assert_int_equal(record_open(&r, dir, NULL), 0);
    story_make(&s, &r);
    for (int i = 1; i < s.n; i++)
        assert_int_equal(s.steps[i].frame,
                         s.steps[0].frame); /* nothing was pressed, so all frames are the same */
    story_free(&s);
    record_free(&r);
    free(dir);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a scripted run books the flight, which the page's title confirms", t_flight),
    CLAIM("an answer without a booking is not confirmed by the page", t_claimed),
    CLAIM("a step budget ends the run with its own exit code", t_budget),
    CLAIM("a dry run decides and records but presses nothing", t_dry_run),
};

CHECK_MAIN()
