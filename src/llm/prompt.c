/* prompt.c - fills the templates of a dialect and escapes its marks; see prompt.h. */
#include "llm/prompt.h"

#include "actions/tools.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { SYSTEM_MAX = 1 << 20, TOLD_MAX = 2000 };

/* Marks that only the dialect may write: in other texts their opening bracket is escaped. */
/* clang-format off */
static const char *const marks[] = {
    "<observation", "</observation", "<tool_output", "</tool_output", "<message", "</message", "<error",
    "</error", "<image>", "<img>", "</img>", "<think>", "</think>", "<tool_call", "</tool_call",
    "<tool_response", "</tool_response", "<SPECIAL_", "<|", "<s>", "</s>", "<unk>", "[INST]", "[/INST]",
    "[IMG]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
};
/* clang-format on */

/* Returns whether s begins with a mark, ignoring case and spaces after the bracket. */
static bool mark_at(const char *s)
{
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *m = marks[i], *p = s;
        if (*m++ != *p++)
            continue;
        while (*p == ' ')
            p++;
        if (*m == '/' && *p == '/') {
            m++;
            for (p++; *p == ' ';)
                p++;
        }
        if (!strncasecmp(p, m, strlen(m)))
            return true;
    }
    return false;
}

char *prompt_escape(const char *text)
{
    struct buf out;
    buf_init(&out, SYSTEM_MAX);
    for (; *text; text++) {
        if (strchr("<[", *text) && mark_at(text))
            buf_puts(&out, *text == '<' ? "&lt;" : "&#91;");
        else
            buf_putc(&out, *text);
    }
    return buf_take(&out);
}

char *prompt_system(const struct dialect *d, const struct prompt_vars *w, struct err *e)
{
    char date[64], steps[16], seconds[32], width[16], height[16];
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    strftime(date, sizeof date, "%A, %B %d, %Y at %I:%M %p UTC", &tm);
    snprintf(steps, sizeof steps, "%d", w->max_steps);
    snprintf(seconds, sizeof seconds, "%.0f", w->max_seconds);
    int shown_w = w->width, shown_h = w->height; /* size of the image to which coordinates refer */
    dialect_shown_size(d, &shown_w, &shown_h);
    snprintf(width, sizeof width, "%d", shown_w);
    snprintf(height, sizeof height, "%d", shown_h);
    autofree char *task = prompt_escape(w->task);
    const char *const slots[] = {
        "date",   date,   "max_steps", steps, "max_time_s", seconds,   "os",    "Linux (X11)", "width", width,
        "height", height, "task",      task,  "schema",     d->schema, "tools", d->tool_list,  NULL};
    autobuf out = buf_of(SYSTEM_MAX);
    return dialect_fill(d->system, slots, &out, e) ? NULL : buf_take(&out);
}

char *prompt_secrets(const char *system, const struct secrets *s)
{
    struct buf out;
    buf_init(&out, 2 * SYSTEM_MAX);
    buf_puts(&out, system);
    if (secrets_count(s))
        buf_puts(&out, "\n\nYou may type secrets by their names, with the braces:");
    for (int i = 0; i < secrets_count(s); i++)
        buf_printf(&out, "%s {{%s}}", i ? "," : "", secrets_name(s, i));
    if (secrets_count(s))
        buf_puts(&out, ". The value takes the place of the name while it is typed. You never see it, and "
                       "the field it was typed into is painted over with stripes in your screenshots.");
    return buf_take(&out);
}

char *prompt_task(const struct dialect *d, const char *task)
{
    char *inert = prompt_escape(task), *text = xasprintf("%s%s%s", d->task_open, inert, d->task_close);
    free(inert);
    return text;
}

/* Fills a template with {tool} and one text, which is cut to TOLD_MAX bytes. Returns NULL with e. */
static char *fill_told(const char *tmpl, const char *tool, const char *slot, const char *text, struct err *e)
{
    size_t n = strlen(text);
    autofree char *cut = xasprintf("%.*s", (int)utf8_valid_prefix(text, n < TOLD_MAX ? n : TOLD_MAX), text);
    autofree char *inert = prompt_escape(cut);
    const char *const slots[] = {"tool", tool, slot, inert, NULL};
    autobuf out = buf_of(SYSTEM_MAX);
    return dialect_fill(tmpl, slots, &out, e) ? NULL : buf_take(&out);
}

char *prompt_output(const struct dialect *d, const char *tool, const char *result, struct err *e)
{
    if (!*result && !d->tool_output_always)
        return xstrdup("");
    return fill_told(d->tool_output, tool, "result", result, e);
}

char *prompt_error(const struct dialect *d, const char *tool, const char *message, struct err *e)
{
    return fill_told(d->tool_error, tool, "message", message, e);
}

/* Returns whether a reply names a tool: in quotes as in JSON, or before a parenthesis or bracket as in
 * calls. */
static bool names_tool(const char *reply, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = reply; (p = strstr(p, name)); p += n)
        if ((p == reply || strchr("\"' .\n<", p[-1])) && (!p[n] || strchr("\"'(>", p[n])))
            return true;
    return false;
}

const char *prompt_tool(const struct dialect *d, enum action_kind kind, const char *reply)
{
    const struct tools *t = d->tools;
    const char *first = kind == ACT_NONE ? "unknown" : action_kind_name(kind);
    for (int i = t->n - 1; i >= 0; i--) {
        if (kind != ACT_NONE && t->list[i].kind != kind)
            continue;
        if (names_tool(reply, t->list[i].name))
            return t->list[i].name;
        if (kind != ACT_NONE)
            first = t->list[i].name;
    }
    return first;
}

char *prompt_reply_as_history(const char *reply)
{
    const char *thought = strstr(reply, "</think>");
    if (thought)
        reply = thought + strlen("</think>");
    reply += thought ? strspn(reply, "\n") : 0;
    size_t n = strlen(reply);
    return xasprintf("%.*s", (int)(n && reply[n - 1] == '\n' ? n - 1 : n), reply);
}
