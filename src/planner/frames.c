/* frames.c - clauses that name no element of the window: sums for a calculator, and closing the window. */
#include "planner/planner_impl.h"

#include "plain/resolve.h"
#include "planner/lexicon.h"
#include "planner/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sums ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *words, *joint, *sign; /* joint: between the numbers, if the word stands before them */
} operations[] = {
    {"plus|+|sum|add|total", "and|to|plus|with", "+"},
    {"times|x|\xc3\x97|*|multiplied|multiply|product", "and|by|with|times", "*"},
    {"divided|/|\xc3\xb7|over|divide", "by|through", "/"},
    {"minus|-|less|subtract|deduct|take", "from", "-"},
};

/* Writes the digits of a number word, or a sum without spaces ("12*7").  Returns false for other words. */
static bool read_number(const char *text, char out[MATCH_WORD])
{
    snprintf(out, MATCH_WORD, "%.*s", (int)strcspn(text, "?="), text);
    int n = match_number(out);
    if (n >= 0)
        snprintf(out, MATCH_WORD, "%d", n);
    size_t end = strlen(out);
    return end && isdigit((unsigned char)*out) && isdigit((unsigned char)out[end - 1]) &&
           strspn(out, "0123456789.+-*/") == end;
}

/* Writes the keys of a sum in other words: "six notebooks at 3.75 apiece, how much is that?" */
static bool sum_told(struct span s, char keys[SUM_KEYS])
{
    char number[2][MATCH_WORD], text[MATCH_WORD];
    int n = 0, at[2] = {0, 0}, size;
    bool asked = false, each = false, shared = false, parts = false, minus = false, from = false,
         plus = false, people = false;
    for (int i = 0; i < s.n; i += size ? size : 1) {
        size = words_is(s, i, "one") ? 0 : quantity_number(s, i, text);
        if (size && n == 2)
            return false;
        if (size) {
            at[n] = i;
            memcpy(number[n++], text, sizeof text);
            people =
                people || (n == 1 && words_is(s, i + size, "of") && words_is(s, i + size + 1, "us|them"));
            continue;
        }
        if (words_is(
                s, i,
                "one|percent|squared|square|root|power|twice|double|half|more|date|day|time|hours|old") ||
            strpbrk(s.w[i].text, "%0123456789"))
            return false;
        asked = asked || words_is(s, i, ASKS_TOLD);
        shared = shared || words_is(s, i, "pay|pays|owe|owes|get|gets|share|shared|divide|divided|split");
        each = each || (words_is(s, i, "apiece|each|per") && !parts);
        parts = parts || words_is(s, i, "share|shared|sharing|split|divide|divided|among|between");
        minus = minus || words_is(s, i, "away|spent|spend|subtract|deduct|left");
        from = from || (n == 1 && words_is(s, i, "from"));
        plus = plus || words_is(s, i, "altogether|together|total|sum|add");
    }
    bool swap = (minus && from) || (parts && people);
    if (each && shared)
        return false;
    const char *sign = parts ? "/" : minus ? "-" : each ? "*" : plus ? "+" : "";
    if (n != 2 || !asked || !*sign || (parts && minus) || at[0] == at[1] ||
        (parts && !people && !(words_is(s, at[1] - 1, "among|between|by"))))
        return false;
    snprintf(keys, SUM_KEYS, "%s%s%s=", number[swap], sign, number[!swap]);
    return true;
}

bool sum_read(struct span s, char keys[SUM_KEYS])
{
    char number[MATCH_WORD], first[MATCH_WORD] = "";
    const char *sign = NULL, *joint = NULL; /* sign: waits for the number after it */
    autobuf b = buf_of(SUM_KEYS - 2);
    int numbers = 0;
    keys[0] = 0;
    for (int i = 0; i < s.n; i++) {
        bool known = words_is(s, i, "?") || (joint && (numbers == 1 || sign) && words_is(s, i, joint));
        for (size_t k = 0; k < sizeof operations / sizeof *operations && !known; k++) {
            if (!words_is(s, i, operations[k].words) || sign)
                continue;
            sign = operations[k].sign;
            joint = numbers ? "by|with" : operations[k].joint;
            known = true;
        }
        if (known || (!numbers && words_is(s, i, ASKS_SUM)) || words_is(s, i, "please|thanks"))
            continue;
        if (!read_number(s.w[i].text, number) || (numbers && !sign))
            return sum_told(s, keys);
        if (!numbers++ && sign) /* "subtract 15 from 40" */
            snprintf(first, sizeof first, "%s", number);
        else if (*first && numbers == 2)
            buf_printf(&b, "%s%s%s", *sign == '-' ? number : first, sign, *sign == '-' ? first : number);
        else
            buf_printf(&b, "%s%s", numbers > 1 ? sign : "", number);
        sign = !b.len ? sign : NULL;
    }
    bool is = b.len && !b.full && !sign && s.n > 1 && strpbrk(b.data, "+-*/");
    if (is)
        snprintf(keys, SUM_KEYS, "%s=", b.data);
    return is;
}

