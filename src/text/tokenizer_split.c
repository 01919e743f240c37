/* tokenizer_split.c - reads the pre-tokenizer of a tokenizer.json, which splits text into words before
 * merging.
 *
 * Its Split and ByteLevel steps are compiled to regular expressions, each applied to the parts left by the
 * previous one. */
#include "text/tokenizer_impl.h"

#include <string.h>

enum { MAX_PATTERN = 4096 };

/* GPT-2's split: a ByteLevel step with use_regex. */
static const char gpt2_split[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* Patterns with which known models were trained. */
static const char *const trained_splits[] = {
    /* Tekken: single digits, words by their case. */
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    /* Qwen3.5: marks belong to letters. */
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|"
    " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
    /* Qwen2 and Qwen3. */
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
};

static bool is_trained(const char *pattern)
{
    bool found = false;
    for (size_t i = 0; pattern && i < sizeof trained_splits / sizeof *trained_splits; i++)
        found = found || !strcmp(pattern, trained_splits[i]);
    return found;
}

/* Translates a pattern to PCRE2. Published patterns are written for Oniguruma and Rust's regex, whose \s
 * is Unicode's White_Space; PCRE2's also contains U+180E. Other syntax differences are rejected. */
static int translate_pattern(struct buf *out, const char *p, struct err *e)
{
    int depth = 0; /* nesting of character classes */
    for (; *p; p++) {
        if (*p == '\\' && (p[1] == 's' || p[1] == 'S')) {
            buf_puts(out, *++p == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
            continue;
        }
        if ((*p == '\\' && (p[1] == 'h' || p[1] == 'H')) || (depth && p[0] == '&' && p[1] == '&'))
            return err_set(e, ERR_MODEL, "'%.2s' in a split pattern is not implemented", p);
        buf_putc(out, *p);
        if (*p == '\\' && p[1])
            buf_putc(out, *++p);
        else if (*p == '[')
            depth++;
        else if (*p == ']' && depth)
            depth--;
    }
    return 0;
}

static int compile_split(struct tokenizer *t, const char *pattern, uint32_t flags, struct err *e)
{
    int code;
    PCRE2_SIZE at;
    pcre2_code *re = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, flags, &code, &at, NULL);
    if (!re) {
        PCRE2_UCHAR why[128];
        pcre2_get_error_message(code, why, sizeof why);
        return err_set(e, ERR_MODEL, "split pattern, character %zu: %s", at, (char *)why);
    }
    t->literal[t->n_splits] = flags & PCRE2_LITERAL;
    t->splits[t->n_splits++] = re;
    pcre2_jit_compile(re, PCRE2_JIT_COMPLETE); /* without a JIT, matching is only slower */
    return 0;
}

static int add_split(struct tokenizer *t, const char *pattern, bool literal, struct err *e)
{
    if (t->n_splits == TOKENIZER_MAX_SPLITS || strlen(pattern) > MAX_PATTERN)
        return err_set(e, ERR_MODEL, "too many split steps or too long a pattern");
    if (literal)
        return compile_split(t, pattern, PCRE2_UTF | PCRE2_LITERAL, e);
    autobuf translated = buf_of(16 * MAX_PATTERN);
    int rc = translate_pattern(&translated, pattern, e);
    rc = rc ? rc : compile_split(t, translated.data, PCRE2_UTF | PCRE2_UCP, e);
    return rc;
}

/* Reads a Split step. A split that drops its matches would lose text and is rejected. */
static int read_split(struct tokenizer *t, const json_t *step, struct err *e)
{
    const char *behavior = json_string_value(json_object_get(step, "behavior"));
    const json_t *pattern = json_object_get(step, "pattern");
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *literal = json_string_value(json_object_get(pattern, "String"));
    bool invert = json_is_true(json_object_get(step, "invert"));
    if (!behavior || !(!strcmp(behavior, "Isolated") || (!strcmp(behavior, "Removed") && invert)))
        return err_set(e, ERR_MODEL, "split behaviour '%s' is not implemented", behavior ? behavior : "none");
    if (!regex && !literal)
        return err_set(e, ERR_MODEL, "a split step has no pattern");
    t->trained_split = is_trained(regex);
    return add_split(t, regex ? regex : literal, !regex, e);
}

static int read_step(struct tokenizer *t, const json_t *step, struct err *e)
{
    const char *type = json_string_value(json_object_get(step, "type"));
    if (type && !strcmp(type, "Split"))
        return read_split(t, step, e);
    if (!type || strcmp(type, "ByteLevel") != 0)
        return err_set(e, ERR_MODEL, "pre-tokenizer '%s' is not implemented", type ? type : "none");
    if (json_is_true(json_object_get(step, "add_prefix_space")))
        return err_set(e, ERR_MODEL, "'add_prefix_space' is set, which is not implemented");
    const json_t *use_regex = json_object_get(step, "use_regex");
    return use_regex && !json_is_true(use_regex) ? 0 : add_split(t, gpt2_split, false, e);
}

int tokenizer_read_splits(struct tokenizer *t, const json_t *pre, struct err *e)
{
    const char *type = json_string_value(json_object_get(pre, "type"));
    if (!type || strcmp(type, "Sequence") != 0)
        return read_step(t, pre, e);
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(pre, "pretokenizers"), i, step)
    {
        if (read_step(t, step, e))
            return -1;
    }
    return 0;
}
