/* reuse.c - repeats the replies of a recorded run while the screens agree; see reuse.h.
 *
 * While replies are repeated the conversation is only kept (dialogue.h), because telling it to the model
 * costs the time that is to be saved. At the first difference the model gets all of it, and from then on
 * all operations. A mark made before that is a number of turns; rewinding to it later tells them
 * again. A rewound reply is not repeated a second time, so nothing may rewind while the record is followed
 * (reuse_follows). */
#include "replay/reuse.h"

#include "actions/action.h"
#include "base/clock.h"
#include "llm/prompt.h"
#include "replay/dialogue.h"
#include "replay/expected.h"
#include "replay/timeline.h"
#include "trace/index.h"

#include <stdlib.h>
#include <string.h>

enum { REPLY_MAX = 4 << 20 };
/* As `replay --actions`, and around the targets of the actions nothing may differ. */
static const double threshold = 0.005;

struct reused_step {
    const char *lead, *text; /* the text that the model read with the screenshot, and its reply */
    enum dialect_goal goal;
    int frame, number;
};

struct reuse {
    struct llm base;
    struct llm_ops ops; /* without those that the model lacks */
    struct llm *model;
    struct gate *gate;
    const char *open; /* ends the text before a screenshot, after the lead */
    struct record record;
    struct timeline timeline;
    struct frame_index index;
    struct expected expected; /* screen of step `at` */
    struct reused_step *steps;
    int n, at, loaded; /* loaded: step whose screen is in `expected`; -1: none */
    int most;          /* replies that may be repeated, from the first */
    int count;
    struct dialogue kept;  /* the conversation, as long as the model does not know it */
    struct llm_mark *told; /* of the model, after all of `kept`; NULL: it does not know it */
    bool said, over;       /* over: the screen or its text differed, or the record has ended */
    bool whole;            /* all screens were the recorded ones */
    struct image seen;     /* newest screenshot, and the text with it */
    char *read;
};

struct reuse_mark {
    const struct llm *model;
    struct llm_mark *mark; /* of the model; NULL: of the kept conversation */
    int turns;             /* in the kept conversation */
    int64_t length;        /* of the kept conversation */
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
    r->steps[r->n++] = (struct reused_step){seen->lead, kept ? accepted->history : reply->reply.text,
                                            reply->reply.goal, seen->frame, seen->step};
}

/* Returns whether an event is an action of a step. */
static bool is_action(const struct event *v, int step)
{
    return v->step == step && !strcmp(v->kind, "action");
}

/* Returns whether a step was to end the run, even if a validator did not let it. */
static bool ends_run(const struct reuse *r, int step)
{
    bool ends = false;
    for (int i = 0; i < r->record.n; i++) {
        const struct event *v = &r->record.events[i];
        const char *kind = is_action(v, step) ? field_text(json_object_get(v->fields, "action"), "kind") : "";
        for (int k = 0; k < ACT_COUNT; k++)
            ends = ends || (action_ends_run(k) && !strcmp(kind, action_kind_name(k)));
    }
    return ends;
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
    while (r->most < r->n - 1 && !ends_run(r, r->steps[r->most].number))
        r->most++;
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
        if (!is_action(v, r->steps[r->at].number))
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

bool reuse_expects(void *arg)
{
    struct reuse *r = reuse_of(arg);
    load(r);
    return !r->over && expected_tells(&r->expected);
}

bool reuse_known(void *arg, struct image *frame)
{
    return reuse_expects(arg) && is_shown(reuse_of(arg), frame);
}

/* Returns whether the newest text is the recorded one. It tells the result of the last action and, where
 * wanted, the elements of the window. Where no reply is repeated it decides nothing. */
static bool is_read(const struct reuse *r)
{
    const char *lead = r->steps[r->at].lead;
    size_t n = strlen(lead);
    return !r->said || (r->read && !strncmp(r->read, lead, n) && !strcmp(r->read + n, r->open));
}

bool reuse_follows(void *arg)
{
    return !reuse_of(arg)->over;
}

int reuse_count(const struct llm *m)
{
    return reuse_of(m)->count;
}

bool reuse_whole(const struct llm *m)
{
    return reuse_of(m)->whole;
}

/* ---- the interface of llm.h ------------------------------------------------------------------------- */

/* Returns whether the conversation is only kept. */
static bool is_kept(const struct reuse *r)
{
    return r->said && !r->told;
}

static int reuse_begin(struct llm *m, const char *system, struct err *e)
{
    struct reuse *r = reuse_of(m);
    if (!is_kept(r))
        return r->model->ops->begin(r->model, system, e);
    dialogue_begin(&r->kept, system);
    return 0;
}

static int reuse_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                      struct err *e)
{
    struct reuse *r = reuse_of(m);
    if (n && parts[0].text && !r->over) {
        free(r->read);
        r->read = xstrdup(parts[0].text);
    }
    for (int i = 0; i < n && !r->over; i++) {
        if (!parts[i].image)
            continue;
        image_free(&r->seen);
        if (image_copy(&r->seen, parts[i].image, e))
            return -1;
    }
    return is_kept(r) ? dialogue_user(&r->kept, parts, n, place, e)
                      : r->model->ops->user(r->model, parts, n, place, e);
}

