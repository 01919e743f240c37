/* advice.c - advice about the embedded model: that a better model is available, printed once, and the
 * rejection of questions, which it cannot answer.  See job.h. */
#include "run/job.h"

#include "base/file.h"
#include "capacity/memory.h"
#include "checkpoint/known.h"
#include "cli/version.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- a better model ----------------------------------------------------------------------------- */

/* Returns whether this version has given the advice to this user before, and records that it has.  If the
 * record cannot be written, the advice is repeated next time. */
static bool advised_before(void)
{
    autofree char *folder = file_place(PLACE_STATE, NULL), *text = NULL;
    autofree char *path = folder ? xasprintf("%s/advised", folder) : NULL;
    size_t len = 0;
    bool before =
        path && file_read(path, 64, &text, &len, NULL) == 0 && !strncmp(text, HOLORUN_VERSION "\n", len);
    before = before && len == strlen(HOLORUN_VERSION "\n");
    if (path && !before)
        file_write(path, HOLORUN_VERSION "\n", strlen(HOLORUN_VERSION "\n"), NULL);
    return before;
}

void job_advise_model(const struct job *j)
{
    bool pulled;
    const struct known_model *m = known_better((double)memory_available(), &pulled);
    if (!j->progress.f || advised_before())
        return;
    autofree char *text =
        !m       ? xstrdup("the small embedded model")
        : pulled ? xasprintf("the small embedded model; a larger one is on this machine: '-m %s'", m->name)
                 : xasprintf("the small embedded model; for a larger one that fits this machine (%.1f "
                             "GB): 'holorun pull %s', then '-m %s' (shown once)",
                             m->gb, m->name, m->name);
    progress_head(&j->progress, "model", text);
}

/* ---- questions ------------------------------------------------------------------------------------ */

static bool begins_with_one_of(const char *text, const char *const *words)
{
    for (; *words; words++) {
        size_t n = strlen(*words);
        if (!strncasecmp(text, *words, n) && (!text[n] || strchr(" '", text[n])))
            return true;
    }
    return false;
}

bool job_task_is_question(const char *task)
{
    static const char *const asking[] = {"what",   "which",   "who",   "whose", "where",  "when",    "why",
                                         "how",    "is",      "are",   "was",   "were",   "does",    "do",
                                         "did",    "has",     "have",  "isn't", "aren't", "doesn't", "can i",
                                         "what's", "where's", "who's", NULL};
    static const char *const first[] = {"what", "how", NULL};
    static const char *const second[] = {"is", "are", "does", "many", "much", NULL};
    const char *text = task + strspn(task, " \t\n\"'");
    size_t n = strlen(text);
    while (n && strchr(" \t\n\"'", text[n - 1]))
        n--;
    const char *end = n ? memchr(text, '?', n) : NULL;
    if (end) /* true only if nothing follows the question */
        return end + 1 == text + n && !memchr(text, '\n', n) && begins_with_one_of(text, asking);
    bool one = !memchr(text, '\n', n) && !strstr(text, ". ") && !strchr(text, ',') && !strstr(text, " and ");
    const char *next = text + strcspn(text, " ");
    return one && begins_with_one_of(text, first) && begins_with_one_of(next + strspn(next, " "), second);
}

int job_check_task(const struct job *j, struct err *e)
{
    if (j->among || j->host || j->s.fake || j->s.model || j->model->endpoint || j->model != &j->own ||
        j->s.planner == JOB_PLAIN_ONLY || !job_task_is_question(j->task))
        return 0;
    autofree char *quoted = options_quoted((char *const[]){j->task}, 1);
    err_set(
        e, ERR_USAGE,
        "the embedded model performs tasks and does not answer questions; use: holorun ask --screen %.200s, "
        "or select another model with --model",
        quoted);
    return -1;
}
