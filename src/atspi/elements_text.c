/* elements_text.c - reads the text of a field and of the dialog around a button.
 *
 * Part of the child of elements.c. Searches are bounded by the number of elements; each call to a program
 * has the time limit of elements_serve.c.
 */
#include "atspi/elements_impl.h"

#include <string.h>

enum {
    DEPTH = 40,
    DEPTH_BELOW = 12,
    CHILDREN = 60,
    ELEMENTS = 300, /* elements of a dialog */
    SMALL = 40,     /* elements of a message window that is not marked as a dialog */
    LABELS = 8,     /* a dialog with more labels is a form: they name its fields */
    TEXT = 4000,
};

static bool has_role(const struct atspi *spi, void *object, const char *const *roles)
{
    gchar *role = spi->role(object, NULL);
    bool yes = false;
    for (; role && *roles && !yes; roles++)
        yes = !strcmp(role, *roles);
    g_free(role);
    return yes;
}

/* Returns the object or its nearest ancestor with one of these roles; the caller drops it. NULL: none. */
static void *ancestor(const struct atspi *spi, void *object, const char *const *roles)
{
    void *at = g_object_ref(object);
    for (int depth = 0; at && depth < DEPTH && !has_role(spi, at, roles); depth++) {
        void *up = spi->parent(at, NULL);
        atspi_drop(at);
        at = up;
    }
    if (at && !has_role(spi, at, roles)) {
        atspi_drop(at);
        at = NULL;
    }
    return at;
}

/* Returns at most `most` bytes of the object's text, without embedded objects; the caller frees it. */
static char *text_of(const struct atspi *spi, void *object, size_t most)
{
    void *iface = spi->text(object);
    gint n = iface ? spi->text_length(iface, NULL) : 0;
    gchar *text = n > 0 ? spi->text_get(iface, 0, n < (gint)most ? n : (gint)most, NULL) : NULL;
    atspi_drop(iface);
    bool valid = text && g_utf8_validate(text, -1, NULL);
    char *out = xstrdup(valid ? text : ""), *to = out;
    for (const char *from = out; *from;)
        if (!strncmp(from, "\xef\xbf\xbc", 3)) /* an embedded object */
            from += 3;
        else
            *to++ = *from++;
    *to = 0;
    g_free(text);
    if (strlen(out) > most)
        out[g_utf8_find_prev_char(out, out + most) - out] = 0;
    return out;
}

/* ---- fields ----------------------------------------------------------------------------------------- */

static bool is_of_tools(const struct atspi *spi, void *document)
{
    void *iface = spi->document(document);
    gchar *url = iface ? spi->document_attribute(iface, "DocURL", NULL) : NULL;
    gchar *name = spi->name(document, NULL);
    bool yes = (url && (strstr(url, "devtools") == url || !strncmp(url, "chrome-devtools", 15) ||
                        !strncmp(url, "about:devtools", 14) || !strncmp(url, "chrome://devtools", 17))) ||
               (name && (!strncmp(name, "DevTools", 8) || !strncmp(name, "Developer Tools", 15)));
    g_free(url);
    g_free(name);
    atspi_drop(iface);
    return yes;
}

json_t *elements_read_field(const struct atspi *spi, void *object)
{
    static const char *const documents[] = {"document web", "document frame", "html container", NULL};
    static const char *const fields[] = {"entry", "text", "password text", "combo box", "spin button", NULL};
    void *document = ancestor(spi, object, documents);
    bool tools = document && is_of_tools(spi, document);
    char *text = text_of(spi, object, TEXT);
    json_t *out =
        json_pack("{s:b, s:b, s:b, s:s}", "page", document != NULL, "tools", tools, "editable",
                  atspi_is(spi, object, ATSPI_EDITABLE) || has_role(spi, object, fields), "text", text);
    free(text);
    atspi_drop(document);
    return out;
}

/* ---- dialogs ---------------------------------------------------------------------------------------- */

struct collected {
    const struct atspi *spi;
    GString *text;
    int labels, budget;
    bool large; /* has a menu, a table or a page, unlike a message */
};

static void add_label(struct collected *c, void *object)
{
    gchar *name = c->spi->name(object, NULL);
    char *text =
        name && *name && g_utf8_validate(name, -1, NULL) ? xstrdup(name) : text_of(c->spi, object, 400);
    if (*text && c->text->len < 500) {
        g_string_append_printf(c->text, "%s%s", c->text->len ? "\n" : "", text);
        c->labels++;
    }
    free(text);
    g_free(name);
}

static void collect(struct collected *c, void *object, int depth)
{
    static const char *const labels[] = {"label", "static", "paragraph", "heading", NULL};
    static const char *const skipped[] = {"push button", "button",   "menu bar", "table",
                                          "tree table",  "tree",     "list",     "entry",
                                          "combo box",   "tool bar", NULL};
    static const char *const parts[] = {
        "menu bar",   "tool bar", "document web", "document frame", "terminal", "table",
        "tree table", "canvas",   "drawing area", "status bar",     NULL};
    c->large = c->large || has_role(c->spi, object, parts);
    if (--c->budget < 0 || depth > DEPTH_BELOW || has_role(c->spi, object, skipped))
        return;
    if (has_role(c->spi, object, labels)) {
        add_label(c, object);
        return;
    }
    int n = c->spi->child_count(object, NULL);
    for (int i = 0; i < n && i < CHILDREN; i++) {
        void *child = c->spi->child_at(object, i, NULL);
        if (child && atspi_is(c->spi, child, ATSPI_VISIBLE))
            collect(c, child, depth + 1);
        atspi_drop(child);
    }
}

json_t *elements_read_dialog(const struct atspi *spi, void *object)
{
    /* Firefox shows its questions in frames outside the page. */
    static const char *const dialogs[] = {
        "dialog",         "alert",        "alert dialog",   "message dialog",
        "internal frame", "document web", "document frame", NULL};
    static const char *const windows[] = {"frame", "window", NULL};
    void *dialog = ancestor(spi, object, dialogs);
    if (dialog && has_role(spi, dialog, dialogs + 5)) {
        atspi_drop(dialog);
        return json_string("");
    }
    bool plain = !dialog; /* windows of yad are not marked as dialogs */
    dialog = dialog ? dialog : ancestor(spi, object, windows);
    struct collected c = {spi, g_string_new(NULL), 0, ELEMENTS, false};
    gchar *name = dialog ? spi->name(dialog, NULL) : NULL;
    if (dialog)
        collect(&c, dialog, 0);
    if (c.labels > LABELS)
        g_string_truncate(c.text, 0);
    bool message = !plain || (!c.large && c.labels <= LABELS && c.budget > ELEMENTS - SMALL);
    if (!message)
        g_string_truncate(c.text, 0);
    if (message && name && *name && g_utf8_validate(name, -1, NULL))
        g_string_append_printf(c.text, "\n%.200s", name);
    json_t *out = json_string(c.text->str);
    g_free(name);
    g_string_free(c.text, TRUE);
    atspi_drop(dialog);
    return out ? out : json_string("");
}
