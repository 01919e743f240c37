/* t_outcome.c - tests of outcomes: of a test, from its checks and the end of its agent, and the exit code
 * of a suite.
 *
 * A check is written as two characters.  S (shell) stands for all proofs, J (judge) for models, A for the
 * agent's own answer; + yes, - no, ? unknown, ! error, . not run.
 */
#include "check.h"

#include "agent/agent.h"
#include "agent/deeds.h"
#include "qa/report/result.h"
#include "trace/read.h"

static const char kinds[] = "SJA", answers[] = "+-?!.";

static const struct check checks[] = {{.kind = CHECK_SHELL}, {.kind = CHECK_JUDGE}, {.kind = CHECK_ANSWER}};

enum { MOST = 8 };

struct told { /* one attempt */
    struct check_result checks[MOST];
    struct attempt attempt;
};

static const struct attempt *attempt_of(struct told *t, const char *status, const char *said,
                                        char *error_kind)
{
    *t = (struct told){.attempt = {.status = status, .error_kind = error_kind, .checks = t->checks}};
    for (; said[0] && said[1]; said += said[2] ? 3 : 2) {
        const struct check *c = &checks[strchr(kinds, said[0]) - kinds];
        enum answer a = (enum answer)(strchr(answers, said[1]) - answers);
        t->checks[t->attempt.n_checks++] = (struct check_result){.check = c, .answer = a};
    }
    return &t->attempt;
}

enum { FAIL = 1, INFEASIBLE = 2 }; /* expected result of a test */

static enum outcome verdict(const char *status, const char *said, char *error_kind, int expect, bool *judged)
{
    struct told t;
    struct test test = {.expect_fail = expect & FAIL, .expect_infeasible = expect & INFEASIBLE};
    return result_outcome(&test, attempt_of(&t, status, said, error_kind), judged);
}

/* ---- the table ----------------------------------------------------------------------------------- */

enum { PASSED, FAILED, CLAIMED, UNSURE, ERRED, SKIPPED, STOPPED, JUDGED };

