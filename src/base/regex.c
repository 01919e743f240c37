/* regex.c - PCRE2 search with limits (regex.h). */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "base/regex.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum {
    MATCH_LIMIT = 100000, /* backtracking steps per position */
    MATCH_MEMORY = 1024,  /* KiB */
};

struct regex {
    pcre2_code *code;
    char *pattern;
};

struct regex *regex_new(const char *pattern, bool any_case, struct err *e)
{
    int why;
    size_t at, len = strlen(pattern);
    if (len > REGEX_MAX) {
        err_set(e, ERR_USAGE, "pattern of %zu bytes; the limit is %d", len, REGEX_MAX);
        return NULL;
    }
    uint32_t how = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | (any_case ? PCRE2_CASELESS : 0);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, len, how, &why, &at, NULL);
    if (!code) {
        unsigned char text[160];
        pcre2_get_error_message(why, text, sizeof text);
        err_set(e, ERR_USAGE, "%s at character %zu of '%.80s'", (const char *)text, at + 1, pattern);
        return NULL;
    }
    struct regex *r = xmalloc(1, sizeof *r);
    *r = (struct regex){code, xstrdup(pattern)};
    return r;
}

void regex_free(struct regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    free(r->pattern);
    free(r);
}

const char *regex_pattern(const struct regex *r)
{
    return r->pattern;
}

int regex_find(const struct regex *r, const char *text, size_t len)
{
    pcre2_match_data *data = pcre2_match_data_create(1, NULL); /* one pair, because only the existence of a
                                                                * match matters */
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    if (!data || !limits)
        die(ERR_ENV, "out of memory");
    pcre2_set_match_limit(limits, MATCH_LIMIT);
    pcre2_set_heap_limit(limits, MATCH_MEMORY);
    int rc = pcre2_match(r->code, (PCRE2_SPTR)text, len, 0, 0, data, limits);
    pcre2_match_context_free(limits);
    pcre2_match_data_free(data);
    return rc == PCRE2_ERROR_NOMATCH ? 0 : rc >= 0 ? 1 : -1;
}
