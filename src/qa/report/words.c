/* words.c - see words.h. */
#include "qa/report/words.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "trace/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE = 400 }; /* bytes of a reason */

/* ---- clean text ----------------------------------------------------------------------------------------------------- */

/* Length of a terminal sequence at s[0] == ESC: CSI to its final byte, OSC to BEL or ESC \, else ESC and one byte. */
static size_t escape_length(const char *s, size_t n)
{
    if (n < 2)
        return n;
    size_t i = 2;
    if (s[1] == '[') {
        while (i < n && s[i] >= 0x20 && s[i] < 0x40)
            i++;
        return i < n && s[i] >= 0x40 && s[i] < 0x7f ? i + 1 : i;
    }
    if (s[1] == ']') {
        while (i < n && s[i] != '\a' && s[i] != 0x1b && s[i] != '\n')
            i++;
        return i + (i < n && s[i] == '\a') + (i + 1 < n && s[i] == 0x1b && s[i + 1] == '\\' ? 2 : 0);
    }
    return s[1] >= 0x30 && s[1] < 0x7f ? 2 : 1;
}

static bool is_unwanted(uint32_t cp)
{
    return (cp < 0x20 && cp != '\n' && cp != '\t') || (cp >= 0x7f && cp < 0xa0) ||
           (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069) || (cp & 0xfffe) == 0xfffe;
}

char *words_clean(const char *s, size_t most)
{
    size_t n = s ? strlen(s) : 0;
    struct buf b;
    buf_init(&b, 3 * most + 256);
    if (n > most) {
        size_t cut = n - most;
        while (cut < n && ((unsigned char)s[cut] & 0xc0) == 0x80) /* not in the middle of a character */
            cut++;
        buf_printf(&b, "[the first %zu bytes are left out]\n", cut);
        s += cut;
        n -= cut;
    }
    while (n) {
        uint32_t cp = 0;
        int len = utf8_decode(s, n, &cp);
        size_t step = len > 0 ? (size_t)len : 1;
        if (len < 0)
            buf_puts(&b, "\xef\xbf\xbd");
        else if (cp == 0x1b)
            step = escape_length(s, n);
        else if (!is_unwanted(cp))
            buf_put(&b, s, step);
        s += step;
        n -= step;
    }
    char *clean = buf_take(&b);
    buf_free(&b);
    return clean;
}

char *words_line(const char *s, size_t most)
{
    struct buf head;
    size_t n = s ? strlen(s) : 0, kept = n > 4 * most + 64 ? 4 * most + 64 : n;
    buf_init(&head, kept + 1);
    buf_put(&head, s ? s : "", kept);
    char *line = words_clean(head.data, kept + 1);
    buf_free(&head);
    size_t to = 0;
    for (size_t i = 0; line[i]; i++) { /* breaks and runs of blanks are one blank */
        char c = line[i] == '\n' || line[i] == '\t' ? ' ' : line[i];
        if (c != ' ' || (to && line[to - 1] != ' '))
            line[to++] = c;
    }
    while (to && line[to - 1] == ' ')
        to--;
    bool cut = to > most || kept < n;
    to = to > most ? utf8_valid_prefix(line, most) : to;
    line[to] = 0;
    if (!cut)
        return line;
    char *shorter = xasprintf("%s...", line);
    free(line);
    return shorter;
}

/* ---- a result in words ---------------------------------------------------------------------------------------------- */

const struct attempt *words_last(const struct result *r)
{
    return r->n ? &r->attempts[r->n - 1] : NULL;
}

const char *words_answer(enum answer a)
{
    static const char *const names[] = {"yes", "no", "unknown", "error", "not asked"};
    return (unsigned)a < sizeof names / sizeof *names ? names[a] : "?";
}

const struct check_result *words_check(const struct attempt *a, enum answer answer)
{
    for (int i = 0; a && i < a->n_checks; i++)
        if (a->checks[i].answer == answer)
            return &a->checks[i];
    return NULL;
}

static int count_checks(const struct attempt *a, enum answer answer)
{
    int n = 0;
    for (int i = 0; i < a->n_checks; i++)
        n += a->checks[i].answer == answer;
    return n;
}

/* "shell: curl ...: expected exit code 0, got 1 (and 2 more)" */
static char *why_check(const struct attempt *a, enum answer answer, const char *otherwise)
{
    const struct check_result *c = words_check(a, answer);
    const char *detail = c->detail ? c->detail : c->output && *c->output ? c->output : otherwise;
    int more = count_checks(a, answer) - 1;
    const char *about =
        c->check->text && c->detail && strstr(c->detail, c->check->text) ? NULL : c->check->name;
    char *line = words_line(detail, LINE), *name = words_line(about, LINE / 4), *text;
    text = xasprintf("%s%s%s", name, *name ? ": " : "", line); /* once is enough of what it looks for */
    free(line), free(name);
    if (more > 0) {
        line = text;
        text = xasprintf("%s (and %d more)", line, more);
        free(line);
    }
    return text;
}

static char *why_agent(const struct attempt *a)
{
    if (a->error && *a->error)
        return words_line(a->error, LINE);
    const char *css;
    char *status = words_line(a->status, 40), *answer = words_line(a->answer, LINE), *text;
    if (!strcmp(status, "infeasible"))
        text = xasprintf("the agent says that it cannot be done%s%s", *answer ? ": " : "", answer);
    else if (!*status || !strcmp(status, "answered"))
        text = xstrdup("a check was not asked");
    else
        text = xasprintf("the agent came to no end of its own: %s", report_status_words(status, &css));
    free(status), free(answer);
    return text;
}

