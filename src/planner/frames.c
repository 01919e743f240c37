/* frames.c - the frames of a clause: which candidates its words mean, by its verb. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one element --------------------------------------------------------------------------------------- */

/* Finds the only button or menu item whose name is the verb alone, if the other words are in the window:
 * "cancel the order". */
static bool find_command(const struct frame *f, const struct match_words *q, struct pick *out)
{
    struct pick k;
    *out = (struct pick){.score = {.score = 1, .hard = true}, .lead = 1};
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        bool is = (c->kind == CANDIDATE_PRESS || c->kind == CANDIDATE_MENU) && c->words.n == 1 &&
                  match_alike(q->w[0].text, c->words.w[0].text) >= 0.95F;
        if (is && out->best && !candidate_same_command(c, out->best))
            return false;
        out->best = is ? c : out->best;
    }
    for (int i = 1; i < q->n && out->best; i++) {
        struct match_words one = {.w = {q->w[i]}, .n = 1};
        if (q->w[i].hard ||
            (match_among(&q->w[i], &f->all->topic) < 0.9F && !frame_find(f, &one, CANDIDATE_PRESS, 0, &k)))
            return false;
    }
    return out->best != NULL;
}

enum framed frame_any(struct frame *f)
{
    static const int preferred[DEED_WAIT + 1] = {[DEED_PRESS] = CANDIDATE_PRESS,
                                                 [DEED_CHOOSE] = CANDIDATE_OPTION,
                                                 [DEED_TICK] = CANDIDATE_TICK,
                                                 [DEED_UNTICK] = CANDIDATE_TICK};
    enum deed deed = f->k->deed;
    struct match_words q = {.n = 0};
    struct pick k;
    int kinds = CANDIDATE_ANY & ~CANDIDATE_FIELD;
    if (deed == DEED_TICK || deed == DEED_UNTICK)
        kinds = CANDIDATE_TICK | CANDIDATE_OPTION | CANDIDATE_ROW | CANDIDATE_MENU;
    if (deed == DEED_SET) /* "change the order" is not the button Order */
        kinds = CANDIDATE_TICK | CANDIDATE_OPTION | CANDIDATE_ROW;
    if (deed == DEED_FILL || deed == DEED_WRITE || deed == DEED_CALCULATE || deed == DEED_WAIT)
        return frame_unsure(f, "'%.60s' is not understood", f->k->text);
    frame_query(f, frame_names_verb(f) || deed == DEED_OPEN ? f->k->all : f->k->rest, deed == DEED_OPEN, &q);
    if (!q.n || !frame_find(f, &q, kinds, preferred[deed], &k))
        return frame_unknown(f, q.n ? q.w[0].text : f->k->text, &q);
    struct pick command;
    if (deed == DEED_OTHER && find_command(f, &q, &command))
        return frame_use(f, &command);
    enum framed done = frame_accept(f, &k, &q);
    return done == FRAME_DONE ? frame_use(f, &k) : done;
}

/* ---- dialogs that a clause opens ----------------------------------------------------------------------- */

/* Returns the file name of "save it as letter.txt"; n 0: none; *bad: other words that are not understood. */
static struct span file_name(struct span s, bool *bad)
{
    int at = 0;
    while (at < s.n && words_is(s, at,
                                "it|the|this|my|file|document|text|note|changes|result|under|name|as|to|"
                                "into|in|a|an|new|called|named"))
        at++;
    *bad = s.n - at > 1;
    return words_part(s, at, s.n);
}

static enum framed find_and_use(struct frame *f, const char *words, int kinds)
{
    struct match_words q = {.n = 0};
    struct pick k;
    match_split(words, false, &q);
    if (!frame_find(f, &q, kinds, CANDIDATE_PRESS | CANDIDATE_MENU, &k))
        return frame_unknown(f, words, &q);
    enum framed done = frame_accept(f, &k, &q);
    return done == FRAME_DONE ? frame_use(f, &k) : done;
}