static int reuse_reply(struct llm *m, const char *text, struct err *e)
{
    struct reuse *r = reuse_of(m);
    if (!is_kept(r))
        return r->model->ops->reply(r->model, text, e);
    dialogue_reply(&r->kept, text);
    return 0;
}

/* Returns whether the recorded reply answers this request. Else the record is not used any more. The reply
 * that ends the run is always the model's: an answer may depend on a detail of the screen that is smaller
 * than the tolerance. */
static bool may_repeat(struct reuse *r, const struct llm_request *q)
{
    load(r);
    r->over = r->over || q->resample || q->begins || q->free || q->goal != r->steps[r->at].goal ||
              !r->seen.rgb || !is_shown(r, &r->seen) || !is_read(r);
    r->whole = !r->over && r->at == r->n - 1;
    r->over = r->over || (r->said && r->at >= r->most);
    return !r->over;
}

/* Gives the recorded reply, which has its end already: nothing is left for close(). No token is generated. */
static int repeat(struct reuse *r, const struct llm_request *q, const char *text, struct generated *out)
{
    int64_t start = clock_ns();
    *out = (struct generated){.finish = FINISH_STOP, .reused = true};
    buf_init(&out->text, REPLY_MAX);
    buf_puts(&out->text, text);
    if (q->on_text)
        q->on_text(q->arg, text, strlen(text));
    r->count++;
    autofree char *history = prompt_reply_as_history(text);
    dialogue_reply(&r->kept, history);
    out->ms = clock_ms_since(start);
    return 0;
}

/* Tells the model the conversation so far, once. */
static int tell(struct reuse *r, struct err *e)
{
    if (is_kept(r) &&
        (dialogue_tell(&r->kept, r->kept.n, r->model, e) || !(r->told = r->model->ops->mark(r->model, e))))
        return -1;
    return 0;
}

static int reuse_speak(struct llm *m, const struct llm_request *q, struct generated *out, struct err *e)
{
    struct reuse *r = reuse_of(m);
    const char *text = may_repeat(r, q) ? r->steps[r->at++].text : NULL;
    if (text && r->said)
        return repeat(r, q, text, out);
    return tell(r, e) ? -1 : r->model->ops->speak(r->model, q, out, e);
}

static int reuse_beam_search(struct llm *m, const struct llm_mark *before, const struct beam_request *x,
                             struct beam_candidate *out, int max, struct err *e)
{
    const struct reuse *r = reuse_of(m);
    const struct reuse_mark *k = (const struct reuse_mark *)before;
    if (is_kept(r) || x->said->reused) /* a repeated reply has no tokens */
        return 0;
    return r->model->ops->beam_search(r->model, k->mark ? k->mark : r->told, x, out, max, e);
}

static int reuse_close(struct llm *m, struct err *e)
{
    const struct reuse *r = reuse_of(m);
    return is_kept(r) ? 0 : r->model->ops->close(r->model, e);
}

