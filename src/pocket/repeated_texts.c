/* repeated_texts.c - replaces a text that a small model types twice.
 *
 * The model chooses among the phrases of the task that no reply has mentioned: a beam search over these words
 * alone, which is decoding constrained to a trie (De Cao et al. 2021).
 */
#include "pocket/coverage.h"

#include "actions/syntax.h"
#include "base/err.h"

#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 16, PIECES = 128 };

static const double min_text = -17; /* minimum log-probability of another text */

/* Replaces the text to type by the likeliest of n. */
static int type_likeliest(const struct review *v, char (*text)[TASK_NAME], int n, struct err *e)
{
    const struct generated *raw = v->s->raw;
    struct beam_candidate found[CANDIDATES];
    struct slot slot;
    const char *words[PIECES];
    for (int i = 0; i < n; i++)
        words[i] = text[i];
    n = v->s->search(v->s, SLOT_TEXT, words, n, &slot, found, CANDIDATES, e);
    if (n <= 0)
        return n;
    double min_logprob = min_text + generated_prefix_logprob(raw, slot.begin);
    autofree char *begins = xasprintf("%.*s%s%s", (int)slot.begin, raw->text.data, found[0].text,
                                      v->s->dialect->syntax->word_end[slot.kind]);
    return v->s->resample(v->s, "text", begins, &min_logprob, e);
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

int fix_repeated_text(const struct review *v, struct err *e)
{
    const struct action *last = last_action(v);
    int standing =
        last->kind == ACT_TYPE && last->text && *last->text ? times_standing(&v->writes, last->text) : 0;
    if (!standing || words_count(v->s->task, last->text) > standing)
        return 0;
    char(*piece)[TASK_NAME] = xmalloc(PIECES, sizeof *piece);
    autofree char *said = xasprintf("%s\n%s", v->before, last->element);
    int n = without_buttons(v, piece, task_pieces(v->s->task, said, piece, PIECES - 1));
    int rc = type_likeliest(v, piece, n, e);
    free(piece);
    return rc;
}
