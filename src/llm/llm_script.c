/* llm_script.c - a file of replies instead of a model; see llm.h.
 *
 * The conversation is text in the layout of the chat template; an image is "[image WxH]". A token is a byte
 * and an image costs IMAGE_TOKENS, so that prefilled, reused and decoded tokens can be counted. A mark is a
 * copy of the text; only rewinding to a bookmark restores used replies.
 */
#include "llm/llm.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/flag.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCRIPT_MAX = 4 << 20, TRANSCRIPT_MAX = 64 << 20, IMAGE_TOKENS = 256 };

struct script_llm {
    struct llm base;
    char *text;     /* the whole script */
    char **replies; /* pointers into text */
    int n, used;
    struct script_llm *of; /* script that supplies the replies: itself, or the shared one */
    struct buf transcript;
    int64_t images; /* in the transcript */
    struct session_stats stats;
};

struct script_mark {
    char *text;
    size_t len;
    int64_t images;
    int used; /* -1: rewinding does not restore it */
};

static struct script_llm *script_of(const struct llm *m)
{
    return (struct script_llm *)(uintptr_t)m;
}

static int64_t script_length(const struct llm *m)
{
    const struct script_llm *s = script_of(m);
    return (int64_t)s->transcript.len + s->images * IMAGE_TOKENS;
}

/* Finishes an append that began at `before` tokens: counts the new tokens. Fails if the transcript is
 * full. */
static int script_appended(struct script_llm *s, int64_t before, struct err *e)
{
    s->stats.prefilled += script_length(&s->base) - before;
    return s->transcript.full
               ? err_set(e, ERR_ENV, "the conversation is longer than %d bytes", TRANSCRIPT_MAX)
               : 0;
}

static int script_begin(struct llm *m, const char *system, struct err *e)
{
    struct script_llm *s = script_of(m);
    buf_clear(&s->transcript);
    s->images = 0;
    buf_printf(&s->transcript, "System\n%s\n", system);
    return script_appended(s, 0, e);
}

static int script_user(struct llm *m, const struct chat_part *parts, int n, enum chat_place place,
                       struct err *e)
{
    struct script_llm *s = script_of(m);
    int64_t before = script_length(m);
    buf_puts(&s->transcript, "User\n");
    for (int pass = 0; pass < 2; pass++) { /* the template puts images first */
        for (int i = 0; i < n; i++) {
            bool now = place == CHAT_PLACE_INLINE ? pass == 0 : (parts[i].image != NULL) == (pass == 0);
            if (!now)
                continue;
            if (parts[i].image) {
                buf_printf(&s->transcript, "[image %dx%d]", parts[i].image->w, parts[i].image->h);
                s->images++;
            } else {
                buf_puts(&s->transcript, parts[i].text);
            }
        }
    }
    buf_puts(&s->transcript, "\n");
    return script_appended(s, before, e);
}

static int script_reply(struct llm *m, const char *text, struct err *e)
{
    struct script_llm *s = script_of(m);
    int64_t before = script_length(m);
    buf_printf(&s->transcript, "Assistant\n%s\n", text);
    return script_appended(s, before, e);
}

static int script_speak(struct llm *m, const struct llm_request *r, struct generated *out, struct err *e)
{
    struct script_llm *s = script_of(m);
    int64_t start = clock_ns();
    *out = (struct generated){0};
    buf_init(&out->text, SCRIPT_MAX);
    struct script_llm *of = s->of;
    if (of->used == of->n)
        return err_set(e, ERR_USAGE, "the script has only %d replies", of->n);
    const char *text = of->replies[of->used++];
    buf_puts(&out->text, text);
    out->n = (int)strlen(text);
    out->finish = flag_up(r->cancel) ? FINISH_CANCELLED : FINISH_STOP;
    if (r->on_text)
        r->on_text(r->arg, text, strlen(text));
    buf_printf(&s->transcript, "Assistant\n%s", text);
    s->stats.decoded += out->n;
    out->ms = clock_ms_since(start);
    return script_appended(s, script_length(m), e);
}

