/* reuse.c - repeats the replies of a recorded run while the screens agree; see reuse.h.
 *
 * All operations go to the real model, so that its conversation grows as usual: a repeated reply is appended
 * to it instead of being generated. Only rewinding to a bookmark, which undoes a turn, takes back a
 * repetition; other rewinds are those of a context that drops old screenshots. */
#include "replay/reuse.h"

#include "base/clock.h"
#include "llm/prompt.h"
#include "replay/expected.h"
#include "replay/timeline.h"
#include "trace/index.h"

#include <stdlib.h>
#include <string.h>

enum { REPLY_MAX = 4 << 20 };
/* As `replay --actions`, and around the targets of the actions nothing may differ. */
static const double threshold = 0.005;

struct reused_step {
    const char *text; /* the reply */
    enum dialect_goal goal;
    int frame, number;
};

struct reuse {
    struct llm base;
    struct llm_ops ops; /* without those that the model lacks */
    struct llm *model;
    struct gate *gate;
    struct record record;
    struct timeline timeline;
    struct frame_index index;
    struct expected expected; /* screen of step `at` */
    struct reused_step *steps;
    int n, at, loaded; /* loaded: step whose screen is in `expected`; -1: none */
    int count;
    bool said, over;   /* over: the screen differed, or the record has ended */
    bool spoke;        /* the open turn is a repeated reply, which has its end already */
    struct image seen; /* newest screenshot */
};

struct reuse_mark {
    const struct llm *model;
    struct llm_mark *mark; /* of the model */
    int at;                /* -1: rewinding does not restore it */
    bool over;
};

static struct reuse *reuse_of(const struct llm *m)
{
    return (struct reuse *)(uintptr_t)m;
}

/* ---- the record ---------------------------------------------------------------------------------- */

static void add_step(struct reuse *r, const struct turn *seen, const struct turn *reply,
                     const struct turn *accepted)
{
    bool kept = accepted->history && !reply->reply.think; /* a corrected reply; thoughts are not in history */
    r->steps = xrealloc(r->steps, (unsigned long)r->n + 1, sizeof *r->steps);
    r->steps[r->n++] = (struct reused_step){kept ? accepted->history : reply->reply.text, reply->reply.goal,
                                            seen->frame, seen->step};
}

/* Lists the accepted replies with their screenshots. A run that was rewound is not repeated. */
static int list_steps(struct reuse *r, struct err *e)
{
    const struct turn *seen = NULL, *reply = NULL;
    for (int i = 0; i < r->timeline.n; i++) {
        const struct turn *t = &r->timeline.turns[i];
        if (t->from || t->op == TURN_RECALL)
            return err_set(e, ERR_ENV, "'%s' is not a run from its beginning", r->record.dir);
        seen = t->op == TURN_OBSERVE ? t : seen;
        reply = t->op == TURN_REPLY ? t : reply;
        if (t->op == TURN_ACCEPT && seen && reply)
            add_step(r, seen, reply, t);
    }
    return r->n ? 0 : err_set(e, ERR_ENV, "'%s' has no replies", r->record.dir);
}

/* Loads the screenshot of the next step. Sets r->over if there is none. */
static void load(struct reuse *r)
{
    struct image then = {0};
    struct err why = ERR_INIT;
    r->over = r->over || r->at >= r->n;
    if (r->over || r->loaded == r->at)
        return;
    enum index_fault f = index_image(&r->index, &r->record, r->steps[r->at].frame, &then, &why);
    r->over = f != FRAME_AS_WRITTEN;
    if (r->loaded != r->at - 1) { /* the turn before was undone: nothing is known about its effect */
        expected_free(&r->expected);
        r->expected = (struct expected){.threshold = threshold, .gate = r->gate};
    }
    expected_next(&r->expected, &then);
    image_free(&then);
    r->loaded = r->at;
}

