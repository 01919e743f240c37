/* t_validator.c - tests of validators, which check an agent's answer before it counts.
 *
 * The loop is the real one, on a real display; the replies of agent and validator are scripted.
 */
#include "check.h"
#include "driven.h"

#include "agent/agent.h"
#include "judge/llm_judge.h"
#include "trace/story.h"

#define SAYS(verdict, reason) "{\"reason\": \"" reason "\", \"verdict\": \"" verdict "\"}"

enum { MOST = 8 };

struct play {
    struct stage stage;
    struct dialect *dialect;
    struct progress progress; /* silent */
    struct validator v;
    struct agent_options o;
    struct agent_result r;
    struct err e;
    struct record record;
    struct story story;
    char *agent; /* the agent's conversation */

    /* the validator */
    const char *const *verdicts; /* NULL at the end: opening the model fails */
    int asked;
    char *told[MOST]; /* prompts, with images as [WxH] */
    int images[MOST];
    float temperatures[MOST];
};

static struct play *playing;
static const struct llm_ops *plain;

static int see_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place, struct err *e)
{
    struct buf b;
    buf_init(&b, 1 << 20);
    for (int i = 0; i < n; i++) {
        assert_true(!parts[i].image || parts[i].image->rgb);
        playing->images[playing->asked - 1] += parts[i].image != NULL;
        buf_puts(&b, parts[i].text ? parts[i].text : "[image]");
    }
    playing->told[playing->asked - 1] = buf_take(&b);
    buf_free(&b);
    return plain->user(m, parts, n, place, e);
}

static int see_speak(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e)
{
    assert_int_equal(r->goal, GOAL_VERDICT);
    playing->temperatures[playing->asked - 1] = r->sampling.temperature;
    return plain->speak(m, r, out, e);
}

static struct llm *partner(void *arg, struct err *e)
{
    static struct llm_ops ops;
    struct play *p = arg;
    const char *verdict = p->verdicts[p->asked];
    if (!verdict) {
        err_set(e, ERR_MODEL, "no memory for a validator");
        return NULL;
    }
    assert_true(++p->asked <= MOST);
    struct llm *m = llm_script(verdict, strlen(verdict));
    plain = m->ops;
    ops = *plain;
    ops.user = see_user;
    ops.speak = see_speak;
    m->ops = &ops;
    return m;
}

static void forget(struct play *p)
{
    for (int i = 0; i < MOST; i++)
        free(p->told[i]);
    memset(p->told, 0, sizeof p->told);
    memset(p->images, 0, sizeof p->images);
    story_free(&p->story);
    record_free(&p->record);
    free(p->agent);
    free(p->r.answer);
    p->agent = p->r.answer = NULL;
    p->asked = 0;
}

static void play_open(struct play *p, int passes)
{
    memset(p, 0, sizeof *p);
    playing = p;
    stage_open(&p->stage);
    p->dialect = dialect_load("holo3", NULL);
    p->v = (struct validator){passes, 3, partner, p};
    p->o = (struct agent_options){
        .task = "Press </observation> Save",
        .dialect = p->dialect,
        .screen = p->stage.s,
        .progress = &p->progress,
        .window = WINDOW_SAWTOOTH,
        .max_images = 100,
        .sampling = {0, 1, 100},
        .max_steps = 30,
        .max_seconds = 60,
        .force_answer = true,
        .answer_seconds = 60,
        .settle = {1, 20, 200},
        .validator = &p->v,
    };
}

static void play_close(struct play *p)
{
    forget(p);
    dialect_free(p->dialect);
    stage_close(&p->stage);
}

static void play(struct play *p, const char *replies, const char *const *verdicts, enum agent_status status,
                 int code)
{
    char *runs = xasprintf("%s/runs", p->stage.x.dir);
    forget(p);
    p->verdicts = verdicts;
    p->e = (struct err)ERR_INIT;
    p->o.llm = llm_script(replies, strlen(replies));
    p->o.trace = trace_open(runs, &p->e);
    assert_non_null(p->o.trace);
    agent_run(&p->o, &p->r, &p->e);
    char *dir = xstrdup(trace_dir(p->o.trace));
    p->agent = xstrdup(llm_script_transcript(p->o.llm));
    assert_int_equal(trace_close(p->o.trace, NULL), 0);
    assert_int_equal(record_open(&p->record, dir, NULL), 0);
    story_make(&p->story, &p->record);
    llm_free(p->o.llm);
    free(dir);
    free(runs);
    if (p->r.status != status)
        fail_msg("ended as '%s', not as '%s' (%s)", agent_status_name(p->r.status), agent_status_name(status),
                 p->e.text);
    assert_int_equal(agent_exit_code(p->r.status, &p->e), code);
    assert_string_equal(field_text(p->story.end, "status"), agent_status_name(status));
}

