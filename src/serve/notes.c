/* notes.c - collects notes for response headers; see notes.h. */
#include "serve/notes.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns whether the list contains this entry. */
static bool has(const char *list, const char *entry, const char *between)
{
    size_t n = strlen(entry), gap = strlen(between);
    for (const char *at = list; *at;) {
        const char *end = strstr(at, between);
        size_t len = end ? (size_t)(end - at) : strlen(at);
        if (len == n && !memcmp(at, entry, n))
            return true;
        at += end ? len + gap : len;
    }
    return false;
}

/* Appends the entry; "..." once if the list is full. */
static void add(char *list, char *entry, const char *between)
{
    size_t n = strlen(list);
    for (char *p = entry; *p; p++)
        if (*p < ' ' || *p > '~')
            *p = '?';
    if (has(list, entry, between) || (n >= 3 && !strcmp(list + n - 3, "...")))
        return;
    if (n + strlen(between) + strlen(entry) > NOTES_BYTES)
        entry = memcpy(entry, "...", 4);
    snprintf(list + n, NOTES_BYTES + 8 - n, "%s%s", n ? between : "", entry);
}

#define ADD(list, between)                                                                                   \
    do {                                                                                                     \
        char entry[200];                                                                                     \
        va_list args;                                                                                        \
        va_start(args, format);                                                                              \
        vsnprintf(entry, sizeof entry, format, args);                                                        \
        va_end(args);                                                                                        \
        if (n)                                                                                               \
            add(n->list, entry, between);                                                                    \
    } while (0)

void notes_ignore(struct notes *n, const char *format, ...)
{
    ADD(ignored, ", ");
}

void notes_warn(struct notes *n, const char *format, ...)
{
    ADD(warning, "; ");
}
