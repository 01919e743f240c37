/* tiny_vocab.c - see tiny_vocab.h. Writes a tokenizer.json of the published form and parses it. */
#include "tiny_vocab.h"

#include "base/buf.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_JSON = 4 << 20, MAX_WORDS = 4096 };

/* Writes the printable letter for a byte in byte-level vocabularies. */
static void put_byte(struct buf *b, unsigned byte)
{
    unsigned hidden = 0;
    char utf8[4];
    for (unsigned k = 0; k < byte; k++)
        hidden += !((k >= '!' && k <= '~') || (k >= 0xa1 && k <= 0xac) || k >= 0xae);
    bool shown = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    int n = utf8_encode(shown ? byte : 256 + hidden, utf8);
    if (byte == '"' || byte == '\\')
        buf_putc(b, '\\');
    buf_put(b, utf8, (size_t)n);
}

static void put_word(struct buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_byte(b, (unsigned char)s[i]);
}

static bool known(char *const *words, int n, const char *s, size_t len)
{
    for (int i = 0; i < n; i++)
        if (strlen(words[i]) == len && !memcmp(words[i], s, len))
            return true;
    return false;
}

/* Adds all prefixes of the words: each word is merged from its prefix and its last byte. */
static int close_over_beginnings(const char *const *words, int n, char **all)
{
    int count = 0;
    for (int i = 0; i < n; i++)
        if (!known(all, count, words[i], strlen(words[i])))
            all[count++] = xstrdup(words[i]);
    int given = count;
    for (int i = 0; i < given; i++)
        for (size_t len = 2; len < strlen(all[i]); len++)
            if (!known(all, count, all[i], len))
                all[count++] = xasprintf("%.*s", (int)len, all[i]);
    return count;
}

/* Orders by length: a merge needs its parts. */
static int by_length(const void *a, const void *b)
{
    size_t x = strlen(*(char *const *)a), y = strlen(*(char *const *)b);
    return x < y ? -1 : x > y;
}

static void put_vocab(struct buf *b, char **all, int n)
{
    int next = 0;
    buf_puts(b, "\"model\": {\"type\": \"BPE\", \"vocab\": {");
    for (unsigned byte = 0; byte < 256; byte++, next++) {
        buf_printf(b, "%s\"", byte ? ", " : "");
        put_byte(b, byte);
        buf_printf(b, "\": %d", next);
    }
    for (int i = 0; i < n; i++, next++) {
        buf_puts(b, ", \"");
        put_word(b, all[i], strlen(all[i]));
        buf_printf(b, "\": %d", next);
    }
    buf_puts(b, "}, \"merges\": [");
    if (n)
        qsort(all, (size_t)n, sizeof *all, by_length);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(all[i]);
        buf_puts(b, i ? ", \"" : "\"");
        put_word(b, all[i], len - 1);
        buf_putc(b, ' ');
        put_word(b, all[i] + len - 1, 1);
        buf_putc(b, '"');
    }
    buf_puts(b, "]}");
}

static void put_head(struct buf *b, const char *const *added, int nadded, int first)
{
    buf_puts(b, "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [");
    for (int i = 0; i < nadded; i++)
        buf_printf(b,
                   "%s{\"id\": %d, \"content\": \"%s\", \"single_word\": false, \"lstrip\": false, "
                   "\"rstrip\": false, "
                   "\"normalized\": false, \"special\": true}",
                   i ? ", " : "", first + i, added[i]);
    buf_puts(
        b,
        "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
        "\"trim_offsets\": true, \"use_regex\": false}, \"post_processor\": null, \"decoder\": {\"type\": "
        "\"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": false}, ");
}

/* Ends the JSON and parses it. */
static struct tokenizer *finish(struct buf *b)
{
    struct err e = ERR_INIT;
    buf_putc(b, '}');
    struct tokenizer *t = tokenizer_parse(b->data, b->len, &e);
    if (!t)
        die(ERR_FAILED, "the test's own tokenizer: %s", e.text);
    buf_free(b);
    return t;
}

struct tokenizer *tiny_vocab(const char *const *words, int n, const char *const *added, int nadded)
{
    char *all[MAX_WORDS];
    struct buf b;
    int count = close_over_beginnings(words, n, all);
    buf_init(&b, MAX_JSON);
    put_head(&b, added, nadded, 256 + count);
    put_vocab(&b, all, count);
    for (int i = 0; i < count; i++)
        free(all[i]);
    return finish(&b);
}

struct tokenizer *tiny_vocab_large(int n)
{
    static const char *const added[] = {"<SPECIAL_12>"};
    struct buf b;
    buf_init(&b, 16 << 20);
    put_head(&b, added, 1, n);
    buf_puts(&b, "\"model\": {\"type\": \"BPE\", \"vocab\": {");
    for (int i = 0; i < n; i++) {
        char word[16];
        size_t len = 0;
        buf_puts(&b, i ? ", \"" : "\"");
        if (i < 256) {
            put_byte(&b, (unsigned)i);
        } else {
            if (i & 1)
                word[len++] = ' ';
            for (int k = i / 2 + 26; k; k = k / 26)
                word[len++] = (char)('a' + k % 26);
            put_word(&b, word, len);
        }
        buf_printf(&b, "\": %d", i);
    }
    buf_puts(&b, "}, \"merges\": []}");
    return finish(&b);
}

struct tokenizer *tiny_vocab_usual(void)
{
    static const char *const words[] = {
        "{\"",     "\": ",      "\": \"",       "\", \"",   "\"}",          "\"}}",     "null",
        "note",    "thought",   "tool",         "_call",    "_name",        "click",    "_desktop",
        " the",    " and",      "ing",          "er",       "Open",         " file",    "button",
        ", ",      "\n\n",      "10",           "100",      "50",           "999",      "0.",
        "true",    "false",     "left",         "\\n",      "\\\"",         " \"",      "Action",
        "Thought", ": ",        "start_box='(", "')",       "pyautogui",    ".click",   "(x=",
        "```",     "```python", "\xc3\xa9",     "\xe2\x82", "\xe2\x82\xac", "\xf0\x9f", "\xf0\x9f\x99\x82",
        "\"k",     "a\"",       "a\",",         "ctrl",     "'ctrl",        "</",       "<SPECIAL",
        "action",  "element"};
    static const char *const added[] = {"<unk>", "<SPECIAL_12>", "<image>"};
    return tiny_vocab(words, sizeof words / sizeof *words, added, 3);
}

struct tokenizer *tiny_vocab_letters(void)
{
    static const char *const words[] = {"ab", "abc", "ba", "aaa", "cc", "bca", "cab", "bb", "aab", "caba"};
    static const char *const added[] = {"<X>", "<SPECIAL_12>"};
    return tiny_vocab(words, sizeof words / sizeof *words, added, 2);
}
