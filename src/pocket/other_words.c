/* other_words.c - replaces names and texts of a reply that are wrong.
 *
 * A small model makes mistakes while it copies: it completes the name of one field with that of another, or
 * types a text twice.  The screen or the task then shows which words are
 * possible, and the model chooses among them: a beam search over these words alone, which is decoding
 * constrained to a trie (De Cao et al. 2021).
 */
#include "pocket/coverage.h"

#include "actions/syntax.h"
#include "base/err.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CANDIDATES = 16, LABELS = 32, PIECES = 128, BEGINNING = 2 };

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

/* Replaces a name that mixes two by the likeliest label on the screen: one that is in neither the task nor
 * the recognized text, which was clearly read. */
static int fix_name(const struct review *v, struct err *e)
{
    const struct action *last = last_action(v);
    char labels[LABELS][LOCATE_NAME];
    const char *words[LABELS];
    struct beam_candidate found[CANDIDATES];
    struct slot slot;
    int meant = 0;
    if ((last->kind != ACT_CLICK && last->kind != ACT_TYPE) || strlen(last->element) < 2 ||
        words_find_last(v->s->task, last->element) || !is_misspelt(&v->seen->text, last->element))
        return 0;
    int n = labels_read(&v->seen->map, &v->seen->text, last->kind == ACT_TYPE ? LOCATE_TYPE : LOCATE_CLICK,
                        labels, LABELS);
    for (int i = 0; i < n; i++)
        if (may_be_meant(v, labels[i]))
            words[meant++] = labels[i];
    n = search(v, SLOT_NAME, words, meant, &slot, found, e);
    return n > 0 ? replace_slot(v, "label", &slot, found[0].text, min_label, e) : n;
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

int fix_words(const struct review *v, struct err *e)
{
    return fix_name(v, e) || fix_repeated_text(v, e) ? -1 : 0;
}
