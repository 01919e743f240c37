/* check_llm.c - checks that a model answers: whether a text is to be seen, and what the suite asks.
 *
 * A no ends it; every yes is asked for again until there are as many in a row as wanted.
 */
#include "qa/run/check_impl.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

static const char *answer_word(enum answer a)
{
    return a == ANSWER_YES ? "yes" : a == ANSWER_NO ? "no" : "not known";
}

/* `passes` times the same question. */
static enum answer ask(struct look *l, const struct question *asked, int passes, struct err *e)
{
    const struct judge *judge = &l->s->judge;
    struct question q = *asked;
    enum answer a = ANSWER_YES;
    int64_t start = clock_ns();
    if (!judge->ask) {
        look_says(l, "there is no model to be asked");
        return ANSWER_UNKNOWN;
    }
    for (q.pass = 0; q.pass < passes && a == ANSWER_YES; q.pass++) {
        q.seconds = l->seconds > 0 ? l->seconds - clock_ms_since(start) / 1000 : 0;
        if (l->seconds > 0 && q.seconds <= 0) {
            look_says(l, "expected %d answers within %.0f s, there were %d", passes, l->seconds, q.pass);
            return ANSWER_UNKNOWN;
        }
        free(l->r.output);
        l->r.output = NULL;
        a = judge->ask(judge->arg, &q, &l->r.output, e);
    }
    if (a == ANSWER_ERROR)
        return a;
    const char *reason = l->r.output ? l->r.output : "";
    look_says(l, "the model was asked %d time%s and says %s%s%.*s", q.pass, q.pass == 1 ? "" : "s",
              answer_word(a), *reason ? ": " : "", look_cut(reason, strlen(reason)), reason);
    return a;
}

/* The last frames of the run and the screen of now, which the run's last one may be. */
static enum answer ask_about_frames(struct look *l, const char *text, int n, int passes, struct err *e)
{
    const struct check_scene *s = l->s;
    struct image now = {0};
    if (screen_capture(s->screen, &now, e))
        return ANSWER_ERROR;
    gate_redact(s->gate, &now); /* as in the frames before it */
    int known = s->n_frames;
    if (known && image_equal(&s->frames[known - 1], &now))
        known--;
    int before = n - 1 < known ? n - 1 : known;
    before = before > 0 ? before : 0;
    struct image *frames =
        xcalloc((unsigned long)before + 1, sizeof *frames); /* borrowed, but for the last */
    if (before)
        memcpy(frames, s->frames + known - before, (size_t)before * sizeof *frames);
    frames[before] = now;
    struct question q = {.text = text, .frames = frames, .n = before + 1, .cancel = s->cancel};
    enum answer a = ask(l, &q, passes > 0 ? passes : 1, e);
    image_free(&now);
    free(frames);
    return a;
}

enum answer check_text(struct look *l, struct err *e)
{
    char *question =
        xasprintf("Is this text to be seen in the screenshot, in these words: \"%s\"?", l->c->text);
    enum answer a = ask_about_frames(l, question, 1, 1, e);
    free(question);
    return a;
}

enum answer check_judge(struct look *l, struct err *e)
{
    return ask_about_frames(l, l->c->text, l->c->frames, l->c->passes, e);
}