enum framed frame_sum(struct frame *f)
{
    for (const char *at = f->p->sum; *at; at++) {
        char key[2] = {*at, 0};
        const struct candidate *found = NULL;
        for (int i = 0; i < f->all->n && !found; i++)
            if (f->all->c[i].kind & (CANDIDATE_PRESS | CANDIDATE_TICK) &&
                resolve_same(f->all->c[i].name, key))
                found = &f->all->c[i];
        if (!found)
            return frame_unsure(f, "this window has no button '%s'", key);
        if (frame_use(f, found, USE_PRESS, 1) != FRAME_DONE)
            return FRAME_UNSURE;
    }
    return FRAME_DONE;
}

/* ---- new folders --------------------------------------------------------------------------------------- */

#define FOLDER "folder|directory"
#define MAKING                                                                                               \
    "make|create|new|add|a|an|the|another|empty|i|i'd|we|me|us|would|like|want|need|here|in|" FOLDER

struct span folder_name(const struct planner *p, int *clauses)
{
    struct span none = {.n = 0}, all = {p->clauses.words.w, p->clauses.words.n};
    const struct clause *k = &p->clauses.c[p->at.clause];
    if (p->at.clause >= p->clauses.n || p->clauses.nots)
        return none;
    bool folder = false, makes = false;
    int i = (int)(k->all.w - all.w), from = i, to;
    for (; i < all.n && words_is(all, i, MAKING) && !(folder && isupper((unsigned char)*all.w[i].text));
         i++) {
        folder = folder || words_is(all, i, FOLDER);
        makes = makes || words_is(all, i, "make|create|new|add");
    }
    i += words_is(all, i, "called|named|titled|name")                  ? 1
         : words_is(all, i, "call|name") && words_is(all, i + 1, "it") ? 2
                                                                       : 0;
    bool marked = i > from && words_is(all, i - 1, "called|named|titled|it|name");
    if (!folder || !makes || i >= all.n || match_is_filler(all.w[i].text) ||
        words_is(all, i, "after|inside") || (!marked && !clause_is_hard(all, i, false)))
        return none;
    for (to = i + 1;
         to < all.n && !all.w[i].quoted && !all.w[to - 1].after &&
         !words_is(all, to, "in|here|and|then|please|for|to|with|inside|after|under|at|on|of|from|by");)
        to++;
    int end = to;
    while (words_is(all, end, "in|here|please|for|me"))
        end++;
    for (*clauses = 0; p->at.clause + *clauses < p->clauses.n;) {
        const struct clause *c = &p->clauses.c[p->at.clause + *clauses];
        if (c->all.w - all.w >= end)
            break;
        ++*clauses;
        if (c->all.w + c->all.n - all.w > end) /* other words */
            return none;
    }
    return words_part(all, i, to);
}

/* The key that makes a folder in file managers, whose menus tell their items only when they are open. */
enum framed frame_folder(struct frame *f)
{
    int clauses;
    if (!text_ends(f->all->title, "Thunar") && !text_ends(f->all->title, "File Manager") &&
        !text_ends(f->all->title, "Nemo") && !text_ends(f->all->title, "Caja"))
        return FRAME_NONE;
    if (!folder_name(f->p, &clauses).n || f->p->at.clause + clauses < f->p->clauses.n)
        return FRAME_NONE;
    f->out->at.pressed = true;
    return frame_key(f, "ctrl+shift+n") == FRAME_DONE ? FRAME_OPENS : FRAME_UNSURE;
}

