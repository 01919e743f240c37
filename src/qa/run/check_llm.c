/* check_llm.c - checks that a model answers: whether a text is visible, and questions of the suite.
 *
 * A question is repeated until there are `passes` consecutive yes answers, or another answer. */
#include "qa/run/check_impl.h"

#include "base/clock.h"
#include "judge/llm_judge.h"
#include "pocket/assist.h"
#include "pocket/reading.h"
#include "qa/report/summary.h"

#include <stdlib.h>
#include <string.h>

static enum answer ask(struct probe *probe, const struct judge_question *asked, int passes, struct err *e)
{
    const struct judge *judge = &probe->s->judge;
    struct judge_question q = *asked;
    enum answer a = ANSWER_YES;
    int64_t start = clock_ns();
    if (!judge->ask) {
        probe_detail(probe, "no model available");
        return ANSWER_UNKNOWN;
    }
    for (q.pass = 0; q.pass < passes && a == ANSWER_YES; q.pass++) {
        q.seconds = probe->seconds > 0 ? probe->seconds - clock_ms_since(start) / 1000 : 0;
        if (probe->seconds > 0 && q.seconds <= 0) {
            probe_detail(probe, "expected %d answers within %.0f s, got %d", passes, probe->seconds, q.pass);
            return ANSWER_UNKNOWN;
        }
        free(probe->r.output);
        probe->r.output = NULL;
        a = judge->ask(judge->arg, &q, &probe->r.output, e);
    }
    if (a == ANSWER_ERROR)
        return a;
    const char *reason = probe->r.output ? probe->r.output : "";
    probe_detail(probe, "the model was asked %d time%s and answers %s%s%.*s", q.pass, q.pass == 1 ? "" : "s",
                 summary_answer(a), *reason ? ": " : "", probe_cut(reason, strlen(reason)), reason);
    return a;
}

/* Asks about the last n - 1 frames of the run and the current screen, which may equal the last of them. */
static enum answer ask_about_frames(struct probe *probe, const char *text, const char *shows, int n,
                                    int passes, struct err *e)
{
    const struct check_context *s = probe->s;
    struct image now = {0};
    if (screen_capture(s->screen, &now, e))
        return ANSWER_ERROR;
    gate_redact(s->gate, &now); /* redacted as in the frames */
    int known = s->n_frames;
    if (known && image_equal(&s->frames[known - 1], &now))
        known--;
    int before = n - 1 < known ? n - 1 : known;
    before = before > 0 ? before : 0;
    autofree struct image *frames =
        xcalloc((unsigned long)before + 1, sizeof *frames); /* borrowed, except the last one */
    if (before)
        memcpy(frames, s->frames + known - before, (size_t)before * sizeof *frames);
    frames[before] = now;
    struct judge_question q = {
        .text = text, .shows = shows, .frames = frames, .n = before + 1, .cancel = s->cancel};
    enum answer a = ask(probe, &q, passes > 0 ? passes : 1, e);
    image_free(&now);
    return a;
}

/* Searches for a text with the embedded model, so that a suite needs no other model for it.  That model
 * overlooks lines, so the answer is yes or unknown. */
static enum answer check_reading(struct probe *probe, struct err *e)
{
    struct image screen = {0};
    autobuf lines = buf_of(64 << 10);
    bool found = false;
    autofree char *wanted = reading_normalize(probe->c->text);
    int rc = screen_capture(probe->s->screen, &screen, e);
    if (rc == 0) {
        gate_redact(probe->s->gate, &screen);
        rc = pocket_read_screen(&screen, wanted, probe->s->cancel, &found, &lines, e);
    }
    const char *read = lines.len ? lines.data : "nothing";
    if (rc == 0)
        probe_detail(probe, "expected '%.160s' %s; the embedded model reads: %.*s", wanted,
                     probe->c->absent ? "not to be there" : "to be there", probe_cut(read, strlen(read)),
                     read);
    image_free(&screen);
    return rc ? ANSWER_ERROR : found ? ANSWER_YES : ANSWER_UNKNOWN;
}

enum answer check_text(struct probe *probe, struct err *e)
{
    if (probe->c->reading)
        return check_reading(probe, e);
    autofree char *question =
        xasprintf("Is this text to be seen in the screenshot, in these words: \"%s\"?", probe->c->text);
    enum answer a = ask_about_frames(probe, question, probe->c->text, 1, 1, e);
    return a;
}

enum answer check_judge(struct probe *probe, struct err *e)
{
    return ask_about_frames(probe, probe->c->text, NULL, probe->c->frames, probe->c->passes, e);
}

/* ---- the judge ----------------------------------------------------------------------------------- */

static enum answer ask_model(void *arg, const struct judge_question *q, char **reason, struct err *e)
{
    static const enum answer answers[] = {
        [LLM_JUDGE_YES] = ANSWER_YES, [LLM_JUDGE_NO] = ANSWER_NO, [LLM_JUDGE_UNKNOWN] = ANSWER_UNKNOWN};
    const struct judge_model *m = arg;
    struct assist *assist = NULL;
    struct engine *engine = m->partner ? NULL : m->engine;
    if (pocket_assist_open(&assist, engine, m->dialect, q->cancel, e))
        return ANSWER_ERROR;
    struct llm_judge_question ask = {.dialect = m->dialect,
                                     .assist = assist,
                                     .system = m->dialect->judge,
                                     .text = q->text,
                                     .shows = q->shows,
                                     .frames = q->frames,
                                     .n = q->n,
                                     .pass = q->pass,
                                     .seconds = q->seconds,
                                     .cancel = q->cancel};
    enum llm_verdict verdict = LLM_JUDGE_UNKNOWN;
    struct llm *llm = m->partner ? m->partner(m->arg, e) : llm_local(m->engine, m->dialect, m->seed);
    int rc = llm ? llm_judge_ask(llm, &ask, &verdict, reason, e) : -1;
    llm_free(llm);
    assist_free(assist);
    return rc ? ANSWER_ERROR : answers[verdict];
}

struct judge judge_model_judge(const struct judge_model *m)
{
    return (struct judge){ask_model, (void *)(uintptr_t)m};
}