static enum framed save(struct frame *f)
{
    bool bad;
    struct span name = file_name(f->k->rest, &bad);
    if (bad)
        return FRAME_NONE;
    for (int i = 0; i < f->k->rest.n && !name.n; i++)
        if (words_is(f->k->rest, i, "as|under|new|called|named|a|an"))
            return frame_unsure(f, "'%.60s' does not say under which name", f->k->text);
    if (!name.n)
        return find_and_use(f, "save", CANDIDATE_PRESS | CANDIDATE_MENU);
    if (!clause_is_hard(name, 0, false))
        return FRAME_NONE;
    enum framed done = find_and_use(f, "save as", CANDIDATE_PRESS | CANDIDATE_MENU);
    return done == FRAME_DONE ? FRAME_OPENS : done;
}

/* Enters the file name into the dialog of "save as" and presses Enter. */
static enum framed save_later(struct frame *f)
{
    static const struct word name_word[] = {{(char *)"name", false, 0}};
    struct pick k;
    bool bad;
    struct span name = file_name(f->k->rest, &bad);
    char *text = words_text(name);
    enum framed done = FRAME_NONE;
    if (!frame_field(f, (struct span){name_word, 1}, &k))
        done = frame_unsure(f, "the window '%.60s' has no field for a file name", f->all->title);
    done = done == FRAME_NONE ? frame_enter(f, &k, text) : done;
    free(text);
    struct plain_step enter = {.verb = PLAIN_KEYS, .what = (char *)(uintptr_t) "enter", .times = 1};
    if (done != FRAME_DONE) /* Enter: the list of completions may cover the button */
        return done;
    f->out->at.pressed = true;
    return frame_add(f, &enter, NULL) ? FRAME_DONE : FRAME_UNSURE;
}

/* Splits "A with B". */
static bool pair(struct span s, struct span *a, struct span *b)
{
    for (int i = 1; i + 1 < s.n; i++)
        if (words_is(s, i, "with|by")) {
            *a = words_part(s, 0, i);
            *b = words_part(s, i + 1, s.n);
            return a->n == 1 && b->n == 1;
        }
    return false;
}

static enum framed enter_by(struct frame *f, const char *const *names, struct span value)
{
    struct pick k;
    for (; *names; names++) {
        struct match_words q = {.n = 0};
        match_split(*names, false, &q);
        if (frame_find(f, &q, CANDIDATE_FIELD, 0, &k) && (k.lead >= LEAD_LEAST || !k.second)) {
            char *text = words_text(value);
            enum framed done = frame_enter(f, &k, text);
            free(text);
            return done;
        }
    }
    return frame_unsure(f, "the window '%.60s' has no field for '%.40s'", f->all->title, value.w[0].text);
}

static enum framed replace_later(struct frame *f)
{
    static const char *const olds[] = {"search", "find", "what", NULL};
    static const char *const news[] = {"replace", "with", NULL};
    struct span a, b;
    if (!pair(f->k->rest, &a, &b))
        return FRAME_NONE;
    enum framed done = enter_by(f, olds, a);
    done = done == FRAME_DONE ? enter_by(f, news, b) : done;
    return done == FRAME_DONE ? find_and_use(f, "replace all", CANDIDATE_PRESS) : done;
}

/* Opens the dialog for "replace A with B". */
static enum framed replace(struct frame *f)
{
    struct span a, b;
    if (!pair(f->k->rest, &a, &b))
        return FRAME_NONE;
    enum framed done = find_and_use(f, "replace", CANDIDATE_MENU | CANDIDATE_PRESS);
    return done == FRAME_DONE ? FRAME_OPENS : done;
}

/* Returns whether a word means the window: "program", or a word of its title.  A tab or a menu is only a part
 * of it. */
static bool is_own_name(const struct frame *f, struct span s, int i)
{
    struct match_words title = {.n = 0}, word = {.n = 0};
    match_split(f->all->title, false, &title);
    match_split(s.w[i].text, true, &word);
    return words_is(s, i,
                    "the|this|that|my|it|now|please|window|dialog|form|program|app|application|editor|"
                    "calculator|message") ||
           match_within(&word, &title);
}

