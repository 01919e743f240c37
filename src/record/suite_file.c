/* suite_file.c - writes a recording as the YAML of a suite; see suite_file.h. */
#include "record/suite_file.h"

#include "base/file.h"
#include "record/recording.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { SUITE_BYTES = 1 << 20, WORDS_BYTES = 20000 };

/* Writes a YAML string, in JSON syntax. Braces are doubled, because a suite replaces {names}. */
static void put_text(struct buf *b, const char *s)
{
    struct buf twice;
    buf_init(&twice, SUITE_BYTES);
    for (; *s; s++) {
        buf_putc(&twice, *s);
        if (*s == '{' || *s == '}')
            buf_putc(&twice, *s);
    }
    buf_put_json(b, twice.data ? twice.data : "", twice.len);
    buf_free(&twice);
}

/* Writes a regular expression for titles that begin with this title, from its last directory on. */
static void put_title(struct buf *b, const char *title)
{
    struct buf p;
    size_t word = strcspn(title, " ");
    const char *slash = memrchr(title, '/', word);
    buf_init(&p, SUITE_BYTES);
    buf_puts(&p, slash ? "(^|/)" : "^");
    for (title = slash ? slash + 1 : title; *title; title++) {
        if (strchr("\\^$.|?*+()[]{}", *title))
            buf_putc(&p, '\\');
        buf_putc(&p, *title);
    }
    buf_put_json(b, p.data, p.len);
    buf_free(&p);
}

/* Writes the steps in words: the task for a model if the user removes the recording. */
static void put_task(struct buf *b, const struct recording *r)
{
    struct buf words;
    buf_init(&words, WORDS_BYTES);
    for (int i = 0; i < r->n && !words.full; i++) {
        const struct action *a = &r->steps[i].action;
        if (a->kind == ACT_NONE)
            continue;
        size_t at = words.len + (words.len ? 2 : 0);
        buf_puts(&words, words.len ? ". " : "");
        action_describe(a, &words);
        if (at < words.len)
            words.data[at] = (char)toupper((unsigned char)words.data[at]);
    }
    buf_puts(&words, ".");
    buf_put_json(b, words.data, words.len); /* {{NAME}} stays: it is the name of a secret */
    buf_free(&words);
}

static void put_id(struct buf *b, const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_putc(b, isalnum((unsigned char)name[i]) || strchr("._-", name[i]) ? name[i] : '-');
}

/* Writes the check of the state after the last action. */
static void put_end_check(struct buf *b, const struct recording *r)
{
    const struct recording_step *end = r->n ? &r->steps[r->n - 1] : NULL;
    bool known = end && end->for_end, opened = known && *end->class;
    const char *title = !known ? "" : opened ? end->title : end->closed_title;
    if (!*title) {
        buf_puts(b, "      # the last action changed no window, so nothing shows its effect: add a check\n");
        return;
    }
    buf_puts(b, "      - { kind: window, title: ");
    put_title(b, title);
    buf_puts(b, opened ? " }\n" : ", absent: yes }\n");
}

static void put_suite(struct buf *b, const char *name, const char *file, const struct recording *r,
                      const struct recorder_result *result)
{
    size_t n = strcspn(name, ".");
    buf_puts(b, "suite:\n  name: ");
    put_id(b, name, n);
    buf_printf(b,
               "\n  display: xvfb:%dx%d\n"
               "  # the recorded program; add its arguments\n"
               "  %sstart: ",
               r->w, r->h, *result->command ? "" : "# ");
    put_text(b, result->command);
    buf_puts(b, "\ntests:\n  - id: ");
    put_id(b, name, n);
    buf_puts(b, "\n    task: ");
    put_task(b, r);
    buf_puts(b, "\n    recording: ");
    put_text(b, file);
    for (int i = 0; i < r->n_secrets; i++)
        buf_printf(b, "%s%s=env:%s", i ? ", " : "\n    secrets: [", r->secrets[i], r->secrets[i]);
    buf_puts(b, r->n_secrets ? "]\n    checks:\n" : "\n    checks:\n");
    buf_puts(b, "      # conditions after the test; holorun help qa lists the kinds\n");
    put_end_check(b, r);
    buf_puts(b, "      # - { kind: file, path: saved.txt, match: \"the text\" }\n"
                "      # - { kind: shell, run: \"test -s saved.txt\" }\n");
}

int suite_file_write(const char *path, const char *recording, const struct recorder_result *result,
                     struct err *e)
{
    const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
    slash = strrchr(recording, '/');
    struct recording *r = recording_read(recording, e);
    struct buf b;
    if (!r)
        return -1;
    buf_init(&b, SUITE_BYTES);
    put_suite(&b, own, slash ? slash + 1 : recording, r, result);
    int rc = b.full ? err_set(e, ERR_FAILED, "the suite is too long") : file_write(path, b.data, b.len, e);
    buf_free(&b);
    recording_free(r);
    return rc;
}