static char *why_claimed(const struct attempt *a)
{
    char *answer = words_line(a ? a->answer : NULL, LINE), *text;
    text = *answer ? xasprintf("no check confirms what the agent says: %s", answer)
                   : xstrdup("no check confirms what the agent says");
    free(answer);
    return text;
}

static char *why_passed(const struct result *r)
{
    if (r->flaky != FLAKY_NOT) {
        char *where = words_line(r->flaky_where, LINE);
        char *text = xasprintf("flaky, passed on attempt %d: %s%s%s", r->n, flaky_meaning(r->flaky),
                               *where ? "; " : "", where);
        free(where);
        return text;
    }
    return xstrdup(r->judged ? "confirmed by nothing but a model" : "");
}

char *words_why(const struct result *r)
{
    const struct attempt *a = words_last(r);
    if (r->outcome == OUTCOME_PASSED)
        return why_passed(r);
    if (r->outcome == OUTCOME_SKIPPED)
        return words_line(r->reason ? r->reason : "it had not ended when this was written", LINE);
    if (r->outcome == OUTCOME_STOPPED)
        return xstrdup("stopped by a person");
    if (r->outcome == OUTCOME_CLAIMED)
        return why_claimed(a);
    if (!a)
        return words_line(r->reason ? r->reason : "never began", LINE);
    if (r->outcome == OUTCOME_ERROR)
        return words_check(a, ANSWER_ERROR) && !a->error
                   ? why_check(a, ANSWER_ERROR, "the check could not be made")
                   : why_agent(a);
    if (r->outcome == OUTCOME_INCONCLUSIVE)
        return words_check(a, ANSWER_UNKNOWN) ? why_check(a, ANSWER_UNKNOWN, "nobody knows") : why_agent(a);
    if (words_check(a, ANSWER_NO) && !a->crashed)
        return why_check(a, ANSWER_NO, "no");
    if (r->test->expect_fail)
        return xstrdup("was expected to fail, and all is as it should be");
    return why_agent(a);
}

char *words_kind(const struct result *r)
{
    const struct attempt *a = words_last(r);
    const struct check_result *c = NULL;
    if (r->outcome == OUTCOME_PASSED)
        return xstrdup("");
    if (r->outcome == OUTCOME_FAILED)
        c = words_check(a, ANSWER_NO);
    else if (r->outcome == OUTCOME_INCONCLUSIVE)
        c = words_check(a, ANSWER_UNKNOWN);
    else if (r->outcome == OUTCOME_ERROR && (!a || !a->error_kind))
        c = words_check(a, ANSWER_ERROR);
    if (c)
        return xasprintf("check:%s", check_kind_name(c->check->kind));
    if (r->outcome == OUTCOME_ERROR && a && a->error_kind)
        return words_line(a->error_kind, 40);
    if (r->outcome == OUTCOME_FAILED)
        return xstrdup(r->test->expect_fail ? "expect-fail" : "agent");
    return xstrdup(outcome_name(r->outcome));
}

bool words_wants_a_look(const struct result *r)
{
    return r->outcome != OUTCOME_PASSED && r->outcome != OUTCOME_SKIPPED;
}

const struct result **words_worst_first(const struct results *r)
{
    static const enum outcome order[] = {OUTCOME_FAILED,       OUTCOME_ERROR,   OUTCOME_CLAIMED,
                                         OUTCOME_INCONCLUSIVE, OUTCOME_STOPPED, OUTCOME_SKIPPED,
                                         OUTCOME_PASSED};
    const struct result **list = xcalloc((unsigned long)r->n + 1, sizeof *list);
    int n = 0;
    for (size_t k = 0; k < sizeof order / sizeof *order; k++)
        for (int i = 0; i < r->n; i++)
            if (r->results[i].outcome == order[k])
                list[n++] = &r->results[i];
    return list;
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

static char *absolute(const char *path)
{
    char here[4096];
    while (!strncmp(path, "./", 2))
        path += 2;
    if (*path == '/' || !getcwd(here, sizeof here))
        return xstrdup(path);
    return *path && strcmp(path, ".") != 0 ? xasprintf("%s/%s", here, path) : xstrdup(here);
}

char *words_path(const char *from, const char *path)
{
    char *base = absolute(from), *whole = absolute(path);
    size_t n = strlen(base);
    while (n > 1 && base[n - 1] == '/')
        n--;
    bool below = n > 1 && !strncmp(whole, base, n) && whole[n] == '/' && !strstr(whole + n, "/../");
    char *seen = xstrdup(below ? whole + n + 1 : whole);
    free(base);
    free(whole);
    return seen;
}

char *words_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return xstrdup(".");
    return slash == path ? xstrdup("/") : xasprintf("%.*s", (int)(slash - path), path);
}

int words_last_steps(const struct story *s, int *steps, int most)
{
    int n = 0;
    for (int i = s->n - 1; i >= 0 && n < most; i--) {
        bool seen = s->steps[i].frame < 0;
        for (int k = 0; k < n; k++)
            seen = seen || s->steps[steps[k]].frame == s->steps[i].frame;
        if (!seen)
            steps[n++] = i;
    }
    for (int i = 0; i < n / 2; i++) {
        int other = steps[i];
        steps[i] = steps[n - 1 - i];
        steps[n - 1 - i] = other;
    }
    return n;
}

int words_last_frames(const char *run_dir, int *numbers, int most)
{
    struct record r;
    struct story s;
    if (!run_dir || record_open(&r, run_dir, NULL))
        return 0;
    story_make(&s, &r);
    int n = words_last_steps(&s, numbers, most);
    for (int i = 0; i < n; i++)
        numbers[i] = s.steps[numbers[i]].frame;
    story_free(&s);
    record_free(&r);
    return n;
}

char *words_frame_path(const char *run_dir, int number)
{
    return xasprintf("%s/frames/%06d.png", run_dir, number);
}
