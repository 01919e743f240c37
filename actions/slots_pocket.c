/* slots_pocket.c - positions of verb, element, point and text in a reply of the syntax "pocket"
 * (parse_pocket.c).
 */
#include "actions/pocket_impl.h"

#include <stdio.h>
#include <string.h>

/* Reads patches and eighths, "12><.3><20><.0>".  Returns the length up to the last ">"; -1: not a point, or
 * the text ends inside it. */
static ptrdiff_t patch_point(const char *text, size_t len, int out[2])
{
    char copy[32] = "";
    int x, y, fx, fy, end = -1;
    memcpy(copy, text, len < sizeof copy ? len : sizeof copy - 1);
    if (sscanf(copy, "%2d><.%1d><%2d><.%1d%n", &x, &fx, &y, &fy, &end) < 4 || end < 0 || copy[end] != '>')
        return -1;
    out[0] = 16 * x + 2 * fx + 1;
    out[1] = 16 * y + 2 * fy + 1;
    return end;
}

/* {thought}<verb>{element}<at><x><y>... */
int pocket_slots(const struct dialect *d, const char *text, size_t len, struct slot *out, int max)
{
    (void)d;
    const char *open = memchr(text, '<', len), *end = text + len;
    const char *close = open ? memchr(open, '>', (size_t)(end - open)) : NULL;
    struct slot_number x;
    int n = 0, point[2];
    if (!close)
        return 0;
    if (n < max)
        out[n++] = (struct slot){SLOT_VERB, (size_t)(open + 1 - text), (size_t)(close - text)};
    const char *at = memmem(close, (size_t)(end - close), "<at>", 4);
    if (!at || !slots_next_number(at, (size_t)(end - at), 0, &x))
        return n;
    size_t begin = (size_t)(at - text) + x.begin;
    ptrdiff_t size = patch_point(text + begin, len - begin, point);
    if (size > 0 && n < max)
        out[n++] = (struct slot){SLOT_POINT, begin, begin + (size_t)size};
    return n;
}

ptrdiff_t pocket_slot_end(enum slot_kind kind, const char *text, size_t len)
{
    static const char closing[SLOT_KINDS] = {[SLOT_VERB] = '>', [SLOT_NAME] = '<', [SLOT_TEXT] = '\n'};
    int point[2];
    if (kind == SLOT_POINT)
        return patch_point(text, len, point);
    const char *end = memchr(text, closing[kind], len);
    return end ? end - text : -1;
}

bool pocket_point(const char *text, size_t len, double v[2])
{
    char copy[128];
    int point[2];
    if (len >= sizeof copy - 1)
        return false;
    memcpy(copy, text, len);
    copy[len] = '>'; /* ends the last mark */
    if (patch_point(copy, len + 1, point) < 0)
        return false;
    v[0] = point[0];
    v[1] = point[1];
    return true;
}

bool pocket_word_slot(enum slot_kind kind, const char *text, size_t len, struct slot *out)
{
    const char *at = memmem(text, len, "<at>", 4);
    const char *mark = kind == SLOT_NAME ? memchr(text, '>', len) : memrchr(text, '>', len);
    if (!mark || (kind == SLOT_NAME && (!at || at <= mark)))
        return false;
    size_t begin = (size_t)(mark + 1 - text);
    size_t end = kind == SLOT_NAME ? (size_t)(at - text) : len - (len > begin && text[len - 1] == '\n');
    *out = (struct slot){kind, begin, end};
    return end > begin;
}
