/* progress.c - prints the progress of a run on stderr; see progress.h. */
#include "agent/progress.h"

#include "agent/agent.h"
#include "base/bar.h"
#include "base/clock.h"
#include "base/secret.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHOWN = 600, INDENT = 6, WRITING = 64, WRITING_MS = 100 };

struct progress_line {
    char text[512];
    size_t n;
    int64_t drawn; /* clock_ns() */
    bool shown;
};

enum ink { INK_PLAIN, INK_BOLD, INK_SOFT, INK_GOOD, INK_WARN, INK_BAD };
static const char *const inks[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[31m"};

void progress_open(struct progress *p, FILE *f, bool quiet, bool verbose)
{
    *p = (struct progress){.f = quiet ? NULL : f, .verbose = verbose};
    p->color = p->f && bar_colors(f);
    p->line = p->f && isatty(fileno(f)) ? xcalloc(1, sizeof *p->line) : NULL;
}

void progress_close(struct progress *p)
{
    free(p->line);
    p->line = NULL;
}

/* ---- the text being generated ----------------------------------------------------------------------- */

static void clear_line(const struct progress *p)
{
    if (p->line && p->line->shown)
        fputs("\r\033[K", p->f);
    if (p->line)
        *p->line = (struct progress_line){.drawn = p->line->drawn};
}

/* Prints the last WRITING characters of the text; in most scripts a character takes one column. */
static void draw_line(const struct progress *p)
{
    struct progress_line *l = p->line;
    size_t from = l->n;
    for (int i = 0; i < WRITING && from; i++)
        do
            from--;
        while (from && ((unsigned char)l->text[from] & 0xc0) == 0x80);
    autofree char *tail = xasprintf("%s%.*s", from ? "... " : "", (int)(l->n - from), l->text + from);
    autofree char *masked = secrets_mask(p->secrets, tail);
    fputs("\r\033[K", p->f);
    fprintf(p->f, "%*s", INDENT, "");
    utf8_print(p->f, masked, strlen(masked));
    fflush(p->f);
    l->shown = true;
    l->drawn = clock_ns();
}

void progress_writing(const struct progress *p, const char *text, size_t len)
{
    struct progress_line *l = p ? p->line : NULL;
    if (!l || !len)
        return;
    for (size_t i = 0; i < len; i++) {
        if (l->n == sizeof l->text) {
            memmove(l->text, l->text + sizeof l->text / 2, sizeof l->text / 2);
            l->n = sizeof l->text / 2;
        }
        l->text[l->n++] = text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
    }
    if (clock_ms_since(l->drawn) >= WRITING_MS)
        draw_line(p);
}

static void put_text(const struct progress *p, enum ink ink, const char *text)
{
    autofree char *masked = p->secrets ? secrets_mask(p->secrets, text) : NULL;
    const char *s = masked ? masked : text;
    size_t n = strlen(s);
    bool cut = n > SHOWN;
    if (p->color)
        fputs(inks[ink], p->f);
    utf8_print(p->f, s, cut ? SHOWN : n);
    fputs(cut ? "..." : "", p->f);
    if (p->color && ink != INK_PLAIN)
        fputs("\033[0m", p->f);
}

void progress_text(FILE *f, const char *s)
{
    put_text(&(struct progress){.f = f}, INK_PLAIN, s);
}

static void put_line(const struct progress *p, enum ink ink, const char *text)
{
    if (!p->f)
        return;
    clear_line(p);
    fprintf(p->f, "%*s", INDENT, "");
    put_text(p, ink, text);
    fputc('\n', p->f);
}

static void put_named(const struct progress *p, enum ink ink, const char *name, const char *text)
{
    int indent = INDENT - 2 - (int)strlen(name);
    fprintf(p->f, "%*s", indent > 0 ? indent : 0, "");
    put_text(p, ink, name);
    fputs("  ", p->f);
    put_text(p, INK_PLAIN, text);
    fputc('\n', p->f);
}

void progress_head(const struct progress *p, const char *name, const char *text)
{
    if (p->f)
        put_named(p, INK_SOFT, name, text);
}

void progress_thought(const struct progress *p, int step, const char *thought)
{
    if (!p->f)
        return;
    char number[16] = " end  ";
    if (step)
        snprintf(number, sizeof number, "%4d  ", step);
    clear_line(p);
    clear_line(p);
    fputc('\n', p->f);
    put_text(p, INK_SOFT, number);
    put_text(p, INK_PLAIN, thought);
    fputc('\n', p->f);
}

void progress_action(const struct progress *p, const char *what)
{
    put_line(p, INK_BOLD, what);
}

void progress_trouble(const struct progress *p, const char *text)
{
    put_line(p, INK_BAD, text);
}

void progress_times(const struct progress *p, const double ms[PHASES], const struct progress_tokens *t)
{
    char text[256];
    snprintf(text, sizeof text, "settle %.0f  see %.0f  read %.0f  decide %.0f  act %.0f ms",
             ms[PHASE_SETTLE], ms[PHASE_SEE], ms[PHASE_READ], ms[PHASE_WRITE], ms[PHASE_ACT]);
    put_line(p, INK_SOFT, text);
    if (!p->verbose)
        return;
    snprintf(text, sizeof text,
             "tokens: %lld reused, %lld read, %d generated, %d forced; %d screenshot%s in view",
             (long long)t->reused, (long long)t->prefilled, t->generated, t->forced, t->images,
             t->images == 1 ? "" : "s");
    put_line(p, INK_SOFT, text);
    if (!t->proposed)
        return;
    snprintf(text, sizeof text, "drafts: %d of %d accepted", t->accepted, t->proposed);
    put_line(p, INK_SOFT, text);
}

void progress_server(const struct progress *p, const struct agent_server *s)
{
    char text[200];
    int n = snprintf(text, sizeof text, "server: %lld tokens", (long long)s->prompt);
    if (s->says_cached && s->prompt > 0)
        n += snprintf(text + n, sizeof text - (size_t)n, ", %.0f %% of them cached",
                      100.0 * (double)s->cached / (double)s->prompt);
    if (s->currency && *s->currency)
        snprintf(text + n, sizeof text - (size_t)n, ", %.4g %s", s->cost, s->currency);
    put_line(p, INK_SOFT, text);
}

void progress_tail(const struct progress *p, enum status_colour colour, const char *name, const char *text)
{
    static const enum ink of[] = {
        [STATUS_GREEN] = INK_GOOD, [STATUS_AMBER] = INK_WARN, [STATUS_RED] = INK_BAD};
    if (!p->f)
        return;
    clear_line(p);
    fputc('\n', p->f);
    put_named(p, of[colour], name, text);
}
