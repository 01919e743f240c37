/* progress.c - see progress.h. */
#include "agent/progress.h"

#include "base/bar.h"
#include "base/utf8.h"
#include "gate/secret.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 600, INDENT = 6 };

enum ink { INK_PLAIN, INK_BOLD, INK_SOFT, INK_GOOD, INK_BAD };
static const char *const inks[] = {"", "\033[1m", "\033[2m", "\033[32m", "\033[31m"};

void progress_open(struct progress *p, FILE *f, bool quiet, bool verbose)
{
    *p = (struct progress){.f = quiet ? NULL : f, .verbose = verbose};
    p->color = p->f && bar_colors(f);
}

static void put_text(const struct progress *p, enum ink ink, const char *text)
{
    char *masked = p->secrets ? secrets_mask(p->secrets, text) : NULL;
    const char *s = masked ? masked : text;
    size_t n = strlen(s);
    bool cut = n > SHOWN;
    if (p->color)
        fputs(inks[ink], p->f);
    utf8_print(p->f, s, cut ? SHOWN : n);
    fputs(cut ? "..." : "", p->f);
    if (p->color && ink != INK_PLAIN)
        fputs("\033[0m", p->f);
    free(masked);
}

void progress_text(FILE *f, const char *s)
{
    put_text(&(struct progress){.f = f}, INK_PLAIN, s);
}

static void put_line(const struct progress *p, enum ink ink, const char *text)
{
    if (!p->f)
        return;
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
}

void progress_tail(const struct progress *p, bool good, const char *name, const char *text)
{
    if (!p->f)
        return;
    fputc('\n', p->f);
    put_named(p, good ? INK_GOOD : INK_BAD, name, text);
}