/* Returns whether the tiles around a recorded point are those of the record. */
static bool same_at(const struct reuse *r, const struct image *now, int x, int y)
{
    int cols = (now->w + IMAGE_TILE - 1) / IMAGE_TILE, rows = (now->h + IMAGE_TILE - 1) / IMAGE_TILE;
    for (int ty = y / IMAGE_TILE - 1; ty <= y / IMAGE_TILE + 1; ty++)
        for (int tx = x / IMAGE_TILE - 1; tx <= x / IMAGE_TILE + 1; tx++)
            if (tx >= 0 && ty >= 0 && tx < cols && ty < rows &&
                image_tile_difference(&r->expected.then, now, tx, ty) > IMAGE_EFFECT_LEVEL)
                return false;
    return true;
}

/* Returns whether a screenshot agrees at all points of the step's actions. */
static bool same_targets(const struct reuse *r, const struct image *now)
{
    static const char *const points[][2] = {{"x", "y"}, {"x2", "y2"}};
    for (int i = 0; i < r->record.n; i++) {
        const struct event *v = &r->record.events[i];
        if (v->step != r->steps[r->at].number || strcmp(v->kind, "action") != 0)
            continue;
        const json_t *a = json_object_get(v->fields, "action");
        for (size_t k = 0; k < sizeof points / sizeof *points; k++)
            if (json_object_get(a, points[k][0]) &&
                !same_at(r, now, (int)field_number(a, points[k][0]), (int)field_number(a, points[k][1])))
                return false;
    }
    return true;
}

static bool is_shown(struct reuse *r, struct image *frame)
{
    return expected_shown(&r->expected, frame) && same_targets(r, frame);
}

bool reuse_known(void *arg, struct image *frame)
{
    struct reuse *r = reuse_of(arg);
    load(r);
    return !r->over && expected_tells(&r->expected) && is_shown(r, frame);
}

int reuse_count(const struct llm *m)
{
    return reuse_of(m)->count;
}

/* ---- the interface of llm.h ------------------------------------------------------------------------- */

static int reuse_begin(struct llm *m, const char *system, struct err *e)
{
    struct llm *to = reuse_of(m)->model;
    return to->ops->begin(to, system, e);
}

static int reuse_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                      struct err *e)
{
    struct reuse *r = reuse_of(m);
    for (int i = 0; i < n && !r->over; i++)
        if (parts[i].image && image_copy(&r->seen, parts[i].image, e))
            return -1;
    return r->model->ops->user(r->model, parts, n, place, e);
}

static int reuse_reply(struct llm *m, const char *text, struct err *e)
{
    struct llm *to = reuse_of(m)->model;
    return to->ops->reply(to, text, e);
}

/* Returns whether the recorded reply answers this request. Else the record is not used any more. */
static bool may_repeat(struct reuse *r, const struct llm_request *q)
{
    load(r);
    r->over = r->over || q->resample || q->begins || q->free || q->goal != r->steps[r->at].goal ||
              !r->seen.rgb || !is_shown(r, &r->seen);
    return !r->over;
}

static int reuse_speak(struct llm *m, const struct llm_request *q, struct generated *out, struct err *e)
{
    struct reuse *r = reuse_of(m);
    int64_t start = clock_ns();
    bool repeats = may_repeat(r, q);
    const char *text = repeats ? r->steps[r->at++].text : NULL;
    r->spoke = repeats && r->said;
    if (!r->spoke)
        return r->model->ops->speak(r->model, q, out, e);
    *out = (struct generated){.finish = FINISH_STOP, .n = (int)strlen(text), .reused = true};
    buf_init(&out->text, REPLY_MAX);
    buf_puts(&out->text, text);
    if (q->on_text)
        q->on_text(q->arg, text, strlen(text));
    r->count++;
    char *history = prompt_reply_as_history(text);
    int rc = r->model->ops->reply(r->model, history, e);
    free(history);
    out->ms = clock_ms_since(start);
    return rc;
}

static int reuse_beam_search(struct llm *m, const struct llm_mark *before, const struct beam_request *x,
                             struct beam_candidate *out, int max, struct err *e)
{
    struct llm *to = reuse_of(m)->model;
    return to->ops->beam_search(to, ((const struct reuse_mark *)before)->mark, x, out, max, e);
}

static int reuse_close(struct llm *m, struct err *e)
{
    struct reuse *r = reuse_of(m);
    bool ended = r->spoke;
    r->spoke = false;
    return ended ? 0 : r->model->ops->close(r->model, e);
}

