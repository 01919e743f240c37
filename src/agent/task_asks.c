/* task_asks.c - classifies tasks as questions, and texts as blank answers or bare claims; see task_asks.h. */
#include "agent/task_asks.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Returns whether a question mark (also the full-width and the Arabic one) occurs outside quotes. */
static bool has_question_mark(const char *task)
{
    bool quoted = false;
    for (const char *s = task; *s; s++) {
        if (*s == '"')
            quoted = !quoted;
        bool mark = *s == '?' ? !s[1] || strchr(" \n\t\"')", s[1])
                              : !strncmp(s, "\xef\xbc\x9f", 3) || !strncmp(s, "\xd8\x9f", 2);
        if (mark && !quoted)
            return true;
    }
    return false;
}

bool task_asks(const char *task)
{
    static const char *const words[] = {"what",      "which",     "who",     "whose",   "whom",   "where",
                                        "when",      "why",       "how",     "is",      "are",    "does",
                                        "did",       "was",       "were",    "can",     "read",   "tell",
                                        "report",    "say",       "list",    "count",   "answer", "describe",
                                        "summarize", "summarise", "explain", "find out"};
    while (*task == ' ' || *task == '\n' || *task == '\t')
        task++;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i]);
        if (!strncasecmp(task, words[i], n) && !isalpha((unsigned char)task[n]))
            return true;
    }
    return has_question_mark(task);
}

/* Returns whether a text, ignoring case, white space, quotes, brackets and punctuation, is one of these
 * words. */
static bool says_only(const char *text, const char *const *words, int n)
{
    char bare[16] = "";
    size_t len = 0;
    for (const char *s = text; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c <= ' ' || c == 0x7f || strchr("\"'`()[]{}<>.,;!-_", c))
            continue;
        if (len == sizeof bare - 1)
            return false;
        bare[len++] = (char)tolower(c);
    }
    for (int i = 0; i < n; i++)
        if (!strcmp(bare, words[i]))
            return true;
    return false;
}

bool answer_is_blank(const char *answer)
{
    static const char *const words[] = {"", "null", "undefined", "nil", "nan"};
    return says_only(answer, words, (int)(sizeof words / sizeof *words));
}

bool answer_is_bare_claim(const char *answer)
{
    static const char *const words[] = {"done",     "ok",      "okay",         "finished", "completed",
                                        "complete", "success", "taskcomplete", "yes",      "alldone"};
    return says_only(answer, words, (int)(sizeof words / sizeof *words));
}
