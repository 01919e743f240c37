/* frames.c - the frames of a clause: which candidates its words mean, by its verb. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"
#include "planner/fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static enum framed find_and_use(struct frame *f, const char *name)
{
    struct match_words q = {.n = 0};
    struct pick k;
    match_split(name, false, &q);
    if (!frame_find(f, name, CANDIDATE_PRESS | CANDIDATE_MENU, &k))
        return frame_unknown(f, name, &q);
    return k.twin ? frame_unsure(f, "several elements are called '%.60s'", name) : frame_use(f, &k);
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
        return find_and_use(f, "save");
    if (!clause_is_hard(name, 0, false))
        return FRAME_NONE;
    enum framed done = find_and_use(f, "save as");
    return done == FRAME_DONE ? FRAME_OPENS : done;
}

/* Enters the file name into the dialog of "save as" and presses Enter. */
static enum framed save_later(struct frame *f)
{
    struct pick k;
    bool bad;
    struct span name = file_name(f->k->rest, &bad);
    char *text = words_text(name);
    enum framed done = FRAME_NONE;
    if (!frame_find(f, "name", CANDIDATE_FIELD, &k) || k.twin)
        done = frame_unsure(f, "the window '%.60s' has no field for a file name", f->all->title);
    done = done == FRAME_NONE ? frame_enter(f, &k, text) : done;
    free(text);
    struct plain_step enter = {.verb = PLAIN_KEYS, .what = (char *)(uintptr_t) "enter", .times = 1};
    if (done != FRAME_DONE) /* Enter: the list of completions may cover the button */
        return done;
    f->out->at.pressed = true;
    return frame_add(f, &enter, NULL) ? FRAME_DONE : FRAME_UNSURE;
}

/* Returns the only element of a window that shows a message: OK, or Close; NULL: it has others. */
static const struct candidate *only_button(const struct frame *f)
{
    const struct candidate *only = NULL;
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        bool ends = resolve_same(c->name, "OK") || resolve_same(c->name, "Close");
        if (!strcmp(c->e->role, "icon"))
            continue; /* beside the message */
        if (only || c->kind != CANDIDATE_PRESS || !ends)
            return NULL;
        only = c;
    }
    return only;
}

/* Returns whether the words mean the window: "this", "the program", with words of its title.  A tab or a menu
 * is only a part of it, and the title alone may name another thing: "my account". */
static bool is_window(const struct frame *f, struct span s)
{
    struct match_words title = {.n = 0};
    bool noun = false, part = false;
    match_split(f->all->title, false, &title);
    for (int i = 0; i < s.n; i++) {
        struct match_words word = {.n = 0};
        match_split(s.w[i].text, true, &word);
        if (words_is(s, i, "window|dialog|form|program|app|application|editor|calculator") ||
            (only_button(f) && words_is(s, i, "message|warning|error|notice|information")))
            noun = true;
        else if (match_within(&word, &title))
            part = true;
        else if (!words_is(s, i, "the|my|now|please|it|this|that"))
            return false;
    }
    return noun || !part;
}

/* Returns whether a button does more than close, as "Close without saving", or may be meant by "quit", which
 * is more than to leave a dialog. */
static bool has_other_close(const struct frame *f, bool quits)
{
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        if (c->kind == CANDIDATE_PRESS && quits && fill_leaves(c->name))
            return true;
        for (int w = 0; w < c->words.n && c->kind == CANDIDATE_PRESS && c->words.n > 1; w++)
            if (match_alike(c->words.w[w].text, "close") > 0 || match_alike(c->words.w[w].text, "quit") > 0)
                return true;
    }
    return false;
}

static enum framed close_frame(struct frame *f)
{
    struct pick k = {.best = only_button(f), .p = 1};
    bool quits = words_is(f->k->all, 0, "quit|exit");
    if (!is_window(f, f->k->rest))
        return FRAME_NONE;
    if (k.best || (quits && frame_find(f, "quit", CANDIDATE_MENU | CANDIDATE_PRESS, &k) && !k.twin))
        return frame_use(f, &k);
    if (has_other_close(f, quits))
        return frame_unsure(f, "a button does more than close the window");
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
    case DEED_CLOSE:
        return close_frame(f);
    case DEED_WRITE:
        return frame_write(f);
    default:
        return frame_calculate(f);
    }
}

enum framed frame_clause(struct frame *f)
{
    if (f->out->at.later)
        return save_later(f);
    enum framed done = frame_plain(f);
    if (done == FRAME_NONE)
        done = by_verb(f);
    return done == FRAME_NONE ? frame_unsure(f, "'%.60s' is not understood", f->k->text) : done;
}
