/* match.c - words, stems and synonyms; see match.h. */
#include "planner/match.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "planner/lexicon.h"

#include <ctype.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>

enum { PREFIX = 4, PREFIX_SURE = 6, ENDING = 3 }; /* letters: "book" is not the beginning of "bookmark" */

static const char *const groups[] = {SYNONYMS};

static void lower(const char *word, char out[MATCH_WORD])
{
    size_t n = 0;
    for (; word[n] && n + 1 < MATCH_WORD; n++)
        out[n] = (char)tolower((unsigned char)word[n]);
    out[n] = 0;
}

bool match_is_filler(const char *word)
{
    char low[MATCH_WORD];
    lower(word, low);
    return text_choice(FILLERS, low) >= 0;
}

int match_number(const char *word)
{
    static const char ones[] = "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|"
                               "fourteen|fifteen|sixteen|seventeen|eighteen|nineteen";
    static const char tens[] = "-|-|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred";
    char low[MATCH_WORD];
    lower(word, low);
    char *dash = strchr(low, '-');
    if (dash)
        *dash++ = 0;
    int n = text_choice(ones, low), ten = n < 0 ? text_choice(tens, low) : -1;
    int one = dash && ten >= 2 && ten < 10 ? text_choice(ones, dash) : 0;
    return dash ? (one > 0 && one < 10 ? 10 * ten + one : -1) : n >= 0 ? n : ten >= 2 ? 10 * ten : -1;
}

static void add_word(struct match_words *out, char *word, size_t n, bool hard)
{
    while (n && strchr(".'-_", word[n - 1]))
        n--;
    word[n] = 0;
    if (n > 2 && !strcmp(word + n - 2, "'s"))
        word[n - 2] = 0;
    if (*word && out->n < MATCH_WORDS) {
        out->w[out->n] = (struct match_word){.hard = hard};
        snprintf(out->w[out->n++].text, MATCH_WORD, "%s", word);
    } else if (*word) {
        out->cut = true;
    }
}

void match_split(const char *text, bool hard, struct match_words *out)
{
    char word[MATCH_WORD];
    size_t used = 0, len;
    int before = out->n;
    uint32_t cp = 0;
    for (size_t n = strlen(text), i = 0; i <= n; i += len) {
        int got = i < n ? utf8_decode(text + i, n - i, &cp) : 0;
        len = got > 0 ? (size_t)got : 1;
        bool inside = used && got > 0 && cp < 128 && strchr(".@'-_", (int)cp);
        if (got > 0 && (g_unichar_isalnum(cp) || inside)) {
            char out8[4];
            int k = utf8_encode((uint32_t)g_unichar_tolower(cp), out8);
            if (used + (size_t)k < sizeof word) {
                memcpy(word + used, out8, (size_t)k);
                used += (size_t)k;
            } else {
                out->cut = true;
            }
        } else if (used) {
            add_word(out, word, used, hard);
            used = 0;
        }
    }
    if (out->n > before || strlen(text) >= MATCH_WORD)
        return;
    snprintf(word, sizeof word, "%s", text + strspn(text, " "));
    if (*word && out->n < MATCH_WORDS) { /* signs alone: "=" */
        out->w[out->n] = (struct match_word){.hard = hard};
        snprintf(out->w[out->n++].text, MATCH_WORD, "%s", word);
    }
}

struct match_words match_words_of(const char *text)
{
    struct match_words w = {.n = 0};
    match_split(text, false, &w);
    return w;
}

/* Writes a word without its ending. */
static void stem(const char *word, char out[MATCH_WORD])
{
    size_t n = 0;
    memset(out, 0, MATCH_WORD);
    for (const char *at = word; *at; at++) /* "Wi-Fi" */
        if (n + 1 < MATCH_WORD && (*at != '-' || isdigit((unsigned char)*word)))
            out[n++] = *at;
    if (isdigit((unsigned char)word[0]) || strpbrk(word, ".@"))
        return;
    if (n > 4 && text_ends(out, "ies"))
        snprintf(out + n - 3, 2, "y");
    else if (n > 4 && (text_ends(out, "sses") || text_ends(out, "ches") || text_ends(out, "xes")))
        out[n - 2] = 0;
    else if (n > 3 && out[n - 1] == 's' && out[n - 2] != 's')
        out[n - 1] = 0;
    n = strlen(out);
    if (n > 5 && text_ends(out, "ing"))
        out[n -= 3] = 0;
    else if (n > 4 && text_ends(out, "ed"))
        out[n -= 2] = 0;
    if (n > 3 && out[n - 1] == out[n - 2] && !strchr("aeiouls", out[n - 1]))
        out[--n] = 0;
    if (n > 3 && out[n - 1] == 'e')
        out[n - 1] = 0;
}

static bool synonyms(const char *a, const char *b)
{
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (text_choice(groups[i], a) >= 0 && text_choice(groups[i], b) >= 0)
            return true;
    return false;
}

float match_alike(const char *a, const char *b)
{
    char x[MATCH_WORD], y[MATCH_WORD];
    for (; a[0] == '0' && isdigit((unsigned char)a[1]);) /* "09:40" */
        a++;
    for (; b[0] == '0' && isdigit((unsigned char)b[1]);)
        b++;
    if (!strcmp(a, b))
        return 1;
    if (isdigit((unsigned char)*a) != isdigit((unsigned char)*b)) { /* "three", "3" */
        int n = match_number(isdigit((unsigned char)*a) ? b : a);
        snprintf(x, sizeof x, "%d", n);
        return n >= 0 && !strcmp(isdigit((unsigned char)*a) ? a : b, x) ? 1 : 0;
    }
    stem(a, x);
    stem(b, y);
    if (!strcmp(x, y))
        return 0.95F;
    size_t n = strlen(x), m = strlen(y), least = n < m ? n : m, most = n < m ? m : n;
    bool near = least >= PREFIX_SURE || (least >= PREFIX && most - least <= ENDING);
    if (near && !strncmp(x, y, least) && isalpha((unsigned char)*x) && strcmp(x, "with") != 0 &&
        strcmp(y, "with") != 0) /* "without" */
        return 0.75F;
    return synonyms(a, b) || synonyms(x, y) ? 0.7F : 0;
}

float match_among(const struct match_word *w, const struct match_words *all)
{
    float best = 0;
    for (int i = 0; i < all->n; i++) {
        float v = match_alike(w->text, all->w[i].text);
        best = v > best && (!w->hard || v > 0.9F) ? v : best;
    }
    return best;
}

bool match_within(const struct match_words *a, const struct match_words *b)
{
    for (int i = 0; i < a->n; i++)
        if (match_among(&a->w[i], b) < 0.9F)
            return false;
    return a->n > 0;
}
