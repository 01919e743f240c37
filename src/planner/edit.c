/* edit.c - texts that clauses write into an editor, and the file that it is saved as. */
#include "planner/planner_impl.h"

#include "atspi/roles.h"
#include "plain/resolve.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NOUNS                                                                                                \
    "document|editor|text|texts|file|page|area|note|words|word|line|sentence|contents|content|number"
#define PLACES   NOUNS "|in|into|to|at|on|of|the|a|an|this|my|new|empty|here|there|it|down|that|with|field"
#define NAMED    "called|named|as|under|name" /* before the name of a file */
#define HEADS    PLACES "|make|create|start|begin|need|want|i|we|me|us|would|like|open|please|have|get|give"
#define SAYING   "saying|says|say|reading|reads|containing|contains|content|contents|words|text|line"
#define DANGLING "to|about|it|this|that|them|down|up|away|again|back|for|on|over|out" /* no text begins so */
#define ENDS     "start|beginning|top|front|end|bottom"
#define WHOLE    "all|everything|whole|entire"

/* Finds the field for a text without the name of one: the only field, or the one with the focus. */
static const struct candidate *find_editor(const struct frame *f)
{
    const struct candidate *only = NULL, *focused = NULL, *found;
    int n = 0;
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        if (c->kind != CANDIDATE_FIELD || c->closed || !state_in(c->e->states, STATE_EDITABLE))
            continue;
        n++;
        only = c;
        focused = state_in(c->e->states, STATE_FOCUSED) ? c : focused;
    }
    found = n == 1 ? only : focused;
    bool large = found && (state_in(found->e->states, STATE_MULTI_LINE) || found->e->rect.h > EDITOR_HEIGHT);
    return n == 1 || large ? found : NULL;
}

/* ---- the name of a file -------------------------------------------------------------------------------- */

static bool has_ending(const char *text)
{
    const char *dot = strrchr(text, '.');
    size_t n = dot ? strlen(dot + 1) : 0;
    return dot && dot > text && n && n <= 5 && isalpha((unsigned char)dot[1]) && !strpbrk(text, "@/ ");
}

int file_word(const struct planner *p)
{
    for (int c = p->at.clause; c < p->clauses.n; c++) {
        const struct clause *k = &p->clauses.c[c];
        for (int i = 1; i < k->all.n; i++) {
            bool follows = words_is(k->all, i - 1, "as|under|in|into|to|called|named|name|file");
            bool ends = k->deed == DEED_SAVE && i + 1 == k->all.n && clause_is_hard(k->all, i, false) &&
                        strpbrk(k->all.w[i].text, "abcdefghijklmnopqrstuvwxyz");
            ; /* but not "PDF" */
            if (follows && (has_ending(k->all.w[i].text) || (ends && !words_is(k->all, i - 1, "in|into|to"))))
                return (int)(&k->all.w[i] - p->clauses.words.w);
        }
    }
    return -1;
}

const struct candidate *find_save_as(const struct frame *f)
{
    for (int i = 0; i < f->all->n; i++)
        if (f->all->c[i].kind == CANDIDATE_MENU && resolve_same(f->all->c[i].name, "Save As"))
            return &f->all->c[i];
    return NULL;
}

enum framed frame_save(struct frame *f)
{
    int at = file_word(f->p), clauses;
    struct span folder = folder_name(f->p, &clauses);
    const struct candidate *field = NULL;
    for (int i = 0; i < f->all->n; i++)
        if (f->all->c[i].kind == CANDIDATE_FIELD && (folder.n || resolve_same(f->all->c[i].name, "name") ||
                                                     resolve_same(f->all->c[i].name, "file name")))
            field = field ? &f->all->c[f->all->n] : &f->all->c[i];
    if ((at < 0 && !folder.n) || !field || field == &f->all->c[f->all->n])
        return frame_unsure(f, "the window '%.60s' has no field for a file name", f->all->title);
    autofree char *name = folder.n ? words_text(folder) : xstrdup(f->p->clauses.words.w[at].text);
    enum framed done = frame_enter(f, field, name, 1);
    if (done == FRAME_DONE)
        done = frame_key(f, "enter"); /* the list of completions may cover the button */
    f->out->at.pressed = true;
    return done;
}

/* ---- changes ------------------------------------------------------------------------------------------- */

static bool are(struct span s, int from, int to, const char *any)
{
    for (int i = from; i < to; i++)
        if (!words_is(s, i, any))
            return false;
    return true;
}

/* Returns the index of the first of these words from `from` on, or s.n. */
static int find(struct span s, int from, const char *any)
{
    while (from < s.n && !words_is(s, from, any))
        from++;
    return from;
}

/* Performs "delete all the text". */
static enum framed clear(struct frame *f, struct span s)
{
    if (!words_is(s, 0, "delete|clear|erase|remove|empty|wipe") ||
        (find(s, 1, WHOLE) == s.n && find(s, 1, "text|contents|content") == s.n) ||
        !are(s, 1, s.n,
             WHOLE "|the|my|this|text|contents|content|of|in|document|note|it|there|here|that's|is|file"))
        return FRAME_NONE;
    return frame_key(f, "ctrl+a") == FRAME_DONE ? frame_key(f, "delete") : FRAME_UNSURE;
}

/* Types a line, or a word, at the first or last place of the text. */
static enum framed type_at(struct frame *f, struct span text, bool line, bool end, const char *old)
{
    size_t n = strlen(old);
    autofree char *words = words_text(text);
    bool ended = !n || old[n - 1] == ' '; /* of a line: the snapshot has spaces for line breaks */
    autofree char *typed =
        xasprintf("%s%s%s", line && end && !ended ? "\n" : "", words, line && !end ? "\n" : "");
    enum framed done = frame_key(f, end ? "ctrl+end" : "ctrl+home");
    return done == FRAME_DONE ? frame_enter(f, NULL, typed, 1) : done;
}