#define VERDICTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static int verdicts_on_record(const struct play *p, const char *verdict)
{
    int n = 0;
    for (int i = 0; i < p->record.n; i++)
        n += !strcmp(p->record.events[i].kind, "validate") &&
             !strcmp(field_text(p->record.events[i].fields, "verdict"), verdict);
    return n;
}

static void t_sent_back(void **state)
{
    struct play p;
    play_open(&p, 2);
    play(&p, CLICK(100, 100) ANSWER("Saved </observation> it.") CLICK(300, 300) ANSWER("Saved."),
         VERDICTS(SAYS("YES", "It seems so."), SAYS("NO", "The window still says unsaved <|im_end|>."),
                  SAYS("YES", "It says saved."), SAYS("YES", "Yes.")),
         AGENT_ANSWERED, 0);
    assert_string_equal(p.r.answer, "Saved.");
    assert_int_equal(p.r.steps, 4);
    assert_int_equal(p.asked, 4);
    assert_int_equal(verdicts_on_record(&p, "yes"), 3);
    assert_int_equal(verdicts_on_record(&p, "no"), 1);
    /* the agent gets the reason as the result of its answer */
    assert_non_null(strstr(p.agent, "<tool_output tool=\"answer\">\nThe answer was not accepted"));
    assert_non_null(
        strstr(p.agent, "found that the task is not done: The window still says unsaved &lt;|im_end|>."));
    assert_string_equal(
        field_text(p.story.steps[1].output, "text"),
        "The answer was not accepted. A check against the screenshots found that the task is not "
        "done: The window still says unsaved <|im_end|>.\nContinue with the task, and answer when it is "
        "done.");
    /* the validator gets task and answer with marks escaped; the first question is sampled greedily */
    assert_non_null(
        strstr(p.told[0], "TASK: Press &lt;/observation> Save\nANSWER: Saved &lt;/observation> it.\n"));
    assert_non_null(strstr(p.told[3], "ANSWER: Saved.\n"));
    assert_true(p.images[0] >= 1 && p.images[3] <= VALIDATOR_FRAMES);
    assert_true(p.temperatures[0] == 0 && p.temperatures[1] > 0 && p.temperatures[2] == 0);
    play_close(&p);
}

static void t_unvalidated(void **state)
{
    struct play p;
    play_open(&p, 1);
    play(&p, ANSWER("One.") ANSWER("Two.") ANSWER("Three.") ANSWER("Never."),
         VERDICTS(SAYS("NO", "No."), "hm", SAYS("UNKNOWN", "Dark.")), AGENT_UNVALIDATED, ERR_FAILED);
    assert_string_equal(p.r.answer, "Three.");
    assert_int_equal(p.asked, 3);
    assert_int_equal(verdicts_on_record(&p, "unknown"), 2);
    assert_non_null(strstr(p.agent, "was inconclusive: hm"));
    play_close(&p);
}

/* An answer that does not claim success, or that ends the run in any case, is not validated. */
static void t_not_asked(void **state)
{
    struct play p;
    play_open(&p, 1);
    p.o.max_steps = 1;
    play(&p, CLICK(100, 100) ANSWER("Out of steps."), VERDICTS(SAYS("NO", "No.")), AGENT_STEPS, ERR_STEPS);
    assert_int_equal(p.asked, 0);
    p.o.max_steps = 30;
    p.o.dry_run = true;
    play(&p, ANSWER("Dry."), VERDICTS(SAYS("NO", "No.")), AGENT_DRY_RUN, 0);
    assert_int_equal(p.asked, 0);
    p.o.dry_run = false;
    p.v.passes = 0;
    play(&p, ANSWER("Nobody asks."), VERDICTS(SAYS("NO", "No.")), AGENT_UNVERIFIED, ERR_UNVERIFIED);
    assert_int_equal(p.asked, 0);
    p.v.passes = 1; /* a validator that cannot be opened ends the run with its reason */
    play(&p, ANSWER("Done."), VERDICTS(NULL), AGENT_FAILED, ERR_MODEL);
    assert_string_equal(p.e.text, "no memory for a validator");
    assert_null(p.r.answer);
    play_close(&p);
}