static const struct row {
    const char *status, *checks;
    int is; /* outcome, or JUDGED: passed by models only */
} table[] = {
    /* the agent has answered */
    {"answered", "", CLAIMED},
    {"answered", "A+", CLAIMED},
    {"answered", "A-", FAILED},
    {"answered", "S+", PASSED},
    {"answered", "S+ A+", PASSED},
    {"answered", "S+ J+", PASSED},
    {"answered", "S+ S+ S+", PASSED},
    {"answered", "J+", JUDGED},
    {"answered", "J+ A+", JUDGED},
    {"answered", "J-", FAILED},
    {"answered", "J?", UNSURE},
    {"answered", "J!", ERRED},
    {"answered", "S-", FAILED},
    {"answered", "S!", ERRED},
    {"answered", "S+ S-", FAILED},
    {"answered", "S+ J-", FAILED},
    {"answered", "S- J+", FAILED},
    {"answered", "S+ A-", FAILED},
    {"answered", "S- A+", FAILED},
    {"answered", "S+ J?", UNSURE},
    {"answered", "A+ J?", UNSURE},
    {"answered", "S- J?", FAILED},
    {"answered", "S+ J!", ERRED},
    {"answered", "S- J!", FAILED}, /* an error of a model does not hide a failure */
    {"answered", "S! J-", ERRED},  /* an error of a proof makes other checks doubtful */
    {"answered", "S! S-", ERRED},
    {"answered", "A! S-", ERRED},
    {"answered", "J! J?", ERRED},
    /* the agent answers that it is infeasible */
    {"infeasible", "", FAILED},
    {"infeasible", "A+", FAILED},
    {"infeasible", "S+", FAILED}, /* whatever the checks find */
    {"infeasible", "S-", FAILED},
    {"infeasible", "S!", ERRED},
    {"infeasible", "J+", FAILED},
    {"infeasible", "J?", FAILED},
    {"infeasible", "J!", FAILED},
    /* its validator rejected the answer */
    {"unvalidated", "", FAILED},
    {"unvalidated", "A+", FAILED},
    {"unvalidated", "S+", PASSED},
    {"unvalidated", "J?", UNSURE},
    /* it reports that it is done without a confirmation: checks alone decide */
    {"unverified", "", UNSURE},
    {"unverified", "A+", UNSURE},
    {"unverified", "A-", FAILED},
    {"unverified", "S+", PASSED},
    {"unverified", "J+", JUDGED},
    {"unverified", "S-", FAILED},
    /* its last action was refused: checks cannot turn that into a success */
    {"refused", "", UNSURE},
    {"refused", "S+", UNSURE},
    {"refused", "J+", UNSURE},
    {"refused", "S-", FAILED},
    {"refused", "S!", ERRED},
    {"interrupted", "", UNSURE},
    {"interrupted", "S+ J+", UNSURE},
    {"interrupted", "S-", FAILED},
    /* the agent did not finish */
    {"steps", "", UNSURE},
    {"steps", "S.", UNSURE},
    {"steps", "S+", PASSED}, /* when: always */
    {"steps", "S+ S.", UNSURE},
    {"steps", "S- S.", FAILED},
    {"steps", "J+", JUDGED},
    {"steps", "A+", UNSURE},
    {"steps", "A+ S+", PASSED},
    {"time", "S.", UNSURE},
    {"time", "S-", FAILED},
    {"tokens", "S+", PASSED},
    {"loop", "S. J.", UNSURE},
    {"errors", "S-", FAILED},
    {"unparsable", "S.", UNSURE},
    {"unparsable", "S+", PASSED},
    {"dry-run", "", UNSURE},
    /* the run failed */
    {"failed", "", ERRED},
    {"failed", "S+", ERRED},
    {"failed", "S-", ERRED},
    {"", "", ERRED},
    {"", "S.", ERRED},
    {NULL, "", ERRED},
    {"stopped", "", STOPPED},
    {"stopped", "S+", STOPPED},
    {"stopped", "S! J-", STOPPED},
};

static void t_table(void **state)
{
    size_t n = sizeof table / sizeof *table;
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &table[i];
        bool judged;
        enum outcome o = verdict(r->status, r->checks, NULL, 0, &judged);
        enum outcome want = r->is == JUDGED ? OUTCOME_PASSED : (enum outcome)r->is;
        if (o != want || judged != (r->is == JUDGED))
            fail_msg("%s, %s: %s%s", r->status ? r->status : "no status", r->checks, outcome_name(o),
                     judged ? ", judged" : "");
        bool stopped = r->status && !strcmp(r->status, "stopped");
        assert_int_equal(verdict(r->status, r->checks, (char[]){"disk"}, 0, &judged),
                         stopped ? OUTCOME_STOPPED : OUTCOME_ERROR);
    }
    check_note("%zu rows", n);
}

/* With `expect: infeasible`. */
static const struct row expected_infeasible[] = {
    {"infeasible", "", JUDGED},    {"infeasible", "A+", JUDGED}, {"infeasible", "A-", FAILED},
    {"infeasible", "S+", PASSED},  {"infeasible", "S-", FAILED}, {"infeasible", "J+", JUDGED},
    {"infeasible", "J?", UNSURE},  {"infeasible", "J!", ERRED},  {"answered", "", FAILED},
    {"answered", "S+", FAILED},    {"answered", "J?", FAILED},   {"answered", "S!", ERRED},
    {"steps", "", UNSURE},         {"steps", "S+", UNSURE},      {"time", "S.", UNSURE},
    {"unvalidated", "S+", UNSURE}, {"steps", "S-", FAILED},      {"failed", "", ERRED},
    {"stopped", "", STOPPED},      {"unverified", "", FAILED},   {"refused", "S+", UNSURE},
};