static int script_close(struct llm *m, struct err *e)
{
    struct script_llm *s = script_of(m);
    buf_puts(&s->transcript, "\n");
    return script_appended(s, script_length(m), e);
}

static struct llm_mark *script_mark_new(struct llm *m, struct err *e)
{
    const struct script_llm *s = script_of(m);
    struct script_mark *k = xmalloc(1, sizeof *k);
    *k = (struct script_mark){xcalloc(s->transcript.len + 1, 1), s->transcript.len, s->images, -1};
    if (k->len)
        memcpy(k->text, s->transcript.data, k->len);
    return (struct llm_mark *)k;
}

static struct llm_mark *script_bookmark(struct llm *m, struct err *e)
{
    struct llm_mark *mark = script_mark_new(m, e);
    ((struct script_mark *)mark)->used = script_of(m)->of->used;
    return mark;
}

static int script_rewind(struct llm *m, const struct llm_mark *at, struct err *e)
{
    const struct script_mark *k = (const struct script_mark *)at;
    struct script_llm *s = script_of(m);
    buf_clear(&s->transcript);
    buf_put(&s->transcript, k->text, k->len);
    s->images = k->images;
    s->of->used = k->used < 0 ? s->of->used : k->used;
    return 0;
}

static int64_t script_mark_length(const struct llm_mark *at)
{
    const struct script_mark *k = (const struct script_mark *)at;
    return (int64_t)k->len + k->images * IMAGE_TOKENS;
}

static void script_mark_free(struct llm_mark *at)
{
    autofree struct script_mark *k = (struct script_mark *)at;
    if (k)
        free(k->text);
}

static struct session_stats script_stats(const struct llm *m)
{
    return script_of(m)->stats;
}

static void script_free(struct llm *m)
{
    autofree struct script_llm *s = script_of(m);
    buf_free(&s->transcript);
    free(s->replies);
    free(s->text);
}

const char *llm_script_transcript(const struct llm *m)
{
    return script_of(m)->transcript.data;
}

/* Splits the text into replies, in place. */
static void cut_replies(struct script_llm *s)
{
    bool blocks = strstr(s->text, "\n\n") != NULL;
    const char *gap = blocks ? "\n\n" : "\n";
    for (char *p = s->text + strspn(s->text, "\n"); *p;) {
        char *end = strstr(p, gap), *next = end ? end + strspn(end, "\n") : p + strlen(p);
        if (!end) {
            end = next;
            while (end > p && end[-1] == '\n')
                end--;
        }
        *end = 0;
        s->replies = xrealloc(s->replies, (unsigned long)s->n + 1, sizeof *s->replies);
        s->replies[s->n++] = p;
        p = next;
    }
}

static struct script_llm *script_new(void)
{
    static const struct llm_ops ops = {
        LLM_OPS(script),
        .branch = script_rewind, /* marks are copies and stay valid */
        .bookmark = script_bookmark,
    };
    struct script_llm *s = xcalloc(1, sizeof *s);
    s->base.ops = &ops;
    s->of = s;
    buf_init(&s->transcript, TRANSCRIPT_MAX);
    return s;
}

struct llm *llm_script(const char *replies, size_t len)
{
    struct script_llm *s = script_new();
    s->text = xcalloc(len + 1, 1);
    memcpy(s->text, replies, len);
    cut_replies(s);
    return &s->base;
}

struct llm *llm_script_share(struct llm *m)
{
    struct script_llm *s = script_new();
    s->of = script_of(m)->of;
    return &s->base;
}

struct llm *llm_script_file(const char *path, struct err *e)
{
    char *text;
    size_t len;
    if (file_read(path, SCRIPT_MAX, &text, &len, e)) {
        if (e)
            e->kind = ERR_USAGE;
        return NULL;
    }
    char *to = text;
    for (const char *p = text; p < text + len; p++) /* treats CR LF as LF */
        if (*p != '\r' || p[1] != '\n')
            *to++ = *p;
    len = (size_t)(to - text);
    size_t bom = utf8_bom(text, len);
    struct llm *m = llm_script(text + bom, len - bom);
    free(text);
    return m;
}
