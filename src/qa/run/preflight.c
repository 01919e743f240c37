/* preflight.c - checks, before a suite starts, the files and settings that its tests refer to. */
#include "qa/run/workers.h"

#include "actions/action.h"
#include "actions/dialect.h"
#include "base/file.h"
#include "gate/policy.h"
#include "record/playback.h"
#include "record/recording.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct search {
    const struct suite *suite;
    const struct test *test; /* NULL: not about a single test */
    json_t *faults;
    json_t *sources; /* secrets that were read; an environment variable can be read only once */
    const struct dialect *dialect;
};

static void found(const struct search *s, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void found(const struct search *s, const char *fmt, ...)
{
    char what[ERR_TEXT], line[2 * ERR_TEXT];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (s->test)
        snprintf(line, sizeof line, "%s:%d: test '%s': %s", s->suite->path, s->test->line, s->test->id, what);
    json_object_set_new_nocheck(s->faults, s->test ? line : what, json_null());
}

/* ---- replies ------------------------------------------------------------------------------------- */

/* Checks that each reply can be parsed; empty lines are skipped. */
static void search_replies(const struct search *s, struct llm *replies, const char *path)
{
    const struct llm_request request = {.goal = GOAL_STEP};
    int w = 1280, h = 720;
    if (s->test)
        sscanf(s->test->display, "xvfb:%dx%d", &w, &h);
    for (int i = 1;; i++) {
        struct generated reply = {0};
        struct step step = {0};
        struct err e = ERR_INIT;
        int rc = replies->ops->speak(replies, &request, &reply, NULL);
        if (rc == 0 && action_parse(reply.text.data, reply.text.len, s->dialect, w, h, &step, &e))
            found(s, "--fake '%s': reply %d: %s", path, i, e.text);
        step_free(&step);
        generated_free(&reply);
        if (rc)
            return;
    }
}

static void search_recording(const struct search *s, const char *path)
{
    struct err e = ERR_INIT;
    struct recording *r = recording_read(path, &e);
    if (!r)
        found(s, "%s", e.text);
    recording_free(r);
}

static void search_script(const struct search *s, const char *path)
{
    struct err e = ERR_INIT;
    struct stat st;
    if (playback_is(path)) {
        search_recording(s, path);
        return;
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        found(s, "--fake: '%s' is not a file", path);
        return;
    }
    struct llm *replies = llm_script_file(path, &e);
    struct generated first = {0};
    if (!replies)
        found(s, "--fake: %s", e.text);
    else if (replies->ops->speak(replies, &(const struct llm_request){.goal = GOAL_STEP}, &first, NULL))
        found(s, "--fake: '%s' has no replies", path);
    generated_free(&first);
    llm_free(replies);
    replies = s->dialect ? llm_script_file(path, NULL) : NULL;
    if (replies)
        search_replies(s, replies, path);
    llm_free(replies);
}

static void search_fake(struct search *s, const char *fake)
{
    struct stat st;
    if (stat(fake, &st) || !S_ISDIR(st.st_mode)) {
        search_script(s, fake);
        return;
    }
    for (int i = 0; i < s->suite->n; i++) {
        s->test = &s->suite->tests[i];
        autofree char *path = xasprintf("%s/%s.txt", fake, s->test->id);
        if (s->test->selected && test_needs_model(s->test))
            search_script(s, path);
    }
    s->test = NULL;
}

/* ---- steps --------------------------------------------------------------------------------------- */

static void search_steps(const struct search *s, const struct run_settings *settings, bool freezes)
{
    const struct test *t = s->test;
    const char *off = getenv("HOLORUN_ELEMENTS");
    const char *why = !t->elements                ? "elements: no, or write the task as text"
                      : !settings->elements       ? "--no-elements"
                      : off && !strcmp(off, "no") ? "HOLORUN_ELEMENTS=no"
                                                  : NULL;
    if (t->stale && !freezes)
        found(s,
              "line %d: the steps were made for another sentence; check them, then write steps_of: %s, "
              "or remove steps and steps_of",
              t->stale, t->stale_hash);
    if (t->plain.n && why)
        found(s, "its steps need the elements of programs: remove %s", why);
}

void preflight_first(const struct suite *s, const struct run_settings *settings, bool freezes, json_t *faults)
{
    struct search search = {.suite = s, .faults = faults};
    for (int i = 0; i < s->n; i++) {
        search.test = &s->tests[i];
        if (search.test->selected)
            search_steps(&search, settings, freezes);
    }
    search.test = NULL;
    if (settings->fake)
        search_fake(&search, settings->fake);
}

/* ---- other functions ----------------------------------------------------------------------------- */

static void search_secrets(const struct search *s)
{
    for (const char *const *spec = s->test->secrets; *spec; spec++) {
        const char *source = strchr(*spec, '=');
        struct secrets *read = NULL;
        struct err e = ERR_INIT;
        if (!source || json_object_get(s->sources, source + 1))
            continue;
        json_object_set_new_nocheck(s->sources, source + 1, json_true());
        if (secrets_open(&read, (const char *const[]){*spec, NULL}, &e))
            found(s, "%s", e.text);
        secrets_free(read);
    }
}

static void search_policy(const struct search *s, const char *path)
{
    struct err e = ERR_INIT;
    struct policy *p = path ? policy_open(path, &e) : NULL;
    if (path && !p)
        found(s, "%s", e.text);
    policy_free(p);
}

static void search_images(const struct search *s)
{
    for (int i = 0; i < s->test->n_checks; i++) {
        const struct check *c = &s->test->checks[i];
        autofree char *path = c->kind != CHECK_REGION ? NULL
                              : *c->text == '/'       ? xstrdup(c->text)
                                                      : xasprintf("%s/%s", s->suite->dir, c->text);
        if (path && !file_exists(path))
            found(s, "reference image '%s' not found; --update-golden creates it", path);
    }
}

void preflight(const struct suite *s, const struct run_settings *settings, bool update_golden, json_t *faults)
{
    struct err e = ERR_INIT;
    struct search search = {.suite = s, .faults = faults, .sources = json_object()};
    struct dialect *dialect = settings->dialect || settings->fake
                                  ? dialect_load(settings->dialect ? settings->dialect : "holo3", &e)
                                  : NULL;
    if (e.kind)
        found(&search, "%s", e.text);
    search.dialect = dialect;
    search_policy(&search, settings->policy);
    if (settings->fake)
        search_fake(&search, settings->fake);
    for (int i = 0; i < s->n; i++) {
        search.test = &s->tests[i];
        if (!search.test->selected)
            continue;
        search_steps(&search, settings, false);
        if (search.test->recording)
            search_recording(&search, search.test->recording);
        if (search.test->recording && !search.test->n_checks)
            found(&search, "the recording has no check that shows its effect: add one under 'checks'");
        search_secrets(&search);
        search_policy(&search, search.test->policy);
        if (!update_golden)
            search_images(&search);
    }
    if (dialect)
        dialect_free(dialect);
    json_decref(search.sources);
}

void preflight_warn_sizes(const struct suite *s, const struct dialect *d)
{
    const struct test *odd = NULL;
    int n = 0, w, h;
    for (int i = s->n - 1; d && d->screen_w && i >= 0; i--) {
        const struct test *t = &s->tests[i];
        if (!t->selected || !test_needs_model(t) || sscanf(t->display, "xvfb:%dx%d", &w, &h) != 2 ||
            (w == d->screen_w && h == d->screen_h))
            continue;
        odd = t;
        n++;
    }
    if (odd)
        warn("this model was trained on screens of %dx%d, but %d test%s another size ('%s': %s): expect "
             "errors, or set display: xvfb:%dx%d",
             d->screen_w, d->screen_h, n, n == 1 ? " has" : "s have", odd->id, odd->display, d->screen_w,
             d->screen_h);
}