static void t_infeasible(void **state)
{
    for (size_t i = 0; i < sizeof expected_infeasible / sizeof *expected_infeasible; i++) {
        const struct row *r = &expected_infeasible[i];
        bool judged;
        enum outcome o = verdict(r->status, r->checks, NULL, INFEASIBLE, &judged);
        if (o != (r->is == JUDGED ? OUTCOME_PASSED : (enum outcome)r->is) || judged != (r->is == JUDGED))
            fail_msg("%s, %s: %s%s", r->status, r->checks, outcome_name(o), judged ? ", judged" : "");
    }
}

/* ---- properties of all combinations ---------------------------------------------------------------- */

static void spell(char out[3 * MOST], const int *codes, int n)
{
    char *p = out;
    for (int i = 0; i < n; i++) {
        *p++ = kinds[codes[i] / 5];
        *p++ = answers[codes[i] % 5];
        *p++ = ' ';
    }
    p[n ? -1 : 0] = 0;
}

/* Only a check can fail as expected, not the agent. */
static enum outcome turned(enum outcome o, const char *said)
{
    return o == OUTCOME_PASSED                        ? OUTCOME_FAILED
           : o == OUTCOME_FAILED && strchr(said, '-') ? OUTCOME_PASSED
                                                      : o;
}

static void holds(const char *status, const int *codes, int n)
{
    char said[3 * MOST], back[3 * MOST];
    int other[MOST];
    bool judged, judged_back, judged_turned;
    for (int i = 0; i < n; i++)
        other[i] = codes[n - 1 - i];
    spell(said, codes, n);
    spell(back, other, n);
    enum outcome o = verdict(status, said, NULL, 0, &judged);
    bool ended = !strcmp(status, "answered") || !strcmp(status, "infeasible");
    bool proof_error = strstr(said, "S!") || strstr(said, "A!"), proof_yes = strstr(said, "S+");
    if (verdict(status, back, NULL, 0, &judged_back) != o || judged_back != judged)
        fail_msg("%s: another order, another verdict: %s", status, said);
    if (verdict(status, said, NULL, FAIL, &judged_turned) != turned(o, said))
        fail_msg("%s: expect_fail turned %s of %s", status, outcome_name(o), said);
    if (strcmp(status, "failed") != 0 && strchr(said, '-') && !proof_error && o != OUTCOME_FAILED)
        fail_msg("%s: %s in spite of a no: %s", status, outcome_name(o), said);
    if (o == OUTCOME_PASSED && (strpbrk(said, "-?!.") || (!proof_yes && !strstr(said, "J+"))))
        fail_msg("%s: passed with %s", status, said);
    if (judged != (o == OUTCOME_PASSED && !proof_yes))
        fail_msg("%s: judged is wrong with %s", status, said);
    if (o == OUTCOME_PASSED && !strcmp(status, "infeasible"))
        fail_msg("passed by an agent that says it is infeasible: %s", said);
    if (o == OUTCOME_CLAIMED && (!ended || strpbrk(said, "SJ")))
        fail_msg("%s: claimed with %s", status, said);
    if (!ended && strchr(said, '.') && o != OUTCOME_FAILED && o != OUTCOME_ERROR && o != OUTCOME_INCONCLUSIVE)
        fail_msg("%s: %s, and a check was not asked: %s", status, outcome_name(o), said);
}

static void t_all(void **state)
{
    int total = 0;
    for (int s = AGENT_ANSWERED; s <= AGENT_FAILED; s++) {
        if (s == AGENT_STOPPED)
            continue;
        for (int n = 0, most = 1; n <= 3; n++, most *= 15) {
            for (int i = 0; i < most; i++, total++) {
                int codes[3] = {i % 15, i / 15 % 15, i / 225};
                holds(agent_status_name((enum agent_status)s), codes, n);
            }
        }
    }
    check_note("%d combinations", total);
}

