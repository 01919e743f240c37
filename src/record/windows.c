/* windows.c - compares lists of windows; see windows.h. */
#include "record/windows.h"

#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENVIRONMENT_BYTES = 1 << 20, OVERLAYS = 8 };

/* ---- lists ------------------------------------------------------------------------------------------ */

static bool add(void *arg, const char *title, const char *class)
{
    struct windows *list = arg;
    if (*title && list->n < WINDOWS_MOST) {
        snprintf(list->w[list->n].class, RECORDING_TEXT, "%s", class);
        snprintf(list->w[list->n++].title, RECORDING_TEXT, "%s", title);
    }
    return false;
}

/* Removes an open menu, which has a title with some toolkits. */
static void drop(struct windows *list, const struct screen_window *w)
{
    int i = 0;
    while (i < list->n &&
           (strcmp(list->w[i].class, w->class) != 0 || strcmp(list->w[i].title, w->title) != 0))
        i++;
    if (i == list->n)
        return;
    list->n--;
    memmove(&list->w[i], &list->w[i + 1], (size_t)(list->n - i) * sizeof list->w[0]);
}

void windows_read(struct screen *s, struct windows *out)
{
    struct windows *list = xcalloc(1, sizeof *list);
    struct screen_window overlays[OVERLAYS];
    bool known = screen_each_window(s, add, list, NULL) >= 0;
    int n = known ? screen_overlays(s, overlays, OVERLAYS) : 0;
    for (int i = 0; i < n; i++)
        drop(list, &overlays[i]);
    if (known)
        *out = *list;
    free(list);
}

/* Copies a title without the directories of paths, and with 0 for each number. */
static void normalize(const char *title, char out[RECORDING_TEXT])
{
    size_t n = 0, word = 0;
    for (; *title && n + 1 < RECORDING_TEXT; title++) {
        bool digit = isdigit((unsigned char)*title);
        if (digit && n > word && out[n - 1] == '0')
            continue;
        if (*title == '/' && n >= word) {
            n = word;
            continue;
        }
        out[n++] = *title == ' ' ? ' ' : digit ? '0' : *title;
        word = *title == ' ' ? n : word;
    }
    out[n] = 0;
}

/* Returns whether two titles are the same apart from their numbers and directories. */
static bool same_title(const char *a, const char *b)
{
    char x[RECORDING_TEXT], y[RECORDING_TEXT];
    normalize(a, x);
    normalize(b, y);
    return !strcmp(x, y);
}

/* Returns the number of windows of a class, with this title unless that is NULL or empty. */
static int number(const struct windows *list, const char *class, const char *title)
{
    int n = 0;
    for (int i = 0; i < list->n; i++)
        n += !strcmp(list->w[i].class, class) && (!title || !*title || same_title(list->w[i].title, title));
    return n;
}

/* Returns the first window of `list` of which `other` has fewer, -1: none. */
static int more(const struct windows *list, const struct windows *other)
{
    for (int i = 0; i < list->n; i++)
        if (number(list, list->w[i].class, list->w[i].title) >
            number(other, list->w[i].class, list->w[i].title))
            return i;
    return -1;
}

bool windows_changed(const struct windows *before, const struct windows *after, struct recording_step *step)
{
    int opened = more(after, before), closed = more(before, after);
    if (opened >= 0) {
        snprintf(step->class, sizeof step->class, "%s", after->w[opened].class);
        snprintf(step->title, sizeof step->title, "%s", after->w[opened].title);
    }
    if (closed >= 0) {
        snprintf(step->closed_class, sizeof step->closed_class, "%s", before->w[closed].class);
        snprintf(step->closed_title, sizeof step->closed_title, "%s", before->w[closed].title);
    }
    return opened >= 0 || closed >= 0;
}

static bool has_opened(const struct windows *before, const struct windows *now, const char *class,
                       const char *title, bool translated)
{
    if (number(now, class, title) > number(before, class, title))
        return true;
    for (int i = 0; i < now->n && translated; i++)
        if (!strcmp(now->w[i].class, class) && !number(before, class, now->w[i].title))
            return true;
    return false;
}