static struct llm_mark *mark_of(struct reuse *r, struct llm_mark *mark, int at)
{
    if (!mark)
        return NULL;
    struct reuse_mark *k = xmalloc(1, sizeof *k);
    *k = (struct reuse_mark){r->model, mark, at, r->over};
    return (struct llm_mark *)k;
}

static struct llm_mark *reuse_mark_new(struct llm *m, struct err *e)
{
    struct reuse *r = reuse_of(m);
    return mark_of(r, r->model->ops->mark(r->model, e), -1);
}

static struct llm_mark *reuse_bookmark(struct llm *m, struct err *e)
{
    struct reuse *r = reuse_of(m);
    return mark_of(r, r->model->ops->bookmark(r->model, e), r->at);
}

static int reuse_rewind(struct llm *m, const struct llm_mark *at, struct err *e)
{
    struct reuse *r = reuse_of(m);
    const struct reuse_mark *k = (const struct reuse_mark *)at;
    r->spoke = false;
    if (k->at >= 0) {
        r->at = k->at;
        r->over = k->over;
    }
    return r->model->ops->rewind(r->model, k->mark, e);
}

static int reuse_branch(struct llm *m, const struct llm_mark *at, struct err *e)
{
    struct llm *to = reuse_of(m)->model;
    return to->ops->branch(to, ((const struct reuse_mark *)at)->mark, e);
}

static int64_t reuse_mark_length(const struct llm_mark *at)
{
    const struct reuse_mark *k = (const struct reuse_mark *)at;
    return k->model->ops->mark_length(k->mark);
}

static void reuse_mark_free(struct llm_mark *at)
{
    struct reuse_mark *k = (struct reuse_mark *)at;
    if (k)
        k->model->ops->mark_free(k->mark);
    free(k);
}

static int64_t reuse_length(const struct llm *m)
{
    const struct llm *to = reuse_of(m)->model;
    return to->ops->length(to);
}

static struct session_stats reuse_stats(const struct llm *m)
{
    const struct llm *to = reuse_of(m)->model;
    return to->ops->stats(to);
}

static const struct llm_usage *reuse_usage(const struct llm *m)
{
    return reuse_of(m)->spoke ? NULL : llm_usage(reuse_of(m)->model);
}

static struct session *reuse_session(const struct llm *m)
{
    return llm_session(reuse_of(m)->model);
}

static void reuse_set_cancel(struct llm *m, const volatile int *flag)
{
    llm_set_cancel(reuse_of(m)->model, flag);
}

static void reuse_checks_passed(struct llm *m)
{
    struct llm *to = reuse_of(m)->model;
    if (to->ops->checks_passed && !reuse_of(m)->spoke)
        to->ops->checks_passed(to);
}

static void reuse_free(struct llm *m)
{
    struct reuse *r = reuse_of(m);
    expected_free(&r->expected);
    image_free(&r->seen);
    timeline_free(&r->timeline);
    index_free(&r->index);
    record_free(&r->record);
    free(r->steps);
    free(r);
}

struct llm *reuse_open(const char *dir, struct llm *model, struct gate *gate, bool said, struct err *e)
{
    struct reuse *r = xcalloc(1, sizeof *r);
    static const struct llm_ops ops = {
        LLM_OPS(reuse),           .branch = reuse_branch,         .usage = reuse_usage,
        .session = reuse_session, .set_cancel = reuse_set_cancel, .checks_passed = reuse_checks_passed,
    };
    r->ops = ops;
    r->ops.beam_search = model->ops->beam_search ? reuse_beam_search : NULL;
    r->ops.bookmark = model->ops->bookmark ? reuse_bookmark : NULL;
    r->base.ops = &r->ops;
    r->model = model;
    r->gate = gate;
    r->said = said;
    r->loaded = -1;
    r->expected = (struct expected){.threshold = threshold, .gate = gate};
    if (record_open(&r->record, dir, e) || timeline_open(&r->timeline, &r->record, e) ||
        index_open(&r->index, &r->record, e) || list_steps(r, e)) {
        reuse_free(&r->base);
        return NULL;
    }
    return &r->base;
}