/* An expected failure is judged if no proof gave a no. */
static void t_expected(void **state)
{
    static const struct {
        const char *status, *said;
        enum outcome is;
        bool judged;
    } rows[] = {
        {"answered", "S-", OUTCOME_PASSED, false},    {"answered", "J-", OUTCOME_PASSED, true},
        {"answered", "S- J-", OUTCOME_PASSED, false}, {"answered", "S+ J-", OUTCOME_PASSED, true},
        {"answered", "S+", OUTCOME_FAILED, false},    {"answered", "J+", OUTCOME_FAILED, false},
        {"answered", "", OUTCOME_CLAIMED, false},     {"answered", "J?", OUTCOME_INCONCLUSIVE, false},
        {"infeasible", "", OUTCOME_FAILED, false},    {"failed", "S-", OUTCOME_ERROR, false},
        {"stopped", "S-", OUTCOME_STOPPED, false},    {"infeasible", "S-", OUTCOME_PASSED, false},
        {"unvalidated", "", OUTCOME_FAILED, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool judged = !rows[i].judged;
        assert_int_equal(verdict(rows[i].status, rows[i].said, NULL, FAIL, &judged), rows[i].is);
        assert_int_equal(judged, rows[i].judged);
    }
}

/* ---- a task in steps ------------------------------------------------------------------------------- */

/* Steps are written as checks are: P presses something, C checks a state; . not run, + done, 0 not found,
 * - failed, ! not read. */
static void t_steps(void **state)
{
    static const struct {
        const char *status, *steps, *checks;
        enum outcome is, turned; /* turned: with expect_fail */
    } rows[] = {
        {"answered", "P+", "", OUTCOME_CLAIMED, OUTCOME_CLAIMED},
        {"answered", "P+ C+", "", OUTCOME_PASSED, OUTCOME_FAILED},
        {"answered", "P+", "S+", OUTCOME_PASSED, OUTCOME_FAILED},
        {"answered", "P+ C+", "S-", OUTCOME_FAILED, OUTCOME_PASSED},
        {"infeasible", "P+ C-", "S+", OUTCOME_FAILED, OUTCOME_PASSED},
        {"infeasible", "P0 C.", "S+", OUTCOME_FAILED, OUTCOME_FAILED},
        {"infeasible", "P- P.", "S-", OUTCOME_FAILED, OUTCOME_FAILED},
        {"infeasible", "C! P.", "", OUTCOME_ERROR, OUTCOME_ERROR},
        {"infeasible", "P!", "S+", OUTCOME_ERROR, OUTCOME_ERROR},
        {"time", "P+ C.", "S+", OUTCOME_INCONCLUSIVE, OUTCOME_INCONCLUSIVE},
        {"stopped", "P-", "", OUTCOME_STOPPED, OUTCOME_STOPPED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct step_result steps[4];
        struct told t;
        bool judged;
        attempt_of(&t, rows[i].status, rows[i].checks, NULL);
        t.attempt.script = steps;
        for (const char *p = rows[i].steps; p[0] && p[1]; p += p[2] ? 3 : 2)
            steps[t.attempt.n_script++] = (struct step_result){
                .proof = *p == 'C', .end = (enum step_end)(strchr(".+0-!", p[1]) - ".+0-!")};
        enum outcome o = result_outcome(&(struct test){0}, &t.attempt, &judged);
        enum outcome turned = result_outcome(&(struct test){.expect_fail = true}, &t.attempt, &judged);
        if (o != rows[i].is || turned != rows[i].turned || judged)
            fail_msg("%s, steps %s, checks %s: %s, expected to fail %s", rows[i].status, rows[i].steps,
                     rows[i].checks, outcome_name(o), outcome_name(turned));
    }
}

/* ---- the actions of a run --------------------------------------------------------------------------- */

/* Judges a click whose effect comes so late that the next action is not performed. */
static void t_late(void **state)
{
    struct deeds d = {0};
    (void)state;
    deeds_add(&d, 1, ACT_CLICK, DEED_OPEN, "click 'Save'", "pressed 'Save'", NULL);
    deeds_judge(&d, 1, false);
    deeds_add(&d, 2, ACT_CLICK, DEED_INTERRUPTED, "click 'OK'", "pressed 'OK'", "the window changed");
    assert_string_equal(deeds_without_effect(&d)->did, "pressed 'Save'");
    deeds_judge(&d, 2, true);
    assert_null(deeds_without_effect(&d));
    deeds_free(&d);
}

/* Clicks a field that has the keyboard focus already, and types; then clicks something else. */
static void t_focus(void **state)
{
    struct deeds d = {0};
    (void)state;
    deeds_add(&d, 1, ACT_CLICK, DEED_UNCHANGED, "click 'Name'", "pressed 'Name'", NULL);
    deeds_add(&d, 2, ACT_KEY, DEED_CHANGED, "press ctrl+a", "pressed ctrl+a", NULL);
    assert_non_null(deeds_without_effect(&d));
    deeds_add(&d, 3, ACT_TYPE, DEED_CHANGED, "type 'Ana'", "typed 'Ana'", NULL);
    assert_null(deeds_without_effect(&d));
    deeds_add(&d, 4, ACT_CLICK, DEED_UNCHANGED, "click 'Save'", "pressed 'Save'", NULL);
    deeds_add(&d, 5, ACT_TYPE, DEED_CHANGED, "type 'Rome' into 'City'", "typed 'Rome' into 'City'", NULL)
        ->opens = true;
    assert_string_equal(deeds_without_effect(&d)->did, "pressed 'Save'");
    deeds_add(&d, 6, ACT_SCROLL, DEED_CHANGED, "scroll", "scrolled", NULL);
    deeds_add(&d, 7, ACT_MOVE, DEED_DONE, "move the pointer", "moved the pointer", NULL);
    assert_int_equal(deeds_performed(&d), 3);
    deeds_free(&d);
}

/* Builds a list of actions and checks its line, its JSON and the decisive action. */
static void t_list(void **state)
{
    struct deeds d = {0};
    char *line = deeds_line(&d);
    assert_string_equal(line, "nothing was done");
    free(line);
    deeds_add(&d, 1, ACT_CLICK, DEED_OPEN, "click 'File'", "pressed 'File'", NULL);
    deeds_judge(&d, 1, true);
    deeds_add(&d, 2, ACT_CLICK, DEED_OPEN, "click 'Save'", "pressed 'Save'", NULL);
    deeds_judge(&d, 2, false);
    assert_int_equal(deeds_decisive(&d)->end, DEED_UNCHANGED);
    deeds_judge(&d, 3, true); /* a late effect, while the agent waits */
    assert_int_equal(deeds_decisive(&d)->end, DEED_CHANGED);
    deeds_add(&d, 4, ACT_CLICK, DEED_REFUSED, "click 'Pay'", "pressed 'Pay'", "you declined");
    deeds_add(&d, 5, ACT_SCROLL, DEED_OPEN, "scroll", "scrolled", NULL);
    deeds_judge(&d, 5, true); /* scrolling does not make up for the failed action */
    assert_int_equal(deeds_decisive(&d)->step, 4);
    line = deeds_line(&d);
    assert_string_equal(line, "pressed 'Save', did not click 'Pay' (refused), scrolled; 4 actions in total");
    free(line);
    deeds_add(&d, 6, ACT_KEY, DEED_OPEN, "press Return", "pressed Return", NULL);
    deeds_judge(&d, 6, false);
    assert_int_equal(deeds_decisive(&d)->step, 6);
    line = deeds_line(&d);
    assert_string_equal(line, "did not click 'Pay' (refused), scrolled, pressed Return; the window did not "
                              "change; 5 actions in total; 2 not confirmed");
    free(line);
    char *json = deeds_json(&d);
    json_t *list = json_loads(json, 0, NULL);
    assert_int_equal(json_array_size(list), 5);
    assert_string_equal(field_text(json_array_get(list, 2), "end"), "refused");
    assert_string_equal(field_text(json_array_get(list, 2), "why"), "you declined");
    assert_string_equal(field_text(json_array_get(list, 2), "what"), "click 'Pay'");
    json_decref(list);
    free(json);
    deeds_free(&d);
}

/* ---- a suite ------------------------------------------------------------------------------------- */

/* The letters are outcomes in the order of their enum; x: skipped by --fail-fast. */
static struct results suite_of(const char *outcomes, const char *kind, struct result list[16])
{
    static const char letters[] = "PFCIEKS";
    static struct suite suite = {.flaky_max = 1};
    static struct attempt attempt;
    struct results r = {.suite = &suite, .results = list};
    attempt = (struct attempt){.error_kind = (char *)(uintptr_t)kind};
    for (; outcomes[r.n]; r.n++) {
        bool excused = outcomes[r.n] == 'x';
        list[r.n] = (struct result){
            .outcome = excused ? OUTCOME_SKIPPED : (enum outcome)(strchr(letters, outcomes[r.n]) - letters),
            .excused = excused,
            .attempts = &attempt,
            .n = 1};
    }
    return r;
}

static void t_exit_code(void **state)
{
    static const struct {
        const char *outcomes, *kind;
        int flaky;
        bool time_over, accept;
        enum undecided undecided;
        int code;
    } rows[] = {
        {"PPP", NULL, 0, 0, 0, 0, 0},
        {"", NULL, 0, 0, 0, 0, 0},
        {"PFP", NULL, 0, 0, 0, 0, 1},
        {"PFEICK", NULL, 0, 1, 0, 0, 1},
        {"PFES", "model", 0, 1, 0, 0, 130},
        {"PS", NULL, 0, 0, 1, 0, 130},
        {"PE", "display", 0, 0, 0, 0, 3},
        {"PE", NULL, 0, 0, 0, 0, 3},
        {"PEE", "model", 0, 0, 0, 0, 4},
        {"PEI", "disk", 0, 1, 0, 0, 3},
        {"PPK", NULL, 0, 1, 0, 0, 124},
        {"PIK", NULL, 0, 1, 0, 0, 124},
        {"PPK", NULL, 0, 0, 0, 0, 5},
        {"PI", NULL, 0, 0, 1, 0, 5},
        {"PC", NULL, 0, 0, 0, 0, 5},
        {"PC", NULL, 0, 0, 1, 0, 0},
        {"PPP", NULL, 1, 0, 0, 0, 0},
        {"PPP", NULL, 2, 0, 0, 0, 5},
        {"PPF", NULL, 2, 0, 0, 0, 1},
        {"PFx", NULL, 0, 0, 0, 0, 1},
        {"PI", NULL, 0, 0, 0, UNDECIDED_FAILURE, 1},
        {"PC", NULL, 0, 0, 0, UNDECIDED_FAILURE, 1},
        {"PK", NULL, 0, 1, 0, UNDECIDED_FAILURE, 1},
        {"PC", NULL, 0, 0, 1, UNDECIDED_FAILURE, 0},
        {"PIC", NULL, 0, 0, 0, UNDECIDED_SKIPPED, 0},
        {"PK", NULL, 0, 1, 0, UNDECIDED_SKIPPED, 124},
        {"PS", NULL, 0, 0, 0, UNDECIDED_SKIPPED, 130},
        {"PFI", NULL, 0, 0, 0, UNDECIDED_SKIPPED, 1},
        {"PEI", NULL, 0, 0, 0, UNDECIDED_SKIPPED, 3},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct result list[16];
        struct results r = suite_of(rows[i].outcomes, rows[i].kind, list);
        for (int k = 0; k < rows[i].flaky; k++)
            list[k].flaky = FLAKY_MODEL;
        r.time_over = rows[i].time_over;
        r.accept_claims = rows[i].accept;
        r.undecided = rows[i].undecided;
        if (results_exit_code(&r) != rows[i].code)
            fail_msg("%s: %d instead of %d", rows[i].outcomes, results_exit_code(&r), rows[i].code);
    }
}

/* For all combinations of outcomes: exit code 0 if and only if CI shows the suite as green. */
static void t_ci(void **state)
{
    static const char letters[] = "PFCIEKSx";
    for (int i = 0, all = 8 * 8 * 8 * 6; i < all; i++) {
        const char said[] = {letters[i % 8], letters[i / 8 % 8], letters[i / 64 % 8], 0};
        struct result list[16];
        struct results r = suite_of(said, NULL, list);
        r.undecided = (enum undecided)(i / 512 % 3);
        r.accept_claims = i / 512 >= 3;
        int red = 0;
        for (int k = 0; k < r.n; k++) {
            enum ci ci = results_ci(&r, &list[k]);
            red += ci == CI_FAILURE || ci == CI_ERROR;
            assert_int_equal(ci == CI_PASSED, said[k] == 'P');
            if (ci == CI_SKIPPED && said[k] != 'x' && r.undecided != UNDECIDED_SKIPPED &&
                !(said[k] == 'C' && r.accept_claims))
                fail_msg("%s: test %d is skipped to CI", said, k);
        }
        bool stopped = strchr(said, 'S') != NULL;
        if ((red || stopped) != (results_exit_code(&r) != 0))
            fail_msg("%s: %d red, and exit code %d", said, red, results_exit_code(&r));
    }
    check_note("%d suites", 8 * 8 * 8 * 6);
}

static void t_names(void **state)
{
    static const char *const names[OUTCOMES] = {"passed", "failed",  "claimed", "inconclusive",
                                                "error",  "skipped", "stopped"};
    for (int o = 0; o < OUTCOMES; o++)
        assert_string_equal(outcome_name((enum outcome)o), names[o]);
    for (int f = FLAKY_NOT; f <= FLAKY_UNKNOWN; f++)
        assert_true(strlen(flaky_description((enum flaky)f)) > 5);
}

static void t_free(void **state)
{
    struct results r = {.results = xcalloc(2, sizeof(struct result)), .n = 2, .dir = xstrdup("dir")};
    struct result *x = r.results;
    *x = (struct result){
        .flaky_where = xstrdup("step 3"), .attempts = xcalloc(2, sizeof(struct attempt)), .n = 2};
    x->attempts[1] = (struct attempt){.status = "answered",
                                      .answer = xstrdup("a"),
                                      .error = xstrdup("e"),
                                      .error_kind = xstrdup("k"),
                                      .run_dir = xstrdup("r"),
                                      .log = xstrdup("l"),
                                      .checks = xcalloc(2, sizeof(struct check_result)),
                                      .n_checks = 2};
    x->attempts[1].checks[1] = (struct check_result){.detail = xstrdup("d"),
                                                     .output = xstrdup("o"),
                                                     .pictures = {xstrdup("1"), xstrdup("2"), xstrdup("3")}};
    results_free(&r); /* a leak checker detects unfreed parts */
    assert_null(r.results);
    assert_int_equal(r.n, 0);
}

static const struct CMUnitTest tests[] = {
    CLAIM("a test fails if its agent reports the task as infeasible, unless that is expected", t_infeasible),
    CLAIM("no undecided test is green to CI, and JUnit and exit code agree, in every small suite", t_ci),
    CLAIM("checks and the agent's end give the outcome in the table", t_table),
    CLAIM("the order of checks does not matter, a no fails, and only a yes of a proof or a model passes",
          t_all),
    CLAIM("expect_fail swaps passed and failed, and nothing else", t_expected),
    CLAIM("steps that check a state are proofs, and a step that was not done never passes", t_steps),
    CLAIM("the exit code is that of the worst outcome", t_exit_code),
    CLAIM("an effect so late that it stops the next action counts for the press before it", t_late),
    CLAIM("a click before typed text needs no effect, and only actions that change something are counted",
          t_focus),
    CLAIM("a late effect counts, and scrolling does not make up for a refused click", t_list),
    CLAIM("every outcome has its name", t_names),
    CLAIM("results are freed completely", t_free),
};

CHECK_MAIN()
