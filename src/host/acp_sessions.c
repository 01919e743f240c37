/* acp_sessions.c - the records that belong to a session, as a file in the state directory.
 * The file lists the directories of the records, one per line.  Loading a session sends its conversation from
 * these records; the next prompt continues the last one. */
#include "host/acp_impl.h"

#include "base/buf.h"
#include "base/file.h"
#include "trace/read.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20 };

static char *path_of(const struct acp_session *s, struct err *e)
{
    autofree char *state = file_place(PLACE_STATE, e),
                  *folder = state ? xasprintf("%s/sessions", state) : NULL;
    return folder && dir_make(folder, e) == 0 ? xasprintf("%s/%s", folder, s->id) : NULL;
}

void acp_remember(const struct acp_session *s, const char *dir)
{
    struct err e = ERR_INIT;
    autofree char *path = path_of(s, &e), *full = realpath(dir, NULL),
                  *line = xasprintf("%s\n", full ? full : dir);
    int fd = path ? file_append(path, &e) : -1;
    if (fd < 0 || file_write_all(fd, path, line, strlen(line), &e))
        warn("this session cannot be loaded later: %s", e.text);
    if (fd >= 0)
        close(fd);
}

static void show_record(struct acp *a, struct acp_session *s, const struct record *r, int n)
{
    for (int i = 0; i < n; i++) {
        const struct event *v = &r->events[i];
        if (!strcmp(v->kind, "start"))
            acp_say(a, s, "user_message_chunk", field_text(v->fields, "task"));
        else if (!strcmp(v->kind, "task"))
            acp_say(a, s, "user_message_chunk", field_text(v->fields, "text"));
        else if (!strcmp(v->kind, "end") || !strcmp(v->kind, "task_end"))
            acp_say(a, s, "agent_message_chunk", field_text(v->fields, "answer"));
        else
            acp_show(a, s, v->kind, v->fields);
    }
}

/* Returns whether the run ended while idle: then the last answer is in the events "task_end" and "end". */
static bool ended_idle(const struct record *r)
{
    return r->n > 1 && !strcmp(r->events[r->n - 1].kind, "end") &&
           !strcmp(r->events[r->n - 2].kind, "task_end");
}

int acp_recall(struct acp *a, struct acp_session *s, struct err *e)
{
    char *path = path_of(s, e), *text = NULL, *save;
    size_t len;
    int rc = path && file_exists(path) ? file_read(path, FILE_MAX, &text, &len, e)
                                       : err_set(e, ERR_USAGE, "session not found");
    free(path);
    if (rc)
        return -1;
    for (char *dir = strtok_r(text, "\n", &save); dir; dir = strtok_r(NULL, "\n", &save)) {
        struct record r;
        if (record_open(&r, dir, NULL))
            continue; /* the record was deleted */
        show_record(a, s, &r, r.n - ended_idle(&r));
        record_free(&r);
        free(s->dir);
        s->dir = xstrdup(dir);
    }
    free(text);
    return s->dir ? 0 : err_set(e, ERR_USAGE, "the records of the session no longer exist");
}
