/* other_words.c - replaces names and texts of a reply that are wrong.
 *
 * A small model makes mistakes while it copies: it completes the name of one field with that of another,
 * cuts a name of two words, or types a text twice.  The screen or the task then shows which words are
 * possible, and the model chooses among them: a beam search over these words alone, which is decoding
 * constrained to a trie (De Cao et al. 2021).
 */
#include "pocket/coverage.h"

#include "actions/syntax.h"
#include "base/err.h"
#include "pocket/private.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CANDIDATES = 16, LABELS = 32, PIECES = 128, SHORTEST_NAME = 3, BEGINNING = 2 };

static const double min_probability = 1e-4; /* minimum probability of another name */
/* Minimum log-probabilities of a label that replaces a name, and of another text. */
static const double min_label = -10, min_text = -17;

/* Returns the likeliest values of a slot of the current reply: one of n words or, if words is NULL, any.  -1
 * with e. */
static int search(const struct review *v, enum slot_kind kind, const char *const *words, int n,
                  struct slot *slot, struct beam_candidate *out, struct err *e)
{
    return v->s->search(v->s, kind, words, n, slot, out, CANDIDATES, e);
}

/* Replaces the words of a slot if the log-probability of the new ones exceeds min_logprob. */
static int replace_slot(const struct review *v, const char *by, const struct slot *slot, const char *words,
                        double min_logprob, struct err *e)
{
    const struct generated *raw = v->s->raw;
    min_logprob += generated_prefix_logprob(raw, slot->begin);
    char *begins = xasprintf("%.*s%s%s", (int)slot->begin, raw->text.data, words,
                             v->s->dialect->syntax->word_end[slot->kind]);
    int rc = v->s->resample(v->s, by, begins, &min_logprob, e);
    free(begins);
    return rc;
}

/* ---- names -------------------------------------------------------------------------------------------- */

/* Returns whether the name of a reply may stand for a label.  An element to click may be described by its
 * class ("text box"), so both must begin alike; a field to fill in must be empty. */
static bool may_be_meant(const struct review *v, const char *label)
{
    const struct action *last = last_action(v);
    bool fits = last->kind == ACT_TYPE ? !is_filled(&v->writes, label)
                                       : !strncasecmp(label, last->element, BEGINNING);
    return fits && !strchr(label, '<');
}

/* Replaces a name that mixes two by the likeliest label on the screen.  Returns 1 if there was one; -1 with
 * e. */
static int replace_by_label(const struct review *v, enum locate_for what, struct err *e)
{
    char labels[LABELS][LOCATE_NAME];
    const char *words[LABELS];
    struct beam_candidate found[CANDIDATES];
    struct slot slot;
    int n = labels_read(&v->seen->map, &v->seen->text, what, labels, LABELS), meant = 0;
    for (int i = 0; i < n; i++)
        if (may_be_meant(v, labels[i]))
            words[meant++] = labels[i];
    n = search(v, SLOT_NAME, words, meant, &slot, found, e);
    if (n <= 0)
        return n;
    return replace_slot(v, "label", &slot, found[0].text, min_label, e) ? -1 : 1;
}

/* Replaces a name that is neither on the screen nor in the task by the likeliest other one that labels an
 * element, or a field if the action types. */
static int fix_name(const struct review *v, struct err *e)
{
    const struct action *last = last_action(v);
    struct beam_candidate found[CANDIDATES];
    struct thing is;
    struct slot slot;
    enum locate_for what = last->kind == ACT_TYPE ? LOCATE_TYPE : LOCATE_CLICK;
    if ((last->kind != ACT_CLICK && last->kind != ACT_TYPE) || strlen(last->element) < 2 ||
        words_find_last(v->s->task, last->element))
        return 0;
    if (is_misspelt(&v->seen->text, last->element)) {
        int replaced = replace_by_label(v, what, e);
        if (replaced)
            return replaced < 0 ? -1 : 0;
    }
    if (may_be_written(&v->seen->text, last->element))
        return 0;
    int n = search(v, SLOT_NAME, NULL, 0, &slot, found, e);
    for (int i = 0; i < n; i++)
        if (found[i].p > min_probability &&
            thing_of_name(&v->seen->map, &v->seen->text, found[i].text, true, what, &is) &&
            (what == LOCATE_CLICK || !is_filled(&v->writes, found[i].text)))
            return replace_slot(v, "name", &slot, found[i].text, -INFINITY, e);
    return n < 0 ? -1 : 0;
}