static enum framed close_frame(struct frame *f)
{
    struct span s = f->k->rest;
    bool own = true;
    for (int i = 0; i < s.n; i++)
        own = own && is_own_name(f, s, i);
    if (!own)
        return FRAME_NONE;
    struct match_words q = {.n = 0};
    struct pick k;
    match_split("quit", false, &q);
    if (words_is(f->k->all, 0, "quit|exit") && frame_find(f, &q, CANDIDATE_MENU | CANDIDATE_PRESS, 0, &k) &&
        k.score.score >= 0.8F)
        return frame_use(f, &k);
    struct plain_step step = {.verb = PLAIN_CLOSE};
    f->out->at.pressed = true;
    return frame_add(f, &step, NULL) ? FRAME_DONE : FRAME_UNSURE;
}

/* ---- the clause ---------------------------------------------------------------------------------------- */

static enum framed by_verb(struct frame *f)
{
    switch (f->k->deed) {
    case DEED_SAVE:
        return save(f);
    case DEED_REPLACE:
        return replace(f);
    case DEED_CLOSE:
        return close_frame(f);
    case DEED_CALCULATE:
        return frame_calculate(f);
    case DEED_WRITE:
        return frame_write(f);
    default:
        return frame_calculate(f);
    }
}

/* Tries the frames in order. */
static enum framed by_rules(struct frame *f)
{
    typedef enum framed (*frame_reader)(struct frame * f);
    static const frame_reader frames[] = {frame_plain, by_verb, frame_any};
    char why[ERR_TEXT] = "";
    struct planner_at at = f->out->at;
    bool sure = f->out->sure;
    int n = f->out->steps.n;
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        enum framed done = frames[i](f);
        if (done == FRAME_DONE || done == FRAME_OPENS)
            return done;
        plan_cut(f->out, n);
        f->out->at = at;
        f->out->sure = sure;
        if (done == FRAME_UNSURE && !*why)
            snprintf(why, sizeof why, "%s", f->out->why);
        if (done == FRAME_UNSURE && frames[i] == by_verb)
            break;
    }
    return frame_unsure(f, "%s", why);
}

enum framed frame_clause(struct frame *f)
{
    if (f->out->at.later)
        return f->k->deed == DEED_SAVE ? save_later(f) : replace_later(f);
    for (int i = 0; i < f->k->rest.n && (f->k->deed == DEED_TICK || f->k->deed == DEED_UNTICK); i++)
        if (words_is(f->k->rest, i, "on|off"))
            return frame_unsure(f, "'%.60s' has two deeds, or another one", f->k->text);
    f->proposal = false;
    enum framed done = by_rules(f);
    f->proposal = f->effort == PLAN_PROPOSAL;
    return done == FRAME_UNSURE && f->proposal ? by_rules(f) : done;
}

/* Returns whether a name begins with the verb of a clause. */
static bool is_verb(const struct clauses *k, const struct candidate *c)
{
    for (int i = 0; i < k->n && c->words.n; i++) {
        struct match_words verb = {.n = 0};
        match_split(k->c[i].all.w[0].text, false, &verb);
        if (verb.n && match_alike(verb.w[0].text, c->words.w[0].text) >= 0.95F)
            return true;
    }
    return false;
}

enum framed frame_final(struct frame *f)
{
    static const char *const finals[] = {"ok", "apply", "accept", "done", NULL};
    const struct clauses *k = &f->p->clauses;
    for (int i = 0; i < f->all->n; i++)
        if (f->all->c[i].kind == CANDIDATE_MENU)
            return FRAME_NONE; /* not a form: a program with menus */
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < f->all->n; i++) {
            const struct candidate *c = &f->all->c[i];
            bool verb = pass == 0 && c->words.n == 1 && is_verb(k, c);
            for (int v = 0; finals[v] && pass; v++)
                verb = verb || resolve_same(c->name, finals[v]);
            struct pick one = {.best = c, .score = {.score = 1, .hard = true}, .lead = 1};
            if (verb && c->kind == CANDIDATE_PRESS)
                return frame_use(f, &one);
        }
    return FRAME_NONE;
}
