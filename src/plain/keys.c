/* keys.c - recognizes names of keys and combinations in sentences. */
#include "plain/private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Names that people write, and those that the keyboard knows. */
static const char *const keys[][2] = {
    {"enter", "enter"},
    {"return", "enter"},
    {"escape", "escape"},
    {"esc", "escape"},
    {"tab", "tab"},
    {"space", "space"},
    {"spacebar", "space"},
    {"backspace", "backspace"},
    {"delete", "delete"},
    {"del", "delete"},
    {"insert", "insert"},
    {"home", "home"},
    {"end", "end"},
    {"pageup", "pageup"},
    {"page up", "pageup"},
    {"pagedown", "pagedown"},
    {"page down", "pagedown"},
    {"up", "up"},
    {"down", "down"},
    {"left", "left"},
    {"right", "right"},
    {"arrow up", "up"},
    {"arrow down", "down"},
    {"arrow left", "left"},
    {"arrow right", "right"},
    {"up arrow", "up"},
    {"down arrow", "down"},
    {"left arrow", "left"},
    {"right arrow", "right"},
    {"print screen", "print"},
};
static const char *const modifiers[][2] = {
    {"ctrl", "ctrl"},  {"control", "ctrl"},  {"strg", "ctrl"},   {"alt", "alt"},
    {"option", "alt"}, {"shift", "shift"},   {"super", "super"}, {"meta", "super"},
    {"win", "super"},  {"windows", "super"}, {"cmd", "super"},   {"command", "super"},
};

static const char *find(const char *const table[][2], size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (!strcasecmp(table[i][0], word))
            return table[i][1];
    return NULL;
}

static bool is_function_key(const char *word)
{
    char *end;
    long n = tolower((unsigned char)word[0]) == 'f' && isdigit((unsigned char)word[1])
                 ? strtol(word + 1, &end, 10)
                 : 0;
    return n >= 1 && n <= 24 && !*end;
}

/* Appends the key at the end of a combination. */
static bool put_key(const char *word, bool with_modifiers, struct buf *out)
{
    const char *name = find(keys, sizeof keys / sizeof *keys, word);
    if (name)
        return buf_puts(out, name) == 0;
    if (!is_function_key(word) && !(with_modifiers && word[0] > ' ' && !word[1]))
        return false;
    return buf_putc(out, (char)tolower((unsigned char)word[0])) == 0 && buf_puts(out, word + 1) == 0;
}

char *plain_keys(const char *text)
{
    struct buf out;
    char *copy = xstrdup(text), *at = copy;
    bool ok = true, with = false;
    buf_init(&out, 256);
    for (char *plus; ok && (plus = strchr(at, '+')) && plus[1]; at = plus + 1, with = true) {
        *plus = 0;
        const char *name = find(modifiers, sizeof modifiers / sizeof *modifiers, at);
        ok = name && buf_printf(&out, "%s+", name) == 0;
    }
    ok = ok && put_key(at, with, &out);
    free(copy);
    if (ok)
        return buf_take(&out);
    buf_free(&out);
    return NULL;
}

int plain_press_keys(struct span s, struct plain_step *out, struct err *why)
{
    s = words_bare(s);
    int times = 1, n = s.n;
    if (n > 1 && words_is(s, n - 1, "once|twice")) {
        times = words_is(s, n - 1, "twice") ? 2 : 1;
        n--;
    } else if (n > 2 && words_is(s, n - 1, "times")) {
        times = atoi(s.w[n - 2].text);
        n -= 2;
    }
    bool named = n > 1 && (words_is(s, 0, "key|keys") || words_is(s, n - 1, "key|keys"));
    struct span key = named && words_is(s, 0, "key|keys") ? words_part(s, 1, n) : words_part(s, 0, n - named);
    for (int i = 0; i < key.n; i++)
        if (key.w[i].quoted)
            return 0;
    char *text = words_text(key), *found = plain_keys(text);
    if (found && (times < 1 || times > PLAIN_TIMES_MAX)) {
        free(text);
        free(found);
        return err_set(why, ERR_USAGE, "a key is pressed once to %d times", PLAIN_TIMES_MAX);
    }
    bool alone = found && !strchr(found, '+') && !named && n == s.n;
    if (alone) {
        *out =
            (struct plain_step){.verb = PLAIN_PRESS, .what = text, .whole = xstrdup(text), .maybe_key = true};
        free(found);
        return 1;
    }
    free(text);
    if (!found)
        return 0;
    *out = (struct plain_step){.verb = PLAIN_KEYS, .what = found, .times = times};
    return 1;
}