/* ---- closing ------------------------------------------------------------------------------------------- */

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

/* Returns whether a word for a kind of program may mean this window. */
static bool is_kind(const struct frame *f, struct span s, int i)
{
    bool editor = false, keys = false, menus = false;
    for (int k = 0; k < f->all->n; k++) {
        const struct candidate *c = &f->all->c[k];
        editor = editor || (c->kind == CANDIDATE_FIELD && c->e->rect.h > EDITOR_HEIGHT);
        keys = keys || !strcmp(c->name, "7");
        menus = menus || c->kind == CANDIDATE_MENU;
    }
    bool manager = words_is(s, i, "file|manager") &&
                   (words_is(s, i + 1, "manager") || words_is(s, i - 1, "file")) && menus && !editor && !keys;
    return words_is(s, i, "window|dialog|form|program|app|application") || manager ||
           (words_is(s, i, "editor") && editor) || (words_is(s, i, "calculator") && keys) ||
           (words_is(s, i, "message|warning|error|notice|information") && only_button(f));
}

/* Returns whether the words mean the window: "this", the program, with words of its title.  A tab or a menu
 * is only a part of it, and the title alone may name another thing: "my account". */
static bool is_window(const struct frame *f, struct span s)
{
    bool noun = false, part = false;
    for (int i = 0; i < s.n; i++) {
        struct match_words word = {.n = 0};
        match_split(s.w[i].text, true, &word);
        if (is_kind(f, s, i))
            noun = true;
        else if (match_within(&word, &f->all->topic))
            part = true;
        else if (!words_is(s, i, "the|my|now|please|it|this|that|again|thanks"))
            return false;
    }
    return noun || !part;
}

/* Returns whether something does more than close, as "Close without saving", or less, as a menu item Close,
 * or may be meant by "quit", which is more than to leave a dialog. */
static bool has_other_close(const struct frame *f, bool quits)
{
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        if (c->kind == CANDIDATE_MENU && resolve_same(c->name, "close"))
            return true;
        if (c->kind == CANDIDATE_PRESS && quits && fill_leaves(c->name))
            return true;
        for (int w = 0; w < c->words.n && c->kind == CANDIDATE_PRESS && c->words.n > 1; w++)
            if (match_alike(c->words.w[w].text, "close") > 0 || match_alike(c->words.w[w].text, "quit") > 0)
                return true;
    }
    return false;
}

/* Returns the item or button Quit or Exit; NULL: none, or two that differ. */
static const struct candidate *find_quit(const struct frame *f)
{
    const struct candidate *found = NULL;
    for (int i = 0; i < f->all->n; i++) {
        const struct candidate *c = &f->all->c[i];
        if (!(c->kind & (CANDIDATE_MENU | CANDIDATE_PRESS)) || c->words.n != 1 ||
            match_alike(c->words.w[0].text, "quit") < 0.7F || resolve_same(c->name, "leave"))
            continue;
        if (found && !candidate_same_command(found, c))
            return NULL;
        found = !found || c->kind == CANDIDATE_MENU ? c : found;
    }
    return found;
}

enum framed frame_close(struct frame *f, const struct clause *k)
{
    const struct candidate *only = only_button(f), *quit = NULL;
    bool quits = words_is(k->all, 0, "quit|exit|leave|shut"), down = words_is(k->rest, 0, "down");
    struct span rest = words_part(k->rest, down, k->rest.n);
    bool noun = words_is(k->all, 0, "leave|shut"); /* "leave it" leaves all as it is */
    for (int i = 0; i < rest.n && noun; i++)
        noun = !is_kind(f, rest, i);
    if (k->deed != DEED_CLOSE || noun || !is_window(f, rest))
        return FRAME_NONE;
    if (words_is(k->all, 0, "dismiss") && !only)
        return FRAME_NONE;
    if (only || (quits && (quit = find_quit(f))))
        return frame_use(f, only ? only : quit, USE_PRESS, 1);
    if (has_other_close(f, quits))
        return frame_unsure(f, "a button does more than close the window");
    struct plain_step step = {.verb = PLAIN_CLOSE};
    f->out->at.pressed = true;
    return frame_add(f, &step, 1);
}