static bool has_closed(const struct windows *before, const struct windows *now, const char *class,
                       const char *title)
{
    const char *which = number(before, class, title) ? title : NULL;
    return number(now, class, which) < number(before, class, which);
}

bool windows_agree(const struct windows *before, const struct windows *now, const struct recording_step *step,
                   bool translated, char *why, size_t size)
{
    if (*step->closed_class && !*step->class &&
        !has_closed(before, now, step->closed_class, step->closed_title)) {
        snprintf(why, size, "the recording ended with window '%.150s' closed, and it is open",
                 step->closed_title);
        return false;
    }
    if (*step->class && !has_opened(before, now, step->class, step->title, translated)) {
        snprintf(
            why, size,
            number(now, step->class, step->title)
                ? "the recording ended when window '%.150s' opened, and it was open before the last action"
                : "the recording ended with window '%.150s', and no window has this title",
            step->title);
        return false;
    }
    return true;
}

/* ---- one window ------------------------------------------------------------------------------------- */

bool windows_there(struct screen *s, const struct recording_step *step)
{
    struct screen_window w;
    if (screen_find_window(s, step->class, step->title, &w))
        return false;
    if (!*step->title || same_title(w.title, step->title))
        return true;
    bool translated = window_translated(w.pid, step->language); /* an older window may have this class, too */
    return translated && screen_focused_window(s, &w) == 0 && !strcmp(w.class, step->class) && w.dialog;
}

struct count { /* visible windows of the class of a step */
    const struct recording_step *step;
    int of_class;
    bool titled, exact; /* one has its title, without and with numbers and directories */
};

static bool count_window(void *arg, const char *title, const char *class)
{
    struct count *c = arg;
    c->of_class += !strcmp(class, c->step->class);
    c->titled = c->titled || (!strcmp(class, c->step->class) && same_title(title, c->step->title));
    c->exact = c->exact || (!strcmp(class, c->step->class) && !strcmp(title, c->step->title));
    return false;
}

bool windows_keyboard(struct screen *s, const struct recording_step *step, char *why, size_t size)
{
    struct screen_window w;
    struct count c = {.step = step};
    if (!*step->class)
        return true;
    bool known = screen_focused_window(s, &w) == 0;
    if (!known || strcmp(w.class, step->class) != 0) {
        snprintf(why, size, "the keyboard focus is in a window of class '%s', not '%s'", known ? w.class : "",
                 step->class);
        return false;
    }
    if (!*step->title || !strcmp(w.title, step->title))
        return true;
    bool listed = screen_each_window(s, count_window, &c, NULL) >= 0,
         alike = same_title(w.title, step->title);
    if (listed && !c.exact &&
        (alike || (!c.titled && (c.of_class <= 1 || window_translated(w.pid, step->language)))))
        return true;
    snprintf(why, size, "the keyboard focus is in window '%.150s', not in '%.150s'", w.title, step->title);
    return false;
}

/* ---- language --------------------------------------------------------------------------------------- */

/* Returns the value of a variable in an environment block, "": not set. */
static const char *variable(const char *block, size_t len, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = block; at < block + len; at += strlen(at) + 1)
        if (!strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
    return "";
}

void window_language(int pid, char out[RECORDING_LANGUAGE])
{
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    char path[64], *block;
    const char *value = "";
    size_t len;
    out[0] = 0;
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    if (pid <= 0 || file_read(path, ENVIRONMENT_BYTES, &block, &len, NULL))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names && !*value; i++)
        value = variable(block, len, names[i]);
    bool none = !*value || !strcmp(value, "C") || !strncmp(value, "C.", 2) || !strcmp(value, "POSIX");
    if (!none && *variable(block, len, "LANGUAGE"))
        value = variable(block, len, "LANGUAGE");
    size_t n = strspn(value, "abcdefghijklmnopqrstuvwxyz");
    snprintf(out, RECORDING_LANGUAGE, "%.*s", (int)(none || !n || n > 3 ? 2 : n),
             none || !n || n > 3 ? "en" : value);
    free(block);
}

bool window_translated(int pid, const char *recorded)
{
    char now[RECORDING_LANGUAGE];
    window_language(pid, now);
    return *now && *recorded && strcmp(now, recorded) != 0;
}
