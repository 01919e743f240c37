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