/* ---- texts -------------------------------------------------------------------------------------------- */

/* Replaces the text to type by the likeliest of n if its log-probability exceeds min_logprob. */
static int type_likeliest(const struct review *v, char (*text)[TASK_NAME], int n, double min_logprob,
                          struct err *e)
{
    struct beam_candidate found[CANDIDATES];
    struct slot slot;
    const char *words[PIECES];
    for (int i = 0; i < n; i++)
        words[i] = text[i];
    n = search(v, SLOT_TEXT, words, n, &slot, found, e);
    return n > 0 ? replace_slot(v, "text", &slot, found[0].text, min_logprob, e) : n;
}

int type_one_of(const struct review *v, char (*text)[TASK_NAME], int n, struct err *e)
{
    return type_likeliest(v, text, n < PIECES ? n : PIECES, -INFINITY, e);
}

/* Removes phrases that name a button, which is pressed and not typed.  Returns how many are left. */
static int without_buttons(const struct review *v, char (*piece)[TASK_NAME], int n)
{
    struct thing is;
    int kept = 0;
    for (int i = 0; i < n; i++) {
        const char *last = strrchr(piece[i], ' ') ? strrchr(piece[i], ' ') + 1 : piece[i];
        if (!named_element(v, last, &is) || !is.button)
            memmove(piece[kept++], piece[i], sizeof *piece);
    }
    return kept;
}

/* Replaces a text that was typed before by the likeliest phrase of the task that was not. */
static int fix_repeated_text(const struct review *v, struct err *e)
{
    const struct action *last = last_action(v);
    int standing =
        last->kind == ACT_TYPE && last->text && *last->text ? times_standing(&v->writes, last->text) : 0;
    if (!standing || words_count(v->s->task, last->text) > standing)
        return 0;
    char(*piece)[TASK_NAME] = xmalloc(PIECES, sizeof *piece);
    char *said = xasprintf("%s\n%s", v->before, last->element);
    int n = without_buttons(v, piece, task_pieces(v->s->task, said, piece, PIECES - 1));
    int rc = type_likeliest(v, piece, n, min_text, e);
    free(said);
    free(piece);
    return rc;
}

/* Replaces a text whose first word is a name of the task but whose rest is not by the likeliest phrase
 * with the same first word. */
static int fix_wrong_end(const struct review *v, struct err *e)
{
    const struct action *last = last_action(v);
    size_t first = last->text ? strcspn(last->text, " ") : 0;
    if (last->kind != ACT_TYPE || first < SHORTEST_NAME || !last->text[first] ||
        !isupper((unsigned char)*last->text) || words_find_last(v->s->task, last->text))
        return 0;
    char *near = copied_text(last->text, v->s->task);
    char(*piece)[TASK_NAME] = xmalloc(PIECES, sizeof *piece);
    int n = near ? 0 : task_pieces(v->s->task, v->before, piece, PIECES - 1), kept = 0;
    for (int i = 0; i < n; i++)
        if (!strncmp(piece[i], last->text, first + 1))
            memmove(piece[kept++], piece[i], sizeof *piece);
    int rc = type_likeliest(v, piece, kept, -INFINITY, e);
    free(piece);
    free(near);
    return rc;
}

/* Completes a text that is half of a two-word name in the task. */
static int fix_half_name(const struct review *v, struct err *e)
{
    const struct action *last = last_action(v);
    char longer[2][TASK_NAME];
    if (last->kind != ACT_TYPE || !last->text || !*last->text)
        return 0;
    char *now = reply_words(v->s->text), *said = xasprintf("%s\n%s", v->before, now);
    int n = task_longer_names(v->s->task, last->text, said, longer);
    free(now);
    free(said);
    return type_likeliest(v, longer, n, min_text, e);
}

int fix_words(const struct review *v, struct err *e)
{
    return fix_name(v, e) || fix_repeated_text(v, e) || fix_wrong_end(v, e) || fix_half_name(v, e) ? -1 : 0;
}