static struct llm_mark *reuse_mark_new(struct llm *m, struct err *e)
{
    struct reuse *r = reuse_of(m);
    bool kept = is_kept(r);
    struct llm_mark *mark = kept ? NULL : r->model->ops->mark(r->model, e);
    if (!kept && !mark)
        return NULL;
    struct reuse_mark *k = xmalloc(1, sizeof *k);
    *k = (struct reuse_mark){r->model, mark, r->kept.n, dialogue_length(&r->kept)};
    return (struct llm_mark *)k;
}

/* Rewinds to a mark of the kept conversation, which the model may know by now. */
static int rewind_kept(struct reuse *r, const struct reuse_mark *k, struct err *e)
{
    if (!is_kept(r) && k->turns == r->kept.n)
        return r->model->ops->rewind(r->model, r->told, e);
    if (!is_kept(r))
        return dialogue_tell(&r->kept, k->turns, r->model, e);
    dialogue_cut(&r->kept, k->turns);
    return 0;
}

static int reuse_rewind(struct llm *m, const struct llm_mark *at, struct err *e)
{
    struct reuse *r = reuse_of(m);
    const struct reuse_mark *k = (const struct reuse_mark *)at;
    return k->mark ? r->model->ops->rewind(r->model, k->mark, e) : rewind_kept(r, k, e);
}

static int reuse_branch(struct llm *m, const struct llm_mark *at, struct err *e)
{
    struct reuse *r = reuse_of(m);
    const struct reuse_mark *k = (const struct reuse_mark *)at;
    return k->mark ? r->model->ops->branch(r->model, k->mark, e) : rewind_kept(r, k, e);
}

static int64_t reuse_mark_length(const struct llm_mark *at)
{
    const struct reuse_mark *k = (const struct reuse_mark *)at;
    return k->mark ? k->model->ops->mark_length(k->mark) : k->length;
}

static void reuse_mark_free(struct llm_mark *at)
{
    autofree struct reuse_mark *k = (struct reuse_mark *)at;
    if (k && k->mark)
        k->model->ops->mark_free(k->mark);
}

static int64_t reuse_length(const struct llm *m)
{
    const struct reuse *r = reuse_of(m);
    return is_kept(r) ? dialogue_length(&r->kept) : r->model->ops->length(r->model);
}

static struct session_stats reuse_stats(const struct llm *m)
{
    const struct llm *to = reuse_of(m)->model;
    return to->ops->stats(to);
}

static const struct llm_usage *reuse_usage(const struct llm *m)
{
    return is_kept(reuse_of(m)) ? NULL : llm_usage(reuse_of(m)->model);
}

static const struct llm_tokens *reuse_tokens(const struct llm *m)
{
    return is_kept(reuse_of(m)) ? NULL : llm_tokens(reuse_of(m)->model);
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
    if (to->ops->checks_passed && !is_kept(reuse_of(m)))
        to->ops->checks_passed(to);
}

static void reuse_free(struct llm *m)
{
    autofree struct reuse *r = reuse_of(m);
    r->model->ops->mark_free(r->told);
    dialogue_free(&r->kept);
    expected_free(&r->expected);
    image_free(&r->seen);
    free(r->read);
    timeline_free(&r->timeline);
    index_free(&r->index);
    record_free(&r->record);
    free(r->steps);
}

struct llm *reuse_open(const char *dir, struct llm *model, const struct dialect *d, struct gate *gate,
                       bool said, struct err *e)
{
    struct reuse *r = xcalloc(1, sizeof *r);
    static const struct llm_ops ops = {
        LLM_OPS(reuse),
        .branch = reuse_branch,
        .usage = reuse_usage,
        .tokens = reuse_tokens,
        .session = reuse_session,
        .set_cancel = reuse_set_cancel,
        .checks_passed = reuse_checks_passed,
    };
    r->ops = ops;
    r->ops.beam_search = model->ops->beam_search ? reuse_beam_search : NULL;
    r->base.ops = &r->ops;
    r->model = model;
    r->gate = gate;
    r->open = d->observation_open;
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