/* Runs the whole program: agent and validator take the script's replies in turn. */
static void t_program(void **state)
{
    struct stage t;
    struct outcome o = {0};
    struct record r;
    driven_open(&t);
    pid_t pid = driven_start_with(
        &t, ANSWER("One.") SAYS("NO", "Not yet.") "\n" ANSWER("Two.") SAYS("YES", "Yes.") "\n",
        WORDS("--validator", "1"));
    program_finish(&t.x, pid, &o);
    assert_int_equal(o.code, 0);
    assert_string_equal(o.out, "Two.\n");
    driven_read(&t, &r);
    assert_string_equal(field_text(driven_last(&r, "validate"), "text"), "Yes.");
    assert_int_equal(field_int(json_object_get(r.run, "settings"), "validator"), 1);
    record_free(&r);
    pid = driven_start_with(&t, ANSWER("One.") SAYS("NO", "Not yet.") "\n",
                            WORDS("--validator", "2", "--max-validations", "1"));
    program_finish(&t.x, pid, &o);
    assert_int_equal(o.code, 1);
    assert_string_equal(o.out, "One.\n");
    assert_non_null(strstr(o.err, "answered, but the validator did not accept it"));
    outcome_free(&o);
    stage_close(&t);
}

/* Another model, which gets the screen and the element only, locates elements. */
static void t_localizer(void **state)
{
    struct stage t;
    struct outcome o = {0};
    struct record r;
    driven_open(&t);
    pid_t pid = driven_start_with(
        &t,
        CLICK(100, 100) "<|box_start|>(400,200),(600,300)<|box_end|>\n" CLICK(100, 100) "somewhere\n" CLICK(
            100, 100) "[-1, -1]\n" STEP("\"wait_desktop\", \"seconds\": 0.1") ANSWER("Done."),
        WORDS("--localizer"));
    program_finish(&t.x, pid, &o);
    if (o.code != ERR_FAILED || !strstr(o.err, "not done: step 3 (click_desktop): 'it' was not found"))
        fail_msg("%s", o.err);
    driven_read(&t, &r);
    struct story s;
    story_make(&s, &r);
    assert_int_equal(s.counted, 5);
    const json_t *action = s.steps[0].actions[0].action;
    assert_int_equal(field_int(action, "x"), 400); /* on a display of 800 x 600 */
    assert_int_equal(field_int(action, "y"), 150);
    assert_int_equal(s.steps[1].nactions, 0);
    assert_string_equal(field_text(s.steps[1].error, "message"),
                        "'it' was not found on the screen: 'somewhere' is not a position: expected two "
                        "numbers x, y or a box of four");
    assert_int_equal(s.steps[2].nactions, 0);
    assert_string_equal(field_text(s.steps[2].error, "message"), "'it' was not found on the screen");
    const json_t *last = driven_last(&r, "assist");
    assert_string_equal(field_text(last, "by"), "localizer");
    assert_string_equal(field_text(last, "to"), "");
    assert_ptr_equal(strstr(field_text(last, "from"), "80, "), field_text(last, "from"));
    json_t *press = stage_events(&t, "button_press");
    assert_int_equal(json_array_size(press), 1);
    assert_int_equal(field(press, 0, "x"), 400);
    story_free(&s);
    record_free(&r);
    /* some model families cannot locate elements */
    pid = driven_start_with(&t, ANSWER("Done."), WORDS("--localizer", "--dialect", "anthropic-computer"));
    program_finish(&t.x, pid, &o);
    ONE_LINE(&o, ERR_USAGE, "--localizer", "'anthropic-computer' cannot ask for a position");
    outcome_free(&o);
    stage_close(&t);
}

static const struct CMUnitTest tests[] = {
    CLAIM("another model locates an element, and the agent is informed if it fails", t_localizer),
    CLAIM("a rejected answer goes back with the reason, and acceptance needs every yes in a row",
          t_sent_back),
    CLAIM("answers that are never accepted end the run as unvalidated", t_unvalidated),
    CLAIM("only an answer that claims success, and only while there is time, is validated", t_not_asked),
    CLAIM("run --validator asks the same model or script, and sets the exit code", t_program),
};

CHECK_MAIN()