/* Performs "add a last line saying X to my list". */
static enum framed add_line(struct frame *f, struct span s, const char *old)
{
    int at = find(s, 1, "line"), says = find(s, 1, "saying|reading|says|containing|with"), to = s.n;
    bool end = words_is(s, at - 1, "last|final"), start = words_is(s, at - 1, "first");
    if ((!end && !start) || says != at + 1 || !are(s, 1, at - 1, "a|the|one|as|new"))
        return FRAME_NONE;
    for (int i = says + 2; i < to; i++)
        if (words_is(s, i, "to|in|into|at|of") && words_is(s, i + 1, "the|my|this|it") && !s.w[i].quoted)
            to = i;
    for (int i = to; i < s.n; i++) {
        bool title = words_is(s, i, PLACES "|list|its"); /* or "shopping" of shopping.txt */
        for (int k = 0; k < f->all->topic.n && strlen(s.w[i].text) > 3; k++)
            title = title || text_starts(f->all->topic.w[k].text, s.w[i].text);
        if (!title)
            return FRAME_NONE;
    }
    return says + 1 < to ? type_at(f, words_part(s, says + 1, to), true, end, old) : FRAME_NONE;
}

/* Performs "add the line X at the end": at the first or last place of the text. */
static enum framed extend(struct frame *f, struct span s, const char *old)
{
    int at = find(s, 1, ENDS), from = 1, to = at;
    bool line = false, end = words_is(s, at, "end|bottom");
    if (!words_is(s, 0, "add|insert|append|put|write|type"))
        return FRAME_NONE;
    if (at == s.n || !are(s, at + 1, s.n, PLACES))
        return add_line(f, s, old);
    while (to > 1 && words_is(s, to - 1, "the|at|to|on|very|its"))
        to--;
    if (!words_is(s, to, "at|to|on")) /* "before the end" */
        return FRAME_NONE;
    for (; from < to && words_is(s, from, "the|a|line|text|words|word|new"); from++)
        line = line || words_is(s, from, "line");
    if (from == to || (!line && (to - from > 1 || !s.w[from].quoted)))
        return FRAME_NONE;
    return type_at(f, words_part(s, from, to), line, end, old);
}

/* ---- writing ------------------------------------------------------------------------------------------- */

/* Finds the text that a clause writes: after its verb, or after "saying".  *described: it may describe the
 * text in place of being it.  Returns n 0: none. */
static struct span find_text(const struct planner *p, const struct clause *k, bool *described)
{
    struct span s = k->all, none = {.n = 0};
    bool writes = k->deed == DEED_WRITE, marked = false;
    int from = writes ? 1 : 0, file = file_word(p),
        named = file < 0 ? -1 : file - (int)(s.w - p->clauses.words.w);
    if (!writes || find(s, 1, "saying|says|containing") < s.n) {
        from = find(s, from, SAYING);
        for (int i = writes; i < from && i < s.n; i++)
            if (i != named && !words_is(s, i, HEADS) && !(named >= 0 && words_is(s, i, NAMED)))
                return none;
        marked = from < s.n;
        if (!writes && !(marked && find(s, 0, "file|note|document|text") < s.n))
            return none;
        from++;
    }
    while (words_is(s, from, "down|in") ||
           (words_is(s, from, "just|only") && from + 1 < s.n && s.w[from + 1].quoted) ||
           (words_is(s, from, "the|this") && words_is(s, from + 1, NOUNS)))
        from++;
    if (from + 1 < s.n && words_is(s, from, "text|words|word|line|sentence|number") &&
        (s.w[from + 1].quoted || words_is(s, from - 1, "the"))) {
        from++;
        marked = true;
    }
    if (from >= s.n)
        return none;
    int to = s.w[from].quoted ? from + 1 : s.n;
    for (int i = from + 1; i < to; i++)
        if ((words_is(s, i, "in|into") && words_is(s, i + 1, "the|a|this|my") && words_is(s, i + 2, NOUNS)) ||
            (i + 1 == named && words_is(s, i, "in|into|to|as|under")))
            to = i;
    for (int i = to; i < s.n; i++)
        if (i != named && !words_is(s, i, PLACES) && !(named >= 0 && words_is(s, i, NAMED)))
            return none;
    bool quoted = s.w[from].quoted, plain = words_is(s, 0, "write|type|jot") || marked || to < s.n;
    bool hard = words_is(s, 0, "enter|input") && clause_is_hard(s, from, false) && from + 1 == to;
    int end = find(s, from, ENDS); /* "at the end of the letter" */
    *described = !quoted && ((end < to && words_is(s, end - 1, "the|very")) ||
                             (!marked && words_is(s, from, "a|an|the|my|your|some|our")) ||
                             words_is(s, from, DANGLING) || (!plain && !hard));
    return words_part(s, from, to);
}

enum framed frame_edit(struct frame *f, const struct clause *k)
{
    const struct candidate *c = find_editor(f);
    bool described = false;
    enum framed done = c && !*c->name ? clear(f, k->all) : FRAME_NONE;
    if (done == FRAME_NONE && c && !*c->name)
        done = extend(f, k->all, c->e->value);
    if (done != FRAME_NONE)
        return done;
    struct span s = find_text(f->p, k, &described);
    if (!s.n)
        return FRAME_NONE;
    if (described)
        return frame_unsure(f, "'%.60s' may describe the text or be a command; quote a text", k->text);
    if (!c)
        return frame_unsure(f, "'%.60s' does not say into which field", k->text);
    autofree char *written = words_text(s);
    return frame_enter(f, c, written, 1);
}
