/* tell_elements.c - the elements of the active window as text for the model (--elements-text), and its refs
 * as places. */
#include "run/job.h"

#include "atspi/lines.h"
#include "atspi/refs.h"
#include "gate/masked.h"
#include "plain/resolve.h"

#include <stdio.h>
#include <string.h>

enum { READ_MS = 1000, TEXT_BYTES = 4500 }; /* about 1,500 tokens */

static char *mask_text(const void *secrets, const char *text)
{
    return secrets_mask(secrets, text);
}

/* Reads the elements without secrets and hidden zones.  Returns -1 with e; else masked_free(m) is needed. */
static int read_masked(struct job *j, struct masked *m, struct err *e)
{
    const struct elements_scope scope = {0};
    const struct snapshot *s;
    const struct masked_by by = {.mask = j->secrets ? mask_text : NULL,
                                 .arg = j->secrets,
                                 .hide = j->s.hide,
                                 .root = screen_root(j->screen)};
    if (elements_snapshot(j->elements, &scope, READ_MS, &s, e))
        return -1;
    if (masked_copy(m, s, &by, e) == 0)
        return 0;
    masked_free(m);
    return -1;
}

static void read_text(void *arg, struct buf *out)
{
    struct job *j = arg;
    struct masked m;
    struct err e = ERR_INIT;
    struct buf text;
    if (read_masked(j, &m, &e))
        return;
    buf_init(&text, LINES_BYTES);
    buf_puts(&text, "");
    elements_text(&m.s, false, &text);
    lines_within(text.data, TEXT_BYTES, out);
    refs_note(j->refs, &m.s, out->data); /* those that the model reads */
    buf_free(&text);
    masked_free(&m);
}

static int find_ref(void *arg, uint32_t ref, int *x, int *y, char *name, size_t size, struct err *e)
{
    struct job *j = arg;
    struct masked m;
    char why[ERR_TEXT];
    if (read_masked(j, &m, e))
        return -1;
    const struct element *el = refs_find(j->refs, &m.s, ref, why, sizeof why);
    bool placed = el && el->trust != PLACE_NONE && el->trust != PLACE_DOUBTFUL && el->rect.w > 0;
    if (!el) /* the advice of refs_find() is for clients with tools */
        err_set(e, ERR_FAILED, "%.*s; nothing was done; see the elements below",
                (int)(strrchr(why, ';') ? strrchr(why, ';') - why : (long)strlen(why)), why);
    else if (!placed || resolve_hidden_by(&m.s, el))
        err_set(e, ERR_FAILED, "e%u is not in sight; nothing was done", ref);
    if (el) {
        *x = el->rect.x + el->rect.w / 2;
        *y = el->rect.y + el->rect.h / 2;
        snprintf(name, size, "%s", resolve_name(el));
    }
    bool found = placed && !resolve_hidden_by(&m.s, el);
    masked_free(&m);
    return found ? 0 : -1;
}

int job_tell_elements(struct job *j, struct err *e)
{
    bool decided = j->host && j->host->decide;
    if (j->s.elements_text == JOB_ELEMENTS_NO || j->plain || j->planner || j->playback || decided)
        return 0;
    if (!j->elements)
        return err_set(e, ERR_USAGE,
                       "--elements-text needs the elements of programs: not with --no-elements or "
                       "HOLORUN_ELEMENTS=no");
    if (j->s.elements_text == JOB_ELEMENTS_ONLY && !j->model->endpoint && !j->s.fake)
        return err_set(e, ERR_USAGE,
                       "--elements-text only works with a model behind an address (--base-url, --provider): "
                       "use --elements-text add");
    j->refs = refs_new();
    j->dialect->refs = true;
    j->tell = (struct agent_elements){
        .read = read_text, .find = find_ref, .arg = j, .only = j->s.elements_text == JOB_ELEMENTS_ONLY};
    return 0;
}
